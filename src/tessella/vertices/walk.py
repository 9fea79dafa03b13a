"""The walk over cells held by their corners, for one to six free inputs: depth first, the cell on top of the stack next.

A cell enters a layer, decides the units that do not cut it (`tessella.vertices.units`), and is cut by the first of the others
(`tessella.vertices.corners`) into two cells that wait.  In the last layer its parts are counted instead (`tessella.vertices.sections`).

What is not clear is *thin*: a unit with values too close to 0 to have a sign and too small to cut, a part whose walls are too inexact
(`tessella.vertices.errors`), and a cut whose corners and walls do not fit together, by Euler's formula or because an edge does not have two ends.

**The apex.**  Without biases all preactivations are 0 at the origin.  The corner where only walls meet that go through it is known to be
there exactly, and is not asked.  Inequalities of the domain that come close to it, but do not go through it, put an end to that.
"""

from tessella.kernel.functions import apart, compiled
from tessella.numerics import COARSE, THIN
from tessella.vertices.corners import cut, keep_side
from tessella.vertices.errors import bound_cell_again, bound_layer_again
from tessella.vertices.outlines import drawn_by
from tessella.vertices.sections import count_parts
from tessella.vertices.state import AT_ONCE, SHARP, Cells, Layers, Path, Planes, Tally, Walk
from tessella.vertices.units import add, decide, enter

DONE, SPENT, FULL, HIGHER, LOST = 0, 1, 2, 3, 4


@compiled
def settle(s: int, walk: Walk) -> int:
    """Let a cell enter its layer, and decide all units that do not cut it; how much work that was.

    Where bounds on errors are too coarse to decide, they are computed again, once.
    """
    layers, cells, path, work = walk.layers, walk.cells, walk.path, walk.work
    layer, spent, ask = cells.layer[s], 0, True
    if cells.enters[s] and cells.ratio[s] < THIN:
        if path.past[layer] * layers.rounding[layer] > COARSE * path.own[layer]:
            bound_layer_again(layer, layers, path, work)
        enter(s, layers, cells, path, work)
        spent += int(layers.units[layer]) // 4
        if layer + 1 < len(layers.units):
            spent += int(layers.units[layer] * layers.units[layer + 1]) // 16
    while ask:
        if cells.ratio[s] < THIN:
            walk.tally.tests += cells.undecided[s]
            spent += int(cells.undecided[s]) + 8
            ask = decide(s, layers, cells, walk.planes, path, work, walk.residues)
        ask = ask and not cells.sharp[s]
        if ask:
            bound_cell_again(s, layers, cells, walk.planes, path, work)
    return spent


@compiled
def next_unit(s: int, layers: Layers, cells: Cells, path: Path) -> int:
    """The number, among all decisions, of the first unit that waits; if none does, of the next layer's first."""
    layer = cells.layer[s]
    return int(layers.first[layer] + (path.places[layer, cells.waiting[s, 0]] if cells.undecided[s] else layers.relus[layer]))


@compiled
def report(length: int, layers: Layers, path: Path, tally: Tally) -> None:
    """Name the cell of the first decisions thin."""
    for layer in range(len(layers.units)):
        first = layers.first[layer]
        for i in range(min(layers.relus[layer], length - first)):
            tally.thin[tally.found, first + i] = path.pattern[layer, i]
    tally.lengths[tally.found] = length
    tally.found += 1


@compiled
def give_up(length: int, walk: Walk) -> int:
    """Name a cell thin, unless the walk is still on its way to the node that it was given: then that is lost."""
    if walk.guide.length >= 0:
        return LOST
    report(length, walk.layers, walk.path, walk.tally)
    return DONE


@compiled
def arrive(s: int, walk: Walk) -> int:
    """Begin counting at a cell where all decisions of the node that was given are made; LOST if they are not the same."""
    layers, cells, guide, status = walk.layers, walk.cells, walk.guide, DONE
    length = guide.length
    for layer in range(cells.layer[s] + 1):
        first = layers.first[layer]
        for i in range(min(layers.relus[layer], length - first)):
            if walk.path.pattern[layer, i] != guide.decisions[first + i]:
                status = LOST
    cells.length[s] = length
    cells.sign[s] = guide.decisions[length - 1] if length else 0
    cells.splits[s] = guide.splits
    guide.length = -1
    return status


@compiled
def parts_of(s: int, walk: Walk) -> int:
    """How many regions a cell of the last layer holds; -1 if it must be cut to find out."""
    cells = walk.cells
    count = cells.undecided[s]
    if count == 0:
        return 1
    drawing = len(walk.drawing.sizes) > 0
    more = cells.layer[s] + 1 < len(walk.layers.units)
    if more or walk.guide.length >= 0 or count > AT_ONCE or cells.tangled[s] or drawing:
        return -1
    return count_parts(s, cells, walk.path, walk.sections, walk.sides)


@compiled
def lay_plane(s: int, k: int, cells: Cells, planes: Planes, path: Path) -> None:
    """Make row k of the cell's layer the next plane."""
    layer, plane = cells.layer[s], cells.cuts[s] + 1
    rows = path.rows[layer]
    d = len(rows) - 1
    size = abs(rows[d, k])
    for c in range(d):
        planes.normals[plane, c] = rows[c, k]
        size += abs(rows[c, k])
    planes.constants[plane] = rows[d, k]
    planes.errors[plane] = path.row_errors[layer, k]
    planes.sizes[plane] = size
    planes.layer[plane], planes.unit[plane] = layer, path.places[layer, k]
    planes.sharp[plane] = 1 if path.bounded[layer, k] == SHARP else 0


