"""Whether a row is positive in a cell, asked in the few dimensions of the first layer; compiled with Numba.

In the coordinates z = F.u of `tessella.counting.rows` the inputs' box is a zonotope: the sum of as many segments as there are inputs.

**From outside** it is approximated by *cuts*, half-spaces that support it in directions which earlier questions led to; they hold in every cell.  A dual
simplex method over a cell's rows, the cuts and the bounds of z has as many tight constraints as there are dimensions, and a pivot touches no input.
When its bound is negative, the rows' multipliers prove it against the box itself, in double precision; cuts only led there.

**From inside**, a point z has inputs if sum_j huber(w_j.v) - v.z, over directions v, has a minimum (w_j is the frame's column of input j): there the inputs
clip(w_j.v) give z.  Newton's method finds it.  If there is none, v goes to infinity, and on its way becomes a cut between z and the zonotope.

What is left open after a few points goes to the simplex method over all inputs.
"""

from typing import Any

import numpy as np

from tessella.counting import rows as steps
from tessella.counting.rows import CLOSE, EDGE, FEASIBLE, INFEASIBLE, PIVOT, UNCLEAR, combine, is_negative, price
from tessella.kernel.compiling import compiler
from tessella.network import Floats

DIMENSIONS = 18  # up to so many it pays to ask here
CUT = 1 << 20  # codes of cuts begin here; those of rows at 0, and bounds of z are negative
ADDED = 11  # place of a counter: cuts ever added
MOST_CUTS = 512  # kept
_SLACK = 1e-11  # points stay this far inside their cell
_SURE = 1e-8  # a bound this far from zero is worth a proof, or a point
_SHARE = 0.98  # of the bound, where a point is looked for
_ENOUGH = 0.6  # of the bound, that a point must reach
_PIVOTS = 200
_CALLS = 4  # points looked for
_EVALUATIONS = 24  # of the function whose minimum gives the inputs of one
_AHEAD = 2.5  # where its search begins, if 1 were right for a point with all inputs between their ends
_SINGLE = 1e-5  # what is left to rounding in single precision

_compiled = compiler(steps.__file__, _nrt=False)

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


@_compiled
def _express(code: int, rows: Floats, cuts: Floats, corner: Floats) -> None:
    """A constraint's coefficients in the tight ones, in row p + 1 of ``corner``."""
    p = corner.shape[1]
    for i in range(p):
        corner[p + 1, i] = 0.0
    for c in range(p):
        rate = rows[code, c] if code < CUT else cuts[c, code - CUT]
        for i in range(p):
            corner[p + 1, i] += rate * corner[c, i]


@_compiled
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
def begin(r: int, wanted: Any, rows: Floats, cuts: Floats, tight: Any, corner: Floats) -> None:
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
        _express(code, rows, cuts, corner)
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
            corner[p + 2, i] -= rows[r, c] * corner[c, i]
    for i in range(p):
        code, value = tight[i], 1.0
        if corner[p + 2, i] >= 0.0:
            value = -1.0 if code < 0 else -rows[code, p] if code < CUT else -cuts[p, code - CUT]
        for c in range(p):
            corner[p, c] += value * corner[c, i]


@_compiled
def _combined(r: int, rows: Floats, tight: Any, corner: Floats, scratch: Floats) -> None:
    """Row r, with the tight rows' multipliers of them added, in scratch 3; behind it the size of all that."""
    p = corner.shape[1]
    for c in range(p + 1):
        scratch[3, c] = rows[r, c]
    scratch[3, p + 1] = 1.0
    for i in range(p):
        row, share = tight[i], corner[p + 2, i]
        if 0 <= row < CUT and share > 0.0:
            scratch[3, p + 1] += share
            for c in range(p + 1):
                scratch[3, c] += share * rows[row, c]


