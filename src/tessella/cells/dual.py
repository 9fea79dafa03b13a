"""The dual simplex method where inputs are many more than rows of the first layer: its steps, and the search for a point of a cell; compiled with Numba.

Every row of a cell is a combination of the frame's rows, so a cell lives in their space.  `tessella.cells.state.Bases` says what a state is.  One iteration takes out the row or basic input
that is violated most, walks past all breakpoints of the dual function while it falls (the long-step ratio test), and exchanges.  Costs and breakpoints are in single precision: they choose
the path, they prove nothing.

*Who leaves* is numbered: q is the basic input in place q, k + r is row r, for k tight rows.  *Who enters* is numbered: j is input j, -1 - i the tight row in place i, which becomes loose.

`tessella.cells.maximise` takes the same steps to find the largest value of a row.
"""

import numpy as np

from tessella.cells.emptiness import is_empty
from tessella.cells.pricing import price, turning
from tessella.cells.rows import value
from tessella.cells.state import FEASIBLE, INFEASIBLE, UNCLEAR, Bases, Cell, Space, Work
from tessella.kernel import basis
from tessella.kernel.functions import apart, compiled
from tessella.kernel.record import Matrix, Vector
from tessella.numerics import CLOSE, EDGE, MARGIN, PIVOT, SINGULAR

_REFACTOR_EVERY = 40  # pivots
_ROUGH, _ROUGH_AGAIN = (
    12,
    64,
)  # dimensions up to which, and beyond which, lengths of basic inputs are measured roughly: where that was faster
_factor, _times, _times_left = basis.factor, basis.times, basis.times_left
_border, _replace_row, _replace_column, _shrink = basis.border, basis.replace_row, basis.replace_column, basis.shrink


@compiled
def copy(cell: Cell, s: int, t: int) -> None:
    """Make state t a copy of state s."""
    bases, points, k = cell.bases, cell.points, cell.bases.size[s]
    bases.size[t], bases.age[t] = k, bases.age[s]
    for q in range(k):
        bases.tight[t, q], bases.basic[t, q], bases.multipliers[t, q] = (
            bases.tight[s, q],
            bases.basic[s, q],
            bases.multipliers[s, q],
        )
        for i in range(k):
            bases.inverse[t, q, i] = bases.inverse[s, q, i]
    for c in range(points.shape[1]):
        bases.base[t, c], points[t, c] = bases.base[s, c], points[s, c]
    for j in range(bases.costs.shape[1]):
        bases.costs[t, j] = bases.costs[s, j]


@compiled
def restart(cell: Cell, s: int) -> None:
    """Let the basis be empty, and every input at the end that its cost asks for."""
    bases, columns, start = cell.bases, cell.space.columns, cell.start
    base, costs = bases.base[s], bases.costs[s]
    bases.size[s] = bases.age[s] = 0
    for c in range(len(base)):
        base[c] = 0.0
    for j in range(len(start)):
        costs[j] = start[j]
        side = EDGE if start[j] > np.float32(0.0) else -EDGE
        for c in range(len(base)):
            base[c] += side * columns[j, c]


@compiled
def coefficient(row: Vector, column: Vector) -> float:
    """A row's coefficient at an input."""
    total = 0.0
    for c in range(len(column)):
        total += row[c] * column[c]
    return total


@compiled
def _refactor(cell: Cell, s: int) -> bool:
    """Compute the inverse anew; false if the basis is singular."""
    bases, rows, columns = cell.bases, cell.rows, cell.space.columns
    k, tight, basic = bases.size[s], bases.tight[s], bases.basic[s]
    for i in range(k):
        for q in range(k):
            bases.square[i, q] = coefficient(rows[tight[i]], columns[basic[q]])
    if not _factor(bases.square, bases.inverse[s], k, SINGULAR):
        return False
    bases.age[s] = 0
    return True


@compiled
def find_values(cell: Cell, s: int, equal: int, margin: float) -> None:
    """Put into ``values`` where basic inputs must stand so that tight rows are at their bounds: 0 for equations, the margin for others."""
    bases, rows, k = cell.bases, cell.rows, cell.bases.size[s]
    base, tight = bases.base[s], bases.tight[s]
    p = len(base)
    for i in range(k):
        row = tight[i]
        total = (0.0 if row >= equal else margin) - rows[row, p]
        for c in range(p):
            total -= rows[row, c] * base[c]
        bases.misses[i] = total
    _times(bases.inverse[s], k, bases.misses, bases.values)


