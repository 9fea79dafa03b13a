"""Compiled steps that both walks over linear programs take: rows of a cell, combinations of them, and the pivots of a basis.

A cell is a stack of rows a.z + b >= 0 in z = F.u, where u are inputs in [-1, 1]^n and F, the frame, has p rows (`tessella.counting.by_programs`
says which).  Behind its p + 1 numbers a row carries the square of its length in the space of inputs, and a bound on its rounding error.
State is passed as plain arrays; tuples and views inside compiled code cost reference counting.  Calls carry a dozen of them, hence the formatting.
"""

from typing import Any

import numpy as np

from tessella.kernel.compiling import compiler
from tessella.network import Floats

ROUNDING = 2e-12  # the largest relative error of a row that is trusted: a fifth of how far points stay inside, a five-hundredth of the margin
UNHARMFUL = 1e-10  # the same of an inequality of the domain, of which nothing is composed: a tenth of the margin
EPS = 2.220446049250313e-16
_FEW = 16  # breakpoints that are put in order

FEASIBLE, INFEASIBLE, UNCLEAR = range(3)
MARGIN = 1e-9  # of a row's size
EDGE = 1.0 - 1e-9  # inputs stay this far inside their ends
PIVOT = 1e-9
CLOSE = 1e-10  # how far from its bound a row or an input may end

# places of the counters that both walks have
TESTS, ITERATIONS, REGIONS, POSITION, STATE, ROWS, DOWN, LEFT, SPLITS, PLAIN = range(10)
CORE, EXTRA = 12, 13  # of a proof that a cell is empty: its equations, as bits, and the row that it began with
THIN, DEEP, HARD = range(3)  # why a node is left: undecided, too deep for the states there is room for, to be walked carefully

_compiled = compiler(
    _nrt=False
)  # nothing is allocated; counting references to arguments took a third of the time with few inputs

# fmt: off


@_compiled
def combine(frame: Floats, scratch: Floats) -> None:
    """The combination scratch 3 of the frame's rows, in scratch 4; four rows at a time."""
    p, n = frame.shape
    c = 0
    if p >= 4:
        r0, r1, r2, r3 = scratch[3, 0], scratch[3, 1], scratch[3, 2], scratch[3, 3]
        for j in range(n):
            scratch[4, j] = r0 * frame[0, j] + r1 * frame[1, j] + r2 * frame[2, j] + r3 * frame[3, j]
        c = 4
    else:
        for j in range(n):
            scratch[4, j] = 0.0
    while c + 4 <= p:
        r0, r1, r2, r3 = scratch[3, c], scratch[3, c + 1], scratch[3, c + 2], scratch[3, c + 3]
        for j in range(n):
            scratch[4, j] += r0 * frame[c, j] + r1 * frame[c + 1, j] + r2 * frame[c + 2, j] + r3 * frame[c + 3, j]
        c += 4
    while c < p:
        r0 = scratch[3, c]
        for j in range(n):
            scratch[4, j] += r0 * frame[c, j]
        c += 1


@_compiled
def is_negative(error: float, frame: Floats, scratch: Floats) -> bool:
    """Whether the row in scratch 3 is negative on the whole box, with room to spare; behind its p + 1 numbers, the size of all that was added up."""
    p, n = frame.shape
    total = scratch[3, p] + 4.0 * MARGIN * scratch[3, p + 1] + error
    combine(frame, scratch)
    for j in range(n):
        total += abs(scratch[4, j])
    return total < 0.0


