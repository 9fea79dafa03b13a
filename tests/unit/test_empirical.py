"""The empirical bound: small cases by hand, and the recurrence against its definition."""

import itertools
import json
import sys
from functools import cache
from math import comb, log2

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import tessella
from tessella import Box, Layer, Network, OptionError, configuration_bound, count, empirical_bound, stability, upper_bounds
from tessella.upper.configuration import configuration, stages
from tessella.upper.empirical import Limits, empirical, nested

SQUARE = Box.cube(-1, 1, 2)
LINE = Box.cube(-1, 1, 1)


def bound(network, domain, method="interval", **options):
    return empirical(network, domain, stability(network, domain, method=method), **options)


def relus(*layers):
    return Network.from_arrays(layers, relu_output=True)


def random_network(rng, *, sizes=None, linear=True):
    sizes = rng.integers(1, 7, rng.integers(2, 5)) if sizes is None else sizes
    layers = []
    for before, units in itertools.pairwise(sizes):
        weight = rng.standard_normal((units, before)) * (rng.random((units, before)) < rng.choice([0.3, 1.0]))
        bias = rng.standard_normal(units) * rng.choice([0.0, 1.0, 3.0])
        mask = rng.random(units) < 0.7 if linear and rng.random() < 0.5 else np.ones(units, dtype=bool)
        layers.append(Layer(weight, bias, mask))
    return Network(tuple(layers))


def test_one_layer_is_zaslavskys_formula_on_its_unstable_units():
    weight = [[1, 0], [0, 1], [1, 1], [1, 0], [0, 1], [0, 0], [0, 0]]
    found = bound(relus((weight, [0, 0, -1, 5, -5, 1, 0])), SQUARE)
    assert found.value == comb(3, 0) + comb(3, 1) + comb(3, 2)
    assert (found.most_active, found.most_unstable) == (((5,),), ((3,),))  # x + 5 and the constant 1 are always active


def test_two_layers_by_hand():
    first = ([[1.0], [-1.0]], [0.0, 0.0])
    # unit 0 leans to inactive and needs ReLU 0, unit 1 leans to active and needs ReLU 0 too, unit 2 leans to inactive and needs ReLU 1
    second = ([[1.0, -1.0], [-1.0, 0.0], [0.0, 1.0]], [-0.5, 0.5, -0.25])
    found = bound(relus(first, second), LINE)
    assert found.most_active == ((2,), (1, 2, 3))
    assert found.most_unstable == ((2,), (0, 2, 3))
    assert found.value == 1 * (1 + 3) + 2 * (1 + 2)  # with no, and with one ReLU of the first layer inactive
    assert found.exact_coverage
    assert configuration_bound(1, [2, 3]) == 12


def test_linear_units_are_there_in_every_region():
    first = Layer([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0], np.array([True, False]))
    # unit 0 needs ReLU 0; unit 1 reads the linear unit only; unit 2 has 3 + y >= 2 from elsewhere and needs ReLU 0 to be inactive
    second = Layer([[1.0, 0.0], [0.0, 1.0], [-4.0, 1.0]], [-0.5, 0.5, 3.0])
    found = bound(Network((first, second)), SQUARE)
    assert found.most_active == ((1,), (2, 3))
    assert found.most_unstable == ((1,), (1, 3))
    assert found.value == (1 + 3 + 3) + (1 + 1)


def test_what_linear_units_read_decides_how_a_unit_leans():
    def reading(low, high):
        first = Layer([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0], np.array([True, False]))
        second = Layer([[1.0, 1.0], [-1.0, 1.0]], [0.0, 0.0])
        return bound(Network((first, second)), Box([-1, low], [1, high]))

    assert reading(-0.5, 0.5).most_unstable[1] == (2, 2)
    assert reading(0.1, 0.5).most_unstable[1] == (0, 1)  # positive: the second becomes inactive by the ReLU only
    assert reading(0.1, 0.5).most_active[1] == (2, 2)
    assert reading(-0.5, -0.1).most_unstable[1] == (0, 1)  # negative: the first becomes active by the ReLU only
    assert reading(-0.5, -0.1).most_active[1] == (0, 1)


