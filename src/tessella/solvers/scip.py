"""SCIP, through its package pyscipopt."""

import math
import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tessella.errors import OptionError, SolverError
from tessella.formulation.model import Model
from tessella.network import Floats
from tessella.options import check_seconds
from tessella.solvers import base
from tessella.solvers.base import Cut, Solution, SolverStatus

_STATUSES = {
    "optimal": SolverStatus.OPTIMAL,
    "infeasible": SolverStatus.INFEASIBLE,
    "unbounded": SolverStatus.UNBOUNDED,
    "timelimit": SolverStatus.STOPPED,
    "memlimit": SolverStatus.STOPPED,
}

_ALL_SOLUTIONS: dict[str, object] = {
    # reductions that keep one best solution, but not all solutions
    "misc/allowstrongdualreds": False,
    "misc/allowweakdualreds": False,
    "misc/usesymmetry": 0,
    "presolving/maxrestarts": 0,
    # depth first, for memory; plain branching, because there is nothing to learn about an objective
    "nodeselection/dfs/stdpriority": 1_000_000,
    "branching/mostinf/priority": 1_000_000,
    "conflict/enable": False,
}

_LAZY: dict[str, object] = {name: value for name, value in _ALL_SOLUTIONS.items() if name.startswith(("misc/", "presolving/"))}


