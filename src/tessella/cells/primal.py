"""Where in a cell a row is positive: a primal simplex method that goes from vertex to vertex.

`raise_row` asks whether one more row can be positive in a cell.  It starts from a vertex of the cell (`tessella.cells.vertex`) and raises the row until it reaches a goal.  If it cannot, the tight
rows' multipliers prove that, in double precision.

Inputs are priced in single precision, all at once, and the best few are remembered: as long as one of these is still good, the others are not looked at.
"""

import numpy as np

from tessella.cells.emptiness import is_empty
from tessella.cells.pricing import price
from tessella.cells.rows import value
from tessella.cells.state import FEASIBLE, INFEASIBLE, UNCLEAR
from tessella.cells.vertex import (
    LANES,
    POINTS,
    REFACTOR_EVERY,
    Primal,
    clearance,
    is_sound,
    keep,
    refresh,
    slope,
    slopes_in_basic,
)
from tessella.kernel.basis import border, replace_column, replace_row, shrink, times, times_left
from tessella.kernel.functions import apart, compiled, inlined
from tessella.numerics import EDGE, PIVOT

_ENOUGH = np.float32(0.3)  # of the best input's merit: what an input must promise to be remembered
_FADED = 0.5  # of what was promised by the last pricing of all inputs; below, all are priced again
_SMALL = 1e-6  # after a pivot like that the basis is inverted anew
_GAIN = 1e-11  # per step: less is rounding
_TIE = 1e-13  # between lengths of steps: the steeper constraint blocks
_PROGRESS = 1e-14  # a step that gains less has stalled
_MOST_STALLED = 40
_LIKELY = 1e-6  # how negative a bound in single precision must be, of the multipliers' size, to be proved in double precision


@inlined
def _price_rows(primal: Primal, node: int, at: int) -> tuple[int, float, float, float, float]:
    """Price the tight rows: multipliers, and row ``at`` with these added, in work.combination.

    Returns the tight row that is best let go (-1 if none), its merit, its gain per step; the combination's constant, and its multipliers' size.
    """
    vertices, rows, combination = primal.vertices, primal.rows[node], primal.work.combination
    tight, inverse, k, p = vertices.tight[node], vertices.inverse[node], vertices.size[node], len(primal.direction)
    multipliers, lengths, slopes = primal.multipliers, primal.lengths, primal.slopes
    slopes_in_basic(primal, node, rows[at])
    for c in range(p):
        combination[c] = rows[at, c]
    slack, gain, score, constant, weight = -1, 0.0, 0.0, rows[at, p], 1.0
    for i in range(k):
        multipliers[i], lengths[i] = 0.0, 1e-30
    for q in range(k):
        rate = slopes[q]
        for i in range(k):
            multipliers[i] -= rate * inverse[q, i]
            lengths[i] += inverse[q, i] * inverse[q, i]
    for i in range(k):
        total, row = -multipliers[i], tight[i]
        for c in range(p):
            combination[c] -= total * rows[row, c]
        constant -= total * rows[row, p]
        weight += abs(total)
        if total > _GAIN:
            merit = total / np.sqrt(lengths[i])
            if merit > score:
                slack, score, gain = i, merit, total
    return slack, score, gain, constant, weight


@compiled
def _best_listed(primal: Primal, node: int, count: int) -> tuple[int, float]:
    """Of the inputs that are remembered, the one that is best moved away from its end, and how much the row gains per step; -1 if none gains."""
    sides, combination, listed = primal.vertices.sides[node], primal.work.combination, primal.listed
    enter, merit = -1, 0.0
    for place in range(count):
        j = listed[place]
        total = -sides[j] * slope(primal.space, combination, j)
        if total > merit:
            enter, merit = j, total
    return enter, merit


@inlined
def _price_inputs(primal: Primal) -> float:
    """Price all inputs in single precision; the sum of the sizes: how far the combination reaches on the box."""
    combination, prices = primal.work.combination, primal.prices
    if primal.space.in_inputs:
        for j in range(len(prices)):
            prices[j] = np.float32(combination[j])
    else:
        price(primal.space.light, combination, prices)
    reach = np.float32(0.0)
    for j in range(len(prices)):
        reach += abs(prices[j])
    return reach  # pyright: ignore[reportReturnType]


