"""Descents that draw one promised part of each layer, and fail if it is not there: what `tessella.estimating.sampler` runs; compiled.

**Signs.**  A part is told by its signs: it is there, or not.

**Sets.**  Let f_1, ..., f_m be the preactivations of a layer's deciding units in a cell P, an open convex set, and F the set of their sign vectors on P (full-dimensional parts).  Which part a set S of
hyperplanes stands for is said from the last unit to the first.  Let F_i be the sign vectors of length i that are left; F_m = F.  If unit i is not in S, F_(i-1) is what F_i becomes without its last sign.
If it is in S, F_(i-1) are those vectors that have both last signs in F_i.  A set is *alive* if F_0 is not empty.  Going back, from F_0 to F_m, a vector t of F_(i-1) gets the sign p_i if i is not in S and
(t, p_i) is in F_i, and the other sign if not; where p_i is any sign that depends on the cell P alone.

*Theorem.*  Alive sets and parts correspond one to one, whatever the position of the hyperplanes; and an alive set has at most as many members as P's image before the layer has dimensions.
*Proof.*  |F_i| = |without the last sign| + |those with both|, and the rule above takes each vector of either kind to another element of F_i: by induction F_m is reached once from each alive set.
(In combinatorics the alive sets are the order-shattered ones.)  By convexity, t has both signs of unit i in F_i if and only if t is the sign vector of a point where f_i = 0: so F_i are
the sign vectors, up to i, of points of P on which all f_j, j in S and j > i, are 0, and f_1, ..., f_i are not.  As f_i takes both signs there, it is not constant on that flat: the members' gradients are
independent.  QED.

So it takes linear programs with equations: one says that the set meets the cell, and for each unit that is not in S at most one more says whether the side p_i is there.  Most descents end with the first.

**What is proved.**  A descent fails only where an inequality is proved that contradicts its part.  Where a cell's rows are lost in rounding, before anything is drawn there, exact arithmetic counts below it.  If it cannot be told which part a set stands for, or whether a part is there, the descent counts as
successful for an upper bound, and as failed for a lower one.  A set is alive for certain if all other units are not 0 at a point where its members are.  Where that is not so, and wherever linear programs cannot
decide, exact arithmetic does (`tessella.estimating.flats`), if the network is small enough for it.
"""

import numpy as np

from tessella.cells.forms import copy, solve
from tessella.cells.rows import compose, place_with_error, quick_sign, value
from tessella.cells.state import FEASIBLE, INFEASIBLE
from tessella.counting.depth_first import LOST
from tessella.counting.faces_by_programs import count_by_programs
from tessella.counting.state import Walk
from tessella.estimating.promises import SIGNS
from tessella.estimating.selection import uniform
from tessella.kernel.functions import apart, compiled
from tessella.kernel.record import Bytes, Cube, Keys, Matrix, Record, Vector, Whole, WholeMatrix
from tessella.numerics import PROOF, TRUSTED_ROW

GONE, THERE, UNSURE = range(3)  # a part is proved not to be there, or it is there, or that is not known
UNKNOWN, ASK = -1.0, -2.0  # what a descent may end with


class Sampling(Record):
    """What descents are made of.

    Decisions are numbered as in `Layers`; those of layer l begin with ``begins[l]``.  Decision u follows decision ``first_of[u]`` if that is not -1, with the sign ``factors[u]``.
    """

    walk: Walk
    begins: Whole
    first_of: Whole
    factors: Whole
    loses: Bytes  # per decision: whether nothing is passed on where it is inactive
    lasting: Whole  # per layer: dimensions that are passed on whatever is inactive
    modes: WholeMatrix  # by layer and dimension: what is drawn
    shares: Cube
    kept: Cube
    promised: Vector  # by dimension: the cells of the last layer
    drawn: Bytes  # per decision: the sign, or whether it is in the set
    known: Bytes  # per decision of the layer: its sign if its row alone tells it, else -1
    planes: Matrix  # per decision: its row
    seed: Keys
    domain: int  # rows of the domain
    start: int  # its dimension
    dim: int  # that of the cell
    layer: int  # what the descent has come to,
    entered: int  # the dimension there,
    at: int  # and the state of the cell before it
    spot: float  # between 0 and 1: a part is kept if its chance is more
    chance: float
    counts: bool  # whether the last layer is counted
    stops: bool  # whether it is of no interest which region was reached
    asked: float  # UNKNOWN or ASK, if a descent could not go on


