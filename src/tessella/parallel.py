"""The one place that gives tasks to an Executor, and what workers keep between two tasks."""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from logging import getLogger
from threading import Lock
from time import perf_counter
from typing import Any, Generic, NamedTuple, TypeVar

from tessella.errors import WorkerLost

_LOOK = 0.1  # seconds between looks at the time

Progress = Callable[[int, int], None]
Label = TypeVar("Label")
Member = TypeVar("Member")


@dataclass(slots=True)
class Stop:
    """A word to tasks that run in other threads: end early.  In other processes it is a copy that nobody sets."""

    asked: bool = False


def worker_count(workers: int | None, executor: Executor | None = None) -> int:
    """How many work at the same time: as many as were asked for, or the executor has by now, or there are cores."""
    has = getattr(executor, "num_workers", None) or getattr(executor, "_max_workers", None)  # the first: clusters, and MPI's
    return workers or has or os.cpu_count() or 1


class Workforce(NamedTuple):
    """Who works, as callers ask for it."""

    executor: Executor | None = None  # where tasks are sent; None for threads of this process
    workers: int | None = None  # how many work at the same time; None for as many as the executor has, or there are cores
    memory: int | None = None  # bytes that they may hold together; None for no limit


def _never() -> bool:
    return False


def run(
    work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], executor: Executor | None, late: Callable[[], bool] = _never
) -> Iterator[tuple[int, Any]]:
    """Call ``work(*task)`` for every task and yield (number of the task, result) as results come in.

    Parameters
    ----------
    work
        A module-level function, so that it can be sent to other processes.
    tasks
        Its arguments.
    executor
        Any `concurrent.futures.Executor`; None calls in order, in this thread.
    late
        Asked some times a second whether to end; what an executor is at then is not waited for.
    """
    if executor is None:
        for number, task in enumerate(tasks):
            if late():
                return
            yield number, work(*task)
        return
    pending = Pending[int](executor)
    try:
        for number, task in enumerate(tasks):
            pending.submit(number, work, *task)
        while pending.labels and not late():
            yield from pending.wait(_LOOK)
    finally:
        pending.cancel()


def everywhere(work: Callable[..., Any], arguments: tuple[Any, ...], executor: Executor, seconds: float) -> None:
    """Call a function as often as there are workers, so that each most likely does it once: to load what it will need.

    Parameters
    ----------
    work, arguments
        What is called.
    executor
        Whose workers.
    seconds
        How long to wait for them.
    """
    pending, end = Pending[int](executor), perf_counter() + seconds
    try:
        for number in range(worker_count(None, executor)):
            pending.submit(number, _numbered, number, work, *arguments)
        while pending.labels and perf_counter() < end:
            pending.wait(end - perf_counter())
    finally:
        pending.cancel()


def _numbered(_number: int, work: Callable[..., Any], *arguments: Any) -> None:
    """The number makes each call another one, as some executors merge equal calls."""
    work(*arguments)


@dataclass(slots=True)
class Pending(Generic[Label]):
    """Tasks under way, where each result decides what comes next."""

    executor: Executor  # any `concurrent.futures.Executor`
    _labels: dict[Future[Any], Label] = field(default_factory=dict[Future[Any], Label])

    @property
    def labels(self) -> tuple[Label, ...]:
        """Those of the tasks under way, oldest first."""
        return tuple(self._labels.values())

    def submit(self, label: Label, work: Callable[..., Any], *arguments: Any) -> None:
        """Call ``work(*arguments)`` elsewhere; the label comes back with its result."""
        try:
            future = self.executor.submit(work, *arguments)
        except RuntimeError as error:  # broken, or shut down
            raise _lost(error) from error
        self._labels[future] = label

    def wait(self, seconds: float | None = None) -> list[tuple[Label, Any]]:
        """The results that are there as soon as there is one, or none after this time; what a task raised is raised here."""
        done, _ = wait(self._labels, timeout=seconds, return_when=FIRST_COMPLETED)
        results = list[tuple[Label, Any]]()
        for future in done:
            if results and (future.cancelled() or future.exception()):
                continue  # stays for the next call, so that no result is lost
            label = self._labels.pop(future)
            try:
                results.append((label, future.result()))
            except (BrokenExecutor, CancelledError) as error:
                raise _lost(error) from error
        return results

    def cancel(self) -> list[Label]:
        """Take back what has not begun: the labels of these tasks."""
        return [self._labels.pop(future) for future in list(self._labels) if future.cancel()]


def _lost(error: BaseException) -> WorkerLost:
    why = " ".join(str(error).split()) or type(error).__name__
    msg = f"a worker of the executor was lost ({why}): it was killed, ran out of memory, or was shut down; start a new executor"
    return WorkerLost(msg)


def say_lost(text: str) -> None:
    """Tell in the log why an answer is not complete; without a log of its own, a program shows that on stderr."""
    getLogger("tessella").warning("%s", text)


@contextmanager
def own_thread() -> Generator[Callable[[Callable[[], Any]], Any]]:
    """Inside, a function that calls others in one thread made for them, and waits for what they return.

    Examples
    --------
    >>> from threading import current_thread, main_thread
    >>> with own_thread() as call:
    ...     call(current_thread) is call(current_thread), call(current_thread) is main_thread()
    (True, False)
    """
    with ThreadPoolExecutor(1) as thread:
        yield lambda work: thread.submit(work).result()


class Crew(Generic[Member]):
    """Keeps what is expensive to make from one task to the next: walkers of a tree, say.  A member works on one task at a time.

    Parameters
    ----------
    jobs
        How many jobs' idle members are kept; those of the job that was worked on longest ago are let go first.

    Examples
    --------
    >>> crew = Crew[list[str]]()
    >>> with crew.lend("job", list) as member:
    ...     member.append("used")
    >>> with crew.lend("job", list) as first, crew.lend("job", list) as second:
    ...     first, second
    (['used'], [])
    """

    def __init__(self, jobs: int = 2) -> None:
        """Nobody is there yet."""
        self._jobs, self._lock, self._idle = jobs, Lock(), dict[str, list[Member]]()

    @contextmanager
    def lend(self, job: str, make: Callable[[], Member]) -> Generator[Member]:
        """An idle member of a job, or a new one if all are at work; where work raises, its member does not come back.

        Parameters
        ----------
        job
            What it works on: the same for the same job.
        make
            Makes a new member for that job.
        """
        with self._lock:
            idle = self._idle.get(job)
            member = idle.pop() if idle else None
        if member is None:
            member = make()
        yield member
        with self._lock:
            self._idle[job] = [*self._idle.pop(job, []), member]  # at the end: this job was worked on last
            while len(self._idle) > self._jobs:
                del self._idle[next(iter(self._idle))]
