"""From a graph of tensor operations to a chain of layers.

Every importer runs its source's operations on `Tensor`s: affine expressions in *signals*.  The input is a signal, and
so is the output of every ReLU; everything between is folded into the coefficients.  `Trace.network` then lays the
signals out in layers: a signal is computed in the layer after the last one that it reads, and where it is read later
than in the layer after its own, linear units carry it on.

A sum of two branches (a skip connection) is a signal too, a *junction*: reading it later costs one linear unit per
element instead of one per element of everything it was summed from.  A linear map into fewer dimensions than both its
sides is kept as a layer of its own, because bounds profit from knowing it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from tessella.errors import UnsupportedModel, UnsupportedOperator
from tessella.importers.linear_maps import (
    LARGEST_MATRIX,
    block_diagonal,
    check_size,
    diagonal,
    identity,
    kronecker,
    product,
    sparse,
    stacked,
    work,
)
from tessella.network import Floats, Layer, Network, Source, Sparse

RELU = "ReLU"
_DENSE_BELOW = 50_000  # entries; smaller weights are always dense
_SPARSE_BELOW = 0.2  # density


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """A vector that units can hold: the input, the output of a ReLU, or a linear value worth keeping."""

    size: int  # number of elements
    layer: int  # the layer that computes it; 0 for the input
    definition: "Tensor | None" = None  # what it is computed from; None for the input
    kind: str = ""  # what its units are, such as ``"ReLU"``; empty for linear ones
    # of each element, what its unit multiplies with where it is not active; None for 0.  An element with the slope 1 is linear
    slope: Floats | None = None
    junction: bool = False  # whether it may be replaced by its definition where that is read in its own layer
    number: int = 0  # in which order signals were made; units of one layer keep it

    @property
    def rectified(self) -> bool:
        """Whether a ReLU follows, or a leaky one."""
        return bool(self.kind)

    def slopes(self, *, carried: bool = False) -> Floats:
        """What each element's unit multiplies with where it is not active: 1 if it is linear, or only carried on."""
        if carried or not self.rectified:
            return np.ones(self.size)
        return np.zeros(self.size) if self.slope is None else self.slope

    @property
    def level(self) -> int:
        """The last layer that must be complete before this can be read."""
        return self.layer - 1 if self.junction else self.layer


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """An array of affine expressions."""

    shape: tuple[int, ...]  # its shape, a batch axis included if the source has one
    terms: dict[Signal, Sparse]  # one sparse matrix per signal: (elements, signal's elements)
    constant: Floats  # one number per element

    @property
    def size(self) -> int:
        """Number of elements."""
        return len(self.constant)

    @property
    def level(self) -> int:
        """The last layer that must be complete before this can be computed."""
        return max((signal.level for signal in self.terms), default=0)

    def take(self, index: npt.NDArray[np.int64]) -> "Tensor":
        """Pick elements by flat index: reshaping, transposing, slicing and repeating are all this."""
        check_size(index.size, "a tensor")
        flat = index.ravel()
        terms = {signal: matrix[flat] for signal, matrix in self.terms.items()}
        return Tensor(index.shape, terms, self.constant[flat])

    def indices(self) -> npt.NDArray[np.int64]:
        """Flat indices in the tensor's own shape, to be rearranged and handed to `take`."""
        return np.arange(self.size).reshape(self.shape)

    def reshape(self, shape: Sequence[int]) -> "Tensor":
        """The same elements in another shape; one -1 is worked out."""
        try:
            filled = self.indices().reshape(tuple(shape)).shape
        except ValueError as error:
            msg = f"a tensor of shape {self.shape} cannot be reshaped to {tuple(shape)}"
            raise UnsupportedModel(msg) from error
        return Tensor(filled, self.terms, self.constant)

    def transpose(self, axes: Sequence[int] | None = None) -> "Tensor":
        """Permute the axes (reverse them by default)."""
        return self.take(self.indices().transpose(axes))

    def expand(self, shape: tuple[int, ...]) -> "Tensor":
        """Repeat along axes of length 1, as numpy broadcasts."""
        return self if shape == self.shape else self.take(np.broadcast_to(self.indices(), shape))

    def apply(self, matrix: Sparse, shape: tuple[int, ...]) -> "Tensor":
        """A linear map of the flattened tensor."""
        for before in self.terms.values():
            check_size(work(matrix, before), "a product of two layers' matrices", LARGEST_MATRIX)
        terms = {signal: product(matrix, before) for signal, before in self.terms.items()}
        return Tensor(shape, terms, np.asarray(matrix @ self.constant))

    def scale(self, factor: npt.ArrayLike) -> "Tensor":
        """Multiply by constants, broadcasting."""
        wide = self._broadcast(factor)
        factors = np.broadcast_to(np.asarray(factor, dtype=np.float64), wide.shape).ravel()
        return wide.apply(diagonal(factors), wide.shape)

    def shift(self, offset: npt.ArrayLike) -> "Tensor":
        """Add constants, broadcasting."""
        wide = self._broadcast(offset)
        offsets = np.broadcast_to(np.asarray(offset, dtype=np.float64), wide.shape).ravel()
        return Tensor(wide.shape, wide.terms, wide.constant + offsets)

    def _broadcast(self, other: npt.ArrayLike) -> "Tensor":
        return self.expand(broadcast_shapes(self.shape, np.shape(other)))

    def mean(self, axes: Sequence[int], *, keepdims: bool) -> "Tensor":
        """Average over axes."""
        groups = np.moveaxis(self.indices(), tuple(axes), tuple(range(-len(axes), 0)))
        outer = groups.shape[: groups.ndim - len(axes)]
        groups = groups.reshape(prod(outer), -1)
        rows = np.broadcast_to(np.arange(len(groups))[:, None], groups.shape)
        data = np.full(groups.shape, 1.0 / groups.shape[1])
        gone = {axis % len(self.shape) for axis in axes}
        shape = tuple(1 if axis in gone else size for axis, size in enumerate(self.shape)) if keepdims else outer
        return self.apply(sparse(rows, groups, data, (len(groups), self.size)), shape)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape, or a clear error."""
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError as error:
        msg = f"shapes {', '.join(map(str, shapes))} cannot be combined"
        raise UnsupportedModel(msg) from error
    check_size(prod(shape), "a tensor")
    return shape


def concatenate(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Put tensors side by side."""
    starts = np.cumsum([0, *(tensor.size for tensor in tensors)])
    check_size(int(starts[-1]), "a tensor")
    try:
        index = np.concatenate([tensor.indices() + start for tensor, start in zip(tensors, starts, strict=False)], axis=axis)
    except ValueError as error:
        msg = f"tensors of shapes {', '.join(str(t.shape) for t in tensors)} cannot be concatenated along axis {axis}"
        raise UnsupportedModel(msg) from error
    sizes = [tensor.size for tensor in tensors]
    terms = {
        signal: stacked([[tensor.terms.get(signal)] for tensor in tensors], sizes, [signal.size])
        for signal in dict.fromkeys(signal for tensor in tensors for signal in tensor.terms)
    }
    return Tensor((int(starts[-1]),), terms, np.concatenate([t.constant for t in tensors])).take(index)


