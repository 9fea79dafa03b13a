"""The graph of regions: the same as brute force in whole numbers, what is not known is said, and files that others read."""

import itertools
import json
import re

import numpy as np
import pytest

import tessella
from fuzz.drawing import draw
from helpers.brute_force_walls import graph_anywhere, graph_of_regions
from helpers.odd_networks import Case, leaky_case, random_case
from helpers.seeds import seeds
from tessella import Box, Graph, Layer, Network, OptionError
from tessella.kernel.deadline import Deadline
from tessella.listing import walls
from tessella.listing.cells import Run, list_cells
from tessella.listing.graph import graph
from tessella.stability import stability


def random_network(sizes, seed=0):
    rng = np.random.default_rng(seed)
    layers = [(rng.standard_normal((n, m)), 0.5 * rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)]
    return Network.from_arrays(layers, relu_output=True)


def as_sets(found):
    """The regions and pairs of regions of a graph, by their patterns."""
    named = [tuple(row) for row in found.patterns.tolist()]
    edges = [frozenset({named[one], named[other]}) for one, other in found.edges.tolist()]
    assert len(set(named)) == len(named)
    assert len(set(edges)) == len(edges)
    assert found.units == [tuple(np.flatnonzero(found.patterns[one] != found.patterns[other])) for one, other in found.edges]
    return set(named), set(edges)


def check(case, truth=None):
    found = graph(case.network, case.domain)
    assert found.complete
    assert as_sets(found) == (graph_of_regions(*case) if truth is None else truth)
    seen = np.isfinite(found.points).all(axis=1)
    assert (case.network.patterns(found.points[seen]) == found.patterns[seen]).all()


@pytest.mark.parametrize("make", [random_case, leaky_case])
@pytest.mark.parametrize("block", seeds(3, quick=1))
def test_the_same_as_the_oracle(make, block):
    for seed in range(20 * block, 20 * block + 20):
        check(make([18, seed], largest=40))


def without_biases(seed):
    """All hyperplanes of the first layer go through the origin, and many of those of the others."""
    case = random_case([19, seed], largest=30, most_inputs=3)
    return case._replace(layers=[(weight, 0.0 * bias, mask) for weight, bias, mask in case.layers])


def whole_numbers(seed):
    """Weights and biases that are 0, 1 or -1: many units meet in one point, or are equal."""
    rng = np.random.default_rng([20, seed])
    sizes = [int(rng.integers(1, 4)), *rng.integers(2, 4, rng.integers(1, 3)).tolist()]
    layers = [
        (rng.integers(-1, 2, (n, m)) * 1.0, rng.integers(-1, 2, n) * 1.0, np.ones(n, dtype=bool))
        for m, n in itertools.pairwise(sizes)
    ]
    return Case(layers, -np.ones(sizes[0]), np.ones(sizes[0]))


@pytest.mark.parametrize("make", [without_biases, whole_numbers])
def test_degenerate_networks(make):
    for seed in range(40):
        check(make(seed))


def check_adversarial(seeds):
    compared = 0
    for seed in seeds:
        prey = draw(seed)
        endless = np.isinf(np.concatenate([prey.truth.lower, prey.truth.upper])).any()
        if not endless or (prey.truth.lower < prey.truth.upper).sum() <= 3:
            truth = (graph_anywhere if endless else graph_of_regions)(*prey.truth)
            if len(truth[0]) <= 40:
                found = graph(prey.case.network, prey.case.domain)
                assert found.complete
                assert as_sets(found) == truth, (seed, prey.kinds)
                compared += 1
    return compared


def test_adversarial_networks():
    """Networks that are meant to break claims, on tiny, huge, far and unbounded domains."""
    assert check_adversarial(range(30)) > 15


@pytest.mark.slow
def test_many_adversarial_networks():
    assert check_adversarial(range(30, 500)) > 300


@pytest.mark.slow
@pytest.mark.parametrize("make", [random_case, leaky_case, without_biases, whole_numbers])
def test_many_networks(make):
    for seed in range(60, 210):
        check(make(seed) if make in {without_biases, whole_numbers} else make([18, seed], largest=40))


@pytest.mark.parametrize("dim", [2, 4, 5])
def test_walls_of_larger_networks_are_those_of_neighbours(dim):
    net, box = random_network((dim, 8, 6), seed=dim), Box(-1, 1, dim=dim)
    found = graph(net, box)
    numbers = {row.tobytes(): number for number, row in enumerate(found.patterns)}
    assert found.regions == tessella.count(net, box, workers=1).exact
    for region in itertools.islice(tessella.regions(net, box), 0, None, 7):
        number = numbers[region.pattern.tobytes()]
        assert found.neighbours(number) == sorted(numbers[other.pattern.tobytes()] for other in region.neighbours())
        assert found.degrees[number] == len(found.neighbours(number))
        assert found.find(region.point) == number


def test_many_inputs():
    net, box = random_network((30, 4, 3)), Box(-1, 1, dim=30)
    found = graph(net, box)
    assert found.complete
    assert found.regions == tessella.count(net, box).exact
    assert found.degrees.sum() == sum(len(region.neighbours()) for region in tessella.regions(net, box))


