"""`tessella.estimating.shares`: an upper bound on the mean of numbers in [0, 1]."""

import math

import numpy as np
import pytest

from tessella.estimating.shares import stakes, upper_bound


def bound(terms, confidence=0.95):
    return upper_bound(terms, stakes(terms, np.full(len(terms), float(len(terms))), confidence), confidence)


def test_nothing_seen_says_little():
    assert upper_bound(np.zeros(0), np.zeros(0), 0.95) == 1.0
    assert bound(np.ones(50)) == 1.0
    assert bound(np.zeros(1)) == 1.0
    assert 3.0 / 1000 < bound(np.zeros(1000)) < 5.0 / 1000  # the rule of three


def test_stakes_depend_on_the_past_alone():
    rng = np.random.default_rng(0)
    terms, other, planned = rng.random(200), rng.random(200), np.full(200, 200.0)
    other[:150] = terms[:150]
    assert np.array_equal(stakes(terms, planned, 0.9)[:151], stakes(other, planned, 0.9)[:151])


def test_more_terms_never_loosen_it():
    terms = (np.random.default_rng(1).random(400) < 0.2).astype(float)
    planned = np.full(400, 400.0)
    found = [upper_bound(terms[:n], stakes(terms[:n], planned[:n], 0.95), 0.95) for n in range(0, 401, 20)]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("share", [0.5, 0.02, 0.001])
def test_misses_are_as_rare_as_claimed_and_the_bound_is_near(share):
    rng, runs, count = np.random.default_rng(7), 300, 2000
    found = np.array([bound((rng.random(count) < share).astype(float), 0.9) for _ in range(runs)])
    assert (found < share).mean() <= 0.1 + 3.0 * math.sqrt(0.09 / runs)
    rule = 1.0 + math.log(10.0) / (count * share) + math.sqrt(2.0 * math.log(10.0) * (1.0 - share) / share / count)
    assert np.median(found) < 1.1 * rule * share
