"""Keras models and files: every layer against the model's own forward pass, and what must be refused."""

import os
from functools import partial

os.environ.setdefault("KERAS_BACKEND", "torch")

import numpy as np
import pytest

from helpers.keras_models import agreeing, points_for, randomized, stack
from tessella.errors import (
    NetworkError,
    OptionError,
    UnsupportedModel,
    UnsupportedOperator,
)
from tessella.importers.keras import from_model, read_keras

keras = pytest.importorskip("keras")
h5py = pytest.importorskip("h5py")
L = keras.layers
ops = keras.ops
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:keras.*")  # what Keras itself does in these tests
FIRST = {"data_format": "channels_first"}


CASES = {
    "dense": ((4,), lambda: [L.Dense(5, activation="relu"), L.Dense(3)]),
    "dense without bias": ((4,), lambda: [L.Dense(5, activation="relu", use_bias=False), L.Dense(3, use_bias=False)]),
    "dense on the last axis": ((3, 4), lambda: [L.Dense(5, activation="relu"), L.Dense(2)]),
    "dense of rank four": ((2, 3, 2), lambda: [L.Dense(3, activation="relu"), L.Flatten(), L.Dense(2)]),
    "relu function": ((4,), lambda: [L.Dense(5, activation=keras.activations.relu), L.Dense(3, activation=ops.relu)]),
    "relu layers": ((4,), lambda: [L.Dense(5), L.ReLU(), L.Dense(4), L.Activation("relu"), L.Activation("linear")]),
    "relu layer as activation": ((4,), lambda: [L.Dense(5, activation=L.ReLU()), L.Activation(L.ReLU())]),
    "relu output": ((4,), lambda: [L.Dense(5, activation="relu")]),
    "conv1d": ((7, 2), lambda: [L.Conv1D(3, 3, activation="relu")]),
    "conv1d same strided": ((8, 2), lambda: [L.Conv1D(3, 3, strides=2, padding="same")]),
    "conv1d causal dilated": ((9, 2), lambda: [L.Conv1D(3, 3, padding="causal", dilation_rate=2, activation="relu")]),
    "conv1d first": ((2, 9), lambda: [L.Conv1D(3, 4, padding="same", activation="relu", **FIRST)]),
    "conv1d causal first": ((2, 9), lambda: [L.Conv1D(3, 3, padding="causal", **FIRST)]),
    "conv2d": ((5, 6, 2), lambda: [L.Conv2D(3, (2, 3), activation="relu"), L.Conv2D(2, 2, use_bias=False)]),
    "conv2d same even": ((6, 5, 2), lambda: [L.Conv2D(3, (4, 2), strides=(3, 2), padding="same", activation="relu")]),
    "conv2d dilated": ((7, 6, 2), lambda: [L.Conv2D(2, 2, dilation_rate=(3, 2), padding="same")]),
    "conv2d grouped": ((5, 5, 4), lambda: [L.Conv2D(6, 3, groups=2, activation="relu")]),
    "conv2d first": ((3, 5, 6), lambda: [L.Conv2D(4, 3, strides=2, padding="same", activation="relu", **FIRST)]),
    "conv2d grouped first": ((4, 5, 5), lambda: [L.Conv2D(6, 3, groups=2, **FIRST)]),
    "conv3d": ((4, 3, 5, 2), lambda: [L.Conv3D(2, (2, 3, 2), strides=(2, 1, 1), padding="same", activation="relu")]),
    "conv3d first": ((2, 4, 3, 3), lambda: [L.Conv3D(2, 2, **FIRST)]),
    "depthwise": ((5, 6, 3), lambda: [L.DepthwiseConv2D(3, depth_multiplier=2, padding="same", activation="relu")]),
    "depthwise first": ((3, 5, 6), lambda: [L.DepthwiseConv2D(2, strides=2, depth_multiplier=2, use_bias=False, **FIRST)]),
    "depthwise1d": ((6, 3), lambda: [L.DepthwiseConv1D(3, depth_multiplier=2)]),
    "separable": ((6, 5, 3), lambda: [L.SeparableConv2D(4, 3, depth_multiplier=2, strides=2, padding="same", activation="relu")]),
    "separable first": ((3, 6, 5), lambda: [L.SeparableConv2D(4, 2, dilation_rate=2, use_bias=False, **FIRST)]),
    "separable1d": ((7, 3), lambda: [L.SeparableConv1D(4, 3)]),
    "batch norm": ((4,), lambda: [L.Dense(5), L.BatchNormalization(), L.ReLU(), L.Dense(2)]),
    "batch norm plain": ((4,), lambda: [L.BatchNormalization(scale=False, center=False), L.Dense(2)]),
    "batch norm scale": ((3, 4), lambda: [L.BatchNormalization(center=False, epsilon=0.1)]),
    "batch norm center": ((3, 4), lambda: [L.BatchNormalization(scale=False, axis=1)]),
    "batch norm images": ((4, 4, 2), lambda: [L.Conv2D(3, 2), L.BatchNormalization(), L.ReLU(), L.Flatten(), L.Dense(2)]),
    "batch norm first": ((2, 4, 4), lambda: [L.Conv2D(3, 2, **FIRST), L.BatchNormalization(axis=1), L.ReLU()]),
    "flatten": ((3, 2, 4), lambda: [L.Flatten(), L.Dense(3)]),
    "flatten first": ((3, 2, 4), lambda: [L.Flatten(**FIRST), L.Dense(3)]),
    "reshape": ((12,), lambda: [L.Reshape((3, 4)), L.Dense(2, activation="relu"), L.Reshape((-1,)), L.Dense(2)]),
    "permute": ((2, 3, 4), lambda: [L.Permute((3, 1, 2)), L.Dense(3, activation="relu")]),
    "dropouts": (
        (4, 3),
        lambda: [
            L.Dropout(0.5),
            L.SpatialDropout1D(0.5),
            L.GaussianNoise(1.0),
            L.GaussianDropout(0.5),
            L.AlphaDropout(0.5),
            L.ActivityRegularization(l2=0.1),
            L.Identity(),
            L.Dense(2, activation="relu"),
        ],
    ),
    "spatial dropouts": ((3, 3, 2), lambda: [L.SpatialDropout2D(0.5), L.Reshape((3, 3, 2, 1)), L.SpatialDropout3D(0.5)]),
    "average pool 1d": ((7, 2), lambda: [L.AveragePooling1D(3, strides=2), L.ReLU()]),
    "average pool 1d same": ((7, 2), lambda: [L.AveragePooling1D(3, strides=1, padding="same")]),
    "average pool 2d": ((5, 6, 2), lambda: [L.AveragePooling2D((2, 3)), L.ReLU()]),
    "average pool 2d same": ((5, 7, 2), lambda: [L.AveragePooling2D(3, strides=2, padding="same")]),
    "average pool 2d same uneven": ((5, 6, 2), lambda: [L.AveragePooling2D((2, 3), padding="same")]),
    "average pool 2d first": ((2, 5, 6), lambda: [L.AveragePooling2D(2, padding="same", **FIRST)]),
    "average pool 3d": ((3, 4, 5, 2), lambda: [L.AveragePooling3D(2), L.ReLU()]),
    "average pool 3d same": ((3, 4, 5, 2), lambda: [L.AveragePooling3D(2, padding="same")]),
    "global pool 1d": ((5, 3), lambda: [L.GlobalAveragePooling1D(), L.Dense(2)]),
    "global pool 2d": ((4, 3, 2), lambda: [L.GlobalAveragePooling2D(keepdims=True)]),
    "global pool 2d first": ((4, 3, 2), lambda: [L.GlobalAveragePooling2D(**FIRST), L.Dense(2)]),
    "global pool 3d": ((2, 4, 3, 2), lambda: [L.GlobalAveragePooling3D(keepdims=True, **FIRST)]),
    "padding and cropping 1d": ((5, 2), lambda: [L.ZeroPadding1D((1, 2)), L.Conv1D(2, 2), L.Cropping1D((2, 1))]),
    "padding and cropping 2d": (
        (4, 3, 2),
        lambda: [L.ZeroPadding2D(((1, 2), (0, 3))), L.Dense(2), L.ReLU(), L.Cropping2D(((1, 0), (2, 1)))],
    ),
    "padding and cropping 2d first": ((2, 4, 3), lambda: [L.ZeroPadding2D(1, **FIRST), L.Cropping2D(((0, 1), (2, 0)), **FIRST)]),
    "padding and cropping 3d": ((3, 3, 3, 1), lambda: [L.ZeroPadding3D((0, 1, 2)), L.Cropping3D(((1, 1), (0, 1), (2, 0)))]),
    "rescaling": ((4, 4, 3), lambda: [L.Rescaling(1 / 127.5, offset=-1.0), L.Conv2D(2, 3, activation="relu")]),
    "rescaling per channel": ((2, 3), lambda: [L.Rescaling([0.5, 2.0, 3.0], offset=[1.0, 2.0, -1.0]), L.Dense(2)]),
    "normalization": ((2, 3), lambda: [L.Normalization(mean=[1.0, 2.0, 3.0], variance=[4.0, 0.5, 2.0]), L.Dense(2)]),
    "normalization of all": ((2, 3), lambda: [L.Normalization(axis=None, mean=0.5, variance=4.0), L.Dense(2)]),
    "normalization inverted": ((3,), lambda: [L.Normalization(mean=1.0, variance=4.0, invert=True), L.Dense(2)]),
}


