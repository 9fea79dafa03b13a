"""Cells of the last layer, counted from the sets of hyperplanes that meet: compiled, against all subsets, SciPy's linear programs, and rational arithmetic."""

from itertools import chain, combinations

import numpy as np
import pytest
from scipy.optimize import linprog

from helpers.brute_force import count_regions
from tessella import Box, Network, Polytope, stability
from tessella.cells.rows import place_with_error
from tessella.cells.state import FEASIBLE, INFEASIBLE
from tessella.counting import faces
from tessella.counting.by_points import ByPoints
from tessella.counting.by_programs import ByPrograms
from tessella.counting.depth_first import enter_layer, start
from tessella.counting.faces import APART, LATER, MEETS, NEVER, count_sets, is_met, is_parted, part
from tessella.counting.faces_by_points import count_by_points
from tessella.counting.faces_by_programs import count_by_programs, crosses
from tessella.counting.state import MOST_SETS, Sets, Walk
from tessella.kernel.functions import address_of, apart
from tessella.numerics import MARGIN
from tessella.partition.tree import Node, Tree


@apart
def begin_hidden(walk: Walk) -> int:
    """Note of the hidden sets those that hold the first element."""
    sets, hidden = walk.sets, walk.sightings
    for i in range(hidden.count):
        if hidden.on[i] >> sets.element[0] & 1:
            sets.meeting[sets.met] = hidden.on[i]
            sets.met += 1
    return MEETS


@apart
def begin_blind(walk: Walk) -> int:
    return MEETS


@apart
def meets_hidden(walk: Walk, level: int, f: int) -> int:
    """Whether a set is within one of those that the walk's sightings hide."""
    sets, hidden = walk.sets, walk.sightings
    members = sets.members[level] | 1 << f
    for i in range(hidden.count):
        if members & ~hidden.on[i] == 0:
            return MEETS
    return APART if part(sets, members) else LATER


@apart
def at_root(walk: Walk) -> None:
    """Stand at the root, and know what the first layer's units are there."""
    start(walk)
    enter_layer(walk, 0)


@apart
def crosses_at_root(walk: Walk, u: int) -> int:
    g, row = walk.layers.unit_of[u], walk.cell.rows[walk.path.rows]
    place_with_error(walk.units.combined[g], walk.units.errors[g], 1.0, walk.cell.space, row)
    return crosses(walk, u, walk.path.state + 1)


def one_layer(rng, inputs, units, *, domain=None, spread=0.6):
    weight = rng.standard_normal((units, inputs)) / np.sqrt(inputs)
    bias = rng.uniform(-spread, spread, units)
    network = Network.from_arrays([(weight, bias)], relu_output=True)
    return weight, bias, Tree.of(stability(network, domain or Box(-1, 1, dim=inputs), method="interval"))


def begun(walker):
    walker._enter(Node())
    at_root(walker._walk)
    return walker._walk


def hidden_walk(largest, crossing, begin):
    rng = np.random.default_rng(0)
    walk = begun(ByPrograms(one_layer(rng, 3, 4)[2]))
    walk.begin_sets, walk.meets = address_of(faces.begin_sets, begin), address_of(faces.meets, meets_hidden)
    walk.sets.crossing, walk.sightings.count = crossing, len(largest)
    walk.sightings.on[: len(largest)] = [sum(1 << f for f in each) for each in largest]
    return walk


@pytest.mark.parametrize("begin", [begin_hidden, begin_blind])
@pytest.mark.parametrize("crossing", [1, 3, 6, 11])
def test_sets_are_counted_once_each(begin, crossing):
    rng = np.random.default_rng(crossing)
    for number in (0, 1, 3, 8):
        largest = [set(rng.permutation(crossing)[: rng.integers(1, crossing + 1)].tolist()) for _ in range(number)]
        largest += [{f} for f in range(crossing)]  # each hyperplane crosses the cell
        within = {chosen for each in largest for size in range(len(each) + 1) for chosen in combinations(sorted(each), size)}
        assert count_sets(hidden_walk(largest, crossing, begin)) == len(within)


def test_notes_on_sets():
    sets = Sets.of(2)
    assert part(sets, 0b101)
    sets.meeting[0], sets.met = 0b0110, 1
    assert is_parted(sets, 0b111)
    assert not is_parted(sets, 0b110)
    assert is_met(sets, 0b100)
    assert not is_met(sets, 0b101)
    sets.parted = MOST_SETS
    assert not part(sets, 0b11)


