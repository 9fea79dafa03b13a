"""Regions counted by the corners of cells, against exact arithmetic and linear programs."""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import pairwise
from math import comb

import numpy as np
import pytest
from scipy.optimize import linprog

from helpers.brute_force import count_regions
from helpers.odd_networks import random_case
from tessella import Box, Layer, Network, Polytope
from tessella.parallel import Stop
from tessella.partition.exact import Exact
from tessella.partition.tree import Node, Tree
from tessella.vertices import walker as cells
from tessella.vertices.walker import Vertices

ROOT = (Node(),)


def walked(tree, nodes=ROOT):
    return Vertices(tree).advance(nodes, 1e9, Stop())


def counted(tree):
    """What is walked, and what exact arithmetic finds where that was not clear."""
    found, exact = walked(tree), Exact(tree)
    assert not found.open
    return found.regions + sum(exact.count(prefix) for prefix in found.thin)


def single(weight, bias, domain=None):
    """One layer of ReLUs."""
    network = Network.from_arrays([(weight, bias)], relu_output=True)
    return Tree(network, domain or Box.cube(-1.0, 1.0, network.input_dim))


def random_network(rng, dim, widths, *, digits=None, biases=True):
    layers, before = [], dim
    for width in widths:
        weight, bias = rng.standard_normal((width, before)), 0.5 * rng.standard_normal(width) * biases
        if digits:
            weight, bias = np.round(weight * digits) / digits, np.round(bias * digits) / digits
        layers.append((weight, bias))
        before = width
    return Network.from_arrays(layers, relu_output=True)


# --- oracles, which share no code with the walk


def exact_count(tree):
    """For one or two inputs: polygons (or segments, as polygons without width) with rational corners, split by one unit after the other."""
    ends = list(zip(map(Fraction, tree.domain.box.lower), map(Fraction, tree.domain.box.upper), strict=True))
    dim = len(ends)
    turns = [(0,), (1,)] if dim == 1 else [(0, 0), (1, 0), (1, 1), (0, 1)]
    polygon = [tuple(ends[axis][turn[axis]] for axis in range(dim)) for turn in turns]
    inputs = [[Fraction(0), *(Fraction(int(axis == other)) for other in range(dim))] for axis in range(dim)]
    pieces = [(polygon, inputs)]
    for layer in tree.network.layers:
        pieces = [part for piece in pieces for part in through(layer, *piece)]
    return len(pieces)


def through(layer, polygon, inputs):
    rows = [[Fraction(bias), *[Fraction(0)] * (len(inputs[0]) - 1)] for bias in layer.bias]
    for row, weights in zip(rows, layer.dense(), strict=True):
        for weight, entry in zip(weights, inputs, strict=True):
            row[:] = [value + Fraction(weight) * part for value, part in zip(row, entry, strict=True)]
    pieces = [(polygon, [])]
    for row, rectified in zip(rows, layer.rectified, strict=True):
        zero = [Fraction(0)] * len(row)
        if not rectified:
            pieces = [(part, [*outputs, row]) for part, outputs in pieces]
        elif not any(row[1:]):
            pieces = [(part, [*outputs, row if row[0] > 0 else zero]) for part, outputs in pieces]
        else:
            other = [-value for value in row]
            sides = [(clipped(part, row), [*outputs, row]) for part, outputs in pieces]
            sides += [(clipped(part, other), [*outputs, zero]) for part, outputs in pieces]
            pieces = [side for side in sides if side[0]]
    return pieces


def clipped(polygon, row):
    """The part of a polygon where a row is positive; empty if it is nowhere."""
    values = [row[0] + sum(a * x for a, x in zip(row[1:], corner, strict=True)) for corner in polygon]
    result = []
    for number, (corner, value) in enumerate(zip(polygon, values, strict=True)):
        last, before = polygon[number - 1], values[number - 1]
        if value * before < 0:
            result.append(tuple(x + value / (value - before) * (y - x) for x, y in zip(corner, last, strict=True)))
        if value >= 0:
            result.append(corner)
    return result if max(values) > 0 else []


