"""Questions of cells with many inputs: by mixtures of tips, by the simplex method over all inputs, and by both after cuts; against linear programs solved by SciPy."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog

from tessella.cells import dual
from tessella.cells.maximise import maximise
from tessella.cells.mixtures import mix
from tessella.cells.question import Question, ask, centre, stand
from tessella.cells.state import FEASIBLE, INFEASIBLE, UNCLEAR, Cell, Layers, Space
from tessella.numerics import MARGIN, SLACK
from tessella.partition.tree import Scaled


class Asked:
    """Rows around a point of a random zonotope, and what is needed to ask about it."""

    def __init__(self, rng, dimensions, inputs, rows, *, mixtures=True):
        first = rng.standard_normal((dimensions, inputs))
        space = Space.of(first, in_inputs=False)
        self.frame = space.frame
        self.middle = self.frame @ rng.uniform(-0.5, 0.5, inputs)
        self.normals = rng.standard_normal((rows, dimensions))
        self.constants = 0.02 * rng.random(rows) + 1e-6 - self.normals @ self.middle
        sizes = np.abs(self.normals).sum(axis=1) + np.abs(self.constants)
        self.normals, self.constants = self.normals / sizes[:, None], self.constants / sizes
        rectified = np.ones(dimensions, dtype=bool)
        scaled = Scaled(
            (first,), (np.zeros(dimensions),), (rectified,), (np.zeros(dimensions),), np.zeros((0, inputs)), np.zeros(0), (None,)
        )
        self.cell = Cell.of(space, Layers.of(scaled), rows=rows + 16, states=3)
        self.question = Question.of(self.cell, units=dimensions, sets=4, mixtures=mixtures)
        self.cell.codes[:rows] = -1 - np.arange(rows)
        for row in range(rows):
            self._put(row, self.normals[row], self.constants[row])
        self.renew()

    def _put(self, row, normal, constant):
        p = len(normal)
        self.cell.rows[row, :p], self.cell.rows[row, p] = normal, constant
        self.cell.rows[row, p + 1] = normal @ self.cell.space.gram @ normal
        stand(self.question, row)

    def renew(self):
        """Forget mixtures; the middle is that which the cell was made around."""
        return centre(self.question, self.middle[None, :].copy(), 1, len(self.normals))

    def ask(self, how, normal, constant, *, deep=True):
        """Whether the row is positive in the cell."""
        at, question = len(self.normals), self.question
        self._put(at, normal, constant)
        question.depths[at] = normal @ question.middle + constant
        self.cell.proof.size = 0
        if how == "mixtures":
            return mix(self.cell, question.outside, question.inside, at, deep, False)
        if how == "inputs":
            return maximise(self.cell, question.inside, question.starts, at, deep, 0, 0)
        return ask(question, at, deep, 0, 0)

    @property
    def proof(self):
        return self.cell.proof.rows[: self.cell.proof.size]

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
    """Rows whose maximum in the cell is about zero: a little above it, a little below it, and far from it; and that maximum."""
    for _ in range(number):
        normal = rng.standard_normal(len(cell.frame))
        normal /= np.abs(normal).sum()
        beyond = rng.choice([1e-2, 1e-4, -1e-4, -1e-2, 1e-6, -1e-6])
        yield normal, -cell.most(normal, 0.0) + beyond, beyond


@cache
def tasks(dimensions, inputs, rows):
    """Seeds of cells with goals for each, solved once for all ways to ask."""
    found = []
    for number in range(4):
        rng = np.random.default_rng([dimensions, rows, number])
        found.append((number, list(goals(rng, Asked(rng, dimensions, inputs, rows), 12))))
    return found


WAYS = ["mixtures", "inputs", "all"]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize(
    ("dimensions", "inputs", "rows"),
    [(1, 40, 1), (2, 50, 3), (4, 130, 9), (9, 200, 20), (15, 300, 22), (20, 150, 30), (12, 200, 70)],
)
def test_agrees_with_scipy(how, dimensions, inputs, rows):
    answers = []
    for number, asked in tasks(dimensions, inputs, rows):
        cell = Asked(np.random.default_rng([dimensions, rows, number]), dimensions, inputs, rows)
        for normal, constant, most in asked:
            status = cell.ask(how, normal, constant)
            answers.append(status)
            if status == FEASIBLE:
                assert most > 0.0
                for point in (cell.question.point, cell.question.deeper):
                    assert cell.holds(point)
                    assert normal @ point + constant > 0.0
            elif status == INFEASIBLE:
                assert most < 0.0
                proof = cell.proof
                alone = linprog(
                    -normal @ cell.frame, A_ub=-cell.normals[proof] @ cell.frame, b_ub=cell.constants[proof], bounds=(-1.0, 1.0)
                )
                assert constant - alone.fun < 0.0  # by these rows alone
    assert {FEASIBLE, INFEASIBLE} <= set(answers)  # what is very close may be left open


def easy(rng, cell, number):
    """Rows that are zero halfway between the middle and their maximum, or as far beyond it; and whether they are positive in the cell."""
    for normal, constant, beyond in goals(rng, cell, number):
        most, own = beyond - constant, normal @ cell.middle
        for share, answer in ((0.5, FEASIBLE), (2.0, INFEASIBLE)):
            yield normal, -(own + share * (most - own)), answer


@pytest.mark.parametrize(("dimensions", "inputs", "rows"), [(3, 130, 8), (9, 200, 20), (15, 784, 22)])
def test_what_is_not_close_is_decided(dimensions, inputs, rows):
    for number in range(4):
        rng = np.random.default_rng([5, dimensions, number])
        asked = list(easy(rng, Asked(rng, dimensions, inputs, rows), 12))
        for how in WAYS:
            cell = Asked(np.random.default_rng([5, dimensions, number]), dimensions, inputs, rows)
            for normal, constant, answer in asked:
                assert cell.ask(how, normal, constant) == answer, how


@pytest.mark.parametrize("how", WAYS)
def test_a_shallow_middle_is_moved(how):
    rng = np.random.default_rng(3)
    cell = Asked(rng, 5, 150, 8)
    cell.constants[0] -= cell.normals[0] @ cell.middle + cell.constants[0]  # the middle lies on a wall now
    cell._put(0, cell.normals[0], cell.constants[0])
    assert abs(cell.renew()) < 1e-15
    normal = cell.normals[0].copy()
    assert cell.most(normal, cell.constants[0]) > 1e-3
    assert cell.ask(how, normal, cell.constants[0], deep=False) == FEASIBLE
    assert cell.holds(cell.question.point)
    assert (cell.normals @ cell.question.middle + cell.constants).min() > 1e-6


def test_questions_of_one_cell_go_on_where_the_last_ended():
    rng = np.random.default_rng(4)
    cell = Asked(rng, 8, 200, 14)
    questions = [(normal, constant) for normal, constant, _ in easy(rng, cell, 20)]
    warm = [cell.ask("mixtures", *question) for question in questions]
    assert cell.question.inside.begun == len(cell.normals) + 1
    cold = []
    for question in questions:
        cell.question.inside.begun = 0
        cold.append(cell.ask("mixtures", *question))
    assert warm == cold
    assert cell.question.inside.found > 0


def test_a_centre_without_points_is_negative():
    cell = Asked(np.random.default_rng(1), 3, 40, 4)
    assert centre(cell.question, np.zeros((2, 3)), 0, 4) == -1.0


@pytest.mark.parametrize(("dimensions", "inputs", "rows"), [(1, 30, 2), (3, 60, 6), (8, 150, 16), (14, 200, 30), (20, 300, 24)])
def test_the_dual_simplex_finds_points_or_proofs(dimensions, inputs, rows):
    rng, answers = np.random.default_rng([7, dimensions]), []
    for _ in range(24):
        cell = Asked(rng, dimensions, inputs, rows)
        for normal, constant, most in goals(rng, cell, 2):
            cell._put(rows, normal, constant)
            cell.cell.bases.age[1] = -1
            status = dual.solve(cell.cell, 1, rows + 1, rows + 1)
            answers.append(status)
            if status == FEASIBLE:
                point = cell.cell.points[1]
                assert (cell.normals @ point + cell.constants).min() > 0.5 * MARGIN
                assert normal @ point + constant > 0.5 * MARGIN
                assert most > 0.0
            elif status == INFEASIBLE:
                assert most < 1e-8
                assert rows in cell.proof
            else:
                assert abs(most) < 1e-7
    assert {FEASIBLE, INFEASIBLE} <= set(answers)
    assert answers.count(UNCLEAR) <= len(answers) // 4


@pytest.mark.parametrize("equations", [1, 2, 4])
def test_the_dual_simplex_meets_equations(equations):
    rng = np.random.default_rng([8, equations])
    for _ in range(10):
        cell = Asked(rng, 9, 200, 8)
        for extra in range(equations):
            normal = rng.standard_normal(9)
            normal /= np.abs(normal).sum()
            cell._put(8 + extra, normal, -normal @ cell.middle)
        assert dual.solve(cell.cell, 1, 8 + equations, 8) == FEASIBLE
        point = cell.cell.points[1]
        assert (cell.normals @ point + cell.constants).min() > 0.5 * MARGIN
        assert np.abs(cell.cell.rows[8 : 8 + equations, :9] @ point + cell.cell.rows[8 : 8 + equations, 9]).max() < MARGIN
