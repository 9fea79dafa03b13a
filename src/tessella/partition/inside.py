"""Whether a cell has an interior: a point of the unit cube where rows in whole numbers are all positive, or the proof that there is none.

A cell is a list of rows r(u) that must all be positive, and it has an interior if and only if one point of the *closed* cube
makes them all positive: a small step inward keeps them so.  One asks for the largest t with r(u) >= t * scale.  The compiled
simplex answers in floating point, and what it found is proved in whole numbers, by the first of these that works:

- its point, rounded to a grid, makes all rows positive;
- its multipliers y >= 0, rounded, make a row y.r that is nowhere positive on the cube, so the rows are never all positive;
- the same with the multipliers or the point of its *basis*, solved exactly.  This settles the cells where the largest t is
  exactly 0, because hyperplanes meet in one point or units are multiples of others;
- the dual simplex goes on from that basis in whole numbers, in the end by Bland's rule, which cannot cycle.

The last is right from any basis; all before it only save time.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import inf, log2
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from tessella.kernel.program import Program
from tessella.network import Floats, Mask
from tessella.numerics import EPS, LOST_OF_PRODUCTS
from tessella.partition.integers import Integers, Rows

Point: TypeAlias = Integers  # of the cube: numerators and, last, their common denominator

_GRID = 2.0**53  # points and multipliers are rounded to multiples of 1 / this
_FLAT = 1e-13  # a margin nearer to 0 than this is rounding, and what belongs to it proves nothing
_PATIENCE = 100  # exchanges without progress


class _Basis(NamedTuple):
    """Rows that are equal to t * scale, inputs that are not at an end (one fewer), and which of the other inputs are 1."""

    tight: list[int]
    basic: list[int]
    upper: Mask


class _Combination(NamedTuple):
    """A combination of rows: what they are multiplied with, its numbers, and its largest value on the cube."""

    multipliers: Integers
    numbers: Integers
    most: int


class _Leaving(NamedTuple):
    """What leaves a basis: an input, or a row (counted from the number of inputs on); in which direction, and how far."""

    name: int
    direction: int
    distance: int


class _Stop(NamedTuple):
    """Where y.r changes its slope, after cost / gain, because of what may enter the basis; named as in `_Leaving`."""

    name: int
    cost: int
    gain: int


class Settled(NamedTuple):
    """A point of the cube where all rows are positive; if there is none, multipliers of the rows, whose combination is nowhere positive."""

    point: Point | None
    multipliers: Integers


def settled(rows: Rows) -> Settled:
    """The same as `point_inside`, with multipliers where there is no point; there must be a row."""
    _, multipliers, basis = _guess(rows.floats)
    whole = _objects(np.rint(multipliers * _GRID)) * (rows.scales.max() // rows.scales)
    if whole.any() and _combined(rows, whole).most <= 0:
        return Settled(None, whole)
    return _settle(rows, basis)


def point_inside(rows: Rows) -> Point | None:
    """A point of the closed cube where all rows are positive; None if there is none."""
    if not len(rows.numbers):
        return _objects(np.array([1] * (rows.numbers.shape[1] - 1) + [2]))
    u, multipliers, basis = _guess(rows.floats)
    u = np.append(np.rint(u * _GRID) / _GRID, 1.0)
    values = rows.floats @ u
    if values.min() > _FLAT:
        point, unsure = _objects(u * _GRID), values <= rounding(rows.floats, 1.0)
        if not unsure.any() or (rows.numbers[unsure] @ point > 0).all():
            return point
    elif values.min() < -_FLAT:
        used, multipliers = rows[multipliers > 0.0], multipliers[multipliers > 0.0]
        if _is_negative(used.floats, multipliers):
            return None
        whole = _objects(np.rint(multipliers * _GRID))
        if whole.any() and _combined(used, whole * (used.scales.max() // used.scales)).most <= 0:
            return None
    return _settle(rows, basis).point


def rounding(floats: Floats, shares: Floats | float) -> Floats:
    """How far sums of a row's numbers, each times at most its share, may be from the truth: the numbers are rounded, and so are products and sums."""
    terms = sum(floats.shape) + 16
    return terms * EPS * (np.abs(floats) * shares).sum(axis=-1) + LOST_OF_PRODUCTS


def _is_negative(floats: Floats, multipliers: Floats) -> bool:
    """Whether a combination of rows is negative on the whole cube, rounding allowed for."""
    combined = multipliers @ floats
    most = combined[-1] + np.maximum(combined[:-1], 0.0).sum()
    return bool(most + rounding(floats, multipliers[:, None]).sum() < 0.0)


