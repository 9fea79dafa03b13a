"""Counting: who works, for how long, and what is claimed meanwhile; what walkers find is tested with them."""

import itertools
import json
import os
import signal
import threading
import time
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest

import tessella
from helpers.brute_force import patterns_on_a_line, region_patterns
from helpers.line_walker import LineWalker, line_network
from helpers.odd_networks import random_case
from tessella import Box, Layer, Network, OptionError, SolverError
from tessella.counting import schedule
from tessella.counting.count import Count, CountProgress, count
from tessella.errors import WorkerLost
from tessella.partition.local import LocalBound
from tessella.partition.tree import Found, Tree
from tessella.result import Status


def truth(network, box):
    layers = [(layer.dense(), layer.bias, layer.rectified) for layer in network.layers]
    return len(patterns_on_a_line(layers, box.lower, box.upper))


@pytest.fixture
def on_a_line(monkeypatch):
    """Count with the slow exact walker of one input."""

    def use(**options):
        monkeypatch.setattr(schedule, "walker_for", partial(LineWalker, **options))

    use()
    return use


@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("thin_every", [0, 2, 9])
def test_the_count_is_right_however_many_work(on_a_line, workers, thin_every):
    on_a_line(thin_every=thin_every, steps=3)
    for seed in range(3):
        network, box = line_network(seed)
        found = count(network, box, workers=workers)
        assert (found.exact, found.status, found.share) == (truth(network, box), "finished", 1.0)
        assert (found.borderline > 0) == (thin_every > 0)


def test_it_says_what_it_counted():
    network, box = line_network(0)
    found = Count(network, box, 9214, 9214, seconds=0.08)
    assert repr(found) == "Count(exactly 9,214 regions = 2^13.17, of 1-6-5 on [-1, 1], 0.08 s)"
    assert [bound.side for bound in found.bounds] == ["exact"]
    early = Count(network, box, 1234, 5678, seconds=60.0, status=Status.TIME_LIMIT, share=0.5)
    assert repr(early) == "Count(between 1,234 and 5,678 regions, of 1-6-5 on [-1, 1], stopped after 60 s)"
    assert (early.exact, early.maps) == (None, pytest.approx(10.269, abs=1e-3))
    assert [(bound.side, bound.value) for bound in early.bounds] == [("lower", 1234), ("upper", 5678)]
    assert repr(Count(network, box, 1, 1)).startswith("Count(exactly 1 region = 2^0.00,")
    assert repr(Count(network, box, 1, 10**20)).startswith("Count(between 1 and 2^66.44 regions,")
    assert repr(Count(network, box, 10**20, 10**20)).startswith("Count(exactly 2^66.44 regions,")


def test_json_has_the_claims_and_their_past(on_a_line):
    network, box = line_network(1)
    record = json.loads(count(network, box).to_json())
    assert record["exact"] == record["lower"] == record["upper"] == truth(network, box)
    assert (record["status"], record["method"], record["share"]) == ("finished", "walk", 1.0)
    assert record["network"]["fingerprint"] == network.fingerprint
    assert record["bounds"][0]["side"] == "exact"
    assert json.loads(Count(network, box, 1, 10**5000).to_json())["exact"] is None


def test_it_is_a_name_of_the_package(on_a_line):
    assert tessella.count is count
    assert tessella.Count is Count
    network, box = line_network(1)
    assert tessella.count(network, box).exact == truth(network, box)


def test_what_has_nothing_to_walk_is_one_region():
    stable = Network.from_arrays([([[1.0, 1.0]], [5.0]), ([[1.0]], None)])
    assert count(stable, Box(-1, 1, dim=2)).exact == 1
    fixed = Network.from_arrays([([[1.0, -1.0]], [0.0])], relu_output=True)
    assert count(fixed, Box([0.5, 0.5], [0.5, 0.5])).exact == 1
    assert count(Network.from_arrays([([[1.0]], None)]), Box(-1, 1, dim=1)).exact == 1


def test_a_stability_that_is_given_is_used(on_a_line):
    network, box = line_network(3)
    for method in ("interval", "milp"):
        found = tessella.stability(network, box, method=method)
        assert count(network, box, stability=found).exact == truth(network, box)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_bracket_only_narrows_and_holds_the_count(on_a_line, monkeypatch, workers):
    monkeypatch.setattr(schedule, "_TICK", 0.0)
    on_a_line(steps=2, thin_every=5)
    network, box = line_network(4, (7, 6))
    seen = []
    found = count(network, box, workers=workers, progress=seen.append)
    exact = truth(network, box)
    assert all(isinstance(step, CountProgress) for step in seen)
    assert all(1 <= step.lower <= exact <= step.upper for step in seen)
    for before, after in itertools.pairwise(seen):
        assert before.lower <= after.lower
        assert before.upper >= after.upper
        assert before.share <= after.share
        assert before.seconds <= after.seconds
    assert len(seen) > 10
    assert (seen[-1].lower, seen[-1].upper, seen[-1].share, seen[-1].seconds_left) == (exact, exact, 1.0, 0.0)
    assert found.exact == exact
    assert seen[0].upper <= tessella.empirical_bound(network, box, method="linear")


