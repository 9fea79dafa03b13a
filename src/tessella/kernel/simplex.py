"""A bounded dual simplex in which everything is boxed, compiled with Numba.

The problem is: maximise c.x over lower <= x <= upper with row_lower <= A.x <= row_upper, all bounds finite.  Then *every* basis
is dual feasible once each nonbasic variable sits at the end that its reduced cost asks for, so a solve may start from the
basis of any earlier problem with the same matrix, whatever happened to bounds and objective since.

Notation.  Structural variables are x, logical variables are r = A.x.  ``tight`` lists the k rows whose logical is nonbasic, ``basic``
the k structural variables in the basis; ``inverse`` is the inverse of A[tight, basic].  With multipliers y on the tight rows the
reduced costs are d = c - y.A.  One iteration takes the most violated variable out of the basis and walks along the convex,
piecewise linear dual function past all breakpoints where its slope stays negative (the long step, or bound flipping, ratio
test).  Costs are perturbed a little, and more where that makes no progress, because ties make the dual simplex cycle.

Whatever the iterations did, *any* y proves a bound: c.x = d.x + y.r <= sum(max(d.lower, d.upper)) + sum(max(y.row_lower, y.row_upper)).
`proved_bound` computes this with its own rounding error added (Neumaier and Shcherbina, Math. Prog. 2004).  The answer's validity
rests on that function alone, its tightness on the rest.

All compiled code is in this one file: the on-disk cache does not notice a changed callee in another file.  State is passed as plain
arrays; tuples and views inside compiled code cost reference counting.
"""

from typing import Any

import numpy as np

from tessella.kernel.compiling import compiler
from tessella.network import Floats

OPTIMAL, STOPPED, PRUNED, INFEASIBLE = 0, 1, 2, 3

_EPS = 2.220446049250313e-16
_TINY = 1e-300  # more than all products that underflow can have lost
_REFACTOR_EVERY = 40
_PIVOT = 1e-9
_VIOLATION = 1e-9
_NOISE = 1e-10  # of the largest cost
_MOST_NOISE = 1e4  # times that
_PATIENCE = 60  # iterations without progress


_compiled = compiler()


@_compiled
def _factor(a: Floats, tight: Any, basic: Any, k: int, inverse: Floats, work: Floats) -> bool:
    """Invert A[tight, basic] by Gauss-Jordan with partial pivoting; False if it is singular."""
    for i in range(k):
        for q in range(k):
            work[i, q] = a[tight[i], basic[q]]
            inverse[i, q] = 1.0 if i == q else 0.0
    for column in range(k):
        best = column
        for i in range(column + 1, k):
            if abs(work[i, column]) > abs(work[best, column]):
                best = i
        pivot = work[best, column]
        if abs(pivot) < _PIVOT:
            return False
        for q in range(k):
            work[best, q], work[column, q] = work[column, q], work[best, q]
            inverse[best, q], inverse[column, q] = inverse[column, q], inverse[best, q]
        for q in range(k):
            work[column, q] /= pivot
            inverse[column, q] /= pivot
        for i in range(k):
            if i != column:
                factor = work[i, column]
                if factor != 0.0:
                    for q in range(k):
                        work[i, q] -= factor * work[column, q]
                        inverse[i, q] -= factor * inverse[column, q]
    return True


@_compiled
def _restore(a: Floats, tight: Any, basic: Any, k: int, inverse: Floats, work: Floats) -> int:
    """Factor a basis; drop rows and columns until it is regular.  Any regular part is a valid start."""
    while k > 0 and not _factor(a, tight, basic, k, inverse, work):
        k -= 1
    return k


@_compiled
def proved_bound(a: Floats, c: Floats, lower: Floats, upper: Floats, row_lower: Floats, row_upper: Floats, y: Floats) -> float:
    """An upper bound on c.x that holds whatever y is, rounding included."""
    m, n = a.shape
    total, size = 0.0, 0.0
    for j in range(n):
        d, magnitude = c[j], abs(c[j])
        for i in range(m):
            if y[i] != 0.0:
                d -= y[i] * a[i, j]
                magnitude += abs(y[i] * a[i, j])
        total += d * upper[j] if d > 0.0 else d * lower[j]
        size += magnitude * max(abs(lower[j]), abs(upper[j]))
    for i in range(m):
        if y[i] != 0.0:
            total += y[i] * (row_upper[i] if y[i] > 0.0 else row_lower[i])
            size += abs(y[i]) * max(abs(row_lower[i]), abs(row_upper[i]))
    return total + 2.0 * (n + m + 8) * _EPS * size + (_TINY if size > 0.0 else 0.0)


