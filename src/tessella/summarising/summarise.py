"""The verb: statistics over all regions where they can be listed in time, else over regions that are drawn uniformly."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from tessella.door import DomainLike, NetworkLike, enter
from tessella.errors import OptionError
from tessella.estimating.sampling import drawn_evenly
from tessella.kernel import meter
from tessella.kernel.deadline import Deadline
from tessella.listing.cells import Cells, Ints, Run, list_cells
from tessella.listing.walls import meetings
from tessella.methods import Method
from tessella.network import Floats, Mask
from tessella.options import check_confidence, check_progress, check_seconds, check_whole
from tessella.progress import found_so_far, with_bar
from tessella.result import Status
from tessella.seeds import generator
from tessella.stability import Stability, check_stability, stability_to_go_on_with
from tessella.summarising import identities
from tessella.summarising.intervals import Interval, chance_of, size_of, stage_of
from tessella.summarising.slopes import rounding, upper_bounds
from tessella.summarising.statistics import (
    ONE_BY_ONE,
    SLOPES,
    Statistic,
    chosen_statistics,
    of_region,
    shares,
    slopes,
    volume_of_thin,
)
from tessella.summarising.summary import Distribution, How, Summary

_LISTING, _MEETING = 0.4, 0.5  # of the time that is left: to list regions, and to find which share walls
_EACH = 0.4  # of the time that is left: that one statistic of all regions may take
_TRIED = 16  # regions that are looked at before it is known how long all would take


@dataclass(slots=True)
class _Work:
    """One summary while it is made."""

    known: Stability  # the network, where, and which units are stable
    asked: tuple[Statistic, ...]  # statistics
    chance: float  # of each statistic: the probability with which its intervals may be wrong
    samples: int | None  # how many regions are drawn; None for as many as there is time for
    rng: np.random.Generator  # where random numbers come from
    run: Run  # when to end
    found: dict[Statistic, Distribution] = field(default_factory=dict)  # the distributions so far
    ends: dict[Statistic, Interval] = field(default_factory=dict)  # what statistics of any region lie between

    def wants(self, *statistics: Statistic) -> bool:
        """Whether one of these is asked for."""
        return any(one in self.asked for one in statistics)

    def goes_on(self) -> bool:
        """Whether there is time."""
        return self.run.goes_on(0)

    def note(self, statistic: Statistic, values: Floats | list[float], how: How, points: int = 0) -> None:
        """Write a distribution down, if it is asked for; of what is drawn, the last stage that is finished."""
        if statistic not in self.asked:
            return
        least, most = self.ends[statistic]
        numbers, chance = np.array(values, dtype=np.float64), self.chance if points else 0.0
        if how is How.DRAWN:
            stage = stage_of(len(numbers))
            if len(numbers) == self.samples:  # their number was fixed beforehand
                chance = self.chance
            elif stage < 0:
                how = How.SOME
            else:
                numbers, chance = numbers[: size_of(stage)], chance_of(stage, self.chance)
        self.found[statistic] = Distribution(statistic, numbers, how, least, most, chance, points)


@with_bar(found_so_far)
def summarise(  # noqa: PLR0913  one keyword per option
    network: NetworkLike,
    domain: DomainLike,
    statistics: Iterable[Statistic | str] | str | None = None,
    *,
    seconds: float = 30.0,
    samples: int | None = None,
    confidence: float = 0.95,
    rng: int | np.random.Generator = 0,
    stability: Stability | None = None,
    progress: Callable[[int], None] | bool | None = None,
) -> Summary:
    """Find statistics over the regions of a network: exact over all of them if they can be listed in time, else from uniform samples with confidence intervals.

    Intervals of all statistics hold together with the confidence, whenever it stopped: by Dvoretzky, Kiefer and Wolfowitz for quantiles and shares, by Maurer and Pontil for means,
    by Clopper and Pearson for decisions.  Where all regions are listed there are no intervals.  Ranks, norms, radii and volumes are computed in floating-point arithmetic.

    Parameters
    ----------
    network, domain
        Of what, and where: what `tessella.load` takes, and a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.
    statistics
        Names of `tessella.Statistic`; None for all that the network and the domain have.
    seconds
        How long.
    samples
        Draw so many regions if they cannot be listed, if there is time for them; None for as many as there is time for.
    confidence
        With which all intervals shall hold together.
    rng
        A seed, or a generator that one is drawn from.
    stability, progress
        As in `tessella.graph`.

    Examples
    --------
    >>> import tessella
    >>> net = tessella.Network.from_arrays([([[1.0, 0.0], [1.0, 1.0]], [0.0, 0.5]), ([[1.0, 1.0]], [0.0])])
    >>> found = tessella.summarise(net, (-1, 1), ["active", "spectral", "volume"])
    >>> found.regions, found.distribution("active").mean.value, found.distribution("volume").values.sum()
    (4, 1.0, np.float64(4.0))
    >>> found.lipschitz[0] <= 5**0.5 <= found.lipschitz[1]
    True
    """
    begun = meter.clock()
    network, domain = enter(network, domain)
    check_stability(stability, network, domain, "a summary")
    check_seconds(seconds, "a summary", otherwise="", endless=True)
    check_whole(samples, "samples", "a summary", otherwise="None for as many as there is time for", of="regions")
    check_confidence(confidence, "a summary")
    tell = check_progress(progress, "a summary", "the number of regions found")
    deadline, base = Deadline.after(seconds), generator(rng)
    known = stability or stability_to_go_on_with(network, domain, method=Method.LINEAR)
    asked = chosen_statistics(statistics, known)
    listing = Run(deadline.part(_LISTING), tell=tell)
    cells = list_cells(known, listing, volumes=Statistic.VOLUME in asked)
    work = _Work(known, asked, (1.0 - confidence) / len(asked), samples, base, Run(deadline, tell=tell))
    _write_ends(work)
    pairs, maps = _looked_at(work, listing.status, cells, base)
    drawn = any(one.chance for one in work.found.values())
    return Summary(
        network,
        domain,
        tuple(work.found[one] for one in asked),
        len(cells),
        listing.status is Status.FINISHED,
        lipschitz=_bracket(work, Statistic.SPECTRAL),
        lipschitz_maximum=_bracket(work, Statistic.MAXIMUM),
        maps=None if maps is None else len(np.unique(maps)),
        pieces=None if maps is None or pairs is None else identities.pieces(maps, pairs),
        confidence=confidence if drawn else 1.0,
        status=work.run.status,
        seconds=meter.clock() - begun,
    )


def _looked_at(work: _Work, listed: Status, cells: Cells, base: np.random.Generator) -> tuple[Ints | None, Ints | None]:
    """Fill in the work: from all regions if they are listed, else from some; which of them share a wall, and which a map, if that is known."""
    pairs, maps, whole = None, None, listed is Status.FINISHED
    if listed is Status.INTERRUPTED:
        work.run.status = Status.INTERRUPTED
    with work.run.stoppable():
        if whole:
            pairs = _of_all(work, cells, work.run.deadline)
            maps = identities.same_maps(work.known.network, work.known.domain, cells.patterns)
        elif listed is Status.TIME_LIMIT:
            _of_drawn(work, int(base.integers(2**63)))
    _of_seen(work, cells)
    if not whole and work.run.status is Status.FINISHED:
        work.run.status = Status.TIME_LIMIT
    return pairs, maps


def _write_ends(work: _Work) -> None:
    """Write down what any region's statistics lie between."""
    known, network, domain = work.known, work.known.network, work.known.domain
    total, tops = known.totals(), upper_bounds(known) if work.wants(*SLOPES) else None
    box = domain.box
    widths = (box.upper - box.lower)[box.free]
    radius = float(widths.min(initial=math.inf)) / 2.0
    with np.errstate(over="ignore"):
        volume = float(np.prod(widths))
    work.ends = {
        Statistic.ACTIVE: (0.0, float(network.relus - total["inactive"])),
        Statistic.RANK: (0.0, float(min(domain.free_dim, network.output_dim))),
        Statistic.WALLS: (0.0, float(network.relus)),
        Statistic.RADIUS: (0.0, radius),
        Statistic.VOLUME: (0.0, volume),
        Statistic.SHARE: (0.0, 1.0),
        Statistic.DECISION: (-1.0, float(max(network.output_dim, 2) - 1)),
    }
    if tops is not None:
        work.ends |= {
            Statistic.SPECTRAL: (0.0, float(tops.spectral)),
            Statistic.FROBENIUS: (0.0, float(tops.frobenius)),
            Statistic.MAXIMUM: (0.0, float(tops.maximum)),
        }


