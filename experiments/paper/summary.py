"""Numbers of the report: one row per network, means per configuration, correlations, and what must hold."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from experiments.paper.index import Key
from experiments.paper.results import Results
from experiments.paper.tasks import XOR

NARROW = 3
"""Layers of so many units or fewer are narrow: the paper leaves out networks that have one."""
LARGE = 12.0
"""MAPS from which on the paper calls a network large."""
BOUNDS = ("raghu", "montufar", "configuration", "empirical")

Subsets = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of one network; MAPS are log2 of counts, and None is what is not known.

    Parameters
    ----------
    key
        Which network.
    test_error, cross_entropy
        Part of the test images that it gets wrong; on the training images.
    upper
        The four upper bounds, as counts.
    exact
        The count.
    estimate
        Log2 of the estimate, with its standard error as a part of the estimate (0 if it was counted instead).
    relative_error
        That error.
    estimate_lower, estimate_upper
        The estimate's bounds, which hold together with the confidence; None where it counted instead, or where the upper one is only the proved one.
    interval
        The same as ends of an interval, whatever they rest on; both are the count where it counted instead.  None without an estimate.
    confidence
        Of the XOR-k bounds and of the estimate's, as fractions.
    bracket
        Proved bounds on the count.
    xor
        By k: log2 of the XOR-k lower bound as the paper writes it, j of "more than 2^j", and 0 where nothing is sure.
    xor_lower
        By k: the bound as a count.
    inspected
        How many subsets of k units were inspected, per layer: for the most active units, and for the most unstable ones.
    seconds
        CPU seconds by task; for XOR-k those of the coefficients H included, as in the paper.
    count_status
        How the count ended; empty if it was not tried.
    """

    key: Key
    test_error: float
    cross_entropy: float
    upper: dict[str, int]
    exact: int | None
    estimate: float | None
    relative_error: float | None
    estimate_lower: int | None
    estimate_upper: int | None
    interval: tuple[int, int] | None
    confidence: frozenset[float]
    bracket: tuple[int, int] | None
    xor: dict[int, float]
    xor_lower: dict[int, int]
    inspected: tuple[Subsets, Subsets]
    seconds: dict[str, float]
    count_status: str

    @property
    def maps(self) -> float | None:
        """Log2 of the count, or of the estimate where there is none."""
        return math.log2(self.exact) if self.exact is not None else self.estimate

    @property
    def narrow(self) -> bool:
        """Whether a hidden layer is."""
        return min(self.key.n1, self.key.n2) <= NARROW

    @property
    def approximation(self) -> dict[int, float]:
        """By k: APP-k, the mean of j and of the Empirical UB's MAPS, as the paper has it."""
        return {size: (j + self.upper_maps("empirical")) / 2.0 for size, j in self.xor.items()}

    def upper_maps(self, name: str) -> float:
        """Log2 of an upper bound."""
        return math.log2(self.upper[name])


@dataclass(frozen=True, slots=True)
class Configuration:
    """Means over the networks of one configuration, in MAPS."""

    n1: int
    n2: int
    networks: int
    counted: int
    maps: float | None
    configuration: float
    empirical: float
    xor: dict[int, float] = field(default_factory=dict[int, float])
    interval: tuple[float, float] | None = None

    @property
    def gap_closed(self) -> float | None:
        """How much of the gap between Configuration UB and count the Empirical UB closes, in per cent: Table 1."""
        return self._closed(self.empirical)

    @property
    def gap_closed_probably(self) -> float | None:
        """How much of the same gap the estimates' upper bounds close."""
        return None if self.interval is None else self._closed(self.interval[1])

    def _closed(self, upper: float) -> float | None:
        if self.maps is None:
            return None
        gap = self.configuration - self.maps
        return 100.0 * (self.configuration - upper) / gap if gap > 0.0 else 100.0


class Fit(NamedTuple):
    """A straight line through points, and their correlation (Pearson)."""

    points: int
    slope: float
    intercept: float
    correlation: float


class Check(NamedTuple):
    """An inequality, for how many networks it was checked, and those for which it failed."""

    name: str
    sure: str
    checked: int
    failed: list[Key]


def rows(results: Results) -> list[Row]:
    """All networks of which at least the training and the upper bounds are known."""
    return [row for key in results.keys() if (row := _row(results, key)) is not None]  # noqa: SIM118  no mapping


def _row(results: Results, key: Key) -> Row | None:
    value = {task: results.value(key, task) for task in ("network", "stability", "upper", *XOR, "estimate", "count")}
    network, upper, estimate = value["network"], value["upper"], value["estimate"] or {}
    if network is None or upper is None:
        return None
    xor = {size: found for task, size in XOR.items() if (found := value[task]) is not None}
    tried = results.records.get((key, "count"))
    counted: dict[str, Any] = tried["value"] if tried else {}
    sampled = estimate.get("exact") is None
    return Row(
        key,
        network["test_error"],
        network["training_cross_entropy"],
        {name: upper[name] for name in BOUNDS},
        counted.get("exact"),
        estimate.get("maps"),
        estimate.get("relative_error"),
        estimate.get("lower") if sampled else None,
        estimate.get("upper") if sampled and estimate.get("upper_confidence") != 1.0 else None,
        (estimate["lower"], estimate["upper"]) if estimate else None,
        _confidence(results, key),
        (counted["lower"], counted["upper"]) if counted else None,
        {size: float(found["exponent"] or 0) for size, found in xor.items()},
        {size: found["lower"] for size, found in xor.items()},
        (_subsets(upper["inspected_active"]), _subsets(upper["inspected_unstable"])),
        _seconds(results, key),
        tried["status"] if tried else "",
    )


