"""A region: its pattern, a point in it, its affine map, its walls and what lies behind them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, cast

import numpy as np

from tessella.answer import Answer, bits, past, read_bits
from tessella.domain import Box, Domain, Polytope
from tessella.kernel.program import Program
from tessella.network import Floats, Mask, Network
from tessella.partition.recession import is_bounded
from tessella.partition.witness import Proof, walls
from tessella.unbounded import as_bounded

_FLAT = 1e-8  # of a row's range: by how much a wall that is not redundant cuts; the linear programs are off by 1e-10
_THIN = 1e-7  # of the box: how far from other walls a point inside a wall should be
_INWARD = (2.0**-6, 2.0**-20, 2.0**-40)  # of the box: how far from its faces such a point is looked for
_ZERO = 1e-8  # of the sizes of a unit's terms in the box: what a linear program leaves of 0


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
        box = self.domain.box
        walled = _Walled.of(*_inequalities(self), box, scale=np.ones(box.free_dim))
        low, high = 0.0, float(np.min(walled.half, initial=np.inf))
        if not np.isfinite(high):
            return 0.0
        for _ in range(60):  # the larger the ball, the smaller the box of its centre
            radius = (low + high) / 2.0
            fits = walled.deepest(radius)[1] >= radius
            low, high = (radius, high) if fits else (low, radius)
        return low

    def neighbours(self) -> "Iterator[Region]":
        """The regions behind the walls that are not the domain's, one behind each.

        Regions meet in whole walls: a unit of a later layer that is 0 somewhere inside a wall is 0 on all of it, because
        preactivations are continuous.  Several units may change at one wall, such as equal ones.

        Every region that comes is proved.  Walls are found in floating-point arithmetic, so a neighbour behind a very small one
        may be missed.
        """
        prove = Proof(self.network, self.domain)
        for pattern in _patterns_behind(Region(*as_bounded(self.network, self.domain), self.pattern)):
            found = prove(pattern)
            if found is not None and not np.array_equal(found[0], self.pattern):
                yield Region(self.network, self.domain, *found)

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
            "counted": self.network.counted,
            "pattern": bits(self.pattern),
            "point": None if self.point is None else self.point.tolist(),
        }

    @classmethod
    def _placed(cls, record: Mapping[str, Any], network: Network | None) -> dict[str, Any]:
        point = None if record["point"] is None else np.array(record["point"], dtype=np.float64)
        return {**super(Region, cls)._placed(record, network), "pattern": read_bits(record["pattern"]), "point": point}


def _patterns_behind(region: Region) -> Iterator[Mask]:
    """What floating point sees behind the walls of a region on a bounded domain."""
    matrix, offset = _inequalities(region)
    box = region.domain.box
    kept = _needed(matrix, offset, box, faces=False)
    rows = np.flatnonzero(kept[: -2 * box.dim])
    kept[-2 * box.dim :] = True
    walled = _Walled.of(matrix[kept], offset[kept], box, scale=(box.upper / 2.0 - box.lower / 2.0)[box.free])
    for wall in np.flatnonzero(rows < region.network.relus):
        yield _behind(region.network, box, *walled.inside(int(wall)))


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
    sizes = np.linalg.norm(rows, axis=1)
    rows, limits, sizes = rows[sizes > 0.0], limits[sizes > 0.0], sizes[sizes > 0.0]
    if not len(rows):
        return np.inf
    rows, limits = np.column_stack([rows / sizes[:, None], np.ones(len(rows))]), limits / sizes
    ends = [*[(None, None)] * (rows.shape[1] - 1), (0.0, None)]
    found = cast("Any", linprog)(
        np.append(np.zeros(rows.shape[1] - 1), -1.0), A_ub=rows, b_ub=limits, bounds=ends, method="highs"
    )
    return np.inf if found.status == 3 else max(0.0, float(found.x[-1])) if found.status == 0 else 0.0


class _Walled(NamedTuple):
    """A region in the free inputs, from the middle of its box and in units of one's own: ``rows @ u <= limits``.

    Parameters
    ----------
    rows, limits
        The inequalities but for those of the box; rows have length 1, constant ones 0.
    half
        Half the width of the box.
    box, scale
        Where it is: x is the middle of the box and scale times u.
    """

    rows: Floats
    limits: Floats
    half: Floats
    box: Box
    scale: Floats

    @classmethod
    def of(cls, matrix: Floats, offset: Floats, box: Box, scale: Floats) -> Self:
        """From inequalities, those of the box last."""
        own, free = slice(0, -2 * box.dim), box.free
        rows = matrix[own, free] * scale
        sizes = np.sqrt((rows**2).sum(axis=1))
        sizes = np.where(sizes > 0.0, sizes, 1.0)
        limits = offset[own] - matrix[own] @ (box.lower / 2.0 + box.upper / 2.0)
        return cls(rows / sizes[:, None], limits / sizes, (box.upper / 2.0 - box.lower / 2.0)[free] / scale, box, scale)

    def deepest(self, inward: float, wall: int | None = None) -> tuple[Floats, float]:
        """A point, and by how much it keeps all inequalities but the wall's, as large as possible; of the wall it is a point.

        It stays away from the faces of the box by a given distance.  With walls of their own, these would be most of the problem.
        """
        moves = np.abs(self.rows).sum(axis=1) > 0.0
        rows, limits, ends = self.rows[moves], self.limits[moves], np.maximum(self.half - inward, 0.0)
        spaced = np.flatnonzero(moves) != wall
        if not spaced.any() and wall is None:
            return np.zeros(len(ends)), np.inf
        sizes = np.abs(rows) @ self.half + np.abs(limits)
        most = float(sizes.max()) + 1.0
        low = np.where(spaced, -sizes - 2.0 * most, limits)
        objective, reach = np.append(np.zeros(len(ends)), 1.0), np.append(ends, most)
        found = Program(np.column_stack([rows, spaced])).maximise(objective, -reach, reach, low, limits)
        return found.x[:-1], float(found.x[-1]) if found.optimal else -np.inf

    def inside(self, wall: int) -> tuple[Floats, Floats]:
        """A point inside a wall, and the direction that leads out of the region."""
        best, depth = self.deepest(_INWARD[0] * float(self.half.max()), wall)
        for inward in _INWARD[1:]:
            if depth > _THIN:
                break
            best, depth = self.deepest(inward * float(self.half.max()), wall)
        free = self.box.free
        point, outward = self.box.lower / 2.0 + self.box.upper / 2.0, np.zeros(self.box.dim)
        point[free] += self.scale * best
        outward[free] = self.scale * self.rows[wall]
        return point, outward


def _behind(network: Network, box: Box, point: Floats, direction: Floats) -> Mask:
    """The pattern a very small step from a point in a direction: where a unit is 0, its slope decides."""
    value, slope, states = point, direction, list[Mask]()
    reach, rise = np.abs(point) + box.upper / 2.0 - box.lower / 2.0, np.abs(direction)
    for layer in network.layers:
        sizes = abs(layer.weight)
        before, change = np.asarray(layer.weight @ value) + layer.bias, np.asarray(layer.weight @ slope)
        reach, rise = np.asarray(sizes @ reach) + np.abs(layer.bias), np.asarray(sizes @ rise)
        flat = np.abs(before) <= _ZERO * reach
        active = np.where(flat, change > _ZERO * rise, before > 0.0)
        states.append(active[layer.rectified])
        factors = layer.factors(states[-1])
        value, slope = np.where(flat & layer.rectified, 0.0, factors * before), factors * change
        reach, rise = np.abs(factors) * reach, np.abs(factors) * rise
    return np.concatenate(states)
