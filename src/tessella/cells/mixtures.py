"""The best point of a cell that is a mixture of known tips of the zonotope; compiled with Numba.

In the coordinates of `tessella.cells.cuts` the inputs' box is a zonotope.  Its *tip* in a direction is where all inputs stand at the end that the direction favours; mixtures of tips lie
in it, and tips know nothing of cells, so those found for one question serve all others.

A simplex method over their weights finds the mixture that lies in the cell and where a row is largest (Dantzig and Wolfe 1960).  Its basis has as many members as the cell has rows, and
one more: tips, and the slacks of rows that are not tight.  It begins with the cell's middle and no tip, or, in the same cell, where the last question ended.  At its end the rows'
multipliers give a direction, whose tip is the best that there is: it bounds the row from above, proves that it is negative, or joins the others.
"""

import numpy as np

from tessella.cells.cuts import Outside, cut
from tessella.cells.rows import combine
from tessella.cells.state import FEASIBLE, INFEASIBLE, UNCLEAR, Cell, Space
from tessella.cells.sums import sum_rows
from tessella.kernel.functions import apart, compiled, inlined
from tessella.kernel.record import Matrix, Record, SingleMatrix, Singles, Vector, Whole, zeros
from tessella.numerics import EDGE, NOTHING, PROOF, SEEN, SLACK

MOST_TIPS = 128  # kept
_GAIN = 1e-6  # what a tip must promise, in single precision
_RATE = 1e-9  # the same of a row that is no longer to be tight, and of what leaves
_NEAR = 1e-10  # between the best mixture and what there can be
_PIVOTS, _ROUNDS = 300, 24
_LANES = 8  # numbers that are worked on at once
SPARE = _LANES  # columns of walls behind those of the cell that are read, and mean nothing


class Inside(Record):
    """What is known of a cell from inside: its middle, points found, and mixtures of tips.

    Invariant while ``begun`` is r + 1, for a cell of r rows: members[q], for q up to r, are tips (by their number) or slacks (-1 - i for row i), and column q of ``inverse`` is the row of the
    basis' inverse that belongs to member q; behind these columns stands the column of the rows' multipliers.  So inverse[r, q] is the weight of member q.
    """

    middle: Vector  # a point of the cell
    depths: Vector  # the rows' values there
    spot: Vector  # where the last search ended
    point: Vector  # a point of the cell on the side that was asked for
    deeper: Vector  # one on the same side that lies deeper in the cell
    tips: Matrix  # the last line is the cell's middle
    light: SingleMatrix  # the tips in single precision, a column each
    worth: Singles  # of tips, for the row asked about
    members: Whole
    inverse: Matrix
    found: int  # tips ever found
    begun: int  # rows of the cell that the basis is for, and one more; 0 if there is none
    # memory for steps
    entering: Vector  # the entering tip's values in all rows
    changes: Vector  # of the members' weights
    rates: Vector  # what lines of a matrix are multiplied by before they are added up
    values: Vector  # of rows at a point

    @classmethod
    def of(cls, corners: Matrix, rows: int, mixed: int) -> "Inside":
        """Begin with some tips, for cells of so many rows; mixtures are only asked of cells with fewer than ``mixed`` rows."""
        p, wide = corners.shape[1], max(rows, corners.shape[1]) + 2 * _LANES
        tips = zeros(MOST_TIPS + 1, p)
        tips[: len(corners)] = corners
        light = zeros(p, MOST_TIPS, kind=np.float32)
        light[:] = tips[:-1].T
        return cls(
            **{name: zeros(p) for name in ("middle", "spot", "point", "deeper")},
            **{name: zeros(wide) for name in ("depths", "entering", "changes", "rates", "values")},
            tips=tips,
            light=light,
            worth=zeros(MOST_TIPS, kind=np.float32),
            members=zeros(mixed, kind=np.int64),
            inverse=zeros(mixed, mixed + _LANES),
            found=len(corners),
        )


