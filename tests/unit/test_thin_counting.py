"""What becomes of thin prefixes in a count, and of parts of a tree that the walk over corners cannot decide."""

from itertools import pairwise

import numpy as np
import pytest

from helpers.brute_force import count_regions, region_patterns
from helpers.odd_networks import Case
from tessella import Box, Network, count
from tessella.counting.by_vertices import ByVertices
from tessella.counting.thin import settle
from tessella.parallel import Stop
from tessella.partition.settler import Settler
from tessella.partition.tree import Found, Node, Tree


def whole_case(shape, seed, *, biases=True):
    """A network of small whole numbers, where many hyperplanes meet."""
    rng, layers = np.random.default_rng(seed), []
    for before, size in pairwise(shape):
        bias = rng.integers(-2, 3, size) * 1.0 if biases else np.zeros(size)
        layers.append((rng.integers(-2, 3, (size, before)) * 1.0, bias, np.ones(size, dtype=bool)))
    return Case(layers, -np.ones(shape[0]), np.ones(shape[0]))


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("shape", [(2, 6, 4), (3, 6, 3), (4, 5, 3)])
def test_walkers_and_settlers_share_the_work(shape, biases):
    for seed in range(4):
        case = whole_case(shape, seed, biases=biases)
        tree = Tree(case.network, case.domain)
        walker, settler, waiting, regions = ByVertices(tree), Settler(tree), [Node()], 0
        thin = []
        while waiting or thin:
            found = walker.advance(waiting, 1.0, Stop()) if waiting else settle(thin, settler, walker, 1.0, Stop())
            regions, waiting, thin = regions + found.regions, list(found.open), [*found.thin, *(thin if waiting else ())]
        assert regions == count_regions(*case)


class Stuck:
    """A walker that enters nothing."""

    def __init__(self):
        self.asked = []

    def advance(self, nodes, _seconds, _stop):
        self.asked += nodes
        return Found(0, (), tuple(node.prefix for node in nodes))


def test_what_cannot_be_entered_is_split():
    case = whole_case((2, 6, 4), 1)
    tree, walker = Tree(case.network, case.domain), Stuck()
    found = settle([b""], Settler(tree, split_above=2), walker, 60.0, Stop())
    assert found == Found(count_regions(*case), (), (), found.tests)
    assert len(walker.asked) > 3


def test_a_thin_prefix_that_is_not_there_holds_nothing():
    case = Case([(np.array([[1.0], [1.0]]), np.array([0.0, 0.5]), np.ones(2, dtype=bool))], -np.ones(1), np.ones(1))
    assert settle([b"\1\0"], Settler(Tree(case.network, case.domain)), Stuck(), 1.0, Stop()) == Found(0, (), (), 1)


def lattice(pieces, seed):
    """The least of some affine functions by comparators, where most rows lie on each other's hyperplanes: min(a, b) = b - relu(b - a), and b = relu(b) - relu(-b)."""
    rng = np.random.default_rng(seed)
    weight, bias, layers = rng.integers(-4, 5, (pieces, 2)) / 4.0, rng.integers(-4, 5, pieces) / 4.0, []
    while pieces > 1:
        pieces //= 2
        compare = np.kron(np.eye(pieces), [[-1.0, 1.0], [0.0, 1.0], [0.0, -1.0]])
        layers.append((compare @ weight, compare @ bias))
        weight, bias = np.kron(np.eye(pieces), [[-1.0, 1.0, -1.0]]), np.zeros(pieces)
    return Network.from_arrays([*layers, (weight, bias)])


def test_lattices_need_little_exact_arithmetic():
    network, domain = lattice(16, 0), Box(-1, 1, dim=2)
    layers = [(layer.dense(), layer.bias, layer.rectified) for layer in network.layers]
    found = count(network, domain, workers=1)
    assert found.exact == len(region_patterns(layers, domain.lower, domain.upper))
    assert found.borderline <= found.exact // 4


@pytest.mark.parametrize("block", range(2))
def test_lines_through_one_point_on_either_side_of_each_other(block):
    """A row through the corner of two walls has one sign only if it counts both with the signs that they have inside the cell."""
    for seed in range(block * 15, block * 15 + 15):
        rng = np.random.default_rng([9, seed])
        first = rng.integers(-9, 10, (6, 2)) * 1.0
        bias = -(first @ [0.25, -0.5])
        bias[-1] += 1.0  # one of them does not pass through the point
        layers = [(first, bias), (rng.integers(-3, 4, (3, 6)) * 1.0, rng.integers(-3, 4, 3) * 0.5)]
        case = Case([(*layer, np.ones(len(layer[1]), dtype=bool)) for layer in layers], -np.ones(2), np.ones(2))
        assert count(case.network, case.domain, workers=1).exact == count_regions(*case)
