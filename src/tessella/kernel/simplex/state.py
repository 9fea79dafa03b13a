"""The state of the simplex over a box: the problem, the basis, costs, a step under way, and memory."""

from functools import lru_cache
from typing import Self

import numpy as np

from tessella.kernel.record import Matrix, Record, Vector, Whole, zeros
from tessella.network import Floats

OPTIMAL, STOPPED, PRUNED, INFEASIBLE = range(4)  # how a solve ends


class Problem(Record):
    """Maximise costs.x over lower <= x <= upper with row_lower <= matrix.x <= row_upper; all ends are finite."""

    matrix: Matrix
    costs: Vector
    lower: Vector
    upper: Vector
    row_lower: Vector
    row_upper: Vector

    @classmethod
    def of(cls, matrix: Floats) -> Self:
        """Room for problems with these rows."""
        rows, columns = matrix.shape
        return cls(
            matrix=matrix,
            **{name: zeros(columns) for name in ("costs", "lower", "upper")},
            **{name: zeros(rows) for name in ("row_lower", "row_upper")},
        )


class State(Record):
    """A basis, and what belongs to it.

    Invariant: with k = size, ``inverse`` is the inverse of matrix[tight[:k], basic[:k]].  place[j] is where structural j stands among the basic ones, place[n + i] where row i stands
    among the tight ones; -1 if it does not.
    """

    tight: Whole
    basic: Whole
    place: Whole
    size: int
    age: int  # iterations since the inverse was computed
    inverse: Matrix
    multipliers: Vector  # of all rows; 0 where they are not tight
    reduced: Vector  # costs less the tight rows times their multipliers; 0 where structurals are basic
    point: Vector
    rows: Vector  # the rows' values there
    value: float  # of the dual function

    @classmethod
    def of(cls, rows: int, columns: int) -> Self:
        """Room for bases of so many rows and columns; the basis is empty."""
        size = min(rows, columns) + 1
        return cls(
            tight=zeros(size, kind=np.int64),
            basic=zeros(size, kind=np.int64),
            place=zeros(rows + columns, kind=np.int64),
            inverse=zeros(size, size),
            multipliers=zeros(rows),
            reduced=zeros(columns),
            point=zeros(columns),
            rows=zeros(rows),
        )


class Costs(Record):
    """The costs that the simplex goes by: true ones plus ``perturbation * noise``."""

    perturbed: Vector
    noise: Vector  # one number of size 1 per structural
    smallest: float
    perturbation: float
    cleaned: bool  # whether the smallest perturbation came back after a larger one
    best: float  # the least value of the dual function
    stalled: int  # iterations since it fell

    @classmethod
    def of(cls, columns: int) -> Self:
        """The same noise for the same number of columns."""
        return cls(perturbed=zeros(columns), noise=_noise(columns))


class Step(Record):
    """One iteration: who leaves the basis, as j for structural j and n + i for row i, and who enters, as j or, for the tight row at p, n + p; -1 for nobody.

    The leaving variable is the sum of by_column[j] * x_j over nonbasic structurals and of by_row[p] times the value of the tight row at p.
    """

    leaving: int
    violation: float  # by how much it is above its upper end, or, negative, below its lower one
    entering: int
    by_column: Vector
    by_row: Vector

    @classmethod
    def of(cls, rows: int, columns: int) -> Self:
        """Room for a step."""
        return cls(by_column=zeros(columns), by_row=zeros(min(rows, columns) + 1))


class Work(Record):
    """Memory for steps."""

    square: Matrix  # to be inverted
    coefficients: Vector  # of one row or column in the basis
    column: Vector  # the inverse times such coefficients, or the other way round
    breakpoints: Vector  # a heap: where the dual function's slope changes
    order: Whole  # who changes it there
    ray: Vector  # multipliers of a direction
    reduced: Vector  # costs less rows times multipliers, while a bound is proved
    sizes: Vector  # what was added up for these, in absolute value

    @classmethod
    def of(cls, rows: int, columns: int) -> Self:
        """Room for problems of so many rows and columns."""
        size = min(rows, columns) + 1
        return cls(
            square=zeros(size, size),
            coefficients=zeros(size),
            column=zeros(size),
            breakpoints=zeros(rows + columns),
            order=zeros(rows + columns, kind=np.int64),
            ray=zeros(rows),
            reduced=zeros(columns),
            sizes=zeros(columns),
        )


class Simplex(Record):
    """All that a solve knows, when it has to stop, and what it says."""

    problem: Problem
    state: State
    costs: Costs
    step: Step
    work: Work
    cutoff: float  # stop as soon as the maximum is proved to be at most this
    most: int  # iterations
    iterations: int
    bound: float  # proved: an upper bound on the maximum; minus infinity if no point satisfies all rows

    @classmethod
    def of(cls, matrix: Floats) -> Self:
        """For problems with these rows."""
        shape = matrix.shape
        return cls(
            problem=Problem.of(matrix),
            state=State.of(*shape),
            costs=Costs.of(shape[1]),
            step=Step.of(*shape),
            work=Work.of(*shape),
        )


@lru_cache(maxsize=16)
def _noise(columns: int) -> Floats:
    rng = np.random.default_rng(columns)
    noise = rng.uniform(0.5, 1.0, columns) * rng.choice((-1.0, 1.0), columns)
    noise.flags.writeable = False
    return noise
