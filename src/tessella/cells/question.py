"""One question about one cell with many inputs: whether a row is positive somewhere in it.

The question is asked in the dimensions of the first layer's units, where the inputs' box is a zonotope.  If these are few it is asked from outside first (`tessella.cells.cuts`), then from
inside (`tessella.cells.mixtures`); what both leave open is asked by a simplex method over all inputs (`tessella.cells.maximise`).
"""

from typing import Self

import numpy as np

from tessella.cells.cuts import CUT, MOST_CUTS, Outside, begin, descend
from tessella.cells.maximise import Starts, maximise
from tessella.cells.mixtures import SPARE, Inside, mix
from tessella.cells.rows import value
from tessella.cells.state import INFEASIBLE, UNCLEAR, Cell
from tessella.kernel.functions import apart, compiled
from tessella.kernel.record import Matrix, Record, Vector, Whole, WholeMatrix
from tessella.numerics import EDGE

_NARROW = 11  # dimensions up to which it pays to ask from outside first
_MIXED_ROWS = 96  # of cells that are asked by mixtures: with more it takes longer than over the inputs
_CORNERS = 64  # of the box, which are known from the start


class Question(Record):
    """Questions about the cell that a walk stands in.

    Questions of one *key* are alike: each begins with what was tight when the last one of its key ended.  Key 2 u + 1 asks whether unit u is negative somewhere, 2 u whether it is positive.  The
    fields from ``middle`` on are those of ``inside``.
    """

    cell: Cell
    outside: Outside
    inside: Inside
    starts: Starts
    tight: WholeMatrix  # per key, by codes: what was tight when the last question from outside ended; -1 for nothing
    wanted: Whole  # the same as constraints of this cell
    corners: Matrix
    middle: Vector
    depths: Vector
    point: Vector
    deeper: Vector
    spot: Vector

    @classmethod
    def of(cls, cell: Cell, *, units: int, sets: int, mixtures: bool = True) -> Self:
        """Nothing was asked yet: 2 units keys for units, ``sets`` for others, and one more."""
        space, most, keys = cell.space, len(cell.rows), 2 * units + sets + 1
        rng = np.random.default_rng(space.inputs)
        corners = np.ascontiguousarray(EDGE * rng.choice((-1.0, 1.0), (_CORNERS, space.inputs)) @ space.columns)
        inside = Inside.of(corners, most, min(most, _MIXED_ROWS) + 1 if mixtures else 0)
        return cls(
            cell=cell,
            outside=Outside.of(space.dimensions, most + SPARE, MOST_CUTS),
            inside=inside,
            starts=Starts.of(cell, keys, rng),
            tight=np.full((keys, space.dimensions), -1, dtype=np.int64),
            wanted=np.zeros(space.dimensions, dtype=np.int64),
            corners=corners,
            **{name: getattr(inside, name) for name in ("middle", "depths", "point", "deeper", "spot")},
        )


@compiled
def centre(question: Question, points: Matrix, count: int, r: int) -> float:
    """Let the middle be that of the first so many points, and find the first r rows there: the least of them, negative if there are no points."""
    rows, middle, depths, p = question.cell.rows, question.middle, question.depths, len(question.middle)
    question.inside.begun = 0
    for c in range(p):
        middle[c] = 0.0
    for i in range(count):
        for c in range(p):
            middle[c] += points[i, c]
    share, least = 1.0 / max(count, 1), 1.0 if count > 0 else -1.0
    for c in range(p):
        middle[c] *= share
    for row in range(r):
        depths[row] = value(rows[row], middle)
        least = min(least, depths[row])
    return least


@compiled
def stand(question: Question, r: int) -> None:
    """Copy row r to the walls, which have a column for each row."""
    rows, walls = question.cell.rows, question.outside.walls
    for c in range(len(walls)):
        walls[c, r] = rows[r, c]


@compiled
def _ask_outside(question: Question, r: int, key: int, position: int) -> int:
    """Whether cuts refute row r: then the cell's proof lists the rows that do so."""
    cell, outside, kept, wanted = question.cell, question.outside, question.tight, question.wanted
    tight, p = outside.tight, len(wanted)
    for i in range(p):
        code = kept[key, i]
        if 0 <= code < CUT:
            code = cell.row_of[code] if code < position else -1
        wanted[i] = code
    begin(outside, r, wanted)
    status = descend(outside, r, cell.space, cell.work)
    for i in range(p):
        kept[key, i] = cell.codes[tight[i]] >> 1 if 0 <= tight[i] < CUT else tight[i]
    if status == INFEASIBLE:
        proof, found = cell.proof, 0
        for i in range(p):
            if 0 <= tight[i] < CUT and outside.multipliers[i] > 0.0:
                proof.rows[found] = tight[i]
                found += 1
        proof.size = found
    return status


@apart
def ask(question: Question, r: int, deep: bool, key: int, position: int) -> int:
    """Whether row r is positive somewhere in the cell of the rows before it, whose middle is known, and lies deep in it or not.

    If so, ``point`` is such a point, and ``deeper`` one that lies deeper in the cell.  If not, the cell's proof lists the rows that prove it.
    """
    cell, inside = question.cell, question.inside
    narrow = deep and len(question.middle) <= _NARROW
    cell.tally.tests += 1
    question.depths[r] = value(cell.rows[r], question.middle)
    stand(question, r)
    if narrow and _ask_outside(question, r, key, position) == INFEASIBLE:
        return INFEASIBLE
    cell.proof.size, status = 0, UNCLEAR
    if r < len(inside.members):
        status = mix(cell, question.outside, inside, r, deep, narrow)
    if status == UNCLEAR:
        status = maximise(cell, inside, question.starts, r, deep, key, position)
    return status


FUNCTIONS = (ask,)