@_compiled
def _mark(tight: Any, basic: Any, k: int, place: Any, n: int) -> None:
    """Where each variable stands in the basis' lists: basic structurals, and rows that are tight; -1 elsewhere."""
    for j in range(len(place)):
        place[j] = -1
    for q in range(k):
        place[basic[q]] = q
        place[n + tight[q]] = q


@_compiled
def _duals(a: Floats, c: Floats, tight: Any, basic: Any, k: int, inverse: Floats, y: Floats, d: Floats) -> None:
    """Multipliers y of the tight rows, and reduced costs d = c - y.A."""
    m, n = a.shape
    for i in range(m):
        y[i] = 0.0
    for p in range(k):
        value = 0.0
        for q in range(k):
            value += c[basic[q]] * inverse[q, p]
        y[tight[p]] = value
    for j in range(n):
        d[j] = c[j]
    for p in range(k):
        factor, row = y[tight[p]], tight[p]
        for j in range(n):
            d[j] -= factor * a[row, j]
    for q in range(k):
        d[basic[q]] = 0.0


@_compiled
def _point(
    a: Floats,
    lower: Floats,
    upper: Floats,
    row_lower: Floats,
    row_upper: Floats,
    tight: Any,
    basic: Any,
    k: int,
    inverse: Floats,
    y: Floats,
    d: Floats,
    place: Any,
    x: Floats,
    rows: Floats,
    times: Floats,
) -> float:
    """The basis' point and row values; returns the value of the dual function."""
    m, n = a.shape
    value: Any = 0.0
    for j in range(n):
        if place[j] < 0:
            x[j] = upper[j] if d[j] > 0.0 else lower[j]
            value += d[j] * x[j]
        else:
            x[j] = 0.0
    for p in range(k):
        row = tight[p]
        rows[row] = row_upper[row] if y[row] > 0.0 else row_lower[row]
        value += y[row] * rows[row]
        total = rows[row]
        for j in range(n):
            total -= a[row, j] * x[j]
        times[p] = total
    for q in range(k):
        total = 0.0
        for p in range(k):
            total += inverse[q, p] * times[p]
        x[basic[q]] = total
    for i in range(m):
        if place[n + i] < 0:
            total = 0.0
            for j in range(n):
                total += a[i, j] * x[j]
            rows[i] = total
    return value


@_compiled
def _most_violated(
    lower: Floats, upper: Floats, row_lower: Floats, row_upper: Floats, basic: Any, k: int, place: Any, x: Floats, rows: Floats
) -> Any:
    """The basic variable furthest outside its bounds (n + i for row i, -1 if none), and by how much (negative: below)."""
    n, leaving, worst, violation = len(x), -1, _VIOLATION, 0.0
    for q in range(k):
        j = basic[q]
        over, under = x[j] - upper[j], lower[j] - x[j]
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
    return leaving, violation


@_compiled
def _tableau_row(a: Floats, tight: Any, basic: Any, k: int, inverse: Floats, place: Any, leaving: int, alpha: Floats) -> None:
    """The leaving variable in terms of nonbasic structurals (alpha[:n]) and tight logicals (alpha[n:n+k])."""
    n = a.shape[1]
    if leaving < n:
        for p in range(k):
            alpha[n + p] = inverse[place[leaving], p]
        for j in range(n):
            alpha[j] = 0.0
    else:
        row = leaving - n
        for p in range(k):
            total = 0.0
            for q in range(k):
                total += a[row, basic[q]] * inverse[q, p]
            alpha[n + p] = total
        for j in range(n):
            alpha[j] = a[row, j]
    for p in range(k):
        factor, row = alpha[n + p], tight[p]
        for j in range(n):
            alpha[j] -= factor * a[row, j]


@_compiled
def _sift(times: Floats, order: Any, start: int, count: int) -> None:
    """Restore the heap below one entry."""
    parent = start
    while True:
        child = 2 * parent + 1
        if child >= count:
            return
        if child + 1 < count and times[child + 1] < times[child]:
            child += 1
        if times[parent] <= times[child]:
            return
        times[parent], times[child] = times[child], times[parent]
        order[parent], order[child] = order[child], order[parent]
        parent = child


