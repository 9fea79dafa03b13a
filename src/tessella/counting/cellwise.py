"""A bound from above that knows cells: those of the first layer are listed, with the units of the next one that cross each, and the pairs of them that meet there.

Cells that are listed are bounded by `LocalBound.within`, with the parts that `tessella.counting.crossings` proves.  What was not reached, or cannot be decided, is bounded by the shape.  So the sum is a bound at any time, and it falls as
the list grows.  It pays where the first layer has few cells, and inputs are few: there most of a layer's hyperplanes do not cross a cell.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from tessella.counting import depth_first
from tessella.counting.by_programs import ByPrograms, decide_by_programs
from tessella.counting.crossings import list_cell
from tessella.counting.depth_first import go_on
from tessella.counting.layout import solver_for
from tessella.counting.state import Crossings
from tessella.kernel.functions import Apart, address_of
from tessella.parallel import Stop
from tessella.partition.local import LocalBound
from tessella.partition.tree import Node, Tree

_ROOM = 1 << 14  # cells between two looks at what was listed: more than a walk may go through meanwhile
_LARGEST, _MOST_UNITS, _MOST_INPUTS = (
    1 << 26,
    1024,
    8192,
)  # bytes of the first two layers, their units, and inputs: one step takes a part of a second
_MOST_CELLS = 1_000_000  # listed; beyond it, the rest is bounded by the shape
_END = b"\xff"  # after all decisions


class Cell(NamedTuple):
    """A cell that is bounded."""

    prefix: bytes  # the decisions that lead to it
    most: int  # the regions that it has at most


def is_listable(tree: Tree) -> bool:
    """Whether there is room to list the cells of a tree's first layer; else there are far too many, too."""
    first = first_layers(tree)
    return first.bytes < _LARGEST and first.units <= _MOST_UNITS and first.domain.free_dim <= _MOST_INPUTS


def first_layers(tree: Tree) -> Tree:
    """The tree of the layers up to the second one that has ReLUs."""
    layers, found = tree.network.layers, 0
    for number, layer in enumerate(layers, start=1):
        found += 1 if layer.relus else 0
        if found == 2:  # noqa: PLR2004  the first one's cells, and what crosses them
            return replace(tree, network=replace(tree.network, layers=layers[:number]))
    return tree


class Lister(ByPrograms):
    """Lists the cells of a tree's first layer, each with a bound, as `Cellwise` takes them; one serves one thread."""

    def __init__(self, tree: Tree, bound: LocalBound) -> None:
        """Lay out the first two layers."""
        first = first_layers(tree)
        super().__init__(first)
        self.bound, self.cells, self._behind = bound, list[Cell](), first.network.layers[-1].relus
        layers = [layer for layer in first.network.layers if layer.relus]
        crossings = Crossings.of(_ROOM, self._walk.layers, self._walk.cell.space.dimensions)
        crossings.lasting[:] = np.concatenate([layer.leaky[layer.rectified] for layer in layers])
        crossings.follows[:] = self._twin
        crossings.dim, crossings.linear = first.domain.free_dim, layers[0].linear_units
        self._walk = self._programs = self._walk.with_fields(
            crossings=crossings, count_faces=address_of(depth_first.count_faces, list_cell)
        )

    @classmethod
    def functions(cls, tree: Tree) -> tuple[Apart, ...]:
        """The compiled functions that a list of this tree's cells calls."""
        return go_on, decide_by_programs, list_cell, solver_for(first_layers(tree))

    def _go_on(self, fixed: int, *, careful: bool) -> int:
        """Walk for about a hundredth of a second, and take what was listed."""
        status = super()._go_on(fixed, careful=careful)
        found = self._walk.crossings
        length = found.signs.shape[1] if self._behind < self._units else 0
        numbers = zip(
            *(part[: found.count].tolist() for part in (found.sizes, found.leaky, found.carrying, found.parts)), strict=True
        )
        for signs, (size, leaky, carrying, parts) in zip(found.signs[: found.count, :length], numbers, strict=True):
            prefix = signs.tobytes()
            most = self.bound.within(prefix, size, leaky, carrying, None if parts < 0 else parts)
            self.cells.append(Cell(prefix, min(most, self.bound(prefix))))
        found.count = 0
        return status


