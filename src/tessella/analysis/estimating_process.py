"""An estimate in a process of its own, which can be ended at any moment.

A random descent is compiled code that nothing interrupts.  Through a large network it takes many seconds, and now and then it does in a small one, where exact
arithmetic has to decide a cell.  In a process of its own it can be given up when the time is over, or at Ctrl-C.

It is not one of `multiprocessing`, whose ways of starting need a guard in the caller's script or are unsafe beside threads.
"""

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from queue import Empty, SimpleQueue
from tempfile import TemporaryFile
from threading import Thread
from time import perf_counter
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

from tessella.errors import SolverError
from tessella.estimating.descents import Descents
from tessella.estimating.estimate import Estimate, EstimateProgress, estimate
from tessella.kernel import warming
from tessella.stability import Stability

_TICK = 0.1  # seconds between looks at the clock
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from tessella.analysis.estimating_process import serve; serve()"
)
_Told = Callable[[EstimateProgress | None], bool]


class EstimatingProcess:
    """A process that estimates, and can be killed at any moment; it lives from ``with`` to its end."""

    def __init__(self) -> None:
        """Begin to load what is needed, meanwhile."""
        self._errors = cast("BinaryIO", TemporaryFile())  # noqa: SIM115  closed when it ends
        command = [sys.executable, "-c", _START, json.dumps(sys.path)]
        pipe = subprocess.PIPE  # Ctrl-C is for us, not for it: a session of its own
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._errors, start_new_session=True)  # noqa: S603
        self._waiting, self._ready = SimpleQueue[Any](), False
        Thread(target=_read, args=(self._process.stdout, self._waiting), daemon=True).start()

    def __enter__(self) -> Self:
        """It is at work."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """What it still does is given up."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            with suppress(OSError, ValueError):
                cast("BinaryIO", pipe).close()

    def wait(self) -> None:
        """Return when it is ready to work."""
        while not self._ready:
            self._news()

    def estimate(self, known: Stability, *, seconds: float, tell: _Told, **options: Any) -> Estimate | None:
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
        self._ask((known, {"seconds": max(0.97 * seconds, 1e-3), **options}))
        while perf_counter() < deadline:
            news = self._news()
            if isinstance(news, dict):
                return Estimate(known.network, known.domain, **cast("dict[str, Any]", news))
            if tell(cast("EstimateProgress | None", news)):
                break
        return None

    def _ask(self, job: object) -> None:
        pipe = cast("BinaryIO", self._process.stdin)
        with suppress(OSError):  # it is gone: reading says why
            pickle.dump(job, pipe)
            pipe.flush()

    def _news(self) -> object:
        """What it says next; None if it says nothing in a while."""
        try:
            news = self._waiting.get(timeout=_TICK)
        except Empty:
            return None
        if isinstance(news, EOFError):
            code = self._process.wait()
            self._errors.seek(0)
            lines = self._errors.read().decode(errors="replace").strip().splitlines() or [f"exit code {code}"]
            msg = f"the process that estimates ended early: {lines[-1]:.200}"
            raise SolverError(msg)
        self._ready = True
        return None if news == "ready" else news


def _read(pipe: BinaryIO, waiting: "SimpleQueue[Any]") -> None:
    """All that the other process says, and its end."""
    with suppress(EOFError, OSError, ValueError, pickle.UnpicklingError):
        while True:
            waiting.put(pickle.load(pipe))  # noqa: S301  from a process that we started
    waiting.put(EOFError())


def serve() -> None:
    """The other side: load the compiled code, then estimate what is asked."""
    out, asked = sys.stdout.buffer, sys.stdin.buffer

    def say(news: object) -> None:
        pickle.dump(news, out)
        out.flush()

    with suppress(EOFError, BrokenPipeError):
        warming.load(Descents.functions)
        say("ready")
        known, options = cast("tuple[Stability, dict[str, Any]]", pickle.load(asked))  # noqa: S301  from who started us
        done = estimate(known.network, known.domain, stability=known, counting=False, progress=say, **options)
        say({field.name: getattr(done, field.name) for field in fields(done) if field.name not in {"network", "domain"}})
        asked.read()  # stay until nobody listens
