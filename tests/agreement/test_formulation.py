"""The formulation says what the network does: against hulls by hand, forward passes, brute force, and three solvers' readers."""

import importlib.util
import itertools
import warnings

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

from tessella.domain import Box, Polytope
from tessella.formulation import Model, formulate, write_model
from tessella.network import Layer, Network
from tessella.preactivation import Method, PreactivationBounds
from tessella.solvers import SCIP, Gurobi, HiGHS, Status

PACKAGES = {SCIP: "pyscipopt", HiGHS: "highspy", Gurobi: "gurobipy"}


def needs(kind):
    found = importlib.util.find_spec(PACKAGES[kind]) is not None
    return pytest.param(kind, marks=pytest.mark.skipif(not found, reason=f"{PACKAGES[kind]} is not installed"))


each_solver = pytest.mark.parametrize("kind", [needs(kind) for kind in PACKAGES])


def intervals(network, box, slack=1e-9):
    """Interval arithmetic, a little outward."""
    low, high, lower, upper = box.lower, box.upper, [], []
    for layer in network.layers:
        weight = layer.dense()
        plus, minus = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
        lower.append(plus @ low + minus @ high + layer.bias - slack)
        upper.append(plus @ high + minus @ low + layer.bias + slack)
        low, high = layer.activate(lower[-1]), layer.activate(upper[-1])
    return PreactivationBounds(tuple(lower), tuple(upper), Method.INTERVAL)


def random_network(rng, widths, inputs, *, linear=0.25, relu_output=True):
    """Random weights with zeros, biases that are often 0, sometimes large (stable units), and some linear units."""
    layers = []
    for number, units in enumerate(widths):
        weight = rng.normal(size=(units, inputs)) * (rng.random((units, inputs)) < 0.8)
        bias = rng.normal(size=units) * rng.choice([0.0, 0.3, 4.0], size=units, p=[0.4, 0.5, 0.1])
        mask = rng.random(units) >= linear
        if number == len(widths) - 1 and not relu_output:
            mask = np.zeros(units, dtype=bool)
        layers.append(Layer(csr_array(weight) if rng.random() < 0.3 else weight, bias, mask))
        inputs = units
    return Network(tuple(layers))


def random_domain(rng, dim):
    lower = rng.uniform(-1.0, 0.0, dim)
    upper = lower + rng.uniform(0.5, 2.0, dim) * (rng.random(dim) < 0.9)  # some inputs are fixed
    box = Box(lower, upper)
    if rng.random() < 0.5 or box.free_dim == 0:
        return box
    matrix = rng.normal(size=(2, dim))
    return Polytope(matrix, matrix @ (0.5 * (lower + upper)) + 0.3, box)


def extended(found, point):
    """The solution that a forward pass gives, filled in by the columns' names."""
    before = found.network.preactivations(point)
    values = np.full(len(found.model.names), np.nan)
    for column, name in enumerate(found.model.names):
        kind, *place = name.split("_")
        if place:
            g = before[int(place[0]) - 1][int(place[1])]
            values[column] = {"g": g, "h": max(g, 0.0), "hbar": max(-g, 0.0), "z": float(g > 0.0)}[kind]
        elif name != "f":
            values[column] = point[int(name[1:])]
    if found.positivity is not None:
        outputs = [before[layer][unit] for layer, unit in found.binaries]
        values[found.positivity] = min((g for g in outputs if g > 0.0), default=found.model.upper[found.positivity])
    return values


@pytest.mark.parametrize("seed", range(6))
def test_the_relaxation_of_a_unit_is_its_triangle(seed):
    pytest.importorskip("highspy")
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(1, 4))
    centre, reach = rng.normal(size=4), rng.uniform(0.1, 1.0, 4)
    box = Box(centre - reach, centre + reach)
    swing = float(np.abs(weight[0]) @ reach)
    net = Network.from_arrays([(weight, [-weight[0] @ centre + rng.uniform(-0.8, 0.8) * swing])], relu_output=True)
    tight = intervals(net, box, slack=0.0)
    most, least = float(tight.upper[0][0]), -float(tight.lower[0][0])
    corners = np.array([[-least, 0.0], [0.0, 0.0], [most, most]])
    loose = PreactivationBounds((2.0 * tight.lower[0],), (2.0 * tight.upper[0],), Method.INTERVAL)
    models = {name: formulate(net, box, bounds) for name, bounds in (("tight", tight), ("loose", loose))}
    across = np.array([-most, most + least])  # at a right angle to the triangle's long side
    for direction in [across, *rng.normal(size=(30, 2))]:
        support = {}
        for name, found in models.items():
            objective = np.zeros(len(found.model.names))
            objective[[found.layers[0].preactivation[0], found.layers[0].output[0]]] = direction
            support[name] = HiGHS().solve(found.model.with_objective(objective, maximize=True), relaxed=True)
        assert support["tight"].objective == pytest.approx(float((corners @ direction).max()), abs=1e-7)
        assert support["tight"].bound == pytest.approx(float((corners @ direction).max()), abs=1e-7)
        assert support["loose"].objective >= support["tight"].objective - 1e-7
        if direction is across:
            assert support["loose"].objective > support["tight"].objective + 0.1 * most * least


