"""Interval arithmetic: each layer's range from the ranges before it, as if inputs were independent."""

import numpy as np

from tessella.network import Floats, Layer
from tessella.tightening.rounding import gamma, lost


def interval(layer: Layer, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Bounds on a layer's preactivations from bounds on its inputs; exact (but for rounding) in the first layer of a box.

    Parameters
    ----------
    layer
        The layer.
    low, high
        Bounds on its inputs.
    """
    weight = layer.weight
    positive, negative = _parts(weight)
    lower = positive @ low + negative @ high + layer.bias
    upper = positive @ high + negative @ low + layer.bias
    below = positive @ np.abs(low) - negative @ np.abs(high) + np.abs(layer.bias)
    above = positive @ np.abs(high) - negative @ np.abs(low) + np.abs(layer.bias)
    tiny = lost(layer.inputs, weight, np.concatenate([low, high]))
    return np.asarray(lower - gamma(layer.inputs) * below - tiny), np.asarray(upper + gamma(layer.inputs) * above + tiny)


def _parts(weight: Floats) -> tuple[Floats, Floats]:
    """Positive and negative entries."""
    if isinstance(weight, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]  or sparse
        return np.maximum(weight, 0.0), np.minimum(weight, 0.0)
    return weight.maximum(0.0), weight.minimum(0.0)
