"""Which units ever change their state over a domain."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tessella.answer import Answer, past, read_domain, read_network
from tessella.domain import Domain, check_fit
from tessella.door import DomainLike, NetworkLike, enter
from tessella.errors import OptionError
from tessella.executors import ExecutorLike
from tessella.methods import Method, Units
from tessella.network import Floats, Mask, Network, Outline
from tessella.preactivation import PreactivationBounds
from tessella.progress import units, with_bar
from tessella.tightening import tighten


@dataclass(frozen=True, slots=True, eq=False)
class Stability(Answer):
    """Per unit: stably active, stably inactive, or unstable, over a domain.

    A unit is stably inactive where its preactivation is proved to be at most 0, else stably active where it is proved to be
    at least 0.  This is the reading for full-dimensional regions: a unit that is 0 on part of the domain and positive
    elsewhere cuts no region that an earlier unit has not cut already.  Linear units have no state.

    Parameters
    ----------
    network, domain
        Of what, and where.
    bounds
        The proved bounds on the preactivations that decide it.
    """

    network: Network
    domain: Domain
    bounds: PreactivationBounds

    def __post_init__(self) -> None:
        """Check that the parts fit."""
        check_fit(self.network, self.domain)
        if not self.bounds.matches(self.network):
            msg = "the bounds belong to a network of another shape"
            raise OptionError(msg)

    @property
    def inactive(self) -> tuple[Mask, ...]:
        """Per layer, the units that are stably inactive."""
        return tuple(layer.rectified & (high <= 0.0) for layer, high in zip(self.network.outline, self.bounds.upper, strict=True))

    @property
    def active(self) -> tuple[Mask, ...]:
        """Per layer, the units that are stably active."""
        return tuple(
            layer.rectified & (low >= 0.0) & (high > 0.0)
            for layer, low, high in zip(self.network.outline, self.bounds.lower, self.bounds.upper, strict=True)
        )

    @property
    def unstable(self) -> tuple[Mask, ...]:
        """Per layer, the units that may be either."""
        return tuple(
            layer.rectified & (low < 0.0) & (high > 0.0)
            for layer, low, high in zip(self.network.outline, self.bounds.lower, self.bounds.upper, strict=True)
        )

    @property
    def active_leaning(self) -> tuple[Mask, ...]:
        """Per layer, the unstable units with a positive bias: only a unit before can make them inactive; none in the first layer."""
        return self._leaning([layer.positive for layer in self.network.outline])

    @property
    def inactive_leaning(self) -> tuple[Mask, ...]:
        """Per layer, the unstable units without a positive bias: only a unit before can make them active; none in the first layer."""
        return self._leaning([~layer.positive for layer in self.network.outline])

    def _leaning(self, masks: list[Mask]) -> tuple[Mask, ...]:
        return tuple(
            mask & unstable & (number > 0) for number, (mask, unstable) in enumerate(zip(masks, self.unstable, strict=True))
        )

    @property
    def outputs(self) -> tuple[Floats, Floats]:
        """The network's outputs over the domain, after the last layer's ReLUs if it has any: a lower and an upper end for each.

        They are exact, but for rounding outward, if ``method="milp"`` with ``units="all"`` found them and left no unit `unproved`.
        """
        return self.bounds.outputs(self.network, len(self.bounds.lower) - 1)

    def totals(self) -> dict[str, int]:
        """How many units of each kind there are."""
        kinds = ("active", "inactive", "unstable", "active_leaning", "inactive_leaning")
        return {kind: sum(int(mask.sum()) for mask in getattr(self, kind)) for kind in kinds}

    def rows(self) -> list[dict[str, Any]]:
        """One record per layer that has ReLUs; its mean width is None if it is infinite."""
        records: list[dict[str, Any]] = []
        for number, layer in enumerate(self.network.outline):
            if layer.relus:
                kinds = ("active", "inactive", "unstable", "active_leaning", "inactive_leaning")
                counts = {kind: int(getattr(self, kind)[number].sum()) for kind in kinds}
                width = float(np.mean(self.bounds.widths[number][layer.rectified]))
                records.append(
                    {"layer": number + 1, "relus": layer.relus, **counts, "mean_width": width if np.isfinite(width) else None}
                )
        return records

    def __repr__(self) -> str:
        """One line a person can read."""
        total = self.totals()
        return (
            f"Stability({total['unstable']} unstable, {total['active']} stably active, {total['inactive']} stably inactive "
            f"of {self.network.relus} ReLUs, {self.bounds.method}, {self.bounds.seconds:.2f} s)"
        )

    def _title(self) -> str:
        total = self.totals()
        kinds = f"{total['unstable']:,} unstable, {total['active']:,} stably active, {total['inactive']:,} stably inactive"
        return f"{self.network.relus:,} ReLUs of {self.network.shape} on {self.domain.describe()}: {kinds}"

    def _note(self) -> str:
        return f"Stable units are proved ({self.bounds.method}, {self.bounds.seconds:.1f} s)."

    def _record(self) -> dict[str, Any]:
        known = self.bounds.to_dict()
        sides = [
            {"rectified": layer.rectified.tolist(), "positive_bias": layer.positive.tolist()} for layer in self.network.outline
        ]
        return {
            **past(self.network, self.domain),
            **known,
            "total": self.totals(),
            "layers": self.rows(),
            "bounds": [ends | own for ends, own in zip(known["bounds"], sides, strict=True)],
        }

    @classmethod
    def _placed(cls, record: Mapping[str, Any], network: Network | None) -> dict[str, Any]:
        bounds = PreactivationBounds.from_dict(record)
        outline = tuple(
            Outline(np.array(layer["rectified"], dtype=np.bool_), np.array(layer["positive_bias"], dtype=np.bool_))
            for layer in record["bounds"]
        )
        return {
            "network": read_network(record, network, outline),
            "domain": read_domain(record.get("domain")),
            "bounds": bounds,
        }


@with_bar(units)
def stability(  # noqa: PLR0913  one keyword per option
    network: NetworkLike,
    domain: DomainLike,
    *,
    method: Method | str = Method.MILP,
    seconds_per_unit: float = 10.0,
    executor: ExecutorLike | None = None,
    progress: Callable[[int, int], None] | bool | None = None,
    seconds: float | None = None,
    known: Stability | None = None,
    units: Units | str = Units.UNSTABLE,
) -> Stability:
    """Find the units that never change their state over a domain, and bounds on what every unit sees before its ReLU.

    A unit is stable if its preactivation is proved to have one sign on all of the domain.  Ctrl-C ends with what is proved so far.

    Parameters
    ----------
    network, domain
        Of what, and where: what `tessella.load` takes, and a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.
    method
        ``"interval"``, ``"linear"``, ``"lp"`` or ``"milp"``: slower ones prove more units stable.  ``"milp"`` finds exact ranges.
    seconds_per_unit
        After this time a unit keeps the bounds that are proved so far.
    executor
        Where units of one layer are worked on side by side: any `concurrent.futures.Executor`, a Dask client, or the address of a Dask scheduler.
    progress
        Called with the number of units done and their total; True for a bar on a terminal or in a notebook.
    seconds
        After this time all units keep the bounds that are proved so far; None for no limit.  Interval arithmetic is not cut short.
    known
        What was found before for this network on this domain: no unit's bounds become wider, and quicker methods are not used again.
    units
        Which units ``"lp"`` and ``"milp"`` tighten.  ``"unstable"``: the ReLUs whose state quicker methods leave open, as long as it is open; stable,
        linear and output units keep bounds that hold, but are not exact.  ``"all"``: every unit, so that with ``"milp"`` the ranges of the
        outputs are exact, too.

    Examples
    --------
    >>> import tessella
    >>> net = tessella.Network.from_arrays([([[1.0], [-1.0]], [0.5, -0.5]), ([[1.0, 1.0]], None)])
    >>> totals = tessella.stability(net, tessella.Box(0, 1, dim=1)).totals()
    >>> totals["active"], totals["inactive"]
    (1, 1)
    >>> [end.round(6).tolist() for end in tessella.stability(net, tessella.Box(0, 1, dim=1), units="all").outputs]
    [[0.5], [1.5]]
    """
    network, domain = enter(network, domain)
    check_stability(known, network, domain, "a search for stable units")
    bounds = tighten(
        network,
        domain,
        method=method,
        seconds_per_unit=seconds_per_unit,
        executor=executor,
        progress=progress,
        seconds=seconds,
        known=known.bounds if known else None,
        units=units,
    )
    return Stability(network, domain, bounds)


def check_stability(given: object, network: Network, domain: Domain | None, who: str) -> None:
    """Raise unless this is None, or the stability of this network on this domain.

    Parameters
    ----------
    given
        What a caller gave.
    network, domain
        Whose stability it should be.
    who
        Takes it: ``"a count"``.
    """
    if given is None:
        return
    if not isinstance(given, Stability):
        msg = f"stability is a {type(given).__name__}; {who} takes what tessella.stability returns, or None"
        raise OptionError(msg)
    if given.network != network or given.domain != domain:
        msg = (
            f"the stability given is that of another network or domain ({given.network!r} on {given.domain!r}); "
            f"find it with tessella.stability for {network!r} on {domain!r}"
        )
        raise OptionError(msg)


def stability_to_go_on_with(
    network: Network, domain: Domain, *, method: Method, seconds_per_unit: float = 10.0, executor: ExecutorLike | None = None
) -> Stability:
    """The same, as a first step of something longer: Ctrl-C is raised, which `stability` takes as the wish for what is proved so far.

    Examples
    --------
    >>> from tessella.domain import Box
    >>> net = Network.from_arrays([([[1.0], [-1.0]], [0.5, -0.5]), ([[1.0, 1.0]], None)])
    >>> stability_to_go_on_with(net, Box(0, 1, dim=1), method=Method.LINEAR).totals()["active"]
    1
    """
    found = stability(network, domain, method=method, seconds_per_unit=seconds_per_unit, executor=executor)
    if found.bounds.interrupted:
        raise KeyboardInterrupt
    return found
