"""Which signs the units of a layer have on a node's cell, and on to the layer where some have both.

A unit's sign is settled by the first that answers: its row alone; the points that are known of the cell; a proof that worked in another cell; with many inputs a refutation in the few dimensions
of the first layer (`tessella.cells.cuts`); a linear program (`tessella.cells.primal`).  Layers that are looked at ahead are asked as a whole as soon as the cell is there (where programs are put off, those wait
until the node is chosen).  Of others, only the unit that is split on is ever asked.
"""

from tessella.cells.cuts import CUT, begin, cut, descend
from tessella.cells.emptiness import remember
from tessella.cells.primal import raise_row
from tessella.cells.rows import compose, place_with_error, quick_sign, size_of, value
from tessella.cells.state import FEASIBLE, INFEASIBLE, UNCLEAR
from tessella.cells.vertex import keep, move_to_best
from tessella.estimating.nodes import BOTH, OPEN, UNSURE, Descent, evaluate, is_proved
from tessella.kernel.functions import apart, compiled, inlined
from tessella.kernel.record import Vector
from tessella.numerics import GOAL, SHOWN, TRUSTED_ROW_OF_DESCENTS

# signs that points show
_POSITIVE, _NEGATIVE, _BOTH_SIGNS = 1, 2, 3


@inlined
def _signs_shown(values: Vector, known: int, size: float) -> int:
    """The signs that a unit's values at points show with certainty: 1 if positive, 2 if negative, 3 if both."""
    most, least, sure = 0.0, 0.0, SHOWN * size
    for i in range(known):
        most = max(most, values[i])
        least = min(least, values[i])
    return (_POSITIVE if most >= sure else 0) + (_NEGATIVE if -least >= sure else 0)


@apart
def refuted(descent: Descent, node: int, key: int) -> bool:
    """Whether it is proved, in the few dimensions of the first layer, that the row behind a node's last one is negative in its cell."""
    nodes, primal, outside, recalled = descent.nodes, descent.primal, descent.outside, descent.recalled
    rows, tight, depth, last = primal.rows[node], outside.tight, nodes.depth[node], len(recalled) - 1
    for row in range(depth + 1):
        for c in range(len(tight) + 1):
            outside.walls[c, row] = rows[row, c]
    for i in range(len(tight)):
        code = recalled[key, i]
        if 0 <= code < CUT:
            unit = code // 2
            code = nodes.row_of[node, unit] if nodes.status[node, unit] == code % 2 else -1
        recalled[last, i] = code
    begin(outside, depth, recalled[last])
    if descend(outside, depth, primal.space, primal.work) != INFEASIBLE:
        return False
    for i in range(len(tight)):
        recalled[key, i] = nodes.codes[node, tight[i]] if 0 <= tight[i] < CUT else tight[i]
    return True


@compiled
def _put_row(descent: Descent, node: int, unit: int, side: float) -> None:
    """Put a unit's row behind a node's last one, as a question."""
    nodes, primal = descent.nodes, descent.primal
    row = primal.rows[node, nodes.depth[node]]
    place_with_error(nodes.combined[node, unit], nodes.errors[node, unit], side, primal.space, row)


@compiled
def _settle(descent: Descent, node: int, unit: int, sign: int) -> None:
    """Note that a unit has one sign."""
    descent.nodes.status[node, unit] = sign
    descent.nodes.left[node] -= 1


@compiled
def _look(descent: Descent, node: int, unit: int) -> int:
    """The signs of a unit that a node's points show; its values there are put into row 0 of ``values``."""
    points, row = descent.primal.points, descent.nodes.combined[node, unit]
    evaluate(row, points.places[node], descent.values[0])
    return _signs_shown(descent.values[0], points.known[node], size_of(row))


@inlined
def _settle_without_programs(descent: Descent, node: int, unit: int, refuting: bool) -> None:
    """Settle a unit by points and by proofs that worked before, and by a refutation if asked; else it is open."""
    seen = _look(descent, node, unit)
    if seen == _BOTH_SIGNS:
        descent.nodes.status[node, unit] = BOTH
        return
    descent.nodes.status[node, unit] = OPEN
    if seen == 0:
        return
    positive = seen == _POSITIVE
    if is_proved(descent, node, unit, positive):
        _settle(descent, node, unit, 1 if positive else 0)
        descent.reused += 1
    elif refuting:
        _put_row(descent, node, unit, -1.0 if positive else 1.0)
        if refuted(descent, node, 2 * unit + (0 if positive else 1)):
            _settle(descent, node, unit, 1 if positive else 0)


