"""Small random networks and domains as plain arrays, mostly odd: equal, opposite, dependent, dead or all but parallel units."""

from math import comb
from typing import NamedTuple

import numpy as np

from tessella import Box, Domain, Layer, Network, Polytope


class Case(NamedTuple):
    """The arguments of `brute_force.count_regions`, in its order."""

    layers: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
    lower: np.ndarray
    upper: np.ndarray
    matrix: np.ndarray | None = None
    offset: np.ndarray | None = None

    @property
    def network(self) -> Network:
        return Network(tuple(Layer(*layer) for layer in self.layers))

    @property
    def domain(self) -> Domain:
        box = Box(self.lower, self.upper)
        return box if self.matrix is None else Polytope(self.matrix, self.offset, box)

    @property
    def free(self) -> int:
        return int((self.lower < self.upper).sum())

    @property
    def units(self) -> int:
        return sum(int(layer[2].sum()) for layer in self.layers)


def random_case(seed, largest=400, most_inputs=8, thin=True) -> Case:
    """A network and a domain; as many hyperplanes as it has units make at most `largest` regions in one layer.

    If not `thin`, units are equal or dependent, or clearly not.
    """
    rng = np.random.default_rng(seed)
    lower, upper, inside = random_box(rng, int(rng.integers(1, most_inputs + 1)))
    sizes = random_sizes(rng, int((lower < upper).sum()), largest)
    layers = random_layers(rng, lower, upper, inside, sizes, 12 if thin else 8)
    if rng.random() < 0.3:
        return Case(layers, lower, upper, *random_walls(rng, lower, upper, inside))
    return Case(layers, lower, upper)


def leaky_case(seed, **options) -> Case:
    """A random case whose rectified units have slopes on their inactive side."""
    return with_slopes(random_case(seed, **options), np.random.default_rng([11, *np.atleast_1d(seed)]))


def with_slopes(case, rng) -> Case:
    """The same case with slopes: all the same, or of all kinds."""
    slopes = [[-1.0], [0.01], [0.2], [1.5], [-1.0, -0.5, 0.0, 0.01, 0.2, 0.5, 1.5, 2.0]][rng.integers(5)]
    layers = [(weight, bias, mask, np.where(mask, rng.choice(slopes, len(bias)), 0.0)) for weight, bias, mask in case.layers]
    return case._replace(layers=layers)


def random_sizes(rng, free, largest):
    """Units per layer, one to four layers."""
    while True:
        sizes = [int(size) for size in rng.integers(1, 9, rng.integers(1, 5))]
        units = sum(sizes)
        if sum(comb(units, chosen) for chosen in range(free + 1)) <= largest:
            return sizes


def random_box(rng, dim):
    """Corners, and a point inside that has few digits."""
    kind = rng.integers(5)
    if kind == 0:
        lower, upper = np.zeros(dim), np.ones(dim)
    elif kind <= 2:
        lower, upper = -np.ones(dim), np.ones(dim)
    elif kind == 3:
        lower, upper = rng.integers(-12, 0, dim) / 4.0, rng.integers(1, 13, dim) / 4.0
    else:
        lower, upper = -rng.uniform(0.1, 3.0, dim), rng.uniform(0.1, 3.0, dim)
        if rng.random() < 0.2:  # inputs of very different size
            scale = 10.0 ** rng.integers(-4, 5, dim)
            lower, upper = lower * scale, upper * scale
    inside = lower + (upper - lower) * rng.integers(1, 8, dim) / 8.0
    if rng.random() < 0.15:
        fixed = rng.random(dim) < 0.4
        lower, upper = np.where(fixed, inside, lower), np.where(fixed, inside, upper)
    return lower, upper, inside


def random_walls(rng, lower, upper, inside):
    """Inequalities that leave a neighbourhood of a point."""
    count, width = int(rng.integers(1, 4)), np.where(upper > lower, upper - lower, 1.0)
    rows = rng.integers(-2, 3, (count, len(lower))) / 1.0 if rng.random() < 0.5 else rng.standard_normal((count, len(lower)))
    if rng.random() < 0.2:
        rows[0] = 0.0
    reach = np.abs(rows) @ width
    return rows, rows @ inside + np.where(reach > 0.0, reach, 1.0) * rng.choice([0.0625, 0.125, 0.25, 0.5], count)


