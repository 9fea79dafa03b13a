"""Points that show what exists in cells: compiled, against arithmetic of whole arrays and linear programs solved by SciPy."""

import numpy as np
import pytest
from scipy.optimize import linprog

from tessella.cells.question import Question, stand
from tessella.cells.state import Cell, Layers, Space
from tessella.counting.points import Points, add, deepen, inherit, measure, pull, spread, throw
from tessella.kernel.functions import apart
from tessella.numerics import FAR, SEEN, SHALLOW, SLACK
from tessella.partition.tree import Scaled


@apart
def pulled(points: Points, b: int, r: int) -> float:
    """Pull the pool into the cell of the first r rows, as walks do; the least of these at its middle."""
    least = measure(points, b, r)
    if least > FAR:
        pull(points, r)
    return least


class Held:
    """Rows around a point of a random zonotope, and the points of cells in it."""

    def __init__(self, rng, dimensions, inputs, rows, *, room=0.05):
        first = rng.standard_normal((dimensions, inputs))
        space = Space.of(first, in_inputs=False)
        self.frame, self.count, p = space.frame, rows, dimensions
        normals = rng.standard_normal((rows, p))
        middle = self.frame @ rng.uniform(-0.3, 0.3, inputs)
        constants = room * rng.uniform(0.1, 1.0, rows) - normals @ middle
        sizes = np.abs(normals).sum(axis=1) + np.abs(constants)
        self.normals, self.constants = normals / sizes[:, None], constants / sizes
        scaled = Scaled(
            (first,), (np.zeros(p),), (np.ones(p, dtype=bool),), (np.zeros(p),), np.zeros((0, inputs)), np.zeros(0), (None,)
        )
        self.cell = Cell.of(space, Layers.of(scaled), rows=rows + 16, states=3)
        self.question = Question.of(self.cell, units=rows + 2, sets=4)
        self.cell.codes[: rows + 2] = -1 - np.arange(rows + 2)
        self.cell.rows[:rows, :p], self.cell.rows[:rows, p] = self.normals, self.constants
        self.cell.rows[:rows, p + 1] = np.einsum("ij,jk,ik->i", self.normals, space.gram, self.normals)
        for row in range(rows):
            stand(self.question, row)
        self.points = Points.of(self.question, units=rows + 2, planes=4)

    def block(self, b):
        return self.points.blocks[b, : self.points.held[b]].copy()

    def depths(self, points, rows):
        """By how much each point lies inside so many rows: the least."""
        return (points @ self.normals[:rows].T + self.constants[:rows]).min(axis=1, initial=np.inf)

    def is_in_zonotope(self, point):
        found = linprog(np.zeros(self.frame.shape[1]), A_eq=self.frame, b_eq=point, bounds=(-1.0, 1.0))
        return found.status == 0

    def deepest(self):
        """How deep any point lies in the cell, by SciPy over all inputs."""
        n = self.frame.shape[1]
        rows = np.column_stack([-self.normals @ self.frame, np.ones(self.count)])
        found = linprog(np.append(np.zeros(n), -1.0), A_ub=rows, b_ub=self.constants, bounds=[(-1.0, 1.0)] * n + [(None, None)])
        return -found.fun


SIZES = [(1, 20, 2), (2, 30, 4), (5, 60, 6), (9, 130, 8)]


