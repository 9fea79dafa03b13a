"""A point in the middle of a cell, and the metric there.

The middle is where the product of all distances to walls is largest; Newton's method goes there.  The Hessian of that logarithmic
barrier is a metric in which the cell is about round.
"""

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs  # pyright: ignore[reportAttributeAccessIssue]
from scipy.sparse import csr_array, issparse

from tessella.network import Floats

THIN = 1e-14  # the least distance to a wall; where it is less, the check at the end tells
_SPARSE = 0.1  # share of entries that are not 0, below which matrices are stored sparsely
_FEW = 0.7  # walls per input, below which the formula of Woodbury is cheaper

Rows = Any  # a dense or a sparse matrix


def _lean(matrix: Floats) -> Rows:
    """The same matrix, stored sparsely if most of it is 0: rows of convolutions."""
    return csr_array(matrix) if np.count_nonzero(matrix) < _SPARSE * matrix.size else np.ascontiguousarray(matrix)


class BarrierCell:
    """A point inside walls: the ends of the box [-1, 1]^n, and units whose signs are decided.

    ``values`` are those of the domain's inequalities and of all units so far at the point, ``signs`` what is decided: 1, -1, or 0 if nothing is.
    """

    def __init__(self, normals: Floats, constants: Floats, point: Floats) -> None:
        self.point, self._blocks, self._constants = point.copy(), [_lean(normals)], constants
        self.signs = np.ones(len(constants))
        self.refresh()

    def extend(self, rows: Floats, constants: Floats) -> None:
        """Add undecided units."""
        self._blocks.append(_lean(rows))
        self._constants = np.concatenate([self._constants, constants])
        self.signs = np.concatenate([self.signs, np.zeros(len(constants))])
        self.refresh()

    def rates(self, direction: Floats) -> Floats:
        """How fast values change."""
        return np.concatenate([block @ direction for block in self._blocks])

    def refresh(self) -> None:
        """Compute the values anew."""
        self.values = self.rates(self.point) + self._constants

    def move(self, step: float, direction: Floats, rates: Floats) -> None:
        """Go in a direction."""
        self.point += step * direction
        self.values += step * rates

    def reach(self, direction: Floats, rates: Floats) -> tuple[float, int]:
        """How far one can go, and which wall is in the way."""
        return first_wall(self.point, self.signs * self.values, direction, self.signs * rates)

    def row(self, number: int) -> Floats:
        """The row of a unit, or for -1 - j that of input j."""
        if number < 0:
            unit = np.zeros(len(self.point))
            unit[-1 - number] = 1.0
            return unit
        for block in self._blocks:
            if number < block.shape[0]:
                return block[[number]].toarray()[0] if issparse(block) else cast("Floats", block)[number]
            number -= block.shape[0]
        raise IndexError(number)

    def metric(self) -> "Metric":
        """The inverse of the Hessian at the point."""
        self.refresh()
        walls = np.flatnonzero(self.signs)
        slacks = np.maximum((self.signs * self.values)[walls], THIN)
        starts = np.cumsum([0, *(block.shape[0] for block in self._blocks)])
        parts = [
            block[walls[(walls >= start) & (walls < start + block.shape[0])] - start]
            for block, start in zip(self._blocks, starts, strict=False)
        ]
        parts = [part for part in parts if part.shape[0]]
        return Metric(1.0 / (1.0 - self.point) ** 2 + 1.0 / (1.0 + self.point) ** 2, parts, slacks)

    def walls(self) -> tuple[Floats, Floats]:
        """Rows and constants of all that is decided, positive in the cell."""
        decided = np.flatnonzero(self.signs)
        signs = self.signs[decided]
        return signs[:, None] * np.array([self.row(int(number)) for number in decided]).reshape(
            len(decided), -1
        ), signs * self._constants[decided]

    def slope(self) -> Floats:
        """The gradient of minus the sum of the logarithms of all distances to walls."""
        pull = np.where(self.signs == 0.0, 0.0, self.signs / np.maximum(self.signs * self.values, THIN))
        start, total = 0, 1.0 / (1.0 - self.point) - 1.0 / (1.0 + self.point)
        for block in self._blocks:
            total -= pull[start : start + block.shape[0]] @ block
            start += block.shape[0]
        return total


class Metric:
    """The inverse of the Hessian diag(box) + rows' slacks^-2 rows, as products with vectors; further rows are added one by one."""

    def __init__(self, box: Floats, parts: Sequence[Rows], slacks: Floats) -> None:
        self._box, self._few = box, len(slacks) <= _FEW * len(box)
        self._parts = parts
        if self._few:  # the formula of Woodbury
            rows = np.vstack([part.toarray() if issparse(part) else part for part in parts] or [np.zeros((0, len(box)))])
            self._rows = rows
            hessian = (rows / box) @ rows.T
            hessian[np.diag_indices(len(rows))] += slacks**2
        else:
            hessian, start = np.diag(box), 0
            for part in parts:
                part = part / slacks[start : start + part.shape[0], None]  # noqa: PLW2901
                start += part.shape[0]
                product = part.T @ part
                hessian += product.toarray() if issparse(product) else product
        self._factor, _ = dpotrf(hessian, lower=1, clean=0)
        self._added = np.zeros((0, len(box)))

    def __call__(self, vectors: Floats) -> Floats:
        """The product with a vector, or with each row of a matrix."""
        if self._few:
            found = vectors / self._box
            if len(self._rows):
                found -= self._solve(self._rows @ found.T).T @ self._rows / self._box
        else:
            found = self._solve(vectors.T).T
        return found - (vectors @ self._added.T) @ self._added

    def _solve(self, columns: Floats) -> Floats:
        return dpotrs(self._factor, columns, lower=1)[0].reshape(columns.shape)

    def add(self, image: Floats, scale: float) -> None:
        """One more row, from its product with the metric: divided by ``scale``, the square of its slack plus that of its length."""
        self._added = np.vstack([self._added, image / math.sqrt(scale)])


def first_wall(point: Floats, slacks: Floats, direction: Floats, rates: Floats) -> tuple[float, int]:
    """How far one can go, and which wall is in the way."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ends = np.where(direction == 0.0, np.inf, (np.where(direction > 0.0, 1.0, -1.0) - point) / direction)
        steps = np.where(rates < 0.0, -slacks / rates, np.inf)
    end = int(ends.argmin())
    row = int(steps.argmin()) if len(steps) else -1
    return (float(steps[row]), row) if row >= 0 and steps[row] < ends[end] else (float(ends[end]), -1 - end)
