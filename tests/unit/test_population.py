"""Steps of a round, each by itself: chance, the table of prefixes, features, signs of units, and children."""

import itertools
import math

import numpy as np
import pytest

import tessella
from tessella.cells.state import FEASIBLE, INFEASIBLE, UNCLEAR, Layers
from tessella.cells.vertex import POINTS
from tessella.estimating import features as described
from tessella.estimating.descents import Descents
from tessella.estimating.features import _cells_of, _meeting, describe
from tessella.estimating.nodes import BOTH, OPEN, evaluate, make_child
from tessella.estimating.population import Round, _begin_cell, _begin_points, _forget
from tessella.estimating.prefixes import ASK, Prefixes, known_worth
from tessella.estimating.selection import plus, select, uniform
from tessella.estimating.survey import settle
from tessella.kernel.functions import apart
from tessella.partition.exact import Exact
from tessella.partition.tree import Tree


@apart
def begin(work: Round) -> None:
    """What a round does first."""
    _begin_cell(work)
    _begin_points(work)
    _forget(work.descent)


def descents_of(*sizes, seed=0, **options):
    rng = np.random.default_rng(seed)
    layers = [(rng.standard_normal((n, m)) / math.sqrt(m), 0.3 * rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)]
    net = tessella.Network.from_arrays(layers, relu_output=True)
    tree = Tree.of(tessella.stability(net, tessella.Box.cube(-1.0, 1.0, sizes[0]), method="linear"))
    return tree, Descents(tree, **options)


# --- chance


def test_numbers_are_those_of_splitmix64():
    seed, state, mask = np.array([7], dtype=np.uint64), 7, 2**64 - 1
    for _ in range(100):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        assert uniform(seed) == ((z ^ (z >> 31)) >> 11) / 2**53


def test_sums_of_logarithms():
    assert plus(1.0, 2.0) == pytest.approx(np.logaddexp(1.0, 2.0))
    assert plus(-np.inf, 3.0) == 3.0
    assert plus(-np.inf, -np.inf) == -np.inf
    assert plus(2000.0, 2000.0) == pytest.approx(2000.0 + math.log(2.0))


@pytest.mark.parametrize(("size", "most"), [(2, 1), (5, 2), (8, 3), (8, 7)])
def test_candidates_are_drawn_as_often_as_their_chances_say(size, most):
    scores = np.random.default_rng(size).standard_normal(size) * 2.0
    chances, certain, seed = np.zeros(size), np.zeros(size, dtype=np.int8), np.array([3], dtype=np.uint64)
    drawn, inverse, runs = np.zeros(size), np.zeros(size), 20_000
    for _ in range(runs):
        select(size, most, scores, chances, certain, seed)
        assert (chances > 0.0).sum() in {most, most - 1, most + 1}
        drawn += chances > 0.0
        inverse += np.where(chances > 0.0, 1.0 / np.where(chances > 0.0, chances, 1.0), 0.0)
    assert inverse / runs == pytest.approx(1.0, abs=0.15)  # weights are right in the mean
    assert drawn.sum() / runs == pytest.approx(most, abs=0.02)
    order = np.argsort(scores)
    assert (np.diff(drawn[order]) >= -0.02 * runs).all()  # who is predicted more is drawn more often


# --- prefixes


def test_prefixes_are_found_again_in_a_table_that_grows():
    table, rng = Prefixes.of(12), np.random.default_rng(0)
    layers = Layers.of(descents_of(3, 6, 6)[0].scaled)
    units = len(layers.rectified)
    patterns = np.unique(rng.integers(0, 2, (1500, units)).astype(np.int8), axis=0)
    for worth, pattern in enumerate(patterns):
        assert known_worth(table, layers, pattern, units, -1) == ASK
        assert table.prefix == bytes(pattern[layers.unit_of])
        table.learn(worth)
    assert len(table.worth) >= 2 * len(patterns)
    for worth, pattern in enumerate(patterns):
        assert known_worth(table, layers, pattern, units, -1) == worth


def test_a_prefix_ends_where_it_is_said_to():
    tree, _ = descents_of(3, 6, 6)
    layers, table = Layers.of(tree.scaled), Prefixes.of(12)
    pattern = np.array([1, 0] * 6, dtype=np.int8)[: len(layers.rectified)]
    known_worth(table, layers, pattern, int(layers.unit_of[4]), 1)
    assert table.prefix == bytes(pattern[layers.unit_of[:4]]) + b"\1"
    known_worth(table, layers, pattern, int(layers.unit_of[4]), -1)
    assert table.prefix == bytes(pattern[layers.unit_of[:4]])


# --- features


def test_cells_of_hyperplanes():
    table = _cells_of(7, 4)
    for n, r in itertools.product(range(8), range(5)):
        assert math.exp(table[n, r]) == pytest.approx(sum(math.comb(n, j) for j in range(r + 1)))


