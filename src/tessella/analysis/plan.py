"""How the time of an analysis is spent.

Cheap proofs first: linear bounds of all units, and the upper bounds that they give.  Then a count; small networks end there.  If it does not
end, hyperplanes that meet and tighter bounds of units come next, and then random descents, in a process of their own.  After a while these say how many regions there
are about, and the count how many it sees in a second: together they say whether counting on will end in time.  If so the count goes on where
it stood.  If not, the descents go on; and MIPBound follows if it was asked for, or if their bound is loose.
"""

import math
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, cast

import numpy as np

from tessella import options
from tessella.analysis.beginning import to_descend
from tessella.analysis.estimating_elsewhere import EstimatingElsewhere
from tessella.analysis.estimating_process import EstimatingProcess
from tessella.analysis.memory import format_size, memory_to_walk
from tessella.analysis.result import Analysis
from tessella.analysis.session import Session
from tessella.analysis.turns import Counting, check_lost, place_between_turns
from tessella.bounding import upper_bounds
from tessella.counting.meeting import meeting_units
from tessella.counting.schedule import prepare
from tessella.door import DomainLike, NetworkLike, enter
from tessella.errors import OptionError, TessellaError, WorkerLost
from tessella.estimating.estimate import FUNCTIONS, Estimate, EstimateProgress
from tessella.executors import ExecutorLike, hiring
from tessella.kernel import warming
from tessella.methods import Method
from tessella.parallel import everywhere, worker_count
from tessella.partition.tree import Tree
from tessella.probable.networks import Searching
from tessella.probable.networks import mipbound as find_mipbound
from tessella.probable.probability import ALL_FEASIBLE, repetitions_for
from tessella.probable.run import load
from tessella.progress import with_bar
from tessella.result import Side, Status, format_count, format_duration, format_estimate, maps
from tessella.seeds import generator
from tessella.stability import Stability
from tessella.stability import stability as find_stability

_WHO = "an analysis"
_TRIAL, _GLANCE = (
    0.1,
    0.1,
)  # parts of the time: a count that small networks end in, and until an estimate is asked what else to do
_SHARPEN, _POLISH = 0.2, 0.05  # for tighter bounds of units: where nothing else matters more, and where there are many units
_FEW_INPUTS, _MOST_UNITS = 6, 1000  # where counting is by vertices; where it is not, units beyond which it is hopeless
_HOPELESS = 200_000  # units beyond which even the first step by vertices takes too long
_MANY_UNITS = 200  # beyond, exact ranges take too long to bring much
_SLOWER = 1.3  # how much longer than foreseen a count may take
_PATIENCE = 0.25  # part of the time that is left, after which counting goes on if no descent ended
_MIPBOUND = 0.4  # part of the time that is left
_PARITY = 5  # units in a parity constraint
_LOOSE, _FEW_UNITS = (
    6.0,
    64,
)  # bits between estimate and bound from which on MIPBound may be tighter, and units up to which it is fast
_MEETING = 0.05  # part of the time, to find hyperplanes that meet
_QUICK = 0.15  # part of the time that linear bounds may take


def _line(now: Analysis) -> tuple[str, float | None]:
    ends = f"{format_count(now.proved_lower, Side.LOWER)} to {format_count(now.upper, Side.UPPER)} regions"
    return f"{ends}; {now.steps[-1].name if now.steps else 'begins'}, {now.seconds:.0f} s", None


