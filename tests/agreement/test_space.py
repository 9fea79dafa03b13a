"""Unbounded domains: counts, bounds, estimates and regions against two oracles that make nothing homogeneous.

One cuts the domain off where there is nothing any more and walks it in whole numbers; the other eliminates inputs of patterns on the domain as it is.  More
seeds, by hand, from the folder ``tests``::

    python -m agreement.test_space 1000 2000        # from seed 1000 on, 2,000 networks
"""

import itertools
import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tessella
from helpers.brute_force import count_regions, region_patterns
from helpers.brute_force_anywhere import patterns_anywhere
from helpers.endless_networks import endless_case, within_reach
from tessella import Box, Network

BLOCK = 40


def disagreement(seed):
    """What is wrong with what is said of one network, or None."""
    case = endless_case([2026, seed])
    true = count_regions(*within_reach(case))
    try:
        found = tessella.count(case.network, case.domain, workers=1)
        told = (found.lower, found.exact, found.upper, tessella.upper_bounds(case.network, case.domain).best >= true)
    except tessella.TessellaError as error:
        told = str(error)
    return None if told == (true, true, true, True) else f"seed {seed}: {told}, but {true} regions, {case.network}"


@pytest.mark.parametrize("block", [*range(3), *(pytest.param(block, marks=pytest.mark.slow) for block in range(3, 12))])
def test_counts_are_exact(block):
    wrong = [disagreement(seed) for seed in range(block * BLOCK, (block + 1) * BLOCK)]
    assert [text for text in wrong if text] == []


def small_cases():
    for seed in range(400):
        case = endless_case([2027, seed], largest=40, most_inputs=3)
        if case.units <= 9:
            yield seed, case


def test_regions_are_those_of_the_oracles_and_bounded_where_they_are():
    seen = {True: 0, False: 0, None: 0}
    for seed, case in list(small_cases())[:25]:
        true = patterns_anywhere(*case)
        assert set(true) == region_patterns(*within_reach(case)), seed
        found = list(tessella.regions(case.network, case.domain))
        patterns = [tuple(region.pattern.tolist()) for region in found]
        assert len(set(patterns)) == len(patterns)
        assert set(patterns) == set(true), seed
        for region, pattern in zip(found, patterns, strict=True):
            seen[region.bounded] += 1
            assert region.bounded in {true[pattern], None}, (seed, pattern)
            if region.point is not None:
                assert case.domain.contains(region.point)
    assert seen[True] > 10
    assert seen[False] > 50
    assert seen[None] == 0


def test_neighbours_and_inequalities():
    for seed, case in list(small_cases())[:10]:
        found = {tuple(region.pattern.tolist()): region for region in tessella.regions(case.network, case.domain)}
        for region in found.values():
            assert {tuple(other.pattern.tolist()) for other in region.neighbours()} <= set(found), seed
            if region.point is not None:
                for redundant in (True, False):
                    matrix, offset = region.inequalities(redundant=redundant)
                    assert np.isfinite(offset).all()
                    assert (matrix @ region.point <= offset + 1e-9 * (1.0 + np.abs(offset))).all(), seed
            assert (region.radius < math.inf) or region.bounded is False


def test_estimates_and_samples():
    means, failed, tried = [], 0, 0
    for seed in range(25):
        case = endless_case([2028, seed], largest=100, thin=False)
        if case.free > 3:
            continue
        true = region_patterns(*within_reach(case))
        found = tessella.estimate(case.network, case.domain, probes=24, counting=False, workers=1)
        tried += 1
        failed += found.lower > len(true)
        means.append(found.mean / len(true))
        for drawn in tessella.sample_regions(case.network, case.domain, 4):
            assert tuple(drawn.region.pattern.tolist()) in true
    assert failed <= 0.05 * tried + 3.0 * math.sqrt(0.05 * tried)
    assert abs(np.mean(means) - 1.0) < 0.1


@pytest.mark.parametrize("inputs", [9, 140])
def test_more_inputs_than_units_are_as_many_as_units(inputs):
    """Onto all of R^5, the first layer may be any map: the walks by linear programs and by points, against that over corners."""
    rng = np.random.default_rng(inputs)
    later = (rng.normal(size=(4, 5)), rng.normal(size=4))
    bias = rng.normal(size=5)
    nets = [
        Network.from_arrays([(weight, bias), later], relu_output=True) for weight in (rng.normal(size=(5, inputs)), np.eye(5))
    ]
    counts = [tessella.count(net, (-np.inf, np.inf)).exact for net in nets]
    assert counts[0] == counts[1]


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_all_of_space_is_the_limit_of_large_boxes(data):
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    entry = st.integers(-3, 3).map(lambda number: number / 2.0)
    layers = []
    for inputs, units in itertools.pairwise(sizes):
        weight = data.draw(st.lists(st.lists(entry, min_size=inputs, max_size=inputs), min_size=units, max_size=units))
        layers.append((weight, data.draw(st.lists(entry, min_size=units, max_size=units))))
    net = Network.from_arrays(layers, relu_output=True)
    exact = tessella.count(net, Box(-np.inf, np.inf, dim=sizes[0]), workers=1).exact
    counts = [tessella.count(net, Box.cube(-(4.0**power), 4.0**power, sizes[0]), workers=1).exact for power in (0, 3, 30)]
    assert counts[0] <= counts[1] <= counts[2] == exact


def main(first, count):
    wrong = [text for seed in range(first, first + count) if (text := disagreement(seed))]
    sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(*(int(text) for text in sys.argv[1:]))