@_compiled
def is_empty(
    s: int, extra: int, side: float, equal: int, identity: bool, frame: Floats, rows: Floats, lists: Any, scratch: Floats, counters: Any
) -> bool:
    """Whether rows add up to something negative on the whole box, with room to spare, so that no point satisfies them all.

    Scratch 0 holds the tight rows' shares; to these comes ``side`` times the row ``extra``, if it is one.  The shares stay there
    for whoever wants to keep the proof; the equations that take part are noted as bits.
    """
    n, p, k = frame.shape[1], rows.shape[1] - 3, lists[s, 2, 0]
    total, size, core = 0.0, 0.0, 0
    for c in range(p):
        scratch[3, c] = 0.0
    for i in range(k + 1):
        row, share = extra, side
        if i < k:
            row, share = lists[s, 0, i], scratch[0, i]
            if row < equal:
                share = max(share, 0.0)
                scratch[0, i] = share
        if row < 0 or share == 0.0:
            continue
        if row >= equal and abs(share) > 1e-13:
            core |= 1 << (row - equal)
        size += abs(share)
        total += share * rows[row, p]
        for c in range(p):
            scratch[3, c] += share * rows[row, c]
    if identity:
        for c in range(p):
            total += abs(scratch[3, c])
    else:
        combine(frame, scratch)
        for j in range(n):
            total += abs(scratch[4, j])
    counters[CORE], counters[EXTRA] = core, extra
    return total + 4.0 * MARGIN * size < 0.0


@_compiled
def price(light: Any, scratch: Floats, prices: Any) -> None:
    """The combination scratch 3 of the frame's rows in single precision, in prices 0; four rows at a time."""
    p, n = light.shape
    c = 0
    if p >= 4:
        r0, r1, r2, r3 = np.float32(scratch[3, 0]), np.float32(scratch[3, 1]), np.float32(scratch[3, 2]), np.float32(scratch[3, 3])
        for j in range(n):
            prices[0, j] = r0 * light[0, j] + r1 * light[1, j] + r2 * light[2, j] + r3 * light[3, j]
        c = 4
    else:
        for j in range(n):
            prices[0, j] = 0.0
    while c + 4 <= p:
        r0, r1, r2, r3 = np.float32(scratch[3, c]), np.float32(scratch[3, c + 1]), np.float32(scratch[3, c + 2]), np.float32(scratch[3, c + 3])
        for j in range(n):
            prices[0, j] += r0 * light[c, j] + r1 * light[c + 1, j] + r2 * light[c + 2, j] + r3 * light[c + 3, j]
        c += 4
    while c < p:
        r0 = np.float32(scratch[3, c])
        for j in range(n):
            prices[0, j] += r0 * light[c, j]
        c += 1


@_compiled
def turning(s: int, need: float, limit: float, costs: Any, prices: Any, bits: Any, order: Any) -> int:
    """The input at which the falling dual function turns: breakpoints before it add up to less than is needed; -1 if none before the limit.

    Prices 1 becomes the breakpoints (infinite where there is none), prices 2 their weights.  The list of all inputs with a breakpoint up to there goes to ``order``,
    and its length to the end of that; some of the list may lie beyond.
    Where to cut is interpolated; the passes over all inputs are vectorised, unlike a sort, where comparisons are of the integers behind positive floats.
    """
    n = costs.shape[1]
    none, zero, one, two, end = np.float32(np.inf), np.float32(0.0), np.float32(1.0), np.float32(2.0), np.float32(limit)
    for j in range(n):  # plain loops: what is mixed is not vectorised
        step = -costs[s, j] / prices[0, j]
        prices[1, j] = step if step > zero else none
        prices[2, j] = two * abs(prices[0, j])
    total, most, size, square = zero, zero, zero, zero
    for j in range(n):
        inside = prices[1, j] < end
        total += prices[2, j] if inside else zero
        most += one if inside else zero
    for j in range(n):
        size += abs(costs[s, j])
    for j in range(n):
        square += prices[2, j] * prices[2, j]
    turns = total >= need and most > zero
    # between which breakpoints it lies: guessed as if costs were drawn from one distribution, then interpolated; every other time halved
    prices[3, 0] = end
    low, high, least, below, above = np.int64(0), np.int64(bits[3, 0]), zero, zero, total
    cut, tries = np.float32(4.0 * need * size / (n * square)) if turns else zero, 0
    while turns and most - least > np.float32(_FEW) and high - low > 1:
        prices[3, 0] = cut
        middle = np.int64(bits[3, 0])
        if not low < middle < high:
            middle = (low + high) // 2
        edge, part, count = np.int32(middle), zero, zero
        for j in range(n):
            inside = bits[1, j] < edge
            part += prices[2, j] if inside else zero
            count += one if inside else zero
        if part >= need:
            high, most, above = middle, count, part
        else:
            low, least, below = middle, count, part
        tries += 1
        if tries == 1:
            cut *= np.float32(need / max(part, np.float32(1e-30))) * (np.float32(0.9) if part >= need else np.float32(1.1))
        elif tries % 2:
            cut = zero
        else:
            bits[3, 0] = np.int32(low)
            first = prices[3, 0]
            bits[3, 0] = np.int32(high)
            cut = first + (prices[3, 0] - first) * np.float32((need - below) / (above - below))
    bits[3, 0] = np.int32(low)
    start = prices[3, 0]
    bits[3, 0] = np.int32(high)
    edge, found = bits[3, 0], 0
    for j in range(n):  # no branch: half of the guesses would be wrong
        order[found] = j
        found += 1 if bits[1, j] < edge else 0
    order[n] = found
    if not turns:
        return -1
    first, last = n + 1, n + 1
    for i in range(found):
        order[last] = order[i]
        last += 1 if prices[1, order[i]] >= start else 0
    while first < last:
        best = first
        for i in range(first + 1, last):
            if prices[1, order[i]] < prices[1, order[best]]:
                best = i
        order[first], order[best] = order[best], order[first]
        below += prices[2, order[first]]
        if below >= need:
            return order[first]
        first += 1
    return order[last - 1] if last > n + 1 else -1