@dataclass(frozen=True, slots=True)
class SCIP:
    """The solver SCIP; free, and part of the installation.

    Parameters
    ----------
    threads
        How many threads its linear solver may use; the search itself has one.
    seed
        Shifts SCIP's own random numbers, from 0.
    feasibility
        By how much rows and whole numbers may be missed.
    """

    threads: int = 1
    seed: int = 0
    feasibility: float = base.FEASIBILITY

    def __post_init__(self) -> None:
        """Check the settings."""
        base.check_options(self.threads, self.feasibility)
        if not 0 <= self.seed < 2**31:
            msg = f"the seed must lie between 0 and 2**31 - 1, got {self.seed!r}"
            raise OptionError(msg)

    def solve(self, model: Model, *, seconds: float | None = None, relaxed: bool = False) -> Solution:
        """Solve a problem; see `Solver.solve`."""
        check_seconds(seconds, "a solver")
        start = time.perf_counter()
        pyscipopt = base.package("pyscipopt", "SCIP")
        with base.failures("SCIP"):
            solver = pyscipopt.Model(model.name)
            self._set(solver, seconds)
            variables = _load(pyscipopt, solver, model, relaxed=relaxed)
            solver.optimizeNogil()
            text = str(solver.getStatus())
            if text == "userinterrupt":
                raise KeyboardInterrupt
            status = base.settled(self, model, seconds, relaxed=relaxed) if text == "inforunbd" else _STATUSES.get(text)
            if status is None:
                msg = f"SCIP ended with {text!r}; try another solver"
                raise SolverError(msg)
            if status in {SolverStatus.INFEASIBLE, SolverStatus.UNBOUNDED} or text == "inforunbd":
                return Solution(status, seconds=time.perf_counter() - start)
            return _read(solver, variables, model, status, start)

    def assignments(
        self, model: Model, columns: Sequence[int], visit: Callable[[Floats], None], *, seconds: float | None = None
    ) -> bool:
        """Visit one solution for every feasible assignment of some binary columns, in one search; the objective is ignored.

        Parameters
        ----------
        model
            The problem.
        columns
            The binary columns; all integer columns of the problem.
        visit
            Called with each solution.  What it raises ends the search.
        seconds
            Stop after this wall time; None to go on to the end.

        Returns
        -------
        Whether the search came to its end, and was not stopped by the time limit or by Ctrl-C.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> two = csr_array([[1.0, 1.0]])
        >>> model = Model(("x", "z"), [0, 0], [1, 1], [True, True], [0, 0], two, ("r",), [1], [2])
        >>> found = []
        >>> SCIP().assignments(model, [0, 1], lambda values: found.append(values.round().tolist())), sorted(found)
        (True, [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        """
        check_seconds(seconds, "a solver")
        if sorted(columns) != np.flatnonzero(model.integer).tolist():
            msg = (
                f"{len(columns)} columns were named, but the problem has {int(model.integer.sum())} integer ones; name just these"
            )
            raise OptionError(msg)
        pyscipopt = base.package("pyscipopt", "SCIP")
        with base.failures("SCIP"):
            solver = pyscipopt.Model(model.name)
            self._set(solver, seconds)
            solver.setHeuristics(pyscipopt.SCIP_PARAMSETTING.OFF)
            solver.setSeparating(pyscipopt.SCIP_PARAMSETTING.OFF)
            solver.setParams({**_ALL_SOLUTIONS, "misc/catchctrlc": False})  # SCIP's handler prints
            variables = _load(pyscipopt, solver, model.with_objective(np.zeros(len(model.names)), maximize=False), relaxed=False)
            search = _Search(variables, columns, visit)
            last = {"enfopriority": -9_999_990, "chckpriority": -9_999_990}  # after all others, so that what it sees is feasible
            solver.includeConshdlr(search.handler(pyscipopt), "all", "takes every solution", needscons=False, **last)
            with _noting(search.pressed):
                solver.optimizeNogil()
            text = str(solver.getStatus())
        if search.pressed or isinstance(search.error, KeyboardInterrupt):
            return False
        if search.error is not None:
            raise search.error
        return _is_exhausted(text)

    def exhaust(
        self, model: Model, cut: Cut, *, seconds: float | None = None, stopped: Callable[[], bool] | None = None
    ) -> SolverStatus:
        """Find solutions until none is left, and cut each off; see `tessella.solvers.base.LazySolver`.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> from tessella.formulation.parity import exclusion
        >>> model = Model(("x", "z"), [0, 0], [1, 1], [True, True], [0, 0], csr_array([[1.0, 1.0]]), ("r",), [1], [2])
        >>> found = []
        >>> def cut(values):
        ...     found.append(values.round().tolist())
        ...     return [exclusion([0, 1], found[-1])]
        >>> SCIP().exhaust(model, cut).value, sorted(found)
        ('infeasible', [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        """
        check_seconds(seconds, "a solver")
        pyscipopt = base.package("pyscipopt", "SCIP")
        with base.failures("SCIP"):
            solver = pyscipopt.Model(model.name)
            self._set(solver, seconds)
            solver.setHeuristics(pyscipopt.SCIP_PARAMSETTING.OFF)
            solver.setParams({**_LAZY, "misc/catchctrlc": False})
            variables = _load(pyscipopt, solver, base.without_objective(model), relaxed=False)
            lazy = _Lazy(variables, np.flatnonzero(model.integer).tolist(), cut, stopped)
            last = {"enfopriority": -9_999_990, "chckpriority": -9_999_990, "propfreq": 1}
            solver.includeConshdlr(lazy.handler(pyscipopt), "lazy", "cuts every solution off", needscons=False, **last)
            with _noting(lazy.pressed):
                solver.optimizeNogil()
            text = str(solver.getStatus())
        if lazy.pressed:
            raise KeyboardInterrupt
        if lazy.error is not None:
            raise lazy.error
        return SolverStatus.INFEASIBLE if _is_exhausted(text) else SolverStatus.STOPPED

    def _set(self, solver: Any, seconds: float | None) -> None:
        solver.hideOutput()
        options: dict[str, object] = {
            "timing/clocktype": 2,  # wall time
            "lp/threads": self.threads,
            "randomization/randomseedshift": self.seed,
            "numerics/feastol": self.feasibility,
            # SCIP 10 substitutes equations away, does not accept what it finds because the substituted columns miss their
            # bounds by more than feastol, and calls feasible problems infeasible; without, networks are solved faster, too
            "presolving/maxrounds": 0,
            # SCIP's signal handler is the whole process's: side by side in threads, its own would stay behind
            "misc/catchctrlc": threading.current_thread() is threading.main_thread(),
        }
        if seconds is not None:
            options["limits/time"] = min(float(seconds), 1e20)
        solver.setParams(options)


