"""Cells written down for one to six inputs: which units make the walls of a region, proved, a point in its middle, and, if asked for, its volume.

**Why the walls are right.**  Let U be where all walls that a cell has corners on are positive, and T the cell itself, where all planes made on the way are.

- A plane without corners has one clear sign at all corners, so it has that sign on all of T: it makes no wall.  T is open and closed in U then, hence all of U.
- A step from inside of U to behind one wall, and in front of all others by more than their errors, crosses a facet (`is_crossed`).
- Every other unit was decided because its values on a cell around this one are clearly not 0.  So behind that facet only the unit changes that made it.

Where one of these cannot be said, because more than d walls meet in a corner, because exact arithmetic decided a unit on the way, or because errors are too large, the cell is
*unclear*, and exact arithmetic finds its walls.  The corner that is the apex may lie on more walls: at it all units are 0, but on no facet.

**Volume.**  A face is cut into pyramids over its own faces that do not contain its first corner, and so on: all parts are positive (Cohen and Hickey 1979).
"""

import numpy as np

from tessella.kernel.functions import apart, compiled
from tessella.kernel.record import Matrix
from tessella.numerics import ROUNDOFF
from tessella.vertices.corners import bits
from tessella.vertices.errors import used_walls
from tessella.vertices.outlines import write_pattern
from tessella.vertices.state import IS_APEX, WALLS, Cells, Drawing, Layers, Path, Planes, Work

UNCLEAR = -1  # the number of walls of a region that are for exact arithmetic to find
DOMAIN = -1  # what is written for a wall that is the domain's


@compiled
def is_simple_cell(s: int, cells: Cells) -> bool:
    """Whether each corner lies on as many walls as there are dimensions, but for the apex."""
    walls, d = cells.walls[s], cells.points.shape[1]
    good = d > 1 or cells.apex[s] == 0
    for v in range(cells.corners[s]):
        good = good and (bits(walls[v] & (IS_APEX - 1)) == d or walls[v] & IS_APEX != 0)
    return good


@compiled
def value_at(plane: int, planes: Planes, place: int, drawing: Drawing) -> float:
    """The value of a plane's row at a point that is written down."""
    value = planes.constants[plane]
    for c in range(planes.normals.shape[1]):
        value += planes.normals[plane, c] * drawing.corners[place, c]
    return value


@compiled
def doubt_of(plane: int, planes: Planes) -> float:
    """How far the computed value of a plane's row may be off anywhere in the box."""
    return planes.errors[plane] + 32.0 * ROUNDOFF * planes.sizes[plane]


@compiled
def write_middle(s: int, shared: int, cells: Cells, place: int, drawing: Drawing) -> int:
    """Write the mean of the corners on some walls down; how many corners these are."""
    points, walls, d, found = cells.points[s], cells.walls[s], cells.points.shape[1], 0
    for c in range(d):
        drawing.corners[place, c] = 0.0
    for v in range(cells.corners[s]):
        if walls[v] & shared == shared:
            found += 1
            for c in range(d):
                drawing.corners[place, c] += points[c, v]
    for c in range(d):
        drawing.corners[place, c] /= max(found, 1)
    return found


@compiled
def others_are_clear(s: int, used: int, cells: Cells, planes: Planes) -> bool:
    """Whether all planes made on the way that are no walls have one clear sign at the corners."""
    points, n, good = cells.points[s], cells.corners[s], True
    for plane in range(1, cells.cuts[s] + 1):
        is_wall = False
        for wall in range(WALLS):
            is_wall = is_wall or ((used >> wall) & 1 == 1 and cells.plane_of[s, wall] == plane)
        if not is_wall:
            low, high = np.inf, -np.inf
            for v in range(n):
                value = planes.constants[plane]
                for c in range(len(points)):
                    value += planes.normals[plane, c] * points[c, v]
                low, high = min(low, value), max(high, value)
            exact = 2.0 * (doubt_of(plane, planes) + cells.ratio[s] * (high - low))
            good = good and (low > exact or high < -exact)
    return good


@compiled
def is_crossed(s: int, chosen: int, used: int, middle: int, place: int, cells: Cells, planes: Planes, drawing: Drawing) -> bool:
    """Whether a step through a point near one wall leads from inside of a cell to behind that wall, and in front of all others."""
    plane, size = cells.plane_of[s, chosen], 0.0
    for c in range(planes.normals.shape[1]):
        size += planes.normals[plane, c] ** 2
    size = np.sqrt(size)
    if not size > 0.0:
        return False
    step = 2.0 * (abs(value_at(plane, planes, place, drawing)) + doubt_of(plane, planes)) / size
    good = abs(value_at(plane, planes, middle, drawing)) > 2.0 * doubt_of(plane, planes)
    for wall in range(WALLS):
        if (used >> wall) & 1 and wall != chosen:
            other = cells.plane_of[s, wall]
            inside, here = value_at(other, planes, middle, drawing), value_at(other, planes, place, drawing)
            doubt = doubt_of(other, planes)
            here = here if inside > 0.0 else -here
            good = good and abs(inside) > 2.0 * doubt and here - 1.01 * step * planes.sizes[other] > 2.0 * doubt
    return good


