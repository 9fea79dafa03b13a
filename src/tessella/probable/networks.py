"""MIPBound for networks: how many regions there are, at least, with a probability."""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tessella.counting.by_milp import POSITIVE, of_size_one
from tessella.counting.checkpoint import domain_digest
from tessella.domain import Box, Domain
from tessella.door import DomainLike, NetworkLike, enter
from tessella.errors import OptionError
from tessella.executors import ExecutorLike, hiring
from tessella.formulation import Model, formulate
from tessella.kernel import meter
from tessella.methods import Method
from tessella.network import Floats, Mask, Network
from tessella.options import check_executor
from tessella.parallel import Workforce, worker_count
from tessella.partition.tree import Tree
from tessella.partition.witness import Proof, walls
from tessella.preactivation import PreactivationBounds
from tessella.probable.lazy import SHORT, BySolver, Confirm
from tessella.probable.result import MIPBound, Subject
from tessella.probable.run import Job, Plan, Run, Worker, check_progress, plan, standing
from tessella.probable.search import Outcome, Seeker
from tessella.progress import with_bar
from tessella.result import Status
from tessella.solvers.base import LazySolver
from tessella.stability import Stability, check_stability, stability_to_go_on_with
from tessella.unbounded import as_bounded
from tessella.upper.empirical import empirical

if TYPE_CHECKING:
    from tessella.kernel.functions import Apart

MOST_AS_ROWS = 12
"""The largest parity constraints that become rows of a model: 2,048 of them."""


@with_bar(standing)
@hiring
def mipbound(  # noqa: PLR0913  one keyword per option
    network: NetworkLike,
    domain: DomainLike,
    *,
    parity_size: int = 3,
    confidence: float = 0.95,
    repetitions: int | None = None,
    seconds: float | None = None,
    stability: Stability | None = None,
    rng: int | np.random.Generator = 0,
    executor: ExecutorLike | None = None,
    workers: int | None = None,
    solver: LazySolver | None = None,
    progress: Callable[[MIPBound], None] | bool | None = None,
) -> MIPBound:
    """Bound the number of regions of a network on a domain from below, with a probability (Algorithm 1 of the paper).

    Random parity constraints on the states of unstable units are added until no region is left, again and again.  How many it takes says
    with which probability there are more than 2**j regions.  The same seed gives the same answer, whoever works.

    Parameters
    ----------
    network, domain
        Of what, and where: what `tessella.load` takes, and a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.
    parity_size
        How many units a constraint has; k in XOR-k.  Larger ones give better bounds, up to about half of the unstable units; where there are fewer
        units, a constraint has them all.
    confidence
        The probability with which the bound shall hold.
    repetitions
        How many; None for as many as the paper has (28, with which 99.5 % can be reached; more if the confidence needs them), or with
        ``seconds`` as many as there is time for, at most 1,000.
    seconds
        Stop after this time, with what is known by then; None for no limit.  The number of repetitions then depends on how long they take, which
        the probabilities do not know of: choose ``repetitions`` where that matters.
    stability
        The units that never change their state on the domain, if they are known; else they are found by exact ranges (by linear
        bounds for networks of many thousand weights).
    rng
        A seed, or a generator.
    executor
        Any `concurrent.futures.Executor`, a Dask client, or the address of a Dask scheduler; None for threads of this process.
    workers
        How many work at the same time; None for all cores (one for a solver), or as many as the executor has.
    solver
        None for a search of our own.  `tessella.SCIP`, `Gurobi` and `HiGHS` solve the paper's formulation instead, with constraints added while they
        search; they miss regions in which no input gives all active units a millionth of their range.
    progress
        Called after each repetition with the bound so far; True for a bar on a terminal or in a notebook.

    Examples
    --------
    >>> import numpy as np
    >>> import tessella
    >>> rng = np.random.default_rng(0)
    >>> net = tessella.Network.from_arrays([(rng.normal(size=(8, 4)), rng.normal(size=8)), (rng.normal(size=(4, 8)), None)], relu_output=True)
    >>> found = tessella.mipbound(net, tessella.Box(-1, 1, dim=4))
    >>> found.lower, found.repetitions, found.feasible_after[:4]
    (33, 28, (28, 28, 28, 28))
    """
    begun, compiled = meter.clock(), meter.compile_seconds()
    network, domain = enter(network, domain)
    given, tell = {"workers": workers}, check_progress(progress)
    executor = check_executor(executor, "MIPBound")
    asked = plan(parity_size=parity_size, confidence=confidence, repetitions=repetitions, seconds=seconds, rng=rng, **given)
    check_solver(solver)
    check_stability(stability, network, domain, "MIPBound")
    hurry = 10.0 if seconds is None else min(10.0, seconds / (4.0 * max(network.relus, 1)))
    found = stability or _ranges(network, domain, hurry, executor, workers)
    most = empirical(network, domain, found).value
    if solver is not None and not domain.bounded:  # a solver needs finite ranges
        found = _ranges(*as_bounded(network, domain), hurry, executor, workers)
    tree = Tree.of(found)
    asked = fitting(asked, tree.units, solver)
    subject = Subject(f"{network.shape} on {domain.describe()}", tree.units, network.counted, network, domain)
    answer = MIPBound(
        subject,
        asked.size,
        asked.confidence,
        (),
        method="search" if solver is None else type(solver).__name__,
        epsilon=0.0 if solver is None else POSITIVE,
        seed=asked.entropy,
        empirical=most,
    )
    if not tree.units or not domain.free_dim:
        return replace(answer, seconds=meter.clock() - begun)  # one region, and nothing to draw from
    job = Searching.of(found) if solver is None else _solving(found, tree, solver)
    answer = repeated(answer, job, asked, begun, Workforce(executor, workers), tell)
    return replace(answer, compile_seconds=meter.compile_seconds() - compiled)