@contextmanager
def _noting(pressed: list[int]) -> Generator[None]:
    """Ctrl-C is only noted while SCIP works: an exception between two statements of a callback would be an error of SCIP's."""
    before = signal.getsignal(signal.SIGINT)
    hears = callable(before) and threading.current_thread() is threading.main_thread()
    if hears:
        signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        if hears:
            signal.signal(signal.SIGINT, before)


def _is_exhausted(status: str) -> bool:
    """Whether a search that accepts nothing as a solution came to its end, and was not stopped by a limit."""
    if status not in {"infeasible", "timelimit", "memlimit", "userinterrupt"}:
        msg = f"SCIP ended with {status!r} while all solutions were looked for"
        raise SolverError(msg)
    return status == "infeasible"


def _load(pyscipopt: Any, solver: Any, model: Model, *, relaxed: bool) -> list[Any]:
    """Hand over columns and rows; returns the variables."""
    columns = zip(
        model.names,
        model.lower.tolist(),
        model.upper.tolist(),
        (model.integer & (not relaxed)).tolist(),
        model.objective.tolist(),
        strict=True,
    )
    variables = [
        solver.addVar(name, "I" if integer else "C", lb=_end(low), ub=_end(high), obj=cost)
        for name, low, high, integer, cost in columns
    ]
    if model.maximize:
        solver.setMaximize()
    starts, indices, values = model.rows.indptr.tolist(), model.rows.indices.tolist(), model.rows.data.tolist()
    for row, (name, low, high) in enumerate(
        zip(model.row_names, model.row_lower.tolist(), model.row_upper.tolist(), strict=True)
    ):
        span = slice(starts[row], starts[row + 1])
        terms = [value * variables[column] for value, column in zip(values[span], indices[span], strict=True)]
        total = pyscipopt.quicksum(terms or [0.0 * variables[0]])
        if low == high:
            solver.addCons(total == low, name=name)
        elif low > -math.inf and high < math.inf:
            solver.addCons(low <= (total <= high), name=name)
        elif low > -math.inf or high < math.inf:
            solver.addCons(total >= low if high == math.inf else total <= high, name=name)
    return variables


def _end(value: float) -> float | None:
    """SCIP's word for no bound is None."""
    return value if math.isfinite(value) else None


def _read(solver: Any, variables: list[Any], model: Model, status: SolverStatus, start: float) -> Solution:
    objective: float | None = None
    values: Floats | None = None
    if solver.getNSols():
        best = solver.getBestSol()
        values = np.array([solver.getSolVal(best, variable) for variable in variables], dtype=np.float64)
        objective = float(solver.getSolObjVal(best))
    bound = float(solver.getDualbound())
    bound = math.copysign(math.inf, bound) if solver.isInfinity(abs(bound)) else bound
    return Solution(status, objective, base.outward(model, bound, objective), values, time.perf_counter() - start)


@dataclass(slots=True)
class _Search:
    """Rejects every solution after it was visited, and goes on with all that differ from it.

    A node whose solution has the binaries p gets one child for each binary i that is not fixed: those before i are as in p,
    i itself is not (Murty 1968, Lawler 1972).  So nothing is found twice, and the problem does not grow.  Compared, at 4,947
    assignments of 14 binaries: 0.8 s; SCIP's own countsols 2.1 s (and it does not hand over what it counts); one row against
    every solution found 2.7 s, and more than linear in their number.
    """

    variables: list[Any]
    columns: Sequence[int]
    visit: Callable[[Floats], None]
    error: BaseException | None = None
    pressed: list[int] = field(default_factory=list[int])

    def step(self, model: Any) -> bool:
        """Visit the solution of a node, and branch; False if nothing is left there."""
        if self.pressed:
            model.interruptSolve()
            return False
        try:
            values = np.array([model.getSolVal(None, variable) for variable in self.variables], dtype=np.float64)
            self.visit(values)
        except BaseException as error:  # noqa: BLE001  SCIP would print it and go on; it is raised when SCIP has ended
            self.error = error
            model.interruptSolve()
            return False
        pairs = [(model.getTransformedVar(self.variables[column]), bool(values[column] > 0.5)) for column in self.columns]
        free = [(binary, state) for binary, state in pairs if binary.getUbLocal() - binary.getLbLocal() > 0.5]
        for number, (binary, state) in enumerate(free):
            child = model.createChild(float(number), model.getLocalEstimate())
            for other, kept in [*free[:number], (binary, not state)]:
                (model.chgVarLbNode if kept else model.chgVarUbNode)(child, other, float(kept))
        return bool(free)

    def handler(self, pyscipopt: Any) -> Any:
        """The constraint handler through which SCIP asks."""
        return _asking(pyscipopt, self, self.step, pyscipopt.SCIP_RESULT.BRANCHED)()


