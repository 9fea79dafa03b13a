"""Stable units: which they are, and the smaller network without them."""

import itertools
import json
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
import scipy.sparse

import tessella
from tessella import Box, DomainError, Layer, Network, NetworkError, OptionError, Polytope, tightening, upper_bounds
from tessella.preactivation import Method, PreactivationBounds
from tessella.stability import Stability, stability
from tessella.tightening import tighten


def by_hand():
    """On [0, 1]: unit 0 is active, unit 1 inactive, unit 2 either; in layer 2 one unit leans each way."""
    first = Layer([[1.0], [-1.0], [1.0]], [0.5, -0.5, -0.5])
    second = Layer([[1.0, 0.0, -9.0], [-1.0, 0.0, 3.0], [0.0, 5.0, 0.0]], [0.1, -0.1, 0.0])
    return Network((first, second))


def test_states_by_hand():
    found = stability(by_hand(), Box(0, 1, dim=1))
    assert [mask.tolist() for mask in found.active] == [[True, False, False], [False, False, False]]
    assert [mask.tolist() for mask in found.inactive] == [[False, True, False], [False, True, True]]
    assert [mask.tolist() for mask in found.unstable] == [[False, False, True], [True, False, False]]
    assert found.active_leaning[1].tolist() == [True, False, False]
    assert found.totals() == {"active": 1, "inactive": 3, "unstable": 2, "active_leaning": 1, "inactive_leaning": 0}
    assert repr(found).startswith("Stability(2 unstable, 1 stably active, 3 stably inactive of 6 ReLUs, milp")


def test_slower_methods_prove_more_units_stable():
    rng = np.random.default_rng(0)
    network = Network.from_arrays(
        [(rng.standard_normal((8, 4)), None) for _ in range(1)] + [(rng.standard_normal((8, 8)), None)] * 2
    )
    box = Box.cube(0, 1, 4)
    unstable = [stability(network, box, method=method).totals()["unstable"] for method in Method]
    assert unstable == sorted(unstable, reverse=True)


@pytest.mark.parametrize("seed", range(30))
def test_without_stable_units_computes_the_same(seed):
    rng = np.random.default_rng(seed)
    sizes = [3, *(int(n) for n in rng.integers(2, 9, rng.integers(1, 4))), 2]
    layers = [
        Layer(rng.standard_normal((n, m)), 2 * rng.standard_normal(n), rng.random(n) < 0.8) for m, n in itertools.pairwise(sizes)
    ]
    network, box = Network(tuple(layers)), Box.cube(-0.3, 0.3, 3)
    found = stability(network, box, method="lp")
    smaller = network.without_stable_units(found)
    points = box.sample(500, seed)
    assert np.allclose(network(points), smaller(points), atol=1e-12)
    assert smaller.relus == found.totals()["unstable"]
    unstable = np.concatenate([mask[layer.rectified] for mask, layer in zip(found.unstable, network.layers, strict=True)])
    assert np.array_equal(network.patterns(points)[:, unstable], smaller.patterns(points))


def test_a_dead_layer_leaves_one_zero_unit():
    network = Network.from_arrays([(np.ones((3, 2)), -10 * np.ones(3)), (np.ones((2, 3)), np.ones(2))])
    smaller = network.without_stable_units(stability(network, Box.cube(0, 1, 2)))
    assert smaller.shape == "2-1-2"
    assert smaller([0.5, 0.5]).tolist() == [1.0, 1.0]


def test_sparse_networks_lose_units_too():
    weight = scipy.sparse.csr_array(np.diag([1.0, -1.0, 1.0]))
    network = Network.from_arrays([(weight, [0.1, -0.1, -0.5]), (np.ones((1, 3)), None)])
    box = Box.cube(0, 1, 3)
    smaller = network.without_stable_units(stability(network, box))
    assert smaller.widths == (1,)
    assert np.allclose(network(box.sample(50)), smaller(box.sample(50)))


def test_json_has_every_bound():
    found = stability(by_hand(), Box(0, 1, dim=1), method="interval")
    record = json.loads(found.to_json())
    assert record["method"] == "interval"
    assert len(record["bounds"]) == 2
    assert record["layers"][0]["unstable"] == 1
    assert record["network"]["fingerprint"] == by_hand().fingerprint


def test_progress_counts_to_the_total():
    seen = []
    stability(by_hand(), Box(0, 1, dim=1), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1]
    assert {total for _, total in seen} == {by_hand().relus}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_out_of_time_keeps_what_is_proved():
    rng = np.random.default_rng(1)
    sizes = [20, 15, 15, 3]
    network = Network.from_arrays([(rng.standard_normal((n, m)), None) for m, n in itertools.pairwise(sizes)])
    box = Box.cube(-1, 1, 20)
    rushed = tighten(network, box, method="milp", seconds_per_unit=1e-6)
    loose = tighten(network, box, method="linear")
    assert rushed.unproved > 0
    values = network.preactivations(box.sample(2000))
    for number in range(3):
        assert (rushed.upper[number] >= values[number].max(axis=0)).all()
        assert (rushed.upper[number] <= loose.upper[number] + 1e-9).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda: stability(by_hand(), Box(0, 1, dim=1), method="magic"),
        lambda: stability(by_hand(), Box(0, 1, dim=1), seconds_per_unit=0),
        lambda: stability(by_hand(), Box(0, 1, dim=1), seconds_per_unit=float("nan")),
        lambda: by_hand().without_stable_units(stability(Network.from_arrays([([[1.0]], None)]), Box(0, 1, dim=1))),
        lambda: Stability(by_hand(), Box(0, 1, dim=1), PreactivationBounds((np.zeros(1),), (np.ones(1),), Method.LP)),
        lambda: PreactivationBounds((np.zeros(1),), (-np.ones(1),), Method.LP),
        lambda: PreactivationBounds((np.zeros(1),), (np.ones(2),), Method.LP),
    ],
)
def test_bad_options_get_a_clear_error(call):
    with pytest.raises(OptionError):
        call()


