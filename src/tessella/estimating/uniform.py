"""The work of a sampler: descents that reach every region with the same probability, made before those that learn.

Descents are numbered, and each has a seed of its own, so it does not matter who makes which.  They are made in *lots*.  How many are in the next lot, and whether there is one, depends on lots that are finished; so the
order of all terms, first these and then the rounds of `tessella.estimating.rounds`, is one in which each term has the right conditional mean given those before it.  Only the last lot may be cut off, by
Ctrl-C or a deadline.  Then its descents up to the first that is missing count, and no round follows: a bound that holds at all times together also holds at that one.
"""

import math
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from tessella.counting.checkpoint import domain_digest
from tessella.errors import WorkerLost
from tessella.estimating.afar import work_afar
from tessella.estimating.promises import Promises
from tessella.estimating.sampler import Sampler, Terms
from tessella.estimating.shares import stakes, upper_bound
from tessella.estimating.wide import is_large
from tessella.kernel import meter
from tessella.kernel.threads import single_threaded
from tessella.network import Floats
from tessella.parallel import Crew, Pending, say_lost, worker_count
from tessella.partition.tree import Tree
from tessella.result import Status

_WIDEST, _MOST = 256, 120  # units of a layer, and bits of what is promised, up to which descents can be hoped to succeed
_FIRST, _GROWTH, _MOST_OF = (
    16,
    1.0,
    0.1,
)  # descents of the first lot, how much more are made in the next one, and the part of the time that a lot may take
_HOPE = 0.25  # of the time, until descents are given up if none succeeded
_TASK, _LONGEST = 0.02, 256  # seconds that a task should take, and descents in it
_TRIED = 64  # descents in either way, before one is chosen
_TRUSTED = 1e-9  # seconds; less than a descent takes
_TICK, _RARELY = 0.2, 20.0  # seconds between reports, and how much longer than a report takes
_LARGEST = 2**26  # descents
_OFF = 2.0**-51  # more than the probabilities of one draw are off by, added up


class Drawn(NamedTuple):
    """What descents reached."""

    promised: int  # how many regions are promised in all
    # low, high: the part of that, at least and at most, that each descent reached
    low: Floats
    high: Floats
    planned: Floats  # for each, how many there would be in all, as it was foreseen before it
    doubt: float  # the probability that any of them is not what it would be if numbers were not rounded, at most
    cut: bool = False  # whether they were cut off by a deadline or by Ctrl-C: then no further terms may follow
    # how many were made before any round, and how many rounds before all others; None if all were made before the rounds
    turns: tuple[int, int] | None = None

    @property
    def logarithms(self) -> Floats:
        """Those of estimates of the number of regions, from below."""
        with np.errstate(divide="ignore"):
            return np.log(self.low) + math.log(self.promised)

    def upper(self, confidence: float) -> int:
        """What the number of regions is at most, with a confidence."""
        sure = confidence + self.doubt
        return math.floor(self.promised * Fraction(upper_bound(self.high, stakes(self.high, self.planned, sure), sure)))


def doubt(tree: Tree) -> float:
    """The probability that rounding changes what is drawn in any descent: there is one draw for each unit, and three for each layer."""
    return (tree.units + 3 * len(tree.network.layers)) * _LARGEST * _OFF


def is_hopeful(tree: Tree, confidence: float) -> bool:
    """Whether descents that reach every region with the same probability ever succeed, as far as the shape of a network tells."""
    if is_large(tree) or not tree.units or not tree.domain.free_dim or max(tree.network.widths) > _WIDEST:
        return False
    return Promises.of(tree).total.bit_length() <= _MOST and 4.0 * doubt(tree) < 1.0 - confidence


class Task(NamedTuple):
    """Some descents to make: the number of the first one, how many, what seeds are made from, and whether they count the last layer."""

    first: int
    size: int
    base: int
    counts: bool


