"""The walk over cells held as their corners, compiled with Numba: for one to six free inputs.

**Cells.**  A cell is a convex polytope: its corners, and for each of them the set of walls that it lies on, as the bits of a number.  A
unit that is positive at some corners and negative at others cuts the cell; new corners lie where edges are cut, and two corners share an
edge if they share d - 1 walls (and, where more than d walls meet, no third corner has all of these).  There are no linear programs.

**Rows.**  In a cell every preactivation is an affine function of the inputs, a row.  On entering a layer the rows of all its units are
known; most units have one sign on the cell's bounding box and are settled at once.  The others wait, and each part of the cell asks
again only those that cut the whole.  Each unit found active adds its multiple to the rows of the next layer, a rank-one update, so these
are complete when the last unit of the layer is decided, and parts share what was added before they parted.

**What is proved.**  Rounding is bounded, not guessed.  Let e bound the error of a row on the box.

- Rows.  The errors of a layer, as a vector, grow by at most the spectral norm of the next weights, and each unit adds the rounding of its
  own sum.  Where this is too coarse, as in deep networks, the error of one row is bounded again by the rounding of every sum before it,
  times how much that counts in it.
- Corners.  Let c be the mean of the corners, and r the largest ratio, over the walls, of the error of the wall's row (with what rounding
  moved its corners off it) to its value at c.  Then the polytope of the computed corners, shrunk towards c by the factor 1 - r, lies in
  the true cell, and the true cell, shrunk likewise, in it.  So a unit whose values at the corners span w takes, on the true cell, the
  same least and largest value up to e + r w.
- A unit is active if all its values are above twice that, inactive if all are below minus twice that, and cuts if there are some of both:
  then both parts have an interior, as a full-dimensional set is cut strictly.  Signs also decide, with no rounding at all, where weights
  of one sign add up what is not negative.  Anything else is thin, as is a part with r > 1/8, and a cut whose corners and walls do not
  fit together: by Euler's formula, or because an edge does not have two ends.

**The apex.**  Without biases all preactivations are 0 at the origin.  The corner where only walls meet that go through it is known to be
there exactly, and is not asked.  Inequalities of the domain that come close to it, but do not go through it, put an end to that.

**The last layer** is not walked.  Hyperplanes H1, H2, ... cut a cell into 1 + sum_k (parts of the section with Hk made by H1, ..., Hk-1)
parts, a section being a polytope of one dimension less; in an edge, points are counted.  This needs the values of the units at corners
only, and nothing is built.  Where the edge between two corners is cut, what a unit's value there adds to its error is the error of the
cutting unit, times the ratio of what both gain along the edge; a section is as exact as the worst of its corners.  Where a sign or an order
is not clear, the cell is cut as in the other layers.

**Outlines.**  Where regions shall be drawn, with one or two inputs, the last layer is walked too, and each region's corners are written down in
order, with the layers that made the walls between them.

All compiled code of this walk is in this one file: the on-disk cache does not notice a changed callee in another file.  State is passed
as plain arrays; tuples and views inside compiled code cost reference counting.  Nothing calls itself: that crashed when it was loaded from
the cache.
"""

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from tessella.domain import Polytope
from tessella.kernel.compiling import compiler
from tessella.network import Floats
from tessella.parallel import Stop
from tessella.partition.tree import Found, Node, Tree

DONE, SPENT, FULL, HIGHER, LOST = 0, 1, 2, 3, 4

_WALLS = 62  # of one cell: bits of a number that stays positive
_IS_APEX = 1 << _WALLS  # one bit more
_CORNERS = (0, 4, 64, 128, 320, 640, 1280)  # of one cell, by dimension
_THIN = 0.125  # how large the error of a wall may be, relative to its distance from the middle
_COARSE = 2.0**-16  # errors of rows, relative to what they are sums of, that are bounded again for all of a layer
_AT_ONCE = 48  # units of the last layer that are counted together
_BUDGET = 500_000  # units of work between two looks at the clock, a few milliseconds
_UNIT = 2.0**-53
_TINY = 1e-290  # more than all products that underflow can have lost
_SMALL = 1e-150  # more than all squares that underflow can have lost from the root of their sum
_LARGEST = 1e100  # networks whose rows may be larger are left to exact arithmetic

# what a cell knows: its layer, how many corners it has, units that wait, prefix length, the last decision and its unit, splits, cuts,
# whether it enters its layer, whether more than d walls may meet somewhere, whether its errors were bounded again, which of its
# walls go through the apex, and whether that is its first corner
_LAYER, _COUNT, _WAITING, _LENGTH, _SIGN, _PLACE, _SPLITS, _CUTS, _ENTERS, _TANGLED, _SHARP, _CENTRAL, _APEX = range(13)
# what the walk knows: the cell on top, regions, thin prefixes, tests, how far it is guided, splits of the node it was given, outlines
# written down, and corners of these
_TOP, _REGIONS, _FOUND, _TESTS, _GUIDED, _GIVEN, _DRAWN, _PLACED = range(8)
# of a layer: units, ReLUs, number of its first ReLU, its first row of weights
_UNITS, _RELUS, _FIRST, _WEIGHTS = range(4)
# errors of a layer's rows: norm, what one row inherits, what its own sum adds
_NORM, _PAST, _OWN = range(3)


_compiled, _inlined = compiler(), compiler(forceinline=True)  # passing fifteen arrays costs as much as a small cell


@_inlined
def _range(s: int, layer: int, k: int, points: Floats, cells: Any, rows: Floats) -> Any:
    """The least and the largest value of a row at the corners of a cell, the apex left out, and what they span with it."""
    d, n, apex = points.shape[1], cells[s, _COUNT], cells[s, _APEX]
    low, high, b = np.inf, -np.inf, rows[layer, d, k]
    if d == 2:
        a0, a1 = rows[layer, 0, k], rows[layer, 1, k]
        for v in range(apex, n):
            value = b + a0 * points[s, 0, v] + a1 * points[s, 1, v]
            low, high = min(low, value), max(high, value)
    elif d == 3:
        a0, a1, a2 = rows[layer, 0, k], rows[layer, 1, k], rows[layer, 2, k]
        for v in range(apex, n):
            value = b + a0 * points[s, 0, v] + a1 * points[s, 1, v] + a2 * points[s, 2, v]
            low, high = min(low, value), max(high, value)
    elif d == 4:
        a0, a1, a2, a3 = rows[layer, 0, k], rows[layer, 1, k], rows[layer, 2, k], rows[layer, 3, k]
        for v in range(apex, n):
            value = b + a0 * points[s, 0, v] + a1 * points[s, 1, v] + a2 * points[s, 2, v] + a3 * points[s, 3, v]
            low, high = min(low, value), max(high, value)
    elif d == 5:
        a0, a1, a2, a3 = rows[layer, 0, k], rows[layer, 1, k], rows[layer, 2, k], rows[layer, 3, k]
        a4 = rows[layer, 4, k]
        for v in range(apex, n):
            value = b + a0 * points[s, 0, v] + a1 * points[s, 1, v] + a2 * points[s, 2, v]
            value += a3 * points[s, 3, v] + a4 * points[s, 4, v]
            low, high = min(low, value), max(high, value)
    elif d == 6:
        a0, a1, a2, a3 = rows[layer, 0, k], rows[layer, 1, k], rows[layer, 2, k], rows[layer, 3, k]
        a4, a5 = rows[layer, 4, k], rows[layer, 5, k]
        for v in range(apex, n):
            value = b + a0 * points[s, 0, v] + a1 * points[s, 1, v] + a2 * points[s, 2, v]
            value += a3 * points[s, 3, v] + a4 * points[s, 4, v] + a5 * points[s, 5, v]
            low, high = min(low, value), max(high, value)
    else:
        a0 = rows[layer, 0, k]
        for v in range(apex, n):
            value = b + a0 * points[s, 0, v]
            low, high = min(low, value), max(high, value)
    span = high - low
    if apex:  # it is 0 there, exactly
        span = max(high, 0.0) - min(low, 0.0)
    return low, high, span


