"""The walk for many inputs: points show what exists, linear programs what does not.

Cells, frame and rows are those of `tessella.counting.by_programs`, which also decides what is left undecided here.

**Points.**  A unit with points of the cell on both sides is crossed, and so is one with a point of the pool that can be pulled to its other side (`tessella.counting.points`).

**Questions** whether a row is positive somewhere in a cell are asked in the dimensions of the first layer's units (`tessella.cells.question`).

**The last layer** is not walked, but counted: `tessella.counting.faces_by_points`.

**Proofs** that a unit has one sign are kept: in a layer whose inputs come from units in the same state, one holds in all cells that lie on the same side of the
few units it is made of, and there nothing is asked.
"""

from tessella.cells import question as questions
from tessella.cells.question import Question, ask, stand
from tessella.cells.rows import place_with_error, value
from tessella.cells.state import FEASIBLE, INFEASIBLE, UNCLEAR
from tessella.counting import depth_first, faces
from tessella.counting.by_programs import ByPrograms
from tessella.counting.depth_first import go_on
from tessella.counting.faces_by_points import begin_by_points, count_by_points, meets_by_points
from tessella.counting.points import Points, add, deepen, inherit, measure, pull, spread, throw
from tessella.counting.settled import keep, sign_left
from tessella.counting.state import HARD, MOST_PLANES, Settled, Walk
from tessella.kernel.functions import Apart, address_of, apart, compiled
from tessella.kernel.record import Vector
from tessella.numerics import FAR, SEEN
from tessella.partition.tree import Tree

_SETS = 1024  # kinds of questions about sets of hyperplanes that are told apart


@compiled
def _extent(points: Points, b: int, row: Vector) -> tuple[float, float]:
    """The least and the largest value of a row at the points of block b, or zero."""
    blocks, low, high = points.blocks, 0.0, 0.0
    for i in range(points.held[b]):
        total = value(row, blocks[b, i])
        low, high = min(low, total), max(high, total)
    return low, high


@compiled
def _is_shown(points: Points, b: int, r: int, sign: float) -> bool:
    """Whether a point of the pool, pulled into the cell of the first r rows, lies on the given side of row r: block b gets it, and one that lies deeper."""
    row, values, blocks = points.question.cell.rows[r], points.values[0], points.blocks
    pull(points, r)
    spread(points, b, row, values)
    middle, p, size, best, at = points.middle, len(points.middle), points.pulled, 0.0, 0
    for k in range(size):
        best = max(best, sign * values[k])
    if not best >= SEEN:
        return False
    while sign * values[at] != best:
        at += 1
    slot, most = min(points.held[b], blocks.shape[1] - 1), blocks.shape[1]
    points.held[b] = slot + 1
    for c in range(p):
        blocks[b, slot, c] = middle[c] + points.shares[at] * (points.pool[c, at] - middle[c])
    if slot + 1 < most:
        there = value(row, middle)
        part = 0.5 + 0.5 * there / (there - sign * best)
        for c in range(p):
            blocks[b, slot + 1, c] = middle[c] + part * (blocks[b, slot, c] - middle[c])
        points.held[b] = slot + 2
    return True


@compiled
def _ask_side(walk: Walk, side: int) -> int:
    """Ask whether a side of the unit at the walk's position exists; the points that say so are kept, or the proof that it does not."""
    path, points, units = walk.path, walk.points, walk.units
    u, r, b, question = path.position, path.rows, path.state, walk.points.question
    g, key, last = walk.layers.unit_of[u], 2 * u + 1 - side, points.blocks.shape[1] - 1
    place_with_error(units.combined[g], units.errors[g], 1.0 if side else -1.0, walk.cell.space, walk.cell.rows[r])
    outcome = ask(question, r, points.deep, key, u)
    if outcome == UNCLEAR and deepen(points, b, r, u):
        measure(points, b, r)
        outcome = ask(question, r, points.deep, key, u)
    if outcome == FEASIBLE:
        throw(points, question.point)
        add(points, b, last - side, question.point)
        if points.held[b] <= last:
            add(points, b, last, question.deeper)
    elif outcome == INFEASIBLE:
        keep(walk, key)
    return outcome


@apart
def decide_by_points(walk: Walk, fixed: int) -> None:
    """Find out which sides of the unit at the walk's position exist: by a proof from another cell, points of the cell, points of the pool, or questions."""
    path, points, units, exists = walk.path, walk.points, walk.units, walk.choice.exists
    u, r, b = path.position, path.rows, path.state
    g, row, low, high = walk.layers.unit_of[u], walk.cell.rows[r], 0.0, 0.0
    sign = sign_left(walk.settled, u, path.signs) if u >= fixed else -1
    if sign < 0:
        place_with_error(units.combined[g], units.errors[g], 1.0, walk.cell.space, row)
        low, high = _extent(points, b, row)
        if path.stable_at[u] <= u and max(high, -low) >= 0.5 * SEEN:
            sign = 1 if high > -low else 0
    if sign >= 0:
        exists[1 - sign] = INFEASIBLE
        return
    above, below = high >= SEEN, low <= -SEEN
    if above and below:
        return
    least = measure(points, b, r)
    wanted = u >= fixed or above != (path.signs[u] == 1)
    if above != below and least > FAR and wanted and _is_shown(points, b, r, -1.0 if above else 1.0):
        return
    for side in range(1, -1, -1):
        if not (above if side else below) and (u >= fixed or side == path.signs[u]):
            exists[side] = _ask_side(walk, side)


@apart
def hand_down_points(walk: Walk) -> None:
    """Give the cell below the points of this one that lie on its side, and others pulled over; its row joins the walls of questions."""
    path = walk.path
    inherit(walk.points, path.state, path.rows)
    stand(walk.points.question, path.rows)
    path.state += 1


class ByPoints(ByPrograms):
    """Counts the regions below nodes by points and linear programs; a `tessella.partition.tree.Walker`.

    Parameters
    ----------
    tree
        What to walk: on a box, with more inputs than units in its first layer.
    mixtures
        Whether mixtures of tips are asked before all inputs are.
    """

    def __init__(self, tree: Tree, *, mixtures: bool = True) -> None:
        """Make room for points, and begin with some corners of the box."""
        super().__init__(tree, in_frame=True)
        programs, units = self._programs, tree.units
        question = Question.of(programs.cell, units=units, sets=_SETS, mixtures=mixtures)
        points = Points.of(question, units, MOST_PLANES)
        points.set_keys, points.deep_key = _SETS, 2 * units + _SETS
        self._walk = programs.with_fields(
            points=points,
            settled=Settled.of(units),
            unclear=HARD,
            deepest=units,
            decide=address_of(depth_first.decide, decide_by_points),
            hand_down=address_of(depth_first.hand_down, hand_down_points),
            count_faces=address_of(depth_first.count_faces, count_by_points),
            begin_sets=address_of(faces.begin_sets, begin_by_points),
            meets=address_of(faces.meets, meets_by_points),
        )

    @classmethod
    def functions(cls, tree: Tree) -> tuple[Apart, ...]:
        """The compiled functions that a walk of this tree calls, those for what points leave to linear programs among them."""
        steps = (decide_by_points, hand_down_points, count_by_points, begin_by_points, meets_by_points)
        return *super().functions(tree), go_on, *steps, *questions.FUNCTIONS
