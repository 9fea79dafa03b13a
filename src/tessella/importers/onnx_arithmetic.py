"""ONNX operators that calculate: sums, products, maxima, and what chooses between values."""

from collections.abc import Sequence
from functools import reduce
from math import prod

import numpy as np

from tessella.errors import UnsupportedModel, UnsupportedOperator
from tessella.importers.activations import MAXIMUM, absolute, largest_along, maximum, minimum
from tessella.importers.contraction import contract
from tessella.importers.onnx_node import Array, Indicator, Node, Value, as_tensor, operator
from tessella.importers.trace import Tensor, Trace, broadcast_shapes, concatenate
from tessella.network import COMPARISON

_SAME = 1e-12  # relative; what rounding may do to two values that are meant to be equal
_AFTER_FIRST = slice(1, None)


@operator("Max", "Min")
def _extreme(node: Node) -> Sequence[Value]:
    choose = maximum if node.proto.op_type == "Max" else minimum
    fold = np.maximum if node.proto.op_type == "Max" else np.minimum
    values = [node.value(position) for position in range(len(node.inputs))]
    tensors = [value for value in values if isinstance(value, Tensor)]
    constants = [value for value in values if not isinstance(value, Tensor)]
    kind = COMPARISON if len(tensors) + bool(constants) > 2 else MAXIMUM
    while len(tensors) > 1:  # the winners of one round are compared in the next
        pairs = zip(tensors[0::2], tensors[1::2], strict=False)
        tensors = [choose(node.trace, left, right, kind) for left, right in pairs] + tensors[len(tensors) // 2 * 2 :]
    (winner,) = tensors
    if not constants:
        return [winner]
    constant = np.asarray(reduce(fold, constants), dtype=np.float64)
    broadcast_shapes(winner.shape, constant.shape)
    return [choose(node.trace, winner, constant, kind)]


@operator("Add", "Sum")
def _add(node: Node) -> Sequence[Value]:
    return [_total(node)]


@operator("Mean")
def _mean(node: Node) -> Sequence[Value]:
    total = _total(node)
    return [total.scale(1.0 / len(node.inputs)) if isinstance(total, Tensor) else total]


def _total(node: Node) -> Tensor | Array:
    total = node.value(0)
    for position in range(1, len(node.inputs)):
        total = _sum(node.trace, total, node.value(position))
    return total


@operator("Sub")
def _subtract(node: Node) -> Sequence[Value]:
    right = node.value(1)
    return [_sum(node.trace, node.value(0), right.scale(-1.0) if isinstance(right, Tensor) else -right)]


def _sum(trace: Trace, left: Tensor | Array, right: Tensor | Array) -> Tensor | Array:
    # arithmetic on arrays without axes gives numpy scalars, so "not a tensor" is what marks a constant
    if not isinstance(left, Tensor):
        return right.shift(left) if isinstance(right, Tensor) else np.asarray(left + right)
    return trace.add(left, right) if isinstance(right, Tensor) else left.shift(right)


@operator("Neg")
def _negate(node: Node) -> Sequence[Value]:
    return [node.tensor().scale(-1.0)]


@operator("Mul", factors=(0, 1))
def _multiply(node: Node) -> Sequence[Value]:
    for one, other in ((0, 1), (1, 0)):
        mask = node.optional(one)
        if isinstance(mask, Indicator):
            return [_chosen(node.trace, mask, as_tensor(node.value(other)), Tensor((), {}, np.zeros(1)))]
    left, right = node.value(0), node.value(1)
    if isinstance(left, np.ndarray):
        return [node.tensor(1).scale(left)]
    if isinstance(right, np.ndarray):
        return [left.scale(right)]
    msg = "multiplies two values that both depend on the input; that is not piecewise linear"
    raise UnsupportedOperator(msg)


@operator("Div", constants=_AFTER_FIRST)
def _divide(node: Node) -> Sequence[Value]:
    divisor = np.asarray(node.constant(1), dtype=np.float64)
    if (divisor == 0).any():
        msg = "divides by zero"
        raise UnsupportedModel(msg)
    return [node.tensor().scale(1.0 / divisor)]


@operator("Pow", constants=_AFTER_FIRST)
def _power(node: Node) -> Sequence[Value]:
    exponent = np.asarray(node.constant(1), dtype=np.float64)
    if (exponent != 1).any():
        msg = f"raises to the power {exponent[exponent != 1].ravel()[0]:g}; only the power 1 keeps a network piecewise linear"
        raise UnsupportedOperator(msg)
    return [node.tensor().shift(np.zeros(exponent.shape))]


@operator("MatMul", factors=(0, 1))
def _matmul(node: Node) -> Sequence[Value]:
    return [node.trace.multiply(node.value(0), node.value(1))]


@operator("Einsum", factors=tuple(range(8)))
def _einsum(node: Node) -> Sequence[Value]:
    operands = [node.value(place) for place in range(len(node.inputs))]
    return [contract(node.trace, str(node.attribute("equation", "")), operands)]


@operator("Gemm", factors=(0, 1))
def _gemm(node: Node) -> Sequence[Value]:
    left, right = (
        _oriented(node.value(place), turned=bool(node.attribute(name, 0))) for place, name in enumerate(("transA", "transB"))
    )
    product = node.trace.multiply(left, right)
    alpha, beta = node.attribute("alpha", 1.0), node.attribute("beta", 1.0)
    product = product if alpha == 1.0 else product.scale(alpha)
    if node.optional(2) is None or beta == 0.0:
        return [product]
    bias = node.value(2)
    bias = bias if beta == 1.0 else bias.scale(beta) if isinstance(bias, Tensor) else np.asarray(beta * bias)
    return [_sum(node.trace, product, bias)]


def _oriented(value: Tensor | Array, *, turned: bool) -> Tensor | Array:
    if len(value.shape) != 2:
        msg = f"multiplies a tensor of shape {value.shape}; two dimensions are expected"
        raise UnsupportedModel(msg)
    return value.transpose() if turned else value


@operator("ReduceMean", "ReduceSum", constants=_AFTER_FIRST)
def _reduce(node: Node) -> Sequence[Value]:
    tensor, axes = node.tensor(), node.axes()
    if not axes:
        return [tensor]
    mean = tensor.mean(axes, keepdims=bool(node.attribute("keepdims", 1)))
    count = prod(tensor.shape[axis] for axis in axes)
    return [mean if node.proto.op_type == "ReduceMean" else mean.scale(float(count))]


@operator("ReduceMax", "ReduceMin", constants=_AFTER_FIRST)
def _reduce_to_extreme(node: Node) -> Sequence[Value]:
    tensor, axes, sign = node.tensor(), node.axes(), 1.0 if node.proto.op_type == "ReduceMax" else -1.0
    if not axes:
        return [tensor]
    best = largest_along(node.trace, tensor.scale(sign), axes, keepdims=bool(node.attribute("keepdims", 1)))
    return [best.scale(sign)]


@operator("ReduceL1", constants=_AFTER_FIRST)
def _sum_of_absolutes(node: Node) -> Sequence[Value]:
    tensor, axes = absolute(node.trace, node.tensor()), node.axes()
    if not axes:
        return [tensor]
    count = prod(tensor.shape[axis] for axis in axes)
    return [tensor.mean(axes, keepdims=bool(node.attribute("keepdims", 1))).scale(float(count))]


@operator("Greater", "GreaterOrEqual", "Less", "LessOrEqual")
def _compare(node: Node) -> Sequence[Value]:
    left, right = as_tensor(node.value(0)), as_tensor(node.value(1))
    shape = broadcast_shapes(left.shape, right.shape)
    # where both are equal is no matter: what chooses between two values must find equal ones there
    return [Indicator(_difference(left.expand(shape), right.expand(shape)), node.proto.op_type.startswith("Greater"))]


@operator("Not")
def _not(node: Node) -> Sequence[Value]:
    found = node.optional(0)
    if not isinstance(found, Indicator):
        msg = "negates what is no comparison"
        raise UnsupportedOperator(msg)
    return [Indicator(found.difference, not found.positive)]


@operator("Where")
def _where(node: Node) -> Sequence[Value]:
    condition, yes, no = node.optional(0), as_tensor(node.value(1)), as_tensor(node.value(2))
    if isinstance(condition, Indicator):
        return [_chosen(node.trace, condition, yes, no)]
    chosen = node.constant(0).astype(bool)
    shape = broadcast_shapes(chosen.shape, yes.shape, no.shape)
    both = concatenate([yes.reshape((-1,)), no.reshape((-1,))], 0)
    places = (np.broadcast_to(side.indices(), shape) for side in (yes, no))
    return [both.take(np.where(np.broadcast_to(chosen, shape), next(places), next(places) + yes.size))]


def _chosen(trace: Trace, indicator: Indicator, yes: Tensor, no: Tensor) -> Tensor:
    """One value where a difference d is positive, another elsewhere: continuous if they differ by c d, and then the other one plus c ReLU(d)."""
    if not indicator.positive:
        yes, no = no, yes
    shape = broadcast_shapes(indicator.difference.shape, yes.shape, no.shape)
    difference, yes, no = (side.expand(shape) for side in (indicator.difference, yes, no))
    gap = _difference(yes, no)
    factors = _multiples(gap, difference)
    if factors is None:
        msg = "chooses by a comparison between two values that differ where the comparison turns, so it jumps; that is not piecewise linear"
        raise UnsupportedOperator(msg)
    return trace.add(no, trace.relu(difference, "choice by comparison").scale(factors.reshape(shape)))


def _difference(left: Tensor, right: Tensor) -> Tensor:
    terms = dict(left.terms)
    for signal, matrix in right.terms.items():
        terms[signal] = terms[signal] - matrix if signal in terms else -matrix
    return Tensor(left.shape, terms, left.constant - right.constant)


def _multiples(left: Tensor, right: Tensor) -> Array | None:
    """By which number each element of one tensor is a multiple of another's; None if any is none."""
    columns = dict.fromkeys([*left.terms, *right.terms])
    mixed = sum(
        (left.terms[s].multiply(right.terms[s]).sum(axis=1) for s in columns if s in left.terms and s in right.terms), 0.0
    )
    square = sum((right.terms[s].power(2).sum(axis=1) for s in right.terms), 0.0)
    mixed, square = np.asarray(mixed) + left.constant * right.constant, np.asarray(square) + right.constant**2
    factors = np.divide(mixed, square, out=np.zeros(left.size), where=square > 0)
    rest = _difference(left, right.scale(factors.reshape(right.shape)))
    size = _sizes(left) + np.abs(factors) * _sizes(right)
    return factors if (_sizes(rest) <= _SAME * size).all() else None


def _sizes(tensor: Tensor) -> Array:
    return sum((abs(matrix).sum(axis=1) for matrix in tensor.terms.values()), np.abs(tensor.constant))