@pytest.mark.parametrize("name", CASES)
def test_layers_agree_with_the_model(name, tmp_path):
    shape, layers = CASES[name]
    model = stack(shape, *layers())
    network = agreeing(model)
    assert network.source.input_shape == shape
    model.save(tmp_path / "net.keras")
    assert read_keras(tmp_path / "net.keras") == network


def test_adapted_normalization():
    layer = L.Normalization()
    layer.adapt(np.random.default_rng(0).standard_normal((50, 3)).astype("float32") * 3 + 1)
    agreeing(keras.Sequential([keras.Input((3,)), layer, L.Dense(2, activation="relu")]))


def residual(width=4):
    entry = keras.Input((width,))
    hidden = L.Dense(width, activation="relu")(entry)
    total = L.Add()([L.Dense(width)(hidden), entry])
    hidden = L.ReLU()(total)
    total = L.Add()([L.Dense(width, activation="relu")(hidden), hidden])
    return randomized(keras.Model(entry, L.Dense(2)(total)))


def test_residual_model():
    network = agreeing(residual())
    assert network.relus == 12


def merged(build):
    entry = keras.Input((4,))
    left, right = L.Dense(3, activation="relu")(entry), L.Dense(3)(entry)
    return randomized(keras.Model(entry, build(left, right)))


