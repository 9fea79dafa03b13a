"""Slices: what they are, and what is refused."""

import numpy as np
import pytest

import tessella
from tessella import Box, DomainError, Network, OptionError, Polytope

NETWORK = Network.from_arrays([(np.arange(12.0).reshape(3, 4) - 5.0, [0.5, -1.0, 2.0]), (np.ones((2, 3)), [0.0, 1.0])])
BOX = Box([0, -1, 0, 0.25], [1, 1, 2, 0.25])  # the last input is fixed
CUBE = Box(-1, 1, dim=4)


def test_a_slice_computes_what_the_network_does_there():
    points = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, -0.5, 0.5, -0.5], [-0.9, 0.1, 0.4, 0.0]])
    chosen = tessella.slice(NETWORK, points, CUBE)
    places = np.random.default_rng(0).uniform(-1, 1, (20, 2))
    np.testing.assert_allclose(chosen.network(places), NETWORK(chosen.lift(places)), atol=1e-12)
    np.testing.assert_allclose(chosen.lift(chosen.coordinates(points)), points, atol=1e-12)
    np.testing.assert_allclose(chosen.coordinates(points[0]), [0, 0], atol=1e-15)
    assert chosen.coordinates(points[1])[1] == pytest.approx(0.0, abs=1e-15)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    coordinates = chosen.coordinates(points)
    np.testing.assert_allclose(np.linalg.norm(coordinates[:, None] - coordinates[None], axis=2), distances, atol=1e-12)


def test_axes_keep_their_values():
    chosen = tessella.slice(NETWORK, domain=BOX, axes=(2, 1))
    assert chosen.domain == Box([0, -1], [2, 1])
    assert chosen.lift([1.5, 0.5]).tolist() == [0.5, 0.5, 1.5, 0.25]
    assert repr(chosen) == "Slice(inputs 2 and 1 of 4, on [0, 2] x [-1, 1])"
    assert (chosen.whole, chosen.within) == (NETWORK, BOX)
    moved = tessella.slice(NETWORK, domain=BOX, axes=[0], at=[9.0, 0.25, 0.5, 0.25])
    assert moved.lift([0.75]).tolist() == [0.75, 0.25, 0.5, 0.25]
    assert moved.describe() == "input 0"


def test_without_a_domain_the_points_say_how_far():
    line = tessella.slice(NETWORK, [[0, 0, 0, 0], [3, 0, 4, 0]])
    assert line.domain == Box([0.0], [5.0])
    assert line.within is None
    plane = tessella.slice(NETWORK, [[0, 0, 0, 0], [2, 0, 0, 0], [1, 1, 0, 0]])
    assert plane.domain == Box([0.0, 0.0], [2.0, 1.0])


@pytest.mark.parametrize("step", [1e-200, 5e-324, 1e100])
def test_points_may_be_very_near_or_far(step):
    line = tessella.slice(NETWORK, [[0, 0, 0, 0], [step, 0, 0, 0]], CUBE)
    assert line.basis[:, 0].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert line.domain == Box([-1.0], [1.0])
    plane = tessella.slice(NETWORK, [[0, 0, 0, 0], [step, 0, 0, 0], [0, 0, step, 0]], CUBE)
    assert plane.domain == Box([-1.0, -1.0], [1.0, 1.0])


def test_more_points_in_one_plane_are_welcome():
    square = [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 0, 0]]
    assert tessella.slice(NETWORK, square, CUBE).dim == 2


def test_the_domain_of_a_polytope_is_cut_too():
    within = Polytope([[1.0, 1.0, 0.0, 0.0]], [0.5], CUBE)
    chosen = tessella.slice(NETWORK, domain=within, axes=(0, 1))
    inside = chosen.domain.contains([[0.2, 0.2], [0.4, 0.2], [-1.0, 1.0], [1.0, -0.6]])
    assert inside.tolist() == [True, False, True, True]
    assert chosen.domain.contains([0.25 - 1e-9, 0.25])
    assert not chosen.domain.contains([0.25, 0.25])  # what rounds is rounded inward


