"""The walk once more, with many digits: for ranges of a path in which floating-point arithmetic cannot tell where units change, or in which order.

A range is written as places ``middle + h * u`` with u between -1 and 1.  It is cut into pieces.  On each one every unit is an affine function of u, and its two coefficients are digits of
`tessella.lines.limbs`; there are two columns per piece, and a layer is one exact product of matrices for all pieces of all ranges.

**What is proved.**  Coefficients are known up to errors that are carried on by a bound on the largest singular value of each layer.  So each unit's zero on a piece is known up to a *zone*.
If the zones of a piece are apart from each other and from those at its ends, units change once where their zones are, and nowhere else; between them the pattern is known, and with it the next layer's functions.
A piece reaches over the whole zones at its ends, so it does not matter where in them the break is.  Zones that touch become a range that is *left*: finer digits, or whole numbers, must decide there.  Nothing
that is said of other places depends on it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, isfinite, log2
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tessella.lines.limbs import Digits, Weights, bits_of, carried, digits, exponent_of, scaled
from tessella.lines.trust import Trust, lengths_of_rows
from tessella.network import Floats, Layer, Mask, Network

Integers = npt.NDArray[np.int64]

_NUMBERS = 3_000_000  # limbs of a layer in memory at the same time
_NEEDED = 48.0  # bits to which values are wanted, in ranges as long as a segment
_GRID = 2.0**56  # middles of ranges are whole multiples of its inverse
_LIMBS = 4  # of middles, and of slopes
_FEWEST_BITS = 15  # of a limb, so that middles have room
_MOST_BITS = 700  # of numbers: more would not fit the exponents of floating-point numbers
_SMALL = 2.0**-900
_LOOSE = 2.0**-46  # relative errors of places and of values that are computed from digits; much more than there are
_END = -2  # no unit, but the end of a piece
_KEPT = 20_000_000  # weights whose digits are kept


class Range(NamedTuple):
    """A part of one segment of the path."""

    segment: int  # which
    # low, high: from where to where on it, from 0 to 1
    low: Fraction
    high: Fraction


class Found(NamedTuple):
    """What happens in a range."""

    # low, high: between which places of the segment
    low: Fraction
    high: Fraction
    unit: int  # the ReLU that changes there, by its number in a pattern; -1 where the range is left to others
    active: bool  # whether it is active behind


class _Zones(NamedTuple):
    """Where units change: in which range or piece, the ReLU, or -1 where it is not known which, between which places, and what the unit is behind."""

    of: Integers
    unit: Integers
    low: Floats
    high: Floats
    active: Mask


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Parts of ranges, pushed through some of the layers."""

    layer: int  # how many layers they are through
    of: Integers  # of each piece, its range
    ends: Floats  # the zones before and behind it: four places per piece
    values: tuple[Digits, Digits]  # what the layer before passes on: constants and slopes, side by side
    # bounds on the length of the vector of all errors of a piece's constants, and of its slopes, in units of their powers of two
    errors: tuple[float, float]

    def part(self, chosen: slice) -> "_Pieces":
        """Some of the pieces."""
        values = tuple(replace(one, limbs=one.limbs[:, :, chosen]) for one in self.values)
        return replace(self, of=self.of[chosen], ends=self.ends[chosen], values=values)


