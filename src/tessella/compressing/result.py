"""A smaller network, and what is known of it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tessella.answer import Answer, NamedNetwork, named, past, read_domain, read_network
from tessella.compressing.points import spread_points
from tessella.domain import Domain
from tessella.errors import OptionError
from tessella.methods import Method
from tessella.network import Floats, Network
from tessella.options import check_whole
from tessella.result import told
from tessella.stability import Stability

if TYPE_CHECKING:
    from onnx import ModelProto

    from tessella.compressing.rewriting import Rewritten

_ENTRIES = 20_000_000  # numbers of one batch of points
_POINTS = 10_000  # at which a smaller network is compared with its original
_MOST_WORK = 20_000_000_000  # multiplications for that, after which there are fewer points
_ALLOWED = 1e-6  # difference, relative to outputs, beyond which exact arithmetic is asked


@dataclass(frozen=True, slots=True)
class Removed:
    """What became of a layer.

    Parameters
    ----------
    layer
        Its number, from 1.
    relus
        ReLUs that it has.
    kept
        Those that are still ReLUs.
    inactive
        Those that are never active: nothing is left of them, or a linear unit if they are leaky.
    active
        Those that are never inactive, and are linear now.
    merged
        Those that are multiples of another unit of the layer.
    constant
        Those that read nothing that varies.
    unread
        Those that no output reads.
    linear
        Linear units that it has.
    carried
        Linear units in its place: they carry on what later layers read of all that is linear now.
    gone
        Whether no layer is in its place.
    """

    layer: int
    relus: int
    kept: int
    inactive: int = 0
    active: int = 0
    merged: int = 0
    constant: int = 0
    unread: int = 0
    linear: int = 0
    carried: int = 0
    gone: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Compression(Answer):
    """A smaller network that computes the same on a domain.

    Outside of the domain the two may differ.

    Parameters
    ----------
    network
        The smaller one.
    original, domain
        What it was made of, and where both agree.
    removed
        What became of each layer.
    constant_outputs
        Which outputs have one value on the domain, as far as weights and stable units say.
    error
        A proved bound on how far outputs of the two may be from each other anywhere on the domain, if both are evaluated in real arithmetic: what rounding did to weights that were put
        together.  0 if none were.
    difference, points
        The largest difference that was found when both were evaluated in double precision, and at how many random points of the domain.
    method
        How stable units were found.
    seconds
        Wall time spent, without compiling.
    interrupted
        Whether Ctrl-C ended the search for stable units early.
    stability
        The units that are stable, and how wide their ranges are; None if this was read from JSON.
    """

    network: Network
    original: Network
    domain: Domain
    removed: tuple[Removed, ...]
    constant_outputs: tuple[int, ...]
    error: float
    difference: float
    points: int
    method: Method
    seconds: float
    interrupted: bool = False
    stability: Stability | None = None

    @property
    def share(self) -> float:
        """Which part of the ReLUs is no ReLU any more."""
        return 1.0 - self.network.relus / self.original.relus if self.original.relus else 0.0

    @property
    def is_smaller(self) -> bool:
        """Whether anything could be removed."""
        return any(self.totals()[name] for name in ("inactive", "active", "merged", "constant", "unread")) or any(
            one.gone or one.carried < one.linear for one in self.removed
        )

    @property
    def guarantee(self) -> str:
        """What is proved, in words."""
        place = f"on {self.domain.describe()}"
        if self.error == 0.0:
            return f"Both networks have the same outputs {place}, proved: no weight was rounded."
        if np.isfinite(self.error):
            return f"Outputs of both networks differ by at most {self.error:.2g} {place}, proved: what rounding did to weights that were put together."
        return f"Both networks have the same outputs {place}, but for rounding of weights that were put together."

    def check(self, points: int = 10_000, *, rng: int | np.random.Generator = 0) -> float:
        """The largest difference of outputs at random points of the domain, both evaluated in double precision.

        Parameters
        ----------
        points
            How many.
        rng
            A seed or a generator.
        """
        check_whole(points, "points", "a check", of="points")
        return largest_difference(self.original, self.network, self.domain, points, rng)[0]

    def to_onnx(
        self, path: str | os.PathLike[str], *, like: "str | os.PathLike[str] | ModelProto | None" = None
    ) -> "Rewritten | None":
        """Write the smaller network as an ONNX model.

        Parameters
        ----------
        path
            The file, under exactly this name; an existing one is replaced.
        like
            The ONNX model that the original was read from, or its path: what is written has the same operators, so convolutions stay convolutions, with fewer channels.  Channels and units that are
            never active, or that nobody reads, are left out; what else was merged or folded stays as it was.  Without it, all of `network` is written as dense layers.

        Returns
        -------
        What became of each operator if there is a model to be like, else None.
        """
        if like is None:
            self.network.to_onnx(path)
            return None
        from tessella.compressing.rewriting import write_rewritten  # noqa: PLC0415  only for those who write

        if self.stability is None:
            msg = (
                "this compression was read from JSON and does not know single units; compress the network again to write a model"
            )
            raise OptionError(msg)
        return write_rewritten(like, self.stability, path)

    def totals(self) -> dict[str, int]:
        """How many ReLUs there are of each kind."""
        names = ("relus", "kept", "inactive", "active", "merged", "constant", "unread")
        return {name: sum(getattr(one, name) for one in self.removed) for name in names}

    def rows(self) -> list[dict[str, Any]]:
        """One row per layer of the original."""
        return [{name: getattr(one, name) for name in _COLUMNS} for one in self.removed]

    def __repr__(self) -> str:
        """One line a person can read."""
        return f"Compression({self.original.relus:,} -> {self.network.relus:,} ReLUs, {self.network.shape}, error at most {self.error:.2g}, {self.seconds:.2f} s)"

    def _title(self) -> str:
        return (
            f"{self.original.shape} on {self.domain.describe()}: {self.network.relus:,} of {self.original.relus:,} ReLUs are left"
        )

    def _note(self) -> str:
        return self.guarantee

    def _record(self) -> dict[str, Any]:
        return {
            **past(self.original, self.domain),
            "smaller": named(self.network),
            "removed": [{name: getattr(one, name) for name in (*_COLUMNS, "gone")} for one in self.removed],
            **told(self, "constant_outputs", "error", "difference", "points", "guarantee", "method", "seconds"),
            **told(self, "interrupted"),
        }

    @classmethod
    def _placed(cls, record: Mapping[str, Any], network: Network | None) -> dict[str, Any]:
        return {
            **record,
            "original": read_network(record, network),
            "domain": read_domain(record.get("domain")),
            "network": NamedNetwork(record["smaller"], read_network(record, None).counted),
        }


_COLUMNS = ("layer", "relus", "kept", "inactive", "active", "merged", "constant", "unread", "linear", "carried")


def compared(original: Network, smaller: Network, domain: Domain, error: float) -> tuple[float, int, bool]:
    """The largest difference of outputs at some random points, how many these are, and whether it is no more than a proved error and rounding allow.

    Parameters
    ----------
    original, smaller, domain
        What is compared, and where.
    error
        How far outputs may be apart in real arithmetic.
    """
    points = min(_POINTS, max(_MOST_WORK // max(original.parameters + smaller.parameters, 1), 8))
    difference, reach, where = largest_difference(original, smaller, domain, points, 0)
    wrong = difference > error + _ALLOWED * (1.0 + reach) and exact_difference(original, smaller, where) > Fraction(error)
    return difference, points, not wrong


def largest_difference(
    one: Network, other: Network, domain: Domain, points: int, rng: int | np.random.Generator
) -> tuple[float, float, Floats]:
    """The largest difference of two networks' outputs at random points, the largest size of an output, and where the difference is largest."""
    widest = max(layer.units for network in (one, other) for layer in network.layers)
    size, largest, reach, generator = max(_ENTRIES // max(widest, one.input_dim), 1), 0.0, 0.0, np.random.default_rng(rng)
    where = np.zeros(one.input_dim)
    for begin in range(0, points, size):
        batch: Floats = spread_points(domain, min(size, points - begin), generator)
        outputs = one(batch)
        apart = np.abs(outputs - other(batch)).max(axis=1)
        if apart.max() >= largest:
            largest, where = float(apart.max()), batch[int(apart.argmax())]
        reach = max(reach, float(np.abs(outputs).max()))
    return largest, reach, where


def exact_difference(one: Network, other: Network, point: Floats) -> Fraction:
    """The largest difference of outputs at a point, in exact arithmetic."""
    found = [_exact_outputs(network, point) for network in (one, other)]
    return max(abs(a - b) for a, b in zip(*found, strict=True))


def _exact_outputs(network: Network, point: Floats) -> list[Fraction]:
    values = [Fraction(value) for value in point.tolist()]
    for layer in network.layers:
        matrix, bias = layer.dense(), layer.bias.tolist()
        sums = [
            sum((Fraction(w) * value for w, value in zip(row, values, strict=True) if w), Fraction(start))
            for row, start in zip(matrix.tolist(), bias, strict=True)
        ]
        values = [
            total if on and total > 0 else Fraction(slope) * total
            for total, on, slope in zip(sums, layer.rectified.tolist(), layer.slope.tolist(), strict=True)
        ]
    return values
