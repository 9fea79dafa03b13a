"""Which sets of the last layer's hyperplanes meet in a cell, by points; compiled.

A set meets, in general position, if the values of the cell's points on its hyperplanes surround zero (`tessella.counting.hulls`).  If they do not, there is a combination of the hyperplanes that is negative at
all points: if it is negative in the whole cell, which a question tells, the set does not meet there, and if not, the answer is a further point.
"""

from tessella.cells.question import ask
from tessella.cells.rows import value
from tessella.cells.state import FEASIBLE, INFEASIBLE, UNCLEAR
from tessella.counting import hulls as stack
from tessella.counting.faces import AGAIN, APART, LATER, MEETS, NEVER, count_sets, part
from tessella.counting.hulls import SURROUNDED, extremes, surround
from tessella.counting.planes import OUTSIDE, note_plane, what_is_known
from tessella.counting.points import add, deepen, measure, pull, spread, throw
from tessella.counting.state import MOST_PLANES, Walk
from tessella.kernel.functions import apart, compiled
from tessella.kernel.record import Vector
from tessella.numerics import CLEAR, FAR, MARGIN

_ROUNDS = 300  # points added for one set of hyperplanes


@compiled
def _look_around(walk: Walk) -> None:
    """Find the middle of the cell's points, and pull the pool's there if it is deep enough."""
    points, path = walk.points, walk.path
    least = measure(points, path.state, path.rows)
    points.pulled = 0
    if least > FAR:
        pull(points, path.rows)


@compiled
def _turned(row: Vector, p: int) -> None:
    """Change the signs of a row's numbers."""
    for c in range(p + 1):
        row[c] = -row[c]


@compiled
def _crosses(walk: Walk, u: int, crossing: int) -> int:
    """Whether the row on top of the cell's stack has both signs in the cell: its values at points are put into row ``crossing``; if a question found a further point, that is added."""
    points, path, cell, planes = walk.points, walk.path, walk.cell, walk.sets.planes
    b, values, point, p = path.state, points.values, points.question.point, len(points.middle)
    row = cell.rows[path.rows]
    spread(points, b, row, values[crossing])
    low, high = extremes(values[crossing], points.pulled + points.held[b])
    if high >= CLEAR and low <= -CLEAR:
        return FEASIBLE
    positive = high > -low
    if positive:
        _turned(row, p)
    status = ask(points.question, path.rows, points.deep, 2 * u + (1 if positive else 0), path.position)
    if positive:
        _turned(row, p)
    if status == FEASIBLE:
        points.found += 1
        add(points, b, points.blocks.shape[1] - 1, point)
        last = points.pulled + points.held[b] - 1
        for f in range(crossing):
            values[f, last] = value(planes[f], point)
        values[crossing, last] = value(row, point)
    return status


@compiled
def _find_planes(walk: Walk) -> int:
    """Put the units' hyperplanes that cross the cell into the walk's sets: how many; or LATER, or NEVER."""
    crossing, looked = 0, False
    walk.points.found = walk.points.pulled = 0
    for u in range(walk.path.position, len(walk.layers.unit_of)):
        known = what_is_known(walk, u, crossing)
        if known == NEVER:
            return NEVER
        if known == OUTSIDE or crossing > MOST_PLANES:
            continue
        if not looked:
            _look_around(walk)
            looked = True
        crossing = note_plane(walk, u, _crosses(walk, u, crossing), crossing)
        if crossing == NEVER:
            return NEVER
    return LATER if crossing > MOST_PLANES else crossing


@apart
def begin_by_points(walk: Walk) -> int:
    """Begin the stack of hulls with the first element on the stack of sets."""
    points = walk.points
    stack.begin(points.hulls, walk.sets.element[0], points.values, points.number)
    return MEETS


@compiled
def _combination(walk: Walk, level: int, d: int) -> bool:
    """Put the combination of a level's hyperplanes that is negative at all points on top of the cell's stack; False if it is lost in rounding."""
    planes, hulls, cell = walk.sets.planes, walk.points.hulls, walk.cell
    row, p, error, size = cell.rows[walk.path.rows], len(walk.points.middle), 0.0, 0.0
    for c in range(p + 1):
        row[c] = 0.0
    for j in range(d):
        f, rate = hulls.planes[level, j], hulls.prices[level, j] * hulls.scales[level, j]
        error += abs(rate) * planes[f, p + 2]
        for c in range(p + 1):
            row[c] += rate * planes[f, c]
    for c in range(p + 1):
        size += abs(row[c])
    if error > 1e-3 * size:
        return False
    for c in range(p + 1):
        row[c] /= size
    row[p + 2] = error / size
    return True


@compiled
def _ask(walk: Walk, level: int, d: int) -> int:
    """Whether the combination on top of the cell's stack is positive somewhere in the cell."""
    sets, points, path, row = walk.sets, walk.points, walk.path, walk.cell.rows[walk.path.rows]
    p, slope, key = len(points.middle), 0.0, 0
    for c in range(p):
        slope += abs(row[c])
    if row[p] + slope < -MARGIN - row[p + 2]:
        return INFEASIBLE
    for j in range(d):
        key = key * 31 + sets.units[points.hulls.planes[level, j]]
    key = 2 * len(walk.layers.unit_of) + key % points.set_keys
    return ask(points.question, path.rows, points.deep, key, path.position)


@compiled
def _members(walk: Walk, level: int, d: int) -> int:
    """The hyperplanes in the combination of a level's, as bits."""
    hulls, found = walk.points.hulls, 0
    for j in range(d):
        if abs(hulls.prices[level, j] * hulls.scales[level, j]) > 0.0:
            found |= 1 << hulls.planes[level, j]
    return found


@apart
def meets_by_points(walk: Walk, level: int, f: int) -> int:
    """Whether hyperplane f meets the set at a level of the stack in the cell: MEETS, APART, LATER or NEVER.  Adds points, and notes what does not meet."""
    sets, points = walk.sets, walk.points
    values, point = points.values, points.question.point
    stack.extend(points.hulls, level, f, values, points.number)
    for _ in range(_ROUNDS + 1):
        d = surround(points.hulls, level + 1, values, points.number)
        if d == SURROUNDED:
            return MEETS
        if d < 0 or not _combination(walk, level + 1, d):
            return NEVER
        status = _ask(walk, level + 1, d)
        if status == UNCLEAR:
            return NEVER
        if status == INFEASIBLE:
            return APART if part(sets, _members(walk, level + 1, d)) else LATER
        if points.number == values.shape[1]:
            return NEVER
        throw(points, point)
        for g in range(sets.crossing):
            values[g, points.number] = value(sets.planes[g], point)
        points.number += 1
    return NEVER


@compiled
def _throw_found(walk: Walk) -> None:
    """Put the points that were found while planes were looked for into the pool: only now, as values belong to the pool as it was."""
    points, b = walk.points, walk.path.state
    held = points.held[b]
    for i in range(max(held - points.found, 0), held):
        throw(points, points.blocks[b, i])
    points.number = points.pulled + held


@apart
def count_by_points(walk: Walk) -> int:
    """How many cells the units from the walk's position on make of its cell; or LATER; or AGAIN, now that the cell has a deeper point."""
    path = walk.path
    walk.sets.crossing = found = _find_planes(walk)
    if found >= 0:
        _throw_found(walk)
        found = count_sets(walk)
    if found == NEVER:
        return (
            AGAIN if deepen(walk.points, path.state, path.rows, path.position) else LATER
        )  # after the next unit it may be tried again
    return found
