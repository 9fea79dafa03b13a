"""What an answer is: a number, what it claims, how sure it is, and where it came from."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Self, cast

from tessella import tables
from tessella.errors import FileError, OptionError

SCHEMA = 1
_LONGEST_DECIMAL = 4000  # digits; Python itself refuses to read or write decimal integers of more than 4300


class Side(StrEnum):
    """How a value relates to the true count."""

    LOWER = "lower"
    UPPER = "upper"
    EXACT = "exact"
    ESTIMATE = "estimate"


class Counted(StrEnum):
    """What is counted."""

    REGIONS = "full-dimensional regions"
    COMPARISONS = "full-dimensional regions, told apart by every comparison of their maxima"
    PATTERNS = "non-empty activation patterns"
    PIECES = "distinct affine pieces"
    SOLUTIONS = "solutions on the binary variables"


def told_apart(counted: Counted) -> str:
    """What readers must know of the regions that are counted; nothing where they are the usual ones.

    Examples
    --------
    >>> told_apart(Counted.REGIONS), told_apart(Counted.COMPARISONS)[:48]
    ('', 'What is counted: full-dimensional regions, told ')
    """
    return f"What is counted: {counted}, also where the same value wins." if counted is Counted.COMPARISONS else ""


class Status(StrEnum):
    """Where a run stands, or why it ended."""

    RUNNING = "running"
    FINISHED = "finished"
    TIME_LIMIT = "time limit"
    LIMIT = "limit reached"  # of how many regions were asked for
    INTERRUPTED = "interrupted"
    LOST = "worker lost"  # and the executor could not go on
    INFEASIBLE = "infeasible"  # there is nothing to look for


CLAIMS = {Side.LOWER: "at least", Side.UPPER: "at most", Side.EXACT: "exactly", Side.ESTIMATE: "about"}
# what an interval around an estimate rests on, by its kind, in words for people
_INTERVALS = {"guaranteed": "between the probable bounds", "measured": "from the spread of runs"}
_SIDES = {words: side for side, words in CLAIMS.items()}


class Shown(ABC):
    """What has rows: a table in a notebook, and a data frame."""

    __slots__ = ()

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """A table of what is known: one dictionary per row, with the names of its columns."""

    @abstractmethod
    def _title(self) -> str:
        """What a notebook shows above the table."""

    def _note(self) -> str:
        """What a notebook shows below the table."""
        return ""

    def _told_apart(self) -> str:
        """What must be known of what is counted, below that."""
        return ""

    def to_frame(self) -> Any:
        """The rows as a pandas data frame; pandas must be installed."""
        return tables.data_frame(self.rows())

    def _repr_html_(self) -> str:
        """What notebooks show."""
        rows, more = tables.first_rows(self.rows())
        note = " ".join(text for text in (more, self._note(), self._told_apart()) if text)
        return tables.notebook_html(self._title(), rows, [shown(row) for row in rows], note)


class Result(Shown):
    """What an answer can do: become JSON, too."""

    __slots__ = ()

    @abstractmethod
    def _record(self) -> dict[str, Any]:
        """All that is written down, by name; `to_dict` makes plain values of it."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return plain(self._record())

    def to_json(self) -> str:
        """One line of JSON; integers of any size survive."""
        return json.dumps(self.to_dict())


def told(answer: object, *names: str) -> dict[str, Any]:
    """Some of what an answer says, by the names that it has for them; arrays become lists.

    Examples
    --------
    >>> told(Bound(7, Side.EXACT), "value", "side", "maps")
    {'value': 7, 'side': <Side.EXACT: 'exact'>, 'maps': 2.807354922057604}
    """
    values = {name: getattr(answer, name) for name in names}
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in values.items()}


def plain(value: Any) -> Any:
    """A value as JSON has it: text for words, lists for tuples, hexadecimal text for long integers, None for infinity.

    Examples
    --------
    >>> plain({"side": Side.LOWER, "ends": (1, math.inf)})
    {'side': 'lower', 'ends': [1, None]}
    """
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return encode_int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in cast("Mapping[object, object]", value).items()}
    return [plain(part) for part in value]


