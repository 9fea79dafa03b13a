"""Torch's piecewise-linear operators on traced tensors.

A handler gets a `Call` and returns what the operator returns.  Whatever only moves elements about (views, slices,
padding, nearest upsampling, ...) is one handler: torch itself moves the elements' numbers, and the result says which
element goes where.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from tessella.errors import UnsupportedModel
from tessella.importers.linear_maps import check_size
from tessella.importers.operators import Window, batch_norm, convolve, pool_average, same_pads
from tessella.importers.torch_call import Call, apply, arranged, dry_run, lifted, numbers
from tessella.importers.trace import Tensor, Trace, concatenate
from tessella.network import Floats

Handler: TypeAlias = Callable[[Call], Any]


# ---------------------------------------------------------------------------------------------- rectifiers


def _at_least(trace: Trace, tensor: Tensor, bound: Floats) -> Tensor:
    return tensor if np.isneginf(bound).all() else trace.relu(tensor.shift(-bound)).shift(bound)


def _at_most(trace: Trace, tensor: Tensor, bound: Floats) -> Tensor:
    return _at_least(trace, tensor.scale(-1.0), -bound).scale(-1.0)


def _relu(call: Call) -> Tensor:
    return call.trace.relu(call.tensor("self"))


def _clamp(low: str, high: str) -> Handler:
    def handler(call: Call) -> Tensor:
        tensor, least, most = call.tensor("self"), call.optional(low), call.optional(high)
        tensor = tensor if least is None else _at_least(call.trace, tensor, least)
        return tensor if most is None else _at_most(call.trace, tensor, most)

    return handler


def _relu6(call: Call) -> Tensor:
    return _at_most(call.trace, _relu(call), np.asarray(6.0))


def _threshold(call: Call) -> Tensor:
    bound = call.constant("threshold")
    if bound != call.constant("value"):
        msg = "a threshold with another value below it jumps; only equal ones are continuous"
        raise UnsupportedModel(msg)
    return _at_least(call.trace, call.tensor("self"), bound)


def _extremum(choose: Callable[[Trace, Tensor, Floats], Tensor]) -> Handler:
    """The larger or smaller of a tensor and a constant."""

    def handler(call: Call) -> Tensor:
        if "other" not in call.given:
            msg = "a maximum or minimum over elements cannot be read, only one with a constant"
            raise UnsupportedModel(msg)
        if isinstance(call.given["self"], Tensor):
            return choose(call.trace, call.tensor("self"), call.constant("other"))
        return choose(call.trace, call.tensor("other"), call.constant("self"))

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
    _check_floating(call)
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


# ---------------------------------------------------------------------------------------------- windows


def _unbatched(tensor: Tensor, rank: int, handle: Callable[[Tensor], Tensor]) -> Tensor:
    """Torch's layers also read a single example without a batch axis."""
    if len(tensor.shape) != rank + 1:
        return handle(tensor)
    result = handle(tensor.reshape((1, *tensor.shape)))
    return result.reshape(result.shape[1:])


def _convolution(call: Call) -> Tensor:
    if call.given.get("transposed"):
        msg = "transposed convolutions cannot be read"
        raise UnsupportedModel(msg)
    weight, bias = call.constant("weight"), call.optional("bias")
    rank = weight.ndim - 2
    strides, dilations = call.integers("stride", rank), call.integers("dilation", rank)

    def handle(tensor: Tensor) -> Tensor:
        pads = _convolution_pads(call, tensor.shape[2:], weight.shape[2:], strides, dilations)
        return convolve(call.trace, tensor, weight, bias, Window(strides, pads, dilations), int(call.given["groups"]))

    return _unbatched(call.tensor("input"), rank, handle)


