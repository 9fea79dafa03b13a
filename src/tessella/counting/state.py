"""What a depth-first walk knows, with names: where it stands, what waits, what it leaves to others, and the cell that it is in.

A walk goes through the tree of `tessella.partition.tree` in the order of its units.  One loop does that (`tessella.counting.depth_first`), whoever answers its questions: linear programs
(`tessella.counting.by_programs`) or points (`tessella.counting.by_points`).  They do so in steps that the loop calls by address, and each has parts of `Walk` of its own.
"""

from typing import Self

import numpy as np

from tessella.cells.state import Cell, Layers, Proofs, Units
from tessella.cells.touching import Touching
from tessella.counting.points import Points
from tessella.kernel.record import ByteMatrix, Bytes, Matrix, Record, Whole, WholeCube, WholeMatrix

MOST_PLANES = 12  # hyperplanes of the last layer that are counted at once
MOST_SETS = 2048  # sets of them, and points, that are kept meanwhile
MOST_PAIRED = 62  # units that cross a cell and are looked at in pairs: bits of a number that stays positive
THIN, DEEP, HARD = range(3)  # why a prefix is left: undecided, too deep for the states there is room for, to be walked carefully

_LEFT = 64  # prefixes that are left before somebody takes them
_PROOFS, _LONGEST = 16, 15  # proofs kept of a unit's sign, and how many other units they may be made of


class Path(Record):
    """Where a walk stands.

    ``signs[:position]`` are the decisions that lead there; of these ``splits`` had both sides, and ``rows`` rows are on the cell's stack.  Its point, or points, are those of ``state``.
    Where ``waits[u]`` is 1, the other side of unit u is still to be walked, from ``waiting_state[u]``, with ``waiting_rows[u]`` rows and ``waiting_splits[u]`` splits above it.
    A unit u of the last layer has one sign below the first ``stable_at[u]`` decisions, and so in this cell if these are at most ``position``.
    """

    signs: Bytes
    waits: Bytes
    waiting_state: Whole
    waiting_rows: Whole
    waiting_splits: Whole
    stable_at: Whole
    position: int
    state: int
    rows: int
    splits: int
    goes_down: bool  # else back up, to the next side that waits
    plain_from: int  # below this position the last layer's units are decided one by one
    regions: int  # counted

    @classmethod
    def of(cls, units: int) -> Self:
        """At the root."""
        whole = {
            name: np.zeros(units, dtype=np.int64) for name in ("waiting_state", "waiting_rows", "waiting_splits", "stable_at")
        }
        return cls(signs=np.zeros(units + 1, dtype=np.int8), waits=np.zeros(units + 1, dtype=np.int8), **whole)


class Left(Record):
    """Prefixes that a walk does not count: ``count`` of them, each with why, how many signs it has, how many of these had both sides, and the signs."""

    kinds: Whole
    lengths: Whole
    splits: Whole
    signs: ByteMatrix
    count: int

    @classmethod
    def of(cls, units: int) -> Self:
        """None yet."""
        kinds, lengths, splits = (np.zeros(_LEFT, dtype=np.int64) for _ in range(3))
        return cls(kinds=kinds, lengths=lengths, splits=splits, signs=np.zeros((_LEFT, units + 1), dtype=np.int8))


class Choice(Record):
    """The two sides of a unit: whether they exist (FEASIBLE, INFEASIBLE, UNCLEAR), and the state from which a walk goes on there."""

    exists: Whole
    states: Whole

    @classmethod
    def of(cls) -> Self:
        """Nothing yet."""
        return cls(exists=np.zeros(2, dtype=np.int64), states=np.zeros(2, dtype=np.int64))


class Sets(Record):
    """Sets of the last layer's hyperplanes, as bits, and which of them meet in the cell (`tessella.counting.faces`).

    Hyperplane f is the row ``planes[f]``, of unit ``units[f]``; there are ``crossing``.  The first ``met`` sets of ``meeting`` meet, with all their subsets; no set does that holds one of the first
    ``parted`` sets of ``apart``.
    The set at a level is ``members[level]``: that of the level below it on the stack, and ``element[level]``.  ``candidates[level]`` are to join it; those after ``following[level]`` have been
    asked, and ``joined[level]`` of them do meet it.  ``totals[level]`` sets that hold it have been counted.
    """

    planes: Matrix
    units: Whole
    meeting: Whole
    apart: Whole
    element: Whole
    members: Whole
    candidates: Whole
    joined: Whole
    following: Whole
    totals: Whole
    crossing: int
    met: int
    parted: int

    @classmethod
    def of(cls, dimensions: int) -> Self:
        """No hyperplane yet."""
        names = ("units", "element", "members", "candidates", "joined", "following", "totals")
        levels = {name: np.zeros(MOST_PLANES + 1, dtype=np.int64) for name in names}
        kept = {name: np.zeros(MOST_SETS, dtype=np.int64) for name in ("meeting", "apart")}
        return cls(planes=np.zeros((MOST_PLANES + 1, dimensions + 3)), **levels, **kept)


