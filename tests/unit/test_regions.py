"""Regions one by one: what is listed, and what each says of itself."""

import itertools
import tracemalloc

import numpy as np
import pytest
from scipy.spatial import HalfspaceIntersection

from helpers.brute_force import region_patterns
from helpers.odd_networks import Case, random_case
from tessella import Box, DomainError, Layer, Network, OptionError, Polytope, stability
from tessella.listing.listing import regions
from tessella.partition.region import Region
from tessella.partition.witness import Proof, Witness, deep_points, walls


def generic(seed, dim, sizes):
    rng = np.random.default_rng(seed)
    layers, before = [], dim
    for size in sizes:
        layers.append((rng.standard_normal((size, before)), 0.5 * rng.standard_normal(size), np.ones(size, dtype=bool)))
        before = size
    return Case(layers, -np.ones(dim), np.ones(dim))


def listed(case):
    return list(regions(case.network, case.domain))


def patterns(found):
    return [tuple(region.pattern.tolist()) for region in found]


@pytest.mark.parametrize("block", range(8))
def test_the_same_regions_as_the_oracle(block):
    for seed in range(block * 25, block * 25 + 25):
        case = random_case([5, seed], largest=200)
        found = patterns(listed(case))
        assert len(set(found)) == len(found), seed
        assert set(found) == region_patterns(*case), seed


@pytest.mark.parametrize("seed", range(6))
def test_points_lie_inside(seed):
    case = generic(seed, 2 + seed % 4, [6, 4])
    network, domain = case.network, case.domain
    if seed % 2:
        domain = Polytope([[1.0] * domain.dim], [0.3], domain)
    for region in regions(network, domain):
        assert domain.contains(region.point)
        assert ((region.point > domain.box.lower) & (region.point < domain.box.upper)).all()
        assert (network.patterns(region.point) == region.pattern).all()
        matrix, offset = region.inequalities()
        assert (matrix @ region.point < offset).all()
        weight, bias = region.affine_map
        assert np.allclose(weight @ region.point + bias, network(region.point))
        assert not region.pattern.flags.writeable
        assert not region.point.flags.writeable


def test_thin_regions_are_there_without_a_point():
    """The units change at 1 + 1.5e-16 and 1 + 1.8e-16; the floating-point numbers there are 1 and 1 + 2.2e-16."""
    bias = -np.nextafter([3.0, 5.0], 9.0)
    case = Case([(np.array([[3.0], [5.0]]), bias, np.ones(2, dtype=bool))], np.zeros(1), 2.0 * np.ones(1))
    found = listed(case)
    assert set(patterns(found)) == region_patterns(*case) == {(False, False), (True, False), (True, True)}
    (between,) = [region for region in found if region.pattern.sum() == 1]
    assert between.point is None
    assert "thinner" in repr(between)
    assert between.radius < 1e-12


def test_stable_units_keep_the_state_that_points_have():
    """A unit that is nowhere negative is called stably active, and is inactive all the same where it is 0."""
    layers = [([[1.0], [-1.0]], [-0.5, -0.5], True), ([[1.0, 1.0]], [0.0], True)]
    case = Case([(np.array(w), np.array(b), np.ones(len(b), dtype=bool)) for w, b, _ in layers], -np.ones(1), np.ones(1))
    assert set(patterns(listed(case))) == {(False, False, False), (True, False, True), (False, True, True)}


def test_domains():
    net = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 0.0, -0.5])], relu_output=True)
    cube = Box.cube(-1, 1, 2)
    for domain, count in [
        (cube, 7),
        (Box([-1, 0.25], [1, 0.25]), 3),
        (Box.cube(1, 1, 2), 1),
        (Polytope([[1.0, 0.0]], [-0.5], cube), 2),
        (Box.cube(2, 3, 2), 1),
    ]:
        assert len(list(regions(net, domain))) == count
    without = Network((Layer(np.eye(2), np.zeros(2), False),))
    (only,) = regions(without, cube)
    assert only.pattern.shape == (0,)
    assert only.radius == pytest.approx(1.0)
    assert list(only.neighbours()) == []


