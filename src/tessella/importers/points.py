"""Points in files: rows of numbers in ``.csv``, ``.npy`` or ``.npz``, read without any pickle."""

import os
import warnings
from typing import Any, cast
from zipfile import ZipFile

import numpy as np

from tessella.errors import FileError
from tessella.importers.door import existing_file, reading
from tessella.network import Floats

_LARGEST = 2**28  # bytes; points are few


def read_points(path: str | os.PathLike[str]) -> Floats:
    r"""Read points, one per row.

    Parameters
    ----------
    path
        A ``.csv`` file of numbers; a ``.npy`` array; or an ``.npz`` file with one array, or one of the name ``points``.  Arrays of more than two
        dimensions, such as images, are read row by row.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "points.csv")
    ...     _ = file.write_text("0, 0.5\n1, 1\n")
    ...     read_points(file).tolist()
    [[0.0, 0.5], [1.0, 1.0]]
    """
    place = existing_file(path)
    if place.stat().st_size > _LARGEST:
        msg = f"{path}: is too large for a file of points"
        raise FileError(msg)
    suffix = place.suffix.lower()
    if suffix not in {".csv", ".npy", ".npz"}:
        msg = f"{path}: is of no known kind; points are read from .csv, .npy or .npz"
        raise FileError(msg)
    with reading(str(path), f"a {suffix} file of points"), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if suffix == ".npz" and sum(part.file_size for part in ZipFile(place).infolist()) > _LARGEST:
            msg = "would unpack to more than a file of points should hold"
            raise FileError(msg)
        if suffix == ".csv":
            points: Any = np.loadtxt(place, delimiter=",", ndmin=2, dtype=np.float64)
        else:
            points = _array(np.load(place, allow_pickle=False))
        if points.dtype.kind not in "biuf" or points.ndim < 2 or not points.size:
            msg = f"holds {points.dtype} of shape {points.shape}; one row of numbers per point was expected"
            raise FileError(msg)
        return cast("Floats", points.reshape(len(points), -1).astype(np.float64))


def _array(loaded: Any) -> Any:
    if isinstance(loaded, np.ndarray):
        return loaded
    with loaded:
        names = list(loaded.files)
        if "points" not in names and len(names) != 1:
            msg = f"holds the arrays {', '.join(names)[:80] or 'none'}; one of the name points was expected"
            raise FileError(msg)
        return loaded["points" if "points" in names else names[0]]


def read_array(path: str | os.PathLike[str]) -> Floats:
    """Read one array of numbers of any shape from a ``.npy`` file.

    Parameters
    ----------
    path
        The file.
    """
    place = existing_file(path)
    if place.suffix.lower() != ".npy" or place.stat().st_size > _LARGEST:
        msg = f"{path}: is no .npy file of at most {_LARGEST:,} bytes; an array is read from one"
        raise FileError(msg)
    with reading(str(path), "a .npy file"):
        array: Any = np.load(place, allow_pickle=False)
        if array.dtype.kind not in "biuf":
            msg = f"holds {array.dtype}; numbers were expected"
            raise FileError(msg)
        return cast("Floats", array)
