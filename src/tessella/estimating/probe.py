"""Random descents through the tree of regions, compiled with Numba: any number of inputs, layers of any width.

**Nodes.**  A node is a cell, the layer it has come to, and the set of that layer's units that are still *left*: not known to have one
sign on the cell.  It is split on the first of these.  A unit's sign is settled by the first that answers: its row alone, the points that are
known of the cell, a proof that worked in another cell, with many inputs a refutation in the few dimensions of the first layer
(`tessella.cells.cuts`), a linear program.  With look-ahead all units of the layer are asked as soon as the cell is there,
with many inputs by linear programs only once the node is chosen; without it only the one that is split on.  Points are the vertices that linear programs ended in; a child takes over those on its side.

**The linear program** is that of `tessella.counting.by_programs`, explained there: coordinates z = F.u, a bounded dual simplex with a long-step ratio
test in single precision, margins that make a point found a proof, and proofs of emptiness in double precision.  What is neither is *thin*.  A
thin child, and a cell whose rows are lost in rounding, is worth what exact arithmetic says: the descent stops, names the prefix, and is
done again from the same seed once the answer is in the table.

**A round** keeps a few weighted nodes.  All are split; leaves are added up; if more than the population are left, as many are drawn, with
probabilities in proportion to weight times predicted number of leaves, and their weights divided by these.  The sum is an unbiased estimate of
the number of leaves whatever is predicted (Knuth 1975; with a population: stochastic enumeration).  Weights are kept as logarithms.

**Records** of the nodes scored, one line of features each, are what predictions are learned from (`tessella.estimating.values`).

State is passed as plain arrays.  Numbers of nodes come first in all arrays of cells.
"""

from typing import Any

import numpy as np

from tessella.cells.old import cuts as zonotope
from tessella.cells.old import rows as steps
from tessella.cells.old.cuts import ADDED, CUT, begin, cut, descend
from tessella.cells.old.rows import CLOSE, EDGE, FEASIBLE, INFEASIBLE, MARGIN, PIVOT, UNCLEAR, combine, price
from tessella.kernel.compiling import calling, compiler
from tessella.network import Floats

GOAL = 8.0 * MARGIN  # what a point must reach to show a sign
_ROUNDING = 1e-10  # the largest relative error of a row that is trusted: a tenth of the margin
_EPS = 1.1102230246251565e-16
_REFACTOR_EVERY = 40
LANES, _ENOUGH = (
    8,
    np.float32(0.3),
)  # inputs that are remembered from one pricing to the next, at most, and their least share of the best

POINTS = 64  # per node: their signs fit into one integer
BASE = 16  # features that every node has
WIDE = 64  # units; layers with more have no features per unit, and no points are pushed through them
_TRIPLES = 12  # units; triples of more are not looked at
_MIXED = 0.02  # part of the choice that does not listen to predictions

# states of a unit in a cell: 0 and 1 if it is settled
_BOTH, _OPEN, _UNSURE = 2, 3, 4
# places in a node's numbers
_LAYER, _ROWS, KNOWN, _LEFT, _RECORD, _ADDED = range(6)
NODE = 6
# places of the counters
TESTS, ITERATIONS, NEEDED, RECORDS, REUSED, SPLITS, LENGTH, CROSSED, NAMES = range(9)
# places of the options
POPULATION, LAZY, SINGLE = range(3)
# the doors: addresses of functions that are called so
CLIMB, CHILD, SETTLE, ROUND = range(4)

_compiled = compiler(steps.__file__, zonotope.__file__, _nrt=False)

# fmt: off


@_compiled
def _factor(t: int, identity: bool, columns: Floats, rows: Floats, lists: Any, inverse: Floats) -> bool:
    """Invert a_tight.F_basic by Gauss-Jordan with partial pivoting; False if it is singular."""
    p, k, last = rows.shape[2] - 2, lists[t, 2, 0], inverse.shape[0] - 1
    for i in range(k):
        row = lists[t, 0, i]
        for q in range(k):
            j = lists[t, 1, q]
            if identity:
                total = rows[t, row, j]
            else:
                total = 0.0
                for c in range(p):
                    total += rows[t, row, c] * columns[j, c]
            inverse[last, i, q] = total
            inverse[t, i, q] = 1.0 if i == q else 0.0
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
            inverse[t, best, q], inverse[t, column, q] = inverse[t, column, q], inverse[t, best, q]
        for q in range(k):
            inverse[last, column, q] /= pivot
            inverse[t, column, q] /= pivot
        for i in range(k):
            if i != column:
                factor = inverse[last, i, column]
                if factor != 0.0:
                    for q in range(k):
                        inverse[last, i, q] -= factor * inverse[last, column, q]
                        inverse[t, i, q] -= factor * inverse[t, column, q]
    return True


@_compiled
def refresh(t: int, count: int, identity: bool, frame: Floats, columns: Floats, rows: Floats, lists: Any, inverse: Floats, places: Floats, sides: Any, scratch: Floats) -> bool:
    """Compute a vertex anew from its basis; False if it is not one of the cell."""
    n, p = columns.shape
    k = lists[t, 2, 0]
    lists[t, 2, 1] = _REFACTOR_EVERY  # tried again if it fails
    if not _factor(t, identity, columns, rows, lists, inverse):
        return False
    for c in range(p):
        if identity:
            scratch[3, c] = EDGE * sides[t, c]
        else:
            total = 0.0
            for j in range(n):
                total += frame[c, j] * sides[t, j]
            scratch[3, c] = EDGE * total
    for i in range(k):
        row = lists[t, 0, i]
        total = MARGIN - rows[t, row, p]
        for c in range(p):
            total -= rows[t, row, c] * scratch[3, c]
        scratch[2, i] = total
    for c in range(p):
        places[t, c] = scratch[3, c]
    fine = True
    for q in range(k):
        value = 0.0
        for i in range(k):
            value += inverse[t, q, i] * scratch[2, i]
        places[t, p + q] = value
        fine = fine and abs(value) <= EDGE + CLOSE
        j = lists[t, 1, q]
        if identity:
            places[t, j] += value
        else:
            for c in range(p):
                places[t, c] += value * columns[j, c]
    for row in range(count):
        total = rows[t, row, p]
        for c in range(p):
            total += rows[t, row, c] * places[t, c]
        fine = fine and total >= MARGIN - CLOSE
    if fine:
        lists[t, 2, 1] = 0
    return fine


