"""The walls of a region, proved, and what lies behind them.

A *wall* of a region is a facet of its closure that is not in the domain's boundary: where a unit is 0, on a set of one dimension less than the
region's.  Two regions share a wall if their closures have such a set in common.

**Theorem.**  Behind a wall lies one region, and the whole wall is a wall of that region, too.

*Proof.*  On the wall's relative interior a unit is either 0 everywhere or nowhere: its row is affine on the closed region, and not negative (for an
inactive unit, not positive) there.  Take a point of that interior.  Preactivations are continuous, so near it the units that are not 0 keep their
states.  The others are decided behind the wall layer by layer: where the layers before have their states, a unit that is 0 on the wall has a
row that is a multiple of the wall's, so it has one sign, or is 0.  No point was special, so one pattern lies behind all of the wall.  By the same
argument from behind, that region's wall is not larger.  QED.

So a wall is found by deciding whether a row is 0 on a set of full dimension of the region's closure, and the pattern behind it follows by arithmetic.
The rows are exact (`tessella.partition.exact`), and rounded for floating-point arithmetic, which knows by how much:

- a ray from a point inside, that leaves the region through one row and no other, shows a wall;
- a linear program proves that a row is positive on all of the region, so there is none (Clarkson 1994: of rows that are known to be walls, few
  suffice, and where its point lies outside of the region, a ray to it finds another wall);
- what is left, such as rows that meet the region in a corner, is decided in whole numbers on the row's own hyperplane.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tessella.domain import Box, Domain
from tessella.kernel.deadline import NEVER, Deadline
from tessella.kernel.program import Program
from tessella.network import Floats, Mask, Network
from tessella.numerics import ROUNDOFF
from tessella.partition.exact import Exact, Sides
from tessella.partition.inside import point_inside, rounding
from tessella.partition.integers import Integers, ends, rows_of
from tessella.partition.tree import Tree
from tessella.partition.witness import deep_points, prefix_of

_OPTIONAL_RAYS = 16  # in random directions, besides one for each row
_UNKNOWN, _NO, _YES = -1, 0, 1
_NOTHING: Mapping[int, bool] = {}


class Wall(NamedTuple):
    """A wall of a region."""

    units: tuple[int, ...]  # the ReLUs that change there, by their numbers in the pattern
    behind: Mask  # the pattern of the region behind it


class Walls(NamedTuple):
    """What is known of the walls of a region."""

    found: tuple[Wall, ...]  # those that are proved
    undecided: tuple[int, ...]  # ReLUs of which it could not be decided in time whether they make one


class Facets:
    """Finds the walls of the regions of a network on a bounded domain.

    Examples
    --------
    >>> network = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 0.0, -1.5])], relu_output=True)
    >>> Facets(network, Box(-1, 1, dim=2)).of(np.array([False, False, False])).found
    (Wall(units=(0,), behind=array([ True, False, False])), Wall(units=(1,), behind=array([False,  True, False])))
    """

    def __init__(self, network: Network, domain: Domain) -> None:
        """Nothing is computed yet."""
        self._tree = Tree(network, domain)
        self._exact = Exact(self._tree)
        self._cube = Box.cube(0.0, 1.0, max(domain.free_dim, 1))

    def of(self, pattern: Mask, deadline: Deadline = NEVER, known: Mapping[int, bool] = _NOTHING) -> Walls:
        """The walls of a region.

        Parameters
        ----------
        pattern
            One state per ReLU, as a point inside has them.
        deadline
            Exact arithmetic is not begun after it.
        known
            Of some ReLUs, whether they are known to make a wall where they are the first unit that changes; these walls are not given again.
        """
        prefix = prefix_of(pattern)
        sides = self._exact.sides(prefix)
        if sides is None:
            return Walls((), ())
        cell = _Cell.of(sides, self._cube, known)
        cell.look()
        found, undecided = list[Wall](), list[int]()
        for number, units in enumerate(cell.units):
            if units[0] in known:
                continue
            if cell.state[number] == _UNKNOWN:
                if deadline.passed or not self._tree.is_small:
                    undecided.append(units[0])
                    continue
                cell.state[number] = _YES if _is_wall(cell.numbers, number) else _NO
            if cell.state[number] == _YES:
                found.append(self._wall(prefix, sides, cell.numbers[number].tolist(), units))
        return Walls(tuple(found), tuple(undecided))

    def _wall(self, prefix: bytes, sides: Sides, row: list[int], units: list[int]) -> Wall:
        """The wall that a row makes; if it is that of one unit alone and no unit is 0 all over the region, nothing else changes."""
        pattern = np.frombuffer(prefix, dtype=np.bool_)
        if sides.flat or len(units) > 1:
            behind = np.frombuffer(self._exact.behind(prefix, row), dtype=np.bool_)
        else:
            behind = pattern.copy()
            behind[units] ^= True
        return Wall(tuple(np.flatnonzero(behind != pattern).tolist()), behind)


@dataclass(slots=True)
class _Cell:
    """The rows of a region, each once; those that may be walls come first."""

    numbers: Integers  # in whole numbers; the domain's last
    units: list[list[int]]  # for each of the first rows the units that it belongs to
    # rows, constants, doubts: rounded, with the cube's own sides at the end: ``rows @ u + constants`` is positive inside, and off
    # by at most the doubt
    rows: Floats
    constants: Floats
    doubts: Floats
    state: npt.NDArray[np.int8]  # what is known of each: _YES for a wall, _NO, or _UNKNOWN
    cube: Box  # where u is
    # a point that lies inside, as floating-point arithmetic shows; empty where it shows none
    inside: Floats = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, sides: Sides, cube: Box, known: Mapping[int, bool]) -> "_Cell":
        """From the sides of a region."""
        classes, outer = dict[tuple[int, ...], list[int]](), dict[tuple[int, ...], int]()
        first = dict[tuple[int, ...], int]()
        for place, (row, unit) in enumerate(zip(sides.rows.numbers.tolist(), sides.units, strict=True)):
            key = tuple(row)
            first.setdefault(key, place)
            if unit < 0:
                outer[key] = place
            elif key not in outer:
                classes.setdefault(key, []).append(unit)
        order = [first[key] for key in classes] + list(outer.values())
        rows, dim = sides.rows[order], sides.rows.numbers.shape[1] - 1
        unit, floats = np.eye(dim), rows.floats
        doubts = np.concatenate([rounding(floats, 1.0), np.full(2 * dim, 4.0 * ROUNDOFF)])
        coefficients = np.vstack([floats[:, :-1], unit, -unit])
        constants = np.concatenate([floats[:, -1], np.zeros(dim), np.ones(dim)])
        units = list(classes.values())
        state = np.full(len(units), _UNKNOWN, dtype=np.int8)
        for number, own in enumerate(units):
            if own[0] in known:
                state[number] = _YES if known[own[0]] else _NO
        return cls(rows.numbers, units, coefficients, constants, doubts, state, cube)

    def look(self) -> None:
        """Decide what floating-point arithmetic can decide."""
        if not (self.state == _UNKNOWN).any() or not self._enter():
            return
        rng = np.random.default_rng(0)  # any directions will do
        self._shoot(np.vstack([-self.rows[: len(self.units)], rng.standard_normal((_OPTIONAL_RAYS, self.rows.shape[1]))]))
        domain, program = np.arange(len(self.units), len(self.numbers)), None
        used, unsure = np.zeros(0, dtype=np.int64), set[int]()
        lower, upper = np.zeros(self.rows.shape[1]), np.ones(self.rows.shape[1])
        while left := [number for number in np.flatnonzero(self.state == _UNKNOWN).tolist() if number not in unsure]:
            now = np.concatenate([np.flatnonzero(self.state == _YES), domain])
            if program is None or len(now) != len(used):
                used, program = now, Program(self.rows[now]) if len(now) else None
            number, low = left[0], -self.constants[used] - self.doubts[used]
            none = float(self.constants[number] - 2.0 * self.doubts[number])
            if program is None:
                far = np.where(self.rows[number] < 0.0, 1.0, 0.0)
            else:
                most = np.abs(program.matrix).sum(axis=1) + np.abs(low) + 1.0
                found = program.maximise(-self.rows[number], lower, upper, low, most, cutoff=none)
                if found.bound < none:
                    self.state[number] = _NO
                    continue
                far = np.clip(found.x, 0.0, 1.0)
            before = int((self.state == _YES).sum())
            self._shoot((far - self.inside)[None])
            if self.state[number] == _UNKNOWN and int((self.state == _YES).sum()) == before:
                unsure.add(number)

    def _enter(self) -> bool:
        """Find a point that floating-point arithmetic shows to be inside."""
        own = len(self.numbers)
        for point in deep_points(self.cube, self.rows[:own], self.constants[:own]):
            if (self.rows @ point + self.constants > self.doubts).all():
                self.inside = point
                return True
        return False

    def _shoot(self, directions: Floats) -> None:
        """Follow rays from the point inside; what each leaves the region through, and nothing else, is a wall.

        A point of the ray that lies behind one row and inside all others shows that; between the two points the row is 0 somewhere, and
        the others are positive there.
        """
        start = self.rows @ self.inside + self.constants
        slopes = self.rows @ directions.T
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            times = np.where(slopes < 0.0, start[:, None] / -slopes, np.inf)
            two = np.partition(times, 1, axis=0)[:2]
            points = self.inside[:, None] + directions.T * (two.sum(axis=0) / 2.0)
            values = self.rows @ points + self.constants[:, None]
        outside = values < -self.doubts[:, None]
        sure = (outside.sum(axis=0) == 1) & ((values > self.doubts[:, None]).sum(axis=0) == len(self.rows) - 1)
        hit = outside[:, sure].any(axis=1)[: len(self.units)]
        self.state[hit] = _YES


def _is_wall(numbers: Integers, chosen: int) -> bool:
    """Whether a row is 0 on a set of full dimension of the cell of all rows: in whole numbers, on the row's hyperplane.

    One input is eliminated.  Its ends in the cube become rows, and all rows but the chosen one must be positive at one point.
    """
    wall = numbers[chosen]
    place = int(np.argmax(np.abs(wall[:-1])))
    pivot = wall[place]
    sign = 1 if pivot > 0 else -1
    others = np.delete(numbers, chosen, axis=0)
    there = sign * (others * pivot - others[:, [place]] * wall)
    upper = sign * wall
    upper[-1] += abs(pivot)
    rows = np.delete(np.vstack([there, -sign * wall[None], upper[None]]), place, axis=1)
    least, most = ends(rows)
    if (most <= 0).any():
        return False
    cut = least < 0
    return not cut.any() or point_inside(rows_of(rows[cut])) is not None
