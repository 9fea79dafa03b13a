"""What a summary says: distributions of statistics over regions, each with how sure it is."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from tessella.answer import Answer, past
from tessella.domain import Domain
from tessella.errors import OptionError
from tessella.network import Floats, Network
from tessella.options import check_probability
from tessella.result import SCHEMA, Result, Status, finite_or_none, format_confidence, told
from tessella.summarising.intervals import Interval, band, mean_interval, quantile_interval, share_interval
from tessella.summarising.statistics import CHANGES, Statistic

_CELLS = 50  # bars of a histogram, at most


class How(StrEnum):
    """Of which regions a statistic is known."""

    ALL = "all regions"
    DRAWN = "drawn uniformly"
    SOME = "some regions"


class Between(NamedTuple):
    """A number, and two ends between which the true one lies."""

    value: float  # the number: of all regions, or of those that were drawn
    # low, high: the ends; the number itself where all regions are known
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Distribution(Result):
    """A statistic over regions.

    Parameters
    ----------
    name
        Which.
    values
        One for each region that was looked at: of all regions in the order of the list, else of those that were drawn, repeated ones repeated.
    how
        Which regions these are.  Of some that were not drawn evenly nothing is claimed but the ends.
    least, most
        Between which the statistic of any region lies, proved (or given by what it is).
    chance
        With which probability intervals of this distribution may be wrong; 0 if nothing was drawn.
    points
        Of a share of the volume: at how many random points it was found.
    """

    name: Statistic
    values: Floats
    how: How
    least: float
    most: float
    chance: float = 0.0
    points: int = 0

    def __post_init__(self) -> None:
        """Make read-only."""
        self.values.flags.writeable = False

    def __len__(self) -> int:
        """How many values there are."""
        return len(self.values)

    @property
    def sure(self) -> str:
        """How sure it is, in words."""
        if self.how is How.SOME:
            return "seen on some regions"
        return "with confidence" if self.chance else "all regions"

    @property
    def off(self) -> float:
        """By how much a value may be wrong, because it was found at random points: all of them at once, by Hoeffding's inequality."""
        return (
            math.sqrt(math.log(4.0 * len(self.values) / self.chance) / (2.0 * self.points))
            if self.points and self.chance
            else 0.0
        )

    def _part(self) -> float:
        """The chance that quantiles, or the mean, may be wrong because regions were drawn."""
        return self.chance / (4.0 if self.points else 2.0)

    def _between(self, value: float, low: float, high: float) -> Between:
        """A number and its ends, moved outward by how far values may be wrong."""
        return Between(value, max(self.least, min(low, value) - self.off), min(self.most, max(high, value) + self.off))

    @property
    def mean(self) -> Between:
        """The mean over all regions."""
        if not len(self.values):
            return Between(math.nan, self.least, self.most)
        value, ends = float(np.mean(self.values)), (self.least, self.most)
        if self.how is How.ALL:
            return self._between(value, value, value) if self.off else Between(value, value, value)
        return self._between(value, *(ends if self.how is How.SOME else mean_interval(self.values, self._part(), ends)))

    def quantile(self, share: float) -> Between:
        """The smallest value that at least this share of all regions does not exceed."""
        check_probability(share, "share", "a quantile", such_as=0.5)
        if not len(self.values):
            return Between(math.nan, self.least, self.most)
        ordered = np.sort(self.values)
        value = float(ordered[max(math.ceil(share * len(ordered) - 1e-9), 1) - 1])
        if self.how is How.ALL:
            return self._between(value, value, value) if self.off else Between(value, value, value)
        width = 1.0 if self.how is How.SOME else band(len(ordered), self._part())
        return self._between(value, *quantile_interval(ordered, share, width, (self.least, self.most)))

    def share(self, low: float, high: float | None = None) -> Between:
        """The part of all regions whose value, as it was found, lies between two ends, or is equal to one."""
        hits = int(((self.values >= low) & (self.values <= (low if high is None else high))).sum())
        count = len(self.values)
        value = hits / count if count else math.nan
        if self.how is How.ALL:
            return Between(value, value, value)
        if self.how is How.SOME or not count:
            return Between(value, 0.0, 1.0)
        if self.name is Statistic.DECISION and high is None:  # a class, or none: few enough for intervals of their own
            return Between(value, *share_interval(hits, count, self.chance / (self.most + 2.0)))
        off = 2.0 * band(count, self._part())
        return Between(value, max(0.0, value - off), min(1.0, value + off))

    @property
    def largest(self) -> Between:
        """The largest value: of all regions, or at least that of those that were looked at."""
        return self._end(float(self.values.max(initial=-math.inf)), self.most)

    @property
    def smallest(self) -> Between:
        """The smallest value, likewise."""
        return self._end(float(self.values.min(initial=math.inf)), self.least)

    def _end(self, value: float, beyond: float) -> Between:
        if not len(self.values):
            return Between(math.nan, self.least, self.most)
        if self.how is How.ALL and not self.off:
            return Between(value, value, value)
        far = value if self.how is How.ALL else beyond
        return self._between(value, min(value, far), max(value, far))

    def histogram(self) -> tuple[Floats, Floats]:
        """Edges of bars, and the share of the regions in each."""
        seen = self.values[np.isfinite(self.values)]
        if not len(seen):
            return np.array([0.0, 1.0]), np.zeros(1)
        low, high = float(seen.min()), float(seen.max())
        if (seen == np.rint(seen)).all() and high - low < _CELLS:
            edges = np.arange(low - 0.5, high + 1.0)
        else:
            edges = np.linspace(low, high if high > low else low + 1.0, _CELLS + 1)
        return edges, np.histogram(seen, edges)[0] / len(self.values)

    def __repr__(self) -> str:
        """One line a person can read."""
        mean = self.mean
        ends = "" if mean.low == mean.high else f" (between {mean.low:.4g} and {mean.high:.4g})"
        return f"Distribution({self.name}: mean {mean.value:.4g}{ends}, {len(self):,} values, {self.how})"

    def rows(self) -> list[dict[str, Any]]:
        """One row: the mean, quartiles, and ends."""
        if self.name is Statistic.DECISION:
            changes, mean = self.share(CHANGES), Between(math.nan, math.nan, math.nan)
            ends = f"{100.0 * changes.low:.3g} to {100.0 * changes.high:.3g} %"
            if math.isnan(changes.value):  # none was looked at
                words = f"changes inside {ends} of them"
            else:
                words = f"changes inside {100.0 * changes.value:.3g} % of them"
                words += "" if changes.low == changes.high else f" ({ends})"
        else:
            mean, words = self.mean, ""
        numbers = {
            "mean": mean.value,
            "mean_low": mean.low,
            "mean_high": mean.high,
            "smallest": self.smallest.value,
            "quarter": self.quantile(0.25).value,
            "median": self.quantile(0.5).value,
            "three_quarters": self.quantile(0.75).value,
            "largest": self.largest.value,
        }
        plain = self.name is not Statistic.DECISION
        shown = {name: value if plain and math.isfinite(value) else None for name, value in numbers.items()}
        return [{"statistic": str(self.name), **shown, "values": len(self), "of": str(self.how), "note": words}]

    def _title(self) -> str:
        return f"{str(self.name).capitalize()} of {self.how}: {len(self):,} values"

    def _record(self) -> dict[str, Any]:
        row = self.rows()[0]
        return {
            "schema": SCHEMA,
            **told(self, "name", "how", "least", "most", "chance", "points"),
            **{name: row[name] for name in ("mean", "mean_low", "mean_high", "median", "smallest", "largest")},
            "values": finite_or_none(self.values.tolist()),  # a radius may be infinite
        }


