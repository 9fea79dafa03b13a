"""Networks as values: what they compute, what they refuse, how they compare."""

import itertools

import numpy as np
import pytest
import scipy.sparse

from tessella import Box, Layer, Network, NetworkError, OptionError, stability


def random_network(rng, sizes=(3, 5, 4, 2), *, relu_output=False):
    return Network.from_arrays(
        [(rng.standard_normal((n, m)), rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)],
        relu_output=relu_output,
    )


def by_hand(network, x):
    """A forward pass in plain Python."""
    values = [float(v) for v in x]
    for layer in network.layers:
        weight = layer.dense()
        sums = [sum(w * v for w, v in zip(row, values, strict=True)) + b for row, b in zip(weight, layer.bias, strict=True)]
        values = [max(s, 0.0) if r else s for s, r in zip(sums, layer.rectified, strict=True)]
    return values


def test_forward_pass_equals_plain_python():
    rng = np.random.default_rng(0)
    network = random_network(rng)
    points = rng.standard_normal((20, 3))
    assert np.allclose(network(points), [by_hand(network, x) for x in points], atol=1e-13)
    assert np.allclose(network(points[0]), network(points)[0], atol=1e-13)


def test_affine_map_of_a_pattern_is_the_network_where_the_pattern_holds():
    rng = np.random.default_rng(1)
    network = random_network(rng, relu_output=True)
    for x in rng.standard_normal((50, 3)):
        matrix, offset = network.affine_map(network.patterns(x))
        assert np.allclose(matrix @ x + offset, network(x), atol=1e-12)


def test_patterns_hold_rectified_units_only_layer_by_layer():
    layer = Layer(np.eye(3), np.zeros(3), np.array([True, False, True]))
    network = Network((layer, Layer([[1.0, 1.0, 1.0]], [-10.0], np.array([True]))))
    assert network.widths == (2, 1)
    assert network.depth == 2
    assert network.patterns([1.0, -5.0, -1.0]).tolist() == [True, False, False]
    assert network([1.0, -5.0, 2.0]).tolist() == [0.0]
    assert network.shape == "3-2+1-1"


def test_a_unit_at_exactly_zero_is_inactive():
    network = Network.from_arrays([([[1.0]], [0.0])], relu_output=True)
    assert network.patterns([[0.0], [1e-300]]).tolist() == [[False], [True]]


def test_sparse_and_dense_weights_are_the_same_network():
    rng = np.random.default_rng(2)
    weight = rng.standard_normal((6, 4)) * (rng.random((6, 4)) < 0.5)
    dense = Network.from_arrays([(weight, np.ones(6)), (np.ones((1, 6)), None)])
    sparse = Network.from_arrays([(scipy.sparse.csc_matrix(weight), np.ones(6)), (np.ones((1, 6)), None)])
    points = rng.standard_normal((10, 4))
    assert np.allclose(dense(points), sparse(points))
    assert np.array_equal(dense.affine_map(dense.patterns(points[0]))[0], sparse.affine_map(dense.patterns(points[0]))[0])
    assert dense == sparse
    assert hash(dense) == hash(sparse)
    assert "sparse" in sparse.table()


def test_fingerprint_is_stable_and_sees_every_number():
    base = [([[1.0, 2.0]], [0.5]), ([[3.0]], [0.0])]
    network = Network.from_arrays(base)
    assert network == Network.from_arrays([([[1, 2]], [0.5]), ([[3]], [-0.0])])
    assert network != Network.from_arrays([([[1.0, 2.0 + 1e-15]], [0.5]), ([[3.0]], [0.0])])
    assert network != Network.from_arrays(base, relu_output=True)
    assert network != "a string"


def test_values_are_read_only_and_copied():
    weight = np.ones((2, 2))
    network = Network.from_arrays([(weight, np.zeros(2))])
    weight[0, 0] = 7.0
    assert network.layers[0].weight[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        network.layers[0].weight[0, 0] = 2.0
    with pytest.raises(AttributeError):
        network.layers = ()
    sparse = Layer(scipy.sparse.eye_array(3), np.zeros(3))
    with pytest.raises(ValueError, match="read-only"):
        sparse.weight.data[0] = 2.0


def test_relu_output_rectifies_the_last_layer_only_once():
    network = random_network(np.random.default_rng(3))
    assert network.widths == (5, 4)
    rectified = network.with_relu_output()
    assert rectified.widths == (5, 4, 2)
    assert rectified.with_relu_output() is rectified
    assert rectified == random_network(np.random.default_rng(3), relu_output=True)


def test_one_line_repr_and_table():
    network = random_network(np.random.default_rng(4))
    assert repr(network) == "Network(3-5-4-2, 9 ReLUs, 54 parameters)"
    assert len(network.table().splitlines()) == 4
    assert repr(network.layers[0]) == "Layer(3 -> 5, 5 ReLU)"


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ([], "at least one layer"),
        ([(np.ones((2, 3)), np.ones(2)), (np.ones((1, 3)), np.ones(1))], "layer 2 reads 3 inputs, but layer 1 has 2 units"),
        ([(np.ones((3, 3)), np.ones(2))], "layer 1: weight has shape"),
        ([(np.array([[np.nan]]), [0.0])], "layer 1: weight holds nan"),
        ([([[1.0]], [np.inf])], "layer 1: bias holds inf"),
        ([(np.ones((0, 3)), np.ones(0))], "at least one input and one unit"),
        ([(np.ones((3, 0)), np.ones(3))], "at least one input and one unit"),
        ([(np.ones(3), np.ones(3))], "expected 2 dimensions"),
        ([(np.ones((2, 2)) * 1j, np.ones(2))], "complex"),
        ([([["a"]], [0.0])], "no real numbers"),
        ([([[1.0], [1.0, 2.0]], [0.0, 0.0])], "cannot be read as an array"),
        ([np.ones((2, 2))], "expected a pair"),
        ([(np.ones((2, 2)), np.ones(2), 3)], "expected a pair"),
        ([(None, None)], "no real numbers"),
        ([(scipy.sparse.csr_array([[np.nan]]), [0.0])], "not finite"),
    ],
)
def test_bad_layers_get_a_clear_error(layers, words):
    with pytest.raises(NetworkError, match=words):
        Network.from_arrays(layers)


