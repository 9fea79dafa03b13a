"""One repetition by a search of our own, on the compiled linear programs of the counter.

How many constraints a repetition draws until nothing is left is settled by the constraints alone: it is the smallest r such that no
region satisfies the first r of them, whichever regions a solver would have met.  So they may be looked at in any order.

Two things limit r from above before any region is looked for.  Constraints contradict each other sooner or later.  And what they say of the
last layers alone may be impossible there, even if these layers' inputs were free in a box: that is a smaller search, without
which the larger one would find out again and again, below every pattern of the first layers.

Then the search begins with about as many constraints as earlier repetitions needed:

- if a region satisfies them, constraints are added until one cuts it, and the search goes on from there: what held no region
  holds none with more constraints;
- if none does, the last constraint is turned into its opposite: a region that satisfies that and all before it shows that
  r is the number of this constraint, and if there is none either, this constraint does not matter and the one before it is last.

A region is only taken for one if a point in it, whose signs are certain, or exact arithmetic says so.
"""

from collections.abc import Callable, Iterator, Sequence
from statistics import median_low
from typing import NamedTuple, TypeAlias

import numpy as np

from tessella.counting.search import Search
from tessella.formulation.parity import Echelon, Parity, bits, parities
from tessella.network import Floats
from tessella.partition.settler import Settler
from tessella.partition.tree import Tree
from tessella.partition.witness import Witness

_DECISIONS = 2_000  # by exact arithmetic, in one repetition
_BELOW = 2  # the search begins with so many constraints less than the median of earlier repetitions


class Outcome(NamedTuple):
    """What one repetition found."""

    draws: int  # how many constraints it drew until no solution was left
    unconfirmed: int = 0  # how many solutions turned out not to be any
    given_up: int = 0  # how many cells were left undecided
    tests: int = 0  # how many linear programs were solved, or solutions found by a solver


class Seeker:
    """Repetitions on one tree; serves one thread.

    Parameters
    ----------
    tree
        The network and its domain.
    tails
        The network's last layers as networks of their own, fewest first, on boxes that hold all their inputs; as many as there are.

    Examples
    --------
    >>> from tessella import Box, Network, stability
    >>> network = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], None)], relu_output=True)
    >>> seeker = Seeker(Tree.of(stability(network, Box(-1, 1, dim=2), method="interval")))
    >>> seeker.repeat(2, np.random.SeedSequence(0), lambda: False).draws
    4
    """

    def __init__(self, tree: Tree, tails: Sequence[Tree] = ()) -> None:
        """Nothing is known yet."""
        self._tree, self._search = tree, Search(tree)
        self._tails = [(tree.units - tail.units, Search(tail)) for tail in tails]
        self._settler, self._witness = Settler(tree, most_cells=_DECISIONS), Witness(tree.network, tree.domain)
        self._earlier = dict[int, list[int]]()
        box = tree.domain.box
        self._free, self._centre, self._radius = box.free, box.lower / 2.0 + box.upper / 2.0, box.upper / 2.0 - box.lower / 2.0
        self._unconfirmed = self._tests = 0

    def repeat(self, size: int, seed: np.random.SeedSequence, stopped: Callable[[], bool]) -> Outcome | None:
        """Draw constraints until no region is left; None if it was stopped before.

        Parameters
        ----------
        size
            How many units a constraint has.
        seed
            What the constraints come from.
        stopped
            Asked every hundredth of a second or so whether to end.
        """
        self._unconfirmed = self._tests = 0
        self._settler.renew()
        drawn = list[Parity]()
        rows = list(independent(_kept(parities(self._tree.units, size, seed), drawn)))
        for start, search in self._tails:
            rows = rows[: self._by_tail(start, search, drawn[: len(rows)], stopped)]
        earlier = self._earlier.setdefault(size, [])
        begin = max(median_low(earlier) - _BELOW, 0) if earlier else len(rows)
        draws = self._draws(rows, min(begin, len(rows)), self._begin, stopped)
        if draws is None or stopped():
            return None
        earlier.append(draws)
        return Outcome(draws, self._unconfirmed, self._settler.given_up, self._tests)

    def _by_tail(self, start: int, search: Search, drawn: list[Parity], stopped: Callable[[], bool]) -> int:
        """How many constraints the last layers allow: with one more, what they say of these layers alone is not possible there."""
        births, rows = list[int](), list[Parity]()
        for number, row in on_last(drawn, start):
            births.append(number)
            rows.append(row)
        rows = list(independent(iter(rows)))
        found = self._draws(rows, len(rows), lambda some: self._began(search, some, None), stopped)
        return births[found - 1] if found is not None and 0 < found <= len(rows) else len(drawn)

    @staticmethod
    def _draws(
        rows: list[Parity], count: int, begin: "Callable[[list[Parity]], _Begun]", stopped: Callable[[], bool]
    ) -> int | None:
        """The first constraint with which there is no region, or one more than there are; None if it was stopped."""
        begun, satisfied = begin(rows[:count]), count
        for region in begun.regions(stopped):
            if count == len(rows):  # all of them hold, also where only the first units of a region are known
                return len(rows) + 1
            satisfied = next((number for number, row in enumerate(rows) if not row.holds(region)), len(rows))
            if satisfied == len(rows):
                return len(rows) + 1
            for row in rows[count : satisfied + 1]:
                begun.add(row)
            begun.leave(rows[satisfied])
            count = satisfied + 1
        if satisfied < count:
            return count
        while count and not stopped():
            last = rows[count - 1]
            if last.mask:
                opposite = Parity(last.mask, 1 - last.odd)
                if next(begin([*rows[: count - 1], opposite]).regions(stopped), None) is not None:
                    return count
            count -= 1
        return None if stopped() else 0

    def _begin(self, rows: list[Parity]) -> "_Begun":
        return self._began(self._search, rows, (self._confirmed, self._settler))

    def _began(self, search: Search, rows: list[Parity], check: "_Check | None") -> "_Begun":
        search.begin()
        return _Begun(search, rows, check, self._count)

    def _count(self, tests: int) -> None:
        self._tests += tests

    def _confirmed(self, prefix: bytes, point: Floats) -> bool:
        """Whether a region is there: its point says so, or exact arithmetic does."""
        place = self._centre.copy()
        place[self._free] += self._radius[self._free] * np.clip(point, -1.0, 1.0)
        seen = self._witness.pattern(place)
        found = (seen is not None and seen.astype(np.uint8).tobytes() == prefix) or self._settler.exact.exists(prefix)
        self._unconfirmed += not found
        return found


