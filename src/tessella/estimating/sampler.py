"""Descents that reach every region with the same probability: the number of regions bounded from both sides, and regions drawn uniformly.

With U regions promised (`tessella.estimating.promises`), a descent reaches each of N regions with probability 1 / U, and fails otherwise.  So the mean of [reached] is N / U.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from tessella.counting import faces
from tessella.counting.faces_by_programs import dive, meets_by_programs
from tessella.counting.layout import Laid
from tessella.counting.state import Walk
from tessella.estimating.descents import Answers
from tessella.estimating.flats import Flats
from tessella.estimating.promises import SIGNS, Promises, Roles
from tessella.estimating.tokens import ASK, Sampling, descend, go, prefer
from tessella.kernel.functions import address_of
from tessella.network import Floats
from tessella.partition.tree import Tree

_MOST_PARTS = 100_000  # that are remembered


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

    functions = (go, descend, prefer, dive, meets_by_programs)  # the compiled code that descents call

    def __init__(self, tree: Tree, promises: Promises | None = None) -> None:
        """Lay out the network and the table in plain arrays, and find the root's vertex."""
        super().__init__(tree)
        self.promises = promises or Promises.of(tree)
        self._walk.begin_sets = address_of(faces.begin_sets, dive)
        self._walk.meets = address_of(faces.meets, meets_by_programs)
        self._work = _sampling(tree, self.promises, self._walk)
        self._work.domain = self._domain
        self.answers, self._small = Answers(tree), tree.is_small
        self._parts, self._came_to = dict[tuple[bytes, bytes], bytes | None](), b""

    @cached_property
    def _flats(self) -> Flats:
        """What exact arithmetic says of sets."""
        return Flats(self.answers.exact)

    def terms(self, first: int, count: int, base: int, *, counts: bool = True) -> Terms:
        """Some descents, by numbers and a base as in `Descents.rounds`; the last layer is counted, or else one set of it is drawn."""
        low, high, done = np.zeros(count), np.ones(count), 0
        self._work.counts, self._work.stops = counts, True
        while self._exists and done < count:  # else the domain itself is thin: nothing is known
            done += int(go(self._work, first + done, np.array([base], dtype=np.uint64), low[done:], high[done:]))
            if done < count:
                worth = self._worth()
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
        chance, share = np.random.default_rng([number, base]).random(), self._worth()
        if share is None or chance >= share:
            return None
        leaves = list(self.answers.leaves(self._came_to))
        return leaves[int(chance / share * len(leaves))]

    def _worth(self) -> float | None:
        """What part of what was promised is there, where a descent could not go on; None if that is not known.

        That is: how many regions lie below the cell that it came to, or below the part of it that it drew, if that is there.
        """
        work, path = self._work, self._walk.path
        if work.asked == ASK:
            position = path.position
            layer, dim, self._came_to = work.begins.tolist().index(position), work.dim, bytes(path.signs[:position])
        elif not self._small:
            return None
        else:
            part = self._part()
            if part is None:
                return 0.0
            layer, self._came_to = work.layer + 1, bytes(path.signs[: work.begins[work.layer]]) + part
            dim = min(work.entered, self._passed(part))
            if work.modes[work.layer, work.entered] != SIGNS and work.spot >= work.kept[work.layer, work.entered, dim]:
                return 0.0
        found = self.answers.exactly(self._came_to)
        return None if found is None else found / self.promises.table[layer][dim]

    def _part(self) -> bytes | None:
        """The signs of the part that a descent drew and did not find; None if there is no such part."""
        work, layer = self._work, self._work.layer
        begin, end = work.begins[layer], work.begins[layer + 1]
        prefix, drawn = bytes(self._walk.path.signs[:begin]), bytes(work.drawn[begin:end])
        deciding = np.flatnonzero(work.first_of[begin:end] < 0).tolist()
        if work.modes[layer, work.entered] == SIGNS:
            return self._followed([drawn[unit] for unit in deciding], deciding)
        if (prefix, drawn) not in self._parts:
            sides = np.zeros(len(work.drawn), dtype=np.int8)
            prefer(work, sides)
            preferred = [int(max(work.known[begin + unit], sides[begin + unit])) for unit in deciding]
            members = [unit for unit in deciding if drawn[unit]]
            found = self._flats.part(layer, prefix, deciding, members, preferred)
            if len(self._parts) > _MOST_PARTS:
                self._parts.clear()
            self._parts[prefix, drawn] = None if found is None else self._followed(found, deciding)
        return self._parts[prefix, drawn]

    def _followed(self, signs: list[int], deciding: list[int]) -> bytes:
        """The signs of all units of the layer, from those that decide; a row of zeros is inactive."""
        work = self._work
        begin, end = work.begins[work.layer], work.begins[work.layer + 1]
        found = dict(zip(deciding, signs, strict=True))
        for unit in range(end - begin):
            if unit not in found:
                sign = found[int(work.first_of[begin + unit] - begin)]
                quick = int(work.known[begin + unit])
                found[unit] = quick if quick >= 0 else sign if work.factors[begin + unit] > 0 else 1 - sign
        return bytes(found[unit] for unit in range(end - begin))

    def _passed(self, part: bytes) -> int:
        """How many dimensions a part passes on."""
        work, begin = self._work, self._work.begins[self._work.layer]
        active = sum(bool(sign and work.loses[begin + unit]) for unit, sign in enumerate(part))
        return int(work.lasting[work.layer]) + active


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
