"""The walk for many inputs, compiled with Numba: points show what exists, linear programs what does not.

Cells, frame and rows are those of `tessella.counting.by_programs`, which also decides what is left undecided here.

**Points.**  A cell keeps points that lie strictly inside it.  A unit with points on both sides is crossed; a child keeps those
on its side, and those of the other side pulled over, along the lines to the middle of its own.  A pool keeps points of any cells: pulled
into a cell in the same way, they show most of what is to be shown in it.

**The linear program** asks whether a row is positive somewhere in a cell, in the dimensions of the first layer's units.  If these are few, `tessella.cells.cuts` asks first, from outside;
then `tessella.cells.mixtures`, from inside.

**The last layer.**  A set of hyperplanes meets in a cell, in general position, if the values of its points on them surround zero: then every
pattern of signs occurs.  A small simplex method over weights of the points decides that.  If they do not surround it, it ends with a
combination of the hyperplanes that is negative at all points: if it is negative in the whole cell, which a linear program tells, the set does
not meet there, and if not, that program finds a further point.

**Proofs** that a unit has one sign are kept: in a layer whose inputs come from units in the same state, one holds in all cells that lie on the same side of the
few units it is made of, and there nothing is asked.

**The middle** of a cell's points is where others are pulled to.  If it is too close to a wall for that, vertices far from that wall make a deeper one.
"""

from typing import Any

import numpy as np

from tessella.cells.old import climb as climbing
from tessella.cells.old import cuts as zonotope
from tessella.cells.old import mixtures as mixture
from tessella.cells.old import rows as steps
from tessella.cells.old.climb import NOISE, climb
from tessella.cells.old.cuts import ADDED, CUT, MOST_CUTS, begin, descend
from tessella.cells.old.mixtures import MIXED, MOST_TIPS, SEEN, SLACK, TIPS, mix
from tessella.cells.old.rows import (
    DOWN,
    EDGE,
    FEASIBLE,
    HARD,
    INFEASIBLE,
    LEFT,
    MARGIN,
    PLAIN,
    POSITION,
    REGIONS,
    ROWS,
    SPLITS,
    STATE,
    TESTS,
    UNCLEAR,
    compose,
    leave,
    place,
    quick_sign,
)
from tessella.counting.by_programs import DONE, MORE, MOST_FACES, Simplex
from tessella.kernel.compiling import address, calling, compiler
from tessella.network import Floats
from tessella.partition.tree import Tree

_POINTS = 48  # points kept of a cell
_POOL = 128  # points kept of any cells
_NARROW = 11  # dimensions up to which it pays to ask from outside first
_MIXED_ROWS = 96  # of cells that are asked by mixtures: with more it takes longer than over the inputs
_SETS = 1024  # corners kept of sets of hyperplanes
_CLEAR = 1e-10  # by how much values may be wrong for points to still surround zero
_SHALLOW = 1e-6  # how close to a wall the middle of points may be before a deeper one is looked for
_DEEPER = 12  # vertices for a deeper one
_FAR = 1e-9  # how far from all walls the middle must be for points to be pulled there
_PROOFS, _LONGEST = 16, 15  # proofs kept of a unit's sign, and how many other units they may be made of
_ROUNDS = 300  # points added for one set of hyperplanes
_ASK, _MIX, _CLIMB = range(3)  # places of the addresses of functions that are called so
_POOLED = 10  # place of a counter: points that ever came into the pool

_compiled = compiler(steps.__file__, zonotope.__file__, mixture.__file__, climbing.__file__, _nrt=False)
_inlined = compiler(steps.__file__, zonotope.__file__, mixture.__file__, climbing.__file__, _nrt=False, inline="always")

# fmt: off


@_compiled
def _centre(b: int, r: int, blocks: Floats, held: Any, rows: Floats, scratch: Floats, counters: Any) -> float:
    """The middle of block b, in scratch 5, and the first r rows there, in scratch 6: the least of them, negative if the block is empty."""
    p, count, counters[MIXED] = blocks.shape[2], held[b], 0
    for c in range(p):
        scratch[5, c] = 0.0
    for i in range(count):
        for c in range(p):
            scratch[5, c] += blocks[b, i, c]
    share, least = 1.0 / max(count, 1), 1.0 if count > 0 else -1.0
    for c in range(p):
        scratch[5, c] *= share
    for row in range(r):
        total = rows[row, p]
        for c in range(p):
            total += rows[row, c] * scratch[5, c]
        scratch[6, row] = total
        least = min(least, total)
    return least


@_compiled
def _stand(r: int, rows: Floats, walls: Floats) -> None:
    """Copy a row to the walls, which have a column for each."""
    for c in range(len(walls)):
        walls[c, r] = rows[r, c]


_mix, _climb = calling(mix), calling(climb)


