"""Maximum coverage: the most elements that k sets of a family can cover together, for every k at once.

A greedy choice finds at least 1 - (1 - 1/k)^k of the maximum (Nemhauser, Wolsey and Fisher, 1978), so it is a *lower* bound
and must not be used where an upper one is needed.  What is returned here is always an upper bound.  Coverage f is submodular,
so for any choice G, no k sets cover more than f(G) and the k largest gains over G together.  The least of these, over all
greedy choices G, is never above the greedy value divided by its guarantee: that proof uses k times the largest gain instead.
Branch and bound then closes what is left between the two, as far as it is allowed to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, pairwise
from operator import itemgetter, or_
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tessella.errors import OptionError

Integers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Coverage:
    """Upper bounds on what any k sets of a family cover."""

    # for k = 0, 1, ..., the number of sets: at least the largest size of a union of k of them; never decreasing
    values: tuple[int, ...]
    exact: tuple[bool, ...]  # for each k, whether the value is that size
    # for each k, how many unions were looked at, one by one, to find it; 0 where what was known said it
    inspected: tuple[int, ...]


def maximum_coverage(sets: Sequence[int], *, effort: int = 200_000) -> Coverage:
    """Find, for every k, the most elements that k sets cover together, or an upper bound on it.

    Parameters
    ----------
    sets
        Each set as the bits of an integer.
    effort
        How many unions branch and bound may look at, give or take one pass over the sets; without it (0) only easy values are exact.

    Examples
    --------
    >>> maximum_coverage([0b0011, 0b0110, 0b1100])
    Coverage(values=(0, 2, 4, 4), exact=(True, True, True, True), inspected=(0, 1, 1, 0))
    """
    _check(sets, effort)
    family = _maximal(sets, effort)
    found, limits = _greedy(family)
    inspected, left = [0, *(int(more > less) for less, more in pairwise(found))], effort
    for k in range(2, len(family) + 1):
        found[k] = max(found[k], found[k - 1])
        # of the best k sets, drop the one that adds least: k - 1 sets still cover (k - 1) / k of it
        limits[k] = min(limits[k], limits[k - 1] * k // (k - 1))
        if found[k] < limits[k] and left:
            # half of what is left: a hard k shall not keep a later, easy one from being solved
            search = _search(family, k, found[k], limits[k], (left + 1) // 2)
            found[k], left = search.best, max(left - search.inspected, 0)
            inspected[k] += search.inspected
            limits[k] = found[k] if search.finished else limits[k]
    limits = list(accumulate(reversed(limits), min))[::-1]
    spare = len(sets) - len(family)  # sets that add nothing to the others
    exact = [low == high for low, high in zip(found, limits, strict=True)]
    return Coverage((*limits, *[limits[-1]] * spare), (*exact, *[exact[-1]] * spare), (*inspected, *[0] * spare))


def _check(sets: Sequence[int], effort: int) -> None:
    for number, members in enumerate(sets):
        if isinstance(members, bool) or not isinstance(members, int) or members < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            msg = f"set {number} is {members!r:.60}; give each set as the bits of an integer, at least 0"
            raise OptionError(msg)
    if isinstance(effort, bool) or not isinstance(effort, int) or effort < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        msg = f"effort must be a whole number of unions, at least 0, got {effort!r}"
        raise OptionError(msg)


def _maximal(sets: Sequence[int], effort: int) -> list[int]:
    """The sets that no other contains, largest first; only without copies, if comparing all pairs is too much."""
    family = sorted(set(sets) - {0}, key=int.bit_count, reverse=True)
    if len(family) ** 2 > 2 * effort:
        return family
    kept: list[int] = []
    for members in family:
        if all(members & ~other for other in kept):
            kept.append(members)
    return kept


def _greedy(family: Sequence[int]) -> tuple[list[int], list[int]]:
    """What a greedy choice of k sets covers, and a bound on what any k sets cover, for k = 0..len(family)."""
    elements = [_elements(members) for members in family]
    gains: Integers = np.array([len(part) for part in elements], dtype=np.int64)
    size = reduce(or_, family, 0).bit_length()
    joined = np.concatenate([*elements, np.zeros(0, dtype=np.int64)])
    owners = np.repeat(np.arange(len(family)), gains)[np.argsort(joined, kind="stable")]
    starts = np.concatenate([[0], np.cumsum(np.bincount(joined, minlength=size))])
    found, limits, uncovered = [0], np.full(len(family) + 1, len(np.unique(joined))), np.ones(size, dtype=np.bool_)
    while gains.max(initial=0):
        np.minimum(limits[1:], found[-1] + np.cumsum(np.sort(gains)[::-1]), out=limits[1:])
        chosen = elements[int(np.argmax(gains))]
        new = chosen[uncovered[chosen]]
        uncovered[new] = False
        holders = np.concatenate([owners[starts[element] : starts[element + 1]] for element in new])
        gains -= np.bincount(holders, minlength=len(family))  # each element is covered once: cheap over all steps
        found.append(found[-1] + len(new))
    limits[0] = 0
    return found + found[-1:] * (len(limits) - len(found)), [int(limit) for limit in limits]


def _elements(members: int) -> Integers:
    data = np.frombuffer(members.to_bytes((members.bit_length() + 7) // 8, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(data, bitorder="little"))


@dataclass(frozen=True, slots=True)
class _Search:
    """The best coverage met, after how many unions, and whether none is better."""

    best: int
    inspected: int
    finished: bool


def _search(family: Sequence[int], k: int, best: int, limit: int, effort: int) -> _Search:
    """Look for k >= 2 sets that cover more than `best`, and stop at `limit`, which is the most possible.

    A node has chosen some sets and may choose from a pool, in order of the gain over its parent's choice.  It branches on the
    first of the pool: with it, where gains are computed anew, or without it.
    """
    inspected = 0
    stack = [(0, k, [(members.bit_count(), members) for members in family], 0)]
    while stack and best < limit:
        covered, picks, pool, first = stack.pop()
        size = covered.bit_count()
        if first >= len(pool) or size + sum(gain for gain, _ in pool[first : first + picks]) <= best:
            continue
        if inspected >= effort:
            return _Search(best, inspected, finished=False)
        stack.append((covered, picks, pool, first + 1))
        covered |= pool[first][1]
        size = covered.bit_count()
        fresh: list[tuple[int, int]] = []
        for gain, members in pool[first + 1 :]:
            if picks == 2 and size + gain <= best:  # gains only shrink, and one more set is all there is
                break
            inspected += 1
            gain_now = (covered | members).bit_count() - size
            best = max(best, size + gain_now)
            if gain_now and picks > 2:
                fresh.append((gain_now, members))
        if fresh:
            stack.append((covered, picks - 1, sorted(fresh, key=itemgetter(0), reverse=True), 0))
    return _Search(best, inspected, finished=True)
