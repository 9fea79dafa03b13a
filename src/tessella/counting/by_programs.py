"""The walk over cells held as linear programs, compiled with Numba: any number of inputs.

**Coordinates.**  A cell is a stack of rows a.z + b >= 0, scaled to sum(|a|) + |b| = 1, so that all values lie in [-1, 1].  Mostly z is the inputs u, scaled
to [-1, 1]^n.  Where these are many, and more than the first layer's rows (and the domain's), it is these rows, of which all others are combinations.

**The linear program** is a bounded dual simplex that only looks for a point.  Its costs are random and generic, so it hardly ever
meets ties, and any basis stays dual feasible when a row is pushed or popped.  One iteration takes out the worst violated row or input and
walks past all breakpoints of the dual function while it falls (the long-step ratio test).  State number s + 1 is a copy of state s
with one more row, so undoing is free.  There are two forms of it, one for either kind of coordinates: `tessella.cells.tableau` and `tessella.cells.framed`.

**Margins.**  Rows are asked to be >= margin and inputs to keep away from their ends, so a point found lies strictly inside, by far
more than rounding: the cell exists.  A proof of emptiness is a combination of rows that is negative on the whole box; it must hold
with all rows relaxed by several margins, and is computed in double precision: the cell does not exist.  What is neither is thin.

**The last layer** is not walked.  In a cell, hyperplanes in general position have as many cells as there are sets of them (the empty
one included) that meet inside it (Zaslavsky 1975).  These sets are closed under taking subsets; a few large ones that do meet, a few
small ones that do not, and points of intersections that lie on both sides of a further hyperplane, or in all quarters that two make, settle most of the
others without a linear program.  Hyperplanes that depend on each other are walked instead.

With many inputs, more than units in the first layer, `tessella.counting.by_points` is faster, and leaves to this walk what it cannot decide.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np

from tessella.cells.old import framed, tableau
from tessella.cells.old import rows as steps
from tessella.cells.old.rows import (
    CORE,
    DEEP,
    DOWN,
    EDGE,
    EXTRA,
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
    THIN,
    UNCLEAR,
    UNHARMFUL,
    combine,
    compose,
    leave,
    place,
    quick_sign,
)
from tessella.kernel.compiling import address, calling, compiler
from tessella.network import Floats
from tessella.parallel import Stop
from tessella.partition.tree import Found, Node, Tree

DONE, MORE, FOUND = 0, 1, 2

_SHORT, _LONG = 100, 6  # cells live in the space of inputs up to so many, unless these are so many times the first rows
MOST_FACES = 12  # hyperplanes of the last layer that are counted at once
_ENTERED = -9
_CHUNK = 0.01  # seconds between looks at the clock
_CAREFUL = 2  # linear programs at once below a hard node
_STATES = 1 << 28  # bytes for states; what lies deeper is left open, and walked from its own prefix later

# places of the counters
_REUSED, _FACES = 10, 11


_sources = steps.__file__, framed.__file__, tableau.__file__
_compiled = compiler(*_sources, _nrt=False)
_inlined = compiler(*_sources, _nrt=False, inline="always")
_copy_framed, _copy_tableau = framed.copy, tableau.copy

# fmt: off


@_inlined
def _copy(s: int, t: int, identity: bool, lists: Any, inverse: Floats, vectors: Floats, costs: Any) -> None:
    """Make state t a copy of state s."""
    if identity:
        _copy_tableau(s, t, lists, inverse, vectors)
    else:
        _copy_framed(s, t, lists, inverse, vectors, costs)


_solve = calling(tableau.solve, framed.solve)  # by address: which of the two, the walker decides


@_inlined
def _value(s: int, at: int, rows: Floats, vectors: Floats) -> float:
    """A row's value at a state's vertex."""
    p = rows.shape[1] - 3
    total = rows[at, p]
    for c in range(p):
        total += rows[at, c] * vectors[s, p + c]
    return total


@_compiled
def _remember(
    u: int, positive: bool, s: int, r: int, scratch: Floats, lists: Any, codes: Any, proofs: Any, shares: Floats, counters: Any
) -> None:
    """Keep the proof that unit u (its row at r) is positive, or negative, in a cell: which rows add up to it, and how much of each."""
    k, extra, own = lists[s, 2, 0], counters[EXTRA], 1.0
    if extra == r:
        own = 1.0
    for i in range(k):
        if lists[s, 0, i] == r:
            own = abs(scratch[0, i])
    key, size = 2 * u + (1 if positive else 0), 0
    for i in range(k + 1):
        row, share = (lists[s, 0, i], scratch[0, i]) if i < k else (extra, 1.0)
        if row >= 0 and row < r and share > 0.0 and own > 0.0:
            proofs[key, 1 + size] = codes[row]
            shares[key, size] = share / own
            size += 1
    proofs[key, 0] = size


@_compiled
def _proved(
    u: int, position: int, positive: bool, r: int, identity: bool, frame: Floats, rows: Floats, row_of: Any, signs: Any, proofs: Any,
    shares: Floats, scratch: Floats,
) -> bool:
    """Whether an earlier proof that the unit is positive (or negative), from another cell, also holds in this one."""
    key = 2 * u + (1 if positive else 0)
    size = proofs[key, 0]
    if size < 0:
        return False
    n, p = frame.shape[1], rows.shape[1] - 3
    side = -1.0 if positive else 1.0
    constant, total = side * rows[r, p], 1.0
    for c in range(p):
        scratch[3, c] = side * rows[r, c]
    for i in range(size):
        code = proofs[key, 1 + i]
        row = -1 - code
        if code >= 0:
            unit = code // 2
            if unit >= position or row_of[unit] < 0 or signs[unit] != code % 2:
                continue
            row = row_of[unit]
        share = shares[key, i]
        total += share
        constant += share * rows[row, p]
        for c in range(p):
            scratch[3, c] += share * rows[row, c]
    if identity:
        for c in range(p):
            constant += abs(scratch[3, c])
    else:
        combine(frame, scratch)
        for j in range(n):
            constant += abs(scratch[4, j])
    return constant + 4.0 * MARGIN * total < 0.0


@_compiled
def _push(
    base: int, here: int, r: int, depth: int, f: int, planes: Floats, solver: int, identity: bool, gram: Floats, frame: Floats, light: Any, columns: Floats,
    start: Any, rows: Floats, lists: Any, inverse: Floats, vectors: Floats, costs: Any, scratch: Floats, order: Any, prices: Any, bits: Any, counters: Any,
) -> int:
    """Try one more equation (plane f, as row r + depth) on top of state ``here``; the result is state base + depth."""
    for c in range(rows.shape[1]):
        rows[r + depth, c] = planes[f, c]
    _copy(here, base + depth, identity, lists, inverse, vectors, costs)
    return _solve(
        solver, base + depth, r + depth + 1, r, gram, frame, light, columns, start, rows, lists, inverse, vectors, costs, scratch, order, prices, bits, counters
    )


@_inlined
def _note(point: int, members: int, s: int, crossing: int, planes: Floats, vectors: Floats, masks: Any) -> None:
    """Note a point of the hyperplanes ``members``: on which sides of the others it lies."""
    p = planes.shape[1] - 3
    above, below = 0, 0
    for f in range(crossing):
        total = planes[f, p]
        for c in range(p):
            total += planes[f, c] * vectors[s, p + c]
        if not members >> f & 1:
            if total > 10.0 * MARGIN:
                above |= 1 << f
            elif total < -10.0 * MARGIN:
                below |= 1 << f
    masks[10, point], masks[11, point], masks[12, point] = members, above, below


@_inlined
def _cut(members: int, points: int, masks: Any) -> int:
    """Which hyperplanes have points of the intersection of ``members`` on both sides, and so meet it in between."""
    above, below = 0, 0
    for i in range(points):
        if members & ~masks[10, i] == 0:
            above |= masks[11, i]
            below |= masks[12, i]
    return above & below


@_compiled
def _meet(members: int, points: int, masks: Any) -> int:
    """Which hyperplanes meet the intersection of ``members``, because points show that they meet the one without some member, on both sides of it."""
    found, others = 0, members
    while others:
        one = others & -others
        others ^= one
        rest, q0, q1, q2, q3 = members ^ one, 0, 0, 0, 0  # per quarter, which hyperplanes have a point there; one on them is in two
        for i in range(points):
            fits = -1 if rest & ~masks[10, i] == 0 else 0
            above, below = (masks[10, i] | masks[11, i]) & fits, (masks[10, i] | masks[12, i]) & fits
            up, down = -1 if above & one else 0, -1 if below & one else 0
            q0 |= above & up
            q1 |= below & up
            q2 |= above & down
            q3 |= below & down
        found |= q0 & q1 & q2 & q3
    return found


@_compiled
def _faces(
    position: int, s: int, r: int, unit_of: Any, signs: Any, row_of: Any, codes: Any, proofs: Any, shares: Floats, stable_at: Any,
    combined: Floats, errors: Floats, planes: Floats, masks: Any, solver: int, identity: bool, gram: Floats, frame: Floats, light: Any, columns: Floats, start: Any, rows: Floats,
    lists: Any, inverse: Floats, vectors: Floats, costs: Any, scratch: Floats, order: Any, prices: Any, bits: Any, counters: Any,
) -> int:
    """Cells that the units from ``position`` on make of the cell of state s; -1 if they are too many, -2 if not in general position.

    Rows of ``masks``: known faces, known non-faces, then per level: element, set, candidates, good ones, next candidate, total, whether
    it is solved, the elements of a dive; then points: the hyperplanes they lie on, those they lie above, those below; then, per level, hyperplanes known to meet the set.
    """
    crossing = 0
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
        place(unit_of[u], 1.0, r, identity, gram, combined, errors, rows)
        positive = _value(s, r, rows, vectors) > 0.0
        if _proved(u, position, positive, r, identity, frame, rows, row_of, signs, proofs, shares, scratch):
            counters[_REUSED] += 1
            stable_at[u] = position
            continue
        state = s + 1 + crossing
        _copy(s, state, identity, lists, inverse, vectors, costs)
        status = _solve(
            solver, state, r + 1, r, gram, frame, light, columns, start, rows, lists, inverse, vectors, costs, scratch, order, prices, bits, counters
        )
        if status == UNCLEAR:
            return -2
        if status == INFEASIBLE:
            _remember(u, positive, state, r, scratch, lists, codes, proofs, shares, counters)
            stable_at[u] = position
            continue
        for c in range(rows.shape[1]):
            planes[crossing, c] = rows[r, c]
        crossing += 1
    if crossing > MOST_FACES:
        return -1
    counters[_FACES] += 1
    result, known, against, base, points = 1, 0, 0, s + 1 + crossing, crossing + 1
    for e in range(crossing):
        _note(e, 1 << e, s + 1 + e, crossing, planes, vectors, masks)
    _note(crossing, 0, s, crossing, planes, vectors, masks)
    for e in range(crossing - 1, -1, -1):
        level = np.int64(0)
        masks[2, 0], masks[3, 0], masks[4, 0], masks[5, 0] = e, 1 << e, ((1 << crossing) - 1) ^ ((1 << (e + 1)) - 1), 0
        masks[6, 0], masks[7, 0], masks[8, 0], masks[13, 0] = _ENTERED, 1, 1, -1
        for c in range(rows.shape[1]):
            rows[r, c] = planes[e, c]
        while level >= 0:
            members, candidates = masks[3, level], masks[4, level]
            if masks[6, level] == _ENTERED:
                whole, inside = members | candidates, candidates == 0
                for f in range(known):
                    if whole & ~masks[0, f] == 0:
                        inside = True
                        break
                if inside:  # every subset is a face
                    size = 0
                    while candidates:
                        candidates &= candidates - 1
                        size += 1
                    masks[7, level] = 1 << size
                    masks[6, level] = -1
                elif level > 0:
                    masks[6, level] = crossing - 1
                else:  # dive: as many candidates as will meet
                    here, reached, depth = s + 1 + e, members, level
                    for f in range(crossing):
                        if not candidates >> f & 1:
                            continue
                        tried, hopeless = reached | 1 << f, False
                        for b in range(against):
                            if masks[1, b] & ~tried == 0:
                                hopeless = True
                                break
                        if hopeless:
                            continue
                        masks[9, depth + 1] = f
                        status = _push(
                            base, here, r, depth + 1, f, planes, solver, identity, gram, frame, light, columns, start, rows, lists, inverse, vectors, costs, scratch, order, prices, bits, counters
                        )
                        if status == UNCLEAR:
                            return -2
                        if status == FEASIBLE:
                            reached, depth, here = tried, depth + 1, base + depth + 1
                            if points < masks.shape[1]:
                                _note(points, reached, here, crossing, planes, vectors, masks)
                                points += 1
                            continue
                        core, found = counters[CORE], 1 << f
                        for b in range(depth + 1):
                            if core >> b & 1:
                                found |= 1 << (masks[9, b] if b else e)
                        if against == masks.shape[1]:
                            return -1
                        masks[1, against] = found
                        against += 1
                    if known == masks.shape[1]:
                        return -1
                    masks[0, known] = reached
                    known += 1
                    masks[6, level] = crossing - 1
                continue
            f = masks[6, level]
            while f >= 0 and not candidates >> f & 1:
                f -= 1
            if f < 0:  # all candidates seen
                found = masks[7, level]
                level -= 1
                if level >= 0:
                    masks[7, level] += found
                else:
                    result += found
                continue
            masks[6, level] = f - 1
            tried, face, solved = members | 1 << f, True, 0
            for b in range(against):
                if masks[1, b] & ~tried == 0:
                    face = False
                    break
            if face:
                inside = False
                for b in range(known):
                    if tried & ~masks[0, b] == 0:
                        inside = True
                        break
                if not inside and masks[13, level] < 0:
                    masks[13, level] = _meet(members, points, masks)
                if not inside and not (masks[13, level] | _cut(members, points, masks)) >> f & 1:
                    if not masks[8, level]:  # solve what was not needed so far
                        b = level - 1
                        while not masks[8, b]:
                            b -= 1
                        for i in range(b + 1, level):
                            for c in range(rows.shape[1]):
                                rows[r + i, c] = planes[masks[2, i], c]
                        here = base + b if b else s + 1 + e
                        if _push(
                            base, here, r, level, masks[2, level], planes, solver, identity, gram, frame, light, columns, start, rows, lists, inverse, vectors, costs, scratch, order, prices, bits, counters
                        ) != FEASIBLE:
                            return -2
                        masks[8, level] = 1
                        if points < masks.shape[1]:
                            _note(points, members, base + level, crossing, planes, vectors, masks)
                            points += 1
                    here = base + level if level else s + 1 + e
                    status = _push(
                        base, here, r, level + 1, f, planes, solver, identity, gram, frame, light, columns, start, rows, lists, inverse, vectors, costs, scratch, order, prices, bits, counters
                    )
                    if status == UNCLEAR:
                        return -2
                    if status == FEASIBLE:
                        solved = 1
                        if points < masks.shape[1]:
                            _note(points, tried, base + level + 1, crossing, planes, vectors, masks)
                            points += 1
                    else:
                        face = False
                        core, found = counters[CORE], 1 << f
                        for b in range(level + 1):
                            if core >> b & 1:
                                found |= 1 << masks[2, b]
                        if against == masks.shape[1]:
                            return -1
                        masks[1, against] = found
                        against += 1
            if face:
                good = masks[5, level]
                masks[5, level] = good | 1 << f
                level += 1
                masks[2, level], masks[3, level], masks[4, level], masks[5, level] = f, tried, good, 0
                masks[6, level], masks[7, level], masks[8, level], masks[13, level] = _ENTERED, 1, solved, -1
    return result


@_compiled
def walk(
    limit: int, fixed: int, signs: Any, nodes: Any, left: Any, unit_of: Any, layer_of: Any, row_of: Any, codes: Any, proofs: Any,
    shares: Floats, stable_at: Any, layout: Any, weights: Floats, biases: Floats, active: Any, combined: Floats, errors: Floats,
    planes: Floats, masks: Any, solver: int, identity: bool, gram: Floats, frame: Floats, light: Any, columns: Floats, start: Any, rows: Floats, lists: Any,
    inverse: Floats, vectors: Floats, costs: Any, scratch: Floats, order: Any, prices: Any, bits: Any, counters: Any,
) -> int:
    """Go on with the walk until it is done or ``limit`` linear programs were solved.

    Columns of ``nodes``, one row per unit: whether its other side waits, that side's state, rows, and splits above.
    """
    units = len(unit_of)
    u, s, r, down, splits = counters[POSITION], counters[STATE], counters[ROWS], counters[DOWN], counters[SPLITS]
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
            s, r, splits = nodes[u, 1], nodes[u, 2], nodes[u, 3] + 1
            g = unit_of[u]
            active[g] = signs[u]
            place(g, 1.0 if signs[u] else -1.0, r, identity, gram, combined, errors, rows)
            row_of[u], codes[r] = r, 2 * u + signs[u]
            r += 1
            u += 1
            down = 1
            continue
        if u == units:
            counters[REGIONS] += 1
            down = 0
            continue
        if u > fixed and s + 3 * MOST_FACES + 6 > len(lists):
            leave(DEEP, u, splits, signs, left, counters[LEFT])
            counters[LEFT] += 1
            down = 0
            continue
        layer = layer_of[u]
        if u == 0 or layer_of[u - 1] != layer:
            for number in range(layer_of[u - 1] + 1 if u else 1, layer + 1):
                compose(number, layout, weights, biases, active, combined, errors, scratch)
        if layer == layer_of[units - 1] and u >= fixed and counters[PLAIN] > u:
            found = _faces(
                u, s, r, unit_of, signs, row_of, codes, proofs, shares, stable_at, combined, errors, planes, masks, solver, identity, gram,
                frame, light, columns, start, rows, lists, inverse, vectors, costs, scratch, order, prices, bits, counters,
            )
            if found > 0:
                counters[REGIONS] += found
                down = 0
                continue
            if found == -2:
                counters[PLAIN] = u
        g = unit_of[u]
        nodes[u, 0] = 0
        quick = quick_sign(g, combined, errors)
        if quick == -2:  # the row is lost in rounding
            leave(THIN, max(u, fixed), splits, signs, left, counters[LEFT])
            counters[LEFT] += 1
            if u < fixed:
                status = DONE
                break
            down = 0
            continue
        exists_0, exists_1, state_0, state_1, value = FEASIBLE, FEASIBLE, s, s, 0.0
        if quick < 0:
            place(g, 1.0, r, identity, gram, combined, errors, rows)
            value = _value(s, r, rows, vectors)
            if (stable_at[u] <= u and abs(value) >= 0.5 * MARGIN) or (
                abs(value) >= 4.0 * MARGIN
                and _proved(u, u, value > 0.0, r, identity, frame, rows, row_of, signs, proofs, shares, scratch)
            ):
                quick = 1 if value > 0.0 else 0
                counters[_REUSED] += 1
        if quick >= 0:
            exists_0 = INFEASIBLE if quick else FEASIBLE
            exists_1 = FEASIBLE if quick else INFEASIBLE
        else:
            fresh = s + 1
            for side in range(1, -1, -1):
                sign = 1.0 if side else -1.0
                if sign * value >= 4.0 * MARGIN:
                    continue
                place(g, sign, r, identity, gram, combined, errors, rows)
                _copy(s, fresh, identity, lists, inverse, vectors, costs)
                outcome = _solve(
                    solver, fresh, r + 1, r + 1, gram, frame, light, columns, start, rows, lists, inverse, vectors, costs, scratch, order, prices, bits, counters
                )
                if outcome == INFEASIBLE:
                    _remember(u, side == 0, fresh, r, scratch, lists, codes, proofs, shares, counters)
                if side:
                    exists_1, state_1 = outcome, fresh
                else:
                    exists_0, state_0 = outcome, fresh
                fresh += 1
        if u < fixed:
            chosen = signs[u]
            if (exists_1 if chosen else exists_0) != FEASIBLE:
                leave(THIN, fixed, splits, signs, left, counters[LEFT])
                counters[LEFT] += 1
                status = DONE
                break
            state = state_1 if chosen else state_0
            if state != s:  # nobody comes back to the state above
                _copy(state, s, identity, lists, inverse, vectors, costs)
                state_0 = state_1 = s
        else:
            for side in range(2):
                if (exists_1 if side else exists_0) == UNCLEAR:
                    signs[u] = side
                    leave(THIN, u + 1, splits + 1, signs, left, counters[LEFT])
                    counters[LEFT] += 1
            if FEASIBLE not in (exists_0, exists_1):
                down = 0
                continue
            # the side with the later state first: what is above a waiting state may be overwritten
            chosen = 1 if exists_1 == FEASIBLE and (exists_0 != FEASIBLE or state_1 > state_0) else 0
            if exists_0 == FEASIBLE and exists_1 == FEASIBLE:
                nodes[u, 0], nodes[u, 1], nodes[u, 2], nodes[u, 3] = 1, state_0 if chosen else state_1, r, splits
                splits += 1
        signs[u] = chosen
        active[g] = chosen
        s = state_1 if chosen else state_0
        if (exists_0 if chosen else exists_1) != INFEASIBLE:
            place(g, 1.0 if chosen else -1.0, r, identity, gram, combined, errors, rows)
            row_of[u], codes[r] = r, 2 * u + chosen
            r += 1
        else:
            row_of[u] = -1
        u += 1
    counters[POSITION], counters[STATE], counters[ROWS], counters[DOWN], counters[SPLITS] = u, s, r, down, splits
    return status


@_compiled
def seek(
    limit: int, fixed: int, signs: Any, nodes: Any, left: Any, parities: Any, unit_of: Any, layer_of: Any, row_of: Any, codes: Any,
    layout: Any, weights: Floats, biases: Floats, active: Any, combined: Floats, errors: Floats, solver: int, identity: bool, gram: Floats,
    frame: Floats, light: Any, columns: Floats, start: Any, rows: Floats, lists: Any, inverse: Floats, vectors: Floats, costs: Any,
    scratch: Floats, order: Any, prices: Any, bits: Any, counters: Any,
) -> int:
    """Go on to the next leaf that satisfies all parities, for at most ``limit`` steps of one linear program each.

    Row u of ``parities`` says of unit u, if its last entry is 1, that it is active where an odd number of the units before with an entry 1
    are, the last entry but one being added.  A step decides one unit that has a choice, and with it all that follow up to the next
    such one; one linear program then tests their rows together.  The side on which the vertex lies comes first.  Columns of
    ``nodes``, one row per unit: whether its other side waits, and the state and rows above it.
    """
    units = len(unit_of)
    u, s, r, down = counters[POSITION], counters[STATE], counters[ROWS], counters[DOWN]
    status = MORE
    for _ in range(limit):
        if counters[LEFT] + 2 >= len(left):
            break
        flipped = -1
        if not down:
            u -= 1
            while u >= fixed and nodes[u, 0] == 0:
                u -= 1
            if u < fixed:
                status = DONE
                break
            nodes[u, 0] = 0
            flipped, s, r = 1 - signs[u], nodes[u, 1], nodes[u, 2]
        elif u == units:
            status, down = FOUND, 0
            break
        elif s + 2 >= len(lists):
            leave(DEEP, u, 0, signs, left, counters[LEFT])
            counters[LEFT] += 1
            down = 0
            continue
        first, violated, gone = u, False, False
        while u < units:
            side = flipped if u == first else -1
            if u < fixed:
                side = signs[u]
            if parities[u, units + 1]:
                asked = parities[u, units]
                for v in range(u):
                    asked ^= parities[u, v] & signs[v]
                if side >= 0 and side != asked:
                    gone = True
                    break
                side = asked
            if side < 0 and violated:
                break
            nodes[u, 0] = 0
            if flipped < 0 or u > first:
                for number in range(layer_of[u - 1] + 1 if u else 1, layer_of[u] + 1):
                    compose(number, layout, weights, biases, active, combined, errors, scratch)
            g = unit_of[u]
            quick = quick_sign(g, combined, errors)
            if quick == -2:  # the row is lost in rounding
                leave(THIN, u, 0, signs, left, counters[LEFT])
                counters[LEFT] += 1
                gone = True
                break
            if quick >= 0:
                if side >= 0 and side != quick:
                    gone = True
                    break
                signs[u] = active[g] = quick
                row_of[u] = -1
                u += 1
                continue
            place(g, 1.0, r, identity, gram, combined, errors, rows)
            value = _value(s, r, rows, vectors)
            if side < 0:
                side = 1 if value > 0.0 else 0
                nodes[u, 0], nodes[u, 1], nodes[u, 2] = 1, s, r
            signs[u] = active[g] = side
            if side == 0:
                for c in range(rows.shape[1] - 2):
                    rows[r, c] = -rows[r, c]
            violated = violated or (value if side else -value) < 4.0 * MARGIN
            row_of[u], codes[r] = r, 2 * u + side
            r += 1
            u += 1
        down = 0
        if gone:
            continue
        if violated:
            _copy(s, s + 1, identity, lists, inverse, vectors, costs)
            s += 1
            outcome = _solve(
                solver, s, r, r, gram, frame, light, columns, start, rows, lists, inverse, vectors, costs, scratch, order, prices, bits, counters
            )
            if outcome == INFEASIBLE:
                continue
            if outcome == UNCLEAR:
                leave(THIN, u, 0, signs, left, counters[LEFT])
                counters[LEFT] += 1
                continue
        down = 1
    counters[POSITION], counters[STATE], counters[ROWS], counters[DOWN] = u, s, r, down
    return status


# fmt: on


def in_tableau(rows: int, inputs: int) -> bool:
    """Whether cells live in the space of the inputs, with so many rows of the first layer and the domain: where inputs are not many times as many."""
    return rows >= inputs or inputs <= min(_SHORT, _LONG * rows)


class Simplex:
    """Counts the regions below nodes by linear programs; a `tessella.partition.tree.Walker`.

    Parameters
    ----------
    tree
        What to walk.
    in_frame
        Whether cells live in the space of the first layer's rows, instead of that of the inputs; by default, where inputs are many.
    """

    def __init__(self, tree: Tree, *, in_frame: bool | None = None) -> None:
        """Lay out the network in plain arrays and find the root's vertex."""
        scaled = tree.scaled
        layers, units, domain = len(scaled.weights), tree.units, len(scaled.constants)
        first, inputs = scaled.weights[0].shape
        self._units, self._pace, self._careful = units, 16.0, False
        rows = first + domain
        self._identity = in_tableau(rows, inputs) if in_frame is None else not in_frame
        normals = np.vstack([scaled.weights[0], scaled.normals])
        sizes = np.abs(normals).sum(axis=1)
        if self._identity:
            frame, base = np.eye(inputs), normals
        else:
            frame = normals / np.where(sizes > 0.0, sizes, 1.0)[:, None]
            base = np.diag(sizes)
        p = len(frame)
        widths = [len(bias) for bias in scaled.biases]
        offsets = np.concatenate([[0], np.cumsum(widths)])
        starts = np.concatenate([[0, 0], np.cumsum([weight.size for weight in scaled.weights[1:]])])
        rectified = np.concatenate(scaled.rectified)
        self._layout = np.stack([offsets[:-1], widths, starts[:-1]], axis=1).astype(np.int64)
        self._weights = np.concatenate([np.zeros(0), *(weight.ravel() for weight in scaled.weights[1:])])
        self._biases = np.concatenate(scaled.biases)
        self._unit_of = np.flatnonzero(rectified).astype(np.int64)
        self._layer_of = np.repeat(np.arange(layers), widths)[rectified].astype(np.int64)
        self._active = np.ones(len(rectified), dtype=np.int8)
        self._combined = np.zeros((len(rectified), p + 1))
        self._combined[:first, :p], self._combined[:first, p] = base[:first], scaled.biases[0]
        self._errors = np.zeros(len(rectified))
        self._errors[:first] = tree.errors
        most = domain + units + MOST_FACES + 3
        basis = min(p, inputs, most) + 1
        lines, across, along = (inputs + 4, most, 5 * p) if self._identity else (basis, basis, 2 * p + basis)
        state = 8 * (lines * across + along + 3 * max(lines, across)) + 4 * inputs
        deepest = 3 * MOST_FACES + 7 + min(2 * units, max(8, _STATES // state))
        self._rows = np.zeros((most, p + 3))
        self._frame, self._columns = np.ascontiguousarray(frame), np.ascontiguousarray(frame.T)
        self._gram = frame @ frame.T
        rng = np.random.default_rng(inputs)
        self._start = (rng.uniform(0.5, 1.0, inputs) * rng.choice((-1.0, 1.0), inputs) / inputs).astype(np.float32)
        self._light = self._frame.astype(np.float32)
        self._order = np.zeros(2 * inputs + 2, dtype=np.int64)
        self._lists = np.zeros((deepest, 3, max(lines, across, 3)), dtype=np.int64)
        self._inverse = np.zeros((deepest + 1, lines, across))
        self._vectors = np.zeros((deepest, along))
        self._costs = np.zeros((deepest, inputs), dtype=np.float32)
        self._prices = np.zeros((4, inputs), dtype=np.float32)
        self._scratch = np.zeros((7, max(inputs, p, basis, most, *widths) + 1))
        self._planes = np.zeros((MOST_FACES + 1, p + 3))
        self._masks = np.zeros((14, 2048), dtype=np.int64)
        self._signs = np.zeros(units + 1, dtype=np.int8)
        self._nodes = np.zeros((units + 1, 4), dtype=np.int64)
        self._left = np.zeros((64, units + 4), dtype=np.int64)
        self._row_of = np.full(units, -1, dtype=np.int64)
        self._codes = -1 - np.arange(most, dtype=np.int64)
        self._proofs = np.full((2 * units, basis + 2), -1, dtype=np.int64)
        self._shares = np.zeros((2 * units, basis + 2))
        self._stable_at = np.zeros(units, dtype=np.int64)
        self._twin = np.concatenate(tree.twins)[self._unit_of] >= 0
        self._counters = np.zeros(16, dtype=np.int64)
        self._domain = 0
        self._exists = self._root(base[first:], scaled.constants, tree.domain_errors)

    def _root(self, normals: Floats, constants: Floats, errors: Floats) -> bool:
        """Whether a point of the domain is found; not where an inequality's rounding error may be more than margins allow for."""
        p = len(self._frame)
        for normal, constant, error in zip(normals, constants, errors, strict=True):
            size = np.abs(normal).sum() + abs(constant)
            if np.any(normal != 0.0):
                row = self._rows[self._domain]
                row[:p], row[p] = normal / size, constant / size
                row[p + 1] = max(row[:p] @ self._gram @ row[:p], 1e-30)
                self._domain += 1
                if not error <= UNHARMFUL * size:
                    return False
        root = len(self._lists) - 1
        if self._identity:
            tableau.restart(root, self._domain, self._domain, self._rows, self._lists, self._inverse, self._vectors, self._start)
        else:
            framed.restart(root, self._columns, self._lists, self._vectors, self._costs, self._start)
        return self._solve(root, self._domain, self._domain, *self._problem()) == FEASIBLE

    @property
    def _solve(self) -> Any:
        return tableau.solve if self._identity else framed.solve

    def _problem(self) -> tuple[Any, ...]:
        frame = (self._gram, self._frame, self._light, self._columns, self._start)
        cell = (self._rows, self._lists, self._inverse, self._vectors, self._costs)
        return (*frame, *cell, self._scratch, self._order, self._prices, self._prices.view(np.int32), self._counters)

    @cached_property
    def _solver(self) -> int:
        return address(self._solve, 0, 0, 0, *self._problem())

    def _program(self) -> tuple[Any, ...]:
        return (self._solver, self._identity, *self._problem())

    @property
    def bytes(self) -> int:
        """Memory held."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))

    def advance(self, nodes: Sequence[Node], seconds: float, stop: Stop) -> Found:
        """Walk for about this long, or until it is asked to stop; at least one step is made."""
        if not self._exists:
            return Found(0, (), tuple(node.prefix for node in nodes))
        end, counters = perf_counter() + seconds, self._counters
        counters[:] = 0
        thin, left, waiting, hard, late = list[bytes](), list[Node](), list(nodes), list[Node](), False
        while hard or (waiting and not late):  # it is not known whether there is a hard node at all, so none is handed back
            self._careful = bool(hard)
            node = hard.pop() if hard else waiting.pop()
            self._enter(node)
            status = MORE
            while status != DONE:
                start = perf_counter()
                status = self._walk(len(node.prefix), _CAREFUL if self._careful else round(self._pace))
                spent = perf_counter() - start
                if not self._careful:
                    self._pace = min(max(self._pace * min(_CHUNK / max(spent, 1e-6), 2.0), 1.0), 10_000.0)
                for row in self._left[: counters[LEFT]]:
                    found = Node(bytes(row[3 : 3 + row[1]].astype(np.int8)), int(row[2]))
                    if row[0] == THIN:
                        thin.append(found.prefix)
                    elif row[0] == HARD:
                        hard.append(found)
                    else:
                        left.append(found)
                counters[LEFT] = 0
                late = perf_counter() > end or stop.asked
                if self._careful and counters[POSITION] > len(node.prefix):  # the hard step is done
                    waiting += self._open(node)
                    break
                if late and not self._careful and status != DONE:  # a node that was done as hard or thin is told already
                    left += self._open(node)
                    break
        return Found(int(counters[REGIONS]), (*waiting, *left), tuple(thin), int(counters[TESTS]))

    def _walk(self, fixed: int, tests: int) -> int:
        found = (self._row_of, self._codes, self._proofs, self._shares, self._stable_at)
        network = (self._layout, self._weights, self._biases, self._active, self._combined, self._errors)
        return walk(
            self._counters[TESTS] + tests,
            fixed,
            self._signs,
            self._nodes,
            self._left,
            self._unit_of,
            self._layer_of,
            *found,
            *network,
            self._planes,
            self._masks,
            *self._program(),
        )

    def _enter(self, node: Node) -> None:
        counters, length = self._counters, len(node.prefix)
        counters[POSITION] = counters[STATE] = 0
        counters[ROWS], counters[DOWN], counters[SPLITS], counters[PLAIN] = self._domain, 1, node.splits, self._units + 1
        self._signs[:length] = np.frombuffer(node.prefix, dtype=np.int8)
        self._nodes[:, 0] = 0
        self._stable_at[:] = np.where(self._twin, -1, self._units + 1)
        self._active[self._unit_of] = 0
        _copy(len(self._lists) - 1, 0, self._identity, self._lists, self._inverse, self._vectors, self._costs)

    def _open(self, node: Node) -> list[Node]:
        """What is left of the walk: the sides that wait, and the node where it stands."""
        position, fixed, signs = int(self._counters[POSITION]), len(node.prefix), self._signs
        if position <= fixed and self._counters[DOWN]:
            return [node]
        left = [
            Node(bytes(signs[:u]) + bytes([1 - signs[u]]), int(self._nodes[u, 3]) + 1)
            for u in range(fixed, min(position, self._units))
            if self._nodes[u, 0]
        ]
        if self._counters[DOWN]:
            left.append(Node(bytes(signs[:position]), int(self._counters[SPLITS])))
        return left


class Search(Simplex):
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

    def begin(self) -> None:
        """Forget all parities and begin again."""
        self._parities[:] = 0
        self._counters[:] = 0
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
        return int(self._counters[TESTS])

    def add(self, unit: int, others: Sequence[int], odd: int) -> None:
        """Ask that, from now on, a unit and some before it add up to an even number of active ones, or an odd one.

        The unit is in no other parity that asked so.
        """
        row = self._parities[unit]
        row[list(others)] = 1
        row[self._units :] = odd, 1

    def leave(self, unit: int) -> None:
        """Go on where this unit has another state than in the region found last: all others that begin like it violate a parity."""
        self._nodes[unit + 1 :, 0] = 0
        self._counters[POSITION] = unit + 1

    def next(self, stopped: Callable[[], bool]) -> bytes | None:
        """The next region; None if there is no other, or it was stopped.  What is undecided is noted as thin."""
        counters = self._counters
        while not stopped():
            if self._fixed < 0:
                if not self._waiting:
                    return None
                node = self._waiting.pop()
                self._enter(node)
                self._fixed = len(node.prefix)
            begun = perf_counter()
            status = self._seek(self._fixed, round(self._pace))
            self._pace = min(max(self._pace * min(_CHUNK / max(perf_counter() - begun, 1e-6), 2.0), 1.0), 10_000.0)
            for row in self._left[: counters[LEFT]]:
                prefix = bytes(row[3 : 3 + row[1]].astype(np.int8))
                if row[0] == THIN:
                    self.thin.append(prefix)
                else:
                    self._waiting.append(Node(prefix))
            counters[LEFT] = 0
            if status == FOUND:
                return bytes(self._signs[: self._units])
            if status == DONE:
                self._fixed = -1
        return None

    def point(self) -> Floats:
        """The inputs, scaled to [-1, 1], of the vertex that proves the region found last."""
        s, p = self._counters[STATE], len(self._frame)
        if self._identity:
            return self._vectors[s, p : 2 * p].copy()
        size = self._lists[s, 2, 0]
        point = np.where(self._costs[s] > 0.0, EDGE, -EDGE)
        tight, basic = self._lists[s, 0, :size], self._lists[s, 1, :size]
        point[basic] = 0.0
        misses = MARGIN - self._rows[tight, p] - self._rows[tight, :p] @ (self._frame @ point)
        point[basic] = self._inverse[s, :size, :size] @ misses
        return point

    def _seek(self, fixed: int, steps: int) -> int:
        network = (self._layout, self._weights, self._biases, self._active, self._combined, self._errors)
        places = (self._unit_of, self._layer_of, self._row_of, self._codes)
        return seek(steps, fixed, self._signs, self._nodes, self._left, self._parities, *places, *network, *self._program())
