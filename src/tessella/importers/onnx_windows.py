"""ONNX operators that look at images: convolutions, poolings, normalisation, resizing."""

from collections.abc import Sequence

import numpy as np

from tessella.errors import UnsupportedModel, UnsupportedOperator
from tessella.importers import operators
from tessella.importers.activations import largest_along
from tessella.importers.linear_maps import Window, interpolation
from tessella.importers.onnx_node import Node, Value, checked_axes, operator
from tessella.network import Floats

_AFTER_FIRST = slice(1, None)
_OLD_RESIZE = 10  # the last operator set whose Resize has no ways to place coordinates


def _window(node: Node, spatial: Sequence[int], kernel: Sequence[int]) -> Window:
    rank = len(kernel)
    strides, dilations = node.attribute("strides", [1] * rank), node.attribute("dilations", [1] * rank)
    mode = node.attribute("auto_pad", "NOTSET")
    given = node.attribute("kernel_shape")
    if list(kernel) != list(given or kernel) or len(strides) != rank or len(dilations) != rank or len(spatial) != rank:
        msg = f"has a kernel of shape {tuple(kernel)}, strides {strides}, dilations {dilations}, kernel_shape {given} for {len(spatial)} axes"
        raise UnsupportedModel(msg)
    if mode in {"SAME_UPPER", "SAME_LOWER"}:
        pads = operators.same_pads(spatial, kernel, strides, dilations)
        pads = [(after, before) for before, after in pads] if mode == "SAME_LOWER" else pads
    else:
        pads = [(0, 0)] * rank if mode == "VALID" else _pads(node, rank)
    return Window(strides, pads, dilations)


def _pads(node: Node, rank: int) -> list[tuple[int, int]]:
    flat = node.attribute("pads", [0] * 2 * rank)
    if len(flat) != 2 * rank:
        msg = f"has {len(flat)} pads for {rank} axes"
        raise UnsupportedModel(msg)
    return list(zip(flat[:rank], flat[rank:], strict=True))


@operator("Conv", constants=_AFTER_FIRST)
def _conv(node: Node) -> Sequence[Value]:
    tensor, weight = node.tensor(), node.constant(1)
    window = _window(node, tensor.shape[2:], weight.shape[2:])
    return [operators.convolve(node.trace, tensor, weight, _bias(node), window, node.attribute("group", 1))]


def _bias(node: Node) -> Floats | None:
    return None if node.optional(2) is None else node.constant(2)