@_compiled
def _maximise(
    r: int, deep: bool, key: int, position: int, row_of: Any, codes: Any, bases: Any,
    doors: Any, gram: Floats, frame: Floats, light: Any, columns: Floats, noise: Any, rows: Floats, lists: Any, picks: Any,
    inverse: Floats, work: Floats, vectors: Floats, spots: Floats, costs: Any, scratch: Floats, order: Any, prices: Any, bits: Any, kept: Any, walls: Floats, cuts: Floats, tight: Any, corner: Floats, tips: Floats, faint: Any, worth: Any, mixed: Any, blend: Floats, counters: Any,
) -> int:
    """Whether row r is positive somewhere in the cell of the rows before it, whose middle is in scratch 5 and 6, and ``deep`` or not.

    If so, row 1 of ``spots`` is such a point, and row 2 one that lies deeper in the cell.  If not, row 0 of ``picks`` lists the rows that prove it, and their number is in row 1.
    """
    p, narrow = len(frame), deep and len(frame) <= _NARROW
    counters[TESTS] += 1
    scratch[6, r] = rows[r, p]
    for c in range(p):
        scratch[6, r] += rows[r, c] * scratch[5, c]
    _stand(r, rows, walls)
    if narrow:
        last = len(kept) - 1
        for i in range(p):
            code = kept[key, i]
            if 0 <= code < CUT:
                code = row_of[code] if code < position else -1
            kept[last, i] = code
        begin(r, kept[last], walls, cuts, tight, corner)
        status = descend(r, frame, walls, cuts, tight, corner, scratch, counters)
        for i in range(p):
            kept[key, i] = codes[tight[i]] if 0 <= tight[i] < CUT else tight[i]
        if status == INFEASIBLE:
            picks[1, 0] = 0
            for i in range(p):
                if 0 <= tight[i] < CUT and corner[p + 2, i] > 0.0:
                    picks[0, picks[1, 0]] = tight[i]
                    picks[1, 0] += 1
            return status
    picks[1, 0], status = 0, UNCLEAR
    if r < len(mixed):
        status = _mix(doors[_MIX], r, deep, narrow, frame, rows, walls, cuts, tight, tips, faint, worth, mixed, blend, picks, spots, scratch, counters)
    if status == UNCLEAR:
        status = _climb(doors[_CLIMB], r, deep, key, position, row_of, codes, bases, gram, frame, light, columns, noise, rows, lists, picks, inverse, work, vectors, spots, costs, scratch, order, prices, bits, counters)
    return status


_ask = calling(_maximise)


@_compiled
def _closest(r: int, at: int, rows: Floats, spots: Floats) -> tuple[float, int]:
    """How deep a spot lies in the cell of the first r rows, and the wall that it is closest to."""
    p, least, near = rows.shape[1] - 3, np.inf, 0
    for row in range(r):
        total = rows[row, p]
        for c in range(p):
            total += rows[row, c] * spots[at, c]
        if total < least:
            least, near = total, row
    return least, near


@_compiled
def _deepen(
    r: int, b: int, position: int, row_of: Any, codes: Any, bases: Any, blocks: Floats, held: Any,
    doors: Any, gram: Floats, frame: Floats, light: Any, columns: Floats, noise: Any, rows: Floats, lists: Any, picks: Any,
    inverse: Floats, work: Floats, vectors: Floats, spots: Floats, costs: Any, scratch: Floats, order: Any, prices: Any, bits: Any, kept: Any, walls: Floats, cuts: Floats, tight: Any, corner: Floats, tips: Floats, faint: Any, worth: Any, mixed: Any, blend: Floats, counters: Any,
) -> bool:
    """Give block b a point deep in the cell of the first r rows, if the middle of its points is not: whether that made it deeper.

    The middle of vertices, each of which is as far as can be from the wall that the middle of those before it is closest to.
    """
    p, spare = len(frame), len(spots) - 1
    deep = _centre(b, r, blocks, held, rows, scratch, counters) > 2.0 * SLACK
    for c in range(p):
        spots[spare, c] = scratch[5, c]
    least, near = _closest(r, spare, rows, spots)
    if least > _SHALLOW:
        return False
    for c in range(p + 3):
        rows[r + 1, c] = rows[r, c]
    deepest = least
    for step in range(_DEEPER):
        for c in range(p + 3):
            rows[r, c] = rows[near, c]
        if _ask(doors[_ASK], r, deep, len(kept) - 2, position, row_of, codes, bases, doors, gram, frame, light, columns, noise, rows, lists, picks, inverse, work, vectors, spots, costs, scratch, order, prices, bits, kept, walls, cuts, tight, corner, tips, faint, worth, mixed, blend, counters) == INFEASIBLE:  # there is no such cell: nothing was found
            break
        share = 1.0 / (step + 1)
        for c in range(p):
            spots[spare, c] += share * (spots[0, c] - spots[spare, c])
        deepest, near = _closest(r, spare, rows, spots)
        if deepest > 10.0 * _SHALLOW:
            break
    for c in range(p + 3):
        rows[r, c] = rows[r + 1, c]
    if deepest < max(100.0 * least, 100.0 * SLACK):
        return False
    slot = min(held[b], blocks.shape[1] - 1)
    held[b] = slot + 1
    for c in range(p):
        blocks[b, slot, c] = spots[spare, c]
    return True


@_compiled
def _throw(spots: Floats, pool: Floats, counters: Any) -> None:
    """Put the point that was found into the pool."""
    at = counters[_POOLED] % pool.shape[1]
    counters[_POOLED] += 1
    for c in range(len(pool)):
        pool[c, at] = spots[1, c]


