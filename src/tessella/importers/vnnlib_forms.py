"""What a VNN-LIB property says of inputs: sums of inputs, and the ranges in which they must lie.

A *form* is an input, by its number, or a sum of several with their coefficients, the first of which is positive.  A *case* is a set of ranges of forms that
hold together.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from tessella.domain import Box, Domain, Polytope
from tessella.errors import DomainError
from tessella.network import Floats

Form: TypeAlias = int | tuple[tuple[int, float], ...]
Case: TypeAlias = dict[Form, tuple[float, float]]

MIRRORED: Final = {"<=": ">=", ">=": "<=", "<": ">", ">": "<", "=": "="}
HOLDS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}


@dataclass(frozen=True, slots=True)
class Sum:
    """Inputs with coefficients, and a constant."""

    coefficients: Mapping[int, float]
    constant: float = 0.0

    def scaled(self, factor: float) -> "Sum":
        """All of it times a number."""
        return Sum({index: factor * value for index, value in self.coefficients.items()}, factor * self.constant)


@dataclass(frozen=True, slots=True)
class Other:
    """A term that is no sum of inputs, such as an output."""

    reads_inputs: bool


Operand: TypeAlias = float | Sum | Other


def reads_inputs(operand: Operand) -> bool:
    """Whether a term depends on an input."""
    return isinstance(operand, Sum) or (isinstance(operand, Other) and operand.reads_inputs)


def calculated(head: str, values: Sequence[Operand]) -> Operand:
    """The value of an expression; its numbers may overflow, and nothing is divided by zero."""
    if any(isinstance(value, Other) for value in values):
        return Other(any(map(reads_inputs, values)))
    first, *others = values
    if head in {"*", "/"}:
        for value in others:
            if head == "/" and isinstance(value, float):
                first = first.scaled(1.0 / value) if isinstance(first, Sum) else _as_sum(first).constant / value
            elif head == "*" and isinstance(first, float):
                first = value.scaled(first) if isinstance(value, Sum) else first * _as_sum(value).constant
            elif head == "*" and isinstance(first, Sum) and isinstance(value, float):
                first = first.scaled(value)
            else:
                return Other(reads_inputs=True)
        return first
    total = _as_sum(first).scaled(-1.0) if head == "-" and not others else _as_sum(first)
    for value in others:
        total = _added(total, _as_sum(value).scaled(-1.0 if head == "-" else 1.0))
    return total if any(isinstance(value, Sum) for value in values) else total.constant


def ranges(head: str, left: Operand, right: Operand) -> Case | bool | None:
    """What a comparison says of inputs, or whether it holds whatever they are; None where it is about more than a sum of inputs.

    Strict bounds are taken as closed.
    """
    if isinstance(left, Other) or isinstance(right, Other):
        return None if reads_inputs(left) or reads_inputs(right) else True
    difference = _added(_as_sum(left), _as_sum(right).scaled(-1.0))
    terms = sorted((index, value) for index, value in difference.coefficients.items() if value)
    if not terms:
        return HOLDS[head](difference.constant, 0.0)
    size = terms[0][1] if len(terms) == 1 else math.copysign(1.0, terms[0][1])
    end, head = 0.0 - difference.constant / size, head if size > 0.0 else MIRRORED[head]
    form = terms[0][0] if len(terms) == 1 else tuple((index, value / size) for index, value in terms)
    return {form: (-math.inf if head in {"<=", "<"} else end, math.inf if head in {">=", ">"} else end)}


def is_finite(operand: Operand) -> bool:
    """Whether all its numbers can be computed with."""
    if isinstance(operand, Sum):
        return all(map(math.isfinite, (operand.constant, *operand.coefficients.values())))
    return isinstance(operand, Other) or math.isfinite(operand)


def _as_sum(value: Operand) -> Sum:
    return value if isinstance(value, Sum) else Sum({}, value if isinstance(value, float) else 0.0)


def _added(one: Sum, other: Sum) -> Sum:
    terms = dict(one.coefficients)
    for index, value in other.coefficients.items():
        terms[index] = terms.get(index, 0.0) + value
    return Sum(terms, one.constant + other.constant)


def narrow(case: Case, other: Case) -> bool:
    """Intersect a case with another in place; False if nothing is left."""
    for form, ends in other.items():
        before = case.get(form)
        both = ends if before is None else (max(before[0], ends[0]), min(before[1], ends[1]))
        if both[0] > both[1]:
            return False
        case[form] = both
    return True


def relative(case: Case, base: Case) -> Case | None:
    """Keep what a case adds to the ranges that hold anyway; None if nothing is left."""
    added: Case = {}
    for form, (lower, upper) in case.items():
        around = base.get(form, (-math.inf, math.inf))
        both = max(around[0], lower), min(around[1], upper)
        if both[0] > both[1]:
            return None
        if both != around:
            added[form] = both
    return added


def domain(case: Case, dim: int) -> Domain:
    """The inputs of a case, so many in all: a box, or a polytope in it."""
    low, high = np.full(dim, -np.inf), np.full(dim, np.inf)
    for form, ends in case.items():
        if isinstance(form, int):
            low[form], high[form] = ends
    rows, offsets = _inequalities(case, dim)
    closed = bool(np.isfinite(low).all() and np.isfinite(high).all())
    if rows and closed:
        return Polytope(np.array(rows), np.array(offsets), Box(low, high))
    if rows:  # the inequalities may bound what no range does
        for sign, ends in ((-1.0, low), (1.0, high)):
            chosen = np.flatnonzero(np.isfinite(ends))
            rows += list(sign * np.eye(dim)[chosen])
            offsets += (sign * ends[chosen]).tolist()
        made = Polytope(np.array(rows), np.array(offsets))
        if made.box.bounded:
            return made
    for end, side in ((low, "lower"), (high, "upper")):
        if not np.isfinite(end).all():
            msg = f"input X_{int(np.argmin(np.isfinite(end)))} has no {side} bound; bound every input on both sides"
            raise DomainError(msg)
    with np.errstate(over="ignore"):
        return Box(low, high)


def _inequalities(case: Case, dim: int) -> tuple[list[Floats], list[float]]:
    """The ranges of sums as rows of ``matrix @ x <= offset``."""
    rows, offsets = list[Floats](), list[float]()
    for form, ends in case.items():
        if isinstance(form, int):
            continue
        row = np.zeros(dim)
        row[[index for index, _ in form]] = [value for _, value in form]
        for sign, end in ((-1.0, ends[0]), (1.0, ends[1])):
            if math.isfinite(end):
                rows.append(sign * row)
                offsets.append(sign * end)
    return rows, offsets
