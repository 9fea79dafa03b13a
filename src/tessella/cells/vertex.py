"""A vertex of each node's cell with its basis, and the vertices that are kept as points of the cell.

A cell is a stack of rows a.z + b >= 0 in z = F.u with inputs u in [-1, 1]^n (`tessella.cells.rows`).  Rows of a vertex stay `MARGIN` above zero and inputs within `EDGE`, so it lies inside its
cell in spite of rounding.

Whoever asks many questions about cells that lie within each other keeps vertices as *points*, with the bases that they belong to: `move_to_best` starts a question from the one where its row is
largest.  `tessella.cells.primal` goes on from there.
"""

import numpy as np

from tessella.cells.rows import value
from tessella.cells.state import Proof, Space, Tally, Work
from tessella.kernel.basis import factor, times
from tessella.kernel.functions import apart, compiled, inlined
from tessella.kernel.record import (
    ByteMatrix,
    Cube,
    Matrix,
    Record,
    SingleMatrix,
    Singles,
    Vector,
    Whole,
    WholeMatrix,
    aligned,
    zeros,
)
from tessella.numerics import CLOSE, EDGE, MARGIN, SINGULAR

POINTS = 64  # of a node, at most: their signs fit into one integer
REFACTOR_EVERY = 40  # exchanges until a basis is inverted anew
LANES = 8  # inputs that are remembered from one pricing to the next, at most


