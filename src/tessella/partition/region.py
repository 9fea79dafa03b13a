"""A region: its pattern, a point in it, its affine map, its walls and what lies behind them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, SupportsIndex, cast

import numpy as np

from tessella.answer import Answer, bits, past, read_bits, whole
from tessella.domain import Box, Domain, Polytope
from tessella.kernel.deadline import Deadline
from tessella.kernel.program import Program
from tessella.network import Floats, Mask, Network
from tessella.options import check_seconds
from tessella.partition.exact import Exact
from tessella.partition.facets import Facets
from tessella.partition.recession import is_bounded
from tessella.partition.tree import Tree
from tessella.partition.witness import Proof, prefix_of, walls
from tessella.unbounded import as_bounded

_FLAT = 1e-8  # of a row's range: by how much a wall that is not redundant cuts; the linear programs are off by 1e-10
_FARTHEST = 1e100  # what is taken of a wall's distance
_FEW = 16  # inputs; with more, the faces of the box would be most of the walls


@dataclass(frozen=True, slots=True, eq=False)
class Region(Answer):
    """All inputs of a domain for which every ReLU has one state.

    Two regions are equal if they have the same pattern in the same network and domain.

    Parameters
    ----------
    network, domain
        The network, and where.
    pattern
        Which ReLUs are active, as `Network.patterns` gives it for points inside.
    point
        A point inside, where exact arithmetic gives every ReLU this state.  None if the region is so thin that no such
        point was found among the floating-point numbers; it is proved all the same.
    """

    network: Network
    domain: Domain
    pattern: Mask
    point: Floats | None = None

    def __post_init__(self) -> None:
        """Make read-only."""
        self.pattern.flags.writeable = False
        if self.point is not None:
            self.point.flags.writeable = False

    @property
    def affine_map(self) -> tuple[Floats, Floats]:
        """What the network is here: ``x -> matrix @ x + offset``."""
        return self.network.affine_map(self.pattern)

    def inequalities(self, *, redundant: bool = True) -> tuple[Floats, Floats]:
        """The region as ``matrix @ x <= offset``.

        Parameters
        ----------
        redundant
            Whether to give all inequalities: one for each ReLU in layer order, then the domain's (those of a polytope, the
            upper ends of its box, the lower ends).  Otherwise only those without which the region would be larger, in the same
            order, as far as linear programs in floating-point arithmetic tell.  Both ends of a fixed input are kept; infinite ends
            say nothing, and are left out.
        """
        matrix, offset = _inequalities(self)
        if redundant:
            kept = np.isfinite(offset)
        elif self.domain.bounded:
            kept = _needed(matrix, offset, self.domain.box, faces=True)
        else:
            kept = _needed_anywhere(matrix, offset, self.domain.box)
        return matrix[kept], offset[kept]

    @property
    def bounded(self) -> bool | None:
        """Whether the region is, proved: always on a bounded domain; None where that could not be decided."""
        return self.domain.bounded or is_bounded(self.network, self.domain, self.pattern)

    @property
    def radius(self) -> float:
        """The radius of a largest ball inside, in the space of the free inputs; 0 where floating point sees none, infinite if balls of any size fit."""
        if not self.domain.bounded:
            return _largest_radius(*self.inequalities(), self.domain.box)
        walled = _Walled.of(self)
        low, high = 0.0, float(np.min(walled.half, initial=np.inf))
        if not np.isfinite(high):
            return 0.0
        if len(walled.half) <= _FEW:
            return walled.ball() * walled.unit
        for _ in range(60):  # the larger the ball, the smaller the box of its centre
            radius = (low + high) / 2.0
            fits = walled.deepest(radius)[1] >= radius
            low, high = (radius, high) if fits else (low, radius)
        return low * walled.unit

    def neighbours(self, *, seconds: float | None = None) -> "Neighbours":
        """The regions behind the walls that are not the domain's, one behind each.

        Regions meet in whole walls: a unit of a later layer that is 0 somewhere inside a wall is 0 on all of it, because
        preactivations are continuous.  Several units may change at one wall, such as equal ones.  Each wall is proved
        (`tessella.partition.facets`).

        Parameters
        ----------
        seconds
            Exact arithmetic, which decides what floating-point numbers cannot, begins nothing new after this time.
        """
        check_seconds(seconds, "a search for neighbours")
        bounded = as_bounded(self.network, self.domain)
        walls_of, prove = Facets(*bounded).of(self.pattern, Deadline.after(seconds)), Proof(self.network, self.domain)
        found = tuple(Region(self.network, self.domain, wall.behind, prove.point(wall.behind)) for wall in walls_of.found)
        return Neighbours(self, found, tuple(wall.units for wall in walls_of.found), walls_of.undecided)

    def __eq__(self, other: object) -> bool:
        """Same pattern, network and domain."""
        return (
            isinstance(other, Region)
            and np.array_equal(self.pattern, other.pattern)
            and self.network == other.network
            and self.domain == other.domain
        )

    def __hash__(self) -> int:
        """Consistent with equality."""
        return hash(self.pattern.tobytes())

    def __repr__(self) -> str:
        """One line a person can read."""
        point = None if self.point is None else np.array2string(self.point, precision=4, threshold=6, edgeitems=2, separator=", ")
        where = "thinner than floating-point numbers can tell" if point is None else f"around {point}"
        return f"Region({int(self.pattern.sum())} of {len(self.pattern)} ReLUs active, {where})"

    def rows(self) -> list[dict[str, Any]]:
        """One row: how many ReLUs are active, which, and a point inside."""
        point = None if self.point is None else str(self.point.tolist())
        return [{"active": int(self.pattern.sum()), "pattern": bits(self.pattern), "point": point}]

    def _title(self) -> str:
        return f"A region of {self.network.shape} on {self.domain.describe()}"

    def _record(self) -> dict[str, Any]:
        return {
            **past(self.network, self.domain),
            "pattern": bits(self.pattern),
            "point": None if self.point is None else self.point.tolist(),
        }

    @classmethod
    def _placed(cls, record: Mapping[str, Any], network: Network | None) -> dict[str, Any]:
        point = None if record["point"] is None else np.array(record["point"], dtype=np.float64)
        return {**super(Region, cls)._placed(record, network), "pattern": read_bits(record["pattern"]), "point": point}


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours(Answer):
    """The regions that share a wall with a region, each once; a sequence of regions.

    Parameters
    ----------
    region
        Whose they are.
    regions
        The regions.  Each is proved, and so is the wall; its point is None where floating-point numbers show none.
    units
        For each of them the ReLUs that change at the wall, by their numbers in the pattern.
    undecided
        ReLUs of which it could not be decided whether they make one more wall: exact arithmetic would have taken too long.  If there is none,
        these are all neighbours.
    """

    region: Region
    regions: tuple[Region, ...]
    units: tuple[tuple[int, ...], ...]
    undecided: tuple[int, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether these are all."""
        return not self.undecided

    def __iter__(self) -> Iterator[Region]:
        """The regions."""
        return iter(self.regions)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.regions)

    def __getitem__(self, number: SupportsIndex) -> Region:
        """One of them."""
        return self.regions[number]

    def __repr__(self) -> str:
        """One line a person can read."""
        left = f", {len(self.undecided):,} ReLUs undecided" if self.undecided else ""
        return f"Neighbours({len(self):,} region{'' if len(self) == 1 else 's'} behind proved walls{left})"

    def rows(self) -> list[dict[str, Any]]:
        """One row per neighbour: which ReLUs change, and what `Region.rows` says."""
        changes = (", ".join(map(str, units)) for units in self.units)
        return [{"changes": change, **region.rows()[0]} for change, region in zip(changes, self.regions, strict=True)]

    def _title(self) -> str:
        return f"Neighbours of a region of {self.region.network.shape} on {self.region.domain.describe()}"

    def _record(self) -> dict[str, Any]:
        behind = [
            {"pattern": bits(region.pattern), "point": None if region.point is None else region.point.tolist(), "units": units}
            for region, units in zip(self.regions, self.units, strict=True)
        ]
        return {**self.region.to_dict(), "neighbours": behind, "undecided": self.undecided}

    @classmethod
    def _placed(cls, record: Mapping[str, Any], network: Network | None) -> dict[str, Any]:
        whole_of = [whole(record, one) for one in record["neighbours"]]
        return {
            "region": Region.from_dict(record, network=network),
            "regions": tuple(Region.from_dict(one, network=network) for one in whole_of if one is not None),
            "units": tuple(tuple(int(unit) for unit in one["units"]) for one in record["neighbours"]),
            "undecided": tuple(int(unit) for unit in record["undecided"]),
        }


