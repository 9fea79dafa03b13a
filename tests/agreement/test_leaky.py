"""Networks whose units have a slope on their inactive side (leaky ReLUs, absolute values, and mixtures), against exact arithmetic."""

import itertools
import math

import numpy as np
import pytest

import tessella
from agreement.test_mipbound import oracle
from agreement.test_walkers import COPIES, walked
from helpers.brute_force import count_regions, patterns_by_elimination, patterns_in_the_plane, patterns_on_a_line, region_patterns
from helpers.brute_force_anywhere import patterns_anywhere
from helpers.endless_networks import endless_case
from helpers.odd_networks import leaky_case, with_slopes
from tessella import Box, Layer, Network
from tessella.counting.by_milp import count_by_milp
from tessella.counting.by_points import ByPoints
from tessella.counting.by_programs import ByPrograms
from tessella.estimating.descents import Descents
from tessella.estimating.wide import WideDescents
from tessella.formulation.parity import parities
from tessella.partition.local import LocalBound
from tessella.partition.tree import Tree
from tessella.partition.witness import Witness
from tessella.probable.networks import tails
from tessella.probable.run import Plan
from tessella.probable.search import Seeker

SLOPES = (-1.0, 0.01, 0.2, 1.5)


def cases(count, *, free=None, largest=120, most_inputs=8):
    made = (leaky_case([22, seed], largest=largest, most_inputs=most_inputs) for seed in itertools.count())
    return itertools.islice((case for case in made if free is None or case.free == free), count)


def generic(*sizes, seed, slopes=SLOPES):
    rng = np.random.default_rng([5, seed])
    layers = [
        Layer(rng.standard_normal((n, m)) / math.sqrt(m), 0.4 * rng.standard_normal(n), slope=rng.choice(slopes, n))
        for m, n in itertools.pairwise(sizes)
    ]
    return Network(tuple(layers))


def arrays(network):
    return [(layer.dense(), layer.bias, layer.rectified, np.where(layer.rectified, layer.slope, 0.0)) for layer in network.layers]


def unstable_of(known):
    return np.concatenate([mask[layer.rectified] for mask, layer in zip(known.unstable, known.network.layers, strict=True)])


def test_the_oracles_agree():
    for case in cases(25, free=1):
        assert region_patterns(*case) == patterns_on_a_line(*case)
    for case in cases(25, free=2):
        assert region_patterns(*case) == patterns_in_the_plane(*case)
    for case in itertools.islice((case for case in cases(200, free=2) if case.units <= 5), 10):
        assert region_patterns(*case) == patterns_by_elimination(*case)


def check_all(case):
    """Counts, stable units, upper bounds and lists of one network."""
    network, domain, truth = case.network, case.domain, region_patterns(*case)
    patterns = np.array(sorted(truth)).reshape(len(truth), -1)
    for method in ("interval", "linear", "lp", "milp"):
        known = tessella.stability(network, domain, method=method)
        found, bounds = (
            tessella.count(network, domain, workers=1, stability=known),
            tessella.upper_bounds(network, stability=known),
        )
        assert found.exact == len(truth)
        assert len(truth) <= bounds.empirical <= bounds.configuration <= bounds.montufar <= bounds.raghu
        inactive = np.concatenate([mask[layer.rectified] for mask, layer in zip(known.inactive, network.layers, strict=True)])
        assert not patterns[:, inactive].any()
        for low, high, values in zip(known.bounds.lower, known.bounds.upper, inside(network, domain), strict=True):
            assert (values >= low - 1e-9 * (1.0 + np.abs(low))).all()
            assert (values <= high + 1e-9 * (1.0 + np.abs(high))).all()
    listed = list(tessella.regions(network, domain))
    assert len(listed) == len(truth)
    assert {tuple(region.pattern.tolist()) for region in listed} == truth
    for region in listed[:20]:
        if region.point is not None:
            matrix, offset = region.affine_map
            values = network(region.point)
            terms = np.abs(matrix) @ np.abs(region.point) + np.abs(offset)  # may be far larger than what they add up to
            atol = 1e-9 * (1.0 + np.abs(values).max()) + 32 * 2.0**-53 * terms.max()
            assert np.allclose(matrix @ region.point + offset, values, rtol=1e-9, atol=atol)


def inside(network, domain):
    points = domain.box.sample(50, 3)
    return network.preactivations(points[domain.contains(points)])


@pytest.mark.parametrize("block", range(3))
def test_odd_networks(block):
    for case in itertools.islice(cases(60), 20 * block, 20 * block + 20):
        check_all(case)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(1, 9))
def test_many_odd_networks(block):
    for seed in range(100 * block, 100 * block + 100):
        check_all(leaky_case([23, seed], largest=200))


@pytest.mark.parametrize("in_frame", [False, True])
def test_counts_by_linear_programs(in_frame):
    for case in cases(40, largest=200):
        tree = Tree.of(tessella.stability(case.network, case.domain, method="interval"))
        if tree.units:
            assert walked(ByPrograms(tree, in_frame=in_frame), tree) == count_regions(*case)


def copied(case):
    """A network that has every input many times, each with a part of its weight; None if the walk by points is not for it."""
    (weight, *first), *rest = case.layers
    layers = [(np.repeat(weight, COPIES, axis=1) / COPIES, *first), *rest]
    box = Box(np.repeat(case.lower, COPIES), np.repeat(case.upper, COPIES))
    tree = Tree.of(tessella.stability(Network(tuple(Layer(*layer) for layer in layers)), box, method="interval"))
    return tree if tree.units and tree.scaled.weights[0].shape[0] < tree.scaled.weights[0].shape[1] else None


