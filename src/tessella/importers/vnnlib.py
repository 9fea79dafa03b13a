"""Read the input boxes of VNN-LIB 1.0 properties, the format of the verification competition VNN-COMP.

A property constrains inputs ``X_0, X_1, ...`` and outputs ``Y_0, Y_1, ...`` of a network.  Only the inputs matter here:
whatever is said about outputs is taken as true, and what is left is a union of boxes.  Formulas are reduced while they are
read, each to its *cases*: sets of bounds, of which at least one must hold.
"""

import gzip
import io
import math
import operator
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, NoReturn, TypeAlias, final

import numpy as np

from tessella.domain import Box
from tessella.errors import DomainError, FileError, UnsupportedModel
from tessella.importers.door import existing_file, reading

MAX_BYTES: Final = 256 * 2**20
MAX_DEPTH: Final = 200
MAX_BOXES: Final = 10_000
MAX_NUMBERS: Final = 50_000_000  # in the corners of all boxes together
MAX_STEPS: Final = 10_000_000  # bounds looked at while disjunctions are multiplied out

_TOKEN: Final = re.compile(r'[^\s()";|]+|[()]|;[^\n]*|"[^"]*"|\|[^|]*\||["|]')
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INPUT: Final = re.compile(r"X_(0|[1-9][0-9]{0,8})")
_OUTPUT: Final = re.compile(r"Y_(0|[1-9][0-9]{0,8})")

