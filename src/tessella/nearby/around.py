"""What is known of one ball: its regions, counted, or bounded in the time given; the units that change; and the walls nearest to its centre."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tessella.counting.count import count
from tessella.domain import Box
from tessella.estimating.estimate import estimate
from tessella.kernel.deadline import Deadline
from tessella.methods import Method
from tessella.nearby.balls import Balls
from tessella.nearby.cells import Cells
from tessella.nearby.reduced import reduce
from tessella.nearby.walls import distances
from tessella.network import Floats, Network
from tessella.parallel import Stop
from tessella.result import Status
from tessella.stability import Stability, stability

_FEW_UNITS = 60  # that may change, up to which cells are counted one by one
_MOST = 3000  # regions of a ball that are counted that way
_LEAST = 0.01  # seconds for a count
_HOPEFUL = 0.05  # seconds in which a descent may end
_COUNTING = 0.5  # the part of a limited time for counting; descents have the rest


class Around(NamedTuple):
    """What is known of one ball: two bounds of it with the confidence asked for; and whether its time was over before it was counted."""

    lower: int
    upper: int
    units_lower: int
    units_upper: int
    walls: list[list[float]]
    probable_lower: int
    probable_upper: int
    late: bool


class Chances(NamedTuple):
    """How sure bounds from random descents shall be, and what they are drawn from."""

    confidence: float
    seed: int


class _Known(NamedTuple):
    """What is known of a network on a domain."""

    lower: int
    upper: int
    units_lower: int = 0
    units_upper: int = 0
    late: bool = False
    probable_lower: int = 0
    probable_upper: int | None = None


def ask(  # noqa: PLR0913, PLR0917  one task for a worker
    first: int, balls: Balls, places: Floats, seconds: float | None, chances: Chances, stop: Stop
) -> list[Around]:
    """What is known of some balls.

    Parameters
    ----------
    first
        The number of the first one.
    balls, places
        The balls, and the points that they are around.
    seconds
        For each of them on average; None for no limit.
    chances
        For those that are not counted in this time.
    stop
        Asked while one of them is counted; work then ends as at Ctrl-C.
    """
    deadline, found = Deadline.after(None if seconds is None else seconds * len(places)), list[Around]()
    for number, place in enumerate(places):
        chosen = chances._replace(seed=chances.seed + first + number)
        found.append(_around(balls, place, deadline.part(1.0 / (len(places) - number)), chosen, stop))
    return found


def _around(balls: Balls, place: Floats, deadline: Deadline, chances: Chances, stop: Stop) -> Around:
    """What is known of one ball."""
    walls = distances(balls.network, place, balls.basis).T.tolist()
    parts = balls.around(place)
    shared = chances._replace(confidence=1.0 - (1.0 - chances.confidence) / len(parts))
    inner, *others = (
        _bounded(network, domain, deadline.part(1.0 / (len(parts) - number)), shared, stop)
        for number, (network, domain) in enumerate(parts)
    )
    outer = others[0] if others else inner
    likely = max(inner.probable_lower, inner.lower), min(outer.probable_upper or outer.upper, outer.upper)
    return Around(inner.lower, outer.upper, outer.units_lower, outer.units_upper, walls, *likely, inner.late or outer.late)


def _bounded(network: Network, domain: Any, deadline: Deadline, chances: Chances, stop: Stop) -> _Known:
    """Bounds on the regions of a domain, and on the units that change there."""
    if not domain.free_dim:
        return _Known(1, 1)
    known = stability(network, domain, method=Method.LINEAR)
    units = known.totals()["unstable"]
    if not units:
        return _Known(1, 1)
    lower, upper, both, thin = 1, None, 0, False
    counting = deadline.part(_COUNTING)
    if units <= _FEW_UNITS:
        cells = Cells(reduce(known), _start(domain))
        quick = cells.count(lambda: counting.passed or stop.asked, _MOST)
        lower, upper, both, thin = quick.lower, quick.upper, int(quick.both.sum()), quick.thin > 0
        if lower == upper:
            return _Known(lower, upper, both, both)  # all regions are known, and so is who changes
    if upper is None or thin or lower >= _MOST or not counting.passed:
        slow = _slowly(network, domain, known, counting, stop)
        lower, upper = max(lower, slow[0]), min(slow[1], upper or slow[1])
    if lower == upper or deadline.left < _HOPEFUL or np.isinf(deadline.left):
        return _Known(lower, upper, both, units, lower < upper and counting.passed)
    return _Known(lower, upper, both, units, counting.passed, *_probably(known, deadline, chances, stop))


def _slowly(network: Network, domain: Any, known: Stability, deadline: Deadline, stop: Stop) -> tuple[int, int]:
    """Bounds by the count of whole domains."""
    left = None if np.isinf(deadline.left) else max(deadline.left, _LEAST)
    found = count(network, domain, stability=known, seconds=left, workers=1, progress=partial(_obey, stop))
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return found.lower, found.upper


def _probably(known: Stability, deadline: Deadline, chances: Chances, stop: Stop) -> tuple[int, int | None]:
    """Bounds that hold together with the confidence."""
    found = estimate(
        known.network,
        known.domain,
        seconds=deadline.left,
        confidence=chances.confidence,
        rng=chances.seed,
        workers=1,
        stability=known,
        counting=False,
        progress=partial(_obey, stop),
    )
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return found.lower, found.upper


def _obey(stop: Stop, _now: object) -> None:
    """End what tells how far it is as Ctrl-C would, which only the main thread gets."""
    if stop.asked:
        raise KeyboardInterrupt


def _start(domain: Any) -> Floats:
    """A point inside, with its free inputs scaled to [-1, 1]."""
    box = domain.box
    if isinstance(domain, Box):
        return np.zeros(box.free_dim)
    centre, half = box.lower / 2.0 + box.upper / 2.0, (box.upper - box.lower) / 2.0
    return ((domain.centre - centre)[box.free] / half[box.free]).clip(-1.0, 1.0)
