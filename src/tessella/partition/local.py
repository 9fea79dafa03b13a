"""How many regions there can be below a prefix: what an unfinished count is bounded by from above.

**Theorem.**  Let a prefix decide all layers up to number l - 1 and, of layer l, all but m ReLUs, a of the decided ones active.  Let d be the
least, over the layers before, of their active and linear units together, and at most the dimension of the domain.  Let B(l, d) be
the configuration bound of the layers l, l + 1, ... on dimension d, and p the number of linear units in layer l.  Then there are at most

    sum over j = 0 .. min(m, d) of  C(m, j) B(l + 1, min(d, a + p + m - j))

regions below the prefix.

*Proof.*  In the prefix's cell, which is convex, what layer l reads is an affine function of the inputs.  Its values span at most d dimensions: each
layer before computes it from its active and linear units alone, the others being 0.  So the preactivations of the m undecided
ReLUs are affine functions on a d-dimensional convex set; where they are constant they cut nothing; they cut it into at most
N = sum(C(m, j), j = 0 .. min(m, d)) parts (Zaslavsky 1975).  Different parts have different sets of inactive units among
the m, so at most C(m, j) of the parts have j of them.  In such a part layer l has a + m - j active and p linear units, so the layers after it see a
dimension of at most min(d, a + p + m - j) and make at most B(l + 1, .) regions of it, by the theorem behind the configuration bound
(Serra, Tjandraatmadja and Ramalingam, ICML 2018).  B grows with the dimension, so it falls with j: no choice of N parts, at most
C(m, j) of kind j, has a larger sum than taking all those of j = 0, then all of j = 1, and so on up to j = min(m, d).  These are N parts.
A prefix whose cell has no interior has no regions, and any bound holds.  QED.

*Leaky units* are never lost.  Read "active" as "active or leaky" for the units that are decided, and let l of the m undecided ReLUs be leaky: a part with j of the m
inactive then passes on at least j - l units fewer, so its dimension is at most min(d, a + p + m - max(j - l, 0)), which still falls with j.

*Cells that are known.*  The proof uses that the m ReLUs make at most N parts.  If fewer are known to cross a prefix's cell, m counts these alone; and if they are known to make at most M parts, no more than M are
taken, in the same order.

With nothing decided this is the configuration bound itself.  Where part of a layer is decided, the two children of a prefix may be bounded by more than their
parent: no more than d units of the whole layer are counted as inactive together, which the children's bounds do not remember.  Both are
true, so the smaller one may be kept.

A homogeneous tree (`tessella.unbounded`) stands for a network on an unbounded domain with one input less, and without the linear units that carry t: the
theorem is used for these, whose regions below a prefix are the same.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from operator import gt

from tessella.partition.tree import Tree
from tessella.upper.configuration import Stage, configuration, configurations, is_heavy, stages

_MOST_KNOWN = 200_000


class LocalBound:
    """An upper bound on the regions below a prefix, for all prefixes of a tree.

    Examples
    --------
    >>> from tessella.domain import Box
    >>> from tessella.network import Network
    >>> net = Network.from_arrays([([[1.0], [-1.0]], None), ([[1.0, 1.0]], [-0.5])], relu_output=True)
    >>> bound = LocalBound(Tree(net, Box(-1, 1, dim=1)))
    >>> bound(b""), bound(bytes([0])), bound(bytes([0, 0])), bound(bytes([0, 1])), bound(bytes([0, 1, 1]))
    (6, 3, 1, 2, 1)
    >>> bound.within(bytes([0, 1]), 0, 0, 1, None)
    1
    """

    def __init__(self, tree: Tree) -> None:
        """Remember the layers' sizes; without t and the units that carry it, where the tree is homogeneous."""
        extra = int(tree.homogeneous)
        self._dim = tree.domain.free_dim - extra
        self._stages = [replace(stage, linear=max(stage.linear - extra, 0)) for stage in stages(tree.network)]
        self._leaky = b"".join(layer.leaky[layer.rectified].tobytes() for layer in tree.network.layers)
        self._known = dict[tuple[int, int, int, int, int], int]()
        self._after = dict[int, list[int]]()

    def __call__(self, prefix: bytes) -> int:
        """The bound; asked for the same kind of prefix again, it is looked up."""
        dim, start = self._dim, 0
        for number, stage in enumerate(self._stages):
            end = start + stage.relus
            carrying = self._carrying(stage, prefix, start, end)
            if len(prefix) < end:
                return self._partly(number, end - len(prefix), self._leaky.count(1, len(prefix), end), carrying, dim)
            dim = min(dim, carrying + stage.linear)
            start = end
        return 1

    def within(self, prefix: bytes, crossing: int, leaky: int, carrying: int, parts: int | None) -> int:
        """The bound of a cell, where more is known of the layer behind it.

        Parameters
        ----------
        prefix
            All decisions of the layers before that one.
        crossing, leaky
            How many of its ReLUs may have both states, and how many of these are leaky.
        carrying
            How many others of its ReLUs may pass something on.
        parts
            How many parts they make of the cell, at most; None for as many as the dimension allows.
        """
        dim, start, layer = self._dim, 0, 0
        for stage in self._stages:
            end = start + stage.relus
            if len(prefix) < end:
                break
            dim = min(dim, self._carrying(stage, prefix, start, end) + stage.linear)
            start, layer = end, layer + 1
        if parts is None:
            return self._partly(layer, crossing, leaky, carrying, dim)
        widest, found = carrying + crossing + self._stages[layer].linear, 0
        for j, way in enumerate(_ways(crossing, dim)):
            taken = min(way, parts)
            found += taken * self._below(layer + 1, min(dim, widest - max(j - leaky, 0)))
            parts -= taken
        return found

    def _carrying(self, stage: Stage, prefix: bytes, start: int, end: int) -> int:
        """How many of a layer's ReLUs, which the prefix decides from ``start`` on, pass something on."""
        carrying = prefix.count(1, start, end)
        if stage.leaky:
            carrying += sum(map(gt, self._leaky[start:end], prefix[start:end]))  # leaky and inactive
        return carrying

    def _partly(self, layer: int, undecided: int, leaky: int, active: int, dim: int) -> int:
        """The theorem's sum."""
        key = (layer, undecided, leaky, active, dim)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            widest = active + undecided + self._stages[layer].linear
            ways = enumerate(_ways(undecided, dim))
            found = sum(way * self._below(layer + 1, min(dim, widest - max(j - leaky, 0))) for j, way in ways)
            self._known[key] = found
        return found

    def _below(self, layer: int, dim: int) -> int:
        """The configuration bound of the layers from this one on."""
        stages = self._stages[layer:]
        if layer not in self._after:
            heavy = is_heavy(self._dim, stages, times=2)
            self._after[layer] = [configuration(self._dim, stages)] if heavy else configurations(self._dim, stages)
        known = self._after[layer]
        return known[min(dim, len(known) - 1)]


def _ways(units: int, dim: int) -> Iterator[int]:
    """C(units, j) for j up to the dimension, each from the one before: wide layers would take long otherwise."""
    return accumulate(range(min(units, dim)), lambda before, j: before * (units - j) // (j + 1), initial=1)
