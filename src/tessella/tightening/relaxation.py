"""The triangle relaxation (Lemma 1) of the layers before a target, as rows in a unit box for the LP kernel.

Variables are the free inputs and the outputs h of unstable units; everything else is substituted.  Each unstable unit
has two rows, with g its preactivation as an affine expression of earlier variables:

    h >= g              (its logical is an equality where the unit is decided to be active)
    h <= s g + t        (the chord, dropped where the unit is decided)

and h lies in [0, H] (of a leaky unit, h stands for the ReLU in slope * g + (1 - slope) * h), or is 0 where the unit is decided to be inactive.  Every expression carries a bound on its own rounding error,
by which its rows are relaxed, so that the true points of the network satisfy the rows as they are stored.
"""

from dataclasses import dataclass

import numpy as np

from tessella.domain import Box, Domain
from tessella.network import Floats, Layer, Mask, Network
from tessella.numerics import ROUNDOFF
from tessella.tightening.linear import relu_lines
from tessella.tightening.rounding import gamma, lost

Pair = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True)
class Affine:
    """Affine expressions of the variables: coefficients @ v + constant, right up to error."""

    coefficients: Floats
    constant: Floats
    error: Floats

    def through(self, layer: Layer, reach: Floats) -> "Affine":
        """The preactivations of a layer that reads these; `reach` is the variables' largest absolute value."""
        size = np.abs(self.coefficients) @ reach + np.abs(self.constant)
        coefficients = np.asarray(layer.weight @ self.coefficients)
        constant = np.asarray(layer.weight @ self.constant) + layer.bias
        doubt = self.error + gamma(layer.inputs) * size + lost(len(reach), self.coefficients, reach)
        error = abs(layer.weight) @ doubt + gamma(layer.inputs) * np.abs(layer.bias)
        tiny = lost(layer.inputs, layer.weight, self.coefficients) * (1.0 + float(reach.sum()))
        tiny += lost(layer.inputs, layer.weight, self.constant) + lost(layer.inputs, layer.weight, doubt)
        return Affine(coefficients, constant, np.asarray(error) + tiny)


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A relaxation with all variables scaled to [0, 1] and all rows to a largest entry of 1."""

    # matrix, row_lower, row_upper: the rows: first the domain's own, then two per unstable unit
    matrix: Floats
    row_lower: Floats
    row_upper: Floats
    upper: Floats  # the variables' upper ends: 1, or 0 for what is fixed
    first: int  # the number of rows that belong to the domain; unit u has rows ``first + 2 u`` and ``first + 2 u + 1``
    variables: np.ndarray  # the column of each unstable unit's output
    slopes: Floats  # the slope of each one's chord
    units: list[tuple[int, int]]  # layer and number of each unstable unit
    active_lower: Floats  # the lower end that makes a unit's first row an equality
    open_upper: Floats  # the upper end at which a unit's second row says nothing
    norms: Floats  # what each row was divided by
    # offset, scale: variables are offset + scale * (a number in [0, 1])
    offset: Floats
    scale: Floats
    target: Affine  # the next layer's preactivations in terms of the unscaled variables

    def _lost(self, row: Floats) -> float:
        return lost(len(row), row, self.scale) + lost(len(row), row, self.offset)

    def objective(self, unit: int, sign: float) -> tuple[Floats, float, float, float]:
        """Coefficients in [0, 1] variables, constant, error and size of a target unit's preactivation times a sign."""
        row = self.target.coefficients[unit]
        size = np.abs(row) @ np.maximum(np.abs(self.offset), np.abs(self.offset + self.scale)) + abs(self.target.constant[unit])
        constant = float(row @ self.offset + self.target.constant[unit])
        error = float(self.target.error[unit] + 2.0 * gamma(len(row)) * size + self._lost(row))
        return sign * row * self.scale, sign * constant, error, float(size)


def relax(network: Network, domain: Domain, known: list[Pair]) -> Relaxation:
    """The relaxation of all layers whose bounds are known, with the next layer as target."""
    box = domain.box
    columns = np.flatnonzero(box.free)
    unstable = [layer.rectified & (low < 0.0) & (high > 0.0) for layer, (low, high) in zip(network.layers, known, strict=False)]
    count = len(columns) + sum(int(mask.sum()) for mask in unstable)
    offset, scale = np.zeros(count), np.ones(count)
    offset[: len(columns)], scale[: len(columns)] = box.lower[columns], (box.upper - box.lower)[columns]
    reach = np.ones(count)
    reach[: len(columns)] = np.maximum(np.abs(box.lower), np.abs(box.upper))[columns]
    rows = _Rows(count, offset, scale)
    _domain_rows(rows, domain, columns)
    values: Affine | None = None  # the outputs of the layer before; None for the inputs themselves
    first, position, variables, units = len(rows.lower), len(columns), list[int](), list[tuple[int, int]]()
    slopes = list[float]()
    for number, (low, high) in enumerate(known):
        layer = network.layers[number]
        before = values.through(layer, reach) if values else _first_layer(layer, box, columns, count)
        line = relu_lines(layer.rectified, low, high)
        coefficients, constant, error = _inactive(before, layer, reach, changing=unstable[number] | (high <= 0.0))
        for unit in np.flatnonzero(unstable[number]):
            scale[position] = reach[position] = high[unit]
            rows.add_unit(before, int(unit), position, float(line.upper_slope[unit]), float(line.upper_offset[unit]))
            coefficients[unit, position] = 1.0 - layer.slope[unit]
            if layer.slope[unit]:  # one minus it rounds
                error[unit] += 2.0 * ROUNDOFF * (1.0 + abs(layer.slope[unit])) * reach[position]
            variables.append(position)
            slopes.append(float(line.upper_slope[unit]))
            units.append((number, int(unit)))
            position += 1
        values = Affine(coefficients, constant, error)
    layer = network.layers[len(known)]
    target = values.through(layer, reach) if values else _first_layer(layer, box, columns, count)
    return rows.finish(first, np.array(variables, dtype=np.int64), np.array(slopes), units, target)


