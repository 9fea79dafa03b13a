"""The regions of a small box, counted cell by cell: for balls in which few units change.

Units are decided in layer order, depth first.  A cell comes with a point that lies inside all its rows by more than these may be wrong.  The side of a unit that the point does not lie on is
looked for by one linear program: its bound, which is proved, shows that the side is not there; or a point between the program's and the cell's own lies inside all rows, which shows that
it is.  If neither does, the side is *thin*: it counts between 0 and all that could lie below it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tessella.kernel.program import Program
from tessella.nearby.reduced import Reduced
from tessella.network import Floats, Mask
from tessella.numerics import LOST_OF_PRODUCTS
from tessella.tightening.rounding import gamma

_SHARES = (0.5, 0.25, 0.75, 0.0625, 0.9375)  # where between a unit's wall and the program's point a point is looked for
_LOOK = 64  # cells between two looks at the time


class Bracket(NamedTuple):
    """How many regions there are."""

    # lower, upper: at least, and at most
    lower: int
    upper: int
    thin: int  # how many sides could not be decided
    both: Mask  # of each unit, whether both of its states were seen


class _Node(NamedTuple):
    """A cell."""

    states: tuple[bool, ...]  # the decisions so far
    cuts: tuple[int, ...]  # which of these units cut the cell
    point: Floats  # a point inside


@dataclass(slots=True)
class Cells:
    """Counts the cells of units that may change."""

    reduced: Reduced  # the units
    start: Floats  # a point of the domain, scaled, inside its inequalities
    _rows: Floats = field(init=False)
    _constants: Floats = field(init=False)
    _doubts: Floats = field(init=False)
    _done: tuple[bool, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        """Memory for the rows of one cell."""
        count, dim = self.reduced.rows.shape
        self._rows, self._constants, self._doubts = np.zeros((count, dim)), np.zeros(count), np.zeros(count)

    def count(self, late: Callable[[], bool], most: int) -> Bracket:
        """Count until all is decided, it is late, or there are more regions than this."""
        units = len(self.reduced.constants)
        both = np.zeros((2, units), dtype=np.bool_)
        if not ((self.reduced.walls @ self.start + self.reduced.inner) > 0.0).all():
            return Bracket(1, 2**units, 1, both[0])
        stack, found, left, above, thin, looked = [_Node((), (), self.start)], 0, 0, 0, 0, 0
        while stack:
            node = stack.pop()
            looked += 1
            if found >= most or (looked % _LOOK == 0 and late()):  # what is left is there, and holds a region at least
                above += sum(2 ** (units - len(one.states)) for one in (node, *stack))
                left = 1 + len(stack)
                break
            leaf = True
            for unit in range(len(node.states), units):
                self._compose(node.states, unit)
                sides, lost = self._sides(node, unit)
                if lost:
                    thin += 1
                    above += 2 ** (units - unit - 1) * lost
                if not sides:
                    leaf = False
                    break
                cuts = (*node.cuts, unit) if len(sides) + lost > 1 else node.cuts
                stack += [_Node((*node.states, state), cuts, point) for state, point in sides[1:]]
                state, point = sides[0]
                node = _Node((*node.states, state), cuts, point)
            if leaf:
                found += 1
                both[np.array(node.states, dtype=np.int64), np.arange(units)] = True
        return Bracket(max(found + left, 1), max(found + above, 1), thin, both[0] & both[1])

    def _compose(self, states: tuple[bool, ...], unit: int) -> None:
        """The row of a unit below decisions; rows of earlier units of the same decisions are there already."""
        shared = 0
        for one, other in zip(states, self._done, strict=False):
            if one != other:
                break
            shared += 1
        for number in range(min(shared + 1, unit), unit + 1):
            self._row(states, number)
        self._done = states

    def _row(self, states: tuple[bool, ...], unit: int) -> None:
        reduced = self.reduced
        weights = reduced.couplings[unit, :unit] * np.where(states[:unit], 1.0, reduced.slopes[:unit])
        used = np.flatnonzero(weights)
        row, constant, doubt = reduced.rows[unit], reduced.constants[unit], reduced.doubts[unit]
        sizes = np.abs(row).sum() + abs(constant)
        if len(used):
            weights, before = weights[used], self._rows[used]
            row, constant = row + weights @ before, constant + weights @ self._constants[used]
            held = np.abs(weights)
            sizes += float(held @ (np.abs(before).sum(axis=1) + np.abs(self._constants[used])))
            doubt += float(held @ self._doubts[used]) * (1.0 + gamma(len(used)))
        self._rows[unit], self._constants[unit] = row, constant
        self._doubts[unit] = doubt + gamma(len(used) + len(row) + 8) * sizes

    def _sides(self, node: _Node, unit: int) -> tuple[list[tuple[bool, Floats]], int]:
        """The sides of a unit that are there, each with a point, and how many are thin."""
        row, constant, doubt = self._rows[unit], float(self._constants[unit]), float(self._doubts[unit])
        reach, value = float(np.abs(row).sum()) * (1.0 + gamma(len(row))), float(row @ node.point) + constant
        if constant + reach + doubt <= 0.0:
            return [(False, node.point)], 0
        if constant - reach - doubt > 0.0:
            return [(True, node.point)], 0
        if abs(value) <= doubt:  # the point tells nothing
            return self._unclear(node, unit)
        here = value > 0.0
        there = self._other(node, unit, 1.0 if here else -1.0, abs(value))
        if there is None:
            return [(here, node.point)], 0
        return ([(here, node.point), (not here, there)], 0) if len(there) else ([(here, node.point)], 1)

    def _unclear(self, node: _Node, unit: int) -> tuple[list[tuple[bool, Floats]], int]:
        """The same where the unit is almost 0 at the cell's point: both sides are looked for."""
        found, lost = list[tuple[bool, Floats]](), 0
        for state, sign in ((False, 1.0), (True, -1.0)):
            there = self._other(node, unit, sign, 0.0)
            if there is not None and len(there):
                found.append((state, there))
            lost += there is not None and not len(there)
        return found, lost

    def _other(self, node: _Node, unit: int, sign: float, value: float) -> Floats | None:
        """A point of the cell where a row times this sign is negative; None if there is none, proved; empty if neither could be shown."""
        reduced, cuts = self.reduced, list(node.cuts)
        row, doubt = -sign * self._rows[unit], float(self._doubts[unit])
        constant = -sign * float(self._constants[unit])
        if not row.any():  # a constant: rounding alone decides its sign
            return row[:0]
        if not cuts and not len(reduced.walls):
            best, bound = np.sign(row), float(np.abs(row).sum()) * (1.0 + gamma(len(row)))
        else:
            signs = np.where([node.states[cut] for cut in cuts], 1.0, -1.0)
            sizes = np.maximum(np.abs(self._rows[cuts]).sum(axis=1), np.abs(self._constants[cuts])) + LOST_OF_PRODUCTS
            matrix = np.vstack([signs[:, None] * self._rows[cuts] / sizes[:, None], reduced.walls])
            low = np.append(-(signs * self._constants[cuts] + self._doubts[cuts]) / sizes - gamma(len(row)), -reduced.limits)
            size, ends = float(np.abs(row).sum()), np.ones(len(row))
            most = np.abs(matrix).sum(axis=1) + np.abs(low) + 1.0
            found = Program(matrix).maximise(
                row / size, -ends, ends, low, most, cutoff=-(constant + doubt) / size - gamma(len(row) + 4)
            )
            best, bound = np.clip(found.x, -1.0, 1.0), (found.bound + gamma(len(row))) * size
        if bound + constant + doubt <= 0.0:
            return None
        there = float(row @ best) + constant
        if there <= doubt:
            return best[:0]
        wall = value / (value + there)
        for share in _SHARES:
            point = node.point + (wall + share * (1.0 - wall)) * (best - node.point)
            if float(row @ point) + constant > doubt and self._inside(node, point):
                return point
        return best[:0]

    def _inside(self, node: _Node, point: Floats) -> bool:
        """Whether a point lies inside all rows of a cell, whatever rounding did."""
        cuts = list(node.cuts)
        signs = np.where([node.states[cut] for cut in cuts], 1.0, -1.0)
        rows = signs * (self._rows[cuts] @ point + self._constants[cuts]) > self._doubts[cuts]
        return bool(rows.all() and (self.reduced.walls @ point + self.reduced.inner > 0.0).all() and (np.abs(point) <= 1.0).all())
