"""Every solver gives the same answers through the same door."""

import importlib.util
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.sparse import csr_array

from tessella.errors import MissingPackage, OptionError, SolverError
from tessella.formulation import Model
from tessella.solvers import SCIP, Gurobi, HiGHS, Solution, Status
from tessella.solvers.base import failures, linear_bound, outward

PACKAGES = {SCIP: "pyscipopt", HiGHS: "highspy", Gurobi: "gurobipy"}


def needs(kind):
    found = importlib.util.find_spec(PACKAGES[kind]) is not None
    return pytest.param(kind, marks=pytest.mark.skipif(not found, reason=f"{PACKAGES[kind]} is not installed"))


each_solver = pytest.mark.parametrize("kind", [needs(kind) for kind in PACKAGES])


def model(objective, rows, row_lower, row_upper, *, upper=10.0, lower=0.0, integer=True, maximize=True):
    rows = csr_array(np.array(rows, dtype=float).reshape(-1, len(objective)))
    return Model(
        tuple(f"x{j}" for j in range(len(objective))),
        np.full(len(objective), lower),
        np.full(len(objective), upper),
        np.full(len(objective), integer),
        objective,
        rows,
        tuple(f"r{i}" for i in range(rows.shape[0])),
        row_lower,
        row_upper,
        maximize=maximize,
    )


def market_split(rows=4, columns=30):
    """Equations with small slack that no solver closes in a second; the relaxation has slack 0."""
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 100, (rows, columns)).astype(float)
    names = [f"z{j}" for j in range(columns)] + [f"s{i}" for i in range(2 * rows)]
    slack = np.hstack([np.eye(rows), -np.eye(rows)])
    right = np.floor(weights.sum(axis=1) / 2)
    return Model(
        tuple(names),
        np.zeros(len(names)),
        np.concatenate([np.ones(columns), np.full(2 * rows, 5000.0)]),
        np.arange(len(names)) < columns,
        np.concatenate([np.zeros(columns), np.ones(2 * rows)]),
        csr_array(np.hstack([weights, slack])),
        tuple(f"r{i}" for i in range(rows)),
        right,
        right,
    )


@each_solver
@pytest.mark.parametrize("maximize", [True, False])
def test_an_optimum_and_its_relaxation(kind, maximize):
    sign = 1.0 if maximize else -1.0
    problem = model([sign * 5.0, sign * 4.0], [[6, 4], [1, 2]], [-np.inf] * 2, [24, 6], maximize=maximize)
    found = kind().solve(problem)
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(sign * 20.0)
    assert found.bound == pytest.approx(sign * 20.0)
    assert found.values == pytest.approx([4.0, 0.0])
    assert found.seconds > 0.0
    relaxed = kind().solve(problem, relaxed=True)
    assert relaxed.objective == pytest.approx(sign * 21.0)
    assert relaxed.bound == pytest.approx(sign * 21.0, abs=1e-9)
    assert sign * relaxed.bound >= sign * relaxed.objective
    assert relaxed.values == pytest.approx([3.0, 1.5])


@each_solver
def test_every_kind_of_row_and_bound(kind):
    problem = Model(
        ("a", "b", "c", "d", "k"),
        [-np.inf, -3.0, -np.inf, 2.0, -2.5],
        [np.inf, -1.0, 4.0, 2.0, np.inf],
        [False, False, False, False, True],
        [1.0, 1.0, 1.0, 1.0, 1.0],
        csr_array([[1.0, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1.0], [0, 0, 0, 0, 0], [1, 0, 0, 0, 1.0]]),
        ("equal", "range", "upper", "empty", "loose"),
        [0.5, -1.0, -np.inf, -1.0, -np.inf],
        [0.5, 3.0, 7.5, 2.0, np.inf],
        maximize=True,
    )
    highest = kind().solve(problem)
    assert highest.objective == pytest.approx(0.5 + 1.0 + 2.0 + 7.0)
    assert highest.bound == pytest.approx(10.5)
    lowest = kind().solve(problem.with_objective(problem.objective, maximize=False))
    assert lowest.objective == pytest.approx(0.5 - 3.0 + 2.0 - 2.0)
    relaxed = kind().solve(problem, relaxed=True)
    assert relaxed.objective == pytest.approx(11.0)
    assert relaxed.bound == pytest.approx(11.0)


