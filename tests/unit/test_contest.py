"""`tessella.estimating.contest` and `tessella.estimating.shared`: which descents an estimate makes, and predictions for wide layers."""

import itertools
import math

import numpy as np
import pytest

import tessella
from tessella.estimating.contest import Contest, Kind, kinds_for
from tessella.estimating.descents import Batch, Descents, Records
from tessella.estimating.rounds import Rounds
from tessella.estimating.shared import SharedValues
from tessella.partition.tree import Tree

LN2 = math.log(2.0)


def tree_of(*sizes, seed=0):
    rng = np.random.default_rng(seed)
    layers = [(rng.standard_normal((n, m)) / math.sqrt(m), 0.5 * rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)]
    net = tessella.Network.from_arrays(layers, relu_output=True)
    return Tree.of(tessella.stability(net, tessella.Box.cube(-1, 1, sizes[0]), method="linear"))


def batch(deviation, count, seed=0):
    """Rounds that spread so far and teach nothing."""
    nothing = Records(np.zeros((0, 1), dtype=np.float32), np.zeros((0, 3), dtype=np.int64), np.zeros(0))
    tilted = nothing._replace(features=np.zeros((0, 2), dtype=np.float32))
    return Batch(LN2 * np.random.default_rng(seed).normal(50.0, deviation, count), tilted)


def go(contest, share, deviations, count=40, seconds=1.0):
    """One turn whose rounds spread as far as is said for its kind."""
    turn = contest.turn(share)
    contest.take(turn, batch(deviations[turn.kind], min(count, turn.most)), seconds * count)
    contest.end(turn)
    return turn


@pytest.mark.parametrize(
    ("sizes", "kinds"),
    [
        ((5, 20, 20), [Kind.PROGRAMS]),
        ((2, 70, 5), [Kind.SHARED]),
        ((32, 40, 40), [Kind.PROGRAMS, Kind.POINTS]),
        ((32, 80, 40), [Kind.SHARED, Kind.POINTS]),
        ((300, 300, 300), [Kind.POINTS]),
        ((2, 600, 5), [Kind.PROGRAMS]),
        ((3, *(100,) * 12), [Kind.PROGRAMS]),
        ((14, *(100,) * 12), [Kind.POINTS]),
    ],
)
def test_small_trees_have_one_kind(sizes, kinds):
    assert list(kinds_for(tree_of(*sizes))) == kinds


@pytest.mark.parametrize(("programs", "points", "best"), [(2.0, 4.0, Kind.SHARED), (9.0, 4.0, Kind.POINTS)])
def test_the_kind_that_spreads_less_is_chosen(programs, points, best):
    contest, spreads = Contest(tree_of(32, 80, 40), timed=False), {Kind.SHARED: programs, Kind.POINTS: points}
    assert go(contest, 0.0, spreads).kind is Kind.POINTS  # a few, to compare with
    assert [go(contest, 0.2, spreads).kind for _ in range(3)] == [Kind.SHARED] * 3
    assert contest.settled == 0
    assert [go(contest, 0.5, spreads).kind for _ in range(2)] == [best] * 2
    assert contest.settled == 12 + sum((40, 12, 40))
    assert contest.leader.kind is best


def test_short_turns_tell_together_how_far_they_spread():
    """Turns may be of a few rounds, as the first ones are."""
    contest, spreads = Contest(tree_of(32, 80, 40), timed=True), {Kind.SHARED: 14.0, Kind.POINTS: 4.0}
    assert [go(contest, 0.0, spreads, count=4).kind for _ in range(4)] == [Kind.POINTS] * 3 + [Kind.SHARED]
    for _ in range(2):
        go(contest, 0.3, spreads)
    assert go(contest, 0.5, spreads).kind is Kind.POINTS


def test_what_was_learned_is_kept_only_if_it_narrows_the_spread():
    contest = Contest(tree_of(2, 70, 5), timed=True)
    learner = contest._entrants[0].learner
    first = contest.turn(0.1)
    contest.take(first, batch(3.0, 40), 1.0)
    contest.end(first)
    learner._coefficients = learner._coefficients + 1.0
    trial = contest.turn(0.2)
    assert trial.most == 12
    assert (trial.theta != first.theta).any()
    contest.take(trial, batch(9.0, 12), 1.0)
    contest.end(trial)
    after = contest.turn(0.3)
    assert after.most == math.inf
    assert (after.theta == first.theta).all()
    contest.take(after, batch(3.0, 40), 1.0)
    contest.end(after)
    learner._coefficients = learner._coefficients + 1.0
    trial = contest.turn(0.4)
    contest.take(trial, batch(2.0, 30), 1.0)
    contest.end(trial)
    assert (contest.turn(0.5).theta == trial.theta).all()


def test_shared_predictions_narrow_the_spread():
    tree = tree_of(12, 24, 20, seed=1)
    descents = Descents(tree, population=1, widest=128)
    values = SharedValues(descents.shape)
    before = descents.rounds(0, 150, 1, values.theta)
    for first in (150, 230):
        values.add(descents.rounds(first, 80, 1, values.theta).records)
        values.learn()
    after = descents.rounds(400, 150, 1, values.theta)
    assert after.logarithms.std() < 0.85 * before.logarithms.std()


@pytest.mark.parametrize("sizes", [pytest.param((2, 70, 4), marks=pytest.mark.slow), (3, 70)])
def test_rounds_with_shared_predictions_are_unbiased(sizes):
    """From nothing, with everything that is learned and tried on the way."""
    tree = tree_of(*sizes, seed=2)
    assert kinds_for(tree) == (Kind.SHARED,)
    exact = tessella.count(tree.network, tree.domain).exact
    means = []
    for base in range(25):
        rounds = Rounds(tree, base, lambda _: None)
        rounds.go(60, math.inf, None, 1)
        means.append(np.exp(rounds.sample.logarithms).mean())
    assert abs(np.mean(means) - exact) <= 4.5 * np.std(means, ddof=1) / math.sqrt(len(means))


def test_a_contest_gives_the_same_answer_whoever_works():
    tree = tree_of(32, 66, 12, seed=3)
    assert len(kinds_for(tree)) == 2
    found = [tessella.estimate(tree.network, tree.domain, probes=40, rng=1, workers=workers) for workers in (1, 2)]
    assert (found[0].maps, found[0].lower, found[0].maps_interval) == (found[1].maps, found[1].lower, found[1].maps_interval)
