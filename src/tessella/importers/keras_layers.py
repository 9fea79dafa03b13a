"""What Keras layers compute, on traced tensors in the layer's own layout (batch axis first)."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from tessella.importers.activations import MAXIMUM, leaky, maximum
from tessella.importers.contraction import contract
from tessella.importers.keras_calls import LAYERS, MERGES, Context, activate, rectified
from tessella.importers.keras_windows import channels_last
from tessella.importers.operators import batch_norm
from tessella.importers.trace import Ended, Tensor, concatenate
from tessella.network import COMPARISON

__all__ = ["LAYERS", "MERGES", "MOVES"]


def _identity(_context: Context, _layer: Any, tensor: Tensor) -> Tensor:
    return tensor


def _dense(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    result = context.trace.multiply(tensor, context.numbers(layer.kernel))
    if layer.bias is not None:
        result = result.shift(context.numbers(layer.bias))
    return activate(context, result, layer.activation)


def _einsum_dense(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    result = contract(context.trace, str(layer.equation), [tensor, context.numbers(layer.kernel)])
    if layer.bias is not None:
        result = result.shift(context.numbers(layer.bias))
    return activate(context, result, layer.activation)


def _batch_norm(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    gamma, beta = context.numbers_or_none(layer.gamma), context.numbers_or_none(layer.beta)
    mean, variance = context.numbers(layer.moving_mean), context.numbers(layer.moving_variance)
    return batch_norm(tensor, gamma, beta, mean, variance, float(layer.epsilon), int(layer.axis))


def _relu(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    highest = None if layer.max_value is None else float(layer.max_value)
    return rectified(context, tensor, float(layer.negative_slope), highest, float(layer.threshold))


def _leaky(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    return leaky(context.trace, tensor, float(layer.negative_slope))


def _parametric(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    return leaky(context.trace, tensor, context.numbers(layer.alpha), "PReLU")


def _softmax(_context: Context, _layer: Any, tensor: Tensor) -> Any:
    return Ended(tensor, ("softmax",))


def _activation(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    return activate(context, tensor, layer.activation)


def _flatten(_context: Context, layer: Any, tensor: Tensor) -> Tensor:
    rank = len(tensor.shape)
    if not channels_last(layer) and rank > 1:
        tensor = tensor.transpose((0, *range(2, rank), 1))
    return tensor.reshape((tensor.shape[0], -1))


def _reshape(_context: Context, layer: Any, tensor: Tensor) -> Tensor:
    return tensor.reshape((tensor.shape[0], *(-1 if size is None else int(size) for size in layer.target_shape)))


def _permute(_context: Context, layer: Any, tensor: Tensor) -> Tensor:
    return tensor.transpose((0, *layer.dims))


def _rescaling(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    scale, offset = context.numbers(layer.scale), context.numbers(layer.offset)
    if scale.ndim and context.keras.config.image_data_format() == "channels_first":
        scale = scale.reshape(scale.shape + (1,) * (3 - scale.ndim))
    return tensor.scale(scale).shift(offset)


def _normalization(context: Context, layer: Any, tensor: Tensor) -> Tensor:
    mean, variance = context.numbers(layer.mean), context.numbers(layer.variance)
    deviation = np.maximum(np.sqrt(variance), float(context.keras.config.epsilon()))
    return tensor.scale(deviation).shift(mean) if layer.invert else tensor.shift(-mean).scale(1.0 / deviation)


def _total(context: Context, _layer: Any, tensors: Sequence[Tensor]) -> Tensor:
    total, *rest = tensors
    for tensor in rest:
        total = context.trace.add(total, tensor)
    return total


def _difference(context: Context, _layer: Any, tensors: Sequence[Tensor]) -> Tensor:
    left, right = tensors
    return context.trace.add(left, right.scale(-1.0))


def _largest(context: Context, _layer: Any, tensors: Sequence[Tensor]) -> Tensor:
    return reduce(lambda left, right: maximum(context.trace, left, right, _kind(tensors)), tensors)


def _smallest(context: Context, layer: Any, tensors: Sequence[Tensor]) -> Tensor:
    return _largest(context, layer, [tensor.scale(-1.0) for tensor in tensors]).scale(-1.0)


def _kind(tensors: Sequence[Tensor]) -> str:
    return MAXIMUM if len(tensors) == 2 else COMPARISON


def _repeated(_context: Context, layer: Any, tensor: Tensor) -> Tensor:
    return tensor.take(np.repeat(tensor.indices()[:, None], int(layer.n), axis=1))


def _average(context: Context, layer: Any, tensors: Sequence[Tensor]) -> Tensor:
    return _total(context, layer, tensors).scale(1.0 / len(tensors))


def _concatenation(_context: Context, layer: Any, tensors: Sequence[Tensor]) -> Tensor:
    return concatenate(tensors, int(layer.axis))


_IDLE = """
    ActivityRegularization AlphaDropout Dropout GaussianDropout GaussianNoise Identity SpatialDropout1D SpatialDropout2D SpatialDropout3D
"""
LAYERS.update(
    {
        **dict.fromkeys(_IDLE.split(), _identity),
        "Activation": _activation,
        "BatchNormalization": _batch_norm,
        "Dense": _dense,
        "EinsumDense": _einsum_dense,
        "Flatten": _flatten,
        "LeakyReLU": _leaky,
        "Normalization": _normalization,
        "PReLU": _parametric,
        "Permute": _permute,
        "ReLU": _relu,
        "RepeatVector": _repeated,
        "Rescaling": _rescaling,
        "Reshape": _reshape,
        "Softmax": _softmax,
    }
)
MERGES.update(
    {
        "Add": _total,
        "Average": _average,
        "Concatenate": _concatenation,
        "Maximum": _largest,
        "Minimum": _smallest,
        "Subtract": _difference,
    }
)
# layers that give back the elements that they get, in other places
MOVES = frozenset({*_IDLE.split(), "Flatten", "Permute", "Reshape"})
