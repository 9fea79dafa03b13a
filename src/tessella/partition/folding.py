"""Units that never change their state, folded into the affine maps of those that do.

A network without its inactive units still has all that are always active: linear units, which carry values on.  Where a layer has more of them than there are numbers that it reads, these
numbers are carried on in their place, and what later layers read of the linear units is composed with them.  A network with two free inputs and 43 unstable units then has layers of at most 45 units,
however wide it was.

Composing rounds, so the folded network is another one.  It comes with a bound for each of its weights and biases on how far it is from the composed one; whoever walks
adds these to the errors of rows.  What rounding leaves open is decided by the network as it was: its decisions are the same ones in the same order.

The bound: let P be the computed product of W and C, where C is wrong by at most E.  Then P is wrong by at most |W| E + g |W| (|C| + E), where g is the relative rounding error of a sum of
products (Higham 2002, section 3.1).  Products are taken in extended precision where the machine has any: what is left is mostly the rounding to double precision in the end.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tessella.domain import Domain
from tessella.network import Floats, Layer, Mask, Network
from tessella.numerics import ROUNDOFF
from tessella.tightening.rounding import lost

_EXTENDED: Any = np.longdouble
_ROUNDING = max(float(np.finfo(np.longdouble).eps) / 2.0, 2.0**-64)  # of one operation in extended precision
_WIDER = 1.0 + 1e-6  # more than what rounding does to a bound on errors
_WORTH = 0.5  # part of the weights that a folded network may have, to be worth it
_MOST_WORK = 300_000_000  # products to compose a network: a second or two
_MOST_ENTRIES = 20_000_000  # of one composed map


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """A network with fewer linear units, which computes nearly the same."""

    network: Network  # the network.  Its ReLUs are those of the whole network, layer by layer in the same order
    # for each layer one number per unit and input, and a last one per unit for its bias: how far weights and biases may be from
    # the exact ones.  None where they are exact
    doubts: tuple[Floats | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Map:
    """Affine functions: coefficients and, in the last column, constants, in extended precision; and how far each may be from the exact one."""

    numbers: Any
    doubts: Floats

    def through(self, layer: Layer) -> "_Map":
        """The preactivations of a layer that reads these functions."""
        weight, size = layer.weight, abs(layer.weight)
        numbers = np.asarray(weight @ self.numbers)
        numbers[:, -1] += layer.bias
        held = np.abs(self.numbers).astype(np.float64) * (1.0 + ROUNDOFF) + self.doubts
        sums = np.asarray(size @ held)
        sums[:, -1] += np.abs(layer.bias)
        rounding = 1.01 * (layer.inputs + 4) * _ROUNDING
        tiny = lost(layer.inputs, weight, held) + lost(layer.inputs, weight, self.doubts)
        return _Map(numbers, _WIDER * (np.asarray(size @ self.doubts) + rounding * sums) + tiny)

    def times(self, factors: Floats) -> "_Map":
        """Each function multiplied with its factor."""
        if (factors == 1.0).all():
            return self
        numbers, sizes = self.numbers * factors[:, None], np.abs(factors)[:, None]
        held = np.abs(numbers).astype(np.float64)
        tiny = lost(1, factors, self.doubts) + lost(1, factors, held)
        return _Map(numbers, _WIDER * (self.doubts * sizes + 2.0 * _ROUNDING * held) + tiny)

    def rounded(self, units: Any) -> tuple[Floats, Floats, Floats]:
        """Weights and biases of some units in double precision, and how far these may be from the exact ones."""
        part = self.numbers[units]
        numbers = part.astype(np.float64)
        moved = np.abs(part - numbers).astype(np.float64) * _WIDER
        return numbers[:, :-1], numbers[:, -1], (self.doubts[units] + moved) * _WIDER


def fold(network: Network, domain: Domain) -> Folded | None:
    """A network without most of its linear units, if that is much smaller; None if it is not.

    Parameters
    ----------
    network
        A network without stable ReLUs, whose last layer has some.
    domain
        Where it is read.

    Examples
    --------
    >>> from tessella.domain import Box
    >>> hidden = Layer(np.ones((8, 1)), np.arange(8.0), np.array([True] + 7 * [False]))
    >>> network = Network((hidden, Layer(np.ones((2, 8)), np.zeros(2))))
    >>> fold(network, Box(-9, -1, dim=1)).network
    Network(1-1+1-2, 3 ReLUs, 10 parameters)
    """
    plan = _plan(network, domain)
    if not any(plan):
        return None
    layers, doubts, reads = list[Layer](), list[Floats | None](), None
    for number, (layer, carries) in enumerate(zip(network.layers, plan, strict=True)):
        width = layers[-1].units if layers else domain.free_dim
        rows = reads.through(layer) if reads else None
        last = number == len(plan) - 1 and layer.relus
        kept = layer.rectified if carries or last else np.ones(layer.units, dtype=np.bool_)
        made, doubt = _layer(layer, kept, rows, _carried(domain, width, first=number == 0) if carries else None)
        reads = _passed_on(layer, rows or (_of_units(layer) if layers else _of_inputs(layer, domain))) if carries else None
        layers.append(made)
        doubts.append(doubt)
    return Folded(Network(tuple(layers), network.source), tuple(doubts))


def _plan(network: Network, domain: Domain) -> list[bool]:
    """Which layers carry on what they read in place of their linear units; none, if the network would not become much smaller, or that would take long."""
    plan, width, work, weights, before = list[bool](), domain.free_dim, 0, 0, 0
    for number, layer in enumerate(network.layers):
        carries = number < len(network.layers) - 1 and width < layer.linear_units
        if carries or (plan and plan[-1]):
            work += layer.parameters * (width + 1)
            if work > _MOST_WORK or layer.units * (width + 1) > _MOST_ENTRIES:
                return [False] * len(network.layers)
        last = number == len(network.layers) - 1 and layer.relus
        units = layer.relus + width if carries else layer.relus if last else layer.units
        weights += units * width
        before += layer.units * (layer.inputs if number else domain.free_dim)
        plan.append(carries)
        width = units
    return plan if weights <= _WORTH * before else [False] * len(network.layers)


def _carried(domain: Domain, width: int, *, first: bool) -> Floats:
    """The rows of units that carry on all that a layer reads, of the inputs those that are free."""
    return np.eye(domain.dim)[domain.box.free] if first else np.eye(width)


def _layer(layer: Layer, kept: Mask, rows: _Map | None, carried: Floats | None) -> tuple[Layer, Floats | None]:
    """Some units of a layer, composed if need be, and those that carry values on; how far weights and biases may be from the exact ones."""
    weight, bias, doubts = rows.rounded(kept) if rows else (layer.weight[kept], layer.bias[kept], None)
    rectified, slope = layer.rectified[kept], layer.slope[kept]
    if carried is not None:
        more = len(carried)
        weight = np.vstack([weight if isinstance(weight, np.ndarray) else weight.toarray(), carried])
        bias, rectified = np.append(bias, np.zeros(more)), np.append(rectified, np.zeros(more, dtype=np.bool_))
        slope = np.append(slope, np.ones(more))
        doubts = None if doubts is None else np.vstack([doubts, np.zeros((more, doubts.shape[1]))])
    return Layer(weight, bias, rectified, slope), doubts


def _of_inputs(layer: Layer, domain: Domain) -> _Map:
    """The preactivations of a first layer as functions of the free inputs."""
    free, lower = domain.box.free, domain.box.lower
    identity = np.zeros((domain.dim, int(free.sum()) + 1), dtype=_EXTENDED)
    identity[free, :-1] = np.eye(int(free.sum()))
    identity[~free, -1] = lower[~free]
    return _Map(identity, np.zeros(identity.shape)).through(layer)


def _of_units(layer: Layer) -> _Map:
    """The preactivations of a layer as functions of what it reads, exactly."""
    numbers = np.column_stack([layer.dense(), layer.bias])
    return _Map(numbers.astype(_EXTENDED), np.zeros(numbers.shape))


def _passed_on(layer: Layer, values: _Map) -> _Map:
    """What a layer's units pass on as functions of the folded layer's units, which are its ReLUs, and behind these what it reads itself."""
    relus, width = layer.relus, values.numbers.shape[1] - 1
    numbers, doubts = np.zeros((layer.units, relus + width + 1), dtype=_EXTENDED), np.zeros((layer.units, relus + width + 1))
    linear = ~layer.rectified
    inner = _Map(values.numbers[linear], values.doubts[linear]).times(layer.slope[linear])
    numbers[layer.rectified, :relus] = np.eye(relus)
    numbers[linear, relus:], doubts[linear, relus:] = inner.numbers, inner.doubts
    return _Map(numbers, doubts)
