"""Torch's piecewise-linear operators on traced tensors.

A handler gets a `Call` and returns what the operator returns.  Whatever only moves elements about (views, slices,
padding, nearest upsampling, ...) is one handler: torch itself moves the elements' numbers, and the result says which
element goes where.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from tessella.importers.linear_maps import check_size
from tessella.importers.operators import Window, batch_norm, convolve, pool_average, same_pads
from tessella.importers.trace import Tensor, Trace, concatenate
from tessella.network import Floats


class UnreadableCall(Exception):
    """An operator with arguments that make it something else than a piecewise-linear map."""


def first_line(error: BaseException) -> str:
    """An error of another library, short enough for a message of ours."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else "no further details"
    return f"{type(error).__name__}: {text[:200]}"


def base_name(operator: str) -> str:
    """``relu`` for ``aten.relu_.default``; empty if it is none of aten's."""
    parts = operator.split(".")
    if len(parts) < 2 or parts[0] != "aten":
        return ""
    name = parts[1]
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def numbers(value: Any) -> Floats:
    """A constant (torch tensor, number or list) in double precision."""
    if hasattr(value, "detach"):
        import torch  # noqa: PLC0415  optional, and here already imported by whoever made the value

        if value.is_complex():
            msg = "complex numbers cannot be read"
            raise UnreadableCall(msg)
        return value.detach().cpu().to(torch.float64).numpy()
    if isinstance(value, complex):
        msg = "complex numbers cannot be read"
        raise UnreadableCall(msg)
    return np.asarray(value, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Call:
    """An operator and its arguments.

    Parameters
    ----------
    trace
        Where new signals are made.
    function
        Torch's own function.
    given
        The arguments by name, defaults included: traced tensors, torch tensors, numbers, lists.
    """

    trace: Trace
    function: Any
    given: Mapping[str, Any]

    def tensor(self, name: str) -> Tensor:
        """An argument as a traced tensor; a constant becomes one too."""
        return lifted(self.given[name])

    def constant(self, name: str) -> Floats:
        """An argument that must not depend on the input."""
        value = self.given[name]
        if isinstance(value, Tensor):
            msg = f"its {name!r} depends on the input, which is not piecewise linear"
            raise UnreadableCall(msg)
        return numbers(value)

    def optional(self, name: str) -> Floats | None:
        """The same, where there may be none."""
        return None if self.given.get(name) is None else self.constant(name)

    def integers(self, name: str, count: int) -> list[int]:
        """A list of integers; a single one stands for all."""
        value = self.given[name]
        items = [int(item) for item in value] if isinstance(value, (list, tuple)) else [int(value)]
        return items * count if len(items) == 1 else items


Handler: TypeAlias = Callable[[Call], Any]


def lifted(value: Any) -> Tensor:
    """A constant as a tensor that depends on nothing."""
    if isinstance(value, Tensor):
        return value
    array = numbers(value)
    return Tensor(array.shape, {}, np.array(array).ravel())


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
        raise UnreadableCall(msg)
    return _at_least(call.trace, call.tensor("self"), bound)


def _extremum(choose: Callable[[Trace, Tensor, Floats], Tensor]) -> Handler:
    """The larger or smaller of a tensor and a constant."""

    def handler(call: Call) -> Tensor:
        if "other" not in call.given:
            msg = "a maximum or minimum over elements cannot be read, only one with a constant"
            raise UnreadableCall(msg)
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
        raise UnreadableCall(msg)
    return left.scale(numbers(right)) if isinstance(left, Tensor) else lifted(right).scale(numbers(left))


def _divide(call: Call) -> Tensor:
    if call.given.get("rounding_mode") is not None:
        msg = "a division that rounds is not piecewise linear"
        raise UnreadableCall(msg)
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
        raise UnreadableCall(msg)
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
                raise UnreadableCall(msg)
            kernel = [size // count for size, count in zip(spatial, wanted, strict=True)]
            return pool_average(call.trace, tensor, kernel, Window(kernel, [(0, 0)] * rank, [1] * rank), count_padding=True)

        return _unbatched(call.tensor("self"), rank, handle)

    return handler


def _batch_norm(call: Call) -> Tensor:
    if call.given.get("training") or call.given.get("running_mean") is None or call.given.get("running_var") is None:
        msg = "a normalisation by the batch's own statistics is not piecewise linear; evaluate with running statistics"
        raise UnreadableCall(msg)
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
        raise UnreadableCall(msg)


def _same(call: Call) -> Tensor:
    """Copies, and conversions between floating-point numbers, change nothing that counts."""
    _check_floating(call)
    other = call.given.get("other")
    if hasattr(other, "is_floating_point") and not other.is_floating_point():
        msg = f"a conversion to {other.dtype} is not piecewise linear"
        raise UnreadableCall(msg)
    return lifted(next(iter(call.given.values())))


def _dropout(call: Call) -> Tensor:
    if call.given.get("train"):
        msg = "it drops units at random; use torch.nn.Dropout, or pass training=self.training to the function"
        raise UnreadableCall(msg)
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
    if "size" not in given:
        given["device"] = "cpu"
    else:
        check_size(prod(int(size) for size in given["size"]), "a tensor")
        given["device"] = "cpu"
    return _apply(call.function, given)


def _size(call: Call) -> int:
    return int(call.tensor("self").shape[int(call.given["dim"])])


def _count(call: Call) -> int:
    return call.tensor("self").size


def _apply(function: Any, given: Mapping[str, Any]) -> Any:
    """Call torch's function by the names in its schema; some refuse keywords where they expect places."""
    schema = function._schema.arguments  # noqa: SLF001  torch offers the schema under no other name
    places = [given[argument.name] for argument in schema if not argument.kwarg_only and argument.name in given]
    keywords = {argument.name: given[argument.name] for argument in schema if argument.kwarg_only and argument.name in given}
    return function(*places, **keywords)


def dry_run(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """Shapes of what a function would return, without computing it; none where torch cannot tell."""
    schema = getattr(function, "_schema", None)
    if schema is None or schema.is_mutable:
        return []
    keywords = {name: _without_data(value) for name, value in kwargs.items()}
    if any(argument.name == "device" for argument in schema.arguments):
        keywords["device"] = "meta"
    try:
        result = function(*_without_data(args), **keywords)
    except Exception:  # noqa: BLE001  a real run follows and says what is wrong
        return []
    return [tuple(part.shape) for part in (result if isinstance(result, (list, tuple)) else [result]) if hasattr(part, "shape")]


def _without_data(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_without_data(item) for item in value)
    return value.to("meta") if hasattr(value, "detach") else value


def _rearranged(call: Call) -> Any:
    """Let torch move the elements' numbers (counted from 1, so that what it fills in as padding is 0)."""
    import torch  # noqa: PLC0415  optional, and here already imported by whoever made the call

    first = next(iter(call.given))
    tensor = call.given[first]
    others = [name for name, value in call.given.items() if name != first and isinstance(value, Tensor)]
    if not isinstance(tensor, Tensor) or (others and not call.function.__name__.split(".")[0].endswith("_as")):
        msg = "which elements it picks depends on the input; only fixed choices can be read"
        raise UnreadableCall(msg)
    given = dict(call.given)
    given[first] = torch.arange(1, tensor.size + 1, dtype=torch.float64).reshape(tensor.shape)
    given.update({name: torch.empty(call.given[name].shape) for name in others})
    filler = 0.0
    if given.get("value") is not None:
        filler, given["value"] = float(given["value"]), 0.0
    for shape in dry_run(_Keywords(call.function), (), given):
        check_size(prod(shape), "a tensor")
    result = _apply(call.function, given)
    if isinstance(result, (list, tuple)):
        return [_picked(tensor, part, filler) for part in result]
    return _picked(tensor, result, filler)


@dataclass(frozen=True, slots=True)
class _Keywords:
    """A function with everything passed by name."""

    function: Any

    @property
    def _schema(self) -> Any:
        return self.function._schema  # noqa: SLF001  torch offers the schema under no other name

    def __call__(self, **given: Any) -> Any:
        return _apply(self.function, given)


def _picked(tensor: Tensor, moved: Any, filler: float) -> Tensor:
    if not moved.is_floating_point() or moved.element_size() != 8:
        msg = "it reads the elements as other types than they are"
        raise UnreadableCall(msg)
    index = moved.numpy().astype(np.int64)
    inside = index > 0
    picked = tensor.take(np.maximum(index - 1, 0))
    return picked if inside.all() else picked.scale(inside).shift(np.where(inside, 0.0, filler))


_REARRANGEMENTS = """
    view _unsafe_view view_copy view_as reshape reshape_as _reshape_alias flatten ravel unflatten squeeze squeeze_copy unsqueeze
    unsqueeze_copy permute permute_copy transpose transpose_copy t t_copy numpy_T mT movedim moveaxis swapaxes swapdims expand
    expand_as expand_copy broadcast_to select select_copy slice slice_copy narrow narrow_copy index_select index _unsafe_index take
    gather split split_copy split_with_sizes split_with_sizes_copy chunk unsafe_chunk unsafe_split unsafe_split_with_sizes
    tensor_split unbind unbind_copy flip fliplr flipud roll rot90 repeat tile repeat_interleave pixel_shuffle pixel_unshuffle
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
