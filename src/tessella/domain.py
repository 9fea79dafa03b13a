"""Where inputs come from: a bounded box, or a polytope inside one."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from tessella.errors import DomainError, NetworkError
from tessella.network import Floats, Mask, Network, frozen_floats
from tessella.numerics import LOST_OF_PRODUCTS, ROUNDOFF
from tessella.seeds import generator
from tessella.tolerances import DEFAULT, Tolerances

_MOST_INPUTS = 100_000_000
_CLOSER = 1e-6  # what a polytope's surroundings are enlarged by, of its box
_EMPTY = 1e-6  # what a solver's constraints hold up to, and a little more


def _frozen(values: object, name: str, ndim: int) -> Floats:
    try:
        return frozen_floats(values, name, ndim)
    except NetworkError as error:
        raise DomainError(str(error)) from error


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """All points between two corners, both ends included.

    An input whose ends are equal is *fixed*: the domain is then the face that is left, and regions are counted
    by their interior within that face.

    Parameters
    ----------
    lower, upper
        The corners: one number per input, or a single number for all of them if `dim` is given or the other is an array.
    dim
        Number of inputs, needed only where both corners are single numbers.

    Examples
    --------
    >>> Box(0, 1, dim=784)
    Box([0, 1]^784)
    >>> Box([0, -1], [1, 2])
    Box([0, 1] x [-1, 2])
    """

    lower: Floats
    upper: Floats
    dim: int = 0

    def __post_init__(self) -> None:
        """Validate, broadcast, and make read-only."""
        ends = [
            _frozen(end, name, np.ndim(cast("npt.ArrayLike", end)))
            for end, name in ((self.lower, "lower"), (self.upper, "upper"))
        ]
        if any(end.ndim > 1 for end in ends):
            msg = f"corners have shapes {ends[0].shape} and {ends[1].shape}; flatten them to one number per input"
            raise DomainError(msg)
        if isinstance(self.dim, bool) or not hasattr(self.dim, "__index__") or self.dim < 0:
            msg = f"dim must be a positive whole number, got {self.dim!r}"
            raise DomainError(msg)
        sizes = {end.size for end in ends if end.ndim} | ({self.dim} if self.dim else set[int]())
        if not sizes:
            msg = "both corners are single numbers: say how many inputs there are, as in Box(0, 1, dim=784)"
            raise DomainError(msg)
        if len(sizes) > 1 or 0 in sizes:
            msg = f"lower has {ends[0].size} numbers, upper {ends[1].size}" + (f", and dim is {self.dim}" if self.dim else "")
            msg += "; a box needs at least one input and as many numbers in each corner"
            raise DomainError(msg)
        (dim,) = sizes
        if dim > _MOST_INPUTS:
            msg = f"a box of {dim:,} inputs is too large; at most {_MOST_INPUTS:,} can be held"
            raise DomainError(msg)
        lower, upper = (np.broadcast_to(end, (dim,)) + 0.0 for end in ends)  # a copy, in which -0.0 is 0.0
        if (lower > upper).any():
            where = int(np.argmax(lower > upper))
            msg = f"the box is empty: input {where} would lie between {lower[where]:g} and {upper[where]:g}"
            raise DomainError(msg)
        if (upper / 2 - lower / 2 > np.finfo(np.float64).max / 2).any():
            msg = "the box is wider than the largest floating-point number; give smaller ends"
            raise DomainError(msg)
        lower.flags.writeable = upper.flags.writeable = False
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "dim", int(dim))

    @classmethod
    def cube(cls, lower: float, upper: float, dim: int) -> Self:
        """The same interval for every input."""
        return cls(cast("Floats", lower), cast("Floats", upper), dim=dim)

    @classmethod
    def around(cls, point: npt.ArrayLike, radius: float, *, within: "Box | None" = None) -> Self:
        """All points at most `radius` away from a point in every input.

        Parameters
        ----------
        point
            The centre, flattened.
        radius
            At least 0; or one radius per input.
        within
            A box to intersect with, such as the valid pixel values.
        """
        centre = _frozen(point, "point", ndim=1)
        reach = _frozen(radius, "radius", np.ndim(radius))
        if (reach < 0).any():
            msg = f"the radius must be at least 0, got {radius}"
            raise DomainError(msg)
        if reach.ndim > 1 or reach.shape not in {(), centre.shape}:
            msg = f"the point has {centre.size} numbers and the radius has shape {reach.shape}; give one radius, or one per input"
            raise DomainError(msg)
        if within is None:
            return cls(centre - reach, centre + reach)
        if within.dim != centre.size:
            msg = f"the point has {centre.size} numbers, but the box around it has {within.dim} inputs"
            raise DomainError(msg)
        return cls(np.maximum(centre - reach, within.lower), np.minimum(centre + reach, within.upper))

    @property
    def box(self) -> "Box":
        """The box itself, so that boxes and polytopes can be asked alike."""
        return self

    @property
    def free(self) -> Mask:
        """Which inputs are not fixed."""
        return self.lower < self.upper

    @property
    def free_dim(self) -> int:
        """Number of inputs that are not fixed."""
        return int(self.free.sum())

    def contains(self, points: npt.ArrayLike) -> Mask:
        """Whether points lie in the domain; one truth value per point."""
        batch = _points(points, self.dim)
        return np.asarray(((batch >= self.lower) & (batch <= self.upper)).all(axis=-1))

    def sample(self, count: int, rng: int | np.random.Generator = 0) -> Floats:
        """Points drawn uniformly, of shape (count, dim)."""
        return generator(rng).uniform(self.lower, self.upper, (count, self.dim))

    def __eq__(self, other: object) -> bool:
        """Same corners."""
        return isinstance(other, Box) and np.array_equal(self.lower, other.lower) and np.array_equal(self.upper, other.upper)

    def __hash__(self) -> int:
        """Consistent with equality."""
        return hash((self.lower.tobytes(), self.upper.tobytes()))

    def describe(self) -> str:
        """A short text such as ``[0, 1]^784``."""
        spans = [_span(low, high) for low, high in zip(self.lower[:4].tolist(), self.upper[:4].tolist(), strict=True)]
        if (self.lower == self.lower[0]).all() and (self.upper == self.upper[0]).all():
            return spans[0] + (f"^{self.dim}" if self.dim > 1 else "")
        return " x ".join(spans) if self.dim <= len(spans) else " x ".join(spans[:2]) + f" x ... ({self.dim} inputs)"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"text": self.describe(), "lower": self.lower.tolist(), "upper": self.upper.tolist()}

    def __repr__(self) -> str:
        """One line a person can read."""
        fixed = self.dim - self.free_dim
        return f"Box({self.describe()}{f', {fixed} fixed' if fixed else ''})"


@dataclass(frozen=True, slots=True, eq=False)
class Polytope:
    """All points of a box that satisfy ``matrix @ x <= offset``.

    It must have an interior within its box (the free inputs of it): otherwise there is no full-dimensional region to count.

    Parameters
    ----------
    matrix, offset
        The inequalities, one row each.
    box
        The box.  If it is None, the smallest one is computed, and inequalities that leave the polytope unbounded raise.
    tolerances
        How thin is too thin.

    Examples
    --------
    >>> Polytope([[1.0, 1.0]], [1.0], Box(0, 1, dim=2))
    Polytope(1 inequality in [0, 1]^2)
    """

    matrix: Floats
    offset: Floats
    box: Box = None  # pyright: ignore[reportAssignmentType]  computed where it is left out
    tolerances: Tolerances = DEFAULT
    _centre: Floats = field(init=False, repr=False, default=None)  # pyright: ignore[reportAssignmentType]  computed

    def __post_init__(self) -> None:
        """Validate, find the box if there is none, and find an interior point."""
        matrix = _frozen(self.matrix, "matrix", ndim=2)
        offset = _frozen(self.offset, "offset", ndim=1)
        if offset.shape != (matrix.shape[0],):
            msg = f"matrix has {matrix.shape[0]} rows, but offset has {offset.size} numbers; give one per inequality"
            raise DomainError(msg)
        if matrix.shape[1] == 0:
            msg = f"matrix has shape {matrix.shape}; a polytope needs at least one input"
            raise DomainError(msg)
        box = cast("Box | None", self.box)
        if box is not None and not isinstance(box, Box):  # pyright: ignore[reportUnnecessaryIsInstance]  callers may be untyped
            msg = f"box must be a Box, not an object of type {type(box).__name__}"
            raise DomainError(msg)
        if box is not None and box.dim != matrix.shape[1]:
            msg = f"matrix has {matrix.shape[1]} columns, but the box has {box.dim} inputs"
            raise DomainError(msg)
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "offset", offset)
        object.__setattr__(self, "box", _bounding_box(matrix, offset) if box is None else box)
        object.__setattr__(self, "_centre", _interior_point(matrix, offset, self.box, self.tolerances.interior))

    @property
    def dim(self) -> int:
        """Number of inputs."""
        return self.box.dim

    @property
    def free_dim(self) -> int:
        """Number of inputs that the box does not fix."""
        return self.box.free_dim

    @property
    def centre(self) -> Floats:
        """A point in the interior: the centre of a largest ball."""
        return self._centre

    def contains(self, points: npt.ArrayLike) -> Mask:
        """Whether points lie in the domain; one truth value per point."""
        batch = _points(points, self.dim)
        return self.box.contains(batch) & (batch @ self.matrix.T <= self.offset).all(axis=-1)

    def __eq__(self, other: object) -> bool:
        """Same inequalities in the same order, same box."""
        return (
            isinstance(other, Polytope)
            and self.box == other.box
            and np.array_equal(self.matrix, other.matrix)
            and np.array_equal(self.offset, other.offset)
        )

    def __hash__(self) -> int:
        """Consistent with equality."""
        return hash((self.box, self.matrix.tobytes(), self.offset.tobytes()))

    def describe(self) -> str:
        """A short text such as ``1 inequality in [0, 1]^2``."""
        rows = len(self.offset)
        return f"{rows} inequalit{'y' if rows == 1 else 'ies'} in {self.box.describe()}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**self.box.to_dict(), "text": self.describe(), "matrix": self.matrix.tolist(), "offset": self.offset.tolist()}

    def __repr__(self) -> str:
        """One line a person can read."""
        return f"Polytope({self.describe()})"


Domain: TypeAlias = Box | Polytope


def check_fit(network: object, domain: object) -> None:
    """Raise unless these are a network and a domain with as many inputs as the network reads."""
    if not isinstance(network, Network):
        msg = f"a network was expected, not an object of type {type(network).__name__}; tessella.load makes one"
        raise NetworkError(msg)
    if not isinstance(domain, (Box, Polytope)):
        msg = f"a Box or Polytope was expected as domain, not an object of type {type(domain).__name__}"
        raise DomainError(msg)
    if domain.dim != network.input_dim:
        msg = f"the domain has {domain.dim} inputs, but the network reads {network.input_dim}"
        raise DomainError(msg)


def _span(low: float, high: float) -> str:
    """An interval with six digits, or as many as it takes for its width to be seen."""
    slack = 2e-3 * (high / 2.0 - low / 2.0)
    texts = [f"{low:g}", f"{high:g}"]
    for digits in range(6, 18) if slack else ():
        texts = [f"{end:.{digits}g}" for end in (low, high)]
        if all(abs(float(text) - end) <= slack for text, end in zip(texts, (low, high), strict=True)):
            break
    return f"[{texts[0]}, {texts[1]}]"


def _points(points: npt.ArrayLike, dim: int) -> Floats:
    batch = np.asarray(points, dtype=np.float64)
    if batch.ndim not in {1, 2} or batch.shape[-1] != dim:
        msg = f"points have shape {batch.shape}; expected ({dim},) or (points, {dim})"
        raise DomainError(msg)
    return batch


def _bounding_box(matrix: Floats, offset: Floats) -> Box:
    """A box that is proved to hold every point with matrix @ x <= offset.

    Multipliers y >= 0 of the rows prove x_i <= b.y + r.x with the residual r = e_i - A'y, which a solver leaves a little off zero.
    Summed up over all inputs, |x| <= U + R |x| with small R bounds |x| (by max U / (1 - R)), and so what r.x can add.
    """
    from scipy.optimize import linprog  # noqa: PLC0415  heavy, and only polytopes need it

    scaled, limits, scale = _equilibrated(matrix, offset)
    rows, dim = scaled.shape
    ends, residuals = np.zeros((2, dim)), np.zeros((2, dim))
    for column, sign in [(column, sign) for column in range(dim) for sign in (1.0, -1.0)]:
        direction = sign * np.eye(dim)[column]
        found = cast("Any", linprog)(-direction, A_ub=scaled, b_ub=limits, bounds=(None, None), method="highs")
        if found.status == 2:
            msg = "the polytope is empty: no point satisfies all inequalities"
            raise DomainError(msg)
        if found.status != 0:
            msg = f"the polytope is unbounded in input {column}, as far as could be found out; add inequalities or give a box"
            raise DomainError(msg)
        y = np.maximum(-found.ineqlin.marginals, 0.0)
        rounding = 4.0 * (rows + dim + 8) * ROUNDOFF
        side = 0 if sign > 0 else 1
        ends[side, column] = limits @ y + rounding * (np.abs(limits) @ y)
        residuals[side, column] = (np.abs(direction - y @ scaled) + rounding * (y @ np.abs(scaled) + 1.0)).sum()
    share, reach = float(residuals.max()), float(np.abs(ends).max())
    if not share < 0.5:
        msg = "no box could be proved to hold the polytope: its inequalities differ too much in size; give a box"
        raise DomainError(msg)
    upper, lower = ends + residuals * (2.0 * reach)
    slack = 1e-9 * (1.0 + np.abs(upper) + np.abs(lower))
    return Box(-(lower + slack) * scale, (upper + slack) * scale)


def _equilibrated(matrix: Floats, offset: Floats) -> tuple[Floats, Floats, Floats]:
    """Rows and columns multiplied by powers of two until their largest entries are near 1; x is scale times the new x."""
    rows, limits, scale = matrix.copy(), offset.copy(), np.ones(matrix.shape[1])
    for _ in range(4):
        by_row = _power_of_two(np.abs(rows).max(axis=1, initial=0.0))
        rows, limits = rows / by_row[:, None], limits / by_row
        by_column = _power_of_two(np.abs(rows).max(axis=0, initial=0.0))
        rows, scale = rows / by_column, scale / by_column
    return rows, limits, scale


def _power_of_two(sizes: Floats) -> Floats:
    return np.exp2(np.round(np.log2(np.where(sizes > 0.0, sizes, 1.0))))


def _interior_point(matrix: Floats, offset: Floats, box: Box, thinnest: float) -> Floats:
    """The centre of a largest ball in the polytope, where the box's free inputs are scaled to [0, 1].

    A solver's constraints hold up to 1e-7 or so, which is more than a thin polytope has: its point is asked, exactly, whether it lies inside, and if it
    does not, the same problem is solved again with its surroundings enlarged.
    """
    free, width = box.free, box.upper - box.lower
    fixed = ~(matrix[:, free] != 0.0).any(axis=1)
    if not holds(matrix[fixed], offset[fixed], box.lower, strictly=False):
        msg = "the polytope is empty: an inequality without any free input does not hold"
        raise DomainError(msg)
    point = np.array(box.lower)
    if not free.any():
        return point
    walls, limits = matrix[~fixed][:, free] * width[free], offset[~fixed] - matrix[~fixed] @ box.lower
    for norm in (np.inf, 2):  # first the largest entry: squares may underflow
        size = np.linalg.norm(walls, norm, axis=1)
        walls, limits = walls / np.where(size > 0.0, size, 1.0)[:, None], limits / np.where(size > 0.0, size, 1.0)
    at, radius = np.zeros(int(free.sum())), np.inf
    for size in (1.0, _CLOSER):
        step, radius = _largest_ball(walls, (limits - walls @ at) / size, -at / size, (1.0 - at) / size)
        at, radius = np.clip(at + size * step, 0.0, 1.0), size * radius
        point[free] = np.clip(box.lower[free] + width[free] * at, box.lower[free], box.upper[free])
        inside = ((box.lower < point) & (point < box.upper))[free].all() and holds(matrix[~fixed], offset[~fixed], point)
        if inside and min((limits - walls @ at).min(initial=1.0), at.min(), (1.0 - at).min()) > thinnest:
            point.flags.writeable = False
            return point
        if radius < -_EMPTY:
            break
    what = "is empty" if radius < -_EMPTY else "has no interior"
    msg = (
        f"the polytope {what}: no ball of radius {thinnest:.0e} of its box was found in it; "
        "equal ends of the box fix an input instead"
    )
    raise DomainError(msg)


def _largest_ball(walls: Floats, limits: Floats, lower: Floats, upper: Floats) -> tuple[Floats, float]:
    """Centre and radius of a largest ball in a polytope whose rows have length 1, in a box; the radius is negative if it is empty."""
    from scipy.optimize import linprog  # noqa: PLC0415  heavy, and only polytopes need it
    from scipy.sparse import csr_array, eye_array, hstack, vstack  # noqa: PLC0415

    count = len(lower)
    every = vstack([csr_array(walls), eye_array(count), -eye_array(count)])
    limits = np.concatenate([limits, upper, -lower])
    found = cast("Any", linprog)(
        np.append(np.zeros(count), -1.0),
        A_ub=hstack([every, np.ones((len(limits), 1))], format="csr"),
        b_ub=limits,
        bounds=[*zip(np.maximum(lower, -1.0), np.minimum(upper, 1.0), strict=True), (-2.0, 2.0)],
        method="highs",
    )
    return (found.x[:-1], float(found.x[-1])) if found.status == 0 else (np.zeros(count), -np.inf)


def holds(matrix: Floats, offset: Floats, point: Floats, *, strictly: bool = True) -> bool:
    """Whether all inequalities hold at a point: in floating point where that is clear, else exactly."""
    room = offset - matrix @ point
    rounding = 2.0 * (matrix.shape[1] + 8) * ROUNDOFF * (np.abs(matrix) @ np.abs(point) + np.abs(offset)) + LOST_OF_PRODUCTS
    for number in np.flatnonzero(~(room > rounding)).tolist():
        products = (Fraction(a) * Fraction(x) for a, x in zip(matrix[number].tolist(), point.tolist(), strict=True))
        exact = Fraction(float(offset[number])) - sum(products)
        if exact < 0 or (strictly and exact == 0):
            return False
    return True
