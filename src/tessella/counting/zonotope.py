"""Whether a row is positive in a cell, asked in the few dimensions of the first layer; compiled with Numba.

In the coordinates z = F.u of `tessella.counting.rows` the inputs' box is a zonotope: the sum of as many segments as there are inputs.

**From outside** it is approximated by *cuts*, half-spaces that support it in directions which earlier questions led to; they hold in every cell.  A dual
simplex method over a cell's rows, the cuts and the bounds of z has as many tight constraints as there are dimensions, and a pivot touches no input.
When its bound is negative, the multipliers of rows and cuts prove it, in double precision; if rounding spoils that, the rows' multipliers alone are tried against the box itself.

**From inside**, a point z has inputs if sum_j huber(w_j.v) - v.z, over directions v, has a minimum (w_j is the frame's column of input j): there the inputs
clip(w_j.v) give z.  Newton's method finds it, from the lowest point of the line through what were right if all inputs lay between their ends.  If there is none, v goes to infinity, and on its way becomes a cut between z and the zonotope.

What is left open after a few points goes to the simplex method over all inputs.
"""

from typing import Any

import numpy as np

from tessella.counting import rows as steps
from tessella.counting.rows import CLOSE, EDGE, FEASIBLE, INFEASIBLE, MARGIN, PIVOT, UNCLEAR, combine, is_negative, price
from tessella.kernel.compiling import compiler
from tessella.network import Floats

DIMENSIONS = 18  # up to so many it pays to ask here
CUT = 1 << 20  # codes of cuts begin here; those of rows at 0, and bounds of z are negative
ADDED = 11  # place of a counter: cuts ever added
MOST_CUTS = 128  # kept
_SLACK = 1e-11  # points stay this far inside their cell
_SURE = 1e-8  # a bound this far from zero is worth a proof, or a point
_SHARE = 0.9  # of the bound, where a point is looked for
_ENOUGH = 0.6  # of the bound, that a point must reach
_PIVOTS = 200
_CALLS = 4  # points looked for
_EVALUATIONS = 24  # of the function whose minimum gives the inputs of one
_AHEAD, _LINE, _FURTHEST = 1.5, 3, 50.0  # where the search along its first line begins, its steps, and how far they lead
_SINGLE = 1e-5  # what is left to rounding in single precision

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
def deeper(middle: float, value: float, far: float) -> float:
    """Where a second point lies on the line from the middle to a spot ``far`` times too far away: halfway between the last point in the cell and the row's zero.

    If the row is positive at the middle, it has no zero between, and halfway to the middle.
    """
    return (0.5 + 0.5 * middle / (middle - value) if middle < 0.0 else 0.5) / far


@_inlined
def _reach(r: int, walls: Floats, spots: Floats, scratch: Floats) -> float:
    """How many times as far from the middle as it may be spot 0 is, 1 if it is in the cell; row r there, pulled back so far, is put into scratch 7."""
    p, far = len(walls) - 3, 1.0
    for row in range(r + 1):
        scratch[7, row] = walls[p, row]
    for c in range(p):
        rate = spots[0, c]
        for row in range(r + 1):
            scratch[7, row] += rate * walls[c, row]
    for row in range(r):
        far = max(far, (scratch[6, row] - scratch[7, row]) / (scratch[6, row] - _SLACK))
    scratch[7, 0] = scratch[6, r] + (scratch[7, r] - scratch[6, r]) / far
    return far


@_inlined
def _newton(gram: Floats, light: Any, newton: Floats, prices: Any) -> bool:
    """Newton's step, in row 2 of ``newton``, for the gradient in row 3; false if the second derivatives are singular.

    They are a sum over the inputs that prices 2 marks by ones; all others are zeros there, which is faster than a list.
    """
    p, n = light.shape
    for c in range(p):  # the second derivatives, from row 4 on: four at a time, of which some may not be wanted
        e = 0
        while e <= c:
            if e + 4 <= p:
                s0, s1, s2, s3 = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
                for j in range(n):
                    marked = prices[2, j] * light[c, j]
                    s0 += marked * light[e, j]
                    s1 += marked * light[e + 1, j]
                    s2 += marked * light[e + 2, j]
                    s3 += marked * light[e + 3, j]
                newton[4 + c, e], newton[4 + c, e + 1], newton[4 + c, e + 2], newton[4 + c, e + 3] = s0, s1, s2, s3
                e += 4
            else:
                s0 = np.float32(0.0)
                for j in range(n):
                    s0 += prices[2, j] * light[c, j] * light[e, j]
                newton[4 + c, e] = s0
                e += 1
    for c in range(p):  # Cholesky's factors in their place
        for e in range(c + 1):
            total = newton[4 + c, e]
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


