"""Points that show what exists; compiled.

A cell keeps a *block* of points that lie strictly inside it.  A child inherits those on its side, and those of the other side pulled over, along the lines to the middle of its own.
A *pool* keeps points of any cells: pulled into a cell in the same way, they show most of what is to be shown in it.

The *middle* of a cell's points is where others are pulled to.  If it is too close to a wall for that, vertices far from that wall make a deeper one.
"""

from typing import Self

import numpy as np

from tessella.cells.question import Question, ask, centre
from tessella.cells.rows import value
from tessella.cells.state import INFEASIBLE
from tessella.counting.hulls import Hulls
from tessella.kernel.functions import apart, compiled
from tessella.kernel.record import Cube, Matrix, Record, Vector, Whole, zeros
from tessella.numerics import SEEN, SHALLOW, SLACK

_HELD = 48  # points kept of a cell, if there is memory enough
_MEMORY = 1 << 23  # numbers in all blocks
_POOL = 128  # points kept of any cells
_FURTHER = 512  # points found while hyperplanes of the last layer are counted
_SPARE = 4  # places of a block that a child does not fill with what it inherits
_DEEPER = 12  # vertices for a deeper middle
_DEEP_ENOUGH = 1e-5  # how far the middle of its own points is from the plane, for others to be pulled over


