"""Torch's operators that move elements about, copy them, or tell of shapes, on traced tensors.

Whatever only moves elements about (views, slices, padding, nearest upsampling, ...) is one handler: torch itself moves the elements' numbers, and the
result says which element goes where.
"""

from math import prod
from typing import Any

import numpy as np

from tessella.errors import UnsupportedModel
from tessella.importers.linear_maps import check_size
from tessella.importers.torch_call import Call, Handler, apply, arranged, dry_run, lifted
from tessella.importers.trace import Tensor, broadcast_shapes, concatenate


def check_floating(call: Call) -> None:
    """Refuse conversions to whole numbers."""
    dtype = call.given.get("dtype")
    if dtype is not None and not getattr(dtype, "is_floating_point", True):
        msg = f"a conversion to {dtype} is not piecewise linear"
        raise UnsupportedModel(msg)


def _same(call: Call) -> Any:
    """Copies, and conversions between floating-point numbers, change nothing that counts."""
    check_floating(call)
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


def _broadcast(call: Call) -> list[Any]:
    import torch  # noqa: PLC0415  optional, and here already imported by whoever made the call

    values = list(call.given["tensors"])
    shape = broadcast_shapes(*(tuple(value.shape) for value in values))
    return [value.expand(shape) if isinstance(value, Tensor) else torch.broadcast_to(value, shape) for value in values]


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
    upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d
"""
_COPIES = """
    clone contiguous detach detach_copy alias alias_copy to _to_copy type_as float double lift_fresh lift_fresh_copy positive
"""


DROPOUTS = frozenset({"dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"})

_FILLED = ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full")

# what gives back the elements that it gets, in other places
MOVES: dict[str, Handler] = {
    **dict.fromkeys(_REARRANGEMENTS.split(), _rearranged),
    **dict.fromkeys(_COPIES.split(), _same),
    **dict.fromkeys(DROPOUTS, _dropout),
}
SHAPES: dict[str, Handler] = {
    **dict.fromkeys(("cat", "concat", "concatenate"), _concatenate),
    **dict.fromkeys(_FILLED, _filled_like),
    "broadcast_tensors": _broadcast,
    "stack": _stack,
    "sym_size": _size,
    "sym_numel": _count,
}
# what depends on the shape of a tensor alone
OF_SHAPES = frozenset({*_FILLED, "sym_size", "sym_numel"})