MERGED = {
    "subtract": lambda left, right: L.Subtract()([left, right]),
    "average": lambda left, right: L.Average()([left, right, left]),
    "concatenate": lambda left, right: L.ReLU()(L.Concatenate()([left, right, left])),
    "concatenate an axis": lambda left, right: L.Concatenate(axis=1)([L.Reshape((1, 3))(left), L.Reshape((1, 3))(right)]),
    "ranks": lambda left, right: L.Add()([right, L.Reshape((3, 1))(left)]),
    "functions": lambda left, right: keras.layers.add([left, keras.layers.subtract([right, left])]),
    "operations": lambda left, right: ops.relu(left + right * 2.0 - np.float32(0.5)) / 4.0,
    "reversed operations": lambda left, right: 1.0 - ops.concatenate([-left, right * np.arange(1, 4, dtype="float32")], axis=-1),
    "reshaping operations": lambda left, right: ops.transpose(ops.reshape(left, (-1, 3, 1)), (0, 2, 1))[:, 0, 1:] + right[:, :1],
    "training flag": lambda left, right: L.Dropout(0.5)(L.BatchNormalization()(left, training=True), training=True) + right,
    "keyword": lambda left, right: L.Dense(2)(inputs=left) + L.Dense(2)(right),
}


@pytest.mark.parametrize("name", MERGED)
def test_merged_branches(name, tmp_path):
    model = merged(MERGED[name])
    network = agreeing(model)
    model.save(tmp_path / "net.keras")
    assert read_keras(tmp_path / "net.keras") == network


def test_shared_layers():
    entry = keras.Input((4,))
    shared = L.Dense(4, activation="relu")
    agreeing(randomized(keras.Model(entry, L.Dense(2)(shared(shared(entry))))))
    assert from_model(keras.Model(entry, shared(shared(shared(entry))))).relus == 12


def test_nested_models():
    inner_entry = keras.Input((3,))
    inner = keras.Model(inner_entry, L.Add()([L.Dense(3, activation="relu")(inner_entry), inner_entry]), name="inner")
    tail = keras.Sequential([keras.Input((3,)), L.Dense(3), L.ReLU()], name="tail")
    entry = keras.Input((4,))
    hidden = inner(L.Dense(3)(entry))
    model = randomized(keras.Model(entry, L.Dense(2)(tail(inner(tail(hidden))))))
    agreeing(model)
    agreeing(randomized(keras.Sequential([keras.Input((3,)), inner, tail, keras.Sequential([L.Dense(2)])])))


