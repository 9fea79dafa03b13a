"""Operators that the `onnx` package's evaluator gets wrong, does not know, or takes very long for, in plain numpy.

The evaluator is what models are compared with, so nothing here is shared with what reads them.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_FIXED_STATISTICS = 14  # before this operator set, it normalises by the batch's own statistics
_NEW_RESIZE = 11  # before it, it does not know linear resizing
_QUANTISED = 19  # before it, it knows no quantised values


def corrections(opset: int) -> list[type]:
    """Classes for the evaluator, for a model of an operator set."""
    chosen: dict[str, Callable[..., tuple[Array]]] = {"MaxPool": _max_pool, "Pad": _pad, "ConvTranspose": _conv_transpose}
    if opset < _FIXED_STATISTICS:
        chosen["BatchNormalization"] = _batch_normalization
    if opset < _NEW_RESIZE:
        chosen["Resize"] = chosen["Upsample"] = _resize
    if opset < _QUANTISED:
        chosen["DequantizeLinear"], chosen["QuantizeLinear"] = _dequantize, _quantize
    return [_operator(name, run) for name, run in chosen.items()]


@cache
def _operator(name: str, run: Callable[..., tuple[Array]]) -> type:
    from onnx.reference.op_run import OpRun  # noqa: PLC0415  heavy

    return type(name, (OpRun,), {"op_domain": "", "_run": lambda _, *inputs, **attributes: run(*inputs, **attributes)})


def _batch_normalization(x: Array, *statistics: Array, epsilon: float = 1e-5, **_: Any) -> tuple[Array]:
    scale, bias, mean, variance = (part.reshape(-1, *[1] * (x.ndim - 2)) for part in statistics)
    return (((x - mean) / np.sqrt(variance + epsilon) * scale + bias).astype(x.dtype),)


def _resize(x: Array, factors: Array | None = None, *, scales: Any = None, mode: str | None = None, **_: Any) -> tuple[Array]:
    """Element i is read at i / scale."""
    for axis, scale in enumerate(np.ravel(np.asarray(scales if factors is None else factors, dtype=np.float64))):
        if scale != 1.0:
            size = x.shape[axis]
            places = np.minimum(np.arange(int(np.floor(size * scale + 1e-9))) / scale, size - 1)
            below = np.floor(places).astype(int)
            lower, upper = x.take(below, axis=axis), x.take(np.minimum(below + 1, size - 1), axis=axis)
            share = (places - below).reshape([-1 if place == axis else 1 for place in range(x.ndim)])
            x = (lower if mode in {None, "nearest"} else lower + share * (upper - lower)).astype(x.dtype)
    return (x,)


def _dequantize(x: Array, scale: Array, zero: Array | None = None, *, axis: int | None = None, **_: Any) -> tuple[Array]:
    scale, zero = _along(x, scale, axis), _along(x, np.zeros(1) if zero is None else zero, axis)
    return (((x.astype(np.float64) - zero.astype(np.float64)) * scale).astype(scale.dtype),)


def _quantize(x: Array, scale: Array, zero: Array | None = None, *, axis: int | None = None, **_: Any) -> tuple[Array]:
    offset = np.zeros(1, dtype=np.uint8) if zero is None else zero
    limits = np.iinfo(offset.dtype)
    whole = np.rint(x / _along(x, scale, axis)) + _along(x, offset, axis)
    return (np.clip(whole, limits.min, limits.max).astype(offset.dtype),)


def _along(x: Array, numbers: Array, axis: int | None) -> Array:
    if numbers.size == 1:
        return numbers.reshape(())
    place = (1 if axis is None else axis) % x.ndim
    return numbers.reshape([-1 if other == place else 1 for other in range(x.ndim)])


def _pad(
    x: Array, pads: Any = None, value: Any = None, axes: Array | None = None, *, mode: str | None = None, **_: Any
) -> tuple[Array]:
    numbers = [int(number) for number in np.ravel(pads)]
    places = list(range(x.ndim)) if axes is None else [int(axis) % x.ndim for axis in axes]
    widths, cut = [(0, 0)] * x.ndim, [slice(None)] * x.ndim
    for before, after, axis in zip(numbers[: len(places)], numbers[len(places) :], places, strict=True):
        widths[axis] = (max(before, 0), max(after, 0))
        cut[axis] = slice(max(-before, 0), x.shape[axis] - max(-after, 0))
    x, options = x[tuple(cut)], {}
    if mode in {None, "constant"}:
        options = {"constant_values": 0.0 if value is None else float(np.ravel(value)[0])}
    return (np.pad(x, widths, mode=mode or "constant", **options).astype(x.dtype),)  # pyright: ignore[reportArgumentType, reportCallIssue]


def _max_pool(  # noqa: PLR0913  as many as the operator has
    x: Array,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    ceil_mode: int | None = None,
    auto_pad: str | None = None,
    **_: Any,
) -> tuple[Array]:
    rank = len(kernel_shape)
    strides, dilations, pads = strides or [1] * rank, dilations or [1] * rank, list(pads or [0] * 2 * rank)
    counts, widths = [], [(0, 0), (0, 0)]
    for axis, (size, places, stride, dilation) in enumerate(zip(x.shape[2:], kernel_shape, strides, dilations, strict=True)):
        reach = dilation * (places - 1) + 1
        before, after = pads[axis], pads[axis + rank]
        if auto_pad in {"SAME_UPPER", "SAME_LOWER"}:
            total = max((ceil(size / stride) - 1) * stride + reach - size, 0)
            before = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
            after = total - before
        room = size + before + after - reach
        count = (ceil(room / stride) if ceil_mode else room // stride) + 1
        count -= 1 if ceil_mode and (count - 1) * stride >= size + before else 0
        counts.append(count)
        widths.append((before, max((count - 1) * stride + reach - size - before, 0)))
    whole = np.pad(x, widths, constant_values=-np.inf)
    windows = _windows(kernel_shape, counts, strides, dilations)
    return (np.max([whole[(..., *window)] for window in windows], axis=0),)


def _windows(
    kernel: Sequence[int], counts: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Iterator[tuple[slice, ...]]:
    """For each place in a kernel, what it reads at all positions."""
    for places in product(*map(range, kernel)):
        starts = [place * dilation for place, dilation in zip(places, dilations, strict=True)]
        yield tuple(
            slice(start, start + (count - 1) * stride + 1, stride)
            for start, count, stride in zip(starts, counts, strides, strict=True)
        )


def _conv_transpose(  # noqa: PLR0913  as many as the operator has
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    strides: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    group: int | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    auto_pad: str | None = None,
    **_: Any,
) -> tuple[Array]:
    rank, groups = x.ndim - 2, group or 1
    strides, dilations, extra = strides or [1] * rank, dilations or [1] * rank, output_padding or [0] * rank
    kernel, sizes = weight.shape[2:], x.shape[2:]
    batch, channels = len(x), weight.shape[1] * groups
    full = [(n - 1) * s + d * (k - 1) + 1 + e for n, s, d, k, e in zip(sizes, strides, dilations, kernel, extra, strict=True)]
    whole = np.zeros((batch, groups, weight.shape[1], *full))
    parts = x.reshape(batch, groups, -1, *sizes).astype(np.float64)
    filters = weight.reshape(groups, -1, *weight.shape[1:]).astype(np.float64)
    for places, window in zip(product(*map(range, kernel)), _windows(kernel, sizes, strides, dilations), strict=True):
        whole[(..., *window)] += np.einsum("bgc...,gco->bgo...", parts, filters[(..., *places)])
    cut = _cut(full, sizes, strides, (pads, output_shape, auto_pad))
    result = whole.reshape(batch, channels, *full)[(..., *cut)]
    result = result if bias is None else result + bias.reshape(-1, *[1] * rank)
    return (result.astype(x.dtype),)


def _cut(full: Sequence[int], sizes: Sequence[int], strides: Sequence[int], ends: tuple[Any, Any, Any]) -> list[slice]:
    """What is kept of a transposed convolution's whole output."""
    (pads, output_shape, auto_pad), rank = ends, len(full)
    if output_shape is None and auto_pad not in {"SAME_UPPER", "SAME_LOWER"}:
        pads = pads or [0] * 2 * rank
        return [slice(pads[axis], full[axis] - pads[axis + rank]) for axis in range(rank)]
    wanted = [n * s for n, s in zip(sizes, strides, strict=True)] if output_shape is None else output_shape[-rank:]
    totals = [max(size - want, 0) for size, want in zip(full, wanted, strict=True)]
    firsts = [total // 2 if auto_pad == "SAME_UPPER" else total - total // 2 for total in totals]
    return [slice(first, first + want) for first, want in zip(firsts, wanted, strict=True)]
