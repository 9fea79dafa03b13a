"""What is piecewise linear in Keras without being a ReLU, and what ends a model: against the model's own forward pass."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import json
import subprocess
import sys

import numpy as np
import pytest

from helpers.keras_models import agreeing, outputs, points_for, randomized, stack
from tessella.errors import UnsupportedModel, UnsupportedOperator
from tessella.importers.keras import from_model, read_keras
from tessella.network import COMPARISON

keras = pytest.importorskip("keras")
L = keras.layers
ops = keras.ops
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:keras.*", "ignore:You might experience:UserWarning")
FIRST = {"data_format": "channels_first"}
TWO = "maximum of two"

# shapes, layers, and how many units of what kind
CASES = {
    "leaky": ((4,), lambda: [L.Dense(5), L.LeakyReLU(0.2), L.Dense(2, activation="leaky_relu")], {"LeakyReLU": 7}),
    "prelu": ((3, 4), lambda: [L.PReLU(), L.Dense(2), L.PReLU(shared_axes=[1])], {"PReLU": 18}),
    "relu with all": ((4,), lambda: [L.ReLU(max_value=0.5, negative_slope=0.1)], {"LeakyReLU": 4, "clip": 4}),
    "relu6": ((4,), lambda: [L.Dense(3, activation="relu6"), L.ReLU(max_value=6.0)], {"ReLU": 6, "clip": 6}),
    "hard ones": ((3,), lambda: [L.Activation("hard_tanh"), L.Activation("hard_sigmoid")], {"ReLU": 3, "clip": 9}),
    "soft shrink": ((3,), lambda: [L.Activation("soft_shrink")], {"Softshrink": 6}),
    "max pool 1d": ((7, 2), lambda: [L.MaxPooling1D(2, strides=2), L.Dense(2)], {TWO: 6}),
    "max pool 2d": ((5, 6, 2), lambda: [L.Conv2D(2, 2), L.MaxPooling2D((2, 3)), L.Flatten()], {}),
    "max pool 2d same": ((5, 6, 1), lambda: [L.MaxPooling2D(3, strides=2, padding="same")], {}),
    "max pool 2d first": ((2, 5, 4), lambda: [L.MaxPooling2D(2, padding="same", **FIRST)], {}),
    "max pool 3d": ((2, 4, 3, 1), lambda: [L.MaxPooling3D(2, padding="same")], {}),
    "global max 1d": ((3, 2), lambda: [L.GlobalMaxPooling1D()], {COMPARISON: 4}),
    "global max 2d": ((2, 2, 2), lambda: [L.GlobalMaxPooling2D(keepdims=True), L.Dense(2)], {COMPARISON: 6}),
    "global max 3d": ((2, 2, 1, 2), lambda: [L.GlobalMaxPooling3D(**FIRST)], {COMPARISON: 6}),
    "adaptive max 1d": ((6, 2), lambda: [L.AdaptiveMaxPooling1D(3)], {TWO: 6}),
    "adaptive max 2d": ((2, 4, 2), lambda: [L.AdaptiveMaxPooling2D((1, 2)), L.Dense(2)], {COMPARISON: 12}),
    "adaptive max 2d first": ((2, 2, 2), lambda: [L.AdaptiveMaxPooling2D(1, **FIRST)], {COMPARISON: 6}),
    "adaptive average 3d": ((2, 2, 4, 1), lambda: [L.AdaptiveAveragePooling3D(2), L.ReLU()], {"ReLU": 8}),
    "up 1d": ((3, 2), lambda: [L.UpSampling1D(2), L.Conv1D(2, 2, activation="relu")], {}),
    "up 2d": ((2, 3, 2), lambda: [L.UpSampling2D((2, 3)), L.Dense(1, activation="relu")], {}),
    "up 2d bilinear": ((3, 2, 2), lambda: [L.UpSampling2D((2, 3), interpolation="bilinear")], {}),
    "up 2d first": ((2, 3, 2), lambda: [L.UpSampling2D(2, interpolation="bilinear", **FIRST)], {}),
    "up 3d": ((2, 1, 2, 2), lambda: [L.UpSampling3D((1, 2, 3))], {}),
    "einsum dense": (
        (2, 3),
        lambda: [L.EinsumDense("abc,cd->abd", (None, 4), activation="relu", bias_axes="d"), L.EinsumDense("...x,xy->...y", 2)],
        {"ReLU": 8},
    ),
    "repeated": ((3,), lambda: [L.RepeatVector(2), L.Dense(2, activation="relu")], {}),
    "transposed 1d": ((4, 2), lambda: [L.Conv1DTranspose(3, 3, strides=2, activation="relu")], {}),
    "transposed 2d": ((3, 2, 2), lambda: [L.Conv2DTranspose(3, (2, 3), strides=(1, 2), padding="same")], {}),
    "transposed 2d extra": ((3, 2, 2), lambda: [L.Conv2DTranspose(1, 3, strides=2, padding="same", output_padding=1)], {}),
    "transposed 2d wide": ((3, 2, 2), lambda: [L.Conv2DTranspose(1, 2, strides=3, use_bias=False)], {}),
    "transposed 2d dilated": ((3, 2, 2), lambda: [L.Conv2DTranspose(1, 2, dilation_rate=2, padding="same")], {}),
    "transposed 2d first": ((2, 3, 2), lambda: [L.Conv2DTranspose(3, 3, strides=2, padding="same", **FIRST)], {}),
    "transposed 3d": ((2, 1, 2, 1), lambda: [L.Conv3DTranspose(2, 2, strides=2, activation="relu")], {}),
}


@pytest.mark.parametrize("name", CASES)
def test_layers_agree_with_the_model(name, tmp_path):
    shape, layers, units = CASES[name]
    model = stack(shape, *layers())
    network = agreeing(model)
    if units:
        assert dict(network.source.units) == units
    model.save(tmp_path / "net.keras")
    assert read_keras(tmp_path / "net.keras") == network


MERGED = {
    "maximum": (lambda left, right: L.Maximum()([left, right]), {"ReLU": 3, TWO: 3}),
    "maximum of three": (lambda left, right: L.Maximum()([left, right, -left]), {"ReLU": 3, COMPARISON: 6}),
    "minimum": (lambda left, right: L.Minimum()([left, right]), {"ReLU": 3, TWO: 3}),
    "operations": (lambda left, right: ops.maximum(left, 0.5) - ops.minimum(left, right), {"ReLU": 3, "clip": 3, TWO: 3}),
    "along": (lambda left, right: ops.max(right, axis=1) + ops.amin(left, axis=-1), {"ReLU": 3, COMPARISON: 4}),
    "functions": (
        lambda left, right: (
            ops.abs(right) + ops.leaky_relu(right) + ops.clip(left, 0.1, 0.4) + ops.relu6(right) + ops.hard_tanh(left)
        ),
        {"ReLU": 6, "absolute value": 3, "LeakyReLU": 3, "clip": 15},
    ),
    "maxout": (lambda left, right: ops.max(ops.stack([left, right, -left], axis=-1), axis=-1), {"ReLU": 3, COMPARISON: 6}),
    "sums": (
        lambda left, right: (
            ops.squeeze(ops.expand_dims(ops.sum(left, axis=1, keepdims=True), 1), 1)
            + ops.mean(ops.threshold(right, 0.5, 0.5), axis=1, keepdims=True)
        ),
        {"ReLU": 3, "clip": 3},
    ),
    "rectified": (lambda left, right: keras.activations.relu(right, negative_slope=0.5) + left, {"ReLU": 3, "LeakyReLU": 3}),
}


@pytest.mark.parametrize("name", MERGED)
def test_merged_branches(name, tmp_path):
    build, units = MERGED[name]
    entry = keras.Input((4,))
    model = randomized(keras.Model(entry, build(L.Dense(3, activation="relu")(entry), L.Dense(3)(entry))))
    network = agreeing(model)
    assert dict(network.source.units) == units
    model.save(tmp_path / "net.keras")
    assert read_keras(tmp_path / "net.keras") == network


def logits():
    return stack((4,), L.Dense(5, activation="relu", name="first"), L.Dense(3, name="last"))


def with_weights_of(other, model):
    model.set_weights(other.get_weights())
    return model


ENDS = {
    "activation": (lambda: [L.Dense(3, activation="softmax")], ["softmax"]),
    "layer": (lambda: [L.Dense(3), L.Softmax()], ["softmax"]),
    "activation layer": (lambda: [L.Dense(3), L.Activation("sigmoid"), L.Dropout(0.5), L.Reshape((3, 1))], ["sigmoid"]),
    "layer in a layer": (lambda: [L.Dense(3, activation=L.Softmax())], ["softmax"]),
    "two": (lambda: [L.Dense(3, activation="tanh"), L.Activation("softmax")], ["tanh", "softmax"]),
    "scaled": (lambda: [L.Dense(3, activation="tanh"), L.Rescaling(2.0)], ["tanh", "Rescaling"]),
    "nested": (lambda: [keras.Sequential([L.Dense(3), L.Activation("log_softmax")])], ["log_softmax"]),
}


@pytest.mark.parametrize("name", ENDS)
def test_ends_that_change_no_region_are_left_off(name, tmp_path):
    layers, left_off = ENDS[name]
    plain = logits()
    model = with_weights_of(plain, stack((4,), L.Dense(5, activation="relu"), *layers()))
    before = [np.array(weight) for weight in model.get_weights()]
    expected = outputs(model, points_for(from_model(plain)).astype("float32"))
    network = from_model(model)
    assert network == from_model(plain)
    assert network.source.points > 0
    assert network.source.notes == tuple(f"{one} at the end is left off: it changes no region" for one in left_off)
    np.testing.assert_array_equal(outputs(model, points_for(network).astype("float32")), expected)  # the model is as it was
    assert all(np.array_equal(one, other) for one, other in zip(before, model.get_weights(), strict=True))
    model.save(tmp_path / "net.keras")
    assert read_keras(tmp_path / "net.keras") == network


def test_operations_at_the_end_are_left_off():
    entry = keras.Input((4,))
    hidden = L.Dense(3)(L.Dense(5, activation="relu")(entry))
    plain = randomized(keras.Model(entry, hidden))
    for ended in (ops.softmax(hidden), ops.argmax(hidden, axis=1), 2.0 * ops.tanh(hidden) - 1.0, ops.log_softmax(hidden)):
        network = from_model(keras.Model(entry, ended))
        assert network == from_model(plain)
        assert network.source.notes


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (lambda: [L.Dense(3, activation="sigmoid"), L.Dense(2)], "(Dense): reads the result of sigmoid"),
        (lambda: [L.Softmax(), L.ReLU()], "(ReLU): reads the result of softmax"),
        (lambda: [L.Activation("tanh"), L.MaxPooling1D(2)], "(MaxPooling1D): reads the result of tanh"),
    ],
)
def test_ends_in_the_middle_are_refused(layers, message):
    with pytest.raises(UnsupportedOperator) as caught:
        from_model(stack((4, 2), *layers()))
    assert message in str(caught.value)
    assert str(caught.value).endswith("; replace it, or cut the model before it")
    entry = keras.Input((3,))
    with pytest.raises(UnsupportedOperator, match="reads the result of softmax"):
        from_model(keras.Model(entry, L.Add()([L.Softmax()(entry), entry])))


def test_several_inputs_are_read_in_a_row():
    left, right = keras.Input((2,), name="a"), keras.Input((2, 1), name="b")
    total = L.Add()([L.Dense(2, activation="relu")(left), L.Flatten()(right)])
    model = randomized(keras.Model([left, right], L.Dense(2, activation="softmax")(total)))
    network = from_model(model)
    assert network.input_dim == 4
    logits = randomized(keras.Model({"a": left, "b": right}, total))
    network = from_model(logits)
    points = points_for(network).astype("float32")
    expected = ops.convert_to_numpy(logits({"a": points[:, :2], "b": points[:, 2:, None]}, training=False))
    np.testing.assert_allclose(network(points), expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(UnsupportedModel, match="leave sizes open"):
        from_model(keras.Model([left, keras.Input((None,))], L.Dense(2)(left)))


LOADS = """
import os, sys, json
import tessella
network = tessella.load(sys.argv[1])
import keras
print(json.dumps([network.relus, keras.config.backend(), os.environ.get("KERAS_BACKEND")]))
"""


def loaded_by(path, home, **environment):
    kept = {name: value for name, value in os.environ.items() if name != "KERAS_BACKEND"}
    found = subprocess.run(
        [sys.executable, "-c", LOADS, str(path)],
        capture_output=True,
        text=True,
        check=False,
        env=kept | {"KERAS_HOME": str(home)} | environment,
    )
    return json.loads(found.stdout) if found.returncode == 0 else found.stderr


@pytest.mark.slow
def test_an_installed_backend_is_taken_unless_one_was_chosen(tmp_path):
    model = stack((4,), L.Dense(5, activation="relu"), L.Dense(2))
    model.save(tmp_path / "net.keras")
    assert loaded_by(tmp_path / "net.keras", tmp_path / "home") == [5, "torch", None]
    assert "KERAS_BACKEND" in loaded_by(tmp_path / "net.keras", tmp_path / "home", KERAS_BACKEND="nothing")
