"""Which of several networks has more regions, and how sure that is.

Four words, from the strongest: *proved* (the lower bound of one lies above the upper bound of the other), *probable* (its probable lower bound lies above the probable upper bound of the other),
*estimated* (the estimates differ by more than their standard errors explain) and *undecided*.  What rests on two estimates is no more than estimated: Welch's test on their logarithms,
corrected for the number of pairs (Holm 1979).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, pairwise
from typing import Any, Self, cast

from tessella.analysis.result import Analysis
from tessella.answer import made
from tessella.errors import FileError, OptionError, TessellaError
from tessella.network import Network
from tessella.options import check_probability
from tessella.result import SCHEMA, Result, check_schema, format_confidence, from_text, told_apart


class Verdict(StrEnum):
    """How sure it is that one network has more regions than another."""

    PROVED = "proved"
    PROBABLE = "probable"
    ESTIMATED = "estimated"
    UNDECIDED = "undecided"
    EQUAL = "equal"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One pair."""

    # more, fewer: names of the network that has more regions, as far as one can tell, and of the other
    more: str
    fewer: str
    verdict: Verdict  # how sure that is; ``"equal"`` if both have the same number, proved
    p_value: float | None = None  # of the test, corrected for the number of pairs; None where none was needed or possible

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"more": self.more, "fewer": self.fewer, "verdict": str(self.verdict), "p_value": self.p_value}


@dataclass(frozen=True, slots=True)
class Ranking(Result):
    """Networks from the one with most regions down.

    Parameters
    ----------
    analyses
        What is known of each, by name, in that order.
    comparisons
        Of every pair.
    confidence
        With which all probable bounds hold at once.
    level
        The p-value below which a difference counts as estimated.
    """

    analyses: Mapping[str, Analysis]
    comparisons: tuple[Comparison, ...]
    confidence: float
    level: float

    @property
    def names(self) -> tuple[str, ...]:
        """From most to fewest."""
        return tuple(self.analyses)

    def analysis(self, name: str) -> Analysis:
        """What is known of one network."""
        if name not in self.analyses:
            msg = f"there is no {name!r} in this ranking; it has {', '.join(self.names)}"
            raise OptionError(msg)
        return self.analyses[name]

    def between(self, one: str, other: str) -> Comparison:
        """What is known of a pair."""
        for each in self.comparisons:
            if {each.more, each.fewer} == {one, other}:
                return each
        msg = f"{one!r} and {other!r} are no pair of this ranking; it has {', '.join(self.names)}"
        raise OptionError(msg)

    def __str__(self) -> str:
        """From most regions down: > for more, = for as many, ? for undecided, and how sure that is."""
        text = self.names[0]
        for one, other in pairwise(self.names):
            verdict = self.between(one, other).verdict
            sign = {Verdict.EQUAL: "=", Verdict.UNDECIDED: "?"}.get(verdict, ">")
            text += f" {sign} {other} ({'proved' if verdict is Verdict.EQUAL else verdict})"
        return text

    def __repr__(self) -> str:
        """One line a person can read."""
        return f"Ranking({self})"

    def rows(self) -> list[dict[str, Any]]:
        """One row per network, from the one with most regions down: its bracket, and how sure it is that it has more than the next."""
        rows = list[dict[str, Any]]()
        for place, (name, known) in enumerate(self.analyses.items()):
            pair = None if place + 1 == len(self.names) else self.between(name, self.names[place + 1])
            rows.append(
                {
                    "network": name,
                    "proved_lower": known.proved_lower,
                    "probable_lower": known.probable_lower,
                    "estimate": None if known.maps_interval is None else known.mean,
                    "probable_upper": known.probable_upper,
                    "upper": known.upper,
                    "more_than_the_next": None if pair is None else str(pair.verdict),
                    "p_value": None if pair is None else pair.p_value,
                }
            )
        return rows

    def _title(self) -> str:
        return "Which has more regions?"

    def _note(self) -> str:
        return f"All probable bounds hold at once with {format_confidence(self.confidence)} confidence."

    def _told_apart(self) -> str:
        compared = {name: each.network.counted for name, each in self.analyses.items() if told_apart(each.network.counted)}
        return " ".join(f"{name}: {told_apart(counted)}" for name, counted in compared.items())

    def _record(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "order": self.names,
            "confidence": self.confidence,
            "level": self.level,
            "comparisons": [each.to_dict() for each in self.comparisons],
            "analyses": {name: each.to_dict() for name, each in self.analyses.items()},
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], *, networks: Mapping[str, Network] | None = None) -> Self:
        """Read what `to_dict` wrote.

        Parameters
        ----------
        record
            Plain values.
        networks
            The networks by name, if their weights are needed; else each is known by its shape and hash.
        """
        check_schema(record, "a Ranking")
        known = networks or {}
        try:
            parts = record["analyses"]
            analyses = {name: Analysis.from_dict(parts[name], network=known.get(name)) for name in record["order"]}
            return made(cls, {**record, "analyses": analyses}, "a Ranking")
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            if isinstance(error, TessellaError):
                raise
            msg = f"a Ranking cannot be read from this JSON: {error!s:.120}; expected what its to_json() wrote"
            raise FileError(msg) from error

    @classmethod
    def from_json(cls, text: str, *, networks: Mapping[str, Network] | None = None) -> Self:
        """Read what `to_json` wrote; the parameters are those of `from_dict`."""
        return cls.from_dict(from_text(text, "a Ranking"), networks=networks)


