"""Networks in numpy's ``.npz`` files: arrays ``W0, b0, W1, b1, ...``, read without any pickle."""

import os
import re
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tessella.errors import FileError, NetworkError
from tessella.exporters.npz import SPARSE_PARTS
from tessella.importers.door import existing_file, reading
from tessella.network import Layer, Network, Source, Weight

LARGEST_CONTENT: Final = 4 * 2**30  # bytes, of all arrays together once they are unpacked

_KEY: Final = re.compile(r"(W|b|rectified|slope)(0|[1-9][0-9]{0,5})(?:_(data|indices|indptr|shape))?")
_EXPECTED: Final = (
    "expected W0, b0, W1, b1, ... (or from W1, b1 on), and rectified0, slope0, ... where layers differ from the usual ReLUs"
)
_ENCRYPTED: Final = 0x1  # the bit of a zip member's flags

_Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]


def read_npz(path: str | os.PathLike[str], *, relu_output: bool = False) -> Network:
    """Read a network from an ``.npz`` file.

    The file holds a weight ``W0`` (units, inputs) and, if there is one, a bias ``b0`` for each layer, numbered from 0 or 1 on.
    Each layer but the last has ReLUs, unless a mask such as ``rectified0`` says which of its units have; ``slope0`` makes
    them leaky, one number for all of the layer or one per unit.  A sparse weight is four arrays ``W0_data``, ``W0_indices``, ``W0_indptr`` and ``W0_shape``, in scipy's CSR format.

    Parameters
    ----------
    path
        The file.
    relu_output
        Whether to put a ReLU on every output, as in the paper's counts.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "net.npz")
    >>> np.savez(path, W0=np.eye(2), b0=np.zeros(2), W1=np.ones((1, 2)))
    >>> read_npz(path)
    Network(2-2-1, 2 ReLUs, 9 parameters)
    >>> folder.cleanup()
    """
    place = existing_file(path)
    with reading(str(path), "an .npz file"), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # what they would say about damaged files is said by an error
        arrays = _load(place)
        network = _network(arrays, _numbers(arrays))
        network = replace(network, source=Source(kind="npz", name=place.name, input_shape=(network.input_dim,)))
        return network.with_relu_output() if relu_output else network


def write_npz(network: Network, path: str | os.PathLike[str]) -> None:
    """Write a network to an ``.npz`` file that `read_npz` reads back as an equal one; an existing file is replaced."""
    network.to_npz(path)


