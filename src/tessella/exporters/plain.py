"""Layers as other packages have them: an affine map, and behind it nothing, a ReLU, or a PReLU with one slope per unit.

A PReLU says all that a layer may have: the slope 0 is a ReLU, 1 a linear unit, -1 an absolute value.  Layers of linear units before the last one have a PReLU too, of slope 1, so that whoever
reads them back knows them as layers.  A linear unit with a slope of its own is written as one of slope 1 whose weights are multiplied with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tessella.errors import ConversionMismatch, NetworkError, OptionError
from tessella.layer import Floats, Layer

POINTS: Final = 8  # the origin, and Gaussian ones of growing size
LARGEST: Final = 2**31  # bytes of all weights and biases: what an ONNX file can hold
_KINDS: Final = ("float64", "float32")
_ROOM: Final = 4.0  # times the bound on rounding errors: what other packages compute may be rounded in other ways

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """A layer as it is written."""

    # weight, bias: the affine map, dense, in the precision that is written
    weight: Array
    bias: Array
    slope: Array  # what each unit multiplies its preactivation with where that is negative: 0 for a ReLU, 1 for a linear unit
    bare: bool  # whether nothing follows the affine map

    @property
    def is_relu(self) -> bool:
        """Whether a ReLU on all units follows."""
        return not self.slope.any()


def precision(dtype: object) -> np.dtype[Any]:
    """The precision that a caller asks for.

    Examples
    --------
    >>> precision("float32")
    dtype('float32')
    """
    try:
        found = np.dtype(str(dtype).removeprefix("torch.") if not isinstance(dtype, (str, type, np.dtype)) else dtype)  # pyright: ignore[reportArgumentType]
    except TypeError:
        found = None
    if found is None or found.name not in _KINDS:
        msg = f"dtype is {dtype!r:.40}; a network is written in {' or '.join(map(repr, _KINDS))}"
        raise OptionError(msg)
    return found


def plain_layers(layers: Sequence[Layer], dtype: np.dtype[Any]) -> list[Plain]:
    """Layers as they are written; raises where they are too large, or numbers pass what the precision holds."""
    size = sum(layer.units * (layer.inputs + 1) for layer in layers) * dtype.itemsize
    if size >= LARGEST:
        sparse = ", as sparse weights are written with all their zeros" if any(_is_sparse(layer) for layer in layers) else ""
        msg = f"the network would take {size / 2**30:.1f} GiB{sparse}; at most {LARGEST >> 30} GiB can be written: write .npz, which keeps sparse weights sparse"
        raise NetworkError(msg)
    return [_plain(layer, dtype, number, last=number == len(layers)) for number, layer in enumerate(layers, start=1)]


def _is_sparse(layer: Layer) -> bool:
    return not isinstance(layer.weight, np.ndarray)


def _plain(layer: Layer, dtype: np.dtype[Any], number: int, *, last: bool) -> Plain:
    weight, bias, slope = layer.dense(), layer.bias, np.where(layer.rectified, layer.slope, 1.0)
    own = ~layer.rectified & (layer.slope != 1.0)
    if own.any():
        factors = np.where(own, layer.slope, 1.0)
        weight, bias = factors[:, None] * weight, factors * bias
    parts = [_rounded(part, dtype, number) for part in (weight, bias, slope)]
    return Plain(*parts, bare=last and bool((slope == 1.0).all()))


def _rounded(values: Floats, dtype: np.dtype[Any], number: int) -> Array:
    with np.errstate(over="ignore", under="ignore"):
        found = np.ascontiguousarray(values, dtype=dtype)
    if not np.isfinite(found).all():
        msg = f"layer {number} holds {values[~np.isfinite(found)][0]:g}, which passes the largest number of {dtype.name}; write it as float64"
        raise NetworkError(msg)
    return found


def fitting_shape(shape: Sequence[int] | None, inputs: int) -> tuple[int, ...]:
    """The shape of one input: as asked for, if it has as many numbers as the network reads; a row of them if nothing is said."""
    if shape is None:
        return (inputs,)
    sizes = tuple(int(size) for size in shape)
    if prod(sizes) != inputs or min(sizes, default=0) < 1:
        msg = f"input_shape is {sizes}, but the network reads {inputs:,} numbers; give a shape of so many"
        raise OptionError(msg)
    return sizes


def points(inputs: int) -> Floats:
    """Where what was written is compared."""
    rng = np.random.default_rng(20261119)
    return np.linspace(0.0, 2.0, POINTS)[:, None] * rng.standard_normal((POINTS, inputs))


def check_numbers(written: Array, given: Array, what: str) -> None:
    """Raise unless numbers were kept bit by bit."""
    if written.dtype != given.dtype or written.shape != given.shape or written.tobytes() != given.tobytes():
        msg = f"{what}: not the numbers that were written come back; please report this network"
        raise ConversionMismatch(msg)


def check_outputs(layers: Sequence[Plain], inputs: Floats, outputs: Array, what: str, computed: Any = None) -> None:
    """Raise unless outputs at some points are those of the layers, but for rounding in their precision.

    Parameters
    ----------
    layers
        What was written.
    inputs, outputs
        Points, and what the other package makes of them.
    what
        What to call it in messages.
    computed
        The precision that the other package computes in; that of the weights if None.
    """
    dtype = np.dtype(computed or layers[0].weight.dtype)
    with np.errstate(all="ignore"):
        expected, allowed = _with_errors(layers, inputs.astype(dtype).astype(np.float64), dtype)
        difference = np.abs(np.asarray(outputs, dtype=np.float64).reshape(len(inputs), -1) - expected)
        wrong = np.isfinite(expected) & np.isfinite(allowed) & ~(difference <= _ROOM * allowed)
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        msg = f"{what}: output {where[1]} differs by {difference[where]:.2g} from the network's at a seeded point; please report this network"
        raise ConversionMismatch(msg)


def _with_errors(layers: Sequence[Plain], values: Floats, dtype: np.dtype[Any]) -> tuple[Floats, Floats]:
    """Outputs, and how wrong rounding may make them, whatever the order of sums."""
    errors, eps, tiny = np.zeros(values.shape), float(np.finfo(dtype).eps), float(np.finfo(dtype).tiny)
    for layer in layers:
        weight, bias, slope = (part.astype(np.float64) for part in (layer.weight, layer.bias, layer.slope))
        sizes = np.abs(values) @ np.abs(weight).T + np.abs(bias)
        errors = errors @ np.abs(weight).T + (weight.shape[1] + 4) * eps * sizes + (weight.shape[1] + 4) * tiny
        before = values @ weight.T + bias
        values = np.where(before > 0.0, before, slope * before)
        errors = np.maximum(1.0, np.abs(slope)) * errors + eps * np.abs(values) + tiny
    return values, errors
