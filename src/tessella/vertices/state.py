"""What the walk over corners reads and writes, with names.

A cell is a convex polytope of d dimensions: its corners, and for each of them the set of walls that it lies on, as the bits of a number.
`Cells` holds the cells that wait, one above the other; `Path` and `Planes` hold what belongs to the decisions that lead to the cell on top, which
the cells below it share.  `Walk` is all of it, for the functions that direct; those that work take the parts that they need.
"""

from typing import Any

import numpy as np

from tessella.cells.residues import Residues
from tessella.kernel.record import ByteMatrix, Bytes, Cube, Matrix, Record, Vector, Whole, WholeMatrix, aligned, zeros

WALLS = 62  # of one cell: bits of a number that stays positive
IS_APEX = 1 << WALLS  # one bit more, for the corner that is the apex
MOST_CORNERS = (0, 4, 64, 128, 320, 640, 1280)  # of one cell, by dimension
AT_ONCE = 48  # units of the last layer that are counted together
NOT_YET, ASKED_FOR, SHARP = 0, -1, 1  # whether the error of a row is bounded again, see `tessella.vertices.errors`
_FIRST_LEVELS = 32  # cells that may wait, before there is room for twice as many


class Layers(Record):
    """The network, in each layer the ReLUs before the linear units; nothing of it changes."""

    units: Whole  # how many each layer has
    relus: Whole  # how many of these are ReLUs
    first: Whole  # the number of the layer's first ReLU among all decisions
    start: Whole  # its first row of weights
    weights: Matrix  # [start[layer] + i, j]: what unit i of the layer before counts in unit j
    biases: Matrix  # [layer, i], as all that follow
    slopes: Matrix  # what a unit multiplies its preactivation with where it is inactive; for a linear unit, everywhere
    reach: Matrix  # the norm of the weights that a unit reads, each times the most that what it reads is multiplied with
    slack: Matrix  # what the rounding of its bias, or of all of it in the first layer, adds to its error
    twins: WholeMatrix  # the ReLU before it in its layer that it is a multiple of, or -1
    growth: Vector  # [layer]: how much the errors of the layer before can grow, a bound on the spectral norm
    rounding_of_sums: Vector  # [layer]: what sums add to the errors, relative to the norm of all rows of the layer before
    rounding_of_biases: Vector  # [layer]: what biases add
    rounding: Vector  # [layer]: relative error of one sum
    composed: Whole  # [layer]: whether its weights are those of a folded network, and so rounded themselves


class Cells(Record):
    """The cells that wait, the one on top first.  Entry s of each array is of cell s <= top, but for the last entry, which is spare: see `corners.cut`.

    The corners of a cell are points[s, :, v] for v < corners[s]; its walls are bits 0 to 61, wall w being the plane plane_of[s, w].
    The units of its layer that are not decided are waiting[s, :undecided[s]], by their number among the rows of the path.
    """

    points: Cube  # [s, coordinate, corner]
    walls: WholeMatrix  # [s, corner]: the walls that a corner lies on, one bit each, and whether it is the apex
    plane_of: WholeMatrix  # [s, wall]
    ratio: Vector  # the largest ratio of a wall's error to its distance from the middle; 1 if there is no room, or no corner
    corners: Whole  # how many corners it has
    cuts: Whole  # how many planes were made before it; the next one is cuts + 1
    below: Cube  # [s, coordinate, unit]: rows of the layer that it enters next; the constant is the last coordinate
    waiting: WholeMatrix
    undecided: Whole
    layer: Whole
    length: Whole  # decisions that lead to it
    sign: Whole  # the last of them
    place: Whole  # and its unit
    splits: Whole  # how many decisions had both sides
    enters: Whole  # whether it enters its layer: its rows are those in `below`
    tangled: Whole  # whether more than d walls may meet in a corner
    sharp: Whole  # whether its errors were bounded again
    odd: Whole  # whether exact arithmetic decided a unit on the way to it
    central: Whole  # which of its walls go through the apex; 0 if there is no such point
    apex: Whole  # whether its first corner is the apex
    sums: Vector  # [coordinate]: scratch, of the corners of one cell
    top: int


