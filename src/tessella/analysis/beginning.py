"""The beginning of a network that is too large to descend through: its first layers, and some units of the last of them.

**Why it bounds the whole.**  Each region of the whole network lies in one region of its beginning, and each of these, being open, holds at least one region of the whole.  So the whole has at least as many; and
with some units of the last layer left out, patterns only merge.
"""

import numpy as np

from tessella.analysis.memory import memory_to_walk
from tessella.domain import Domain
from tessella.network import Floats, Layer, Mask, Network
from tessella.partition.tree import Integers
from tessella.preactivation import PreactivationBounds
from tessella.stability import Stability

_UNITS = 600  # unstable units that are kept, at most
_LEAST = 64  # the same in any case: descents through fewer tell little
_WORK = 800_000  # inputs times units that are kept
_MANY, _SLOW = (
    1000,
    1_600_000,
)  # units, and inputs times units, of the whole network beyond which one descent may take as long as there is time


def to_descend(known: Stability, memory: int) -> Stability | None:
    """What descents are made through: the whole network, its beginning where hardly one would end in time, or nothing if even that takes too much memory.

    Parameters
    ----------
    known
        The network, the domain, and the units that never change their state there.
    memory
        Bytes that may be taken.
    """
    units, free = known.totals()["unstable"], known.domain.free_dim
    if units <= _MANY and (units <= _LEAST or units * free <= _SLOW) and memory_to_walk(known) <= memory:
        return known
    part = beginning(known)
    return part if memory_to_walk(part) <= memory else None


def beginning(known: Stability) -> Stability:
    """The beginning of a network, with as many unstable units as descents can be made through, and what is known of it.

    Parameters
    ----------
    known
        The network, the domain, and the units that never change their state there.

    Examples
    --------
    >>> from tessella import Box, Network, stability
    >>> layers = [([[1.0, 0.5]] * 700, np.linspace(-1.0, 1.0, 700)), ([[1.0] * 700], [-1.0])]
    >>> known = stability(Network.from_arrays(layers, relu_output=True), Box(-1, 1, dim=2))
    >>> beginning(known).network.widths
    (600,)
    """
    left = max(min(_UNITS, _WORK // max(known.domain.free_dim, 1)), _LEAST)
    layers, lower, upper = list[Layer](), list[Floats](), list[Floats]()
    for number, layer in enumerate(known.network.layers):
        low, high, unstable = known.bounds.lower[number], known.bounds.upper[number], known.unstable[number]
        if unstable.sum() >= left:
            chosen = _most_even(low, high, unstable, left)
            layers.append(Layer(layer.weight[chosen], layer.bias[chosen], layer.rectified[chosen], layer.slope[chosen]))
            lower.append(low[chosen])
            upper.append(high[chosen])
            break
        layers.append(layer)
        lower.append(low)
        upper.append(high)
        left -= int(unstable.sum())
    return _known(Network(tuple(layers)), known.domain, known.bounds, lower, upper)


def _known(network: Network, domain: Domain, bounds: PreactivationBounds, lower: list[Floats], upper: list[Floats]) -> Stability:
    return Stability(network, domain, PreactivationBounds(tuple(lower), tuple(upper), bounds.method))


def _most_even(low: Floats, high: Floats, unstable: Mask, count: int) -> Integers:
    """The unstable units whose ranges lie most evenly around zero, in their order: these cut most cells."""
    places = np.flatnonzero(unstable)
    even = np.minimum(-low[places], high[places]) / (high[places] - low[places])
    return np.sort(places[np.argsort(-even, kind="stable")[:count]])
