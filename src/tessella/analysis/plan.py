"""How the time of an analysis is spent.

Cheap proofs first (linear bounds of all units, the upper bounds that they give), then a count: small networks end there.  If it does not
end, a short estimate says how many regions there are about, and the count how many it sees in a second: together they say
whether counting on will end in time.  If so the count goes on where it stood.  If not, the time goes into tighter bounds of units, MIPBound where it can
add something, and a long estimate.
"""

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import cast

import numpy as np

from tessella.analysis.result import Analysis, Status
from tessella.analysis.session import Session
from tessella.counting.count import Count, CountProgress, count
from tessella.counting.count import Status as Ended
from tessella.counting.estimate import Estimate, EstimateProgress, estimate
from tessella.counting.tree import Tree
from tessella.domain import Box, Domain, check_fit
from tessella.errors import OptionError
from tessella.network import Network
from tessella.preactivation import Method
from tessella.probable.networks import mipbound as find_mipbound
from tessella.probable.probability import ALL_FEASIBLE, repetitions_for
from tessella.probable.result import Status as Repeated
from tessella.result import Side, format_count, format_duration, maps
from tessella.stability import Stability
from tessella.stability import stability as find_stability
from tessella.upper import upper_bounds

_TRIAL, _GLANCE = 0.1, 0.1  # parts of the time: a count that small networks end in, an estimate that says what to do next
_SHARPEN, _POLISH = (
    0.2,
    0.05,
)  # for tighter bounds of units: where they can lower the upper bound, and where the count is exact already
_SLOWER = 1.3  # how much longer than foreseen a count may take
_MIPBOUND = 0.4  # part of the time that is left
_PARITY = 5  # units in a parity constraint
_LOOSE, _FEW_UNITS = (
    6.0,
    64,
)  # bits between estimate and bound from which on MIPBound may be tighter, and units up to which it is fast
_PROBE = 1e-10  # seconds of one descent, for each input and each third power of the number of units
_LINEAR = 4e10  # multiplications that linear bounds may take
_FEW_INPUTS = 6  # regions are counted by vertices


def analyze(  # noqa: PLR0913  one keyword per option
    network: Network,
    domain: Domain,
    *,
    seconds: float = 30.0,
    confidence: float = 0.95,
    mipbound: bool | None = None,
    rng: int | np.random.Generator = 0,
    workers: int | None = None,
    progress: Callable[[Analysis], None] | None = None,
) -> Analysis:
    """Find out in a given time how many regions a network has on a domain: exactly, or between bounds that say how sure they are.

    Ctrl-C ends it with what is known by then.

    Parameters
    ----------
    network, domain
        Of what, and where.
    seconds
        How long, once code is compiled or loaded.  It ends sooner where nothing is left to find out, and later by what cannot be
        interrupted: one random descent through a large network takes seconds.
    confidence
        The probability with which the probable lower bound holds.
    mipbound
        Whether MIPBound is run as well; None for where it can add something.
    rng
        A seed, or a generator that one is drawn from.
    workers
        How many work at the same time; None for all cores.
    progress
        Called with what is known, some times a second.

    Examples
    --------
    >>> net = Network.from_arrays([([[1.0], [-1.0]], [0.5, 0.5]), ([[1.0, 1.0]], [-1.5])], relu_output=True)
    >>> found = analyze(net, Box(-2, 2, dim=1))
    >>> found.exact, found.proved_lower, found.upper
    (5, 5, 5)
    """
    check_fit(network, domain)
    _check(seconds, confidence, mipbound, workers, progress)
    seed = int(np.random.default_rng(rng).integers(2**62))
    start = Analysis(network, domain, 1, 1, 1 << network.relus, confidence=float(confidence), status=Status.RUNNING)
    session = Session(start, float(seconds), 1.0 - float(confidence), seed, workers, progress)
    status = Status.FINISHED
    try:
        _go(session, mipbound)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    ended = replace(session.standing, status=status, seconds=max(session.spent, 0.0))
    if progress and status is Status.FINISHED:
        progress(ended)
    return ended