@_compiled
def _exchange(
    t: int, entering: int, leaving: int, row: int, identity: bool, columns: Floats, rows: Floats, lists: Any, inverse: Floats, places: Floats, scratch: Floats
) -> None:
    """Update basis and inverse.

    ``entering`` is j for an input, -1 - i for the slack of the tight row at i; ``leaving`` is q for the basic input at q, or -1 for the slack of
    ``row``.  For an entering input scratch 1 holds the product of the inverse with its column.
    """
    p, k = rows.shape[2] - 2, lists[t, 2, 0]
    if leaving < 0:
        for q in range(k):
            j = lists[t, 1, q]
            if identity:
                scratch[2, q] = rows[t, row, j]
            else:
                value = 0.0
                for c in range(p):
                    value += rows[t, row, c] * columns[j, c]
                scratch[2, q] = value
        for i in range(k):
            value = 0.0
            for q in range(k):
                value += scratch[2, q] * inverse[t, q, i]
            scratch[6, i] = value
    if leaving < 0 and entering >= 0:  # a row becomes tight, an input basic: border
        pivot = 0.0
        if identity:
            pivot = rows[t, row, entering]
        else:
            for c in range(p):
                pivot += rows[t, row, c] * columns[entering, c]
        for q in range(k):
            pivot -= scratch[2, q] * scratch[1, q]
        for q in range(k):
            factor = scratch[1, q] / pivot
            for i in range(k):
                inverse[t, q, i] += factor * scratch[6, i]
            inverse[t, q, k] = -factor
        for i in range(k):
            inverse[t, k, i] = -scratch[6, i] / pivot
        inverse[t, k, k] = 1.0 / pivot
        lists[t, 0, k], lists[t, 1, k], lists[t, 2, 0] = row, entering, k + 1
    elif leaving < 0:  # one row for another
        gone = -1 - entering
        for q in range(k):
            value = inverse[t, q, gone] / scratch[6, gone]
            for i in range(k):
                inverse[t, q, i] -= value * scratch[6, i]
            inverse[t, q, gone] = value
        lists[t, 0, gone] = row
    elif entering >= 0:  # one input for another
        pivot = scratch[1, leaving]
        for i in range(k):
            inverse[t, leaving, i] /= pivot
        for q in range(k):
            if q != leaving:
                for i in range(k):
                    inverse[t, q, i] -= scratch[1, q] * inverse[t, leaving, i]
        lists[t, 1, leaving] = entering
    else:  # an input leaves, a row becomes loose: shrink
        gone = -1 - entering
        pivot = inverse[t, leaving, gone]
        for q in range(k):
            if q != leaving:
                value = inverse[t, q, gone] / pivot
                for i in range(k):
                    inverse[t, q, i] -= value * inverse[t, leaving, i]
        for i in range(k):
            inverse[t, leaving, i] = inverse[t, k - 1, i]
        for q in range(k):
            inverse[t, q, gone] = inverse[t, q, k - 1]
        lists[t, 1, leaving], lists[t, 0, gone], lists[t, 2, 0] = lists[t, 1, k - 1], lists[t, 0, k - 1], k - 1
        places[t, p + leaving] = places[t, p + k - 1]


@_compiled
def _empty(t: int, at: int, identity: bool, frame: Floats, rows: Floats, lists: Any, scratch: Floats) -> bool:
    """Whether row ``at`` and the tight rows, in shares scratch 0, add up to something negative on the whole box, with room to spare."""
    n, p, k = frame.shape[1], rows.shape[2] - 2, lists[t, 2, 0]
    total, size = rows[t, at, p], 1.0
    for c in range(p):
        scratch[3, c] = rows[t, at, c]
    for i in range(k):
        share = max(scratch[0, i], 0.0)
        scratch[0, i] = share
        row = lists[t, 0, i]
        size += share
        total += share * rows[t, row, p]
        for c in range(p):
            scratch[3, c] += share * rows[t, row, c]
    if identity:
        for c in range(p):
            total += abs(scratch[3, c])
    else:
        combine(frame, scratch)
        for j in range(n):
            total += abs(scratch[4, j])
    return total + 4.0 * MARGIN * size < 0.0


@_compiled
def _sound(t: int, count: int, rows: Floats, lists: Any, places: Floats) -> bool:
    """Whether a node's vertex lies inside all rows and the box, by more than rounding."""
    p = rows.shape[2] - 2
    fine = True  # comparisons are false for what is not a number
    for row in range(count):
        total = rows[t, row, p]
        for c in range(p):
            total += rows[t, row, c] * places[t, c]
        fine = fine and total >= 0.5 * MARGIN
    for q in range(lists[t, 2, 0]):
        fine = fine and abs(places[t, p + q]) <= 1.0 - 0.5 * (1.0 - EDGE)
    return fine


@_compiled
def _keep(
    t: int, node: Any, points: Floats, names: Any, pool: Any, ends: Any, lists: Any, places: Floats, sides: Any, counters: Any
) -> None:
    """Keep a node's vertex as a point, in the place of the oldest if all are taken, and its basis in the pool."""
    place = node[t, KNOWN]
    if place >= POINTS:
        place = node[t, _ADDED] % POINTS
        node[t, _ADDED] += 1
    else:
        node[t, KNOWN] += 1
    for c in range(points.shape[1]):
        points[t, c, place] = places[t, c]
    counters[NAMES] += 1
    name = counters[NAMES]
    names[t, place] = name
    at, k = name % (len(pool) - POINTS), lists[t, 2, 0]
    pool[at, 0, 0], pool[at, 1, 0] = name, k
    for q in range(k):
        pool[at, 0, 1 + q], pool[at, 1, 1 + q] = lists[t, 0, q], lists[t, 1, q]
    for j in range(ends.shape[1]):
        ends[at, j] = np.int8(sides[t, j])


@_compiled
def _load(
    t: int, sign: float, value: float, count: int, identity: bool, frame: Floats, columns: Floats, rows: Floats, lists: Any, inverse: Floats, places: Floats,
    sides: Any, scratch: Floats, node: Any, names: Any, pool: Any, ends: Any, vals: Floats
) -> bool:
    """Move a node's vertex to the known one where row 0 of vals is best, if that is better than the value; False if that fails."""
    best, top = -1, value
    for i in range(min(node[t, KNOWN], POINTS)):
        if sign * vals[0, i] > top and names[t, i] != 0:
            name = names[t, i]
            at = name % (len(pool) - POINTS) if name > 0 else len(pool) + name
            if pool[at, 0, 0] == name:
                best, top = at, sign * vals[0, i]
    if best < 0:
        return True
    k = pool[best, 1, 0]
    lists[t, 2, 0] = k
    for q in range(k):
        lists[t, 0, q], lists[t, 1, q] = pool[best, 0, 1 + q], pool[best, 1, 1 + q]
    for j in range(ends.shape[1]):
        sides[t, j] = np.float32(ends[best, j])
    return refresh(t, count, identity, frame, columns, rows, lists, inverse, places, sides, scratch)


