"""The depth-first walk and the search for parities, step by step: compiled, against rational arithmetic."""

import numpy as np
import pytest

from helpers.brute_force import region_patterns
from tessella import Box, Network, stability
from tessella.counting.by_points import ByPoints
from tessella.counting.by_programs import ByPrograms
from tessella.counting.depth_first import DONE, MORE, go_on
from tessella.counting.search import Search
from tessella.counting.state import DEEP
from tessella.partition.tree import Node, Tree

WALKERS = [
    ("inputs", lambda tree: ByPrograms(tree, in_frame=False), 3),
    ("frame", lambda tree: ByPrograms(tree, in_frame=True), 3),
    ("points", ByPoints, 20),
]


def made(inputs, *widths, seed=0):
    """A network whose units all change their state on the box, its tree, and the patterns of its regions."""
    rng, sizes, units = np.random.default_rng([seed, inputs, *widths]), [inputs, *widths], -1
    while units != sum(widths):
        arrays = [
            (rng.standard_normal((size, before)) / np.sqrt(before), rng.uniform(-0.2, 0.2, size))
            for before, size in zip(sizes, widths, strict=False)
        ]
        network = Network.from_arrays(arrays, relu_output=True)
        tree = Tree.of(stability(network, Box(-1, 1, dim=inputs), method="interval"))
        units = tree.units
    layers = [(weight, bias, True) for weight, bias in arrays]
    return tree, arrays, {bytes(pattern) for pattern in region_patterns(layers, [-1.0] * inputs, [1.0] * inputs)}


def walked(walker, node, limit=1 << 40):
    """How many regions a walk counts below a node, and the prefixes that it leaves; in steps of so many questions."""
    walk, left, fixed = walker._walk, [], len(node.prefix)
    walk.path.regions = walk.cell.tally.tests = 0
    walker._enter(node)
    status = MORE
    while status != DONE:
        status = go_on(walk, fixed, walk.cell.tally.tests + limit)
        left += walker._taken()
    return walk.path.regions, left


@pytest.mark.parametrize(("name", "kind", "inputs"), WALKERS)
@pytest.mark.parametrize("widths", [(5,), (4, 4), (4, 3, 3)])
def test_it_counts_what_there_is_however_often_it_is_interrupted(name, kind, inputs, widths):
    tree, _, patterns = made(inputs, *widths)
    assert walked(kind(tree), Node()) == (len(patterns), [])
    assert walked(kind(tree), Node(), limit=1) == (len(patterns), [])


@pytest.mark.parametrize(("name", "kind", "inputs"), WALKERS)
@pytest.mark.parametrize("length", [1, 3, 6, 8])
def test_it_counts_below_a_prefix(name, kind, inputs, length):
    tree, _, patterns = made(inputs, 4, 4)
    walker = kind(tree)
    for prefix in {pattern[:length] for pattern in patterns}:
        assert walked(walker, Node(prefix)) == (sum(pattern.startswith(prefix) for pattern in patterns), [])


@pytest.mark.parametrize(("name", "kind", "inputs"), WALKERS)
def test_below_a_prefix_that_is_not_there_is_nothing(name, kind, inputs):
    tree, _, patterns = made(inputs, 4, 4, seed=1)
    all_prefixes = [bytes(number >> place & 1 for place in range(6)) for number in range(64)]
    missing = [prefix for prefix in all_prefixes if not any(pattern.startswith(prefix) for pattern in patterns)]
    assert missing
    walker = kind(tree)
    for prefix in missing:
        regions, left = walked(walker, Node(prefix))
        assert regions == 0
        assert all(node.prefix == prefix for _, node in left)


@pytest.mark.parametrize(("name", "kind", "inputs"), WALKERS)
@pytest.mark.parametrize("deepest", [0, 1, 3])
def test_what_lies_too_deep_is_left_whole(name, kind, inputs, deepest):
    tree, _, patterns = made(inputs, 4, 4)
    walker = kind(tree)
    walker._walk.deepest = deepest
    regions, left = walked(walker, Node())
    below = [sum(pattern.startswith(node.prefix) for pattern in patterns) for _, node in left]
    assert regions + sum(below) == len(patterns)
    assert all(below)
    assert {kind for kind, _ in left} <= {DEEP}
    assert left or deepest > 1


@pytest.mark.parametrize(("inputs", "widths"), [(2, (5, 4)), (4, (4, 4)), (120, (4, 3))])
def test_the_search_visits_every_region_once_and_proves_it(inputs, widths):
    tree, arrays, patterns = made(inputs, *widths)
    search, found = Search(tree), []
    while (pattern := search.next(lambda: False)) is not None:
        found.append(pattern)
        place, states = search.point(), []
        for weight, bias in arrays:
            values = weight @ place + bias
            states.append(values > 0.0)
            place = np.maximum(values, 0.0)
        assert bytes(np.concatenate(states).astype(np.uint8)) == pattern
    assert len(found) == len(set(found))
    assert set(found) == patterns
    assert not search.thin


@pytest.mark.parametrize("seed", range(6))
def test_the_search_keeps_to_parities_that_come_later(seed):
    tree, _, patterns = made(3, 5, 4)
    rng, search, left, found = np.random.default_rng(seed), Search(tree), set(patterns), []
    for unit in rng.permutation(np.arange(1, tree.units))[:3].tolist():
        pattern = search.next(lambda: False)
        if pattern is None:
            break
        assert pattern in left
        found.append(pattern)
        others, odd = np.flatnonzero(rng.random(unit) < 0.5).tolist(), int(rng.integers(2))
        search.add(unit, others, odd)
        left = {one for one in left if (one[unit] + sum(one[other] for other in others)) % 2 == odd}
        if pattern not in left:
            search.leave(unit)
    rest = set()
    while (pattern := search.next(lambda: False)) is not None:
        rest.add(pattern)
    assert rest == left - set(found)


def test_the_search_leaves_what_begins_like_a_region():
    tree, _, patterns = made(3, 5, 4)
    for unit in range(tree.units):
        search = Search(tree)
        first = search.next(lambda: False)
        search.leave(unit)
        rest = set()
        while (pattern := search.next(lambda: False)) is not None:
            rest.add(pattern)
        assert rest == {pattern for pattern in patterns if pattern[: unit + 1] != first[: unit + 1]}


def test_a_search_begins_again_and_can_be_stopped():
    tree, _, patterns = made(3, 4, 3)
    search = Search(tree)
    search.add(2, [0, 1], 1)
    first = search.next(lambda: False)
    assert (first[0] + first[1] + first[2]) % 2 == 1
    assert search.next(lambda: True) is None
    search.begin()
    found = set()
    while (pattern := search.next(lambda: False)) is not None:
        found.add(pattern)
    assert found == patterns
    assert search.tests > 0