def test_a_layer_without_relus_passes_its_input_on():
    first, last = ([[1.0, 2.0], [2.0, -1.0]], [0.1, 0.2]), ([[-1.0, 1.0], [1.0, -1.0], [2.0, -1.0]], [0.0, 0.1, 0.2])
    between = Layer(np.eye(2), np.zeros(2), np.array(False))
    found = bound(Network((Layer(*first), between, Layer(*last))), SQUARE)
    assert found.most_active[1] == found.most_unstable[1] == (0, 0, 0)
    assert found.most_unstable[2] == (3,)  # linear units are always there; how many ReLUs were active two layers ago is forgotten
    assert found.value == 1 * (1 + 3 + 3) + 2 * (1 + 3) + 1 * 1  # in 2, 1 and 0 dimensions
    assert bound(Network((between, Layer(*last))), SQUARE).value == 1 + 3 + 3
    assert bound(Network((between,)), SQUARE).value == 1


def test_a_dead_layer_ends_it():
    dead = ([[1.0, 1.0], [1.0, -1.0]], [-9.0, -9.0])
    found = bound(relus(dead, ([[1.0, 2.0]] * 3, [1.0, -1.0, 0.0])), SQUARE)
    assert found.value == 1
    assert found.most_active == ((0,), (1,))
    assert found.most_unstable == ((0,), (0,))


def test_stably_inactive_units_are_in_no_subset():
    first = ([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 0.0, -9.0])
    second = ([[1.0, 0.0, 5.0], [0.0, 1.0, 5.0], [0.0, 1.0, 5.0]], [-0.5, -0.5, -0.5])
    found = bound(relus(first, second), SQUARE)
    assert found.most_active[1] == found.most_unstable[1] == (0, 2, 3)  # not (0, 3, 3, 3)


def test_the_first_layer_is_not_read_with_the_propositions():
    found = bound(relus(([[1.0], [1.0]], [0.5, 0.25])), LINE)
    assert found.value == 3  # inputs may be negative: both lean to active, and both are cut without a negative weight


def test_zero_biases_and_full_dimensional_counting():
    weight = np.array([[1.0, 2.0], [3.0, 1.0], [1.0, -1.0]])
    for method in ("interval", "linear", "lp", "milp"):
        # x = 0 alone makes the first two inactive, which is no region
        assert bound(relus((weight, np.zeros(3))), Box.cube(0, 1, 2), method).value == 2
    deep = relus((weight, np.zeros(3)), (np.array([[1.0, 1.0, -9.0]]), np.zeros(1)))
    assert bound(deep, Box.cube(0, 1, 2)).value == 2 * 2


def test_equal_units_count_as_often_as_they_are_there():
    assert bound(relus(([[1.0]] * 3, [0.0] * 3)), LINE).value == 1 + 3  # valid, if not tight: all three cut at one point


def test_weights_of_zero_reach_nothing():
    second = ([[0.0, 1.0], [0.0, -1.0]], [-0.1, 0.1])
    found = bound(relus(([[1.0], [-1.0]], [0.0, 0.0]), second), LINE)
    assert found.most_unstable[1] == (0, 2, 2)
    third = bound(relus(([[1.0], [-1.0]], [0.0, 0.0]), ([[0.0, 0.0]] * 2, [0.0, 1.0])), LINE)
    assert third.most_unstable[1] == (0, 0, 0)
    assert third.value == 3


def test_fixed_inputs_cost_dimensions():
    network = relus((np.eye(3), np.zeros(3)))
    assert bound(network, Box([-1, -1, 0.5], [1, 1, 0.5])).value == 4
    assert bound(network, Box.cube(0.5, 0.5, 3)).value == 1


