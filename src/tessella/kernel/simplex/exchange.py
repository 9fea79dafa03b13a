"""The basis, and how it changes; the inverse follows (`tessella.kernel.basis`)."""

from tessella.kernel.basis import border, factor, replace_column, replace_row, shrink, times
from tessella.kernel.functions import apart, compiled
from tessella.kernel.simplex.state import Problem, State, Step, Work
from tessella.numerics import PIVOT


@compiled
def mark(state: State) -> None:
    """Note where variables stand in the basis' lists."""
    place = state.place
    n = len(state.point)
    for v in range(len(place)):
        place[v] = -1
    for q in range(state.size):
        place[state.basic[q]] = q
        place[n + state.tight[q]] = q


@apart
def restore(problem: Problem, state: State, work: Work) -> None:
    """Compute the inverse anew; the last rows and columns are dropped until it exists.  Any regular part of a basis is a valid one."""
    matrix, tight, basic, square = problem.matrix, state.tight, state.basic, work.square
    k = state.size
    while k > 0:
        for p in range(k):
            for q in range(k):
                square[p, q] = matrix[tight[p], basic[q]]
        if factor(square, state.inverse, k, PIVOT):
            break
        k -= 1
    state.size, state.age = k, 0
    mark(state)


@apart
def exchange(problem: Problem, state: State, step: Step, work: Work) -> None:
    """Let the leaving variable of a step leave the basis, and the entering one enter."""
    matrix, tight, basic, inverse, k = problem.matrix, state.tight, state.basic, state.inverse, state.size
    n, leaving, entering = len(problem.lower), step.leaving, step.entering
    if entering < n:
        for p in range(k):
            work.coefficients[p] = matrix[tight[p], entering]
        times(inverse, k, work.coefficients, work.column)
    if leaving >= n and entering < n:  # a row becomes tight, a structural basic
        border(inverse, k, step.by_row, work.column, step.by_column[entering])
        tight[k], basic[k], state.size = leaving - n, entering, k + 1
    elif leaving >= n:  # one row for another
        replace_row(inverse, k, entering - n, step.by_row)
        tight[entering - n] = leaving - n
    elif entering < n:  # one structural for another
        spot = state.place[leaving]
        replace_column(inverse, k, spot, work.column)
        basic[spot] = entering
    else:  # a structural leaves, a row becomes loose
        spot, gone = state.place[leaving], entering - n
        shrink(inverse, k, spot, gone)
        basic[spot], tight[gone], state.size = basic[k - 1], tight[k - 1], k - 1
    mark(state)