@_compiled
def climb(
    t: int, at: int, goal: float, inside: bool, identity: bool, frame: Floats, light: Any, columns: Floats, rows: Floats, lists: Any, inverse: Floats,
    places: Floats, sides: Any, scratch: Floats, order: Any, prices: Any, node: Any, points: Floats, names: Any, pool: Any, ends: Any,
    counters: Any,
) -> int:
    """Raise row ``at`` over the cell of the rows before it, from the node's vertex, until it reaches the goal.

    FEASIBLE: it does, and the node's vertex is there.  If ``inside``, vertices on the way are points of the node.  INFEASIBLE: it is proved that it
    is negative on all of the cell; the proof's shares are scratch 0.  UNCLEAR otherwise.
    """
    n, p = columns.shape
    counters[TESTS] += 1
    steps, stalled, listed, promised = 0, 0, 0, 0.0
    value = rows[t, at, p]
    for c in range(p):
        value += rows[t, at, c] * places[t, c]
    if value >= goal and _sound(t, at, rows, lists, places):
        return FEASIBLE
    while True:
        k = lists[t, 2, 0]
        if steps > 200 + 10 * at + 2 * n or stalled > 40 or k > min(n, p):
            return UNCLEAR
        if steps == 0 and value >= goal:  # a vertex that has drifted is computed anew
            if not refresh(t, at, identity, frame, columns, rows, lists, inverse, places, sides, scratch):
                return UNCLEAR
            value = rows[t, at, p]
            for c in range(p):
                value += rows[t, at, c] * places[t, c]
            if value >= goal:
                return FEASIBLE
        if lists[t, 2, 1] >= _REFACTOR_EVERY and not refresh(t, at, identity, frame, columns, rows, lists, inverse, places, sides, scratch):
            return UNCLEAR
        # what tight rows are worth (scratch 0, with the other sign), and the row without them (scratch 3)
        for q in range(k):
            j = lists[t, 1, q]
            if identity:
                scratch[2, q] = rows[t, at, j]
            else:
                total = 0.0
                for c in range(p):
                    total += rows[t, at, c] * columns[j, c]
                scratch[2, q] = total
        for c in range(p):
            scratch[3, c] = rows[t, at, c]
        slack, gain, score, constant, weight = -1, 0.0, 0.0, rows[t, at, p], 1.0
        for i in range(k):
            scratch[0, i], scratch[6, i] = 0.0, 1e-30
        for q in range(k):
            rate = scratch[2, q]
            for i in range(k):
                scratch[0, i] -= rate * inverse[t, q, i]
                scratch[6, i] += inverse[t, q, i] * inverse[t, q, i]
        for i in range(k):
            total, row = -scratch[0, i], lists[t, 0, i]
            for c in range(p):
                scratch[3, c] -= total * rows[t, row, c]
            constant -= total * rows[t, row, p]
            weight += abs(total)
            if total > 1e-11:
                merit = total / np.sqrt(scratch[6, i])
                if merit > score:
                    slack, score, gain = i, merit, total
        # inputs: first those that were best last time
        enter, merit = -1, 0.0
        for place in range(listed):
            j = order[place]
            total = scratch[3, j] if identity else 0.0
            if not identity:
                for c in range(p):
                    total += scratch[3, c] * columns[j, c]
            total *= -sides[t, j]
            if total > merit:
                enter, merit = j, total
        if max(merit, score) <= 0.5 * promised or listed == 0:
            if identity:
                for j in range(n):
                    prices[0, j] = np.float32(scratch[3, j])
            else:
                price(light, scratch, prices)
            reach = np.float32(0.0)
            for j in range(n):
                reach += abs(prices[0, j])
            if slack < 0 and constant + reach < -1e-6 * weight and _empty(t, at, identity, frame, rows, lists, scratch):
                return INFEASIBLE
            if slack < 0 and constant + reach < -1e-6 * weight:  # scratch 3 was used
                return UNCLEAR
            for j in range(n):
                prices[1, j] = -sides[t, j] * prices[0, j]
            block = n // LANES
            m0, m1, m2, m3 = prices[1, 0], prices[1, block], prices[1, 2 * block], prices[1, 3 * block]
            m4, m5, m6, m7 = prices[1, 4 * block], prices[1, 5 * block], prices[1, 6 * block], prices[1, 7 * block]
            for j in range(block):  # each maximum waits for the one before it
                m0, m1 = max(m0, prices[1, j]), max(m1, prices[1, j + block])
                m2, m3 = max(m2, prices[1, j + 2 * block]), max(m3, prices[1, j + 3 * block])
                m4, m5 = max(m4, prices[1, j + 4 * block]), max(m5, prices[1, j + 5 * block])
                m6, m7 = max(m6, prices[1, j + 6 * block]), max(m7, prices[1, j + 7 * block])
            for j in range(LANES * block, n):
                m7 = max(m7, prices[1, j])
            prices[2, 0], prices[2, 1], prices[2, 2], prices[2, 3] = m0, m1, m2, m3
            prices[2, 4], prices[2, 5], prices[2, 6], prices[2, 7] = m4, m5, m6, m7
            least = _ENOUGH * max(m0, m1, m2, m3, m4, m5, m6, m7, np.float32(0.0))
            listed = 0
            for lane in range(LANES):
                top, j = prices[2, lane], lane * block
                if top > least:
                    while j < n - 1 and prices[1, j] != top:
                        j += 1
                    order[listed] = j
                    listed += 1
            enter, merit = -1, 0.0
            for place in range(listed):
                j = order[place]
                total = scratch[3, j] if identity else 0.0
                if not identity:
                    for c in range(p):
                        total += scratch[3, c] * columns[j, c]
                total *= -sides[t, j]
                if total > merit:
                    enter, merit = j, total
            promised = max(merit, score)
            if merit <= 1e-11 and slack < 0:
                return INFEASIBLE if _empty(t, at, identity, frame, rows, lists, scratch) else UNCLEAR
        if enter < 0 and slack < 0:  # what is not a number compares as false
            return UNCLEAR
        steps += 1
        counters[ITERATIONS] += 1
        # the direction: basic inputs (scratch 1), and the point (scratch 5)
        for c in range(p):
            scratch[5, c] = 0.0
        if merit >= score and enter >= 0:
            slack, gain = -1, merit
            direction = -np.float64(sides[t, enter])
            for i in range(k):
                row = lists[t, 0, i]
                if identity:
                    scratch[2, i] = rows[t, row, enter]
                else:
                    total = 0.0
                    for c in range(p):
                        total += rows[t, row, c] * columns[enter, c]
                    scratch[2, i] = total
            for q in range(k):
                total = 0.0
                for i in range(k):
                    total += inverse[t, q, i] * scratch[2, i]
                scratch[1, q] = total
            if identity:
                scratch[5, enter] = direction
            else:
                for c in range(p):
                    scratch[5, c] = direction * columns[enter, c]
            factor = -direction
        else:
            enter, direction, factor = -1, 0.0, 1.0
            for q in range(k):
                scratch[1, q] = inverse[t, q, slack]
        leaving, blocking, theta, steep = -1, -1, 2.0 * EDGE if enter >= 0 else np.inf, 0.0
        for q in range(k):
            rate, j = factor * scratch[1, q], lists[t, 1, q]
            if identity:
                scratch[5, j] += rate
            else:
                for c in range(p):
                    scratch[5, c] += rate * columns[j, c]
            if abs(rate) > PIVOT:
                step = max((EDGE - places[t, p + q]) / rate if rate > 0.0 else (-EDGE - places[t, p + q]) / rate, 0.0)
                if step < theta - 1e-13 or (step < theta + 1e-13 and abs(rate) > steep):
                    leaving, theta, steep = q, step, abs(rate)
        for row in range(at):
            rate = 0.0
            for c in range(p):
                rate += rows[t, row, c] * scratch[5, c]
            if rate < -PIVOT:
                total = rows[t, row, p] - MARGIN
                for c in range(p):
                    total += rows[t, row, c] * places[t, c]
                step = max(total, 0.0) / -rate
                if step < theta - 1e-13 or (step < theta + 1e-13 and -rate > steep):
                    leaving, blocking, theta, steep = -1, row, step, -rate
        if leaving >= 0:
            blocking = -1
        if not 0.0 <= theta < np.inf or (enter >= 0 and blocking >= 0 and k >= min(n, p)):  # more tight rows than dimensions: rounding
            return UNCLEAR
        stalled = 0 if theta * gain > 1e-14 else stalled + 1
        value += theta * gain
        found = value >= goal
        for c in range(p):
            places[t, c] += theta * scratch[5, c]
        for q in range(k):
            places[t, p + q] += theta * factor * scratch[1, q]
        lists[t, 2, 1] += 1 if steep > 1e-6 or (leaving < 0 and blocking < 0) else _REFACTOR_EVERY
        if leaving < 0 and blocking < 0:  # from one end to the other
            sides[t, enter] = -sides[t, enter]
        else:
            fresh = EDGE * sides[t, enter] + direction * theta if enter >= 0 else 0.0
            if leaving >= 0:
                sides[t, lists[t, 1, leaving]] = np.float32(1.0 if factor * scratch[1, leaving] > 0.0 else -1.0)
            code = enter if enter >= 0 else -1 - slack
            _exchange(t, code, leaving, blocking, identity, columns, rows, lists, inverse, places, scratch)
            if enter >= 0:
                sides[t, enter] = 0.0
                places[t, p + (leaving if leaving >= 0 else k)] = fresh
        keep = inside and steps % 4 == 0 and node[t, KNOWN] < POINTS - 16
        if (found or keep) and not _sound(t, at, rows, lists, places):
            if lists[t, 2, 1] == 0 or not refresh(t, at, identity, frame, columns, rows, lists, inverse, places, sides, scratch):
                return UNCLEAR
            keep = False
        if found:
            value = rows[t, at, p]
            for c in range(p):
                value += rows[t, at, c] * places[t, c]
            return FEASIBLE if value >= 0.9 * goal else UNCLEAR
        if keep:
            _keep(t, node, points, names, pool, ends, lists, places, sides, counters)


