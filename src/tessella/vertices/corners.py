"""Cells by their corners: the values of a row at them, the plane of a row that cuts a cell, and the part on one side of it.

A unit that is positive at some corners and negative at others cuts the cell; new corners lie where edges are cut, and two corners share an edge if
they share d - 1 walls (and, where more than d walls meet, no third corner has all of these).  There are no linear programs.
"""

import numpy as np

from tessella.kernel.functions import apart, compiled
from tessella.kernel.record import Matrix, Vector, Whole
from tessella.vertices.errors import worst_ratio
from tessella.vertices.state import IS_APEX, WALLS, Cells, Planes, Sides

_NOT_NEGATIVE = 0xFFFF  # an index, by this mask, is seen not to count from the end


@compiled
def value_range(points: Matrix, begin: int, end: int, rows: Matrix, k: int) -> tuple[float, float]:
    """The least and the largest value of row k at some corners of a cell.

    One loop for two, four and six coordinates, with nothing in memory; where there is one coordinate less, the last is taken twice, the second time 0 times.
    """
    d = len(points)
    low, high, b, last = np.inf, -np.inf, rows[d, k], d - 1
    x0, a0 = points[0], rows[0, k]
    x1, a1 = points[min(1, last)], rows[1, k] if d > 1 else 0.0
    if d <= 2:
        for v in range(begin, end):
            value = b + a0 * x0[v] + a1 * x1[v]
            low, high = min(low, value), max(high, value)
        return low, high
    x2, a2 = points[2], rows[2, k]
    x3, a3 = points[min(3, last)], rows[3, k] if d > 3 else 0.0
    if d <= 4:
        for v in range(begin, end):
            value = b + a0 * x0[v] + a1 * x1[v] + a2 * x2[v] + a3 * x3[v]
            low, high = min(low, value), max(high, value)
        return low, high
    x4, a4 = points[4], rows[4, k]
    x5, a5 = points[last], rows[5, k] if d > 5 else 0.0
    for v in range(begin, end):
        value = b + a0 * x0[v] + a1 * x1[v] + a2 * x2[v]
        value += a3 * x3[v] + a4 * x4[v] + a5 * x5[v]
        low, high = min(low, value), max(high, value)
    return low, high


@compiled
def bits(walls: int) -> int:
    """How many walls there are in a set."""
    count = 0
    while walls:
        walls &= walls - 1
        count += 1
    return count


@compiled
def tag(walls: int) -> int:
    """A number that stands for the edges at a corner, which lies on these walls and no others.

    An edge lies on all of them but one, and has two ends: the tags of all corners of a polytope cancel, by exclusive or.  If a corner is
    missing, or one is there that should not, they do not (but for a chance of 2**-60).
    """
    found, left = 0, walls
    while left:
        edge = (walls ^ (left & -left)) * 0x1E3779B97F4A7C15
        edge = (edge ^ (edge >> 29)) * 0x3F58476D1CE4E5B9
        found ^= edge ^ (edge >> 32)
        left &= left - 1
    return found


@compiled
def is_simple(walls: int, corners: int) -> bool:
    """Whether a polytope in three dimensions with so many corners, three walls at each, can have these walls (Euler)."""
    return 2 * bits(walls) == corners + 4


@compiled
def edges(pluses: int, minuses: int, dim: int, most: int, sides: Sides) -> int:
    """List the pairs of corners on both sides that share the walls of an edge; how many, or `most` if there may be no room for all.

    Changes `sides.first` and `sides.second`.  Few pairs share an edge: nothing branches on it, and as little as can be is written down for each.
    """
    above, above_walls, under, under_walls = sides.above, sides.above_walls, sides.under, sides.under_walls
    first, second, found = sides.first, sides.second, 0
    for p in range(pluses):
        wall, begun = above_walls[p], found
        for m in range(minuses):
            second[found & _NOT_NEGATIVE] = m
            found += 1 if bits(wall & under_walls[m]) >= dim - 1 else 0
        for f in range(begun, found):
            first[f], second[f] = above[p], under[second[f]]
        found = min(found, most)
    return found


@compiled
def evaluate(points: Matrix, count: int, normal: Vector, constant: float, values: Vector) -> None:
    """Write the values of a plane's row at the corners of a cell down."""
    for v in range(count):
        values[v] = constant
    for c in range(len(points)):
        a = normal[c]
        for v in range(count):
            values[v] += a * points[c, v]


@compiled
def are_an_edge(walls: Whole, count: int, v: int, w: int) -> bool:
    """Whether no third corner lies on all walls that two corners share."""
    shared = walls[v] & walls[w]
    for u in range(count):  # noqa: SIM110
        if u != v and u != w and walls[u] & shared == shared:  # noqa: PLR1714  a tuple would be made
            return False
    return True


