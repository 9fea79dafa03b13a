"""How many constraints a repetition draws, against lists of all solutions; and how often the bound is wrong."""

import itertools
import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import tessella
from helpers.brute_force import region_patterns
from helpers.odd_networks import random_case
from tessella.counting.search import Search
from tessella.formulation import Model
from tessella.formulation.parity import parities
from tessella.partition.tree import Tree
from tessella.probable.models import Counting
from tessella.probable.networks import _solving, tails
from tessella.probable.result import MIPBound, Subject
from tessella.probable.run import Plan
from tessella.probable.search import Seeker
from tessella.result import Counted
from tessella.solvers import SCIP, Gurobi, HiGHS

SOLVERS = {"SCIP": SCIP, "HiGHS": HiGHS, "Gurobi": Gurobi}


def never():
    return False


def oracle(solutions, drawn):
    """The first constraint with which nothing is left, from a plain list of 0-1 tuples."""
    count = 0
    while solutions:
        count += 1
        parity = next(drawn)
        members = [i for i in range(len(solutions[0])) if parity.mask & 1 << i]
        solutions = [states for states in solutions if sum(states[i] for i in members) % 2 == parity.odd]
    return count


def seed(size, number):
    return Plan(size, 0.95, 28, None, (11,)).seed(number)


def stacked(sizes, rng, *, biased=True):
    layers = []
    for inputs, outputs in itertools.pairwise(sizes):
        bias = np.round(rng.normal(size=outputs) * 0.4, 2) if biased else np.zeros(outputs)
        layers.append((np.round(rng.normal(size=(outputs, inputs)), 2), bias))
    return tessella.Network.from_arrays(layers, relu_output=True)


def unstable_patterns(network, stability):
    """All regions by exact brute force, as the states of the unstable units."""
    box = stability.domain
    layers = [(layer.dense(), layer.bias, layer.rectified) for layer in network.layers]
    unstable = np.concatenate([mask[layer.rectified] for mask, layer in zip(stability.unstable, network.layers, strict=True)])
    return list(
        {tuple(np.array(pattern)[unstable].astype(int).tolist()) for pattern in region_patterns(layers, box.lower, box.upper)}
    )


NETWORKS = [
    ((1, 5, 3), True),
    ((2, 5, 4), True),
    ((2, 4, 3), False),
    ((3, 5, 4), True),
    ((3, 4, 3, 3), True),
    ((4, 6, 3), True),
    ((3, 5, 3), False),
]


@pytest.mark.parametrize(("sizes", "biased"), NETWORKS)
def test_the_search_draws_as_many_as_a_list_of_all_regions(sizes, biased):
    rng = np.random.default_rng(sum(sizes))
    network = stacked(sizes, rng, biased=biased)
    stability = tessella.stability(network, tessella.Box.cube(-1, 1, sizes[0]))
    patterns, tree = unstable_patterns(network, stability), Tree.of(stability)
    for seeker in (Seeker(tree), Seeker(tree, list(tails(stability)))):
        for size, number in itertools.product((1, 2, 3, 5), range(25)):
            found = seeker.repeat(size, seed(size, number), never)
            assert found.draws == oracle(patterns, parities(len(patterns[0]), size, seed(size, number)))
            assert found.given_up == 0


@pytest.mark.parametrize("start", range(0, 120, 20))
def test_the_search_on_odd_networks(start):
    """Skips, units that depend on others, polytopes, fixed inputs, hyperplanes through corners and all but through them."""
    seen = 0
    for number in range(start, start + 20):
        case = random_case([77, number], largest=150, most_inputs=5)
        network, domain = case.network, case.domain
        stability = tessella.stability(network, domain, method="linear")
        tree = Tree.of(stability)
        if not tree.units or not domain.free_dim:
            continue
        seen += 1
        unstable = np.concatenate([mask[layer.rectified] for mask, layer in zip(stability.unstable, network.layers, strict=True)])
        regions = region_patterns(case.layers, case.lower, case.upper, case.matrix, case.offset)
        patterns = list({tuple(np.array(pattern)[unstable].astype(int).tolist()) for pattern in regions})
        seeker = Seeker(tree, list(tails(stability)))
        for size, repetition in itertools.product((1, 2, 3), range(6)):
            found = seeker.repeat(size, seed(size, repetition), never)
            assert found.given_up == 0
            assert found.draws == oracle(patterns, parities(tree.units, size, seed(size, repetition))), number
    assert seen > 10


