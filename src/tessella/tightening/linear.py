"""Linear bounds substituted backwards through the layers, as in CROWN and DeepPoly.

A layer's preactivation is an affine function of the layer before.  There each ReLU output lies between two lines of its own
preactivation: h <= s g + t with the chord's slope s, and h >= a g with a = 0 or 1.  (Of a leaky unit with a slope beyond 1 the chord is the lower line.)  Putting in, for each coefficient, the line
of the right side gives an affine bound in terms of the layer before that, and so on down to the inputs, where the box is
put in (Zhang et al., NeurIPS 2018; Singh et al., POPL 2019).

The bound that comes out is moved by everything that rounding may have done on the way: an error in a coefficient costs at
most the error times the largest value of what it multiplies.
"""

from dataclasses import dataclass

import numpy as np

from tessella.domain import Box
from tessella.kernel.deadline import NEVER, Deadline
from tessella.network import Floats, Layer, Mask, Network
from tessella.numerics import ROUNDOFF
from tessella.preactivation import passed_on
from tessella.tightening.rounding import gamma, lost

_UNDERFLOWS = 1e-290  # smaller products may be wrong by more than their relative rounding
_WORK = 100_000_000  # multiplications between two looks at the time: a tenth of a second
_ENTRIES = 2_000_000  # of one matrix; about ten are in memory


@dataclass(frozen=True, slots=True)
class Lines:
    """The two lines around each unit's output."""

    upper_slope: Floats
    upper_offset: Floats
    lower_slope: Floats
    lower_offset: Floats


def lines(layer: Layer, low: Floats, high: Floats) -> Lines:
    """Lines around what each unit passes on, for every preactivation in [low, high]."""
    plain = relu_lines(layer.rectified, low, high)
    if layer.is_plain:
        return plain
    inner, slope = layer.rectified & (low < 0.0) & (high > 0.0), layer.slope
    bends, settled = inner & (slope != 0.0), ~layer.rectified | (high <= 0.0)
    width = np.where(inner, high - low, 1.0)
    chord = np.clip((high - slope * low) / width, np.minimum(slope, 1.0), np.maximum(slope, 1.0))
    # any slope will do if the offset keeps both ends on its side
    ends, sizes = (
        np.stack([(slope - chord) * low, (1.0 - chord) * high]),
        (np.abs(slope) + np.abs(chord) + 1.0) * (np.abs(low) + np.abs(high)),
    )
    slack = 8.0 * ROUNDOFF * sizes + np.finfo(np.float64).tiny
    above, below = ends.max(axis=0) + slack, ends.min(axis=0) - slack
    touching = np.where(high > -low, 1.0, slope)
    upper, lower = np.where(slope > 1.0, touching, chord), np.where(slope > 1.0, chord, touching)
    return Lines(
        np.where(bends, upper, np.where(settled, slope, plain.upper_slope)),
        np.where(bends, np.where(slope > 1.0, 0.0, above), plain.upper_offset),
        np.where(bends, lower, np.where(settled, slope, plain.lower_slope)),
        np.where(bends & (slope > 1.0), below, 0.0),
    )


def relu_lines(rectified: Mask, low: Floats, high: Floats) -> Lines:
    """The same for units that are ReLUs, or linear."""
    unstable = rectified & (low < 0.0) & (high > 0.0)
    passes = ~rectified | (low >= 0.0)
    width = np.where(unstable, high - low, 1.0)
    slope = np.where(unstable, np.clip(high / width, 0.0, 1.0), np.where(passes, 1.0, 0.0))
    # any slope in [0, 1] will do if the offset keeps both ends below the line
    offset = np.where(unstable, np.maximum(-slope * low, (1.0 - slope) * high) * (1.0 + 4.0 * ROUNDOFF), 0.0)
    offset += np.where(unstable & (offset < _UNDERFLOWS), np.finfo(np.float64).tiny, 0.0)
    lower = np.where(unstable, np.where(high > -low, 1.0, 0.0), np.where(passes, 1.0, 0.0))
    return Lines(slope, offset, lower, np.zeros(len(low)))