def test_nested_model_of_two_inputs():
    left, right = keras.Input((3,)), keras.Input((3,))
    inner = keras.Model([left, right], [L.Subtract()([left, right]), L.Concatenate()([right, left])])
    entry = keras.Input((3,))
    first, second = inner([L.Dense(3, activation="relu")(entry), entry])
    agreeing(randomized(keras.Model(entry, L.Concatenate()([second, first]))))


def test_model_that_starts_in_the_middle():
    entry = keras.Input((4,))
    middle = L.Dense(3, activation="relu")(entry)
    model = randomized(keras.Model(entry, L.Dense(2)(L.ReLU()(L.Dense(3)(middle)))))
    agreeing(keras.Model(middle, model.output))
    agreeing(keras.Model(model.input, model.layers[2].output))


def test_functional_subclass_that_keeps_the_call():
    class Trained(keras.Model):
        def train_step(self, data):
            raise NotImplementedError

    entry = keras.Input((4,))
    agreeing(randomized(Trained(entry, L.Dense(2, activation="relu")(entry))))


def test_identity_and_constants():
    entry = keras.Input((3,))
    network = agreeing(keras.Model(entry, L.Identity()(entry)))
    assert network.relus == 0


def test_structured_input_and_output():
    entry = keras.Input((3,), name="x")
    model = randomized(keras.Model({"x": entry}, {"y": L.Dense(2, activation="relu")(entry)}))
    assert from_model(model).relus == 2


def test_double_precision():
    model = stack((4,), L.Dense(5, activation="relu", dtype="float64"), L.Dense(2, dtype="float64"))
    assert agreeing(model).source.difference < 1e-6


def test_lora_and_constraints():
    dense = L.Dense(5, activation="relu", kernel_regularizer="l2")
    model = stack((4,), dense, L.Dense(2, kernel_constraint="max_norm"))
    dense.enable_lora(2)
    agreeing(randomized(model))


def test_patterns_match_the_preactivations():
    model = stack(
        (6, 5, 2), L.Conv2D(3, 3), L.ReLU(), L.Conv2D(2, 2, strides=2, padding="same"), L.ReLU(), L.Flatten(), L.Dense(3)
    )
    network = agreeing(model)
    before = keras.Model(model.inputs[0], [model.layers[0].output, model.layers[2].output])
    points = points_for(network).astype("float32")
    found = before(points.reshape(-1, 6, 5, 2), training=False)
    expected = np.concatenate([ops.convert_to_numpy(item).reshape(len(points), -1) for item in found], axis=1)
    clear = np.abs(expected) > 1e-4
    assert network.widths == (4 * 3 * 3, 2 * 2 * 2)
    assert (network.patterns(points)[clear] == (expected > 0)[clear]).all()
    assert clear.mean() > 0.99


def test_open_sizes_need_an_input_shape():
    model = randomized(
        keras.Sequential([keras.Input((None, None, 2)), L.Conv2D(3, 3, activation="relu"), L.GlobalAveragePooling2D()])
    )
    with pytest.raises(UnsupportedModel, match=r"leaves sizes open; give input_shape"):
        from_model(model)
    network = from_model(model, input_shape=(5, 4, 2))
    assert network.input_dim == 40
    points = points_for(network).astype("float32")
    expected = ops.convert_to_numpy(model(points.reshape(-1, 5, 4, 2)))
    np.testing.assert_allclose(network(points), expected, rtol=1e-4, atol=1e-4)


def test_sequential_without_input():
    layers = [L.Dense(3, activation="relu"), L.Dense(2)]
    model = keras.Sequential(layers)
    with pytest.raises(UnsupportedModel, match="does not know its input yet; give input_shape"):
        from_model(model)
    assert not model.built
    network = from_model(model, input_shape=[4])
    points = points_for(network).astype("float32")
    np.testing.assert_allclose(network(points), ops.convert_to_numpy(model(points)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(5,), (1, 4), (None,), ("4",), (4.0,), (0,), (-1,), "4", 4])
def test_wrong_input_shapes(shape):
    with pytest.raises(OptionError, match="input_shape"):
        from_model(stack((4,), L.Dense(2)), input_shape=shape)


