"""The depth-first walk through the tree of a network's decisions, whoever decides; compiled.

Unit after unit, the walk finds out which of its two sides exist in the cell that it is in, goes on to one of them, and comes back for the other.  In the last layer it tries to count all cells at once
(`tessella.counting.faces`).  What cannot be decided is left as a prefix for somebody else.
"""

from tessella.cells.forms import copy
from tessella.cells.rows import compose, place_with_error, quick_sign
from tessella.cells.state import FEASIBLE, INFEASIBLE, UNCLEAR
from tessella.cells.touching import is_nothing
from tessella.counting.faces import AGAIN, NEVER
from tessella.counting.state import DEEP, Left, Settled, Walk
from tessella.kernel.functions import apart, by_address, compiled
from tessella.kernel.record import Bytes
from tessella.numerics import TRUSTED_ROW

DONE, MORE, FOUND = range(3)
ROOT = -1  # the path's state before the first step
LOST = -2  # what `quick_sign` says of a row that is lost in rounding


@by_address
def decide(walk: Walk, fixed: int) -> None:
    """Find out which sides of the unit at the walk's position exist, and put that into its choice.

    Before position ``fixed`` only the side that the path's signs name is asked for; of the other one nothing needs to be known, which is to say FEASIBLE.
    """


@by_address
def hand_down(walk: Walk) -> None:
    """A row has come on the cell's stack, its last one: give the state of the cell below what that of this cell has, and let the path's state be that one."""


@by_address
def count_faces(walk: Walk) -> int:  # pyright: ignore[reportReturnType]
    """How many cells the units from the walk's position on make of its cell, all being of the last layer; or LATER, NEVER or AGAIN."""


@compiled
def leave(left: Left, kind: int, length: int, splits: int, signs: Bytes) -> None:
    """Note a prefix that is not counted here."""
    at = left.count
    left.kinds[at], left.lengths[at], left.splits[at] = kind, length, splits
    for u in range(length):
        left.signs[at, u] = signs[u]
    left.count = at + 1


@compiled
def start(walk: Walk) -> None:
    """Begin at the root: its state is the last one, of which the first becomes a copy."""
    if walk.path.state == ROOT:
        copy(walk.cell, len(walk.cell.points) - 1, 0)
        walk.path.state = 0


@compiled
def forget(settled: Settled, key: int) -> None:
    """Forget all proofs from a key on."""
    for other in range(key, len(settled.found)):
        settled.found[other] = 0


@compiled
def enter_layer(walk: Walk, u: int) -> None:
    """If unit u is the first of its layer, work out what the layer's units are in this cell."""
    layers, units = walk.layers, walk.units
    before, layer = layers.layer_of[u - 1] if u else 0, layers.layer_of[u]
    if u == 0 or before != layer:
        for number in range(before + 1, layer + 1):
            compose(number, layers, units.active, units.combined, units.errors, walk.cell.work.sizes)
        if layer > 0:
            forget(walk.settled, 2 * u)


@compiled
def _take(walk: Walk, side: int, is_cut: bool) -> None:
    """Go on to one side of the unit at the walk's position; its row comes on the cell's stack if it cuts the cell."""
    path, cell, units, u = walk.path, walk.cell, walk.units, walk.path.position
    g = walk.layers.unit_of[u]
    path.signs[u] = units.active[g] = side
    cell.row_of[u] = -1
    if is_cut:
        r = path.rows
        place_with_error(units.combined[g], units.errors[g], 1.0 if side else -1.0, cell.space, cell.rows[r])
        cell.row_of[u], cell.codes[r] = r, 2 * u + side
        if walk.hand_down:
            hand_down(walk.hand_down, walk)
        path.rows = r + 1
    path.position = u + 1


