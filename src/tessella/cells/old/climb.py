"""Whether a row is positive in a cell, by a simplex method over all inputs; compiled with Numba.

It maximises the row, and is the last to be asked: by `tessella.counting.by_points`, for what mixtures of a few tips leave open.  Every iterate gives an upper bound
of the row, so the search ends when that is negative: the multipliers prove it, in double precision.  And every iterate, with its inputs put into their box
and pulled into the cell, may be a point on the wanted side.  It starts from rows that are worth being tight, or from the basis that was last used for a question of the same kind
in another cell, with those of its rows that this cell has and whose multipliers are not negative: such a basis is dual feasible, whatever the cell.
Costs are perturbed and in single precision; they choose the path and prove nothing.
"""

from typing import Any

import numpy as np

from tessella.cells.old import mixtures as mixture
from tessella.cells.old import rows as steps
from tessella.cells.old.mixtures import MIXED, SEEN, SLACK, deeper
from tessella.cells.old.rows import (
    CLOSE,
    EDGE,
    FEASIBLE,
    INFEASIBLE,
    ITERATIONS,
    PIVOT,
    UNCLEAR,
    exchange,
    is_negative,
    price,
    turning,
)
from tessella.kernel.compiling import compiler
from tessella.network import Floats

NOISE = 1e-9  # of costs, against ties
_SURE = 1e-8  # a bound this far below zero is worth a proof
_RATIO = 0.1  # a point is taken if it reaches this share of the bound
_CHOICE = 2  # basic inputs whose distance from their ends is measured
_REFACTOR_EVERY = 120
_RESTARTS = 4

_compiled = compiler(steps.__file__, mixture.__file__, _nrt=False)

# fmt: off


@_compiled
def _begin(
    r: int, key: int, position: int, columns: Floats, frame: Floats, light: Any, noise: Any, rows: Floats, row_of: Any, bases: Any,
    lists: Any, picks: Any, inverse: Floats, work: Floats, vectors: Floats, costs: Any, scratch: Floats, prices: Any,
) -> None:
    """Start from the basis that was last used for a question of this kind, with what of it is left here.

    Its rows that this cell has, and inputs for as many of them as are independent; rows whose multipliers come out negative are dropped.
    """
    n, p = columns.shape
    y, k, total_rows, inputs = 2 * p, 0, 0, bases[key, 1]
    lists[0, 2, 1] = 0
    for i in range(bases[key, 0]):
        code = bases[key, 2 + i]
        row = -1 - code
        if code >= 0:
            if code >= position or row_of[code] < 0:
                continue
            row = row_of[code]
        picks[0, total_rows] = row
        total_rows += 1
    for q in range(inputs):
        picks[1, q] = bases[key, 2 + bases[key, 0] + q]
        picks[2, q] = 0
    for i in range(total_rows):
        row, most = picks[0, i], 0.0
        for q in range(inputs):
            j = picks[1, q]
            value = 0.0
            for c in range(p):
                value += rows[row, c] * columns[j, c]
            work[k, q] = value
            most = max(most, abs(value))
        for t in range(k):
            value = 0.0
            for q in range(k):
                value += work[k, picks[3, q]] * inverse[0, q, t]
            scratch[1, t] = value
        best, spot, pivot = 1e-3 * most, -1, 0.0
        for q in range(inputs):
            if picks[2, q]:
                continue
            value = work[k, q]
            for t in range(k):
                value -= scratch[1, t] * work[t, q]
            if abs(value) > best:
                best, spot, pivot = abs(value), q, value
        if spot < 0 or k + 1 >= lists.shape[2]:
            continue
        for q in range(k):
            value = 0.0
            for t in range(k):
                value += inverse[0, q, t] * work[t, spot]
            scratch[2, q] = value
        for q in range(k):
            factor = scratch[2, q] / pivot
            for t in range(k):
                inverse[0, q, t] += factor * scratch[1, t]
            inverse[0, q, k] = -factor
        for t in range(k):
            inverse[0, k, t] = -scratch[1, t] / pivot
        inverse[0, k, k] = 1.0 / pivot
        picks[2, spot], picks[3, k], lists[0, 0, k], lists[0, 1, k] = 1, spot, row, picks[1, spot]
        k += 1
    for q in range(k):  # the goal at the basic inputs
        j = lists[0, 1, q]
        value = 0.0
        for c in range(p):
            value += rows[r, c] * columns[j, c]
        scratch[2, q] = value + noise[j]
    while True:
        worst, gone = -1e-7, -1
        for t in range(k):
            value = 0.0
            for q in range(k):
                value -= scratch[2, q] * inverse[0, q, t]
            vectors[0, y + t] = value
            if value < worst:
                worst, gone = value, t
        if gone < 0:
            break
        leaving = 0
        for q in range(k):
            if abs(inverse[0, q, gone]) > abs(inverse[0, leaving, gone]):
                leaving = q
        pivot = inverse[0, leaving, gone]
        for q in range(k):
            if q != leaving:
                value = inverse[0, q, gone] / pivot
                for t in range(k):
                    inverse[0, q, t] -= value * inverse[0, leaving, t]
        for t in range(k):
            inverse[0, leaving, t] = inverse[0, k - 1, t]
        for q in range(k):
            inverse[0, q, gone] = inverse[0, q, k - 1]
        lists[0, 1, leaving], lists[0, 0, gone], scratch[2, leaving] = lists[0, 1, k - 1], lists[0, 0, k - 1], scratch[2, k - 1]
        k -= 1
    lists[0, 2, 0] = k
    for c in range(p):
        scratch[3, c] = rows[r, c]
    for t in range(k):
        rate, row = vectors[0, y + t], lists[0, 0, t]
        for c in range(p):
            scratch[3, c] += rate * rows[row, c]
    price(light, scratch, prices)
    for j in range(n):
        costs[0, j] = prices[0, j] + noise[j]
    for j in range(n):
        scratch[4, j] = EDGE if costs[0, j] > np.float32(0.0) else -EDGE
    for q in range(k):
        costs[0, lists[0, 1, q]] = 0.0
        scratch[4, lists[0, 1, q]] = 0.0
    for c in range(p):
        total = 0.0
        for j in range(n):
            total += frame[c, j] * scratch[4, j]
        vectors[0, c] = total


