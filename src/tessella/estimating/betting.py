"""A lower bound on a mean that holds with a given confidence at every stopping time, from non-negative numbers alone.

**Theorem** (Waudby-Smith and Ramdas 2024; Ville 1939).  Let X_1, X_2, ... >= 0 have conditional mean N given the past, and let 0 <= l_t <= 1 be chosen from
the past.  Then with probability at least 1 - a there is no t with

    W_t(N) = (1 + l_1 (X_1 / N - 1)) ... (1 + l_t (X_t / N - 1)) >= 1 / a.

*Proof.*  Every factor is at least 1 - l_t >= 0 and has conditional mean 1, so W_t(N) is a non-negative martingale that starts at 1: the wealth of
someone who bets in a fair game.  By Ville's inequality it ever reaches 1 / a with probability at most a.  QED.

As l_t does not depend on m, W_t(m) falls in m.  So the largest m that some W_t, t = 1, 2, ..., has rejected (W_t(m) >= 1 / a) is a lower
bound on N that holds at all times together, however the number of terms was chosen, and without assumptions on how X spreads.  If the
conditional mean is less than N the factors' means are less than 1, and it holds all the more.

**The bets.**  With relative variance v and n terms to come, log W grows most at l = d / (v + d^2), where d = sqrt(2 log(1 / a) v / n) is the distance that
can be rejected.  v comes from the terms before (with a prior of 8 terms of variance 1), n from the number planned.  In the first tenth, where
predictions are not learned yet and single terms may be huge, nothing is bet.  For those who stop there, a twentieth of the wealth is kept in a second purse, of which
half is staked on each of the first 30 terms.  What both purses hold together is a martingale, too, and it costs the bound next to nothing later: the first
one then has to win 20 / 0.95 instead of 20.

The same with a single bet of everything on the mean of n terms is Markov's inequality: mean / (1 / a) is a lower bound too, a weak one.
"""

import math
from typing import NamedTuple

import numpy as np

from tessella.network import Floats

_PRIOR = 8.0  # terms of relative variance 1 that the first bets are made from
_MOST = 0.9  # of the wealth
_STILL = 0.1  # part of the plan without bets
_ROUNDS = 80  # halvings
_PURSE, _STAKE, _TERMS = 0.05, 0.5, 30  # the second purse: its share, what it stakes, and on how many terms


class Before(NamedTuple):
    """Terms of another kind with the same mean, of which some or all came before those of this kind: wealth goes on from one kind to the other."""

    logarithms: Floats
    stakes: Floats  # what was bet on each
    # how many of them came first, and how many terms of this kind before the others; None if all came first
    turns: tuple[int, int] | None = None


_NOTHING = Before(np.zeros(0), np.zeros(0))


def bets(logarithms: Floats, planned: Floats, confidence: float, learned: int = 0) -> Floats:
    """What is staked on each term, from the terms before it.

    Parameters
    ----------
    logarithms
        Those of the terms.
    planned
        For each term how many there would be in all, as it was foreseen before it; infinity for no bet.
    confidence
        The bound's.
    learned
        The term from which on all are alike: how far those before it spread says nothing.
    """
    if learned:
        return np.concatenate(
            [
                bets(logarithms[:learned], planned[:learned], confidence),
                bets(logarithms[learned:], planned[learned:] - learned, confidence),
            ]
        )
    count, counts = len(logarithms), np.isfinite(planned)
    if not count:
        return np.zeros(0)
    planned = np.where(counts, planned, 0.0)
    before = np.arange(count)
    first, second = (np.logaddexp.accumulate(np.append(-np.inf, power * logarithms[:-1])) for power in (1, 2))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        spread = np.where(np.isfinite(first), np.exp(np.log(before) + second - 2.0 * first) - 1.0, 1.0)
    variance = np.maximum((before * spread + _PRIOR) / (before + _PRIOR), 1e-12)
    still = np.floor(_STILL * planned)
    distance = np.sqrt(2.0 * math.log(1.0 / (1.0 - confidence)) * variance / np.maximum(planned - still, 1.0))
    return np.where(counts & (before >= still), np.minimum(distance / (variance + distance**2), _MOST), 0.0)


def lower_bound(logarithms: Floats, stakes: Floats, confidence: float, before: Before = _NOTHING) -> float:
    """The logarithm of the largest mean that was ever rejected; minus infinity if none was.

    Parameters
    ----------
    logarithms
        Those of the terms.
    stakes
        What was bet on each.
    confidence
        The probability with which the bound holds.
    before
        Terms of the other kind.

    Examples
    --------
    >>> terms = np.full(1000, 5.0)
    >>> round(math.exp(lower_bound(np.log(terms), bets(np.log(terms), np.full(1000, 1000), 0.95), 0.95)), 3)
    4.974
    """
    early = np.where(np.arange(len(logarithms)) < _TERMS, _STAKE, 0.0)
    staked = before.stakes > 0.0
    given, given_stakes = before.logarithms[staked], before.stakes[staked]
    turn, between = before.turns or (len(staked), 0)
    hits = np.isfinite(given)  # what is bet on a term of 0 is lost, whatever the mean: that is added up once
    losses = np.cumsum(np.where(hits, 0.0, np.log1p(-given_stakes)))
    losses = np.append(losses[hits], losses[-1:].sum())  # at each hit, and at the end
    turn = int(np.count_nonzero(staked[:turn]))
    lost, turn = float(np.log1p(-given_stakes[:turn][~hits[:turn]]).sum()), int(np.count_nonzero(hits[:turn]))
    finite = np.concatenate([logarithms[(stakes > 0.0) | (early > 0.0)], given])
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return -math.inf
    needed = math.log(1.0 / (1.0 - confidence))

    def wealth(staked: Floats, terms: Floats, mean: float) -> Floats:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return np.cumsum(np.logaddexp(np.log1p(-staked), np.log(staked) + terms - mean))

    def rejected(mean: float) -> bool:
        won = np.append(0.0, wealth(given_stakes[hits], given[hits], mean))
        both = np.logaddexp(
            math.log(1.0 - _PURSE) + wealth(stakes, logarithms, mean), math.log(_PURSE) + wealth(early, logarithms, mean)
        )
        alone, then = won[1:] + losses[:-1], both[between - 1] if between else 0.0
        best = (
            alone[:turn].max(initial=-math.inf),
            won[turn] + lost + both[:between].max(initial=-math.inf),
            alone[turn:].max(initial=-math.inf) + then,
            won[-1] + losses[-1] + both[between:].max(initial=-math.inf),
        )
        return float(max(best)) >= needed * (1.0 + 1e-12)

    high = float(finite.max()) + 1.0
    low, step = high - 1.0, 1.0
    while not rejected(low):
        low -= step
        step *= 2.0
        if step > 1e6:
            return -math.inf
    for _ in range(_ROUNDS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if rejected(middle) else (low, middle)
        if high - low < 1e-10:
            break
    return low


def markov_bound(logarithms: Floats, confidence: float) -> float:
    """The logarithm of the mean of all terms times 1 - confidence: Markov's inequality, for a number of terms fixed beforehand."""
    return log_mean(logarithms) + math.log(1.0 - confidence) if confidence < 1.0 else -math.inf


def log_mean(logarithms: Floats) -> float:
    """The logarithm of the mean; minus infinity if all terms are 0."""
    top = float(logarithms.max(initial=-math.inf))
    return top + math.log(float(np.exp(logarithms - top).mean())) if math.isfinite(top) else -math.inf
