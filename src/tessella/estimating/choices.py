"""Random choices of all units of a layer in a cell, by one point in its middle.

For a unit the steepest way in the cell's metric (`estimating.barrier`) leads to its other side, if it has one in the cell, or to a
wall; from there it goes on along up to a few walls.  If the other side is found, each side is taken with about the same
probability.  If not, it is taken with a small probability (all of a descent's units together: one in fifty), and then a linear
program looks for a point there; if there is none, the estimate of this descent is 0.

**The order.**  The next unit of a layer is the one whose border passes nearest to the point in the metric; units whose other side
was not found wait until the others are done.  So cells are halved and stay round, and a choice matters little to the choices that
follow: both make estimates spread less.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from tessella.estimating.barrier import THIN, BarrierCell, first_wall
from tessella.network import Floats, Mask

_EVERY = 12  # units between two computations of the metric
_WALLS = 20  # walls that a search goes along
_NEAR = 1e-6  # part of a way that is left to a wall
_PIVOTS = 5000  # of a linear program: a limit that does not depend on the machine, as no answer may
_HOPE = 4.0  # how much more than so far is expected from each further wall


class _Way(NamedTuple):
    """The steepest way from a point to a unit's border."""

    image: Floats  # the product of the metric with the unit's row
    # direction, rates: where it goes, and how fast the distances to the cell's rows change
    direction: Floats
    rates: Floats
    fall: float  # how fast the unit's value comes nearer to zero
    # need, reach: the step to the unit's border, and to the first wall
    need: float
    reach: float
    wall: int  # that wall: the number of a row, or -1 - j for an end of input j

    @property
    def crosses(self) -> bool:
        """Whether the border comes before the wall."""
        return self.reach * (1.0 - _NEAR) > self.need


