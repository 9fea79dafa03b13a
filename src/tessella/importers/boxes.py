"""Boxes in files: their two corners, or data that they shall hold."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from tessella.domain import Box
from tessella.errors import DomainError, FileError
from tessella.importers.door import reading
from tessella.importers.points import read_arrays

if TYPE_CHECKING:
    from tessella.network import Floats

_CORNERS = ("lower", "upper")


def read_box(path: str | os.PathLike[str], dim: int) -> tuple[Box, str]:
    r"""Read a box, and say in words what the file was read as.

    A file with arrays, or with columns, of the names ``lower`` and ``upper`` holds the corners.  So does one with two rows of as many numbers as there are
    inputs, or two columns of as many.  Any other number of rows is data, one example each: the box is the smallest one around them.

    Parameters
    ----------
    path
        A ``.csv``, ``.npy`` or ``.npz`` file.
    dim
        How many inputs there are.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "box.csv")
    ...     _ = file.write_text("0, 0, -1\n1, 1, 2.5\n")
    ...     read_box(file, 3)
    ...     _ = file.write_text("0, 0\n1, 2\n0.5, 3\n")
    ...     read_box(file, 2)
    (Box([0, 1] x [0, 1] x [-1, 2.5]), 'two rows: the lower and the upper corner')
    (Box([0, 1] x [0, 3]), '3 rows of data: the smallest box around them')
    """
    arrays = read_arrays(path)
    with reading(str(path), "a box"):
        if any(np.isnan(values).any() for values in arrays.values()):
            msg = "holds nan; corners are numbers, -inf or inf, and data has a number in every place"
            raise DomainError(msg)
        if set(_CORNERS) <= set(arrays):
            lower, upper = (_flat(arrays[name], name, dim) for name in _CORNERS)
            return Box(lower, upper), "the lower and the upper corner, by name"
        rows = _rows(arrays)
        if rows.shape == (2, 2) == (dim, dim):
            return _small(rows)
        if rows.shape == (2, dim):
            return Box(rows[0], rows[1]), "two rows: the lower and the upper corner"
        if rows.shape == (dim, 2):
            return Box(rows[:, 0], rows[:, 1]), "two columns: the lower and the upper end of each input"
        if rows.shape == (1, dim):
            msg = "holds one input, which is no box; a box around it has a radius, as in Box.around(x, 0.1) or --around x.npy --radius 0.1"
            raise FileError(msg)
        if rows.shape[1] == dim:
            return Box.from_data(rows), f"{len(rows):,} rows of data: the smallest box around them"
        msg = (
            f"holds {len(rows):,} row{'' if len(rows) == 1 else 's'} of {rows.shape[1]:,} numbers, but there are {dim:,} inputs; a box is two rows or two columns of so many numbers, "
            "or arrays lower and upper; data is a row per example"
        )
        raise FileError(msg)


def _flat(values: "Floats", name: str, dim: int) -> "Floats":
    if values.size not in {1, dim}:
        msg = f"{name} has {values.size:,} numbers, but there are {dim:,} inputs"
        raise FileError(msg)
    return np.broadcast_to(values.reshape(-1), (dim,))


def _rows(arrays: "Mapping[str, Floats]") -> "Floats":
    if len(arrays) != 1:
        msg = f"holds the arrays {', '.join(arrays)[:80]}; a box is the arrays lower and upper, or one array of two rows"
        raise FileError(msg)
    (values,) = arrays.values()
    return np.atleast_2d(values).reshape(len(np.atleast_2d(values)), -1)


def _small(rows: "Floats") -> tuple[Box, str]:
    """Two inputs: rows may be corners, or intervals."""
    found = list[tuple[Box, str]]()
    for ends, words in (
        (rows, "two rows: the lower and the upper corner"),
        (rows.T, "two columns: the lower and the upper end of each input"),
    ):
        if (ends[0] <= ends[1]).all():
            found.append((Box(ends[0], ends[1]), words))
    whole = [each for each in found if each[0].free_dim == 2] or found
    if not whole:
        msg = "holds two rows of two numbers, neither of which are corners or intervals: a lower end lies above an upper one"
        raise DomainError(msg)
    if len(whole) == 2 and whole[0][0] != whole[1][0]:
        msg = "holds two rows of two numbers, which may be corners or intervals; name them in a first line 'lower,upper', or as arrays of an .npz file"
        raise DomainError(msg)
    return whole[0]
