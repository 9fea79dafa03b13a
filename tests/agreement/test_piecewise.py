"""Maxima, pooling and leaky units: sources agree with each other, and counts with brute force in rational arithmetic."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import warnings

import numpy as np
import pytest

import tessella
from helpers.brute_force import count_regions
from tessella.importers.activations import absolute, clip, largest, leaky, maximum
from tessella.importers.operators import Window, pool_maximum
from tessella.importers.trace import Trace

BOX = tessella.Box(-1, 1, dim=2)


def dense(trace, tensor, rows, rng):
    return trace.multiply(rng.standard_normal((rows, tensor.size)), tensor.reshape((-1,))).shift(rng.standard_normal(rows) / 2)


def pooled(trace, hidden):
    return pool_maximum(trace, hidden.reshape((1, 1, -1)), [3], Window([2], [(1, 1)], [1]))


# hidden units, and what follows them
KINDS = {
    "maxout": (6, lambda trace, hidden: largest(trace, hidden, np.arange(6).reshape(2, 3))),
    "pooling": (5, pooled),
    "maximum": (6, lambda trace, hidden: maximum(trace, hidden.take(np.arange(3)), hidden.take(np.arange(3, 6)))),
    "leaky": (4, lambda trace, hidden: leaky(trace, hidden, np.array([0.1, 0.5, -0.5, 0.0]))),
    "absolute": (4, absolute),
    "clip": (3, lambda trace, hidden: clip(trace, hidden, -0.5, 0.5)),
}


def network(kind, seed):
    rng = np.random.default_rng(seed)
    trace = Trace((2,))
    width, build = KINDS[kind]
    hidden = build(trace, dense(trace, trace.input, width, rng))
    return trace.network(dense(trace, trace.relu(dense(trace, hidden, 2, rng)), 1, rng))


def by_brute_force(net, box):
    return count_regions(
        [(layer.dense(), layer.bias, layer.rectified, layer.slope) for layer in net.layers], box.lower, box.upper
    )


@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_those_of_brute_force(kind):
    for seed in range(15):
        net = network(kind, seed)
        found = tessella.count(net, BOX)
        assert found.lower == found.upper == by_brute_force(net, BOX)
        assert tessella.upper_bounds(net, BOX).configuration >= found.upper
        assert tessella.upper_bounds(net, BOX).empirical >= found.upper
        expected = tessella.Counted.COMPARISONS if kind in {"maxout", "pooling"} else tessella.Counted.REGIONS
        assert all(bound.counted is expected for bound in found.bounds)


def test_who_wins_is_coarser_than_the_comparisons_that_find_it():
    """Regions by winners are at most as many as those by comparisons, so upper bounds hold for both."""
    points = np.stack(np.meshgrid(np.linspace(-1, 1, 80), np.linspace(-1, 1, 80)), axis=-1).reshape(-1, 2)
    fewer = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        weight, bias = rng.standard_normal((10, 2)), rng.standard_normal(10) / 3
        trace = Trace((2,))
        values = trace.multiply(weight, trace.input).shift(bias)
        net = trace.network(dense(trace, largest(trace, values, np.arange(10).reshape(2, 5)), 1, rng))
        winners = (points @ weight.T + bias).reshape(-1, 2, 5).argmax(axis=2)
        found, seen = tessella.count(net, BOX), len(np.unique(winners, axis=0))
        assert seen <= found.lower == by_brute_force(net, BOX)
        assert len(np.unique(net.patterns(points), axis=0)) <= found.lower
        fewer += seen < found.lower
    assert fewer > 7


# ---------------------------------------------------------------------------------------------- one LeNet, three sources


def lenet(torch):
    nn = torch.nn
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 2, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(2, 2, 2),
        nn.LeakyReLU(0.1),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2, 4),
        nn.ReLU(),
        nn.Linear(4, 3),
        nn.Softmax(-1),
    ).eval()


def in_keras(module):
    import keras

    layers, first = keras.layers, {"data_format": "channels_first"}
    model = keras.Sequential(
        [
            keras.Input((1, 8, 8)),
            layers.Conv2D(2, 3, activation="relu", **first),
            layers.MaxPooling2D(2, **first),
            layers.Conv2D(2, 2, **first),
            layers.LeakyReLU(0.1),
            layers.MaxPooling2D(2, **first),
            layers.Reshape((-1,)),
            layers.Dense(4, activation="relu"),
            layers.Dense(3, activation="softmax"),
        ]
    )
    weights = [tensor.detach().numpy() for tensor in module.parameters()]
    model.set_weights([w.transpose(2, 3, 1, 0) if w.ndim == 4 else w.T for w in weights])
    return model


def test_a_lenet_is_the_same_from_torch_keras_and_onnx(tmp_path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("keras")
    pytest.importorskip("onnxscript")
    module = lenet(torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, (torch.zeros(1, 1, 8, 8),), tmp_path / "net.onnx", dynamo=True, verbose=False)
    nets = [tessella.load(module, input_shape=(1, 8, 8)), tessella.load(in_keras(module)), tessella.load(tmp_path / "net.onnx")]
    points = np.random.default_rng(0).standard_normal((200, 64))
    expected = nets[0].patterns(points)
    for net in nets:
        assert net.source.difference < 1e-5
        assert [note for note in net.source.notes if "left off" in note]
        assert net.counted is tessella.Counted.COMPARISONS
        assert np.array_equal(net.patterns(points), expected)
    around = tessella.Box(np.full(64, 0.45), np.full(64, 0.55))
    found = tessella.analyze(nets[1], around, seconds=3)
    assert 1 <= found.proved_lower <= found.upper


def test_slices_say_what_is_counted():
    for kind, counted in (("maxout", tessella.Counted.COMPARISONS), ("leaky", tessella.Counted.REGIONS)):
        net = network(kind, 0)
        chosen = tessella.slice(net, domain=BOX, axes=(0,))
        assert chosen.network.counted is net.counted is counted
        assert dict(chosen.network.source.units) == dict(net.source.units)


def compared(values):
    """Which comparisons of overlapping windows of three, one apart, come out how: each window compares its first two values, and the larger with the third."""
    starts = range(values.shape[1] - 2)
    pairs = [values[:, at] > values[:, at + 1] for at in starts]
    thirds = [values[:, at : at + 2].max(axis=1) > values[:, at + 2] for at in starts]
    return np.stack(pairs + thirds, axis=1)


@pytest.mark.parametrize("seed", range(8))
def test_windows_that_overlap_have_no_slivers_from_rounding(seed):
    """Where a > b and b > c, c is not larger than a: not in a sliver either that rounding would make of lines through one point."""
    rng = np.random.default_rng(seed)
    trace = Trace((2,))
    first, second = rng.standard_normal((4, 2)), rng.standard_normal((5, 2))
    scores = trace.multiply(first, trace.input)
    larger = maximum(trace, scores.take(np.arange(2)), scores.take(np.arange(2, 4)))
    values = trace.multiply(second, larger).reshape((1, 1, 5))
    net = trace.network(dense(trace, pool_maximum(trace, values, [3], Window([1], [(0, 0)], [1])), 1, rng))
    points = rng.uniform(-1, 1, (50_000, 2))
    seen = (points @ first.T)[:, :2], (points @ first.T)[:, 2:]
    shown = np.column_stack([seen[0] > seen[1], compared(np.maximum(*seen) @ second.T)])
    assert tessella.count(net, BOX).exact == len(np.unique(shown, axis=0))
