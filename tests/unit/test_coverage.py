"""Maximum coverage against all subsets, one by one."""

from functools import reduce
from itertools import combinations
from operator import or_

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella import OptionError
from tessella.upper.coverage import maximum_coverage

families = st.lists(st.integers(0, 2**10 - 1), max_size=8)


def by_brute_force(sets):
    return tuple(max(reduce(or_, chosen, 0).bit_count() for chosen in combinations(sets, k)) for k in range(len(sets) + 1))


def by_greed(sets):
    covered, values, left = 0, [0], list(sets)
    while left:
        best = max(left, key=lambda members: (covered | members).bit_count())
        left.remove(best)
        covered |= best
        values.append(covered.bit_count())
    return tuple(values)


def random_family(rng, most_sets, most_elements):
    matrix = rng.random((rng.integers(1, most_sets + 1), rng.integers(1, most_elements + 1))) < rng.choice([0.1, 0.3, 0.5, 0.8])
    return [int("".join("01"[flag] for flag in row), 2) for row in matrix.astype(int)]


@given(families)
def test_with_enough_effort_all_values_are_exact(sets):
    found = maximum_coverage(sets)
    assert found.values == by_brute_force(sets)
    assert all(found.exact)


@given(families, st.integers(0, 60))
def test_with_any_effort_values_are_upper_bounds(sets, effort):
    found, truth = maximum_coverage(sets, effort=effort), by_brute_force(sets)
    assert len(found.values) == len(found.exact) == len(sets) + 1
    assert list(found.values) == sorted(found.values)
    assert all(value >= most for value, most in zip(found.values, truth, strict=True))
    assert all(value == most for value, most, exact in zip(found.values, truth, found.exact, strict=True) if exact)
    assert found.values[-1] == truth[-1]


@pytest.mark.parametrize("seed", range(60))
def test_larger_families_by_brute_force(seed):
    sets = random_family(np.random.default_rng(seed), most_sets=12, most_elements=40)
    truth = by_brute_force(sets)
    assert maximum_coverage(sets).values == truth
    for effort in (0, 1, 10, 100):
        found = maximum_coverage(sets, effort=effort)
        assert all(value >= most for value, most in zip(found.values, truth, strict=True))
        assert sum(found.inspected) <= effort + 2 * len(sets)


def test_a_greedy_value_would_be_no_upper_bound():
    rows = (0b000_000_1111_0000, 0b000_000_0000_1111, 0b000_000_1110_1110)
    assert by_greed(rows) == (0, 6, 7, 8)
    assert by_brute_force(rows) == (0, 6, 8, 8)  # the two rows together cover all
    assert maximum_coverage(rows).values == (0, 6, 8, 8)
    assert maximum_coverage(rows, effort=0).values == (0, 6, 8, 8)


def test_without_effort_the_bound_is_safe_and_says_so():
    below = 0
    for seed in range(200):
        sets = random_family(np.random.default_rng(seed), most_sets=9, most_elements=20)
        greedy, truth, found = by_greed(sets), by_brute_force(sets), maximum_coverage(sets, effort=0)
        below += greedy != truth
        assert all(value >= most for value, most in zip(found.values, truth, strict=True))
        for k, (value, gained) in enumerate(zip(found.values, greedy, strict=True)):
            if k:  # never worse than greed divided by its guarantee 1 - (1 - 1/k)^k
                assert value <= gained * k**k // (k**k - (k - 1) ** k)
    assert below > 10


def test_once_everything_is_covered_more_sets_change_nothing():
    sets = [0b111100, 0b001111, *[1 << element for element in range(6)]] * 20
    found = maximum_coverage(sets)
    assert found.values == (0, 4, *[6] * (len(sets) - 1))
    assert all(found.exact)
    assert sum(found.inspected) == 2


def test_disjoint_sets_need_no_search():
    found = maximum_coverage([0b1, 0b110, 0b111000, 0b1111000000], effort=0)
    assert found.values == (0, 4, 7, 9, 10)
    assert all(found.exact)


@pytest.mark.parametrize("sets", [[], [0], [0, 0, 0]])
def test_nothing_covers_nothing(sets):
    found = maximum_coverage(sets)
    assert found.values == (0,) * (len(sets) + 1)
    assert all(found.exact)
    assert sum(found.inspected) == 0


def test_families_beyond_enumeration():
    rng = np.random.default_rng(0)
    sets = [int.from_bytes(rng.bytes(32), "little") for _ in range(256)]
    found = maximum_coverage(sets)
    assert found.values[:2] == (0, max(members.bit_count() for members in sets))
    assert found.values[2] == max((a | b).bit_count() for a, b in combinations(sets, 2))
    assert found.exact[:3] == (True, True, True)
    assert found.values[-1] == 256
    assert found.exact[-1]
    assert list(found.values) == sorted(found.values)


@pytest.mark.parametrize(
    ("sets", "effort", "words"),
    [
        ([3, -1], 0, "set 1 is -1"),
        ([1.5], 0, r"set 0 is 1\.5"),
        ([True], 0, "set 0"),
        ([3], -1, "effort must"),
        ([3], 1.5, "effort must"),
    ],
)
def test_misuse_gets_a_clear_error(sets, effort, words):
    with pytest.raises(OptionError, match=words):
        maximum_coverage(sets, effort=effort)