@dataclass(slots=True)
class Sharp:
    """A walk through ranges of a path, with many digits."""

    network: Network  # the network
    path: Floats  # the corners, one row each
    trust: Trust  # bounds on the singular values of its layers
    # told the multiplications of each layer before they are made; says whether there is time for them
    step: Callable[[int], bool]
    _layers: tuple[Layer, ...] = field(init=False)
    _bits: int = field(init=False)
    _weights: dict[int, Weights] = field(default_factory=dict[int, Weights], init=False)
    _growth: Floats = field(init=False)
    _middles: Floats = field(init=False)
    _half: float = field(init=False)
    _starts: bool = field(init=False)
    _first: float = field(init=False)
    _zones: list[_Zones] = field(default_factory=list[_Zones], init=False)
    _begins: dict[int, Mask] = field(default_factory=dict[int, Mask], init=False)

    def __post_init__(self) -> None:
        """How many limbs the network takes."""
        last = max((number for number, layer in enumerate(self.network.layers, start=1) if layer.relus), default=0)
        self._layers = self.network.layers[:last]
        self._bits = bits_of(max((layer.inputs for layer in self._layers), default=1), 8)

    @property
    def begin(self) -> Mask | None:
        """The pattern at the beginning of the path; None if it was not found."""
        if len(self._begins) < len(self._layers):
            return None
        return np.concatenate([self._begins[number] for number in range(len(self._layers))])

    def walk(self, ranges: list[Range]) -> list[list[Found]] | None:
        """What happens in each range, in order; None if these numbers are no good for this network."""
        middles = np.array([float((one.low + one.high) / 2) for one in ranges])
        self._middles = np.rint(middles * _GRID) / _GRID
        half = max(
            max(one.high - Fraction(middle), Fraction(middle) - one.low)
            for one, middle in zip(ranges, self._middles.tolist(), strict=True)
        )
        self._half = 2.0 ** ceil(log2(max(float(half), 2.0**-60)))
        self._growth = self._grown()
        if self._bits < _FEWEST_BITS or not self._layers or not self._kept(0) * self._bits < _MOST_BITS:
            return None
        self._starts = ranges[0].low == 0 and not np.diff(self.path[: ranges[0].segment + 1], axis=0).any()
        with np.errstate(all="ignore"):
            self._walk(ranges)
        return self._found(ranges)

    def _walk(self, ranges: list[Range]) -> None:
        stack = [self._beginning(ranges)]
        while stack:
            pieces = stack.pop()
            while pieces.layer < len(self._layers) and len(pieces.of):
                layer, kept = self._layers[pieces.layer], self._kept(pieces.layer)
                if len(pieces.of) > max(_NUMBERS // (max(layer.units, layer.inputs) * kept * 2), 1):
                    middle = len(pieces.of) // 2
                    stack.append(pieces.part(slice(middle, None)))
                    pieces = pieces.part(slice(None, middle))
                    continue
                if not self.step(2 * kept * 3 * layer.parameters * len(pieces.of)):
                    for rest in (pieces, *stack):
                        self._leave(rest)
                    return
                pieces = self._through(pieces, layer, kept)

    def _grown(self) -> Floats:
        """For each layer, how many bits errors may grow by behind it, compared with values."""
        values, sizes = self.path[[0, -1]], [1.0]
        for layer in self._layers:
            before = layer.preactivation(values)
            sizes.append(max(float(np.abs(before).max()), 1e-290))
            values = layer.activate(before)
        sizes[0] = max(float(np.abs(self.path).max()), 1e-290)
        growth = np.zeros(len(self._layers) + 1)
        for number in range(len(self._layers) - 1, -1, -1):
            layer = self._layers[number]
            slope = float(np.abs(layer.slope).max(initial=1.0))
            largest = self.trust.largest_singular(number) * max(slope, 1.0)
            step = log2(max(largest, 1e-290)) + log2(sizes[number]) - log2(sizes[number + 1]) if isfinite(largest) else np.inf
            growth[number] = max(growth[number + 1] + step, growth[number + 1])
        return growth

    def _kept(self, number: int) -> int:
        """How many limbs the values before a layer have."""
        inputs = self._layers[number].inputs if number < len(self._layers) else 1
        needed = _NEEDED - log2(self._half) + self._growth[number] + log2(inputs) + 8.0
        return max(ceil(needed / self._bits), 3) if isfinite(needed) else _MOST_BITS

    def _beginning(self, ranges: list[Range]) -> _Pieces:
        """Each range as a piece."""
        bits, kept = self._bits, self._kept(0)
        start, stop = (self.path[[one.segment + side for one in ranges]].T for side in (0, 1))
        exponent = exponent_of(2.0 * max(float(np.abs(start).max()), float(np.abs(stop).max())))
        first, last = (digits(side, exponent, kept, bits).limbs for side in (start, stop))
        share = digits(np.broadcast_to(self._middles, start.shape), 0, _LIMBS, bits)
        moved = scaled(Digits(last - first, exponent, bits), share)
        sums = np.concatenate([np.zeros((len(start), 1, len(ranges))), moved], axis=1)
        sums[:, :kept] += first
        constants = carried(sums, exponent + bits, bits, kept)
        slopes = carried(last - first, exponent + bits, bits, kept)
        unit, size = 2.0 ** -(bits * kept), np.sqrt(len(start))
        bounds = [size * (2.0 * unit + _moved(2.0 * unit, exponent, one.exponent)) for one in (constants, slopes)]
        half = Fraction(self._half)
        ends = np.array(
            [
                [float((place - Fraction(middle)) / half) for place in (one.low, one.low, one.high, one.high)]
                for one, middle in zip(ranges, self._middles.tolist(), strict=True)
            ]
        )
        ends += np.abs(ends) * np.array([-_LOOSE, _LOOSE, -_LOOSE, _LOOSE])
        slopes, self._first = replace(slopes, exponent=slopes.exponent + int(log2(self._half))), float(ends[0, 0])
        return _Pieces(0, np.arange(len(ranges)), ends, (constants, slopes), (bounds[0], bounds[1]))

    def _through(self, pieces: _Pieces, layer: Layer, kept: int) -> _Pieces:
        """Push pieces through a layer."""
        number = pieces.layer
        weights, size, largest = self._digits_of(number), abs(layer.weight), self.trust.largest_singular(number)
        lengths, touched = lengths_of_rows(size), np.asarray(size.sum(axis=1)).reshape(-1) > 0.0
        used = np.arange(layer.inputs)
        if isinstance(layer.weight, np.ndarray):
            used = np.flatnonzero(np.logical_or.reduce([one.limbs.any(axis=(1, 2)) for one in pieces.values]))
        behind, bounds, rows = list[Digits](), list[float](), list[Floats]()
        for one, error, bias in zip(pieces.values, pieces.errors, (layer.bias, None), strict=True):
            sums, lost = weights.times(one, used, kept)
            exponent = weights.exponent + one.exponent
            found = carried(sums, exponent, self._bits, self._kept(number + 1), bias)
            own = _moved(lost, exponent, found.exponent) + 2.0 * found.unit
            before = _moved(error, one.exponent, found.exponent)
            own_rows = own * (touched if bias is None else touched | (bias != 0.0))
            rows.append((lengths * before + own_rows) * (1.0 + 1e-9))
            bounds.append((largest * before + _norm(own_rows)) * (1.0 + 1e-9))
            behind.append(found)
        return self._cut(replace(pieces, values=(behind[0], behind[1]), errors=(bounds[0], bounds[1])), layer, rows)

    def _digits_of(self, number: int) -> Weights:
        if number in self._weights:
            return self._weights[number]
        weights = Weights.of(self._layers[number].weight, self._bits)
        if self.network.parameters <= _KEPT:
            self._weights[number] = weights
        return weights

    def _cut(self, pieces: _Pieces, layer: Layer, rows: list[Floats]) -> _Pieces:
        """Cut pieces where the units of a layer change, and apply their ReLUs."""
        constants, slopes = (one.rounded() for one in pieces.values)
        scale = _moved(1.0, pieces.values[1].exponent, pieces.values[0].exponent)
        small = np.inf if scale < _SMALL and slopes.any() else 0.0  # rounding would make them 0
        slopes *= scale
        offset = sum(one.relus for one in self._layers[: pieces.layer])
        relus = np.cumsum(layer.rectified) - 1 + offset
        source, ends = self._apart(
            pieces, _changes(layer, pieces, (constants, slopes), (rows[0], rows[1] * scale + small), relus)
        )
        active = constants[:, source] + slopes[:, source] * ((ends[:, 1] + ends[:, 2]) / 2.0) > 0.0
        self._begin(pieces, source, ends, active[layer.rectified])
        found, bounds = list[Digits](), list[float]()
        for one, error in zip(pieces.values, pieces.errors, strict=True):
            passed, bound = _passed(layer, replace(one, limbs=one.limbs[:, :, source]), error, active)
            found.append(passed)
            bounds.append(bound)
        return _Pieces(pieces.layer + 1, pieces.of[source], ends, (found[0], found[1]), (bounds[0], bounds[1]))

    def _apart(self, pieces: _Pieces, changes: _Zones) -> tuple[Integers, Floats]:
        """The pieces between zones: of which piece each is, and its ends.  Breaks, and what must be left, are noted."""
        many = len(pieces.of)
        lasts = np.flatnonzero(np.append(pieces.of[1:] != pieces.of[:-1], True))  # noqa: FBT003  of an array
        of = np.concatenate([pieces.of, pieces.of[lasts], pieces.of[changes.of]])
        low = np.concatenate([pieces.ends[:, 0], pieces.ends[lasts, 2], changes.low])
        high = np.concatenate([pieces.ends[:, 1], pieces.ends[lasts, 3], changes.high])
        order, starts, lows, highs = clusters(of, low, high)
        sizes = np.diff(np.append(starts, len(order)))
        first = order[starts]  # of each cluster
        places = many + len(lasts)
        units = np.concatenate([np.full(places, _END), changes.unit])[first]
        states = np.concatenate([np.zeros(places, dtype=np.bool_), changes.active])[first]
        noted = (sizes > 1) | (units != _END)
        units[sizes > 1] = -1
        self._zones.append(_Zones(of[first[noted]], units[noted], lows[noted], highs[noted], states[noted]))
        piece = np.maximum.accumulate(np.where(order < many, order, -1))
        source = piece[np.append(starts[1:], len(order)) - 1]
        gaps = np.flatnonzero(of[first[1:]] == of[first[:-1]])
        return source[gaps], np.stack([lows[gaps], highs[gaps], lows[gaps + 1], highs[gaps + 1]], axis=1)

    def _begin(self, pieces: _Pieces, source: Integers, ends: Floats, active: Mask) -> None:
        """Keep the states at the beginning of the path."""
        if len(source) and source[0] == 0 and pieces.of[0] == 0 and self._starts and ends[0, 0] <= self._first:
            self._begins[pieces.layer] = active[:, 0]

    def _leave(self, pieces: _Pieces) -> None:
        """Leave all of some pieces to others."""
        none = np.full(len(pieces.of), -1)
        self._zones.append(_Zones(pieces.of, none, pieces.ends[:, 0], pieces.ends[:, 3], none > 0))

    def _found(self, ranges: list[Range]) -> list[list[Found]]:
        """All that was noted, by ranges and in order; zones that touch are left."""
        zones = _Zones(*(np.concatenate(columns) for columns in zip(*self._zones, strict=True)))
        found = [list[Found]() for _ in ranges]
        if not len(zones.of):
            return found
        order, starts, lows, highs = clusters(zones.of, zones.low, zones.high)
        sizes, first, half = np.diff(np.append(starts, len(order))), order[starts], Fraction(self._half)
        for number, low, high, size in zip(first.tolist(), lows.tolist(), highs.tolist(), sizes.tolist(), strict=True):
            of = int(zones.of[number])
            one, middle = ranges[of], Fraction(float(self._middles[of]))
            ends = max(middle + half * Fraction(low), one.low), min(middle + half * Fraction(high), one.high)
            unit = int(zones.unit[number]) if size == 1 else -1
            found[of].append(Found(*ends, unit, bool(zones.active[number])))
        return found


def clusters(of: Integers, low: Floats, high: Floats) -> tuple[Integers, Integers, Floats, Floats]:
    """Intervals in order, where each cluster of intervals that touch begins in that order, and its ends; intervals of different kinds never touch.

    Examples
    --------
    >>> kinds, low, high = np.array([0, 0, 0, 1]), np.array([3.0, 1.0, 2.0, 2.5]), np.array([4.0, 2.0, 2.5, 3.0])
    >>> [each.tolist() for each in clusters(kinds, low, high)]
    [[1, 2, 0, 3], [0, 2, 3], [1.0, 3.0, 2.5], [2.5, 4.0, 3.0]]
    """
    many = len(of)
    ends = np.lexsort((np.repeat([0, 1], many), np.concatenate([low, high]), np.concatenate([of, of])))
    rank = np.empty(2 * many, dtype=np.int64)
    rank[ends] = np.arange(2 * many)
    order = np.argsort(rank[:many])
    reach = np.maximum.accumulate(rank[many:][order])
    starts = np.flatnonzero(np.append(True, rank[:many][order][1:] > reach[:-1])) if many else np.zeros(0, dtype=np.int64)  # noqa: FBT003
    lasts = reach[np.append(starts[1:], many) - 1] if many else starts
    return order, starts, low[order[starts]], high[ends[lasts] - many]


def _changes(
    layer: Layer, pieces: _Pieces, values: tuple[Floats, Floats], errors: tuple[Floats, Floats], relus: Integers
) -> _Zones:
    """The zones in which units of a layer change, as far as they touch their pieces."""
    (constants, slopes), (constant_errors, slope_errors) = values, errors
    low, high = pieces.ends[:, 0], pieces.ends[:, 3]
    far = np.maximum(np.abs(low), np.abs(high))
    doubt = constant_errors[:, None] + slope_errors[:, None] * far + _LOOSE * (np.abs(constants) + np.abs(slopes) * far)
    first, last = constants + slopes * low, constants + slopes * high
    sure = (np.minimum(first, last) > doubt) | (np.maximum(first, last) <= -doubt) | ~layer.rectified[:, None]
    unit, piece = np.nonzero(~sure)
    constant, slope, error = constants[unit, piece], slopes[unit, piece], slope_errors[unit]
    known = np.abs(slope) * (1.0 - _LOOSE) > 2.0 * error
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        zero = -constant / slope
        reach = (constant_errors[unit] + np.abs(zero) * error) / (np.abs(slope) - error) * 1.001 + _LOOSE * np.abs(zero)
    begin, end = np.where(known, zero - reach, low[piece]), np.where(known, zero + reach, high[piece])
    here = ~((end < low[piece]) | (begin > high[piece]))
    piece, unit, known = piece[here], unit[here], known[here]
    return _Zones(piece, np.where(known, relus[unit], -1), begin[here], end[here], slope[here] > 0.0)


def _passed(layer: Layer, inner: Digits, error: float, active: Mask) -> tuple[Digits, float]:
    """What units pass on, and how wrong it may be."""
    if layer.is_plain:
        return replace(inner, limbs=inner.limbs * (active | ~layer.rectified[:, None])[:, None]), error
    factors = np.where(active & layer.rectified[:, None], 1.0, layer.slope[:, None])
    largest = float(np.abs(factors).max(initial=1.0))
    share = digits(factors, exponent_of(largest), _LIMBS, inner.bits)
    left = 0.0 if (np.ldexp(share.rounded(), share.exponent) == factors).all() else share.unit
    exponent = inner.exponent + share.exponent
    found = carried(scaled(inner, share), exponent, inner.bits, inner.kept)
    own = np.sqrt(layer.units) * (2.0 * found.unit + _moved(left, exponent, found.exponent))
    return found, (_moved(error * largest, inner.exponent, found.exponent) + own) * (1.0 + 1e-9)


def _moved(value: float, exponent: int, target: int) -> float:
    """A number in units of another power of two."""
    if value == 0.0:
        return 0.0
    return float(np.ldexp(value, min(exponent - target, 4000)))  # too small ones round to 0, which is below all that is kept


def _norm(values: npt.NDArray[np.floating]) -> float:
    return float(np.sqrt((values * values).sum()))