@inlined
def _list_best(primal: Primal, node: int) -> int:
    """Remember the best input of each lane, where it is good enough; how many these are."""
    sides, prices, m, tops = primal.vertices.sides[node], primal.prices, primal.merits, primal.tops
    n, listed = len(prices), 0
    for j in range(n):
        m[j] = -sides[j] * prices[j]
    b = n // LANES
    m0, m1, m2, m3, m4, m5, m6, m7 = m[0], m[b], m[2 * b], m[3 * b], m[4 * b], m[5 * b], m[6 * b], m[7 * b]
    for j in range(b):  # each maximum waits for the one before it
        m0, m1 = max(m0, m[j]), max(m1, m[j + b])
        m2, m3 = max(m2, m[j + 2 * b]), max(m3, m[j + 3 * b])
        m4, m5 = max(m4, m[j + 4 * b]), max(m5, m[j + 5 * b])
        m6, m7 = max(m6, m[j + 6 * b]), max(m7, m[j + 7 * b])
    for j in range(LANES * b, n):
        m7 = max(m7, m[j])
    tops[0], tops[1], tops[2], tops[3], tops[4], tops[5], tops[6], tops[7] = m0, m1, m2, m3, m4, m5, m6, m7
    least = _ENOUGH * max(m0, m1, m2, m3, m4, m5, m6, m7, np.float32(0.0))
    for lane in range(LANES):
        top, j = tops[lane], lane * b
        if top > least:
            while j < n - 1 and m[j] != top:
                j += 1
            primal.listed[listed] = j
            listed += 1
    return listed


@compiled
def _is_proved(primal: Primal, node: int, at: int) -> bool:
    """Whether the multipliers prove, in double precision, that row ``at`` is negative in the cell; the proof is then ``proof``."""
    vertices, proof = primal.vertices, primal.proof
    proof.rows[0], proof.shares[0] = at, 1.0
    for i in range(vertices.size[node]):
        proof.rows[1 + i], proof.shares[1 + i] = vertices.tight[node, i], primal.multipliers[i]
    proof.size = 1 + vertices.size[node]
    return is_empty(proof, at + 1, primal.rows[node], primal.space, primal.work)


@inlined
def _head_for(primal: Primal, node: int, enter: int, slack: int) -> float:
    """Where the vertex goes if an input leaves its end, or else a tight row becomes loose: per step, ``direction`` in z.

    ``rates`` are those of the basic inputs but for a factor, which is returned.
    """
    space, vertices, direction, rates = primal.space, primal.vertices, primal.direction, primal.rates
    k, rows, columns, in_inputs = vertices.size[node], primal.rows[node], space.columns, space.in_inputs
    inverse, basic = vertices.inverse[node], vertices.basic[node]
    scale = 1.0
    for c in range(len(direction)):
        direction[c] = 0.0
    if enter >= 0:
        scale = np.float64(vertices.sides[node, enter])
        for i in range(k):
            primal.slopes[i] = slope(space, rows[vertices.tight[node, i]], enter)
        times(inverse, k, primal.slopes, rates)
        if in_inputs:
            direction[enter] = -scale
        else:
            for c in range(len(direction)):
                direction[c] = -scale * columns[enter, c]
    else:
        for q in range(k):
            rates[q] = inverse[q, slack]
    for q in range(k):
        rate, j = scale * rates[q], basic[q]
        if in_inputs:
            direction[j] += rate
        else:
            for c in range(len(direction)):
                direction[c] += rate * columns[j, c]
    return scale


@inlined
def _ratio_test(primal: Primal, node: int, count: int, scale: float, most: float) -> tuple[int, int, float, float]:
    """How far the vertex can go until a basic input or a row blocks it: which input, which row (-1 if not one), the step, and how steeply it is met."""
    vertices, rows, direction = primal.vertices, primal.rows[node], primal.direction
    values, place = vertices.values[node], vertices.places[node]
    leaving, blocking, theta, steep = -1, -1, most, 0.0
    for q in range(vertices.size[node]):
        rate = scale * primal.rates[q]
        if abs(rate) > PIVOT:
            step = max((EDGE - values[q]) / rate if rate > 0.0 else (-EDGE - values[q]) / rate, 0.0)
            if step < theta - _TIE or (step < theta + _TIE and abs(rate) > steep):
                leaving, theta, steep = q, step, abs(rate)
    for row in range(count):
        rate = 0.0
        for c in range(len(direction)):
            rate += rows[row, c] * direction[c]
        if rate < -PIVOT:
            step = max(clearance(rows[row], place), 0.0) / -rate
            if step < theta - _TIE or (step < theta + _TIE and -rate > steep):
                leaving, blocking, theta, steep = -1, row, step, -rate
    return leaving, -1 if leaving >= 0 else blocking, theta, steep


@inlined
def _exchange(primal: Primal, node: int, enter: int, slack: int, leaving: int, blocking: int) -> None:
    """Update basis and inverse: input ``enter`` becomes basic or tight row ``slack`` loose; the basic input at ``leaving`` goes, or row ``blocking`` becomes tight."""
    vertices, rates, product = primal.vertices, primal.rates, primal.product
    tight, basic, inverse, k = vertices.tight[node], vertices.basic[node], vertices.inverse[node], vertices.size[node]
    if blocking >= 0:
        row = primal.rows[node, blocking]
        slopes_in_basic(primal, node, row)
        times_left(primal.slopes, inverse, k, product)
        if enter >= 0:
            pivot = slope(primal.space, row, enter)
            for q in range(k):
                pivot -= primal.slopes[q] * rates[q]
            border(inverse, k, product, rates, pivot)
            tight[k], basic[k], vertices.size[node] = blocking, enter, k + 1
        else:
            replace_row(inverse, k, slack, product)
            tight[slack] = blocking
    elif enter >= 0:
        replace_column(inverse, k, leaving, rates)
        basic[leaving] = enter
    else:
        shrink(inverse, k, leaving, slack)
        basic[leaving], tight[slack], vertices.size[node] = basic[k - 1], tight[k - 1], k - 1
        vertices.values[node, leaving] = vertices.values[node, k - 1]


