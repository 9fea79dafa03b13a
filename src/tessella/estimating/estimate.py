"""The number of regions estimated by random descents, with a lower bound that holds with a given confidence."""

import math
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tessella import options
from tessella.answer import Answer, past
from tessella.counting.count import Count, count
from tessella.counting.schedule import prepare
from tessella.domain import Domain
from tessella.door import DomainLike, NetworkLike, enter
from tessella.errors import OptionError
from tessella.estimating.both import Asked, Both
from tessella.estimating.descents import Descents
from tessella.estimating.moving import MovingParticles
from tessella.estimating.rounds import Sample
from tessella.estimating.said import markov, number, said
from tessella.estimating.sampler import Sampler
from tessella.estimating.wide import is_large
from tessella.executors import ExecutorLike, hiring
from tessella.kernel import meter, warming
from tessella.methods import Method
from tessella.network import Network
from tessella.partition.local import LocalBound
from tessella.partition.tree import Tree
from tessella.progress import with_bar
from tessella.result import (
    Bound,
    Side,
    Status,
    claims_about,
    format_confidence,
    format_count,
    format_estimate,
    format_share,
    interval_kind,
    maps,
    told,
)
from tessella.seeds import generator
from tessella.stability import Stability, check_stability, stability_to_go_on_with

FUNCTIONS = (*Descents.functions, *MovingParticles.functions, *Sampler.functions)  # the compiled code that estimates call

_WHO = "an estimate"
_RARELY = 10.0  # how much longer than a report takes nothing is reported
_SECONDS = 2.0  # for an estimate, if nothing else is said
_TRIAL, _WHOLE = 0.1, 0.7  # parts of the time that a count may take: to see how far it comes, and to end
_MOSTLY = 0.5  # part of the tree that must be done in the first, to go for the second


@dataclass(frozen=True, slots=True)
class EstimateProgress:
    """Where an estimate stands while it runs.

    Parameters
    ----------
    maps
        Log2 of the estimate.
    relative_error
        The standard error as a part of the estimate; infinite where it is not known.
    lower
        What the count is at least, with the confidence asked for.
    confidence
        That confidence.
    probes
        Rounds made.
    seconds
        Wall time spent.
    maps_interval
        Where log2 of the count lies, as `Estimate` has it; None where that is too uncertain.
    upper
        What the count is at most: with the confidence, or proved if that is less.
    upper_confidence
        Of the upper bound: 1 if it is proved.
    """

    maps: float
    relative_error: float
    lower: int
    confidence: float
    probes: int
    seconds: float
    maps_interval: tuple[float, float] | None = None
    upper: int | None = None
    upper_confidence: float = 1.0

    @property
    def mean(self) -> float | int:
        """The estimate."""
        return number(self.maps)

    @property
    def about(self) -> str:
        """The same for people: with its standard error, as an interval, or that it is too uncertain."""
        if self.maps_interval is None:
            return "too uncertain to estimate yet"
        low, high = self.maps_interval
        if high - low > 1.0:
            return f"about 2^{low:.1f} to 2^{high:.1f}"
        return f"about 2^{self.maps:.2f} (standard error {format_share(self.relative_error)})"


