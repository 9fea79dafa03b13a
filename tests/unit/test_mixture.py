"""Questions of cells, answered by mixtures of tips: against a linear program over all inputs, solved by SciPy."""

import numpy as np
import pytest
from scipy.optimize import linprog

from tessella.cells.old.cuts import MOST_CUTS
from tessella.cells.old.mixtures import MIXED, MOST_TIPS, SLACK, TIPS, mix
from tessella.cells.old.rows import FEASIBLE, INFEASIBLE


class Cell:
    """Rows around a point of a random zonotope, and what is needed to ask about it."""

    def __init__(self, rng, dimensions, inputs, rows):
        frame = rng.standard_normal((dimensions, inputs))
        self.frame = frame / np.abs(frame).sum(axis=1, keepdims=True)
        middle = self.frame @ rng.uniform(-0.5, 0.5, inputs)
        self.normals = rng.standard_normal((rows, dimensions))
        self.constants = 0.02 * rng.random(rows) + 1e-6 - self.normals @ middle
        sizes = np.abs(self.normals).sum(axis=1) + np.abs(self.constants)
        self.normals, self.constants = self.normals / sizes[:, None], self.constants / sizes
        self.rows = np.zeros((rows + 4, dimensions + 3))
        self.rows[:rows, :dimensions], self.rows[:rows, dimensions] = self.normals, self.constants
        self.walls = np.zeros((dimensions + 3, rows + 12))
        self.scratch = np.zeros((8, max(inputs, rows + 16, MOST_CUTS)))
        self.scratch[5, :dimensions] = middle
        self.scratch[6, :rows] = self.normals @ middle + self.constants
        self.counters = np.zeros(16, dtype=np.int64)
        self.tips = np.zeros((MOST_TIPS + 1, dimensions))
        self.faint = np.zeros((dimensions, MOST_TIPS), dtype=np.float32)
        self.kept = (np.zeros(MOST_TIPS, dtype=np.float32), np.zeros(rows + 4, dtype=np.int64), np.zeros((rows + 4, rows + 16)))
        self.picks, self.spots = np.zeros((2, rows + 4), dtype=np.int64), np.zeros((4, dimensions))
        self.middle = middle

    def ask(self, normal, constant, *, deep=True):
        """Whether the row is positive in the cell."""
        at, dimensions = len(self.normals), len(self.frame)
        self.rows[at, :dimensions], self.rows[at, dimensions] = normal, constant
        self.walls[:, : at + 1] = self.rows[: at + 1].T
        self.scratch[6, at] = normal @ self.scratch[5, :dimensions] + constant
        cuts, tight = np.zeros((dimensions + 1, MOST_CUTS)), np.full(dimensions, -1, dtype=np.int64)
        fixed = (self.frame, self.rows, self.walls, cuts, tight, self.tips, self.faint, *self.kept)
        return mix(at, deep, False, *fixed, self.picks, self.spots, self.scratch, self.counters)

    def most(self, normal, constant):
        """The same row's maximum, by SciPy; over all inputs."""
        found = linprog(-normal @ self.frame, A_ub=-self.normals @ self.frame, b_ub=self.constants, bounds=(-1.0, 1.0))
        assert found.status == 0
        return constant - found.fun

    def holds(self, point):
        """Whether a point lies in the cell, and inputs give it."""
        least = (self.normals @ point + self.constants).min()
        inputs = linprog(np.zeros(self.frame.shape[1]), A_eq=self.frame, b_eq=point, bounds=(-1.0, 1.0))
        return least >= 0.5 * SLACK and inputs.status == 0


def goals(rng, cell, number):
    """Rows whose maximum in the cell is about zero: a little above it, a little below it, and far from it."""
    for _ in range(number):
        normal = rng.standard_normal(len(cell.frame))
        normal /= np.abs(normal).sum()
        yield normal, -cell.most(normal, 0.0) + rng.choice([1e-2, 1e-4, -1e-4, -1e-2, 1e-6, -1e-6])


@pytest.mark.parametrize(
    ("dimensions", "inputs", "rows"),
    [(1, 40, 1), (2, 50, 3), (4, 130, 9), (9, 200, 20), (15, 300, 22), (20, 150, 30), (12, 200, 70)],
)
def test_agrees_with_scipy(dimensions, inputs, rows):
    rng, answers = np.random.default_rng([dimensions, rows]), []
    for _ in range(4):
        cell = Cell(rng, dimensions, inputs, rows)
        for normal, constant in goals(rng, cell, 12):
            most, status = cell.most(normal, constant), cell.ask(normal, constant)
            answers.append(status)
            if status == FEASIBLE:
                assert most > 0.0
                for point in cell.spots[1:3]:
                    assert cell.holds(point)
                    assert normal @ point + constant > 0.0
            elif status == INFEASIBLE:
                assert most < 0.0
                proof = cell.picks[0, : cell.picks[1, 0]]
                alone = linprog(
                    -normal @ cell.frame, A_ub=-cell.normals[proof] @ cell.frame, b_ub=cell.constants[proof], bounds=(-1.0, 1.0)
                )
                assert constant - alone.fun < 0.0  # by these rows alone
    assert {FEASIBLE, INFEASIBLE} <= set(answers)  # what is very close may be left open


def easy(rng, cell, number):
    """Rows that are zero halfway between the middle and their maximum, or as far beyond it; and whether they are positive in the cell."""
    for normal, _ in goals(rng, cell, number):
        most, own = cell.most(normal, 0.0), normal @ cell.middle
        for share, answer in ((0.5, FEASIBLE), (2.0, INFEASIBLE)):
            yield normal, -(own + share * (most - own)), answer


@pytest.mark.parametrize(("dimensions", "inputs", "rows"), [(3, 130, 8), (9, 200, 20), (15, 784, 22)])
def test_what_is_not_close_is_decided(dimensions, inputs, rows):
    rng = np.random.default_rng([5, dimensions])
    for _ in range(4):
        cell = Cell(rng, dimensions, inputs, rows)
        for normal, constant, answer in easy(rng, cell, 12):
            assert cell.ask(normal, constant) == answer


def test_a_shallow_middle_is_moved():
    rng = np.random.default_rng(3)
    cell = Cell(rng, 5, 150, 8)
    shift = cell.normals[0] @ cell.middle + cell.constants[0]
    cell.constants[0] -= shift  # the middle lies on a wall now
    cell.rows[0, 5] -= shift
    cell.scratch[6, 0] = 0.0
    normal = cell.normals[0].copy()
    assert cell.most(normal, cell.constants[0]) > 1e-3
    assert cell.ask(normal, cell.constants[0], deep=False) == FEASIBLE
    assert cell.holds(cell.spots[1])
    assert (cell.normals @ cell.scratch[5, :5] + cell.constants).min() > 1e-6


def test_questions_of_one_cell_go_on_where_the_last_ended():
    rng = np.random.default_rng(4)
    cell = Cell(rng, 8, 200, 14)
    questions = [(normal, constant) for normal, constant, _ in easy(rng, cell, 20)]
    warm = [cell.ask(*question) for question in questions]
    assert cell.counters[MIXED] == len(cell.normals) + 1
    cold = []
    for question in questions:
        cell.counters[MIXED] = 0
        cold.append(cell.ask(*question))
    assert warm == cold
    assert cell.counters[TIPS] > 0
