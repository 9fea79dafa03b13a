"""A network on a plane, or a line, of its inputs.

A slice is the set of inputs ``origin + basis @ t``.  Its network reads t: a first layer of linear units makes the inputs of it, and the
layers of the whole follow unchanged, so nothing is rounded, and what is proved for this network is proved for the inputs on the slice.

**Why regions on a slice are a lower bound.**  Let R be a region of the whole network, and C the part of its closure that lies on the slice.
On C every preactivation is affine and has the sign that R gives it, or is 0.  If C has an interior within the slice, no unit changes its
state inside of it: a unit that is nowhere negative on C and 0 somewhere inside is 0 on all of C, hence inactive.  So the inside of C
belongs to one region of the slice.  The closures of all regions of the whole cover the domain (finitely many closed sets, and what is
left out is nowhere dense), so every region of the slice holds the inside of such a C.  Each C has one R: there are at most as many regions on
the slice as in the whole.  Nothing is assumed: units may be 0 all over the slice, and the slice may lie in a face of the domain.  The
domain on the slice is rounded inward where it must be rounded, so it lies in the domain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tessella.domain import Box, Domain, Polytope, check_bounded
from tessella.door import DomainLike, NetworkLike, enter_anywhere
from tessella.errors import DomainError, NetworkError, OptionError
from tessella.network import Floats, Layer, Network, Source, frozen_floats
from tessella.numerics import LOST_OF_PRODUCTS, ROUNDOFF

_FLAT = 1e-9  # of the largest distance between points: what is nearer to a line or plane lies on it
_FAR = 1e150  # between points: nothing is computed with what has larger squares
_ASIDE = 1.0 / 16.0  # of its width: how far the box around a polygon is away from it


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """A plane or line of inputs, and the network and the domain on it.

    Parameters
    ----------
    network
        Reads the coordinates of the slice; its first layer is linear and makes the inputs of the whole network.
    domain
        The coordinates whose inputs lie in the domain of the whole: an interval, a rectangle, or a polygon.
    origin, basis
        The inputs are ``origin + basis @ coordinates``.
    whole, within
        The network that was sliced, and its domain; None if it was given none.
    axes
        The inputs that the coordinates are; empty if the slice was given by points.
    points
        The coordinates of these points; none if it was given by axes.
    """

    network: Network
    domain: Domain
    origin: Floats
    basis: Floats
    whole: Network
    within: Domain | None = None
    axes: tuple[int, ...] = ()
    points: Floats | None = None

    @property
    def dim(self) -> int:
        """1 for a line, 2 for a plane."""
        return int(self.basis.shape[1])

    def lift(self, points: npt.ArrayLike) -> Floats:
        """The inputs of the whole network at a point, or at points, of the slice."""
        places = np.asarray(points, dtype=np.float64)
        if places.ndim not in {1, 2} or places.shape[-1] != self.dim:
            msg = (
                f"points have shape {places.shape}; a slice of {self.dim} dimensions takes ({self.dim},) or (points, {self.dim})"
            )
            raise OptionError(msg)
        return places @ self.basis.T + self.origin

    def coordinates(self, inputs: npt.ArrayLike) -> Floats:
        """The coordinates of an input, or of inputs; of the nearest point of the slice if they do not lie on it."""
        places = np.asarray(inputs, dtype=np.float64)
        if places.ndim not in {1, 2} or places.shape[-1] != len(self.origin):
            msg = f"inputs have shape {places.shape}; expected ({len(self.origin)},) or (points, {len(self.origin)})"
            raise OptionError(msg)
        return (places - self.origin) @ self.basis

    def describe(self) -> str:
        """A short text such as ``inputs 0 and 1``."""
        if self.axes:
            return f"input{'s' if len(self.axes) > 1 else ''} {' and '.join(map(str, self.axes))}"
        return "a plane through points" if self.dim == 2 else "a line through points"

    def __repr__(self) -> str:
        """One line a person can read."""
        inputs = f" of {len(self.origin)}" if self.axes else f", {len(self.origin)} inputs"
        return f"Slice({self.describe()}{inputs}, on {self.domain.describe()})"


def slice(  # noqa: A001  it is what one does: tessella.slice
    network: NetworkLike,
    points: npt.ArrayLike | None = None,
    domain: DomainLike | None = None,
    *,
    axes: Sequence[int] | None = None,
    at: npt.ArrayLike | None = None,
) -> Slice:
    """Restrict a network to a plane or a line of its inputs.

    The number of regions on a slice is a proved lower bound on the number of regions on the domain; the top of the file says why.

    Parameters
    ----------
    network
        What `tessella.load` takes.
    points
        Two inputs for the line through them; three or more, in one plane, for that plane.  Coordinates are distances: the first point has 0, and
        the second lies on the first axis.  The slice goes through the points up to rounding.
    domain
        Where: a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``; the slice's domain is what lies in it.  Without one it is the smallest interval or rectangle around the points.
    axes
        One or two inputs that vary, instead of points; the coordinates are their values.
    at
        What the other inputs are, with `axes`; by default the centre of the domain.

    Examples
    --------
    >>> import numpy as np
    >>> import tessella
    >>> net = tessella.Network.from_arrays([(np.eye(3), [0.0, -0.5, 0.25]), (np.ones((1, 3)), [-1.0])], relu_output=True)
    >>> plane = tessella.slice(net, domain=tessella.Box(-1, 1, dim=3), axes=(0, 1))
    >>> plane
    Slice(inputs 0 and 1 of 3, on [-1, 1]^2)
    >>> plane.lift([0.25, -1.0]).tolist()
    [0.25, -1.0, 0.0]
    >>> tessella.slice(net, [[0, 0, 0], [1, 1, 1]], tessella.Box(-1, 1, dim=3)).network
    Network(1-3-3-1, 4 ReLUs, 22 parameters)
    """
    network, domain = enter_anywhere(network, domain)
    if domain is not None:
        check_bounded(domain, "a slice")
    if (points is None) == (axes is None):
        msg = "a slice goes through points, or along axes: give one of them"
        raise OptionError(msg)
    if axes is not None:
        if domain is None:
            msg = "a slice along axes needs a domain, which says how far they go"
            raise OptionError(msg)
        chosen = _checked_axes(axes, domain)
        origin, basis = _along(chosen, _centre(domain) if at is None else _checked_point(at, domain.dim, "at"))
        return _made(network, domain, origin, basis, chosen)
    if at is not None:
        msg = "at says where a slice along axes lies; a slice through points takes none"
        raise OptionError(msg)
    places = _checked_points(points, network.input_dim)
    origin, basis = _through(places)
    found = _made(network, domain if domain is not None else places, origin, basis, ())
    marks = found.coordinates(places)
    marks.flags.writeable = False
    return replace(found, points=marks)


DEFAULT_SEED = 0
DEFAULT_PLANE = f"The plane through the centre of the domain and two corners of its box, drawn with seed {DEFAULT_SEED}"


def default_plane(network: Network, domain: Domain) -> Slice:
    """The plane that is shown where none is asked for: through the centre of the domain, and two corners of its box by a fixed seed.

    Planes along two inputs often cut few regions of a network with many; this one varies all inputs.
    """
    check_bounded(domain, "a plane to show")
    box, rng, centre = domain.box, np.random.default_rng(DEFAULT_SEED), _centre(domain)
    if box.free_dim < 2:
        msg = f"a plane needs two free inputs, and the domain has {box.free_dim}"
        raise DomainError(msg)
    while True:
        corners = np.where(rng.random((2, box.dim)) < 0.5, box.lower, box.upper)
        steps = (corners - centre)[:, box.free]
        if np.linalg.matrix_rank(steps / np.abs(steps).max()) == 2:  # corners are drawn again where they face each other
            return slice(network, np.vstack([centre, corners]), domain)


def _made(network: Network, within: Domain | Floats, origin: Floats, basis: Floats, axes: tuple[int, ...]) -> Slice:
    """The slice; where points stand for the domain, it is as large as they are."""
    if isinstance(within, np.ndarray):
        coordinates = (within - origin) @ basis
        window: Domain = Box(coordinates.min(axis=0), coordinates.max(axis=0))
    else:
        window = _window(within, origin, basis)
    for part in (origin, basis):
        part.flags.writeable = False
    whole = network.source  # its units are those of the slice, so that results on it say what they count
    source = None if whole is None else Source("slice", whole.name, units=whole.units)
    lifted = Network((Layer(basis, origin, np.array(False)), *network.layers), source)  # noqa: FBT003  no ReLUs
    return Slice(lifted, window, origin, basis, network, None if isinstance(within, np.ndarray) else within, axes)


def _centre(domain: Domain) -> Floats:
    return domain.centre if isinstance(domain, Polytope) else domain.lower / 2.0 + domain.upper / 2.0


def _checked_axes(axes: Sequence[int], domain: Domain) -> tuple[int, ...]:
    try:
        chosen = tuple(int(axis) for axis in axes)
        whole = all(axis == given for axis, given in zip(chosen, axes, strict=True))
    except (TypeError, ValueError) as error:
        msg = f"axes are whole numbers, one or two of them; got {axes!r:.60}"
        raise OptionError(msg) from error
    if not whole or len(chosen) not in {1, 2} or len(set(chosen)) < len(chosen):
        msg = f"axes are one or two different inputs, such as (0, 1); got {axes!r:.60}"
        raise OptionError(msg)
    for axis in chosen:
        if not 0 <= axis < domain.dim:
            msg = f"there is no input {axis}: the network reads inputs 0 to {domain.dim - 1}"
            raise OptionError(msg)
        if not domain.box.free[axis]:
            msg = f"input {axis} cannot be an axis: the domain fixes it at {domain.box.lower[axis]:g}"
            raise DomainError(msg)
    return chosen


def _checked_point(point: npt.ArrayLike, dim: int, name: str) -> Floats:
    try:
        place = frozen_floats(point, name, ndim=np.ndim(point))
    except NetworkError as error:
        raise OptionError(str(error)) from error
    if place.ndim == 0:
        place = np.full(dim, float(place))
    if place.shape != (dim,):
        msg = f"{name} has shape {place.shape}; expected one number, or {dim}: one per input"
        raise OptionError(msg)
    return place


def _checked_points(points: object, dim: int) -> Floats:
    try:
        places = frozen_floats(points, "points", ndim=2)
    except NetworkError as error:
        raise OptionError(str(error)) from error
    if places.shape[1] != dim:
        msg = f"points have {places.shape[1]} numbers each; the network reads {dim} inputs"
        raise OptionError(msg)
    if len(places) < 2:
        msg = "one point gives no slice; give two for a line, three for a plane"
        raise OptionError(msg)
    return places


def _along(axes: tuple[int, ...], at: Floats) -> tuple[Floats, Floats]:
    origin = np.array(at)
    origin[list(axes)] = 0.0
    return origin, np.eye(len(origin))[:, list(axes)]


def _through(points: Floats) -> tuple[Floats, Floats]:
    """The first point, and orthonormal directions; inputs in which all points agree have none."""
    origin = np.array(points[0])
    with np.errstate(over="ignore"):
        steps = points[1:] - points[0]
    scale = np.abs(steps).max()
    if not scale < _FAR:
        msg = f"the {len(points)} points are too far apart: distances beyond {_FAR:g} cannot be computed with"
        raise OptionError(msg)
    if scale == 0.0:
        msg = f"the {len(points)} points are equal"
        raise OptionError(msg)
    steps = steps / scale  # squares of small steps would vanish
    size = np.sqrt((steps**2).sum(axis=1)).max()
    directions, left = list[Floats](), steps
    for number in range(min(2, len(steps))):
        lengths = np.sqrt((left**2).sum(axis=1))
        place = 0 if number == 0 and lengths[0] > _FLAT * size else int(np.argmax(lengths))
        if not lengths[place] > _FLAT * size:
            rounding = 16.0 * ROUNDOFF * (size + np.abs(points).max() / scale)
            where = "on one line" if lengths[place] <= rounding else "too close to one line to tell which plane they span"
            msg = f"the {len(points)} points lie {where}; give two of them for a line, or others for a plane"
            raise OptionError(msg)
        direction = left[place] / lengths[place]
        for other in directions:  # once more: the first time loses digits where points are almost on one line
            direction = direction - (direction @ other) * other
        directions.append(direction / np.sqrt((direction**2).sum()))
        left = left - np.outer(left @ directions[-1], directions[-1])
    if np.sqrt((left**2).sum(axis=1)).max() > _FLAT * size:
        msg = f"the {len(points)} points do not lie in one plane; give two for a line, three for a plane"
        raise OptionError(msg)
    return origin, np.stack(directions, axis=1)


class _Row(NamedTuple):
    """An inequality ``normal . t <= limit`` on the slice."""

    normal: tuple[float, ...]
    limit: float


def _window(domain: Domain, origin: Floats, basis: Floats) -> Domain:
    """The coordinates whose inputs lie in a domain; never more than these."""
    box = domain.box
    constant = ~basis.any(axis=1)
    outside = constant & ((origin < box.lower) | (origin > box.upper))
    if outside.any():
        where = int(np.argmax(outside))
        ends = f"{box.lower[where]:g} to {box.upper[where]:g}"
        msg = f"the slice misses the domain: input {where} is {origin[where]:g} on all of it, and the domain has {ends}"
        raise DomainError(msg)
    if (~constant & ~box.free).any():
        where = int(np.argmax(~constant & ~box.free))
        msg = f"the slice leaves the domain: input {where} varies on it, and the domain fixes it at {box.lower[where]:g}"
        raise DomainError(msg)
    moving = np.flatnonzero(~constant)
    rows = [
        _Row(tuple((sign * basis[i]).tolist()), limit)
        for sign, limits in ((1.0, _minus(box.upper, origin)), (-1.0, _minus(origin, box.lower)))
        for i, limit in zip(moving, limits[moving].tolist(), strict=True)
    ]
    far = np.maximum(np.abs(box.lower - origin), np.abs(box.upper - origin))
    reach = 1.01 * float(
        (np.abs(basis) * far[:, None]).sum(axis=0).max()
    )  # coordinates are sums of inputs: the basis is orthonormal
    if isinstance(domain, Polytope):
        rows += _walls(domain, origin, basis, reach)
    return _interval(rows) if basis.shape[1] == 1 else _polygon(rows, reach)


def _minus(left: Floats, right: Floats) -> Floats:
    """Differences, rounded down where they are not exact."""
    difference = left - right
    back = difference - left
    exact = (left - (difference - back)) + (-right - back) == 0.0  # the error of a sum is a floating-point number (Knuth)
    return np.where(exact, difference, np.nextafter(difference, -np.inf))


def _walls(domain: Polytope, origin: Floats, basis: Floats, reach: float) -> list[_Row]:
    """The inequalities of a polytope, with limits lowered by what rounding may do."""
    normals, limits = domain.matrix @ basis, domain.offset - domain.matrix @ origin
    sizes = np.abs(domain.matrix) @ (np.abs(basis).sum(axis=1) * reach + np.abs(origin)) + np.abs(domain.offset)
    limits -= 2.0 * (domain.dim + 8) * ROUNDOFF * sizes + LOST_OF_PRODUCTS * (1.0 + reach)
    return [_Row(tuple(normal), limit) for normal, limit in zip(normals.tolist(), limits.tolist(), strict=True)]


def _missed() -> DomainError:
    return DomainError("the slice misses the interior of the domain; choose points or a base point inside")


def _interval(rows: list[_Row]) -> Box:
    low, high = -np.inf, np.inf
    for (slope,), limit in rows:
        if slope:
            end = Fraction(limit) / Fraction(slope)
            near = float(end)
            if slope > 0.0:
                high = min(high, near if near <= end else float(np.nextafter(near, -np.inf)))
            else:
                low = max(low, near if near >= end else float(np.nextafter(near, np.inf)))
        elif limit < 0.0:
            raise _missed()
    if not low < high:
        raise _missed()
    return Box(np.array([low]), np.array([high]))


def _polygon(rows: list[_Row], reach: float) -> Domain:
    """The polygon of all coordinates that satisfy the rows, without those that are redundant; a box if its sides are those of one."""
    square = [_Row((1.0, 0.0), reach), _Row((0.0, 1.0), reach), _Row((-1.0, 0.0), reach), _Row((0.0, -1.0), reach)]
    corners = [_meet(square[number - 1], square[number]) for number in range(4)]
    sides = square  # from each corner on
    for row in rows:
        sides, corners = _clipped(sides, corners, row)
    if all(sorted(map(abs, row.normal)) == [0.0, 1.0] for row in sides):
        ends = {row.normal: row.limit for row in sides}
        return Box([-ends[-1.0, 0.0], -ends[0.0, -1.0]], [ends[1.0, 0.0], ends[0.0, 1.0]])  # pyright: ignore[reportArgumentType]  lists become arrays
    places = np.array([(float(x), float(y)) for x, y in corners])
    aside = _ASIDE * np.ptp(places, axis=0)
    box = Box(places.min(axis=0) - aside, places.max(axis=0) + aside)
    return Polytope(np.array([row.normal for row in sides]), np.array([row.limit for row in sides]), box)


_Corner = tuple[Fraction, Fraction]


def _clipped(sides: list[_Row], corners: list[_Corner], row: _Row) -> tuple[list[_Row], list[_Corner]]:
    """Cut a polygon; corner i lies between sides i - 1 and i.  In rational numbers, so that what is redundant is no question of rounding."""
    (a, b), limit = row
    quick = np.array([a * float(x) + b * float(y) - limit for x, y in corners])
    sizes = max(abs(a) * float(abs(x)) + abs(b) * float(abs(y)) for x, y in corners) + abs(limit)
    if (quick < -1e-9 * sizes).all():
        return sides, corners
    p, q, r = Fraction(a), Fraction(b), Fraction(limit)
    values = [p * x + q * y - r for x, y in corners]
    if max(values) <= 0:
        return sides, corners
    if min(values) >= 0:
        raise _missed()
    kept_sides, kept_corners = list[_Row](), list[_Corner]()
    for number, (side, corner) in enumerate(zip(sides, corners, strict=True)):
        here, there = values[number], values[(number + 1) % len(values)]
        if here <= 0:
            if here == 0 and there > 0:  # the row takes over from here
                kept_sides.append(row)
            else:
                kept_sides.append(side)
            kept_corners.append(corner)
        if here < 0 < there:
            kept_sides.append(row)
            kept_corners.append(_meet(side, row))
        elif there < 0 < here:
            kept_sides.append(side)
            kept_corners.append(_meet(row, side))
    return kept_sides, kept_corners


def _meet(one: _Row, other: _Row) -> _Corner:
    """Where two sides that are not parallel meet."""
    (a, b), (c, d) = (tuple(map(Fraction, row.normal)) for row in (one, other))
    e, f = Fraction(one.limit), Fraction(other.limit)
    return (e * d - b * f) / (a * d - b * c), (a * f - e * c) / (a * d - b * c)