@with_bar(_line)
@hiring
def analyze(  # noqa: PLR0913  one keyword per option
    network: NetworkLike,
    domain: DomainLike,
    *,
    seconds: float = 30.0,
    confidence: float = 0.95,
    mipbound: bool | None = None,
    rng: int | np.random.Generator = 0,
    executor: ExecutorLike | None = None,
    workers: int | None = None,
    memory: int | None = None,
    progress: Callable[[Analysis], None] | bool | None = None,
) -> Analysis:
    """Find out in a given time how many regions a network has on a domain: exactly, or between bounds that say how sure they are.

    Ctrl-C ends it with what is known by then.

    Parameters
    ----------
    network, domain
        Of what, and where: what `tessella.load` takes, and a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.
    seconds
        How long, once code is compiled or loaded.  It ends sooner where nothing is left to find out, and later by what cannot be
        interrupted: one random descent through a large network takes seconds.
    confidence
        The probability with which the probable lower bound holds.
    mipbound
        Whether MIPBound is run as well; None for where it can add something.
    rng
        A seed, or a generator that one is drawn from.
    executor
        Any `concurrent.futures.Executor`, a Dask client, or the address of a Dask scheduler; None for this machine.  If it is lost, the analysis ends with what
        is known.
    workers
        How many work at the same time; None for all cores, or as many as the executor has.
    memory
        Bytes that counting and estimating may take: what would need more is left out.  None for a quarter of the machine's.
    progress
        Called with what is known, some times a second; True for a bar on a terminal or in a notebook.

    Examples
    --------
    >>> import tessella
    >>> from tessella import Box, Network
    >>> net = tessella.Network.from_arrays([([[1.0], [-1.0]], [0.5, 0.5]), ([[1.0, 1.0]], [-1.5])], relu_output=True)
    >>> found = tessella.analyze(net, tessella.Box(-2, 2, dim=1))
    >>> found.exact, found.proved_lower, found.upper
    (5, 5, 5)
    """
    network, domain = enter(network, domain)
    options.check_seconds(seconds, _WHO, otherwise="", endless=False)
    options.check_confidence(confidence, _WHO)
    options.check_workers(workers, _WHO)
    options.check_memory(memory, _WHO)
    executor = options.check_executor(executor, _WHO)
    tell = options.check_progress(progress, _WHO, "one Analysis")
    if mipbound not in (None, True, False):
        msg = f"mipbound is {mipbound!r:.40}; {_WHO} takes True, False, or None for where it can add something"
        raise OptionError(msg)
    seed = int(generator(rng).integers(2**62))
    start = Analysis(network, domain, 1, 1, 1 << network.relus, confidence=float(confidence), status=Status.RUNNING)
    session = Session(start, float(seconds), 1.0 - float(confidence), seed, workers, tell, executor=executor)
    session.memory = memory or session.memory
    status = Status.FINISHED
    try:
        with session.listening():
            _go(session, mipbound)
    except (KeyboardInterrupt, TessellaError) as error:
        brought = session.standing.count or session.standing.estimate
        lost = isinstance(error, WorkerLost) and brought is not None
        if not (session.interrupted or lost):
            raise  # an error; but what Ctrl-C left half done may well raise one, and is of no interest
        status = Status.INTERRUPTED if session.interrupted else Status.LOST
    ended = replace(session.standing, status=status, seconds=max(session.spent, 0.0))
    if tell and status is Status.FINISHED:
        tell(ended)
    return ended


def _go(session: Session, mipbound: bool | None) -> None:  # noqa: FBT001  as `analyze` was asked
    _first(session)
    if session.standing.exact is not None:
        changes = "No unit changes its state on this domain" if session.standing.network.relus else "The network has no ReLU"
        session.say(f"{changes}, so there is one region.")
        return
    need = memory_to_walk(_known(session))
    session.fits = need <= session.memory
    if not session.fits:
        session.say(
            f"Counting and descents through all units were left out: they would take about {format_size(need)} of memory, {format_size(session.memory)} are allowed."
        )
    elif session.executor is not None:
        with session.off_the_clock("the workers"):
            everywhere(_prepare_there, (Tree.of(_known(session)),), session.executor, session.seconds)
    with place_between_turns() as file:
        counting = Counting(session, _known(session), file)
        if _is_countable(session) and counting.go(
            _TRIAL * session.seconds, "small networks end here; else it tells how fast counting is"
        ):
            session.say("Counting ended in a moment, so nothing had to be estimated.")
            _sharpen(session, _SHARPEN, "the count is exact; this is for the table of units")
            return
        _meet(session)
        with EstimatingProcess() if session.executor is None else EstimatingElsewhere(session.executor) as process:
            if session.standing.exact is None:
                few = _known(session).totals()["unstable"] <= _MANY_UNITS
                _sharpen(session, _SHARPEN if few else _POLISH, "fewer unstable units make the upper bound lower")
            if session.standing.exact is not None:
                session.say("The proved bounds meet, so nothing had to be estimated.")
                return
            estimating = Estimating(session, counting, mipbound)
            estimating.go(process)
        if session.fits or mipbound:
            estimating.go_on()


