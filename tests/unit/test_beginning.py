"""`tessella.analysis.beginning`: what descents go through where a network is too large for them."""

import itertools
import math
import time

import numpy as np
import pytest

import tessella
from tessella.analysis import beginning as module
from tessella.analysis.beginning import beginning, to_descend


def known_of(*sizes, seed=0):
    rng = np.random.default_rng(seed)
    layers = [(rng.standard_normal((n, m)), 0.5 * rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)]
    network = tessella.Network.from_arrays(layers, relu_output=True)
    return tessella.stability(network, tessella.Box.cube(-1, 1, sizes[0]), method="linear")


@pytest.mark.parametrize("most", [1, 5, 8, 10, 14, 18])
def test_a_beginning_has_no_more_regions_than_the_whole(monkeypatch, most):
    monkeypatch.setattr(module, "_UNITS", most)
    monkeypatch.setattr(module, "_LEAST", 1)
    for seed in range(3):
        known = known_of(3, 8, 6, 5, seed=seed)
        part = beginning(known)
        assert part.totals()["unstable"] == min(most, known.totals()["unstable"])
        whole = tessella.count(known.network, known.domain).exact
        assert tessella.count(part.network, part.domain).exact <= whole
        first = part.network.layers[0]
        if most > 8:
            assert (first.weight == known.network.layers[0].weight).all()


def test_the_units_that_cut_most_evenly_are_kept(monkeypatch):
    monkeypatch.setattr(module, "_UNITS", 2)
    monkeypatch.setattr(module, "_LEAST", 1)
    network = tessella.Network.from_arrays([([[1.0]] * 4, [0.9, 0.1, -0.2, -0.95])], relu_output=True)
    part = beginning(tessella.stability(network, tessella.Box(-1, 1, dim=1)))
    assert part.network.layers[0].bias.tolist() == [0.1, -0.2]


def test_what_fits_is_walked_whole():
    known = known_of(3, 8, 6)
    assert to_descend(known, 10**9) is known
    assert to_descend(known, 100) is None  # not even its beginning fits


@pytest.mark.slow
def test_an_analysis_of_a_network_that_is_too_large_bounds_it_from_below(monkeypatch):
    """By what its beginning has; nothing is said of how many there are about, or at most."""
    monkeypatch.setattr(module, "_UNITS", 20)
    monkeypatch.setattr(module, "_LEAST", 20)
    monkeypatch.setattr(module, "_MANY", 30)
    monkeypatch.setattr("tessella.analysis.plan._FEW_INPUTS", 0)
    monkeypatch.setattr("tessella.analysis.plan._MOST_UNITS", 0)
    known = known_of(6, 20, 18, seed=1)
    found = tessella.analyze(known.network, known.domain, seconds=3, mipbound=False)
    exact = tessella.count(known.network, known.domain).exact
    assert "Descents went through 20 units" in found.choices
    assert found.proved_lower < found.probable_lower <= exact
    assert found.estimate.maps_interval is None
    assert found.mean is None
    assert not any(claim.side is tessella.Side.ESTIMATE for claim in found.bounds)
    assert "too uncertain to estimate" in repr(found)
    assert found.estimate.upper is None
    assert found.estimate.relative_error == math.inf
    assert found.estimate.network == known.network
    assert tessella.Analysis.from_json(found.to_json()).probable_lower == found.probable_lower


class Silent:
    """Has the face of the process that estimates, and no descent of it ever ends."""

    def __enter__(self):
        return self

    def __exit__(self, *reason):
        pass

    def wait(self):
        pass

    def estimate(self, _known, *, seconds, tell, **_options):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end and not tell(None):
            time.sleep(0.02)


def test_counting_goes_on_where_no_descent_ends(monkeypatch):
    monkeypatch.setattr("tessella.analysis.plan.EstimatingProcess", Silent)
    monkeypatch.setattr("tessella.analysis.plan._TRIAL", 1e-6)
    known = known_of(3, 40, 40, seed=2)
    found = tessella.analyze(known.network, known.domain, seconds=8, mipbound=False)
    assert "so counting went on" in found.choices
    assert found.exact == tessella.count(known.network, known.domain).exact