_climb = calling(climb)


@_compiled
def _compose(t: int, layer: int, layout: Any, weights: Floats, biases: Floats, status: Any, combined: Floats, errors: Floats, scratch: Floats) -> None:
    """The rows of one layer's units in a cell, from those of the layer before, each with a bound on its rounding error."""
    first, units, before, reads, at = layout[layer, 0], layout[layer, 1], layout[layer - 1, 0], layout[layer - 1, 1], layout[layer, 2]
    p = combined.shape[2] - 1
    for j in range(reads):
        if status[t, before + j]:
            total = 0.0
            for c in range(p + 1):
                total += abs(combined[t, before + j, c])
            scratch[6, j] = total
    for i in range(units):
        g = first + i
        for c in range(p):
            combined[t, g, c] = 0.0
        combined[t, g, p] = biases[g]
        size, error, terms = abs(biases[g]), 0.0, 2
        for j in range(reads):
            if status[t, before + j]:
                weight = weights[at + i * reads + j]
                if weight != 0.0:
                    for c in range(p + 1):
                        combined[t, g, c] += weight * combined[t, before + j, c]
                    size += abs(weight) * scratch[6, j]
                    error += abs(weight) * errors[t, before + j]
                    terms += 1
        errors[t, g] = 1.0001 * error + (1.01 * terms * _EPS * size if terms > 2 else 0.0)


@_compiled
def _size(t: int, g: int, combined: Floats) -> float:
    """What a unit's row is scaled by."""
    total = 0.0
    for c in range(combined.shape[2]):
        total += abs(combined[t, g, c])
    return total


@_compiled
def _place(t: int, g: int, side: float, at: int, identity: bool, gram: Floats, combined: Floats, rows: Floats) -> None:
    """Put a unit's row on a node's stack, scaled; behind it the square of its length in the space of inputs."""
    p = combined.shape[2] - 1
    scale = side / _size(t, g, combined)
    for c in range(p + 1):
        rows[t, at, c] = scale * combined[t, g, c]
    total = 0.0
    for c in range(p):
        if identity:
            total += rows[t, at, c] * rows[t, at, c]
        else:
            value = 0.0
            for e in range(p):
                value += gram[c, e] * rows[t, at, e]
            total += value * rows[t, at, c]
    rows[t, at, p + 1] = max(total, 1e-30)


@_compiled
def _quick(t: int, g: int, combined: Floats, errors: Floats) -> int:
    """A unit's sign where its row alone decides it: 1, 0, or -1 if it does not, -2 if the row is not to be trusted."""
    p = combined.shape[2] - 1
    size = 0.0
    for c in range(p):
        size += abs(combined[t, g, c])
    constant, error = combined[t, g, p], errors[t, g]
    if size == 0.0 and error == 0.0:
        return 1 if constant > 0.0 else 0
    if constant - size * (1.0 + 1e-12) > error:
        return 1
    if constant + size * (1.0 + 1e-12) < -error:
        return 0
    return -2 if error > _ROUNDING * (size + abs(constant)) else -1


@_compiled
def _remember(g: int, positive: bool, t: int, scratch: Floats, lists: Any, codes: Any, proofs: Any, shares: Floats) -> None:
    """Keep the proof that unit g is positive, or negative, in a cell: which rows add up to it, and how much of each."""
    key, size = 2 * g + (1 if positive else 0), 0
    for i in range(lists[t, 2, 0]):
        if scratch[0, i] > 0.0:
            proofs[key, 1 + size] = codes[t, lists[t, 0, i]]
            shares[key, size] = scratch[0, i]
            size += 1
    proofs[key, 0] = size


@_compiled
def _proved(
    g: int, positive: bool, t: int, identity: bool, frame: Floats, rows: Floats, row_of: Any, status: Any, combined: Floats, proofs: Any,
    shares: Floats, scratch: Floats,
) -> bool:
    """Whether an earlier proof that the unit is positive (or negative), from another cell, also holds in this one."""
    key = 2 * g + (1 if positive else 0)
    size = proofs[key, 0]
    if size < 0:
        return False
    n, p = frame.shape[1], rows.shape[2] - 2
    side = (-1.0 if positive else 1.0) / _size(t, g, combined)
    constant, total = side * combined[t, g, p], 1.0
    for c in range(p):
        scratch[3, c] = side * combined[t, g, c]
    for i in range(size):
        code = proofs[key, 1 + i]
        row = -1 - code
        if code >= 0:
            unit = code // 2
            if row_of[t, unit] < 0 or status[t, unit] != code % 2:
                continue
            row = row_of[t, unit]
        share = shares[key, i]
        total += share
        constant += share * rows[t, row, p]
        for c in range(p):
            scratch[3, c] += share * rows[t, row, c]
    if identity:
        for c in range(p):
            constant += abs(scratch[3, c])
    else:
        combine(frame, scratch)
        for j in range(n):
            constant += abs(scratch[4, j])
    return constant + 4.0 * MARGIN * total < 0.0


@_compiled
def _refuted(
    key: int, r: int, t: int, frame: Floats, rows: Floats, row_of: Any, codes: Any, status: Any, stack: Floats, recalled: Any, cuts: Floats, tight: Any,
    corner: Floats, scratch: Floats, counters: Any,
) -> bool:
    """Whether it is proved, in the few dimensions of the first layer, that row r of a node is negative in its cell."""
    p, last = len(tight), len(recalled) - 1
    for row in range(r + 1):
        for c in range(p + 1):
            stack[c, row] = rows[t, row, c]
    for i in range(p):
        code = recalled[key, i]
        if 0 <= code < CUT:
            unit = code // 2
            code = row_of[t, unit] if status[t, unit] == code % 2 else -1
        recalled[last, i] = code
    begin(r, recalled[last], stack, cuts, tight, corner)
    if descend(r, frame, stack, cuts, tight, corner, scratch, counters) != INFEASIBLE:
        return False
    for i in range(p):
        recalled[key, i] = codes[t, tight[i]] if 0 <= tight[i] < CUT else tight[i]
    return True


@_compiled
def _values(t: int, g: int, at: int, combined: Floats, points: Floats, vals: Floats) -> None:
    """A unit's preactivations at all points of a node, in row ``at`` of vals; places without a point hold anything."""
    p = combined.shape[2] - 1
    for i in range(POINTS):
        vals[at, i] = combined[t, g, p]
    for c in range(p):
        factor = combined[t, g, c]
        for i in range(POINTS):
            vals[at, i] += factor * points[t, c, i]


@_compiled
def _seen(t: int, at: int, size: float, node: Any, vals: Floats) -> int:
    """The signs that row ``at`` of vals shows with certainty: 1 if positive, 2 if negative, 3 if both."""
    known = min(node[t, KNOWN], POINTS)
    most, least = 0.0, 0.0
    for i in range(known):
        most = max(most, vals[at, i])
        least = min(least, vals[at, i])
    sure = 4.0 * MARGIN * size
    return (1 if most >= sure else 0) + (2 if -least >= sure else 0)


