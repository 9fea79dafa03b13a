"""`tessella.estimate` and `tessella.sample_regions`: options, claims, sizes."""

import itertools
import json
import math
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import tessella
from tessella.estimating import estimate as estimating
from tessella.estimating import rounds as rounds_module
from tessella.estimating.betting import bets, log_mean, lower_bound, markov_bound
from tessella.estimating.rounds import Rounds
from tessella.partition.tree import Tree
from tessella.result import Status


def network(*sizes, seed=0, bias=1.0):
    rng = np.random.default_rng(seed)
    layers = [(rng.standard_normal((n, m)) / math.sqrt(m), bias * rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)]
    return tessella.Network.from_arrays(layers, relu_output=True)


def cube(net, low=-1, high=1):
    return tessella.Box.cube(low, high, net.input_dim)


SMALL = network(6, 6, 5)
MIDDLE = network(20, 14, 12)
LARGE = network(20, 30, 30)  # one that is not counted in a second
MANY = network(130, 10, 9, 8)  # inputs


def test_what_can_be_counted_is_counted():
    found = tessella.estimate(SMALL, cube(SMALL), seconds=5)
    exact = tessella.count(SMALL, cube(SMALL)).exact
    assert (found.exact, found.mean, found.lower, found.confidence, found.standard_error) == (exact, exact, exact, 1.0, 0.0)
    assert repr(found).startswith(f"Estimate(exactly {exact:,} regions, of 6-6-5 on [-1, 1]^6, ")
    assert [str(bound.side) for bound in found.bounds] == ["exact"]
    assert repr(tessella.estimate(SMALL, tessella.Box.around(np.full(6, 0.3), 1e-9))).startswith("Estimate(exactly 1 region, of ")


def test_nothing_to_descend():
    net = tessella.Network.from_arrays([([[1.0]], [5.0])], relu_output=True)
    assert tessella.estimate(net, cube(net)).exact == 1
    assert tessella.estimate(net, cube(net), probes=3).exact == 1
    fixed = tessella.Box([0.5] * 6, [0.5] * 6)
    assert tessella.estimate(SMALL, fixed, probes=3).exact == 1
    drawn = tessella.sample_regions(net, cube(net), 3)
    assert [one.weight for one in drawn] == [1.0] * 3


def test_too_many_to_count():
    found = tessella.estimate(MIDDLE, cube(MIDDLE), probes=60)
    assert found.exact is None
    assert 1 < found.lower < found.mean < tessella.upper_bounds(MIDDLE, cube(MIDDLE)).empirical
    assert found.maps == pytest.approx(math.log2(found.mean))
    assert 0.0 < found.standard_error < found.mean
    assert found.probes == 60
    assert found.markov < found.lower
    assert "with 95 % confidence" in repr(found)
    assert [(str(bound.side), bound.confidence) for bound in found.bounds] == [
        ("lower", 0.95),
        ("estimate", 0.0),
        ("upper", 0.95),
    ]


def test_a_hundredth_of_a_second_is_enough_for_an_answer():
    found = tessella.estimate(LARGE, cube(LARGE), seconds=0.01)
    assert found.probes >= 1
    assert found.lower >= 1
    assert found.mean > 1


@pytest.mark.parametrize("probes", [1, 7, 20])
@pytest.mark.parametrize("net", [MIDDLE, MANY])
def test_the_same_seed_gives_the_same_answer_whoever_works(net, probes):
    once = tessella.estimate(net, cube(net), probes=probes, rng=3, workers=1)
    assert once.probes == probes
    for workers in (2,):
        again = tessella.estimate(net, cube(net), probes=probes, rng=3, workers=workers)
        assert (once.maps, once.lower, once.relative_error) == (again.maps, again.lower, again.relative_error)
    with ThreadPoolExecutor(2) as threads:
        assert tessella.estimate(net, cube(net), probes=probes, rng=3, executor=threads).maps == once.maps
    assert tessella.estimate(net, cube(net), probes=probes, rng=4).maps != once.maps
    generator = np.random.default_rng(3)
    assert tessella.estimate(net, cube(net), probes=probes, rng=generator).maps == once.maps
    assert tessella.estimate(net, cube(net), probes=probes, rng=generator).maps != once.maps


def test_processes():
    once = tessella.estimate(MIDDLE, cube(MIDDLE), probes=12, workers=1)
    with ProcessPoolExecutor(2, mp_context=get_context("forkserver")) as pool:
        again = tessella.estimate(MIDDLE, cube(MIDDLE), probes=12, executor=pool)
    assert again.maps == pytest.approx(once.maps, abs=1e-9)


def test_progress():
    seen = []
    found = tessella.estimate(LARGE, cube(LARGE), seconds=1.0, progress=seen.append)
    assert [now.probes for now in seen] == sorted(now.probes for now in seen)
    assert (seen[-1].maps, seen[-1].lower, seen[-1].probes) == (found.maps, found.lower, found.probes)
    assert seen[-1].mean == found.mean


