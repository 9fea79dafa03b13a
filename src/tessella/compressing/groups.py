"""Which units of a layer are multiples of each other, and how each is made of the first of its group."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from tessella.compressing.composition import Integers, Rows, beyond
from tessella.compressing.multiples import Exact, ExactInputs, Key, alike, exact_row, ratio
from tessella.network import Layer, Mask


class Share(NamedTuple):
    """A unit as a sum: `relu` times what the first unit of its group passes on, and `linear` times its preactivation."""

    first: int
    relu: Fraction
    linear: Fraction


class Twin(NamedTuple):
    """A unit whose preactivation is `factor` times that of another one."""

    first: int
    factor: Fraction


def twins(layer: Layer, units: Integers, rows: Rows, inputs: ExactInputs, bends: Mask) -> list[Twin]:
    """For each of some units the first one of its group, itself if it is alone; those that bend come first.

    Parameters
    ----------
    layer, units
        Of which units.
    rows
        Their preactivations, nearly.
    inputs
        What the layer reads.
    bends
        Which of them are unstable.
    """
    found = [Twin(place, Fraction(1)) for place in range(len(units))]
    for group in alike(rows.weight, rows.constants):
        firsts = list[tuple[int, Exact]]()
        for place in sorted(group, key=lambda place: (not bends[place], place)):
            row = exact_row(layer, int(units[place]), inputs)
            for first, known in firsts:
                factor = ratio(known, row)
                if factor is not None:
                    found[place] = Twin(first, factor)
                    break
            else:
                firsts.append((place, row))
    return found


def share(twin: Twin, slope: float, first_slope: float) -> Share:
    """A unit that bends as a sum of what the first unit of its group passes on, and of its preactivation.

    With r the positive part of the first one's preactivation g, that one passes s g + (1 - s) r on, where s is its slope; so r is known.

    Examples
    --------
    >>> share(Twin(0, Fraction(-2)), 0.0, 0.0)
    Share(first=0, relu=Fraction(2, 1), linear=Fraction(-2, 1))
    """
    own, other, factor = Fraction(slope), Fraction(first_slope), twin.factor
    positive = (1 - own) * abs(factor)
    linear = own * factor if factor > 0 else factor
    relu = positive / (1 - other)
    return Share(twin.first, relu, linear - relu * other)


def composed_exactly(share: Share, relu: Key, linear: Key) -> Exact:
    """The same as an exact function of two values."""
    return {key: value for key, value in ((relu, share.relu), (linear, share.linear)) if value}


def rounded(values: list[Fraction]) -> tuple[np.ndarray, np.ndarray]:
    """Fractions in double precision, and how far these may be from them."""
    numbers = np.array([float(value) for value in values], dtype=np.float64)
    off = [abs(value - Fraction(number)) for value, number in zip(values, numbers.tolist(), strict=True)]
    return numbers, np.array([beyond(one) for one in off], dtype=np.float64)
