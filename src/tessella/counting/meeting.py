"""A lower bound that takes no walk: hyperplanes of the first layer that meet inside the domain.

If m hyperplanes with independent normals meet in a point inside the domain, every one of the 2**m choices of sides occurs around it.  Units of the same layer
do not bend each other's hyperplanes and later layers only cut further, so the network has at least 2**m regions.

The point need not be exact.  Let A be the chosen rows over the free inputs, scaled by the domain's radii, and r their values at a point x.  For every choice of
signs s and every small t > 0 there is a v with A v = t s - r and |v| <= sqrt(m) (t + max|r|) / sigma, where sigma is the smallest singular value of A.  If
x is farther than that from the border of the domain, x + v lies inside, on the sides s.
"""

import math

import numpy as np

from tessella.domain import Polytope
from tessella.kernel import meter
from tessella.network import Floats
from tessella.partition.tree import Tree
from tessella.tightening.rounding import gamma, lost

_FIRST, _STEPS = 10, 100  # projections to and fro: always made, and made at most
_INNER = 0.9  # how far from the centre points are moved back, as a part of the radius
_QUICK, _LARGEST = 1e8, 1e9  # multiplications of a first decomposition, and of any
_ENTRIES = 4_000_000  # weights that are looked at together
_TINY = 1e-100  # smaller rows are left out, and those larger than its inverse: their squares underflow or overflow


def meeting_units(tree: Tree, *, seconds: float = math.inf) -> int:
    """How many hyperplanes of the first layer are proved to meet in one point inside the domain, in general position.

    Parameters
    ----------
    tree
        The network without its stable units, on a domain.
    seconds
        When to end, with the most that are proved by then.

    Examples
    --------
    >>> from tessella.domain import Box
    >>> from tessella.network import Network
    >>> net = Network.from_arrays([([[1.0, 1.0], [1.0, -1.0], [2.0, 0.0]], [0.0, 0.1, 0.0])], relu_output=True)
    >>> meeting_units(Tree(net, Box(-1, 1, dim=2)))
    2
    """
    place = _Place(tree, meter.clock() + seconds)
    most = min(len(place.order), tree.domain.free_dim)
    most = min(most, math.isqrt(int(_LARGEST / max(tree.domain.free_dim, 1))))
    low, high = 0, most + 1  # so many meet, and so many do not: not quite so for every set, but nearly
    tried = min(most, math.isqrt(int(_QUICK / max(tree.domain.free_dim, 1))) + 1)
    pace = 0.0  # seconds for a multiplication
    while high - low > 1 and (not low or pace * _work(tried, tree.domain.free_dim) <= place.left):
        begun = meter.clock()
        low, high = (tried, high) if place.meet(tried) else (low, tried)
        pace = (meter.clock() - begun) / _work(tried, tree.domain.free_dim)
        tried = most if low and high > most else (low + high) // 2
    return low


def _work(count: int, inputs: int) -> float:
    """Multiplications to find out whether so many hyperplanes meet, about."""
    return count * count * (inputs + 10.0 * count)


class _Place:
    """The first layer, seen from the centre of a domain."""

    def __init__(self, tree: Tree, deadline: float) -> None:
        self._deadline = deadline
        box, layer = tree.domain.box, tree.network.layers[0]
        self._domain, self._lower, self._upper = tree.domain, box.lower, box.upper
        self._free, self._centre = box.free, box.lower / 2.0 + box.upper / 2.0
        self._radius = (box.upper / 2.0 - box.lower / 2.0)[self._free]
        self._layer = layer
        step = max(_ENTRIES // layer.inputs, 1)
        distance = np.full(layer.units, np.inf)
        for begin in range(0, layer.units, step):
            if begin and self.left < 0.0:
                break
            some = np.arange(begin, min(begin + step, layer.units))
            distance[some] = np.where(layer.rectified[some], self._distance(some), np.inf)
        usable = np.flatnonzero(np.isfinite(distance))
        self.order = usable[np.argsort(distance[usable], kind="stable")]

    def _weights(self, units: np.ndarray) -> Floats:
        """The weights of some units, dense."""
        weight = self._layer.weight[units]
        return weight if isinstance(weight, np.ndarray) else np.asarray(weight.toarray())

    def _distance(self, units: np.ndarray) -> Floats:
        """How far hyperplanes are from the centre; infinite for those that are left out."""
        weight, bias = self._weights(units), self._layer.bias[units]
        rows = weight[:, self._free] * self._radius
        size = np.abs(rows).max(axis=1, initial=0.0)
        fine = (size > _TINY) & (size < 1.0 / _TINY)
        scale = np.where(fine, size, 1.0)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            length = np.linalg.norm(rows / scale[:, None], axis=1) * scale
            return np.where(fine, np.abs(weight @ self._centre + bias) / length, np.inf)

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self._deadline - meter.clock()

    def meet(self, count: int) -> bool:
        """Whether the hyperplanes nearest to the centre are proved to meet."""
        chosen = self.order[:count]
        rows = self._weights(chosen)[:, self._free] * self._radius
        products = rows @ rows.T
        values, vectors = np.linalg.eigh(products)  # of these, not of the rows: ten times faster
        doubt = 4.0 * gamma(sum(rows.shape)) * float(np.trace(products))  # more than rounding may do to a value
        if not values[0] > 2.0 * doubt:
            return False
        sigma, back = math.sqrt(values[0] - doubt), rows.T @ ((vectors / values) @ vectors.T)
        offset = self._weights(chosen) @ self._centre + self._layer.bias[chosen]
        point = np.zeros(rows.shape[1])
        for step in range(_STEPS):
            point = point - back @ (rows @ point + offset)
            if np.abs(point).max() < 1.0 and self._is_proved(chosen, point, sigma):
                return True
            if step > _FIRST and self.left < 0.0:
                break
            point = np.clip(point, -_INNER, _INNER)
        return False

    def _is_proved(self, chosen: np.ndarray, point: Floats, sigma: float) -> bool:
        """See the top of the file; with everything rounded the wrong way."""
        at = self._centre.copy()
        at[self._free] += self._radius * point
        weight, bias = self._weights(chosen), self._layer.bias[chosen]
        terms = np.abs(weight) @ np.abs(at) + np.abs(bias)
        value = np.abs(weight @ at + bias) + gamma(len(at) + 2) * terms + lost(len(at), weight, at)
        reach = 1.001 * np.sqrt(len(chosen)) * float(value.max()) / sigma
        inside = np.minimum(at - self._lower, self._upper - at)[self._free]
        if not (inside > 1.001 * reach * self._radius).all():
            return False
        if not isinstance(self._domain, Polytope):
            return True
        matrix, offset = self._domain.matrix, self._domain.offset
        terms = np.abs(matrix) @ np.abs(at) + np.abs(offset)
        slack = offset - matrix @ at - gamma(len(at) + 2) * terms - lost(len(at), matrix, at)
        return bool((slack > 1.001 * reach * np.linalg.norm(matrix[:, self._free] * self._radius, axis=1)).all())
