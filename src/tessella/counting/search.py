"""The search for regions that satisfy parities of their units' states: what MIPBound draws its constraints for."""

from collections.abc import Callable, Sequence

import numpy as np

from tessella.cells.forms import copy, solve
from tessella.cells.rows import place_with_error, quick_sign, value
from tessella.cells.state import INFEASIBLE, UNCLEAR
from tessella.counting.depth_first import DONE, FOUND, LOST, MORE, enter_layer, leave, start
from tessella.counting.layout import Laid, solver_for
from tessella.counting.state import DEEP, THIN, Walk
from tessella.kernel.functions import Apart, apart, compiled
from tessella.kernel.record import ByteMatrix
from tessella.network import Floats
from tessella.numerics import EDGE, MARGIN, PROOF, TRUSTED_ROW
from tessella.partition.tree import Node, Tree

_GONE, _DECIDED, _VIOLATED = range(3)  # what a run of units ends with


@compiled
def _asked(walk: Walk, parities: ByteMatrix, u: int) -> int:
    """The sign that a unit's parity asks for, by those of the units before it; -1 if it has none.

    Row u of ``parities`` says of unit u, if its last entry is 1, that it is active where an odd number of the units before it with an entry 1 are, the last entry but one being added.
    """
    units, signs = parities.shape[1] - 2, walk.path.signs
    if not parities[u, units + 1]:
        return -1
    asked = parities[u, units]
    for v in range(u):
        asked ^= parities[u, v] & signs[v]
    return asked


@compiled
def _back(walk: Walk, fixed: int) -> bool:
    """Go back to the last unit whose other side waits; False if none does."""
    path = walk.path
    u = path.position - 1
    while u >= fixed and path.waits[u] == 0:
        u -= 1
    path.position = u
    if u < fixed:
        return False
    path.waits[u], path.state, path.rows = 0, path.waiting_state[u], path.waiting_rows[u]
    return True


@compiled
def _set(walk: Walk, u: int, side: int) -> bool:
    """Put the row of unit u on the stack, on a side, or on that of the state's point if it is free (-1), when the other side is to wait.  Whether the point violates the row."""
    path, cell, units, g = walk.path, walk.cell, walk.units, walk.layers.unit_of[u]
    r = path.rows
    row = cell.rows[r]
    place_with_error(units.combined[g], units.errors[g], 1.0, cell.space, row)
    there = value(row, cell.points[path.state])
    if side < 0:
        side = 1 if there > 0.0 else 0
        path.waits[u], path.waiting_state[u], path.waiting_rows[u] = 1, path.state, r
    path.signs[u] = units.active[g] = side
    if side == 0:
        for c in range(len(row) - 2):
            row[c] = -row[c]
    cell.row_of[u], cell.codes[r] = r, 2 * u + side
    path.rows = r + 1
    return (there if side else -there) < PROOF


@compiled
def _decide_units(walk: Walk, parities: ByteMatrix, fixed: int, flipped: int) -> int:
    """Decide the unit at the walk's position, as ``flipped`` says if it is not -1, and those that follow up to the next with a choice: DECIDED, VIOLATED if the state's point violates a row of them, or GONE if nothing is there.

    The side on which the point lies comes first.
    """
    path, units, first, violated = walk.path, walk.units, walk.path.position, False
    for u in range(first, len(walk.layers.unit_of)):
        path.position = u
        side = path.signs[u] if u < fixed else flipped if u == first else -1
        asked = _asked(walk, parities, u)
        if asked >= 0:
            if side >= 0 and side != asked:
                return _GONE
            side = asked
        if side < 0 and violated:
            return _VIOLATED
        path.waits[u] = 0
        if flipped < 0 or u > first:
            enter_layer(walk, u)
        g = walk.layers.unit_of[u]
        quick = quick_sign(units.combined[g], units.errors[g], TRUSTED_ROW)
        if quick == LOST:
            leave(walk.left, THIN, u, 0, path.signs)
            return _GONE
        if quick >= 0:
            if side >= 0 and side != quick:
                return _GONE
            path.signs[u] = units.active[g] = quick
            walk.cell.row_of[u] = -1
        elif _set(walk, u, side):
            violated = True
    path.position = len(walk.layers.unit_of)
    return _VIOLATED if violated else _DECIDED


