"""Polygons against exact arithmetic: as many as `count` finds, the right patterns, and together the whole domain."""

import itertools

import numpy as np
import pytest

import tessella
from helpers.brute_force import patterns_in_the_plane, patterns_on_a_line
from helpers.odd_networks import random_case
from tessella import Box, Layer, Network, Polytope
from tessella.listing.polygons import polygons


def as_sets(found):
    return {tuple(row) for row in found.patterns.tolist()}


def area_of(domain):
    """By the shoelace formula on the corners of the domain, found by trying all pairs of sides."""
    box = domain.box
    low, high = box.lower[box.free], box.upper[box.free]
    if not isinstance(domain, Polytope):
        return np.prod(high - low)
    fixed = domain.matrix[:, ~box.free] @ box.lower[~box.free]
    rows = np.vstack([domain.matrix[:, box.free], np.eye(len(low)), -np.eye(len(low))])
    limits = np.concatenate([domain.offset - fixed, high, -low])
    size = np.abs(rows) @ np.maximum(np.abs(low), np.abs(high)) + np.abs(limits)
    corners = []
    for chosen in itertools.combinations(range(len(rows)), len(low)):
        matrix = rows[list(chosen)]
        if abs(np.linalg.det(matrix)) > 1e-12 * np.prod(np.linalg.norm(matrix, axis=1)):
            corner = np.linalg.solve(matrix, limits[list(chosen)])
            if (rows @ corner - limits <= 1e-9 * size).all():
                corners.append(corner)
    corners = np.array(corners)
    if len(low) == 1:
        return np.ptp(corners)
    middle = corners.mean(axis=0)
    x, y = corners[np.argsort(np.arctan2(*((corners - middle) / (high - low)).T[::-1]))].T
    return 0.5 * abs(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))


def cases(free, count):
    seeds = (seed for seed in itertools.count() if random_case(seed, largest=120, most_inputs=3).free == free)
    return list(itertools.islice(seeds, count))


@pytest.mark.parametrize("seed", cases(2, 60))
def test_polygons_of_odd_networks_are_the_regions(seed):
    case = random_case(seed, largest=120, most_inputs=3)
    found = polygons(case.network, case.domain)
    expected = patterns_in_the_plane(*case)
    assert len(found) == len(expected) == tessella.count(case.network, case.domain, workers=1).exact
    assert as_sets(found) == expected
    assert np.isclose(found.areas.sum(), area_of(case.domain), rtol=1e-8)
    assert (found.areas > -1e-12 * area_of(case.domain)).all()


@pytest.mark.parametrize("seed", cases(1, 30))
def test_intervals_of_odd_networks_are_the_regions(seed):
    case = random_case(seed, largest=120, most_inputs=3)
    found = polygons(case.network, case.domain)
    assert as_sets(found) == patterns_on_a_line(*case)
    assert len(found) == tessella.count(case.network, case.domain, workers=1).exact
    assert np.isclose(found.areas.sum(), area_of(case.domain), rtol=1e-9)


def arrays(network):
    return [(layer.dense(), layer.bias, layer.rectified) for layer in network.layers]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["general", "without biases", "whole numbers", "equal", "corners"])
def test_polygons_of_random_networks_are_the_regions(kind, seed):
    rng = np.random.default_rng(seed)
    sizes = (2, 6, 5, 2)
    layers = [(rng.standard_normal((n, m)), 0.5 * rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)]
    if kind == "without biases":
        layers = [(weight, np.zeros(len(bias))) for weight, bias in layers]
    if kind == "whole numbers":
        layers = [(np.round(2 * weight), np.round(2 * bias)) for weight, bias in layers]
    if kind == "equal":
        for weight, bias in layers[:2]:
            weight[1], bias[1] = weight[0], bias[0]
            weight[2] = 2 * weight[0]
    if kind == "corners":
        layers[0] = (layers[0][0], -layers[0][0] @ np.array([1.0, -1.0]))
    network = Network.from_arrays(layers, relu_output=True)
    found = polygons(network, Box(-1, 1, dim=2))
    assert len(found) == tessella.count(network, Box(-1, 1, dim=2), workers=1).exact
    assert as_sets(found) == patterns_in_the_plane(arrays(network), [-1, -1], [1, 1])
    assert np.isclose(found.areas.sum(), 4.0)


def test_borders_name_the_layer_that_is_zero_there():
    rng = np.random.default_rng(5)
    layers = [(rng.standard_normal((n, m)), 0.5 * rng.standard_normal(n)) for m, n in itertools.pairwise((2, 7, 6, 5, 1))]
    network, box = Network.from_arrays(layers), Box([-1.0, -2.0], [2.0, 1.0])
    found = polygons(network, box)
    seen = set()
    for number in range(len(found)):
        corners = found[number]
        middles = (corners + np.roll(corners, -1, axis=0)) / 2
        values = network.preactivations(middles)
        borders = found.borders[found.starts[number] : found.starts[number + 1]]
        for place, layer in enumerate(borders.tolist()):
            seen.add(layer)
            if layer >= 0:
                assert np.abs(values[layer][place]).min() < 1e-12
                assert all(np.abs(values[before][place]).min() > 1e-12 for before in range(layer))
            else:
                assert np.isclose(middles[place], box.lower).any() or np.isclose(middles[place], box.upper).any()
    assert seen == {-1, 0, 1, 2}


def test_affine_maps_are_those_of_the_network():
    case = random_case(cases(2, 1)[0], largest=120, most_inputs=3)
    found = polygons(case.network, case.domain)
    matrices, offsets = found.affine_maps()
    for pattern, matrix, offset in zip(found.patterns, matrices, offsets, strict=True):
        whole, constant = case.network.affine_map(pattern)
        free = case.domain.box.free
        np.testing.assert_allclose(matrix, whole[:, free], atol=1e-12)
        np.testing.assert_allclose(offset, constant + whole[:, ~free] @ case.domain.box.lower[~free], atol=1e-12)


def test_a_unit_that_is_zero_on_part_of_the_domain_is_inactive_there():
    # relu(x) is never negative, so the second layer's unit is stably active: but not where x < 0
    network = Network((Layer([[1.0, 0.0]], [0.0]), Layer([[1.0]], [0.0])))
    found = polygons(network, Box(-1, 1, dim=2))
    assert as_sets(found) == {(True, True), (False, False)}


def test_a_network_without_a_cut_is_one_polygon():
    network = Network.from_arrays([([[1.0, 1.0]], [5.0]), ([[1.0]], None)])
    found = polygons(network, Polytope([[1.0, 1.0]], [0.0], Box(-1, 1, dim=2)))
    assert len(found) == 1
    assert found.areas.sum() == 2.0
    assert polygons(Network.from_arrays([([[1.0, 1.0]], None)]), Box(-1, 1, dim=2)).patterns.shape == (1, 0)


def test_a_limit_ends_it():
    rng = np.random.default_rng(0)
    network = Network.from_arrays([(rng.standard_normal((40, 2)), rng.standard_normal(40)), (rng.standard_normal((9, 40)), None)])
    found = polygons(network, Box(-1, 1, dim=2), limit=10)
    assert (len(found), found.complete) == (10, False)
    assert "not all" in repr(found)
    assert polygons(network, Box(-1, 1, dim=2)).complete


def test_many_inputs_are_refused():
    with pytest.raises(tessella.OptionError, match="one or two free inputs, and the domain has 3"):
        polygons(Network.from_arrays([(np.eye(3), None)]), Box(-1, 1, dim=3))
