"""A call of a Keras layer or activation on traced tensors, in the layer's own layout (batch axis first)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from tessella.errors import UnsupportedModel, UnsupportedOperator
from tessella.importers.activations import clip, leaky
from tessella.importers.trace import Ended, Tensor, Trace
from tessella.network import Floats

SUPPORTED: Final = (
    "Dense, EinsumDense, Conv1D to 3D and transposed, DepthwiseConv, SeparableConv, BatchNormalization, MaxPooling, AveragePooling and global ones, UpSampling, "
    "ReLU, LeakyReLU, PReLU, activations such as relu, leaky_relu, relu6 and hard_tanh, Flatten, Reshape, Permute, ZeroPadding, Cropping, Add, "
    "Subtract, Average, Maximum, Minimum, Concatenate, Rescaling, Normalization, Dropout, Identity, models of these, and softmax, sigmoid or tanh "
    "at the end"
)
_INEXACT = frozenset({"float16", "bfloat16"})


@dataclass(frozen=True, slots=True)
class Context:
    """What every layer needs to be read."""

    keras: Any  # the package itself
    trace: Trace  # where signals are made

    def numbers(self, values: Any) -> Floats:
        """A variable, tensor, array or number as an array."""
        if isinstance(values, (int, float, list, tuple, np.ndarray)):
            return np.asarray(values, dtype=np.float64)
        return np.asarray(self.keras.ops.convert_to_numpy(values), dtype=np.float64)

    def numbers_or_none(self, values: Any) -> Floats | None:
        """The same, where a layer may have none."""
        return None if values is None else self.numbers(values)


LayerReader: TypeAlias = Callable[[Context, Any, Tensor], Tensor]
MergeReader: TypeAlias = Callable[[Context, Any, Sequence[Tensor]], Tensor]

LAYERS: dict[str, LayerReader] = {}  # by the name of the class; each room puts in its own
MERGES: dict[str, MergeReader] = {}


def unsupported(what: str, name: str) -> str:
    """What to say of a layer, activation or operation that cannot be read."""
    return (
        f"{what} {name} cannot be read as part of a network of ReLUs; replace it, or cut the model before it, as in "
        f"keras.Model(model.input, model.get_layer(name).output). Supported are {SUPPORTED}."
    )


def apply_layer(context: Context, layer: Any, tensors: Sequence[Tensor]) -> Any:
    """Run one layer of Keras' own; what may only end a model gives an `Ended`."""
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


def _same_rank(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Insert axes after the batch axis, as Keras' merging layers do."""
    rank = max((len(tensor.shape) for tensor in tensors), default=0)
    return [tensor.reshape((tensor.shape[0], *[1] * (rank - len(tensor.shape)), *tensor.shape[1:])) for tensor in tensors]


# ---------------------------------------------------------------------------------------------- activations


def rectified(context: Context, tensor: Tensor, slope: float, highest: float | None, threshold: float) -> Tensor:
    """Keras' own ReLU with a slope below the threshold and a largest value."""
    if threshold:
        msg = f"it is a ReLU with threshold={threshold}, which jumps there; only threshold=0 is continuous"
        raise UnsupportedOperator(msg)
    return clip(context.trace, leaky(context.trace, tensor, slope), None, highest)


def _soft_shrinkage(context: Context, tensor: Tensor) -> Tensor:
    above, below = (context.trace.relu(side.shift(-0.5), "Softshrink") for side in (tensor, tensor.scale(-1.0)))
    return context.trace.add(above, below.scale(-1.0))


ACTIVATIONS: dict[str, Callable[[Context, Tensor], Tensor]] = {
    "hard_sigmoid": lambda context, tensor: clip(context.trace, tensor.scale(1.0 / 6.0).shift(0.5), 0.0, 1.0),
    "hard_tanh": lambda context, tensor: clip(context.trace, tensor, -1.0, 1.0),
    "leaky_relu": lambda context, tensor: leaky(context.trace, tensor, 0.2),
    "linear": lambda _context, tensor: tensor,
    "relu": lambda context, tensor: context.trace.relu(tensor),
    "relu6": lambda context, tensor: clip(context.trace, tensor, 0.0, 6.0),
    "soft_shrink": _soft_shrinkage,
}
ENDS = frozenset({"softmax", "log_softmax", "sigmoid", "log_sigmoid", "tanh", "softplus", "softsign", "exponential"})


def function_name(context: Context, activation: Any) -> str:
    """Under which name Keras knows a function; empty if it does not."""
    name = str(getattr(activation, "__name__", ""))
    owners = (context.keras.activations, context.keras.ops)
    return name if name and any(getattr(owner, name, None) is activation for owner in owners) else ""


def activate(context: Context, tensor: Tensor, activation: Any) -> Any:
    """Apply a layer's activation: a function of Keras, or a layer; one that may only end a model gives an `Ended`."""
    if activation is None:
        return tensor
    name = function_name(context, activation)
    if name in ENDS:
        return Ended(tensor, (name,))
    if name in ACTIVATIONS:
        return ACTIVATIONS[name](context, tensor)
    if isinstance(activation, context.keras.layers.Layer):
        return apply_layer(context, activation, [tensor])
    raise UnsupportedOperator(unsupported("the activation", str(getattr(activation, "__name__", type(activation).__name__))))
