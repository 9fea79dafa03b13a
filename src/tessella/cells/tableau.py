"""The linear program of a cell unless inputs are many times the first layer's rows, compiled with Numba: a dual simplex method in a dense tableau.

What a state is, `tessella.cells.state.Tableaus` says.  A pivot exchanges a line and a column, and updates everything: up to a few hundred inputs that takes less than to work out of a basis what
an iteration needs, and columns over all lines are what processors like.

The path is chosen by the tableau, and so by rounding; what is told is not.  A point is put into the rows themselves, and a proof adds rows up, in double precision (`tessella.numerics` explains
margins).  If either fails, the tableau is computed anew from the rows, and if it still fails the cell is unclear.
"""

import numpy as np

from tessella.cells.emptiness import is_empty
from tessella.cells.rows import value
from tessella.cells.state import (
    COST,
    END,
    FAVOUR,
    FEASIBLE,
    HIGHEST,
    INFEASIBLE,
    LOWEST,
    REACH,
    UNCLEAR,
    VALUE,
    WORTH,
    Cell,
    Tableaus,
)
from tessella.kernel.functions import apart, compiled, inlined
from tessella.kernel.record import Matrix
from tessella.numerics import CLOSE, EDGE, MARGIN, PIVOT, SINGULAR

_REBUILD_EVERY = 120  # pivots
_SMALL = 1e-5  # after a pivot like that, too
_MENDED = 1e-30  # costs that had the wrong sign


@compiled
def copy(cell: Cell, s: int, t: int) -> None:
    """Make state t a copy of state s."""
    states, points = cell.tableaus, cell.points
    held, age, columns, lines, table = states.held, states.age, states.columns, states.lines, states.table
    of_lines, of_columns = states.of_lines, states.of_columns
    n, number = columns.shape[1], held[s]
    held[t], age[t] = number, age[s]
    for j in range(n):
        for i in range(number):
            table[t, j, i] = table[s, j, i]
    for part in range(4):
        for i in range(number):
            of_lines[t, part, i] = of_lines[s, part, i]
    for i in range(number):
        lines[t, i] = lines[s, i]
    for j in range(n):
        for part in range(4):
            of_columns[t, part, j] = of_columns[s, part, j]
        columns[t, j], points[t, j] = columns[s, j], points[s, j]


@inlined
def _set_column(states: Tableaus, s: int, j: int, name: int, side: float, equal: int) -> None:
    """Let a variable be a column of state s, at its bound: an input at the given side, a slack at its lower one."""
    end, reach, favours = 0.0, 0.0, 0.0
    if name < 0:
        end, reach, favours = side * EDGE, 2.0 * EDGE, side
    elif name < equal:
        end, reach, favours = MARGIN, np.inf, -1.0
    states.columns[s, j], states.of_columns[s, END, j], states.of_columns[s, REACH, j], states.of_columns[s, FAVOUR, j] = (
        name,
        end,
        reach,
        favours,
    )


@inlined
def _set_line(states: Tableaus, s: int, i: int, name: int, equal: int, rows: Matrix) -> None:
    """Let a variable be a line of state s, with its bounds."""
    lowest, highest, worth = -EDGE, EDGE, 1.0
    if name >= 0:
        lowest, highest = (MARGIN, np.inf) if name < equal else (0.0, 0.0)
        worth = 1.0 / rows[name, rows.shape[1] - 2]
    states.lines[s, i], states.of_lines[s, LOWEST, i], states.of_lines[s, HIGHEST, i], states.of_lines[s, WORTH, i] = (
        name,
        lowest,
        highest,
        worth,
    )


@inlined
def _load(cell: Cell, s: int, count: int, equal: int) -> None:
    """Give state s lines for the rows that have come since its point was found."""
    states, rows, point = cell.tableaus, cell.rows, cell.points[s]
    columns, lines, table, values = states.columns[s], states.lines[s], states.table[s], states.of_lines[s, VALUE]
    n, held = len(point), states.held[s]
    for row in range(held, count):
        for j in range(n):
            name = columns[j]
            table[j, row] = rows[row, -1 - name] if name < 0 else 0.0
        for i in range(held):
            name = lines[i]
            if name < 0:
                factor = rows[row, -1 - name]
                for j in range(n):
                    table[j, row] += factor * table[j, i]
        values[row] = value(rows[row], point)
        _set_line(states, s, row, row, equal, rows)
    states.held[s] = count


@apart
def _restart(cell: Cell, s: int, count: int, equal: int) -> None:
    """Let all inputs be columns of state s, each at the end that its cost asks for."""
    states, start, point = cell.tableaus, cell.start, cell.points[s]
    costs, ends = states.of_columns[s, COST], states.of_columns[s, END]
    states.age[s] = states.held[s] = 0
    for j in range(len(start)):
        _set_column(states, s, j, -1 - j, 1.0 if start[j] > 0.0 else -1.0, equal)
        point[j], costs[j] = ends[j], start[j]
    _load(cell, s, count, equal)


@inlined
def _move(states: Tableaus, s: int, j: int, step: float) -> None:
    """Move all lines of state s as column j moves."""
    values, column = states.of_lines[s, VALUE], states.table[s, j]
    for i in range(states.held[s]):
        values[i] += step * column[i]


