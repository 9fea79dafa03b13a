"""Statistics over regions: the same as brute force where all are listed, and intervals that hold where they are drawn."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, linprog, milp
from scipy.spatial import ConvexHull, HalfspaceIntersection

import tessella
from helpers.brute_force_walls import graph_of_regions
from helpers.odd_networks import random_case
from tessella import Box, Distribution, Network, OptionError, Polytope, Statistic, Summary, summarise
from tessella.summarising import intervals
from tessella.summarising.summary import How


def random_network(sizes, seed=0, scale=0.5):
    rng = np.random.default_rng(seed)
    return Network.from_arrays(
        [(rng.standard_normal((n, m)), scale * rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)]
    )


def exact_map(network, pattern, free):
    """The affine map of a pattern in fractions, of the free inputs."""
    rows = [[Fraction(int(i == j)) for j in range(network.input_dim)] + [Fraction(0)] for i in range(network.input_dim)]
    place = 0
    for layer in network.layers:
        weight = layer.dense().tolist()
        new = []
        for unit, own in enumerate(weight):
            row = [
                sum((Fraction(a) * value[c] for a, value in zip(own, rows, strict=True)), Fraction(0))
                for c in range(network.input_dim + 1)
            ]
            row[-1] += Fraction(float(layer.bias[unit]))
            if layer.rectified[unit]:
                if not pattern[place]:
                    row = [Fraction(float(layer.slope[unit])) * value for value in row]
                place += 1
            new.append(row)
        rows = new
    return tuple(tuple(row[c] for c in [*np.flatnonzero(free), -1]) for row in rows)


def corners_of(region):
    """The corners of a region by Qhull."""
    rows, limits = region.inequalities()
    sizes = np.linalg.norm(rows, axis=1)
    best = linprog(
        np.append(np.zeros(rows.shape[1]), -1.0),
        np.column_stack([rows, sizes]),
        limits,
        bounds=[(None, None)] * (rows.shape[1] + 1),
    )
    moves = sizes > 0
    return HalfspaceIntersection(np.column_stack([rows[moves], -limits[moves]]), best.x[:-1]).intersections, -best.fun


@pytest.mark.parametrize(("sizes", "seed"), [((2, 6, 5, 3), 0), ((3, 6, 4, 2), 1), ((2, 7, 4, 1), 2), ((4, 5, 4, 3), 3)])
def test_all_statistics_are_those_of_the_regions(sizes, seed):
    net, box = random_network(sizes, seed), Box(-1, 1, dim=sizes[0])
    found = summarise(net, box)
    regions = {region.pattern.tobytes(): region for region in tessella.regions(net, box)}
    assert found.listed
    assert found.regions == len(regions)
    assert found.confidence == 1.0
    ordered = [regions[row.tobytes()] for row in tessella.graph(net, box).patterns]
    maps = [exact_map(net, region.pattern, box.free) for region in ordered]
    matrices = [np.array([[float(value) for value in row[:-1]] for row in one]) for one in maps]
    expected = {
        "active": [region.pattern.sum() for region in ordered],
        "rank": [np.linalg.matrix_rank(matrix) for matrix in matrices],
        "spectral": [np.linalg.norm(matrix, 2) for matrix in matrices],
        "frobenius": [np.linalg.norm(matrix) for matrix in matrices],
        "maximum": [np.linalg.norm(matrix, np.inf) for matrix in matrices],
        "walls": [len(region.neighbours()) for region in ordered],
        "radius": [corners_of(region)[1] for region in ordered],
        "volume": [ConvexHull(corners_of(region)[0]).volume for region in ordered],
    }
    for name, values in expected.items():
        assert found.distribution(name).how is How.ALL
        np.testing.assert_allclose(found.distribution(name).values, values, rtol=1e-6, atol=1e-9, err_msg=name)
    assert found.distribution("volume").values.sum() == pytest.approx(2.0 ** sizes[0], rel=1e-12)
    check_decisions(found.distribution("decision").values, ordered, net)
    assert found.maps == len(set(maps))
    assert found.lipschitz[0] <= max(expected["spectral"]) * (1 + 1e-12)
    assert found.lipschitz[1] >= max(expected["spectral"]) * (1 - 1e-12)
    assert found.lipschitz[1] - found.lipschitz[0] < 1e-8
    assert found.status == "finished"


def check_decisions(values, ordered, net):
    """A decision is constant if and only if it is at all corners of a region."""
    for value, region in zip(values, ordered, strict=True):
        outputs = net(corners_of(region)[0])
        outputs = np.column_stack([np.zeros(len(outputs)), outputs]) if outputs.shape[1] == 1 else outputs
        margins = [(outputs[:, one] - np.delete(outputs, one, axis=1).max(axis=1)).min() for one in range(outputs.shape[1])]
        if value >= 0:
            assert margins[int(value)] >= -1e-7
        else:
            assert max(margins) <= 1e-7


def pieces_by_hand(case, network):
    """Different maps, and connected pieces that share one, in fractions."""
    regions, edges = graph_of_regions(*case)
    free = case.lower < case.upper
    fixed = np.where(free, 0.0, case.lower)
    maps = {}
    for region in regions:
        whole = exact_map(network, region, np.ones(len(free), dtype=bool))
        maps[region] = tuple(
            (
                *(row[c] for c in np.flatnonzero(free)),
                row[-1] + sum(a * Fraction(float(x)) for a, x in zip(row[:-1], fixed, strict=True)),
            )
            for row in whole
        )
    parent = {region: region for region in regions}

    def root(one):
        while parent[one] != one:
            one = parent[one]
        return one

    for one, other in map(tuple, edges):
        if maps[one] == maps[other]:
            parent[root(one)] = root(other)
    return len(set(maps.values())), len({root(one) for one in regions})


def test_maps_and_pieces_of_odd_networks():
    """Equal, opposite and dead units: regions that share a map, also where floating-point numbers would round."""
    shared = 0
    for seed in range(40):
        case = random_case([26, seed], largest=40, most_inputs=3)
        found = summarise(case.network, case.domain, ["active", "walls"])
        assert (found.maps, found.pieces) == pieces_by_hand(case, case.network), seed
        shared += found.maps < found.regions
    assert shared >= 5


def steepest_by_milp(network, box):
    """The largest sum of sizes of the gradient of a network with one output, by a MILP that chooses states of units and a point with a margin.

    Products of states of two layers are variables of their own.
    """
    first, second, last = network.layers
    (n1, d), n2 = first.weight.shape, second.units
    products, size = n1 * n2, 100.0
    total = d + n1 + n1 + n2 + products  # x, h, z1, z2, z1 z2
    x, h, z1, z2, both = np.split(np.arange(total), np.cumsum([d, n1, n1, n2]))
    rows, lows, highs = [], [], []

    def add(terms, low=-np.inf, high=np.inf):
        row = np.zeros(total)
        for columns, values in terms:
            row[columns] += values
        rows.append(row)
        lows.append(low)
        highs.append(high)

    margin = 1e-5
    for i in range(n1):
        add([(x, first.weight[i]), (z1[i], -size)], -size + margin - first.bias[i])  # z = 1: g >= margin
        add([(x, first.weight[i]), (z1[i], -size)], high=-margin - first.bias[i])  # z = 0: g <= -margin
        add([(h[i], 1.0), (x, -first.weight[i])], low=first.bias[i])
        add([(h[i], 1.0)], low=0.0)
        add([(h[i], 1.0), (z1[i], -size)], high=0.0)
        add([(h[i], 1.0), (x, -first.weight[i]), (z1[i], size)], high=first.bias[i] + size)
    for j in range(n2):
        add([(h, second.weight[j]), (z2[j], -size)], -size + margin - second.bias[j])
        add([(h, second.weight[j]), (z2[j], -size)], high=-margin - second.bias[j])
        for i in range(n1):
            product = both[j * n1 + i]
            add([(product, 1.0), (z1[i], -1.0)], high=0.0)
            add([(product, 1.0), (z2[j], -1.0)], high=0.0)
            add([(product, 1.0), (z1[i], -1.0), (z2[j], -1.0)], low=-1.0)
            add([(product, 1.0)], low=0.0)
    integral = np.zeros(total)
    integral[z1], integral[z2] = 1, 1
    lower, upper = np.full(total, -np.inf), np.full(total, np.inf)
    lower[x], upper[x] = box.lower, box.upper
    lower[d + n1 :], upper[d + n1 :] = 0.0, 1.0
    best = 0.0
    for signs in itertools.product([-1.0, 1.0], repeat=d):
        goal = np.zeros(total)
        for j, i in itertools.product(range(n2), range(n1)):
            goal[both[j * n1 + i]] = last.weight[0, j] * second.weight[j, i] * (first.weight[i] @ np.array(signs))
        found = milp(
            -goal, constraints=LinearConstraint(np.array(rows), lows, highs), integrality=integral, bounds=(lower, upper)
        )
        best = max(best, -found.fun)
    return best


def test_lipschitz_constants_equal_those_of_a_milp():
    for seed in range(5):
        net, box = random_network((2, 4, 3, 1), 40 + seed), Box(-1, 1, dim=2)
        found = summarise(net, box, ["maximum"])
        assert found.lipschitz_maximum[0] == pytest.approx(steepest_by_milp(net, box), rel=1e-6, abs=1e-6)


def drawn(monkeypatch, net, domain, *args, **options):
    """A summary of a network whose regions there is no time to list."""
    monkeypatch.setattr("tessella.summarising.summarise._LISTING", 1e-12)
    return summarise(net, domain, *args, **options)


def test_what_is_drawn_holds_the_truth(monkeypatch):
    net, box = random_network((3, 7, 5, 3), 5), Box(-1, 1, dim=3)
    truth = summarise(net, box)
    found = drawn(monkeypatch, net, box, seconds=60.0, samples=400)
    assert (found.listed, found.status, found.maps, found.confidence) == (False, "time limit", None, 0.95)
    for one in found.distributions:
        whole = truth.distribution(one.name)
        assert one.how is How.DRAWN
        assert len(one) == 400
        assert one.mean.low <= whole.mean.value <= one.mean.high
        for share in (0.1, 0.5, 0.9):
            between = one.quantile(share)
            assert between.low <= whole.quantile(share).value <= between.high
        assert one.largest.low <= whole.largest.value * (1 + 1e-12)
        assert whole.largest.value <= one.largest.high * (1 + 1e-12)
    changes, whole = found.distribution("decision").share(-1), truth.distribution("decision").share(-1)
    assert changes.low <= whole.value <= changes.high
    assert found.lipschitz[0] <= truth.lipschitz[1] <= found.lipschitz[1]
    assert "All intervals hold together with 95 % confidence." in found.notes()


def test_the_same_seed_draws_the_same_regions(monkeypatch):
    net = random_network((3, 7, 5, 3), 5)
    one, two, other = (drawn(monkeypatch, net, (-1, 1), "active", samples=50, rng=seed) for seed in (1, 1, 2))
    assert (one.distribution("active").values == two.distribution("active").values).all()
    assert (one.distribution("active").values != other.distribution("active").values).any()


def test_upper_bounds_on_slopes_hold():
    for seed in range(4):
        net, box = random_network((2, 6, 5, 2), 60 + seed), Box(-0.5, 0.5, dim=2)
        truth = summarise(net, box, ["spectral", "maximum", "frobenius"])
        for name in ("spectral", "maximum", "frobenius"):
            one = truth.distribution(name)
            assert one.values.max() <= one.most
        assert truth.distribution("spectral").most < np.prod([np.linalg.norm(layer.weight, 2) for layer in net.layers]) * (
            1 + 1e-5
        )


def test_shares_of_the_volume_by_points():
    net, box = random_network((2, 5, 3), 7), Box(-1, 1, dim=2)
    exact, found = summarise(net, box, "volume").distribution("volume"), summarise(net, box, "share").distribution("share")
    assert found.off < 0.02
    assert (np.abs(found.values - exact.values / 4.0) <= found.off).all()
    assert found.largest.low <= exact.largest.value / 4.0 <= found.largest.high
    half = Polytope([[1.0, 1.0]], [0.0], box)
    assert summarise(net, half, "share").distribution("share").values.sum() == pytest.approx(1.0)
    assert summarise(net, half, "volume").distribution("volume").values.sum() == pytest.approx(2.0)


def test_volumes_of_degenerate_and_many_networks_sum_to_the_box():
    compared = 0
    for seed in range(30):
        case = random_case([27, seed], largest=40, most_inputs=4)
        if case.matrix is None and case.free:
            sizes = (case.upper - case.lower)[case.lower < case.upper]
            found = summarise(case.network, case.domain, "volume").distribution("volume").values
            assert found.sum() == pytest.approx(np.prod(sizes), rel=1e-6), seed
            assert (found >= 0).all(), seed  # some are too thin for their volume to be a number in double precision
            compared += len(found) > 1
    assert compared > 8


@pytest.mark.slow
def test_intervals_hold_when_one_stops_at_the_worst_moment():
    """In 1,000 runs, each stopped at the stage that looks worst, of a skewed statistic: means, quantiles and shares together."""
    rng = np.random.default_rng(0)
    population = np.floor(20.0 * rng.beta(0.5, 2.0, 400))
    truth = {share: np.sort(population)[math.ceil(share * 400) - 1] for share in (0.05, 0.25, 0.5, 0.75, 0.95)}
    mean, wrong = population.mean(), 0
    for _ in range(1000):
        values = rng.choice(population, intervals.size_of(5))
        for stage in range(6):
            one = Distribution(
                Statistic.ACTIVE,
                values[: intervals.size_of(stage)].copy(),
                How.DRAWN,
                0.0,
                20.0,
                intervals.chance_of(stage, 0.05),
            )
            good = one.mean.low <= mean <= one.mean.high
            good &= all((between := one.quantile(share)).low <= value <= between.high for share, value in truth.items())
            good &= (between := one.share(3.0, 7.0)).low <= ((population >= 3) & (population <= 7)).mean() <= between.high
            if not good:
                wrong += 1
                break
    assert wrong <= 50


@pytest.mark.slow
def test_intervals_of_decisions_hold():
    rng, wrong = np.random.default_rng(1), 0
    classes = np.array([-1.0, 0.0, 1.0, 2.0])
    truth = np.array([0.3, 0.02, 0.08, 0.6])
    for _ in range(1000):
        values = rng.choice(classes, intervals.size_of(3), p=truth)
        for stage in range(4):
            one = Distribution(
                Statistic.DECISION,
                values[: intervals.size_of(stage)].copy(),
                How.DRAWN,
                -1.0,
                2.0,
                intervals.chance_of(stage, 0.05),
            )
            shares = [one.share(value) for value in classes]
            if any(not between.low <= share <= between.high for between, share in zip(shares, truth, strict=True)):
                wrong += 1
                break
    assert wrong <= 50


@pytest.mark.slow
def test_intervals_of_summaries_hold(monkeypatch):
    """The whole way, with regions that are drawn, over 100 seeds."""
    net, box = random_network((2, 6, 4, 2), 9), Box(-1, 1, dim=2)
    truth, wrong = summarise(net, box), 0
    for seed in range(100):
        found = drawn(monkeypatch, net, box, ["active", "spectral", "rank"], samples=100, rng=seed)
        wrong += any(
            not one.mean.low <= truth.distribution(one.name).mean.value <= one.mean.high
            or not one.quantile(0.5).low <= truth.distribution(one.name).quantile(0.5).value <= one.quantile(0.5).high
            for one in found.distributions
        )
    assert wrong <= 5


def test_ctrl_c_gives_what_is_known():
    def press(_found):
        raise KeyboardInterrupt

    found = summarise(random_network((3, 8, 6, 2)), (-1, 1), progress=press)
    assert found.status == "interrupted"
    assert not found.listed
    assert found.regions > 0
    active = found.distribution("active")
    assert active.how is How.SOME
    assert (active.mean.low, active.mean.high) == (active.least, active.most)
    assert found.lipschitz[0] < found.lipschitz[1]
    assert "It ended early (interrupted)" in " ".join(found.notes())
    assert len(found.rows()) == len(found.distributions)


def test_ctrl_c_among_draws(monkeypatch):
    calls = []

    def press(*given):
        calls.append(given)
        if len(calls) > 100:
            raise KeyboardInterrupt
        return 1.0

    monkeypatch.setattr("tessella.summarising.summarise.of_region", press)
    found = drawn(monkeypatch, random_network((3, 7, 5, 3), 5), (-1, 1), ["radius", "active"], seconds=20.0)
    assert found.status == "interrupted"
    assert [len(one) for one in found.distributions] == [64, 64]
    assert all(one.how is How.DRAWN for one in found.distributions)


def test_in_all_of_space():
    net = random_network((2, 4, 2), 3)
    found = summarise(net, (-np.inf, np.inf))
    assert found.listed
    assert {one.name for one in found.distributions}.isdisjoint({"volume", "share"})
    assert found.distribution("radius").largest.value == np.inf
    assert Summary.from_json(found.to_json()).distribution("radius").largest.value == np.inf


def test_no_relu_and_no_free_input():
    linear = Network.from_arrays([([[3.0, 4.0]], [0.0])])
    found = summarise(linear, (-1, 1))
    assert (found.regions, found.maps, found.pieces) == (1, 1, 1)
    assert found.lipschitz[0] == pytest.approx(5.0)
    assert found.distribution("decision").values.tolist() == [-1.0]
    assert summarise(random_network((3, 4, 2)), ([0.1] * 3, [0.1] * 3), ["active", "spectral"]).regions == 1


def test_json_tables_and_words():
    net = random_network((2, 4, 2), 4)
    found = summarise(net, (-1, 1))
    again = Summary.from_json(found.to_json(), network=net)
    assert again.rows() == found.rows()
    assert (again.lipschitz, again.maps, again.pieces, again.status) == (found.lipschitz, found.maps, found.pieces, "finished")
    assert len(found.per_region()) == found.regions
    assert set(found.per_region()[0]) == {"region", *(one.name for one in found.distributions)}
    assert "Lipschitz constant (l2)" in found._repr_html_()
    assert repr(found).startswith(
        f"Summary(active, rank, spectral, frobenius, maximum, walls, radius, volume, decision over all {found.regions} regions"
    )
    one = found.distribution("active")
    assert repr(one) == f"Distribution(active: mean {one.mean.value:.4g}, {found.regions:,} values, all regions)"
    edges, heights = one.histogram()
    assert heights.sum() == pytest.approx(1.0)
    assert len(edges) == len(heights) + 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"statistics": ["active", "size"]}, "statistics are ['active', 'size']; a summary takes some of active, rank"),
        ({"statistics": []}, "no statistic is asked for"),
        ({"seconds": 0}, "seconds is 0; a summary takes a positive number"),
        ({"samples": 0}, "samples is 0; a summary takes a whole number of regions, at least 1"),
        ({"confidence": 1.0}, "confidence is 1.0; a summary takes a number between 0 and 1"),
        ({"progress": 3}, "progress is a int; a summary takes a function"),
    ],
)
def test_wrong_options(given, words):
    with pytest.raises(OptionError) as error:
        summarise(random_network((2, 3, 1)), (-1, 1), **given)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_what_cannot_be_had():
    with pytest.raises(OptionError, match="at most six free inputs; statistics='share' finds shares"):
        summarise(random_network((8, 3, 1)), (-1, 1), "volume")
    with pytest.raises(OptionError, match="shares of the volume need a bounded domain"):
        summarise(random_network((2, 3, 1)), (-np.inf, np.inf), "share")
    with pytest.raises(OptionError, match="'walls' was not asked for; this summary has active"):
        summarise(random_network((2, 3, 1)), (-1, 1), "active").distribution("walls")
    with pytest.raises(OptionError, match="too many to draw them uniformly; give more seconds, or a smaller domain"):
        summarise(random_network((20, 300, 1)), (-1, 1), "active", seconds=0.2)


@pytest.mark.parametrize("scale", [2.0**-1030, 2.0**-700, 2.0**-400])
def test_tiny_weights_change_no_volume_and_stay_inside_the_lipschitz_bracket(scale):
    weight, last = np.array([[0.5, 0.25], [-0.375, 0.5], [0.125, -0.5]]), np.array([[0.5, 1.0, -1.0], [0.25, -0.5, 1.0]])
    plain = summarise(Network.from_arrays([(weight, np.zeros(3)), (last, None)]), (-1, 1))
    found = summarise(Network.from_arrays([(weight * scale, np.zeros(3)), (last, None)]), (-1, 1))
    assert found.distribution("volume").values.sum() == pytest.approx(4.0)
    for name in ("spectral", "frobenius", "maximum"):
        assert np.sort(found.distribution(name).values) == pytest.approx(
            np.sort(plain.distribution(name).values) * scale, rel=1e-5
        )
    low, high = found.lipschitz
    assert low < plain.lipschitz[1] * scale
    assert plain.lipschitz[0] * scale < high


def test_nothing_is_said_of_decisions_that_nobody_looked_at():
    rng = np.random.default_rng(3)
    net = Network.from_arrays([(rng.standard_normal((6, 2)), rng.standard_normal(6)), (rng.standard_normal((2, 6)), None)])
    found = summarise(net, (-1, 1), seconds=1e-6)
    words = next(row["note"] for row in found.rows() if row["statistic"] == "decision")
    assert "nan" not in words
    assert len(found.distribution("decision").values) or words == "changes inside 0 to 100 % of them"


def test_one_region_is_told_as_one():
    found = summarise(Network.from_arrays([([[1.0, 2.0]], [0.5])]), (0, 1))
    assert "1 affine map, in 1 connected piece." in found.notes()
