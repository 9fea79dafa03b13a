"""Which sets of the last layer's hyperplanes meet in a cell, by linear programs with equations; compiled.

Most sets are settled without one: by a large set that was found to meet first, by small ones that do not, and by points of intersections that lie on both sides of a further hyperplane, or in all quarters that
two make.
"""

from tessella.cells.emptiness import proved, remember
from tessella.cells.forms import copy, solve
from tessella.cells.rows import value
from tessella.cells.state import FEASIBLE, INFEASIBLE, UNCLEAR
from tessella.cells.touching import has_no_interior
from tessella.counting.faces import APART, LATER, MEETS, NEVER, count_sets, is_met, is_parted, part
from tessella.counting.planes import OUTSIDE, note_plane, what_is_known
from tessella.counting.state import MOST_PLANES, Sightings, Walk
from tessella.kernel.functions import apart, compiled
from tessella.numerics import MARGIN


@compiled
def crosses(walk: Walk, u: int, state: int) -> int:
    """Whether the hyperplane of unit u, whose row is on top of the cell's stack, meets the cell: FEASIBLE, with a point in a state, INFEASIBLE or UNCLEAR."""
    path, cell = walk.path, walk.cell
    r, work = path.rows, cell.work
    row = cell.rows[r]
    positive = value(row, cell.points[path.state]) > 0.0
    key, scale = 2 * u + (1 if positive else 0), -1.0 if positive else 1.0
    if proved(walk.proofs, key, row, scale, path.position, cell.rows, cell.row_of, path.signs, cell.space, work):
        return INFEASIBLE
    copy(cell, path.state, state)
    cell.codes[r], cell.proof.size = 2 * u, 0
    status = solve(cell.solver, cell, state, r + 1, r)
    if status == INFEASIBLE:
        remember(walk.proofs, key, cell.proof, r, cell.codes)
    elif status == UNCLEAR and has_no_interior(walk.touching, cell, path.signs, r):
        status = INFEASIBLE
    return status


@compiled
def _find_planes(walk: Walk) -> int:
    """Put the units' hyperplanes that meet the cell into the walk's sets, each with its point in a state of its own: how many; or LATER, or NEVER."""
    path, crossing = walk.path, 0
    for u in range(path.position, len(walk.layers.unit_of)):
        known = what_is_known(walk, u, crossing)
        if known == NEVER:
            return NEVER
        if known == OUTSIDE or crossing > MOST_PLANES:
            continue
        crossing = note_plane(walk, u, crosses(walk, u, path.state + 1 + crossing), crossing)
        if crossing == NEVER:
            return NEVER
    return LATER if crossing > MOST_PLANES else crossing


@compiled
def _note(walk: Walk, members: int, state: int) -> None:
    """Note the point of a state, which lies on all members: on which sides of the other hyperplanes it is."""
    sightings, sets, point = walk.sightings, walk.sets, walk.cell.points[state]
    at, above, below = sightings.count, 0, 0
    if at == len(sightings.on):
        return
    for f in range(sets.crossing):
        total = value(sets.planes[f], point)
        if not members >> f & 1:
            if total > 10.0 * MARGIN:
                above |= 1 << f
            elif total < -10.0 * MARGIN:
                below |= 1 << f
    sightings.on[at], sightings.above[at], sightings.below[at] = members, above, below
    sightings.count = at + 1


@compiled
def _cut(sightings: Sightings, members: int) -> int:
    """Which hyperplanes have points of the intersection of ``members`` on both sides, and so meet it in between."""
    on, above, below, over, under = sightings.on, sightings.above, sightings.below, 0, 0
    for i in range(sightings.count):
        if members & ~on[i] == 0:
            over |= above[i]
            under |= below[i]
    return over & under


@compiled
def _quarters(sightings: Sightings, members: int) -> int:
    """Which hyperplanes meet the intersection of ``members``, because points show that they meet the one without some member, on both sides of it."""
    on, above, below, found, others = sightings.on, sightings.above, sightings.below, 0, members
    count = sightings.count
    while others:
        one = others & -others
        others ^= one
        rest, q0, q1, q2, q3 = (
            members ^ one,
            0,
            0,
            0,
            0,
        )  # per quarter, which hyperplanes have a point there; one on them is in two
        for i in range(count):
            fits = -1 if rest & ~on[i] == 0 else 0
            over, under = (on[i] | above[i]) & fits, (on[i] | below[i]) & fits
            up, down = -1 if over & one else 0, -1 if under & one else 0
            q0 |= over & up
            q1 |= under & up
            q2 |= over & down
            q3 |= under & down
        found |= q0 & q1 & q2 & q3
    return found


