"""`tessella.analyze`: the bracket, its plan, its options."""

import itertools
import json
import re
import signal
import tempfile
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import tessella
from helpers.full_disk import small_files
from helpers.here import Here, SlowHere
from tessella.analysis import plan, turns
from tessella.analysis.estimating_elsewhere import EstimatingElsewhere
from tessella.analysis.estimating_process import EstimatingProcess
from tessella.analysis.result import Analysis, Step
from tessella.counting import schedule
from tessella.counting.count import Count, CountProgress
from tessella.estimating.estimate import Estimate, EstimateProgress
from tessella.kernel.meter import compile_seconds
from tessella.parallel import Stop
from tessella.partition.tree import Node, Tree
from tessella.processes import Processes
from tessella.result import Status


def network(*sizes, seed=0):
    rng = np.random.default_rng(seed)
    return tessella.Network.from_arrays(
        [(rng.standard_normal((n, m)), rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)]
    )


def cube(dim):
    return tessella.Box.cube(-1.0, 1.0, dim)


@pytest.fixture(scope="module")
def large():
    """A network with far too many regions to count in two seconds."""
    return network(20, 30, 30, 2)


@pytest.fixture(scope="module")
def analysed(large):
    told = []
    with patch.object(plan, "EstimatingProcess", SlowHere):
        found = tessella.analyze(large, cube(20), seconds=2.0, rng=1, progress=told.append)
    return found, told


def test_small_networks_are_counted():
    net = network(3, 6, 5, 2)
    found = tessella.analyze(net, cube(3), seconds=20)
    assert found.exact == tessella.count(net, cube(3)).exact
    assert found.proved_lower == found.probable_lower == found.mean == found.upper == found.exact
    assert found.relative_error == found.standard_error == 0.0
    assert found.probable_confidence == 1.0
    assert [step.name for step in found.steps if step.name != "loading"] == ["stability", "upper bounds", "count", "stability"]
    assert "nothing had to be estimated" in found.choices
    assert found.status is Status.FINISHED
    assert found.stability.bounds.method == "milp"


def test_a_large_network_gets_a_bracket(analysed):
    found, _ = analysed
    assert found.exact is None
    assert 1 < found.proved_lower <= found.probable_lower <= found.mean <= found.upper
    assert found.estimate.probes > 0
    assert found.confidence == 0.95
    assert {"count", "meeting point", "estimate"} <= {step.name for step in found.steps}
    assert all(step.found and step.why for step in found.steps)
    assert re.search("counting (about|at least) ", found.choices.lower())


def test_what_is_told_gets_better_only(analysed):
    found, told = analysed
    assert len(told) > 5
    for before, after in itertools.pairwise(told):
        assert before.proved_lower <= after.proved_lower
        assert before.probable_lower <= after.probable_lower
        assert before.upper >= after.upper
    assert told[-1].status is Status.FINISHED
    assert told[-1].upper == found.upper


def test_it_is_json_with_a_past(analysed):
    found, _ = analysed
    record = json.loads(found.to_json())
    assert record["proved_lower"] == found.proved_lower
    assert record["upper"] == found.upper
    assert record["confidence"] == found.probable_confidence
    assert record["network"]["fingerprint"] == found.network.fingerprint
    assert record["maps"]["upper"] == pytest.approx(np.log2(float(found.upper)))
    assert [step["name"] for step in record["steps"]] == [step.name for step in found.steps]
    assert "domain" not in record["details"]["count"]
    assert record["stability"]["layers"][0]["relus"] == 30


def test_text_names_each_claim(analysed):
    found, _ = analysed
    text = repr(found)
    assert "(proved)" in text
    assert "(95 % sure)" in text
    assert re.search(r"\(estimated\)|too uncertain to estimate", text)
    assert [bound.side for bound in found.bounds] == ["lower", "lower", "estimate", "upper", "upper"]
    assert [bound.confidence for bound in found.bounds] == [1.0, 0.95, 0.0, 0.95, 1.0]
    page = found._repr_html_()
    assert page.count("<tr>") == 1 + 5  # names of columns first
    assert "with 95 % confidence" in page


