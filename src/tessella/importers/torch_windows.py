"""Torch's operators that slide over images or scale their channels, on traced tensors."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tessella.errors import UnsupportedModel
from tessella.importers import operators
from tessella.importers.linear_maps import Window, check_size, interpolation
from tessella.importers.torch_call import Call, Handler
from tessella.importers.trace import Ended, Tensor
from tessella.network import Floats, Sparse


def _unbatched(tensor: Tensor, rank: int, handle: Callable[[Tensor], Tensor]) -> Tensor:
    """Torch's layers also read a single example without a batch axis."""
    if len(tensor.shape) != rank + 1:
        return handle(tensor)
    result = handle(tensor.reshape((1, *tensor.shape)))
    return result.reshape(result.shape[1:])


def _convolution(call: Call) -> Tensor:
    if call.given.get("transposed"):
        return _transposed_convolution(call)
    weight, bias = call.constant("weight"), call.optional("bias")
    rank = weight.ndim - 2
    strides, dilations = call.integers("stride", rank), call.integers("dilation", rank)

    def handle(tensor: Tensor) -> Tensor:
        pads = _convolution_pads(call, tensor.shape[2:], weight.shape[2:], strides, dilations)
        return operators.convolve(call.trace, tensor, weight, bias, Window(strides, pads, dilations), int(call.given["groups"]))

    return _unbatched(call.tensor("input"), rank, handle)


def _transposed_convolution(call: Call) -> Tensor:
    weight, bias = call.constant("weight"), call.optional("bias")
    rank = weight.ndim - 2
    pads = [(pad, pad) for pad in call.integers("padding", rank)]
    window = Window(call.integers("stride", rank), pads, call.integers("dilation", rank))
    extra, groups = call.integers("output_padding", rank), int(call.given["groups"])

    def handle(tensor: Tensor) -> Tensor:
        return operators.convolve_transposed(call.trace, tensor, weight, bias, window, groups, extra)

    return _unbatched(call.tensor("input"), rank, handle)