def test_progress_is_told_about_five_times_a_second(on_a_line):
    on_a_line(steps=1, rest=0.01)
    network, box = line_network(4, (7, 6))
    seen = []
    found = count(network, box, seconds=1.0, progress=seen.append, workers=2)
    assert 2 <= len(seen) <= 8
    assert found.seconds < 10.0  # a guard against hangs, not a measurement


def test_seconds_left_are_those_of_the_regions_that_are_expected():
    now = CountProgress(lower=24, upper=10**9, regions_per_second=100.0, share=0.99, seconds=10.0)
    assert now.seconds_left is None  # a share of the tree says nothing about the rest
    assert replace(now, expected=10.0).seconds_left == 10.0
    assert replace(now, expected=4.0).seconds_left is None
    assert replace(now, expected=-np.inf).seconds_left is None
    assert replace(now, expected=10.0, regions_per_second=0.0).seconds_left is None
    assert replace(now, expected=5000.0).seconds_left == np.inf
    assert replace(now, upper=24).seconds_left == 0.0


def test_a_time_limit_gives_a_bracket(on_a_line):
    on_a_line(rest=0.005, steps=2)
    network, box = line_network(5, (8, 8))
    found = count(network, box, seconds=0.3, workers=2)
    assert found.status is Status.TIME_LIMIT
    assert found.lower < truth(network, box) < found.upper
    assert 0.0 < found.share < 1.0
    assert found.exact is None
    assert "stopped after 0." in repr(found)


def test_a_time_limit_that_is_over_at_once_still_gives_a_bracket(on_a_line):
    network, box = line_network(5)
    found = count(network, box, seconds=1e-9)
    assert (found.lower, found.status, found.share) == (1, Status.TIME_LIMIT, 0.0)
    assert found.upper == tessella.empirical_bound(network, box, method="linear")


@pytest.mark.parametrize("moment", [1, 2, 5, 20])
def test_ctrl_c_at_a_report_gives_the_bracket_so_far(on_a_line, monkeypatch, moment):
    monkeypatch.setattr(schedule, "_TICK", 0.0)
    on_a_line(steps=1)
    network, box = line_network(6, (7, 6))
    calls = []

    def pressed(now):
        calls.append(now)
        if len(calls) == moment:
            raise KeyboardInterrupt

    found = count(network, box, workers=2, progress=pressed)
    assert found.status is Status.INTERRUPTED
    assert calls[-1].lower <= found.lower < truth(network, box) < found.upper <= calls[-1].upper


def test_ctrl_c_is_an_answer_and_work_under_way_is_kept(monkeypatch):
    class Pressing(LineWalker):
        pressed = False

        def advance(self, nodes, seconds, stop):
            found = super().advance(nodes, seconds, stop)
            if len(found.open) > 2 and not Pressing.pressed:
                Pressing.pressed = True
                time.sleep(0.1)  # who waits for the workers knows of all of them now
                os.kill(os.getpid(), signal.SIGINT)
                while not stop.asked:
                    time.sleep(0.001)
            return found

    monkeypatch.setattr(schedule, "walker_for", partial(Pressing, steps=30))
    network, box = line_network(5, (8, 8))
    before = threading.active_count()
    found = count(network, box, workers=2)
    assert found.status is Status.INTERRUPTED
    assert 1 < found.lower < truth(network, box) < found.upper
    assert threading.active_count() == before


def test_what_a_walker_raises_is_raised_and_the_others_end(monkeypatch):
    class Failing(LineWalker):
        calls = 0

        def advance(self, nodes, seconds, stop):
            Failing.calls += 1
            if Failing.calls == 4:
                raise ZeroDivisionError
            return super().advance(nodes, seconds, stop)

    monkeypatch.setattr(schedule, "walker_for", partial(Failing, steps=1))
    network, box = line_network(6)
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        count(network, box, workers=2)
    assert threading.active_count() == before


def test_a_count_that_contradicts_its_bounds_is_not_returned(monkeypatch):
    class Lying(LineWalker):
        def advance(self, *_):
            return Found(0)

    monkeypatch.setattr(schedule, "walker_for", Lying)
    with pytest.raises(SolverError, match="please report"):
        count(*line_network(6))


