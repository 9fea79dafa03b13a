"""Whether points surround zero: compiled stacks of hulls against linear programs solved by SciPy."""

import numpy as np
import pytest
from scipy.optimize import linprog

from tessella.counting.hulls import LOST, SURROUNDED, Hulls, begin, extend, extremes, surround
from tessella.kernel.functions import apart
from tessella.kernel.record import Matrix, Vector


@apart
def stacked(hulls: Hulls, order: Vector, values: Matrix, number: int) -> int:
    """Put hyperplanes on the stack one after the other, as long as they meet; what the last one says."""
    found = SURROUNDED
    begin(hulls, int(order[0]), values, number)
    for level in range(len(order) - 1):
        extend(hulls, level, int(order[level + 1]), values, number)
        found = surround(hulls, level + 1, values, number)
        if found != SURROUNDED:
            break
    return found


@apart
def spanned(values: Vector, number: int) -> tuple[float, float]:
    return extremes(values, number)


def meets(values, number):
    """Whether zero is inside the hull of the points, by SciPy: how much weight all points can have at least."""
    size = len(values)
    weights = np.vstack([values[:, :number], np.ones(number)])
    goal = np.zeros(size + 1)
    goal[-1] = 1.0
    found = linprog(np.zeros(number), A_eq=weights, b_eq=goal, bounds=(0.0, None))
    return found.status == 0


@pytest.mark.parametrize("dimensions", [2, 3, 5, 8, 12])
def test_agrees_with_scipy(dimensions):
    rng, answers = np.random.default_rng(dimensions), []
    for trial in range(40):
        number = int(rng.integers(2 * dimensions, 8 * dimensions))
        values = rng.standard_normal((dimensions, number + 3)) + rng.uniform(0.0, 1.5) * rng.standard_normal((dimensions, 1))
        order = rng.permutation(dimensions).astype(float)
        if np.any(values[:, :number].min(axis=1) > -1e-3) or np.any(values[:, :number].max(axis=1) < 1e-3):
            continue
        hulls = Hulls.of(13, number + 3)
        found = stacked(hulls, order, values, number)
        answers.append(found == SURROUNDED)
        if found == SURROUNDED:
            level = dimensions - 1
            basis, weights = hulls.points[level, : dimensions + 1], hulls.inverse[level, : dimensions + 1, dimensions]
            assert weights.min() > 0.0
            assert weights.sum() == pytest.approx(1.0)
            assert np.abs(values[:, basis] @ weights).max() < 1e-9
            assert meets(values, number)
        else:
            assert found > 0, trial
            level, members = found - 1, hulls.planes[found - 1, :found]
            rates = hulls.prices[level, :found] * hulls.scales[level, :found]
            assert (rates @ values[members, :number]).max() < 1e-9  # a direction in which no point lies beyond zero
            assert not meets(values[members], number)
    assert len(set(answers)) == 2 or dimensions > 8


def test_points_that_all_but_surround_zero_are_not_taken():
    values = np.array([[1.0, -1.0, 0.0], [1e-13, 1e-13, -1.0]])
    found = stacked(Hulls.of(13, 3), np.array([0.0, 1.0]), values, 3)
    assert found in {LOST, 2}


@pytest.mark.parametrize("number", range(1, 11))
def test_extremes(number):
    values = np.random.default_rng(number).standard_normal(12)
    least, most = spanned(values, number)
    assert (least, most) == (min(values[:number].min(), 0.0), max(values[:number].max(), 0.0))
