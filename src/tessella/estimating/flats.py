"""Which part of a cell a set of hyperplanes stands for, in exact arithmetic: asked where floating-point numbers cannot tell.

`tessella.estimating.tokens` says what is asked.  There F_i are the sign vectors, up to unit i, of points of the cell on which all f_j, j in the set and j > i, are 0, and f_1, ..., f_i are not.  So a set is alive if the
cell has a point at which all of its members are 0; if no member is constant where those after it are 0; and if no other unit is 0 wherever the members after it are.  Equations are solved in whole numbers, so that
what is left are rows in fewer inputs that must be positive, which `tessella.partition.inside` decides.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tessella.partition.exact import Exact
from tessella.partition.inside import point_inside
from tessella.partition.integers import Integers, rows_of


class Flats:
    """Exact answers on sets of hyperplanes in the cells of one tree.

    Parameters
    ----------
    exact
        Knows the tree's cells.

    Examples
    --------
    >>> from tessella import Box, Network, stability
    >>> from tessella.partition.tree import Tree
    >>> network = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], None)], relu_output=True)
    >>> flats = Flats(Exact(Tree.of(stability(network, Box(-1, 1, dim=2), method="interval"))))
    >>> [flats.part(0, b"", [0, 1, 2], members, [1, 1, 1]) for members in ([], [0], [0, 1], [1, 2])]
    [[1, 1, 1], [0, 1, 1], [0, 0, 0], None]
    """

    def __init__(self, exact: Exact) -> None:
        """Nothing is known yet."""
        self._exact = exact

    def part(
        self, layer: int, prefix: bytes, deciding: Sequence[int], members: Sequence[int], preferred: Sequence[int]
    ) -> list[int] | None:
        """The signs of a layer's deciding units in the part that a set stands for; None if the set is not alive.

        Parameters
        ----------
        layer, prefix
            The layer, and the decisions on all before it: these have a cell with an interior.
        deciding
            The units that decide, in order.
        members
            Those that are in the set.
        preferred
            The sign of each deciding unit that parts are told by.
        """
        cell, rows = self._exact.cell(prefix), self._exact.units(layer, prefix).numbers
        if cell is None:
            return None
        cutting = [unit for unit in deciding if rows[unit].any()]
        if not set(members) <= set(cutting):
            return None
        here = _point(cell, rows[cutting], [unit in members for unit in cutting])
        if here is None:
            return None
        signs, sides = list[int](), list[Integers]()
        for unit, wanted in zip(deciding, preferred, strict=True):
            row, sign = rows[unit], 1 - wanted
            if not row.any():
                sign = 0  # 0 everywhere is inactive
            elif unit not in members:
                towards = row if wanted else -row
                if _value(towards, here) > 0:
                    sign = wanted
                else:
                    later = [one for one in members if one > unit]
                    found = _point(np.vstack([cell, *sides, towards]), rows[later], [True] * len(later))
                    sign, here = (wanted, found) if found is not None else (sign, here)
            signs.append(sign)
            if row.any():
                sides.append(row if sign else -row)
        return signs


def _value(row: Integers, point: list[Fraction]) -> Fraction:
    return sum((number * place for number, place in zip(row[:-1].tolist(), point, strict=True) if number), Fraction(row[-1]))


def _point(positive: Integers, units: Integers, members: Sequence[bool]) -> list[Fraction] | None:
    """A point of the closed cube where some rows are positive and members are 0; None if there is none, a member is constant where those after it are 0, or another unit is 0 there."""
    inputs, solved = positive.shape[1] - 1, list[tuple[int, Integers]]()
    for number in range(len(units) - 1, -1, -1):
        row = units[number]
        if not members[number]:
            if not row.any():
                return None
            continue
        place = next((at for at in range(inputs) if row[at]), None)
        if place is None:
            return None
        solved.append((place, row))
        sign, rest, below = 1 if row[place] > 0 else -1, row.copy(), row.copy()
        rest[place] = below[place] = 0
        below[-1] += row[place]
        ends = np.vstack([-sign * rest, sign * below])  # the input that is solved for lies between 0 and 1
        positive = np.vstack([_without(positive, row, place), ends])
        units = _without(units[:number], row, place)
    constant = ~(positive[:, :-1] != 0).any(axis=1)
    if any(number <= 0 for number in positive[constant, -1]):
        return None
    places = {place for place, _ in solved}
    kept, point = [at for at in range(inputs) if at not in places], [Fraction(0)] * inputs
    if kept:
        found = point_inside(rows_of(positive[~constant][:, [*kept, inputs]]))
        if found is None:
            return None
        for at, number in zip(kept, found[:-1], strict=True):
            point[at] = Fraction(int(number), int(found[-1]))
    for place, row in reversed(solved):
        point[place] = Fraction(0)
        point[place] = -_value(row, point) / int(row[place])
    return point


def _without(rows: Integers, row: Integers, place: int) -> Integers:
    """Rows times a positive number, where one input is replaced by what makes another row 0."""
    size, sign = abs(row[place]), 1 if row[place] > 0 else -1
    found = rows * size - (sign * rows[:, place])[:, None] * row
    return found // np.maximum(np.abs(np.gcd.reduce(found, axis=1)), 1)[:, None] if len(found) else found
