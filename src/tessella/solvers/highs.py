"""HiGHS, through its package highspy."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tessella.errors import SolverError
from tessella.formulation.model import Model
from tessella.network import Floats
from tessella.options import check_seconds
from tessella.parallel import own_thread
from tessella.solvers import base
from tessella.solvers.base import Cut, Settings, Solution, SolverStatus


@dataclass(frozen=True, slots=True)
class HiGHS(Settings):
    """The solver HiGHS; free, and quick on linear problems and on bounds of units.

    Its settings are those of `tessella.solvers.base.Settings`.
    """

    def solve(self, model: Model, *, seconds: float | None = None, relaxed: bool = False) -> Solution:
        """Solve a problem; see `Solver.solve`.

        It runs in a thread of its own, because HiGHS keeps the number of threads of the first problem that a thread solves,
        and refuses every other.
        """
        check_seconds(seconds, "a solver")
        start = time.perf_counter()
        highspy, whole = base.package("highspy", "HiGHS"), bool(model.integer.any()) and not relaxed
        with base.failures("HiGHS"), own_thread() as call:
            solver = self._load(highspy, model, seconds, whole=whole)
            call(solver.run)
            status = solver.getModelStatus()
            if status == highspy.HighsModelStatus.kUnboundedOrInfeasible:
                return Solution(base.settled(self, model, seconds, relaxed=relaxed), seconds=time.perf_counter() - start)
            return _read(highspy, solver, model, start, whole=whole)

    def exhaust(
        self, model: Model, cut: Cut, *, seconds: float | None = None, stopped: Callable[[], bool] | None = None
    ) -> SolverStatus:
        """Find solutions until none is left, and cut each off; see `tessella.solvers.base.LazySolver`.

        HiGHS takes no rows during a search, so each solution is the first one of a search of its own.
        """
        check_seconds(seconds, "a solver")
        end = np.inf if seconds is None else time.perf_counter() + seconds
        highspy = base.package("highspy", "HiGHS")
        with base.failures("HiGHS"):
            solver = self._load(highspy, base.without_objective(model), None, whole=True)
            solver.setOptionValue("mip_max_improving_sols", 1)
            if stopped is not None:
                solver.cbMipInterrupt.subscribe(lambda event: event.interrupt() if stopped() else None)
        with own_thread() as call:
            while (left := end - time.perf_counter()) > 0.0 and not (stopped is not None and stopped()):
                with base.failures("HiGHS"):
                    solver.clearSolver()
                    solver.setOptionValue("time_limit", solver.getRunTime() + left)
                    call(solver.run)
                    found = _first(highspy, solver)
                if isinstance(found, SolverStatus):
                    return found
                for row in base.checked_rows(cut(found)):
                    places, values = np.array(row.columns, dtype=np.int32), np.array(row.coefficients)
                    solver.addRow(row.lower, row.upper, len(places), places, values)
        return SolverStatus.STOPPED

    def _load(self, highspy: Any, model: Model, seconds: float | None, *, whole: bool) -> Any:
        solver = highspy.Highs()
        options: dict[str, object] = {
            "output_flag": False,
            "threads": self.threads,
            "parallel": "on" if self.threads > 1 else "off",
            "primal_feasibility_tolerance": self.feasibility,
            "dual_feasibility_tolerance": self.feasibility,
            "mip_feasibility_tolerance": self.feasibility,
            "mip_rel_gap": 0.0,
            "small_matrix_value": 1e-12,  # smaller coefficients are dropped
        }
        if seconds is not None:
            options["time_limit"] = float(seconds)
        for name, value in options.items():
            solver.setOptionValue(name, value)
        problem = highspy.HighsLp()
        problem.num_row_, problem.num_col_ = model.rows.shape
        problem.sense_ = highspy.ObjSense.kMaximize if model.maximize else highspy.ObjSense.kMinimize
        problem.col_cost_, problem.col_lower_, problem.col_upper_ = model.objective, model.lower, model.upper
        problem.row_lower_, problem.row_upper_ = model.row_lower, model.row_upper
        problem.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        problem.a_matrix_.num_row_, problem.a_matrix_.num_col_ = model.rows.shape
        problem.a_matrix_.start_ = model.rows.indptr.astype(np.int32)
        problem.a_matrix_.index_ = model.rows.indices.astype(np.int32)
        problem.a_matrix_.value_ = model.rows.data
        if whole:
            kinds = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
            problem.integrality_ = [kinds[integer] for integer in model.integer.tolist()]
        if solver.passModel(problem) == highspy.HighsStatus.kError:
            msg = f"HiGHS does not take the problem {model!r}; look for coefficients that are very large"
            raise SolverError(msg)
        return solver


def _first(highspy: Any, solver: Any) -> Floats | SolverStatus:
    """The first solution of a search, or why there is none."""
    codes, status = highspy.HighsModelStatus, solver.getModelStatus()
    if status in {codes.kInfeasible, codes.kUnboundedOrInfeasible}:
        return SolverStatus.INFEASIBLE
    if solver.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        return np.array(solver.getSolution().col_value, dtype=np.float64)
    if status in {codes.kTimeLimit, codes.kInterrupt}:
        return SolverStatus.STOPPED
    msg = f"HiGHS ended with {solver.modelStatusToString(status)!r} while solutions were cut off; try another solver"
    raise SolverError(msg)


def _read(highspy: Any, solver: Any, model: Model, start: float, *, whole: bool) -> Solution:
    codes = highspy.HighsModelStatus
    status = {
        codes.kOptimal: SolverStatus.OPTIMAL,
        codes.kInfeasible: SolverStatus.INFEASIBLE,
        codes.kUnbounded: SolverStatus.UNBOUNDED,
        codes.kTimeLimit: SolverStatus.STOPPED,
        codes.kIterationLimit: SolverStatus.STOPPED,
        codes.kUnknown: SolverStatus.STOPPED,
    }.get(solver.getModelStatus())
    if status is None:
        msg = f"HiGHS ended with {solver.modelStatusToString(solver.getModelStatus())!r}; try another solver"
        raise SolverError(msg)
    if status in {SolverStatus.INFEASIBLE, SolverStatus.UNBOUNDED}:
        return Solution(status, seconds=time.perf_counter() - start)
    info, found = solver.getInfo(), solver.getSolution()
    feasible = status is SolverStatus.OPTIMAL or info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    objective = float(info.objective_function_value) if feasible else None
    values: Floats | None = np.array(found.col_value, dtype=np.float64) if feasible else None
    if whole:
        bound = float(info.mip_dual_bound)
    else:
        duals: Floats = np.array(found.row_dual, dtype=np.float64)
        bound = base.linear_bound(model, duals, objective if status is SolverStatus.OPTIMAL else None)
    return Solution(status, objective, base.outward(model, bound, objective), values, time.perf_counter() - start)
