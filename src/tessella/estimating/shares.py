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
second purse, of which half is staked on each term from the first one on.
"""

import math

import numpy as np

from tessella.network import Floats

_STILL = 0.05  # part of the plan without bets
_UNSEEN = 0.5  # added to the sum of squares
_MOST = 0.95  # of the wealth
_PURSE, _STAKE = 0.05, 0.5  # the second purse: its share, and what it stakes
_ROUNDS = 200  # halvings
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
    before = np.arange(count)
    number = np.maximum(before, 1)
    first, second = (np.cumsum(np.append(0.0, power[:-1])) for power in (terms, terms**2))
    variance = (np.maximum(second - first**2 / number, 0.0) + _UNSEEN) / number
    still = np.floor(_STILL * planned)
    distance = np.sqrt(2.0 * math.log(1.0 / (1.0 - confidence)) * variance / np.maximum(planned - still, 1.0))
    return np.where(before >= still, np.minimum(distance / (variance + distance**2), _MOST), 0.0)


def upper_bound(terms: Floats, staked: Floats, confidence: float) -> float:
    """The smallest mean that was ever rejected; 1 if none was.

    Parameters
    ----------
    terms
        The terms, each at least what it stands for.
    staked
        What was bet on each.
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

    def rejected(mean: float) -> bool:
        one = math.log(1.0 - _PURSE) + np.cumsum(np.log1p(staked * (mean - terms)))
        two = math.log(_PURSE) + np.cumsum(np.log1p(_STAKE * (mean - terms)))
        return float(np.logaddexp(one, two).max()) >= needed

    low, high = 0.0, 1.0
    if not rejected(high):
        return 1.0
    for _ in range(_ROUNDS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if rejected(middle) else (middle, high)
        if high - low <= 1e-9 * high:
            break
    return high
