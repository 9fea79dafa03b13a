"""What bounds the rest of a count from above: cells of the first layer, listed beside it.

An open node is bounded by what the network's shape allows below it, which knows nothing of its cell: so the upper end of a count hardly falls before the end.  Where inputs are few, most of a layer's hyperplanes
do not cross a cell.  Then workers spend a small part of their time on a list of the first layer's cells (`tessella.counting.cellwise`); when the list is whole, or the count ends, open nodes are bounded by
what is known of these.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tessella.kernel import meter
from tessella.parallel import Stop
from tessella.partition.local import LocalBound
from tessella.partition.tree import Tree

if TYPE_CHECKING:
    from tessella.counting.cellwise import Cellwise

_FEW_INPUTS = 16  # free inputs up to which it brings much
_LATER = 1.0  # seconds of a count before anything is listed: most counts are over by then
_PART = 0.15  # of the time of all workers


class Beside:
    """Lists cells for a part of the time of a count's workers, one of which does it at a time.

    Parameters
    ----------
    tree
        What is counted.
    bound
        The most regions below a prefix, as the shape tells.
    """

    def __init__(self, tree: Tree, bound: LocalBound) -> None:
        """Nothing is listed."""
        self._tree, self._bound, self._spent = tree, bound, 0.0
        layers = sum(layer.relus > 0 for layer in tree.network.layers)
        self._hopeful = layers > 1 and 0 < tree.domain.free_dim <= _FEW_INPUTS
        self._cellwise: Cellwise | None = None

    def due(self, worked: float) -> bool:
        """Whether it is time to list some more, where all workers together have worked so long; code is loaded before the first time."""
        if not self._hopeful or worked < _LATER or self._spent > _PART * worked:
            return False
        if self._cellwise is None:
            from tessella.counting.cellwise import Cellwise, Lister, is_listable  # noqa: PLC0415  loads the compiler
            from tessella.kernel import warming  # noqa: PLC0415

            self._hopeful = is_listable(self._tree)
            if self._hopeful:
                warming.load(Lister.functions(self._tree))
                self._cellwise = Cellwise(self._tree, self._bound)
        return self._hopeful

    def work(self, seconds: float, stop: Stop) -> None:
        """List for about this long; in a worker."""
        if self._cellwise is not None:
            begun = meter.clock()
            self._cellwise.advance(seconds, stop)
            self._spent += meter.clock() - begun
            self._hopeful = not (self._cellwise.finished or self._cellwise.full)

    @property
    def lists(self) -> bool:
        """Whether the list is begun, and goes on."""
        return self._hopeful and self._cellwise is not None

    def known(self) -> Callable[[bytes], int]:
        """The most regions below a prefix, with what is listed by now."""
        if self._cellwise is None:
            return self._bound
        from tessella.counting.cellwise import KnownBound  # noqa: PLC0415  loads the compiler

        return KnownBound(self._bound, self._cellwise.cells)
