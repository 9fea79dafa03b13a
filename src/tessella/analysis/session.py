"""An analysis under way: its clock, what is known by now, and what may still go wrong."""

import signal
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from tessella.analysis.result import LOADING, Analysis, Step
from tessella.kernel import meter
from tessella.kernel.deadline import default_memory

_LONG = 1.0  # seconds of loading that are worth a line


@dataclass(slots=True)
class Session:
    """What is known grows here."""

    standing: Analysis  # what is known by now
    seconds: float  # how long the analysis may take
    error: float  # what may still go wrong: the part of ``1 - confidence`` that no probable bound has taken yet
    seed: int = 0  # where random seeds come from
    workers: int | None = None  # how many work at the same time; None for all cores
    progress: Callable[[Analysis], None] | None = None  # who is told
    _begun: float = field(default_factory=meter.clock)
    _compiled: float = field(default_factory=meter.compile_seconds)
    interrupted: bool = False  # whether Ctrl-C was heard
    executor: Executor | None = None  # where tasks are sent; None for this machine
    memory: int = field(default_factory=default_memory)  # bytes that whoever works may take
    fits: bool = True  # whether counting and estimating take no more

    @property
    def spent(self) -> float:
        """Wall time so far, without what was spent on compiling and loading."""
        return meter.clock() - self._begun

    @property
    def left(self) -> float:
        """Wall time that is left; negative if more was spent."""
        return self.seconds - self.spent

    @contextmanager
    def listening(self) -> Generator[None]:
        """Remember Ctrl-C: most of what is run ends early by itself then, and would be taken for finished."""
        before = signal.getsignal(signal.SIGINT)
        hears = threading.current_thread() is threading.main_thread() and callable(before)

        def hear(number: int, frame: FrameType | None) -> None:
            self.interrupted = True
            if callable(before):
                before(number, frame)

        if hears:
            signal.signal(signal.SIGINT, hear)
        try:
            yield
        except KeyboardInterrupt:
            self.interrupted = True  # raised by who is told of progress, say
            raise
        finally:
            if hears:
                signal.signal(signal.SIGINT, before)

    def _check(self) -> None:
        if self.interrupted:
            raise KeyboardInterrupt

    @contextmanager
    def off_the_clock(self, what: str) -> Generator[None]:
        """What is done here does not count; it is noted if it took long."""
        start, before = meter.compile_seconds(), self.standing.steps
        loading = Step(LOADING, f"{what}: compiled once on a machine for networks of this kind, then only loaded; not counted")
        self.know(steps=(*before, loading))
        try:
            with meter.making_ready():
                yield
        finally:
            seconds = meter.compile_seconds() - start
            done = (replace(loading, found="done", seconds=seconds),) if seconds > _LONG else ()
            self.standing = replace(self.standing, steps=(*before, *done))
        self._check()

    def know(
        self,
        *,
        proved_lower: int = 1,
        probable_lower: int = 1,
        probable_upper: int | None = None,
        upper: int | None = None,
        **news: Any,
    ) -> None:
        """Take in news, and tell; bounds only ever get better, and a probable one never leaves the proved bracket."""
        now = self.standing
        most = now.upper if upper is None else min(now.upper, upper)
        least = max(now.proved_lower, proved_lower)
        probable = min(max(now.probable_lower, least, probable_lower), most)
        likely = max(min(now.probable_upper or most, most if probable_upper is None else probable_upper, most), probable)
        ends: dict[str, Any] = {"proved_lower": least, "probable_lower": probable, "probable_upper": likely, "upper": most}
        compiled = meter.compile_seconds() - self._compiled
        self.standing = replace(now, **ends, **news, seconds=max(self.spent, 0.0), compile_seconds=compiled)
        if self.progress:
            self.progress(self.standing)

    def say(self, sentence: str) -> None:
        """Explain a choice."""
        self.know(choices=f"{self.standing.choices} {sentence}".strip())

    @contextmanager
    def step(self, name: str, why: str) -> Generator[list[str]]:
        """Note what is run; what is put into the list is what it brought."""
        start, found, before = self.spent, list[str](), self.standing.steps
        self.know(steps=(*before, Step(name, why)))
        try:
            yield found
        finally:
            step = Step(name, why, "; ".join(found) or "ended early", max(self.spent - start, 0.0))
            self.standing = replace(self.standing, steps=(*before, step))
        self._check()

    def confidence(self, *, last: bool = False) -> float:
        """The confidence of the next probable bound: it takes half of what may still go wrong, the last one all.

        Whether one is run, and as the how manieth, may depend on what the ones before said, but not on itself; so the chance that any of them is wrong is
        at most the sum of what they took.
        """
        given = self.error if last else self.error / 2.0
        self.error -= given
        return 1.0 - given
