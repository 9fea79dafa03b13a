"""The work of an estimate: generations of rounds, learned from one after the other.

All rounds of a generation are steered by what was learned from earlier ones, and each has a seed of its own, made from its number.  So it does not matter who
makes which, and in the order of their numbers every round has the right conditional mean given those before: this is the order in which the
bets of `tessella.estimating.betting` are made.  Where the time ends within a generation, what counts is the rounds up to the first that is missing.
"""

import math
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from time import thread_time
from typing import NamedTuple

import numpy as np

from tessella.counting.checkpoint import domain_digest
from tessella.errors import WorkerLost
from tessella.estimating.afar import work_afar
from tessella.estimating.contest import Contest, Kind, Turn, descents_of, kinds_for
from tessella.estimating.descents import Batch, Descents
from tessella.estimating.moving import MovingParticles
from tessella.estimating.uniform import Drawn
from tessella.estimating.wide import WideDescents
from tessella.kernel import meter
from tessella.kernel.threads import single_threaded
from tessella.network import Floats
from tessella.parallel import Crew, Pending, say_lost, worker_count
from tessella.partition.tree import Tree
from tessella.result import Status

_FIRST, _GROWTH = 4, 1.5  # rounds of the first generation, and how much more are made before what is learned is used
_TASK = 0.05  # seconds that one task should take
_LONGEST = 32  # rounds in one task
_TICK = 0.2  # seconds between reports
_GUESS, _WIDE_GUESS = 200, 8  # rounds that are planned for before one was timed; the same for wide networks
_FADE = 0.8  # of the longest time so far, with each task
_QUEUE = 0.1  # seconds; shorter tasks are queued, so that nobody waits for them
_BUSY = 0.05  # the least part of the time in which a worker is reckoned to have a processor
_OVERLOOKED = 0.01  # bits per unit that descents by points miss at most, as far as was measured: sides that are not found are hardly ever drawn


class Sample(NamedTuple):
    """What rounds brought."""

    logarithms: Floats  # those of the estimates, in the order of the rounds
    # for each, how many rounds there would be in all, as it was foreseen before it; infinity where nothing is to be bet on it
    planned: Floats
    # thin, undecided: how many cells exact arithmetic was asked about, and how many of these it gave up on
    thin: int = 0
    undecided: int = 0
    overlooked: float = 0.0  # bits by which the estimates may be too small without that it shows
    method: str = ""  # how rounds descended: `"linear programs"`, `"points"` or `"particles"`
    # what descents brought that reach every region with the same probability; None if there were none
    uniform: Drawn | None = None
    settled: int = 0  # how many rounds were made before that was chosen
    # how many rounds were made until nothing more was learned: all later ones are alike.  0 if there was no end of it
    learned: int = 0


class Task(NamedTuple):
    """Some rounds to make."""

    # first, size: the number of the first one, and how many
    first: int
    size: int
    base: int  # what the seeds of rounds are made from
    theta: Floats  # what was learned from earlier rounds
    # kind, population: how they descend, and with how many nodes
    kind: Kind
    population: int | None = None


class Done(NamedTuple):
    """Some rounds that were made."""

    batch: Batch  # what they brought
    # thin, undecided: how many prefixes these descents left to exact arithmetic so far, and how many of them it gave up on
    thin: int
    undecided: int
    seconds: float  # the processor's time that they took
    wall: float  # the time that went by


def work(crew: Crew[Descents | WideDescents | MovingParticles], key: str, tree: Tree, task: Task) -> Done:
    """Make some rounds."""
    with crew.lend(f"{key} {task.kind} {task.population}", lambda: descents_of(tree, task.kind, task.population)) as descents:
        begun, started = thread_time(), meter.clock()
        batch = descents.rounds(task.first, task.size, task.base, task.theta)
        return Done(batch, len(descents.answers), descents.answers.given_up, thread_time() - begun, meter.clock() - started)