def _go(session: Session, mipbound: bool | None) -> None:  # noqa: FBT001  as `analyze` was asked
    _first(session)
    if session.standing.exact is not None:
        session.say("No unit changes its state on this domain, so there is one region.")
        return
    with TemporaryDirectory(prefix="tessella-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "count.db"
        tried = _count(session, _TRIAL * session.seconds, file, "small networks end here; else it tells how fast counting is")
        if tried.exact is not None:
            session.say(f"Counting took {format_duration(tried.seconds)}, so nothing had to be estimated.")
        else:
            glanced = _glance(session)
            if glanced is None or not _go_on(session, tried, glanced, file):
                _improve(session, glanced, mipbound)
                return
    _sharpen(session, _POLISH, "the count is exact; this is for the table of units")


def _first(session: Session) -> None:
    """Quick bounds of all units, and the upper bounds that they give."""
    network = session.standing.network
    work = float(network.parameters) * network.relus
    method = Method.LINEAR if work <= _LINEAR else Method.INTERVAL
    with session.step("stability", f"{method} bounds of all units come first: they are quick") as found:
        known = find_stability(network, session.standing.domain, method=method)
        session.know(stability=known)
        found.append(_units(known))
    if known.bounds.unproved:  # Ctrl-C: these methods leave nothing else unproved
        raise KeyboardInterrupt
    _bound(session, known, "proved from the shape, the weights and these units")


def _bound(session: Session, known: Stability, why: str) -> None:
    with session.step("upper bounds", why) as found:
        bounds, before = upper_bounds(session.standing.network, session.standing.domain, stability=known), session.standing.upper
        session.know(upper=bounds.best, upper_bounds=bounds)
        found.append(f"at most {format_count(bounds.best, Side.UPPER)}")
        if bounds.best >= before:
            found.append("no better than before")


def _count(session: Session, seconds: float, file: Path, why: str) -> Count:
    """Count, or go on counting, with the units as they were known first."""
    network, domain = session.standing.network, session.standing.domain
    with session.off_the_clock():
        _prepare(domain.free_dim <= _FEW_INPUTS, domain.free_dim, network.widths[0])

    def told(now: CountProgress) -> None:
        session.know(proved_lower=now.lower, upper=now.upper)

    with session.step("count", why) as found:
        done = count(
            network,
            domain,
            seconds=max(seconds, 1e-3) + (session.standing.count.seconds if session.standing.count else 0.0),
            workers=session.workers,
            checkpoint=file,
            progress=told,
            stability=session.standing.stability,
        )
        session.know(proved_lower=done.lower, upper=done.upper, count=done)
        found.append(_counted(done))
    if done.status is Ended.INTERRUPTED:
        raise KeyboardInterrupt
    return done


def _glance(session: Session) -> Estimate | None:
    """A short estimate; None if even one descent would take too long."""
    known = cast("Stability", session.standing.stability)
    tree = Tree.of(known)
    foreseen = _PROBE * tree.units**3 * tree.domain.free_dim
    if foreseen > session.left:
        session.say(f"One random descent would take about {format_duration(foreseen)}, so there is no estimate.")
        return None
    return _estimate(session, _GLANCE * session.seconds, "how many there are about, to decide what to do next")


def _estimate(session: Session, seconds: float, why: str, *, last: bool = False) -> Estimate:
    standing, confidence = session.standing, session.confidence(last=last)
    session.seed += 1  # descents of their own: a bound's chance of being wrong must not depend on what those before saw
    with session.off_the_clock():
        _prepare_estimate(standing.domain.free_dim <= _FEW_INPUTS)
    before = 0 if standing.estimate is None else standing.estimate.probes

    def took(now: Estimate) -> None:
        more = now.probes >= before  # of two estimates the one with more probes, whatever they say
        session.know(probable_lower=now.lower, **({"estimate": now} if more else {}))

    def told(now: EstimateProgress) -> None:
        part = (now.maps, now.relative_error, now.lower, now.confidence)
        took(Estimate(standing.network, standing.domain, *part, probes=now.probes, seconds=now.seconds))

    with session.step("estimate", why) as found:
        done = estimate(
            standing.network,
            standing.domain,
            seconds=max(seconds, 1e-3),
            confidence=confidence,
            rng=session.seed,
            workers=session.workers,
            progress=told,
            stability=standing.stability,
            counting=False,
        )
        took(done)
        found.append(_estimated(done))
    if done.status is Ended.INTERRUPTED:
        raise KeyboardInterrupt
    return done


def _go_on(session: Session, tried: Count, glanced: Estimate, file: Path) -> bool:
    """Whether the count was worth going on with, and ended."""
    speed = tried.lower / max(tried.seconds, 1e-9)
    power = glanced.maps - maps(max(int(speed), 1))  # of two: seconds it would take
    foreseen = 2.0**power if power < 1000.0 else math.inf
    if foreseen * _SLOWER - tried.seconds > session.left:
        session.say(f"Counting about {format_count(round(glanced.mean))} regions would take {_long(foreseen)}; so it was left.")
        return False
    done = _count(session, session.left, file, "at this speed it ends in time")
    words = "it did" if done.exact is not None else "it did not"
    session.say(f"The first estimate said that counting would take about {_long(foreseen)} and end in time; {words}.")
    return done.exact is not None


def _improve(session: Session, glanced: Estimate | None, asked: bool | None) -> None:  # noqa: FBT001  as `analyze` was asked
    """What to do where regions are too many to count."""
    pace = math.inf if glanced is None else glanced.seconds / max(glanced.probes, 1) * _hands(session)
    before = session.standing.upper
    _sharpen(session, _SHARPEN, "fewer unstable units make the upper bound lower")
    _say_of_upper(session, before)
    _mipbound(session, asked)
    if glanced is not None and session.left > 2.0 * pace:
        _estimate(session, session.left, "descents narrow the bracket from below", last=True)
    elif glanced is not None:
        session.say(f"A descent takes {format_duration(pace)}, so there was no time for more than {glanced.probes}.")


def _sharpen(session: Session, part: float, why: str) -> None:
    """Tighter bounds of units, as far as a part of the time allows, and the upper bounds that they give."""
    known = cast("Stability", session.standing.stability)
    undecided, allowed = known.totals()["unstable"], min(part * session.seconds, session.left)
    if allowed <= 0.0 or not undecided or len(known.network.widths) < 2:
        return
    with session.off_the_clock():
        _prepare_programs()
    end, late, done, total = perf_counter() + allowed, False, 0, 0

    def tick(now: int, of: int) -> None:
        nonlocal late, done, total
        done, total = now, of
        if perf_counter() > end:
            late = True
            raise KeyboardInterrupt  # the one word that ends it with what is proved

    hands = _hands(session)
    with session.step("stability", why) as found, ThreadPoolExecutor(hands) as threads:
        each = max(allowed * hands / (2.0 * undecided), 1e-3)
        sharper = find_stability(
            known.network, known.domain, method=Method.MILP, seconds_per_unit=each, executor=threads, progress=tick
        )
        session.know(stability=sharper)
        found.append(_units(sharper))
    if done < total and not late:
        raise KeyboardInterrupt  # somebody else's, which ended the bounds early
    _bound(session, sharper, "proved from these units")


def _say_of_upper(session: Session, before: int) -> None:
    gain = maps(before) - maps(session.standing.upper)
    if gain >= 0.005:
        session.say(f"Tighter bounds of units lowered the upper bound by {gain:.2f} bits.")


def _mipbound(session: Session, asked: bool | None) -> None:  # noqa: FBT001  as `analyze` was asked
    """MIPBound with a number of repetitions that is fixed beforehand: one that time decides on would not be covered."""
    standing = session.standing
    if asked is False:
        return
    loose = standing.maps - maps(standing.probable_lower)
    units = cast("Stability", standing.stability).totals()["unstable"]
    if asked is None and (loose < _LOOSE or units > _FEW_UNITS):
        why = f"has too many units ({units})" if loose >= _LOOSE else f"needs no help: its bound lies {loose:.1f} bits under it"
        session.say(f"MIPBound was left out: the {'network' if loose >= _LOOSE else 'estimate'} {why}.")
        return
    with session.off_the_clock():
        _prepare_search()
    confidence = session.confidence()
    repetitions = repetitions_for(max(confidence, ALL_FEASIBLE))
    with session.step("mipbound", "it was asked for" if asked else "the estimate's bound is loose") as found:
        done = find_mipbound(
            standing.network,
            standing.domain,
            parity_size=_PARITY,
            confidence=confidence,
            repetitions=repetitions,
            seconds=max(_MIPBOUND * session.left, 1e-3),
            stability=standing.stability,
            rng=session.seed,
            workers=session.workers,
        )
        finished = done.status is Repeated.FINISHED
        if finished:
            session.know(probable_lower=done.lower, mipbound=done)
        words = f"at least {format_count(done.lower, Side.LOWER)}" if finished else "claims nothing, since it did not end in time"
        found.append(f"{done.repetitions} of {repetitions} repetitions; {words}")
    if done.status is Repeated.INTERRUPTED:
        raise KeyboardInterrupt


def _hands(session: Session) -> int:
    return session.workers or os.cpu_count() or 1


def _long(seconds: float) -> str:
    return format_duration(seconds)


def _units(known: Stability) -> str:
    total, late = known.totals(), known.bounds.unproved
    words = f"{known.bounds.method}: {total['unstable']:,} of {known.network.relus:,} units unstable"
    return words + (f", {late:,} cut short" if late else "")


def _counted(done: Count) -> str:
    if done.exact is not None:
        return f"exactly {format_count(done.exact)}"
    return f"at least {format_count(done.lower, Side.LOWER)}, {done.lower / max(done.seconds, 1e-9):,.0f} a second"


def _estimated(done: Estimate) -> str:
    probes = f"{done.probes:,} probe{'' if done.probes == 1 else 's'}"
    return f"about {format_count(round(done.mean))}, at least {format_count(done.lower, Side.LOWER)}; {probes}"


# Compiled code is made or loaded before the clock goes on: once in a process, on networks that take no time.


@cache
def _prepare(few: bool, free_dim: int, units: int) -> None:  # noqa: FBT001  a key of the cache
    inputs, width = (1, 1) if few else (min(free_dim, 128), min(units, 8))
    count(_fan(inputs, width), Box.cube(-1.0, 1.0, inputs), workers=1)


@cache
def _prepare_estimate(few: bool) -> None:  # noqa: FBT001  a key of the cache
    inputs = 1 if few else 2 * _FEW_INPUTS
    estimate(_fan(inputs, 1), Box.cube(-1.0, 1.0, inputs), probes=1, workers=1)


@cache
def _prepare_programs() -> None:
    net = Network.from_arrays([([[1.0], [1.0]], [0.0, -0.5]), ([[1.0, -1.0]], [-0.1])], relu_output=True)
    find_stability(net, Box.cube(-1.0, 1.0, 1))


@cache
def _prepare_search() -> None:
    find_mipbound(_fan(2, 2), Box.cube(-1.0, 1.0, 2), repetitions=1, workers=1)


def _fan(inputs: int, units: int) -> Network:
    """One layer whose units all cut the cube around zero."""
    weight = np.random.default_rng(0).standard_normal((units, inputs))
    return Network.from_arrays([(weight, np.zeros(units))], relu_output=True)


def _check(seconds: object, confidence: object, mipbound: object, workers: object, progress: object) -> None:
    if isinstance(seconds, bool) or not isinstance(seconds, Real) or not 0.0 < cast("float", seconds) < math.inf:
        msg = f"seconds is {seconds!r:.40}; an analysis takes a positive number, such as 30"
        raise OptionError(msg)
    if isinstance(confidence, bool) or not isinstance(confidence, Real) or not 0.0 < cast("float", confidence) < 1.0:
        msg = f"confidence is {confidence!r:.40}; it must lie between 0 and 1, such as 0.95"
        raise OptionError(msg)
    if mipbound not in {None, True, False}:
        msg = f"mipbound is {mipbound!r:.40}; it is True, False, or None for where it can add something"
        raise OptionError(msg)
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, Integral) or int(workers) < 1):
        msg = f"workers is {workers!r:.40}; an analysis takes a whole number of at least 1, or nothing for all cores"
        raise OptionError(msg)
    if progress is not None and not callable(progress):
        msg = f"progress is a {type(progress).__name__}; an analysis takes a function of one Analysis, or None"
        raise OptionError(msg)