@pytest.mark.parametrize("seed", range(40))
def test_every_input_extends_to_a_solution(seed):
    rng = np.random.default_rng(seed)
    inputs = int(rng.integers(1, 6))
    net = random_network(rng, rng.integers(1, 8, int(rng.integers(1, 5))), inputs, relu_output=bool(rng.random() < 0.5))
    domain = random_domain(rng, inputs)
    bounds = intervals(net, domain.box)
    choices = {"positivity": bool(seed % 2), "outputs": bool(seed % 3)}
    found = formulate(net, domain, bounds, **choices)
    assert set(found.binaries) == {
        (number, int(unit))
        for number, layer in enumerate(net.layers)
        for unit in np.flatnonzero(layer.rectified & (bounds.lower[number] < 0.0) & (bounds.upper[number] > 0.0))
    }
    points = [point for point in domain.box.sample(60, rng) if domain.contains(point)]
    corners = [np.where(rng.random(inputs) < 0.5, domain.box.lower, domain.box.upper) for _ in range(10)]
    for point in [*points, *(corner for corner in corners if domain.contains(corner))]:
        values = extended(found, point)
        assert found.model.violation(values) < 1e-9
        assert np.array_equal(found.pattern(values), net.patterns(point))
        assert np.allclose(found.point(values), point)
        if choices["outputs"]:
            last = found.layers[-1].output
            assert np.allclose(np.where(last >= 0, values[last], 0.0), net(point))


def cells(net, domain):
    """All sign patterns, each with the inequalities of its closed cell and its affine map."""
    box, rows, limits = domain.box, np.zeros((0, net.input_dim)), np.zeros(0)
    if isinstance(domain, Polytope):
        rows, limits = domain.matrix, domain.offset
    for states in itertools.product([False, True], repeat=net.relus):
        pattern, matrix, offset = np.array(states, dtype=bool), np.eye(net.input_dim), np.zeros(net.input_dim)
        walls, ends, start = [rows], [limits], 0
        for layer in net.layers:
            matrix, offset = np.asarray(layer.weight @ matrix), np.asarray(layer.weight @ offset) + layer.bias
            active = pattern[start : start + layer.relus]
            sign = np.where(active, -1.0, 1.0)
            walls.append(sign[:, None] * matrix[layer.rectified])
            ends.append(-sign * offset[layer.rectified])
            passes = np.ones(layer.units)
            passes[layer.rectified] = active
            matrix, offset, start = passes[:, None] * matrix, passes * offset, start + layer.relus
        yield pattern, np.vstack(walls), np.concatenate(ends), (matrix, offset), list(zip(box.lower, box.upper, strict=True))


def highest_output(net, domain, unit):
    best = -np.inf
    for _, walls, ends, (matrix, offset), box in cells(net, domain):
        found = linprog(-matrix[unit], A_ub=walls, b_ub=ends, bounds=box, method="highs")
        if found.status == 0:
            best = max(best, offset[unit] - found.fun)
    return best


@pytest.mark.parametrize("seed", range(8))
def test_the_largest_output_is_that_of_brute_force(seed):
    rng = np.random.default_rng(100 + seed)
    widths = [[4], [3, 3], [2, 2, 2], [4, 3]][seed % 4]
    net = random_network(rng, [*widths, 2], 3, linear=0.2, relu_output=False)
    domain = random_domain(rng, 3)
    found = formulate(net, domain, intervals(net, domain.box), outputs=True, positivity=bool(seed % 2))
    objective = np.zeros(len(found.model.names))
    objective[found.layers[-1].output[1]] = 1.0
    expected = highest_output(net, domain, 1)
    for kind, package in PACKAGES.items():
        if importlib.util.find_spec(package) is None:
            continue
        solved = kind().solve(found.model.with_objective(objective, maximize=True))
        assert solved.status is Status.OPTIMAL
        assert solved.objective == pytest.approx(expected, abs=1e-6)
        assert solved.bound == pytest.approx(expected, abs=1e-6)
        assert net(found.point(solved.values))[1] == pytest.approx(expected, abs=1e-6)
        relaxed = kind().solve(found.model.with_objective(objective, maximize=True), relaxed=True)
        assert relaxed.bound >= solved.bound - 1e-6


