"""The clock of work: wall time without the time in which compiled code is made ready.

Code is compiled once per machine and loaded once per process.  Neither counts against the seconds that a caller allows, nor hides in the seconds that a result reports: deadlines are
measured by `clock`, and results say `compile_seconds` apart.
"""

import logging
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import perf_counter

_lock = threading.Lock()
_listeners: list[Callable[[str], None]] = []
_sources: list[Callable[[], float]] = [perf_counter]


class _Meter:
    """How long, so far, somebody in this process was making code ready; those who do so at the same time count once."""

    spent = 0.0
    since = 0.0
    inside = 0


@contextmanager
def making_ready() -> Generator[None]:
    """Inside, code is compiled or loaded."""
    with _lock:
        if not _Meter.inside:
            _Meter.since = _sources[-1]()
        _Meter.inside += 1
    try:
        yield
    finally:
        with _lock:
            _Meter.inside -= 1
            if not _Meter.inside:
                _Meter.spent += _sources[-1]() - _Meter.since


def compile_seconds() -> float:
    """Wall time that went by in this process while code was compiled or loaded."""
    with _lock:
        return _Meter.spent + (_sources[-1]() - _Meter.since if _Meter.inside else 0.0)


def clock() -> float:
    """Wall time in seconds, from an unknown start, without the time in which code is compiled or loaded."""
    with _lock:
        now = _sources[-1]()
        return now - _Meter.spent - (now - _Meter.since if _Meter.inside else 0.0)


@contextmanager
def measured_by(source: Callable[[], float]) -> Generator[None]:
    """Inside, another clock takes the place of wall time: experiments on shared machines use CPU time, so that seconds hold whoever else works there.

    It is the clock of the whole process: nothing that has a deadline may be under way when one enters or leaves.

    Parameters
    ----------
    source
        Seconds from any start, such as `time.process_time`.
    """
    _sources.append(source)
    try:
        yield
    finally:
        _sources.remove(source)


@contextmanager
def telling(say: Callable[[str], None]) -> Generator[None]:
    """Inside, somebody else than the log says what is being compiled.

    Parameters
    ----------
    say
        Called with one line.
    """
    _listeners.append(say)
    try:
        yield
    finally:
        _listeners.remove(say)


def tell(text: str) -> None:
    """One line for whoever waits: in the log, and on a terminal or in a notebook."""
    logging.getLogger("tessella").info("%s", text)
    if _listeners:
        _listeners[-1](text)
    elif "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty()):
        sys.stderr.write(f"tessella: {text} ...\n")
