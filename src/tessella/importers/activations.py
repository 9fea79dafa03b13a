"""Piecewise-linear activations, written as units with slopes, ReLUs and linear values.

``x`` where it is positive and ``slope * x`` elsewhere is a unit with that slope on its inactive side.  Of the others, each comparison is one ReLU, whose two sides are
the two outcomes:

- the larger of two: ``max(a, b) = b + ReLU(a - b)``;
- the largest of many: a tournament of such comparisons in the order of the elements, the winners of one round compared in the next.

For a maximum of more than two, the sides of all comparisons say who wins and also how some of the others compare.  So the regions counted by them are at
least as many as the regions by winners: upper bounds hold for both, lower bounds and exact counts for the comparisons (`tessella.Counted.COMPARISONS`).
"""

from math import inf

import numpy as np
import numpy.typing as npt

from tessella.errors import UnsupportedModel
from tessella.importers.trace import RELU, Tensor, Trace, concatenate
from tessella.network import COMPARISON, Floats

Ints = npt.NDArray[np.int64]

MAXIMUM = "maximum of two"
_CLIP, _LEAKY, _ABSOLUTE, _PARAMETRIC = "clip", "LeakyReLU", "absolute value", "PReLU"


def leaky(trace: Trace, tensor: Tensor, slope: npt.ArrayLike, kind: str = _LEAKY) -> Tensor:
    """``x`` where it is positive, elsewhere ``slope * x``; slopes broadcast against the tensor.

    A PReLU whose slopes are all 1 stays a layer, of linear units: that is how `Network.to_onnx` and the others write one.
    """
    slopes = np.asarray(slope, dtype=np.float64)
    if not np.isfinite(slopes).all():
        msg = f"a unit has the slope {slopes[~np.isfinite(slopes)].ravel()[0]}; slopes must be finite"
        raise UnsupportedModel(msg)
    if (slopes == 0.0).all():
        return trace.relu(tensor)
    if (slopes == 1.0).all():
        return trace.kept(tensor) if kind == _PARAMETRIC else tensor
    return trace.relu(tensor, kind, slopes)


def absolute(trace: Trace, tensor: Tensor) -> Tensor:
    """The absolute value: a slope of -1."""
    return leaky(trace, tensor, -1.0, _ABSOLUTE)


def at_least(trace: Trace, tensor: Tensor, bound: npt.ArrayLike, kind: str = _CLIP) -> Tensor:
    """The larger of a tensor and constants, which broadcast against it; minus infinity is no bound."""
    bounds = np.asarray(bound, dtype=np.float64)
    if (bounds == -inf).all():
        return tensor
    if not np.isfinite(bounds).all():
        msg = "a bound is not finite while others are; give all of them as finite numbers"
        raise UnsupportedModel(msg)
    return trace.relu(tensor.shift(-bounds), kind if bounds.any() else RELU).shift(bounds)


def at_most(trace: Trace, tensor: Tensor, bound: npt.ArrayLike, kind: str = _CLIP) -> Tensor:
    """The smaller of a tensor and constants, which broadcast against it; infinity is no bound."""
    return at_least(trace, tensor.scale(-1.0), -np.asarray(bound, dtype=np.float64), kind).scale(-1.0)


def clip(trace: Trace, tensor: Tensor, low: npt.ArrayLike | None, high: npt.ArrayLike | None) -> Tensor:
    """Between two constants, as ``numpy.clip``: where they cross, the upper one."""
    tensor = tensor if low is None else at_least(trace, tensor, low)
    return tensor if high is None else at_most(trace, tensor, high)


def maximum(trace: Trace, left: "Tensor | Floats", right: "Tensor | Floats", kind: str = MAXIMUM) -> Tensor:
    """The larger of two, of which one may be constants."""
    if not isinstance(left, Tensor) or not left.terms:
        left, right = right, left
    if not isinstance(left, Tensor):
        msg = "a maximum of constants alone does not depend on the input"
        raise UnsupportedModel(msg)
    if not isinstance(right, Tensor) or not right.terms:
        bound = right.constant.reshape(right.shape) if isinstance(right, Tensor) else right
        return at_least(trace, left, bound, COMPARISON if kind == COMPARISON else _CLIP)
    right = trace.held(right)
    return trace.add(right, trace.relu(trace.add(left, right.scale(-1.0)), kind))


