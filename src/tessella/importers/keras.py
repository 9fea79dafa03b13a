"""Keras 3 models: their layers run on traced tensors, their own forward pass checks the outcome."""

import importlib.util
import logging
import os
import re
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tessella.errors import (
    FileError,
    MissingPackage,
    OptionError,
    TessellaError,
    UnknownShape,
    UnsupportedModel,
    UnsupportedOperator,
)
from tessella.importers.check import checked
from tessella.importers.door import checked_shape, existing_file, reading
from tessella.importers.keras_archive import inspect
from tessella.importers.keras_layers import Context, apply_layer, apply_operation
from tessella.importers.trace import Tensor, Trace
from tessella.network import Floats, Network, Source

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LEGACY = (".h5", ".hdf5")
_REAL_TYPES = ("float32", "float64")


def read_keras(path: str | os.PathLike[str], input_shape: Sequence[int] | None = None) -> Network:
    """Read a ``.keras`` file, without running any code that is stored in it.

    The network reads the model's input flattened row-major in the model's own layout (images mostly height, width, channels).

    Parameters
    ----------
    path
        The file, as ``model.save("name.keras")`` writes it.
    input_shape
        Shape of one input without its batch axis; needed only where the model leaves a size open.
    """
    place = existing_file(path)
    name = str(path)
    if place.name.lower().endswith(_LEGACY):
        msg = f"{name}: is a legacy HDF5 file; load it in Keras and save it again with model.save('name.keras')"
        raise FileError(msg)
    if place.suffix != ".keras":
        msg = f"{name}: has not the suffix .keras, by which Keras knows its files; rename it if it is one"
        raise FileError(msg)
    keras = _package()
    with reading(name, "a Keras model"), _quiet():
        inspect(place)
        try:
            model = keras.saving.load_model(str(place), compile=False, safe_mode=True)
        except Exception as error:
            msg = f"Keras cannot load it ({_reason(error)}); save the model again with model.save('name.keras')"
            raise FileError(msg) from error
        return _read(keras, model, place.name, input_shape)


def from_model(model: Any, input_shape: Sequence[int] | None = None) -> Network:
    """Read a Keras 3 model that is in memory: a Sequential or functional one, in inference mode.

    The network reads the model's input flattened row-major in the model's own layout (images mostly height, width, channels).
    The model is not changed, but for a Sequential one that has no weights yet: it is built, as its first call would do.

    Parameters
    ----------
    model
        The model.
    input_shape
        Shape of one input without its batch axis; needed only where the model leaves a size open.
    """
    keras = _package()
    name = str(getattr(model, "name", type(model).__name__))
    with reading(name, "a Keras model"), _quiet():
        return _read(keras, model, name, input_shape)


def _package() -> Any:
    """The package itself, or what to install."""
    if importlib.util.find_spec("keras") is None:
        msg = "keras is not installed, which reads .keras files and Keras models; pip install 'tessella[keras]'"
        raise MissingPackage(msg)
    try:
        with _quiet():
            import keras  # noqa: PLC0415  heavy, and optional
    except Exception as error:
        msg = (
            f"keras is installed but its backend is not ({error}); set the environment variable KERAS_BACKEND to an installed one "
            "(torch, jax or tensorflow) before Python starts, or pip install 'tessella[keras]' torch and set it to torch"
        )
        raise MissingPackage(msg) from error
    if not hasattr(keras, "saving") or not hasattr(keras, "Function"):
        msg = f"keras {getattr(keras, '__version__', '')} is too old, version 3 is needed; pip install 'tessella[keras]'"
        raise MissingPackage(msg)
    return keras


@contextmanager
def _quiet() -> Generator[None]:
    """Keep warnings of Keras and its backend, and of numbers that overflow, to ourselves; errors say what matters."""
    logger = logging.getLogger("absl")
    level = logger.level
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            logger.setLevel(level)


def _reason(error: Exception) -> str:
    """What happened, in one line: Keras says first where, and then in colour what."""
    lines = [line for line in _COLOUR.sub("", str(error)).splitlines() if line.strip()] or [""]
    line = lines[1] if len(lines) > 1 and lines[0].startswith("Exception encountered") else lines[0]
    return f"{type(error).__name__}: {line.strip()[:200]}"


def _read(keras: Any, model: Any, name: str, input_shape: Sequence[int] | None) -> Network:
    """Convert and check a model; what Keras or its backend throw on the way is one error of ours."""
    try:
        return _converted(keras, model, name, input_shape)
    except TessellaError:
        raise
    except Exception as error:
        msg = f"the model cannot be read ({_reason(error)}); check that it runs on an input of its shape"
        raise UnsupportedModel(msg) from error


def _converted(keras: Any, model: Any, name: str, input_shape: Sequence[int] | None) -> Network:
    if not isinstance(model, keras.Model):
        msg = f"a {type(model).__name__} is no Keras 3 model; give a keras.Sequential or a functional keras.Model"
        raise UnsupportedModel(msg)
    _check_kind(keras, model, "the model")
    shape = _one_shape(model, input_shape)
    trace = Trace((1, *shape))
    outputs = _Reader(Context(keras, trace)).model(model, [trace.input])
    if len(outputs) != 1:
        msg = f"has {len(outputs)} outputs; one is expected: choose it with keras.Model(model.inputs, model.outputs[0])"
        raise UnsupportedModel(msg)
    network = trace.network(outputs[0])

    def forward(point: Floats) -> Floats:
        (output,) = keras.tree.flatten(model(point.reshape(1, *shape), training=False))
        return np.asarray(keras.ops.convert_to_numpy(output), dtype=np.float64)

    return checked(network, Source("keras", name, input_shape=shape), forward)


