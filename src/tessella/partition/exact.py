"""Exact answers where floating-point arithmetic cannot decide: whether a cell has an interior, and how many regions it holds.

Floating-point numbers are whole numbers times powers of two, so every preactivation on a cell is an affine function with whole
coefficients times a power of two.  The free inputs are written as u in the unit cube.  A cell is then a list of rows r(u) that
must all be positive, and it has an interior if and only if one point of the *closed* cube makes them all positive: a small
step inward keeps them so.  Rows that are constant, or of one sign on the cube, are settled on sight.

For the others one asks for the largest t with r(u) >= t * scale.  The compiled simplex answers in floating point, and what
it found is proved in whole numbers, by the first of these that works:

- its point, rounded to a grid, makes all rows positive;
- its multipliers y >= 0, rounded, make a row y.r that is nowhere positive on the cube, so the rows are never all positive;
- the same with the multipliers or the point of its *basis*, solved exactly.  This settles the cells where the largest t is
  exactly 0, because hyperplanes meet in one point or units are multiples of others;
- the dual simplex goes on from that basis in whole numbers, in the end by Bland's rule, which cannot cycle.

The last is right from any basis; all before it only save time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import inf, log2
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from tessella.domain import Box, Domain, Polytope
from tessella.kernel.program import Program
from tessella.network import Floats, Mask
from tessella.numerics import EPS, LOST_OF_PRODUCTS
from tessella.partition.tree import Tree

Integers: TypeAlias = npt.NDArray[np.object_]  # Python's own, which do not overflow
Point: TypeAlias = Integers  # of the cube: numerators and, last, their common denominator

_NEVER, _CUTS, _ALWAYS = -1, 0, 1
_LARGEST = 1024  # exponent of a floating-point number
_GRID = 2.0**53  # points and multipliers are rounded to multiples of 1 / this
_FLAT = 1e-13  # a margin nearer to 0 than this is rounding, and what belongs to it proves nothing
_PATIENCE = 100  # exchanges without progress
_KEPT = 4_000_000  # coefficients kept for later calls
_bits: Any = np.frompyfunc(int.bit_length, 1, 1)


class Exact:
    """Exact answers on the cells of a tree; keeps the layers it composed, so that calls with similar prefixes are cheap.

    Parameters
    ----------
    tree
        The network and its domain.

    Examples
    --------
    >>> from tessella import Box, Network, stability
    >>> network = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], None)], relu_output=True)
    >>> exact = Exact(Tree.of(stability(network, Box(-1, 1, dim=2), method="interval")))
    >>> exact.count(b""), exact.exists(bytes([1, 1, 1])), exact.exists(bytes([1, 1, 0]))
    (6, True, False)
    """

    def __init__(self, tree: Tree) -> None:
        """Nothing is composed yet."""
        layers = tree.network.layers
        self._layers, self._box = layers, tree.domain.box
        self._starts = (0, *accumulate(layer.relus for layer in layers))
        self._places = [(number, unit) for number, layer in enumerate(layers) for unit in range(layer.relus)]
        self._walls = _walls(tree.domain)
        size = 3 * max(layer.units for layer in layers) * (tree.domain.free_dim + 1)
        self._level = lru_cache(maxsize=min(4096, max(2 * len(layers), _KEPT // size)))(self._compose)
        self._weight = lru_cache(maxsize=None)(lambda number: _whole(layers[number].dense()))

    def exists(self, prefix: bytes) -> bool:
        """Whether the cell of a prefix has an interior in the free inputs."""
        rows = self._rows(prefix)
        return rows is not None and _inside(rows) is not None

    def count(self, prefix: bytes) -> int:
        """How many full-dimensional regions lie below a prefix; 0 if its cell has no interior."""
        return sum(1 for _ in self.leaves(prefix))

    def leaves(self, prefix: bytes) -> Iterator[bytes]:
        """The decisions of all full-dimensional regions below a prefix."""
        rows = self._rows(prefix)
        point = None if rows is None else _inside(rows)
        if rows is None or point is None:
            return
        stack = [(prefix, rows, point)]
        while stack:
            cell, rows, point = stack.pop()
            cell, sides = self._next_cut(cell)
            if sides is None:
                yield cell
                continue
            for side in (0, 1):
                row = sides[[side]]
                smaller = _joined([rows, row])
                # a point of the cell that lies on this side proves it
                there = point if (row.numbers @ point)[0] > 0 else _inside(smaller)
                if there is not None:
                    stack.append((cell + bytes([side]), smaller, there))

    def walls(self, prefix: bytes) -> list[tuple[int, list[int]]]:
        """What is positive inside the cell of a prefix, each with the layer that says so, or -1 for the domain.

        Coefficients and, last, a constant, of the free inputs scaled to [0, 1].
        """
        found = [] if self._walls is None else [(-1, row) for row in self._walls.numbers.tolist()]
        for number, start in enumerate(self._starts[:-1]):
            decisions = np.frombuffer(prefix[start : self._starts[number + 1]], dtype=np.uint8)
            if len(decisions):
                rows = self._level(number, prefix[:start]).rows[decisions, np.arange(len(decisions))]
                found += [(number, row) for row in rows.numbers.tolist()]
        return found

    def _next_cut(self, prefix: bytes) -> "tuple[bytes, _Rows | None]":
        """Decide units that have one state on the whole cube; the rows of both sides of the first other one, None at a leaf."""
        while len(prefix) < len(self._places):
            number, unit = self._places[len(prefix)]
            level = self._level(number, prefix[: self._starts[number]])
            state = level.states[1, unit]
            if state == _CUTS:
                return prefix, level.rows[:, unit]
            prefix += bytes([int(state == _ALWAYS)])
        return prefix, None

    def _rows(self, prefix: bytes) -> "_Rows | None":
        """The rows of a cell; None if one of them is nowhere positive."""
        if self._walls is None:
            return None
        parts = [self._walls]
        for number, start in enumerate(self._starts[:-1]):
            decisions = np.frombuffer(prefix[start : self._starts[number + 1]], dtype=np.uint8)
            if len(decisions):
                level, units = self._level(number, prefix[:start]), np.arange(len(decisions))
                states = level.states[decisions, units]
                if (states == _NEVER).any():
                    return None
                cuts = states == _CUTS
                parts.append(level.rows[decisions[cuts], units[cuts]])
        return _joined(parts)

    def _compose(self, number: int, prefix: bytes) -> "_Level":
        """The layer below the decisions on all layers before it."""
        layer = self._layers[number]
        if number == 0:
            return _level(_on_inputs(layer.dense(), layer.bias, self._box), layer.rectified)
        start, before = self._starts[number - 1], self._layers[number - 1]
        inner = self._level(number - 1, prefix[:start]).affine
        passes = ~before.rectified
        passes[before.rectified] = np.frombuffer(prefix[start:], dtype=np.bool_)
        weight, exponent = self._weight(number)
        outer = _Affine(weight[:, passes] @ inner.numbers[passes], exponent + inner.exponent)
        return _level(_plus(outer, layer.bias), layer.rectified)


@dataclass(frozen=True, slots=True)
class _Affine:
    """Affine functions on the unit cube: coefficients and, in the last column, constants, all times 2**exponent."""

    numbers: Integers
    exponent: int


@dataclass(frozen=True, slots=True)
class _Rows:
    """Affine functions that must be positive, so that positive factors do not matter.

    Parameters
    ----------
    numbers
        Coefficients and, in the last column, constants.
    scales
        For each row a power of two of about the size of its largest number.
    floats
        The numbers divided by the scales, and rounded.
    """

    numbers: Integers
    scales: Integers
    floats: Floats

    def __getitem__(self, index: Any) -> "_Rows":
        return _Rows(self.numbers[index], self.scales[index], self.floats[index])


@dataclass(frozen=True, slots=True)
class _Level:
    """A layer below some decisions.

    Parameters
    ----------
    affine
        The preactivations of all its units.
    states
        For sides 0 and 1 of the rectified units: whether the cube's interior lies on that side always, never, or is cut.
    rows
        What must be positive on sides 0 and 1 of the rectified units; two axes stand for the usual one.
    """

    affine: _Affine
    states: npt.NDArray[np.int8]
    rows: _Rows


def _whole(values: Floats) -> tuple[Integers, int]:
    """Whole numbers and an exponent: the values are the numbers times 2**exponent."""
    fractions, exponents = np.frexp(values)
    mantissas = (fractions * 2.0**53).astype(np.int64)
    trailing = np.maximum(np.frexp((mantissas & -mantissas).astype(np.float64))[1] - 1, 0)
    powers = exponents.astype(np.int64) - 53 + trailing
    exponent = int(powers[mantissas != 0].min(initial=_LARGEST))
    shifts = np.where(mantissas != 0, powers - exponent, 0)
    return (mantissas >> trailing).astype(np.object_) << shifts.astype(np.object_), exponent


def _plus(affine: _Affine, bias: Floats) -> _Affine:
    """Affine functions with a bias added."""
    whole, exponent = _whole(bias)
    lowest = min(exponent, affine.exponent)
    numbers = affine.numbers << (affine.exponent - lowest)
    numbers[:, -1] += whole << (exponent - lowest)
    return _Affine(numbers, lowest)


def _on_inputs(weight: Floats, bias: Floats, box: Box) -> _Affine:
    """``weight @ x + bias`` as functions on the cube: x is lower + (upper - lower) * u."""
    (lower, upper), exponent = _whole(np.stack([box.lower, box.upper]))
    whole, power = _whole(weight)
    numbers = np.column_stack([whole[:, box.free] * (upper - lower)[box.free], whole @ lower])
    return _plus(_Affine(numbers, power + exponent), bias)


def _rows_of(numbers: Integers) -> _Rows:
    numbers = numbers // np.maximum(np.abs(np.gcd.reduce(numbers, axis=1)), 1)[:, None]  # small numbers are faster
    scales = 2 ** _bits(np.abs(numbers).max(axis=1, initial=0))
    return _Rows(numbers, scales, (numbers / scales[:, None]).astype(np.float64))


def _ends(numbers: Integers) -> tuple[Integers, Integers]:
    """The least and the largest value of each row on the cube."""
    slopes, constants, zero = numbers[:, :-1], numbers[:, -1], np.array(0, dtype=np.object_)
    return constants + np.minimum(slopes, zero).sum(axis=1), constants + np.maximum(slopes, zero).sum(axis=1)


def _level(affine: _Affine, rectified: Mask) -> _Level:
    """A layer from the preactivations of its units."""
    rows = _rows_of(affine.numbers[rectified])
    least, most = _ends(rows.numbers)
    # zero everywhere is inactive, so the largest value is looked at first
    states = np.where(most <= 0, _NEVER, np.where(least >= 0, _ALWAYS, _CUTS)).astype(np.int8)
    sides = _Rows(np.stack([-rows.numbers, rows.numbers]), np.stack([rows.scales] * 2), np.stack([-rows.floats, rows.floats]))
    return _Level(affine, np.stack([-states, states]), sides)


def _walls(domain: Domain) -> _Rows | None:
    """The domain's inequalities that cut its box; None if one of them holds nowhere inside."""
    matrix, offset = np.zeros((0, domain.dim)), np.zeros(0)
    if isinstance(domain, Polytope):
        matrix, offset = domain.matrix, domain.offset
    slack = _on_inputs(-matrix, offset, domain.box).numbers
    least, most = _ends(slack)
    if ((most <= 0) & (least < 0)).any():  # zero everywhere is allowed: these inequalities are not strict
        return None
    return _rows_of(slack[least < 0])


