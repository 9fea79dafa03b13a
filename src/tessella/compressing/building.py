"""The smaller network, layer by layer: which units stay, and how what is removed is made up for.

A layer of the smaller network has the unstable ReLUs that are no multiples of others, and linear units that carry on what later layers read of all the rest.  The linear part has a choice of three:
the units themselves, what the layer reads (if that is less), or as many of the units as are linearly independent.  Where no ReLU is left, the layer is left out, unless it is a bottleneck.
"""

from dataclasses import dataclass, field, replace
from enum import IntEnum
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tessella.compressing.carrying import Carried, carry
from tessella.compressing.composition import Integers, Reading, Rows, beyond
from tessella.compressing.groups import Share, Twin, composed_exactly, rounded, share, twins
from tessella.compressing.multiples import Exact, ExactInputs
from tessella.network import Floats, Layer, Mask, Network, Weight
from tessella.preactivation import passed_on
from tessella.stability import Stability


class Fate(IntEnum):
    """What became of a unit."""

    KEPT = 0
    INACTIVE = 1
    ACTIVE = 2
    MERGED = 3
    CONSTANT = 4
    UNREAD = 5


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A layer of the smaller network."""

    number: int  # the layer of the original that it comes from
    layer: Layer
    rows: Rows  # its affine map, with doubts
    units: Integers  # for each unit the ReLU of the original that it is; -1 for linear ones
    reach: Floats  # how large what each passes on is at most, in absolute value


@dataclass(slots=True)
class Building:
    """What is built so far."""

    stability: Stability  # which units are stable
    needed: list[Mask]  # for each layer the units that are read
    rounds: bool  # whether weights may be put together, which rounds
    # reading, exact: what the last layer of the original that was dealt with passes on, in terms of the smaller network
    reading: Reading
    exact: ExactInputs
    reach: Floats  # how large the values are that the next layer of the smaller network reads
    # made, fates: the layers so far, and what became of the units of each layer of the original
    made: list[Made] = field(default_factory=list)
    fates: list[npt.NDArray[np.int8]] = field(default_factory=list)

    @classmethod
    def on(cls, stability: Stability) -> "Building":
        """Nothing yet: the inputs."""
        box, rounds = stability.domain.box, stability.domain.bounded
        fixed = ~box.free if rounds else np.zeros(box.dim, dtype=np.bool_)
        reading = Reading.of_inputs(box.lower, fixed)
        reach = np.maximum(np.abs(box.lower), np.abs(box.upper))
        return cls(stability, needed_units(stability), rounds, reading, _exact_inputs(reading), reach)

    def add(self, number: int) -> None:
        """The next layer of the original, which is not the last one."""
        layer, stability = self.stability.network.layers[number], self.stability
        active, inactive = stability.active[number], stability.inactive[number]
        lost = inactive & ~layer.leaky
        units = np.flatnonzero(self.needed[number] & ~lost)
        rows = self.reading.through(layer, units)
        fates = np.where(inactive, Fate.INACTIVE, np.where(~self.needed[number], Fate.UNREAD, Fate.KEPT)).astype(np.int8)
        constant = rows.empty()
        fates[units[constant]] = Fate.CONSTANT
        fates[units[~constant & active[units]]] = Fate.ACTIVE
        bends = (layer.rectified & ~active & ~inactive)[units] & ~constant
        alone = [Twin(place, Fraction(1)) for place in range(len(units))]
        known = twins(layer, units, rows, self.exact, bends) if self.rounds else alone
        plan = _plan(layer, units, known, bends, constant, active[units])
        fates[units[bends & ~np.isin(np.arange(len(units)), plan.relus)]] = Fate.MERGED
        self.fates.append(fates)
        self._emit(number, units, rows, plan, _constants(layer, units, rows, constant))

    def _emit(self, number: int, units: Integers, rows: Rows, plan: "_Plan", constants: dict[int, tuple[float, float]]) -> None:
        """The layer of the smaller network, if it needs one, and what the original's units are in terms of it."""
        layer, bounds = self.stability.network.layers[number], self.stability.bounds
        readers = self._readers(number)
        after = self.stability.network.layers[number + 1].weight[readers][:, units]
        factors = {place: share for place, share in plan.shares.items() if place not in plan.relus}
        bends = plan.relus.size > 0
        carried = carry(
            rows.take(plan.carried), after[:, plan.carried], bends=bends, rounds=self.rounds, shares=factors, names=plan.carried
        )
        start, place = len(plan.relus), np.full(layer.units, -1, dtype=np.int64)
        place[units[plan.relus]] = np.arange(start)
        if carried.emitted is None:
            self._read(number, units, place, plan, carried, self.reading.columns, constants)
            return
        dense = isinstance(rows.weight, np.ndarray) and isinstance(after, np.ndarray)
        summed = dense and self.rounds and len(readers) < len(carried.emitted.constants)
        if summed:
            linear = self._sums(number, units, plan, carried, readers)
            slopes = np.ones(len(readers))
            held = abs(linear.weight) if linear.doubts is None else abs(linear.weight) + linear.doubts
            reach = (held @ self.reach + np.abs(linear.constants) + linear.constant_doubts) * (1.0 + 1e-9)
        else:
            linear, slopes = carried.emitted, carried.slopes
            before = np.maximum(np.abs(bounds.lower[number]), np.abs(bounds.upper[number]))[units]
            reach = carried.reach(before[plan.carried], self.reach)
        low, high = passed_on(layer, bounds.lower[number], bounds.upper[number])
        whole, columns = _stacked(rows.take(plan.relus), linear), start + len(linear.constants)
        slope = np.concatenate([layer.slope[units[plan.relus]], slopes])
        self.reach = np.concatenate([np.maximum(np.abs(low), np.abs(high))[units[plan.relus]], reach])
        relus = np.concatenate([units[plan.relus], np.full(columns - start, -1, dtype=np.int64)])
        made = Layer(whole.weight, whole.constants, np.arange(columns) < start, slope)
        self.made.append(Made(number, made, whole, relus, self.reach))
        self._read(number, units, place, plan, carried, columns, constants, readers if summed else None)

    def _readers(self, number: int) -> Integers:
        """The units of the next layer that are needed, and not always 0."""
        layer = self.stability.network.layers[number + 1]
        return np.flatnonzero(self.needed[number + 1] & ~(self.stability.inactive[number + 1] & ~layer.leaky))

    def _sums(self, number: int, units: Integers, plan: "_Plan", carried: Carried, readers: Integers) -> Rows:
        """What the units of the next layer read of all that is linear, one sum for each."""
        after = self.stability.network.layers[number + 1]
        inner = replace(carried, emitted=None, passed=None, own=np.full(len(plan.carried), -1, dtype=np.int64), mixed={})
        locals_ = [place for place, found in plan.shares.items() if found.linear]
        parts = [Share(plan.shares[place].first, Fraction(0), plan.shares[place].linear) for place in locals_]
        position = {g: n for n, g in enumerate(plan.carried.tolist())}
        columns = self.reading.columns
        rows = _composed_rows(parts, np.zeros(0, dtype=np.int64), units, position, inner, columns, 0)
        reading = Reading(columns, np.full(after.inputs, -1, dtype=np.int64), units[locals_], rows)
        return reading.through(replace(after, bias=np.zeros(after.units)), readers)

    def _read(  # noqa: PLR0913, PLR0917  what a layer became
        self,
        number: int,
        units: Integers,
        place: Integers,
        plan: "_Plan",
        carried: Carried,
        columns: int,
        constants: dict[int, tuple[float, float]],
        readers: Integers | None = None,
    ) -> None:
        """What the units of the original pass on, in terms of the layer that was made; if there are readers, they have what is linear from sums of their own."""
        start, position = (0 if carried.emitted is None else len(plan.relus)), {g: n for n, g in enumerate(plan.carried.tolist())}
        exact, composed, parts, taken = dict[int, Exact](), list[int](), list[Share | tuple[float, float]](), set[int]()
        for local, found in plan.shares.items():
            unit = int(units[local])
            if place[unit] >= 0:
                continue
            moved = None if found.relu or readers is not None else carried.place_of(position[found.first], found.linear)
            if moved is not None and moved not in taken:
                taken.add(moved)
                place[unit] = start + moved
                continue
            relu = int(place[units[found.first]]) if found.relu else None
            name = carried.name(position.get(found.first), start) if readers is None else ("function", found.first)
            exact[unit] = composed_exactly(found, relu, name)
            left = found if readers is None else found._replace(linear=Fraction(0))
            if left.relu or left.linear:
                composed.append(unit)
                parts.append(left)
        for local, ends in constants.items():
            unit = int(units[local])
            composed.append(unit)
            parts.append(ends)
            exact[unit] = {None: Fraction(ends[0])} if not ends[1] else {("constant", unit): Fraction(1)}
        rows = _composed_rows(parts, place, units, position, carried, columns, start)
        added = None
        if readers is not None:
            added = np.full(self.stability.network.layers[number + 1].units, -1, dtype=np.int64)
            added[readers] = start + np.arange(len(readers))
        self.reading = Reading(columns, place, np.array(composed, dtype=np.int64), rows, added)
        self.exact = ExactInputs(place, exact)

    def finish(self) -> None:
        """The last layer: all outputs stay, in their order."""
        number = len(self.stability.network.layers) - 1
        layer = self.stability.network.layers[number]
        active, inactive = self.stability.active[number], self.stability.inactive[number]
        lost = inactive & ~layer.leaky
        rows = self.reading.through(layer, np.arange(layer.units))
        constant = rows.empty()
        zero = lost | (constant & layer.rectified & ~layer.leaky & (rows.constants <= 0.0))
        rows = _without(rows, zero, lost)
        fates = np.where(inactive, Fate.INACTIVE, np.where(constant, Fate.CONSTANT, np.where(active, Fate.ACTIVE, Fate.KEPT)))
        self.fates.append(fates.astype(np.int8))
        rectified = layer.rectified & ~active & ~inactive & ~constant
        passes = zero | active | (constant & layer.rectified & (rows.constants > 0.0))
        slope = np.where(passes, 1.0, layer.slope)
        relus = np.where(rectified, np.arange(layer.units), -1)
        made = Layer(rows.weight, rows.constants, rectified, slope)
        self.made.append(Made(number, made, rows, relus, np.zeros(layer.units)))