def _check_kind(keras: Any, model: Any, what: str) -> None:
    """Only models whose layers are known to Keras: functional and Sequential ones that keep Keras' own call."""
    known = isinstance(model, (keras.Function, keras.Sequential))
    if not known or not getattr(type(model).call, "__module__", "").startswith("keras."):
        msg = (
            f"{what} is a {type(model).__name__} with a call method of its own, whose layers cannot be followed; "
            "rebuild it as a functional model, keras.Model(inputs, outputs), or export it to ONNX"
        )
        raise UnsupportedModel(msg)


def _one_shape(model: Any, input_shape: Sequence[int] | None) -> tuple[int, ...]:
    """The shape of one input, from the model and from the caller, where they agree."""
    asked = None if input_shape is None else checked_shape(input_shape)
    inputs = _inputs(model)
    if not inputs:
        if asked is None:
            msg = (
                "the Sequential model does not know its input yet; give input_shape, as in tessella.load(model, input_shape=(28, 28, 1)), "
                "or start the model with keras.Input(shape)"
            )
            raise UnknownShape(msg)
        model.build((None, *asked))
        return asked
    if len(inputs) > 1:
        names = ", ".join(repr(item.name) for item in inputs[:5])
        msg = f"has {len(inputs)} inputs ({names}); one is expected: join them with keras.layers.Concatenate in a model around it"
        raise UnsupportedModel(msg)
    if str(inputs[0].dtype) not in _REAL_TYPES:
        msg = f"input {inputs[0].name!r} is of type {inputs[0].dtype}; rebuild the model with an input of float32"
        raise UnsupportedModel(msg)
    known = tuple(inputs[0].shape[1:])
    if asked is None:
        if None in known:
            msg = f"input {inputs[0].name!r} has the shape {known}, which leaves sizes open; give input_shape, as in tessella.load(model, input_shape=(28, 28, 1))"
            raise UnknownShape(msg)
        return tuple(int(size) for size in known)
    if len(asked) != len(known) or any(size not in {None, given} for size, given in zip(known, asked, strict=True)):
        msg = f"input_shape is {asked}, but the model's input {inputs[0].name!r} has the shape {known} (without its batch axis)"
        raise OptionError(msg)
    return asked


def _inputs(model: Any) -> list[Any]:
    try:
        return list(model.inputs)
    except AttributeError:  # a Sequential model that is not built
        return []


class _Reader:
    """The way through a graph of layers, nested models included."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.keras = context.keras

    def model(self, model: Any, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Run a model's layers."""
        if isinstance(model, self.keras.Sequential):
            for layer in model.layers:
                tensors = self.step(layer, tensors, {})
            return list(tensors)
        if len(tensors) != len(model.inputs):
            msg = f"the model {model.name!r} is called with {len(tensors)} tensors and has {len(model.inputs)} inputs"
            raise UnsupportedModel(msg)

        # Keras' own walk through the graph, which also runs the model; layers are replaced on the way
        walk = model._run_through_graph  # noqa: SLF001  there is no public one
        return self.keras.tree.flatten(walk(list(tensors), operation_fn=self._replaced))

    def _replaced(self, operation: Any) -> Callable[..., list[Tensor]]:
        return lambda *arguments, **options: self.step(operation, arguments, options)

    def step(self, operation: Any, arguments: Sequence[Any], options: dict[str, Any]) -> list[Tensor]:
        """Run one layer, operation or nested model, and say where it was if that fails."""
        where = f"layer {operation.name!r}"
        if isinstance(operation, self.keras.Model):
            _check_kind(self.keras, operation, where)
            return self.model(operation, self._tensors(arguments, options))
        try:
            if isinstance(operation, self.keras.Layer):
                result = apply_layer(self.context, operation, self._tensors(arguments, options))
            else:
                result = apply_operation(self.context, operation, [*arguments, *options.values()])
        except UnsupportedModel as error:
            named = type(error)(f"{where} ({type(operation).__name__}): {error}")
            raise named from error
        if not result.size:
            msg = f"{where} ({type(operation).__name__}) gives an empty tensor of shape {result.shape}"
            raise UnsupportedModel(msg)
        return [result]

    def _tensors(self, arguments: Sequence[Any], options: dict[str, Any]) -> list[Tensor]:
        """The tensors a layer is called with; whether it is training does not matter, as nothing is."""
        given = self.keras.tree.flatten((tuple(arguments), options))
        tensors = [item for item in given if isinstance(item, Tensor)]
        others = [item for item in given if not isinstance(item, (Tensor, bool)) and item is not None]
        if others:
            msg = f"it is called with a {type(others[0]).__name__}, which does not depend on the input; add constants with x + constant"
            raise UnsupportedOperator(msg)
        return tensors
