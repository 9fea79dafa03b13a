"""Whether a row is negative in a cell, asked in the few dimensions of the first layer; compiled with Numba.

In the coordinates z = F.u of `tessella.cells.rows` the inputs' box is a zonotope: the sum of as many segments as there are inputs.
From outside it is approximated by *cuts*, half-spaces that support it in directions which earlier questions led to; they hold in every cell.  A dual
simplex method over a cell's rows, the cuts and the bounds of z has as many tight constraints as there are dimensions, and a pivot touches no input.
When its bound is negative, the multipliers of rows and cuts prove it, in double precision; if rounding spoils that, the rows' multipliers alone are tried against the box itself.

What it cannot refute, `tessella.cells.mixtures` asks from inside.
"""

from typing import Any

import numpy as np

from tessella.cells.old import rows as steps
from tessella.cells.old.rows import CLOSE, FEASIBLE, INFEASIBLE, MARGIN, PIVOT, UNCLEAR, combine, is_negative
from tessella.kernel.compiling import compiler
from tessella.network import Floats

CUT = 1 << 20  # codes of cuts begin here; those of rows at 0, and bounds of z are negative
ADDED = 11  # place of a counter: cuts ever added
MOST_CUTS = 128  # kept
_SURE = 1e-8  # a bound this far below zero is worth a proof
_PIVOTS = 200

_compiled = compiler(steps.__file__, _nrt=False)
_inlined = compiler(steps.__file__, _nrt=False, inline="always")

# fmt: off


@_compiled
def cut(frame: Floats, cuts: Floats, tight: Any, scratch: Floats, counters: Any) -> int:
    """Add the cut that supports the zonotope in direction scratch 3, in place of the oldest that is not tight; where it is."""
    p, n = frame.shape
    combine(frame, scratch)
    size = 0.0
    for j in range(n):
        size += abs(scratch[4, j])
    constant = size
    for c in range(p):
        size += abs(scratch[3, c])
    at = counters[ADDED] % cuts.shape[1]
    i = 0
    while i < p:
        i += 1
        if tight[i - 1] == CUT + at:
            counters[ADDED] += 1
            at, i = counters[ADDED] % cuts.shape[1], 0
    counters[ADDED] += 1
    size = max(size, 1e-300)
    for c in range(p):
        cuts[c, at] = -scratch[3, c] / size
    cuts[p, at] = constant / size
    return at


@_inlined
def _express(code: int, walls: Floats, cuts: Floats, corner: Floats) -> None:
    """A constraint's coefficients in the tight ones, in row p + 1 of ``corner``."""
    p = corner.shape[1]
    for i in range(p):
        corner[p + 1, i] = 0.0
    for c in range(p):
        rate = walls[c, code] if code < CUT else cuts[c, code - CUT]
        for i in range(p):
            corner[p + 1, i] += rate * corner[c, i]


@_inlined
def _exchange(code: int, slot: int, tight: Any, corner: Floats) -> None:
    """Let the constraint whose coefficients are in row p + 1 of ``corner`` be tight in a slot."""
    p = corner.shape[1]
    pivot = corner[p + 1, slot]
    for c in range(p):
        rate = corner[c, slot] / pivot
        for i in range(p):
            corner[c, i] -= rate * corner[p + 1, i]
        corner[c, slot] = rate
    tight[slot] = code


@_compiled
def begin(r: int, wanted: Any, walls: Floats, cuts: Floats, tight: Any, corner: Floats) -> None:
    """Begin the question about row r with the constraints that are wanted tight, as far as they are independent, and bounds of z.

    Rows of ``corner``: the inverse of the tight constraints' matrix; then the corner itself, coefficients of another constraint, multipliers.
    A multiplier is negative where a constraint is tight at its other end, which it has because z is bounded.
    """
    p = corner.shape[1]
    for c in range(p):
        for i in range(p):
            corner[c, i] = 1.0 if c == i else 0.0
        tight[c] = -1 - c
    for e in range(p):
        code = wanted[e]
        if code < 0:
            continue
        _express(code, walls, cuts, corner)
        slot, best = -1, 1e-3
        for i in range(p):
            if tight[i] < 0 and abs(corner[p + 1, i]) > best:
                slot, best = i, abs(corner[p + 1, i])
        if slot >= 0:
            _exchange(code, slot, tight, corner)
    for i in range(p):
        corner[p + 2, i] = 0.0
    for c in range(p):
        corner[p, c] = 0.0
        for i in range(p):
            corner[p + 2, i] -= walls[c, r] * corner[c, i]
    for i in range(p):
        code, value = tight[i], 1.0
        if corner[p + 2, i] >= 0.0:
            value = -1.0 if code < 0 else -walls[p, code] if code < CUT else -cuts[p, code - CUT]
        for c in range(p):
            corner[p, c] += value * corner[c, i]


