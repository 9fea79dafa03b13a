"""Large networks whose number of regions is known: small ones side by side, and single layers in general position."""

import math
from functools import cache
from itertools import pairwise

import numpy as np

import tessella


@cache
def block(sizes, seed):
    """A small random network and its number of regions on [0, 1]^n."""
    rng = np.random.default_rng([seed, *sizes])
    layers = [(rng.standard_normal((n, m)) * math.sqrt(2 / m), 0.3 * rng.standard_normal(n)) for m, n in pairwise(sizes)]
    network = tessella.Network.from_arrays(layers, relu_output=True)
    return layers, tessella.count(network, tessella.Box.cube(0.0, 1.0, sizes[0])).exact


def product(sizes, copies, seed):
    """Small networks side by side, their inputs and units shuffled: it has the product of their numbers of regions; with log2 of it."""
    parts = [block(sizes, 1000 * seed + number) for number in range(copies)]
    rng = np.random.default_rng(seed)
    order, layers = rng.permutation(sizes[0] * copies), []
    for depth in range(len(sizes) - 1):
        rows, columns = sizes[depth + 1], sizes[depth]
        weight, bias = np.zeros((rows * copies, columns * copies)), np.concatenate([part[0][depth][1] for part in parts])
        for number, (small, _) in enumerate(parts):
            weight[number * rows : (number + 1) * rows, number * columns : (number + 1) * columns] = small[depth][0]
        after = rng.permutation(rows * copies)
        layers.append((weight[after][:, order], bias[after]))
        order = after
    network = tessella.Network.from_arrays(layers, relu_output=True)
    return network, tessella.Box.cube(0.0, 1.0, network.input_dim), sum(math.log2(part[1]) for part in parts)


def arrangement(inputs, units, seed):
    """One layer of units in general position, on all of space: a sum of binomial coefficients."""
    rng = np.random.default_rng([seed, inputs, units])
    network = tessella.Network.from_arrays([(rng.standard_normal((units, inputs)), rng.standard_normal(units))], relu_output=True)
    return network, (-math.inf, math.inf), math.log2(sum(math.comb(units, j) for j in range(min(inputs, units) + 1)))