@pytest.mark.parametrize("in_frame", [False, True])
@pytest.mark.parametrize(("inputs", "units"), [(1, 3), (2, 6), (3, 7), (6, 5), (9, 4)])
def test_linear_programs_count_a_layer(inputs, units, in_frame):
    rng = np.random.default_rng([inputs, units])
    for _ in range(3):
        weight, bias, tree = one_layer(rng, inputs, units)
        found = count_by_programs(begun(ByPrograms(tree, in_frame=in_frame)))
        assert found == count_regions([(weight, bias, True)], [-1.0] * inputs, [1.0] * inputs)


@pytest.mark.parametrize(("inputs", "units"), [(20, 1), (30, 4), (40, 6), (24, 7)])
def test_points_count_a_layer(inputs, units):
    rng = np.random.default_rng([inputs, units])
    for _ in range(2):
        weight, bias, tree = one_layer(rng, inputs, units)
        found = count_by_points(begun(ByPoints(tree)))
        assert found == count_regions([(weight, bias, True)], [-1.0] * inputs, [1.0] * inputs)


@pytest.mark.parametrize(
    ("kind", "count", "inputs", "spread"), [(ByPrograms, count_by_programs, 4, 0.6), (ByPoints, count_by_points, 24, 3.0)]
)
def test_what_is_noted_of_sets_is_true(kind, count, inputs, spread):
    rng, asked = np.random.default_rng(inputs), 0
    for _ in range(3):
        _, _, tree = one_layer(rng, inputs, 7, spread=spread)
        walk = begun(kind(tree))
        assert count(walk) > 0
        weight, bias, sets = tree.scaled.weights[0], tree.scaled.biases[0], walk.sets
        assert sets.crossing == tree.units
        noted = chain(
            ((members, True) for members in sets.meeting[: sets.met]), ((each, False) for each in sets.apart[: sets.parted])
        )
        for members, together in noted:
            chosen = [f for f in range(sets.crossing) if members >> f & 1]
            found = linprog(np.zeros(inputs), A_eq=weight[chosen], b_eq=-bias[chosen], bounds=(-1.0, 1.0))
            assert (found.status == 0) == together
            asked += 1
    assert asked


@pytest.mark.parametrize("in_frame", [False, True])
def test_a_hyperplane_crosses_a_domain_or_not(in_frame):
    rng, answers = np.random.default_rng(5), []
    for _ in range(6):
        normals = rng.standard_normal((5, 4))
        domain = Polytope(normals, np.full(5, 0.4), Box(-1, 1, dim=4))
        _, _, tree = one_layer(rng, 4, 6, domain=domain)
        walk, scaled = begun(ByPrograms(tree, in_frame=in_frame)), tree.scaled
        for u in range(tree.units):
            ends = [
                scaled.biases[0][u]
                + sign * linprog(sign * scaled.weights[0][u], A_ub=-scaled.normals, b_ub=scaled.constants, bounds=(-1.0, 1.0)).fun
                for sign in (1.0, -1.0)
            ]
            status = crosses_at_root(walk, u)
            answers.append(status)
            assert status in {FEASIBLE, INFEASIBLE} or min(map(abs, ends)) < 1e-7
            if status == FEASIBLE:
                assert ends[0] < MARGIN
                assert ends[1] > -MARGIN
            elif status == INFEASIBLE:
                assert ends[0] > 0.0 or ends[1] < 0.0
    assert {FEASIBLE, INFEASIBLE} <= set(answers)


@pytest.mark.parametrize(("kind", "count", "inputs"), [(ByPrograms, count_by_programs, 2), (ByPoints, count_by_points, 16)])
def test_hyperplanes_that_meet_in_one_point_are_not_counted_wrongly(kind, count, inputs):
    weight = np.zeros((3, inputs))
    weight[:, :2] = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]  # six cells; in general position there would be seven
    tree = Tree.of(stability(Network.from_arrays([(weight, None)], relu_output=True), Box(-1, 1, dim=inputs), method="interval"))
    assert count(begun(kind(tree))) in {LATER, NEVER, faces.AGAIN, 6}
