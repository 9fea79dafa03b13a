"""Measure the networks of a folder, task by task, and write each result down at once."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import tessella
from experiments.paper.index import Arrays, Folder, Key
from experiments.paper.results import Record, Results, closure
from experiments.paper.tasks import XOR, Settings, Subject, Work, perform, tidy
from tessella.files import unwritable

Item = tuple[Key, str]
_CONNECT = 10  # seconds
_GUESS = {"network": 0.0, "stability": 1.0, "upper": 0.0, **dict.fromkeys(XOR, 3.0)}  # seconds, as long as none is done
_SPEED = 1e5  # regions per second, as long as nothing is counted


@dataclass(slots=True)
class Measuring:
    """What is to be done, what is under way, and what is known.

    Parameters
    ----------
    nets
        The folder of networks.
    results
        What is known.
    tasks
        Which tasks, in order.
    settings
        What was chosen.
    index
        What the index says of each network asked for.
    arrays
        Weights and biases of each of these, at least.
    fingerprints
        Of each of these networks, as it is counted.
    asked
        The tasks that were asked for; of the others any result will do, whatever its settings.
    checkpoints
        Whether counts keep what is finished in the folder of results; other machines do not see that.
    """

    nets: Folder
    results: Results
    tasks: Sequence[str]
    settings: Settings
    index: dict[Key, dict[str, Any]]
    arrays: dict[Key, Arrays]
    fingerprints: dict[Key, str]
    asked: frozenset[str]
    checkpoints: bool = True
    under_way: dict[Item, float] = field(default_factory=dict[Item, float])
    failed: dict[Item, str] = field(default_factory=dict[Item, str])
    begun: float = field(default_factory=perf_counter)

    @classmethod
    def of(cls, nets: Path, out: Path, keys: Sequence[Key], tasks: Sequence[str], settings: Settings) -> "Measuring":
        """All of these networks; refuses files that are not what the index lists, and results of others, also of networks not asked for."""
        folder, needed = Folder(nets), closure(tasks)
        listed, results = folder.listed(), Results.read(out)
        arrays = {key: folder.arrays(key) for key in {*keys, *(folder.records().keys() & set(results.keys()))}}
        fingerprints = {key: Subject.of(layers).network.fingerprint for key, layers in arrays.items()}
        index = {key: listed[key] for key in keys}
        results.check(fingerprints, {str(record.get("data_sha256")) for record in index.values()})
        return cls(folder, results, needed, settings, index, arrays, fingerprints, frozenset(tasks))

    def left(self) -> list[Item]:
        """What is still to be done, first things first: counts last, small ones before large ones."""
        items = [
            (key, task)
            for key in self.index
            for task in self.tasks
            if (key, task) not in self.failed and not self._settled(key, task)
        ]
        return sorted(items, key=self._order)

    def _settled(self, key: Key, task: str) -> bool:
        if task not in self.asked and self.results.value(key, task) is not None:
            return True
        return self.results.settled(key, task, self.settings)

    def _order(self, item: Item) -> tuple[float, ...]:
        key, task = item
        place = float(self.tasks.index(task))
        return (1.0, self.expected(key), *key) if task == "count" else (0.0, key.seed, key.n1, place)

    def expected(self, key: Key) -> float:
        """How many regions a network has, as its estimate says."""
        known = self.results.value(key, "estimate")
        return float(known["mean"]) if known else float("inf")

    def next(self) -> Item | None:
        """What to begin now, if anything can be."""
        for item in self.left():
            if item not in self.under_way and self.results.ready(*item):
                return item
        return None

    def work(self, item: Item) -> Work:
        """A task with all that it needs."""
        key, task = item
        known = {name: value for name in ("stability", "estimate") if (value := self.results.value(key, name)) is not None}
        checkpoint = self._checkpoint(key) if task == "count" and self.checkpoints else None
        if checkpoint is not None:
            try:
                checkpoint.parent.mkdir(exist_ok=True)
            except OSError as error:
                raise unwritable(checkpoint, error) from error
        return Work(task, self.arrays[key], self.index[key], known, self.settings, checkpoint)

    def write(self, item: Item, record: Record) -> None:
        """Write a result down; only then a finished count's checkpoint may go."""
        key, task = item
        self.results.append(key, self.fingerprints[key], task, record)
        if task == "count" and record["status"] != "time limit":
            tidy(self._checkpoint(key))

    def _checkpoint(self, key: Key) -> Path:
        return self.results.path.parent / "checkpoints" / f"{self.fingerprints[key][:16]}.db"

    def time_left(self, workers: int) -> tuple[float, bool]:
        """Seconds until the end, going by what is done, and whether that is all: a count is of unknown length until its estimate is there."""
        tasks, speeds = self._past()
        total, now, whole = 0.0, perf_counter(), True
        for key, task in self.left():
            seconds = self._counting(key, speeds) if task == "count" else self._alike(key, task, tasks)
            whole = whole and seconds < float("inf")
            if seconds < float("inf"):
                total += max(seconds - (now - self.under_way.get((key, task), now)), 0.0)
        return total / workers, whole

    def _counting(self, key: Key, speeds: dict[int, float]) -> float:
        """Seconds that a count may take, with the speed of the nearest first layer."""
        speed = speeds[min(speeds, key=lambda n1: abs(n1 - key.n1))] if speeds else _SPEED
        expected = self.expected(key)
        return min(expected / speed, self.settings.exact_seconds) if expected < float("inf") else expected

    def _alike(self, key: Key, task: str, tasks: dict[tuple[str, int], float]) -> float:
        """Seconds that a task may take: those of the same first layer, or of any, or a guess."""
        guess = {**_GUESS, "estimate": self.settings.estimate_seconds}[task]
        same = [seconds for (name, _), seconds in tasks.items() if name == task]
        return tasks.get((task, key.n1), max(same, default=guess))

    def _past(self) -> tuple[dict[tuple[str, int], float], dict[int, float]]:
        """Median seconds by task and first layer, and regions per second by first layer."""
        tasks, speeds = dict[tuple[str, int], list[float]](), dict[int, list[float]]()
        for (key, task), record in self.results.records.items():
            if record["status"] in {"finished", "skipped"}:
                tasks.setdefault((task, key.n1), []).append(record["wall_seconds"])
            if task == "count" and record["wall_seconds"] > 1.0:
                speeds.setdefault(key.n1, []).append(record["value"]["lower"] / record["wall_seconds"])
        return {name: median(values) for name, values in tasks.items()}, {n1: median(values) for n1, values in speeds.items()}


