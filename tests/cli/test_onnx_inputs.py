"""ONNX models of several inputs on the command line, and what is said of how they are read."""

import numpy as np
import pytest
from onnx import TensorProto, helper, save

from helpers.onnx_models import model, node


@pytest.fixture
def two_inputs(tmp_path):
    nodes = [node("Mul", "xz", "a"), node("MatMul", "aw", "b"), node("Relu", "b", "s"), node("Softmax", "s")]
    proto = model(nodes, constants={"w": np.eye(4)[:, :3]})
    proto.graph.input.append(helper.make_tensor_value_info("z", TensorProto.DOUBLE, (1, 4)))
    save(proto, tmp_path / "m.onnx")
    np.save(tmp_path / "mask.npy", np.array([1, 0, 1, 1]))
    np.save(tmp_path / "nan.npy", np.array([1, 0, np.nan, 1]))
    return tmp_path


def test_an_input_is_fixed_from_a_file(run, two_inputs):
    done = run("show", two_inputs / "m.onnx", "--input", f"z={two_inputs / 'mask.npy'}")
    assert done.code == 0
    assert "Note: fixed inputs: z." in done.err
    assert "Note: left off at the end" in done.err
    refused = run("show", two_inputs / "m.onnx")
    assert refused.code == 2
    assert "multiplies two values that both depend on the input" in refused.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mask.npy", "a name and a file"),
        ("z=none.npy", "no such file"),
        ("q=mask.npy", "no input 'q'"),
        ("z=m.onnx", "no .npy file"),
        ("z=nan.npy", "the array to fix input 'z' holds nan"),
        ("=mask.npy", "a name and a file"),
    ],
)
def test_what_is_no_input_gets_one_line(run, two_inputs, text, words):
    done = run("show", two_inputs / "m.onnx", "--input", text.replace("=", f"={two_inputs}/"))
    assert done.code == 2
    assert words in done.err
    assert done.err.count("\n") == 1


def test_an_input_is_fixed_once(run, two_inputs):
    text = f"z={two_inputs}/mask.npy"
    done = run("show", two_inputs / "m.onnx", "--input", text, "--input", text)
    assert (done.code, done.err) == (2, "tessella: error: --input fixes 'z' 2 times; give it one array\n")
    assert "a name and a file" in run("show", two_inputs / "m.onnx", "--input", "z=").err


def test_what_is_counted_is_said_where_maxima_have_more_than_two_values(run, tmp_path):
    for kernel in (2, 3):
        save(model([node("MaxPool", "x", kernel_shape=[kernel])], (1, 1, 3)), tmp_path / "m.onnx")
        done = run("count", tmp_path / "m.onnx", "--box", "0,1")
        assert ("Note: what is counted: full-dimensional regions, told apart by every comparison" in done.err) == (kernel == 3)
