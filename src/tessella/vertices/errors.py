"""How exact rows and corners are: rounding is bounded, not guessed.

Let e bound the error of a row on the box.

- Rows.  The errors of a layer, as a vector, grow by at most the spectral norm of the next weights, and each unit adds the rounding of its
  own sum (`grow`).  Where this is too coarse, as in deep networks, the error of one row is bounded again (`row_error`) by the rounding of every
  sum before it, times how much that counts in it.
- Corners.  Let c be the mean of the corners, and r the largest ratio, over the walls, of the error of the wall's row (with what rounding
  moved its corners off it) to its value at c (`worst_ratio`).  Then the polytope of the computed corners, shrunk towards c by the factor 1 - r,
  lies in the true cell, and the true cell, shrunk likewise, in it.  So a unit whose values at the corners span w takes, on the true cell, the
  same least and largest value up to e + r w.
"""

import numpy as np

from tessella.kernel.functions import apart, compiled
from tessella.numerics import LOST_OF_NORMS, ROUNDOFF, THIN
from tessella.vertices.state import ASKED_FOR, IS_APEX, SHARP, WALLS, Cells, Layers, Path, Planes, Work


@compiled
def grow(layer: int, total: float, layers: Layers, path: Path) -> None:
    """Bound the errors of the next layer's rows; `total` is the norm of this layer's rows.  Changes `norm`, `past` and `own` of the next layer."""
    after = layer + 1
    path.norm[after] = (
        layers.growth[after] * path.norm[layer] + layers.rounding_of_sums[after] * total + layers.rounding_of_biases[after]
    )
    path.past[after] = path.norm[layer] + layers.rounding[after] * total
    path.own[after] = layers.rounding[after] * total


@compiled
def factor_of(layer: int, j: int, layers: Layers, path: Path) -> float:
    """What a decided unit multiplies its preactivation with."""
    return 1.0 if j < layers.relus[layer] and path.pattern[layer, j] else layers.slopes[layer, j]


@apart
def row_error(layer: int, i: int, layers: Layers, path: Path, work: Work) -> float:
    """A bound on the error of one row: what every sum before it added, times how much that counts in it.  Changes `work.counts`."""
    weights, reach, slack, own, counts = layers.weights, layers.reach, layers.slack, path.own, work.counts
    total, now = reach[layer, i] * own[layer] + slack[layer, i], 0
    if layer > 0:
        for j in range(layers.units[layer - 1]):
            counts[0, j] = factor_of(layer - 1, j, layers, path) * weights[layers.start[layer] + j, i]
    for k in range(layer - 1, -1, -1):
        for j in range(layers.units[k]):
            total += abs(counts[now, j]) * (reach[k, j] * own[k] + slack[k, j])
        if k > 0:
            for j in range(layers.units[k - 1]):
                value, factor = 0.0, factor_of(k - 1, j, layers, path)
                if factor != 0.0:
                    row = layers.start[k] + j
                    for m in range(layers.units[k]):
                        value += weights[row, m] * counts[now, m]
                counts[1 - now, j] = factor * value
            now = 1 - now
    return 2.0 * total


@apart
def bound_layer_again(layer: int, layers: Layers, path: Path, work: Work) -> None:
    """Bound the errors of all rows of a layer by `row_error`.  Changes `norm` and `past` of the layer."""
    total, past = 0.0, 0.0
    for i in range(layers.units[layer]):
        error = row_error(layer, i, layers, path, work)
        total += error * error
        if layers.reach[layer, i] > 0.0:
            past = max(past, error / layers.reach[layer, i])
    path.norm[layer] = min(path.norm[layer], np.sqrt(total) + LOST_OF_NORMS)
    path.past[layer] = min(path.past[layer], past)


@compiled
def used_walls(s: int, cells: Cells) -> int:
    """The walls that a cell has a corner on."""
    walls, used = cells.walls[s], 0
    for v in range(cells.corners[s]):
        used |= walls[v]
    return used & (IS_APEX - 1)


@apart
def worst_ratio(s: int, cells: Cells, planes: Planes) -> float:
    """The largest ratio, over the walls of a cell, of a wall's error to its distance from the mean of the corners; 1 if it is not clearly small.

    Changes `cells.sums`.
    """
    points, n, sums, normals = cells.points[s], cells.corners[s], cells.sums, planes.normals
    d, used = len(points), used_walls(s, cells)
    for c in range(d):
        total = 0.0
        for v in range(n):
            total += points[c, v]
        sums[c] = total
    worst, wall = 0.0 if n else 1.0, 0
    drift = (cells.cuts[s] + n + 16.0) * 4.0 * ROUNDOFF  # each generation of corners rounds once
    while used:
        if used & 1:
            plane = cells.plane_of[s, wall]
            value = planes.constants[plane] * n
            for c in range(d):
                value += normals[plane, c] * sums[c]
            error = (planes.errors[plane] + planes.off[plane] + drift * planes.sizes[plane]) * n
            if not error < THIN * abs(value):
                return 1.0
            worst = max(worst, error / abs(value))
        used >>= 1
        wall += 1
    return worst


@apart
def bound_cell_again(s: int, layers: Layers, cells: Cells, planes: Planes, path: Path, work: Work) -> None:
    """Bound the errors of a cell's walls, and of the waiting units that ask for it, by `row_error`.  Changes these, and the cell's ratio."""
    current, used = cells.layer[s], used_walls(s, cells)
    for wall in range(WALLS):
        plane = cells.plane_of[s, wall]
        if (used >> wall) & 1 and planes.layer[plane] >= 0 and not planes.sharp[plane]:
            planes.sharp[plane] = 1
            error = row_error(planes.layer[plane], planes.unit[plane], layers, path, work)
            planes.errors[plane] = min(planes.errors[plane], error)
    for q in range(cells.undecided[s]):
        k = cells.waiting[s, q]
        if path.bounded[current, k] == ASKED_FOR:
            path.bounded[current, k] = SHARP
            error = row_error(current, path.places[current, k], layers, path, work)
            path.row_errors[current, k] = min(path.row_errors[current, k], error)
    cells.ratio[s] = worst_ratio(s, cells, planes)
    cells.sharp[s] = 1
