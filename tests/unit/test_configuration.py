"""The three bounds from a network's shape, against formulas written out."""

import csv
import sys
from functools import cache
from itertools import product
from math import comb, log2, prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella import Box, DomainError, Layer, Network, OptionError, configuration_bound, montufar_bound, raghu_bound, upper_bounds
from tessella.result import maps
from tessella.upper.configuration import Stage, configuration, raghu
from tessella.upper.logarithms import power_of_cells, power_of_configuration

shapes = st.tuples(st.integers(1, 40), st.lists(st.integers(1, 30), min_size=1, max_size=5))


def written_out(input_dim, widths):
    """The sum over the set J of the paper's appendix, literally."""
    total = 0
    for chosen in product(*(range(width + 1) for width in widths)):
        limits = [input_dim, *(width - j for width, j in zip(widths, chosen, strict=True))]
        if all(j <= min([*limits[: layer + 1], widths[layer]]) for layer, j in enumerate(chosen)):
            total += prod(comb(width, j) for width, j in zip(widths, chosen, strict=True))
    return total


@given(st.integers(1, 6), st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_configuration_is_the_papers_sum(input_dim, widths):
    assert configuration_bound(input_dim, widths) == written_out(input_dim, widths)


@given(shapes)
def test_each_bound_is_at_most_the_looser_one(shape):
    input_dim, widths = shape
    assert 1 <= configuration_bound(input_dim, widths) <= montufar_bound(input_dim, widths) <= raghu_bound(input_dim, widths)
    assert raghu_bound(input_dim, widths) <= 2 ** sum(widths)


@given(shapes)
def test_one_layer_is_zaslavskys_formula(shape):
    input_dim, (width, *_) = shape
    cells = sum(comb(width, j) for j in range(input_dim + 1))
    assert (
        configuration_bound(input_dim, [width]) == montufar_bound(input_dim, [width]) == raghu_bound(input_dim, [width]) == cells
    )


@given(st.integers(1, 5), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=4))
def test_linear_units_carry_dimension_and_cut_nothing(input_dim, layers):
    layers = [(relus, linear) if relus + linear else (1, 0) for relus, linear in layers]

    @cache
    def regions(layer, dim):
        if layer == len(layers):
            return 1
        relus, linear = layers[layer]
        return sum(comb(relus, j) * regions(layer + 1, min(dim, relus + linear - j)) for j in range(min(relus, dim) + 1))

    sizes = [input_dim, *(relus + linear for relus, linear in layers)]
    network = Network(
        tuple(
            Layer(np.ones((size, before)), np.zeros(size), np.arange(size) < relus)
            for before, size, (relus, _) in zip(sizes, sizes[1:], layers, strict=False)
        )
    )
    assert configuration_bound(network) == regions(0, input_dim)
    assert configuration_bound(network) <= montufar_bound(network) <= raghu_bound(network)


def test_a_plain_network_has_the_bounds_of_its_widths():
    rng = np.random.default_rng(0)
    layers = [(rng.standard_normal((n, m)), None) for m, n in ((7, 5), (5, 4), (4, 3))]
    for bound in (raghu_bound, montufar_bound, configuration_bound):
        assert bound(Network.from_arrays(layers)) == bound(7, [5, 4])
        assert bound(Network.from_arrays(layers, relu_output=True)) == bound(7, [5, 4, 3])


def test_a_linear_bottleneck_lowers_the_bound():
    wide, narrow = np.ones((6, 2)), np.ones((2, 6))
    layers = (Layer(narrow, np.zeros(2), np.array(False)), Layer(wide, np.zeros(6)))
    assert configuration_bound(Network(layers)) == configuration_bound(2, [6]) < configuration_bound(6, [6])


def test_published_bounds_of_the_paper():
    path = Path(__file__).parents[1] / "regression" / "paper_configuration_ub.csv"
    with path.open() as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    assert len(rows) == 21
    for row in rows:
        widths = [int(row[name]) for name in ("n1", "n2", "n3")]
        assert maps(configuration_bound(784, widths)) == pytest.approx(float(row["configuration_ub"]), abs=1e-6)


