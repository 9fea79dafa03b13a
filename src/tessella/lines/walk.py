"""The walk: intervals of a path pushed through the layers, with the values of all units at their ends.

Between two *nodes* all units of the layers so far are affine.  The next layer's preactivations at all nodes are one product of matrices.  Where one has another sign at the other end of an
interval, a new node goes between; values there are those of the line between the two ends.  So the work is that of a forward pass per node, and only through the layers behind the
one that made it.

**What is proved.**  The values at the nodes, and the lines between them, are never further from the true ones than `tessella.lines.trust` says, whatever became of the pattern.
Where a unit's computed value is larger than that, its sign is known.  The places where it is not make an interval around each break, and at the layers before, each node that stands for a break has one, too.
If all these intervals are apart, every unit keeps its sign on all others' intervals; between them everything is affine, so a unit changes once where its signs differ, and not at all where
they agree.  By induction over the layers, there is then exactly one break in each interval.  Intervals that touch become one *doubtful* range; outside of these the argument stands.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tessella.lines.trust import Errors, Trust
from tessella.network import Floats, Layer, Mask, Network
from tessella.numerics import ROUNDOFF

Integers = npt.NDArray[np.int64]

_NUMBERS = 4_000_000  # values of a layer in memory at the same time
_FEWEST = 64  # nodes that are worked on together nevertheless
_MANY = 512  # nodes for which it pays to leave units out
_GRID = 2.0**43  # doubtful breaks of one interval share a node if they agree to so much
_WIDER = 1.0 + 1e-9
_SLACK = 16.0 * ROUNDOFF  # of a segment
_ALIVE = 0.9  # of the units pass something on, or more: then it does not pay to leave out the others
_NOMINAL = 1e-13  # relative errors that are assumed where nothing is proved any more


class Breaks(NamedTuple):
    """Places where units change their state."""

    # segment, at: the segment of the path, and where on it, from 0 to 1
    segment: Integers
    at: Floats
    # low, high: between which places of the whole path it is
    low: Floats
    high: Floats
    # layer, unit: which unit changes
    layer: Integers
    unit: Integers
    active: Mask  # whether it is active behind

    @classmethod
    def joined(cls, parts: "list[Breaks]") -> "Breaks":
        """All of some, in one."""
        if not parts:
            whole, real = np.zeros(0, dtype=np.int64), np.zeros(0)
            return cls(whole, real, real, real, whole, whole, np.zeros(0, dtype=np.bool_))
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def only(self, chosen: Mask) -> "Breaks":
        """Some of them."""
        columns: Any = [column[chosen] for column in self]
        return Breaks(*columns)

    @property
    def place(self) -> Floats:
        """Where on the whole path."""
        return self.segment + self.at


class Doubt(NamedTuple):
    """Ranges of the path in which something is not decided, and units that may change there."""

    # low, high: between which places
    low: Floats
    high: Floats
    # layer, unit: which unit; -1 and the layer where all units from that layer on are in doubt
    layer: Integers
    unit: Integers


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of the path, pushed through some of the layers."""

    layer: int  # how many layers it is through
    # segment, at: of each node: the segment that goes on from there, and where it is on it
    segment: Integers
    at: Floats
    # low, high: between which places of the whole path the break is that the node stands for
    low: Floats
    high: Floats
    values: Floats  # what the layer before passes on: a row per unit, a column per node
    errors: Errors  # how wrong values may be
    proved: bool = True  # whether errors are proved

    @property
    def nodes(self) -> int:
        """How many there are."""
        return len(self.at)

    @property
    def rights(self) -> Floats:
        """Where each interval ends on its segment."""
        return np.where(self.segment[1:] == self.segment[:-1], self.at[1:], 1.0)

    def part(self, begin: int, end: int) -> "Chunk":
        """From one node to before another."""
        if (begin, end) == (0, self.nodes):
            return self
        some = slice(begin, end)
        ends = {"segment": self.segment[some], "at": self.at[some], "low": self.low[some], "high": self.high[some]}
        return replace(self, **ends, values=np.ascontiguousarray(self.values[:, some]))


