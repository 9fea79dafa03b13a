"""Whether a row is negative in a cell, asked in the few dimensions of the first layer; compiled with Numba.

In the coordinates z = F.u of `tessella.cells.state` the inputs' box is a zonotope: the sum of as many segments as there are inputs.
From outside it is approximated by *cuts*, half-spaces that support it in directions which earlier questions led to; they hold in every cell.  A dual
simplex method over a cell's rows, the cuts and the bounds of z has as many tight constraints as there are dimensions, and a pivot touches no input.
When its bound is negative, the multipliers of rows and cuts prove it, in double precision; if rounding spoils that, the rows' multipliers alone are tried against the box itself.

What it cannot refute, `tessella.cells.mixtures` asks from inside.
"""

from typing import Self

import numpy as np

from tessella.cells.emptiness import is_negative
from tessella.cells.rows import combine
from tessella.cells.state import FEASIBLE, INFEASIBLE, UNCLEAR, Space, Work
from tessella.kernel.functions import apart, compiled
from tessella.kernel.record import Matrix, Record, Vector, Whole, zeros
from tessella.numerics import CLOSE, PIVOT, PROOF, SURE

CUT = 1 << 20  # codes of cuts begin here; those of rows at 0, and bounds of z are negative: -1 - c is the bound of coordinate c
MOST_CUTS = 128  # kept
_PIVOTS = 200
_INDEPENDENT = 1e-3  # pivots of constraints that are wanted tight


class Outside(Record):
    """A zonotope from outside, and a corner of it and of a cell.

    ``walls[:, r]`` is row r of the cell, with p + 3 numbers.  ``cuts[:, i]`` are the p + 1 numbers of a cut, for the last ``added`` ones as far as there is room.
    The corner is where the constraints with codes ``tight`` are: ``inverse`` is that of their matrix, one column for each.  A multiplier is negative where a constraint is tight at its other end,
    which it has because z is bounded.
    """

    walls: Matrix
    cuts: Matrix
    added: int  # cuts so far
    tight: Whole
    inverse: Matrix
    corner: Vector
    coefficients: Vector  # of another constraint, in the tight ones
    multipliers: Vector
    values: Vector  # of all walls or cuts at the corner

    @classmethod
    def of(cls, dimensions: int, most_rows: int, most_cuts: int = MOST_CUTS) -> Self:
        """Without cuts, and room for so many rows and cuts."""
        p = dimensions
        return cls(
            walls=zeros(p + 3, most_rows),
            cuts=zeros(p + 1, most_cuts),
            tight=np.full(p, -1, dtype=np.int64),
            inverse=zeros(p, p),
            corner=zeros(p),
            coefficients=zeros(p),
            multipliers=zeros(p),
            values=zeros(max(most_rows, most_cuts)),
        )


@compiled
def cut(outside: Outside, space: Space, work: Work) -> int:
    """Add the cut that supports the zonotope in the direction of the combination in ``work``, in place of the oldest that is not tight; where it is."""
    p, combination, cuts, tight = len(space.frame), work.combination, outside.cuts, outside.tight
    combine(space.frame, combination, work.slopes)
    size = 0.0
    for j in range(len(work.slopes)):
        size += abs(work.slopes[j])
    constant = size
    for c in range(p):
        size += abs(combination[c])
    at, i = outside.added % cuts.shape[1], 0
    while i < p:
        i += 1
        if tight[i - 1] == CUT + at:
            outside.added += 1
            at, i = outside.added % cuts.shape[1], 0
    outside.added += 1
    size = max(size, 1e-300)
    for c in range(p):
        cuts[c, at] = -combination[c] / size
    cuts[p, at] = constant / size
    return at


@compiled
def _express(outside: Outside, code: int) -> None:
    """Put the coefficients of a wall or cut in the tight constraints into ``coefficients``."""
    walls, cuts, inverse, coefficients = outside.walls, outside.cuts, outside.inverse, outside.coefficients
    p = len(coefficients)
    for i in range(p):
        coefficients[i] = 0.0
    for c in range(p):
        rate = walls[c, code] if code < CUT else cuts[c, code - CUT]
        for i in range(p):
            coefficients[i] += rate * inverse[c, i]


@compiled
def _exchange(outside: Outside, code: int, slot: int) -> None:
    """Let the constraint that ``coefficients`` are of be tight in a slot."""
    inverse, coefficients = outside.inverse, outside.coefficients
    p, pivot = len(coefficients), coefficients[slot]
    for c in range(p):
        rate = inverse[c, slot] / pivot
        for i in range(p):
            inverse[c, i] -= rate * coefficients[i]
        inverse[c, slot] = rate
    outside.tight[slot] = code


