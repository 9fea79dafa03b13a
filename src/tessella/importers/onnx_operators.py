"""What each ONNX operator does to traced tensors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tessella.errors import UnsupportedModel, UnsupportedOperator
from tessella.importers.linear_maps import check_size
from tessella.importers.operators import Window, batch_norm, convolve, pool_average, same_pads
from tessella.importers.trace import Tensor, Trace, concatenate
from tessella.network import Floats

if TYPE_CHECKING:
    from onnx import NodeProto

Array = npt.NDArray[Any]
Value = Tensor | Array


@dataclass(frozen=True, slots=True)
class Node:
    """One operator with its inputs at hand."""

    proto: "NodeProto"
    trace: Trace
    inputs: Sequence[Value | None]
    opset: int

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute's value."""
        from onnx.helper import get_attribute_value  # noqa: PLC0415  heavy

        for item in self.proto.attribute:
            if item.name == name:
                value = get_attribute_value(item)
                return value.decode() if isinstance(value, bytes) else value
        return default

    def optional(self, position: int) -> Value | None:
        """An input that may be left out."""
        return self.inputs[position] if position < len(self.inputs) else None

    def value(self, position: int) -> Value:
        """An input that must be there."""
        found = self.optional(position)
        if found is None:
            msg = f"input {position} is missing"
            raise UnsupportedModel(msg)
        return found

    def tensor(self, position: int = 0) -> Tensor:
        """An input that depends on the network's input."""
        found = self.value(position)
        if not isinstance(found, Tensor):
            msg = f"input {position} is a constant where a tensor was expected"
            raise UnsupportedModel(msg)
        return found

    def constant(self, position: int, default: Array | None = None) -> Array:
        """An input that must not depend on the network's input."""
        found = self.optional(position)
        if found is None and default is not None:
            return default
        if not isinstance(found, np.ndarray):
            what = "is missing" if found is None else "depends on the network's input; a constant was expected"
            msg = f"input {position} {what}"
            raise UnsupportedModel(msg)
        return found

    def integers(self, name: str, position: int) -> list[int] | None:
        """Whole numbers that are an attribute in old operator sets and an input in new ones."""
        given = self.attribute(name)
        if given is None and self.optional(position) is not None:
            given = self.constant(position).ravel().tolist()
        return None if given is None else [int(number) for number in np.atleast_1d(given)]


_UNLIMITED = 3.4e38  # the default ends of a Clip

Operator = Callable[[Node], Sequence[Value]]
OPERATORS: dict[str, Operator] = {}

# operators that are evaluated where all their inputs are constants
FOLDED = frozenset(
    {
        "Abs",
        "Add",
        "Cast",
        "Concat",
        "Constant",
        "ConstantOfShape",
        "Div",
        "Equal",
        "Expand",
        "Flatten",
        "Floor",
        "Gather",
        "Gemm",
        "Identity",
        "MatMul",
        "Max",
        "Min",
        "Mul",
        "Neg",
        "Pow",
        "Range",
        "Reciprocal",
        "ReduceProd",
        "Reshape",
        "Shape",
        "Slice",
        "Split",
        "Sqrt",
        "Squeeze",
        "Sub",
        "Transpose",
        "Unsqueeze",
        "Where",
    }
)


def fold(node: Node) -> Sequence[Array]:
    """Evaluate an operator on constants, by the reference implementation of the `onnx` package."""
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415  heavy

    _check_folded_size(node)
    try:
        evaluator = ReferenceEvaluator(node.proto, opsets={"": node.opset})
    except RuntimeError as error:
        msg = f"operator set {node.opset} cannot be evaluated; convert the model with onnx.version_converter"
        raise UnsupportedModel(msg) from error
    with np.errstate(all="ignore"):
        results = evaluator.run(None, dict(zip(node.proto.input, node.inputs, strict=True)))
    return [np.asarray(result) for result in results]


def _check_folded_size(node: Node) -> None:
    """Refuse the three operators that make large arrays of small ones, before they do."""
    if node.proto.op_type in {"ConstantOfShape", "Expand"}:
        sizes = node.constant(len(node.inputs) - 1).astype(np.float64)
        check_size(int(min(np.prod(np.abs(sizes) + 1.0), 1e18)), "a constant")
    if node.proto.op_type == "Range":
        start, limit, step = (float(node.constant(position).ravel()[0]) for position in range(3))
        check_size(int(min(abs(limit - start) / max(abs(step), 1e-18), 1e18)), "a constant")


def _operator(*names: str) -> Callable[[Operator], Operator]:
    def register(function: Operator) -> Operator:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return register


