"""What floating-point arithmetic leaves open in a cell: a point or multipliers, in whole numbers.

Cells whose hyperplanes meet in a point, units that are multiples of each other, or zero, have margins of exactly 0: there the combination of rows that shows a side to be empty must be exact.
"""

from fractions import Fraction
from functools import reduce
from math import gcd, lcm
from typing import NamedTuple, TypeAlias

import numpy as np

from tessella.domain import Polytope
from tessella.partition.exact import Exact
from tessella.partition.inside import settled
from tessella.partition.integers import Integers, joined, on_inputs, rows_of
from tessella.partition.tree import Tree

Multipliers: TypeAlias = dict[int, int]


class Row(NamedTuple):
    """What must be positive: a unit's preactivation, or minus that, by the layer and place of the unit among its ReLUs; or an inequality of the domain, in layer -1."""

    layer: int
    place: int
    side: int


class Exactly:
    """Exact answers on the cells of a network on a bounded domain.

    Parameters
    ----------
    tree
        All of the network, without regard to what is stable.
    """

    def __init__(self, tree: Tree) -> None:
        """Nothing is composed yet."""
        self._exact, self._box = Exact(tree), tree.domain.box
        self._walls = None
        if isinstance(tree.domain, Polytope):
            self._walls = on_inputs(-tree.domain.matrix, tree.domain.offset, self._box)

    def settle(self, rows: list[Row], prefix: bytes) -> tuple[list[Fraction], None] | tuple[None, list[Fraction]]:
        """A point of the box where all rows are positive, by its free inputs from 0 to 1; or multipliers of the rows whose combination is nowhere positive.

        Parameters
        ----------
        rows
            The rows; the last one's layer is decided no further than to there.
        prefix
            The decisions on all layers before that.
        """
        affines = [self._affine(row, prefix) for row in rows]
        flat = [number for number, (numbers, _) in enumerate(affines) if not any(numbers)]
        if flat:  # zero everywhere, so never positive
            return None, [Fraction(number == flat[0]) for number in range(len(rows))]
        exponents = [exponent for _, exponent in affines]
        factors = [reduce(gcd, numbers) for numbers, _ in affines]
        point, multipliers = settled(joined([rows_of(np.array([numbers], dtype=np.object_)) for numbers, _ in affines]))
        if point is not None:
            return [Fraction(int(number), int(point[-1])) for number in point[:-1]], None
        shares = zip((int(one) for one in multipliers), factors, exponents, strict=True)
        return None, [Fraction(one, factor) / Fraction(2) ** exponent for one, factor, exponent in shares]

    def _affine(self, row: Row, prefix: bytes) -> tuple[list[int], int]:
        """A row's coefficients and constant, in the free inputs from 0 to 1, times a power of two."""
        if row.layer < 0:
            walls = self._walls
            return (walls.numbers[row.place].tolist(), walls.exponent) if walls else ([], 0)
        affine = self._exact.units(row.layer, prefix)
        numbers: Integers = affine.numbers[row.place]
        return (numbers if row.side else -numbers).tolist(), affine.exponent


def as_whole(multipliers: dict[int, Fraction]) -> Multipliers:
    """The same up to a factor, as whole numbers; those that are 0 are left out."""
    below = reduce(lcm, (share.denominator for share in multipliers.values()), 1)
    numbers = {unit: int(share * below) for unit, share in multipliers.items() if share}
    common = reduce(gcd, numbers.values(), 0) or 1
    return {unit: number // common for unit, number in numbers.items()}
