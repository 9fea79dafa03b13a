"""The compiled parts of the walk over corners, called directly: against numpy, SciPy's intersections of half-spaces, and brute force."""

from itertools import combinations, pairwise, product

import numpy as np
import pytest
from scipy.spatial import HalfspaceIntersection

from tessella import Box, Network
from tessella.partition.exact import Exact
from tessella.partition.tree import Node, Tree
from tessella.vertices.corners import bits, cut, edges, is_simple, keep_side, tag, value_range
from tessella.vertices.errors import row_error, worst_ratio
from tessella.vertices.outlines import draw
from tessella.vertices.sections import count_parts
from tessella.vertices.state import IS_APEX, new_sides
from tessella.vertices.units import decide, enter, known_state
from tessella.vertices.walker import Vertices

DIMENSIONS = [1, 2, 3, 4, 5, 6]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def random_tree(rng, dim, widths):
    sizes = [dim, *widths]
    layers = [(rng.standard_normal((n, m)), 0.3 * rng.standard_normal(n)) for m, n in pairwise(sizes)]
    return Tree(Network.from_arrays(layers, relu_output=True), Box.cube(-1.0, 1.0, dim))


def at_root(tree, drawn=0):
    """A walk whose cell 0 is the domain, which enters the first layer next."""
    walker = Vertices(tree, drawn)
    assert walker._begin()
    walker._load(Node())
    return walker._walk


def split(walk, normal, constant, side, t=0):
    """Cut cell 0 by a plane and keep one side as cell t; how many corners were added."""
    cells, planes, dim = walk.cells, walk.planes, len(normal)
    plane = cells.cuts[0] + 1
    planes.normals[plane], planes.constants[plane] = normal, constant
    planes.errors[plane], planes.sizes[plane] = 1e-15, np.abs(normal).sum() + abs(constant)
    added = cut(0, 1e-12, False, cells, planes, walk.sides)
    assert added >= dim
    keep_side(0, t, side, added, 1e-12, cells, planes, walk.sides)
    return added


def corners(walk, s=0):
    return walk.cells.points[s, :, : walk.cells.corners[s]].T


def same_points(one, two):
    one, two = (points[np.lexsort(np.round(points, 6).T)] for points in (one, two))
    return one.shape == two.shape and np.allclose(one, two, atol=1e-7)


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_ranges_of_values(rng, dim):
    points, rows = rng.standard_normal((dim, 40)), rng.standard_normal((dim + 1, 5))
    values = rows[:-1].T @ points + rows[-1][:, None]
    for k, (begin, end) in product(range(5), [(0, 40), (1, 7), (3, 4)]):
        found = value_range(points, begin, end, rows, k)
        assert found == pytest.approx((values[k, begin:end].min(), values[k, begin:end].max()))


def test_sets_of_walls():
    assert [bits(walls) for walls in (0, 1, 0b1011, IS_APEX - 1)] == [0, 1, 3, 62]
    assert is_simple(0b111111, 8)  # a cube
    assert not is_simple(0b11111, 8)


@pytest.mark.parametrize("dim", [3, 4, 5, 6])
def test_the_tags_of_a_polytope_cancel(dim):
    tags = [tag(sum(1 << (2 * c + end) for c, end in enumerate(ends))) for ends in product((0, 1), repeat=dim)]
    assert np.bitwise_xor.reduce(tags) == 0
    assert np.bitwise_xor.reduce(tags[1:]) != 0


@pytest.mark.parametrize("dim", [2, 3, 4, 5])
def test_edges_between_the_sides_of_a_plane(rng, dim):
    walls = [sum(1 << (2 * c + end) for c, end in enumerate(ends)) for ends in product((0, 1), repeat=dim)]
    above = rng.random(len(walls)) < 0.5
    sides = new_sides(64)
    for name, there in (("above", above), ("under", ~above)):
        numbers = np.flatnonzero(there)
        getattr(sides, name)[: len(numbers)] = numbers
        getattr(sides, f"{name}_walls")[: len(numbers)] = np.array(walls)[numbers]
    found = edges(int(above.sum()), int((~above).sum()), dim, 64, sides)
    pairs = {tuple(sorted((int(v), int(w)))) for v, w in zip(sides.first[:found], sides.second[:found], strict=True)}
    expected = {
        (v, w)
        for v, w in combinations(range(len(walls)), 2)
        if above[v] != above[w] and (walls[v] & walls[w]).bit_count() == dim - 1
    }
    assert pairs == expected
    if found > 3:
        assert edges(int(above.sum()), int((~above).sum()), dim, 3, sides) == 3


@pytest.mark.parametrize("dim", [2, 3, 4, 5, 6])
def test_parts_have_the_corners_of_their_half_spaces(rng, dim):
    walk = at_root(random_tree(rng, dim, [3]))
    halves = [[*sign * axis, -1.0] for axis in np.eye(dim) for sign in (-1.0, 1.0)]
    for _ in range(4):
        normal, constant = rng.standard_normal(dim), 0.2 * rng.standard_normal()
        split(walk, normal, constant, 1.0)
        halves.append([*-normal, -constant])
        inside = corners(walk).mean(axis=0)
        assert same_points(corners(walk), HalfspaceIntersection(np.array(halves), inside).intersections)
        assert 0.0 < walk.cells.ratio[0] == worst_ratio(0, walk.cells, walk.planes) < 1e-10