def repeated(  # noqa: PLR0913, PLR0917  what was asked
    answer: MIPBound,
    job: Job,
    asked: Plan,
    begun: float,
    workforce: Workforce,
    progress: Callable[[MIPBound], None] | None,
) -> MIPBound:
    """Do the repetitions of a plan, and fill in what an answer still lacks."""

    def current(outcomes: list[Outcome], status: Status) -> MIPBound:
        return replace(
            answer,
            draws=tuple(outcome.draws for outcome in outcomes),
            unconfirmed=sum(outcome.unconfirmed for outcome in outcomes),
            given_up=sum(outcome.given_up for outcome in outcomes),
            seconds=meter.clock() - begun,
            status=status,
        )

    def changed(outcomes: list[Outcome]) -> None:
        if progress is not None:
            progress(current(outcomes, Status.RUNNING))

    run = Run(job, asked, begun + (math.inf if asked.seconds is None else asked.seconds), changed)
    run.go(workforce.executor, workforce.workers)
    return current(run.outcomes, run.status)


def tails(found: Stability) -> Iterator[Tree]:
    """The last layers as networks of their own, fewest first; their inputs are all that the bounds allow.  None without finite bounds."""
    network, bounds = found.network, found.bounds
    if not found.domain.bounded:
        return
    for number in range(len(network.layers) - 1, 0, -1):
        box = Box(*bounds.outputs(network, number - 1))
        own = PreactivationBounds(bounds.lower[number:], bounds.upper[number:], bounds.method)
        tail = Tree.of(Stability(replace(network, layers=network.layers[number:], source=None), box, own))
        if tail.units and box.free_dim:
            yield tail


