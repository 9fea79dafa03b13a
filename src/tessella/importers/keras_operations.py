"""What Keras' bare operations compute, such as ``keras.ops.relu`` or ``x + y``, on traced tensors."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tessella.errors import UnsupportedOperator
from tessella.importers.activations import absolute, at_least, clip, largest_along, leaky, maximum, minimum
from tessella.importers.keras_calls import ACTIVATIONS, Context, rectified, unsupported
from tessella.importers.trace import Ended, Tensor, concatenate


def apply_operation(context: Context, operation: Any, arguments: Sequence[Any]) -> Any:
    """Run one of Keras' bare operations, such as ``keras.ops.relu`` or ``x + y``."""
    kind = type(operation).__name__
    if kind not in OPERATIONS or not type(operation).__module__.startswith("keras."):
        raise UnsupportedOperator(unsupported("the operation", kind))
    return OPERATIONS[kind](context, operation, *arguments)


def _plus(context: Context, _operation: Any, left: Any, right: Any) -> Tensor:
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return context.trace.add(left, right)
    tensor, constant = (left, right) if isinstance(left, Tensor) else (right, left)
    return tensor.shift(context.numbers(constant))


def _minus(context: Context, operation: Any, left: Any, right: Any) -> Tensor:
    return _plus(context, operation, left, right.scale(-1.0) if isinstance(right, Tensor) else -context.numbers(right))


def _times(context: Context, _operation: Any, left: Any, right: Any) -> Tensor:
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        msg = "it multiplies two tensors that both depend on the input, which is not piecewise linear"
        raise UnsupportedOperator(msg)
    tensor, constant = (left, right) if isinstance(left, Tensor) else (right, left)
    return tensor.scale(context.numbers(constant))


def _divided(context: Context, _operation: Any, left: Any, right: Any) -> Tensor:
    if isinstance(right, Tensor):
        msg = "it divides by a tensor that depends on the input, which is not piecewise linear"
        raise UnsupportedOperator(msg)
    return left.scale(1.0 / context.numbers(right))


def _extremum(choose: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def run(context: Context, _operation: Any, left: Any, right: Any) -> Tensor:
        sides = [side if isinstance(side, Tensor) else context.numbers(side) for side in (left, right)]
        return choose(context.trace, *sides)

    return run


def _along(sign: float) -> Callable[..., Tensor]:
    """The largest or smallest element along axes."""

    def run(context: Context, operation: Any, tensor: Tensor) -> Tensor:
        if getattr(operation, "initial", None) is not None:
            msg = "it takes a maximum with an initial value; use keras.ops.maximum for that"
            raise UnsupportedOperator(msg)
        axes = list(range(len(tensor.shape))) if operation.axis is None else [int(axis) for axis in np.atleast_1d(operation.axis)]
        return largest_along(context.trace, tensor.scale(sign), axes, keepdims=bool(operation.keepdims)).scale(sign)

    return run


def _summed(*, average: bool) -> Callable[..., Tensor]:
    """The mean or the sum along axes."""

    def run(_context: Context, operation: Any, tensor: Tensor) -> Tensor:
        axes = list(range(len(tensor.shape))) if operation.axis is None else [int(axis) for axis in np.atleast_1d(operation.axis)]
        mean = tensor.mean(axes, keepdims=bool(operation.keepdims))
        return mean if average else mean.scale(float(prod(tensor.shape[axis] for axis in axes)))

    return run


def _stacked(_context: Context, operation: Any, tensors: Sequence[Tensor]) -> Tensor:
    axis = int(operation.axis) % (len(tensors[0].shape) + 1)
    return concatenate([_with_axis(tensor, axis) for tensor in tensors], axis)


def _with_axis(tensor: Tensor, axis: int) -> Tensor:
    return tensor.reshape((*tensor.shape[:axis], 1, *tensor.shape[axis:]))


def _threshold(context: Context, operation: Any, tensor: Tensor) -> Tensor:
    if operation.threshold != operation.default_value:
        msg = "it is a threshold with another value below it, which jumps; only equal ones are continuous"
        raise UnsupportedOperator(msg)
    return at_least(context.trace, tensor, float(operation.threshold))


def _named(name: str) -> Callable[..., Tensor]:
    return lambda context, _operation, tensor: ACTIVATIONS[name](context, tensor)


def _end(name: str) -> Callable[..., Any]:
    return lambda _context, _operation, tensor: Ended(tensor, (name,))


def _rectified(context: Context, operation: Any, tensor: Tensor) -> Tensor:
    highest = None if operation.max_value is None else float(operation.max_value)
    return rectified(context, tensor, float(operation.negative_slope), highest, float(operation.threshold))


ENDINGS: dict[str, Callable[..., Any]] = {
    "Argmax": _end("argmax"),
    "Argmin": _end("argmin"),
    "Exp": _end("exponential"),
    "LogSigmoid": _end("log_sigmoid"),
    "LogSoftmax": _end("log_softmax"),
    "Sigmoid": _end("sigmoid"),
    "Softmax": _end("softmax"),
    "Softplus": _end("softplus"),
    "Tanh": _end("tanh"),
}
OPERATIONS: dict[str, Callable[..., Any]] = {
    **ENDINGS,
    "Absolute": lambda context, _operation, tensor: absolute(context.trace, tensor),
    "Add": _plus,
    "Amax": _along(1.0),
    "Amin": _along(-1.0),
    "Clip": lambda context, operation, tensor: clip(
        context.trace, tensor, context.numbers(operation.x_min), context.numbers(operation.x_max)
    ),
    "Concatenate": lambda _context, operation, tensors: concatenate(tensors, int(operation.axis)),
    "Divide": _divided,
    "ExpandDims": lambda _context, operation, tensor: tensor.take(np.expand_dims(tensor.indices(), operation.axis)),
    "GetItem": lambda _context, _operation, tensor, key: tensor.take(
        np.asarray(tensor.indices()[tuple(key) if isinstance(key, list) else key])
    ),
    "HardSigmoid": _named("hard_sigmoid"),
    "HardTanh": _named("hard_tanh"),
    "LeakyRelu": lambda context, operation, tensor: leaky(context.trace, tensor, float(operation.negative_slope)),
    "Max": _along(1.0),
    "Maximum": _extremum(maximum),
    "Mean": _summed(average=True),
    "Min": _along(-1.0),
    "Minimum": _extremum(minimum),
    "Multiply": _times,
    "Negative": lambda _context, _operation, tensor: tensor.scale(-1.0),
    "ReLU": _rectified,
    "Relu": _named("relu"),
    "Relu6": _named("relu6"),
    "Reshape": lambda _context, operation, tensor: tensor.reshape([-1 if size is None else size for size in operation.newshape]),
    "Squeeze": lambda _context, operation, tensor: tensor.take(np.squeeze(tensor.indices(), operation.axis)),
    "Stack": _stacked,
    "Subtract": _minus,
    "Sum": _summed(average=False),
    "Threshold": _threshold,
    "Transpose": lambda _context, operation, tensor: tensor.transpose(operation.axes),
    "TrueDivide": _divided,
}