@_inlined
def _add(s: int, t: int, layer: int, k: int, layers: Any, weights: Floats, rows: Floats, places: Any, below: Floats) -> None:
    """Make the next layer's rows of cell t those of cell s with one more active unit."""
    after, offset = layers[layer + 1, _UNITS], layers[layer + 1, _WEIGHTS] + places[layer, k]
    for c in range(below.shape[1]):
        a = rows[layer, c, k]
        for i in range(after):
            below[t, c, i] = below[s, c, i] + a * weights[offset, i]


@_inlined
def _enter(
    s: int,
    layers: Any,
    biases: Floats,
    weights: Floats,
    reach: Floats,
    slack: Floats,
    norms: Floats,
    points: Floats,
    cells: Any,
    ratios: Floats,
    below: Floats,
    waiting: Any,
    rows: Floats,
    places: Any,
    errors: Floats,
    pattern: Any,
    before: Floats,
    work: Floats,
    marks: Any,
) -> None:
    """Settle the units of a layer that do not cut a cell's bounding box, and begin the next layer's rows."""
    d, n, layer = points.shape[1], cells[s, _COUNT], cells[s, _LAYER]
    count, relus, more = layers[layer, _UNITS], layers[layer, _RELUS], layer + 1 < len(layers)
    past = errors[layer, _PAST]
    for i in range(count):
        work[0, i] = below[s, d, i]
        work[1, i] = 2.0 * (reach[layer, i] * past + slack[layer, i])
    for c in range(d):
        low, high = points[s, c, 0], points[s, c, 0]
        for v in range(1, n):
            low, high = min(low, points[s, c, v]), max(high, points[s, c, v])
        middle, half = 0.5 * (low + high), 0.5 * (high - low) * (1.0 + 4.0 * ratios[s])
        for i in range(count):
            a = below[s, c, i]
            work[0, i] += a * middle
            work[1, i] += abs(a) * half
    for i in range(relus):
        pattern[layer, i] = work[0, i] > 0.0
    if more:
        total = 0.0
        for i in range(count):
            size = abs(below[s, d, i])
            for c in range(d):
                size += abs(below[s, c, i])
            total += size * size if i >= relus or not work[0, i] < -work[1, i] else 0.0
        total = np.sqrt(total) + _SMALL
        errors[layer + 1, _NORM] = norms[layer + 1, 0] * errors[layer, _NORM] + norms[layer + 1, 1] * total + norms[layer + 1, 2]
        errors[layer + 1, _PAST] = errors[layer, _NORM] + norms[layer + 1, 3] * total
        errors[layer + 1, _OWN] = norms[layer + 1, 3] * total
    q = 0
    for i in range(relus):
        if not abs(work[0, i]) > work[1, i]:
            for c in range(d + 1):
                rows[layer, c, q] = below[s, c, i]
            rows[layer, d + 1, q] = reach[layer, i] * past + slack[layer, i]
            rows[layer, d + 2, q] = 0.0
            places[layer, q] = i
            waiting[s, q] = q
            q += 1
            work[0, i] = -1.0  # it adds nothing before it is decided
    cells[s, _WAITING] = q
    cells[s, _ENTERS] = 0
    cells[s, _SHARP] = 0
    if more:
        for i in range(relus, count):
            work[0, i] = 1.0
        active = 0
        for i in range(count):
            marks[0, active] = i
            active += work[0, i] > 0.0
        for c in range(d + 1):
            for i in range(count):
                before[c, i] = below[s, c, i]
        after, offset = layers[layer + 1, _UNITS], layers[layer + 1, _WEIGHTS]
        for c in range(d):
            for i in range(after):
                below[s, c, i] = 0.0
        for i in range(after):
            below[s, d, i] = biases[layer + 1, i]
        whole = active - active % 4
        for q in range(0, whole, 4):
            i0, i1, i2, i3 = marks[0, q], marks[0, q + 1], marks[0, q + 2], marks[0, q + 3]
            j0, j1, j2, j3 = offset + i0, offset + i1, offset + i2, offset + i3
            for c in range(d + 1):
                a0, a1, a2, a3 = before[c, i0], before[c, i1], before[c, i2], before[c, i3]
                for i in range(after):
                    below[s, c, i] += a0 * weights[j0, i] + a1 * weights[j1, i] + a2 * weights[j2, i] + a3 * weights[j3, i]
        for q in range(whole, active):
            i0, j0 = marks[0, q], offset + marks[0, q]
            for c in range(d + 1):
                a0 = before[c, i0]
                for i in range(after):
                    below[s, c, i] += a0 * weights[j0, i]


@_compiled
def _error(
    layer: int, i: int, layers: Any, weights: Floats, reach: Floats, slack: Floats, errors: Floats, pattern: Any, work: Floats
) -> float:
    """A bound on the error of one row: what every sum before it added, times how much that counts in it."""
    total: Any = reach[layer, i] * errors[layer, _OWN] + slack[layer, i]
    now = 0
    if layer > 0:
        for j in range(layers[layer - 1, _UNITS]):
            passes = j >= layers[layer - 1, _RELUS] or pattern[layer - 1, j]
            work[0, j] = weights[layers[layer, _WEIGHTS] + j, i] if passes else 0.0
    for k in range(layer - 1, -1, -1):
        for j in range(layers[k, _UNITS]):
            total += abs(work[now, j]) * (reach[k, j] * errors[k, _OWN] + slack[k, j])
        if k > 0:
            for j in range(layers[k - 1, _UNITS]):
                value = 0.0
                if j >= layers[k - 1, _RELUS] or pattern[k - 1, j]:
                    row = layers[k, _WEIGHTS] + j
                    for m in range(layers[k, _UNITS]):
                        value += weights[row, m] * work[now, m]
                work[1 - now, j] = value
            now = 1 - now
    return 2.0 * total


@_compiled
def _renew(
    layer: int, layers: Any, weights: Floats, reach: Floats, slack: Floats, errors: Floats, pattern: Any, work: Floats
) -> None:
    """Bound the errors of all rows of a layer again."""
    total, past = 0.0, 0.0
    for i in range(layers[layer, _UNITS]):
        error = _error(layer, i, layers, weights, reach, slack, errors, pattern, work)
        total += error * error
        if reach[layer, i] > 0.0:
            past = max(past, error / reach[layer, i])
    errors[layer, _NORM] = min(errors[layer, _NORM], np.sqrt(total) + _SMALL)
    errors[layer, _PAST] = min(errors[layer, _PAST], past)


