"""Linear programs over a box against a general solver."""

import numpy as np
import pytest
from scipy.optimize import linprog

from tessella.kernel.program import Program


def random_program(rng, number):
    """Feasible or not, degenerate or not, with fixed variables and equations among them."""
    columns, rows = int(rng.integers(1, 30)), int(rng.integers(1, 20))
    matrix = rng.standard_normal((rows, columns))
    if number % 3 == 0:
        matrix = np.round(matrix)
    lower, upper = -rng.random(columns), rng.random(columns)
    if number % 4 == 0:
        upper[rng.random(columns) < 0.3] = 0.0
    point = rng.uniform(lower, upper) if number % 5 else rng.standard_normal(columns)
    values = matrix @ point
    row_lower = values - rng.random(rows) * (rng.random(rows) < 0.7)
    row_upper = values + rng.random(rows) * (rng.random(rows) < 0.7)
    objective = rng.standard_normal(columns) * (rng.random(columns) < (0.2 if number % 7 == 0 else 1.0))
    return matrix, objective, lower, upper, row_lower, row_upper


def reference(matrix, objective, lower, upper, row_lower, row_upper):
    found = linprog(
        -objective,
        A_ub=np.vstack([matrix, -matrix]),
        b_ub=np.concatenate([row_upper, -row_lower]),
        bounds=list(zip(lower, upper, strict=True)),
        method="highs",
    )
    return -found.fun if found.status == 0 else -np.inf


@pytest.mark.parametrize("block", range(10))
def test_optimum_equals_a_general_solvers(block):
    rng = np.random.default_rng(block)
    for number in range(60):
        problem = random_program(rng, number)
        found = Program(problem[0]).maximise(*problem[1:])
        assert found.bound == pytest.approx(reference(*problem), abs=1e-6)
        if np.isfinite(found.bound):
            assert found.optimal
            matrix, _, lower, upper, row_lower, row_upper = problem
            assert (found.x >= lower - 1e-7).all()
            assert (found.x <= upper + 1e-7).all()
            assert (matrix @ found.x >= row_lower - 1e-6).all()
            assert (matrix @ found.x <= row_upper + 1e-6).all()


def test_any_old_basis_is_a_valid_start():
    rng = np.random.default_rng(1)
    matrix, objective, lower, upper, row_lower, row_upper = random_program(rng, 1)
    program = Program(matrix)
    basis = program.maximise(objective, lower, upper, row_lower, row_upper).basis
    for _ in range(50):
        other = rng.standard_normal(len(objective))
        tightened = upper - rng.random(len(upper)) * (upper - lower) * 0.3
        found = program.maximise(other, lower, tightened, row_lower, row_upper, basis)
        assert found.bound == pytest.approx(reference(matrix, other, lower, tightened, row_lower, row_upper), abs=1e-6)
        basis = found.basis


def test_a_cutoff_stops_early_with_a_proved_bound():
    rng = np.random.default_rng(2)
    for number in range(1, 200, 2):
        problem = random_program(rng, number)
        best = reference(*problem)
        if np.isfinite(best):
            found = Program(problem[0]).maximise(*problem[1:], cutoff=best + 0.1)
            assert found.pruned
            assert best - 1e-7 <= found.bound <= best + 0.1


def test_symmetric_and_zero_objectives_do_not_cycle():
    matrix = np.kron(np.eye(4), np.ones((1, 20)))
    ones = np.ones(80)
    for objective in (np.zeros(80), ones, np.repeat([1.0, -1.0, 1.0, -1.0], 20)):
        found = Program(matrix).maximise(objective, -ones, ones, -np.ones(4), np.zeros(4))
        assert found.optimal
        assert found.bound == pytest.approx(reference(matrix, objective, -ones, ones, -np.ones(4), np.zeros(4)), abs=1e-6)


def test_long_solves_end_at_the_optimum():
    """Hundreds of iterations on a relaxation of 60 ReLUs: ties are broken without spoiling the bound."""
    from tessella import Box, Network
    from tessella.tightening import tighten
    from tessella.tightening.relaxation import relax

    rng = np.random.default_rng(0)
    layers = [(rng.standard_normal((n, m)) * np.sqrt(2 / m), 0.1 * rng.standard_normal(n)) for m, n in ((80, 60), (60, 5))]
    network, box = Network.from_arrays(layers, relu_output=True), Box.cube(0, 1, 80)
    bounds = tighten(network, box, method="linear")
    relaxation = relax(network, box, [(bounds.lower[0], bounds.upper[0])])
    objective = relaxation.objective(0, 1.0)[0]
    ones = np.ones(len(objective))
    found = Program(relaxation.matrix).maximise(objective, 0 * ones, ones, relaxation.row_lower, relaxation.row_upper)
    expected = reference(relaxation.matrix, objective, 0 * ones, ones, relaxation.row_lower, relaxation.row_upper)
    assert found.optimal
    assert found.bound == pytest.approx(expected, rel=1e-7)
