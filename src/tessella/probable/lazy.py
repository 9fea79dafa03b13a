"""One repetition with a solver, as the paper has it: parity constraints are rows that are added to a search while it runs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tessella.errors import SolverError
from tessella.formulation.model import Model, Row
from tessella.formulation.parity import Echelon, Parity, bits, exclusion, parities, parity_rows
from tessella.network import Floats, Mask
from tessella.probable.search import Outcome
from tessella.solvers.base import LazySolver, SolverStatus

if TYPE_CHECKING:
    from tessella.kernel.functions import Apart

Confirm: TypeAlias = Callable[[Mask, Floats], bool]
"""Whether an assignment of the binary columns is one, given it and the solver's solution."""

SHORT = 3
"""The largest constraints that are added although they only follow from others: SCIP took a third of the time for XOR-5 on two of three networks."""

_PATIENCE = 100  # solutions in a row that violate what they were told; then the solver is given up


class Stopped(Exception):  # noqa: N818  not an error
    """A repetition was asked to end."""


@dataclass(slots=True)
class Cuts:
    """The lazy constraints of one repetition: takes solutions, returns rows.

    The word of a solver is not taken.  Solutions may violate rows that were added before: then these are given again.  They may be none,
    because tolerances multiply with large coefficients: then the assignment is cut off, and nothing is drawn.
    """

    columns: Sequence[int]  # the binary columns whose assignments are counted
    drawn: Iterator[Parity]  # where constraints come from
    confirm: Confirm  # says whether an assignment is one
    stopped: Callable[[], bool]  # asked whether to end
    derived: int = SHORT  # the most variables of constraints that follow from all so far, to be added as rows too; 0 for none
    draws: int = 0
    unconfirmed: int = 0
    visits: int = 0
    _parities: list[Parity] = field(default_factory=list[Parity])
    _excluded: dict[int, Row] = field(default_factory=dict[int, Row])
    _echelon: Echelon = field(default_factory=Echelon)
    _given: set[Parity] = field(default_factory=set[Parity])
    _again: int = 0

    def __call__(self, values: Floats) -> list[Row]:
        """Rows that a solution violates."""
        if self.stopped():
            raise Stopped
        self.visits += 1
        states = values[list(self.columns)] > 0.5
        assignment = bits(states)
        again = [row for parity in self._parities if not parity.holds(assignment) for row in self._rows(parity)]
        if assignment in self._excluded:
            again.append(self._excluded[assignment])
        if again:
            self._again += 1
            if self._again > _PATIENCE:
                msg = "the solver keeps offering solutions that violate rows it was given; try another solver"
                raise SolverError(msg)
            return again
        self._again = 0
        if not self.confirm(states, values):
            self.unconfirmed += 1
            self._excluded[assignment] = exclusion(self.columns, states.tolist())
            return [self._excluded[assignment]]
        return self._draw(assignment)

    def _draw(self, assignment: int) -> list[Row]:
        """Draw constraints, independently of the assignment, until one cuts it off."""
        rows = list[Row]()
        while True:
            parity = next(self.drawn)
            self.draws += 1
            self._parities.append(parity)
            rows += self._rows(parity)
            rest = self._echelon.add(parity)
            if not rest.mask and rest.odd:  # a contradiction, said in a way that needs no search
                first = self.columns[:1]
                return [*rows, Row(tuple(first), (1.0,), 1.0, np.inf), Row(tuple(first), (1.0,), -np.inf, 0.0)]
            if not parity.holds(assignment):
                return rows + self._derive()

    def _derive(self) -> list[Row]:
        if not self.derived:
            return []
        short = {row for row in self._echelon.reduced() if row.mask.bit_count() <= self.derived} - self._given
        self._given |= short
        return [row for parity in short for row in self._rows(parity)]

    def _rows(self, parity: Parity) -> list[Row]:
        return parity_rows(parity, self.columns)


class BySolver(ABC):
    """Repetitions by a solver: what `tessella.probable.run.Job` asks of a network's and of a problem's.

    Who derives from it has ``model``, ``columns`` (binary, to count on), ``solver`` and ``derived``, and says by `confirmation` which assignments are ones.
    """

    __slots__ = ()
    model: Model
    columns: tuple[int, ...]
    solver: LazySolver
    derived: int

    @property
    def threads(self) -> int:
        """One: solvers call back into Python."""
        return 1

    @property
    def functions(self) -> "tuple[Apart, ...]":
        """None, unless a confirmation calls some."""
        return ()

    @abstractmethod
    def confirmation(self) -> Confirm:
        """Says whether assignments are ones."""

    def worker(self) -> "Repeater":
        """Somebody to solve."""
        return Repeater(self, self.confirmation())


class Repeater:
    """Does repetitions with a solver.

    Parameters
    ----------
    job
        What is solved.
    confirm
        Says whether an assignment is one.
    """

    def __init__(self, job: BySolver, confirm: Confirm) -> None:
        """Remember both."""
        self._job, self._confirm = job, confirm

    def repeat(self, size: int, seed: np.random.SeedSequence, stopped: Callable[[], bool]) -> Outcome | None:
        """Draw constraints of so many variables until nothing is left; None if it was stopped before."""
        job = self._job
        cuts = Cuts(job.columns, parities(len(job.columns), size, seed), self._confirm, stopped, job.derived)
        return _repeat(job.solver, job.model, cuts)


def _repeat(solver: LazySolver, model: Model, cuts: Cuts) -> Outcome | None:
    """Draw constraints until the solver finds nothing any more; None if it was stopped before."""
    try:
        status = solver.exhaust(model, cuts, stopped=cuts.stopped)
    except Stopped:
        return None
    return Outcome(cuts.draws, cuts.unconfirmed, 0, cuts.visits) if status is SolverStatus.INFEASIBLE else None
