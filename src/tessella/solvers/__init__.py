"""Solvers of linear and mixed-integer problems, behind one narrow interface."""

from tessella.solvers.base import Solution, Solver, SolverStatus
from tessella.solvers.gurobi import Gurobi
from tessella.solvers.highs import HiGHS
from tessella.solvers.scip import SCIP

Status = SolverStatus  # its first name here, which callers may use

__all__ = ["SCIP", "Gurobi", "HiGHS", "Solution", "Solver", "SolverStatus", "Status"]


def __dir__() -> list[str]:
    """The public names, and not what this is made of."""
    return __all__
