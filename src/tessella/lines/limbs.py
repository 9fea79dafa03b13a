"""Numbers of many digits in matrix products: fixed-point numbers whose digits, or *limbs*, are small whole numbers in floating-point arrays.

A limb is a whole number between minus and plus half a *base*, 2**bits.  Products of limbs, and sums of as many as a layer has inputs, are whole numbers below 2**53, so a product of matrices of limbs
is exact, whoever computes it and in whatever order (Ozaki, Ogita, Oishi and Rump 2012).  What is lost is what is left out: products of small limbs, and limbs behind the last one that is kept.
"""

from dataclasses import dataclass
from math import ceil, log2
from typing import Any

import numpy as np

from tessella.network import Floats

_LEADING = 3  # limbs that carries may need before the first
_MOST_OF_WEIGHTS = 6  # limbs of weights: more digits than theirs only if their sizes differ by far
_UNDERFLOW = 2.0**-1000  # more than what is lost of a number where it is scaled


def bits_of(terms: int, most: int) -> int:
    """How many bits limbs may have, if so many products are added, each of two of at most so many limbs."""
    return max((54 - ceil(log2(max(terms, 2) * most))) // 2, 4)


@dataclass(frozen=True, slots=True)
class Digits:
    """An array of numbers: ``sum(limbs[:, k] * 2**-(bits * (k + 1)) for k) * 2**exponent``."""

    limbs: Floats  # of shape (rows, limbs, columns)
    exponent: int  # of all of them
    bits: int  # of a limb

    @property
    def kept(self) -> int:
        """How many limbs there are."""
        return self.limbs.shape[1]

    @property
    def unit(self) -> float:
        """The last limb's unit, in units of 2**exponent."""
        return 2.0 ** -(self.bits * self.kept)

    def rounded(self) -> Floats:
        """The numbers, divided by 2**exponent, each with a relative error below 2**-50."""
        found = np.zeros(self.limbs[:, 0].shape)
        for number in range(self.kept - 1, -1, -1):
            found += self.limbs[:, number] * 2.0 ** -(self.bits * (number + 1))
        return found


def exponent_of(largest: float) -> int:
    """The exponent for numbers up to this size: they are at most a quarter of its power of two."""
    return int(np.frexp(largest)[1]) + 2 if largest > 0.0 else 0


def digits(values: Floats, exponent: int, kept: int, bits: int) -> Digits:
    """Floating-point numbers as digits; what lies behind the last limb, at most half its unit, is left out.

    Examples
    --------
    >>> found = digits(np.array([[0.7, -3.0]]), 4, 3, 21)
    >>> (found.rounded() * 2.0**4).tolist(), found.limbs.tolist()
    ([[0.7, -3.0]], [[[91750.0, -393216.0], [838861.0, 0.0], [-419456.0, 0.0]]])
    """
    rest, limbs = np.ldexp(values, bits - exponent), np.empty((values.shape[0], kept, values.shape[1]))
    for number in range(kept):
        limbs[:, number] = np.rint(rest)
        rest = (rest - limbs[:, number]) * 2.0**bits
    return Digits(limbs, exponent, bits)


@dataclass(frozen=True, slots=True)
class Weights:
    """A matrix of weights as digits."""

    parts: tuple[Any, ...]  # the limbs, a matrix each, dense or sparse
    exponent: int  # of all
    bits: int  # of a limb
    left_out: float  # of a number at most, in units of 2**exponent

    @classmethod
    def of(cls, weight: Any, bits: int) -> "Weights":
        """Those of a layer; as many limbs as they need, up to a limit."""
        dense = isinstance(weight, np.ndarray)
        rest = weight if dense else weight.data
        exponent = exponent_of(float(np.abs(rest).max(initial=0.0)))
        rest, parts = np.ldexp(rest, bits - exponent), list[Any]()
        while len(parts) < _MOST_OF_WEIGHTS and (not parts or rest.any()):
            limb = np.rint(rest)
            rest = (rest - limb) * 2.0**bits
            parts.append(limb if dense else type(weight)((limb, weight.indices, weight.indptr), shape=weight.shape))
        return cls(tuple(parts), exponent, bits, _UNDERFLOW + (2.0 ** -(bits * len(parts)) if rest.any() else 0.0))

    def times(self, inner: Digits, used: Any, diagonals: int) -> tuple[Floats, float]:
        """The product, as sums for `carried`, and how much of it was left out at most, in units of 2**(sum of the exponents).

        Parameters
        ----------
        inner
            What is multiplied.
        used
            Which of its rows are not 0.
        diagonals
            Products of limbs i and j are left out if i + j is not below this.
        """
        terms, kept, columns = len(used), inner.kept, inner.limbs.shape[2]
        diagonals = min(diagonals, len(self.parts) + kept - 1)
        flat = np.ascontiguousarray(inner.limbs[used]).reshape(terms, kept * columns)
        sums = np.zeros((self.parts[0].shape[0], diagonals, columns))
        for number, part in enumerate(self.parts[:diagonals]):
            many = min(diagonals - number, kept)
            product = (part if terms == part.shape[1] else part[:, used]) @ flat[:, : many * columns]
            sums[:, number : number + many] += product.reshape(-1, many, columns)
        lost = len(self.parts) * 2.0 ** -(self.bits * diagonals) if diagonals < len(self.parts) + kept - 1 else 0.0
        return sums, terms * (lost + self.left_out)


def scaled(inner: Digits, factors: Digits) -> Floats:
    """Products of numbers and factors one by one, as sums for `carried`; both must have few limbs enough, and nothing is left out."""
    sums = np.zeros((len(inner.limbs), inner.kept + factors.kept - 1, inner.limbs.shape[2]))
    for number in range(factors.kept):
        sums[:, number : number + inner.kept] += factors.limbs[:, [number]] * inner.limbs
    return sums


def carried(sums: Floats, exponent: int, bits: int, kept: int, added: Floats | None = None) -> Digits:
    """Numbers from sums of products: ``sum(sums[:, d] * 2**-(bits * (d + 2)) for d) * 2**exponent``, plus what is added to each row.

    At most two units of the last limb are lost.

    Parameters
    ----------
    sums
        Whole numbers, of shape (rows, sums, columns).
    exponent, bits
        See above.
    kept
        How many limbs to keep.
    added
        One number per row, or an array of shape (rows, 1).
    """
    rows, many, columns = sums.shape
    wide = np.concatenate([np.zeros((rows, _LEADING, columns)), sums], axis=1)
    _carry(wide, bits)
    size = Digits(wide, 0, bits).rounded()  # the first limb of wide is that of d = -_LEADING
    largest = float(np.abs(size).max(initial=0.0))
    here = exponent + bits * (_LEADING - 1)  # wide as digits has this exponent
    targets = [exponent_of(2.0 * largest) + here] if largest > 0.0 else []
    if added is not None and added.any():
        targets.append(exponent_of(2.0 * float(np.abs(added).max())))
    target = max(targets, default=exponent)
    whole, shift = divmod(here - target, bits)
    found = np.zeros((rows, kept + 2, columns))  # one limb before, and one behind
    for number in range(kept + 2):
        source = number - 1 + whole
        if 0 <= source < many + _LEADING:
            found[:, number] = wide[:, source] * 2.0**shift
    if added is not None and added.any():
        found[:, 1 : kept + 2] += digits(added.reshape(rows, 1), target, kept + 1, bits).limbs
    _carry(found, bits)
    found[:, 1] += found[:, 0] * 2.0**bits
    return Digits(np.ascontiguousarray(found[:, 1 : kept + 1]), target, bits)


def _carry(limbs: Floats, bits: int) -> None:
    """Make all limbs but the first one small, in place."""
    for number in range(limbs.shape[1] - 1, 0, -1):
        over = np.rint(limbs[:, number] * 2.0**-bits)
        limbs[:, number] -= over * 2.0**bits
        limbs[:, number - 1] += over
