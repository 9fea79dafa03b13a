"""Networks in numpy's ``.npz`` files: every number as it is, sparse weights as sparse ones."""

import io
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tessella.exporters.plain import check_numbers
from tessella.files import writing
from tessella.layer import Layer

SPARSE_PARTS = ("data", "indices", "indptr", "shape")


def write_npz(layers: Sequence[Layer], path: str | os.PathLike[str]) -> None:
    """Write layers to an ``.npz`` file that `tessella.load` reads back as an equal network; an existing file is replaced."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for number, layer in enumerate(layers):
        weight = layer.weight
        if isinstance(weight, np.ndarray):
            arrays[f"W{number}"] = weight
        else:
            parts = (weight.data, weight.indices, weight.indptr, np.array(weight.shape, dtype=np.int64))
            arrays.update({f"W{number}_{part}": np.asarray(array) for part, array in zip(SPARSE_PARTS, parts, strict=True)})
        arrays[f"b{number}"] = layer.bias
        arrays[f"rectified{number}"] = layer.rectified
        if not layer.is_plain:
            arrays[f"slope{number}"] = layer.slope
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    buffer.seek(0)
    with np.load(buffer, allow_pickle=False) as found:
        for name, array in arrays.items():
            check_numbers(found[name], array, f"{os.fspath(path)}: {name}")
    with writing(path) as file:
        file.write(buffer.getbuffer())