@dataclass(frozen=True, slots=True, eq=False)
class Summary(Answer):
    """Statistics over the regions of a network.

    If all regions are `listed` nothing is estimated; else numbers come with intervals that hold together with the `confidence`.

    Parameters
    ----------
    network, domain
        Of what, and where.
    distributions
        One for each statistic.
    regions
        How many regions there are if all were listed; else how many were.
    listed
        Whether these are all.
    lipschitz, lipschitz_maximum
        Two ends of the Lipschitz constant on the domain, in the l2 norm and in the largest-entry norm: the largest norm of all affine maps, within the rounding of its computation, if all regions
        were looked at; else from the steepest region that was seen to a proved upper bound.  None if no norm was asked for.
    maps
        How many different affine maps the regions have; None if not all are listed.
    pieces
        How many connected pieces there are that share one; None if that is not known.
    confidence
        The probability with which all intervals hold together; 1 if nothing was drawn.
    status
        Why it ended.
    seconds
        Wall time spent, without compiling.
    """

    network: Network
    domain: Domain
    distributions: tuple[Distribution, ...]
    regions: int
    listed: bool
    lipschitz: tuple[float, float] | None = None
    lipschitz_maximum: tuple[float, float] | None = None
    maps: int | None = None
    pieces: int | None = None
    confidence: float = 1.0
    status: Status = Status.FINISHED
    seconds: float = 0.0

    def distribution(self, name: Statistic | str) -> Distribution:
        """That of one statistic."""
        for one in self.distributions:
            if one.name == name:
                return one
        msg = f"{name!r:.40} was not asked for; this summary has {', '.join(one.name for one in self.distributions)}"
        raise OptionError(msg)

    def __repr__(self) -> str:
        """One line a person can read."""
        many = f"all {self.regions:,} regions" if self.listed else f"at least {self.regions:,} regions"
        names = ", ".join(one.name for one in self.distributions)
        return f"Summary({names} over {many} of {self.network.shape} on {self.domain.describe()}, {self.seconds:.2f} s)"

    def rows(self) -> list[dict[str, Any]]:
        """One row per statistic: its mean (with the ends of an interval), quartiles, and ends."""
        return [row for one in self.distributions for row in one.rows()]

    def per_region(self) -> list[dict[str, Any]]:
        """One row per region, with the statistics that are known of all."""
        known = {str(one.name): one.values.tolist() for one in self.distributions if one.how is How.ALL}
        return [
            {"region": number, **{name: values[number] for name, values in known.items()}}
            for number in range(self.regions if known else 0)
        ]

    def _title(self) -> str:
        many = f"{self.regions:,} regions, all of them" if self.listed else "regions, drawn uniformly"
        return f"{self.network.shape} on {self.domain.describe()}: {many}, {self.seconds:.2f} s"

    def _note(self) -> str:
        return " ".join(self.notes())

    def notes(self) -> list[str]:
        """What there is to say besides the table."""
        said = list[str]()
        for bracket, norm in ((self.lipschitz, "l2"), (self.lipschitz_maximum, "linf")):
            if bracket is not None:
                low, high = bracket
                close = self.listed and high - low <= 1e-6 * high
                said.append(f"Lipschitz constant ({norm}): {f'{high:.7g}' if close else f'between {low:.5g} and {high:.5g}'}.")
        if self.maps is not None:
            connected = "" if self.pieces is None else f", in {self.pieces:,} connected piece{'' if self.pieces == 1 else 's'}"
            said.append(f"{'1 affine map' if self.maps == 1 else f'{self.maps:,} different affine maps'}{connected}.")
        if any(one.chance for one in self.distributions):
            said.append(f"All intervals hold together with {format_confidence(self.confidence)} confidence.")
        if any(one.how is How.SOME for one in self.distributions):
            said.append(
                f"It ended early ({self.status}): what is shown is of the regions that were seen, which were not drawn evenly."
            )
        return said

    def _record(self) -> dict[str, Any]:
        return {
            **past(self.network, self.domain),
            "distributions": [one.to_dict() for one in self.distributions],
            **{
                name: getattr(self, name)
                for name in (
                    "regions",
                    "listed",
                    "lipschitz",
                    "lipschitz_maximum",
                    "maps",
                    "pieces",
                    "confidence",
                    "status",
                    "seconds",
                )
            },
        }

    @classmethod
    def _placed(cls, record: Mapping[str, Any], network: Network | None) -> dict[str, Any]:
        found = [
            Distribution(
                Statistic(one["name"]),
                np.array([math.inf if value is None else value for value in one["values"]], dtype=np.float64),
                How(one["how"]),
                float(one["least"]),
                math.inf if one["most"] is None else float(one["most"]),
                one["chance"],
                one["points"],
            )
            for one in record["distributions"]
        ]
        brackets = {name: _bracket(record[name]) for name in ("lipschitz", "lipschitz_maximum")}
        return {**super(Summary, cls)._placed(record, network), "distributions": tuple(found), **brackets}


def _bracket(written: Any) -> Interval | None:
    return None if written is None else (float(written[0]), math.inf if written[1] is None else float(written[1]))
