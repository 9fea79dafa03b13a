"""What multipliers prove, rounding included, whatever they are.

c.x = d.x + y.r with d = c - y.A and r = A.x, so c.x <= sum(max(d lower, d upper)) + sum(max(y row_lower, y row_upper)) for *any* y (Neumaier and Shcherbina, Math. Prog. 2004).
"""

from tessella.kernel.functions import apart, compiled
from tessella.kernel.record import Vector
from tessella.kernel.simplex.state import Problem, State, Step, Work
from tessella.numerics import EPS

_TINY = 1e-300  # more than what so many products as there can be lose where they underflow


@compiled
def _subtract(problem: Problem, costs: Vector, multipliers: Vector, work: Work) -> None:
    """Put into ``work`` the reduced costs of all structurals, and what was added up for these in absolute value."""
    matrix, reduced, sizes = problem.matrix, work.reduced, work.sizes
    for j in range(len(costs)):
        reduced[j], sizes[j] = costs[j], abs(costs[j])
    for i in range(len(multipliers)):
        rate = multipliers[i]
        if rate != 0.0:
            row = matrix[i]
            for j in range(len(row)):
                product = rate * row[j]
                reduced[j] -= product
                sizes[j] += abs(product)


@apart
def proved_bound(problem: Problem, costs: Vector, multipliers: Vector, work: Work) -> float:
    """An upper bound on costs.x over all points that satisfy the problem, whatever the multipliers are, with its own rounding error added."""
    reduced, sizes = work.reduced, work.sizes
    lower, upper, row_lower, row_upper = problem.lower, problem.upper, problem.row_lower, problem.row_upper
    n, m = len(lower), len(row_lower)
    _subtract(problem, costs, multipliers, work)
    total, size, reach, given = 0.0, 0.0, 1.0, False
    for j in range(n):
        end = max(abs(lower[j]), abs(upper[j]))
        total += reduced[j] * (upper[j] if reduced[j] > 0.0 else lower[j])
        size += sizes[j] * end
        reach += end
        given = given or costs[j] != 0.0
    for i in range(m):
        rate = multipliers[i]
        total += rate * (row_upper[i] if rate > 0.0 else row_lower[i])
        size += abs(rate) * max(abs(row_lower[i]), abs(row_upper[i]))
        given = given or rate != 0.0
    return total + 2.0 * (n + m + 8) * EPS * size + (_TINY * reach if given else 0.0)


@compiled
def proves_empty(problem: Problem, state: State, step: Step, work: Work) -> bool:
    """Whether the step's direction, in which the dual function falls for ever, proves that no point satisfies all rows."""
    ray, zero, n = work.ray, state.reduced, len(problem.lower)
    side = 1.0 if step.violation > 0.0 else -1.0
    for i in range(len(ray)):
        ray[i] = 0.0
    for j in range(n):
        zero[j] = 0.0
    for p in range(state.size):
        ray[state.tight[p]] = -side * step.by_row[p]
    if step.leaving >= n:
        ray[step.leaving - n] = side
    return proved_bound(problem, zero, ray, work) < 0.0
