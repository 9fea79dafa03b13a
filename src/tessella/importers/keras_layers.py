"""What Keras layers and operations compute, on traced tensors in the layer's own layout (batch axis first)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from tessella.errors import UnsupportedModel, UnsupportedOperator
from tessella.importers.linear_maps import check_size, sparse
from tessella.importers.operators import Window, batch_norm, convolve, per_channel, pool_average, same_pads
from tessella.importers.trace import Tensor, Trace, concatenate
from tessella.network import Floats

SUPPORTED = (
    "Dense, Conv1D to 3D, DepthwiseConv, SeparableConv, BatchNormalization, AveragePooling, GlobalAveragePooling, ReLU, Activation "
    "'relu' or 'linear', Flatten, Reshape, Permute, ZeroPadding, Cropping, Add, Subtract, Average, Concatenate, Rescaling, "
    "Normalization, Dropout, Identity, and models of these"
)
_AT_THE_END = frozenset({"softmax", "log_softmax", "sparsemax", "sigmoid", "hard_sigmoid", "log_sigmoid"})
_INEXACT = frozenset({"float16", "bfloat16"})


@dataclass(frozen=True, slots=True)
class Context:
    """What every layer needs to be read.

    Parameters
    ----------
    keras
        The package itself.
    trace
        Where signals are made.
    """

    keras: Any
    trace: Trace

    def numbers(self, values: Any) -> Floats:
        """A variable, tensor, array or number as an array."""
        if isinstance(values, (int, float, list, tuple, np.ndarray)):
            return np.asarray(values, dtype=np.float64)
        return np.asarray(self.keras.ops.convert_to_numpy(values), dtype=np.float64)

    def numbers_or_none(self, values: Any) -> Floats | None:
        """The same, where a layer may have none."""
        return None if values is None else self.numbers(values)


def unsupported(what: str, name: str) -> str:
    """What to say of a layer, activation or operation that cannot be read."""
    ends = name.lower() in _AT_THE_END
    hint = " Where it ends the model, cut the model before it, so that it ends in the logits." if ends else ""
    return f"{what} {name} cannot be read as part of a network of ReLUs.{hint} Supported are {SUPPORTED}."


def apply_layer(context: Context, layer: Any, tensors: Sequence[Tensor]) -> Tensor:
    """Run one layer of Keras' own."""
    kind = type(layer).__name__
    if kind not in {*LAYERS, *MERGES} or not type(layer).__module__.startswith("keras."):
        raise UnsupportedOperator(unsupported("a layer of class", kind))
    if getattr(layer, "compute_dtype", "float32") in _INEXACT or getattr(layer, "quantization_mode", None):
        msg = (
            f"it computes with the dtype policy {layer.dtype_policy.name!r}, which rounds; rebuild the model with dtype 'float32'"
        )
        raise UnsupportedModel(msg)
    if kind in MERGES:
        return MERGES[kind](context, layer, _same_rank(tensors) if kind != "Concatenate" else tensors)
    if len(tensors) != 1:
        msg = f"it reads {len(tensors)} tensors; one is expected"
        raise UnsupportedModel(msg)
    return LAYERS[kind](context, layer, tensors[0])


def activate(context: Context, tensor: Tensor, activation: Any) -> Tensor:
    """Apply a layer's activation: a function of Keras, or a layer."""
    keras = context.keras
    if activation is None or activation is keras.activations.linear:
        return tensor
    if activation is keras.activations.relu or activation is keras.ops.relu:
        return context.trace.relu(tensor)
    if isinstance(activation, keras.layers.Layer):
        return apply_layer(context, activation, [tensor])
    raise UnsupportedOperator(unsupported("the activation", str(getattr(activation, "__name__", type(activation).__name__))))


def _channels_last(layer: Any) -> bool:
    return getattr(layer, "data_format", "channels_last") == "channels_last"


def _to_first(layer: Any, tensor: Tensor) -> Tensor:
    """Move the channels where the shared operators expect them."""
    rank = len(tensor.shape)
    return tensor.transpose((0, rank - 1, *range(1, rank - 1))) if _channels_last(layer) and rank > 2 else tensor


def _from_first(layer: Any, tensor: Tensor) -> Tensor:
    return tensor.transpose((0, *range(2, len(tensor.shape)), 1)) if _channels_last(layer) else tensor


def _identity(_context: Context, _layer: Any, tensor: Tensor) -> Tensor:
    return tensor