@dataclass(slots=True)
class Walk:
    """A walk along a path."""

    network: Network
    path: Floats  # the corners, one row each
    breaks: list[Breaks] = field(default_factory=list[Breaks])
    seen: list[Breaks] = field(default_factory=list[Breaks])
    doubts: list[Doubt] = field(default_factory=list[Doubt])
    begins: list[Mask] = field(default_factory=list[Mask])
    reached: float = 0.0
    trust: Trust = field(init=False)

    def __post_init__(self) -> None:
        """What is known of the layers that have ReLUs, and those before."""
        self.trust = Trust(self.network.layers[: _depth(self.network)])

    def go(self, late: Callable[[], bool], tell: Callable[[float], None]) -> bool:
        """Walk to the end; False if it was late before."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self._go(late, tell)

    def _go(self, late: Callable[[], bool], tell: Callable[[float], None]) -> bool:
        layers = self.network.layers[: _depth(self.network)]
        most = max(_NUMBERS // max((layer.units for layer in layers), default=1), _FEWEST)
        stack = list[tuple[Chunk | _Behind, int]]([(_beginning(self.path), 0)])
        while stack:
            whole, begin = stack.pop()
            end = min(begin + most, whole.nodes)
            if end < whole.nodes:
                stack.append((whole, end - 1))  # its last node is the first of what follows
            chunk = whole.part(begin, end)
            if chunk.layer == len(layers):
                self.reached = float(chunk.segment[-1] + chunk.at[-1])
                tell(self.reached)
            elif late():
                return False
            else:
                stack.append((self._through(layers[chunk.layer], chunk), 0))
        return True

    def _through(self, layer: Layer, chunk: Chunk) -> "Chunk | _Behind":
        """Push a part of the path through one layer."""
        trust, values = self.trust, _times(layer.weight, chunk.values)
        values += layer.bias[:, None]
        errors = trust.after(chunk.layer, chunk.errors, np.abs(chunk.values).max(axis=1)) if chunk.proved else chunk.errors
        if chunk.segment[0] == 0 and chunk.at[0] == 0.0:
            self.begins.append(values[layer.rectified, 0] > 0.0)
        low, high = values.min(axis=1), values.max(axis=1)
        largest = np.maximum(np.abs(low), np.abs(high))
        if chunk.proved and layer.relus and trust.lost(errors, largest):
            ends = (chunk.segment[[0]] + chunk.at[[0]], chunk.segment[[-1]] + chunk.at[[-1]])
            self.doubts.append(Doubt(*ends, np.array([chunk.layer]), np.array([-1])))
            chunk = replace(chunk, proved=False)
        if not chunk.proved:
            nominal = _NOMINAL * np.nan_to_num(largest)
            errors = Errors(nominal, float(np.sqrt((nominal**2).sum())))
        crossings = _crossings(layer, chunk, values, errors.each)
        doubtful = _doubtful(layer, chunk, values, errors.each, high)
        chunk, fresh, doubts, alone = _grouped(chunk, crossings, doubtful)
        self._note(chunk, fresh, doubts, alone)
        if chunk.layer + 1 == _depth(self.network):  # nobody asks for the values of all units at all breaks: they are many
            return replace(chunk, layer=chunk.layer + 1)
        return _inserted(layer, chunk, values, errors, fresh, trust)

    def _note(self, chunk: Chunk, fresh: "_Zones", doubts: Doubt, alone: Mask) -> None:
        """Keep what was found."""
        found = Breaks(
            chunk.segment[fresh.interval],
            fresh.at,
            fresh.low,
            fresh.high,
            np.full(len(fresh.at), chunk.layer),
            fresh.unit,
            fresh.active,
        )
        sure = alone if chunk.proved else np.zeros(len(alone), dtype=np.bool_)
        self.breaks.append(found.only(sure))
        self.seen.append(found.only(~sure))
        if chunk.proved:
            unsure = Doubt(found.low[~sure], found.high[~sure], found.layer[~sure], found.unit[~sure])
            self.doubts += [part for part in (unsure, doubts) if len(part.low)]


class _Zones(NamedTuple):
    """Where units change: in which intervals of nodes, which units, at which places there, between which places of the path, and whether they are active behind that."""

    interval: Integers
    unit: Integers
    at: Floats
    low: Floats
    high: Floats
    active: Mask


def _depth(network: Network) -> int:
    """How many layers there are up to the last ReLU."""
    return max((number for number, layer in enumerate(network.layers, start=1) if layer.relus), default=0)


def _beginning(path: Floats) -> Chunk:
    """The path itself, whose corners are nodes."""
    last = len(path) - 1
    segment = np.append(np.arange(last), last - 1)
    places = np.arange(len(path), dtype=np.float64)
    errors = Errors(np.zeros(path.shape[1]), 0.0)
    at = np.append(np.zeros(last), 1.0)
    return Chunk(0, segment, at, places, places, np.ascontiguousarray(path.T), errors)


def _times(weight: Any, values: Floats) -> Floats:
    """A product of matrices; units that pass on 0 all along, about half of them, are left out."""
    if isinstance(weight, np.ndarray):
        alive = values.any(axis=1)
        if np.mean(alive) < _ALIVE and values.shape[1] >= _MANY:
            return weight[:, alive] @ values[alive]
    return np.ascontiguousarray(weight @ values)


def _crossings(layer: Layer, chunk: Chunk, values: Floats, errors: Floats) -> _Zones:
    """Where units change, with the zone in which each may."""
    positive = values > 0.0
    changes = positive[:, 1:] != positive[:, :-1]
    changes &= layer.rectified[:, None]
    unit, interval = np.nonzero(changes)
    first, second = values[unit, interval], values[unit, interval + 1]
    left, right = chunk.at[interval], chunk.rights[interval]
    length, step = right - left, np.abs(second - first)
    at = np.clip(left + length * (np.abs(first) / step), left, right)
    reach = length * np.minimum(errors[unit] / step, 1.0) * _WIDER + _SLACK
    segment = chunk.segment[interval]
    low = np.nextafter(segment + np.maximum(at - reach, left), -np.inf)
    high = np.nextafter(segment + np.minimum(at + reach, right), np.inf)
    return _Zones(interval, unit, at, low, high, positive[unit, interval + 1])


def _doubtful(layer: Layer, chunk: Chunk, values: Floats, errors: Floats, highest: Floats) -> tuple[Floats, Floats, Integers]:
    """Zones around nodes where a unit's sign is not known, and the unit; ReLUs that are nowhere active, as is known, have none."""
    asked = np.flatnonzero(layer.rectified & (highest + errors > 0.0) & ~(np.abs(values).min(axis=1) > errors))
    if not len(asked):
        return np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64)
    row, node = np.nonzero(~(np.abs(values[asked]) > errors[asked, None]))
    unit = asked[row]
    here, error, place = values[unit, node], errors[unit], chunk.segment[node] + chunk.at[node]
    ends = list[Floats]()
    lengths = chunk.rights - chunk.at[:-1]
    for side in (-1, 1):
        other = np.clip(node + side, 0, chunk.nodes - 1)
        there = values[unit, other]
        share = np.where(np.abs(there) > error, (np.copysign(error, there) - here) / (there - here), 1.0)
        share = np.clip(np.nan_to_num(share, nan=1.0) * _WIDER, 0.0, 1.0)
        length = np.where(other == node, 0.0, lengths[np.clip(np.minimum(node, other), 0, chunk.nodes - 2)])
        ends.append(np.nextafter(place + side * (share * length + _SLACK), side * np.inf))
    last = chunk.segment[-1] + chunk.at[-1]
    first = chunk.segment[0] + chunk.at[0]
    return np.maximum(ends[0], first), np.minimum(ends[1], last), unit


