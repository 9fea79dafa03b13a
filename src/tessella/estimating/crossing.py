"""How a particle crosses a wall of its cell (`tessella.estimating.swarm`): whether a unit's border is one, and the rows of all later units behind it.

**Whether it is a wall.**  A vertex of the cell goes where the unit's value is least, by linear programming, with the unit's own row relaxed by two margins.  If it gets a margin behind the border, the
segment from where it came crosses the border inside all other rows, so it is a wall.  If it does not, the multipliers of the program prove that it cannot; such proofs are kept for the same particle,
and tried first the next time.  Seen from the other side the wall is the same.

**Behind it.**  On the border both sides' affine maps agree.  So what each later unit's row changes by is a multiple of the crossed one's: rows, and the inverse of the vertex's basis, are updated
by one row.  What rounding adds up is bounded; where it becomes too much, rows are composed anew.
"""

import numpy as np

from tessella.cells.emptiness import proved, remember
from tessella.cells.primal import raise_row
from tessella.cells.rows import compose, place_with_error, quick_sign, size_of
from tessella.cells.state import FEASIBLE, INFEASIBLE, UNCLEAR, Layers, Proofs
from tessella.cells.vertex import Primal, clearance, is_sound, refresh
from tessella.kernel.functions import apart, compiled, inlined
from tessella.kernel.record import ByteMatrix, Bytes, Cube, Keys, Matrix, Record, Vector, Whole, zeros
from tessella.numerics import EDGE, EPS, LOST_OF_PRODUCTS, MARGIN, TRUSTED_ROW_OF_DESCENTS

_REACHED = 0.9 * MARGIN  # behind a wall: rows are relaxed so far that a vertex there lies MARGIN behind it


class Swarm(Record):
    """Particles; of particle t: its cell's rows, a vertex (`Primal`), the signs of all units, and their rows.

    Row ``base + u`` is that of decision u, and the rows before it are the domain's.  Slots from ``room`` on hold a second vertex for the particle ``room`` before.
    """

    layers: Layers
    primal: Primal
    signs: ByteMatrix
    combined: Cube
    errors: Matrix
    proofs: Proofs  # key (2 units) t + 2 u + sign
    codes: Whole  # of one particle's rows
    row_of: Whole  # per unit: its row
    used: Bytes  # per slot
    members: Whole  # the slots of the particles, the first ``size`` of these
    children: Bytes  # per slot: how many sides of the next unit there are in the cell
    side: Bytes  # per slot: the sign of the next unit at the vertex
    staying: Bytes  # per member: which of these go on
    seed: Keys
    room: int
    base: int
    size: int
    added: int  # members behind these
    moves: int  # walls that each particle tries to cross between two units
    limit: int  # pivots after which it takes too long
    thinned: bool  # whether there ever were more cells than room
    plain: bool  # whether weights are exact, inactive units pass nothing on, and all others what they have
    # while rows follow a unit whose border was crossed
    shares: Vector  # per unit: how much of the crossed unit's row is added to its own
    reaches: Vector  # and what was added up for that, in absolute value
    slot_of: Whole  # per row: where it is in the basis, or -1
    touched: Whole  # rows of the basis that change
    scales: Vector  # how much of the old one there is in each
    mixed: Vector  # and how much of the crossed unit's row

    @classmethod
    def of(cls, layers: Layers, primal: Primal, base: int, room: int) -> "Swarm":
        """Room for so many particles."""
        (_, rows, numbers), units, tight = primal.rows.shape, len(layers.rectified), primal.vertices.tight.shape[1]
        signs, row_of = zeros(room, units, kind=np.int8), np.full(units, -1, dtype=np.int64)
        signs[:] = layers.slopes == 1.0
        row_of[layers.unit_of] = base + np.arange(len(layers.unit_of))
        return cls(
            layers=layers,
            primal=primal,
            signs=signs,
            combined=zeros(room, units, numbers - 2),
            errors=zeros(room, units),
            proofs=Proofs.of(2 * units * room, tight),
            codes=zeros(rows, kind=np.int64),
            row_of=row_of,
            used=zeros(room, kind=np.int8),
            members=zeros(2 * room + 1, kind=np.int64),
            children=zeros(room, kind=np.int8),
            side=zeros(room, kind=np.int8),
            staying=zeros(2 * room + 1, kind=np.int8),
            seed=np.zeros(1, dtype=np.uint64),
            room=room,
            base=base,
            plain=not len(layers.bias_doubts) and bool((layers.slopes == (layers.rectified == 0)).all()),
            shares=zeros(units),
            reaches=zeros(units),
            slot_of=zeros(rows, kind=np.int64),
            touched=zeros(tight, kind=np.int64),
            scales=zeros(tight),
            mixed=zeros(tight),
        )


