"""The descents of an estimate, in order: some that reach every region with the same probability, some rounds that learn, and more of either as their time was divided."""

import math
from collections.abc import Callable
from concurrent.futures import Executor
from typing import NamedTuple

from tessella.counting.checkpoint import domain_digest
from tessella.errors import WorkerLost
from tessella.estimating.division import BEGINNING, PLANNED, TRIAL, divides, part
from tessella.estimating.rounds import Rounds, Sample
from tessella.estimating.uniform import Uniform, is_hopeful
from tessella.kernel import meter
from tessella.parallel import say_lost
from tessella.partition.tree import Tree
from tessella.result import Status

_OTHER = 0x5DEECE66D1CE4E5B  # what makes other seeds
_SHORT = 0.05  # seconds; too little time for both kinds of descents


class Asked(NamedTuple):
    """What an estimate was asked for: so many probes, or a deadline; and who works."""

    probes: int | None
    deadline: float
    executor: Executor | None
    workers: int | None


def _own(tree: Tree) -> int:
    """A number of a network and a domain of their own: with one seed for all, similar networks would draw the same sets, and bounds would miss together."""
    return int(tree.network.fingerprint[:15], 16) ^ int(domain_digest(tree.domain)[:15], 16)


class Both:
    """One run of both kinds of descents; it takes what `tessella.estimating.rounds.Rounds` takes."""

    def __init__(self, tree: Tree, base: int, report: Callable[[Sample], None]) -> None:
        """Nothing is drawn yet."""
        self._tree, self._base, self._report = tree, base ^ _own(tree), report
        self._rounds = Rounds(tree, self._base, lambda _: report(self.sample))
        self._uniform: Uniform | None = None

    @property
    def sample(self) -> Sample:
        """What is there."""
        return self._rounds.sample._replace(uniform=self._uniform.drawn if self._uniform else None)

    def go(self, asked: Asked, confidence: float, proved: int, early: Status | None, *, worked: bool) -> Status:
        """Make descents of both kinds, at least one round for an answer.

        Parameters
        ----------
        asked
            How many, until when, and who works.
        confidence
            With which both sides of what they say are to hold.
        proved
            What the number of regions is at most.
        early
            What ended earlier steps, if anything did: it ends these, too.
        worked
            Whether the executor did any work before: then its loss ends these, and is no error.
        """
        if not early and asked.deadline - meter.clock() > _SHORT and is_hopeful(self._tree, confidence):
            early, worked = self._divided(asked, proved), True
        if not early:
            found = self._made(asked, worked=worked)
            if found is not None:
                return found
            early = Status.LOST
        executor = None if early is Status.LOST else asked.executor
        self._rounds.go(asked.probes, meter.clock(), executor, asked.workers)
        return early

    def _divided(self, asked: Asked, proved: int) -> Status | None:
        """Descents that reach every region with the same probability, and rounds between them; what ended these before their end, if anything did."""
        probes, deadline, executor, workers = asked
        uniform = self._uniform = Uniform(self._tree, self._base ^ _OTHER, lambda _: self._report(self.sample))
        begun = meter.clock()
        whole = deadline - begun
        both = probes is None and divides(whole)
        ended = uniform.go(probes, deadline, executor, workers, (BEGINNING if both else PLANNED, PLANNED))
        if ended is not Status.FINISHED:
            return ended
        if not both or uniform.drawn.cut:
            return None
        now = meter.clock()
        foreseen = now + (deadline - now) * PLANNED / (1.0 - BEGINNING)
        ended = self._made(asked._replace(deadline=foreseen), worked=True, until=now + TRIAL * whole)
        if ended is not Status.FINISHED:
            return ended or Status.LOST
        sample = self.sample
        uniform.after(len(sample.logarithms))
        given = part(sample, uniform.ways, (uniform.pace, self._rounds.pace), whole, proved)
        ended = uniform.go(None, deadline, executor, workers, (given, given))
        return None if ended is Status.FINISHED else ended

    def _made(self, asked: Asked, *, worked: bool, until: float = math.inf) -> Status | None:
        """Make rounds; None if the executor was lost that worked before."""
        try:
            return self._rounds.go(*asked, until)
        except WorkerLost as error:
            if not worked:
                raise
            say_lost(f"{error}; what is known is returned")
            return None
