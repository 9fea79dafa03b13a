"""ONNX operators in single precision, against onnxruntime."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from helpers.onnx_models import model, node
from tessella import UnsupportedModel, load

onnxruntime = pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(11)


def single(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def integers(*numbers):
    return np.array(numbers, dtype=np.int64)


def number(value):
    return np.array(value, dtype=np.float32)


def runs_as(proto, shape, points=12):
    """Read a model, and compare it with onnxruntime at points on both sides of every kink near the origin."""
    network = load(proto)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # as the operators say
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for size in np.linspace(0.3, 3.0, points):
        x = (size * RNG.standard_normal(shape)).astype(np.float32)
        expected = np.concatenate([np.ravel(part) for part in session.run(None, {"x": x})])
        found = network(x.ravel().astype(np.float64))
        assert found.shape == expected.shape
        assert np.allclose(found, expected, atol=2e-5, rtol=2e-5)
    return network


def build(nodes, shape, constants=None, **options):
    for place, part in enumerate(nodes):
        part.name = f"{part.op_type}_{place}"
    proto = model(nodes, shape, constants, element=TensorProto.FLOAT, **options)
    proto.ir_version = 8  # what onnxruntime reads may be older than what onnx writes
    return proto


OPERATORS = {
    "LeakyRelu": ([node("LeakyRelu", "x", alpha=0.2)], (1, 4), {}),
    "LeakyRelu, default slope": ([node("LeakyRelu", "x")], (1, 4), {}),
    "PRelu": ([node("PRelu", "xs")], (1, 3, 2), {"s": single(3, 1)}),
    "PRelu of one slope": ([node("PRelu", "xs")], (1, 4), {"s": single(1)}),
    "Abs": ([node("Abs", "x")], (1, 4), {}),
    "ThresholdedRelu": ([node("ThresholdedRelu", "x", alpha=0.0)], (1, 4), {}),
    "Shrink": ([node("Shrink", "x", lambd=0.4, bias=0.4)], (1, 4), {}),
    "HardSigmoid": ([node("HardSigmoid", "x", alpha=0.3, beta=0.4)], (1, 4), {}),
    "Clip": ([node("Clip", ["x", "l", "h"])], (1, 4), {"l": number(-0.5), "h": number(0.25)}),
    "Clip below zero": ([node("Clip", ["x", "l", "h"])], (1, 4), {"l": number(-1.5), "h": number(-0.25)}),
    "Clip from below": ([node("Clip", ["x", "l"])], (1, 4), {"l": number(-0.5)}),
    "Max of two": ([node("Neg", "x", "t"), node("Max", "xt")], (1, 4), {}),
    "Max of a tensor and constants": ([node("Max", "xc")], (1, 4), {"c": single(3, 1)}),
    "Max of four": ([node("Gemm", "xw", "t"), node("Max", "xtcx")], (1, 4), {"w": single(4, 4), "c": single(4)}),
    "Max of three": ([node("Gemm", "xw", "t"), node("Max", "xtv"), node("Neg", "x", "v")], (1, 4), {"w": single(4, 4)}),
    "Max of one": ([node("Max", "x")], (1, 4), {}),
    "Min of three": ([node("Gemm", "xw", "t"), node("Neg", "x", "u"), node("Min", "xtu")], (1, 4), {"w": single(4, 4)}),
    "Mean of three": ([node("Relu", "x", "t"), node("Mean", "xtc")], (1, 4), {"c": single(4)}),
    "ReduceMax": ([node("ReduceMax", "xa", keepdims=0)], (1, 3, 4), {"a": integers(1)}),
    "ReduceMin over all": ([node("ReduceMin", "x")], (1, 3, 2), {}),
    "ReduceL1": ([node("ReduceL1", "xa")], (1, 3, 2), {"a": integers(-1)}),
    "ReduceSum over none": ([node("ReduceSum", "x", noop_with_empty_axes=1)], (1, 3), {}),
    "MaxPool": ([node("MaxPool", "x", kernel_shape=[2, 2], strides=[2, 2])], (1, 2, 4, 6), {}),
    "MaxPool that overlaps": ([node("MaxPool", "x", kernel_shape=[3, 2], pads=[1, 0, 1, 1])], (1, 2, 4, 4), {}),
    "MaxPool with dilation": ([node("MaxPool", "x", kernel_shape=[2, 2], dilations=[2, 1])], (1, 1, 5, 3), {}),
    "MaxPool in ceil mode": ([node("MaxPool", "x", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)], (1, 1, 5, 4), {}),
    "MaxPool of the same size": ([node("MaxPool", "x", kernel_shape=[3], auto_pad="SAME_UPPER")], (1, 2, 5), {}),
    "MaxPool of three axes": ([node("MaxPool", "x", kernel_shape=[2, 2, 2])], (1, 1, 3, 2, 3), {}),
    "GlobalMaxPool": ([node("GlobalMaxPool", "x")], (1, 2, 2, 3), {}),
    "BatchNormalization": (
        [node("BatchNormalization", "xsbmv", epsilon=1e-3)],
        (1, 3, 2, 2),
        {"s": single(3), "b": single(3), "m": single(3), "v": np.array([0.5, 1.0, 2.0], dtype=np.float32)},
    ),
    "ConvTranspose": ([node("ConvTranspose", "xwb", strides=[2, 2])], (1, 2, 3, 3), {"w": single(2, 3, 3, 2), "b": single(3)}),
    "ConvTranspose with all there is": (
        [node("ConvTranspose", "xw", strides=[2, 3], pads=[1, 0, 0, 1], dilations=[1, 2], output_padding=[1, 2], group=2)],
        (1, 4, 3, 3),
        {"w": single(4, 1, 3, 2)},
    ),
    "ConvTranspose of a given size": (
        [node("ConvTranspose", "xw", strides=[2, 2], output_shape=[6, 5])],
        (1, 1, 3, 3),
        {"w": single(1, 2, 3, 3)},
    ),
    "ConvTranspose of one axis": ([node("ConvTranspose", "xw", strides=[2])], (1, 2, 4), {"w": single(2, 1, 3)}),
    "Resize to the nearest": (
        [node("Resize", ["x", "", "f"], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")],
        (1, 2, 3, 2),
        {"f": np.array([1, 1, 2, 3], dtype=np.float32)},
    ),
    "Resize to sizes": (
        [node("Resize", ["x", "", "", "f"], mode="linear", coordinate_transformation_mode="align_corners")],
        (1, 1, 3, 4),
        {"f": integers(1, 1, 5, 7)},
    ),
    "Resize by halves": (
        [node("Resize", ["x", "", "f"], mode="linear")],
        (1, 1, 3, 4),
        {"f": np.array([1, 1, 2, 0.5], dtype=np.float32)},
    ),
    "MatMul with a vector": ([node("MatMul", "xw")], (1, 2, 4), {"w": single(4)}),
    "MatMul with a vector from the left": ([node("MatMul", "wx")], (1, 4, 2), {"w": single(4)}),
    "MatMul with a batch of matrices": ([node("MatMul", "xw")], (1, 3, 4), {"w": single(2, 4, 2)}),
    "MatMul with a batch from the left": ([node("MatMul", "wx")], (2, 4, 1), {"w": single(2, 3, 4)}),
    "Pow of one": ([node("Pow", "xp")], (1, 4), {"p": number(1.0)}),
    "Tile": ([node("Tile", "xr")], (1, 2, 3), {"r": integers(1, 2, 2)}),
    "Expand to more axes": ([node("Expand", "xs")], (1, 4), {"s": integers(2, 1, 1)}),
    "Pad with a number": ([node("Pad", "xpv")], (1, 2, 3), {"p": integers(0, 1, 0, 0, 0, 2), "v": number(-1.5)}),
    "Pad that cuts": ([node("Pad", "xp")], (1, 4, 3), {"p": integers(0, -1, 1, 0, 0, -1)}),
    "Pad by reflection": ([node("Pad", "xp", mode="reflect")], (1, 3, 3), {"p": integers(0, 1, 2, 0, 0, 1)}),
    "Pad with the edge": ([node("Pad", "xp", mode="edge")], (1, 3, 3), {"p": integers(0, 1, 2, 0, 0, 1)}),
    "Pad along some axes": ([node("Pad", ["x", "p", "", "a"])], (1, 2, 3), {"p": integers(1, 2), "a": integers(-1)}),
    "DepthToSpace": ([node("DepthToSpace", "x", blocksize=2)], (1, 8, 2, 2), {}),
    "DepthToSpace, columns first": ([node("DepthToSpace", "x", blocksize=2, mode="CRD")], (1, 8, 1, 2), {}),
    "SpaceToDepth": ([node("SpaceToDepth", "x", blocksize=2)], (1, 2, 2, 4), {}),
    "Split in three": ([node("Split", "x", ("a", "b", "c"), axis=1, num_outputs=3), node("Concat", "cab", axis=1)], (1, 7), {}),
    "Where of constants": ([node("Where", "mxc")], (1, 4), {"m": np.array([[True], [False]]), "c": single(4)}),
    "a ReLU by comparison": ([node("Greater", "xz", "g"), node("Where", "gxz")], (1, 4), {"z": number(0.0)}),
    "a ReLU by a mask": (
        [node("Greater", "xz", "g"), node("Cast", "g", "m", to=TensorProto.FLOAT), node("Mul", "xm")],
        (1, 4),
        {"z": number(0.0)},
    ),
    "a slope by comparison": (
        [
            node("Gemm", "xw", "d"),
            node("Less", "dz", "g"),
            node("Not", "g", "n"),
            node("Mul", "ds", "e"),
            node("Where", "nde"),
        ],
        (1, 4),
        {"z": number(0.0), "s": number(0.01), "w": single(4, 3)},
    ),
    "the larger by comparison": (
        [node("Gemm", "xw", "t"), node("GreaterOrEqual", "xt", "g"), node("Where", "gxt")],
        (1, 4),
        {"w": single(4, 4)},
    ),
    "Shape arithmetic": (
        [
            node("Shape", "x", "s"),
            node("Gather", "sz", "n"),
            node("Unsqueeze", "na", "m"),
            node("Concat", "mr", "t", axis=0),
            node("Reshape", "xt"),
        ],
        (1, 2, 3),
        {"z": np.array(0, dtype=np.int64), "a": integers(0), "r": integers(-1)},
    ),
    "einsum": ([node("Einsum", "xw", equation="ij,jk->ik")], (2, 4), {"w": single(4, 3)}),
    "einsum without an arrow": ([node("Einsum", "wx", equation="kj, bj")], (1, 4), {"w": single(3, 4)}),
    "einsum with an ellipsis": ([node("Einsum", "xw", equation="...j,kj->...k")], (2, 3, 4), {"w": single(2, 4)}),
    "einsum of one": ([node("Einsum", "x", equation="bij->bji")], (1, 2, 3), {}),
    "einsum of a diagonal": ([node("Einsum", "x", equation="ii->i")], (3, 3), {}),
    "einsum of three": ([node("Einsum", "vxw", equation="i,bij,jk->bk")], (1, 2, 3), {"v": single(2), "w": single(3, 2)}),
    "weights that are only scaled": (
        [node("DequantizeLinear", "qsz", "w"), node("MatMul", "xw")],
        (1, 4),
        {"q": np.arange(-6, 6, dtype=np.int8).reshape(4, 3), "s": number(0.25), "z": np.array(1, dtype=np.int8)},
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_equals_onnxruntime(name):
    nodes, shape, constants = OPERATORS[name]
    runs_as(build(nodes, shape, constants, opset=18), shape)


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_between_leaky_units_equals_onnxruntime(name):
    nodes, shape, constants = OPERATORS[name]
    renamed = [node("LeakyRelu", "x", "x0", alpha=0.5)]
    for part in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(part)
        copy.input[:] = ["x0" if entry == "x" else entry for entry in part.input]
        copy.output[:] = ["y0" if entry == "y" else entry for entry in part.output]
        renamed.append(copy)
    renamed += [node("Add", ["y0", "shift"], "y1"), node("Relu", ["y1"])]
    runs_as(build(renamed, shape, {**constants, "shift": number(-0.1)}, opset=18), shape)


OLD = {
    "Clip 6": ([node("Clip", "x", min=-0.5, max=0.75)], (1, 4), {}, 6),
    "Clip without ends": ([node("Clip", "x")], (1, 4), {}, 6),
    "PRelu 7": ([node("PRelu", "xs")], (1, 3, 2), {"s": single(3, 1)}, 7),
    "ReduceMax 11": ([node("ReduceMax", "x", axes=[1], keepdims=0)], (1, 3, 4), {}, 11),
    "ReduceSum 11": ([node("ReduceSum", "x", axes=[-1])], (1, 3, 4), {}, 11),
    "Upsample 7": ([node("Upsample", "x", scales=[1.0, 1.0, 2.0, 3.0])], (1, 1, 2, 2), {}, 7),
    "Upsample 9": ([node("Upsample", "xf", mode="linear")], (1, 2, 3, 2), {"f": np.array([1, 1, 2, 2], dtype=np.float32)}, 9),
    "Resize 10": ([node("Resize", "xf")], (1, 2, 3, 2), {"f": np.array([1, 1, 2, 2], dtype=np.float32)}, 10),
    "Pad 10": ([node("Pad", "x", pads=[0, 1, 0, 2], value=0.5)], (1, 3), {}, 10),
    "Split 11": ([node("Split", "x", ("a", "b"), axis=1, split=[1, 3]), node("Concat", "ba", axis=1)], (1, 4), {}, 11),
    "Slice 9": ([node("Slice", "x", starts=[1], ends=[3], axes=[1])], (1, 4), {}, 9),
    "Dropout 10": ([node("Dropout", "x")], (1, 4), {}, 10),
}
for _opset in (7, 9, 12, 13):
    OLD[f"BatchNormalization {_opset}"] = (
        [node("BatchNormalization", "xsbmv", epsilon=1e-3, momentum=0.9)],
        (1, 3, 2),
        {"s": single(3), "b": single(3), "m": single(3), "v": np.array([0.5, 1.0, 2.0], dtype=np.float32)},
        _opset,
    )
for _opset in (9, 11, 12):
    OLD[f"view as rows {_opset}"] = (
        [
            node("Shape", "x", "s"),
            node("Constant", [], "i", value_int=0)
            if _opset > 11
            else node("Constant", [], "i", value=onnx.numpy_helper.from_array(np.array(0, dtype=np.int64))),
            node("Gather", "si", "n", axis=0),
            node("Unsqueeze", "n", "m", axes=[0]),
            node("Unsqueeze", "k", "l", axes=[0]),
            node("Concat", "ml", "t", axis=0),
            node("Reshape", "xt"),
        ],
        (1, 2, 3),
        {"k": np.array(-1, dtype=np.int64)},
        _opset,
    )


@pytest.mark.parametrize("name", OLD)
def test_old_operator_sets_equal_onnxruntime(name):
    nodes, shape, constants, opset = OLD[name]
    runs_as(build(nodes, shape, constants, opset=opset), shape)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([node("ThresholdedRelu", "x")], "jumps from 0 to 1"),
        ([node("Shrink", "x", lambd=0.5)], "jumps at 0.5"),
        ([node("PRelu", "xt")], "constant was expected"),
        ([node("Pow", "xp")], "power 2"),
        ([node("Greater", "xz", "g"), node("Where", "gxp")], "it jumps"),
        ([node("Greater", "xz", "g"), node("Cast", "g", to=TensorProto.FLOAT)], None),
        ([node("Cast", "x", "i", to=TensorProto.INT32), node("Cast", "i", to=TensorProto.FLOAT)], "whole numbers"),
        ([node("QuantizeLinear", "xz", "q"), node("DequantizeLinear", "qz")], r"jumps \(quantised values are rounded\)"),
        ([node("MaxPool", "x", ("t", "y"), kernel_shape=[1, 1])], "only its first can be read"),
        ([node("Resize", ["x", "", "f"], mode="cubic")], "mode 'cubic'"),
        ([node("Squeeze", "xa")], "only axes of one entry"),
        ([node("Pad", "xc")], "has pads"),
        ([node("Einsum", "xx", equation="abcd,abcd->a")], "multiplies two values that both depend on the input"),
        ([node("Einsum", "xt", equation="abcd,e->f")], "which does not fit its operands"),
        ([node("Einsum", "xt", equation="ab,b")], "which does not fit its operands"),
        ([node("Einsum", "xt", equation="abcd,c->a")], "an axis has"),
    ],
)
def test_what_is_not_piecewise_linear_or_does_not_fit(nodes, words):
    constants = {
        "t": single(4),
        "p": number(2.0),
        "z": number(0.0),
        "f": np.ones(4, dtype=np.float32),
        "a": integers(3),
        "c": integers(1),
    }
    made = {name for part in nodes for name in part.output}
    shape = (1, 1, 2, 4)
    proto = build([*nodes], shape, {name: value for name, value in constants.items() if name not in made}, opset=18)
    if proto.graph.node[0].op_type == "PRelu":
        proto.graph.initializer.pop(0)
        proto.graph.node.insert(0, node("Neg", "x", "t"))
    if words is None:  # truth values at the end are left off
        assert "left off" in load(proto).source.notes[-1]
        return
    with pytest.raises(UnsupportedModel, match=words):
        load(proto)