@each_solver
@pytest.mark.parametrize(("seed", "slack"), [(1046, 1e-9), (9247, 1e-6), (9247, 1e-9), (5121, 1e-9), (5231, 1e-9)])
def test_problems_that_solvers_get_wrong_with_other_settings(kind, seed, slack):
    """With presolving (SCIP) or a tolerance of 1e-9 (SCIP, HiGHS) these were infeasible, suboptimal, or ended in an error."""
    rng = np.random.default_rng(seed)
    net = random_network(rng, [*rng.integers(2, 9, int(rng.integers(1, 4))), 2], 4, relu_output=False)
    domain = random_domain(rng, 4)
    found = formulate(net, domain, intervals(net, domain.box, slack=slack), outputs=True, positivity=False)
    objective = np.zeros(len(found.model.names))
    objective[found.layers[-1].output[0]] = 1.0
    for sign in (1.0, -1.0):
        seen = max(sign * net(point)[0] for point in domain.box.sample(500, 0) if domain.contains(point))
        for relaxed in (False, True):
            solved = kind().solve(found.model.with_objective(objective, maximize=sign > 0.0), relaxed=relaxed)
            assert solved.status is Status.OPTIMAL
            assert sign * solved.bound >= seen - 1e-9
            assert sign * solved.objective >= seen - 1e-6
            if not relaxed:
                assert net(found.point(solved.values))[0] == pytest.approx(solved.objective, abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_positive_solutions_are_the_patterns_that_exist(seed):
    pytest.importorskip("highspy")
    rng = np.random.default_rng(200 + seed)
    net = random_network(rng, [[3, 3], [2, 2, 2], [4, 2]][seed % 3], 2, linear=0.15)
    domain = Box(-1, 1, dim=2)
    bounds = intervals(net, domain)
    expected = set()
    for pattern, walls, ends, _, box in cells(net, domain):  # largest margin by which the active units are positive
        margin = np.concatenate([pattern.astype(float), np.zeros(len(ends) - len(pattern))])
        found = linprog(
            [0, 0, -1.0], A_ub=np.column_stack([walls, margin]), b_ub=ends, bounds=[*box, (None, 1.0)], method="highs"
        )
        if found.status == 0 and -found.fun > 1e-7:
            expected.add(tuple(pattern))
    for valid in (True, False):
        found = formulate(net, domain, bounds, valid_inequalities=valid)
        stable = set()
        for states in itertools.product([0.0, 1.0], repeat=len(found.binaries)):
            lower, upper = found.model.lower.copy(), found.model.upper.copy()
            if ((lower[found.binary_columns] > states) | (upper[found.binary_columns] < states)).any():
                continue
            lower[found.binary_columns] = upper[found.binary_columns] = states
            solved = HiGHS().solve(with_bounds(found.model, lower, upper))
            if solved.status is Status.OPTIMAL and solved.objective > 1e-7:
                stable.add(tuple(found.pattern(solved.values)))
        assert stable == expected


def with_bounds(model, lower, upper):
    return Model(
        model.names, lower, upper, model.integer, model.objective, model.rows, model.row_names, model.row_lower, model.row_upper,
        maximize=model.maximize,
    )  # fmt: skip


def read_scip(path):
    import pyscipopt

    problem = pyscipopt.Model()
    problem.hideOutput()
    problem.readProblem(str(path))
    names = {variable.name for variable in problem.getVars()}
    rows = {row.name: (problem.getLhs(row), problem.getRhs(row)) for row in problem.getConss()}
    problem.optimize()
    return names, rows, problem.getObjVal()


def read_highs(path):
    import highspy

    problem = highspy.Highs()
    problem.setOptionValue("output_flag", False)
    problem.setOptionValue("mip_rel_gap", 0.0)
    assert problem.readModel(str(path)) == highspy.HighsStatus.kOk
    lp = problem.getLp()
    names = set(lp.col_names_)
    rows = {name: (low, high) for name, low, high in zip(lp.row_names_, lp.row_lower_, lp.row_upper_, strict=True)}
    problem.run()
    return names, rows, problem.getInfo().objective_function_value


def read_gurobi(path):
    import gurobipy

    with gurobipy.Env(empty=True) as settings:
        settings.setParam("OutputFlag", 0)
        settings.setParam("MIPGap", 0.0)
        settings.start()
        with gurobipy.read(str(path), env=settings) as problem:
            names = {variable.VarName for variable in problem.getVars() if not variable.VarName.startswith("MPS_Rg")}
            rows = {row.ConstrName: None for row in problem.getConstrs()}
            problem.optimize()
            return names, rows, problem.ObjVal


READERS = {SCIP: read_scip, HiGHS: read_highs, Gurobi: read_gurobi}


@each_solver
@pytest.mark.parametrize("suffix", ["mps", "lp", "mps.gz", "lp.gz"])
def test_files_of_networks_are_read_back(kind, suffix, tmp_path):
    pytest.importorskip("highspy")
    rng = np.random.default_rng(7)
    net = random_network(rng, [6, 5, 4], 4, linear=0.2)
    domain = Polytope([[1.0, 1.0, -1.0, 0.5]], [1.0], Box(-1, 1, dim=4))
    model = formulate(net, domain, intervals(net, domain.box, slack=1e-6), outputs=True).model  # HiGHS drops 1e-9
    assert model.integer.any()
    write_model(model, tmp_path / f"a.{suffix}")
    names, rows, objective = READERS[kind](tmp_path / f"a.{suffix}")
    assert names == set(model.names)
    assert set(rows) == set(model.row_names)
    assert objective == pytest.approx(HiGHS().solve(model).objective, abs=1e-6)
    assert objective > 1e-3
    assert kind().solve(model).objective == pytest.approx(objective, abs=1e-6)


def awkward(maximize):
    """Every kind of bound and row, columns in no row, an empty row, numbers with all digits."""
    return Model(
        ("loose", "low", "high", "fixed", "whole", "switch", "off", "count", "alone", "nowhere"),
        [-np.inf, -1 / 3, -np.inf, -2.0, -3.0, 0.0, 0.0, 0.0, 0.0, -5.0],
        [np.inf, np.inf, -0.1, -2.0, -1.0, 1.0, 0.0, np.inf, 2 / 3, -4.0],
        [False, False, False, False, True, True, True, True, False, False],
        [1.0, -1 / 7, 1e-5, 1.0, 1.0, np.pi, 2.0, 0.25, 1.0, 0.0],
        csr_array(
            [
                [1.0, 1 / 3, 0, 0, 0, 1e-7, 0, 0, 0, 0],
                [0, 1.0, 1.0, 0, 0, 0, 1.0, 0, 0, 0],
                [0, 0, -1.0, 0, 1.0, 0, 0, 1.0, 0, 0],
                [0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                [0, 0, 1.0, 0, 0, 0, 0, 12345678.9, 0, 0],
                [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0, 0],
            ]
        ),
        ("equal", "ranged", "at_most", "nothing", "at_least", "loose"),
        [0.1, -4.0, -np.inf, -1.0, -1e3, -np.inf],
        [0.1, 5.0, 8.0, np.inf, np.inf, np.inf],
        maximize=maximize,
        name="awkward",
    )


@each_solver
@pytest.mark.parametrize("suffix", ["mps", "lp"])
@pytest.mark.parametrize("maximize", [True, False])
def test_awkward_files_are_read_back(kind, suffix, maximize, tmp_path):
    model = awkward(maximize)
    write_model(model, tmp_path / f"a.{suffix}")
    names, rows, objective = READERS[kind](tmp_path / f"a.{suffix}")
    expected = kind().solve(model)
    assert expected.status is Status.OPTIMAL
    assert objective == pytest.approx(expected.objective, abs=1e-6)
    assert names == set(model.names)
    ranged = {"ranged"} if suffix == "mps" else {"ranged.lower", "ranged.upper"}
    assert set(rows) - {"nothing"} == {"equal", "at_most", "at_least"} | ranged


@pytest.mark.parametrize("suffix", ["mps", "lp"])
def test_numbers_survive_to_the_last_digit(suffix, tmp_path):
    highspy = pytest.importorskip("highspy")
    rng = np.random.default_rng(1)
    net = random_network(rng, [9, 7], 5)
    box = Box(rng.uniform(-1, 0, 5), rng.uniform(0.1, 1, 5))
    model = formulate(net, box, intervals(net, box)).model
    write_model(model, tmp_path / f"a.{suffix}")
    problem = highspy.Highs()
    problem.setOptionValue("output_flag", False)
    problem.readModel(str(tmp_path / f"a.{suffix}"))
    lp = problem.getLp()
    matrix = lp.a_matrix_
    shape = (lp.num_col_, lp.num_row_) if matrix.format_ == highspy.MatrixFormat.kColwise else (lp.num_row_, lp.num_col_)
    read = csr_array((matrix.value_, matrix.index_, matrix.start_), shape=shape)
    read = read.T.tocsr() if shape == (lp.num_col_, lp.num_row_) else read
    columns = [model.names.index(name) for name in lp.col_names_]
    rows = [model.row_names.index(name) for name in lp.row_names_]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert (read != model.rows[rows][:, columns]).nnz == 0
    for found, written in ((lp.col_lower_, model.lower[columns]), (lp.col_upper_, model.upper[columns])):
        assert np.array_equal(found, written)
    for found, written in ((lp.row_lower_, model.row_lower[rows]), (lp.row_upper_, model.row_upper[rows])):
        assert np.array_equal(found, written)