_Check: TypeAlias = tuple[Callable[[bytes, Floats], bool], Settler]


class _Begun:
    """A search that has begun with some constraints, to which others may be added.

    Parameters
    ----------
    search
        Who searches.
    rows
        What holds from the start.
    check
        Whether a region that was found is there, and what settles thin cells; None to take all that may be one for a region,
        of which only the first units may be known.
    count
        Told how many linear programs were solved.
    """

    def __init__(self, search: Search, rows: list[Parity], check: _Check | None, count: Callable[[int], None]) -> None:
        self._search, self._rows, self._check, self._count = search, dict[int, Parity](), check, count
        for row in rows:
            self.add(row)

    def add(self, row: Parity) -> None:
        """From now on, a constraint holds; it is in echelon form with those before it."""
        if row.mask:
            *others, last = row.variables
            self._rows[last] = row
            self._search.add(last, others, row.odd)

    def leave(self, row: Parity) -> None:
        """The region found last violates this constraint, and so do all that agree with it up to its last unit."""
        self._search.leave(row.mask.bit_length() - 1)

    def regions(self, stopped: Callable[[], bool]) -> Iterator[int]:
        """Regions that satisfy all constraints known by then; first those that floating-point arithmetic finds."""
        search = self._search
        while (prefix := self._next(stopped)) is not None:
            if self._check is None or self._check[0](prefix, search.point()):
                yield bits(prefix)
        if self._check is not None:
            yield from map(bits, self._check[1].leaves(search.thin, self._allowed, stopped))
            return
        while search.thin and not stopped():
            prefix = search.thin.pop()
            if self._allowed(prefix):
                yield bits(prefix)

    def _next(self, stopped: Callable[[], bool]) -> bytes | None:
        before = self._search.tests
        prefix = self._search.next(stopped)
        self._count(self._search.tests - before)
        return prefix

    def _allowed(self, prefix: bytes) -> bool:
        assignment = bits(prefix)
        return all(row.holds(assignment) for last, row in self._rows.items() if last < len(prefix))


def _kept(drawn: Iterator[Parity], seen: list[Parity]) -> Iterator[Parity]:
    for parity in drawn:
        seen.append(parity)
        yield parity


def on_last(drawn: Sequence[Parity], start: int) -> Iterator[tuple[int, Parity]]:
    """What constraints say of the variables from ``start`` on alone, numbered from there, each with how many constraints say so.

    Examples
    --------
    >>> list(on_last([Parity(0b101, 1), Parity(0b1100, 0)], 2))
    [(1, Parity(mask=3, odd=0))]
    """
    rows = dict[int, Parity]()
    for number, (mask, odd) in enumerate(drawn):
        while mask and (row := rows.get(mask & -mask)):
            mask, odd = mask ^ row.mask, odd ^ row.odd  # noqa: PLW2901  reduced by those before it
        if mask:
            rows[mask & -mask] = Parity(mask, odd)
            if not mask & ((1 << start) - 1):
                yield number, Parity(mask >> start, odd)


def independent(drawn: Iterator[Parity]) -> Iterator[Parity]:
    """Constraints as they are drawn, each reduced by those before it, up to the first that contradicts them.

    Examples
    --------
    >>> list(independent(iter([Parity(3, 1), Parity(6, 0), Parity(5, 1), Parity(5, 0)])))
    [Parity(mask=3, odd=1), Parity(mask=6, odd=0), Parity(mask=0, odd=0)]
    """
    echelon = Echelon()
    for parity in drawn:
        rest = echelon.add(parity)
        if not rest.mask and rest.odd:
            return
        yield rest