def _inequalities(region: Region) -> tuple[Floats, Floats]:
    """All of them: of the ReLUs, of a polytope, of the box's upper ends, of its lower ends."""
    normals, constants = walls(region.network, region.pattern)
    domain, unit = region.domain, np.eye(region.domain.dim)
    own = (domain.matrix, domain.offset) if isinstance(domain, Polytope) else (unit[:0], domain.box.upper[:0])
    return np.vstack([-normals, own[0], unit, -unit]), np.concatenate([constants, own[1], domain.box.upper, -domain.box.lower])


def _needed(matrix: Floats, offset: Floats, box: Box, *, faces: bool) -> Mask:
    """Which of a region's inequalities are not redundant; those of the box are looked at only if asked for.

    One after the other is moved outward.  If its row's maximum over the others stays where it was, it is left there, out of the
    way.  ReLUs come first: one that lies in a face of the domain is redundant, and the face is not.
    """
    free, dim = box.free, box.dim
    rows, fixed = matrix[: -2 * dim, free], matrix[: -2 * dim, ~free] @ box.lower[~free]
    limits, width = offset[: -2 * dim] - fixed, (box.upper - box.lower)[free]
    lower, upper = box.lower[free], box.upper[free]
    middle, reach = rows @ (lower / 2.0 + upper / 2.0), np.abs(rows) @ width
    low, high = np.minimum(middle, limits) - 2.0 * reach - 1.0, np.maximum(middle, limits) + reach + 1.0
    kept = np.ones(len(offset), dtype=np.bool_)
    kept[: len(rows)] = (reach > 0.0) & (middle + reach / 2.0 > limits + _FLAT * reach)
    high[kept[: len(rows)]] = limits[kept[: len(rows)]]
    if not kept[: len(rows)].any():  # nothing but the box
        return kept
    program = Program(rows)
    for row in np.flatnonzero(kept[: len(rows)]):
        high[row] = limits[row] + reach[row]
        most = program.maximise(rows[row], lower, upper, low, high).bound
        if -np.inf < most <= limits[row] + _FLAT * reach[row]:  # what is too thin for floating point keeps all
            kept[row] = False
        else:
            high[row] = limits[row]
    for first, ends, sign in ((len(rows), upper, 1.0), (len(rows) + dim, lower, -1.0)) if faces else ():
        for place, column in enumerate(np.flatnonzero(free)):
            end, direction = ends[place], np.zeros(len(ends))
            direction[place], ends[place] = sign, end + sign * width[place]
            most = program.maximise(direction, lower, upper, low, high).bound
            if -np.inf < most <= sign * end + _FLAT * width[place]:
                kept[first + column] = False
            else:
                ends[place] = end
    return kept


