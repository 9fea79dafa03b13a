"""Counts against an exact oracle, on small networks that are odd in every way we could think of.

The committed seeds take a minute.  Many more, by hand, from the folder ``tests``::

    python -m agreement.test_count 1000 20000        # from seed 1000 on, 20,000 networks; a third number makes them larger
"""

import itertools
import math
import sys
from time import perf_counter

import numpy as np
import pytest

import tessella
from helpers.brute_force import (
    count_regions,
    patterns_by_elimination,
    patterns_in_the_plane,
    patterns_on_a_line,
    region_patterns,
)
from helpers.odd_networks import random_case
from helpers.seeds import seeds
from tessella.partition.tree import Tree

BLOCK = 50


def disagreement(seed, largest=400):
    """What is wrong with the count of one network, or None."""
    case = random_case([2020, seed], largest)
    true = count_regions(*case)
    try:
        found = tessella.count(case.network, case.domain, workers=1)
    except tessella.TessellaError as error:
        told = str(error)
    else:
        told = (found.lower, found.exact, found.upper)
    return None if told == (true, true, true) else f"seed {seed}: {told}, but {true} regions, {case.network} on {case.domain}"


@pytest.mark.parametrize("block", seeds(20, quick=8))
def test_counts_are_exact(block):
    wrong = [disagreement(seed) for seed in range(block * BLOCK, (block + 1) * BLOCK)]
    assert [text for text in wrong if text] == []


@pytest.mark.parametrize("seed", range(10))
def test_larger_counts_are_exact(seed):
    assert disagreement(10**6 + seed, largest=5000) is None


@pytest.mark.parametrize("offset", [0.0, 1e-15, 1e-13, 1e-12, 1e-11, -1e-15, -1e-13, -1e-11])
@pytest.mark.parametrize("side", [1.0, 255.0])
def test_an_inequality_may_pass_very_close_to_where_all_units_are_zero(side, offset):
    wrong = []
    for seed in range(12):
        rng = np.random.default_rng([7, seed])
        inputs = int(rng.integers(2, 5))
        sizes = [inputs, *(int(size) for size in rng.integers(1, 4, rng.integers(1, 3)))]
        layers = [(rng.standard_normal((rows, columns)), np.zeros(rows), True) for columns, rows in itertools.pairwise(sizes)]
        matrix = rng.standard_normal((2, inputs))
        matrix[0] -= matrix[0].min() - rng.uniform(-1.0, -0.1)  # the box is on both of its sides
        lower, upper, offsets = np.zeros(inputs), side * np.ones(inputs), np.array([offset, side])
        network = tessella.Network.from_arrays([layer[:2] for layer in layers], relu_output=True)
        found = tessella.count(network, tessella.Polytope(matrix, offsets, tessella.Box(lower, upper)), workers=1)
        true = count_regions(layers, lower, upper, matrix, offsets)
        wrong += [] if found.exact == true else [f"seed {seed}: {found}, but {true} regions"]
    assert wrong == []


@pytest.mark.parametrize("inputs", [2, 4, 9, 130])  # each by another walk
@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("factor", [1.0, -1.0, 4.0, -0.375])
def test_multiples_of_a_unit_need_no_exact_arithmetic(inputs, layer, factor):
    rng = np.random.default_rng(5)
    sizes = [inputs, 4, 5]
    layers = [
        (rng.standard_normal((rows, columns)), 0.3 * rng.standard_normal(rows), True)
        for columns, rows in itertools.pairwise(sizes)
    ]
    weight, bias, _ = layers[layer]
    weight[1], bias[1] = np.round(64.0 * weight[1]) / 64.0, np.round(64.0 * bias[1]) / 64.0  # so that multiples are exact
    weight[3], bias[3] = factor * weight[1], factor * bias[1]
    lower, upper = -np.ones(inputs), np.ones(inputs)
    lower[9:] = upper[9:]
    network = tessella.Network.from_arrays([each[:2] for each in layers], relu_output=True)
    free = tessella.count(network, tessella.Box(lower, upper), workers=1)
    assert (free.exact, free.borderline) == (count_regions(layers, lower, upper), 0)
    if inputs > 9:  # all free: too many for the oracle, but not for another walk
        cube = tessella.Box.cube(-1.0, 1.0, inputs)
        whole = tessella.count(network, cube, workers=1)
        assert (whole.exact, whole.borderline) == (sum(1 for _ in tessella.regions(network, cube)), 0)