@compiled
def _push(walk: Walk, here: int, depth: int, f: int) -> int:
    """Try one more equation, hyperplane f, on top of ``depth`` others and of state ``here``; the result is state base + depth."""
    cell, planes, r, state = walk.cell, walk.sets.planes, walk.path.rows, walk.sightings.base + depth
    for c in range(planes.shape[1]):
        cell.rows[r + depth, c] = planes[f, c]
    copy(cell, here, state)
    cell.codes[r + depth], cell.proof.size = 2 * walk.sets.units[f], 0
    status = solve(cell.solver, cell, state, r + depth + 1, r)
    if status == UNCLEAR and has_no_interior(walk.touching, cell, walk.path.signs, r):
        status = INFEASIBLE
    return status


@compiled
def _state_of(walk: Walk, level: int) -> int:
    """The state of the set at a level."""
    return walk.sightings.base + level if level else walk.sightings.first + walk.sets.element[0]


@apart
def dive(walk: Walk) -> int:
    """Find a large set that meets, from the first element on the stack: its candidates join one after the other, if they can.  Notes the set, its points, and what does not meet.  LATER or NEVER if it cannot be."""
    sets, sightings = walk.sets, walk.sightings
    dived, depth, reached, candidates = sightings.dived, 0, sets.members[0], sets.candidates[0]
    dived[0], sightings.solved[0], sightings.seen[0] = sets.element[0], 1, -1
    for c in range(sets.planes.shape[1]):
        walk.cell.rows[walk.path.rows, c] = sets.planes[sets.element[0], c]
    walk.cell.codes[walk.path.rows] = 2 * sets.units[sets.element[0]]
    here = _state_of(walk, 0)
    for f in range(sets.crossing):
        tried = reached | 1 << f
        if not candidates >> f & 1 or is_parted(sets, tried):
            continue
        dived[depth + 1] = f
        status = _push(walk, here, depth + 1, f)
        if status == UNCLEAR:
            return NEVER
        if status == FEASIBLE:
            reached, depth, here = tried, depth + 1, sightings.base + depth + 1
            _note(walk, reached, here)
            continue
        found = 1 << f
        for b in range(depth + 1):
            if walk.cell.proof.equations >> b & 1:
                found |= 1 << dived[b]
        if not part(sets, found):
            return LATER
    if sets.met == len(sets.meeting):
        return LATER
    sets.meeting[sets.met] = reached
    sets.met += 1
    return MEETS


@compiled
def _solve_level(walk: Walk, level: int) -> bool:
    """Solve the program of the set at a level, which was not needed so far; False if it has no solution after all."""
    sets, sightings, rows, r = walk.sets, walk.sightings, walk.cell.rows, walk.path.rows
    b = level - 1
    while not sightings.solved[b]:
        b -= 1
    for i in range(b + 1, level):
        for c in range(rows.shape[1]):
            rows[r + i, c] = sets.planes[sets.element[i], c]
        walk.cell.codes[r + i] = 2 * sets.units[sets.element[i]]
    if _push(walk, _state_of(walk, b), level, sets.element[level]) != FEASIBLE:
        return False
    sightings.solved[level] = 1
    _note(walk, sets.members[level], sightings.base + level)
    return True


@apart
def meets_by_programs(walk: Walk, level: int, f: int) -> int:
    """Whether hyperplane f meets the set at a level of the stack in the cell: MEETS, APART, LATER or NEVER.  Notes points, and what does not meet."""
    sets, sightings = walk.sets, walk.sightings
    members = sets.members[level]
    sightings.solved[level + 1], sightings.seen[level + 1] = 0, -1
    if is_met(sets, members | 1 << f):
        return MEETS
    if sightings.seen[level] < 0:
        sightings.seen[level] = _quarters(sightings, members)
    if (sightings.seen[level] | _cut(sightings, members)) >> f & 1:
        return MEETS
    if not sightings.solved[level] and not _solve_level(walk, level):
        return NEVER
    status = _push(walk, _state_of(walk, level), level + 1, f)
    if status == UNCLEAR:
        return NEVER
    if status == FEASIBLE:
        sightings.solved[level + 1] = 1
        _note(walk, members | 1 << f, sightings.base + level + 1)
        return MEETS
    found = 1 << f
    for b in range(level + 1):
        if walk.cell.proof.equations >> b & 1:
            found |= 1 << sets.element[b]
    return APART if part(sets, found) else LATER


@apart
def count_by_programs(walk: Walk) -> int:
    """How many cells the units from the walk's position on make of its cell; or LATER, or NEVER."""
    sets, sightings, state = walk.sets, walk.sightings, walk.path.state
    sets.crossing = crossing = _find_planes(walk)
    if crossing < 0:
        return crossing
    sightings.count, sightings.first, sightings.base = 0, state + 1, state + 1 + crossing
    for f in range(crossing):
        _note(walk, 1 << f, state + 1 + f)
    _note(walk, 0, state)
    return count_sets(walk)