@compiled
def _draw_signs(work: Sampling, layer: int, dim: int) -> None:
    """Draw the signs of a layer's deciding units."""
    shares, left, need, spot = work.shares[layer, dim], 0, 0, uniform(work.seed)
    for u in range(work.begins[layer], work.begins[layer + 1]):
        left += 1 if work.loses[u] else 0
    while need < left and spot >= shares[need]:
        need += 1
    for u in range(work.begins[layer], work.begins[layer + 1]):
        if work.first_of[u] < 0:
            chance = uniform(work.seed)
            if work.loses[u]:
                inactive = chance * left < need
                need -= 1 if inactive else 0
                left -= 1
                work.drawn[u] = 0 if inactive else 1
            else:
                work.drawn[u] = 1 if chance < 0.5 else 0


@compiled
def _draw_set(work: Sampling, layer: int, dim: int) -> None:
    """Draw a set of a layer's deciding units."""
    shares, left, need, spot = work.shares[layer, dim], 0, 0, uniform(work.seed)
    for u in range(work.begins[layer], work.begins[layer + 1]):
        left += 1 if work.first_of[u] < 0 else 0
    while need < min(left, dim) and spot >= shares[need]:
        need += 1
    for u in range(work.begins[layer], work.begins[layer + 1]):
        if work.first_of[u] < 0:
            taken = uniform(work.seed) * left < need
            need -= 1 if taken else 0
            left -= 1
            work.drawn[u] = 1 if taken else 0


@compiled
def _look(work: Sampling, layer: int) -> bool:
    """Find which of a layer's signs rows alone tell, and put the others' rows into ``planes``; False if a row is lost in rounding."""
    walk = work.walk
    units, space = walk.units, walk.cell.space
    for u in range(work.begins[layer], work.begins[layer + 1]):
        g = walk.layers.unit_of[u]
        quick = quick_sign(units.combined[g], units.errors[g], TRUSTED_ROW)
        if quick == LOST and work.first_of[u] < 0:
            return False
        work.known[u] = max(quick, -1)
        if quick < 0 and work.first_of[u] < 0:
            place_with_error(units.combined[g], units.errors[g], 1.0, space, work.planes[u])
    return True


@compiled
def _put(work: Sampling, u: int, side: float, at: int) -> None:
    """Put a unit's row, or its negative, at a place of the cell's stack."""
    row, plane, p = work.walk.cell.rows[at], work.planes[u], work.walk.cell.space.frame.shape[0]
    for c in range(p + 1):
        row[c] = side * plane[c]
    row[p + 1], row[p + 2] = plane[p + 1], plane[p + 2]


@compiled
def _decide(work: Sampling, u: int, sign: int) -> None:
    """Note a unit's sign."""
    walk = work.walk
    walk.path.signs[u] = sign
    walk.units.active[walk.layers.unit_of[u]] = sign
    walk.cell.row_of[u] = -1


@compiled
def _push(work: Sampling, u: int, sign: int) -> None:
    """Note a unit's sign, and put its row on the cell's stack."""
    path, cell = work.walk.path, work.walk.cell
    _decide(work, u, sign)
    _put(work, u, 1.0 if sign else -1.0, path.rows)
    cell.row_of[u], cell.codes[path.rows] = path.rows, 2 * u + sign
    path.rows += 1


@compiled
def _follow_firsts(work: Sampling, layer: int) -> int:
    """Give multiples of other units their signs; how many dimensions are passed on in this cell."""
    passed = work.lasting[layer]
    for u in range(work.begins[layer], work.begins[layer + 1]):
        first = work.first_of[u]
        if first >= 0:
            sign = work.walk.path.signs[first]
            _decide(work, u, work.known[u] if work.known[u] >= 0 else sign if work.factors[u] > 0 else 1 - sign)
        elif work.loses[u] and work.walk.path.signs[u]:
            passed += 1
    return passed