def test_what_is_frozen_cannot_be_changed():
    chosen = tessella.slice(NETWORK, domain=CUBE, axes=(0, 1))
    with pytest.raises(ValueError, match="read-only"):
        chosen.basis[0, 0] = 2.0
    with pytest.raises(AttributeError):
        chosen.axes = (1, 2)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({}, OptionError, "through points, or along axes"),
        ({"points": [[0] * 4], "axes": (0, 1)}, OptionError, "through points, or along axes"),
        ({"points": [[0] * 4]}, OptionError, "one point gives no slice"),
        ({"points": [[0] * 3, [1] * 3]}, OptionError, "3 numbers each; the network reads 4"),
        ({"points": [[0] * 4, [0] * 4]}, OptionError, "the 2 points are equal"),
        ({"points": [[0] * 4, [1e308] * 4]}, OptionError, "the 2 points are too far apart"),
        ({"points": [[-1.7e308] * 4, [1.7e308] * 4]}, OptionError, "the 2 points are too far apart"),
        ({"points": [[0] * 4, [1] * 4, [2] * 4]}, OptionError, "lie on one line"),
        ({"points": [[0.1] * 4, [0.2] * 4, [0.3] * 4]}, OptionError, "lie on one line"),
        ({"points": [[0] * 4, [1e-9, 0, 0, 0], [0, 1, 0, 0]]}, OptionError, "lie too close to one line to tell which plane"),
        ({"points": np.eye(4)}, OptionError, "do not lie in one plane"),
        ({"points": [[np.nan] * 4, [1] * 4]}, OptionError, "must be finite"),
        ({"points": "ab"}, OptionError, "points"),
        ({"points": [[0] * 4, [1] * 4], "at": 0.0}, OptionError, "takes none"),
        ({"axes": (0, 4)}, OptionError, "no input 4: the network reads inputs 0 to 3"),
        ({"axes": (-1, 0)}, OptionError, "no input -1"),
        ({"axes": (1, 1)}, OptionError, "one or two different inputs"),
        ({"axes": ()}, OptionError, "one or two different inputs"),
        ({"axes": (0.5, 1)}, OptionError, "one or two different inputs"),
        ({"axes": "xy"}, OptionError, "whole numbers"),
        ({"axes": (0, 1), "at": [1.0, 2.0]}, OptionError, "expected one number, or 4"),
        ({"axes": (0, 1), "at": 2.0}, DomainError, "misses the domain: input 2 is 2 on all of it"),
        ({"points": [[0, 0, 2, 0], [1, 0, 2, 0]]}, DomainError, "misses the domain: input 2"),
        ({"points": [[2, 2, 0, 0], [3, 1, 0, 0]]}, DomainError, "misses the interior"),
        ({"points": [[2, 2, 0, 0], [3, 1, 0, 0], [2, 2, 1, 0]]}, DomainError, "misses the interior"),
    ],
)
def test_what_makes_no_slice_is_refused(given, error, words):
    with pytest.raises(error, match=words):
        tessella.slice(NETWORK, domain=CUBE, **given)


def test_fixed_inputs_stay_fixed():
    with pytest.raises(DomainError, match=r"input 3 cannot be an axis: the domain fixes it at 0\.25"):
        tessella.slice(NETWORK, domain=BOX, axes=(0, 3))
    with pytest.raises(DomainError, match=r"input 3 varies on it, and the domain fixes it at 0\.25"):
        tessella.slice(NETWORK, [[0, 0, 0, 0.25], [1, 0, 0, 0.5]], BOX)
    assert tessella.slice(NETWORK, [[0, 0, 0, 0.25], [1, 1, 1, 0.25]], BOX).domain.contains([0.5])


def test_other_things_are_refused():
    with pytest.raises(OptionError, match="needs a domain"):
        tessella.slice(NETWORK, axes=(0, 1))
    with pytest.raises(tessella.NetworkError, match="layer 1 is int"):
        tessella.slice([1, 2], [[0.0], [1.0]])
    with pytest.raises(OptionError, match=r"takes \(2,\) or \(points, 2\)"):
        tessella.slice(NETWORK, domain=CUBE, axes=(0, 1)).lift([1.0])
    with pytest.raises(OptionError, match="inputs have shape"):
        tessella.slice(NETWORK, domain=CUBE, axes=(0, 1)).coordinates([1.0])
