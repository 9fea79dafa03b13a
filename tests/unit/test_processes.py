"""Processes of this machine: what is lost is done again, by a new process; what cannot be done is told."""

import os
import pickle
import signal
import threading
import time
from concurrent.futures import BrokenExecutor

import pytest

import tessella
from tessella.processes import Processes


@pytest.fixture(scope="module")
def pair():
    with Processes(2) as processes:
        yield processes


def unlike_itself():
    raise Unsendable


class Unsendable(Exception):
    def __init__(self):
        super().__init__(threading.Lock())

    def __str__(self):
        return "it holds a lock"


def end_first_time(path):
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def test_results_and_errors_come_back(pair):
    assert [one.result() for one in [pair.submit(pow, 2, n) for n in range(50)]] == [2**n for n in range(50)]
    assert pair.submit(int, "11", base=2).result() == 3
    with pytest.raises(ValueError, match="invalid literal"):
        pair.submit(int, "one").result()
    with pytest.raises(RuntimeError, match="Unsendable: it holds a lock"):
        pair.submit(unlike_itself).result()
    with pytest.raises(TypeError, match="pickle"):
        pair.submit(threading.Lock).result()
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        pair.submit(lambda: 1)


def test_what_a_task_prints_does_not_come_between(pair):
    assert pair.submit(print, "a line\n" * 1000).result() is None
    assert pair.submit(os.write, 1, b"another\n").result() == 8


def test_a_process_that_is_killed_costs_its_own_task_which_is_done_again(pair, tmp_path):
    again = pair.submit(end_first_time, tmp_path / "mark")
    others = [pair.submit(os.getpid) for _ in range(20)]
    assert again.result() > 0
    assert len({one.result() for one in others} | {again.result()}) <= 3


def test_an_idle_process_that_is_killed_is_replaced(pair):
    gone = pair.submit(os.getpid).result()
    os.kill(gone, signal.SIGKILL)
    time.sleep(0.1)
    assert gone not in {pair.submit(os.getpid).result() for _ in range(8)}


def test_a_task_that_ends_every_process_is_given_up(pair):
    with pytest.raises(BrokenExecutor, match=r"^3 processes ended at the same piece of work, the last with 'exit code 7'$"):
        pair.submit(os._exit, 7).result()
    assert pair.submit(abs, -1).result() == 1


def test_the_end_gives_up_what_is_under_way():
    begun = time.perf_counter()
    with Processes(2) as processes:
        tasks = [processes.submit(time.sleep, 60.0) for _ in range(4)]
        known = [processes.submit(os.getpid)]
        time.sleep(0.3)
        assert not known[0].done()
    assert time.perf_counter() - begun < 10.0
    for one in tasks[:2]:
        with pytest.raises(BrokenExecutor, match="shut down"):
            one.result()
    assert all(one.cancelled() for one in (*tasks[2:], *known))
    with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
        processes.submit(abs, -1)


def test_a_count_goes_on_when_all_its_processes_are_killed():
    import numpy as np

    rng = np.random.default_rng(8)
    layers = [(rng.standard_normal((n, m)), rng.standard_normal(n)) for m, n in ((5, 16), (16, 14), (14, 10))]
    network, box = tessella.Network.from_arrays(layers, relu_output=True), tessella.Box.cube(-1, 1, 5)
    killed = []
    with Processes(2) as processes:

        def kill(now):
            if now.lower > 1 and not killed:
                killed.extend(one.process.pid for one in processes._all)
                for one in killed:
                    os.kill(one, signal.SIGKILL)

        found = tessella.count(network, box, executor=processes, progress=kill)
    assert killed
    assert (found.exact, found.status) == (tessella.count(network, box).exact, "finished")
