"""What an analysis answers: a bracket, and how it came about."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tessella.answer import Answer, part, past, whole
from tessella.bounding import UpperBounds
from tessella.counting.count import Count
from tessella.domain import Domain
from tessella.errors import OptionError
from tessella.estimating.estimate import Estimate
from tessella.network import Network
from tessella.probable.result import MIPBound
from tessella.result import (
    Bound,
    Side,
    Status,
    claims_about,
    format_confidence,
    format_count,
    format_estimate,
    format_number,
    interval_kind,
    maps,
    told,
)
from tessella.stability import Stability

LOADING = "loading"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was run.

    Parameters
    ----------
    name
        What: ``"stability"``, ``"upper bounds"``, ``"count"``, ``"meeting point"``, ``"estimate"``, ``"mipbound"``, or ``"loading"``
        (compiled code, which does not count).
    why
        For which reason.
    found
        What it brought, in words; empty while it runs.
    seconds
        Wall time spent.
    """

    name: str
    why: str
    found: str = ""
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**told(self, "name", "why", "found", "seconds")}


@dataclass(frozen=True, slots=True)
class Analysis(Answer):
    """All that is known of the number of regions of a network on a domain.

    The order ``1 <= proved_lower <= probable_lower <= probable_upper <= upper`` always holds; if the count is exact, all are equal.

    Parameters
    ----------
    network, domain
        Of what, and where.
    proved_lower, upper
        Proved bounds, exact integers.
    probable_lower
        The count is at least this, with the confidence; never below `proved_lower`.
    confidence
        Of both probable bounds together.  Where several methods bound it, each had a part of what may go wrong.
    stability
        The units that never change their state; None if not even that was found.
    upper_bounds
        All upper bounds, from that stability.
    estimate, count, mipbound
        What each said, if it was run.  Their own confidences are higher than that of the analysis where it had several.
    steps
        What was run, why, and how long, in order.
    choices
        The same in a sentence or two.
    seconds
        Wall time spent, once code was compiled or loaded.
    status
        Whether it ran to its end.
    compile_seconds
        Wall time that went by while code was compiled, once per machine, or loaded.
    probable_upper
        The count is at most this, with the confidence; never above `upper`.
    """

    network: Network
    domain: Domain
    proved_lower: int
    probable_lower: int
    upper: int
    confidence: float = 0.95
    stability: Stability | None = None
    upper_bounds: UpperBounds | None = None
    estimate: Estimate | None = None
    count: Count | None = None
    mipbound: MIPBound | None = None
    steps: tuple[Step, ...] = ()
    choices: str = ""
    seconds: float = 0.0
    status: Status = Status.FINISHED
    compile_seconds: float = 0.0
    probable_upper: int = 0

    def __post_init__(self) -> None:
        """Refuse a bracket that contradicts itself; the proved upper bound stands for a probable one that is not given."""
        object.__setattr__(self, "probable_upper", self.probable_upper or self.upper)
        if not 1 <= self.proved_lower <= self.probable_lower <= self.probable_upper <= self.upper:
            ends = f"{self.proved_lower}, {self.probable_lower}, {self.probable_upper}, {self.upper}"
            msg = f"proved lower, probable lower, probable upper and upper bound must rise from 1 on; got {ends:.80}"
            raise OptionError(msg)

    @property
    def exact(self) -> int | None:
        """The number of regions, if it is proved."""
        return self.upper if self.proved_lower == self.upper else None

    @property
    def probable_confidence(self) -> float:
        """With which probability `probable_lower` holds: 1 where it is proved."""
        return 1.0 if self.probable_lower == self.proved_lower else self.confidence

    @property
    def mean(self) -> int | None:
        """The estimate, moved into the bracket should it lie outside; the count if it is exact; None if there is neither.

        None, too, where the estimate says no more than its lower bound: of a network too large to descend through, it is one of its beginning.
        """
        if self.exact is not None:
            return self.exact
        if self.estimate is None or (self.estimate.maps_interval is None and self.estimate.maps <= maps(self.estimate.lower)):
            return None
        return min(max(round(self.estimate.mean), self.probable_lower), self.probable_upper)

    @property
    def maps_interval_kind(self) -> str | None:
        """What `maps_interval` rests on: ``"guaranteed"`` if it ends where the probable bounds do, else ``"measured"``; None if there is none."""
        return interval_kind(self.maps_interval, self.probable_lower, self.probable_upper)

    @property
    def maps_interval(self) -> tuple[float, float] | None:
        """Where log2 of the count lies, as `Estimate.maps_interval`, moved into the bracket; None if that is too uncertain, or there is no estimate."""
        low, high = maps(self.probable_lower), maps(self.probable_upper)
        if self.exact is not None:
            return low, high
        if self.estimate is None or self.estimate.maps_interval is None:
            return None
        one, other = self.estimate.maps_interval
        return min(max(one, low), high), min(max(other, low), high)

    @property
    def relative_error(self) -> float | None:
        """The standard error as a part of the estimate: 0 if the count is exact, None if nothing is known of it."""
        if self.exact is not None:
            return 0.0
        if self.estimate is None or not math.isfinite(self.estimate.relative_error):
            return None
        return self.estimate.relative_error

    @property
    def standard_error(self) -> float | int | None:
        """The same, in regions."""
        if self.exact is not None or self.estimate is None or self.relative_error is None:
            return self.relative_error
        return self.estimate.standard_error

    @property
    def maps(self) -> float:
        """Log2 of the count if it is exact, else of the estimate, else of the proved lower bound."""
        return maps(self.proved_lower if self.mean is None else self.mean)

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Each a claim of its own, from the lowest to the highest; one if the count is exact."""
        counted = self.network.counted
        if self.exact is not None:
            return (Bound(self.exact, Side.EXACT, counted, "analysis", seconds=self.seconds),)
        claims = [(self.proved_lower, Side.LOWER, self.proved_method, 1.0)]
        if self.probable_lower > self.proved_lower:
            claims.append((self.probable_lower, Side.LOWER, self.probable_method, self.confidence))
        if self.mean is not None:
            claims.append((self.mean, Side.ESTIMATE, "descents", 0.0))
        if self.probable_upper < self.upper:
            claims.append((self.probable_upper, Side.UPPER, "uniform descents", self.confidence))
        claims.append((self.upper, Side.UPPER, self.upper_method, 1.0))
        return tuple(Bound(value, side, counted, name, sure, self.seconds) for value, side, name, sure in claims)

    @property
    def proved_method(self) -> str:
        """Who proved the lower bound."""
        by_count = self.proved_lower == 1 or (self.count is not None and self.count.lower >= self.proved_lower)
        return "count" if by_count else "meeting hyperplanes"

    @property
    def probable_method(self) -> str:
        """Who found the probable bound."""
        if self.probable_lower == self.proved_lower:
            return self.proved_method
        by_mip = self.mipbound is not None and self.mipbound.lower >= self.probable_lower
        return f"XOR-{self.mipbound.parity_size}" if by_mip and self.mipbound else "betting"

    @property
    def upper_method(self) -> str:
        """Who found the upper bound."""
        if self.count is not None and self.count.upper == self.upper and not self._is_bound(self.upper):
            return "count"
        return "empirical" if self.upper_bounds is not None else "2^ReLUs"

    def _is_bound(self, value: int) -> bool:
        return self.upper_bounds is not None and self.upper_bounds.best == value

    def __repr__(self) -> str:
        """One line a person can read."""
        where = f"of {self.network.shape} on {self.domain.describe()}, {self.seconds:.1f} s"
        if self.exact is not None:
            return f"Analysis(exactly {format_number(self.exact, 'regions')}, {where})"
        parts = [f"{format_count(self.proved_lower, Side.LOWER)} (proved)"]
        if self.probable_lower > self.proved_lower:
            parts.append(f"{format_count(self.probable_lower, Side.LOWER)} ({format_confidence(self.confidence)} sure)")
        if self.mean is not None or self.estimate is not None:
            about = self.mean and self.maps_interval and f"about {format_estimate(self.mean, self.maps_interval)} (estimated)"
            parts.append(about or "? (too uncertain to estimate)")
        if self.probable_upper < self.upper:
            parts.append(f"{format_count(self.probable_upper, Side.UPPER)} ({format_confidence(self.confidence)} sure)")
        parts.append(f"{format_count(self.upper, Side.UPPER)} regions (proved)")
        return f"Analysis({' <= '.join(parts)}, {where})"

    def rows(self) -> list[dict[str, Any]]:
        """The bracket as a table, from the lowest claim to the highest."""
        return claims_about(self.bounds, self.maps_interval, self.relative_error, self.maps_interval_kind)

    def _title(self) -> str:
        return f"Regions of {self.network.shape} on {self.domain.describe()}, {self.seconds:.1f} s"

    def _note(self) -> str:
        return self.choices

    def _record(self) -> dict[str, Any]:
        return {
            **past(self.network, self.domain),
            **told(self, "exact", "proved_lower", "probable_lower"),
            "confidence": self.probable_confidence,
            "asked_confidence": self.confidence,
            "estimate": self.mean,
            **told(self, "standard_error", "relative_error", "maps_interval", "maps_interval_kind", "probable_upper", "upper"),
            "maps": {
                "proved_lower": maps(self.proved_lower),
                "probable_lower": maps(self.probable_lower),
                "estimate": None if self.mean is None else maps(self.mean),
                "probable_upper": maps(self.probable_upper),
                "upper": maps(self.upper),
            },
            "bounds": [bound.to_dict() for bound in self.bounds],
            "stability": part(self.stability),
            "upper_bounds": part(self.upper_bounds, "stability"),
            "details": {"count": part(self.count), "estimate": part(self.estimate), "mipbound": part(self.mipbound)},
            "steps": [step.to_dict() for step in self.steps],
            **told(self, "choices", "status", "seconds", "compile_seconds"),
        }

    @classmethod
    def _placed(cls, record: Mapping[str, Any], network: Network | None) -> dict[str, Any]:
        bounds = record["upper_bounds"] and {**record["upper_bounds"], "stability": record["stability"]}
        parts = {**record["details"], "stability": record["stability"], "upper_bounds": bounds}
        kinds = {"stability": Stability, "upper_bounds": UpperBounds, "count": Count, "estimate": Estimate, "mipbound": MIPBound}
        placed = {**super(Analysis, cls)._placed(record, network), "confidence": record["asked_confidence"]}
        for name, kind in kinds.items():
            inner = whole(record, parts.get(name))
            placed[name] = None if inner is None else kind.from_dict(inner, network=network)
        return placed
