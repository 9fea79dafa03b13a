"""Export: what is written computes the same elsewhere, and comes back as the same network."""

import os
from itertools import pairwise

os.environ.setdefault("KERAS_BACKEND", "torch")

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import tessella
from helpers.odd_networks import leaky_case
from tessella import Layer, Network
from tessella.exporters import plain
from tessella.exporters.plain import check_numbers, check_outputs, plain_layers, points

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:keras.*")  # what Keras itself does in these tests


def any_network(seed):
    """Small networks whose layers are linear, ReLUs, leaky, or mixed; some weights are 0, some slopes are negative."""
    rng = np.random.default_rng([7, seed])
    sizes, layers = rng.integers(1, 6, size=rng.integers(2, 6)).tolist(), []
    for inputs, units in pairwise(sizes):
        kind = rng.integers(4)
        mask = rng.random(units) < 0.5 if kind == 0 else np.full(units, kind != 1)
        slope = rng.choice([0.0, 0.0, 0.1, -1.0, -0.5, 2.0], units) if kind in {0, 3} else np.zeros(units)
        weight = rng.standard_normal((units, inputs)) * (rng.random((units, inputs)) < 0.8)
        layers.append(Layer(weight * (rng.random() > 0.1), rng.standard_normal(units), mask, np.where(mask, slope, 0.0)))
    return Network(tuple(layers))


def by_runtime(path, batch):
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, {"input": batch})[0]


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_onnx_comes_back_as_the_same_network(tmp_path_factory, seed):
    network, path = any_network(seed), tmp_path_factory.mktemp("onnx") / "net.onnx"
    network.to_onnx(path)
    assert tessella.load(path) == network


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_onnx_computes_the_same_by_another_runtime(tmp_path_factory, seed):
    network, path = any_network(seed), tmp_path_factory.mktemp("onnx") / "net.onnx"
    batch = np.random.default_rng(seed).standard_normal((6, network.input_dim))
    network.to_onnx(path)
    assert np.abs(by_runtime(path, batch) - network(batch)).max() < 1e-12
    network.to_onnx(path, dtype="float32")
    assert np.abs(by_runtime(path, batch.astype(np.float32)) - network(batch)).max() < 1e-3


@settings(max_examples=6)
@given(st.integers(0, 10_000))
def test_torch_modules_come_back_and_compute_the_same(seed):
    import torch

    network = any_network(seed)
    module = network.to_torch()
    batch = np.random.default_rng(seed).standard_normal((6, network.input_dim))
    with torch.no_grad():
        assert np.abs(module(torch.tensor(batch)).numpy() - network(batch)).max() < 1e-12
    assert tessella.load(module) == network


@settings(max_examples=6)
@given(st.integers(0, 10_000))
def test_keras_models_come_back(seed):
    pytest.importorskip("keras")
    network = any_network(seed)
    model, batch = network.to_keras(), np.random.default_rng(seed).standard_normal((6, network.input_dim))
    by_keras = model(batch).detach().numpy()  # on torch; it computes parts in single precision
    assert np.allclose(by_keras, network(batch), rtol=1e-5, atol=1e-5)
    assert tessella.load(model) == network


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_npz_comes_back(tmp_path_factory, seed):
    network, path = any_network(seed), tmp_path_factory.mktemp("npz") / "net.npz"
    network.to_npz(path)
    assert tessella.load(path) == network


def test_relu_outputs_and_layers_of_linear_units_are_kept(tmp_path):
    layers = (Layer(np.eye(3), np.zeros(3), False), Layer(np.ones((2, 3)), [0.1, 0.2], [True, False]), Layer(np.eye(2), [1, 2]))
    network = Network(layers)
    network.to_onnx(tmp_path / "net.onnx")
    back = tessella.load(tmp_path / "net.onnx")
    assert [layer.rectified.tolist() for layer in back.layers] == [[False] * 3, [True, False], [True, True]]
    assert back == network
    assert tessella.load(network.to_torch()) == network


def test_a_saved_keras_file_and_an_exported_program_come_back(tmp_path):
    torch, _ = pytest.importorskip("torch"), pytest.importorskip("keras")
    network = any_network(3)
    network.to_keras().save(tmp_path / "net.keras")
    assert tessella.load(tmp_path / "net.keras") == network
    module = network.to_torch()
    torch.export.save(
        torch.export.export(module, (torch.zeros(1, network.input_dim, dtype=torch.float64),)), tmp_path / "net.pt2"
    )
    assert tessella.load(tmp_path / "net.pt2") == network


def test_single_precision_rounds_the_weights_and_nothing_else(tmp_path):
    network, path = any_network(5), tmp_path / "net.onnx"
    rounded = Network(
        tuple(
            Layer(
                layer.weight.astype(np.float32),
                layer.bias.astype(np.float32),
                layer.rectified,
                np.where(layer.rectified, layer.slope, 1).astype(np.float32),
            )
            for layer in network.layers
        )
    )
    network.to_onnx(path, dtype="float32")
    assert tessella.load(path) == rounded
    assert tessella.load(network.to_torch(dtype="float32")) == rounded
    assert tessella.load(network.to_keras(dtype="float32")) == rounded