@_inlined
def _thickness(s: int, points: Floats, walls: Any, slots: Any, cells: Any, planes: Floats) -> float:
    """The largest ratio, over the walls of a cell, of a wall's error to its distance from the mean of the corners."""
    d, n = points.shape[1], cells[s, _COUNT]
    used, x0, x1, x2, x3, x4, x5 = 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for v in range(n):
        used |= walls[s, v]
        x0 += points[s, 0, v]
    if d > 1:
        for v in range(n):
            x1 += points[s, 1, v]
    if d > 2:
        for v in range(n):
            x2 += points[s, 2, v]
    if d > 3:
        for v in range(n):
            x3 += points[s, 3, v]
    if d > 4:
        for v in range(n):
            x4 += points[s, 4, v]
    if d > 5:
        for v in range(n):
            x5 += points[s, 5, v]
    worst, slot = 0.0 if n else 1.0, 0
    used &= _IS_APEX - 1
    drift = (cells[s, _CUTS] + n + 16.0) * 4.0 * _UNIT  # each generation of corners rounds once
    while used:
        if used & 1:
            plane = slots[s, slot]
            value = planes[plane, d] * n + planes[plane, 0] * x0
            if d > 1:
                value += planes[plane, 1] * x1
            if d > 2:
                value += planes[plane, 2] * x2
            if d > 3:
                value += planes[plane, 3] * x3
            if d > 4:
                value += planes[plane, 4] * x4
            if d > 5:
                value += planes[plane, 5] * x5
            error = (planes[plane, d + 1] + planes[plane, d + 3] + drift * planes[plane, d + 2]) * n
            if not error < _THIN * abs(value):
                return 1.0
            worst = max(worst, error / abs(value))
        used >>= 1
        slot += 1
    return worst


@_compiled
def _refine(
    s: int,
    layers: Any,
    weights: Floats,
    reach: Floats,
    slack: Floats,
    points: Floats,
    walls: Any,
    slots: Any,
    cells: Any,
    ratios: Floats,
    waiting: Any,
    planes: Floats,
    origins: Any,
    rows: Floats,
    places: Any,
    errors: Floats,
    pattern: Any,
    work: Floats,
) -> None:
    """Bound the errors of a cell's walls, and of the waiting units that ask for it, again."""
    d, current, used = points.shape[1], cells[s, _LAYER], 0
    for v in range(cells[s, _COUNT]):
        used |= walls[s, v]
    for step in range(_WALLS + cells[s, _WAITING]):
        layer, i, plane, k = -1, 0, 0, 0
        if step < _WALLS:
            plane = slots[s, step]
            if (used >> step) & 1:
                layer, i = origins[plane, 0], origins[plane, 1]
                origins[plane, 0] = -1
        else:
            k = waiting[s, step - _WALLS]
            if rows[current, d + 2, k] < 0.0:
                layer, i = current, places[current, k]
                rows[current, d + 2, k] = 1.0
        if layer >= 0:
            error = _error(layer, i, layers, weights, reach, slack, errors, pattern, work)
            if step < _WALLS:
                planes[plane, d + 1] = min(planes[plane, d + 1], error)
            else:
                rows[current, d + 1, k] = min(rows[current, d + 1, k], error)
    ratios[s] = _thickness(s, points, walls, slots, cells, planes)
    cells[s, _SHARP] = 1


@_compiled
def _known(layer: int, k: int, layers: Any, biases: Floats, weights: Floats, rows: Floats, places: Any, pattern: Any) -> int:
    """The state of a unit, 1 or 0, that the signs of what it adds up prove, with no rounding; -1 if they do not.

    What it reads is not negative, and positive somewhere where it is active, so a sum of such with weights and a bias of one sign has that sign.
    """
    d, i = rows.shape[1] - 3, places[layer, k]
    ups, downs = 1 if biases[layer, i] > 0.0 else 0, 1 if biases[layer, i] < 0.0 else 0
    if layer == 0:  # a constant, if it reads no input that is not 0
        if rows[layer, d + 1, k] != 0.0:
            ups, downs = 1, 1
    else:
        for j in range(layers[layer - 1, _UNITS]):
            weight = weights[layers[layer, _WEIGHTS] + j, i]
            if weight != 0.0:
                if j >= layers[layer - 1, _RELUS]:
                    ups, downs = 1, 1
                elif pattern[layer - 1, j]:
                    ups, downs = 1 if weight > 0.0 else ups, 1 if weight < 0.0 else downs
    return -1 if ups and downs else ups


@_inlined
def _sift(
    s: int,
    layers: Any,
    biases: Floats,
    weights: Floats,
    points: Floats,
    cells: Any,
    ratios: Floats,
    below: Floats,
    waiting: Any,
    rows: Floats,
    places: Any,
    pattern: Any,
    twins: Any,
    span: Floats,
) -> bool:
    """Decide the waiting units that do not cut a cell; of the first that is left, tell the range of its values and how exact they are.

    True if closer bounds on errors might decide more.
    """
    d, layer, kept, ask = points.shape[1], cells[s, _LAYER], 0, False
    for q in range(cells[s, _WAITING]):
        k = waiting[s, q]
        i = places[layer, k]
        low, high, width = _range(s, layer, k, points, cells, rows)
        exact = 2.0 * (rows[layer, d + 1, k] + ratios[s] * width)
        on, off = low > exact, high < -exact
        if not (on or off or (low < -exact and high > exact)):
            known = _known(layer, k, layers, biases, weights, rows, places, pattern)
            if (
                known < 0 and twins[layer, i] >= 0 and max(high, -low) > exact
            ):  # it has one sign if what it is a multiple of is decided
                decided = True
                for other in range(kept):
                    decided = decided and places[layer, waiting[s, other]] != twins[layer, i]
                known = -1 if not decided else 1 if high > exact else 0
            on, off = known == 1, known == 0
            if known < 0 and (rows[layer, d + 2, k] <= 0.0 or not cells[s, _SHARP]):
                if rows[layer, d + 2, k] == 0.0:
                    rows[layer, d + 2, k] = -1.0
                ask = True
        if on:
            pattern[layer, i] = 1
            if layer + 1 < len(layers):
                _add(s, s, layer, k, layers, weights, rows, places, below)
        elif off:
            pattern[layer, i] = 0
        else:
            if kept == 0:
                span[0], span[1], span[2] = low, high, exact
            waiting[s, kept] = k
            kept += 1
    cells[s, _WAITING] = kept
    return ask


@_inlined
def _bits(walls: int) -> int:
    """How many walls there are in a set."""
    count = 0
    while walls:
        walls &= walls - 1
        count += 1
    return count


@_inlined
def _is_simple(walls: int, corners: int) -> bool:
    """Whether a polytope in three dimensions with so many corners, three walls at each, can have these walls (Euler)."""
    return 2 * _bits(walls) == corners + 4


@_inlined
def _tag(walls: int) -> int:
    """A number that stands for the edges at a corner, which lies on these walls and no others.

    An edge lies on all of them but one, and has two ends: the tags of all corners of a polytope cancel, by exclusive or.  If a corner is
    missing, or one is there that should not, they do not (but for a chance of 2**-60).
    """
    tag, left = 0, walls
    while left:
        edge = (walls ^ (left & -left)) * 0x1E3779B97F4A7C15
        edge = (edge ^ (edge >> 29)) * 0x3F58476D1CE4E5B9
        tag ^= edge ^ (edge >> 32)
        left &= left - 1
    return tag


