"""What every test needs."""

import signal
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from hypothesis import settings

# the same examples on every machine, however slow it is
settings.register_profile("tessella", deadline=None, derandomize=True)
settings.load_profile("tessella")

# Shells start what runs in the background with SIGINT ignored, which processes hand down; tests of Ctrl-C would then wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def processes():
    """Two processes for whoever does not harm them: each loads for a second before it works."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool
