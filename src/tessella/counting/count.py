"""The number of regions: exactly, or between two proved bounds that meet if there is time enough."""

import math
import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from tessella import options
from tessella.answer import Answer, past
from tessella.counting.checkpoint import Checkpoint, Saved, Step, Totals
from tessella.counting.schedule import Ledger, Run, prepare
from tessella.domain import Domain
from tessella.door import DomainLike, NetworkLike, enter
from tessella.errors import OptionError
from tessella.executors import ExecutorLike, hiring
from tessella.kernel import meter
from tessella.methods import CountMethod, Method
from tessella.network import Network
from tessella.parallel import Workforce, say_lost
from tessella.partition.local import LocalBound
from tessella.partition.tree import Node, Tree
from tessella.progress import with_bar
from tessella.result import Bound, Side, Status, claims, format_count, format_number, maps, told
from tessella.stability import Stability, check_stability
from tessella.stability import stability as find_stability
from tessella.upper.empirical import empirical

_WHO = "a count"
_QUICK = 0.3  # part of the time that linear bounds of units may take


@dataclass(frozen=True, slots=True)
class CountProgress:
    """Where a count stands while it runs.

    Parameters
    ----------
    lower, upper
        The bounds proved so far; lower only grows, upper only falls.
    regions_per_second
        How fast regions are counted.
    share
        About which part of the tree is done, from 0 to 1: by taking each side of a unit for half of it, or by the most regions that there can be in what is left.
    seconds
        Wall time spent, in earlier runs of the same checkpoint too.
    expected
        Log2 of about how many regions there are, if an estimate said so.  A count does not know: its tree is much deeper in some parts than in others.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import tessella
    >>> now = tessella.CountProgress(lower=1000, upper=10**9, regions_per_second=1000.0, share=0.9, seconds=1.0)
    >>> now.seconds_left, replace(now, expected=20.0).seconds_left
    (None, 1047.576)
    """

    lower: int
    upper: int
    regions_per_second: float
    share: float
    seconds: float
    expected: float | None = None

    @property
    def seconds_left(self) -> float | None:
        """How long it would take to count what is left of the regions that are expected, at this speed; None if nobody knows."""
        if self.lower == self.upper:
            return 0.0
        if self.expected is None or self.expected <= maps(self.lower) or not self.regions_per_second > 0.0:
            return None
        return (2.0**self.expected - self.lower) / self.regions_per_second if self.expected < 1000.0 else math.inf


