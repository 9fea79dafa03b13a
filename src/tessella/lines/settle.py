"""What a walk found, put in order; what it could not decide is decided in whole numbers, or bounded from both sides."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import floor, prod
from typing import NamedTuple

import numpy as np

from tessella.lines.deciding import Break, Decided, Deciding
from tessella.lines.walk import Breaks, Doubt, Integers, Walk
from tessella.network import Floats, Mask


@dataclass(slots=True)
class Settled:
    """All that is known of a path."""

    breaks: list[Break]  # in order
    # lower, upper: how many there are at least, and at most
    lower: int
    upper: int
    first: Mask  # the pattern at the beginning


class _Group(NamedTuple):
    """A range of the path in doubt; the units in doubt, by layer."""

    low: float
    high: float
    units: dict[int, set[int]]


@dataclass(slots=True)
class Settling:
    """Settles what a walk left."""

    walk: Walk  # the walk, at its end
    late: Callable[[], bool]  # whether to begin nothing new
    patient: bool = False  # whether to decide what is in doubt until it is late, however long that takes
    _found: list[Break] = field(default_factory=list[Break], init=False)
    _lower: int = field(default=0, init=False)
    _upper: int = field(default=0, init=False)
    _places: list[Integers] = field(default_factory=list[Integers], init=False)

    def settle(self) -> Settled:
        """Put everything in order."""
        walk, network, last = self.walk, self.walk.network, len(self.walk.path) - 1
        starts = np.cumsum([0, *(layer.relus for layer in network.layers)])
        self._places = [np.cumsum(layer.rectified) - 1 + start for layer, start in zip(network.layers, starts[:-1], strict=True)]
        breaks, seen = (_kept(Breaks.joined(parts), walk.reached) for parts in (walk.breaks, walk.seen))
        doubts = Doubt(*(np.concatenate(parts) for parts in zip(*walk.doubts, strict=True))) if walk.doubts else None
        first = np.concatenate([*walk.begins, np.zeros(0, dtype=np.bool_)])
        first = np.append(first, np.zeros(network.relus - len(first), dtype=np.bool_))
        lost = None if doubts is None else _lost(doubts)
        groups = [] if doubts is None else _groups(doubts, breaks, walk.reached)
        asked = [(group.low, group.high) for group in groups] if lost is None else [(0.0, walk.reached)] if walk.reached else []
        decided = self._decide(asked, np.sort(np.append(breaks.place, seen.place)))
        self._lower, self._upper = 1, 1
        if decided and decided[0].begin is not None:
            first = decided[0].begin
        for one in decided:
            self._found += one.breaks
            self._lower, self._upper = self._lower + len(one.breaks), self._upper + len(one.breaks)
        if lost is None:
            self._by_walk(breaks, seen, groups, [one.left for one in decided])
        elif decided and decided[0].left:
            self._where_lost(breaks, seen, groups, decided[0].left, prod(layer.relus + 1 for layer in network.layers[lost:]))
        rest = last - floor(walk.reached) if walk.reached < last else 0
        upper = self._upper + rest * prod(layer.relus + 1 for layer in network.layers)
        self._found.sort(key=lambda one: one.place)
        return Settled(self._found, self._lower, upper, first)

    def _decide(self, asked: list[tuple[float, float]], places: Floats) -> list[Decided]:
        """What can be decided of some ranges."""

        def breaks(low: Fraction, high: Fraction) -> int:
            return int(np.searchsorted(places, float(high), side="right") - np.searchsorted(places, float(low)))

        walk = self.walk
        deciding = Deciding(walk.network, walk.path, walk.trust, self.late, self.patient)
        return deciding.decide(asked, breaks)

    def _by_walk(self, breaks: Breaks, seen: Breaks, groups: list[_Group], left: list[list[tuple[Fraction, Fraction]]]) -> None:
        """The breaks that the walk is sure of, and bounds for what nobody could decide."""
        outside = np.ones(len(breaks.at), dtype=np.bool_)
        for group, several in zip(groups, left, strict=True):
            inside = _touching(breaks, group.low, group.high)
            outside &= ~inside
            if not several:
                continue
            also = _touching(seen, group.low, group.high)
            unsure = Breaks.joined([breaks.only(inside), seen.only(also)])
            for layer, unit in zip(unsure.layer.tolist(), unsure.unit.tolist(), strict=True):
                group.units.setdefault(layer, set()).add(unit)
            near = np.zeros(len(unsure.at), dtype=np.bool_)
            for low, high in several:
                near |= _touching(unsure, float(np.nextafter(float(low), -np.inf)), float(np.nextafter(float(high), np.inf)))
                corners = floor(high) - floor(low)
                self._upper += (corners + 1) * prod(len(units) + 1 for units in group.units.values()) - 1
            self._found += _together(unsure.only(near), self._places, sure=False)
            whole = len(several) == 1 and several[0] == (Fraction(group.low), Fraction(group.high))
            ends = group.low > 0.0 and group.high < self.walk.reached  # at an end it may change on one side only
            self._lower += int(whole and ends and _odd(unsure))
        self._found += _together(breaks.only(outside), self._places, sure=True)
        self._lower, self._upper = self._lower + int(outside.sum()), self._upper + int(outside.sum())

    def _where_lost(  # noqa: PLR0913, PLR0917  what the walk left, and where
        self, breaks: Breaks, seen: Breaks, groups: list[_Group], left: list[tuple[Fraction, Fraction]], more: int
    ) -> None:
        """The same on parts of the path on which nothing is known of the layers from some one on, which have at most so many regions on each piece."""
        upper, self._upper = self._upper, 0
        for low, high in left:
            begin, end = float(np.nextafter(float(low), -np.inf)), float(np.nextafter(float(high), np.inf))
            mine = [group for group in groups if group.high >= begin and group.low <= end]
            within = (breaks.low >= end) | (breaks.high <= begin)
            own, whole = breaks.only(~within), (breaks.low > begin) & (breaks.high < end)
            before = self._lower
            self._by_walk(own, _EMPTY, mine, [[(Fraction(group.low), Fraction(group.high))] for group in mine])
            self._lower = before + int(sum(_alone(breaks.only(whole), mine)))
            self._upper += 1
            self._found += _together(_elsewhere(seen.only(_touching(seen, begin, end)), mine), self._places, sure=False)
        self._upper = upper + self._upper * more


_EMPTY = Breaks.joined([])


def _touching(breaks: Breaks, low: float, high: float) -> Mask:
    """Which breaks touch a range."""
    return (breaks.high >= low) & (breaks.low <= high)


def _alone(breaks: Breaks, groups: list[_Group]) -> Mask:
    """Which breaks lie in no range in doubt."""
    outside = np.ones(len(breaks.at), dtype=np.bool_)
    for group in groups:
        outside &= ~_touching(breaks, group.low, group.high)
    return outside


def _kept(breaks: Breaks, reached: float) -> Breaks:
    """Those on the part of the path that was walked to the end."""
    return breaks.only(breaks.place <= reached)


def _lost(doubts: Doubt) -> int | None:
    """The first layer from which on nothing is known, if there is one."""
    layers = doubts.layer[doubts.unit < 0]
    return int(layers.min()) if len(layers) else None


def _groups(doubts: Doubt, breaks: Breaks, reached: float) -> list[_Group]:
    """Ranges in doubt that are apart from each other, and from all breaks that are not in them."""
    own = (doubts.unit >= 0) & (doubts.low <= reached)
    low, high = np.concatenate([doubts.low[own], breaks.low]), np.concatenate([doubts.high[own], breaks.high])
    if not len(low):
        return []
    order = np.argsort(low, kind="stable")
    reach = np.maximum.accumulate(high[order])
    group = np.concatenate([[0], np.cumsum(low[order][1:] > reach[:-1])])
    of = np.empty(len(low), dtype=np.int64)
    of[order] = group
    begins = np.flatnonzero(np.diff(group, prepend=-1))
    lows, highs = low[order][begins], reach[np.append(begins[1:], len(group)) - 1]
    units = dict[int, dict[int, set[int]]]()
    many = int(own.sum())
    for number, layer, unit in zip(of[:many].tolist(), doubts.layer[own].tolist(), doubts.unit[own].tolist(), strict=True):
        units.setdefault(number, {}).setdefault(layer, set()).add(unit)
    for number in np.flatnonzero(np.bincount(of) > 1).tolist():  # breaks that touch each other
        units.setdefault(number, {})
    found = list[_Group]()
    for number in sorted(units):
        begin, end = float(lows[number]), float(highs[number])
        begin, end = (np.nextafter(begin, -np.inf), np.nextafter(end, np.inf)) if begin == end else (begin, end)
        begin = float(np.nextafter(begin, -np.inf)) if begin == floor(begin) else begin  # a corner has two sides
        end = float(np.nextafter(end, np.inf)) if end == floor(end) else end
        found.append(_Group(begin, end, units[number]))
    return found


def _elsewhere(breaks: Breaks, groups: list[_Group]) -> Breaks:
    """Those that lie in no group."""
    return breaks.only(_alone(breaks, groups))


def _odd(breaks: Breaks) -> bool:
    """Whether a unit changes so often that it ends in another state."""
    pairs = np.stack([breaks.layer, breaks.unit], axis=1)
    return bool(len(pairs)) and bool((np.unique(pairs, axis=0, return_counts=True)[1] % 2).any())


def _together(breaks: Breaks, places: list[Integers], *, sure: bool) -> Iterator[Break]:
    """Breaks one by one; those at the same place are one."""
    order = np.lexsort((breaks.layer, breaks.place))
    where = breaks.place[order]
    starts = np.append(np.flatnonzero(np.diff(where, prepend=-1.0) != 0.0), len(where)).tolist()
    low, high = breaks.low[order], breaks.high[order]
    units = [
        int(places[layer][unit]) for layer, unit in zip(breaks.layer[order].tolist(), breaks.unit[order].tolist(), strict=True)
    ]
    active = breaks.active[order].tolist()
    margins = _margins(where, low, high)
    for begin, end in pairwise(starts):
        yield Break(float(where[begin]), float(margins[begin:end].max()), tuple(units[begin:end]), tuple(active[begin:end]), sure)


def _margins(where: Floats, low: Floats, high: Floats) -> Floats:
    return np.nextafter(np.maximum(high - where, where - low), np.inf)