@inlined
def _step(primal: Primal, node: int, enter: int, slack: int, leaving: int, blocking: int, theta: float) -> None:
    """Move a node's vertex along the direction by ``theta``, with its basis."""
    vertices, rates, direction = primal.vertices, primal.rates, primal.direction
    place, values, sides, k = vertices.places[node], vertices.values[node], vertices.sides[node], vertices.size[node]
    scale = np.float64(sides[enter]) if enter >= 0 else 1.0
    for c in range(len(direction)):
        place[c] += theta * direction[c]
    for q in range(k):
        values[q] += theta * scale * rates[q]
    if leaving < 0 and blocking < 0:  # from one end to the other
        sides[enter] = -sides[enter]
        return
    if leaving >= 0:
        sides[vertices.basic[node, leaving]] = np.float32(1.0 if scale * rates[leaving] > 0.0 else -1.0)
    _exchange(primal, node, enter, slack, leaving, blocking)
    if enter >= 0:
        sides[enter] = 0.0
        values[leaving if leaving >= 0 else k] = EDGE * scale - scale * theta


@apart
def raise_row(primal: Primal, node: int, at: int, goal: float, inside: bool) -> int:
    """Raise row ``at`` over the cell of the rows before it, from the node's vertex, until it reaches the goal.

    FEASIBLE: it does, and the node's vertex is there.  INFEASIBLE: it is proved that the row is negative on all of the cell; ``proof`` says why.  UNCLEAR otherwise.
    If ``inside``, some vertices on the way become points of the node.
    """
    space, vertices, tally, row = primal.space, primal.vertices, primal.tally, primal.rows[node, at]
    (n, p), place = space.columns.shape, vertices.places[node]
    steps, stalled, listed, promised = 0, 0, 0, 0.0
    tally.tests += 1
    reached = value(row, place)
    if reached >= goal and is_sound(primal, node, at):
        return FEASIBLE
    while True:
        k = vertices.size[node]
        if steps > 200 + 10 * at + 2 * n or stalled > _MOST_STALLED or k > min(n, p):
            return UNCLEAR
        if steps == 0 and reached >= goal:  # a vertex that has drifted is computed anew
            if not refresh(primal, node, at):
                return UNCLEAR
            reached = value(row, place)
            if reached >= goal:
                return FEASIBLE
        if vertices.age[node] >= REFACTOR_EVERY and not refresh(primal, node, at):
            return UNCLEAR
        slack, score, gain, constant, weight = _price_rows(primal, node, at)
        enter, merit = _best_listed(primal, node, listed)
        if max(merit, score) <= _FADED * promised or listed == 0:
            reach = _price_inputs(primal)
            if slack < 0 and constant + reach < -_LIKELY * weight:
                return INFEASIBLE if _is_proved(primal, node, at) else UNCLEAR
            listed = _list_best(primal, node)
            enter, merit = _best_listed(primal, node, listed)
            promised = max(merit, score)
            if merit <= _GAIN and slack < 0:
                return INFEASIBLE if _is_proved(primal, node, at) else UNCLEAR
        if enter < 0 and slack < 0:  # what is not a number compares as false
            return UNCLEAR
        if merit >= score and enter >= 0:
            slack, gain = -1, merit
        else:
            enter = -1
        steps += 1
        tally.iterations += 1
        scale = _head_for(primal, node, enter, slack)
        leaving, blocking, theta, steep = _ratio_test(primal, node, at, scale, 2.0 * EDGE if enter >= 0 else np.inf)
        more_than_dimensions = enter >= 0 and blocking >= 0 and k >= min(n, p)  # tight rows: rounding
        if not 0.0 <= theta < np.inf or more_than_dimensions:
            return UNCLEAR
        stalled = 0 if theta * gain > _PROGRESS else stalled + 1
        reached += theta * gain
        vertices.age[node] += 1 if steep > _SMALL or (leaving < 0 and blocking < 0) else REFACTOR_EVERY
        _step(primal, node, enter, slack, leaving, blocking, theta)
        found, kept = reached >= goal, inside and steps % 4 == 0 and primal.points.known[node] < POINTS - 16
        if (found or kept) and not is_sound(primal, node, at):
            if vertices.age[node] == 0 or not refresh(primal, node, at):
                return UNCLEAR
            kept = False
        if found:
            return FEASIBLE if value(row, place) >= 0.9 * goal else UNCLEAR
        if kept:
            keep(primal, node)