@compiled
def put_row(swarm: Swarm, node: int, unit: int, sign: float, at: int) -> None:
    """Write a unit's row for a sign."""
    row, combined = swarm.primal.rows[node, at], swarm.combined[node, unit]
    if size_of(combined) == 0.0:
        for c in range(len(row)):
            row[c] = 0.0
        row[len(combined) - 1], row[len(combined)] = 1.0, 1e-30
    else:
        place_with_error(combined, swarm.errors[node, unit], sign, swarm.primal.space, row)


@inlined
def _codes(swarm: Swarm, node: int, decided: int) -> None:
    """Write the names of a particle's rows."""
    for row in range(swarm.base):
        swarm.codes[row] = -1 - row
    for u in range(decided):
        g = swarm.layers.unit_of[u]
        swarm.codes[swarm.base + u] = 2 * g + swarm.signs[node, g]


@compiled
def is_refuted(swarm: Swarm, node: int, unit: int, sign: int) -> bool:
    """Whether an old proof shows that a unit cannot have a sign."""
    units = swarm.signs.shape[1]
    key = 2 * units * node + 2 * unit + sign
    if swarm.proofs.sizes[key] < 0:
        return False
    row = swarm.combined[node, unit]
    scale = (1.0 if sign else -1.0) / size_of(row)
    return proved(
        swarm.proofs,
        key,
        row,
        scale,
        units,
        swarm.primal.rows[node],
        swarm.row_of,
        swarm.signs[node],
        swarm.primal.space,
        swarm.primal.work,
    )


@compiled
def ask(swarm: Swarm, node: int, unit: int, sign: int, at: int, goal: float, decided: int) -> int:
    """Whether a unit can have a sign, whose row was put behind the others."""
    found = raise_row(swarm.primal, node, at, goal, False)
    if found == INFEASIBLE:
        _codes(swarm, node, decided)
        key = 2 * swarm.signs.shape[1] * node + 2 * unit + sign
        remember(swarm.proofs, key, swarm.primal.proof, at, swarm.codes)
    return found  # pyright: ignore[reportReturnType]


@compiled
def _cross_tight(primal: Primal, node: int, slot: int, count: int) -> bool:
    """Move a vertex across the tight row at ``slot`` of its basis, by twice the margin; False if something else is in the way."""
    vertices, rows, direction = primal.vertices, primal.rows[node], primal.direction
    k, basic, inverse = vertices.size[node], vertices.basic[node], vertices.inverse[node]
    columns, in_inputs, step = primal.space.columns, primal.space.in_inputs, 2.0 * MARGIN
    for c in range(len(direction)):
        direction[c] = 0.0
    for q in range(k):
        rate, j = -inverse[q, slot], basic[q]
        if abs(vertices.values[node, q] + step * rate) > EDGE:
            return False
        if in_inputs:
            direction[j] += rate
        else:
            for c in range(len(direction)):
                direction[c] += rate * columns[j, c]
    own = vertices.tight[node, slot]
    for row in range(count):
        if row != own:
            reached = rows[row, len(direction)]
            for c in range(len(direction)):
                reached += rows[row, c] * (vertices.places[node, c] + step * direction[c])
            if reached < 0.9 * MARGIN:
                return False
    for q in range(k):
        vertices.values[node, q] -= step * inverse[q, slot]
    for c in range(len(direction)):
        vertices.places[node, c] += step * direction[c]
    return True


