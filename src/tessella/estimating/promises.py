"""What a sampler promises: how many parts each layer may make of a cell, so that every region can be reached with the same probability.

**The table.**  Let V(l, d) be a number such that layers l, l + 1, ... make at most V(l, d) regions of a cell whose image before layer l has dimension d, and V = 1 behind the last layer.  Of a
layer's *deciding* units (ReLUs that are no multiple of an earlier one of their layer) let c be *losing*: where one is inactive it passes nothing on, nor do its multiples.  The f others are leaky, or
have a multiple of the opposite sign.  With m linear units (as few as `Tree.walked` needs), a part where j losing units are inactive passes on at most min(d, c - j + f + m) dimensions.  So both of these are bounds, and V is the smaller one:

- *signs*: 2^f times the sum over j of C(c, j) V(l + 1, min(d, c - j + f + m)), because a part is told by its signs;
- *sets*: Z(c + f, d) V(l + 1, min(d, c + f + m)), where Z(n, d) = C(n, 0) + ... + C(n, d), because n hyperplanes cut a d-dimensional convex set into at most Z(n, d) parts (Zaslavsky 1975).

V grows with d, as both do.  A descent that is in a cell of dimension d draws, in proportion to these promises, either signs or a set of hyperplanes (`tessella.estimating.tokens` says which part a set stands for).  What
was promised for a set is V(l + 1, p) with the largest p; if the part has dimension e, the descent goes on with probability V(l + 1, e) / V(l + 1, p) only.  So each part that exists is reached with
probability V(l + 1, e) / V(l, d), and each region with the product of these: 1 / V(0, dimension of the domain).  QED.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import comb

import numpy as np

from tessella.network import Floats, Mask
from tessella.partition.tree import Integers, Tree

SIGNS, SETS = range(2)


@dataclass(frozen=True, slots=True)
class Deciding:
    """A layer's units as a sampler sees them."""

    losing: int  # how many deciding units pass nothing on where they are inactive
    lasting: int  # how many others there are
    linear: int  # how many units have no ReLU

    @property
    def units(self) -> int:
        """How many units decide."""
        return self.losing + self.lasting

    @property
    def most(self) -> int:
        """How many dimensions are passed on, at most."""
        return self.units + self.linear


@dataclass(frozen=True)
class Promises:
    """The table of a tree.

    Examples
    --------
    >>> from tessella import Box, Network, stability
    >>> network = Network.from_arrays([([[1.0], [-1.0]], [0.5, 0.5]), ([[1.0, 1.0]], [-1.5])], relu_output=True)
    >>> Promises.of(Tree.of(stability(network, Box(-2, 2, dim=1)))).total
    6
    """

    layers: tuple[Deciding, ...]  # the tree's layers
    dim: int  # the dimension of the domain

    @classmethod
    def of(cls, tree: Tree) -> "Promises":
        """The table of a tree."""
        found = list[Deciding]()
        for number, layer in enumerate(tree.network.layers):
            kinds = Roles.of(tree, number)
            decides = kinds.first < 0
            linear = min(layer.linear_units, tree.walked.layers[number].linear_units)
            found.append(Deciding(int(kinds.losing.sum()), int((decides & ~kinds.losing).sum()), linear))
        return cls(tuple(found), tree.domain.free_dim)

    @property
    def total(self) -> int:
        """How many regions are promised in all."""
        return self.table[0][self.start]

    @cached_property
    def widest(self) -> int:
        """The largest dimension that makes a difference."""
        return max(layer.most for layer in self.layers)

    @property
    def start(self) -> int:
        """The dimension of the domain, as far as it makes a difference."""
        return min(self.dim, self.widest)

    @cached_property
    def table(self) -> list[list[int]]:
        """V(l, d), and behind the last layer 1."""
        rows = [[1] * (self.widest + 1)]
        for layer in reversed(self.layers):
            rows.append([min(_signs(layer, dim, rows[-1]), _sets(layer, dim, rows[-1])) for dim in range(self.widest + 1)])
        return rows[::-1]

    def mode(self, number: int, dim: int) -> int:
        """What is drawn."""
        layer, after = self.layers[number], self.table[number + 1]
        return SIGNS if _signs(layer, dim, after) <= _sets(layer, dim, after) else SETS

    def modes(self) -> Integers:
        """What is drawn, by layer and dimension."""
        return np.array(
            [[self.mode(layer, dim) for dim in range(self.widest + 1)] for layer in range(len(self.layers))], dtype=np.int64
        )

    def shares(self) -> Floats:
        """By layer and dimension: the probability of at most 0, 1, ... inactive losing units, or of sets of at most so many members."""
        room = max(layer.units for layer in self.layers) + 1
        found = np.ones((len(self.layers), self.widest + 1, room))
        for number, layer in enumerate(self.layers):
            for dim in range(self.widest + 1):
                if self.mode(number, dim) == SIGNS:
                    after = self.table[number + 1]
                    ways = [comb(layer.losing, j) * after[min(dim, layer.most - j)] for j in range(layer.losing + 1)]
                else:
                    ways = [comb(layer.units, size) for size in range(min(layer.units, dim) + 1)]
                sums = list(accumulate(ways))
                found[number, dim, : len(sums)] = [part / sums[-1] for part in sums]
        return found

    def kept(self) -> Floats:
        """By layer, dimension before and behind: the probability that a part which a set stands for is kept."""
        found = np.ones((len(self.layers), self.widest + 1, self.widest + 1))
        for number, layer in enumerate(self.layers):
            after = self.table[number + 1]
            for dim in range(self.widest + 1):
                most = after[min(dim, layer.most)]
                found[number, dim] = [min(own / most, 1.0) for own in after]
        return found


@dataclass(frozen=True, slots=True)
class Roles:
    """What each ReLU of a layer does."""

    first: Integers  # the first ReLU of the layer that it is a multiple of, if that is another one; else -1: it decides
    factors: Integers  # the sign of the factor; 0 if it decides
    losing: Mask  # whether it decides, and nothing is passed on where it is inactive, by it or by its multiples

    @classmethod
    def of(cls, tree: Tree, number: int) -> "Roles":
        """Those of one layer."""
        layer, walked = tree.network.layers[number], tree.walked.layers[number].rectified
        twins = tree.twins[number][walked]
        first = np.where(twins >= 0, np.cumsum(walked)[twins] - 1, -1)
        rows = np.column_stack([layer.dense(), layer.bias])[layer.rectified]
        leaky = layer.leaky[layer.rectified]
        losing, factors = (first < 0) & ~leaky, np.zeros(len(first), dtype=np.int64)
        for unit in np.flatnonzero(first >= 0).tolist():
            one = int(first[unit])
            place = int(np.abs(rows[one]).argmax())
            factors[unit] = 1 if (rows[one, place] > 0.0) == (rows[unit, place] > 0.0) else -1
            losing[one] &= bool(factors[unit] > 0 and not leaky[unit])
        return cls(first, factors, losing)


def _signs(layer: Deciding, dim: int, after: list[int]) -> int:
    """How many regions are promised where signs are drawn."""
    return 2**layer.lasting * sum(comb(layer.losing, j) * after[min(dim, layer.most - j)] for j in range(layer.losing + 1))


def _sets(layer: Deciding, dim: int, after: list[int]) -> int:
    """The same where sets are drawn."""
    return sum(comb(layer.units, size) for size in range(min(layer.units, dim) + 1)) * after[min(dim, layer.most)]
