"""Cells without an interior whose rows touch: what is proved by residues, against rational arithmetic."""

import numpy as np
import pytest

from helpers.brute_force import count_regions
from helpers.odd_networks import Case
from tessella import Box, Network, Polytope, count, stability
from tessella.cells.touching import Touching, has_no_interior
from tessella.counting.by_programs import ByPrograms
from tessella.parallel import Stop
from tessella.partition.settler import Settler
from tessella.partition.tree import Node, Tree

_KINDS = ("ternary", "central", "differences", "quarters")


def drawn(rng, kind, dim, widths):
    """A network whose hyperplanes meet in more than general position."""
    layers, before = [], dim
    for size in widths:
        weight, bias = rng.integers(-1, 2, (size, before)).astype(float), rng.integers(-1, 2, size).astype(float)
        if kind == "central":
            weight, bias = rng.integers(-2, 3, (size, before)).astype(float), np.zeros(size)
        elif kind == "quarters":
            weight, bias = np.round(4 * rng.standard_normal((size, before))) / 4, np.round(4 * rng.standard_normal(size)) / 4
        elif kind == "differences":
            ends = np.eye(before)
            weight, bias = ends[rng.integers(before, size=size)] - ends[rng.integers(before, size=size)], bias / 2
        layers.append((weight, bias, np.ones(size, dtype=bool)))
        before = size
    return layers


def walked(case):
    """How many regions the walk by linear programs counts, how many prefixes it leaves, and how many regions these hold."""
    tree = Tree.of(stability(case.network, case.domain, method="linear"))
    found = ByPrograms(tree).advance([Node()], 60.0, Stop())
    left, settler, regions = list(found.thin), Settler(tree), 0
    while left:
        settled = settler.settle(left)
        regions, left = regions + settled.regions, list(settled.waiting)
    return found.regions, len(found.thin), regions


@pytest.mark.parametrize("kind", _KINDS)
def test_the_walk_leaves_next_to_nothing_to_exact_arithmetic(kind):
    rng, thin, regions = np.random.default_rng(len(kind)), 0, 0
    for _ in range(8):
        dim = int(rng.integers(2, 5))
        case = Case(drawn(rng, kind, dim, (6, 5)), -np.ones(dim), np.ones(dim))
        true = count_regions(*case)
        counted, left, below = walked(case)
        assert counted + below == true
        thin, regions = thin + left, regions + true
    assert thin < 0.05 * regions


@pytest.mark.parametrize("power", [52, 45, 40, 36, 33, 31, 30, 29, 27])
def test_what_only_nearly_touches_is_not_taken_for_empty(power):
    rng = np.random.default_rng(power)
    for kind in _KINDS:
        dim = int(rng.integers(2, 5))
        layers = [
            (
                np.where(rng.random(weight.shape) < 0.2, weight * (1.0 + 2.0**-power), weight),
                bias + 2.0**-power * rng.integers(-1, 2, len(bias)),
                mask,
            )
            for weight, bias, mask in drawn(rng, kind, dim, (5, 5))
        ]
        case = Case(layers, -np.ones(dim), np.ones(dim))
        counted, _, below = walked(case)
        assert counted + below == count_regions(*case)


def test_polytopes_whose_sides_touch():
    rng = np.random.default_rng(8)
    for _ in range(6):
        matrix, offset = rng.integers(-2, 3, (3, 3)).astype(float), rng.integers(0, 3, 3).astype(float)
        case = Case(drawn(rng, "ternary", 3, (5, 5)), -np.ones(3), np.ones(3), matrix, offset)
        counted, _, below = walked(case)
        assert counted + below == count_regions(*case)


def test_generic_weights_without_biases_need_no_residues():
    rng = np.random.default_rng(3)
    layers = [(rng.standard_normal((8, 7)), np.zeros(8)), (rng.standard_normal((5, 8)), np.zeros(5))]
    network = Network.from_arrays(layers, relu_output=True)
    tree = Tree(network, Box(-1, 1, dim=7))
    assert Touching.of(tree).central
    assert not Touching.of(Tree(network, Box(-1, 2, dim=7))).central
    found = ByPrograms(tree).advance([Node()], 60.0, Stop())
    assert not found.thin
    assert found.regions == count_regions(
        [(*layer, np.ones(len(layer[1]), dtype=bool)) for layer in layers], -np.ones(7), np.ones(7)
    )