def _objects(values: npt.NDArray[Any]) -> Integers:
    return values.astype(np.int64).astype(np.object_)


def _guess(floats: Floats) -> tuple[Floats, Floats, _Basis]:
    """Where floating-point arithmetic sees the largest margin: the point, the multipliers of the rows, and the basis."""
    count, columns = floats.shape
    reach = float(np.abs(floats).sum(axis=1).max()) + 1.0
    program = Program(np.column_stack([floats[:, :-1], -np.ones(count)]))
    lower, upper, objective = np.zeros(columns), np.ones(columns), np.zeros(columns)
    lower[-1], upper[-1], objective[-1] = -reach, reach, 1.0
    found = program.maximise(objective, lower, upper, -floats[:, -1], np.full(count, 2.0 * reach))
    tight, basic = (sorted(part.tolist()) for part in found.basis)
    u = np.clip(found.x[:-1], 0.0, 1.0)
    return u, np.clip(-found.multipliers, 0.0, 2.0), _Basis(tight, basic[:-1], u > 0.5)


def _combined(rows: Rows, multipliers: Integers) -> _Combination:
    numbers = multipliers @ rows.numbers
    return _Combination(multipliers, numbers, numbers[-1] + sum(slope for slope in numbers[:-1] if slope > 0))


def _settle(rows: Rows, basis: _Basis) -> Settled:
    """The same as `settled`, in whole numbers from any basis.

    This is the dual simplex: y >= 0 always, and inputs that are not basic sit at the end where y.r is largest.  So the largest
    value of y.r is the basis' t, which falls until it is not positive or until the basis' point is what was looked for.
    """
    dual = _dual(rows, basis)
    if dual is None or (dual.multipliers < 0).any():
        first = int(np.argmin(np.maximum(rows.floats[:, :-1], 0.0).sum(axis=1) + rows.floats[:, -1]))
        basis = _Basis([first], [], basis.upper)
        dual = _combined(rows[[first]], np.array([1], dtype=np.object_))
    lowest, stalled = Fraction(dual.most + 1), 0
    while dual.most > 0:
        value = Fraction(dual.most, dual.multipliers @ rows.scales[basis.tight])
        lowest, stalled = min(lowest, value), 0 if value < lowest else stalled + 1
        slopes = dual.numbers[:-1]
        upper = np.where(slopes == 0, basis.upper, slopes > 0)
        upper[basis.basic] = False
        basis = basis._replace(upper=upper)
        point, leaving = _vertex(rows, basis, first=stalled > _PATIENCE)
        if leaving is None:
            return Settled(point, _objects(np.zeros(0)))
        basis = _exchanged(rows, basis, dual, leaving, first=stalled > _PATIENCE)
        dual = _dual(rows, basis) or _impossible()
    if (dual.multipliers < 0).any():
        _impossible()
    multipliers = _objects(np.zeros(len(rows.numbers)))
    multipliers[basis.tight] = dual.multipliers
    return Settled(None, multipliers)


def _system(rows: Rows, basis: _Basis) -> list[list[int]]:
    """Coefficients of the tight rows: a line for each basic input, then one for t."""
    return [*rows.numbers[np.ix_(basis.tight, basis.basic)].T.tolist(), rows.scales[basis.tight].tolist()]


def _dual(rows: Rows, basis: _Basis) -> _Combination | None:
    """The combination of tight rows that does not depend on the basic inputs; None if the basis is none."""
    if len(basis.tight) != len(basis.basic) + 1:
        return None
    solved = _solved(_system(rows, basis), [0] * len(basis.basic) + [1])
    return None if solved is None else _combined(rows[basis.tight], np.array(solved[0], dtype=np.object_))


