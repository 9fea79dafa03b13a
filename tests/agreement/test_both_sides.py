"""The two bounds of an estimate hold together, as often as they claim: on networks whose number of regions is counted."""

import itertools
import math

import numpy as np
import pytest

import tessella


def network(sizes, seed, kind):
    rng, layers = np.random.default_rng(seed), []
    for before, units in itertools.pairwise(sizes):
        weight, bias = rng.standard_normal((units, before)), 0.5 * rng.standard_normal(units)
        if kind == "ternary":
            weight, bias = rng.integers(-1, 2, (units, before)).astype(float), rng.integers(-1, 2, units).astype(float)
        layers.append(tessella.Layer(weight, bias, slope=0.2 if kind == "leaky" else 0.0))
    return tessella.Network(tuple(layers))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "kind"),
    [((3, 5, 5), "generic"), ((60, 4, 5, 4), "generic"), ((3, 4, 4, 4), "generic"), ((3, 5, 4), "leaky"), ((3, 5, 5), "ternary")],
)
def test_misses_of_estimates(sizes, kind):
    net = network(sizes, 11, kind)
    box, runs, missed = tessella.Box.cube(-1, 1, sizes[0]), 80, 0
    truth = tessella.count(net, box).exact
    known = tessella.stability(net, box, method="linear")
    for seed in range(runs):
        found = tessella.estimate(net, box, probes=60, rng=seed, workers=1, confidence=0.8, stability=known)
        missed += not found.lower <= truth <= found.upper
        assert found.lower <= found.upper
    assert missed <= 0.2 * runs + 3.0 * math.sqrt(0.16 * runs)


@pytest.mark.slow
def test_estimates_have_an_upper_end_on_every_kind_of_domain():
    net = network((3, 6, 5), 3, "generic")
    for domain in (
        tessella.Box.cube(-1, 1, 3),
        tessella.Box([-1.0, -1.0, 0.5], [1.0, 1.0, 0.5]),
        tessella.Polytope(np.vstack([np.eye(3), -np.eye(3), np.ones((1, 3))]), np.array([1.0] * 6 + [0.7])),
        tessella.Box(-np.inf, np.inf, dim=3),
    ):
        truth = tessella.count(net, domain).exact
        found = tessella.estimate(net, domain, probes=400, confidence=0.999)
        assert found.lower <= truth <= found.upper
        assert found.upper_confidence in {0.999, 1.0}  # 1 where the proved bound is less
        again = tessella.estimate(net, domain, probes=400, confidence=0.999, workers=3)
        assert (again.lower, again.upper) == (found.lower, found.upper)


@pytest.mark.slow
def test_two_networks_are_told_apart_with_confidence():
    box = tessella.Box.cube(-1, 1, 8)
    more, fewer = network((8, 14, 14), 1, "generic"), network((8, 10, 10), 1, "generic")
    analyses = {}
    for name, net in (("more", more), ("fewer", fewer)):
        found = tessella.estimate(net, box, probes=3000, confidence=0.975)
        analyses[name] = tessella.Analysis(net, box, 1, found.lower, 2**28, 0.975, estimate=found, probable_upper=found.upper)
    assert str(tessella.rank(analyses).between("more", "fewer").verdict) == "probable"
