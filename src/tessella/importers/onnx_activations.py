"""ONNX operators that are activations: ReLUs with and without slopes, what clips and what shrinks."""

from collections.abc import Sequence

import numpy as np

from tessella.errors import UnsupportedModel, UnsupportedOperator
from tessella.importers.activations import absolute, clip, leaky
from tessella.importers.onnx_node import Node, Value, operator

_UNLIMITED = 3.4e38  # the default ends of a Clip
_AFTER_FIRST = slice(1, None)


@operator("Relu")
def _relu(node: Node) -> Sequence[Value]:
    return [node.trace.relu(node.tensor())]


@operator("LeakyRelu")
def _leaky(node: Node) -> Sequence[Value]:
    return [leaky(node.trace, node.tensor(), node.attribute("alpha", 0.01))]


@operator("PRelu", constants=_AFTER_FIRST)
def _parametric(node: Node) -> Sequence[Value]:
    tensor, slope = node.tensor(), node.constant(1)
    if slope.ndim == 1 and slope.size == tensor.shape[1 % len(tensor.shape)] != tensor.shape[-1]:
        slope = slope.reshape([-1, *[1] * (len(tensor.shape) - 2)])  # one per channel, as operator sets before 7 have it
    return [leaky(node.trace, tensor, slope, "PReLU")]


@operator("ThresholdedRelu")
def _thresholded(node: Node) -> Sequence[Value]:
    if (threshold := node.attribute("alpha", 1.0)) != 0:
        msg = f"jumps from 0 to {threshold:g}, so it is not continuous; only a threshold of 0 is a ReLU"
        raise UnsupportedOperator(msg)
    return [node.trace.relu(node.tensor())]


@operator("Shrink")
def _shrink(node: Node) -> Sequence[Value]:
    tensor, threshold, offset = node.tensor(), node.attribute("lambd", 0.5), node.attribute("bias", 0.0)
    if threshold != offset or threshold < 0:
        msg = f"jumps at {threshold:g} (its bias is {offset:g}), so it is not continuous; only equal ones are piecewise linear"
        raise UnsupportedOperator(msg)
    tensor = node.trace.held(tensor)
    above = node.trace.relu(tensor.shift(-threshold), "soft threshold")
    below = node.trace.relu(tensor.scale(-1.0).shift(-threshold), "soft threshold")
    return [node.trace.add(above, below.scale(-1.0))]


@operator("Abs")
def _absolute(node: Node) -> Sequence[Value]:
    return [absolute(node.trace, node.tensor())]


@operator("HardSigmoid")
def _hard_sigmoid(node: Node) -> Sequence[Value]:
    line = node.tensor().scale(node.attribute("alpha", 0.2)).shift(node.attribute("beta", 0.5))
    return [clip(node.trace, line, 0.0, 1.0)]


@operator("Clip", constants=_AFTER_FIRST)
def _clip(node: Node) -> Sequence[Value]:
    low, high = (_limit(node, name, place) for place, name in enumerate(("min", "max"), start=1))
    if low is not None and high is not None and low > high:
        msg = f"clips to [{low}, {high}], which is empty"
        raise UnsupportedModel(msg)
    return [clip(node.trace, node.tensor(), low, high)]


def _limit(node: Node, name: str, place: int) -> float | None:
    """One end of a Clip, an attribute in old operator sets and an input in new ones; None if there is none."""
    value = node.attribute(name)
    if value is None and node.optional(place) is not None:
        value = node.constant(place)
    end = None if value is None else float(np.asarray(value).reshape(()))
    return None if end is None or abs(end) >= _UNLIMITED else end