def measure(plan: Measuring, executor: Executor, workers: int, tick: float = 0.5) -> Iterator[tuple[Item, Record] | None]:
    """Do what is left; yields each result when it is written, and None now and then.

    Parameters
    ----------
    plan
        What to do.
    executor
        Who does it.
    workers
        How many tasks are under way at a time.
    tick
        Seconds between two looks.
    """
    futures: dict[Future[Record], Item] = {}
    while True:
        while len(futures) < workers and (item := plan.next()) is not None:
            futures[executor.submit(perform, plan.work(item))] = item
            plan.under_way[item] = perf_counter()
        if not futures:
            return
        done, _ = wait(futures, timeout=tick, return_when=FIRST_COMPLETED)
        for future in done:
            item = futures.pop(future)
            del plan.under_way[item]
            try:
                record = future.result()
            except (tessella.TessellaError, OSError) as error:
                plan.failed[item] = str(error)
                yield (
                    item,
                    {"status": "failed", "value": {"error": str(error)}, "wall_seconds": 0.0},
                )  # is not written: done again
                continue
            except BrokenExecutor as error:
                msg = f"the worker of {item[0].file}, {item[1]}, was lost: it was killed or ran out of memory; run again to go on"
                raise tessella.SolverError(msg) from error
            plan.write(item, record)
            yield item, record
        yield None


@contextmanager
def executor_of(name: str, workers: int) -> Generator[Executor, None, None]:
    """Processes of this machine, or a dask cluster; when the run ends early, nothing of it goes on here.

    Parameters
    ----------
    name
        ``"processes"``, or the address of a dask scheduler such as ``tcp://host:8786``.
    workers
        How many processes.
    """
    if "://" in name:
        with _cluster(name) as executor:
            yield executor
        return
    if name != "processes":
        msg = f"--executor {name}: expected processes, or the address of a dask scheduler such as tcp://host:8786"
        raise tessella.OptionError(msg)
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin)
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    executor.shutdown()


def _begin() -> None:
    """Ctrl-C is the business of the process that started this one, and without that one there is nothing to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: Any) -> None:
    parent.join()
    os._exit(1)  # whatever is under way: its checkpoint is good at every moment


@contextmanager
def _cluster(address: str) -> Generator[Executor, None, None]:
    try:
        from distributed import Client  # noqa: PLC0415  optional
    except ImportError as error:
        msg = "--executor with an address needs dask, which is not installed: pip install 'dask[distributed]'"
        raise tessella.MissingPackage(msg) from error
    try:
        client = Client(address, timeout=_CONNECT)
    except (OSError, ValueError) as error:
        msg = f"--executor {address}: no dask scheduler answers there ({error}); start one with: dask scheduler"
        raise tessella.SolverError(msg) from error
    with client:
        yield client.get_executor(pure=False)
