"""Networks on unbounded domains: the bounded ones that stand for them, and what verbs say."""

import itertools
import json

import numpy as np
import pytest
from scipy.sparse import csr_array

import tessella
from helpers.brute_force import region_patterns
from tessella import SCIP, Box, DomainError, Layer, Network, Polytope
from tessella.partition.local import LocalBound
from tessella.partition.tree import Tree
from tessella.unbounded import as_bounded, homogeneous

SPACE = Box(-np.inf, np.inf, dim=2)


def network(shape, seed=0, biases=1.0):
    rng = np.random.default_rng(seed)
    pairs = itertools.pairwise(shape)
    return Network.from_arrays([(rng.normal(size=(b, a)), biases * rng.normal(size=b)) for a, b in pairs], relu_output=True)


def test_units_are_t_times_what_they_were():
    net = network([3, 5, 4, 2])
    found = homogeneous(net, Box([-np.inf, 0, 0.1], [np.inf, np.inf, 0.1]))
    rng = np.random.default_rng(1)
    for _ in range(20):
        x, t = np.array([rng.normal(), rng.uniform(0.0, 9.0), 0.1]), rng.uniform(0.1, 1.0)
        place = np.append(np.where([True, True, False], x * t, 0.0), t)
        assert np.allclose(found.network(place), t * net(x))
        assert np.array_equal(found.network.patterns(place), net.patterns(x))
        assert np.allclose(found.point(place), x)
        assert found.point(place)[2] == 0.1


def test_nothing_is_rounded():
    net = network([2, 3, 3])
    found = homogeneous(net, SPACE).network
    for one, other in zip(net.layers, found.layers, strict=True):
        assert np.array_equal(other.dense()[: one.units, :-1], one.dense())
        assert np.array_equal(other.dense()[: one.units, -1], one.bias)
        assert not other.bias.any()


def test_sparse_layers_stay_sparse():
    dense = network([3, 4, 4])
    sparse = Network(tuple(Layer(csr_array(layer.weight), layer.bias, layer.rectified) for layer in dense.layers))
    for box in (Box(-np.inf, np.inf, dim=3), Box([-np.inf, 0, 1], [np.inf, np.inf, 1])):
        one, other = homogeneous(dense, box), homogeneous(sparse, box)
        assert one.network == other.network
        assert one.domain == other.domain
        assert not isinstance(other.network.layers[-1].weight, np.ndarray)


def test_bounded_domains_stay_as_they_are():
    net, box = network([2, 3]), Box(-1, 1, dim=2)
    assert as_bounded(net, box) == (net, box)


def test_many_fixed_inputs_are_added_sparsely():
    lower, upper = np.full(1200, 0.5), np.full(1200, 0.5)
    lower[:2], upper[:2] = -np.inf, np.inf
    net = network([1200, 3])
    assert not isinstance(homogeneous(net, Box(lower, upper)).network.layers[0].weight, np.ndarray)
    assert tessella.count(net, Box(lower, upper)).exact == 7  # three lines


@pytest.mark.parametrize("width", [1e-3, 1e-9, 1e-14])
@pytest.mark.parametrize("at", [0.7, -0.7, 1e6])
def test_inputs_may_be_narrow(width, at):
    rng = np.random.default_rng(5)
    weight, bias = rng.normal(size=(5, 2)), rng.normal(size=5)
    weight[:2, 0], bias[:2] = [1.0, 2.0], [-at, -2.0 * at]
    net = Network.from_arrays([(weight, bias), (rng.normal(size=(4, 5)), rng.normal(size=4))], relu_output=True)
    ends = [at, at + width * abs(at)]
    layers = [(layer.dense(), layer.bias, layer.rectified) for layer in net.layers]
    true = region_patterns(layers, [ends[0], -1e60], [ends[1], 1e60])
    found = list(tessella.regions(net, Box([ends[0], -np.inf], [ends[1], np.inf])))
    assert {tuple(region.pattern.tolist()) for region in found} == true
    assert tessella.count(net, Box([ends[0], -np.inf], [ends[1], np.inf])).exact == len(true)