class Sightings(Record):
    """Points on intersections of hyperplanes, as linear programs found them: the hyperplanes ``on`` which each lies, and those that it lies ``above`` and ``below``, as bits.

    The program of hyperplane f alone ended in state ``first`` + f, and that of the set at a level above 0 in state ``base`` + level, if ``solved[level]``.  ``seen[level]`` are the hyperplanes
    that are known to meet the set because of points around it; -1 if nobody has looked.  ``dived`` are the elements of a set that grows beside the stack.
    """

    on: Whole
    above: Whole
    below: Whole
    solved: Whole
    seen: Whole
    dived: Whole
    count: int
    first: int
    base: int

    @classmethod
    def of(cls) -> Self:
        """None yet."""
        points = {name: np.zeros(MOST_SETS, dtype=np.int64) for name in ("on", "above", "below")}
        levels = {name: np.zeros(MOST_PLANES + 2, dtype=np.int64) for name in ("solved", "seen", "dived")}
        return cls(**points, **levels)


class Settled(Record):
    """Proofs that a unit does not have a sign, from the signs of few others: they hold wherever the layers before are in the same state.

    For each key, 2 u or 2 u + 1 where the sign of unit u is proved to be 0 or 1, the last ``_PROOFS`` of ``found[key]`` proofs.  Proof i is made of the ``sizes[key, i]`` codes ``codes[key, i]``: 2 v + sign of unit v.
    """

    found: Whole
    sizes: WholeMatrix
    codes: WholeCube

    @classmethod
    def of(cls, units: int) -> Self:
        """None yet."""
        return cls(
            found=np.zeros(2 * units, dtype=np.int64),
            sizes=np.zeros((2 * units, _PROOFS), dtype=np.int64),
            codes=np.zeros((2 * units, _PROOFS, _LONGEST), dtype=np.int64),
        )


class Crossings(Record):
    """Cells whose parts are bounded, not counted (`tessella.counting.crossings`): ``count`` of them, each with the signs that lead to it.

    Of the layer behind it ``sizes`` units cross the cell, ``leaky`` of them without ever losing what they read, and ``carrying`` ReLUs besides may pass something on.  Those that cross are ``units``, and number k
    of them meets those in ``meets[k]``, as bits.  So the cell has at most ``parts`` parts.

    Decision u is ``lasting`` if what it reads is never lost, and ``follows`` an earlier one of its layer if it is a multiple.  ``linear`` units of the layers before pass something on in any case, and cells have at most
    ``dim`` dimensions.  In the cell that is looked at, the hyperplane of the k-th unit is row ``planes[k]``; points on it lie ``above`` and ``under`` others, as bits; the first of these points is ``spots[k]``.  What is not
    ``shown`` is not asked about.
    """

    signs: ByteMatrix
    sizes: Whole
    leaky: Whole
    carrying: Whole
    parts: Whole
    units: WholeMatrix
    meets: WholeMatrix
    lasting: Bytes
    follows: Bytes
    planes: Matrix
    spots: Matrix
    above: Whole
    under: Whole
    shown: Whole
    waiting: Whole
    count: int
    linear: int
    dim: int
    pairs: bool  # whether pairs are looked at

    @classmethod
    def of(cls, cells: int, layers: Layers, dimensions: int) -> Self:
        """Room for so many cells."""
        units, last = len(layers.unit_of), int((layers.layer_of == layers.layer_of[-1]).sum())
        whole = {name: np.zeros(cells, dtype=np.int64) for name in ("sizes", "leaky", "carrying", "parts")}
        kept = {name: np.zeros((cells, min(last, MOST_PAIRED)), dtype=np.int64) for name in ("units", "meets")}
        levels = {name: np.zeros(MOST_PAIRED + 1, dtype=np.int64) for name in ("above", "under", "shown", "waiting")}
        flags = {name: np.zeros(units, dtype=np.int8) for name in ("lasting", "follows")}
        planes, spots = np.zeros((MOST_PAIRED, dimensions + 3)), np.zeros((MOST_PAIRED + 1, dimensions))
        signs = np.zeros((cells, max(units - last, 1)), dtype=np.int8)
        return cls(signs=signs, planes=planes, spots=spots, pairs=True, **whole, **kept, **levels, **flags)


class Walk(Record):
    """All that a walk knows, and who takes its steps: the last four are addresses of functions that `tessella.counting.depth_first` and `tessella.counting.faces` describe.

    ``proofs``, ``sightings`` and ``touching`` are those of linear programs, ``settled`` and ``points`` those of points, ``crossings`` are of who bounds cells; whoever has none has empty ones.
    """

    layers: Layers
    units: Units
    cell: Cell
    path: Path
    left: Left
    choice: Choice
    sets: Sets
    proofs: Proofs
    sightings: Sightings
    settled: Settled
    points: Points
    crossings: Crossings
    touching: Touching
    unclear: int  # what prefixes are left as that cannot be decided
    deepest: int  # the last state from which there is room to go on
    decide: int
    hand_down: int  # 0 if there is nothing to do
    count_faces: int
    begin_sets: int
    meets: int