def rank(analyses: Mapping[str, Analysis], *, level: float = 0.05) -> Ranking:
    """Order networks by their number of regions, and say for every pair how sure the order is.

    Parameters
    ----------
    analyses
        What `tessella.analyze` said of each, by name; all on the same domain.
    level
        The p-value below which two estimates count as different.

    Examples
    --------
    >>> import tessella
    >>> nets = {str(n): tessella.Network.from_arrays([([[1.0]] * n, [i / 9 for i in range(n)])], relu_output=True) for n in (2, 3)}
    >>> found = tessella.rank({name: tessella.analyze(net, tessella.Box(-1, 1, dim=1)) for name, net in nets.items()})
    >>> found.names, str(found.comparisons[0].verdict)
    (('3', '2'), 'proved')
    """
    if not isinstance(cast("object", analyses), Mapping):
        msg = f"the analyses are a {type(analyses).__name__}; a ranking takes a dictionary of names and analyses"
        raise OptionError(msg)
    check_probability(level, "level", "a ranking", such_as=0.05)
    domains = [each.domain for each in analyses.values()]
    if len(domains) < 2:
        msg = f"a ranking needs at least two analyses, got {len(domains)}"
        raise OptionError(msg)
    if any(domain != domains[0] for domain in domains):
        texts = " and ".join(sorted({domain.describe() for domain in domains})[:2])
        msg = f"the analyses are on different domains ({texts:.120}); numbers of regions compare on the same domain only"
        raise OptionError(msg)
    ordered = dict(sorted(analyses.items(), key=lambda item: -item[1].maps))
    pairs = [_compared(*pair) for pair in combinations(ordered.items(), 2)]
    wrong = sum(1.0 - each.confidence for each in ordered.values())  # of exact ones too: chance may have decided that they are
    return Ranking(ordered, tuple(_corrected(pairs, level)), max(1.0 - wrong, 0.0), level)


def _compared(one: tuple[str, Analysis], other: tuple[str, Analysis]) -> Comparison:
    """One pair by itself; where a test is needed, with a p-value that is not corrected yet."""
    (first, a), (second, b) = one, other
    if a.exact is not None and a.exact == b.exact:
        return Comparison(first, second, Verdict.EQUAL)
    for (more, x), (fewer, y) in ((one, other), (other, one)):
        if x.proved_lower > y.upper:
            return Comparison(more, fewer, Verdict.PROVED)
    for (more, x), (fewer, y) in ((one, other), (other, one)):
        if x.probable_lower > y.probable_upper:
            return Comparison(more, fewer, Verdict.PROBABLE)
    return Comparison(first, second, Verdict.UNDECIDED, _p_value(a, b))


def _p_value(a: Analysis, b: Analysis) -> float | None:
    """Welch's test on the logarithms of two estimates; None where an error is not known."""
    errors = [each.relative_error for each in (a, b)]
    biased = any(each.exact is None and each.estimate is not None and each.estimate.undecided for each in (a, b))
    if biased or None in errors or not any(errors):
        return None
    squares = [error * error for error in errors if error is not None]
    probes = [each.estimate.probes if each.exact is None and each.estimate else math.inf for each in (a, b)]
    spread = sum(square * square / (count - 1.0) for square, count in zip(squares, probes, strict=True) if square)
    freedom = sum(squares) ** 2 / spread
    from scipy.special import stdtr  # noqa: PLC0415  loads scipy

    return 2.0 * float(stdtr(freedom, -abs(a.maps - b.maps) * math.log(2.0) / math.sqrt(sum(squares))))


def _corrected(pairs: list[Comparison], level: float) -> list[Comparison]:
    """P-values for all pairs at once (Holm), and the verdicts that they give."""
    tested = sorted((pair.p_value, place) for place, pair in enumerate(pairs) if pair.p_value is not None)
    found, largest = list(pairs), 0.0
    for number, (value, place) in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - number) * value))
        pair = pairs[place]
        verdict = Verdict.ESTIMATED if largest < level else Verdict.UNDECIDED
        found[place] = Comparison(pair.more, pair.fewer, verdict, largest)
    return found
