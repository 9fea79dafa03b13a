"""What a walk found, put in order; what it could not decide is decided in whole numbers, or bounded from both sides."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import floor, prod
from typing import NamedTuple

import numpy as np

from tessella.lines.walk import Breaks, Doubt, Integers, Walk
from tessella.lines.whole import Line, Stretch, TooLong
from tessella.network import Floats, Mask

_MOST = 50_000_000  # multiplications of whole numbers for one path
_SHARP = 2.0**-52  # of a place: how far from it a break is that is known exactly


class Break(NamedTuple):
    """One break of a path."""

    place: float  # where, from 0 at the first corner to 1 at the second, and so on
    margin: float  # how far from there it may be
    units: tuple[int, ...]  # ReLUs by their numbers in a pattern
    active: tuple[bool, ...]  # whether each is active behind
    sure: bool  # whether it is proved that these units, and no others, change there


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
    _spent: int = 0
    _lines: dict[int, Line] = field(default_factory=dict[int, Line])

    def settle(self) -> Settled:
        """Put everything in order."""
        network, last = self.walk.network, len(self.walk.path) - 1
        starts = np.cumsum([0, *(layer.relus for layer in network.layers)])
        places = [np.cumsum(layer.rectified) - 1 + start for layer, start in zip(network.layers, starts[:-1], strict=True)]
        breaks, seen = (_kept(Breaks.joined(parts), self.walk.reached) for parts in (self.walk.breaks, self.walk.seen))
        doubts = Doubt(*(np.concatenate(parts) for parts in zip(*self.walk.doubts, strict=True))) if self.walk.doubts else None
        first = np.concatenate([*self.walk.begins, np.zeros(0, dtype=np.bool_)])
        first = np.append(first, np.zeros(network.relus - len(first), dtype=np.bool_))
        lost = None if doubts is None else _lost(doubts)
        if lost is not None and self.walk.reached == last and self._worth(len(seen.at) + len(breaks.at)):
            whole = self._exactly(0.0, float(last))
            if whole is not None:
                found, begin = whole
                return Settled(found, 1 + len(found), 1 + len(found), first if begin is None else begin)
        groups = [] if doubts is None else _groups(doubts, breaks, self.walk.reached)
        if len(groups) * 4 * network.parameters > _MOST:  # nothing is begun that cannot be ended
            self._spent = _MOST
        outside = np.ones(len(breaks.at), dtype=np.bool_)
        found, lower, upper = list[Break](), 1, 1
        for group in groups:
            inside = (breaks.high >= group.low) & (breaks.low <= group.high)
            outside &= ~inside
            exact = self._exactly(group.low, group.high)
            if exact is not None:
                found += exact[0]
                lower, upper = lower + len(exact[0]), upper + len(exact[0])
                if group.low <= 0.0 and exact[1] is not None:
                    first = exact[1]
                continue
            also = (seen.high >= group.low) & (seen.low <= group.high)
            unsure = Breaks.joined([breaks.only(inside), seen.only(also)])
            for layer, unit in zip(unsure.layer.tolist(), unsure.unit.tolist(), strict=True):
                group.units.setdefault(layer, set()).add(unit)
            found += _together(unsure, places, sure=False)
            odd = _odd(unsure)
            corners = floor(group.high) - floor(group.low)
            upper += (corners + 1) * prod(len(units) + 1 for units in group.units.values()) - 1
            lower += int(odd and group.low > 0.0 and group.high < self.walk.reached)  # at an end it may change on one side only
        found += _together(breaks.only(outside), places, sure=True)
        lower, upper = lower + int(outside.sum()), upper + int(outside.sum())
        if lost is not None:
            found += _together(_elsewhere(seen, groups), places, sure=False)
            upper *= prod(layer.relus + 1 for layer in network.layers[lost:])
        rest = last - floor(self.walk.reached) if self.walk.reached < last else 0
        upper += rest * prod(layer.relus + 1 for layer in network.layers)
        found.sort(key=lambda one: one.place)
        return Settled(found, lower, upper, first)

    def _worth(self, steps: int) -> bool:
        """Whether the whole path may be walked in whole numbers."""
        return (steps + len(self.walk.path)) * self.walk.network.parameters <= _MOST

    def _step(self, products: int) -> None:
        """Count multiplications."""
        self._spent += products
        if self._spent > _MOST or self.late():
            raise TooLong

    def _exactly(self, low: float, high: float) -> tuple[list[Break], Mask | None] | None:
        """All breaks in a range, and the pattern at its beginning; None if that would take too long."""
        found, before, begin = list[Break](), None, None
        try:
            for segment, stretch in self._stretches(low, high):
                if before is None:
                    begin = stretch.first
                elif (stretch.first != before).any():
                    units = np.flatnonzero(stretch.first != before)
                    now = tuple(stretch.first[units].tolist())
                    found.append(Break(float(segment), 0.0, tuple(units.tolist()), now, sure=True))
                for turn in stretch.turns:
                    place = float(segment + turn.at)
                    found.append(Break(place, _SHARP * max(place, 1e-300), turn.units, turn.active, sure=True))
                before = stretch.last
        except TooLong:
            return None
        return found, begin

    def _stretches(self, low: float, high: float) -> Iterator[tuple[int, Stretch]]:
        """What happens in a range, segment by segment; segments without a length are left out."""
        path, last = self.walk.path, len(self.walk.path) - 1
        network = self.walk.network
        for segment in range(max(floor(low), 0), min(floor(high), last - 1) + 1):
            begin, end = (min(max(Fraction(place) - segment, Fraction(0)), Fraction(1)) for place in (low, high))
            if begin < end and (path[segment] != path[segment + 1]).any():
                if segment not in self._lines:
                    self._lines = {segment: Line(network, path[segment], path[segment + 1])}
                yield segment, self._lines[segment].stretch(begin, end, self._step)


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
    outside = np.ones(len(breaks.at), dtype=np.bool_)
    for group in groups:
        outside &= ~((breaks.high >= group.low) & (breaks.low <= group.high))
    return breaks.only(outside)


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
