"""What must hold for any terms and any network."""

import itertools
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tessella
from tessella.estimating.betting import bets, log_mean, lower_bound

logarithms = st.lists(st.floats(-50.0, 3000.0), min_size=1, max_size=60).map(np.array)


def bound(terms, confidence=0.95):
    return lower_bound(terms, bets(terms, np.full(len(terms), float(len(terms))), confidence), confidence)


@given(logarithms, st.floats(0.5, 0.999))
def test_the_bound_is_finite_and_below_the_largest_term(terms, confidence):
    assert bound(terms, confidence) <= terms.max() + 1e-6


@given(logarithms, st.floats(-100.0, 100.0))
def test_the_bound_scales_with_the_terms(terms, factor):
    assert math.isclose(bound(terms + factor), bound(terms) + factor, abs_tol=1e-6)


@given(logarithms)
def test_more_confidence_is_a_lower_bound_for_the_same_stakes(terms):
    stakes = bets(terms, np.full(len(terms), float(len(terms))), 0.95)
    assert lower_bound(terms, stakes, 0.99) <= lower_bound(terms, stakes, 0.9) + 1e-9


@given(logarithms, st.integers(1, 59))
def test_the_bound_only_grows(terms, cut):
    stakes = bets(terms, np.full(len(terms), float(len(terms))), 0.95)
    assert lower_bound(terms[:cut], stakes[:cut], 0.95) <= lower_bound(terms, stakes, 0.95) + 1e-9


@given(st.lists(st.floats(0.0, 20.0), min_size=1, max_size=30))
def test_means(terms):
    assert math.isclose(log_mean(np.array(terms)), math.log(np.mean(np.exp(terms))), rel_tol=1e-9, abs_tol=1e-9)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 5), min_size=2, max_size=4))
def test_permuted_units_have_the_same_number_of_regions(seed, sizes):
    """Estimates of one network with units in two orders are of one number: with a population as large as the tree, exactly."""
    from tessella.estimating.descents import Descents
    from tessella.partition.tree import Tree

    rng = np.random.default_rng(seed)
    layers, permuted, order = [], [], np.arange(sizes[0])
    for reads, units in itertools.pairwise(sizes):
        weight, bias, after = rng.standard_normal((units, reads)), rng.standard_normal(units), rng.permutation(units)
        layers.append((weight, bias))
        permuted.append((weight[after][:, order], bias[after]))
        order = after
    found = []
    for made in (layers, permuted):
        net = tessella.Network.from_arrays(made, relu_output=True)
        tree = Tree.of(tessella.stability(net, tessella.Box.cube(-1, 1, sizes[0]), method="linear"))
        descents = Descents(tree, population=200) if tree.units else None
        found.append(float(np.exp(descents.rounds(0, 1, 0, descents.shape.start()).logarithms[0])) if descents else 1.0)
    assert math.isclose(*found, rel_tol=1e-9)
