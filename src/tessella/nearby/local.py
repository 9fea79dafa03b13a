"""The regions around points: the door, and what it answers."""

import math
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from tessella import options
from tessella.answer import Answer, past, read_domain, read_network
from tessella.domain import Box
from tessella.door import DomainLike, NetworkLike, enter, enter_anywhere
from tessella.errors import DomainError, NetworkError, OptionError
from tessella.executors import ExecutorLike, hiring
from tessella.kernel import meter
from tessella.kernel.deadline import Deadline
from tessella.kernel.threads import single_threaded
from tessella.nearby.around import Around, Chances, ask
from tessella.nearby.balls import Balls, Norm
from tessella.nearby.walls import NORMS
from tessella.network import Floats, Network, frozen_floats
from tessella.parallel import Stop, run, worker_count
from tessella.progress import with_bar
from tessella.result import Status, format_confidence, format_count, told
from tessella.seeds import generator
from tessella.upper.configuration import configuration, stages

_WHO = "a local count"
_TASKS = 8  # for each worker
_GRACE = 0.1  # how much longer than asked, as a part of the time (of a second at least), those who are about to end may take
_FLAT = 1e-6  # how far directions of a basis may be from orthonormal


@dataclass(frozen=True, slots=True)
class Local(Answer):
    """The regions around points.

    All numbers but `probable_lower` and `probable_upper` are proved: where two ends differ, the truth lies between them.

    Parameters
    ----------
    network
        Whose regions.
    points
        The points, one row each.
    radius, norm
        The balls around them.
    domain
        What lies outside of it was cut off; None for nothing.
    basis
        Directions, as columns, that span the subspace in which the balls are; None for all inputs.
    lower, upper
        For each point proved bounds on the number of regions that its ball meets.
    walls
        For each point how far the nearest wall of its own region is, at least and at most, in the norms l1, l2 and linf: an array of shape (points, 3, 2).
    units_lower, units_upper
        For each point how many units change their sign in the ball, at least and at most; of the outer box for l2.
    probable_lower, probable_upper
        For each point bounds on the number of regions that hold together with the confidence, from random descents; the proved ones where these are as good, as they are for all balls that were counted.
    confidence
        Of these two, for each ball by itself; 1 if nothing was estimated.
    status
        Why it ended.
    seconds
        Wall time spent, without compiling.
    """

    network: Network
    points: Floats
    radius: float
    norm: Norm
    domain: Box | None
    basis: Floats | None
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    walls: Floats
    units_lower: tuple[int, ...]
    units_upper: tuple[int, ...]
    probable_lower: tuple[int, ...] = ()
    probable_upper: tuple[int, ...] = ()
    confidence: float = 1.0
    status: Status = Status.FINISHED
    seconds: float = 0.0

    def __post_init__(self) -> None:
        """Make read-only arrays, of lists too; an infinite distance is None in JSON; what is proved is probable, too."""
        object.__setattr__(self, "probable_lower", tuple(self.probable_lower or self.lower))
        object.__setattr__(self, "probable_upper", tuple(self.probable_upper or self.upper))
        for name in ("points", "basis", "walls"):
            values = getattr(self, name)
            if values is not None:
                array = np.array(values, dtype=np.float64)
                if name == "walls":
                    array = np.where(np.isnan(array), np.inf, array).reshape(-1, 3, 2)
                array.flags.writeable = False
                object.__setattr__(self, name, array)

    @property
    def counts(self) -> tuple[int | None, ...]:
        """For each point the number of regions, exactly; None where the bounds differ."""
        return tuple(low if low == high else None for low, high in zip(self.lower, self.upper, strict=True))

    @property
    def distances(self) -> Floats:
        """For each point the distance to the nearest wall of its own region, in the norm of the balls, rounded down; 0 on a wall, infinite without walls."""
        return self.walls[:, NORMS.index(self.norm), 0]

    def __len__(self) -> int:
        """How many points there are."""
        return len(self.points)

    @property
    def _likely(self) -> int:
        """How many balls have better bounds with the confidence than proved ones."""
        ends = zip(self.lower, self.upper, self.probable_lower, self.probable_upper, strict=True)
        return sum((low, high) != (likely_low, likely_high) for low, high, likely_low, likely_high in ends)

    def __repr__(self) -> str:
        """One line a person can read."""
        exact = sorted(number for number in self.counts if number is not None)
        middle = f", the median {format_count(exact[len(exact) // 2])} regions" if exact else ""
        early = "" if self.status is Status.FINISHED else f", {self.status}"
        where = f"{self.norm} balls of {self.radius:g}{self._place()}"
        likely = f", {self._likely:,} bounded with {format_confidence(self.confidence)} confidence" if self._likely else ""
        return f"Local({len(exact):,} of {len(self):,} {where} counted{middle}{likely}{early}, {self.seconds:.2f} s)"

    def _place(self) -> str:
        return "" if self.basis is None else f" in {self.basis.shape[1]} directions"

    def rows(self) -> list[dict[str, Any]]:
        """One row per point: how many regions its ball meets, distances to the nearest wall, and units that change."""
        walls = {f"distance_{name}": self.walls[:, number, 0].tolist() for number, name in enumerate(NORMS)}
        columns = {"point": list(range(len(self))), "regions": self.counts, "at_least": self.lower, "at_most": self.upper}
        columns |= {"probably_at_least": self.probable_lower, "probably_at_most": self.probable_upper}
        columns = {**columns, **walls, "units_at_least": self.units_lower, "units_at_most": self.units_upper}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _title(self) -> str:
        return f"Regions of {self.network.shape} in {len(self):,} {self.norm} balls of radius {self.radius:g}{self._place()}"

    def _note(self) -> str:
        return "" if self.status is Status.FINISHED else f"Not all balls were counted ({self.status})."

    def _record(self) -> dict[str, Any]:
        return {
            **past(self.network, self.domain),
            **told(self, "points", "radius", "norm", "basis", "counts", "lower", "upper", "distances", "walls"),
            **told(self, "probable_lower", "probable_upper", "confidence"),
            **told(self, "units_lower", "units_upper", "status", "seconds"),
        }

    @classmethod
    def _placed(cls, record: Mapping[str, Any], network: Network | None) -> dict[str, Any]:
        walls = [[[np.inf if end is None else end for end in pair] for pair in one] for one in record["walls"]]
        domain = read_domain(record.get("domain"))
        return {**record, "network": read_network(record, network), "domain": domain, "walls": np.array(walls)}