def test_mipbound_is_run_when_asked_and_shares_what_may_go_wrong(monkeypatch):
    def stopped(network, domain, **_):
        return Count(network, domain, 1, 2**network.relus, seconds=0.01, status="time limit", share=0.0)

    monkeypatch.setattr(turns, "count", stopped)
    monkeypatch.setattr(plan, "EstimatingProcess", Here)
    net = network(4, 6, 5, 2)
    found = tessella.analyze(net, cube(4), seconds=30.0, mipbound=True)
    assert found.mipbound.status == "finished"
    assert found.mipbound.repetitions == 28
    assert found.probable_lower >= found.mipbound.lower > 1
    claims = [part.confidence for part in (found.estimate, found.mipbound)]
    assert sum(1.0 - claim for claim in claims) <= 0.05 + 1e-12
    assert found.proved_lower <= tessella.count(net, cube(4)).exact <= found.upper


def test_errors_add_up_to_the_confidence():
    session = plan.Session(Analysis(network(1, 1), cube(1), 1, 1, 2), 1.0, 0.05)
    claims = [session.confidence(), session.confidence(), session.confidence(last=True)]
    assert sum(1.0 - claim for claim in claims) == pytest.approx(0.05)
    assert min(claims) > 0.95


def test_a_probable_bound_never_leaves_the_proved_bracket():
    net, box = network(2, 3), cube(2)
    session = plan.Session(Analysis(net, box, 1, 1, 8), 1.0, 0.05)
    session.know(probable_lower=1000)
    assert session.standing.probable_lower == 8
    assert session.standing.exact is None
    session.know(proved_lower=8)
    assert session.standing.exact == 8


@pytest.mark.parametrize("sizes", [(3, 2), (1, 4, 1), (4, 1, 1)])
def test_odd_shapes(sizes):
    net = network(*sizes)
    assert tessella.analyze(net, cube(sizes[0])).exact == tessella.count(net, cube(sizes[0])).exact


def test_a_dead_network_has_one_region():
    net = tessella.Network.from_arrays([(np.zeros((4, 3)), -np.ones(4)), (np.ones((1, 4)), None)])
    found = tessella.analyze(net, cube(3))
    assert found.exact == 1
    assert "No unit changes its state" in found.choices
    assert "no ReLU" in tessella.analyze(tessella.Network.from_arrays([([[1.0]], None)]), cube(1)).choices


def test_counting_is_not_begun_where_it_is_hopeless(monkeypatch):
    monkeypatch.setattr(EstimatingProcess, "estimate", lambda *_, **__: None)
    found = tessella.analyze(network(8, 1100, 1), cube(8), seconds=1.0)
    assert found.count is None
    assert "too many to begin counting" in found.choices
    assert found.proved_lower == 2**8 < found.upper


def test_hyperplanes_that_meet_may_settle_it():
    net = network(40, 24, 1)
    found = tessella.analyze(net, tessella.Box.cube(-50.0, 50.0, 40), seconds=1.0)
    assert found.exact == 2**24


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seconds": 0}, "positive number"),
        ({"seconds": float("nan")}, "positive number"),
        ({"seconds": float("inf")}, "positive number"),
        ({"seconds": True}, "positive number"),
        ({"confidence": 1.0}, "between 0 and 1"),
        ({"workers": 0}, "at least 1"),
        ({"mipbound": "yes"}, "True, False"),
        ({"progress": 3}, "function"),
    ],
)
def test_options_are_checked(options, words):
    with pytest.raises(tessella.OptionError, match=words):
        tessella.analyze(network(2, 2), cube(2), **options)


def test_another_domain_is_refused():
    with pytest.raises(tessella.DomainError):
        tessella.analyze(network(2, 2), cube(3))


def test_a_contradiction_is_refused():
    with pytest.raises(tessella.OptionError, match="must rise"):
        Analysis(network(1, 1), cube(1), 3, 3, 2)


@pytest.mark.parametrize("when", ["stability", "upper bounds", "count", "meeting point", "estimate"])
def test_interrupts_return_what_is_known(large, when):
    """Ctrl-C as it comes: as a signal to the main thread, in the middle of a step."""

    def tell(now):
        if now.steps and now.steps[-1].name == when and not now.steps[-1].found:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    found = tessella.analyze(large, cube(20), seconds=1.0, progress=tell)
    assert found.status is Status.INTERRUPTED
    assert 1 <= found.proved_lower <= found.upper
    assert found.steps[-1].name == when
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_can_analyse():
    found = []
    thread = threading.Thread(target=lambda: found.append(tessella.analyze(network(2, 4, 1), cube(2))))
    thread.start()
    thread.join()
    assert found[0].exact == tessella.count(network(2, 4, 1), cube(2)).exact


def test_elsewhere_and_here_say_the_same(large):
    known = tessella.stability(large, cube(20), method="linear")
    with EstimatingProcess() as process:
        found = process.estimate(known, seconds=300.0, tell=lambda _: False, probes=6, rng=5, confidence=0.9)
    here = tessella.estimate(large, cube(20), stability=known, probes=6, rng=5, confidence=0.9)
    assert (found.maps, found.relative_error, found.lower) == (here.maps, here.relative_error, here.lower)


