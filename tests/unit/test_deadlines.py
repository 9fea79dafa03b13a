"""Deadlines: stages end in time with what they have, and what is known never becomes worse."""

import itertools
import sys
import time

import numpy as np
import pytest
from scipy.sparse import csr_array

from tessella import Box, Layer, Network, OptionError, analyze, count, stability, upper_bounds
from tessella.kernel import deadline as module
from tessella.kernel.deadline import NEVER, Deadline, default_memory
from tessella.tightening import tighten
from tessella.tightening.linear import linear


def random_network(*sizes, seed=0):
    rng = np.random.default_rng(seed)
    return Network.from_arrays(
        [(rng.standard_normal((m, n)) / n**0.5, 0.3 * rng.standard_normal(m)) for n, m in itertools.pairwise(sizes)],
        relu_output=True,
    )


def is_inside(tight, loose):
    return all((a >= b).all() for a, b in zip(tight.lower, loose.lower, strict=True)) and all(
        (a <= b).all() for a, b in zip(tight.upper, loose.upper, strict=True)
    )


def test_a_deadline_passes():
    soon = Deadline.after(0.01)
    assert not soon.passed
    assert 0.0 < soon.part(0.5).left <= 0.005
    time.sleep(0.02)
    assert soon.passed
    assert soon.left < 0.0
    assert not NEVER.passed
    assert NEVER.part(0.5) is NEVER


def test_memory_is_a_quarter_of_what_there_is(tmp_path, monkeypatch):
    whole = default_memory()
    assert whole >= 1 << 20
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(module, "_LIMITS", (str(limit),))
    limit.write_text("1048576\n")
    assert default_memory() == 1048576 // 4
    limit.write_text("max\n")
    assert default_memory() >= whole


@pytest.mark.parametrize("method", ["interval", "linear", "lp", "milp"])
def test_without_time_bounds_are_no_worse_than_what_is_known(method):
    network, box = random_network(4, 12, 12, 6), Box(-1, 1, dim=4)
    for first in ("interval", "linear", "milp"):
        known = stability(network, box, method=first)
        late = stability(network, box, method=method, seconds=1e-9, known=known)
        assert is_inside(late.bounds, known.bounds)
        assert late.totals()["unstable"] <= known.totals()["unstable"]
        ample = stability(network, box, method=method, known=known)
        assert is_inside(ample.bounds, known.bounds)


def test_units_for_which_there_was_no_time_are_counted():
    network, box = random_network(4, 12, 12, 6), Box(-1, 1, dim=4)
    late = stability(network, box, method="milp", seconds=1e-9)
    assert late.bounds.unproved >= late.totals()["unstable"] - int(late.unstable[0].sum()) > 0
    assert stability(network, box, method="milp").bounds.unproved == 0


def test_bounds_of_another_network_are_refused():
    network, box = random_network(4, 12, 6), Box(-1, 1, dim=4)
    with pytest.raises(OptionError, match="another network"):
        stability(network, box, known=stability(random_network(4, 12, 6, seed=1), box))
    with pytest.raises(OptionError, match="another shape"):
        tighten(network, box, known=tighten(random_network(4, 12, 7), box))


@pytest.mark.parametrize("sparse", [False, True])
def test_linear_bounds_in_parts_are_those_of_all_at_once(sparse, monkeypatch):
    network, box = random_network(5, 20, 15, 10), Box(-1, 1, dim=5)
    if sparse:
        network = Network(tuple(Layer(csr_array(layer.weight), layer.bias) for layer in network.layers))
    bounds = tighten(network, box, method="linear")
    known = list(zip(bounds.lower[:2], bounds.upper[:2], strict=True))
    low, high = linear(network, box, known)
    monkeypatch.setattr(sys.modules["tessella.tightening.linear"], "_WORK", 1)
    some = np.arange(10) % 3 == 0
    lower, upper = linear(network, box, known, some)
    assert np.isinf(lower[~some]).all()
    assert np.isinf(upper[~some]).all()
    np.testing.assert_allclose(lower[some], low[some], rtol=1e-12)
    np.testing.assert_allclose(upper[some], high[some], rtol=1e-12)
    late = linear(network, box, known, None, Deadline.after(-1.0))
    assert np.isinf(late).all()


