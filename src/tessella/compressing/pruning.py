"""Units of the smaller network that nobody reads, and how far its outputs may be from those of the original."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tessella.compressing.building import Fate, Made
from tessella.compressing.composition import Integers
from tessella.network import Floats, Layer
from tessella.numerics import ROUNDOFF
from tessella.tightening.rounding import gamma, lost


def largest_error(made: Sequence[Made], reach: Floats) -> float:
    """How far outputs may be from those of the original, for inputs of this size at most, if both are evaluated in real arithmetic.

    Of a layer let W be the weights, off by at most D, the exact values that it reads be at most S in size, and those that it gets be off by at most d.  Then its preactivations are off by at most
    |W| d + D S, and by what its biases are off.  What follows a preactivation changes differences by its slope at most.
    """
    off = np.zeros(len(reach))
    for one in made:
        layer, rows = one.layer, one.rows
        wide, size = 1.0 + 2.0 * gamma(2 * layer.inputs), abs(layer.weight)
        total = np.asarray(size @ off) + rows.constant_doubts + lost(layer.inputs, layer.weight, off)
        if rows.doubts is not None:
            total = total + np.asarray(rows.doubts @ np.where(np.isfinite(reach), reach, np.finfo(np.float64).max))
            total = total + lost(layer.inputs, rows.doubts, reach)
        steepest = np.maximum(np.abs(layer.slope), np.where(layer.rectified, 1.0, 0.0))
        off = np.where(total > 0.0, np.nextafter(steepest * total * wide * (1.0 + 4.0 * ROUNDOFF), np.inf), 0.0)
        reach = one.reach
    return float(off.max(initial=0.0))


def pruned(made: Sequence[Made], fates: Sequence[np.ndarray], inputs: int) -> tuple[Layer, ...]:
    """The layers without units that nobody reads; fates say of these ReLUs that they are not read.

    Parameters
    ----------
    made
        The layers.
    fates
        What became of the units of each layer of the original; changed in place.
    inputs
        How many the network has.
    """
    layers = [one.layer for one in made]
    for number in range(len(layers) - 1, 0, -1):
        read = np.asarray(abs(layers[number].weight).sum(axis=0)).ravel() > 0.0
        before = made[number - 1]
        gone = before.units[~read]
        fates[before.number][gone[gone >= 0]] = Fate.UNREAD
        if not read.any():
            after = layers[number]
            constants = Layer(np.zeros((after.units, inputs)), after.bias, after.rectified, after.slope)
            for earlier in made[:number]:
                some = earlier.units[earlier.units >= 0]
                fates[earlier.number][some] = Fate.UNREAD
            return constants, *layers[number + 1 :]
        if not read.all():
            kept = np.flatnonzero(read)
            layers[number] = _with_weight(layers[number], columns=kept)
            layers[number - 1] = _with_weight(layers[number - 1], rows=kept)
    return tuple(layers)


def _with_weight(layer: Layer, *, rows: Integers | None = None, columns: Integers | None = None) -> Layer:
    if columns is not None:
        return replace(layer, weight=layer.weight[:, columns])
    return Layer(layer.weight[rows], layer.bias[rows], layer.rectified[rows], layer.slope[rows])