def _is_countable(session: Session) -> bool:
    """Whether counting comes to anything: with many inputs and units its first step alone may take longer than there is time."""
    if not session.fits:
        return False
    countable = session.standing.domain.free_dim <= _FEW_INPUTS or _known(session).totals()["unstable"] <= _MOST_UNITS
    if not countable:
        session.say(f"More than {_MOST_UNITS:,} unstable units are too many to begin counting.")
    elif _known(session).totals()["unstable"] > _HOPELESS:  # one step of the walk takes longer than there is time
        session.say(f"More than {_HOPELESS:,} unstable units are too many to begin counting, even with few inputs.")
        return False
    return countable


def _first(session: Session) -> None:
    """Quick bounds of all units, and the upper bounds that they give."""
    network, domain = session.standing.network, session.standing.domain
    method = Method.LINEAR if domain.bounded else Method.INTERVAL
    with session.step("stability", f"{method} bounds of all units come first: they are quick") as found:
        known = find_stability(network, domain, method=method, seconds=_QUICK * session.seconds)
        session.know(stability=known)
        found.append(_units(known))
    _bound(session, known, "proved from the shape, the weights and these units")


def _bound(session: Session, known: Stability, why: str) -> None:
    with session.step("upper bounds", why) as found:
        before, first = session.standing.upper, session.standing.upper_bounds is None
        bounds = upper_bounds(session.standing.network, session.standing.domain, stability=known)
        session.know(upper=bounds.best, upper_bounds=bounds)
        found.append(f"at most {format_count(bounds.best, Side.UPPER)}")
        if not first and bounds.best >= before:
            found.append("no better than before")


def _meet(session: Session) -> None:
    """Hyperplanes that meet make a proved lower bound where counting comes to little."""
    with session.step("meeting point", "where m hyperplanes of the first layer meet there are 2^m regions") as found:
        units = meeting_units(
            Tree.of_first_layer(_known(session)), seconds=min(_MEETING * session.seconds, max(session.left, 0.0))
        )
        session.know(proved_lower=1 << units)
        found.append(f"at least 2^{units}")


