"""Compressed ONNX models whose convolutions stay convolutions: the same outputs, by onnxruntime, and channels that are gone."""

from dataclasses import replace

import numpy as np
import pytest

import tessella
from helpers.onnx_models import model, node
from tessella import Box
from tessella.compressing.rewriting import write_rewritten

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

FLOAT = onnx.TensorProto.FLOAT
NEVER = -1e4  # as a bias: no input in [0, 1] makes up for it


def numbers(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def bias(seed, size, *never):
    found = numbers(seed, size)
    found[list(never)] = NEVER
    return found


def chain():
    """Two convolutions with batch norm and pooling, then two dense layers: by hand, each channel that goes goes for a reason."""
    weights = {
        "w": numbers(0, 5, 2, 3, 3), "b": bias(1, 5, 1, 4), "s": np.abs(numbers(2, 5)) + 0.1, "t": numbers(3, 5), "m": numbers(4, 5),
        "v": np.abs(numbers(5, 5)) + 0.5, "W": numbers(6, 6, 5, 2, 2), "B": bias(7, 6, 0), "g": numbers(8, 24, 7), "h": bias(9, 7, 2),
        "G": numbers(10, 3, 7),
    }  # fmt: skip
    weights["t"][[1, 4]] = NEVER
    weights["g"][4 * 3 : 4 * 4] = 0.0  # nobody reads channel 3
    weights["G"][:, 5] = 0.0  # nor unit 5
    nodes = [
        node("Conv", ["x", "w", "b"], "c", pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["c", "s", "t", "m", "v"], "n"),
        node("Relu", ["n"], "r"),
        node("AveragePool", ["r"], "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p", "W", "B"], "C", strides=[1, 1]),
        node("Relu", ["C"], "R"),
        node("Flatten", ["R"], "f"),
        node("MatMul", ["f", "g"], "d"),
        node("Add", ["d", "h"], "a"),
        node("Relu", ["a"], "q"),
        node("Gemm", ["q", "G"], "y", transB=1),
    ]
    return model(nodes, (1, 2, 6, 6), weights, element=FLOAT)


def written(proto, tmp_path, *, domain=(0, 1), method="linear"):
    """The model as it is written, what is said of it, and the compression."""
    proto.ir_version = 8
    for number, one in enumerate(proto.graph.node):
        one.name = f"{one.op_type}_{number}"  # each its own, as onnxruntime wants it
    found = tessella.compress(proto, domain, method=method)
    said = found.to_onnx(tmp_path / "smaller.onnx", like=proto)
    return onnx.load(tmp_path / "smaller.onnx"), said, found


def largest_difference(one, other, shape, points=10_000):
    """Of outputs, by onnxruntime, in single precision, relative to the largest output."""
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    both = [
        runtime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"]) for proto in (one, other)
    ]
    rng, most, size = np.random.default_rng(1), 0.0, 0.0
    for _ in range(points):
        point = rng.random((1, *shape), dtype=np.float32)
        outputs = [session.run(None, {"x": point})[0] for session in both]
        most, size = max(most, np.abs(outputs[0] - outputs[1]).max()), max(size, np.abs(outputs[0]).max())
    return most / max(size, 1e-30)


def shapes(proto):
    return {tuple(item.dims) for item in proto.graph.initializer}


def kept(said):
    return [(one.kind, one.units, one.kept, one.inactive, one.unread) for one in said.operators]


def test_channels_go_and_outputs_stay(tmp_path):
    proto = chain()
    smaller, said, found = written(proto, tmp_path)
    assert kept(said) == [("Conv", 5, 3, 2, 0), ("Conv", 6, 4, 1, 1), ("MatMul", 7, 5, 1, 1), ("Gemm", 3, 3, 0, 0)]
    assert [one.op_type for one in smaller.graph.node] == [one.op_type for one in proto.graph.node]
    assert {(3, 2, 3, 3), (3,), (4, 3, 2, 2), (4,), (16, 5), (5,), (3, 5)} == shapes(smaller)
    assert largest_difference(proto, smaller, (2, 6, 6)) < 1e-6
    assert (said.difference < 1e-12, said.points) == (True, 10_000)
    assert said.parameters == sum(int(np.prod(item.dims)) for item in smaller.graph.initializer) < said.before
    assert tessella.load(tmp_path / "smaller.onnx").relus == said.network.relus >= found.network.relus
    assert repr(said).startswith("Rewritten(11 -> 7 channels, ")
    assert said.to_dict()["operators"][0]["kept"] == 3