@dataclass(frozen=True, slots=True)
class Searching:
    """Repetitions by our own search."""

    tree: Tree  # where
    tails: tuple[Tree, ...] = ()  # see `tails`

    @classmethod
    def of(cls, found: Stability) -> "Searching":
        """A network's."""
        return cls(Tree.of(found), tuple(tails(found)))

    @property
    def key(self) -> str:
        """The same for the same network on the same domain."""
        return "search" + self.tree.network.fingerprint + domain_digest(self.tree.domain)

    @property
    def threads(self) -> int:
        """All cores: compiled code lets threads run side by side."""
        return worker_count(None)

    @property
    def functions(self) -> "tuple[Apart, ...]":
        """What the searches of the tree and of the tails call, which need not be the same, and linear programs over boxes for what is thin."""
        from tessella.counting.search import Search  # noqa: PLC0415  loads the compiler
        from tessella.kernel.program import Program  # noqa: PLC0415

        searches = (function for tree in (self.tree, *self.tails) for function in Search.functions(tree))
        return tuple(dict.fromkeys((*Program.functions, *searches)))

    def worker(self) -> Worker:
        """Somebody to search."""
        return Seeker(self.tree, self.tails)


@dataclass(frozen=True, slots=True)
class Solving(BySolver):
    """Repetitions by a solver on the formulation of a network."""

    tree: Tree  # the network without its stable units, on which regions are confirmed
    model: Model  # the formulation
    columns: tuple[int, ...]  # its binary columns, one per unit of the tree
    solver: LazySolver  # who solves it
    derived: int = SHORT  # see `tessella.probable.lazy.Cuts`

    @property
    def key(self) -> str:
        """The same for the same network on the same domain, and solver."""
        return f"{self.solver!r} {self.derived} {self.tree.network.fingerprint} {domain_digest(self.tree.domain)}"

    @property
    def functions(self) -> "tuple[Apart, ...]":
        """What looks for a point of a region calls linear programs over boxes."""
        from tessella.kernel.program import Program  # noqa: PLC0415  loads the compiler

        return Program.functions

    def confirmation(self) -> Confirm:
        """Says whether a pattern is that of a region."""
        return _Confirmation(self.tree)


class _Confirmation:
    def __init__(self, tree: Tree) -> None:
        self._network, self._prove = tree.network, Proof(tree.network, tree.domain)

    def __call__(self, states: Mask, _: Floats) -> bool:
        proved = self._prove(states, *walls(self._network, states))
        return proved is not None and np.array_equal(proved[0], states)


def _solving(found: Stability, tree: Tree, solver: LazySolver) -> Solving:
    """The formulation, scaled so that ranges are about 1, with active units asked to be active by a part of their range."""
    formulation = formulate(*of_size_one(found.network, found.domain, found.bounds))
    lower = formulation.model.lower.copy()
    lower[formulation.positivity] = POSITIVE
    model = replace(formulation.model, lower=lower)
    return Solving(tree, model, tuple(formulation.binary_columns.tolist()), solver)


def _ranges(network: Network, domain: Domain, seconds: float, executor: Executor | None, workers: int | None) -> Stability:
    """Exact ranges of all units, as the paper has them; linear ones where that would take minutes."""
    method = Method.MILP if domain.bounded and Tree(network, domain).is_small else Method.LINEAR
    if executor is not None:
        return stability_to_go_on_with(network, domain, method=method, seconds_per_unit=seconds, executor=executor)
    with ThreadPoolExecutor(worker_count(workers)) as threads:
        return stability_to_go_on_with(network, domain, method=method, seconds_per_unit=seconds, executor=threads)


def check_solver(solver: object) -> None:
    """Raise unless this is a solver to which rows can be added."""
    if solver is not None and (isinstance(solver, type) or not isinstance(solver, LazySolver)):
        msg = f"solver is {solver!r:.60}; give tessella.SCIP(), tessella.Gurobi() or tessella.HiGHS(), or None for our own search"
        raise OptionError(msg)


def fitting(asked: Plan, variables: int, solver: object) -> Plan:
    """A plan whose constraints have as many variables as there are; raises if a solver could not take them as rows."""
    size = min(asked.size, max(variables, 1))
    if solver is not None and size > MOST_AS_ROWS:
        msg = (
            f"parity_size is {size}, which would take 2**{size - 1} rows for each constraint; "
            f"with a solver it can be at most {MOST_AS_ROWS}"
        )
        raise OptionError(msg)
    return replace(asked, size=size)
