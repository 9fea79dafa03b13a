"""The linear program of the walk where inputs are many more than rows of the first layer, compiled with Numba.

Every row of a cell is a combination of the first layer's rows (and of the domain's), so a cell lives in their space: z = F.u, with inputs u in [-1, 1]^n and
the frame F of p rows scaled to sum(|F_i|) = 1.

Of a state, ``lists`` has k rows that are *tight*, at their bound, then as many *basic* inputs, and how many these are; ``inverse`` is the inverse of a_tight.F_basic;
costs d = c + y.a_tight.F with multipliers y >= 0, the third part of ``vectors``; nonbasic inputs sit at the end that the sign of d says, and add up to its
first part; its second is the point.  Costs and breakpoints are in single precision: they choose the path, they prove nothing.
"""

from typing import Any

import numpy as np

from tessella.cells.old import rows as steps
from tessella.cells.old.rows import (
    CLOSE,
    EDGE,
    FEASIBLE,
    INFEASIBLE,
    ITERATIONS,
    MARGIN,
    PIVOT,
    TESTS,
    UNCLEAR,
    exchange,
    is_empty,
    price,
    turning,
)
from tessella.kernel.compiling import compiler
from tessella.network import Floats

_REFACTOR_EVERY = 40

_compiled = compiler(steps.__file__, _nrt=False)

# fmt: off


@_compiled
def _factor(s: int, columns: Floats, rows: Floats, lists: Any, inverse: Floats) -> bool:
    """Invert a_tight.F_basic by Gauss-Jordan with partial pivoting; False if it is singular."""
    p, k, last = rows.shape[1] - 3, lists[s, 2, 0], inverse.shape[0] - 1
    for i in range(k):
        row = lists[s, 0, i]
        for q in range(k):
            j = lists[s, 1, q]
            total = 0.0
            for c in range(p):
                total += rows[row, c] * columns[j, c]
            inverse[last, i, q] = total
            inverse[s, i, q] = 1.0 if i == q else 0.0
    for column in range(k):
        best = column
        for i in range(column + 1, k):
            if abs(inverse[last, i, column]) > abs(inverse[last, best, column]):
                best = i
        pivot = inverse[last, best, column]
        if abs(pivot) < 1e-14:
            return False
        for q in range(k):
            inverse[last, best, q], inverse[last, column, q] = inverse[last, column, q], inverse[last, best, q]
            inverse[s, best, q], inverse[s, column, q] = inverse[s, column, q], inverse[s, best, q]
        for q in range(k):
            inverse[last, column, q] /= pivot
            inverse[s, column, q] /= pivot
        for i in range(k):
            if i != column:
                factor = inverse[last, i, column]
                if factor != 0.0:
                    for q in range(k):
                        inverse[last, i, q] -= factor * inverse[last, column, q]
                        inverse[s, i, q] -= factor * inverse[s, column, q]
    lists[s, 2, 1] = 0
    return True


@_compiled
def copy(s: int, t: int, lists: Any, inverse: Floats, vectors: Floats, costs: Any) -> None:
    """Make state t a copy of state s."""
    k = lists[s, 2, 0]
    lists[t, 2, 0] = k
    lists[t, 2, 1] = lists[s, 2, 1]
    for q in range(k):
        lists[t, 0, q] = lists[s, 0, q]
        lists[t, 1, q] = lists[s, 1, q]
        for c in range(k):
            inverse[t, q, c] = inverse[s, q, c]
    for j in range(vectors.shape[1]):
        vectors[t, j] = vectors[s, j]
    for j in range(costs.shape[1]):
        costs[t, j] = costs[s, j]


@_compiled
def restart(s: int, columns: Floats, lists: Any, vectors: Floats, costs: Any, start: Any) -> None:
    """The empty basis: every input at the end that its cost asks for."""
    n, p = columns.shape
    lists[s, 2, 0] = lists[s, 2, 1] = 0
    for c in range(p):
        vectors[s, c] = 0.0
    for j in range(n):
        costs[s, j] = start[j]
        side = EDGE if start[j] > 0.0 else -EDGE
        for c in range(p):
            vectors[s, c] += side * columns[j, c]


