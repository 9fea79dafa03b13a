"""Walls are proved: each neighbour comes once, and what could not be decided is said."""

import itertools

import numpy as np
import pytest

from fuzz.drawing import draw
from helpers.brute_force_walls import graph_anywhere, graph_of_regions
from helpers.odd_networks import Case, leaky_case, random_case
from tessella import Box, Layer, Neighbours, Network, OptionError, Region, regions
from tessella.kernel.deadline import Deadline
from tessella.partition.facets import Facets


def pairs(edges):
    return {(one, other) for edge in edges for one, other in itertools.permutations(edge)}


def behind_walls(case):
    """All pairs of regions, each as the one says that the other is its neighbour."""
    found = list[tuple]()
    for region in regions(case.network, case.domain):
        around = region.neighbours()
        assert around.complete
        for other, units in zip(around, around.units, strict=True):
            assert tuple(np.flatnonzero(other.pattern != region.pattern)) == units
            found.append((tuple(region.pattern.tolist()), tuple(other.pattern.tolist())))
    assert len(set(found)) == len(found)
    return set(found)


@pytest.mark.parametrize(("make", "block"), [(random_case, 0), (random_case, 1), (leaky_case, 0), (leaky_case, 1)])
def test_the_same_as_the_oracle(make, block):
    for seed in range(20 * block, 20 * block + 20):
        case = make([8, seed], largest=40)
        assert behind_walls(case) == pairs(graph_of_regions(*case)[1]), seed


def check_adversarial(seeds):
    compared = 0
    for seed in seeds:
        prey = draw(seed)
        endless = np.isinf(np.concatenate([prey.truth.lower, prey.truth.upper])).any()
        if not endless or (prey.truth.lower < prey.truth.upper).sum() <= 3:
            truth, edges = (graph_anywhere if endless else graph_of_regions)(*prey.truth)
            if len(truth) <= 40:
                assert behind_walls(prey.case) == pairs(edges), (seed, prey.kinds)
                compared += 1
    return compared


def test_adversarial_networks():
    """Networks that are meant to break claims, on tiny, huge, far and unbounded domains."""
    assert check_adversarial(range(25)) > 15


@pytest.mark.slow
def test_many_adversarial_networks():
    assert check_adversarial(range(25, 400)) > 250


def test_two_oracles_agree():
    for seed in range(30):
        case = random_case([9, seed], largest=20, most_inputs=3)
        assert graph_anywhere(*case) == graph_of_regions(*case), seed


def test_regions_with_one_unit_of_difference_need_not_meet():
    """On a line, |x| - 1 is positive on both ends: two regions differ in the sign of x alone, and the one between them is their neighbour."""
    net = Network((Layer([[1.0]], [0.0], slope=-1.0), Layer([[1.0]], [-1.0])))
    found = {tuple(one.pattern.tolist()): one for one in regions(net, (-2, 2))}
    assert len(found) == 4
    left, right = found[False, True], found[True, True]
    assert right not in left.neighbours()
    assert [tuple(one.pattern.tolist()) for one in left.neighbours()] == [(False, False)]


def test_units_that_are_zero_in_a_region_change_behind_its_wall():
    """The second layer is 0 where both units of the first are inactive: behind each of the two walls it is active."""
    net = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0]), ([[1.0, 1.0]], [0.0])], relu_output=True)
    (dead,) = [one for one in regions(net, (-1, 1)) if not one.pattern.any()]
    around = dead.neighbours()
    assert around.units == ((0, 2), (1, 2))
    assert [one.pattern.astype(int).tolist() for one in around] == [[1, 0, 1], [0, 1, 1]]


def test_what_cannot_be_decided_is_said():
    """Three lines through one point of a triangle: the third meets it in a corner, and exact arithmetic has no time to say so."""
    net = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 0.0, 0.0])], relu_output=True)
    (corner,) = [one for one in regions(net, (-1, 1)) if one.pattern.all()]
    assert len(corner.neighbours()) == 2
    known = Facets(net, Box(-1, 1, dim=2)).of(corner.pattern, Deadline(-np.inf))
    assert {wall.units for wall in known.found} == {(0,), (1,)}
    assert known.undecided == (2,)
    around = Neighbours(corner, tuple(corner.neighbours()), corner.neighbours().units, (2,))
    assert not around.complete
    assert repr(around) == "Neighbours(2 regions behind proved walls, 1 ReLUs undecided)"


