"""Affine functions that are composed in floating point, with a bound for every number on how far it is from the exact one.

Let P be the computed product of W and C, where C is wrong by at most E.  Then P is wrong by at most |W| E + g |W| (|C| + E), where g is the relative rounding error of a sum of products
(Higham 2002, section 3.1).  Where a number is only moved to another place, nothing rounds, and it stays exact.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tessella.layer import is_sparse
from tessella.network import Floats, Layer, Weight
from tessella.numerics import ROUNDOFF
from tessella.tightening.rounding import lost

Integers: TypeAlias = npt.NDArray[np.int64]
Matrix: TypeAlias = Any  # dense, or sparse

_EXTENDED: Any = np.longdouble
_ROUNDING = max(float(np.finfo(np.longdouble).eps) / 2.0, 2.0**-64)  # of one operation in extended precision
_MOST_EXACT = 60_000  # products of exact numbers: a tenth of a second
_WIDER = 1.0 + 1e-6  # more than what rounding does to a bound on errors


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Affine functions of the values that a layer reads."""

    # weight, constants: the numbers, dense or sparse
    weight: Weight
    constants: Floats
    # doubts, constant_doubts: how far each may be from the exact one; None for weights that are all exact
    doubts: Matrix | None
    constant_doubts: Floats

    @property
    def exact(self) -> bool:
        """Whether nothing was rounded."""
        return self.doubts is None and not self.constant_doubts.any()

    def take(self, rows: Any) -> "Rows":
        """Some of them."""
        doubts = None if self.doubts is None else self.doubts[rows]
        return Rows(self.weight[rows], self.constants[rows], doubts, self.constant_doubts[rows])

    def times(self, factors: Floats) -> "Rows":
        """Each function multiplied with its factor, in double precision."""
        if (factors == 1.0).all():
            return self
        weight, constants = _scaled(self.weight, factors), self.constants * factors
        tiny = lost(1, factors, self.weight) + lost(1, factors, self.constants)
        errors = ROUNDOFF * abs(weight)
        if self.doubts is not None:
            errors = errors + _scaled(self.doubts, np.abs(factors))
        doubts = _raised(_WIDER * errors, tiny, self.weight)
        moved = _WIDER * (ROUNDOFF * np.abs(constants) + np.abs(factors) * self.constant_doubts) + tiny
        return Rows(weight, constants, doubts, moved)

    def used(self) -> Integers:
        """Which values are read at all."""
        matrix = abs(self.weight) if self.doubts is None else abs(self.weight) + self.doubts
        return np.flatnonzero(np.asarray(matrix.sum(axis=0)).ravel())

    def empty(self) -> npt.NDArray[np.bool_]:
        """Which functions are constants."""
        matrix = abs(self.weight) if self.doubts is None else abs(self.weight) + self.doubts
        return np.asarray(matrix.sum(axis=1)).ravel() == 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What the units of a layer pass on, as functions of what the smaller network's layer passes on."""

    columns: int  # how many values that layer passes on
    place: Integers  # for each unit the value that is exactly what it passes on; -1 if none is.  No two units share one
    composed: Integers  # the units that have no such value and are not always 0
    rows: Rows  # these, as functions
    # for each unit of the layer that reads them a value that is added to its preactivation; -1 if none is
    added: Integers | None = None

    @classmethod
    def of_inputs(cls, values: Floats, fixed: npt.NDArray[np.bool_]) -> "Reading":
        """The inputs themselves; those that are fixed are constants.

        Parameters
        ----------
        values
            What the fixed inputs are; other numbers are not used.
        fixed
            Which ones are.
        """
        dim, count = len(fixed), int(fixed.sum())
        import scipy.sparse  # noqa: PLC0415  heavy

        nothing = scipy.sparse.csr_array((count, dim))
        rows = Rows(nothing, values[fixed], None, np.zeros(count))
        return cls(dim, np.where(fixed, -1, np.arange(dim)), np.flatnonzero(fixed), rows)

    def through(self, layer: Layer, units: Integers) -> Rows:
        """The preactivations of some units of a layer that reads these functions."""
        weight = layer.weight[units]
        plain = np.flatnonzero(self.place >= 0)
        moved = _moved(weight, plain, self.place[plain], self.columns)
        if self.added is not None:
            moved = _sum(moved, _ones(self.added[units], self.columns))  # at places where nothing was
        inner = weight[:, self.composed]
        if not len(self.composed) or not abs(inner).sum():
            return Rows(moved, layer.bias[units], None, np.zeros(len(units)))
        return self._composed(moved, layer.bias[units], inner)

    def _composed(self, moved: Matrix, bias: Floats, inner: Matrix) -> Rows:
        """The sum of what is only moved and what is multiplied."""
        rows, terms = self.rows, inner.shape[1]
        size, sure = abs(inner), 1.01 * (terms + 5) * _ROUNDING
        held = abs(rows.weight) if rows.doubts is None else abs(rows.weight) + rows.doubts
        product, sizes = _product(inner, rows.weight), _double(_product(size, held))
        total = _sum(_extended(moved), product)
        weight = _double(total)
        errors = sure * (sizes + _where(abs(moved), sizes)) + abs(_double(_sum(total, -_extended(weight))))
        if rows.doubts is not None:
            errors = errors + _double(_product(size, rows.doubts))
        tiny = lost(terms, inner, held)
        constants, moved_constants = _constants(inner, rows, bias, sure)
        return Rows(
            _kept(weight),
            constants,
            _raised(_WIDER * errors, tiny, _pattern(inner) @ _pattern(held) if tiny else sizes),
            moved_constants,
        )


