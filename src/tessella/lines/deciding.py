"""Ranges of a path that the walk left open: decided with many digits, and what these leave open, in whole numbers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from typing import NamedTuple

import numpy as np

from tessella.lines.sharp import Range, Sharp
from tessella.lines.trust import Trust
from tessella.lines.whole import Line, Stretch, TooLong
from tessella.network import Floats, Mask, Network

_MOST = 50_000_000  # multiplications of whole numbers for one path
_MOST_SHARP = 100_000_000_000  # the same of limbs
_ROUNDS = 3
_FINER = Fraction(1, 1 << 12)  # what is left is tried again with a finer grid if it is shorter by so much
_STEP = Fraction(1, 1 << 70)  # beyond a corner, which has two sides
_SHARP = 2.0**-52  # of a place: how far from it a break is that is known exactly


class Break(NamedTuple):
    """One break of a path."""

    place: float  # where, from 0 at the first corner to 1 at the second, and so on
    margin: float  # how far from there it may be
    units: tuple[int, ...]  # reLUs by their numbers in a pattern
    active: tuple[bool, ...]  # whether each is active behind
    sure: bool  # whether it is proved that these units, and no others, change there


class Part(NamedTuple):
    """A part of the path, from one place to another, and what is known of it: the unit that changes there, once; or nothing yet."""

    low: Fraction
    high: Fraction
    unit: int = -1
    active: bool = False


@dataclass(slots=True)
class Decided:
    """What is known of a range."""

    breaks: list[Break]  # in order; all of them, outside of what is left
    left: list[tuple[Fraction, Fraction]]  # from where to where nothing is known
    begin: Mask | None = None  # the pattern at its beginning, if that was asked for and found


@dataclass(slots=True)
class Deciding:
    """Decides ranges of a path."""

    network: Network  # the network
    path: Floats  # the corners, one row each
    trust: Trust  # what is known of its layers
    late: Callable[[], bool]  # whether to begin nothing new
    patient: bool  # whether to go on until it is late, however long that takes
    _spent: int = 0
    _limbs: int = 0
    _lines: dict[int, Line] = field(default_factory=dict[int, Line])

    def decide(self, ranges: list[tuple[float, float]], breaks: Callable[[Fraction, Fraction], int]) -> list[Decided]:
        """What can be known of ranges that are apart from each other, in order.

        Parameters
        ----------
        ranges
            From where to where on the path.
        breaks
            About how many there are between two places.
        """
        if not ranges:
            return []
        parts, begin = self._sharply([(Fraction(low), Fraction(high)) for low, high in ranges], breaks)
        found, left = list[Decided](), sum(part.unit < 0 for one in parts for part in one)
        origin = int(np.flatnonzero((self.path[1:] != self.path[:-1]).any(axis=1))[0])  # the first segment that has a length
        for one in parts:
            known = Decided([], [])
            for part in one:
                if part.unit >= 0:
                    known.breaks.append(_break(part))
                    continue
                worth = self._worth(left, breaks(part.low, part.high))
                exact = self._exactly(part.low, part.high) if worth else None
                if exact is None:
                    known.left.append((part.low, part.high))
                    continue
                known.breaks += exact[0]
                if part.low <= origin and exact[1] is not None:
                    begin = exact[1]
            found.append(known)
        found[0].begin = begin if ranges[0][0] <= origin else None
        return found

    def _worth(self, many: int, steps: int) -> bool:
        """Whether that many ranges, of about as many steps each, may be walked in whole numbers."""
        return self._spent < _MOST and (many * 4 + steps + 4) * self.network.parameters <= _MOST

    def _sharply(
        self, ranges: list[tuple[Fraction, Fraction]], breaks: Callable[[Fraction, Fraction], int]
    ) -> tuple[list[list[Part]], Mask | None]:
        """The breaks in ranges, and what is left of each; and the pattern at the beginning of the path, if that was met."""
        parts, begin = [[Part(low, high)] for low, high in ranges], None
        open_parts, shortest = [(number, part[0]) for number, part in enumerate(parts)], Fraction(2)
        for turn in range(_ROUNDS):
            chosen = [(number, part) for number, part in open_parts if turn == 0 or part.high - part.low < _FINER * shortest]
            places = [(of, one) for of, (_, part) in enumerate(chosen) for one in self._segments(part)]
            pieces = len(places) + sum(breaks(part.low, part.high) for _, part in chosen)
            if not places or (not self.patient and pieces * 6 * self.network.parameters > _MOST_SHARP):
                break
            sharp = Sharp(self.network, self.path, self.trust, self._step_of_limbs)
            found = sharp.walk([one for _, one in places])
            if found is None:
                break
            begin = sharp.begin if begin is None else begin
            shortest = max(part.high - part.low for _, part in chosen)
            fine = [list[Part]() for _ in chosen]
            for (of, one), several in zip(places, found, strict=True):
                fine[of] += [Part(one.segment + each.low, one.segment + each.high, each.unit, each.active) for each in several]
            for (number, part), several in zip(chosen, fine, strict=True):
                place = parts[number].index(part)
                parts[number][place : place + 1] = self._joined(several, part)
            open_parts = [(number, part) for number, one in enumerate(parts) for part in one if part.unit < 0]
        return parts, begin

    def _joined(self, parts: list[Part], whole: Part) -> list[Part]:
        """Parts in order; those that touch are one, which is left; a corner has two sides."""
        wide = [
            part
            if part.unit >= 0
            else Part(
                max(part.low - _STEP, whole.low) if part.low == floor(part.low) else part.low,
                min(part.high + _STEP, whole.high) if part.high == floor(part.high) else part.high,
            )
            for part in parts
        ]
        found = list[Part]()
        for part in sorted(wide, key=lambda one: one.low):
            if found and part.low <= found[-1].high:
                found[-1] = Part(found[-1].low, max(found[-1].high, part.high))
            else:
                found.append(part)
        return found

    def _segments(self, part: Part) -> Iterator[Range]:
        """The ranges of segments that a part of the path lies on; segments without a length are left out."""
        last = len(self.path) - 1
        for segment in range(max(floor(part.low), 0), min(floor(part.high), last - 1) + 1):
            low, high = (min(max(place - segment, Fraction(0)), Fraction(1)) for place in (part.low, part.high))
            if low < high and (self.path[segment] != self.path[segment + 1]).any():
                yield Range(segment, low, high)

    def _step_of_limbs(self, products: int) -> bool:
        """Count multiplications; whether there is time for them."""
        self._limbs += products
        return not self.late() and (self.patient or self._limbs <= 2 * _MOST_SHARP)

    def _step(self, products: int) -> None:
        """Count multiplications of whole numbers."""
        self._spent += products
        if self._spent > _MOST or self.late():
            raise TooLong

    def _exactly(self, low: Fraction, high: Fraction) -> tuple[list[Break], Mask | None] | None:
        """All breaks in a range, and the pattern at its beginning; None if that would take too long."""
        found, before, begin = list[Break](), None, None
        try:
            for segment, stretch in self._stretches(Part(low, high)):
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

    def _stretches(self, part: Part) -> Iterator[tuple[int, Stretch]]:
        """What happens in a range, segment by segment."""
        for one in self._segments(part):
            if one.segment not in self._lines:
                self._lines = {one.segment: Line(self.network, *self.path[one.segment : one.segment + 2])}
            yield one.segment, self._lines[one.segment].stretch(one.low, one.high, self._step)


def _break(part: Part) -> Break:
    """A part of the path in which one unit changes, as a break."""
    place = float((part.low + part.high) / 2)
    margin = float(max(part.high - Fraction(place), Fraction(place) - part.low))
    return Break(place, float(np.nextafter(margin, np.inf)), (part.unit,), (part.active,), sure=True)
