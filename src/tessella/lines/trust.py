"""How wrong a walk along a path may be: bounds on what rounding did to the values of a layer, for all places of a piece of the path at once.

Two bounds go side by side, and the better one counts: one number per unit, carried on by the sizes of the weights; and one for the length of the vector of all errors, carried on by a
bound on the largest singular value, which grows less from layer to layer.
"""

from typing import Any, NamedTuple

import numpy as np

from tessella.network import Floats, Layer
from tessella.numerics import LOST_OF_NORMS, LOST_OF_PRODUCTS, ROUNDOFF
from tessella.tightening.rounding import gamma

_KEPT = 50_000_000  # weights whose sizes are kept
_SQUARED = 2048  # units: of larger layers no singular values are bounded
_POWERS = 20
_GUESSES = (1.1, 1.4, 4.0)
_FINE = 1e-11  # errors relative to values below which no singular values are needed
_LOST = 1e-5  # the same beyond which errors are called too large
_MANY = 0.1  # the part of the units for which they may be


class Errors(NamedTuple):
    """What the values of a layer may be off by."""

    each: Floats  # one bound per unit
    length: float  # a bound on the root of the sum of the squares of all of them


class Trust:
    """What is known of the layers of a network, to bound errors with.

    Parameters
    ----------
    layers
        The layers.
    """

    def __init__(self, layers: tuple[Layer, ...]) -> None:
        """Nothing is computed yet."""
        self._layers = layers
        self._keeps = sum(layer.parameters for layer in layers) <= _KEPT
        self._sizes, self._singular = dict[int, Any](), dict[int, float]()

    def after(self, number: int, before: Errors, largest: Floats) -> Errors:
        """Errors of a layer's preactivations.

        Parameters
        ----------
        number
            Which layer.
        before
            Errors of its inputs.
        largest
            The largest sizes of its inputs.
        """
        layer, size = self._layers[number], self._size(number)
        with np.errstate(over="ignore", invalid="ignore"):
            carried, sums = (np.asarray(size @ values) for values in (before.each, largest))
            own = gamma(layer.inputs + 1) * (sums + np.abs(layer.bias)) + LOST_OF_PRODUCTS
            carried = (1.0 + gamma(layer.inputs)) * carried
            each = carried + own
            length = _length(each)
            if np.median(carried) > _FINE * np.median(sums) and np.isfinite(length):
                short = self.largest_singular(number) * before.length
                rows = lengths_of_rows(size)
                each = np.minimum(each, rows * before.length * (1.0 + gamma(4)) + own)
                length = min(_length(each), (short + _length(own)) * (1.0 + gamma(4)))
        return Errors(each, length)

    def passed(self, number: int, errors: Errors, low: Floats, high: Floats) -> Errors:
        """Errors of what a layer's units pass on, from those of their preactivations and the ends of these.

        A ReLU that is inactive all along passes on 0, whatever its error is.
        """
        layer = self._layers[number]
        silent = layer.rectified & (layer.slope == 0.0) & (high + errors.each <= 0.0)
        if layer.is_plain:
            each = np.where(silent, 0.0, errors.each)
            return Errors(each, min(_length(each), errors.length))
        slopes = np.maximum(np.abs(layer.slope), 1.0)
        rounding = 2.0 * ROUNDOFF * slopes * (np.maximum(np.abs(low), np.abs(high)) + errors.each) + LOST_OF_PRODUCTS
        each = np.where(silent, 0.0, slopes * errors.each * (1.0 + gamma(2)) + rounding)
        return Errors(each, min(_length(each), float(slopes.max()) * errors.length * (1.0 + gamma(4)) + _length(rounding)))

    @staticmethod
    def lost(errors: Errors, largest: Floats) -> bool:
        """Whether errors are too large for most signs to be told."""
        if not (np.isfinite(errors.each).all() and np.isfinite(largest).all()):
            return True
        return bool(np.mean(errors.each > _LOST * largest.max(initial=0.0)) > _MANY)

    def _size(self, number: int) -> Any:
        if number in self._sizes:
            return self._sizes[number]
        size = abs(self._layers[number].weight)
        if self._keeps:
            self._sizes[number] = size
        return size

    def largest_singular(self, number: int) -> float:
        """A bound on the largest singular value: from sums of sizes, or from the matrix of products."""
        if number not in self._singular:
            size = self._size(number)
            n = max(size.shape)
            across, down = (float(np.asarray(size.sum(axis=axis)).max()) for axis in (0, 1))
            found = np.sqrt(across * down) * (1.0 + gamma(n))
            weight = self._layers[number].weight
            if isinstance(weight, np.ndarray) and min(weight.shape) <= _SQUARED:
                found = min(found, _by_factors(weight))
            self._singular[number] = float(found)
        return self._singular[number]


def lengths_of_rows(size: Any) -> Floats:
    """The lengths of the rows of a matrix of sizes, rounded up; small numbers are squared without loss."""
    largest = float(size.max()) if np.prod(size.shape) else 0.0
    if largest == 0.0:
        return np.zeros(size.shape[0])
    scaled = size / largest
    lengths = np.sqrt(np.asarray((scaled * scaled).sum(axis=1)).reshape(-1)) * (1.0 + gamma(size.shape[1] + 4))
    return largest * (lengths + LOST_OF_NORMS * size.shape[1])


def _by_factors(weight: Floats) -> float:
    """The largest singular value s from above: a guess g is one if the factorisation g I - W W' = R' R by Cholesky ends (Rump 2006).

    For then the matrix is that of its factors up to rounding, which is bounded by its trace; the guess comes from powers, and is raised until it holds.
    """
    scale = float(np.abs(weight).max(initial=0.0))
    if scale == 0.0:
        return 0.0
    matrix = weight / scale  # rounds each entry once
    matrix = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    square, n = matrix @ matrix.T, len(matrix)
    vector = np.random.default_rng(0).standard_normal(n)
    for _ in range(_POWERS):
        vector = square @ (vector / np.sqrt(vector @ vector))
    guess = float(np.sqrt(vector @ vector))
    own = gamma(matrix.shape[1] + 4) * float((matrix * matrix).sum()) * 1.01  # what rounding did to the products, in norm
    for wider in _GUESSES:
        there = guess * wider
        square_of = -square
        square_of[np.diag_indices(n)] += there
        trace = float(np.abs(np.diagonal(square_of)).sum())
        if not np.isfinite(trace):
            break
        try:
            np.linalg.cholesky(square_of)
        except np.linalg.LinAlgError:
            continue
        slack = own + 2.0 * ROUNDOFF * there + 2.0 * gamma(n + 4) * trace * 1.01
        return float(np.sqrt(there + slack) * scale * (1.0 + gamma(8)))
    return float("inf")


def _length(values: Floats) -> float:
    """The length of a vector, rounded up."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.sqrt((values * values).sum())) * (1.0 + gamma(len(values))) + 1e-150