def _bracket(work: _Work, statistic: Statistic) -> Interval | None:
    """Two ends of a Lipschitz constant."""
    if statistic not in work.found:
        return None
    found, errors, top = work.found[statistic], rounding(work.known.network, work.known.domain), work.ends[statistic][1]
    off = float(errors.spectral if statistic is Statistic.SPECTRAL else errors.maximum)
    seen = float(found.values.max(initial=0.0))
    return max(0.0, seen - off), min(top, seen + off) if found.how is How.ALL else top


def _of_all(work: _Work, cells: Cells, deadline: Deadline) -> Ints | None:
    """The statistics of all regions, or, where that takes too long, of some that are drawn; which regions share a wall, if that was found."""
    work.note(Statistic.ACTIVE, cells.patterns.sum(axis=1), How.ALL)
    if work.wants(Statistic.VOLUME):
        work.note(Statistic.VOLUME, _volumes(work, cells), How.ALL)
    if work.wants(*SLOPES):
        _slopes_of_all(work, cells)
    pairs = None
    if work.wants(Statistic.WALLS):
        part = Run(deadline.part(_MEETING))
        found = meetings(cells, part)
        if part.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if len(found.undecided):
            _one_by_one(work, Statistic.WALLS, cells.patterns)
        else:
            pairs = found.pairs
            work.note(Statistic.WALLS, np.bincount(pairs.ravel(), minlength=len(cells)).astype(np.float64), How.ALL)
    for statistic in work.asked:
        if statistic in ONE_BY_ONE:
            _one_by_one(work, statistic, cells.patterns)
    if work.wants(Statistic.SHARE):
        hits = shares(work.known, cells.patterns, work.rng, work.goes_on)
        work.note(Statistic.SHARE, hits.values, How.ALL, hits.points)
    return pairs


