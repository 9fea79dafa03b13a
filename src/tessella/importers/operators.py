"""Operators that several formats share, on traced tensors (channels first, with a batch axis)."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from tessella.errors import UnsupportedModel
from tessella.importers.activations import largest
from tessella.importers.linear_maps import (
    LARGEST_MATRIX,
    Window,
    average_pool,
    check_size,
    convolution,
    identity,
    kronecker,
    transposed_convolution,
    windows,
)
from tessella.importers.trace import Tensor, Trace
from tessella.network import Floats, Sparse


def same_pads(
    spatial: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[tuple[int, int]]:
    """Padding that makes ceil(size / stride) positions, the odd one at the end ("SAME_UPPER" in ONNX, "same" in Keras)."""
    pads: list[tuple[int, int]] = []
    for size, places, stride, dilation in zip(spatial, kernel, strides, dilations, strict=True):
        total = max((-(-size // stride) - 1) * stride + dilation * (places - 1) + 1 - size, 0)
        pads.append((total // 2, total - total // 2))
    return pads


def convolve(  # noqa: PLR0913, PLR0917  as many as the operator has
    trace: Trace, tensor: Tensor, weight: Floats, bias: Floats | None, window: Window, groups: int
) -> Tensor:
    """A convolution of (batch, channels, ...) by weights (outputs, channels per group, ...)."""
    weight = np.asarray(weight, dtype=np.float64)
    if weight.ndim < 3 or len(tensor.shape) != weight.ndim:
        msg = f"a convolution with weights of shape {weight.shape} cannot read a tensor of shape {tensor.shape}"
        raise UnsupportedModel(msg)
    matrix, shape = convolution(tensor.shape[1:], weight, window, groups)
    result = _per_example(trace, tensor, matrix, shape)
    return result if bias is None else per_channel(result, None, bias)


def convolve_transposed(  # noqa: PLR0913, PLR0917  as many as the operator has
    trace: Trace, tensor: Tensor, weight: Floats, bias: Floats | None, window: Window, groups: int, extra: Sequence[int]
) -> Tensor:
    """A transposed convolution of (batch, channels, ...) by weights (inputs, outputs per group, ...).

    The output is larger by `extra`, per spatial axis, than the smallest one that fits ("output padding").
    """
    weight = np.asarray(weight, dtype=np.float64)
    matrix, shape = transposed_convolution(tensor.shape[1:], weight, window, groups, extra)
    result = _per_example(trace, tensor, matrix, shape)
    return result if bias is None else per_channel(result, None, bias)


def along_axes(trace: Trace, tensor: Tensor, maps: Mapping[int, Sparse]) -> Tensor:
    """Apply a linear map (new size, old size) along each of some axes, such as an `interpolation`."""
    factors = [maps[axis] if axis in maps else identity(size) for axis, size in enumerate(tensor.shape)]
    shape = tuple(int(factor.shape[0]) for factor in factors)
    check_size(prod(shape), "a tensor")
    check_size(prod(factor.nnz for factor in factors), "a linear map along axes", LARGEST_MATRIX)
    return trace.linear(tensor, kronecker(*factors), shape)


def pool_average(  # noqa: PLR0913  as many as the operator has
    trace: Trace,
    tensor: Tensor,
    kernel: Sequence[int],
    window: Window,
    *,
    count_padding: bool,
    ceil_mode: bool = False,
    divisor: int | None = None,
) -> Tensor:
    """Average pooling of (batch, channels, ...)."""
    if len(tensor.shape) != len(kernel) + 2:
        msg = f"a pooling over {len(kernel)} axes cannot read a tensor of shape {tensor.shape}"
        raise UnsupportedModel(msg)
    matrix, shape = average_pool(
        tensor.shape[1:],
        kernel,
        window,
        count_padding=count_padding,
        ceil_mode=ceil_mode,
        divisor=divisor,
    )
    return _per_example(trace, tensor, matrix, shape)


def pool_maximum(trace: Trace, tensor: Tensor, kernel: Sequence[int], window: Window, *, ceil_mode: bool = False) -> Tensor:
    """Max pooling of (batch, channels, ...); padding never wins."""
    if len(tensor.shape) != len(kernel) + 2:
        msg = f"a pooling over {len(kernel)} axes cannot read a tensor of shape {tensor.shape}"
        raise UnsupportedModel(msg)
    batch, channels, *spatial = tensor.shape
    index, positions = windows(spatial, kernel, window, ceil_mode=ceil_mode)
    check_size(batch * channels * index.size, "a max pooling's windows")
    offsets = np.arange(batch * channels)[:, None, None] * prod(spatial)
    groups = np.where(index >= 0, index + offsets, -1)
    return largest(trace, tensor, groups.reshape(-1, index.shape[1])).reshape((batch, channels, *positions))


def _per_example(trace: Trace, tensor: Tensor, matrix: Sparse, shape: tuple[int, ...]) -> Tensor:
    batch = tensor.shape[0]
    whole = matrix if batch == 1 else kronecker(identity(batch), matrix)
    return trace.linear(tensor, whole, (batch, *shape))


def per_channel(tensor: Tensor, factor: Floats | None, offset: Floats, axis: int = 1) -> Tensor:
    """Scale and shift every channel."""
    shape = [1] * len(tensor.shape)
    shape[axis] = -1
    offset = np.asarray(offset, dtype=np.float64)
    if offset.size not in {1, tensor.shape[axis]}:
        msg = f"{offset.size} numbers for the {tensor.shape[axis]} channels of a tensor of shape {tensor.shape}"
        raise UnsupportedModel(msg)
    scaled = tensor if factor is None else tensor.scale(np.asarray(factor, dtype=np.float64).reshape(shape))
    return scaled.shift(offset.reshape(shape))


def batch_norm(  # noqa: PLR0913, PLR0917  as many as the operator has
    tensor: Tensor,
    scale: Floats | None,
    offset: Floats | None,
    mean: Floats,
    variance: Floats,
    epsilon: float,
    axis: int = 1,
) -> Tensor:
    """Batch normalisation with fixed statistics."""
    mean, variance = np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    if (variance + epsilon <= 0).any():
        msg = "a batch normalisation has a variance that is not positive"
        raise UnsupportedModel(msg)
    factor = 1.0 / np.sqrt(variance + epsilon)
    factor = factor if scale is None else factor * np.asarray(scale, dtype=np.float64)
    shift = -mean * factor
    return per_channel(tensor, factor, shift if offset is None else shift + np.asarray(offset, dtype=np.float64), axis)