@_compiled
def _inherit(b: int, r: int, blocks: Floats, held: Any, rows: Floats, scratch: Floats) -> None:
    """Give block b + 1 the points of block b on the positive side of row r, a deep one, and those of the other side, pulled over."""
    p, most, found = blocks.shape[2], blocks.shape[1] - 4, 0
    for c in range(p):
        scratch[3, c] = scratch[5, c] = 0.0
    for i in range(held[b]):
        total = rows[r, p]
        for c in range(p):
            total += rows[r, c] * blocks[b, i, c]
            scratch[3, c] += blocks[b, i, c]
        scratch[6, i] = total
        if total >= 0.5 * SEEN:
            for c in range(p):
                scratch[5, c] += blocks[b, i, c]
            if found < most - 1:
                for c in range(p):
                    blocks[b + 1, found, c] = blocks[b, i, c]
            found += 1
    if found > 0:
        middle, whole = rows[r, p], rows[r, p]
        for c in range(p):
            scratch[3, c] /= held[b]
            scratch[5, c] /= found
            middle += rows[r, c] * scratch[5, c]
            whole += rows[r, c] * scratch[3, c]
        found = min(found, most - 1)
        part = 0.5 * middle / (middle - whole) if whole < 0.5 * middle else 1.0
        for c in range(p):  # halfway to the plane from the middle of its own points, towards the middle of all
            blocks[b + 1, found, c] = scratch[5, c] + part * (scratch[3, c] - scratch[5, c])
        found += 1
        if middle > 1e-5:
            for i in range(held[b]):
                if scratch[6, i] < 0.5 * SEEN and found < most:
                    part = 0.999 * middle / (middle - scratch[6, i])
                    for c in range(p):
                        blocks[b + 1, found, c] = scratch[5, c] + part * (blocks[b, i, c] - scratch[5, c])
                    found += 1
    held[b + 1] = found


@_compiled
def _pull(r: int, pool: Floats, rows: Floats, scratch: Floats, values: Floats, counters: Any) -> int:
    """Pull the points of the pool into the cell of the first r rows, towards its middle: how far, as shares; how many points."""
    p, size, last = len(pool), min(counters[_POOLED], pool.shape[1]), len(values) - 1
    for k in range(size):
        values[last, k] = 1.0
    for row in range(r):
        middle = scratch[6, row]
        for k in range(size):
            values[last - 1, k] = middle - rows[row, p]
        for c in range(p):
            rate = -rows[row, c]
            for k in range(size):
                values[last - 1, k] += rate * pool[c, k]
        rate = 1.0 / (middle - SLACK)
        for k in range(size):
            values[last, k] = max(values[last, k], rate * values[last - 1, k])
    for k in range(size):
        values[last, k] = 1.0 / values[last, k]
    return size


@_compiled
def _spread(
    f: int, r: int, size: int, b: int, at: int, middles: Floats, blocks: Floats, held: Any, pool: Floats, rows: Floats, values: Floats
) -> None:
    """The values of row r at the points of the pool, pulled to a middle, then at those of block b, in row f of ``values``."""
    p, last = blocks.shape[2], len(values) - 1
    if size:
        middle = rows[r, p]
        for c in range(p):
            middle += rows[r, c] * middles[at, c]
        for k in range(size):
            values[f, k] = rows[r, p] - middle
        for c in range(p):
            rate = rows[r, c]
            for k in range(size):
                values[f, k] += rate * pool[c, k]
        for k in range(size):
            values[f, k] = middle + values[last, k] * values[f, k]
    for i in range(held[b]):
        total = rows[r, p]
        for c in range(p):
            total += rows[r, c] * blocks[b, i, c]
        values[f, size + i] = total


@_inlined
def _extremes(f: int, number: int, values: Floats) -> tuple[float, float]:
    """The least and the largest of the first so many values of row f, or zero; four at a time, because each waits for the one before it."""
    l0, l1, l2, l3, h0, h1, h2, h3, whole = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, number - number % 4
    for i in range(0, whole, 4):
        v0, v1, v2, v3 = values[f, i], values[f, i + 1], values[f, i + 2], values[f, i + 3]
        l0, l1, l2, l3 = min(l0, v0), min(l1, v1), min(l2, v2), min(l3, v3)
        h0, h1, h2, h3 = max(h0, v0), max(h1, v1), max(h2, v2), max(h3, v3)
    for i in range(whole, number):
        l0, h0 = min(l0, values[f, i]), max(h0, values[f, i])
    return min(l0, l1, l2, l3), max(h0, h1, h2, h3)


@_compiled
def _surround(level: int, d: int, values: Floats, hull: Floats) -> bool:
    """Whether the points of the basis surround zero for certain: its weights there are positive, whatever rounding did to them and to the values.

    With E = inverse times matrix - 1, the true weights are those of the inverse times (1 + E)^-1, so they differ by less than 2 |E| if that is small.
    """
    top, drift = hull.shape[2], 0.0
    for i in range(d + 1):
        total = 0.0
        for q in range(d + 1):
            at, entry = int(hull[level, top + 2, q]), hull[level, i, d]
            for j in range(d):
                entry += hull[level, i, j] * hull[level, top + 1, j] * values[int(hull[level, top, j]), at]
            total += abs(entry - 1.0) if i == q else abs(entry)
        drift = max(drift, total)
    if not drift < 0.1:
        return False
    for i in range(d + 1):
        error = 1e-12 + 2.0 * drift
        for j in range(d):
            error += 2.0 * abs(hull[level, i, j]) * hull[level, top + 1, j] * _CLEAR
        if not hull[level, i, d] > error:
            return False
    return True