def shown(row: Mapping[str, Any]) -> dict[str, str]:
    """The cells of a row as people read them; of a claim, the number is rounded to its side.

    Examples
    --------
    >>> shown({"claim": "at most", "count": 2**80 + 1, "maps": 80.0, "sure": None})
    {'claim': 'at most', 'count': '2^80.00', 'maps': '80.00', 'sure': '-'}
    """
    side = _SIDES.get(row.get("claim", ""), Side.EXACT)
    cells = dict[str, str]()
    for name, value in row.items():
        if name == "maps" and isinstance(row.get("count"), int):
            cells[name] = format_maps(row["count"], side) if row["count"] else "-"
        elif value is None:
            cells[name] = "-"
        elif isinstance(value, bool):
            cells[name] = "yes" if value else "no"
        elif isinstance(value, int):
            cells[name] = format_count(value, side)
        else:
            cells[name] = f"{value:.4g}" if isinstance(value, float) else str(value)
    return cells


def maps(count: int) -> float:
    """Log2 of a count (the paper's MAPS), for integers of any size.

    Examples
    --------
    >>> maps(2**5000)
    5000.0
    >>> maps(0)
    -inf
    """
    if count < 0:
        msg = f"a count cannot be negative, got {count}"
        raise OptionError(msg)
    return math.log2(count) if count else -math.inf


def format_maps(count: int, side: Side = Side.EXACT) -> str:
    """Write log2 of a count with two decimals: upper bounds rounded up, lower bounds down.

    Examples
    --------
    >>> format_maps(243, Side.UPPER), format_maps(243, Side.LOWER)
    ('7.93', '7.92')
    """
    hundredths = 100.0 * maps(count)
    if math.isfinite(hundredths):
        rounding = {Side.UPPER: lambda x: math.ceil(x - 1e-9), Side.LOWER: lambda x: math.floor(x + 1e-9)}.get(side, round)
        hundredths = float(rounding(hundredths))
    return f"{hundredths / 100.0:.2f}"


def format_count(count: int, side: Side = Side.EXACT) -> str:
    """Write a count for people: in full up to 15 digits, as a power of two beyond.

    Examples
    --------
    >>> format_count(9214)
    '9,214'
    >>> format_count(2**80 + 1)
    '2^80.00'
    """
    return f"{count:,}" if abs(count) < 10**15 else f"2^{format_maps(count, side)}"


def format_number(count: int, what: str = "", side: Side = Side.EXACT) -> str:
    """Write how many there are for people, with log2 of it if that is not how the count is written already.

    Examples
    --------
    >>> format_number(9214, "regions"), format_number(1, "regions"), format_number(2**80 + 1, "regions")
    ('9,214 regions = 2^13.17', '1 region = 2^0.00', '2^80.00 regions')
    """
    number = format_count(count, side)
    power = f" = 2^{format_maps(count, side)}" if count and "^" not in number else ""
    return f"{number}{' ' if what else ''}{what.removesuffix('s') if count == 1 else what}{power}"


def format_estimate(mean: int, interval: tuple[float, float], what: str = "") -> str:
    """Write an estimate for people: as a number if log2 of it is known to a bit, else as two powers of two.

    Examples
    --------
    >>> format_estimate(9214, (13.1, 13.2)), format_estimate(9214, (13.1, 13.2), "regions"), format_estimate(9214, (12.0, 14.5))
    ('9,214', '9,214 regions = 2^13.17', '2^12.0 to 2^14.5')
    """
    low, high = interval
    if high - low <= 1.0:
        return format_number(mean, what) if what else format_count(mean)
    return f"2^{low:.1f} to 2^{high:.1f} {what}".rstrip()


