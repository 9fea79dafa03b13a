"""Where inputs come from: a box, or a polytope inside one; both may be unbounded, up to all of space."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from tessella.errors import DomainError, NetworkError, OptionError
from tessella.inequalities import bounding_box, interior_point
from tessella.network import Floats, Mask, Network, frozen_floats
from tessella.result import finite_or_none
from tessella.seeds import generator
from tessella.tolerances import DEFAULT, Tolerances

_MOST_INPUTS = 100_000_000


def _frozen(values: object, name: str, ndim: int) -> Floats:
    try:
        return frozen_floats(values, name, ndim)
    except NetworkError as error:
        raise DomainError(str(error)) from error


def _frozen_ends(values: object, name: str) -> Floats:
    """The same for the ends of a box, which may be infinite."""
    given = cast("npt.ArrayLike", values)
    try:
        endless = np.False_ if isinstance(values, np.ma.MaskedArray) else np.isinf(np.asarray(given))
    except (TypeError, ValueError):
        endless = np.False_
    ends = np.where(endless, 0.0, np.asarray(given, dtype=np.float64)) if np.any(endless) else values
    if np.any(_unknown(ends)):
        msg = f"{name} holds nan; ends of a box are finite numbers, or -inf and inf"
        raise DomainError(msg)
    found = _frozen(ends, name, np.ndim(cast("npt.ArrayLike", ends)))
    return np.where(endless, np.asarray(given, dtype=np.float64), found) if np.any(endless) else found


def _unknown(values: object) -> Mask:
    try:
        return np.isnan(np.asarray(cast("npt.ArrayLike", values)))
    except (TypeError, ValueError, RuntimeError):  # of which more is said where they are read
        return np.array(False)  # noqa: FBT003


def _ndim(values: object) -> int:
    try:
        return np.ndim(cast("npt.ArrayLike", values))
    except ValueError:  # rows of different lengths, of which more is said where they are read
        return 1


def _flat(values: object, name: str) -> Floats:
    """Numbers of any shape, row by row."""
    return _frozen(values, name, _ndim(values)).reshape(-1)


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """All points between two corners, both ends included.

    An input whose ends are equal is *fixed*: the domain is then the face that is left, and regions are counted
    by their interior within that face.  Ends may be infinite: a network has finitely many regions on all of space, too.

    Parameters
    ----------
    lower, upper
        The corners: one number per input, or a single number for all of them if `dim` is given or the other is an array.
    dim
        Number of inputs, needed only where both corners are single numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import tessella
    >>> tessella.Box(0, 1, dim=784)
    Box([0, 1]^784)
    >>> tessella.Box([0, -1], [1, 2])
    Box([0, 1] x [-1, 2])
    >>> tessella.Box(-np.inf, np.inf, dim=3), tessella.Box([0, -1], [np.inf, 2])
    (Box(all of R^3), Box([0, inf) x [-1, 2]))
    """

    lower: Floats
    upper: Floats
    dim: int = 0

    if TYPE_CHECKING:  # what may be given; the fields are what is kept

        def __init__(self, lower: npt.ArrayLike, upper: npt.ArrayLike, dim: int = 0) -> None: ...

    def __post_init__(self) -> None:
        """Validate, broadcast, and make read-only."""
        ends = [_frozen_ends(end, name) for end, name in ((self.lower, "lower"), (self.upper, "upper"))]
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
        if ((lower == np.inf) | (upper == -np.inf)).any():
            where = int(np.argmax((lower == np.inf) | (upper == -np.inf)))
            msg = f"the box is empty: input {where} would lie between {lower[where]:g} and {upper[where]:g}; infinite ends are -inf, inf"
            raise DomainError(msg)
        if (np.isfinite(lower) & np.isfinite(upper) & (upper / 2 - lower / 2 > np.finfo(np.float64).max / 2)).any():
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
    def around(cls, point: npt.ArrayLike, radius: npt.ArrayLike, *, within: "Box | None" = None) -> Self:
        """All points at most `radius` away from a point in every input.

        Parameters
        ----------
        point
            The centre; one in the shape of an image is flattened row by row.
        radius
            At least 0; or one radius per input.
        within
            A box to intersect with, such as the valid pixel values.
        """
        centre, reach = _flat(point, "point"), _flat(radius, "radius")
        if (reach < 0).any():
            msg = f"the radius must be at least 0, got {radius}"
            raise DomainError(msg)
        if reach.size not in {1, centre.size}:
            msg = f"the point has {centre.size} numbers and the radius has shape {reach.shape}; give one radius, or one per input"
            raise DomainError(msg)
        if within is not None and not isinstance(within, Box):  # pyright: ignore[reportUnnecessaryIsInstance]  callers may be untyped
            msg = f"within must be a Box, not an object of type {type(within).__name__}"
            raise DomainError(msg)
        lower, upper = _widened(centre, centre, reach)
        if within is None:
            return cls(lower, upper)
        if within.dim != centre.size:
            msg = f"the point has {centre.size} numbers, but the box around it has {within.dim} inputs"
            raise DomainError(msg)
        return cls(np.maximum(lower, within.lower), np.minimum(upper, within.upper))

    @classmethod
    def from_data(cls, data: npt.ArrayLike, margin: npt.ArrayLike = 0.0) -> Self:
        """The smallest box around data, widened by a margin on both sides of every input.

        Parameters
        ----------
        data
            One row per example; rows in the shape of images are flattened row by row.
        margin
            At least 0, in the units of the data; or one per input.

        Examples
        --------
        >>> Box.from_data([[0.0, 2.0], [1.0, -1.0], [0.5, 0.0]], margin=0.5)
        Box([-0.5, 1.5] x [-1.5, 2.5])
        """
        rows = _frozen(data, "data", _ndim(data))
        if rows.ndim < 2 or not rows.size:
            msg = f"data has shape {rows.shape}; one row per example was expected, and at least one example"
            raise DomainError(msg)
        rows, wider = rows.reshape(len(rows), -1), _flat(margin, "margin")
        if (wider < 0).any() or wider.size not in {1, rows.shape[1]}:
            msg = f"margin is {margin!s:.40}; it takes a number of at least 0, or one for each of the {rows.shape[1]} inputs"
            raise DomainError(msg)
        return cls(*_widened(rows.min(axis=0), rows.max(axis=0), wider))

    @property
    def box(self) -> "Box":
        """The box itself, so that boxes and polytopes can be asked alike."""
        return self

    @property
    def bounded(self) -> bool:
        """Whether all ends are finite."""
        return bool(np.isfinite(self.lower).all() and np.isfinite(self.upper).all())

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
        if not self.bounded:
            msg = f"nothing is uniform on {self.describe()}: draw points from a box with finite ends"
            raise DomainError(msg)
        if isinstance(count, bool) or not hasattr(count, "__index__") or count < 0:
            msg = f"count must be a whole number of at least 0, got {count!r:.40}"
            raise OptionError(msg)
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
        if np.isneginf(self.lower).all() and np.isposinf(self.upper).all():
            return "all of R" + (f"^{self.dim}" if self.dim > 1 else "")
        if (self.lower == self.lower[0]).all() and (self.upper == self.upper[0]).all():
            return spans[0] + (f"^{self.dim}" if self.dim > 1 else "")
        return " x ".join(spans) if self.dim <= len(spans) else " x ".join(spans[:2]) + f" x ... ({self.dim} inputs)"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; an infinite end is None."""
        return {"text": self.describe(), "lower": finite_or_none(self.lower), "upper": finite_or_none(self.upper)}

    def __repr__(self) -> str:
        """One line a person can read."""
        fixed = self.dim - self.free_dim
        return f"Box({self.describe()}{f', {fixed} fixed' if fixed else ''})"


