"""The units of a layer on a cell: which of them have one sign there, and what they add to the rows of the next layer.

In a cell every preactivation is an affine function of the inputs, a row.  On entering a layer the rows of all its units are known; most units have
one sign on the cell's bounding box and are settled at once (`enter`).  The others wait, and each part of the cell asks again only those that cut the
whole (`decide`).  Each unit found active adds its multiple to the rows of the next layer, a rank-one update (`add`), so these are complete when the
last unit of the layer is decided, and parts share what was added before they parted.  So does each unit found inactive that has a slope, times that.

A unit is active if all its values at the corners are above twice their error, inactive if all are below minus twice that, and cuts if there are
some of both: then both parts have an interior, as a full-dimensional set is cut strictly.  Signs also decide, with no rounding at all, where weights
of one sign add up what is not negative (`known_state`).
"""

import numpy as np

from tessella.cells.residues import Residues, is_combination, is_multiple, is_zero
from tessella.kernel.functions import apart, compiled
from tessella.numerics import LOST_OF_NORMS, LOST_OF_PRODUCTS, ROUNDOFF
from tessella.vertices.corners import value_range
from tessella.vertices.errors import grow, used_walls
from tessella.vertices.state import ASKED_FOR, NOT_YET, SHARP, WALLS, Cells, Layers, Path, Planes, Work

_NEAR = 1e-9  # of a row's size: what is further from a multiple of a wall is none
_OPEN = 1e6  # a wall's largest coefficient is not so much smaller than its size where it is compared


@compiled
def add(s: int, t: int, k: int, factor: float, layers: Layers, cells: Cells, path: Path) -> None:
    """Make the next layer's rows of cell t those of cell s with one more unit, the one of row k, times a factor: 1 if it is active, else its slope."""
    layer, below, weights, rows = cells.layer[s], cells.below, layers.weights, path.rows
    after, offset = layers.units[layer + 1], layers.start[layer + 1] + path.places[layer, k]
    for c in range(below.shape[1]):
        a = factor * rows[layer, c, k]
        for i in range(after):
            below[t, c, i] = below[s, c, i] + a * weights[offset, i]


@compiled
def bound_on_box(s: int, layers: Layers, cells: Cells, path: Path, work: Work) -> None:
    """The value of each unit of the cell's layer in the middle of its bounding box, and how far it can be from that: `work.middle`, `work.half`."""
    points, below, middles, halves = cells.points[s], cells.below[s], work.middle, work.half
    d, n, layer = len(points), cells.corners[s], cells.layer[s]
    count, past = layers.units[layer], path.past[layer]
    for i in range(count):
        middles[i] = below[d, i]
        halves[i] = 2.0 * (layers.reach[layer, i] * past + layers.slack[layer, i])
    for c in range(d):
        low, high = points[c, 0], points[c, 0]
        for v in range(1, n):
            low, high = min(low, points[c, v]), max(high, points[c, v])
        middle, half = 0.5 * (low + high), 0.5 * (high - low) * (1.0 + 4.0 * cells.ratio[s])
        for i in range(count):
            a = below[c, i]
            middles[i] += a * middle
            halves[i] += abs(a) * half


@compiled
def norm_of_rows(s: int, layers: Layers, cells: Cells, work: Work) -> float:
    """The norm of all rows of the cell's layer that may be passed on: of ReLUs that are not settled to be inactive, linear units, and leaky ones."""
    below, middles, halves = cells.below[s], work.middle, work.half
    d, layer, total = len(below) - 1, cells.layer[s], 0.0
    relus, slopes = layers.relus[layer], layers.slopes[layer]
    for i in range(layers.units[layer]):
        size = abs(below[d, i])
        for c in range(d):
            size += abs(below[c, i])
        size *= min(1.0, abs(slopes[i])) if i < relus and middles[i] < -halves[i] else 1.0
        total += size * size
    return np.sqrt(total) + LOST_OF_NORMS


