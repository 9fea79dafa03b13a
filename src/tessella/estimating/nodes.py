"""The nodes that a round keeps: cells, each with the layer it has come to and what is known of that layer's units.

A node is a cell, a layer, and the units of the layer that are still *left*: not known to have one sign on the cell.  It is split on the first of these: `make_child` is one side.
A child takes over its parent's points on its side, and some between points on either side.
"""

import numpy as np

from tessella.cells.cuts import Outside
from tessella.cells.emptiness import proved, remember
from tessella.cells.primal import raise_row
from tessella.cells.rows import place_with_error, size_of, value
from tessella.cells.state import FEASIBLE, INFEASIBLE, UNCLEAR, Layers, Proofs
from tessella.cells.vertex import POINTS, Primal, copy_vertex, is_sound, keep, move_to_best, room_for
from tessella.kernel.functions import apart, compiled, inlined
from tessella.kernel.record import ByteMatrix, Bytes, Cube, Matrix, Record, Vector, Whole, WholeMatrix, zeros
from tessella.numerics import GOAL, MARGIN, SHOWN

# states of a unit in a cell: 0 or 1, its sign, where it is settled
BOTH = 2  # it has two signs
OPEN = 3  # not known
UNSURE = 4  # rounding hides it
WIDE = 64  # units; points are not pushed through layers that have more, if nothing else is said
_FIRM = 8.0 * MARGIN  # of a row's size: how far on a side points must lie that others are made from


class Nodes(Record):
    """Where each node stands; nodes are numbered, and their numbers come first in all arrays.

    Of node t: its cell has ``depth[t]`` rows (`Primal.rows`).  Row ``row_of[t, g]`` is that of unit g, and -1 says that there is none.  ``codes[t, row]`` is 2 g + sign, or -1 - row for the domain's.
    ``status[t, g]`` is a unit's state.  ``combined[t, g]`` is its preactivation in z, for the units of layers up to ``layer[t]``; ``errors`` bound its rounding errors.
    """

    layer: Whole  # -1 before the first
    depth: Whole
    left: Whole  # units of the layer that are not settled; of a leaf that was drawn, -1 - the length of its prefix
    note: Whole  # where it is noted, -1 if it is not
    status: ByteMatrix
    row_of: WholeMatrix
    codes: WholeMatrix
    combined: Cube
    errors: Matrix

    @classmethod
    def of(cls, nodes: int, units: int, rows: int, dimensions: int) -> "Nodes":
        """With room for so many."""
        return cls(
            layer=zeros(nodes, kind=np.int64),
            depth=zeros(nodes, kind=np.int64),
            left=zeros(nodes, kind=np.int64),
            note=zeros(nodes, kind=np.int64),
            status=zeros(nodes, units, kind=np.int8),
            row_of=zeros(nodes, units, kind=np.int64),
            codes=zeros(nodes, rows, kind=np.int64),
            combined=zeros(nodes, units, dimensions + 1),
            errors=zeros(nodes, units),
        )


class Descent(Record):
    """All that nodes are settled and split with.

    Proofs and refutations that worked in one cell are tried in others: their key is 2 g + 1 for a proof that unit g is positive, 2 g for one that it is negative.
    """

    layers: Layers
    ahead: Bytes  # per layer: whether all units are asked as soon as a cell is there
    nodes: Nodes
    primal: Primal
    proofs: Proofs
    refutes: bool  # whether signs are refuted in the few dimensions of the first layer
    outside: Outside
    recalled: WholeMatrix  # per key: what was tight in the last refutation (rows as codes); the last one is for the next question
    values: Matrix  # of units at a node's points: room for two layers, as wide as points are pushed through
    own_names: Whole  # of the child's points, while its parent's are in their place
    reused: int  # proofs that held in another cell
    crossed: int  # points made between others


@compiled
def evaluate(unit_row: Vector, points: Matrix, values: Vector) -> None:
    """A unit's preactivations at all points of a node, into ``values``; places without a point hold anything."""
    p = len(unit_row) - 1
    for i in range(POINTS):
        values[i] = unit_row[p]
    for c in range(p):
        factor = unit_row[c]
        for i in range(POINTS):
            values[i] += factor * points[c, i]


@apart
def is_proved(descent: Descent, node: int, unit: int, positive: bool) -> bool:
    """Whether an earlier proof that a unit is positive (or negative), from another cell, also holds in this one."""
    nodes, primal = descent.nodes, descent.primal
    key = 2 * unit + (1 if positive else 0)
    if descent.proofs.sizes[key] < 0:
        return False
    row, row_of = nodes.combined[node, unit], nodes.row_of[node]
    scale = (-1.0 if positive else 1.0) / size_of(row)
    return proved(
        descent.proofs, key, row, scale, len(row_of), primal.rows[node], row_of, nodes.status[node], primal.space, primal.work
    )


@inlined
def _copy(descent: Descent, node: int, child: int) -> None:
    """Make a node a copy of another one, but for its points."""
    nodes, layers, rows = descent.nodes, descent.layers, descent.primal.rows
    layer, depth = nodes.layer[node], nodes.depth[node]
    nodes.layer[child], nodes.depth[child], nodes.left[child] = layer, depth, nodes.left[node]
    for g in range(nodes.status.shape[1]):
        nodes.status[child, g] = nodes.status[node, g]
        nodes.row_of[child, g] = nodes.row_of[node, g]
    for row in range(depth):
        nodes.codes[child, row] = nodes.codes[node, row]
        for c in range(rows.shape[2]):
            rows[child, row, c] = rows[node, row, c]
    for g in range(layers.first[layer], layers.first[layer] + layers.width[layer]):
        nodes.errors[child, g] = nodes.errors[node, g]
        for c in range(nodes.combined.shape[2]):
            nodes.combined[child, g, c] = nodes.combined[node, g, c]
    copy_vertex(descent.primal, node, child)