@dataclass(slots=True)
class _Lazy:
    """Rejects every solution and adds rows against it.

    The rows are linear: SCIP's own XOR constraints let points pass that violate them when they are presolved, and were no faster.  The locks
    and the settings above keep SCIP from fixing columns by arguments that hold for the rows known so far only.
    """

    variables: list[Any]
    columns: Sequence[int]
    cut: Cut
    stopped: Callable[[], bool] | None
    error: BaseException | None = None
    pressed: list[int] = field(default_factory=list[int])

    def step(self, pyscipopt: Any, model: Any) -> bool:
        """Add the rows against the solution of a node; False if the search is to end."""
        try:
            values = np.array([model.getSolVal(None, variable) for variable in self.variables], dtype=np.float64)
            for row in base.checked_rows(self.cut(values)):
                terms = zip(row.coefficients, row.columns, strict=True)
                total = pyscipopt.quicksum(value * self.variables[column] for value, column in terms)
                if row.lower == row.upper:
                    model.addCons(total == row.lower)
                elif row.lower > -math.inf:
                    model.addCons(total >= row.lower)
                if row.upper < math.inf and row.lower != row.upper:
                    model.addCons(total <= row.upper)
        except BaseException as error:  # noqa: BLE001  SCIP would print it and go on; it is raised when SCIP has ended
            self.error = error
            model.interruptSolve()
            return False
        return True

    def handler(self, pyscipopt: Any) -> Any:
        """The constraint handler through which SCIP asks."""
        lazy, results = self, pyscipopt.SCIP_RESULT

        class Handler(_asking(pyscipopt, lazy, partial(lazy.step, pyscipopt), results.CONSADDED)):  # pyright: ignore[reportUntypedBaseClass]
            def consprop(self, *_: Any, **__: Any) -> dict[str, Any]:
                if lazy.pressed or (lazy.stopped is not None and lazy.stopped()):
                    self.model.interruptSolve()
                return {"result": results.DIDNOTFIND}

        return Handler()


def _asking(pyscipopt: Any, search: "_Search | _Lazy", step: Callable[[Any], bool], taken: Any) -> Any:
    """The constraint handler through which SCIP asks, as a class: no solution is taken, but a step is made with each."""
    results = pyscipopt.SCIP_RESULT

    class Asking(pyscipopt.Conshdlr):  # pyright: ignore[reportUntypedBaseClass]  the package is imported on use
        def conscheck(self, *_: Any, **__: Any) -> dict[str, Any]:
            return {"result": results.INFEASIBLE}

        def consenfolp(self, *_: Any, **__: Any) -> dict[str, Any]:
            return {"result": taken if step(self.model) else results.CUTOFF}

        def consenfops(self, _: Any, __: int, solinfeasible: bool, *___: Any) -> dict[str, Any]:  # noqa: FBT001  as SCIP calls it
            return {"result": results.INFEASIBLE} if solinfeasible else self.consenfolp()

        def conslock(self, _: Any, __: int, positive: int, negative: int) -> None:
            for column in search.columns:
                self.model.addVarLocks(search.variables[column], positive + negative, positive + negative)

    return Asking
