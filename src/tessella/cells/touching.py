"""Cells without an interior whose rows touch: emptiness that no margin can show, proved by residues.

Where hyperplanes meet in more than general position, a side of a unit may hold a point, an edge or a face of a cell, but no interior.  The best combination of rows is then exactly zero on the box, not negative, and
floating-point arithmetic says no more than that it is near zero.

**The proof.**  Let some rows R_i be positive inside the cell, and y_i > 0.  If f = sum of y_i R_i is at most 0 on the whole box [-1, 1]^n, the cell has no interior.  Let J be the inputs on which f depends; f is largest where
each of these is at the end e_j that its coefficient asks for.  Take as a matrix M, a line for each R_i, the coefficients of all other inputs, and the value of R_i at these ends, with the other inputs 0.  If y M = 0, then f
does not depend on the others, and is 0 where it is largest.

A linear program brings y, up to rounding.  Elimination finds r rows and r columns of M that are clearly independent.  If M has the rank r exactly, any y of the other rows can be completed to a y with y M = 0, and rounding
moves the completed ones by no more than a bound that the inverse of the r rows gives.  So it remains to show that M has no larger rank: all its larger minors are 0, and whole numbers are 0 if enough primes divide them
(`tessella.cells.residues`).  Rank does not depend on coordinates, so residues take the rows on the unit cube.

A network without biases on a box around the origin needs no residues if r = n and f depends on no input: the values at the origin, the last column of M, are 0.
"""

from typing import Self

import numpy as np

from tessella.cells.residues import Residues, bits_of, enough, is_zero, put
from tessella.cells.state import Cell
from tessella.kernel.functions import apart, compiled
from tessella.kernel.record import ByteMatrix, Bytes, Matrix, Record, Vector, Whole, WholeCube, WholeMatrix, zeros
from tessella.numerics import ROUNDOFF, UNHARMFUL
from tessella.partition.integers import on_inputs
from tessella.partition.tree import Tree

_MOST_ROWS = 16  # of one proof
_MOST_INPUTS = 64
_SMALL = 1e-9  # shares and coefficients below this are taken for zero: if they are not, the rank says so
_PIVOT = 1e-10  # the same of pivots
_ROOM = 8.0  # more than the rounding of a sum of products, in roundoffs for each term


class Touching(Record):
    """What it takes to prove that a cell has no interior; no residues, and not central, where nothing can be proved.

    Decision u is about ReLU ``place_of[u]`` of layer ``layer_of[u]``, and row i of the domain is ``wall_of[i]`` of those of the residues.
    """

    residues: Residues
    layer_of: Whole
    place_of: Whole
    wall_of: Whole
    central: bool  # whether all preactivations are exactly 0 in the middle of the box
    # memory for one proof
    pattern: ByteMatrix
    members: Whole
    shares: Vector
    ends: Vector  # per input, the end that the combination asks for; 0 if it does not depend on it
    signed: Matrix  # the rows, such that all shares are positive
    doubts: Vector  # bounds on what rounding did to all numbers of such a row together
    table: Matrix  # M
    work: Matrix  # eliminated
    square: Matrix  # rows and columns that are independent; behind these, the inverse
    rows: Whole  # of the table, those that are independent first
    columns: Whole  # the same
    inputs: Whole  # per column of the table, which input it is about
    kept: WholeCube  # M modulo primes
    modular: WholeMatrix

    @classmethod
    def of(cls, tree: Tree) -> Self:
        """Those of a tree; empty where inputs or numbers are too many."""
        dim = tree.domain.free_dim
        if not 0 < dim <= _MOST_INPUTS:
            return cls.empty()
        most = min(_MOST_ROWS, dim + 1)
        residues = Residues.of(tree, together=most, more=2 * (2 * dim + 2).bit_length())
        relus, primes = [layer.relus for layer in tree.network.layers], len(residues.primes)
        return cls(
            residues=residues,
            layer_of=np.repeat(np.arange(len(relus)), relus).astype(np.int64),
            place_of=np.concatenate([np.arange(count) for count in relus]).astype(np.int64),
            wall_of=2 * dim + np.flatnonzero((tree.scaled.normals != 0.0).any(axis=1)).astype(np.int64),
            central=_is_central(tree),
            pattern=zeros(len(relus), max(relus), kind=np.int8),
            members=zeros(most, kind=np.int64),
            shares=zeros(most),
            ends=zeros(dim),
            signed=zeros(most, dim + 1),
            doubts=zeros(most),
            table=zeros(most, dim + 1),
            work=zeros(most, dim + 1),
            square=zeros(most, 2 * most),
            rows=zeros(most, kind=np.int64),
            columns=zeros(dim + 1, kind=np.int64),
            inputs=zeros(dim + 1, kind=np.int64),
            kept=zeros(most, dim + 1, primes, kind=np.int64),
            modular=zeros(most, dim + 1, kind=np.int64),
        )