class Cellwise:
    """The bound of a whole tree, which has a unit and a domain with a free input; made in slices of time, from a bound on the regions below prefixes.

    Examples
    --------
    >>> from tessella import Box, Network
    >>> network = Network.from_arrays([([[1.0], [-1.0]], None), ([[1.0, 1.0]], [-0.5])], relu_output=True)
    >>> tree = Tree(network, Box(-1, 1, dim=1))
    >>> cellwise = Cellwise(tree, LocalBound(tree))
    >>> cellwise.most
    6
    >>> cellwise.advance(1.0)
    >>> cellwise.most, cellwise.finished
    (4, True)
    """

    def __init__(self, tree: Tree, bound: LocalBound) -> None:
        """Nothing is listed."""
        self._lister = Lister(tree, bound)
        self._bound, self._open, self._thin = bound, [Node()], list[Cell]()
        self._shape = bound(b"")

    @property
    def full(self) -> bool:
        """Whether there is no room for more cells."""
        return len(self._lister.cells) >= _MOST_CELLS

    @property
    def finished(self) -> bool:
        """Whether all cells are listed."""
        return not self._open

    @property
    def share(self) -> float:
        """About which part of the first layer's tree is listed: each side of a unit is taken for half of it."""
        return 1.0 - sum(0.5**node.splits for node in self._open)

    @property
    def cells(self) -> list[Cell]:
        """All cells, those that are not listed bounded by the shape."""
        return [*self._lister.cells, *self._thin, *(Cell(node.prefix, self._bound(node.prefix)) for node in self._open)]

    @property
    def most(self) -> int:
        """The regions that there are at most."""
        return min(self._shape, sum(cell.most for cell in self.cells))

    def advance(self, seconds: float, stop: Stop | None = None) -> None:
        """List for about this long, or until it is asked to stop."""
        if self._open and not self.full:
            listed = len(self._lister.cells)
            try:
                found = self._lister.advance(self._open, seconds, stop or Stop())
            except KeyboardInterrupt:  # what is listed of this slice belongs to nodes that are still open
                del self._lister.cells[listed:]
                raise
            self._thin += [Cell(prefix, self._bound(prefix)) for prefix in found.thin]
            self._open = list(found.open)


class KnownBound:
    """The most regions below a prefix, from the shape and from cells that are known.

    Parameters
    ----------
    bound
        From the shape.
    cells
        Cells of which none lies in another, and which hold all regions; in any order.

    Examples
    --------
    >>> from tessella import Box, Network
    >>> network = Network.from_arrays([([[1.0], [-1.0]], None), ([[1.0, 1.0]], [-0.5])], relu_output=True)
    >>> bound = LocalBound(Tree(network, Box(-1, 1, dim=1)))
    >>> known = KnownBound(bound, [Cell(bytes([1]), 2), Cell(bytes([0]), 2)])
    >>> bound(b""), known(b""), bound(bytes([0])), known(bytes([0])), known(bytes([0, 1]))
    (6, 4, 3, 2, 2)
    """

    def __init__(self, bound: LocalBound, cells: Sequence[Cell]) -> None:
        """Sort the cells."""
        ordered = sorted(cells)
        self._bound, self._prefixes = bound, [cell.prefix for cell in ordered]
        self._sums = list(accumulate((cell.most for cell in ordered), initial=0))

    def __call__(self, prefix: bytes) -> int:
        """The bound; cells below a prefix add up, and one that holds it bounds it, too."""
        most, first = self._bound(prefix), bisect_left(self._prefixes, prefix)
        below = self._sums[bisect_left(self._prefixes, prefix + _END, first)] - self._sums[first]
        if not below and first and prefix.startswith(self._prefixes[first - 1]):
            below = self._sums[first] - self._sums[first - 1]
        return min(most, below) if below else most
