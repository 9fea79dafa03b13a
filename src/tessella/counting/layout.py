"""A tree laid out for a walk over cells held as linear programs, and what walks and searches do there alike: begin, look at the clock, take what was left."""

from collections.abc import Callable
from time import perf_counter

import numpy as np

from tessella.cells import dual, tableau
from tessella.cells.forms import solver_of
from tessella.cells.state import FEASIBLE, Bases, Cell, Layers, Proofs, Space, Units
from tessella.cells.touching import Touching
from tessella.counting.depth_first import ROOT
from tessella.counting.points import Points
from tessella.counting.state import MOST_PLANES, THIN, Choice, Crossings, Left, Path, Sets, Settled, Sightings, Walk
from tessella.kernel.functions import Apart
from tessella.numerics import UNHARMFUL
from tessella.partition.tree import Node, Tree

_SHORT, _LONG = 100, 6  # cells live in the space of inputs up to so many, unless these are so many times the first rows
_CHUNK = 0.01  # seconds between looks at the clock
_STATES = 1 << 28  # bytes for states; what lies deeper is left open, and walked from its own prefix later
_SHORTEST = 1e-30  # the square of a row's length is at least this
_ABOVE = 3 * MOST_PLANES + 6  # states that the last layer takes


def in_inputs(tree: Tree) -> bool:
    """Whether cells live in the space of the inputs: where these are not many times as many as rows of the first layer and the domain."""
    inputs, units, inequalities = tree.breadth
    rows = units + inequalities
    return rows >= inputs or inputs <= min(_SHORT, _LONG * rows)


def solver_for(tree: Tree) -> Apart:
    """What solves the linear programs of a tree's cells."""
    return tableau.solve if in_inputs(tree) else dual.solve


def lay_out(tree: Tree, *, in_inputs: bool) -> Walk:
    """A walk at the root of a tree, with nobody to take its steps yet."""
    scaled, units = tree.scaled, tree.units
    normals = np.vstack([scaled.weights[0], scaled.normals])
    space = Space.of(normals, in_inputs=in_inputs)
    most = len(scaled.constants) + units + MOST_PLANES + 3
    states = _ABOVE + 1 + min(2 * units, max(8, _STATES // Cell.bytes_of_state(space, most)))
    layers = Layers.of(scaled)
    cell = Cell.of(space, layers, rows=most, states=states)
    cell.solver = solver_of(space).address
    return Walk(
        layers=layers,
        units=Units.of(space, scaled, normals, tree.errors),
        cell=cell,
        path=Path.of(units),
        left=Left.of(units),
        choice=Choice.of(),
        sets=Sets.of(space.dimensions),
        proofs=Proofs.of(2 * units, Bases.places(space, most) + 1),
        sightings=Sightings.of(),
        settled=Settled.empty(),
        points=Points.empty(),
        crossings=Crossings.empty(),
        touching=Touching.empty(),
        unclear=THIN,
        deepest=states - _ABOVE,
    )


def _begin(cell: Cell, tree: Tree) -> tuple[int, bool]:
    """Put the domain's inequalities on the stack: how many; and whether a point of the domain is found, in the last state.

    It is not where an inequality's rounding error may be more than margins allow for.
    """
    scaled, space, p = tree.scaled, cell.space, cell.space.dimensions
    normals = space.rows_of(np.vstack([scaled.weights[0], scaled.normals]))[len(scaled.weights[0]) :]
    domain, fine = 0, True
    for normal, constant, error in zip(normals, scaled.constants, tree.domain_errors, strict=True):
        size = np.abs(normal).sum() + abs(constant)
        if np.any(normal != 0.0):
            row = cell.rows[domain]
            row[:p], row[p] = normal / size, constant / size
            row[p + 1] = max(row[:p] @ space.gram @ row[:p], _SHORTEST)
            domain += 1
            fine = fine and bool(error <= UNHARMFUL * size)
    return domain, fine and solver_of(space)(cell, len(cell.points) - 1, domain, domain) == FEASIBLE


class Laid:
    """A tree laid out for one walk after the other.

    Parameters
    ----------
    tree
        What to walk.
    in_frame
        Whether cells live in the space of the first layer's rows, instead of that of the inputs; by default, where inputs are many.
    """

    def __init__(self, tree: Tree, *, in_frame: bool | None = None) -> None:
        """Lay out the network in plain arrays and find the root's vertex."""
        self._pace, self._units = 16.0, tree.units
        self._twin = np.concatenate(tree.twins)[np.concatenate(tree.scaled.rectified)] >= 0
        self._walk = lay_out(tree, in_inputs=in_inputs(tree) if in_frame is None else not in_frame)
        self._domain, self._exists = _begin(self._walk.cell, tree)

    @property
    def bytes(self) -> int:
        """Memory held."""
        return self._walk.nbytes

    def _paced(self, work: Callable[[int], int]) -> int:
        """Do as much as takes about a hundredth of a second."""
        start = perf_counter()
        status = work(round(self._pace))
        self._pace = min(max(self._pace * min(_CHUNK / max(perf_counter() - start, 1e-6), 2.0), 1.0), 10_000.0)
        return status

    def _taken(self) -> list[tuple[int, Node]]:
        """Take the prefixes that were left, each with why."""
        left = self._walk.left
        nodes = [Node(bytes(left.signs[at, : left.lengths[at]]), int(left.splits[at])) for at in range(left.count)]
        left.count = 0
        return list(zip(left.kinds[: len(nodes)].tolist(), nodes, strict=True))

    def _enter(self, node: Node) -> None:
        """Begin at the root, on the way to a node."""
        walk = self._walk
        path = walk.path
        path.position, path.state, path.rows = 0, ROOT, self._domain
        path.goes_down, path.splits, path.plain_from = True, node.splits, self._units + 1
        path.signs[: len(node.prefix)] = np.frombuffer(node.prefix, dtype=np.int8)
        path.waits[:] = 0
        path.stable_at[:] = np.where(self._twin, -1, self._units + 1)
        walk.units.active[walk.layers.unit_of] = 0