@compiled
def rough_length(bases: Bases, rows: Matrix, s: int, q: int) -> float:
    """The square of a basic input's length in the space of inputs, as if rows were orthogonal."""
    p, total = rows.shape[1] - 3, 0.0
    for i in range(bases.size[s]):
        total += bases.inverse[s, q, i] * bases.inverse[s, q, i] * rows[bases.tight[s, i], p + 1]
    return total


@compiled
def length(bases: Bases, rows: Matrix, space: Space, work: Work, s: int, q: int) -> float:
    """The square of a basic input's length in the space of inputs; overwrites the combination in ``work``."""
    combination, gram, p, square = work.combination, space.gram, len(space.gram), 0.0
    for c in range(p):
        combination[c] = 0.0
    for i in range(bases.size[s]):
        rate, row = bases.inverse[s, q, i], bases.tight[s, i]
        for c in range(p):
            combination[c] += rate * rows[row, c]
    for c in range(p):
        total = 0.0
        for e in range(p):
            total += gram[c, e] * combination[e]
        square += total * combination[c]
    return square


@apart
def direct(cell: Cell, s: int, leaving: int, side: float) -> None:
    """Find the direction in which who leaves comes back to its bound: rates of the multipliers, the combination of rows that costs change by, and rates of the costs."""
    bases, rows, combination, pricing = cell.bases, cell.rows, cell.work.combination, cell.pricing
    k, p, tight, basic = bases.size[s], len(cell.space.frame), bases.tight[s], bases.basic[s]
    inverse, rates, pivot_row = bases.inverse[s], bases.rates, bases.pivot_row
    if leaving >= k:
        row = leaving - k
        for q in range(k):
            bases.coefficients[q] = coefficient(rows[row], cell.space.columns[basic[q]])
        _times_left(bases.coefficients, inverse, k, pivot_row)
        for i in range(k):
            rates[i] = -side * pivot_row[i]
        for c in range(p):
            combination[c] = side * rows[row, c]
    else:
        for i in range(k):
            pivot_row[i] = inverse[leaving, i]
            rates[i] = side * pivot_row[i]
        for c in range(p):
            combination[c] = 0.0
    for i in range(k):
        rate, row = rates[i], tight[i]
        for c in range(p):
            combination[c] += rate * rows[row, c]
    price(cell.space.light, combination, pricing.rates)
    for q in range(k):
        pricing.rates[basic[q]] = np.float32(0.0)


@apart
def ratio_test(cell: Cell, s: int, need: float, equal: int) -> tuple[float, int, float]:
    """How far to go in the direction, who enters there, and its pivot; beyond all inputs, -n - 1, if there is no end to it."""
    bases, pricing, columns, combination = cell.bases, cell.pricing, cell.space.columns, cell.work.combination
    n, theta, entering, pivot = len(columns), np.inf, -len(columns) - 1, 1.0
    for i in range(bases.size[s]):
        if bases.rates[i] < -PIVOT and bases.tight[s, i] < equal:
            step = max(bases.multipliers[s, i], 0.0) / -bases.rates[i]
            if step < theta:
                theta, entering = step, -1 - i
    while n > 0:
        spot = turning(pricing, bases.costs[s], need, theta)
        if spot < 0:
            break
        pivot = coefficient(combination, columns[spot])
        if abs(pivot) > PIVOT and abs(pivot) > 0.5 * abs(pricing.rates[spot]):
            theta, entering = float(pricing.steps[spot]), spot
            break
        pricing.rates[spot] = np.float32(0.0)  # single precision made it up
    return theta, entering, pivot


