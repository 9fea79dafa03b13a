"""What every test needs."""

import signal

from hypothesis import settings

# the same examples on every machine, however slow it is
settings.register_profile("tessella", deadline=None, derandomize=True)
settings.load_profile("tessella")

# Shells start what runs in the background with SIGINT ignored, which processes hand down; tests of Ctrl-C would then wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
