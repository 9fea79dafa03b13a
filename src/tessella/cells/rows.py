"""Rows of a cell: made from the layer before, put on the stack, and combined to proofs; compiled with Numba.

`tessella.cells.state` says what rows are.  Whoever holds one cell gives its arrays, whoever holds a stack of cells gives views.
"""

from tessella.cells.state import Layers, Proof, Proofs, Space, Work
from tessella.kernel.functions import apart, compiled
from tessella.kernel.record import Bytes, Matrix, Vector, Whole
from tessella.numerics import EPS, NOTHING, PROOF, ROUNDOFF

_SHORTEST = 1e-30  # the square of a length is at least this
_SAFE = 1.0 + 1e-12  # more than the rounding of the sum of a row


@compiled
def size_of(row: Vector) -> float:
    """What a unit's row is scaled by: the sum of its absolute numbers."""
    total = 0.0
    for c in range(len(row)):
        total += abs(row[c])
    return total


@compiled
def value(row: Vector, point: Vector) -> float:
    """A row's value at a point of z."""
    p = len(point)
    total = row[p]
    for c in range(p):
        total += row[c] * point[c]
    return total


@compiled
def compose(layer: int, layers: Layers, active: Bytes, combined: Matrix, errors: Vector, sizes: Vector) -> None:
    """Put the rows of one layer's units in this cell, from those of the layer before, into ``combined``, and bounds on their rounding errors into ``errors``.

    ``sizes`` is memory for numbers of the layer before.
    """
    first, units, before, reads = layers.first[layer], layers.width[layer], layers.first[layer - 1], layers.width[layer - 1]
    weights, biases, slopes, at = layers.weights, layers.biases, layers.slopes, layers.start[layer]
    p = combined.shape[1] - 1
    for j in range(reads):
        if active[before + j] or slopes[before + j] != 0.0:
            sizes[j] = size_of(combined[before + j])
    for i in range(units):
        g = first + i
        for c in range(p):
            combined[g, c] = 0.0
        combined[g, p] = biases[g]
        size, error, terms = abs(biases[g]), 0.0, 2
        for j in range(reads):
            factor = 1.0 if active[before + j] else slopes[before + j]
            if factor != 0.0:
                weight = factor * weights[at + i * reads + j]
                if weight != 0.0:
                    for c in range(p + 1):
                        combined[g, c] += weight * combined[before + j, c]
                    size += abs(weight) * sizes[j]
                    error += abs(weight) * errors[before + j]
                    terms += 1
        errors[g] = 1.0001 * error + (
            1.01 * terms * ROUNDOFF * size if terms > 2 else 0.0
        )  # one for each product and sum, and one for a slope


@compiled
def place(unit_row: Vector, side: float, space: Space, row: Vector) -> float:
    """Put a unit's row, or for side -1 its negative, into ``row``, scaled; behind it the square of its length.  The scale."""
    p = len(unit_row) - 1
    scale = side / size_of(unit_row)
    for c in range(p + 1):
        row[c] = scale * unit_row[c]
    total = 0.0
    if space.in_inputs:
        for c in range(p):
            total += row[c] * row[c]
    else:
        gram = space.gram
        for c in range(p):
            product = 0.0
            for e in range(p):
                product += gram[c, e] * row[e]
            total += product * row[c]
    row[p + 1] = max(total, _SHORTEST)
    return scale


@compiled
def place_with_error(unit_row: Vector, error: float, side: float, space: Space, row: Vector) -> None:
    """Do the same, and put a bound on the row's rounding error behind it."""
    scale = place(unit_row, side, space, row)
    row[len(unit_row) + 1] = error * abs(scale) + 8.0 * EPS


@compiled
def quick_sign(unit_row: Vector, error: float, trusted: float) -> int:
    """A unit's sign where its row alone decides it: 1, 0, or -1 if it does not, -2 if its relative error is more than is trusted."""
    p = len(unit_row) - 1
    size = 0.0
    for c in range(p):
        size += abs(unit_row[c])
    constant = unit_row[p]
    if size == 0.0 and error == 0.0:
        return 1 if constant > 0.0 else 0
    if constant - size * _SAFE > error:
        return 1
    if constant + size * _SAFE < -error:
        return 0
    return -2 if error > trusted * (size + abs(constant)) else -1