def _exact_inputs(reading: Reading) -> ExactInputs:
    """Inputs, of which some are fixed."""
    fixed = zip(reading.composed.tolist(), reading.rows.constants.tolist(), strict=True)
    return ExactInputs(reading.place, {unit: {None: Fraction(value)} if value else {} for unit, value in fixed})


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """Which of a layer's units stay as ReLUs, whose preactivations are carried on, and what the others are made of; all by place among the units that are read."""

    relus: Integers
    carried: Integers
    shares: dict[int, Share]


def _plan(layer: Layer, units: Integers, known: list[Twin], bends: Mask, constant: Mask, active: Mask) -> _Plan:  # noqa: PLR0913, PLR0917
    shares = dict[int, Share]()
    for place, twin in enumerate(known):
        if constant[place]:
            continue
        slope = float(layer.slope[units[place]])
        if not bends[place]:
            passes = Fraction(1) if active[place] else Fraction(slope)
            shares[place] = Share(twin.first, Fraction(0), passes * twin.factor)
        elif twin.first == place:
            shares[place] = Share(place, Fraction(1), Fraction(0))
        else:
            shares[place] = share(twin, slope, float(layer.slope[units[twin.first]]))
    relus = [place for place, found in shares.items() if bends[place] and found.first == place]
    carried = sorted({found.first for found in shares.values() if found.linear})
    return _Plan(np.array(relus, dtype=np.int64), np.array(carried, dtype=np.int64), shares)