@compiled
def begin(outside: Outside, r: int, wanted: Whole) -> None:
    """Begin the question about row r with the constraints that are wanted tight, as far as they are independent, and bounds of z; negative codes are of none."""
    walls, cuts, tight = outside.walls, outside.cuts, outside.tight
    inverse, corner, coefficients, multipliers = outside.inverse, outside.corner, outside.coefficients, outside.multipliers
    p = len(corner)
    for c in range(p):
        for i in range(p):
            inverse[c, i] = 1.0 if c == i else 0.0
        tight[c] = -1 - c
    for e in range(p):
        code = wanted[e]
        if code < 0:
            continue
        _express(outside, code)
        slot, best = -1, _INDEPENDENT
        for i in range(p):
            if tight[i] < 0 and abs(coefficients[i]) > best:
                slot, best = i, abs(coefficients[i])
        if slot >= 0:
            _exchange(outside, code, slot)
    for i in range(p):
        multipliers[i] = 0.0
    for c in range(p):
        corner[c] = 0.0
        for i in range(p):
            multipliers[i] -= walls[c, r] * inverse[c, i]
    for i in range(p):
        code, end = tight[i], 1.0
        if multipliers[i] >= 0.0:
            end = -1.0 if code < 0 else -walls[p, code] if code < CUT else -cuts[p, code - CUT]
        for c in range(p):
            corner[c] += end * inverse[c, i]


@compiled
def _add_up(outside: Outside, r: int, work: Work, with_cuts: bool) -> None:
    """Put row r, and the tight rows (and cuts) as often as their multipliers say, into ``work``; behind these, the size of all that."""
    walls, cuts, tight, combination = outside.walls, outside.cuts, outside.tight, work.combination
    p, size = len(tight), 1.0
    for c in range(p + 1):
        combination[c] = walls[c, r]
    for i in range(p):
        code, share = tight[i], outside.multipliers[i]
        if code >= CUT and share > 0.0 and with_cuts:
            size += share
            for c in range(p + 1):
                combination[c] += share * cuts[c, code - CUT]
        elif 0 <= code < CUT and share > 0.0:
            size += share
            for c in range(p + 1):
                combination[c] += share * walls[c, code]
    combination[p + 1] = size


@compiled
def _is_proved(outside: Outside, r: int, space: Space, work: Work) -> bool:
    """Whether row r is negative in the cell, with room to spare: because tight rows and cuts say so, and z is within [-1, 1]; or tight rows alone, on the box of inputs."""
    combination, p = work.combination, len(outside.tight)
    error = outside.walls[p + 2, r]
    _add_up(outside, r, work, True)
    total = combination[p] + PROOF * combination[p + 1] + error
    for c in range(p):
        total += abs(combination[c])
    if total < 0.0:
        return True
    _add_up(outside, r, work, False)
    return is_negative(space, work, error)


@compiled
def _worst(walls: Matrix, number: int, corner: Vector, values: Vector) -> int:
    """The wall (or cut) that the corner violates most, of the first so many; -1 if it violates none.  Their values there are put into ``values``."""
    p = len(corner)
    for i in range(number):
        values[i] = walls[p, i]
    for c in range(p):
        rate = corner[c]
        for i in range(number):
            values[i] += rate * walls[c, i]
    w0, w1, w2, w3, whole = -CLOSE, -CLOSE, -CLOSE, -CLOSE, number - number % 4
    for i in range(0, whole, 4):  # each minimum waits for the one before it
        w0 = min(w0, values[i])
        w1 = min(w1, values[i + 1])
        w2 = min(w2, values[i + 2])
        w3 = min(w3, values[i + 3])
    for i in range(whole, number):
        w0 = min(w0, values[i])
    least, found = min(w0, w1, w2, w3), -1
    if least < -CLOSE:
        found = 0
        while values[found] != least:
            found += 1
    return found


@compiled
def _leaving(outside: Outside) -> tuple[int, float]:
    """The slot whose constraint becomes loose first when another becomes tight, and its multiplier per coefficient; -1 if none does."""
    slot, least = -1, np.inf
    for i in range(len(outside.tight)):
        rate, share = outside.coefficients[i], outside.multipliers[i]
        blocks = rate > PIVOT if share >= 0.0 else rate < -PIVOT
        if blocks and share / rate < least:
            slot, least = i, share / rate
    return slot, least


@apart
def descend(outside: Outside, r: int, space: Space, work: Work) -> int:
    """Go on to the best corner of all that is known from outside: FEASIBLE there; INFEASIBLE once it is proved that row r is negative in the cell; UNCLEAR if rounding spoils it.

    Changes the corner with its tight constraints, and ``work``.
    """
    walls, corner, inverse, values = outside.walls, outside.corner, outside.inverse, outside.values
    p, cuts, multipliers, coefficients = len(corner), outside.cuts, outside.multipliers, outside.coefficients
    for _ in range(_PIVOTS):
        bound = walls[p, r]
        for c in range(p):
            bound += walls[c, r] * corner[c]
        if bound < -SURE:
            return INFEASIBLE if _is_proved(outside, r, space, work) else UNCLEAR
        at, first = _worst(walls, r, corner, values), 0
        if at < 0:
            at, first = _worst(cuts, min(outside.added, cuts.shape[1]), corner, values), CUT
        if at < 0:
            return FEASIBLE
        worst = values[at]
        _express(outside, first + at)
        slot, least = _leaving(outside)
        if slot < 0:
            return UNCLEAR
        for i in range(p):
            multipliers[i] -= least * coefficients[i]
        multipliers[slot] = least
        _exchange(outside, first + at, slot)
        for c in range(p):
            corner[c] -= worst * inverse[c, slot]
    return UNCLEAR