@_compiled
def _survey(
    doors: Any, t: int, programs: bool, layout: Any, combined: Floats, node: Any, status: Any, row_of: Any, codes: Any,
    points: Floats, names: Any, pool: Any, ends: Any, vals: Floats, proofs: Any, shares: Floats, stack: Floats, recalled: Any, cuts: Floats, tight: Any, corner: Floats, identity: bool, gram: Floats, frame: Floats, light: Any, columns: Floats, rows: Floats, lists: Any, inverse: Floats, places: Floats, sides: Any, scratch: Floats, order: Any, prices: Any, counters: Any,
) -> None:
    """Settle the units of a node's layer that are left: by points, known proofs and refutations, and by linear programs if asked."""
    layer, r, p = node[t, _LAYER], node[t, _ROWS], points.shape[1]
    for stage in range(2 if programs else 1):
        for i in range(layout[layer, 1]):
            g = layout[layer, 0] + i
            if status[t, g] < _BOTH or (stage == 1 and status[t, g] != _OPEN):
                continue
            size = _size(t, g, combined)
            _values(t, g, 0, combined, points, vals)
            seen = _seen(t, 0, size, node, vals)
            if seen == 3:
                status[t, g] = _BOTH
                continue
            status[t, g] = _OPEN
            if stage == 0:
                if seen and _proved(g, seen == 1, t, identity, frame, rows, row_of, status, combined, proofs, shares, scratch):
                    status[t, g] = 1 if seen == 1 else 0
                    node[t, _LEFT] -= 1
                    counters[REUSED] += 1
                elif seen and len(stack) and not programs:
                    _place(t, g, -1.0 if seen == 1 else 1.0, r, identity, gram, combined, rows)
                    if _refuted(
                        2 * g + seen - 1, r, t, frame, rows, row_of, codes, status, stack, recalled, cuts, tight, corner, scratch, counters
                    ):
                        status[t, g] = 1 if seen == 1 else 0
                        node[t, _LEFT] -= 1
                continue
            outcome = INFEASIBLE
            for side in range(1, -1, -1):
                if seen & (1 if side else 2):
                    continue
                _place(t, g, 1.0 if side else -1.0, r, identity, gram, combined, rows)
                sign = 1.0 if side else -1.0
                value = combined[t, g, p]
                for c in range(p):
                    value += combined[t, g, c] * places[t, c]
                if len(stack) and _refuted(
                    2 * g + side, r, t, frame, rows, row_of, codes, status, stack, recalled, cuts, tight, corner, scratch, counters
                ):
                    continue
                found = UNCLEAR
                if _load(
                    t, sign, sign * value, r, identity, frame, columns, rows, lists, inverse, places, sides, scratch, node, names, pool, ends, vals
                ):
                    found = _climb(
                        doors[CLIMB], t, r, GOAL, True, identity, frame, light, columns, rows, lists, inverse, places, sides, scratch, order, prices, node, points, names,
                        pool, ends, counters,
                    )
                if found == FEASIBLE:
                    _keep(t, node, points, names, pool, ends, lists, places, sides, counters)
                    seen |= 1 if side else 2
                elif found == INFEASIBLE:
                    _remember(g, side == 0, t, scratch, lists, codes, proofs, shares)
                    if len(stack):
                        cut(frame, cuts, tight, scratch, counters)
                else:
                    outcome = UNCLEAR
            if seen == 3:
                status[t, g] = _BOTH
            elif outcome == UNCLEAR or seen == 0:
                status[t, g] = _UNSURE
            else:
                status[t, g] = 1 if seen == 1 else 0
                node[t, _LEFT] -= 1


@_compiled
def _clone(
    t: int, child: int, layout: Any, combined: Floats, errors: Floats, node: Any, status: Any, row_of: Any, codes: Any, rows: Floats, lists: Any,
    inverse: Floats, places: Floats, sides: Any,
) -> None:
    """Make a node a copy of another one, but for its points."""
    layer, r = node[t, _LAYER], node[t, _ROWS]
    for i in range(NODE):
        node[child, i] = node[t, i]
    for g in range(status.shape[1]):
        status[child, g] = status[t, g]
        row_of[child, g] = row_of[t, g]
    for row in range(r):
        codes[child, row] = codes[t, row]
        for c in range(rows.shape[2]):
            rows[child, row, c] = rows[t, row, c]
    for i in range(layout[layer, 1]):
        g = layout[layer, 0] + i
        errors[child, g] = errors[t, g]
        for c in range(combined.shape[2]):
            combined[child, g, c] = combined[t, g, c]
    k = lists[t, 2, 0]
    lists[child, 2, 0], lists[child, 2, 1] = k, lists[t, 2, 1]
    for q in range(k):
        lists[child, 0, q], lists[child, 1, q] = lists[t, 0, q], lists[t, 1, q]
        for c in range(k):
            inverse[child, q, c] = inverse[t, q, c]
    for c in range(places.shape[1]):
        places[child, c] = places[t, c]
    for j in range(sides.shape[1]):
        sides[child, j] = sides[t, j]


@_compiled
def child_of(
    doors: Any, t: int, child: int, g: int, side: int, layout: Any, combined: Floats, errors: Floats, node: Any, status: Any, row_of: Any, codes: Any,
    points: Floats, names: Any, pool: Any, ends: Any, vals: Floats, proofs: Any, shares: Floats, identity: bool, gram: Floats, frame: Floats, light: Any, columns: Floats, rows: Floats, lists: Any, inverse: Floats, places: Floats, sides: Any, scratch: Floats, order: Any, prices: Any, counters: Any,
) -> int:
    """Make the child of a node on one side of a unit; row 0 of vals holds the unit's values at the node's points."""
    p, r, size = points.shape[1], node[t, _ROWS], _size(t, g, combined)
    sign = 1.0 if side else -1.0
    sure, kept = 4.0 * MARGIN * size, 0
    known = min(node[t, KNOWN], POINTS)
    for i in range(known):
        if sign * vals[0, i] >= sure:
            for c in range(p):
                points[child, c, kept] = points[t, c, i]
            names[child, kept] = names[t, i]
            kept += 1
    if kept == 0 and _proved(g, side == 0, t, identity, frame, rows, row_of, status, combined, proofs, shares, scratch):
        counters[REUSED] += 1
        return INFEASIBLE
    _clone(t, child, layout, combined, errors, node, status, row_of, codes, rows, lists, inverse, places, sides)
    _place(child, g, sign, r, identity, gram, combined, rows)
    codes[child, r], row_of[child, g], status[child, g] = 2 * g + side, r, side
    node[child, _ROWS], node[child, KNOWN], node[child, _ADDED] = r + 1, kept, 0
    node[child, _LEFT] -= 1
    value = combined[t, g, p]
    for c in range(p):
        value += combined[t, g, c] * places[t, c]
    if sign * value < 2.0 * sure or not _sound(t, r, rows, lists, places):
        node[child, KNOWN] = node[t, KNOWN]  # all vertices of the parent will do to begin with
        for i in range(known):
            order[i], names[child, i] = names[child, i], names[t, i]
        found = UNCLEAR
        if _load(
            child, sign, sign * value, r, identity, frame, columns, rows, lists, inverse, places, sides, scratch, node, names, pool, ends, vals
        ):
            for i in range(known):
                names[child, i] = order[i]
            node[child, KNOWN] = kept
            found = _climb(
                doors[CLIMB], child, r, GOAL, False, identity, frame, light, columns, rows, lists, inverse, places, sides, scratch, order, prices, node, points, names, pool,
                ends, counters,
            )
        if found == INFEASIBLE:
            _remember(g, side == 0, child, scratch, lists, codes, proofs, shares)
        if found != FEASIBLE:
            return found
        kept = 0 if value < 0.0 else kept
    if kept == 0:
        _keep(child, node, points, names, pool, ends, lists, places, sides, counters)
    _cross(t, child, g, side, layout, combined, node, status, points, names, vals, counters)
    return FEASIBLE