def _constants(inner: Matrix, rows: Rows, bias: Floats, sure: float) -> tuple[Floats, Floats]:
    """What constants add up to, and how far that may be from the exact sum; in exact arithmetic if that is quick."""
    size, there = abs(inner), (rows.constants != 0.0) | (rows.constant_doubts != 0.0)
    reads = np.asarray(size @ there.astype(np.float64)).ravel() > 0.0
    off = np.asarray(size @ rows.constant_doubts) * _WIDER + lost(inner.shape[1], inner, rows.constant_doubts)
    if int(there.sum()) * int(reads.sum()) <= _MOST_EXACT:
        part = inner[:, there]
        part = part.toarray() if is_sparse(part) else part
        values, sums = [Fraction(value) for value in rows.constants[there].tolist()], list[Fraction]()
        for row, start, some in zip(part.tolist(), bias.tolist(), reads.tolist(), strict=True):
            terms = (Fraction(factor) * value for factor, value in zip(row, values, strict=True) if factor) if some else ()
            sums.append(sum(terms, Fraction(start)))
        found = np.array([float(value) for value in sums])
        moved = [beyond(abs(value - Fraction(number))) for value, number in zip(sums, found.tolist(), strict=True)]
        return found, np.where(reads, off, 0.0) + np.array(moved)
    total = np.asarray(inner.astype(_EXTENDED) @ rows.constants.astype(_EXTENDED) + bias)
    found, reach = total.astype(np.float64), np.asarray(size @ (np.abs(rows.constants) + rows.constant_doubts)) + np.abs(bias)
    moved = sure * reach + np.abs(total - found).astype(np.float64) + lost(inner.shape[1], inner, rows.constants)
    return found, np.where(reads, off + _WIDER * moved, 0.0)


def beyond(size: Fraction) -> float:
    """A number of double precision that is no smaller, and 0 for 0 only.

    Examples
    --------
    >>> beyond(Fraction(0)), beyond(Fraction(1, 2**1100)) > 0.0, beyond(Fraction(1, 3)) >= Fraction(1, 3)
    (0.0, True, True)
    """
    return float(np.nextafter(float(size), np.inf)) if size else 0.0


def _moved(weight: Matrix, units: Integers, places: Integers, columns: int) -> Matrix:
    """The columns of some units at other places."""
    if isinstance(weight, np.ndarray):
        moved = np.zeros((weight.shape[0], columns))
        moved[:, places] = weight[:, units]
        return moved
    found = weight[:, units].tocoo()
    return type(weight)((found.data, (found.row, places[found.col])), shape=(weight.shape[0], columns))


def _pattern(matrix: Matrix) -> Matrix:
    """1 where a matrix is not 0, sparse."""
    from scipy.sparse import csr_array  # noqa: PLC0415  heavy

    found: Any = csr_array(matrix)
    found.eliminate_zeros()
    return csr_array((np.ones(found.nnz), found.indices, found.indptr), shape=found.shape)


def _ones(places: Integers, columns: int) -> Matrix:
    """A 1 in each row, at its place; none where that is -1."""
    from scipy.sparse import csr_array  # noqa: PLC0415  heavy

    rows = np.flatnonzero(places >= 0)
    return csr_array((np.ones(len(rows)), (rows, places[rows])), shape=(len(places), columns))


def _product(one: Matrix, other: Matrix) -> Matrix:
    """In extended precision; dense if one of them is."""
    left, right = _extended(one), _extended(other)
    if is_sparse(left) == is_sparse(right):
        return left @ right
    return left @ right if is_sparse(left) else np.asarray((right.T @ left.T).T)


def _extended(matrix: Matrix) -> Matrix:
    return matrix.astype(_EXTENDED)


def _double(matrix: Matrix) -> Matrix:
    return matrix.astype(np.float64)


def _sum(one: Matrix, other: Matrix) -> Matrix:
    """Dense if one of them is."""
    if is_sparse(one) == is_sparse(other):
        return one + other
    return (one.toarray() if is_sparse(one) else one) + (other.toarray() if is_sparse(other) else other)


def _where(matrix: Matrix, mask: Matrix) -> Matrix:
    """A matrix where another one is positive, and 0 elsewhere: what nothing is added to does not round."""
    if is_sparse(matrix):
        return matrix.multiply(mask > 0.0).tocsr()
    return np.where(mask.toarray() > 0.0 if is_sparse(mask) else mask > 0.0, matrix, 0.0)


def _raised(errors: Matrix, tiny: float, mask: Matrix) -> Matrix | None:
    """Errors, raised by what underflow may have lost where anything was added; None if there are none."""
    if tiny:
        errors = _sum(errors, tiny * (abs(mask) > 0.0).astype(np.float64))
    return errors if abs(errors).sum() else None


def _scaled(matrix: Matrix, factors: Floats) -> Matrix:
    """Rows times their factors."""
    if isinstance(matrix, np.ndarray):
        return matrix * factors[:, None]
    return matrix.multiply(factors[:, None]).tocsr()


def _kept(matrix: Matrix) -> Weight:
    """As a layer has it."""
    return matrix if isinstance(matrix, np.ndarray) else matrix.tocsr()
