"""Keras layers that slide over images, or pad, crop and enlarge them, on traced tensors."""

from math import prod
from typing import Any

import numpy as np

from tessella.errors import UnsupportedModel, UnsupportedOperator
from tessella.importers import operators
from tessella.importers.activations import largest_along
from tessella.importers.keras_calls import LAYERS, Context, activate
from tessella.importers.linear_maps import Window, check_size, interpolation, sparse
from tessella.importers.trace import Tensor
from tessella.network import Floats


def channels_last(layer: Any) -> bool:
    """Whether the layer has its channels on the last axis."""
    return getattr(layer, "data_format", "channels_last") == "channels_last"


def _to_first(layer: Any, tensor: Tensor) -> Tensor:
    """Move the channels where the shared operators expect them."""
    rank = len(tensor.shape)
    return tensor.transpose((0, rank - 1, *range(1, rank - 1))) if channels_last(layer) and rank > 2 else tensor


def _from_first(layer: Any, tensor: Tensor) -> Tensor:
    return tensor.transpose((0, *range(2, len(tensor.shape)), 1)) if channels_last(layer) else tensor


def _convolved(context: Context, layer: Any, tensor: Tensor, weight: Floats, groups: int) -> Tensor:
    """Convolve by weights (outputs, channels per group, ...) with the layer's window; the result has channels first."""
    first = _to_first(layer, tensor)
    spatial, kernel, strides, dilations = first.shape[2:], weight.shape[2:], layer.strides, layer.dilation_rate
    if len(spatial) != len(kernel):
        msg = f"it has a kernel over {len(kernel)} axes and reads a tensor of shape {tensor.shape}"
        raise UnsupportedModel(msg)
    if layer.padding == "same":
        pads = operators.same_pads(spatial, kernel, strides, dilations)
    elif layer.padding == "causal":
        pads = [(dilation * (places - 1), 0) for dilation, places in zip(dilations, kernel, strict=True)]
    else:
        pads = [(0, 0)] * len(kernel)
    return operators.convolve(context.trace, first, weight, None, Window(strides, pads, dilations), groups)