def test_counts_by_points():
    for number, case in enumerate(case for case in cases(60, largest=200) if case.matrix is None):
        tree = copied(case)
        if tree is not None:
            assert walked(ByPoints(tree, mixtures=number % 3 > 0), tree) == count_regions(*case)


def test_counts_by_a_solver():
    for seed in range(6):
        network = generic(1 + seed % 3, 4, 3, seed=seed)
        box = Box.cube(-1.0, 1.0, network.input_dim)
        found = count_by_milp(Tree.of(tessella.stability(network, box, method="lp")))
        assert found == (count_regions(arrays(network), box.lower, box.upper), True)


def test_local_bounds_are_never_below_what_is_there():
    for case in cases(40, largest=60):
        known = tessella.stability(case.network, case.domain, method="interval")
        tree = Tree.of(known)
        bound, places = LocalBound(tree), unstable_of(known)
        truth = [bytes(np.array(pattern)[places].astype(np.uint8)) for pattern in region_patterns(*case)]
        for length in range(tree.units + 1):
            for prefix in {pattern[:length] for pattern in truth}:
                assert bound(prefix) >= sum(pattern.startswith(prefix) for pattern in truth)


def test_unbounded_domains():
    for seed in range(25):
        case = with_slopes(endless_case([24, seed], largest=40, most_inputs=3), np.random.default_rng(seed))
        truth = patterns_anywhere(*case)
        assert tessella.count(case.network, case.domain, workers=1).exact == len(truth)
        assert tessella.upper_bounds(case.network, case.domain).empirical >= len(truth)
        for region in tessella.regions(case.network, case.domain):
            assert region.bounded in {truth[tuple(region.pattern.tolist())], None}


def test_polygons_and_intervals():
    for free, oracle_of in ((1, patterns_on_a_line), (2, patterns_in_the_plane)):
        for case in cases(20, free=free, most_inputs=3):
            found = tessella.polygons(case.network, case.domain)
            assert {tuple(row) for row in found.patterns.tolist()} == oracle_of(*case)
            assert len(found) == len(oracle_of(*case))


def test_slices():
    for case in cases(25, largest=60, most_inputs=5):
        axes = np.flatnonzero(case.lower < case.upper)[:2]
        chosen = tessella.slice(case.network, domain=case.domain, axes=axes)
        domain = chosen.domain
        walls = (domain.matrix, domain.offset) if isinstance(domain, tessella.Polytope) else ()
        truth = count_regions(arrays(chosen.network), domain.box.lower, domain.box.upper, *walls)
        assert tessella.count(chosen.network, domain, workers=1).exact == truth <= count_regions(*case)


@pytest.mark.parametrize("sizes", [(4, 9), (3, 6, 5), (9, 5, 5, 4), (130, 6, 5, 4)])
def test_descents_are_unbiased(sizes):
    network = generic(*sizes, seed=sum(sizes))
    tree = Tree.of(tessella.stability(network, Box.cube(-1.0, 1.0, sizes[0]), method="linear"))
    exact, descents = tessella.count(tree.network, tree.domain).exact, Descents(tree)
    terms = np.exp(descents.rounds(0, 800, 7, descents.shape.start()).logarithms)
    assert abs(terms.mean() - exact) <= 4.5 * terms.std() / math.sqrt(len(terms))
    found = tessella.estimate(network, tree.domain, probes=100, workers=1)
    assert found.lower <= exact


def test_descents_of_wide_networks_are_unbiased():
    network = generic(4, 7, 6, seed=1)
    tree = Tree.of(tessella.stability(network, Box.cube(-1.0, 1.0, 4), method="linear"))
    known = {region.pattern.tobytes() for region in tessella.regions(tree.network, tree.domain)}
    descents = WideDescents(tree, chance=2.0)
    found = [descents.leaf(number, 5, np.zeros(len(tree.network.layers))) for number in range(400)]
    assert {pattern for _, pattern, behind in found if behind} <= known
    terms = np.exp([logarithm for logarithm, *_ in found])
    assert abs(terms.mean() - len(known)) <= 4.5 * terms.std() / math.sqrt(len(terms))


def test_estimates_of_odd_networks_are_never_above():
    wrong = 0
    for case in cases(30):
        found = tessella.estimate(case.network, case.domain, probes=40, workers=1)
        wrong += found.lower > count_regions(*case)
    assert wrong <= 5  # of 30, with 95 %: more in one of 5,000 cases


def test_the_search_draws_as_many_as_a_list_of_all_regions():
    for number, case in enumerate(case for case in cases(25, largest=60) if case.matrix is None):
        known = tessella.stability(case.network, case.domain, method="lp")
        tree = Tree.of(known)
        if not tree.units:
            continue
        patterns = list({tuple(np.array(p)[unstable_of(known)].astype(int).tolist()) for p in region_patterns(*case)})
        for size, seeker in itertools.product((2, 3), (Seeker(tree), Seeker(tree, list(tails(known))))):
            seed = Plan(size, 0.95, 28, None, (11,)).seed(number)
            if size <= tree.units:
                found = seeker.repeat(size, seed, lambda: False)
                assert found.draws == oracle(patterns, parities(tree.units, size, seed))


def test_witnesses_are_right():
    for case in cases(20, largest=60):
        witness, truth = Witness(case.network, case.domain), region_patterns(*case)
        for point in case.domain.box.sample(20, 1):
            pattern = witness.pattern(point)
            quick = witness.quick(point)
            assert pattern is None or tuple(pattern.tolist()) in truth
            assert quick is None or np.array_equal(quick, pattern)