@dataclass(frozen=True, slots=True, eq=False)
class Ended:
    """What a model makes of a tensor at its end, such as probabilities, without changing where the tensor is linear.

    Nothing but the model's output, and what moves its elements about, may read it.
    """

    tensor: Tensor  # the last values that are piecewise linear in the input
    left_off: tuple[str, ...]  # the names of the operators that follow
    name: str = ""  # what the model calls the tensor, so that both can be compared

    def then(self, operator: str) -> "Ended":
        """The same with one operator more at the end."""
        return replace(self, left_off=(*self.left_off, operator))

    def refuse(self) -> NoReturn:
        """Say that something reads this which is no end."""
        msg = f"reads the result of {self.left_off[0]}, which is not piecewise linear; only where it ends the model can it be left off; replace it, or cut the model before it"
        raise UnsupportedOperator(msg)


class Trace:
    """Operations that make new signals, and the way from signals to layers."""

    def __init__(self, input_shape: Sequence[int]) -> None:
        """Start with an input of this shape, flattened row-major."""
        shape = tuple(int(size) for size in input_shape)
        if min(shape, default=1) < 1:
            msg = f"the model's input has shape {shape}; every axis must have at least one entry"
            raise UnsupportedModel(msg)
        check_size(prod(shape), "the model's input")
        self._signals = 1
        self._places: dict[Signal, tuple[int, int]] = {}
        self._input = Signal(prod(shape), 0)
        self.input = self._read(self._input, shape)

    def _signal(self, tensor: Tensor, *, kind: str = "", slope: Floats | None = None, junction: bool = False) -> Tensor:
        """Give a tensor units of its own."""
        self._signals += 1
        signal = Signal(tensor.size, tensor.level + 1, tensor, kind, slope, junction, self._signals)
        return self._read(signal, tensor.shape)

    @staticmethod
    def _read(signal: Signal, shape: tuple[int, ...]) -> Tensor:
        return Tensor(shape, {signal: identity(signal.size)}, np.zeros(signal.size))

    def relu(self, tensor: Tensor, kind: str = RELU, slope: npt.ArrayLike | None = None) -> Tensor:
        """Rectify every element.

        Parameters
        ----------
        tensor
            What to rectify.
        kind
            What the model itself calls these units; `Source.units` counts them by it.
        slope
            What elements are multiplied with where they are not positive, broadcasting; None for 0.
        """
        if slope is None:
            return self._signal(tensor, kind=kind)
        tensor = tensor.expand(broadcast_shapes(tensor.shape, np.shape(slope)))
        slopes = np.broadcast_to(np.asarray(slope, dtype=np.float64), tensor.shape).ravel()
        return self._signal(tensor, kind=kind, slope=slopes)

    def held(self, tensor: Tensor) -> Tensor:
        """The same values, to be read in a later layer too: as units of their own, if these are fewer than what the values are computed from."""
        return tensor if sum(signal.size for signal in tensor.terms) <= tensor.size else self._signal(tensor, junction=True)

    def kept(self, tensor: Tensor) -> Tensor:
        """The same values as units of their own, so that what is computed of them is computed of the same rounded numbers."""
        return self._signal(tensor)

    def add(self, left: Tensor, right: Tensor) -> Tensor:
        """Add two branches, broadcasting."""
        shape = broadcast_shapes(left.shape, right.shape)
        left, right = left.expand(shape), right.expand(shape)
        terms = dict(left.terms)
        for signal, matrix in right.terms.items():
            terms[signal] = terms[signal] + matrix if signal in terms else matrix
        return self.held(Tensor(shape, terms, left.constant + right.constant))

    def linear(self, tensor: Tensor, matrix: Sparse, shape: tuple[int, ...]) -> Tensor:
        """Apply a linear map of the flattened tensor; what squeezes through few dimensions, or makes too large a product, becomes a layer."""
        narrow = tensor.size < min(matrix.shape[0], sum(signal.size for signal in tensor.terms))
        if narrow or any(work(matrix, before) > LARGEST_MATRIX for before in tensor.terms.values()):
            tensor = self._signal(tensor)
        return tensor.apply(matrix, shape)

    def multiply(self, left: "Tensor | Floats", right: "Tensor | Floats") -> Tensor:
        """Matrix product of a tensor and a constant, on either side, as ``numpy.matmul``."""
        if isinstance(left, Tensor) and isinstance(right, Tensor):
            msg = "a product of two tensors that both depend on the input is not piecewise linear"
            raise UnsupportedModel(msg)
        if len(left.shape) == 1:  # as numpy has it: a row, whose axis goes again
            product = self.multiply(left.reshape((1, -1)), right)
            return product.reshape((*product.shape[:-2], *product.shape[-1:]))
        if len(right.shape) == 1:
            product = self.multiply(left, right.reshape((-1, 1)))
            return product.reshape(product.shape[:-1])
        if min(len(left.shape), len(right.shape)) < 2 or left.shape[-1] != right.shape[-2]:
            msg = f"a matrix product of shapes {left.shape} and {right.shape} does not fit"
            raise UnsupportedModel(msg)
        outer = broadcast_shapes(left.shape[:-2], right.shape[:-2])
        (rows, inner), columns = left.shape[-2:], right.shape[-1]
        check_size(prod(outer) * rows * inner * columns, "a matrix product", LARGEST_MATRIX)
        if isinstance(left, Tensor):
            tensor = left.expand((*outer, rows, inner))
            blocks = [kronecker(identity(rows), weight.T) for weight in _matrices(right, outer)]
        elif isinstance(right, Tensor):
            tensor = right.expand((*outer, inner, columns))
            blocks = [kronecker(weight, identity(columns)) for weight in _matrices(left, outer)]
        else:
            msg = "a product of two constants does not depend on the input"
            raise UnsupportedModel(msg)
        matrix = kronecker(identity(prod(outer)), blocks[0]) if len(blocks) == 1 else block_diagonal(blocks)
        return self.linear(tensor, matrix, (*outer, rows, columns))

    def network(self, output: "Tensor | Ended") -> Network:
        """Lay everything that the output needs out in layers; its source says what kinds of units there are and what was left off."""
        notes = tuple(f"{name} at the end is left off: it changes no region" for name in getattr(output, "left_off", ()))
        layout = _Layout(self._input, output.tensor if isinstance(output, Ended) else output)
        network = layout.network()
        self._places = layout.places()
        carried = sum(layer.linear_units for layer in network.layers[:-1])
        details = (f"{carried:,} linear units carry values past a layer, or keep a narrow place",) if carried else ()
        return replace(network, source=Source("", "", units=layout.units, notes=notes, details=details))

    def place(self, tensor: Tensor) -> tuple[int, int] | None:
        """The layer, from 0, and the first of the units in it that hold what a ReLU passes on; None if the network that was laid out has none for it."""
        return self._places.get(next(iter(tensor.terms))) if len(tensor.terms) == 1 else None