def test_the_mean_degree_of_generic_arrangements_is_at_most_twice_the_dimension():
    """Walls between regions, those of the box not counted; equal to it for many hyperplanes of one layer in all of space, in the limit."""
    for dim in range(1, 6):
        net = random_network((dim, 9), seed=dim)
        assert graph(net, (-1, 1)).degrees.mean() <= 2 * dim
        assert graph(net, (-np.inf, np.inf)).degrees.mean() <= 2 * dim


def test_what_was_not_decided_in_time_is_said():
    """Three lines through one point: corners do not say which regions share a wall, and exact arithmetic has no time to."""
    net = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 0.0, 0.0])], relu_output=True)
    known = stability(net, Box(-1, 1, dim=2), method="linear")
    cells = list_cells(known, Run(Deadline()))
    late = Run(Deadline(-np.inf))
    found = walls.meetings(cells, late)
    assert late.status == "time limit"
    assert len(cells) == 6
    assert (len(found.pairs), len(found.undecided)) == (4, 4)
    whole = walls.meetings(cells, Run(Deadline()))
    assert (len(whole.pairs), len(whole.undecided)) == (6, 0)


def test_a_limit_ends_it():
    net, box = random_network((3, 8, 6)), Box(-1, 1, dim=3)
    whole, some = graph(net, box), graph(net, box, limit=50)
    assert (some.regions, some.status, some.complete) == (50, "limit reached", False)
    assert as_sets(some)[1] < as_sets(whole)[1]
    assert len(some.undecided) == 50
    assert "not all of it (limit reached)" in repr(some)
    assert graph(net, box, limit=whole.regions).complete


def test_ctrl_c_gives_what_is_known():
    def press(_found):
        raise KeyboardInterrupt

    found = graph(random_network((3, 8, 6)), (-1, 1), progress=press)
    assert found.status == "interrupted"
    assert found.regions > 0
    assert not found.complete


def test_ctrl_c_among_walls(monkeypatch):
    def press(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("tessella.partition.facets.Facets.of", press)
    found = graph(random_network((8, 4, 3)), (-1, 1))
    assert (found.status, found.complete) == ("interrupted", False)
    assert len(found.undecided) == found.regions


def test_time_ends_it():
    found = graph(random_network((4, 16, 16)), (-1, 1), seconds=1e-6)
    assert found.status == "time limit"
    assert not found.complete


def test_no_walls():
    """One region; no free input; no ReLU."""
    net = random_network((3, 4))
    assert graph(net, ([0.1] * 3, [0.1] * 3)).regions == 1
    linear = graph(Network((Layer([[1.0]], [0.0], rectified=False),)), (0, 1))
    assert (linear.regions, len(linear.edges), linear.complete) == (1, 0, True)
    assert linear.neighbours(0) == []


def test_json_tables_and_words():
    net = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0])], relu_output=True)
    found = graph(net, (-1, 1))
    assert re.match(r"Graph\(4 regions, 4 walls between them, of 2-2 on \[-1, 1\]\^2, 0\.\d\d s\)", repr(found))
    again = Graph.from_json(found.to_json(), network=net)
    assert as_sets(again) == as_sets(found)
    assert np.array_equal(again.points, found.points)
    assert (again.status, again.seconds, again.complete) == (found.status, found.seconds, True)
    assert json.loads(found.to_json())["units"] == [list(units) for units in found.units]
    assert [row["walls"] for row in found.rows()] == [2, 2, 2, 2]
    assert "4 regions, 4 walls" in found._repr_html_()
    assert found.find([0.9, 0.1]) == found.find([0.5, 0.5])
    assert found.find([2.0, 2.0]) is None  # the same signs, but outside


def test_networkx_reads_what_is_written(tmp_path):
    networkx = pytest.importorskip("networkx")
    found = graph(random_network((2, 6, 4)), (-1, 1))
    made = found.to_networkx()
    assert (len(made), made.number_of_edges()) == (found.regions, len(found.edges))
    assert [made.edges[tuple(edge)]["units"] for edge in found.edges.tolist()] == found.units
    found.to_graphml(tmp_path / "regions.graphml")
    read = networkx.read_graphml(tmp_path / "regions.graphml")
    assert networkx.is_isomorphic(read, made)
    assert read.nodes["n0"]["pattern"] == "".join(map(str, found.patterns[0].astype(int)))
    assert np.array_equal(np.array(read.nodes["n1"]["point"].split(), dtype=float), found.points[1])
    one, other = found.edges[3]
    assert tuple(map(int, read.edges[f"n{one}", f"n{other}"]["units"].split())) == found.units[3]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"limit": 0}, "limit is 0; a graph of regions takes a whole number of at least 1"),
        ({"seconds": -1}, "seconds is -1; a graph of regions takes a positive number"),
        ({"progress": 3}, "progress is a int; a graph of regions takes a function"),
        ({"stability": 3}, "stability is a int; a graph of regions takes what"),
    ],
)
def test_wrong_options(given, words):
    with pytest.raises(OptionError, match=re.escape(words)):
        graph(random_network((2, 3)), (-1, 1), **given)


def test_a_region_that_is_not_there():
    with pytest.raises(OptionError, match="there is no region 7; they have numbers 0 to"):
        graph(random_network((1, 3)), (-1, 1)).neighbours(7)
