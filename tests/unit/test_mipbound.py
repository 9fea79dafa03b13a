"""MIPBound's options, parallel runs, early ends, and what it does with solvers that err."""

import itertools
import json
import math
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from scipy.sparse import csr_array

import tessella
from tessella.errors import FileError, FileMissing, OptionError, SolverError, UnsupportedModel
from tessella.formulation import Model
from tessella.partition.tree import Tree
from tessella.probable import search
from tessella.probable.models import Confirmation, Counting
from tessella.probable.networks import _solving
from tessella.probable.run import Plan
from tessella.probable.search import Seeker
from tessella.solvers import SCIP, Gurobi, HiGHS
from tessella.solvers import Status as SolverStatus

SEED = Plan(3, 0.95, 28, None, (0,)).seed(0)


def never():
    return False


@pytest.fixture(scope="module")
def network():
    rng = np.random.default_rng(5)
    layers = [(rng.normal(size=(8, 5)), 0.3 * rng.normal(size=8)), (rng.normal(size=(4, 8)), 0.3 * rng.normal(size=4))]
    return tessella.Network.from_arrays(layers, relu_output=True)


@pytest.fixture(scope="module")
def box():
    return tessella.Box.cube(-1, 1, 5)


@pytest.fixture(scope="module")
def stability(network, box):
    return tessella.stability(network, box)


def large():
    """A network whose repetitions take long."""
    rng = np.random.default_rng(0)
    sizes = itertools.pairwise((20, 30, 30, 30))
    layers = [(rng.normal(size=(n, m)), 0.1 * rng.normal(size=n)) for m, n in sizes]
    network, box = tessella.Network.from_arrays(layers, relu_output=True), tessella.Box.cube(-1, 1, 20)
    return network, box, tessella.stability(network, box, method="linear")


def test_an_answer_says_what_it_claims(network, box):
    found = tessella.mipbound(network, box, rng=3)
    truth = tessella.count(network, box).exact
    assert 1 < found.lower <= truth
    assert (found.repetitions, found.parity_size, found.status, found.epsilon) == (28, 3, "finished", 0.0)
    assert found.feasible_after[0] == 28
    assert list(found.feasible_after) == sorted(found.feasible_after, reverse=True)
    assert found.probability >= 0.95
    assert found.lower == 2**found.exponent + 1
    assert found.bound.side == "lower"
    assert found.bound.confidence == 0.95
    assert found.maps < found.approximation < math.log2(found.empirical)
    assert "95 % sure, XOR-3, 28 repetitions, of 5-8-4 on [-1, 1]^5" in repr(found)
    record = json.loads(found.to_json())
    assert record["lower"] == found.lower
    assert record["draws"] == list(found.draws)
    assert record["network"]["fingerprint"] == network.fingerprint
    assert record["seed"] == [3]


def test_the_same_seed_gives_the_same_answer_whoever_works(network, box, stability, processes):
    given = {"stability": stability, "rng": 7, "repetitions": 12}
    alone = tessella.mipbound(network, box, workers=1, **given)
    assert tessella.mipbound(network, box, workers=3, **given) == alone
    assert tessella.mipbound(network, box, **given) == alone
    with ThreadPoolExecutor(2) as threads:
        assert tessella.mipbound(network, box, executor=threads, **given) == alone
    assert tessella.mipbound(network, box, executor=processes, **given) == alone
    solved = tessella.mipbound(network, box, executor=processes, solver=SCIP(), **given)
    assert solved.draws == alone.draws
    assert (solved.method, solved.epsilon) == ("SCIP", 1e-6)
    assert tessella.mipbound(network, box, stability=stability, rng=8, repetitions=12).draws != alone.draws


def test_a_generator_is_a_seed_too(network, box, stability):
    given = {"stability": stability, "repetitions": 4}
    first, again = (tessella.mipbound(network, box, rng=np.random.default_rng(1), **given) for _ in range(2))
    assert first == again
    rng = np.random.default_rng(1)
    assert tessella.mipbound(network, box, rng=rng, **given) == first
    assert tessella.mipbound(network, box, rng=rng, **given).seed != first.seed


def test_progress_is_the_answer_so_far(network, box, stability):
    seen = []
    found = tessella.mipbound(network, box, stability=stability, progress=seen.append, workers=2)
    assert [now.repetitions for now in seen] == list(range(1, 29))
    assert all(now.status == "running" and now.draws == found.draws[: now.repetitions] for now in seen)
    assert seen[-1].lower == found.lower


