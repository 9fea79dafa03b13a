"""The walks by points and by linear programs against an exact oracle, and against each other.

The one by linear programs, in both kinds of coordinates, is given small odd networks that would be counted by vertices.
The one by points is made for many inputs and wide first layers, where no oracle can follow.  So small odd networks get every input sixteen
times, each with a sixteenth of its weight: as many regions, exactly.  Many more, by hand, from the folder ``tests``::

    python -m agreement.test_walkers 1000 20000        # from seed 1000 on, 20,000 networks
"""

import sys
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import tessella
from helpers.brute_force import count_regions
from helpers.odd_networks import random_case
from tessella.counting.by_points import ByPoints
from tessella.counting.by_programs import ByPrograms
from tessella.counting.depth_first import DONE, leave
from tessella.counting.state import HARD, THIN
from tessella.counting.walkers import walker_for
from tessella.parallel import Stop
from tessella.partition.exact import Exact
from tessella.partition.tree import Node, Tree

COPIES = 16  # a power of two: a weight's sixteenth is exact
BLOCK = 40


def walked(walker, tree, seconds=1e9):
    """Regions, counted in slices."""
    nodes, exact, regions = [Node()], Exact(tree), 0
    while nodes:
        found = walker.advance(nodes, seconds, Stop())
        nodes, regions = list(found.open), regions + found.regions + sum(exact.count(prefix) for prefix in found.thin)
    return regions


def copied(case):
    """The tree of a network that has every input of another one several times; None if the walk by points is not for it."""
    (weight, bias, rectified), *rest = case.layers
    layers = [(np.repeat(weight, COPIES, axis=1) / COPIES, bias, rectified), *rest]
    network = tessella.Network(tuple(tessella.Layer(*layer) for layer in layers))
    box = tessella.Box(np.repeat(case.lower, COPIES), np.repeat(case.upper, COPIES))
    tree = Tree.of(tessella.stability(network, box, method="interval"))
    if not tree.units:
        return None
    first, inputs = tree.scaled.weights[0].shape
    return tree if first < inputs else None


def disagreement(seed):
    """What is wrong with the count of one network, or None."""
    case = random_case([2021, seed], 300)
    if case.matrix is not None or (tree := copied(case)) is None:
        return None
    true, found = count_regions(*case), walked(ByPoints(tree, mixtures=seed % 3 > 0), tree)
    return None if found == true else f"seed {seed}: {found}, but {true} regions, {case.network} on {case.domain}"


@pytest.mark.parametrize("block", range(5))
def test_counts_by_points_are_exact(block):
    wrong = [disagreement(seed) for seed in range(block * BLOCK, (block + 1) * BLOCK)]
    assert [text for text in wrong if text] == []


@pytest.mark.parametrize("in_frame", [False, True])
@pytest.mark.parametrize("block", range(4))
def test_counts_by_linear_programs_are_exact(block, in_frame):
    wrong = []
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        case = random_case([2022, seed], 300)
        tree = Tree.of(tessella.stability(case.network, case.domain, method="interval"))
        if tree.units:
            found, true = walked(ByPrograms(tree, in_frame=in_frame), tree), count_regions(*case)
            wrong += [] if found == true else [f"seed {seed}: {found}, but {true} regions, {case.network} on {case.domain}"]
    assert wrong == []


def counted(layers, lower, upper, matrix=None, offset=None):
    """What walks by linear programs say, and the truth; the lower bound of an estimate is at most that."""
    network = tessella.Network(tuple(tessella.Layer(*layer) for layer in layers))
    box = tessella.Box(lower, upper)
    domain = box if matrix is None else tessella.Polytope(matrix, offset, box)
    tree = Tree.of(tessella.stability(network, domain, method="interval"))
    found = {walked(ByPrograms(tree, in_frame=in_frame), tree) for in_frame in (False, True)}
    true = count_regions(layers, lower, upper, matrix, offset)
    assert tessella.estimate(network, domain, probes=20).lower <= true
    return found, true


