"""The one place that talks to an Executor."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass
from typing import Any

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Stop:
    """A word to tasks that run in other threads: end early.  In other processes it is a copy that nobody sets."""

    asked: bool = False


def run(work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], executor: Executor | None) -> Iterator[tuple[int, Any]]:
    """Call ``work(*task)`` for every task and yield (number of the task, result) as results come in.

    Parameters
    ----------
    work
        A module-level function, so that it can be sent to other processes.
    tasks
        Its arguments.
    executor
        Any `concurrent.futures.Executor`; None calls in order, in this thread.
    """
    if executor is None:
        for number, task in enumerate(tasks):
            yield number, work(*task)
        return
    pending: dict[Future[Any], int] = {executor.submit(work, *task): number for number, task in enumerate(tasks)}
    try:
        while pending:
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                yield pending.pop(future), future.result()
    finally:
        for future in pending:
            future.cancel()
