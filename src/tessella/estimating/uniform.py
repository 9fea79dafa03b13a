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
from tessella.estimating.promises import Promises
from tessella.estimating.sampler import Sampler, Terms
from tessella.estimating.shares import stakes, upper_bound
from tessella.estimating.wide import is_large
from tessella.kernel import meter
from tessella.kernel.threads import single_threaded
from tessella.network import Floats
from tessella.parallel import Crew, Pending, worker_count
from tessella.partition.tree import Tree

_WIDEST, _MOST = 256, 120  # units of a layer, and bits of what is promised, up to which descents can be hoped to succeed
_FIRST, _GROWTH = 16, 1.0  # descents of the first lot, and how much more are made in the next one
_PART, _HOPE = 0.5, 0.25  # of the time: for descents; and until they are given up if none succeeded
_TASK, _LONGEST = 0.02, 256  # seconds that a task should take, and descents in it
_TICK = 0.2  # seconds between reports
_LARGEST = 2**26  # descents
_OFF = 2.0**-51  # more than the probabilities of one draw are off by, added up


class Drawn(NamedTuple):
    """What descents reached.

    Parameters
    ----------
    promised
        How many regions are promised in all.
    low, high
        The part of that, at least and at most, that each descent reached.
    planned
        For each, how many there would be in all, as it was foreseen before it.
    doubt
        The probability that any of them is not what it would be if numbers were not rounded, at most.
    """

    promised: int
    low: Floats
    high: Floats
    planned: Floats
    doubt: float

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
    """Some descents to make: the number of the first one, how many, and what seeds are made from."""

    first: int
    size: int
    base: int


def work(crew: Crew[Sampler], key: str, tree: Tree, task: Task) -> Terms:
    """Make some descents."""
    with crew.lend(key, lambda: Sampler(tree)) as sampler:
        return sampler.terms(*task)


_afar = Crew[Sampler]()  # in a worker process


def work_afar(key: str, tree: Tree, task: Task) -> Terms:
    """What a foreign executor is given; the number of the first descent makes each call another one."""
    with single_threaded():
        return work(_afar, key, tree, task)


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
        self._parts, self._planned, self._done, self._pace = list[Terms](), list[Floats](), 0, 0.0

    @property
    def drawn(self) -> Drawn:
        """What is there, in the order of the numbers."""
        low, high = (np.concatenate([np.zeros(0), *(part[side] for part in self._parts)]) for side in (0, 1))
        return Drawn(self._promised, low, high, np.concatenate([np.zeros(0), *self._planned]), doubt(self._tree))

    def go(self, count: int | None, deadline: float, executor: Executor | None, workers: int | None) -> bool:
        """Make so many descents, or as many as deserve a part of the time until the deadline; False if that was cut off by the deadline or Ctrl-C."""
        size = worker_count(workers, executor)
        try:
            with single_threaded():
                if executor is not None:
                    return self._lots(count, deadline, executor, size, afar=True)
                with ThreadPoolExecutor(size) as threads:
                    return self._lots(count, deadline, threads, size, afar=False)
        except KeyboardInterrupt:
            return False

    def _lots(self, count: int | None, deadline: float, executor: Executor, workers: int, *, afar: bool) -> bool:
        begun = self._clock()
        whole, succeeded = deadline - begun, False
        while count is None or self._done < count:
            spent = self._clock() - begun
            self._pace = spent / self._done if self._done else 0.0
            succeeded = succeeded or bool(self._parts and self._parts[-1].high.any())
            planned = _FIRST if not self._pace or math.isinf(whole) else max(int(_PART * whole / self._pace), self._done + 1)
            wanted = max(_FIRST, int(_GROWTH * self._done))
            if count is not None:
                planned, wanted = count, count - self._done
            else:
                part = _PART if succeeded else _HOPE
                fitting = int((part * whole - spent) / self._pace) if self._pace else wanted
                if fitting < min(wanted, _FIRST):
                    return True
                wanted = min(wanted, fitting)
            wanted = min(wanted, _LARGEST - self._done)
            if wanted <= 0:
                return True
            done = self._done
            self._lot(wanted, planned, deadline, Pending[int](executor), workers, afar=afar)
            if self._done < done + wanted:
                return False
        return True

    def _lot(self, wanted: int, planned: int, deadline: float, pending: Pending[int], workers: int, *, afar: bool) -> None:  # noqa: PLR0913
        """Make some descents, and keep those before the first that is missing."""
        start, end, found = self._done, self._done + wanted, dict[int, Terms]()
        step = max(1, min(_LONGEST, wanted // (2 * workers), int(_TASK / (self._pace * workers)) if self._pace else 1))
        key = self._tree.network.fingerprint + domain_digest(self._tree.domain) if afar else ""
        try:
            while (start < end and self._clock() < deadline) or pending.labels:
                while start < end and len(pending.labels) < 2 * workers and self._clock() < deadline:
                    task = Task(start, min(step, end - start), self._base)
                    if afar:
                        pending.submit(start, work_afar, key, self._tree, task)
                    else:
                        pending.submit(start, work, self._crew, key, self._tree, task)
                    start += task.size
                found.update(pending.wait(_TICK))
                if meter.clock() - self._told >= _TICK:
                    self._told = meter.clock()
                    self._report(self.drawn)
        finally:
            pending.cancel()
            while self._done in found:
                terms = found.pop(self._done)
                self._parts.append(terms)
                self._planned.append(np.full(len(terms.low), float(planned)))
                self._done += len(terms.low)