def test_sparse_weights_give_the_same():
    rng = np.random.default_rng(5)
    for _ in range(20):
        dense = random_network(rng)
        sparse = Network(tuple(Layer(scipy.sparse.csr_array(part.dense()), part.bias, part.rectified) for part in dense.layers))
        domain = Box.cube(-1, 1, dense.input_dim)
        assert bound(sparse, domain) == bound(dense, domain)


@st.composite
def layer_limits(draw):
    width = draw(st.integers(0, 5))
    most_active = sorted(draw(st.lists(st.integers(0, width), min_size=1, max_size=6)))
    cut = sorted(draw(st.lists(st.integers(0, width), min_size=len(most_active), max_size=len(most_active))))
    unstable = tuple(min(pair) for pair in zip(most_active, cut, strict=True))
    return Limits(tuple(most_active), unstable, draw(st.integers(0, 2)))


@given(st.integers(0, 6), st.lists(layer_limits(), min_size=1, max_size=5))
def test_the_tables_are_the_recurrence_of_the_proof(dim, layers):
    @cache
    def regions(layer, active_before, dim):
        if layer == len(layers):
            return 1
        active, unstable = layers[layer].at(active_before)
        return sum(
            comb(unstable, j) * regions(layer + 1, active - j, min(active - j + layers[layer].linear, dim))
            for j in range(min(unstable, dim) + 1)
        )

    assert nested(dim, layers) == regions(0, 0, dim)


@pytest.mark.parametrize("seed", range(200))
def test_the_recurrence_itself_is_never_above_configuration(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng)
    domain = Box.cube(-1, 1, network.input_dim)
    for effort in (0, 200_000):
        found = bound(network, domain, effort=effort)
        parts = zip(found.most_active, found.most_unstable, network.layers, strict=True)
        limits = [Limits(active, unstable, layer.linear_units) for active, unstable, layer in parts]
        assert all(list(part.most_active) == sorted(part.most_active) for part in limits)
        assert found.value == nested(domain.dim, limits) <= configuration(domain.dim, stages(network))
        subsets = list(zip(found.inspected_active, found.inspected_unstable, strict=True))
        assert [len(row) for row, _ in subsets] == [len(part.most_active) for part in limits]
        assert sum(max(sum(one), sum(other)) for one, other in subsets) <= found.inspected  # once, where one search serves both
        assert found.inspected <= sum(sum(one) + sum(other) for one, other in subsets)
        assert all(one[0] == other[0] == 0 for one, other in subsets)  # no subset of no units needs to be looked at
    assert found.exact_coverage


def test_wide_and_deep_networks():
    rng = np.random.default_rng(0)
    wide = random_network(rng, sizes=[784, 256, 256, 10], linear=False)
    deep = random_network(rng, sizes=[50] * 51, linear=False)
    for network in (wide, deep):
        domain = Box.cube(0, 1, network.input_dim)
        assert 1 <= bound(network, domain).value <= configuration(domain.dim, stages(network))


def test_identity_layers_do_not_saturate():
    limits = Limits(tuple(range(51)), tuple(range(51)), 0)
    assert nested(50, [Limits((50,), (50,), 0)] + [limits] * 49) == 51**50  # sum of C(50, j) 50^(50 - j), and so on


def test_tighter_bounds_never_give_more():
    for seed in range(10):
        network = random_network(np.random.default_rng(seed), sizes=[2, 5, 5, 3])
        domain = Box.cube(-1, 1, 2)
        values = [empirical_bound(network, domain, method=method) for method in ("interval", "linear", "lp", "milp")]
        assert values == sorted(values, reverse=True)
        assert values[-1] == empirical_bound(network, domain)
        assert values[0] == empirical_bound(network, domain, stability(network, domain, method="interval"))