@_operator("Identity", "Dropout")
def _identity(node: Node) -> Sequence[Value]:
    training = node.optional(2)
    if node.proto.op_type == "Dropout" and training is not None and np.any(node.constant(2)):
        msg = "drops units at random; export the model in evaluation mode"
        raise UnsupportedOperator(msg)
    return [node.value(0)]


@_operator("Cast")
def _cast(node: Node) -> Sequence[Value]:
    if node.attribute("to") not in {1, 10, 11}:
        msg = "casts to a type that is not floating-point; only float16, float32 and float64 keep a network piecewise linear"
        raise UnsupportedOperator(msg)
    return [node.tensor()]


@_operator("Shape")
def _shape(node: Node) -> Sequence[Value]:
    start, end = node.attribute("start", 0), node.attribute("end", None)
    return [np.array(node.tensor().shape[start:end], dtype=np.int64)]


@_operator("Relu")
def _relu(node: Node) -> Sequence[Value]:
    return [node.trace.relu(node.tensor())]


@_operator("Clip")
def _clip(node: Node) -> Sequence[Value]:
    tensor, (low, high) = node.tensor(), (_limit(node, name, place) for place, name in enumerate(("min", "max"), start=1))
    if low is not None and high is not None and low > high:
        msg = f"clips to [{low}, {high}], which is empty"
        raise UnsupportedModel(msg)
    if low is not None:  # max(x, low) = low + ReLU(x - low)
        tensor = node.trace.relu(tensor.shift(-low)).shift(low)
    if high is not None:  # min(x, high) = high - ReLU(high - x)
        tensor = node.trace.relu(tensor.scale(-1.0).shift(high)).scale(-1.0).shift(high)
    return [tensor]


def _limit(node: Node, name: str, place: int) -> float | None:
    """One end of a Clip, an attribute in old operator sets and an input in new ones; None if there is none."""
    value = node.attribute(name)
    if value is None and node.optional(place) is not None:
        value = node.constant(place)
    end = None if value is None else float(np.asarray(value).reshape(()))
    return None if end is None or abs(end) >= _UNLIMITED else end


@_operator("Add", "Sum")
def _add(node: Node) -> Sequence[Value]:
    total = node.value(0)
    for position in range(1, len(node.inputs)):
        total = _sum(node.trace, total, node.value(position))
    return [total]


@_operator("Sub")
def _subtract(node: Node) -> Sequence[Value]:
    right = node.value(1)
    return [_sum(node.trace, node.value(0), right.scale(-1.0) if isinstance(right, Tensor) else -right)]


def _sum(trace: Trace, left: Value, right: Value) -> Value:
    # arithmetic on arrays without axes gives numpy scalars, so "not a tensor" is what marks a constant
    if not isinstance(left, Tensor):
        return right.shift(left) if isinstance(right, Tensor) else np.asarray(left + right)
    return trace.add(left, right) if isinstance(right, Tensor) else left.shift(right)


@_operator("Neg")
def _negate(node: Node) -> Sequence[Value]:
    return [node.tensor().scale(-1.0)]


@_operator("Mul")
def _multiply(node: Node) -> Sequence[Value]:
    left, right = node.value(0), node.value(1)
    if isinstance(left, np.ndarray):
        return [node.tensor(1).scale(left)]
    if isinstance(right, np.ndarray):
        return [left.scale(right)]
    msg = "multiplies two values that both depend on the input; that is not piecewise linear"
    raise UnsupportedOperator(msg)


@_operator("Div")
def _divide(node: Node) -> Sequence[Value]:
    divisor = np.asarray(node.constant(1), dtype=np.float64)
    if (divisor == 0).any():
        msg = "divides by zero"
        raise UnsupportedModel(msg)
    return [node.tensor().scale(1.0 / divisor)]


@_operator("MatMul")
def _matmul(node: Node) -> Sequence[Value]:
    return [node.trace.multiply(node.value(0), node.value(1))]


@_operator("Gemm")
def _gemm(node: Node) -> Sequence[Value]:
    sides = [
        _flip(node.value(position)) if node.attribute(name, 0) else node.value(position)
        for position, name in ((0, "transA"), (1, "transB"))
    ]
    for side in sides:
        if len(side.shape) != 2:
            msg = f"multiplies a tensor of shape {side.shape}; two dimensions are expected"
            raise UnsupportedModel(msg)
    product = node.trace.multiply(sides[0], sides[1])
    alpha, beta, offset = node.attribute("alpha", 1.0), node.attribute("beta", 1.0), node.optional(2)
    product = product if alpha == 1.0 else product.scale(alpha)
    if offset is None or beta == 0.0:
        return [product]
    offset = offset if beta == 1.0 else offset.scale(beta) if isinstance(offset, Tensor) else beta * offset
    return [_sum(node.trace, product, offset)]


def _flip(value: Value) -> Value:
    return value.transpose() if isinstance(value, Tensor) else value.T