@each_solver
@pytest.mark.parametrize("relaxed", [True, False])
def test_infeasible_problems(kind, relaxed):
    found = kind().solve(model([1.0, 1.0], [[1, 1]], [30.0], [np.inf]), relaxed=relaxed)
    assert (found.status, found.objective, found.bound, found.values) == (Status.INFEASIBLE, None, None, None)
    whole = model([1.0, 1.0], [[2, 2]], [3.0], [3.0])
    assert kind().solve(whole, relaxed=relaxed).status is (Status.OPTIMAL if relaxed else Status.INFEASIBLE)
    impossible = model([1.0], [[0.0]], [1.0], [2.0])
    assert kind().solve(impossible, relaxed=relaxed).status is Status.INFEASIBLE


@each_solver
@pytest.mark.parametrize("integer", [True, False])
def test_unbounded_problems(kind, integer):
    found = kind().solve(model([1.0, 1.0], [[1, -1]], [0.0], [0.0], upper=np.inf, integer=integer))
    assert (found.status, found.objective, found.bound, found.values) == (Status.UNBOUNDED, None, None, None)
    neither = model([1.0, 1.0], [[1, -1], [1, -1]], [0.0, 1.0], [0.0, 1.0], upper=np.inf, integer=integer)
    assert kind().solve(neither).status is Status.INFEASIBLE


@each_solver
def test_problems_without_rows(kind):
    found = kind().solve(model([1.0, -1.0], [], [], [], integer=False))
    assert found.objective == pytest.approx(10.0)
    assert found.bound == pytest.approx(10.0)
    assert kind().solve(model([1.0, -1.0], [], [], [])).values == pytest.approx([10.0, 0.0])


@each_solver
def test_a_time_limit_returns_what_is_proved(kind):
    problem = market_split()
    found = kind().solve(problem, seconds=0.5)
    assert found.status is Status.STOPPED
    assert found.seconds < 30.0
    assert found.bound is None or found.bound < 1.0
    if found.values is not None:
        assert found.objective > found.bound  # the bound is not the solution found
        assert problem.violation(found.values) < 1e-6
    assert repr(found).startswith("Solution(stopped, ")


@each_solver
def test_solving_leaves_the_model_alone_and_prints_nothing(kind, capfd):
    problem = market_split(2, 8)
    before = problem.rows.copy()
    first, second = kind().solve(problem), kind().solve(problem)
    assert first.objective == second.objective
    assert (abs(problem.rows - before)).max() == 0.0
    out, err = capfd.readouterr()
    assert out + err == ""


@each_solver
def test_problems_side_by_side(kind):
    problems = [market_split(2, 6 + k) for k in range(6)]
    alone = [kind().solve(problem).objective for problem in problems]
    with ThreadPoolExecutor(3) as pool:
        together = [found.objective for found in pool.map(kind().solve, problems)]
    assert together == pytest.approx(alone)


@pytest.mark.parametrize("kind", [needs(SCIP), needs(HiGHS)])
def test_other_threads_run_while_one_solves(kind):
    ticks, done = 0, threading.Event()

    def solve():
        kind().solve(market_split(), seconds=1.0)
        done.set()

    worker = threading.Thread(target=solve)
    worker.start()
    while not done.wait(0.01):
        ticks += 1
    worker.join()
    assert ticks > 20


@pytest.mark.parametrize("kind", [needs(HiGHS)])
def test_the_number_of_threads_may_change_between_problems(kind):
    problem = market_split(2, 8)
    values = [kind(threads=threads).solve(problem).objective for threads in (1, 2, 3, 1)]
    assert values == pytest.approx([values[0]] * 4)