@inlined
def _pivot(states: Tableaus, s: int, at: int, column: int) -> None:
    """Express everything in state s by line ``at``'s variable instead of a column's."""
    table, costs, changes = states.table[s], states.of_columns[s, COST], states.changes
    number = states.held[s]
    rate, cost = 1.0 / table[column, at], costs[column]
    for i in range(number):
        changes[i] = table[column, i]
        table[column, i] = 0.0
    changes[at], table[column, at], costs[column] = 0.0, -1.0, 0.0
    for j in range(len(costs)):
        factor = -rate * table[j, at]
        for i in range(number):
            table[j, i] += factor * changes[i]
        costs[j] += factor * cost
        table[j, at] = factor


@inlined
def _correct(states: Tableaus, s: int) -> None:
    """Mend costs of state s to which rounding gave the wrong sign."""
    costs, favours = states.of_columns[s, COST], states.of_columns[s, FAVOUR]
    for j in range(len(costs)):
        sign = favours[j]
        costs[j] = costs[j] if costs[j] * sign > 0.0 else _MENDED * sign


@inlined
def _clear(cell: Cell, s: int) -> int:
    """Let all inputs be columns of state s, at zero, and all rows lines; how many rows were columns.

    Those rows are listed in ``steps``; ``rates`` says of each input whether it was a column.
    """
    states, rows, start = cell.tableaus, cell.rows, cell.start
    columns, lines, table, values, costs = (
        states.columns[s],
        states.lines[s],
        states.table[s],
        states.of_lines[s, VALUE],
        states.of_columns[s, COST],
    )
    taken, listed, n, tight = states.rates, states.steps, len(start), 0
    for j in range(n):
        taken[j] = 0.0
    for j in range(n):
        name = columns[j]
        if name < 0:
            taken[-1 - name] = 1.0
        else:
            listed[tight] = name
            tight += 1
    for j in range(n):
        columns[j], costs[j] = -1 - j, start[j]
        for i in range(states.held[s]):
            table[j, i] = rows[i, j]
    for i in range(states.held[s]):
        lines[i], values[i] = i, rows[i, n]
    return tight


@apart
def _rebuild(cell: Cell, s: int, equal: int) -> bool:
    """Compute all lines of state s anew for the same columns; False if the rows among these depend on each other."""
    states = cell.tableaus
    columns, lines, table, values = states.columns[s], states.lines[s], states.table[s], states.of_lines[s, VALUE]
    costs, ends, taken, listed = states.of_columns[s, COST], states.of_columns[s, END], states.rates, states.steps
    n = len(costs)
    for k in range(_clear(cell, s)):
        line, best, spot = int(listed[k]), SINGULAR, -1
        for j in range(n):
            if taken[j] == 0.0 and abs(table[j, line]) > best:
                best, spot = abs(table[j, line]), j
        if spot < 0:
            return False
        taken[spot] = 1.0
        step = -values[line] / table[spot, line]
        _move(states, s, spot, step)
        values[line] = step
        _pivot(states, s, line, spot)
        columns[spot], lines[line] = line, -1 - spot
    for j in range(n):
        _set_column(states, s, j, columns[j], 1.0 if costs[j] > 0.0 else -1.0, equal)
        _move(states, s, j, ends[j])
    for i in range(states.held[s]):
        _set_line(states, s, i, lines[i], equal, cell.rows)
    _correct(states, s)
    states.age[s] = 0
    return True


@inlined
def _worst(states: Tableaus, s: int) -> int:
    """The line of state s whose variable is farthest beyond its bounds; -1 if none is."""
    values, lowest, highest, worth = (
        states.of_lines[s, VALUE],
        states.of_lines[s, LOWEST],
        states.of_lines[s, HIGHEST],
        states.of_lines[s, WORTH],
    )
    scores, number, leaving, best = states.changes, states.held[s], -1, 0.0
    for i in range(number):
        over = max(lowest[i] - values[i], values[i] - highest[i])
        scores[i] = over * over * worth[i] if over > CLOSE else 0.0
    for i in range(number):  # a loop of its own: this one is not vectorised
        if scores[i] > best:
            leaving, best = i, scores[i]
    return leaving


@inlined
def _turn(states: Tableaus, s: int, at: int, side: float, need: float) -> int:
    """The column at which the falling dual function turns; -1 if there is none.  Columns before it go to their other ends."""
    table, costs, reach = states.table[s], states.of_columns[s, COST], states.of_columns[s, REACH]
    ends, favours, rates, steps = states.of_columns[s, END], states.of_columns[s, FAVOUR], states.rates, states.steps
    n = len(costs)
    for j in range(n):
        rates[j] = side * table[j, at]
    for j in range(n):
        step = -costs[j] / rates[j]
        steps[j] = step if step > 0.0 and reach[j] > 0.0 and abs(rates[j]) > PIVOT else np.inf
    while True:
        spot, least = -1, np.inf
        for j in range(n):
            if steps[j] < least:
                spot, least = j, steps[j]
        if spot < 0:
            return -1
        change = reach[spot] * abs(rates[spot])
        if change >= need:
            return spot
        need -= change
        _move(states, s, spot, -2.0 * ends[spot])
        ends[spot], favours[spot], steps[spot] = -ends[spot], -favours[spot], np.inf


