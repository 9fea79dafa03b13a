"""Whole ONNX graphs: their ends, their order, several inputs and outputs, and refusals before anything is computed."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from helpers.brute_force import count_regions
from helpers.onnx_models import model, node
from tessella import Box, Counted, FileError, UnsupportedModel, UnsupportedOperator, count, load
from tessella.importers import onnx as reader

RNG = np.random.default_rng(5)
WEIGHTS = {"w": RNG.standard_normal((4, 3)), "b": RNG.standard_normal(3)}
SCORES = [node("Gemm", "xwb", "a"), node("Relu", "a", "h"), node("MatMul", "hv", "s")]
CONSTANTS = {**WEIGHTS, "v": RNG.standard_normal((3, 5))}
POINT = RNG.standard_normal(4)


def scores():
    return load(model([*SCORES, node("Identity", "s")], constants=CONSTANTS))


@pytest.mark.parametrize(
    "end",
    [
        [node("Softmax", "s", axis=-1)],
        [node("LogSoftmax", "s")],
        [node("Sigmoid", "s")],
        [node("Tanh", "s", "t"), node("Mul", "tc", "u"), node("Add", "cu")],
        [node("Softmax", "s", "t"), node("Identity", "t", "u"), node("Dropout", "u", "z"), node("Reshape", "zr")],
        [node("ArgMax", "s", axis=1)],
        [node("Softmax", "s", "t"), node("ArgMax", "t", "l", axis=1), node("Cast", "l", to=TensorProto.FLOAT)],
        [node("Hardmax", "s")],
        [node("Sigmoid", "s", "t"), node("Greater", "tc", "g"), node("Cast", "g", to=TensorProto.INT64)],
        [
            node("ArgMax", "s", "l", axis=1, keepdims=0),
            node("Cast", "x", "m", to=TensorProto.INT64),
            node("Equal", "lm", "e"),
            node("Cast", "e", "f", to=TensorProto.FLOAT),
            node("ReduceSum", "f"),
        ],
    ],
)
def test_what_changes_no_region_at_the_end_is_left_off(end):
    constants = {**CONSTANTS, "c": np.array(0.5), "r": np.array([5])}
    network = load(model([*SCORES, *end], constants=constants))
    assert network == scores()
    (note,) = network.source.notes
    assert note.startswith("left off at the end, which changes no region of what is read ('s'): node ")
    assert f"({end[0].op_type})" in note


def test_an_end_beside_a_linear_value():
    nodes = [*SCORES, node("Sigmoid", "s", "t"), node("Concat", "th", axis=1)]
    network = load(model(nodes, constants=CONSTANTS))
    hidden = np.maximum(POINT @ WEIGHTS["w"] + WEIGHTS["b"], 0.0)
    np.testing.assert_allclose(network(POINT), [*hidden @ CONSTANTS["v"], *hidden], rtol=1e-12)
    assert network.source.notes[-1] == "outputs, one after the other: s (5), h (3)"


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (
            [node("Sigmoid", "s", "t"), node("Relu", "t")],
            r"'Relu_1' \(Relu\) reads the result of node 'Sigmoid_1' \(Sigmoid\), which is not piece",
        ),
        ([node("Sigmoid", "s", "t"), node("Mul", "st")], "reads the result of node 'Sigmoid_1'"),
        ([node("Softmax", "s", "t"), node("MatMul", "tu")], "reads the result of node 'Softmax_1'"),
        ([node("Softmax", "s", "t"), node("ReduceSum", "t")], "only at the end of a model"),
        ([node("Elu", "s")], "is of type Elu, which is not piecewise linear"),
        ([node("Floor", "s")], "jumps"),
        ([node("ArgMax", "s", "l"), node("Gather", "sl")], "reads the result of node 'ArgMax_1'"),
    ],
)
def test_what_is_no_end_is_refused_with_the_place_to_cut(nodes, words):
    with pytest.raises(UnsupportedOperator, match=words) as caught:
        load(model([*SCORES, *nodes], constants={**CONSTANTS, "u": np.ones((5, 2))}))
    assert str(caught.value).endswith(
        "; replace it, or read the network up to there by naming that tensor, output='s' (--output-name s in a shell)"
    )
    assert load(model([*SCORES, *nodes], constants={**CONSTANTS, "u": np.ones((5, 2))}), output="s") == scores()


def test_nothing_is_computed_before_a_refusal(monkeypatch):
    def compute(*_):
        pytest.fail("an operator was run")

    monkeypatch.setattr(reader, "Trace", compute)
    monkeypatch.setattr(reader, "fold", compute)
    with pytest.raises(UnsupportedOperator, match="Gelu"):
        load(model([*SCORES, node("Gelu", "s", "t"), node("Relu", "t")], constants=CONSTANTS))


def test_a_matrix_that_would_be_too_large_is_refused_before_anything_is_computed(monkeypatch):
    monkeypatch.setattr(reader, "Trace", lambda *_: pytest.fail("an operator was run"))
    nodes = [node("Conv", "xk", "a"), node("Relu", "a", "r"), node("Conv", "rl", "b"), node("Relu", "b")]
    constants = {"k": np.ones((64, 3, 3, 3), np.float32), "l": np.ones((64, 64, 3, 3), np.float32)}
    proto = model(nodes, (None, 3, 224, 224), constants, element=TensorProto.FLOAT)
    with pytest.raises(
        UnsupportedModel, match=r"'Conv_1' \(Conv\) would become a matrix of 1\.78e\+09 numbers; at most 2e\+08"
    ) as caught:
        load(proto)
    assert str(caught.value).endswith(
        "make the model's input smaller, or read the network up to there by output='r' (--output-name r in a shell)"
    )


@pytest.mark.parametrize(
    ("last", "words"),
    [
        (node("Pow", "st"), "raises to the power 2"),
        (node("ThresholdedRelu", "s"), "jumps from 0 to 1"),
        (node("Shrink", "s"), "jumps at 0.5"),
        (node("Where", "gsu"), "it jumps"),
    ],
)
def test_what_an_operator_refuses_itself_is_refused_with_the_place_to_cut(last, words):
    constants = {**CONSTANTS, "t": np.array(2.0), "u": np.arange(5.0), "z": np.zeros(5)}
    with pytest.raises(UnsupportedOperator, match=words) as caught:
        load(model([*SCORES, node("Greater", "sz", "g"), last], constants=constants))
    assert str(caught.value).endswith("up to there by naming that tensor, output='s' (--output-name s in a shell)")


def test_what_is_refused_at_the_very_beginning_says_what_to_do():
    for nodes in ([node("QuantizeLinear", "xc", "q"), node("DequantizeLinear", "qc")], [node("LpPool", "x", kernel_shape=[2])]):
        with pytest.raises(UnsupportedOperator, match=r"; replace it, or end the model before it$"):
            load(model(nodes, (1, 1, 4), {"c": np.array(0.5)}))


def test_a_fixed_batch_is_told():
    proto = model([node("Relu", "x")], (2, 4))
    (note,) = load(proto).source.notes
    assert note.startswith(
        "input x has shape (2, 4): if its first axis is a batch, regions of all its 2 elements together are counted"
    )
    with pytest.raises(UnsupportedModel, match=r"shape \(2, 4\), a fixed batch of 2; export the model with a batch of one"):
        load(proto, input_shape=(4,))
    assert not load(model([node("Relu", "x")], (3, 2, 2))).source.notes


def test_a_model_whose_numbers_overflow_says_so():
    constants = {"w": np.full((4, 4), 1e30, dtype=np.float32), "b": np.zeros(4, dtype=np.float32)}
    nodes = [node("Gemm", "xwb", "t"), node("Gemm", "twb")]
    with pytest.raises(UnsupportedModel, match=r"the onnx model itself gives -?(inf|nan)"):
        load(model(nodes, constants=constants, element=TensorProto.FLOAT))


def test_operators_may_come_in_any_order():
    nodes = [*SCORES, node("Neg", "s")]
    expected = load(model(nodes, constants=CONSTANTS))
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(nodes))
        assert load(model([nodes[place] for place in order], constants=CONSTANTS)) == expected


def test_a_loop_and_a_second_definition_are_one_error():
    with pytest.raises(FileError, match=r"'Add_1' \(Add\) reads what is computed from its own result"):
        load(model([node("Add", "xu", "t"), node("Neg", "t", "u"), node("Relu", "u")]))
    with pytest.raises(FileError, match=r"'Neg_1' \(Neg\) makes 't', which node 'Relu_1' \(Relu\) makes, too"):
        load(model([node("Relu", "x", "t"), node("Neg", "x", "t"), node("Relu", "t")]))


def two_inputs(element=TensorProto.DOUBLE):
    proto = model([node("MatMul", "xw", "a"), node("Add", "az", "s"), node("Relu", "s")], constants={"w": WEIGHTS["w"]})
    proto.graph.input.append(helper.make_tensor_value_info("z", element, (None, 3)))
    return proto


def test_several_inputs_are_read_one_after_the_other():
    network = load(two_inputs())
    assert network.input_dim == 7
    assert network.source.input_shape == (7,)
    assert network.source.notes == ("inputs, one after the other: x (4), z (3)",)
    other = RNG.standard_normal(3)
    np.testing.assert_allclose(network([*POINT, *other]), np.maximum(POINT @ WEIGHTS["w"] + other, 0.0), atol=1e-12)
    with pytest.raises(UnsupportedModel, match=r"2 inputs \('x', 'z'\); input_shape is for models of one"):
        load(two_inputs(), input_shape=(4,))


def test_inputs_can_be_fixed():
    other = RNG.standard_normal(3)
    network = load(two_inputs(), inputs={"z": other})
    assert network.input_dim == 4
    assert network.source.notes == ("fixed inputs: z",)
    np.testing.assert_allclose(network(POINT), np.maximum(POINT @ WEIGHTS["w"] + other, 0.0), atol=1e-12)
    with pytest.raises(UnsupportedModel, match=r"no input 'q'; it has 'x', 'z'"):
        load(two_inputs(), inputs={"q": other})
    with pytest.raises(UnsupportedModel, match=r"'z' has shape \(\?, 3\); the array to fix it is float64 of shape \(4,\)"):
        load(two_inputs(), inputs={"z": POINT})
    with pytest.raises(UnsupportedModel, match="no inputs that vary"):
        load(two_inputs(), inputs={"x": POINT, "z": other})


def test_a_fixed_mask_makes_a_product_linear():
    proto = model([node("Mul", "xz", "a"), node("ReduceSum", "z", "n"), node("Div", "an", "s"), node("Relu", "s")])
    proto.graph.input.append(helper.make_tensor_value_info("z", TensorProto.DOUBLE, (1, 4)))
    with pytest.raises(UnsupportedOperator, match=r"'Mul_1' \(Mul\) multiplies two values that both depend"):
        load(proto)
    mask = np.array([1.0, 0.0, 1.0, 0.0])
    network = load(proto, inputs={"z": mask})
    np.testing.assert_allclose(network(POINT), np.maximum(POINT * mask / 2.0, 0.0), atol=1e-12)
    assert network.source.details == ("computed beforehand, as they do not depend on the input: 1 ReduceSum",)


def test_several_outputs_are_read_one_after_the_other():
    proto = model([node("Relu", "x", "t"), node("Neg", "t")], outputs=("t", "y"))
    network = load(proto)
    np.testing.assert_allclose(network(POINT), [*np.maximum(POINT, 0.0), *-np.maximum(POINT, 0.0)])
    assert network.source.notes == ("outputs, one after the other: t (4), y (4)",)


def test_an_output_may_be_any_tensor_inside():
    network = load(model([*SCORES, node("Gelu", "s")], constants=CONSTANTS), output="h")
    np.testing.assert_allclose(network(POINT), np.maximum(POINT @ WEIGHTS["w"] + WEIGHTS["b"], 0.0), rtol=1e-12)


def test_a_convolutional_network_with_pooling_and_softmax_counts_as_by_brute_force():
    nodes = [
        node("Conv", "xkc", "a", pads=[0, 1, 0, 0]),
        node("Relu", "a", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[1, 2]),
        node("Flatten", "p", "f"),
        node("Gemm", "fwb", "g"),
        node("Relu", "g", "h"),
        node("MatMul", "hv", "s"),
        node("Softmax", "s"),
    ]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        constants = {
            "k": rng.standard_normal((2, 1, 2, 2)),
            "c": 0.3 * rng.standard_normal(2),
            "w": rng.standard_normal((4, 3)),
            "b": 0.3 * rng.standard_normal(3),
            "v": rng.standard_normal((3, 3)),
        }
        network = load(model(nodes, (1, 1, 3, 4), constants))
        assert dict(network.source.units) == {"ReLU": 19, "comparison in a larger maximum": 12}
        lower, upper = -np.ones(12), np.ones(12)
        lower[2:] = upper[2:] = 0.5 * rng.standard_normal(10)
        found = count(network, Box(lower, upper))
        layers = [(layer.weight, layer.bias, layer.rectified) for layer in network.layers]
        assert found.lower == found.upper == count_regions(layers, lower, upper)
        assert network.counted is Counted.COMPARISONS


@pytest.mark.parametrize(
    ("operator", "more", "what"),
    [
        ("Max", "", Counted.REGIONS),
        ("Max", "v", Counted.COMPARISONS),
        ("Min", "c", Counted.COMPARISONS),
        ("Min", "cd", Counted.COMPARISONS),
    ],
)
def test_a_maximum_of_more_than_two_says_what_is_counted(operator, more, what):
    nodes = [node("Neg", "x", "t"), node("Gemm", "xw", "v"), node(operator, "xt" + more)]
    network = load(model(nodes, (1, 4), {"w": np.eye(4)[::-1], "c": np.full(4, 0.5), "d": np.full(4, 0.3)}))
    assert network.counted is what
    nodes = [node(operator, "xcd")]  # one constant is the larger one, so two values are compared
    assert load(model(nodes, (1, 4), {"c": np.full(4, 0.5), "d": np.full(4, 0.3)})).counted is Counted.REGIONS


def test_a_model_of_a_newer_kind_says_what_it_reads():
    proto = model([node("MaxPool", "x", ("t", "i"), kernel_shape=[1]), node("Cast", "i", to=TensorProto.DOUBLE)], (1, 1, 4))
    with pytest.raises(UnsupportedOperator, match=r"'MaxPool_1' \(MaxPool\) has 'i' as result number 2"):
        load(proto)


def test_graphs_of_two_thousand_operators_are_walked_at_once():
    nodes = [helper.make_node("Identity", ["x" if place == 0 else f"t{place}"], [f"t{place + 1}"]) for place in range(2_000)]
    network = load(model([*nodes[::-1], helper.make_node("Relu", ["t2000"], ["y"])]))
    assert network.relus == 4
    assert isinstance(nodes[0], onnx.NodeProto)