def five_inputs():
    """The smallest network that is walked by linear programs, and one of two inputs: each with its count."""
    rng = np.random.default_rng(7)
    cases = []
    for inputs, sizes in ((2, (9, 7)), (5, (6, 5))):
        layers = [(rng.standard_normal((n, m)), rng.standard_normal(n)) for m, n in itertools.pairwise((inputs, *sizes))]
        network, box = Network.from_arrays(layers, relu_output=True), Box.cube(-1, 1, inputs)
        plain = [(layer.dense(), layer.bias, layer.rectified) for layer in network.layers]
        cases.append((network, box, len(region_patterns(plain, box.lower, box.upper))))
    return cases


def test_the_walkers_count_what_brute_force_does():
    for network, box, exact in five_inputs():
        for workers in (1, 4):
            assert count(network, box, workers=workers).exact == exact


def test_the_count_does_not_depend_on_the_executor(monkeypatch, processes):
    monkeypatch.setattr(schedule, "_SHORT_AFAR", 0.001)
    with ThreadPoolExecutor(3) as threads:
        for network, box, exact in five_inputs():
            assert count(network, box, executor=threads).exact == exact
            assert count(network, box, executor=processes, workers=3).exact == exact


def test_a_pool_that_loses_its_workers_leaves_what_was_counted(tmp_path, caplog):
    rng = np.random.default_rng(8)
    network = Network.from_arrays([(rng.standard_normal((n, m)), rng.standard_normal(n)) for m, n in ((9, 14), (14, 14))] * 1)
    network, box = network.with_relu_output(), Box.cube(-1, 1, 9)
    path = tmp_path / "run.db"

    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:

        def kill(now):
            if now.lower > 1:
                for process in list(processes._processes.values()):
                    process.kill()

        lost = count(network, box, executor=processes, progress=kill, checkpoint=path)
        assert lost.status == "worker lost"
        assert 1 < lost.lower < lost.upper
        assert "worker of the executor was lost (A process in the process pool" in caplog.text
        assert f"the same call goes on from {path}" in caplog.text
        with pytest.raises(WorkerLost, match=rf"start a new executor; the same call goes on from {path}$"):
            count(network, box, executor=processes, checkpoint=path)
    found = count(network, box, checkpoint=path, seconds=0.2)
    assert found.lower >= lost.lower


class Odd(ThreadPoolExecutor):
    """An executor that is broken from the start, or calls each task when it likes."""

    def __init__(self, why):
        super().__init__(1)
        self.why = why

    def submit(self, *_, **__):
        if isinstance(self.why, RuntimeError):
            raise self.why
        future = Future()
        future.cancel()
        future.set_running_or_notify_cancel()
        return future


@pytest.mark.parametrize("why", [BrokenExecutor("gone"), RuntimeError("cannot schedule new futures after shutdown"), None])
def test_an_executor_that_takes_no_work_is_a_clear_error(why):
    with Odd(why) as executor, pytest.raises(SolverError, match="start a new executor"):
        count(*line_network(6), executor=executor)


def test_equal_tasks_are_never_sent_twice(monkeypatch, on_a_line):
    """Some clusters answer a call that they have seen before from memory."""
    on_a_line(steps=1)
    calls = []

    class Remembering(ThreadPoolExecutor):
        def submit(self, work, /, *arguments):
            calls.append(arguments)
            return super().submit(work, *arguments)

    network, box = line_network(2)
    with Remembering(2) as executor:
        assert count(network, box, executor=executor).exact == truth(network, box)
    assert len({(number, key, nodes, thin) for number, key, _, nodes, thin, _ in calls}) == len(calls)
    assert len({number for number, *_ in calls}) == len(calls)


def test_fewer_work_where_memory_is_short(monkeypatch):
    at_once, most = [], []

    class Heavy(LineWalker):
        def advance(self, nodes, seconds, stop):
            at_once.append(1)
            most.append(len(at_once))
            time.sleep(0.002)
            found = super().advance(nodes, seconds, stop)
            at_once.pop()
            return found

    monkeypatch.setattr(schedule, "walker_for", partial(Heavy, size=1000, steps=1))
    network, box = line_network(6)
    assert count(network, box, workers=8, memory=2999).exact == truth(network, box)
    assert max(most) == 2
    with pytest.raises(OptionError, match="one worker needs 1,000"):
        count(network, box, memory=999)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seconds": 0}, "positive"),
        ({"seconds": -1.0}, "positive"),
        ({"seconds": float("nan")}, "positive"),
        ({"seconds": "60"}, "positive"),
        ({"seconds": True}, "positive"),
        ({"workers": 0}, "workers is 0"),
        ({"workers": -2}, "workers is -2"),
        ({"workers": 1.5}, "workers is 1.5"),
        ({"workers": True}, "workers is True"),
        ({"memory": 0}, "memory is 0"),
        ({"memory": "1G"}, "memory is '1G'"),
        ({"executor": 4}, "executor is a int"),
        ({"progress": 4}, "progress is a int"),
        ({"method": "magic"}, "walk, milp"),
        ({"method": "milp", "workers": 2}, "leave that out"),
        ({"method": "milp", "checkpoint": "run.db"}, "leave that out"),
        ({"stability": 4}, "stability is a int"),
    ],
)
def test_bad_options_get_a_clear_error(options, words):
    with pytest.raises(OptionError, match=words):
        count(*line_network(0), **options)


