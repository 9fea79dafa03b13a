"""Torch's piecewise-linear operators on traced tensors.

A handler gets a `Call` and returns what the operator returns.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tessella.errors import UnsupportedModel
from tessella.importers import torch_windows
from tessella.importers.activations import absolute, at_least, clip, largest_along, leaky, maximum, minimum
from tessella.importers.torch_call import Call, Handler, lifted, numbers
from tessella.importers.torch_moves import MOVES, SHAPES, check_floating
from tessella.importers.trace import Ended, Tensor, Trace
from tessella.network import Floats

# ---------------------------------------------------------------------------------------------- rectifiers


def _relu(call: Call) -> Tensor:
    return call.trace.relu(call.tensor("self"))


def _clamp(low: str, high: str) -> Handler:
    def handler(call: Call) -> Tensor:
        tensor = call.tensor("self")
        for name, choose in ((low, maximum), (high, minimum)):
            bound = call.given.get(name)
            if bound is not None:
                tensor = choose(call.trace, tensor, bound if isinstance(bound, Tensor) else numbers(bound))
        return tensor

    return handler


def _relu6(call: Call) -> Tensor:
    return clip(call.trace, call.tensor("self"), 0.0, 6.0)


def _hard_sigmoid(call: Call) -> Tensor:
    return clip(call.trace, call.tensor("self").scale(1.0 / 6.0).shift(0.5), 0.0, 1.0)


def _threshold(call: Call) -> Tensor:
    bound = call.constant("threshold")
    if bound != call.constant("value"):
        msg = "a threshold with another value below it jumps; only equal ones are continuous"
        raise UnsupportedModel(msg)
    return at_least(call.trace, call.tensor("self"), bound)


def _leaky(call: Call) -> Tensor:
    return leaky(call.trace, call.tensor("self"), call.constant("negative_slope"))


def _random_leaky(call: Call) -> Tensor:
    if call.given.get("training"):
        msg = "it draws random slopes; use torch.nn.RReLU, or pass training=self.training to the function"
        raise UnsupportedModel(msg)
    return leaky(call.trace, call.tensor("self"), (call.constant("lower") + call.constant("upper")) / 2.0)


def _parametric(call: Call) -> Tensor:
    tensor, slopes = call.tensor("self"), call.constant("weight")
    if slopes.ndim == 1 and slopes.size > 1:  # one slope for each channel
        slopes = slopes.reshape(-1, *[1] * (len(tensor.shape) - 2))
    return leaky(call.trace, tensor, slopes, "PReLU")


def _absolute(call: Call) -> Tensor:
    return absolute(call.trace, call.tensor("self"))


def _soft_shrinkage(call: Call) -> Tensor:
    tensor, width = call.tensor("self"), call.constant("lambd")
    above, below = (call.trace.relu(side.shift(-width), "Softshrink") for side in (tensor, tensor.scale(-1.0)))
    return call.trace.add(above, below.scale(-1.0))


def _extremum(choose: Callable[[Trace, Tensor | Floats, Tensor | Floats], Tensor], sign: float) -> Handler:
    """The larger or smaller of two, or the largest or smallest along axes, then also where it is."""

    def handler(call: Call) -> Any:
        if "other" in call.given:
            sides = [side if isinstance(side, Tensor) else numbers(side) for side in (call.given["self"], call.given["other"])]
            return choose(call.trace, sides[0], sides[1])
        tensor, axes = call.tensor("self"), call.given.get("dim")
        given = [axes] if isinstance(axes, int) else list(axes or range(len(tensor.shape)))
        result = largest_along(call.trace, tensor.scale(sign), given, keepdims=bool(call.given.get("keepdim"))).scale(sign)
        return (result, Ended(tensor, ("argmax",))) if isinstance(axes, int) else result

    return handler


# ---------------------------------------------------------------------------------------------- arithmetic


def _sum(trace: Trace, left: Tensor, right: Tensor) -> Tensor:
    if not left.terms:
        left, right = right, left
    return trace.add(left, right) if right.terms else left.shift(right.constant.reshape(right.shape))


def _add(call: Call) -> Tensor:
    return _sum(call.trace, call.tensor("self"), _scaled(call.tensor("other"), call.given.get("alpha", 1)))


def _subtract(call: Call) -> Tensor:
    return _sum(call.trace, call.tensor("self"), _scaled(call.tensor("other"), -call.given.get("alpha", 1)))


def _subtract_from(call: Call) -> Tensor:
    return _sum(call.trace, _scaled(call.tensor("self"), -call.given.get("alpha", 1)), call.tensor("other"))


def _scaled(tensor: Tensor, factor: float) -> Tensor:
    return tensor if factor == 1 else tensor.scale(float(factor))


def _multiply(call: Call) -> Tensor:
    left, right = call.given["self"], call.given["other"]
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        msg = "a product of two tensors that both depend on the input is not piecewise linear"
        raise UnsupportedModel(msg)
    return left.scale(numbers(right)) if isinstance(left, Tensor) else lifted(right).scale(numbers(left))


def _divide(call: Call) -> Tensor:
    if call.given.get("rounding_mode") is not None:
        msg = "a division that rounds is not piecewise linear"
        raise UnsupportedModel(msg)
    with np.errstate(divide="ignore"):
        return call.tensor("self").scale(1.0 / call.constant("other"))


def _negate(call: Call) -> Tensor:
    return call.tensor("self").scale(-1.0)


def _mean(call: Call) -> Tensor:
    return _reduced(call, call.tensor("self"))


def _total(call: Call) -> Tensor:
    tensor = call.tensor("self")
    result = _reduced(call, tensor)
    return result.scale(float(tensor.size // max(result.size, 1)))


def _reduced(call: Call, tensor: Tensor) -> Tensor:
    """The average over the axes given, or all of them."""
    check_floating(call)
    axes = call.given.get("dim")
    axes = [axes] if isinstance(axes, int) else axes
    chosen = list(range(len(tensor.shape))) if axes is None or not len(axes) else [int(axis) for axis in axes]
    return tensor.mean(chosen, keepdims=bool(call.given.get("keepdim", False))) if chosen else tensor


# ---------------------------------------------------------------------------------------------- products


def _product(trace: Trace, left: Any, right: Any) -> Tensor:
    """A matrix product with a constant on one side, as ``torch.matmul``."""
    if not isinstance(right, Tensor):
        weight = numbers(right)
        if weight.ndim == 1:
            result = trace.multiply(lifted(left), weight[:, None])
            return result.reshape(result.shape[:-1])
        return trace.multiply(lifted(left), weight)
    if not isinstance(left, Tensor) and (weight := numbers(left)).ndim == 1:
        result = trace.multiply(weight[None, :], right)
        return result.reshape((*right.shape[:-2], *result.shape[-1:]) if len(right.shape) > 1 else ())
    return trace.multiply(left if isinstance(left, Tensor) else numbers(left), right)


def _matmul(left: str, right: str) -> Handler:
    return lambda call: _product(call.trace, call.given[left], call.given[right])


def _linear(call: Call) -> Tensor:
    result = _product(call.trace, call.tensor("input"), call.constant("weight").T)
    bias = call.optional("bias")
    return result if bias is None else result.shift(bias)


def _addmm(call: Call) -> Tensor:
    product = _scaled(_product(call.trace, call.given["mat1"], call.given["mat2"]), call.given.get("alpha", 1))
    return _sum(call.trace, product, _scaled(call.tensor("self"), call.given.get("beta", 1)))


HANDLERS: dict[str, Handler] = {
    **MOVES,
    **SHAPES,
    **torch_windows.HANDLERS,
    **dict.fromkeys(("maximum", "max", "fmax", "amax"), _extremum(maximum, 1.0)),
    **dict.fromkeys(("minimum", "min", "fmin", "amin"), _extremum(minimum, -1.0)),
    **dict.fromkeys(("mm", "bmm"), _matmul("self", "mat2")),
    **dict.fromkeys(("mul", "multiply"), _multiply),
    **dict.fromkeys(("div", "divide", "true_divide"), _divide),
    **dict.fromkeys(("sub", "subtract"), _subtract),
    **dict.fromkeys(("neg", "negative"), _negate),
    **dict.fromkeys(("abs", "absolute"), _absolute),
    **dict.fromkeys(("clamp", "clip", "clamp_min", "clamp_max"), _clamp("min", "max")),
    **dict.fromkeys(("prelu", "_prelu_kernel"), _parametric),
    "hardtanh": _clamp("min_val", "max_val"),
    "hardsigmoid": _hard_sigmoid,
    "leaky_relu": _leaky,
    "relu": _relu,
    "relu6": _relu6,
    "rrelu": _random_leaky,
    "softshrink": _soft_shrinkage,
    "threshold": _threshold,
    "add": _add,
    "rsub": _subtract_from,
    "linear": _linear,
    "addmm": _addmm,
    "matmul": _matmul("self", "other"),
    "mv": _matmul("self", "vec"),
    "mean": _mean,
    "sum": _total,
}