@_compiled
def _segment(e: int, number: int, values: Floats, hull: Floats) -> None:
    """Begin a stack of hulls with one hyperplane: the points on either side that are farthest from it surround zero."""
    top, low, high = hull.shape[2], 0, 0
    least, most = _extremes(e, number, values)
    while low < number - 1 and values[e, low] != least:
        low += 1
    while high < number - 1 and values[e, high] != most:
        high += 1
    scale = 1.0 / max(-values[e, low], values[e, high])
    a, b = scale * values[e, low], scale * values[e, high]
    hull[0, 0, 0], hull[0, 0, 1], hull[0, 1, 0], hull[0, 1, 1] = 1.0 / (a - b), -b / (a - b), -1.0 / (a - b), a / (a - b)
    hull[0, top, 0], hull[0, top + 1, 0], hull[0, top + 2, 0], hull[0, top + 2, 1] = e, scale, low, high


@_compiled
def _extend(level: int, f: int, number: int, values: Floats, hull: Floats) -> None:
    """Put a hull with one hyperplane more on the stack: the same points, and an artificial direction for what they leave of its value."""
    top, d = hull.shape[2], level + 1
    least, most = _extremes(f, number, values)
    scale, rest = 1.0 / max(most, -least, 1e-30), 0.0
    for j in range(d + 1):
        total = 0.0
        for i in range(d + 1):
            total += scale * values[f, int(hull[level, top + 2, i])] * hull[level, i, j]
        hull[level + 1, d + 1, j] = rest = total
    turn = 0.25 if rest > 0.0 else -0.25
    for i in range(d + 1):
        for j in range(d):
            hull[level + 1, i, j] = hull[level, i, j]
        hull[level + 1, i, d], hull[level + 1, i, d + 1] = 0.0, hull[level, i, d]
        hull[level + 1, top + 2, i] = hull[level, top + 2, i]
    for j in range(d):
        hull[level + 1, d + 1, j] *= turn
        hull[level + 1, top, j], hull[level + 1, top + 1, j] = hull[level, top, j], hull[level, top + 1, j]
    hull[level + 1, d + 1, d], hull[level + 1, d + 1, d + 1] = -turn, turn * rest
    hull[level + 1, top, d], hull[level + 1, top + 1, d], hull[level + 1, top + 2, d + 1] = f, scale, -1.0


@_compiled
def _hull(level: int, number: int, values: Floats, hull: Floats) -> int:
    """0 if some of the points surround zero in the values of a level's hyperplanes, which then meet in the cell; else how many they are, or -1.

    A simplex method over weights of the points that drives the artificial direction out.
    Rows of a level of ``hull``: its inverse, then: places of coordinates, scales, points of the basis, their cost row, the entering column.
    """
    top, d, spare, art = hull.shape[2], level + 1, len(values) - 2, level + 1
    for i in range(d + 1):
        if hull[level, top + 2, i] < 0.0:
            art = i
    for _ in range(20 * d + 40):
        for j in range(d + 1):
            hull[level, top + 3, j] = hull[level, art, j]
        for i in range(number):
            values[spare, i] = hull[level, top + 3, d]
        for j in range(d):
            f, rate = int(hull[level, top, j]), hull[level, top + 3, j] * hull[level, top + 1, j]
            for i in range(number):
                values[spare, i] += rate * values[f, i]
        _, best = _extremes(spare, number, values)
        if best <= 1e-9:
            return d
        enter = 0
        while enter < number - 1 and values[spare, enter] != best:
            enter += 1
        leave, ratio = -1, np.inf
        for i in range(d + 1):
            total = hull[level, i, d]
            for j in range(d):
                total += hull[level, i, j] * hull[level, top + 1, j] * values[int(hull[level, top, j]), enter]
            hull[level, top + 4, i] = total
            if total > 1e-9:
                step = max(hull[level, i, d], 0.0) / total
                if step < ratio or (step == ratio and i == art):
                    leave, ratio = i, step
        if leave < 0:
            return -1
        pivot = hull[level, top + 4, leave]
        for j in range(d + 1):
            hull[level, leave, j] /= pivot
        for i in range(d + 1):
            if i != leave:
                rate = hull[level, top + 4, i]
                for j in range(d + 1):
                    hull[level, i, j] -= rate * hull[level, leave, j]
        hull[level, top + 2, leave] = enter
        if leave == art:
            return 0 if _surround(level, d, values, hull) else -1
    return -1