class Ways:
    """What the two ways through the last layer cost and bring: to count it takes longer, to draw one set of it spreads more."""

    def __init__(self) -> None:
        """Nothing was tried."""
        self._spent, self._made, self._sums = [0.0, 0.0], [0, 0], [np.zeros(2), np.zeros(2)]

    def add(self, terms: Floats, seconds: float, *, counts: bool) -> None:
        """Note a lot."""
        self._spent[counts] += seconds
        self._made[counts] += len(terms)
        self._sums[counts] += terms.sum(), (terms**2).sum()

    def outlook(self, mean: float, left: float) -> tuple[float, float] | None:
        """Seconds and mean square of the descents that are made next, where their mean is known; None before either way was tried."""
        if min(self._made) < _TRIED:
            return None
        way = self._excess(mean, left, counts=True) <= self._excess(mean, left, counts=False)
        return max(self._spent[way] / self._made[way], _TRUSTED), self._square(mean, counts=way)

    def counts(self, left: float) -> bool:
        """Whether to count in the next lot, with so many seconds left: first either way is tried, then the one that promises the narrower bound is taken."""
        if min(self._made) < _TRIED or math.isinf(left):
            return self._made[1] <= self._made[0] or math.isinf(left)
        mean = (self._sums[0][0] + self._sums[1][0]) / sum(self._made)
        if not mean:
            return self._spent[1] / self._made[1] < self._spent[0] / self._made[0]
        return bool(self._excess(mean, left, counts=True) <= self._excess(mean, left, counts=False))

    def _excess(self, mean: float, left: float, *, counts: bool) -> float:
        """How far the bound will lie above the mean, relative to that."""
        pace = self._spent[counts] / self._made[counts]
        square = self._square(mean, counts=counts)
        return 3.0 * pace / (left * mean) + math.sqrt(6.0 * pace / left * max(square / mean**2 - 1.0, 0.0))

    def _square(self, mean: float, *, counts: bool) -> float:
        """The mean square of what descents reach: a set is there or not."""
        return float(self._sums[1][1] / self._made[1]) if counts and self._sums[1][1] else mean


def work(crew: Crew[Sampler], key: str, tree: Tree, task: Task) -> Terms:
    """Make some descents."""
    with crew.lend(key, lambda: Sampler(tree)) as sampler:
        return sampler.terms(task.first, task.size, task.base, counts=task.counts)