class LayerOfUnits:
    """One layer's units in a cell, decided one after the other.

    Parameters
    ----------
    cell
        The cell; it becomes smaller with each decision.
    rows, constants
        The units' preactivations on the cell, as functions of the input.
    rectified
        Which of the units are ReLUs.
    """

    def __init__(self, cell: BarrierCell, rows: Floats, constants: Floats, rectified: Mask) -> None:
        self._cell, self._rows, self._constants, self._first = cell, rows, constants, len(cell.signs)
        cell.extend(rows, constants)
        sizes = np.abs(rows).sum(axis=1)
        sure = (np.abs(constants) > sizes * (1.0 + 1e-9)) | (sizes == 0.0)
        self.active = np.where(sure, constants > 0.0, self._values > 0.0) & rectified
        self._waiting = rectified & ~sure
        self._lengths = np.ones(len(rows))
        self._metric, self._since = cell.metric(), _EVERY
        self.splits, self.undecided = 0, 0

    @property
    def _values(self) -> Floats:
        return self._cell.values[self._first :]

    def decide(self, rng: np.random.Generator, chance: float, tilt: float) -> float:
        """Choose all units' states; minus the logarithm of the probability of what was chosen, or infinity if there is nothing there."""
        total, likely = 0.0, 1.0 / (1.0 + math.exp(-tilt))
        for again in (False, True):
            late = np.zeros_like(self._waiting)
            self._since = _EVERY
            while self._waiting.any():
                unit = self._next()
                way = self._way(unit)
                there = None if way.crosses else self._search(unit, way)
                self._waiting[unit] = False
                if way.crosses or there is not None:
                    self.splits += 1
                    active = rng.random() < likely
                    total -= math.log(likely if active else 1.0 - likely)
                    self._choose(unit, way, there, other=active != self.active[unit])
                elif not again:
                    late[unit] = True
                elif rng.random() >= chance:
                    total -= math.log1p(-chance)
                    self._enter(unit, way)
                else:
                    total -= math.log(chance)
                    there = self._program(unit)
                    if there is None:
                        return math.inf
                    self._choose(unit, way, there, other=True)
            self._waiting = late
        return total

    def _next(self) -> int:
        """The unit whose border passes nearest to the point."""
        if self._since >= _EVERY:
            self._metric, self._since = self._cell.metric(), 0
            chosen = self._rows[self._waiting]
            self._lengths[self._waiting] = np.maximum((self._metric(chosen) * chosen).sum(axis=1), 1e-200)
        waiting = np.flatnonzero(self._waiting)
        return int(waiting[np.argmin(self._values[waiting] ** 2 / self._lengths[waiting])])

    def _way(self, unit: int) -> _Way:
        """The way to a unit's other side; its state becomes that at the point."""
        row, value, cell = self._rows[unit], self._values[unit], self._cell
        image = self._metric(row)
        direction = -image if value > 0.0 else image
        rates, fall = cell.rates(direction), max(float(row @ image), 1e-200)
        self.active[unit] = value > 0.0
        return _Way(image, direction, rates, fall, abs(value) / fall, *cell.reach(direction, rates))

    def _search(self, unit: int, way: _Way) -> Floats | None:
        """A point on a unit's other side, behind some walls: from each on it goes on within the plane of all walls met so far.

        It ends early if the rest of the way is long beside what was gained since the last wall.
        """
        cell, row = self._cell, self._rows[unit]
        point, slacks, left = cell.point.copy(), cell.signs * cell.values, abs(self._values[unit])
        direction, rates, fall, reach, wall = way.direction, way.rates, way.fall, way.reach, way.wall
        images = np.zeros((0, len(row)))
        for walls in range(_WALLS, 0, -1):
            gain = 0.98 * reach * fall
            if left > _HOPE * walls * gain:
                return None
            point += 0.98 * reach * direction
            slacks += 0.98 * reach * cell.signs * rates
            left -= gain
            normal = cell.row(wall)
            image = self._metric(normal) - (images @ normal) @ images
            size = float(normal @ image)
            if not size > 0.0:
                return None
            image /= math.sqrt(size)
            images = np.vstack([images, image])
            direction = direction - (normal @ direction / math.sqrt(size)) * image
            rates, fall = cell.rates(direction), abs(float(row @ direction))
            if fall <= 1e-9 * way.fall:
                return None
            reach, wall = first_wall(point, slacks, direction, cell.signs * rates)
            if reach * (1.0 - _NEAR) * fall > left:
                return point + 0.5 * (left / fall + reach) * direction
        return None

    def _choose(self, unit: int, way: _Way, there: Floats | None, *, other: bool) -> None:
        """Go to the middle of the way on one side of a unit, or to a point found, and stay on that side."""
        cell = self._cell
        if there is None:
            step = (way.need + way.reach) / 2.0
            if not other:
                step = (way.need - cell.reach(-way.direction, -way.rates)[0]) / 2.0
            cell.move(step, way.direction, way.rates)
        elif other:
            cell.point[:] = there
            cell.refresh()
        self.active[unit] ^= other
        self._enter(unit, way)

    def _enter(self, unit: int, way: _Way) -> None:
        """Keep to a unit's state, and go towards the middle."""
        cell, sign = self._cell, 1.0 if self.active[unit] else -1.0
        cell.signs[self._first + unit] = sign
        scale = max(sign * self._values[unit], THIN) ** 2 + way.fall
        self._metric.add(way.image, scale)
        self._lengths = np.maximum(self._lengths - (way.rates[self._first :]) ** 2 / scale, 1e-12 * self._lengths)
        direction = -self._metric(cell.slope())
        rates = cell.rates(direction)
        cell.move(min(1.0, 0.5 * cell.reach(direction, rates)[0]), direction, rates)
        self._since += 1

    def _program(self, unit: int) -> Floats | None:
        """A point on a unit's other side by linear programming: as far from all walls as can be, if there is one."""
        rows, offsets = self._cell.walls()
        sign = -1.0 if self.active[unit] else 1.0
        rows, offsets = np.vstack([rows, sign * self._rows[unit]]), np.append(offsets, sign * self._constants[unit])
        n = rows.shape[1]
        found = linprog(
            np.append(np.zeros(n), -1.0),
            A_ub=np.column_stack([-rows, np.abs(rows).sum(axis=1)]),
            b_ub=offsets,
            bounds=[(-1.0 + 1e-9, 1.0 - 1e-9)] * n + [(0.0, 1.0)],
            options={"maxiter": _PIVOTS},
        )
        self.undecided += found.status not in {0, 2}
        return found.x[:n] if found.status == 0 and found.x[n] > 1e-12 else None