def _grouped(chunk: Chunk, crossings: _Zones, doubtful: tuple[Floats, Floats, Integers]) -> tuple[Chunk, _Zones, Doubt, Mask]:
    """Zones that touch each other become one: the crossings in order, what else may change, and which crossings have a zone of their own."""
    nodes, many = chunk.nodes, len(crossings.at)
    low = np.concatenate([chunk.low, crossings.low, doubtful[0]])
    high = np.concatenate([chunk.high, crossings.high, doubtful[1]])
    order = np.argsort(low, kind="stable")
    reach = np.maximum.accumulate(high[order])
    group = np.concatenate([[0], np.cumsum(low[order][1:] > reach[:-1])])
    begins = np.flatnonzero(np.diff(group, prepend=-1))
    lows, highs, sizes = low[order][begins], reach[np.append(begins[1:], len(group)) - 1], np.bincount(group)
    of = np.empty(len(low), dtype=np.int64)
    of[order] = group
    merged = sizes[of] > 1
    low, high = np.where(merged, lows[of], low), np.where(merged, highs[of], high)
    chunk = replace(chunk, low=low[:nodes], high=high[:nodes])
    part = slice(nodes, nodes + many)
    at, alone = crossings.at.copy(), ~merged[part]
    left, right = chunk.at[crossings.interval], chunk.rights[crossings.interval]
    at[~alone] = np.clip(np.rint(at * _GRID) / _GRID, left, right)[~alone]
    by_place = np.lexsort((at, crossings.interval))
    fresh = _Zones(
        crossings.interval[by_place],
        crossings.unit[by_place],
        at[by_place],
        low[part][by_place],
        high[part][by_place],
        crossings.active[by_place],
    )
    rest, unit = slice(nodes + many, None), doubtful[2]
    return chunk, fresh, Doubt(low[rest], high[rest], np.full(len(unit), chunk.layer), unit), alone[by_place]


