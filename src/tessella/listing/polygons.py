"""All regions of a network with one or two free inputs, as intervals or polygons.

The walk over corners that counts (`cells`) writes its cells down; what it cannot decide is listed by exact arithmetic, and cut out of the
domain in rational numbers.  So there are as many as `tessella.count` finds, each with the pattern that `Network.patterns` gives inside.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from operator import index
from typing import Any, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from tessella.answer import Answer, bits, past, read_bits
from tessella.domain import Domain, check_bounded
from tessella.door import DomainLike, NetworkLike, enter
from tessella.errors import OptionError
from tessella.kernel import meter
from tessella.listing.patterns import affine_maps, settled
from tessella.methods import Method
from tessella.network import Floats, Mask, Network
from tessella.options import check_progress, check_whole
from tessella.partition.exact import Exact
from tessella.partition.tree import Tree
from tessella.progress import found_so_far, with_bar
from tessella.stability import Stability, check_stability, stability_to_go_on_with
from tessella.vertices.outlines import Outlines
from tessella.vertices.walker import Vertices

_AT_ONCE = 4096  # regions that the walk writes down before it is asked for them


@dataclass(frozen=True, slots=True, eq=False)
class Polygons(Answer):
    """The regions of a network with one or two free inputs.

    Parameters
    ----------
    network, domain
        Of what, and where.
    patterns
        One row per region, in the order of the polygons: which ReLUs are active.
    corners
        The corners of all regions one after the other, each region's in counterclockwise order (ends of intervals: from left to right), in
        the free inputs; rounded.
    starts
        Region i has the corners from ``starts[i]`` up to ``starts[i + 1]``.
    borders
        For each corner the layer (from 0) whose unit made the wall from it to the region's next corner, or at it for intervals; -1 for the
        domain's own sides.
    complete
        Whether these are all regions; False if a limit ended it.
    seconds
        Wall time spent.
    """

    network: Network
    domain: Domain
    patterns: Mask
    corners: Floats
    starts: npt.NDArray[np.int64]
    borders: npt.NDArray[np.int64]
    complete: bool = True
    seconds: float = 0.0

    def __post_init__(self) -> None:
        """Make read-only."""
        for part in (self.patterns, self.corners, self.starts, self.borders):
            part.flags.writeable = False

    def __len__(self) -> int:
        """How many regions there are."""
        return len(self.patterns)

    @overload
    def __getitem__(self, number: SupportsIndex) -> Floats: ...
    @overload
    def __getitem__(self, number: slice) -> list[Floats]: ...
    def __getitem__(self, number: SupportsIndex | slice) -> Floats | list[Floats]:
        """The corners of a region, counted from the end if the number is negative; of several as a list."""
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        try:
            given = index(number)
        except TypeError as error:
            msg = f"a region is chosen by its number, or a slice of numbers; got {number!r:.40}"
            raise TypeError(msg) from error
        if not -len(self) <= given < len(self):
            msg = f"there is no region {given}; they have numbers 0 to {len(self) - 1}"
            raise IndexError(msg)
        place = given % len(self)
        return self.corners[self.starts[place] : self.starts[place + 1]]

    @property
    def dim(self) -> int:
        """1 for intervals, 2 for polygons."""
        return int(self.corners.shape[1])

    @property
    def centres(self) -> Floats:
        """The mean of each region's corners."""
        sums = np.add.reduceat(self.corners, self.starts[:-1], axis=0)
        return sums / np.diff(self.starts)[:, None]

    @property
    def areas(self) -> Floats:
        """The area of each polygon, or the length of each interval."""
        if self.dim == 1:
            return self.corners[self.starts[1:] - 1, 0] - self.corners[self.starts[:-1], 0]
        after = np.arange(1, len(self.corners) + 1)
        after[self.starts[1:] - 1] = self.starts[:-1]
        place = self.corners - np.repeat(self.corners[self.starts[:-1]], np.diff(self.starts), axis=0)
        x, y = place.T
        return 0.5 * np.add.reduceat(x * y[after] - x[after] * y, self.starts[:-1])

    def affine_maps(self) -> tuple[Floats, Floats]:
        """What the network is on each region, as functions of the free inputs.

        Returns
        -------
        Matrices of shape (regions, outputs, free inputs) and offsets of shape (regions, outputs).
        """
        parts = [*affine_maps(self.network, self.domain, self.patterns)]
        maps = np.concatenate(parts)
        return np.ascontiguousarray(maps[:, :, :-1]), np.ascontiguousarray(maps[:, :, -1])

    def __repr__(self) -> str:
        """One line a person can read."""
        what = "polygon" if self.dim == 2 else "interval"
        short = "" if self.complete else ", not all"
        return f"Polygons({len(self):,} {what}{'' if len(self) == 1 else 's'}{short}, of {self.network.shape} on {self.domain.describe()}, {self.seconds:.2f} s)"

    def rows(self) -> list[dict[str, Any]]:
        """One row per region: how many ReLUs are active, its area (or length), how many corners it has, and their mean."""
        axes = [f"input_{axis}" for axis in np.flatnonzero(self.domain.box.free).tolist()]
        size, sizes, corners = "area" if self.dim == 2 else "length", self.areas.tolist(), np.diff(self.starts).tolist()
        active = self.patterns.sum(axis=1).tolist()
        return [
            {"region": i, "active": active[i], size: sizes[i], "corners": corners[i], **dict(zip(axes, centre, strict=True))}
            for i, centre in enumerate(self.centres.tolist())
        ]

    def _title(self) -> str:
        what = "Regions" if self.complete else "Some of the regions"
        return f"{what} of {self.network.shape} on {self.domain.describe()}: {len(self):,}, {self.seconds:.2f} s"

    def _record(self) -> dict[str, Any]:
        found = [
            {"pattern": bits(self.patterns[i]), "corners": self[i].tolist(), "borders": borders.tolist()}
            for i, borders in enumerate(np.split(self.borders, self.starts[1:-1]))
        ]
        return {
            **past(self.network, self.domain),
            "regions": found,
            "complete": self.complete,
            "seconds": self.seconds,
        }

    @classmethod
    def _placed(cls, record: Mapping[str, Any], network: Network | None) -> dict[str, Any]:
        found = record["regions"]
        sizes = [len(one["corners"]) for one in found]
        return {
            **super(Polygons, cls)._placed(record, network),
            "patterns": np.stack([read_bits(one["pattern"]) for one in found]),
            "corners": np.concatenate([np.array(one["corners"], dtype=np.float64) for one in found]),
            "starts": np.append(0, np.cumsum(sizes)).astype(np.int64),
            "borders": np.concatenate([np.array(one["borders"], dtype=np.int64) for one in found]),
        }