def _convolution_pads(
    call: Call, spatial: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[tuple[int, int]]:
    padding = call.given["padding"]
    if padding == "same":
        return same_pads(spatial, kernel, strides, dilations)
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    return [(pad, pad) for pad in call.integers("padding", len(kernel))]


def _average_pool(rank: int) -> Handler:
    def handler(call: Call) -> Tensor:
        kernel = call.integers("kernel_size", rank)
        strides = call.integers("stride", rank) if call.given["stride"] else kernel
        window = Window(strides, [(pad, pad) for pad in call.integers("padding", rank)], [1] * rank)

        def handle(tensor: Tensor) -> Tensor:
            return pool_average(
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


def _adaptive_pool(rank: int) -> Handler:
    def handler(call: Call) -> Tensor:
        def handle(tensor: Tensor) -> Tensor:
            spatial, wanted = tensor.shape[2:], call.integers("output_size", rank)
            if len(spatial) != rank or min(wanted) < 1 or any(size % count for size, count in zip(spatial, wanted, strict=True)):
                msg = f"adaptive pooling from size {tuple(spatial)} to {tuple(wanted)}; only whole multiples can be read"
                raise UnsupportedModel(msg)
            kernel = [size // count for size, count in zip(spatial, wanted, strict=True)]
            return pool_average(call.trace, tensor, kernel, Window(kernel, [(0, 0)] * rank, [1] * rank), count_padding=True)

        return _unbatched(call.tensor("self"), rank, handle)

    return handler


def _batch_norm(call: Call) -> Tensor:
    if call.given.get("training") or call.given.get("running_mean") is None or call.given.get("running_var") is None:
        msg = "a normalisation by the batch's own statistics is not piecewise linear; evaluate with running statistics"
        raise UnsupportedModel(msg)
    return batch_norm(
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


# ---------------------------------------------------------------------------------------------- the rest


def _check_floating(call: Call) -> None:
    dtype = call.given.get("dtype")
    if dtype is not None and not getattr(dtype, "is_floating_point", True):
        msg = f"a conversion to {dtype} is not piecewise linear"
        raise UnsupportedModel(msg)


def _same(call: Call) -> Any:
    """Copies, and conversions between floating-point numbers, change nothing that counts."""
    _check_floating(call)
    other: Any = call.given.get("other")
    if hasattr(other, "is_floating_point") and not other.is_floating_point():
        msg = f"a conversion to {other.dtype} is not piecewise linear"
        raise UnsupportedModel(msg)
    return next(iter(call.given.values()))


def _dropout(call: Call) -> Tensor:
    if call.given.get("train"):
        msg = "it drops units at random; use torch.nn.Dropout, or pass training=self.training to the function"
        raise UnsupportedModel(msg)
    return call.tensor("input")


def _concatenate(call: Call) -> Tensor:
    # torch skips empty tensors of one axis here
    tensors = [lifted(value) for value in call.given["tensors"]]
    return concatenate([tensor for tensor in tensors if tensor.shape != (0,)], int(call.given.get("dim", 0)))


def _stack(call: Call) -> Tensor:
    tensors = [lifted(value) for value in call.given["tensors"]]
    axis = int(call.given.get("dim", 0))
    axis += len(tensors[0].shape) + 1 if axis < 0 else 0
    return concatenate([tensor.reshape((*tensor.shape[:axis], 1, *tensor.shape[axis:])) for tensor in tensors], axis)


def _filled_like(call: Call) -> Any:
    """Constants of a tensor's shape (``zeros_like``), made by torch from a tensor of that shape."""
    import torch  # noqa: PLC0415  optional, and here already imported by whoever made the call

    given = dict(call.given)
    given["self"] = torch.empty(call.tensor("self").shape, device="meta")
    given["device"] = "cpu"
    if "size" in given:
        check_size(prod(int(size) for size in given["size"]), "a tensor")
    return apply(call.function, given)


def _size(call: Call) -> int:
    return int(call.tensor("self").shape[int(call.given["dim"])])


def _count(call: Call) -> int:
    return call.tensor("self").size


def _rearranged(call: Call) -> Any:
    """Let torch move the elements' numbers (counted from 1, so that what it fills in as padding is 0)."""
    import torch  # noqa: PLC0415  optional, and here already imported by whoever made the call

    first = next(iter(call.given))
    tensor = call.given[first]
    given = {name: torch.empty(value.shape) if isinstance(value, Tensor) else value for name, value in call.given.items()}
    if call.function.__name__.split(".")[0].endswith("_as"):  # of the other tensor only the shape is read
        if not isinstance(tensor, Tensor):
            return apply(call.function, given)
    elif not isinstance(tensor, Tensor) or sum(isinstance(value, Tensor) for value in call.given.values()) > 1:
        msg = "which elements it picks depends on the input; only fixed choices can be read"
        raise UnsupportedModel(msg)
    given[first] = torch.arange(1, tensor.size + 1, dtype=torch.float64).reshape(tensor.shape)
    filler = 0.0
    if given.get("value") is not None:
        filler, given["value"] = float(given["value"]), 0.0
    for shape in dry_run(call.function, *arranged(call.function, given)):
        check_size(prod(shape), "a tensor")
    result = apply(call.function, given)
    if isinstance(result, (list, tuple)):
        return [_picked(tensor, part, filler) for part in result]
    return _picked(tensor, result, filler)


def _picked(tensor: Tensor, moved: Any, filler: float) -> Tensor:
    if not moved.is_floating_point() or moved.element_size() != 8:
        msg = "it reads the elements as other types than they are"
        raise UnsupportedModel(msg)
    index = moved.numpy().astype(np.int64)
    if index.size == tensor.size and (index.ravel() == np.arange(1, tensor.size + 1)).all():
        return tensor.reshape(index.shape)
    inside = index > 0
    picked = tensor.take(np.maximum(index - 1, 0))
    return picked if inside.all() else picked.scale(inside).shift(np.where(inside, 0.0, filler))


_REARRANGEMENTS = """
    view _unsafe_view view_copy view_as reshape reshape_as flatten ravel unflatten squeeze squeeze_copy unsqueeze
    unsqueeze_copy permute permute_copy transpose transpose_copy t t_copy numpy_T mT movedim moveaxis swapaxes swapdims expand
    expand_as expand_copy broadcast_to select select_copy slice slice_copy narrow narrow_copy index_select index _unsafe_index take
    gather split split_copy split_with_sizes split_with_sizes_copy chunk unsafe_chunk unsafe_split unsafe_split_with_sizes
    tensor_split unbind unbind_copy flip fliplr flipud roll rot90 repeat tile pixel_shuffle pixel_unshuffle
    channel_shuffle unfold unfold_copy diagonal tril triu im2col pad constant_pad_nd reflection_pad1d reflection_pad2d
    reflection_pad3d replication_pad1d replication_pad2d replication_pad3d _pad_circular upsample_nearest1d upsample_nearest2d
    upsample_nearest3d
"""
_COPIES = """
    clone contiguous detach detach_copy alias alias_copy to _to_copy type_as float double lift_fresh lift_fresh_copy positive
"""

HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(_REARRANGEMENTS.split(), _rearranged),
    **dict.fromkeys(_COPIES.split(), _same),
    **dict.fromkeys(("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"), _dropout),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution", "_convolution"), _convolution),
    **{f"avg_pool{rank}d": _average_pool(rank) for rank in (1, 2, 3)},
    **{f"{mark}adaptive_avg_pool{rank}d": _adaptive_pool(rank) for rank in (1, 2, 3) for mark in ("", "_")},
    **dict.fromkeys(("cat", "concat", "concatenate"), _concatenate),
    **dict.fromkeys(("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"), _filled_like),
    **dict.fromkeys(("_native_batch_norm_legit_no_training", "native_batch_norm"), _batch_norm_with_statistics),
    **dict.fromkeys(("maximum", "max", "fmax"), _extremum(_at_least)),
    **dict.fromkeys(("minimum", "min", "fmin"), _extremum(_at_most)),
    **dict.fromkeys(("mm", "bmm"), _matmul("self", "mat2")),
    **dict.fromkeys(("mul", "multiply"), _multiply),
    **dict.fromkeys(("div", "divide", "true_divide"), _divide),
    **dict.fromkeys(("sub", "subtract"), _subtract),
    **dict.fromkeys(("neg", "negative"), _negate),
    **dict.fromkeys(("clamp", "clip", "clamp_min", "clamp_max"), _clamp("min", "max")),
    "hardtanh": _clamp("min_val", "max_val"),
    "relu": _relu,
    "relu6": _relu6,
    "threshold": _threshold,
    "add": _add,
    "rsub": _subtract_from,
    "linear": _linear,
    "addmm": _addmm,
    "matmul": _matmul("self", "other"),
    "mv": _matmul("self", "vec"),
    "batch_norm": _batch_norm,
    "mean": _mean,
    "sum": _total,
    "stack": _stack,
    "sym_size": _size,
    "sym_numel": _count,
}