@_compiled
def exchange(
    s: int, columns: Floats, rows: Floats, lists: Any, inverse: Floats, vectors: Floats, scratch: Floats, leaving: int,
    entering: int, theta: float, side: float, pivot: float,
) -> None:
    """Update basis, inverse and multipliers.

    ``leaving`` is q for the basic input at q, or k + r for row r; ``entering`` is j for an input, -1 - i for the tight row at i.
    Scratch 0 holds the multipliers' rates, scratch 1 the leaving variable's row of the inverse, or its product with it.
    """
    p, y, k = rows.shape[1] - 3, 2 * (rows.shape[1] - 3), lists[s, 2, 0]
    for i in range(k):
        vectors[s, y + i] += theta * scratch[0, i]
    if entering >= 0:
        for i in range(k):
            row = lists[s, 0, i]
            value = 0.0
            for c in range(p):
                value += rows[row, c] * columns[entering, c]
            scratch[3, i] = value
        for q in range(k):
            total = 0.0
            for i in range(k):
                total += inverse[s, q, i] * scratch[3, i]
            scratch[2, q] = total
    if leaving >= k and entering >= 0:  # a row becomes tight, an input basic: border
        for q in range(k):
            factor = scratch[2, q] / pivot
            for i in range(k):
                inverse[s, q, i] += factor * scratch[1, i]
            inverse[s, q, k] = -factor
        for i in range(k):
            inverse[s, k, i] = -scratch[1, i] / pivot
        inverse[s, k, k] = 1.0 / pivot
        lists[s, 0, k], lists[s, 1, k], lists[s, 2, 0] = leaving - k, entering, k + 1
        vectors[s, y + k] = side * theta
    elif leaving >= k:  # one row for another
        gone = -1 - entering
        for q in range(k):
            value = inverse[s, q, gone] / scratch[1, gone]
            for i in range(k):
                inverse[s, q, i] -= value * scratch[1, i]
            inverse[s, q, gone] = value
        lists[s, 0, gone] = leaving - k
        vectors[s, y + gone] = side * theta
    elif entering >= 0:  # one input for another
        pivot = scratch[2, leaving]
        for i in range(k):
            inverse[s, leaving, i] /= pivot
        for q in range(k):
            if q != leaving:
                for i in range(k):
                    inverse[s, q, i] -= scratch[2, q] * inverse[s, leaving, i]
        lists[s, 1, leaving] = entering
    else:  # an input leaves, a row becomes loose: shrink
        gone = -1 - entering
        pivot = inverse[s, leaving, gone]
        for q in range(k):
            if q != leaving:
                value = inverse[s, q, gone] / pivot
                for i in range(k):
                    inverse[s, q, i] -= value * inverse[s, leaving, i]
        for i in range(k):
            inverse[s, leaving, i] = inverse[s, k - 1, i]
        for q in range(k):
            inverse[s, q, gone] = inverse[s, q, k - 1]
        lists[s, 1, leaving], lists[s, 0, gone], lists[s, 2, 0] = lists[s, 1, k - 1], lists[s, 0, k - 1], k - 1
        vectors[s, y + gone] = vectors[s, y + k - 1]


