"""From a network and a domain to proved bounds on every preactivation."""

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np

from tessella import options
from tessella.domain import Box, Domain
from tessella.door import DomainLike, NetworkLike, enter
from tessella.errors import NetworkError, OptionError, WorkerLost
from tessella.executors import ExecutorLike, hiring
from tessella.kernel import meter
from tessella.kernel.deadline import Deadline
from tessella.methods import Method, Units
from tessella.network import Network
from tessella.parallel import Progress, say_lost
from tessella.preactivation import PreactivationBounds, intersect, passed_on, stack
from tessella.progress import units, with_bar
from tessella.tightening.extremes import Effort, Ended, optimise
from tessella.tightening.interval import endless_intervals, interval
from tessella.tightening.linear import linear
from tessella.tightening.relaxation import Pair

_MODERATE = 1e8  # multiplications for linear bounds of all units of a layer; beyond, those that interval arithmetic decides keep its bounds


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
    seconds: float | None = None,
    known: PreactivationBounds | None = None,
    units: Units | str = Units.UNSTABLE,
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
        every unit that is asked for: the smallest H and H-bar.  What misses them by more than 1e-6 of the unit's size is
        counted in `unproved`.  On unbounded domains it is interval arithmetic whatever is asked: nearly all ranges are infinite there.
    seconds_per_unit, executor, progress, seconds
        As in `tessella.stability`.
    known
        Bounds that are proved already: what is found is never wider, and methods that they were found by are not used again.
    units
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
    chosen, asked = options.chosen(Method, method, "method", who), options.chosen(Units, units, "units", who)
    options.check_seconds(seconds_per_unit, who, otherwise="", name="seconds_per_unit")
    executor = options.check_executor(executor, who)
    tell = options.check_progress(progress, who, "the number of units done and their total")
    options.check_seconds(seconds, who)
    if not domain.bounded:
        ends = stack(endless_intervals(network.layers, domain.box.lower, domain.box.upper))
        return PreactivationBounds(*ends, Method.INTERVAL, seconds=meter.clock() - start, units=asked)
    order, previous = _start(network, chosen, known)
    tick = _ticker(tell, network, len(_slow(order)))
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is reported in the end
        effort = Effort(seconds_per_unit, Deadline.after(seconds), executor, tick, asked is Units.ALL)
        found, late, ended = _stages(network, domain, order, previous, effort)
    if isinstance(ended, WorkerLost):
        say_lost(f"{ended}; units keep the bounds proved so far")
    lower, upper = stack(found)
    for number, ends in enumerate(zip(lower, upper, strict=True), start=1):
        if not np.isfinite(ends).all():
            msg = f"layer {number}: preactivations pass the largest floating-point number on this domain; scale weights or domain down"
            raise NetworkError(msg)
    spent, loading = meter.clock() - start, meter.compile_seconds() - compiled
    return PreactivationBounds(lower, upper, chosen, late, spent, isinstance(ended, KeyboardInterrupt), loading, asked)


def _start(network: Network, chosen: Method, known: PreactivationBounds | None) -> tuple[list[Method], list[Pair]]:
    """The methods to use in turn, and the bounds to begin with, none if nothing is known."""
    order = list(Method)
    order = order[: order.index(chosen) + 1]
    if known is None:
        return order, []
    if not known.matches(network):
        msg = f"the bounds given belong to a network of another shape than {network!r}; leave them out, or tighten its own"
        raise OptionError(msg)
    done = list(Method).index(known.method)
    return [method for method in order[:-1] if list(Method).index(method) > done] + [chosen], list(
        zip(known.lower, known.upper, strict=True)
    )


