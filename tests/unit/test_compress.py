"""A smaller network computes the same: in rational arithmetic, within the proved error, at points of the domain."""

import itertools
import json
from dataclasses import replace
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
import scipy.sparse

import tessella
from fuzz.checks import Hunt, Seen, look
from fuzz.drawing import draw
from helpers.odd_networks import leaky_case, random_case
from tessella import Box, Layer, Network, Polytope
from tessella.compressing.dependent import dependencies
from tessella.compressing.points import spread_points


def outputs(network, point):
    """A network at a point, in rational arithmetic."""
    values = [Fraction(float(value)) for value in point]
    for layer in network.layers:
        weight, passed = np.asarray(layer.dense()), []
        for unit in range(layer.units):
            terms = (Fraction(float(w)) * value for w, value in zip(weight[unit], values, strict=True) if w)
            before = sum(terms, Fraction(float(layer.bias[unit])))
            passed.append(before if layer.rectified[unit] and before > 0 else Fraction(float(layer.slope[unit])) * before)
        values = passed
    return values


def own_points(domain, number, rng):
    """Points of a domain: half of them with some inputs at an end, others anywhere; of an unbounded input, far and near ones."""
    box = getattr(domain, "box", domain)
    low, high = np.maximum(box.lower, -1e3), np.minimum(box.upper, 1e3)
    found = []
    for _ in range(200):
        share = rng.random(len(low))
        ends = rng.random(len(low)) < 0.5 * (len(found) % 2)
        point = np.clip(low + (high - low) * np.where(ends, np.round(share), share), low, high)
        if domain is box or (domain.matrix @ point <= domain.offset).all():
            found.append(point)
        if len(found) == number:
            break
    return found


