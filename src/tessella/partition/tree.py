"""The tree that counting walks: units in layer order, each active or inactive.

Below a *prefix* of decisions every preactivation up to the next layer is affine, so a node of the tree is a convex cell of inputs, and the
regions of the network are its leaves.  Prefixes are bytes, one 0 or 1 per unit decided, so that they can be sent, stored and compared.

A `Walker` counts the leaves below some nodes.  It decides by floating-point arithmetic with a safety margin.  Where the margin does
not suffice it does not guess: it names the prefix as *thin* and goes on as if nothing were there, and `tessella.partition.exact` counts what lies below.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tessella.domain import Box, Domain, Polytope, check_bounded
from tessella.network import Floats, Layer, Mask, Network
from tessella.numerics import EPS, LOST_OF_PRODUCTS
from tessella.parallel import Stop
from tessella.partition.folding import Folded, fold
from tessella.stability import Stability
from tessella.unbounded import as_bounded

Integers = npt.NDArray[np.int64]

_ROUNDINGS = 32.0  # in a first row: scaling, and pairwise sums of blocks of 128 terms in 8 parts
_SMALL = 50_000_000  # products of exact numbers to compose a cell's rows


class Node(NamedTuple):
    """A cell that is known to have an interior."""

    prefix: bytes = b""  # the decisions that lead to it
    # how many of them had both sides: the node is the 2**-splits part of the tree, as far as one can know from above
    splits: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """What a walker found in the time it was given."""

    regions: int  # regions counted
    open: tuple[Node, ...] = ()  # nodes that it did not get to; the others it was given are finished
    # prefixes that it could not decide, neither counted nor open.  The cell of such a prefix may have no interior
    thin: tuple[bytes, ...] = ()
    tests: int = 0  # how many sides were tested by linear programs (or by vertices)


class Walker(Protocol):
    """Counts the regions below nodes; one walker serves one thread."""

    def advance(self, nodes: Sequence[Node], seconds: float, stop: Stop) -> Found:
        """Walk for about this long, or until it is asked to stop; at least one step is made."""
        ...


class Scaled(NamedTuple):
    """A tree's numbers with the domain's box scaled to [-1, 1] in its free inputs."""

    # weights, biases, rectified, slopes: one per layer; the first layer reads the scaled inputs.  Slopes are those of
    # `Layer.slope`: 1 for a plain linear unit
    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    rectified: tuple[Mask, ...]
    slopes: tuple[Floats, ...]
    # normals, constants: the domain's inequalities: ``normals @ u + constants >= 0``
    normals: Floats
    constants: Floats
    # for each layer but the first how far its weights and, in the last column, its biases may be from the exact ones; None where
    # they are exact
    doubts: tuple[Floats | None, ...]


@dataclass(frozen=True)
class Tree:
    """A network on a domain, reduced to the units that can change their state there."""

    network: Network  # the network without its stable units, and without layers after its last ReLU
    domain: Domain  # the inputs, a bounded domain
    homogeneous: bool = False  # whether both stand for a network on an unbounded domain, as `tessella.unbounded` makes them

    def __post_init__(self) -> None:
        """Refuse an unbounded domain: nothing below works on one."""
        check_bounded(self.domain, "a tree")

    @classmethod
    def of(cls, stability: Stability) -> "Tree":
        """The tree of a network on a domain, from what is known of its units there.

        This is the one place where unbounded domains become bounded ones: whoever walks, samples or searches does so in a tree.
        """
        reduced = stability.network.without_stable_units(stability)
        layers = list(reduced.layers)
        while len(layers) > 1 and not layers[-1].relus:
            layers.pop()
        reduced, domain = replace(reduced, layers=tuple(layers)), stability.domain
        return cls(*as_bounded(reduced, domain), homogeneous=not domain.bounded)

    @classmethod
    def of_first_layer(cls, stability: Stability) -> "Tree":
        """The same of the first layer alone, if the domain is bounded; else of the whole network."""
        network, domain = stability.network, stability.domain
        if not domain.bounded:
            return cls.of(stability)
        layer, changing = network.layers[0], stability.unstable[0]
        first = Layer(layer.weight, layer.bias, changing, np.where(changing, layer.slope, 1.0))
        return cls(replace(network, layers=(first,)), domain)

    @property
    def units(self) -> int:
        """How many decisions lead to a leaf."""
        return self.network.relus

    @cached_property
    def _folded(self) -> Folded | None:
        return fold(self.network, self.domain)

    @property
    def walked(self) -> Network:
        """The network as walkers read it: with the same ReLUs, and perhaps fewer linear units (`tessella.partition.folding`)."""
        return self._folded.network if self._folded else self.network

    @property
    def breadth(self) -> tuple[int, int, int]:
        """How many inputs are free, units the first layer has, and inequalities the domain: what is best done with a tree depends on these."""
        inequalities = len(self.domain.offset) if isinstance(self.domain, Polytope) else 0
        return self.domain.free_dim, self.walked.layers[0].units, inequalities

    @property
    def is_small(self) -> bool:
        """Whether exact arithmetic decides a prefix in a fraction of a second."""
        return self.network.parameters * self.domain.free_dim < _SMALL

    @property
    def bytes(self) -> int:
        """About how much memory whoever walks takes for the network alone, whose weights are dense then."""
        first, *others = self.walked.layers
        widths = [layer.units for layer in self.walked.layers]
        weights = first.units * self.domain.free_dim + sum(layer.units * layer.inputs for layer in others)
        return 8 * (2 * weights + sum(widths[:-1]) * max(widths))

    @cached_property
    def scaled(self) -> Scaled:
        """The numbers that walkers work with; the scaling rounds, as all that follows does."""
        box = self.domain.box
        free = box.free
        centre, radius = box.lower / 2.0 + box.upper / 2.0, box.upper / 2.0 - box.lower / 2.0
        layers = self.walked.layers
        weights, biases = [layer.dense() for layer in layers], [layer.bias for layer in layers]
        biases[0] = biases[0] + (weights[0] * centre).sum(axis=1)  # pairwise: a matrix product may add up in any order
        weights[0] = weights[0][:, free] * radius[free]
        normals, constants = np.zeros((0, int(free.sum()))), np.zeros(0)
        if isinstance(self.domain, Polytope):
            normals = -self.domain.matrix[:, free] * radius[free]
            constants = self.domain.offset - (self.domain.matrix * centre).sum(axis=1)
        units = tuple(layer.rectified for layer in layers), tuple(layer.slope for layer in layers)
        doubts = self._folded.doubts if self._folded else (None,) * len(layers)
        return Scaled(tuple(weights), tuple(biases), *units, normals, constants, doubts)

    @cached_property
    def twins(self) -> tuple[Integers, ...]:
        """For each unit of a layer the first ReLU of the layer that it is a multiple of, exactly; -1 if there is none before it, or it is no ReLU.

        Where the first one has one sign, so has the other.
        """
        found = list[Integers]()
        for layer, walked in zip(self.network.layers, self.walked.layers, strict=True):
            first, places = _twins(layer), np.flatnonzero(walked.rectified)
            twins = np.full(walked.units, -1, dtype=np.int64)
            twins[places] = np.where(first >= 0, places[first], -1)
            found.append(twins)
        return tuple(found)

    @cached_property
    def magnitudes(self) -> Floats:
        """How large the numbers are that add up to each first unit's preactivation: what its rounding error is relative to."""
        box, layer = self.domain.box, self.walked.layers[0]
        return np.abs(layer.dense()) @ reach_of(box) + np.abs(layer.bias)

    @cached_property
    def errors(self) -> Floats:
        """Bounds on the rounding errors of the first units' rows; what reads nothing, fixed inputs included, is exact."""
        reads = self.walked.layers[0].dense().any(axis=1)
        return np.where(reads, _ROUNDINGS * EPS * self.magnitudes + LOST_OF_PRODUCTS, 0.0)

    @cached_property
    def domain_errors(self) -> Floats:
        """Bounds on the rounding errors of the domain's inequalities."""
        if not isinstance(self.domain, Polytope):
            return np.zeros(0)
        largest = np.abs(self.domain.matrix) @ reach_of(self.domain.box) + np.abs(self.domain.offset)
        return _ROUNDINGS * EPS * largest + LOST_OF_PRODUCTS