def _slopes_of_all(work: _Work, cells: Cells) -> None:
    found, how, patterns = slopes(work.known, cells.patterns, work.goes_on), How.ALL, cells.patterns
    if found is None:
        how, patterns = How.DRAWN, patterns[work.rng.integers(len(patterns), size=size_of(2))]
        found = slopes(work.known, patterns, lambda: True) or {}
    for statistic, values in found.items():
        work.note(statistic, values, how)


def _volumes(work: _Work, cells: Cells) -> Floats:
    """The volumes of all regions."""
    box = work.known.domain.box
    volumes = cells.part.volumes * np.prod((box.upper - box.lower)[box.free])
    for number in np.flatnonzero(np.isnan(volumes)).tolist():
        volumes[number] = volume_of_thin(work.known, cells.patterns[number])
    return volumes


def _one_by_one(work: _Work, statistic: Statistic, patterns: Mask) -> None:
    """A statistic that takes linear programs: of all regions if there is time, else of regions drawn from the list."""
    begun, numbers, seen = meter.clock(), list[int](), dict[int, float]()
    while len(numbers) < len(patterns) and (work.goes_on() or not numbers):
        number = int(work.rng.integers(len(patterns)))
        numbers.append(number)
        if number not in seen:
            seen[number] = of_region(statistic, work.known, patterns[number])
        pace = (meter.clock() - begun) / len(seen)
        if (
            len(numbers) >= min(_TRIED, len(patterns))
            and pace * (len(patterns) - len(seen)) < work.run.deadline.part(0.4).left * 1.0
        ):
            for other in range(len(patterns)):
                if other not in seen:
                    seen[other] = of_region(statistic, work.known, patterns[other])
            break
    if len(seen) == len(patterns):
        work.note(statistic, [seen[number] for number in range(len(patterns))], How.ALL)
    else:
        work.note(statistic, [seen[number] for number in numbers], How.DRAWN)


def _of_drawn(work: _Work, base: int) -> None:
    """The statistics of regions that are drawn uniformly."""
    known, patterns, values = work.known, list[Mask](), dict[Statistic, list[float]]()
    slow = [one for one in work.asked if one in ONE_BY_ONE or one in {Statistic.WALLS, Statistic.VOLUME}]
    try:
        for drawn in drawn_evenly(known, base, lambda: work.run.deadline.passed):
            patterns.append(drawn.region.pattern)
            for statistic in slow:
                values.setdefault(statistic, []).append(of_region(statistic, known, patterns[-1]))
            if work.run.deadline.passed or len(patterns) == work.samples:
                break
            work.run.goes_on(len(patterns))
    except KeyboardInterrupt:
        work.run.status = Status.INTERRUPTED
    except OptionError as error:
        msg = "there are too many regions to list them in this time, and too many to draw them uniformly; give more seconds, or a smaller domain"
        raise OptionError(msg) from error
    if patterns:
        used = len(patterns) if len(patterns) == work.samples else size_of(max(stage_of(len(patterns)), 0))
        _quick_of_drawn(work, np.array(patterns)[:used])
    for statistic, given in values.items():
        work.note(statistic, given, How.DRAWN)


def _quick_of_drawn(work: _Work, patterns: Mask) -> None:
    """Those that take no linear programs."""
    work.note(Statistic.ACTIVE, patterns.sum(axis=1).astype(np.float64), How.DRAWN)
    for statistic, found in (slopes(work.known, patterns, lambda: True) or {}).items() if work.wants(*SLOPES) else ():
        work.note(statistic, found, How.DRAWN)
    if work.wants(Statistic.SHARE):
        hits = shares(work.known, patterns, work.rng, lambda: True)
        work.note(Statistic.SHARE, hits.values, How.DRAWN, hits.points)


def _of_seen(work: _Work, cells: Cells) -> None:
    """What is left is said of the regions that were listed, without a claim."""
    left = [one for one in work.asked if one not in work.found]
    if not left:
        return
    found: dict[Statistic, Floats] = {Statistic.ACTIVE: cells.patterns.sum(axis=1).astype(np.float64)}
    if any(one in SLOPES for one in left) and len(cells):
        found |= slopes(work.known, cells.patterns[:1000], lambda: True) or {}
    for statistic in left:
        work.note(statistic, found.get(statistic, np.zeros(0)), How.SOME)