@compiled
def let_wait(s: int, layers: Layers, cells: Cells, path: Path, work: Work) -> None:
    """Let the units that may cut the bounding box wait.  Changes their rows in the path and what waits in the cell; `work.middle` is 0 for them."""
    below, middles, halves, rows = cells.below[s], work.middle, work.half, path.rows
    layer, q = cells.layer[s], 0
    for i in range(layers.relus[layer]):
        if not abs(middles[i]) > halves[i]:
            for c in range(len(below)):
                rows[layer, c, q] = below[c, i]
            path.row_errors[layer, q] = layers.reach[layer, i] * path.past[layer] + layers.slack[layer, i]
            path.bounded[layer, q] = NOT_YET
            path.places[layer, q] = i
            cells.waiting[s, q] = q
            q += 1
            middles[i] = 0.0  # it adds nothing before it is decided
    cells.undecided[s] = q


@compiled
def compose(s: int, layers: Layers, cells: Cells, work: Work) -> None:
    """Begin the next layer's rows with what is passed on already, four units at a time: where `work.middle` is positive, where it is negative with a slope, and linear units."""
    below, before, middles, active, weights = cells.below[s], work.before, work.middle, work.active, layers.weights
    layer, found = cells.layer[s], 0
    count, relus, slopes, factors = layers.units[layer], layers.relus[layer], layers.slopes[layer], work.half
    for i in range(count):
        factor = 0.0 if i < relus and middles[i] == 0.0 else 1.0 if i < relus and middles[i] > 0.0 else slopes[i]
        active[found], factors[i] = i, factor
        found += factor != 0.0
    d, after, offset = len(below) - 1, layers.units[layer + 1], layers.start[layer + 1]
    for c in range(d + 1):
        for i in range(count):
            before[c, i] = factors[i] * below[c, i]
    for c in range(d):
        for i in range(after):
            below[c, i] = 0.0
    for i in range(after):
        below[d, i] = layers.biases[layer + 1, i]
    whole = found - found % 4
    for q in range(0, whole, 4):
        i0, i1, i2, i3 = active[q], active[q + 1], active[q + 2], active[q + 3]
        j0, j1, j2, j3 = offset + i0, offset + i1, offset + i2, offset + i3
        for c in range(d + 1):
            a0, a1, a2, a3 = before[c, i0], before[c, i1], before[c, i2], before[c, i3]
            for i in range(after):
                below[c, i] += a0 * weights[j0, i] + a1 * weights[j1, i] + a2 * weights[j2, i] + a3 * weights[j3, i]
    for q in range(whole, found):
        i0, j0 = active[q], offset + active[q]
        for c in range(d + 1):
            a0 = before[c, i0]
            for i in range(after):
                below[c, i] += a0 * weights[j0, i]


@apart
def enter(s: int, layers: Layers, cells: Cells, path: Path, work: Work) -> None:
    """Settle the units of a layer that do not cut a cell's bounding box, and begin the next layer's rows.

    Changes the cell's waiting units and the rows below it, the path's rows, decisions and next errors, and scratch.
    """
    layer = cells.layer[s]
    more = layer + 1 < len(layers.units)
    bound_on_box(s, layers, cells, path, work)
    for i in range(layers.relus[layer]):
        path.pattern[layer, i] = work.middle[i] > 0.0
    if more:
        grow(layer, norm_of_rows(s, layers, cells, work), layers, path)
    let_wait(s, layers, cells, path, work)
    cells.enters[s] = 0
    cells.sharp[s] = 0
    if more:
        compose(s, layers, cells, work)


@apart
def known_state(layer: int, k: int, layers: Layers, path: Path) -> int:
    """The state of a unit, 1 or 0, that the signs of what it adds up prove, with no rounding; -1 if they do not.

    What it reads is not negative, and positive somewhere where it is active, so a sum of such with weights and a bias of one sign has that sign.
    """
    i = path.places[layer, k]
    bias = layers.biases[layer, i]
    ups, downs = bias > 0.0, bias < 0.0
    if layer == 0:  # a constant, if it reads no input that is not 0
        if path.row_errors[layer, k] != 0.0:
            return -1
    elif layers.composed[layer]:
        return -1
    else:
        for j in range(layers.units[layer - 1]):
            weight = layers.weights[layers.start[layer] + j, i]
            if weight != 0.0:
                if j >= layers.relus[layer - 1]:
                    return -1
                if layers.slopes[layer - 1, j] != 0.0 and not path.pattern[layer - 1, j]:
                    return -1
                if path.pattern[layer - 1, j]:
                    ups, downs = ups or weight > 0.0, downs or weight < 0.0
    if ups and downs:
        return -1
    return 1 if ups else 0


