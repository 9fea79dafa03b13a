"""How a layer of the smaller network carries on what is affine in what it reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from tessella.compressing.composition import Integers, Matrix, Rows
from tessella.compressing.dependent import dependencies
from tessella.compressing.groups import Share, rounded
from tessella.compressing.multiples import Key
from tessella.network import Floats
from tessella.tightening.rounding import lost

_WIDER = 1.0 + 1e-9
_WORTH = 4.0 / 3.0  # a layer without ReLUs stays if it saves a quarter of the weights


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """The linear units of a layer, and what is read of them."""

    emitted: Rows | None  # their rows; None if there is no layer, and later ones read what this one would have read
    slopes: Floats  # what each multiplies its row with
    rows: Rows  # the functions that are carried
    own: Integers  # for each function the linear unit that is exactly it; -1 if none is
    passed: Integers | None = None  # the values that are passed on in their place, if that is what is done
    # for each function that is a combination of those that are carried, its coefficients
    mixed: Mapping[int, list[Fraction]] = field(default_factory=dict[int, list[Fraction]])

    def reach(self, sizes: Floats, before: Floats) -> Floats:
        """How large what each linear unit passes on is at most: from the sizes of the functions, and of what the layer reads."""
        if self.passed is not None:
            return before[self.passed]
        return np.abs(self.slopes) * sizes[self.own >= 0] * _WIDER

    def place_of(self, which: int, factor: Fraction) -> int | None:
        """The linear unit that is exactly a factor times a function; None if none is."""
        unit = int(self.own[which])
        return unit if unit >= 0 and Fraction(float(self.slopes[unit])) == factor else None

    def name(self, which: int | None, start: int) -> Key:
        """What to call a function in exact arithmetic."""
        if which is None:
            return None
        unit = int(self.own[which])
        return start + unit if unit >= 0 and self.slopes[unit] == 1.0 else ("function", which)

    def functions(self, which: Sequence[int], factors: Sequence[Fraction], columns: int, start: int) -> Rows:
        """Multiples of some functions, in terms of the values that are there."""
        from scipy.sparse import csr_array  # noqa: PLC0415  heavy

        numbers, off = rounded(list(factors))
        if self.passed is None and self.emitted is not None:
            return self._of_units(which, factors, columns, start)
        rows = self.rows.take(list(which))
        weight = csr_array(rows.weight)
        if self.passed is not None:
            there = np.full(int(rows.weight.shape[1]), -1, dtype=np.int64)
            there[self.passed] = start + np.arange(len(self.passed))
            found = weight.tocoo()
            keeps = found.data != 0.0
            at = found.row[keeps], there[found.col[keeps]]
            weight = csr_array((found.data[keeps], at), shape=(len(which), columns))
            doubts = None
            if rows.doubts is not None:
                more = csr_array(rows.doubts).tocoo()
                some = more.data != 0.0
                doubts = csr_array((more.data[some], (more.row[some], there[more.col[some]])), shape=(len(which), columns))
            rows = Rows(weight, rows.constants, doubts, rows.constant_doubts)
        else:
            rows = Rows(weight, rows.constants, None if rows.doubts is None else csr_array(rows.doubts), rows.constant_doubts)
        return _multiplied(rows, numbers, off)

    def _of_units(self, which: Sequence[int], factors: Sequence[Fraction], columns: int, start: int) -> Rows:
        """The same where units are carried: each function is one of them times a number, or a combination of them."""
        from scipy.sparse import csr_array  # noqa: PLC0415  heavy

        entries, constants = list[tuple[int, int, Fraction]](), list[Fraction]()
        basis = np.flatnonzero(self.own >= 0)
        for row, (function, factor) in enumerate(zip(which, factors, strict=True)):
            unit = int(self.own[function])
            if unit >= 0:
                entries.append((row, start + unit, factor / Fraction(float(self.slopes[unit]))))
                constants.append(Fraction(0))
                continue
            mixture = self.mixed[function]
            entries += [(row, start + place, factor * value) for place, value in enumerate(mixture) if value]
            known = sum((v * Fraction(float(self.rows.constants[b])) for v, b in zip(mixture, basis, strict=True)), Fraction(0))
            constants.append(factor * (Fraction(float(self.rows.constants[function])) - known))
        numbers, off = rounded([value for *_, value in entries])
        at = [row for row, *_ in entries], [column for _, column, _ in entries]
        shape = len(which), columns
        doubts: Any = csr_array((off, at), shape=shape) if off.any() else None
        return Rows(csr_array((numbers, at), shape=shape), *_ends(constants, doubts))


def _ends(constants: list[Fraction], doubts: Matrix | None) -> tuple[Floats, Matrix | None, Floats]:
    numbers, off = rounded(constants)
    return numbers, doubts, off


def _multiplied(rows: Rows, numbers: Floats, off: Floats) -> Rows:
    """Rows times numbers that may be off by a little."""
    found = rows.times(numbers)
    if not off.any():
        return found
    more: Any = abs(rows.weight) if rows.doubts is None else abs(rows.weight) + rows.doubts
    extra = more.multiply((_WIDER * off)[:, None]).tocsr() + lost(1, off, more) * (more > 0.0).astype(np.float64)
    held = np.abs(rows.constants) + rows.constant_doubts
    moved = found.constant_doubts + _WIDER * off * held + np.where(held > 0.0, lost(1, off, held), 0.0)
    return Rows(found.weight, found.constants, extra if found.doubts is None else found.doubts + extra, moved)


def carry(  # noqa: PLR0913  what is carried, who reads it, and what may be done
    rows: Rows, after: Matrix, *, bends: bool, rounds: bool, shares: Mapping[int, Share], names: Integers
) -> Carried:
    """Choose how some functions are carried on.

    Parameters
    ----------
    rows
        The functions.
    after
        How the next layer reads the units that they are named after.
    bends
        Whether the layer has ReLUs, so that it cannot be left out.
    rounds
        Whether weights may be put together.
    shares
        What is read of the functions.
    names
        What each function is called there.
    """
    count = len(rows.constants)
    used = rows.used()
    nothing, each = rows.take(np.zeros(0, dtype=np.int64)), np.arange(count)
    if not count:
        return Carried(nothing if bends else None, np.zeros(0), rows, each)
    found = dependencies(np.asarray(rows.weight)) if rounds and rows.exact and isinstance(rows.weight, np.ndarray) else None
    least = min(count, len(found[0]) if found else count)
    passes = rounds and len(used) <= least and (len(used) < least or not bends) and _is_lighter(rows, after, len(used), used)
    if not bends and rounds and (passes or _is_lighter(rows, after, least, None)):
        return Carried(None, np.zeros(0), rows, np.full(count, -1, dtype=np.int64))
    if passes:
        return Carried(
            _identity(rows, used), np.ones(len(used)), rows, np.full(count, -1, dtype=np.int64), np.asarray(used, dtype=np.int64)
        )
    if found is not None:
        own = np.full(count, -1, dtype=np.int64)
        own[found[0]] = np.arange(len(found[0]))
        return Carried(rows.take(found[0]), np.ones(len(found[0])), rows, own, mixed=found[1])
    return Carried(rows, _slopes(shares, names), rows, each)


def _slopes(shares: Mapping[int, Share], names: Integers) -> Floats:
    """What a linear unit multiplies its row with: the one factor with which it is read, if that is a number of double precision, else 1."""
    factors = dict[int, set[Fraction]]()
    for found in shares.values():
        if found.linear:
            factors.setdefault(found.first, set()).add(found.linear)
    slopes = np.ones(len(names))
    for place, name in enumerate(names.tolist()):
        wanted = factors.get(name, set())
        if len(wanted) == 1:
            (one,) = wanted
            number = float(one)
            slopes[place] = number if Fraction(number) == one else 1.0
    return slopes


def _identity(rows: Rows, used: Integers) -> Rows:
    """Rows that are values that the layer reads."""
    count, columns = len(used), int(rows.weight.shape[1])
    if isinstance(rows.weight, np.ndarray):
        weight = np.zeros((count, columns))
        weight[np.arange(count), used] = 1.0
    else:
        weight = type(rows.weight)((np.ones(count), (np.arange(count), used)), shape=(count, columns))
    return Rows(weight, np.zeros(count), None, np.zeros(count))


def _is_lighter(rows: Rows, after: Matrix, units: int, used: Integers | None) -> bool:
    """Whether the next layer had better read what this layer reads than its linear units: whether that makes fewer weights.

    Parameters
    ----------
    rows, after
        The functions, and how they are read.
    units
        How many linear units there would be, at least.
    used
        The values that would be passed on by linear units; None if the layer would be left out.
    """
    sparse = not (isinstance(rows.weight, np.ndarray) and isinstance(after, np.ndarray))
    columns, readers = int(rows.weight.shape[1]), int(after.shape[0])
    if not sparse:
        return used is not None or readers * columns <= _WORTH * units * (columns + readers)
    from scipy.sparse import csr_array  # noqa: PLC0415  heavy

    pattern = (abs(csr_array(after)) > 0.0).astype(np.float64) @ (abs(csr_array(rows.weight)) > 0.0).astype(np.float64)
    stays = csr_array(rows.weight).nnz + csr_array(after).nnz
    return pattern.nnz + (0 if used is None else len(used)) <= stays
