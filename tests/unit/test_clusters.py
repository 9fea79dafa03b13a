"""A real Dask cluster on this machine: clients and addresses, workers that are killed or join late, and what is said where nothing works."""

import itertools
import os
import signal
import socket
import sys
import time
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import tessella
from tessella import Box, MissingPackage, Network, OptionError, SolverError
from tessella.executors import Cluster, hired, is_address
from tessella.parallel import Pending, worker_count

distributed = pytest.importorskip("distributed")


def network(*sizes, seed=8):
    rng = np.random.default_rng(seed)
    layers = [(rng.standard_normal((n, m)), rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)]
    return Network.from_arrays(layers, relu_output=True), Box.cube(-1, 1, sizes[0])


SMALL = network(4, 8, 8)
VERBS = {
    "count": partial(tessella.count, *SMALL),
    "estimate": partial(tessella.estimate, *SMALL, probes=40),
    "sample": partial(tessella.sample_regions, *SMALL, 5),
    "mipbound": partial(tessella.mipbound, *SMALL, repetitions=10),
    "stability": partial(tessella.stability, *SMALL),
    "upper_bounds": partial(tessella.upper_bounds, *SMALL),
    "analyze": partial(tessella.analyze, *SMALL, seconds=20.0),
}


def answer(found):
    """What does not depend on who worked, nor on time."""
    if isinstance(found, list):
        return [(one.weight, one.region.pattern.tolist()) for one in found]
    known = {
        name: getattr(found, name)
        for name in ("exact", "lower", "draws", "best")
        if hasattr(found, name) and not callable(getattr(found, name))
    }
    return known or [ends.tolist() for ends in (*found.bounds.lower, *found.bounds.upper)]


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as found,
    ):
        yield found


@pytest.mark.parametrize("verb", VERBS)
def test_the_answer_is_the_same_by_a_client_its_executor_and_its_address(client, verb):
    alone = answer(VERBS[verb]())
    for executor in (client, client.get_executor(), client.scheduler.address):
        assert answer(VERBS[verb](executor=executor)) == alone


def test_a_call_that_failed_leaves_nothing_behind(client):
    """Dask takes equal calls for the same, even if the first was taken back."""

    def fail(_):
        raise ZeroDivisionError

    big = network(9, 26, 26)
    for executor in (client, client.get_executor()):
        with pytest.raises(ZeroDivisionError):
            tessella.count(*big, executor=executor, progress=fail)
        assert tessella.count(*SMALL, executor=executor).exact == tessella.count(*SMALL).exact
        assert tessella.count(*big, executor=executor, seconds=1.0).lower > 1


def test_what_workers_found_by_the_end_of_the_time_is_not_lost(client):
    found = tessella.count(*network(9, 26, 26), executor=client, seconds=1.5)
    assert found.status == "time limit"
    assert found.lower > 1


def test_the_size_of_a_cluster_and_what_it_has_begun(client):
    with hired(client) as cluster:
        assert worker_count(None, cluster) == 2
        assert worker_count(3, cluster) == 3
        begun, waiting = cluster.submit(time.sleep, 1.0), None
        end = time.monotonic() + 10.0
        while not cluster.holds(begun._there.key) and time.monotonic() < end:
            time.sleep(0.05)
        assert not begun.cancel()
        waiting = [cluster.submit(time.sleep, 0.1) for _ in range(8)]
        assert begun.result() is None
        assert [one.result() for one in waiting] == [None] * 8
        assert not waiting[0].cancel()


def test_what_no_worker_has_is_taken_back():
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as nobody,
        distributed.Client(nobody, set_as_default=False) as client,
    ):
        begun = time.perf_counter()
        found = tessella.count(*SMALL, executor=client, seconds=0.5)
        assert (found.status, found.lower) == ("time limit", 1)
        assert time.perf_counter() - begun < 10.0
        with hired(client) as cluster:
            pending = Pending[str](cluster)
            pending.submit("one", int)
            pending.cancel()
            assert not pending.labels


def test_what_a_task_raises_is_raised(client):
    with hired(client) as cluster, pytest.raises(ValueError, match="invalid literal"):
        cluster.submit(int, "one").result()


@pytest.mark.slow
def test_a_task_that_ends_all_its_workers_is_given_up(client):
    with hired(client.get_executor(retries=0)) as cluster:
        pending = Pending[str](cluster)
        pending.submit("fatal", os._exit, 3)
        with pytest.raises(SolverError, match=r"a worker of the executor was lost \(workers ended again and again at the same"):
            pending.wait(60.0)