def format_duration(seconds: float) -> str:
    """Write a time for people, in the unit that suits it.

    Examples
    --------
    >>> format_duration(0.034), format_duration(3.21), format_duration(95.0), format_duration(300.0), format_duration(1e30)
    ('0.03 s', '3.2 s', '95 s', '5 min', 'ages')
    """
    for size, name in ((365.25 * 86400.0, "years"), (86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:,.0f} {name}" if seconds < 1e15 else "ages"
    return f"{seconds:.2f} s" if seconds < 1.0 else f"{seconds:.1f} s" if seconds < 10.0 else f"{seconds:.0f} s"


def format_confidence(confidence: float) -> str:
    """Write a confidence for people, rounded down.

    Examples
    --------
    >>> format_confidence(0.95), format_confidence(1 - 0.05 / 3), format_confidence(1 - 1e-15)
    ('95 %', '98.33 %', '99.99 %')
    """
    most = 10_000 if confidence >= 1.0 else 9_999
    return f"{min(math.floor(1e4 * confidence + 1e-6), most) / 100.0:g} %"


def format_share(share: float) -> str:
    """Write a part of something for people, in percent with two digits.

    Examples
    --------
    >>> format_share(0.0253), format_share(0.0007), format_share(0.998), format_share(1.5)
    ('2.5 %', '0.07 %', '100 %', '150 %')
    """
    return f"{100.0 * share:.2g} %" if share < 0.095 else f"{100.0 * share:,.0f} %"


def encode_int(value: int) -> int | str:
    """Make an integer safe for JSON: itself, or hexadecimal text where it is too long for decimals."""
    return value if value.bit_length() * math.log10(2) < _LONGEST_DECIMAL else hex(value)


def finite_or_none(values: Iterable[float]) -> list[float | None]:
    """Make numbers safe for JSON, which has no infinity: None stands for it."""
    return [float(value) if math.isfinite(value) else None for value in values]


def decode_int(value: object) -> int:
    """Read what `encode_int` wrote."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        try:
            return int(value, 16)
        except ValueError:
            pass
    msg = f"expected an integer or hexadecimal text, found {value!r:.60}"
    raise FileError(msg)


def from_text(text: str, what: str) -> Mapping[str, Any]:
    """Read JSON that must be an object; ``what`` should be in it, such as ``"a bound"``."""
    try:
        record = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        msg = f"{what} was expected as JSON, but the text cannot be read: {error}"
        raise FileError(msg) from error
    if not isinstance(record, dict):
        msg = f"{what} was expected as a JSON object, found {type(record).__name__}"
        raise FileError(msg)
    return cast("dict[str, Any]", record)


def check_schema(record: Mapping[str, Any], what: str) -> None:
    """Raise unless this version can read it; the parameters are those of `from_text`."""
    if record.get("schema") != SCHEMA:
        msg = f"{what} of schema {record.get('schema')!r:.20} was found; this version reads schema {SCHEMA}"
        raise FileError(msg)


@dataclass(frozen=True, slots=True)
class Bound(Result):
    """One claim about a count.

    Parameters
    ----------
    value
        The number itself, exact.
    side
        Whether the true count lies above it, below it, at it, or near it.
    counted
        What is counted.
    method
        The name of the method, such as ``"configuration"``.
    confidence
        The probability with which the claim holds; 1 for a proof.  For an estimate it is 0: nothing is claimed.
    seconds
        Wall time spent.

    Examples
    --------
    >>> import tessella
    >>> tessella.Bound(243, tessella.Side.UPPER, method="configuration")
    Bound(at most 243 = 2^7.93 full-dimensional regions, configuration, proved)
    """

    value: int
    side: Side
    counted: Counted = Counted.REGIONS
    method: str = ""
    confidence: float = 1.0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        """Validate and normalise, so that a value read from a file is as good as one made here."""
        if isinstance(self.value, bool) or not hasattr(self.value, "__index__"):
            msg = f"a bound's value must be an integer, got {self.value!r:.60}"
            raise OptionError(msg)
        object.__setattr__(self, "value", int(self.value))  # never a numpy integer: counts pass 2**64
        if self.value < 0:
            msg = f"a count cannot be negative, got {self.value}"
            raise OptionError(msg)
        for name, kind in (("side", Side), ("counted", Counted)):
            try:
                object.__setattr__(self, name, kind(getattr(self, name)))
            except ValueError as error:
                msg = f"{name} must be one of {[str(k) for k in kind]}, got {getattr(self, name)!r}"
                raise OptionError(msg) from error
        if not 0.0 <= self.confidence <= 1.0:
            msg = f"confidence must lie in [0, 1], got {self.confidence!r}"
            raise OptionError(msg)

    @property
    def maps(self) -> float:
        """Log2 of the value."""
        return maps(self.value)

    @property
    def sure(self) -> str:
        """How sure it is, in words."""
        if self.side is Side.ESTIMATE:
            return "estimated"
        return "proved" if self.confidence == 1.0 else f"with {format_confidence(self.confidence)} confidence"

    def __repr__(self) -> str:
        """One line a person can read."""
        method = f", {self.method}" if self.method else ""
        return f"Bound({CLAIMS[self.side]} {format_number(self.value, side=self.side)} {self.counted}{method}, {self.sure})"

    def rows(self) -> list[dict[str, Any]]:
        """One row: the claim."""
        return claims([self])

    def _title(self) -> str:
        return f"{str(self.counted).capitalize()}"

    def _record(self) -> dict[str, Any]:
        record: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"schema": SCHEMA, **record, "maps": self.maps if self.value else None}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        check_schema(record, "a bound")
        known = {field.name: record[field.name] for field in fields(cls) if field.name in record}
        missing = {"value", "side"} - known.keys()
        if missing:
            msg = f"a bound needs {sorted(missing)}, found only {sorted(record)}"
            raise FileError(msg)
        known["value"] = decode_int(known["value"])
        return cls(**known)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        return cls.from_dict(from_text(text, "a bound"))


def claims(bounds: Iterable[Bound]) -> list[dict[str, Any]]:
    """Claims as rows of a table."""
    return [
        {"claim": CLAIMS[one.side], "count": one.value, "maps": one.maps, "sure": one.sure, "method": str(one.method)}
        for one in bounds
    ]


def claims_about(
    bounds: Iterable[Bound], interval: tuple[float, float] | None, error: float | None, kind: str | None
) -> list[dict[str, Any]]:
    """The same where one of them is an estimate, with how sure it is: see `estimate_row`."""
    return [estimate_row(row, interval, error, kind) for row in claims(bounds)]


def interval_kind(interval: tuple[float, float] | None, lower: int, upper: int | None) -> str | None:
    """Say what an interval of log2 of a number rests on: ``"guaranteed"`` if it lies between a lower and an upper bound and no closer, else ``"measured"``.

    Examples
    --------
    >>> interval_kind((3.0, 5.0), 8, 32), interval_kind((3.5, 5.0), 8, 32), interval_kind(None, 8, 32)
    ('guaranteed', 'measured', None)
    """
    if interval is None:
        return None
    return "guaranteed" if upper is not None and interval == (maps(lower), maps(upper)) else "measured"


def estimate_row(
    row: dict[str, Any], interval: tuple[float, float] | None, error: float | None, kind: str | None = None
) -> dict[str, Any]:
    """Say of a claim that is an estimate how sure it is: with its standard error, or as an interval; other claims stay as they are.

    Examples
    --------
    >>> about = {"claim": "about", "count": 9214, "maps": 13.17, "sure": "estimated"}
    >>> for interval in (13.15, 13.19), (12.0, 14.5), None:
    ...     print(*shown(estimate_row(about, interval, 0.02)).values())
    about 9,214 13.17 estimated, standard error 2 %
    about 2^12.0 to 2^14.5 12.0 to 14.5 estimated
    about - - too uncertain to estimate
    >>> print(*shown(estimate_row(about, (12.0, 14.5), 0.02, "measured")).values())
    about 2^12.0 to 2^14.5 12.0 to 14.5 estimated, from the spread of runs
    """
    if row["claim"] != CLAIMS[Side.ESTIMATE]:
        return row
    if interval is None:
        return {**row, "count": None, "maps": None, "sure": "too uncertain to estimate"}
    low, high = interval
    if high - low > 1.0:
        sure = {"sure": f"estimated, {_INTERVALS[kind]}"} if kind else {}
        return {**row, "count": format_estimate(row["count"], interval), "maps": f"{low:.1f} to {high:.1f}", **sure}
    known = error is not None and math.isfinite(error)
    return {**row, "sure": f"estimated, standard error {format_share(error or 0.0)}" if known else "estimated"}