class Vertices(Record):
    """A vertex of each node's cell, with its basis.

    In node t, rows ``tight[t, :size[t]]`` equal `MARGIN`, inputs ``basic[t, :size[t]]`` lie between their ends, and every other input j at the end ``sides[t, j]`` (basic ones have side 0 there).
    ``inverse[t]`` inverts the matrix of the tight rows' slopes in the basic inputs.
    """

    tight: WholeMatrix
    basic: WholeMatrix
    size: Whole
    age: Whole  # exchanges since the basis was inverted
    inverse: Cube
    square: Matrix  # the matrix that is being inverted
    places: Matrix  # the vertices in z
    values: Matrix  # of the basic inputs
    sides: SingleMatrix

    @classmethod
    def of(cls, nodes: int, space: Space, most_tight: int) -> "Vertices":
        """With all inputs at their upper ends."""
        p, n = space.frame.shape
        line = -(-most_tight // 8) * 8  # whole cache lines: inverting rows across them stalled for milliseconds now and then
        return cls(
            tight=zeros(nodes, most_tight, kind=np.int64),
            basic=zeros(nodes, most_tight, kind=np.int64),
            size=zeros(nodes, kind=np.int64),
            age=zeros(nodes, kind=np.int64),
            inverse=zeros(nodes, most_tight, line),
            square=zeros(most_tight, line),
            places=zeros(nodes, p),
            values=zeros(nodes, most_tight),
            sides=aligned(np.ones((nodes, n), dtype=np.float32)),
        )


class Points(Record):
    """Points of each node's cell; those that were vertices, with their bases.

    Point i < ``known[t]`` of node t is ``places[t, :, i]``, and ``names[t, i]`` is its name: 0 if it was never a vertex.  Bases lie in a ring: that of a name above 0 at ``name % ring`` until
    another takes its place.  Names below 0 are never replaced and lie behind the ring, counted from its end.  ``owners`` says whose basis lies where.
    """

    places: Cube
    names: WholeMatrix
    known: Whole
    replaced: Whole  # points that took the place of an older one
    owners: Whole
    sizes: Whole
    tight: WholeMatrix
    basic: WholeMatrix
    sides: ByteMatrix
    last_name: int

    @classmethod
    def of(cls, nodes: int, space: Space, most_tight: int, ring: int) -> "Points":
        """No points, and room for the bases of so many, and of `POINTS` that are never replaced."""
        (p, n), room = space.frame.shape, ring + POINTS
        owners = zeros(room, kind=np.int64)
        owners[ring:] = np.arange(-POINTS, 0)
        return cls(
            places=zeros(nodes, p, POINTS),
            names=zeros(nodes, POINTS, kind=np.int64),
            known=zeros(nodes, kind=np.int64),
            replaced=zeros(nodes, kind=np.int64),
            owners=owners,
            sizes=zeros(room, kind=np.int64),
            tight=zeros(room, most_tight, kind=np.int64),
            basic=zeros(room, most_tight, kind=np.int64),
            sides=zeros(room, n, kind=np.int8),
        )


class Primal(Record):
    """What questions about nodes' cells are asked with: ``rows[t]`` are the inequalities of node t, each with p + 3 numbers."""

    space: Space
    rows: Cube
    vertices: Vertices
    points: Points
    proof: Proof  # if the answer is no
    tally: Tally
    work: Work
    gaps: Vector  # per tight row: what the basic inputs have to make up for
    # while a row is raised
    multipliers: Vector  # per tight row: how much of it is added to the row, so that basic inputs cancel
    lengths: Vector  # per tight row: the squared length of its column of the inverse
    slopes: Vector  # per basic input or tight row: of a row, or an input
    product: Vector  # of a new row with the inverse
    rates: Vector  # per basic input: of change along the step
    direction: Vector  # of the step, in z
    prices: Singles  # per input: the slope of the row and of the tight rows' shares
    merits: Singles  # the same away from the end where the input lies
    tops: Singles  # the largest merit of each lane
    listed: Whole  # inputs that are remembered

    @classmethod
    def of(cls, space: Space, *, nodes: int, rows: int, most_tight: int, widest: int, ring: int) -> "Primal":
        """Without rows.

        Parameters
        ----------
        space
            What rows are written in.
        nodes, rows
            How many nodes there are, and how many rows each may have.
        most_tight
            Rows of a basis, at most, and one more.
        widest
            Units of the widest layer.
        ring
            Vertices whose bases are kept.
        """
        p, n = space.frame.shape
        return cls(
            space=space,
            rows=zeros(nodes, rows, p + 3),
            vertices=Vertices.of(nodes, space, most_tight),
            points=Points.of(nodes, space, most_tight, ring),
            proof=Proof.of(most_tight + 1),
            tally=Tally(),
            work=Work.of(space, widest),
            **{name: zeros(most_tight) for name in ("gaps", "multipliers", "lengths", "slopes", "product", "rates")},
            direction=zeros(p),
            **{name: zeros(n, kind=np.float32) for name in ("prices", "merits")},
            tops=zeros(LANES, kind=np.float32),
            listed=zeros(LANES, kind=np.int64),
        )


@compiled
def slope(space: Space, row: Vector, j: int) -> float:
    """How fast a row (or a combination of rows) rises with input j."""
    if space.in_inputs:
        return row[j]
    columns, total = space.columns, 0.0
    for c in range(columns.shape[1]):
        total += row[c] * columns[j, c]
    return total


@compiled
def clearance(row: Vector, place: Vector) -> float:
    """How far above the margin a row is at a point of z."""
    p = len(place)
    total = row[p] - MARGIN
    for c in range(p):
        total += row[c] * place[c]
    return total


@compiled
def slopes_in_basic(primal: Primal, node: int, row: Vector) -> None:
    """A row's slopes in a node's basic inputs, into ``slopes``."""
    basic, slopes = primal.vertices.basic[node], primal.slopes
    for q in range(primal.vertices.size[node]):
        slopes[q] = slope(primal.space, row, basic[q])


@inlined
def _invert(primal: Primal, node: int) -> bool:
    """Invert a node's basis; False if it is singular."""
    vertices, rows = primal.vertices, primal.rows[node]
    k, square = vertices.size[node], vertices.square
    for i in range(k):
        row = rows[vertices.tight[node, i]]
        for q in range(k):
            square[i, q] = slope(primal.space, row, vertices.basic[node, q])
    return factor(square, vertices.inverse[node], k, SINGULAR)


@inlined
def _place_at_ends(primal: Primal, node: int) -> None:
    """Put a node's vertex where the inputs at their ends add up to, in z."""
    space, sides, place = primal.space, primal.vertices.sides[node], primal.vertices.places[node]
    frame = space.frame
    for c in range(len(place)):
        if space.in_inputs:
            place[c] = EDGE * sides[c]
        else:
            total = 0.0
            for j in range(frame.shape[1]):
                total += frame[c, j] * sides[j]
            place[c] = EDGE * total


@apart
def refresh(primal: Primal, node: int, count: int) -> bool:
    """Compute a node's vertex anew from its basis: inverse, place and values; False if it is not a vertex of the node's first ``count`` rows."""
    space, vertices, rows = primal.space, primal.vertices, primal.rows[node]
    place, values, basic = vertices.places[node], vertices.values[node], vertices.basic[node]
    k, columns, in_inputs = vertices.size[node], space.columns, space.in_inputs
    vertices.age[node] = REFACTOR_EVERY  # tried again if it fails
    if not _invert(primal, node):
        return False
    _place_at_ends(primal, node)
    for i in range(k):
        primal.gaps[i] = -clearance(rows[vertices.tight[node, i]], place)
    times(vertices.inverse[node], k, primal.gaps, values)
    fine = True
    for q in range(k):
        j = basic[q]
        fine = fine and abs(values[q]) <= EDGE + CLOSE
        if in_inputs:
            place[j] += values[q]
        else:
            for c in range(len(place)):
                place[c] += values[q] * columns[j, c]
    for row in range(count):
        fine = fine and value(rows[row], place) >= MARGIN - CLOSE
    if fine:
        vertices.age[node] = 0
    return fine


@compiled
def copy_vertex(primal: Primal, node: int, other: int) -> None:
    """Give another node a copy of a node's vertex."""
    vertices = primal.vertices
    k = vertices.size[node]
    vertices.size[other], vertices.age[other] = k, vertices.age[node]
    for q in range(k):
        vertices.tight[other, q], vertices.basic[other, q] = vertices.tight[node, q], vertices.basic[node, q]
        vertices.values[other, q] = vertices.values[node, q]
        for i in range(k):
            vertices.inverse[other, q, i] = vertices.inverse[node, q, i]
    for c in range(vertices.places.shape[1]):
        vertices.places[other, c] = vertices.places[node, c]
    for j in range(vertices.sides.shape[1]):
        vertices.sides[other, j] = vertices.sides[node, j]


@compiled
def is_sound(primal: Primal, node: int, count: int) -> bool:
    """Whether a node's vertex lies inside its first ``count`` rows and the box, by more than rounding."""
    vertices, rows = primal.vertices, primal.rows[node]
    place, fine = vertices.places[node], True  # comparisons are false for what is not a number
    for row in range(count):
        fine = fine and value(rows[row], place) >= 0.5 * MARGIN
    for q in range(vertices.size[node]):
        fine = fine and abs(vertices.values[node, q]) <= 1.0 - 0.5 * (1.0 - EDGE)
    return fine


@compiled
def room_for(points: Points, node: int) -> int:
    """Where a further point of a node goes: behind the others, or in the place of the oldest."""
    at = points.known[node]
    if at < POINTS:
        points.known[node] += 1
        return at
    at = points.replaced[node] % POINTS
    points.replaced[node] += 1
    return at


@apart
def keep(primal: Primal, node: int) -> None:
    """Make a node's vertex one of its points, and keep its basis."""
    points, vertices = primal.points, primal.vertices
    point = room_for(points, node)
    for c in range(points.places.shape[1]):
        points.places[node, c, point] = vertices.places[node, c]
    points.last_name += 1
    name, k = points.last_name, vertices.size[node]
    at = name % (len(points.owners) - POINTS)
    points.names[node, point] = name
    points.owners[at], points.sizes[at] = name, k
    for q in range(k):
        points.tight[at, q], points.basic[at, q] = vertices.tight[node, q], vertices.basic[node, q]
    for j in range(points.sides.shape[1]):
        points.sides[at, j] = np.int8(vertices.sides[node, j])


@apart
def move_to_best(primal: Primal, node: int, count: int, reached: float, sign: float, values: Vector) -> bool:
    """Move a node's vertex to the known one where ``sign * values`` is largest, if that is more than was reached; False if it cannot be computed."""
    points, vertices = primal.points, primal.vertices
    ring, best = len(points.owners) - POINTS, -1
    for i in range(points.known[node]):
        name = points.names[node, i]
        if sign * values[i] > reached and name != 0:
            at = name % ring if name > 0 else ring + POINTS + name
            if points.owners[at] == name:
                best, reached = at, sign * values[i]
    if best < 0:
        return True
    k = points.sizes[best]
    vertices.size[node] = k
    for q in range(k):
        vertices.tight[node, q], vertices.basic[node, q] = points.tight[best, q], points.basic[best, q]
    for j in range(points.sides.shape[1]):
        vertices.sides[node, j] = np.float32(points.sides[best, j])
    return refresh(primal, node, count)