def test_both_parts_share_the_corners_of_the_cut(rng):
    walk = at_root(random_tree(rng, 3, [3]))
    normal = np.array([1.0, 0.5, 0.25])
    added = split(walk, normal, 0.1, 1.0, t=1)
    keep_side(0, 0, -1.0, added, 1e-12, walk.cells, walk.planes, walk.sides)
    values = [corners(walk, s) @ normal + 0.1 for s in (0, 1)]
    assert values[0].max() == pytest.approx(0.0, abs=1e-12)
    assert values[1].min() == pytest.approx(0.0, abs=1e-12)
    assert [np.isclose(one, 0.0).sum() for one in values] == [added, added]
    assert walk.cells.cuts.tolist()[:2] == [7, 7]


def test_a_cell_whose_walls_are_inexact_is_thin(rng):
    walk = at_root(random_tree(rng, 2, [3]))
    split(walk, np.array([1.0, 0.0]), -1.0 + 1e-9, 1.0)
    assert 0.0 < walk.cells.ratio[0] < 0.125
    walk.planes.errors[walk.cells.cuts[0]] = 1e-8
    assert worst_ratio(0, walk.cells, walk.planes) == 1.0


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_units_with_one_sign_are_settled_and_composed(rng, dim):
    tree = random_tree(rng, dim, [12, 7])
    walk = at_root(tree)
    layers, cells, path, work = walk.layers, walk.cells, walk.path, walk.work
    enter(0, layers, cells, path, work)
    decide(0, layers, cells, walk.planes, path, work, walk.residues)
    weight, bias = tree.network.layers[0].dense(), tree.network.layers[0].bias
    values = weight @ corners(walk).T + bias[:, None]
    cuts = (values.min(axis=1) < 0.0) & (values.max(axis=1) > 0.0)
    waiting = path.places[0, cells.waiting[0, : cells.undecided[0]]]
    assert sorted(waiting.tolist()) == np.flatnonzero(cuts).tolist()
    active = ~cuts & (values.min(axis=1) > 0.0)
    assert (path.pattern[0, ~cuts] == active[~cuts]).all()
    after = tree.network.layers[1].dense()[:, active]
    assert np.allclose(cells.below[0, :dim, :7].T, after @ weight[active])
    assert np.allclose(cells.below[0, dim, :7], after @ bias[active] + tree.network.layers[1].bias)
    if cuts.any():
        assert (work.low, work.high) == pytest.approx((values[waiting[0]].min(), values[waiting[0]].max()))


def test_errors_of_rows_count_every_sum_before_them(rng):
    tree = random_tree(rng, 2, [4, 3, 2])
    walk = at_root(tree)
    layers, path, work = walk.layers, walk.path, walk.work
    path.pattern[:] = 1
    path.own[:] = 1e-16, 2e-16, 4e-16
    own = [layers.reach[k, :n] * path.own[k] + layers.slack[k, :n] for k, n in enumerate((4, 3, 2))]
    second, third = (layer.dense() for layer in tree.network.layers[1:])
    expected = own[2] + np.abs(third) @ own[1] + np.abs(third @ second) @ own[0]
    assert [row_error(2, i, layers, path, work) for i in (0, 1)] == pytest.approx((2.0 * expected).tolist())


def test_signs_that_weights_prove():
    layers = [(np.eye(2), np.zeros(2)), ([[1.0, 2.0], [-1.0, 0.0], [1.0, -1.0]], [0.5, 0.0, 0.0])]
    walk = at_root(Tree(Network.from_arrays(layers, relu_output=True), Box.cube(-1.0, 1.0, 2)))
    walk.path.pattern[0, :2] = 1
    walk.path.places[1, :3] = 0, 1, 2
    assert [known_state(1, k, walk.layers, walk.path) for k in range(3)] == [1, 0, -1]
    walk.path.pattern[0, 1] = 0
    assert known_state(1, 2, walk.layers, walk.path) == 1


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_parts_of_a_cell_by_sections(rng, dim):
    for count in (1, 2, 5, 8):
        tree = random_tree(rng, dim, [count])
        walk = at_root(tree)
        enter(0, walk.layers, walk.cells, walk.path, walk.work)
        decide(0, walk.layers, walk.cells, walk.planes, walk.path, walk.work, walk.residues)
        if walk.cells.undecided[0]:
            assert count_parts(0, walk.cells, walk.path, walk.sections, walk.sides) == Exact(tree).count(b"")


def test_lines_through_one_point_are_not_counted_by_sections():
    tree = Tree(Network.from_arrays([([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0] * 3)], relu_output=True), Box(-1, 1.5, dim=2))
    walk = at_root(tree)
    walk.cells.apex[0] = 0
    enter(0, walk.layers, walk.cells, walk.path, walk.work)
    decide(0, walk.layers, walk.cells, walk.planes, walk.path, walk.work, walk.residues)
    assert count_parts(0, walk.cells, walk.path, walk.sections, walk.sides) == -1


def test_corners_are_drawn_in_order(rng):
    walk = at_root(random_tree(rng, 2, [3]), drawn=4)
    for angle in (0.3, 2.5, 4.4):
        split(walk, np.array([np.cos(angle), np.sin(angle)]), 0.6, 1.0)
    draw(0, walk.layers, walk.cells, walk.planes, walk.path, walk.drawing, walk.work)
    drawing = walk.drawing
    found = drawing.corners[: drawing.placed]
    assert (drawing.regions, drawing.sizes[0]) == (1, walk.cells.corners[0])
    assert same_points(found, corners(walk))
    steps = np.roll(found, -1, axis=0) - found
    after = np.roll(steps, -1, axis=0)
    assert (steps[:, 0] * after[:, 1] - steps[:, 1] * after[:, 0] > 0.0).all()  # always to the left
    assert (drawing.borders[: drawing.placed] == -1).all()
