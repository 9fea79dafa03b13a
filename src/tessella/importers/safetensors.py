"""``.safetensors`` files: a length, a header in JSON, and plain numbers; nothing in them can run."""

import json
import os
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeGuard, cast

import numpy as np
import numpy.typing as npt

from tessella.errors import FileError
from tessella.importers.door import existing_file, reading
from tessella.importers.parameters import from_parameters
from tessella.network import Network

LARGEST_HEADER: Final = 100_000_000  # bytes, as the format's own reader has it
LARGEST_FILE: Final = 4 * 2**30  # bytes
_LENGTH: Final = 8  # bytes of the header's length
_TYPES: Final = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "?",
}
_HALF: Final = "BF16"
_AGAIN: Final = "write it again with safetensors.torch.save_file(module.state_dict(), path)"


def read_safetensors(path: str | os.PathLike[str]) -> Network:
    """Read the parameters of a plain MLP from a ``.safetensors`` file.

    The layers are put in the order of the numbers in their names, because such files do not keep the order of a module.

    Parameters
    ----------
    path
        The file.
    """
    place = existing_file(path)
    with reading(place.name, "a .safetensors file"):
        return from_parameters(_tensors(place), place.name, ordered=False)


def _tensors(path: Path) -> dict[str, npt.NDArray[Any]]:
    size = path.stat().st_size
    if size > LARGEST_FILE:
        msg = f"has {size:,} bytes; at most {LARGEST_FILE:,} are read"
        raise FileError(msg)
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH), "little")
        if not 2 <= length <= min(size - _LENGTH, LARGEST_HEADER):
            msg = f"is no .safetensors file, or is cut short: its header would have {length:,} of {size:,} bytes; {_AGAIN}"
            raise FileError(msg)
        try:
            header = json.loads(file.read(length))
        except (ValueError, RecursionError) as error:
            msg = f"is no .safetensors file: its header is no JSON; {_AGAIN}"
            raise FileError(msg) from error
        if not isinstance(header, dict):
            msg = f"is no .safetensors file: its header is no JSON object; {_AGAIN}"
            raise FileError(msg)
        entries = {str(name): entry for name, entry in header.items() if name != "__metadata__"}
        room = size - _LENGTH - length
        spans = {name: _span(name, entry, room) for name, entry in entries.items()}
        if sum(end - begin for begin, end in spans.values()) > room:
            msg = f"has tensors that share their bytes; {_AGAIN}"
            raise FileError(msg)
        return {name: _array(file, _LENGTH + length, entry, spans[name]) for name, entry in entries.items()}


def _span(name: str, entry: Any, room: int) -> tuple[int, int]:
    """Where a tensor's bytes are, once its entry is known to be sensible."""
    title = f"the tensor {name!r:.60}"
    if not isinstance(entry, dict):
        msg = f"{title} is not described; {_AGAIN}"
        raise FileError(msg)
    described = cast("dict[str, Any]", entry)
    kind, shape, offsets = described.get("dtype"), described.get("shape"), described.get("data_offsets")
    if kind != _HALF and kind not in _TYPES:
        msg = f"{title} has numbers of type {kind!r:.20}; save it as float32"
        raise FileError(msg)
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        msg = f"{title} has the shape {shape!r:.60} and the place {offsets!r:.60}; {_AGAIN}"
        raise FileError(msg)
    begin, end = offsets
    itemsize = 2 if kind == _HALF else np.dtype(_TYPES[kind]).itemsize
    if not begin <= end <= room or prod(shape) * itemsize != end - begin:
        msg = f"{title} of shape {tuple(shape)!s:.60} lies at {begin:,} to {end:,} of {room:,} bytes; {_AGAIN}"
        raise FileError(msg)
    return begin, end


def _are_sizes(values: Any) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(value) is int and 0 <= value < 2**63 for value in cast("list[Any]", values))


def _array(file: BinaryIO, start: int, entry: dict[str, Any], span: tuple[int, int]) -> npt.NDArray[Any]:
    file.seek(start + span[0])
    raw = file.read(span[1] - span[0])
    if entry["dtype"] == _HALF:  # the upper half of single precision
        return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32).reshape(entry["shape"])
    return np.frombuffer(raw, _TYPES[entry["dtype"]]).reshape(entry["shape"])