class Estimating:
    """An estimate that says meanwhile what is worth doing: counting to the end, MIPBound, or nothing else.

    Parameters
    ----------
    session
        The analysis.
    counting
        The count so far.
    mipbound
        Whether MIPBound was asked for.
    """

    def __init__(self, session: Session, counting: Counting, mipbound: bool | None) -> None:  # noqa: FBT001  as `analyze` was asked
        """Nothing is decided yet."""
        self._session, self._counting, self._asked = session, counting, mipbound
        self._units = _known(session).totals()["unstable"]
        self._may_search = bool(mipbound) or (mipbound is None and self._units <= _FEW_UNITS)
        self._counts = self._searches = self._judged = False
        self._may_count = session.fits and session.standing.domain.free_dim <= _FEW_INPUTS and self._units <= _HOPELESS
        self._descended = to_descend(_known(session), session.memory)
        self._whole = self._descended is session.standing.stability
        self._foreseen: float | None = None
        self._last = Estimate(session.standing.network, session.standing.domain, -math.inf, math.inf, 1, 0.0)

    def go(self, process: EstimatingProcess | EstimatingElsewhere) -> None:
        """Estimate until the time is over, or something else is worth more."""
        session, descended = self._session, self._descended
        if descended is None:
            return
        if not self._whole:
            units = descended.totals()["unstable"]
            session.say(f"Descents went through {units:,} units of its first layers alone: these have no more regions than all.")
        if session.left <= 0.0:
            return
        with session.off_the_clock("the estimator"):
            process.wait()
        confidence = session.confidence(last=not self._may_search)
        begun, whole = session.spent, session.left

        def tell(now: EstimateProgress | None) -> bool:
            if now is None:
                session.know()
            else:
                part = (now.maps, now.relative_error, now.lower, now.confidence)
                names = ("probes", "seconds", "maps_interval", "upper", "upper_confidence")
                more: dict[str, Any] = {name: getattr(now, name) for name in names}
                self._take(Estimate(session.standing.network, session.standing.domain, *part, **more))
            return self._is_enough(session.spent - begun, whole)

        with session.step("estimate", "random descents say how many there are about, and at least") as found:
            try:
                given = {"confidence": confidence, "rng": session.seed, "workers": session.workers}
                ended = process.estimate(descended, seconds=whole, tell=tell, **given)
                if ended is not None:
                    self._take(ended)
            finally:
                found.append(_estimated(self._last))
        if ended is not None:
            check_lost(ended)

    def _take(self, now: Estimate) -> None:
        if not self._whole:  # what is said of the beginning of a network is said of the whole only from below
            lower = maps(now.lower)
            now = replace(
                now,
                network=self._session.standing.network,
                maps=lower,
                relative_error=math.inf,
                maps_interval=None,
                upper=None,
                upper_confidence=1.0,
            )
        self._last = now
        self._session.know(probable_lower=now.lower, probable_upper=now.upper, estimate=now)

    def _is_enough(self, spent: float, whole: float) -> bool:
        """Whether something else is worth more than further descents; asked again and again."""
        if self._whole and not self._judged and math.isfinite(self._last.maps) and spent >= _GLANCE * self._session.seconds:
            self._judged, self._foreseen = True, self._counting.foreseen(self._last.maps)
            self._counts = self._foreseen is not None and self._foreseen * _SLOWER < self._session.left
        if self._may_count and not self._last.probes and spent > _PATIENCE * whole:
            self._counts = True
        if self._may_search and spent > (1.0 - _MIPBOUND) * whole:
            self._searches = bool(self._asked) or not math.isfinite(self._last.maps) or self._loose >= _LOOSE
        return self._counts or self._searches

    @property
    def _loose(self) -> float:
        """Bits between the estimate and its bound."""
        return self._last.maps - maps(self._session.standing.probable_lower)

    def go_on(self) -> None:
        """Do what was found to be worth more, and explain."""
        session, last = self._session, self._last
        if self._counts and not last.probes:
            session.say("No random descent ended soon, so counting went on.")
            self._counting.go(session.left, "no descent says how long it takes")
            return
        if not last.probes:
            session.say("No random descent ended in time: give it more seconds for an estimate.")
        about = f"ounting {_number(last)} regions would take {format_duration(self._foreseen or 0.0)}"
        if self._counts:
            ended = self._counting.go(session.left, "at this speed it ends in time")
            session.say(f"An estimate said that c{about} and end in time; it did{'' if ended else ' not'}.")
            return
        if self._judged and self._foreseen is None:
            session.say("How long counting would take is unknown: the estimate is no more than what was counted.")
        elif self._judged:
            session.say(f"C{about}, so the time went into the estimate.")
        if self._asked is None and not self._may_search:
            session.say(f"MIPBound was left out: {self._units:,} unstable units are too many for it.")
        elif self._asked is None and not self._searches and last.probes:
            session.say(f"MIPBound was left out: the estimate's own bound lies {max(self._loose, 0.0):.1f} bits under it.")
        if self._searches or self._asked:
            loose = "the estimate's bound is loose" if last.probes else "there is no estimate"
            _mipbound(session, "it was asked for" if self._asked else loose)


