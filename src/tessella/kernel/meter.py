"""The clock of work: wall time without the time in which compiled code is made ready.

Code is compiled once per machine and loaded once per process.  Neither counts against the seconds that a caller allows, nor hides in the seconds that a result reports: deadlines are
measured by `clock`, and results say `compile_seconds` apart.
"""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from time import perf_counter

_lock = threading.Lock()


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
            _Meter.since = perf_counter()
        _Meter.inside += 1
    try:
        yield
    finally:
        with _lock:
            _Meter.inside -= 1
            if not _Meter.inside:
                _Meter.spent += perf_counter() - _Meter.since


def compile_seconds() -> float:
    """Wall time that went by in this process while code was compiled or loaded."""
    with _lock:
        return _Meter.spent + (perf_counter() - _Meter.since if _Meter.inside else 0.0)


def clock() -> float:
    """Wall time in seconds, from an unknown start, without the time in which code is compiled or loaded."""
    with _lock:
        now = perf_counter()
        return now - _Meter.spent - (now - _Meter.since if _Meter.inside else 0.0)
