"""The one place that talks to an Executor."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tessella.errors import SolverError

Progress = Callable[[int, int], None]
Label = TypeVar("Label")


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


@dataclass(slots=True)
class Pending(Generic[Label]):
    """Tasks under way, where each result decides what comes next.

    Parameters
    ----------
    executor
        Any `concurrent.futures.Executor`.
    """

    executor: Executor
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

    def wait(self, seconds: float) -> list[tuple[Label, Any]]:
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

    def cancel(self) -> None:
        """Take back what has not begun."""
        for future in [future for future in self._labels if future.cancel()]:
            del self._labels[future]


def _lost(error: BaseException) -> SolverError:
    why = str(error) or type(error).__name__
    msg = f"a worker of the executor was lost ({why}): it was killed, ran out of memory, or was shut down; start a new executor"
    return SolverError(msg)
