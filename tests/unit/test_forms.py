"""Linear programs over cells, in tableaus and by bases: against SciPy and numpy."""

import numpy as np
import pytest
from scipy.optimize import linprog

from tessella.cells.forms import copy, solver_of
from tessella.cells.state import FEASIBLE, INFEASIBLE, UNCLEAR, Cell, Layers, Space
from tessella.numerics import CLOSE, MARGIN

SHAPES = [(True, 1, 3, 6), (True, 3, 5, 14), (True, 12, 9, 20), (False, 90, 3, 8), (False, 70, 9, 16), (False, 60, 20, 24)]


class Case:
    """A cell of random rows around a point, and room for equations."""

    def __init__(self, rng, inputs, first, rows, *, in_inputs):
        self.space = Space.of(rng.standard_normal((first, inputs)), in_inputs=in_inputs)
        layers = Layers.empty().with_fields(width=np.array([first]), unit_of=np.arange(rows))
        self.rows, self.cell = rows, Cell.of(self.space, layers, rows=rows + 4, states=6)
        self.anchor = self.space.frame @ rng.uniform(-0.5, 0.5, inputs)
        self.solve, self.rng = solver_of(self.space), rng

    def put(self, at, *, depth):
        """A row that is ``depth`` of its length at the anchor."""
        p = self.space.dimensions
        normal = self.rng.standard_normal(p)
        size = np.linalg.norm(normal @ self.space.frame)
        constant = depth * size - normal @ self.anchor
        row = np.array([*normal, constant]) / (np.abs(normal).sum() + abs(constant))
        self.cell.rows[at] = [*row, np.sum((row[:p] @ self.space.frame) ** 2), 1e-15]

    def margin(self, count, equal):
        """The most by which a point can be inside all rows, on the equations, and the box; by SciPy, over all inputs."""
        p, frame = self.space.dimensions, self.space.frame
        rows = self.cell.rows[:count, : p + 1]
        normals, constants = rows[:, :p] @ frame, rows[:, p]
        n = frame.shape[1]
        box = np.vstack([np.eye(n), -np.eye(n)])
        upper = np.vstack([np.column_stack([-normals[:equal], np.ones(equal)]), np.column_stack([box, np.ones(2 * n)])])
        found = linprog(
            [*np.zeros(n), -1.0],
            A_ub=upper,
            b_ub=[*constants[:equal], *np.ones(2 * n)],
            A_eq=np.column_stack([normals[equal:], np.zeros(count - equal)]) if count > equal else None,
            b_eq=-constants[equal:] if count > equal else None,
            bounds=(None, None),
        )
        return -found.fun if found.status == 0 else -np.inf

    def check(self, s, count, equal):
        """Solve and compare; the status."""
        status, margin = self.solve(self.cell, s, count, equal), self.margin(count, equal)
        p, rows = self.space.dimensions, self.cell.rows
        if status == FEASIBLE:
            assert margin > 0.5 * MARGIN
            at = rows[:count, :p] @ self.cell.points[s] + rows[:count, p]
            assert (at[:equal] >= MARGIN - 1.1 * CLOSE).all()
            assert (np.abs(at[equal:]) <= 1.1 * CLOSE).all()
            held = linprog(np.zeros(self.space.inputs), A_eq=self.space.frame, b_eq=self.cell.points[s], bounds=(-1.0, 1.0))
            assert held.status == 0
        elif status == INFEASIBLE:
            assert margin < -1e-9
            self.check_proof(equal)
        else:
            assert abs(margin) < 1e-6 or count > equal
        return status

    def check_proof(self, equal):
        """Rows times shares are negative on the box, and shares of inequalities are not."""
        proof, p = self.cell.proof, self.space.dimensions
        members, shares = proof.rows[: proof.size], proof.shares[: proof.size]
        members, shares = members[members >= 0], shares[members >= 0]
        assert (shares[members < equal] >= 0.0).all()
        total = shares @ self.cell.rows[members, : p + 1]
        assert total[p] + np.abs(total[:p] @ self.space.frame).sum() < 0.0
        parts = {int(row) - equal for row, share in zip(members, shares, strict=True) if row >= equal and abs(share) > 1e-13}
        assert proof.equations == sum(1 << part for part in parts)


