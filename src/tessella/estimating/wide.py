"""Random descents for many inputs and many units: one point in the middle of its cell, and no linear programs.

**Why no test is needed.**  Let a descent choose signs in any way, and let q be the product of the probabilities of its choices.  Then X = 1 / q if the pattern
that it ends in is a region, and 0 if not, has mean N, the number of regions, as long as every region can be reached: sum of q times 1 / q over the
regions (importance sampling).  Whether *other* sides exist need not be known.  It only has to be guessed well, for else X spreads.

**The point.**  The descent carries a point strictly inside its cell, near the middle (`estimating.barrier`), and chooses the units of one layer
after the other from there (`estimating.choices`).

**The tilt.**  An active unit leaves later layers more room, so behind it there are more regions, and active sides are taken more often; how
much more is learned from earlier descents (`estimating.tilts`).

**What is certain.**  At the end the point is checked with a bound on all rounding errors: it lies in the domain, and has the pattern.  X is
positive only then.  So X never counts what is not there, and the lower bound needs nothing else.
"""

import math
from typing import NamedTuple

import numpy as np

from tessella.domain import Polytope
from tessella.estimating.barrier import BarrierCell
from tessella.estimating.choices import LayerOfUnits
from tessella.estimating.descents import Batch, Records, Shape
from tessella.network import Floats, Mask
from tessella.partition.tree import Tree
from tessella.partition.witness import Witness

_DIMENSIONS, _WORK = 12, 2000  # dimensions, and dimensions times units, from which on these descents were better
_LARGE = 8_000_000  # inputs times dimensions times units: from here on a count does not come far
_CHANCE = 0.02  # of entering any side that was not found, all units together


def is_wide(tree: Tree) -> bool:
    """Whether these descents may give the better bound; where there are few units or few dimensions, linear programs and predictions do."""
    dimensions = min(tree.domain.free_dim, tree.walked.layers[0].units)
    return dimensions >= _DIMENSIONS and dimensions * tree.units > _WORK


def is_large(tree: Tree) -> bool:
    """Whether it is no use to count."""
    return tree.domain.free_dim * min(tree.domain.free_dim, tree.walked.layers[0].units) * tree.units > _LARGE


class Answered(NamedTuple):
    """How many cells were too thin: all of them, and those not settled."""

    asked: int
    given_up: int

    def __len__(self) -> int:
        """How many were asked."""
        return self.asked


class _Ended(NamedTuple):
    """Where a descent ended."""

    logarithm: float  # that of one over its probability; minus infinity if it ended nowhere
    pattern: Mask  # its leaf
    # active, splits: how many units are active there, per layer; how many units had both sides
    active: list[int]
    splits: int


class WideDescents:
    """Random descents for many inputs and many units; one object serves one thread.  With the ``chance``, all units together, sides are entered that were not found."""

    def __init__(self, tree: Tree, *, chance: float = _CHANCE) -> None:
        """Find a point of the domain."""
        self.shape, self._tree, self._chance = Shape.of(tree), tree, chance / tree.units
        box = tree.domain.box
        self._free = box.free
        self._centre, self._radius = box.lower / 2.0 + box.upper / 2.0, box.upper / 2.0 - box.lower / 2.0
        self._start = np.zeros(int(box.free.sum()))
        if isinstance(tree.domain, Polytope):
            self._start = ((tree.domain.centre - self._centre) / np.where(box.free, self._radius, 1.0))[box.free]
        self._witness = Witness(tree.network, tree.domain)
        self.answers = Answered(0, 0)

    def rounds(self, first: int, count: int, base: int, theta: Floats) -> Batch:
        """Some rounds; the same numbers and base give the same results."""
        found = [self._descend(first + number, base, theta) for number in range(count)]
        ended = [one for one in found if math.isfinite(one.logarithm)]
        layers = len(self._tree.scaled.rectified)
        features = np.array([one.active for one in ended], dtype=np.float32).reshape(len(ended), layers)
        leaves = np.array([one.splits for one in ended], dtype=np.float64)
        records = Records(features, np.zeros((len(ended), 3), dtype=np.int64), leaves)
        return Batch(np.array([one.logarithm for one in found]), records)

    def leaf(self, number: int, base: int, theta: Floats) -> tuple[float, bytes, int]:
        """One leaf: the logarithm of its weight, its prefix, and how many regions are behind that."""
        found = self._descend(number, base, theta)
        return found.logarithm, found.pattern.astype(np.int8).tobytes(), int(math.isfinite(found.logarithm))

    def _descend(self, number: int, base: int, theta: Floats) -> _Ended:
        """One descent."""
        rng, scaled = np.random.default_rng([base, number]), self._tree.scaled
        cell = BarrierCell(scaled.normals, scaled.constants, self._start)
        total, splits, chosen = 0.0, 0, list[Mask]()
        rows, constants = scaled.weights[0], scaled.biases[0]
        for depth, rectified in enumerate(scaled.rectified):
            if depth:
                factors = np.where(chosen[-1], 1.0, scaled.slopes[depth - 1])
                live = factors != 0.0
                weights = scaled.weights[depth][:, live]
                if (factors[live] != 1.0).any():
                    weights *= factors[live]
                rows, constants = weights @ rows[live], weights @ constants[live] + scaled.biases[depth]
            layer = LayerOfUnits(cell, rows, constants, rectified)
            total += layer.decide(rng, self._chance, float(theta[depth]))
            self._give_up(layer.undecided)
            splits += layer.splits
            chosen.append(layer.active)
            if math.isinf(total):
                break
        pattern = np.concatenate([active[on] for active, on in zip(chosen, scaled.rectified, strict=False)])
        if math.isfinite(total) and not self._proved(cell.point, pattern):
            self._give_up(1)
            total = math.inf
        active = [int((states & on).sum()) for states, on in zip(chosen, scaled.rectified, strict=False)]
        return _Ended(total if math.isfinite(total) else -math.inf, pattern, active, splits)

    def _give_up(self, cells: int) -> None:
        self.answers = Answered(self.answers.asked + cells, self.answers.given_up + cells)

    def _proved(self, point: Floats, pattern: Mask) -> bool:
        """Whether a point proves that a pattern is a region."""
        place = self._centre.copy()
        place[self._free] += self._radius[self._free] * point
        found = self._witness.pattern(place) if self._tree.is_small else self._witness.quick(place)
        return found is not None and bool((found == pattern).all())