def _is_central(tree: Tree) -> bool:
    """Whether all preactivations are exactly 0 in the middle of the box, whatever units are active."""
    first, *others = tree.network.layers
    if any(layer.bias.any() for layer in others):
        return False
    numbers = on_inputs(first.weight, first.bias, tree.domain.box).numbers
    return not (2 * numbers[:, -1] + numbers[:, :-1].sum(axis=1)).any()


@compiled
def _gather(touching: Touching, cell: Cell, equal: int) -> int:
    """Note the rows of the cell's proof that count: how many; 0 if they are too many, or none is positive in the cell.  Rows from ``equal`` on are 0 there, and may have either sign."""
    proof, rows, members, shares, signed = cell.proof, cell.rows, touching.members, touching.shares, touching.signed
    n, total, m, positive = len(touching.ends), 0.0, 0, False
    for i in range(proof.size):
        if proof.rows[i] >= 0:
            total += abs(proof.shares[i])
    for i in range(proof.size):
        row, share = proof.rows[i], proof.shares[i]
        if row >= 0 and abs(share) > _SMALL * total and (share > 0.0 or row >= equal):
            if m == len(members):
                return 0
            members[m], shares[m] = row, abs(share) / total
            for c in range(n + 1):
                signed[m, c] = rows[row, c] if share > 0.0 else -rows[row, c]
            touching.doubts[m] = UNHARMFUL if cell.codes[row] < 0 else rows[row, n + 2]
            positive = positive or row < equal
            m += 1
    return m if positive else 0


@compiled
def _make_table(touching: Touching, m: int) -> int:
    """Find the ends that the combination of m rows asks for, and fill the table: how many columns it has."""
    shares, ends, signed, table, q = touching.shares, touching.ends, touching.signed, touching.table, 0
    n = len(ends)
    for c in range(n):
        slope = 0.0
        for i in range(m):
            slope += shares[i] * signed[i, c]
        ends[c] = 1.0 if slope > _SMALL else -1.0 if slope < -_SMALL else 0.0
        if ends[c] == 0.0:
            touching.inputs[q] = c
            for i in range(m):
                table[i, q] = signed[i, c]
            q += 1
    for i in range(m):
        table[i, q] = signed[i, n]
        for c in range(n):
            table[i, q] += ends[c] * signed[i, c]
    return q + 1


@compiled
def _find_rank(touching: Touching, m: int, q: int) -> int:
    """The rank of the table, as far as pivots are clear; so many of the first ``rows`` and ``columns`` are independent."""
    work, rows, columns, rank = touching.work, touching.rows, touching.columns, 0
    for i in range(m):
        rows[i] = i
        for c in range(q):
            work[i, c] = touching.table[i, c]
    for c in range(q):
        columns[c] = c
    while rank < min(m, q):
        best, at, spot = _PIVOT, -1, -1
        for i in range(rank, m):
            for c in range(rank, q):
                size = abs(work[rows[i], columns[c]])
                if size > best:
                    best, at, spot = size, i, c
        if at < 0:
            break
        rows[rank], rows[at] = rows[at], rows[rank]
        columns[rank], columns[spot] = columns[spot], columns[rank]
        pivot = rows[rank]
        for i in range(rank + 1, m):
            factor = work[rows[i], columns[rank]] / work[pivot, columns[rank]]
            for c in range(rank + 1, q):
                work[rows[i], columns[c]] -= factor * work[pivot, columns[c]]
        rank += 1
    return rank


