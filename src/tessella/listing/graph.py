"""The graph of regions: which of them share a wall, and which units change there."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from os import PathLike
from typing import Any

import numpy as np

from tessella.answer import Answer, bits, past, read_bits
from tessella.domain import Domain
from tessella.door import DomainLike, NetworkLike, enter
from tessella.errors import OptionError
from tessella.files import writing
from tessella.kernel import meter
from tessella.kernel.deadline import Deadline
from tessella.listing.cells import Ints, Run, list_cells
from tessella.listing.walls import meetings
from tessella.methods import Method
from tessella.network import Floats, Mask, Network
from tessella.options import check_progress, check_seconds, check_whole
from tessella.packages import needed
from tessella.progress import found_so_far, with_bar
from tessella.result import Status, finite_or_none, told
from tessella.stability import Stability, check_stability, stability_to_go_on_with

_LINES = 1000  # of a file, written at once
_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="pattern" for="node" attr.name="pattern" attr.type="string"/>
<key id="active" for="node" attr.name="active" attr.type="int"/>
<key id="point" for="node" attr.name="point" attr.type="string"/>
<key id="units" for="edge" attr.name="units" attr.type="string"/>
<graph id="regions" edgedefault="undirected">
"""
_TAIL = "</graph>\n</graphml>\n"


@dataclass(frozen=True, slots=True, eq=False)
class Graph(Answer):
    """The regions of a network, and which of them share a wall.

    Regions have numbers from 0 on, in the order of `patterns`.  What is listed is proved, whether it is all or not.

    Parameters
    ----------
    network, domain
        Of what, and where.
    patterns
        One row per region: which ReLUs are active.
    points
        A point in each region, rounded: `Network.patterns` gives its pattern there; not a number where none was found.
    edges
        Two numbers of regions per wall, the smaller one first, in order.  Each is proved.
    undecided
        The numbers of regions that may have other walls, too.
    status
        Why it ended.
    seconds
        Wall time spent.
    """

    network: Network
    domain: Domain
    patterns: Mask
    points: Floats
    edges: Ints
    undecided: Ints
    status: Status = Status.FINISHED
    seconds: float = 0.0

    def __post_init__(self) -> None:
        """Make read-only."""
        for part in (self.patterns, self.points, self.edges, self.undecided):
            part.flags.writeable = False

    @property
    def regions(self) -> int:
        """How many regions there are."""
        return len(self.patterns)

    @property
    def complete(self) -> bool:
        """Whether these are all regions, and all walls between them."""
        return self.status is Status.FINISHED and not len(self.undecided)

    @property
    def units(self) -> list[tuple[int, ...]]:
        """For each edge the ReLUs that change at the wall, by their numbers in the pattern: one, but for walls at which several are 0."""
        found: list[list[int]] = [[] for _ in range(len(self.edges))]
        for first in range(0, len(found), _LINES):
            one, other = self.edges[first : first + _LINES].T
            for edge, unit in np.argwhere(self.patterns[one] != self.patterns[other]).tolist():
                found[first + edge].append(unit)
        return [tuple(one) for one in found]

    @property
    def degrees(self) -> Ints:
        """How many regions each one shares a wall with."""
        return np.bincount(self.edges.ravel(), minlength=self.regions)

    def neighbours(self, region: int) -> list[int]:
        """The numbers of the regions that share a wall with one."""
        if not 0 <= region < self.regions:
            msg = f"there is no region {region}; they have numbers 0 to {self.regions - 1}"
            raise OptionError(msg)
        touching = self.edges[np.isin(self.edges, region).any(axis=1)]
        return sorted(touching[touching != region].tolist())

    def find(self, point: Any) -> int | None:
        """The number of the region that a point lies in, as floating-point arithmetic sees it; None outside the domain, and if the region is not there."""
        place = np.asarray(point, dtype=np.float64).reshape(1, -1)
        here = self.network.patterns(place)
        if not self.domain.contains(place)[0]:
            return None
        same = np.flatnonzero(np.equal(self.patterns, here).all(axis=1))
        return int(same[0]) if len(same) else None

    def to_networkx(self) -> Any:
        """The graph for networkx, which must be installed: nodes have `pattern`, `active` and `point`, edges have `units`."""
        why = "to_networkx() makes a graph of networkx: pip install networkx (or take edges, or to_graphml(), which need nothing)"
        made = needed("networkx", why).Graph()
        for node, row in enumerate(self.rows()):
            made.add_node(node, pattern=row["pattern"], active=row["active"], point=self.points[node])
        for (one, other), units in zip(self.edges.tolist(), self.units, strict=True):
            made.add_edge(one, other, units=units)
        return made

    def to_graphml(self, path: str | PathLike[str]) -> None:
        """Write the graph to a GraphML file, which Gephi, yEd, igraph and networkx read.

        Parameters
        ----------
        path
            The file; an existing one is replaced.
        """
        with writing(path) as file:
            some = list[str]()
            for line in self._lines():
                some.append(line)
                if len(some) == _LINES:
                    file.write("".join(some).encode())
                    some.clear()
            file.write("".join(some).encode())

    def _lines(self) -> Iterator[str]:
        yield _HEAD
        for node, row in enumerate(self.rows()):
            point = (
                ""
                if row["point"] is None
                else f'<data key="point">{escape(" ".join(map(repr, self.points[node].tolist())))}</data>'
            )
            yield f'<node id="n{node}"><data key="pattern">{row["pattern"]}</data><data key="active">{row["active"]}</data>{point}</node>\n'
        for number, ((one, other), units) in enumerate(zip(self.edges.tolist(), self.units, strict=True)):
            changing = " ".join(map(str, units))
            yield f'<edge id="e{number}" source="n{one}" target="n{other}"><data key="units">{changing}</data></edge>\n'
        yield _TAIL

    def __repr__(self) -> str:
        """One line a person can read."""
        short = (
            ""
            if self.complete
            else f", not all of it ({self.status})"
            if self.status is not Status.FINISHED
            else ", some walls undecided"
        )
        walls = f"{len(self.edges):,} wall{'' if len(self.edges) == 1 else 's'} between them"
        return f"Graph({self.regions:,} region{'' if self.regions == 1 else 's'}, {walls}{short}, of {self.network.shape} on {self.domain.describe()}, {self.seconds:.2f} s)"

    def rows(self) -> list[dict[str, Any]]:
        """One row per region: how many ReLUs are active, how many walls it shares with others, its pattern, and a point inside."""
        active, walls, points = self.patterns.sum(axis=1).tolist(), self.degrees.tolist(), self.points.tolist()
        return [
            {
                "region": number,
                "active": active[number],
                "walls": walls[number],
                "pattern": bits(self.patterns[number]),
                "point": None if np.isnan(points[number]).any() else str(points[number]),
            }
            for number in range(self.regions)
        ]

    def _title(self) -> str:
        return f"The graph of regions of {self.network.shape} on {self.domain.describe()}: {self.regions:,} regions, {len(self.edges):,} walls"

    def _note(self) -> str:
        return "" if self.complete else f"{len(self.undecided):,} of these regions may have more walls ({self.status})."

    def _record(self) -> dict[str, Any]:
        return {
            **past(self.network, self.domain),
            "regions": [bits(pattern) for pattern in self.patterns],
            "points": [finite_or_none(point) for point in self.points.tolist()],
            **told(self, "edges", "units", "undecided", "complete", "status", "seconds"),
        }

    @classmethod
    def _placed(cls, record: Mapping[str, Any], network: Network | None) -> dict[str, Any]:
        placed = super(Graph, cls)._placed(record, network)
        patterns = [read_bits(text) for text in record["regions"]]
        points = [[np.nan if value is None else value for value in point] for point in record["points"]]
        return {
            **placed,
            "patterns": np.array(patterns, dtype=np.bool_).reshape(len(patterns), placed["network"].relus),
            "points": np.array(points, dtype=np.float64).reshape(len(patterns), placed["network"].input_dim),
            "edges": np.array(record["edges"], dtype=np.int64).reshape(-1, 2),
            "undecided": np.array(record["undecided"], dtype=np.int64),
        }


