"""Exact decisions on cells: by hand, against sampled points, and against oracles in fractions."""

from fractions import Fraction
from itertools import pairwise, product
from math import comb

import numpy as np
import pytest

from tessella import Box, DomainError, Layer, Network, Polytope, stability
from tessella.partition import inside as module
from tessella.partition.exact import Exact
from tessella.partition.integers import rows_of
from tessella.partition.tree import Tree


def tree_of(network, domain):
    return Tree.of(stability(network, domain, method="interval"))


def exact_of(layers, domain):
    return Exact(tree_of(Network.from_arrays(layers, relu_output=True), domain))


def regions(layers, domain):
    return exact_of(layers, domain).count(b"")


def random_network(rng, sizes, kind):
    """Units with biases or without, with small whole weights, or multiples of each other (rounded, or exact)."""
    layers = []
    for inputs, units in pairwise(sizes):
        weight, bias = rng.standard_normal((units, inputs)), 0.3 * rng.standard_normal(units)
        if kind in {"whole", "whole without bias"}:
            weight, bias = np.round(1.5 * weight), np.round(2.0 * bias)
        if kind in {"without bias", "whole without bias"}:
            bias = 0.0 * bias
        for unit in range(1, units, 2) if kind in {"multiples", "nearly multiples"} else ():
            factor = rng.choice((-2.0, -1.0, 0.5, 1.0) if kind == "multiples" else (1 / 3, -0.1, 0.7))
            weight[unit], bias[unit] = factor * weight[unit - 1], factor * bias[unit - 1]
        layers.append((weight, bias))
    return Network.from_arrays(layers, relu_output=True)


KINDS = ("with bias", "without bias", "whole", "whole without bias", "multiples", "nearly multiples")


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_a_grid_has_all_its_cells():
    weight = np.repeat(np.eye(2), 3, axis=0)
    exact = exact_of([(weight, [-0.5, 0.0, 0.5] * 2)], Box(-1, 1, dim=2))
    assert exact.count(b"") == 16
    steps = {(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1)}
    found = {pattern for pattern in product((0, 1), repeat=6) if exact.exists(bytes(pattern))}
    # the units of an axis are active above 0.5, 0 and -0.5
    assert found == {(*reversed(first), *reversed(second)) for first in steps for second in steps}


@pytest.mark.parametrize(("inputs", "units"), [(1, 1), (2, 1), (2, 7), (3, 6), (4, 6), (5, 6)])
def test_hyperplanes_through_one_point_in_general_position(inputs, units):
    rng = np.random.default_rng(inputs)
    layers = [(rng.standard_normal((units, inputs)), None)]
    assert regions(layers, Box(-1, 1, dim=inputs)) == 2 * sum(comb(units - 1, chosen) for chosen in range(inputs))


def test_hyperplanes_through_one_point_that_is_no_floating_point_number():
    # x = 1/3, 3 y = 2, and their sum: three lines through (1/3, 2/3)
    layers = [([[3.0, 0.0], [0.0, 3.0], [3.0, 3.0]], [-1.0, -2.0, -3.0])]
    assert regions(layers, Box(0, 1, dim=2)) == 6
    assert regions([(layers[0][0], [-1.0, -2.0, np.nextafter(-3.0, 0.0)])], Box(0, 1, dim=2)) == 7


@pytest.mark.parametrize("size", [1.0, 1e-150, 1e150])
def test_multiples_of_a_unit_cut_nothing_more(size):
    row = np.array([1.0, -2.0, 0.3])
    weight, bias = size * np.stack([row, 2.0 * row, -row, 0.25 * row]), size * np.array([0.1, 0.2, -0.1, 0.025])
    exact = exact_of([(weight, bias)], Box(-1, 1, dim=3))
    assert exact.count(b"") == 2
    assert exact.exists(bytes([1, 1, 0, 1]))
    assert exact.exists(bytes([0, 0, 1, 0]))
    assert not exact.exists(bytes([1, 0]))
    assert not exact.exists(bytes([1, 1, 1]))
    assert exact.count(bytes([1, 0])) == 0