def _vertex(rows: Rows, basis: _Basis, *, first: bool) -> tuple[Point, _Leaving | None]:
    """The basis' point, and what is outside its bounds there: the first such thing, or the one that is furthest outside.

    It is None not only at an optimum, but wherever the point lies in the cube and makes all rows positive.
    """
    inputs, basic = len(basis.upper), basis.basic
    point = _objects(np.append(basis.upper, True))
    fixed = rows.numbers[:, np.append(basis.upper, True)].sum(axis=1)
    system = [list(line) for line in zip(*_system(rows, basis), strict=True)]
    (*places, minus_t), denominator = _solved(system, (-fixed[basis.tight]).tolist()) or _impossible()
    point *= denominator
    point[basic] = places
    values = fixed * denominator + rows.numbers[:, basic] @ point[basic]
    outside = np.maximum(-point[:-1], point[:-1] - denominator)
    if (outside <= 0).all() and (values > 0).all():
        return point, None
    distances = np.concatenate([outside, -(values + rows.scales * minus_t)])
    unit = rows.scales.max()
    sizes = distances * np.concatenate([np.full(inputs, unit), unit // rows.scales])
    name = int(np.argmax(sizes > 0 if first else sizes))
    return point, _Leaving(name, -1 if name < inputs and point[name] > 0 else 1, distances[name])


def _exchanged(rows: Rows, basis: _Basis, dual: _Combination, leaving: _Leaving, *, first: bool) -> _Basis:
    """The basis in which something else stands for what leaves.

    Parameters
    ----------
    rows, basis, dual, leaving
        Where the simplex stands.
    first
        Whether to go to the first stop, and among equals to the first in order (Bland 1977).  Otherwise one goes on for as
        long as y.r falls, moving inputs to their other end: with many inputs this saves most of the steps.
    """
    inputs, basic, tight = len(basis.upper), basis.basic, basis.tight
    slopes, scale = _objects(np.arange(inputs) == leaving.name), 0
    if leaving.name >= inputs:
        slopes, scale = rows.numbers[leaving.name - inputs, :-1], rows.scales[leaving.name - inputs]
    solved, denominator = _solved(_system(rows, basis), [*slopes[basic].tolist(), scale]) or _impossible()
    shares = np.array(solved, dtype=np.object_)
    gains = slopes * denominator - shares @ rows.numbers[tight, :-1]
    gains = np.where(basis.upper, -gains, gains) * leaving.direction
    gains[basic] = 0
    flips = _stops(range(inputs), np.abs(dual.numbers[:-1]), gains)
    limits = _stops([inputs + row for row in tight], dual.multipliers, shares * leaving.direction)
    entering, passed = (_soonest(flips + limits), []) if first else _last(flips, limits, leaving.distance)
    upper = basis.upper.copy()
    upper[passed] ^= True
    if leaving.name < inputs:
        upper[leaving.name] = leaving.direction < 0
    changed = {leaving.name, entering.name}
    tight = sorted({*tight} ^ {name - inputs for name in changed if name >= inputs})
    return _Basis(tight, sorted({*basic} ^ {name for name in changed if name < inputs}), upper)


def _stops(names: Sequence[int], costs: Integers, gains: Integers) -> list[_Stop]:
    return [_Stop(*each) for each in zip(names, costs, gains, strict=True) if each[2] > 0]


def _soonest(stops: list[_Stop]) -> _Stop:
    """The first stop on the way; of equals the first in the list."""
    soonest = stops[0]
    for stop in stops:
        if stop.cost * soonest.gain < soonest.cost * stop.gain:
            soonest = stop
    return soonest


def _last(flips: list[_Stop], limits: list[_Stop], distance: int) -> tuple[_Stop, list[int]]:
    """The stop after which y.r would not fall any more, and the inputs passed before it.

    The flips' order need not be exact, because either end of an input is allowed, but no limit may be passed.  Of equals
    those with the largest gains come first: fewer inputs are passed, and plateaus are left sooner.
    """
    limit, passed = _soonest(limits) if limits else None, list[int]()
    for flip in sorted(flips, key=lambda stop: (log2(stop.cost) - log2(stop.gain) if stop.cost else -inf, -stop.gain)):
        if limit and limit.cost * flip.gain < flip.cost * limit.gain:
            return limit, passed
        distance -= flip.gain
        if distance <= 0:
            return flip, passed
        passed.append(flip.name)
    return limit or _impossible(), passed


def _solved(matrix: list[list[int]], right: list[int]) -> tuple[list[int], int] | None:
    """Solve a square system by elimination without fractions (Bareiss 1968).

    Returns
    -------
    The solution's numerators and their common, positive denominator; None if the matrix is singular.
    """
    lines, triangle, last = [[*line, value] for line, value in zip(matrix, right, strict=True)], list[list[int]](), 1
    while lines:
        chosen = next((number for number, line in enumerate(lines) if line[0]), None)
        if chosen is None:
            return None
        triangle.append(lines.pop(chosen))
        pivot, *tail = triangle[-1]
        # every number stays a minor of the matrix, so the division leaves no remainder
        lines = [
            [(pivot * own - factor * other) // last for own, other in zip(line, tail, strict=True)] for factor, *line in lines
        ]
        last = pivot
    solution, determinant = list[int](), abs(last)
    for pivot, *slopes, value in reversed(triangle):
        known = sum(slope * place for slope, place in zip(slopes, solution, strict=True))
        solution.insert(0, (determinant * value - known) // pivot)
    return solution, determinant


def _impossible() -> NoReturn:
    msg = "the exact simplex came to a basis that cannot be; this is an error in the program"
    raise ArithmeticError(msg)
