"""ONNX operators that move elements about."""

from collections.abc import Sequence
from math import prod

import numpy as np

from tessella.errors import UnsupportedModel, UnsupportedOperator
from tessella.importers.linear_maps import Ints, check_size
from tessella.importers.onnx_node import Array, Node, Value, as_tensor, checked_axes, operator
from tessella.importers.trace import Tensor, broadcast_shapes, concatenate

_AFTER_FIRST = slice(1, None)
_PAD_MODES = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}


@operator("Identity", "Dropout", constants=_AFTER_FIRST)
def _identity(node: Node) -> Sequence[Value]:
    training = node.optional(2)
    if node.proto.op_type == "Dropout" and training is not None and np.any(node.constant(2)):
        msg = "drops units at random; export the model in evaluation mode"
        raise UnsupportedOperator(msg)
    return [found] if (found := node.optional(0)) is not None else [node.value(0)]


@operator("Cast", "CastLike")
def _cast(node: Node) -> Sequence[Value]:
    found = node.optional(0)
    return [node.tensor()] if found is None or isinstance(found, Tensor) else [found]


@operator("Shape")
def _shape(node: Node) -> Sequence[Value]:
    start, end = node.attribute("start", 0), node.attribute("end", None)
    return [np.array(node.tensor().shape[start:end], dtype=np.int64)]


@operator("Size")
def _size(node: Node) -> Sequence[Value]:
    return [np.array(node.tensor().size, dtype=np.int64)]


@operator("Flatten")
def _flatten(node: Node) -> Sequence[Value]:
    tensor, axis = node.tensor(), node.attribute("axis", 1)
    axis = axis + len(tensor.shape) if axis < 0 else axis
    return [tensor.reshape((prod(tensor.shape[:axis]), prod(tensor.shape[axis:])))]


@operator("Reshape", constants=_AFTER_FIRST)
def _reshape(node: Node) -> Sequence[Value]:
    tensor, wanted = node.tensor(), node.integers("shape", 1)
    if wanted is None:
        msg = "has no shape to reshape to"
        raise UnsupportedModel(msg)
    if not node.attribute("allowzero", 0):
        wanted = [tensor.shape[axis] if size == 0 and axis < len(tensor.shape) else size for axis, size in enumerate(wanted)]
    return [tensor.reshape(wanted)]


@operator("Transpose")
def _transpose(node: Node) -> Sequence[Value]:
    tensor, order = node.tensor(), node.attribute("perm")
    return [tensor.transpose(checked_axes(order, len(tensor.shape)) if order else None)]


@operator("Squeeze", constants=_AFTER_FIRST)
def _squeeze(node: Node) -> Sequence[Value]:
    tensor, axes = node.tensor(), node.integers("axes", 1)
    ones = {axis for axis, size in enumerate(tensor.shape) if size == 1}
    gone = ones if axes is None else set(checked_axes(axes, len(tensor.shape)))
    if not gone <= ones:
        msg = f"squeezes axes {axes} of a tensor of shape {tensor.shape}; only axes of one entry can go"
        raise UnsupportedModel(msg)
    return [tensor.reshape([size for axis, size in enumerate(tensor.shape) if axis not in gone])]


@operator("Unsqueeze", constants=_AFTER_FIRST)
def _unsqueeze(node: Node) -> Sequence[Value]:
    tensor, axes = node.tensor(), node.integers("axes", 1) or []
    rank = len(tensor.shape) + len(axes)
    added, sizes = set(checked_axes(axes, rank)), iter(tensor.shape)
    return [tensor.reshape([1 if axis in added else next(sizes) for axis in range(rank)])]


@operator("Expand", constants=_AFTER_FIRST)
def _expand(node: Node) -> Sequence[Value]:
    tensor = node.tensor()
    return [_nonempty(tensor.expand(broadcast_shapes(tensor.shape, _sizes(node.constant(1)))))]


@operator("Tile", constants=_AFTER_FIRST)
def _tile(node: Node) -> Sequence[Value]:
    tensor, repeats = node.tensor(), _sizes(node.constant(1))
    if node.optional(2) is not None:  # operator sets before 6: how often, and along which axis
        (axis,) = checked_axes(_sizes(node.constant(2)), len(tensor.shape))
        repeats = tuple(repeats[0] if place == axis else 1 for place in range(len(tensor.shape)))
    if len(repeats) != len(tensor.shape):
        msg = f"repeats a tensor of shape {tensor.shape} {repeats} times; one number per axis is expected"
        raise UnsupportedModel(msg)
    check_size(prod(repeats) * tensor.size, "a tensor")
    return [_nonempty(tensor.take(np.tile(tensor.indices(), repeats)))]


def _sizes(shape: Array) -> tuple[int, ...]:
    sizes = tuple(int(size) for size in shape.ravel())
    check_size(prod(sizes), "a tensor")
    return sizes


@operator("Concat")
def _concat(node: Node) -> Sequence[Value]:
    tensors = [as_tensor(node.value(position)) for position in range(len(node.inputs))]
    (axis,) = checked_axes([node.attribute("axis", 1)], len(tensors[0].shape))
    return [concatenate(tensors, axis)]


