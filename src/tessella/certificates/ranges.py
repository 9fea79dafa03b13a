"""The proof of bounds on what units see before their ReLU, and of which units are stable.

Layer by layer every unit gets a lower and an upper bound.  Each is proved by a number w for every unit before it (`tessella.certificates.verify` says how).  The first w come from
linear bounds substituted backwards; the multipliers of the triangle relaxation give better ones.  Where these do not suffice to show a unit to be stable, other units are split.  What is
claimed is what the checker's own arithmetic makes of the numbers, rounded outward.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from tessella.certificates.exactly import Exactly, Row, as_whole
from tessella.certificates.text import Text
from tessella.certificates.verify import Certificate as Checker
from tessella.domain import Polytope
from tessella.kernel.program import EMPTY, Basis, Outcome, Program
from tessella.methods import Method
from tessella.network import Floats
from tessella.partition.tree import Tree
from tessella.stability import Stability
from tessella.tightening.linear import lines
from tessella.tightening.relaxation import Relaxation, relax

_DIGITS = 24  # of what is claimed, binary
_NODES = 20_000  # of the branches of one proof
_FACTORS = tuple(2.0**power for power in range(0, 61, 4))  # of what shows that a branch is empty
_SCALES = (30, 60)  # binary digits of numbers
_NOTHING = 1e-10  # of the largest multiplier: smaller ones are rounding

Sides = dict[int, int]


class _Goal(NamedTuple):
    """What is to be bounded from above: a unit's preactivation times a sign."""

    layer: int
    unit: int
    sign: int


class _Proof(NamedTuple):
    """A bound, and the whole numbers that prove it."""

    value: Fraction
    numbers: dict[int, int]