@_compiled
def _reach(r: int, rows: Floats, spots: Floats, scratch: Floats) -> float:
    """How many times as far from the middle as it may be spot 0 is, 1 if it is in the cell; row r there, pulled back so far, is put into scratch 7."""
    p, far = rows.shape[1] - 3, 1.0
    for row in range(r + 1):
        total = rows[row, p]
        for c in range(p):
            total += rows[row, c] * spots[0, c]
        if row < r:
            far = max(far, (scratch[6, row] - total) / (scratch[6, row] - _SLACK))
        else:
            scratch[7, 0] = scratch[6, r] + (total - scratch[6, r]) / far
    return far


@_compiled
def _newton(found: int, many: bool, gram: Floats, light: Any, newton: Floats, some: Any, order: Any) -> bool:
    """Newton's step, in row 2 of ``newton``, for the gradient in row 3; false if the second derivatives are singular.

    They are a sum over the listed inputs, or over all others if these are ``many``.
    """
    p = len(gram)
    for c in range(p):
        for i in range(found):
            some[c, i] = light[c, order[i]]
    for c in range(p):  # Cholesky's factors, from row 4 on
        for e in range(c + 1):
            single = np.float32(0.0)
            for i in range(found):
                single += some[c, i] * some[e, i]
            total = gram[c, e] - single if many else np.float64(single)
            for i in range(e):
                total -= newton[4 + c, i] * newton[4 + e, i]
            if e < c:
                newton[4 + c, e] = total / newton[4 + e, e]
            elif total > 1e-8 * gram[c, c]:
                newton[4 + c, c] = np.sqrt(total)
            else:
                return False
    for c in range(p):
        total = -newton[3, c]
        for i in range(c):
            total -= newton[4 + c, i] * newton[2, i]
        newton[2, c] = total / newton[4 + c, c]
    for c in range(p - 1, -1, -1):
        total = newton[2, c]
        for i in range(c + 1, p):
            total -= newton[4 + i, c] * newton[2, i]
        newton[2, c] = total / newton[4 + c, c]
    return True


@_compiled
def _look(
    r: int, bound: float, seen: float, gram: Floats, inward: Floats, frame: Floats, light: Any, rows: Floats, newton: Floats, some: Any,
    spots: Floats, scratch: Floats, order: Any, prices: Any,
) -> int:
    """Look for inputs that give the point in row 0 of ``newton``: FEASIBLE if they give a good point, in ``spots``; INFEASIBLE if scratch 3 cuts it off."""
    p, n = frame.shape
    zero, half, one = np.float32(0.0), np.float32(0.5), np.float32(1.0)
    for c in range(p):
        total = 0.0
        for e in range(p):
            total += inward[c, e] * newton[0, e]
        scratch[3, c] = _AHEAD * total
    before, part = np.inf, 1.0
    for _ in range(_EVALUATIONS):
        price(light, scratch, prices)
        size, value = zero, zero
        for j in range(n):
            whole = abs(prices[0, j])
            inner = min(whole, one)
            size += whole
            value += inner * (whole - half * inner)
        along = 0.0
        for c in range(p):
            along += scratch[3, c] * newton[0, c]
        if along > size * (1.0 + _SINGLE):
            return INFEASIBLE
        if value - along > before + _SINGLE * size:  # too far
            part *= 0.4
            if part < 1e-3:
                return UNCLEAR
            for c in range(p):
                scratch[3, c] = newton[1, c] + part * newton[2, c]
            continue
        before, part = value - along, 1.0
        for j in range(n):
            prices[1, j] = min(max(prices[0, j], -one), one)
        for c in range(p):
            single = zero
            for j in range(n):
                single += light[c, j] * prices[1, j]
            spots[0, c] = EDGE * single
            newton[3, c] = single - newton[0, c]
        _reach(r, rows, spots, scratch)
        if scratch[7, 0] > 1e-6 and scratch[7, 0] >= _ENOUGH * bound:  # now in double precision
            for j in range(n):
                scratch[4, j] = EDGE * prices[1, j]
            for c in range(p):
                total = 0.0
                for j in range(n):
                    total += frame[c, j] * scratch[4, j]
                spots[0, c] = total
            far = _reach(r, rows, spots, scratch)
            if scratch[7, 0] >= seen:
                share = 0.5 / far + 0.5 * (-scratch[6, r]) / (far * (scratch[7, 0] - scratch[6, r]))
                for c in range(p):
                    spots[1, c] = scratch[5, c] + (spots[0, c] - scratch[5, c]) / far
                    spots[2, c] = scratch[5, c] + (spots[0, c] - scratch[5, c]) * share
                return FEASIBLE
        found = 0
        for j in range(n):
            order[found] = j
            found += 1 if abs(prices[0, j]) < one else 0
        many = 2 * found > n
        if many:  # those at their ends are fewer
            found = 0
            for j in range(n):
                order[found] = j
                found += 1 if abs(prices[0, j]) >= one else 0
        if not _newton(found, many, gram, light, newton, some, order):
            return UNCLEAR
        for c in range(p):
            newton[1, c] = scratch[3, c]
            scratch[3, c] += newton[2, c]
    return UNCLEAR


