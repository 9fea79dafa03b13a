"""Boxes and polytopes: what they hold, and what they refuse."""

import json
from fractions import Fraction

import numpy as np
import pytest

from tessella import Box, DomainError, Polytope, TessellaError


def test_corners_broadcast():
    assert Box(0, 1, dim=3) == Box([0, 0, 0], [1, 1, 1]) == Box.cube(0, 1, 3) == Box(0, [1, 1, 1])
    assert hash(Box(0, 1, dim=3)) == hash(Box.cube(0, 1, 3))
    assert Box(0, 1, dim=3) != Box(0, 1, dim=2)


def test_around_a_point_within_a_box():
    box = Box.around([0.1, 0.9], 0.2, within=Box.cube(0, 1, 2))
    assert np.allclose(box.lower, [0.0, 0.7])
    assert np.allclose(box.upper, [0.3, 1.0])
    assert np.allclose(Box.around([0.0, 1.0], [1.0, 2.0]).lower, [-1.0, -1.0])


def test_fixed_inputs_are_counted():
    box = Box([0, 0.5, 0], [1, 0.5, 1])
    assert box.free_dim == 2
    assert box.free.tolist() == [True, False, True]
    assert repr(box) == "Box([0, 1] x [0.5, 0.5] x [0, 1], 1 fixed)"


def test_membership_and_samples():
    box = Box([-1, 2], [1, 3])
    points = box.sample(100, rng=1)
    assert box.contains(points).all()
    assert not box.contains([2.0, 2.5])
    assert np.array_equal(points, box.sample(100, rng=1))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Box(1, 0, dim=2), "empty: input 0"),
        (lambda: Box([0, 0], [1, -1]), "empty: input 1"),
        (lambda: Box(np.inf, np.inf, dim=2), "empty: input 0"),
        (lambda: Box([0.0, -np.inf], [1.0, -np.inf]), "empty: input 1"),
        (lambda: Box(np.inf, -np.inf, dim=2), "empty: input 0"),
        (lambda: Box(np.nan, 1, dim=2), "finite"),
        (lambda: Box([-np.inf, np.nan], np.inf), "finite"),
        (lambda: Box(-np.inf, np.inf), "dim=784"),
        (lambda: Box(0, np.inf, dim=2).sample(3), "nothing is uniform"),
        (lambda: Box(0, 1), "dim=784"),
        (lambda: Box([0, 0], [1, 1, 1]), "lower has 2 numbers, upper 3"),
        (lambda: Box([0, 0], [1, 1], dim=3), "dim is 3"),
        (lambda: Box([], []), "at least one input"),
        (lambda: Box(0, 1, dim=-1), "whole number"),
        (lambda: Box(0, 1, dim=1.5), "whole number"),
        (lambda: Box(np.zeros((2, 2)), 1), "flatten"),
        (lambda: Box("a", 1, dim=1), "no real numbers"),
        (lambda: Box(-1.7e308, 1.7e308, dim=1), "wider"),
        (lambda: Box.around([0.0], -1.0), "at least 0"),
        (lambda: Box.around([0.0, 1.0], [1.0, 1.0, 1.0]), "one per input"),
        (lambda: Box.around([0.0, 1.0], 1.0, within=Box.cube(0, 1, 3)), "3 inputs"),
        (lambda: Box.around([5.0], 1.0, within=Box.cube(0, 1, 1)), "empty"),
        (lambda: Box.cube(0, 1, 2).contains([1.0]), "points have shape"),
    ],
)
def test_bad_boxes_get_a_clear_error(make, words):
    with pytest.raises(DomainError, match=words):
        make()


def test_polytope_has_an_interior_point():
    triangle = Polytope([[1.0, 1.0]], [1.0], Box.cube(0, 1, 2))
    assert triangle.contains(triangle.centre)
    assert (triangle.centre > 0).all()
    assert triangle.centre.sum() < 1
    assert triangle.dim == 2
    assert triangle.contains([[0.2, 0.2], [0.8, 0.8]]).tolist() == [True, False]


def test_polytope_finds_its_own_box():
    triangle = Polytope([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1.0, 0.0, 0.0])
    assert np.allclose(triangle.box.lower, 0.0, atol=1e-5)
    assert np.allclose(triangle.box.upper, 1.0, atol=1e-5)
    assert (triangle.box.lower <= 0).all()
    assert (triangle.box.upper >= 1).all()