@_inlined
def _edges(pluses: int, minuses: int, dim: int, most: int, marks: Any) -> int:
    """List the pairs of corners on both sides that share the walls of an edge; how many, or `most` if there may be no room for all.

    The first rows of `marks` hold the corners on each side and their walls.  Few pairs share an edge: nothing branches on it.
    """
    found = 0
    for p in range(pluses):
        v, wall = marks[0, p], marks[2, p]
        for m in range(minuses):
            marks[4, found], marks[5, found] = v, marks[1, m]
            found += 1 if _bits(wall & marks[3, m]) >= dim - 1 else 0
        found = min(found, most)
    return found


@_inlined
def _cut(
    s: int,
    k: int,
    exact: float,
    points: Floats,
    walls: Any,
    cells: Any,
    planes: Floats,
    origins: Any,
    rows: Floats,
    places: Any,
    work: Floats,
    marks: Any,
) -> int:
    """Find the corners where a row's hyperplane cuts the edges of a cell; how many, or -1 if they do not fit together.

    They are written where no cell is: behind the last level.  The values of the row at the old corners are left in the work space.
    """
    d, n, layer = points.shape[1], cells[s, _COUNT], cells[s, _LAYER]
    spare, most, b = len(points) - 1, points.shape[2], rows[layer, d, k]
    for v in range(n):
        work[2, v] = b
    for c in range(d):
        a = rows[layer, c, k]
        for v in range(n):
            work[2, v] += a * points[s, c, v]
    used, above, under, pluses, minuses, touched = 0, 0, 0, 0, 0, 0
    once, twice, thrice, four, five = 0, 0, 0, 0, 0  # walls that have so many corners on the hyperplane
    tags, off = 0, 0.0
    for v in range(n):
        wall, value = walls[s, v], work[2, v]
        used |= wall
        if value > exact:
            marks[0, pluses], marks[2, pluses] = v, wall
            pluses += 1
            above |= wall
        elif value < -exact:
            marks[1, minuses], marks[3, minuses] = v, wall
            minuses += 1
            under |= wall
        else:
            touched += 1
            off = max(off, abs(value))
            five |= four & wall
            four |= thrice & wall
            thrice |= twice & wall
            twice |= once & wall
            once |= wall
    slot = 0
    while (used >> slot) & 1:
        slot += 1
    # a hyperplane can be moved into one corner that it all but touches; into more of them only if these are far apart
    good = slot < _WALLS and (d < 3 or touched < 2)
    marks[6, 0] = slot
    if touched:
        cells[s, _TANGLED] = 1
    tangled, bit, added, central = cells[s, _TANGLED], 1 << slot, 0, cells[s, _CENTRAL]
    conic = central != 0 and places[layer, k] >= 0
    found = _edges(pluses, minuses, d, most, marks)
    good = good and found < most
    for f in range(found):
        v, w = marks[4, f], marks[5, f]
        shared, edge = walls[s, v] & walls[s, w], True
        if tangled:
            for u in range(n):
                if u != v and u != w and walls[s, u] & shared == shared:  # noqa: PLR1714  a tuple would be made
                    edge = False
        if edge:
            share = work[2, v] / (work[2, v] - work[2, w])
            for c in range(d):
                points[spare, c, added] = points[s, c, v] + share * (points[s, c, w] - points[s, c, v])
            walls[spare, added] = shared | bit
            if conic and shared & ~central == 0:
                walls[spare, added] |= _IS_APEX
            added += 1
            if d > 4:
                tags ^= _tag(shared)
                five |= four & shared
                four |= thrice & shared
            thrice |= twice & shared
            twice |= once & shared
            once |= shared
    if central:
        cells[s, _CENTRAL] = central | bit if conic else central & ~bit
    # a wall with corners on both sides is cut in a polytope of one dimension less
    both, whole = above & under, tangled == 0
    if d == 1:
        good = good and (added == 1 or not (pluses and minuses))
    elif d == 2:
        good = good and both & ~once == 0 and (added == 2 or not whole)
    elif d == 3:
        good = good and both & ~twice == 0 and ((once == twice and thrice == 0) or not whole)
    elif d == 4:
        good = good and both & ~thrice == 0 and (_is_simple(once, added) or not whole)
    else:
        good = good and both & ~(four if d == 5 else five) == 0 and (tags == 0 or not whole)
    plane, size = cells[s, _CUTS] + 1, abs(b)
    for c in range(d):
        planes[plane, c] = rows[layer, c, k]
        size += abs(rows[layer, c, k])
    planes[plane, d] = b
    planes[plane, d + 1] = rows[layer, d + 1, k]
    planes[plane, d + 2] = size
    planes[plane, d + 3] = off
    origins[plane, 0] = layer if rows[layer, d + 2, k] <= 0.0 else -1
    origins[plane, 1] = places[layer, k]
    origins[plane, 2] = layer if places[layer, k] >= 0 else -1
    return added if good else -1


@_inlined
def _part(
    s: int,
    t: int,
    side: float,
    added: int,
    exact: float,
    points: Floats,
    walls: Any,
    slots: Any,
    cells: Any,
    planes: Floats,
    ratios: Floats,
    work: Floats,
    marks: Any,
) -> None:
    """Make cell t of the part of cell s on one side of what was cut last; they may be the same."""
    d, n, spare, q = points.shape[1], cells[s, _COUNT], len(points) - 1, 0
    bit, cuts = 1 << marks[6, 0], cells[s, _CUTS] + 1
    for v in range(n):
        value = side * work[2, v]
        if not value < -exact:
            for c in range(d):
                points[t, c, q] = points[s, c, v]
            walls[t, q] = walls[s, v] if value > exact else walls[s, v] | bit
            q += 1
    if q + added > points.shape[2]:  # it has no room: that makes it thin
        q, added = 0, 0
    for f in range(added):
        for c in range(d):
            points[t, c, q] = points[spare, c, f]
        walls[t, q] = walls[spare, f]
        if walls[t, q] & _IS_APEX:
            for c in range(d):
                points[t, c, q], points[t, c, 0] = points[t, c, 0], points[t, c, q]
            walls[t, q], walls[t, 0] = walls[t, 0], walls[t, q]
        q += 1
    if t != s:
        for c in range(slots.shape[1]):
            slots[t, c] = slots[s, c]
        for c in range(cells.shape[1]):
            cells[t, c] = cells[s, c]
    slots[t, marks[6, 0]] = cuts
    cells[t, _COUNT] = q
    cells[t, _CUTS] = cuts
    cells[t, _SHARP] = 0
    cells[t, _APEX] = 1 if walls[t, 0] & _IS_APEX else 0
    ratios[t] = _thickness(t, points, walls, slots, cells, planes)