class Ranges:
    """Proves bounds on all units of a network on a domain.

    Parameters
    ----------
    known
        Which units are stable.
    text
        Where proofs go.
    tick
        Called with the number of units done.
    """

    def __init__(self, known: Stability, text: Text, tick: Callable[[int], None]) -> None:
        """Nothing is proved yet."""
        self._known, self._text, self._tick = known, text, tick
        self._network, self._domain = known.network, known.domain
        self._checker = Checker(line.split() for line in text.opening)
        self._starts = np.concatenate([[0], np.cumsum([layer.units for layer in self._network.layers])]).tolist()
        self._found = list[tuple[Floats, Floats]]()
        self.unproved = 0

    def prove(self) -> None:
        """Write bounds on all units, layer by layer."""
        for number, layer in enumerate(self._network.layers):
            low, high = np.full(layer.units, -np.inf), np.full(layer.units, np.inf)
            relaxed = self._relaxed(number)
            for unit in range(layer.units):
                for sign, ends in ((1, high), (-1, low)):
                    ends[unit] = sign * self._proved(_Goal(number, unit, sign), relaxed)
                self._tick(self._starts[number] + unit + 1)
            self._found.append((low, high))

    def _relaxed(self, number: int) -> "_Relaxed | None":
        """The relaxation of all layers before one, if it is of use."""
        slow = self._known.bounds.method in {Method.LP, Method.MILP}
        if not slow or (number == 0 and not isinstance(self._domain, Polytope)):
            return None
        return _Relaxed(relax(self._network, self._domain, self._found), self._starts)

    def _proved(self, goal: _Goal, relaxed: "_Relaxed | None") -> float:
        """Write the best bound that is found; gives its value."""
        stable = self._known.inactive if goal.sign > 0 else self._known.active
        wanted, rectified = bool(stable[goal.layer][goal.unit]), self._network.layers[goal.layer].rectified[goal.unit]
        best = self._proof(goal, self._by_lines(goal, {}, None, 1.0))
        if wanted and best.value > 0:
            best = min(best, self._proof(goal, self._by_lines(goal, {}, None, 0.0)), key=lambda proof: proof.value)
        if relaxed is not None and not (wanted and best.value <= 0):
            numbers = self._by_lines(goal, {}, relaxed.duals(relaxed.solve(goal, {}, EMPTY)), 1.0)
            best = min(best, self._proof(goal, numbers), key=lambda proof: proof.value)
        value, proof = _outward(best.value), [("end", best.numbers)]
        if relaxed is not None and wanted and rectified and best.value > 0:
            branched = self._branched(goal, relaxed)
            value, proof = (0.0, branched) if branched else (value, proof)
        if wanted and goal.layer == 0 and value > 0.0:
            value, proof = self._exactly(goal) or (value, proof)
        self.unproved += wanted and value > 0.0
        unit = self._starts[goal.layer] + goal.unit
        self._text.bound(unit, int(goal.sign > 0), goal.sign * value)
        self._checker.take(
            "bound", [str(self._text.place(unit)), "1" if goal.sign > 0 else "0", (goal.sign * value).hex()], mine=False
        )
        for kind, numbers in proof:
            (self._text.end if kind == "end" else self._text.split_of)(numbers)
            self._checker.take(kind, [str(self._text.place(one)) for one in numbers] if kind == "split" else [], mine=False)
        return value

    def _exactly(self, goal: _Goal) -> "tuple[float, list[tuple[str, dict[int, int]]]] | None":
        """What proves that a first unit's bound is 0 where the domain's inequalities meet the unit in a point, or are multiples of it; None if it is not."""
        domain, place = self._domain, int(self._network.layers[0].rectified[: goal.unit].sum())
        walls = np.flatnonzero(domain.matrix[:, domain.box.free].any(axis=1)).tolist() if isinstance(domain, Polytope) else []
        rows = [*(Row(-1, wall, 1) for wall in walls), Row(0, place, int(goal.sign > 0))]
        point, multipliers = Exactly(Tree(self._network, domain)).settle(rows, b"")
        if point is not None or multipliers is None:
            return None
        names = [*(self._starts[-1] + wall for wall in walls), goal.unit]
        return 0.0, [("end", as_whole(dict(zip(names, multipliers, strict=True))))]

    def _branched(self, goal: _Goal, relaxed: "_Relaxed") -> list[tuple[str, dict[int, int]]] | None:
        """What proves that a bound is 0, by branches over the sides of units before; None if that takes too many."""
        found, waiting, nodes = list[tuple[str, dict[int, int]]](), list[tuple[Sides, Basis]]([({}, EMPTY)]), 0
        while waiting:
            sides, basis = waiting.pop()
            nodes += 1
            outcome = relaxed.solve(goal, sides, basis)
            proof = self._in_branch(goal, sides, relaxed, outcome)
            if proof is not None:
                found.append(("end", proof.numbers))
                continue
            unit = relaxed.to_split(outcome, sides)
            if unit < 0 or nodes > _NODES:
                return None
            found.append(("split", {unit: 0}))
            waiting += [({**sides, unit: 1}, outcome.basis), ({**sides, unit: 0}, outcome.basis)]
        return found

    def _in_branch(self, goal: _Goal, sides: Sides, relaxed: "_Relaxed", outcome: Outcome) -> _Proof | None:
        """What proves that a bound is 0 in a branch, if it is."""
        for unit, side in sides.items():
            self._checker.put(self._text.place(unit), side)
        try:
            duals = relaxed.duals(outcome)
            factors = _FACTORS if outcome.bound == -math.inf else (1.0,)
            for digits in _SCALES:
                for factor in factors:
                    proof = self._proof(goal, self._by_lines(goal, sides, duals, factor), digits)
                    if proof.value <= 0:
                        return proof
            return None
        finally:
            while self._checker.way:
                place, _, self._checker.now[place] = self._checker.way.pop()

    def _proof(self, goal: _Goal, numbers: Mapping[int, float], digits: int = _SCALES[0]) -> _Proof:
        """The bound that numbers prove once they are rounded, by the checker's arithmetic."""
        unit, scale = self._starts[goal.layer] + goal.unit, 2.0**digits
        whole = {unit: int(scale)} | {one: round(Fraction(number) * int(scale)) for one, number in numbers.items()}
        whole = {one: number for one, number in whole.items() if number}
        placed = {self._text.place(one): number for one, number in whole.items()}
        place = self._text.place(unit)
        return _Proof(self._checker.bound(place, goal.sign, placed) / (1 << self._checker.bits[place]), whole)

    def _by_lines(self, goal: _Goal, sides: Sides, duals: "_Duals | None", factor: float) -> dict[int, float]:
        """Numbers for all units before: those of linear bounds (the factor is how much of the lower line's slope is taken), or those that a relaxation's multipliers stand for, times the factor."""
        weights = goal.sign * self._network.layers[goal.layer].dense()[goal.unit]
        found = {unit: factor * number for unit, number in duals.walls.items()} if duals else {}
        for number in range(goal.layer - 1, -1, -1):
            layer, (low, high), start = self._network.layers[number], self._found[number], self._starts[number]
            line = lines(layer, low, high)
            below = np.where(layer.slope > 1.0, line.lower_slope, layer.slope + factor * (line.lower_slope - layer.slope))
            by_itself = weights * np.where(layer.rectified & (low >= 0.0) & (high > 0.0), 1.0, layer.slope)
            taken = by_itself.copy()
            for place in np.flatnonzero(layer.rectified & (low < 0.0) & (high > 0.0)).tolist():
                unit, weight = start + place, float(weights[place])
                if unit in sides:
                    by_itself[place] = weight * (1.0 if sides[unit] else layer.slope[place])
                if duals is None:
                    taken[place] = weight * (line.upper_slope if weight > 0.0 else below)[place]
                else:
                    taken[place] = weight * layer.slope[place] + factor * duals.units.get(unit, 0.0)
                own = float(taken[place]) - (float(by_itself[place]) if unit in sides else 0.0)
                found[unit] = own
            weights = taken @ layer.dense()
        return {unit: number for unit, number in found.items() if number and math.isfinite(number)}