def _load(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Every array of the file, by name, once their sizes are known to be sensible."""
    with path.open("rb") as file:
        start = file.read(6)
        if start == b"\x93NUMPY":
            msg = "is a single array (.npy); write weights and biases together with numpy.savez(path, W0=..., b0=..., ...)"
            raise FileError(msg)
        if not zipfile.is_zipfile(file):
            what = (
                "is cut short: its end is missing"
                if start.startswith(b"PK")
                else f"is not an .npz file: it starts with {start!r}"
            )
            msg = f"{what}; write one with numpy.savez(path, W0=..., b0=...)"
            raise FileError(msg)
        with zipfile.ZipFile(file) as archive:
            members = _members(archive)
            return {name: _array(archive, member, name) for name, member in members.items()}


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    members = archive.infolist()
    names = [member.filename for member in members]
    foreign = [name for name in names if not name.endswith(".npy")]
    if foreign:
        msg = f"is a zip archive but not of arrays: it holds {_listed(foreign)}; {_EXPECTED}"
        raise FileError(msg)
    keys = [name.removesuffix(".npy") for name in names]
    if len(set(keys)) < len(keys) or not all(_known(key) for key in keys) or not keys:
        msg = f"holds the arrays {_listed(keys)}; {_EXPECTED}"
        raise FileError(msg)
    total = sum(member.file_size for member in members)
    if total > LARGEST_CONTENT:
        msg = f"would unpack to {total / 2**30:,.1f} GiB; at most {LARGEST_CONTENT >> 30} GiB are read"
        raise FileError(msg)
    for member in members:
        if member.flag_bits & _ENCRYPTED or member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            msg = (
                f"{member.filename} is encrypted or packed in an unusual way; write the file with numpy.savez or savez_compressed"
            )
            raise FileError(msg)
    return dict(zip(keys, members, strict=True))


def _known(key: str) -> bool:
    found = _KEY.fullmatch(key)
    return found is not None and (found[3] is None or found[1] == "W")


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> npt.NDArray[Any]:
    with archive.open(member) as file:
        try:
            array = np.lib.format.read_array(file, allow_pickle=False)
        except ValueError as error:
            if "allow_pickle" in str(error):
                msg = f"{name} is an array of Python objects (a pickle), which is never loaded; store plain arrays of numbers"
                raise FileError(msg) from error
            raise
        if file.read(1):  # reading to the end also compares the checksum
            msg = f"{name} has more data than its header tells; is the file complete?"
            raise FileError(msg)
    return np.asarray(array)


def _listed(names: Iterable[str]) -> str:
    shown = [repr(name[:40]) for name in names]
    if not shown:
        return "(none at all)"
    return ", ".join(shown[:6]) + (f" and {len(shown) - 6} more" if len(shown) > 6 else "")


def _numbers(arrays: _Arrays) -> list[int]:
    """The layers' numbers: consecutive, from 0 or 1 on."""
    found = {key: _KEY.fullmatch(key) for key in arrays}
    weights = sorted({int(match[2]) for match in found.values() if match and match[1] == "W"})
    if not weights or weights[0] > 1 or weights != list(range(weights[0], weights[0] + len(weights))):
        missing = next(number for number in range(len(weights) + 2) if number not in weights and (number or not weights))
        msg = f"holds the arrays {_listed(arrays)}, but no weight W{missing}; number the layers one by one, from 0 or 1 on"
        raise NetworkError(msg)
    lonely = [key for key, match in found.items() if match and int(match[2]) not in weights]
    if lonely:
        msg = f"holds {_listed(lonely)} without a weight of that number; expected weights for every bias and mask"
        raise NetworkError(msg)
    return weights


def _network(arrays: _Arrays, numbers: list[int]) -> Network:
    layers: list[Layer] = []
    for number in numbers:
        weight = _weight(arrays, f"W{number}")
        bias = arrays.get(f"b{number}")
        rectified = arrays.get(f"rectified{number}", np.array(number < numbers[-1]))
        if bias is None:
            bias = np.zeros(tuple(weight.shape or (0,))[:1])
        try:
            layers.append(Layer(weight, bias, rectified, arrays.get(f"slope{number}", np.zeros(()))))
        except NetworkError as error:
            msg = f"the layer of W{number}: {error}"
            raise NetworkError(msg) from error
    return Network(tuple(layers))


def _weight(arrays: _Arrays, key: str) -> Weight:
    parts = [arrays.get(f"{key}_{part}") for part in SPARSE_PARTS]
    data, indices, indptr, shape = parts
    if key in arrays and all(part is None for part in parts):
        return arrays[key]
    if key in arrays or data is None or indices is None or indptr is None or shape is None:
        held = _listed(name for name in arrays if name == key or name.startswith(f"{key}_"))
        msg = f"holds {held}; a weight is either {key}, or {', '.join(f'{key}_{part}' for part in SPARSE_PARTS)} together"
        raise NetworkError(msg)
    for part, array in ((f"{key}_indices", indices), (f"{key}_indptr", indptr), (f"{key}_shape", shape)):
        if array.dtype.kind not in "iu" or array.ndim != 1:
            msg = f"{part} has type {array.dtype} and shape {array.shape}; expected a list of whole numbers"
            raise NetworkError(msg)
    if shape.size != 2 or data.ndim != 1 or data.dtype.kind not in "biuf":
        msg = f"{key}_data holds {data.dtype}, {key}_shape {shape.size} numbers; expected a list of real numbers, and 2 numbers"
        raise NetworkError(msg)
    return _csr(key, data, indices.astype(np.int64), indptr.astype(np.int64), (int(shape[0]), int(shape[1])))


def _csr(
    key: str,
    data: npt.NDArray[Any],
    indices: npt.NDArray[np.int64],
    indptr: npt.NDArray[np.int64],
    shape: tuple[int, int],
) -> Weight:
    """A sparse weight, after a look at every index: scipy's kernels trust them."""
    from scipy.sparse import csr_array  # noqa: PLC0415  heavy, and only sparse weights need it

    units, inputs = shape
    sound = (
        units >= 0
        and indptr.size == units + 1
        and indptr[0] == 0
        and indptr[-1] == indices.size == data.size
        and bool((np.diff(indptr) >= 0).all())
        and bool(((indices >= 0) & (indices < inputs)).all())
    )
    if not sound:
        msg = f"{key}_indices and {key}_indptr make no sparse array of shape {shape}; write them as scipy's csr_array has them"
        raise NetworkError(msg)
    return csr_array((data.astype(np.float64), indices, indptr), shape=shape)
