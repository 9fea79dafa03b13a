"""Bounds on preactivations against the truth: points inside, and linear programs over every activation pattern outside."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from helpers.seeds import seeds
from tessella import Box, Layer, Network, Polytope
from tessella.preactivation import Method
from tessella.tightening import tighten

METHODS = list(Method)


def random_network(rng):
    """Small, and odd in every way that happens: linear units, zero rows, twins, dead units, biases of zero."""
    sizes = [int(rng.integers(1, 4)), *(int(n) for n in rng.integers(1, 4, rng.integers(1, 4)))]
    layers = []
    for before, size in itertools.pairwise(sizes):
        weight, bias = rng.standard_normal((size, before)), rng.standard_normal(size)
        if rng.random() < 0.2:
            weight[rng.integers(size)] = 0.0
        if rng.random() < 0.2 and size > 1:
            weight[0], bias[0] = weight[1], bias[1]
        if rng.random() < 0.2:
            bias[:] = 0.0
        if rng.random() < 0.1:
            bias -= 10.0
        mask = rng.random(size) < 0.8 if rng.random() < 0.3 else np.ones(size, dtype=bool)
        layers.append(Layer(weight, bias, mask))
    return Network(tuple(layers))


def random_domain(rng, dim):
    lower = rng.uniform(-1, 0.5, dim)
    box = Box(lower, lower + rng.uniform(0.2, 1.5, dim))
    if rng.random() < 0.3:
        normal = rng.standard_normal((2, dim))
        inside = box.sample(1, rng)[0]
        return Polytope(normal, normal @ inside + rng.uniform(0.1, 0.5, 2), box)
    if rng.random() < 0.2 and dim > 1:
        upper = box.upper.copy()
        upper[0] = box.lower[0]
        return Box(box.lower, upper)
    return box


def true_ranges(network, domain):
    """Walk all patterns; in each, the extremes of every next preactivation are linear programs."""
    box = domain.box
    rows = [(domain.matrix, domain.offset)] if isinstance(domain, Polytope) else []
    ranges = [[np.full(layer.units, np.inf), np.full(layer.units, -np.inf)] for layer in network.layers]

    def extreme(direction, constraints):
        matrix = np.vstack([m for m, _ in constraints]) if constraints else None
        offset = np.concatenate([b for _, b in constraints]) if constraints else None
        found = linprog(direction, A_ub=matrix, b_ub=offset, bounds=list(zip(box.lower, box.upper, strict=True)), method="highs")
        return found.fun if found.status == 0 else None

    def walk(number, matrix, offset, constraints):
        layer = network.layers[number]
        coefficients, constants = layer.dense() @ matrix, layer.dense() @ offset + layer.bias
        for unit in range(layer.units):
            low, high = extreme(coefficients[unit], constraints), extreme(-coefficients[unit], constraints)
            if low is None or high is None:
                return
            ranges[number][0][unit] = min(ranges[number][0][unit], low + constants[unit])
            ranges[number][1][unit] = max(ranges[number][1][unit], -high + constants[unit])
        if number + 1 < len(network.layers):
            split(number, 0, coefficients, constants, constraints)

    def split(number, unit, coefficients, constants, constraints):
        layer = network.layers[number]
        if unit == layer.units:
            walk(number + 1, coefficients, constants, constraints)
            return
        if not layer.rectified[unit]:
            split(number, unit + 1, coefficients, constants, constraints)
            return
        for sign in (1.0, -1.0):
            more = [*constraints, (-sign * coefficients[[unit]], sign * constants[[unit]])]
            if extreme(np.zeros(box.dim), more) is None:
                continue
            kept, shifted = coefficients.copy(), constants.copy()
            if sign < 0:
                kept[unit], shifted[unit] = 0.0, 0.0
            split(number, unit + 1, kept, shifted, more)

    walk(0, np.eye(box.dim), np.zeros(box.dim), rows)
    return ranges


def points_inside(domain, rng, count=400):
    points = domain.box.sample(count, rng)
    corners = np.where(rng.random(points.shape) < 0.5, domain.box.lower, domain.box.upper)
    points = np.vstack([points, corners])
    return points[domain.contains(points)]


@pytest.mark.parametrize("seed", seeds(200, quick=70))
def test_bounds_hold_the_true_range_and_each_method_is_at_least_as_tight(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng)
    domain = random_domain(rng, network.input_dim)
    values = network.preactivations(points_inside(domain, rng))
    truth = true_ranges(network, domain)
    found = {method: tighten(network, domain, method=method) for method in METHODS}
    for number, layer in enumerate(network.layers):
        low, high = truth[number]
        slack = 1e-7 * (1.0 + np.abs(low) + np.abs(high))  # the solver of the truth is right to about this
        for method in METHODS:
            lower, upper = found[method].lower[number], found[method].upper[number]
            decided = layer.rectified & ((upper <= 0.0) | (lower >= 0.0))
            assert (lower <= values[number].min(axis=0, initial=np.inf)).all()
            assert (upper >= values[number].max(axis=0, initial=-np.inf)).all()
            assert (lower <= low + slack).all(), method
            assert (upper >= high - slack).all(), method
            if method is Method.MILP:
                tight = ~decided & layer.rectified
                assert (lower[tight] >= low[tight] - 10 * slack[tight]).all()
                assert (upper[tight] <= high[tight] + 10 * slack[tight]).all()
                assert (upper[decided & (high <= 0)] <= 1e-6).all()
        for loose, tighter in itertools.pairwise(METHODS):
            assert (found[tighter].lower[number] >= found[loose].lower[number]).all()
            assert (found[tighter].upper[number] <= found[loose].upper[number]).all()


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e8])
def test_extreme_weights_scale_through(scale):
    rng = np.random.default_rng(3)
    layers = [(rng.standard_normal((4, 3)), rng.standard_normal(4)), (rng.standard_normal((3, 4)), rng.standard_normal(3))]
    scaled = [(layers[0][0] * scale, layers[0][1] * scale), (layers[1][0] / scale, layers[1][1])]
    box = Box.cube(-1, 1, 3)
    for method in METHODS:
        plain = tighten(Network.from_arrays(layers, relu_output=True), box, method=method)
        other = tighten(Network.from_arrays(scaled, relu_output=True), box, method=method)
        assert np.allclose(plain.upper[1], other.upper[1], rtol=1e-6)
        assert np.allclose(plain.lower[1], other.lower[1], rtol=1e-6)


def test_mixed_scales_in_one_layer_stay_sound():
    rng = np.random.default_rng(5)
    weight = rng.standard_normal((6, 4)) * np.array([1e-12, 1e8, 1.0, 1e-12, 1e8, 1.0])[:, None]
    network = Network.from_arrays(
        [(weight, rng.standard_normal(6)), (rng.standard_normal((4, 6)), rng.standard_normal(4))], relu_output=True
    )
    box = Box.cube(-1, 1, 4)
    values = network.preactivations(box.sample(5000, 1))
    for method in METHODS:
        found = tighten(network, box, method=method)
        for number in range(2):
            assert (found.lower[number] <= values[number].min(axis=0)).all()
            assert (found.upper[number] >= values[number].max(axis=0)).all()