def _dense(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    result = context.trace.multiply(tensor, context.numbers(layer.kernel))
    if layer.bias is not None:
        result = result.shift(context.numbers(layer.bias))
    return activate(context, result, layer.activation)


def _convolved(context: Context, layer: Any, tensor: Tensor, weight: Floats, groups: int) -> Tensor:
    """Convolve by weights (outputs, channels per group, ...) with the layer's window; the result has channels first."""
    first = _to_first(layer, tensor)
    spatial, kernel, strides, dilations = first.shape[2:], weight.shape[2:], layer.strides, layer.dilation_rate
    if len(spatial) != len(kernel):
        msg = f"it has a kernel over {len(kernel)} axes and reads a tensor of shape {tensor.shape}"
        raise UnsupportedModel(msg)
    if layer.padding == "same":
        pads = same_pads(spatial, kernel, strides, dilations)
    elif layer.padding == "causal":
        pads = [(dilation * (places - 1), 0) for dilation, places in zip(dilations, kernel, strict=True)]
    else:
        pads = [(0, 0)] * len(kernel)
    return convolve(context.trace, first, weight, None, Window(strides, pads, dilations), groups)


def _finished(context: Context, layer: Any, first: Tensor) -> Tensor:
    """Add the bias, put the channels back in their place, and activate."""
    if layer.bias is not None:
        first = per_channel(first, None, context.numbers(layer.bias))
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
    return _finished(context, layer, convolve(context.trace, middle, weight, None, window, 1))


def _batch_norm(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    gamma, beta = context.numbers_or_none(layer.gamma), context.numbers_or_none(layer.beta)
    mean, variance = context.numbers(layer.moving_mean), context.numbers(layer.moving_variance)
    return batch_norm(tensor, gamma, beta, mean, variance, float(layer.epsilon), int(layer.axis))


def _relu(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    if layer.max_value is not None or layer.negative_slope != 0 or layer.threshold != 0:
        msg = (
            f"it is a ReLU with max_value={layer.max_value}, negative_slope={layer.negative_slope}, threshold={layer.threshold}; "
            "only the plain ReLU max(x, 0) can be read"
        )
        raise UnsupportedOperator(msg)
    return context.trace.relu(tensor)


def _activation(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    return activate(context, tensor, layer.activation)


def _flatten(_context: Context, layer: Any, tensor: Tensor) -> Tensor:
    rank = len(tensor.shape)
    if not _channels_last(layer) and rank > 1:
        tensor = tensor.transpose((0, *range(2, rank), 1))
    return tensor.reshape((tensor.shape[0], -1))


def _reshape(_context: Context, layer: Any, tensor: Tensor) -> Tensor:
    return tensor.reshape((tensor.shape[0], *(-1 if size is None else int(size) for size in layer.target_shape)))


def _permute(_context: Context, layer: Any, tensor: Tensor) -> Tensor:
    return tensor.transpose((0, *layer.dims))


def _average_pooling(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    first = _to_first(layer, tensor)
    size, strides = layer.pool_size, layer.strides
    ones, pads = [1] * len(size), [(0, 0)] * len(size)
    if layer.padding == "same":
        pads = same_pads(first.shape[2:], size, strides, ones)
    if context.keras.config.backend() == "torch" and any(before != after for before, after in pads):
        # on torch Keras repeats the border instead of leaving the padding out of the average
        widths = [(0, 0), (0, 0), *pads]
        check_size(prod(length + sum(pair) for length, pair in zip(first.shape, widths, strict=True)), "a padded tensor")
        first, pads = first.take(np.pad(first.indices(), widths, mode="edge")), [(0, 0)] * len(size)
    return _from_first(layer, pool_average(context.trace, first, size, Window(strides, pads, ones), count_padding=False))


def _global_average_pooling(_context: Context, layer: Any, tensor: Tensor) -> Tensor:
    rank = len(tensor.shape)
    axes = range(1, rank - 1) if _channels_last(layer) else range(2, rank)
    return tensor.mean(tuple(axes), keepdims=bool(layer.keepdims))


def _border(layer: Any, amounts: Any, rank: int) -> list[tuple[int, int]]:
    """Pairs (before, after) for every axis; in one dimension Keras holds a bare pair."""
    pairs = [amounts] if isinstance(amounts[0], int) else list(amounts)
    if len(pairs) != rank - 2:
        msg = f"it has borders for {len(pairs)} axes and reads a tensor of {rank}"
        raise UnsupportedModel(msg)
    spatial = [(int(before), int(after)) for before, after in pairs]
    return [(0, 0), *spatial, (0, 0)] if _channels_last(layer) else [(0, 0), (0, 0), *spatial]


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


def _rescaling(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    scale, offset = context.numbers(layer.scale), context.numbers(layer.offset)
    if scale.ndim and context.keras.config.image_data_format() == "channels_first":
        scale = scale.reshape(scale.shape + (1,) * (3 - scale.ndim))
    return tensor.scale(scale).shift(offset)


def _normalization(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    mean, variance = context.numbers(layer.mean), context.numbers(layer.variance)
    deviation = np.maximum(np.sqrt(variance), float(context.keras.config.epsilon()))
    return tensor.scale(deviation).shift(mean) if layer.invert else tensor.shift(-mean).scale(1.0 / deviation)


def _same_rank(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Insert axes after the batch axis, as Keras' merging layers do."""
    rank = max((len(tensor.shape) for tensor in tensors), default=0)
    return [tensor.reshape((tensor.shape[0], *[1] * (rank - len(tensor.shape)), *tensor.shape[1:])) for tensor in tensors]


def _total(context: Context, _layer: Any, tensors: Sequence[Tensor]) -> Tensor:
    total, *rest = tensors
    for tensor in rest:
        total = context.trace.add(total, tensor)
    return total


def _difference(context: Context, _layer: Any, tensors: Sequence[Tensor]) -> Tensor:
    left, right = tensors
    return context.trace.add(left, right.scale(-1.0))


def _average(context: Context, layer: Any, tensors: Sequence[Tensor]) -> Tensor:
    return _total(context, layer, tensors).scale(1.0 / len(tensors))


def _concatenation(_context: Context, layer: Any, tensors: Sequence[Tensor]) -> Tensor:
    return concatenate(tensors, int(layer.axis))


LayerReader: TypeAlias = Callable[[Context, Any, Tensor], Tensor]
MergeReader: TypeAlias = Callable[[Context, Any, Sequence[Tensor]], Tensor]

LAYERS: dict[str, LayerReader] = {
    "Activation": _activation,
    "BatchNormalization": _batch_norm,
    "Dense": _dense,
    "Flatten": _flatten,
    "Normalization": _normalization,
    "Permute": _permute,
    "ReLU": _relu,
    "Rescaling": _rescaling,
    "Reshape": _reshape,
    **dict.fromkeys(("AveragePooling1D", "AveragePooling2D", "AveragePooling3D"), _average_pooling),
    **dict.fromkeys(("Conv1D", "Conv2D", "Conv3D"), _convolution),
    **dict.fromkeys(("Cropping1D", "Cropping2D", "Cropping3D"), _cropping),
    **dict.fromkeys(("DepthwiseConv1D", "DepthwiseConv2D"), _depthwise),
    **dict.fromkeys(("GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalAveragePooling3D"), _global_average_pooling),
    **dict.fromkeys(("SeparableConv1D", "SeparableConv2D"), _separable),
    **dict.fromkeys(("ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D"), _zero_padding),
    **dict.fromkeys(
        (
            "ActivityRegularization",
            "AlphaDropout",
            "Dropout",
            "GaussianDropout",
            "GaussianNoise",
            "Identity",
            "SpatialDropout1D",
            "SpatialDropout2D",
            "SpatialDropout3D",
        ),
        _identity,
    ),
}
MERGES: dict[str, MergeReader] = {"Add": _total, "Average": _average, "Concatenate": _concatenation, "Subtract": _difference}


def apply_operation(context: Context, operation: Any, arguments: Sequence[Any]) -> Tensor:
    """Run one of Keras' bare operations, such as ``keras.ops.relu`` or ``x + y``."""
    kind = type(operation).__name__
    if kind not in OPERATIONS or not type(operation).__module__.startswith("keras."):
        raise UnsupportedOperator(unsupported("the operation", kind))
    return OPERATIONS[kind](context, operation, *arguments)


def _plus(context: Context, _operation: Any, left: Any, right: Any) -> Tensor:
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return context.trace.add(left, right)
    tensor, constant = (left, right) if isinstance(left, Tensor) else (right, left)
    return tensor.shift(context.numbers(constant))


def _minus(context: Context, operation: Any, left: Any, right: Any) -> Tensor:
    return _plus(context, operation, left, right.scale(-1.0) if isinstance(right, Tensor) else -context.numbers(right))


def _times(context: Context, _operation: Any, left: Any, right: Any) -> Tensor:
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        msg = "it multiplies two tensors that both depend on the input, which is not piecewise linear"
        raise UnsupportedOperator(msg)
    tensor, constant = (left, right) if isinstance(left, Tensor) else (right, left)
    return tensor.scale(context.numbers(constant))


def _divided(context: Context, _operation: Any, left: Any, right: Any) -> Tensor:
    if isinstance(right, Tensor):
        msg = "it divides by a tensor that depends on the input, which is not piecewise linear"
        raise UnsupportedOperator(msg)
    return left.scale(1.0 / context.numbers(right))


OPERATIONS: dict[str, Callable[..., Tensor]] = {
    "Add": _plus,
    "Concatenate": lambda _context, operation, tensors: concatenate(tensors, int(operation.axis)),
    "Divide": _divided,
    "GetItem": lambda _context, _operation, tensor, key: tensor.take(
        np.asarray(tensor.indices()[tuple(key) if isinstance(key, list) else key])
    ),
    "Multiply": _times,
    "Negative": lambda _context, _operation, tensor: tensor.scale(-1.0),
    "Relu": lambda context, _operation, tensor: context.trace.relu(tensor),
    "Reshape": lambda _context, operation, tensor: tensor.reshape([-1 if size is None else size for size in operation.newshape]),
    "Subtract": _minus,
    "Transpose": lambda _context, operation, tensor: tensor.transpose(operation.axes),
    "TrueDivide": _divided,
}