def _stages(
    network: Network, domain: Domain, order: list[Method], previous: list[Pair], effort: Effort
) -> tuple[list[Pair], int, Ended]:
    """Bounds by each method in turn, how many units the last one left short of what it can do, and what ended it, if anything did."""
    late, ended = 0, cast("Ended", None)
    quick = replace(effort, tick=lambda _: effort.tick(0))
    for stage in order:
        if previous and effort.deadline.passed:
            return previous, _all_asked(network, domain, order[-1], previous, effort), None
        try:
            previous, late, ended = _stage(network, domain, stage, previous, effort if stage in _slow(order) else quick)
        except KeyboardInterrupt as error:
            if not previous:
                raise
            ended, late = error, -1
        if ended:
            if late < 0 or stage is not order[-1]:
                late = _all_asked(network, domain, order[-1], previous, effort)
            break
    return previous, late, ended


def _stage(
    network: Network, domain: Domain, stage: Method, previous: list[Pair], effort: Effort
) -> tuple[list[Pair], int, Ended]:
    """Bounds by one method, how many units it left short of what it can do, and what ended it, if anything did."""
    found, late, ended, brought = list[Pair](), 0, cast("Ended", None), False
    for number, layer in enumerate(network.layers):
        bounds, missed = _cheap(network, domain, found, stage, previous, effort)
        todo = int(effort.asked(layer, bounds).sum()) if _needs_optimising(stage, domain, number) else 0
        effort.tick(layer.units - todo)
        if todo:
            missed = todo
            if not (ended or effort.deadline.passed):
                bounds, missed, ended = optimise(network, domain, found, bounds, branch=stage is Method.MILP, effort=effort)
                brought = brought or missed < todo
                if isinstance(ended, WorkerLost) and stage is Method.LP and not brought:  # it never worked
                    raise ended
        late += missed
        found.append(bounds)
    return found, late, ended


def _slow(order: list[Method]) -> list[Method]:
    """The methods that take the time: those that optimise, if any do."""
    return [stage for stage in order if stage in {Method.LP, Method.MILP}] or order


def _all_asked(network: Network, domain: Domain, method: Method, bounds: list[Pair], effort: Effort) -> int:
    """How many units this method could make tighter."""
    first = 0 if _needs_optimising(method, domain, 0) else 1
    layers = zip(network.layers[first:], bounds[first:], strict=True)
    return sum(int(effort.asked(layer, pair).sum()) for layer, pair in layers)


def _needs_optimising(stage: Method, domain: Domain, number: int) -> bool:
    """The first layer's range over a box is exact by interval arithmetic already."""
    return stage in {Method.LP, Method.MILP} and (number > 0 or not isinstance(domain, Box))


def _cheap(  # noqa: PLR0913, PLR0917  what a stage knows
    network: Network, domain: Domain, found: list[Pair], stage: Method, previous: list[Pair], effort: Effort
) -> tuple[Pair, int]:
    """The next layer's bounds by interval arithmetic and, if asked for, linear bounds; and for how many of the units asked for there was no time."""
    number = len(found)
    layer = network.layers[number]
    if (
        previous and effort.deadline.passed
    ):  # nothing waits for the time, not even interval arithmetic: a wide layer takes a second
        late = effort.asked(layer, previous[number])
        return previous[number], int(late.sum()) if found and stage is Method.LINEAR else 0
    inputs = passed_on(network.layers[number - 1], *found[-1]) if found else (domain.box.lower, domain.box.upper)
    bounds = interval(layer, *inputs)
    if previous:
        bounds = intersect(previous[number], bounds)
    if not found or stage is Method.INTERVAL:
        return bounds, 0
    asked = effort.asked(layer, bounds)
    work = layer.units * sum(before.parameters for before in network.layers[:number])
    lower, upper = linear(network, domain.box, found, None if work <= _MODERATE else asked, effort.deadline)
    missed = int((asked & np.isinf(upper)).sum()) if stage is Method.LINEAR else 0
    return intersect(bounds, (lower, upper)), missed


def _ticker(progress: Progress | None, network: Network, passes: int) -> Callable[[int], None]:
    """Report how many of the ReLUs are done, of which each is passed so many times."""
    steps, done = passes * sum(layer.units for layer in network.layers), 0

    def tick(units: int) -> None:
        nonlocal done
        done += units
        if progress is not None:
            progress(network.relus * done // max(steps, 1), network.relus)

    return tick