def linprog_count(network, dim):
    """A walk with one linear program per side, for networks in general position on [-1, 1]^dim."""

    def below(layers, rows, done, inputs):
        if not layers:
            return 1
        weight, bias = layers[0].dense() @ inputs, layers[0].bias
        row = weight[len(done)].copy()
        row[-1] += bias[len(done)]
        total = 0
        for side in (1.0, -1.0):
            parts, states = [*rows, side * row], [*done, side > 0]
            if exists(parts):
                if len(states) < len(bias):
                    total += below(layers, parts, states, inputs)
                else:
                    outputs = weight + np.eye(dim + 1)[-1] * bias[:, None]
                    total += below(layers[1:], parts, [], outputs * np.array(states)[:, None])
        return total

    def exists(rows):
        rows = np.array(rows)
        left = np.column_stack([-rows[:, :-1], np.abs(rows[:, :-1]).sum(axis=1)])
        found = linprog([*[0.0] * dim, -1.0], A_ub=left, b_ub=rows[:, -1], bounds=[(-1, 1)] * dim + [(-9, 1)], method="highs")
        return found.status == 0 and found.x[-1] > 1e-9

    return below(network.layers, [], [], np.eye(dim, dim + 1))


def random_patterns(tree, points=20_000):
    box = tree.domain.box
    return len(np.unique(tree.network.patterns(box.sample(points)), axis=0))


# --- by hand


def test_a_grid_of_lines():
    weight = np.repeat(np.eye(2), 3, axis=0)
    assert walked(single(weight, [-0.5, 0.0, 0.5] * 2)).regions == 16
    assert walked(single(weight, [-0.5, 0.0, 0.5] * 2)).thin == ()


def test_grids_in_three_and_more_dimensions():
    assert walked(single(np.repeat(np.eye(3), 2, axis=0), [-0.5, 0.25] * 3)).regions == 27
    assert walked(single(np.eye(4), [0.1, 0.2, 0.3, 0.4])).regions == 16
    assert walked(single(np.eye(5), [0.1, 0.2, 0.3, 0.4, 0.5])).regions == 32
    assert walked(single(np.repeat(np.eye(6), 2, axis=0), [-0.5, 0.25] * 6)).regions == 729


def test_three_lines_around_a_triangle():
    assert walked(single([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], [0.1, 0.1, 0.1])).regions == 7


def test_three_lines_through_a_point():
    tree = single([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.25, 0.25, 0.5])
    assert not walked(tree).thin  # residues prove that the third one passes through the corner of the others
    assert counted(tree) == 6


def test_four_planes_through_a_point():
    tree = single([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]], [0.25, 0.25, 0.25, 0.75])
    assert walked(tree).thin
    assert counted(tree) == 14


def test_hyperplanes_through_corners_of_the_box():
    assert counted(single([[1.0, -1.0], [1.0, 1.0]], None)) == 4
    assert counted(single([[1.0, 1.0], [1.0, 1.0]], [-2.0, 2.0])) == 1
    assert counted(single([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0]], [-1.0, 0.0])) == 4


def test_inputs_that_are_fixed():
    weight = [[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]]
    tree = single(weight, [0.0, 0.0], Box([-1.0, 0.25, -1.0], [1.0, 0.25, 1.0]))
    assert walked(tree).regions == 4
    tree = single(weight, [0.0, 0.0], Box([-1.0, 0.75, -1.0], [1.0, 0.75, 1.0]))
    assert walked(tree).regions == 2


