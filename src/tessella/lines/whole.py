"""A path in whole numbers: what floating-point arithmetic cannot decide is decided here, one piece after the other.

On a segment from p to q the inputs are p + t (q - p).  Floating-point numbers are whole numbers times powers of two, so on a piece of one pattern every preactivation is ``slope * t + constant``
with whole coefficients times a power of two, and it changes its sign at a rational t.  Nothing is rounded.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from tessella.network import Floats, Mask, Network
from tessella.partition.integers import Affine, Integers, Matrix, whole_numbers, with_bias

_CLOSE = 1e-9  # quotients that differ by less, relative to their size, are compared as fractions


class Turn(NamedTuple):
    """A break: where on the segment, and what changes."""

    at: Fraction  # the place, from 0 to 1
    units: tuple[int, ...]  # ReLUs by their numbers in a pattern
    active: tuple[bool, ...]  # whether each is active behind


@dataclass(frozen=True, slots=True)
class Stretch:
    """All that happens between two places of a segment."""

    # first, last: the patterns right behind the one, and right before the other
    first: Mask
    last: Mask
    turns: tuple[Turn, ...]  # the breaks between them, in order


class TooLong(Exception):  # noqa: N818  no error: somebody else takes over
    """Exact arithmetic would take longer than is allowed."""


class Line:
    """A network on one segment of a path.

    Parameters
    ----------
    network
        The network.
    start, stop
        The ends of the segment.

    Examples
    --------
    >>> network = Network.from_arrays([([[1.0], [-1.0]], [0.0, 0.25]), ([[1.0, 1.0]], [-0.5])], relu_output=True)
    >>> stretch = Line(network, np.array([-1.0]), np.array([1.0])).stretch(Fraction(0), Fraction(1))
    >>> stretch.first.tolist(), [(str(turn.at), turn.units) for turn in stretch.turns]
    ([False, True, True], [('3/8', (2,)), ('1/2', (0,)), ('5/8', (1,)), ('3/4', (2,))])
    """

    def __init__(self, network: Network, start: Floats, stop: Floats) -> None:
        """Nothing is computed yet."""
        last = max((number for number, layer in enumerate(network.layers, start=1) if layer.relus), default=0)
        self._layers = network.layers[:last]
        self._starts = np.cumsum([0, *(layer.relus for layer in self._layers)])
        (low, high), exponent = whole_numbers(np.stack([start, stop]))
        self._inputs = Affine(np.stack([high - low, low], axis=1), exponent)
        self._weights = dict[int, Matrix]()
        self._affine, self._active = list[Affine](), list[Mask]()

    def stretch(self, low: Fraction, high: Fraction, step: Callable[[int], None] | None = None) -> Stretch:
        """What happens between two places.

        Parameters
        ----------
        low, high
            From 0 to 1; what changes at either of them is not told.
        step
            Told before each composition how many multiplications it takes; may raise to end it.
        """
        self._compose(low, 0, step)
        first = before = np.concatenate([*self._active, np.zeros(0, dtype=np.bool_)])
        turns, at = list[Turn](), low
        while True:
            found = self._next()
            if found is None or found[0] >= high:
                return Stretch(first, before, tuple(turns))
            at, layer = found
            self._compose(at, layer, step)
            now = np.concatenate(self._active)
            units = np.flatnonzero(now != before)
            turns.append(Turn(at, tuple(units.tolist()), tuple(now[units].tolist())))
            before = now

    def _compose(self, at: Fraction, begin: int, step: Callable[[int], None] | None) -> None:
        """The preactivations right behind a place, from a layer on; those before stay."""
        del self._affine[begin + 1 :], self._active[begin:]
        for number in range(begin, len(self._layers)):
            layer = self._layers[number]
            if len(self._affine) <= number:
                if step is not None:
                    step(2 * layer.parameters)
                self._affine.append(self._behind(number))
            self._active.append(_positive(self._affine[number].numbers[layer.rectified], at))

    def _behind(self, number: int) -> Affine:
        """The preactivations of a layer, from the states of the one before."""
        if number not in self._weights:
            self._weights[number] = Matrix.of(self._layers[number].weight)
        weight = self._weights[number]
        if number == 0:
            inner, power = self._inputs, 0
        else:
            inner, before, power = self._affine[number - 1], self._layers[number - 1], 0
            factors = before.factors(self._active[number - 1])
            weight, numbers = weight.of_columns(factors != 0.0), inner.numbers
            if ((factors != 1.0) & (factors != 0.0)).any():
                own, power = whole_numbers(factors)
                numbers = numbers * own[:, None]
            inner = Affine(numbers, inner.exponent)
        outer = Affine(weight.times(inner.numbers), weight.exponent + power + inner.exponent)
        return with_bias(outer, self._layers[number].bias)

    def _next(self) -> tuple[Fraction, int] | None:
        """The next place where a unit changes, and the first layer where one does."""
        best, first = None, 0
        for number, (affine, active) in enumerate(zip(self._affine, self._active, strict=True)):
            rows = affine.numbers[self._layers[number].rectified]
            slopes, constants = rows[:, 0], rows[:, 1]
            moving = np.flatnonzero(np.where(active, slopes < 0, slopes > 0))
            there = _least(-constants[moving], slopes[moving])
            if there is not None and (best is None or there < best):
                best, first = there, number
        return None if best is None else (best, first)


def _positive(rows: Integers, at: Fraction) -> Mask:
    """Which affine functions are positive right behind a place."""
    slopes, constants = rows[:, 0], rows[:, 1]
    values = slopes * at.numerator + constants * at.denominator
    return np.asarray((values > 0) | ((values == 0) & (slopes > 0)), dtype=np.bool_)


def _least(above: Integers, below: Integers) -> Fraction | None:
    """The least of some quotients."""
    if not len(above):
        return None
    quick = np.array([_quotient(a, b) for a, b in zip(above.tolist(), below.tolist(), strict=True)])
    near = quick <= quick.min() + _CLOSE * abs(quick.min())
    return min(Fraction(a, b) for a, b in zip(above[near].tolist(), below[near].tolist(), strict=True))


def _quotient(above: int, below: int) -> float:
    try:
        return above / below
    except OverflowError:
        return float("inf")
