"""Bounds on what units see before their ReLU: the H and H-bar of the MILP formulation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tessella.errors import FileError, OptionError
from tessella.methods import Method, Units
from tessella.network import Floats, Layer, Network
from tessella.result import SCHEMA, Result, check_schema, finite_or_none, from_text, told


@dataclass(frozen=True, slots=True, eq=False)
class PreactivationBounds(Result):
    """An interval for every unit's preactivation over a domain; the true range lies inside.

    Parameters
    ----------
    lower, upper
        One array per layer, one number per unit, linear units included.
    method
        How they were found.
    unproved
        How many units' intervals may be wider than the method could make them: time was up, Ctrl-C was pressed, or the
        layers before are too wide for the LP.
    seconds
        Wall time spent, without compiling.
    compile_seconds
        Wall time that went into compiling and loading compiled code meanwhile.
    interrupted
        Whether Ctrl-C ended it early.
    units
        Which units ``"lp"`` and ``"milp"`` tightened: ``"unstable"`` ReLUs only, or ``"all"`` units.
    """

    lower: tuple[Floats, ...]
    upper: tuple[Floats, ...]
    method: Method
    unproved: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    compile_seconds: float = 0.0
    units: Units = Units.UNSTABLE

    def __post_init__(self) -> None:
        """Check the intervals and make them read-only."""
        if [low.shape for low in self.lower] != [high.shape for high in self.upper]:
            msg = "lower and upper bounds have different shapes"
            raise OptionError(msg)
        for name in ("lower", "upper"):
            copies = tuple(np.array(part, dtype=np.float64) for part in getattr(self, name))
            for part in copies:
                part.flags.writeable = False
            object.__setattr__(self, name, copies)
        for layer, (low, high) in enumerate(zip(self.lower, self.upper, strict=True), start=1):
            if not (low <= high).all():
                unit = int(np.argmin(low <= high))
                msg = f"layer {layer}, unit {unit}: the bounds {low[unit]} and {high[unit]} leave nothing between them"
                raise OptionError(msg)

    @property
    def widths(self) -> tuple[Floats, ...]:
        """How wide each interval is."""
        return tuple(high - low for low, high in zip(self.lower, self.upper, strict=True))

    def outputs(self, network: Network, layer: int) -> tuple[Floats, Floats]:
        """Bounds on a layer's outputs, after the ReLU."""
        return passed_on(network.layers[layer], self.lower[layer], self.upper[layer])

    def matches(self, network: Network) -> bool:
        """Whether these are bounds for a network of this shape."""
        return [len(low) for low in self.lower] == [len(layer.rectified) for layer in network.outline]

    def __repr__(self) -> str:
        """One line a person can read."""
        units = sum(len(low) for low in self.lower)
        mean = float(np.mean(np.concatenate(self.widths)))
        return f"PreactivationBounds({units} units, mean width {mean:.4g}, {self.method}, {self.seconds:.2f} s)"

    def rows(self) -> list[dict[str, Any]]:
        """One row per unit, linear ones included: its layer, its number in it, and the ends of its range."""
        return [
            {"layer": number, "unit": unit, "lower": low, "upper": high}
            for number, (lows, highs) in enumerate(zip(self.lower, self.upper, strict=True), start=1)
            for unit, (low, high) in enumerate(zip(lows.tolist(), highs.tolist(), strict=True))
        ]

    def _title(self) -> str:
        return f"Ranges of {sum(map(len, self.lower)):,} units before their ReLU, {self.method}, {self.seconds:.2f} s"

    def _record(self) -> dict[str, Any]:
        pairs = zip(self.lower, self.upper, strict=True)
        return {
            "schema": SCHEMA,
            **told(self, "method", "units", "seconds", "compile_seconds", "unproved", "interrupted"),
            "bounds": [{"lower": finite_or_none(low), "upper": finite_or_none(high)} for low, high in pairs],
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        check_schema(record, "a PreactivationBounds")
        try:
            lower, upper = (
                tuple(np.array([side if end is None else end for end in layer[name]]) for layer in record["bounds"])
                for name, side in (("lower", -np.inf), ("upper", np.inf))
            )
            method, seconds, loading = Method(record["method"]), float(record["seconds"]), float(record["compile_seconds"])
            interrupted, units = bool(record.get("interrupted", False)), Units(record.get("units", Units.UNSTABLE))
            return cls(lower, upper, method, int(record["unproved"]), seconds, interrupted, loading, units)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, OptionError):
                raise
            msg = f"a PreactivationBounds cannot be read from this JSON: {error!s:.80}; expected what its to_json() wrote"
            raise FileError(msg) from error

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        return cls.from_dict(from_text(text, "a PreactivationBounds"))


def passed_on(layer: Layer, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Bounds on what a layer's units pass on, from bounds on their preactivations."""
    rectified = layer.rectified
    lower, upper = np.where(rectified, np.maximum(low, 0.0), low), np.where(rectified, np.maximum(high, 0.0), high)
    if layer.is_plain:
        return lower, upper
    # the inactive part of the range, times the slope, moved outward by what rounding may do
    ends = np.stack([low, np.where(rectified, np.minimum(high, 0.0), high)])
    with np.errstate(invalid="ignore", over="ignore"):  # infinite ends times 0 are not used
        products = layer.slope * ends
        least, most = (np.where(ends == 0.0, 0.0, np.nextafter(products, way)) for way in (-np.inf, np.inf))
    least, most = least.min(axis=0), most.max(axis=0)
    inactive, active = (low < 0.0) | ~rectified, rectified & (high > 0.0)
    plain = layer.slope == ~rectified
    lower = np.where(plain | ~inactive, lower, np.where(active, np.minimum(lower, least), least))
    return lower, np.where(plain | ~inactive, upper, np.where(active, np.maximum(upper, most), most))


def intersect(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """The common part of two sound intervals; where rounding leaves none, the first stands."""
    low, high = np.fmax(first[0], second[0]), np.fmin(first[1], second[1])  # an overflow to nan says nothing
    apart = low > high
    return np.where(apart, first[0], low), np.where(apart, first[1], high)


def stack(layers: Sequence[tuple[Floats, Floats]]) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
    """Pairs per layer as a pair of tuples."""
    return tuple(low for low, _ in layers), tuple(high for _, high in layers)
