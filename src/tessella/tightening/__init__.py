"""From a network and a domain to proved bounds on every preactivation."""

from collections.abc import Callable
from concurrent.futures import Executor
from typing import cast

import numpy as np

from tessella import options
from tessella.domain import Box, Domain
from tessella.door import DomainLike, NetworkLike, enter
from tessella.errors import NetworkError, WorkerLost
from tessella.executors import ExecutorLike, hiring
from tessella.kernel import meter
from tessella.methods import Method
from tessella.network import Layer, Network
from tessella.parallel import Progress, say_lost
from tessella.preactivation import PreactivationBounds, intersect, passed_on, stack
from tessella.progress import units, with_bar
from tessella.tightening.extremes import Ended, optimise
from tessella.tightening.interval import endless_intervals, interval
from tessella.tightening.linear import linear
from tessella.tightening.relaxation import Pair


@with_bar(units)
@hiring
def tighten(  # noqa: PLR0913  one keyword per option
    network: NetworkLike,
    domain: DomainLike,
    *,
    method: Method | str = Method.MILP,
    seconds_per_unit: float = 10.0,
    executor: ExecutorLike | None = None,
    progress: Progress | bool | None = None,
) -> PreactivationBounds:
    """Bound every preactivation over a domain.

    Each method starts from the bounds of the one before it and is at least as tight.  All bounds are rounded outward.
    Ctrl-C returns what is proved so far.

    Parameters
    ----------
    network, domain
        Of what, and where: what `tessella.load` takes, and a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.
    method
        ``"interval"``: interval arithmetic, exact in the first layer of a box.  ``"linear"``: linear bounds substituted backwards.
        ``"lp"``: linear programs over the convex outer approximation of the layers before.  ``"milp"``: the exact range of
        every unit that is not yet decided: the smallest H and H-bar.  What misses them by more than 1e-6 of the unit's size is
        counted in `unproved`.  On unbounded domains it is interval arithmetic whatever is asked: nearly all ranges are infinite there.
    seconds_per_unit, executor, progress
        As in `tessella.stability`.

    Examples
    --------
    >>> from tessella.domain import Box
    >>> net = Network.from_arrays([([[1.0], [1.0]], None), ([[1.0, -1.0]], None)], relu_output=True)
    >>> [float(tighten(net, Box(0, 1, dim=1), method=name).upper[1][0].round(6)) for name in ("interval", "linear")]
    [1.0, 0.0]
    """
    start, compiled = meter.clock(), meter.compile_seconds()
    network, domain = enter(network, domain)
    who = "a search for stable units"
    chosen = options.chosen(Method, method, "method", who)
    options.check_seconds(seconds_per_unit, who, otherwise="", name="seconds_per_unit")
    executor = options.check_executor(executor, who)
    tell = options.check_progress(progress, who, "the number of units done and their total")
    if not domain.bounded:
        ends = stack(endless_intervals(network.layers, domain.box.lower, domain.box.upper))
        return PreactivationBounds(*ends, Method.INTERVAL, seconds=meter.clock() - start)
    order = list(Method)[: list(Method).index(chosen) + 1]
    tick = _ticker(tell, len(order) * sum(layer.units for layer in network.layers))
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is reported in the end
        known, late, ended = _stages(network, domain, order, seconds_per_unit, executor, tick)
    if isinstance(ended, WorkerLost):
        say_lost(f"{ended}; units keep the bounds proved so far")
    lower, upper = stack(known)
    for number, ends in enumerate(zip(lower, upper, strict=True), start=1):
        if not np.isfinite(ends).all():
            msg = f"layer {number}: preactivations pass the largest floating-point number on this domain; scale weights or domain down"
            raise NetworkError(msg)
    seconds, loading = meter.clock() - start, meter.compile_seconds() - compiled
    return PreactivationBounds(lower, upper, chosen, late, seconds, isinstance(ended, KeyboardInterrupt), loading)


def _stages(  # noqa: PLR0913, PLR0917  what `tighten` was asked
    network: Network, domain: Domain, order: list[Method], seconds: float, executor: Executor | None, tick: Callable[[int], None]
) -> tuple[list[Pair], int, Ended]:
    """Bounds by each method in turn, how many units the last one left short of what it can do, and what ended it, if anything did."""
    previous, late, ended = list[Pair](), 0, cast("Ended", None)
    for stage in order:
        try:
            previous, late, ended = _stage(network, domain, stage, previous, seconds, executor, tick)
        except KeyboardInterrupt as error:
            if not previous:
                raise
            ended, late = error, -1
        if ended:
            if late < 0 or stage is not order[-1]:
                late = sum(_undecided(layer, pair) for layer, pair in zip(network.layers[1:], previous[1:], strict=True))
            break
    return previous, late, ended


def _stage(  # noqa: PLR0913, PLR0917  what `tighten` was asked
    network: Network,
    domain: Domain,
    stage: Method,
    previous: list[Pair],
    seconds: float,
    executor: Executor | None,
    tick: Callable[[int], None],
) -> tuple[list[Pair], int, Ended]:
    """Bounds by one method, how many units it left short of what it can do, and what ended it, if anything did."""
    known, late, ended, brought = list[Pair](), 0, cast("Ended", None), False
    for number, layer in enumerate(network.layers):
        bounds = _cheap(network, domain, known, stage)
        bounds = intersect(previous[number], bounds) if previous else bounds
        todo = _undecided(layer, bounds) if _needs_optimising(stage, domain, number) else 0
        tick(layer.units - todo)
        if ended:
            late += todo
        elif todo:
            exact = stage is Method.MILP
            bounds, missed, ended = optimise(
                network, domain, known, bounds, branch=exact, seconds=seconds, executor=executor, progress=tick
            )
            late, brought = late + missed, brought or missed < todo
            if isinstance(ended, WorkerLost) and stage is Method.LP and not brought:  # it never worked
                raise ended
        known.append(bounds)
    return known, late, ended


def _undecided(layer: Layer, bounds: Pair) -> int:
    return int((layer.rectified & (bounds[0] < 0.0) & (bounds[1] > 0.0)).sum())


def _needs_optimising(stage: Method, domain: Domain, number: int) -> bool:
    """The first layer's range over a box is exact by interval arithmetic already."""
    return stage in {Method.LP, Method.MILP} and (number > 0 or not isinstance(domain, Box))


def _cheap(network: Network, domain: Domain, known: list[Pair], stage: Method) -> Pair:
    """The next layer's bounds by interval arithmetic and, if asked for, linear bounds."""
    layer = network.layers[len(known)]
    if not known:
        return interval(layer, domain.box.lower, domain.box.upper)
    bounds = interval(layer, *passed_on(network.layers[len(known) - 1], *known[-1]))
    return bounds if stage is Method.INTERVAL else intersect(bounds, linear(network, domain.box, known))


def _ticker(progress: Progress | None, total: int) -> Callable[[int], None]:
    """Count units and report."""
    done = 0

    def tick(units: int) -> None:
        nonlocal done
        done += units
        if progress is not None:
            progress(done, total)

    return tick
