"""The bound from cells of the first layer, against regions in rational arithmetic."""

from collections import Counter

import numpy as np
import pytest

from helpers.brute_force import region_patterns
from helpers.odd_networks import leaky_case, random_case
from tessella import count, upper_bounds
from tessella.counting.cellwise import Cellwise, KnownBound
from tessella.partition.local import LocalBound
from tessella.partition.tree import Tree


def _check(case):
    truth = region_patterns(*case)
    tree = Tree(case.network, case.domain)
    bound = LocalBound(tree)
    cellwise = Cellwise(tree, bound)
    while not cellwise.finished:
        before = cellwise.most
        cellwise.advance(0.05)
        assert len(truth) <= cellwise.most <= before
    cells = cellwise.cells
    first = max(len(cell.prefix) for cell in cells)
    below = Counter(bytes(map(int, pattern[:first])) for pattern in truth)
    for prefix, most in cells:
        assert sum(number for cell, number in below.items() if cell.startswith(prefix)) <= most
    assert all(any(cell.startswith(prefix) for prefix, _ in cells) for cell in below)
    known = KnownBound(bound, cells)
    for pattern in list(truth)[:20]:
        for length in range(len(pattern) + 1):
            prefix = bytes(map(int, pattern[:length]))
            there = sum(bytes(map(int, other[:length])) == prefix for other in truth)
            assert there <= known(prefix) <= bound(prefix)


@pytest.mark.parametrize("seed", range(60))
def test_no_cell_has_more_regions_than_its_bound(seed):
    case = (leaky_case if seed % 4 == 3 else random_case)([25, seed], largest=120)
    if case.free and case.units and case.network.layers[-1].relus:
        _check(case)


@pytest.mark.parametrize("seed", range(20))
def test_upper_bounds_have_it(seed):
    case = random_case([26, seed], largest=80)
    found = upper_bounds(case.network, case.domain, method="linear", seconds=5.0)
    assert len(region_patterns(*case)) <= found.cellwise <= found.empirical
    assert found.best == found.cellwise
    assert found.listed == 1.0


def test_it_is_close_where_inputs_are_few():
    rng = np.random.default_rng(0)
    from tessella import Box, Network

    layers = [(rng.normal(size=(8, inputs)), rng.normal(size=8) / 3.0) for inputs in (6, 8)]
    network = Network.from_arrays(layers, relu_output=True)
    exact = count(network, Box(-1, 1, dim=6)).exact
    found = upper_bounds(network, Box(-1, 1, dim=6), method="linear", seconds=10.0)
    assert exact <= found.cellwise < 2 * exact < found.empirical