def test_a_confidence_that_needs_more_repetitions_gets_them(network, box, stability):
    assert tessella.mipbound(network, box, stability=stability, confidence=0.9999).repetitions == 48


def test_without_unstable_units_there_is_one_region():
    network = tessella.Network.from_arrays([([[1.0]], [5.0])], relu_output=True)
    found = tessella.mipbound(network, tessella.Box.cube(-1, 1, 1))
    assert (found.lower, found.repetitions, found.probability) == (1, 0, 1.0)
    assert "at least 1 region = 2^0.00" in repr(found)


def test_without_free_inputs_there_is_one_region(network):
    assert tessella.mipbound(network, tessella.Box(np.zeros(5), np.zeros(5))).lower == 1


@pytest.mark.parametrize("solver", [None, SCIP()])
def test_constraints_larger_than_the_network_have_all_its_units(network, box, stability, solver):
    found = tessella.mipbound(network, box, stability=stability, parity_size=50, repetitions=3, solver=solver)
    assert found.repetitions == 3
    assert found.parity_size == found.subject.variables < 50
    assert found.draws == tessella.mipbound(network, box, stability=stability, parity_size=found.parity_size, repetitions=3).draws


def test_constraints_that_would_take_too_many_rows_are_refused():
    units = np.random.default_rng(0).standard_normal((14, 3))
    wide = tessella.Network.from_arrays([(units, np.zeros(14))], relu_output=True)
    with pytest.raises(OptionError, match="at most 12"):
        tessella.mipbound(wide, tessella.Box.cube(-1, 1, 3), solver=SCIP(), parity_size=13)


def test_no_repetitions_approximate_nothing(network, box, stability):
    found = tessella.mipbound(network, box, stability=stability, seconds=1e-9)
    assert (found.repetitions, found.lower, found.approximation) == (0, 1, None)


def test_endless_time_is_no_limit(network, box, stability):
    assert tessella.mipbound(network, box, stability=stability, seconds=float("inf")).repetitions == 28


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"parity_size": 0}, "parity_size is 0; MIPBound takes a whole number of at least 1"),
        ({"parity_size": 2.5}, "parity_size is 2.5"),
        ({"parity_size": None}, "parity_size is None"),
        ({"repetitions": 0}, "repetitions is 0"),
        ({"workers": -1}, "workers is -1"),
        ({"confidence": 1.0}, "confidence is 1.0"),
        ({"confidence": "high"}, "confidence is 'high'"),
        ({"seconds": 0}, "seconds is 0"),
        ({"rng": -1}, "rng is -1"),
        ({"rng": "seed"}, "rng is 'seed'"),
        ({"executor": ThreadPoolExecutor}, "takes a concurrent.futures.Executor"),
        ({"progress": 3}, "progress is a int"),
        ({"solver": "scip"}, "give tessella.SCIP()"),
        ({"solver": SCIP}, "give tessella.SCIP()"),
        ({"stability": 1}, "takes what tessella.stability returns"),
    ],
)
def test_wrong_options_are_named(network, box, wrong, said):
    with pytest.raises(OptionError) as error:
        tessella.mipbound(network, box, **wrong)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_another_networks_stability_is_refused(network, stability):
    with pytest.raises(OptionError, match="the stability given is that of"):
        tessella.mipbound(network, tessella.Box.cube(0, 1, 5), stability=stability)


def test_a_time_limit_is_an_answer(network, box, stability):
    found = tessella.mipbound(network, box, stability=stability, seconds=0.3, repetitions=1_000_000)
    assert found.status == "time limit"
    assert found.repetitions > 28
    assert found.lower <= tessella.count(network, box).exact
    begun = time.perf_counter()
    big = large()
    found = tessella.mipbound(big[0], big[1], stability=big[2], seconds=0.5, repetitions=28)
    assert time.perf_counter() - begun < 20.0
    assert (found.status, found.lower) == ("time limit", 1)
    assert found.repetitions < 28


@pytest.mark.parametrize("solver", [None, SCIP()])
def test_ctrl_c_is_an_answer(solver):
    big = large()
    threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begun = time.perf_counter()
    found = tessella.mipbound(big[0], big[1], stability=big[2], solver=solver)
    assert found.status == "interrupted"
    assert time.perf_counter() - begun < 30.0