def _inactive(before: Affine, layer: Layer, reach: Floats, *, changing: Mask) -> tuple[Floats, Floats, Floats]:
    """What units pass on, as far as it does not depend on their ReLUs; `changing` are those that may be inactive."""
    slope = np.where(layer.rectified & ~changing, 1.0, layer.slope)
    coefficients, constant = before.coefficients * slope[:, None], before.constant * slope
    error = before.error * np.abs(slope)
    if not layer.is_plain:
        size = np.abs(coefficients) @ reach + np.abs(constant)
        tiny = float(reach.sum()) + 1.0
        error = (1.0 + 4.0 * ROUNDOFF) * error + np.where(
            slope == 0.0, 0.0, 4.0 * ROUNDOFF * size + tiny * np.finfo(np.float64).tiny
        )
    return coefficients, constant, error


def _first_layer(layer: Layer, box: Box, columns: np.ndarray, count: int) -> Affine:
    """The first layer's preactivations in terms of the free inputs."""
    weight = layer.dense()
    coefficients = np.zeros((layer.units, count))
    coefficients[:, : len(columns)] = weight[:, columns]
    fixed = np.where(box.free, 0.0, box.lower)
    error = gamma(box.dim) * (np.abs(weight) @ np.abs(fixed) + np.abs(layer.bias)) + lost(box.dim, weight, fixed)
    return Affine(coefficients, weight @ fixed + layer.bias, error)


def _domain_rows(rows: "_Rows", domain: Domain, columns: np.ndarray) -> None:
    if isinstance(domain, Box):
        return
    fixed = np.where(domain.box.free, 0.0, domain.box.lower)
    for normal, limit in zip(domain.matrix, domain.offset, strict=True):
        row = np.zeros(rows.count)
        row[: len(columns)] = normal[columns]
        slack = gamma(domain.dim) * float(np.abs(normal) @ np.abs(fixed) + abs(limit)) + lost(domain.dim, normal, fixed)
        rows.add(row, limit - float(normal @ fixed), slack)


class _Rows:
    """Rows in the making: scaled, and with finite ends on both sides."""

    def __init__(self, count: int, offset: Floats, scale: Floats) -> None:
        self.count, self.offset, self.scale = count, offset, scale
        self.matrix: list[Floats] = []
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.norms: list[float] = []
        self.active_lower: list[float] = []
        self.open_upper: list[float] = []

    def add(self, row: Floats, limit: float, slack: float) -> tuple[float, float, float]:
        """One row <= limit + slack; returns its range and its size."""
        scaled = row * self.scale
        shift = float(row @ self.offset)
        size = float(np.abs(scaled).sum() + np.abs(row) @ np.abs(self.offset) + abs(limit))
        slack = slack + 2.0 * gamma(self.count) * size + lost(self.count, row, self.scale) + lost(self.count, row, self.offset)
        largest = float(np.abs(scaled).max(initial=0.0))
        norm = 2.0 ** np.round(np.log2(largest)) if largest > 0.0 else 1.0  # a power of two: no rounding
        share = 1.0 / max(norm, 1.0)
        tiny = lost(self.count, scaled, share) + lost(1, limit - shift + slack, share)
        scaled, slack = scaled / norm, slack / norm + tiny
        reach = 4.0 * ROUNDOFF * self.count
        low = float(np.minimum(scaled, 0.0).sum()) * (1.0 + reach) - reach
        high = float(np.maximum(scaled, 0.0).sum()) * (1.0 + reach) + reach
        end = (limit - shift) / norm + slack
        end += abs(end) * 4.0 * ROUNDOFF
        self.matrix.append(scaled)
        self.norms.append(norm)
        self.lower.append(min(low, end))
        self.upper.append(min(high, end))
        return high, end, slack

    def add_unit(self, before: Affine, unit: int, position: int, slope: float, offset: float) -> None:
        """The two rows of an unstable unit."""
        row, constant, error = before.coefficients[unit], float(before.constant[unit]), float(before.error[unit])
        under = row.copy()
        under[position] -= 1.0
        _, end, slack = self.add(under, -constant, error)
        self.active_lower.append(end - 2.0 * slack - abs(end) * 8.0 * ROUNDOFF)
        over = -slope * row
        over[position] += 1.0
        size = slope * (float(np.abs(row) @ np.maximum(np.abs(self.offset), np.abs(self.offset + self.scale))) + abs(constant))
        high, _, _ = self.add(over, slope * constant + offset, slope * error + 4.0 * ROUNDOFF * (size + offset))
        self.open_upper.append(high)

    def finish(
        self, first: int, variables: np.ndarray, slopes: Floats, units: list[tuple[int, int]], target: Affine
    ) -> Relaxation:
        return Relaxation(
            np.array(self.matrix).reshape(len(self.matrix), self.count),
            np.array(self.lower),
            np.array(self.upper),
            np.ones(self.count),
            first,
            variables,
            slopes,
            units,
            np.array(self.active_lower),
            np.array(self.open_upper),
            np.array(self.norms),
            self.offset,
            self.scale,
            target,
        )
