"""All upper bounds at once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tessella.answer import Answer, part, past, whole
from tessella.domain import Domain
from tessella.door import DomainLike, NetworkLike, enter_anywhere
from tessella.errors import OptionError
from tessella.executors import ExecutorLike
from tessella.kernel import meter
from tessella.methods import Method
from tessella.network import Network
from tessella.progress import units, with_bar
from tessella.result import Bound, Side, claims, format_count, maps
from tessella.stability import Stability, check_stability
from tessella.stability import stability as find_stability
from tessella.upper.configuration import configuration, montufar, raghu, stages
from tessella.upper.empirical import Empirical, empirical


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
        Wall time spent.
    stability
        The units that never change their state on the domain; None without a domain.
    empirical_details
        The bound that they give, with its parts; None without a domain.
    """

    network: Network
    domain: Domain | None
    raghu: int
    montufar: int
    configuration: int
    seconds: float
    stability: Stability | None = None
    empirical_details: Empirical | None = None

    @property
    def empirical(self) -> int | None:
        """The bound from the weights and the domain; None without a domain."""
        return self.empirical_details.value if self.empirical_details else None

    @property
    def best(self) -> int:
        """The smallest of them."""
        return self.configuration if self.empirical is None else self.empirical

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Each as a claim of its own, loosest first."""
        names = ("raghu", "montufar", "configuration", *(() if self.empirical is None else ("empirical",)))
        return tuple(Bound(getattr(self, name), Side.UPPER, self.network.counted, name) for name in names)

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
            "counted": self.network.counted,
            "seconds": self.seconds,
            "upper": {bound.method: bound.to_dict() for bound in self.bounds},
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
        Passed on to `tessella.stability`.

    Examples
    --------
    >>> upper_bounds(Network.from_arrays([([[1.0], [-1.0]], None), ([[1.0, 1.0]], None)]))
    UpperBounds(at most 3 regions, of 1-2-1)
    """
    start = meter.clock()
    if domain is None and isinstance(stability, Stability):
        domain = stability.domain
    network, domain = enter_anywhere(network, domain)
    check_stability(stability, network, domain, "upper_bounds")
    dim = network.input_dim if domain is None else domain.free_dim
    layers = stages(network)
    values = [bound(dim, layers) for bound in (raghu, montufar, configuration)]
    details = None
    if domain is not None:
        if stability is None:
            stability = find_stability(network, domain, method=method, executor=executor, progress=progress)
        details = empirical(network, domain, stability)
    seconds = meter.clock() - start
    return UpperBounds(network, domain, *values, seconds=seconds, stability=stability, empirical_details=details)
