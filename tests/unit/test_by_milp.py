"""The paper's own method as a second counter."""

import os
import signal
import sys
import threading

import numpy as np
import pytest

from helpers.brute_force import count_regions, region_patterns
from helpers.odd_networks import Case, random_case
from tessella import SCIP, Box, MissingPackage, Network, OptionError, Polytope, stability
from tessella.counting.by_milp import POSITIVE, count_by_milp
from tessella.formulation import Model
from tessella.partition.tree import Tree


def tree_of(case):
    return Tree.of(stability(case.network, case.domain, method="lp"))


def generic(seed, dim, sizes, *, scale=1.0):
    rng = np.random.default_rng(seed)
    layers, before = [], dim
    for size in sizes:
        layers.append(
            (scale * rng.standard_normal((size, before)), scale * 0.5 * rng.standard_normal(size), np.ones(size, dtype=bool))
        )
        before = size
    return Case(layers, -np.ones(dim), np.ones(dim))


@pytest.mark.parametrize("seed", range(12))
def test_generic_networks(seed):
    case = generic(seed, 1 + seed % 6, [4, 3, 2] if seed % 2 else [6, 3])
    assert count_by_milp(tree_of(case)) == (count_regions(*case), True)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_the_size_of_numbers_does_not_matter(scale):
    case = generic(1, 3, [6, 3])
    layers = [(weight, bias * scale ** (number + 1), mask) for number, (weight, bias, mask) in enumerate(case.layers)]
    layers = [(layers[0][0] * scale, layers[0][1], layers[0][2]), (layers[1][0] * scale, layers[1][1], layers[1][2])]
    large = case._replace(layers=layers)
    assert count_by_milp(tree_of(large)) == (count_regions(*large), True) == (count_regions(*case), True)


@pytest.mark.parametrize("block", range(4))
def test_never_more_than_there_are(block):
    """What it misses are regions where some unit is active by less than a part of 1e-6 of its range."""
    equal = 0
    for seed in range(block * 25, block * 25 + 25):
        case = random_case([6, seed], largest=150, thin=False)
        found, finished = count_by_milp(tree_of(case))
        true = count_regions(*case)
        assert finished
        assert found <= true, seed
        equal += found == true
    assert equal > 20


def test_patterns_without_an_interior_are_not_counted():
    """At 0 all units are inactive, and the solver says so; the same for opposite and equal units."""
    weight = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, 1.0], [1.0, -1.0]])
    case = Case([(weight, np.zeros(4), np.ones(4, dtype=bool))], -np.ones(2), np.ones(2))
    assert count_by_milp(tree_of(case)) == (len(region_patterns(*case)), True) == (4, True)


def test_thin_regions_are_missed():
    layers = [(np.ones((2, 1)), np.array([0.0, -0.1 * POSITIVE]), np.ones(2, dtype=bool))]
    case = Case(layers, -np.ones(1), np.ones(1))
    assert count_by_milp(tree_of(case)) == (2, True)
    assert count_regions(*case) == 3


def test_domains():
    net = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 0.0, -0.5])], relu_output=True)
    cube = Box.cube(-1, 1, 2)
    for domain, regions in [
        (cube, 7),
        (Box([-1, 0.25], [1, 0.25]), 3),
        (Box.cube(1, 1, 2), 1),
        (Polytope([[1.0, 0.0]], [-0.5], cube), 2),
        (Box.cube(2, 3, 2), 1),
    ]:
        assert count_by_milp(Tree.of(stability(net, domain, method="interval"))) == (regions, True)
    assert count_by_milp(Tree(net, Box.cube(2, 3, 2))) == (1, True)  # stable units that the tree did not know of


def test_progress_and_time_limit():
    case = generic(0, 8, [8, 8])
    seen = []
    found, finished = count_by_milp(tree_of(case), seconds=0.3, on_found=seen.append)
    assert not finished
    assert seen == list(range(1, found + 1))
    with pytest.raises(OptionError, match="seconds"):
        count_by_milp(tree_of(case), seconds=0.0)


def test_errors_of_callbacks_come_through():
    def fail(number):
        msg = f"at {number}"
        raise LookupError(msg)

    with pytest.raises(LookupError, match="at 1"):
        count_by_milp(tree_of(generic(0, 3, [5])), on_found=fail)


def test_ctrl_c_returns_what_is_known():
    seen = []

    def press(number):
        seen.append(number)
        if number == 20:
            os.kill(os.getpid(), signal.SIGINT)

    assert threading.current_thread() is threading.main_thread()
    found, finished = count_by_milp(tree_of(generic(0, 8, [8, 8])), on_found=press)
    assert found == len(seen) >= 20
    assert not finished


@pytest.mark.parametrize("delay", [0.0, 0.011, 0.023, 0.037, 0.053, 0.071])
def test_ctrl_c_at_any_moment_is_heard(delay, capfd):
    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))

    def begin(number):
        if number == 1:
            timer.start()

    found, finished = count_by_milp(tree_of(generic(0, 8, [12, 12])), on_found=begin)
    timer.join()
    assert found > 0
    assert not finished
    assert capfd.readouterr().err == ""


def test_without_scip(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyscipopt", None)
    with pytest.raises(MissingPackage, match="pip install pyscipopt"):
        count_by_milp(tree_of(generic(0, 2, [3])))


def test_assignments_wants_all_integer_columns():
    from scipy.sparse import csr_array

    model = Model(("x", "z"), [0, 0], [1, 1], [True, True], [1, 0], csr_array([[1.0, 1.0]]), ("r",), [1], [2], maximize=True)
    with pytest.raises(OptionError, match="2 integer"):
        SCIP().assignments(model, [0], print)
    found = []
    assert SCIP().assignments(model, [0, 1], lambda values: found.append(tuple(values.round().astype(int).tolist())))
    assert sorted(found) == [(0, 1), (1, 0), (1, 1)]
