"""Counts on all of space that relucent 1.0.0 (PyPI) gave for networks of fixed numbers, by ``Complex(convert(net)).bfs()`` and `Polyhedron.finite`."""

import itertools

import numpy as np
import pytest

import tessella
from tessella import Network


def network(shape, seed):
    rng = np.random.default_rng(seed)
    pairs = []
    for inputs, units in itertools.pairwise(shape):
        weight = rng.integers(-4, 5, (units, inputs)) / 2.0 + rng.integers(1, 16, (units, inputs)) / 64.0
        pairs.append((weight, rng.integers(-8, 9, units) / 4.0 + rng.integers(1, 16, units) / 64.0))
    return Network.from_arrays(pairs, relu_output=True)


@pytest.mark.parametrize(
    ("shape", "seed", "regions", "bounded"),
    [
        ([2, 6, 4], 0, 33, 15),
        ([2, 8, 5], 1, 83, 61),
        ([3, 5, 4], 2, 90, 30),
        ([2, 4, 4, 3], 3, 52, 30),
        ([4, 6, 3], 4, 232, 30),
        ([3, 7, 6], 5, 442, 284),
    ],
)
def test_regions_of_all_of_space_as_relucent_counts_them(shape, seed, regions, bounded):
    net = network(shape, seed)
    assert tessella.count(net, (-np.inf, np.inf)).exact == regions
    assert sum(bool(region.bounded) for region in tessella.regions(net, (-np.inf, np.inf))) == bounded