@with_bar(lambda done, total: (f"{done:,} of {total:,} points", done / max(total, 1)))
@hiring
def local(  # noqa: PLR0913  one keyword per option
    network: NetworkLike,
    points: npt.ArrayLike,
    radius: float,
    norm: Norm | str = Norm.LINF,
    *,
    subspace: npt.ArrayLike | int | None = None,
    domain: DomainLike | None = None,
    seconds: float | None = None,
    confidence: float = 0.95,
    executor: ExecutorLike | None = None,
    workers: int | None = None,
    rng: int | np.random.Generator = 0,
    progress: Callable[[int, int], None] | bool | None = None,
) -> Local:
    """Count the regions around points, and say how far the nearest wall is.

    Counts, `lower`, `upper` and distances are proved.  In a given time, balls that cannot be counted have bounds with a confidence, too, from random descents.  Ctrl-C returns what is known so far.

    Parameters
    ----------
    network
        What `tessella.load` takes.
    points
        One row each; rows in the shape of images are flattened row by row.
    radius
        Of the balls.
    norm
        ``"linf"`` (boxes), ``"l1"``, or ``"l2"``: a lower bound from the box inside, an upper one from the box around it.
    subspace
        Directions in which the balls extend: a basis of orthonormal columns, shape (inputs, k), or a number k for as many random ones.  Norms, and distances, are those of the coordinates.
    domain
        A box such as ``(0, 1)`` that holds the points; what lies outside of it is cut off from the balls.
    seconds
        For all points together; balls that are not finished have bounds.  None for no limit.
    confidence
        Of ``probable_lower`` and ``probable_upper``, for each ball that was not counted to the end in the time given.
    executor
        Any `concurrent.futures.Executor`, a Dask client, or the address of a Dask scheduler; None for threads of this process.
    workers
        How many work at the same time; None for all cores, or as many as the executor has.
    rng
        Draws random directions, and descents.
    progress
        Called with the number of points done and their total; True for a bar on a terminal or in a notebook.

    Examples
    --------
    >>> import tessella
    >>> net = tessella.load([([[1.0, 0.0], [0.0, 1.0]], None), ([[1.0, -1.0]], [0.25])], relu_output=True)
    >>> found = tessella.local(net, [[0.5, 0.5], [0.25, -1.0]], radius=0.5)
    >>> found.counts, found.distances.round(9).tolist()
    ((2, 2), [0.125, 0.25])
    """
    begun = meter.clock()
    read, within = _entered(network, domain)
    chosen = options.chosen(Norm, norm, "norm", _WHO)
    places, source = _places(points, read), generator(rng)
    balls = Balls(read, _radius(radius), chosen, within, _basis(subspace, read, source))
    _check_inside(places, balls)
    options.check_seconds(seconds, _WHO)
    options.check_confidence(confidence, _WHO)
    options.check_workers(workers, _WHO)
    hired = options.check_executor(executor, _WHO)
    tell = options.check_progress(progress, _WHO, "the number of points done and their total")
    chances = Chances(confidence, int(source.integers(2**62)))
    found, status = _gathered(balls, places, Deadline.after(seconds), chances, (hired, workers), tell)
    counted = len(found) == len(places) and all(one.lower == one.upper for one in found.values())
    most = None if counted else _most(read)
    every = [_at_most(most, found.get(number) or _nothing(most or 1, read)) for number in range(len(places))]
    low, high, units_low, units_high, walls, likely_low, likely_high, _ = zip(*every, strict=True)
    sure = (likely_low, likely_high) == (low, high)
    return Local(
        read,
        places,
        balls.radius,
        chosen,
        balls.within,
        balls.basis,
        low,
        high,
        np.array(walls, dtype=np.float64),
        units_low,
        units_high,
        likely_low,
        likely_high,
        1.0 if sure else confidence,
        status,
        meter.clock() - begun,
    )