@_inlined
def _aim(inward: Floats, light: Any, newton: Floats, scratch: Floats, prices: Any) -> None:
    """Where the search for the point in row 0 of ``newton`` begins, in scratch 3: near the minimum on the line through what is right if all inputs lie between their ends."""
    p, n = light.shape
    along, zero = 0.0, np.float32(0.0)
    for c in range(p):
        total = 0.0
        for e in range(p):
            total += inward[c, e] * newton[0, e]
        scratch[3, c] = total
        along += total * newton[0, c]
    price(light, scratch, prices)
    for j in range(n):
        prices[0, j] = abs(prices[0, j])
    ahead = _AHEAD
    for _ in range(_LINE):  # towards the minimum along that line, from below: the slope is concave
        inside, outside, end = zero, zero, np.float32(1.0 / ahead)
        for j in range(n):
            inside += prices[0, j] * prices[0, j] if prices[0, j] < end else zero
            outside += prices[0, j] if prices[0, j] >= end else zero
        if not ahead * inside * 1.1 < along - outside < _FURTHEST * inside:
            break
        ahead = (along - outside) / inside
    for c in range(p):
        scratch[3, c] *= ahead


@_compiled
def _look(
    r: int, bound: float, seen: float, gram: Floats, inward: Floats, frame: Floats, light: Any, walls: Floats, newton: Floats,
    spots: Floats, scratch: Floats, prices: Any,
) -> int:
    """Look for inputs that give the point in row 0 of ``newton``: FEASIBLE if they give a good point, in ``spots``; INFEASIBLE if scratch 3 cuts it off."""
    p, n = frame.shape
    zero, half, one = np.float32(0.0), np.float32(0.5), np.float32(1.0)
    _aim(inward, light, newton, scratch, prices)
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
        _reach(r, walls, spots, scratch)
        if scratch[7, 0] > 1e-6 and scratch[7, 0] >= _ENOUGH * bound:  # now in double precision
            for j in range(n):
                scratch[4, j] = EDGE * prices[1, j]
            for c in range(p):
                total = 0.0
                for j in range(n):
                    total += frame[c, j] * scratch[4, j]
                spots[0, c] = total
            far = _reach(r, walls, spots, scratch)
            if scratch[7, 0] >= seen:
                share = deeper(scratch[6, r], scratch[7, 0], far)
                for c in range(p):
                    spots[1, c] = scratch[5, c] + (spots[0, c] - scratch[5, c]) / far
                    spots[2, c] = scratch[5, c] + (spots[0, c] - scratch[5, c]) * share
                return FEASIBLE
        for j in range(n):
            prices[2, j] = one if abs(prices[0, j]) < one else zero
        if not _newton(gram, light, newton, prices):
            return UNCLEAR
        for c in range(p):
            newton[1, c] = scratch[3, c]
            scratch[3, c] += newton[2, c]
    return UNCLEAR


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


@_compiled
def decide(
    r: int, wanted: Any, seen: float, gram: Floats, inward: Floats, frame: Floats, light: Any, walls: Floats,
    cuts: Floats, tight: Any, corner: Floats, newton: Floats, spots: Floats, scratch: Floats, prices: Any, counters: Any,
) -> int:
    """Whether row r is positive somewhere in the cell of the rows before it, whose middle is scratch 5, with the rows' values there in scratch 6.

    If so, row 1 of ``spots`` is such a point, and row 2 one that lies deeper in the cell.
    """
    p = corner.shape[1]
    begin(r, wanted, walls, cuts, tight, corner)
    for call in range(_CALLS + 1):
        status = descend(r, frame, walls, cuts, tight, corner, scratch, counters)
        if status != FEASIBLE:
            return status
        bound = walls[p, r]
        for c in range(p):
            bound += walls[c, r] * corner[p, c]
        if bound < _SURE or call == _CALLS:
            return UNCLEAR
        share = (_SHARE * bound - scratch[6, r]) / (bound - scratch[6, r])
        for c in range(p):
            newton[0, c] = scratch[5, c] + share * (corner[p, c] - scratch[5, c])
        status = _look(r, bound, seen, gram, inward, frame, light, walls, newton, spots, scratch, prices)
        if status != INFEASIBLE:
            return status
        cut(frame, cuts, tight, scratch, counters)
    return UNCLEAR


# fmt: on