def _window(node: Node, spatial: Sequence[int], kernel: Sequence[int]) -> Window:
    rank = len(kernel)
    strides, dilations = node.attribute("strides", [1] * rank), node.attribute("dilations", [1] * rank)
    mode = node.attribute("auto_pad", "NOTSET")
    if mode in {"SAME_UPPER", "SAME_LOWER"}:
        pads = same_pads(spatial, kernel, strides, dilations)
        pads = [(after, before) for before, after in pads] if mode == "SAME_LOWER" else pads
    elif mode == "VALID":
        pads = [(0, 0)] * rank
    else:
        flat = node.attribute("pads", [0] * 2 * rank)
        if len(flat) != 2 * rank:
            msg = f"has {len(flat)} pads for {rank} axes"
            raise UnsupportedModel(msg)
        pads = list(zip(flat[:rank], flat[rank:], strict=True))
    return Window(strides, pads, dilations)


@_operator("Conv")
def _conv(node: Node) -> Sequence[Value]:
    tensor, weight = node.tensor(), node.constant(1)
    bias: Floats | None = node.constant(2) if node.optional(2) is not None else None
    window = _window(node, tensor.shape[2:], weight.shape[2:])
    return [convolve(node.trace, tensor, weight, bias, window, node.attribute("group", 1))]


@_operator("AveragePool")
def _average_pool(node: Node) -> Sequence[Value]:
    tensor, kernel = node.tensor(), node.attribute("kernel_shape", [])
    result = pool_average(
        node.trace,
        tensor,
        kernel,
        _window(node, tensor.shape[2:], kernel),
        count_padding=bool(node.attribute("count_include_pad", 0)),
        ceil_mode=bool(node.attribute("ceil_mode", 0)),
    )
    return [result]


@_operator("GlobalAveragePool")
def _global_average(node: Node) -> Sequence[Value]:
    tensor = node.tensor()
    return [tensor.mean(range(2, len(tensor.shape)), keepdims=True)]


@_operator("ReduceMean", "ReduceSum")
def _reduce(node: Node) -> Sequence[Value]:
    tensor, axes = node.tensor(), node.integers("axes", 1)
    if not axes and node.attribute("noop_with_empty_axes", 0):
        return [tensor]
    axes = _axes(axes, len(tensor.shape)) if axes else list(range(len(tensor.shape)))
    mean = tensor.mean(axes, keepdims=bool(node.attribute("keepdims", 1)))
    count = prod(tensor.shape[axis] for axis in axes)
    return [mean if node.proto.op_type == "ReduceMean" else mean.scale(float(count))]


@_operator("BatchNormalization")
def _batch_normalization(node: Node) -> Sequence[Value]:
    if node.attribute("training_mode", 0):
        msg = "is in training mode; export the model in evaluation mode"
        raise UnsupportedOperator(msg)
    scale, offset, mean, variance = (node.constant(position) for position in range(1, 5))
    return [batch_norm(node.tensor(), scale, offset, mean, variance, node.attribute("epsilon", 1e-5))]


@_operator("Flatten")
def _flatten(node: Node) -> Sequence[Value]:
    tensor, axis = node.tensor(), node.attribute("axis", 1)
    axis = axis + len(tensor.shape) if axis < 0 else axis
    return [tensor.reshape((prod(tensor.shape[:axis]), prod(tensor.shape[axis:])))]


@_operator("Reshape")
def _reshape(node: Node) -> Sequence[Value]:
    tensor, wanted = node.tensor(), node.integers("shape", 1)
    if wanted is None:
        msg = "has no shape to reshape to"
        raise UnsupportedModel(msg)
    if not node.attribute("allowzero", 0):
        wanted = [tensor.shape[axis] if size == 0 and axis < len(tensor.shape) else size for axis, size in enumerate(wanted)]
    return [tensor.reshape(wanted)]


@_operator("Transpose")
def _transpose(node: Node) -> Sequence[Value]:
    tensor, order = node.tensor(), node.attribute("perm")
    return [tensor.transpose(_axes(order, len(tensor.shape)) if order else None)]


@_operator("Squeeze")
def _squeeze(node: Node) -> Sequence[Value]:
    tensor, axes = node.tensor(), node.integers("axes", 1)
    gone = {axis for axis, size in enumerate(tensor.shape) if size == 1} if axes is None else _axes(axes, len(tensor.shape))
    return [tensor.reshape([size for axis, size in enumerate(tensor.shape) if axis not in gone])]


@_operator("Unsqueeze")
def _unsqueeze(node: Node) -> Sequence[Value]:
    tensor, axes = node.tensor(), node.integers("axes", 1) or []
    rank = len(tensor.shape) + len(axes)
    added, sizes = set(_axes(axes, rank)), iter(tensor.shape)
    return [tensor.reshape([1 if axis in added else next(sizes) for axis in range(rank)])]


