"""An upper bound on a mean that holds with a given confidence at every stopping time, from numbers in [0, 1].

**Theorem** (Waudby-Smith and Ramdas 2024; Ville 1939).  Let Y_1, Y_2, ... in [0, 1] have conditional mean q (or more) given the past, and let 0 <= c_t <= 1 be chosen from the past.  Then with
probability at least 1 - a there is no t with

    W_t(q) = (1 + c_1 (q - Y_1)) ... (1 + c_t (q - Y_t)) >= 1 / a.

*Proof.*  Every factor is at least 1 - c_t Y_t >= 0 and has conditional mean 1 at most, so W_t(q) is a non-negative supermartingale that starts at 1.  By Ville's inequality it ever reaches 1 / a with
probability at most a.  QED.

As c_t does not depend on m, W_t(m) rises with m.  So the smallest m that some W_t has rejected (W_t(m) >= 1 / a) is an upper bound on q that holds at all times together, however the number of terms was
chosen.  It is the mirror image of `tessella.estimating.betting`: there terms need no upper end, here they need one.

**Both sides.**  A lower and an upper bound with errors a and b hold together with confidence 1 - a - b, even if they are made from the same terms.

**The bets.**  With variance v and n terms to come, log W grows most at c = d / (v + d^2), where d = sqrt(2 log(1 / a) v / n) is the distance that can be rejected.  v comes from the terms before (half a
term of 1 is added, for those that may still come), n from the number planned.  Nothing is bet in the first twentieth, where v is not known.  For those who stop there, a twentieth of the wealth is kept in a
second purse, of which half is staked on each term from the first one on.  Stakes are held for a while, longer and longer, and wealth is looked at when they change: so a million terms take milliseconds.
"""

import math

import numpy as np

from tessella.network import Floats
from tessella.partition.tree import Integers

_STILL = 0.05  # part of the plan without bets
_UNSEEN = 0.5  # added to the sum of squares
_MOST = 0.95  # of the wealth
_PURSE, _STAKE = 0.05, 0.5  # the second purse: its share, and what it stakes
_ROUNDS = 200  # halvings
_HELD = 512  # stakes may change with every term up to this one, and with every 1 / 512 of all terms from there on
_SAFE = 1e-9  # more than all logarithms are rounded by


def stakes(terms: Floats, planned: Floats, confidence: float) -> Floats:
    """What is staked on each term, from the terms before it.

    Parameters
    ----------
    terms
        The terms.
    planned
        For each term how many there would be in all, as it was foreseen before it.
    confidence
        The bound's.
    """
    count = len(terms)
    if not count:
        return np.zeros(0)
    starts = _starts(count)
    first, second = (np.cumsum(np.append(0.0, power[:-1]))[starts] for power in (terms, terms**2))
    number, plan = np.maximum(starts, 1), planned[starts]
    variance = (np.maximum(second - first**2 / number, 0.0) + _UNSEEN) / number
    still = np.floor(_STILL * plan)
    distance = np.sqrt(2.0 * math.log(1.0 / (1.0 - confidence)) * variance / np.maximum(plan - still, 1.0))
    chosen = np.where(starts >= still, np.minimum(distance / (variance + distance**2), _MOST), 0.0)
    return np.repeat(chosen, np.diff(np.append(starts, count)))


def _starts(count: int) -> Integers:
    """The terms at which stakes may change, the first one among them."""
    found = [0]
    while found[-1] < count:
        found.append(found[-1] + max(1, found[-1] // _HELD))
    return np.array(found[:-1], dtype=np.int64)


def upper_bound(terms: Floats, staked: Floats, confidence: float) -> float:
    """The smallest mean that was ever rejected; 1 if none was.

    Parameters
    ----------
    terms
        The terms, each at least what it stands for.
    staked
        What was bet on each, from `stakes`.
    confidence
        The probability with which the bound holds.

    Examples
    --------
    >>> terms = np.tile([0.0, 0.0, 0.0, 1.0], 1000)
    >>> upper_bound(terms, stakes(terms, np.full(4000, 4000.0), 0.95), 0.95) < 0.28
    True
    """
    if not len(terms):
        return 1.0
    needed = math.log(1.0 / (1.0 - confidence)) + _SAFE
    starts, hits = _starts(len(terms)), np.flatnonzero(terms)
    held, worth = staked[starts], terms[hits]
    block = np.searchsorted(starts, hits, side="right") - 1
    zeros = np.diff(np.append(starts, len(terms))).astype(np.float64) - np.bincount(block, minlength=len(starts))

    def wealth(stake: Floats, mean: float) -> Floats:
        won = np.bincount(block, weights=np.log1p(stake[block] * (mean - worth)), minlength=len(starts))
        return np.cumsum(zeros * np.log1p(stake * mean) + won)

    def rejected(mean: float) -> bool:
        one, two = wealth(held, mean), wealth(np.full(len(starts), _STAKE), mean)
        return float(np.logaddexp(math.log(1.0 - _PURSE) + one, math.log(_PURSE) + two).max()) >= needed

    low, high = 0.0, 1.0
    if not rejected(high):
        return 1.0
    for _ in range(_ROUNDS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if rejected(middle) else (middle, high)
        if high - low <= 1e-6 * high:
            break
    return high
