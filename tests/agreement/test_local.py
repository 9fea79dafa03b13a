"""Regions in balls against rational arithmetic and the count; distances to walls against fractions."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import nnls

import tessella
from helpers import brute_force
from helpers.brute_force_walls_near import distances
from helpers.odd_networks import leaky_case, random_case
from tessella.nearby.cells import Cells
from tessella.nearby.reduced import reduce
from tessella.nearby.walls import distances as nearest


def case_and_ball(seed):
    """A small odd network, a point that may lie on a grid, and a radius."""
    case, rng = (leaky_case if seed % 3 == 0 else random_case)(seed, largest=120), np.random.default_rng([7, seed])
    width = case.upper - case.lower
    share = rng.integers(0, 9, len(width)) / 8.0 if seed % 2 else rng.random(len(width))
    return case, case.lower + width * share, float(max(width.max(), 0.5) * rng.choice([0.1, 0.25, 0.5]))


def he(sizes, seed):
    rng = np.random.default_rng(seed)
    pairs = itertools.pairwise(sizes)
    return tessella.Network.from_arrays(
        [(rng.standard_normal((b, a)) * np.sqrt(2 / a), 0.1 * rng.standard_normal(b)) for a, b in pairs]
    )


@pytest.mark.parametrize("block", range(4))
def test_boxes_hold_what_rational_arithmetic_says(block):
    for seed in range(40 * block, 40 * block + 40):
        case, point, radius = case_and_ball(seed)
        box = tessella.Box.around(point, radius)
        true = brute_force.count_regions(case.layers, box.lower, box.upper)
        assert tessella.local(case.network, [point], radius, workers=1).counts == (true,), seed


def test_brackets_of_cells_hold_where_they_are_not_settled():
    open_ones = early_ones = 0
    for seed in range(200, 320):
        case, point, radius = case_and_ball(seed)
        box = tessella.Box.around(point, radius)
        known = tessella.stability(case.network, box, method="linear")
        found = Cells(reduce(known), np.zeros(box.free_dim)).count(lambda: False, 10_000)
        true = brute_force.count_regions(case.layers, box.lower, box.upper)
        assert found.lower <= true <= found.upper, seed
        early = Cells(reduce(known), np.zeros(box.free_dim)).count(lambda: False, 2)
        assert early.lower <= true <= early.upper, seed
        open_ones += found.lower < found.upper
        early_ones += early.lower < early.upper
    assert 0 < open_ones < 60
    assert early_ones > 20


def test_wide_networks_have_the_counts_of_their_boxes():
    net = he((60, 40, 40, 5), seed=0)
    points, box = np.random.default_rng(1).random((6, 60)), tessella.Box(0, 1, dim=60)
    found = tessella.local(net, points, 0.02, domain=(0, 1))
    for point, number in zip(points, found.counts, strict=True):
        assert number == tessella.count(net, tessella.Box.around(point, 0.02, within=box)).exact
    assert max(found.counts) > 20


def distance(rows, limits, point):
    """How far a point is from where rows are at most their limits, as a least squares problem (Lawson and Hanson, chapter 23)."""
    matrix = np.vstack([-rows.T, (rows @ point - limits)[None, :]])
    rest = matrix @ nnls(matrix, np.append(np.zeros(len(point)), 1.0))[0]
    rest[-1] -= 1.0
    return float(np.linalg.norm(rest[:-1] / rest[-1]))


def test_other_norms():
    net = he((3, 12, 12, 2), seed=2)
    points = np.random.default_rng(3).random((5, 3))
    ball = tessella.local(net, points, 0.4, "l1")
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=3)))
    for point, number in zip(points, ball.counts, strict=True):
        box = tessella.Box(point - 0.4, point + 0.4)
        assert number == tessella.count(net, tessella.Polytope(signs, signs @ point + 0.4, box)).exact
    round_ball = tessella.local(net, points, 0.4, "l2")
    inner, outer = tessella.local(net, points, 0.4 / np.sqrt(3.0)), tessella.local(net, points, 0.4)
    assert round_ball.upper == outer.upper
    assert all(low <= high for low, high in zip(round_ball.lower, inner.upper, strict=True))
    for point, low, high in zip(points, round_ball.lower, round_ball.upper, strict=True):
        box = tessella.Box(point - 0.4, point + 0.4)
        met = sum(distance(*region.inequalities(), point) < 0.4 for region in tessella.regions(net, box))
        assert 1 < low <= met <= high
    assert all(low >= at_least for low, at_least in zip(round_ball.upper, ball.lower, strict=True))
    cut = tessella.local(net, points, 0.4, "l1", domain=(0, 1))
    assert all(one <= all_of_it for one, all_of_it in zip(cut.upper, ball.upper, strict=True))


def test_a_subspace_is_a_slice():
    net = he((20, 16, 16, 3), seed=4)
    points = np.random.default_rng(5).random((4, 20))
    basis = np.eye(20)[:, [3, 7]]
    found = tessella.local(net, points, 0.5, subspace=basis)
    for point, number in zip(points, found.counts, strict=True):
        box = tessella.Box(point - 0.5, point + 0.5)
        line = tessella.slice(net, domain=box, axes=(3, 7), at=point)
        assert number == tessella.count(line.network, line.domain).exact
    drawn = tessella.local(net, points, 0.5, subspace=2, rng=1)
    assert drawn.basis.shape == (20, 2)
    assert drawn.counts == tessella.local(net, points, 0.5, subspace=drawn.basis).counts
    one = tessella.local(net, points, 0.5, subspace=1, rng=2)
    for point, number in zip(points, one.counts, strict=True):
        path = [point - 0.5 * one.basis[:, 0], point + 0.5 * one.basis[:, 0]]
        assert number == tessella.along(net, path).regions


def test_distances_are_what_fractions_say():
    on_walls = unsure = 0
    for seed in range(400, 600):
        case, point, _ = case_and_ball(seed)
        found = nearest(case.network, point)
        for (low, high), square in zip(found.T.tolist(), distances(case.layers, point), strict=True):
            if square is None:
                assert (low, high) == (np.inf, np.inf), seed
                continue
            assert Fraction(low) ** 2 <= square, seed
            assert high == np.inf or square <= Fraction(high) ** 2, seed
            assert low == 0 or high <= low * (1.0 + 1e-6) + 1e-12, seed  # rounding, where a wall is that near
            on_walls += square == 0
            unsure += low == 0 < square
    assert on_walls > 10
    assert unsure < 10


def test_no_wall_is_nearer_than_the_distance_and_there_is_one_there():
    net = he((30, 40, 40, 4), seed=6)
    points = np.random.default_rng(7).random((5, 30))
    found = tessella.local(net, points, 0.01)
    np.testing.assert_array_equal(found.distances, found.walls[:, 2, 0])
    for point, walls in zip(points, found.walls, strict=True):
        own, rng = net.patterns(point), np.random.default_rng(8)
        inside = point + walls[2, 0] * rng.uniform(-1, 1, (200, 30))
        assert (net.patterns(inside) == own).all()
        box = tessella.Box.around(point, walls[2, 1] * (1.0 + 1e-6))
        assert tessella.count(net, box).exact == 2
        assert tessella.count(net, tessella.Box.around(point, walls[2, 0] * (1.0 - 1e-6))).exact == 1
        assert walls[2, 0] <= walls[1, 0] <= walls[0, 0]


def test_units_that_change_are_bounded_from_both_sides():
    net = he((10, 30, 30, 2), seed=9)
    points = np.random.default_rng(10).random((5, 10))
    found = tessella.local(net, points, 0.05)
    for number, point in enumerate(points):
        seen = net.patterns(np.random.default_rng(11).uniform(point - 0.05, point + 0.05, (2000, 10)))
        both = int((seen.any(axis=0) & ~seen.all(axis=0)).sum())
        assert both <= found.units_upper[number]
        assert found.units_lower[number] == found.units_upper[number]  # all was counted
