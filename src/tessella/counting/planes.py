"""Which hyperplanes of the last layer's units cross a cell, whoever says so; compiled."""

from tessella.cells.rows import place_with_error, quick_sign
from tessella.cells.state import INFEASIBLE, UNCLEAR
from tessella.counting.depth_first import LOST
from tessella.counting.faces import NEVER
from tessella.counting.state import MOST_PLANES, Walk
from tessella.kernel.functions import compiled
from tessella.numerics import TRUSTED_ROW

OUTSIDE, UNKNOWN = range(2)


@compiled
def what_is_known(walk: Walk, u: int, crossing: int) -> int:
    """What is known of unit u's hyperplane without a question: OUTSIDE if it does not cross the cell, NEVER if its row is lost in rounding, else UNKNOWN.

    Then its row is put on top of the cell's stack, if there is room for it beside those that were found to cross.
    """
    path, units = walk.path, walk.units
    if path.stable_at[u] <= path.position:
        return OUTSIDE
    g = walk.layers.unit_of[u]
    quick = quick_sign(units.combined[g], units.errors[g], TRUSTED_ROW)
    if quick == LOST:
        return NEVER
    if quick >= 0:
        path.stable_at[u] = path.position
        return OUTSIDE
    if crossing <= MOST_PLANES:
        place_with_error(units.combined[g], units.errors[g], 1.0, walk.cell.space, walk.cell.rows[path.rows])
    return UNKNOWN


@compiled
def note_plane(walk: Walk, u: int, status: int, crossing: int) -> int:
    """Put unit u's hyperplane, whose row is on top of the cell's stack, into the walk's sets if it crosses the cell: how many there are now; or NEVER if that is unclear."""
    sets, path, row = walk.sets, walk.path, walk.cell.rows[walk.path.rows]
    if status == UNCLEAR:
        return NEVER
    if status == INFEASIBLE:
        path.stable_at[u] = path.position
        return crossing
    for c in range(len(row)):
        sets.planes[crossing, c] = row[c]
    sets.units[crossing] = u
    return crossing + 1