@pytest.mark.parametrize("far", [2.0**24, 2.0**30, 2.0**36, 2.0**40])
def test_an_inequality_far_from_the_origin_is_not_trusted_beyond_its_rounding(far):
    lower, upper = -np.ones(7), np.ones(7)
    lower[1], upper[1] = far, far + 1.0
    row, offset = np.array([1.0, 0.7, 0.0, 0.0, 0.0, 0.0, 0.0]), 0.7 * far + 0.25
    exactly, rounded = float(Fraction(offset) - Fraction(0.7) * Fraction(far)), (offset - 0.7 * (far + 0.5)) + 0.35
    for bend in np.linspace(exactly, rounded, 5)[1:-1]:  # between what it says of the first input, and what it seems to say
        layers = [(np.eye(7)[[0, 2]], np.array([-bend, 0.1]), np.ones(2, dtype=bool))]
        found, true = counted(layers, lower, upper, row[None], np.array([offset]))
        assert found == {true}


@pytest.mark.parametrize("seed", range(40, 56))
def test_a_unit_that_reads_fixed_inputs_only_is_not_taken_for_exact(seed):
    rng = np.random.default_rng([4, seed])
    lower, upper, constant = -np.ones(10), np.ones(10), np.zeros(10)
    lower[7:] = upper[7:] = rng.uniform(5.0, 12.0, 3)
    constant[7:] = np.round(4.0 * rng.standard_normal(3)) * 2500.0
    bias = -float(sum(Fraction(weight) * Fraction(value) for weight, value in zip(constant, lower, strict=True)))
    both, one = np.ones(2, dtype=bool), np.ones(1, dtype=bool)
    layers = [
        (np.vstack([constant, np.eye(10)[0]]), np.array([bias, 0.25]), both),  # nearly 0, and what is left becomes large
        (np.array([[1e12, 1.0]]), np.array([-0.5]), one),
    ]
    found, true = counted(layers, lower, upper)
    assert found == {true}


def wide_tree(seed, small_biases):
    rng = np.random.default_rng(seed)
    sizes = [int(rng.integers(15, 40)), int(rng.integers(8, 11)), *(int(size) for size in rng.integers(2, 6, rng.integers(1, 3)))]
    layers = [
        (rng.standard_normal((rows, columns)) / np.sqrt(columns), (1e-3 if small_biases else 0.3) * rng.standard_normal(rows))
        for columns, rows in pairwise(sizes)
    ]
    network = tessella.Network.from_arrays(layers, relu_output=True)
    return Tree.of(tessella.stability(network, tessella.Box.cube(-1.0, 1.0, sizes[0]), method="interval"))