def minimum(trace: Trace, left: "Tensor | Floats", right: "Tensor | Floats", kind: str = MAXIMUM) -> Tensor:
    """The smaller of two, of which one may be constants."""
    one, other = (side.scale(-1.0) if isinstance(side, Tensor) else -np.asarray(side, dtype=np.float64) for side in (left, right))
    return maximum(trace, one, other, kind).scale(-1.0)


def largest(trace: Trace, tensor: Tensor, groups: Ints) -> Tensor:
    """The largest element of each group.

    Parameters
    ----------
    trace
        Where signals are made.
    tensor
        The elements.
    groups
        One row per group: flat indices of its elements, in the order in which they are compared; what is negative stands for none.

    Returns
    -------
    A tensor of one axis, an element per group.
    """
    groups = _without_gaps(groups)
    if groups.shape[1] == 0 or (groups[:, 0] < 0).any():
        msg = "a maximum of no elements at all is not defined"
        raise UnsupportedModel(msg)
    kind = MAXIMUM if groups.shape[1] == 2 else COMPARISON
    values = tensor.reshape((-1,))
    if not _exact_differences(values, groups):
        values = trace.kept(values)
    while groups.shape[1] > 1:
        odd = groups.shape[1] % 2
        left, right = groups[:, 0::2], np.pad(groups[:, 1::2], ((0, 0), (0, odd)), constant_values=-1)
        pairs, match = np.unique(np.stack([left, right], axis=-1).reshape(-1, 2), axis=0, return_inverse=True)
        fought, alone = pairs[pairs[:, 1] >= 0], pairs[(pairs[:, 1] < 0) & (pairs[:, 0] >= 0)]
        winners = maximum(trace, values.take(fought[:, 0]), values.take(fought[:, 1]), kind)
        values = concatenate([winners, values.take(alone[:, 0])], 0) if len(alone) else winners
        place = np.full(len(pairs), -1)
        place[pairs[:, 1] >= 0] = np.arange(len(fought))
        place[(pairs[:, 1] < 0) & (pairs[:, 0] >= 0)] = len(fought) + np.arange(len(alone))
        groups = place[match.ravel()].reshape(left.shape)
    return values.take(groups[:, 0])


def smallest(trace: Trace, tensor: Tensor, groups: Ints) -> Tensor:
    """The smallest element of each group."""
    return largest(trace, tensor.scale(-1.0), groups).scale(-1.0)


def largest_along(trace: Trace, tensor: Tensor, axes: "list[int]", *, keepdims: bool) -> Tensor:
    """The largest element along axes."""
    gone = {axis % len(tensor.shape) for axis in axes}
    groups = np.moveaxis(tensor.indices(), tuple(gone), tuple(range(-len(gone), 0)))
    outer = groups.shape[: groups.ndim - len(gone)]
    shape = tuple(1 if axis in gone else size for axis, size in enumerate(tensor.shape)) if keepdims else outer
    return largest(trace, tensor, groups.reshape(int(np.prod(outer)), -1)).reshape(shape)


def _exact_differences(tensor: Tensor, groups: Ints) -> bool:
    """Whether comparisons that depend on each other do so in spite of rounding.

    Groups that overlap may compare a with b, b with c, and a with c.  If the weights of these differences were rounded, each in its own way, all of a > b > c > a
    would hold in a sliver that the model does not have.  Differences of single units times the same number are not rounded.
    """
    members = groups[groups >= 0]
    if groups.shape[1] == 2 or np.unique(members).size == members.size:
        return True
    read = sum((np.diff(matrix.indptr) for matrix in tensor.terms.values()), np.zeros(tensor.size, dtype=np.int64))
    factors = sum((np.asarray(matrix.sum(axis=1)).ravel() for matrix in tensor.terms.values()), np.zeros(tensor.size))
    filled = np.where(groups >= 0, groups, groups[:, :1])
    alike = all((values[filled] == values[filled[:, :1]]).all() for values in (factors, tensor.constant))
    return alike and bool((read[members] <= 1).all())


def _without_gaps(groups: Ints) -> Ints:
    """The same groups with what stands for no element at the end."""
    groups = np.take_along_axis(groups, np.argsort(groups < 0, axis=1, kind="stable"), axis=1)
    return groups[:, (groups >= 0).any(axis=0)]
