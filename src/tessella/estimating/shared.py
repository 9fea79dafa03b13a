"""Predictions for wide layers: one regression per layer, fitted to what makes descents spread.

A descent splits nodes n_1, n_2, ... one after the other.  With V(n) the predicted logarithm of the number of leaves below n, and the sides taken in proportion to exp V,

    log X = V(n_1) + r_1 + r_2 + ...,      r_t = log(sum of exp V over the children of n_t) - V(n_t):

the residuals r_t of single steps are all that spreads.  So V is fitted to make them small, as sums over a few parts of a descent and as sums to its end: of sums, because residuals of single
steps that are small and alike add up.  As r_t is nearly linear in the coefficients, one step of Gauss and Newton per batch of descents is a regression.

What a layer's units are worth (which are active, which are not decided yet) hardly depends on how many of them are left, so all nodes of a layer share their coefficients, but for the
features that every node has, whose coefficients may change linearly with the number of units left.  So there is about one number per unit to learn, and not one for each unit and each number of units left:
a few hundred descents through layers of a hundred units teach more than thousands do to `tessella.estimating.values`.
"""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from tessella.estimating.descents import Records, Shape
from tessella.estimating.features import BASE
from tessella.network import Floats
from tessella.partition.tree import Integers

_RIDGE = 4.0
_FADE = 0.8  # of what was learned from earlier generations, with each new one: they descended by worse predictions
Singles = npt.NDArray[np.float32]

_PARTS, _ENDS = 64, 8  # a descent's: parts whose residuals are added up, and sums to its end
_PART, _END = 0.4, 0.4  # weights: of each part, and of all sums to the end together


class SharedValues:
    """Predictions, learned as records come in."""

    def __init__(self, shape: Shape) -> None:
        """Nothing is learned yet."""
        self._shape, layers = shape, len(shape.lengths)
        sizes = [length + BASE for length in shape.lengths]
        self._starts = np.concatenate([[0], np.cumsum(sizes)])
        self._left = np.zeros(len(shape.layer_of))  # 1 for a layer's first regression, 0 for its last
        start, count = shape.start()[0, :-1], int(self._starts[-1])
        self._prior = np.zeros(count)
        for layer in range(layers):
            here = np.flatnonzero(shape.layer_of == layer)
            self._left[here] = np.linspace(1.0, 0.0, len(here)) if len(here) > 1 else 0.0
            self._prior[self._starts[layer] : self._starts[layer] + shape.lengths[layer]] = start[: shape.lengths[layer]]
        self._coefficients = self._prior.copy()
        self._gram, self._aim = np.zeros((count, count)), np.zeros(count)

    @property
    def theta(self) -> Floats:
        """The same for `tessella.estimating.population`: one line per regression."""
        theta = self._shape.start()
        for number, layer in enumerate(self._shape.layer_of):
            start, length = self._starts[layer], self._shape.lengths[layer]
            theta[number, :length] = self._coefficients[start : start + length]
            theta[number, :BASE] += self._left[number] * self._coefficients[start + length : start + length + BASE]
        return theta

    def add(self, records: Records) -> None:
        """Take in what a batch of rounds noted."""
        bucket, parent, split = records.origin.T
        nodes = np.flatnonzero(split > 0)
        if not len(nodes):
            return
        design, (one, two) = self._design(records.features, bucket), _children(parent)
        predicted = np.append(np.clip(design @ self._coefficients, 0.0, self._shape.most), -np.inf)
        with np.errstate(divide="ignore"):
            below = np.logaddexp(predicted[one[nodes]], predicted[two[nodes]])
            below = np.logaddexp(below, np.log(records.leaves[nodes]))
        fine = np.isfinite(below)
        nodes, below = nodes[fine], below[fine]
        residuals = below - design[nodes] @ self._coefficients
        sums, weights = self._sums(parent, split, nodes)
        if not len(weights):
            return
        steps = _steps(nodes, one, two, predicted, below)
        rows = ((sums @ steps).astype(np.float32) @ design) * np.sqrt(weights).astype(np.float32)[:, None]
        gaps = (sums @ residuals) * np.sqrt(weights)
        self._gram += rows.T @ rows
        self._aim += rows.T @ (gaps + rows @ self._coefficients)

    def learn(self) -> Floats:
        """Fit; the change of each coefficient."""
        before, ridge = self._coefficients, _RIDGE * np.eye(len(self._prior))
        self._coefficients = np.linalg.solve(self._gram + ridge, self._aim + _RIDGE * self._prior)
        self._gram *= _FADE
        self._aim *= _FADE
        return self._coefficients - before

    def _design(self, features: Singles, bucket: Integers) -> Singles:
        """The features in the columns of their layers, and those that every node has a second time, times the part of the units that are left."""
        layers = self._shape.layer_of[bucket]
        found = np.zeros((len(features), len(self._prior)), dtype=np.float32)
        for layer in np.unique(layers):
            here, start, length = np.flatnonzero(layers == layer), self._starts[layer], self._shape.lengths[layer]
            found[here, start : start + length] = features[here, :length]
            found[here, start + length : start + length + BASE] = features[here, :BASE] * self._left[bucket[here]][:, None]
        return found

    def _sums(self, parent: Integers, split: Integers, nodes: Integers) -> tuple[csr_array, Floats]:
        """Which residuals are added up, as a matrix, and what each sum weighs."""
        place = np.full(len(parent) + 1, -1)
        place[nodes] = np.arange(len(nodes))
        rows, columns, weights = list[Integers](), list[Integers](), list[float]()
        paths = [places for path in _paths(parent, split) if (places := place[path]).min() >= 0]  # all of it is known
        share = int((parent < 0).sum()) / max(len(paths), 1)  # rounds may keep several nodes: together they weigh as much as one
        for places in paths:
            sums = [(start, end, _PART) for start, end in pairwise(_cuts(len(places), _PARTS))]
            sums += [(start, len(places), _END / _ENDS) for start in _cuts(len(places), _ENDS)[:-1]]
            for start, end, weight in sums:
                rows.append(np.full(end - start, len(weights)))
                columns.append(places[start:end])
                weights.append(weight * share)
        empty = [np.zeros(0, dtype=np.int64)]
        where = np.concatenate(rows or empty), np.concatenate(columns or empty)
        return csr_array((np.ones(len(where[0])), where), shape=(len(weights), len(nodes))), np.array(weights)


