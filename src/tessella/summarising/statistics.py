"""What is known of single regions: the statistics, and how each is found for many regions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from tessella.domain import Polytope
from tessella.errors import OptionError
from tessella.kernel.program import Program
from tessella.listing.cells import has_corners
from tessella.listing.patterns import affine_maps
from tessella.listing.polygons import Polygons
from tessella.network import Floats, Mask
from tessella.partition.region import Region, of_length_one
from tessella.stability import Stability
from tessella.summarising.slopes import Norms, ranks

CHANGES = -1  # the decision of a region in which it changes
_FEW = 16  # inputs up to which the middle of a region keeps away from the sides of the box, too
_POINTS = 2**16  # at which shares of the volume are found
_POINTS_AT_ONCE = 2**20  # numbers held


class Statistic(StrEnum):
    """What is asked of regions.

    Each is a number per region: how many ReLUs are active; rank, largest singular value (`spectral`), root of the sum of squares (`frobenius`) and largest sum of sizes in a row (`maximum`) of
    the matrix of its affine map; how many walls it shares with other regions; the radius of a largest ball inside; its volume, or, by random points, its share of the domain's volume;
    and the decision of a classifier, which is the largest output (or whether a single one is positive): its number, or -1 where it changes inside.
    """

    ACTIVE = "active"
    RANK = "rank"
    SPECTRAL = "spectral"
    FROBENIUS = "frobenius"
    MAXIMUM = "maximum"
    WALLS = "walls"
    RADIUS = "radius"
    VOLUME = "volume"
    SHARE = "share"
    DECISION = "decision"


SLOPES = frozenset({Statistic.RANK, Statistic.SPECTRAL, Statistic.FROBENIUS, Statistic.MAXIMUM})
ONE_BY_ONE = frozenset({Statistic.RADIUS, Statistic.DECISION})
"""Statistics that take linear programs."""


def chosen_statistics(asked: object, known: Stability) -> tuple[Statistic, ...]:
    """The statistics that were named, or those that a network and its domain have; raises where one cannot be had.

    Parameters
    ----------
    asked
        Names; None for what can be had.
    known
        The network, and where.
    """
    measured = known.domain.bounded and has_corners(known)
    if asked is None:
        left_out = {Statistic.SHARE if measured or not known.domain.bounded else Statistic.VOLUME}
        left_out |= set() if known.domain.bounded else {Statistic.VOLUME}
        return tuple(one for one in Statistic if one not in left_out)
    names = [asked] if isinstance(asked, str) else asked
    try:
        chosen = tuple(dict.fromkeys(Statistic(name) for name in names))  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
    except (TypeError, ValueError) as error:
        msg = f"statistics are {asked!r:.80}; a summary takes some of {', '.join(Statistic)}"
        raise OptionError(msg) from error
    if not chosen:
        msg = f"no statistic is asked for; a summary takes some of {', '.join(Statistic)}"
        raise OptionError(msg)
    if Statistic.VOLUME in chosen and not measured:
        msg = "volumes are measured on bounded domains with at most six free inputs; statistics='share' finds shares of the volume by random points"
        raise OptionError(msg)
    if Statistic.SHARE in chosen and not known.domain.bounded:
        msg = "shares of the volume need a bounded domain; give one, or leave 'share' out"
        raise OptionError(msg)
    return chosen


def slopes(known: Stability, patterns: Mask, goes_on: Callable[[], bool]) -> dict[Statistic, Floats] | None:
    """Rank and norms of all affine maps; None if it does not go on."""
    parts = list[Floats]()
    for maps in affine_maps(known.network, known.domain, patterns):
        norms = Norms.of(maps[:, :, :-1])
        parts.append(np.stack([ranks(maps[:, :, :-1]), norms.spectral, norms.frobenius, norms.maximum]))
        if not goes_on():
            return None
    names = (Statistic.RANK, Statistic.SPECTRAL, Statistic.FROBENIUS, Statistic.MAXIMUM)
    return dict(zip(names, np.concatenate(parts, axis=1), strict=True))


def of_polygons(statistic: Statistic, found: Polygons) -> Floats:
    """A statistic of all polygons, or intervals, of a list.

    Examples
    --------
    >>> from tessella import Box, Network, polygons
    >>> net = Network.from_arrays([([[1.0, 0.0], [1.0, 1.0]], [0.0, 0.5]), ([[1.0, 1.0]], None)])
    >>> of_polygons(Statistic.ACTIVE, polygons(net, Box(-1, 1, dim=2))).tolist()
    [2.0, 1.0, 1.0, 0.0]
    """
    if statistic is Statistic.ACTIVE:
        return found.patterns.sum(axis=1).astype(np.float64)
    if statistic in {Statistic.VOLUME, Statistic.SHARE}:
        return found.areas / (found.areas.sum() if statistic is Statistic.SHARE else 1.0)
    if statistic in SLOPES:
        matrices, _ = found.affine_maps()
        norms = Norms.of(matrices)
        values = {Statistic.SPECTRAL: norms.spectral, Statistic.FROBENIUS: norms.frobenius, Statistic.MAXIMUM: norms.maximum}
        return values[statistic] if statistic in values else ranks(matrices)
    return np.array([_of_region(statistic, Region(found.network, found.domain, pattern.copy())) for pattern in found.patterns])


def of_region(statistic: Statistic, known: Stability, pattern: Mask) -> float:
    """A statistic that takes linear programs, or corners, of one region."""
    if statistic is Statistic.VOLUME:
        return volume_of_thin(known, pattern)
    return _of_region(statistic, Region(known.network, known.domain, pattern.copy()))


def _of_region(statistic: Statistic, region: Region) -> float:
    if statistic is Statistic.RADIUS:
        return region.radius
    if statistic is Statistic.DECISION:
        return float(_decision(region))
    return float(len(region.neighbours()))


def _decision(region: Region) -> int:
    """The decision of a region, as linear programs in floating-point arithmetic see it."""
    matrix, offset = region.affine_map
    if len(matrix) == 1:
        matrix, offset = np.vstack([np.zeros_like(matrix), matrix]), np.append(0.0, offset)
    box = region.domain.box
    inside = _Inside.of(region)
    matrix, offset = matrix[:, box.free], offset + matrix[:, ~box.free] @ box.lower[~box.free]
    best = int(np.argmax(matrix @ inside.middle + offset))
    for other in range(len(matrix)):
        if other != best and inside.least(matrix[best] - matrix[other], offset[best] - offset[other]) < 0.0:
            return CHANGES
    return best


@dataclass(frozen=True, slots=True)
class _Inside:
    """The inside of a polytope ``rows @ x <= limits`` in a box, whose rows have length 1."""

    rows: Floats
    limits: Floats
    lower: Floats
    upper: Floats
    middle: Floats

    @classmethod
    def of(cls, region: Region) -> "_Inside":
        """That of a region, in the free inputs."""
        rows, limits = region.inequalities()
        box = region.domain.box
        limits, rows = limits - rows[:, ~box.free] @ box.lower[~box.free], rows[:, box.free]
        varies = (np.abs(rows) > 0.0).sum(axis=1)
        cuts = varies > (1 if region.domain.bounded else 0)
        cuts[: region.network.relus] |= varies[: region.network.relus] > 0
        rows, limits = of_length_one(rows[cuts], limits[cuts])
        made = cls(rows, limits, box.lower[box.free], box.upper[box.free], np.zeros(0))
        unit = np.eye(rows.shape[1])[: rows.shape[1] if region.domain.bounded and rows.shape[1] <= _FEW else 0]
        every = np.column_stack([np.vstack([rows, unit, -unit]), np.ones(len(rows) + 2 * len(unit))])
        ends = np.concatenate([limits, made.upper[: len(unit)], -made.lower[: len(unit)]])
        most = float(np.min(made.upper - made.lower, initial=1.0)) if region.domain.bounded else 1.0
        wider = cls(every, ends, np.append(made.lower, 0.0), np.append(made.upper, most), np.zeros(0))
        return replace(made, middle=wider.lowest(np.append(np.zeros(rows.shape[1]), -1.0))[1][:-1])

    def lowest(self, normal: Floats) -> tuple[float, Floats]:
        """The least value of a linear function, and where; minus infinity if there is none."""
        if np.isfinite(self.lower).all() and np.isfinite(self.upper).all():
            if not len(self.rows):
                place = np.where(normal > 0.0, self.lower, self.upper)
                return float(normal @ place), place
            reach = np.maximum(np.abs(self.lower), np.abs(self.upper))
            low = -np.abs(self.rows) @ reach - np.abs(self.limits) - 1.0
            found = Program(self.rows).maximise(-normal, self.lower, self.upper, low, self.limits)
            return -found.bound, found.x
        from scipy.optimize import linprog  # noqa: PLC0415  heavy, and only unbounded domains need it

        ends = np.column_stack([self.lower, self.upper])
        found = linprog(normal, A_ub=self.rows, b_ub=self.limits, bounds=ends)
        if found.status != 0:
            return -np.inf, np.zeros(len(normal))
        return float(found.fun), found.x

    def least(self, normal: Floats, constant: float) -> float:
        """The least value of an affine function; 0 where rounding may have made it another one."""
        if not normal.any():
            return constant
        value, place = self.lowest(normal)
        size = float(np.abs(normal) @ np.abs(place)) + abs(constant)
        return 0.0 if abs(value + constant) <= 1e-9 * size else value + constant


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of the volume of a domain, by random points."""

    values: Floats  # for each region the part of the points that lie in it
    points: int  # how many points there were