@apart
def cross(swarm: Swarm, node: int, u: int, decided: int) -> int:
    """Go to the other side of a decided unit's border, if it is a wall of the particle's cell: FEASIBLE, and the vertex is there; INFEASIBLE; UNCLEAR."""
    primal, unit = swarm.primal, swarm.layers.unit_of[u]
    p, at, r = len(primal.direction), swarm.base + decided, swarm.base + u
    row, vertices, sign = primal.rows[node, r], primal.vertices, swarm.signs[node, unit]
    reach = 0.0
    for c in range(p):
        reach += abs(row[c])
    if reach == 0.0:
        return INFEASIBLE
    slot = -1
    for q in range(vertices.size[node]):
        if vertices.tight[node, q] == r:
            slot = q
    if slot >= 0:
        if not _cross_tight(primal, node, slot, at):
            return UNCLEAR
    else:
        position = swarm.row_of[unit]
        swarm.row_of[unit] = -1
        if is_refuted(swarm, node, unit, 1 - sign):
            swarm.row_of[unit] = position
            return INFEASIBLE
        for c in range(p + 1):
            primal.rows[node, at, c] = -row[c]
        primal.rows[node, at, p + 1], primal.rows[node, at, p + 2] = row[p + 1], row[p + 2]
        constant = row[p]
        row[p] += 2.0 * MARGIN
        found = ask(swarm, node, unit, 1 - sign, at, _REACHED, decided)
        row[p] = constant
        swarm.row_of[unit] = position
        if found != FEASIBLE:
            return found
        for q in range(vertices.size[node]):
            if vertices.tight[node, q] == r:
                slot = q
    for c in range(p + 1):
        row[c] = -row[c]
    if slot >= 0:
        for q in range(vertices.size[node]):
            vertices.inverse[node, q, slot] = -vertices.inverse[node, q, slot]
    swarm.signs[node, unit] = 1 - sign
    return FEASIBLE


@compiled
def last_layer(layers: Layers, decided: int) -> int:
    """The layer of the unit that is decided next, or the last one."""
    return layers.layer_of[decided] if decided < len(layers.layer_of) else len(layers.first) - 1


@inlined
def _propagate(swarm: Swarm, node: int, u: int, last: int) -> None:
    """How much of a unit's row is added to those of later layers' units, as its sign has changed, into ``shares``; ``reaches`` bounds what is added up for that."""
    layers, shares, reaches = swarm.layers, swarm.shares, swarm.reaches
    unit, layer = layers.unit_of[u], layers.layer_of[u]
    factor = 1.0 if swarm.signs[node, unit] else -1.0
    for deep in range(layer + 1, last + 1):
        before, reads, at = layers.first[deep - 1], layers.width[deep - 1], layers.start[deep]
        for i in range(layers.width[deep]):
            total, reach = 0.0, 0.0
            if deep == layer + 1:
                weight = layers.weights[at + i * reads + unit - before]
                total, reach = factor * weight, abs(weight)
            else:
                for j in range(reads):
                    if reaches[before + j] != 0.0 and swarm.signs[node, before + j]:
                        weight = layers.weights[at + i * reads + j]
                        total += weight * shares[before + j]
                        reach += abs(weight) * reaches[before + j]
            shares[layers.first[deep] + i], reaches[layers.first[deep] + i] = total, reach


@inlined
def _add_row(swarm: Swarm, node: int, unit: int, other: int, size: float, terms: int) -> None:
    """Add a unit's row to that of another one, with its share and a bound on what rounding does."""
    row, added, share = swarm.combined[node, other], swarm.combined[node, unit], swarm.shares[other]
    before = size_of(row)
    for c in range(len(row)):
        row[c] += share * added[c]
    reach = swarm.reaches[other]
    lost = 4.0 * EPS * (before + reach * size) + 2.0 * terms * EPS * reach * size + LOST_OF_PRODUCTS * (1.0 + size)
    swarm.errors[node, other] += 1.0001 * (reach * swarm.errors[node, unit] + lost)