@compiled
def write_walls(s: int, layers: Layers, cells: Cells, planes: Planes, drawing: Drawing) -> int:
    """Write the units down that make a cell's walls; how many walls there are, or UNCLEAR."""
    first, used, count = drawing.placed, used_walls(s, cells), 0
    good = is_simple_cell(s, cells) and cells.odd[s] == 0 and others_are_clear(s, used, cells, planes)
    write_middle(s, 0, cells, first, drawing)
    for wall in range(WALLS):
        if good and (used >> wall) & 1:
            plane = cells.plane_of[s, wall]
            layer = planes.layer[plane]
            write_middle(s, 1 << wall, cells, first + 1, drawing)
            good = is_crossed(s, wall, used, first, first + 1, cells, planes, drawing)
            drawing.borders[first + count] = layers.first[layer] + planes.unit[plane] if layer >= 0 else DOMAIN
            count += 1
    return count if good else UNCLEAR


@apart
def note(s: int, layers: Layers, cells: Cells, planes: Planes, path: Path, drawing: Drawing, work: Work) -> None:  # noqa: ARG001  as `draw`
    """Write a region down: its pattern, the units that make its walls, and the mean of its corners as the first of its points."""
    number, first = drawing.regions, drawing.placed
    write_pattern(number, layers, path, drawing)
    count = write_walls(s, layers, cells, planes, drawing)
    drawing.sizes[number] = count
    drawing.regions = number + 1
    drawing.placed = first + max(count, 1)


@compiled
def size_of_simplex(d: int, edges: Matrix) -> float:
    """The size of the determinant of d rows of d numbers.  Changes these: they are eliminated."""
    size = 1.0
    for i in range(d):
        best = i
        for r in range(i + 1, d):
            best = r if abs(edges[r, i]) > abs(edges[best, i]) else best
        for c in range(i, d):
            edges[i, c], edges[best, c] = edges[best, c], edges[i, c]
        pivot = edges[i, i]
        size *= abs(pivot)
        for r in range(i + 1, d if pivot != 0.0 else 0):
            share = edges[r, i] / pivot
            for c in range(i + 1, d):
                edges[r, c] -= share * edges[i, c]
    return size


@compiled
def next_face(s: int, level: int, used: int, cells: Cells, drawing: Drawing) -> bool:
    """Find the next face of a face that does not contain its first corner, and write it down as the next level; False if there is none left.

    A face is all corners on some walls; of the walls that it has besides, and that its pyramid's tip is not on, the first one names it.
    """
    walls, chain = cells.walls[s], drawing.chain
    tip = walls[chain[level, 1]] & (IS_APEX - 1)
    for wall in range(chain[level, 2], WALLS):
        bit = 1 << wall
        if used & bit and not tip & bit:
            shared, common, first = chain[level, 0] | bit, IS_APEX - 1, -1
            for v in range(cells.corners[s]):
                if walls[v] & shared == shared:
                    common &= walls[v]
                    first = v if first < 0 else first
            own = common & ~tip
            if first >= 0 and own & -own == bit:
                chain[level, 2] = wall + 1
                chain[level + 1, 0], chain[level + 1, 1], chain[level + 1, 2] = common, first, 0
                return True
    return False


@compiled
def volume(s: int, cells: Cells, drawing: Drawing) -> float:
    """The volume of a cell, in scaled inputs."""
    points, chain, edges = cells.points[s], drawing.chain, drawing.edges
    d, used, level, total = len(points), used_walls(s, cells), 0, 0.0
    chain[0, 0], chain[0, 1], chain[0, 2] = 0, 0, 0
    while level >= 0:
        if level == d:
            for i in range(d):
                for c in range(d):
                    edges[i, c] = points[c, chain[i + 1, 1]] - points[c, chain[0, 1]]
            total += size_of_simplex(d, edges)
            level -= 1
        elif next_face(s, level, used, cells, drawing):
            level += 1
        else:
            level -= 1
    for i in range(d):
        total /= i + 1
    return total


@apart
def measure(s: int, layers: Layers, cells: Cells, planes: Planes, path: Path, drawing: Drawing, work: Work) -> None:
    """The same, and its volume."""
    number = drawing.regions
    note(s, layers, cells, planes, path, drawing, work)
    drawing.volumes[number] = volume(s, cells, drawing)