@_compiled
def _firm(
    s: int, count: int, equal: int, columns: Floats, rows: Floats, lists: Any, inverse: Floats, scratch: Floats
) -> bool:
    """Whether the equations of a state are independent, and so much so that their rounding errors cannot move the point by a margin."""
    p, k, found = columns.shape[1], lists[s, 2, 0], 0
    for i in range(k):
        if lists[s, 0, i] >= equal:
            found += 1
            error, most = rows[lists[s, 0, i], p + 2], 0.0
            for q in range(k):
                most += abs(inverse[s, q, i])
            if most * error <= 0.1 * MARGIN:  # entries of columns are at most 1
                continue
            for c in range(p):
                scratch[3, c] = 0.0
            for q in range(k):
                j, rate = lists[s, 1, q], inverse[s, q, i]
                for c in range(p):
                    scratch[3, c] += rate * columns[j, c]
            for c in range(p):
                if abs(scratch[3, c]) * error > 0.1 * MARGIN:
                    return False
    return found == count - equal


@_compiled
def solve(
    s: int, count: int, equal: int, gram: Floats, frame: Floats, light: Any, columns: Floats, start: Any, rows: Floats, lists: Any,
    inverse: Floats, vectors: Floats, costs: Any, scratch: Floats, order: Any, prices: Any, bits: Any, counters: Any,
) -> int:
    """Find a point of the cell of the first ``count`` rows, those from ``equal`` on being equations, starting from state s."""
    n, p = columns.shape
    y = 2 * p
    counters[TESTS] += 1
    restarted, steps = False, 0
    while True:
        k = lists[s, 2, 0]
        # the point: basic inputs make the tight rows meet their bounds
        for i in range(k):
            row = lists[s, 0, i]
            total = (0.0 if row >= equal else MARGIN) - rows[row, p]
            for c in range(p):
                total -= rows[row, c] * vectors[s, c]
            scratch[2, i] = total
        for c in range(p):
            vectors[s, p + c] = vectors[s, c]
        leaving, violation, best, fine = np.int64(-1), 0.0, 0.0, True
        for q in range(k):
            value = 0.0
            for i in range(k):
                value += inverse[s, q, i] * scratch[2, i]
            j = lists[s, 1, q]
            for c in range(p):
                vectors[s, p + c] += value * columns[j, c]
            over = abs(value) - EDGE
            fine = fine and over <= CLOSE  # false for what is not a number, too
            if over > CLOSE:
                norm = 0.0
                if p <= 12 or p > 64:  # as if the rows were orthogonal: where that was faster
                    for i in range(k):
                        norm += inverse[s, q, i] * inverse[s, q, i] * rows[lists[s, 0, i], p + 1]
                else:
                    for c in range(p):
                        scratch[3, c] = 0.0
                    for i in range(k):
                        rate, row = inverse[s, q, i], lists[s, 0, i]
                        for c in range(p):
                            scratch[3, c] += rate * rows[row, c]
                    for c in range(p):
                        total = 0.0
                        for e in range(p):
                            total += gram[c, e] * scratch[3, e]
                        norm += total * scratch[3, c]
                score = over * over / norm
                if score > best:
                    leaving, best, violation = q, score, over if value > 0.0 else -over
        for row in range(count):
            total = rows[row, p] - (0.0 if row >= equal else MARGIN)
            for c in range(p):
                total += rows[row, c] * vectors[s, p + c]
            fine = fine and total >= -CLOSE and (row < equal or total <= CLOSE)
            if total < -CLOSE or (row >= equal and total > CLOSE):
                score = total * total / rows[row, p + 1]
                if score > best:
                    leaving, best, violation = k + row, score, total
        if leaving < 0 and not fine:
            return UNCLEAR
        if leaving < 0:
            return FEASIBLE if count == equal or _firm(s, count, equal, columns, rows, lists, inverse, scratch) else UNCLEAR
        worst = abs(violation)
        drifted = False
        if leaving >= k:
            for i in range(k):
                drifted = drifted or lists[s, 0, i] == leaving - k
        if drifted or lists[s, 2, 1] >= _REFACTOR_EVERY or steps > 60 + 6 * count:
            if steps <= 60 + 6 * count and lists[s, 2, 1] > 0 and _factor(s, columns, rows, lists, inverse):
                continue
            if restarted:
                return UNCLEAR
            restarted, steps = True, 0
            restart(s, columns, lists, vectors, costs, start)
            continue
        steps += 1
        counters[ITERATIONS] += 1
        lists[s, 2, 1] += 1
        # the direction: rates of the multipliers (scratch 0) and of the combined row (scratch 3), then of the costs (scratch 4)
        if leaving >= k:
            row = leaving - k
            side = 1.0 if violation < 0.0 else -1.0
            for q in range(k):
                j = lists[s, 1, q]
                value = 0.0
                for c in range(p):
                    value += rows[row, c] * columns[j, c]
                scratch[2, q] = value
            for i in range(k):
                value = 0.0
                for q in range(k):
                    value += scratch[2, q] * inverse[s, q, i]
                scratch[1, i] = value
                scratch[0, i] = -side * value
            for c in range(p):
                scratch[3, c] = side * rows[row, c]
        else:
            side = 1.0 if violation > 0.0 else -1.0
            for i in range(k):
                scratch[1, i] = inverse[s, leaving, i]
                scratch[0, i] = side * scratch[1, i]
            for c in range(p):
                scratch[3, c] = 0.0
        for i in range(k):
            rate, row = scratch[0, i], lists[s, 0, i]
            for c in range(p):
                scratch[3, c] += rate * rows[row, c]
        price(light, scratch, prices)
        for q in range(k):
            prices[0, lists[s, 1, q]] = 0.0
        # the long-step ratio test
        theta, entering = np.inf, -n - 1
        for i in range(k):
            if scratch[0, i] < -PIVOT and lists[s, 0, i] < equal:
                step = max(vectors[s, y + i], 0.0) / -scratch[0, i]
                if step < theta:
                    theta, entering = step, -1 - i
        pivot = 1.0
        while True:
            spot = turning(s, worst, theta, costs, prices, bits, order)
            if spot < 0:
                break
            pivot = 0.0
            for c in range(p):
                pivot += scratch[3, c] * columns[spot, c]
            if abs(pivot) > PIVOT and abs(pivot) > 0.5 * abs(prices[0, spot]):
                theta, entering = np.float64(prices[1, spot]), spot
                break
            prices[0, spot] = 0.0  # single precision made it up
        if entering < -n:  # no end to it: a combination of rows that is negative everywhere, unless it is too close to call
            proof = is_empty(s, leaving - k, side, equal, False, frame, rows, lists, scratch, counters)
            return INFEASIBLE if proof else UNCLEAR
        if entering >= 0 and leaving >= k and k + 1 >= lists.shape[2]:  # more equations than unknowns: rounding made the pivot up
            if restarted:
                return UNCLEAR
            restarted, steps = True, 0
            restart(s, columns, lists, vectors, costs, start)
            continue
        # walk there: flip what changes its sign, then exchange; rounding must not change any other sign
        step = np.float32(theta)
        for j in range(n):
            old, rate = costs[s, j], prices[0, j]
            new, sign = old + step * rate, rate if prices[1, j] < step else old
            costs[s, j] = new if new * sign > np.float32(0.0) else sign * np.float32(1e-12)
        for i in range(order[n]):
            j = order[i]
            if prices[1, j] < step:
                flip = 2.0 * EDGE if prices[0, j] > 0.0 else -2.0 * EDGE
                for c in range(p):
                    vectors[s, c] += flip * columns[j, c]
        if entering >= 0:
            flip = EDGE if prices[0, entering] > 0.0 else -EDGE
            costs[s, entering] = 0.0
            for c in range(p):
                vectors[s, c] += flip * columns[entering, c]
        if leaving < k:
            j = lists[s, 1, leaving]
            costs[s, j] = np.float32(side * max(theta, 1e-30))
            for c in range(p):
                vectors[s, c] += side * EDGE * columns[j, c]
        exchange(s, columns, rows, lists, inverse, vectors, scratch, leaving, entering, theta, side, side * pivot)


# fmt: on
