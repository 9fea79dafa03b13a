"""The last layer: cells are counted there without walking them; compiled.

In a cell, hyperplanes in general position have as many cells as there are sets of them (the empty one included) that meet inside it (Zaslavsky 1975).  These sets are closed under taking subsets, so
they are found by adding one hyperplane after the other.  Sets that are known not to meet settle all that hold them, and large ones that are known to meet all their subsets.  Whether
another set meets, linear programs say (`tessella.counting.faces_by_programs`) or points (`tessella.counting.faces_by_points`).
"""

from tessella.counting.state import Sets, Walk
from tessella.kernel.functions import apart, by_address, compiled

APART, MEETS = range(2)
LATER, NEVER, AGAIN = (
    -1,
    -2,
    -3,
)  # why cells are not counted: decide a unit first; decide all units, as hyperplanes are not in general position; or come here again

_ENTERED = -9  # in place of the next candidate: the level is new


@by_address
def begin_sets(walk: Walk) -> int:  # pyright: ignore[reportReturnType]
    """Before the sets with the first element on the stack are counted: LATER or NEVER if they cannot be.  It may note sets that meet, and that do not."""


@by_address
def meets(walk: Walk, level: int, f: int) -> int:  # pyright: ignore[reportReturnType]
    """Whether hyperplane f meets the set at a level of the stack in the cell: MEETS, APART, LATER or NEVER."""


@compiled
def is_parted(sets: Sets, members: int) -> bool:
    """Whether some of these hyperplanes are known not to meet."""
    apart, found = sets.apart, False
    for i in range(sets.parted):
        if apart[i] & ~members == 0:
            found = True
            break
    return found


@compiled
def is_met(sets: Sets, members: int) -> bool:
    """Whether these hyperplanes are among some that are known to meet."""
    meeting, found = sets.meeting, False
    for i in range(sets.met):
        if members & ~meeting[i] == 0:
            found = True
            break
    return found


@compiled
def part(sets: Sets, members: int) -> bool:
    """Note that these hyperplanes do not meet; False if there is no room."""
    if sets.parted == len(sets.apart):
        return False
    sets.apart[sets.parted] = members
    sets.parted += 1
    return True


@compiled
def _enter(sets: Sets, level: int, f: int, members: int, candidates: int) -> None:
    """Put a set on the stack."""
    sets.element[level], sets.members[level], sets.candidates[level] = f, members, candidates
    sets.joined[level], sets.totals[level], sets.following[level] = 0, 1, _ENTERED


@compiled
def _look(walk: Walk, level: int) -> int:
    """Look at a set that is new on the stack: if all its candidates meet it, its subsets are counted at once.  LATER or NEVER if that cannot be."""
    sets = walk.sets
    candidates = sets.candidates[level]
    if candidates == 0 or is_met(sets, sets.members[level] | candidates):
        size = 0
        while candidates:
            candidates &= candidates - 1
            size += 1
        sets.totals[level], sets.following[level] = 1 << size, -1
        return MEETS
    sets.following[level] = sets.crossing - 1
    return begin_sets(walk.begin_sets, walk) if level == 0 else MEETS


@compiled
def _next(sets: Sets, level: int) -> int:
    """The next candidate to join the set at a level; -1 if there is none."""
    f, candidates = sets.following[level], sets.candidates[level]
    while f >= 0 and not candidates >> f & 1:
        f -= 1
    sets.following[level] = f - 1
    return f


@compiled
def _count_with(walk: Walk, e: int) -> int:
    """How many sets of hyperplane e, and of some after it, meet in the cell; or LATER, or NEVER."""
    sets, level = walk.sets, 0
    _enter(sets, 0, e, 1 << e, ((1 << sets.crossing) - 1) ^ ((1 << (e + 1)) - 1))
    while True:
        if sets.following[level] == _ENTERED:
            found = _look(walk, level)
            if found < 0:
                return found
        f = _next(sets, level)
        if f < 0:  # all candidates were asked
            found = sets.totals[level]
            level -= 1
            if level < 0:
                return found
            sets.totals[level] += found
            continue
        members = sets.members[level] | 1 << f
        if is_parted(sets, members):
            continue
        found = meets(walk.meets, walk, level, f)
        if found < 0:
            return found
        if found == MEETS:
            joined = sets.joined[level]
            sets.joined[level] = joined | 1 << f
            level += 1
            _enter(sets, level, f, members, joined)


@apart
def count_sets(walk: Walk) -> int:
    """How many sets of the hyperplanes that cross the cell meet in it, the empty one included; or LATER, or NEVER."""
    sets, total = walk.sets, 1
    sets.met = sets.parted = 0
    for e in range(sets.crossing - 1, -1, -1):
        found = _count_with(walk, e)
        if found < 0:
            return found
        total += found
    return total