class Uniform:
    """One run of descents.

    Parameters
    ----------
    tree
        Where to descend; it is hopeful.
    base
        What seeds are made from.
    report
        Called every now and then with what is there.
    clock
        What deadlines are measured with; benchmarks on shared machines use CPU time.
    """

    def __init__(self, tree: Tree, base: int, report: Callable[[Drawn], None], clock: Callable[[], float] = meter.clock) -> None:
        """Nothing is drawn yet."""
        self._tree, self._base, self._report, self._clock = tree, base, report, clock
        self._promised, self._crew, self._told = Promises.of(tree).total, Crew[Sampler](), meter.clock()
        self._parts, self._planned, self._done, self._pace, self._cut = list[Terms](), list[Floats](), 0, 0.0, True
        self._turns: tuple[int, int] | None = None
        self.spent, self.ways, self._first, self._succeeded = 0.0, Ways(), 0.0, False

    @property
    def drawn(self) -> Drawn:
        """What is there, in the order of the numbers."""
        low, high = (np.concatenate([np.zeros(0), *(part[side] for part in self._parts)]) for side in (0, 1))
        return Drawn(
            self._promised, low, high, np.concatenate([np.zeros(0), *self._planned]), doubt(self._tree), self._cut, self._turns
        )

    @property
    def pace(self) -> float:
        """Seconds per descent, whoever makes it."""
        return self._pace

    def after(self, rounds: int) -> None:
        """Note that all further descents come after so many rounds."""
        self._turns = self._done, rounds

    def go(
        self,
        count: int | None,
        deadline: float,
        executor: Executor | None,
        workers: int | None,
        parts: tuple[float, float] = (0.5, 0.5),
    ) -> Status:
        """Make so many descents, or as many as fit into a part of the time; Ctrl-C ends it early, or the loss of an executor.

        Parameters
        ----------
        count
            How many; None for as many as the time allows.
        deadline
            When the time is over.
        executor, workers
            Who works.
        parts
            The part of the time, from the first descent to the deadline, that is theirs until now, and that is foreseen for them in all.
        """
        self._cut = True
        try:
            with single_threaded():
                if executor is not None:
                    self._cut = not self._lots(count, deadline, parts, executor, workers, afar=True)
                else:
                    with ThreadPoolExecutor(worker_count(workers)) as threads:
                        self._cut = not self._lots(count, deadline, parts, threads, workers, afar=False)
        except WorkerLost as error:
            if not self._done:  # it never worked
                raise
            say_lost(f"{error}; what {self._done:,} descents say is kept")
            return Status.LOST
        except KeyboardInterrupt:
            return Status.INTERRUPTED
        return Status.FINISHED

    def _lots(  # noqa: PLR0913  who makes how many until when
        self,
        count: int | None,
        deadline: float,
        parts: tuple[float, float],
        executor: Executor,
        asked: int | None,
        *,
        afar: bool,
    ) -> bool:
        """Make one lot after the other; False if the last one was cut off."""
        self._first = self._first if self._done else self._clock()
        begun, workers, whole = self._clock() - self.spent, worker_count(asked, executor), deadline - self._first
        while count is None or self._done < count:
            self.spent, made_before = self._clock() - begun, len(self._parts)
            spent = self.spent
            self._pace = spent / self._done if self._done else 0.0
            planned = _FIRST if not self._pace or math.isinf(whole) else max(int(parts[1] * whole / self._pace), self._done + 1)
            wanted = max(_FIRST, int(_GROWTH * self._done))
            if count is not None:
                planned, wanted = count, count - self._done
            else:
                part = parts[0] if self._succeeded or self._turns else min(parts[0], _HOPE)
                fitting = int((part * whole - spent) / self._pace) if self._pace else wanted
                if fitting < min(wanted, _FIRST):
                    return True
                wanted = min(wanted, fitting, max(_FIRST, int(_MOST_OF * whole / self._pace)) if self._pace else wanted)
            wanted = min(wanted, _LARGEST - self._done)
            if wanted <= 0:
                return True
            counts = count is not None or self.ways.counts(parts[1] * whole - spent)
            lot = Task(self._done, wanted, self._base, counts)
            self._lot(lot, planned, deadline, Pending[int](executor), workers, afar=afar)
            if self._done < lot.first + wanted:
                return False
            made = np.concatenate([part.high for part in self._parts[made_before:]])
            self._succeeded = self._succeeded or bool(made.any())
            if lot.first:  # the first lot also makes what descents work with
                self.ways.add(made, self._clock() - begun - spent, counts=counts)
        return True

    def _tell(self) -> None:
        """Report, unless that takes much of the time: what many descents say takes longer to add up."""
        begun = meter.clock()
        if begun >= self._told:
            self._report(self.drawn)
            now = meter.clock()
            self._told = now + max(_TICK, _RARELY * (now - begun))

    def _lot(self, lot: Task, planned: int, deadline: float, pending: Pending[int], workers: int, *, afar: bool) -> None:  # noqa: PLR0913
        """Make some descents, and keep those before the first that is missing."""
        start, end, found = lot.first, lot.first + lot.size, dict[int, Terms]()
        step = max(1, min(_LONGEST, lot.size // (2 * workers), int(_TASK / (self._pace * workers)) if self._pace else 1))
        key = self._tree.network.fingerprint + domain_digest(self._tree.domain) if afar else ""
        try:
            while (start < end and self._clock() < deadline) or pending.labels:
                while start < end and len(pending.labels) < 2 * workers and self._clock() < deadline:
                    task = lot._replace(first=start, size=min(step, end - start))
                    if afar:
                        pending.submit(start, work_afar, work, key, self._tree, task)
                    else:
                        pending.submit(start, work, self._crew, key, self._tree, task)
                    start += task.size
                found.update(pending.wait(_TICK))
                self._tell()
        finally:
            pending.cancel()
            while self._done in found:
                terms = found.pop(self._done)
                self._parts.append(terms)
                self._done += len(terms.low)
            self._planned.append(np.full(self._done - lot.first, float(planned)))