@dataclass(frozen=True, slots=True)
class _Behind:
    """The chunk behind a layer, whose values at new nodes are not made yet: they may be many."""

    layer: Layer  # the layer
    before: Chunk  # the chunk before it
    values: Floats  # preactivations at the nodes that were there
    errors: Errors  # how wrong what is passed on may be
    # interval, share: of each node, new ones too: the node before or at it that was there, and how far it lies on the way to the next one
    interval: Integers
    share: Floats
    ends: Floats  # places on its segment, and the ends of its zone: three rows
    zeros: tuple[Integers, Integers]  # nodes, in order, and units that are 0 there

    @property
    def nodes(self) -> int:
        """How many there are."""
        return len(self.interval)

    def part(self, begin: int, end: int) -> Chunk:
        """The chunk from one node to before another."""
        layer, before, interval = self.layer, self.before, self.interval[begin:end]
        values = self.values[:, interval]
        new = np.flatnonzero(self.share[begin:end])
        values[:, new] += self.share[begin:end][new] * (self.values[:, interval[new] + 1] - values[:, new])
        nodes, units = self.zeros
        some = slice(*np.searchsorted(nodes, [begin, end]).tolist())
        values[units[some], nodes[some] - begin] = 0.0
        values = (
            np.maximum(values, 0.0, out=values) if layer.relus == layer.units and layer.is_plain else layer.activate(values.T).T
        )
        at, low, high = self.ends[:, begin:end]
        return Chunk(
            before.layer + 1, before.segment[interval], at, low, high, np.ascontiguousarray(values), self.errors, before.proved
        )


def _inserted(  # noqa: PLR0913, PLR0917  a layer's state
    layer: Layer, chunk: Chunk, values: Floats, errors: Errors, fresh: _Zones, trust: Trust
) -> _Behind:
    """The chunk behind the layer, with nodes where units change; what lies on a node that is there already has none of its own."""
    left, right = chunk.at[fresh.interval], chunk.rights[fresh.interval]
    on_left, on_right = fresh.at <= left, fresh.at >= right
    inside = ~(on_left | on_right)
    new = inside.copy()
    new[1:] &= (fresh.interval[1:] != fresh.interval[:-1]) | (fresh.at[1:] != fresh.at[:-1])
    interval, at = fresh.interval[new], fresh.at[new]
    share = (at - left[new]) / (right[new] - left[new])
    order = np.argsort(np.append(np.arange(chunk.nodes), interval), kind="stable")  # old nodes, each with the new ones behind it
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    number = np.where(inside, chunk.nodes + np.cumsum(new) - 1, fresh.interval + (on_right & ~on_left))
    # what is set to 0 is as wrong as it was large
    low, high = values.min(axis=1), values.max(axis=1)
    extra = 8.0 * ROUNDOFF * np.maximum(np.abs(low), np.abs(high)) if len(at) else np.zeros(layer.units)
    first, second = values[fresh.unit, fresh.interval], values[fresh.unit, fresh.interval + 1]
    there = np.where(on_left, first, np.where(on_right, second, first + (fresh.at - left) / (right - left) * (second - first)))
    np.maximum.at(extra, fresh.unit, np.abs(there))
    errors = Errors(errors.each + extra, errors.length + float(np.sqrt((extra**2).sum())))
    passed = trust.passed(chunk.layer, errors, low, high) if chunk.proved else errors
    nodes = place[number]
    by_node = np.argsort(nodes, kind="stable")
    ends = np.stack(
        [np.append(*pair)[order] for pair in ((chunk.at, at), (chunk.low, fresh.low[new]), (chunk.high, fresh.high[new]))]
    )
    shares = np.append(np.zeros(chunk.nodes), share)[order]
    intervals = np.append(np.arange(chunk.nodes), interval)[order]
    return _Behind(layer, chunk, values, passed, intervals, shares, ends, (nodes[by_node], fresh.unit[by_node]))