def test_misuse():
    case = generic(0, 2, [3])
    with pytest.raises(DomainError, match="3 inputs"):
        regions(case.network, Box.cube(0, 1, 3))
    other = stability(generic(1, 2, [3]).network, case.domain)
    with pytest.raises(OptionError, match="another network"):
        regions(case.network, case.domain, stability=other)


def test_memory_does_not_grow():
    case = generic(3, 5, [9, 6])
    known = stability(case.network, case.domain, method="lp")
    sizes = []
    for _ in itertools.islice(regions(case.network, case.domain, stability=known), 1000):
        pass  # compiled functions are loaded once, whenever they are called first: that is not what grows
    tracemalloc.start()
    for count, _ in enumerate(itertools.islice(regions(case.network, case.domain, stability=known), 1000), start=1):
        if count % 200 == 0:
            sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert len(sizes) == 5
    assert sizes[-1] < sizes[0] + 100_000


# --- inequalities


def vertices(matrix, offset, point):
    found = HalfspaceIntersection(np.column_stack([matrix, -offset]), point).intersections
    return np.unique(found.round(6), axis=0)


@pytest.mark.parametrize("seed", range(8))
def test_redundant_inequalities(seed):
    dim = 2 + seed % 2
    case = generic(seed, dim, [5, 4])
    domain = Polytope(np.ones((1, dim)), [0.4], case.domain) if seed % 3 == 0 else case.domain
    for region in itertools.islice(regions(case.network, domain), 25):
        if region.radius < 1e-4:
            continue
        all_rows, few_rows = region.inequalities(), region.inequalities(redundant=False)
        assert len(all_rows[0]) == case.units + 2 * dim + (seed % 3 == 0)
        assert len(few_rows[0]) <= len(all_rows[0])
        whole = vertices(*all_rows, region.point)
        assert np.allclose(whole, vertices(*few_rows, region.point), atol=1e-5)
        for row in range(len(few_rows[0])):  # without any one of them it is larger
            matrix, offset = (np.delete(part, row, axis=0) for part in few_rows)
            far = [*matrix, *np.eye(dim), *-np.eye(dim)], [*offset, *np.full(2 * dim, 50.0)]
            larger = vertices(np.array(far[0]), np.array(far[1]), region.point)
            assert (larger @ few_rows[0][row] > few_rows[1][row] + 1e-5).any()


def test_a_unit_in_a_face_of_the_box_is_redundant():
    net = Network.from_arrays([([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]], [1.0, 0.0, 3.0])], relu_output=True)
    found = list(
        regions(
            net,
            Box(
                [
                    -1,
                    -1,
                ],
                [1, 1],
            ),
        )
    )
    for region in found:
        assert len(region.inequalities(redundant=False)[1]) == 4
        assert len(list(region.neighbours())) == 1
    fixed = next(iter(regions(net, Box([-1, 0.5], [1, 0.5]))))
    _, offset = fixed.inequalities(redundant=False)
    assert len(offset) == 4  # two ends of the free input, two of the fixed one


def test_radius():
    net = Network.from_arrays([([[1.0, 0.0]], [0.0])], relu_output=True)
    assert [region.radius for region in regions(net, Box.cube(-1, 1, 2))] == pytest.approx([0.5, 0.5])
    assert next(iter(regions(net, Box([-1, 0], [1, 0])))).radius == pytest.approx(0.5)
    assert next(iter(regions(net, Box([1, 0], [1, 0])))).radius == 0.0


# --- neighbours


