"""A network: a chain of layers, affine maps that are each followed by a ReLU, or a leaky one, on some of their units."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from tessella.errors import NetworkError, OptionError
from tessella.layer import Floats, Layer, Mask, Sparse, Weight, frozen_floats, is_sparse
from tessella.result import Counted

__all__ = [
    "COMPARISON",
    "Floats",
    "Layer",
    "Mask",
    "Network",
    "Outline",
    "Source",
    "Sparse",
    "UnitStates",
    "Weight",
    "frozen_floats",
]


COMPARISON = "comparison in a larger maximum"  # a kind of units: of those that find the largest of more than two
_LONG = 16  # layers; longer shapes are not written out


class UnitStates(Protocol):
    """Which units of a network are stable, layer by layer."""

    @property
    def network(self) -> "Network":
        """The network."""
        ...

    @property
    def active(self) -> tuple[Mask, ...]:
        """Units that are never inactive."""
        ...

    @property
    def inactive(self) -> tuple[Mask, ...]:
        """Units that are never active."""
        ...


class Outline(NamedTuple):
    """What a stability knows of a layer."""

    rectified: Mask  # which units have a ReLU
    positive: Mask  # which units have a positive bias

    @property
    def relus(self) -> int:
        """Number of rectified units."""
        return int(self.rectified.sum())


@dataclass(frozen=True, slots=True)
class Source:
    """Where a network came from, and how well it agrees with that.

    Parameters
    ----------
    kind
        ``"onnx"``, ``"torch"``, ``"pt2"``, ``"keras"``, ``"npz"``, ``"scikit-learn"``, ``"state_dict"``, ``"flax"``, ``"haiku"``, ``"equinox"``, ``"arrays"`` or ``"slice"``.
    name
        The file's name, or the model's class.
    input_shape
        Shape of one input in the source; the network reads it flattened in row-major order.
    points
        At how many seeded points the network was compared with its source.
    difference
        The largest difference found there, relative to the size of the outputs.
    units
        What the source calls the units that have two sides, such as ``(("LeakyReLU", 32), ("ReLU", 100))``, and how many there are of each.
    notes
        What a reader should know: what was left off, and what was written in another way.
    details
        How it was read, for those who want to know: what was folded, and what is carried on by linear units.
    """

    kind: str
    name: str
    input_shape: tuple[int, ...] = ()
    points: int = 0
    difference: float = 0.0
    units: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A feedforward network of ReLUs, leaky ones among them, whatever it was made from.

    Two networks are equal if their layers hold the same numbers.

    Parameters
    ----------
    layers
        The layers in order; each reads the one before it.
    source
        Where it came from, if it was imported.

    Examples
    --------
    >>> import tessella
    >>> net = tessella.Network.from_arrays([([[1.0], [-1.0]], [0.0, 0.5]), ([[1.0, 1.0]], [0.0])])
    >>> net
    Network(1-2-1, 2 ReLUs, 7 parameters)
    >>> net([[2.0], [-2.0]]).tolist()
    [[2.0], [2.5]]
    """

    layers: tuple[Layer, ...]
    source: Source | None = field(default=None)

    def __post_init__(self) -> None:
        """Check that the layers fit each other."""
        layers = tuple(self.layers)
        if not layers:
            msg = "a network needs at least one layer; got none"
            raise NetworkError(msg)
        for number, layer in enumerate(layers, start=1):
            if not isinstance(layer, Layer):  # pyright: ignore[reportUnnecessaryIsInstance]  callers may be untyped
                msg = f"layer {number} is a {type(layer).__name__}; expected a Layer (Network.from_arrays takes pairs)"
                raise NetworkError(msg)
        for number, (before, layer) in enumerate(pairwise(layers), start=2):
            if layer.inputs != before.units:
                hint = (
                    "; weights are (units, inputs): pass W.T if yours are (inputs, units)" if layer.units == before.units else ""
                )
                msg = f"layer {number} reads {layer.inputs} inputs, but layer {number - 1} has {before.units} units{hint}"
                raise NetworkError(msg)
        object.__setattr__(self, "layers", layers)

    @classmethod
    def from_arrays(cls, layers: Iterable[Sequence[Any] | Layer], *, relu_output: bool = False) -> Self:
        """Make a network from ``[(W, b), ...]``, with a ReLU after each layer but the last.

        Parameters
        ----------
        layers
            Pairs of weight (units, inputs) and bias (or None for none); a `Layer` is taken as it is.
        relu_output
            Whether the last layer has ReLUs too, as in the paper's counts.
        """
        pairs = list(layers)
        made: list[Layer] = []
        for number, pair in enumerate(pairs, start=1):
            if isinstance(pair, Layer):
                made.append(pair)
                continue
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                msg = f"layer {number} is {type(pair).__name__} {str(pair)[:40]!r}; expected a pair (weight, bias)"
                raise NetworkError(msg)
            weight: Any = pair[0]
            bias: Any = pair[1]
            if bias is None:
                bias = np.zeros(np.shape(weight)[:1] if not is_sparse(weight) else weight.shape[0])
            try:
                made.append(Layer(weight, bias, np.array(number < len(pairs) or relu_output)))
            except NetworkError as error:
                msg = f"layer {number}: {error}"
                raise NetworkError(msg) from error
        return cls(tuple(made))

    @property
    def input_dim(self) -> int:
        """Number of inputs."""
        return self.layers[0].inputs

    @property
    def output_dim(self) -> int:
        """Number of outputs."""
        return self.layers[-1].units

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of ReLUs in each layer that has any."""
        return tuple(layer.relus for layer in self.layers if layer.relus)

    @property
    def depth(self) -> int:
        """Number of layers that have ReLUs."""
        return len(self.widths)

    @property
    def relus(self) -> int:
        """Number of ReLUs."""
        return sum(layer.relus for layer in self.layers)

    @property
    def leaky_units(self) -> int:
        """How many of the ReLUs have a slope where they are not active."""
        return sum(int(layer.leaky.sum()) for layer in self.layers)

    @property
    def outline(self) -> tuple[Outline, ...]:
        """Which units of each layer have a ReLU, and a positive bias."""
        return tuple(Outline(layer.rectified, layer.bias > 0.0) for layer in self.layers)

    @property
    def parameters(self) -> int:
        """Number of stored weights and biases."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def counted(self) -> Counted:
        """What tells its regions apart: the sides of its ReLUs, or of all comparisons in its maxima of more than two."""
        compares = self.source is not None and any(kind == COMPARISON for kind, _ in self.source.units)
        return Counted.COMPARISONS if compares else Counted.REGIONS

    @property
    def fingerprint(self) -> str:
        """A hash of the content: the same for the same numbers, dense or sparse, on every machine."""
        digest = hashlib.sha256(b"tessella network 1")
        for layer in self.layers:
            matrix = layer.weight
            if isinstance(matrix, np.ndarray):
                rows, columns = np.nonzero(matrix)
                data = matrix[rows, columns]
            else:
                rows = np.repeat(np.arange(layer.units), np.diff(matrix.indptr))
                columns, data = matrix.indices, matrix.data
            digest.update(np.array([layer.units, layer.inputs, data.size], dtype="<i8").tobytes())
            digest.update(rows.astype("<i8").tobytes())
            digest.update(columns.astype("<i8").tobytes())
            digest.update(data.astype("<f8").tobytes())
            digest.update((layer.bias + 0.0).astype("<f8").tobytes())  # -0.0 becomes 0.0
            digest.update(layer.rectified.tobytes())
            if not layer.is_plain:
                digest.update(b"slope" + layer.slope.astype("<f8").tobytes())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        """Same layers, same numbers."""
        return isinstance(other, Network) and (self is other or self.fingerprint == other.fingerprint)

    def __hash__(self) -> int:
        """Consistent with equality."""
        return hash(self.fingerprint)

    def _batch(self, points: npt.ArrayLike) -> Floats:
        try:
            batch = np.asarray(points, dtype=np.float64)
        except (TypeError, ValueError) as error:
            msg = f"points cannot be read as numbers: {error}"
            raise NetworkError(msg) from error
        if batch.ndim not in {1, 2} or batch.shape[-1] != self.input_dim:
            msg = f"points have shape {batch.shape}; expected ({self.input_dim},) or (points, {self.input_dim})"
            raise NetworkError(msg)
        return batch

    def preactivations(self, points: npt.ArrayLike) -> list[Floats]:
        """Preactivations of every layer at a point or a batch of points.

        Returns
        -------
        One array per layer, of shape (units,) or (points, units), linear units included.
        """
        batch = self._batch(points)
        values, result = np.atleast_2d(batch), list[Floats]()
        for layer in self.layers:
            before = layer.preactivation(values)
            result.append(before if batch.ndim == 2 else before[0])
            values = layer.activate(before)
        return result

    def __call__(self, points: npt.ArrayLike) -> Floats:
        """Outputs at a point or a batch of points."""
        batch = self._batch(points)
        values = np.atleast_2d(batch)
        for layer in self.layers:
            values = layer.activate(layer.preactivation(values))
        return values if batch.ndim == 2 else values[0]

    def patterns(self, points: npt.ArrayLike) -> Mask:
        """Which ReLUs are active (preactivation > 0) at a point or a batch of points.

        Returns
        -------
        Truth values of shape (ReLUs,) or (points, ReLUs), layer by layer; linear units have none.
        """
        active = [
            before[..., layer.rectified] > 0.0 for layer, before in zip(self.layers, self.preactivations(points), strict=True)
        ]
        return np.concatenate(active, axis=-1)

    def affine_map(self, pattern: npt.ArrayLike) -> tuple[Floats, Floats]:
        """The affine function ``x -> matrix @ x + offset`` that the network is where its ReLUs have this pattern.

        Parameters
        ----------
        pattern
            One truth value per ReLU, as `patterns` returns them.
        """
        active = np.asarray(pattern)
        if active.dtype != np.bool_ or active.shape != (self.relus,):
            msg = f"a pattern has {self.relus} truth values, one per ReLU; got {active.dtype} of shape {active.shape}"
            raise OptionError(msg)
        matrix, offset, start = np.eye(self.input_dim), np.zeros(self.input_dim), 0
        for layer in self.layers:
            passes = layer.factors(active[start : start + layer.relus])
            matrix = passes[:, None] * np.asarray(layer.weight @ matrix)
            offset = passes * (np.asarray(layer.weight @ offset) + layer.bias)
            start += layer.relus
        return matrix, offset

    def with_relu_output(self) -> Self:
        """The same network with a ReLU on every output that has none, as the paper counts it."""
        last = self.layers[-1]
        if last.relus == last.units:
            return self
        if (last.slope[~last.rectified] != 1.0).any():
            msg = "an output is a linear unit with a slope of its own; put a ReLU on it by a layer that reads it"
            raise OptionError(msg)
        rectified = Layer(last.weight, last.bias, np.ones(last.units, dtype=np.bool_), np.where(last.rectified, last.slope, 0.0))
        return replace(self, layers=(*self.layers[:-1], rectified))

    def without_stable_units(self, stability: "UnitStates") -> Self:
        """A smaller network that computes the same where the states hold.

        Stably inactive units are removed (as outputs they stay, as zeros), or become linear units with their slope; stably active ones
        become linear.  A layer that loses all its units keeps one linear unit of value 0.

        Parameters
        ----------
        stability
            Which units are stable, as `tessella.stability` finds them.
        """
        if getattr(stability, "network", None) != self:
            msg = "the stability was found for another network; find it for this one with tessella.stability(network, domain)"
            raise OptionError(msg)
        layers, columns = list[Layer](), np.arange(self.input_dim)
        for number, layer in enumerate(self.layers):
            active, inactive = stability.active[number], stability.inactive[number]
            last = number == len(self.layers) - 1
            lost = inactive & ~layer.leaky
            kept = np.arange(layer.units) if last else np.flatnonzero(~lost)
            kept = kept if len(kept) else np.array([0])
            passes = np.where(lost[kept], 0.0, 1.0)
            weight = layer.weight if len(kept) == layer.units else layer.weight[kept]
            weight = weight if len(columns) == layer.inputs else weight[:, columns]
            if not passes.all():
                weight = weight * passes[:, None] if isinstance(weight, np.ndarray) else weight.multiply(passes[:, None]).tocsr()
            changing = layer.rectified[kept] & ~active[kept] & ~inactive[kept]
            slope = np.where(active[kept] | lost[kept], 1.0, layer.slope[kept])
            layers.append(Layer(weight, layer.bias[kept] * passes, changing, slope))
            columns = kept
        return replace(self, layers=tuple(layers))

    def to_npz(self, path: str | os.PathLike[str]) -> None:
        """Write the network to an ``.npz`` file: all numbers as they are, sparse weights as sparse ones.

        `tessella.load` reads it back as an equal network.

        Parameters
        ----------
        path
            The file, under exactly this name; an existing one is replaced.
        """
        from tessella.exporters.npz import write_npz  # noqa: PLC0415  only for those who write

        write_npz(self.layers, path)

    def to_onnx(self, path: str | os.PathLike[str], *, dtype: str = "float64", input_shape: Sequence[int] | None = None) -> None:
        """Write the network to an ONNX file.

        In double precision `tessella.load` reads it back as an equal network; single precision rounds weights to 24 bits (to 0 below 1e-45; beyond 3.4e38 it is refused), and halves the file.  A linear unit with a slope of
        its own has the slope multiplied into its weights, which rounds.  Sparse weights are written with their zeros.

        Parameters
        ----------
        path
            The file, under exactly this name; an existing one is replaced.
        dtype
            ``"float64"``, or ``"float32"``.
        input_shape
            Shape of one input, without the batch axis: by default that of the model that the network was read from.

        Examples
        --------
        >>> import pathlib, tempfile, tessella
        >>> net = Network.from_arrays([([[1.0], [-1.0]], [0.1, 0.5]), ([[1.0, 1.0]], [0.0])])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     net.to_onnx(pathlib.Path(folder, "net.onnx"))
        ...     tessella.load(pathlib.Path(folder, "net.onnx")) == net
        True
        """
        from tessella.exporters.onnx import write_onnx  # noqa: PLC0415  only for those who write

        write_onnx(self.layers, path, dtype=dtype, input_shape=self._exported_shape(input_shape))

    def to_torch(self, *, dtype: str = "float64", input_shape: Sequence[int] | None = None) -> Any:
        """The network as a ``torch.nn.Sequential``; the parameters are those of `to_onnx`."""
        from tessella.exporters.torch import make_module  # noqa: PLC0415  only for those who have torch

        return make_module(self.layers, dtype=dtype, input_shape=self._exported_shape(input_shape))

    def to_keras(self, *, dtype: str = "float64", input_shape: Sequence[int] | None = None) -> Any:
        """The network as a ``keras.Sequential``; the parameters are those of `to_onnx`."""
        from tessella.exporters.keras import make_model  # noqa: PLC0415  only for those who have Keras

        return make_model(self.layers, dtype=dtype, input_shape=self._exported_shape(input_shape))

    def _exported_shape(self, given: Sequence[int] | None) -> Sequence[int] | None:
        """The shape of one input: as asked for, or as the source has it."""
        known = self.source.input_shape if given is None and self.source else ()
        return known if known and prod(known) == self.input_dim else given

    @property
    def shape(self) -> str:
        """Inputs and units per layer, such as ``64-10-10-10``; linear units beside ReLUs are marked ``+n``, long chains cut."""
        parts = [
            f"{layer.relus}+{layer.linear_units}" if layer.relus and layer.linear_units else str(layer.units)
            for layer in self.layers
        ]
        if len(parts) > _LONG:
            parts = [*parts[:4], "...", *parts[-2:]]
        return "-".join([str(self.input_dim), *parts]) + (f" ({len(self.layers)} layers)" if len(self.layers) > _LONG else "")

    def __repr__(self) -> str:
        """One line a person can read."""
        plural, leaky = "" if self.relus == 1 else "s", self.leaky_units
        kinds = f", {'all' if leaky == self.relus else f'{leaky:,} of them'} leaky" if leaky else ""
        return f"Network({self.shape}, {self.relus:,} ReLU{plural}{kinds}, {self.parameters:,} parameters)"

    def table(self) -> str:
        """The layers as a plain-text table.

        Examples
        --------
        >>> print(Network.from_arrays([([[1.0], [-1.0]], None), ([[1.0, 1.0]], None)]).table())
        layer  inputs  ReLUs  linear  parameters  weights
            1       1      2       0           4  dense
            2       2      0       1           3  dense
        """
        leaky = self.leaky_units > 0
        head = f"{'layer':>5}  {'inputs':>6}  {'ReLUs':>5}" + ("  leaky" if leaky else "")
        lines = [f"{head}  {'linear':>6}  {'parameters':>10}  weights"]
        for number, layer in enumerate(self.layers, start=1):
            kind = "dense" if isinstance(layer.weight, np.ndarray) else "sparse"
            part = f"{number:>5}  {layer.inputs:>6}  {layer.relus:>5}" + (f"  {int(layer.leaky.sum()):>5}" if leaky else "")
            lines.append(f"{part}  {layer.linear_units:>6}  {layer.parameters:>10,}  {kind}")
        return "\n".join(lines)
