"""A linear program with a fixed matrix, solved again and again by the compiled kernel."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tessella.kernel import simplex
from tessella.network import Floats

Basis = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
EMPTY: Basis = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one solve found.

    Parameters
    ----------
    bound
        A proved upper bound on the objective; minus infinity if no point satisfies all rows (proved too).
    optimal
        Whether x is an optimal point, up to tolerances.
    pruned
        Whether the solve ended because the bound passed the cutoff.
    stopped
        Whether the solve ended because it had no iterations left; it may go on from its basis.
    x, rows, multipliers
        The last point, its row values, and the rows' multipliers.
    basis
        Where a later solve may start.
    iterations
        How many there were.
    """

    bound: float
    optimal: bool
    pruned: bool
    stopped: bool
    x: Floats
    rows: Floats
    multipliers: Floats
    basis: Basis
    iterations: int


class Program:
    """Rows over boxed variables; holds the scratch memory, so one program serves one thread.

    Parameters
    ----------
    matrix
        The rows' coefficients.

    Examples
    --------
    >>> program = Program(np.array([[1.0, 1.0]]))
    >>> found = program.maximise(np.array([2.0, 1.0]), np.zeros(2), np.ones(2), np.zeros(1), np.array([1.5]))
    >>> round(found.bound, 9), found.x.tolist()
    (2.5, [1.0, 0.5])
    """

    def __init__(self, matrix: Floats) -> None:
        """Allocate scratch for this matrix."""
        self.matrix = np.ascontiguousarray(matrix, dtype=np.float64)
        rows, columns = self.matrix.shape
        size = min(rows, columns) + 1
        self._square = np.zeros((2, size, size))
        self._vectors = np.zeros((5, rows + columns))
        rng = np.random.default_rng(columns)
        self._noise = rng.uniform(0.5, 1.0, columns) * rng.choice((-1.0, 1.0), columns)
        self._marks = np.zeros((2, rows + columns), dtype=np.int64)
        self._lists = np.zeros((2, size), dtype=np.int64)

    def maximise(  # noqa: PLR0913, PLR0917  the problem's own parts
        self,
        objective: Floats,
        lower: Floats,
        upper: Floats,
        row_lower: Floats,
        row_upper: Floats,
        basis: Basis = EMPTY,
        cutoff: float = -np.inf,
        most: int | None = None,
    ) -> Outcome:
        """Maximise an objective, starting from any basis.

        Parameters
        ----------
        objective, lower, upper, row_lower, row_upper
            The problem; all ends are finite.
        basis
            Where to start: the basis of any earlier outcome of this program.
        cutoff
            Stop as soon as the maximum is proved to be at most this.
        most
            Stop after this many iterations.
        """
        rows, columns = self.matrix.shape
        tight, basic = self._lists
        count = len(basis[0])
        tight[:count], basic[:count] = basis
        y, x, values = np.zeros(rows), np.zeros(columns), np.zeros(rows)
        status, count, iterations, bound = simplex.solve(
            self.matrix,
            objective,
            lower,
            upper,
            row_lower,
            row_upper,
            tight,
            basic,
            count,
            self._noise,
            self._square,
            self._vectors,
            self._marks,
            y,
            x,
            values,
            cutoff,
            200 + 20 * (rows + 10) if most is None else most,
        )
        found: Basis = (tight[:count].copy(), basic[:count].copy())
        kinds = (status == simplex.OPTIMAL, status == simplex.PRUNED, status == simplex.STOPPED)
        return Outcome(bound, *kinds, x, values, y, found, iterations)