@with_bar(found_so_far)
def graph(  # noqa: PLR0913  one keyword per option
    network: NetworkLike,
    domain: DomainLike,
    *,
    seconds: float | None = None,
    limit: int | None = None,
    stability: Stability | None = None,
    progress: Callable[[int], None] | bool | None = None,
) -> Graph:
    """List all regions, and which of them share a wall.

    Two regions share a wall if their closures have a set of one dimension less than the free inputs in common; sides of the domain are no walls.  All regions and walls are
    proved.  With up to six free inputs they come from the corners of the regions, in microseconds each; what is too close to call, and networks with more inputs, take linear programs and exact
    arithmetic.  A time limit, a limit, or Ctrl-C ends with what is known.

    Parameters
    ----------
    network, domain
        Of what, and where: what `tessella.load` takes, and a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.
    seconds
        Stop after this time.
    limit
        Stop when there are more regions than this.
    stability
        Which units are stable, if that is known already.
    progress
        Called every now and then with the number of regions found; True for a bar on a terminal or in a notebook.

    Examples
    --------
    >>> import tessella
    >>> net = tessella.Network.from_arrays([([[1.0, 0.0], [1.0, 1.0]], [0.0, 0.5])], relu_output=True)
    >>> found = tessella.graph(net, (-1, 1))
    >>> found.regions, found.edges.tolist(), found.units
    (4, [[0, 1], [0, 2], [1, 3], [2, 3]], [(1,), (0,), (0,), (1,)])
    >>> found.find([0.5, 0.5]), found.neighbours(0)
    (0, [1, 2])
    """
    begun = meter.clock()
    network, domain = enter(network, domain)
    check_stability(stability, network, domain, "a graph of regions")
    check_seconds(seconds, "a graph of regions")
    check_whole(limit, "limit", "a graph of regions", otherwise="None for all of them")
    tell = check_progress(progress, "a graph of regions", "the number of regions found")
    run = Run(Deadline.after(seconds), limit, tell)
    known = stability or stability_to_go_on_with(network, domain, method=Method.LINEAR)
    cells = list_cells(known, run)
    found = meetings(cells, run)
    points = cells.part.points.copy()
    here = np.where(np.isfinite(points), points, 0.0)
    points[(network.patterns(here) != cells.patterns).any(axis=1)] = np.nan
    return Graph(network, domain, cells.patterns, points, found.pairs, found.undecided, run.status, meter.clock() - begun)
