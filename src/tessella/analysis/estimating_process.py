"""An estimate in a process of its own, which can be ended at any moment.

A random descent is compiled code that nothing interrupts.  Through a large network it takes many seconds, and now and then it does in a small one, where exact
arithmetic has to decide a cell.  In a process of its own it can be given up when the time is over, or at Ctrl-C.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from queue import Empty, SimpleQueue
from threading import Thread
from time import perf_counter
from types import TracebackType
from typing import Any, Self, cast

from tessella.errors import SolverError
from tessella.estimating.estimate import FUNCTIONS, Estimate, EstimateProgress, estimate
from tessella.kernel import warming
from tessella.processes import PipedProcess, talking
from tessella.stability import Stability

SHARE = 0.97  # of the time, in which the estimate should end by itself
TICK = 0.1  # seconds between looks at the clock
Told = Callable[[EstimateProgress | None], bool]


class EstimatingProcess:
    """A process that estimates, and can be killed at any moment; it lives from ``with`` to its end."""

    def __init__(self) -> None:
        """Begin to load what is needed, meanwhile."""
        self._process = PipedProcess(__name__)
        self._waiting, self._ready = SimpleQueue[Any](), False
        Thread(target=_read, args=(self._process, self._waiting), daemon=True).start()

    def __enter__(self) -> Self:
        """It is at work."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """What it still does is given up."""
        self._process.end()

    def wait(self) -> None:
        """Return when it is ready to work."""
        while not self._ready:
            self._news()

    def estimate(self, known: Stability, *, seconds: float, tell: Told, **options: Any) -> Estimate | None:
        """What `tessella.estimate` says; None if it was given up.

        Parameters
        ----------
        known
            The network, the domain, and the units that never change their state there.
        seconds
            When it is given up; it should end a little earlier.
        tell
            Called some times a second, with how it stands, or with None if there is no news.  If it says True, it is given up.
        options
            Those of `tessella.estimate`.
        """
        self.wait()
        deadline = perf_counter() + seconds
        with suppress(OSError):  # it is gone: reading says why
            self._process.say((known, {"seconds": max(SHARE * seconds, 1e-3), **options}))
        while perf_counter() < deadline:
            news = self._news()
            if isinstance(news, dict):
                return Estimate(known.network, known.domain, **cast("dict[str, Any]", news))
            if tell(cast("EstimateProgress | None", news)):
                break
        return None

    def _news(self) -> object:
        """What it says next; None if it says nothing in a while."""
        try:
            news = self._waiting.get(timeout=TICK)
        except Empty:
            return None
        if isinstance(news, EOFError):
            msg = f"the process that estimates ended early: {self._process.last_words()}"
            raise SolverError(msg)
        self._ready = True
        return None if news == "ready" else news


def _read(process: PipedProcess, waiting: "SimpleQueue[Any]") -> None:
    """All that the other process says, and its end."""
    with suppress(EOFError):
        while True:
            waiting.put(process.hear())
    waiting.put(EOFError())


def serve() -> None:
    """The other side: load the compiled code, then estimate what is asked."""
    with talking() as (hear, say):
        warming.load(FUNCTIONS)
        say("ready")
        known, options = cast("tuple[Stability, dict[str, Any]]", hear())
        done = estimate(known.network, known.domain, stability=known, counting=False, progress=say, **options)
        say({field.name: getattr(done, field.name) for field in fields(done) if field.name not in {"network", "domain"}})
        hear()  # stay until nobody listens
