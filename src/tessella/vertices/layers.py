"""The network as the walk over corners reads it, with what is known of its rounding."""

import numpy as np

from tessella.kernel.record import aligned
from tessella.network import Floats, Mask
from tessella.numerics import LOST_OF_PRODUCTS, MODERATE, ROUNDOFF
from tessella.partition.tree import Tree
from tessella.vertices.state import Layers

_MOST_DOUBT = 2.0**-40  # of weights, relative to their row; for a row with more, its reach is larger


def layers_of(tree: Tree) -> tuple[Layers, Floats]:
    """The network with the ReLUs of each layer before its linear units, and the first layer's rows."""
    scaled = tree.scaled
    orders = [np.argsort(~rectified, kind="stable") for rectified in scaled.rectified]
    relus = [int(rectified.sum()) for rectified in scaled.rectified]
    sizes = [len(order) for order in orders]
    starts = np.cumsum([0, 0, *sizes[:-2]])[: len(sizes)]
    depth, width = len(sizes), max(sizes)
    (biases, reach, slack, slopes), rounding = np.zeros((4, depth, width)), np.zeros((4, depth))
    weights = np.zeros((max(sum(sizes[:-1]), 1), width))
    raw = tree.walked.layers[0].dense()[orders[0]]
    slack[0, : sizes[0]] = np.where(
        raw.any(axis=1), (raw.shape[1] + 32) * ROUNDOFF * tree.magnitudes[orders[0]] + LOST_OF_PRODUCTS, 0.0
    )
    for number in range(depth):
        bias, order = scaled.biases[number][orders[number]], orders[number]
        biases[number, : len(bias)], slopes[number, : len(bias)] = bias, scaled.slopes[number][order]
        if number:
            weight = scaled.weights[number][order][:, orders[number - 1]]
            relative = (weight.shape[1] + 10) * ROUNDOFF
            weights[starts[number] : starts[number] + weight.shape[1], : len(bias)] = weight.T
            plain, weight = weight, weight * _most(scaled.slopes[number - 1], scaled.rectified[number - 1])[orders[number - 1]]
            # what a slope passes on may underflow before it is multiplied with a weight
            slack[number, : len(bias)] = relative * np.abs(bias) + LOST_OF_PRODUCTS * (1.0 + np.abs(plain).sum(axis=1))
            reach[number, : len(bias)] = [norm(row) for row in weight]
            rounding[:, number] = _spectral(weight), relative * norm(weight), relative * norm(bias), relative
            doubt = scaled.doubts[number]
            if doubt is not None:
                most = _most(scaled.slopes[number - 1], scaled.rectified[number - 1])
                part = slice(0, len(bias))
                _add_doubts(doubt[order] * np.append(most, 1.0), reach[number, part], slack[number, part], rounding[:, number])
    layers = Layers(
        units=np.array(sizes, dtype=np.int64),
        relus=np.array(relus, dtype=np.int64),
        first=np.cumsum([0, *relus[:-1]], dtype=np.int64),
        start=starts.astype(np.int64),
        weights=aligned(weights),
        biases=aligned(biases),
        slopes=aligned(slopes),
        reach=aligned(reach),
        slack=aligned(slack),
        twins=_twins(tree, orders, width),
        growth=rounding[0],
        rounding_of_sums=rounding[1],
        rounding_of_biases=rounding[2],
        rounding=rounding[3],
        composed=np.array([doubt is not None for doubt in scaled.doubts], dtype=np.int64),
    )
    return layers, np.vstack([scaled.weights[0][orders[0]].T, scaled.biases[0][orders[0]]])


def _add_doubts(doubt: Floats, reach: Floats, slack: Floats, rounding: Floats) -> None:
    """Add what the weights of a folded layer may be wrong by to what is known of its rounding.  Changes `reach`, `slack` and `rounding`.

    An error D in the weights adds D times the rows before to those of the layer, so its norm counts like the rounding of sums; that of one row must be at most its `reach` times `rounding[3]`.
    """
    weights, total = [norm(row) for row in doubt[:, :-1]], norm(doubt[:, :-1])
    rounding[:3] += total, total, norm(doubt[:, -1])
    more = max((each / there for each, there in zip(weights, reach, strict=True) if there > 0.0), default=0.0)
    more = min(max(more, ROUNDOFF), _MOST_DOUBT)
    rounding[3] += more
    reach[:] = np.maximum(reach, np.array(weights) / more)
    slack += doubt[:, -1]


def _most(slopes: Floats, rectified: Mask) -> Floats:
    """The most that units multiply their preactivations with."""
    return np.where(rectified, np.maximum(np.abs(slopes), 1.0), np.abs(slopes))


def _twins(tree: Tree, orders: "list[np.ndarray]", width: int) -> np.ndarray:
    """The unit that each one is a multiple of, in the order of the layers here."""
    twins = np.full((len(orders), width), -1, dtype=np.int64)
    for number, (order, found) in enumerate(zip(orders, tree.twins, strict=True)):
        places = np.argsort(order)
        twins[number, : len(order)] = np.where(found[order] >= 0, places[found[order]], -1)
    return twins


def is_moderate(layers: Layers, first: Floats) -> bool:
    """Whether no row can become so large that its square overflows."""
    size = norm(first)
    with np.errstate(over="ignore"):  # infinity is not moderate
        for growth, bias in zip(layers.growth[1:], layers.biases[1:], strict=True):
            size = max(1.0, size) * max(1.0, growth) + norm(bias)
    return bool(size < MODERATE)


def norm(values: Floats) -> float:
    """The 2-norm, also of numbers whose squares underflow."""
    largest = float(np.abs(values).max(initial=0.0))
    return largest * float(np.linalg.norm(values / largest)) if largest > 0.0 else 0.0


def _spectral(matrix: Floats) -> float:
    """A bound on the largest singular value: the 16th root of the sum of 16th powers of all of them."""
    scale = norm(matrix)
    if scale == 0.0:
        return 0.0
    power = matrix / scale
    power = power @ power.T if len(power) <= power.shape[1] else power.T @ power
    for _ in range(2):
        power = power @ power
    return 1.001 * scale * float(np.linalg.norm(power)) ** 0.125