def _needed_anywhere(matrix: Floats, offset: Floats, box: Box) -> Mask:
    """The same in an unbounded box: of the cone over the region, in a box around its tip (see `tessella.unbounded`)."""
    kept, fixed = np.isfinite(offset), np.tile(~box.free, 2)
    tested = kept.copy()
    tested[-2 * box.dim :] &= ~fixed
    limits = offset[tested] - matrix[tested][:, ~box.free] @ box.lower[~box.free]
    rows = matrix[tested][:, box.free]
    sizes = np.abs(rows).sum(axis=1)
    far = np.median(np.abs(limits[sizes > 0.0]) / sizes[sizes > 0.0]) if (sizes > 0.0).any() else 0.0
    reach = np.full(rows.shape[1], far if far > 0.0 else 1.0)
    cone, unit = Box(np.append(-reach, 0.0), np.append(reach, 1.0)), np.eye(len(reach) + 1)
    every = np.vstack([np.column_stack([rows, -limits]), unit, -unit])
    kept[tested] = _needed(every, np.concatenate([np.zeros(len(rows)), cone.upper, -cone.lower]), cone, faces=False)[: len(rows)]
    return kept


def _largest_radius(matrix: Floats, offset: Floats, box: Box) -> float:
    """The radius of a largest ball in an unbounded box, by a linear program whose inputs are free."""
    from scipy.optimize import linprog  # noqa: PLC0415  heavy, and only unbounded domains need it

    rows, limits = matrix[:, box.free], offset - matrix[:, ~box.free] @ box.lower[~box.free]
    moves = rows.any(axis=1)
    rows, limits = of_length_one(rows[moves], limits[moves])
    if not len(rows):
        return np.inf
    rows = np.column_stack([rows, np.ones(len(rows))])
    ends = [*[(None, None)] * (rows.shape[1] - 1), (0.0, None)]
    found = cast("Any", linprog)(
        np.append(np.zeros(rows.shape[1] - 1), -1.0), A_ub=rows, b_ub=limits, bounds=ends, method="highs"
    )
    return np.inf if found.status == 3 else max(0.0, float(found.x[-1])) if found.status == 0 else 0.0