@inlined
def _begin(inside: Inside, r: int) -> None:
    """Let the basis be the cell's middle and the slacks of all its rows."""
    tips, members, inverse = inside.tips, inside.members, inside.inverse
    last = len(tips) - 1
    for c in range(tips.shape[1]):
        tips[last, c] = inside.middle[c]
    for i in range(r + 1):
        for q in range((r + 9) // _LANES * _LANES):
            inverse[i, q] = 0.0
    for i in range(r):
        members[i] = -1 - i
        inverse[i, i], inverse[r, i] = -1.0, max(inside.depths[i], 0.0)
    members[r], inverse[r, r] = last, 1.0
    inside.begun = r + 1


@inlined
def _find_multipliers(inside: Inside, row: Vector, r: int) -> None:
    """Put the rows' multipliers at the basis, for row r as the goal, into column r + 1 of the inverse; behind them, the goal's value, negated."""
    tips, members, inverse, worth = inside.tips, inside.members, inside.inverse, inside.rates
    p = tips.shape[1]
    for q in range(r + 1):
        total, at = 0.0, members[q]
        if at >= 0:
            total = row[p]
            for c in range(p):
                total += row[c] * tips[at, c]
        worth[q] = total
    for i in range(r + 1):
        total = 0.0
        for q in range(r + 1):
            total += worth[q] * inverse[i, q]
        inverse[i, r + 1] = -total


@compiled
def _add(lines: int, width: int, matrix: Matrix, rates: Vector, result: Vector) -> None:
    """Add the first so many lines of a matrix, at these rates, to the result; four at a time."""
    whole = lines - lines % 4
    for i in range(0, whole, 4):
        r0, r1, r2, r3 = rates[i], rates[i + 1], rates[i + 2], rates[i + 3]
        for c in range(width):
            result[c] += r0 * matrix[i, c] + r1 * matrix[i + 1, c] + r2 * matrix[i + 2, c] + r3 * matrix[i + 3, c]
    for i in range(whole, lines):
        r0 = rates[i]
        for c in range(width):
            result[c] += r0 * matrix[i, c]


@inlined
def _direct(inside: Inside, rows: Matrix, r: int, combination: Vector) -> None:
    """Let the combination be row r and the rows' multipliers of them, added up."""
    p = rows.shape[1] - 3
    for c in range(p + 1):
        combination[c] = rows[r, c]
    for i in range(r):
        inside.rates[i] = inside.inverse[i, r + 1]
    _add(r, p + 1, rows, inside.rates, combination)


@inlined
def _price_tips(inside: Inside, combination: Vector) -> None:
    """What all tips are worth in a direction, in single precision."""
    sum_rows(inside.light, combination, inside.worth, combination[len(inside.light)], np.float32)


@inlined
def _best_tip(inside: Inside, combination: Vector, least: float) -> int:
    """The known tip that promises most in a direction, and more than the least; -1 if none does."""
    _price_tips(inside, combination)
    worth = inside.worth
    number, floor = min(inside.found, len(worth)), np.float32(least)
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


@inlined
def _change_of_members(inside: Inside, walls: Matrix, r: int, enter: int) -> None:
    """Put into ``changes`` by how much the members' weights fall, and the goal rises behind them, where a tip, or the slack of row -1 - enter, comes in."""
    inverse, changes, entering, rates = inside.inverse, inside.changes, inside.entering, inside.rates
    p, m = inside.tips.shape[1], r + 1
    wide, tall = (m + 8) // _LANES * _LANES, (m + 7) // _LANES * _LANES
    if enter < 0:
        for q in range(wide):
            changes[q] = -inverse[-1 - enter, q]
        return
    for i in range(tall):
        entering[i] = walls[p, i]
    for c in range(p):
        rates[c] = inside.tips[enter, c]
    _add(p, tall, walls, rates, entering)
    worth, entering[r] = entering[r], 1.0
    for q in range(wide):
        changes[q] = 0.0
    _add(m, wide, inverse, entering, changes)
    changes[m] += worth


@inlined
def _exchange(inside: Inside, walls: Matrix, r: int, enter: int) -> bool:
    """Let a tip, or the slack of row -1 - enter, come into the basis for the member whose weight reaches zero first; false if none does."""
    _change_of_members(inside, walls, r, enter)
    inverse, changes, m = inside.inverse, inside.changes, r + 1
    wide = (m + 8) // _LANES * _LANES
    leave, least = -1, np.inf
    for q in range(m):
        if changes[q] > _RATE:
            step = max(inverse[r, q], 0.0) / changes[q]
            if step < least:
                leave, least = q, step
    if leave < 0:
        return False
    share = 1.0 / changes[leave]
    changes[leave] -= 1.0
    for i in range(m):
        rate = share * inverse[i, leave]
        for q in range(wide):
            inverse[i, q] -= rate * changes[q]
    inside.members[leave] = enter
    return True


@inlined
def _blend(inside: Inside, r: int) -> None:
    """Let the spot be the mixture."""
    tips, members, spot = inside.tips, inside.members, inside.spot
    p, total = tips.shape[1], 0.0
    for c in range(p):
        spot[c] = 0.0
    for q in range(r + 1):
        at, share = members[q], inside.inverse[r, q]
        if at >= 0 and share > 0.0:
            total += share
            for c in range(p):
                spot[c] += share * tips[at, c]
    for c in range(p):
        spot[c] /= total


@compiled
def share_of_deeper(middle: float, value: float, far: float) -> float:
    """Where a second point lies on the line from the middle to a spot ``far`` times too far away: halfway between the last point in the cell and the row's zero.

    If the row is positive at the middle, it has no zero between, and the second point lies halfway to the middle.
    """
    return (0.5 + 0.5 * middle / (middle - value) if middle < 0.0 else 0.5) / far


@inlined
def _reach(inside: Inside, walls: Matrix, r: int) -> tuple[float, float]:
    """How many times as far from the middle as it may be the spot is, 1 if it is in the cell; and row r there, pulled back so far."""
    values, depths, spot = inside.values, inside.depths, inside.spot
    p, far = len(spot), 1.0
    for row in range(r + 1):
        values[row] = walls[p, row]
    for c in range(p):
        rate = spot[c]
        for row in range(r + 1):
            values[row] += rate * walls[c, row]
    for row in range(r):
        far = max(far, (depths[row] - values[row]) / (depths[row] - SLACK))
    return far, depths[r] + (values[r] - depths[r]) / far


@inlined
def _move_halfway(inside: Inside, walls: Matrix, r: int) -> bool:
    """Let the middle lie halfway to the mixture, if it was too close to a wall and is not there; whether it moved."""
    values, depths, middle, spot = inside.values, inside.depths, inside.middle, inside.spot
    p, least, worst = len(spot), np.inf, np.inf
    for row in range(r + 1):
        total = walls[p, row]
        for c in range(p):
            total += walls[c, row] * 0.5 * (middle[c] + spot[c])
        values[row] = total
    for row in range(r):
        least = min(least, depths[row])
        worst = min(worst, values[row])
    if r == 0 or not (worst >= 2.0 * least and worst >= 2.0 * SLACK):
        return False
    for c in range(p):
        middle[c] = 0.5 * (middle[c] + spot[c])
    for row in range(r + 1):
        depths[row] = values[row]
    return True


@inlined
def _is_shown(inside: Inside, walls: Matrix, r: int) -> bool:
    """Whether the mixture, pulled to a middle that is deep in the cell, is a point where row r is positive: then that is the point, and a deeper one is found."""
    middle, spot = inside.middle, inside.spot
    far, value = _reach(inside, walls, r)
    if not value >= SEEN:
        return False
    share = share_of_deeper(inside.depths[r], value, far)
    for c in range(len(spot)):
        inside.point[c] = middle[c] + (spot[c] - middle[c]) / far
        inside.deeper[c] = middle[c] + (spot[c] - middle[c]) * share
    return True


@inlined
def _add_tip(inside: Inside, frame: Matrix, slopes: Vector, r: int) -> int:
    """Put the tip in the direction of these slopes, which become its inputs, in place of the oldest tip that is not in the basis; its number."""
    tips, members = inside.tips, inside.members
    found, kept, q = inside.found, len(inside.tips) - 1, 0
    while q <= r:
        q += 1
        if members[q - 1] == found % kept:
            found, q = found + 1, 0
    at, inside.found = found % kept, found + 1
    for j in range(len(slopes)):
        slopes[j] = EDGE if slopes[j] > 0.0 else -EDGE
    for c in range(len(frame)):
        total = 0.0
        for j in range(len(slopes)):
            total += frame[c, j] * slopes[j]
        tips[at, c] = inside.light[c, at] = total
    return at


@inlined
def _prove(cell: Cell, inside: Inside, r: int) -> tuple[float, float]:
    """What the rows' multipliers prove: the most that row r can be in the cell, and what is to be added to it to be sure.

    The combination of rows and its slopes stay in the cell's work, and the rows in it are listed in the cell's proof.
    """
    rows, proof, work, space = cell.rows, cell.proof, cell.work, cell.space
    combination, slopes = work.combination, work.slopes
    p, size, found = len(inside.middle), 1.0, 0
    for c in range(p + 1):
        combination[c] = rows[r, c]
    for i in range(r):
        share = inside.inverse[i, r + 1]
        if share > NOTHING:
            size += share
            for c in range(p + 1):
                combination[c] += share * rows[i, c]
            proof.rows[found] = i
            found += 1
    proof.size = found
    combine(space.frame, combination, slopes)
    most = combination[p]
    for j in range(len(slopes)):
        most += abs(slopes[j])
    return most, PROOF * size + rows[r, p + 2]


@inlined
def _slack_to_enter(inside: Inside, r: int) -> int:
    """The slack, -1 - i, of the row i that should be tight least; r + 1 if all may stay."""
    enter, best = r + 1, -_RATE
    for i in range(r):
        if inside.inverse[i, r + 1] < best:
            best, enter = inside.inverse[i, r + 1], -1 - i
    return enter


@inlined
def _end(inside: Inside, walls: Matrix, r: int, value: float) -> int:
    """The answer where no tip and no proof was found: a point, if the middle was too close to a wall."""
    inside.begun = 0
    _blend(inside, r)
    if value >= SEEN and _move_halfway(inside, walls, r) and _is_shown(inside, walls, r):
        return FEASIBLE
    return UNCLEAR


@apart
def mix(cell: Cell, outside: Outside, inside: Inside, r: int, deep: bool, narrow: bool) -> int:
    """Whether row r is positive somewhere in the cell of the rows before it, whose middle is known and lies deep in it or not.

    If so, ``inside`` has such a point, and a deeper one.  If not, the cell's proof lists the rows that prove it.  The spot is the mixture where it ended, unless there is a proof.  If
    ``narrow``, new directions become cuts, too.
    """
    space: Space = cell.space
    walls, inverse, combination = outside.walls, inside.inverse, cell.work.combination
    if inside.begun != r + 1:
        _begin(inside, r)
    _find_multipliers(inside, cell.rows[r], r)
    rounds, value = 0, -1.0
    for _ in range(_PIVOTS):
        value = -inverse[r, r + 1]
        enter = _slack_to_enter(inside, r)  # rows that should not be tight come first: tips need not be looked at
        if enter == r + 1:
            _direct(inside, cell.rows, r, combination)
            enter = _best_tip(inside, combination, value + _GAIN)
            if enter < 0:  # none of the known tips is better
                if value >= SEEN:
                    _blend(inside, r)
                    if deep and _is_shown(inside, walls, r):
                        return FEASIBLE
                most, more = _prove(cell, inside, r)
                if most + more < 0.0:
                    return INFEASIBLE
                if rounds == _ROUNDS or most - value < _NEAR or most < 0.0:
                    break
                if narrow:
                    cut(outside, space, cell.work)
                enter = _add_tip(inside, space.frame, cell.work.slopes, r)
                rounds += 1
        cell.tally.iterations += 1
        if not _exchange(inside, walls, r, enter):
            break
    return _end(inside, walls, r, value)