def check_same(found, rng, points=4):
    """Outputs differ by no more than the proved error."""
    chosen = [*own_points(found.domain, points // 2, rng), *spread_points(found.domain, points // 2, rng)]
    assert len(chosen) >= points // 2
    for point in chosen:
        both = zip(outputs(found.original, point), outputs(found.network, point), strict=True)
        assert max(abs(one - other) for one, other in both) <= Fraction(found.error)


def odd_network(seed):
    """Shifted biases make stable units, and copies make multiples; the last layer is linear, or ReLUs."""
    rng = np.random.default_rng([3, seed])
    case = leaky_case(seed, largest=60) if seed % 3 == 0 else random_case(seed, largest=60)
    layers = []
    for given in case.layers:
        (weight, bias), rest = (part.copy() for part in given[:2]), given[2:]
        if rng.random() < 0.6:
            bias[:] += rng.choice([-3.0, 0.0, 3.0], len(bias)) * rng.choice([0.3, 1.0, 3.0])
        if rng.random() < 0.4 and len(bias) > 1:
            one, other = rng.choice(len(bias), 2, replace=False)
            factor = rng.choice([1.0, 2.0, -1.0, 3.0, -0.3])
            weight[other], bias[other] = weight[one] * factor, bias[one] * factor
        layers.append((weight, bias, *rest))
    sizes = int(rng.integers(1, 5)), len(layers[-1][1])
    layers.append(
        (rng.standard_normal(sizes) * (rng.random(sizes) < 0.8), rng.standard_normal(sizes[0]), np.zeros(sizes[0], bool))
    )
    network = Network(tuple(Layer(*layer) for layer in layers))
    return network.with_relu_output() if rng.random() < 0.2 else network, case.domain


def low_rank_network(seed):
    """Quarters as weights, few of them independent; some layers are sparse, some units are linear with a slope."""
    rng = np.random.default_rng([5, seed])
    sizes = [int(rng.integers(1, 5)), *rng.integers(3, 12, size=int(rng.integers(1, 4))).tolist(), int(rng.integers(1, 4))]
    sparse, layers = rng.random() < 0.4, []
    for inputs, units in itertools.pairwise(sizes):
        rank = min(inputs, units) - 1
        weight = rng.standard_normal((units, inputs))
        if rng.random() < 0.5 and rank > 1:
            weight = quarters(rng, (units, rank)) @ quarters(rng, (rank, inputs))
        weight *= rng.random(weight.shape) < (0.5 if sparse else 1.0)
        bias = rng.standard_normal(units) + rng.choice([0.0, 3.0]) * (rng.random(units) < 0.7)
        mask = rng.random(units) < 0.7
        slope = np.where(mask, rng.choice([0.0, 0.1, -1.0], units), rng.choice([1.0, 2.0, -0.3], units))
        layers.append(Layer(scipy.sparse.csr_array(weight) if sparse else weight, bias, mask, slope))
    low = rng.uniform(-1.0, 0.0, sizes[0])
    high = low + rng.choice([0.1, 0.5, 1.0]) * (rng.random(sizes[0]) < 0.9)
    high[0] = low[0] + 0.5
    return Network(tuple(layers)), Box(low, high)


def quarters(rng, shape):
    return np.round(rng.standard_normal(shape) * 4.0) / 4.0


@pytest.mark.parametrize("family", [odd_network, low_rank_network])
@pytest.mark.parametrize("block", range(4))
def test_outputs_are_equal_within_the_proved_error(family, block):
    smaller = 0
    for seed in range(25 * block, 25 * (block + 1)):
        network, domain = family(seed)
        found = tessella.compress(network, domain, method="milp" if seed % 2 else "linear")
        check_same(found, np.random.default_rng(seed))
        assert found.network.relus <= network.relus
        total = found.totals()
        assert total["relus"] == network.relus == sum(total[name] for name in total if name != "relus")
        assert total["kept"] == found.network.relus
        smaller += found.is_smaller
    assert smaller > 12


@pytest.mark.parametrize("family", [odd_network, low_rank_network])
def test_regions_are_as_many_if_every_unit_is_read(family):
    compared = 0
    for seed in range(40):
        network, domain = family(seed)
        found = tessella.compress(network, domain)
        if found.totals()["unread"] == 0:
            assert tessella.count(network, domain).exact == tessella.count(found.network, domain).exact
            compared += 1
    assert compared > 20


@pytest.mark.parametrize("seed", [87, 187, 472, 736, 892, 940])
def test_underflow_and_cancellation_are_part_of_the_proved_error(seed):
    """Products that underflow once had no doubt; where double precision cancels, exact arithmetic says that both agree."""
    case = draw(seed).case
    assert look("compress", Hunt(draw(seed), case.network, case.domain, set(), seed)) == Seen()


@pytest.mark.parametrize("slip", [1e-3, 1.0])
def test_a_wrong_smaller_network_is_refused(monkeypatch, slip):
    """Whatever slips in a weight is seen when both networks are evaluated, and no network comes back."""
    module = import_module("tessella.compressing.compress")
    right = module.pruned

    def wrong(*given):
        *layers, last = right(*given)
        return (*layers, replace(last, weight=last.weight + slip))

    monkeypatch.setattr(module, "pruned", wrong)
    network, domain = low_rank_network(2)
    with pytest.raises(
        tessella.ConversionMismatch, match=r"the smaller network's outputs differ by .* more than .*; please report this network"
    ) as refused:
        tessella.compress(network, domain)
    assert "\n" not in str(refused.value)


def test_stable_units_that_are_not_are_refused():
    """Bounds that do not hold make a wrong network; the check of outputs sees that, too."""
    network = Network.from_arrays([(np.eye(2), [-0.5, 0.25]), ([[1.0, 1.0]], None)])
    known = tessella.stability(network, (0, 1))
    low, high = ([part.copy() for part in ends] for ends in (known.bounds.lower, known.bounds.upper))
    high[0][0] = 0.0  # it is 0.5
    lying = replace(known, bounds=replace(known.bounds, lower=tuple(low), upper=tuple(high)))
    with pytest.raises(tessella.ConversionMismatch, match="please report this network"):
        tessella.compress(known.network, known.domain, stability=lying)


def test_files_give_the_smaller_network_back(tmp_path):
    for seed in range(12):
        network, domain = low_rank_network(seed) if seed % 2 else odd_network(seed)
        found = tessella.compress(network, domain)
        found.network.to_npz(tmp_path / "net.npz")
        assert tessella.load(tmp_path / "net.npz") == found.network
        if all((layer.slope[~layer.rectified] == 1.0).all() for layer in found.network.layers):  # else weights are multiplied
            found.network.to_onnx(tmp_path / "net.onnx")
            assert tessella.load(tmp_path / "net.onnx") == found.network


def test_opposite_units_become_one_relu_and_a_linear_unit():
    network = Network.from_arrays([([[1.0, 0.5], [-2.0, -1.0]], [-0.5, 1.0]), ([[1.0, 1.0]], None)])
    found = tessella.compress(network, (0, 1))
    assert (found.network.shape, found.removed[0].merged) == ("2-1+1-1", 1)
    check_same(found, np.random.default_rng(0))


def test_equal_units_of_equal_units_are_merged_too():
    rng = np.random.default_rng(1)
    first, second = rng.standard_normal((3, 2)), rng.standard_normal((3, 3))
    copies = np.vstack([first, first[::-1]])
    wide = np.hstack([second, second[:, ::-1]])
    network = Network.from_arrays([(copies, np.zeros(6)), (np.vstack([wide, 4.0 * wide]), np.zeros(6)), (np.ones((1, 6)), None)])
    found = tessella.compress(network, (-1, 1))
    assert [one.merged == one.kept for one in found.removed] == [True, True, True]
    check_same(found, np.random.default_rng(0))
    assert found.removed[0].merged == 3
    assert found.removed[1].merged > 0


def test_a_box_that_makes_everything_stable_leaves_one_affine_layer():
    network = tessella.load([(np.eye(3), np.ones(3)), (-np.ones((4, 3)), np.full(4, 9.0)), (np.ones((2, 4)), [1.0, 2.0])])
    found = tessella.compress(network, (0, 0.5))
    assert (found.network.shape, found.network.relus, found.share) == ("3-2", 0, 1.0)
    assert [one.gone for one in found.removed] == [True, True, False]
    assert tessella.count(found.network, (0, 0.5)).exact == 1
    check_same(found, np.random.default_rng(0))


def test_a_network_that_is_never_active_is_constant():
    network = Network.from_arrays([(-np.ones((3, 2)), -np.ones(3)), (np.ones((2, 3)), [1.5, -2.0]), (np.eye(2), None)])
    found = tessella.compress(network, (0, 1))
    assert (found.constant_outputs, found.error) == ((0, 1), 0.0)
    assert found.network([[0.3, 0.4]]).tolist() == [[1.5, 0.0]]
    assert found.network.shape == "2-2"


def test_rectified_outputs_stay_in_their_order():
    weight = [[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]]
    found = tessella.compress(Network.from_arrays([(weight, [1.0, -1.0, 0.0])], relu_output=True), (0, 1))
    assert found.network.layers[0].rectified.tolist() == [False, False, True]
    assert found.constant_outputs == (1,)
    check_same(found, np.random.default_rng(0))


def test_a_network_without_relus_keeps_its_bottleneck():
    rng = np.random.default_rng(2)
    narrow = [Layer(rng.standard_normal((1, 6)), [0.0], False), Layer(rng.standard_normal((6, 1)), np.zeros(6), False)]
    assert tessella.compress(Network(tuple(narrow)), (0, 1)).network.shape == "6-1-6"
    wide = [Layer(rng.standard_normal((9, 2)), np.zeros(9), False), Layer(rng.standard_normal((2, 9)), np.zeros(2), False)]
    assert tessella.compress(Network(tuple(wide)), (0, 1)).network.shape == "2-2"


def test_units_that_no_output_reads_are_removed():
    layers = [(np.eye(2), [-0.5, -0.5]), ([[1.0, 0.0], [0.0, 1.0]], [-0.1, -0.2]), ([[1.0, 0.0]], None)]
    found = tessella.compress(layers, (0, 1))
    assert (found.network.shape, found.totals()["unread"], found.error) == ("2-1-1-1", 2, 0.0)


def test_fixed_inputs_are_constants():
    network = Network.from_arrays([([[1.0, 5.0], [0.0, 3.0], [1.0, -1.0]], [0.0, -1.0, 0.5]), ([[1.0, 1.0, 1.0]], None)])
    found = tessella.compress(network, ([0.0, 0.1], [1.0, 0.1]))
    assert found.removed[0].inactive == 1
    assert found.network.input_dim == 2
    check_same(found, np.random.default_rng(0))


def test_what_is_carried_is_as_little_as_possible():
    rng = np.random.default_rng(3)
    bends, stable = rng.standard_normal((2, 6)), np.abs(rng.standard_normal((9, 6)))
    biases = np.append(-bends.sum(axis=1) / 2.0, np.ones(9))
    layers = [(np.vstack([bends, stable]), biases)]
    wide = tessella.compress(
        [*layers, (rng.standard_normal((20, 11)), rng.standard_normal(20) * 9.0), (np.ones((1, 20)), None)], (0, 1)
    )
    assert wide.network.layers[0].linear_units == 6  # the inputs
    few = tessella.compress([*layers, (rng.standard_normal((2, 11)), None)], (0, 1))
    assert few.network.layers[0].linear_units == 2  # what the outputs read
    ranked = np.vstack([bends, quarters(rng, (9, 3)) @ np.abs(quarters(rng, (3, 6)))])
    third = [(ranked, np.append(biases[:2], np.full(9, 99.0))), (rng.standard_normal((5, 11)), None)]
    assert tessella.compress(third, (0, 1)).network.layers[0].linear_units == 3  # the rank
    for found in (wide, few, tessella.compress(third, (0, 1))):
        check_same(found, rng)


def test_nothing_to_remove_is_said():
    network = Network.from_arrays([(np.eye(2), [-0.5, -0.5]), ([[1.0, 1.0]], None)])
    found = tessella.compress(network, (0, 1))
    assert not found.is_smaller
    assert (found.network, found.error, found.share) == (network, 0.0, 0.0)
    assert found.guarantee == "Both networks have the same outputs on [0, 1]^2, proved: no weight was rounded."


def test_all_of_space_only_loses_units_that_are_stable_there():
    layers = [
        Layer([[1.0], [0.0], [2.0]], [0.0, -1.0, 0.0]),
        Layer([[1.0, 1.0, 1.0], [-1.0, 0.0, 0.0]], [1.0, -1.0]),
        Layer([[1.0, 1.0]], [0.0], False),
    ]
    found = tessella.compress(Network(tuple(layers)), (-np.inf, np.inf))
    assert (found.error, found.difference) == (0.0, 0.0)
    assert [one.kept for one in found.removed] == [2, 0, 0]
    check_same(found, np.random.default_rng(0))


def test_a_polytope_knows_more_than_its_box():
    network = Network.from_arrays([([[1.0, 1.0]], [-1.0]), ([[1.0]], [0.5])])
    below = Polytope([[1.0, 1.0]], [0.9], Box(0, 1, dim=2))
    found = tessella.compress(network, below)
    assert (found.network.relus, found.constant_outputs) == (0, (0,))
    check_same(found, np.random.default_rng(0))


def test_points_lie_in_their_domain():
    rng = np.random.default_rng(4)
    inner = Polytope([[1.0, 2.0], [-1.0, 0.5]], [0.4, 0.3], Box(-1, 1, dim=2))
    for domain in (inner, Box([-np.inf, 0.0, -np.inf], [np.inf, np.inf, 1.0]), Box([0.0, 1.0], [0.0, 3.0])):
        assert domain.contains(spread_points(domain, 200, rng)).all()


def test_dependent_rows_are_proved_or_left():
    rng = np.random.default_rng(5)
    whole = quarters(rng, (8, 3)) @ quarters(rng, (3, 5))
    basis, others = dependencies(whole)
    assert len(basis) == np.linalg.matrix_rank(whole)
    for row, factors in others.items():
        mixed = [sum(f * Fraction(float(whole[b, c])) for f, b in zip(factors, basis, strict=True)) for c in range(5)]
        assert mixed == [Fraction(float(entry)) for entry in whole[row]]
    nearly = whole.copy()
    nearly[others.popitem()[0], 2] += 2.0**-45
    found = dependencies(nearly)
    assert found is None or len(found[0]) > len(basis)
    assert dependencies(rng.standard_normal((4, 6))) is None


def test_a_stability_that_is_known_is_used_and_checked():
    network, domain = low_rank_network(1)
    known = tessella.stability(network, domain, method="interval")
    assert tessella.compress(network, domain, stability=known).method == "interval"
    with pytest.raises(tessella.OptionError, match="another network or domain"):
        tessella.compress(network, Box(0, 5, dim=network.input_dim), stability=known)
    with pytest.raises(tessella.OptionError, match="method is 'best'; a compression takes one of"):
        tessella.compress(network, domain, method="best")


def test_a_check_measures_what_was_said():
    found = tessella.compress(*odd_network(4))
    assert found.check(500) <= found.error + 1e-9
    assert found.points == 10_000
    with pytest.raises(tessella.OptionError, match="points is 0; a check takes"):
        found.check(0)
    wrong = replace(found, network=found.original.with_relu_output())
    assert wrong.check(500) > 1e-3


def test_json_comes_back():
    found = tessella.compress(*odd_network(4))
    again = tessella.Compression.from_json(found.to_json(), network=found.original)
    assert again.original is found.original
    assert (again.network, again.removed, again.error) == (found.network, found.removed, found.error)
    assert repr(again) == repr(found)
    assert json.loads(found.to_json())["smaller"]["relus"] == found.network.relus


def test_the_source_is_remembered_without_what_holds_no_longer():
    found = tessella.compress("src/tessella/data/digits.onnx", (0, 1))
    source = found.network.source
    assert (source.kind, source.input_shape, source.points, source.units) == ("onnx", (64,), 0, ())