def _gathered(  # noqa: PLR0913, PLR0917  who works on what
    balls: Balls,
    places: Floats,
    deadline: Deadline,
    chances: Chances,
    who: tuple[Executor | None, int | None],
    tell: Callable[[int, int], None] | None,
) -> tuple[dict[int, Around], Status]:
    """What is known of the balls that there was time for, and why it ended."""
    executor, workers = who
    found, status, many = dict[int, Around](), Status.FINISHED, worker_count(workers, executor)
    size = max(min(len(places) // (_TASKS * many), 32), 1)
    parts = [range(begin, min(begin + size, len(places))) for begin in range(0, len(places), size)]
    pool = ThreadPoolExecutor(many) if executor is None and many > 1 and len(parts) > 1 else nullcontext(executor)
    stop, left = Stop(), deadline.left
    try:
        with pool as someone, single_threaded(), _asking(stop):
            share = None if np.isinf(left) else left / (math.ceil(len(parts) / many) * size)
            tasks = [(part.start, balls, places[part.start : part.stop], share, chances, stop) for part in parts]
            for number, part in run(ask, tasks, someone, lambda: deadline.left < -_GRACE * max(left, 1.0)):
                found.update(zip(parts[number], part, strict=True))
                if tell is not None:
                    tell(len(found), len(places))
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    unfinished = len(found) < len(places) or any(one.late for one in found.values())
    return found, Status.TIME_LIMIT if unfinished and status is Status.FINISHED else status


@contextmanager
def _asking(stop: Stop) -> Generator[None]:
    """What other threads are still at when this ends need not be finished."""
    try:
        yield
    finally:
        stop.asked = True


def _most(network: Network) -> int:
    """How many regions a network of this shape has at most."""
    try:
        return configuration(network.input_dim, stages(network))
    except OptionError:  # too wide for that
        return 1 << network.relus


def _at_most(most: int | None, one: Around) -> Around:
    """A ball has no more regions than any network of this shape; None where that is not asked."""
    return one if most is None else one._replace(upper=min(one.upper, most), probable_upper=min(one.probable_upper, most))


def _nothing(most: int, network: Network) -> Around:
    """What is known of a ball that nobody looked at."""
    return Around(1, most, 0, network.relus, [[0.0, np.inf]] * 3, 1, most, late=True)


def _entered(network: NetworkLike, domain: DomainLike | None) -> tuple[Network, Box | None]:
    if domain is None:
        return enter_anywhere(network, None)[0], None
    read, within = enter(network, domain)
    if not isinstance(within, Box):
        msg = f"{_WHO} takes a box as domain, not {within.describe():.60}; give the box around it"
        raise DomainError(msg)
    return read, within


def _places(points: npt.ArrayLike, network: Network) -> Floats:
    """The points, checked."""
    try:
        places = frozen_floats(points, "points", ndim=np.ndim(points))
    except NetworkError as error:
        raise OptionError(str(error)) from error
    except ValueError as error:
        msg = f"points cannot be read as rows of {network.input_dim} numbers: {error!s:.80}"
        raise OptionError(msg) from error
    if places.ndim == 1 and places.size == network.input_dim:
        places = places[None]
    if places.ndim < 2 or not len(places) or places.size != len(places) * network.input_dim:
        msg = f"points have shape {places.shape}; expected one row per point, with {network.input_dim} inputs each"
        raise OptionError(msg)
    return places.reshape(len(places), -1)


def _radius(radius: object) -> float:
    if isinstance(radius, bool) or not isinstance(radius, Real) or not 0.0 < float(radius) < np.inf:
        msg = f"radius is {radius!r:.40}; {_WHO} takes a positive number, such as 0.01"
        raise OptionError(msg)
    return float(radius)


def _basis(given: Any, network: Network, source: np.random.Generator) -> Floats | None:
    """Directions as columns."""
    if given is None:
        return None
    dim = network.input_dim
    if np.ndim(given) == 0:
        options.check_whole(given, "subspace", _WHO, of="directions")
        if int(given) > dim:
            msg = f"subspace is {given}, but the network has {dim} inputs; there are no more directions than that"
            raise OptionError(msg)
        return np.linalg.qr(source.standard_normal((dim, int(given))))[0]
    try:
        basis = frozen_floats(given, "subspace", ndim=2)
    except NetworkError as error:
        raise OptionError(str(error)) from error
    if basis.shape[0] != dim or not 1 <= basis.shape[1] <= dim:
        msg = f"subspace has shape {basis.shape}; expected ({dim}, k): one column per direction"
        raise OptionError(msg)
    if np.abs(basis.T @ basis - np.eye(basis.shape[1])).max() > _FLAT:
        msg = "the columns of subspace are not orthonormal; numpy.linalg.qr(basis)[0] makes them so"
        raise OptionError(msg)
    return basis


def _check_inside(places: Floats, balls: Balls) -> None:
    """Refuse points outside of the domain, balls that are too small to have two ends, and a domain that cannot be cut off."""
    if balls.within is not None and balls.basis is not None:
        msg = "domain cuts balls in all inputs; leave it out with subspace"
        raise OptionError(msg)
    if balls.within is not None:
        outside = ~balls.within.contains(places)
        if outside.any():
            msg = f"point {int(np.argmax(outside))} lies outside of the domain {balls.within.describe():.60}, as {int(outside.sum())} of {len(places)} do; give a larger domain, or none"
            raise DomainError(msg)
    if balls.basis is None and (places + balls.radius == places).all(axis=1).any():
        where = int(np.argmax((places + balls.radius == places).all(axis=1)))
        msg = f"radius is {balls.radius:g}, less than what floating-point numbers tell apart at point {where}; give a larger one"
        raise OptionError(msg)