def test_ctrl_c_returns_what_is_known():
    def interrupt(now):
        if now.lower > 1:
            known.append(now.lower)
            raise KeyboardInterrupt

    known = []
    found = tessella.estimate(LARGE, cube(LARGE), seconds=60.0, progress=interrupt)
    assert found.status is Status.INTERRUPTED
    assert found.lower >= known[0] > 1


def test_json():
    record = json.loads(tessella.estimate(MIDDLE, cube(MIDDLE), probes=20).to_json())
    assert record["probes"] == 20
    assert record["lower"] <= record["mean"]
    assert record["exact"] is None
    assert record["bounds"][0]["confidence"] == 0.95
    one = json.loads(tessella.estimate(MIDDLE, cube(MIDDLE), probes=1).to_json())
    assert one["standard_error"] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seconds": 0}, "seconds is 0"),
        ({"seconds": "soon"}, "seconds is 'soon'"),
        ({"seconds": math.nan}, "seconds is nan"),
        ({"probes": 0}, "probes is 0"),
        ({"probes": 1.5}, "probes is 1.5"),
        ({"confidence": 1.0}, "confidence is 1.0"),
        ({"confidence": 0}, "confidence is 0"),
        ({"workers": 0}, "workers is 0"),
        ({"executor": 3}, "executor is a int"),
        ({"progress": 3}, "progress is a int"),
        ({"stability": 3}, "stability is a int"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(tessella.OptionError, match=words):
        tessella.estimate(SMALL, cube(SMALL), **options)


def test_bad_samples():
    for bad in (0, -1, True, 1.5, "3"):
        with pytest.raises(tessella.OptionError, match="n is"):
            tessella.sample_regions(SMALL, cube(SMALL), bad)


# --- sizes


@pytest.mark.parametrize(
    ("sizes", "probes"),
    [((5, 50, 50, 50, 50, 50, 50, 5), 1), ((40, 200, 100), 1), ((3, 4, 3, 4, 3, 4, 3), 30), ((784, 70, 10), 1)],
)
def test_any_shape(sizes, probes):
    net = network(*sizes, bias=0.3)
    found = tessella.estimate(net, cube(net), probes=probes)
    assert math.isfinite(found.maps)
    assert found.mean >= 1.0
    assert found.undecided == 0
    assert found.lower <= tessella.configuration_bound(net)


def test_large_networks():
    """512 units behind 784 inputs; a convolution, whose rows are sparse; a box of many sizes; a polytope."""
    net = network(784, 256, 256, 10, bias=0.3)
    found = tessella.estimate(net, cube(net, 0), seconds=0.01)
    assert (found.exact, found.undecided) == (None, 0)
    assert 250.0 < found.maps < 522.0
    assert found.probes <= 2
    found = tessella.estimate(net, cube(net, -1e6, 1e6), probes=1)
    assert 250.0 < found.maps < 522.0
    sparse = np.kron(np.eye(40), np.random.default_rng(0).standard_normal((4, 3)))
    blocks = tessella.Network.from_arrays([(sparse, np.full(160, 0.1)), (np.ones((2, 160)), [0.0, 0.0])])
    truth = tessella.count(
        tessella.Network.from_arrays([(sparse[:4, :3], np.full(4, 0.1))], relu_output=True), tessella.Box.cube(-1, 1, 3)
    )
    found = tessella.estimate(blocks, cube(blocks), probes=8)
    assert abs(found.maps - 40 * math.log2(truth.exact)) < 40.0


def test_a_polytope_with_many_units():
    net = network(30, 40, 20)
    cut = tessella.Polytope(np.ones((1, 30)), [0.0], box=cube(net))
    found, whole = tessella.estimate(net, cut, probes=20), tessella.estimate(net, cube(net), probes=20)
    assert found.undecided == 0
    assert 20.0 < found.maps < whole.maps + 8.0


def test_time_and_probes_whatever_comes_first():
    assert tessella.estimate(LARGE, cube(LARGE), probes=5, seconds=60.0).probes == 5
    found = tessella.estimate(LARGE, cube(LARGE), probes=10**9, seconds=0.3)
    assert 1 <= found.probes < 10**9


def test_counts_beyond_floating_point():
    """One hyperplane per input and unit: 2^1100 regions, one path, no spread."""
    size = 1030
    net = tessella.Network.from_arrays([(np.eye(size), np.zeros(size))], relu_output=True)
    found = tessella.estimate(net, cube(net), probes=1)
    assert found.maps == pytest.approx(size, abs=1e-6)
    assert isinstance(found.mean, int)
    assert abs(found.mean / 2**size - 1) < 1e-6
    assert json.loads(found.to_json())["lower"] == found.lower


def test_ctrl_c_while_code_is_loaded_is_heard(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(estimating.warming, "load", interrupted)
    for _ in range(2):  # it is not taken for loaded then
        with pytest.raises(KeyboardInterrupt):
            tessella.estimate(SMALL, cube(SMALL), probes=3)


def test_a_confidence_is_never_rounded_to_certainty():
    for confidence in (0.9999999, 0.9999999999999999):
        assert "with 99.99 % confidence" in repr(tessella.estimate(SMALL, cube(SMALL), probes=3, confidence=confidence))


# --- samples


@pytest.mark.parametrize("inputs", [4, 130])
def test_samples_are_regions_with_weights(inputs):
    net = network(inputs, 5, 4, seed=2)
    box = cube(net)
    known = {region.pattern.tobytes() for region in tessella.regions(net, box)}
    drawn = tessella.sample_regions(net, box, 600, rng=1)
    assert len(drawn) == 600
    assert {one.region.pattern.tobytes() for one in drawn} <= known
    assert all((net.patterns(one.region.point) == one.region.pattern).all() for one in drawn[:20])
    weights = np.array([one.weight for one in drawn])
    assert all(one.log2_weight >= 0.0 for one in drawn)
    # unbiased: six standard errors, a false alarm in fewer than one of 10^8 seeds if the means are normal
    for function in (lambda _: 1.0, lambda region: region.pattern.sum(), lambda region: float(region.pattern[0])):
        truth = sum(function(region) for region in tessella.regions(net, box))
        terms = weights * np.array([function(one.region) for one in drawn])
        assert abs(terms.mean() - truth) < 6.0 * terms.std() / math.sqrt(len(terms)) + 1e-9
    again = tessella.sample_regions(net, box, 600, rng=1)
    assert [one.log2_weight for one in again] == [one.log2_weight for one in drawn]


# --- the bets


def test_bets_do_not_look_ahead():
    rng = np.random.default_rng(0)
    one = rng.standard_normal(50)
    two = np.concatenate([one[:20], rng.standard_normal(30)])
    planned = np.full(50, 50.0)
    assert bets(one, planned, 0.95)[:21] == pytest.approx(bets(two, planned, 0.95)[:21], rel=1e-12)
    assert (bets(one, planned, 0.95)[:5] == 0.0).all()
    assert ((bets(one, planned, 0.95)[5:] > 0.0) & (bets(one, planned, 0.95) <= 0.9)[5:]).all()


def test_the_bound_is_where_the_wealth_reaches_its_goal():
    rng = np.random.default_rng(1)
    terms = rng.exponential(3.0, 200)
    stakes = bets(np.log(terms), np.full(200, 200.0), 0.9)
    bound = math.exp(lower_bound(np.log(terms), stakes, 0.9))
    halves = np.where(np.arange(200) < 30, 0.5, 0.0)  # of the second purse, which holds a twentieth

    def wealth(mean):
        first, second = (np.cumprod(1.0 + staked * (terms / mean - 1.0)) for staked in (stakes, halves))
        return (0.95 * first + 0.05 * second).max()

    assert wealth(bound * (1 - 1e-6)) >= 10.0 > wealth(bound * (1 + 1e-6))
    assert bound < terms.mean()


@pytest.mark.parametrize("number", [3, 5, 20])
def test_who_stops_in_the_first_tenth_of_a_plan_has_a_bound(number):
    terms = np.log(np.random.default_rng(2).exponential(3.0, number))
    stakes = bets(terms, np.full(number, 1000.0), 0.95)
    assert not stakes.any()
    assert 0.0 < math.exp(lower_bound(terms, stakes, 0.95)) < 3.0


def test_bounds_of_nothing():
    nothing = np.full(5, -np.inf)
    assert lower_bound(nothing, bets(nothing, np.full(5, 5.0), 0.95), 0.95) == -math.inf
    assert lower_bound(np.zeros(0), np.zeros(0), 0.95) == -math.inf
    assert markov_bound(nothing, 0.95) == -math.inf
    assert log_mean(np.array([-np.inf, 0.0])) == pytest.approx(math.log(0.5))


def test_bounds_of_huge_numbers():
    terms = 5000.0 + np.random.default_rng(2).standard_normal(100)
    small = lower_bound(terms - 5000.0, bets(terms - 5000.0, np.full(100, 100.0), 0.95), 0.95)
    assert lower_bound(terms, bets(terms, np.full(100, 100.0), 0.95), 0.95) == pytest.approx(small + 5000.0, abs=1e-6)


def test_the_time_is_used_up(monkeypatch):
    """A clock that goes on by a millisecond with each round, and so by the length of a long task while a short one waits behind it."""
    rounds = Rounds(Tree.of(tessella.stability(SMALL, cube(SMALL))), 0, lambda _: None, lambda: passed)
    passed, work = 0.0, rounds_module.work

    def slowly(crew, key, tree, task):
        nonlocal passed
        found = work(crew, key, tree, task)
        passed += 0.0013 * task.size
        return found

    monkeypatch.setattr(rounds_module, "work", slowly)
    rounds.go(None, 1.0, None, 1)
    assert 0.95 < passed <= 1.0
