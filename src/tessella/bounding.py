"""All upper bounds at once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tessella import options
from tessella.answer import Answer, part, past, whole
from tessella.domain import Domain
from tessella.door import DomainLike, NetworkLike, enter_anywhere
from tessella.errors import OptionError
from tessella.executors import ExecutorLike
from tessella.kernel import meter
from tessella.methods import Method
from tessella.network import Network
from tessella.partition.local import LocalBound
from tessella.partition.tree import Tree
from tessella.progress import units, with_bar
from tessella.result import Bound, Side, Status, claims, format_count, maps
from tessella.stability import Stability, check_stability
from tessella.stability import stability as find_stability
from tessella.upper.configuration import configuration, montufar, raghu, stages
from tessella.upper.empirical import Empirical, empirical

_SLICE = 0.2  # seconds between looks at the clock


@dataclass(frozen=True, slots=True)
class UpperBounds(Answer):
    """Upper bounds on the number of regions, loosest first.

    Parameters
    ----------
    network
        The network they are about.
    domain
        Where; None if they hold everywhere.
    raghu, montufar, configuration
        Bounds from the network's shape alone.
    seconds
        Wall time spent, without compiling.
    stability
        The units that never change their state on the domain; None without a domain.
    empirical_details
        The bound that they give, with its parts; None without a domain.
    cellwise
        The bound from cells of the first layer, never more than the empirical one; None if it was not asked for.
    listed
        About which part of the first layer was listed for it, from 0 to 1; the rest of it is bounded by the shape.
    status
        Why the list ended.
    """

    network: Network
    domain: Domain | None
    raghu: int
    montufar: int
    configuration: int
    seconds: float
    stability: Stability | None = None
    empirical_details: Empirical | None = None
    cellwise: int | None = None
    listed: float = 0.0
    status: Status = Status.FINISHED

    @property
    def empirical(self) -> int | None:
        """The bound from the weights and the domain; None without a domain."""
        return self.empirical_details.value if self.empirical_details else None

    @property
    def best(self) -> int:
        """The smallest of them."""
        return min(bound.value for bound in self.bounds)

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Each as a claim of its own, loosest first."""
        values = {name: getattr(self, name) for name in ("raghu", "montufar", "configuration", "empirical", "cellwise")}
        counted = self.network.counted
        return tuple(Bound(value, Side.UPPER, counted, name) for name, value in values.items() if value is not None)

    def gap_closed(self, exact: int) -> float:
        """How much of the gap between the configuration bound and the true count the empirical bound closes, in MAPS.

        Parameters
        ----------
        exact
            The true number of regions.

        Returns
        -------
        A number from 0 (nothing) to 1 (the empirical bound is exact); 1 as well where there is no gap.
        """
        if self.empirical is None:
            msg = f"{self!r} has no empirical bound; give upper_bounds a domain"
            raise OptionError(msg)
        if not 1 <= exact <= self.empirical:
            msg = f"{exact} regions were given as exact, but {self!r}; count the same network on the same domain"
            raise OptionError(msg)
        gap = maps(self.configuration) - maps(exact)
        return (maps(self.configuration) - maps(self.empirical)) / gap if gap > 0.0 else 1.0

    def __repr__(self) -> str:
        """One line a person can read."""
        where = f" on {self.domain.describe()}" if self.domain else ""
        regions = f"{format_count(self.best, Side.UPPER)} region{'' if self.best == 1 else 's'}"
        return f"UpperBounds(at most {regions}, of {self.network.shape}{where})"

    def rows(self) -> list[dict[str, Any]]:
        """The bounds, loosest first."""
        return claims(self.bounds)

    def _title(self) -> str:
        where = f" on {self.domain.describe()}" if self.domain else ""
        return f"Upper bounds on the regions of {self.network.shape}{where}"

    def _record(self) -> dict[str, Any]:
        record = {
            **past(self.network, self.domain),
            "seconds": self.seconds,
            "upper": {bound.method: bound.to_dict() for bound in self.bounds},
            "listed": self.listed,
            "status": self.status,
        }
        if self.stability and self.empirical_details:
            record |= {"stability": part(self.stability), "coverage": self.empirical_details.to_dict()}
        return record

    @classmethod
    def _placed(cls, record: Mapping[str, Any], network: Network | None) -> dict[str, Any]:
        values = {name: Bound.from_dict(claim).value for name, claim in record["upper"].items()}
        placed = {**super(UpperBounds, cls)._placed(record, network), **values, "stability": None}
        known = whole(record, record.get("stability"))
        if known is not None:
            placed["stability"] = Stability.from_dict(known, network=network)
            placed["empirical_details"] = {**record["coverage"], "value": values["empirical"]}
        return placed


