"""Descents that reach every region with the same probability: the number of regions bounded from both sides, and regions drawn uniformly.

With U regions promised (`tessella.estimating.promises`), a descent reaches each of N regions with probability 1 / U, and fails otherwise.  So the mean of [reached] is N / U.
"""

from typing import NamedTuple

import numpy as np

from tessella.counting import faces
from tessella.counting.faces_by_programs import dive, meets_by_programs
from tessella.counting.layout import Laid
from tessella.counting.state import Walk
from tessella.estimating.descents import Answers
from tessella.estimating.promises import Promises, Roles
from tessella.estimating.tokens import Sampling, descend, go
from tessella.kernel.functions import address_of
from tessella.network import Floats
from tessella.partition.tree import Tree


class Terms(NamedTuple):
    """What descents reached, at least and at most, in the order of their numbers: parts of what was promised, in [0, 1]."""

    low: Floats
    high: Floats


class Sampler(Laid):
    """Descents; one object serves one thread.

    Parameters
    ----------
    tree
        The tree; it has a unit, and its domain a free input.
    """

    functions = (go, descend, dive, meets_by_programs)  # the compiled code that descents call

    def __init__(self, tree: Tree, promises: Promises | None = None) -> None:
        """Lay out the network and the table in plain arrays, and find the root's vertex."""
        super().__init__(tree)
        self.promises = promises or Promises.of(tree)
        self._walk.begin_sets = address_of(faces.begin_sets, dive)
        self._walk.meets = address_of(faces.meets, meets_by_programs)
        self._work = _sampling(tree, self.promises, self._walk)
        self._work.domain = self._domain
        self.answers = Answers(tree)

    def terms(self, first: int, count: int, base: int, *, counts: bool = True) -> Terms:
        """Some descents; the same numbers and base give the same results.

        Parameters
        ----------
        first, count
            Their numbers.
        base
            What their seeds are made from.
        counts
            Whether the last layer is counted; else one set of it is drawn.
        """
        low, high, done = np.zeros(count), np.ones(count), 0
        self._work.counts, self._work.stops = counts, True
        while self._exists and done < count:  # else the domain itself is thin: nothing is known
            done += int(go(self._work, first + done, np.array([base], dtype=np.uint64), low[done:], high[done:]))
            if done < count:
                worth = self._below(self._walk.path.position)
                low[done], high[done] = (0.0, 1.0) if worth is None else (worth, worth)
                done += 1
        return Terms(low, high)

    def leaf(self, number: int, base: int) -> bytes | None:
        """The decisions of the region that a descent reached; None if it failed, or if it is not certain which one that is.

        Every region is reached with the same probability, those aside that lie in cells which nobody can decide.
        """
        work, signs = self._work, self._walk.path.signs
        if not self._exists:
            return None
        work.counts = work.stops = False
        reached = go(work, number, np.array([base], dtype=np.uint64), low := np.zeros(1), np.zeros(1))
        if reached:
            return bytes(signs[: len(work.loses)]) if low[0] == 1.0 else None
        position, chance = self._walk.path.position, np.random.default_rng([number, base]).random()
        share = self._below(position)
        if share is None or chance >= share:
            return None
        leaves = list(self.answers.leaves(bytes(signs[:position])))
        return leaves[int(chance / share * len(leaves))]

    def _below(self, position: int) -> float | None:
        """How many regions lie below the path's first decisions, as a part of what was promised there; None if that takes too long."""
        path, layer = self._walk.path, self._work.begins.tolist().index(position)
        found = self.answers.exactly(bytes(path.signs[:position]))
        return None if found is None else found / self.promises.table[layer][self._work.dim]


def _sampling(tree: Tree, promises: Promises, walk: Walk) -> Sampling:
    """What descents are made of."""
    first_of, factors, loses, begins = list[int](), list[int](), list[bool](), [0]
    for number in range(len(tree.network.layers)):
        kinds = Roles.of(tree, number)
        first_of += [begins[-1] + first if first >= 0 else -1 for first in kinds.first.tolist()]
        factors += kinds.factors.tolist()
        loses += kinds.losing.tolist()
        begins.append(len(first_of))
    units = max(len(first_of), 1)
    return Sampling(
        walk=walk,
        begins=np.array(begins, dtype=np.int64),
        first_of=np.array(first_of, dtype=np.int64),
        factors=np.array(factors, dtype=np.int64),
        loses=np.array(loses, dtype=np.int8),
        lasting=np.array([layer.lasting + layer.linear for layer in promises.layers], dtype=np.int64),
        modes=promises.modes(),
        shares=promises.shares(),
        kept=promises.kept(),
        promised=np.array([float(number) for number in promises.table[-2]]),
        drawn=np.zeros(units, dtype=np.int8),
        known=np.zeros(units, dtype=np.int8),
        planes=np.zeros((units, walk.cell.rows.shape[1])),
        seed=np.zeros(1, dtype=np.uint64),
        start=promises.start,
    )