def test_the_shape_of_the_source_is_kept(tmp_path):
    torch = pytest.importorskip("torch")
    nn = torch.nn
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 4 * 4, 3))
    network = tessella.load(module, input_shape=(1, 6, 6))
    network.to_onnx(tmp_path / "net.onnx")
    image = np.random.default_rng(0).random((2, 1, 6, 6))
    assert np.abs(by_runtime(tmp_path / "net.onnx", image) - network(image.reshape(2, -1))).max() < 1e-12
    back = tessella.load(tmp_path / "net.onnx")
    assert back == network
    assert back.source.input_shape == (1, 6, 6)
    network.to_onnx(tmp_path / "flat.onnx", input_shape=(36,))
    assert tessella.load(tmp_path / "flat.onnx").source.input_shape == (36,)
    assert network.to_torch()(torch.tensor(image)).shape == (2, 3)
    assert tuple(network.to_keras().input_shape) == (None, 1, 6, 6)


def test_sparse_weights_are_dense_in_onnx_and_sparse_in_npz(tmp_path):
    network = Network((Layer(csr_array(np.eye(300)), np.zeros(300)), Layer(np.ones((1, 300)), [0.0], False)))
    network.to_onnx(tmp_path / "net.onnx")
    assert tessella.load(tmp_path / "net.onnx") == network
    network.to_npz(tmp_path / "net.npz")
    assert "sparse" in repr(tessella.load(tmp_path / "net.npz").layers[0])


def test_a_linear_unit_with_a_slope_of_its_own_computes_the_same_elsewhere(tmp_path):
    network = Network((Layer([[1.0], [2.0]], [0.5, 0.1], False, [0.3, 1.0]), Layer([[1.0, 1.0]], [0.0], False)))
    network.to_onnx(tmp_path / "net.onnx")
    back = tessella.load(tmp_path / "net.onnx")
    assert back != network
    assert np.allclose(back([[0.7]]), network([[0.7]]), rtol=1e-15)
    network.to_npz(tmp_path / "net.npz")
    assert tessella.load(tmp_path / "net.npz") == network


def test_odd_numbers_are_kept(tmp_path):
    for seed in range(10):
        network = leaky_case(seed).network
        network.to_onnx(tmp_path / "net.onnx")
        assert tessella.load(tmp_path / "net.onnx") == network


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"dtype": "float16"}, tessella.OptionError, "written in 'float64' or 'float32'"),
        ({"dtype": 7}, tessella.OptionError, "dtype is 7"),
        ({"input_shape": (2, 2)}, tessella.OptionError, "the network reads 3 numbers"),
    ],
)
def test_bad_options_are_refused_in_one_line(tmp_path, options, error, words):
    network = tessella.load([(np.ones((1, 3)), None)])
    with pytest.raises(error, match=words) as refused:
        network.to_onnx(tmp_path / "net.onnx", **options)
    assert "\n" not in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_what_passes_single_precision_or_the_format_is_refused(tmp_path, monkeypatch):
    network = tessella.load([([[1e300]], None)])
    with pytest.raises(tessella.NetworkError, match=r"layer 1 holds 1e\+300, which passes the largest number of float32"):
        network.to_onnx(tmp_path / "net.onnx", dtype="float32")
    monkeypatch.setattr(plain, "LARGEST", 1000)
    network = Network((Layer(csr_array(np.eye(30)), np.zeros(30)),))
    with pytest.raises(tessella.NetworkError, match=r"sparse weights are written with all their zeros.*write \.npz"):
        network.to_onnx(tmp_path / "net.onnx")


def test_files_that_cannot_be_written_are_named(tmp_path):
    network = tessella.load([(np.ones((1, 3)), None)])
    for write in (network.to_onnx, network.to_npz):
        with pytest.raises(tessella.FileError, match="there is no folder"):
            write(tmp_path / "none" / "net.onnx")


def test_a_wrong_copy_would_be_noticed():
    layers = plain_layers(any_network(4).layers, np.dtype("float64"))
    inputs = points(layers[0].weight.shape[1])
    network = any_network(4)
    check_outputs(layers, inputs, network(inputs), "it")
    with pytest.raises(tessella.ConversionMismatch, match="output 0 differs by"):
        check_outputs(layers, inputs, network(inputs) + 1e-9, "it")
    with pytest.raises(tessella.ConversionMismatch, match="not the numbers"):
        check_numbers(layers[0].weight, layers[0].weight + 1.0, "it")


def test_a_wrong_copy_is_refused_and_nothing_is_written(tmp_path, monkeypatch):
    """A weight that is lost on its way into a file, and an evaluator that computes something else."""
    import sys

    network, writer = any_network(4), sys.modules["tessella.exporters.onnx"]
    right = writer._model

    def wrong(layers, shape):
        found = right(layers, shape)
        for item in found.graph.initializer:
            if item.name == "b0":
                item.raw_data = (np.frombuffer(item.raw_data) + 1.0).tobytes()
        return found

    monkeypatch.setattr(writer, "_model", wrong)
    with pytest.raises(
        tessella.ConversionMismatch, match=r"net\.onnx: b0: not the numbers that were written come back; please report"
    ):
        network.to_onnx(tmp_path / "net.onnx")
    monkeypatch.setattr(writer, "_model", right)
    monkeypatch.setattr(
        writer, "check_outputs", lambda layers, inputs, outputs, what: check_outputs(layers, inputs, outputs + 1e-6, what)
    )
    with pytest.raises(
        tessella.ConversionMismatch,
        match=r"net\.onnx: output 0 differs by 1e-06 from the network's at a seeded point; please report",
    ):
        network.to_onnx(tmp_path / "net.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("package", ["torch", "keras"])
def test_missing_packages_say_what_to_install(monkeypatch, package):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    if package == "keras":
        monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    network = tessella.load([(np.ones((1, 3)), None)])
    with pytest.raises(tessella.MissingPackage, match=f"pip install {package}"):
        network.to_torch() if package == "torch" else network.to_keras()