@compiled
def _flip(cell: Cell, base: Vector, step: float) -> None:
    """Let inputs whose costs change their sign before the step go to their other ends; four at a time."""
    pricing, columns, end = cell.pricing, cell.space.columns, np.float32(step)
    order, steps, rates, p = pricing.order, pricing.steps, pricing.rates, len(base)
    listed = order[len(columns)]
    whole = listed - listed % 4
    for i in range(0, whole, 4):  # what the list has too many counts as nothing
        j0, j1, j2, j3 = order[i], order[i + 1], order[i + 2], order[i + 3]
        f0 = 0.0 if steps[j0] >= end else 2.0 * EDGE if rates[j0] > 0.0 else -2.0 * EDGE
        f1 = 0.0 if steps[j1] >= end else 2.0 * EDGE if rates[j1] > 0.0 else -2.0 * EDGE
        f2 = 0.0 if steps[j2] >= end else 2.0 * EDGE if rates[j2] > 0.0 else -2.0 * EDGE
        f3 = 0.0 if steps[j3] >= end else 2.0 * EDGE if rates[j3] > 0.0 else -2.0 * EDGE
        for c in range(p):
            base[c] += f0 * columns[j0, c] + f1 * columns[j1, c] + f2 * columns[j2, c] + f3 * columns[j3, c]
    for i in range(whole, listed):
        j0 = order[i]
        f0 = 0.0 if steps[j0] >= end else 2.0 * EDGE if rates[j0] > 0.0 else -2.0 * EDGE
        for c in range(p):
            base[c] += f0 * columns[j0, c]


@apart
def go(cell: Cell, s: int, leaving: int, entering: int, theta: float, side: float) -> None:
    """Go that far in the direction: change costs, and the ends at which inputs sit; rounding must not change any other sign."""
    bases, pricing, columns = cell.bases, cell.pricing, cell.space.columns
    base, costs, rates, steps, step = bases.base[s], bases.costs[s], pricing.rates, pricing.steps, np.float32(theta)
    zero, least = np.float32(0.0), np.float32(1e-12)
    for j in range(len(costs)):
        old, rate = costs[j], rates[j]
        new, sign = old + step * rate, rate if steps[j] < step else old
        costs[j] = new if new * sign > zero else sign * least
    _flip(cell, base, theta)
    if entering >= 0:
        flip = EDGE if rates[entering] > zero else -EDGE
        costs[entering] = zero
        for c in range(len(base)):
            base[c] += flip * columns[entering, c]
    if leaving < bases.size[s]:
        j = bases.basic[s, leaving]
        costs[j] = np.float32(side * max(theta, 1e-30))
        for c in range(len(base)):
            base[c] += side * EDGE * columns[j, c]


@apart
def exchange(cell: Cell, s: int, leaving: int, entering: int, step: float, pivot: float) -> None:
    """Update multipliers, basis and inverse; ``step`` is what the leaving row's multiplier becomes, with its sign."""
    bases, rows, k = cell.bases, cell.rows, cell.bases.size[s]
    tight, basic, multipliers, inverse = bases.tight[s], bases.basic[s], bases.multipliers[s], bases.inverse[s]
    theta, gone = abs(step), -1 - entering
    for i in range(k):
        multipliers[i] += theta * bases.rates[i]
    if entering >= 0:
        for i in range(k):
            bases.coefficients[i] = coefficient(rows[tight[i]], cell.space.columns[entering])
        _times(inverse, k, bases.coefficients, bases.column)
    if leaving >= k and entering >= 0:  # a row becomes tight, an input basic
        _border(inverse, k, bases.pivot_row, bases.column, pivot)
        tight[k], basic[k], multipliers[k], bases.size[s] = leaving - k, entering, step, k + 1
    elif leaving >= k:  # one row for another
        _replace_row(inverse, k, gone, bases.pivot_row)
        tight[gone], multipliers[gone] = leaving - k, step
    elif entering >= 0:  # one input for another
        _replace_column(inverse, k, leaving, bases.column)
        basic[leaving] = entering
    else:  # an input leaves, a row becomes loose
        _shrink(inverse, k, leaving, gone)
        basic[leaving], tight[gone], multipliers[gone], bases.size[s] = basic[k - 1], tight[k - 1], multipliers[k - 1], k - 1


@compiled
def is_tight(bases: Bases, s: int, row: int) -> bool:
    """Whether a row is one of the tight ones; if one of these is violated, the inverse has drifted."""
    found = False
    for i in range(bases.size[s]):
        found = found or bases.tight[s, i] == row
    return found


@compiled
def _is_firm(cell: Cell, s: int, count: int, equal: int) -> bool:
    """Whether the equations of a state are independent, and so much so that their rounding errors cannot move the point by a margin."""
    bases, columns, combination = cell.bases, cell.space.columns, cell.work.combination
    p, k, found = columns.shape[1], bases.size[s], 0
    for i in range(k):
        if bases.tight[s, i] >= equal:
            found += 1
            error, most = cell.rows[bases.tight[s, i], p + 2], 0.0
            for q in range(k):
                most += abs(bases.inverse[s, q, i])
            if most * error <= 0.1 * MARGIN:  # entries of columns are at most 1
                continue
            for c in range(p):
                combination[c] = 0.0
            for q in range(k):
                j, rate = bases.basic[s, q], bases.inverse[s, q, i]
                for c in range(p):
                    combination[c] += rate * columns[j, c]
            for c in range(p):
                if abs(combination[c]) * error > 0.1 * MARGIN:
                    return False
    return found == count - equal


