"""Random descents through a tree of regions: what `tessella.estimating.population` needs, and what it leaves to exact arithmetic."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tessella.cells.cuts import Outside
from tessella.cells.primal import raise_row
from tessella.cells.state import FEASIBLE, Layers, Proofs, Space
from tessella.cells.vertex import POINTS, Primal, refresh
from tessella.estimating.features import BASE, CELLS_OF_LEFT, CELLS_OF_NEXT, Describer
from tessella.estimating.nodes import WIDE, Descent, Nodes
from tessella.estimating.population import Crowd, Notes, Round, go_rounds
from tessella.estimating.prefixes import Prefixes
from tessella.estimating.scattering import Scatter
from tessella.kernel.record import zeros
from tessella.network import Floats
from tessella.numerics import EDGE, GOAL, UNHARMFUL
from tessella.partition.local import LocalBound
from tessella.partition.settler import Settler
from tessella.partition.tree import Integers, Tree

if TYPE_CHECKING:
    from tessella.partition.exact import Exact

_FEW_INPUTS = 32  # up to here the first layer's units are looked at ahead, too
_CLASSES = 48  # regressions per layer
_NOTES = 16384  # nodes noted in one batch
_LARGE = 1 << 25  # bytes of one node's cell; of larger ones only one is kept
_RING = 1024  # vertices whose bases are kept
_RING_EACH = 64  # the same for each of a population
_CORNERS = 47  # corners of the box that the root knows
_MOST_EXACT = 256  # cells that exact arithmetic looks at for one prefix
_REFUTED_INPUTS = 128  # inputs from which on what does not exist is refuted in the first layer's few dimensions
_REFUTED_DIMENSIONS = 18  # so many of these at most
_CUTS = 128  # kept there, in one round


class Records(NamedTuple):
    """Nodes that were scored."""

    features: npt.NDArray[np.float32]  # one line per node
    origin: Integers  # per node: the regression it belongs to, the number of its parent (-1 for roots), and whether it was split
    leaves: Floats  # per node that was split: how many leaves there were among its children


class Batch(NamedTuple):
    """The results of some rounds: logarithms of unbiased estimates of the number of regions, and what can be learned from them."""

    logarithms: Floats
    records: Records


@dataclass(frozen=True, slots=True)
class Shape:
    """How nodes of a tree are described: the regressions and what they start from."""

    buckets: Integers  # the number of the regression, for a layer and a number of units left; in the order in which nodes come
    layer_of: Integers  # the layer of each regression
    lengths: tuple[int, ...]  # how many features the nodes of each layer have
    most: float  # a logarithm that no node's number of leaves exceeds

    @classmethod
    def of(cls, tree: Tree, widest: int = WIDE) -> "Shape":
        """Lay it out, with features per unit where no layer that follows has more units than the widest."""
        widths = [layer.units for layer in tree.walked.layers]
        buckets = np.zeros((len(widths), max(widths) + 1), dtype=np.int64)
        layer_of, lengths = list[int](), list[int]()
        for number, width in enumerate(widths):
            classes = min(width + 1, _CLASSES)
            left = np.arange(width, -1, -1)
            buckets[number, left] = len(layer_of) + np.arange(width + 1) * classes // (width + 1)
            layer_of += [number] * classes
            around = widths[max(number - 1, 0) : number + 2] if number else widths[1:2]
            narrow = max(widths[number:]) <= widest
            lengths.append(BASE + (width + sum(around) + (width if number == 0 else 0) if narrow else 0))
        return cls(buckets, np.array(layer_of), tuple(lengths), math.log(max(LocalBound(tree)(b""), 1)))

    @property
    def longest(self) -> int:
        """The most features that a node has."""
        return max(self.lengths)

    def start(self) -> Floats:
        """Predictions before anything is learned: hyperplanes in general position, somewhat fewer."""
        theta = np.zeros((len(self.layer_of), self.longest + 1))
        theta[:, [CELLS_OF_LEFT, CELLS_OF_NEXT]] = 0.7
        theta[:, -1] = self.most
        return theta


class Answers:
    """What exact arithmetic says of prefixes that floating point cannot decide; each is asked once.

    Parameters
    ----------
    tree
        The tree.
    """

    def __init__(self, tree: Tree) -> None:
        """Nothing was asked yet."""
        self._tree, self._settler, self.given_up = tree, Settler(tree, most_cells=_MOST_EXACT), 0
        self._known = dict[bytes, int | None]()

    def __call__(self, prefix: bytes) -> int:
        """How many regions lie below a prefix; 0, and given up, if that takes too long."""
        return self.exactly(prefix) or 0

    def exactly(self, prefix: bytes) -> int | None:
        """How many regions lie below a prefix; None, and given up, if that takes too long."""
        if prefix not in self._known:
            self._known[prefix] = found = self._settled(prefix)
            self.given_up += found is None
        return self._known[prefix]

    def __len__(self) -> int:
        """How many were asked."""
        return len(self._known)

    @property
    def exact(self) -> "Exact":
        """The arithmetic itself."""
        return self._settler.exact

    def leaves(self, prefix: bytes) -> Iterator[bytes]:
        """The regions below a prefix."""
        return self._settler.exact.leaves(prefix)

    def _settled(self, prefix: bytes) -> int | None:
        if not self._tree.is_small:
            return None
        self._settler.renew()
        found = self._settler.settle([prefix])
        return None if found.waiting else found.regions


class Descents:
    """Random descents; one object serves one thread.

    Parameters
    ----------
    tree
        The tree; it has a unit, and its domain a free input.
    population
        How many nodes a round keeps.
    lazy
        Whether linear programs wait until a node is chosen; None for where refutations in few dimensions tell most of what they would.
    widest
        Layers of at most so many units are looked at ahead, and described unit by unit.
    in_step
        Whether all nodes of a round go from unit to unit together: particles.
    scattered
        Points that each node should have scattered over its cell, to describe it by; none are where points cannot be moved freely (more inputs than rows).
    """

    functions = (go_rounds, raise_row, refresh)  # the compiled code that descents call

    def __init__(  # noqa: PLR0913  one keyword per option
        self,
        tree: Tree,
        *,
        population: int = 2,
        lazy: bool | None = None,
        widest: int = WIDE,
        in_step: bool = False,
        scattered: int = 0,
    ) -> None:
        """Lay out the network in plain arrays and find the root's vertex."""
        scaled = tree.scaled
        first, inputs = scaled.weights[0].shape
        self.shape, self.answers = Shape.of(tree, widest), Answers(tree)
        normals = np.vstack([scaled.weights[0], scaled.normals])
        space = Space.of(normals, in_inputs=len(normals) >= inputs)
        rows, layers = space.rows_of(normals), Layers.of(scaled)
        held = 8 * _LARGE // _cell_bytes(tree, space)  # cells that there is room for
        if in_step:
            population = max(min(population, held // 2 - 1), 1)
        elif 4 * population >= held:
            population = 1
        slots = (2 if in_step else 4) * population + 2
        ring = max(_RING, _RING_EACH * population) if in_step else _RING
        descent = _descent(tree, space, layers, (slots, ring), widest)
        self._round = Round(
            descent=descent,
            describer=Describer.of(int(layers.width.max()), space.dimensions, looks=scattered > 0 and space.in_inputs),
            scatter=Scatter.of(scattered if space.in_inputs else 0, most_rows(tree), space.dimensions),
            notes=Notes.of(_NOTES, self.shape.longest),
            prefixes=Prefixes.of(tree.units),
            crowd=Crowd.of(slots),
            buckets=self.shape.buckets,
            theta=self.shape.start(),
            seed=np.zeros(1, dtype=np.uint64),
            split_values=zeros(POINTS),
            root=slots,
            population=population,
            lazy=descent.refutes if lazy is None else lazy,
            in_step=in_step,
        )
        root = self._round.root
        descent.nodes.combined[root, :first] = np.column_stack([rows[:first], scaled.biases[0]])
        descent.nodes.errors[root, :first] = tree.errors
        self.starts, descent.nodes.depth[root] = find_vertex(
            descent.primal, root, rows[first:], scaled.constants, tree.domain_errors
        )
        _add_corners(descent, root)

    @property
    def tests(self) -> int:
        """How many linear programs were solved."""
        return self._round.descent.primal.tally.tests

    def rounds(self, first: int, count: int, base: int, theta: Floats) -> Batch:
        """Some rounds; the same numbers and base give the same results.

        Parameters
        ----------
        first, count
            Their numbers.
        base
            What their seeds are made from.
        theta
            What leaves are predicted from.
        """
        results, done, notes = np.zeros(count), 0, self._round.notes
        notes.count = 0
        if not self.starts:  # the domain itself is thin
            worth, done = self.answers(b""), count
            results[:] = math.log(worth) if worth else -math.inf
        while done < count:
            done += self._go(first + done, results[done:], base, theta, single=False)
        held = notes.count
        origin = np.stack([notes.bucket[:held], notes.parent[:held], notes.split[:held]], axis=1)
        return Batch(results, Records(notes.features[:held].copy(), origin, notes.leaves[:held].copy()))

    def leaf(self, number: int, base: int, theta: Floats) -> tuple[float, bytes, int]:
        """One leaf: the logarithm of its weight, its prefix, and how many regions are behind that."""
        result, crowd, descent = np.zeros(1), self._round.crowd, self._round.descent
        self._round.notes.count = 0
        while not self._go(number, result, base, theta, single=True):
            pass
        drawn = int(crowd.members[0])
        signs = descent.nodes.status[drawn][descent.layers.unit_of][: self._round.prefixes.length]
        return float(result[0]), bytes(signs), int(crowd.leaves[drawn])

    def _go(self, first: int, results: Floats, base: int, theta: Floats, *, single: bool) -> int:
        """Rounds until all are done or a prefix is to be asked about, which is then looked up; how many are done."""
        self._round.theta, self._round.single = np.ascontiguousarray(theta), single
        done = int(go_rounds(self._round, first, np.array([base], dtype=np.uint64), results))
        if done < len(results):
            prefixes = self._round.prefixes
            prefixes.learn(self.answers(prefixes.prefix))
        return done


def most_tight(tree: Tree, space: Space) -> int:
    """Rows of a basis, at most, and one more."""
    return min(space.dimensions, space.inputs, most_rows(tree)) + 1


def most_rows(tree: Tree) -> int:
    """Rows of a cell, at most, and one that is asked about."""
    return len(tree.scaled.constants) + tree.units + 2


def _cell_bytes(tree: Tree, space: Space) -> int:
    """About how much memory a node takes."""
    units, p, basis = sum(map(len, tree.scaled.biases)), space.dimensions, most_tight(tree, space)
    return 8 * ((most_rows(tree) + units) * (p + 2) + basis * basis + POINTS * p) + 4 * space.inputs


def _descent(tree: Tree, space: Space, layers: Layers, room: tuple[int, int], widest_described: int) -> Descent:
    """What nodes are settled and split with, for so many of them and the root, and so many bases."""
    (slots, ring), units, widest, rows = room, len(layers.rectified), int(layers.width.max()), most_rows(tree)
    p, tight = space.dimensions, most_tight(tree, space)
    refutes = not space.in_inputs and space.inputs >= _REFUTED_INPUTS and p <= _REFUTED_DIMENSIONS
    ahead = layers.width <= widest_described
    ahead[0] = ahead[0] and space.inputs <= _FEW_INPUTS
    return Descent(
        layers=layers,
        ahead=ahead.astype(np.int8),
        nodes=Nodes.of(slots + 1, units, rows, p),
        primal=Primal.of(space, nodes=slots + 1, rows=rows, most_tight=tight, widest=widest, ring=ring),
        proofs=Proofs.of(2 * units, tight),
        refutes=refutes,
        outside=Outside.of(p, rows, _CUTS) if refutes else Outside.empty(),
        recalled=np.full((2 * units + 1 if refutes else 0, p), -1, dtype=np.int64),
        values=zeros(2 * widest_described, POINTS),
        own_names=zeros(POINTS, kind=np.int64),
    )


def find_vertex(primal: Primal, root: int, normals: Floats, constants: Floats, errors: Floats) -> tuple[bool, int]:
    """Put the domain's inequalities on the root's stack and find a vertex; whether there is one, and the inequalities are not lost in rounding; and how many rows these are."""
    p = primal.space.dimensions
    starts, depth = bool(refresh(primal, root, 0)), 0
    for normal, constant, error in zip(normals, constants, errors, strict=True):
        if np.any(normal != 0.0):
            row, size = primal.rows[root, depth], np.abs(normal).sum() + abs(constant)
            row[:p], row[p] = normal / size, constant / size
            row[p + 1], row[p + 2] = max(row[:p] @ primal.space.gram @ row[:p], 1e-30), error / size
            found = raise_row(primal, root, depth, GOAL, False)  # noqa: FBT003  compiled functions take no keywords
            starts = starts and found == FEASIBLE and bool(error <= UNHARMFUL * size)
            depth += 1
    return starts, depth


def _add_corners(descent: Descent, root: int) -> None:
    """Points of the root: corners of the box that are furthest in random directions, with their (empty) bases."""
    points, frame, rows = (
        descent.primal.points,
        descent.primal.space.frame,
        descent.primal.rows[root, : descent.nodes.depth[root]],
    )
    p, ring = len(frame), len(points.owners) - POINTS
    points.known[root] = 0
    sides = np.where(np.random.default_rng(p).standard_normal((_CORNERS, p)) @ frame > 0.0, 1, -1)
    for side, place in zip(sides, EDGE * sides @ frame.T, strict=True):
        if (rows[:, :p] @ place + rows[:, p] >= GOAL).all():
            known = points.known[root]
            points.places[root, :, known], points.sides[ring + known] = place, side
            points.known[root] += 1