@compiled
def _invert(touching: Touching, rank: int) -> bool:
    """Put the independent part of the table into ``square``, and behind it its inverse, up to rounding; False if there is none."""
    square, work, behind = touching.square, touching.work, rank
    for i in range(rank):
        for c in range(rank):
            work[i, c] = square[i, c] = touching.table[touching.rows[i], touching.columns[c]]
            square[i, behind + c] = 1.0 if i == c else 0.0
    for k in range(rank):
        at = k
        for i in range(k + 1, rank):
            at = i if abs(work[i, k]) > abs(work[at, k]) else at
        if work[at, k] == 0.0:
            return False
        factor = 1.0 / work[at, k]
        for c in range(rank):
            work[at, c], work[k, c] = work[k, c], work[at, c]
            square[at, behind + c], square[k, behind + c] = square[k, behind + c], square[at, behind + c]
            work[k, c] *= factor
            square[k, behind + c] *= factor
        for i in range(rank):
            if i != k:
                factor = work[i, k]
                for c in range(rank):
                    work[i, c] -= factor * work[k, c]
                    square[i, behind + c] -= factor * square[k, behind + c]
    return True


@compiled
def _norm_of_inverse(touching: Touching, rank: int, rounding: float) -> float:
    """A bound on the row sums of the exact inverse of what ``square`` is nearly; negative if there is none.

    With X for what stands behind the square A, and D for what A is wrong by: if 1 - (A + D) X is less than 1/2 in size, the inverse of A + D is X times something of at most 2.
    """
    square, norm, off, doubt = touching.square, 0.0, 0.0, 0.0
    for i in range(rank):
        length, miss = 0.0, 0.0
        for c in range(rank):
            length += abs(square[i, rank + c])
            total = 0.0
            for k in range(rank):
                total += square[i, k] * square[k, rank + c]
            miss += abs(total - (1.0 if i == c else 0.0))
        norm, off, doubt = max(norm, length), max(off, miss), max(doubt, touching.doubts[touching.rows[i]])
    return 2.0 * norm if off + (doubt + rounding) * norm < 0.5 else -1.0


@compiled
def _complete(touching: Touching, m: int, rank: int, rounding: float) -> float:
    """Let the shares of the independent rows be those that complete the others' to a combination that is 0: how far they may be from it; negative if that is unknown."""
    table, square, shares, rows, columns = touching.table, touching.square, touching.shares, touching.rows, touching.columns
    norm, missed = _norm_of_inverse(touching, rank, rounding), 0.0
    for k in range(rank):
        shares[rows[k]] = 0.0
    for c in range(rank):
        goal = 0.0
        for i in range(rank, m):
            goal += shares[rows[i]] * table[rows[i], columns[c]]
        for k in range(rank):
            shares[rows[k]] -= goal * square[c, rank + k]
    for c in range(rank):
        total = 0.0
        for i in range(m):
            total += shares[i] * table[i, columns[c]]
        missed += abs(total)
    for i in range(m):
        missed += abs(shares[i]) * (touching.doubts[i] + rounding)
    return norm * missed if norm >= 0.0 else -1.0


@compiled
def _is_positive(touching: Touching, m: int, rank: int) -> bool:
    """Whether the shares of a combination that is exactly 0, if the table has this rank, are positive, and ask for the ends that they were taken to ask for."""
    shares, ends, signed, doubts = touching.shares, touching.ends, touching.signed, touching.doubts
    n = len(ends)
    rounding = _ROOM * (m + n + 4.0) * ROUNDOFF
    spread = _complete(touching, m, rank, rounding)
    if not spread >= 0.0:
        return False
    doubt = 0.0
    for i in range(m):
        own = spread if i < rank else 0.0
        if not shares[touching.rows[i]] > own:
            return False
        doubt += own + (shares[i] + spread) * (doubts[i] + rounding)
    for c in range(n):
        if ends[c] != 0.0:
            slope = 0.0
            for i in range(m):
                slope += shares[i] * signed[i, c]
            if not ends[c] * slope > doubt:
                return False
    return True


@compiled
def note_signs(touching: Touching, signs: Bytes) -> None:
    """Put the decisions of a walk into the pattern; those that are not made yet do not matter."""
    for u in range(len(touching.layer_of)):
        touching.pattern[touching.layer_of[u], touching.place_of[u]] = signs[u]