def shares(known: Stability, patterns: Mask, rng: np.random.Generator, goes_on: Callable[[], bool]) -> Shares:
    """The part of random points that lie in each region."""
    packed = [row.tobytes() for row in np.packbits(patterns, axis=1)]
    hits, total = dict[bytes, int](), 0
    for points in _points(known, rng):
        for row in np.packbits(known.network.patterns(points), axis=1):
            key = row.tobytes()
            hits[key] = hits.get(key, 0) + 1
        total += len(points)
        if total >= _POINTS or not goes_on():
            break
    return Shares(np.array([hits.get(row, 0) for row in packed]) / max(total, 1), total)


def _points(known: Stability, rng: np.random.Generator) -> Iterator[Floats]:
    """Uniform points of a bounded domain, without end."""
    domain, box = known.domain, known.domain.box
    step = max(1, min(4096, _POINTS_AT_ONCE // domain.dim))
    for tries in range(2**30):
        points = rng.uniform(box.lower, box.upper, (step, box.dim))
        if isinstance(domain, Polytope):
            points = points[(points @ domain.matrix.T <= domain.offset).all(axis=1)]
            if tries == 16 and not len(points):
                msg = "the polytope is too small a part of its box to draw points of it; leave 'share' out, or give a closer box"
                raise OptionError(msg)
        yield points


def volume_of_thin(known: Stability, pattern: Mask) -> float:
    """The volume of a region whose corners are not known; 0 where floating-point arithmetic sees none."""
    from scipy.spatial import ConvexHull, HalfspaceIntersection, QhullError  # noqa: PLC0415  heavy

    region, box = Region(known.network, known.domain, pattern.copy()), known.domain.box
    inside = _Inside.of(region)
    dim = len(inside.middle)
    if dim == 1:
        return max(0.0, -inside.lowest(-np.ones(1))[0] - inside.lowest(np.ones(1))[0])
    rows = np.vstack([inside.rows, np.eye(dim), -np.eye(dim)])
    limits = np.concatenate([inside.limits, box.upper[box.free], -box.lower[box.free]])
    try:
        return float(ConvexHull(HalfspaceIntersection(np.column_stack([rows, -limits]), inside.middle).intersections).volume)
    except (QhullError, ValueError):
        return 0.0
