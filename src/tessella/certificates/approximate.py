"""A network's numbers as floating-point arithmetic sees them, and how wrong these are: what a search for proofs works with.

The box is scaled to [0, 1] in its free inputs.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tessella.domain import Domain, Polytope
from tessella.network import Floats, Mask, Network
from tessella.numerics import LOST_OF_PRODUCTS, ROUNDOFF

Signs = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Affine:
    """Affine functions on the unit cube, and by how much they may be off anywhere in it."""

    matrix: Floats
    offset: Floats
    error: Floats


@dataclass(frozen=True, slots=True)
class Plain:
    """One layer: dense weights, and what its units make of their preactivations."""

    weight: Floats
    bias: Floats
    rectified: Mask
    slope: Floats
    error: Floats  # of the preactivations anywhere in the domain


class Numbers:
    """A network on a bounded domain in floating-point numbers.

    Parameters
    ----------
    network, domain
        Which.
    """

    def __init__(self, network: Network, domain: Domain) -> None:
        """Bound the errors once for all."""
        box = domain.box
        self.box, self.free = box, np.flatnonzero(box.free)
        self.width = (box.upper - box.lower)[self.free]
        sizes, terms, self.layers = np.maximum(np.abs(box.lower), np.abs(box.upper)), 16, list[Plain]()
        for layer in network.layers:
            weight, terms = layer.dense(), terms + 3 * layer.inputs + 8
            sizes = np.abs(weight) @ sizes + np.abs(layer.bias)
            self.layers.append(Plain(weight, layer.bias, layer.rectified, layer.slope, self._doubt(terms, sizes)))
            sizes = sizes * np.maximum(np.abs(layer.slope), 1.0)
        self.starts = np.concatenate([[0], np.cumsum([layer.units for layer in network.layers])]).tolist()
        self.walls = Affine(np.zeros((0, len(self.free))), np.zeros(0), np.zeros(0))
        self._inequalities = np.zeros((0, box.dim)), np.zeros(0)
        if isinstance(domain, Polytope):
            far = np.maximum(np.abs(box.lower), np.abs(box.upper))
            doubt = self._doubt(3 * box.dim + 16, np.abs(domain.matrix) @ far + np.abs(domain.offset))
            self._inequalities = domain.matrix, domain.offset
            self.walls = Affine(-domain.matrix[:, self.free] * self.width, domain.offset - domain.matrix @ box.lower, doubt)

    @staticmethod
    def _doubt(terms: int, sizes: Floats) -> Floats:
        return 1.01 * terms * ROUNDOFF * sizes + LOST_OF_PRODUCTS

    def compose(self, number: int, inner: Affine | None, active: Mask) -> Affine:
        """The preactivations of a layer where the units of the layer before have these states; those of the first layer if there is none before it."""
        layer = self.layers[number]
        if inner is None:
            return Affine(layer.weight[:, self.free] * self.width, layer.weight @ self.box.lower + layer.bias, layer.error)
        factors = np.where(active, 1.0, self.layers[number - 1].slope)
        used = np.flatnonzero(factors)
        weight = layer.weight[:, used] * factors[used]
        return Affine(weight @ inner.matrix[used], weight @ inner.offset[used] + layer.bias, layer.error)

    def signs(self, point: Floats) -> Signs:
        """The signs of all units at a point of the domain; 0 where they are not clear."""
        values, found = point, np.zeros(self.starts[-1], dtype=np.int8)
        for layer, start, end in zip(self.layers, self.starts, self.starts[1:], strict=False):
            before = layer.weight @ values + layer.bias
            found[start:end] = np.where(np.abs(before) > layer.error, np.sign(before), 0.0)
            values = np.where(layer.rectified & (before > 0.0), before, layer.slope * before)
        return found

    def is_inside(self, point: Floats) -> bool:
        """Whether a point of the box is clearly inside all inequalities that read a free input."""
        matrix, offset = self._inequalities
        told = self.walls.matrix.any(axis=1)
        return bool((offset - matrix @ point > self.walls.error)[told].all())

    def exact_point(self, places: list[Fraction]) -> list[Fraction]:
        """The input that a place in the cube stands for, exactly."""
        inner = iter(places)
        ends = zip(self.box.lower.tolist(), self.box.upper.tolist(), strict=True)
        return [Fraction(low) + (Fraction(high) - Fraction(low)) * (next(inner) if low < high else 0) for low, high in ends]

    def point(self, places: Floats, digits: int) -> Floats:
        """The input that a place in the cube stands for, rounded to so many binary digits of the box's width."""
        lower, upper = self.box.lower[self.free], self.box.upper[self.free]
        inner = (places > 0.0) & (places < 1.0)
        grid = np.exp2(np.ceil(np.log2(self.width)) - digits)
        found = np.where(places >= 1.0, upper, lower)
        found[inner] = np.clip(
            np.rint((lower + self.width * places)[inner] / grid[inner]) * grid[inner], lower[inner], upper[inner]
        )
        point = self.box.lower.copy()
        point[self.free] = found
        return point