def test_transposed_weights_get_a_hint():
    with pytest.raises(NetworkError, match=r"pass W\.T"):
        Network.from_arrays([(np.ones((4, 2)), None), (np.ones((4, 2)), None)])


def test_bad_points_and_patterns_get_a_clear_error():
    network = random_network(np.random.default_rng(5))
    with pytest.raises(NetworkError, match="points have shape"):
        network(np.ones(4))
    with pytest.raises(OptionError, match="9 truth values"):
        network.affine_map(np.ones(8, dtype=bool))
    with pytest.raises(OptionError, match="9 truth values"):
        network.affine_map(np.ones(9))
    with pytest.raises(NetworkError, match="rectified must be"):
        Layer([[1.0]], [0.0], np.array([1]))
    with pytest.raises(NetworkError, match="expected a Layer"):
        Network(((np.ones((1, 1)), np.zeros(1)),))


def test_slopes():
    layer = Layer(np.eye(4), np.zeros(4), np.array([True, True, True, False]), np.array([0.0, 0.1, -1.0, 0.0]))
    assert layer.slope.tolist() == [0.0, 0.1, -1.0, 1.0]  # a linear unit passes its value on
    assert layer.leaky.tolist() == [False, True, True, False]
    assert layer.activate(np.array([[-2.0] * 4, [3.0] * 4])).tolist() == [[0.0, -0.2, 2.0, -2.0], [3.0] * 4]
    assert layer.factors(np.array([True, False, False])).tolist() == [1.0, 0.1, -1.0, 1.0]
    assert Layer(np.eye(2), np.zeros(2), slope=0.1).slope.tolist() == [0.1, 0.1]
    assert Layer(np.eye(2), np.zeros(2), np.array([True, False]), 0.1).slope.tolist() == [0.1, 1.0]


@pytest.mark.parametrize(
    ("slope", "message"),
    [
        (np.inf, "slope holds inf"),
        ([0.1], r"expected one number, or 2"),
        ([0.0, 1.0], "unit 1 has the slope 1"),
        ("a", "no real numbers"),
    ],
)
def test_bad_slopes(slope, message):
    with pytest.raises(NetworkError, match=message):
        Layer(np.eye(2), np.zeros(2), slope=slope)


def test_slopes_are_part_of_a_network():
    pair = np.array([[1.0], [-2.0]]), np.array([0.5, 0.25])
    plain, zero, leaky = (Network((layer,)) for layer in (Layer(*pair), Layer(*pair, slope=0.0), Layer(*pair, slope=[0.0, 0.2])))
    assert plain.fingerprint == zero.fingerprint != leaky.fingerprint
    assert (repr(leaky), leaky.leaky_units) == ("Network(1-2, 2 ReLUs, 1 of them leaky, 4 parameters)", 1)
    assert leaky.table().splitlines()[0].split() == ["layer", "inputs", "ReLUs", "leaky", "linear", "parameters", "weights"]
    assert leaky.with_relu_output() is leaky
    matrix, offset = leaky.affine_map([False, False])
    assert np.allclose(matrix @ [1.0] + offset, [0.0, -0.35])


def test_without_stable_units_slopes_stay():
    network = Network(
        (Layer([[1.0], [1.0], [1.0]], [0.0, -5.0, 5.0], slope=[0.1, -1.0, 0.3]), Layer(np.ones((1, 3)), [0.0], False))
    )
    known = stability(network, Box(-1, 1, dim=1), method="interval")
    smaller = network.without_stable_units(known)
    assert smaller.layers[0].rectified.tolist() == [True, False, False]
    assert smaller.layers[0].slope.tolist() == [0.1, -1.0, 1.0]
    points = np.linspace(-1.0, 1.0, 9)[:, None]
    assert np.array_equal(smaller(points), network(points))
