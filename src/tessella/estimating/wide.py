"""Random descents for many inputs and many units: one point in the middle of its cell, and no linear programs.

**Why no test is needed.**  Let a descent choose signs in any way, and let q be the product of the probabilities of its choices.  Then X = 1 / q if the pattern
that it ends in is a region, and 0 if not, has mean N, the number of regions, as long as every region can be reached: sum of q times 1 / q over the
regions (importance sampling).  Whether *other* sides exist need not be known.  It only has to be guessed well, for else X spreads.

**The point.**  The descent carries a point strictly inside its cell, near the middle: where the product of all distances to walls is
largest, followed by Newton's method.  The Hessian of that logarithmic barrier is a metric in which the cell is about round.  For a unit
the steepest way in that metric leads to its other side, if it has one in the cell, or to a wall; from there it goes on along up to a few walls.  If the other side
is found, each side is taken with about the same probability.  If not, it is taken with a small probability (all of a descent's units together: one in fifty), and
then a linear program looks for a point there; if there is none, X is 0.

**The order.**  Of a layer's units the one whose border passes nearest to the point in the metric is next; those whose other side was not
found wait until the others are done.  Halving cells keeps them round, and what is next matters little to what follows: both make X spread less.

**The tilt.**  An active unit leaves later layers more room, so behind it there are more regions.  How many bits more a layer's active units bring is learned from
earlier descents, one number per layer; active sides are taken with a probability to match.

**What is certain.**  At the end the point is checked with a bound on all rounding errors: it lies in the domain, and has the pattern.  X is
positive only then.  So X never counts what is not there, and the lower bound needs nothing else.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs  # pyright: ignore[reportAttributeAccessIssue]
from scipy.optimize import linprog
from scipy.sparse import csr_array, issparse

from tessella.domain import Polytope
from tessella.estimating.descents import Batch, Records, Shape
from tessella.network import Floats, Mask
from tessella.partition.tree import Tree
from tessella.partition.witness import Witness

_DEEP, _MANY = 12, 2000  # dimensions, and dimensions times units, from which on these descents were better
_LARGE = 8_000_000  # inputs times dimensions times units: from here on a count does not come far
_EVERY = 12  # units between two computations of the metric
_WALLS = 20  # walls that a search goes along
_CHANCE = 0.02  # of entering any side that was not found, all units together
_NEAR = 1e-6  # part of a way that is left to a wall
_PIVOTS = 5000  # of a linear program: a limit that does not depend on the machine, as no answer may
_PRIOR = 2.0  # a slope of 0 counts like so many descents whose active units spread by 1
_MOST = 1.5  # the largest tilt: 4.5 to 1

_SPARSE = 0.1  # share of entries that are not 0, below which matrices are stored sparsely
_FEW = 0.7  # walls per input, below which the formula of Woodbury is cheaper
_THIN = 1e-14  # the least distance to a wall; where it is less, the check at the end tells
_HOPE = 4.0  # how much more than so far is expected from each further wall

Rows = Any  # a dense or a sparse matrix


def is_wide(tree: Tree) -> bool:
    """Whether these descents give the better bound; where there are few units or few dimensions, linear programs and predictions do."""
    dimensions = min(tree.domain.free_dim, tree.network.layers[0].units)
    return dimensions >= _DEEP and dimensions * tree.units > _MANY


def is_large(tree: Tree) -> bool:
    """Whether it is no use to count."""
    return tree.domain.free_dim * min(tree.domain.free_dim, tree.network.layers[0].units) * tree.units > _LARGE


class Answered(NamedTuple):
    """How many cells were too thin: all of them, and those not settled."""

    asked: int
    given_up: int

    def __len__(self) -> int:
        """How many were asked."""
        return self.asked


def _lean(matrix: Floats) -> Rows:
    """The same matrix, stored sparsely if most of it is 0: rows of convolutions."""
    return csr_array(matrix) if np.count_nonzero(matrix) < _SPARSE * matrix.size else np.ascontiguousarray(matrix)


class _Cell:
    """A point inside walls: the ends of the box [-1, 1]^n, and units whose signs are decided.

    ``values`` are those of the domain's inequalities and of all units so far at the point, ``signs`` what is decided: 1, -1, or 0 if nothing is.
    """

    def __init__(self, normals: Floats, constants: Floats, point: Floats) -> None:
        self.point, self._blocks, self._constants = point.copy(), [_lean(normals)], constants
        self.signs = np.ones(len(constants))
        self.refresh()

    def extend(self, rows: Floats, constants: Floats) -> None:
        """Add undecided units."""
        self._blocks.append(_lean(rows))
        self._constants = np.concatenate([self._constants, constants])
        self.signs = np.concatenate([self.signs, np.zeros(len(constants))])
        self.refresh()

    def rates(self, direction: Floats) -> Floats:
        """How fast values change."""
        return np.concatenate([block @ direction for block in self._blocks])

    def refresh(self) -> None:
        """Compute the values anew."""
        self.values = self.rates(self.point) + self._constants

    def move(self, step: float, direction: Floats, rates: Floats) -> None:
        """Go in a direction."""
        self.point += step * direction
        self.values += step * rates

    def reach(self, direction: Floats, rates: Floats) -> tuple[float, int]:
        """How far one can go, and which wall is in the way."""
        return _reach(self.point, self.signs * self.values, direction, self.signs * rates)

    def row(self, number: int) -> Floats:
        """The row of a unit, or for -1 - j that of input j."""
        if number < 0:
            unit = np.zeros(len(self.point))
            unit[-1 - number] = 1.0
            return unit
        for block in self._blocks:
            if number < block.shape[0]:
                return block[[number]].toarray()[0] if issparse(block) else cast("Floats", block)[number]
            number -= block.shape[0]
        raise IndexError(number)

    def metric(self) -> "_Metric":
        """The inverse of the Hessian at the point."""
        self.refresh()
        walls = np.flatnonzero(self.signs)
        slacks = np.maximum((self.signs * self.values)[walls], _THIN)
        starts = np.cumsum([0, *(block.shape[0] for block in self._blocks)])
        parts = [
            block[walls[(walls >= start) & (walls < start + block.shape[0])] - start]
            for block, start in zip(self._blocks, starts, strict=False)
        ]
        parts = [part for part in parts if part.shape[0]]
        return _Metric(1.0 / (1.0 - self.point) ** 2 + 1.0 / (1.0 + self.point) ** 2, parts, slacks)

    def walls(self) -> tuple[Floats, Floats]:
        """Rows and constants of all that is decided, positive in the cell."""
        decided = np.flatnonzero(self.signs)
        signs = self.signs[decided]
        return signs[:, None] * np.array([self.row(int(number)) for number in decided]).reshape(
            len(decided), -1
        ), signs * self._constants[decided]

    def slope(self) -> Floats:
        """The gradient of minus the sum of the logarithms of all distances to walls."""
        pull = np.where(self.signs == 0.0, 0.0, self.signs / np.maximum(self.signs * self.values, _THIN))
        start, total = 0, 1.0 / (1.0 - self.point) - 1.0 / (1.0 + self.point)
        for block in self._blocks:
            total -= pull[start : start + block.shape[0]] @ block
            start += block.shape[0]
        return total


class _Metric:
    """The inverse of the Hessian diag(box) + rows' slacks^-2 rows, as products with vectors; further rows are added one by one."""

    def __init__(self, box: Floats, parts: Sequence[Rows], slacks: Floats) -> None:
        self._box, self._few = box, len(slacks) <= _FEW * len(box)
        self._parts = parts
        if self._few:  # the formula of Woodbury
            rows = np.vstack([part.toarray() if issparse(part) else part for part in parts] or [np.zeros((0, len(box)))])
            self._rows = rows
            hessian = (rows / box) @ rows.T
            hessian[np.diag_indices(len(rows))] += slacks**2
        else:
            hessian, start = np.diag(box), 0
            for part in parts:
                part = part / slacks[start : start + part.shape[0], None]  # noqa: PLW2901
                start += part.shape[0]
                product = part.T @ part
                hessian += product.toarray() if issparse(product) else product
        self._factor, _ = dpotrf(hessian, lower=1, clean=0)
        self._added = np.zeros((0, len(box)))

    def __call__(self, vectors: Floats) -> Floats:
        """The product with a vector, or with each row of a matrix."""
        if self._few:
            found = vectors / self._box
            if len(self._rows):
                found -= self._solve(self._rows @ found.T).T @ self._rows / self._box
        else:
            found = self._solve(vectors.T).T
        return found - (vectors @ self._added.T) @ self._added

    def _solve(self, columns: Floats) -> Floats:
        return dpotrs(self._factor, columns, lower=1)[0].reshape(columns.shape)

    def add(self, image: Floats, scale: float) -> None:
        """One more row, from its product with the metric: divided by ``scale``, the square of its slack plus that of its length."""
        self._added = np.vstack([self._added, image / math.sqrt(scale)])


