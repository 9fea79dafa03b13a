"""Random parity constraints on binary variables: how they are drawn, as rows of a model, and as equations over two elements."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np

from tessella.formulation.model import Row

_AT_ONCE = 64  # constraints drawn with one call


class Parity(NamedTuple):
    """Among some variables, an odd number are 1, or an even one."""

    mask: int  # the variables, as bits: variable i is in it if bit i is 1
    odd: int  # 1 if the number of ones is odd, 0 if it is even

    @property
    def variables(self) -> list[int]:
        """The numbers of the variables, in order."""
        return [i for i in range(self.mask.bit_length()) if self.mask >> i & 1]

    def holds(self, assignment: int) -> bool:
        """Whether an assignment satisfies it, given as bits like the mask."""
        return (self.mask & assignment).bit_count() & 1 == self.odd


def bits(states: Iterable[int]) -> int:
    """An assignment as an integer: bit i is the state of variable i.

    Examples
    --------
    >>> bits([1, 0, 1])
    5
    """
    return sum(1 << i for i, state in enumerate(states) if state)


def parities(variables: int, size: int, seed: np.random.SeedSequence) -> Iterator[Parity]:
    """Draw parity constraints without end: ``size`` distinct variables, all sets alike, and a parity, both sides alike.

    Parameters
    ----------
    variables
        How many there are.
    size
        How many of them are in one constraint; all, if there are fewer.
    seed
        The same seed draws the same constraints.

    Examples
    --------
    >>> drawn = parities(8, 3, np.random.SeedSequence(0))
    >>> [next(drawn).variables for _ in range(3)]
    [[1, 2, 3], [3, 5, 7], [2, 4, 5]]
    """
    rng = np.random.default_rng(seed)
    while True:
        sets = np.argsort(rng.random((_AT_ONCE, variables)), axis=1)[:, :size].tolist()
        for chosen, odd in zip(sets, rng.integers(2, size=_AT_ONCE).tolist(), strict=True):
            yield Parity(sum(1 << i for i in chosen), odd)


def parity_rows(parity: Parity, columns: Sequence[int]) -> list[Row]:
    """A parity constraint as rows: the canonical cuts of the hypercube (Balas and Jeroslow 1972), each against one wrong assignment.

    There are 2**(k - 1) of them for k variables.  They describe the convex hull of the assignments that are right (Jeroslow 1975).
    For two variables it is one equation.

    Parameters
    ----------
    parity
        The constraint; it needs a variable.
    columns
        The model's column of each variable.

    Examples
    --------
    >>> parity_rows(Parity(0b11, 1), [4, 7])
    [Row(columns=(4, 7), coefficients=(1.0, 1.0), lower=1.0, upper=1.0)]
    >>> len(parity_rows(Parity(0b11111, 0), range(5)))
    16
    """
    own = tuple(columns[i] for i in parity.variables)
    if len(own) == 2:
        return [Row(own, (1.0, 1.0), 1.0, 1.0)] if parity.odd else [Row(own, (1.0, -1.0), 0.0, 0.0)]
    wrong = (states for states in product((0, 1), repeat=len(own)) if sum(states) & 1 != parity.odd)
    return [exclusion(own, states) for states in wrong]


def exclusion(columns: Sequence[int], states: Iterable[int]) -> Row:
    """The row that one assignment of some binary columns violates, and no other.

    Examples
    --------
    >>> exclusion([0, 1], [1, 0])
    Row(columns=(0, 1), coefficients=(1.0, -1.0), lower=-inf, upper=0.0)
    """
    signs = tuple(1.0 if state else -1.0 for state in states)
    return Row(tuple(columns), signs, -np.inf, float(sum(sign > 0.0 for sign in signs)) - 1.0)


@dataclass(slots=True)
class Echelon:
    """Parity constraints in echelon form over two elements: no two have the same last variable.

    Every constraint on the first variables only that follows from all of them follows from those whose last variable is among the
    first; so whoever decides variables in order notices a contradiction as early as it can be noticed.

    Examples
    --------
    >>> echelon = Echelon()
    >>> echelon.add(Parity(0b11, 1)), echelon.add(Parity(0b11, 1))
    (Parity(mask=3, odd=1), Parity(mask=0, odd=0))
    >>> echelon.add(Parity(0b11, 0))  # 0 = 1
    Parity(mask=0, odd=1)
    """

    rows: dict[int, Parity] = field(default_factory=dict[int, Parity])

    def add(self, parity: Parity) -> Parity:
        """Add a constraint; returns what it says beyond the others, which has no variables if it follows from them or contradicts them."""
        mask, odd = parity
        while mask and (row := self.rows.get(mask.bit_length() - 1)):
            mask, odd = mask ^ row.mask, odd ^ row.odd
        rest = Parity(mask, odd)
        if mask:
            self.rows[mask.bit_length() - 1] = rest
        return rest

    def reduced(self) -> list[Parity]:
        """The same constraints such that the last variable of each is in no other."""
        found = dict[int, Parity]()
        for last in sorted(self.rows):
            mask, odd = self.rows[last]
            for pivot, row in found.items():
                if mask >> pivot & 1:
                    mask, odd = mask ^ row.mask, odd ^ row.odd
            found[last] = Parity(mask, odd)
        return list(found.values())