def _subsets(lists: Iterable[Iterable[int]]) -> Subsets:
    return tuple(map(tuple, lists))


def _confidence(results: Results, key: Key) -> frozenset[float]:
    known = [results.records[key, task]["settings"] for task in (*XOR, "estimate") if results.value(key, task) is not None]
    return frozenset(float(settings["confidence"]) for settings in known)


def sureness(networks: Iterable[Row]) -> str:
    """With which confidence the probable bounds hold, in words.

    Examples
    --------
    >>> sureness([])
    '95 %'
    """
    found = {confidence for row in networks for confidence in row.confidence} or {0.95}
    low, high = f"{100 * min(found):g}", f"{100 * max(found):g}"
    return f"{low} %" if low == high else f"{low} to {high} %"


def _seconds(results: Results, key: Key) -> dict[str, float]:
    spent = {task: record["cpu_seconds"] for (about, task), record in results.records.items() if about == key}
    coefficients = spent.get("stability", 0.0)
    return {task: seconds + (coefficients if task in XOR else 0.0) for task, seconds in spent.items()}


def configurations(networks: Sequence[Row]) -> list[Configuration]:
    """Means, from one unit in the first layer on: over the networks that are counted, so that all means of a configuration are of the same ones.  Where none is, over all."""
    found = list[Configuration]()
    for n1 in sorted({row.key.n1 for row in networks}):
        here = [row for row in networks if row.key.n1 == n1]
        counted = [row for row in here if row.exact is not None]
        found.append(replace(_configuration(n1, counted or here), networks=len(here)))
    return found


def _configuration(n1: int, here: Sequence[Row]) -> Configuration:
    known = [row.maps for row in here if row.maps is not None]
    sizes = [size for size in XOR.values() if all(size in row.xor for row in here)]
    ends = [row.interval for row in here if row.interval is not None]
    return Configuration(
        n1,
        here[0].key.n2,
        len(here),
        sum(row.exact is not None for row in here),
        fmean(known) if len(known) == len(here) else None,
        fmean(row.upper_maps("configuration") for row in here),
        fmean(row.upper_maps("empirical") for row in here),
        {size: fmean(row.xor[size] for row in here) for size in sizes},
        (fmean(math.log2(low) for low, _ in ends), fmean(math.log2(high) for _, high in ends))
        if len(ends) == len(here)
        else None,
    )


def fit(points: Iterable[tuple[float, float]]) -> Fit | None:
    """Least squares; None for fewer than three points, or all at one place."""
    array = np.array(list(points), dtype=float)
    if len(array) < 3 or float(np.ptp(array[:, 0])) == 0.0 or float(np.ptp(array[:, 1])) == 0.0:
        return None
    slope, intercept = np.polyfit(array[:, 0], array[:, 1], 1)
    return Fit(len(array), float(slope), float(intercept), float(np.corrcoef(array.T)[0, 1]))


def points(networks: Iterable[Row], size: int | None, outcome: str) -> list[tuple[float, float]]:
    """(MAPS, outcome) of networks: of the count if size is None, else APP-k.

    Parameters
    ----------
    networks
        Which.
    size
        k, or None.
    outcome
        ``"test_error"`` (in per cent) or ``"cross_entropy"``.
    """
    factor = 100.0 if outcome == "test_error" else 1.0
    found = [(row.maps if size is None else row.approximation.get(size), factor * getattr(row, outcome)) for row in networks]
    return [(x, y) for x, y in found if x is not None]


def checks(networks: Sequence[Row]) -> list[Check]:
    """Every inequality that must hold, or must hold nearly always."""
    proved: list[tuple[str, Callable[[Row], bool | None]]] = [
        ("exact <= empirical", lambda row: None if row.exact is None else row.exact <= row.upper["empirical"]),
        ("proved lower <= empirical", lambda row: row.bracket and row.bracket[0] <= row.upper["empirical"]),
        ("empirical <= configuration", lambda row: row.upper["empirical"] <= row.upper["configuration"]),
        ("configuration <= montufar <= raghu", lambda row: _ordered(row, "configuration", "montufar", "raghu")),
    ]
    probable: list[tuple[str, Callable[[Row], bool | None]]] = [
        (f"XOR-{size} <= exact", lambda row, size=size: _at_most(row.xor_lower.get(size), row.exact)) for size in XOR.values()
    ]
    both: list[tuple[str, Callable[[Row], bool | None]]] = [
        ("estimate's lower bound <= exact", lambda row: _at_most(row.estimate_lower, row.exact)),
        ("exact <= estimate's upper bound", lambda row: _at_most(row.exact, row.estimate_upper)),
    ]
    sure = sureness(networks)
    kinds = (("proved", proved), (f"{sure} each", probable), (f"{sure} together", both))
    return [_check(networks, name, words, test) for words, tests in kinds for name, test in tests]


def _ordered(row: Row, *names: str) -> bool:
    values = [row.upper[name] for name in names]
    return values == sorted(values)


def _at_most(lower: int | None, upper: int | None) -> bool | None:
    return None if lower is None or upper is None else lower <= upper


def _check(networks: Sequence[Row], name: str, sure: str, test: Callable[[Row], bool | None]) -> Check:
    outcomes = [(row.key, test(row)) for row in networks]
    known = [(key, outcome) for key, outcome in outcomes if outcome is not None]
    return Check(name, sure, len(known), [key for key, outcome in known if not outcome])
