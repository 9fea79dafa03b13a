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
from tessella.network import Floats, Weight

Integers: TypeAlias = npt.NDArray[np.object_]  # Python's own, which do not overflow

_LARGEST = 1024  # exponent of a floating-point number
_AT_ONCE = 500_000  # products that are in memory at the same time
_bits: Any = np.frompyfunc(int.bit_length, 1, 1)


@dataclass(frozen=True, slots=True)
class Affine:
    """Affine functions on the unit cube: coefficients and, in the last column, constants, all times 2**exponent."""

    numbers: Integers
    exponent: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Affine functions that must be positive, so that positive factors do not matter."""

    numbers: Integers  # coefficients and, in the last column, constants
    scales: Integers  # for each row a power of two of about the size of its largest number
    floats: Floats  # the numbers divided by the scales, and rounded

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


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix of whole numbers times 2**exponent, row by row without its zeros: row i has ``numbers[starts[i]:starts[i + 1]]``, in these ``columns``.

    Examples
    --------
    >>> matrix = Matrix.of(np.array([[0.5, 0.0], [0.0, 0.0], [1.0, -2.0]]))
    >>> matrix.times(np.array([[1], [3]], dtype=object)).ravel().tolist(), matrix.exponent
    ([1, 0, -10], -1)
    """

    numbers: Integers
    exponent: int
    columns: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, weight: Weight) -> "Matrix":
        """That of a dense or sparse matrix."""
        if isinstance(weight, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]  or sparse
            rows, columns = np.nonzero(weight)
            starts, values = np.searchsorted(rows, np.arange(len(weight) + 1)), weight[rows, columns]
        else:
            starts, columns, values = weight.indptr, weight.indices, weight.data
        return cls(*whole_numbers(values), columns.astype(np.int64), starts.astype(np.int64))

    def of_columns(self, chosen: npt.NDArray[np.bool_]) -> "Matrix":
        """The part in some columns; the others are empty."""
        kept = chosen[self.columns]
        starts = np.concatenate([[0], np.cumsum(kept)])[self.starts]
        return Matrix(self.numbers[kept], self.exponent, self.columns[kept], starts)

    def times(self, numbers: Integers) -> Integers:
        """The product with whole numbers, without the power of two."""
        filled = np.flatnonzero(np.diff(self.starts))
        result = np.full((len(self.starts) - 1, numbers.shape[1]), 0, dtype=np.object_)
        step = max(_AT_ONCE // max(numbers.shape[1], 1), 1)
        begin = 0
        while begin < len(filled):  # some rows at a time: each product is an object
            first = self.starts[filled[begin]]
            end = begin + max(int(np.searchsorted(self.starts[filled[begin:] + 1], first + step, side="right")), 1)
            part = slice(first, self.starts[filled[end - 1] + 1])
            products = self.numbers[part, None] * numbers[self.columns[part]]
            result[filled[begin:end]] = np.add.reduceat(products, self.starts[filled[begin:end]] - first, axis=0)
            begin = end
        return result


def with_bias(affine: Affine, bias: Floats) -> Affine:
    """Affine functions with a bias added."""
    whole, exponent = whole_numbers(bias)
    lowest = min(exponent, affine.exponent)
    numbers = affine.numbers << (affine.exponent - lowest)
    numbers[:, -1] += whole << (exponent - lowest)
    return Affine(numbers, lowest)


def on_inputs(weight: Weight, bias: Floats, box: Box) -> Affine:
    """``weight @ x + bias`` as functions on the cube: x is lower + (upper - lower) * u."""
    (lower, upper), exponent = whole_numbers(np.stack([box.lower, box.upper]))
    whole = Matrix.of(weight)
    inputs = np.full((box.dim, box.free_dim + 1), 0, dtype=np.object_)
    inputs[np.flatnonzero(box.free), np.arange(box.free_dim)] = (upper - lower)[box.free]
    inputs[:, -1] = lower
    return with_bias(Affine(whole.times(inputs), whole.exponent + exponent), bias)


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