def test_polytope_in_many_dimensions_with_fixed_inputs():
    lower, upper = np.zeros(300), np.ones(300)
    upper[:100] = 0.0
    polytope = Polytope(np.ones((1, 300)), [10.0], Box(lower, upper))
    assert polytope.free_dim == 200
    assert (polytope.centre[100:] > 0).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Polytope([[1.0]], [-1.0], Box.cube(0, 1, 1)), "is empty"),
        (lambda: Polytope([[1.0]], [0.0], Box.cube(0, 1, 1)), "no interior"),
        (lambda: Polytope([[1.0], [-1.0]], [0.0, -1.0], Box(-np.inf, np.inf, dim=1)), "is empty"),
        (lambda: Polytope([[1.0], [-1.0]], [0.0, 0.0], Box(-np.inf, np.inf, dim=1)), "no interior"),
        (lambda: Polytope([[0.0, 0.0]], [-1.0], Box(-np.inf, np.inf, dim=2)), "is empty"),
        (lambda: Polytope([[1.0], [-1.0]], [0.0, -1.0]), "is empty"),
        (lambda: Polytope([[1.0, 1.0]], [1.0, 2.0], Box.cube(0, 1, 2)), "one per inequality"),
        (lambda: Polytope([[1.0, 1.0]], [1.0], Box.cube(0, 1, 3)), "3 inputs"),
        (lambda: Polytope([[np.nan, 1.0]], [1.0], Box.cube(0, 1, 2)), "finite"),
        (lambda: Polytope([1.0, 1.0], [1.0], Box.cube(0, 1, 2)), "expected 2 dimensions"),
        (lambda: Polytope([[0.0, 0.0]], [-1.0], Box.cube(0, 1, 2)), "is empty"),
        (lambda: Polytope(np.ones((1, 0)), [1.0]), "at least one input"),
    ],
)
def test_bad_polytopes_get_a_clear_error(make, words):
    with pytest.raises(DomainError, match=words):
        make()


def test_ends_may_be_infinite():
    space, half = Box(-np.inf, np.inf, dim=3), Box([0, -np.inf, 2], [np.inf, 1, 2])
    assert (space.bounded, half.bounded, Box(0, 1, dim=2).bounded) == (False, False, True)
    assert [box.describe() for box in (space, half, Box(0, np.inf, dim=2), Box(-np.inf, np.inf, dim=1))] == [
        "all of R^3",
        "[0, inf) x (-inf, 1] x [2, 2]",
        "[0, inf)^2",
        "all of R",
    ]
    assert half.free_dim == 2
    assert half.contains([[1e300, -1e300, 2.0], [1.0, 2.0, 2.0]]).tolist() == [True, False]
    assert half.to_dict()["lower"] == [0.0, None, 2.0]
    assert json.loads(json.dumps(half.to_dict(), allow_nan=False))["upper"] == [None, 1.0, 2.0]
    assert space == Box([-np.inf] * 3, np.inf)


def test_polytopes_may_be_unbounded():
    wedge = Polytope([[1.0, 1.0], [-1.0, 1.0]], [1.0, 1.0])
    assert repr(wedge) == "Polytope(2 inequalities in all of R^2)"
    assert not wedge.bounded
    assert wedge.contains(wedge.centre)
    assert wedge.contains([0.0, -1e300])
    far = Polytope([[-1.0, 0.0]], [-1e9], Box([-np.inf, 0.0], [np.inf, 1.0]))
    assert far.centre[0] > 1e9
    assert 0.0 < far.centre[1] < 1.0


@pytest.mark.parametrize(
    ("matrix", "offset", "box"),
    [
        ([[-0.64], [0.032]], [-2.4e-8, 4.6e-12], Box.cube(0, 1, 1)),  # from 3.8e-8 on, up to 1.4e-10: a solver sees no difference
        ([[-3.0], [3.0], [1.0]], [-577458.0, 577458.0, 192486.00000000373], Box.cube(192486, 192487, 1)),  # one point
        ([[0.8827800750732422, 0.39], [-0.8827800750732422, -0.39]], [0.1, -0.1], Box.cube(-1, 1, 2)),  # a segment
        ([[1.0, 1.0], [-1.0, -1.0]], [0.0, 5e-10], Box.cube(-1, 1, 2)),  # thinner than the tolerance
    ],
)
def test_no_interior_is_noticed_where_a_solver_tolerates_it(matrix, offset, box):
    with pytest.raises(DomainError, match="no interior"):
        Polytope(matrix, offset, box)


