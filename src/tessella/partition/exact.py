"""Exact answers where floating-point arithmetic cannot decide: whether a cell has an interior, and how many regions it holds.

Preactivations are composed layer by layer in whole numbers (`partition.integers`).  Rows that are constant, or of one sign on the
cube, are settled on sight; whether the others have a point in common is for `partition.inside` to say.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tessella.domain import Domain, Polytope
from tessella.network import Mask
from tessella.partition.inside import point_inside
from tessella.partition.integers import Affine, Integers, Matrix, Rows, ends, joined, on_inputs, rows_of, whole_numbers, with_bias
from tessella.partition.tree import Tree

_NEVER, _CUTS, _ALWAYS = -1, 0, 1
_KEPT = 4_000_000  # coefficients kept for later calls


class Sides(NamedTuple):
    """What is positive inside a region and cuts the cube."""

    rows: Rows  # without common factors, so what is equal up to a positive factor is equal
    units: list[int]  # which decision each row belongs to, in order; -1 for the domain's inequalities, which come first
    flat: bool  # whether a unit is 0 all over the region


class Exact:
    """Exact answers on the cells of a tree; keeps the layers it composed, so that calls with similar prefixes are cheap.

    Parameters
    ----------
    tree
        The network and its domain.

    Examples
    --------
    >>> from tessella import Box, Network, stability
    >>> network = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], None)], relu_output=True)
    >>> exact = Exact(Tree.of(stability(network, Box(-1, 1, dim=2), method="interval")))
    >>> exact.count(b""), exact.exists(bytes([1, 1, 1])), exact.exists(bytes([1, 1, 0]))
    (6, True, False)
    """

    def __init__(self, tree: Tree) -> None:
        """Nothing is composed yet."""
        layers = tree.network.layers
        self._layers, self._box = layers, tree.domain.box
        self._starts = (0, *accumulate(layer.relus for layer in layers))
        self._places = [(number, unit) for number, layer in enumerate(layers) for unit in range(layer.relus)]
        self._walls = _walls(tree.domain)
        size = 3 * max(layer.units for layer in layers) * (tree.domain.free_dim + 1)
        self._level = lru_cache(maxsize=min(4096, max(2 * len(layers), _KEPT // size)))(self._compose)
        self._weight = lru_cache(maxsize=None)(lambda number: Matrix.of(layers[number].weight))

    def exists(self, prefix: bytes) -> bool:
        """Whether the cell of a prefix has an interior in the free inputs."""
        rows = self._rows(prefix)
        return rows is not None and point_inside(rows) is not None

    def count(self, prefix: bytes) -> int:
        """How many full-dimensional regions lie below a prefix; 0 if its cell has no interior."""
        return sum(1 for _ in self.leaves(prefix))

    def leaves(self, prefix: bytes) -> Iterator[bytes]:
        """The decisions of all full-dimensional regions below a prefix."""
        rows = self._rows(prefix)
        point = None if rows is None else point_inside(rows)
        if rows is None or point is None:
            return
        stack = [(prefix, rows, point)]
        while stack:
            cell, rows, point = stack.pop()
            cell, sides = self._next_cut(cell)
            if sides is None:
                yield cell
                continue
            for side in (0, 1):
                row = sides[[side]]
                smaller = joined([rows, row])
                # a point of the cell that lies on this side proves it
                there = point if (row.numbers @ point)[0] > 0 else point_inside(smaller)
                if there is not None:
                    stack.append((cell + bytes([side]), smaller, there))

    def cell(self, prefix: bytes) -> Integers | None:
        """What is positive inside the cell of a prefix: coefficients of the free inputs, scaled to [0, 1], and constants; None if one of these rows is nowhere positive."""
        rows = self._rows(prefix)
        return None if rows is None else rows.numbers

    def walls(self, prefix: bytes) -> list[tuple[int, list[int]]]:
        """What is positive inside the cell of a prefix, each with the layer that says so, or -1 for the domain.

        Coefficients and, last, a constant, of the free inputs scaled to [0, 1].
        """
        found = [] if self._walls is None else [(-1, row) for row in self._walls.numbers.tolist()]
        for number, start in enumerate(self._starts[:-1]):
            decisions = np.frombuffer(prefix[start : self._starts[number + 1]], dtype=np.uint8)
            if len(decisions):
                rows = self._level(number, prefix[:start]).rows[decisions, np.arange(len(decisions))]
                found += [(number, row) for row in rows.numbers.tolist()]
        return found

    def units(self, number: int, prefix: bytes) -> Affine:
        """The preactivations of a layer's ReLUs below the decisions on all layers before it, and perhaps more."""
        affine = self._level(number, prefix[: self._starts[number]]).affine
        return Affine(affine.numbers[self._layers[number].rectified], affine.exponent)

    def sides(self, prefix: bytes) -> "Sides | None":
        """The sides of a region, given by all its decisions; None if one of them has no interior."""
        if self._walls is None:
            return None
        parts, units, flat = [self._walls], [-1] * len(self._walls.numbers), False
        for number, start in enumerate(self._starts[:-1]):
            decisions = np.frombuffer(prefix[start : self._starts[number + 1]], dtype=np.uint8)
            if len(decisions):
                level, places = self._level(number, prefix[:start]), np.arange(len(decisions))
                states, rows = level.states[decisions, places], level.rows[decisions, places]
                if (states == _NEVER).any():
                    return None
                flat = flat or not (rows.floats != 0.0).any(axis=1).all()
                cuts = np.flatnonzero(states == _CUTS)
                parts.append(rows[cuts])
                units += (start + cuts).tolist()
        return Sides(joined(parts), units, flat)

    def behind(self, prefix: bytes, wall: list[int]) -> bytes:
        """The decisions of the region behind a wall of a region, given by the row that is positive inside.

        Preactivations are continuous, so behind the wall only units change that are 0 on all of it: those whose rows behind it are
        multiples of the wall's.
        """
        found, opposite = b"", [-one for one in wall]
        for number, start in enumerate(self._starts[:-1]):
            states = list(prefix[start : self._starts[number + 1]])
            if states:
                rows = self._level(number, found[:start]).rows.numbers[1]
                for unit, row in enumerate(rows.tolist()):
                    if row == opposite:
                        states[unit] = 1
                    elif row == wall or not any(row):
                        states[unit] = 0
            found += bytes(states)
        return found

    def _next_cut(self, prefix: bytes) -> "tuple[bytes, Rows | None]":
        """Decide units that have one state on the whole cube; the rows of both sides of the first other one, None at a leaf."""
        while len(prefix) < len(self._places):
            number, unit = self._places[len(prefix)]
            level = self._level(number, prefix[: self._starts[number]])
            state = level.states[1, unit]
            if state == _CUTS:
                return prefix, level.rows[:, unit]
            prefix += bytes([int(state == _ALWAYS)])
        return prefix, None

    def _rows(self, prefix: bytes) -> "Rows | None":
        """The rows of a cell; None if one of them is nowhere positive."""
        if self._walls is None:
            return None
        parts = [self._walls]
        for number, start in enumerate(self._starts[:-1]):
            decisions = np.frombuffer(prefix[start : self._starts[number + 1]], dtype=np.uint8)
            if len(decisions):
                level, units = self._level(number, prefix[:start]), np.arange(len(decisions))
                states = level.states[decisions, units]
                if (states == _NEVER).any():
                    return None
                cuts = states == _CUTS
                parts.append(level.rows[decisions[cuts], units[cuts]])
        return joined(parts)

    def _compose(self, number: int, prefix: bytes) -> "_Level":
        """The layer below the decisions on all layers before it."""
        layer = self._layers[number]
        if number == 0:
            return _level(on_inputs(layer.weight, layer.bias, self._box), layer.rectified)
        start, before = self._starts[number - 1], self._layers[number - 1]
        inner = self._level(number - 1, prefix[:start]).affine
        factors = before.factors(np.frombuffer(prefix[start:], dtype=np.bool_))
        weight, numbers, power = self._weight(number).of_columns(factors != 0.0), inner.numbers, 0
        if ((factors != 1.0) & (factors != 0.0)).any():
            own, power = whole_numbers(factors)
            numbers = numbers * own[:, None]
        outer = Affine(weight.times(numbers), weight.exponent + power + inner.exponent)
        return _level(with_bias(outer, layer.bias), layer.rectified)


