"""Mutated ONNX files end in a network or in a Tessella error, nothing else."""

import random

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from helpers.damage import damage
from tessella import Network, TessellaError, load


def small_models():
    rng = np.random.default_rng(0)

    def constants(**arrays):
        return [numpy_helper.from_array(np.asarray(value), name) for name, value in arrays.items()]

    def model(nodes, shape, initializers):
        entry, leave = (
            helper.make_tensor_value_info("x", TensorProto.FLOAT, shape),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
        )
        return helper.make_model(
            helper.make_graph(nodes, "g", [entry], [leave], initializers), opset_imports=[helper.make_opsetid("", 17)]
        )

    def floats(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    yield model(
        [helper.make_node("Gemm", ["x", "w", "b"], ["h"], transB=1), helper.make_node("Relu", ["h"], ["y"])],
        (1, 3),
        constants(w=floats(2, 3), b=floats(2)),
    )
    yield model(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], strides=[1, 1], pads=[1, 0, 1, 0]),
            helper.make_node("Relu", ["c"], ["r"]),
            helper.make_node("AveragePool", ["r"], ["p"], kernel_shape=[2, 2]),
            helper.make_node("Reshape", ["p", "s"], ["f"]),
            helper.make_node("MatMul", ["f", "v"], ["m"]),
            helper.make_node("Add", ["m", "b"], ["y"]),
        ],
        (1, 1, 4, 4),
        constants(w=floats(1, 1, 3, 3), s=np.array([1, -1]), v=floats(3, 2), b=floats(2)),
    )


@pytest.mark.parametrize("number", [0, 1])
def test_mutated_files_end_in_a_network_or_a_tessella_error(tmp_path, number):
    original = list(small_models())[number].SerializeToString()
    rng, path, read = random.Random(number), tmp_path / "m.onnx", 0
    for _ in range(1250):
        path.write_bytes(damage(original, rng) or b"\0")
        try:
            read += isinstance(load(path), Network)
        except TessellaError as error:
            assert "\n" not in str(error), str(error)
    assert read > 10  # mutations of weights alone leave a model that can be read


ODD = [0, 1, -1, 2, 3, 7, 255, 2**31 - 1, 2**31, 2**40, -(2**40), 2**62]
KINDS = [
    "Relu",
    "Gemm",
    "MatMul",
    "Add",
    "Mul",
    "Div",
    "Conv",
    "AveragePool",
    "Reshape",
    "Slice",
    "Gather",
    "Concat",
    "Split",
    "Pad",
]
KINDS += [
    "Expand",
    "Squeeze",
    "Unsqueeze",
    "Transpose",
    "ReduceMean",
    "Sigmoid",
    "If",
    "ConstantOfShape",
    "Range",
    "Shape",
    "Cast",
    "",
]
KINDS += [
    "LeakyRelu",
    "PRelu",
    "Clip",
    "Max",
    "MaxPool",
    "GlobalMaxPool",
    "ConvTranspose",
    "Resize",
    "Upsample",
    "Tile",
    "Where",
    "Greater",
]
KINDS += [
    "Softmax",
    "ArgMax",
    "OneHot",
    "ReduceMax",
    "BatchNormalization",
    "DepthToSpace",
    "QuantizeLinear",
    "DequantizeLinear",
    "Pow",
    "Not",
]


def restructure(proto, rng):
    """Change what a byte flip seldom reaches: sizes, attributes, operators, wiring."""
    graph = proto.graph
    names = ["x", "y", "h", "c", "r", "w", "b", "s", "", "nowhere"]
    node = graph.node[int(rng.integers(len(graph.node)))]
    tensor = graph.initializer[int(rng.integers(len(graph.initializer)))]
    match rng.integers(9):
        case 0:
            node.op_type = KINDS[int(rng.integers(len(KINDS)))]
        case 1 if node.input:
            node.input[int(rng.integers(len(node.input)))] = names[int(rng.integers(len(names)))]
        case 2:
            node.input.append(names[int(rng.integers(len(names)))])
        case 3 if node.attribute:
            attribute = node.attribute[int(rng.integers(len(node.attribute)))]
            attribute.ints[:] = [ODD[int(k)] for k in rng.integers(len(ODD), size=rng.integers(0, 5))]
        case 4 if node.attribute:
            node.attribute[int(rng.integers(len(node.attribute)))].i = ODD[int(rng.integers(len(ODD)))]
        case 5:
            tensor.dims[:] = [ODD[int(k)] for k in rng.integers(len(ODD), size=rng.integers(0, 4))]
        case 6:
            shape = graph.input[0].type.tensor_type.shape
            shape.dim[int(rng.integers(len(shape.dim)))].dim_value = ODD[int(rng.integers(len(ODD)))]
        case 7:
            tensor.CopyFrom(numpy_helper.from_array(np.array([ODD[int(k)] for k in rng.integers(len(ODD), size=2)]), tensor.name))
        case _:
            proto.opset_import[0].version = int(rng.integers(0, 30))


@pytest.mark.parametrize("number", [0, 1])
def test_restructured_models_end_in_a_network_or_a_tessella_error(number):
    original, rng, read = list(small_models())[number], np.random.default_rng(number), 0
    for _ in range(1000):
        proto = type(original)()
        proto.CopyFrom(original)
        for _ in range(rng.integers(1, 3)):
            restructure(proto, rng)
        try:
            read += isinstance(load(proto), Network)
        except TessellaError as error:
            assert "\n" not in str(error), str(error)
    assert read > 10
