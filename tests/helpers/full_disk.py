"""A disk on which little can be written."""

import resource
import signal
from contextlib import contextmanager


@contextmanager
def small_files(most):
    """Inside, no file gets longer than so many bytes: writing more fails, after what there was room for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
