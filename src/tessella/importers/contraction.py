"""Sums of products along named axes, as ``numpy.einsum`` writes them, of a tensor and constants."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from tessella.errors import UnsupportedModel
from tessella.importers.linear_maps import Ints, check_size, sparse
from tessella.importers.trace import Tensor, Trace
from tessella.network import Floats

_UNNAMED = 0xE000  # where the names of axes behind an ellipsis begin: a part of Unicode for private use


def contract(trace: Trace, equation: str, operands: "Sequence[Tensor | Floats]") -> Tensor:
    """Multiply along axes of the same name, and sum over those that the result does not have.

    Parameters
    ----------
    trace
        Where the linear map is applied.
    equation
        Such as ``"ij,jk->ik"``; without an arrow the result has the names that appear once, in alphabetical order.
    operands
        A tensor and constants, as many as the equation has.
    """
    names, result = _names(equation, [operand.shape for operand in operands])
    sizes: dict[str, int] = {}
    for operand, axes in zip(operands, names, strict=True):
        for axis, size in zip(axes, operand.shape, strict=True):
            if 1 not in {size, sizes.get(axis, 1)} and size != sizes[axis]:
                msg = f"sums products by {equation!r:.60}, where an axis has {sizes[axis]} entries in one operand and {size} in another"
                raise UnsupportedModel(msg)
            sizes[axis] = max(size, sizes.get(axis, 1))
    if len(set(result)) < len(result) or not set(result) <= set(sizes):
        raise UnsupportedModel(_unknown(equation))
    check_size(prod(sizes.values()), "a table of products")
    factors, columns, tensor = np.ones(tuple(sizes.values())), np.zeros((), dtype=np.int64), None
    for operand, axes in zip(operands, names, strict=True):
        places = _places(axes, operand.shape, sizes)
        if isinstance(operand, Tensor):
            columns, tensor = places, operand
        else:
            factors *= np.asarray(operand, dtype=np.float64).ravel()[places]
    if tensor is None:
        msg = "sums products of constants alone, which do not depend on the input"
        raise UnsupportedModel(msg)
    shape = tuple(sizes[axis] for axis in result)
    rows = _places(result, shape, sizes)
    columns = np.broadcast_to(columns, factors.shape)
    return trace.linear(tensor, sparse(rows, columns, factors, (prod(shape), tensor.size)), shape)


def _places(axes: str, shape: Sequence[int], sizes: Mapping[str, int]) -> Ints:
    """For each combination of all axes, which element of an array that has some of them is read."""
    order = list(sizes)
    places = np.zeros(tuple(sizes.values()), dtype=np.int64)
    stride = 1
    for axis, size in zip(reversed(axes), reversed(shape), strict=True):
        if size > 1:
            along = [1] * len(order)
            along[order.index(axis)] = size
            places = places + stride * np.arange(size).reshape(along)
        stride *= size
    return places


def _names(equation: str, shapes: Sequence[Sequence[int]]) -> tuple[list[str], str]:
    """The names of the axes of each operand and of the result, one character each."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    parts = left.split(",")
    named = [part.replace("...", "") for part in [*parts, right]]
    if len(parts) != len(shapes) or any(part and not part.isalpha() for part in named):
        raise UnsupportedModel(_unknown(equation))
    unnamed = [len(shape) - len(name) for shape, name in zip(shapes, named, strict=False)]
    if any(more < 0 or (more > 0 and "..." not in part) for more, part in zip(unnamed, parts, strict=True)):
        raise UnsupportedModel(_unknown(equation))
    most = max(unnamed)
    names = [part.replace("...", _ellipsis(more)) for part, more in zip(parts, unnamed, strict=True)]
    if arrow:
        return names, right.replace("...", _ellipsis(most))
    often = Counter("".join(named[:-1]))
    return names, _ellipsis(most) + "".join(sorted(name for name, times in often.items() if times == 1))


def _ellipsis(count: int) -> str:
    """Names for so many axes, the last of which are the same for all operands."""
    return "".join(chr(_UNNAMED + place) for place in reversed(range(count)))


def _unknown(equation: str) -> str:
    return f"sums products by {equation!r:.60}, which does not fit its operands"