@pytest.mark.parametrize(("in_inputs", "inputs", "first", "rows"), SHAPES)
def test_agrees_with_scipy(in_inputs, inputs, first, rows):
    rng, found = np.random.default_rng([inputs, rows]), []
    for _ in range(6 if in_inputs else 2):
        case = Case(rng, inputs, first, rows, in_inputs=in_inputs)
        assert case.check(5, 0, 0) == FEASIBLE
        copy(case.cell, 5, 0)
        for r in range(rows):  # rows come one by one; what is empty is tried again with other rows
            for depth in (rng.uniform(-1.0, 0.5), rng.uniform(-0.2, 1.0), 0.5):
                case.put(r, depth=depth)
                copy(case.cell, 0, 1)
                found.append(case.check(1, r + 1, r + 1))
                if found[-1] == FEASIBLE:
                    copy(case.cell, 1, 0)
                    break
            else:
                break
            for e in range(2):  # two equations on top
                case.put(r + 1 + e, depth=rng.uniform(-0.5, 0.5))
                copy(case.cell, 0 if e == 0 else 2, 2)
                found.append(case.check(2, r + 2 + e, r + 1))
                if found[-1] != FEASIBLE:
                    break
        assert case.cell.tally.tests >= rows
        assert case.cell.tally.iterations > 0
    assert found.count(UNCLEAR) <= 0.05 * len(found)
    assert {FEASIBLE, INFEASIBLE} <= set(found)


@pytest.mark.parametrize("in_inputs", [True, False])
def test_thin_cells_are_unclear(in_inputs):
    """Two rows that leave less room than margins ask for, but do not contradict each other by more than that either."""
    rng = np.random.default_rng(3)
    case = Case(rng, 40, 3, 4, in_inputs=in_inputs)
    case.put(0, depth=0.0)
    p = case.space.dimensions
    for gap, answers in ((3e-9, {FEASIBLE}), (1e-10, {UNCLEAR}), (-1e-10, {UNCLEAR}), (-1e-8, {INFEASIBLE})):
        case.cell.rows[1] = case.cell.rows[0]
        case.cell.rows[1, : p + 1] *= -1.0
        case.cell.rows[1, p] += gap
        for held in (case.cell.bases.age, case.cell.tableaus.age):
            held[:] = -1
        assert case.solve(case.cell, 0, 2, 2) in answers


@pytest.mark.parametrize("in_inputs", [True, False])
def test_equations_that_depend_on_each_other_are_not_solved(in_inputs):
    rng = np.random.default_rng(4)
    case = Case(rng, 40, 3, 4, in_inputs=in_inputs)
    case.put(0, depth=0.1)
    case.put(1, depth=0.2)
    case.cell.rows[2] = case.cell.rows[1]
    assert case.solve(case.cell, 0, 2, 1) == FEASIBLE
    assert case.solve(case.cell, 0, 3, 1) == UNCLEAR


@pytest.mark.parametrize(("in_inputs", "inputs", "first"), [(True, 6, 9), (False, 90, 7)])
def test_states_are_computed_anew(in_inputs, inputs, first):
    """A state that has seen too many pivots ends at the same point as one that has not."""
    case = Case(np.random.default_rng(5), inputs, first, 12, in_inputs=in_inputs)
    case.solve(case.cell, 0, 0, 0)
    for r in range(12):
        case.put(r, depth=0.02)
        copy(case.cell, 0, 1)
        case.cell.bases.age[1:2] = case.cell.tableaus.age[1:2] = 1000
        status, old = case.check(1, r + 1, r + 1), case.solve(case.cell, 0, r + 1, r + 1)
        assert status == old
        assert case.cell.points[1] == pytest.approx(case.cell.points[0], abs=1e-9)