def test_constant_units_cut_nothing():
    # where the first unit is inactive, those of the second layer are constant: 0, 0, 1, -1 and -0.5
    layers = [([[1.0]], None), ([[1.0], [-1.0], [1.0], [-1.0], [1.0]], [0.0, 0.0, 1.0, -1.0, -0.5])]
    exact = Exact(Tree(Network.from_arrays(layers, relu_output=True), Box(-1, 1, dim=1)))
    found = {pattern for pattern in product((0, 1), repeat=6) if exact.exists(bytes(pattern))}
    assert found == {(0, 0, 0, 1, 0, 0), (1, 1, 0, 1, 0, 0), (1, 1, 0, 1, 0, 1)}
    assert exact.count(b"") == 3
    assert exact.count(bytes([0])) == 1


def test_a_difference_of_equal_units_is_inactive():
    exact = exact_of([([[1.0], [1.0]], None), ([[1.0, -1.0]], [0.0])], Box(-1, 1, dim=1))
    assert exact.count(b"") == 2
    assert exact.exists(bytes([1, 1, 0]))
    assert not exact.exists(bytes([1, 1, 1]))


def test_slivers():
    apart = np.nextafter(0.5, 1.0)
    assert regions([([[1.0], [1.0]], [-0.5, -apart])], Box(0, 1, dim=1)) == 3
    assert regions([([[1.0], [1.0]], [-0.5, -0.5])], Box(0, 1, dim=1)) == 2
    diagonal = [[1.0, 1.0], [1.0, 1.0], [1.0, -1.0]]
    exact = exact_of([(diagonal, [0.0, 1e-12, 0.0])], Box(-1, 1, dim=2))
    assert exact.count(b"") == 6
    assert exact.exists(bytes([0, 1, 0]))
    assert not exact.exists(bytes([1, 0]))
    tilted = [[1.0, 1.0], [1.0, np.nextafter(1.0, 2.0)]]
    assert regions([(tilted, None)], Box(-1, 1, dim=2)) == 4
    assert regions([(tilted, [0.0, 1e-300])], Box(-1, 1, dim=2)) == 4
    assert regions([(tilted, [0.0, 1e-300])], Box(0, 1, dim=2)) == 1


def test_sizes_at_the_ends_of_floating_point():
    assert regions([([[1e-300], [1e300], [1.0]], [-1e-308, 5e299, 5e-324])], Box(-1, 1, dim=1)) == 4
    tiny = Box([0.0, -1e300], [5e-324, 1e300])
    assert regions([([[1e300, 1e-300], [5e-324, -1e-300], [1.0, 0.0]], None)], tiny) == 3
    deep = [([[1e-200, 0.0], [0.0, 1e-200]], None), ([[1e-200, -1e-200], [1.0, 1.0]], [0.0, -1e-210])]
    # on the positive quadrant, x = y (seen with coefficients of 1e-400) and x + y = 1e-10 cross; beside it, one of them is left
    assert regions(deep, Box(-1, 1, dim=2)) == 4 + 2 + 2 + 1


def test_fixed_inputs():
    layers = [([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 3.0, 0.0]], [0.0, 0.0, -0.9])]
    box = Box([-1.0, 0.3, -1.0], [1.0, 0.3, 1.0])
    assert 3 * 0.3 != 0.9  # the last unit is constant, and by rounding only would be 0
    exact = exact_of(layers, box)
    assert exact.count(b"") == 4
    point = Box([0.5, 0.3, 0.1], [0.5, 0.3, 0.1])
    assert regions(layers, point) == 1
    assert exact_of(layers, point).exists(b"")


def test_polytopes():
    triangle = Polytope([[1.0, 1.0]], [1.0], Box(0, 1, dim=2))
    diagonal = [[1.0, 1.0], [1.0, -1.0], [2.0, 2.0]]
    exact = exact_of([(diagonal, [-0.5, 0.0, -2.0])], triangle)
    assert exact.count(b"") == 4  # the last is the wall itself
    assert exact_of([(diagonal, [-1.0, 0.0, np.nextafter(-2.0, 0.0)])], triangle).count(b"") == 4
    assert exact_of([([[1.0, 0.0]], [-0.5])], Polytope(-np.ones((1, 2)), [-1.0], Box(0, 1, dim=2))).count(b"") == 2


def test_a_wall_without_free_inputs():
    box = Box([0.0, 0.7], [1.0, 0.7])
    exactly = Polytope([[0.0, 2.0], [1.0, 0.0]], [1.4, 2.0], box)
    assert exact_of([([[1.0, 0.0]], [-0.5])], exactly).count(b"") == 2
    # in rounded arithmetic this inequality holds with equality, but it is violated
    slope = next(s for s in np.linspace(0.1, 0.2, 50) if Fraction(s) * Fraction(0.7) > Fraction(s * 0.7))
    with pytest.raises(DomainError, match="is empty"):
        Polytope([[0.0, slope]], [slope * 0.7], box)