@pytest.mark.parametrize("most", [1, 2])
def test_a_killed_worker_leaves_what_the_repetitions_before_say(network, box, stability, most):
    given = {"stability": stability, "repetitions": 400, "rng": 1}
    right = tessella.mipbound(network, box, **given)
    assert right.repetitions == 400
    killed = []
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes:
        # both have begun and loaded by then; else one of them may do all the rest before the other one's first comes
        assert tessella.mipbound(network, box, executor=processes, **given).draws == right.draws

        def kill(now):
            if now.repetitions == 5:
                killed.extend(list(processes._processes)[:most])
                for process in killed:
                    os.kill(process, signal.SIGKILL)

        found = tessella.mipbound(network, box, executor=processes, progress=kill, **given)
    assert len(killed) == most
    assert found.repetitions >= 5
    assert found.draws == right.draws[: found.repetitions]
    finished = (
        found.repetitions == 400
    )  # by the other one: a pool notices an idle worker's end only when it has nothing else to hear
    assert found.status == ("finished" if finished else "worker lost")
    assert most == 1 or not finished


def test_an_executor_that_has_ended_is_an_error(network, box, stability):
    with ThreadPoolExecutor(1) as ended:
        pass
    with pytest.raises(SolverError, match="was lost"):
        tessella.mipbound(network, box, executor=ended, stability=stability, repetitions=400)


def test_equal_tasks_are_told_apart(network, box, stability):
    """An executor that merges equal calls, as some clusters do."""

    class Merging(ThreadPoolExecutor):
        known: dict

        def submit(self, work, *arguments):
            key = repr((arguments[0], arguments[1]))
            if key not in self.known:
                self.known[key] = super().submit(work, *arguments)
            return self.known[key]

    with Merging(1) as merging:
        merging.known = {}
        found = tessella.mipbound(network, box, stability=stability, executor=merging, repetitions=10)
    assert found.draws == tessella.mipbound(network, box, stability=stability, repetitions=10).draws


class Lying:
    """A solver that offers assignments which are none, violates rows it was given, and then leaves the rest to another."""

    def __init__(self, lies, stubborn=0):
        self.lies, self.stubborn = lies, stubborn

    def exhaust(self, model, cut, *, seconds=None, stopped=None):
        for lie in self.lies:
            values = np.zeros(len(model.names))
            values[: len(lie)] = lie
            rows = cut(values)
            for _ in range(self.stubborn):
                assert cut(values) == rows
        return SCIP().exhaust(model, cut, seconds=seconds, stopped=stopped)


def exactly_one(count):
    names = tuple(f"x{i}" for i in range(count))
    rows = csr_array(np.ones((1, count)))
    return Model(names, np.zeros(count), np.ones(count), np.ones(count, dtype=bool), np.zeros(count), rows, ("r",), [1], [1])


def test_false_solutions_are_cut_off_and_not_counted():
    honest = Counting(exactly_one(6), tuple(range(6)), SCIP()).worker().repeat(2, SEED, never)
    lying = Counting(exactly_one(6), tuple(range(6)), Lying([[1] * 6, [0] * 6, [1, 1, 0, 0, 0, 0]], stubborn=2))
    found = lying.worker().repeat(2, SEED, never)
    assert found.draws == honest.draws
    assert (honest.unconfirmed, found.unconfirmed) == (0, 3)


def test_solutions_that_violate_constraints_are_told_again_and_draw_nothing():
    honest = Counting(exactly_one(6), tuple(range(6)), SCIP()).worker().repeat(3, SEED, never)
    found = Counting(exactly_one(6), tuple(range(6)), Lying([[1, 0, 0, 0, 0, 0]])).worker().repeat(3, SEED, never)
    assert found.draws == honest.draws
    with pytest.raises(SolverError, match="keeps offering solutions"):
        Counting(exactly_one(6), tuple(range(6)), Lying([[1] * 6], stubborn=200)).worker().repeat(3, SEED, never)


def test_regions_that_do_not_exist_are_not_counted(network, box, stability):
    job = _solving(stability, Tree.of(stability), SCIP())
    honest = job.worker().repeat(3, SEED, never)
    patterns = {region.pattern.tobytes() for region in tessella.regions(network, box)}
    states = np.array(list(itertools.product((False, True), repeat=12)))
    none = [pattern for pattern in states[::97] if pattern.tobytes() not in patterns]
    assert len(none) > 10

    class Fooled:
        def exhaust(self, model, cut, *, seconds=None, stopped=None):
            for pattern in none:
                values = np.zeros(len(model.names))
                values[list(job.columns)] = pattern
                assert len(cut(values)) == 1
            return SCIP().exhaust(model, cut, seconds=seconds, stopped=stopped)

    found = _solving(stability, Tree.of(stability), Fooled()).worker().repeat(3, SEED, never)
    assert found.draws == honest.draws
    assert found.unconfirmed == len(none)


