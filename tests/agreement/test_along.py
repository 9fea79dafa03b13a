"""Regions along paths against fractions, against dense sampling, and against the count on a slice."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import tessella
from helpers.brute_force_path import pieces_of
from helpers.odd_networks import leaky_case, random_case
from tessella.lines import deciding, sharp, trust, walk


def case_and_path(seed):
    """A small odd network, and a path whose corners are anywhere, on a grid, or corners of the box."""
    case, rng = (leaky_case if seed % 3 == 0 else random_case)(seed), np.random.default_rng([5, seed])
    size = int(rng.integers(2, 5)), len(case.lower)
    places = [rng.random(size), rng.integers(0, 9, size) / 8.0, rng.integers(0, 2, size) * 1.0][rng.integers(3)]
    path = case.domain.box.lower + (case.domain.box.upper - case.domain.box.lower) * places
    path[-1] += (path == path[0]).all()  # not all points equal
    return case, path


def assert_right(found, pieces):
    assert found.regions == found.seen == len(pieces)
    assert found.distinct == len({pattern for _, pattern in pieces})
    assert [tuple(found.pattern(number).tolist()) for number in range(found.seen)] == [pattern for _, pattern in pieces]
    for place, margin, (there, _) in zip(found.breaks.tolist(), found.margins.tolist(), pieces[1:], strict=True):
        assert abs(Fraction(place) - there) <= Fraction(margin)


@pytest.mark.parametrize("block", range(8))
def test_it_is_what_fractions_say(block):
    for seed in range(50 * block, 50 * block + 50):
        case, path = case_and_path(seed)
        assert_right(tessella.along(case.network, path), pieces_of(case.layers, path))


def test_it_is_the_same_in_small_parts(monkeypatch):
    monkeypatch.setattr(walk, "_NUMBERS", 10)
    monkeypatch.setattr(walk, "_FEWEST", 3)
    monkeypatch.setattr(sharp, "_NUMBERS", 10)
    for seed in range(1000, 1100):
        case, path = case_and_path(seed)
        assert_right(tessella.along(case.network, path), pieces_of(case.layers, path))


def test_bounds_hold_where_nothing_is_decided_exactly(monkeypatch):
    monkeypatch.setattr(deciding, "_MOST", 0)
    monkeypatch.setattr(deciding, "_MOST_SHARP", 0)
    undecided = 0
    for seed in range(2000, 2200):
        case, path = case_and_path(seed)
        found, pieces = tessella.along(case.network, path), pieces_of(case.layers, path)
        assert found.lower <= len(pieces) <= found.upper
        undecided += found.regions is None
        if found.regions is not None:
            assert_right(found, pieces)
    assert undecided > 20


def he(sizes, seed):
    rng = np.random.default_rng(seed)
    pairs = pairwise(sizes)
    return tessella.Network.from_arrays(
        [(rng.standard_normal((b, a)) * np.sqrt(2 / a), 0.1 * rng.standard_normal(b)) for a, b in pairs]
    )


@pytest.mark.parametrize("sizes", [(30, 100, 100, 100, 5), (784, 60, 60, 60, 60, 60, 10), (5, 400, 3)])
def test_dense_samples_lie_in_the_regions_that_are_said(sizes):
    net = he(sizes, seed=len(sizes))
    found = tessella.along(net, np.random.default_rng(1).random((6, sizes[0])))
    assert found.regions == found.seen > 100
    places = np.sort(np.random.default_rng(2).uniform(0.0, 5.0, 4000))
    places = places[np.abs(places[:, None] - found.breaks).min(axis=1) > 1e-9]
    seen, region = net.patterns(found.points(places)), np.searchsorted(found.breaks, places)
    assert all(np.array_equal(seen[at], found.pattern(int(number))) for at, number in enumerate(region.tolist()))
    middles = found.points((np.append(0.0, found.breaks) + np.append(found.breaks, 5.0)) / 2.0)
    assert len(np.unique(net.patterns(middles), axis=0)) == found.distinct


def test_it_is_the_count_on_the_slice():
    net = he((20, 30, 30, 4), seed=3)
    path = np.random.default_rng(4).random((2, 20))
    line = tessella.slice(net, path)
    assert tessella.along(net, path).regions == tessella.count(line.network, line.domain).exact


def test_sparse_weights_and_deep_networks():
    from scipy.sparse import csr_array

    net = he((20, 40, 40, 4), seed=5)
    sparse = tessella.Network(tuple(tessella.Layer(csr_array(one.weight), one.bias, one.rectified) for one in net.layers))
    path = np.random.default_rng(6).random((4, 20))
    one, other = tessella.along(net, path), tessella.along(sparse, path)
    assert one.regions == other.regions
    assert one.changes == other.changes
    deep = he((6, *[12] * 30, 2), seed=7)  # errors are too large to prove much by floating point: whole numbers do
    found = tessella.along(deep, path[:2, :6])
    assert found.regions == len(pieces_of([(one.weight, one.bias, one.rectified) for one in deep.layers], path[:2, :6]))


def test_what_is_lost_is_bounded(monkeypatch):
    monkeypatch.setattr(deciding, "_MOST", 0)
    monkeypatch.setattr(deciding, "_MOST_SHARP", 0)
    net, path = he((6, *[12] * 45, 2), seed=7), np.random.default_rng(6).random((2, 6))
    found = tessella.along(net, path)
    true = len(pieces_of([(one.weight, one.bias, one.rectified) for one in net.layers], path))
    assert found.regions is None
    assert found.lower <= true <= found.upper


@pytest.mark.parametrize("whole", [0, deciding._MOST])
def test_many_digits_alone_are_right(monkeypatch, whole):
    monkeypatch.setattr(trust, "_LOST", 0.0)  # so nothing is decided by the walk
    monkeypatch.setattr(trust, "_MANY", -1.0)
    monkeypatch.setattr(deciding, "_MOST", whole)
    if whole:
        monkeypatch.setattr(sharp, "_NUMBERS", 10)
    undecided = 0
    for seed in range(3000, 3100):
        case, path = case_and_path(seed)
        found, pieces = tessella.along(case.network, path), pieces_of(case.layers, path)
        assert found.lower <= len(pieces) <= found.upper
        undecided += found.regions is None
        if found.regions is not None:
            assert_right(found, pieces)
    assert undecided <= (0 if whole else 149)


@pytest.mark.parametrize("sizes", [(20, *[30] * 40, 3), (6, *[12] * 100, 2), (30, *[100] * 12, 5)])
def test_deep_networks_are_decided_with_many_digits(monkeypatch, sizes):
    monkeypatch.setattr(deciding, "_MOST", 0)
    net, path = he(sizes, seed=1), np.random.default_rng(6).random((3, sizes[0]))
    found = tessella.along(net, path)
    assert found.regions == found.seen > 30
    places = np.sort(np.random.default_rng(2).uniform(0.0, 2.0, 500))
    places = places[np.abs(places[:, None] - found.breaks).min(axis=1) > 1e-9]
    seen, region = net.patterns(found.points(places)), np.searchsorted(found.breaks, places)
    assert all(np.array_equal(seen[at], found.pattern(int(number))) for at, number in enumerate(region.tolist()))