def _cuts(length: int, parts: int) -> list[int]:
    """Where to cut a path into so many parts of about the same length."""
    return sorted({length * part // parts for part in range(parts + 1)})


def _children(parent: Integers) -> tuple[Integers, Integers]:
    """The numbers of each node's children, -1 where there is none; a node's children follow each other."""
    one, two = np.full(len(parent), -1), np.full(len(parent), -1)
    children = np.flatnonzero(parent >= 0)
    second = np.zeros(len(children), dtype=np.bool_)
    second[1:] = parent[children[1:]] == parent[children[:-1]]
    one[parent[children[~second]]] = children[~second]
    two[parent[children[second]]] = children[second]
    return one, two


def _steps(nodes: Integers, one: Integers, two: Integers, predicted: Floats, below: Floats) -> csr_array:
    """The derivatives of residuals after predictions, with the sign changed: of the node 1, of each child minus its part."""
    own = np.arange(len(nodes))
    parts = [(own, nodes, np.ones(len(nodes)))]
    for child in (one[nodes], two[nodes]):
        there = child >= 0
        parts.append((own[there], child[there], -np.exp(predicted[child[there]] - below[there])))
    rows, columns, values = (np.concatenate(each) for each in zip(*parts, strict=True))
    return csr_array((values, (rows, columns)), shape=(len(nodes), len(one)))


def _paths(parent: Integers, split: Integers) -> list[Integers]:
    """The nodes that rounds split, one below the other, from the root to each one below which none was split."""
    nodes = np.flatnonzero(split > 0)
    inner = np.zeros(len(parent), dtype=np.bool_)
    inner[parent[nodes[parent[nodes] >= 0]]] = True
    found = list[Integers]()
    for end in nodes[~inner[nodes]]:
        path, node = [int(end)], int(parent[end])
        while node >= 0:
            path.append(node)
            node = int(parent[node])
        found.append(np.array(path[::-1]))
    return found
