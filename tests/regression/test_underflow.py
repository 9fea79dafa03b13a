"""Networks whose products underflow: what is proved of them is right, as it is of their multiples by powers of two."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessella
from fuzz.checks import Hunt, look
from fuzz.drawing import Prey
from helpers.brute_force import region_patterns
from helpers.odd_networks import Case

EVERY = np.True_


def case_of(layers, low, high):
    made = [(np.array(weight, dtype=float), np.array(bias, dtype=float), np.full(len(bias), EVERY)) for weight, bias in layers]
    dim = made[0][0].shape[1]
    return Case(made, np.full(dim, low), np.full(dim, high))


def corner(inputs, size):
    """Two units that cut a box in four."""
    return (np.eye(2, inputs) * size, [0.0, 0.0])


def hunt_of(case):
    return Hunt(Prey(case, case, ""), case.network, case.domain, region_patterns(*case), 0)


def check(case, verbs=("count", "regions", "stability", "upper_bounds", "estimate", "mipbound", "polygons")):
    hunt = hunt_of(case)
    for verb in verbs:
        seen = look(verb, hunt)
        assert seen is not None, f"{verb} refused"
        assert seen.wrong is None, f"{verb}: {seen.wrong}"
    return hunt.true


@pytest.mark.parametrize("inputs", [2, 3, 7])
def test_two_units_on_a_tiny_box(inputs):
    assert check(case_of([corner(inputs, 1e-200)], -1e-200, 1e-200)) == 4


@pytest.mark.parametrize("inputs", [2, 3, 7])
def test_a_second_layer_of_tiny_weights(inputs):
    assert check(case_of([corner(inputs, 1e-160), ([[1e-170, -1e-170]], [0.0])], -1.0, 1.0)) == 5


def test_estimates_of_tiny_weights():
    case = case_of([([[1e-160, 0.0], [3e-161, 1e-160]], [0.0, 0.0]), ([[1e-160, -1e-160]], [0.0])], -1.0, 1.0)
    assert check(case) == 5
    found = [tessella.estimate(case.network, case.domain, probes=40, counting=False, workers=1, rng=seed) for seed in range(20)]
    assert sum(one.lower > 5 for one in found) <= 4  # a bound with 95 % may fail


def test_one_input():
    assert check(case_of([([[1e-200], [-1e-200]], [0.0, 0.0]), ([[1e-200, -1e-200]], [0.0])], -1.0, 1.0)) == 2


def test_a_box_of_the_smallest_numbers():
    smallest = 2.0**-1074
    assert check(case_of([([[1.0, 2.0], [2.0**1000, -(2.0**1000)]], [0.0, 0.0])], -smallest, smallest)) == 4


@given(
    st.integers(0, 10_000),
    st.integers(1, 4),
    st.lists(st.integers(-700, 300), min_size=2, max_size=2),
    st.integers(-1000, 200),
)
@pytest.mark.slow
def test_tiny_and_huge_layers(seed, inputs, powers, reach):
    """Layers and a box times powers of two, which are exact unless numbers fall below the smallest normal ones: as many regions as rational arithmetic says."""
    rng, scale, layers = np.random.default_rng(seed), 2.0**reach, []
    for size, before, power in ((3, inputs, powers[0]), (2, 3, powers[1])):
        weight, bias = rng.integers(-3, 4, (size, before)) * 2.0**power, rng.integers(-2, 3, size) * 2.0**power
        layers.append((weight, bias * (scale if before == inputs and not layers else 0.0)))
    case = case_of(layers, -scale, scale)
    hunt = hunt_of(case)
    for verb in ("count", "regions", "stability", "upper_bounds", "estimate"):
        seen = look(verb, hunt)
        assert seen is None or seen.wrong is None, f"{verb}: {seen.wrong}"


def test_what_underflowed_times_what_is_small():
    """Linear bounds: what was lost of products, times a reach below 1, was 0 again, and a positive unit called inactive."""
    case = case_of([([[1e-107]], [1e-107]), ([[1e-145]], [0.0]), ([[1e-241]], [0.0])], -0.5, 1.0)
    check(case, ("stability", "count", "regions"))
    bounds = tessella.stability(case.network, case.domain, method="linear").bounds
    assert bounds.lower[2][0] <= 0.0 < bounds.upper[2][0]
