"""A mixed-integer linear problem as a value, and the files that solvers read it from."""

import gzip
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tessella.errors import OptionError
from tessella.files import writing
from tessella.layer import frozen_sparse
from tessella.network import Floats, Mask, Sparse

_NAME = re.compile(r"(?![eE]\d*$)[A-Za-z][A-Za-z0-9_]{0,99}")  # LP files read e, e1, ... as exponents
_RESERVED = re.compile(
    r"obj|free|inf(inity)?|(max|min)(imi[sz]e|imum)?|st|such|subject|bounds?|bin(ary|aries)?|gen(erals?)?|int(egers?)?|semis?|sec"
    r"|sos[12]?|pwlobj|end",
    re.IGNORECASE,
)  # the objective's name in files, and the words of LP files
_TERMS_PER_LINE = 6  # some readers of LP files cut long lines


class Row(NamedTuple):
    """One row to be added to a model: ``lower <= coefficients @ columns <= upper``."""

    columns: tuple[int, ...]
    coefficients: tuple[float, ...]
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A mixed-integer linear problem: columns with bounds, rows with ranges, one linear objective.

    Parameters
    ----------
    names
        One name per column, legal in MPS and LP files: a letter, then letters, digits and underscores.
    lower, upper
        The columns' bounds; infinite where there is none.
    integer
        Which columns must be whole numbers.
    objective
        One coefficient per column.
    rows
        The coefficients as a scipy sparse array, one row per row name.
    row_names
        One name per row.
    row_lower, row_upper
        What a row may sum to; equal for an equation, infinite on a side without limit.
    maximize
        Whether the objective is to be large.
    name
        A name for the whole, which files carry.

    Examples
    --------
    >>> import tessella
    >>> from tessella import formulation
    >>> from scipy.sparse import csr_array
    >>> formulation.Model(("x", "z"), [0, 0], [1, 1], [False, True], [1, 1], csr_array([[1.0, -1.0]]), ("link",), [0], [0], maximize=True)
    Model(2 columns, 1 integer, 1 row, 2 non-zeros, maximize)
    """

    names: tuple[str, ...]
    lower: Floats
    upper: Floats
    integer: Mask
    objective: Floats
    rows: Sparse
    row_names: tuple[str, ...]
    row_lower: Floats
    row_upper: Floats
    maximize: bool = False
    name: str = "model"

    def __post_init__(self) -> None:
        """Validate, copy, and make read-only."""
        names, row_names = tuple(self.names), tuple(self.row_names)
        _check_names("column", names)
        _check_names("row", row_names)
        _check_names("model", (self.name,))
        if not names:
            msg = "a model needs at least one column; got none"
            raise OptionError(msg)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "row_names", row_names)
        for field, size in (("lower", len(names)), ("upper", len(names)), ("objective", len(names))):
            object.__setattr__(self, field, _frozen(getattr(self, field), field, size))
        for field in ("row_lower", "row_upper"):
            object.__setattr__(self, field, _frozen(getattr(self, field), field, len(row_names)))
        integer = np.array(self.integer)
        if integer.dtype != np.bool_ or integer.shape != (len(names),):
            msg = f"integer must hold {len(names)} truth values, one per column; got {integer.dtype} of shape {integer.shape}"
            raise OptionError(msg)
        integer.flags.writeable = False
        object.__setattr__(self, "integer", integer)
        object.__setattr__(self, "rows", _frozen_rows(self.rows, (len(row_names), len(names))))
        _check_intervals("column", names, self.lower, self.upper)
        _check_intervals("row", row_names, self.row_lower, self.row_upper)
        if not np.isfinite(self.objective).all():
            where = int(np.argmin(np.isfinite(self.objective)))
            msg = f"the objective holds {self.objective[where]} for column {names[where]}; every coefficient must be finite"
            raise OptionError(msg)

    def with_objective(self, objective: npt.ArrayLike, *, maximize: bool) -> Self:
        """The same problem with another objective, one coefficient per column."""
        return replace(self, objective=np.asarray(objective, dtype=np.float64), maximize=maximize)

    def violation(self, values: npt.ArrayLike) -> float:
        """By how much a vector misses the worst of its bounds, rows and whole numbers; 0 if it is feasible."""
        point = np.asarray(values, dtype=np.float64)
        if point.shape != (len(self.names),):
            msg = f"the vector has shape {point.shape}; expected one number for each of the {len(self.names)} columns"
            raise OptionError(msg)
        sums = np.asarray(self.rows @ point)
        whole = point[self.integer]
        misses = (
            self.lower - point,
            point - self.upper,
            self.row_lower - sums,
            sums - self.row_upper,
            np.abs(whole - np.round(whole)),
        )
        return float(np.concatenate([np.zeros(1), *misses]).max())

    def __repr__(self) -> str:
        """One line a person can read."""
        rows, columns = self.rows.shape
        return (
            f"Model({columns:,} column{'' if columns == 1 else 's'}, {int(self.integer.sum()):,} integer, "
            f"{rows:,} row{'' if rows == 1 else 's'}, {self.rows.nnz:,} non-zeros, {'maximize' if self.maximize else 'minimize'})"
        )


def write_model(model: Model, path: str | PathLike[str]) -> None:
    """Write a problem to a file whose name ends in ``.mps`` or ``.lp``, or in these and ``.gz``.

    Parameters
    ----------
    model
        The problem.
    path
        Where; an existing file is replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import tessella
    >>> from tessella import formulation
    >>> net, box = tessella.load([([[1.0], [-1.0]], [0.0, 2.0]), ([[1.0, 1.0]], None)]), tessella.Box(-1, 1, dim=1)
    >>> found = formulation.formulate(net, box, tessella.stability(net, box).bounds)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     formulation.write_model(found.model, Path(folder, "net.mps.gz"))
    ...     [path.name for path in Path(folder).iterdir()]
    ['net.mps.gz']
    """
    plain = Path(path).name.lower().removesuffix(".gz")
    if plain.endswith(".mps"):
        write_mps(model, path)
    elif plain.endswith(".lp"):
        write_lp(model, path)
    else:
        msg = f"{Path(path).name}: a problem is written to .mps or .lp files (or .mps.gz, .lp.gz); give a name that ends so"
        raise OptionError(msg)


def write_mps(model: Model, path: str | PathLike[str]) -> None:
    """Write a problem in the free MPS format; compressed if the name ends in ``.gz``.

    Every number is written so that it is read back as it was, but for the width of rows that have two different limits.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import tessella
    >>> from tessella import formulation
    >>> net, box = tessella.load([([[1.0], [-1.0]], [0.0, 2.0]), ([[1.0, 1.0]], None)]), tessella.Box(-1, 1, dim=1)
    >>> found = formulation.formulate(net, box, tessella.stability(net, box).bounds)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     formulation.write_mps(found.model, Path(folder, "net.mps"))
    ...     Path(folder, "net.mps").read_text().split()[-1]
    'ENDATA'
    """
    lines = [f"* {model!r}", f"NAME {model.name}"]
    if model.maximize:
        lines += ["OBJSENSE", "    MAX"]
    lines += ["ROWS", " N obj"]
    lines += [f" {_row_type(low, high)} {name}" for name, low, high in _limited_rows(model)]
    lines.append("COLUMNS")
    lines += _mps_columns(model)
    lines.append("RHS")
    sides = [(name, low if high == np.inf else high) for name, low, high in _limited_rows(model)]
    lines += [f"    RHS {name} {side!r}" for name, side in sides if side != 0.0]
    ranges = [f"    RANGE {name} {high - low!r}" for name, low, high in _limited_rows(model) if -np.inf < low < high < np.inf]
    lines += ["RANGES", *ranges] if ranges else []
    lines.append("BOUNDS")
    lines += _mps_bounds(model)
    _save([*lines, "ENDATA"], path)


def write_lp(model: Model, path: str | PathLike[str]) -> None:
    """Write a problem in the CPLEX LP format; compressed if the name ends in ``.gz``.

    Every number is written so that it is read back as it was.  A row with two different limits becomes two rows, because
    not every solver reads the format's own notation for it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import tessella
    >>> from tessella import formulation
    >>> net, box = tessella.load([([[1.0], [-1.0]], [0.0, 2.0]), ([[1.0, 1.0]], None)]), tessella.Box(-1, 1, dim=1)
    >>> found = formulation.formulate(net, box, tessella.stability(net, box).bounds)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     formulation.write_lp(found.model, Path(folder, "net.lp"))
    ...     Path(folder, "net.lp").read_text().split()[-1]
    'End'
    """
    lines = [f"\\ {model.name}: {model!r}", "Maximize" if model.maximize else "Minimize"]
    shown = (model.objective != 0.0) | (np.diff(model.rows.tocsc().indptr) == 0)  # else a column might be in no line
    shown[0] |= not shown.any()
    lines += _lp_sum("obj", model.objective[shown], [name for name, show in zip(model.names, shown, strict=True) if show], "")
    lines.append("Subject To")
    lines += _lp_rows(model)
    lines.append("Bounds")
    binary = model.integer & (model.lower == 0.0) & (model.upper == 1.0)
    lines += _lp_bounds(model, binary)
    for title, mask in (("Binaries", binary), ("Generals", model.integer & ~binary)):
        if mask.any():
            lines += [title, *(f" {model.names[column]}" for column in np.flatnonzero(mask))]
    _save([*lines, "End"], path)


def _frozen(values: object, name: str, size: int) -> Floats:
    """A read-only copy without NaN, in which -0.0 is 0.0."""
    array: Floats = np.array(values, dtype=np.float64) + 0.0
    if array.shape != (size,):
        msg = f"{name} has shape {array.shape}; expected {size} numbers"
        raise OptionError(msg)
    if np.isnan(array).any():
        msg = f"{name} holds nan at {int(np.argmax(np.isnan(array)))}; give a number, or an infinity where there is no bound"
        raise OptionError(msg)
    array.flags.writeable = False
    return array


def _frozen_rows(values: Any, shape: tuple[int, int]) -> Sparse:
    from scipy.sparse import csr_array  # noqa: PLC0415  heavy, and only problems need it

    rows: Sparse = csr_array(values, dtype=np.float64, copy=True)
    if rows.shape != shape:
        msg = f"the coefficients have shape {rows.shape}; {shape[0]} rows and {shape[1]} columns are named"
        raise OptionError(msg)
    if not np.isfinite(rows.data).all():
        msg = "the rows hold coefficients that are not finite; every coefficient must be finite"
        raise OptionError(msg)
    return frozen_sparse(rows)


def _check_names(kind: str, names: Sequence[str]) -> None:
    for name in names:
        if not _NAME.fullmatch(name) or _RESERVED.fullmatch(name):
            msg = (
                f"{kind} name {name!r:.60} cannot be written to MPS and LP files; use a letter, then at most 99 letters, "
                "digits and underscores, and no word of these formats"
            )
            raise OptionError(msg)
    if len(set(names)) < len(names):
        twice = next(name for position, name in enumerate(names) if name in names[:position])
        msg = f"two {kind}s are named {twice!r}; give each its own name"
        raise OptionError(msg)


def _check_intervals(kind: str, names: Sequence[str], lower: Floats, upper: Floats) -> None:
    bad = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
    if bad.any():
        where = int(np.argmax(bad))
        msg = f"{kind} {names[where]} would lie between {lower[where]} and {upper[where]}; no number does"
        raise OptionError(msg)


def _limited_rows(model: Model) -> Iterator[tuple[str, float, float]]:
    """Names and limits of the rows that have any."""
    for name, low, high in zip(model.row_names, model.row_lower.tolist(), model.row_upper.tolist(), strict=True):
        if low > -np.inf or high < np.inf:
            yield name, low, high


def _row_type(low: float, high: float) -> str:
    if low == high:
        return "E"
    return "G" if high == np.inf else "L"


def _mps_columns(model: Model) -> Iterator[str]:
    limited = np.isfinite(model.row_lower) | np.isfinite(model.row_upper)
    matrix: Sparse = model.rows[limited].tocsc()
    row_names = [name for name, keep in zip(model.row_names, limited, strict=True) if keep]
    starts, rows, values = matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.tolist()
    inside = False
    for column, (name, integer, cost) in enumerate(
        zip(model.names, model.integer.tolist(), model.objective.tolist(), strict=True)
    ):
        if integer != inside:
            yield f"    MARKER 'MARKER' '{'INTORG' if integer else 'INTEND'}'"
            inside = integer
        first, last = starts[column], starts[column + 1]
        if cost or first == last:
            yield f"    {name} obj {cost!r}"
        for row, value in zip(rows[first:last], values[first:last], strict=True):
            yield f"    {name} {row_names[row]} {value!r}"
    if inside:
        yield "    MARKER 'MARKER' 'INTEND'"


def _mps_bounds(model: Model) -> Iterator[str]:
    """Bounds of every column, but for those that all readers assume: continuous, at least 0, without an upper one."""
    for name, low, high, integer in _columns(model):
        if low == high:
            yield f" FX BOUND {name} {low!r}"
        elif low == -np.inf and high == np.inf:
            yield f" FR BOUND {name}"
        elif integer and low == 0.0 and high == 1.0:
            yield f" BV BOUND {name}"
        else:
            if low == -np.inf:
                yield f" MI BOUND {name}"
            elif low or integer or high < np.inf:  # a lower bound of 0 is said: readers differ where the upper one is negative
                yield f" LO BOUND {name} {low!r}"
            if high < np.inf:
                yield f" UP BOUND {name} {high!r}"
            elif integer:
                yield f" PL BOUND {name}"


def _lp_rows(model: Model) -> Iterator[str]:
    starts, values = model.rows.indptr.tolist(), model.rows.data
    names = np.array(model.names, dtype=object)
    limits = zip(model.row_names, model.row_lower.tolist(), model.row_upper.tolist(), strict=True)
    for row, (name, low, high) in enumerate(limits):
        span = slice(starts[row], starts[row + 1])
        terms = names[model.rows.indices[span]].tolist(), values[span]
        if span.start == span.stop:
            terms = [model.names[0]], np.zeros(1)
        if low == high:
            yield from _lp_sum(name, terms[1], terms[0], f" = {low!r}")
            continue
        both = -np.inf < low and high < np.inf
        if low > -np.inf:  # a period is in no name of a model, so these names are new
            yield from _lp_sum(f"{name}.lower" if both else name, terms[1], terms[0], f" >= {low!r}")
        if high < np.inf:
            yield from _lp_sum(f"{name}.upper" if both else name, terms[1], terms[0], f" <= {high!r}")


def _lp_sum(title: str, coefficients: Floats, names: Sequence[str], end: str) -> list[str]:
    terms = [
        f"{'-' if value < 0.0 else '+'} {abs(value)!r} {name}" for value, name in zip(coefficients.tolist(), names, strict=True)
    ]
    pieces = [" ".join(terms[start : start + _TERMS_PER_LINE]) for start in range(0, len(terms), _TERMS_PER_LINE)]
    return [f" {title}: " + "\n  ".join(pieces) + end]


def _lp_bounds(model: Model, binary: Mask) -> Iterator[str]:
    for (name, low, high, _), said in zip(_columns(model), binary.tolist(), strict=True):
        if said or (low == 0.0 and high == np.inf):
            continue
        if low == high:
            yield f" {name} = {low!r}"
        elif low == -np.inf and high == np.inf:
            yield f" {name} free"
        elif high == np.inf:
            yield f" {name} >= {low!r}"
        else:
            yield f" {'-inf' if low == -np.inf else repr(low)} <= {name} <= {high!r}"


def _columns(model: Model) -> Iterator[tuple[str, float, float, bool]]:
    return zip(model.names, model.lower.tolist(), model.upper.tolist(), model.integer.tolist(), strict=True)


def _save(lines: list[str], path: str | PathLike[str]) -> None:
    data = "\n".join([*lines, ""]).encode("ascii")
    if Path(path).name.lower().endswith(".gz"):
        data = gzip.compress(data, compresslevel=6, mtime=0)  # no time stamp: the same problem is the same file
    with writing(path) as file:
        file.write(data)
