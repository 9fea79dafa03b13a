"""Estimates of networks that are too large to count, but whose number of regions is known."""

import itertools
import math

import numpy as np
import pytest

import tessella


def block(sizes, seed):
    """The layers of a small network, and its number of regions on [0, 1]^n."""
    rng = np.random.default_rng([seed, *sizes])
    layers = [
        (rng.standard_normal((n, m)) * math.sqrt(2 / m), 0.3 * rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)
    ]
    network = tessella.Network.from_arrays(layers, relu_output=True)
    return layers, tessella.count(network, tessella.Box.cube(0, 1, sizes[0])).exact


def product(sizes, copies, seed):
    """Small networks side by side, units and inputs shuffled: their numbers of regions multiply."""
    parts, rng, layers = [block(sizes, 100 * seed + number) for number in range(copies)], np.random.default_rng(seed), []
    order = rng.permutation(sizes[0] * copies)
    for depth, (columns, rows) in enumerate(itertools.pairwise(sizes)):
        weight = np.zeros((rows * copies, columns * copies))
        for number, (small, _) in enumerate(parts):
            weight[number * rows :, number * columns :][:rows, :columns] = small[depth][0]
        after = rng.permutation(rows * copies)
        bias = np.concatenate([small[depth][1] for small, _ in parts])
        layers.append((weight[after][:, order], bias[after]))
        order = after
    network = tessella.Network.from_arrays(layers, relu_output=True)
    return network, tessella.Box.cube(0, 1, network.input_dim), sum(math.log2(count) for _, count in parts)


def general(inputs, units, seed):
    """One layer in general position on all of space: a sum of binomial coefficients (Zaslavsky 1975)."""
    rng = np.random.default_rng([seed, inputs, units])
    network = tessella.Network.from_arrays([(rng.standard_normal((units, inputs)), rng.standard_normal(units))], relu_output=True)
    everywhere = tessella.Box.cube(-math.inf, math.inf, inputs)
    return network, everywhere, math.log2(sum(math.comb(units, j) for j in range(inputs + 1)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "size", "probes"),
    [(product, ((4, 6, 5), 5), 120), (product, ((3, 5, 4, 4), 5), 120), (product, ((2, 10), 10), 60), (general, (3, 24), 40)],
)
def test_the_interval_holds_the_number(make, size, probes):
    """In at least 18 of 20 runs of what 95 % are said: fewer in one of 13 tests if 95 % are so, in one of 390 if 98 % are, as measured."""
    held = 0
    for seed in range(20):
        network, domain, truth = make(*size, seed)
        found = tessella.estimate(network, domain, probes=probes, rng=seed, workers=1)
        low, high = found.maps_interval or (0.0, math.inf)
        held += low <= truth <= high
        assert math.log2(found.upper) >= truth - 1e-9 or found.upper_confidence < 1.0
    assert held >= 18


def test_a_product_of_a_hundred_units():
    """The bound holds, and the estimate with its interval is near."""
    network, domain, truth = product((8, 10, 8), 6, 1)
    found = tessella.estimate(network, domain, probes=150, workers=1)
    assert math.log2(found.lower) <= truth
    low, high = found.maps_interval
    assert low <= truth <= high
    assert high - low < 16.0
    assert abs(found.maps - truth) < 6.0