@operator("Slice", constants=_AFTER_FIRST)
def _slice(node: Node) -> Sequence[Value]:
    tensor = node.tensor()
    starts, ends = node.integers("starts", 1) or [], node.integers("ends", 2) or []
    axes = node.integers("axes", 3) or list(range(len(starts)))
    steps = node.integers("steps", 4) or [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        msg = f"slices with starts {starts}, ends {ends}, axes {axes}, steps {steps}"
        raise UnsupportedModel(msg)
    picks = [slice(None)] * len(tensor.shape)
    for start, end, axis, step in zip(starts, ends, checked_axes(axes, len(tensor.shape)), steps, strict=True):
        # a negative step that runs past the first element is written as a large negative end
        picks[axis] = slice(start, None if step < 0 and end < -tensor.shape[axis] else end, step)
    return [_nonempty(tensor.take(tensor.indices()[tuple(picks)]))]


@operator("Gather", constants=_AFTER_FIRST)
def _gather(node: Node) -> Sequence[Value]:
    tensor, index = node.tensor(), node.constant(1)
    (axis,) = checked_axes([node.attribute("axis", 0)], len(tensor.shape))
    if index.dtype.kind not in "iu" or (index >= tensor.shape[axis]).any() or (index < -tensor.shape[axis]).any():
        msg = f"picks entries outside an axis of {tensor.shape[axis]}"
        raise UnsupportedModel(msg)
    check_size(tensor.size // tensor.shape[axis] * index.size, "a tensor")
    return [_nonempty(tensor.take(np.take(tensor.indices(), index, axis=axis)))]


@operator("Split", constants=_AFTER_FIRST)
def _split(node: Node) -> Sequence[Value]:
    tensor, parts = node.tensor(), len(node.proto.output)
    (axis,) = checked_axes([node.attribute("axis", 0)], len(tensor.shape))
    whole = tensor.shape[axis]
    sizes = node.integers("split", 1) or [min(-(-whole // parts), whole - k * -(-whole // parts)) for k in range(parts)]
    if sum(sizes) != whole or min(sizes) < 1:
        msg = f"splits an axis of {whole} into {sizes}"
        raise UnsupportedModel(msg)
    return [tensor.take(piece) for piece in np.split(tensor.indices(), np.cumsum(sizes)[:-1], axis=axis)]


@operator("DepthToSpace", "SpaceToDepth")
def _blocks(node: Node) -> Sequence[Value]:
    tensor, block = node.tensor(), node.attribute("blocksize", 0)
    if len(tensor.shape) != 4 or block < 1:
        msg = f"moves blocks of {block} in a tensor of shape {tensor.shape}; four axes are expected"
        raise UnsupportedModel(msg)
    batch, channels, height, width = tensor.shape
    if node.proto.op_type == "SpaceToDepth":
        if height % block or width % block:
            msg = f"cuts a tensor of shape {tensor.shape} into blocks of {block}, which do not fit"
            raise UnsupportedModel(msg)
        index = tensor.indices().reshape(batch, channels, height // block, block, width // block, block)
        return [tensor.take(index.transpose(0, 3, 5, 1, 2, 4).reshape(batch, -1, height // block, width // block))]
    if channels % block**2:
        msg = f"makes blocks of {block} from {channels} channels, which do not fit"
        raise UnsupportedModel(msg)
    if node.attribute("mode", "DCR") == "DCR":
        index = tensor.indices().reshape(batch, block, block, -1, height, width).transpose(0, 3, 4, 1, 5, 2)
    else:
        index = tensor.indices().reshape(batch, -1, block, block, height, width).transpose(0, 1, 4, 2, 5, 3)
    return [tensor.take(index.reshape(batch, -1, height * block, width * block))]


@operator("Pad", constants=_AFTER_FIRST)
def _pad(node: Node) -> Sequence[Value]:
    tensor, mode = node.tensor(), node.attribute("mode", "constant")
    widths = _pad_widths(node)
    kept = tuple(
        slice(max(-before, 0), max(size - max(-after, 0), 0)) for size, (before, after) in zip(tensor.shape, widths, strict=True)
    )
    index = tensor.indices()[kept]
    widths = [(max(before, 0), max(after, 0)) for before, after in widths]
    if not index.size:
        msg = f"cuts everything off a tensor of shape {tensor.shape}"
        raise UnsupportedModel(msg)
    check_size(prod(size + sum(pair) for size, pair in zip(index.shape, widths, strict=True)), "a tensor")
    if mode in _PAD_MODES:
        return [tensor.take(np.pad(index, widths, mode=_PAD_MODES[mode]))]  # pyright: ignore[reportArgumentType, reportCallIssue]
    if mode != "constant":
        msg = f"pads in mode {mode!r}; only 'constant', {', '.join(map(repr, _PAD_MODES))} can be read"
        raise UnsupportedOperator(msg)
    value = node.attribute("value", 0.0) if node.optional(2) is None else node.constant(2)
    numbers = np.asarray(value, dtype=np.float64).ravel()
    if numbers.size != 1 or not np.isfinite(numbers).all():
        msg = f"pads with {numbers[:3]}; one finite number is expected"
        raise UnsupportedOperator(msg)
    around: Ints = np.pad(index, widths, constant_values=tensor.size)
    return [concatenate([tensor.reshape((-1,)), Tensor((1,), {}, numbers)], 0).take(around)]


def _pad_widths(node: Node) -> list[tuple[int, int]]:
    rank, pads = len(node.tensor().shape), node.integers("pads", 1) or node.attribute("paddings", [])
    axes = list(range(rank)) if node.optional(3) is None else checked_axes([int(axis) for axis in node.constant(3).ravel()], rank)
    if len(pads) != 2 * len(axes):
        msg = f"has pads {pads} for {len(axes)} axes"
        raise UnsupportedModel(msg)
    widths = [(0, 0)] * rank
    for place, axis in enumerate(axes):
        widths[axis] = (int(pads[place]), int(pads[place + len(axes)]))
    return widths


def _nonempty(tensor: Tensor) -> Tensor:
    if tensor.size == 0:
        msg = f"leaves an empty tensor of shape {tensor.shape}"
        raise UnsupportedModel(msg)
    return tensor