def _convolution_pads(
    call: Call, spatial: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[tuple[int, int]]:
    padding = call.given["padding"]
    if padding == "same":
        return operators.same_pads(spatial, kernel, strides, dilations)
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    return [(pad, pad) for pad in call.integers("padding", len(kernel))]


def _average_pool(rank: int) -> Handler:
    def handler(call: Call) -> Tensor:
        kernel = call.integers("kernel_size", rank)
        strides = call.integers("stride", rank) if call.given["stride"] else kernel
        window = Window(strides, [(pad, pad) for pad in call.integers("padding", rank)], [1] * rank)

        def handle(tensor: Tensor) -> Tensor:
            return operators.pool_average(
                call.trace,
                tensor,
                kernel,
                window,
                count_padding=bool(call.given["count_include_pad"]),
                ceil_mode=bool(call.given["ceil_mode"]),
                divisor=call.given.get("divisor_override"),
            )

        return _unbatched(call.tensor("self"), rank, handle)

    return handler


def _maximum_pool(rank: int) -> Handler:
    def handler(call: Call) -> Tensor:
        kernel = call.integers("kernel_size", rank)
        strides = call.integers("stride", rank) if call.given["stride"] else kernel
        pads = [(pad, pad) for pad in call.integers("padding", rank)]
        window = Window(strides, pads, call.integers("dilation", rank))

        def handle(tensor: Tensor) -> Tensor:
            return operators.pool_maximum(call.trace, tensor, kernel, window, ceil_mode=bool(call.given["ceil_mode"]))

        return _unbatched(call.tensor("self"), rank, handle)

    return handler


def _adaptive_pool(rank: int, pool: Callable[[Call, Tensor, list[int], Window], Tensor]) -> Handler:
    def handler(call: Call) -> Tensor:
        def handle(tensor: Tensor) -> Tensor:
            spatial = tensor.shape[2:]
            asked = call.given["output_size"]
            wanted = [*asked] if isinstance(asked, (list, tuple)) else [asked]
            wanted = wanted * rank if len(wanted) == 1 else wanted
            wanted = [size if count is None else int(count) for size, count in zip(spatial, wanted, strict=True)]
            if len(spatial) != rank or min(wanted) < 1 or any(size % count for size, count in zip(spatial, wanted, strict=True)):
                msg = f"adaptive pooling from size {tuple(spatial)} to {tuple(wanted)}; only whole multiples can be read"
                raise UnsupportedModel(msg)
            kernel = [size // count for size, count in zip(spatial, wanted, strict=True)]
            return pool(call, tensor, kernel, Window(kernel, [(0, 0)] * rank, [1] * rank))

        return _unbatched(call.tensor("self"), rank, handle)

    return handler


def _average(call: Call, tensor: Tensor, kernel: list[int], window: Window) -> Tensor:
    return operators.pool_average(call.trace, tensor, kernel, window, count_padding=True)


def _largest(call: Call, tensor: Tensor, kernel: list[int], window: Window) -> Tensor:
    return operators.pool_maximum(call.trace, tensor, kernel, window)


def _with_places(handler: Handler) -> Handler:
    """The same, where torch also says where each value was found."""

    def both(call: Call) -> tuple[Tensor, Ended]:
        return handler(call), Ended(call.tensor("self"), ("argmax",))

    return both


def _resize_linear(rank: int) -> Handler:
    """Linear interpolation along each spatial axis (bilinear, trilinear)."""

    def handler(call: Call) -> Tensor:
        tensor, corners = call.tensor("self" if "self" in call.given else "input"), bool(call.given["align_corners"])
        spatial = tensor.shape[2:]
        if len(spatial) != rank:
            msg = f"an interpolation over {rank} axes cannot read a tensor of shape {tensor.shape}"
            raise UnsupportedModel(msg)
        factors = call.given.get("scale_factors") or [
            call.given.get(name) for name in ("scales", "scales_d", "scales_h", "scales_w")
        ]
        factors = ([float(factor) for factor in factors if factor is not None] or [0.0]) * rank
        sizes = call.given.get("output_size")
        wanted = [int(size * factor) for size, factor in zip(spatial, factors, strict=False)] if sizes is None else sizes
        maps: dict[int, Sparse] = {}
        for axis, (size, count, factor) in enumerate(zip(spatial, wanted, factors, strict=False), start=2):
            places = np.arange(int(count), dtype=np.float64)
            check_size(int(count) * 2, "an interpolation")
            maps[axis] = interpolation(size, _places(places, size, factor, corners=corners))
        return operators.along_axes(call.trace, tensor, maps)

    return handler


def _places(places: Floats, size: int, factor: float, *, corners: bool) -> Floats:
    """Where an interpolation reads an axis of this size, from the numbers of its results."""
    if corners:
        return places * (size - 1) / max(len(places) - 1, 1)
    return (places + 0.5) * (1.0 / factor if factor else size / len(places)) - 0.5


def _batch_norm(call: Call) -> Tensor:
    if call.given.get("training") or call.given.get("running_mean") is None or call.given.get("running_var") is None:
        msg = "a normalisation by the batch's own statistics is not piecewise linear; evaluate with running statistics"
        raise UnsupportedModel(msg)
    return operators.batch_norm(
        call.tensor("input"),
        call.optional("weight"),
        call.optional("bias"),
        call.constant("running_mean"),
        call.constant("running_var"),
        float(call.given["eps"]),
    )


def _batch_norm_with_statistics(call: Call) -> tuple[Any, ...]:
    """The same, where torch also returns saved statistics, which evaluation never reads."""
    return (_batch_norm(call), None, None)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution", "_convolution"), _convolution),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _transposed_convolution),
    **dict.fromkeys(("_native_batch_norm_legit_no_training", "native_batch_norm"), _batch_norm_with_statistics),
    **{f"avg_pool{rank}d": _average_pool(rank) for rank in (1, 2, 3)},
    **{f"max_pool{rank}d": _maximum_pool(rank) for rank in (1, 2, 3)},
    **{f"max_pool{rank}d_with_indices": _with_places(_maximum_pool(rank)) for rank in (1, 2, 3)},
    **{f"{mark}adaptive_avg_pool{rank}d": _adaptive_pool(rank, _average) for rank in (1, 2, 3) for mark in ("", "_")},
    **{f"adaptive_max_pool{rank}d": _with_places(_adaptive_pool(rank, _largest)) for rank in (1, 2, 3)},
    **{f"upsample_{kind}{rank}d": _resize_linear(rank) for rank, kind in enumerate(("linear", "bilinear", "trilinear"), start=1)},
    "batch_norm": _batch_norm,
}
