"""The best point of a cell that is a mixture of known tips of the zonotope; compiled with Numba.

In the coordinates of `tessella.cells.cuts` the inputs' box is a zonotope.  Its *tip* in a direction is where all inputs stand at the end that the
direction favours; mixtures of tips lie in it, and tips know nothing of cells, so those found for one question serve all others.

A simplex method over their weights finds the mixture that lies in the cell and where a row is largest (Dantzig and Wolfe 1960).  Its basis has as many members as the cell
has rows, and one more: tips, and the slacks of rows that are not tight.  It begins with the cell's middle and no tip, or, in the same cell, where the last question ended.  At its end the rows' multipliers
give a direction, whose tip is the best that there is: it bounds the row from above, proves that it is negative, or joins the others.
"""

from typing import Any

import numpy as np

from tessella.cells.old import cuts as zonotope
from tessella.cells.old import rows as steps
from tessella.cells.old.cuts import cut
from tessella.cells.old.rows import EDGE, FEASIBLE, INFEASIBLE, ITERATIONS, MARGIN, UNCLEAR, combine
from tessella.kernel.compiling import compiler
from tessella.network import Floats

SLACK = 1e-11  # points stay this far inside their cell, in rows of size 1; rounding is a fifth of that at most
SEEN = 1e-10  # a point this far on a side shows that the side exists
MOST_TIPS = 128  # kept
TIPS, MIXED = 12, 13  # places of counters: tips ever found; rows of the cell that the basis is for and one more, or none
_GAIN = 1e-6  # what a tip must promise, in single precision
_RATE = 1e-9  # the same of a row that is no longer to be tight, and of what leaves
_CLOSE = 1e-10  # between the best mixture and what there can be
_NOTHING = 1e-13  # multipliers that are rounding
_PIVOTS, _ROUNDS = 300, 24

_compiled = compiler(steps.__file__, zonotope.__file__, _nrt=False)
_inlined = compiler(steps.__file__, zonotope.__file__, _nrt=False, inline="always")

# fmt: off


