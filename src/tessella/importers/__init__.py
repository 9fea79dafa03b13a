"""From files and objects to `Network` and `Domain`; every format's own package is imported when it is needed."""

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from tessella.domain import Domain
from tessella.errors import DomainError, FileError, FileMissing, OptionError, UnsupportedModel
from tessella.importers.door import Wishes, checked_shape, existing_file, reading, refuse_pickle
from tessella.network import Network

_PICKLED = (".pt", ".pth", ".ckpt", ".bin", ".pkl", ".pickle", ".joblib")
_LEGACY_KERAS = (".h5", ".hdf5")
_OBJECTS = (
    "give a path, a PyTorch module, a Keras model, an ONNX ModelProto, scikit-learn's MLPClassifier or MLPRegressor, a state_dict, "
    "or a list [(W, b), ...]"
)
_PROPERTY = (".vnnlib", ".vnnlib.gz")


def load(
    source: object,
    *,
    relu_output: bool = False,
    input_shape: Sequence[int] | None = None,
    output: str | None = None,
    inputs: Mapping[str, npt.ArrayLike] | None = None,
) -> Network:
    """Read a network from a file or an object.

    The result is compared with the source's own forward pass at seeded points; ``network.source`` holds the
    largest difference found.

    Parameters
    ----------
    source
        A path (``.onnx``, ``.onnx.gz``, ``.npz``, ``.pt2``, ``.keras``, ``.safetensors``), a PyTorch module or exported program, a Keras model, an
        ONNX ModelProto, scikit-learn's MLPClassifier or MLPRegressor, parameters of a plain MLP (a ``state_dict``, those of Flax or Haiku, Equinox' MLP,
        ``(coefs_, intercepts_)``), a list ``[(W, b), ...]``, or a `Network`.
    relu_output
        Whether to count a ReLU on every output, as the paper does.
    input_shape
        Shape of one input without its batch axis; needed only where the source does not tell.
    output
        For ONNX models, the name of the output to keep, or of a tensor inside at which to end; all outputs, one after the other, by default.
    inputs
        For ONNX models with several inputs, arrays for those that do not vary, by name; the others are read one after the other.

    Examples
    --------
    >>> import tessella
    >>> tessella.load([([[1.0], [-1.0]], [0.0, 0.5]), ([[1.0, 1.0]], [0.0])])
    Network(1-2-1, 2 ReLUs, 7 parameters)
    """
    shape = None if input_shape is None else checked_shape(input_shape)
    is_path = isinstance(source, (str, os.PathLike))
    wishes = Wishes(shape, output, inputs)
    network = _load_file(source, wishes) if is_path else _load_object(source, wishes)
    if shape is not None and math.prod(shape) != network.input_dim:
        msg = f"the input shape {', '.join(map(str, shape))} is of {math.prod(shape):,} numbers, but the network reads {network.input_dim:,}"
        raise OptionError(msg)
    return network.with_relu_output() if relu_output else network


def load_domains(path: str | os.PathLike[str]) -> tuple[Domain, ...]:
    """Read the inputs of a VNN-LIB property: a box, or a polytope, for each disjunct over the inputs.

    Parameters
    ----------
    path
        A ``.vnnlib`` file, or a gzipped one.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import tessella
    >>> text = "(declare-const X_0 Real) (assert (or (and (>= X_0 0) (<= X_0 1)) (and (>= X_0 2) (<= X_0 3))))"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = Path(folder, "two.vnnlib").write_text(text)
    ...     tessella.load_domains(Path(folder, "two.vnnlib"))
    (Box([0, 1]), Box([2, 3]))
    """
    from tessella.importers.vnnlib import read_domains  # noqa: PLC0415

    return read_domains(path)


def load_domain(path: str | os.PathLike[str]) -> Domain:
    """Read the inputs of a VNN-LIB property that has just one box or polytope; see `load_domains`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import tessella
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = Path(folder, "one.vnnlib").write_text("(declare-const X_0 Real) (assert (>= X_0 0)) (assert (<= X_0 1))")
    ...     tessella.load_domain(Path(folder, "one.vnnlib"))
    Box([0, 1])
    """
    domain, *others = load_domains(path)
    if others:
        msg = f"{path}: the property has {1 + len(others)} input boxes; load_domains gives them all"
        raise DomainError(msg)
    return domain