def test_domains_with_inequalities():
    lines = [[1.0, 0.0], [0.0, 1.0]], [-0.25, -0.25]
    triangle = Polytope([[1.0, 1.0]], [1.0], Box(0.0, 1.0, dim=2))
    assert walked(single(*lines, triangle)).regions == 4
    assert walked(single(*lines, Polytope([[1.0, 1.0]], [0.5], Box(0.0, 1.0, dim=2)))).regions == 3  # they meet on its edge
    assert counted(single(*lines, Polytope([[1.0, 1.0]], [0.5], Box(0.0, 1.0, dim=2)))) == 3
    assert walked(single(*lines, Polytope([[1.0, 1.0]], [0.4], Box(0.0, 1.0, dim=2)))).regions == 3
    assert walked(single(*lines, Polytope([[1.0, 1.0], [0.0, 0.0]], [9.0, 1.0], Box(0.0, 1.0, dim=2)))).regions == 4


def test_more_walls_than_a_cell_can_have():
    angles = np.linspace(0.0, 2.0 * np.pi, 80, endpoint=False)
    circle = Polytope(np.stack([np.cos(angles), np.sin(angles)], axis=1), np.ones(80), Box.cube(-1.0, 1.0, 2))
    tree = single([[1.0, 0.3], [0.2, 1.0]], [0.1, 0.2], circle)
    assert walked(tree).thin == (b"",)
    assert counted(tree) == 4


def test_linear_units_carry_values_on():
    first = Layer([[1.0, 0.0], [0.0, 1.0]], [0.25, 0.0], np.array([False, True]))
    tree = Tree(Network((first, Layer([[1.0, 1.0], [1.0, -1.0]], [0.0, 0.0]))), Box.cube(-1.0, 1.0, 2))
    assert counted(tree) == exact_count(tree) == 5
    hidden = Layer([[1.0, 0.5], [0.5, 1.0]], [0.1, 0.2], np.array([False, False]))
    tree = Tree(Network((hidden, Layer([[1.0, 1.0], [1.0, -1.0]], [0.0, 0.0]))), Box.cube(-1.0, 1.0, 2))
    assert walked(tree).regions == 4


def test_without_relus_there_is_one_region():
    assert walked(Tree(Network.from_arrays([([[1.0, 2.0]], [0.5])]), Box.cube(-1.0, 1.0, 2))).regions == 1