@_inlined
def _parts(
    s: int,
    points: Floats,
    walls: Any,
    cells: Any,
    ratios: Floats,
    waiting: Any,
    rows: Floats,
    grid: Floats,
    margins: Floats,
    ends: Any,
    work: Floats,
    marks: Any,
) -> int:
    """Into how many parts the waiting units cut a cell, by sections of sections; -1 if that is not clear.

    For each level of sections, `grid` holds the values of units at corners, `margins` how exact they are and what they span, `ends` the edges
    that the corners of the next one cut, walls of corners, and how many corners and units there are, with the unit that is next.
    """
    d, n, layer, count, most = points.shape[1], cells[s, _COUNT], cells[s, _LAYER], cells[s, _WAITING], points.shape[2]
    good, total, level = True, 2 if d > 1 else 0, 0
    for q in range(count):
        k = waiting[s, q]
        b = rows[layer, d, k]
        for v in range(n):
            grid[0, q, v] = b
        for c in range(d):
            a = rows[layer, c, k]
            for v in range(n):
                grid[0, q, v] += a * points[s, c, v]
        low, high = np.inf, -np.inf
        for v in range(n):
            low, high = min(low, grid[0, q, v]), max(high, grid[0, q, v])
        exact = 2.0 * (rows[layer, d + 1, k] + ratios[s] * (high - low))
        good = good and low < -exact and high > exact
        margins[0, 0, q], margins[0, 1, q] = exact, high - low
    for v in range(n):
        ends[0, 2, v] = walls[s, v]
    ends[0, 3, 0], ends[0, 3, 1], ends[0, 3, 2] = n, count, 1
    while good and level >= 0:
        n, count, k, dim = ends[level, 3, 0], ends[level, 3, 1], ends[level, 3, 2], d - level
        if dim == 1:  # an edge: are the points where it is cut clearly different?
            for j in range(count):
                step = grid[level, j, 0] - grid[level, j, 1]
                grid[level, j, 0] /= step
                margins[level, 0, j] /= abs(step)
                for i in range(j):
                    distance = abs(grid[level, j, 0] - grid[level, i, 0])
                    good = good and distance > 2.0 * (margins[level, 0, j] + margins[level, 0, i])
            total += 1 + count
            level -= 1
            continue
        if k == count:
            level -= 1
            continue
        ends[level, 3, 2] = k + 1
        exact, plus, minus, pluses, minuses = margins[level, 0, k], np.inf, np.inf, 0, 0
        for v in range(n):
            value = grid[level, k, v]
            if value > 0.0:
                plus = min(plus, value)
                marks[0, pluses], marks[2, pluses] = v, ends[level, 2, v]
                pluses += 1
            else:
                minus = min(minus, -value)
                marks[1, minuses], marks[3, minuses] = v, ends[level, 2, v]
                minuses += 1
        good = min(plus, minus) > exact
        once, twice, thrice, tags = 0, 0, 0, 0
        m = _edges(pluses, minuses, dim, most, marks)
        for q in range(m):
            v, w = marks[4, q], marks[5, q]
            shared = ends[level, 2, v] & ends[level, 2, w]
            ends[level, 0, q], ends[level, 1, q], ends[level + 1, 2, q] = v, w, shared
            work[0, q] = 1.0 / (grid[level, k, v] - grid[level, k, w])
            grid[level + 1, k, q] = grid[level, k, v] * work[0, q]
            if dim > 4:
                tags ^= _tag(shared)
            thrice |= twice & shared
            twice |= once & shared
            once |= shared
        if dim == 2:
            good = good and m == 2
        elif dim == 3:
            good = good and once == twice and thrice == 0
        elif dim == 4:
            good = good and _is_simple(once, m)
        else:
            good = good and tags == 0
        good = good and m < most
        kept, loose = 0, 2.0 * exact
        for j in range(k if good else 0):
            low, high, slope = np.inf, -np.inf, 0.0
            for q in range(m):
                value = grid[level, j, ends[level, 0, q]]
                step = grid[level, j, ends[level, 1, q]] - value
                value += grid[level + 1, k, q] * step
                grid[level + 1, kept, q] = value
                low, high, slope = min(low, value), max(high, value), max(slope, abs(step) * work[0, q])
            exact = margins[level, 0, j] + loose * slope
            if low < -exact and high > exact:
                margins[level + 1, 0, kept], margins[level + 1, 1, kept] = exact, high - low
                kept += 1
            elif not (low > exact or high < -exact):
                good = False
        if kept < 2:
            total += 1 + kept
        else:
            level += 1
            ends[level, 3, 0], ends[level, 3, 1], ends[level, 3, 2] = m, kept, 1
            total += 2 if dim > 2 else 0
    return total if good else -1


@_compiled
def _report(length: int, layers: Any, pattern: Any, thin: Any, lengths: Any, state: Any) -> None:
    """Name the cell of the first decisions thin."""
    number = state[_FOUND]
    for layer in range(len(layers)):
        first = layers[layer, _FIRST]
        for i in range(min(layers[layer, _RELUS], length - first)):
            thin[number, first + i] = pattern[layer, i]
    lengths[number] = length
    state[_FOUND] = number + 1


@_compiled
def _border(s: int, shared: int, slots: Any, origins: Any) -> int:
    """The layer that made a wall, the first of them if there are several; -1 for a side of the domain."""
    first, slot = -1, 0
    shared &= _IS_APEX - 1
    while shared:
        if shared & 1:
            layer = origins[slots[s, slot], 2]
            first = layer if first < 0 or 0 <= layer < first else first
        shared >>= 1
        slot += 1
    return first


@_compiled
def _draw(
    s: int,
    layers: Any,
    points: Floats,
    walls: Any,
    slots: Any,
    cells: Any,
    origins: Any,
    pattern: Any,
    leaves: Any,
    sizes: Any,
    outlines: Floats,
    borders: Any,
    work: Floats,
    marks: Any,
    state: Any,
) -> None:
    """Write a region down: its pattern, and its corners in order, each with the layer of the wall from it to the next (or, on a line, at it)."""
    d, n, number, first = points.shape[1], cells[s, _COUNT], state[_DRAWN], state[_PLACED]
    for layer in range(len(layers)):
        for i in range(layers[layer, _RELUS]):
            leaves[number, layers[layer, _FIRST] + i] = pattern[layer, i]
    x, y = 0.0, 0.0
    for v in range(n):
        x += points[s, 0, v] / n
        y += points[s, d - 1, v] / n
    for v in range(n):
        work[0, v] = points[s, 0, v]
        if d == 2:
            work[0, v] = np.arctan2(points[s, 1, v] - y, points[s, 0, v] - x)
        place = v
        while place > 0 and work[0, marks[0, place - 1]] > work[0, v]:
            marks[0, place] = marks[0, place - 1]
            place -= 1
        marks[0, place] = v
    for q in range(n):
        v = marks[0, q]
        for c in range(d):
            outlines[first + q, c] = points[s, c, v]
        shared = walls[s, v]
        if d == 2:
            shared &= walls[s, marks[0, (q + 1) % n]]
        borders[first + q] = _border(s, shared, slots, origins)
    sizes[number] = n
    state[_DRAWN], state[_PLACED] = number + 1, first + n


