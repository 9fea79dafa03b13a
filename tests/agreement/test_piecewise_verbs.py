"""What every verb says of small networks with maxima, pooling, clips and leaky units, against all patterns found in rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest

import tessella
from helpers.brute_force import fractions, patterns_in_the_plane, region_patterns
from helpers.brute_force_anywhere import patterns_anywhere
from helpers.piecewise_networks import GROUPS, KINDS, piecewise_case
from tessella import Box, Layer, Network
from tessella.importers.trace import Trace

BLOCK = 25


def network_of(made):
    return Network(tuple(Layer(*layer) for layer in made.case.layers))


def pattern_at(layers, point):
    """Which units are positive at a point, exactly."""
    values, pattern = fractions(point), []
    for weight, bias, rectified, slopes in layers:
        sums = [
            sum((w * value for w, value in zip(fractions(row), values, strict=True)), Fraction(float(b)))
            for row, b in zip(weight, bias, strict=True)
        ]
        pattern += [bool(total > 0) for total, relu in zip(sums, rectified, strict=True) if relu]
        values = [
            total * Fraction(float(slope)) if relu and total <= 0 else total
            for total, relu, slope in zip(sums, rectified, slopes, strict=True)
        ]
    return tuple(pattern)


def check_bounds(network, domain, true):
    bounds = tessella.upper_bounds(network, domain, method="linear")
    assert true <= bounds.empirical <= bounds.configuration <= bounds.montufar <= bounds.raghu
    assert tessella.upper_bounds(network, domain, method="milp").empirical >= true


def check_regions(made, network, domain, truth):
    """Each pattern once, with a point inside, where the map is what the network is meant to compute."""
    listed = list(tessella.regions(network, domain))
    assert len(listed) == len(truth)
    assert {tuple(region.pattern.tolist()) for region in listed} == set(truth)
    for region in listed:
        if region.point is not None:
            assert domain.contains(region.point)
            assert pattern_at(made.case.layers, region.point) == tuple(region.pattern.tolist())
            matrix, offset = region.affine_map
            assert np.allclose(matrix @ region.point + offset, made.meant(region.point[None])[0], rtol=1e-9, atol=1e-9)
    return sum(region.point is None for region in listed)


def check_all(seed):
    """One network on a bounded domain; how many of its regions have no point."""
    made = piecewise_case(seed)
    network, domain, truth = network_of(made), made.case.domain, region_patterns(*made.case)
    found = tessella.count(network, domain, workers=1)
    assert found.lower == found.upper == len(truth)
    check_bounds(network, domain, len(truth))
    if made.case.free == 2:
        drawn = tessella.polygons(network, domain)
        assert len(drawn) == len(truth) == len(patterns_in_the_plane(*made.case))
        assert {tuple(row) for row in drawn.patterns.tolist()} == truth
    return check_regions(made, network, domain, truth)


def check_space(seed):
    """The same network on all of space, or on a half of it; whether the bound with a confidence is wrong, as it may be now and then."""
    made = piecewise_case(seed, most_inputs=2)
    lower = np.where(np.arange(len(made.case.lower)) < seed % 2, 0.0, -np.inf)
    case = made.case._replace(lower=lower, upper=np.full(len(lower), np.inf), matrix=None, offset=None)
    network, domain, truth = network_of(made), case.domain, patterns_anywhere(*case)
    found = tessella.count(network, domain, workers=1)
    assert found.lower == found.upper == len(truth)
    assert tessella.upper_bounds(network, domain).empirical >= len(truth)
    for region in tessella.regions(network, domain):
        assert region.bounded in {truth[tuple(region.pattern.tolist())], None}
    check_regions(made, network, domain, truth)
    return tessella.estimate(network, domain, probes=20, workers=1).lower > len(truth)


@pytest.mark.parametrize("block", [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, 12))])
def test_counts_bounds_regions_and_polygons(block):
    without = sum(check_all(seed) for seed in range(block * BLOCK, (block + 1) * BLOCK))
    assert without == 0


@pytest.mark.parametrize("block", [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, 9))])
def test_all_of_space(block):
    wrong = sum(check_space(seed) for seed in range(block * 12, (block + 1) * 12))
    assert wrong <= 0.05 * 12 + 3.0 * math.sqrt(0.05 * 12)


def check_estimates(seeds):
    """Bounds fail at most at their rate, with three standard deviations to spare; means are those of the counts."""
    tried = failed = 0
    errors = []
    for seed in seeds:
        made = piecewise_case(seed)
        network, domain, true = network_of(made), made.case.domain, len(region_patterns(*made.case))
        found = tessella.estimate(network, domain, probes=40, counting=False, workers=1, rng=seed)
        tried += 1
        failed += found.lower > true
        errors.append(found.mean / true - 1.0)
        assert found.undecided == 0
    assert failed <= 0.05 * tried + 3.0 * math.sqrt(0.05 * tried)
    errors = np.array(errors)
    assert abs(errors.mean()) <= 4.0 * errors.std() / math.sqrt(tried) + 1e-6


def check_searches(seeds):
    """MIPBound and analyses: what is proved always holds; what is probable fails at most at its rate."""
    tried = failed = 0
    for seed in seeds:
        made = piecewise_case(seed)
        network, domain, true = network_of(made), made.case.domain, len(region_patterns(*made.case))
        analysed = tessella.analyze(network, domain, seconds=2, workers=1)
        assert analysed.proved_lower <= true <= analysed.upper
        assert analysed.exact in {true, None}
        tried += 1
        failed += (
            tessella.mipbound(network, domain, parity_size=2, repetitions=12, confidence=0.9, rng=seed, workers=1).lower > true
        )
    assert failed <= 0.1 * tried + 3.0 * math.sqrt(0.1 * tried)


def test_estimates():
    check_estimates(range(20))


@pytest.mark.slow
def test_many_estimates():
    check_estimates(range(300, 600))


def test_searches_and_analyses():
    check_searches(range(6))


@pytest.mark.slow
def test_many_searches_and_analyses():
    check_searches(range(600, 700))


def winners_seen(kind, values):
    """Who wins, for rows of values: as many patterns of these as the points show."""
    if kind == "pooling":
        padded = np.pad(values, ((0, 0), (1, 1)), constant_values=-np.inf)
        who = np.stack([padded[:, at : at + 3].argmax(axis=1) for at in (0, 2, 4)], axis=1)
    else:
        grouped = values[:, GROUPS]
        who = (grouped if kind == "maxout" else -grouped).argmax(axis=2)
    return len(np.unique(who, axis=0))


MORE_THAN_TWO = {"maxout": 2, "minout": 2, "pooling": 1}  # by how many all maxima together have more than two values


def check_winners(seeds):
    """Regions told apart by who wins are never more than those by comparisons, and these at most two to the power of what is above times as many."""
    for seed in seeds:
        rng = np.random.default_rng([43, seed])
        kind, inputs = ["maxout", "minout", "pooling"][seed % 3], 1 + seed % 4
        units, build, _ = KINDS[kind]
        weight, bias, trace = rng.standard_normal((units, inputs)), rng.standard_normal(units) / 2, Trace((inputs,))
        hidden = build(trace, trace.multiply(weight, trace.input).shift(bias))
        network = trace.network(trace.multiply(rng.standard_normal((1, hidden.size)), hidden.reshape((-1,))))
        found = tessella.count(network, Box(-1, 1, dim=inputs), workers=1)
        points = rng.uniform(-1, 1, (20_000, inputs))
        winners = winners_seen(kind, points @ weight.T + bias)
        assert winners <= found.lower <= winners * 2 ** MORE_THAN_TWO[kind]
        assert all(bound.counted is tessella.Counted.COMPARISONS for bound in found.bounds)


def test_winners_are_coarser():
    check_winners(range(12))


@pytest.mark.slow
def test_winners_of_many_networks_are_coarser():
    check_winners(range(12, 300))