def test_all_bounds_with_what_they_rest_on():
    network = relus(([[1.0], [-1.0]], [0.0, 0.0]), ([[1.0, -1.0], [-1.0, 0.0], [0.0, 1.0]], [-0.5, 0.5, -0.25]))
    known = stability(network, LINE, method="interval")
    found = upper_bounds(network, LINE, stability=known)
    assert found.stability is known
    assert (found.configuration, found.empirical, found.best) == (12, 10, 10)
    assert [part.value for part in found.bounds] == [found.raghu, found.montufar, 12, 10]
    assert found.bounds[-1].method == "empirical"
    assert repr(found) == "UpperBounds(at most 10 regions, of 1-2-3 on [-1, 1])"
    record = json.loads(found.to_json())
    assert record["upper"]["empirical"]["value"] == 10
    assert record["stability"]["total"]["unstable"] == 5
    assert record["stability"]["method"] == "interval"
    assert record["coverage"] == {
        "inspected": found.empirical_details.inspected,
        "exact_coverage": True,
        "most_active": [[2], [1, 2, 3]],
        "most_unstable": [[2], [0, 2, 3]],
        "inspected_active": [[0], [0, 1, 1]],
        "inspected_unstable": [[0], [0, 1, 1]],
    }
    assert tessella.UpperBounds.from_json(found.to_json(), network=network).empirical_details == found.empirical_details
    assert upper_bounds(network, stability=known).domain == LINE
    assert upper_bounds(network, LINE).empirical == upper_bounds(network, LINE, method="lp").empirical == 10


def test_the_closed_gap():
    network = relus(([[1.0], [-1.0]], [0.0, 0.0]), ([[1.0, -1.0], [-1.0, 0.0], [0.0, 1.0]], [-0.5, 0.5, -0.25]))
    found = upper_bounds(network, LINE)
    assert found.gap_closed(6) == pytest.approx((log2(12) - log2(10)) / (log2(12) - log2(6)))
    assert found.gap_closed(10) == 1.0
    assert upper_bounds(relus(([[1.0]], [0.0])), LINE).gap_closed(2) == 1.0  # no gap: nothing is left of it
    with pytest.raises(OptionError, match="11 regions were given as exact"):
        found.gap_closed(11)
    with pytest.raises(OptionError, match="0 regions"):
        found.gap_closed(0)
    with pytest.raises(OptionError, match="give upper_bounds a domain"):
        upper_bounds(network).gap_closed(3)


def test_the_stability_of_something_else_is_refused():
    network, other = relus(([[1.0]], [0.0])), relus(([[2.0]], [0.0]))
    with pytest.raises(OptionError, match="the stability given is that of"):
        empirical_bound(network, LINE, stability(other, LINE))
    with pytest.raises(OptionError, match="the stability given is that of"):
        empirical_bound(network, LINE, stability(network, Box.cube(0, 1, 1)))
    with pytest.raises(tessella.DomainError, match="the domain has 2 inputs"):
        upper_bounds(network, SQUARE)


@pytest.mark.parametrize("leaky", [False, True])
def test_bounds_of_wide_layers_are_looser_but_bounds(leaky, monkeypatch):
    """Layers too wide to ask what switches what: still between the exact count and what the shape says."""
    rng = np.random.default_rng(leaky)
    for _ in range(10):
        sizes = rng.integers(2, 8, 4).tolist()
        layers = [
            Layer(rng.standard_normal((m, n)), rng.standard_normal(m), slope=np.where(rng.random(m) < 0.5 * leaky, 0.25, 0.0))
            for n, m in itertools.pairwise(sizes)
        ]
        network, box = Network(tuple(layers)), Box(-1, 1, dim=sizes[0])
        known = stability(network, box, method="linear")
        close = empirical_bound(network, box, known)
        with monkeypatch.context() as patched:
            patched.setattr("tessella.upper.empirical._MOST_SETS", 0)
            loose = empirical_bound(network, box, known)
            patched.setattr(sys.modules["tessella.upper.configuration"], "_MOST_WORK", 0.0)
            rounded = empirical_bound(network, box, known)
        assert count(network, box).exact <= close <= loose <= configuration_bound(network)
        assert loose <= rounded <= loose + 1
