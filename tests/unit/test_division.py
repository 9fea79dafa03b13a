"""Two kinds of descents in turns: how their time is divided, and that wealth goes on from one kind to the other in the order of time."""

import math

import numpy as np
import pytest

import tessella
from tessella.estimating import both as both_module
from tessella.estimating.betting import Before, bets, lower_bound
from tessella.estimating.both import Asked, Both
from tessella.estimating.division import BEGINNING, MOST, PLANNED, divides, part
from tessella.estimating.rounds import Sample
from tessella.estimating.uniform import Drawn, Ways
from tessella.partition.tree import Tree
from tessella.result import Status

BOX = tessella.Box.cube(-1, 1, 4)


def network(seed):
    rng = np.random.default_rng(seed)
    return tessella.Network.from_arrays([(rng.standard_normal((n, m)), rng.standard_normal(n)) for m, n in ((4, 8), (8, 8))])


def tree(seed):
    return Tree.of(tessella.stability(network(seed), BOX, method="linear"))


def slowly(terms, stakes, others, others_stakes, turns, confidence):
    """The same bound, one term after the other: early purses and all."""
    first, between = turns
    early = [0.5 if at < 30 else 0.0 for at in range(len(terms))]
    order = [("other", at) for at in range(first)] + [("own", at) for at in range(between)]
    order += [("other", at) for at in range(first, len(others))] + [("own", at) for at in range(between, len(terms))]

    def rejected(mean):
        one, two, given = 1.0, 1.0, 1.0
        for kind, at in order:
            if kind == "other":
                given *= 1.0 + others_stakes[at] * (others[at] / mean - 1.0)
            else:
                one *= 1.0 + stakes[at] * (terms[at] / mean - 1.0)
                two *= 1.0 + early[at] * (terms[at] / mean - 1.0)
            if given * (0.95 * one + 0.05 * two) >= 1.0 / (1.0 - confidence):
                return True
        return False

    low, high = 1e-6, 1e6
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low


@pytest.mark.parametrize("seed", range(8))
def test_wealth_goes_on_in_the_order_of_time(seed):
    rng = np.random.default_rng(seed)
    terms, others = np.exp(rng.normal(-0.3, 0.8, 60)), np.where(rng.random(80) < 0.4, 2.5, 0.0)
    stakes, staked = rng.uniform(0.0, 0.5, 60), rng.uniform(0.0, 0.5, 80) * (rng.random(80) < 0.8)
    turns = int(rng.integers(81)), int(rng.integers(61))
    with np.errstate(divide="ignore"):
        found = lower_bound(np.log(terms), stakes, 0.9, Before(np.log(others), staked, turns))
    assert math.exp(found) == pytest.approx(slowly(terms, stakes, others, staked, turns, 0.9), rel=1e-6)


def test_misses_where_the_first_descents_decide_how_many_there_are():
    """Rounds and later descents are made until the bound looks best, and how many is chosen from the first ones."""
    rng, runs, missed = np.random.default_rng(5), 300, 0
    for _ in range(runs):
        chance, few = 0.3, 40
        others = np.where(rng.random(400) < chance, 1.0 / chance, 0.0)
        count = 80 if others[:few].mean() > 1.0 else 400
        terms = rng.normal(-0.125, 0.5, 100 if count > 80 else 30)
        with np.errstate(divide="ignore"):
            given = np.log(others[:count])
        staked = bets(given, np.concatenate([np.full(few, 200.0), np.full(count - few, float(count))]), 0.8)
        own = bets(terms, np.full(len(terms), 100.0), 0.8)
        missed += lower_bound(terms, own, 0.8, Before(given, staked, (few, 20))) > 1e-9
    assert missed <= 0.2 * runs + 3.0 * math.sqrt(0.16 * runs)


def sample(spread, hits, count=2000, rounds=60):
    """Rounds that spread so far, and descents of which so many succeeded."""
    high = np.zeros(count)
    high[:hits] = 1.0
    logarithms = math.log(2**20 * 0.1) + spread * np.tile([-1.0, 1.0], rounds // 2)
    drawn = Drawn(2**20, high, high, np.full(count, 2.0 * count), 0.0)
    return Sample(logarithms, np.full(rounds, 100.0), uniform=drawn)


def test_time_goes_to_what_tightens_the_interval():
    costs, proved = (1e-3, 1e-3), 2**20
    assert part(sample(3.0, 200), Ways(), costs, 4.0, proved) == pytest.approx(MOST)
    assert part(sample(0.3, 0), Ways(), (1.0, 1e-3), 4.0, proved) == pytest.approx(BEGINNING)  # no descent will succeed
    assert BEGINNING < part(sample(0.05, 1999), Ways(), (1e-3, 0.2), 4.0, proved) <= MOST
    assert part(sample(1.0, 200, rounds=4), Ways(), costs, 4.0, proved) == PLANNED  # too few rounds to tell
    assert not divides(0.1)
    assert not divides(math.inf)


def test_an_estimate_divides_its_time(monkeypatch):
    seen = []
    monkeypatch.setattr(both_module, "part", lambda *_: seen.append(0.6) or 0.6)
    now = both_module.meter.clock()
    run = Both(tree(1), 3, lambda _: None)
    status = run.go(Asked(None, now + 0.8, None, 1), 0.95, 2**16, None, worked=False)
    drawn = run.sample.uniform
    assert (status, seen) == (Status.FINISHED, [0.6])
    first, between = drawn.turns
    assert 0 < first < len(drawn.high)
    assert 0 < between < len(run.sample.logarithms)


def test_similar_networks_draw_different_sets_with_one_seed():
    bases = {Both(tree(seed), 0, lambda _: None)._base for seed in range(3)}
    assert len(bases) == 3
    assert Both(tree(1), 0, lambda _: None)._base in bases
    again = [tessella.estimate(network(1), BOX, probes=50, rng=4, workers=workers) for workers in (1, 3)]
    assert again[0].to_dict()["lower"] == again[1].to_dict()["lower"]
    assert again[0].upper == again[1].upper
