"""Keras models and files: every layer against the model's own forward pass, and what must be refused."""

import io
import json
import logging
import os
import subprocess
import sys
import warnings
import zipfile
from functools import partial

os.environ.setdefault("KERAS_BACKEND", "torch")

import numpy as np
import pytest

from tessella.errors import (
    FileError,
    FileMissing,
    NetworkError,
    OptionError,
    TessellaError,
    UnsupportedModel,
    UnsupportedOperator,
)
from tessella.importers.keras import from_model, read_keras
from tessella.importers.keras_archive import LARGEST_CONTENT
from tessella.network import Network

keras = pytest.importorskip("keras")
h5py = pytest.importorskip("h5py")
L = keras.layers
ops = keras.ops
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:keras.*")  # what Keras itself does in these tests
FIRST = {"data_format": "channels_first"}


def randomized(model, seed=0):
    """The model with weights that show every mistake: no zeros, no ones, positive variances."""
    rng = np.random.default_rng(seed)
    for variable in model.weights:
        if "seed" in variable.path or not str(variable.dtype).startswith("float"):
            continue
        values = rng.standard_normal(variable.shape) * 0.7
        variable.assign(np.abs(values) + 0.3 if "variance" in variable.name else values)
    return model


def outputs(model, points):
    shape = model.inputs[0].shape[1:]
    values = model(points.reshape(-1, *[1 if size is None else size for size in shape]), training=False)
    return ops.convert_to_numpy(values).reshape(len(points), -1)


def points_for(network, seed=1, count=12):
    return np.random.default_rng(seed).standard_normal((count, network.input_dim)) * 1.5


def agreeing(model):
    """Import, and compare at other points than the importer does."""
    network = from_model(model)
    assert isinstance(network, Network)
    points = points_for(network)
    np.testing.assert_allclose(network(points), outputs(model, points.astype("float32")), rtol=2e-4, atol=2e-4)
    assert network.source is not None
    assert network.source.kind == "keras"
    assert network.source.name == model.name
    assert network.source.points > 0
    return network


def stack(shape, *layers):
    return randomized(keras.Sequential([keras.Input(shape), *layers]))


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
def test_layers_agree_with_the_model(name):
    shape, layers = CASES[name]
    network = agreeing(stack(shape, *layers()))
    assert network.source.input_shape == shape


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
def test_merged_branches(name):
    agreeing(merged(MERGED[name]))


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
    "sigmoid": (lambda: L.Dense(2, activation="sigmoid"), "activation sigmoid.*cut the model before it"),
    "softmax": (lambda: L.Dense(2, activation="softmax"), "activation softmax.*cut the model before it"),
    "softmax layer": (L.Softmax, "class Softmax.*cut the model before it"),
    "tanh": (lambda: L.Activation("tanh"), "activation tanh cannot be read"),
    "lambda": (lambda: L.Lambda(lambda x: x), "class Lambda"),
    "leaky": (L.LeakyReLU, "class LeakyReLU"),
    "relu6": (lambda: L.ReLU(max_value=6), r"max_value=6.*only the plain ReLU"),
    "slope": (lambda: L.ReLU(negative_slope=0.1), "only the plain ReLU"),
    "threshold": (lambda: L.ReLU(threshold=1.0), "only the plain ReLU"),
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
    with pytest.raises(UnsupportedOperator, match="operation Tanh"):
        from_model(merged(lambda left, right: ops.tanh(left) + right))
    with pytest.raises(UnsupportedOperator, match="class MaxPooling2D"):
        from_model(stack((4, 4, 1), L.MaxPooling2D()))


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


def test_several_inputs_and_outputs_are_refused():
    left, right = keras.Input((2,), name="a"), keras.Input((2,), name="b")
    with pytest.raises(UnsupportedModel, match=r"2 inputs \('a', 'b'\)"):
        from_model(keras.Model([left, right], L.Add()([left, right])))
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


# ---------------------------------------------------------------------------------------------------------------- files


@pytest.fixture
def saved(tmp_path):
    model = randomized(residual())
    model.compile("adam", "mse")
    path = tmp_path / "net.keras"
    model.save(path)
    return path, model


