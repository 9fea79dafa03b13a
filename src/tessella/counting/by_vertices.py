"""The walk over corners, for one to six free inputs, and what it leaves: parts of the tree that it cannot decide are walked by linear programs.

Where many hyperplanes meet in one point, corners and walls may not fit together, and all that lies below is thin to the walk over corners.  A linear program does not mind: it asks for a point
inside.  So only what is thin to it, too, is left to exact arithmetic.  A prefix below which few regions can lie is not worth the walk.
"""

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from tessella.kernel.functions import Apart
from tessella.parallel import Stop
from tessella.partition.local import LocalBound
from tessella.partition.settler import FEW
from tessella.partition.tree import Found, Node, Tree
from tessella.vertices.walker import Vertices

if TYPE_CHECKING:
    from tessella.counting.by_programs import ByPrograms


class ByVertices:
    """Counts the regions below nodes by corners, and by linear programs where these fail; a `tessella.partition.tree.Walker`.

    Parameters
    ----------
    tree
        What is walked.

    Examples
    --------
    >>> from tessella import Box, Network
    >>> network = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 0.0, 0.5])], relu_output=True)
    >>> ByVertices(Tree(network, Box(-1, 1, dim=2))).advance([Node()], 1.0, Stop()).regions
    7
    """

    def __init__(self, tree: Tree) -> None:
        """Nobody walks by linear programs yet; nothing of these is compiled before they are needed."""
        self._tree, self._vertices, self._bound = tree, Vertices(tree), LocalBound(tree)
        self._programs: ByPrograms | None = None

    @classmethod
    def functions(cls, tree: Tree) -> tuple[Apart, ...]:
        """The compiled functions that most walks call: those over corners."""
        return Vertices.functions(tree)

    @property
    def bytes(self) -> int:
        """Memory held."""
        return self._vertices.bytes + (self._programs.bytes if self._programs else 0)

    def advance(self, nodes: Sequence[Node], seconds: float, stop: Stop) -> Found:
        """Walk for about this long, or until it is asked to stop; at least one step is made."""
        end = perf_counter() + seconds
        found = self._vertices.advance(nodes, seconds, stop)
        large = [prefix for prefix in found.thin if self._bound(prefix) > FEW]
        if not large:
            return found
        more = self._by_programs().advance([Node(prefix, len(prefix)) for prefix in large], max(end - perf_counter(), 0.0), stop)
        # what was not come to is thin still: an open node would be known to have an interior
        came, thin = set(large), [prefix for prefix in found.thin if self._bound(prefix) <= FEW]
        thin += [*more.thin, *(node.prefix for node in more.open if node.prefix in came)]
        opened = [node for node in more.open if node.prefix not in came]
        return Found(found.regions + more.regions, (*found.open, *opened), tuple(thin), found.tests + more.tests)

    def _by_programs(self) -> "ByPrograms":
        if self._programs is None:
            from tessella.counting.by_programs import ByPrograms  # noqa: PLC0415  loads more of the compiler
            from tessella.kernel import warming  # noqa: PLC0415  the same

            warming.load(ByPrograms.functions(self._tree))
            self._programs = ByPrograms(self._tree)
        return self._programs
