"""A linear program with a fixed matrix, solved again and again by the compiled simplex."""

import threading
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tessella.kernel.simplex.solving import solve
from tessella.kernel.simplex.state import INFEASIBLE, OPTIMAL, PRUNED, STOPPED, Simplex
from tessella.network import Floats

Basis = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
EMPTY: Basis = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

_SMALL = 20_000  # entries of a matrix up to which memory is shared
_KEPT = 16  # shapes that a thread keeps memory for


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one solve found."""

    bound: float  # a proved upper bound on the objective; minus infinity if no point satisfies all rows (proved too)
    optimal: bool  # whether x is an optimal point, up to tolerances
    pruned: bool  # whether the solve ended because the bound passed the cutoff
    stopped: bool  # whether the solve ended because it had no iterations left; it may go on from its basis
    # x, rows, multipliers: the last point, its row values, and the rows' multipliers; where no point satisfies all rows, the
    # multipliers that prove that
    x: Floats
    rows: Floats
    multipliers: Floats
    basis: Basis  # where a later solve may start
    iterations: int  # how many there were


class Program:
    """Rows over boxed variables.  A large program holds the memory for its solves, so it serves one thread.

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

    functions = (solve,)
    """The compiled functions that it calls."""

    def __init__(self, matrix: Floats) -> None:
        """Small programs are made all the time, so they use memory of their thread."""
        self.matrix = np.ascontiguousarray(matrix, dtype=np.float64)
        self._own = Simplex.of(self.matrix) if self.matrix.size > _SMALL else None

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
        simplex, count = self._own or _shared(self.matrix), len(basis[0])
        problem, state = simplex.problem, simplex.state
        problem.costs[:], problem.lower[:], problem.upper[:] = objective, lower, upper
        problem.row_lower[:], problem.row_upper[:] = row_lower, row_upper
        state.tight[:count], state.basic[:count] = basis
        state.size, simplex.cutoff = count, cutoff
        simplex.most = 200 + 20 * (len(self.matrix) + 10) if most is None else most
        status = solve(simplex)
        return Outcome(
            simplex.bound,
            status == OPTIMAL,
            status == PRUNED,
            status == STOPPED,
            state.point.copy(),
            state.rows.copy(),
            (simplex.work.ray if status == INFEASIBLE else state.multipliers).copy(),
            (state.tight[: state.size].copy(), state.basic[: state.size].copy()),
            simplex.iterations,
        )


class _Memory(threading.local):
    """What the small programs of one thread use in turn, by shape; the last used is the last."""

    def __init__(self) -> None:
        self.by_shape = dict[tuple[int, ...], Simplex]()


_memory = _Memory()


def _shared(matrix: Floats) -> Simplex:
    """The thread's memory for a small program."""
    kept = _memory.by_shape
    simplex = kept.pop(matrix.shape, None)
    if simplex is None:
        simplex = Simplex.of(matrix)
        if len(kept) >= _KEPT:
            del kept[next(iter(kept))]
    elif simplex.problem.matrix is not matrix:
        simplex.problem.matrix = matrix
    kept[matrix.shape] = simplex
    return simplex