def test_what_exact_arithmetic_has_no_time_for_lowers_the_count(monkeypatch):
    """Without its decisions thin cells count as empty, are said to be so, and a bound stays one."""
    rng = np.random.default_rng(1)
    weight = rng.integers(-2, 3, size=(6, 2)).astype(float)
    network = tessella.Network.from_arrays(
        [(weight, None), (rng.integers(-2, 3, size=(4, 6)).astype(float), None)], relu_output=True
    )
    box = tessella.Box.cube(-1, 1, 2)
    tree = Tree.of(tessella.stability(network, box))
    seeds = [Plan(2, 0.95, 28, None, (0,)).seed(number) for number in range(20)]
    whole = [Seeker(tree).repeat(2, seed, never) for seed in seeds]
    monkeypatch.setattr(search, "_DECISIONS", 0)
    part = [Seeker(tree).repeat(2, seed, never) for seed in seeds]
    assert all(less.draws <= more.draws for less, more in zip(part, whole, strict=True))
    assert any(less.given_up for less in part)
    assert not any(more.given_up for more in whole)


def test_assignments_are_confirmed_with_whole_numbers():
    """y <= 1e7 x and y >= 0.5: x = 5e-8 is nearly 0, but 0 is no solution."""
    rows = csr_array([[-1e7, 1.0], [0.0, 1.0]])
    model = Model(("x", "y"), [0, 0], [1, 1], [True, False], [0, 0], rows, ("a", "b"), [-np.inf, 0.5], [0, np.inf])
    confirm = Confirmation(Counting(model, (0,), SCIP()))
    assert not confirm(np.array([False]), np.array([5e-8, 0.5]))
    assert confirm(np.array([True]), np.array([1.0 - 5e-8, 0.5]))
    assert confirm(np.array([True]), np.array([1.0, 0.0]))  # another y is found


@pytest.fixture
def knapsack(tmp_path):
    """sum (i + 1) x_i <= 39 with 12 items, a whole number and a continuous one; 2,110 assignments."""
    from pyscipopt import Model as Scip

    model = Scip("knapsack")
    model.hideOutput()
    items = [model.addVar(f"item({i})", "B") for i in range(12)]
    whole, real = model.addVar("whole", "I", lb=0, ub=5), model.addVar("real", lb=None)
    model.addCons(sum((i + 1) * item for i, item in enumerate(items)) <= 39)
    model.addCons(items[0] + items[1] + whole == 3)
    model.addCons(real >= items[2] - 5)
    for name in ("k.mps", "k.lp"):
        model.writeProblem(str(tmp_path / name), verbose=False)
    return model, tmp_path


def test_any_problem_from_files_and_objects(knapsack, processes):
    model, folder = knapsack
    truth = sum(sum((i + 1) * s for i, s in enumerate(states)) <= 39 for states in itertools.product((0, 1), repeat=12))
    found = tessella.mipbound_model(model, parity_size=4)
    assert 128 < found.lower <= truth
    assert found.subject.counted == "solutions on the binary variables"
    assert json.loads(found.to_json())["model"] == "knapsack"
    for source in (folder / "k.mps", str(folder / "k.lp")):
        again = tessella.mipbound_model(source, parity_size=4, repetitions=6)
        assert again.repetitions == 6
        assert min(again.draws) > 4
    some = tessella.mipbound_model(model, [f"item({i})" for i in (0, 3, 11)], parity_size=2)
    assert some.lower <= 8
    assert some.subject.variables == 3
    afar = tessella.mipbound_model(model, parity_size=4, repetitions=6, executor=processes)
    assert afar.draws == found.draws[:6]


def test_solvers_agree_on_any_problem(knapsack):
    draws = {tessella.mipbound_model(knapsack[0], solver=solver, repetitions=6).draws for solver in (SCIP(), HiGHS(), Gurobi())}
    assert len(draws) == 1


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (["item(1)", "nothing"], "has no variable 'nothing'; its binary ones begin with item("),
        (["whole"], "variable 'whole' is not binary"),
        ([], "give a list with the names"),
        ("item(1)", "give a list with the names"),
        (["item(1)", "item(1)"], "names 'item(1)' twice"),
    ],
)
def test_wrong_variables_are_named(knapsack, variables, said):
    with pytest.raises(OptionError) as error:
        tessella.mipbound_model(knapsack[0], variables)
    assert said in str(error.value)