def test_what_does_not_belong_together_is_refused():
    network, box = line_network(0)
    other = tessella.stability(*line_network(1), method="linear")
    with pytest.raises(OptionError, match="the stability given is that of"):
        count(network, box, stability=other)
    with pytest.raises(tessella.DomainError, match="2 inputs"):
        count(network, Box(-1, 1, dim=2))
    with pytest.raises(tessella.NetworkError, match="at least one layer; got none"):
        count([], box)
    with pytest.raises(tessella.UnsupportedModel, match="type int is no network"):
        count(7, box)


def test_milp_is_another_way_to_the_same_number():
    network, box = line_network(1)
    seen = []
    found = count(network, box, method="milp", progress=seen.append)
    assert (found.exact, found.status, found.method) == (truth(network, box), "finished", "milp")
    assert [(bound.side, bound.confidence) for bound in found.bounds] == [("lower", 1.0), ("estimate", 0.0)]
    assert repr(found).startswith("Count(at least, and as far as a solver sees exactly, ")
    assert [step.lower for step in seen] == list(range(1, found.exact + 1))
    assert count(Network.from_arrays([([[1.0]], [5.0])], relu_output=True), Box(-1, 1, dim=1), method="milp").exact == 1


def test_milp_can_be_stopped():
    rng = np.random.default_rng(7)
    layers = [(rng.standard_normal((n, m)), rng.standard_normal(n)) for m, n in ((6, 12), (12, 12))]
    network, box = Network.from_arrays(layers, relu_output=True), Box.cube(-1, 1, 6)
    found = count(network, box, method="milp", seconds=0.5)
    assert (found.status, found.proved) == (Status.TIME_LIMIT, True)
    assert found.lower < found.upper == tessella.empirical_bound(network, box, method="linear")

    def pressed(now):
        if now.lower == 3:
            raise KeyboardInterrupt

    found = count(network, box, method="milp", progress=pressed)
    assert (found.status, found.lower, found.exact) == (Status.INTERRUPTED, 3, None)


def prefixes_of(patterns):
    """How many patterns begin with each prefix that any of them begins with."""
    counts = {}
    for pattern in patterns:
        for length in range(len(pattern) + 1):
            prefix = bytes(pattern[:length])
            counts[prefix] = counts.get(prefix, 0) + 1
    return counts


@pytest.mark.parametrize("seed", range(60))
def test_no_prefix_has_more_regions_than_its_bound(seed):
    case = random_case(seed, largest=200)
    network = Network(tuple(Layer(*layer) for layer in case.layers))
    box = Box(case.lower, case.upper)
    bound = LocalBound(Tree(network, box))
    patterns = region_patterns(case.layers, case.lower, case.upper)
    for prefix, regions in prefixes_of(patterns).items():
        assert regions <= bound(prefix)
    assert all(bound(bytes(pattern)) == 1 for pattern in patterns)
    assert bound(b"") == tessella.upper_bounds(network, box, method="interval").configuration


def test_the_bound_is_reached_in_general_position():
    """One layer: every prefix of an arrangement of lines whose undecided ones all meet in its cell."""
    angles = np.linspace(0.1, 3.0, 5)
    weight = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    bias = 0.01 * np.random.default_rng(0).standard_normal(5)
    network, box = Network.from_arrays([(weight, bias)], relu_output=True), Box(-9, 9, dim=2)
    bound = LocalBound(Tree(network, box))
    patterns = region_patterns([(weight, bias, np.ones(5, dtype=bool))], box.lower, box.upper)
    assert len(patterns) == bound(b"") == 16


def test_the_bound_is_cheap_and_of_any_size():
    rng = np.random.default_rng(0)
    sizes = (200, 150, 150, 150)
    network = Network.from_arrays([(rng.standard_normal((n, m)), None) for m, n in itertools.pairwise(sizes)], relu_output=True)
    bound = LocalBound(Tree(network, Box.cube(-1, 1, 200)))
    prefix = bytes(rng.integers(0, 2, 170).astype(np.uint8))
    assert bound(prefix) > 2**64
    assert type(bound(prefix)) is int
    assert bound(prefix + b"\1") + bound(prefix + b"\0") >= bound(prefix) // 2