@_compiled
def descend(r: int, frame: Floats, rows: Floats, cuts: Floats, tight: Any, corner: Floats, scratch: Floats, counters: Any) -> int:
    """Go on to the best corner of all that is known from outside: FEASIBLE there; INFEASIBLE once it is proved that row r is negative in the cell."""
    p = corner.shape[1]
    for _ in range(_PIVOTS):
        bound = rows[r, p]
        for c in range(p):
            bound += rows[r, c] * corner[p, c]
        if bound < -_SURE:
            _combined(r, rows, tight, corner, scratch)
            return INFEASIBLE if is_negative(rows[r, p + 2], frame, scratch) else UNCLEAR
        enter, worst = -1, -CLOSE
        for row in range(r):
            total = rows[row, p]
            for c in range(p):
                total += rows[row, c] * corner[p, c]
            if total < worst:
                enter, worst = row, total
        if enter < 0:
            number = min(counters[ADDED], cuts.shape[1])
            for t in range(number):
                scratch[4, t] = cuts[p, t]
            for c in range(p):
                rate = corner[p, c]
                for t in range(number):
                    scratch[4, t] += rate * cuts[c, t]
            for t in range(number):
                worst = min(worst, scratch[4, t])
            if worst < -CLOSE:
                enter = 0
                while scratch[4, enter] != worst:
                    enter += 1
                enter += CUT
        if enter < 0:
            return FEASIBLE
        _express(enter, rows, cuts, corner)
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


@_compiled
def decide(
    r: int, wanted: Any, seen: float, gram: Floats, inward: Floats, frame: Floats, light: Any, rows: Floats,
    cuts: Floats, tight: Any, corner: Floats, newton: Floats, some: Any, spots: Floats, scratch: Floats, order: Any, prices: Any, counters: Any,
) -> int:
    """Whether row r is positive somewhere in the cell of the rows before it, whose middle is scratch 5, with the rows' values there in scratch 6.

    If so, row 1 of ``spots`` is such a point, and row 2 one that lies deeper in the cell.
    """
    p = corner.shape[1]
    begin(r, wanted, rows, cuts, tight, corner)
    for call in range(_CALLS + 1):
        status = descend(r, frame, rows, cuts, tight, corner, scratch, counters)
        if status != FEASIBLE:
            return status
        bound = rows[r, p]
        for c in range(p):
            bound += rows[r, c] * corner[p, c]
        if bound < _SURE or call == _CALLS:
            return UNCLEAR
        share = (_SHARE * bound - scratch[6, r]) / (bound - scratch[6, r])
        for c in range(p):
            newton[0, c] = scratch[5, c] + share * (corner[p, c] - scratch[5, c])
        status = _look(r, bound, seen, gram, inward, frame, light, rows, newton, some, spots, scratch, order, prices)
        if status != INFEASIBLE:
            return status
        cut(frame, cuts, tight, scratch, counters)
    return UNCLEAR


# fmt: on