def test_maxima_and_written_shapes_are_followed(tmp_path):
    weights = {
        "w": numbers(0, 4, 1, 2),
        "b": bias(1, 4, 2),
        "z": np.array([1, -1]),
        "Z": np.array([1, 12]),
        "g": numbers(2, 12, 2),
    }
    for reshape in ("z", "Z"):
        nodes = [
            node("Conv", ["x", "w", "b"], "c"),
            node("Relu", ["c"], "r"),
            node("MaxPool", ["r"], "p", kernel_shape=[2], strides=[2]),
            node("Reshape", ["p", reshape], "f"),
            node("MatMul", ["f", "g"], "y"),
        ]
        proto = model(nodes, (1, 1, 7), weights, element=FLOAT)
        smaller, said, _ = written(proto, tmp_path)
        assert kept(said)[0] == ("Conv", 4, 3, 1, 0)
        assert largest_difference(proto, smaller, (1, 7), 500) < 1e-6


def test_what_is_no_plain_chain_stays_as_it_was(tmp_path):
    weights = {
        "w": numbers(0, 4, 1, 2, 2),
        "b": bias(1, 4, 2),
        "W": numbers(2, 4, 4, 1, 1),
        "V": numbers(3, 4, 1, 1, 1),
        "g": numbers(4, 36, 2),
    }
    nodes = [
        node("Conv", ["x", "w", "b"], "c"),
        node("Relu", ["c"], "r"),
        node("Conv", ["r", "W", "b"], "d"),  # a branch
        node("Relu", ["d"], "e"),
        node("Add", ["e", "r"], "s"),
        node("Conv", ["s", "V", "b"], "k", group=4),
        node("LeakyRelu", ["k"], "l"),
        node("Flatten", ["l"], "f"),
        node("Gemm", ["f", "g"], "y"),
    ]
    proto = model(nodes, (1, 1, 4, 4), weights, element=FLOAT)
    smaller, said, _ = written(proto, tmp_path)
    assert [one.why for one in said.operators] == [
        "it is read in several places, or is an output", "Add reads it", "it has groups, or its weights are no matrix", "its units are outputs",
    ]  # fmt: skip
    assert shapes(smaller) == shapes(proto)


def test_a_weight_that_two_convolutions_share_is_cut_for_each_alone(tmp_path):
    weights = {"w": numbers(0, 3, 3, 1), "b": bias(1, 3, 0), "B": bias(2, 3, 1), "g": numbers(3, 12, 2)}
    nodes = [
        node("Conv", ["x", "w", "b"], "c"),
        node("Relu", ["c"], "r"),
        node("Conv", ["r", "w", "B"], "d"),
        node("Relu", ["d"], "e"),
        node("Flatten", ["e"], "f"),
        node("MatMul", ["f", "g"], "y"),
    ]
    proto = model(nodes, (1, 3, 4), weights, element=FLOAT)
    smaller, said, _ = written(proto, tmp_path)
    assert [one.kept for one in said.operators] == [2, 2, 2]
    assert largest_difference(proto, smaller, (3, 4), 500) < 1e-6


def test_a_layer_that_is_never_active_keeps_one_channel(tmp_path):
    weights = {"w": numbers(0, 3, 1, 2), "b": bias(1, 3, 0, 1, 2), "g": numbers(2, 9, 2), "h": numbers(3, 2)}
    nodes = [
        node("Conv", ["x", "w", "b"], "c"), node("Relu", ["c"], "r"), node("Flatten", ["r"], "f"), node("Gemm", ["f", "g", "h"], "y"),
    ]  # fmt: skip
    proto = model(nodes, (1, 1, 4), weights, element=FLOAT)
    smaller, said, found = written(proto, tmp_path)
    assert (said.operators[0].kept, found.network.relus, found.constant_outputs) == (1, 0, (0, 1))
    assert largest_difference(proto, smaller, (1, 4), 100) == 0.0


def test_sizes_that_the_model_leaves_open_are_asked_for(tmp_path):
    weights = {"w": numbers(0, 3, 1, 2), "b": bias(1, 3, 1), "g": numbers(2, 3, 2)}
    nodes = [
        node("Conv", ["x", "w", "b"], "c"), node("Relu", ["c"], "r"), node("GlobalAveragePool", ["r"], "p"), node("Flatten", ["p"], "f"),
        node("Gemm", ["f", "g"], "y"),
    ]  # fmt: skip
    proto = model(nodes, ("batch", 1, "length"), weights, element=FLOAT)
    network = tessella.load(proto, input_shape=(1, 5))
    found = tessella.compress(network, (0, 1))
    said = found.to_onnx(tmp_path / "smaller.onnx", like=proto)
    assert (said.operators[0].kept, said.points) == (2, 10_000)