@dataclass(frozen=True, slots=True)
class _Level:
    """A layer below some decisions."""

    affine: Affine  # the preactivations of all its units
    # for sides 0 and 1 of the rectified units: whether the cube's interior lies on that side always, never, or is cut
    states: npt.NDArray[np.int8]
    rows: Rows  # what must be positive on sides 0 and 1 of the rectified units; two axes stand for the usual one


def _level(affine: Affine, rectified: Mask) -> _Level:
    """A layer from the preactivations of its units."""
    rows = rows_of(affine.numbers[rectified])
    least, most = ends(rows.numbers)
    # zero everywhere is inactive, so the largest value is looked at first
    states = np.where(most <= 0, _NEVER, np.where(least >= 0, _ALWAYS, _CUTS)).astype(np.int8)
    sides = Rows(np.stack([-rows.numbers, rows.numbers]), np.stack([rows.scales] * 2), np.stack([-rows.floats, rows.floats]))
    return _Level(affine, np.stack([-states, states]), sides)


def _walls(domain: Domain) -> Rows | None:
    """The domain's inequalities that cut its box; None if one of them holds nowhere inside."""
    matrix, offset = np.zeros((0, domain.dim)), np.zeros(0)
    if isinstance(domain, Polytope):
        matrix, offset = domain.matrix, domain.offset
    slack = on_inputs(-matrix, offset, domain.box).numbers
    least, most = ends(slack)
    if ((most <= 0) & (least < 0)).any():  # zero everywhere is allowed: these inequalities are not strict
        return None
    return rows_of(slack[least < 0])