def test_what_fixed_inputs_add_to_inequalities_must_be_exact():
    fixed = Box([0.1, -np.inf], [0.1, np.inf])
    net = network([2, 3])
    half, cut = (Box([0.5, -end], [0.5, end]) for end in (np.inf, 1e9))
    for slope, limit in ((1.0, 1.0), (-1.0, 1.0), (0.25, 3.0)):
        counts = [tessella.count(net, Polytope([[slope, 1.0]], [limit], box)).exact for box in (half, cut)]
        assert counts[0] == counts[1]
    assert tessella.count(net, Polytope([[0.0, 1.0]], [1.1], fixed)).exact is not None
    with pytest.raises(DomainError, match="inequality 0 of the polytope reads fixed inputs"):
        tessella.count(net, Polytope([[0.3, 1.0]], [1.1], fixed))


def test_upper_bounds_use_the_dimension_of_the_domain():
    net = network([2, 6, 6])
    bounds = tessella.upper_bounds(net, SPACE)
    assert bounds.configuration == tessella.configuration_bound(net)
    assert bounds.empirical == tessella.empirical_bound(net, SPACE)
    assert bounds.empirical <= bounds.configuration
    tree = Tree.of(tessella.stability(net, SPACE))
    assert tree.homogeneous
    assert tree.domain.free_dim == 3
    assert LocalBound(tree)(b"") == bounds.configuration
    assert tessella.upper_bounds(network([1, 4]), (-np.inf, np.inf)).best == 5


def test_stable_units_are_found_by_intervals():
    weight, bias = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), np.array([1.0, -1.0, 0.0, 0.0])
    net = Network.from_arrays([(weight, bias), ([[-1.0, -2.0, 0.0, -1.0], [1.0, 1.0, 1.0, 1.0]], [-0.5, 0.5])], relu_output=True)
    found = tessella.stability(net, Box(0, np.inf, dim=2))
    assert str(found.bounds.method) == "interval"
    assert [mask.astype(int).tolist() for mask in found.active] == [[1, 0, 1, 0], [0, 1]]
    assert [mask.astype(int).tolist() for mask in found.inactive] == [[0, 1, 0, 1], [1, 0]]
    assert np.allclose(found.bounds.upper[0], [np.inf, -1.0, np.inf, 0.0])
    assert tessella.count(net, Box(0, np.inf, dim=2)).exact == 1
    everywhere = tessella.stability(net, SPACE)
    assert [int(mask.sum()) for mask in everywhere.unstable] == [4, 0]
    json.dumps(everywhere.to_dict(), allow_nan=False)
    assert everywhere.rows()[0]["mean_width"] is None


def test_every_verb_takes_all_of_space():
    net = network([2, 5, 4])
    exact = tessella.count(net, SPACE).exact
    assert repr(tessella.count(net, (-np.inf, np.inf))).startswith(f"Count(exactly {exact} regions = 2^")
    assert "of 2-5-4 on all of R^2" in repr(tessella.count(net, SPACE))
    assert tessella.count(net, SPACE, method="milp").exact == exact
    known = tessella.stability(net, SPACE)
    assert tessella.count(net, SPACE, stability=known).exact == exact
    assert tessella.estimate(net, SPACE).exact == exact
    assert tessella.estimate(net, SPACE, probes=50).lower <= exact
    assert tessella.estimate(net, SPACE, probes=50, stability=known).domain == SPACE
    assert len(list(tessella.regions(net, SPACE))) == exact
    assert tessella.analyze(net, SPACE, seconds=5).exact == exact
    for drawn in tessella.sample_regions(net, SPACE, 20):
        assert np.array_equal(net.patterns(drawn.region.point), drawn.region.pattern)
    for solver in (None, SCIP()):
        found = tessella.mipbound(net, SPACE, repetitions=6, confidence=0.6, solver=solver)
        assert found.empirical >= exact
    json.dumps(tessella.analyze(net, SPACE, seconds=5).to_dict(), allow_nan=False)


def test_a_count_goes_on_where_it_stood(tmp_path):
    net = network([3, 8, 8], seed=4)
    space = Box(-np.inf, np.inf, dim=3)
    exact = tessella.count(net, space).exact
    cut = tessella.count(net, space, seconds=1e-3, checkpoint=tmp_path / "run.db")
    assert cut.lower <= exact <= cut.upper <= tessella.upper_bounds(net, space).best
    assert tessella.count(net, space, checkpoint=tmp_path / "run.db").exact == exact


def test_trackers_take_all_of_space():
    record = tessella.track([([[1.0], [-1.0]], [0.5, 0.5])], (-np.inf, np.inf), relu_output=True).step()
    assert record.exact == 3