def test_another_seed_is_another_search_with_the_same_answer():
    pytest.importorskip("pyscipopt")
    problem = market_split(2, 10)
    assert SCIP(seed=1).solve(problem).objective == pytest.approx(SCIP(seed=2).solve(problem).objective)


@pytest.mark.parametrize("kind", PACKAGES)
def test_a_missing_package_says_what_to_install(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, PACKAGES[kind], None)
    with pytest.raises(MissingPackage, match=f"package {PACKAGES[kind]} .*pip install {PACKAGES[kind]}"):
        kind().solve(market_split(2, 3))


@pytest.mark.parametrize("kind", PACKAGES)
def test_options_are_checked(kind):
    for threads in (0, 1.5, True):
        with pytest.raises(OptionError, match=r"threads is .*; a solver takes a whole number of at least 1"):
            kind(threads=threads)
    with pytest.raises(OptionError, match="feasibility must lie between"):
        kind(feasibility=0.1)
    for seconds in (0.0, -1.0, float("nan")):
        with pytest.raises(OptionError, match=r"seconds is .*; a solver takes a positive number"):
            kind().solve(market_split(2, 3), seconds=seconds)
    assert kind() == kind()


def test_a_seed_outside_its_range_is_refused():
    with pytest.raises(OptionError, match="seed must lie between"):
        SCIP(seed=-1)


def test_gurobi_says_that_its_licence_is_too_small():
    pytest.importorskip("gurobipy")
    with pytest.raises(SolverError, match="2,100 columns and 1 rows; install a full licence, or use HiGHS or SCIP"):
        Gurobi().solve(model(np.ones(2100), [np.ones(2100)], [0.0], [5.0]))


def test_failures_become_one_line():
    with pytest.raises(SolverError, match=r"^SCIP failed: two lines; try another solver"), failures("SCIP"):
        raise ValueError("two\nlines")  # noqa: TRY003, EM101
    with pytest.raises(OptionError), failures("SCIP"):
        raise OptionError


def test_any_multipliers_prove_a_bound():
    rng = np.random.default_rng(0)
    for _ in range(200):
        rows, columns = rng.integers(1, 6, 2)
        problem = model(
            rng.normal(size=columns),
            rng.normal(size=(rows, columns)),
            np.where(rng.random(rows) < 0.5, -np.inf, -5.0),
            np.where(rng.random(rows) < 0.3, np.inf, 1.0),
            lower=-2.0,
            integer=False,
            maximize=bool(rng.random() < 0.5),
        )
        points = rng.uniform(-2.0, 10.0, (300, columns))
        values = [problem.objective @ point for point in points if problem.violation(point) == 0.0]
        bound = linear_bound(problem, rng.normal(size=rows), None)
        assert np.isfinite(bound)
        assert all(value <= bound if problem.maximize else value >= bound for value in values)


def test_without_column_bounds_the_solver_is_believed():
    problem = model([1.0], [[1.0]], [-np.inf], [1.0], upper=np.inf, integer=False)
    assert linear_bound(problem, np.array([0.5]), None) == np.inf
    assert linear_bound(problem, np.array([0.5]), 1.0) == 1.0
    assert linear_bound(problem, np.zeros(0), None) == np.inf


def test_bounds_are_not_inside_of_solutions():
    up, down = (model([1.0], [], [], [], maximize=maximize) for maximize in (True, False))
    assert outward(up, 1.0, 1.1) == 1.1
    assert outward(up, 1.0, 0.9) == 1.0
    assert outward(down, 1.0, 0.9) == 0.9
    assert outward(up, np.inf, 0.9) is None
    assert outward(up, 1.0, None) == 1.0


def test_solutions_read_well():
    assert repr(Solution(Status.INFEASIBLE)) == "Solution(infeasible, nothing found, nothing proved, 0.00 s)"
    assert repr(Solution(Status.OPTIMAL, 1.0, 1.5, None, 0.25)) == "Solution(optimal, found 1, proved 1.5, 0.25 s)"


def test_imports_stay_light():
    code = "import sys, tessella.solvers, tessella.formulation; print([n for n in ('scipy', 'pyscipopt', 'highspy', 'gurobipy') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