@dataclass(frozen=True, slots=True)
class Count(Answer):
    """How many full-dimensional regions a network has on a domain.

    It is exact if `lower` and `upper` are equal; a count that was stopped has proved all the same that there are no fewer and no more.

    Parameters
    ----------
    network, domain
        Of what, and where.
    lower, upper
        Proved bounds, both exact integers; they meet when the count is finished.  Only with ``"milp"`` the upper one, once finished, is
        the solver's word: a solver does not see regions that are thinner than its tolerances.
    borderline
        How many cells were so thin that only exact arithmetic could decide whether they are there.
    tests
        How many linear programs (or cuts of cells) it took; unlike the answer, this depends on who worked when.
    seconds
        Wall time spent, in earlier runs of the same checkpoint too, without compiling.
    method
        How it was counted.
    status
        Why it ended.
    share
        About which part of the tree was done, from 0 to 1.
    compile_seconds
        Wall time that went by while code was compiled, once per machine, or loaded.
    """

    network: Network
    domain: Domain
    lower: int
    upper: int
    borderline: int = 0
    tests: int = 0
    seconds: float = 0.0
    method: CountMethod = CountMethod.WALK
    status: Status = Status.FINISHED
    share: float = 1.0
    compile_seconds: float = 0.0

    @property
    def exact(self) -> int | None:
        """The number of regions; None while the bounds differ."""
        return self.lower if self.lower == self.upper else None

    @property
    def proved(self) -> bool:
        """Whether both bounds are proved."""
        return self.method is CountMethod.WALK or self.status is not Status.FINISHED

    @property
    def maps(self) -> float:
        """Log2 of the count if it is known exactly, else of the lower bound."""
        return maps(self.lower)

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Each a claim of its own: one if the count is exact and proved, else a lower and an upper one (or a solver's estimate)."""
        ends = [(self.lower, Side.LOWER, 1.0), (self.upper, Side.UPPER, 1.0)]
        if self.exact is not None:
            ends = [(self.exact, Side.EXACT, 1.0)] if self.proved else [ends[0], (self.exact, Side.ESTIMATE, 0.0)]
        counted, method = self.network.counted, self.method
        return tuple(Bound(value, side, counted, method, sure, self.seconds) for value, side, sure in ends)

    def __repr__(self) -> str:
        """One line a person can read."""
        where = f"of {self.network.shape} on {self.domain.describe()}"
        time = f"{self.seconds:.2f} s" if self.seconds < 10.0 else f"{self.seconds:,.0f} s"
        if self.exact is None:
            ends = f"{format_count(self.lower, Side.LOWER)} and {format_count(self.upper, Side.UPPER)}"
            return f"Count(between {ends} regions, {where}, stopped after {time})"
        sure = "exactly" if self.proved else "at least, and as far as a solver sees exactly,"
        return f"Count({sure} {format_number(self.exact, 'regions')}, {where}, {time})"

    def rows(self) -> list[dict[str, Any]]:
        """The bounds, or the count if it is exact."""
        return claims(self.bounds)

    def _title(self) -> str:
        return f"Regions of {self.network.shape} on {self.domain.describe()}, {self.seconds:.2f} s"

    def _note(self) -> str:
        return "" if self.exact is not None else f"About {100.0 * self.share:.2g} % of the tree is done ({self.status})."

    def _record(self) -> dict[str, Any]:
        return {
            **past(self.network, self.domain),
            **told(self, "lower", "upper", "exact", "proved", "maps"),
            **told(self, "method", "status", "share", "borderline", "tests", "seconds", "compile_seconds"),
            "bounds": [bound.to_dict() for bound in self.bounds],
        }


def _line(now: CountProgress) -> tuple[str, float | None]:
    ends = f"{format_count(now.lower, Side.LOWER)} to {format_count(now.upper, Side.UPPER)}"
    return f"{ends} regions", now.share


@with_bar(_line)
@hiring
def count(  # noqa: PLR0913  one keyword per option
    network: NetworkLike,
    domain: DomainLike,
    *,
    seconds: float | None = None,
    memory: int | None = None,
    executor: ExecutorLike | None = None,
    workers: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Callable[[CountProgress], None] | bool | None = None,
    stability: Stability | None = None,
    method: CountMethod | str = CountMethod.WALK,
) -> Count:
    """Count the full-dimensional regions of a network on a domain.

    The answer is exact, or a bracket of proved bounds if the time limit or Ctrl-C ended the count early.  It does not depend on the
    number of workers.

    Parameters
    ----------
    network, domain
        Of what, and where: what `tessella.load` takes, and a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.
    seconds
        Stop after this time, with the bounds proved so far; None for no limit.  Compiling, once per machine, does not count.
    memory
        Bytes that the workers may hold together: fewer of them are used if all would need more.  None for a quarter of the machine's.
    executor
        Any `concurrent.futures.Executor`, a Dask client, or the address of a Dask scheduler; None for threads of this process.
    workers
        How many work at the same time; None for all cores, or as many as the executor has.
    checkpoint
        A file that keeps what is finished, whatever ends the program.  If it is there, the count goes on from where it stood.
    progress
        Called about five times a second with a `CountProgress`; True for a bar on a terminal or in a notebook.
    stability
        The units that never change their state on the domain, if they are known; else they are found by linear bounds.
    method
        ``"walk"``; or ``"milp"``, the paper's: all solutions of a mixed-integer program.  It is slower by orders of magnitude and its
        end rests on the solver's word, but it is another way to the same number.

    Examples
    --------
    >>> import tessella
    >>> net = tessella.Network.from_arrays([([[1.0], [-1.0]], [0.5, 0.5]), ([[1.0, 1.0]], [-1.5])], relu_output=True)
    >>> tessella.count(net, tessella.Box(-2, 2, dim=1)).exact
    5
    """
    begun, compiled = meter.clock(), meter.compile_seconds()
    network, domain = enter(network, domain)
    chosen = options.chosen(CountMethod, method, "method", _WHO)
    options.check_seconds(seconds, _WHO)
    options.check_memory(memory, _WHO)
    options.check_workers(workers, _WHO)
    executor = options.check_executor(executor, _WHO)
    tell = options.check_progress(progress, _WHO, "one CountProgress")
    if chosen is CountMethod.MILP and not (memory is executor is workers is checkpoint is None):
        given = {"memory": memory, "executor": executor, "workers": workers, "checkpoint": checkpoint}
        names = ", ".join(name for name, value in given.items() if value is not None)
        msg = f"method 'milp' takes no {names}; leave that out, or use method 'walk'"
        raise OptionError(msg)
    check_stability(stability, network, domain, _WHO)
    clock = _Clock(begun, begun + (math.inf if seconds is None else min(seconds, 1e9)), tell)
    with nullcontext() if checkpoint is None else Checkpoint(checkpoint, network, domain) as file:
        saved = file.load() if file and file.begun else None
        if saved and not (saved.open or saved.thin):
            return _made(network, domain, chosen, Status.FINISHED, saved.totals, 1.0)
        # a checkpoint goes on only with the same units
        allowed = None if seconds is None or file else _QUICK * seconds
        found = stability or find_stability(network, domain, method=Method.LINEAR, seconds=allowed)
        most = empirical(network, domain, found).value
        if stability is None and found.bounds.interrupted:
            totals = Totals(0, 0, 0, meter.clock() - begun, 1, most)
            return _made(network, domain, chosen, Status.INTERRUPTED, totals, 0.0)
        if chosen is CountMethod.MILP:
            ended = _by_milp(Tree.of(found), most, clock)
        else:
            ended = _by_walk(Tree.of(found), most, clock, file, saved, Workforce(executor, workers, memory))
        return replace(_made(network, domain, chosen, *ended), compile_seconds=meter.compile_seconds() - compiled)


@dataclass(slots=True)
class _Clock:
    """When a count began and must end, and who is told meanwhile."""

    begun: float
    deadline: float
    progress: Callable[[CountProgress], None] | None

    def seconds(self) -> float:
        return meter.clock() - self.begun


_End = tuple[Status, Totals, float]


def _by_walk(  # noqa: PLR0913, PLR0917  what `count` was asked
    tree: Tree,
    most: int,
    clock: _Clock,
    file: Checkpoint | None,
    saved: Saved | None,
    workforce: Workforce,
) -> _End:
    bound = LocalBound(tree)
    if saved is None:
        saved = _beginning(tree, min(most, bound(b"")))
        if file:
            file.begin(tree, Step(saved.totals, opened=saved.open))
    elif file:
        file.check(tree)
    start, regions = meter.clock(), saved.totals.regions
    clock.begun -= saved.totals.seconds  # earlier runs count
    ledger = Ledger(tree, bound, saved)

    def report() -> None:
        if clock.progress:
            totals = ledger.standing.totals
            rate = (totals.regions - regions) / max(meter.clock() - start, 1e-9)
            clock.progress(CountProgress(totals.lower, totals.upper, rate, ledger.standing.share, clock.seconds()))

    try:
        if workforce.executor is None and not ledger.standing.finished:
            prepare(tree)
    except KeyboardInterrupt:
        return Status.INTERRUPTED, ledger.standing.totals._replace(seconds=clock.seconds()), ledger.standing.share
    run = Run(tree, ledger, clock.begun, clock.deadline, file, report)
    if not ledger.standing.finished:
        run.go(saved, workforce)
    if not run.interrupted:
        report()
    standing = ledger.standing
    met = standing.totals.lower == standing.totals.upper
    status = Status.FINISHED if met else _early(run, file)
    return status, standing.totals._replace(seconds=clock.seconds()), standing.share


def _early(run: Run, file: Checkpoint | None) -> Status:
    """Why a run ended before the count was exact; a loss is told, too."""
    if run.interrupted:
        return Status.INTERRUPTED
    if not run.lost:
        return Status.TIME_LIMIT
    later = f"the same call goes on from {file.path}" if file else "with a checkpoint the same call could go on later"
    say_lost(f"{run.lost}; the count so far is returned, and {later}")
    return Status.LOST


def _beginning(tree: Tree, most: int) -> Saved:
    """The whole tree is open; without an unstable unit, or without a free input, there is nothing to walk."""
    if not tree.units or not tree.domain.free_dim:
        return Saved((), (), Totals(1, 0, 0, 0.0, 1, 1))
    return Saved((Node(),), (), Totals(0, 0, 0, 0.0, 1, most))


def _by_milp(tree: Tree, most: int, clock: _Clock) -> _End:
    from tessella.counting.by_milp import count_by_milp  # noqa: PLC0415  loads a solver

    if not tree.units or not tree.domain.free_dim:
        return Status.FINISHED, Totals(1, 0, 0, clock.seconds(), 1, 1), 1.0
    lower = 1

    def found_so_far(regions: int) -> None:
        nonlocal lower
        lower = max(lower, regions)
        if clock.progress:
            seconds = clock.seconds()
            clock.progress(CountProgress(lower, most, regions / max(seconds, 1e-9), 0.0, seconds))

    left = clock.deadline - meter.clock()
    try:
        regions, finished = count_by_milp(tree, seconds=None if math.isinf(left) else max(left, 1e-3), on_found=found_so_far)
    except KeyboardInterrupt:
        return Status.INTERRUPTED, Totals(lower, 0, 0, clock.seconds(), lower, most), 0.0
    lower = max(lower, regions)
    early = meter.clock() < clock.deadline - 0.1  # then it was Ctrl-C, which the solver takes itself
    status = Status.FINISHED if finished else Status.INTERRUPTED if early else Status.TIME_LIMIT
    return status, Totals(regions, 0, 0, clock.seconds(), lower, lower if finished else most), float(finished)


def _made(  # noqa: PLR0913, PLR0917  the parts of a result
    network: Network, domain: Domain, method: CountMethod, status: Status, totals: Totals, share: float
) -> Count:
    return Count(
        network,
        domain,
        totals.lower,
        totals.upper,
        totals.borderline,
        totals.tests,
        totals.seconds,
        method,
        status,
        share,
    )