@pytest.mark.parametrize("width", [1e-8, 5e-9])
@pytest.mark.parametrize("far", [0.0, 0.1, 0.7])
def test_a_thin_polytope_has_a_point_inside_exactly(width, far):
    row = [0.3, 0.7, 0.1]
    thin = Polytope([row, [-entry for entry in row]], [far + width, -far], Box.cube(0, 2, 3))
    along = sum(Fraction(entry) * Fraction(place) for entry, place in zip(row, thin.centre.tolist(), strict=True))
    assert Fraction(far) < along < Fraction(far + width)
    assert ((thin.centre > 0.0) & (thin.centre < 2.0)).all()


def test_domains_are_read_only():
    box = Box.cube(0, 1, 2)
    with pytest.raises(ValueError, match="read-only"):
        box.lower[0] = 3.0


@pytest.mark.parametrize("size", [1e-10, 1e16])
def test_a_square_of_any_scale_is_found(size):
    square = Polytope(size * np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), size * np.ones(4))
    assert np.allclose(square.box.lower, -1.0)
    assert np.allclose(square.box.upper, 1.0)


def test_the_computed_box_never_cuts_the_polytope():
    """A coefficient of 1e-9 is dropped by solvers, but here it moves an end from 0 to 0.1."""
    sheared = Polytope([[1, 1e-9], [-1, 0], [0, 1], [0, -1]], [0, 5, 1e8, 1e8])
    assert sheared.contains([0.09, -9.9e7])
    assert sheared.box.upper[0] >= 0.1


@pytest.mark.parametrize("seed", range(40))
def test_the_computed_box_holds_every_vertex(seed):
    """Vertices of random polygons by solving pairs of rows, over many scales."""
    rng = np.random.default_rng(seed)
    angles = np.linspace(0, 2 * np.pi, 6, endpoint=False) + rng.uniform(0, 0.5, 6)
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    limits = rng.uniform(0.5, 2.0, 6)
    scale = 10.0 ** rng.uniform(-4, 4, 6)
    stretch = 10.0 ** rng.uniform(-3, 3, 2)
    polytope = Polytope(rows * scale[:, None] * stretch, limits * scale)
    for first in range(6):
        for second in range(first):
            pair = rows[[first, second]]
            if abs(np.linalg.det(pair)) > 1e-3:
                vertex = np.linalg.solve(pair, limits[[first, second]])
                if (rows @ vertex <= limits + 1e-12).all():
                    assert (vertex / stretch <= polytope.box.upper * (1 + 1e-12) + 1e-300).all()
                    assert (vertex / stretch >= polytope.box.lower * (1 + 1e-12) - 1e-300).all()


def test_what_is_no_domain_is_refused():
    import tessella

    network = tessella.load([([[1.0]], None)])
    for call in (tessella.stability, tessella.upper_bounds, tessella.empirical_bound):
        with pytest.raises(
            DomainError, match="a domain was expected, not an object of type int; give a Box, a Polytope, an interval"
        ):
            call(network, 1)
    with pytest.raises(tessella.UnsupportedModel, match="an object of type int is no network"):
        tessella.stability(1, Box(0, 1, dim=1))
    with pytest.raises(DomainError, match="must be a Box"):
        Polytope([[1.0]], [1.0], (0, 1))
    with pytest.raises(DomainError, match="too large"):
        Box.cube(0, 1, dim=10**12)


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.0, 2**0.5, "[0, 1.41421]"),
        (1e6, 1e6 + 1, "[1000000, 1000001]"),
        (999_999.0, 1_000_001.0, "[999999, 1000001]"),
        (1.0, 1.000000000000001, "[1, 1.000000000000001]"),
        (0.0, 5e-324, "[0, 4.94066e-324]"),
    ],
)
def test_the_ends_of_a_box_can_be_told_apart(low, high, text):
    assert Box(low, high, dim=1).describe() == text


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda box: box.sample(-1), "count must be a whole number of at least 0, got -1"),
        (lambda box: box.sample(2.5), "count must be a whole number"),
        (lambda box: box.contains("ab"), "points cannot be read as numbers"),
        (lambda _: Box.around([0.0, 0.0], 0.1, within=(0, 1)), "within must be a Box, not an object of type tuple"),
        (lambda _: Box(np.nan, 1, dim=2), "lower holds nan; ends of a box are finite numbers, or -inf and inf"),
        (lambda _: Polytope([[1.0, 0.0]], [1.0, 2.0]), "matrix has 1 row, but offset has 2 numbers"),
    ],
)
def test_odd_questions_get_a_clear_error(ask, words):
    with pytest.raises(TessellaError, match=words):
        ask(Box(0, 1, dim=2))


def test_the_smallest_coefficients_are_walls_far_away():
    assert Polytope([[5e-324, 0.0]], [1.0], Box(0, 1, dim=2)).centre.tolist() == [0.5, 0.5]
