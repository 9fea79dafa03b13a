"""Numbers of many digits: equal to fractions, up to what they say that they leave out."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from tessella.lines.limbs import Digits, Weights, bits_of, carried, digits, exponent_of, scaled

BITS = 20


def fractions(numbers):
    """What digits are, exactly."""
    rows, kept, columns = numbers.limbs.shape
    scale = [Fraction(2) ** (numbers.exponent - numbers.bits * (limb + 1)) for limb in range(kept)]
    return [
        [sum(Fraction(numbers.limbs[row, limb, column]) * scale[limb] for limb in range(kept)) for column in range(columns)]
        for row in range(rows)
    ]


def drawn(rng, shape, spread):
    return rng.standard_normal(shape) * 10.0 ** rng.uniform(-spread, spread, shape)


@pytest.mark.parametrize("seed", range(12))
def test_products_with_a_bias_are_right(seed):
    rng = np.random.default_rng(seed)
    rows, terms, columns, spread = *rng.integers(1, 9, 3), rng.choice([0, 2, 20])
    weight, values = drawn(rng, (rows, terms), spread), drawn(rng, (terms, columns), spread)
    weight[rng.random(weight.shape) < 0.3] = 0.0
    bias = drawn(rng, rows, spread) if seed % 3 else None
    kept = int(rng.integers(3, 8))
    inner = digits(values, exponent_of(float(np.abs(values).max())), kept, BITS)
    exact = fractions(inner)
    used = np.flatnonzero(rng.random(terms) < 0.8) if seed % 2 else np.arange(terms)
    inner.limbs[np.setdiff1d(np.arange(terms), used)] = 0.0
    matrix = csr_array(weight) if len(used) == terms and seed % 4 == 0 else weight
    weights = Weights.of(matrix, BITS)
    sums, lost = weights.times(inner, used, kept)
    exponent = weights.exponent + inner.exponent
    found = carried(sums, exponent, BITS, kept, bias)
    assert np.abs(found.limbs).max() <= 2**BITS // 2 + 1
    allowed = Fraction(lost) * Fraction(2) ** exponent + 2 * Fraction(found.unit) * Fraction(2) ** found.exponent
    rounded, there = found.rounded(), fractions(found)
    for row in range(rows):
        for column in range(columns):
            true = sum(Fraction(weight[row, term]) * exact[term][column] for term in used.tolist())
            true += 0 if bias is None else Fraction(bias[row])
            assert abs(there[row][column] - true) <= allowed
            value = Fraction(rounded[row, column]) * Fraction(2) ** found.exponent
            assert abs(value - there[row][column]) <= abs(there[row][column]) / 2**50


def test_factors_one_by_one():
    rng = np.random.default_rng(0)
    values, factors = rng.standard_normal((4, 5)), rng.choice([1.0, 0.01, -1.0, 0.0], (4, 5))
    inner, share = digits(values, 5, 4, BITS), digits(factors, 3, 4, BITS)
    found = carried(scaled(inner, share), 8, BITS, 7)
    true = np.array(fractions(inner)) * np.array(fractions(share))
    assert (
        max(abs(value) for value in (np.array(fractions(found)) - true).ravel()) <= 2 * Fraction(found.unit) * 2**found.exponent
    )


def test_nothing_and_large_exponents():
    nothing = carried(np.zeros((2, 3, 4)), 7, BITS, 3)
    assert not nothing.rounded().any()
    large = Digits(digits(np.array([[1.0]]), 3, 3, BITS).limbs, 3000, BITS)
    assert carried(large.limbs, large.exponent + BITS, BITS, 3).exponent > 2990


def test_sums_fit_floating_point_numbers():
    for terms in (1, 2, 1000, 1024, 1025, 100_000):
        bits = bits_of(terms, 8)
        assert terms * 8 * 2 ** (2 * bits - 2) <= 2**52