@pytest.mark.parametrize("gap", [1e-11, 1e-14, 0.0])
def test_the_search_sees_regions_that_are_thin(gap):
    """Hyperplanes that all but coincide, in the first layer and in the last ones, whose own search cannot decide what lies between."""
    rng = np.random.default_rng(2)
    first = ([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0 + gap]], [0.0, 0.0, -0.25, -0.25])
    second = (
        np.vstack([[[1.0, 0.0, 0.0, 0.0], [1.0, 0.0, gap, 0.0]], rng.normal(size=(3, 4))]),
        [-0.3, -0.3 - gap, 0.1, -0.2, 0.3],
    )
    third = (np.vstack([[[1.0, 1.0, 0.0, 0.0, 0.0]] * 2, rng.normal(size=(2, 5))]), [-0.125, -0.125 - gap, 0.2, -0.1])
    network = tessella.Network.from_arrays([first, second, third], relu_output=True)
    stability = tessella.stability(network, tessella.Box.cube(-1, 1, 2))
    patterns, ends, thin = unstable_patterns(network, stability), list(tails(stability)), 0
    for tail in ends:
        search = Search(tail)
        while search.next(never) is not None:
            pass
        thin += len(search.thin)
    assert thin  # or the test would be of no use
    seeker = Seeker(Tree.of(stability), ends)
    for size, number in itertools.product((2, 3, 5), range(40)):
        found = seeker.repeat(size, seed(size, number), never)
        assert found.draws == oracle(patterns, parities(len(patterns[0]), size, seed(size, number)))


def test_where_the_search_begins_does_not_matter():
    """Earlier repetitions decide with how many constraints it begins: in any order, each repetition draws what it draws."""
    network = stacked((4, 7, 5), np.random.default_rng(3))
    stability = tessella.stability(network, tessella.Box.cube(-1, 1, 4))
    tree = Tree.of(stability)
    alone = [Seeker(tree).repeat(3, seed(3, number), never).draws for number in range(12)]
    seeker = Seeker(tree, list(tails(stability)))
    assert [seeker.repeat(3, seed(3, number), never).draws for number in reversed(range(12))][::-1] == alone
    for begin in (0, 1, 30):
        seeker._earlier[3] = [begin + 2] * 99
        assert [seeker.repeat(3, seed(3, number), never).draws for number in range(12)] == alone


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize(("sizes", "biased"), NETWORKS[1:4])
def test_solvers_draw_as_many_as_a_list_of_all_regions(name, sizes, biased):
    pytest.importorskip({"SCIP": "pyscipopt", "HiGHS": "highspy", "Gurobi": "gurobipy"}[name])
    network = stacked(sizes, np.random.default_rng(sum(sizes)), biased=biased)
    stability = tessella.stability(network, tessella.Box.cube(-1, 1, sizes[0]))
    patterns = unstable_patterns(network, stability)
    worker = _solving(stability, Tree.of(stability), SOLVERS[name]()).worker()
    for size, number in itertools.product((1, 2, 3, 5), range(3)):
        found = worker.repeat(size, seed(size, number), never)
        assert found.draws == oracle(patterns, parities(len(patterns[0]), size, seed(size, number)))


def knapsack(weights, limit, *, hidden=0):
    """A knapsack, or all subsets; hidden columns make assignments whole numbers apart from a multiple of 3."""
    n = len(weights)
    rows = np.zeros((2, n + 2 * hidden))
    rows[0, :n] = weights
    rows[1, :n] = 1.0
    lower, upper = np.zeros(n + 2 * hidden), np.ones(n + 2 * hidden)
    for column in range(n, n + 2 * hidden):
        rows[1, column], upper[column] = (-3.0, n) if column < n + hidden else (1.0, 0.5)
    ends = ([-np.inf, 0.0], [limit, 0.5]) if hidden else ([-np.inf, -np.inf], [limit, np.inf])
    names = tuple(f"x{i}" for i in range(rows.shape[1]))
    integer = np.arange(rows.shape[1]) < n + hidden
    return Model(names, lower, upper, integer, np.zeros(len(names)), csr_array(rows), ("r0", "r1"), *ends)


