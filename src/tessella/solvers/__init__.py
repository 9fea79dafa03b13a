"""Solvers of linear and mixed-integer problems, behind one narrow interface."""

from tessella.solvers.base import Solution, Solver, Status
from tessella.solvers.gurobi import Gurobi
from tessella.solvers.highs import HiGHS
from tessella.solvers.scip import SCIP

__all__ = ["SCIP", "Gurobi", "HiGHS", "Solution", "Solver", "Status"]