def test_constant_units_cut_nothing():
    weight = [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    found = walked(single(weight, [0.0, 0.5, -0.5, 0.0]))
    assert (found.regions, found.thin) == (2, ())
    # nothing active before: the biases decide, also if they are 0; one unit active: its sign does, where it is 0 too
    network = Network.from_arrays(
        [([[1.0, 0.0]], [-0.5]), ([[1.0], [1.0], [1.0], [-2.0]], [0.0, 0.25, -0.25, 0.0])], relu_output=True
    )
    found = walked(Tree(network, Box.cube(-1.0, 1.0, 2)))
    assert (found.regions, found.thin) == (3, ())


@pytest.mark.parametrize("factor", [1.0, -1.0, 0.5, -4.0])
def test_units_that_repeat_others_follow_them(factor):
    rng = np.random.default_rng(7)
    weight, bias = rng.standard_normal((3, 2)), 0.2 * rng.standard_normal(3)
    plain = single(weight, bias)
    twice = single(np.vstack([weight, factor * weight]), np.append(bias, factor * bias))
    assert walked(twice).thin == ()
    assert counted(twice) == counted(plain) == exact_count(twice)


@pytest.mark.parametrize("gap", [1e-3, 1e-7, 1e-10, 1e-13, 1e-15])
def test_strips_however_thin(gap):
    tree = single([[1.0, 0.5], [1.0, 0.5], [0.3, -1.0]], [0.25, 0.25 + gap, 0.1])
    assert counted(tree) == exact_count(tree) == 6


@pytest.mark.parametrize("lower", [-1.0, 0.0])
@pytest.mark.parametrize("dim", [2, 3, 4, 5, 6])
def test_without_biases_the_origin_is_no_obstacle(dim, lower):
    rng = np.random.default_rng(dim)
    tree = Tree(random_network(rng, dim, [6, 5], biases=False), Box.cube(lower, 1.0, dim))
    assert counted(tree) == Exact(tree).count(b"")
    cones = single(rng.standard_normal((9, dim)), None, Box.cube(lower, 1.0, dim))
    found = walked(cones)
    assert (found.regions, found.thin) == (Exact(cones).count(b""), ())
    if lower < 0.0:
        assert found.regions == 2 * sum(comb(8, chosen) for chosen in range(dim))


@pytest.mark.parametrize("scale", [1e-280, 1e-30, 1e30, 1e280])
def test_numbers_of_any_size(scale):
    rng = np.random.default_rng(3)
    network = random_network(rng, 2, [4, 3])
    last = network.layers[1]
    scaled = Network(
        (Layer(network.layers[0].weight * scale, network.layers[0].bias * scale), Layer(last.weight, last.bias * scale))
    )
    plain, large = Tree(network, Box.cube(-1.0, 1.0, 2)), Tree(scaled, Box.cube(-1.0, 1.0, 2))
    assert counted(large) == counted(plain) == exact_count(plain)


def test_corners_that_all_but_coincide():
    """One hyperplane all but touches a corner of the box, and another touches all that is there then: what is left has no clear walls."""
    case = random_case(201387, largest=4000)
    assert case.free == 6
    assert counted(Tree(case.network, case.domain)) == count_regions(*case) == 39


def test_boxes_far_from_the_origin():
    network = random_network(np.random.default_rng(5), 2, [5, 4])
    first, last = network.layers
    for shift, size in [(1e3, 1.0), (1e6, 1e-3)]:
        moved = Layer(first.weight / size, first.bias - first.weight @ np.full(2, shift) / size)
        tree = Tree(Network((moved, last)), Box.around(np.full(2, shift), size))
        assert counted(tree) == exact_count(tree)


# --- against the oracles


@pytest.mark.parametrize("digits", [None, 1, 4, 64])
@pytest.mark.parametrize("dim", [1, 2])
def test_agrees_with_exact_polygons(dim, digits):
    rng = np.random.default_rng([dim, digits or 0])
    for _ in range(25):
        widths = rng.integers(1, 7 if dim == 1 else 5, rng.integers(1, 4)).tolist()
        tree = Tree(random_network(rng, dim, widths, digits=digits), Box.cube(-1.0, 1.0, dim))
        assert counted(tree) == exact_count(tree), widths


@pytest.mark.parametrize("digits", [None, 1, 4, 64])
@pytest.mark.parametrize("dim", [3, 4, 5, 6])
def test_agrees_with_exact_linear_programs(dim, digits):
    rng = np.random.default_rng([dim, digits or 0])
    for _ in range(12):
        widths = rng.integers(1, 5, rng.integers(1, 3)).tolist()
        tree = Tree(random_network(rng, dim, widths, digits=digits), Box.cube(-1.0, 1.0, dim))
        assert counted(tree) == Exact(tree).count(b""), widths


@pytest.mark.parametrize(("dim", "widths"), [(3, [6]), (3, [5, 4]), (4, [5, 3]), (5, [5, 3]), (6, [7])])
def test_agrees_with_floating_point_linear_programs(dim, widths):
    network = random_network(np.random.default_rng(dim), dim, widths)
    found = walked(Tree(network, Box.cube(-1.0, 1.0, dim)))
    assert (found.regions, found.thin) == (linprog_count(network, dim), ())


@pytest.mark.parametrize(
    ("dim", "widths", "regions"),
    [(1, [64] * 3, 133), (2, [32] * 3, 1981), (3, [16] * 2, 1429), (4, [12] * 2, 1619), (5, [8] * 3, 1627), (6, [8] * 3, 3876)],
)
def test_larger_networks(dim, widths, regions):
    """Known counts, found by exact arithmetic in one dimension, by regioncam in two, by linear programs in more; sampling sees most of them."""
    rng, layers, before = np.random.default_rng(0), [], dim
    for width in widths:
        layers.append((rng.standard_normal((width, before)) * np.sqrt(2.0 / before), 0.5 * rng.standard_normal(width)))
        before = width
    tree = Tree(Network.from_arrays(layers, relu_output=True), Box.cube(-1.0, 1.0, dim))
    found = walked(tree)
    assert found.regions == regions
    assert found.tests > 0
    assert (0.4 if dim < 5 else 0.2) * regions < random_patterns(tree) <= regions


def test_deep_networks_are_not_thin():
    rng, layers, before = np.random.default_rng(1), [], 1
    for _ in range(30):
        layers.append((rng.standard_normal((5, before)) * np.sqrt(2.0 / before), 0.5 * rng.standard_normal(5)))
        before = 5
    tree = Tree(Network.from_arrays(layers, relu_output=True), Box.cube(-1.0, 1.0, 1))
    assert walked(tree).thin == ()
    assert counted(tree) == exact_count(tree)


# --- in slices


@pytest.mark.parametrize(("dim", "digits"), [(1, None), (2, None), (2, 1), (3, None), (3, 2), (4, None), (5, None), (6, None)])
def test_slices_add_up(monkeypatch, dim, digits):
    network = random_network(np.random.default_rng([3, dim]), dim, [7, 6, 4], digits=digits)
    tree = Tree(network, Box.cube(-1.0, 1.0, dim))
    whole = walked(tree)
    monkeypatch.setattr(cells, "_BUDGET", 1)
    walker, nodes, regions, thin, slices = Vertices(tree), [Node()], 0, [], 0
    while nodes:
        found = walker.advance(nodes, 0.0, Stop())
        regions, thin, slices = regions + found.regions, [*thin, *found.thin], slices + 1
        assert set(found.open) != set(nodes)
        nodes = list(found.open)
        prefixes = sorted(node.prefix for node in nodes)
        assert all(not longer.startswith(shorter) for shorter, longer in pairwise(prefixes))
        assert all(len(node.prefix) >= node.splits for node in nodes)
    assert slices > 2
    assert (regions, sorted(thin)) == (whole.regions, sorted(whole.thin))


def test_nodes_can_be_walked_by_others(monkeypatch):
    tree = Tree(random_network(np.random.default_rng(8), 2, [12, 12, 12]), Box.cube(-1.0, 1.0, 2))
    whole = walked(tree)
    with monkeypatch.context() as patch:
        patch.setattr(cells, "_BUDGET", 300)
        first = Vertices(tree).advance([Node()], 0.0, Stop(asked=True))
    assert first.open
    assert 0 < first.regions < whole.regions
    exact = Exact(tree)
    assert all(exact.exists(node.prefix) for node in first.open)
    halves = first.open[::2], first.open[1::2]
    with ThreadPoolExecutor(2) as pool:
        rest = list(pool.map(lambda nodes: walked(tree, nodes), halves))
    assert first.regions + sum(part.regions for part in rest) == whole.regions
    assert first.regions + sum(walked(tree, [node]).regions for node in first.open) == whole.regions


def test_nodes_of_any_depth():
    tree = Tree(random_network(np.random.default_rng(4), 2, [4, 3, 3]), Box.cube(-1.0, 1.0, 2))
    exact, whole, nodes = Exact(tree), walked(tree), [Node()]
    assert whole.thin == ()
    for _ in range(tree.units):
        nodes = [Node(node.prefix + bytes([side]), node.splits) for node in nodes for side in (0, 1)]
        nodes = [node for node in nodes if exact.exists(node.prefix)]
        found = walked(tree, nodes)
        assert (found.regions, found.open, found.thin) == (whole.regions, (), ())
    assert len(nodes) == whole.regions


def test_a_node_that_is_not_there_is_thin():
    tree = single([[1.0, 0.0], [1.0, 0.0]], [0.0, 0.5])
    found = walked(tree, [Node(bytes([1, 0])), Node(bytes([1, 1]))])
    assert (found.regions, found.thin) == (1, (bytes([1, 0]),))


def test_many_levels():
    """More cells wait than there is room for at first."""
    tree = single(np.ones((200, 1)), np.linspace(-0.9, 0.9, 200))
    found = walked(tree)
    assert (found.regions, found.thin) == (201, ())
    assert Vertices(tree).bytes > 0