@_compiled
def _cross(
    t: int, child: int, g: int, side: int, layout: Any, combined: Floats, node: Any, status: Any, points: Floats, names: Any, vals: Floats, counters: Any
) -> None:
    """Points of a child between those of its parent on either side, where they show a second sign of a unit that is left.

    Row 0 of vals holds the values at the parent's points of the unit g that was split on.  In the plane of two units' values the hull of the points
    reaches a quadrant if and only if the segment between two of them does: the steepest on each side.
    """
    p, layer, sign = points.shape[1], node[t, _LAYER], 1.0 if side else -1.0
    known = min(node[t, KNOWN], POINTS)
    firm = 8.0 * MARGIN * _size(t, g, combined)
    for i in range(layout[layer, 1]):
        u = layout[layer, 0] + i
        if u == g or status[t, u] < _BOTH:
            continue
        size = _size(t, u, combined)
        sure = 4.0 * MARGIN * size
        _values(t, u, 1, combined, points, vals)
        most, least = 0.0, 0.0
        for q in range(known):
            here = vals[1, q] if sign * vals[0, q] >= firm else 0.0
            most = max(most, here)
            least = min(least, here)
        if most >= sure and -least >= sure:
            continue
        wanted = -1.0 if most >= sure else 1.0
        inside, outside, shallow, steep = -1, -1, -np.inf, 0.0
        for q in range(known):
            a, b = sign * vals[0, q], wanted * vals[1, q]
            if a >= firm:
                if b > shallow * a:
                    inside, shallow = q, b / a
            elif a <= 0.0 and b > steep * -a:
                outside, steep = q, b / max(-a, 1e-300)
        if inside < 0 or outside < 0 or steep <= -shallow:
            continue
        a, b = sign * vals[0, inside], wanted * vals[1, inside]
        c, d = sign * vals[0, outside], wanted * vals[1, outside]
        share = 0.5 * (a / (a - c) + max(-b / (d - b), 0.0))
        if a + share * (c - a) < firm or b + share * (d - b) < 2.0 * sure:
            continue
        place = node[child, KNOWN]
        if place >= POINTS:
            place = node[child, _ADDED] % POINTS
            node[child, _ADDED] += 1
        else:
            node[child, KNOWN] += 1
        counters[CROSSED] += 1
        names[child, place] = 0
        for e in range(p):
            points[child, e, place] = (1.0 - share) * points[t, e, inside] + share * points[t, e, outside]


@_compiled
def settle(
    doors: Any, t: int, programs: bool, whole: bool, layout: Any, weights: Floats, biases: Floats, rectified: Any, look: Any, combined: Floats, errors: Floats,
    node: Any, status: Any, row_of: Any, codes: Any,
    points: Floats, names: Any, pool: Any, ends: Any, vals: Floats, proofs: Any, shares: Floats, stack: Floats, recalled: Any, cuts: Floats, tight: Any, corner: Floats, identity: bool, gram: Floats, frame: Floats, light: Any, columns: Floats, rows: Floats, lists: Any, inverse: Floats, places: Floats, sides: Any, scratch: Floats, order: Any, prices: Any, counters: Any,
) -> int:
    """Go on to the layer where a node has units left: 0; 1 or 2 leaves if there is none; -1 if rows are lost in rounding."""
    layers = len(layout)
    while True:
        layer = node[t, _LAYER]
        if layer >= 0 and look[layer]:
            _survey(
                doors, t, programs, layout, combined, node, status, row_of, codes, points, names, pool, ends, vals, proofs, shares, stack, recalled, cuts, tight, corner, identity, gram, frame,
                light, columns, rows, lists, inverse, places, sides, scratch, order, prices, counters,
            )
        if node[t, _LEFT] == 1 and layer == layers - 1 and not whole:
            for i in range(layout[layer, 1]):
                if status[t, layout[layer, 0] + i] == _BOTH:
                    return 2
        if node[t, _LEFT] > 0:
            return 0
        if layer == layers - 1:
            return 1
        layer += 1
        node[t, _LAYER] = layer
        if layer > 0:
            _compose(t, layer, layout, weights, biases, status, combined, errors, scratch)
        left = 0
        for i in range(layout[layer, 1]):
            g = layout[layer, 0] + i
            if rectified[g]:
                quick = _quick(t, g, combined, errors)
                if quick == -2:
                    return -1
                status[t, g] = quick if quick >= 0 else _OPEN
                left += 1 if quick < 0 else 0
        node[t, _LEFT] = left


