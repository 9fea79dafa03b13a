"""Algorithm 1's numbers against cases computed by hand."""

import math
from fractions import Fraction

import pytest

from tessella.errors import OptionError
from tessella.probable.probability import chernoff, feasible_after, probabilities, repetitions_for
from tessella.probable.result import MIPBound, Subject
from tessella.result import Counted


def made(draws, variables=10, confidence=0.95, least=1):
    return MIPBound(Subject("a set", variables, Counted.SOLUTIONS), 3, confidence, tuple(draws), least)


def test_all_feasible_is_one_minus_a_power_of_e_over_four():
    # delta = 1/2, so e^(2 delta) / (1 + 2 delta)^(1 + 2 delta) = e / 4, to the power i / 2
    for count in (1, 2, 16, 28):
        assert chernoff(count, count) == pytest.approx(1.0 - (math.e / 4.0) ** (count / 2.0), rel=1e-12)
    # 14 ln(e/4) = -5.40812, e^-5.40812 = 0.00448; 13.5 ln(e/4) = -5.21497, e^-5.21497 = 0.00543: 28 are the fewest for 99.5 %
    assert round(chernoff(28, 28), 5) == 0.99552
    assert round(chernoff(27, 27), 5) == 0.99457


def test_three_quarters_feasible_by_hand():
    # delta = 1/4: e^0.5 / 1.5^1.5 = 1.6487213 / 1.8371173 = 0.8974502; to the power 10: 0.338925
    assert chernoff(15, 20) == pytest.approx(1.0 - 0.338925, abs=1e-6)


def test_half_or_less_says_nothing():
    assert chernoff(10, 20) is None
    assert chernoff(0, 0) is None


def test_a_table_by_hand():
    draws = [3, 2, 4, 4]
    assert feasible_after(draws, 5) == (4, 4, 3, 2, 0, 0)
    # P_0 from f[1] = 4: 1 - (e/4)^2 = 0.538184; P_1 from f[2] = 3: delta = 1/4, 1 - 0.8974502^2 = 0.194583; f[3] = 2: the end
    assert probabilities(feasible_after(draws, 5), 4) == pytest.approx([0.538184, 0.194583], abs=1e-6)


def test_more_constraints_than_variables_say_no_more_than_all_assignments():
    found = made([9] * 28, variables=3)
    assert found.feasible_after == (28, 28, 28, 28)
    assert len(found.probabilities) == 3
    assert (found.exponent, found.lower) == (2, 5)  # of 8 assignments


def test_the_largest_bound_at_the_confidence():
    draws = [5] * 28 + [6] * 12  # f[5] = 12 of 40: nothing; f[4] = 40
    assert made(draws).exponent == 3
    assert made(draws).lower == 2**3 + 1
    assert made([5] * 20 + [4] * 8, confidence=0.5).exponent == 3
    assert made([5] * 20 + [4] * 8, confidence=0.9).exponent == 2


def test_too_few_repetitions_claim_what_is_certain():
    found = made([8] * 15)
    assert (found.exponent, found.lower, found.probability) == (None, 1, 1.0)
    assert made([8] * 16).exponent == 6
    assert made([], least=0).lower == 0


def test_infeasible_from_the_start():
    found = made([0] * 28, least=0)
    assert found.feasible_after[0] == 0
    assert found.lower == 0


def test_repetitions_for_a_confidence():
    assert repetitions_for(0.995) == 28
    for confidence in (0.01, 0.5, 0.9, 0.999, 0.999999):
        count = repetitions_for(confidence)
        assert chernoff(count, count) >= confidence
        assert count == 1 or chernoff(count - 1, count - 1) < confidence
    for wrong in (0.0, 1.0, -1.0, 2.0, math.nan):
        with pytest.raises(OptionError, match="between 0 and 1"):
            repetitions_for(wrong)


def test_chernoff_is_never_below_the_exact_tail():
    for count in (5, 28, 60):
        for feasible in range(count // 2 + 1, count + 1):
            tail = sum(Fraction(math.comb(count, k), 2**count) for k in range(feasible, count + 1))
            assert 1.0 - chernoff(feasible, count) >= float(tail) - 1e-12


def test_approximation_is_the_mean_of_logarithms():
    assert made([]).approximation is None
    found = MIPBound(Subject("n", 10, Counted.REGIONS), 3, 0.95, (6,) * 28, empirical=2**10)
    assert found.approximation == pytest.approx((math.log2(2**4 + 1) + 10.0) / 2.0)