@pytest.mark.parametrize("known", [0, 1, 5, 20, 64])
def test_pairs_and_triples_that_meet(known):
    rng = np.random.default_rng(known)
    signs = rng.random((6, known)) < 0.5
    sides = np.array([sum(1 << int(i) for i in np.flatnonzero(row)) for row in signs], dtype=np.uint64).view(np.int64)
    pairs = [pair for pair in itertools.combinations(range(6), 2) if len({tuple(c) for c in signs[list(pair)].T}) == 4]
    triples = [one for one in itertools.combinations(range(6), 3) if len({tuple(c) for c in signs[list(one)].T}) == 8]
    assert _meeting(sides, 6, known) == (len(pairs), len(triples))


@pytest.mark.parametrize("sizes", [(3, 6, 5), (4, 5, 4, 6), (20, 6, 5), (2, 70)])
def test_a_node_is_described_by_its_units_and_points(sizes):
    tree, descents = descents_of(*sizes)
    work = descents._round
    begin(work)
    descent, nodes, points = work.descent, work.descent.nodes, work.descent.primal.points
    assert settle(descent, 0, True, False) == 0
    found = np.zeros(descents.shape.longest, dtype=np.float32)
    describe(descent, work.describer, 0, found)
    width, known = int(descent.layers.width[0]), int(points.known[0])
    status = nodes.status[0, :width]
    dimensions = len(points.places[0])
    assert found[described.CONSTANT] == 1.0
    assert found[described.CELLS_OF_LEFT] == pytest.approx(
        _cells_of(width, dimensions)[nodes.left[0], min(dimensions, width)], rel=1e-6
    )
    assert found[described.LIVE] == (status == 1).sum() / 8.0
    assert found[described.OPEN_UNITS] == (status == OPEN).sum() / 8.0
    assert found[described.KNOWN_POINTS] == pytest.approx(math.log1p(known))
    if width <= 64:
        places = points.places[0, :, :known].T
        values = places @ nodes.combined[0, :width, :-1].T + nodes.combined[0, :width, -1]
        after = np.maximum(values, 0.0) @ tree.scaled.weights[1].T + tree.scaled.biases[1]
        share = (after > 0.0).mean(axis=0)
        spread = found[described.BASE + 2 * width :][: len(share)]
        assert spread == pytest.approx(4.0 * share * (1.0 - share), abs=1e-6)
        assert found[described.BASE + width :][:width] == pytest.approx(
            np.where(status == BOTH, 1.0, np.where(status >= OPEN, 0.7, 0.0))
        )


# --- signs and children


def test_values_at_points():
    rng = np.random.default_rng(0)
    row, points, values = rng.standard_normal(6), rng.standard_normal((5, POINTS)), np.zeros(POINTS)
    evaluate(row, points, values)
    assert values == pytest.approx(row[:-1] @ points + row[-1])


@pytest.mark.parametrize("sizes", [(3, 6, 5), (5, 4, 4), (20, 6, 5), (140, 5, 6)])
@pytest.mark.parametrize("lazy", [False, True])
def test_signs_and_children_are_those_of_exact_arithmetic(sizes, lazy):
    """Down one path to a leaf, all children that are there and all that are not."""
    tree, descents = descents_of(*sizes, lazy=lazy)
    work, exact = descents._round, Exact(tree)
    descent, nodes, layers = work.descent, work.descent.nodes, work.descent.layers
    begin(work)
    node, values, decided = 0, np.zeros(POINTS), 0
    while settle(descent, node, True, True) == 0:
        layer = nodes.layer[node]
        first, width = int(layers.first[layer]), int(layers.width[layer])
        left = [unit for unit in range(first, first + width) if nodes.status[node, unit] >= BOTH]
        prefix = bytes(nodes.status[node][layers.unit_of[layers.unit_of < left[0]]])
        evaluate(nodes.combined[node, left[0]], descent.primal.points.places[node], values)
        child, opened = 1 + node % 2, {}
        for side in (1, 0):
            opened[side] = make_child(descent, node, child, left[0], side, values)
            assert opened[side] != UNCLEAR
            assert (opened[side] == FEASIBLE) == exact.exists(prefix + bytes([side]))
            decided += 1
        side = 1 if opened[1] == FEASIBLE else 0
        assert opened[side] != INFEASIBLE
        make_child(descent, node, child, left[0], side, values)
        known = int(descent.primal.points.known[child])
        at = descent.primal.points.places[child, :, :known]
        rows = descent.primal.rows[child, : nodes.depth[child], : len(at) + 1]
        assert (rows[:, :-1] @ at + rows[:, -1:] > 0.0).all()  # its points lie in its cell
        node = child
    assert exact.exists(bytes(nodes.status[node][layers.unit_of]))
    assert decided >= 4


def test_a_leaf_is_a_region_and_its_weight_is_one_over_its_chance():
    tree, descents = descents_of(4, 6, 5, population=1)
    exact, theta = Exact(tree), descents.shape.start()
    total = []
    for number in range(400):
        logarithm, prefix, behind = descents.leaf(number, 5, theta)
        assert exact.exists(prefix)
        assert behind == 1
        total.append(math.exp(logarithm))
    true = exact.count(b"")
    assert abs(np.mean(total) - true) < 5.0 * np.std(total) / math.sqrt(len(total))
