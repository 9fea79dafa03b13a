"""The inverse of a basis matrix, and how it follows the basis: against numpy."""

import numpy as np
import pytest

from tessella.kernel.basis import border, factor, replace_column, replace_row, shrink, times, times_left
from tessella.numerics import SINGULAR

SIZES = [1, 2, 5, 12]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def room(k):
    """Memory for an inverse that is larger than it."""
    return np.full((k + 3, k + 4), np.nan)


def inverted(matrix):
    k, inverse = len(matrix), room(len(matrix))
    square = room(k)
    square[:k, :k] = matrix
    assert factor(square, inverse, k, SINGULAR)
    return inverse


def product(matrix, inverse, vector, *, left):
    k, result = len(matrix), np.zeros(len(matrix) + 1)
    if left:
        times_left(vector, inverse, k, result)
    else:
        times(inverse, k, vector, result)
    return result[:k].copy()


@pytest.mark.parametrize("k", SIZES)
def test_inverse_and_products(rng, k):
    matrix, vector = rng.standard_normal((k, k)), rng.standard_normal(k)
    inverse = inverted(matrix)
    assert inverse[:k, :k] == pytest.approx(np.linalg.inv(matrix))
    assert product(matrix, inverse, vector, left=False) == pytest.approx(np.linalg.solve(matrix, vector))
    assert product(matrix, inverse, vector, left=True) == pytest.approx(np.linalg.solve(matrix.T, vector))


def test_singular_matrices_are_refused(rng):
    matrix = rng.standard_normal((4, 4))
    matrix[3] = matrix[0] + matrix[1]
    assert not factor(matrix, room(4), 4, SINGULAR)
    assert not factor(np.array([[0.5]]), room(1), 1, 0.6)


@pytest.mark.parametrize("k", [0, *SIZES])
def test_border(rng, k):
    larger = rng.standard_normal((k + 1, k + 1))
    matrix = larger[:k, :k]
    inverse = inverted(matrix)
    row = product(matrix, inverse, larger[k, :k], left=True)
    column = product(matrix, inverse, larger[:k, k].copy(), left=False)
    border(inverse, k, row, column, larger[k, k] - larger[k, :k] @ column)
    assert inverse[: k + 1, : k + 1] == pytest.approx(np.linalg.inv(larger))


@pytest.mark.parametrize("k", SIZES)
def test_replaced_rows_and_columns(rng, k):
    matrix, fresh, at = rng.standard_normal((k, k)), rng.standard_normal(k), int(rng.integers(k))
    inverse = inverted(matrix)
    replace_row(inverse, k, at, product(matrix, inverse, fresh, left=True))
    matrix[at] = fresh
    assert inverse[:k, :k] == pytest.approx(np.linalg.inv(matrix))
    replace_column(inverse, k, at, product(matrix, inverse, fresh, left=False))
    matrix[:, at] = fresh
    assert inverse[:k, :k] == pytest.approx(np.linalg.inv(matrix))


@pytest.mark.parametrize("k", SIZES)
def test_shrink(rng, k):
    matrix, leaving, gone = rng.standard_normal((k, k)), int(rng.integers(k)), int(rng.integers(k))
    inverse = inverted(matrix)
    shrink(inverse, k, leaving, gone)
    matrix[gone] = matrix[k - 1]
    matrix[:, leaving] = matrix[:, k - 1]
    if k > 1:
        assert inverse[: k - 1, : k - 1] == pytest.approx(np.linalg.inv(matrix[: k - 1, : k - 1]))