@dataclass(frozen=True, slots=True)
class _Duals:
    """What a relaxation's multipliers are for units and for the domain's inequalities."""

    units: dict[int, float]
    walls: dict[int, float]


class _Relaxed:
    """The triangle relaxation of some layers, with some units decided."""

    def __init__(self, relaxation: Relaxation, starts: list[int]) -> None:
        """One program for all targets and branches."""
        self._relaxation, self._program, self._total = relaxation, Program(relaxation.matrix), starts[-1]
        self._units = [starts[layer] + unit for layer, unit in relaxation.units]
        self._index = {unit: index for index, unit in enumerate(self._units)}

    def solve(self, goal: _Goal, sides: Sides, basis: Basis) -> Outcome:
        """Maximise a target, until its bound is clearly negative."""
        relaxation = self._relaxation
        objective, constant, error, size = relaxation.objective(goal.unit, float(goal.sign))
        upper, row_lower, row_upper = relaxation.upper.copy(), relaxation.row_lower.copy(), relaxation.row_upper.copy()
        for unit, side in sides.items():
            index = self._index[unit]
            under, over = relaxation.first + 2 * index, relaxation.first + 2 * index + 1
            row_upper[over] = relaxation.open_upper[index]
            if side:
                row_lower[under] = min(relaxation.active_lower[index], row_upper[under])
            else:
                upper[relaxation.variables[index]] = 0.0
        cutoff = -constant - error - 1e-6 * size if sides else -np.inf
        return self._program.maximise(objective, np.zeros(len(upper)), upper, row_lower, row_upper, basis, cutoff)

    def duals(self, outcome: Outcome) -> _Duals:
        """The multipliers, in terms of preactivations and inequalities as they are."""
        relaxation, first = self._relaxation, self._relaxation.first
        multipliers = outcome.multipliers
        own = np.where(np.abs(multipliers) > _NOTHING * np.abs(multipliers).max(initial=0.0), multipliers, 0.0) / relaxation.norms
        walls = {self._total + row: max(float(own[row]), 0.0) for row in range(first)}
        slopes = relaxation.slopes
        units = {unit: float(slopes[k] * own[first + 2 * k + 1] - own[first + 2 * k]) for k, unit in enumerate(self._units)}
        return _Duals(units, walls)

    def to_split(self, outcome: Outcome, sides: Sides) -> int:
        """The undecided unit whose relaxation is worst at a point; -1 if there is none."""
        relaxation, first = self._relaxation, self._relaxation.first
        free = np.array([unit not in sides for unit in self._units], dtype=np.bool_)
        if not free.any():
            return -1
        under = first + 2 * np.arange(len(free))
        above = relaxation.norms[under] * (relaxation.row_upper[under] - outcome.rows[under])
        output = relaxation.scale[relaxation.variables] * outcome.x[relaxation.variables]
        gaps = np.where(free, np.minimum(above, output), -1.0)
        return self._units[int(gaps.argmax())] if gaps.max() > 0.0 else self._units[int(free.argmax())]


def _outward(value: Fraction) -> float:
    """A floating-point number of few digits that is at least as large."""
    if not value:
        return 0.0
    unit = Fraction(2) ** (math.frexp(float(value))[1] - _DIGITS)
    rounded = float(math.ceil(value / unit) * unit)
    return rounded if rounded >= value else math.nextafter(rounded, math.inf)  # the smallest numbers have fewer digits
