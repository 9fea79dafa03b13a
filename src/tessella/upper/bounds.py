"""All upper bounds at once."""

import json
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from tessella.domain import Domain, check_dimension
from tessella.network import Network
from tessella.result import SCHEMA, Bound, Side, format_count, provenance
from tessella.upper.configuration import configuration, montufar, raghu, stages


@dataclass(frozen=True, slots=True)
class UpperBounds:
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
    """

    network: Network
    domain: Domain | None
    raghu: int
    montufar: int
    configuration: int
    seconds: float

    @property
    def best(self) -> int:
        """The smallest of them."""
        return self.configuration

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Each as a claim of its own, loosest first."""
        names = ("raghu", "montufar", "configuration")
        return tuple(Bound(getattr(self, name), Side.UPPER, method=name) for name in names)

    def __repr__(self) -> str:
        """One line a person can read."""
        where = f" on {self.domain.describe()}" if self.domain else ""
        return f"UpperBounds(at most {format_count(self.best, Side.UPPER)} regions, of {self.network.shape}{where})"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        past = provenance(self.network.fingerprint, self.network.shape, self.domain.describe() if self.domain else None)
        bounds = {bound.method: bound.to_dict() for bound in self.bounds}
        return {"schema": SCHEMA, **past, "seconds": self.seconds, "upper": bounds}

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict())


def upper_bounds(network: Network, domain: Domain | None = None) -> UpperBounds:
    """Bound the number of regions from above, by every method there is.

    Parameters
    ----------
    network
        The network.
    domain
        The inputs considered.  Inputs that it fixes cost dimensions; otherwise these bounds hold on any domain.

    Examples
    --------
    >>> upper_bounds(Network.from_arrays([([[1.0], [-1.0]], None), ([[1.0, 1.0]], None)]))
    UpperBounds(at most 3 regions, of 1-2-1)
    """
    start = perf_counter()
    if domain is not None:
        check_dimension(domain, network.input_dim)
    dim = network.input_dim if domain is None else domain.free_dim
    layers = stages(network)
    values = [method(dim, layers) for method in (raghu, montufar, configuration)]
    return UpperBounds(network, domain, *values, seconds=perf_counter() - start)
