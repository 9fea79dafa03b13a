"""What the terms of an estimate say of the number of regions: about how many there are, and how many at least and at most."""

import math
from typing import NamedTuple

from tessella.estimating.betting import Before, bets, log_mean, lower_bound, markov_bound
from tessella.estimating.rounds import Sample
from tessella.estimating.spread import UNKNOWN, spread
from tessella.result import maps

_STILL = 0.1  # part of the rounds, the first ones, that the mean does without: predictions are not learned yet
_UNDECIDED = 0.1  # part of the rounds that may have met a cell that nobody decided, for an interval
_WIDEST = 8.0  # bits; two sides that are further apart are no interval
_FEW = 10  # descents that reach a region; fewer say too little of a mean
_SAFE = 1e-9  # relative: more than the rounding of all logarithms
_LARGEST = 1000.0  # log2 of what is returned as a floating-point number


class Said(NamedTuple):
    """What terms say."""

    maps: float  # log2 of the estimate
    # relative_error, maps_interval: as `tessella.Estimate` has them
    relative_error: float
    maps_interval: tuple[float, float] | None
    # lower, upper: what the number is at least, with the confidence; and at most, with ``upper_confidence``: both together hold
    # with the confidence
    lower: int
    upper: int
    upper_confidence: float  # the confidence, or 1 if the upper bound is the proved one


def said(sample: Sample, confidence: float, proved: int) -> Said:
    """What a sample says, where the number is proved to be at most so many.

    The two sides share what may go wrong, if descents that reach every region with the same probability were made; without these, the lower side has it all.
    """
    uniform = sample.uniform
    side = confidence if uniform is None else 1.0 - (1.0 - confidence) / 2.0
    lower, upper, sure = min(_lower(sample, side), proved), proved, 1.0
    if uniform is not None and (found := uniform.upper(side)) < proved:
        upper, sure = max(found, lower), confidence
    ends = maps(lower), maps(upper)
    interval, error = _measured(sample, confidence)
    if interval is not None:
        interval = (min(max(interval[0], ends[0]), ends[1]), min(max(interval[1], ends[0]), ends[1]))
    elif ends[1] - ends[0] <= _WIDEST:
        interval = ends
    return Said(_centre(sample), error, interval, lower, upper, sure)


def _centre(sample: Sample) -> float:
    """Log2 of the mean without the first rounds; before there are any, of that of the descents before them."""
    logarithms, uniform = sample.logarithms, sample.uniform
    if not len(logarithms) and uniform is not None:
        few = (uniform.low > 0.0).sum() < _FEW
        return -math.inf if few else log_mean(uniform.logarithms) / math.log(2.0)
    still = max(math.floor(_STILL * len(logarithms)), min(sample.settled, len(logarithms) - 1))
    return log_mean(logarithms[still:]) / math.log(2.0)


def _measured(sample: Sample, confidence: float) -> tuple[tuple[float, float] | None, float]:
    """The interval that the spread of rounds suggests, and the relative standard error."""
    found, count = UNKNOWN, len(sample.logarithms)
    if count and sample.undecided <= _UNDECIDED * count:
        found = spread(sample.logarithms[sample.settled :], confidence, sample.overlooked, alike=sample.learned > 0)
    return found.interval, math.expm1(min(math.log(2.0) * found.error, 700.0)) if found.interval else math.inf


def _lower(sample: Sample, confidence: float) -> int:
    """There is at least one region; the rest holds with the confidence."""
    logarithms, uniform = sample.logarithms, sample.uniform
    stakes = bets(logarithms, sample.planned, confidence, sample.learned)
    if uniform is None:
        return max(whole(lower_bound(logarithms, stakes, confidence)), 1)
    sure = confidence + uniform.doubt
    before = Before(uniform.logarithms, bets(uniform.logarithms, uniform.planned, sure), uniform.turns)
    if uniform.cut:  # no round follows
        followed = uniform.turns[1] if uniform.turns else 0
        logarithms, stakes = logarithms[:followed], stakes[:followed]
    return max(whole(lower_bound(logarithms, stakes, sure, before)), 1)


def markov(sample: Sample, confidence: float) -> int:
    """What the number is at least by Markov's inequality alone."""
    return whole(markov_bound(sample.logarithms, confidence))


def whole(logarithm: float) -> int:
    """The least whole number that is not below, as far as rounding allows to say."""
    if not math.isfinite(logarithm):
        return 0
    safe = logarithm / math.log(2.0) - _SAFE
    return math.ceil(2.0**safe * (1.0 - _SAFE)) if safe < _LARGEST else int(number(safe))


def number(power: float) -> float | int:
    """Two to a power, as an integer where floating point ends."""
    if power < _LARGEST:
        return 2.0**power
    rest = math.floor(power) - 60
    return int(2.0 ** (power - rest)) << rest
