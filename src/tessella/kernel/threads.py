"""Matrix products on one thread: those of the libraries that NumPy and SciPy call wait for each other in a loop, which is slow where other work runs."""

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

_lock, _inside, _limits = Lock(), list[None](), list[object]()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def single_threaded() -> Generator[None]:
    """Use one thread per matrix product while inside, in all threads of this process; the last one out restores what was before."""
    with _lock:
        if not _inside:
            _limits.append(_controller().limit(limits=1, user_api="blas"))
        _inside.append(None)
    try:
        yield
    finally:
        with _lock:
            _inside.pop()
            if not _inside:
                _limits.pop().restore_original_limits()  # pyright: ignore[reportAttributeAccessIssue]
