"""What every test needs."""

from hypothesis import settings

# the same examples on every machine, however slow it is
settings.register_profile("tessella", deadline=None, derandomize=True)
settings.load_profile("tessella")