def _load_file(path: str | os.PathLike[str], wishes: Wishes) -> Network:
    name = Path(path).name.lower()
    if not os.fspath(path):
        msg = "no file name was given"
        raise FileMissing(msg)
    if name.endswith((".onnx", ".onnx.gz")):
        from tessella.importers.onnx import read_onnx  # noqa: PLC0415

        return read_onnx(path, wishes)
    wishes.refuse(f"{path}: ", "files")
    shape = wishes.input_shape
    if name.endswith(".npz"):
        from tessella.importers.arrays import read_npz  # noqa: PLC0415

        return read_npz(path)
    if name.endswith(".pt2"):
        from tessella.importers.torch import read_pt2  # noqa: PLC0415

        return read_pt2(path)
    if name.endswith(".keras"):
        from tessella.importers.keras import read_keras  # noqa: PLC0415

        return read_keras(path, input_shape=shape)
    if name.endswith(".safetensors"):
        from tessella.importers.safetensors import read_safetensors  # noqa: PLC0415

        return read_safetensors(path)
    existing_file(path)
    if name.endswith(_PICKLED):
        refuse_pickle(path)
    msg = f"{path}: {_advice(name)}"
    raise FileError(msg)


def _advice(name: str) -> str:
    if name.endswith(_LEGACY_KERAS):
        return "is a legacy Keras file; load it in Keras and save it again as .keras, or export to ONNX"
    if name.endswith(_PROPERTY):
        return "is a property, not a model; tessella.load_domain reads its input box (--property on the command line)"
    return "is of no known kind; a network is read from .onnx, .onnx.gz, .npz, .pt2, .keras or .safetensors"


def _load_object(source: Any, wishes: Wishes) -> Network:
    if isinstance(source, Network):
        return source
    if _is_a(source, "onnx", "ModelProto"):
        from tessella.importers.onnx import from_model as from_onnx  # noqa: PLC0415

        return from_onnx(source, wishes)
    wishes.refuse("", "models")
    shape = wishes.input_shape
    # Keras layers are torch modules too where torch is the backend, so Keras is asked first
    readers: list[tuple[str, str, Callable[[], Network]]] = [
        ("keras", "Model", lambda: _keras_model(source, shape)),
        ("torch.nn", "Module", lambda: _torch_module(source, shape)),
        ("torch.export", "ExportedProgram", lambda: _torch_program(source)),
    ]
    for package, name, read in readers:
        if _is_a(source, package, name):
            return read()
    return _of_weights(source)


def _of_weights(source: Any) -> Network:
    """A network from arrays, whoever holds them."""
    from tessella.importers import estimators, parameters  # noqa: PLC0415

    if parameters.is_parameters(source):
        with reading(type(source).__name__, "the parameters of an MLP", UnsupportedModel):
            return parameters.from_parameters(source)
    if isinstance(source, (list, tuple)):
        if parameters.is_lists(source):
            return parameters.from_lists(*source)
        return Network.from_arrays(source)  # pyright: ignore[reportUnknownArgumentType]  validated there
    for fits, read in ((estimators.is_fitted_like, estimators.from_estimator), (estimators.is_equinox, estimators.from_equinox)):
        if fits(source):
            with reading(type(source).__name__, "a multi-layer perceptron", UnsupportedModel):
                return read(source)
    hint = _OBJECTS
    if isinstance(source, Mapping):
        parameters.refuse_mapping(source)  # pyright: ignore[reportUnknownArgumentType]  of anything
    if hasattr(source, "named_steps"):
        hint = "pass its last step, which reads what those before it give: tessella.load(pipeline[-1])"
    elif hasattr(source, "best_estimator_"):
        hint = "pass the estimator that it found: tessella.load(search.best_estimator_)"
    msg = f"an object of type {type(source).__name__} is no network; {hint}"
    raise UnsupportedModel(msg)


def _is_a(source: object, package: str, name: str) -> bool:
    """Whether an object is of a class, without importing the class's package to find out."""
    kind = getattr(sys.modules.get(package), name, None)
    return isinstance(kind, type) and isinstance(source, kind)


def _keras_model(model: Any, shape: tuple[int, ...] | None) -> Network:
    from tessella.importers.keras import from_model  # noqa: PLC0415

    return from_model(model, input_shape=shape)


def _torch_module(module: Any, shape: tuple[int, ...] | None) -> Network:
    from tessella.importers.torch import from_module  # noqa: PLC0415

    return from_module(module, input_shape=shape)


def _torch_program(program: Any) -> Network:
    from tessella.importers.torch import from_exported  # noqa: PLC0415

    return from_exported(program, name="ExportedProgram")