def test_a_count_goes_on_where_the_estimate_says_that_it_ends(monkeypatch):
    real, calls = turns.count, []

    def slow_at_first(network, domain, **options):
        if "checkpoint" not in options:  # it only loads code
            return real(network, domain, **options)
        calls.append(options["seconds"])
        if len(calls) == 1:  # as if the first part had been cut short
            options["progress"](CountProgress(5, 10**6, 10.0, 0.1, 0.1))
            return Count(network, domain, 5, 10**6, seconds=0.1, status="time limit", share=0.1)
        return real(network, domain, **options)

    monkeypatch.setattr(turns, "count", slow_at_first)
    monkeypatch.setattr(plan, "EstimatingProcess", SlowHere)
    net = network(2, 5, 4, 1)
    found = tessella.analyze(net, cube(2), seconds=10.0)
    assert len(calls) == 2
    assert found.exact == real(net, cube(2)).exact
    assert "end in time; it did." in found.choices


def test_a_process_that_dies_is_an_error():
    with EstimatingProcess() as process:
        process._process.kill()
        with pytest.raises(tessella.SolverError, match="ended early"):
            process.wait()


def test_errors_elsewhere_are_told(large):
    known = tessella.stability(large, cube(20), method="linear")
    with EstimatingProcess() as process, pytest.raises(tessella.SolverError, match="OptionError: confidence is 7"):
        process.estimate(known, seconds=20.0, tell=lambda _: False, confidence=7)


def test_an_executor_does_the_work(large):
    with Processes(2) as processes:
        small = network(3, 6, 5, 2)
        assert tessella.analyze(small, cube(3), seconds=20, executor=processes).exact == tessella.count(small, cube(3)).exact
        begun = time.perf_counter()
        found = tessella.analyze(large, cube(20), seconds=3.0, executor=processes, rng=1)
        assert time.perf_counter() - begun - found.compile_seconds < 20.0  # nothing waits for what the processes still do
    assert found.status is Status.FINISHED
    assert found.count.lower > 1
    assert found.estimate is None or found.proved_lower < found.probable_lower <= found.upper


class Idle(Executor):
    """Takes every task and does none."""

    def submit(self, work, /, *arguments, **named):
        del work, arguments, named
        return Future()


def test_nobody_waits_longer_than_the_time_for_an_executor_that_does_nothing(large):
    known = tessella.stability(large, cube(20), method="linear")
    with EstimatingElsewhere(Idle()) as elsewhere:
        elsewhere.wait()
        begun = time.perf_counter()
        assert elsewhere.estimate(known, seconds=0.2, tell=lambda _: False, confidence=0.9) is None
        assert time.perf_counter() - begun < 20.0


def test_descents_of_an_executor_say_the_same_and_can_be_given_up(large):
    known = tessella.stability(large, cube(20), method="linear")
    given = {"probes": 6, "rng": 5, "confidence": 0.9}
    here = tessella.estimate(large, cube(20), stability=known, **given)
    with ThreadPoolExecutor(2) as threads, EstimatingElsewhere(threads) as elsewhere:
        elsewhere.wait()
        found = elsewhere.estimate(known, seconds=300.0, tell=lambda _: False, **given)
        assert (found.probes, found.maps) == (
            6,
            pytest.approx(here.maps, rel=1e-12),
        )  # sums of another thread may round differently
        assert elsewhere.estimate(known, seconds=300.0, tell=lambda _: True, confidence=0.9) is None
        with pytest.raises(tessella.OptionError, match="confidence is 7"):
            elsewhere.estimate(known, seconds=20.0, tell=lambda _: False, confidence=7)


@pytest.mark.slow
def test_a_lost_executor_leaves_what_is_known(large, caplog):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:

        def kill(now):
            if now.proved_lower > 1:
                for process in list((pool._processes or {}).values()):
                    process.kill()

        found = tessella.analyze(large, cube(20), seconds=20.0, executor=pool, progress=kill)
    assert found.status is Status.LOST
    assert 1 < found.proved_lower < found.upper
    assert "a worker of the executor was lost" in caplog.text


def test_no_descent_in_time_is_said(large, monkeypatch):
    monkeypatch.setattr(EstimatingProcess, "estimate", lambda *_, **__: None)
    found = tessella.analyze(large, cube(20), seconds=0.5)
    assert found.estimate is None
    assert found.mean is None
    assert "No random descent ended in time" in found.choices
    assert "the estimate's own bound" not in found.choices  # there is none
    assert json.loads(found.to_json())["estimate"] is None