def test_probabilities_at_the_end_stay_in_the_file(tmp_path):
    weights = {"w": numbers(0, 3, 1, 2), "b": bias(1, 3, 1), "g": numbers(2, 9, 2)}
    nodes = [
        node("Conv", ["x", "w", "b"], "c"), node("Relu", ["c"], "r"), node("Flatten", ["r"], "f"), node("Gemm", ["f", "g"], "o"),
        node("Softmax", ["o"], "y"),
    ]  # fmt: skip
    proto = model(nodes, (1, 1, 4), weights, element=FLOAT)
    smaller, said, _ = written(proto, tmp_path)
    assert (said.operators[0].kept, smaller.graph.node[-1].op_type) == (2, "Softmax")
    assert largest_difference(proto, smaller, (1, 4), 200) < 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_random_chains_agree(tmp_path, seed):
    rng = np.random.default_rng([9, seed])
    channels, size, steps, constants, nodes, name = 2, 9, int(rng.integers(1, 4)), {}, [], "x"
    for step in range(steps):
        out, width = int(rng.integers(2, 6)), int(rng.integers(1, 4))
        pad, stride = int(rng.integers(0, 2)), int(rng.integers(1, 3))
        w, b = rng.standard_normal((out, channels, width)), rng.standard_normal(out) - 4.0 * rng.random(out) * rng.integers(0, 3)
        w[:, rng.random(channels) < 0.3] = 0.0
        constants |= {f"w{step}": w.astype(np.float32), f"b{step}": b.astype(np.float32)}
        nodes.append(node("Conv", [name, f"w{step}", f"b{step}"], f"c{step}", pads=[pad, pad], strides=[stride]))
        nodes.append(node("Relu", [f"c{step}"], f"r{step}"))
        channels, size, name = out, (size + 2 * pad - width) // stride + 1, f"r{step}"
        if size > 3 and rng.random() < 0.5:
            kind = ("AveragePool", "MaxPool")[int(rng.integers(2))]
            nodes.append(node(kind, [name], f"p{step}", kernel_shape=[2], strides=[2]))
            size, name = size // 2, f"p{step}"
    constants["g"] = (rng.standard_normal((channels * size, 2)) * (rng.random((channels * size, 1)) < 0.6)).astype(np.float32)
    nodes += [node("Flatten", [name], "f"), node("MatMul", ["f", "g"], "y")]
    proto = model(nodes, (1, 2, 9), constants, element=FLOAT)
    try:
        smaller, said, _ = written(proto, tmp_path, method="milp")
    except tessella.UnsupportedModel as error:
        assert "does not depend on the input" in str(error)
        return
    assert largest_difference(proto, smaller, (2, 9), 300) < 1e-5
    assert all(one.kept + one.inactive + one.unread == one.units for one in said.operators)


def test_another_model_is_refused(tmp_path):
    proto, other = chain(), chain()
    proto.ir_version = 8
    found = tessella.compress(proto, (0, 1), method="linear")
    other.graph.initializer[0].raw_data = (numbers(99, 5, 2, 3, 3)).tobytes()
    with pytest.raises(tessella.OptionError, match="give the model that the network was read from"):
        found.to_onnx(tmp_path / "smaller.onnx", like=other)
    with pytest.raises(tessella.OptionError, match="like is a list"):
        found.to_onnx(tmp_path / "smaller.onnx", like=[])
    with pytest.raises(tessella.FileMissing, match="no such file"):
        found.to_onnx(tmp_path / "smaller.onnx", like=tmp_path / "none.onnx")
    read = tessella.Compression.from_json(found.to_json())
    with pytest.raises(tessella.OptionError, match="was read from JSON"):
        read.to_onnx(tmp_path / "smaller.onnx", like=proto)
    assert not (tmp_path / "smaller.onnx").exists()


def test_channels_that_are_not_stable_are_noticed(tmp_path):
    """Bounds that do not hold would remove channels that matter; the check of outputs sees it, and nothing is written."""
    proto = chain()
    proto.ir_version = 8
    network = tessella.load(proto)
    known = tessella.stability(network, (0, 1), method="linear")
    low, high = ([part.copy() for part in ends] for ends in (known.bounds.lower, known.bounds.upper))
    low[0][:36], high[0][:36] = -1.0, 0.0  # the whole first channel
    lying = replace(known, bounds=replace(known.bounds, lower=tuple(low), upper=tuple(high)))
    with pytest.raises(tessella.ConversionMismatch, match="after channels were removed; please report this model"):
        write_rewritten(proto, lying, tmp_path / "smaller.onnx")
    assert not list(tmp_path.iterdir())


def test_without_a_model_to_be_like_all_is_dense(tmp_path):
    found = tessella.compress(chain(), Box(0, 1, dim=72), method="linear")
    assert found.to_onnx(tmp_path / "dense.onnx") is None
    assert tessella.load(tmp_path / "dense.onnx") == found.network