@compiled
def twin_is_decided(i: int, s: int, kept: int, layers: Layers, cells: Cells, path: Path) -> bool:
    """Whether a unit is a multiple of one that does not wait any more: then it has one sign, too."""
    layer = cells.layer[s]
    twin = layers.twins[layer, i]
    for other in range(kept):
        if path.places[layer, cells.waiting[s, other]] == twin:
            return False
    return twin >= 0


@apart
def lies_on_wall(s: int, k: int, cells: Cells, planes: Planes, path: Path, residues: Residues) -> bool:
    """Whether the row of a waiting unit is exactly a multiple of that of a wall of the cell: then it has one sign inside.

    Nothing is asked of walls whose rows are not nearly multiples, up to rounding.
    """
    layer, used, wall = cells.layer[s], used_walls(s, cells), 0
    rows = path.rows[layer]
    d, size, largest = len(rows) - 1, 0.0, 0
    for c in range(d + 1):
        size += abs(rows[c, k])
        largest = c if abs(rows[c, k]) > abs(rows[largest, k]) else largest
    near = 4.0 * path.row_errors[layer, k] + _NEAR * size
    while used:
        if used & 1:
            plane = cells.plane_of[s, wall]
            own = planes.constants[plane] if largest == d else planes.normals[plane, largest]
            if abs(own) * _OPEN > planes.sizes[plane]:
                share = rows[largest, k] / own
                off = abs(rows[d, k] - share * planes.constants[plane])
                for c in range(d):
                    off += abs(rows[c, k] - share * planes.normals[plane, c])
                if off <= near:
                    place = planes.unit[plane] if planes.layer[plane] >= 0 else plane - 1
                    if is_multiple(layer, path.places[layer, k], planes.layer[plane], place, path.pattern, residues):
                        return True
        used >>= 1
        wall += 1
    return False


@compiled
def coefficient(c: int, plane: int, planes: Planes) -> float:
    """That of a plane's row in two dimensions; the last is the constant."""
    return planes.constants[plane] if c == 2 else planes.normals[plane, c]


@compiled
def sign_of_minor(a: float, b: float, error: float, c: float, d: float, other: float) -> int:
    """The sign of a d - b c, where a and b may be wrong by one error, c and d by another; 0 if it is not clear."""
    value, sizes = a * d - b * c, abs(a) + abs(b)
    doubt = 2.0 * (error * (abs(c) + abs(d)) + other * sizes + error * other) + 8.0 * ROUNDOFF * sizes * (abs(c) + abs(d))
    return 1 if value > doubt + LOST_OF_PRODUCTS else -1 if value < -doubt - LOST_OF_PRODUCTS else 0


@compiled
def side_of(s: int, plane: int, cells: Cells, planes: Planes) -> int:
    """On which side of one of its walls a cell of two dimensions lies: rows of planes are positive on one side, and cells lie on either."""
    points, total = cells.points[s], 0.0
    for v in range(cells.corners[s]):
        total += planes.constants[plane] + planes.normals[plane, 0] * points[0, v] + planes.normals[plane, 1] * points[1, v]
    return 1 if total > 0.0 else -1


@compiled
def share_signs(k: int, layer: int, one: int, two: int, planes: Planes, path: Path) -> int:
    """The product of the signs of two numbers: how often the row of a waiting unit holds two planes' rows, if it depends on them, by Cramer's rule; 0 if one is not clear."""
    rows, error = path.rows[layer], path.row_errors[layer, k]
    for a in range(3):
        b = (a + 1) % 3
        p, q = coefficient(a, one, planes), coefficient(b, one, planes)
        u, v = coefficient(a, two, planes), coefficient(b, two, planes)
        whole = sign_of_minor(p, q, planes.errors[one], u, v, planes.errors[two])
        if whole != 0:
            first = sign_of_minor(rows[a, k], rows[b, k], error, u, v, planes.errors[two])
            second = sign_of_minor(p, q, planes.errors[one], rows[a, k], rows[b, k], error)
            if first != 0 and second != 0:
                return first * second
    return 0


