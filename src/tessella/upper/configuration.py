"""Upper bounds that see a network's shape alone.

All three multiply or nest Zaslavsky's bound for one layer: n hyperplanes cut a d-dimensional space into at most
sum(C(n, j), j = 0..d) cells.  They differ in the d that they use:

- `raghu_bound`: the units of the layer before (Raghu et al., ICML 2017);
- `montufar_bound`: the narrowest layer so far (Montufar, SampTA 2017);
- `configuration_bound`: the active units so far, region by region (Serra, Tjandraatmadja and Ramalingam, ICML 2018).

They are stated side by side in the appendix of Serra and Ramalingam (AAAI 2020).  A unit without a ReLU cuts nothing
and is never inactive, so it only adds to the dimension that it carries on.

**Leaky units** cut, but lose nothing.  Let a layer of n units that cut, l of them leaky, and m linear ones read a region of dimension d.  Its values there
are an affine function, and what it passes on is that function times a diagonal matrix on each part; only the entries of inactive ReLUs without a slope are 0.
So a part with j of the n inactive, of which at least j - l have no slope, is of dimension at most min(d, n - max(j - l, 0) + m).  There are at most
C(n, j) such parts, and sum(C(n, j), j <= d) in all (Zaslavsky).  As that dimension, and with it the number of regions that the following layers make, falls
with j, no choice of so many parts has more regions than all those with j = 0, 1, ..., min(n, d).  For the same reason an absolute
value, whose two sides have opposite slopes, counts as leaky.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from numbers import Integral
from typing import TypeAlias

from tessella.door import NetworkLike, enter_anywhere
from tessella.errors import OptionError
from tessella.network import Network
from tessella.upper.logarithms import power_of_cells, power_of_configuration

Shape: TypeAlias = int | NetworkLike

_WIDEST = 20_000_000  # units that cut, or dimensions, beyond which even logarithms take too long
_MOST_WORK = 4e11  # products of bits that integers may take: about a tenth of a second


@dataclass(frozen=True, slots=True)
class Stage:
    """One layer as the bounds see it: units that cut, units that only carry, and how many of those that cut are leaky."""

    relus: int
    linear: int = 0
    leaky: int = 0

    @property
    def units(self) -> int:
        """All units."""
        return self.relus + self.linear

    def carrying(self, inactive: int) -> int:
        """How many units pass something on, at most, where so many of those that cut are inactive."""
        return self.units - max(inactive - self.leaky, 0)


def raghu_bound(network: Shape, widths: Sequence[int] | None = None) -> int:
    """Bound the regions by each layer's own cells, multiplied.

    Parameters
    ----------
    network
        What `tessella.load` takes, or the number of inputs if `widths` are given.
    widths
        ReLUs per layer.

    Examples
    --------
    >>> import tessella
    >>> tessella.raghu_bound(2, [3, 3])
    56
    """
    return raghu(*_shape(network, widths))


def montufar_bound(network: Shape, widths: Sequence[int] | None = None) -> int:
    """Bound the regions with the narrowest layer so far as dimension.

    It takes what `raghu_bound` takes, and is never larger.

    Examples
    --------
    >>> import tessella
    >>> tessella.montufar_bound(2, [3, 3]), tessella.raghu_bound(2, [3, 3])
    (49, 56)
    """
    return montufar(*_shape(network, widths))


def configuration_bound(network: Shape, widths: Sequence[int] | None = None) -> int:
    """Bound the regions with the units that can still be active as dimension: the tightest of the three.

    In time polynomial in the units: regions are grouped by the dimension that is left, layer by layer from the back.

    It takes what `raghu_bound` takes.

    Examples
    --------
    >>> import tessella
    >>> tessella.configuration_bound(2, [3, 3])
    40
    >>> tessella.configuration_bound(784, [1, 21, 10])
    243
    """
    return configuration(*_shape(network, widths))


def raghu(dim: int, layers: Sequence[Stage]) -> int:
    """`raghu_bound` on a region of this dimension."""
    dims = [dim, *(stage.units for stage in layers)]
    return prod(_cells(stage.relus, dim) for stage, dim in zip(layers, dims, strict=False))


def montufar(dim: int, layers: Sequence[Stage]) -> int:
    """`montufar_bound` on a region of this dimension."""
    dims = accumulate((stage.units for stage in layers), min, initial=dim)
    return prod(_cells(stage.relus, dim) for stage, dim in zip(layers, dims, strict=False))


def configuration(dim: int, layers: Sequence[Stage]) -> int:
    """`configuration_bound` on a region of this dimension; a little more where integers would take long."""
    if is_heavy(dim, layers):
        return min(_at_least(power_of_configuration(dim, layers)), 1 << sum(stage.relus for stage in layers))
    return configurations(dim, layers)[-1]


def configurations(dim: int, layers: Sequence[Stage]) -> list[int]:
    """The same in integers, for the dimensions from 0 to this one; beyond the list it is constant."""
    dims = list(accumulate((stage.units for stage in layers), min, initial=dim))
    # below[d] bounds the regions that the layers after this one make of a region of dimension d; beyond the list it is constant
    below = [1]
    for stage, widest in zip(reversed(layers), reversed(dims[:-1]), strict=True):
        below = _split(stage, min(widest, stage.units), below)
    return below[: dim + 1]


def is_heavy(dim: int, layers: Sequence[Stage], times: int = 1) -> bool:
    """Whether integers would take more than some tenths of a second, if that must be done so many times; raises for layers that are too wide even for logarithms."""
    work, bits, dims = 0.0, 0.0, accumulate((stage.units for stage in layers), min, initial=dim)
    for stage, widest in reversed(list(zip(layers, dims, strict=False))):
        steps = min(stage.relus, widest)
        if steps > _WIDEST:
            msg = (
                f"a layer of {stage.relus:,} ReLUs on {widest:,} dimensions is too wide: its numbers alone would fill the memory"
            )
            raise OptionError(msg)
        own = min(stage.relus, steps * math.log2(4.0 * stage.relus / steps)) if steps else 0.0
        bits += own
        work += (steps + 1) * (own * bits + 1e6)
    return times * work > _MOST_WORK


def _at_least(power: float) -> int:
    """A whole number that 2**power does not exceed."""
    whole = math.floor(power)
    part = math.ceil(2.0 ** (power - whole) * (1.0 + 1e-12) * 2.0**40)
    return part << whole - 40 if whole >= 40 else -(-part >> 40 - whole)


def _split(stage: Stage, widest: int, below: list[int]) -> list[int]:
    """Regions that one more layer makes of a region of dimension d, for d = 0..widest.

    With j units inactive there are at most C(relus, j) parts, j <= d, each of dimension min(d, units - j), leaky units aside.  For the
    first values of j, units - d of them, that is d itself, for the others it does not depend on d: two running sums serve all d.
    """
    last = min(stage.relus, widest)
    ways = list(_binomials(stage.relus, last))
    parts = [0, *accumulate(ways)]
    regions = [0, *accumulate(way * below[min(stage.carrying(j), len(below) - 1)] for j, way in enumerate(ways))]
    result: list[int] = []
    for dim in range(widest + 1):
        end = min(stage.relus, dim) + 1
        middle = min(stage.units - dim + stage.leaky + 1, end) if dim <= stage.units else 0
        result.append(parts[middle] * below[min(dim, len(below) - 1)] + regions[end] - regions[middle])
    return result


def _cells(hyperplanes: int, dim: int) -> int:
    """Zaslavsky's bound for one arrangement."""
    if min(dim, hyperplanes) > _WIDEST:
        msg = f"a layer of {hyperplanes:,} ReLUs on {dim:,} dimensions is too wide: its numbers alone would fill the memory"
        raise OptionError(msg)
    if dim >= hyperplanes:
        return 1 << hyperplanes
    if dim * dim * hyperplanes.bit_length() > _MOST_WORK:
        return _at_least(power_of_cells(hyperplanes, dim))
    return sum(_binomials(hyperplanes, dim))


