"""Points in files: rows of numbers in ``.csv``, ``.npy`` or ``.npz``, read without any pickle."""

import os
import warnings
from pathlib import Path
from typing import Any, cast
from zipfile import ZipFile

import numpy as np

from tessella.errors import FileError
from tessella.importers.door import existing_file, reading
from tessella.network import Floats

ARRAYS = (".csv", ".npy", ".npz")

_LARGEST = 2**28  # bytes; points are few
_NAMES = 1_000_000  # characters of a first line that may hold names
_BLANK = 100  # lines before it


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
    ...     file = pathlib.Path(folder, "points.npy")
    ...     np.save(file, [[0, 0.5], [1, 1]])
    ...     read_points(file).tolist()
    [[0.0, 0.5], [1.0, 1.0]]
    """
    arrays = read_arrays(path)
    with reading(str(path), "a file of points"):
        if "points" not in arrays and len(arrays) != 1:
            msg = f"holds the arrays {', '.join(arrays)[:80] or 'none'}; one of the name points was expected"
            raise FileError(msg)
        points = arrays["points"] if "points" in arrays else next(iter(arrays.values()))
        if points.ndim < 2:
            msg = f"holds {points.dtype} of shape {points.shape}; one row of numbers per point was expected"
            raise FileError(msg)
        return points.reshape(len(points), -1)


def read_arrays(path: str | os.PathLike[str]) -> dict[str, Floats]:
    """Read arrays of numbers by name; that of a ``.csv`` or ``.npy`` file has none, unless a first line says ``lower,upper``.

    A first line without any number is taken for the names of columns.

    Parameters
    ----------
    path
        A ``.csv``, ``.npy`` or ``.npz`` file.
    """
    place = existing_file(path)
    if place.stat().st_size > _LARGEST:
        msg = f"{path}: is too large for a file of points"
        raise FileError(msg)
    suffix = place.suffix.lower()
    if suffix not in ARRAYS:
        msg = f"{path}: is of no known kind; points are read from .csv, .npy or .npz"
        raise FileError(msg)
    with reading(str(path), f"a {suffix} file of points"), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if suffix == ".npz" and sum(part.file_size for part in ZipFile(place).infolist()) > _LARGEST:
            msg = "would unpack to more than a file of points should hold"
            raise FileError(msg)
        arrays = _table(place) if suffix == ".csv" else _arrays(place)
        for values in arrays.values():
            if values.dtype.kind not in "biuf" or not values.size:
                msg = f"holds {values.dtype} of shape {values.shape}; one row of numbers per point was expected"
                raise FileError(msg)
        return {name: cast("Floats", values.astype(np.float64)) for name, values in arrays.items()}


def _table(place: Path) -> dict[str, Any]:
    """The rows of a table, after a line of names if there is one; its columns, if they are named lower and upper."""
    above, names = 0, [""]
    with place.open(encoding="utf-8-sig") as file:
        for above in range(_BLANK):  # noqa: B007  how many lines are above the first that is not blank
            line = file.readline(_NAMES)
            if line.strip() or not line:
                names = [name.strip().strip('"').lower() for name in line.split(",")]
                break
    named = not any(_is_number(name) for name in names) and not names[0].startswith("#")
    try:
        rows = np.loadtxt(place, delimiter=",", ndmin=2, dtype=np.float64, skiprows=(above + 1) * named, encoding="utf-8-sig")
    except ValueError as error:
        where = f"below a line of names: {','.join(names):.60}" if named else "from its first line on"
        msg = f"holds something else than numbers with commas between them, {where} ({str(error).partition('; use ')[0]:.120})"
        raise FileError(msg) from error
    if not rows.size:
        msg = f"holds no numbers, only {','.join(names)!r:.60}"
        raise FileError(msg)
    return dict(zip(names, rows.T, strict=True)) if sorted(names) == ["lower", "upper"] else {"": rows}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _arrays(place: Path) -> dict[str, Any]:
    try:
        loaded: Any = np.load(place, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"": loaded}
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except ValueError as error:
        if "allow_pickle" in str(error):
            msg = "holds Python objects or a pickle, which are never loaded; save an array of numbers with numpy.save"
            raise FileError(msg) from error
        raise


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
