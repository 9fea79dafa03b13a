"""The range of every unit, linear and output units among them: options, limits, JSON, and the table on the terminal."""

import itertools
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tessella import Box, Layer, Network, NetworkError, OptionError, Polytope, stability
from tessella.cli.outputs import format_end
from tessella.methods import Method, Units
from tessella.preactivation import PreactivationBounds
from tessella.result import Side
from tessella.stability import Stability
from tessella.tightening import tighten


def random_network(seed=0, sizes=(4, 8, 8, 3)):
    rng = np.random.default_rng(seed)
    return Network.from_arrays([(rng.standard_normal((n, m)), rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)])


def test_the_top_of_a_tent_is_found_though_no_relu_is_there():
    # relu(x) - 2 relu(x - 1) on [0, 2] is at most 1; linear bounds say 2
    first = Layer([[1.0], [1.0]], [0.0, -1.0])
    network, box = Network((first, Layer([[1.0, -2.0]], [0.0], rectified=False))), Box(0, 2, dim=1)
    loose, exact = stability(network, box), stability(network, box, units="all")
    assert (loose.bounds.units, exact.bounds.units) == (Units.UNSTABLE, Units.ALL)
    assert loose.outputs[1][0] > 1.9
    assert np.allclose(exact.outputs, [[0.0], [1.0]], atol=1e-6)
    assert exact.bounds.unproved == 0


def test_stable_units_are_tightened_on_both_sides():
    # the second layer's unit is never active; its smallest value is -3, that of intervals is -4
    network = Network((Layer([[1.0], [-1.0]], [0.0, 0.0]), Layer([[-2.0, -2.0], [1.0, 1.0]], [-1.0, 5.0])))
    box = Box(-1, 1, dim=1)
    found = stability(network, box, units="all")
    assert found.totals()["inactive"] == 1
    assert np.allclose((found.bounds.lower[1], found.bounds.upper[1]), [[-3.0, 5.0], [-1.0, 6.0]], atol=1e-6)


def test_all_units_are_never_wider_and_known_bounds_are_kept():
    network, box = random_network(), Box.cube(-1, 1, 4)
    some = stability(network, box)
    every = stability(network, box, units="all", known=some)
    again = stability(network, box, known=every)
    for before, after in ((some, every), (every, again)):
        for number in range(3):
            assert (after.bounds.lower[number] >= before.bounds.lower[number]).all()
            assert (after.bounds.upper[number] <= before.bounds.upper[number]).all()
    assert [mask.tolist() for mask in some.unstable] == [mask.tolist() for mask in every.unstable]


@pytest.mark.parametrize("method", list(Method))
def test_each_method_takes_all_units(method):
    network, box = random_network(1), Box.cube(-1, 1, 4)
    found = tighten(network, box, method=method, units="all")
    for number, values in enumerate(network.preactivations(box.sample(2000, 1))):
        assert (found.lower[number] <= values.min(axis=0)).all()
        assert (found.upper[number] >= values.max(axis=0)).all()


def test_a_time_limit_keeps_what_is_known_and_says_how_many_units_are_left():
    network, box = random_network(2, (20, 15, 15, 3)), Box.cube(-1, 1, 20)
    rushed = tighten(network, box, units="all", seconds=1e-6)
    values = network.preactivations(box.sample(2000))
    assert rushed.unproved >= 3
    for number in range(3):
        assert (rushed.upper[number] >= values[number].max(axis=0)).all()
    each = tighten(network, box, units="all", seconds_per_unit=1e-6)
    assert each.unproved > 0


def test_all_units_of_a_polytope_s_first_layer_are_exact():
    box = Box.cube(0, 1, 2)
    domain = Polytope([[1.0, 1.0]], [1.0], box)
    network = Network((Layer([[1.0, 1.0], [-1.0, -1.0]], [0.5, -1.0], rectified=[True, False]),))
    found = stability(network, domain, units="all")
    assert np.allclose(found.bounds.lower[0], [0.5, -2.0], atol=1e-6)
    assert np.allclose(found.bounds.upper[0], [1.5, -1.0], atol=1e-6)
    rushed = tighten(network, domain, units="all", seconds=1e-9)
    assert rushed.unproved == 2


def test_networks_without_relus_and_points():
    network = Network((Layer([[1.0, -1.0]], [0.25], rectified=False), Layer([[2.0]], [0.0], rectified=False)))
    for box, ends in ((Box.cube(0, 1, 2), (-1.5, 2.5)), (Box([0.5, 0.5], [0.5, 0.5]), (0.5, 0.5))):
        found = stability(network, box, units="all")
        assert np.allclose([end[0] for end in found.outputs], ends, atol=1e-9)
        assert found.bounds.unproved == 0


def test_unbounded_domains_have_the_ends_of_interval_arithmetic():
    found = stability(random_network(), Box(-np.inf, np.inf, dim=4), units="all")
    assert found.bounds.method is Method.INTERVAL
    assert np.isneginf(found.outputs[0]).all()


def test_json_says_which_units_and_reads_old_records():
    network, box = random_network(), Box.cube(-1, 1, 4)
    found = stability(network, box, units="all")
    record = json.loads(found.to_json())
    assert record["units"] == "all"
    read = Stability.from_json(found.to_json(), network=network)
    assert read.bounds.units is Units.ALL
    assert np.array_equal(read.outputs, found.outputs)
    with pytest.raises(NetworkError, match="hand it over"):
        _ = Stability.from_json(found.to_json()).outputs
    del record["units"]
    assert Stability.from_dict(record).bounds.units is Units.UNSTABLE
    assert PreactivationBounds.from_json(found.bounds.to_json()).units is Units.ALL


def test_the_result_does_not_depend_on_the_executor():
    network, box = random_network(3), Box.cube(-1, 1, 4)
    alone = stability(network, box, units="all").outputs
    with ThreadPoolExecutor(2) as threads:
        assert np.array_equal(alone, stability(network, box, units="all", executor=threads).outputs)


def test_ctrl_c_returns_what_is_proved():
    network, box, calls = random_network(4), Box.cube(-1, 1, 4), []

    def pressed(*_):
        calls.append(threading.get_ident())
        if len(calls) == 9:
            raise KeyboardInterrupt

    rushed = stability(network, box, units="all", progress=pressed)
    assert rushed.bounds.interrupted
    assert rushed.bounds.unproved > 0
    full = stability(network, box, units="all")
    assert (rushed.outputs[0] <= full.outputs[0]).all()
    assert (rushed.outputs[1] >= full.outputs[1]).all()


@pytest.mark.parametrize("units", ["every", 3, None])
def test_other_units_are_refused_in_one_line(units):
    with pytest.raises(OptionError, match="units") as caught:
        stability(random_network(), (0, 1), units=units)
    assert "\n" not in str(caught.value)


def test_ends_are_rounded_outward():
    rng = np.random.default_rng(0)
    for value in [*rng.standard_normal(200).tolist(), 1e300, 1e-300, 123456789.0, 100.0, 0.0, 1 / 3]:
        assert float(format_end(value, Side.LOWER)) <= value <= float(format_end(value, Side.UPPER))
    assert (format_end(-np.inf, Side.LOWER), format_end(np.inf, Side.UPPER)) == ("-infinite", "infinite")
    assert format_end(100.0, Side.UPPER) == "100"
