"""One way to an executor: whoever is asked, what is no executor and one that is lost are told in the same line."""

import os
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest

import tessella
from tessella import Box, Network, OptionError, SolverError
from tessella.parallel import Crew, Pending, run, worker_count
from tessella.tightening import tighten


def small():
    rng = np.random.default_rng(0)
    layers = [(rng.standard_normal((n, m)), rng.standard_normal(n)) for m, n in ((3, 6), (6, 6))]
    return Network.from_arrays(layers, relu_output=True), Box.cube(-1, 1, 3)


def knapsack(**options):
    pyscipopt = pytest.importorskip("pyscipopt")
    model = pyscipopt.Model("knapsack")
    model.hideOutput()
    items = [model.addVar(f"item_{number}", "B") for number in range(6)]
    model.addCons(sum((number + 1) * item for number, item in enumerate(items)) <= 9)
    return tessella.mipbound_model(model, **options)


VERBS = {
    "count": partial(tessella.count, *small()),
    "estimate": partial(tessella.estimate, *small(), probes=4),
    "sample": partial(tessella.sample_regions, *small()),
    "mipbound": partial(tessella.mipbound, *small()),
    "mipbound_model": knapsack,
    "stability": partial(tessella.stability, *small()),
    "tighten": partial(tighten, *small(), method="lp"),
    "empirical_bound": partial(tessella.empirical_bound, *small()),
    "upper_bounds": partial(tessella.upper_bounds, *small()),
    "analyze": partial(tessella.analyze, *small(), seconds=5.0),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("given", [3, "pool", ThreadPoolExecutor])
def test_what_is_no_executor_is_named(verb, given):
    found = "the class ThreadPoolExecutor" if isinstance(given, type) else f"a {type(given).__name__}"
    with pytest.raises(OptionError, match=f"^executor is {found}; .* takes a concurrent.futures.Executor, or None"):
        VERBS[verb](executor=given)


@pytest.mark.parametrize("verb", VERBS)
def test_an_executor_that_was_shut_down_is_named(verb):
    with ThreadPoolExecutor(1) as ended:
        pass
    with pytest.raises(SolverError, match=r"^a worker of the executor was lost \(cannot schedule .*start a new executor$"):
        VERBS[verb](executor=ended)


class Dying(ThreadPoolExecutor):
    """An executor whose workers are all lost at their first task."""

    def submit(self, *_, **__):
        return super().submit(_die)


def _die():
    msg = "A process in the process pool was terminated abruptly"
    raise BrokenProcessPool(msg)


@pytest.mark.parametrize("verb", VERBS)
def test_a_lost_worker_is_named(verb):
    with Dying(1) as dying, pytest.raises(SolverError, match=r"^a worker of the executor was lost \(A process .*start a new"):
        VERBS[verb](executor=dying)


def test_a_process_that_is_killed_is_named():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool, pytest.raises(SolverError, match="was lost"):
        list(run(os._exit, [(3,)] * 4, pool))


@pytest.mark.parametrize("workers", [None, 1, 3])
def test_results_come_with_the_numbers_of_their_tasks(workers):
    tasks = [(base, 2) for base in range(20)]
    if workers is None:
        assert list(run(pow, tasks, None)) == [(base, base**2) for base in range(20)]
        return
    with ThreadPoolExecutor(workers) as pool:
        assert sorted(run(pow, tasks, pool)) == [(base, base**2) for base in range(20)]


def test_what_a_task_raises_is_raised_and_what_has_not_begun_is_taken_back():
    gate, begun = threading.Event(), []

    def work(number):
        begun.append(number)
        if number == 0:
            raise ZeroDivisionError
        gate.wait(10.0)

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(ZeroDivisionError):
            list(run(work, [(number,) for number in range(50)], pool))
        gate.set()
    assert len(begun) < 50


def test_a_result_is_not_lost_where_another_task_raised():
    with ThreadPoolExecutor(1) as pool:
        pending = Pending[str](pool)
        pending.submit("good", pow, 2, 3)
        pending.submit("bad", pow, 0, -1)
        pending.executor.submit(int).result()  # both are done
        found, raised = [], 0
        while pending.labels:
            try:
                found += pending.wait()
            except ZeroDivisionError:
                raised += 1
    assert (found, raised) == ([("good", 8)], 1)


def test_how_many_work():
    with ThreadPoolExecutor(3) as pool:
        assert (worker_count(None, pool), worker_count(5, pool)) == (3, 5)
    assert worker_count(None) == os.cpu_count()


def test_a_crew_lends_each_member_to_one_at_a_time():
    crew, made, at_work, clashes = Crew[int](), [], set(), []

    def make():
        made.append(len(made))
        return made[-1]

    def work(_):
        with crew.lend("job", make) as member:
            clashes.append(member in at_work)
            at_work.add(member)
            threading.Event().wait(0.001)
            at_work.discard(member)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(200)))
    assert not any(clashes)
    assert 1 <= len(made) <= 4


def test_a_crew_keeps_the_members_of_its_last_jobs():
    crew, made = Crew[str](2), []

    def use(job):
        with crew.lend(job, lambda: made.append(job) or job) as member:
            return member

    for job in ("a", "b", "a", "c", "a", "b"):
        assert use(job) == job
    assert made == ["a", "b", "c", "b"]  # b was worked on longest ago when c came


def test_a_member_whose_work_raised_does_not_come_back():
    crew, made = Crew[list](), []

    def make():
        made.append([])
        return made[-1]

    with pytest.raises(ZeroDivisionError), crew.lend("job", make):
        raise ZeroDivisionError
    with crew.lend("job", make) as member:
        assert member is made[1]