def test_linear_units_are_no_decisions():
    first = Layer([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 0.0, 0.0], np.array([True, False, True]))
    carried = Layer(np.eye(3), np.zeros(3), np.zeros(3, dtype=bool))
    last = Layer([[0.0, 1.0, 0.0], [1.0, 0.0, -1.0]], [0.0, 0.0])
    exact = Exact(tree_of(Network((first, carried, last)), Box(-1, 1, dim=2)))
    # x = 0, x + y = 0 and y = 0 make 6 cells; relu(x) - relu(x + y) vanishes only on their walls
    assert exact.count(b"") == 6
    assert exact.exists(bytes([1, 1, 0, 1]))
    assert not exact.exists(bytes([1, 1, 1, 1]))


def test_hyperplanes_that_touch_the_box():
    box = Box(-1, 1, dim=2)
    assert regions([([[1.0, 1.0], [-1.0, 1.0], [1.0, 0.0]], [-2.0, -2.0, 1.0])], box) == 1
    assert regions([([[1.0, 1.0]], [np.nextafter(-2.0, 0.0)])], box) == 2  # it cuts off a corner of size 4e-16
    assert regions([([[1.0, 1.0], [1.0, -1.0], [1.0, 0.0], [0.0, 1.0]], None)], box) == 8  # through its corners


def test_a_prefix_that_cannot_be_is_settled_without_its_end():
    exact = exact_of([(np.eye(3), None), (np.ones((2, 3)), [-1.0, -2.0])], Box(-1, 1, dim=3))
    assert exact.exists(bytes([1, 1, 1, 1]))
    assert not exact.exists(bytes([0, 0, 0, 1]))
    assert exact.count(bytes([0, 0, 0, 1])) == 0
    assert exact.count(b"") == sum(exact.count(bytes(pattern)) for pattern in product((0, 1), repeat=3))


def test_many_inputs():
    rng = np.random.default_rng(0)
    box = Box(0, 1, dim=300)
    weight = rng.standard_normal((8, 300))
    weight[4:] = -2.0 * weight[:4]
    tree = tree_of(Network.from_arrays([(weight, None), (rng.standard_normal((6, 8)), None)], relu_output=True), box)
    exact = Exact(tree)
    for pattern in tree.network.patterns(box.sample(5, rng)):
        prefix = bytes(pattern.astype(np.uint8))
        assert exact.exists(prefix)
        for unit in range(4):
            assert not exact.exists(prefix[:unit] + bytes([1 - prefix[unit]]) + prefix[unit + 1 :])


# --- against sampled points and oracles -------------------------------------------------------------------------------


@pytest.mark.parametrize("block", range(10))
def test_what_points_show_exists(block):
    rng = np.random.default_rng(block)
    for number in range(20):
        sizes = [int(rng.integers(1, 6)), *rng.integers(1, 7, int(rng.integers(1, 4))).tolist()]
        box = Box(-rng.random(sizes[0]), rng.random(sizes[0]))
        tree = tree_of(random_network(rng, sizes, KINDS[number % len(KINDS)]), box)
        points = box.sample(60, rng)
        before = np.hstack([values[:, layer.rectified] for layer, values in zip_layers(tree.network, points)])
        clear = ((np.abs(before) > 1e-9) | (before == 0.0)).all(axis=1)  # those that rounding cannot have changed
        seen = {bytes(pattern) for pattern in tree.network.patterns(points[clear]).astype(np.uint8)}
        exact = Exact(tree)
        assert all(exact.exists(pattern[:length]) for pattern in seen for length in range(len(pattern) + 1))
        if tree.units <= 10:
            assert exact.count(b"") >= len(seen)


def zip_layers(network, points):
    return zip(network.layers, network.preactivations(points), strict=True)