def small(*constraints, kind="B", objective=0.0):
    from pyscipopt import Model as Scip

    model = Scip("small")
    model.hideOutput()
    first, second = model.addVar("a", kind), model.addVar("b", lb=None, obj=objective)
    for constraint in constraints:
        model.addCons(constraint(first, second))
    return model


def test_problems_that_have_no_count_are_named(tmp_path):
    found = tessella.mipbound_model(small(lambda a, _: a >= 2))
    assert (found.lower, found.status, found.repetitions) == (0, "infeasible", 0)
    assert repr(found).startswith("MIPBound(no solutions, as SCIP says, of small")
    assert json.loads(found.to_json())["maps"] is None
    with pytest.raises(OptionError, match="none of its 2 variables is binary"):
        tessella.mipbound_model(small(kind="C"))
    with pytest.raises(OptionError, match=r"is unbounded.*'b'"):
        tessella.mipbound_model(small(lambda a, b: b <= a, objective=1.0))
    assert tessella.mipbound_model(small(lambda a, b: b <= a)).lower == 2  # without an objective nothing is unbounded
    with pytest.raises(UnsupportedModel, match="'c1' is of SCIP's kind 'nonlinear'"):
        tessella.mipbound_model(small(lambda a, b: b * b <= a))
    with pytest.raises(OptionError, match="a int was given"):
        tessella.mipbound_model(3)
    with pytest.raises(FileMissing):
        tessella.mipbound_model(tmp_path / "none.mps")
    (tmp_path / "x.txt").write_text("hello")
    with pytest.raises(OptionError, match=r"end in \.mps"):
        tessella.mipbound_model(tmp_path / "x.txt")


@pytest.mark.parametrize(
    ("name", "text"), [("a.mps", "garbage"), ("a.lp", "nothing of the kind"), ("b.mps", "NAME x\nROWS\n N obj\n")]
)
def test_damaged_files_end_in_one_line_and_print_nothing(tmp_path, capfd, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(FileError) as error:
        tessella.mipbound_model(tmp_path / name)
    assert "\n" not in str(error.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("solver", [SCIP(), HiGHS(), Gurobi()])
def test_a_search_with_lazy_rows_ends_when_asked_and_raises_what_was_raised(solver):
    model = exactly_one(5)
    assert solver.exhaust(model, lambda _: [], stopped=lambda: True) is SolverStatus.STOPPED

    def fails(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        solver.exhaust(model, fails)
    with pytest.raises(SolverError, match="no row was given"):
        solver.exhaust(model, lambda _: [])


def test_all_that_repetitions_call_is_loaded_before_they_begin(monkeypatch):
    """Many inputs, narrow layers: the last layers, as networks of their own, need the other linear program."""
    from tessella.counting.search import Search
    from tessella.kernel import warming
    from tessella.probable.networks import Searching

    rng = np.random.default_rng(2)
    layers = [(rng.normal(size=(m, n)), 0.3 * rng.normal(size=m)) for n, m in itertools.pairwise([200, 6, 5, 4])]
    network, domain = tessella.Network.from_arrays(layers, relu_output=True), tessella.Box.cube(-1, 1, 200)
    known = tessella.stability(network, domain, method="linear")
    job = Searching.of(known)
    wanted = {function for tree in (job.tree, *job.tails) for function in Search.functions(tree)}
    assert wanted > set(Search.functions(job.tree))  # the tails have few inputs
    happened, load, worker = [], warming.load, Searching.worker
    monkeypatch.setattr(warming, "load", lambda functions: happened.append(set(functions)) or load(functions))
    monkeypatch.setattr(Searching, "worker", lambda self: happened.append("work") or worker(self))
    found = tessella.mipbound(network, domain, stability=known, repetitions=2)
    assert found.repetitions == 2
    assert happened[0] >= wanted
    assert set(happened[1:]) == {"work"}


def test_a_time_limit_is_not_used_up_where_more_repetitions_bring_next_to_nothing():
    small = tessella.Network.from_arrays([([[1.0], [-1.0]], [0.5, 0.5])], relu_output=True)
    found = tessella.mipbound(small, (-2, 2), seconds=600.0, workers=1)
    assert (found.repetitions, str(found.status)) == (1000, "finished")
    assert found.seconds < 300.0
