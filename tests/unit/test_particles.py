"""Populations that go down in step: particles, and the points that are scattered over their cells."""

import itertools
import math

import numpy as np
import pytest

import tessella
from tessella.estimating.betting import bets
from tessella.estimating.contest import Contest, Kind
from tessella.estimating.descents import Batch, Descents, Records
from tessella.estimating.rounds import Rounds
from tessella.estimating.said import said
from tessella.partition.tree import Tree

LN2 = math.log(2.0)


def tree_of(*sizes, seed=0):
    rng = np.random.default_rng(seed)
    layers = [(rng.standard_normal((n, m)) / math.sqrt(m), 0.5 * rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)]
    net = tessella.Network.from_arrays(layers, relu_output=True)
    return Tree.of(tessella.stability(net, tessella.Box.cube(-1, 1, sizes[0]), method="linear"))


@pytest.mark.parametrize(("population", "scattered"), [(2, 0), (8, 0), (8, 12), (3, 48)])
@pytest.mark.parametrize("sizes", [(2, 8, 6, 5), (3, 70)])
def test_particles_are_unbiased(sizes, population, scattered):
    tree = tree_of(*sizes, seed=3)
    exact = tessella.count(tree.network, tree.domain).exact
    descents = Descents(tree, population=population, widest=128, in_step=True, scattered=scattered)
    found = np.exp(descents.rounds(0, 1500 if len(sizes) > 2 else 150, 5, descents.shape.start()).logarithms)
    assert abs(found.mean() - exact) <= 4.5 * found.std(ddof=1) / math.sqrt(len(found)) + 1e-9


def test_a_population_is_the_same_in_any_batch():
    tree = tree_of(6, 14, 10, seed=1)
    at_once, in_parts = (Descents(tree, population=6, widest=128, in_step=True, scattered=16) for _ in range(2))
    theta = at_once.shape.start()
    whole = at_once.rounds(0, 6, 9, theta).logarithms
    assert np.concatenate([in_parts.rounds(first, 2, 9, theta).logarithms for first in (0, 2, 4)]).tolist() == whole.tolist()


def test_particles_spread_less():
    tree = tree_of(10, 24, 20, seed=2)
    deviations = []
    for population in (1, 16):
        descents = Descents(tree, population=population, widest=128, in_step=population > 1)
        deviations.append(descents.rounds(0, 60, 3, descents.shape.start()).logarithms.std())
    assert deviations[1] < 0.6 * deviations[0]


def test_scattered_points_lie_in_their_cells():
    tree = tree_of(5, 16, 12, seed=4)
    descents = Descents(tree, population=8, widest=128, in_step=True, scattered=24)
    descents.rounds(0, 3, 1, descents.shape.start())
    nodes, primal = descents._round.descent.nodes, descents._round.descent.primal
    looked_at = 0
    for node in range(len(nodes.depth)):
        depth, known = nodes.depth[node], primal.points.known[node]
        names, places = primal.points.names[node, :known], primal.points.places[node, :, :known]
        values = primal.rows[node, :depth, :-3] @ places + primal.rows[node, :depth, -3:-2]
        assert (values >= 0.9e-9).all()
        assert (np.abs(places) < 1.0).all()
        looked_at += int((names == 0).sum())
    assert looked_at > 100


def test_where_points_cannot_be_moved_freely_none_are_scattered():
    descents = Descents(tree_of(30, 8, 6, seed=5), population=4, widest=128, in_step=True, scattered=24)
    assert descents._round.scatter.wanted == 0
    assert np.isfinite(descents.rounds(0, 4, 1, descents.shape.start()).logarithms).all()


def batch(deviation, size):
    nothing = Records(np.zeros((0, 1), dtype=np.float32), np.zeros((0, 3), dtype=np.int64), np.zeros(0))
    return Batch(LN2 * np.random.default_rng(0).normal(50.0, deviation, size), nothing)


def turns(deviation, *, timed=True, fitting=400.0):
    """Turns of a contest whose rounds spread so far, before and after the kind is chosen."""
    contest = Contest(tree_of(2, 70, 5), timed=timed)
    for share in (0.0, 0.1, 0.2, 0.5, 0.6):
        turn = contest.turn(share, fitting)
        yield contest, turn
        contest.take(turn, batch(deviation, int(min(turn.most, 20))), 1.0)
        contest.end(turn)


def test_rounds_that_spread_far_become_populations():
    found = list(turns(6.0))
    assert [turn.kind for _, turn in found] == [Kind.SHARED] * 3 + [Kind.SHARED_PARTICLES] * 2
    assert [turn.bets for _, turn in found] == [True, False, False, True, True]
    assert found[-1][1].population == 16
    contest = found[-1][0]
    assert contest.learned
    assert contest.settled == 52
    assert contest.kind.method == "particles"
    assert contest.leader.kind is Kind.SHARED  # single descents, for samples


@pytest.mark.parametrize(("deviation", "options"), [(1.0, {}), (6.0, {"timed": False}), (6.0, {"fitting": 50.0})])
def test_other_rounds_stay_single_descents(deviation, options):
    assert {turn.kind for _, turn in turns(deviation, **options)} == {Kind.SHARED}


def test_bets_begin_anew_with_the_first_population():
    """What spread before says nothing of them, and where nothing is to be bet, nothing is."""
    before, after = np.random.default_rng(0).normal(0.0, 8.0, 40), np.full(30, 12.0)
    planned = np.concatenate([np.full(40, np.inf), np.full(30, 70.0)])
    found = bets(np.concatenate([before, after]), planned, 0.95, learned=40)
    assert (found[:40] == 0.0).all()
    assert found[40:] == pytest.approx(bets(after, np.full(30, 30.0), 0.95))
    changed = np.concatenate([before, after[:20], np.full(10, 3.0)])
    assert bets(changed, planned, 0.95, learned=40)[:61] == pytest.approx(found[:61])  # chosen from the terms before


def test_an_estimate_in_time_ends_with_populations(monkeypatch):
    """By a clock that counts rounds, so that the machine does not matter."""
    monkeypatch.setattr("tessella.estimating.contest._APART", 0.0)
    tree = tree_of(2, 70, 5, seed=6)
    exact = tessella.count(tree.network, tree.domain).exact
    rounds = Rounds(tree, 1, lambda _: None, lambda: 0.01 * rounds._done)
    rounds.go(None, 3.0, None, 1)
    sample = rounds.sample
    assert sample.method == "particles"
    assert sample.learned == sample.settled > 100
    assert len(sample.logarithms) > sample.settled + 100
    assert np.isinf(sample.planned[: sample.settled]).any()
    assert np.isfinite(sample.planned[sample.settled :]).all()
    found = said(sample, 0.95, 1 << tree.units)
    assert found.lower <= exact
    assert found.maps_interval[0] <= math.log2(exact) <= found.maps_interval[1]
    assert found.maps == pytest.approx(math.log2(exact), abs=0.1)