def _constants(layer: Layer, units: Integers, rows: Rows, constant: Mask) -> dict[int, tuple[float, float]]:
    """What units that read nothing pass on, and how far that may be from the exact value; those that are exactly 0 are left out."""
    found = dict[int, tuple[float, float]]()
    for place in np.flatnonzero(constant).tolist():
        unit, value = int(units[place]), Fraction(float(rows.constants[place]))
        slope = Fraction(float(layer.slope[unit])) if value <= 0 or not layer.rectified[unit] else Fraction(1)
        (number,), (off,) = rounded([value * slope])
        doubt = beyond(Fraction(float(rows.constant_doubts[place])) * max(Fraction(1), abs(slope)) + Fraction(float(off)))
        if number or doubt:
            found[place] = (float(number), doubt)
    return found


def _composed_rows(  # noqa: PLR0913, PLR0917  what a layer became
    parts: list[Any], place: Integers, units: Integers, position: dict[int, int], carried: Carried, columns: int, start: int
) -> Rows:
    """Units that are made of others, as functions of the values that are there."""
    from scipy.sparse import csr_array  # noqa: PLC0415  heavy

    shares = [(row, part) for row, part in enumerate(parts) if isinstance(part, Share)]
    relus = [(row, int(place[units[part.first]]), part.relu) for row, part in shares if part.relu]
    numbers, off = rounded([value for *_, value in relus])
    shape, at = (len(parts), columns), ([row for row, *_ in relus], [column for _, column, _ in relus])
    weight, doubts = csr_array((numbers, at), shape=shape), csr_array((off, at), shape=shape)
    lines = [(row, position[part.first], part.linear) for row, part in shares if part.linear]
    constants, moved = np.zeros(len(parts)), np.zeros(len(parts))
    if lines:
        inner = carried.functions([which for _, which, _ in lines], [value for *_, value in lines], columns, start)
        order = [row for row, *_ in lines]
        spread = csr_array((np.ones(len(order)), (order, np.arange(len(order)))), shape=(len(parts), len(order)))
        weight, constants, moved = weight + spread @ inner.weight, spread @ inner.constants, spread @ inner.constant_doubts
        doubts = doubts if inner.doubts is None else doubts + spread @ inner.doubts
    for row, part in enumerate(parts):
        if not isinstance(part, Share):
            constants[row], moved[row] = part
    return Rows(weight.tocsr(), constants, doubts.tocsr() if doubts.sum() else None, moved)


