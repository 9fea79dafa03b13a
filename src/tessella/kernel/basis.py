"""The inverse of a basis matrix, kept up to date: computed anew, or changed with the basis; compiled with Numba.

A simplex method holds a set of *tight* rows and as many *basic* variables, and the inverse of the k x k matrix of these rows' coefficients at these variables.  Row q of the inverse
belongs to the basic variable at q, column i to the tight row at i.  When one of either comes or goes, the inverse follows in k squared steps.  Who keeps the lists changes them.

All functions work on the first k rows and columns of an array that may be larger, so it may be one of a stack.
"""

from tessella.kernel.functions import compiled
from tessella.kernel.record import Matrix, Vector


@compiled
def _eliminate(square: Matrix, inverse: Matrix, k: int, column: int, best: int) -> None:
    """One step of Gauss-Jordan in both matrices: row ``best`` takes the place of row ``column``, and is taken away from all others."""
    pivot = square[best, column]
    for q in range(k):
        square[best, q], square[column, q] = square[column, q], square[best, q]
        inverse[best, q], inverse[column, q] = inverse[column, q], inverse[best, q]
    for q in range(k):
        square[column, q] /= pivot
        inverse[column, q] /= pivot
    for i in range(k):
        rate = square[i, column]
        if i != column and rate != 0.0:
            for q in range(k):
                square[i, q] -= rate * square[column, q]
                inverse[i, q] -= rate * inverse[column, q]


@compiled
def factor(square: Matrix, inverse: Matrix, k: int, least: float) -> bool:
    """Put the inverse of ``square``, by Gauss-Jordan with partial pivoting, into ``inverse``; destroys ``square``.  False if a pivot is less than ``least``."""
    for i in range(k):
        for q in range(k):
            inverse[i, q] = 1.0 if i == q else 0.0
    for column in range(k):
        best = column
        for i in range(column + 1, k):
            if abs(square[i, column]) > abs(square[best, column]):
                best = i
        if abs(square[best, column]) < least:
            return False
        _eliminate(square, inverse, k, column, best)
    return True


@compiled
def times(inverse: Matrix, k: int, vector: Vector, result: Vector) -> None:
    """Put ``inverse`` times a vector into ``result``."""
    for q in range(k):
        total = 0.0
        for i in range(k):
            total += inverse[q, i] * vector[i]
        result[q] = total


@compiled
def times_left(vector: Vector, inverse: Matrix, k: int, result: Vector) -> None:
    """Put a vector times ``inverse`` into ``result``."""
    for i in range(k):
        result[i] = 0.0
    for q in range(k):  # along rows: columns are not vectorised
        rate = vector[q]
        for i in range(k):
            result[i] += rate * inverse[q, i]


@compiled
def border(inverse: Matrix, k: int, row: Vector, column: Vector, pivot: float) -> None:
    """Let a row become tight and a variable basic, behind the others: ``inverse`` has k + 1 rows then.

    ``row`` is the new row's coefficients at the basic variables times the inverse, ``column`` the inverse times the new variable's in the tight rows, and ``pivot`` the new row's
    coefficient at the new variable, less what these two make of it.
    """
    for q in range(k):
        rate = column[q] / pivot
        for i in range(k):
            inverse[q, i] += rate * row[i]
        inverse[q, k] = -rate
    for i in range(k):
        inverse[k, i] = -row[i] / pivot
    inverse[k, k] = 1.0 / pivot


@compiled
def replace_row(inverse: Matrix, k: int, gone: int, row: Vector) -> None:
    """Let another row be tight instead of the one at ``gone``; ``row`` is its coefficients times the inverse."""
    pivot = row[gone]
    for q in range(k):
        rate = inverse[q, gone] / pivot
        for i in range(k):
            inverse[q, i] -= rate * row[i]
        inverse[q, gone] = rate


@compiled
def replace_column(inverse: Matrix, k: int, leaving: int, column: Vector) -> None:
    """Let another variable be basic instead of the one at ``leaving``; ``column`` is the inverse times its coefficients."""
    pivot = column[leaving]
    for i in range(k):
        inverse[leaving, i] /= pivot
    for q in range(k):
        if q != leaving:
            rate = column[q]
            for i in range(k):
                inverse[q, i] -= rate * inverse[leaving, i]


@compiled
def shrink(inverse: Matrix, k: int, leaving: int, gone: int) -> None:
    """Let the variable at ``leaving`` be no longer basic, nor the row at ``gone`` tight; the last of either take their places."""
    pivot = inverse[leaving, gone]
    for q in range(k):
        if q != leaving:
            rate = inverse[q, gone] / pivot
            for i in range(k):
                inverse[q, i] -= rate * inverse[leaving, i]
    for i in range(k):
        inverse[leaving, i] = inverse[k - 1, i]
    for q in range(k):
        inverse[q, gone] = inverse[q, k - 1]
