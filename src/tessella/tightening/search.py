"""Branch and bound over the states of earlier units, best bound first, on the compiled LP.

At each node some unstable units are decided: active (h = g) or inactive (h = 0).  The LP relaxation bounds the target, and its point,
run through the network, gives a value that is reached.  Both children start from the parent's basis.  What is returned is
the largest bound among all nodes where the search ended, each proved by its own multipliers: neither a wrong incumbent
nor an LP that stopped early can make it too small.
"""

import heapq
from dataclasses import dataclass
from itertools import count

import numpy as np

from tessella.kernel import meter
from tessella.kernel.program import EMPTY, Basis, Outcome, Program
from tessella.network import Floats, Network
from tessella.parallel import Stop
from tessella.tightening.relaxation import Relaxation

_MOST = 20_000  # iterations of one LP
_PORTION = 2e8  # rows times columns times iterations between two looks at the time: some tenths of a second
_CLOSE = 1e-8  # of the target's known range: what two bounds may differ by and count as equal


@dataclass(frozen=True, slots=True)
class Limit:
    """When to stop: at a time of `meter.clock`, or when asked."""

    time: float
    stop: Stop

    @property
    def reached(self) -> bool:
        """Whether it is time."""
        return self.stop.asked or meter.clock() > self.time


@dataclass(frozen=True, slots=True)
class Extreme:
    """The result of one search."""

    bound: float  # a proved upper bound on the target
    reached: float  # the largest value found at a point, but for rounding
    # whether the bound is what the method can prove: without branching, the LP's optimum; with, the value that is reached, but
    # for 1e-6 of the target's size
    complete: bool
    nodes: int  # number of relaxations solved


class Search:
    """Maximise signed preactivations of one layer; holds the scratch memory, so one search serves one thread."""

    def __init__(self, network: Network, relaxation: Relaxation, layer: int, free: np.ndarray, fixed: Floats) -> None:
        """Prepare for a target layer; `free` are the inputs that vary, the others have the values `fixed`."""
        self._relaxation, self._layers, self._target = relaxation, network.layers[:layer], network.layers[layer]
        self._free, self._fixed = free, fixed
        self._program = Program(relaxation.matrix)
        self._portion = int(np.clip(_PORTION / max(relaxation.matrix.size, 1), 10, 1000))
        self._lower = np.zeros(len(relaxation.upper))
        self._undecided = np.zeros(len(relaxation.units), dtype=np.int8)

    def maximise(self, unit: int, sign: float, known: float, limit: Limit, *, branch: bool) -> Extreme:
        """Bound ``sign * preactivation`` of a target unit from above.

        Parameters
        ----------
        unit, sign
            The target.
        known
            A bound that is proved already; the result is never above it.
        limit
            When to stop.
        branch
            Whether to branch at all; without, this is the LP bound.
        """
        relaxation = self._relaxation
        objective, constant, error, size = relaxation.objective(unit, sign)
        ends = constant + error
        root = self._solve(objective, self._undecided, EMPTY, -np.inf, limit)
        reached = self._reached(root, unit, sign)
        bound = min(known, root.bound + ends)
        if not branch or not np.isfinite(root.bound):
            return Extreme(bound, reached, complete=root.optimal, nodes=1)
        close = _CLOSE * max(abs(known), abs(reached), abs(bound - reached), 0.01 * size)
        numbers, nodes, settled = count(), 1, -np.inf
        heap = [(-bound, next(numbers), self._undecided, root.basis, self._branching(root, self._undecided))]
        while heap:
            bound = -heap[0][0]
            if bound <= reached + close or limit.reached:
                break
            _, _, states, basis, unit_to_split = heapq.heappop(heap)
            if unit_to_split < 0:
                settled = max(settled, bound)
                continue
            for state in (1, -1):
                child = states.copy()
                child[unit_to_split] = state
                outcome = self._solve(objective, child, basis, reached + close - ends, limit)
                nodes += 1
                if outcome.bound == -np.inf:
                    continue
                inner = min(bound, outcome.bound + ends)
                if outcome.pruned:
                    settled = max(settled, inner)
                    continue
                reached = max(reached, self._reached(outcome, unit, sign))
                heapq.heappush(heap, (-inner, next(numbers), child, outcome.basis, self._branching(outcome, child)))
        best = min(known, max(settled, -heap[0][0] if heap else -np.inf))
        return Extreme(best, reached, best <= reached + 100.0 * close, nodes)

    def _solve(self, objective: Floats, states: np.ndarray, basis: Basis, cutoff: float, limit: Limit) -> Outcome:
        """The relaxation with some units decided; between portions of iterations the time is looked at."""
        relaxation = self._relaxation
        upper, row_lower, row_upper = relaxation.upper.copy(), relaxation.row_lower.copy(), relaxation.row_upper.copy()
        active, inactive = np.flatnonzero(states == 1), np.flatnonzero(states == -1)
        under = relaxation.first + 2 * active
        row_lower[under] = np.minimum(relaxation.active_lower[active], row_upper[under])
        decided = np.flatnonzero(states)
        row_upper[relaxation.first + 2 * decided + 1] = relaxation.open_upper[decided]
        upper[relaxation.variables[inactive]] = 0.0
        problem = (objective, self._lower, upper, row_lower, row_upper)
        portion = self._portion
        outcome = self._program.maximise(*problem, basis, cutoff, portion)
        for _ in range(_MOST // portion):
            if not outcome.stopped or outcome.iterations < portion or limit.reached:
                break
            outcome = self._program.maximise(*problem, outcome.basis, cutoff, portion)
        return outcome

    def _reached(self, outcome: Outcome, unit: int, sign: float) -> float:
        """The target's value where the relaxation is largest."""
        values = self._fixed.copy()
        inputs = len(self._free)
        scaled = np.clip(outcome.x[:inputs], 0.0, 1.0)
        values[self._free] = self._relaxation.offset[:inputs] + self._relaxation.scale[:inputs] * scaled
        for layer in self._layers:
            values = layer.activate(np.asarray(layer.weight @ values) + layer.bias)
        row = self._target.weight[[unit]]
        return sign * float(np.asarray(row @ values)[0] + self._target.bias[unit])

    def _branching(self, outcome: Outcome, states: np.ndarray) -> int:
        """The undecided unit whose chord costs most, -1 if the point is the network's own."""
        relaxation = self._relaxation
        if not len(states):
            return -1
        under = relaxation.first + 2 * np.arange(len(states))
        above = relaxation.norms[under] * (relaxation.row_upper[under] - outcome.rows[under])  # h - g
        output = relaxation.scale[relaxation.variables] * outcome.x[relaxation.variables]
        gap = np.where(states == 0, np.minimum(above, output), 0.0)
        gap = np.where(gap > _CLOSE * relaxation.scale[relaxation.variables], gap, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):  # what a gap costs only says what is looked at first
            costs = np.nan_to_num(gap * (np.maximum(outcome.multipliers[under + 1], 0.0) / relaxation.norms[under + 1]))
        score = costs if costs.any() else gap
        best = int(np.argmax(score))
        return best if score[best] > 0.0 else -1
