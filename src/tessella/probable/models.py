"""MIPBound for any mixed-integer linear problem: how many assignments of its binary variables extend to a solution."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tessella.errors import OptionError
from tessella.executors import ExecutorLike, hiring
from tessella.formulation.model import Model
from tessella.kernel import meter
from tessella.network import Floats, Mask
from tessella.options import check_executor
from tessella.parallel import Workforce
from tessella.probable.lazy import SHORT, BySolver
from tessella.probable.networks import check_solver, fitting, repeated
from tessella.probable.result import MIPBound, Subject
from tessella.probable.run import check_progress, plan, standing
from tessella.progress import with_bar
from tessella.result import Counted, Status
from tessella.solvers.base import LazySolver, Solver, SolverStatus, without_objective
from tessella.solvers.reading import Problem, read_problem
from tessella.solvers.scip import SCIP

TOLERANCE = 1e-6
"""By which part of the sum of its terms (at least of 1) a solution may miss a row.  Whole numbers are exact."""


@with_bar(standing)
@hiring
def mipbound_model(  # noqa: PLR0913  one keyword per option
    source: Any,
    variables: Sequence[str] | None = None,
    *,
    parity_size: int = 3,
    confidence: float = 0.95,
    repetitions: int | None = None,
    seconds: float | None = None,
    rng: int | np.random.Generator = 0,
    executor: ExecutorLike | None = None,
    workers: int | None = None,
    solver: LazySolver | None = None,
    progress: Callable[[MIPBound], None] | bool | None = None,
) -> MIPBound:
    """Bound the number of assignments of binary variables that extend to a solution, from below and with a probability.

    Equations, whole numbers and continuous variables may take part; the objective does not.  Each solution that a solver offers is checked: with
    whole numbers in place of what is nearly so, no row may be missed by more than a millionth.

    Parameters
    ----------
    source
        A ``.mps``, ``.lp`` or ``.cip`` file, also with ``.gz``; or a `pyscipopt.Model`.
    variables
        The names of the binary variables to count on; None for all binary ones.
    parity_size, confidence, repetitions, seconds, rng, executor, progress
        As for `tessella.mipbound`.
    workers
        How many work at the same time; None for one, or as many as the executor has.
    solver
        Who searches; None for `tessella.SCIP`.

    Returns
    -------
    If the solver finds the problem infeasible, the count is 0, and so is the bound; the status says why.

    Examples
    --------
    >>> import tessella
    >>> from pyscipopt import Model
    >>> knapsack = Model("knapsack")
    >>> items = [knapsack.addVar(f"item_{i}", "B") for i in range(12)]
    >>> _ = knapsack.addCons(sum((i + 1) * item for i, item in enumerate(items)) <= 39)
    >>> tessella.mipbound_model(knapsack, parity_size=4).lower  # of 2,110
    257
    """
    begun = meter.clock()
    given, tell = {"workers": workers}, check_progress(progress)
    executor = check_executor(executor, "MIPBound")
    asked = plan(parity_size=parity_size, confidence=confidence, repetitions=repetitions, seconds=seconds, rng=rng, **given)
    chosen = SCIP() if solver is None else solver
    check_solver(chosen)
    problem = read_problem(source)
    columns = _columns(problem, variables)
    asked = fitting(asked, len(columns), chosen)
    subject = Subject(problem.name, len(columns), Counted.SOLUTIONS)
    answer = MIPBound(subject, asked.size, asked.confidence, (), method=type(chosen).__name__, seed=asked.entropy, least=0)
    job = Counting(without_objective(problem.model), columns, chosen)
    found, least = _first(problem, job, seconds)
    if found is not SolverStatus.OPTIMAL:
        status = Status.INFEASIBLE if found is SolverStatus.INFEASIBLE else Status.TIME_LIMIT
        return replace(answer, status=status, seconds=meter.clock() - begun)
    return repeated(replace(answer, least=least), job, asked, begun, Workforce(executor, workers), tell)


def _columns(problem: Problem, variables: Sequence[str] | None) -> tuple[int, ...]:
    """Where the variables to count on are; raises where they are unknown, or can be something else than 0 and 1."""
    binary = problem.binary
    if variables is None:
        if not binary.any():
            msg = f"{problem.name}: none of its {len(problem.names):,} variables is binary; there is nothing to count on"
            raise OptionError(msg)
        return tuple(np.flatnonzero(binary).tolist())
    if isinstance(variables, str) or not len(variables):
        msg = f"variables is {variables!r:.60}; give a list with the names of binary variables, or None for all of them"
        raise OptionError(msg)
    places = {name: place for place, name in enumerate(problem.names)}
    for name in variables:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            msg = f"variables holds a {type(name).__name__}; give the names of binary variables"
            raise OptionError(msg)
        if name not in places:
            some = ", ".join(problem.names[place] for place in np.flatnonzero(binary)[:5]) or "none"
            msg = f"{problem.name}: has no variable {name!r:.60}; its binary ones begin with {some}"
            raise OptionError(msg)
        if not binary[places[name]]:
            msg = f"{problem.name}: variable {name!r:.60} is not binary, but counting needs variables that are 0 or 1"
            raise OptionError(msg)
    if len(set(variables)) < len(variables):
        msg = f"variables names {next(name for name in variables if list(variables).count(name) > 1)!r:.60} twice; name each once"
        raise OptionError(msg)
    return tuple(places[name] for name in variables)


def _first(problem: Problem, job: "Counting", seconds: float | None) -> tuple[SolverStatus, int]:
    """Whether there is a solution, and how many are certain; raises if the objective has no end: mostly a bound was forgotten."""
    found, least = job.finder.solve(job.model, seconds=seconds), 0
    if found.status is SolverStatus.OPTIMAL and found.values is not None:
        endless = ((problem.model.lower == -np.inf) | (problem.model.upper == np.inf)) & (problem.model.objective != 0.0)
        if endless.any():
            whole = job.finder.solve(problem.model, seconds=seconds, relaxed=True)
            if whole.status is SolverStatus.UNBOUNDED:
                name = problem.names[int(np.argmax(endless))]
                msg = (
                    f"{problem.name}: is unbounded, its objective can be as good as one likes; is a bound missing "
                    f"(of {name!r:.60}, say)? Counting ignores the objective: if that is right as it is, take the objective out"
                )
                raise OptionError(msg)
        least = int(Confirmation(job)(found.values[list(job.columns)] > 0.5, found.values))
    return found.status, least


@dataclass(frozen=True, slots=True)
class Counting(BySolver):
    """Repetitions by a solver on a problem."""

    model: Model  # the problem
    columns: tuple[int, ...]  # the columns to count on
    solver: LazySolver  # who searches
    derived: int = SHORT  # see `tessella.probable.lazy.Cuts`

    @property
    def finder(self) -> Solver:
        """The same solver, or SCIP, for single solutions."""
        return self.solver if hasattr(self.solver, "solve") else SCIP()  # pyright: ignore[reportReturnType]

    @property
    def key(self) -> str:
        """The same for the same problem, columns and solver."""
        model, digest = self.model, hashlib.blake2b(digest_size=16)
        parts = (model.lower, model.upper, model.integer, model.row_lower, model.row_upper)
        for part in (*parts, model.rows.data, model.rows.indices, model.rows.indptr, np.array(self.columns)):
            digest.update(np.ascontiguousarray(part).tobytes())
        return f"{self.solver!r} {digest.hexdigest()}"

    def confirmation(self) -> "Confirmation":
        """Says whether assignments extend to solutions."""
        return Confirmation(self)


class Confirmation:
    """Says whether assignments extend to solutions, whatever tolerances the solver has for whole numbers.

    Parameters
    ----------
    job
        The problem, and the columns that are assigned.
    """

    def __init__(self, job: Counting) -> None:
        """Remember what rows are relative to."""
        self._job, self._sizes = job, abs(job.model.rows)

    def __call__(self, states: Mask, values: Floats) -> bool:
        """Whether an assignment is one: with all whole numbers rounded the solution is one, or others in its place are."""
        model, whole = self._job.model, self._job.model.integer
        point = np.clip(np.where(whole, np.round(values), values), model.lower, model.upper)
        point[list(self._job.columns)] = states
        if self._is_solution(point):
            return True
        if not whole.all() and self._extends(point, whole):
            return True
        chosen = np.zeros(len(whole), dtype=np.bool_)
        chosen[list(self._job.columns)] = True
        return bool((whole & ~chosen).any()) and self._extends(point, chosen)

    def _extends(self, point: Floats, fixed: Mask) -> bool:
        """Whether the other columns can be chosen so that all is well."""
        model, finder = self._job.model, self._job.finder
        lower, upper = np.where(fixed, point, model.lower), np.where(fixed, point, model.upper)
        found = finder.solve(replace(model, lower=lower, upper=upper), relaxed=bool(fixed[model.integer].all()))
        if found.values is None:
            return False
        values = np.clip(np.where(model.integer, np.round(found.values), found.values), lower, upper)
        return self._is_solution(values)

    def _is_solution(self, point: Floats) -> bool:
        model = self._job.model
        sums, sizes = np.asarray(model.rows @ point), np.asarray(self._sizes @ np.abs(point))
        allowed = TOLERANCE * np.maximum(sizes, 1.0)
        inside = (point >= model.lower).all() and (point <= model.upper).all()
        return bool(inside and (sums >= model.row_lower - allowed).all() and (sums <= model.row_upper + allowed).all())