def test_what_is_known_is_not_asked_again():
    net = Network.from_arrays([(np.eye(3), [0.0, 0.5, 0.75])], relu_output=True)
    facets, pattern = Facets(net, Box(-1, 1, dim=3)), np.array([True, True, True])
    assert [wall.units for wall in facets.of(pattern).found] == [(0,), (1,), (2,)]
    assert [wall.units for wall in facets.of(pattern, known={0: True, 1: False}).found] == [(2,)]


def test_json_and_tables():
    net = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0])], relu_output=True)
    around = next(iter(regions(net, (-1, 1)))).neighbours()
    again = Neighbours.from_json(around.to_json(), network=net)
    assert list(again) == list(around)
    assert (again.region, again.units, again.undecided) == (around.region, around.units, ())
    assert [row["changes"] for row in around.rows()] == ["0", "1"]
    assert around[0] == next(iter(around))
    assert isinstance(around[0], Region)
    assert "Neighbours of a region" in around._repr_html_()
    with pytest.raises(OptionError, match="positive number"):
        around.region.neighbours(seconds=0)


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1.0, 1e160, 1e300])
def test_radius_with_weights_of_any_size(scale):
    one = Network.from_arrays([([[scale, 0.0]], [0.0])], relu_output=True)
    assert [region.radius for region in regions(one, Box.cube(-1, 1, 2))] == pytest.approx([0.5, 0.5])


def test_radius_where_coefficients_overflow_and_values_do_not():
    net, size = Network.from_arrays([([[1e200]], [0.0]), ([[1e200]], [-1e200])], relu_output=True), 4e-200
    left, middle, right = (
        Region(net, Box(-size, size, dim=1), np.array(states)) for states in [(False, False), (True, False), (True, True)]
    )
    assert [region.radius / size for region in (left, middle, right)] == pytest.approx([0.5, 0.125, 0.375])
    assert [list(region.neighbours()) for region in (left, middle, right)] == [[middle], [left, right], [middle]]


def test_radius_in_few_and_many_dimensions():
    """A cube cut in the middle, by one linear program and, with more inputs, step by step."""
    for dim in (3, 16, 20):
        net = Network.from_arrays([(np.eye(dim)[:1], [0.25])], relu_output=True)
        radii = {bool(region.pattern[0]): region.radius for region in regions(net, Box.cube(-1, 1, dim))}
        assert radii == pytest.approx({True: 0.625, False: 0.375})


def test_many_inputs():
    """With a few hundred inputs: neighbours are mutual, and differ in one unit."""
    rng = np.random.default_rng(0)
    layers = [
        (rng.standard_normal((5, 300)) / 17.0, rng.standard_normal(5)),
        (rng.standard_normal((4, 5)), rng.standard_normal(4)),
    ]
    net = Network.from_arrays(layers, relu_output=True)
    box = Box.cube(-1, 1, 300)
    for region in itertools.islice(regions(net, box), 4):
        around = region.neighbours()
        assert around.complete
        assert all(len(units) == 1 for units in around.units)
        assert all(region in other.neighbours() for other in itertools.islice(around, 2))


def test_regions_of_generic_arrangements_have_at_most_two_walls_per_dimension_on_average():
    """Half the mean number of walls, those of the box not counted, is at most the number of inputs."""
    for seed in range(4):
        rng, dim = np.random.default_rng(seed), 1 + seed
        layers = [(rng.standard_normal((6, dim)), 0.4 * rng.standard_normal(6), np.ones(6, dtype=bool))]
        case = Case(layers, -np.ones(dim), np.ones(dim))
        walls = [len(region.neighbours()) for region in regions(case.network, case.domain)]
        assert np.mean(walls) <= 2 * dim