@compiled
def _worst(cell: Cell, s: int, count: int, equal: int) -> tuple[int, float, bool]:
    """Find the state's point; who is violated most there and by how much, -1 if nobody is, and whether everybody is within bounds, which is false for what is no number, too."""
    bases, rows, space = cell.bases, cell.rows, cell.space
    point, k, p = cell.points[s], bases.size[s], len(space.frame)
    rough = p <= _ROUGH or p > _ROUGH_AGAIN
    leaving, violation, best, fine = -1, 0.0, 0.0, True
    find_values(cell, s, equal, MARGIN)
    for c in range(p):
        point[c] = bases.base[s, c]
    for q in range(k):
        at, j = bases.values[q], bases.basic[s, q]
        for c in range(p):
            point[c] += at * space.columns[j, c]
        over = abs(at) - EDGE
        fine = fine and over <= CLOSE
        if over > CLOSE:
            score = over * over / (rough_length(bases, rows, s, q) if rough else length(bases, rows, space, cell.work, s, q))
            if score > best:
                leaving, best, violation = q, score, over if at > 0.0 else -over
    for row in range(count):
        total = value(rows[row], point) - (0.0 if row >= equal else MARGIN)
        fine = fine and total >= -CLOSE and (row < equal or total <= CLOSE)
        if total < -CLOSE or (row >= equal and total > CLOSE):
            score = total * total / rows[row, p + 1]
            if score > best:
                leaving, best, violation = k + row, score, total
    return leaving, violation, fine


@compiled
def _is_proved_empty(cell: Cell, s: int, leaving: int, side: float, equal: int) -> bool:
    """Whether the direction, to which there is no end, proves that the cell is empty: the cell's proof is that."""
    bases, proof, k = cell.bases, cell.proof, cell.bases.size[s]
    for i in range(k):
        proof.rows[i], proof.shares[i] = bases.tight[s, i], bases.rates[i]
    proof.rows[k], proof.shares[k] = max(leaving - k, -1), side
    proof.size = k + 1
    return is_empty(proof, equal, cell.rows, cell.space, cell.work)


@apart
def solve(cell: Cell, s: int, count: int, equal: int) -> int:
    """Find a point of the cell of the first ``count`` rows, those from ``equal`` on being equations, starting from state s, which changes.

    FEASIBLE: points[s] is one.  INFEASIBLE: the cell's proof shows that there is none.
    """
    bases, n, places = cell.bases, len(cell.space.columns), cell.bases.tight.shape[1]
    restarted, steps, most = False, 0, 60 + 6 * count + 60 * (count - equal)
    cell.tally.tests += 1
    if bases.age[s] < 0:
        restart(cell, s)
    while True:
        k = bases.size[s]
        leaving, violation, fine = _worst(cell, s, count, equal)
        if leaving < 0:
            return FEASIBLE if fine and (count == equal or _is_firm(cell, s, count, equal)) else UNCLEAR
        drifted = leaving >= k and is_tight(bases, s, leaving - k)
        again = drifted or bases.age[s] >= _REFACTOR_EVERY or steps > most
        if again and steps <= most and bases.age[s] > 0 and _refactor(cell, s):
            continue
        theta, entering, pivot, side = 0.0, -1, 1.0, 1.0
        if not again:
            steps += 1
            cell.tally.iterations += 1
            bases.age[s] += 1
            side = 1.0 if (violation < 0.0) == (leaving >= k) else -1.0
            direct(cell, s, leaving, side)
            theta, entering, pivot = ratio_test(cell, s, abs(violation), equal)
            if entering < -n:
                return INFEASIBLE if _is_proved_empty(cell, s, leaving, side, equal) else UNCLEAR
            again = entering >= 0 and leaving >= k and k + 1 >= places  # more equations than unknowns: rounding made the pivot up
        if again:
            if restarted:
                return UNCLEAR
            restarted, steps = True, 0
            restart(cell, s)
            continue
        go(cell, s, leaving, entering, theta, side)
        exchange(cell, s, leaving, entering, side * theta, side * pivot)
