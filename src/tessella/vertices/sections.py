"""The last layer, which is not walked but counted by deletion and restriction.

Hyperplanes H1, H2, ... cut a cell into 1 + sum_k (parts of the section with Hk made by H1, ..., Hk-1) parts, a section being a polytope of one
dimension less; in an edge, points are counted.  This needs the values of the units at corners only, and nothing is built.  Where the edge between two
corners is cut, what a unit's value there adds to its error is the error of the cutting unit, times the ratio of what both gain along the edge; a
section is as exact as the worst of its corners.  Where a sign or an order is not clear, the cell is cut as in the other layers.

Nothing calls itself here: sections of sections are levels of `Sections`.
"""

import numpy as np

from tessella.kernel.functions import apart, compiled
from tessella.vertices.corners import edges, is_simple, tag
from tessella.vertices.state import Cells, Path, Sections, Sides


@compiled
def begin(s: int, cells: Cells, path: Path, sections: Sections) -> bool:
    """Write the waiting units' values at the corners of a cell down as level 0; False if one of them does not clearly cut it."""
    points, values, rows, good = cells.points[s], sections.values[0], path.rows[cells.layer[s]], True
    d, n, count = len(points), cells.corners[s], cells.undecided[s]
    for q in range(count):
        k = cells.waiting[s, q]
        b = rows[d, k]
        for v in range(n):
            values[q, v] = b
        for c in range(d):
            a = rows[c, k]
            for v in range(n):
                values[q, v] += a * points[c, v]
        low, high = np.inf, -np.inf
        for v in range(n):
            low, high = min(low, values[q, v]), max(high, values[q, v])
        exact = 2.0 * (path.row_errors[cells.layer[s], k] + cells.ratio[s] * (high - low))
        good = good and low < -exact and high > exact
        sections.exact[0, q] = exact
    for v in range(n):
        sections.walls[0, v] = cells.walls[s, v]
    sections.corners[0], sections.units[0], sections.next[0] = n, count, 1
    return good


@compiled
def are_apart(level: int, sections: Sections) -> bool:
    """Whether the points where units cut an edge are clearly different.  Changes its values: to the places on the edge."""
    values, exact, good = sections.values[level], sections.exact[level], True
    for j in range(sections.units[level]):
        step = values[j, 0] - values[j, 1]
        values[j, 0] /= step
        exact[j] /= abs(step)
        for i in range(j):
            good = good and abs(values[j, 0] - values[i, 0]) > 2.0 * (exact[j] + exact[i])
    return good


@compiled
def section(level: int, k: int, dim: int, sections: Sections, sides: Sides) -> int:
    """Make the corners of the section with unit k, on the next level; how many there are, or -1 if they do not fit together."""
    values, walls, new_walls = sections.values[level, k], sections.walls[level], sections.walls[level + 1]
    places, first, second = sections.values[level + 1, k], sections.first[level], sections.second[level]
    plus, minus, pluses, minuses, most = np.inf, np.inf, 0, 0, len(walls)
    for v in range(sections.corners[level]):
        value = values[v]
        if value > 0.0:
            plus = min(plus, value)
            sides.above[pluses], sides.above_walls[pluses] = v, walls[v]
            pluses += 1
        else:
            minus = min(minus, -value)
            sides.under[minuses], sides.under_walls[minuses] = v, walls[v]
            minuses += 1
    good = min(plus, minus) > sections.exact[level, k]
    once, twice, thrice, tags = 0, 0, 0, 0  # walls that have so many corners
    found = edges(pluses, minuses, dim, most, sides)
    for q in range(found):
        v, w = sides.first[q], sides.second[q]
        shared = walls[v] & walls[w]
        first[q], second[q], new_walls[q] = v, w, shared
        scale = 1.0 / (values[v] - values[w])
        sections.scale[q] = scale
        places[q] = values[v] * scale
        if dim > 4:
            tags ^= tag(shared)
        thrice |= twice & shared
        twice |= once & shared
        once |= shared
    if dim == 2:
        good = good and found == 2
    elif dim == 3:
        good = good and once == twice and thrice == 0
    elif dim == 4:
        good = good and is_simple(once, found)
    else:
        good = good and tags == 0
    return found if good and found < most else -1


@compiled
def restrict(level: int, k: int, corners: int, sections: Sections) -> int:
    """Write the values of the units before k at the corners of its section down; how many cut it, or -1 if that is not clear of one."""
    values, below, scale = sections.values[level], sections.values[level + 1], sections.scale
    first, second = sections.first[level], sections.second[level]
    kept, loose = 0, 2.0 * sections.exact[level, k]
    for j in range(k):
        low, high, slope = np.inf, -np.inf, 0.0
        for q in range(corners):
            value = values[j, first[q]]
            step = values[j, second[q]] - value
            value += below[k, q] * step
            below[kept, q] = value
            low, high, slope = min(low, value), max(high, value), max(slope, abs(step) * scale[q])
        exact = sections.exact[level, j] + loose * slope
        if low < -exact and high > exact:
            sections.exact[level + 1, kept] = exact
            kept += 1
        elif not (low > exact or high < -exact):
            return -1
    return kept


@apart
def count_parts(s: int, cells: Cells, path: Path, sections: Sections, sides: Sides) -> int:
    """Into how many parts the waiting units cut a cell, by sections of sections; -1 if that is not clear.  Changes `sections` and `sides`."""
    d, level = cells.points.shape[1], 0
    total = 2 if d > 1 else 0
    if not begin(s, cells, path, sections):
        return -1
    while level >= 0:
        count, k, dim = sections.units[level], sections.next[level], d - level
        if dim == 1:
            if not are_apart(level, sections):
                return -1
            total += 1 + count
            level -= 1
        elif k == count:
            level -= 1
        else:
            sections.next[level] = k + 1
            corners = section(level, k, dim, sections, sides)
            kept = restrict(level, k, corners, sections) if corners >= 0 else -1
            if kept < 0:
                return -1
            if kept < 2:
                total += 1 + kept
            else:
                level += 1
                sections.corners[level], sections.units[level], sections.next[level] = corners, kept, 1
                total += 2 if dim > 2 else 0
    return total