class Rounds:
    """One run of an estimate.

    Parameters
    ----------
    tree
        Where to descend; it has a unit, and its domain a free input.
    base
        What the seeds of rounds are made from.
    report
        Called every now and then with what is there.
    clock
        What the deadline is measured with; benchmarks on shared machines use CPU time.
    """

    def __init__(self, tree: Tree, base: int, report: Callable[[Sample], None], clock: Callable[[], float] = meter.clock) -> None:
        """Nothing is known yet."""
        self._tree, self._base, self._report, self._clock = tree, base, report, clock
        self._contest = Contest(tree, timed=True)
        self._crew = Crew[Descents | WideDescents | MovingParticles]()
        self._parts, self._planned = list[Floats](), list[Floats]()
        self._done, self._thin, self._undecided = 0, 0, 0
        self._pace, self._longest, self._told = 0.0, 0.0, meter.clock()
        self._begun = self._since = self._left = 0.0
        self._made = 0
        self._before: Turn | None = None
        self._worked = self._passed = 0.0  # seconds of processors, and of those who waited for them

    @property
    def sample(self) -> Sample:
        """What is there, in the order of the rounds."""
        empty = [np.zeros(0)]
        found = Sample(np.concatenate(self._parts or empty), np.concatenate(self._planned or empty), self._thin, self._undecided)
        kind, settled = self._contest.kind, self._contest.settled
        overlooked = _OVERLOOKED * self._tree.units if kind is Kind.POINTS else 0.0
        learned = settled if self._contest.learned else 0
        return found._replace(overlooked=overlooked, method=kind.method, settled=settled, learned=learned)

    @property
    def best(self) -> Turn:
        """How single descents are best made, as far as is known, and by what they are best steered."""
        return self._contest.leader

    @property
    def pace(self) -> float:
        """Seconds per round of late, whoever makes it."""
        return (self._left - self._since) / max(self._done - self._made, 1)

    def go(
        self,
        probes: int | None,
        deadline: float,
        executor: Executor | None,
        workers: int | None,
        until: float = math.inf,
    ) -> Status:
        """Make rounds until there are enough, or the time is over; Ctrl-C ends it early, or the loss of an executor that brought something.

        Parameters
        ----------
        probes
            How many, if that is what ends it.
        deadline
            When the time is over.
        executor, workers
            Who works.
        until
            When to stop all the same, to go on later: called again, this goes on as if no time had gone by.
        """
        try:
            with single_threaded():
                if executor is not None:
                    return self._loop(probes, deadline, until, executor, workers, afar=True)
                with ThreadPoolExecutor(worker_count(workers)) as threads:
                    return self._loop(probes, deadline, until, threads, workers, afar=False)
        except WorkerLost as error:
            if not self._done:
                raise
            say_lost(f"{error}; what {self._done:,} probes say is returned")
            return Status.LOST
        except KeyboardInterrupt:
            if not self._done:
                raise
            return Status.INTERRUPTED
        finally:
            self._left = self._clock()

    def _enter(self, deadline: float, workers: int, *, timed: bool) -> None:
        """Begin; or go on, as if no time had gone by."""
        now = self._clock()
        if not self._done:
            given = (deadline - now) * workers if math.isfinite(deadline) else 0.0
            self._contest, self._made, self._left = Contest(self._tree, timed=timed, seconds=given), 0, now
            self._begun = self._since = now
        self._begun, self._since = self._begun + now - self._left, self._since + now - self._left

    def _loop(  # noqa: PLR0913  who makes how many until when
        self, probes: int | None, deadline: float, until: float, executor: Executor, asked: int | None, *, afar: bool
    ) -> Status:
        self._enter(deadline, worker_count(asked, executor), timed=probes is None)
        guess = _GUESS if len(kinds_for(self._tree)) == 1 and self.best.kind is not Kind.POINTS else _WIDE_GUESS
        begun, since, made = self._begun, self._since, self._made  # rounds are made as they are now since then, and after so many
        pace = self._pace / worker_count(asked, executor) if self._done else math.inf
        while True:
            self._since, self._made = since, made
            now, done, workers = self._clock(), self._done, worker_count(asked, executor)
            most = math.inf if probes is None else probes - done
            planned = guess if probes is None else probes
            if done:
                pace = (now - since) / (done - made) if done > made else pace  # seconds per round, whoever makes it
                self._pace = (
                    pace * workers if probes is None else 0.0
                )  # tasks of one round each: sums do not depend on who makes which
                if math.isfinite(deadline):
                    most = min(most, (deadline - now) / max(pace, 1e-9))
                    planned = done + max(math.floor(most), 0)
                if most < 1 or now >= until:
                    return Status.FINISHED
            share = done / planned if probes is not None else (now - begun) / max(deadline - begun, 1e-9)
            turn = self._contest.turn(share, most if math.isfinite(most) else 0.0, self._free)
            changed = self._changed_pace(turn, (deadline - now) / guess)
            if changed is not None:  # from now on rounds take longer, or less long
                since, made, pace = now, done, changed / workers
                self._pace = self._longest = changed
                most = max((deadline - now) / pace, 1.0)
                planned = done + math.floor(most)
            self._before = turn
            grown = math.inf if turn.population else max(_FIRST, int((_GROWTH - 1.0) * done))
            wanted = max(int(min(grown, most, turn.most)), 1)
            if (
                done and math.isfinite(deadline) and most < 1.5 * wanted and turn.bets
            ):  # the last generation: no time to learn from it
                wanted = max(int(most), 1)
            foreseen = planned if turn.bets else math.inf
            self._generation(turn, wanted, foreseen, deadline, Pending[tuple[int, int, float]](executor), workers, afar=afar)
            if self._done == done:  # no further one would have ended in time
                return Status.FINISHED

    @property
    def _free(self) -> float:
        """The part of the time in which a worker has a processor: others may work on the machine, too."""
        if self._clock is not meter.clock or not self._passed:
            return 1.0
        return min(max(self._worked / self._passed, _BUSY), 1.0)

    def _changed_pace(self, turn: Turn, unknown: float) -> float | None:
        """What a round takes of a processor from now on, if that changes: with the kind of rounds, or their population."""
        before = self._before
        if turn.seconds:
            return None if before is not None and before.seconds else turn.seconds
        if turn.kind is Kind.MOVING:
            return None
        if before is not None and before.kind is Kind.MOVING:
            return unknown
        return self._pace * turn.population if turn.population and (before is None or not before.population) else None

    def _generation(  # noqa: PLR0913, PLR0917  who makes how many until when
        self,
        turn: Turn,
        wanted: int,
        planned: float,
        deadline: float,
        pending: Pending[tuple[int, int, float]],
        workers: int,
        *,
        afar: bool,
    ) -> None:
        """Make some rounds, keep those before the first that is missing, and learn."""
        first = self._done
        step = max(1, min(_LONGEST, wanted // (2 * workers), int(_TASK / self._pace) if self._pace else 1))
        start, end = first, first + wanted
        found = dict[int, Done]()
        key = self._tree.network.fingerprint + domain_digest(self._tree.domain) if afar else ""
        try:
            while start < end or pending.labels:
                queue = workers * (2 if 0.0 < step * self._longest < _QUEUE else 1)
                fitting = self._fitting(deadline, begun=bool(found or pending.labels))
                while start < end and fitting and len(pending.labels) < queue:
                    size = min(step, fitting, end - start)
                    label = (start, size, self._clock())
                    task = Task(start, size, self._base, turn.theta, turn.kind, turn.population)
                    if afar:
                        pending.submit(label, work_afar, work, key, self._tree, task)
                    else:
                        pending.submit(label, work, self._crew, key, self._tree, task)
                    start += size
                    fitting = self._fitting(deadline, begun=True)
                if start < end and not fitting:
                    end = start
                    pending.cancel()
                for (begin, size, submitted), done in pending.wait(_TICK):
                    found[begin] = done
                    self._longest = max(_FADE * self._longest, (self._clock() - submitted) / size)  # outliers fade
                    self._thin, self._undecided = max(self._thin, done.thin), max(self._undecided, done.undecided)
                self._tell()
        finally:
            pending.cancel()
            self._absorb(turn, found, planned)

    def _fitting(self, deadline: float, *, begun: bool) -> int:
        """How many rounds of a task would end in time, if they take as long as the longest of late; the first of all are made in any case."""
        if not (begun or self._done) or math.isinf(deadline):
            return _LONGEST
        left = deadline - self._clock()
        return int(min(max(left, 0.0) / max(self._longest, 1e-9), _LONGEST))

    def _absorb(self, turn: Turn, found: dict[int, Done], planned: float) -> None:
        """Keep the rounds that follow each other, and learn from them."""
        while self._done in found:
            done = found.pop(self._done)
            batch = done.batch
            self._parts.append(batch.logarithms)
            self._planned.append(np.full(len(batch.logarithms), planned))
            self._done += len(batch.logarithms)
            self._worked, self._passed = self._worked + done.seconds, self._passed + done.wall
            self._contest.take(turn, batch, done.seconds)
        self._contest.end(turn)

    def _tell(self) -> None:
        now = meter.clock()
        if now - self._told >= _TICK:
            self._told = now
            self._report(self.sample)