@_compiled
def compose(
    layer: int, layout: Any, weights: Floats, biases: Floats, active: Any, combined: Floats, errors: Floats, scratch: Floats
) -> None:
    """The rows of one layer's units in this cell, from those of the layer before, each with a bound on its rounding error."""
    first, units, before, reads, at = layout[layer, 0], layout[layer, 1], layout[layer - 1, 0], layout[layer - 1, 1], layout[layer, 2]
    p = combined.shape[1] - 1
    for j in range(reads):
        if active[before + j]:
            total = 0.0
            for c in range(p + 1):
                total += abs(combined[before + j, c])
            scratch[6, j] = total
    for i in range(units):
        g = first + i
        for c in range(p):
            combined[g, c] = 0.0
        combined[g, p] = biases[g]
        size, error, terms = abs(biases[g]), 0.0, 2
        for j in range(reads):
            if active[before + j]:
                weight = weights[at + i * reads + j]
                if weight != 0.0:
                    for c in range(p + 1):
                        combined[g, c] += weight * combined[before + j, c]
                    size += abs(weight) * scratch[6, j]
                    error += abs(weight) * errors[before + j]
                    terms += 1
        errors[g] = 1.0001 * error + (0.505 * terms * EPS * size if terms > 2 else 0.0)  # half of EPS for each product and sum


@_compiled
def place(
    g: int, side: float, at: int, identity: bool, gram: Floats, combined: Floats, errors: Floats, rows: Floats
) -> None:
    """Put a unit's row on the stack, scaled; behind it the square of its length in the space of inputs, and its rounding error."""
    p = combined.shape[1] - 1
    total = 0.0
    for c in range(p + 1):
        total += abs(combined[g, c])
    scale = side / total
    for c in range(p + 1):
        rows[at, c] = scale * combined[g, c]
    total = 0.0
    for c in range(p):
        if identity:
            total += rows[at, c] * rows[at, c]
        else:
            value = 0.0
            for e in range(p):
                value += gram[c, e] * rows[at, e]
            total += value * rows[at, c]
    rows[at, p + 1] = max(total, 1e-30)
    rows[at, p + 2] = errors[g] * abs(scale) + 8.0 * EPS


@_compiled
def quick_sign(g: int, combined: Floats, errors: Floats) -> int:
    """A unit's sign where its row alone decides it: 1, 0, or -1 if it does not, -2 if the row is not to be trusted."""
    p = combined.shape[1] - 1
    size = 0.0
    for c in range(p):
        size += abs(combined[g, c])
    constant, error = combined[g, p], errors[g]
    if size == 0.0 and error == 0.0:
        return 1 if constant > 0.0 else 0
    if constant - size * (1.0 + 1e-12) > error:
        return 1
    if constant + size * (1.0 + 1e-12) < -error:
        return 0
    return -2 if error > ROUNDING * (size + abs(constant)) else -1


@_compiled
def leave(kind: int, length: int, splits: int, signs: Any, left: Any, at: int) -> None:
    """Note a prefix that is not counted here."""
    left[at, 0], left[at, 1], left[at, 2] = kind, length, splits
    for u in range(length):
        left[at, 3 + u] = signs[u]


# fmt: on
