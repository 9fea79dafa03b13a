"""How many leaves lie below a node, predicted from descents made before.

For each layer and number of units left there is a ridge regression for the logarithm of the number of leaves.  What it is fitted to is not the
outcome of descents, which spreads widely, but one step: the logarithm of the sum of what is predicted for the node's actual children (and of the
leaves among them).  Regressions are fitted from the last ones backwards, so that one pass carries what the leaves say up to the root.

Predictions choose which way descents go.  They cannot make the estimate wrong, only its spread small.
"""

import numpy as np

from tessella.estimating.descents import Records, Shape
from tessella.network import Floats

_RIDGE = 1.0
_MOST = 400_000  # records kept; later ones are not learned from


class Values:
    """Predictions, learned as records come in."""

    def __init__(self, shape: Shape) -> None:
        """Nothing is learned yet."""
        self._shape = shape
        self._parts, self._count = list[Records](), 0
        regressions = len(shape.layer_of)
        self._features = [np.zeros((0, shape.lengths[layer])) for layer in shape.layer_of]
        self._grams = [np.zeros((shape.lengths[layer],) * 2) for layer in shape.layer_of]
        self._nodes = [np.zeros(0, dtype=np.int64) for _ in range(regressions)]
        self._split = [np.zeros(0, dtype=np.bool_) for _ in range(regressions)]
        self._children = np.zeros((0, 2), dtype=np.int64)
        self._leaves = np.zeros(0)
        self.theta = shape.start()

    def add(self, records: Records) -> None:
        """Take in what a batch of rounds noted."""
        count = len(records.leaves)
        if not count or self._count > _MOST:
            return
        offset = self._count
        self._count += count
        bucket, parent, split = records.origin.T
        children = np.full((count, 2), -1, dtype=np.int64)
        for number in np.flatnonzero(parent >= 0):
            above = parent[number]
            children[above, int(children[above, 0] >= 0)] = number + offset
        self._children = np.vstack([self._children, children])
        with np.errstate(divide="ignore"):
            self._leaves = np.concatenate([self._leaves, np.log(records.leaves)])
        for number in np.unique(bucket):
            here = np.flatnonzero(bucket == number)
            length = self._shape.lengths[self._shape.layer_of[number]]
            features = records.features[here, :length].astype(np.float64)
            self._features[number] = np.vstack([self._features[number], features])
            self._nodes[number] = np.concatenate([self._nodes[number], here + offset])
            self._split[number] = np.concatenate([self._split[number], split[here] > 0])
            learned = features[split[here] > 0]
            self._grams[number] += learned.T @ learned

    def learn(self) -> Floats:
        """Fit all regressions; how far off one step is, per regression."""
        predicted = np.full(self._count + 1, -np.inf)  # the last one stands for no child
        layer_of, most = self._shape.layer_of, self._shape.most
        off = np.zeros(len(layer_of))
        prior = self._shape.start()[0, :-1]
        for number in range(len(layer_of) - 1, -1, -1):
            length = self._shape.lengths[layer_of[number]]
            if number + 1 < len(layer_of):
                same = layer_of[number + 1] == layer_of[number]
                prior = self.theta[number + 1, :-1] if same else self._shape.start()[0, :-1]
            nodes, split, features = self._nodes[number], self._split[number], self._features[number]
            if split.any():
                one, two = self._children[nodes[split]].T
                target = np.logaddexp(np.logaddexp(predicted[one], predicted[two]), self._leaves[nodes[split]])
                fine = np.isfinite(target)
                rows = features[split]
                gap = np.where(fine, target - rows @ prior[:length], 0.0)
                gram = self._grams[number] + _RIDGE * np.eye(length)
                change = np.linalg.solve(gram, rows.T @ gap)
                self.theta[number, :length] = prior[:length] + change
                off[number] = np.sqrt(np.mean((gap - rows @ change) ** 2))
            else:
                self.theta[number, :-1] = prior
            predicted[nodes] = np.clip(features @ self.theta[number, :length], 0.0, most)
        return off