UNSUPPORTED = {
    "gelu": (lambda: L.Dense(2, activation="gelu"), "activation gelu.*cut the model before it"),
    "silu": (lambda: L.Activation("silu"), "activation silu cannot be read"),
    "lambda": (lambda: L.Lambda(lambda x: x), "class Lambda"),
    "elu": (L.ELU, "class ELU"),
    "threshold": (lambda: L.ReLU(threshold=1.0), "threshold=1.0, which jumps"),
    "partial": (lambda: L.Dense(2, activation=partial(keras.activations.relu, max_value=6)), "activation partial"),
    "layer norm": (L.LayerNormalization, "class LayerNormalization"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_layers(name):
    layer, message = UNSUPPORTED[name]
    odd = layer()
    with pytest.raises(UnsupportedOperator, match=message) as caught:
        from_model(keras.Sequential([keras.Input((4,)), L.Dense(3), odd], name="net"))
    assert str(caught.value).startswith(f"net: layer '{odd.name}' ({type(odd).__name__}): ")


def test_custom_layers_are_refused():
    class Dense(L.Dense):
        def call(self, inputs):
            return 2 * super().call(inputs)

    with pytest.raises(UnsupportedOperator, match="class Dense"):
        from_model(stack((4,), Dense(3)))


def test_products_are_refused():
    with pytest.raises(UnsupportedOperator, match="class Multiply"):
        from_model(merged(lambda left, right: L.Multiply()([left, right])))
    with pytest.raises(UnsupportedOperator, match="not piecewise linear"):
        from_model(merged(lambda left, right: left * right))
    with pytest.raises(UnsupportedOperator, match="not piecewise linear"):
        from_model(merged(lambda left, right: left / right))
    with pytest.raises(UnsupportedOperator, match="operation Sin"):
        from_model(merged(lambda left, right: ops.sin(left) + right))


def test_subclassed_models_are_refused():
    class Mine(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = L.Dense(2)

        def call(self, inputs):
            return self.dense(inputs)

    with pytest.raises(UnsupportedModel, match=r"Mine with a call method of its own.*functional model.*ONNX"):
        from_model(Mine())
    entry = keras.Input((3,))
    with pytest.raises(UnsupportedModel, match=r"Mine with a call method of its own"):
        from_model(keras.Model(entry, Mine()(entry)))


def test_several_outputs_are_refused():
    left = keras.Input((2,), name="a")
    with pytest.raises(UnsupportedModel, match="2 outputs; one is expected"):
        from_model(keras.Model(left, [L.Dense(1)(left), L.Dense(2)(left)]))


def test_rounding_types_are_refused():
    with pytest.raises(UnsupportedModel, match=r"mixed_float16.*float32"):
        from_model(stack((4,), L.Dense(2, dtype="mixed_float16")))
    with pytest.raises(UnsupportedModel, match="of type int32"):
        from_model(keras.Sequential([keras.Input((4,), dtype="int32"), L.Rescaling(2.0)]))
    model = stack((4,), L.Dense(2))
    model.layers[0].quantize("int8")
    with pytest.raises(UnsupportedModel, match="which rounds"):
        from_model(model)


@pytest.mark.parametrize("thing", [None, 3, "model", [], object(), L.Dense(2)])
def test_things_that_are_no_models(thing):
    with pytest.raises(UnsupportedModel, match="is no Keras 3 model"):
        from_model(thing)


def test_empty_models():
    with pytest.raises(UnsupportedModel):
        from_model(keras.Sequential())
    with pytest.raises(UnsupportedModel):
        from_model(keras.Sequential(), input_shape=(3,))


def test_weights_that_are_not_finite():
    model = stack((3,), L.Dense(2))
    model.layers[0].bias.assign([np.nan, 1.0])
    with pytest.raises(NetworkError, match="nan"):
        from_model(model)


def test_the_model_is_left_alone():
    model = stack((4, 4, 2), L.Conv2D(3, 2), L.BatchNormalization(), L.Dropout(0.5), L.ReLU(), L.Flatten(), L.Dense(2))
    model.compile("adam", "mse")
    before = [np.array(ops.convert_to_numpy(variable)) for variable in model.variables]
    config = model.to_json()
    from_model(model)
    assert all((old == ops.convert_to_numpy(new)).all() for old, new in zip(before, model.variables, strict=True))
    assert model.to_json() == config
    assert model.compiled