@_compiled
def walk(
    budget: int,
    layers: Any,
    biases: Floats,
    weights: Floats,
    reach: Floats,
    slack: Floats,
    norms: Floats,
    twins: Any,
    points: Floats,
    walls: Any,
    slots: Any,
    cells: Any,
    ratios: Floats,
    below: Floats,
    waiting: Any,
    planes: Floats,
    origins: Any,
    rows: Floats,
    places: Any,
    errors: Floats,
    pattern: Any,
    guide: Any,
    thin: Any,
    lengths: Any,
    leaves: Any,
    sizes: Any,
    outlines: Floats,
    borders: Any,
    before: Floats,
    work: Floats,
    marks: Any,
    grid: Floats,
    margins: Floats,
    ends: Any,
    span: Floats,
    state: Any,
) -> int:
    """Walk on from where the state says.

    Parameters
    ----------
    budget
        How much work to do before coming back: about one per sign asked for.
    layers, biases, weights, reach, slack, norms, twins
        The network, each layer's ReLUs before its linear units; `reach` holds the norms of rows of weights, `slack` what rounds of biases,
        `twins` the ReLU before that each one is a multiple of.
    points, walls, slots, cells, ratios, below, waiting
        A level for each cell that waits: corners, their walls, which planes these are, numbers, thickness, rows of the next layer, units to decide.
    planes, origins
        The planes that were cut so far, and the unit of each.
    rows, places, errors, pattern
        For each layer the rows of the units that did not settle on entering it, which units these are, errors, and decisions.
    guide
        The decisions that lead to the node to begin with.
    thin, lengths
        Prefixes found thin.
    leaves, sizes, outlines, borders
        Where regions are written down, if there is room for any: patterns, numbers of corners, corners, and layers of walls.
    before, work, marks, grid, margins, ends, span
        Scratch.
    state
        See the top of the file.

    Returns
    -------
    status
        DONE, SPENT, FULL (of thin prefixes or outlines), HIGHER (levels are needed), or LOST: the guide leads to no cell that one can see.
    """
    spent, status, drawing = 0, DONE, len(sizes) > 0
    while state[_TOP] >= 0 and status == DONE:
        s = state[_TOP]
        layer = cells[s, _LAYER]
        more = layer + 1 < len(layers)
        if cells[s, _ENTERS] and ratios[s] < _THIN:
            if errors[layer, _PAST] * norms[layer, 3] > _COARSE * errors[layer, _OWN]:
                _renew(layer, layers, weights, reach, slack, errors, pattern, work)
            _enter(
                s, layers, biases, weights, reach, slack, norms, points, cells, ratios, below, waiting,
                rows, places, errors, pattern, before, work, marks,
            )  # fmt: skip
            spent += layers[layer, _UNITS] // 4
            if more:
                spent += layers[layer, _UNITS] * layers[layer + 1, _UNITS] // 16
        ask = True
        while ask:
            if ratios[s] < _THIN:
                state[_TESTS] += cells[s, _WAITING]
                spent += cells[s, _WAITING] + 8
                ask = _sift(s, layers, biases, weights, points, cells, ratios, below, waiting, rows, places, pattern, twins, span)
            ask = ask and not cells[s, _SHARP]
            if ask:
                _refine(
                    s, layers, weights, reach, slack, points, walls, slots, cells, ratios, waiting,
                    planes, origins, rows, places, errors, pattern, work,
                )  # fmt: skip
        count, guided = cells[s, _WAITING], state[_GUIDED]
        k = waiting[s, 0]
        place = places[layer, k] if count else layers[layer, _RELUS]
        unit = layers[layer, _FIRST] + place
        if not ratios[s] < _THIN:
            if guided >= 0:
                status = LOST
            else:
                _report(cells[s, _LENGTH], layers, pattern, thin, lengths, state)
                state[_TOP] = s - 1
            count = -1
        elif 0 <= guided <= unit:  # the node is reached: all its decisions are made
            for m in range(layer + 1):
                first = layers[m, _FIRST]
                for i in range(min(layers[m, _RELUS], guided - first)):
                    if pattern[m, i] != guide[first + i]:
                        status = LOST
            cells[s, _LENGTH] = guided
            cells[s, _SIGN] = guide[guided - 1] if guided else 0
            cells[s, _SPLITS] = state[_GIVEN]
            guided = -1
            state[_GUIDED] = guided
        parts = -1
        if count == 0:
            parts = 1
        elif count > 0 and not more and guided < 0 and count <= _AT_ONCE and not (cells[s, _TANGLED] or drawing):
            parts = _parts(s, points, walls, cells, ratios, waiting, rows, grid, margins, ends, work, marks)
        if count < 0 or status == LOST:
            pass
        elif count == 0 and more:
            cells[s, _LAYER] = layer + 1
            cells[s, _ENTERS] = 1
        elif parts > 0:
            if drawing:
                _draw(
                    s, layers, points, walls, slots, cells, origins, pattern, leaves, sizes, outlines, borders, work, marks, state
                )  # fmt: skip
            state[_REGIONS] += parts
            state[_TOP] = s - 1
            spent += 4 * parts
        elif s + 2 >= len(points):
            status = HIGHER
        else:
            exact, added = span[2], -1
            plus, minus = span[1] > exact, span[0] < -exact
            if guided >= 0:
                plus, minus = plus and guide[unit] == 1, minus and guide[unit] == 0
            if plus or minus:
                added = _cut(s, k, exact, points, walls, cells, planes, origins, rows, places, work, marks)
            state[_TOP] = s - 1
            if added < 0:
                if guided >= 0:
                    status = LOST
                else:
                    _report(unit, layers, pattern, thin, lengths, state)
            else:
                splits = cells[s, _SPLITS] + (1 if plus and minus else 0)
                for sign in (1, 0):  # the active side goes one level up, where both are there
                    if plus if sign == 1 else minus:
                        t = s + 1 if minus and sign == 1 else s
                        _part(s, t, 2.0 * sign - 1.0, added, exact, points, walls, slots, cells, planes, ratios, work, marks)
                        for q in range(count - 1):
                            waiting[t, q] = waiting[s, q + 1]
                        cells[t, _WAITING] = count - 1
                        cells[t, _LENGTH] = unit + 1
                        cells[t, _SIGN] = sign
                        cells[t, _PLACE] = place
                        cells[t, _SPLITS] = splits
                        if sign == 1 and more:
                            _add(s, t, layer, k, layers, weights, rows, places, below)
                        state[_TOP] = max(state[_TOP], t)
                    elif guided < 0:
                        pattern[layer, place] = sign
                        _report(unit + 1, layers, pattern, thin, lengths, state)
        if state[_TOP] >= 0 and status == DONE and not (count == 0 and more):
            s = state[_TOP]
            pattern[cells[s, _LAYER], cells[s, _PLACE]] = cells[s, _SIGN]
            if state[_GUIDED] < 0:
                full = drawing and (state[_DRAWN] == len(sizes) or state[_PLACED] + points.shape[2] > len(borders))
                if full or state[_FOUND] + 2 > len(lengths):
                    status = FULL
                elif spent > budget:
                    status = SPENT
    return status


class _Network(NamedTuple):
    """What `walk` reads, in its order."""

    layers: Any
    biases: Floats
    weights: Floats
    reach: Floats
    slack: Floats
    norms: Floats
    twins: Any


class _Levels(NamedTuple):
    """One entry per cell that waits, in the order of `walk`."""

    points: Floats
    walls: Any
    slots: Any
    cells: Any
    ratios: Floats
    below: Floats
    waiting: Any


