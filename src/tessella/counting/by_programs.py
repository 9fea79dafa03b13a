"""The walk over cells by linear programs: any number of inputs.

**Coordinates.**  A cell is a stack of rows a.z + b >= 0, scaled to sum(|a|) + |b| = 1, so that all values lie in [-1, 1].  Mostly z is the inputs u, scaled
to [-1, 1]^n.  Where these are many, and more than the first layer's rows (and the domain's), it is these rows, of which all others are combinations.

**The linear program** is a bounded dual simplex that only looks for a point.  Its costs are random and generic, so it hardly ever
meets ties, and any basis stays dual feasible when a row is pushed or popped.  One iteration takes out the worst violated row or input and
walks past all breakpoints of the dual function while it falls (the long-step ratio test).  State number s + 1 is a copy of state s
with one more row, so undoing is free.  There are two forms of it, one for either kind of coordinates: `tessella.cells.tableau` and `tessella.cells.dual`.

**Margins.**  Rows are asked to be >= margin and inputs to keep away from their ends, so a point found lies strictly inside, by far
more than rounding: the cell exists.  A proof of emptiness is a combination of rows that is negative on the whole box; it must hold
with all rows relaxed by several margins, and is computed in double precision: the cell does not exist.  What is neither is thin.

**The last layer** is not walked, but counted: `tessella.counting.faces_by_programs`.

With many inputs, more than units in the first layer, `tessella.counting.by_points` is faster, and leaves to this walk what it cannot decide.
"""

from collections.abc import Sequence
from time import perf_counter

from tessella.cells.emptiness import proved, remember
from tessella.cells.forms import copy, solve
from tessella.cells.rows import place_with_error, value
from tessella.cells.state import INFEASIBLE, UNCLEAR
from tessella.cells.touching import Touching, has_no_interior
from tessella.counting import depth_first, faces
from tessella.counting.depth_first import DONE, MORE, go_on
from tessella.counting.faces_by_programs import count_by_programs, dive, meets_by_programs
from tessella.counting.layout import Laid, solver_for
from tessella.counting.settled import keep, sign_left
from tessella.counting.state import HARD, THIN, Settled, Walk
from tessella.kernel.functions import Apart, address_of, apart
from tessella.numerics import MARGIN, PROOF
from tessella.parallel import Stop
from tessella.partition.tree import Found, Node, Tree

_CAREFUL = 2  # linear programs at once below a hard node
_MODEST = 5000  # weights of networks whose residues are made at once, and of others only when something is thin


@apart
def decide_by_programs(walk: Walk, fixed: int) -> None:
    """Find out which sides of the unit at the walk's position exist: by the point of the cell's state, a proof from another cell, or linear programs, each with a state of its own."""
    path, cell, units, exists, states = walk.path, walk.cell, walk.units, walk.choice.exists, walk.choice.states
    u, s, r, space = path.position, path.state, path.rows, cell.space
    g, row, fresh = walk.layers.unit_of[u], cell.rows[r], s + 1
    sign = sign_left(walk.settled, u, path.signs) if u >= fixed else -1
    if sign >= 0:
        exists[1 - sign] = INFEASIBLE
        return
    place_with_error(units.combined[g], units.errors[g], 1.0, space, row)
    there = value(row, cell.points[s])
    key, scale = 2 * u + (1 if there > 0.0 else 0), -1.0 if there > 0.0 else 1.0
    if (path.stable_at[u] <= u and abs(there) >= 0.5 * MARGIN) or (
        abs(there) >= PROOF and proved(walk.proofs, key, row, scale, u, cell.rows, cell.row_of, path.signs, space, cell.work)
    ):
        exists[0 if there > 0.0 else 1] = INFEASIBLE
        return
    for side in range(1, -1, -1):
        sign = 1.0 if side else -1.0
        if sign * there >= PROOF:
            continue
        place_with_error(units.combined[g], units.errors[g], sign, space, row)
        copy(cell, s, fresh)
        cell.codes[r], cell.proof.size = 2 * u + side, 0
        exists[side], states[side] = solve(cell.solver, cell, fresh, r + 1, r + 1), fresh
        if exists[side] == UNCLEAR and has_no_interior(walk.touching, cell, path.signs, r + 1):
            exists[side] = INFEASIBLE
            keep(walk, 2 * u + 1 - side)
        elif exists[side] == INFEASIBLE:
            remember(walk.proofs, 2 * u + 1 - side, cell.proof, r, cell.codes)
        fresh += 1


