"""What a solver is asked and what it answers, whichever it is."""

import importlib
import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from tessella.errors import MissingPackage, OptionError, SolverError, TessellaError
from tessella.formulation.model import Model, Row
from tessella.network import Floats
from tessella.numerics import EPS
from tessella.options import check_whole

FEASIBILITY = 1e-8
"""By how much rows and whole numbers may be missed.

At 1e-6, products with a large H let patterns pass that do not exist.  At 1e-9, HiGHS and SCIP fail on some networks or call
feasible problems infeasible.
"""


class SolverStatus(StrEnum):
    """How a solver ended."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What a solver found, and what it proved.

    Parameters
    ----------
    status
        How it ended; stopped by the time limit, the rest still holds.
    objective
        The value of the best solution found, or None.
    bound
        What no solution is better than: an upper bound where the objective is maximised.  None where nothing is proved.  For
        linear problems of HiGHS and Gurobi it is certain, for others it holds up to the solver's tolerance.
    values
        The best solution found, one number per column, or None.
    seconds
        Wall time spent.
    """

    status: SolverStatus
    objective: float | None = None
    bound: float | None = None
    values: Floats | None = None
    seconds: float = 0.0

    def __repr__(self) -> str:
        """One line a person can read."""
        found = "nothing found" if self.objective is None else f"found {self.objective:.6g}"
        proved = "nothing proved" if self.bound is None else f"proved {self.bound:.6g}"
        return f"Solution({self.status}, {found}, {proved}, {self.seconds:.2f} s)"


class Solver(Protocol):
    """Anything that solves a model.

    Solvers are frozen values that hold their settings; a call leaves nothing behind, and calls may run side by side.
    """

    def solve(self, model: Model, *, seconds: float | None = None, relaxed: bool = False) -> Solution:
        """Solve a problem.

        Parameters
        ----------
        model
            The problem.
        seconds
            Stop after this wall time with what is known; None to go on to the end.
        relaxed
            Whether to let whole-number columns take any value between their bounds, which leaves a linear problem.
        """
        ...


Cut: TypeAlias = Callable[[Floats], Sequence[Row]]
"""Takes a solution, returns rows; the solution violates at least one of them."""


@runtime_checkable
class LazySolver(Protocol):
    """A solver to which rows can be added while it searches."""

    def exhaust(
        self, model: Model, cut: Cut, *, seconds: float | None = None, stopped: Callable[[], bool] | None = None
    ) -> SolverStatus:
        """Find solutions until none is left, and cut each off.

        Parameters
        ----------
        model
            The problem; its objective is ignored.
        cut
            Called with each solution; the rows that it returns hold from then on.  What it raises ends the search.  A solution that violates
            rows returned earlier may be offered again.
        seconds
            Stop after this wall time; None to go on to the end.
        stopped
            Asked every now and then whether to end early.

        Returns
        -------
        `SolverStatus.INFEASIBLE` if no solution is left, else `SolverStatus.STOPPED`.
        """
        ...


def without_objective(model: Model) -> Model:
    """The same problem, in which every solution is as good as any other."""
    return model.with_objective(np.zeros(len(model.names)), maximize=False)


def checked_rows(rows: Sequence[Row]) -> Sequence[Row]:
    """What a cut returned; raises if it is nothing, for the search would not end."""
    if not rows:
        msg = "a solution was to be cut off, but no row was given"
        raise SolverError(msg)
    return rows


def package(name: str, what: str) -> Any:
    """A solver's Python package, or what to install."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        reason = "is not installed" if isinstance(error, ModuleNotFoundError) and error.name == name else f"fails ({error})"
        msg = f"{what} was asked for, but its package {name} {reason}: pip install {name}"
        raise MissingPackage(msg) from error


def check_options(threads: int, feasibility: float) -> None:
    """Raise where a solver's settings are outside their ranges."""
    check_whole(threads, "threads", "a solver")
    if not 1e-9 <= feasibility <= 1e-4:
        msg = f"feasibility must lie between 1e-9 and 1e-4, which all solvers can do; got {feasibility!r}"
        raise OptionError(msg)


