"""The linear operators of neural networks as sparse matrices on flattened tensors (row-major)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tessella.errors import UnsupportedModel
from tessella.network import Floats, Sparse

LARGEST_TENSOR = 20_000_000  # elements
LARGEST_MATRIX = 200_000_000  # non-zeros

Ints = npt.NDArray[np.int64]


def check_size(elements: int, what: str, limit: int = LARGEST_TENSOR) -> None:
    """Refuse what would not fit into memory, before it is made."""
    if elements > limit:
        msg = f"{what} would have {elements:.3g} entries; at most {limit:.3g} can be read; make the model's input smaller, or cut the model before this"
        raise UnsupportedModel(msg)


def _scipy() -> Any:
    import scipy.sparse  # noqa: PLC0415  heavy, and only importers need it

    return scipy.sparse


def sparse(rows: Ints, columns: Ints, data: Floats, shape: tuple[int, int]) -> Sparse:
    """A sparse matrix from coordinates; equal coordinates are added up."""
    return _scipy().coo_array((data.ravel(), (rows.ravel(), columns.ravel())), shape=shape).tocsr()


def compressed(data: Floats, columns: Ints, starts: Ints, shape: tuple[int, int]) -> Sparse:
    """A sparse matrix from its rows one after the other."""
    return _scipy().csr_array((data.ravel(), columns.ravel(), starts.astype(columns.dtype)), shape=shape)


def work(left: Sparse, right: Sparse) -> int:
    """How many multiplications the product takes; it has no more entries than that."""
    lengths = np.diff(right.indptr)
    most = left.nnz * int(lengths.max(initial=0))
    return most if most <= LARGEST_MATRIX else int(lengths[left.indices].sum(dtype=np.int64))


def product(left: Sparse, right: Sparse) -> Sparse:
    """The product of two matrices; with the identity on the right, the left one itself."""
    rows, columns = right.shape
    if rows == columns == right.nnz and (right.indices == np.arange(rows)).all() and (right.data == 1.0).all():
        return left
    return left @ right


def identity(size: int) -> Sparse:
    """The sparse identity."""
    return _scipy().eye_array(size, format="csr")


def diagonal(values: Floats) -> Sparse:
    """A sparse diagonal matrix."""
    return _scipy().diags_array(values, format="csr")


def kronecker(*factors: Sparse | Floats) -> Sparse:
    """The Kronecker product."""
    return reduce(
        lambda left, right: _scipy().kron(left, right, format="csr"), (_scipy().csr_array(factor) for factor in factors)
    )


def block_diagonal(blocks: Sequence[Sparse]) -> Sparse:
    """A matrix of blocks along the diagonal."""
    return _scipy().block_diag(blocks, format="csr")


def stacked(blocks: Sequence[Sequence[Sparse | None]], heights: Sequence[int], widths: Sequence[int]) -> Sparse:
    """One matrix from blocks; None is a block of zeros.  A block that is all there is comes back as it is: some fill half of the memory."""
    zeros = _scipy().csr_array
    if len(heights) == len(widths) == 1 and blocks[0][0] is not None:
        return blocks[0][0]
    bands = [
        _scipy().hstack(
            [zeros((height, width)) if block is None else block for block, width in zip(row, widths, strict=True)], format="csr"
        )
        for row, height in zip(blocks, heights, strict=True)
    ]
    return _scipy().vstack(bands, format="csr") if len(bands) > 1 else bands[0]


@dataclass(frozen=True, slots=True)
class Window:
    """How a convolution or pooling slides; one entry per spatial axis."""

    strides: Sequence[int]
    pads: Sequence[tuple[int, int]]  # before and after
    dilations: Sequence[int]


def windows(
    spatial: Sequence[int], kernel: Sequence[int], window: Window, *, ceil_mode: bool = False
) -> tuple[Ints, tuple[int, ...]]:
    """Where a sliding window reads.

    Returns
    -------
    index
        For each window position and each place in the kernel the flat input position, -1 in the padding,
        -2 beyond it (only with `ceil_mode`).  Shape (positions, kernel places).
    shape
        The number of positions along each axis.
    """
    rank, strides, pads, dilations = len(spatial), window.strides, window.pads, window.dilations
    if not (len(kernel) == len(strides) == len(pads) == len(dilations) == rank):
        msg = f"a window over {rank} axes has kernel {tuple(kernel)}, strides {tuple(strides)}, pads {tuple(pads)}, dilations {tuple(dilations)}"
        raise UnsupportedModel(msg)
    if min([*spatial, *kernel, *strides, *dilations], default=1) < 1 or min((p for pair in pads for p in pair), default=0) < 0:
        msg = f"a window has kernel {tuple(kernel)}, strides {tuple(strides)}, pads {tuple(pads)}; all must be positive"
        raise UnsupportedModel(msg)
    shape: list[int] = []
    for size, places, stride, (before, after), dilation in zip(spatial, kernel, strides, pads, dilations, strict=True):
        room = size + before + after - dilation * (places - 1) - 1
        if room < 0:
            msg = f"a window of {places} places (dilation {dilation}) does not fit into {size} inputs with padding {before}, {after}"
            raise UnsupportedModel(msg)
        count = room // stride + 1
        if ceil_mode and room % stride and count * stride < size + before:  # the last window must start on an input
            count += 1
        shape.append(count)
    check_size(prod(shape) * prod(kernel), "a sliding window")
    index = np.zeros((1, 1), dtype=np.int64)
    state = np.zeros((1, 1), dtype=np.int64)
    for axis in range(rank):
        place = np.arange(shape[axis])[:, None] * strides[axis] - pads[axis][0] + np.arange(kernel[axis]) * dilations[axis]
        outside = np.where(place >= spatial[axis] + pads[axis][1], -2, np.where((place < 0) | (place >= spatial[axis]), -1, 0))
        index = _outer(index * spatial[axis], place)
        state = np.minimum(_outer(state, np.zeros_like(place)), _outer(np.zeros_like(state), outside))
    return np.where(state < 0, state, index), tuple(shape)


def _outer(left: Ints, right: Ints) -> Ints:
    """All sums, the axes of `right` running fastest."""
    total = left[:, None, :, None] + right[None, :, None, :]
    return total.reshape(left.shape[0] * right.shape[0], left.shape[1] * right.shape[1])


def convolution(shape: tuple[int, ...], weight: Floats, window: Window, groups: int) -> tuple[Sparse, tuple[int, ...]]:
    """A convolution of any rank, channels first.

    Parameters
    ----------
    shape
        Channels and spatial sizes of one input.
    weight
        Output channels, input channels per group, kernel sizes.
    window, groups
        As everywhere.

    Returns
    -------
    The matrix, and the shape of its output (channels first).
    """
    outputs, per_group, *kernel = weight.shape
    if groups < 1 or outputs % groups or shape[0] != per_group * groups:
        msg = f"a convolution with weights {weight.shape} and {groups} groups cannot read {shape[0]} channels"
        raise UnsupportedModel(msg)
    index, positions = windows(shape[1:], kernel, window)
    count, size = prod(positions), prod(shape[1:])
    check_size(count * weight.size, "a convolution's matrix", LARGEST_MATRIX)
    where, place = np.nonzero(index >= 0)
    # all outputs of a group read the same places: one output's pattern, row by row, serves all of them
    channel = np.arange(per_group)[:, None]
    columns = (channel * size + index[where, place]).ravel()
    order = np.lexsort((columns, np.broadcast_to(where, (per_group, len(where))).ravel()))
    per_row = per_group * np.bincount(where, minlength=count)
    data = np.empty((outputs, len(order)))
    for row, filters in zip(data, weight.reshape(outputs, per_group, -1), strict=True):
        row[:] = filters[:, place].ravel()[order]
    first = (np.arange(outputs) // (outputs // groups)) * per_group * size
    reads = columns[order].astype(np.int32) + first.astype(np.int32)[:, None]
    starts = np.concatenate([[0], np.cumsum(np.tile(per_row, outputs))])
    return compressed(data, reads, starts, (outputs * count, prod(shape))), (outputs, *positions)


def transposed_convolution(
    shape: tuple[int, ...], weight: Floats, window: Window, groups: int, extra: Sequence[int]
) -> tuple[Sparse, tuple[int, ...]]:
    """The transpose of a `convolution`, which reads this one's output.

    Its weights are of input channels, output channels per group, and kernel sizes.  ``extra`` is how much larger the output is than the smallest that the convolution takes to
    this input ("output padding").
    """
    inputs, per_group, *kernel = weight.shape
    strides, pads, dilations = window.strides, window.pads, window.dilations
    if inputs != shape[0] or not len(kernel) == len(shape) - 1 == len(strides) == len(pads) == len(dilations) == len(extra):
        msg = f"a transposed convolution with weights {weight.shape} and strides {tuple(strides)} cannot read a tensor of shape {shape}"
        raise UnsupportedModel(msg)
    spatial = tuple(
        (size - 1) * stride + dilation * (places - 1) + 1 + more - before - after
        for size, stride, dilation, places, more, (before, after) in zip(
            shape[1:], strides, dilations, kernel, extra, pads, strict=True
        )
    )
    outer = (per_group * groups, *spatial)
    if min(spatial) < 1:
        msg = f"a transposed convolution of a tensor of shape {shape} would have the shape {outer}"
        raise UnsupportedModel(msg)
    check_size(prod(outer), "a tensor")
    matrix, found = convolution(outer, weight, window, groups)
    if found != shape:  # what is extra may hold further positions
        kept = np.arange(prod(found)).reshape(found)[tuple(slice(size) for size in shape)]
        matrix = matrix[kept.ravel()]
    return matrix.T.tocsr(), outer


def interpolation(size: int, places: Floats) -> Sparse:
    """Values between the elements of an axis, linearly; beyond its ends they are those of the outermost elements.

    Parameters
    ----------
    size
        How many elements the axis has.
    places
        Where to read: 0 is the first element, 0.5 is between it and the next.
    """
    inside = np.clip(np.asarray(places, dtype=np.float64), 0.0, size - 1.0)
    left = np.floor(inside).astype(np.int64)
    share, rows = inside - left, np.arange(len(inside))
    columns = np.concatenate([left, np.minimum(left + 1, size - 1)])
    return sparse(np.tile(rows, 2), columns, np.concatenate([1.0 - share, share]), (len(inside), size))


def average_pool(  # noqa: PLR0913  as many as the operator has
    shape: tuple[int, ...],
    kernel: Sequence[int],
    window: Window,
    *,
    count_padding: bool,
    ceil_mode: bool = False,
    divisor: int | None = None,
) -> tuple[Sparse, tuple[int, ...]]:
    """Average pooling of any rank, channels first.

    Parameters
    ----------
    shape
        Channels and spatial sizes of one input.
    kernel, window, ceil_mode
        The window.
    count_padding
        Whether padded zeros count in the average.
    divisor
        A fixed number to divide by instead.

    Returns
    -------
    The matrix, and the shape of its output (channels first).
    """
    index, positions = windows(shape[1:], kernel, window, ceil_mode=ceil_mode)
    counted = (index >= -1 if count_padding else index >= 0).sum(axis=1)
    if (counted == 0).any():
        msg = "an average pooling has a window that lies in the padding alone; its average is not defined"
        raise UnsupportedModel(msg)
    count, size, channels = prod(positions), prod(shape[1:]), shape[0]
    where, place = np.nonzero(index >= 0)
    share = (1.0 / counted)[where] if divisor is None else np.full(len(where), 1.0 / divisor)
    channel = np.arange(channels)[:, None]
    data = np.broadcast_to(share, (channels, len(share)))
    rows = channel * count + where
    columns = channel * size + index[where, place]
    return sparse(rows, columns, data, (channels * count, prod(shape))), (channels, *positions)