class _Walled(NamedTuple):
    """A region in the free inputs, from the middle of its box and in a unit of its own: ``rows @ u <= limits``."""

    # rows, limits: the inequalities but for those of the box; rows have length 1, constant ones 0
    rows: Floats
    limits: Floats
    half: Floats  # half the width of the box
    unit: float  # what u is measured in

    @classmethod
    def of(cls, region: Region) -> Self:
        """A region on a bounded domain."""
        box = region.domain.box
        free, width = box.free, (box.upper / 2.0 - box.lower / 2.0)[box.free]
        unit = float(width.max(initial=0.0)) or 1.0
        matrix, offset = _inequalities(region)
        with np.errstate(over="ignore", invalid="ignore"):
            rows = matrix[: -2 * box.dim, free] * unit
            limits = offset[: -2 * box.dim] - matrix[: -2 * box.dim] @ (box.lower / 2.0 + box.upper / 2.0)
        if not (np.isfinite(rows).all() and np.isfinite(limits).all()):
            rows, limits = _exact_rows(region, width / unit)
        return cls(*of_length_one(rows, limits), width / unit, unit)

    def ball(self) -> float:
        """The radius of a largest ball inside; the faces of the box are walls like others."""
        dim = len(self.half)
        rows, limits = np.vstack([self.rows, np.eye(dim), -np.eye(dim)]), np.concatenate([self.limits, self.half, self.half])
        moves, reach = rows.any(axis=1), np.append(self.half, float(self.half.max()))
        rows = np.column_stack([rows[moves], np.ones(int(moves.sum()))])
        low = -np.abs(rows) @ reach - np.abs(limits[moves]) - 1.0
        found = Program(rows).maximise(np.append(np.zeros(dim), 1.0), -reach, reach, low, limits[moves])
        return max(0.0, float(found.x[-1])) if found.optimal else 0.0

    def deepest(self, inward: float) -> tuple[Floats, float]:
        """A point, and by how much it keeps all inequalities, as large as possible.

        It stays away from the faces of the box by a given distance.  With walls of their own, these would be most of the problem.
        """
        moves = self.rows.any(axis=1)
        rows, limits, ends = self.rows[moves], self.limits[moves], np.maximum(self.half - inward, 0.0)
        if not len(rows):
            return np.zeros(len(ends)), np.inf
        sizes = np.abs(rows) @ self.half + np.abs(limits)
        most = float(sizes.max()) + 1.0
        objective, reach = np.append(np.zeros(len(ends)), 1.0), np.append(ends, most)
        program = Program(np.column_stack([rows, np.ones(len(rows))]))
        found = program.maximise(objective, -reach, reach, -sizes - 2.0 * most, limits)
        return found.x[:-1], float(found.x[-1]) if found.optimal else -np.inf


def of_length_one(rows: Floats, limits: Floats) -> tuple[Floats, Floats]:
    """Inequalities whose rows have length 1, but for constant ones; squares of what is given may overflow, or underflow."""
    exponents = -np.frexp(np.abs(rows).max(axis=1, initial=0.0))[1]
    rows = np.ldexp(rows, exponents[:, None])
    with np.errstate(over="ignore"):
        limits = np.clip(np.ldexp(limits, exponents), -_FARTHEST, _FARTHEST)
    sizes = np.sqrt((rows**2).sum(axis=1))
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    return rows / sizes[:, None], limits / sizes


def _exact_rows(region: Region, half: Floats) -> tuple[Floats, Floats]:
    """The inequalities that cut the box, from the middle of a box of this size; composed in whole numbers, which do not overflow."""
    sides = Exact(Tree(region.network, region.domain)).sides(prefix_of(region.pattern))
    floats = np.zeros((0, len(half) + 1)) if sides is None else sides.rows.floats
    return -floats[:, :-1] / (2.0 * half), floats[:, -1] + floats[:, :-1].sum(axis=1) / 2.0
