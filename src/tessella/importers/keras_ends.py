"""What Keras models end with that changes no region: it is left off, and the model is run without it to compare."""

from typing import Any

from tessella.importers.keras_calls import Context, apply_layer
from tessella.importers.keras_layers import MOVES
from tessella.importers.keras_operations import ENDINGS, apply_operation
from tessella.importers.trace import Ended

_BARE = frozenset({"Activation", "Softmax"})  # layers that are nothing but an activation
_AFFINE = frozenset({"Add", "Divide", "Multiply", "Negative", "Rescaling", "Subtract", "TrueDivide"})


def after_end(context: Context, operation: Any, ended: Ended, *, alone: bool) -> Ended | None:
    """What follows the end, if that is no more than one of its kind, or only moves or scales its elements; else None.

    Parameters
    ----------
    context
        Keras and the trace.
    operation
        The layer or operation that follows.
    ended
        What it reads.
    alone
        Whether it reads nothing else that depends on the input.
    """
    kind = type(operation).__name__
    if not alone or not type(operation).__module__.startswith("keras."):
        return None
    if kind in MOVES:
        return Ended(apply_layer(context, operation, [ended.tensor]), ended.left_off, ended.name)
    if kind in _AFFINE:
        return ended.then(kind)
    if kind not in _BARE and kind not in ENDINGS:
        return None
    layer = isinstance(operation, context.keras.Layer)
    result = apply_layer(context, operation, [ended.tensor]) if layer else apply_operation(context, operation, [ended.tensor])
    if isinstance(result, Ended):
        return ended.then(result.left_off[0])
    return ended if result is ended.tensor else None


def without_end(context: Context, operation: Any) -> Any:
    """The layer or operation without what is left off."""
    layer = isinstance(operation, context.keras.Layer)
    kind = type(operation).__name__
    if not layer or kind in _BARE or kind in _AFFINE:
        keras = context.keras
        return lambda *arguments, **_options: next(filter(keras.ops.is_tensor, keras.tree.flatten(arguments)))
    copied = type(operation).from_config({**operation.get_config(), "activation": "linear"})
    copied.build_from_config(operation.get_build_config())
    copied.set_weights(operation.get_weights())
    return copied