def reached_from(first, around):
    reached, waiting = {first}, [first]
    while waiting:
        new = around[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached


@pytest.mark.parametrize("seed", range(10))
def test_neighbours_are_mutual_and_reach_everything(seed):
    case = generic(seed, 1 + seed % 4, [5, 4] if seed % 2 else [4, 3, 2])
    found = listed(case)
    around = {region: set(region.neighbours()) for region in found}
    assert set().union(*around.values()) <= set(found)
    assert all(region in around[other] for region in found for other in around[region])
    assert not any(region in around[region] for region in found)
    assert reached_from(found[0], around) == set(found)


def test_several_units_change_at_one_wall():
    layers = [([[1.0], [1.0], [-2.0]], [0.0, 0.0, 0.0]), ([[1.0, 1.0, -1.0]], [0.0])]
    net = Network.from_arrays(layers, relu_output=True)
    found = {tuple(region.pattern.tolist()): region for region in regions(net, Box.cube(-1, 1, 1))}
    left, right = (False, False, True, False), (True, True, False, True)
    assert set(found) == {left, right}
    assert list(found[left].neighbours()) == [found[right]]
    assert list(found[right].neighbours()) == [found[left]]


@pytest.mark.parametrize("block", range(6))
def test_neighbours_in_odd_networks(block):
    """All are regions; where no region is as thin as rounding, they are mutual and reach everything."""
    whole = 0
    for seed in range(block * 10, block * 10 + 10):
        case = random_case([4, seed], largest=60, thin=False)
        found = listed(case)
        around = {region: set(region.neighbours()) for region in found}
        assert set().union(*around.values()) <= set(found), seed
        narrowest = np.min((case.upper - case.lower)[case.lower < case.upper], initial=1.0)
        if case.free and min(region.radius for region in found) > 1e-6 * narrowest:
            whole += 1
            assert all(region in around[other] for region in found for other in around[region]), seed
            assert reached_from(found[0], around) == set(found), seed
    assert whole > 3


# --- witnesses


def test_witness():
    net = Network.from_arrays([([[1.0], [1.0]], [0.0, 1e-30]), ([[1.0, -1.0]], [0.0])], relu_output=True)
    witness = Witness(net, Box.cube(-1, 1, 1))
    assert witness.pattern([0.0]) is None  # on a border
    assert witness.pattern([2.0]) is None  # outside
    assert witness.pattern([-1e-31]).tolist() == [False, True, False]
    assert witness.pattern([0.5]).tolist() == [True, True, False]  # the last unit is -1e-30 there, and 0 in floating point
    equal = Network.from_arrays([([[1.0], [1.0]], [0.0, 0.0]), ([[1.0, -1.0]], [0.0])], relu_output=True)
    assert Witness(equal, Box.cube(-1, 1, 1)).pattern([0.5]).tolist() == [True, True, False]  # 0 all around: inactive
    cut = Witness(net, Polytope([[3.0]], [1.0], Box.cube(-1, 1, 1)))
    assert cut.pattern([1.0 / 3.0]) is not None
    assert cut.pattern([np.nextafter(1.0 / 3.0, 1.0)]) is None


def test_proof():
    net = Network.from_arrays([([[1.0], [1.0]], [0.0, 0.0]), ([[1.0, 1.0]], [0.0])], relu_output=True)
    box = Box.cube(-1, 1, 1)
    prove = Proof(net, box)
    for states, there in [([1, 1, 1], [1, 1, 1]), ([0, 0, 1], [0, 0, 0]), ([1, 0, 1], None), ([0, 0, 0], [0, 0, 0])]:
        pattern = np.array(states, dtype=bool)
        found = prove(pattern, *walls(net, pattern))
        assert (None if found is None else found[0].astype(int).tolist()) == there


def test_deep_points():
    square = next(deep_points(Box.cube(0, 4, 2), np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([-2.0, 1.0])))
    assert square[0] == pytest.approx(3.0)
    many = Box.cube(-1, 1, 40)
    points = list(deep_points(many, np.ones((1, 40)), np.array([-39.9])))
    assert points
    assert all(many.contains(point) and point.sum() > 39.9 for point in points)
    assert list(deep_points(many, np.ones((1, 40)), np.array([-41.0]))) == []


def test_equality_and_text():
    case = generic(0, 2, [3])
    first, *others = listed(case)
    same = Region(case.network, case.domain, first.pattern)
    assert first == same
    assert hash(first) == hash(same)
    assert first not in others
    assert first != Region(case.network, Box.cube(0, 1, 2), first.pattern)
    assert repr(first).startswith("Region(")
    assert "of 3 ReLUs active, around [" in repr(first)
