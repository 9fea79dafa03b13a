"""What is said of a node to those who predict how many leaves lie below it (`tessella.estimating.values`).

Every node has the features below.  Nodes of narrow networks have some per unit besides: the states of the layer's units and of the layer before, and how evenly the node's points, pushed through the
network, spread over both sides of each unit of the next layer.
"""

import numpy as np

from tessella.cells.state import Layers
from tessella.cells.vertex import POINTS
from tessella.estimating.nodes import BOTH, OPEN, Descent, evaluate
from tessella.kernel.functions import apart, compiled, inlined
from tessella.kernel.record import Matrix, Record, Singles, Vector, Whole, zeros

# The logarithm of the number of regions, in general position, is meant by "cells of": of so many hyperplanes in so many dimensions.
CONSTANT = 0
CELLS_OF_LEFT = 1  # units left
CELLS_OF_BOTH = 2  # units that are known to have both signs
CELLS_OF_NEXT = 3  # units of the next layer with points on both sides
LIVE_INVERSE = 4  # 1 / (1 + active units of the layer)
LEFT_TIMES_LIVE = 5
LIVE = 6
OPEN_UNITS = 7
RANK = 8  # dimensions that the layers before leave, at most
KNOWN_POINTS = 9
MEETING_HERE = 10  # units left, and pairs of them that show all combinations of signs
MEETING_NEXT = 11  # the same in the next layer
MEETING_NEXT_TRIPLES = 12  # and triples
BOTH_BELOW = 13  # units of all following layers with points on both sides
SPREAD_BELOW = 14  # the same weighted by how even the sides are
SPREAD_HERE = 15  # how even the sides of the layer's own units are that are left
BASE = 16  # features that every node has
_UNSEEN = 0.2  # what counts for a unit that has two signs nowhere among the points
_TRIPLES = 12  # units; triples of more are not looked at


class Describer(Record):
    """What nodes are described with: a table of `CELLS_OF_LEFT` for hyperplanes and dimensions; bits: which of the points are on the active side of a unit."""

    cells_of: Matrix
    sides: Whole
    looks: bool  # whether a node's points show how its own layer's units lie in it: they do if they are scattered over its cell

    @classmethod
    def of(cls, widest: int, dimensions: int, *, looks: bool = False) -> "Describer":
        """For layers up to a width."""
        return cls(cells_of=_cells_of(widest, dimensions), sides=zeros(max(widest, 2), kind=np.int64), looks=looks)


def _cells_of(width: int, dimension: int) -> Matrix:
    """Log of sum(C(n, j), j <= r), for n up to a width and r up to a dimension."""
    table = np.zeros((width + 1, min(width, dimension) + 1))
    factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, width + 1)))])
    for n in range(width + 1):
        r = np.arange(table.shape[1])
        terms = np.where(r <= n, factorial[n] - factorial[np.minimum(r, n)] - factorial[np.maximum(n - r, 0)], -np.inf)
        table[n] = np.logaddexp.accumulate(terms)
    return table


@inlined
def _rank(descent: Descent, node: int) -> int:
    """The dimensions that the layers before a node's leave, at most."""
    layers, status = descent.layers, descent.nodes.status[node]
    rank = descent.primal.points.places.shape[1]
    for layer in range(descent.nodes.layer[node]):
        total = 0
        for unit in range(layers.first[layer], layers.first[layer] + layers.width[layer]):
            total += 1 if status[unit] == 1 or layers.slopes[unit] != 0.0 else 0
        rank = min(rank, total)
    return rank


