"""Which units of a layer cross a cell of the layers before it, and which pairs of them meet there: what the cell's parts are bounded by; compiled.

**How many parts.**  Let a layer's units be affine functions on a cell, an open convex set whose image before the layer has d dimensions.  By the theorem of `tessella.estimating.tokens`, the parts that they make of it
correspond one to one to the *alive* sets of units, whatever the position of their hyperplanes.  An alive set has at most d members, and there is a point of the cell at which all its members are 0.  So every
two of its members are 0 together somewhere in the cell: the set is a clique of the graph of those units that cross the cell, joined where two of them meet in it.  There are at most as many parts as cliques
of at most d members, the empty one among them.  A unit that is a multiple of an earlier one of its layer adds no part.

**What is proved.**  A unit or a pair is left out only by a combination of rows that is negative on the whole box (`tessella.cells.emptiness`).  All that is not proved to be apart counts as meeting; points that
show a meeting only save a linear program.
"""

from tessella.cells.forms import copy, solve
from tessella.cells.rows import place_with_error, quick_sign, value
from tessella.cells.state import FEASIBLE, INFEASIBLE
from tessella.counting.depth_first import LOST
from tessella.counting.faces_by_programs import crosses
from tessella.counting.state import MOST_PAIRED, Crossings, Walk
from tessella.kernel.functions import apart, compiled
from tessella.numerics import TRUSTED_ROW

UNKNOWN = -1  # parts: as many as the dimension allows

_CLIQUES = 1 << 16  # counted in one cell


@compiled
def _keep(walk: Walk, u: int, k: int, status: int) -> None:
    """Note unit u, whose row is on top of the cell's stack, as number k of those that cross; if that is sure, with the point one state above that lies on its hyperplane."""
    crossings, cell, row = walk.crossings, walk.cell, walk.cell.rows[walk.path.rows]
    crossings.units[crossings.count, k] = u
    crossings.meets[crossings.count, k] = 0
    crossings.above[k] = crossings.under[k] = 0
    crossings.shown[k] = 1 if status == FEASIBLE else 0
    if status == FEASIBLE:
        for c in range(len(row)):
            crossings.planes[k, c] = row[c]
        for c in range(cell.points.shape[1]):
            crossings.spots[k, c] = cell.points[walk.path.state + 1, c]


@compiled
def _find_crossing(walk: Walk) -> int:
    """Find the units that cross the cell, and how many others pass something on in all of it, or may do so without making a part of their own: how many cross."""
    path, cell, units, crossings = walk.path, walk.cell, walk.units, walk.crossings
    at, crossing, carrying, leaky = crossings.count, 0, 0, 0
    for u in range(path.position, len(walk.layers.unit_of)):
        g = walk.layers.unit_of[u]
        lasts, status = crossings.lasting[u] == 1, INFEASIBLE
        quick = quick_sign(units.combined[g], units.errors[g], TRUSTED_ROW)
        active = quick == 1
        if quick < 0 and crossings.follows[u]:
            active = True
        elif quick == LOST:
            status = -1
        elif quick < 0:
            place_with_error(units.combined[g], units.errors[g], 1.0, cell.space, cell.rows[path.rows])
            active = value(cell.rows[path.rows], cell.points[path.state]) > 0.0
            status = crosses(walk, u, path.state + 1)
        if status == INFEASIBLE:
            carrying += 1 if active or lasts else 0
            continue
        if crossing < MOST_PAIRED:
            _keep(walk, u, crossing, status)
        crossing += 1
        leaky += 1 if lasts else 0
    crossings.sizes[at], crossings.carrying[at], crossings.leaky[at] = crossing, carrying, leaky
    return crossing