@compiled
def _turn(walk: Walk, fixed: int) -> bool:
    """Go back to the last unit whose other side waits, and on to that side; False if none waits."""
    path, layer_of = walk.path, walk.layers.layer_of
    units, u = len(layer_of), path.position - 1
    while u >= fixed and path.waits[u] == 0:
        u -= 1
    path.position = u
    if u < fixed:
        return False
    if path.plain_from > u:
        path.plain_from = units + 1
    for other in range(units - 1, u, -1):
        if layer_of[other] != layer_of[units - 1]:
            break
        if path.stable_at[other] > u:
            path.stable_at[other] = units + 1
    path.waits[u] = 0
    path.state, path.rows, path.splits = path.waiting_state[u], path.waiting_rows[u], path.waiting_splits[u] + 1
    _take(walk, 1 - path.signs[u], True)
    path.goes_down = True
    return True


@compiled
def _choose(walk: Walk, fixed: int) -> bool:
    """Go on to a side that exists, and let the other one wait if it does, too; leave what is unclear.  False if the node that the walk begins with cannot be entered."""
    path, exists, states, u = walk.path, walk.choice.exists, walk.choice.states, walk.path.position
    if u < fixed:
        side = path.signs[u]
        if exists[side] != FEASIBLE:
            leave(walk.left, walk.unclear, fixed, path.splits, path.signs)
            return False
        if states[side] != path.state:  # nobody comes back to the state above
            copy(walk.cell, states[side], path.state)
            states[side] = path.state
    else:
        for one in range(2):
            if exists[one] == UNCLEAR:
                path.signs[u] = one
                leave(walk.left, walk.unclear, u + 1, path.splits + 1, path.signs)
        if exists[0] != FEASIBLE and exists[1] != FEASIBLE:
            path.goes_down = False
            return True
        # the side with the later state first: what is above a waiting state may be overwritten
        side = 1 if exists[1] == FEASIBLE and (exists[0] != FEASIBLE or states[1] >= states[0]) else 0
        if exists[0] == FEASIBLE and exists[1] == FEASIBLE:
            path.waits[u], path.waiting_state[u] = 1, states[1 - side]
            path.waiting_rows[u], path.waiting_splits[u] = path.rows, path.splits
            path.splits += 1
    path.state = states[side]
    _take(walk, side, exists[1 - side] != INFEASIBLE)
    return True


@compiled
def _visit(walk: Walk, fixed: int) -> bool:
    """Decide the unit at the walk's position, or count all that is below; False if the node that the walk begins with cannot be entered."""
    path, layers, units, choice, u = walk.path, walk.layers, walk.units, walk.choice, walk.path.position
    if u > fixed and path.state > walk.deepest:
        leave(walk.left, DEEP, u, path.splits, path.signs)
        path.goes_down = False
        return True
    enter_layer(walk, u)
    if u >= fixed and path.plain_from > u and layers.layer_of[u] == layers.layer_of[len(layers.layer_of) - 1]:
        found = count_faces(walk.count_faces, walk)
        if found > 0:
            path.regions += found
            path.goes_down = False
        if found > 0 or found == AGAIN:
            return True
        if found == NEVER:
            path.plain_from = u
    path.waits[u] = 0
    g = layers.unit_of[u]
    quick = quick_sign(units.combined[g], units.errors[g], TRUSTED_ROW)
    if quick == LOST and is_nothing(walk.touching, path.signs, u):
        quick = 0
    if quick == LOST:
        leave(walk.left, walk.unclear, max(u, fixed), path.splits, path.signs)
        path.goes_down = u < fixed
        return u >= fixed
    for side in range(2):
        choice.exists[side] = FEASIBLE if quick < 0 or quick == side else INFEASIBLE
        choice.states[side] = path.state
    if quick < 0:
        decide(walk.decide, walk, fixed)
    return _choose(walk, fixed)


@apart
def go_on(walk: Walk, fixed: int, limit: int) -> int:
    """Go on with a walk below the first ``fixed`` of its signs: DONE, or MORE when ``limit`` questions have been asked or prefixes must be taken out of what is left."""
    path, left, tally, units = walk.path, walk.left, walk.cell.tally, len(walk.layers.unit_of)
    start(walk)
    while tally.tests < limit and left.count + 2 < len(left.kinds):
        if not path.goes_down:
            if not _turn(walk, fixed):
                return DONE
        elif path.position == units:
            path.regions += 1
            path.goes_down = False
        elif not _visit(walk, fixed):
            return DONE
    return MORE
