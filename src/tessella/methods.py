"""The methods that callers choose from by name; nothing else is loaded, so that the command line can list them at once."""

from enum import StrEnum


class Method(StrEnum):
    """How preactivations are bounded; each is at least as tight as the one before it."""

    INTERVAL = "interval"
    LINEAR = "linear"
    LP = "lp"
    MILP = "milp"


class Units(StrEnum):
    """Which units the slow methods tighten: ReLUs whose state is not known yet, or all units, linear and output units among them."""

    UNSTABLE = "unstable"
    ALL = "all"


class CountMethod(StrEnum):
    """How regions are counted."""

    WALK = "walk"
    MILP = "milp"


class Claim(StrEnum):
    """What a certificate proves: how many regions there are, or bounds on what units see, stable ones among them."""

    COUNT = "count"
    STABILITY = "stability"
