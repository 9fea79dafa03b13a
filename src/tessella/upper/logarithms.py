"""The bounds from a shape in logarithms, rounded up: for layers so wide that exact integers would take minutes.

Sums are added up in floating-point logarithms.  Every step errs by at most a few roundings of a number no larger than the result; in the end all of them together are added.
"""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol

from tessella.numerics import EPS

_ROUNDINGS = 8.0  # of each step, with room to spare


class Widths(Protocol):
    """What a layer is to these bounds: `tessella.upper.configuration.Stage`."""

    @property
    def relus(self) -> int:
        """Units that cut."""
        ...

    @property
    def units(self) -> int:
        """All units."""
        ...

    @property
    def leaky(self) -> int:
        """How many of those that cut are leaky."""
        ...

    def carrying(self, inactive: int) -> int:
        """How many units pass something on, at most, where so many of those that cut are inactive."""
        ...


def power_of_cells(hyperplanes: int, dim: int) -> float:
    """A number that log2 of the cells of one arrangement does not exceed: Zaslavsky's bound.

    Examples
    --------
    >>> power_of_cells(1_000_000, 2) < 38.87, power_of_cells(100_000, 100_000)
    (True, 100000.0)
    """
    if dim >= hyperplanes:
        return float(hyperplanes)
    total = -math.inf
    for way in _binomials(hyperplanes, dim):
        total = _sum(total, way)
    return _outward(total, dim + 1)


def power_of_configuration(dim: int, layers: Sequence[Widths]) -> float:
    """A number that log2 of the configuration bound does not exceed.

    Examples
    --------
    >>> from tessella.upper.configuration import Stage, configuration
    >>> 0.0 <= power_of_configuration(784, [Stage(30), Stage(20)]) - math.log2(configuration(784, [Stage(30), Stage(20)])) < 1e-9
    True
    """
    dims = list(accumulate((layer.units for layer in layers), min, initial=dim))
    below, steps = [0.0], 0
    for layer, widest in zip(reversed(layers), reversed(dims[:-1]), strict=True):
        below = _split(layer, min(widest, layer.units), below)
        steps += 3 * len(below)
    return _outward(below[min(dim, len(below) - 1)], steps)


def _split(layer: Widths, widest: int, below: list[float]) -> list[float]:
    """Log2 of the regions that one more layer makes of a region of dimension d, for d = 0..widest.

    As in `tessella.upper.configuration`, parts of dimension d are taken together, and all others do not depend on d.  As d grows, the others are more at both ends: fewer keep dimension d, and there
    are more in all.  So they are added up, and nothing is ever subtracted.
    """
    last, top = min(layer.relus, widest), len(below) - 1
    ways = list(_binomials(layer.relus, last))
    parts = list(accumulate(ways, _sum, initial=-math.inf))
    narrowed = [way + below[min(layer.carrying(j), top)] for j, way in enumerate(ways)]
    result, others, added = list[float](), -math.inf, range(0)
    for dim in range(widest + 1):
        end = min(layer.relus, dim) + 1
        middle = min(layer.units - dim + layer.leaky + 1, end)
        more = (*range(middle, added.start), *range(added.stop, end)) if added else range(middle, end)
        for j in more:
            others = _sum(others, narrowed[j])
        added = range(middle, end)
        result.append(_sum(parts[middle] + below[min(dim, top)], others))
    return result


def _binomials(n: int, last: int) -> list[float]:
    """Log2 of C(n, j) for j = 0..last."""
    return list(accumulate(range(last), lambda before, j: before + math.log2((n - j) / (j + 1)), initial=0.0))


def _sum(one: float, two: float) -> float:
    """Log2 of the sum of two numbers, from theirs."""
    low, high = (one, two) if one < two else (two, one)
    return high if low == -math.inf else high + math.log2(1.0 + 2.0 ** max(low - high, -1000.0))


def _outward(power: float, steps: int) -> float:
    """A logarithm, moved up by what so many steps may have lost."""
    return power + (steps + 1) * _ROUNDINGS * EPS * (abs(power) + 1.0)