def _binomials(n: int, last: int) -> Iterator[int]:
    """C(n, j) for j = 0..last, each from the one before: wide layers would take minutes otherwise."""
    return accumulate(range(last), lambda before, j: before * (n - j) // (j + 1), initial=1)


def stages(network: Network) -> list[Stage]:
    """A network's layers as the bounds see them."""
    return [Stage(layer.relus, layer.linear_units, int(layer.leaky.sum())) for layer in network.layers]


def _shape(network: Shape, widths: Iterable[int] | None) -> tuple[int, list[Stage]]:
    if not isinstance(network, Integral) and (widths is None or isinstance(network, Network)):
        if widths is not None:
            msg = "a Network has its own widths; give either a network, or a number of inputs and widths"
            raise OptionError(msg)
        read, _ = enter_anywhere(network, None)
        return read.input_dim, stages(read)
    if widths is None:
        msg = f"give the widths of the layers as well, as in configuration_bound({network!r}, [11, 11, 10])"
        raise OptionError(msg)
    if isinstance(widths, (str, bytes)) or not hasattr(widths, "__iter__") or getattr(widths, "ndim", 1) != 1:
        msg = f"widths must be a list of whole numbers, got {widths!r}"
        raise OptionError(msg)
    sizes = [_positive(size, f"width {number}") for number, size in enumerate(widths, start=1)]
    if not sizes:
        msg = "widths are empty; a network needs at least one layer"
        raise OptionError(msg)
    return _positive(network, "the number of inputs"), [Stage(size) for size in sizes]


def _positive(value: object, name: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        msg = f"{name} must be a whole number, got {value!r}"
        raise OptionError(msg)
    number = value.__index__()  # pyright: ignore[reportAttributeAccessIssue]  looked up just above
    if number < 1:
        msg = f"{name} must be at least 1, got {number}"
        raise OptionError(msg)
    return number