def test_only_undecided_units_of_wide_layers_are_bounded_again(monkeypatch):
    network, box = random_network(4, 30, 30, 10, seed=3), Box(-0.2, 0.2, dim=4)
    whole = stability(network, box, method="linear")
    monkeypatch.setattr("tessella.tightening._MODERATE", 0)
    part = stability(network, box, method="linear")
    interval = stability(network, box, method="interval")
    assert whole.totals()["unstable"] <= part.totals()["unstable"] < interval.totals()["unstable"]
    points = network.preactivations(box.sample(500))
    for low, high, values in zip(part.bounds.lower, part.bounds.upper, points, strict=True):
        assert (values >= low).all()
        assert (values <= high).all()


def windows(inputs, widths, reads, seed=0):
    """Wide layers of which each unit reads few others."""
    rng, layers, before = np.random.default_rng(seed), [], inputs
    for width in widths:
        near = (np.arange(width)[:, None] * before // width + np.arange(reads)) % before
        values = rng.standard_normal((width, reads)) / reads**0.5
        weight = csr_array((values.ravel(), near.ravel(), np.arange(0, width * reads + 1, reads)), shape=(width, before))
        layers.append(Layer(weight, 0.1 * rng.standard_normal(width)))
        before = width
    return Network(tuple(layers))


def test_an_analysis_of_a_wide_network_says_what_it_knows_and_ends():
    network, box = windows(8, (6000, 6000, 6000), 5), Box(-1, 1, dim=8)
    start = time.process_time()
    found = analyze(network, box, seconds=1.0)
    assert time.process_time() - start < 20.0
    assert 2 <= found.proved_lower <= found.probable_lower <= found.upper
    shape = upper_bounds(network)
    assert found.upper <= shape.best < 1 << network.relus


def test_next_to_no_time_is_enough_for_bounds():
    network, box = random_network(30, 40, 40), Box(-1, 1, dim=30)
    found = analyze(network, box, seconds=0.01)
    assert found.proved_lower >= 1
    assert found.upper <= upper_bounds(network).configuration
    assert count(network, box, seconds=0.01).lower >= 1


def test_what_would_take_too_much_memory_is_left_out():
    network, box = windows(4, (3000, 3000), 4), Box(-1, 1, dim=4)
    found = analyze(network, box, seconds=2.0, memory=100_000_000)
    assert "were left out: they would take about" in found.choices
    assert "100 MB are allowed" in found.choices
    assert "through 600 units of its first layers alone" in found.choices
    assert found.probable_upper == found.upper  # a part says nothing from above, nor how many there are about
    assert found.maps_interval is None
    assert found.count is None
    assert found.upper < 1 << network.relus
    with pytest.raises(OptionError, match="memory is limited to 100,000,000 bytes, but one worker needs"):
        count(network, box, memory=100_000_000, seconds=2.0)


def test_a_million_units_in_one_layer_are_an_answer():
    rng = np.random.default_rng(0)
    network = Network((Layer(rng.standard_normal((1_000_000, 3)), rng.standard_normal(1_000_000)),))
    found = analyze(network, Box(-1, 1, dim=3), seconds=0.5, memory=50_000_000)
    assert 2 <= found.proved_lower < found.upper <= upper_bounds(network).best < 1 << 60


def test_a_pass_that_comes_too_late_keeps_what_is_known():
    network, box = random_network(6, 30, 30), Box(-1, 1, dim=6)
    known = tighten(network, box, method="linear")
    late = tighten(network, box, method="milp", seconds=1e-9, known=known)
    for one, other in zip((*known.lower, *known.upper), (*late.lower, *late.upper), strict=True):
        np.testing.assert_array_equal(one, other)
    assert late.unproved > 0
    assert tighten(network, box, method="linear", seconds=1e-9).unproved > 0
