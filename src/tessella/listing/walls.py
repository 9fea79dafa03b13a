"""Which of many regions share a wall.

Where the walk over corners proved the walls of a region, the region behind each has the same decisions but for one: it is found in a table.  The walls of the others are found by
`tessella.partition.facets`.  Two regions that both have all their walls proved must agree on the one between them; where they do not, exact arithmetic decides.
"""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from tessella.listing.cells import Cells, Ints, Run
from tessella.network import Mask
from tessella.partition.facets import Facets
from tessella.result import Status
from tessella.unbounded import as_bounded

_AT_ONCE = 2**16  # rows of a table that are looked at together


class Meetings(NamedTuple):
    """Which regions share a wall."""

    pairs: Ints  # two numbers of regions per wall, the smaller one first, in order
    undecided: Ints  # regions that may have other walls, too


def meetings(cells: Cells, run: Run) -> Meetings:
    """The pairs of regions that share a wall, as far as the run goes on.

    Examples
    --------
    >>> from tessella import Box, Network, stability
    >>> from tessella.kernel.deadline import Deadline
    >>> from tessella.listing.cells import list_cells
    >>> net = Network.from_arrays([([[1.0, 0.0], [1.0, 1.0]], [0.0, 0.5])], relu_output=True)
    >>> run = Run(Deadline())
    >>> meetings(list_cells(stability(net, Box(-1, 1, dim=2), method="linear"), run), run).pairs.tolist()
    [[0, 1], [0, 2], [1, 3], [2, 3]]
    """
    count = len(cells)
    complete = run.status is Status.FINISHED
    if count < 2:
        return Meetings(np.zeros((0, 2), dtype=np.int64), np.arange(0 if complete else count))
    pairs, clear = _by_flips(cells, complete=complete)
    more, undecided = list[tuple[int, int]](), np.flatnonzero(~clear)
    if len(undecided):
        more, undecided = _one_by_one(cells, run, pairs, undecided)
    if more:
        pairs = np.unique(np.concatenate([pairs, np.sort(np.array(more), axis=1)]), axis=0)
    if not complete:  # regions that are not listed may lie behind any wall
        undecided = np.arange(count)
    return Meetings(pairs, undecided)


def _by_flips(cells: Cells, *, complete: bool) -> tuple[Ints, Mask]:
    """The pairs that the walk proves, and the regions whose walls are all among them."""
    decided, clear, count = cells.part.decided, cells.part.clear.copy(), len(cells)
    owner, unit = cells.part.units
    other = _flipped(decided, owner, unit)
    found = other >= 0
    if complete:
        clear[owner[~found]] = False
    both = np.sort(np.stack([owner[found], other[found]], axis=1), axis=1)
    codes, times = np.unique(both[:, 0] * count + both[:, 1], return_counts=True)
    pairs = np.stack([codes // count, codes % count], axis=1)
    once = pairs[(times == 1) & clear[pairs].all(axis=1)]
    clear[once.ravel()] = False
    return pairs[clear[pairs].any(axis=1)], clear


def _flipped(decided: Mask, owner: Ints, unit: Ints) -> Ints:
    """The numbers of the rows that are as some rows but for one entry; -1 where there is none."""
    words = np.random.default_rng(0).integers(0, 2**63, decided.shape[1], dtype=np.uint64)
    packed, keys = np.packbits(decided, axis=1), np.zeros(len(decided), dtype=np.uint64)
    for first in range(0, len(decided), _AT_ONCE):
        part = decided[first : first + _AT_ONCE]
        keys[first : first + _AT_ONCE] = np.bitwise_xor.reduce(np.where(part, words, np.uint64(0)), axis=1)
    order = np.argsort(keys)
    table, wanted = keys[order], keys[owner] ^ words[unit]
    places = np.minimum(np.searchsorted(table, wanted), len(table) - 1)
    other = np.where(table[places] == wanted, order[places], -1)
    for first in range(0, len(other), _AT_ONCE):  # keys may be equal by chance
        part = slice(first, first + _AT_ONCE)
        differing = packed[owner[part]] ^ packed[other[part]]
        differing[np.arange(len(differing)), unit[part] // 8] ^= (128 >> (unit[part] % 8)).astype(np.uint8)
        other[part] = np.where(differing.any(axis=1), -1, other[part])
    return other


def _one_by_one(cells: Cells, run: Run, pairs: Ints, asked: Ints) -> tuple[list[tuple[int, int]], Ints]:
    """The walls of some regions, and which regions may have others."""
    search, found, left = _Search(cells, pairs, asked), list[tuple[int, int]](), set[int](asked.tolist())
    with run.stoppable():
        for number in asked.tolist():
            if not run.goes_on(len(cells)):
                break
            behind, all_found = search.behind(number, run)
            found += [(number, other) for other in behind]
            if all_found:
                left.discard(number)
    return found, np.array(sorted(left), dtype=np.int64)


class _Search:
    """Finds regions behind walls, one region after the other; a wall that is known from one side need not be proved from the other.

    Parameters
    ----------
    cells
        All regions.
    pairs
        Walls that are known.
    asked
        Regions that will be asked for.
    """

    def __init__(self, cells: Cells, pairs: Ints, asked: Ints) -> None:
        self._facets = Facets(*as_bounded(cells.known.network, cells.known.domain))
        self._patterns, self._known = cells.patterns, defaultdict[int, dict[int, bool]](dict)
        self._numbers = {row.tobytes(): number for number, row in enumerate(cells.patterns)}
        for one, other in pairs[np.isin(pairs, asked).any(axis=1)].tolist():
            self._note(one, other)

    def behind(self, number: int, run: Run) -> tuple[list[int], bool]:
        """The regions behind the walls that are not known yet, and whether there are no others."""
        walls = self._facets.of(self._patterns[number], run.deadline, self._known[number])
        listed = [self._numbers.get(wall.behind.tobytes()) for wall in walls.found]
        others = [other for other in listed if other is not None]
        for other in others:
            self._note(number, other)
        return others, not walls.undecided and len(others) == len(listed)

    def _note(self, one: int, other: int) -> None:
        """Remember a wall at which one unit changes."""
        changed = np.flatnonzero(self._patterns[one] != self._patterns[other]).tolist()
        if len(changed) == 1:
            self._known[one][changed[0]] = self._known[other][changed[0]] = True