@_inlined
def _begin(r: int, tips: Floats, mixed: Any, blend: Floats, scratch: Floats) -> None:
    """Begin with the cell's middle, scratch 5 and 6, and the slacks of all its rows.

    Column q of ``blend`` is the inverse's row of the basis' member q; behind them stands the multipliers' column.
    """
    p, last = tips.shape[1], len(tips) - 1
    for c in range(p):
        tips[last, c] = scratch[5, c]
    for i in range(r + 1):
        for q in range((r + 9) // 8 * 8):
            blend[i, q] = 0.0
    for i in range(r):
        mixed[i] = -1 - i
        blend[i, i], blend[r, i] = -1.0, max(scratch[6, i], 0.0)
    mixed[r], blend[r, r] = last, 1.0


@_inlined
def _multipliers(r: int, rows: Floats, tips: Floats, mixed: Any, blend: Floats, scratch: Floats) -> None:
    """The multipliers of the rows at the basis, for row r as the goal, in column r + 1 of ``blend``; behind them, the goal's value, negated."""
    p = tips.shape[1]
    for q in range(r + 1):
        worth, at = 0.0, mixed[q]
        if at >= 0:
            worth = rows[r, p]
            for c in range(p):
                worth += rows[r, c] * tips[at, c]
        scratch[2, q] = worth
    for i in range(r + 1):
        total = 0.0
        for q in range(r + 1):
            total += scratch[2, q] * blend[i, q]
        blend[i, r + 1] = -total


@_inlined
def _add(number: int, width: int, matrix: Floats, rates: int, to: int, scratch: Floats) -> None:
    """Add the first so many rows of a matrix, at the rates in one row of scratch, to another row of it; four at a time."""
    whole = number - number % 4
    for i in range(0, whole, 4):
        r0, r1, r2, r3 = scratch[rates, i], scratch[rates, i + 1], scratch[rates, i + 2], scratch[rates, i + 3]
        for c in range(width):
            scratch[to, c] += r0 * matrix[i, c] + r1 * matrix[i + 1, c] + r2 * matrix[i + 2, c] + r3 * matrix[i + 3, c]
    for i in range(whole, number):
        r0 = scratch[rates, i]
        for c in range(width):
            scratch[to, c] += r0 * matrix[i, c]


@_inlined
def _direction(r: int, rows: Floats, blend: Floats, scratch: Floats) -> None:
    """Row r and the rows' multipliers of them, added up, in scratch 3."""
    p = rows.shape[1] - 3
    for c in range(p + 1):
        scratch[3, c] = rows[r, c]
    for i in range(r):
        scratch[2, i] = blend[i, r + 1]
    _add(r, p + 1, rows, 2, 3, scratch)


@_inlined
def _best(number: int, least: float, faint: Any, worth: Any, scratch: Floats) -> int:
    """The tip that promises most, of the first so many, and more than the least; -1 if none does."""
    p, size, c = len(faint), len(worth), 0
    start = np.float32(scratch[3, p])
    for k in range(size):
        worth[k] = start
    while c + 4 <= p:
        r0, r1, r2, r3 = np.float32(scratch[3, c]), np.float32(scratch[3, c + 1]), np.float32(scratch[3, c + 2]), np.float32(scratch[3, c + 3])
        for k in range(size):
            worth[k] += r0 * faint[c, k] + r1 * faint[c + 1, k] + r2 * faint[c + 2, k] + r3 * faint[c + 3, k]
        c += 4
    while c < p:
        r0 = np.float32(scratch[3, c])
        for k in range(size):
            worth[k] += r0 * faint[c, k]
        c += 1
    floor = np.float32(least)
    w0, w1, w2, w3, whole = floor, floor, floor, floor, number - number % 4
    for k in range(0, whole, 4):  # each maximum waits for the one before it
        w0 = max(w0, worth[k])
        w1 = max(w1, worth[k + 1])
        w2 = max(w2, worth[k + 2])
        w3 = max(w3, worth[k + 3])
    for k in range(whole, number):
        w0 = max(w0, worth[k])
    most, found = max(w0, w1, w2, w3), -1
    if most > floor:
        found = 0
        while worth[found] != most:
            found += 1
    return found


@_inlined
def _exchange(r: int, enter: int, walls: Floats, tips: Floats, mixed: Any, blend: Floats, scratch: Floats) -> bool:
    """Let a tip, or the slack of row -1 - enter, come into the basis for what reaches zero first; false if nothing does."""
    p, m = tips.shape[1], r + 1
    wide, tall = (m + 8) // 8 * 8, (m + 7) // 8 * 8  # whole vectors
    if enter >= 0:
        for i in range(tall):
            scratch[0, i] = walls[p, i]
        for c in range(p):
            scratch[2, c] = tips[enter, c]
        _add(p, tall, walls, 2, 0, scratch)
        worth, scratch[0, r] = scratch[0, r], 1.0
        for q in range(wide):
            scratch[1, q] = 0.0
        _add(m, wide, blend, 0, 1, scratch)
        scratch[1, m] += worth
    else:
        for q in range(wide):
            scratch[1, q] = -blend[-1 - enter, q]
    leave, least = -1, np.inf
    for q in range(m):
        if scratch[1, q] > _RATE:
            step = max(blend[r, q], 0.0) / scratch[1, q]
            if step < least:
                leave, least = q, step
    if leave < 0:
        return False
    share = 1.0 / scratch[1, leave]
    scratch[1, leave] -= 1.0
    for i in range(m):
        rate = share * blend[i, leave]
        for q in range(wide):
            blend[i, q] -= rate * scratch[1, q]
    mixed[leave] = enter
    return True


@_inlined
def _blended(r: int, tips: Floats, mixed: Any, blend: Floats, spots: Floats) -> None:
    """The mixture, in row 0 of ``spots``."""
    p, total = tips.shape[1], 0.0
    for c in range(p):
        spots[0, c] = 0.0
    for q in range(r + 1):
        at, share = mixed[q], blend[r, q]
        if at >= 0 and share > 0.0:
            total += share
            for c in range(p):
                spots[0, c] += share * tips[at, c]
    for c in range(p):
        spots[0, c] /= total


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
        far = max(far, (scratch[6, row] - scratch[7, row]) / (scratch[6, row] - SLACK))
    scratch[7, 0] = scratch[6, r] + (scratch[7, r] - scratch[6, r]) / far
    return far


@_inlined
def _halfway(r: int, walls: Floats, spots: Floats, scratch: Floats) -> bool:
    """Let the middle lie halfway to the mixture, if it was too close to a wall and is not there."""
    p, least, worst = len(walls) - 3, np.inf, np.inf
    for row in range(r + 1):
        total = walls[p, row]
        for c in range(p):
            total += walls[c, row] * 0.5 * (scratch[5, c] + spots[0, c])
        scratch[7, row] = total
    for row in range(r):
        least = min(least, scratch[6, row])
        worst = min(worst, scratch[7, row])
    if r == 0 or not (worst >= 2.0 * least and worst >= 2.0 * SLACK):
        return False
    for c in range(p):
        scratch[5, c] = 0.5 * (scratch[5, c] + spots[0, c])
    for row in range(r + 1):
        scratch[6, row] = scratch[7, row]
    return True


@_inlined
def _point(r: int, deep: bool, walls: Floats, spots: Floats, scratch: Floats) -> bool:
    """Whether the mixture, pulled to a middle that is deep in the cell, is a point where row r is positive: then in ``spots``, with one that lies deeper."""
    if not deep:
        return False
    p, far = len(walls) - 3, _reach(r, walls, spots, scratch)
    if not scratch[7, 0] >= SEEN:
        return False
    share = deeper(scratch[6, r], scratch[7, 0], far)
    for c in range(p):
        spots[1, c] = scratch[5, c] + (spots[0, c] - scratch[5, c]) / far
        spots[2, c] = scratch[5, c] + (spots[0, c] - scratch[5, c]) * share
    return True


@_compiled
def _tip(r: int, frame: Floats, tips: Floats, faint: Any, mixed: Any, scratch: Floats, counters: Any) -> int:
    """Put the tip in direction scratch 3, of which scratch 4 are the inputs' rates, in place of the oldest that is not in the basis; where it is."""
    p, n = frame.shape
    at = counters[TIPS] % (len(tips) - 1)
    q = 0
    while q <= r:
        q += 1
        if mixed[q - 1] == at:
            counters[TIPS] += 1
            at, q = counters[TIPS] % (len(tips) - 1), 0
    counters[TIPS] += 1
    for j in range(n):
        scratch[4, j] = EDGE if scratch[4, j] > 0.0 else -EDGE
    for c in range(p):
        total = 0.0
        for j in range(n):
            total += frame[c, j] * scratch[4, j]
        tips[at, c] = faint[c, at] = total
    return at


@_inlined
def _prove(r: int, frame: Floats, rows: Floats, blend: Floats, picks: Any, scratch: Floats) -> tuple[float, float]:
    """What the rows' multipliers prove: the most that row r can be in the cell, and what is to be added to it to be sure.

    The combination of rows is put into scratch 3, the inputs' rates into scratch 4, and which rows are in it into row 0 of ``picks``, their number into row 1.
    """
    p, n = frame.shape
    size, found = 1.0, 0
    for c in range(p + 1):
        scratch[3, c] = rows[r, c]
    for i in range(r):
        share = blend[i, r + 1]
        if share > _NOTHING:
            size += share
            for c in range(p + 1):
                scratch[3, c] += share * rows[i, c]
            picks[0, found] = i
            found += 1
    picks[1, 0] = found
    combine(frame, scratch)
    most = scratch[3, p]
    for j in range(n):
        most += abs(scratch[4, j])
    return most, 4.0 * MARGIN * size + rows[r, p + 2]


@_compiled
def mix(
    r: int, deep: bool, narrow: bool, frame: Floats, rows: Floats, walls: Floats, cuts: Floats, tight: Any, tips: Floats, faint: Any, worth: Any,
    mixed: Any, blend: Floats, picks: Any, spots: Floats, scratch: Floats, counters: Any,
) -> int:
    """Whether row r is positive somewhere in the cell of the rows before it, whose middle is scratch 5, with the rows' values there in scratch 6, and ``deep`` or not.

    If so, row 1 of ``spots`` is such a point, and row 2 one that lies deeper in the cell.  If not, row 0 of ``picks`` lists the rows that prove it, and their number is in row 1.
    Row 0 of ``spots`` is the mixture where it ended, unless there is a proof.  If ``narrow``, new directions become cuts, too.
    """
    if counters[MIXED] != r + 1:
        _begin(r, tips, mixed, blend, scratch)
        counters[MIXED] = r + 1
    _multipliers(r, rows, tips, mixed, blend, scratch)
    rounds, value = 0, -1.0
    for _ in range(_PIVOTS):
        value, enter, best = -blend[r, r + 1], r + 1, -_RATE
        for i in range(r):  # rows that should not be tight come first: tips need not be looked at
            if blend[i, r + 1] < best:
                best, enter = blend[i, r + 1], -1 - i
        if enter == r + 1:
            _direction(r, rows, blend, scratch)
            enter = _best(min(counters[TIPS], len(worth)), value + _GAIN, faint, worth, scratch)
            if enter < 0:  # none of the known tips is better
                if value >= SEEN:
                    _blended(r, tips, mixed, blend, spots)
                    if _point(r, deep, walls, spots, scratch):
                        return FEASIBLE
                most, more = _prove(r, frame, rows, blend, picks, scratch)
                if most + more < 0.0:
                    return INFEASIBLE
                if rounds == _ROUNDS or most - value < _CLOSE or most < 0.0:
                    break
                if narrow:
                    cut(frame, cuts, tight, scratch, counters)
                enter = _tip(r, frame, tips, faint, mixed, scratch, counters)
                rounds += 1
        counters[ITERATIONS] += 1
        if not _exchange(r, enter, walls, tips, mixed, blend, scratch):
            break
    counters[MIXED] = 0
    _blended(r, tips, mixed, blend, spots)
    if value >= SEEN and _halfway(r, walls, spots, scratch) and _point(r, True, walls, spots, scratch):
        return FEASIBLE
    return UNCLEAR


# fmt: on