class Planes(Record):
    """The planes that were made on the way to the cell on top: sides of the domain, then one for each cut."""

    normals: Matrix  # [plane, coordinate]
    constants: Vector
    errors: Vector  # bounds on the error of the row on the box
    sizes: Vector  # the sum of its absolute coefficients
    off: Vector  # how far corners that lie on it by name are off it
    layer: Whole  # of the unit that made it, -1 for the domain's own
    unit: Whole
    sharp: Whole  # whether its error was bounded again


class Path(Record):
    """For each layer up to that of the cell on top: the rows of the units that did not settle on entering it, errors, and decisions."""

    rows: Cube  # [layer, coordinate, k], the constant last
    row_errors: Matrix  # [layer, k]: bounds on the error of a row on the box
    bounded: WholeMatrix  # [layer, k]: NOT_YET, ASKED_FOR or SHARP
    places: WholeMatrix  # [layer, k]: which unit this is
    norm: Vector  # [layer]: a bound on the norm of the errors of all rows
    past: Vector  # [layer]: what one row inherits of the layers before, relative to its reach
    own: Vector  # [layer]: what the sum of one row adds, relative to its reach
    pattern: ByteMatrix  # [layer, ReLU]: the decisions


class Guide(Record):
    """The node that the walk begins with: decisions[:length] lead to it."""

    decisions: Bytes
    length: int  # -1 as soon as the node is reached
    splits: int  # of the node


class Tally(Record):
    """What was found since the caller last looked; it sets the numbers back."""

    thin: ByteMatrix  # [number, decision]: prefixes that could not be decided
    lengths: Whole  # of these
    found: int  # how many there are
    regions: int
    tests: int  # signs asked for at the corners of a cell


class Drawing(Record):
    """Regions written down, if there is room for any: see `tessella.vertices.outlines` and, for what else is written, `tessella.vertices.noting`."""

    patterns: ByteMatrix  # [region, decision]
    sizes: Whole  # how many corners each has
    corners: Matrix  # of all of them, one after the other
    borders: Whole  # [corner]: the layer that made the wall from it to the next, -1 for the domain
    volumes: Vector  # [region]
    chain: (
        WholeMatrix  # [level, 3]: scratch of a volume: the walls of a face, its first corner, and the wall that is looked at next
    )
    edges: Matrix  # the same: those of a simplex
    regions: int
    placed: int  # corners of these
    writer: int  # the address of what writes them down; 0 if nobody does


class Sides(Record):
    """The corners of a cell on both sides of a plane, and the edges between them."""

    values: Vector  # [corner]: of the row that cuts
    above: Whole  # corners where it is positive
    above_walls: Whole  # and their walls
    under: Whole
    under_walls: Whole
    first: Whole  # [edge]: its end above
    second: Whole  # and its end under the plane
    wall: int  # the bit that the plane got


class Sections(Record):
    """Sections of sections of a cell, level by level; level 0 is the cell itself, and each has one dimension less than the one before."""

    values: Cube  # [level, unit, corner]
    exact: Matrix  # [level, unit]: how exact these are
    walls: WholeMatrix  # [level, corner]
    first: WholeMatrix  # [level, corner]: which edge of this level a corner of the next one cuts
    second: WholeMatrix
    scale: Vector  # [corner]: one over what the cutting unit loses along the edge
    corners: Whole  # [level]
    units: Whole  # [level]: how many cut it
    next: Whole  # [level]: the one whose section is looked at next


class Work(Record):
    """Scratch of one step, and the values of the first unit that waits."""

    before: Matrix  # [coordinate, unit]: rows of the layer that is entered
    middle: Vector  # [unit]: its value in the middle of the bounding box
    half: Vector  # [unit]: how far it can be from that in the box
    active: Whole  # units that add to the next layer at once
    counts: Matrix  # [2, unit]: how much the error of a unit counts in a row; one line for each of two layers
    order: Whole  # [corner]: as they follow each other around a polygon
    angles: Vector
    layers: Whole  # of two walls, and which of its units, or of the domain's walls
    names: Whole
    low: float  # the least value of the first unit that waits
    high: float  # its largest
    exact: float  # and how exact they are


