"""Interval arithmetic: each layer's range from the ranges before it, as if inputs were independent."""

from collections.abc import Sequence

import numpy as np

from tessella.network import Floats, Layer
from tessella.preactivation import passed_on
from tessella.tightening.rounding import gamma, lost

_ENTRIES = 4_000_000  # weights that are split into positive and negative ones at a time


def interval(layer: Layer, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Bounds on a layer's preactivations from bounds on its inputs; exact (but for rounding) in the first layer of a box.

    Parameters
    ----------
    layer
        The layer.
    low, high
        Bounds on its inputs.
    """
    size = max(_ENTRIES * layer.units // max(layer.parameters, 1), 1)
    parts = [_part(layer, slice(begin, begin + size), low, high) for begin in range(0, layer.units, size)]
    return np.concatenate([lower for lower, _ in parts]), np.concatenate([upper for _, upper in parts])


def _part(layer: Layer, units: slice, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The same for some of the units."""
    weight, bias = layer.weight[units], layer.bias[units]
    positive, negative = _parts(weight)
    lower = positive @ low + negative @ high + bias
    upper = positive @ high + negative @ low + bias
    below = positive @ np.abs(low) - negative @ np.abs(high) + np.abs(bias)
    above = positive @ np.abs(high) - negative @ np.abs(low) + np.abs(bias)
    tiny = lost(layer.inputs, weight, np.concatenate([low, high]))
    return np.asarray(lower - gamma(layer.inputs) * below - tiny), np.asarray(upper + gamma(layer.inputs) * above + tiny)


def endless_intervals(layers: Sequence[Layer], low: Floats, high: Floats) -> list[tuple[Floats, Floats]]:
    """Bounds on all layers' preactivations where inputs have no ends: an end is infinite, too, if it reads one or passes the largest number.

    Parameters
    ----------
    layers
        The layers.
    low, high
        Bounds on the inputs.
    """
    found = list[tuple[Floats, Floats]]()
    for layer in layers:
        positive, negative = _parts(layer.weight)
        down, up = np.isneginf(low), np.isposinf(high)
        with np.errstate(over="ignore", invalid="ignore"):
            lower, upper = interval(layer, np.where(down, 0.0, low), np.where(up, 0.0, high))
        low = np.where((positive @ down > negative @ up) | np.isnan(lower), -np.inf, lower)
        high = np.where((positive @ up > negative @ down) | np.isnan(upper), np.inf, upper)
        found.append((low, high))
        low, high = passed_on(layer, low, high)
    return found


def _parts(weight: Floats) -> tuple[Floats, Floats]:
    """Positive and negative entries."""
    if isinstance(weight, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]  or sparse
        return np.maximum(weight, 0.0), np.minimum(weight, 0.0)
    return weight.maximum(0.0), weight.minimum(0.0)