def intervals(network, lower, upper):
    """How many linear pieces a network of one input has: breakpoints sorted in fractions."""
    pieces = [(Fraction(lower), Fraction(upper), [(Fraction(1), Fraction(0))])]
    for layer in network.layers:
        after = []
        weight, bias = layer.dense(), layer.bias
        for left, right, values in pieces:
            rows = [
                (
                    sum(Fraction(w) * slope for w, (slope, _) in zip(line, values, strict=True)),
                    sum((Fraction(w) * level for w, (_, level) in zip(line, values, strict=True)), Fraction(b)),
                )
                for line, b in zip(weight.tolist(), bias.tolist(), strict=True)
            ]
            cuts = {-level / slope for (slope, level), cut in zip(rows, layer.rectified, strict=True) if cut and slope}
            ends = [left, *sorted(cut for cut in cuts if left < cut < right), right]
            for start, end in pairwise(ends):
                middle = (start + end) / 2
                passes = [
                    not cut or slope * middle + level > 0 for (slope, level), cut in zip(rows, layer.rectified, strict=True)
                ]
                after.append((start, end, [row if on else (0, 0) for row, on in zip(rows, passes, strict=True)]))
        pieces = after
    return len(pieces)


@pytest.mark.parametrize("kind", KINDS)
def test_one_input_agrees_with_sorted_breakpoints(kind):
    rng = np.random.default_rng(len(kind))
    for _ in range(12):
        sizes = [1, *rng.integers(1, 8, int(rng.integers(1, 4))).tolist()]
        network = random_network(rng, sizes, kind)
        lower, upper = -float(rng.integers(0, 2)), float(rng.choice((1.0, 0.3)))
        assert Exact(tree_of(network, Box([lower], [upper]))).count(b"") == intervals(network, lower, upper)


def feasible(rows):
    """Whether strict inequalities (slopes and constant, > 0) have a common solution, by Fourier and Motzkin's elimination."""
    rows = {tuple(map(Fraction, row)) for row in rows}
    for column in range(len(next(iter(rows))) - 1):
        kept = {row for row in rows if row[column] == 0}
        for low, high in product([row for row in rows if row[column] > 0], [row for row in rows if row[column] < 0]):
            row = [above * low[column] - below * high[column] for below, above in zip(low, high, strict=True)]
            size = max(map(abs, row)) or 1
            kept.add(tuple(value / size for value in row))
        rows = kept
    return all(row[-1] > 0 for row in rows)


def cube(inputs):
    return [row for j in range(inputs) for row in ((*np.eye(inputs)[j], 0.0), (*-np.eye(inputs)[j], 1.0))]


@pytest.mark.parametrize("patience", [-1, 100])
@pytest.mark.parametrize("spread", [1, 3, 1000])
def test_every_way_to_decide_agrees_with_elimination(monkeypatch, patience, spread):
    """The whole decision, and its last resort from arbitrary bases, by Bland's rule from the start or only in need."""
    monkeypatch.setattr(module, "_PATIENCE", patience)
    rng = np.random.default_rng(spread)
    answers = set()
    for _ in range(60):
        inputs, count = int(rng.integers(1, 4)), int(rng.integers(1, 6))
        numbers = rng.integers(-spread, spread + 1, (count, inputs + 1))
        numbers[:, -1] -= numbers[:, :-1].sum(axis=1) // 2 if rng.random() < 0.7 else 0
        numbers[1:3] = -numbers[:1] if rng.random() < 0.2 else numbers[1:3]
        numbers = numbers[numbers[:, :-1].any(axis=1)]
        if not len(numbers):
            continue
        rows = rows_of(numbers.astype(object))
        expected = feasible([*cube(inputs), *numbers.tolist()])
        answers.add(expected)
        assert (module.point_inside(rows) is not None) == expected
        for size in range(min(len(numbers), inputs + 1)):
            tight, basic = rng.permutation(len(numbers))[: size + 1], rng.permutation(inputs)[:size]
            basis = module._Basis(sorted(tight.tolist()), sorted(basic.tolist()), rng.random(inputs) < 0.5)
            point = module._settle(rows, basis).point
            assert (point is not None) == expected
            if point is not None:
                assert (rows.numbers @ point > 0).all()
                assert ((point >= 0) & (point <= point[-1])).all()
    assert answers == {True, False}


def test_equations_are_solved_or_seen_to_be_singular():
    assert module._solved([[0, 2], [-3, 1]], [4, 5]) == ([-6, 12], 6)
    assert module._solved([[1, 2], [2, 4]], [1, 1]) is None
    rng = np.random.default_rng(0)
    for size in range(1, 7):
        matrix, right = rng.integers(-9, 10, (size, size)), rng.integers(-9, 10, size)
        solution, denominator = module._solved(matrix.tolist(), right.tolist())
        assert (matrix @ np.array(solution) == right * denominator).all()
        assert denominator == round(abs(np.linalg.det(matrix)))