@_inlined
def _combined(r: int, walls: Floats, tight: Any, corner: Floats, scratch: Floats) -> None:
    """Row r, with the tight rows' multipliers of them added, in scratch 3; behind it the size of all that."""
    p = corner.shape[1]
    for c in range(p + 1):
        scratch[3, c] = walls[c, r]
    scratch[3, p + 1] = 1.0
    for i in range(p):
        row, share = tight[i], corner[p + 2, i]
        if 0 <= row < CUT and share > 0.0:
            scratch[3, p + 1] += share
            for c in range(p + 1):
                scratch[3, c] += share * walls[c, row]


@_inlined
def _is_cut_off(r: int, walls: Floats, cuts: Floats, tight: Any, corner: Floats, scratch: Floats) -> bool:
    """Whether row r is negative in the cell, with room to spare, because tight rows and cuts say so, and z is within [-1, 1]."""
    p = corner.shape[1]
    for c in range(p + 1):
        scratch[3, c] = walls[c, r]
    size = 1.0
    for i in range(p):
        code, share = tight[i], corner[p + 2, i]
        if code >= CUT and share > 0.0:
            size += share
            for c in range(p + 1):
                scratch[3, c] += share * cuts[c, code - CUT]
        elif code >= 0 and share > 0.0:
            size += share
            for c in range(p + 1):
                scratch[3, c] += share * walls[c, code]
    total = scratch[3, p] + 4.0 * MARGIN * size + walls[p + 2, r]
    for c in range(p):
        total += abs(scratch[3, c])
    return total < 0.0


@_inlined
def _worst(number: int, walls: Floats, corner: Floats, scratch: Floats) -> int:
    """The wall that the corner violates most, of the first so many; -1 if it violates none.  Their values there are put into scratch 4."""
    p = corner.shape[1]
    for i in range(number):
        scratch[4, i] = walls[p, i]
    for c in range(p):
        rate = corner[p, c]
        for i in range(number):
            scratch[4, i] += rate * walls[c, i]
    w0, w1, w2, w3, whole = -CLOSE, -CLOSE, -CLOSE, -CLOSE, number - number % 4
    for i in range(0, whole, 4):  # each minimum waits for the one before it
        w0 = min(w0, scratch[4, i])
        w1 = min(w1, scratch[4, i + 1])
        w2 = min(w2, scratch[4, i + 2])
        w3 = min(w3, scratch[4, i + 3])
    for i in range(whole, number):
        w0 = min(w0, scratch[4, i])
    least, found = min(w0, w1, w2, w3), -1
    if least < -CLOSE:
        found = 0
        while scratch[4, found] != least:
            found += 1
    return found


@_compiled
def descend(r: int, frame: Floats, walls: Floats, cuts: Floats, tight: Any, corner: Floats, scratch: Floats, counters: Any) -> int:
    """Go on to the best corner of all that is known from outside: FEASIBLE there; INFEASIBLE once it is proved that row r is negative in the cell."""
    p = corner.shape[1]
    for _ in range(_PIVOTS):
        bound = walls[p, r]
        for c in range(p):
            bound += walls[c, r] * corner[p, c]
        if bound < -_SURE:
            if _is_cut_off(r, walls, cuts, tight, corner, scratch):
                return INFEASIBLE
            _combined(r, walls, tight, corner, scratch)
            return INFEASIBLE if is_negative(walls[p + 2, r], frame, scratch) else UNCLEAR
        at, first = _worst(r, walls, corner, scratch), 0
        if at < 0:
            at, first = _worst(min(counters[ADDED], cuts.shape[1]), cuts, corner, scratch), CUT
        if at < 0:
            return FEASIBLE
        enter, worst = first + at, scratch[4, at]
        _express(enter, walls, cuts, corner)
        slot, least = -1, np.inf
        for i in range(p):
            rate, share = corner[p + 1, i], corner[p + 2, i]
            blocks = rate > PIVOT if share >= 0.0 else rate < -PIVOT
            if blocks and share / rate < least:
                slot, least = i, share / rate
        if slot < 0:
            return UNCLEAR
        for i in range(p):
            corner[p + 2, i] -= least * corner[p + 1, i]
        corner[p + 2, slot] = least
        _exchange(enter, slot, tight, corner)
        for c in range(p):
            corner[p, c] -= worst * corner[c, slot]
    return UNCLEAR


# fmt: on