@dataclass(frozen=True, slots=True)
class Settings:
    """What can be set of a solver.

    Parameters
    ----------
    threads
        How many threads one problem may use.
    feasibility
        By how much rows and whole numbers may be missed.
    """

    threads: int = 1
    feasibility: float = FEASIBILITY

    def __post_init__(self) -> None:
        """Check the settings."""
        check_options(self.threads, self.feasibility)


@contextmanager
def failures(name: str) -> Generator[None]:
    """Turn whatever a solver's package raises into one line."""
    try:
        yield
    except (TessellaError, MemoryError):
        raise
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        msg = f"{name} failed: {text:.300}; try another solver, or bounds of a smaller size"
        raise SolverError(msg) from error


def settled(solver: Solver, model: Model, seconds: float | None, *, relaxed: bool) -> SolverStatus:
    """What a problem is that was found to be either infeasible or unbounded: infeasible, if it is so without its objective."""
    found = solver.solve(replace(model, objective=np.zeros(len(model.names))), seconds=seconds, relaxed=relaxed)
    return SolverStatus.UNBOUNDED if found.status is SolverStatus.OPTIMAL else found.status


def outward(model: Model, bound: float, objective: float | None) -> float | None:
    """A bound that is not inside of a solution's value, by which rounding may have passed it; None if it is infinite."""
    if math.isfinite(bound) and objective is not None:
        bound = max(bound, objective) if model.maximize else min(bound, objective)
    return bound if math.isfinite(bound) else None


def linear_bound(model: Model, multipliers: Floats, optimum: float | None) -> float:
    """The bound that multipliers of the rows prove for the linear relaxation; infinite if they prove none.

    For any y, ``c x = y (A x) + (c - A' y) x``, and both terms are largest at ends of the rows' and columns' intervals.  So
    the bound holds whatever the multipliers' errors are, and rounding in its own sums is added to it (Neumaier and
    Shcherbina 2004).

    Parameters
    ----------
    model
        The problem.
    multipliers
        One number per row; the dual values of an optimal solution prove the most.
    optimum
        What the solver calls the optimum, if it does: the answer where columns without bounds leave nothing to prove.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> model = Model(("x", "y"), [0, 0], [1, 1], [False, False], [1, 1], csr_array([[1.0, 2.0]]), ("r",), [0], [2], maximize=True)
    >>> round(linear_bound(model, np.array([0.5]), None), 9), round(linear_bound(model, np.array([0.0]), None), 9)
    (1.5, 2.0)
    """
    if multipliers.shape != model.row_lower.shape:
        return math.inf if optimum is None else optimum
    sign = 1.0 if model.maximize else -1.0
    weights = sign * np.nan_to_num(multipliers)
    weights = np.where((weights > 0.0) & (model.row_upper == np.inf), 0.0, weights)
    weights = np.where((weights < 0.0) & (model.row_lower == -np.inf), 0.0, weights)
    reduced = sign * model.objective - np.asarray(model.rows.T @ weights)
    sizes = np.abs(model.objective) + np.asarray(abs(model.rows).T @ np.abs(weights))
    with np.errstate(invalid="ignore"):  # 0 times infinity is 0 here
        sums = np.where(weights > 0.0, weights * model.row_upper, weights * model.row_lower)
        ends = np.where(reduced > 0.0, reduced * model.upper, reduced * model.lower)
        reach = sizes * np.maximum(np.abs(model.lower), np.abs(model.upper))
    terms = sum(model.rows.shape) + 4
    rounding = terms * EPS * float(np.abs(np.nan_to_num(sums)).sum() + np.nansum(reach))
    bound = float(np.nansum(sums) + np.nansum(ends)) + rounding
    return optimum if optimum is not None and not math.isfinite(bound) else sign * bound