def _transposed(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    first = _to_first(layer, tensor)
    weight = np.moveaxis(context.numbers(layer.kernel), (-1, -2), (0, 1))
    kernel, strides, dilations = weight.shape[2:], list(layer.strides), list(layer.dilation_rate)
    given = layer.output_padding
    extras = [given] * len(kernel) if given is None or isinstance(given, int) else list(given)
    crops = [
        _crop((places - 1) * dilation + 1, stride, layer.padding, extra)
        for places, stride, dilation, extra in zip(kernel, strides, dilations, extras, strict=True)
    ]
    pads, more = [(before, max(after, 0)) for before, after in crops], [max(-after, 0) for _, after in crops]
    return _finished(
        context,
        layer,
        operators.convolve_transposed(context.trace, first, weight, None, Window(strides, pads, dilations), 1, more),
    )


def _crop(places: int, stride: int, padding: str, extra: int | None) -> tuple[int, int]:
    """How much a transposed convolution leaves out before and after its smallest output."""
    if padding == "valid":
        return 0, -(max(places, stride) - places if extra is None else extra)
    total = stride + places - 2 if extra is None else places + places % 2 - 2 + extra
    before = min(total // 2 + total % 2, places - 1)
    return places - 1 - before, places - 1 - (total - before)


def _finished(context: Context, layer: Any, first: Tensor) -> Tensor:
    """Add the bias, put the channels back in their place, and activate."""
    if layer.bias is not None:
        first = operators.per_channel(first, None, context.numbers(layer.bias))
    return activate(context, _from_first(layer, first), layer.activation)


def _convolution(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    weight = np.moveaxis(context.numbers(layer.kernel), (-1, -2), (0, 1))
    return _finished(context, layer, _convolved(context, layer, tensor, weight, int(layer.groups)))


def _channelwise(context: Context, layer: Any, tensor: Tensor, kernel: Floats) -> Tensor:
    """Convolve every channel by weights of its own, (..., channels, multiplier)."""
    *places, channels, multiplier = kernel.shape
    weight = np.moveaxis(kernel.reshape(*places, 1, channels * multiplier), (-1, -2), (0, 1))
    return _convolved(context, layer, tensor, weight, channels)


def _depthwise(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    return _finished(context, layer, _channelwise(context, layer, tensor, context.numbers(layer.kernel)))


def _separable(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    middle = _channelwise(context, layer, tensor, context.numbers(layer.depthwise_kernel))
    weight = np.moveaxis(context.numbers(layer.pointwise_kernel), (-1, -2), (0, 1))
    ones = [1] * (weight.ndim - 2)
    window = Window(ones, [(0, 0)] * len(ones), ones)
    return _finished(context, layer, operators.convolve(context.trace, middle, weight, None, window, 1))


def _average_pooling(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    first = _to_first(layer, tensor)
    size, strides = layer.pool_size, layer.strides
    ones, pads = [1] * len(size), [(0, 0)] * len(size)
    if layer.padding == "same":
        pads = operators.same_pads(first.shape[2:], size, strides, ones)
    if context.keras.config.backend() == "torch" and any(before != after for before, after in pads):
        # on torch Keras repeats the border instead of leaving the padding out of the average
        widths = [(0, 0), (0, 0), *pads]
        check_size(prod(length + sum(pair) for length, pair in zip(first.shape, widths, strict=True)), "a padded tensor")
        first, pads = first.take(np.pad(first.indices(), widths, mode="edge")), [(0, 0)] * len(size)
    return _from_first(
        layer, operators.pool_average(context.trace, first, size, Window(strides, pads, ones), count_padding=False)
    )


def _max_pooling(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    first = _to_first(layer, tensor)
    size, ones = layer.pool_size, [1] * len(layer.pool_size)
    pads = operators.same_pads(first.shape[2:], size, layer.strides, ones) if layer.padding == "same" else [(0, 0)] * len(size)
    return _from_first(layer, operators.pool_maximum(context.trace, first, size, Window(layer.strides, pads, ones)))


def _adaptive(layer: Any, first: Tensor) -> tuple[list[int], Window]:
    """The windows of a pooling that is told its results' sizes, where each is a whole part of the tensor's."""
    sizes, asked = first.shape[2:], [int(size) for size in layer.output_size]
    if any(size % part for size, part in zip(sizes, asked, strict=True)):
        msg = f"it pools sizes of {tuple(sizes)} into {tuple(asked)}; only whole multiples can be read"
        raise UnsupportedModel(msg)
    kernel = [size // part for size, part in zip(sizes, asked, strict=True)]
    return kernel, Window(kernel, [(0, 0)] * len(kernel), [1] * len(kernel))


def _adaptive_max_pooling(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    first = _to_first(layer, tensor)
    return _from_first(layer, operators.pool_maximum(context.trace, first, *_adaptive(layer, first)))


def _adaptive_average_pooling(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    first = _to_first(layer, tensor)
    return _from_first(layer, operators.pool_average(context.trace, first, *_adaptive(layer, first), count_padding=False))


def _spatial(layer: Any, rank: int) -> list[int]:
    return list(range(1, rank - 1) if channels_last(layer) else range(2, rank))


def _global_max_pooling(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    return largest_along(context.trace, tensor, _spatial(layer, len(tensor.shape)), keepdims=bool(layer.keepdims))


def _up_sampling(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    rank = len(tensor.shape)
    axes = _spatial(layer, rank)
    factors = [int(factor) for factor in np.atleast_1d(layer.size)]
    check_size(tensor.size * prod(factors), "an enlarged tensor")
    kind = getattr(layer, "interpolation", "nearest")
    if kind == "nearest":
        index = tensor.indices()
        for axis, factor in zip(axes, factors, strict=True):
            index = np.repeat(index, factor, axis=axis)
        return tensor.take(index)
    if kind != "bilinear":
        msg = f"it enlarges by the interpolation {kind!r}; only 'nearest' and 'bilinear' can be read"
        raise UnsupportedOperator(msg)
    maps = {
        axis: interpolation(tensor.shape[axis], (np.arange(tensor.shape[axis] * factor) + 0.5) / factor - 0.5)
        for axis, factor in zip(axes, factors, strict=True)
    }
    return operators.along_axes(context.trace, tensor, maps)


def _global_average_pooling(_context: Context, layer: Any, tensor: Tensor) -> Tensor:
    return tensor.mean(_spatial(layer, len(tensor.shape)), keepdims=bool(layer.keepdims))


def _border(layer: Any, amounts: Any, rank: int) -> list[tuple[int, int]]:
    """Pairs (before, after) for every axis; in one dimension Keras holds a bare pair."""
    pairs = [amounts] if isinstance(amounts[0], int) else list(amounts)
    if len(pairs) != rank - 2:
        msg = f"it has borders for {len(pairs)} axes and reads a tensor of {rank}"
        raise UnsupportedModel(msg)
    spatial = [(int(before), int(after)) for before, after in pairs]
    return [(0, 0), *spatial, (0, 0)] if channels_last(layer) else [(0, 0), (0, 0), *spatial]


def _zero_padding(_context: Context, layer: Any, tensor: Tensor) -> Tensor:
    widths = _border(layer, layer.padding, len(tensor.shape))
    check_size(prod(length + sum(pair) for length, pair in zip(tensor.shape, widths, strict=True)), "a padded tensor")
    index = np.pad(tensor.indices(), widths, constant_values=-1)
    (rows,) = np.nonzero(index.ravel() >= 0)
    return tensor.apply(sparse(rows, index.ravel()[rows], np.ones(len(rows)), (index.size, tensor.size)), index.shape)


def _cropping(_context: Context, layer: Any, tensor: Tensor) -> Tensor:
    widths = _border(layer, layer.cropping, len(tensor.shape))
    kept = tuple(slice(before, length - after) for length, (before, after) in zip(tensor.shape, widths, strict=True))
    return tensor.take(tensor.indices()[kept])


for _rank in (1, 2, 3):
    LAYERS.update(
        {
            f"AdaptiveAveragePooling{_rank}D": _adaptive_average_pooling,
            f"AdaptiveMaxPooling{_rank}D": _adaptive_max_pooling,
            f"AveragePooling{_rank}D": _average_pooling,
            f"Conv{_rank}D": _convolution,
            f"Conv{_rank}DTranspose": _transposed,
            f"Cropping{_rank}D": _cropping,
            f"GlobalAveragePooling{_rank}D": _global_average_pooling,
            f"GlobalMaxPooling{_rank}D": _global_max_pooling,
            f"MaxPooling{_rank}D": _max_pooling,
            f"UpSampling{_rank}D": _up_sampling,
            f"ZeroPadding{_rank}D": _zero_padding,
        }
    )
LAYERS.update(
    {
        **dict.fromkeys(("DepthwiseConv1D", "DepthwiseConv2D"), _depthwise),
        **dict.fromkeys(("SeparableConv1D", "SeparableConv2D"), _separable),
    }
)
