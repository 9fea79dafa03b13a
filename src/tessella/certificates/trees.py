"""The proof of a count: a walk through all regions, depth first, that writes down why each side it does not take is empty.

Layer by layer a cell decides its units.  A unit with points on both sides is split.  Where points are known on one side only, a linear program looks for the point of the cell that is
deepest inside the other side.  If there is none, its multipliers prove that.  Both are rounded to few digits as long as floating-point arithmetic, with a margin, sees them hold; what it
cannot decide is settled in whole numbers (`tessella.certificates.exactly`).  That the walk is right does not matter to those who read a certificate.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from math import lcm

import numpy as np
import numpy.typing as npt

from tessella.certificates.approximate import Affine, Numbers, Signs
from tessella.certificates.exactly import Exactly, Row, as_whole
from tessella.certificates.text import Text
from tessella.domain import Domain
from tessella.errors import OptionError
from tessella.kernel.program import EMPTY, Basis, Outcome, Program
from tessella.network import Floats, Network
from tessella.numerics import ROUNDOFF
from tessella.partition.tree import Tree

_CLEAR = -1e-4  # of a row's range: a side that is empty by so much is searched no further
_DIGITS = (6, 12, 20, 30, 42, 52)  # of points and multipliers, until they do
_REACH = 4.0  # no row of a cell goes further, in its own range

_SMALLEST, _LARGEST = 1e-280, 1e280  # of rows that floating-point arithmetic looks at

Places = npt.NDArray[np.int64]
Proof = dict[int, int]  # multipliers of units


@dataclass(frozen=True, slots=True)
class Cell:
    """Where the walk stands."""

    layer: int  # the layer whose units are being decided; -1 before the first
    open: tuple[int, ...]  # those of its units that are not decided
    sides: Signs  # the sides of all units, -1 where they are not decided
    rows: int  # how many rows the cell has
    points: Places  # which of the known points lie in it
    known: int = 0  # how many points were known when it was found
    basis: Basis = EMPTY  # where a linear program may start
    last: int = -1  # the unit that was decided last, if its row is not there yet; -1 if it is


class Walk:
    """The walk through the regions of a network on a bounded domain.

    Parameters
    ----------
    network, domain
        Which.
    text
        Where proofs go.
    tick
        Called with the number of regions after each.
    """

    def __init__(self, network: Network, domain: Domain, text: Text, tick: Callable[[int], None]) -> None:
        """No region is known yet."""
        self.numbers, self._text, self._tick = Numbers(network, domain), text, tick
        self._exactly = Exactly(Tree(network, domain))
        self._last = max((number for number, layer in enumerate(network.layers) if layer.relus), default=-1)
        self._rectified = np.concatenate([layer.rectified for layer in network.layers])
        self._place = np.cumsum(self._rectified) - 1
        walls, inputs = self.numbers.walls, len(self.numbers.free)
        size = len(walls.offset) + network.relus + 1
        self._matrix = np.zeros((size, inputs + 1))
        self._constants, self._errors, self._norms = np.zeros(size), np.zeros(size), np.ones(size)
        self._names, self._programs, self._walls = [0] * size, dict[int, Program](), 0
        for number in np.flatnonzero(walls.matrix.any(axis=1)).tolist():  # the others hold everywhere
            self._put(self._walls, walls.matrix[number], walls.offset[number], walls.error[number], len(self._rectified) + number)
            self._walls += 1
        self._composed, self._points, self._signs = (
            list[Affine](),
            list[Floats | list[Fraction]](),
            np.zeros((64, len(self._rectified)), np.int8),
        )
        self.programs = self.exact = 0

    def walk(self, stable: Mapping[int, int], given: Mapping[int, int]) -> int:
        """Write the tree of all regions, or of those with units on given sides; how many there are.

        Parameters
        ----------
        stable
            The sides of units that are proved to have one.
        given
            The sides of further units.
        """
        before = self._text.points
        self._text.tree(given)
        self._points.clear()
        sides = np.full(len(self._rectified), -1, dtype=np.int8)
        sides[list(stable)] = list(stable.values())
        waiting = [replace(self._with_point(Cell(-1, (), sides, self._walls, np.zeros(0, dtype=np.int64))), known=1)]
        while waiting:
            cell = waiting.pop()
            del self._points[cell.known :]
            split = self._split(self._behind(cell), given)
            if split is None:
                self._tick(self._text.points)
                continue
            unit, cell = split
            self._text.split(unit)
            rest, known = tuple(other for other in cell.open if other != unit), len(self._points)
            for side in (1, 0):
                there = cell.points[self._signs[cell.points, unit] == 2 * side - 1]
                waiting.append(
                    replace(cell, open=rest, sides=_with(cell.sides, unit, side), points=there, known=known, last=unit)
                )
        return self._text.points - before

    def _behind(self, cell: Cell) -> Cell:
        """The cell with the row of the unit that was decided last."""
        if cell.last < 0:
            return cell
        self._put_unit(cell.rows, cell.last, int(cell.sides[cell.last]), cell.layer)
        return replace(cell, rows=cell.rows + 1, last=-1)

    def _split(self, cell: Cell, given: Mapping[int, int]) -> tuple[int, Cell] | None:
        """Go on to a unit with points on both sides, or to the end of the last layer, where the region's point is written."""
        while True:
            if not cell.open:
                if cell.layer == self._last:
                    self._text.point(*self._written(int(cell.points[0])))
                    return None
                cell = self._entered(cell, given)
                continue
            signs = self._signs[cell.points][:, list(cell.open)]
            up, down = (signs > 0).sum(axis=0), (signs < 0).sum(axis=0)
            both = np.minimum(up, down)
            worst, best = int(both.argmin()), int(both.argmax())
            if both[worst]:
                return cell.open[best], cell
            cell = self._tested(cell, cell.open[worst], int(up[worst] == 0))

    def _entered(self, cell: Cell, given: Mapping[int, int]) -> Cell:
        """The next layer: what its units are in the cell, and those that have one side there."""
        number, starts = cell.layer + 1, self.numbers.starts
        before = cell.sides[starts[number - 1] : starts[number]] == 1 if number else np.zeros(0, dtype=np.bool_)
        del self._composed[number:]
        self._composed.append(self.numbers.compose(number, self._composed[-1] if number else None, before))
        units = np.arange(starts[number], starts[number + 1])
        cell = replace(cell, layer=number, open=())
        for unit in units[self._rectified[units] & (cell.sides[units] < 0)].tolist():
            if unit in given:
                there = cell.points[self._signs[cell.points, unit] == 2 * given[unit] - 1]
                cell = self._behind(replace(cell, sides=_with(cell.sides, unit, given[unit]), points=there, last=unit))
            else:
                cell = replace(cell, open=(*cell.open, unit))
        cell = cell if len(cell.points) else self._with_point(cell)
        for unit in cell.open:
            signs = self._signs[cell.points, unit]
            for side in (1, 0):
                if unit in cell.open and not (signs == 2 * side - 1).any():
                    cell = self._tested(cell, unit, side)
        return cell

    def _tested(self, cell: Cell, unit: int, side: int) -> Cell:
        """The cell with a point on a side of a unit, or with the unit fixed to the other side."""
        self._put_unit(cell.rows, unit, side, cell.layer)
        point, proof, basis = self._settled(cell, unit, side)
        if point is not None:
            return replace(cell, points=np.append(cell.points, point), basis=basis)
        self._text.fix(unit, 1 - side, proof)
        rest = tuple(other for other in cell.open if other != unit)
        return replace(cell, open=rest, sides=_with(cell.sides, unit, 1 - side), basis=basis)

    def _with_point(self, cell: Cell) -> Cell:
        """The cell with a point inside."""
        point, _, basis = self._settled(cell, -1, 0)
        if point is None:
            msg = "no region has the sides that were given; leave some of them out"
            raise OptionError(msg)
        return replace(cell, points=np.array([point]), basis=basis)

    def _settled(self, cell: Cell, unit: int, side: int) -> tuple[int | None, Proof, Basis]:
        """A point of the cell on a side of a unit (in row ``cell.rows``), or the proof that there is none; without a unit, a point of the cell."""
        count = cell.rows + (unit >= 0)
        wanted = {int(name): 2 * int(cell.sides[name]) - 1 for name in self._names[self._walls : cell.rows]} | (
            {unit: 2 * side - 1} if unit >= 0 else {}
        )
        if unit >= 0:
            row = self._matrix[cell.rows, :-1]
            most = self._constants[cell.rows] + np.maximum(row, 0.0).sum()
            if most + self._errors[cell.rows] + len(row) * 4 * ROUNDOFF <= 0.0:
                return None, {unit: 1}, cell.basis
        if not count:
            return self._new(np.full(len(self.numbers.free), 0.5), wanted), {}, cell.basis
        found = self._deepest(count, cell.basis)
        depth = float(found.x[-1])
        if found.optimal and depth > 0.0:
            point = self._new(np.clip(found.x[:-1], 0.0, 1.0), wanted)
            if point is not None:
                return point, {}, found.basis
        elif (found.pruned or found.optimal) and unit >= 0:
            proof = self._rounded(np.maximum(-found.multipliers[:count], 0.0), wanted)
            if proof:
                return None, proof, found.basis
        self.exact += 1
        return *self._settled_exactly(cell, unit, side, wanted), found.basis

    def _deepest(self, count: int, basis: Basis) -> Outcome:
        """The point of the cube where so many rows are as large as can be, in their own ranges."""
        self.programs += 1
        program = self._programs.get(count)
        if program is None:
            program = self._programs[count] = Program(self._matrix[:count])
        inputs = self._matrix.shape[1] - 1
        lower, upper, costs = np.zeros(inputs + 1), np.ones(inputs + 1), np.zeros(inputs + 1)
        lower[-1], upper[-1], costs[-1] = -_REACH, _REACH, 1.0
        return program.maximise(costs, lower, upper, -self._constants[:count], np.full(count, 2.0 * _REACH), basis, _CLEAR)

    def _new(self, places: Floats, wanted: Mapping[int, int]) -> int | None:
        """Round a point to as few digits as keep it clearly on its sides of the units that it is wanted for, and of all inequalities; its number among the points."""
        units, sides = list(wanted), np.array(list(wanted.values()), dtype=np.int8)
        for digits in _DIGITS:
            point = self.numbers.point(places, digits)
            signs = self.numbers.signs(point)
            if (signs[units] == sides).all() and self.numbers.is_inside(point):
                return self._add(point, signs)
        return None

    def _add(self, point: Floats | list[Fraction], signs: Signs) -> int:
        if len(self._points) == len(self._signs):
            self._signs = np.concatenate([self._signs, np.zeros_like(self._signs)])
        self._signs[len(self._points)] = signs
        self._points.append(point)
        return len(self._points) - 1

    def _rounded(self, multipliers: Floats, wanted: Mapping[int, int]) -> Proof | None:
        """Round multipliers to as few digits as keep their combination clearly at most 0; None if none do."""
        used = np.flatnonzero(multipliers > 1e-12 * multipliers.max())
        if len(multipliers) - 1 not in used:
            return None
        rows, norms = self._matrix[used, :-1], self._norms[used]
        with np.errstate(over="ignore"):
            shares = multipliers[used] / norms
        if not np.isfinite(shares).all():
            return None  # exact arithmetic finds others
        size = np.exp2(np.ceil(np.log2(norms.max())))
        for digits in _DIGITS:
            scale = size * 2.0**digits
            whole = np.rint(shares * scale)
            own = whole * norms / scale
            sums = own @ rows
            most = own @ self._constants[used] + np.maximum(sums, 0.0).sum()
            doubt = own @ (self._errors[used] + 4.0 * (len(used) + len(sums) + 8) * ROUNDOFF)
            if whole[-1] > 0 and most + doubt < 0.0 and whole.max() < 2.0**62:
                names = [self._names[row] for row in used.tolist()]
                pairs = zip(names, whole.astype(np.int64).tolist(), strict=True)
                return _proof({name: wanted.get(name, 1) * number for name, number in pairs if number}, names[-1])
        return None

    def _settled_exactly(self, cell: Cell, unit: int, side: int, wanted: Mapping[int, int]) -> tuple[int | None, Proof]:
        """The same as `_settled`, in whole numbers."""
        names = [*self._names[: cell.rows], *([unit] if unit >= 0 else [])]
        rows = [
            self._row(name, side if name == unit else int(cell.sides[name]) if name < len(cell.sides) else 1) for name in names
        ]
        end = self.numbers.starts[cell.layer] if cell.layer >= 0 else 0
        prefix = cell.sides[:end][self._rectified[:end]].astype(np.uint8).tobytes()
        places, multipliers = self._exactly.settle(rows, prefix)
        if places is None and unit < 0:
            return None, {}
        if places is None:
            signed = {name: wanted.get(name, 1) * one for name, one in zip(names, multipliers or (), strict=True)}
            return None, _proof(as_whole(signed), unit)
        signs = np.zeros(len(self._rectified), dtype=np.int8)
        signs[list(wanted)] = list(wanted.values())
        return self._add(self.numbers.exact_point(places), signs), {}

    def _row(self, name: int, side: int) -> Row:
        """The row of a unit, or of an inequality, for exact arithmetic."""
        if name >= len(self._rectified):
            return Row(-1, name - len(self._rectified), 1)
        layer = int(np.searchsorted(self.numbers.starts, name, side="right")) - 1
        return Row(layer, int(self._place[name] - (self._place[self.numbers.starts[layer] - 1] + 1 if layer else 0)), side)

    def _put_unit(self, index: int, unit: int, side: int, layer: int) -> None:
        """Write the row that is positive on a side of a unit."""
        affine, place, sign = self._composed[layer], unit - self.numbers.starts[layer], 2 * side - 1
        constant, error = float(affine.offset[place]), float(affine.error[place])
        self._put(index, sign * affine.matrix[place], sign * constant, error, unit)

    def _put(self, index: int, row: Floats, constant: float, error: float, name: int) -> None:
        norm = max(float(np.abs(row).sum()), abs(float(constant))) or 1.0
        if not _SMALLEST < norm < _LARGEST:  # exact arithmetic decides
            row, constant, error, norm = np.zeros_like(row), 0.0, np.inf, 1.0
        self._matrix[index, :-1], self._matrix[index, -1] = row / norm, -1.0
        self._constants[index], self._errors[index], self._norms[index], self._names[index] = (
            constant / norm,
            error / norm,
            norm,
            name,
        )

    def _written(self, number: int) -> tuple[int, int, dict[int, int]]:
        """A point as a certificate has it."""
        point, box = self._points[number], self.numbers.box
        if isinstance(point, list):
            exact = {place: one for place, one in enumerate(point) if one not in {box.lower[place], box.upper[place]}}
            at_top = [place for place, one in enumerate(point) if one == box.upper[place]]
        else:
            inner = np.flatnonzero((point > box.lower) & (point < box.upper)).tolist()
            exact = {place: Fraction(point[place].item()) for place in inner}
            at_top = np.flatnonzero(point == box.upper).tolist()
        scale = reduce(lcm, (one.denominator for one in exact.values()), 1)
        return scale, sum(1 << place for place in at_top), {place: int(one * scale) for place, one in exact.items()}


def _proof(multipliers: dict[int, int], unit: int) -> Proof:
    """That of the unit first, and positive: what it proves is on the other side."""
    return {unit: abs(multipliers.pop(unit)), **multipliers}


def _with(sides: Signs, unit: int, side: int) -> Signs:
    changed = sides.copy()
    changed[unit] = side
    return changed