@apart
def cut(s: int, exact: float, through_apex: bool, cells: Cells, planes: Planes, sides: Sides) -> int:
    """Find the corners where the next plane cuts the edges of a cell; how many, or -1 if they do not fit together.

    They are written to the spare cell, the last one.  Changes that, `sides`, `planes.off`, and what cell s knows of tangles and of walls through the apex.
    `exact` says how exact values at corners are; `through_apex` whether the plane goes through the apex if there is one.
    """
    n, spare, plane = cells.corners[s], len(cells.points) - 1, cells.cuts[s] + 1
    points, walls, new_points, new_walls = cells.points[s], cells.walls[s], cells.points[spare], cells.walls[spare]
    d, most = points.shape
    values, above, above_walls, under, under_walls = sides.values, sides.above, sides.above_walls, sides.under, sides.under_walls
    evaluate(points, n, planes.normals[plane], planes.constants[plane], values)
    used, all_above, all_under, pluses, minuses, touched = 0, 0, 0, 0, 0, 0
    once, twice, thrice, four, five = 0, 0, 0, 0, 0  # walls that have so many corners on the plane
    tags, off = 0, 0.0
    for v in range(n):
        wall, value = walls[v], values[v]
        used |= wall
        if value > exact:
            above[pluses], above_walls[pluses] = v, wall
            pluses += 1
            all_above |= wall
        elif value < -exact:
            under[minuses], under_walls[minuses] = v, wall
            minuses += 1
            all_under |= wall
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
    sides.wall = slot
    if touched:
        cells.tangled[s] = 1
    tangled, bit, added, central = cells.tangled[s], 1 << slot, 0, cells.central[s]
    conic = central != 0 and through_apex
    found = edges(pluses, minuses, d, most, sides)
    # a plane can be moved into one corner that it all but touches; into more of them only if these are far apart
    good = slot < WALLS and (d < 3 or touched < 2) and found < most
    first, second = sides.first, sides.second
    for f in range(found):
        v, w = first[f], second[f]
        if not tangled or are_an_edge(walls, n, v, w):
            shared, share = walls[v] & walls[w], values[v] / (values[v] - values[w])
            for c in range(d):
                new_points[c, added] = points[c, v] + share * (points[c, w] - points[c, v])
            new_walls[added] = shared | bit
            if conic and shared & ~central == 0:
                new_walls[added] |= IS_APEX
            added += 1
            if d > 4:
                tags ^= tag(shared)
                five |= four & shared
                four |= thrice & shared
            thrice |= twice & shared
            twice |= once & shared
            once |= shared
    if central:
        cells.central[s] = central | bit if conic else central & ~bit
    # a wall with corners on both sides is cut in a polytope of one dimension less
    both, whole = all_above & all_under, tangled == 0
    if d == 1:
        good = good and (added == 1 or not (pluses and minuses))
    elif d == 2:
        good = good and both & ~once == 0 and (added == 2 or not whole)
    elif d == 3:
        good = good and both & ~twice == 0 and ((once == twice and thrice == 0) or not whole)
    elif d == 4:
        good = good and both & ~thrice == 0 and (is_simple(once, added) or not whole)
    else:
        good = good and both & ~(four if d == 5 else five) == 0 and (tags == 0 or not whole)
    planes.off[plane] = off
    return added if good else -1


@apart
def keep_side(s: int, t: int, side: float, added: int, exact: float, cells: Cells, planes: Planes, sides: Sides) -> None:
    """Make cell t of the part of cell s on one side of what was cut last, which added so many corners; they may be the same cell.

    Changes all of cell t but what waits in it, its rows, and the decision that leads to it.
    """
    n, spare, q = cells.corners[s], len(cells.points) - 1, 0
    points, walls, kept_points, kept_walls = cells.points[s], cells.walls[s], cells.points[t], cells.walls[t]
    new_points, new_walls, values = cells.points[spare], cells.walls[spare], sides.values
    d, most = points.shape
    bit, cuts = 1 << sides.wall, cells.cuts[s] + 1
    for v in range(n):
        value = side * values[v]
        if not value < -exact:
            for c in range(d):
                kept_points[c, q] = points[c, v]
            kept_walls[q] = walls[v] if value > exact else walls[v] | bit
            q += 1
    if q + added > most:  # it has no room: that makes it thin
        q, added = 0, 0
    for f in range(added):
        for c in range(d):
            kept_points[c, q] = new_points[c, f]
        kept_walls[q] = new_walls[f]
        if kept_walls[q] & IS_APEX:
            for c in range(d):
                kept_points[c, q], kept_points[c, 0] = kept_points[c, 0], kept_points[c, q]
            kept_walls[q], kept_walls[0] = kept_walls[0], kept_walls[q]
        q += 1
    if t != s:
        for wall in range(WALLS):
            cells.plane_of[t, wall] = cells.plane_of[s, wall]
        cells.layer[t], cells.enters[t], cells.tangled[t] = cells.layer[s], cells.enters[s], cells.tangled[s]
        cells.central[t], cells.odd[t] = cells.central[s], cells.odd[s]
    cells.plane_of[t, sides.wall] = cuts
    cells.corners[t], cells.cuts[t], cells.sharp[t] = q, cuts, 0
    cells.apex[t] = 1 if kept_walls[0] & IS_APEX else 0
    cells.ratio[t] = worst_ratio(t, cells, planes)
