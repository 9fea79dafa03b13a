"""The bound from cells of the first layer, against regions in rational arithmetic."""

from collections import Counter

import numpy as np
import pytest

from helpers.brute_force import region_patterns
from helpers.odd_networks import leaky_case, random_case
from tessella import Box, Network, count, upper_bounds
from tessella.counting import beside, schedule
from tessella.counting.cellwise import Cellwise, KnownBound
from tessella.counting.checkpoint import Saved, Totals
from tessella.partition.local import LocalBound
from tessella.partition.tree import Node, Tree


def _check(case):
    truth = region_patterns(*case)
    tree = Tree(case.network, case.domain)
    bound = LocalBound(tree)
    cellwise = Cellwise(tree, bound)
    while not cellwise.finished:
        before = cellwise.most
        cellwise.advance(0.05)
        assert len(truth) <= cellwise.most <= before
    cells = cellwise.cells
    first = max(len(cell.prefix) for cell in cells)
    below = Counter(bytes(map(int, pattern[:first])) for pattern in truth)
    for prefix, most in cells:
        assert sum(number for cell, number in below.items() if cell.startswith(prefix)) <= most
    assert all(any(cell.startswith(prefix) for prefix, _ in cells) for cell in below)
    known = KnownBound(bound, cells)
    for pattern in list(truth)[:20]:
        for length in range(len(pattern) + 1):
            prefix = bytes(map(int, pattern[:length]))
            there = sum(bytes(map(int, other[:length])) == prefix for other in truth)
            assert there <= known(prefix) <= bound(prefix)


@pytest.mark.parametrize("seed", range(60))
def test_no_cell_has_more_regions_than_its_bound(seed):
    case = (leaky_case if seed % 4 == 3 else random_case)([25, seed], largest=120)
    if case.free and case.units and case.network.layers[-1].relus:
        _check(case)


@pytest.mark.parametrize("seed", range(20))
def test_upper_bounds_have_it(seed):
    case = random_case([26, seed], largest=80)
    found = upper_bounds(case.network, case.domain, method="linear", seconds=5.0)
    assert len(region_patterns(*case)) <= found.cellwise <= found.empirical
    assert found.best == found.cellwise
    assert found.listed == 1.0


def test_it_is_close_where_inputs_are_few():
    rng = np.random.default_rng(0)
    layers = [(rng.normal(size=(8, inputs)), rng.normal(size=8) / 3.0) for inputs in (6, 8)]
    network = Network.from_arrays(layers, relu_output=True)
    exact = count(network, Box(-1, 1, dim=6)).exact
    found = upper_bounds(network, Box(-1, 1, dim=6), method="linear", seconds=10.0)
    assert exact <= found.cellwise < 2 * exact < found.empirical


def _hasty(monkeypatch):
    """Counts list cells from the first moment on, as much as they walk, and share and report all the time."""
    monkeypatch.setattr(beside, "_LATER", 0.0)
    monkeypatch.setattr(beside, "_PART", 1.0)
    monkeypatch.setattr(schedule, "_SLICE", 1e-4)
    monkeypatch.setattr(schedule, "_TICK", 1e-3)


@pytest.mark.parametrize("seed", range(24))
def test_brackets_of_a_count_hold_while_cells_are_listed_beside_it(seed, monkeypatch):
    case = (leaky_case if seed % 4 == 3 else random_case)([27, seed], largest=300)
    truth, seen = len(region_patterns(*case)), []
    _hasty(monkeypatch)
    found = count(case.network, case.domain, workers=1 + seed % 2, progress=seen.append)
    assert found.exact == truth
    assert all(now.lower <= truth <= now.upper for now in seen)
    assert [now.upper for now in seen] == sorted((now.upper for now in seen), reverse=True)


@pytest.mark.parametrize("seed", range(8))
def test_so_do_those_of_larger_networks(seed, monkeypatch):
    network, box = _deep(4, (9, 9, 8), seed), Box(-1, 1, dim=4)
    if seed % 2:
        layers = [(np.round(2.0 * layer.dense()), np.round(2.0 * layer.bias)) for layer in network.layers]
        network = Network.from_arrays(layers, relu_output=True)
    truth, seen, refined = count(network, box).exact, [], []
    _hasty(monkeypatch)
    monkeypatch.setattr(schedule, "_SLICE", 0.003)
    refine = schedule.Ledger.refine

    def watched(ledger, most, left):
        before = ledger.standing
        refine(ledger, most, left)
        refined.append(ledger.standing.above < before.above)

    monkeypatch.setattr(schedule.Ledger, "refine", watched)
    found = count(network, box, workers=1 + seed % 2, progress=seen.append)
    assert found.exact == truth
    assert all(now.lower <= truth <= now.upper for now in seen)
    assert any(refined) or seed % 2  # where cells are thin, their bounds may not be better than those of the shape


def _deep(inputs, widths, seed=0):
    rng, layers = np.random.default_rng(seed), []
    for units in widths:
        layers.append((rng.normal(size=(units, inputs)) / np.sqrt(inputs), rng.normal(size=units) / 3.0))
        inputs = units
    return Network.from_arrays(layers, relu_output=True)


@pytest.mark.slow
def test_a_count_closes_from_above_while_it_counts(monkeypatch, tmp_path):
    network, box, seen = _deep(8, (12, 20, 20, 20)), Box(-1, 1, dim=8), []
    monkeypatch.setattr(beside, "_LATER", 0.0)
    monkeypatch.setattr(beside, "_PART", 0.5)

    def watch(now):
        seen.append(now)
        if now.upper < seen[0].upper / 2**3:
            raise KeyboardInterrupt

    found = count(network, box, seconds=60.0, workers=1, progress=watch, checkpoint=tmp_path / "count.db")
    assert found.status == "interrupted"
    assert found.upper <= seen[-1].upper < seen[0].upper / 2**3
    again = count(network, box, seconds=0.01, workers=1, checkpoint=tmp_path / "count.db")
    assert again.upper <= found.upper


def test_what_is_left_is_bounded_by_cells_only_if_it_is_all_that_is_left():
    network, box = _deep(4, (6, 6)), Box(-1, 1, dim=4)
    tree = Tree(network, box)
    bound = LocalBound(tree)
    saved = Saved((Node(bytes([0]), 1), Node(bytes([1]), 1)), (), Totals(0, 0, 0, 0.0, 1, bound(b"")))
    ledger = schedule.Ledger(tree, bound, saved)
    ledger.refine(lambda _: 1, [bytes([0])])
    assert ledger.standing.totals.upper == bound(b"")
    ledger.refine(lambda _: 1, [bytes([0]), bytes([1])])
    assert ledger.standing.totals.upper == 2