def test_multiples_are_exact():
    third = 1.0 / 3.0
    network = tessella.Network.from_arrays(
        [([[3.0, 1.0], [1.0, third], [-6.0, -2.0], [0.0, 0.0], [0.0, 0.0]], [1.5, 0.5, -3.0, 1.0, 2.0])], relu_output=True
    )
    twins = Tree(network, tessella.Box.cube(-1, 1, 2)).twins
    assert [each.tolist() for each in twins] == [[-1, -1, 0, -1, 3]]


# --- the oracle itself


@pytest.mark.parametrize(("dim", "units"), [(1, 9), (2, 12), (3, 9), (4, 8), (6, 7)])
def test_the_oracle_counts_arrangements_in_general_position(dim, units):
    rng = np.random.default_rng(dim)
    layers = [(rng.standard_normal((units, dim)), rng.standard_normal(units), True)]
    huge = 1e9 * np.ones(dim)
    assert count_regions(layers, -huge, huge) == sum(math.comb(units, chosen) for chosen in range(dim + 1))
    through_the_centre = [(layers[0][0], np.zeros(units), True)]
    assert count_regions(through_the_centre, -huge, huge) == 2 * sum(math.comb(units - 1, chosen) for chosen in range(dim))


def test_the_oracle_counts_what_is_known():
    ones = np.ones(2)
    lines = [([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 0.0, -0.5], True)]
    assert count_regions(lines, -ones, ones) == 7
    assert count_regions(lines, 0 * ones, ones) == 2
    assert count_regions(lines, [-1, 0.25], [1, 0.25]) == 3
    assert count_regions(lines, ones, ones) == 1
    assert count_regions(lines, -ones, ones, [[1.0, 0.0]], [-0.5]) == 2
    assert count_regions(lines, -ones, ones, [[1.0, 0.0]], [-1.0]) == 0  # a face only
    equal = [([[1.0]] * 3, [0.0] * 3, True), ([[1.0, -1.0, 0.0]], [0.0], True)]
    assert region_patterns(equal, [-1], [1]) == {(False,) * 4, (True, True, True, False)}
    tent = [([[1.0], [1.0]], [0.0, -0.5], True), ([[2.0, -4.0]], [-0.5], True)]
    assert count_regions(tent, [-1], [1]) == 5  # cuts at 0, 0.25, 0.5 and 0.75
    thin = [([[1.0], [1.0]], [0.0, -(2.0**-60)], True)]
    assert count_regions(thin, [-1], [1]) == 3
    carried = [([[1.0], [1.0]], [0.0, 0.25], [True, False]), ([[1.0, -1.0]], [0.0], True)]
    assert region_patterns(carried, [-1], [1]) == {(False, True), (False, False), (True, False)}


@pytest.mark.parametrize("block", range(4))
def test_the_oracle_agrees_with_itself(block):
    checked = 0
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        case = random_case([1975, seed], most_inputs=3)
        found = region_patterns(*case)
        ways = [way for free, way in ((1, patterns_on_a_line), (2, patterns_in_the_plane)) if case.free == free]
        ways += [patterns_by_elimination] if case.units <= 6 else []
        assert all(way(*case) == found for way in ways), seed
        checked += len(ways)
    assert checked > BLOCK // 2


def main(first, count, largest=400):
    """Compare many networks; prints what is wrong, and in the end how many there were."""
    start, wrong = perf_counter(), 0
    for seed in range(first, first + count):
        text = disagreement(seed, largest)
        if text:
            wrong += 1
            print(text, flush=True)  # noqa: T201
    print(f"{count} networks, {wrong} wrong, {perf_counter() - start:.0f} s")  # noqa: T201


if __name__ == "__main__":
    main(*(int(number) for number in sys.argv[1:]))