def _sharpen(session: Session, part: float, why: str) -> None:
    """Tighter bounds of units, as far as a part of the time allows, and the upper bounds that they give."""
    known = _known(session)
    undecided, allowed = known.totals()["unstable"], min(part * session.seconds, session.left)
    if allowed <= 0.0 or not undecided or len(known.network.widths) < 2 or not known.domain.bounded:
        return  # on unbounded domains there is nothing tighter than what the first step found
    with session.off_the_clock("the LP kernel"):
        _prepare_programs()
    workers, given = worker_count(session.workers, session.executor), session.executor
    each, end = max(allowed * workers / (2.0 * undecided), 1e-3), session.left - allowed
    with (
        session.step("stability", why) as found,
        ThreadPoolExecutor(workers) if given is None else nullcontext(given) as executor,
    ):
        sharper = _milp(known, each, allowed, executor)
        if session.standing.exact is not None:  # nothing else waits for the time, so that no unit need be cut short for another
            while sharper.bounds.unproved and not session.interrupted and each < allowed and session.left > end:
                each *= 4.0
                sharper = _milp(sharper, each, session.left - end, executor)
        session.know(stability=sharper)
        found.append(_units(sharper))
    changed = any(
        (one != other).any()
        for ends in ("lower", "upper")
        for one, other in zip(getattr(known.bounds, ends), getattr(sharper.bounds, ends), strict=True)
    )
    if session.standing.exact is None and changed:
        before = session.standing.upper
        _bound(session, sharper, "proved from these units")
        gain = maps(before) - maps(session.standing.upper)
        if gain >= 0.005:
            session.say(f"Tighter bounds of units lowered the upper bound by {gain:.2f} bits.")


def _milp(known: Stability, each: float, seconds: float, executor: Executor) -> Stability:
    """Exact ranges, as far as the time allows."""
    return find_stability(
        known.network, known.domain, method=Method.MILP, seconds_per_unit=each, executor=executor, seconds=seconds, known=known
    )


def _mipbound(session: Session, why: str) -> None:
    """MIPBound with a number of repetitions that is fixed beforehand: one that time decides on would not be covered."""
    if session.left <= 0.0:
        return
    with session.off_the_clock("the search"):
        load(Searching.of(_known(session)))
    standing, confidence = session.standing, session.confidence(last=True)
    repetitions = repetitions_for(max(confidence, ALL_FEASIBLE))
    with session.step("mipbound", why) as found:
        done = find_mipbound(
            standing.network,
            standing.domain,
            parity_size=_PARITY,
            confidence=confidence,
            repetitions=repetitions,
            seconds=session.left,
            stability=standing.stability,
            rng=session.seed,
            executor=session.executor,
            workers=session.workers,
        )
        finished = done.status is Status.FINISHED
        if finished:
            session.know(probable_lower=done.lower, mipbound=done)
        words = f"at least {format_count(done.lower, Side.LOWER)}" if finished else "claims nothing, since it did not end in time"
        found.append(f"{done.repetitions} of {repetitions} repetitions; {words}")


def _prepare_there(tree: Tree) -> None:
    """Load what workers will call."""
    prepare(tree)
    _prepare_programs()
    warming.load(FUNCTIONS)


def _known(session: Session) -> Stability:
    return cast("Stability", session.standing.stability)  # it is the first thing that is found


def _units(known: Stability) -> str:
    total, late = known.totals(), known.bounds.unproved
    words = f"{known.bounds.method}: {total['unstable']:,} of {known.network.relus:,} units unstable"
    return words + (f", {late:,} cut short" if late else "")


def _estimated(done: Estimate) -> str:
    if not done.probes:
        return "no descent ended in time"
    probes = f"{done.probes:,} probe{'' if done.probes == 1 else 's'}"
    least = f"at least {format_count(done.lower, Side.LOWER)}"
    return f"{_number(done)}, {least}; {probes}" if done.maps_interval else f"{least}, too uncertain to estimate; {probes}"


def _number(done: Estimate) -> str:
    if done.maps_interval is not None:
        return f"about {format_estimate(round(done.mean), done.maps_interval)}"
    return f"at least {format_count(done.lower, Side.LOWER)}" if done.probes else "about ?"


def _prepare_programs() -> None:
    from tessella.kernel.program import Program  # noqa: PLC0415

    warming.load(Program.functions)
