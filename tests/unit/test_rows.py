"""Rows of cells, what they add up to, and the long-step ratio test: against numpy."""

from itertools import product

import numpy as np
import pytest

from helpers.odd_networks import random_case
from tessella import Box, Network
from tessella.cells.pricing import price, turning
from tessella.cells.rows import combine, compose, place, place_with_error, quick_sign, size_of, value
from tessella.cells.state import Layers, Pricing, Space, Units
from tessella.numerics import TRUSTED_ROW
from tessella.partition.tree import Tree


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def tree_of(rng, widths, inputs):
    layers, before = [], inputs
    for width in widths:
        layers.append((rng.standard_normal((width, before)), rng.standard_normal(width)))
        before = width
    return Tree(Network.from_arrays(layers, relu_output=True), Box.cube(-1.0, 1.0, inputs))


def laid_out(tree, *, in_inputs):
    scaled = tree.scaled
    normals = np.vstack([scaled.weights[0], scaled.normals])
    space = Space.of(normals, in_inputs=in_inputs)
    return space, Layers.of(scaled), Units.of(space, scaled, normals, tree.errors)


@pytest.mark.parametrize("in_inputs", [True, False])
def test_space(rng, in_inputs):
    normals = rng.standard_normal((4, 9))
    space = Space.of(normals, in_inputs=in_inputs)
    assert (space.dimensions, space.inputs) == ((9, 9) if in_inputs else (4, 9))
    assert space.rows_of(normals) @ space.frame == pytest.approx(normals)
    assert (space.columns == space.frame.T).all()
    assert space.gram == pytest.approx(space.frame @ space.frame.T)
    if not in_inputs:
        assert np.abs(space.frame).sum(axis=1) == pytest.approx(np.ones(4))


@pytest.mark.parametrize("in_inputs", [True, False])
def test_composed_rows_are_preactivations(rng, in_inputs):
    tree = tree_of(rng, [5, 4, 6], 7)
    space, layers, units = laid_out(tree, in_inputs=in_inputs)
    point = rng.uniform(-1.0, 1.0, 7)
    z, sizes, outputs = space.frame @ point, np.zeros(6), point
    for layer, (weight, bias) in enumerate(zip(tree.scaled.weights, tree.scaled.biases, strict=True)):
        if layer:
            compose(layer, layers, units.active, units.combined, units.errors, sizes)
        own = slice(layers.first[layer], layers.first[layer] + layers.width[layer])
        expected = weight @ outputs + bias
        assert units.combined[own] @ [*z, 1.0] == pytest.approx(expected)
        assert (units.errors[own] < 1e-13 * np.abs(units.combined[own]).sum(axis=1)).all()
        assert (units.errors[own] > 0.0).all()
        units.active[own] = expected > 0.0
        outputs = np.maximum(expected, 0.0)


@pytest.mark.parametrize("seed", range(8))
def test_units_that_are_not_rectified_are_no_decisions(seed):
    case = random_case(seed)
    tree = Tree(case.network, case.domain)
    layers = Layers.of(tree.scaled)
    assert len(layers.unit_of) == tree.units
    assert layers.rectified[layers.unit_of].all()
    assert (layers.first[layers.layer_of] <= layers.unit_of).all()


@pytest.mark.parametrize("in_inputs", [True, False])
def test_placed_rows_are_scaled(rng, in_inputs):
    normals = rng.standard_normal((3, 8))
    space = Space.of(normals, in_inputs=in_inputs)
    p = space.dimensions
    unit, row = rng.standard_normal(p + 1), np.zeros(p + 3)
    scale = place(unit, -1.0, space, row)
    assert scale == pytest.approx(-1.0 / size_of(unit))
    assert row[: p + 1] == pytest.approx(scale * unit)
    assert row[p + 1] == pytest.approx(np.sum((row[:p] @ space.frame) ** 2))
    assert row[p + 2] == 0.0
    place_with_error(unit, 1e-9, 1.0, space, row)
    assert row[p + 2] == pytest.approx(1e-9 / size_of(unit))
    point = rng.standard_normal(p)
    assert value(row, point) == pytest.approx(row[:p] @ point + row[p])


def test_signs_of_rows_alone():
    def sign(*row, error=1e-15):
        return quick_sign(np.array(row), error, TRUSTED_ROW)

    assert sign(0.5, 0.4, 1.0) == 1
    assert sign(0.5, -0.4, -1.0) == 0
    assert sign(0.5, 0.6, 1.0) == -1
    assert sign(0.5, 0.5, 1.0) == -1
    assert sign(0.5, 0.6, 1.0, error=1e-11) == -2
    assert sign(0.0, 0.0, 1e-30, error=0.0) == 1
    assert sign(0.0, 0.0, 0.0, error=0.0) == 0
    assert quick_sign(np.array([0.5, 0.6, 1.0]), 1e-11, 1e-10) == -1


@pytest.mark.parametrize(("dimensions", "inputs"), [(1, 3), (3, 7), (4, 9), (9, 30), (15, 100)])
def test_combinations(rng, dimensions, inputs):
    space = Space.of(rng.standard_normal((dimensions, inputs)), in_inputs=False)
    combination, slopes, rates = rng.standard_normal(dimensions + 2), np.zeros(inputs), np.zeros(inputs, np.float32)
    expected = combination[:dimensions] @ space.frame
    combine(space.frame, combination, slopes)
    assert slopes == pytest.approx(expected)
    price(space.light, combination, rates)
    assert rates == pytest.approx(expected, rel=1e-4, abs=1e-6)


def slow_turning(rates, costs, need, limit):
    """The same ratio test: by sorting."""
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = -costs / rates
    steps = np.where(steps > 0.0, steps, np.inf)
    total = 0.0
    for j in np.argsort(steps, kind="stable"):
        if steps[j] >= np.float32(limit):
            return -1, steps
        total += 2.0 * abs(float(rates[j]))
        if total >= need:
            return int(j), steps
    return -1, steps


@pytest.mark.parametrize(("inputs", "limit"), list(product((1, 9, 60, 784), (np.inf, 0.7, 0.0))))
def test_ratio_test(rng, inputs, limit):
    pricing = Pricing.of(inputs)
    for _ in range(40):
        pricing.rates[:] = rng.standard_normal(inputs)
        pricing.rates[rng.random(inputs) < 0.1] = 0.0
        costs = rng.standard_normal(inputs).astype(np.float32)
        need = float(rng.uniform(0.0, 1.2) * np.abs(pricing.rates).sum())
        expected, steps = slow_turning(pricing.rates, costs, need, limit)
        assert turning(pricing, costs, need, limit) == expected
        listed = set(pricing.order[: pricing.order[inputs]].tolist())
        last = steps[expected] if expected >= 0 else min(limit, np.inf)
        assert set(np.flatnonzero((steps <= last) & (steps < limit)).tolist()) <= listed