@compiled
def _see(crossings: Crossings, crossing: int, k: int, point_of: int) -> None:
    """Note on which sides of the other hyperplanes a point of hyperplane k lies."""
    above, under = 0, 0
    for other in range(crossing):
        if crossings.shown[other] and other != k:
            there = value(crossings.planes[other], crossings.spots[point_of])
            above |= 1 << other if there >= 0.0 else 0
            under |= 1 << other if there <= 0.0 else 0
    crossings.above[k] |= above
    crossings.under[k] |= under


@compiled
def _join(crossings: Crossings, k: int, other: int) -> None:
    """Note that two hyperplanes meet, or may do so."""
    meets = crossings.meets
    meets[crossings.count, k] |= 1 << other
    meets[crossings.count, other] |= 1 << k


@compiled
def _ask_pairs(walk: Walk, crossing: int, k: int) -> int:
    """Find out which hyperplanes after k meet it in the cell: how many are proved not to."""
    path, cell, crossings = walk.path, walk.cell, walk.crossings
    r, s, begun, parted, spare = path.rows, path.state, False, 0, len(crossings.spots) - 1
    for other in range(k + 1, crossing):
        seen = crossings.above[k] & crossings.under[k] & (1 << other) or crossings.above[other] & crossings.under[other] & (
            1 << k
        )
        if seen or not crossings.shown[k] or not crossings.shown[other]:
            _join(crossings, k, other)
            continue
        if not begun:
            for c in range(crossings.planes.shape[1]):
                cell.rows[r, c] = crossings.planes[k, c]
            copy(cell, s, s + 1)
            if solve(cell.solver, cell, s + 1, r + 1, r) != FEASIBLE:
                crossings.shown[k] = 0  # nothing more is asked
                _join(crossings, k, other)
                continue
            begun = True
        for c in range(crossings.planes.shape[1]):
            cell.rows[r + 1, c] = crossings.planes[other, c]
        copy(cell, s + 1, s + 2)
        status = solve(cell.solver, cell, s + 2, r + 2, r)
        if status == INFEASIBLE:
            parted += 1
            continue
        _join(crossings, k, other)
        if status == FEASIBLE:
            for c in range(cell.points.shape[1]):
                crossings.spots[spare, c] = cell.points[s + 2, c]
            _see(crossings, crossing, k, spare)
            _see(crossings, crossing, other, spare)
    return parted


@compiled
def _cliques(crossings: Crossings, crossing: int, most: int) -> int:
    """How many cliques of at most so many members there are, the empty one among them; UNKNOWN if that takes long."""
    meets, waiting, level, total = crossings.meets[crossings.count], crossings.waiting, 0, 1
    waiting[0] = (1 << crossing) - 1 if most > 0 else 0
    while level >= 0:
        left = waiting[level]
        if left == 0 or total > _CLIQUES:
            level -= 1
            continue
        one, k = left & -left, 0
        while not one >> k & 1:
            k += 1
        waiting[level] = left ^ one
        total += 1
        if level + 1 < most:
            level += 1
            waiting[level] = (left ^ one) & meets[k]
    return UNKNOWN if total > _CLIQUES else total


@apart
def list_cell(walk: Walk) -> int:
    """Write down what is known of the cell that the walk stands in, before its last layer; there is room.  It counts as one."""
    path, crossings = walk.path, walk.crossings
    at, dim = crossings.count, crossings.linear
    for u in range(path.position):
        crossings.signs[at, u] = path.signs[u]
        dim += 1 if path.signs[u] or crossings.lasting[u] else 0
    dim = min(dim, crossings.dim) if path.position else crossings.dim
    crossing, parted = _find_crossing(walk), 0
    crossings.parts[at] = UNKNOWN
    if crossing <= MOST_PAIRED and crossings.pairs:
        for k in range(crossing):
            if crossings.shown[k]:
                _see(crossings, crossing, k, k)
        for k in range(crossing):
            parted += _ask_pairs(walk, crossing, k)
        if parted:
            crossings.parts[at] = _cliques(crossings, crossing, dim)
    crossings.count += 1
    walk.cell.tally.tests += 1
    return 1