class _Path(NamedTuple):
    """What belongs to the decisions that lead to the cell on top, and scratch, in the order of `walk`."""

    planes: Floats
    origins: Any
    rows: Floats
    places: Any
    errors: Floats
    pattern: Any
    guide: Any
    thin: Any
    lengths: Any
    leaves: Any
    sizes: Any
    outlines: Floats
    borders: Any
    before: Floats
    work: Floats
    marks: Any
    grid: Floats
    margins: Floats
    ends: Any
    span: Floats
    state: Any


class Outlines(NamedTuple):
    """Regions written down: one row of patterns and one size each, corners one after the other, and the layers that made the walls."""

    patterns: Any
    sizes: Any
    corners: Floats
    borders: Any
    thin: tuple[bytes, ...] = ()


class Vertices:
    """Counts regions by the corners of cells, for one to six free inputs; one serves one thread.

    A test, in what it reports, is one unit whose sign was asked for at the corners of one cell.

    Parameters
    ----------
    tree
        What is walked.
    drawn
        How many regions `outlines` writes down at a time; 0 for one that only counts.

    Examples
    --------
    >>> from tessella import Box, Network
    >>> network = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 0.0, 0.5])], relu_output=True)
    >>> Vertices(Tree(network, Box(-1, 1, dim=2))).advance([Node()], 1.0, Stop()).regions
    7
    """

    def __init__(self, tree: Tree, drawn: int = 0) -> None:
        """Copy the network and find the corners of the domain."""
        dim, walls = tree.scaled.weights[0].shape[1], len(tree.scaled.constants)
        self._network, self._first = _network(tree)
        self._relus = [int(relus) for relus in self._network.layers[:, _RELUS]]
        width, relus, depth = int(self._network.layers[:, _UNITS].max()), max(*self._relus, 1), len(self._relus)
        most, planes = _CORNERS[dim], 2 * dim + walls + tree.units + 2
        room = 5 * drawn + most if drawn else 0  # most have three to five corners
        self._levels = _Levels(
            np.zeros((32, dim, most)),
            np.zeros((32, most), dtype=np.int64),
            np.zeros((32, _WALLS), dtype=np.int64),
            np.zeros((32, 13), dtype=np.int64),
            np.zeros(32),
            np.zeros((32, dim + 1, width)),
            np.zeros((32, relus), dtype=np.int64),
        )
        self._path = _Path(
            np.zeros((planes, dim + 4)),
            np.full((planes, 3), -1, dtype=np.int64),
            np.zeros((depth, dim + 3, relus)),
            np.zeros((depth, relus), dtype=np.int64),
            np.zeros((depth, 3)),
            np.zeros((depth, relus), dtype=np.uint8),
            np.zeros(tree.units, dtype=np.uint8),
            np.zeros((64, tree.units), dtype=np.uint8),
            np.zeros(64, dtype=np.int64),
            np.zeros((drawn, tree.units), dtype=np.uint8),
            np.zeros(drawn, dtype=np.int64),
            np.zeros((room, dim)),
            np.zeros(room, dtype=np.int64),
            np.zeros((dim + 1, width)),
            np.zeros((3, max(width, most))),
            np.zeros((7, max(width, 2 * most)), dtype=np.int64),
            np.zeros((dim + 1, _AT_ONCE, most)),
            np.zeros((dim + 1, 2, _AT_ONCE)),
            np.zeros((dim + 1, 4, most), dtype=np.int64),
            np.zeros(3),
            np.zeros(8, dtype=np.int64),
        )
        self._good = _is_moderate(self._network, self._first) and self._root(tree)
        self._start = tuple(np.copy(part[0]) for part in self._levels[:5])

    @property
    def bytes(self) -> int:
        """Memory held."""
        return sum(part.nbytes for part in (*self._network, *self._levels, *self._path))

    def advance(self, nodes: Sequence[Node], seconds: float, stop: Stop) -> Found:
        """Walk for about this long, or until it is asked to stop; at least one step is made."""
        if not self._good:
            return Found(0, (), tuple(node.prefix for node in nodes))
        end, state, regions = perf_counter() + seconds, self._path.state, 0
        thin, waiting, left, late = list[bytes](), list(nodes), list[Node](), False
        state[:] = 0
        while waiting and not late:
            node, status = waiting.pop(), HIGHER
            self._load(node)
            while status == HIGHER or (status in {SPENT, FULL} and not late):
                status = walk(_BUDGET, *self._network, *self._levels, *self._path)
                thin += [self._path.thin[number, : self._path.lengths[number]].tobytes() for number in range(state[_FOUND])]
                regions += int(state[_REGIONS])
                state[_FOUND] = state[_REGIONS] = 0
                late = perf_counter() > end or stop.asked
                if status == HIGHER:
                    self._levels = _Levels(*(np.concatenate([part, np.zeros_like(part)]) for part in self._levels))
            if status == LOST:
                thin.append(node.prefix)
            elif status != DONE:
                left = self._open()
        return Found(regions, (*waiting, *left), tuple(thin), int(state[_TESTS]))

    def outlines(self) -> Iterator[Outlines]:
        """All regions of the tree, some at a time, and the prefixes that are thin; for one or two free inputs."""
        path, state, status = self._path, self._path.state, SPENT
        if not self._good:
            yield Outlines(path.leaves[:0], path.sizes[:0], path.outlines[:0], path.borders[:0], (b"",))
            return
        state[:] = 0
        self._load(Node())
        while status in {SPENT, FULL, HIGHER}:
            status = walk(_BUDGET, *self._network, *self._levels, *self._path)
            thin = [path.thin[number, : path.lengths[number]].tobytes() for number in range(state[_FOUND])]
            if status == LOST:
                thin.append(b"")
            drawn, placed = state[_DRAWN], state[_PLACED]
            corners, borders = path.outlines[:placed].copy(), path.borders[:placed].copy()
            state[_FOUND] = state[_REGIONS] = state[_DRAWN] = state[_PLACED] = 0
            yield Outlines(path.leaves[:drawn].copy(), path.sizes[:drawn].copy(), corners, borders, tuple(thin))
            if status == HIGHER:
                self._levels = _Levels(*(np.concatenate([part, np.zeros_like(part)]) for part in self._levels))

    def _load(self, node: Node) -> None:
        """Begin at the root, guided to a node."""
        for part, start in zip(self._levels[:5], self._start, strict=True):
            part[0] = start
        self._levels.below[0, :, : self._first.shape[1]] = self._first
        self._levels.cells[0, _ENTERS] = 1
        path = self._path
        path.errors[0] = _norm(self._network.slack[0]), 0.0, 0.0
        path.guide[: len(node.prefix)] = np.frombuffer(node.prefix, dtype=np.uint8)
        path.state[_TOP], path.state[_GUIDED], path.state[_GIVEN] = 0, len(node.prefix), node.splits

    def _open(self) -> list[Node]:
        """The cells that wait."""
        cells, decisions = self._levels.cells, [row[:relus] for row, relus in zip(self._path.pattern, self._relus, strict=True)]
        pattern = b"".join(row.tobytes() for row in decisions)
        return [
            Node(pattern[: cell[_LENGTH] - 1] + bytes([cell[_SIGN]]), int(cell[_SPLITS]))
            for cell in cells[: self._path.state[_TOP] + 1]
        ]

    def _root(self, tree: Tree) -> bool:
        """The corners of the domain; False if they are not clear."""
        levels, path, dim = self._levels, self._path, self._levels.points.shape[1]
        for c in range(dim):
            for side, sign in enumerate((-1.0, 1.0)):
                plane = 2 * c + side + 1
                path.planes[plane, c], path.planes[plane, dim], path.planes[plane, dim + 2] = sign, 1.0, 2.0
                levels.slots[0, plane - 1] = plane
            for v in range(2**dim):
                upper = v >> c & 1
                levels.points[0, c, v] = 2.0 * upper - 1.0
                levels.walls[0, v] |= 1 << (2 * c + 1 - upper)
        levels.cells[0, _COUNT], levels.cells[0, _CUTS] = 2**dim, 2 * dim
        central = _central(tree)
        levels.cells[0, _CENTRAL] = central
        for v in range(2**dim):
            if central and not levels.walls[0, v] & ~central:
                levels.points[0, :, [0, v]] = levels.points[0, :, [v, 0]]
                levels.walls[0, [0, v]] = levels.walls[0, [v, 0]]
                levels.walls[0, 0] |= _IS_APEX
                levels.cells[0, _APEX] = 1
        levels.ratios[0] = _thickness(0, *levels[:4], path.planes)
        return all(self._keep(row, through_apex=through) for row, through in _domain_rows(tree))

    def _keep(self, row: Floats, *, through_apex: bool) -> bool:
        """Cut the root with an inequality of the domain; False if what is left is not clear."""
        levels, path, dim = self._levels, self._path, self._levels.points.shape[1]
        rows = np.ascontiguousarray(row[None, :, None])
        values = row[:dim] @ levels.points[0, :, : levels.cells[0, _COUNT]] + row[dim]
        exact = float(2.0 * (row[dim + 1] + levels.ratios[0] * np.ptp(values)))
        if values.min() > exact:
            return True
        if not values.max() > exact:
            return False
        if (
            levels.cells[0, _APEX] and not through_apex and values[0] <= exact
        ):  # it may be cut off, or have other corners beside it
            levels.walls[0, 0] &= ~_IS_APEX
            levels.cells[0, [_APEX, _CENTRAL]] = 0
        where, scratch = (levels.points, levels.walls), (path.work, path.marks)
        places = np.full((1, 1), -1, dtype=np.int64)  # no unit's
        added = _cut(0, 0, exact, *where, levels.cells, path.planes, path.origins, rows, places, *scratch)
        if added >= 0:
            _part(0, 0, 1.0, added, exact, *where, levels.slots, levels.cells, path.planes, levels.ratios, *scratch)
        return added >= 0 and levels.ratios[0] < _THIN


