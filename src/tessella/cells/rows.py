"""Rows of a cell: made from the layer before, put on the stack, read and combined; compiled with Numba.

`tessella.cells.state` says what rows are.  Whoever holds one cell gives its arrays, whoever holds a stack of cells gives views.
"""

import numpy as np

from tessella.cells.state import Layers, Space
from tessella.cells.sums import sum_rows
from tessella.kernel.functions import apart, compiled
from tessella.kernel.record import Bytes, Matrix, Vector
from tessella.numerics import EPS, LOST_OF_PRODUCTS, ROUNDOFF

_SHORTEST = 1e-30  # the square of a length is at least this
_SAFE = 1.0 + 1e-12  # more than the rounding of the sum of a row


@compiled
def size_of(row: Vector) -> float:
    """What a unit's row is scaled by: the sum of its absolute numbers."""
    total = 0.0
    for c in range(len(row)):
        total += abs(row[c])
    return total


@compiled
def value(row: Vector, point: Vector) -> float:
    """A row's value at a point of z."""
    p = len(point)
    total = row[p]
    for c in range(p):
        total += row[c] * point[c]
    return total


@compiled
def compose(layer: int, layers: Layers, active: Bytes, combined: Matrix, errors: Vector, sizes: Vector) -> None:
    """Put the rows of one layer's units in this cell, from those of the layer before, into ``combined``, and bounds on their rounding errors into ``errors``.

    ``sizes`` is memory for numbers of the layer before.
    """
    first, units, before, reads = layers.first[layer], layers.width[layer], layers.first[layer - 1], layers.width[layer - 1]
    weights, biases, slopes, at = layers.weights, layers.biases, layers.slopes, layers.start[layer]
    doubts, folded = layers.weight_doubts, len(layers.bias_doubts) > 0
    p = combined.shape[1] - 1
    for j in range(reads):
        if active[before + j] or slopes[before + j] != 0.0:
            sizes[j] = size_of(combined[before + j])
    for i in range(units):
        g = first + i
        for c in range(p):
            combined[g, c] = 0.0
        combined[g, p] = biases[g]
        size, error, reach, terms = abs(biases[g]), layers.bias_doubts[g] if folded else 0.0, 1.0, 2
        for j in range(reads):
            factor = 1.0 if active[before + j] else slopes[before + j]
            if factor != 0.0:
                weight = weights[at + i * reads + j]
                doubt = doubts[at + i * reads + j] if folded else 0.0
                if weight != 0.0 or doubt != 0.0:
                    weight *= factor
                    for c in range(p + 1):
                        combined[g, c] += weight * combined[before + j, c]
                    size += abs(weight) * sizes[j]
                    error += abs(weight) * errors[before + j] + abs(factor) * doubt * (sizes[j] + errors[before + j])
                    reach += sizes[j]
                    terms += 1
        if terms > 2:  # one for each product and sum, and one for a slope; else nothing was computed
            error = 1.0001 * error + 1.01 * terms * ROUNDOFF * size + LOST_OF_PRODUCTS * reach
        errors[g] = error


@compiled
def place(unit_row: Vector, side: float, space: Space, row: Vector) -> float:
    """Put a unit's row, or for side -1 its negative, into ``row``, scaled; behind it the square of its length.  The scale."""
    p = len(unit_row) - 1
    scale = side / size_of(unit_row)
    for c in range(p + 1):
        row[c] = scale * unit_row[c]
    total = 0.0
    if space.in_inputs:
        for c in range(p):
            total += row[c] * row[c]
    else:
        gram = space.gram
        for c in range(p):
            product = 0.0
            for e in range(p):
                product += gram[c, e] * row[e]
            total += product * row[c]
    row[p + 1] = max(total, _SHORTEST)
    return scale


@compiled
def place_with_error(unit_row: Vector, error: float, side: float, space: Space, row: Vector) -> None:
    """Do the same, and put a bound on the row's rounding error behind it."""
    scale = place(unit_row, side, space, row)
    row[len(unit_row) + 1] = error * abs(scale) + 8.0 * EPS


@compiled
def quick_sign(unit_row: Vector, error: float, trusted: float) -> int:
    """A unit's sign where its row alone decides it: 1, 0, or -1 if it does not, -2 if its relative error is more than is trusted."""
    p = len(unit_row) - 1
    size = 0.0
    for c in range(p):
        size += abs(unit_row[c])
    constant = unit_row[p]
    if size == 0.0 and error == 0.0:
        return 1 if constant > 0.0 else 0
    if constant - size * _SAFE > error:
        return 1
    if constant + size * _SAFE < -error:
        return 0
    return -1 if error < trusted * (size + abs(constant)) else -2  # also where numbers are too large: infinite, or none


@apart
def combine(frame: Matrix, combination: Vector, slopes: Vector) -> None:
    """Put a combination of the frame's rows into ``slopes``."""
    sum_rows(frame, combination, slopes, 0.0, np.float64)
