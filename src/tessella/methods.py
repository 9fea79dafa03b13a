"""The methods that callers choose from by name; nothing else is loaded, so that the command line can list them at once."""

from enum import StrEnum


class Method(StrEnum):
    """How preactivations are bounded; each is at least as tight as the one before it."""

    INTERVAL = "interval"
    LINEAR = "linear"
    LP = "lp"
    MILP = "milp"


class CountMethod(StrEnum):
    """How regions are counted."""

    WALK = "walk"
    MILP = "milp"
