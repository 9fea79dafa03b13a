"""Confidence intervals for distributions of which values are drawn independently.

- All shares and quantiles at once: the distribution function lies within sqrt(ln(2 / a) / 2n) of that of the sample (Dvoretzky, Kiefer and Wolfowitz 1956, with the constant of
  Massart 1990), but for a chance of a.
- The mean of what lies between two known ends: the empirical Bernstein bound (Maurer and Pontil 2009), on both sides, where half of the chance goes to each.
- One share: Clopper and Pearson (1934).

**Stopping.**  Who stops by the clock may have seen what was drawn.  So sizes of samples are fixed beforehand, in stages, each twice as large as the one before; stage k may go wrong with
a chance of a / ((k + 1) (k + 2)), which sums to a over all stages.  Whichever stage is the last one that was finished, its intervals hold.
"""

import math

import numpy as np

from tessella.network import Floats

FIRST_STAGE = 64  # values
Interval = tuple[float, float]


def stage_of(values: int) -> int:
    """The number of the last stage that so many values finish, from 0; -1 if there is none.

    Examples
    --------
    >>> [stage_of(values) for values in (63, 64, 127, 128, 1000)]
    [-1, 0, 0, 1, 3]
    """
    return (values // FIRST_STAGE).bit_length() - 1


def size_of(stage: int) -> int:
    """How many values a stage has."""
    return FIRST_STAGE << stage


def chance_of(stage: int, chance: float) -> float:
    """The chance that a stage may go wrong with, so that all of them together have this one."""
    return chance / ((stage + 1) * (stage + 2))


def band(values: int, chance: float) -> float:
    """How far the distribution function of a sample may lie from the true one, at most.

    Examples
    --------
    >>> round(band(1000, 0.05), 4)
    0.0429
    """
    return math.sqrt(math.log(2.0 / chance) / (2.0 * values)) if values else 1.0


def quantile_interval(values: Floats, share: float, width: float, ends: Interval) -> Interval:
    """Where a quantile lies if the distribution function lies within a band of that of a sample.

    Parameters
    ----------
    values
        The sample, in order.
    share
        Which quantile: the smallest value that at least this share of all does not exceed.
    width
        Half the width of the band.
    ends
        The least and the largest value that is possible.

    Examples
    --------
    >>> quantile_interval(np.arange(100.0), 0.5, 0.1, (0.0, 1000.0)), quantile_interval(np.arange(100.0), 0.95, 0.1, (0.0, 1000.0))
    ((39.0, 60.0), (84.0, 1000.0))
    """
    count = len(values)
    low = math.ceil((share - width) * count - 1e-9)
    high = math.floor((share + width) * count + 1e-9) + 1
    return (float(values[low - 1]) if low >= 1 else ends[0], float(values[high - 1]) if high <= count else ends[1])


def mean_interval(values: Floats, chance: float, ends: Interval) -> Interval:
    """Where the mean lies of what is between two ends.

    Examples
    --------
    >>> low, high = mean_interval(np.tile([0.0, 1.0], 5000), 0.05, (0.0, 1.0))
    >>> round(low, 3), round(high, 3)
    (0.484, 0.516)
    """
    count, (least, most) = len(values), ends
    if count < 2 or not math.isfinite(most - least):
        return ends
    log = math.log(4.0 / chance)
    mean, spread = float(np.mean(values)), float(np.var(values, ddof=1))
    off = math.sqrt(2.0 * spread * log / count) + 7.0 * (most - least) * log / (3.0 * (count - 1))
    return max(least, mean - off), min(most, mean + off)


def share_interval(hits: int, values: int, chance: float) -> Interval:
    """Where a share lies of which so many hits were drawn.

    Examples
    --------
    >>> [round(end, 4) for end in share_interval(3, 100, 0.05)]
    [0.0062, 0.0852]
    """
    from scipy.special import betaincinv  # noqa: PLC0415  heavy

    low = 0.0 if hits == 0 else float(betaincinv(hits, values - hits + 1, chance / 2.0))
    high = 1.0 if hits == values else float(betaincinv(hits + 1, values - hits, 1.0 - chance / 2.0))
    return low, high
