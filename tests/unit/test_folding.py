"""Folding: the same functions within the bounds it gives, the same ReLUs in the same order, and the same counts by every walker."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

from tessella import Box, Layer, Network, Polytope, count, estimate, stability
from tessella.counting.by_programs import ByPrograms
from tessella.parallel import Stop
from tessella.partition import folding
from tessella.partition.folding import fold
from tessella.partition.tree import Node, Tree
from tessella.vertices.walker import Vertices


def mostly_stable(rng, sizes, unstable, *, whole=False, leaky=False, sparse=False):
    """A network of which so many ReLUs of a layer change their state near the origin, and the others nowhere within 1 of it."""
    layers, values, reach = [], np.zeros(sizes[0]), np.ones(sizes[0])
    for inputs, units in pairwise(sizes):
        weight, goal = rng.standard_normal((units, inputs)) / np.sqrt(inputs), 0.2 * rng.standard_normal(units)
        if whole:
            weight, goal = np.round(2.0 * weight), np.round(2.0 * goal)
        reach = np.abs(weight) @ reach
        far = rng.permutation(units)[unstable:]
        goal[far] = rng.choice((-1.0, 1.0, 1.0), len(far)) * np.round(reach[far] + 2.0)
        bias = goal - weight @ values
        slope = np.where(rng.random(units) < 0.5, 0.25, 0.0) if leaky else 0.0
        layers.append(Layer(csr_array(weight) if sparse else weight, bias, np.array(True), slope))  # noqa: FBT003
        values = layers[-1].activate(goal)
    return Network(tuple(layers))


def sure(network, domain):
    return Tree.of(stability(network, domain, method="linear"))


def exact_rows(network, pattern):
    """The rows of all ReLUs, layer by layer, as functions of the inputs, where ReLUs have these states: in fractions, constants last."""
    values = [[Fraction(int(i == j)) for j in range(network.input_dim)] + [Fraction(0)] for i in range(network.input_dim)]
    rows, states = [], iter(pattern)
    for layer in network.layers:
        weight, found = layer.dense().tolist(), []
        for unit, bias in enumerate(layer.bias.tolist()):
            row = [
                sum((Fraction(w) * v[c] for w, v in zip(weight[unit], values, strict=True)), Fraction(0))
                for c in range(network.input_dim + 1)
            ]
            row[-1] += Fraction(bias)
            found.append(row)
        values = []
        for unit, row in enumerate(found):
            factor = Fraction(float(layer.slope[unit]))
            if layer.rectified[unit]:
                rows.append(row)
                factor = Fraction(1) if next(states) else factor
            values.append([factor * each for each in row])
    return rows


@pytest.mark.parametrize("leaky", [False, True])
def test_weights_and_biases_are_as_close_to_the_composed_ones_as_is_said(leaky, monkeypatch):
    monkeypatch.setattr(folding, "_WORTH", 2.0)
    rng = np.random.default_rng(3)
    for _ in range(5):
        domain = Box([-1.0, 0.3, -1.0], [1.0, 0.3, 0.5])
        tree = sure(mostly_stable(rng, (3, 12, 11, 4), 2, leaky=leaky), domain)
        folded = fold(tree.network, domain)
        pattern = rng.random(tree.units) < 0.5
        truth, about = exact_rows(tree.network, pattern), exact_rows(folded.network, pattern)
        assert len(truth) == len(about)
        # how far rows may be apart: doubts times the rows before, from the first layer on
        allowed, states = [], iter(pattern)
        before = None
        for layer, given in zip(folded.network.layers, folded.doubts, strict=True):
            weight = np.abs(layer.dense())
            if before is None:
                error, size = np.zeros(layer.units), weight @ np.ones(3) + np.abs(layer.bias)
            else:
                doubt = np.zeros((layer.units, layer.inputs + 1)) if given is None else given
                error = (weight + doubt[:, :-1]) @ before[0] + doubt[:, :-1] @ before[1] + doubt[:, -1]
                size = weight @ before[1] + np.abs(layer.bias)
            allowed += error[layer.rectified].tolist()
            factor = np.array(
                [(1.0 if next(states) else abs(s)) if r else abs(s) for r, s in zip(layer.rectified, layer.slope, strict=True)]
            )
            before = factor * error, factor * size
        fixed = Fraction(float(domain.lower[1]))
        for one, two, most in zip(truth, about, allowed, strict=True):
            apart = [abs(a - b) for a, b in zip(one, two, strict=True)]
            gap = abs((one[1] - two[1]) * fixed + one[3] - two[3])  # the fixed input is a constant
            assert apart[0] + apart[2] + gap <= Fraction(most * 1.001) + Fraction(1, 10**300)
        assert max(allowed) < 1e-13


def test_the_folded_network_has_what_varies_and_no_more():
    rng = np.random.default_rng(0)
    tree = sure(mostly_stable(rng, (40, 30, 30, 20), 2), Box(*([[0.1] * 38 + [-1.0] * 2, [0.1] * 38 + [1.0] * 2])))
    widths = [layer.units for layer in tree.walked.layers]
    assert tree.units <= 6
    assert widths[0] <= 4
    assert widths[1] <= 6
    assert widths[2] == tree.network.layers[2].relus
    assert [layer.relus for layer in tree.walked.layers] == [layer.relus for layer in tree.network.layers]


def test_a_network_that_would_not_become_much_smaller_is_left_alone():
    rng = np.random.default_rng(1)
    tree = sure(mostly_stable(rng, (40, 10, 10), 6), Box(-1, 1, dim=40))
    assert tree.walked is tree.network
    assert fold(tree.network, tree.domain) is None


def test_work_and_memory_are_limited(monkeypatch):
    tree = sure(mostly_stable(np.random.default_rng(0), (2, 30, 30, 5), 2), Box(-1, 1, dim=2))
    assert fold(tree.network, tree.domain) is not None
    monkeypatch.setattr(folding, "_MOST_WORK", 100)
    assert fold(tree.network, tree.domain) is None


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("kind", ["box", "polytope", "sparse", "leaky", "fixed"])
def test_counts_are_those_of_the_network_as_it_was(kind, whole, monkeypatch):
    """Whole weights make thin cells, which exact arithmetic settles with the weights as they were."""
    rng = np.random.default_rng([len(kind), whole])
    folded = 0
    for _ in range(4):
        network = mostly_stable(rng, (3, 24, 20, 6), 4, whole=whole, leaky=kind == "leaky", sparse=kind == "sparse")
        domain = Box(-1, 1, dim=3) if kind != "fixed" else Box([-1.0, 0.7, -1.0], [1.0, 0.7, 1.0])
        if kind == "polytope":
            domain = Polytope([[1.0, 1.0, 1.0]], [0.5], domain)
        known = stability(network, domain, method="interval")
        folded += Tree.of(known).walked is not Tree.of(known).network
        found = count(network, domain, stability=known).exact
        with monkeypatch.context() as patched:
            patched.setattr("tessella.partition.tree.fold", lambda *_: None)
            assert count(network, domain, stability=known).exact == found
    assert folded >= 2


@pytest.mark.parametrize("walker", [Vertices, ByPrograms])
@pytest.mark.parametrize("whole", [False, True])
def test_walkers_find_every_region_or_name_it_thin(walker, whole):
    rng = np.random.default_rng(11)
    for _ in range(4):
        tree = sure(mostly_stable(rng, (4, 24, 20, 6), 4, whole=whole), Box(-1, 1, dim=4))
        assert tree.walked is not tree.network
        found = walker(tree).advance([Node()], 20.0, Stop())
        assert not found.open
        points = tree.network.patterns(tree.domain.sample(3000, 0))
        seen = {bytes(pattern.astype(np.int8)) for pattern in points}
        thin = {pattern for pattern in seen if any(pattern.startswith(prefix) for prefix in found.thin)}
        assert found.regions >= len(seen - thin)


def test_estimates_agree_with_counts():
    network = mostly_stable(np.random.default_rng(5), (4, 40, 40, 8), 5)
    domain = Box(-1, 1, dim=4)
    assert Tree.of(stability(network, domain, method="linear")).walked.layers[1].units < 20
    exact = count(network, domain).exact
    found = estimate(network, domain, seconds=1.0, counting=False)
    assert found.lower <= exact
    assert abs(found.maps - np.log2(exact)) < 0.5


def test_all_of_space_is_folded_as_well(monkeypatch):
    rng = np.random.default_rng(2)
    hidden = Layer(np.vstack([rng.standard_normal((3, 2)), np.zeros((20, 2))]), np.append(rng.standard_normal(3), np.ones(20)))
    network = Network((hidden, Layer(rng.standard_normal((4, 23)), rng.standard_normal(4))))
    space = Box(-np.inf, np.inf, dim=2)
    found = count(network, space).exact
    assert found == count(network, Box(-1e6, 1e6, dim=2)).exact
    monkeypatch.setattr("tessella.partition.tree.fold", lambda *_: None)
    assert count(network, space).exact == found