def _matrices(constant: "Tensor | Floats", outer: tuple[int, ...]) -> Floats:
    """The matrices of a stack that is broadcast to some axes; only one if they are all the same."""
    stack = np.asarray(constant, dtype=np.float64)
    if prod(stack.shape[:-2]) != 1:
        stack = np.broadcast_to(stack, (*outer, *stack.shape[-2:]))
    return stack.reshape(-1, *stack.shape[-2:])


class _Layout:
    """Which layer holds what."""

    def __init__(self, source: Signal, output: Tensor) -> None:
        final = self._final_signal(output)
        self.depth = final.layer
        # what each layer computes, and the last layer that reads each signal
        self.computes: dict[int, list[tuple[Signal, Tensor]]] = {layer: [] for layer in range(1, self.depth + 1)}
        self.last_read: dict[Signal, int] = {source: 0, final: self.depth}
        pending = {final}
        for layer in range(self.depth, 0, -1):
            here = sorted((signal for signal in pending if signal.layer == layer), key=lambda signal: signal.number)
            for signal in here:
                definition = _expand(_definition(signal), layer)
                self.computes[layer].append((signal, definition))
                for read in definition.terms:
                    self.last_read[read] = max(layer, self.last_read.get(read, 0))
                    pending.add(read)
        for signals in self.computes.values():
            signals.sort(key=lambda pair: not pair[0].rectified)
        self.source = source

    @staticmethod
    def _final_signal(output: Tensor) -> Signal:
        """The output as a signal: the last ReLU itself if that is all it is, else a linear layer."""
        if len(output.terms) == 1 and not output.constant.any():
            ((signal, matrix),) = output.terms.items()
            same = matrix.shape == (signal.size, signal.size) and matrix.nnz == signal.size
            if signal.rectified and same and (matrix.diagonal() == 1.0).all():
                return signal
        return Signal(output.size, output.level + 1, output)

    @property
    def units(self) -> tuple[tuple[str, int], ...]:
        """How many units there are of each kind, those of no kind being linear."""
        counts = Counter[str]()
        for signal, _ in (pair for pairs in self.computes.values() for pair in pairs):
            counts[signal.kind] += int((signal.slopes() != 1.0).sum())
        return tuple((kind, count) for kind, count in sorted(counts.items()) if kind)

    def places(self) -> dict[Signal, tuple[int, int]]:
        """For each signal the layer that computes it, from 0, and its first unit there."""
        found = dict[Signal, tuple[int, int]]()
        for layer, computed in self.computes.items():
            start = 0
            for signal, _ in computed:
                found[signal] = layer - 1, start
                start += signal.size
        return found

    def network(self) -> Network:
        held, layers = [self.source], list[Layer]()
        for layer in range(1, self.depth + 1):
            computed = self.computes[layer]
            carried = [signal for signal in held if self.last_read[signal] > layer]
            held_now = [signal for signal, _ in computed] + carried
            rows = [[definition.terms.get(signal) for signal in held] for _, definition in computed]
            rows += [[identity(signal.size) if other is signal else None for other in held] for signal in carried]
            bias = [definition.constant for _, definition in computed] + [np.zeros(signal.size) for signal in carried]
            slopes = np.concatenate([signal.slopes(carried=signal in carried) for signal in held_now])
            weight = stacked(rows, [signal.size for signal in held_now], [signal.size for signal in held])
            layers.append(Layer(_compact(weight), np.concatenate(bias), slopes != 1.0, slopes))
            held = held_now
        return Network(tuple(layers))


def _definition(signal: Signal) -> Tensor:
    if signal.definition is None:  # only the input has none, and no layer computes it
        msg = "the input is not computed by a layer"
        raise UnsupportedModel(msg)
    return signal.definition


def _expand(tensor: Tensor, layer: int) -> Tensor:
    """Replace junctions that are not complete before this layer by what they are made of."""
    while late := [signal for signal in tensor.terms if signal.layer >= layer]:
        terms, constant = dict(tensor.terms), tensor.constant
        for junction in late:
            matrix, definition = terms.pop(junction), _definition(junction)
            constant = constant + np.asarray(matrix @ definition.constant)
            for signal, inner in definition.terms.items():
                product = matrix @ inner
                terms[signal] = terms[signal] + product if signal in terms else product
        tensor = Tensor(tensor.shape, terms, constant)
    return tensor


def _compact(weight: Sparse) -> Sparse | Floats:
    """Dense where that is as well."""
    if not weight.data.all():
        weight = weight.copy()  # its numbers may be those of another matrix as well
        weight.eliminate_zeros()
    elements = weight.shape[0] * weight.shape[1]
    sparse_enough = elements > _DENSE_BELOW and weight.nnz < _SPARSE_BELOW * elements
    return weight if sparse_enough else weight.toarray()
