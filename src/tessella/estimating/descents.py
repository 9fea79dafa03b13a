"""Random descents through a tree of regions: what `tessella.estimating.probe` needs, and what it leaves to exact arithmetic."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tessella.cells.old.rows import UNHARMFUL
from tessella.estimating import probe
from tessella.kernel.compiling import address
from tessella.network import Floats
from tessella.partition.local import LocalBound
from tessella.partition.settler import Settler
from tessella.partition.tree import Integers, Tree

_FEW_INPUTS = 32  # up to here the first layer's units are looked at ahead, too
_AHEAD = 64  # units; wider layers are decided one by one
_CLASSES = 48  # regressions per layer
_RECORDS = 16384  # nodes noted in one batch
_LARGE = 1 << 25  # bytes of one node's cell; of larger ones only one is kept
_POOL = 1024  # vertices whose bases are kept
_CORNERS = 47  # corners of the box that the root knows
_MOST_EXACT = 256  # cells that exact arithmetic looks at for one prefix
_NOT_KNOWN = -2.0
_MANY = 128  # inputs from which on what does not exist is refuted in the first layer's few dimensions
_FEW = 18  # so many of these at most
_CUTS = 128  # kept there, in one round


class Records(NamedTuple):
    """Nodes that were scored.

    Parameters
    ----------
    features
        One line per node.
    origin
        Per node: the regression it belongs to, the number of its parent (-1 for roots), and whether it was split.
    leaves
        Per node that was split: how many leaves there were among its children.
    """

    features: npt.NDArray[np.float32]
    origin: Integers
    leaves: Floats


class Batch(NamedTuple):
    """The results of some rounds: logarithms of unbiased estimates of the number of regions, and what can be learned from them."""

    logarithms: Floats
    records: Records


@dataclass(frozen=True, slots=True)
class Shape:
    """How nodes of a tree are described: the regressions and what they start from.

    Parameters
    ----------
    buckets
        The number of the regression, for a layer and a number of units left; in the order in which nodes come.
    layer_of
        The layer of each regression.
    lengths
        How many features the nodes of each layer have.
    most
        A logarithm that no node's number of leaves exceeds.
    """

    buckets: Integers
    layer_of: Integers
    lengths: tuple[int, ...]
    most: float

    @classmethod
    def of(cls, tree: Tree) -> "Shape":
        """Lay it out."""
        widths = [layer.units for layer in tree.network.layers]
        buckets = np.zeros((len(widths), max(widths) + 1), dtype=np.int64)
        layer_of, lengths = list[int](), list[int]()
        for number, width in enumerate(widths):
            classes = min(width + 1, _CLASSES)
            left = np.arange(width, -1, -1)
            buckets[number, left] = len(layer_of) + np.arange(width + 1) * classes // (width + 1)
            layer_of += [number] * classes
            around = widths[max(number - 1, 0) : number + 2] if number else widths[1:2]
            narrow = max(widths[number:]) <= probe.WIDE
            lengths.append(probe.BASE + (width + sum(around) + (width if number == 0 else 0) if narrow else 0))
        return cls(buckets, np.array(layer_of), tuple(lengths), math.log(max(LocalBound(tree)(b""), 1)))

    @property
    def longest(self) -> int:
        """The most features that a node has."""
        return max(self.lengths)

    def start(self) -> Floats:
        """Predictions before anything is learned: hyperplanes in general position, somewhat fewer."""
        theta = np.zeros((len(self.layer_of), self.longest + 1))
        theta[:, [1, 3]] = 0.7
        theta[:, -1] = self.most
        return theta


class Answers:
    """What exact arithmetic says of prefixes that floating point cannot decide; each is asked once.

    Parameters
    ----------
    tree
        The tree.
    """

    def __init__(self, tree: Tree) -> None:
        """Nothing was asked yet."""
        self._tree, self._settler, self.given_up = tree, Settler(tree, most_cells=_MOST_EXACT), 0
        self._known = dict[bytes, int]()

    def __call__(self, prefix: bytes) -> int:
        """How many regions lie below a prefix; 0, and given up, if that takes too long."""
        if prefix not in self._known:
            found = self._settled(prefix)
            self.given_up += found is None
            self._known[prefix] = found or 0
        return self._known[prefix]

    def __len__(self) -> int:
        """How many were asked."""
        return len(self._known)

    def leaves(self, prefix: bytes) -> Iterator[bytes]:
        """The regions below a prefix."""
        return self._settler.exact.leaves(prefix)

    def _settled(self, prefix: bytes) -> int | None:
        if not self._tree.is_small:
            return None
        self._settler.renew()
        found = self._settler.settle([prefix])
        return None if found.waiting else found.regions


class Descents:
    """Random descents; one object serves one thread.

    Parameters
    ----------
    tree
        The tree; it has a unit, and its domain a free input.
    population
        How many nodes a round keeps.
    lazy
        Whether linear programs wait until a node is chosen; None for where refutations in few dimensions tell most of what they would.
    """

    def __init__(self, tree: Tree, *, population: int = 2, lazy: bool | None = None) -> None:
        """Lay out the network in plain arrays and find the root's vertex."""
        scaled = tree.scaled
        units, domain = tree.units, len(scaled.constants)
        first, inputs = scaled.weights[0].shape
        self.shape, self.answers = Shape.of(tree), Answers(tree)
        self._identity = first + domain >= inputs
        normals = np.vstack([scaled.weights[0], scaled.normals])
        sizes = np.abs(normals).sum(axis=1)
        if self._identity:
            frame, base = np.eye(inputs), normals
        else:
            frame = normals / np.where(sizes > 0.0, sizes, 1.0)[:, None]
            base = np.diag(sizes)
        p = len(frame)
        widths = [len(bias) for bias in scaled.biases]
        offsets = np.concatenate([[0], np.cumsum(widths)])
        starts = np.concatenate([[0, 0], np.cumsum([weight.size for weight in scaled.weights[1:]])])
        rectified = np.concatenate(scaled.rectified)
        most = domain + units + 2
        basis = min(p, inputs, most) + 1
        cell = 8 * (most * (p + 2) + len(rectified) * (p + 2) + basis * basis + probe.POINTS * p) + 4 * inputs
        population = population if cell * 4 * population < _LARGE * 8 else 1
        slots = 4 * population + 2
        longest = max(inputs, p, basis, most, probe.POINTS, _CUTS, *widths) + 1
        self._counters, self._doors = np.zeros(16, dtype=np.int64), np.zeros(4, dtype=np.int64)
        self._program: tuple[Any, ...] = (
            self._identity,
            frame @ frame.T,
            np.ascontiguousarray(frame),
            np.ascontiguousarray(frame, dtype=np.float32),
            np.ascontiguousarray(frame.T),
            np.zeros((slots + 1, most, p + 2)),
            np.zeros((slots + 1, 3, max(basis, 2)), dtype=np.int64),
            np.zeros((slots + 2, basis, basis)),
            np.zeros((slots + 1, p + basis)),
            np.ones((slots + 1, inputs), dtype=np.float32),
            np.zeros((8, longest)),
            np.zeros(max(inputs, probe.POINTS) + 8, dtype=np.int64),
            np.zeros((3, max(inputs, probe.LANES)), dtype=np.float32),
            self._counters,
        )
        look = np.array([width <= _AHEAD for width in widths])
        look[0] = look[0] and inputs <= _FEW_INPUTS
        self._layers: tuple[Any, ...] = (
            np.flatnonzero(rectified).astype(np.int64),
            np.stack([offsets[:-1], widths, starts[:-1]], axis=1).astype(np.int64),
            np.concatenate([np.zeros(0), *(weight.ravel() for weight in scaled.weights[1:])]),
            np.concatenate(scaled.biases),
            rectified.astype(np.int8),
            look.astype(np.int8),
            np.zeros((slots, len(rectified), p + 1)),
            np.zeros((slots, len(rectified))),
        )
        self._nodes: tuple[Any, ...] = (
            np.zeros((slots + 1, probe.NODE), dtype=np.int64),
            np.zeros((slots, len(rectified)), dtype=np.int8),
            np.zeros((slots, len(rectified)), dtype=np.int64),
            np.zeros((slots, most), dtype=np.int64),
            np.zeros((slots + 1, p, probe.POINTS)),
            np.zeros((slots + 1, probe.POINTS), dtype=np.int64),
            np.zeros((_POOL + probe.POINTS, 2, basis + 1), dtype=np.int64),
            np.zeros((_POOL + probe.POINTS, inputs), dtype=np.int8),
            np.zeros((2 * probe.WIDE, probe.POINTS)),
            np.zeros(max(*widths, 2), dtype=np.int64),
        )
        self._features = np.zeros((_RECORDS, self.shape.longest), dtype=np.float32)
        self._origin, self._leaves = np.zeros((_RECORDS, 3), dtype=np.int64), np.zeros(_RECORDS)
        self._crowd, self._scores = np.zeros(3 * slots, dtype=np.int64), np.zeros((7, 2 * slots))
        self._used, self._seed = np.zeros(slots, dtype=np.int8), np.zeros(1, dtype=np.uint64)
        self._needed = np.zeros(units + 1, dtype=np.int8)
        self._keys, self._worth = np.zeros((1025, 2), dtype=np.uint64), np.full(1024, _NOT_KNOWN)
        self._proofs = (np.full((2 * len(rectified), basis + 2), -1, dtype=np.int64), np.zeros((2 * len(rectified), basis + 2)))
        few = not self._identity and inputs >= _MANY and p <= _FEW
        self._low = (
            np.zeros((p + 3 if few else 0, most)),
            np.full((2 * len(rectified) + 1, p), -1, dtype=np.int64),
            np.zeros((p + 1, _CUTS)),
            np.zeros(p, dtype=np.int64),
            np.zeros((p + 3, p)),
        )
        self._logs = _logarithms(max(widths), p)
        self._options = np.array([population, few if lazy is None else lazy, 0], dtype=np.int64)
        rows = np.column_stack([base[:first], scaled.biases[0]])
        held = self._root(slots, base[first:], scaled.constants, tree.domain_errors)
        child = (*self._nodes[:9], *self._proofs)
        off = (False, False)
        self._doors[probe.CHILD] = address(
            probe.child_of, self._doors, 0, 0, 0, 0, self._layers[1], *self._layers[6:], *child, *self._program
        )
        self._doors[probe.SETTLE] = address(
            probe.settle, self._doors, 0, *off, *self._layers[1:], *child, *self._low, *self._program
        )
        self._doors[probe.ROUND] = address(probe.round_of, self._doors, self._options, *self._round(self.shape.start()))
        self._frame: tuple[Any, ...] = (held, slots, np.ascontiguousarray(rows), tree.errors)

    def _root(self, root: int, normals: Floats, constants: Floats, errors: Floats) -> int:
        """A vertex of the domain; how many of its inequalities are rows."""
        identity, gram, frame, light, columns, rows, *state, counters = self._program
        lists, inverse, places, sides, scratch, _order, _prices = state
        program = (identity, frame, light, columns, rows, *state, self._nodes[0], *self._nodes[4:8], counters)
        self._doors[probe.CLIMB] = address(probe.climb, 0, 0, probe.GOAL, False, *program)  # noqa: FBT003
        p, held = len(gram), 0
        self.starts = bool(probe.refresh(root, 0, identity, frame, columns, rows, lists, inverse, places, sides, scratch))
        for normal, constant, error in zip(normals, constants, errors, strict=True):
            if np.any(normal != 0.0):
                row, size = rows[root, held], np.abs(normal).sum() + abs(constant)
                row[:p], row[p] = normal / size, constant / size
                row[p + 1] = max(row[:p] @ gram @ row[:p], 1e-30)
                found = probe.climb(root, held, probe.GOAL, False, *program)  # noqa: FBT003
                self.starts = self.starts and found == probe.FEASIBLE and bool(error <= UNHARMFUL * size)
                held += 1
        self._corners(root, rows[root, :held])
        return held

    def _corners(self, root: int, rows: Floats) -> None:
        """Points of the root: corners of the box that are furthest in random directions, with their (empty) bases."""
        node, _status, _row_of, _codes, points, _names, pool, ends = self._nodes[:8]
        frame = self._program[2]
        p, size = len(frame), len(pool) - probe.POINTS
        node[root, :] = 0
        pool[size:, 0, 0] = np.arange(-probe.POINTS, 0)
        sides = np.where(np.random.default_rng(p).standard_normal((_CORNERS, p)) @ frame > 0.0, 1, -1)
        places = probe.EDGE * sides @ frame.T
        for side, place in zip(sides, places, strict=True):
            if (rows[:, :p] @ place + rows[:, p] >= probe.GOAL).all():
                known = node[root, probe.KNOWN]
                points[root, :, known], ends[size + known] = place, side
                node[root, probe.KNOWN] += 1

    @property
    def tests(self) -> int:
        """How many linear programs were solved."""
        return int(self._counters[probe.TESTS])

    def rounds(self, first: int, count: int, base: int, theta: Floats) -> Batch:
        """Some rounds; the same numbers and base give the same results.

        Parameters
        ----------
        first, count
            Their numbers.
        base
            What their seeds are made from.
        theta
            What leaves are predicted from.
        """
        results, done = np.zeros(count), 0
        self._counters[probe.RECORDS] = 0
        if not self.starts:  # the domain itself is thin
            worth, done = self.answers(b""), count
            results[:] = math.log(worth) if worth else -math.inf
        while done < count:
            done += self._probe(first + done, results[done:], base, theta, single=False)
        held = int(self._counters[probe.RECORDS])
        records = Records(self._features[:held].copy(), self._origin[:held].copy(), self._leaves[:held].copy())
        return Batch(results, records)

    def leaf(self, number: int, base: int, theta: Floats) -> tuple[float, bytes, int]:
        """One leaf: the logarithm of its weight, its prefix, and how many regions are behind that."""
        result = np.zeros(1)
        self._counters[probe.RECORDS] = 0
        while not self._probe(number, result, base, theta, single=True):
            pass
        slot = int(self._crowd[0])
        signs = self._nodes[1][slot][self._layers[0]][: self._counters[probe.LENGTH]]
        return float(result[0]), bytes(signs), int(self._scores[6, slot])

    def _probe(self, first: int, results: Floats, base: int, theta: Floats, *, single: bool) -> int:
        """Rounds until all are done or a prefix is needed, which is then looked up."""
        self._options[probe.SINGLE] = single
        done = probe.probe(
            self._doors,
            first,
            len(results),
            np.array([base], dtype=np.uint64),
            results,
            self._options,
            *self._frame,
            *self._round(theta),
        )
        if done < len(results):
            prefix = bytes(self._needed[: self._counters[probe.NEEDED]])
            self._learn(self._keys[-1].copy(), self.answers(prefix))
        return int(done)

    def _round(self, theta: Floats) -> tuple[Any, ...]:
        """What a round needs to know."""
        value = (self._logs, self.shape.buckets, theta, self._features, self._origin, self._leaves)
        crowd = (self._used, self._crowd, self._scores, self._needed, self._keys, self._worth, self._seed)
        return (*self._layers, *self._nodes, *value, *crowd, *self._proofs, *self._low, *self._program)

    def _learn(self, key: npt.NDArray[np.uint64], worth: int) -> None:
        """Put an answer into the table, which is kept half empty."""
        if 2 * len(self.answers) > len(self._worth):
            keys, known = self._keys, self._worth
            self._keys, self._worth = np.zeros((4 * len(known) + 1, 2), dtype=np.uint64), np.full(4 * len(known), _NOT_KNOWN)
            for old, value in zip(keys[:-1][known >= 0.0], known[known >= 0.0], strict=True):
                self._insert(old, value)
        self._insert(key, float(worth))

    def _insert(self, key: npt.NDArray[np.uint64], worth: float) -> None:
        place, size = int(key[0]) % len(self._worth), len(self._worth)
        while self._worth[place] >= 0.0:
            place = (place + 1) % size
        self._keys[place], self._worth[place] = key, worth


def _logarithms(width: int, dimension: int) -> Floats:
    """Log of sum(C(n, j), j <= r), for n up to a width and r up to a dimension."""
    table = np.zeros((width + 1, min(width, dimension) + 1))
    factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, width + 1)))])
    for n in range(width + 1):
        r = np.arange(table.shape[1])
        terms = np.where(r <= n, factorial[n] - factorial[np.minimum(r, n)] - factorial[np.maximum(n - r, 0)], -np.inf)
        table[n] = np.logaddexp.accumulate(terms)
    return table
