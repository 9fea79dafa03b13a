"""Problems from files and from SCIP's own objects, read by SCIP."""

import os
import re
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from tessella.errors import FileError, OptionError, UnsupportedModel
from tessella.formulation.model import Model
from tessella.importers.door import existing_file
from tessella.network import Mask
from tessella.solvers.base import package

FORMATS = (".mps", ".lp", ".cip", ".mps.gz", ".lp.gz", ".cip.gz")
_LAST_WORDS = re.compile(r"ERROR: (.*)")
_one_at_a_time = Lock()


class Problem(NamedTuple):
    """A problem as it was read."""

    model: Model  # the problem; its columns and rows are numbered, because files may have any names
    names: tuple[str, ...]  # the columns' own names
    name: str  # a name for the whole

    @property
    def binary(self) -> Mask:
        """Which columns can only be 0 or 1."""
        return self.model.integer & (self.model.lower >= 0.0) & (self.model.upper <= 1.0)


def read_problem(source: Any) -> Problem:
    """Read a linear problem with whole-number columns.

    Parameters
    ----------
    source
        A ``.mps``, ``.lp`` or ``.cip`` file, also with ``.gz``; or a `pyscipopt.Model`, which is left as it is.
    """
    pyscipopt = package("pyscipopt", "SCIP")
    if isinstance(source, pyscipopt.Model):
        return _converted(source, str(source.getProbName()) or "model")
    if not isinstance(source, (str, PathLike)):
        msg = f"a {type(source).__name__} was given; a problem is read from a .mps, .lp or .cip file, or from a pyscipopt.Model"
        raise OptionError(msg)
    path = existing_file(source)
    if not path.name.lower().endswith(FORMATS):
        msg = f"{path}: a problem is read from files that end in {', '.join(FORMATS)}"
        raise OptionError(msg)
    solver = pyscipopt.Model()
    solver.hideOutput()
    said = list[str]()
    try:
        with _captured(said):
            solver.readProblem(str(path))
    except Exception as error:
        reasons = _LAST_WORDS.findall("".join(said)) or [str(error)]
        msg = f"{path}: cannot be read as a linear problem ({reasons[0]:.200}); is the file complete?"
        raise FileError(msg) from error
    if not solver.getNVars():
        msg = f"{path}: no variables were found in it; is it a linear problem, and complete?"
        raise FileError(msg)
    return _converted(solver, path.name)


@contextmanager
def _captured(said: list[str]) -> Generator[None]:
    """Keep what SCIP's readers write to the process's standard error, past Python."""
    with _one_at_a_time, tempfile.TemporaryFile() as file:
        own = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(own, 2)
            os.close(own)
            file.seek(0)
            said.append(file.read().decode(errors="replace"))


def _converted(solver: Any, name: str) -> Problem:
    from scipy.sparse import coo_array  # noqa: PLC0415  heavy, and only problems need it

    variables, constraints = solver.getVars(), solver.getConss(transformed=False)
    if not variables:
        msg = f"{name}: has no variables"
        raise OptionError(msg)
    places = {variable.name: place for place, variable in enumerate(variables)}
    if len(places) < len(variables):
        msg = f"{name}: two variables have the same name; give each its own"
        raise OptionError(msg)
    rows, columns, values = list[int](), list[int](), list[float]()
    for row, constraint in enumerate(constraints):
        kind = constraint.getConshdlrName()
        if kind != "linear":
            msg = f"{name}: constraint {constraint.name!r} is of SCIP's kind {kind!r}; only linear ones can be read"
            raise UnsupportedModel(msg)
        terms = solver.getValsLinear(constraint)
        rows += [row] * len(terms)
        columns += [places[term] for term in terms]
        values += terms.values()
    kinds = [variable.vtype() for variable in variables]
    ends = [[_end(solver, value) for value in (v.getLbOriginal(), v.getUbOriginal())] for v in variables]
    lower, upper = np.array(ends).T
    model = Model(
        tuple(f"x{place}" for place in range(len(variables))),
        lower,
        upper,
        np.array([kind in {"BINARY", "INTEGER", "IMPLINT"} for kind in kinds]),
        np.array([float(variable.getObj()) for variable in variables]),
        coo_array((values, (rows, columns)), shape=(len(constraints), len(variables))),
        tuple(f"r{row}" for row in range(len(constraints))),
        np.array([_end(solver, solver.getLhs(constraint)) for constraint in constraints]),
        np.array([_end(solver, solver.getRhs(constraint)) for constraint in constraints]),
        maximize=str(solver.getObjectiveSense()) == "maximize",
    )
    return Problem(model, tuple(places), name)


def _end(solver: Any, value: float) -> float:
    return float(np.copysign(np.inf, value)) if solver.isInfinity(abs(value)) else float(value)


def is_problem(path: str | PathLike[str]) -> bool:
    """Whether a file's name says that it holds a problem, not a network."""
    return Path(path).name.lower().endswith(FORMATS)
