"""Who enters the basis: the direction in which the leaving variable comes back to its end, and the long-step ratio test along it."""

from tessella.kernel.basis import times_left
from tessella.kernel.functions import apart, compiled
from tessella.kernel.record import Vector, Whole
from tessella.kernel.simplex.state import Problem, State, Step, Work
from tessella.numerics import PIVOT

_ROUNDING = 1e-9  # of the dual function's slope: what is nearer to 0 may be 0


@apart
def find_direction(problem: Problem, state: State, step: Step, work: Work) -> None:
    """Write the leaving variable as a sum over nonbasic structurals and tight rows."""
    matrix, basic, k, n = problem.matrix, state.basic, state.size, len(problem.lower)
    by_column, by_row = step.by_column, step.by_row
    if step.leaving < n:
        spot = state.place[step.leaving]
        for p in range(k):
            by_row[p] = state.inverse[spot, p]
        for j in range(n):
            by_column[j] = 0.0
    else:
        row = matrix[step.leaving - n]
        for q in range(k):
            work.coefficients[q] = row[basic[q]]
        times_left(work.coefficients, state.inverse, k, by_row)
        for j in range(n):
            by_column[j] = row[j]
    for p in range(k):
        rate, row = by_row[p], matrix[state.tight[p]]
        for j in range(n):
            by_column[j] -= rate * row[j]


@compiled
def sift(keys: Vector, order: Whole, start: int, count: int) -> None:
    """Restore the heap of the first ``count`` keys, the least on top, below one of them."""
    parent = start
    while True:
        child = 2 * parent + 1
        if child >= count:
            return
        if child + 1 < count and keys[child + 1] < keys[child]:
            child += 1
        if keys[parent] <= keys[child]:
            return
        keys[parent], keys[child] = keys[child], keys[parent]
        order[parent], order[child] = order[child], order[parent]
        parent = child


@compiled
def _find_breakpoints(state: State, step: Step, work: Work) -> int:
    """A heap of all places where the dual function's slope changes; how many there are."""
    keys, order, place, reduced = work.breakpoints, work.order, state.place, state.reduced
    n, count, side = len(reduced), 0, 1.0 if step.violation > 0.0 else -1.0
    for j in range(n):
        if place[j] < 0:
            rate = side * step.by_column[j]
            if abs(rate) > PIVOT and (reduced[j] > 0.0) == (rate > 0.0):
                keys[count], order[count] = abs(reduced[j] / rate), j
                count += 1
    for p in range(state.size):
        rate, multiplier = side * step.by_row[p], state.multipliers[state.tight[p]]
        if abs(rate) > PIVOT and (multiplier > 0.0) == (rate > 0.0):
            keys[count], order[count] = abs(multiplier / rate), n + p
            count += 1
    for start in range(count // 2 - 1, -1, -1):
        sift(keys, order, start, count)
    return count


@apart
def find_entering(problem: Problem, state: State, step: Step, work: Work) -> None:
    """The variable at which the dual function turns; nobody if it falls for ever."""
    keys, order, n = work.breakpoints, work.order, len(problem.lower)
    count, slope, first = _find_breakpoints(state, step, work), -abs(step.violation), -1
    while count > 0 and slope < 0.0:
        first = order[0]
        if first < n:
            slope += abs(step.by_column[first]) * (problem.upper[first] - problem.lower[first])
        else:
            row = state.tight[first - n]
            slope += abs(step.by_row[first - n]) * (problem.row_upper[row] - problem.row_lower[row])
        count -= 1
        keys[0], order[0] = keys[count], order[count]
        sift(keys, order, 0, count)
    step.entering = first if slope > -_ROUNDING else -1