def linear(
    network: Network, box: Box, known: list[tuple[Floats, Floats]], units: Mask | None = None, deadline: Deadline = NEVER
) -> tuple[Floats, Floats]:
    """Bounds on the preactivations of the layer after those whose bounds are known; infinite for units that are not asked for, or come too late.

    Parameters
    ----------
    network
        The network.
    box
        The inputs.
    known
        Bounds on the preactivations of all layers before.
    units
        Which units to bound; None for all.
    deadline
        When to stop.
    """
    layer, steps = network.layers[len(known)], _steps(network, box, known)
    wanted = np.arange(layer.units) if units is None else np.flatnonzero(units)
    lower, upper = np.full(layer.units, -np.inf), np.full(layer.units, np.inf)
    work = layer.inputs + sum(before.parameters for before in network.layers[: len(known)])
    widest = max(before.units for before in network.layers[: len(known)])
    size = max(min(_WORK // work, _ENTRIES // widest), 1)
    for begin in range(0, len(wanted), size):
        if deadline.passed:
            break
        some = wanted[begin : begin + size]
        rows = layer.weight[some]
        weight, bias = rows if isinstance(rows, np.ndarray) else np.asarray(rows.toarray()), layer.bias[some]
        upper[some] = _upper(steps, box, weight, bias)
        lower[some] = -_upper(steps, box, -weight, -bias)
    return lower, upper


@dataclass(frozen=True, slots=True)
class _Step:
    """A layer to substitute, with what is known of its units: how large their outputs are, and the sums that make their preactivations.

    What underflows is at most `most` times what is lost of products with a number of at least `least`.
    """

    layer: Layer
    line: Lines
    largest: Floats
    inner: Floats
    most: float
    least: float


def _steps(network: Network, box: Box, known: list[tuple[Floats, Floats]]) -> list[_Step]:
    """The layers whose bounds are known, last one first."""
    steps = list[_Step]()
    for number, (low, high) in enumerate(known):
        layer = network.layers[number]
        line = lines(layer, low, high)
        most = np.maximum(np.abs(line.upper_slope), np.abs(line.lower_slope))
        largest = np.maximum(np.abs(low), np.abs(high)) * np.maximum(most, 1.0)
        reach = np.maximum(np.abs(box.lower), np.abs(box.upper)) if number == 0 else _reach(network, known, number - 1)
        inner = np.asarray(abs(layer.weight) @ reach) + np.abs(layer.bias)
        inner = inner + lost(layer.inputs, layer.weight, reach)
        weight = layer.weight if isinstance(layer.weight, np.ndarray) else layer.weight.data
        offsets = line.upper_slope, line.upper_offset, line.lower_slope, line.lower_offset
        least = min(map(_least, (weight, layer.bias, inner, largest, *offsets)))
        steps.append(_Step(layer, line, largest, inner, 8.0 * (1.0 + float(reach.sum() + largest.sum())), least))
    return steps[::-1]


def _least(values: Floats) -> float:
    """The smallest size of a number that is not 0; 1 if there is none, or it is larger."""
    sizes = np.abs(values)
    return float(sizes.min(initial=1.0, where=sizes > 0.0))


def _upper(steps: list[_Step], box: Box, coefficients: Floats, constant: Floats) -> Floats:
    """Upper bounds on coefficients @ (outputs of the last known layer) + constant."""
    constant, error = constant.copy(), ROUNDOFF * np.abs(constant)
    for step in steps:
        layer, line, largest = step.layer, step.line, step.largest
        positive, negative = np.maximum(coefficients, 0.0), np.minimum(coefficients, 0.0)
        constant = constant + positive @ line.upper_offset
        error = error + gamma(layer.units) * (np.abs(coefficients) @ (line.upper_offset + largest) + np.abs(constant))
        if not layer.is_plain:
            constant = constant + negative @ line.lower_offset
            error = error + gamma(layer.units) * (np.abs(coefficients) @ np.abs(line.lower_offset) + np.abs(constant))
        slopes = positive * line.upper_slope + negative * line.lower_slope
        constant = constant + slopes @ layer.bias
        error = error + gamma(layer.units) * (np.abs(slopes) @ step.inner + np.abs(constant))
        error = error + step.most * (lost(layer.units, coefficients, step.least) + lost(layer.units, slopes, step.least))
        coefficients = np.asarray(slopes @ layer.weight)
    positive, negative = np.maximum(coefficients, 0.0), np.minimum(coefficients, 0.0)
    reach = np.maximum(np.abs(box.lower), np.abs(box.upper))
    error = error + gamma(box.dim) * (np.abs(coefficients) @ reach + np.abs(constant))
    return positive @ box.upper + negative @ box.lower + constant + error + lost(box.dim, coefficients, reach)


def _reach(network: Network, known: list[tuple[Floats, Floats]], number: int) -> Floats:
    """The largest absolute output of each unit of a layer."""
    low, high = passed_on(network.layers[number], *known[number])
    return np.maximum(np.abs(low), np.abs(high))