@pytest.mark.parametrize(
    "ask",
    [
        lambda net: tessella.polygons(net, SPACE),
        lambda net: tessella.slice(net, axes=(0, 1), domain=SPACE),
        lambda net: tessella.slice(net, [[0, 0], [1, 1]], SPACE),
        lambda net: Tree(net, SPACE),
    ],
)
def test_what_needs_an_end_says_so(ask):
    with pytest.raises(
        DomainError, match=r"needs a bounded domain, and this one is all of R\^2; give a box with finite ends, such as Box"
    ):
        ask(network([2, 3]))


def test_regions_are_given_in_the_coordinates_of_the_network():
    net = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0]], [-1.0, -2.0])], relu_output=True)
    found = {tuple(region.pattern.tolist()): region for region in tessella.regions(net, Box([0, -np.inf], [np.inf, np.inf]))}
    assert len(found) == 4
    region = found[False, True]  # 0 <= x <= 1, y >= 2
    matrix, offset = region.inequalities(redundant=False)
    rows = sorted((*row, limit) for row, limit in zip((matrix + 0.0).tolist(), (offset + 0.0).tolist(), strict=True))
    assert rows == [(-1.0, 0.0, 0.0), (0.0, -1.0, -2.0), (1.0, 0.0, 1.0)]
    assert len(region.inequalities()[1]) == 3
    assert region.radius == pytest.approx(0.5)
    assert region.bounded is False
    assert region.domain == Box([0, -np.inf], [np.inf, np.inf])
    assert {tuple(other.pattern.tolist()) for other in region.neighbours()} == {(True, True), (False, False)}
    assert found[True, True].radius == np.inf
    assert np.array_equal(region.affine_map[0], [[0.0, 0.0], [0.0, 1.0]])
    square = tessella.regions(net, Box([0, 0], [np.inf, np.inf]))
    assert [region.bounded for region in sorted(square, key=lambda region: region.pattern.tolist())] == [
        True,
        False,
        False,
        False,
    ]


def test_an_unbounded_polytope_in_rows_alone():
    net = network([2, 5, 4], seed=2)
    wedge = Polytope([[1.0, 0.25], [-1.0, 0.25]], [1.0, 0.5])
    layers = [(layer.dense(), layer.bias, layer.rectified) for layer in net.layers]
    true = region_patterns(layers, [-1e30] * 2, [1e30] * 2, wedge.matrix, wedge.offset)
    assert {tuple(region.pattern.tolist()) for region in tessella.regions(net, wedge)} == true
    assert tessella.count(net, wedge).exact == len(true)


@pytest.mark.parametrize("scale", [1e-12, 1e-5, 1.0, 1e5, 1e12])
def test_scale_does_not_matter(scale):
    one = network([2, 6, 5], seed=3)
    first = one.layers[0]
    other = Network((Layer(first.weight / scale, first.bias, first.rectified), *one.layers[1:]))
    assert tessella.count(other, SPACE).exact == tessella.count(one, SPACE).exact
    assert tessella.count(other, Box(0, np.inf, dim=2)).exact == tessella.count(one, Box(0, np.inf, dim=2)).exact


def test_a_network_without_biases_has_cones():
    net = network([2, 5, 5], biases=0.0)
    found = list(tessella.regions(net, SPACE))
    assert len(found) == tessella.count(net, SPACE).exact == tessella.count(net, Box(-1, 1, dim=2)).exact
    assert all(region.bounded is False and region.radius == np.inf for region in found)


@pytest.mark.parametrize("far", [1e20, 1e91, 1e100, 1e200, 1e307])
def test_ends_may_be_far_out(far):
    net = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]], [0.0, -0.5, 0.25]), ([[1.0, 1.0, -2.0]], [0.0])])
    for box, regions in (
        (Box([far, 0], [np.inf, 1]), 2),
        (Box([-np.inf, 0], [-far, 1]), 2),
        (Box([-np.inf, 0], [far, 1]), 7),  # three lines with three crossings
        (Box([far, far], [np.inf, np.inf]), 2),
    ):
        assert tessella.count(net, box).exact == len(list(tessella.regions(net, box))) == regions


def test_weights_whose_products_overflow_are_counted():
    """Warnings are errors here; the numbers are those of `helpers.brute_force_anywhere`."""
    for seed, regions in enumerate((30, 21, 22, 24)):
        rng = np.random.default_rng(seed)
        pairs = [(rng.normal(size=(units, inputs)) * 1e200, rng.normal(size=units)) for units, inputs in ((4, 2), (3, 4))]
        assert tessella.count(Network.from_arrays(pairs, relu_output=True), SPACE).exact == regions