@_compiled
def _faces(
    position: int, r: int, b: int, unit_of: Any, stable_at: Any, combined: Floats, errors: Floats, planes: Floats, masks: Any, values: Floats, hull: Floats,
    row_of: Any, codes: Any, bases: Any, blocks: Floats, held: Any, pool: Floats,
    doors: Any, gram: Floats, frame: Floats, light: Any, columns: Floats, noise: Any, rows: Floats, lists: Any, picks: Any,
    inverse: Floats, work: Floats, vectors: Floats, spots: Floats, costs: Any, scratch: Floats, order: Any, prices: Any, bits: Any, kept: Any, walls: Floats, cuts: Floats, tight: Any, corner: Floats, tips: Floats, faint: Any, worth: Any, mixed: Any, blend: Floats, counters: Any,
) -> int:
    """Cells that the units from ``position`` on make of this cell; -1 if they are too many, -2 if not in general position.

    Rows of ``masks``: known non-faces, then per level: set, candidates, good ones, next candidate, total; units of the hyperplanes.
    """
    p = combined.shape[1] - 1
    crossing, size, pulled, found, deep = np.int64(0), 0, False, 0, False
    for u in range(position, len(unit_of)):
        if stable_at[u] <= position:
            continue
        quick = quick_sign(unit_of[u], combined, errors)
        if quick == -2:
            return -2
        if quick >= 0:
            stable_at[u] = position
            continue
        if crossing > MOST_FACES:
            continue
        place(unit_of[u], 1.0, r, False, gram, combined, errors, rows)
        if not pulled:
            least, pulled = _centre(b, r, blocks, held, rows, scratch, counters), True
            deep = least > 2.0 * SLACK
            size = _pull(r, pool, rows, scratch, values, counters) if least > _FAR else 0
            for c in range(p):
                planes[len(planes) - 1, c] = scratch[5, c]
        _spread(crossing, r, size, b, len(planes) - 1, planes, blocks, held, pool, rows, values)
        low, high = _extremes(crossing, size + held[b], values)
        if high < _CLEAR or low > -_CLEAR:
            positive = high > -low
            if positive:
                for c in range(p + 1):
                    rows[r, c] = -rows[r, c]
            key = 2 * u + 1 if positive else 2 * u
            status = _ask(doors[_ASK], r, deep, key, position, row_of, codes, bases, doors, gram, frame, light, columns, noise, rows, lists, picks, inverse, work, vectors, spots, costs, scratch, order, prices, bits, kept, walls, cuts, tight, corner, tips, faint, worth, mixed, blend, counters)
            if status == UNCLEAR:
                return -2
            if status == INFEASIBLE:
                stable_at[u] = position
                continue
            if positive:
                for c in range(p + 1):
                    rows[r, c] = -rows[r, c]
            found += 1
            if held[b] < blocks.shape[1]:
                for c in range(p):
                    blocks[b, held[b], c] = spots[1, c]
                held[b] += 1
            else:
                for c in range(p):
                    blocks[b, held[b] - 1, c] = spots[1, c]
            for f in range(crossing + 1):
                total = planes[f, p] if f < crossing else rows[r, p]
                for c in range(p):
                    total += (planes[f, c] if f < crossing else rows[r, c]) * spots[1, c]
                values[f, size + held[b] - 1] = total
        for c in range(p + 3):
            planes[crossing, c] = rows[r, c]
        masks[6, crossing] = u
        crossing += 1
    if crossing > MOST_FACES:
        return -1
    for i in range(max(held[b] - found, 0), held[b]):  # only now: the values above belong to the pool as it was
        for c in range(p):
            spots[1, c] = blocks[b, i, c]
        _throw(spots, pool, counters)
    number = size + held[b]
    result, against, top = 1, 0, hull.shape[2]
    for e in range(crossing - 1, -1, -1):
        level = 0
        masks[1, 0], masks[2, 0], masks[3, 0] = 1 << e, ((1 << crossing) - 1) ^ ((1 << (e + 1)) - 1), 0
        masks[4, 0], masks[5, 0] = crossing - 1, 1
        _segment(e, number, values, hull)
        while level >= 0:
            members, candidates, f = masks[1, level], masks[2, level], masks[4, level]
            while f >= 0 and not candidates >> f & 1:
                f -= 1
            if f < 0:  # all candidates seen
                found = masks[5, level]
                level -= 1
                if level >= 0:
                    masks[5, level] += found
                else:
                    result += found
                continue
            masks[4, level] = f - 1
            tried, face = members | 1 << f, True
            for i in range(against):
                if masks[0, i] & ~tried == 0:
                    face = False
                    break
            rounds = 0
            if face:
                _extend(level, f, number, values, hull)
            while face:
                d = _hull(level + 1, number, values, hull)
                if d == 0:
                    break
                if d < 0 or rounds > _ROUNDS:
                    return -2
                rounds += 1
                # the direction in which no known point lies beyond zero
                total = 0.0
                for c in range(p + 1):
                    rows[r, c] = 0.0
                for j in range(d):
                    g, rate = int(hull[level + 1, top, j]), hull[level + 1, top + 3, j] * hull[level + 1, top + 1, j]
                    total += abs(rate) * planes[g, p + 2]
                    for c in range(p + 1):
                        rows[r, c] += rate * planes[g, c]
                norm = 0.0
                for c in range(p + 1):
                    norm += abs(rows[r, c])
                if total > 1e-3 * norm:
                    return -2
                slope = 0.0
                for c in range(p + 1):
                    rows[r, c] /= norm
                    slope += abs(rows[r, c]) if c < p else 0.0
                rows[r, p + 2] = total / norm
                if rows[r, p] + slope < -MARGIN - rows[r, p + 2]:
                    status = INFEASIBLE
                else:
                    key = 0
                    for j in range(d):
                        key = key * 31 + masks[6, int(hull[level + 1, top, j])]
                    key = 2 * len(unit_of) + key % _SETS
                    status = _ask(doors[_ASK], r, deep, key, position, row_of, codes, bases, doors, gram, frame, light, columns, noise, rows, lists, picks, inverse, work, vectors, spots, costs, scratch, order, prices, bits, kept, walls, cuts, tight, corner, tips, faint, worth, mixed, blend, counters)
                if status == UNCLEAR:
                    return -2
                if status == INFEASIBLE:
                    face, found = False, 0
                    for j in range(d):
                        if abs(hull[level + 1, top + 3, j] * hull[level + 1, top + 1, j]) > 0.0:
                            found |= 1 << int(hull[level + 1, top, j])
                    if against == masks.shape[1]:
                        return -1
                    masks[0, against] = found
                    against += 1
                    break
                if number == values.shape[1]:
                    return -2
                _throw(spots, pool, counters)
                for g in range(crossing):
                    total = planes[g, p]
                    for c in range(p):
                        total += planes[g, c] * spots[1, c]
                    values[g, number] = total
                number += 1
            if face:
                good = masks[3, level]
                masks[3, level] = good | 1 << f
                level += 1
                masks[1, level], masks[2, level], masks[3, level] = tried, good, 0
                masks[4, level], masks[5, level] = crossing - 1, 1
    return result


