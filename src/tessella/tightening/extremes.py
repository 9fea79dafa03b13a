"""Bounds by optimisation: the LP relaxation of the layers before, or branch and bound on it."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tessella.domain import Domain
from tessella.errors import WorkerLost
from tessella.kernel import meter
from tessella.kernel.deadline import Deadline
from tessella.network import Floats, Layer, Mask, Network
from tessella.parallel import Stop, run
from tessella.tightening.relaxation import Pair, relax

Ended = KeyboardInterrupt | WorkerLost | None
"""What ended a search early."""

_LARGEST = 10_000_000  # entries of the rows' matrix; beyond, a layer keeps the bounds it has
_MOST_WORK = 1_000_000_000  # multiplications to write a layer in terms of the relaxation's variables: seconds, for each batch
_PACE = (
    300_000_000  # of these in a second, at least, unless others work beside: what does not fit the time that is left is not begun
)
_BATCH = 4  # units per task: enough to share the set-up, few enough to keep all workers busy


@dataclass(frozen=True, slots=True)
class Effort:
    """How long units are worked on, and where."""

    seconds: float  # when to stop work on one unit
    deadline: Deadline  # when to stop work on all of them
    executor: Executor | None  # where units are worked on side by side
    tick: Callable[[int], None]  # called with the number of units just done
    every: bool = False  # whether stable and linear units are worked on, too

    def asked(self, layer: Layer, bounds: Pair) -> Mask:
        """Which units of a layer are worked on: all whose bounds are apart, or ReLUs whose state the bounds leave open."""
        low, high = bounds
        return low < high if self.every else layer.rectified & (low < 0.0) & (high > 0.0)


class _Batch(NamedTuple):
    """Some units of one layer to work on; sent to other processes as plain values."""

    units: npt.NDArray[np.int64]
    low: Floats
    high: Floats
    branch: bool
    every: bool
    seconds: float  # for each
    left: float  # for all


def optimise(  # noqa: PLR0913  one parameter per option
    network: Network,
    domain: Domain,
    known: Sequence[Pair],
    start: Pair,
    *,
    branch: bool,
    effort: Effort,
) -> tuple[Pair, int, Ended]:
    """Tighten one layer's bounds; units that are decided already are left alone unless every unit is asked for.

    Parameters
    ----------
    network, domain
        What and where.
    known
        Bounds of all layers before this one.
    start
        The layer's bounds so far.
    branch
        Whether to branch (the exact range) or not (the LP's).
    effort
        When to stop, where to work, and on which units.

    Returns
    -------
    The tightened bounds, how many units' searches were cut short, and what ended all searches, if anything did.
    """
    layer = network.layers[len(known)]
    low, high = start[0].copy(), start[1].copy()
    undecided = np.flatnonzero(effort.asked(layer, start))
    rows = 2 * sum(int((layer.rectified & (a < 0) & (b > 0)).sum()) for layer, (a, b) in zip(network.layers, known, strict=False))
    variables = rows // 2 + domain.free_dim
    composed = variables * sum(before.parameters for before in network.layers[: len(known) + 1])
    if rows * variables > _LARGEST or composed > min(_MOST_WORK, _PACE * max(effort.deadline.left, 0.0)):
        effort.tick(len(undecided))
        return (low, high), len(undecided), None
    if len(undecided):
        _load()
    batches = [undecided[place : place + _BATCH] for place in range(0, len(undecided), _BATCH)]
    stop, late, left = Stop(), 0, len(undecided)
    how = branch, effort.every, effort.seconds, effort.deadline.left
    tasks = [(network, domain, list(known), _Batch(batch, low[batch], high[batch], *how), stop) for batch in batches]
    try:
        for number, (lower, upper, unproved) in run(_extremes, tasks, effort.executor, lambda: effort.deadline.passed):
            low[batches[number]], high[batches[number]] = lower, upper
            late += unproved
            left -= len(batches[number])
            effort.tick(len(batches[number]))
    except (KeyboardInterrupt, WorkerLost) as ended:
        return (low, high), late + left, ended
    finally:
        stop.asked = True  # of those that are still at work
    return (low, high), late + left, None


def _load() -> None:
    """Load what a search calls, compiled if need be, before units are worked on side by side."""
    from tessella.kernel import warming  # noqa: PLC0415  loads the compiler
    from tessella.kernel.program import Program  # noqa: PLC0415

    warming.load(Program.functions)


@np.errstate(over="ignore", invalid="ignore")  # threads begin with a state of their own; what overflows is reported in the end
def _extremes(network: Network, domain: Domain, known: list[Pair], batch: _Batch, stop: Stop) -> tuple[Floats, Floats, int]:
    """Lower and upper bounds of some units of one layer, each in so many seconds, and all in what is left."""
    end = Deadline.after(batch.left)
    from tessella.tightening.search import Limit, Search  # noqa: PLC0415  loads the compiler

    layer, relaxation = network.layers[len(known)], relax(network, domain, known)
    search = Search(network, relaxation, len(known), np.flatnonzero(domain.box.free), domain.box.lower)
    low, high, late = batch.low.copy(), batch.high.copy(), 0
    for place, unit in enumerate(batch.units):
        if stop.asked or end.passed:
            late += len(batch.units) - place
            break
        limit = Limit(min(meter.clock() + batch.seconds, end.end), stop)
        above = search.maximise(int(unit), 1.0, float(high[place]), limit, branch=batch.branch)
        high[place] = above.bound
        complete = above.complete
        matters = batch.every or above.bound > 0.0 or bool(layer.leaky[unit])  # else it is stably inactive, and passes nothing on
        if matters and not limit.reached:
            below = search.maximise(int(unit), -1.0, float(-low[place]), limit, branch=batch.branch)
            low[place] = min(-below.bound, high[place])
            complete = complete and below.complete
        elif matters:
            complete = False
        late += not complete
    return low, high, late
