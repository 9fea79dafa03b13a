"""What an analysis answers: a bracket, and how it came about."""

import html
import math
from dataclasses import dataclass
from typing import Any

from tessella.counting.count import Count
from tessella.domain import Domain
from tessella.errors import OptionError
from tessella.estimating.estimate import Estimate
from tessella.network import Network
from tessella.probable.result import MIPBound
from tessella.result import (
    SCHEMA,
    Bound,
    Side,
    Status,
    ToJson,
    encode_int,
    format_confidence,
    format_count,
    format_maps,
    format_share,
    maps,
    provenance,
)
from tessella.stability import Stability
from tessella.upper import UpperBounds

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
        return {"name": self.name, "why": self.why, "found": self.found, "seconds": self.seconds}


@dataclass(frozen=True, slots=True)
class Analysis(ToJson):
    """All that is known of the number of regions of a network on a domain.

    The order ``1 <= proved_lower <= probable_lower <= upper`` always holds; if the count is exact, all are equal.

    Parameters
    ----------
    network, domain
        Of what, and where.
    proved_lower, upper
        Proved bounds, exact integers.
    probable_lower
        The count is at least this, with the confidence; never below `proved_lower`.
    confidence
        Of the probable bound.  Where several methods bound it, each had a part of what may go wrong.
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

    def __post_init__(self) -> None:
        """Refuse a bracket that contradicts itself."""
        if not 1 <= self.proved_lower <= self.probable_lower <= self.upper:
            ends = f"{self.proved_lower}, {self.probable_lower}, {self.upper}"
            msg = f"proved lower, probable lower and upper bound must rise from 1 on; got {ends:.80}"
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
        """The estimate, moved into the bracket should it lie outside; the count if it is exact; None if there is neither."""
        if self.exact is not None:
            return self.exact
        if self.estimate is None:
            return None
        return min(max(round(self.estimate.mean), self.probable_lower), self.upper)

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
            number = format_count(self.exact)
            power = "" if "^" in number else f" = 2^{format_maps(self.exact)}"
            return f"Analysis(exactly {number} region{'' if self.exact == 1 else 's'}{power}, {where})"
        parts = [f"{format_count(self.proved_lower, Side.LOWER)} (proved)"]
        if self.probable_lower > self.proved_lower:
            parts.append(f"{format_count(self.probable_lower, Side.LOWER)} ({format_confidence(self.confidence)} sure)")
        if self.mean is not None:
            parts.append(f"about {format_count(self.mean)} (estimated)")
        parts.append(f"{format_count(self.upper, Side.UPPER)} regions (proved)")
        return f"Analysis({' <= '.join(parts)}, {where})"

    def rows(self) -> list[tuple[str, int, Side, str]]:
        """The bracket as lines of a table: what, how many, which side, and how sure."""
        sure = {1.0: "proved"}
        words = {Side.LOWER: "at least", Side.UPPER: "at most", Side.EXACT: "exactly", Side.ESTIMATE: "about"}
        lines = list[tuple[str, int, Side, str]]()
        for bound in self.bounds:
            note = sure.get(bound.confidence, f"with {format_confidence(bound.confidence)} confidence")
            if bound.side is Side.ESTIMATE:
                error = self.relative_error
                note = "estimated" if error is None else f"estimated, standard error {format_share(error)}"
            lines.append((words[bound.side], bound.value, bound.side, note))
        return lines

    def _repr_html_(self) -> str:
        """The bracket as a small table, for notebooks."""
        lines = "".join(
            f"<tr><td>{words}</td><td>{format_count(value, side)}</td><td>2^{format_maps(value, side)}</td><td>{note}</td></tr>"
            for words, value, side, note in self.rows()
        )
        title = html.escape(f"{self.network.shape} on {self.domain.describe()}, {self.seconds:.1f} s")
        return f"<table><caption>Regions of {title}</caption>{lines}</table><p>{html.escape(self.choices)}</p>"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        past = provenance(self.network.fingerprint, self.network.shape, self.domain.to_dict())
        error = self.standard_error
        return {
            "schema": SCHEMA,
            **past,
            "exact": None if self.exact is None else encode_int(self.exact),
            "proved_lower": encode_int(self.proved_lower),
            "probable_lower": encode_int(self.probable_lower),
            "confidence": self.probable_confidence,
            "estimate": None if self.mean is None else encode_int(self.mean),
            "standard_error": encode_int(error) if isinstance(error, int) else error,
            "relative_error": self.relative_error,
            "upper": encode_int(self.upper),
            "maps": {
                "proved_lower": maps(self.proved_lower),
                "probable_lower": maps(self.probable_lower),
                "estimate": None if self.mean is None else maps(self.mean),
                "upper": maps(self.upper),
            },
            "counted": self.network.counted,
            "bounds": [bound.to_dict() for bound in self.bounds],
            "stability": _stability(self.stability),
            "upper_bounds": None if self.upper_bounds is None else _without_past(self.upper_bounds.to_dict(), past),
            "details": {
                name: None if part is None else _without_past(part.to_dict(), past)
                for name, part in (("count", self.count), ("estimate", self.estimate), ("mipbound", self.mipbound))
            },
            "steps": [step.to_dict() for step in self.steps],
            "choices": self.choices,
            "status": self.status,
            "seconds": self.seconds,
            "compile_seconds": self.compile_seconds,
        }


def _without_past(record: dict[str, Any], past: dict[str, Any]) -> dict[str, Any]:
    """A part of an answer, without what the whole says already."""
    return {name: value for name, value in record.items() if name not in past and name != "schema"}


def _stability(found: Stability | None) -> dict[str, Any] | None:
    if found is None:
        return None
    known = found.bounds
    return {
        "method": known.method,
        "seconds": known.seconds,
        "unproved": known.unproved,
        "total": found.totals(),
        "layers": found.rows(),
    }
