"""Vertices of cells and the primal simplex method: against SciPy's linear programs, and against vertices computed anew."""

import numpy as np
import pytest
from scipy.optimize import linprog

from tessella.cells.primal import raise_row
from tessella.cells.state import FEASIBLE, INFEASIBLE, UNCLEAR, Space
from tessella.cells.vertex import POINTS, Primal, keep, move_to_best, refresh
from tessella.numerics import EDGE, GOAL, MARGIN

NODE = 1  # of two: the first is never touched


class Cell:
    """A random box of inputs, in these inputs or in a frame of few rows, cut by rows around a point inside."""

    def __init__(self, seed, dimensions, inputs, rows):
        rng = np.random.default_rng(seed)
        in_inputs = dimensions == inputs
        self.space = Space.of(rng.standard_normal((dimensions, inputs)), in_inputs=in_inputs)
        self.inside = self.space.frame @ rng.uniform(-0.5, 0.5, inputs)
        tight = min(dimensions, inputs, rows + 2) + 1
        self.primal = Primal.of(self.space, nodes=2, rows=rows + 2, most_tight=tight, widest=1, ring=16)
        assert refresh(self.primal, NODE, 0)
        self.count = 0
        for _ in range(rows):
            assert self.ask(rng.standard_normal(dimensions), through=self.inside, above=0.05) == FEASIBLE
            self.count += 1

    def put(self, normal, constant):
        row, size = self.primal.rows[NODE, self.count], np.abs(normal).sum() + abs(constant)
        row[: len(normal)], row[len(normal)] = normal / size, constant / size

    def ask(self, normal, *, through, above, goal=GOAL):
        """Whether a row that is so much above zero at a point can be positive."""
        self.put(normal, above - normal @ through)
        return raise_row(self.primal, NODE, self.count, goal, False)

    @property
    def place(self):
        return self.primal.vertices.places[NODE]

    @property
    def rows(self):
        return self.primal.rows[NODE, : self.count + 1, : self.space.dimensions + 1]

    def most(self):
        """How large the row that is asked about can be where the others are at least the margin; by SciPy."""
        rows = self.rows
        normals, constants = rows[:, :-1] @ self.space.frame, rows[:, -1]
        limits = constants[:-1] - MARGIN
        found = linprog(-normals[-1], A_ub=-normals[:-1], b_ub=limits, bounds=(-EDGE, EDGE))
        assert found.status == 0
        return constants[-1] - found.fun

    def holds(self):
        """Whether the vertex is in the cell, inputs give it, and its basis belongs to it."""
        vertices, rows, frame = self.primal.vertices, self.rows[:-1], self.space.frame
        k = vertices.size[NODE]
        inputs = EDGE * vertices.sides[NODE].astype(float)
        inputs[vertices.basic[NODE, :k]] = vertices.values[NODE, :k]
        values = rows[:, :-1] @ self.place + rows[:, -1]
        assert values.min(initial=1.0) >= 0.5 * MARGIN
        assert np.abs(inputs).max() < 1.0
        assert frame @ inputs == pytest.approx(self.place, abs=1e-9)
        assert values[vertices.tight[NODE, :k]] == pytest.approx(MARGIN, abs=1e-10)
        matrix = (rows[:, :-1] @ frame)[np.ix_(vertices.tight[NODE, :k], vertices.basic[NODE, :k])]
        assert vertices.inverse[NODE, :k, :k] @ matrix == pytest.approx(np.eye(k), abs=1e-7)


SIZES = [(2, 2, 3), (5, 5, 8), (8, 8, 4), (1, 9, 2), (3, 10, 6), (7, 20, 12), (4, 131, 6), (12, 300, 20)]


@pytest.mark.parametrize(("dimensions", "inputs", "rows"), SIZES)
def test_answers_are_those_of_a_linear_program(dimensions, inputs, rows):
    for seed in range(4):
        cell = Cell(seed, dimensions, inputs, rows)
        rng = np.random.default_rng(100 + seed)
        for _ in range(12):
            above = rng.choice([-1.0, -0.3, -0.1, -0.01, 0.02])
            found = cell.ask(rng.standard_normal(dimensions), through=cell.inside, above=above)
            assert found != UNCLEAR
            assert (found == FEASIBLE) == (cell.most() > 0.0)
            cell.holds()


@pytest.mark.parametrize(("dimensions", "inputs", "rows"), SIZES)
def test_a_proof_adds_up_to_something_negative(dimensions, inputs, rows):
    cell = Cell(3, dimensions, inputs, rows)
    rng = np.random.default_rng(0)
    while cell.ask(rng.standard_normal(dimensions), through=cell.inside, above=-3.0) != INFEASIBLE:
        pass
    proof = cell.primal.proof
    assert proof.rows[0] == cell.count
    assert proof.shares[0] == 1.0
    assert (proof.shares[: proof.size] >= 0.0).all()
    total = proof.shares[: proof.size] @ cell.rows[proof.rows[: proof.size]]
    assert total[-1] + np.abs(total[:-1] @ cell.space.frame).sum() < 0.0


@pytest.mark.parametrize(("dimensions", "inputs", "rows"), SIZES)
def test_a_row_rises_to_its_largest_value(dimensions, inputs, rows):
    """With a goal just below what there is, the method has to go to the end."""
    cell = Cell(5, dimensions, inputs, rows)
    normal = np.random.default_rng(1).standard_normal(dimensions)
    cell.put(normal, -normal @ cell.inside)
    most = cell.most()
    assert cell.ask(normal, through=cell.inside, above=0.0, goal=most - 1e-9) == FEASIBLE
    assert cell.rows[-1, :-1] @ cell.place + cell.rows[-1, -1] >= 0.9 * (most - 1e-9)


def test_vertices_that_are_kept_are_found_again():
    cell = Cell(2, 6, 30, 8)
    points, vertices, rng = cell.primal.points, cell.primal.vertices, np.random.default_rng(4)
    normal, places = rng.standard_normal(6), []
    for _ in range(5):
        assert cell.ask(rng.standard_normal(6), through=cell.inside, above=0.001) == FEASIBLE
        keep(cell.primal, NODE)
        places.append(cell.place.copy())
    assert points.known[NODE] == 5
    assert pytest.approx(np.array(places)) == points.places[NODE, :, :5].T
    values = np.zeros(POINTS)
    values[:5] = np.array(places) @ normal
    for sign in (1.0, -1.0):
        best = int((sign * values[:5]).argmax())
        assert move_to_best(cell.primal, NODE, cell.count, -np.inf, sign, values)
        assert cell.place == pytest.approx(places[best], abs=1e-9)
        cell.holds()
    before = vertices.places[NODE].copy()
    assert move_to_best(cell.primal, NODE, cell.count, 1e9, 1.0, values)  # where it is, is better
    assert (vertices.places[NODE] == before).all()


def test_old_points_give_way_and_lost_bases_are_not_used():
    cell = Cell(2, 3, 3, 2)
    points = cell.primal.points
    for _ in range(POINTS + 7):
        keep(cell.primal, NODE)
    assert points.known[NODE] == POINTS
    assert points.replaced[NODE] == 7
    assert len(points.owners) - POINTS == 16  # the ring
    values = np.zeros(POINTS)
    values[10] = 1.0  # its basis is gone
    before = cell.place.copy()
    points.tight[:16], points.basic[:16] = 99, 99  # would be out of range
    values[[i for i in range(POINTS) if points.names[NODE, i] > points.last_name - 16]] = -1.0
    assert move_to_best(cell.primal, NODE, cell.count, 0.0, 1.0, values)
    assert (cell.place == before).all()
