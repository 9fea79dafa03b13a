"""The linear program of the walk unless inputs are many times the first layer's rows, compiled with Numba: a dense tableau.

Every input, and the slack of every row, is a variable.  As many as there are inputs are *columns*, and sit at one of their bounds; all others, the *lines*, are affine functions of
these.  A pivot exchanges a line and a column, and updates everything: up to a few hundred inputs that takes less than to work out of a basis what an iteration needs, and columns over
all lines are what processors like.

The path is chosen by the tableau, and so by rounding; what is told is not.  A point is put into the rows themselves, and a proof adds rows up, in double precision (`tessella.counting.by_programs`
explains margins).  If either fails, the tableau is computed anew from the rows, and if it still fails the cell is unclear.

Places of a state, with n columns.  ``table``: n columns over all lines; then the lines' values, their lowest and highest ones, and what a violation of these counts.  ``vectors``: the
columns' values; the point; the columns' costs; how far they may go (0 for an equation: nowhere); the sign that their costs must have.  ``lists``: the names of columns (0) and lines
(1), a row by its number, input j as -1 - j; then (2) the number of columns, of pivots since all was computed anew, and of lines.
"""

from typing import Any

import numpy as np

from tessella.cells.old import rows as steps
from tessella.cells.old.rows import CLOSE, EDGE, FEASIBLE, INFEASIBLE, ITERATIONS, MARGIN, PIVOT, TESTS, UNCLEAR, is_empty
from tessella.kernel.compiling import compiler
from tessella.network import Floats

_REBUILD_EVERY = 120  # pivots
_SMALL = 1e-5  # after a pivot like that, too

_compiled = compiler(steps.__file__, _nrt=False)
_inlined = compiler(steps.__file__, _nrt=False, inline="always")  # arguments alone took a third of the time

# fmt: off


@_compiled
def copy(s: int, t: int, lists: Any, table: Floats, vectors: Floats) -> None:
    """Make state t a copy of state s."""
    n, lines = lists[s, 2, 0], lists[s, 2, 2]
    for i in range(3):
        lists[t, 2, i] = lists[s, 2, i]
    for j in range(n):
        lists[t, 0, j] = lists[s, 0, j]
    for i in range(lines):
        lists[t, 1, i] = lists[s, 1, i]
    for j in range(n + 4):
        for i in range(lines):
            table[t, j, i] = table[s, j, i]
    for j in range(vectors.shape[1]):
        vectors[t, j] = vectors[s, j]


@_inlined
def _set_column(s: int, j: int, name: int, side: float, equal: int, lists: Any, vectors: Floats) -> None:
    """Let a variable be a column, at its bound: an input at the given side, a slack at its lower one."""
    n = lists[s, 2, 0]
    lists[s, 0, j] = name
    if name < 0:
        vectors[s, j], vectors[s, 3 * n + j], vectors[s, 4 * n + j] = side * EDGE, 2.0 * EDGE, side
    elif name < equal:
        vectors[s, j], vectors[s, 3 * n + j], vectors[s, 4 * n + j] = MARGIN, np.inf, -1.0
    else:
        vectors[s, j], vectors[s, 3 * n + j], vectors[s, 4 * n + j] = 0.0, 0.0, 0.0


@_inlined
def _set_line(s: int, i: int, name: int, equal: int, rows: Floats, lists: Any, table: Floats) -> None:
    """Let a variable be a line, with its bounds."""
    n = lists[s, 2, 0]
    lists[s, 1, i] = name
    if name < 0:
        table[s, n + 1, i], table[s, n + 2, i], table[s, n + 3, i] = -EDGE, EDGE, 1.0
    else:
        table[s, n + 3, i] = 1.0 / rows[name, n + 1]
        if name < equal:
            table[s, n + 1, i], table[s, n + 2, i] = MARGIN, np.inf
        else:
            table[s, n + 1, i], table[s, n + 2, i] = 0.0, 0.0


@_inlined
def _load(s: int, count: int, equal: int, rows: Floats, lists: Any, table: Floats, vectors: Floats) -> None:
    """Lines for the rows that have come since the state's point was found."""
    n, held = lists[s, 2, 0], lists[s, 2, 2]
    for row in range(held, count):
        for j in range(n):
            name = lists[s, 0, j]
            table[s, j, row] = rows[row, -1 - name] if name < 0 else 0.0
        for i in range(held):
            name = lists[s, 1, i]
            if name < 0:
                factor = rows[row, -1 - name]
                for j in range(n):
                    table[s, j, row] += factor * table[s, j, i]
        total = rows[row, n]
        for j in range(n):
            total += rows[row, j] * vectors[s, n + j]
        table[s, n, row] = total
        _set_line(s, row, row, equal, rows, lists, table)
    lists[s, 2, 2] = count