@_operator("Expand")
def _expand(node: Node) -> Sequence[Value]:
    return [node.tensor().shift(np.zeros(_sizes(node.constant(1))))]


def _sizes(shape: Array) -> tuple[int, ...]:
    sizes = tuple(int(size) for size in shape.ravel())
    check_size(prod(sizes), "a tensor")
    return sizes


@_operator("Concat")
def _concat(node: Node) -> Sequence[Value]:
    parts = [node.value(position) for position in range(len(node.inputs))]
    tensors = [
        part if isinstance(part, Tensor) else Tensor(part.shape, {}, np.asarray(part, dtype=np.float64).ravel()) for part in parts
    ]
    (axis,) = _axes([node.attribute("axis", 0)], len(tensors[0].shape))
    return [concatenate(tensors, axis)]


@_operator("Slice")
def _slice(node: Node) -> Sequence[Value]:
    tensor = node.tensor()
    starts, ends = node.integers("starts", 1) or [], node.integers("ends", 2) or []
    axes = node.integers("axes", 3) or list(range(len(starts)))
    steps = node.integers("steps", 4) or [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        msg = f"slices with starts {starts}, ends {ends}, axes {axes}, steps {steps}"
        raise UnsupportedModel(msg)
    picks = [slice(None)] * len(tensor.shape)
    for start, end, axis, step in zip(starts, ends, _axes(axes, len(tensor.shape)), steps, strict=True):
        # a negative step that runs past the first element is written as a large negative end
        picks[axis] = slice(start, None if step < 0 and end < -tensor.shape[axis] else end, step)
    return [_nonempty(tensor.take(tensor.indices()[tuple(picks)]))]


@_operator("Gather")
def _gather(node: Node) -> Sequence[Value]:
    tensor, index = node.tensor(), node.constant(1)
    (axis,) = _axes([node.attribute("axis", 0)], len(tensor.shape))
    if index.dtype.kind not in "iu" or (index >= tensor.shape[axis]).any() or (index < -tensor.shape[axis]).any():
        msg = f"picks entries outside an axis of {tensor.shape[axis]}"
        raise UnsupportedModel(msg)
    return [_nonempty(tensor.take(np.take(tensor.indices(), index, axis=axis)))]


@_operator("Split")
def _split(node: Node) -> Sequence[Value]:
    tensor, parts = node.tensor(), len(node.proto.output)
    (axis,) = _axes([node.attribute("axis", 0)], len(tensor.shape))
    whole = tensor.shape[axis]
    sizes = node.integers("split", 1) or [min(-(-whole // parts), whole - k * -(-whole // parts)) for k in range(parts)]
    if sum(sizes) != whole or min(sizes) < 1:
        msg = f"splits an axis of {whole} into {sizes}"
        raise UnsupportedModel(msg)
    return [tensor.take(piece) for piece in np.split(tensor.indices(), np.cumsum(sizes)[:-1], axis=axis)]


@_operator("Pad")
def _pad(node: Node) -> Sequence[Value]:
    tensor, pads = node.tensor(), node.integers("pads", 1) or []
    value = node.attribute("value", 0.0) if node.optional(2) is None else node.constant(2)
    rank = len(tensor.shape)
    if node.attribute("mode", "constant") != "constant" or np.any(np.asarray(value) != 0) or node.optional(3) is not None:
        msg = "pads other than with zeros on all axes; only constant zero padding can be read"
        raise UnsupportedOperator(msg)
    if len(pads) != 2 * rank or min(pads) < 0:
        msg = f"has pads {pads} for {rank} axes"
        raise UnsupportedModel(msg)
    widths = list(zip(pads[:rank], pads[rank:], strict=True))
    check_size(prod(size + sum(pair) for size, pair in zip(tensor.shape, widths, strict=True)), "a tensor")
    zero = Tensor((1,), {}, np.zeros(1))
    index = np.pad(tensor.indices(), widths, constant_values=tensor.size)
    return [concatenate([tensor.reshape((-1,)), zero], 0).take(index)]


def _nonempty(tensor: Tensor) -> Tensor:
    if tensor.size == 0:
        msg = f"leaves an empty tensor of shape {tensor.shape}"
        raise UnsupportedModel(msg)
    return tensor


def _axes(axes: Sequence[int], rank: int) -> list[int]:
    """Axes counted from the front, each at most once."""
    found = [axis + rank if axis < 0 else axis for axis in axes]
    if any(not 0 <= axis < rank for axis in found) or len(set(found)) != len(found):
        msg = f"names axes {list(axes)} of a tensor with {rank}"
        raise UnsupportedModel(msg)
    return found
