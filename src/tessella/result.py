"""What an answer is: a number, what it claims, how sure it is, and where it came from."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Self, cast

from tessella._version import __version__
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


class Status(StrEnum):
    """Where a run stands, or why it ended."""

    RUNNING = "running"
    FINISHED = "finished"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"
    INFEASIBLE = "infeasible"  # there is nothing to look for


class ToJson(ABC):
    """What can be written down as JSON."""

    __slots__ = ()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""

    def to_json(self) -> str:
        """One line of JSON; integers of any size survive."""
        return json.dumps(self.to_dict())


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


def provenance(fingerprint: str, shape: str, domain: dict[str, Any] | None) -> dict[str, Any]:
    """The past of a result: which version said what of which network, and where."""
    return {"tessella": __version__, "network": {"shape": shape, "fingerprint": fingerprint}, "domain": domain}


@dataclass(frozen=True, slots=True)
class Bound(ToJson):
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
    >>> Bound(243, Side.UPPER, method="configuration")
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

    def __repr__(self) -> str:
        """One line a person can read."""
        words = {Side.LOWER: "at least", Side.UPPER: "at most", Side.EXACT: "exactly", Side.ESTIMATE: "about"}
        number = format_count(self.value, self.side)
        power = f" = 2^{format_maps(self.value, self.side)}" if self.value and "^" not in number else ""
        sure = (
            "estimated"
            if self.side is Side.ESTIMATE
            else "proved"
            if self.confidence == 1.0
            else f"with {format_confidence(self.confidence)} confidence"
        )
        method = f", {self.method}" if self.method else ""
        return f"Bound({words[self.side]} {number}{power} {self.counted}{method}, {sure})"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        record: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        record["value"] = encode_int(self.value)
        record["maps"] = self.maps if self.value else None
        return {"schema": SCHEMA, **record}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        if record.get("schema") != SCHEMA:
            msg = f"a bound of schema {record.get('schema')!r} was found; this version reads schema {SCHEMA}"
            raise FileError(msg)
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
        try:
            record = json.loads(text)
        except ValueError as error:
            msg = f"a bound was expected as JSON, but the text cannot be read: {error}"
            raise FileError(msg) from error
        if not isinstance(record, dict):
            msg = f"a bound was expected as a JSON object, found {type(record).__name__}"
            raise FileError(msg)
        return cls.from_dict(cast("dict[str, Any]", record))
