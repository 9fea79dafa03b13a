"""Balls around points, as networks on domains: a ball in linf is a box; that of l1 is a polytope; of l2 a box inside of it and one around it are taken.

A ball of l1 is lifted: x = p + u - w with u, w >= 0 and sum(u + w) <= r.  The map from (u, w) to x is linear and onto, so patterns with an interior are the same ones; it needs one inequality instead of 2**d.

In a subspace, x = p + basis @ t, and balls are those of t.  First layers of linear units make x, so nothing is rounded.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from tessella.domain import Box, Domain, Polytope
from tessella.network import Floats, Layer, Network, Source


class Norm(StrEnum):
    """In which norm a ball is one."""

    L1 = "l1"
    L2 = "l2"
    LINF = "linf"


@dataclass(frozen=True, slots=True, eq=False)
class Balls:
    """What is around points."""

    network: Network
    # radius, norm: of all balls
    radius: float
    norm: Norm
    within: Box | None = None  # what is cut off from balls in all inputs; None for nothing
    basis: Floats | None = None  # columns that span a subspace; None for all inputs

    def around(self, point: Floats) -> tuple[tuple[Network, Domain], ...]:
        """Networks and domains whose regions are those of the ball; two where the first one lies in the ball, and the other around it."""
        dim = len(point) if self.basis is None else self.basis.shape[1]
        if self.norm is Norm.L1 and dim > 1:
            return (self._lifted(point, dim),)
        outer = self._box(point, dim, self.radius)
        if self.norm is Norm.L2 and dim > 1:
            return self._box(point, dim, float(np.nextafter(self.radius / np.sqrt(dim), 0.0)) * (1.0 - 2.0**-50)), outer
        return (outer,)

    def _box(self, point: Floats, dim: int, radius: float) -> tuple[Network, Domain]:
        if self.basis is None:
            return self.network, Box.around(point, radius, within=self.within)
        return self._behind(Layer(self.basis, point, np.array(False))), Box.cube(-radius, radius, dim)  # noqa: FBT003  no ReLUs

    def _lifted(self, point: Floats, dim: int) -> tuple[Network, Domain]:
        directions = np.eye(dim) if self.basis is None else self.basis
        up, down = np.full(dim, self.radius), np.full(dim, self.radius)
        if self.within is not None:
            up, down = np.minimum(up, _down(self.within.upper - point)), np.minimum(down, _down(point - self.within.lower))
        box = Box(np.zeros(2 * dim), np.append(up, down))
        both = Layer(np.hstack([directions, -directions]), point, np.array(False))  # noqa: FBT003  the same
        return self._behind(both), Polytope(np.ones((1, 2 * dim)), np.array([self.radius]), box)

    def _behind(self, layer: Layer) -> Network:
        """The network behind a linear layer; its units are what they were."""
        source = self.network.source
        named = None if source is None else Source("slice", source.name, units=source.units)
        return Network((layer, *self.network.layers), named)


def _down(values: Floats) -> Floats:
    """Differences of coordinates, not above the true ones, and not negative."""
    return np.maximum(np.nextafter(values, -np.inf), 0.0) * (values > 0.0)
