"""Keras 3 models: their layers run on traced tensors, their own forward pass checks the outcome."""

import os
import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tessella.errors import (
    FileError,
    OptionError,
    TessellaError,
    UnknownShape,
    UnsupportedModel,
    UnsupportedOperator,
)
from tessella.importers.check import checked, naming_what_is_not_finite
from tessella.importers.door import advised, checked_shape, existing_file, reading
from tessella.importers.keras_archive import inspect
from tessella.importers.keras_calls import Context, apply_layer
from tessella.importers.keras_ends import after_end, without_end
from tessella.importers.keras_operations import apply_operation
from tessella.importers.trace import Ended, Tensor, Trace
from tessella.network import Floats, Network, Source
from tessella.packages import keras_package, keras_quiet

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
    keras = keras_package()
    with reading(name, "a Keras model"), keras_quiet():
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
    keras = keras_package()
    name = str(getattr(model, "name", type(model).__name__))
    with reading(name, "a Keras model"), keras_quiet():
        return _read(keras, model, name, input_shape)


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
    shapes = _shapes(model, input_shape)
    shape = shapes[0] if len(shapes) == 1 else (sum(map(prod, shapes)),)
    trace = Trace((1, *shape))
    reader = _Reader(Context(keras, trace))
    outputs = reader.model(model, [trace.input.take(part) for part in _parts(trace.input.indices(), shapes)])
    if len(outputs) != 1:
        msg = f"has {len(outputs)} outputs; one is expected: choose it with keras.Model(model.inputs, model.outputs[0])"
        raise UnsupportedModel(msg)
    with naming_what_is_not_finite(lambda: ((weight.path, keras.ops.convert_to_numpy(weight)) for weight in model.weights)):
        network = trace.network(outputs[0])
    ended = isinstance(outputs[0], Ended)

    def forward(point: Floats) -> Floats:
        parts = _parts(point, shapes)
        if ended:
            values = [
                keras.ops.convert_to_tensor(part, str(entry.dtype)) for part, entry in zip(parts, model.inputs, strict=True)
            ]
            (output,) = _Runner(keras, reader.replaced).model(model, values)
        else:
            given = parts[0] if len(parts) == 1 else keras.tree.pack_sequence_as(model.input, parts)
            (output,) = keras.tree.flatten(model(given, training=False))
        return np.asarray(keras.ops.convert_to_numpy(output), dtype=np.float64)

    return checked(network, Source("keras", name, input_shape=shape), forward)


def _parts(whole: npt.NDArray[Any], shapes: Sequence[tuple[int, ...]]) -> list[npt.NDArray[Any]]:
    """The inputs, with a batch axis of one, from all their numbers in a row."""
    pieces = np.split(whole.ravel(), np.cumsum([prod(shape) for shape in shapes])[:-1])
    return [piece.reshape(1, *shape) for piece, shape in zip(pieces, shapes, strict=True)]


def _check_kind(keras: Any, model: Any, what: str) -> None:
    """Only models whose layers are known to Keras: functional and Sequential ones that keep Keras' own call."""
    known = isinstance(model, (keras.Function, keras.Sequential))
    if not known or not getattr(type(model).call, "__module__", "").startswith("keras."):
        msg = (
            f"{what} is a {type(model).__name__} with a call method of its own, whose layers cannot be followed; "
            "rebuild it as a functional model, keras.Model(inputs, outputs), or export it to ONNX"
        )
        raise UnsupportedModel(msg)


def _shapes(model: Any, input_shape: Sequence[int] | None) -> list[tuple[int, ...]]:
    """The shapes of the inputs: of the only one from the model and from the caller, where they agree; several are known by the model alone."""
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
        return [asked]
    for entry in inputs:
        if str(entry.dtype) not in _REAL_TYPES:
            msg = f"input {entry.name!r} is of type {entry.dtype}; rebuild the model with an input of float32"
            raise UnsupportedModel(msg)
    if len(inputs) > 1:
        shapes = [tuple(entry.shape[1:]) for entry in inputs]
        if any(None in shape for shape in shapes):
            names = ", ".join(f"{entry.name!r} {shape}" for entry, shape in zip(inputs[:5], shapes, strict=False))
            msg = f"has {len(inputs)} inputs that leave sizes open ({names}); rebuild it with keras.Input of fixed shapes"
            raise UnsupportedModel(msg)
        return shapes
    known = tuple(inputs[0].shape[1:])
    if asked is None:
        if None in known:
            msg = f"input {inputs[0].name!r} has the shape {known}, which leaves sizes open; give input_shape, as in tessella.load(model, input_shape=(28, 28, 1)) (--input-shape 28,28,1 in a shell)"
            raise UnknownShape(msg)
        return [tuple(int(size) for size in known)]
    if len(asked) != len(known) or any(size not in {None, given} for size, given in zip(known, asked, strict=True)):
        msg = f"input_shape is {asked}, but the model's input {inputs[0].name!r} has the shape {known} (without its batch axis)"
        raise OptionError(msg)
    return [asked]


