"""Networks as Keras 3 models: Dense, and behind it ReLU or PReLU.

Keras keeps weights in the precision that they are given in, and may compute in single precision all the same: with PyTorch as its backend, Keras 3.15 does.  So its outputs are compared in single precision.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tessella.exporters.plain import Plain, check_numbers, check_outputs, fitting_shape, plain_layers, points, precision
from tessella.layer import Layer
from tessella.packages import keras_package, keras_quiet


def make_model(layers: Sequence[Layer], *, dtype: object = "float64", input_shape: Sequence[int] | None = None) -> Any:
    """A ``keras.Sequential`` that computes what layers do; it is run and compared first.  Options are those of `tessella.exporters.onnx.write_onnx`."""
    keras = keras_package("a Keras model")
    kind = precision(dtype)
    shape = fitting_shape(input_shape, layers[0].inputs)
    plain = plain_layers(layers, kind)
    inputs = points(layers[0].inputs)
    with keras_quiet():
        parts = [keras.Input(shape, dtype=kind.name)]
        parts += [keras.layers.Reshape((layers[0].inputs,), dtype=kind.name)] if len(shape) > 1 else []
        for layer in plain:
            parts += _parts(keras, layer)
        model = keras.Sequential(parts)
        model.set_weights([array for layer in plain for array in _arrays(layer)])
        given = inputs.astype(kind).reshape(-1, *shape)
        outputs = keras.ops.convert_to_numpy(model(keras.ops.convert_to_tensor(given, kind.name), training=False))
        for number, (found, array) in enumerate(
            zip(model.get_weights(), (array for layer in plain for array in _arrays(layer)), strict=True)
        ):
            check_numbers(np.ascontiguousarray(found), array, f"the Keras model: array {number}")
    check_outputs(plain, inputs, np.asarray(outputs), "the Keras model", np.float32)
    return model


def _parts(keras: Any, layer: Plain) -> list[Any]:
    kind = layer.weight.dtype.name
    dense = keras.layers.Dense(len(layer.bias), dtype=kind, kernel_initializer="zeros")
    if layer.bare:
        return [dense]
    return [dense, keras.layers.ReLU(dtype=kind) if layer.is_relu else keras.layers.PReLU(dtype=kind)]


def _arrays(layer: Plain) -> list[Any]:
    """The numbers of a layer in Keras' order: kernels are (inputs, units)."""
    return [np.ascontiguousarray(layer.weight.T), layer.bias, *([] if layer.bare or layer.is_relu else [layer.slope])]
