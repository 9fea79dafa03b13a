"""The scheme behind uniform descents, in rational numbers: all draws together are worth exactly the number of regions.

This is a prototype that shares no code with the engine.  It knows a network only by the list of its regions' patterns, which `helpers.brute_force` makes in integer arithmetic.
"""

import itertools
from fractions import Fraction
from functools import cache
from math import comb

import numpy as np
import pytest

from helpers.brute_force import region_patterns


def sets_up_to(n, dim):
    return sum(comb(n, size) for size in range(min(n, dim) + 1))


def table_for(widths):
    """V(l, d), and whether sets are drawn."""

    @cache
    def promised(layer, dim):
        if layer == len(widths):
            return 1
        return min(by_signs(layer, dim), by_sets(layer, dim))

    def by_signs(layer, dim):
        n = widths[layer]
        return sum(comb(n, off) * promised(layer + 1, min(dim, n - off)) for off in range(n + 1))

    def by_sets(layer, dim):
        return sets_up_to(widths[layer], dim) * promised(layer + 1, min(dim, widths[layer]))

    return promised, lambda layer, dim: by_sets(layer, dim) < by_signs(layer, dim)


def part_of(vectors, chosen, preferred):
    """The sign vector that a set stands for; None if the set is not alive."""
    if not preferred:
        return () if vectors else None
    *rest, last = preferred
    unit = len(rest)
    sides = [{vector[:-1] for vector in vectors if vector[-1] == side} for side in (False, True)]
    found = part_of(sides[0] & sides[1] if unit in chosen else sides[0] | sides[1], chosen, rest)
    if found is None:
        return None
    is_preferred = unit not in chosen and found in sides[last]
    return (*found, last if is_preferred else not last)


def worth(patterns, widths, dim, rng):
    """The expected value of one descent, and what is promised."""
    promised, draws_sets = table_for(widths)

    def below(prefix, layer, dim):
        if layer == len(widths):
            return Fraction(1)
        n, at = widths[layer], len(prefix)
        vectors = {pattern[at : at + n] for pattern in patterns if pattern[:at] == prefix}
        total = Fraction(0)
        if not draws_sets(layer, dim):
            for signs in vectors:  # all others fail
                after = min(dim, sum(signs))
                total += Fraction(promised(layer + 1, after), promised(layer, dim)) * below(prefix + signs, layer + 1, after)
            return total
        preferred, reached = [bool(one) for one in rng.integers(0, 2, n)], []
        for size in range(n + 1):
            for chosen in itertools.combinations(range(n), size):
                signs = part_of(vectors, set(chosen), preferred)
                if signs is not None:
                    assert size <= dim  # larger sets, which are never drawn, are not alive
                    reached.append(signs)
                    after = min(dim, sum(signs))
                    kept = Fraction(promised(layer + 1, after), promised(layer + 1, min(dim, n)))
                    total += kept * below(prefix + signs, layer + 1, after) / sets_up_to(n, dim)
        assert len(reached) == len(vectors)  # one to one
        assert set(reached) == vectors
        return total

    return below((), 0, dim), promised(0, dim)


def drawn(seed):
    """A small network: generic, ternary, through the origin, or with equal units."""
    rng = np.random.default_rng(seed)
    inputs, widths = int(rng.integers(1, 4)), [int(width) for width in rng.integers(1, 5, size=int(rng.integers(1, 4)))]
    kind, layers, before = seed % 4, [], inputs
    for width in widths:
        weight, bias = rng.integers(-3, 4, (width, before)).astype(float), rng.integers(-2, 3, width).astype(float)
        if kind == 0:
            weight, bias = np.round(rng.standard_normal((width, before)), 3), np.round(rng.standard_normal(width), 3)
        if kind == 2:
            bias[:] = 0.0
        if kind == 3:
            weight[-1], bias[-1] = -2.0 * weight[0], -2.0 * bias[0]
        layers.append((weight, bias, True))
        before = width
    return inputs, widths, layers, rng


@pytest.mark.parametrize("group", range(4))
def test_all_draws_together_are_worth_the_number_of_regions(group):
    for seed in range(100 * group, 100 * group + 100):
        inputs, widths, layers, rng = drawn(seed)
        patterns = region_patterns(layers, [-1.0] * inputs, [1.0] * inputs)
        mean, promised = worth(patterns, widths, inputs, rng)
        assert mean * promised == len(patterns), seed
