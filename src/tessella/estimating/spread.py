"""What independent estimates X of one number N, which may spread widely, say of log2 N: an interval, and a standard error.

Where the logarithms of X spread by many bits, the mean of a handful of X is the largest of them, and lies far below N: what makes up the mean was not drawn.  But the
logarithm of a product of many choices is nearly normal, and of a normal logarithm with mean k1 and variance k2 (in bits) the mean of X is known:

    log2 N = k1 + (ln 2 / 2) k2 + (ln 2)^2 / 6 k3 + ...

(cumulants; k3 = 0 for a normal one).  The interval is this sum around the k1, k2 and k3 that were seen.  A skewness is taken for smaller than it was seen, as far as so few terms
do not tell it from 0, and what is not known of it widens the interval.  As the variance of a sample is more often too small than too large, and
its error goes the same way as that of the sum, the upper margin is wider than the lower one.

Nothing of this is proved: logarithms may have tails that were not seen.  How often such an interval held the truth, on networks whose number of regions is known,
is in the notebook (2026-11-large-estimates).  Which terms are used is decided by their number alone: the later half, where predictions were learned; of populations, which learn nothing from each other, all.
"""

import math
from typing import NamedTuple

import numpy as np

from tessella.network import Floats

_LN2 = math.log(2.0)
_LATER = 0.5  # part of the terms, the last ones, that are used: steered by predictions that hardly change any more
_FEWEST = 16  # terms in this part; fewer do not tell how far they spread
_TERMS_PER_BIT = 4  # so many terms are needed for each bit of their deviation: of a few terms that spread far, those that look narrow would be shown
_FEWEST_ALIKE, _TERMS_PER_BIT_ALIKE = 8, 2  # the same of large populations, which are few and alike
_WIDEST = 40.0  # bits; an interval that is wider says nothing
_SKEWNESS = 0.35  # how large skewnesses are, before anything is seen
_UPWARDS = 1.6  # how much wider the upper margin is


class Spread(NamedTuple):
    """What estimates say of the logarithm of the number that they estimate."""

    interval: tuple[float, float] | None  # two ends of log2 of the number; None if they spread too widely, or are too few
    error: float  # the standard error of that logarithm, in bits; infinite where there is no interval


UNKNOWN = Spread(None, math.inf)


def spread(logarithms: Floats, confidence: float, overlooked: float = 0.0, *, alike: bool = False) -> Spread:
    """What the later half of independent estimates says, or all of them.

    Parameters
    ----------
    logarithms
        Natural logarithms of the estimates, minus infinity for those that are 0.
    confidence
        How often such an interval should hold the truth.
    overlooked
        Bits by which the estimates may be too small without that it shows.
    alike
        Whether nothing was learned from one to the next: then all are used.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> drawn = spread(math.log(2.0) * rng.normal(100.0, 3.0, 1000), 0.95)  # the mean of X is 2^(100 + 9 ln 2 / 2) = 2^103.1
    >>> drawn.interval[0] < 103.1 < drawn.interval[1] < drawn.interval[0] + 2.0
    True
    >>> spread(math.log(2.0) * rng.normal(100.0, 20.0, 30), 0.95).interval is None
    True
    """
    terms = logarithms[0 if alike else len(logarithms) - math.ceil(_LATER * len(logarithms)) :] / _LN2
    seen = terms[np.isfinite(terms)]
    count = len(seen)
    if count < (_FEWEST_ALIKE if alike else _FEWEST):
        return UNKNOWN
    centre, variance, skewness, doubt = _moments(seen)
    deviation = math.sqrt(variance)
    if deviation * (_TERMS_PER_BIT_ALIKE if alike else _TERMS_PER_BIT) > count:
        return UNKNOWN
    centre += math.log2(count / len(terms)) + _LN2 / 2.0 * variance + _LN2**2 / 6.0 * skewness * deviation**3
    parts = (
        deviation / math.sqrt(count),
        math.sqrt((len(terms) - count) / (len(terms) * count)) / _LN2,
        _LN2 / 2.0 * variance * math.sqrt(2.0 / (count - 1)),
        _LN2**2 / 6.0 * doubt * deviation**3,
    )
    error = math.hypot(*parts)
    from scipy.special import stdtrit  # noqa: PLC0415  loads scipy

    margin = float(stdtrit(count - 1, (1.0 + confidence) / 2.0)) * error
    low, high = centre - margin, centre + _UPWARDS * margin + overlooked
    return Spread((max(low, 0.0), max(high, 0.0)), error) if high - low <= _WIDEST else UNKNOWN


def _moments(seen: Floats) -> tuple[float, float, float, float]:
    """Mean, variance, skewness (taken for smaller than it looks) and what is not known of the skewness."""
    centre, variance = float(seen.mean()), float(seen.var(ddof=1))
    weight = len(seen) / 6.0
    doubt = 1.0 / (1.0 / _SKEWNESS**2 + weight)
    shape = (seen - centre) / math.sqrt(variance) if variance > 0.0 else np.zeros(1)
    return centre, variance, doubt * weight * float((shape**3).mean()), math.sqrt(doubt)
