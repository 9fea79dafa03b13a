"""Affine functions in whole numbers.

Floating-point numbers are whole numbers times powers of two, so every preactivation on a cell is an affine function with whole
coefficients times a power of two.  The free inputs are written as u in the unit cube.  Python's own integers do not overflow, so
nothing is rounded here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tessella.domain import Box
from tessella.network import Floats

Integers: TypeAlias = npt.NDArray[np.object_]  # Python's own, which do not overflow

_LARGEST = 1024  # exponent of a floating-point number
_bits: Any = np.frompyfunc(int.bit_length, 1, 1)


@dataclass(frozen=True, slots=True)
class Affine:
    """Affine functions on the unit cube: coefficients and, in the last column, constants, all times 2**exponent."""

    numbers: Integers
    exponent: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Affine functions that must be positive, so that positive factors do not matter.

    Parameters
    ----------
    numbers
        Coefficients and, in the last column, constants.
    scales
        For each row a power of two of about the size of its largest number.
    floats
        The numbers divided by the scales, and rounded.
    """

    numbers: Integers
    scales: Integers
    floats: Floats

    def __getitem__(self, index: Any) -> "Rows":
        return Rows(self.numbers[index], self.scales[index], self.floats[index])


def whole_numbers(values: Floats) -> tuple[Integers, int]:
    """Whole numbers and an exponent: the values are the numbers times 2**exponent."""
    fractions, exponents = np.frexp(values)
    mantissas = (fractions * 2.0**53).astype(np.int64)
    trailing = np.maximum(np.frexp((mantissas & -mantissas).astype(np.float64))[1] - 1, 0)
    powers = exponents.astype(np.int64) - 53 + trailing
    exponent = int(powers[mantissas != 0].min(initial=_LARGEST))
    shifts = np.where(mantissas != 0, powers - exponent, 0)
    return (mantissas >> trailing).astype(np.object_) << shifts.astype(np.object_), exponent


def with_bias(affine: Affine, bias: Floats) -> Affine:
    """Affine functions with a bias added."""
    whole, exponent = whole_numbers(bias)
    lowest = min(exponent, affine.exponent)
    numbers = affine.numbers << (affine.exponent - lowest)
    numbers[:, -1] += whole << (exponent - lowest)
    return Affine(numbers, lowest)


def on_inputs(weight: Floats, bias: Floats, box: Box) -> Affine:
    """``weight @ x + bias`` as functions on the cube: x is lower + (upper - lower) * u."""
    (lower, upper), exponent = whole_numbers(np.stack([box.lower, box.upper]))
    whole, power = whole_numbers(weight)
    numbers = np.column_stack([whole[:, box.free] * (upper - lower)[box.free], whole @ lower])
    return with_bias(Affine(numbers, power + exponent), bias)


def rows_of(numbers: Integers) -> Rows:
    """Rows from coefficients and constants; common factors are taken out."""
    numbers = numbers // np.maximum(np.abs(np.gcd.reduce(numbers, axis=1)), 1)[:, None]  # small numbers are faster
    scales = 2 ** _bits(np.abs(numbers).max(axis=1, initial=0))
    return Rows(numbers, scales, (numbers / scales[:, None]).astype(np.float64))


def ends(numbers: Integers) -> tuple[Integers, Integers]:
    """The least and the largest value of each row on the cube."""
    slopes, constants, zero = numbers[:, :-1], numbers[:, -1], np.array(0, dtype=np.object_)
    return constants + np.minimum(slopes, zero).sum(axis=1), constants + np.maximum(slopes, zero).sum(axis=1)


def joined(parts: Sequence[Rows]) -> Rows:
    """All rows of some parts, in one."""
    return Rows(
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.scales for part in parts]),
        np.concatenate([part.floats for part in parts]),
    )
