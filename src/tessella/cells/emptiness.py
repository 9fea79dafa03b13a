"""Where a cell is proved empty: a combination of its rows that is negative on the whole box leaves no point to satisfy them all.

Whoever looks for a point and finds none (`tessella.cells.tableau`, `dual`, `primal`, `cuts`, `maximise`) brings multipliers; here it is checked,
with room for rounding, that they prove it.  Any multipliers that pass are a proof, wherever they come from, so a proof is also kept, and tried again in other cells.
"""

from tessella.cells.rows import combine
from tessella.cells.state import Proof, Proofs, Space, Work
from tessella.kernel.functions import apart, compiled
from tessella.kernel.record import Bytes, Matrix, Vector, Whole
from tessella.numerics import NOTHING, PROOF


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