@with_bar(found_so_far)
def polygons(
    network: NetworkLike,
    domain: DomainLike,
    *,
    stability: Stability | None = None,
    limit: int | None = None,
    progress: Callable[[int], None] | bool | None = None,
) -> Polygons:
    """List the regions of a network with one or two free inputs, with their corners.

    Parameters
    ----------
    network, domain
        Of what, and where: what `tessella.load` takes, and a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.  With more inputs take a slice: `tessella.slice`.
    limit
        Stop when there are more regions than this.
    stability, progress
        As in `tessella.graph`.

    Examples
    --------
    >>> import tessella
    >>> net = tessella.Network.from_arrays([([[1.0, 0.0], [1.0, 1.0]], [0.0, 0.5])], relu_output=True)
    >>> found = tessella.polygons(net, tessella.Box(-1, 1, dim=2))
    >>> found.patterns.astype(int).tolist(), found.areas.sum()
    ([[1, 1], [1, 0], [0, 1], [0, 0]], np.float64(4.0))
    >>> found[1].tolist(), found.borders[found.starts[1] : found.starts[2]].tolist()
    ([[0.0, -1.0], [0.5, -1.0], [0.0, -0.5]], [-1, 0, 0])
    """
    begun = meter.clock()
    network, domain = enter(network, domain)
    check_bounded(domain, "a list of polygons")
    if domain.free_dim not in {1, 2}:
        msg = f"polygons need one or two free inputs, and the domain has {domain.free_dim}; tessella.slice makes a plane or a line of them"
        raise OptionError(msg)
    check_stability(stability, network, domain, "a list of polygons")
    check_whole(limit, "limit", "a list of polygons", least=0, otherwise="None for all of them")
    tell = check_progress(progress, "a list of polygons", "the number of regions found")
    known = stability or stability_to_go_on_with(network, domain, method=Method.LINEAR)
    parts, found, complete = list[Outlines](), 0, True
    for part in _outlines(Tree.of(known)):
        parts.append(part)
        found += len(part.sizes)
        if tell:
            tell(found)
        if limit is not None and found > limit:
            complete = False
            break
    patterns, sizes, corners, borders = (np.concatenate(column) for column in list(zip(*parts, strict=True))[:4])
    if not complete:
        patterns, sizes = patterns[:limit], sizes[:limit]
        corners, borders = corners[: sizes.sum()], borders[: sizes.sum()]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    places = np.tile(domain.box.lower, (len(patterns), 1))
    if len(places):
        places[:, domain.box.free] = np.add.reduceat(corners, starts[:-1], axis=0) / np.diff(starts)[:, None]
    whole = settled(known, patterns.astype(np.bool_), places)
    return Polygons(network, domain, whole, corners, starts, borders, complete, meter.clock() - begun)