@operator("ConvTranspose", constants=_AFTER_FIRST)
def _conv_transposed(node: Node) -> Sequence[Value]:
    tensor, weight = node.tensor(), node.constant(1)
    kernel, spatial = weight.shape[2:], tensor.shape[2:]
    rank = len(kernel)
    strides, dilations = node.attribute("strides", [1] * rank), node.attribute("dilations", [1] * rank)
    extra = node.attribute("output_padding", [0] * rank)
    mode, wanted = node.attribute("auto_pad", "NOTSET"), node.attribute("output_shape")
    if {len(strides), len(dilations), len(extra), len(spatial), len((wanted or [0] * rank)[-rank:])} != {rank}:
        msg = f"has strides {strides}, dilations {dilations}, output_padding {extra} for {len(spatial)} axes"
        raise UnsupportedModel(msg)
    if wanted is None and mode not in {"SAME_UPPER", "SAME_LOWER"}:
        pads = [(0, 0)] * rank if mode == "VALID" else _pads(node, rank)
    else:
        sizes = [size * stride for size, stride in zip(spatial, strides, strict=True)] if wanted is None else wanted[-rank:]
        pads = []
        for size, stride, more, places, dilation, target in zip(spatial, strides, extra, kernel, dilations, sizes, strict=True):
            total = max(stride * (size - 1) + more + dilation * (places - 1) + 1 - target, 0)
            pads.append((total // 2, total - total // 2) if mode == "SAME_UPPER" else (total - total // 2, total // 2))
    window = Window(strides, pads, dilations)
    return [operators.convolve_transposed(node.trace, tensor, weight, _bias(node), window, node.attribute("group", 1), extra)]


@operator("AveragePool")
def _average_pool(node: Node) -> Sequence[Value]:
    tensor, kernel = node.tensor(), node.attribute("kernel_shape", [])
    result = operators.pool_average(
        node.trace,
        tensor,
        kernel,
        _window(node, tensor.shape[2:], kernel),
        count_padding=bool(node.attribute("count_include_pad", 0)),
        ceil_mode=bool(node.attribute("ceil_mode", 0)),
    )
    return [result]


@operator("MaxPool")
def _max_pool(node: Node) -> Sequence[Value]:
    tensor, kernel = node.tensor(), node.attribute("kernel_shape", [])
    window = _window(node, tensor.shape[2:], kernel)
    return [operators.pool_maximum(node.trace, tensor, kernel, window, ceil_mode=bool(node.attribute("ceil_mode", 0)))]


@operator("GlobalAveragePool")
def _global_average(node: Node) -> Sequence[Value]:
    return [node.tensor().mean(_spatial(node), keepdims=True)]


@operator("GlobalMaxPool")
def _global_maximum(node: Node) -> Sequence[Value]:
    return [largest_along(node.trace, node.tensor(), _spatial(node), keepdims=True)]


def _spatial(node: Node) -> list[int]:
    rank = len(node.tensor().shape)
    if rank < 3:
        msg = f"pools a tensor of shape {node.tensor().shape}, which has no axes after its channels"
        raise UnsupportedModel(msg)
    return list(range(2, rank))


@operator("BatchNormalization", constants=_AFTER_FIRST)
def _batch_normalization(node: Node) -> Sequence[Value]:
    if node.attribute("training_mode", 0):
        msg = "is in training mode; export the model in evaluation mode"
        raise UnsupportedOperator(msg)
    scale, offset, mean, variance = (node.constant(position) for position in range(1, 5))
    return [operators.batch_norm(node.tensor(), scale, offset, mean, variance, node.attribute("epsilon", 1e-5))]


@operator("Resize", "Upsample", constants=_AFTER_FIRST)
def _resize(node: Node) -> Sequence[Value]:
    tensor, mode = node.tensor(), node.attribute("mode", "nearest")
    if mode not in {"nearest", "linear", "bilinear"} or node.attribute("antialias", 0):
        kind = "with antialiasing" if node.attribute("antialias", 0) else f"in mode {mode!r}"
        msg = f"resizes {kind}; only 'nearest' and 'linear' can be read"
        raise UnsupportedOperator(msg)
    sizes, scales = _new_sizes(node)
    maps = {
        axis: interpolation(size, _places(node, size, new, scale))
        for axis, (size, new, scale) in enumerate(zip(tensor.shape, sizes, scales, strict=True))
        if (size, scale) != (new, 1.0)
    }
    return [operators.along_axes(node.trace, tensor, maps) if maps else tensor]


def _new_sizes(node: Node) -> tuple[list[int], list[float]]:
    """The new length of every axis, and the scale."""
    shape = node.tensor().shape
    old = node.proto.op_type == "Upsample" or node.opset <= _OLD_RESIZE
    scales = node.attribute("scales") if old and node.optional(1) is None else None
    place, given = (1 if old else 2), None
    if scales is None and node.optional(place) is not None and node.constant(place).size:
        scales = node.constant(place).ravel().tolist()
    if scales is None and not old:
        given = [int(size) for size in node.constant(3).ravel()]
    axes = checked_axes(node.attribute("axes") or range(len(shape)), len(shape))
    if len(scales or given or []) != len(axes) or min(scales or given or [0]) <= 0:
        msg = f"resizes a tensor of shape {shape} by scales {scales}, to sizes {given}; one positive number per axis is expected"
        raise UnsupportedModel(msg)
    if given is not None and node.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
        msg = "keeps the aspect ratio; only the policy 'stretch' can be read"
        raise UnsupportedOperator(msg)
    sizes, factors = list(shape), [1.0] * len(shape)
    for number, axis in enumerate(axes):
        sizes[axis] = given[number] if given is not None else int(np.floor(shape[axis] * (scales or [])[number] + 1e-9))
        factors[axis] = sizes[axis] / shape[axis] if given is not None else float((scales or [])[number])
    if min(sizes) < 1:
        msg = f"resizes a tensor of shape {shape} to {tuple(sizes)}"
        raise UnsupportedModel(msg)
    return sizes, factors


def _places(node: Node, size: int, new: int, scale: float) -> Floats:
    """Where each new element of an axis is read in the old one."""
    old = node.proto.op_type == "Upsample" or node.opset <= _OLD_RESIZE
    way = "asymmetric" if old else node.attribute("coordinate_transformation_mode", "half_pixel")
    index = np.arange(new, dtype=np.float64)
    middle = (index + 0.5) / scale - 0.5
    ways = {
        "half_pixel": middle,
        "pytorch_half_pixel": middle if new > 1 else index,
        "half_pixel_symmetric": middle + size / 2 * (1.0 - new / (size * scale)),
        "align_corners": index * (size - 1) / max(new - 1, 1),
        "asymmetric": index / scale,
    }
    if way not in ways:
        msg = f"places coordinates by {way!r}; only {', '.join(ways)} can be read"
        raise UnsupportedOperator(msg)
    places = ways[way]
    if node.attribute("mode", "nearest") != "nearest":
        return places
    rounding = "floor" if old else node.attribute("nearest_mode", "round_prefer_floor")
    roundings = {
        "round_prefer_floor": np.ceil(places - 0.5),
        "round_prefer_ceil": np.floor(places + 0.5),
        "floor": np.floor(places),
        "ceil": np.ceil(places),
    }
    if rounding not in roundings or (old and scale < 1.0 and node.proto.op_type == "Resize"):
        msg = (
            f"picks the nearest element by {rounding!r} with the scale {scale:g} in operator set {node.opset}, which is not read"
        )
        raise UnsupportedOperator(msg)
    return roundings[rounding]
