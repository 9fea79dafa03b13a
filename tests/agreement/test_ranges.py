"""Exact ranges of all units: against rational arithmetic over all regions, and against solvers on the MILP."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.brute_force_ranges import unit_ranges
from tessella import Box, Layer, Network, Polytope, stability
from tessella.formulation import formulate
from tessella.solvers import SCIP, Gurobi, HiGHS, Status

EIGHTHS = st.integers(-20, 20).map(lambda number: number / 8)


def sided(network, domain):
    """The true ranges."""
    layers, times = [], np.ones(network.input_dim)  # of linear units; powers of two, so that products are exact
    for layer in network.layers:
        layers.append((layer.dense() * times, layer.bias, layer.rectified, np.where(layer.rectified, layer.slope, 0.0)))
        times = np.where(layer.rectified, 1.0, layer.slope)
    rows = (domain.matrix, domain.offset) if isinstance(domain, Polytope) else ()
    return unit_ranges(layers, domain.box.lower, domain.box.upper, *rows)


def check(network, domain, found):
    """Every range holds the true one in exact arithmetic, and is hardly wider."""
    assert found.bounds.unproved == 0
    for number, truth in enumerate(sided(network, domain)):
        size = 1.0 + max(float(abs(end)) for pair in truth for end in pair)
        for unit, (low, high) in enumerate(truth):
            lower, upper = found.bounds.lower[number][unit], found.bounds.upper[number][unit]
            assert Fraction(float(lower)) <= low <= high <= Fraction(float(upper))
            assert float(low - Fraction(float(lower))) <= 2e-6 * size
            assert float(Fraction(float(upper)) - high) <= 2e-6 * size


def drawn(seed):
    """A small network with linear, stable, leaky and dead units, and a box, a face or a polytope."""
    rng = np.random.default_rng(seed)
    sizes = [int(rng.integers(1, 4)), *(int(n) for n in rng.integers(1, 5, rng.integers(1, 4)))]
    layers = []
    for place, (before, size) in enumerate(itertools.pairwise(sizes)):
        weight, bias = rng.standard_normal((size, before)), rng.standard_normal(size)
        if rng.random() < 0.2:
            bias += rng.choice([-5.0, 5.0])
        if rng.random() < 0.2:
            weight[rng.integers(size)] = 0.0
        last = place == len(sizes) - 2
        rectified = rng.random(size) < (0.2 if last else 0.8)
        slope = np.where(rng.random(size) < 0.3, rng.choice([-1.0, 0.25, 2.0]), 0.0) if rng.random() < 0.3 else 0.0
        layers.append(Layer(weight, bias, rectified, slope))
    lower = rng.uniform(-1, 0.5, sizes[0])
    upper = lower + rng.uniform(0.2, 1.5, sizes[0])
    if rng.random() < 0.2 and sizes[0] > 1:
        upper[0] = lower[0]
    box = Box(lower, upper)
    if rng.random() < 0.3 and (upper > lower).all():
        normal = rng.standard_normal((2, sizes[0]))
        return Network(tuple(layers)), Polytope(normal, normal @ box.sample(1, rng)[0] + rng.uniform(0.1, 0.5, 2), box)
    return Network(tuple(layers)), box


@pytest.mark.parametrize("seed", range(60))
def test_ranges_of_all_units_are_those_of_all_regions(seed):
    network, domain = drawn(seed)
    check(network, domain, stability(network, domain, units="all"))


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_ranges_of_drawn_networks_are_never_inside_the_truth(data):
    inputs, hidden, outputs = (data.draw(st.integers(1, 3)) for _ in range(3))
    numbers = st.lists(EIGHTHS, min_size=12, max_size=12)
    weights, biases = np.array(data.draw(numbers)), np.array(data.draw(numbers))
    first = Layer(weights[: hidden * inputs].reshape(hidden, inputs), biases[:hidden])
    last = Layer(weights[-outputs * hidden :].reshape(outputs, hidden), biases[-outputs:], rectified=False)
    network, box = Network((first, last)), Box.cube(-1.0, 1.0, dim=inputs)
    check(network, box, stability(network, box, units="all"))


PACKAGES = {SCIP: "pyscipopt", HiGHS: "highspy", Gurobi: "gurobipy"}


@pytest.mark.parametrize("kind", PACKAGES)
def test_ranges_of_outputs_are_what_solvers_find_on_the_milp(kind):
    pytest.importorskip(PACKAGES[kind])
    rng = np.random.default_rng(4)
    layers = [(rng.standard_normal((n, m)), rng.standard_normal(n)) for m, n in itertools.pairwise((3, 7, 6, 2))]
    network, box = Network.from_arrays(layers), Box.cube(-1.0, 1.0, dim=3)
    loose = stability(network, box, method="interval").bounds
    problem = formulate(network, box, loose, positivity=False, valid_inequalities=False, outputs=True)
    lower, upper = stability(network, box, units="all").outputs
    for output, ends in enumerate(zip(lower, upper, strict=True)):
        objective = np.zeros(len(problem.model.names))
        objective[problem.layers[-1].preactivation[output]] = 1.0
        for end, maximize in zip(ends, (False, True), strict=True):
            found = kind().solve(problem.model.with_objective(objective, maximize=maximize))
            assert found.status is Status.OPTIMAL
            assert end == pytest.approx(found.objective, abs=1e-5)