@_compiled
def _keep(key: int, picks: Any, codes: Any, signs: Any, proofs: Any) -> None:
    """Keep which signs of other units prove that a unit has no other sign: they do so wherever the layers before its own are in the same state."""
    size, found = picks[1, 0], 0
    if size >= proofs.shape[2]:
        return
    at = 1 + proofs[key, 0, 0] % (proofs.shape[1] - 1)
    proofs[key, 0, 0] += 1
    for i in range(size):
        unit = codes[picks[0, i]]
        if unit >= 0:
            found += 1
            proofs[key, at, found] = 2 * unit + signs[unit]
    proofs[key, at, 0] = found


@_compiled
def _settled(u: int, signs: Any, proofs: Any) -> int:
    """The sign of a unit that a proof from another cell leaves, or -1: it holds where the units it is made of have the same signs."""
    for key in range(2 * u, 2 * u + 2):
        for at in range(1, 1 + min(proofs[key, 0, 0], proofs.shape[1] - 1)):
            i = proofs[key, at, 0]
            while i > 0 and signs[proofs[key, at, i] >> 1] == proofs[key, at, i] & 1:
                i -= 1
            if i == 0:
                return key - 2 * u
    return -1


@_compiled
def walk_by_points(
    limit: int, fixed: int, signs: Any, nodes: Any, left: Any, proofs: Any, unit_of: Any, layer_of: Any, stable_at: Any, layout: Any, weights: Floats, biases: Floats,
    active: Any, combined: Floats, errors: Floats, planes: Floats, masks: Any, values: Floats, hull: Floats,
    row_of: Any, codes: Any, bases: Any, blocks: Floats, held: Any, pool: Floats,
    doors: Any, gram: Floats, frame: Floats, light: Any, columns: Floats, noise: Any, rows: Floats, lists: Any, picks: Any,
    inverse: Floats, work: Floats, vectors: Floats, spots: Floats, costs: Any, scratch: Floats, order: Any, prices: Any, bits: Any, kept: Any, walls: Floats, cuts: Floats, tight: Any, corner: Floats, tips: Floats, faint: Any, worth: Any, mixed: Any, blend: Floats, counters: Any,
) -> int:
    """Go on with the walk until it is done or ``limit`` linear programs were solved.

    Columns of ``nodes``, one row per unit: whether its other side waits, the block, rows and splits above.
    """
    units, p = len(unit_of), combined.shape[1] - 1
    u, r, down, splits, b = counters[POSITION], counters[ROWS], counters[DOWN], counters[SPLITS], counters[STATE]
    status = MORE
    while counters[TESTS] < limit and counters[LEFT] + 2 < len(left):
        if not down:
            u -= 1
            while u >= fixed and nodes[u, 0] == 0:
                u -= 1
            if u < fixed:
                status = DONE
                break
            if counters[PLAIN] > u:
                counters[PLAIN] = units + 1
            for other in range(units - 1, u, -1):
                if layer_of[other] != layer_of[units - 1]:
                    break
                if stable_at[other] > u:
                    stable_at[other] = units + 1
            nodes[u, 0] = 0
            signs[u] = 1 - signs[u]
            b, r, splits = nodes[u, 1], nodes[u, 2], nodes[u, 3] + 1
            g = unit_of[u]
            active[g] = signs[u]
            place(g, 1.0 if signs[u] else -1.0, r, False, gram, combined, errors, rows)
            _inherit(b, r, blocks, held, rows, scratch)
            _stand(r, rows, walls)
            row_of[u], codes[r] = r, u
            b += 1
            r += 1
            u += 1
            down = 1
            continue
        if u == units:
            counters[REGIONS] += 1
            down = 0
            continue
        layer = layer_of[u]
        if u == 0 or layer_of[u - 1] != layer:
            for number in range(layer_of[u - 1] + 1 if u else 1, layer + 1):
                compose(number, layout, weights, biases, active, combined, errors, scratch)
            if layer > 0:
                for other in range(2 * u, 2 * units):
                    proofs[other, 0, 0] = 0
        if layer == layer_of[units - 1] and u >= fixed and counters[PLAIN] != u:
            found = _faces(u, r, b, unit_of, stable_at, combined, errors, planes, masks, values, hull, row_of, codes, bases, blocks, held, pool, doors, gram, frame, light, columns, noise, rows, lists, picks, inverse, work, vectors, spots, costs, scratch, order, prices, bits, kept, walls, cuts, tight, corner, tips, faint, worth, mixed, blend, counters)
            if found > 0:
                counters[REGIONS] += found
                down = 0
                continue
            if found == -2 and _deepen(r, b, u, row_of, codes, bases, blocks, held, doors, gram, frame, light, columns, noise, rows, lists, picks, inverse, work, vectors, spots, costs, scratch, order, prices, bits, kept, walls, cuts, tight, corner, tips, faint, worth, mixed, blend, counters):
                continue
            if found == -2:
                counters[PLAIN] = u
        g = unit_of[u]
        nodes[u, 0] = 0
        quick = quick_sign(g, combined, errors)
        if quick == -2:  # the row is lost in rounding
            leave(HARD, max(u, fixed), splits, signs, left, counters[LEFT])
            counters[LEFT] += 1
            if u < fixed:
                status = DONE
                break
            down = 0
            continue
        if quick < 0 and u >= fixed:
            quick = _settled(u, signs, proofs)
        exists_0, exists_1 = FEASIBLE, FEASIBLE
        if quick < 0:
            place(g, 1.0, r, False, gram, combined, errors, rows)
            high, low = 0.0, 0.0
            for i in range(held[b]):
                total = rows[r, p]
                for c in range(p):
                    total += rows[r, c] * blocks[b, i, c]
                high = max(high, total)
                low = min(low, total)
            above, below = high >= SEEN, low <= -SEEN
            if stable_at[u] <= u and max(high, -low) >= 0.5 * SEEN:
                quick = 1 if high > -low else 0
            deep = False
            if quick < 0 and not (above and below):
                least = _centre(b, r, blocks, held, rows, scratch, counters)
                deep = least > 2.0 * SLACK
                size = 0
                if above != below and least > _FAR and (u >= fixed or above != (signs[u] == 1)):
                    size = _pull(r, pool, rows, scratch, values, counters)
                if size:
                    _spread(0, r, size, b, 5, scratch, blocks, held, pool, rows, values)
                    sign, best, at = -1.0 if above else 1.0, 0.0, 0
                    for k in range(size):
                        best = max(best, sign * values[0, k])
                    if best >= SEEN:
                        while sign * values[0, at] != best:
                            at += 1
                        slot = min(held[b], blocks.shape[1] - 1)
                        held[b] = slot + 1
                        for c in range(p):
                            blocks[b, slot, c] = scratch[5, c] + values[len(values) - 1, at] * (pool[c, at] - scratch[5, c])
                        if held[b] < blocks.shape[1]:
                            middle = rows[r, p]
                            for c in range(p):
                                middle += rows[r, c] * scratch[5, c]
                            part = 0.5 + 0.5 * middle / (middle - sign * best)
                            for c in range(p):
                                blocks[b, held[b], c] = scratch[5, c] + part * (blocks[b, slot, c] - scratch[5, c])
                            held[b] += 1
                        above = below = True
            if quick < 0:
                for side in range(1, -1, -1):
                    if (above if side else below) or (u < fixed and side != signs[u]):
                        continue
                    place(g, 1.0 if side else -1.0, r, False, gram, combined, errors, rows)
                    outcome = _ask(doors[_ASK], r, deep, 2 * u + 1 - side, u, row_of, codes, bases, doors, gram, frame, light, columns, noise, rows, lists, picks, inverse, work, vectors, spots, costs, scratch, order, prices, bits, kept, walls, cuts, tight, corner, tips, faint, worth, mixed, blend, counters)
                    if outcome == UNCLEAR and _deepen(r, b, u, row_of, codes, bases, blocks, held, doors, gram, frame, light, columns, noise, rows, lists, picks, inverse, work, vectors, spots, costs, scratch, order, prices, bits, kept, walls, cuts, tight, corner, tips, faint, worth, mixed, blend, counters):
                        deep = _centre(b, r, blocks, held, rows, scratch, counters) > 2.0 * SLACK
                        outcome = _ask(doors[_ASK], r, deep, 2 * u + 1 - side, u, row_of, codes, bases, doors, gram, frame, light, columns, noise, rows, lists, picks, inverse, work, vectors, spots, costs, scratch, order, prices, bits, kept, walls, cuts, tight, corner, tips, faint, worth, mixed, blend, counters)
                    if outcome == FEASIBLE:
                        _throw(spots, pool, counters)
                        slot = min(held[b], blocks.shape[1] - 1 - side)
                        held[b] = max(held[b], slot + 1)
                        for c in range(p):
                            blocks[b, slot, c] = spots[1, c]
                        if held[b] < blocks.shape[1]:
                            for c in range(p):
                                blocks[b, held[b], c] = spots[2, c]
                            held[b] += 1
                    elif outcome == INFEASIBLE:
                        _keep(2 * u + 1 - side, picks, codes, signs, proofs)
                    if side:
                        exists_1 = outcome
                    else:
                        exists_0 = outcome
        if quick >= 0:
            exists_0 = INFEASIBLE if quick else FEASIBLE
            exists_1 = FEASIBLE if quick else INFEASIBLE
        if u < fixed:
            chosen = signs[u]
            if (exists_1 if chosen else exists_0) != FEASIBLE:
                leave(HARD, fixed, splits, signs, left, counters[LEFT])
                counters[LEFT] += 1
                status = DONE
                break
        else:
            for side in range(2):
                if (exists_1 if side else exists_0) == UNCLEAR:
                    signs[u] = side
                    leave(HARD, u + 1, splits + 1, signs, left, counters[LEFT])
                    counters[LEFT] += 1
            if FEASIBLE not in (exists_0, exists_1):
                down = 0
                continue
            chosen = 1 if exists_1 == FEASIBLE else 0
            if exists_0 == FEASIBLE and exists_1 == FEASIBLE:
                nodes[u, 0], nodes[u, 1], nodes[u, 2], nodes[u, 3] = 1, b, r, splits
                splits += 1
        signs[u] = chosen
        active[g] = chosen
        if (exists_0 if chosen else exists_1) != INFEASIBLE:
            place(g, 1.0 if chosen else -1.0, r, False, gram, combined, errors, rows)
            _inherit(b, r, blocks, held, rows, scratch)
            _stand(r, rows, walls)
            row_of[u], codes[r] = r, u
            b += 1
            r += 1
        else:
            row_of[u] = -1
        u += 1
    counters[POSITION], counters[ROWS], counters[DOWN], counters[SPLITS], counters[STATE] = u, r, down, splits, b
    return status