@_compiled
def _features(
    t: int, at: int, layout: Any, weights: Floats, biases: Floats, rectified: Any, logs: Floats, features: Any, combined: Floats, node: Any, status: Any,
    points: Floats, vals: Floats, marks: Any,
) -> None:
    """Describe a node in line ``at`` of the features, for the regression of its layer and number of units left."""
    layers, layer, p = len(layout), node[t, _LAYER], points.shape[1]
    first, units, left = layout[layer, 0], layout[layer, 1], node[t, _LEFT]
    known = min(node[t, KNOWN], POINTS)
    for d in range(features.shape[1]):
        features[at, d] = 0.0
    rank = p
    for each in range(layer):
        total = 0
        for i in range(layout[each, 1]):
            total += status[t, layout[each, 0] + i]
        rank = min(rank, total)
    live, open_units, both = 0, 0, 0
    for i in range(units):
        s = status[t, first + i]
        live += 1 if s == 1 else 0
        open_units += 1 if s == _OPEN else 0
        both += 1 if s == _BOTH else 0
    most = logs.shape[1] - 1
    after = min(rank, live + (left + 1) // 2)
    features[at, 0] = 1.0
    features[at, 1] = logs[left, min(rank, most)]
    features[at, 2] = logs[both, min(rank, most)]
    features[at, 4] = 1.0 / (1.0 + live)
    features[at, 5] = left * live / 64.0
    features[at, 6] = live / 8.0
    features[at, 7] = open_units / 8.0
    features[at, 8] = rank / 8.0
    features[at, 9] = np.log1p(known)
    wide = units > WIDE
    for deep in range(layer + 1, layers):
        wide = wide or layout[deep, 1] > WIDE
    if wide:
        if layer + 1 < layers:
            features[at, 3] = logs[layout[layer + 1, 1], min(after, most)]
        return
    # signs at the points, as bits; pairs of units of this layer that show all four combinations cut each other
    full = np.int64(-1) if known == POINTS else (np.int64(1) << known) - 1
    cut = 0
    for i in range(units):
        g = first + i
        _values(t, g, i, combined, points, vals)
        if status[t, g] >= _BOTH:
            mask = np.int64(0)
            for q in range(known):
                mask |= np.int64(1 if vals[i, q] > 0.0 else 0) << q
            marks[cut] = mask
            cut += 1
    pairs, _ = _meeting(cut, full, marks)
    features[at, 10] = np.log1p(cut + pairs)
    # the points pushed through the layers that follow
    base, soft_total, both_total = 0, 0.0, 0
    other = WIDE
    for deep in range(layer + 1, layers):
        reads, here, place = layout[deep - 1, 1], layout[deep, 1], layout[deep, 2]
        for j in range(reads):
            g = layout[deep - 1, 0] + j
            if rectified[g]:
                if deep - 1 == layer and status[t, g] < _BOTH:
                    if status[t, g] == 0:
                        for q in range(POINTS):
                            vals[base + j, q] = 0.0
                else:
                    for q in range(POINTS):
                        vals[base + j, q] = max(vals[base + j, q], 0.0)
        cut = 0
        for i in range(here):
            for q in range(POINTS):
                vals[other + i, q] = biases[layout[deep, 0] + i]
            for j in range(reads):
                weight = weights[place + i * reads + j]
                if weight != 0.0:
                    for q in range(POINTS):
                        vals[other + i, q] += weight * vals[base + j, q]
            mask, positive = np.int64(0), 0
            for q in range(known):
                up = 1 if vals[other + i, q] > 0.0 else 0
                mask |= np.int64(up) << q
                positive += up
            share = positive / max(known, 1)
            soft = 4.0 * share * (1.0 - share) if rectified[layout[deep, 0] + i] else 0.0
            soft_total += soft
            if 0 < positive < known and rectified[layout[deep, 0] + i]:
                marks[cut] = mask
                cut += 1
                both_total += 1
            if deep == layer + 1:
                features[at, BASE + 2 * units + (layout[layer - 1, 1] if layer else 0) + i] = soft
        if deep == layer + 1:
            features[at, 3] = logs[cut, min(after, most)]
            pairs, triples = _meeting(cut, full, marks)
            features[at, 11] = np.log1p(cut + pairs)
            features[at, 12] = np.log1p(cut + pairs + triples)
        base, other = other, base
    features[at, 13] = both_total / 8.0
    features[at, 14] = soft_total / 8.0
    for i in range(units):
        s = status[t, first + i]
        features[at, BASE + i] = 1.0 if s == 1 else 0.0
        features[at, BASE + units + i] = 1.0 if s == _BOTH else 0.7 if s >= _OPEN else 0.0
    if layer:
        for j in range(layout[layer - 1, 1]):
            features[at, BASE + 2 * units + j] = status[t, layout[layer - 1, 0] + j]


@_compiled
def _meeting(cut: int, full: int, marks: Any) -> Any:
    """How many pairs and triples of units show all combinations of signs at the points."""
    pairs, triples = 0, 0
    for i in range(cut):
        for j in range(i):
            a, b = marks[i], marks[j]
            pp, pm, mp, mm = a & b, a & ~b & full, b & ~a & full, ~a & ~b & full
            if pp != 0 and pm != 0 and mp != 0 and mm != 0:
                pairs += 1
                if cut <= _TRIPLES:
                    for k in range(j):
                        c = marks[k]
                        if (pp & c) != 0 and (pm & c) != 0 and (mp & c) != 0 and (mm & c) != 0:
                            d = ~c
                            if (pp & d) != 0 and (pm & d) != 0 and (mp & d) != 0 and (mm & d) != 0:
                                triples += 1
    return pairs, triples


@_compiled
def _predict(at: int, bucket: int, features: Any, theta: Floats) -> float:
    """The predicted logarithm of the number of leaves."""
    total = 0.0
    for d in range(features.shape[1]):
        total += theta[bucket, d] * features[at, d]
    return min(max(total, 0.0), theta[bucket, features.shape[1]])


@_compiled
def _uniform(seed: Any) -> float:
    """The next number between 0 and 1 (splitmix64)."""
    seed[0] += np.uint64(0x9E3779B97F4A7C15)
    z = seed[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@_compiled
def _known_value(t: int, last: int, side: int, unit_of: Any, status: Any, needed: Any, keys: Any, worth: Floats, counters: Any) -> float:
    """What exact arithmetic said of the prefix that ends with unit ``last`` on a side (or before it, if the side is -1); -1 if it was not asked."""
    length, one, two = 0, np.uint64(0xCBF29CE484222325), np.uint64(0x84222325CBF29CE4)
    for u in range(len(unit_of)):
        g = unit_of[u]
        if g > last or (g == last and side < 0):
            break
        sign = side if g == last else status[t, g]
        needed[length] = sign
        length += 1
        one = (one ^ np.uint64(sign + 1)) * np.uint64(0x100000001B3)
        two = (two + np.uint64(sign + 1)) * np.uint64(0x9E3779B97F4A7C15)
        two ^= two >> np.uint64(29)
    counters[NEEDED] = counters[LENGTH] = length
    mask = np.uint64(len(worth) - 1)
    place = one & mask
    while worth[np.int64(place)] > -1.5:
        if keys[np.int64(place), 0] == one and keys[np.int64(place), 1] == two:
            counters[NEEDED] = -1
            return worth[np.int64(place)]
        place = (place + np.uint64(1)) & mask
    keys[-1, 0], keys[-1, 1] = one, two
    return -1.0


@_compiled
def _score(
    t: int, parent: int, layout: Any, weights: Floats, biases: Floats, rectified: Any, logs: Floats, buckets: Any, theta: Floats, features: Any, origin: Any,
    leaves: Floats, combined: Floats, node: Any, status: Any, points: Floats, vals: Floats, marks: Any, counters: Any,
) -> float:
    """Describe a node, note it (if there is room) as a child of a record, and predict its leaves."""
    at = counters[RECORDS]
    if at < len(features) - 1:
        counters[RECORDS] += 1
        node[t, _RECORD] = at
    else:
        node[t, _RECORD] = -1
    bucket = buckets[node[t, _LAYER], node[t, _LEFT]]
    _features(t, at, layout, weights, biases, rectified, logs, features, combined, node, status, points, vals, marks)
    origin[at, 0], origin[at, 1], origin[at, 2], leaves[at] = bucket, parent, 0, 0.0
    return _predict(at, bucket, features, theta)


@_compiled
def _select(size: int, most: int, scores: Floats, seed: Any) -> None:
    """Draw so many candidates by systematic sampling; scores[1] becomes their probabilities, and 0 for those not drawn.

    Row 0 of the scores holds logarithms.
    """
    top = scores[0, 0]
    for i in range(size):
        top = max(top, scores[0, i])
    total = 0.0
    for i in range(size):
        scores[1, i] = np.exp(scores[0, i] - top)
        total += scores[1, i]
    for i in range(size):
        scores[1, i] = (1.0 - _MIXED) * scores[1, i] / total + _MIXED / size
        scores[2, i] = 0.0
    certain = 0
    while True:
        rest, more = 0.0, 0
        for i in range(size):
            rest += scores[1, i] if scores[2, i] == 0.0 else 0.0
        factor = (most - certain) / rest
        for i in range(size):
            if scores[2, i] == 0.0 and factor * scores[1, i] >= 1.0:
                scores[2, i] = 1.0
                more += 1
        certain += more
        if more == 0 or certain >= most:
            break
    spot, reached = _uniform(seed), 0.0
    for i in range(size):
        chance = 1.0 if scores[2, i] > 0.0 else factor * scores[1, i] if certain < most else 0.0
        reached += chance
        scores[1, i] = 0.0
        if reached > spot:
            scores[1, i] = chance
            spot += 1.0


@_compiled
def _plus(one: float, two: float) -> float:
    """The logarithm of a sum."""
    top, low = max(one, two), min(one, two)
    return top if low == -np.inf else top + np.log1p(np.exp(low - top))


_open, _go_on = calling(child_of), calling(settle)


@_compiled
def round_of(
    doors: Any, options: Any, unit_of: Any, layout: Any, weights: Floats, biases: Floats, rectified: Any, look: Any, combined: Floats, errors: Floats,
    node: Any, status: Any, row_of: Any, codes: Any, points: Floats, names: Any, pool: Any, ends: Any, vals: Floats, marks: Any, logs: Floats, buckets: Any, theta: Floats, features: Any,
    origin: Any, leaves: Floats, used: Any, crowd: Any, scores: Floats, needed: Any, keys: Any, worth: Floats, seed: Any, proofs: Any, shares: Floats, stack: Floats, recalled: Any, cuts: Floats, tight: Any, corner: Floats,
    identity: bool, gram: Floats, frame: Floats, light: Any, columns: Floats, rows: Floats, lists: Any, inverse: Floats, places: Floats, sides: Any, scratch: Floats, order: Any, prices: Any, counters: Any,
) -> float:
    """One round from the root, which is node 0; the logarithm of its sum, or not a number if a prefix is needed.

    If a single leaf is asked for, it is drawn with the others and left in node crowd[0]; the last row of the scores has what leaves are worth.
    """
    layers, single, lazy = len(layout), options[SINGLE] != 0, options[LAZY] != 0
    node[0, _RECORD] = -1
    crowd[0], crowd_size, total, predicted = 0, 1, -np.inf, 0.0
    scores[3, 0] = 0.0
    for t in range(len(used)):
        used[t] = 0
    used[0] = 1
    while crowd_size > 0:
        size = 0
        for member in range(crowd_size):
            t, weight = crowd[member], scores[3, member]
            root, record, g, held = node[t, _LAYER] < 0, node[t, _RECORD], -1, True
            for step in range(3):  # the node itself, where something is left to do; then its sides
                child, become, value = t, 0, 0.0
                if step == 0:
                    if not (root or lazy):
                        continue
                elif not held:
                    break
                else:
                    if g < 0:
                        g = layout[node[t, _LAYER], 0]
                        while g < status.shape[1] - 1 and status[t, g] < _BOTH:
                            g += 1
                        _values(t, g, 0, combined, points, vals)
                        for i in range(POINTS):
                            scratch[7, i] = vals[0, i]
                        counters[SPLITS] += 1
                        if record >= 0:
                            origin[record, 2] = 1
                    child, side = 0, 2 - step
                    while used[child]:
                        child += 1
                    for i in range(POINTS):
                        vals[0, i] = scratch[7, i]
                    found = _open(
                        doors[CHILD], doors, t, child, g, side, layout, combined, errors, node, status, row_of, codes, points, names, pool, ends, vals, proofs, shares, identity, gram, frame,
                        light, columns, rows, lists, inverse, places, sides, scratch, order, prices, counters,
                    )
                    if found == INFEASIBLE:
                        continue
                    if found == UNCLEAR:
                        become = 1
                        value = _known_value(t, g, side, unit_of, status, needed, keys, worth, counters)
                        if value < 0.0:
                            return np.nan
                if become == 0:
                    programs = step == 0 or not lazy
                    become = _go_on(
                        doors[SETTLE], doors, child, programs, single, layout, weights, biases, rectified, look, combined, errors, node, status, row_of,
                        codes, points, names, pool, ends, vals, proofs, shares, stack, recalled, cuts, tight, corner, identity, gram, frame, light, columns, rows, lists, inverse, places, sides, scratch, order, prices, counters,
                    )
                    value = np.float64(become)
                    counters[LENGTH] = len(unit_of)
                    if become < 0:
                        value = _known_value(child, layout[node[child, _LAYER], 0], -1, unit_of, status, needed, keys, worth, counters)
                        if value < 0.0:
                            return np.nan
                if become == 0:
                    if step > 0 or root:
                        predicted = _score(
                            child, record, layout, weights, biases, rectified, logs, buckets, theta, features, origin, leaves, combined, node, status, points,
                            vals, marks, counters,
                        )
                    if step == 0:
                        record = node[t, _RECORD]
                        continue
                    scores[0, size] = weight + predicted
                else:  # leaves
                    if step == 0:
                        held = False
                        if record >= 0:
                            origin[record, 2] = 1
                    if value <= 0.0:
                        continue
                    if record >= 0:
                        leaves[record] += value
                    if not single:
                        total = _plus(total, weight + np.log(value))
                        continue
                    node[child, _LEFT] = -1 - counters[LENGTH]
                    scores[0, size], scores[6, child] = weight + np.log(value), value
                used[child] = 1
                crowd[len(used) + size] = child
                scores[4, size] = weight
                size += 1
            if held or not single:
                used[t] = 0
        # who stays
        most = options[POPULATION]
        shallow, ending = False, False
        for i in range(size):
            t = crowd[len(used) + i]
            layer = node[t, _LAYER]
            shallow = shallow or (layer == 0 and not look[0])
            ending = ending or (layer == layers - 2 and node[t, _LEFT] <= 2)
        if shallow or single:
            most = 1
        elif ending:
            most *= 2
        if size <= most:
            for i in range(size):
                scores[1, i] = 1.0
        else:
            _select(size, most, scores, seed)
        crowd_size = 0
        for i in range(size):
            t = crowd[len(used) + i]
            if scores[1, i] > 0.0:
                crowd[crowd_size] = t
                scores[5, crowd_size] = scores[4, i] - np.log(scores[1, i])
                crowd_size += 1
            else:
                used[t] = 0
        for i in range(crowd_size):
            scores[3, i] = scores[5, i]
        if single and crowd_size == 1 and node[crowd[0], _LEFT] < 0:
            counters[LENGTH] = -1 - node[crowd[0], _LEFT]
            return scores[3, 0] + np.log(scores[6, crowd[0]])
    return total


_go_round = calling(round_of)


@_compiled
def probe(
    doors: Any, first: int, count: int, base: Any, results: Floats, options: Any, domain: int, root: int, origin_rows: Floats, origin_errors: Floats,
    unit_of: Any, layout: Any, weights: Floats, biases: Floats, rectified: Any, look: Any, combined: Floats, errors: Floats,
    node: Any, status: Any, row_of: Any, codes: Any, points: Floats, names: Any, pool: Any, ends: Any, vals: Floats, marks: Any, logs: Floats, buckets: Any, theta: Floats, features: Any,
    origin: Any, leaves: Floats, used: Any, crowd: Any, scores: Floats, needed: Any, keys: Any, worth: Floats, seed: Any, proofs: Any, shares: Floats, stack: Floats, recalled: Any, cuts: Floats, tight: Any, corner: Floats,
    identity: bool, gram: Floats, frame: Floats, light: Any, columns: Floats, rows: Floats, lists: Any, inverse: Floats, places: Floats, sides: Any, scratch: Floats, order: Any, prices: Any, counters: Any,
) -> int:
    """Rounds number ``first`` and following, each from a seed of its own; how many are done, fewer if a prefix is needed.

    The root's rows of the domain are those of node ``root``, as is its state.
    """
    p = points.shape[1]
    for number in range(count):
        seed[0] = base[0] ^ (np.uint64(first + number) * np.uint64(0xD1342543DE82EF95))
        _uniform(seed)
        for i in range(NODE):
            node[0, i] = 0
        node[0, _LAYER], node[0, _ROWS] = -1, domain
        for g in range(status.shape[1]):
            status[0, g] = 0 if rectified[g] else 1
            row_of[0, g] = -1
        for g in range(len(origin_errors)):
            errors[0, g] = origin_errors[g]
            for c in range(p + 1):
                combined[0, g, c] = origin_rows[g, c]
        for row in range(domain):
            codes[0, row] = -1 - row
            for c in range(rows.shape[2]):
                rows[0, row, c] = rows[root, row, c]
        for i in range(len(proofs)):
            proofs[i, 0] = -1
        counters[ADDED] = 0
        for i in range(len(recalled)):
            for c in range(len(tight)):
                recalled[i, c] = -1
        lists[0, 2, 0], lists[0, 2, 1] = lists[root, 2, 0], _REFACTOR_EVERY
        for q in range(lists[root, 2, 0]):
            lists[0, 0, q], lists[0, 1, q] = lists[root, 0, q], lists[root, 1, q]
        for j in range(sides.shape[1]):
            sides[0, j] = sides[root, j]
        refresh(0, domain, identity, frame, columns, rows, lists, inverse, places, sides, scratch)
        _keep(0, node, points, names, pool, ends, lists, places, sides, counters)
        for place in range(node[root, KNOWN]):  # corners of the box in all directions
            names[0, 1 + place] = place - POINTS
            node[0, KNOWN] += 1
            for c in range(p):
                points[0, c, 1 + place] = points[root, c, place]
        held = counters[RECORDS]
        found = _go_round(
            doors[ROUND], doors, options, unit_of, layout, weights, biases, rectified, look, combined, errors, node, status, row_of, codes, points, names, pool, ends, vals, marks, logs,
            buckets, theta, features, origin, leaves, used, crowd, scores, needed, keys, worth, seed, proofs, shares, stack, recalled, cuts, tight, corner, identity, gram, frame, light,
            columns, rows, lists, inverse, places, sides, scratch, order, prices, counters,
        )
        if np.isnan(found):
            counters[RECORDS] = held
            return number
        results[number] = found
    return count


# fmt: on
