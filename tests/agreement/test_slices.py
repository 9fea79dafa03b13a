"""Slices against exact arithmetic: the right regions, in the domain, and never more than the whole has."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import tessella
from helpers.brute_force import count_regions, patterns_in_the_plane, patterns_on_a_line
from helpers.odd_networks import random_case
from tessella import Box, Network, Polytope


def arrays(network):
    return [(layer.dense(), layer.bias, layer.rectified) for layer in network.layers]


def domain_rows(domain):
    """``matrix @ x <= offset``, the box's faces included."""
    eye = np.eye(domain.dim)
    matrix, offset = np.vstack([eye, -eye]), np.concatenate([domain.box.upper, -domain.box.lower])
    if isinstance(domain, Polytope):
        matrix, offset = np.vstack([matrix, domain.matrix]), np.concatenate([offset, domain.offset])
    return matrix, offset


def patterns_on(chosen):
    """Exactly, on the slice's own domain."""
    domain = chosen.domain
    walls = (domain.matrix, domain.offset) if isinstance(domain, Polytope) else ()
    count = patterns_in_the_plane if chosen.dim == 2 else patterns_on_a_line
    return count(arrays(chosen.network), domain.box.lower, domain.box.upper, *walls)


def cases(least, count):
    seeds = (seed for seed in itertools.count() if random_case(seed, largest=60, most_inputs=5).free >= least)
    return list(itertools.islice(seeds, count))


def some_slice(case, rng, kind):
    free, domain = np.flatnonzero(case.lower < case.upper), case.domain
    if kind == "axes":
        return tessella.slice(case.network, domain=domain, axes=rng.choice(free, 2, replace=False))
    if kind == "axis":
        return tessella.slice(case.network, domain=domain, axes=rng.choice(free, 1))
    centre = domain.centre if isinstance(domain, Polytope) else (case.lower + case.upper) / 2
    points = np.vstack([centre, rng.uniform(case.lower, case.upper, (2, len(centre)))])
    return tessella.slice(case.network, points if kind == "points" else points[:2], domain)


@pytest.mark.parametrize("seed", cases(2, 30))
@pytest.mark.parametrize("kind", ["axes", "axis", "points", "line"])
def test_regions_on_a_slice_are_counted_and_are_a_lower_bound(kind, seed):
    case = random_case(seed, largest=60, most_inputs=5)
    chosen = some_slice(case, np.random.default_rng(seed), kind)
    counted = tessella.count(chosen.network, chosen.domain, workers=1).exact
    assert counted == len(patterns_on(chosen))
    assert counted <= count_regions(*case)
    assert len(tessella.polygons(chosen.network, chosen.domain)) == counted


@pytest.mark.parametrize("seed", cases(3, 20))
@pytest.mark.parametrize("kind", ["axes", "points"])
def test_what_is_shown_lies_in_the_domain_and_fills_it(kind, seed):
    case = random_case(seed, largest=60, most_inputs=5)
    chosen = some_slice(case, np.random.default_rng(seed), kind)
    matrix, offset = domain_rows(case.domain)
    sizes = np.abs(matrix) @ np.maximum(np.abs(case.lower), np.abs(case.upper)) + np.abs(offset) + 1e-300
    found = tessella.polygons(Network.from_arrays([(chosen.network.layers[0].dense(), chosen.origin)]), chosen.domain)
    corners = found[0]
    assert ((chosen.lift(corners) @ matrix.T - offset) / sizes).max() <= 1e-12
    middle = corners.mean(axis=0)
    for one, other in zip(corners, np.roll(corners, -1, axis=0), strict=True):  # every side is one of the domain's
        outside = chosen.lift(middle + 1.001 * ((one + other) / 2 - middle))
        assert ((outside @ matrix.T - offset) / sizes).max() > 0


@pytest.mark.parametrize("seed", range(10))
def test_the_interval_of_a_line_is_in_the_box_exactly(seed):
    """Not up to rounding: a region that is proved on the slice must be one of the whole."""
    rng = np.random.default_rng(seed)
    lower, upper = -rng.random(4), rng.random(4)
    box = Box(lower, upper)
    network = Network.from_arrays([(np.ones((1, 4)), [0.0])])
    chosen = tessella.slice(network, rng.uniform(lower, upper, (2, 4)), box)
    for end in (chosen.domain.lower[0], chosen.domain.upper[0]):
        for axis in range(4):
            value = Fraction(chosen.origin[axis]) + Fraction(chosen.basis[axis, 0]) * Fraction(end)
            assert Fraction(lower[axis]) <= value <= Fraction(upper[axis])


@pytest.mark.parametrize("seed", range(10))
def test_the_corners_of_a_polygon_are_in_the_box_exactly(seed):
    rng = np.random.default_rng(seed)
    lower, upper = -rng.random(5), rng.random(5)
    network = Network.from_arrays([(np.ones((1, 5)), [0.0])])
    chosen = tessella.slice(network, rng.uniform(lower, upper, (3, 5)), Box(lower, upper))
    rows = [
        ([Fraction(v) for v in row], Fraction(limit))
        for row, limit in zip(chosen.domain.matrix, chosen.domain.offset, strict=True)
    ]
    corners = 0
    for ((a, b), e), ((c, d), f) in itertools.combinations(rows, 2):
        if a * d != b * c:
            s, t = (e * d - b * f) / (a * d - b * c), (a * f - e * c) / (a * d - b * c)
            if all(p * s + q * t <= limit for (p, q), limit in rows):
                corners += 1
                for axis in range(5):
                    value = Fraction(chosen.origin[axis]) + sum(
                        Fraction(v) * w for v, w in zip(chosen.basis[axis], (s, t), strict=True)
                    )
                    assert Fraction(lower[axis]) <= value <= Fraction(upper[axis])
    assert corners == len(rows)


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_holds_where_units_vanish_on_the_slice(seed):
    """Units that are 0 all over the slice, and others that are only positive beside it, add no region that is not there."""
    rng = np.random.default_rng(seed)
    first = np.vstack([[0, 0, 1.0], [0, 0, -1.0], np.column_stack([rng.integers(-2, 3, (3, 2)), rng.integers(-1, 2, 3)])])
    layers = [
        (first, np.array([0, 0, 0, 1.0, -1.0])),
        (rng.integers(-2, 3, (4, 5)).astype(float), rng.integers(-1, 2, 4).astype(float)),
    ]
    network = Network.from_arrays(layers, relu_output=True)
    chosen = tessella.slice(network, domain=Box(-1, 1, dim=3), axes=(0, 1))
    counted = tessella.count(chosen.network, chosen.domain, workers=1).exact
    assert counted == len(patterns_on(chosen))
    assert counted <= count_regions(arrays(network), [-1] * 3, [1] * 3)


def test_a_slice_in_a_face_of_the_domain_is_a_lower_bound():
    rng = np.random.default_rng(0)
    network = Network.from_arrays([(rng.standard_normal((6, 3)), 0.3 * rng.standard_normal(6))], relu_output=True)
    chosen = tessella.slice(network, domain=Box(-1, 1, dim=3), axes=(0, 1), at=[0.0, 0.0, 1.0])
    assert tessella.count(chosen.network, chosen.domain).exact <= tessella.count(network, Box(-1, 1, dim=3)).exact