@apart
def combine(frame: Matrix, combination: Vector, slopes: Vector) -> None:
    """Put a combination of the frame's rows into ``slopes``; four rows at a time."""
    p, n = frame.shape
    c = 0
    if p >= 4:
        r0, r1, r2, r3 = combination[0], combination[1], combination[2], combination[3]
        for j in range(n):
            slopes[j] = r0 * frame[0, j] + r1 * frame[1, j] + r2 * frame[2, j] + r3 * frame[3, j]
        c = 4
    else:
        for j in range(n):
            slopes[j] = 0.0
    while c + 4 <= p:
        r0, r1, r2, r3 = combination[c], combination[c + 1], combination[c + 2], combination[c + 3]
        for j in range(n):
            slopes[j] += r0 * frame[c, j] + r1 * frame[c + 1, j] + r2 * frame[c + 2, j] + r3 * frame[c + 3, j]
        c += 4
    while c < p:
        r0 = combination[c]
        for j in range(n):
            slopes[j] += r0 * frame[c, j]
        c += 1


@compiled
def highest(space: Space, work: Work) -> float:
    """The most that the combination in ``work`` is on the box, its constant aside; puts its slopes there, unless z is the inputs."""
    combination, total = work.combination, 0.0
    if space.in_inputs:
        for c in range(len(space.frame)):
            total += abs(combination[c])
    else:
        slopes = work.slopes
        combine(space.frame, combination, slopes)
        for j in range(len(slopes)):
            total += abs(slopes[j])
    return total


@compiled
def is_negative(space: Space, work: Work, error: float) -> bool:
    """Whether the combination in ``work`` is negative on the whole box, with room to spare: for each row in it, whose shares are added up behind it, and for an error."""
    p = len(space.frame)
    combination = work.combination
    return combination[p] + PROOF * combination[p + 1] + error + highest(space, work) < 0.0


@apart
def is_empty(proof: Proof, equal: int, rows: Matrix, space: Space, work: Work) -> bool:
    """Whether a proof holds, with room to spare, so that no point satisfies all rows; those from ``equal`` on are equations.

    Negative shares of inequalities become zero, and the equations that take part are noted in ``proof``; the combination is put into ``work``.
    """
    p, combination, members, shares = len(space.frame), work.combination, proof.rows, proof.shares
    constant, size, equations = 0.0, 0.0, 0
    for c in range(p):
        combination[c] = 0.0
    for i in range(proof.size):
        row, share = members[i], shares[i]
        if row < equal:
            share = max(share, 0.0)
            shares[i] = share
        if row < 0 or share == 0.0:
            continue
        if row >= equal and abs(share) > NOTHING:
            equations |= 1 << (row - equal)
        size += abs(share)
        constant += share * rows[row, p]
        for c in range(p):
            combination[c] += share * rows[row, c]
    proof.equations = equations
    return constant + highest(space, work) + PROOF * size < 0.0


@compiled
def remember(proofs: Proofs, key: int, proof: Proof, r: int, codes: Whole) -> None:
    """Keep a proof that row r, on the stack of a cell, is negative there: which of the rows before it add up to that, and how much of each there is for one of it."""
    own, size = 1.0, 0
    for i in range(proof.size):
        if proof.rows[i] == r:
            own = abs(proof.shares[i])
    for i in range(proof.size):
        row, share = proof.rows[i], proof.shares[i]
        if 0 <= row < r and share > 0.0 and own > 0.0:
            proofs.codes[key, size] = codes[row]
            proofs.shares[key, size] = share / own
            size += 1
    proofs.sizes[key] = size


@compiled
def proved(
    proofs: Proofs,
    key: int,
    row: Vector,
    scale: float,
    position: int,
    rows: Matrix,
    row_of: Whole,
    signs: Bytes,
    space: Space,
    work: Work,
) -> bool:
    """Whether the proof that is kept for a key, from another cell, also shows in this one that a row, times ``scale``, is negative.

    Of its rows those count that the cell has: of units before ``position`` with the same sign.  The combination is put into ``work``.
    """
    size = proofs.sizes[key]
    if size < 0:
        return False
    p, combination, codes, shares = len(space.frame), work.combination, proofs.codes[key], proofs.shares[key]
    constant, total = scale * row[p], 1.0
    for c in range(p):
        combination[c] = scale * row[c]
    for i in range(size):
        code = codes[i]
        at = -1 - code
        if code >= 0:
            unit = code // 2
            if unit >= position or row_of[unit] < 0 or signs[unit] != code % 2:
                continue
            at = row_of[unit]
        share = shares[i]
        total += share
        constant += share * rows[at, p]
        for c in range(p):
            combination[c] += share * rows[at, c]
    return constant + highest(space, work) + PROOF * total < 0.0