@dataclass(frozen=True, slots=True, eq=False)
class Polytope:
    """All points of a box that satisfy ``matrix @ x <= offset``.

    It must have an interior within its box (the free inputs of it): otherwise there is no full-dimensional region to count.
    It may be unbounded.

    Parameters
    ----------
    matrix, offset
        The inequalities, one row each.
    box
        The box.  If it is None, the smallest one is computed; if the inequalities leave the polytope unbounded, it is all of space.
    tolerances
        How thin is too thin.

    Examples
    --------
    >>> import tessella
    >>> tessella.Polytope([[1.0, 1.0]], [1.0], tessella.Box(0, 1, dim=2))
    Polytope(1 inequality in [0, 1]^2)
    """

    matrix: Floats
    offset: Floats
    box: Box = None  # pyright: ignore[reportAssignmentType]  computed where it is left out
    tolerances: Tolerances = DEFAULT
    _centre: Floats = field(init=False, repr=False, default=None)  # pyright: ignore[reportAssignmentType]  computed

    if TYPE_CHECKING:

        def __init__(
            self, matrix: npt.ArrayLike, offset: npt.ArrayLike, box: Box | None = None, tolerances: Tolerances = DEFAULT
        ) -> None: ...

    def __post_init__(self) -> None:
        """Validate, find the box if there is none, and find an interior point."""
        matrix = _frozen(self.matrix, "matrix", ndim=2)
        offset = _frozen(self.offset, "offset", ndim=1)
        if offset.shape != (matrix.shape[0],):
            msg = f"matrix has {_plural(matrix.shape[0], 'row')}, but offset has {_plural(offset.size, 'number')}; give one per inequality"
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
        around = Box(*bounding_box(matrix, offset)) if box is None else box
        object.__setattr__(self, "box", around)
        centre = interior_point(matrix, offset, around.lower, around.upper, self.tolerances.interior)
        object.__setattr__(self, "_centre", centre)

    @property
    def dim(self) -> int:
        """Number of inputs."""
        return self.box.dim

    @property
    def free_dim(self) -> int:
        """Number of inputs that the box does not fix."""
        return self.box.free_dim

    @property
    def bounded(self) -> bool:
        """Whether its box is; inequalities alone may bound a polytope whose box is not."""
        return self.box.bounded

    @property
    def centre(self) -> Floats:
        """A point in the interior: the centre of a largest ball; of a large one if the box is unbounded."""
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