SETS = {
    "all subsets": (knapsack([1.0] * 9, 9.0), lambda _: True),
    "knapsack": (
        knapsack([3.0, 5, 7, 8, 9, 12, 14, 15, 19, 23], 50.0),
        lambda s: np.dot(s, [3, 5, 7, 8, 9, 12, 14, 15, 19, 23]) <= 50,
    ),
    "multiples of three": (knapsack([1.0] * 8, 6.0, hidden=1), lambda s: sum(s) <= 6 and sum(s) % 3 == 0),
}


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("kind", SETS)
def test_solvers_draw_as_many_as_a_list_of_all_assignments(name, kind):
    pytest.importorskip({"SCIP": "pyscipopt", "HiGHS": "highspy", "Gurobi": "gurobipy"}[name])
    model, right = SETS[kind]
    count = 8 if kind == "multiples of three" else int(model.integer.sum())
    solutions = [states for states in itertools.product((0, 1), repeat=count) if right(states)]
    worker = Counting(model, tuple(range(count)), SOLVERS[name]()).worker()
    for size, number in itertools.product((1, 2, 3, 4), range(4)):
        found = worker.repeat(size, seed(size, number), never)
        assert found.draws == oracle(solutions, parities(count, size, seed(size, number)))


def wrong_share(draws_of, truth, variables, seeds=300):
    """How many of some hundred bounds lie above the truth."""
    wrong = 0
    for number in range(seeds):
        found = MIPBound(Subject("a set", variables, Counted.SOLUTIONS), 3, 0.95, tuple(draws_of(number)))
        wrong += found.lower > truth
    return wrong


ALLOWED = 300 * 0.05 + 3.0 * math.sqrt(300 * 0.05 * 0.95)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "limit"), [(6, 64), (7, 65), (8, 129), (8, 200)])
def test_at_most_one_bound_in_twenty_is_wrong_on_sets(count, limit):
    """Sets just above and just at powers of two, and one between; drawn from a list."""
    everything = np.array(list(itertools.product((0, 1), repeat=count)))
    rng = np.random.default_rng(count)
    solutions = everything[rng.permutation(2**count)[:limit]]

    def draws_of(number):
        for repetition in range(28):
            drawn, left, drawn_so_far = parities(count, 3, np.random.SeedSequence((number, repetition))), solutions, 0
            while len(left):
                parity = next(drawn)
                left = left[left[:, parity.variables].sum(axis=1) % 2 == parity.odd]
                drawn_so_far += 1
            yield drawn_so_far

    assert wrong_share(draws_of, limit, count) <= ALLOWED


@pytest.mark.slow
def test_at_most_one_bound_in_twenty_is_wrong_on_a_network():
    network = stacked((2, 4, 3), np.random.default_rng(4))
    box = tessella.Box.cube(-1, 1, 2)
    stability = tessella.stability(network, box)
    truth, wrong = len(unstable_patterns(network, stability)), 0
    for number in range(300):
        wrong += tessella.mipbound(network, box, stability=stability, rng=number, workers=1).lower > truth
    assert wrong <= ALLOWED


def test_bounds_grow_with_the_size_of_constraints():
    rng = np.random.default_rng(0)
    network = tessella.Network.from_arrays([(rng.normal(size=(14, 9)), 0.3 * rng.normal(size=14))], relu_output=True)
    box = tessella.Box.cube(-1, 1, 9)
    truth = tessella.count(network, box).exact
    lower = [tessella.mipbound(network, box, parity_size=size, rng=1).lower for size in (1, 2, 3, 5)]
    assert lower == sorted(lower)
    assert lower[0] < lower[-1]
    assert truth / 8 < lower[-1] <= truth