@compiled
def _load_residues(touching: Touching, codes: Whole, m: int, q: int, rank: int) -> int:
    """Put the table modulo primes into ``kept``: how many primes prove that a minor of one more than ``rank`` rows is 0; 0 if there are not so many."""
    residues, ends, bits, order = touching.residues, touching.ends, 0, 1
    n = len(ends)
    while 1 << order < n + 2 + rank:
        order += 1
    for i in range(m):
        code = codes[touching.members[i]]
        # a value at ends is a sum, and a minor one of as many products as there are orders
        own = bits_of(-1 if code < 0 else touching.layer_of[code >> 1], residues) + 2 * order
        bits = bits + own if m == rank + 1 else max(bits, (rank + 1) * own)
    most = enough(bits, residues)
    for i in range(m if most else 0):
        code = codes[touching.members[i]]
        if code < 0:
            put(-1, touching.wall_of[-1 - code], touching.pattern, most, residues)
        else:
            put(touching.layer_of[code >> 1], touching.place_of[code >> 1], touching.pattern, most, residues)
        for p in range(most):
            for c in range(q - 1):
                touching.kept[i, c, p] = residues.row[touching.inputs[c], p]
            total = residues.row[n, p]
            for c in range(n):
                if ends[c] > 0.0:
                    total += residues.row[c, p]
            touching.kept[i, q - 1, p] = total % residues.primes[p]
    return most


@compiled
def _rank_modulo(touching: Touching, m: int, q: int, p: int) -> int:
    """The rank of the table modulo prime number p."""
    prime, table, rank, column = touching.residues.primes[p], touching.modular, 0, 0
    for i in range(m):
        for c in range(q):
            table[i, c] = touching.kept[i, c, p]
    while rank < m and column < q:
        at = rank
        while at < m and table[at, column] == 0:
            at += 1
        if at < m:
            for c in range(column, q):
                table[rank, c], table[at, c] = table[at, c], table[rank, c]
            pivot = table[rank, column]
            for i in range(rank + 1, m):
                factor = table[i, column]
                for c in range(column, q):
                    table[i, c] = (table[i, c] * pivot % prime - table[rank, c] * factor % prime) % prime
            rank += 1
        column += 1
    return rank


@compiled
def _has_rank(touching: Touching, codes: Whole, m: int, q: int, rank: int) -> bool:
    """Whether the table is proved to have no larger rank than this."""
    n, of_units = len(touching.ends), True
    for i in range(m):
        of_units = of_units and codes[touching.members[i]] >= 0
    if touching.central and of_units and q == n + 1 and rank == n:
        return True
    if not len(touching.residues.primes):
        return False
    most = _load_residues(touching, codes, m, q, rank)
    for p in range(most):
        if _rank_modulo(touching, m, q, p) > rank:
            return False
    return most > 0


@apart
def has_no_interior(touching: Touching, cell: Cell, signs: Bytes, equal: int) -> bool:
    """Whether the combination that a linear program ended with, and could not bring below 0, proves that the cell has no interior.  Its proof then lists the rows that do so.

    Rows from ``equal`` on are equations: then no point of the interior of the cell of the rows before lies on all their planes.
    """
    if not len(touching.layer_of):
        return False
    proof, m = cell.proof, _gather(touching, cell, equal)
    if m == 0:
        return False
    q = _make_table(touching, m)
    rank = _find_rank(touching, m, q)
    if rank == m or not _invert(touching, rank) or not _is_positive(touching, m, rank):
        return False
    note_signs(touching, signs)
    if not _has_rank(touching, cell.codes, m, q, rank):
        return False
    for i in range(m):
        proof.rows[i], proof.shares[i] = touching.members[i], touching.shares[i]
    proof.size = m
    return True


@apart
def is_nothing(touching: Touching, signs: Bytes, u: int) -> bool:
    """Whether the preactivation of unit u is proved to be 0 everywhere below the decisions before its layer."""
    if not len(touching.layer_of):
        return False
    note_signs(touching, signs)
    return is_zero(touching.layer_of[u], touching.place_of[u], touching.pattern, touching.residues)