def test_a_domain_that_does_not_fit_is_refused():
    with pytest.raises(DomainError, match="2 inputs, but the network reads 1"):
        stability(by_hand(), Box(0, 1, dim=2))
    with pytest.raises(DomainError, match="empty"):
        stability(by_hand(), Polytope([[1.0]], [-1.0], Box(0, 1, dim=1)))


def test_the_stability_of_another_network_is_refused():
    other = Network.from_arrays(
        [(-by_hand().layers[0].dense(), -by_hand().layers[0].bias), (np.ones((3, 3)), None)], relu_output=True
    )
    with pytest.raises(OptionError, match="another network"):
        by_hand().without_stable_units(stability(other, Box(0, 1, dim=1)))
    with pytest.raises(OptionError, match="another network"):
        by_hand().without_stable_units(None)


def test_numbers_that_underflow_are_not_taken_for_zero():
    tiny = Network.from_arrays([([[1e-200]], [0.0])], relu_output=True)
    box = Box([-1e-200], [1e-200])
    assert stability(tiny, box).totals()["unstable"] == 1
    assert upper_bounds(tiny, box).empirical == 2


@pytest.mark.parametrize("method", list(Method))
def test_overflow_is_a_clear_error_without_warnings(method):
    network = Network.from_arrays([([[1e300]], [1e300]), ([[1e300]], [0.0])])
    with pytest.raises(NetworkError, match="layer 2: preactivations pass the largest floating-point number"):
        stability(network, Box(0, 1, dim=1), method=method)


def test_a_point_where_one_unit_is_exact_and_another_is_not_is_branched_on():
    """A node where the unit with the largest price has no gap left, while another has one."""
    first = ([[2, 2], [3, -1]], [1, -1])
    second = ([[2, 2], [0, 2], [1, 0], [1, 3]], [1, 0, -1, -2])
    network = Network.from_arrays([first, second, ([[-2, 0, 2, 1]], [2])], relu_output=True)
    found = stability(network, Box(-1, 1, dim=2)).bounds
    assert found.lower[2][0] == pytest.approx(-10.0, abs=1e-6)
    assert found.upper[2][0] == pytest.approx(0.0, abs=1e-6)
    assert found.unproved == 0


@pytest.mark.parametrize("moment", [4, 6, 7, 8, 9, 10, 11, 12])
def test_ctrl_c_returns_what_is_proved(moment):
    rng = np.random.default_rng(2)
    network = Network.from_arrays([(rng.standard_normal((6, 6)), None)] * 3, relu_output=True)
    box = Box.cube(-1, 1, 6)
    calls = []

    def pressed(*_):
        calls.append(1)
        if len(calls) == moment:
            raise KeyboardInterrupt

    rushed = tighten(network, box, progress=pressed)
    assert rushed.unproved > 0
    assert rushed.interrupted
    full = tighten(network, box)
    for number in range(3):
        assert (rushed.lower[number] <= full.lower[number]).all()
        assert (rushed.upper[number] >= full.upper[number]).all()


def test_ctrl_c_before_anything_is_proved_is_passed_on():
    def pressed(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tighten(by_hand(), Box(0, 1, dim=1), progress=pressed)


@pytest.mark.parametrize("verb", [tessella.polygons, tessella.estimate, tessella.regions, tessella.mipbound])
def test_ctrl_c_in_a_first_step_ends_what_would_follow(verb, monkeypatch):
    real = tightening._cheap

    def pressed(network, domain, found, stage, *others):
        if stage is not Method.INTERVAL:
            raise KeyboardInterrupt
        return real(network, domain, found, stage, *others)

    monkeypatch.setattr(tightening, "_cheap", pressed)
    with pytest.raises(KeyboardInterrupt):
        list(verb(by_hand(), Box(-1, 1, dim=by_hand().input_dim)))


def ends_of(bounds):
    return np.concatenate([*bounds.lower, *bounds.upper])


def test_the_result_does_not_depend_on_the_executor_or_its_size(processes):
    rng = np.random.default_rng(4)
    network = Network.from_arrays([(rng.standard_normal((9, 9)), rng.standard_normal(9))] * 3, relu_output=True)
    box = Box.cube(-1, 1, 9)
    alone = ends_of(tighten(network, box))
    with ThreadPoolExecutor(2) as threads:
        assert np.array_equal(alone, ends_of(tighten(network, box, executor=threads)))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as one:
        found = [ends_of(tighten(network, box, executor=executor)) for executor in (one, processes)]
    assert np.array_equal(found[0], found[1])
    # a process that has compiled the kernel itself rounds its last digits differently from those that load it from disk
    assert np.allclose(alone, found[0], rtol=1e-12, atol=1e-12)
