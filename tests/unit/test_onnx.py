"""ONNX models, operator by operator, against the reference evaluator and against numpy."""

import gzip
import itertools

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from helpers.onnx_models import model, node
from tessella import ConversionMismatch, FileError, FileMissing, UnsupportedModel, UnsupportedOperator, load

RNG = np.random.default_rng(7)


def agrees(proto, shape, points=20, **options):
    """Read, and compare with the reference evaluator where ReLUs are mixed."""
    network = load(proto, **options)
    evaluator = ReferenceEvaluator(proto)
    for _ in range(points):
        x = RNG.standard_normal(shape)
        expected = np.ravel(evaluator.run(None, {"x": x})[0])
        assert np.allclose(network(x.ravel()), expected, atol=1e-11, rtol=1e-11)
    return network


def weights(*shape):
    return RNG.standard_normal(shape)


OPERATORS = {
    "Gemm": ([node("Gemm", "xwb", transB=1, alpha=0.5, beta=2.0)], (1, 4), {"w": weights(3, 4), "b": weights(3)}),
    "Gemm without bias": ([node("Gemm", "xw")], (1, 4), {"w": weights(4, 3)}),
    "Gemm with the tensor on the right": ([node("Gemm", "wx", transA=1)], (4, 1), {"w": weights(4, 3)}),
    "MatMul and Add": ([node("MatMul", "xw", "t"), node("Add", "tb")], (1, 4), {"w": weights(4, 3), "b": weights(3)}),
    "MatMul from the left": (
        [node("MatMul", "wx", "t"), node("Add", "bt")],
        (1, 4, 1),
        {"w": weights(3, 4), "b": weights(1, 3, 1)},
    ),
    "MatMul of a vector": ([node("MatMul", "wx")], (4,), {"w": weights(3, 4)}),
    "MatMul in a batch": ([node("MatMul", "xw")], (1, 2, 4), {"w": weights(4, 3)}),
    "Sub": ([node("Sub", "xb")], (1, 4), {"b": weights(4)}),
    "Sub from a constant": ([node("Sub", "bx")], (1, 4), {"b": weights(4)}),
    "Sub of a number": ([node("Sub", "xb")], (1, 4), {"b": np.array(0.1307)}),
    "Gemm with a number as bias": ([node("Gemm", "xwb", beta=2.0)], (1, 4), {"w": weights(4, 3), "b": np.array(0.5)}),
    "Div by a number": ([node("Div", "xb")], (1, 4), {"b": np.array(0.3081)}),
    "Mul": ([node("Mul", "bx")], (1, 4), {"b": weights(4)}),
    "Mul that widens": ([node("Mul", "xb")], (1, 4), {"b": weights(3, 1)}),
    "Div": ([node("Div", "xb")], (1, 4), {"b": np.array([0.5, -2.0, 3.0, 1.0])}),
    "Neg": ([node("Neg", "x")], (1, 4), {}),
    "Relu": ([node("Relu", "x")], (1, 4), {}),
    "Clip as a ReLU": ([node("Clip", ["x", "z"])], (1, 4), {"z": np.array(0.0)}),
    "Clip on both sides": ([node("Clip", ["x", "l", "h"])], (1, 4), {"l": np.array(-0.25), "h": np.array(0.5)}),
    "Clip from above": ([node("Clip", ["x", "", "h"])], (1, 4), {"h": np.array(0.5)}),
    "Sum of three": ([node("Relu", "x", "t"), node("Sum", "xtb")], (1, 4), {"b": weights(4)}),
    "Flatten": ([node("Flatten", "x")], (1, 2, 3), {}),
    "Reshape": ([node("Reshape", "xs")], (1, 6), {"s": np.array([0, -1, 2])}),
    "Transpose": ([node("Transpose", "x", perm=[0, 2, 1])], (1, 2, 3), {}),
    "Transpose in full": ([node("Transpose", "x")], (1, 2, 3), {}),
    "Identity": ([node("Identity", "x")], (1, 4), {}),
    "Dropout": ([node("Dropout", "x")], (1, 4), {}),
    "Cast": ([node("Cast", "x", to=TensorProto.DOUBLE)], (1, 4), {}),
    "Squeeze": ([node("Squeeze", "xs")], (1, 1, 4), {"s": np.array([1])}),
    "Squeeze all": ([node("Squeeze", "x")], (1, 1, 4), {}),
    "Unsqueeze": ([node("Unsqueeze", "xs")], (1, 4), {"s": np.array([-1, 1])}),
    "Concat": ([node("Relu", "x", "t"), node("Concat", "txb", axis=1)], (1, 4), {"b": weights(1, 2)}),
    "Slice": (
        [node("Slice", "xseat")],
        (1, 6),
        {"s": np.array([5]), "e": np.array([-100]), "a": np.array([1]), "t": np.array([-2])},
    ),
    "Gather": ([node("Gather", "xi", axis=1)], (1, 4), {"i": np.array([[3, 0], [-1, 2]])}),
    "Split": ([node("Split", "x", ("t", "y"), axis=1)], (1, 4), {}),
    "Pad": ([node("Pad", "xp")], (1, 2, 3), {"p": np.array([0, 1, 0, 0, 0, 2])}),
    "Expand": ([node("Expand", "xs")], (1, 4), {"s": np.array([3, 4])}),
    "ReduceMean": ([node("ReduceMean", "x", axes=[1, 2], keepdims=0)], (1, 2, 3), {}),
    "ReduceSum": ([node("ReduceSum", "xa")], (1, 2, 3), {"a": np.array([-1])}),
    "GlobalAveragePool": ([node("GlobalAveragePool", "x")], (1, 2, 3, 4), {}),
    "BatchNormalization": (
        [node("BatchNormalization", "xsbmv", epsilon=1e-3)],
        (1, 3, 2, 2),
        {"s": weights(3), "b": weights(3), "m": weights(3), "v": np.array([0.5, 1.0, 2.0])},
    ),
    "Conv": ([node("Conv", "xwb")], (1, 2, 5, 6), {"w": weights(3, 2, 3, 2), "b": weights(3)}),
    "Conv with strides and pads": (
        [node("Conv", "xw", strides=[2, 1], pads=[1, 0, 2, 1])],
        (1, 2, 5, 6),
        {"w": weights(3, 2, 3, 2)},
    ),
    "Conv with dilations": ([node("Conv", "xw", dilations=[2, 2])], (1, 1, 6, 7), {"w": weights(2, 1, 2, 3)}),
    "Conv in groups": ([node("Conv", "xw", group=2)], (1, 4, 4, 4), {"w": weights(6, 2, 2, 2)}),
    "Conv padded to the same size": (
        [node("Conv", "xw", auto_pad="SAME_UPPER", strides=[2, 2])],
        (1, 1, 5, 6),
        {"w": weights(1, 1, 2, 3)},
    ),
    "Conv of one axis": ([node("Conv", "xw", pads=[1, 1])], (1, 2, 6), {"w": weights(3, 2, 3)}),
    "Conv of three axes": ([node("Conv", "xw")], (1, 1, 3, 4, 3), {"w": weights(2, 1, 2, 2, 2)}),
    "AveragePool": ([node("AveragePool", "x", kernel_shape=[2, 2], strides=[2, 2])], (1, 2, 4, 6), {}),
    "AveragePool with pads": ([node("AveragePool", "x", kernel_shape=[3, 3], pads=[1, 1, 1, 1])], (1, 1, 4, 4), {}),
    "AveragePool that counts pads": (
        [node("AveragePool", "x", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)],
        (1, 1, 4, 4),
        {},
    ),
    "shape arithmetic": (
        [
            node("Shape", "x", "s"),
            node("Gather", ["s", "zero"], "n"),
            node("Unsqueeze", ["n", "axes"], "m"),
            node("Concat", ["m", "rest"], "t", axis=0),
            node("Reshape", "xt"),
        ],
        (1, 2, 3),
        {"zero": np.array(0), "axes": np.array([0]), "rest": np.array([-1])},
    ),
    "Relu of a constant": ([node("Relu", "b", "c"), node("Add", "xc")], (1, 4), {"b": weights(4)}),
    "constants as nodes": (
        [node("Constant", [], "w", value=numpy_helper.from_array(weights(4, 2))), node("MatMul", "xw")],
        (1, 4),
        {},
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_equals_the_reference(name):
    nodes, shape, constants = OPERATORS[name]
    agrees(model(nodes, shape, constants), shape)


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_between_relus_equals_the_reference(name):
    nodes, shape, constants = OPERATORS[name]
    renamed = [node("Relu", "x", "x0")]
    for part in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(part)
        copy.input[:] = ["x0" if entry == "x" else entry for entry in part.input]
        copy.output[:] = ["y0" if entry == "y" else entry for entry in part.output]
        renamed.append(copy)
    shift = {"shift": np.array(-0.1)}
    renamed += [node("Add", ["y0", "shift"], "y1"), node("Relu", ["y1"])]
    agrees(model(renamed, shape, {**constants, **shift}), shape)


def test_old_operator_sets_keep_axes_in_attributes():
    proto = model([node("Unsqueeze", "x", "t", axes=[1]), node("Squeeze", "t", axes=[1])], (1, 4), opset=11)
    agrees(proto, (1, 4))
    agrees(model([node("Clip", "x", min=0.0)], (1, 4), opset=6), (1, 4))
    agrees(model([node("Reshape", "xs")], (1, 4), {"s": np.array([2, 2])}, opset=5), (1, 4))


def test_initializers_that_are_listed_as_inputs_too():
    agrees(model([node("Gemm", "xwb")], (1, 4), {"w": weights(4, 3), "b": weights(3)}, as_inputs=True), (1, 4))


def test_acas_xu_style_file():
    """Input (1, 1, 1, 5), normalised, flattened, six layers of 50 by MatMul and Add."""
    sizes = [5, 50, 50, 50, 50, 50, 50, 5]
    nodes, constants = [node("Sub", ["x", "mean"], "c"), node("Flatten", "c", "h0", axis=1)], {"mean": weights(1, 1, 1, 5)}
    for layer, (before, size) in enumerate(itertools.pairwise(sizes)):
        constants[f"w{layer}"], constants[f"b{layer}"] = weights(before, size) / np.sqrt(before), weights(size)
        last = layer == len(sizes) - 2
        nodes.append(node("MatMul", [f"h{layer}", f"w{layer}"], [f"m{layer}"]))
        nodes.append(node("Add", [f"m{layer}", f"b{layer}"], ["y" if last else f"a{layer}"]))
        if not last:
            nodes.append(node("Relu", [f"a{layer}"], [f"h{layer + 1}"]))
    network = agrees(model(nodes, (1, 1, 1, 5), constants), (1, 1, 1, 5))
    assert network.shape == "5-50-50-50-50-50-50-5"
    assert network.source.input_shape == (1, 1, 5)


def test_mnist_fc_style_file():
    """Input (1, 784, 1), weights on the left."""
    constants = {"w0": weights(20, 784), "b0": weights(20, 1), "w1": weights(10, 20), "b1": weights(10, 1)}
    nodes = [
        node("MatMul", ["w0", "x"], "a"),
        node("Add", ["a", "b0"], "b"),
        node("Relu", "b", "c"),
        node("MatMul", ["w1", "c"], "d"),
        node("Add", ["d", "b1"], "e"),
        node("Flatten", "e"),
    ]
    assert agrees(model(nodes, (1, 784, 1), constants), (1, 784, 1)).shape == "784-20-10"


def test_residual_sum_is_carried_by_linear_units():
    nodes = [
        node("MatMul", ["x", "w0"], "a"),
        node("Relu", "a", "h"),
        node("MatMul", ["h", "w1"], "b"),
        node("Add", ["x", "b"], "s"),
        node("Relu", "s", "t"),
        node("MatMul", ["t", "w2"]),
    ]
    network = agrees(model(nodes, (1, 4), {"w0": weights(4, 6), "w1": weights(6, 4), "w2": weights(4, 2)}), (1, 4))
    assert network.shape == "4-6+4-4-2"
    assert network.widths == (6, 4)


def test_a_long_chain_of_residual_sums_does_not_grow():
    nodes, constants, before = [], {}, "x"
    for block in range(6):
        constants[f"w{block}"], constants[f"v{block}"] = weights(4, 5), weights(5, 4)
        nodes += [
            node("MatMul", [before, f"w{block}"], [f"a{block}"]),
            node("Relu", [f"a{block}"], [f"h{block}"]),
            node("MatMul", [f"h{block}", f"v{block}"], [f"b{block}"]),
            node("Add", [before, f"b{block}"], ["y" if block == 5 else f"s{block}"]),
        ]
        before = f"s{block}"
    assert agrees(model(nodes, (1, 4), constants), (1, 4)).shape == "4" + 6 * "-5+4" + "-4"


def test_a_linear_bottleneck_is_kept_as_a_layer():
    nodes = [node("MatMul", ["x", "w"], "a"), node("MatMul", ["a", "v"], "b"), node("Relu", "b")]
    network = agrees(model(nodes, (1, 9), {"w": weights(9, 2), "v": weights(2, 9)}), (1, 9))
    assert network.shape == "9-2-9"
    assert network.widths == (9,)


def test_a_model_that_ends_in_a_relu_has_no_layer_after_it():
    network = agrees(model([node("Gemm", "xw", "t"), node("Relu", "t")], (1, 4), {"w": weights(4, 3)}), (1, 4))
    assert network.widths == (3,)
    assert len(network.layers) == 1


def test_convolutions_are_sparse():
    network = agrees(
        model([node("Conv", "xw", "t"), node("Relu", "t")], (1, 1, 20, 20), {"w": weights(2, 1, 3, 3)}), (1, 1, 20, 20)
    )
    assert "sparse" in repr(network.layers[0])


def test_a_file_is_read_plain_and_gzipped(tmp_path):
    proto = model([node("Relu", "x")])
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    with gzip.open(tmp_path / "m.onnx.gz", "wb") as file:
        file.write(proto.SerializeToString())
    network = load(tmp_path / "m.onnx")
    assert network == load(str(tmp_path / "m.onnx.gz"))
    assert network.source.name == "m.onnx"
    assert network.source.points > 0


def test_weights_beside_the_file_are_found(tmp_path):
    proto = model([node("MatMul", "xw")], (1, 40), {"w": weights(40, 30)})
    expected = load(proto)
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert load(tmp_path / "m.onnx") == expected
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(FileError, match=r"m\.onnx: its weights 'w' are stored in 'weights.bin', which is not beside it"):
        load(tmp_path / "m.onnx")


def test_an_open_batch_size_is_one_and_other_open_sizes_are_asked_for():
    assert load(model([node("Relu", "x")], ("batch", 4))).input_dim == 4
    assert load(model([node("Relu", "x")], (None, 4))).input_dim == 4
    proto = model([node("Relu", "x")], ("n", 3, "h", "w"))
    with pytest.raises(UnsupportedModel, match=r"input_shape=\(3, 32, 32\)"):
        load(proto)
    assert load(proto, input_shape=(3, 2, 5)).input_dim == 30
    with pytest.raises(UnsupportedModel, match="does not fit"):
        load(proto, input_shape=(4, 2, 5))


def test_one_of_several_outputs_is_chosen_by_name():
    proto = model([node("Relu", "x", "t"), node("Neg", "t")], outputs=("t", "y"))
    assert load(proto, output="t").shape == "4-4"
    assert load(proto, output="y").shape == "4-4-4"
    with pytest.raises(UnsupportedModel, match="no output 'z'"):
        load(proto, output="z")


@pytest.mark.parametrize("kind", ["Sigmoid", "Tanh", "Softmax", "Exp", "Gelu"])
def test_operators_in_the_middle_that_are_not_piecewise_linear_are_named(kind):
    where = rf"ModelProto: node '(Relu_1|{kind}_1)' .*{kind}\)?, which is not piecewise linear"
    with pytest.raises(UnsupportedOperator, match=where) as caught:
        load(model([node("Relu", "x", "s"), node(kind, "s", "t"), node("Relu", "t")]))
    assert "read the network up to there by naming that tensor, output='s'" in str(caught.value)


@pytest.mark.parametrize(
    ("nodes", "shape", "constants", "words"),
    [
        ([node("TopK", ["x", "k"])], (1, 4), {"k": np.array([2])}, "is of type TopK, which cannot be read"),
        ([node("Mul", "xx")], (1, 4), {}, "not piecewise linear"),
        ([node("MatMul", "xx")], (4, 4), {}, "not piecewise linear"),
        ([node("Div", "bx")], (1, 4), {"b": weights(4)}, "divides by a value that depends on the input"),
        ([node("Div", "xb")], (1, 4), {"b": np.zeros(4)}, "divides by zero"),
        ([node("Clip", ["x", "l", "h"])], (1, 4), {"l": np.array(1.0), "h": np.array(0.0)}, "which is empty"),
        ([node("Relu", "q")], (1, 4), {}, "reads 'q', which nothing defines"),
        ([node("Relu", "b")], (1, 4), {"b": weights(4)}, "does not depend on the input"),
        ([node("Identity", "b")], (1, 4), {"b": weights(4)}, "does not depend on the input"),
        ([node("MatMul", "xw")], (1, 4), {"w": weights(3, 3)}, "does not fit"),
        ([node("Conv", "xw")], (1, 2, 2, 2), {"w": weights(1, 2, 3, 3)}, "does not fit"),
        ([node("Conv", "xw")], (1, 3, 4, 4), {"w": weights(1, 2, 3, 3)}, "cannot read 3 channels"),
        ([node("Conv", "xw", pads=[10**9] * 4)], (1, 1, 4, 4), {"w": weights(1, 1, 3, 3)}, "can be read"),
        ([node("Reshape", "xs")], (1, 4), {"s": np.array([3, 5])}, "cannot be reshaped"),
        ([node("Gather", "xi", axis=1)], (1, 4), {"i": np.array([9])}, "outside an axis"),
        ([node("Expand", "xs")], (1, 4), {"s": np.array([10**9, 4])}, "at most"),
        ([node("Transpose", "x", perm=[0, 0])], (1, 4), {}, "names axes"),
        ([node("Add", "xb")], (1, 4), {"b": weights(3)}, "cannot be combined"),
        ([node("Dropout", "xrt")], (1, 4), {"r": np.array(0.5), "t": np.array(True)}, "evaluation mode"),
        ([node("Cast", "x", to=TensorProto.INT64)], (1, 4), {}, "not floating-point"),
    ],
)
def test_what_cannot_be_read_says_why(nodes, shape, constants, words):
    with pytest.raises((UnsupportedModel, FileError), match=words):
        load(model(nodes, shape, constants))


def test_inputs_that_are_not_real_are_refused():
    with pytest.raises(UnsupportedModel, match=r"of type int64; .* inputs=\{'x': array\} \(--input x=FILE in a shell\)"):
        load(model([node("Relu", "x")], element=TensorProto.INT64))


def test_custom_domains_are_refused():
    proto = model([helper.make_node("Relu", ["x"], ["y"], domain="com.acme")])
    with pytest.raises(UnsupportedOperator, match=r"com\.acme"):
        load(proto)


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x00" * 100, b"PK\x03\x04" + bytes(50)])
def test_files_that_are_no_models_get_one_line(tmp_path, content):
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(FileError) as caught:
        load(path)
    assert "m.onnx" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(FileMissing, match="no such file"):
        load(tmp_path / "none.onnx")
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(FileError, match="is a folder"):
        load(tmp_path / "folder.onnx")


def test_a_wrong_conversion_is_noticed(monkeypatch):
    from tessella.importers.onnx_index import OPERATORS as READ
    from tessella.importers.onnx_node import Operator

    monkeypatch.setitem(READ, "Neg", Operator(lambda node: [node.tensor()]))
    with pytest.raises(ConversionMismatch, match="differs from the onnx model"):
        load(model([node("Neg", "x")]))


def test_operators_that_nobody_reads_are_left_out():
    network = load(model([node("Sigmoid", "x", "unused"), node("Relu", "x")]))
    assert network.shape == "4-4"


def test_half_precision_is_compared_as_such():
    constants = {"w": weights(40, 30).astype(np.float16)}
    network = load(model([node("MatMul", "xw", "t"), node("Relu", "t")], (1, 40), constants, element=TensorProto.FLOAT16))
    assert network.source.difference < 0.016


def test_an_operator_set_too_old_says_so():
    with pytest.raises(UnsupportedModel, match=r"cannot evaluate it in operator set 1 .*version_converter"):
        load(model([node("Gemm", "xwb", broadcast=1)], (1, 4), {"w": weights(4, 3), "b": weights(3)}, opset=1))