def rewritten(path, target, change=None, **members):
    """A copy of an archive with another description, or other members."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    if change is not None:
        config = json.loads(content["config.json"])
        change(config)
        content["config.json"] = json.dumps(config).encode()
    content |= members
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in content.items():
            if data is not None:
                archive.writestr(name, data)
    return target


def test_files(saved):
    path, model = saved
    network = read_keras(path)
    assert network == from_model(model)
    assert network.source.name == "net.keras"
    assert network.source.input_shape == (4,)
    assert read_keras(str(path), input_shape=(4,)) == network


@pytest.mark.parametrize("name", CASES)
def test_every_layer_survives_a_file(name, tmp_path):
    shape, layers = CASES[name]
    model = stack(shape, *layers())
    model.save(tmp_path / "net.keras")
    assert read_keras(tmp_path / "net.keras") == from_model(model)


@pytest.mark.parametrize("name", MERGED)
def test_every_operation_survives_a_file(name, tmp_path):
    model = merged(MERGED[name])
    model.save(tmp_path / "net.keras")
    assert read_keras(tmp_path / "net.keras") == from_model(model)


def test_nested_models_survive_a_file(tmp_path):
    inner = keras.Sequential([keras.Input((3,)), L.Dense(3, activation="relu")])
    inner.compile("sgd", "mse")
    model = randomized(keras.Sequential([keras.Input((4,)), L.Dense(3), inner, L.Dense(2)]))
    model.save(tmp_path / "net.keras")
    assert read_keras(tmp_path / "net.keras") == from_model(model)


def test_missing_and_foreign_files(tmp_path):
    with pytest.raises(FileMissing, match="no such file"):
        read_keras(tmp_path / "none.keras")
    with pytest.raises(FileError, match="is a folder"):
        read_keras(tmp_path)
    for name, content, message in [
        ("a.keras", b"", "is empty"),
        ("b.keras", b"hello", "is not a .keras file"),
        ("c.keras", b"\x89HDF\r\n\x1a\n" + bytes(100), "legacy HDF5"),
        ("d.h5", b"\x89HDF\r\n\x1a\n", r"legacy HDF5.*model\.save"),
        ("e.HDF5", b"x", r"legacy HDF5.*model\.save"),
        ("f.zip", b"PK", "suffix .keras"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FileError, match=message) as caught:
            read_keras(tmp_path / name)
        assert str(caught.value).startswith(str(tmp_path / name))
        assert "\n" not in str(caught.value)


def test_archives_with_other_members(saved, tmp_path):
    path, _ = saved
    for members, message in [
        ({"config.json": None}, "config.json is missing"),
        ({"model.weights.h5": None}, "model.weights.h5 is missing"),
        ({"assets/x": b"1"}, "holds 'assets/x'"),
        ({"../x": b"1"}, "besides one each"),
        ({"config.json": b"{"}, "JSONDecodeError"),
        ({"config.json": b"[" * 100_000}, "RecursionError"),
        ({"config.json": b"[]"}, "describes no model"),
        ({"config.json": b"{}"}, "describes no model"),
        ({"config.json": b'{"class_name": "__numpy__", "config": {"value": 1, "dtype": "int8"}}'}, "describes no model"),
        ({"model.weights.h5": b"nothing"}, "cannot be read as a Keras model"),
    ]:
        target = rewritten(path, tmp_path / "other.keras", **members)
        with pytest.raises(FileError, match=message):
            read_keras(target)


def test_truncated_files(saved, tmp_path):
    path, _ = saved
    content = path.read_bytes()
    target = tmp_path / "cut.keras"
    for length in (1, 100, len(content) // 2, len(content) - 1):
        target.write_bytes(content[:length])
        with pytest.raises(FileError):
            read_keras(target)


def test_declared_sizes_are_capped(saved, tmp_path):
    path, _ = saved
    target = tmp_path / "bomb.keras"
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02")  # the last member in the central directory, the weights
    content[entry + 24 : entry + 28] = (2**32 - 2).to_bytes(4, "little")
    target.write_bytes(content)
    with pytest.raises(FileError, match="would unpack to"):
        read_keras(target)

    def weights(**options):
        buffer = io.BytesIO()
        with h5py.File(buffer, "w") as file:
            file.create_dataset("x", **options)
        return {"model.weights.h5": buffer.getvalue()}

    huge = weights(shape=(LARGEST_CONTENT,), dtype="float32", chunks=(1000,), compression="gzip")
    with pytest.raises(FileError, match="declares weights of"):
        read_keras(rewritten(path, target, **huge))
    with pytest.raises(FileError, match="other than an array of numbers"):
        read_keras(rewritten(path, target, **weights(data="text")))

    def units(config):
        config["config"]["layers"][1]["config"]["units"] = 10**9

    def shape(config):
        config["config"]["layers"][0]["config"]["batch_shape"] = [None, 10**9]

    with pytest.raises(FileError, match="units=1000000000, but no stored weight"):
        read_keras(rewritten(path, target, units))
    with pytest.raises(UnsupportedModel, match="at most"):
        read_keras(rewritten(path, target, shape))


@pytest.mark.parametrize("link", [lambda: h5py.ExternalLink("/etc/hostname", "/"), lambda: h5py.SoftLink("/")])
def test_links_in_weights_are_not_followed(saved, tmp_path, link):
    path, _ = saved
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file["layers"] = link()
    with pytest.raises(FileError, match="a link at"):
        read_keras(rewritten(path, tmp_path / "link.keras", **{"model.weights.h5": buffer.getvalue()}))


def test_hard_links_in_a_circle(saved, tmp_path):
    path, _ = saved
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file["a/b"] = file.create_group("c")
        file["c/a"] = file["a"]
    with pytest.raises(FileError, match="a link at"):
        read_keras(rewritten(path, tmp_path / "link.keras", **{"model.weights.h5": buffer.getvalue()}))


def replaced_layer(entry):
    def change(config):
        old = config["config"]["layers"][1]
        config["config"]["layers"][1] = {**entry, "name": old["name"], "inbound_nodes": old["inbound_nodes"]}

    return change


@pytest.fixture
def unsafe():
    keras.config.enable_unsafe_deserialization()
    yield
    keras.src.backend.common.global_state.set_global_attribute("safe_mode_saving", None)


def test_lambda_layers_are_never_run(tmp_path, unsafe):
    marker = tmp_path / "ran"
    code = eval(f"lambda x: (__import__('pathlib').Path({str(marker)!r}).touch(), x)[1]")  # noqa: S307
    path = tmp_path / "bad.keras"
    keras.Sequential([keras.Input((3,)), L.Lambda(code)]).save(path)
    marker.unlink()
    with pytest.raises(UnsupportedOperator, match="Lambda, which is Python code and is never run"):
        read_keras(path)
    assert not marker.exists()
    keras.saving.load_model(path, compile=False, safe_mode=True)
    assert marker.exists()  # Keras alone would have run it, once its safe mode was switched off


@pytest.mark.parametrize(
    "entry",
    [
        {"module": "evil_module", "class_name": "Layer", "config": {"name": "x"}, "registered_name": None},
        {"module": "os", "class_name": "function", "config": "system", "registered_name": "system"},
        {"module": "builtins", "class_name": "function", "config": "eval", "registered_name": "eval"},
        {"module": "builtins", "class_name": "Layer", "config": {}, "registered_name": None},
        {"module": None, "class_name": "Dense", "config": {"units": 2}, "registered_name": "mine>Dense"},
        {"module": "keras.layers", "class_name": "Dense", "config": {"units": 2}, "registered_name": "mine>Dense"},
        {"class_name": "Dense", "config": {"units": 2}},
        {"module": "keras.layers", "class_name": "TFSMLayer", "config": {"filepath": "/x"}, "registered_name": None},
        {"module": "keras.layers", "class_name": "TorchModuleWrapper", "config": {"module": ""}, "registered_name": None},
        {"module": "keras.utils", "class_name": "function", "config": "get_file", "registered_name": "get_file"},
        {"module": "keras.saving", "class_name": "load_model", "config": {}, "registered_name": None},
        {"module": "keras.src.ops.numpy", "class_name": "Tanh", "config": {}, "registered_name": "Tanh"},
        {"class_name": "__lambda__", "config": {"value": "x"}},
        {"class_name": "__typespec__", "spec_name": "x", "module": "evil_module", "config": [], "registered_name": None},
        {"module": ["keras"], "class_name": "Dense", "config": {}},
        {"module": "keras.layers", "class_name": ["Dense"], "config": {}},
        {"module": "keras.layers", "class_name": {"a": 1}, "config": {}},
    ],
)
def test_foreign_classes_are_never_imported(saved, tmp_path, entry, monkeypatch):
    path, _ = saved
    (tmp_path / "evil_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    target = rewritten(path, tmp_path / "bad.keras", replaced_layer(entry))
    monkeypatch.setattr(keras.saving, "load_model", lambda *_, **__: pytest.fail("Keras was asked to load it"))
    with pytest.raises(UnsupportedOperator) as caught:
        read_keras(target)
    assert str(caught.value).startswith(str(target))
    assert "evil_module" not in sys.modules


def test_foreign_initializers_are_refused(saved, tmp_path):
    path, _ = saved

    def change(config):
        config["config"]["layers"][1]["config"]["kernel_initializer"]["module"] = "evil_module"

    with pytest.raises(UnsupportedOperator, match="from the module evil_module"):
        read_keras(rewritten(path, tmp_path / "bad.keras", change))


def test_unsupported_layers_in_files(tmp_path):
    model = keras.Sequential([keras.Input((3,)), L.Dense(2), L.LeakyReLU(name="leaky")])
    model.save(tmp_path / "net.keras")
    with pytest.raises(UnsupportedOperator, match="layer 'leaky': a layer of class LeakyReLU"):
        read_keras(tmp_path / "net.keras")
    keras.Sequential([keras.Input((3,)), L.Dense(2, activation="softmax")]).save(tmp_path / "net.keras")
    with pytest.raises(UnsupportedOperator, match="cut the model before it"):
        read_keras(tmp_path / "net.keras")


def test_files_of_own_losses_are_read(tmp_path):
    def loss(expected, found):
        return ops.mean(expected - found)

    model = stack((3,), L.Dense(2, activation="relu"))
    model.compile("adam", loss)
    model.save(tmp_path / "net.keras")
    assert read_keras(tmp_path / "net.keras") == from_model(model)


def test_weights_that_do_not_fit(saved, tmp_path):
    path, _ = saved

    def change(config):
        config["config"]["layers"][1]["config"]["units"] = 3

    with pytest.raises(FileError, match="Keras cannot load it"):
        read_keras(rewritten(path, tmp_path / "bad.keras", change))


def test_nothing_is_said(saved, tmp_path, capfd, caplog):
    path, model = saved
    with warnings.catch_warnings(record=True) as heard, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        read_keras(path)
        from_model(model)
        with pytest.raises(TessellaError):
            read_keras(rewritten(path, tmp_path / "bad.keras", replaced_layer({"class_name": "Dense", "config": {}})))
    assert not heard
    assert not [record for record in caplog.records if record.name == "absl"]
    assert capfd.readouterr() == ("", "")


SCRIPT = """
import sys
{before}
from tessella.errors import MissingPackage
from tessella.importers.keras import from_model
try:
    from_model(None)
except MissingPackage as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("before", "backend", "message"),
    [
        ("sys.modules['keras'] = None", "torch", "pip install 'tessella[keras]'"),
        ("", "nonsense", "set the environment variable KERAS_BACKEND"),
        ("sys.modules['tensorflow'] = None", None, "set the environment variable KERAS_BACKEND"),
    ],
)
def test_missing_packages(before, backend, message, tmp_path):
    environment = {key: value for key, value in os.environ.items() if key != "KERAS_BACKEND"} | {"KERAS_HOME": str(tmp_path)}
    if backend is not None:
        environment["KERAS_BACKEND"] = backend
    script = SCRIPT.format(before=before)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert message in ended.stdout, ended.stderr
    assert ended.stderr == ""