@_compiled
def restart(s: int, count: int, equal: int, rows: Floats, lists: Any, table: Floats, vectors: Floats, start: Any) -> None:
    """All inputs as columns, each at the end that its cost asks for."""
    n = len(start)
    lists[s, 2, 0], lists[s, 2, 1], lists[s, 2, 2] = n, 0, 0
    for j in range(n):
        _set_column(s, j, -1 - j, 1.0 if start[j] > 0.0 else -1.0, equal, lists, vectors)
        vectors[s, n + j], vectors[s, 2 * n + j] = vectors[s, j], start[j]
    _load(s, count, equal, rows, lists, table, vectors)


@_inlined
def _move(s: int, j: int, step: float, lists: Any, table: Floats) -> None:
    """Move a column, and all lines with it."""
    n = lists[s, 2, 0]
    for i in range(lists[s, 2, 2]):
        table[s, n, i] += step * table[s, j, i]


@_inlined
def _pivot(s: int, at: int, column: int, lists: Any, table: Floats, vectors: Floats, scratch: Floats) -> None:
    """Express everything by a line's variable instead of a column's."""
    n, lines = lists[s, 2, 0], lists[s, 2, 2]
    rate, cost = 1.0 / table[s, column, at], vectors[s, 2 * n + column]
    for i in range(lines):
        scratch[2, i] = table[s, column, i]
        table[s, column, i] = 0.0
    scratch[2, at], table[s, column, at], vectors[s, 2 * n + column] = 0.0, -1.0, 0.0
    for j in range(n):
        factor = -rate * table[s, j, at]
        for i in range(lines):
            table[s, j, i] += factor * scratch[2, i]
        vectors[s, 2 * n + j] += factor * cost
        table[s, j, at] = factor


@_inlined
def _correct(s: int, lists: Any, vectors: Floats) -> None:
    """Mend costs to which rounding gave the wrong sign."""
    n = lists[s, 2, 0]
    for j in range(n):
        sign = vectors[s, 4 * n + j]
        vectors[s, 2 * n + j] = vectors[s, 2 * n + j] if vectors[s, 2 * n + j] * sign > 0.0 else 1e-30 * sign


@_compiled
def _rebuild(s: int, equal: int, rows: Floats, lists: Any, table: Floats, vectors: Floats, start: Any, scratch: Floats) -> bool:
    """Compute all lines anew for the same columns; False if the rows among these depend on each other."""
    n, lines, tight = lists[s, 2, 0], lists[s, 2, 2], 0
    for j in range(n):
        scratch[0, j] = 0.0  # whether an input is to be a column, or has made room for a row
    for j in range(n):
        name = lists[s, 0, j]
        if name < 0:
            scratch[0, -1 - name] = 1.0
        else:
            scratch[1, tight] = name
            tight += 1
    for j in range(n):
        lists[s, 0, j], vectors[s, 2 * n + j] = -1 - j, start[j]
        for i in range(lines):
            table[s, j, i] = rows[i, j]
    for i in range(lines):
        lists[s, 1, i], table[s, n, i] = i, rows[i, n]  # values where all columns are zero
    for k in range(tight):
        line, best, spot = np.int64(scratch[1, k]), 1e-14, -1
        for j in range(n):
            if scratch[0, j] == 0.0 and abs(table[s, j, line]) > best:
                best, spot = abs(table[s, j, line]), j
        if spot < 0:
            return False
        scratch[0, spot] = 1.0
        step = -table[s, n, line] / table[s, spot, line]
        _move(s, spot, step, lists, table)
        table[s, n, line] = step
        _pivot(s, line, spot, lists, table, vectors, scratch)
        lists[s, 0, spot], lists[s, 1, line] = line, -1 - spot
    for j in range(n):
        _set_column(s, j, lists[s, 0, j], 1.0 if vectors[s, 2 * n + j] > 0.0 else -1.0, equal, lists, vectors)
        _move(s, j, vectors[s, j], lists, table)
    for i in range(lines):
        _set_line(s, i, lists[s, 1, i], equal, rows, lists, table)
    _correct(s, lists, vectors)
    lists[s, 2, 1] = 0
    return True


@_inlined
def _worst(s: int, lists: Any, table: Floats, scratch: Floats) -> int:
    """The line whose variable is farthest beyond its bounds; -1 if none is."""
    n, lines, leaving, best = lists[s, 2, 0], lists[s, 2, 2], -1, 0.0
    for i in range(lines):
        value = table[s, n, i]
        over = max(table[s, n + 1, i] - value, value - table[s, n + 2, i])
        scratch[2, i] = over * over * table[s, n + 3, i] if over > CLOSE else 0.0
    for i in range(lines):  # a loop of its own: this one is not vectorised
        if scratch[2, i] > best:
            leaving, best = i, scratch[2, i]
    return leaving