def _outlines(tree: Tree) -> Iterator[Outlines]:
    """The regions of a tree in the coordinates of the domain."""
    box = tree.domain.box
    low, high, exact = box.lower[box.free], box.upper[box.free], None
    for part in Vertices(tree, _AT_ONCE).outlines():
        yield part._replace(corners=(low / 2.0 + high / 2.0) + (high / 2.0 - low / 2.0) * part.corners)
        for prefix in part.thin:
            exact = exact or Exact(tree)
            for leaf in exact.leaves(prefix):
                yield _outline(leaf, exact.walls(leaf), box.lower[box.free], box.upper[box.free])


def _outline(leaf: bytes, walls: list[tuple[int, list[int]]], lower: Floats, upper: Floats) -> Outlines:
    """A region cut out of the unit square (or interval) in rational numbers."""
    corners, borders = _clipped(walls, len(lower))
    places = np.array([[float(value) for value in corner] for corner in corners])
    pattern = np.frombuffer(leaf, dtype=np.int8)[None]
    return Outlines(pattern, np.array([len(corners)]), lower + (upper - lower) * places, np.array(borders))


_Corner = tuple[Fraction, ...]


def _clipped(walls: list[tuple[int, list[int]]], dim: int) -> tuple[list[_Corner], list[int]]:
    zero, one = Fraction(0), Fraction(1)
    corners: list[_Corner] = [(zero,), (one,)] if dim == 1 else [(zero, zero), (one, zero), (one, one), (zero, one)]
    borders = [-1] * len(corners)
    for layer, row in walls:
        values = [row[-1] + sum((a * x for a, x in zip(row, corner, strict=False)), zero) for corner in corners]
        if min(values) >= 0:
            continue
        corners, borders = _on_line(corners, borders, values, layer) if dim == 1 else _in_plane(corners, borders, values, layer)
    return corners, borders


def _on_line(corners: list[_Corner], borders: list[int], values: list[Fraction], layer: int) -> tuple[list[_Corner], list[int]]:
    place = tuple(_between(corners[0], corners[1], values[0], values[1]))
    return ([place, corners[1]], [layer, borders[1]]) if values[0] < 0 else ([corners[0], place], [borders[0], layer])


def _in_plane(corners: list[_Corner], borders: list[int], values: list[Fraction], layer: int) -> tuple[list[_Corner], list[int]]:
    kept, sides = list[_Corner](), list[int]()
    for number, (corner, border, here) in enumerate(zip(corners, borders, values, strict=True)):
        following = (number + 1) % len(corners)
        there = values[following]
        if here >= 0:
            kept.append(corner)
            sides.append(layer if here == 0 and there < 0 else border)
        if here * there < 0:
            kept.append(_between(corner, corners[following], here, there))
            sides.append(layer if here > 0 else border)
    return kept, sides


def _between(one: _Corner, other: _Corner, here: Fraction, there: Fraction) -> _Corner:
    share = Fraction(here) / (here - there)
    return tuple(a + share * (b - a) for a, b in zip(one, other, strict=True))
