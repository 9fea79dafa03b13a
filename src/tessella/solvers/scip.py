"""SCIP, through its package pyscipopt."""

import math
import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from tessella.errors import OptionError, SolverError
from tessella.formulation.model import Model
from tessella.network import Floats
from tessella.solvers.base import (
    FEASIBILITY,
    Solution,
    Status,
    check_options,
    check_seconds,
    failures,
    outward,
    package,
    settled,
)

_STATUSES = {
    "optimal": Status.OPTIMAL,
    "infeasible": Status.INFEASIBLE,
    "unbounded": Status.UNBOUNDED,
    "timelimit": Status.STOPPED,
    "memlimit": Status.STOPPED,
}


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
    feasibility: float = FEASIBILITY

    def __post_init__(self) -> None:
        """Check the settings."""
        check_options(self.threads, self.feasibility)
        if not 0 <= self.seed < 2**31:
            msg = f"the seed must lie between 0 and 2**31 - 1, got {self.seed!r}"
            raise OptionError(msg)

    def solve(self, model: Model, *, seconds: float | None = None, relaxed: bool = False) -> Solution:
        """Solve a problem; see `Solver.solve`."""
        check_seconds(seconds)
        start = time.perf_counter()
        pyscipopt = package("pyscipopt", "SCIP")
        with failures("SCIP"):
            solver = pyscipopt.Model(model.name)
            self._set(solver, seconds)
            variables = _load(pyscipopt, solver, model, relaxed=relaxed)
            solver.optimizeNogil()
            text = str(solver.getStatus())
            if text == "userinterrupt":
                raise KeyboardInterrupt
            status = settled(self, model, seconds, relaxed=relaxed) if text == "inforunbd" else _STATUSES.get(text)
            if status is None:
                msg = f"SCIP ended with {text!r}; try another solver"
                raise SolverError(msg)
            if status in {Status.INFEASIBLE, Status.UNBOUNDED} or text == "inforunbd":
                return Solution(status, seconds=time.perf_counter() - start)
            return _read(solver, variables, model, status, start)

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


def _read(solver: Any, variables: list[Any], model: Model, status: Status, start: float) -> Solution:
    objective: float | None = None
    values: Floats | None = None
    if solver.getNSols():
        best = solver.getBestSol()
        values = np.array([solver.getSolVal(best, variable) for variable in variables], dtype=np.float64)
        objective = float(solver.getSolObjVal(best))
    bound = float(solver.getDualbound())
    bound = math.copysign(math.inf, bound) if solver.isInfinity(abs(bound)) else bound
    return Solution(status, objective, outward(model, bound, objective), values, time.perf_counter() - start)