def random_layers(rng, lower, upper, inside, sizes, kinds):
    """A network whose units are odd in one or two ways per layer."""
    layers, before = [], len(lower)
    kind = rng.choice(["generic", "digits", "signs"], p=[0.3, 0.35, 0.35])
    no_biases, skips = rng.random() < 0.15, rng.random() < 0.2
    for number, size in enumerate(sizes):
        weight, bias = rng.standard_normal((size, before)), rng.standard_normal(size) * rng.choice([0.2, 0.5, 1.0])
        if kind == "digits":
            weight, bias = np.round(4 * weight) / 4, np.round(4 * bias) / 4
        elif kind == "signs":
            weight, bias = rng.integers(-1, 2, (size, before)) * 1.0, rng.integers(-2, 3, size) / 2.0
        if no_biases:
            bias[:] = 0.0
        if number == 0:
            make_odd_in_space(rng, weight, bias, (lower, upper, inside))
        for _ in range(rng.integers(0, 3)):
            make_odd(rng, weight, bias, kinds)
        mask = rng.random(size) < 0.6 if skips else np.ones(size, dtype=bool)
        layers.append((weight, bias, mask))
        before = size
    if rng.random() < 0.1:  # sizes that floats can hold and tolerances cannot
        scale = 2.0 ** rng.integers(-30, 31)
        layers[0] = (layers[0][0] * scale, layers[0][1] * scale, layers[0][2])
    return layers


def make_odd_in_space(rng, weight, bias, box):
    """Move hyperplanes of the first layer to where they meet the box or each other."""
    lower, upper, inside = box
    size, dim = weight.shape
    kind = rng.integers(8)
    corner = np.where(rng.random(dim) < 0.5, lower, upper)
    if kind == 0:  # all through one point
        bias[:] = -(weight @ inside)
    elif kind == 1:  # all through one corner
        bias[:] = -(weight @ corner)
    elif kind == 2:  # some through corners or the point
        for unit in np.flatnonzero(rng.random(size) < 0.6):
            bias[unit] = -(weight[unit] @ (inside if rng.random() < 0.5 else np.where(rng.random(dim) < 0.5, lower, upper)))
    elif kind == 3:  # a grid, some of it in faces of the box
        for unit in range(size):
            axis = rng.integers(dim)
            weight[unit] = rng.choice([-1.0, 1.0]) * np.eye(dim)[axis]
            bias[unit] = -weight[unit, axis] * rng.choice(
                [lower[axis], upper[axis], inside[axis], (lower[axis] + upper[axis]) / 2]
            )


def make_odd(rng, weight, bias, kinds):
    """Make one unit depend on others, or nearly so."""
    size = len(bias)
    unit, other, third = (int(place) for place in rng.integers(size, size=3))
    kind = rng.integers(kinds)
    if kind == 0:
        weight[unit], bias[unit] = weight[other], bias[other]
    elif kind == 1:
        weight[unit], bias[unit] = -weight[other], -bias[other]
    elif kind == 2:
        weight[unit], bias[unit] = weight[other] + weight[third], bias[other] + bias[third]
    elif kind == 3:
        factor = 2.0 ** rng.integers(-3, 4)
        weight[unit], bias[unit] = factor * weight[other], factor * bias[other]
    elif kind == 4:
        weight[unit] = 0.0
        bias[unit] = rng.choice([bias[unit], 0.0])
    elif kind == 5:
        bias[unit] = rng.choice([-100.0, 100.0])
    elif kind == 6:
        weight[unit] = weight[other]  # parallel
    elif kind == 7:
        weight[unit] = -np.abs(weight[unit])
        bias[unit] = 0.0
    elif kind == 8:  # all but equal: a region thinner than any tolerance, which is there all the same
        weight[unit], bias[unit] = weight[other], bias[other] + rng.choice([-1.0, 1.0]) * 10.0 ** -rng.integers(6, 16)
    elif kind == 9:  # all but dependent
        weight[unit], bias[unit] = weight[other] + weight[third], bias[other] + bias[third]
        weight[unit, rng.integers(weight.shape[1])] += rng.choice([-1.0, 1.0]) * 10.0 ** -rng.integers(6, 16)