_MIRRORED: Final = {"<=": ">=", ">=": "<=", "<": ">", ">": "<", "=": "="}
_HOLDS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}
_ARITHMETIC: Final[dict[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: left / right,
}
_DECLARATIONS: Final = {"declare-const": 3, "declare-fun": 4}  # and how many words they have
_WITHOUT_MEANING: Final = frozenset(
    {"set-logic", "set-info", "set-option", "check-sat", "get-model", "get-value", "echo", "exit"}
)
_NEXT_VERSION: Final = frozenset({"vnnlib-version", "declare-network"})

_Case: TypeAlias = dict[int, tuple[float, float]]


@dataclass(frozen=True, slots=True, eq=False)
class _Formula:
    cases: list[_Case]


@dataclass(frozen=True, slots=True)
class _Input:
    index: int


@dataclass(frozen=True, slots=True)
class _Term:
    reads_inputs: bool


@dataclass(frozen=True, slots=True)
class _Assertion:
    start: int
    end: int
    cases: list[_Case]


_Operand: TypeAlias = float | _Input | _Term
_Item: TypeAlias = str | _Operand | _Formula | None

_TRUE: Final = _Formula([{}])
_FALSE: Final = _Formula([])


def read_domains(path: str | os.PathLike[str]) -> tuple[Box, ...]:
    """Read the input boxes of a VNN-LIB property file, plain (``.vnnlib``) or compressed (``.vnnlib.gz``).

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    One box, or several if the property is a disjunction over inputs.  Equal boxes appear once; boxes may overlap.
    """
    place, name = existing_file(path), str(path)
    with reading(name, "a VNN-LIB property"):
        return parse_domains(_text(place, name), name)


def parse_domains(text: str, name: str) -> tuple[Box, ...]:
    """Read the input boxes of a VNN-LIB property.

    Strict bounds are taken as closed, and constraints on outputs as true.

    Parameters
    ----------
    text
        The property.
    name
        What to call it in messages.

    Examples
    --------
    >>> parse_domains("(declare-const X_0 Real) (assert (<= X_0 1)) (assert (>= X_0 (/ -1 2)))", "half")
    (Box([-0.5, 1]),)
    """
    return _Property(text.replace("\r\n", "\n").replace("\r", "\n"), name).boxes()


def _text(path: Path, name: str) -> str:
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if data.startswith(b"\x1f\x8b"):
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
            data = unpacked.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        msg = f"{name}: has more than {MAX_BYTES >> 20} MiB of text; split the property into several files"
        raise FileError(msg)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        msg = f"{name}, line {line}: byte 0x{data[error.start]:02x} is not text in UTF-8; a VNN-LIB property is plain text"
        raise FileError(msg) from error


def _narrow(case: _Case, other: _Case) -> bool:
    """Intersect a case with another in place; False if nothing is left."""
    for index, ends in other.items():
        before = case.get(index)
        both = ends if before is None else (max(before[0], ends[0]), min(before[1], ends[1]))
        if both[0] > both[1]:
            return False
        case[index] = both
    return True


def _relative(case: _Case, base: _Case) -> _Case | None:
    """Keep what a case adds to the bounds that hold anyway; None if nothing is left."""
    added: _Case = {}
    for index, (lower, upper) in case.items():
        around = base.get(index, (-math.inf, math.inf))
        both = max(around[0], lower), min(around[1], upper)
        if both[0] > both[1]:
            return None
        if both != around:
            added[index] = both
    return added


@final
class _Property:
    """A property while it is read."""

    __slots__ = ("_base", "_choices", "_contradiction", "_end", "_inputs", "_name", "_start", "_steps", "_text")

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name
        self._start = self._end = 0  # of the expression that is being reduced
        self._steps = 0
        self._inputs: dict[str, _Input] = {}
        self._base: _Case = {}  # the bounds that hold in every box
        self._choices: list[_Assertion] = []
        self._contradiction: _Assertion | None = None

    def boxes(self) -> tuple[Box, ...]:
        self._read()
        dim = self._dim()
        if self._contradiction is not None:
            self._contradict(self._contradiction)
        cases: list[_Case] = [{}]
        for choice in self._choices:
            self._start, self._end = choice.start, choice.end
            relative = (_relative(case, self._base) for case in choice.cases)
            cases = self._product(cases, [case for case in relative if case is not None])
            if not cases:
                self._contradict(choice)
        if len(cases) * dim * 2 > MAX_NUMBERS:
            self._too_many(f"{len(cases):,} boxes of {dim:,} inputs each")
        return tuple(dict.fromkeys(self._boxes(cases, dim)))

    # Reading

    def _read(self) -> None:
        """Find the expressions, and reduce each as soon as it closes: a stack instead of recursion."""
        starts: list[int] = []
        stack: list[list[_Item]] = []
        for match in _TOKEN.finditer(self._text):
            word = match[0]
            if word == "(":
                starts.append(match.start())
                stack.append([])
                if len(stack) > MAX_DEPTH:
                    self._fail(f"parentheses are nested more than {MAX_DEPTH} deep; flatten the formula", match.start())
            elif word == ")":
                if not stack:
                    self._fail("this ')' closes nothing; remove it, or add the '(' that is missing", match.start())
                self._start, self._end = starts.pop(), match.end()
                self._close(stack.pop(), stack)
            elif word[0] != ";":
                if not stack or word in {'"', "|"}:
                    self._misplaced(word, match.start())
                stack[-1].append(word)
        if stack:
            self._fail("the '(' that opens here is never closed; was the file cut short?", starts[-1])

    def _close(self, items: list[_Item], stack: list[list[_Item]]) -> None:
        if not stack:
            self._command(items)
            return
        command = stack[0][0] if stack[0] else None
        stack[-1].append(None if isinstance(command, str) and command in _WITHOUT_MEANING else self._reduce(items))

    def _misplaced(self, word: str, start: int) -> NoReturn:
        if word in {'"', "|"}:
            self._fail(f"the {word} that opens here is never closed; add the second one", start)
        self._fail(f"found {word[:40]!r} outside of parentheses; expected a command such as (assert ...)", start)

    def _command(self, items: list[_Item]) -> None:
        head = items[0] if items else None
        if head == "assert":
            self._assert(items)
        elif isinstance(head, str) and head in _DECLARATIONS:
            self._declare(head, items)
        elif isinstance(head, str) and head in _NEXT_VERSION:
            self._unsupported("this is VNN-LIB 2; only VNN-LIB 1 (declare-const, assert) can be read")
        elif not isinstance(head, str) or head not in _WITHOUT_MEANING:
            self._fail(f"{self._snippet()} is no command of VNN-LIB 1; expected declare-const or assert")

    def _declare(self, head: str, items: list[_Item]) -> None:
        name, sort = (items[1], items[-1]) if len(items) == _DECLARATIONS[head] else (None, None)
        if not isinstance(name, str) or not isinstance(sort, str) or (head == "declare-fun" and items[2] is not None):
            self._fail(f"{self._snippet()} cannot be read; declare an input as (declare-const X_0 Real)")
        found = _INPUT.fullmatch(name)
        if found is None:
            if _OUTPUT.fullmatch(name) is None:
                self._fail(f"{name[:40]!r} is declared; only inputs X_0, X_1, ... and outputs Y_0, Y_1, ... can be")
            return
        if sort != "Real":
            self._unsupported(f"{name} is declared as {sort[:40]!r}; inputs must be Real")
        if name in self._inputs:
            self._fail(f"{name} is declared a second time; remove one declaration, or read two properties from two files")
        self._inputs[name] = _Input(int(found[1]))

    def _assert(self, items: list[_Item]) -> None:
        if len(items) != 2:
            self._fail(f"{self._snippet()} asserts {len(items) - 1} formulas; give exactly one, joined by and")
        made = _Assertion(self._start, self._end, self._formula(items[1]).cases)
        if len(made.cases) > 1:
            self._choices.append(made)
        elif self._contradiction is None and not (made.cases and _narrow(self._base, made.cases[0])):
            self._contradiction = made

    # Reducing

    def _reduce(self, items: list[_Item]) -> _Item:
        if not items:
            return None
        head = items[0]
        if isinstance(head, str):
            if head in _MIRRORED:
                return self._relation(head, items)
            if head in {"and", "or"}:
                return self._junction(head, items)
            if head in _ARITHMETIC:
                return self._arithmetic(head, items)
            if head in _DECLARATIONS or head == "assert":
                self._fail(f"{head} inside of another expression; was a ')' lost before it?")
        return self._unsupported(f"{self._snippet()} is not read; write the formula with and, or, <=, >= and = only")

    def _relation(self, head: str, items: list[_Item]) -> _Formula:
        values = [self._operand(item) for item in items[1:]]
        if len(values) < 2:
            self._fail(f"{self._snippet()} compares nothing; {head} needs two sides")
        if len(values) == 2:
            return self._compare(head, values[0], values[1])
        return self._conjunction([self._compare(head, left, right) for left, right in pairwise(values)])

    def _compare(self, head: str, left: _Operand, right: _Operand) -> _Formula:
        if isinstance(left, float):
            if isinstance(right, float):
                return _TRUE if _HOLDS[head](left, right) else _FALSE
            head, left, right = _MIRRORED[head], right, left
        if isinstance(left, _Input) and isinstance(right, float):
            lower = -math.inf if head in {"<=", "<"} else right
            upper = math.inf if head in {">=", ">"} else right
            return _Formula([{left.index: (lower, upper)}])
        if any(isinstance(side, _Input) or (isinstance(side, _Term) and side.reads_inputs) for side in (left, right)):
            self._unsupported(f"{self._snippet()} is not a bound on one input; only boxes can be read, such as (<= X_0 0.5)")
        return _TRUE

    def _operand(self, item: _Item) -> _Operand:
        if isinstance(item, (float, _Term)):
            return item
        if not isinstance(item, str):
            self._fail(f"{self._snippet()} has a formula where a number or a variable should be")
        declared = self._inputs.get(item)
        if declared is not None:
            return declared
        if _NUMBER.fullmatch(item):
            return self._finite(float(item))
        if _OUTPUT.fullmatch(item):
            return _Term(reads_inputs=False)
        hint = (
            "declare it first"
            if _INPUT.fullmatch(item)
            else "expected a number, an input X_0, X_1, ... or an output Y_0, Y_1, ..."
        )
        return self._fail(f"{item[:40]!r} in {self._snippet()} is not known; {hint}")

    def _arithmetic(self, head: str, items: list[_Item]) -> float | _Term:
        values = [self._operand(item) for item in items[1:]]
        numbers = [value for value in values if isinstance(value, float)]
        if not values or (len(values) < 2 and head in {"*", "/"}):
            self._fail(f"{self._snippet()} has too few numbers; {head} needs more")
        if len(numbers) < len(values):
            return _Term(any(isinstance(value, _Input) or (isinstance(value, _Term) and value.reads_inputs) for value in values))
        if head == "/" and 0.0 in numbers[1:]:
            self._fail(f"{self._snippet()} divides by zero")
        result = -numbers[0] if head == "-" and len(numbers) == 1 else numbers[0]
        for number in numbers[1:]:
            result = _ARITHMETIC[head](result, number)
        return self._finite(result)

    def _finite(self, number: float) -> float:
        if not math.isfinite(number):
            self._fail(f"a number in {self._snippet()} is too large for double precision; give a smaller one")
        return number + 0.0  # -0.0 becomes 0.0

    def _formula(self, item: _Item) -> _Formula:
        if isinstance(item, _Formula):
            return item
        if item == "true":
            return _TRUE
        if item == "false":
            return _FALSE
        return self._fail(f"{self._snippet()} should hold a formula such as (<= X_0 0.5), and holds something else")

    def _junction(self, head: str, items: list[_Item]) -> _Formula:
        formulas = [self._formula(item) for item in items[1:]]
        if not formulas:
            self._fail(f"{self._snippet()} joins nothing; put formulas into it, or remove it")
        if len(formulas) == 1:
            return formulas[0]
        if head == "and":
            return self._conjunction(formulas)
        cases = [case for formula in formulas for case in formula.cases]
        return _Formula(cases) if all(cases) else _TRUE  # a case without bounds holds everywhere

    def _conjunction(self, formulas: list[_Formula]) -> _Formula:
        base: _Case = {}
        choices: list[list[_Case]] = []
        for formula in formulas:
            if len(formula.cases) != 1:
                choices.append(formula.cases)
            elif not _narrow(base, formula.cases[0]):
                return _FALSE
        if not base and len(choices) == 1:
            return _Formula(choices[0])
        cases = [base]
        for choice in choices:
            cases = self._product(cases, choice)
        return _Formula(cases)

    def _product(self, left: list[_Case], right: list[_Case]) -> list[_Case]:
        """Every case of one formula intersected with every case of another, without the empty ones and repetitions."""
        kept: dict[frozenset[tuple[int, tuple[float, float]]], _Case] = {}
        for first in left:
            for second in right:
                self._steps += len(first) + len(second) + 1
                if self._steps > MAX_STEPS:
                    self._too_many("too many combinations")
                case = dict(first)
                if _narrow(case, second):
                    _ = kept.setdefault(frozenset(case.items()), case)
                    if len(kept) > MAX_BOXES:
                        self._too_many(f"more than {MAX_BOXES:,} boxes")
        return list(kept.values())

    # Finishing

    def _dim(self) -> int:
        """How many inputs are declared, if they are X_0 to X_{n-1}."""
        if not self._inputs:
            msg = f"{self._name}: no inputs are declared; a VNN-LIB property declares them as (declare-const X_0 Real)"
            raise FileError(msg)
        indices = {variable.index for variable in self._inputs.values()}
        missing = next((index for index in range(len(indices)) if index not in indices), None)
        if missing is not None:
            msg = f"{self._name}: X_{max(indices)} is declared, but X_{missing} is not; declare every input from X_0 on"
            raise FileError(msg)
        return len(indices)

    def _boxes(self, cases: list[_Case], dim: int) -> list[Box]:
        lower, upper = np.full(dim, -np.inf), np.full(dim, np.inf)
        for index, ends in self._base.items():
            lower[index], upper[index] = ends
        made: list[Box] = []
        for case in cases:
            low, high = lower.copy(), upper.copy()
            for index, ends in case.items():
                low[index], high[index] = ends
            for end, side in ((low, "lower"), (high, "upper")):
                if not np.isfinite(end).all():
                    where = int(np.argmin(np.isfinite(end)))
                    msg = f"{self._name}: input X_{where} has no {side} bound; bound every input on both sides"
                    raise DomainError(msg)
            try:
                with np.errstate(over="ignore"):
                    made.append(Box(low, high))
            except DomainError as error:
                msg = f"{self._name}: {error}"
                raise DomainError(msg) from error
        return made

    # Complaining

    def _place(self, start: int | None = None) -> str:
        return f"{self._name}, line {self._text.count(chr(10), 0, self._start if start is None else start) + 1}"

    def _snippet(self) -> str:
        words = " ".join(self._text[self._start : min(self._end, self._start + 200)].split())
        shown = words if len(words) <= 60 else words[:57] + "..."
        return shown if shown.isprintable() else repr(shown)

    def _fail(self, what: str, start: int | None = None) -> NoReturn:
        msg = f"{self._place(start)}: {what}"
        raise FileError(msg)

    def _unsupported(self, what: str) -> NoReturn:
        msg = f"{self._place()}: {what}"
        raise UnsupportedModel(msg)

    def _too_many(self, what: str) -> NoReturn:
        self._unsupported(f"the disjunctions over inputs make {what}; split the property into several files")

    def _contradict(self, assertion: _Assertion) -> NoReturn:
        self._start, self._end = assertion.start, assertion.end
        msg = f"{self._place()}: {self._snippet()} leaves no input, given the other assertions; check the bounds"
        raise DomainError(msg)