@inlined
def _take_points(descent: Descent, node: int, child: int, sign: float, least: float, values: Vector) -> int:
    """Give a child its parent's points where ``sign * values`` is large enough; how many these are."""
    points, kept = descent.primal.points, 0
    for i in range(points.known[node]):
        if sign * values[i] >= least:
            for c in range(points.places.shape[1]):
                points.places[child, c, kept] = points.places[node, c, i]
            points.names[child, kept] = points.names[node, i]
            kept += 1
    return kept


@inlined
def _start_best(descent: Descent, node: int, child: int, reached: float, sign: float, values: Vector) -> bool:
    """Move a child's vertex to the best of its parent's, if that is better than where it is; False if that fails."""
    points, primal, own = descent.primal.points, descent.primal, descent.own_names
    known, kept = points.known[node], points.known[child]
    points.known[child] = known
    for i in range(known):
        own[i], points.names[child, i] = points.names[child, i], points.names[node, i]
    if not move_to_best(primal, child, descent.nodes.depth[node], reached, sign, values):
        return False
    for i in range(known):
        points.names[child, i] = own[i]
    points.known[child] = kept
    return True


@apart
def make_child(descent: Descent, node: int, child: int, unit: int, side: int, values: Vector) -> int:
    """Make the child of a node on one side of a unit, which has these values at the node's points: FEASIBLE, INFEASIBLE (there is none), or UNCLEAR."""
    nodes, primal = descent.nodes, descent.primal
    points, depth, row = primal.points, nodes.depth[node], nodes.combined[node, unit]
    sign, shown = 1.0 if side else -1.0, SHOWN * size_of(row)
    kept = _take_points(descent, node, child, sign, shown, values)
    if kept == 0 and is_proved(descent, node, unit, side == 0):
        descent.reused += 1
        return INFEASIBLE
    _copy(descent, node, child)
    place_with_error(row, nodes.errors[node, unit], sign, primal.space, primal.rows[child, depth])
    nodes.codes[child, depth], nodes.row_of[child, unit], nodes.status[child, unit] = 2 * unit + side, depth, side
    nodes.depth[child] = depth + 1
    nodes.left[child] -= 1
    points.known[child], points.replaced[child] = kept, 0
    reached = value(row, primal.vertices.places[node])
    if sign * reached < 2.0 * shown or not is_sound(primal, node, depth):
        found = UNCLEAR
        if _start_best(descent, node, child, sign * reached, sign, values):
            found = raise_row(primal, child, depth, GOAL, False)
        if found == INFEASIBLE:
            remember(descent.proofs, 2 * unit + 1 - side, primal.proof, depth, nodes.codes[child])
        if found != FEASIBLE:
            return found
        kept = 0 if reached < 0.0 else kept
    if kept == 0:
        keep(primal, child)
    _cross(descent, node, child, unit, sign, values)
    return FEASIBLE


@inlined
def _cross(descent: Descent, node: int, child: int, unit: int, sign: float, values: Vector) -> None:
    """Make points of a child between those of its parent on either side of a unit, where they show a second sign of another unit that is left."""
    nodes, layers, points = descent.nodes, descent.layers, descent.primal.points
    layer, firm = nodes.layer[node], _FIRM * size_of(nodes.combined[node, unit])
    first = layers.first[layer]
    for other in range(first, first + layers.width[layer]):
        if other == unit or nodes.status[node, other] < BOTH:
            continue
        shown = SHOWN * size_of(nodes.combined[node, other])
        evaluate(nodes.combined[node, other], points.places[node], descent.values[1])
        inside, outside, share = _between(points.known[node], sign, firm, shown, values, descent.values[1])
        if inside < 0:
            continue
        point = room_for(points, child)
        descent.crossed += 1
        points.names[child, point] = 0
        for c in range(points.places.shape[1]):
            points.places[child, c, point] = (1.0 - share) * points.places[node, c, inside] + share * points.places[
                node, c, outside
            ]


@inlined
def _between(known: int, sign: float, firm: float, shown: float, here: Vector, there: Vector) -> tuple[int, int, float]:
    """Two points and the share of the second: between them one unit is on its side, and another has a sign that no point there shows; -1 if there is no such pair.

    In the plane of two units' values (``here`` and ``there``), the hull of the points reaches a quadrant if and only if the segment between two of them does: the steepest on each side.
    """
    most, least = 0.0, 0.0
    for i in range(known):
        at = there[i] if sign * here[i] >= firm else 0.0
        most = max(most, at)
        least = min(least, at)
    if most >= shown and -least >= shown:
        return -1, -1, 0.0
    wanted = -1.0 if most >= shown else 1.0
    inside, outside, shallow, steep = -1, -1, -np.inf, 0.0
    for i in range(known):
        a, b = sign * here[i], wanted * there[i]
        if a >= firm:
            if b > shallow * a:
                inside, shallow = i, b / a
        elif a <= 0.0 and b > steep * -a:
            outside, steep = i, b / max(-a, 1e-300)
    if inside < 0 or outside < 0 or steep <= -shallow:
        return -1, -1, 0.0
    a, b = sign * here[inside], wanted * there[inside]
    c, d = sign * here[outside], wanted * there[outside]
    share = 0.5 * (a / (a - c) + max(-b / (d - b), 0.0))
    if a + share * (c - a) < firm or b + share * (d - b) < 2.0 * shown:
        return -1, -1, 0.0
    return inside, outside, share
