"""Networks and domains that are meant to break claims, each from one seed.

Every case comes with what `brute_force` reads to find the truth.  Where a domain has many inputs that are few in truth, because units read sums of them, the
truth is that of the few: a sum of inputs takes exactly the values between the sums of their ends.
"""

from typing import NamedTuple

import numpy as np

from helpers.brute_force import region_patterns
from helpers.brute_force_anywhere import patterns_anywhere
from helpers.odd_networks import Case, make_odd, make_odd_in_space, random_sizes, random_walls

_SLOPES = ([0.01], [-1.0], [0.2, 0.0], [1.5, -0.5, 2.0], [-1.0, 0.0, 0.01], [1e-200, 2.0**-900], [-1e6, 1e-6])


class Prey(NamedTuple):
    """What verbs are asked about, what the truth is found from, and how it was made, in words."""

    case: Case
    truth: Case
    kinds: str

    def patterns(self):
        """The patterns of all regions."""
        ends = np.concatenate([self.truth.lower, self.truth.upper])
        return set(patterns_anywhere(*self.truth)) if np.isinf(ends).any() else region_patterns(*self.truth)


def draw(seed) -> Prey:
    """A network and a domain."""
    rng, kinds = np.random.default_rng([2026, seed]), []

    def chosen(*choices, p=None):
        kinds.append(str(rng.choice(choices, p=p)))
        return kinds[-1]

    dim = int(rng.integers(1, 7))
    lower, upper, inside = _box(rng, dim, chosen("unit", "symmetric", "tiny", "huge", "far", "mixed", "corner", "space"))
    dim = len(lower)
    if rng.random() < 0.15 and dim > 1:
        fixed = rng.random(dim) < 0.4
        lower, upper = np.where(fixed, inside, lower), np.where(fixed, inside, upper)
        kinds.append("fixed")
    endless = bool(np.isinf(np.concatenate([lower, upper])).any())
    free = int((lower < upper).sum())
    sizes = random_sizes(rng, free, 60 if endless else 150 if rng.random() < 0.8 else 400)
    entries = chosen("normal", "integer", "ternary", "quantised", "sparse", "float32")
    layers = _layers(rng, (lower, upper, inside), sizes, entries)
    _scale(rng, layers, lower, upper, chosen("plain", "rows", "layers", "entries", "underflow", p=[0.5, 0.15, 0.15, 0.1, 0.1]))
    layers = _slopes(rng, layers, kinds)
    walls = (None, None)
    if rng.random() < 0.15 and not endless:
        walls = random_walls(rng, lower, upper, inside)
        kinds.append("polytope")
    case = Case(layers, lower, upper, *walls)
    if free and not endless and walls[0] is None and rng.random() < 0.15:
        kinds.append("copies")
        return Prey(_with_copies(rng, case), case, " ".join(kinds))
    if rng.random() < 0.1 and not endless and walls[0] is None:
        kinds.append("composed")
        case = _composed(rng, case)
    return Prey(case, case, " ".join(kinds))


def _box(rng, dim, kind):
    """Corners, and a point inside with few digits."""
    lower, upper = -np.ones(dim), np.ones(dim)
    if kind == "unit":
        lower = np.zeros(dim)
    elif kind == "tiny":
        size = 2.0 ** -float(rng.choice([20, 60, 300, 700, 1000, 1060]))
        lower, upper = lower * size, upper * size
    elif kind == "huge":
        size = 2.0 ** float(rng.choice([20, 60, 300, 500]))
        lower, upper = lower * size, upper * size
    elif kind == "far":
        centre = rng.integers(-8, 9, dim) * 2.0 ** float(rng.choice([0, 10, 30, 50]))
        width = 2.0 ** float(rng.choice([0, -3, -20])) * np.maximum(1.0, np.abs(centre) * 2.0**-40)
        lower, upper = centre - width, centre + width
    elif kind == "mixed":
        size = 10.0 ** rng.integers(-12, 13, dim)
        lower, upper = lower * size, upper * size
    elif kind == "corner":
        lower, upper = np.zeros(dim), np.where(rng.random(dim) < 0.5, 1.0, 2.0**-30)
    inside = lower + (upper - lower) * rng.integers(1, 8, dim) / 8.0
    if kind == "space":
        dim = min(dim, 3)
        lower, upper, inside = lower[:dim], upper[:dim], inside[:dim]
        lower = np.where(rng.random(dim) < 0.6, -np.inf, lower)
        upper = np.where(rng.random(dim) < 0.6, np.inf, upper)
    return lower, upper, inside


