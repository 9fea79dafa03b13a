"""All regions of a network on a domain at once: their patterns, a point in each, and the walls that the walk over corners proves.

With few inputs the walk over corners writes its cells down (`tessella.vertices.noting`).  What is thin to it exact arithmetic lists; with more inputs, `tessella.regions` does.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tessella.kernel import meter
from tessella.kernel.deadline import Deadline
from tessella.kernel.warming import load
from tessella.listing.listing import listed
from tessella.listing.patterns import settled
from tessella.network import Floats, Mask
from tessella.partition.exact import Exact
from tessella.partition.tree import Tree
from tessella.partition.witness import Patterns, Proof
from tessella.result import Status
from tessella.stability import Stability
from tessella.unbounded import Homogeneous, homogeneous
from tessella.vertices.noting import DOMAIN, UNCLEAR, measure, note
from tessella.vertices.outlines import Outlines
from tessella.vertices.walker import Vertices

_FEW_INPUTS = 6  # free inputs up to which cells are held by their corners
_AT_ONCE = 4096  # regions that the walk writes down before it is asked for them
_ONE_BY_ONE = 16  # regions of a list that come in one part
_TICK = 0.1  # seconds between two reports

Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class Run:
    """How a run that lists regions stands, and when it ends."""

    deadline: Deadline  # when it ends with what it has
    limit: int | None = None  # how many regions it lists at most; None for all
    tell: Callable[[int], None] | None = None  # told every now and then how many regions were found
    status: Status = Status.FINISHED  # why it ended
    _last: float = field(default=-np.inf)

    def goes_on(self, found: int) -> bool:
        """Whether to go on with so many regions found, which somebody may want to know."""
        if self.tell and meter.clock() - self._last >= _TICK:
            self._last = meter.clock()
            self.tell(found)
        if self.status is Status.FINISHED and self.deadline.passed:
            self.status = Status.TIME_LIMIT
        return self.status is Status.FINISHED

    @contextmanager
    def stoppable(self) -> Generator[None]:
        """Ctrl-C ends what is done here, and is noted."""
        try:
            yield
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED


class Part(NamedTuple):
    """Some regions."""

    decided: Mask  # one row per region: the states of the unstable ReLUs
    points: Floats  # a point in each, of all inputs; not a number where none is known
    sizes: Ints  # how many walls each has, those of the domain among them; UNCLEAR where the walk could not tell
    walls: Ints  # the walls of all that are clear, one after the other: the number of the unstable ReLU that makes it, or DOMAIN
    volumes: Floats  # the volume of each as a part of the box's, in the free inputs; not a number where it is not known

    @property
    def clear(self) -> Mask:
        """Of which regions the walls are known."""
        return self.sizes != UNCLEAR

    @property
    def units(self) -> tuple[Ints, Ints]:
        """The walls between regions: whose they are, and the unstable ReLU of each."""
        owner = np.repeat(np.arange(len(self.sizes)), np.maximum(self.sizes, 0))
        inner = self.walls != DOMAIN
        return owner[inner], self.walls[inner]

    def first(self, count: int) -> "Part":
        """The first regions."""
        sizes = self.sizes[:count]
        walls = self.walls[: int(np.maximum(sizes, 0).sum())]
        return Part(self.decided[:count], self.points[:count], sizes, walls, self.volumes[:count])


class Cells(NamedTuple):
    """The regions of a network on a domain."""

    known: Stability  # the network, where, and which units are stable
    patterns: Mask  # one row per region: the states of all ReLUs
    part: Part  # what the walk says of them

    def __len__(self) -> int:
        """How many regions there are."""
        return len(self.patterns)


def has_corners(known: Stability) -> bool:
    """Whether regions are held by their corners, so that walls and volumes come with them."""
    return Tree.of(known).domain.free_dim <= _FEW_INPUTS


def list_cells(known: Stability, run: Run, *, volumes: bool = False) -> Cells:
    """List all regions, as long as the run goes on.

    Parameters
    ----------
    known
        The network, where, and which units are stable.
    run
        When to end; Ctrl-C ends it with what is known.
    volumes
        Whether to measure them; needs few inputs.

    Examples
    --------
    >>> from tessella import Box, Network, stability
    >>> net = Network.from_arrays([([[1.0, 0.0], [1.0, 1.0]], [0.0, 0.5])], relu_output=True)
    >>> found = list_cells(stability(net, Box(-1, 1, dim=2), method="linear"), Run(Deadline()), volumes=True)
    >>> found.patterns.astype(int).tolist(), found.part.volumes.tolist()
    ([[1, 1], [1, 0], [0, 1], [0, 0]], [0.46875, 0.03125, 0.25, 0.25])
    >>> [row.tolist() for row in found.part.units]
    [[0, 0, 1, 1, 2, 2, 3, 3], [1, 0, 1, 0, 1, 0, 1, 0]]
    """
    parts, found, patterns = list[Part](), 0, list[Mask]()
    with run.stoppable():
        for part in _parts(known, volumes=volumes):
            more = part if run.limit is None else part.first(run.limit - found)
            whole = settled(known, more.decided, more.points)
            parts.append(more)
            patterns.append(whole)
            found += len(whole)
            if len(more.sizes) < len(part.sizes):
                run.status = Status.LIMIT
            if not run.goes_on(found):
                break
    parts = parts[: len(patterns)]
    if not parts:
        width = int(Patterns.of(known).unstable.sum())
        nothing = Part(np.zeros((0, width), dtype=np.bool_), *_unknown(0, known))
        return Cells(known, np.zeros((0, known.network.relus), dtype=np.bool_), nothing)
    return Cells(known, np.concatenate(patterns), Part(*(np.concatenate(column) for column in zip(*parts, strict=True))))


def _parts(known: Stability, *, volumes: bool) -> Iterator[Part]:
    """The regions, some at a time."""
    tree = Tree.of(known)
    if tree.units and 0 < tree.domain.free_dim <= _FEW_INPUTS:
        writer = measure if volumes else note
        load(Vertices.functions(tree, writer=writer))
        whole, exact = None if known.domain.bounded else homogeneous(known.network, known.domain), None
        for outlines in Vertices(tree, _AT_ONCE).outlines(writer):
            if len(outlines.sizes):
                part = _part_of(outlines, known, tree, whole)
                yield part if volumes else part._replace(volumes=np.full(len(part.sizes), np.nan))
            for prefix in outlines.thin:
                exact = exact or Exact(tree)
                leaves = exact.leaves(prefix)
                while some := list(islice(leaves, _ONE_BY_ONE)):
                    yield _thin(some, known)
        return
    every, unstable = listed(known), Patterns.of(known).unstable
    while some := list(islice(every, _ONE_BY_ONE)):
        _, sizes, walls, sizes_of = _unknown(len(some), known)
        nowhere = np.full(known.domain.dim, np.nan)
        points = np.stack([nowhere if region.point is None else region.point for region in some])
        yield Part(np.stack([region.pattern[unstable] for region in some]), points, sizes, walls, sizes_of)


def _unknown(count: int, known: Stability) -> tuple[Floats, Ints, Ints, Floats]:
    """What is said of regions of which the walk knows nothing but the pattern."""
    return (
        np.full((count, known.domain.dim), np.nan),
        np.full(count, UNCLEAR),
        np.zeros(0, dtype=np.int64),
        np.full(count, np.nan),
    )


def _thin(prefixes: list[bytes], known: Stability) -> Part:
    """Regions that exact arithmetic found."""
    decided = np.stack([np.frombuffer(prefix, dtype=np.bool_) for prefix in prefixes])
    points, sizes, walls, volumes = _unknown(len(prefixes), known)
    prove, whole = Proof(known.network, known.domain), settled(known, decided, points)
    for number, pattern in enumerate(whole):
        point = prove.point(pattern)
        points[number] = np.nan if point is None else point
    return Part(decided, points, sizes, walls, volumes)


def _part_of(outlines: Outlines, known: Stability, tree: Tree, whole: Homogeneous | None) -> Part:
    """What the walk wrote down, in the coordinates of the domain."""
    rows = np.maximum(outlines.sizes, 1)
    firsts = np.concatenate([[0], np.cumsum(rows)[:-1]])
    box = tree.domain.box
    low, high = box.lower[box.free], box.upper[box.free]
    places = np.tile(box.lower, (len(rows), 1))
    places[:, box.free] = (low / 2.0 + high / 2.0) + (high / 2.0 - low / 2.0) * outlines.corners[firsts]
    volumes = outlines.volumes / 2.0 ** len(low)
    if whole is not None:
        found = (whole.point(place) for place in places)
        nowhere = np.full(known.domain.dim, np.nan)
        places = np.stack([nowhere if point is None else point for point in found])
        volumes = np.full(len(rows), np.nan)
    written = np.repeat(outlines.sizes, rows) > 0
    return Part(outlines.patterns.astype(np.bool_), places, outlines.sizes, outlines.borders[written], volumes)