def _joined(parts: Sequence[_Rows]) -> _Rows:
    return _Rows(
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.scales for part in parts]),
        np.concatenate([part.floats for part in parts]),
    )


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


def _inside(rows: _Rows) -> Point | None:
    """A point of the closed cube where all rows are positive; None if there is none."""
    if not len(rows.numbers):
        return _objects(np.array([1] * (rows.numbers.shape[1] - 1) + [2]))
    u, multipliers, basis = _guess(rows.floats)
    u = np.append(np.rint(u * _GRID) / _GRID, 1.0)
    values = rows.floats @ u
    if values.min() > _FLAT:
        point, unsure = _objects(u * _GRID), values <= _rounding(rows.floats, 1.0)
        if not unsure.any() or (rows.numbers[unsure] @ point > 0).all():
            return point
    elif values.min() < -_FLAT:
        used, multipliers = rows[multipliers > 0.0], multipliers[multipliers > 0.0]
        if _is_negative(used.floats, multipliers):
            return None
        whole = _objects(np.rint(multipliers * _GRID))
        if whole.any() and _combined(used, whole * (used.scales.max() // used.scales)).most <= 0:
            return None
    return _settle(rows, basis)


def _rounding(floats: Floats, shares: Floats | float) -> Floats:
    """How far sums of a row's numbers, each times at most its share, may be from the truth: the numbers are rounded, and so are products and sums."""
    terms = sum(floats.shape) + 16
    return terms * EPS * (np.abs(floats) * shares).sum(axis=-1) + LOST_OF_PRODUCTS


def _is_negative(floats: Floats, multipliers: Floats) -> bool:
    """Whether a combination of rows is negative on the whole cube, rounding allowed for."""
    combined = multipliers @ floats
    most = combined[-1] + np.maximum(combined[:-1], 0.0).sum()
    return bool(most + _rounding(floats, multipliers[:, None]).sum() < 0.0)


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


def _combined(rows: _Rows, multipliers: Integers) -> _Combination:
    numbers = multipliers @ rows.numbers
    return _Combination(multipliers, numbers, numbers[-1] + sum(slope for slope in numbers[:-1] if slope > 0))


def _settle(rows: _Rows, basis: _Basis) -> Point | None:
    """The same as `_inside`, in whole numbers from any basis.

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
            return point
        basis = _exchanged(rows, basis, dual, leaving, first=stalled > _PATIENCE)
        dual = _dual(rows, basis) or _impossible()
    if (dual.multipliers < 0).any():
        _impossible()
    return None


def _system(rows: _Rows, basis: _Basis) -> list[list[int]]:
    """Coefficients of the tight rows: a line for each basic input, then one for t."""
    return [*rows.numbers[np.ix_(basis.tight, basis.basic)].T.tolist(), rows.scales[basis.tight].tolist()]


def _dual(rows: _Rows, basis: _Basis) -> _Combination | None:
    """The combination of tight rows that does not depend on the basic inputs; None if the basis is none."""
    if len(basis.tight) != len(basis.basic) + 1:
        return None
    solved = _solved(_system(rows, basis), [0] * len(basis.basic) + [1])
    return None if solved is None else _combined(rows[basis.tight], np.array(solved[0], dtype=np.object_))


def _vertex(rows: _Rows, basis: _Basis, *, first: bool) -> tuple[Point, _Leaving | None]:
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


def _exchanged(rows: _Rows, basis: _Basis, dual: _Combination, leaving: _Leaving, *, first: bool) -> _Basis:
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