def _stacked(above: Rows, below: Rows) -> Rows:
    """Rows below others."""
    from scipy.sparse import issparse, vstack  # noqa: PLC0415  heavy

    def put(one: Any, other: Any) -> Any:
        if issparse(one) or issparse(other):
            return vstack([one, other], format="csr")
        return np.vstack([one, other])

    if not len(below.constants) or not len(above.constants):
        return above if len(above.constants) else below
    doubts = None
    if above.doubts is not None or below.doubts is not None:
        doubts = put(*(one.weight * 0.0 if one.doubts is None else one.doubts for one in (above, below)))
    weight: Weight = put(above.weight, below.weight)
    constants, moved = (np.append(getattr(above, name), getattr(below, name)) for name in ("constants", "constant_doubts"))
    return Rows(weight, constants, doubts, moved)


def _without(rows: Rows, zero: Mask, exactly: Mask) -> Rows:
    """The same rows, but 0 in place of some, which are 0 exactly or as far as is known."""
    if not zero.any():
        return rows
    factors = np.where(zero, 0.0, 1.0)

    def put(matrix: Any) -> Any:
        return matrix * factors[:, None] if isinstance(matrix, np.ndarray) else matrix.multiply(factors[:, None]).tocsr()

    doubts = None if rows.doubts is None else put(rows.doubts)
    return Rows(put(rows.weight), rows.constants * factors, doubts, np.where(exactly, 0.0, rows.constant_doubts))


def needed_units(stability: Stability) -> list[Mask]:
    """For each layer the units that are read by some output, as far as weights say."""
    network: Network = stability.network
    found = [np.ones(network.output_dim, dtype=np.bool_)]
    for number in range(len(network.layers) - 1, 0, -1):
        layer = network.layers[number]
        reads = found[0] & ~(stability.inactive[number] & ~layer.leaky)
        found.insert(0, np.asarray(abs(layer.weight[reads]).sum(axis=0)).ravel() > 0.0)
    return found