class Points(Record):
    """Points of cells, and of the cell that is being looked at.

    ``blocks[b, :held[b]]`` lie strictly inside the cell of block b.  ``pool[:, k]`` are points of any cells, the oldest overwritten; ``pooled`` ever came into it.
    ``pull`` moves the first ``pulled`` of them to ``middle``, as far as ``shares`` say, and ``values[f]`` has the values of a hyperplane f at them, then at the block's, then at those found since.
    ``deep`` says of the question's middle whether it lies deep enough in the cell to pull points there.
    """

    question: Question
    hulls: Hulls
    blocks: Cube
    held: Whole
    pool: Matrix
    shares: Vector
    beyond: Vector  # while pulling: by how much a wall is passed
    middle: Vector
    values: Matrix
    at_block: Vector  # a row's values at a block's points
    of_all: Vector  # the middle of a block
    of_own: Vector  # and of its points on one side
    vertices: Vector  # the middle of some vertices
    pooled: int
    pulled: int
    found: int  # points that were added to the block while its hyperplanes were looked for
    number: int  # of points whose values are known
    deep: bool
    set_keys: int  # how many kinds of questions about sets of hyperplanes are told apart
    deep_key: int  # the kind of question that looks for a deeper middle

    @classmethod
    def of(cls, question: Question, units: int, planes: int) -> Self:
        """The block of the whole box, with some of its corners; they are the pool, too."""
        corners = question.corners
        number, p = corners.shape
        held = max(8, min(_HELD, _MEMORY // (p * (units + 2))))
        points = cls(
            question=question,
            hulls=Hulls.of(planes + 1, _POOL + held + _FURTHER),
            blocks=zeros(units + 2, held, p),
            held=zeros(units + 2, kind=np.int64),
            pool=zeros(p, _POOL),
            shares=zeros(_POOL),
            beyond=zeros(_POOL),
            middle=zeros(p),
            values=zeros(planes + 1, _POOL + held + _FURTHER),
            at_block=zeros(held),
            of_all=zeros(p),
            of_own=zeros(p),
            vertices=zeros(p),
            pooled=number,
        )
        points.held[0] = min(number, held - _SPARE)
        points.blocks[0, : points.held[0]] = corners[: points.held[0]]
        points.pool[:, :number] = corners.T
        return points


@compiled
def measure(points: Points, b: int, r: int) -> float:
    """Let the question's middle be that of block b, in the cell of the first r rows: the least of these there, negative if the block is empty.  Notes whether it is deep."""
    least = centre(points.question, points.blocks[b], points.held[b], r)
    points.deep = least > 2.0 * SLACK
    return least


@compiled
def add(points: Points, b: int, last: int, point: Vector) -> None:
    """Add a point to block b, at the place ``last`` at most, whatever stands there."""
    slot = min(points.held[b], last)
    points.held[b] = max(points.held[b], slot + 1)
    for c in range(len(point)):
        points.blocks[b, slot, c] = point[c]


@compiled
def throw(points: Points, point: Vector) -> None:
    """Put a point into the pool, in place of the oldest."""
    at = points.pooled % points.pool.shape[1]
    points.pooled += 1
    for c in range(len(points.pool)):
        points.pool[c, at] = point[c]


@compiled
def _own_side(points: Points, b: int, row: Vector) -> int:
    """Copy the points of block b on the positive side of a row to block b + 1: how many there are, more than fit perhaps.  Fills ``at_block``, and the two middles, as sums."""
    blocks, at_block, of_all, of_own = points.blocks, points.at_block, points.of_all, points.of_own
    p, most, found = blocks.shape[2], blocks.shape[1] - _SPARE, 0
    for c in range(p):
        of_all[c] = of_own[c] = 0.0
    for i in range(points.held[b]):
        total = row[p]
        for c in range(p):
            total += row[c] * blocks[b, i, c]
            of_all[c] += blocks[b, i, c]
        at_block[i] = total
        if total >= 0.5 * SEEN:
            for c in range(p):
                of_own[c] += blocks[b, i, c]
            if found < most - 1:
                for c in range(p):
                    blocks[b + 1, found, c] = blocks[b, i, c]
            found += 1
    return found


@apart
def inherit(points: Points, b: int, r: int) -> None:
    """Give block b + 1 the points of block b on the positive side of row r, a deep one, and those of the other side, pulled over."""
    blocks, at_block, of_all, of_own = points.blocks, points.at_block, points.of_all, points.of_own
    row = points.question.cell.rows[r]
    p, most, held, found = blocks.shape[2], blocks.shape[1] - _SPARE, points.held[b], _own_side(points, b, row)
    if found > 0:
        middle, whole = row[p], row[p]
        for c in range(p):
            of_all[c] /= held
            of_own[c] /= found
            middle += row[c] * of_own[c]
            whole += row[c] * of_all[c]
        found = min(found, most - 1)
        part = 0.5 * middle / (middle - whole) if whole < 0.5 * middle else 1.0
        for c in range(p):  # halfway to the plane from the middle of its own points, towards the middle of all
            blocks[b + 1, found, c] = of_own[c] + part * (of_all[c] - of_own[c])
        found += 1
        if middle > _DEEP_ENOUGH:
            for i in range(held):
                if at_block[i] < 0.5 * SEEN and found < most:
                    part = 0.999 * middle / (middle - at_block[i])
                    for c in range(p):
                        blocks[b + 1, found, c] = of_own[c] + part * (blocks[b, i, c] - of_own[c])
                    found += 1
    points.held[b + 1] = found


@compiled
def pull(points: Points, r: int) -> None:
    """Pull the points of the pool into the cell of the first r rows, towards the question's middle: how far is put into ``shares``."""
    question, pool, shares, beyond, middle = points.question, points.pool, points.shares, points.beyond, points.middle
    rows, depths, p, size = question.cell.rows, question.depths, len(points.pool), min(points.pooled, points.pool.shape[1])
    for c in range(p):
        middle[c] = question.middle[c]
    for k in range(size):
        shares[k] = 1.0
    for row in range(r):
        depth = depths[row]
        for k in range(size):
            beyond[k] = depth - rows[row, p]
        for c in range(p):
            rate = -rows[row, c]
            for k in range(size):
                beyond[k] += rate * pool[c, k]
        rate = 1.0 / (depth - SLACK)
        for k in range(size):
            shares[k] = max(shares[k], rate * beyond[k])
    for k in range(size):
        shares[k] = 1.0 / shares[k]
    points.pulled = size


@compiled
def spread(points: Points, b: int, row: Vector, values: Vector) -> None:
    """The values of a row at the points of the pool, pulled to the middle, then at those of block b."""
    pool, shares, blocks, size = points.pool, points.shares, points.blocks, points.pulled
    p = len(pool)
    if size:
        middle = value(row, points.middle)
        for k in range(size):
            values[k] = row[p] - middle
        for c in range(p):
            rate = row[c]
            for k in range(size):
                values[k] += rate * pool[c, k]
        for k in range(size):
            values[k] = middle + shares[k] * values[k]
    for i in range(points.held[b]):
        values[size + i] = value(row, blocks[b, i])


@compiled
def _closest(rows: Matrix, r: int, point: Vector) -> tuple[float, int]:
    """How deep a point lies in the cell of the first r rows, and the wall that it is closest to."""
    least, near = np.inf, 0
    for row in range(r):
        total = value(rows[row], point)
        if total < least:
            least, near = total, row
    return least, near


@apart
def deepen(points: Points, b: int, r: int, position: int) -> bool:
    """Give block b a point deep in the cell of the first r rows, if the middle of its points is not: whether that made it deeper.

    The middle of vertices, each of which is as far as can be from the wall that the middle of those before it is closest to.  Row r is put aside meanwhile, to place r + 1.
    """
    question, vertices = points.question, points.vertices
    rows, p = question.cell.rows, len(points.pool)
    measure(points, b, r)
    for c in range(p):
        vertices[c] = question.middle[c]
    least, near = _closest(rows, r, vertices)
    if least > SHALLOW:
        return False
    for c in range(p + 3):
        rows[r + 1, c] = rows[r, c]
    deepest = least
    for step in range(_DEEPER):
        for c in range(p + 3):
            rows[r, c] = rows[near, c]
        if ask(question, r, points.deep, points.deep_key, position) == INFEASIBLE:  # there is no such cell: nothing was found
            break
        share = 1.0 / (step + 1)
        for c in range(p):
            vertices[c] += share * (question.spot[c] - vertices[c])
        deepest, near = _closest(rows, r, vertices)
        if deepest > 10.0 * SHALLOW:
            break
    for c in range(p + 3):
        rows[r, c] = rows[r + 1, c]
    if deepest < max(100.0 * least, 100.0 * SLACK):
        return False
    add(points, b, points.blocks.shape[1] - 1, vertices)
    return True