@pytest.mark.slow
def test_a_killed_worker_and_a_late_one_change_nothing():
    subject = network(6, 18, 16, 12)
    exact = tessella.count(*subject).exact
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        first = client.run(os.getpid)
        killed = []

        def disturb(now):
            if now.lower > 1 and not killed:
                killed.append(next(iter(first.values())))
                os.kill(killed[0], signal.SIGKILL)
                cluster.scale(3)

        found = tessella.count(*subject, executor=client.scheduler.address, progress=disturb)
        assert killed
        assert (found.exact, found.status) == (exact, "finished")
        client.wait_for_workers(3, timeout=60)
        at_work = client.run(_idle_walkers)
        assert sum(bool(count) for place, count in at_work.items() if place not in first) >= 1  # one that joined late


def _idle_walkers():
    from tessella.counting import schedule

    return sum(map(len, schedule._afar._walkers._idle.values()))


@pytest.mark.slow
def test_a_scheduler_that_ends_leaves_what_was_counted(caplog):
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False, timeout=2) as client,
    ):

        def end(now):
            if now.lower > 1 and client.status == "running":
                client.restart(timeout=60, wait_for_workers=False)

        found = tessella.count(*network(9, 26, 26), executor=client, progress=end, seconds=60)
    assert found.status == "worker lost"
    assert found.lower > 1
    assert "with a checkpoint the same call could go on later" in caplog.text


def test_an_address_where_nobody_listens_is_named(monkeypatch):
    monkeypatch.setattr("tessella.executors._CONNECT", 0.5)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(
        SolverError, match=rf"^no Dask scheduler answers at {address} \(.*start one there with: dask scheduler$"
    ) as error:
        tessella.count(*SMALL, executor=address)
    assert "\n" not in str(error.value)


def test_an_address_needs_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingPackage, match=r"pip install 'dask\[distributed\]'$"):
        tessella.count(*SMALL, executor="tcp://127.0.0.1:8786")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("text", ["scheduler:8786", "tcp://", "", "http://scheduler:8786"])
def test_what_is_no_address_is_named(verb, text):
    assert not is_address(text)
    with pytest.raises(OptionError, match=r"^executor is a str; .*its scheduler's address such as tcp://host:8786$"):
        VERBS[verb](executor=text)


def test_a_client_that_was_closed_is_named(client):
    with distributed.Client(client.scheduler.address, set_as_default=False) as closed:
        pass
    for executor in (closed, closed.get_executor()):
        with pytest.raises(OptionError, match="executor is a Dask client that is closed; give one that is open"):
            tessella.count(*SMALL, executor=executor)
    with pytest.raises(SolverError, match="takes no tasks"):
        tessella.count(*SMALL, executor=Cluster(closed))


@pytest.mark.parametrize(
    ("blocked", "version", "said"),
    [
        ("scheduler", None, "^the scheduler of the Dask cluster has no Tessella; install Tessella "),
        ("worker", None, "^the worker tcp://.* of the Dask cluster has no Tessella; install Tessella "),
        ("worker", "0.0.1", "^the worker tcp://.* of the Dask cluster has Tessella 0.0.1; install Tessella .* there, as here$"),
    ],
)
def test_another_version_elsewhere_is_told(client, monkeypatch, blocked, version, said):
    error = ModuleNotFoundError("No module named 'tessella'")

    def on_scheduler(_):
        if blocked == "scheduler":
            raise error
        return tessella.__version__

    monkeypatch.setattr(client, "run_on_scheduler", on_scheduler)
    monkeypatch.setattr(
        client, "run", lambda *_, **__: {"tcp://one:1": tessella.__version__, "tcp://two:2": version or Exception(repr(error))}
    )
    with pytest.raises(SolverError, match=said):
        tessella.count(*SMALL, executor=client)


def test_an_executor_that_is_lost_in_the_middle_leaves_what_the_first_steps_say(caplog):
    """Its first tasks bring something, then it takes no more."""

    class Tiring(ThreadPoolExecutor):
        left = 12

        def submit(self, *given, **named):
            self.left -= 1
            if self.left < 0:
                msg = "tired"
                raise BrokenExecutor(msg)
            return super().submit(*given, **named)

    with Tiring(1) as tiring:
        found = tessella.estimate(*network(9, 26, 26), seconds=20.0, counting=False, executor=tiring)
    assert (found.status, found.probes >= 1) == ("worker lost", True)
    assert "tired" in caplog.text