@with_bar(units)
def upper_bounds(  # noqa: PLR0913  one keyword per option
    network: NetworkLike,
    domain: DomainLike | None = None,
    *,
    stability: Stability | None = None,
    method: Method | str = Method.MILP,
    executor: ExecutorLike | None = None,
    progress: Callable[[int, int], None] | bool | None = None,
    seconds: float | None = None,
) -> UpperBounds:
    """Bound the number of regions from above, by every method there is.

    Parameters
    ----------
    network
        What `tessella.load` takes.
    domain
        The inputs considered: a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.  Without it there is no empirical bound, and the others hold on any domain.
    stability
        The units that never change their state on the domain, if they are known; its domain is the default.
    method
        How to find them if not: ``"interval"``, ``"linear"``, ``"lp"`` or ``"milp"``; slower ones give lower bounds.
    executor, progress
        Passed on to `tessella.stability`.  While cells are listed, progress is told which part is done, in units of the first layer.
    seconds
        List cells of the first layer for so long at most, for the cellwise bound; it pays where inputs are few.  At that time, or at Ctrl-C, what is not listed is
        bounded by the shape.  None to leave this bound out.

    Examples
    --------
    >>> import tessella
    >>> tessella.upper_bounds([([[1.0], [-1.0]], None), ([[1.0, 1.0]], None)])
    UpperBounds(at most 3 regions, of 1-2-1)
    >>> net = tessella.load([([[1.0], [-1.0]], None), ([[1.0, 1.0]], [-0.5])], relu_output=True)
    >>> tessella.upper_bounds(net, (-1, 1), seconds=1.0)
    UpperBounds(at most 4 regions, of 1-2-1 on [-1, 1])
    """
    start = meter.clock()
    options.check_seconds(seconds, "upper_bounds", otherwise="None to leave the cellwise bound out")
    tell = options.check_progress(progress, "upper_bounds", "two whole numbers: units done, and all of them")
    if domain is None and isinstance(stability, Stability):
        domain = stability.domain
    network, domain = enter_anywhere(network, domain)
    check_stability(stability, network, domain, "upper_bounds")
    dim = network.input_dim if domain is None else domain.free_dim
    layers = stages(network)
    values = [bound(dim, layers) for bound in (raghu, montufar, configuration)]
    details, cells = None, {}
    if domain is None and seconds is not None:
        msg = f"seconds={seconds:g} was given for the cellwise bound, which needs a domain; give one, or leave seconds out"
        raise OptionError(msg)
    if domain is not None:
        if stability is None:
            stability = find_stability(network, domain, method=method, executor=executor, progress=progress)
        details = empirical(network, domain, stability)
        if seconds is not None:
            cells = _cells(Tree.of(stability), seconds, details.value, tell)
    spent = meter.clock() - start
    return UpperBounds(network, domain, *values, seconds=spent, stability=stability, empirical_details=details, **cells)


def _cells(tree: Tree, seconds: float, most: int, tell: Callable[[int, int], None] | None) -> dict[str, Any]:
    """The cellwise bound, with which part of the first layer was listed, and why the list ended."""
    if not tree.units or not tree.domain.free_dim:
        return {"cellwise": 1, "listed": 1.0}
    from tessella.counting.cellwise import Cellwise, Lister, is_listable  # noqa: PLC0415  loads the compiler
    from tessella.kernel import warming  # noqa: PLC0415

    if not is_listable(tree):
        return {"cellwise": most, "status": Status.TIME_LIMIT}
    status, total, cellwise = Status.FINISHED, tree.network.layers[0].relus, None
    try:
        warming.load(Lister.functions(tree))
        cellwise, end = Cellwise(tree, LocalBound(tree)), meter.clock() + seconds
        while not cellwise.finished and (left := end - meter.clock()) > 0.0 and not cellwise.full:
            cellwise.advance(min(left, _SLICE))
            if tell:
                tell(round(cellwise.share * total), total)
        status = Status.FINISHED if cellwise.finished else Status.TIME_LIMIT
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    if cellwise is None:
        return {"cellwise": most, "status": status}
    return {"cellwise": min(most, cellwise.most), "listed": cellwise.share, "status": status}
