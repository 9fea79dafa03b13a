"""How an estimate divides its time between descents that reach every region with the same probability and rounds that learn.

The first kind bounds the number of regions from both sides, and the second one from below.  Which of them tightens the interval more differs between networks.  So some of either are made, and what they spread and
cost says how much of the time the first kind gets in all: what makes the interval narrowest, by the rule

    upper end: log2(1 + 3 / (n q) + sqrt(6 v / n)) bits above the number,    lower end: log2(1 + sqrt(6 / (n / v + m / w))) bits below it,

with n descents that reach a part q of what is promised, with relative variance v, and m rounds with relative variance w.  That is chosen once, from terms that are there: given these, all later ones have the right mean.
"""

import math

import numpy as np

from tessella.estimating.betting import log_mean
from tessella.estimating.rounds import Sample
from tessella.estimating.uniform import Ways
from tessella.network import Floats

BEGINNING = 0.25  # part of the time that the first kind has before rounds are made
PLANNED = 0.5  # part of it that is foreseen for either kind, until more is known
TRIAL = 0.2  # part of it that rounds have before it is divided
MOST = 0.7  # part of it that the first kind may have in all
_LEAST = 0.5  # seconds; less is divided in halves
_FEWEST = 8  # rounds that say how far they spread
_LATER = 0.5  # part of them that is looked at
_PARTS = np.linspace(BEGINNING, MOST, 19)


def divides(whole: float) -> bool:
    """Whether there is enough time to see what tightens the interval."""
    return math.isfinite(whole) and whole >= _LEAST


def part(sample: Sample, ways: Ways, costs: tuple[float, float], whole: float, proved: int) -> float:
    """The part of the time that is best spent on descents of the first kind.

    Parameters
    ----------
    sample
        What descents of both kinds brought.
    ways
        What either way through the last layer costs.
    costs
        Seconds of one descent, and of one round.
    whole
        Seconds in all.
    proved
        What the number of regions is at most.
    """
    logarithms = sample.logarithms[sample.settled :]
    logarithms = logarithms[math.floor(_LATER * len(logarithms)) :]
    centre, drawn = log_mean(logarithms), sample.uniform
    if drawn is None or len(logarithms) < _FEWEST or not math.isfinite(centre):
        return PLANNED
    promised = math.log(drawn.promised)
    mean = float(drawn.high.mean()) if drawn.high.any() else math.exp(centre - promised)
    pace, square = ways.outlook(mean, PLANNED * whole) or (costs[0], mean)
    spreads = max(square / mean**2 - 1.0, 1e-12), _spread(logarithms, centre)
    most = max(math.log(proved) - centre, 0.0) / math.log(2.0)
    descents, rounds = _PARTS * whole / pace, (1.0 - _PARTS) * whole / costs[1]
    above = np.log2(1.0 + 3.0 / (descents * mean) + np.sqrt(6.0 * spreads[0] / descents))
    below = np.log2(1.0 + np.sqrt(6.0 / (descents / spreads[0] + rounds / spreads[1])))
    return float(_PARTS[np.argmin(np.minimum(above, most) + below)])


def _spread(logarithms: Floats, centre: float) -> float:
    """The relative variance of rounds: what was seen, or what it is where logarithms are normal, if that is more."""
    seen = math.expm1(min(log_mean(2.0 * logarithms) - 2.0 * centre, 700.0))
    found = logarithms[np.isfinite(logarithms)]
    normal = math.expm1(min(float(found.var(ddof=1)), 700.0)) if len(found) > 1 else 0.0
    return max(seen, normal, 1e-12)
