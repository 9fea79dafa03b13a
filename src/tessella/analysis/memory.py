"""How much memory an analysis will take, before any of it is taken."""

from itertools import pairwise

from tessella.partition.tree import Tree
from tessella.stability import Stability

_CERTAIN = 4 << 30  # bytes that are too many for certain
_COPIES = 2  # two processes: one counts, the other estimates


def memory_to_walk(known: Stability) -> int:
    """Bytes that counting and random descents take for a network, about; where unstable units alone take many, no tree is made to find out.

    Examples
    --------
    >>> from tessella import Box, Network, stability
    >>> memory_to_walk(stability(Network.from_arrays([([[1.0], [-1.0]], None)] , relu_output=True), Box(-1, 1, dim=1)))
    64
    """
    units = [int(mask.sum()) for mask in known.unstable]
    least = sum(16 * one * other for one, other in pairwise(units))
    return _COPIES * (least if least > _CERTAIN else Tree.of(known).bytes)


def format_size(memory: int) -> str:
    """Write a size for people.

    Examples
    --------
    >>> format_size(1_000), format_size(100_000_000), format_size(2_500_000_000)
    ('1 kB', '100 MB', '2.5 GB')
    """
    if memory < 1e6:
        return f"{max(memory, 1e3) / 1e3:,.0f} kB"
    return f"{memory / 1e9:,.1f} GB" if memory >= 1e9 else f"{memory / 1e6:,.0f} MB"