@apart
def touches_corner(
    s: int, k: int, exact: float, cells: Cells, planes: Planes, path: Path, work: Work, residues: Residues
) -> bool:
    """Whether, in two dimensions, the row of a waiting unit is exactly zero where two walls meet, and has one sign inside the cell because of these walls.

    It is then a sum of positive multiples of the walls' rows, or of negative ones, where these rows are taken to be positive inside.
    """
    points, walls, layer = cells.points[s], cells.walls[s], cells.layer[s]
    if len(points) != 2:
        return False
    rows, layers, names = path.rows[layer], work.layers, work.names
    for v in range(cells.corners[s]):
        if abs(rows[2, k] + rows[0, k] * points[0, v] + rows[1, k] * points[1, v]) > exact:
            continue
        for other in range(WALLS):
            for wall in range(other):
                if (walls[v] >> wall) & (walls[v] >> other) & 1:
                    one, two = cells.plane_of[s, wall], cells.plane_of[s, other]
                    inside = side_of(s, one, cells, planes) * side_of(s, two, cells, planes)
                    if share_signs(k, layer, one, two, planes, path) == inside:
                        layers[0], layers[1] = planes.layer[one], planes.layer[two]
                        names[0] = planes.unit[one] if layers[0] >= 0 else one - 1
                        names[1] = planes.unit[two] if layers[1] >= 0 else two - 1
                        if is_combination(layer, path.places[layer, k], layers, names, path.pattern, residues):
                            return True
    return False


@apart
def decide(s: int, layers: Layers, cells: Cells, planes: Planes, path: Path, work: Work, residues: Residues) -> bool:
    """Decide the waiting units that do not cut a cell; of the first that is left, tell the range of its values and how exact they are.

    True if closer bounds on errors might decide more.  Changes what waits, the rows below, decisions, and `low`, `high`, `exact` of `work`.
    """
    points, waiting, apex, n, ratio = cells.points[s], cells.waiting[s], cells.apex[s], cells.corners[s], cells.ratio[s]
    layer, kept, ask = cells.layer[s], 0, False
    rows, more = path.rows[layer], layer + 1 < len(layers.units)
    for q in range(cells.undecided[s]):
        k = waiting[q]
        i = path.places[layer, k]
        low, high = value_range(points, apex, n, rows, k)
        span = max(high, 0.0) - min(low, 0.0) if apex else high - low  # it is 0 at the apex, exactly
        exact = 2.0 * (path.row_errors[layer, k] + ratio * span)
        on, off = low > exact, high < -exact
        if not (on or off or (low < -exact and high > exact)):
            known = known_state(layer, k, layers, path)
            if known < 0 and max(high, -low) > exact:
                if (
                    twin_is_decided(i, s, kept, layers, cells, path)
                    or lies_on_wall(s, k, cells, planes, path, residues)
                    or touches_corner(s, k, exact, cells, planes, path, work, residues)
                ):
                    known = 1 if high > exact else 0
            elif known < 0 and is_zero(layer, i, path.pattern, residues):
                known = 0
            on, off = known == 1, known == 0
            if known >= 0:
                cells.odd[s] = 1
            if known < 0 and (path.bounded[layer, k] != SHARP or not cells.sharp[s]):
                if path.bounded[layer, k] == NOT_YET:
                    path.bounded[layer, k] = ASKED_FOR
                ask = True
        if on:
            path.pattern[layer, i] = 1
            if more:
                add(s, s, k, 1.0, layers, cells, path)
        elif off:
            path.pattern[layer, i] = 0
            if more and layers.slopes[layer, i] != 0.0:
                add(s, s, k, layers.slopes[layer, i], layers, cells, path)
        else:
            if kept == 0:
                work.low, work.high, work.exact = low, high, exact
            waiting[kept] = k
            kept += 1
    cells.undecided[s] = kept
    return ask