class Walk(Record):
    """All of it."""

    layers: Layers
    cells: Cells
    planes: Planes
    path: Path
    guide: Guide
    tally: Tally
    drawing: Drawing
    sides: Sides
    sections: Sections
    work: Work
    residues: Residues


def new_walk(layers: Layers, residues: Residues, dim: int, inequalities: int, drawn: int) -> Walk:
    """Memory for a walk over the cells of a network; the root is not there yet.

    Parameters
    ----------
    layers, residues
        The network.
    dim
        How many free inputs there are.
    inequalities
        How many the domain has besides its box.
    drawn
        How many regions are written down at a time.
    """
    width, relus, depth = int(layers.units.max()), max(int(layers.relus.max()), 1), len(layers.units)
    total, most = int(layers.relus.sum()), MOST_CORNERS[dim]
    planes = 2 * dim + inequalities + total + 2
    room = 5 * drawn + most if drawn else 0  # most regions have three to five corners
    one = _FIRST_LEVELS
    cells = Cells(
        points=zeros(one, dim, most),
        walls=_whole(one, most),
        plane_of=_whole(one, WALLS),
        ratio=zeros(one),
        below=zeros(one, dim + 1, width),
        waiting=_whole(one, relus),
        sums=zeros(dim),
        **{name: _whole(one) for name in _NUMBERS},
    )
    return Walk(
        layers=layers,
        cells=cells,
        planes=Planes(
            normals=zeros(planes, dim),
            **{name: zeros(planes) for name in ("constants", "errors", "sizes", "off")},
            **{name: np.full(planes, -1, dtype=np.int64) for name in ("layer", "unit")},
            sharp=_whole(planes),
        ),
        path=Path(
            rows=zeros(depth, dim + 1, relus),
            row_errors=zeros(depth, relus),
            bounded=_whole(depth, relus),
            places=_whole(depth, relus),
            **{name: zeros(depth) for name in ("norm", "past", "own")},
            pattern=zeros(depth, relus, kind=np.int8),
        ),
        guide=Guide(decisions=zeros(total, kind=np.int8)),
        tally=Tally(thin=zeros(64, total, kind=np.int8), lengths=_whole(64)),
        drawing=Drawing(
            patterns=zeros(drawn, total, kind=np.int8),
            sizes=_whole(drawn),
            corners=zeros(room, dim),
            borders=_whole(room),
            volumes=zeros(drawn),
            chain=_whole(dim + 2, 3),
            edges=zeros(dim, dim),
        ),
        sides=new_sides(most),
        sections=Sections(
            values=zeros(dim + 1, AT_ONCE, most),
            exact=zeros(dim + 1, AT_ONCE),
            **{name: _whole(dim + 1, most) for name in ("walls", "first", "second")},
            scale=zeros(most),
            **{name: _whole(dim + 1) for name in ("corners", "units", "next")},
        ),
        work=Work(
            before=zeros(dim + 1, width),
            middle=zeros(width),
            half=zeros(width),
            active=_whole(width + 1),
            counts=zeros(2, width),
            order=_whole(most),
            angles=zeros(most),
            layers=_whole(2),
            names=_whole(2),
        ),
        residues=residues,
    )


_NUMBERS = (
    "corners",
    "cuts",
    "undecided",
    "layer",
    "length",
    "sign",
    "place",
    "splits",
    "enters",
    "tangled",
    "sharp",
    "odd",
    "central",
    "apex",
)


def new_sides(most: int) -> Sides:
    """Memory for a cut of a cell with so many corners."""
    names = ("above", "above_walls", "under", "under_walls")
    return Sides(values=zeros(most), first=_whole(2 * most), second=_whole(2 * most), **{name: _whole(most) for name in names})


def make_higher(cells: Cells) -> None:
    """Make room for twice as many cells."""
    for name in ("points", "walls", "plane_of", "ratio", "below", "waiting", *_NUMBERS):
        part: Any = getattr(cells, name)
        setattr(cells, name, aligned(np.concatenate([part, np.zeros_like(part)])))


def _whole(*shape: int) -> Any:
    return zeros(*shape, kind=np.int64)