@inlined
def _mend(swarm: Swarm, node: int, slot: int, changed: int) -> None:
    """Bring a vertex's basis up to date after the first rows of ``touched`` have changed: of each of these tight rows d times the old one and v times the row tight at ``slot``."""
    primal, vertices, p = swarm.primal, swarm.primal.vertices, len(swarm.primal.direction)
    inverse, k, rows = vertices.inverse[node], vertices.size[node], primal.rows[node]
    for q in range(k):
        total = 0.0
        for at in range(changed):
            i = swarm.touched[at]
            inverse[q, i] /= swarm.scales[at]
            total += inverse[q, i] * swarm.mixed[at]
        inverse[q, slot] -= total
    for q in range(k):
        total = 0.0
        for at in range(changed):
            i = swarm.touched[at]
            total -= inverse[q, i] * clearance(rows[vertices.tight[node, i]], vertices.places[node])
        primal.rates[q] = total
    for q in range(k):
        j = vertices.basic[node, q]
        vertices.values[node, q] += primal.rates[q]
        if primal.space.in_inputs:
            vertices.places[node, j] += primal.rates[q]
        else:
            for c in range(p):
                vertices.places[node, c] += primal.rates[q] * primal.space.columns[j, c]
    vertices.age[node] += 1


@compiled
def compose_anew(swarm: Swarm, node: int, layer: int, last: int, decided: int) -> bool:
    """Compose the rows of all layers behind one; False if one is lost in rounding."""
    layers = swarm.layers
    for deep in range(layer + 1, last + 1):
        compose(deep, layers, swarm.signs[node], swarm.combined[node], swarm.errors[node], swarm.primal.work.sizes)
    for u in range(decided):
        if layers.layer_of[u] > layer:
            g = layers.unit_of[u]
            sign = swarm.signs[node, g]
            quick = quick_sign(swarm.combined[node, g], swarm.errors[node, g], TRUSTED_ROW_OF_DESCENTS)
            if quick == -2 or quick == 1 - sign:
                return False
            put_row(swarm, node, g, 1.0 if sign else -1.0, swarm.base + u)
    return refresh(swarm.primal, node, swarm.base + decided) or is_sound(swarm.primal, node, swarm.base + decided)


@apart
def follow(swarm: Swarm, node: int, crossed: int, decided: int) -> bool:
    """Bring the rows of all layers behind a unit up to date whose border was crossed, and the vertex; False if that fails."""
    layers, vertices, layer = swarm.layers, swarm.primal.vertices, swarm.layers.layer_of[crossed]
    last, unit = last_layer(layers, decided), layers.unit_of[crossed]
    if not swarm.plain:
        return compose_anew(swarm, node, layer, last, decided)
    _propagate(swarm, node, crossed, last)
    size, terms = size_of(swarm.combined[node, unit]), 0
    own = (1.0 if swarm.signs[node, unit] else -1.0) / size
    for i in range(swarm.base, swarm.base + decided):
        swarm.slot_of[i] = -1
    for q in range(vertices.size[node]):
        swarm.slot_of[vertices.tight[node, q]] = q
    slot, changed = swarm.slot_of[swarm.base + crossed], 0
    for deep in range(layer + 1, last + 1):
        terms += layers.width[deep - 1] + 2
        for g in range(layers.first[deep], layers.first[deep] + layers.width[deep]):
            if swarm.reaches[g] == 0.0:
                continue
            before, at = size_of(swarm.combined[node, g]), swarm.row_of[g]
            _add_row(swarm, node, unit, g, size, terms)
            if at < 0 or at >= swarm.base + decided:
                continue
            quick, sign = (
                quick_sign(swarm.combined[node, g], swarm.errors[node, g], TRUSTED_ROW_OF_DESCENTS),
                swarm.signs[node, g],
            )
            if quick == -2 or quick == 1 - sign:
                return compose_anew(swarm, node, layer, last, decided)
            put_row(swarm, node, g, 1.0 if sign else -1.0, at)
            if swarm.slot_of[at] >= 0:
                after = size_of(swarm.combined[node, g])
                swarm.touched[changed], swarm.scales[changed] = swarm.slot_of[at], before / after
                swarm.mixed[changed] = (1.0 if sign else -1.0) / after * swarm.shares[g] / own
                changed += 1
    if changed > 0:
        if slot < 0:
            return compose_anew(swarm, node, layer, last, decided)
        _mend(swarm, node, slot, changed)
    return is_sound(swarm.primal, node, swarm.base + decided) or compose_anew(swarm, node, layer, last, decided)