@pytest.mark.parametrize("small_biases", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_all_walks_count_the_same(seed, small_biases):
    tree = wide_tree(seed, small_biases)
    in_frame, in_inputs = (walked(ByPrograms(tree, in_frame=choice), tree) for choice in (True, False))
    by_mixtures, by_climbing = (walked(ByPoints(tree, mixtures=choice), tree) for choice in (True, False))
    assert by_mixtures == by_climbing == in_frame == in_inputs > 100


@pytest.mark.parametrize("mixtures", [True, False])
@pytest.mark.parametrize("seed", [139, 7, 8])
def test_points_do_not_leave_cells_that_nearly_vanish(seed, mixtures):
    """Cells at a corner where all units are nearly 0: the middle of a cell, once made deeper, may itself lie on the side that is asked for."""
    rng = np.random.default_rng([2024, seed])
    layers = [
        (rng.standard_normal((rows, columns)), 1e-7 * rng.standard_normal(rows)) for columns, rows in pairwise((9, 4, 8, 2))
    ]
    network = tessella.Network.from_arrays(layers, relu_output=True)
    tree = Tree.of(tessella.stability(network, tessella.Box.cube(0.0, 1.0, 9), method="interval"))
    rectified = [(weight, bias, np.ones(len(bias), dtype=bool)) for weight, bias in layers]
    assert walked(ByPoints(tree, mixtures=mixtures), tree) == count_regions(rectified, np.zeros(9), np.ones(9)) > 100


@pytest.mark.parametrize("seed", range(5))
def test_cells_of_many_rows(seed):
    """More than mixtures are asked about: below as many decisions as a random input makes."""
    rng = np.random.default_rng([2027, seed])
    sizes = (140, 7, 60, 60, 12)
    layers = [
        (rng.standard_normal((rows, columns)) / np.sqrt(columns), 0.5 * rng.standard_normal(rows))
        for columns, rows in pairwise(sizes)
    ]
    network = tessella.Network.from_arrays(layers, relu_output=True)
    tree = Tree(network, tessella.Box.cube(-1.0, 1.0, sizes[0]))
    value, signs = rng.uniform(-0.2, 0.2, sizes[0]), list[bool]()
    for weight, bias in layers:
        signs += (weight @ value + bias > 0.0).tolist()
        value = np.maximum(weight @ value + bias, 0.0)
    nodes = [Node(bytes(signs[:length])) for length in (110, 120, 130)]
    counted = {}
    for walker in (ByPoints(tree), ByPoints(tree, mixtures=False), ByPrograms(tree, in_frame=True)):
        found = [walker.advance([node], 1e9, Stop()) for node in nodes]
        counted[walker] = [part.regions + sum(Exact(tree).count(prefix) for prefix in part.thin) for part in found]
    first, *others = counted.values()
    assert all(other == first for other in others)
    assert first[0] >= first[1] >= first[2] > 0


def test_slices_of_any_length_add_up():
    tree = wide_tree(3, small_biases=False)
    assert walked(ByPoints(tree), tree, seconds=0.0) == walked(ByPoints(tree), tree)


class Lost(ByPoints):
    """Cannot enter a node that it is given, as happens now and then by rounding: it is left as hard or thin, and nothing else."""

    kind, times = HARD, 1

    def _go_on(self, fixed, *, careful):
        if careful or not fixed or self.times == 0:
            return super()._go_on(fixed, careful=careful)
        self.times -= 1
        path = self._walk.path
        leave(self._walk.left, self.kind, fixed, path.splits, path.signs)
        path.position = fixed - 1  # on the way down
        return DONE


def degenerate_tree(seed):
    """Hyperplanes that all but meet: whole weights, or tiny biases."""
    rng = np.random.default_rng([2026, seed])
    sizes = [40, 6, 5, 3]
    if seed % 2:
        layers = [
            (rng.integers(-1, 2, (rows, columns)).astype(float), rng.integers(-1, 2, rows)) for columns, rows in pairwise(sizes)
        ]
    else:
        layers = [(rng.standard_normal((rows, columns)), 1e-7 * rng.standard_normal(rows)) for columns, rows in pairwise(sizes)]
    network = tessella.Network.from_arrays(layers, relu_output=True)
    return Tree.of(tessella.stability(network, tessella.Box.cube(-1.0, 1.0, sizes[0]), method="interval"))


@pytest.mark.parametrize("walker", [ByPoints, ByPrograms])
@pytest.mark.parametrize("seed", range(4))
def test_every_node_that_is_handed_back_exists(seed, walker):
    tree = degenerate_tree(seed)
    exact, walks, nodes, seen = Exact(tree), walker(tree), [Node()], set()
    for _ in range(200):
        nodes = list(walks.advance(nodes, 0.0, Stop()).open)
        seen |= {node.prefix for node in nodes}
    assert len(seen) > 5
    assert [prefix for prefix in seen if not exact.exists(prefix)] == []


@pytest.mark.parametrize("kind", [HARD, THIN])
def test_a_node_that_was_left_when_time_was_up_is_told_once(kind):
    tree = wide_tree(3, small_biases=False)
    walker, node = Lost(tree), Node(b"\1", 1)
    walker.kind = kind
    found = walker.advance([node], 0.0, Stop())
    told = [*(left.prefix for left in found.open), *found.thin]
    assert len(told) == len(set(told))
    rest = sum(Exact(tree).count(prefix) for prefix in found.thin)
    left = list(found.open)
    whole = ByPoints(tree).advance([node], 1e9, Stop())
    rest += ByPoints(tree).advance(left, 1e9, Stop()).regions if left else 0
    assert found.regions + rest == whole.regions
    assert not whole.thin


def test_boxes_of_many_inputs_are_walked_by_points():
    rng = np.random.default_rng(0)
    for units, inputs, walker in ((10, 128, ByPoints), (1, 784, ByPoints), (4, 127, ByPrograms), (128, 128, ByPrograms)):
        network = tessella.Network.from_arrays([(rng.standard_normal((units, inputs)), np.zeros(units))], relu_output=True)
        box = tessella.Box.cube(-1.0, 1.0, inputs)
        half = tessella.Polytope(np.eye(inputs)[:1], np.zeros(1), box)
        assert type(walker_for(Tree.of(tessella.stability(network, box, method="interval")))) is walker
        assert type(walker_for(Tree.of(tessella.stability(network, half, method="interval")))) is ByPrograms


if __name__ == "__main__":
    start, number = (int(text) for text in sys.argv[1:3])
    wrong = [text for seed in range(start, start + number) if (text := disagreement(seed))]
    print("\n".join(wrong) or f"{number} networks: every count is right")  # noqa: T201
