"""Repetitions side by side: who does which, and what is known meanwhile.

A repetition is one task with a seed of its own, so it does not matter who does it.  Those that count are the first ones without a gap: to
leave out the slow ones would choose among them.
"""

import math
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from tessella import options
from tessella.errors import SolverError, WorkerLost
from tessella.kernel import meter
from tessella.parallel import Crew, Pending, Stop, say_lost, worker_count
from tessella.probable.probability import ALL_FEASIBLE, repetitions_for
from tessella.probable.result import MIPBound
from tessella.probable.search import Outcome
from tessella.result import Side, Status, format_count
from tessella.seeds import entropy

if TYPE_CHECKING:
    from tessella.kernel.functions import Apart

_WHO = "MIPBound"
_MOST = 1000  # repetitions in a time limit: 56 % of them must be feasible for 95 %, of 28 it is 89 %, and 50 % of however many
_TICK = 0.2  # seconds between looks at the clock
_PATIENCE = 4.0  # seconds to wait for workers that are asked to stop


class Worker(Protocol):
    """Does repetitions; serves one thread."""

    def repeat(self, size: int, seed: np.random.SeedSequence, stopped: Callable[[], bool]) -> Outcome | None:
        """Draw constraints of so many variables until nothing is left; None if it was stopped before."""
        ...


class Job(Protocol):
    """What repetitions work on; can be sent to other processes."""

    @property
    def key(self) -> str:
        """The same for the same job."""
        ...

    @property
    def threads(self) -> int:
        """How many threads work side by side, unless another number is asked for."""
        ...

    @property
    def functions(self) -> "tuple[Apart, ...]":
        """The compiled functions that repetitions call."""
        ...

    def worker(self) -> Worker:
        """Somebody new to do repetitions."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to do."""

    size: int  # how many variables a constraint has
    confidence: float  # the probability asked for
    repetitions: int  # how many, if there is time for them
    seconds: float | None  # for how long; None without limit
    entropy: tuple[int, ...]  # what all seeds come from

    def seed(self, number: int) -> np.random.SeedSequence:
        """That of one repetition."""
        return np.random.SeedSequence(self.entropy, spawn_key=(self.size, number))


def plan(  # noqa: PLR0913  one per option
    *, parity_size: object, confidence: object, repetitions: object, seconds: object, rng: object, **others: object
) -> Plan:
    """Check what was asked; raises where something is not what it should be."""
    options.check_whole(parity_size, "parity_size", _WHO)
    options.check_whole(repetitions, "repetitions", _WHO, otherwise="None for 28, or with a time limit up to 1,000")
    options.check_workers(others.get("workers"), _WHO)
    options.check_confidence(confidence, _WHO)
    options.check_seconds(seconds, _WHO)
    sure = float(cast("float", confidence))
    fewest = repetitions_for(max(sure, ALL_FEASIBLE))
    endless = seconds is None or math.isinf(cast("float", seconds))
    count = int(cast("int", repetitions)) if repetitions is not None else fewest if endless else _MOST
    limit = None if endless else float(cast("float", seconds))
    return Plan(int(cast("int", parity_size)), sure, count, limit, entropy(rng))


def check_progress(progress: Callable[[MIPBound], None] | bool | None) -> Callable[[MIPBound], None] | None:  # noqa: FBT001
    """Who is told, if anybody is."""
    return options.check_progress(progress, _WHO, "one MIPBound")


def standing(now: MIPBound) -> tuple[str, float | None]:
    """How a bar says where repetitions stand."""
    return f"at least {format_count(now.lower, Side.LOWER)} so far, {now.repetitions:,} repetitions", None


def load(job: Job) -> None:
    """Load what a job calls, compiled if need be: at once, and before anybody begins to work on it."""
    if job.functions:
        from tessella.kernel import warming  # noqa: PLC0415  loads the compiler

        warming.load(job.functions)


