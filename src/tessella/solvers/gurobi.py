"""Gurobi, through its package gurobipy."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tessella.errors import SolverError
from tessella.formulation.model import Model
from tessella.network import Floats
from tessella.options import check_seconds
from tessella.solvers import base
from tessella.solvers.base import Cut, Settings, Solution, SolverStatus

_TOO_LARGE, _NO_LICENCE = 10010, 10009  # error codes
_INFINITE = 1e20  # and what is larger


@dataclass(frozen=True, slots=True)
class Gurobi(Settings):
    """The solver Gurobi; commercial, the free licence of its package takes up to 2,000 columns and 2,000 rows.

    Its settings are those of `tessella.solvers.base.Settings`.
    """

    def solve(self, model: Model, *, seconds: float | None = None, relaxed: bool = False) -> Solution:
        """Solve a problem; see `Solver.solve`."""
        check_seconds(seconds, "a solver")
        start = time.perf_counter()
        gurobipy = base.package("gurobipy", "Gurobi")
        whole = bool(model.integer.any()) and not relaxed
        with base.failures("Gurobi"), _licence(gurobipy, model), gurobipy.Env(empty=True) as settings:
            for name, value in self._options(seconds).items():
                settings.setParam(name, value)
            settings.start()
            with gurobipy.Model(model.name, env=settings) as solver:
                variables, rows = _load(gurobipy, solver, model, whole=whole)
                solver.optimize()
                if solver.Status == gurobipy.GRB.INTERRUPTED:
                    raise KeyboardInterrupt
                if solver.Status == gurobipy.GRB.INF_OR_UNBD:
                    return Solution(base.settled(self, model, seconds, relaxed=relaxed), seconds=time.perf_counter() - start)
                return _read(gurobipy, solver, variables, rows, model, start, whole=whole)

    def exhaust(
        self, model: Model, cut: Cut, *, seconds: float | None = None, stopped: Callable[[], bool] | None = None
    ) -> SolverStatus:
        """Find solutions until none is left, and cut each off; see `tessella.solvers.base.LazySolver`."""
        check_seconds(seconds, "a solver")
        gurobipy, error = base.package("gurobipy", "Gurobi"), list[BaseException]()
        codes = gurobipy.GRB

        def visit(solver: Any, where: int) -> None:
            try:
                if stopped is not None and stopped():
                    solver.terminate()
                if where == codes.Callback.MIPSOL:
                    _add_lazily(gurobipy, solver, cut)
            except BaseException as found:  # noqa: BLE001  Gurobi would print it and go on; it is raised when Gurobi has ended
                error.append(found)
                solver.terminate()

        with base.failures("Gurobi"), _licence(gurobipy, model), gurobipy.Env(empty=True) as settings:
            for name, value in {**self._options(seconds), "LazyConstraints": 1}.items():
                settings.setParam(name, value)
            settings.start()
            with gurobipy.Model(model.name, env=settings) as solver:
                _load(gurobipy, solver, base.without_objective(model), whole=True)
                solver.optimize(visit)
                status = solver.Status
        if error:
            raise error[0]
        if status in {codes.INFEASIBLE, codes.INF_OR_UNBD}:
            return SolverStatus.INFEASIBLE
        if status in {codes.TIME_LIMIT, codes.MEM_LIMIT, codes.INTERRUPTED}:
            return SolverStatus.STOPPED
        msg = f"Gurobi ended with its status {status} while solutions were cut off; try another solver"
        raise SolverError(msg)

    def _options(self, seconds: float | None) -> dict[str, object]:
        options: dict[str, object] = {
            "OutputFlag": 0,
            "Threads": self.threads,
            "FeasibilityTol": self.feasibility,
            "OptimalityTol": self.feasibility,
            "IntFeasTol": self.feasibility,
            "MIPGap": 0.0,
        }
        return options if seconds is None else {**options, "TimeLimit": float(seconds)}


@contextmanager
def _licence(gurobipy: Any, model: Model) -> Generator[None]:
    """Say what a licence does not allow."""
    try:
        yield
    except gurobipy.GurobiError as error:
        if error.errno == _TOO_LARGE:
            rows, columns = model.rows.shape
            msg = (
                f"Gurobi's licence does not allow a problem of {columns:,} columns and {rows:,} rows; "
                "install a full licence, or use HiGHS or SCIP"
            )
        elif error.errno == _NO_LICENCE:
            msg = f"Gurobi found no licence that is valid ({error}); install one, or use HiGHS or SCIP"
        else:
            raise
        raise SolverError(msg) from error


def _load(gurobipy: Any, solver: Any, model: Model, *, whole: bool) -> tuple[Any, list[tuple[Any, Any]]]:
    """Hand over columns and rows; returns the variables, and the rows with their places in the model."""
    kinds = np.where(model.integer, "I", "C") if whole else "C"
    sense = gurobipy.GRB.MAXIMIZE if model.maximize else gurobipy.GRB.MINIMIZE
    variables = solver.addMVar(len(model.names), lb=model.lower, ub=model.upper, vtype=kinds)
    solver.setObjective(model.objective @ variables, sense)
    equal, loaded = model.row_lower == model.row_upper, list[tuple[Any, Any]]()
    for sign, limits, mask in (
        ("=", model.row_lower, equal),
        (">", model.row_lower, ~equal & np.isfinite(model.row_lower)),
        ("<", model.row_upper, ~equal & np.isfinite(model.row_upper)),
    ):
        places = np.flatnonzero(mask)
        if places.size:
            loaded.append((solver.addMConstr(model.rows[places], variables, sign, limits[places]), places))
    return variables, loaded


def _add_lazily(gurobipy: Any, solver: Any, cut: Cut) -> None:
    """Add the rows against a solution, in a callback."""
    columns = solver.getVars()
    for row in base.checked_rows(cut(np.array(solver.cbGetSolution(columns), dtype=np.float64))):
        total = gurobipy.LinExpr(row.coefficients, [columns[column] for column in row.columns])
        if row.lower > -np.inf:
            solver.cbLazy(total >= row.lower)
        if row.upper < np.inf:
            solver.cbLazy(total <= row.upper)


def _read(  # noqa: PLR0913, PLR0917  what is read, and what it is read for
    gurobipy: Any, solver: Any, variables: Any, rows: list[tuple[Any, Any]], model: Model, start: float, *, whole: bool
) -> Solution:
    codes = gurobipy.GRB
    status = {
        codes.OPTIMAL: SolverStatus.OPTIMAL,
        codes.INFEASIBLE: SolverStatus.INFEASIBLE,
        codes.UNBOUNDED: SolverStatus.UNBOUNDED,
        codes.TIME_LIMIT: SolverStatus.STOPPED,
        codes.SUBOPTIMAL: SolverStatus.STOPPED,
        codes.MEM_LIMIT: SolverStatus.STOPPED,
    }.get(solver.Status)
    if status is None:
        msg = f"Gurobi ended with its status {solver.Status}; try another solver"
        raise SolverError(msg)
    if status in {SolverStatus.INFEASIBLE, SolverStatus.UNBOUNDED}:
        return Solution(status, seconds=time.perf_counter() - start)
    found = solver.SolCount > 0 and (whole or status is SolverStatus.OPTIMAL)
    objective = float(solver.ObjVal) if found else None
    values: Floats | None = np.array(variables.X, dtype=np.float64) if found else None
    if whole:
        bound = float(solver.ObjBound)
        bound = np.inf if abs(bound) >= _INFINITE else bound
    else:
        duals: Floats = np.zeros(len(model.row_names))
        if found:
            for constraints, places in rows:
                duals[places] += constraints.Pi
        bound = base.linear_bound(model, duals, objective)
    return Solution(status, objective, base.outward(model, bound, objective), values, time.perf_counter() - start)