@compiled
def make_part(s: int, t: int, sign: int, added: int, walk: Walk) -> None:
    """Let the part of cell s on one side of its first waiting unit wait as cell t; that unit is decided in it."""
    cells, layers, waiting = walk.cells, walk.layers, walk.cells.waiting
    layer, count, k = cells.layer[s], cells.undecided[s], waiting[s, 0]
    place = walk.path.places[layer, k]
    keep_side(s, t, 2.0 * sign - 1.0, added, walk.work.exact, cells, walk.planes, walk.sides)
    for q in range(count - 1):
        waiting[t, q] = waiting[s, q + 1]
    cells.undecided[t] = count - 1
    cells.length[t] = layers.first[layer] + place + 1
    cells.sign[t], cells.place[t] = sign, place
    factor = 1.0 if sign == 1 else layers.slopes[layer, place]
    if factor != 0.0 and layer + 1 < len(layers.units):
        add(s, t, k, factor, layers, cells, walk.path)
    cells.top = max(cells.top, t)


@compiled
def name_side_thin(s: int, sign: int, unit: int, walk: Walk) -> None:
    """Name the side of a unit thin where it takes no value that is clearly not 0, unless the walk goes to the other side."""
    if walk.guide.length < 0:
        layer = walk.cells.layer[s]
        walk.path.pattern[layer, unit - walk.layers.first[layer]] = sign
        report(unit + 1, walk.layers, walk.path, walk.tally)


@compiled
def split(s: int, walk: Walk) -> int:
    """Cut a cell by its first waiting unit; its parts, one or two, wait in its place, the active one on top."""
    cells, guide, work = walk.cells, walk.guide, walk.work
    unit, k = next_unit(s, walk.layers, cells, walk.path), cells.waiting[s, 0]
    plus, minus, added = work.high > work.exact, work.low < -work.exact, -1
    if guide.length >= 0:
        plus, minus = plus and guide.decisions[unit] == 1, minus and guide.decisions[unit] == 0
    if plus or minus:
        lay_plane(s, k, cells, walk.planes, walk.path)
        added = cut(s, work.exact, True, cells, walk.planes, walk.sides)
    cells.top = s - 1
    if added < 0:
        return give_up(unit, walk)
    t = s + 1 if plus and minus else s
    splits = cells.splits[s] + t - s
    cells.splits[s], cells.splits[t] = splits, splits
    if plus:
        make_part(s, t, 1, added, walk)
    else:
        name_side_thin(s, 1, unit, walk)
    if minus:
        make_part(s, s, 0, added, walk)
    else:
        name_side_thin(s, 0, unit, walk)
    return DONE


@compiled
def finish(s: int, parts: int, walk: Walk) -> None:
    """Count the regions of a cell that waits no longer."""
    if walk.drawing.writer:
        drawn_by(walk.drawing.writer, s, walk.layers, walk.cells, walk.planes, walk.path, walk.drawing, walk.work)
    walk.tally.regions += parts
    walk.cells.top = s - 1


@compiled
def go_on(spent: int, budget: int, walk: Walk) -> int:
    """Note the decision that leads to the cell on top; whether there is room to note what may be found next, and time."""
    cells, drawing, tally = walk.cells, walk.drawing, walk.tally
    s = cells.top
    walk.path.pattern[cells.layer[s], cells.place[s]] = cells.sign[s]
    if walk.guide.length >= 0:
        return DONE
    drawn = len(drawing.sizes)
    if drawn and (drawing.regions == drawn or drawing.placed + cells.points.shape[2] > len(drawing.borders)):
        return FULL
    if tally.found + 2 > len(tally.lengths):
        return FULL
    return SPENT if spent > budget else DONE


@apart
def walk_on(budget: int, walk: Walk) -> int:
    """Walk on from where the state says.  Changes all of it but the network.

    Parameters
    ----------
    budget
        How much work to do before coming back: about one per sign asked for.
    walk
        The state.

    Returns
    -------
    status
        DONE, SPENT, FULL (of thin prefixes or outlines), HIGHER (room for more cells is needed), or LOST: the guide leads to no cell that one can see.
    """
    layers, cells, guide = walk.layers, walk.cells, walk.guide
    spent, status, depth = 0, DONE, len(layers.units)
    while cells.top >= 0 and status == DONE:
        s = cells.top
        spent += settle(s, walk)
        if not cells.ratio[s] < THIN:
            cells.top = s - 1
            status = give_up(cells.length[s], walk)
        else:
            if 0 <= guide.length <= next_unit(s, layers, cells, walk.path):
                status = arrive(s, walk)
            if status == LOST:
                return LOST
            if cells.undecided[s] == 0 and cells.layer[s] + 1 < depth:
                cells.layer[s] += 1
                cells.enters[s] = 1
                continue
            parts = parts_of(s, walk)
            if parts > 0:
                finish(s, parts, walk)
                spent += 4 * parts
            elif s + 2 >= len(cells.points):
                status = HIGHER
            else:
                status = split(s, walk)
        if cells.top >= 0 and status == DONE:
            status = go_on(spent, budget, walk)
    return status