@pytest.mark.parametrize(("dimensions", "inputs", "rows"), SIZES)
def test_what_a_cell_inherits_lies_inside_it(dimensions, inputs, rows):
    rng, held = np.random.default_rng([1, dimensions]), 0
    for _ in range(4):
        cell = Held(rng, dimensions, inputs, rows)
        for r in range(rows):
            above = cell.block(r)
            inherit(cell.points, r, r)
            block = cell.block(r + 1)
            held += len(block)
            assert (cell.depths(block, r + 1) >= SLACK / 2).all()
            own = above[above @ cell.normals[r] + cell.constants[r] >= SEEN]
            assert not len(own) or len(block)  # one on its side is enough
        assert all(cell.is_in_zonotope(point) for point in block[:: max(1, len(block) // 4)])
    assert held


@pytest.mark.parametrize(("dimensions", "inputs", "rows"), SIZES)
def test_the_pool_is_pulled_just_inside_the_cell(dimensions, inputs, rows):
    rng, moved = np.random.default_rng([2, dimensions]), 0
    for _ in range(4):
        cell = Held(rng, dimensions, inputs, rows)
        points = cell.points
        for r in range(rows):
            inherit(points, r, r)
        if pulled(points, rows, rows) <= FAR:
            continue
        size = points.pulled
        shares, middle = points.shares[:size], points.middle
        there = middle + shares[:, None] * (points.pool[:, :size].T - middle)
        depths = cell.depths(there, rows)
        assert (depths >= SLACK / 2).all()
        assert (shares <= 1.0).all()
        assert depths[shares < 1.0] == pytest.approx(SLACK, abs=1e-13)  # no further than needed
        assert middle == pytest.approx(cell.block(rows).mean(axis=0), abs=1e-14)
        moved += np.count_nonzero(shares < 1.0)
        row, values = rng.standard_normal(dimensions + 3), np.zeros(size + points.held[rows])
        spread(points, rows, row, values)
        everywhere = np.vstack([there, cell.block(rows)])
        assert values == pytest.approx(everywhere @ row[:dimensions] + row[dimensions], abs=1e-12)
    assert moved


def test_the_pool_is_a_ring_and_a_block_has_an_end():
    cell = Held(np.random.default_rng(3), 3, 40, 2)
    points = cell.points
    size = points.pool.shape[1]
    for number in range(size + 5):
        throw(points, np.full(3, float(number)))
    assert sorted(points.pool[0]) == list(range(5, size + 5))
    points.held[1] = 0
    for number in range(4):
        add(points, 1, 2, np.full(3, float(number)))
    assert points.held[1] == 3
    assert points.blocks[1, :3, 0].tolist() == [0.0, 1.0, 3.0]


@pytest.mark.parametrize(("dimensions", "inputs", "rows"), [(2, 40, 3), (4, 130, 6), (9, 200, 10)])
def test_a_shallow_cell_gets_a_deep_point(dimensions, inputs, rows):
    rng, p = np.random.default_rng([4, dimensions]), dimensions
    for _ in range(4):
        cell = Held(rng, dimensions, inputs, rows)
        points, deepest = cell.points, cell.deepest()
        assert deepest > 100.0 * SHALLOW
        inside = linprog(
            -cell.normals[0] @ cell.frame, A_ub=-cell.normals @ cell.frame, b_ub=cell.constants, bounds=(-0.9, 0.9)
        ).x
        wall = linprog(cell.normals[0] @ cell.frame, A_ub=-cell.normals @ cell.frame, b_ub=cell.constants, bounds=(-0.9, 0.9)).x
        shallow = cell.frame @ (wall + 1e-8 * (inside - wall))
        points.held[rows] = 1
        points.blocks[rows, 0] = shallow
        least = cell.depths(shallow[None], rows)[0]
        aside = cell.cell.rows[rows].copy()
        if least < 10.0 * SLACK:
            continue
        assert deepen(points, rows, rows, rows)
        assert points.held[rows] == 2
        found = points.blocks[rows, 1]
        depth = cell.depths(found[None], rows)[0]
        assert 100.0 * least <= depth <= deepest + 1e-9
        assert cell.is_in_zonotope(found)
        assert (cell.cell.rows[rows, : p + 3] == aside[: p + 3]).all()
        assert not deepen(points, rows, rows, rows) or points.held[rows] == 3  # the middle of both may be shallow still


def test_a_deep_middle_is_left_alone():
    cell = Held(np.random.default_rng(5), 3, 60, 4)
    for r in range(4):
        inherit(cell.points, r, r)
    cell.points.held[4] = max(cell.points.held[4], 1)
    centre = linprog(
        np.append(np.zeros(60), -1.0),
        A_ub=np.column_stack([-cell.normals @ cell.frame, np.ones(4)]),
        b_ub=cell.constants,
        bounds=[(-1.0, 1.0)] * 60 + [(None, None)],
    ).x[:60]
    cell.points.held[4], cell.points.blocks[4, 0] = 1, cell.frame @ centre
    assert not deepen(cell.points, 4, 4, 4)
    assert cell.points.held[4] == 1