class ByPrograms(Laid):
    """Counts the regions below nodes by linear programs; a `tessella.partition.tree.Walker`.

    Parameters
    ----------
    tree, in_frame
        As for `tessella.counting.layout.Laid`.
    """

    def __init__(self, tree: Tree, *, in_frame: bool | None = None) -> None:
        """Choose who takes the steps of the walk."""
        super().__init__(tree, in_frame=in_frame)
        self._programs = self._walk
        self._walk.decide = address_of(depth_first.decide, decide_by_programs)
        self._walk.count_faces = address_of(depth_first.count_faces, count_by_programs)
        self._walk.begin_sets = address_of(faces.begin_sets, dive)
        self._walk.meets = address_of(faces.meets, meets_by_programs)
        self._tree, self._looks_closely = tree, False
        if tree.network.parameters <= _MODEST:
            self._look_closely()

    @classmethod
    def functions(cls, tree: Tree) -> tuple[Apart, ...]:
        """The compiled functions that a walk of this tree calls."""
        return go_on, decide_by_programs, count_by_programs, dive, meets_by_programs, solver_for(tree)

    def advance(self, nodes: Sequence[Node], seconds: float, stop: Stop) -> Found:
        """Walk for about this long, or until it is asked to stop; at least one step is made."""
        if not self._exists:
            return Found(0, (), tuple(node.prefix for node in nodes))
        path, tally, end = self._walk.path, self._walk.cell.tally, perf_counter() + seconds
        path.regions = tally.tests = 0
        thin, left, waiting, hard, late = list[bytes](), list[Node](), list(nodes), list[Node](), False
        while hard or (waiting and not late):  # it is not known whether there is a hard node at all, so none is handed back
            careful = bool(hard)
            node = hard.pop() if hard else waiting.pop()
            self._enter(node)
            status = MORE
            while status != DONE:
                status = self._go_on(len(node.prefix), careful=careful)
                for kind, found in self._taken():
                    if kind == THIN:
                        thin.append(found.prefix)
                    else:
                        (hard if kind == HARD else left).append(found)
                late = perf_counter() > end or stop.asked
                if careful and path.position > len(node.prefix):  # the hard step is done
                    waiting += self._open(node)
                    break
                if late and not careful and status != DONE:  # a node that was done as hard or thin is told already
                    left += self._open(node)
                    break
        if thin:
            self._look_closely()
        return Found(path.regions, (*waiting, *left), tuple(thin), tally.tests)

    def _look_closely(self) -> None:
        """From now on, prove by residues that cells have no interior, where that can be done."""
        if not self._looks_closely and self._programs.cell.space.in_inputs:
            self._programs.touching, self._programs.settled = Touching.of(self._tree), Settled.of(self._units)
        self._looks_closely = True

    def _go_on(self, fixed: int, *, careful: bool) -> int:
        """Walk for about a hundredth of a second; if careful, by linear programs, and by few of them."""
        tests = self._walk.cell.tally.tests
        if careful:
            return go_on(self._programs, fixed, tests + _CAREFUL)
        return self._paced(lambda pace: go_on(self._walk, fixed, tests + pace))

    def _open(self, node: Node) -> list[Node]:
        """What is left of the walk: the sides that wait, and the node where it stands."""
        path, fixed, signs = self._walk.path, len(node.prefix), self._walk.path.signs
        position = path.position
        if position <= fixed and path.goes_down:
            return [node]
        left = [
            Node(bytes(signs[:u]) + bytes([1 - signs[u]]), int(path.waiting_splits[u]) + 1)
            for u in range(fixed, min(position, self._units))
            if path.waits[u]
        ]
        if path.goes_down:
            left.append(Node(bytes(signs[:position]), path.splits))
        return left
