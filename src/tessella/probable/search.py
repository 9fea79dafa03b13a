"""One repetition by a search of our own, on the compiled linear programs of the counter.

How many constraints a repetition draws until nothing is left is settled by the constraints alone: it is the smallest r such that no
region satisfies the first r of them, whichever regions a solver would have met (for a solver that errs in nothing).  So they may be looked at in any
order.  Constraints that contradict each other without any region limit r from above.  The search begins with about as many
constraints as earlier repetitions needed:

- if a region satisfies them, constraints are added until one cuts it, and the search goes on from there: what held no region
  holds none with more constraints;
- if none does, the last constraint is turned into its opposite: a region that satisfies that and all before it shows that
  r is the number of this constraint, and if there is none either, this constraint does not matter and the one before it is last.

A region is only taken for one if a point in it, whose signs are certain, or exact arithmetic says so.
"""

from collections.abc import Callable, Iterator
from statistics import median_low
from typing import NamedTuple

import numpy as np

from tessella.counting.exact import Exact
from tessella.counting.tree import Tree
from tessella.counting.walk import Search
from tessella.counting.witness import Witness
from tessella.formulation.parity import Echelon, Parity, bits, parities
from tessella.network import Floats

_DECISIONS = 2_000  # by exact arithmetic, in one repetition
_BELOW = 2  # the search begins with so many constraints less than the median of earlier repetitions


class Outcome(NamedTuple):
    """What one repetition found.

    Parameters
    ----------
    draws
        How many constraints it drew until no solution was left.
    unconfirmed
        How many solutions turned out not to be any.
    given_up
        How many cells were left undecided.
    tests
        How many linear programs were solved, or solutions found by a solver.
    """

    draws: int
    unconfirmed: int = 0
    given_up: int = 0
    tests: int = 0


class Seeker:
    """Repetitions on one tree; serves one thread.

    Parameters
    ----------
    tree
        The network and its domain.

    Examples
    --------
    >>> from tessella import Box, Network, stability
    >>> network = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], None)], relu_output=True)
    >>> seeker = Seeker(Tree.of(stability(network, Box(-1, 1, dim=2), method="interval")))
    >>> seeker.repeat(2, np.random.SeedSequence(0), lambda: False).draws
    4
    """

    def __init__(self, tree: Tree) -> None:
        """Nothing is known yet."""
        self._tree, self._search = tree, Search(tree)
        self._exact, self._witness = Exact(tree), Witness(tree.network, tree.domain)
        self._earlier = dict[int, list[int]]()
        box = tree.domain.box
        self._free, self._centre, self._radius = box.free, box.lower / 2.0 + box.upper / 2.0, box.upper / 2.0 - box.lower / 2.0
        self._decisions = self._unconfirmed = self._given_up = self._tests = 0

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
        self._decisions = self._unconfirmed = self._given_up = 0
        self._tests = -self._search.tests  # those of the repetition before
        rows = list(independent(parities(self._tree.units, size, seed)))
        earlier = self._earlier.setdefault(size, [])
        begin = max(median_low(earlier) - _BELOW, 0) if earlier else len(rows)
        draws = self._draws(rows, min(begin, len(rows)), stopped)
        if draws is None or stopped():
            return None
        earlier.append(draws)
        return Outcome(draws, self._unconfirmed, self._given_up, self._tests + self._search.tests)

    def _draws(self, rows: list[Parity], count: int, stopped: Callable[[], bool]) -> int | None:
        """The first constraint with which there is no region; None if it was stopped, or there is none at all."""
        begun, satisfied = self._begin(rows[:count]), count
        for region in begun.regions(stopped):
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
                if next(self._begin([*rows[: count - 1], opposite]).regions(stopped), None) is not None:
                    return count
            count -= 1
        return None if stopped() else 0

    def _begin(self, rows: list[Parity]) -> "_Begun":
        self._tests += self._search.tests
        self._search.begin()
        return _Begun(self._search, self._tree.units, rows, self._confirmed, self._exists)

    def _confirmed(self, prefix: bytes, point: Floats) -> bool:
        """Whether a region is there: its point says so, or exact arithmetic does."""
        place = self._centre.copy()
        place[self._free] += self._radius[self._free] * np.clip(point, -1.0, 1.0)
        seen = self._witness.pattern(place)
        found = (seen is not None and seen.astype(np.uint8).tobytes() == prefix) or self._exact.exists(prefix)
        self._unconfirmed += not found
        return found

    def _exists(self, prefix: bytes) -> bool:
        """Whether a thin cell is there; as if it were not, if there were too many of these questions."""
        self._decisions += 1
        if self._decisions > _DECISIONS:
            self._given_up += 1
            return False
        return self._exact.exists(prefix)


class _Begun:
    """A search that has begun with some constraints, to which others may be added."""

    def __init__(
        self,
        search: Search,
        units: int,
        rows: list[Parity],
        confirmed: Callable[[bytes, Floats], bool],
        exists: Callable[[bytes], bool],
    ) -> None:
        self._search, self._units, self._rows = search, units, dict[int, Parity]()
        self._confirmed, self._exists = confirmed, exists
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
        while (prefix := search.next(stopped)) is not None:
            if self._confirmed(prefix, search.point()):
                yield bits(prefix)
        while search.thin and not stopped():
            prefix = search.thin.pop()
            if self._allowed(prefix) and self._exists(prefix):
                if len(prefix) == self._units:
                    yield bits(prefix)
                else:
                    search.thin += [prefix + b"\0", prefix + b"\1"]

    def _allowed(self, prefix: bytes) -> bool:
        assignment = bits(prefix)
        return all(row.holds(assignment) for last, row in self._rows.items() if last < len(prefix))


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
