"""Rows that depend linearly on others: proposed in floating point, proved in exact arithmetic."""

from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tessella.network import Floats

_MOST_ROWS = 96
_MOST_WORK = 400_000  # products of exact numbers: about a second
_SMALL = 1e-10  # pivots that are smaller, relative to the largest, propose a dependency


def dependencies(weight: Floats) -> tuple[npt.NDArray[np.int64], dict[int, list[Fraction]]] | None:
    """Rows of a matrix on which all others depend, and for each other one its exact coefficients; None if there are no such rows, or too many to be sure of them.

    Examples
    --------
    >>> basis, others = dependencies(np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.5, 0.25, 0.75]]))
    >>> basis.tolist(), {row: [float(one) for one in found] for row, found in others.items()}
    ([0, 1], {2: [0.5, 0.25]})
    """
    count = len(weight)
    if not 2 <= count <= _MOST_ROWS:
        return None
    rows, columns = _pivots(weight.T), _pivots(weight)
    rank = min(len(rows), len(columns))
    if rank >= min(weight.shape) or not rank or rank * rank * rank + (count - rank) * rank * weight.shape[1] > _MOST_WORK:
        return None
    rows = np.sort(rows[:rank])
    columns = np.sort(_pivots(weight[rows])[:rank])
    if len(columns) < rank:
        return None
    others = np.setdiff1d(np.arange(count), rows)
    found = _solved(_exact(weight[np.ix_(rows, columns)].T), _exact(weight[np.ix_(others, columns)]))
    basis = _exact(weight[rows])
    if found is None or any(
        _combined(coefficients, basis) != row for coefficients, row in zip(found, _exact(weight[others]), strict=True)
    ):
        return None
    return rows, dict(zip(others.tolist(), found, strict=True))


def _pivots(matrix: Floats) -> npt.NDArray[np.int64]:
    """Columns that are independent, as far as one can see."""
    from scipy.linalg import qr  # noqa: PLC0415  heavy

    upper, order = cast("Any", qr(matrix, mode="r", pivoting=True))
    sizes = np.abs(np.diag(upper))
    return np.asarray(order[: int((sizes > _SMALL * sizes.max(initial=0.0)).sum())], dtype=np.int64)


def _exact(matrix: Floats) -> list[list[Fraction]]:
    return [[Fraction(value) for value in row] for row in matrix.tolist()]


def _combined(coefficients: list[Fraction], rows: list[list[Fraction]]) -> list[Fraction]:
    used = [(factor, row) for factor, row in zip(coefficients, rows, strict=True) if factor]
    return [sum((factor * row[column] for factor, row in used), Fraction(0)) for column in range(len(rows[0]))]


def _solved(matrix: list[list[Fraction]], sides: list[list[Fraction]]) -> list[list[Fraction]] | None:
    """Solutions of a square system for each right side, by Gauss and Jordan; None if it is singular."""
    size = len(matrix)
    table = [[*row, *(side[number] for side in sides)] for number, row in enumerate(matrix)]
    for column in range(size):
        pivot = next((row for row in range(column, size) if table[row][column]), None)
        if pivot is None:
            return None
        table[column], table[pivot] = table[pivot], table[column]
        factor = table[column][column]
        table[column] = [entry / factor for entry in table[column]]
        for row in range(size):
            if row != column and table[row][column]:
                times = table[row][column]
                table[row] = [entry - times * above for entry, above in zip(table[row], table[column], strict=True)]
    return [[table[row][size + side] for row in range(size)] for side in range(len(sides))]
