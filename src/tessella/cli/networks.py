"""Files that networks are written to, by the ends of their names."""

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from tessella.cli.meanings import note
from tessella.errors import OptionError
from tessella.files import writing
from tessella.packages import keras_package, keras_quiet, torch_package

if TYPE_CHECKING:
    from tessella.network import Network


def _onnx(network: "Network", path: str, dtype: str) -> None:
    network.to_onnx(path, dtype=dtype)


def _npz(network: "Network", path: str, _dtype: str) -> None:
    network.to_npz(path)


def _pt2(network: "Network", path: str, dtype: str) -> None:
    torch = torch_package("writing .pt2 files")
    module, shape = network.to_torch(dtype=dtype), network.source.input_shape if network.source else ()
    shape = shape if int(np.prod(shape)) == network.input_dim and shape else (network.input_dim,)
    batch = {0: torch.export.Dim("batch")}
    program = torch.export.export(module, (torch.zeros(2, *shape, dtype=getattr(torch, dtype)),), dynamic_shapes=(batch,))
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    _put(path, buffer.getvalue())


def _keras(network: "Network", path: str, dtype: str) -> None:
    model: Any = network.to_keras(dtype=dtype)
    with TemporaryDirectory() as folder, keras_quiet():
        place = Path(folder, "model.keras")
        model.save(place)
        content = place.read_bytes()
    _put(path, content)


def _put(path: str, content: bytes) -> None:
    with writing(path) as file:
        file.write(content)


_WRITERS: Mapping[str, Callable[["Network", str, str], None]] = {".onnx": _onnx, ".npz": _npz, ".pt2": _pt2, ".keras": _keras}
FORMATS = tuple(_WRITERS)


def is_network(path: str) -> bool:
    """Whether the name is one of a network's file."""
    return path.lower().endswith(FORMATS)


def check_format(path: str, *, float32: bool) -> None:
    """Say before the work is done that a package is missing, or that a format keeps double precision."""
    if path.lower().endswith(".pt2"):
        torch_package("writing .pt2 files")
    if path.lower().endswith(".keras"):
        keras_package("writing .keras files")
    if float32 and path.lower().endswith(".npz"):
        msg = f"{path}: .npz files keep double precision; leave out --float32, or write .onnx, .pt2 or .keras"
        raise OptionError(msg)


def write_network(network: "Network", path: str, *, float32: bool) -> None:
    """Write a network; the file is whole or not there.

    Parameters
    ----------
    network
        The network.
    path
        The file; the end of its name says which format.
    float32
        Whether weights are rounded to single precision.  If they are not, files other than .npz have it all the same where it holds every number as it is.
    """
    dtype = "float32" if float32 or _is_single(network) else "float64"
    next(write for end, write in _WRITERS.items() if path.lower().endswith(end))(network, path, dtype)
    vanished = _vanishing(network) if float32 else 0
    if vanished:
        what = "1 weight or bias is" if vanished == 1 else f"{vanished:,} weights and biases are"
        note(f"{what} too small for single precision (below 1e-45), and 0 in the file")


def _is_single(network: "Network") -> bool:
    """Whether single precision holds every number of a network as it is."""
    with np.errstate(over="ignore", under="ignore"):
        parts = [part for layer in network.layers for part in (_stored(layer.weight), layer.bias, layer.slope)]
        return all(bool((part.astype(np.float32) == part).all()) for part in parts)


def _vanishing(network: "Network") -> int:
    """How many numbers are 0 in single precision, and not in double."""
    with np.errstate(over="ignore", under="ignore"):
        parts = [part for layer in network.layers for part in (_stored(layer.weight), layer.bias, layer.slope)]
        return sum(int(((part != 0.0) & (part.astype(np.float32) == 0.0)).sum()) for part in parts)


def _stored(weight: Any) -> Any:
    return weight if isinstance(weight, np.ndarray) else weight.data
