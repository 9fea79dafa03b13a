"""Descents that reach every region with the same probability: all that can be drawn, and what is drawn."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

import tessella
from helpers.all_draws import ends
from helpers.brute_force import count_regions
from tessella.estimating.betting import bets, lower_bound
from tessella.estimating.promises import Promises
from tessella.estimating.sampler import Sampler
from tessella.estimating.shares import stakes, upper_bound
from tessella.partition.tree import Tree


def layers_for(rng, sizes, kind):
    made = []
    for before, units in itertools.pairwise(sizes):
        weight, bias = rng.standard_normal((units, before)), 0.5 * rng.standard_normal(units)
        if kind == "ternary":
            weight, bias = rng.integers(-1, 2, (units, before)).astype(float), rng.integers(-1, 2, units).astype(float)
        if kind == "central":
            bias[:] = 0.0
        if kind == "multiples":
            weight[-1], bias[-1] = -2.0 * weight[0], -2.0 * bias[0]
            weight[units // 2], bias[units // 2] = 0.5 * weight[0], 0.5 * bias[0]
        rectified = rng.random(units) < 0.7 if kind == "linear" else np.ones(units, dtype=bool)
        slopes = np.where(rectified & (rng.random(units) < 0.5), 0.25, 0.0) if kind == "leaky" else np.zeros(units)
        made.append((weight, bias, rectified, slopes))
    return made


def network_of(layers):
    return tessella.Network(
        tuple(tessella.Layer(weight, bias, mask, np.where(mask, slopes, 1.0)) for weight, bias, mask, slopes in layers)
    )


def tree_of(network, domain):
    return Tree.of(tessella.stability(network, domain, method="linear"))


def sampler_for(network, domain):
    tree = tree_of(network, domain)
    return Sampler(tree) if tree.units else None


KINDS = ["generic", "ternary", "central", "multiples", "linear", "leaky"]


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_can_be_drawn_holds_every_region_once(kind):
    for seed in range(24):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        inputs = int(rng.choice([1, 2, 3, 9]))
        layers = layers_for(rng, [inputs, *rng.integers(2, 6, size=int(rng.integers(1, 4))).tolist()], kind)
        network, upper = network_of(layers), np.ones(inputs)
        upper[0] = -1.0 if inputs == 9 else 1.0  # a fixed input
        truth = count_regions(layers, -np.ones(inputs), upper)
        sampler = sampler_for(network, tessella.Box(-np.ones(inputs), upper))
        if sampler is None:
            continue
        found, promised = list(ends(sampler)), sampler.promises.total
        assert all(end.certain for end in found)  # exact arithmetic decides what linear programs cannot
        assert len({end.signs for end in found}) == len(found) == truth
        assert all(abs(promised * end.probability - 1.0) < 1e-9 for end in found)


def test_a_network_that_is_too_large_for_exact_arithmetic_leaves_sets_undecided():
    network = network_of(layers_for(np.random.default_rng(2), [3, 6, 5], "central"))
    sampler, truth = sampler_for(network, tessella.Box.cube(-1, 1, 3)), tessella.count(network, tessella.Box.cube(-1, 1, 3)).exact
    low, high = sampler.terms(0, 2000, 3)
    assert np.array_equal(low, high)
    assert abs(low.mean() * sampler.promises.total / truth - 1.0) < 0.3
    sampler._small = False
    unsure = sampler.terms(0, 2000, 3)
    assert (unsure.low <= low).all()
    assert (unsure.high >= high).all()
    assert (unsure.low < unsure.high).mean() > 0.1


def test_polytopes():
    rng = np.random.default_rng(5)
    layers, matrix = layers_for(rng, [3, 5, 4], "generic"), np.vstack([np.eye(3), -np.eye(3), rng.standard_normal((3, 3))])
    offset = np.concatenate([np.ones(6), [0.4, 0.5, 0.6]])
    truth = count_regions(layers, -np.ones(3), np.ones(3), matrix, offset)
    sampler = sampler_for(network_of(layers), tessella.Polytope(matrix, offset))
    assert sampler is not None
    found = list(ends(sampler))
    assert len(found) == truth == len({end.signs for end in found})


def test_promises_are_at_least_the_regions_and_about_the_configuration_bound():
    for sizes in ([3, 5, 6, 4], [784, 11, 11, 10], [8, 20, 20]):
        network = network_of(layers_for(np.random.default_rng(1), sizes, "generic"))
        tree = Tree(network, tessella.Box.cube(-1, 1, sizes[0]))
        total = Promises.of(tree).total
        assert abs(math.log2(total) - math.log2(tessella.configuration_bound(network))) < 1.0


@pytest.mark.parametrize("sizes", [(5, 8, 8, 6), (40, 5, 9, 7)])
def test_what_is_drawn_has_the_right_mean(sizes):
    network = network_of(layers_for(np.random.default_rng(3), sizes, "generic"))
    box = tessella.Box.cube(-1, 1, sizes[0])
    sampler, truth = sampler_for(network, box), tessella.count(network, box).exact
    low, high = sampler.terms(0, 20_000, 9)
    share = truth / sampler.promises.total
    spread = high.std() / math.sqrt(len(high))
    assert low.mean() - 4.0 * spread < share < high.mean() + 4.0 * spread
    assert 0.0 <= low.min() <= high.max() <= 1.0
    assert (high != low).mean() < 1e-3
    again = [sampler.terms(start, 10_000, 9).high for start in (10_000, 0)]
    assert np.array_equal(np.concatenate(again[::-1]), high)  # whoever makes which


def test_of_a_domain_without_a_sure_point_nothing_is_known():
    sampler = sampler_for(network_of(layers_for(np.random.default_rng(0), [2, 4], "generic")), tessella.Box.cube(-1, 1, 2))
    sampler._exists = False
    low, high = sampler.terms(0, 5, 1)
    assert low.tolist() == [0.0] * 5
    assert high.tolist() == [1.0] * 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "kind"),
    [
        ((4, 6, 5), "generic"),
        ((784, 4, 5, 4), "generic"),
        ((3, 5, 5), "ternary"),
        ((3, 6, 5), "central"),
        ((4, 5, 4), "leaky"),
        ((4, 5, 4), "linear"),
    ],
)
def test_misses_of_both_sides_are_as_rare_as_claimed(sizes, kind):
    network = network_of(layers_for(np.random.default_rng(8), sizes, kind))
    box = tessella.Box.cube(-1, 1, sizes[0])
    sampler, truth = sampler_for(network, box), tessella.count(network, box).exact
    total, count, runs, missed = sampler.promises.total, 300, 400, [0, 0]
    for run in range(runs):
        low, high = sampler.terms(0, count, 1000 + run)
        planned = np.full(count, float(count))
        with np.errstate(divide="ignore"):
            logarithms = np.log(low * total)
        # the bounds are the best of all moments at which one might have stopped
        missed[0] += lower_bound(logarithms, bets(logarithms, planned, 0.9), 0.9) > math.log(truth)
        missed[1] += total * upper_bound(high, stakes(high, planned, 0.9), 0.9) < truth
        assert np.array_equal(low, high)
    assert max(missed) <= 0.1 * runs + 3.0 * math.sqrt(0.09 * runs)


def test_stably_active_units_that_are_folded_into_later_layers():
    rng = np.random.default_rng(4)
    layers = layers_for(rng, [2, 40, 40, 4], "generic")
    centre = np.zeros(2)
    for (
        weight,
        bias,
        _,
        _,
    ) in layers:  # the first four units of a layer are 0 near the middle of the box, the others always active
        bias[:] = -weight @ centre
        bias[:4] += 0.3 * rng.uniform(-1.0, 1.0, 4)
        bias[4:] += 100.0 * np.abs(weight[4:]).sum(axis=1)
        centre = np.maximum(weight @ centre + bias, 0.0)
    network, box = network_of(layers), tessella.Box.cube(-1, 1, 2)
    sampler = sampler_for(network, box)
    assert sampler is not None
    assert [layer.linear for layer in sampler.promises.layers] == [2, 6, 0]
    assert len({end.signs for end in ends(sampler)}) == len(list(ends(sampler))) == tessella.count(network, box).exact


def test_regions_drawn_uniformly_are_all_as_likely():
    network, box = network_of(layers_for(np.random.default_rng(6), [3, 5, 5], "generic")), tessella.Box.cube(-1, 1, 3)
    truth = {region.pattern.tobytes() for region in tessella.regions(network, box)}
    drawn = tessella.sample_regions(network, box, 40 * len(truth), uniform=True)
    seen = Counter(one.region.pattern.tobytes() for one in drawn)
    assert set(seen) == truth
    assert {one.weight for one in drawn} == {1.0}
    chi_square = sum((count - 40) ** 2 / 40 for count in seen.values())
    freedom = len(truth) - 1
    assert abs(chi_square - freedom) < 4.0 * math.sqrt(2.0 * freedom)
    again = tessella.sample_regions(network, box, 5, uniform=True)
    assert [one.region for one in again] == [one.region for one in drawn[:5]]


def test_uniform_regions_of_a_network_without_units_and_of_one_that_is_too_large():
    flat = tessella.Network.from_arrays([([[1.0]], [5.0])], relu_output=True)
    assert len(tessella.sample_regions(flat, tessella.Box.cube(-1, 1, 1), 3, uniform=True)) == 3
    large = network_of(layers_for(np.random.default_rng(6), [4, 300, 3], "generic"))
    with pytest.raises(tessella.OptionError, match="leave it out"):
        tessella.sample_regions(large, tessella.Box.cube(-1, 1, 4), 3, uniform=True)