def _network(tree: Tree) -> tuple[_Network, Floats]:
    """The network with the ReLUs of each layer before its linear units, and the first layer's rows."""
    scaled = tree.scaled
    orders = [np.argsort(~rectified, kind="stable") for rectified in scaled.rectified]
    relus = [int(rectified.sum()) for rectified in scaled.rectified]
    sizes = [len(order) for order in orders]
    firsts, starts = np.cumsum([0, *relus[:-1]]), np.cumsum([0, 0, *sizes[:-2]])[: len(sizes)]
    layers = np.stack([sizes, relus, firsts, starts], axis=1).astype(np.int64)
    depth, width = len(sizes), max(sizes)
    (biases, reach, slack), norms = np.zeros((3, depth, width)), np.zeros((depth, 4))
    weights = np.zeros((max(sum(sizes[:-1]), 1), width))
    raw = tree.network.layers[0].dense()[orders[0]]
    slack[0, : sizes[0]] = np.where(raw.any(axis=1), (raw.shape[1] + 32) * _UNIT * tree.magnitudes[orders[0]] + _TINY, 0.0)
    for number in range(depth):
        bias, order = scaled.biases[number][orders[number]], orders[number]
        biases[number, : len(bias)] = bias
        if number:
            weight = scaled.weights[number][order][:, orders[number - 1]]
            rounding = (weight.shape[1] + 10) * _UNIT
            weights[starts[number] : starts[number] + weight.shape[1], : len(bias)] = weight.T
            reach[number, : len(bias)] = [_norm(row) for row in weight]
            slack[number, : len(bias)] = rounding * np.abs(bias) + _TINY
            norms[number] = _spectral(weight), rounding * _norm(weight), rounding * _norm(bias), rounding
    first = np.vstack([scaled.weights[0][orders[0]].T, scaled.biases[0][orders[0]]])
    twins = np.full((depth, width), -1, dtype=np.int64)
    for number, (order, found) in enumerate(zip(orders, tree.twins, strict=True)):
        places = np.argsort(order)
        twins[number, : len(order)] = np.where(found[order] >= 0, places[found[order]], -1)
    return _Network(layers, biases, weights, reach, slack, norms, twins), first


def _norm(values: Floats) -> float:
    """The 2-norm, also of numbers whose squares underflow."""
    largest = float(np.abs(values).max(initial=0.0))
    return largest * float(np.linalg.norm(values / largest)) if largest > 0.0 else 0.0


def _spectral(matrix: Floats) -> float:
    """A bound on the largest singular value: the 16th root of the sum of 16th powers of all of them."""
    scale = _norm(matrix)
    if scale == 0.0:
        return 0.0
    power = matrix / scale
    power = power @ power.T if len(power) <= power.shape[1] else power.T @ power
    for _ in range(2):
        power = power @ power
    return 1.001 * scale * float(np.linalg.norm(power)) ** 0.125


def _central(tree: Tree) -> int:
    """Which walls of the box go through the apex, where all preactivations are exactly 0; 0 if there is no such point in the box."""
    box = tree.domain.box
    if any(layer.bias.any() for layer in tree.network.layers) or not box.contains(np.zeros(box.dim)):
        return 0
    ends = np.stack([box.upper[box.free], box.lower[box.free]], axis=1).ravel()
    return _IS_APEX + sum(1 << slot for slot in np.flatnonzero(ends == 0.0).tolist())


def _domain_rows(tree: Tree) -> list[tuple[Floats, bool]]:
    """The domain's inequalities that read a free input, and whether the origin lies on them, exactly.

    Of each: coefficients, constant, error, and a flag that nothing makes it smaller.
    """
    domain, scaled = tree.domain, tree.scaled
    if not isinstance(domain, Polytope):
        return []
    ends = np.maximum(np.abs(domain.box.lower), np.abs(domain.box.upper))
    errors = (domain.dim + 32) * _UNIT * (np.abs(domain.matrix) @ ends + np.abs(domain.offset)) + _TINY
    rows = np.column_stack([scaled.normals, scaled.constants, errors, np.ones(len(errors))])
    return [(row, offset == 0.0) for row, offset in zip(rows, domain.offset, strict=True) if row[:-3].any()]


def _is_moderate(network: _Network, first: Floats) -> bool:
    """Whether no row can become so large that its square overflows."""
    size = _norm(first)
    for norm, bias in zip(network.norms[1:, 0], network.biases[1:], strict=True):
        size = max(1.0, size) * max(1.0, norm) + _norm(bias)
    return size < _LARGEST