def _layers(rng, box, sizes, entries):
    """Weights and biases of one kind, with units that depend on others."""
    layers, before = [], len(box[0])
    finite = [np.where(np.isinf(end), other, end) for end, other in zip(box[:2], (box[2] - 1.0, box[2] + 1.0), strict=True)]
    reach = float(np.abs(np.concatenate(finite)).max())
    for number, size in enumerate(sizes):
        weight, bias = rng.standard_normal((size, before)), rng.standard_normal(size) * rng.choice([0.0, 0.3, 1.0])
        if entries == "integer":
            weight, bias = rng.integers(-5, 6, (size, before)) * 1.0, rng.integers(-5, 6, size) * 1.0
        elif entries == "ternary":
            weight, bias = rng.integers(-1, 2, (size, before)) * 1.0, rng.integers(-2, 3, size) / 2.0
        elif entries == "quantised":
            step = float(rng.choice([2.0**-4, 0.1, 0.0123]))
            weight, bias = np.round(weight / step) * step, np.round(bias / step) * step
        elif entries == "sparse":
            weight = np.where(rng.random(weight.shape) < 0.4, weight, 0.0)
        elif entries == "float32":
            weight, bias = weight.astype(np.float32).astype(float), bias.astype(np.float32).astype(float)
        if number == 0:
            bias = bias * min(max(reach, 1e-290), 1e290)
            make_odd_in_space(rng, weight, bias, (*finite, box[2]))
        for _ in range(rng.integers(0, 4)):
            make_odd(rng, weight, bias, 12)
            if rng.random() < 0.3:  # a multiple that is not a power of two
                unit, other = rng.integers(size, size=2)
                factor = float(rng.choice([3.0, 1 / 3, -0.1, 7.5]))
                weight[unit], bias[unit] = factor * weight[other], factor * bias[other]
        mask = rng.random(size) < 0.6 if rng.random() < 0.15 else np.ones(size, dtype=bool)
        layers.append([weight, bias, mask])
        before = size
    return layers


def _scale(rng, layers, lower, upper, kind):
    """Make numbers of very different size of a network's."""
    finite = np.abs(np.where(np.isinf(lower) | np.isinf(upper), 1.0, np.maximum(np.abs(lower), np.abs(upper))))
    room = 900.0 - np.log2(max(float(finite.max()), 1.0))
    for number, layer in enumerate(layers):
        weight = layer[0]
        if kind == "rows":
            factors = 2.0 ** rng.uniform(-200, 200, len(weight))
            layer[0], layer[1] = weight * factors[:, None], layer[1] * factors
        elif kind == "layers":
            factor = 2.0 ** rng.uniform(-room / len(layers), room / len(layers))
            layer[0], layer[1] = weight * factor, layer[1] * factor
        elif kind == "entries":
            layer[0] = weight * 10.0 ** rng.integers(-20, 1, weight.shape)
        elif kind == "underflow":
            factor = 2.0 ** -rng.uniform(300, 900)
            layer[0], layer[1] = weight * factor, layer[1] * (factor if number == 0 or rng.random() < 0.5 else 0.0)


def _slopes(rng, layers, kinds):
    if rng.random() < 0.7:
        return [tuple(layer) for layer in layers]
    kinds.append("leaky")
    slopes = _SLOPES[rng.integers(len(_SLOPES))]
    return [(*layer, np.where(layer[2], rng.choice(slopes, len(layer[1])), 0.0)) for layer in layers]


def _with_copies(rng, case):
    """The same network reading every input as a sum of several, all in the same part of the range."""
    copies = int(rng.choice([2, 4, 32, 128]))
    places = np.repeat(np.arange(len(case.lower)), copies)
    (first, *others), order = case.layers, rng.permutation(len(places))
    lower, upper = case.lower[places] / copies, case.upper[places] / copies
    places, lower, upper = places[order], lower[order], upper[order]
    sums = np.array([[copies * end[places == place][0] for place in range(len(case.lower))] for end in (lower, upper)])
    if not (sums == np.stack([case.lower, case.upper])).all():  # parts of the smallest numbers are rounded
        return case
    return Case([(first[0][:, places], *first[1:]), *others], lower, upper)


def _composed(rng, case):
    """The same network behind a layer of linear units that makes its inputs of others: all of them permuted, some negated, some added to others."""
    dim = len(case.lower)
    matrix = np.eye(dim)[rng.permutation(dim)] * rng.choice([-1.0, 1.0], dim)
    for _ in range(int(rng.integers(0, 3))):
        one, other = rng.integers(dim, size=2)
        if one != other:
            matrix[one] += matrix[other]
    linear = (matrix, np.zeros(dim), np.zeros(dim, dtype=bool))
    return case._replace(layers=[linear, *case.layers])