@dataclass(frozen=True, slots=True)
class Estimate(Answer):
    """About how many full-dimensional regions a network has on a domain.

    Parameters
    ----------
    network, domain
        Of what, and where.
    maps
        Log2 of the estimate.
    relative_error
        The standard error as a part of the estimate, from how far the logarithms of the probes spread: 0 if it is exact, infinite where they spread too far for
        their number.
    lower
        The count is at least this, with the confidence: at every stopping time and without assumptions.
    confidence
        Of the lower bound, and of both bounds together; 1 if the count is exact.
    markov
        The same by Markov's inequality alone, for a number of probes that was fixed beforehand: a check.
    probes
        Rounds made.
    exact
        The count, if it was counted to its end instead; else None.
    thin
        How many cells were so thin that exact arithmetic had to say what is in them.
    undecided
        How many of these it could not settle in reasonable time.  They count as 0: the estimate is then one of a lower bound, and
        `lower` holds all the same.
    seconds
        Wall time spent, without compiling.
    status
        Why it ended.
    compile_seconds
        Wall time that went by while code was compiled, once per machine, or loaded.
    maps_interval
        Where log2 of the count lies: an interval that is meant to hold it in as many runs as the confidence says.  `maps_interval_kind` says what it rests on.  How often measured ones
        held the count is in the notebook; nothing is proved of these.
        None if the probes are too few, or spread too far, to say more than `lower` does.  It may lie above `maps`: where probes spread far, the largest ones
        were not drawn, and their mean is too small.
    method
        Who found it: `"count"`, `"linear programs"`, `"points"` or `"particles"`.
    upper
        The count is at most this: with the confidence, at every stopping time and without assumptions; or proved, where that is less.
    upper_confidence
        Of the upper bound: 1 if it is proved, as it is where networks are too large for anything better.
    """

    network: Network
    domain: Domain
    maps: float
    relative_error: float
    lower: int
    confidence: float
    markov: int = 0
    probes: int = 0
    exact: int | None = None
    thin: int = 0
    undecided: int = 0
    seconds: float = 0.0
    status: Status = Status.FINISHED
    compile_seconds: float = 0.0
    maps_interval: tuple[float, float] | None = None
    method: str = ""
    upper: int | None = None
    upper_confidence: float = 1.0

    @property
    def mean(self) -> float | int:
        """The estimate: an integer if it is exact or beyond floating-point numbers."""
        return self.exact if self.exact is not None else number(self.maps)

    @property
    def standard_error(self) -> float | int:
        """Of the mean."""
        if self.relative_error in {0.0, math.inf}:
            return self.relative_error
        return number(self.maps + math.log2(self.relative_error))

    @property
    def maps_interval_kind(self) -> str | None:
        """What `maps_interval` rests on: ``"guaranteed"`` if it ends where `lower` and `upper` do, else ``"measured"``.

        Those hold with the confidence; how far probes spread makes an interval narrower, and that is not proved.  None if there is no interval.
        """
        return interval_kind(self.maps_interval, self.lower, self.upper)

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Each a claim of its own: what the count is at least, and about; or exactly."""
        counted, seconds = self.network.counted, self.seconds
        if self.exact is not None:
            return (Bound(self.exact, Side.EXACT, counted, "count", seconds=seconds),)
        return (
            Bound(self.lower, Side.LOWER, counted, "betting", self.confidence, seconds),
            Bound(self._about, Side.ESTIMATE, counted, "descents", 0.0, seconds),
            *self._upper,
        )

    @property
    def _about(self) -> int:
        """The mean as people see it: moved between the bounds should it lie outside."""
        about = max(round(self.mean), self.lower)
        return about if self.upper is None else min(about, self.upper)

    @property
    def _upper(self) -> tuple[Bound, ...]:
        """The claim on how many there are at most."""
        if self.upper is None:
            return ()
        method = "uniform descents" if self.upper_confidence < 1.0 else "proved"
        return (Bound(self.upper, Side.UPPER, self.network.counted, method, self.upper_confidence, self.seconds),)

    def __repr__(self) -> str:
        """One line a person can read."""
        where = f"of {self.network.shape} on {self.domain.describe()}, {self.seconds:.2f} s"
        if self.exact is not None:
            return f"Estimate(exactly {format_count(self.exact)} region{'' if self.exact == 1 else 's'}, {where})"
        sure = _sure(self.lower, self.upper if self.upper_confidence < 1.0 else None, self.confidence)
        if self.maps_interval is None:
            return f"Estimate({sure}; too uncertain to estimate, {where})"
        return f"Estimate(about {format_estimate(self._about, self.maps_interval, 'regions')}, {sure}, {where})"

    def rows(self) -> list[dict[str, Any]]:
        """What the count is at least, and about, with its standard error; or exactly."""
        return claims_about(self.bounds, self.maps_interval, self.relative_error, self.maps_interval_kind)

    def _title(self) -> str:
        return f"Regions of {self.network.shape} on {self.domain.describe()}, {self.probes:,} probes, {self.seconds:.2f} s"

    @classmethod
    def _placed(cls, record: Mapping[str, Any], network: Network | None) -> dict[str, Any]:
        logarithm, error = record.get("maps"), record.get("relative_error")
        unknown = {"maps": -math.inf if logarithm is None else logarithm, "relative_error": math.inf if error is None else error}
        return {**super(Estimate, cls)._placed(record, network), **unknown}

    def _record(self) -> dict[str, Any]:
        return {
            **past(self.network, self.domain),
            **told(self, "mean", "maps", "maps_interval", "maps_interval_kind", "method", "standard_error"),
            **told(self, "relative_error", "lower", "confidence", "upper", "upper_confidence", "markov", "exact"),
            **told(self, "probes", "thin", "undecided", "status", "seconds", "compile_seconds"),
            "bounds": [bound.to_dict() for bound in self.bounds],
        }


def _sure(lower: int, upper: int | None, confidence: float) -> str:
    most = "" if upper is None else f" and at most {format_count(upper, Side.UPPER)}"
    return f"at least {format_count(lower, Side.LOWER)}{most} with {format_confidence(confidence)} confidence"


def _line(now: EstimateProgress) -> tuple[str, float | None]:
    sure = f"at least {format_count(now.lower, Side.LOWER)} with {format_confidence(now.confidence)} confidence"
    return f"regions: {now.about}, {sure}, {now.probes:,} probes", None


@with_bar(_line)
@hiring
def estimate(  # noqa: PLR0913  one keyword per option
    network: NetworkLike,
    domain: DomainLike,
    *,
    seconds: float | None = None,
    probes: int | None = None,
    confidence: float = 0.95,
    rng: int | np.random.Generator = 0,
    executor: ExecutorLike | None = None,
    workers: int | None = None,
    progress: Callable[[EstimateProgress], None] | bool | None = None,
    stability: Stability | None = None,
    counting: bool = True,
) -> Estimate:
    """Estimate the number of full-dimensional regions of a network on a domain.

    Each probe descends at random through the tree of regions and is an unbiased estimate (Knuth 1975); what earlier probes saw steers later ones.
    The lower bound is that of `tessella.estimating.betting`: it holds with the confidence, whenever one stops.

    Parameters
    ----------
    network, domain
        Of what, and where: what `tessella.load` takes, and a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.
    seconds
        How long, once the code is compiled or loaded; None for 2, or for no limit if a number of probes is given.  One probe is made in any case, and none
        is begun that would not end in time.  If the regions can be counted to the end in that time, they are, and the answer is exact.
    probes
        Make so many probes, and do not count: the same number and the same seed give the same answer, however many work.  With seconds, too: whatever comes first.
        The mean is then unbiased exactly; where time decides on the number, up to the chance that slow probes are missing at its end.
    confidence
        The probability with which the lower bound holds.
    rng
        A seed, or a generator that one is drawn from.
    executor
        Any `concurrent.futures.Executor`, a Dask client, or the address of a Dask scheduler; None for threads of this process.
    workers
        How many work at the same time; None for all cores, or as many as the executor has.
    progress
        Called about five times a second with an `EstimateProgress`; True for a bar on a terminal or in a notebook.
    stability
        The units that never change their state on the domain, if they are known; else they are found by linear bounds.
    counting
        Whether to see first if the regions can be counted in time.

    Examples
    --------
    >>> import tessella
    >>> net = tessella.Network.from_arrays([([[1.0], [-1.0]], [0.5, 0.5]), ([[1.0, 1.0]], [-1.5])], relu_output=True)
    >>> found = tessella.estimate(net, tessella.Box(-2, 2, dim=1))
    >>> found.mean, found.lower, found.exact
    (5, 5, 5)
    >>> found = tessella.estimate(net, tessella.Box(-2, 2, dim=1), probes=100)
    >>> found.lower <= 5, abs(found.mean - 5) < 0.5, found.exact
    (True, True, None)
    """
    network, domain = enter(network, domain)
    options.check_seconds(seconds, _WHO, otherwise="None for 2 (no limit if a number of probes is given)")
    options.check_whole(probes, "probes", _WHO, otherwise="None for as many as the time allows")
    options.check_confidence(confidence, _WHO)
    options.check_workers(workers, _WHO)
    executor = options.check_executor(executor, _WHO)
    tell = options.check_progress(progress, _WHO, "one EstimateProgress")
    check_stability(stability, network, domain, _WHO)
    begun, compiled = meter.clock(), meter.compile_seconds()
    base = int(generator(rng).integers(2**63))
    known = stability or stability_to_go_on_with(network, domain, method=Method.LINEAR)
    tree = Tree.of(known)
    tries = counting and probes is None and not is_large(tree) and tree.units > 0 and domain.free_dim > 0
    if not is_large(tree):
        warming.load(FUNCTIONS)
        if tries and executor is None:
            prepare(tree)
    unlimited = seconds is None and probes is not None
    deadline = math.inf if unlimited else begun + min(_SECONDS if seconds is None else seconds, 1e9)
    tried = _counted(known, tree, begun, deadline if tries else math.inf, executor, workers)
    if tried is not None and tried.exact is not None:
        found = _exactly(network, domain, tried.exact)
        return replace(found, seconds=meter.clock() - begun, compile_seconds=meter.compile_seconds() - compiled)
    early = tried.status if tried is not None and tried.status in {Status.INTERRUPTED, Status.LOST} else None
    proved = _proved(tree, tried)
    report = _Report(tell, confidence, proved, begun)
    both = Both(tree, base, report)
    status = both.go(Asked(probes, deadline, executor, workers), confidence, proved, early, worked=tried is not None)
    sample = both.sample
    if status is not Status.INTERRUPTED:
        report(sample, last=True)
    found = _estimated(known, sample, confidence, proved)
    return replace(found, seconds=meter.clock() - begun, status=status, compile_seconds=meter.compile_seconds() - compiled)


@dataclass(slots=True)
class _Report:
    """Tells what is known by now, but no more often than what it takes to find out allows."""

    tell: Callable[[EstimateProgress], None] | None
    confidence: float
    proved: int
    begun: float
    _quiet: float = -math.inf  # until then nothing is told

    def __call__(self, sample: Sample, *, last: bool = False) -> None:
        """Tell what a sample says, if there is anything in it."""
        start = meter.clock()
        if (
            self.tell
            and (last or start >= self._quiet)
            and (len(sample.logarithms) or (sample.uniform and sample.uniform.low.any()))
        ):
            now = said(sample, self.confidence, self.proved)
            spent = len(sample.logarithms), meter.clock() - self.begun
            ends = now.lower, self.confidence, *spent, now.maps_interval, now.upper, now.upper_confidence
            self._quiet = meter.clock() + _RARELY * (meter.clock() - start)
            self.tell(EstimateProgress(now.maps, now.relative_error, *ends))


def _exactly(network: Network, domain: Domain, counted: int) -> Estimate:
    """What a count that came to its end says."""
    power = maps(counted)
    found = Estimate(network, domain, power, 0.0, counted, 1.0, counted, exact=counted, maps_interval=(power, power))
    return replace(found, upper=counted, method="count")


def _estimated(known: Stability, sample: Sample, confidence: float, proved: int) -> Estimate:
    """What the terms of a sample say."""
    found = said(sample, confidence, proved)
    return Estimate(
        known.network,
        known.domain,
        found.maps,
        found.relative_error,
        found.lower,
        confidence,
        markov(sample, confidence),
        len(sample.logarithms),
        thin=sample.thin,
        undecided=sample.undecided,
        maps_interval=found.maps_interval,
        method=sample.method,
        upper=found.upper,
        upper_confidence=found.upper_confidence,
    )


def _proved(tree: Tree, tried: Count | None) -> int:
    """What the number of regions is at most, proved from the network's shape, and by a count that did not end."""
    try:
        found = LocalBound(tree)(b"")
    except OptionError:  # too wide
        found = 1 << tree.units
    return found if tried is None else min(found, tried.upper)


def _counted(  # noqa: PLR0913, PLR0917  what `estimate` was asked
    known: Stability, tree: Tree, begun: float, deadline: float, executor: Executor | None, workers: int | None
) -> Count | None:
    """A count that was given a part of the time, if there was any to give."""
    if not tree.units or not tree.domain.free_dim:
        return count(known.network, known.domain, stability=known)
    if math.isinf(deadline):
        return None
    left, spent = deadline - meter.clock(), meter.clock() - begun
    if left < 4.0 * spent:
        return None
    given: dict[str, Any] = {"stability": known, "executor": executor, "workers": workers}
    first = count(known.network, known.domain, seconds=_TRIAL * left, **given)
    if first.exact is None and first.share > _MOSTLY and first.status is not Status.INTERRUPTED:
        return count(known.network, known.domain, seconds=_WHOLE * left, **given)
    return first