@_compiled
def _entering(
    lower: Floats,
    upper: Floats,
    row_lower: Floats,
    row_upper: Floats,
    tight: Any,
    k: int,
    y: Floats,
    d: Floats,
    alpha: Floats,
    place: Any,
    times: Floats,
    order: Any,
    violation: float,
) -> int:
    """The long-step ratio test: j for a structural, n + p for the tight row at p, -1 if the dual is unbounded."""
    n, count = len(lower), 0
    side = 1.0 if violation > 0.0 else -1.0
    for j in range(n):
        if place[j] < 0:
            step = side * alpha[j]
            if abs(step) > _PIVOT and (d[j] > 0.0) == (step > 0.0):
                times[count], order[count] = abs(d[j] / step), j
                count += 1
    for p in range(k):
        step = side * alpha[n + p]
        if abs(step) > _PIVOT and (y[tight[p]] > 0.0) == (step > 0.0):
            times[count], order[count] = abs(y[tight[p]] / step), n + p
            count += 1
    for start in range(count // 2 - 1, -1, -1):
        _sift(times, order, start, count)
    slope, first = -abs(violation), -1
    while count > 0:
        first = order[0]
        if first < n:
            slope += abs(alpha[first]) * (upper[first] - lower[first])
        else:
            row = tight[first - n]
            slope += abs(alpha[first]) * (row_upper[row] - row_lower[row])
        if slope >= 0.0:
            return first
        count -= 1
        times[0], order[0] = times[count], order[count]
        _sift(times, order, 0, count)
    return first if slope > -_VIOLATION else -1  # a slope of 0 up to rounding is not unbounded


@_compiled
def _proved_infeasible(
    a: Floats,
    lower: Floats,
    upper: Floats,
    row_lower: Floats,
    row_upper: Floats,
    tight: Any,
    k: int,
    alpha: Floats,
    leaving: int,
    violation: float,
    ray: Floats,
    zero: Floats,
) -> bool:
    """Whether the unbounded direction of the dual proves, rounding included, that no point satisfies all rows."""
    m, n = a.shape
    side = 1.0 if violation > 0.0 else -1.0
    for i in range(m):
        ray[i] = 0.0
    for j in range(n):
        zero[j] = 0.0
    for p in range(k):
        ray[tight[p]] = -side * alpha[n + p]
    if leaving >= n:
        ray[leaving - n] = side
    return proved_bound(a, zero, lower, upper, row_lower, row_upper, ray) < 0.0


@_compiled
def _exchange(
    a: Floats,
    tight: Any,
    basic: Any,
    k: int,
    inverse: Floats,
    place: Any,
    alpha: Floats,
    leaving: int,
    entering: int,
    column: Floats,
) -> int:
    """Update the inverse for one exchange of variables; returns the new size of the basis."""
    n = a.shape[1]
    if entering < n:
        for q in range(k):
            total = 0.0
            for p in range(k):
                total += inverse[q, p] * a[tight[p], entering]
            column[q] = total
    if leaving >= n and entering < n:  # a row becomes tight, a variable basic: border
        pivot = alpha[entering]
        for q in range(k):
            for p in range(k):
                inverse[q, p] += column[q] * alpha[n + p] / pivot
        for q in range(k):
            inverse[q, k] = -column[q] / pivot
            inverse[k, q] = -alpha[n + q] / pivot
        inverse[k, k] = 1.0 / pivot
        tight[k], basic[k] = leaving - n, entering
        return k + 1
    if leaving >= n:  # one row for another
        gone = entering - n
        for q in range(k):
            value = inverse[q, gone] / alpha[n + gone]
            for p in range(k):
                inverse[q, p] -= value * alpha[n + p]
            inverse[q, gone] = value
        tight[gone] = leaving - n
        return k
    spot = place[leaving]
    if entering < n:  # one variable for another
        for p in range(k):
            inverse[spot, p] /= column[spot]
        for q in range(k):
            if q != spot:
                for p in range(k):
                    inverse[q, p] -= column[q] * inverse[spot, p]
        basic[spot] = entering
        return k
    gone = entering - n  # a variable leaves, a row becomes loose: shrink
    pivot = inverse[spot, gone]
    for q in range(k):
        if q != spot:
            value = inverse[q, gone] / pivot
            for p in range(k):
                inverse[q, p] -= value * inverse[spot, p]
    for p in range(k):
        inverse[spot, p] = inverse[k - 1, p]
    for q in range(k):
        inverse[q, gone] = inverse[q, k - 1]
    basic[spot], tight[gone] = basic[k - 1], tight[k - 1]
    return k - 1


@_compiled
def solve(
    a: Floats,
    c: Floats,
    lower: Floats,
    upper: Floats,
    row_lower: Floats,
    row_upper: Floats,
    tight: Any,
    basic: Any,
    k: int,
    noise: Floats,
    square: Floats,
    vectors: Floats,
    marks: Any,
    y: Floats,
    x: Floats,
    rows: Floats,
    cutoff: float,
    most: int,
) -> tuple[int, int, int, float]:
    """Maximise; see the top of the file.

    Parameters
    ----------
    a, c, lower, upper, row_lower, row_upper
        The problem.
    tight, basic, k
        The basis to start from, overwritten by the last one.
    noise
        One number of size 1 per variable, by which costs are perturbed.
    square, vectors, marks
        Scratch: 2 squares of min(m, n) + 1; 5 rows of m + n floats; 2 rows of m + n integers.
    y, x, rows
        Results: multipliers, point, and its row values.
    cutoff
        Stop as soon as the maximum is proved to be at most this.
    most
        Stop after this many iterations.

    Returns
    -------
    status
        OPTIMAL, STOPPED, PRUNED or INFEASIBLE (proved too).
    k
        Size of the last basis.
    iterations
        How many there were.
    bound
        A proved upper bound; minus infinity if infeasible.
    """
    n = a.shape[1]
    inverse, work = square[0], square[1]
    d, alpha, times, column, cost = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]
    place, order = marks[0], marks[1]
    k = _restore(a, tight, basic, k, inverse, work)
    since, stalled, iterations, status, best, cleaned = 0, 0, 0, STOPPED, np.inf, False
    largest = 0.0
    for j in range(n):
        largest = max(largest, abs(c[j]))
    smallest = _NOISE * largest if largest > 0.0 else _NOISE
    perturbation = smallest
    for j in range(n):
        cost[j] = c[j] + perturbation * noise[j]
    _mark(tight, basic, k, place, n)
    while True:
        _duals(a, cost, tight, basic, k, inverse, y, d)
        value = _point(a, lower, upper, row_lower, row_upper, tight, basic, k, inverse, y, d, place, x, rows, times)
        if value < cutoff and proved_bound(a, c, lower, upper, row_lower, row_upper, y) <= cutoff:
            status = PRUNED
            break
        leaving, violation = _most_violated(lower, upper, row_lower, row_upper, basic, k, place, x, rows)
        if leaving < 0 and (perturbation <= smallest or cleaned):
            status = OPTIMAL
            break
        if iterations >= most:
            break
        iterations += 1
        since += 1
        if value < best - 1e-12 * abs(best):
            best, stalled = value, 0
        else:
            stalled += 1
        if leaving < 0 or stalled >= _PATIENCE:
            # optimal for costs perturbed too much: go on with the true ones; or cycling: break ties more strongly
            cleaned = leaving < 0
            perturbation = smallest if cleaned else min(100.0 * perturbation, _MOST_NOISE * smallest)
            best, stalled = np.inf, 0
            for j in range(n):
                cost[j] = c[j] + perturbation * noise[j]
            continue
        _tableau_row(a, tight, basic, k, inverse, place, leaving, alpha)
        entering = _entering(lower, upper, row_lower, row_upper, tight, k, y, d, alpha, place, times, order, violation)
        if entering < 0:
            if _proved_infeasible(a, lower, upper, row_lower, row_upper, tight, k, alpha, leaving, violation, times, column):
                return INFEASIBLE, k, iterations, -np.inf
            break
        k = _exchange(a, tight, basic, k, inverse, place, alpha, leaving, entering, column)
        if since >= _REFACTOR_EVERY:
            since = 0
            k = _restore(a, tight, basic, k, inverse, work)
        _mark(tight, basic, k, place, n)
    return status, k, iterations, proved_bound(a, c, lower, upper, row_lower, row_upper, y)
