"""The work of a count: who walks what, for how long, and what is known meanwhile.

Open nodes lie on one stack, large parts of the tree at its bottom.  A worker gets some from its top and a slice of time, and brings back what it
counted and what it left open, so work spreads by itself.  Where a worker has nothing to do, others are asked to come back early;
in other processes they cannot be asked, so slices are short while there is little to give.  Results are added up as they come: sums do not
depend on who worked, nor in which order.

What walkers call thin is counted by exact arithmetic (`tessella.partition.settler`), as tasks of their own.  So is the list of cells that bounds what is left (`tessella.counting.beside`).
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from tessella.counting.beside import Beside
from tessella.counting.checkpoint import Checkpoint, Saved, Step, Totals, domain_digest
from tessella.counting.thin import settle
from tessella.counting.walkers import walk_for, walker_for
from tessella.errors import OptionError, SolverError, WorkerLost
from tessella.kernel import meter
from tessella.kernel.deadline import default_memory
from tessella.parallel import Crew, Pending, Stop, Workforce, worker_count
from tessella.partition.local import LocalBound
from tessella.partition.settler import Settler
from tessella.partition.tree import Found, Node, Tree, Walker

_Item = TypeVar("_Item")

_SLICE, _SHORT = 0.3, 0.02  # seconds that a worker walks; after the second it may be asked to share
_SLICE_AFAR, _SHORT_AFAR = 2.0, 0.2  # in other processes; the second where others wait for work
_TICK = 0.2  # seconds between reports
_MOST_NODES, _MOST_THIN = 1024, 64  # that one worker gets


class TooLarge(OptionError):
    """One worker alone needs more memory than is allowed."""

    def __init__(self, size: int, memory: int) -> None:
        """Say how much."""
        super().__init__(f"memory is limited to {memory:,} bytes, but one worker needs {size:,} for this network; allow more")


def prepare(tree: Tree) -> None:
    """Load what walks a tree, compiled if need be; Ctrl-C ends it."""
    from tessella.kernel import warming  # noqa: PLC0415  loads the compiler

    warming.load(walk_for(tree).functions)


class Task(NamedTuple):
    """What one worker is asked to do: walk these nodes, or count these thin prefixes; without either, list cells."""

    nodes: tuple[Node, ...]
    thin: tuple[bytes, ...]
    seconds: float
    stop: Stop
    since: float = 0.0


class Workers:
    """Those who work on trees: walkers, and settlers of thin prefixes, as many of each as work at the same time.

    Parameters
    ----------
    bound
        The most regions below a prefix, if all work on one tree; None for trees as they come.
    """

    def __init__(self, bound: LocalBound | None = None) -> None:
        """Nobody is there yet."""
        self._bound, self._walkers, self._settlers = bound, Crew[Walker](), Crew[Settler]()

    def size(self, key: str, tree: Tree) -> int:
        """The memory that one walker holds, in bytes."""
        with self._walkers.lend(key, lambda: walker_for(tree)) as walker:
            return int(getattr(walker, "bytes", 0))

    def work(self, key: str, tree: Tree, task: Task) -> Found:
        """Walk nodes, or settle thin prefixes, for about as long as the task says."""
        if not task.thin:
            with self._walkers.lend(key, lambda: walker_for(tree)) as walker:
                return walker.advance(task.nodes, task.seconds, task.stop)
        with (
            self._settlers.lend(key, lambda: Settler(tree, self._bound)) as settler,
            self._walkers.lend(key, lambda: walker_for(tree)) as walker,
        ):
            return settle(task.thin, settler, walker, task.seconds, task.stop)


_afar = Workers()  # in a worker process: those of the trees it was last asked about


def work_afar(_number: int, key: str, tree: Tree, nodes: tuple[Node, ...], thin: tuple[bytes, ...], seconds: float) -> Found:
    """What a foreign executor is given; the number makes each call another one, as some executors merge equal calls."""
    return _afar.work(key, tree, Task(nodes, thin, seconds, Stop()))


class Standing(NamedTuple):
    """Where a count stands."""

    totals: Totals  # what is finished
    # open, thin: how many open nodes and thin prefixes there are
    open: int = 0
    thin: int = 0
    above: int = 0  # the most regions that these can have
    left: int = 0  # their part of the tree, where the root has 2**units
    # the part of the tree that is finished: by the halves that sides are taken for, or by what is left of the most regions there
    # can be, whichever is more
    share: float = 0.0

    @property
    def finished(self) -> bool:
        """Whether nothing is left."""
        return not (self.open or self.thin)


class Ledger:
    """Adds up what comes in; the standing is replaced in one go, so that Ctrl-C finds the old one or the new one.

    Parameters
    ----------
    tree
        What is counted.
    bound
        The most regions below a prefix of the tree.
    saved
        Where the count begins.
    """

    def __init__(self, tree: Tree, bound: LocalBound, saved: Saved) -> None:
        """Add up what is left."""
        self.bound, self._units = bound, tree.units
        self._most: Callable[[bytes], int] = bound
        empty = Standing(saved.totals)
        self.standing = self._moved(empty, Step(saved.totals, opened=saved.open, thinned=saved.thin))

    def after(self, task: Task, found: Found, seconds: float) -> tuple[Step, Standing]:
        """The step that a result is, and where the count stands after it."""
        came, went = {*found.open, *found.thin}, {*task.nodes, *task.thin}
        totals = self.standing.totals
        totals = totals._replace(
            regions=totals.regions + found.regions,
            tests=totals.tests + found.tests,
            borderline=totals.borderline + (len(found.thin) if task.nodes else 0),
            seconds=seconds,
        )
        step = Step(
            totals,
            closed=tuple(node for node in task.nodes if node not in came),
            opened=tuple(node for node in found.open if node not in went),
            settled=tuple(prefix for prefix in task.thin if prefix not in came),
            thinned=tuple(prefix for prefix in found.thin if prefix not in went),
        )
        standing = self._moved(self.standing, step)
        return Step(standing.totals, step.closed, step.opened, step.settled, step.thinned), standing

    def refine(self, most: Callable[[bytes], int], left: Sequence[bytes]) -> None:
        """Bound what is left, these prefixes, by another function from now on, which is nowhere larger; if these are not all, nothing changes."""
        old, regions = self.standing, self.standing.totals.regions
        if len(left) != old.open + old.thin or sum(map(self._most, left)) != old.above:
            return
        above = sum(map(most, left))
        upper = min(old.totals.upper, regions + above)
        self._check(regions, old.totals.lower, upper)
        self._most = most  # first: should Ctrl-C come between these two lines, what is left is bounded by too much
        self.standing = old._replace(above=above, totals=old.totals._replace(upper=upper))

    def _moved(self, old: Standing, step: Step) -> Standing:
        bound, whole = self._most, 1 << self._units
        opened, closed = step.opened, step.closed
        above = sum(bound(node.prefix) for node in opened) + sum(map(bound, step.thinned))
        above -= sum(bound(node.prefix) for node in closed) + sum(map(bound, step.settled))
        left = sum(whole >> node.splits for node in opened) + sum(whole >> len(prefix) for prefix in step.thinned)
        left -= sum(whole >> node.splits for node in closed) + sum(whole >> len(prefix) for prefix in step.settled)
        standing = Standing(
            step.totals,
            old.open + len(opened) - len(closed),
            old.thin + len(step.thinned) - len(step.settled),
            old.above + above,
            old.left + left,
        )
        regions = step.totals.regions
        lower = max(step.totals.lower, regions + standing.open)
        upper = min(step.totals.upper, regions + standing.above)
        self._check(regions, lower, upper)
        share = 1.0 if standing.finished else max(old.share, 1.0 - standing.left / whole, 1.0 - standing.above / bound(b""))
        return standing._replace(totals=step.totals._replace(lower=lower, upper=upper), share=share)

    @staticmethod
    def _check(regions: int, lower: int, upper: int) -> None:
        if lower > upper:
            msg = f"{regions} regions were counted, but at least {lower} and at most {upper} were proved: a fault of Tessella's, please report it"
            raise SolverError(msg)


@dataclass
class Run:
    """One run of a count, from where it stands until it is finished, stopped, or out of time."""

    tree: Tree  # what is counted
    ledger: Ledger  # where the count stands
    begun: float  # when the count began, moved back by the time of earlier runs
    deadline: float  # when to stop
    checkpoint: Checkpoint | None  # where steps are saved
    report: Callable[[], None]  # called every now and then
    interrupted: bool = False  # whether Ctrl-C ended it
    lost: str = ""  # why the executor could not go on; empty if it could
    _pool: list[Node] = field(default_factory=list[Node])
    _thin: list[bytes] = field(default_factory=list[bytes])
    _number: int = 0
    _came: int = 0
    _key: str = ""
    _reported: float = 0.0
    _torn: bool = False
    _beside: Beside | None = None
    _started: float = 0.0
    _given: Task | None = None

    def go(self, saved: Saved, workforce: Workforce) -> None:
        """Work off what is left, in threads of this process or in an executor; Ctrl-C ends it early, or the loss of an executor that brought something."""
        self._pool, self._thin = list(saved.open), list(saved.thin)
        here = Workers(self.ledger.bound)
        executor, workers, memory = workforce
        allowed = default_memory() if memory is None else memory
        if self.tree.bytes > allowed:
            raise TooLarge(self.tree.bytes, allowed)
        limited = memory is not None or (executor is None and worker_count(workers) * self.tree.bytes > allowed)
        most = _most_workers(here.size("", self.tree), allowed) if limited else math.inf

        def count() -> int:
            return int(min(worker_count(workers, executor), most))

        try:
            if executor is not None:
                self._key = self.tree.network.fingerprint + domain_digest(self.tree.domain)
                self._loop(Pending[Task](executor), None, count)
                return
            self._beside, self._started = Beside(self.tree, self.ledger.bound), meter.clock()
            with ThreadPoolExecutor(count()) as threads:
                self._loop(Pending[Task](threads), here, count)
        except KeyboardInterrupt:  # a second one, or between two steps
            self.interrupted = True

    def _loop(self, pending: Pending[Task], here: Workers | None, count: Callable[[], int]) -> None:
        try:
            while self._fill(pending, here, workers := count()):  # more may join a cluster meanwhile
                self._take(pending, _SHORT if len(pending.labels) < workers else _TICK)
                self._tell()
            self._refine(pending)
        except KeyboardInterrupt:
            self.interrupted = True
            self._drain(pending)
        except WorkerLost as error:
            self._drain(pending)
            self.lost = str(error)
            if not self._came:
                later = f"; the same call goes on from {self.checkpoint.path}" if self.checkpoint else ""
                raise WorkerLost(self.lost + later) from error
        finally:
            # Ctrl-C may come after a thread has begun what it was given, and before it is among those that are waited for
            for task in [*pending.labels, *([self._given] if self._given else [])]:
                task.stop.asked = True
            pending.cancel()

    def _fill(self, pending: Pending[Task], here: Workers | None, workers: int) -> bool:
        """Give work to idle workers, those of this process or, without any, of the executor; False if there is nothing to wait for."""
        while len(pending.labels) < workers and (self._pool or self._thin):
            now = meter.clock()
            if now >= self.deadline:
                break
            if self._beside and self._lists(now, pending.labels, workers):
                task = Task((), (), min(_SLICE, self.deadline - now), Stop(), now)
                pending.submit(task, self._beside.work, task.seconds, task.stop)
                continue
            task = self._given = self._next(now, pending.labels, workers, afar=here is None)
            if here:
                pending.submit(task, here.work, self._key, self.tree, task)
            else:
                self._number += 1
                pending.submit(task, work_afar, self._number, self._key, self.tree, task.nodes, task.thin, task.seconds)
        late = meter.clock() >= self.deadline
        idle = workers - len(pending.labels)
        for task in pending.labels:
            if late or (idle > 0 and meter.clock() - task.since > _SHORT):
                task.stop.asked = True
                idle -= 1
        if late:
            self._give_back(pending)
        return bool(pending.labels)

    def _lists(self, now: float, running: Sequence[Task], workers: int) -> bool:
        """Whether to list cells now; nobody else does."""
        alone = not any(not (task.nodes or task.thin) for task in running)
        return alone and self._beside is not None and self._beside.due(workers * (now - self._started))

    def _take(self, pending: Pending[Task], seconds: float) -> None:
        """Take in what workers bring back; one who listed cells brings nothing, but may be done with it."""
        came = pending.wait(seconds)
        for task, found in came:
            if found is not None:
                self._absorb(task, found)
        if self._beside and not self._beside.lists and any(found is None for _, found in came):
            self._refine(pending)

    def _give_back(self, pending: Pending[Task]) -> None:
        """Take back what no worker has begun."""
        for task in pending.cancel():
            self._pool += task.nodes
            self._thin += task.thin

    def _refine(self, pending: Pending[Task]) -> None:
        """Bound what is left by what is known of cells, unless somebody is changing that."""
        left = not self.ledger.standing.finished
        if left and self._beside and all(task.nodes or task.thin for task in pending.labels):
            nodes = [node for task in pending.labels for node in task.nodes] + self._pool
            thin = [prefix for task in pending.labels for prefix in task.thin] + self._thin
            self.ledger.refine(self._beside.known(), [*(node.prefix for node in nodes), *thin])
            if self.checkpoint:
                self.checkpoint.save(Step(self.ledger.standing.totals))

    def _next(self, now: float, running: Sequence[Task], workers: int, *, afar: bool) -> Task:
        """The next task: exact arithmetic keeps one worker busy while there are nodes to walk (if it is fast enough), then all."""
        spare = workers > 1 and self.tree.is_small and not any(task.thin for task in running)
        if self._thin and (spare or not self._pool):
            nodes, thin = (), _top(self._thin, min(_MOST_THIN, -(-len(self._thin) // workers)))
        else:
            nodes, thin = _top(self._pool, _share(self._pool, workers)), ()
        scarce = len(self._pool) + len(self._thin) < workers > 1
        longest = _SLICE if not afar else _SHORT_AFAR if scarce else _SLICE_AFAR
        return Task(nodes, thin, min(longest, self.deadline - now), Stop(), now)

    def _absorb(self, task: Task, found: Found) -> None:
        self._torn = True
        step, standing = self.ledger.after(task, found, meter.clock() - self.begun)
        if self.checkpoint:
            self.checkpoint.save(step)
        self.ledger.standing = standing
        self._came += 1
        self._pool += found.open
        self._thin += found.thin
        self._torn = False

    def _tell(self) -> None:
        now = meter.clock()
        if now - self._reported >= _TICK:
            self._reported = now
            self.report()

    def _drain(self, pending: Pending[Task]) -> None:
        """Take in what workers bring back when they are asked to stop.

        Not if Ctrl-C came while a step was taken in: nobody knows whether the checkpoint has it, and the next step would stand on it.
        """
        for task in pending.labels:
            task.stop.asked = True
        self._give_back(pending)
        end = meter.clock() + 2.0 * _SLICE_AFAR
        try:
            while pending.labels and meter.clock() < end and not self._torn:
                with suppress(WorkerLost):  # others may not be
                    self._take(pending, _TICK)
            if not self._torn:
                self._refine(pending)
        except (KeyboardInterrupt, SolverError):  # asked again, or the workers were interrupted themselves
            return


def _share(pool: Sequence[Node], workers: int) -> int:
    """How many nodes from the top one worker gets: all, or about a quarter of its part of the tree, so that the others get theirs."""
    if workers == 1:
        return min(len(pool), _MOST_NODES)
    enough = sum(0.5**node.splits for node in pool) / (4 * workers)
    got = 0.0
    for taken, node in enumerate(reversed(pool[-_MOST_NODES:]), start=1):
        got += 0.5**node.splits
        if got >= enough:
            return taken
    return min(len(pool), _MOST_NODES)


def _top(stack: list[_Item], size: int) -> tuple[_Item, ...]:
    """Take the top of a stack."""
    taken = tuple(stack[-size:])
    del stack[-size:]
    return taken


def _most_workers(size: int, memory: int) -> int:
    """How many workers of this size, in bytes, the memory holds."""
    if size > memory:
        raise TooLarge(size, memory)
    return memory // max(size, 1)