def test_an_estimate_that_is_given_up_says_how_sure_its_bounds_are(large, monkeypatch):
    standing = EstimateProgress(36.0, 0.1, 2**35, 0.95, 5, 0.1, upper=2**37, upper_confidence=0.95)
    monkeypatch.setattr(EstimatingProcess, "estimate", lambda *_, tell, **__: (tell(standing), None)[1])
    found = tessella.analyze(large, cube(20), seconds=4)  # the descents must be reached on a busy machine, too
    assert (found.probable_upper, found.estimate.upper_confidence) == (2**37, 0.95)
    assert not [bound for bound in found.estimate.bounds if bound.confidence == 1.0]


def test_a_lie_of_chance_stays_inside(large, monkeypatch):
    """A probable bound that is wrong (here: made up) must not contradict what is proved."""
    made_up = Estimate(large, cube(20), 500.0, 0.1, 2**499, 0.95, probes=3)
    monkeypatch.setattr(EstimatingProcess, "estimate", lambda *_, **__: made_up)
    found = tessella.analyze(large, cube(20), seconds=4)  # the descents must be reached on a busy machine, too
    assert found.proved_lower < found.probable_lower == found.mean == found.upper
    assert found.exact is None


def test_steps_are_plain_values():
    assert Step("count", "why").to_dict() == {"name": "count", "why": "why", "found": "", "seconds": 0.0}


@pytest.mark.parametrize(
    ("seen", "power", "least", "most"),
    [
        ([(0.0, 1), (0.2, 1), (0.4, 1)], 10.0, 0.0, 1.1),  # a busy machine: nothing was counted
        ([(0.0, 1), (0.1, 500), (0.3, 500)], 10.0, 0.0, 1.0),  # nor in the last half
        (
            [(0.0, 1), (1.0, 1_000), (2.0, 11_000)],
            14.0,
            0.5,
            0.55,
        ),  # it is slower at first; what is counted is not to be counted again
    ],
)
def test_a_trial_that_had_no_time_is_no_forecast_of_ages(seen, power, least, most):
    counting = turns.Counting(None, None, Path("count.db"))
    counting._seen = seen
    assert least < counting.foreseen(power) <= most


def test_an_estimate_below_what_was_counted_is_no_forecast():
    counting = turns.Counting(None, None, Path("count.db"))
    counting._seen = [(0.0, 1), (1.0, 2_000)]
    assert counting.foreseen(10.9) is None
    assert counting.foreseen(-np.inf) is None
    assert counting.foreseen(2000.0) == np.inf


@pytest.mark.parametrize("inequalities", [0, 3])
@pytest.mark.parametrize(
    "shape", [(3, 5), (6, 40), (20, 40), (20, 2), (127, 1), (128, 1), (127, 60), (784, 8), (784, 300), (150, 150), (200, 900)]
)
def test_what_is_loaded_before_the_clock_goes_on_is_what_counts(shape, inequalities):
    inputs, units = shape
    domain = tessella.Box.cube(-1, 1, inputs)
    if inequalities:
        domain = tessella.Polytope(np.ones((inequalities, inputs)), np.arange(1.0, 1.0 + inequalities), domain)
    weight = np.random.default_rng(0).standard_normal((units, inputs))
    network = tessella.Network.from_arrays([(weight, np.zeros(units))], relu_output=True)
    tree = Tree.of(tessella.stability(network, domain, method="interval"))
    schedule.prepare(tree)
    before, walker = compile_seconds(), schedule.walker_for(tree)
    walker.advance([Node()], 0.0, Stop())
    assert compile_seconds() == before


@pytest.mark.parametrize("folder", ["full", "none"])
def test_where_no_temporary_file_can_be_written_counts_begin_anew(tmp_path, monkeypatch, folder):
    """Compiled code and models are elsewhere; what is found does not depend on it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path if folder == "full" else tmp_path / "gone"))
    rng = np.random.default_rng(0)
    net = tessella.load([(rng.normal(size=(12, 3)), rng.normal(size=12)), (rng.normal(size=(12, 12)), rng.normal(size=12))])
    with small_files(300):
        found = tessella.analyze(net, (-1, 1), seconds=5.0)
    assert found.exact == tessella.count(net, (-1, 1)).exact
    assert ("TMPDIR" in found.choices) == (folder == "full")
    assert list(tmp_path.iterdir()) == []
