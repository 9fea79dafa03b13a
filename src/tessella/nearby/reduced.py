"""A network on a small box, where few units change: their preactivations as functions of the inputs and of each other.

All other units have one state on the box, so they are linear there, and are substituted: the preactivation of unit u becomes ``rows[u] @ v + constants[u] + couplings[u] @ h``, where v are the
free inputs scaled to [-1, 1], and h what the units before it pass on.

Substituting rounds.  What it costs is bounded for all places of the box at once: an error in a coefficient is multiplied with at most the largest value of what the coefficient
belongs to.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tessella.domain import Domain, Polytope
from tessella.network import Floats
from tessella.numerics import LOST_OF_PRODUCTS
from tessella.stability import Stability
from tessella.tightening.rounding import gamma


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """The units that may change on a domain, in layer order."""

    # rows, constants, couplings: the preactivations; see the top of the file
    rows: Floats
    constants: Floats
    couplings: Floats
    doubts: Floats  # how far these may be from the true preactivations, anywhere in the box
    slopes: Floats  # what an inactive unit multiplies with
    # layers, units: which they are
    layers: npt.NDArray[np.int64]
    units: npt.NDArray[np.int64]
    # walls, limits: the domain's inequalities, scaled and moved outward by what rounding may do: ``walls @ v + limits >= 0``
    walls: Floats
    limits: Floats
    inner: Floats  # the same, moved inward


def reduce(known: Stability) -> Reduced:
    """The units that may change, as far as a stability knows.

    Parameters
    ----------
    known
        Of a network on a bounded domain.
    """
    network, domain = known.network, known.domain
    box = domain.box
    reaches = [np.maximum(np.abs(box.lower), np.abs(box.upper))]
    reaches += [np.maximum(*map(np.abs, known.bounds.outputs(network, number))) for number in range(len(network.layers) - 1)]
    many = [int(mask.sum()) for mask in known.unstable]
    starts = np.cumsum([0, *many])
    count = int(starts[-1])
    couplings, slopes = np.zeros((count, count)), np.zeros(count)
    coefficients = np.zeros((0, network.layers[-1].units))
    constants, doubts = np.zeros(0), np.zeros(0)
    for number in range(len(network.layers) - 1, -1, -1):
        layer, unstable = network.layers[number], known.unstable[number]
        begin, end = int(starts[number]), int(starts[number + 1])
        # what later units read of this layer; those that may change stay, all others are substituted
        couplings[end:, begin:end] = coefficients[:, unstable]
        slopes[begin:end] = layer.slope[unstable]
        factors = np.where(known.active[number], 1.0, layer.slope)
        factors[unstable] = 0.0
        coefficients = coefficients * factors
        inner = np.asarray(abs(layer.weight) @ reaches[number]) + np.abs(layer.bias)
        constants = constants + coefficients @ layer.bias
        doubts = (
            doubts + gamma(layer.units + layer.inputs + 8) * (np.abs(coefficients) @ inner + np.abs(constants)) + LOST_OF_PRODUCTS
        )
        own = layer.weight[unstable]
        own = own if isinstance(own, np.ndarray) else np.asarray(own.toarray())
        coefficients = np.vstack([own, np.asarray(coefficients @ layer.weight)])
        constants, doubts = np.append(layer.bias[unstable], constants), np.append(np.zeros(end - begin), doubts)
    centre, half, free = box.lower / 2.0 + box.upper / 2.0, (box.upper - box.lower) / 2.0, box.free
    sizes = np.abs(coefficients) @ reaches[0] + np.abs(constants)
    doubts = doubts + gamma(box.dim + 16) * sizes + LOST_OF_PRODUCTS
    places = [np.flatnonzero(mask) for mask in known.unstable]
    return Reduced(
        np.ascontiguousarray((coefficients * half)[:, free]),
        constants + coefficients @ centre,
        couplings,
        doubts * (1.0 + gamma(8)),
        slopes,
        np.repeat(np.arange(len(many)), many),
        np.concatenate(places),
        *_walls(domain, centre, half),
    )


def _walls(domain: Domain, centre: Floats, half: Floats) -> tuple[Floats, Floats, Floats]:
    """The inequalities of a polytope, scaled; with both limits."""
    free = domain.box.free
    if not isinstance(domain, Polytope):
        return np.zeros((0, int(free.sum()))), np.zeros(0), np.zeros(0)
    reach = np.maximum(np.abs(domain.box.lower), np.abs(domain.box.upper))
    limits = domain.offset - domain.matrix @ centre
    doubts = gamma(domain.dim + 16) * (np.abs(domain.matrix) @ reach + np.abs(domain.offset)) + LOST_OF_PRODUCTS
    return -(domain.matrix * half)[:, free], limits + doubts, limits - doubts