def reach_of(box: Box) -> Floats:
    """What the rounding of a box that is scaled to [-1, 1] is relative to: how far from 0 inputs are, at most, or a number below which half of an end may be lost."""
    return np.maximum(np.maximum(np.abs(box.lower), np.abs(box.upper)), np.where(box.free, LOST_OF_PRODUCTS, 0.0))


def _twins(layer: Layer) -> Integers:
    """For each ReLU of a layer the first one that it is a multiple of, -1 if there is none before it."""
    weight = layer.weight[layer.rectified]
    rows = np.column_stack([weight if isinstance(weight, np.ndarray) else weight.toarray(), layer.bias[layer.rectified]])
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    alike = (
        np.round(rows / np.where(largest == 0.0, 1.0, largest), 6) + 0.0
    )  # what is not alike is no multiple; the rest is asked
    found, seen = np.full(len(rows), -1, dtype=np.int64), dict[bytes, int]()
    for unit in np.flatnonzero(largest[:, 0] != 0.0).tolist():
        first = seen.setdefault(alike[unit].tobytes(), unit)
        if first < unit and _are_multiples(rows[first].tolist(), rows[unit].tolist()):
            found[unit] = first
    return found


def _are_multiples(one: list[float], two: list[float]) -> bool:
    """Whether a list is a multiple of another, in exact arithmetic."""
    place = max(range(len(one)), key=lambda at: abs(one[at]))
    a, b = Fraction(one[place]), Fraction(two[place])
    return bool(b) and all(Fraction(x) * b == Fraction(y) * a for x, y in zip(one, two, strict=True))
