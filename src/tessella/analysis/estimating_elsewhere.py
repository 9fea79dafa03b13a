"""An estimate whose descents an executor makes, and which can be given up at any moment."""

from concurrent.futures import Executor, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from time import perf_counter
from types import TracebackType
from typing import Any, Self

from tessella.analysis.estimating_process import SHARE, TICK, Told
from tessella.estimating.estimate import FUNCTIONS, Estimate, EstimateProgress, estimate
from tessella.executors import Leash
from tessella.kernel import warming
from tessella.stability import Stability


class EstimatingElsewhere:
    """Has the face of `tessella.analysis.estimating_process.EstimatingProcess`.

    What descends is elsewhere, so nothing need be killed here: when the time is over, nobody listens any more.

    Parameters
    ----------
    executor
        Makes the descents.
    """

    def __init__(self, executor: Executor) -> None:
        """Nothing is asked yet."""
        self._executor = executor

    def __enter__(self) -> Self:
        """There is nothing to start."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """There is nothing to end."""

    def wait(self) -> None:
        """Load what adds up results."""
        warming.load(FUNCTIONS)

    def estimate(self, known: Stability, *, seconds: float, tell: Told, **options: Any) -> Estimate | None:
        """What `tessella.estimate` says; None if it was given up.

        Parameters
        ----------
        known, seconds, tell, options
            As for `tessella.analysis.estimating_process.EstimatingProcess.estimate`.
        """
        news, deadline = SimpleQueue[EstimateProgress](), perf_counter() + seconds
        with ThreadPoolExecutor(1) as thread, Leash(self._executor) as executor:
            given: dict[str, Any] = {"seconds": max(SHARE * seconds, 1e-3), "executor": executor, "progress": news.put, **options}
            ended = thread.submit(estimate, known.network, known.domain, stability=known, counting=False, **given)
            while perf_counter() < deadline:
                try:
                    now = news.get(timeout=TICK)
                except Empty:
                    now = None
                if ended.done():
                    return ended.result()
                if tell(now):
                    break
        return None