@inlined
def _describe_counts(descent: Descent, describer: Describer, node: int, features: Singles) -> int:
    """Write the features that are counted from the units' states; the dimensions that the layer is expected to leave."""
    layers, nodes, cells_of = descent.layers, descent.nodes, describer.cells_of
    layer, left = nodes.layer[node], nodes.left[node]
    live, open_units, both = 0, 0, 0
    for unit in range(layers.first[layer], layers.first[layer] + layers.width[layer]):
        state = nodes.status[node, unit]
        live += 1 if state == 1 else 0
        open_units += 1 if state == OPEN else 0
        both += 1 if state == BOTH else 0
    rank, most = _rank(descent, node), cells_of.shape[1] - 1
    features[CONSTANT] = 1.0
    features[CELLS_OF_LEFT] = cells_of[left, min(rank, most)]
    features[CELLS_OF_BOTH] = cells_of[both, min(rank, most)]
    features[LIVE_INVERSE] = 1.0 / (1.0 + live)
    features[LEFT_TIMES_LIVE] = left * live / 64.0
    features[LIVE] = live / 8.0
    features[OPEN_UNITS] = open_units / 8.0
    features[RANK] = rank / 8.0
    features[KNOWN_POINTS] = np.log1p(descent.primal.points.known[node])
    return min(rank, live + (left + 1) // 2, most)


@compiled
def _sides(values: Vector, known: int) -> int:
    """At which points a unit is active, as bits."""
    mask = np.int64(0)
    for i in range(known):
        mask |= np.int64(1 if values[i] > 0.0 else 0) << i
    return mask  # pyright: ignore[reportReturnType]


@compiled
def _meeting(sides: Whole, count: int, known: int) -> tuple[int, int]:
    """How many pairs and triples of units show all combinations of signs at the points: they cut each other."""
    full = np.int64(-1) if known == POINTS else (np.int64(1) << known) - 1
    pairs, triples = 0, 0
    for i in range(count):
        for j in range(i):
            a, b = sides[i], sides[j]
            pp, pm, mp, mm = a & b, a & ~b & full, b & ~a & full, ~a & ~b & full
            if pp != 0 and pm != 0 and mp != 0 and mm != 0:
                pairs += 1
                if count <= _TRIPLES:
                    for k in range(j):
                        c = sides[k]
                        d = ~c
                        positive = (pp & c) != 0 and (pm & c) != 0 and (mp & c) != 0 and (mm & c) != 0
                        if positive and (pp & d) != 0 and (pm & d) != 0 and (mp & d) != 0 and (mm & d) != 0:
                            triples += 1
    return pairs, triples


@inlined
def _describe_points(descent: Descent, describer: Describer, node: int, features: Singles) -> None:
    """Write what the node's points say of the layer's units; these units' values are then the first rows of ``values``."""
    layers, nodes, points = descent.layers, descent.nodes, descent.primal.points
    layer, known, cut = nodes.layer[node], points.known[node], 0
    for i in range(layers.width[layer]):
        unit = layers.first[layer] + i
        evaluate(nodes.combined[node, unit], points.places[node], descent.values[i])
        if nodes.status[node, unit] >= BOTH:
            describer.sides[cut] = _sides(descent.values[i], known)
            cut += 1
    pairs, _ = _meeting(describer.sides, cut, known)
    features[MEETING_HERE] = np.log1p(cut + pairs)


@inlined
def _describe_spread(descent: Descent, describer: Describer, node: int, features: Singles, dimensions: int) -> None:
    """Write how the node's points lie beside the layer's own units that are left, from the values of `_describe_points`."""
    layers, nodes, known = descent.layers, descent.nodes, descent.primal.points.known[node]
    layer, total, shown = nodes.layer[node], 0.0, 0
    for i in range(layers.width[layer]):
        state = nodes.status[node, layers.first[layer] + i]
        if state >= BOTH:
            positive = 0
            for q in range(known):
                positive += 1 if descent.values[i, q] > 0.0 else 0
            share = positive / max(known, 1)
            total += 4.0 * share * (1.0 - share)
            seen = 0 < positive < known
            shown += 1 if seen else 0
            features[BASE + layers.width[layer] + i] = 1.0 if seen or state == BOTH else _UNSEEN
    features[SPREAD_HERE] = total / 8.0
    if shown > 0:
        features[CELLS_OF_BOTH] = describer.cells_of[shown, dimensions]


@inlined
def _rectify(descent: Descent, node: int, layer: int, base: int) -> None:
    """Turn the values of a layer's units at the points, which begin at a row of ``values``, into their outputs."""
    layers, nodes, values = descent.layers, descent.nodes, descent.values
    for j in range(layers.width[layer]):
        unit = layers.first[layer] + j
        slope, state = layers.slopes[unit], BOTH
        if layer == nodes.layer[node] or not layers.rectified[unit]:
            state = nodes.status[node, unit]
        if slope != 1.0:
            if state == 0:
                for i in range(POINTS):
                    values[base + j, i] *= slope
            elif state >= BOTH:
                for i in range(POINTS):
                    values[base + j, i] = max(values[base + j, i], 0.0) + slope * min(values[base + j, i], 0.0)


@inlined
def _push(layers: Layers, layer: int, i: int, values: Matrix, base: int, result: Vector) -> None:
    """The values of unit i of a layer at the points, from the outputs of the layer before, which begin at a row of ``values``."""
    reads = layers.width[layer - 1]
    at = layers.start[layer] + i * reads
    for q in range(POINTS):
        result[q] = layers.biases[layers.first[layer] + i]
    for j in range(reads):
        weight = layers.weights[at + j]
        if weight != 0.0:
            for q in range(POINTS):
                result[q] += weight * values[base + j, q]


@inlined
def _describe_below(descent: Descent, describer: Describer, node: int, features: Singles, dimensions: int) -> None:
    """Push the node's points through the layers that follow, and write what they show there."""
    layers, nodes, values, sides = descent.layers, descent.nodes, descent.values, describer.sides
    own, known = nodes.layer[node], descent.primal.points.known[node]
    at = BASE + 2 * layers.width[own] + (layers.width[own - 1] if own else 0)
    base, other, total, both = 0, len(values) // 2, 0.0, 0
    for layer in range(own + 1, len(layers.first)):
        _rectify(descent, node, layer - 1, base)
        cut = 0
        for i in range(layers.width[layer]):
            _push(layers, layer, i, values, base, values[other + i])
            positive, rectified = 0, layers.rectified[layers.first[layer] + i] != 0
            for q in range(known):
                positive += 1 if values[other + i, q] > 0.0 else 0
            share = positive / max(known, 1)
            spread = 4.0 * share * (1.0 - share) if rectified else 0.0
            total += spread
            if 0 < positive < known and rectified:
                sides[cut] = _sides(values[other + i], known)
                cut += 1
            if layer == own + 1:
                features[at + i] = spread
        both += cut
        if layer == own + 1:
            pairs, triples = _meeting(sides, cut, known)
            features[CELLS_OF_NEXT] = describer.cells_of[cut, dimensions]
            features[MEETING_NEXT] = np.log1p(cut + pairs)
            features[MEETING_NEXT_TRIPLES] = np.log1p(cut + pairs + triples)
        base, other = other, base
    features[BOTH_BELOW] = both / 8.0
    features[SPREAD_BELOW] = total / 8.0


@inlined
def _describe_states(descent: Descent, describer: Describer, node: int, features: Singles) -> None:
    """Write the states of the units of a node's layer and of the layer before."""
    layers, status, layer = descent.layers, descent.nodes.status[node], descent.nodes.layer[node]
    first, width = layers.first[layer], layers.width[layer]
    for i in range(width):
        state = status[first + i]
        features[BASE + i] = 1.0 if state == 1 else 0.0
        if not describer.looks:
            features[BASE + width + i] = 1.0 if state == BOTH else 0.7 if state >= OPEN else 0.0
    if layer:
        for j in range(layers.width[layer - 1]):
            features[BASE + 2 * width + j] = status[layers.first[layer - 1] + j]


@apart
def describe(descent: Descent, describer: Describer, node: int, features: Singles) -> None:
    """Write the features of a node, for the regression of its layer and number of units left."""
    layers, layer = descent.layers, descent.nodes.layer[node]
    for i in range(len(features)):
        features[i] = 0.0
    dimensions = _describe_counts(descent, describer, node, features)
    widest = 0
    for deep in range(layer, len(layers.first)):
        widest = max(widest, layers.width[deep])
    if widest <= len(descent.values) // 2:
        _describe_points(descent, describer, node, features)
        if describer.looks:
            _describe_spread(descent, describer, node, features, dimensions)
        _describe_below(descent, describer, node, features, dimensions)
        _describe_states(descent, describer, node, features)
    elif layer + 1 < len(layers.first):
        features[CELLS_OF_NEXT] = describer.cells_of[layers.width[layer + 1], dimensions]