@dataclass(slots=True)
class Run:
    """The repetitions of one plan."""

    job: Job  # what they work on
    plan: Plan  # how much to do
    deadline: float  # when to stop
    changed: Callable[[list[Outcome]], None]  # called after each repetition that counts
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    status: Status = Status.FINISHED
    _waiting: dict[int, Outcome] = field(default_factory=dict[int, Outcome])
    _crew: Crew[Worker] = field(default_factory=Crew[Worker])
    _stop: Stop = field(default_factory=Stop)
    _next: int = 0

    def go(self, executor: Executor | None, workers: int | None) -> None:
        """Do them, in threads of this process or in an executor; Ctrl-C ends it early, or the loss of an executor that brought something."""
        try:
            load(self.job)
            if executor is not None:
                self._loop(Pending[int](executor), lambda: worker_count(workers, executor), afar=True)
                return
            count = workers or self.job.threads
            with ThreadPoolExecutor(min(count, self.plan.repetitions)) as threads:
                self._loop(Pending[int](threads), lambda: count, afar=False)
        except KeyboardInterrupt:  # a second one, or between two steps
            self.status = Status.INTERRUPTED

    def _loop(self, pending: Pending[int], count: Callable[[], int], *, afar: bool) -> None:
        try:
            while self._fill(pending, count(), afar=afar):  # more may join a cluster meanwhile
                for number, found in pending.wait(_TICK):
                    self._absorb(number, found)
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
            self._drain(pending)
        except WorkerLost as error:
            self._drain(pending)
            if not self.outcomes:
                raise
            self.status = Status.LOST
            say_lost(f"{error}; what {len(self.outcomes)} repetitions say is returned")
        finally:
            self._stop.asked = True
            pending.cancel()

    def _fill(self, pending: Pending[int], workers: int, *, afar: bool) -> bool:
        """Give work to idle workers; False if there is nothing to wait for."""
        most = self.plan.repetitions
        left = self.deadline - meter.clock()
        while len(pending.labels) < workers and self._next < most and left > 0.0:
            number, self._next = self._next, self._next + 1
            if afar:
                seconds = None if math.isinf(left) else left
                pending.submit(number, work_afar, number, self.job.key, self.job, self.plan, seconds)
            else:
                pending.submit(number, self._work, number)
        if left <= 0.0 and len(self.outcomes) < most:
            self.status = Status.TIME_LIMIT
            self._stop.asked = True
            pending.cancel()
        return bool(pending.labels)

    def _work(self, number: int) -> Outcome | None:
        with self._crew.lend("", self.job.worker) as worker:
            return worker.repeat(self.plan.size, self.plan.seed(number), self._stopped)

    def _stopped(self) -> bool:
        return self._stop.asked or meter.clock() > self.deadline

    def _absorb(self, number: int, found: Outcome | None) -> None:
        if found is None:
            return
        self._waiting[number] = found
        while (following := self._waiting.pop(len(self.outcomes), None)) is not None:
            self.outcomes.append(following)
            self.changed(self.outcomes)

    def _drain(self, pending: Pending[int]) -> None:
        """Take in what workers bring back when they are asked to stop."""
        self._stop.asked = True
        pending.cancel()
        end = meter.clock() + _PATIENCE
        try:
            while pending.labels and meter.clock() < end:
                with suppress(WorkerLost):  # others may not be
                    for number, found in pending.wait(_TICK):
                        self._absorb(number, found)
        except (KeyboardInterrupt, SolverError):  # asked again, or the workers were interrupted themselves
            return


_afar = Crew[Worker]()  # in a worker process: those of its last jobs


def work_afar(number: int, key: str, job: Job, plan: Plan, seconds: float | None) -> Outcome | None:
    """What a foreign executor is given; the number makes each call another one, as some executors merge equal calls."""
    end = math.inf if seconds is None else meter.clock() + seconds
    with _afar.lend(key, job.worker) as worker:
        return worker.repeat(plan.size, plan.seed(number), lambda: meter.clock() > end)