@compiled
def _enter(work: Sampling, base: int) -> int:
    """Find a point of the cell with the rows that have come on the stack since there were ``base``."""
    path, cell = work.walk.path, work.walk.cell
    if path.rows == base:
        return THERE
    copy(cell, path.state, path.state + 1)
    status = solve(cell.solver, cell, path.state + 1, path.rows, path.rows)
    path.state += 1
    return THERE if status == FEASIBLE else GONE if status == INFEASIBLE else UNSURE


@compiled
def _take_signs(work: Sampling, layer: int) -> int:
    """Go on to the part with the drawn signs: GONE, THERE or UNSURE."""
    base = work.walk.path.rows
    for u in range(work.begins[layer], work.begins[layer + 1]):
        if work.first_of[u] < 0:
            if work.known[u] < 0:
                _push(work, u, work.drawn[u])
            elif work.known[u] == work.drawn[u]:
                _decide(work, u, work.drawn[u])
            else:
                return GONE
    return _enter(work, base)


@compiled
def _cuts(work: Sampling, u: int) -> bool:
    """Whether a unit decides, and its row alone does not tell its sign."""
    return work.first_of[u] < 0 and work.known[u] < 0


@compiled
def _is_in(work: Sampling, u: int) -> bool:
    """Whether a unit is in the set."""
    return work.first_of[u] < 0 and work.drawn[u] == 1


@compiled
def _put_members(work: Sampling, begin: int, end: int, at: int) -> int:
    """Put the equations of the set's members, from a decision on, at a place of the cell's stack; the place behind them."""
    for u in range(begin, end):
        if _is_in(work, u):
            _put(work, u, 1.0, at)
            at += 1
    return at


@compiled
def _meet(work: Sampling, layer: int, here: int) -> int:
    """Whether the set's hyperplanes meet in the cell: GONE, THERE (with a point in state ``here``) or UNSURE."""
    walk = work.walk
    path, cell, begin, end = walk.path, walk.cell, work.begins[layer], work.begins[layer + 1]
    for u in range(begin, end):
        if _is_in(work, u) and work.known[u] >= 0:
            return GONE
    count = _put_members(work, begin, end, path.rows)
    copy(cell, path.state, here)
    status = FEASIBLE if count == path.rows else solve(cell.solver, cell, here, count, path.rows)
    if status != FEASIBLE:
        return GONE if status == INFEASIBLE else UNSURE
    for u in range(begin, end):
        if _cuts(work, u) and not _is_in(work, u) and abs(value(work.planes[u], cell.points[here])) < PROOF:
            return UNSURE
    return THERE


@compiled
def _side(work: Sampling, u: int, end: int, sign: int, other: int) -> int:
    """Whether a unit that is not in the set has a sign on the flat of the members after it: GONE, THERE (with a point in state ``other``) or UNSURE."""
    path, cell = work.walk.path, work.walk.cell
    _put(work, u, 1.0 if sign else -1.0, path.rows)
    count = _put_members(work, u + 1, end, path.rows + 1)
    copy(cell, path.state, other)
    status = solve(cell.solver, cell, other, count, path.rows + 1)
    return THERE if status == FEASIBLE else GONE if status == INFEASIBLE else UNSURE


@compiled
def _preferred(work: Sampling, u: int, state: int) -> int:
    """The sign that parts are told by: that of the unit at the cell's point."""
    return 1 if value(work.planes[u], work.walk.cell.points[state]) > 0.0 else 0


@apart
def prefer(work: Sampling, sides: Bytes) -> None:
    """Note the preferred signs of the units of the layer that a descent has come to."""
    for u in range(work.begins[work.layer], work.begins[work.layer + 1]):
        if _cuts(work, u):
            sides[u] = _preferred(work, u, work.at)


@compiled
def _find_part(work: Sampling, layer: int) -> int:
    """Find the part that a set stands for, whose members meet at the point two states above: put its rows on the stack.  THERE or UNSURE."""
    path, cell, end = work.walk.path, work.walk.cell, work.begins[layer + 1]
    here, other = path.state + 2, path.state + 3
    for u in range(work.begins[layer], end):
        if work.first_of[u] >= 0:
            continue
        if work.known[u] >= 0:
            _decide(work, u, work.known[u])
            continue
        preferred = _preferred(work, u, path.state)
        sign = 1 - preferred
        if not _is_in(work, u):
            if (1.0 if preferred else -1.0) * value(work.planes[u], cell.points[here]) >= PROOF:
                sign = preferred
            else:
                found = _side(work, u, end, preferred, other)
                if found == UNSURE:
                    return UNSURE
                if found == THERE:
                    sign, here, other = preferred, other, here
        _push(work, u, sign)
    return THERE