@_compiled
def _save(key: int, codes: Any, bases: Any, lists: Any) -> None:
    """Note the basis for the next question of this kind, and as the last one of all."""
    k, last = lists[0, 2, 0], len(bases) - 1
    bases[key, 0] = bases[key, 1] = bases[last, 0] = bases[last, 1] = k
    for q in range(k):
        bases[key, 2 + q] = bases[last, 2 + q] = codes[lists[0, 0, q]]
        bases[key, 2 + k + q] = bases[last, 2 + k + q] = lists[0, 1, q]


@_compiled
def _combined(r: int, rows: Floats, lists: Any, vectors: Floats, scratch: Floats) -> None:
    """Row r, with the tight rows' multipliers of them added, in scratch 3; behind it the size of all that."""
    p = rows.shape[1] - 3
    for c in range(p + 1):
        scratch[3, c] = rows[r, c]
    scratch[3, p + 1] = 1.0
    for i in range(lists[0, 2, 0]):
        row, share = lists[0, 0, i], max(vectors[0, 2 * p + i], 0.0)
        scratch[3, p + 1] += share
        for c in range(p + 1):
            scratch[3, c] += share * rows[row, c]


@_compiled
def _adopt(start: int, codes: Any, bases: Any, picks: Any) -> None:
    """Let the basis to begin with be the rows that are listed, if any, with the inputs of another basis."""
    last, size, inputs = len(bases) - 1, picks[1, 0], bases[start, 1]
    if size == 0:
        size = bases[start, 0]
        for q in range(size):
            picks[0, q] = bases[start, 2 + q]
    else:
        size = min(size, (bases.shape[1] - 2) // 2)
        for q in range(size):
            picks[0, q] = codes[picks[0, q]]
    for q in range(inputs):
        picks[1, q] = bases[start, 2 + bases[start, 0] + q]
    bases[last, 0], bases[last, 1] = size, inputs
    for q in range(size):
        bases[last, 2 + q] = picks[0, q]
    for q in range(inputs):
        bases[last, 2 + size + q] = picks[1, q]


@_compiled
def climb(
    r: int, deep: bool, key: int, position: int, row_of: Any, codes: Any, bases: Any,
    gram: Floats, frame: Floats, light: Any, columns: Floats, noise: Any, rows: Floats, lists: Any, picks: Any,
    inverse: Floats, work: Floats, vectors: Floats, spots: Floats, costs: Any, scratch: Floats, order: Any, prices: Any, bits: Any, counters: Any,
) -> int:
    """Whether row r is positive somewhere in the cell of the rows before it, whose middle is in scratch 5 and 6, and ``deep`` or not.

    If so, row 1 of ``spots`` is such a point, and row 2 one that lies deeper in the cell.  If not, row 0 of ``picks`` lists the rows that prove it, and their number is in row 1.
    To begin with, that list may hold rows that are worth being tight.
    """
    n, p = columns.shape
    y, last = 2 * p, len(bases) - 1
    _adopt(key if bases[key, 0] >= 0 else last, codes, bases, picks)
    _begin(r, last, position, columns, frame, light, noise, rows, row_of, bases, lists, picks, inverse, work, vectors, costs, scratch, prices)
    restarts = 0
    while True:
        k = lists[0, 2, 0]
        for i in range(k):
            row = lists[0, 0, i]
            total = -rows[row, p]
            for c in range(p):
                total -= rows[row, c] * vectors[0, c]
            scratch[2, i] = total
        for c in range(p):
            vectors[0, p + c] = spots[0, c] = vectors[0, c]
        leaving, violation, best, clipped = np.int64(-1), 0.0, 0.0, False
        for q in range(k):
            value = 0.0
            for i in range(k):
                value += inverse[0, q, i] * scratch[2, i]
            j = lists[0, 1, q]
            inner = min(max(value, -EDGE), EDGE)
            for c in range(p):
                vectors[0, p + c] += value * columns[j, c]
                spots[0, c] += inner * columns[j, c]
            over = abs(value) - EDGE
            scratch[0, q] = 0.0
            if over > CLOSE:
                clipped = True
                norm = 0.0  # as if the rows were orthogonal
                for i in range(k):
                    norm += inverse[0, q, i] * inverse[0, q, i] * rows[lists[0, 0, i], p + 1]
                scratch[0, q] = over * over / norm
                scratch[1, q] = over if value > 0.0 else -over
        for _ in range(_CHOICE if clipped else 0):  # of those that seem longest beyond their ends, the one that is
            q = 0
            for other in range(1, k):
                q = other if scratch[0, other] > scratch[0, q] else q
            if scratch[0, q] == 0.0:
                break
            for c in range(p):
                scratch[3, c] = 0.0
            for i in range(k):
                rate, row = inverse[0, q, i], lists[0, 0, i]
                for c in range(p):
                    scratch[3, c] += rate * rows[row, c]
            norm = 0.0
            for c in range(p):
                total = 0.0
                for e in range(p):
                    total += gram[c, e] * scratch[3, e]
                norm += total * scratch[3, c]
            scratch[0, q] = 0.0
            score = scratch[1, q] * scratch[1, q] / norm
            if score > best:
                leaving, best, violation = q, score, scratch[1, q]
        far = 1.0
        for row in range(r):
            total = rows[row, p]
            for c in range(p):
                total += rows[row, c] * vectors[0, p + c]
            if total < -CLOSE:
                score = total * total / rows[row, p + 1]
                if score > best:
                    leaving, best, violation = k + row, score, total
            if clipped:
                total = rows[row, p]
                for c in range(p):
                    total += rows[row, c] * spots[0, c]
            far = max(far, (scratch[6, row] - total) / (scratch[6, row] - SLACK))
        bound, got = rows[r, p], rows[r, p]
        for c in range(p):
            bound += rows[r, c] * vectors[0, p + c]
            got += rows[r, c] * spots[0, c]
        got = scratch[6, r] + (got - scratch[6, r]) / far
        if deep and got >= SEEN and (got >= _RATIO * bound or leaving < 0):
            part = deeper(scratch[6, r], got, far)
            for c in range(p):
                spots[1, c] = scratch[5, c] + (spots[0, c] - scratch[5, c]) / far
                spots[2, c] = scratch[5, c] + (spots[0, c] - scratch[5, c]) * part
            _save(key, codes, bases, lists)
            return FEASIBLE
        if bound < -_SURE or leaving < 0:
            _combined(r, rows, lists, vectors, scratch)
            if is_negative(rows[r, p + 2], frame, scratch):
                _save(key, codes, bases, lists)
                picks[1, 0] = 0
                for i in range(k):
                    if vectors[0, y + i] > 0.0:
                        picks[0, picks[1, 0]] = lists[0, 0, i]
                        picks[1, 0] += 1
                return INFEASIBLE
            if leaving < 0:
                # the middle may lie too close to a wall: halfway to the vertex it is better, if the cell is not thin
                least, worst = np.inf, np.inf
                for row in range(r):
                    total = rows[row, p]
                    for c in range(p):
                        total += rows[row, c] * spots[0, c]
                    least = min(least, scratch[6, row])
                    worst = min(worst, 0.5 * (scratch[6, row] + total))
                if r == 0 or not (worst >= 2.0 * least and worst >= 2.0 * SLACK):
                    return UNCLEAR
                for c in range(p):
                    scratch[5, c] = 0.5 * (scratch[5, c] + spots[0, c])
                for row in range(r + 1):
                    total = rows[row, p]
                    for c in range(p):
                        total += rows[row, c] * scratch[5, c]
                    scratch[6, row] = total
                deep, counters[MIXED] = True, 0
                continue
        worst = abs(violation)
        drifted = False
        if leaving >= k:
            for i in range(k):
                drifted = drifted or lists[0, 0, i] == leaving - k
        if drifted or lists[0, 2, 1] >= _REFACTOR_EVERY:
            restarts += 1
            if restarts > _RESTARTS:
                return UNCLEAR
            _save(key, codes, bases, lists)
            if restarts == _RESTARTS:
                bases[key, 0] = bases[key, 1] = 0
            _begin(r, key, position, columns, frame, light, noise, rows, row_of, bases, lists, picks, inverse, work, vectors, costs, scratch, prices)
            continue
        counters[ITERATIONS] += 1
        lists[0, 2, 1] += 1
        # the direction: rates of the multipliers (scratch 0) and of the combined row (scratch 3), then of the costs (scratch 4)
        if leaving >= k:
            row, side = leaving - k, 1.0
            for q in range(k):
                j = lists[0, 1, q]
                value = 0.0
                for c in range(p):
                    value += rows[row, c] * columns[j, c]
                scratch[2, q] = value
            for i in range(k):
                value = 0.0
                for q in range(k):
                    value += scratch[2, q] * inverse[0, q, i]
                scratch[1, i] = value
                scratch[0, i] = -value
            for c in range(p):
                scratch[3, c] = rows[row, c]
        else:
            side = 1.0 if violation > 0.0 else -1.0
            for i in range(k):
                scratch[1, i] = inverse[0, leaving, i]
                scratch[0, i] = side * scratch[1, i]
            for c in range(p):
                scratch[3, c] = 0.0
        for i in range(k):
            rate, row = scratch[0, i], lists[0, 0, i]
            for c in range(p):
                scratch[3, c] += rate * rows[row, c]
        price(light, scratch, prices)
        for q in range(k):
            prices[0, lists[0, 1, q]] = 0.0
        # the long-step ratio test
        theta, entering = np.inf, -n - 1
        for i in range(k):
            if scratch[0, i] < -PIVOT:
                step = max(vectors[0, y + i], 0.0) / -scratch[0, i]
                if step < theta:
                    theta, entering = step, -1 - i
        pivot = 1.0
        while True:
            spot = turning(0, worst, theta, costs, prices, bits, order)
            if spot < 0:
                break
            pivot = 0.0
            for c in range(p):
                pivot += scratch[3, c] * columns[spot, c]
            if abs(pivot) > PIVOT and abs(pivot) > 0.5 * abs(prices[0, spot]):
                theta, entering = np.float64(prices[1, spot]), spot
                break
            prices[0, spot] = 0.0  # single precision made it up
        if entering < -n:  # the cell itself would be empty
            return UNCLEAR
        if entering >= 0 and leaving >= k and k + 1 >= lists.shape[2]:  # more equations than unknowns: rounding made the pivot up
            return UNCLEAR
        # walk there: flip what changes its sign, then exchange; rounding must not change any other sign
        step = np.float32(theta)
        for j in range(n):
            old, rate = costs[0, j], prices[0, j]
            new, sign = old + step * rate, rate if prices[1, j] < step else old
            costs[0, j] = new if new * sign > np.float32(0.0) else sign * np.float32(1e-12)
        listed = order[n]
        whole = listed - listed % 4
        for i in range(0, whole, 4):  # four at a time; what the list has too many counts as nothing
            j0, j1, j2, j3 = order[i], order[i + 1], order[i + 2], order[i + 3]
            f0 = 0.0 if prices[1, j0] >= step else 2.0 * EDGE if prices[0, j0] > 0.0 else -2.0 * EDGE
            f1 = 0.0 if prices[1, j1] >= step else 2.0 * EDGE if prices[0, j1] > 0.0 else -2.0 * EDGE
            f2 = 0.0 if prices[1, j2] >= step else 2.0 * EDGE if prices[0, j2] > 0.0 else -2.0 * EDGE
            f3 = 0.0 if prices[1, j3] >= step else 2.0 * EDGE if prices[0, j3] > 0.0 else -2.0 * EDGE
            for c in range(p):
                vectors[0, c] += f0 * columns[j0, c] + f1 * columns[j1, c] + f2 * columns[j2, c] + f3 * columns[j3, c]
        for i in range(whole, listed):
            j0 = order[i]
            f0 = 0.0 if prices[1, j0] >= step else 2.0 * EDGE if prices[0, j0] > 0.0 else -2.0 * EDGE
            for c in range(p):
                vectors[0, c] += f0 * columns[j0, c]
        if entering >= 0:
            flip = EDGE if prices[0, entering] > 0.0 else -EDGE
            costs[0, entering] = 0.0
            for c in range(p):
                vectors[0, c] += flip * columns[entering, c]
        if leaving < k:
            j = lists[0, 1, leaving]
            costs[0, j] = np.float32(side * max(theta, 1e-30))
            for c in range(p):
                vectors[0, c] += side * EDGE * columns[j, c]
        exchange(0, columns, rows, lists, inverse, vectors, scratch, leaving, entering, theta, side, side * pivot)


# fmt: on