def check_bounded(domain: Domain, who: str) -> None:
    """Raise if a domain is unbounded; ``who`` needs a bounded one, such as ``"a slice"``."""
    if not domain.bounded:
        msg = f"{who} needs a bounded domain, and this one is {domain.describe():.100}; give a box with finite ends, such as Box(-10, 10, dim={domain.dim}) (--box=-10,10 in a shell)"
        raise DomainError(msg)


def _span(low: float, high: float) -> str:
    """An interval with six digits, or as many as it takes for its width to be seen."""
    if not (np.isfinite(low) and np.isfinite(high)):
        return f"{'(' if np.isinf(low) else '['}{low:g}, {high:g}{')' if np.isinf(high) else ']'}"
    slack = 2e-3 * (high / 2.0 - low / 2.0)
    texts = [f"{low:g}", f"{high:g}"]
    for digits in range(6, 18) if slack else ():
        texts = [f"{end:.{digits}g}" for end in (low, high)]
        if all(abs(float(text) - end) <= slack for text, end in zip(texts, (low, high), strict=True)):
            break
    return f"[{texts[0]}, {texts[1]}]"


def _widened(lower: Floats, upper: Floats, by: Floats) -> tuple[Floats, Floats]:
    """The ends of a box, moved outward."""
    with np.errstate(over="ignore"):
        ends = lower - by, upper + by
    if not all(np.isfinite(end).all() for end in ends):
        msg = "the box would reach beyond the largest floating-point number; make it smaller, or give infinite ends: Box(-inf, inf, dim=n)"
        raise DomainError(msg)
    return ends


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _points(points: npt.ArrayLike, dim: int) -> Floats:
    try:
        batch = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"points cannot be read as numbers: {error!s:.100}"
        raise DomainError(msg) from error
    if batch.ndim not in {1, 2} or batch.shape[-1] != dim:
        msg = f"points have shape {batch.shape}; expected ({dim},) or (points, {dim})"
        raise DomainError(msg)
    return batch