@apart
def seek(walk: Walk, parities: ByteMatrix, fixed: int, limit: int) -> int:
    """Go on to the next leaf that satisfies all parities, for at most ``limit`` steps of one linear program each: FOUND, DONE if there is none, or MORE.

    A step decides one unit that has a choice, and with it all that follow up to the next such one; one linear program then tests their rows together.
    """
    path, cell, left, units = walk.path, walk.cell, walk.left, len(walk.layers.unit_of)
    start(walk)
    for _ in range(limit):
        if left.count + 2 >= len(left.kinds):
            break
        flipped = -1
        if not path.goes_down:
            if not _back(walk, fixed):
                return DONE
            flipped = 1 - path.signs[path.position]
        elif path.position == units:
            path.goes_down = False
            return FOUND
        elif path.state + 2 >= len(cell.points):
            leave(left, DEEP, path.position, 0, path.signs)
            path.goes_down = False
            continue
        path.goes_down = False
        outcome = _decide_units(walk, parities, fixed, flipped)
        if outcome == _GONE:
            continue
        if outcome == _VIOLATED:
            copy(cell, path.state, path.state + 1)
            path.state += 1
            status = solve(cell.solver, cell, path.state, path.rows, path.rows)
            if status == INFEASIBLE:
                continue
            if status == UNCLEAR:
                leave(left, THIN, path.position, 0, path.signs)
                continue
        path.goes_down = True
    return MORE


class Search(Laid):
    """Looks for regions that satisfy parities of their units' states, where parities come one after the other.

    Every region is visited at most once: what was found to hold none stays so, because parities are only added.

    Parameters
    ----------
    tree
        Where to search.
    """

    def __init__(self, tree: Tree) -> None:
        """Begin at the root, without parities."""
        super().__init__(tree)
        self._parities = np.zeros((self._units, self._units + 2), dtype=np.int8)
        self.begin()

    @classmethod
    def functions(cls, tree: Tree) -> tuple[Apart, ...]:
        """The compiled functions that a search of this tree calls."""
        return seek, solver_for(tree)

    def begin(self) -> None:
        """Forget all parities and begin again."""
        self._parities[:] = 0
        self._walk.cell.tally.tests = self._walk.left.count = 0
        self._waiting: list[Node] = [Node()] if self._exists else []
        self.thin: list[bytes] = [] if self._exists else [b""]
        self._fixed = -1

    @property
    def units(self) -> int:
        """How many decisions lead to a region."""
        return self._units

    @property
    def tests(self) -> int:
        """How many linear programs were solved."""
        return self._walk.cell.tally.tests

    def add(self, unit: int, others: Sequence[int], odd: int) -> None:
        """Ask that, from now on, a unit and some before it add up to an even number of active ones, or an odd one.

        The unit is in no other parity that asked so.
        """
        row = self._parities[unit]
        row[list(others)] = 1
        row[self._units :] = odd, 1

    def leave(self, unit: int) -> None:
        """Go on where this unit has another state than in the region found last: all others that begin like it violate a parity."""
        self._walk.path.waits[unit + 1 :] = 0
        self._walk.path.position = unit + 1

    def next(self, stopped: Callable[[], bool]) -> bytes | None:
        """The next region; None if there is no other, or it was stopped.  What is undecided is noted as thin."""
        while not stopped():
            if self._fixed < 0:
                if not self._waiting:
                    return None
                node = self._waiting.pop()
                self._enter(node)
                self._fixed = len(node.prefix)
            status = self._paced(lambda steps: seek(self._walk, self._parities, self._fixed, steps))
            for kind, node in self._taken():
                if kind == THIN:
                    self.thin.append(node.prefix)
                else:
                    self._waiting.append(Node(node.prefix))
            if status == FOUND:
                return bytes(self._walk.path.signs[: self._units])
            if status == DONE:
                self._fixed = -1
        return None

    def point(self) -> Floats:
        """The inputs, scaled to [-1, 1], of the vertex that proves the region found last."""
        cell, s = self._walk.cell, self._walk.path.state
        if cell.space.in_inputs:
            return cell.points[s].copy()
        bases, size, p = cell.bases, int(cell.bases.size[s]), cell.space.dimensions
        point = np.where(bases.costs[s] > 0.0, EDGE, -EDGE)
        tight, basic = bases.tight[s, :size], bases.basic[s, :size]
        point[basic] = 0.0
        misses = MARGIN - cell.rows[tight, p] - cell.rows[tight, :p] @ (cell.space.frame @ point)
        point[basic] = bases.inverse[s, :size, :size] @ misses
        return point