def test_numbers_of_polytopes_sides_that_say_nothing_are_left_out():
    # the first inequality reads no free input
    domain = Polytope([[0.0, 0.0], [1.0, 1.0]], [1.0, 0.0], Box(-1, 1, dim=2))
    tree = Tree(Network.from_arrays([([[1.0, 0.0], [1.0, 1.0]], None)], relu_output=True), domain)
    assert Touching.of(tree).wall_of.tolist() == [5]
    assert count(tree.network, domain).exact == 2  # noqa: PLR2004  x + y <= 0 all over the domain


def test_many_inputs_are_left_to_others():
    network = Network.from_arrays([(np.ones((2, 65)), None)], relu_output=True)
    assert not len(Touching.of(Tree(network, Box(-1, 1, dim=65))).layer_of)


def asked(rows, signs, shares):
    """Whether these shares of some rows, each given by a unit of one layer and its sign, are taken to prove that no point has all these signs."""
    network = Network.from_arrays([(np.array(rows)[:, :-1], np.array(rows)[:, -1])], relu_output=True)
    tree = Tree(network, Box(-1, 1, dim=len(rows[0]) - 1))
    walk = ByPrograms(tree)._programs  # noqa: SLF001
    cell, n = walk.cell, tree.domain.free_dim
    for at, (row, sign) in enumerate(zip(rows, signs, strict=True)):
        cell.rows[at, : n + 1] = (1.0 if sign else -1.0) * np.array(row) / np.abs(row).sum()
        cell.rows[at, n + 2] = 1e-15
        cell.codes[at], cell.proof.rows[at], cell.proof.shares[at] = 2 * at + sign, at, shares[at]
    cell.proof.size = len(rows)
    return has_no_interior(walk.touching, cell, np.array(signs, dtype=np.int8), len(rows))


def test_shares_are_completed_and_must_be_positive():
    three = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]
    assert asked(three, (1, 1, 0), (0.25, 0.25, 0.5))
    assert asked(three, (1, 1, 0), (0.25 + 1e-12, 0.25, 0.5 - 1e-12))  # what a linear program brings need not be exact
    assert not asked(three, (1, 1, 1), (0.25, 0.25, 0.5))  # there is a combination that is 0, but not with shares above 0
    assert not asked(three, (0, 1, 0), (0.25, 0.25, 0.5))


def test_a_combination_may_be_highest_at_an_end_of_an_input():
    assert asked([[0.0, 1.0, -1.0]], (1,), (1.0,))  # y > 1 touches a side of the box
    assert asked([[1.0, 1.0, -2.0]], (1,), (1.0,))
    assert not asked([[1.0, 1.0, -2.0]], (0,), (1.0,))
    assert not asked([[1.0, 1.0, -2.0 + 2.0**-50]], (1,), (1.0,))


def test_equations_alone_prove_nothing():
    rows = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]
    network = Network.from_arrays([(np.array(rows)[:, :-1], None)], relu_output=True)
    walk = ByPrograms(Tree(network, Box(-1, 1, dim=2)))._programs  # noqa: SLF001
    cell = walk.cell
    for at, row in enumerate(rows):
        cell.rows[at, :3] = np.array(row) / np.abs(row).sum()
        cell.codes[at], cell.proof.rows[at], cell.proof.shares[at] = 2 * at, at, (0.25, 0.25, -0.5)[at]
    cell.proof.size = 3
    signs = np.zeros(3, dtype=np.int8)
    assert not has_no_interior(walk.touching, cell, signs, 0)  # three lines through a point are not in general position
    cell.proof.shares[:3] = 0.25, 0.25, -0.5
    cell.proof.size = 3
    assert has_no_interior(walk.touching, cell, signs, 1)  # but where x > 0, the other two do not meet