def test_upper_bounds_of_a_network_on_a_domain():
    network = Network.from_arrays([(np.ones((4, 3)), None), (np.ones((2, 4)), None)])
    found = upper_bounds(network, Box.cube(0, 1, 3))
    assert (found.raghu, found.montufar, found.configuration) == tuple(
        f(3, [4]) for f in (raghu_bound, montufar_bound, configuration_bound)
    )
    assert [bound.method for bound in found.bounds] == ["raghu", "montufar", "configuration", "empirical"]
    assert (found.configuration, found.empirical, found.best) == (15, 1, 1)  # no unit is ever negative there
    assert repr(found) == "UpperBounds(at most 1 region, of 3-4-2 on [0, 1]^3)"


def test_without_a_domain_there_are_three_bounds():
    network = Network.from_arrays([(np.ones((4, 3)), None), (np.ones((2, 4)), None)])
    found = upper_bounds(network)
    assert [bound.method for bound in found.bounds] == ["raghu", "montufar", "configuration"]
    assert (found.empirical, found.empirical_details, found.stability, found.best) == (None, None, None, 15)
    assert repr(found) == "UpperBounds(at most 15 regions, of 3-4-2)"
    assert found.to_dict().keys() == {
        "schema",
        "tessella",
        "network",
        "domain",
        "counted",
        "seconds",
        "upper",
        "listed",
        "status",
    }


def test_fixed_inputs_cost_dimensions():
    network = Network.from_arrays([(np.ones((4, 3)), None)], relu_output=True)
    assert upper_bounds(network, Box([0, 0, 0], [1, 1, 0])).configuration == configuration_bound(2, [4])
    assert upper_bounds(network, Box([0, 0, 0], [0, 0, 0])).configuration == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (5,),
        (0, [3]),
        (-1, [3]),
        (5, []),
        (5, [0]),
        (5, [3, -1]),
        (5, [1.5]),
        (5, "34"),
        (5, 3),
        (5, np.array(4)),
        (5.5, [3]),
        (True, [3]),
    ],
)
def test_impossible_shapes_get_a_clear_error(arguments):
    if not arguments:
        arguments = (Network.from_arrays([([[1.0]], None)]), [3])
    for bound in (raghu_bound, montufar_bound, configuration_bound):
        with pytest.raises(OptionError):
            bound(*arguments)


def test_a_domain_of_another_dimension_is_refused():
    with pytest.raises(DomainError, match="the domain has 4 inputs, but the network reads 1"):
        upper_bounds(Network.from_arrays([([[1.0]], None)]), Box.cube(0, 1, 4))


def test_layers_too_wide_for_the_memory_are_refused():
    assert configuration_bound(3, [10**6]) == sum(comb(10**6, j) for j in range(4))
    assert configuration_bound(10**30, [4]) == 16
    assert configuration_bound(2, [10**30]) == sum(comb(10**30, j) for j in range(3))
    assert configuration_bound(10**6, [10**6]) == raghu_bound(10**6, [10**6]) == 1 << 10**6
    with pytest.raises(OptionError, match="too wide"):
        configuration_bound(10**12, [10**12])
    with pytest.raises(OptionError, match="too wide"):
        raghu_bound(10**12, [10**12])


@pytest.mark.parametrize("seed", range(20))
def test_logarithms_are_just_above_the_integers(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        relus = rng.integers(0, 12, rng.integers(1, 5)).tolist()
        layers = [Stage(n, int(rng.integers(n == 0, 5)), int(rng.integers(0, n + 1))) for n in relus]
        dim = int(rng.integers(0, 15))
        power = power_of_configuration(dim, layers)
        assert log2(configuration(dim, layers)) <= power <= log2(configuration(dim, layers)) + 1e-9
        assert log2(raghu(dim, layers)) <= sum(map(power_of_cells, relus, [dim, *(layer.units for layer in layers)])) + 1e-9
    power = power_of_configuration(300, [Stage(400), Stage(500)])
    assert log2(configuration(300, [Stage(400), Stage(500)])) <= power <= 900.0


def test_wide_layers_are_bounded_in_logarithms(monkeypatch):
    exact = configuration_bound(30, [40, 50]), raghu_bound(30, [40, 50])
    monkeypatch.setattr(sys.modules["tessella.upper.configuration"], "_MOST_WORK", 0.0)
    rounded = configuration_bound(30, [40, 50]), raghu_bound(30, [40, 50])
    for one, other in zip(exact, rounded, strict=True):
        assert one <= other <= one + max(one // 10**6, 1)
