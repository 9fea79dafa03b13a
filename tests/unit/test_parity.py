"""Parity constraints: drawn fairly, said in rows, combined over two elements."""

import itertools
from collections import Counter

import numpy as np
import pytest

from tessella.formulation.parity import Echelon, Parity, bits, exclusion, parities, parity_rows


def assignments(size):
    return list(itertools.product((0, 1), repeat=size))


def satisfied(row, states):
    total = sum(value * states[column] for value, column in zip(row.coefficients, row.columns, strict=True))
    return row.lower - 1e-9 <= total <= row.upper + 1e-9


@pytest.mark.parametrize("size", range(1, 7))
@pytest.mark.parametrize("odd", [0, 1])
def test_rows_allow_exactly_the_right_assignments(size, odd):
    columns = [3 * i + 1 for i in range(size)]
    rows = parity_rows(Parity(2**size - 1, odd), columns)
    assert len(rows) == (1 if size == 2 else 2 ** (size - 1))
    for states in assignments(size):
        full = dict(zip(columns, states, strict=True))
        violated = [row for row in rows if not satisfied(row, full)]
        assert len(violated) == (0 if sum(states) % 2 == odd else 1)  # each canonical cut removes one assignment


def test_an_exclusion_removes_one_assignment():
    for states in assignments(4):
        row = exclusion(range(4), states)
        assert [other for other in assignments(4) if not satisfied(row, other)] == [states]


def test_sets_are_of_the_size_asked_for_and_all_alike():
    drawn = list(itertools.islice(parities(5, 2, np.random.SeedSequence(1)), 8000))
    assert all(parity.mask.bit_count() == 2 and parity.mask < 32 for parity in drawn)
    counts = Counter((parity.mask, parity.odd) for parity in drawn)
    assert len(counts) == 20
    assert max(abs(count - 400) for count in counts.values()) < 5 * 400**0.5


def test_constraints_larger_than_the_set_have_all_variables():
    assert next(parities(3, 7, np.random.SeedSequence(0))).variables == [0, 1, 2]


def test_the_same_seed_draws_the_same_and_another_another():
    first, again, other = (list(itertools.islice(parities(20, 3, np.random.SeedSequence(s)), 200)) for s in (5, 5, 6))
    assert first == again != other


def test_more_variables_than_a_word_has_bits():
    drawn = next(parities(500, 400, np.random.SeedSequence(0)))
    assert drawn.mask.bit_count() == 400
    assert drawn.holds(bits([1] * 500)) == (drawn.odd == 0)


@pytest.mark.parametrize("seed", range(20))
def test_echelon_form_keeps_the_solutions_and_sees_contradictions_on_prefixes(seed):
    size, echelon, given = 7, Echelon(), []
    for parity in itertools.islice(parities(size, 3, np.random.SeedSequence(seed)), 12):
        rest = echelon.add(parity)
        before = [a for a in range(2**size) if all(row.holds(a) for row in given)]
        given.append(parity)
        after = [a for a in before if parity.holds(a)]
        assert bool(after) == bool(rest.mask or not rest.odd)
        assert (len(after) == len(before)) == (rest == (0, 0))
        if not after:
            return
        assert after == [a for a in range(2**size) if all(row.holds(a) for row in echelon.rows.values())]
        assert after == [a for a in range(2**size) if all(row.holds(a) for row in echelon.reduced())]
        for length in range(size + 1):  # what no solution begins with is seen from rows that end within the prefix
            begins = {a & (2**length - 1) for a in after}
            rows = [row for last, row in echelon.rows.items() if last < length]
            assert begins == {a for a in range(2**length) if all(row.holds(a) for row in rows)}
