"""`tessella.estimating.spread`: how often an interval holds the truth, where the truth is known."""

import math

import numpy as np
import pytest

from tessella.estimating.spread import spread

LN2 = math.log(2.0)


def held(draw, truth, runs=400):
    """The part of runs whose interval holds the truth, in bits."""
    found = [spread(LN2 * draw(), 0.95).interval for _ in range(runs)]
    return sum(one is not None and one[0] <= truth <= one[1] for one in found) / runs


@pytest.mark.parametrize(("deviation", "count"), [(0.1, 60), (1.0, 40), (3.0, 100), (5.0, 1000)])
def test_normal_logarithms(deviation, count):
    """Of a normal logarithm the mean of its power is known."""
    rng = np.random.default_rng(1)
    truth = 90.0 + LN2 / 2.0 * deviation**2
    assert held(lambda: rng.normal(90.0, deviation, count), truth) >= 0.93


@pytest.mark.parametrize("shape", [40.0, 100.0])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_skewed_logarithms(shape, sign):
    """Logarithms that are gamma distributed have a skewness of 2 / sqrt(shape): 0.3 and 0.2, as descents have."""
    rng = np.random.default_rng(2)
    scale = 3.0 / math.sqrt(shape)
    truth = 90.0 - shape * math.log1p(-sign * LN2 * scale) / LN2
    assert held(lambda: 90.0 + sign * scale * rng.gamma(shape, size=400), truth) >= 0.9


def test_estimates_that_are_zero_count():
    rng = np.random.default_rng(3)

    def draw():
        with np.errstate(divide="ignore"):
            return np.where(rng.random(200) < 0.5, 40.0, -math.inf)

    assert held(draw, 39.0) >= 0.93


def test_what_is_the_same_every_time_is_known():
    found = spread(np.full(100, 40.0 * LN2), 0.95)
    assert found.interval == pytest.approx((40.0, 40.0))
    assert found.error == pytest.approx(0.0)


@pytest.mark.parametrize(("deviation", "count"), [(1.0, 30), (1.0, 0), (15.0, 60)])
def test_few_or_wild_estimates_say_nothing(deviation, count):
    found = spread(LN2 * np.random.default_rng(4).normal(90.0, deviation, count), 0.95)
    assert found.interval is None
    assert math.isinf(found.error)


def test_what_may_be_overlooked_moves_the_upper_end_only():
    terms = LN2 * np.random.default_rng(5).normal(90.0, 2.0, 100)
    (low, high), (same, higher) = spread(terms, 0.95).interval, spread(terms, 0.95, 3.0).interval
    assert low == same
    assert higher == pytest.approx(high + 3.0)