# fmt: on


class Hulls(Simplex):
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
        p, inputs = self._frame.shape
        units, most = self._units, len(self._rows)
        held = max(8, min(_POINTS, (1 << 23) // (p * (units + 2))))
        rng = np.random.default_rng(inputs)
        corners = EDGE * rng.choice((-1.0, 1.0), (64, inputs)) @ self._columns
        self._blocks = np.zeros((units + 2, held, p))
        self._held = np.zeros(units + 2, dtype=np.int64)
        self._held[0] = min(len(corners), held - 4)
        self._blocks[0, : self._held[0]] = corners[: self._held[0]]
        self._pool = np.zeros((p, _POOL))
        self._pool[:, : len(corners)] = corners.T
        self._pooled, self._cut = len(corners), 0
        self._values = np.zeros((MOST_FACES + 4, self._pool.shape[1] + held + 512))
        self._hull = np.zeros((MOST_FACES + 1, MOST_FACES + 8, MOST_FACES + 2))
        self._spots = np.zeros((4, p))
        self._kept = np.full((2 * units + _SETS + 2, p), -1, dtype=np.int64)
        self._walls = np.zeros((p + 3, most + 8))
        self._cuts = np.zeros((p + 1, MOST_CUTS))
        self._tight = np.zeros(p, dtype=np.int64)
        self._corner = np.zeros((p + 3, p))
        self._tips = np.zeros((MOST_TIPS + 1, p))
        self._tips[: len(corners)] = corners
        self._faint = np.ascontiguousarray(self._tips[:-1].T, dtype=np.float32)
        self._worth = np.zeros(MOST_TIPS, dtype=np.float32)
        asked = min(most, _MIXED_ROWS) + 1 if mixtures else 0
        self._mixed = np.zeros(asked, dtype=np.int64)
        self._blend = np.zeros((asked, asked + 8))
        self._tipped = len(corners)
        self._transfers = np.zeros((2 * units, _PROOFS + 1, _LONGEST + 1), dtype=np.int64)
        basis = self._lists.shape[2]
        self._picks = np.zeros((4, max(basis, most)), dtype=np.int64)
        self._bases = np.zeros((2 * units + _SETS + 2, 2 * basis + 2), dtype=np.int64)
        self._bases[:-1, 0] = -1
        self._noise = (NOISE * rng.uniform(0.5, 1.0, inputs) * rng.choice((-1.0, 1.0), inputs)).astype(np.float32)
        self._scratch = np.zeros((8, max(self._scratch.shape[1], held, most, MOST_CUTS, most + 9)))

        question = (self._row_of, self._codes, self._bases)
        frame = (self._gram, self._frame, self._light, self._columns, self._noise)
        basis = (self._rows, self._lists, self._picks, self._inverse, self._inverse[-1], self._vectors, self._spots, self._costs)
        scratch = (self._scratch, self._order, self._prices, self._prices.view(np.int32))
        few = (self._kept, self._walls, self._cuts, self._tight, self._corner)
        inside = (self._tips, self._faint, self._worth, self._mixed, self._blend)
        self._doors = np.zeros(3, dtype=np.int64)
        self._asked = (self._doors, *frame, *basis, *scratch, *few, *inside, self._counters)
        self._doors[_MIX] = address(
            mix,
            0,
            False,
            False,
            self._frame,
            self._rows,
            *few[1:4],
            *inside[:5],
            self._picks,
            self._spots,
            self._scratch,
            self._counters,
        )
        self._doors[_CLIMB] = address(climb, 0, False, 0, 0, *question, *frame, *basis, *scratch, self._counters)
        self._doors[_ASK] = address(_maximise, 0, False, 0, 0, *question, *self._asked)

    def _walk(self, fixed: int, tests: int) -> int:
        if self._careful:
            return super()._walk(fixed, tests)
        counters = self._counters
        counters[_POOLED], counters[ADDED], counters[TIPS], counters[MIXED] = self._pooled, self._cut, self._tipped, 0
        status = walk_by_points(
            counters[TESTS] + tests,
            fixed,
            self._signs,
            self._nodes,
            self._left,
            self._transfers,
            *(self._unit_of, self._layer_of, self._stable_at),
            *(self._layout, self._weights, self._biases, self._active, self._combined, self._errors),
            *(self._planes, self._masks, self._values, self._hull),
            *(self._row_of, self._codes, self._bases, self._blocks, self._held, self._pool),
            *self._asked,
        )
        self._pooled, self._cut, self._tipped = int(counters[_POOLED]), int(counters[ADDED]), int(counters[TIPS])
        return status
