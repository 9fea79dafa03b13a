"""Small random networks with maxima, minima, pooling, clips and leaky units, each with what it computes written down in plain numpy."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from helpers.odd_networks import Case, random_walls
from tessella.importers.activations import absolute, clip, largest, leaky, minimum, smallest
from tessella.importers.operators import Window, pool_maximum
from tessella.importers.trace import Trace

SLOPES = np.array([0.1, 0.5, -0.5, 0.0])
GROUPS = np.arange(6).reshape(2, 3)


class Kind(NamedTuple):
    """How many units there are, what follows them in a trace, and the same for an array whose rows are points."""

    units: int
    build: Callable
    meant: Callable


def pooled(trace, hidden):
    """Windows of three, two apart, with one unit of padding at each end."""
    return pool_maximum(trace, hidden.reshape((1, 1, -1)), [3], Window([2], [(1, 1)], [1]))


def pooled_by_hand(values):
    padded = np.pad(values, ((0, 0), (1, 1)), constant_values=-np.inf)
    return np.stack([padded[:, at : at + 3].max(axis=1) for at in range(0, values.shape[1], 2)], axis=1)


KINDS = {
    "maxout": Kind(6, lambda trace, hidden: largest(trace, hidden, GROUPS), lambda values: values.reshape(-1, 2, 3).max(axis=2)),
    "minout": Kind(6, lambda trace, hidden: smallest(trace, hidden, GROUPS), lambda values: values.reshape(-1, 2, 3).min(axis=2)),
    "pooling": Kind(5, pooled, pooled_by_hand),
    "minimum": Kind(
        6,
        lambda trace, hidden: minimum(trace, hidden.take(np.arange(3)), hidden.take(np.arange(3, 6))),
        lambda values: np.minimum(values[:, :3], values[:, 3:]),
    ),
    "leaky": Kind(4, lambda trace, hidden: leaky(trace, hidden, SLOPES), lambda values: np.where(values > 0, 1, SLOPES) * values),
    "absolute": Kind(4, absolute, np.abs),
    "clip": Kind(3, lambda trace, hidden: clip(trace, hidden, -0.5, 0.5), lambda values: values.clip(-0.5, 0.5)),
}


class Piecewise(NamedTuple):
    """A network and a domain as plain arrays, and what the network computes, point by point."""

    case: Case
    meant: Callable


def piecewise_case(seed, kinds=tuple(KINDS), most_inputs=3) -> Piecewise:
    """A layer of one kind, a smaller one of leaky units or ReLUs, and two outputs; weights are generic, or of few digits, so that planes meet."""
    rng = np.random.default_rng([41, *np.atleast_1d(seed)])
    name, inputs = kinds[rng.integers(len(kinds))], int(rng.integers(1, most_inputs + 1))
    kind, slope = KINDS[name], rng.choice([0.0, 0.25, -1.0])
    width = kind.meant(np.zeros((1, kind.units))).shape[1]
    shapes, digits = [(kind.units, inputs), (2, width), (2, 2)], rng.random() < 0.5
    layers = [(rng.standard_normal(shape), rng.standard_normal(shape[0]) / 2) for shape in shapes]
    if digits:
        layers = [(np.round(2 * weight) / 2, np.round(2 * bias) / 2) for weight, bias in layers]
    trace = Trace((inputs,))
    hidden = kind.build(trace, _affine(trace, trace.input, layers[0]))
    found = trace.network(_affine(trace, leaky(trace, _affine(trace, hidden, layers[1]), slope), layers[2]))

    def meant(points):
        (weight, bias), (second, shift), (last, end) = layers
        inner = kind.meant(points @ weight.T + bias) @ second.T + shift
        return np.where(inner > 0, inner, slope * inner) @ last.T + end

    lower, upper = -np.ones(inputs), np.ones(inputs)
    walls = random_walls(rng, lower, upper, np.zeros(inputs)) if rng.random() < 0.3 else ()
    plain = [(layer.dense(), layer.bias, layer.rectified, layer.slope) for layer in found.layers]
    return Piecewise(Case(plain, lower, upper, *walls), meant)


def _affine(trace, tensor, layer):
    weight, bias = layer
    return trace.multiply(weight, tensor.reshape((-1,))).shift(bias)