class _Way(NamedTuple):
    """The steepest way from a point to a unit's border.

    Parameters
    ----------
    image
        The product of the metric with the unit's row.
    direction, rates
        Where it goes, and how fast the distances to the cell's rows change.
    fall
        How fast the unit's value comes nearer to zero.
    need, reach
        The step to the unit's border, and to the first wall.
    wall
        That wall: the number of a row, or -1 - j for an end of input j.
    """

    image: Floats
    direction: Floats
    rates: Floats
    fall: float
    need: float
    reach: float
    wall: int

    @property
    def crosses(self) -> bool:
        """Whether the border comes before the wall."""
        return self.reach * (1.0 - _NEAR) > self.need


def _reach(point: Floats, slacks: Floats, direction: Floats, rates: Floats) -> tuple[float, int]:
    """How far one can go, and which wall is in the way."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ends = np.where(direction == 0.0, np.inf, (np.where(direction > 0.0, 1.0, -1.0) - point) / direction)
        steps = np.where(rates < 0.0, -slacks / rates, np.inf)
    end = int(ends.argmin())
    row = int(steps.argmin()) if len(steps) else -1
    return (float(steps[row]), row) if row >= 0 and steps[row] < ends[end] else (float(ends[end]), -1 - end)


class _Layer:
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

    def __init__(self, cell: _Cell, rows: Floats, constants: Floats, rectified: Mask) -> None:
        self._cell, self._rows, self._constants, self._first = cell, rows, constants, len(cell.signs)
        cell.extend(rows, constants)
        sizes = np.abs(rows).sum(axis=1)
        sure = (np.abs(constants) > sizes * (1.0 + 1e-9)) | (sizes == 0.0)
        self.active = np.where(sure, constants > 0.0, self._values > 0.0) | ~rectified
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
            reach, wall = _reach(point, slacks, direction, cell.signs * rates)
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
        scale = max(sign * self._values[unit], _THIN) ** 2 + way.fall
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


class _Ended(NamedTuple):
    """Where a descent ended.

    Parameters
    ----------
    logarithm
        That of one over its probability; minus infinity if it ended nowhere.
    pattern
        Its leaf.
    active, splits
        How many units are active there, per layer; how many units had both sides.
    """

    logarithm: float
    pattern: Mask
    active: list[int]
    splits: int


class Tilts:
    """How many more regions there are behind an active unit, per layer, learned as descents come in.

    A regression of the number of units with both sides on the numbers of active ones, towards 0 where little is known.

    Parameters
    ----------
    layers
        How many layers there are.
    """

    def __init__(self, layers: int) -> None:
        """Nothing is learned yet."""
        self._active, self._splits = np.zeros((0, layers)), np.zeros(0)
        self.theta = np.zeros(layers)

    def add(self, records: Records) -> None:
        """Take in what a batch of rounds noted."""
        self._active = np.vstack([self._active, records.features])
        self._splits = np.concatenate([self._splits, records.leaves])

    def learn(self) -> Floats:
        """Fit."""
        if len(self._splits) > 1:
            active, splits = self._active - self._active.mean(axis=0), self._splits - self._splits.mean()
            active[:, -1] = 0.0  # nothing is behind the last layer
            spread = splits @ splits / len(splits)
            slopes = np.linalg.solve(active.T @ active + (_PRIOR * spread + 1e-9) * np.eye(len(self.theta)), active.T @ splits)
            self.theta = np.clip(slopes * math.log(2.0), -_MOST, _MOST)
        return self.theta


class WideDescents:
    """Random descents for many inputs and many units; one object serves one thread.

    Parameters
    ----------
    tree
        The tree; it has a unit, and its domain a free input.
    chance
        The probability with which sides that were not found are entered, all units together.
    """

    def __init__(self, tree: Tree, *, chance: float = _CHANCE) -> None:
        """Find a point of the domain."""
        self.shape, self._tree, self._chance = Shape.of(tree), tree, chance / tree.units
        box = tree.domain.box
        self._free = box.free
        self._centre, self._radius = box.lower / 2.0 + box.upper / 2.0, box.upper / 2.0 - box.lower / 2.0
        self._start = np.zeros(int(box.free.sum()))
        if isinstance(tree.domain, Polytope):
            self._start = ((tree.domain.centre - self._centre) / np.where(box.free, self._radius, 1.0))[box.free]
        self._witness = Witness(tree.network, tree.domain)
        self.answers = Answered(0, 0)

    def rounds(self, first: int, count: int, base: int, theta: Floats) -> Batch:
        """Some rounds; the same numbers and base give the same results."""
        found = [self._descend(first + number, base, theta) for number in range(count)]
        ended = [one for one in found if math.isfinite(one.logarithm)]
        layers = len(self._tree.scaled.rectified)
        features = np.array([one.active for one in ended], dtype=np.float32).reshape(len(ended), layers)
        leaves = np.array([one.splits for one in ended], dtype=np.float64)
        records = Records(features, np.zeros((len(ended), 3), dtype=np.int64), leaves)
        return Batch(np.array([one.logarithm for one in found]), records)

    def leaf(self, number: int, base: int, theta: Floats) -> tuple[float, bytes, int]:
        """One leaf: the logarithm of its weight, its prefix, and how many regions are behind that."""
        found = self._descend(number, base, theta)
        return found.logarithm, found.pattern.astype(np.int8).tobytes(), int(math.isfinite(found.logarithm))

    def _descend(self, number: int, base: int, theta: Floats) -> _Ended:
        """One descent."""
        rng, scaled = np.random.default_rng([base, number]), self._tree.scaled
        cell = _Cell(scaled.normals, scaled.constants, self._start)
        total, splits, chosen = 0.0, 0, list[Mask]()
        rows, constants = scaled.weights[0], scaled.biases[0]
        for depth, rectified in enumerate(scaled.rectified):
            if depth:
                live = chosen[-1]
                weights = scaled.weights[depth][:, live]
                rows, constants = weights @ rows[live], weights @ constants[live] + scaled.biases[depth]
            layer = _Layer(cell, rows, constants, rectified)
            total += layer.decide(rng, self._chance, float(theta[depth]))
            self._give_up(layer.undecided)
            splits += layer.splits
            chosen.append(layer.active)
            if math.isinf(total):
                break
        pattern = np.concatenate([active[on] for active, on in zip(chosen, scaled.rectified, strict=False)])
        if math.isfinite(total) and not self._proved(cell.point, pattern):
            self._give_up(1)
            total = math.inf
        active = [int((states & on).sum()) for states, on in zip(chosen, scaled.rectified, strict=False)]
        return _Ended(total if math.isfinite(total) else -math.inf, pattern, active, splits)

    def _give_up(self, cells: int) -> None:
        self.answers = Answered(self.answers.asked + cells, self.answers.given_up + cells)

    def _proved(self, point: Floats, pattern: Mask) -> bool:
        """Whether a point proves that a pattern is a region."""
        place = self._centre.copy()
        place[self._free] += self._radius[self._free] * point
        found = self._witness.pattern(place) if self._tree.is_small else self._witness.quick(place)
        return found is not None and bool((found == pattern).all())
