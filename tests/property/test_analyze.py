"""What holds of every analysis and of hyperplanes that meet, whatever the network."""

from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tessella
from helpers.brute_force import count_regions
from helpers.here import Here
from helpers.odd_networks import random_case
from tessella.analysis import plan, turns
from tessella.counting.count import Count
from tessella.counting.meeting import meeting_units
from tessella.partition.tree import Tree

cases = st.integers(0, 2**32 - 1).map(lambda seed: random_case([808, seed], largest=200))
few = settings(max_examples=25)


def brute_force(case):
    return count_regions(case.layers, case.lower, case.upper, case.matrix, case.offset)


@few
@given(cases)
def test_an_exact_answer_is_the_count(case):
    found = tessella.analyze(case.network, case.domain, seconds=20.0, workers=1)
    assert found.exact == brute_force(case)
    assert found.proved_lower == found.probable_lower == found.mean == found.upper == found.exact


@few
@given(cases, st.booleans())
def test_the_bracket_holds_the_count_where_it_ends_early(case, mipbound):
    """A count that never gets anywhere leaves all to the other steps."""

    def stopped(network, domain, **_):
        return Count(network, domain, 1, 2**network.relus, seconds=0.01, status="time limit", share=0.0)

    exact = brute_force(case)
    with patch.object(turns, "count", stopped), patch.object(plan, "EstimatingProcess", Here):
        found = tessella.analyze(case.network, case.domain, seconds=2.0, workers=1, mipbound=mipbound)
    assert 1 <= found.proved_lower <= exact <= found.upper
    assert found.proved_lower <= found.probable_lower <= found.upper
    assert found.exact in {None, exact}
    assert found.mean is None or found.probable_lower <= found.mean <= found.upper


@few
@given(cases)
def test_hyperplanes_that_meet_are_a_lower_bound(case):
    tree = Tree.of(tessella.stability(case.network, case.domain, method="linear"))
    if not tree.units:
        return
    units = meeting_units(tree)
    assert 2**units <= brute_force(case)


@few
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 8))
def test_hyperplanes_through_one_point_are_found(seed, dim, units):
    """As many as there are inputs, if all go through a point inside."""
    rng = np.random.default_rng(seed)
    weight, point = rng.standard_normal((units, dim)), rng.uniform(-0.5, 0.5, dim)
    net = tessella.Network.from_arrays([(weight, -weight @ point)], relu_output=True)
    assert meeting_units(Tree(net, tessella.Box.cube(-1.0, 1.0, dim))) == min(units, dim)
