"""Rows proved to be zero, or multiples of each other, by residues: against rational arithmetic."""

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

from helpers.brute_force import fractions
from tessella import Box, Layer, Network, Polytope
from tessella.cells.residues import Residues, is_combination, is_multiple, is_zero
from tessella.partition.tree import Tree


def exact_rows(network, box, pattern):
    """The rows of all ReLUs, layer by layer, where these are active or not: rational functions of the free inputs x."""
    free = np.flatnonzero(box.free)
    inputs = [
        [Fraction(int(column == at)) for column in free] + [Fraction(0 if at in free else float(box.lower[at]))]
        for at in range(box.dim)
    ]
    found = []
    for layer, states in zip(network.layers, pattern, strict=True):
        rows = []
        for weight, bias in zip(layer.dense(), layer.bias, strict=True):
            row = [
                sum((w * one[c] for w, one in zip(fractions(weight), inputs, strict=True)), Fraction(0))
                for c in range(len(free) + 1)
            ]
            row[-1] += Fraction(float(bias))
            rows.append(row)
        found.append([rows[unit] for unit in np.flatnonzero(layer.rectified)])
        active = np.zeros(layer.units, dtype=bool)
        active[layer.rectified] = states[: layer.relus]
        inputs = [
            [entry * (1 if on else Fraction(float(slope))) for entry in row]
            for row, on, slope in zip(rows, active, layer.slope, strict=True)
        ]
    return found


def multiples(one, two):
    return all(a * d == b * c for a, c in zip(one, two, strict=True) for b, d in zip(one, two, strict=True))


def depend(rows):
    """Whether three rows have rank two or less: all their minors are 0."""
    return all(
        sum(sign * rows[0][p[0]] * rows[1][p[1]] * rows[2][p[2]] for sign, p in signed(columns)) == 0
        for columns in combinations(range(len(rows[0])), 3)
    )


def signed(columns):
    a, b, c = columns
    return [(1, (a, b, c)), (1, (b, c, a)), (1, (c, a, b)), (-1, (a, c, b)), (-1, (c, b, a)), (-1, (b, a, c))]


def random_network(rng, shape, *, leaky):
    layers = []
    for before, size in pairwise(shape):
        weight, bias = rng.integers(-1, 2, (size, before)) * 0.75, rng.integers(-1, 2, size) * 0.5
        weight[1], bias[1] = 3.0 * weight[0], 3.0 * bias[0]
        if layers:  # what it reads of the two cancels, whichever state they are in
            weight[2] = 0.0
            weight[2, :2], bias[2] = (0.75, -0.25), 0.0
        rectified = rng.random(size) < 0.7
        rectified[:3] = True
        slope = np.where(rectified, rng.choice([0.0, -1.0, 0.1], size) if leaky else 0.0, 0.0)
        slope[1] = slope[0]
        layers.append(Layer(weight, bias, rectified, slope))
    return Network(tuple(layers))


@pytest.mark.parametrize("leaky", [False, True])
def test_zeros_and_multiples_are_those_of_rational_arithmetic(leaky):
    rng, seen = np.random.default_rng(3 + leaky), {"zero": 0, "multiple": 0, "neither": 0}
    for _ in range(40):
        network = random_network(rng, [3, 4, 4, 3], leaky=leaky)
        box = Box([-1.0, 0.25, -0.3], [1.0, 0.25, 0.7])
        tree = Tree(network, box)
        residues = Residues.of(tree)
        pattern = rng.integers(0, 2, (3, 4)).astype(np.int8)
        rows = exact_rows(network, box, pattern)
        for layer, own in enumerate(rows):
            for unit, row in enumerate(own):
                zero = not any(row)
                assert is_zero(layer, unit, pattern, residues) == zero
                seen["zero"] += zero
                for earlier in range(layer + 1):
                    for other, wall in enumerate(rows[earlier]):
                        same = multiples(row, wall)
                        assert is_multiple(layer, unit, earlier, other, pattern, residues) == same
                        seen["multiple" if same and not zero else "neither"] += 1
    assert min(seen.values()) > 10


def test_combinations_of_two_are_those_of_rational_arithmetic():
    rng, seen = np.random.default_rng(5), [0, 0]
    for _ in range(12):
        network = random_network(rng, [3, 4, 4, 3], leaky=False)
        box = Box([-1.0, 0.25, -0.3], [1.0, 0.75, 0.7])
        residues, pattern = Residues.of(Tree(network, box)), rng.integers(0, 2, (3, 4)).astype(np.int8)
        rows = exact_rows(network, box, pattern)
        places = [(layer, unit) for layer, own in enumerate(rows) for unit in range(len(own))]
        for first, second, asked in combinations(places, 3):
            layers, walls = np.array([first[0], second[0]]), np.array([first[1], second[1]])
            expected = depend([rows[layer][unit] for layer, unit in (first, second, asked)])
            assert is_combination(*asked, layers, walls, pattern, residues) == expected
            seen[expected] += 1
    assert min(seen) > 100


def test_walls_of_the_domain():
    # x - y, 2 - 2 x - 2 y, x + 1, which is the side of the box at -1, and y
    network = Network.from_arrays([([[1.0, -1.0], [-2.0, -2.0], [1.0, 0.0], [0.0, 1.0]], [0.0, 2.0, 1.0, 0.0])], relu_output=True)
    tree = Tree(network, Polytope([[3.0, -3.0], [0.5, 0.5]], [0.0, 0.5], Box(-1, 1, dim=2)))
    residues, pattern = Residues.of(tree), np.zeros((1, 4), dtype=np.int8)
    # walls: the upper and the lower end of each input, then the inequalities
    found = [[is_multiple(0, unit, -1, wall, pattern, residues) for wall in range(6)] for unit in range(4)]
    assert np.argwhere(found).tolist() == [[0, 4], [1, 5], [2, 1]]


def test_numbers_of_too_many_digits_prove_nothing():
    layers = [(np.eye(2), [0.0, 0.0]), (np.array([[2.0**-900, 2.0**900]]), [0.0])]
    tree = Tree(Network.from_arrays(layers, relu_output=True), Box(-1, 1, dim=2))
    residues, pattern = Residues.of(tree), np.zeros((2, 2), dtype=np.int8)
    assert not is_zero(1, 0, pattern, residues)
    assert not is_multiple(1, 0, 0, 0, pattern, residues)
    assert not is_combination(1, 0, np.array([0, -1]), np.array([0, 0]), pattern, residues)
