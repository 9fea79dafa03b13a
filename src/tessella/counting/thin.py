"""What becomes of thin prefixes in a count: exact arithmetic says whether they are there, and walkers go on below them.

What is thin is mostly one decision: whether a unit that touches a cell cuts it.  Once that is known, what lies below is no harder than elsewhere.  So a prefix that may hold more than a few regions
is walked as soon as its cell is proved to be there.  Only where the walker cannot enter the cell, because it is thin itself, it is split into its two sides.
"""

from collections.abc import Sequence

from tessella.kernel import meter
from tessella.parallel import Stop
from tessella.partition.settler import Settler
from tessella.partition.tree import Found, Node, Walker


def settle(prefixes: Sequence[bytes], settler: Settler, walker: Walker, seconds: float, stop: Stop) -> Found:
    r"""Count the regions below thin prefixes for about this long, or until it is asked to stop; at least one step is made.

    Parameters
    ----------
    prefixes
        Which; the last one is settled first.
    settler
        Decides what is there.
    walker
        Walks below what is there.
    seconds, stop
        How long.

    Examples
    --------
    >>> from tessella import Box, Network, stability
    >>> from tessella.counting.by_vertices import ByVertices
    >>> from tessella.partition.tree import Tree
    >>> network = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], None)], relu_output=True)
    >>> tree = Tree.of(stability(network, Box(-1, 1, dim=2), method="interval"))
    >>> settle([b"\0", b"\1"], Settler(tree), ByVertices(tree), 1.0, Stop()).regions
    6
    """
    end, waiting, opened = meter.clock() + seconds, list(prefixes), list[Node]()
    left, regions, cells = list[bytes](), 0, 0
    while waiting:
        prefix = waiting.pop()
        cells += 1
        if settler.holds_few(prefix):
            regions += settler.exact.count(prefix)
        elif settler.exact.exists(prefix):
            found = walker.advance([Node(prefix, len(prefix))], max(end - meter.clock(), 0.0), stop)
            if found.thin == (prefix,) and not (found.regions or found.open):  # the walker cannot enter it
                waiting += [prefix + b"\0", prefix + b"\1"]
            else:
                regions, cells = regions + found.regions, cells + found.tests
                opened += found.open
                left += found.thin
        if stop.asked or meter.clock() > end:
            break
    return Found(regions, tuple(opened), (*left, *waiting), cells)