@compiled
def _take_set(work: Sampling, layer: int) -> int:
    """Go on to the part that the drawn set stands for, if it is kept: GONE, THERE or UNSURE."""
    base, dim = work.walk.path.rows, work.dim
    found = _meet(work, layer, work.walk.path.state + 2)
    if found != THERE:
        return found
    if _find_part(work, layer) == UNSURE:
        return UNSURE
    work.dim = min(dim, _follow_firsts(work, layer))
    work.chance = work.kept[layer, dim, work.dim]
    if work.spot >= work.chance:
        return GONE
    return THERE if _enter(work, base) == THERE else UNSURE


@apart
def draw(work: Sampling, layer: int) -> None:
    """Draw what a descent does in a layer."""
    if work.modes[layer, work.dim] == SIGNS:
        _draw_signs(work, layer, work.dim)
    else:
        _draw_set(work, layer, work.dim)
    work.spot = uniform(work.seed)


@apart
def enter_layer(work: Sampling, layer: int) -> bool:
    """Work out what a layer's units are in the cell; False if one of them is lost in rounding."""
    walk = work.walk
    if layer > 0:
        compose(layer, walk.layers, walk.units.active, walk.units.combined, walk.units.errors, walk.cell.work.sizes)
    walk.path.position = work.begins[layer]
    return _look(work, layer)


@apart
def follow(work: Sampling, layer: int, goes_on: bool) -> int:
    """Go on to the part of the cell that was drawn: GONE, THERE or UNSURE.  If the descent does not go on from there, a set's part need not be found."""
    walk = work.walk
    work.chance, work.layer, work.entered, work.at = 1.0, layer, work.dim, walk.path.state
    if work.modes[layer, work.dim] != SIGNS:
        return _take_set(work, layer) if goes_on else _meet(work, layer, walk.path.state + 2)
    found = _take_signs(work, layer)
    if found == THERE:
        work.dim = min(work.dim, _follow_firsts(work, layer))
    return found


@compiled
def _count_last(work: Sampling, layer: int) -> int:
    """How many cells the last layer makes; negative if that is not known."""
    path, units = work.walk.path, len(work.walk.layers.unit_of)
    path.position = work.begins[layer]
    for u in range(path.position, units):
        path.stable_at[u] = units + 1 if work.first_of[u] < 0 else -1
    return count_by_programs(work.walk)


@apart
def begin(work: Sampling) -> None:
    """Stand at the root."""
    walk = work.walk
    copy(walk.cell, len(walk.cell.points) - 1, 0)
    walk.path.state, walk.path.rows, walk.path.position = 0, work.domain, 0
    work.dim = work.start


@apart
def descend(work: Sampling) -> float:
    """One descent: what part of what was promised at its end is there, and 0 if it failed; UNKNOWN; or ASK how many regions lie below the path's position.

    If it is asked which region was reached, the path's signs are those of the region that was reached.
    """
    last = len(work.begins) - 2
    begin(work)
    for layer in range(last + 1):
        if not enter_layer(work, layer):
            return ASK
        if layer == last and work.counts:
            count = _count_last(work, layer)
            if count > 0:
                return count / work.promised[work.dim]
        draw(work, layer)
        found = follow(work, layer, layer < last or not work.stops)
        if found != THERE:
            return 0.0 if found == GONE else UNKNOWN
    return 1.0


@apart
def go(work: Sampling, first: int, base: Keys, low: Vector, high: Vector) -> int:
    """Make descents number ``first`` and following, each from a seed of its own: at least, and at most, what each of them reached.  How many are done, fewer if the next one asks or is unsure."""
    for number in range(len(low)):
        work.seed[0] = base[0] ^ (np.uint64(first + number) * np.uint64(0xD1342543DE82EF95))
        uniform(work.seed)
        reached = descend(work)
        if reached < 0.0:
            work.asked = reached
            return number
        low[number] = high[number] = reached
    return len(low)