@inlined
def _is_inside(cell: Cell, s: int, equal: int) -> bool:
    """Whether the point of state s, which is put into its place, lies in the cell by the rows themselves.

    Equations are met up to an error that can be mended without a change of the point by as much as a margin; for that they must be independent.
    """
    states, rows, point = cell.tableaus, cell.rows, cell.points[s]
    columns, lines, table = states.columns[s], states.lines[s], states.table[s]
    ends, values = states.of_columns[s, END], states.of_lines[s, VALUE]
    n, number, fine = len(point), states.held[s], True
    for j in range(n):
        if columns[j] < 0:
            point[-1 - columns[j]] = ends[j]
    for i in range(number):
        if lines[i] < 0:
            point[-1 - lines[i]] = values[i]
            fine = fine and abs(values[i]) - EDGE <= CLOSE  # false for what is not a number, too
    for row in range(equal):
        fine = fine and value(rows[row], point) >= MARGIN - CLOSE
    met, change = 0, 0.0
    for j in range(n):
        row = columns[j]
        if row >= equal:
            met += 1
            most = 0.0
            for i in range(number):
                if lines[i] < 0:
                    most = max(most, abs(table[j, i]))
            change += most * (abs(value(rows[row], point)) + rows[row, n + 2])
    return fine and met == number - equal and change <= 0.1 * MARGIN


@inlined
def _is_refuted(cell: Cell, s: int, at: int, side: float, equal: int) -> bool:
    """Whether line ``at`` of state s, which no column can bring to its bound, proves that the cell is empty."""
    states, proof = cell.tableaus, cell.proof
    columns, table, members, shares = states.columns[s], states.table[s], proof.rows, proof.shares
    size = 0
    for j in range(len(columns)):
        if columns[j] >= 0:
            members[size], shares[size] = columns[j], -side * table[j, at]
            size += 1
    members[size], shares[size] = max(states.lines[s, at], -1), side
    proof.size = size + 1
    return is_empty(proof, equal, cell.rows, cell.space, cell.work)


@inlined
def _exchange(cell: Cell, s: int, at: int, column: int, side: float, equal: int) -> None:
    """Bring line ``at`` of state s to its bound, as far as a column takes it, and let the two change places."""
    states = cell.tableaus
    values, table = states.of_lines[s, VALUE], states.table[s]
    leaving, entering, pivot = states.lines[s, at], states.columns[s, column], table[column, at]
    target = states.of_lines[s, LOWEST, at] if side > 0.0 else states.of_lines[s, HIGHEST, at]
    step = (target - values[at]) / pivot
    _move(states, s, column, step)
    values[at] = states.of_columns[s, END, column] + step
    _pivot(states, s, at, column)
    _set_column(states, s, column, leaving, -side, equal)
    _set_line(states, s, at, entering, equal, cell.rows)
    _correct(states, s)
    states.age[s] = states.age[s] + 1 if abs(pivot) > _SMALL else _REBUILD_EVERY


@apart
def solve(cell: Cell, s: int, count: int, equal: int) -> int:
    """Find a point of the cell of the first ``count`` rows, those from ``equal`` on being equations, starting from state s, which becomes the cell's.

    FEASIBLE: points[s] is one.  INFEASIBLE: there is none, and ``proof`` says why.  UNCLEAR otherwise.
    """
    states = cell.tableaus
    age, restarted, steps, iterations = states.age, False, 0, 0
    values, lowest, highest = states.of_lines[s, VALUE], states.of_lines[s, LOWEST], states.of_lines[s, HIGHEST]
    if age[s] < 0:
        _restart(cell, s, count, equal)
    else:
        _load(cell, s, count, equal)
    status = UNCLEAR
    while True:
        at = _worst(states, s)
        if at < 0:
            if age[s] < _REBUILD_EVERY and _is_inside(cell, s, equal):
                status = FEASIBLE
                break
            if age[s] == 0 or not _rebuild(cell, s, equal):
                break
            continue
        late = steps > 60 + 6 * count
        if late or age[s] >= _REBUILD_EVERY:
            if not late and _rebuild(cell, s, equal):
                continue
            if restarted:
                break
            restarted, steps = True, 0
            _restart(cell, s, count, equal)
            continue
        steps += 1
        iterations += 1
        below = values[at] < lowest[at]
        side = 1.0 if below else -1.0
        column = _turn(states, s, at, side, abs((lowest[at] if below else highest[at]) - values[at]))
        if column < 0:  # no end to it: a combination of rows that is negative everywhere, unless it is too close to call
            if _is_refuted(cell, s, at, side, equal):
                status = INFEASIBLE
                break
            if age[s] == 0 or not _rebuild(cell, s, equal):
                break
            continue
        _exchange(cell, s, at, column, side, equal)
    cell.tally.tests += 1
    cell.tally.iterations += iterations
    return status
