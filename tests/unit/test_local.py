"""`local`: what it refuses, how it ends early, and what its answer can do."""

from _thread import interrupt_main
from threading import Timer

import numpy as np
import pytest

import tessella
from tessella.nearby import local as module

NET = tessella.load([([[1.0, 0.0], [0.0, 1.0]], None), ([[1.0, -1.0]], [0.25])], relu_output=True)
POINTS = [[0.5, 0.5], [0.25, -1.0]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"points": [[0.5]]}, r"points have shape \(1, 1\)"),
        ({"points": np.zeros((0, 2))}, "expected one row per point"),
        ({"points": [[np.nan, 0]]}, "points holds nan"),
        ({"points": [["a", "b"]]}, "no real numbers"),
        ({"points": [[0, 0], [1]]}, "points cannot be read"),
        ({"radius": 0}, "radius is 0; a local count takes a positive number"),
        ({"radius": -1.0}, "takes a positive number"),
        ({"radius": np.nan}, "takes a positive number"),
        ({"radius": "a"}, "takes a positive number"),
        ({"radius": 1e-30}, "less than what floating-point numbers tell apart at point 0"),
        ({"norm": "l3"}, "takes one of l1, l2, linf"),
        ({"domain": (0, 1)}, r"point 1 lies outside of the domain \[0, 1\]\^2, as 1 of 2 do"),
        ({"domain": tessella.Polytope([[1.0, 1.0]], [3.0], tessella.Box(-2, 2, dim=2))}, "takes a box as domain"),
        ({"domain": (-2, 2), "subspace": 1}, "leave it out with subspace"),
        ({"subspace": 3}, "the network has 2 inputs"),
        ({"subspace": 0}, "a whole number of directions"),
        ({"subspace": [[1.0], [1.0]]}, "not orthonormal"),
        ({"subspace": [[1.0, 0.0]]}, r"subspace has shape \(1, 2\)"),
        ({"seconds": 0}, "takes a positive number"),
        ({"confidence": 1.5}, "confidence"),
        ({"workers": 0}, "whole number"),
    ],
)
def test_bad_input_ends_in_one_line(change, words):
    with pytest.raises(tessella.TessellaError, match=words) as raised:
        tessella.local(NET, **{"points": POINTS, "radius": 0.5, **change})
    assert "\n" not in str(raised.value)


def test_the_answer_is_a_table_and_comes_back_from_json():
    found = tessella.local(NET, POINTS, 0.5, domain=(-2, 2))
    assert found.counts == found.lower == found.upper == found.probable_lower == found.probable_upper == (2, 2)
    assert found.confidence == 1.0
    assert found.rows()[1]["distance_linf"] == found.distances[1]
    assert (len(found), found.units_lower, found.units_upper) == (2, (1, 1), (1, 1))
    again = tessella.Local.from_json(found.to_json())
    assert (again.to_json(), again.rows(), again.network, again.domain) == (found.to_json(), found.rows(), NET, found.domain)
    assert "2 linf balls" in found._repr_html_()
    assert repr(found).startswith("Local(2 of 2 linf balls of 0.5 counted, the median 2 regions, ")
    flat = tessella.local([([[1.0, 2.0]], None)], POINTS, 0.5, subspace=1)  # no ReLUs: no walls
    assert (flat.counts, flat.distances.tolist()) == ((1, 1), [np.inf, np.inf])
    assert tessella.Local.from_json(flat.to_json()).distances.tolist() == [np.inf, np.inf]


def test_a_point_on_a_wall_has_the_distance_0():
    net = tessella.load([(np.eye(3), None)], relu_output=True)
    found = tessella.local(net, np.zeros(3), 0.5)
    assert (found.counts, found.distances.tolist()) == ((8,), [0.0])


def test_images_are_flattened():
    net = tessella.load([(np.eye(4), None)], relu_output=True)
    assert tessella.local(net, np.full((2, 2, 2), 0.1), 0.5).counts == (16, 16)


def wide(seed=0):
    rng = np.random.default_rng(seed)
    sizes = [(40, 30), (40, 40), (5, 40)]
    return tessella.load([(rng.standard_normal(size), rng.standard_normal(size[0]) / 8) for size in sizes])


def test_time_ends_with_bounds():
    net, points = wide(), np.random.default_rng(1).random((6, 30))
    found = tessella.local(net, points[:1], 0.3, seconds=2.0)
    assert found.status == "time limit"
    assert None in found.counts
    rng = np.random.default_rng(2)
    for point, low, high in zip(points[:1], found.lower, found.upper, strict=True):
        seen = len(np.unique(net.patterns(rng.uniform(point - 0.3, point + 0.3, (500, 30))), axis=0))
        assert 1 <= low <= high
        assert 1 < seen <= high
    assert "time limit" in repr(found)
    assert "Not all balls" in found._repr_html_()
    assert found.confidence == 0.95
    assert "bounded with 95 % confidence" in repr(found)
    ends = zip(found.lower, found.probable_lower, found.probable_upper, found.upper, strict=True)
    assert all(low <= likely <= most <= high for low, likely, most, high in ends)
    again = tessella.Local.from_json(found.to_json())
    assert (again.probable_lower, again.probable_upper, again.confidence) == (found.probable_lower, found.probable_upper, 0.95)


def test_ctrl_c_returns_what_is_known(monkeypatch):
    net, points = wide(), np.random.default_rng(1).random((6, 30))
    whole, told = tessella.local(net, points, 0.005), []
    asked = module.ask

    def pressed(number, *rest):
        if number == 3:
            raise KeyboardInterrupt
        return asked(number, *rest)

    monkeypatch.setattr(module, "ask", pressed)
    found = tessella.local(net, points, 0.005, workers=1, progress=lambda *news: told.append(news))
    assert (found.status, told) == ("interrupted", [(1, 6), (2, 6), (3, 6)])
    assert found.counts[:3] == whole.counts[:3]
    assert found.counts[3:] == (None,) * 3
    assert all(low <= number <= high for low, number, high in zip(found.lower, whole.counts, found.upper, strict=True))


def test_ctrl_c_stops_balls_that_others_count():
    rng = np.random.default_rng(3)
    net = [(rng.normal(size=(24, 20)), rng.normal(size=24)), (rng.normal(size=(24, 24)), rng.normal(size=24))]
    pressed = Timer(1.0, interrupt_main)  # each ball would take years
    pressed.start()
    found = tessella.local(tessella.load(net, relu_output=True), np.zeros((3, 20)), 0.5, workers=2)
    assert found.status == "interrupted"
    assert found.counts == (None,) * 3


def test_workers_do_not_change_the_answer(processes):
    net, points = wide(), np.random.default_rng(1).random((6, 30))
    one = tessella.local(net, points, 0.01, workers=1)
    assert tessella.local(net, points, 0.01, workers=3).rows() == one.rows()
    assert tessella.local(net, points, 0.01, executor=processes).rows() == one.rows()