@inlined
def _ask_program(descent: Descent, node: int, unit: int, side: int) -> int:
    """Whether a unit can be on a side, by a linear program: FEASIBLE, and a point of the node shows it; INFEASIBLE; UNCLEAR."""
    nodes, primal = descent.nodes, descent.primal
    depth, sign = nodes.depth[node], 1.0 if side else -1.0
    _put_row(descent, node, unit, sign)
    if descent.refutes and refuted(descent, node, 2 * unit + side):
        return INFEASIBLE
    reached = sign * value(nodes.combined[node, unit], primal.vertices.places[node])
    if not move_to_best(primal, node, depth, reached, sign, descent.values[0]):
        return UNCLEAR
    found = raise_row(primal, node, depth, GOAL, True)
    if found == FEASIBLE:
        keep(primal, node)
    elif found == INFEASIBLE:
        remember(descent.proofs, 2 * unit + 1 - side, primal.proof, depth, nodes.codes[node])
        if descent.refutes:
            cut(descent.outside, primal.space, primal.work)
    return found


@inlined
def _settle_by_programs(descent: Descent, node: int, unit: int) -> None:
    """Settle an open unit by linear programs, as far as points do not."""
    seen, unclear, status = _look(descent, node, unit), False, descent.nodes.status
    if seen != _BOTH_SIGNS:
        for side in range(1, -1, -1):
            shown = _POSITIVE if side else _NEGATIVE
            if not seen & shown:
                found = _ask_program(descent, node, unit, side)
                seen |= shown if found == FEASIBLE else 0
                unclear = unclear or found == UNCLEAR
    if seen == _BOTH_SIGNS:
        status[node, unit] = BOTH
    elif unclear or seen == 0:
        status[node, unit] = UNSURE
    else:
        _settle(descent, node, unit, 1 if seen == _POSITIVE else 0)


@inlined
def _survey(descent: Descent, node: int, programs: bool) -> None:
    """Settle the units of a node's layer that are left, by linear programs only if asked."""
    layers, status, layer = descent.layers, descent.nodes.status, descent.nodes.layer[node]
    first = layers.first[layer]
    for unit in range(first, first + layers.width[layer]):
        if status[node, unit] >= BOTH:
            _settle_without_programs(descent, node, unit, descent.refutes and not programs)
    if programs:
        for unit in range(first, first + layers.width[layer]):
            if status[node, unit] == OPEN:
                _settle_by_programs(descent, node, unit)


@inlined
def _enter_layer(descent: Descent, node: int) -> bool:
    """Go on to the next layer: compose its units' rows, and settle the units whose rows alone tell their sign; False if a row is lost in rounding."""
    layers, nodes = descent.layers, descent.nodes
    layer, left = nodes.layer[node] + 1, 0
    nodes.layer[node] = layer
    if layer > 0:
        compose(layer, layers, nodes.status[node], nodes.combined[node], nodes.errors[node], descent.primal.work.sizes)
    for unit in range(layers.first[layer], layers.first[layer] + layers.width[layer]):
        if layers.rectified[unit]:
            quick = quick_sign(nodes.combined[node, unit], nodes.errors[node, unit], TRUSTED_ROW_OF_DESCENTS)
            if quick == -2:
                return False
            nodes.status[node, unit] = quick if quick >= 0 else OPEN
            left += 1 if quick < 0 else 0
    nodes.left[node] = left
    return True


@apart
def settle(descent: Descent, node: int, programs: bool, whole: bool) -> int:
    """Go on to the layer where a node has units left: 0; 1 or 2 leaves if there is none (only 1 if prefixes are to be ``whole``); -1 if rows are lost in rounding."""
    layers, nodes = descent.layers, descent.nodes
    final = len(layers.first) - 1
    while True:
        layer = nodes.layer[node]
        if layer >= 0 and descent.ahead[layer]:
            _survey(descent, node, programs)
        if nodes.left[node] == 1 and layer == final and not whole:
            for unit in range(layers.first[layer], layers.first[layer] + layers.width[layer]):
                if nodes.status[node, unit] == BOTH:
                    return 2
        if nodes.left[node] > 0:
            return 0
        if layer == final:
            return 1
        if not _enter_layer(descent, node):
            return -1
