"""Counts, or writes down, the regions of a tree by the corners of its cells."""

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from tessella.cells.residues import Residues
from tessella.kernel.functions import Apart
from tessella.parallel import Stop
from tessella.partition.tree import Found, Node, Tree
from tessella.vertices import root
from tessella.vertices.layers import is_moderate, layers_of, norm
from tessella.vertices.outlines import Outlines, draw
from tessella.vertices.state import make_higher, new_walk
from tessella.vertices.walk import DONE, FULL, HIGHER, LOST, SPENT, walk_on

_BUDGET = 500_000  # units of work between two looks at the clock, a few milliseconds
_OF_ROOT = (
    "points",
    "walls",
    "plane_of",
    "ratio",
    "corners",
    "cuts",
    "tangled",
    "central",
    "apex",
)  # what the root knows of itself

Prefixes = tuple[bytes, ...]


class Vertices:
    """Counts regions by the corners of cells, for one to six free inputs; one serves one thread.

    A test, in what it reports, is one unit whose sign was asked for at the corners of one cell.

    Parameters
    ----------
    tree
        What is walked.
    drawn
        How many regions `outlines` writes down at a time; 0 for one that only counts.

    Examples
    --------
    >>> from tessella import Box, Network
    >>> network = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 0.0, 0.5])], relu_output=True)
    >>> Vertices(Tree(network, Box(-1, 1, dim=2))).advance([Node()], 1.0, Stop()).regions
    7
    """

    def __init__(self, tree: Tree, drawn: int = 0) -> None:
        """Copy the network; nothing is compiled yet."""
        dim, inequalities = tree.scaled.weights[0].shape[1], len(tree.scaled.constants)
        layers, self._first = layers_of(tree)
        self._tree = tree
        self._walk = new_walk(layers, Residues.of(tree), dim, inequalities, drawn)
        self._start: dict[str, Any] | None = None
        self._is_clear = False

    @classmethod
    def functions(cls, _tree: Tree | None = None, *, writer: Apart | None = None) -> tuple[Apart, ...]:
        """The compiled functions that a walk calls, the same for every tree; if regions are written down, what writes them, too."""
        return (walk_on, *root.FUNCTIONS, *((writer,) if writer else ()))

    @property
    def bytes(self) -> int:
        """Memory held."""
        walk = self._walk
        return sum(getattr(walk, name).nbytes for name in walk.kind().fields)

    def advance(self, nodes: Sequence[Node], seconds: float, stop: Stop) -> Found:
        """Walk for about this long, or until it is asked to stop; at least one step is made."""
        if not self._begin():
            return Found(0, (), tuple(node.prefix for node in nodes))
        end, regions, tests = perf_counter() + seconds, 0, 0
        thin, waiting, left, late = list[bytes](), list(nodes), list[Node](), False
        while waiting and not late:
            node, status = waiting.pop(), HIGHER
            self._load(node)
            while status == HIGHER or (status in {SPENT, FULL} and not late):
                status = walk_on(_BUDGET, self._walk)
                tally = self._walk.tally
                regions, tests = regions + tally.regions, tests + tally.tests
                thin += self._take_thin()
                late = perf_counter() > end or stop.asked
                if status == HIGHER:
                    make_higher(self._walk.cells)
            if status == LOST:
                thin.append(node.prefix)
            elif status != DONE:
                left = self._open()
        return Found(regions, (*waiting, *left), tuple(thin), tests)

    def outlines(self, writer: Apart = draw) -> Iterator[Outlines]:
        """All regions of the tree, some at a time, and the prefixes that are thin.

        Parameters
        ----------
        writer
            What writes a region down: `draw` for one or two free inputs, or one of `tessella.vertices.noting`.
        """
        drawing, status = self._walk.drawing, SPENT
        if not self._begin():
            yield self._take_drawn((b"",))
            return
        drawing.writer = writer.address
        self._load(Node())
        while status in {SPENT, FULL, HIGHER}:
            status = walk_on(_BUDGET, self._walk)
            thin = self._take_thin()
            yield self._take_drawn((*thin, b"") if status == LOST else thin)
            if status == HIGHER:
                make_higher(self._walk.cells)

    def _take_thin(self) -> Prefixes:
        """The prefixes found thin; what was found is set back."""
        tally = self._walk.tally
        thin = tuple(tally.thin[number, : tally.lengths[number]].tobytes() for number in range(tally.found))
        tally.found = tally.regions = tally.tests = 0
        return thin

    def _take_drawn(self, thin: Prefixes) -> Outlines:
        """The regions that were written down; what is written next takes their place."""
        drawing = self._walk.drawing
        drawn, placed = drawing.regions, drawing.placed
        drawing.regions = drawing.placed = 0
        corners, borders = drawing.corners[:placed].copy(), drawing.borders[:placed].copy()
        patterns, sizes = drawing.patterns[:drawn].copy(), drawing.sizes[:drawn].copy()
        return Outlines(patterns, sizes, corners, borders, thin, drawing.volumes[:drawn].copy())

    def _begin(self) -> bool:
        """Find the corners of the domain, once; False if they are not clear, or numbers may become too large."""
        if self._start is None:
            self._is_clear = is_moderate(self._walk.layers, self._first) and root.place_root(self._tree, self._walk)
            self._start = {name: np.copy(getattr(self._walk.cells, name)[0]) for name in _OF_ROOT}
        return self._is_clear

    def _load(self, node: Node) -> None:
        """Begin at the root, guided to a node."""
        cells, path, guide, tally = self._walk.cells, self._walk.path, self._walk.guide, self._walk.tally
        for name, start in (self._start or {}).items():
            getattr(cells, name)[0] = start
        for name in ("undecided", "layer", "length", "sign", "place", "splits", "sharp", "odd"):
            getattr(cells, name)[0] = 0
        cells.below[0, :, : self._first.shape[1]] = self._first
        cells.enters[0] = 1
        cells.top = 0
        path.norm[0], path.past[0], path.own[0] = norm(self._walk.layers.slack[0]), 0.0, 0.0
        guide.decisions[: len(node.prefix)] = np.frombuffer(node.prefix, dtype=np.int8)
        guide.length, guide.splits = len(node.prefix), node.splits
        tally.found = tally.regions = tally.tests = 0

    def _open(self) -> list[Node]:
        """The cells that wait."""
        cells, layers = self._walk.cells, self._walk.layers
        pattern = b"".join(row[:relus].tobytes() for row, relus in zip(self._walk.path.pattern, layers.relus, strict=True))
        return [
            Node(pattern[: cells.length[s] - 1] + bytes([int(cells.sign[s])]), int(cells.splits[s])) for s in range(cells.top + 1)
        ]
