"""The basis' multipliers and point, and who is furthest outside its ends there."""

from tessella.kernel.basis import times, times_left
from tessella.kernel.functions import apart
from tessella.kernel.record import Vector
from tessella.kernel.simplex.state import Problem, State, Step, Work

_VIOLATION = 1e-9  # what is less far outside is inside


@apart
def find_multipliers(problem: Problem, costs: Vector, state: State, work: Work) -> None:
    """The multipliers of the tight rows, and reduced costs."""
    matrix, tight, basic, k = problem.matrix, state.tight, state.basic, state.size
    multipliers, reduced = state.multipliers, state.reduced
    for q in range(k):
        work.coefficients[q] = costs[basic[q]]
    times_left(work.coefficients, state.inverse, k, work.column)
    for i in range(len(multipliers)):
        multipliers[i] = 0.0
    for j in range(len(costs)):
        reduced[j] = costs[j]
    for p in range(k):
        rate, row = work.column[p], matrix[tight[p]]
        multipliers[tight[p]] = rate
        for j in range(len(row)):
            reduced[j] -= rate * row[j]
    for q in range(k):
        reduced[basic[q]] = 0.0


@apart
def find_point(problem: Problem, state: State, work: Work) -> None:
    """The point where nonbasic variables sit at the ends that their costs ask for, the rows' values there, and the value of the dual function."""
    matrix, point, rows, place, reduced = problem.matrix, state.point, state.rows, state.place, state.reduced
    k, n, value = state.size, len(problem.lower), 0.0
    for j in range(n):
        point[j] = 0.0
        if place[j] < 0:
            point[j] = problem.upper[j] if reduced[j] > 0.0 else problem.lower[j]
            value += reduced[j] * point[j]
    for p in range(k):
        i = state.tight[p]
        row, total = matrix[i], 0.0
        rows[i] = problem.row_upper[i] if state.multipliers[i] > 0.0 else problem.row_lower[i]
        value += state.multipliers[i] * rows[i]
        for j in range(n):
            total += row[j] * point[j]
        work.coefficients[p] = rows[i] - total
    times(state.inverse, k, work.coefficients, work.column)
    for q in range(k):
        point[state.basic[q]] = work.column[q]
    for i in range(len(rows)):
        if place[n + i] < 0:
            row, total = matrix[i], 0.0
            for j in range(n):
                total += row[j] * point[j]
            rows[i] = total
    state.value = float(value)


@apart
def find_leaving(problem: Problem, state: State, step: Step) -> None:
    """The basic variable that is furthest outside its ends, and by how much."""
    point, rows, basic, place = state.point, state.rows, state.basic, state.place
    lower, upper, row_lower, row_upper = problem.lower, problem.upper, problem.row_lower, problem.row_upper
    n, leaving, worst, violation = len(point), -1, _VIOLATION, 0.0
    for q in range(state.size):
        j = basic[q]
        over, under = point[j] - upper[j], lower[j] - point[j]
        if over > worst:
            leaving, worst, violation = j, over, over
        if under > worst:
            leaving, worst, violation = j, under, -under
    for i in range(len(rows)):
        if place[n + i] < 0:
            over, under = rows[i] - row_upper[i], row_lower[i] - rows[i]
            if over > worst:
                leaving, worst, violation = n + i, over, over
            if under > worst:
                leaving, worst, violation = n + i, under, -under
    step.leaving, step.violation = leaving, float(violation)