def _inputs(model: Any) -> list[Any]:
    try:
        return list(model.inputs)
    except AttributeError:  # a Sequential model that is not built
        return []


class _Walk:
    """The way through a graph of layers, nested models included."""

    def __init__(self, keras: Any) -> None:
        self.keras = keras

    def model(self, model: Any, tensors: Sequence[Any]) -> list[Any]:
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

    def _replaced(self, operation: Any) -> Callable[..., list[Any]]:
        return lambda *arguments, **options: self.step(operation, arguments, options)

    def step(self, operation: Any, arguments: Sequence[Any], options: dict[str, Any]) -> list[Any]:
        """Run one layer, operation or nested model."""
        return self.keras.tree.flatten(operation(*arguments, **options))


class _Runner(_Walk):
    """The model itself, without what is left off at its end."""

    def __init__(self, keras: Any, replaced: dict[int, Any]) -> None:
        super().__init__(keras)
        self.replaced = replaced

    def step(self, operation: Any, arguments: Sequence[Any], options: dict[str, Any]) -> list[Any]:
        """Run one layer, operation or nested model, in inference mode."""
        if isinstance(operation, self.keras.Model):
            return self.model(
                operation, [item for item in self.keras.tree.flatten(tuple(arguments)) if not isinstance(item, bool)]
            )
        options = {name: False if name == "training" else value for name, value in options.items()}
        return super().step(self.replaced.get(id(operation), operation), arguments, options)


class _Reader(_Walk):
    """The model on traced tensors."""

    def __init__(self, context: Context) -> None:
        super().__init__(context.keras)
        self.context = context
        self.replaced: dict[int, Any] = {}  # layers and operations without what is left off, by identity

    def step(self, operation: Any, arguments: Sequence[Any], options: dict[str, Any]) -> list[Any]:
        """Run one layer, operation or nested model, and say where it was if that fails."""
        where = f"layer {operation.name!r}"
        if isinstance(operation, self.keras.Model):
            _check_kind(self.keras, operation, where)
            return self.model(operation, self._tensors(arguments, options))
        try:
            result = self._result(operation, arguments, options)
        except UnsupportedModel as error:
            named = type(error)(f"{where} ({type(operation).__name__}): {advised(str(error))}")
            raise named from error
        tensor = result.tensor if isinstance(result, Ended) else result
        if not tensor.size:
            msg = f"{where} ({type(operation).__name__}) gives an empty tensor of shape {tensor.shape}"
            raise UnsupportedModel(msg)
        return [result]

    def _result(self, operation: Any, arguments: Sequence[Any], options: dict[str, Any]) -> Any:
        given = self.keras.tree.flatten((tuple(arguments), options))
        before = next((item for item in given if isinstance(item, Ended)), None)
        if before is not None:
            alone = all(item is before for item in given if isinstance(item, (Tensor, Ended)))
            result = after_end(self.context, operation, before, alone=alone) or before.refuse()
        elif isinstance(operation, self.keras.Layer):
            result = apply_layer(self.context, operation, self._tensors(arguments, options))
        else:
            result = apply_operation(self.context, operation, [*arguments, *options.values()])
        if isinstance(result, Ended) and (before is None or len(result.left_off) > len(before.left_off)):
            self.replaced[id(operation)] = without_end(self.context, operation)
        return result

    def _tensors(self, arguments: Sequence[Any], options: dict[str, Any]) -> list[Any]:
        """The tensors a layer is called with; whether it is training does not matter, as nothing is."""
        given = self.keras.tree.flatten((tuple(arguments), options))
        tensors = [item for item in given if isinstance(item, (Tensor, Ended))]
        others = [item for item in given if not isinstance(item, (Tensor, Ended, bool)) and item is not None]
        if others:
            msg = f"it is called with a {type(others[0]).__name__}, which does not depend on the input; add constants with x + constant"
            raise UnsupportedOperator(msg)
        return tensors
