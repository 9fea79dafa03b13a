"""The regions along a path of inputs: the door, and what it answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tessella import options
from tessella.answer import Answer, bits, past, read_bits, read_network
from tessella.door import NetworkLike, enter_anywhere
from tessella.errors import NetworkError, OptionError
from tessella.kernel import meter
from tessella.kernel.deadline import Deadline
from tessella.lines.deciding import Break
from tessella.lines.settle import Settled, Settling
from tessella.lines.walk import Walk
from tessella.network import Floats, Mask, Network, frozen_floats
from tessella.progress import with_bar
from tessella.result import Status, format_count, told

_WHO = "a walk along a path"
_HASHES = 2  # numbers per unit that tell patterns apart before they are compared
_MASKS = ("active", "sure", "first")  # written as bits


@dataclass(frozen=True, slots=True)
class Along(Answer):
    """The regions along a path.

    Positions count corners: 0 is the path's first point, 1 its second, 1.5 lies halfway between the second and the third.

    Parameters
    ----------
    network
        Whose regions.
    path
        The corners of the path, one row each.
    breaks
        The positions at which units change their state, in order.
    margins
        How far from there each change may be.
    starts
        What changes at break number i has the places ``starts[i]`` to ``starts[i + 1] - 1`` in the four arrays that follow.
    layers, units, relus
        The layer (from 1), the unit of that layer (from 0), and the ReLU's number in a pattern.
    active
        Whether it is active behind the break.
    sure
        For each break, whether it is proved: that there is one, and that these units change there and no others.  What is not was seen by floating-point arithmetic only.
    lower, upper
        Proved bounds on how many regions the path passes through, one after the other.
    distinct
        How many different regions these are: a path may come back.  None if not all breaks are proved.
    first
        The pattern at the beginning, one state per ReLU.
    reached
        The position up to which the path was walked.
    status
        Why the walk ended.
    seconds
        Wall time spent, without compiling.
    """

    network: Network
    path: Floats
    breaks: Floats
    margins: Floats
    starts: npt.NDArray[np.int64]
    layers: npt.NDArray[np.int64]
    units: npt.NDArray[np.int64]
    relus: npt.NDArray[np.int64]
    active: Mask
    sure: Mask
    lower: int
    upper: int
    distinct: int | None
    first: Mask
    reached: float
    status: Status = Status.FINISHED
    seconds: float = 0.0

    def __post_init__(self) -> None:
        """Make read-only arrays, of lists too."""
        kinds = (np.float64, "path breaks margins"), (np.int64, "starts layers units relus"), (np.bool_, "active sure first")
        for kind, names in kinds:
            for name in names.split():
                array = np.array(getattr(self, name), dtype=kind)
                array.flags.writeable = False
                object.__setattr__(self, name, array)

    @property
    def regions(self) -> int | None:
        """How many regions the path passes through, proved: pieces of it, as long as possible, with one pattern each.  None if the bounds differ."""
        return self.lower if self.lower == self.upper else None

    @property
    def seen(self) -> int:
        """How many floating-point arithmetic sees; that is no claim where `regions` is None."""
        return len(self.breaks) + 1

    @property
    def changes(self) -> tuple[tuple[tuple[int, int, bool], ...], ...]:
        """For each break the units that change: layer (from 1), unit of the layer (from 0), and whether it is active behind."""
        every = list(zip(self.layers.tolist(), self.units.tolist(), self.active.tolist(), strict=True))
        return tuple(
            tuple(every[begin:end]) for begin, end in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True)
        )

    @property
    def lengths(self) -> Floats:
        """How long the path is in each region, in the Euclidean norm."""
        steps = np.sqrt((np.diff(self.path, axis=0) ** 2).sum(axis=1))
        before, places = np.append(0.0, np.cumsum(steps)), np.concatenate([[0.0], self.breaks, [self.reached]])
        segment = np.minimum(places.astype(np.int64), len(steps) - 1)
        return np.diff(before[segment] + (places - segment) * steps[segment])

    def points(self, positions: npt.ArrayLike) -> Floats:
        """The inputs at positions of the path, one row each; for a single position one input."""
        places = np.asarray(positions, dtype=np.float64)
        last = len(self.path) - 1
        if places.ndim > 1 or not ((places >= 0.0) & (places <= last)).all():
            msg = f"positions are numbers from 0 to {last}, the last corner of the path; got {positions!s:.60}"
            raise OptionError(msg)
        segment = np.minimum(places.astype(np.int64), last - 1)
        share = (places - segment)[..., None]
        return (1.0 - share) * self.path[segment] + share * self.path[segment + 1]

    def pattern(self, number: int) -> Mask:
        """The pattern of a region on the path, from 0 on: one state per ReLU."""
        if not 0 <= number < self.seen:
            msg = f"there is no region {number} on the path: they have the numbers 0 to {self.seen - 1}"
            raise OptionError(msg)
        states, end = np.array(self.first), self.starts[number]
        np.logical_xor.at(states, self.relus[:end], True)  # noqa: FBT003  of an array
        return states

    def __repr__(self) -> str:
        """One line a person can read."""
        if self.regions is not None:
            number = f"{format_count(self.regions)} region{'' if self.regions == 1 else 's'}"
        else:
            number = f"between {format_count(self.lower)} and {format_count(self.upper)} regions, {format_count(self.seen)} seen"
        corners = f"{len(self.path) - 1:,} segment{'' if len(self.path) == 2 else 's'}"
        early = "" if self.status is Status.FINISHED else f", {self.status} at {self.reached:.4g}"
        return f"Along({number}, of {self.network.shape} on {corners}{early}, {self.seconds:.2f} s)"

    def rows(self) -> list[dict[str, Any]]:
        """One row per change: the number of its break, where, which unit, and what it is behind."""
        of = np.repeat(np.arange(len(self.breaks)), np.diff(self.starts))
        columns = (of, self.breaks[of], self.layers, self.units, self.active, self.sure[of])
        names = ("break", "position", "layer", "unit", "active", "proved")
        return [dict(zip(names, row, strict=True)) for row in zip(*(column.tolist() for column in columns), strict=True)]

    def _title(self) -> str:
        number = (
            format_count(self.regions)
            if self.regions is not None
            else f"{format_count(self.lower)} to {format_count(self.upper)}"
        )
        return f"{number} regions of {self.network.shape} along a path of {len(self.path) - 1:,} segments"

    def _note(self) -> str:
        return "" if self.status is Status.FINISHED else f"The path was walked up to {self.reached:.4g} ({self.status})."

    def _record(self) -> dict[str, Any]:
        return {
            **past(self.network, None),
            **told(self, "path", "regions", "lower", "upper", "seen", "distinct"),
            **told(self, "breaks", "margins", "starts", "layers", "units", "relus"),
            **{name: bits(getattr(self, name)) for name in _MASKS},
            **told(self, "reached", "status", "seconds"),
        }

    @classmethod
    def _placed(cls, record: Mapping[str, Any], network: Network | None) -> dict[str, Any]:
        masks = {name: read_bits(record[name]) for name in _MASKS}
        return {**record, "network": read_network(record, network), **masks}


def _line(reached: float, last: float, breaks: int) -> tuple[str, float | None]:
    return f"{breaks:,} breaks", reached / last


@with_bar(_line)
def along(
    network: NetworkLike,
    path: npt.ArrayLike,
    *,
    seconds: float | None = None,
    progress: Callable[[float, float, int], None] | bool | None = None,
) -> Along:
    """Find all regions along a path of inputs: a line between two images, a trajectory, a circle.

    The path is pushed through the layers as intervals with the values of all units at their ends.  Time grows with the breaks times a forward pass; there is no matrix per region.  The order of
    breaks, and that there are no others, is proved; what is too close for floating-point arithmetic is decided in whole numbers, or reported with bounds from both sides where that would take too long.
    Ctrl-C returns what is known so far.

    Parameters
    ----------
    network
        What `tessella.load` takes.
    path
        The corners of the path, one row each, at least two; rows in the shape of images are flattened row by row.
    seconds
        Stop after this time; None for no limit.
    progress
        Called with the position reached, the last one, and the number of breaks seen; True for a bar on a terminal or in a notebook.

    Examples
    --------
    >>> import tessella
    >>> net = tessella.load([([[1.0, 0.0], [0.0, 1.0]], None), ([[1.0, -1.0]], [0.25])], relu_output=True)
    >>> found = tessella.along(net, [[-1, 0.5], [1, 0.5], [1, -0.5]])
    >>> found.regions, found.breaks.tolist()
    (4, [0.5, 0.625, 1.5])
    >>> found.changes[2]  # at the third break the second unit of the first layer becomes inactive
    ((1, 1, False),)
    """
    begun = meter.clock()
    read, _ = enter_anywhere(network, None)
    options.check_seconds(seconds, _WHO)
    tell = options.check_progress(progress, _WHO, "the position reached, the last one, and the breaks seen")
    corners = _corners(path, read)
    deadline = Deadline.after(seconds)
    walk, last = Walk(read, corners), float(len(corners) - 1)

    def report(reached: float) -> None:
        if tell is not None:
            tell(reached, last, sum(len(part.at) for part in (*walk.breaks, *walk.seen)))

    settling, status = Settling(walk, lambda: deadline.passed, patient=seconds is not None), Status.FINISHED
    try:
        if not walk.go(lambda: deadline.passed, report):
            status = Status.TIME_LIMIT
        settled = settling.settle()
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        settled = Settling(walk, lambda: True).settle()
    return _made(walk, settled, status, meter.clock() - begun)


def _corners(path: npt.ArrayLike, network: Network) -> Floats:
    """The corners of a path, checked."""
    try:
        places = frozen_floats(path, "path", ndim=np.ndim(path))
    except NetworkError as error:
        raise OptionError(str(error)) from error
    except ValueError as error:
        msg = f"path cannot be read as points of {network.input_dim} numbers each: {error!s:.80}"
        raise OptionError(msg) from error
    if places.ndim < 2 or len(places) < 2 or places.size != len(places) * network.input_dim:
        msg = f"path has shape {places.shape}; expected at least two points, one row each, with {network.input_dim} inputs"
        raise OptionError(msg)
    places = places.reshape(len(places), -1)
    if (places[1:] == places[:-1]).all():
        msg = f"the {len(places)} points of the path are equal; give two that differ"
        raise OptionError(msg)
    with np.errstate(over="ignore"):
        steps = np.diff(places, axis=0)
    if not np.isfinite(steps).all():
        msg = "two points of the path are further apart than the largest floating-point number; give nearer ones"
        raise OptionError(msg)
    return places


def _made(walk: Walk, settled: Settled, status: Status, seconds: float) -> Along:
    """The answer."""
    network, found = walk.network, settled.breaks
    relus = np.array([unit for one in found for unit in one.units], dtype=np.int64)
    masks = [layer.rectified for layer in network.layers]
    of = np.repeat(np.arange(1, len(masks) + 1), [int(mask.sum()) for mask in masks])
    exact = settled.lower == settled.upper
    return Along(
        network,
        walk.path,
        np.array([one.place for one in found]),
        np.array([one.margin for one in found]),
        np.cumsum([0, *(len(one.units) for one in found)]),
        of[relus],
        np.concatenate([np.flatnonzero(mask) for mask in masks])[relus],
        relus,
        np.array([state for one in found for state in one.active], dtype=np.bool_),
        np.array([one.sure for one in found], dtype=np.bool_),
        settled.lower,
        settled.upper,
        _distinct(network.relus, found) if exact else None,
        settled.first,
        walk.reached,
        status,
        seconds,
    )


def _distinct(relus: int, found: list[Break]) -> int:
    """How many different patterns there are.

    Patterns of different hashes are different; those of equal hashes are compared by the units that differ from the first pattern.
    """
    tags = np.random.default_rng(0).integers(0, 2**63, (max(relus, 1), _HASHES)).tolist()
    now, hashes = (0,) * _HASHES, [(0,) * _HASHES]
    for one in found:
        for unit in one.units:
            now = tuple(a ^ b for a, b in zip(now, tags[unit], strict=True))
        hashes.append(now)
    counts = dict[tuple[int, ...], int]()
    for one in hashes:
        counts[one] = counts.get(one, 0) + 1
    differing, different = set[int](), set[frozenset[int]]()
    for number, one in enumerate(hashes):
        if number:
            differing ^= set(found[number - 1].units)
        if counts[one] > 1:
            different.add(frozenset(differing))
    return len(different) + sum(1 for many in counts.values() if many == 1)