@_inlined
def _turn(s: int, at: int, side: float, need: float, lists: Any, table: Floats, vectors: Floats, scratch: Floats) -> int:
    """The column at which the falling dual function turns; -1 if there is none.  Columns before it go to their other ends."""
    n = lists[s, 2, 0]
    for j in range(n):
        scratch[0, j] = side * table[s, j, at]
    for j in range(n):
        step = -vectors[s, 2 * n + j] / scratch[0, j]
        scratch[1, j] = step if step > 0.0 and vectors[s, 3 * n + j] > 0.0 and abs(scratch[0, j]) > PIVOT else np.inf
    while True:
        spot, least = -1, np.inf
        for j in range(n):
            if scratch[1, j] < least:
                spot, least = j, scratch[1, j]
        if spot < 0:
            return -1
        change = vectors[s, 3 * n + spot] * abs(scratch[0, spot])
        if change >= need:
            return spot
        need -= change
        _move(s, spot, -2.0 * vectors[s, spot], lists, table)
        vectors[s, spot], vectors[s, 4 * n + spot], scratch[1, spot] = -vectors[s, spot], -vectors[s, 4 * n + spot], np.inf


@_inlined
def _is_inside(s: int, equal: int, rows: Floats, lists: Any, table: Floats, vectors: Floats) -> bool:
    """Whether the point, which is put into its place, lies in the cell by the rows themselves.

    Equations are met up to an error that can be mended without a change of the point by as much as a margin; for that they must be independent.
    """
    n, lines, fine = lists[s, 2, 0], lists[s, 2, 2], True
    for j in range(n):
        if lists[s, 0, j] < 0:
            vectors[s, n - 1 - lists[s, 0, j]] = vectors[s, j]
    for i in range(lines):
        if lists[s, 1, i] < 0:
            value = table[s, n, i]
            vectors[s, n - 1 - lists[s, 1, i]] = value
            fine = fine and abs(value) - EDGE <= CLOSE  # false for what is not a number, too
    for row in range(equal):
        total = rows[row, n]
        for j in range(n):
            total += rows[row, j] * vectors[s, n + j]
        fine = fine and total >= MARGIN - CLOSE
    met, change = 0, 0.0
    for j in range(n):
        row = lists[s, 0, j]
        if row >= equal:
            met += 1
            error, most = rows[row, n], 0.0
            for k in range(n):
                error += rows[row, k] * vectors[s, n + k]
            for i in range(lines):
                if lists[s, 1, i] < 0:
                    most = max(most, abs(table[s, j, i]))
            change += most * (abs(error) + rows[row, n + 2])
    return bool(fine and met == lines - equal and change <= 0.1 * MARGIN)


@_compiled
def solve(
    s: int, count: int, equal: int, gram: Floats, frame: Floats, light: Any, columns: Floats, start: Any, rows: Floats, lists: Any,  # noqa: ARG001
    table: Floats, vectors: Floats, costs: Any, scratch: Floats, order: Any, prices: Any, bits: Any, counters: Any,  # noqa: ARG001
) -> int:
    """Find a point of the cell of the first ``count`` rows, those from ``equal`` on being equations, starting from state s.

    It takes the same as `tessella.cells.framed.solve`, some of it in vain, so that either can be called by address.
    """
    n, restarted, steps = lists[s, 2, 0], False, 0
    counters[TESTS] += 1
    _load(s, count, equal, rows, lists, table, vectors)
    while True:
        at = _worst(s, lists, table, scratch)
        if at < 0:
            if lists[s, 2, 1] < _REBUILD_EVERY and _is_inside(s, equal, rows, lists, table, vectors):
                return FEASIBLE
            if lists[s, 2, 1] == 0 or not _rebuild(s, equal, rows, lists, table, vectors, start, scratch):
                return UNCLEAR
            continue
        late = steps > 60 + 6 * count
        if late or lists[s, 2, 1] >= _REBUILD_EVERY:
            if not late and _rebuild(s, equal, rows, lists, table, vectors, start, scratch):
                continue
            if restarted:
                return UNCLEAR
            restarted, steps = True, 0
            restart(s, count, equal, rows, lists, table, vectors, start)
            continue
        steps += 1
        counters[ITERATIONS] += 1
        name, value = lists[s, 1, at], table[s, n, at]
        side = 1.0 if value < table[s, n + 1, at] else -1.0
        target = table[s, n + 1, at] if side > 0.0 else table[s, n + 2, at]
        column = _turn(s, at, side, abs(target - value), lists, table, vectors, scratch)
        if column < 0:  # no end to it: a combination of rows that is negative everywhere, unless it is too close to call
            for j in range(n):
                scratch[0, j] = -side * table[s, j, at] if lists[s, 0, j] >= 0 else 0.0
            if is_empty(s, max(name, -1), side, equal, True, frame, rows, lists, scratch, counters):
                return INFEASIBLE
            if lists[s, 2, 1] == 0 or not _rebuild(s, equal, rows, lists, table, vectors, start, scratch):
                return UNCLEAR
            continue
        pivot, entering = table[s, column, at], lists[s, 0, column]
        step = (target - table[s, n, at]) / pivot
        _move(s, column, step, lists, table)
        table[s, n, at] = vectors[s, column] + step
        _pivot(s, at, column, lists, table, vectors, scratch)
        _set_column(s, column, name, -side, equal, lists, vectors)
        _set_line(s, at, entering, equal, rows, lists, table)
        _correct(s, lists, vectors)
        lists[s, 2, 1] = lists[s, 2, 1] + 1 if abs(pivot) > _SMALL else _REBUILD_EVERY


# fmt: on
