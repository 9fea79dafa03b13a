"""Read the inputs of VNN-LIB properties, the format of the verification competition VNN-COMP.

A property constrains inputs ``X_0, X_1, ...`` and outputs ``Y_0, Y_1, ...`` of a network.  Only the inputs matter here:
whatever is said about outputs is taken as true, and what is left is a union of boxes and polytopes.  Formulas are reduced while they are
read, each to its *cases*: sets of ranges, of which at least one must hold.
"""

import gzip
import io
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, NoReturn, TypeAlias, final

from tessella.domain import Domain
from tessella.errors import DomainError, FileError, UnsupportedModel
from tessella.importers.door import existing_file, reading
from tessella.importers.vnnlib2 import as_version_1, is_version_2
from tessella.importers.vnnlib_forms import (
    HOLDS,
    Case,
    Form,
    Operand,
    Other,
    Sum,
    calculated,
    domain,
    is_finite,
    narrow,
    ranges,
    relative,
)

MAX_BYTES: Final = 256 * 2**20
MAX_DEPTH: Final = 200
MAX_BOXES: Final = 10_000
MAX_NUMBERS: Final = 50_000_000  # in the corners of all boxes together
MAX_STEPS: Final = 10_000_000  # bounds looked at while disjunctions are multiplied out

_TOKEN: Final = re.compile(r'[^\s()";|]+|[()]|;[^\n]*|"[^"]*"|\|[^|]*\||["|]')
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INPUT: Final = re.compile(r"X_(0|[1-9][0-9]{0,8})")
_OUTPUT: Final = re.compile(r"Y_(0|[1-9][0-9]{0,8})")

_ARITHMETIC: Final = frozenset({"+", "-", "*", "/"})
_DECLARATIONS: Final = {"declare-const": 3, "declare-fun": 4}  # and how many words they have
_WITHOUT_MEANING: Final = frozenset(
    {"set-logic", "set-info", "set-option", "check-sat", "get-model", "get-value", "echo", "exit"}
)


@dataclass(frozen=True, slots=True, eq=False)
class _Formula:
    cases: list[Case]


@dataclass(frozen=True, slots=True)
class _Assertion:
    start: int
    end: int
    cases: list[Case]


_Item: TypeAlias = str | Operand | _Formula | None

_TRUE: Final = _Formula([{}])
_FALSE: Final = _Formula([])


def read_domains(path: str | os.PathLike[str]) -> tuple[Domain, ...]:
    """Read the input boxes of a VNN-LIB property file, plain (``.vnnlib``) or compressed (``.vnnlib.gz``).

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    One box, or several if the property is a disjunction over inputs; a polytope where it has linear constraints on several inputs.  Equal ones appear once;
    they may overlap.
    """
    place, name = existing_file(path), str(path)
    with reading(name, "a VNN-LIB property"):
        return parse_domains(_text(place, name), name)


def parse_domains(text: str, name: str) -> tuple[Domain, ...]:
    """Read the input boxes of a VNN-LIB property; messages call it by its name.

    Strict bounds are taken as closed, and constraints on outputs as true.

    Examples
    --------
    >>> parse_domains("(declare-const X_0 Real) (assert (<= X_0 1)) (assert (>= X_0 (/ -1 2)))", "half")
    (Box([-0.5, 1]),)
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _Property(as_version_1(text, name) if is_version_2(text) else text, name).domains()


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


@final
class _Property:
    """A property while it is read."""

    __slots__ = ("_base", "_choices", "_contradiction", "_end", "_inputs", "_name", "_start", "_steps", "_text")

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name
        self._start = self._end = 0  # of the expression that is being reduced
        self._steps = 0
        self._inputs: dict[str, Sum] = {}
        self._base: Case = {}  # the bounds that hold in every box
        self._choices: list[_Assertion] = []
        self._contradiction: _Assertion | None = None

    def domains(self) -> tuple[Domain, ...]:
        self._read()
        dim = self._dim()
        if self._contradiction is not None:
            self._contradict(self._contradiction)
        cases: list[Case] = [{}]
        for choice in self._choices:
            self._start, self._end = choice.start, choice.end
            added = (relative(case, self._base) for case in choice.cases)
            cases = self._product(cases, [case for case in added if case is not None])
            if not cases:
                self._contradict(choice)
        if len(cases) * dim * 2 > MAX_NUMBERS:
            self._too_many(f"{len(cases):,} boxes of {dim:,} inputs each")
        made = tuple(dict.fromkeys(self._made(cases, dim)))
        if not made:
            msg = f"{self._name}: all {len(cases)} of its polytopes are empty or have no interior; check the constraints"
            raise DomainError(msg)
        return made

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
        self._inputs[name] = Sum({int(found[1]): 1.0})

    def _assert(self, items: list[_Item]) -> None:
        if len(items) != 2:
            self._fail(f"{self._snippet()} asserts {len(items) - 1} formulas; give exactly one, joined by and")
        made = _Assertion(self._start, self._end, self._formula(items[1]).cases)
        if len(made.cases) > 1:
            self._choices.append(made)
        elif self._contradiction is None and not (made.cases and narrow(self._base, made.cases[0])):
            self._contradiction = made

    # Reducing

    def _reduce(self, items: list[_Item]) -> _Item:
        if not items:
            return None
        head = items[0]
        if isinstance(head, str):
            if head in HOLDS:
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

    def _compare(self, head: str, left: Operand, right: Operand) -> _Formula:
        case = ranges(head, left, right)
        if case is None:
            self._unsupported(
                f"{self._snippet()} is not linear in the inputs alone; only linear constraints on inputs can be read, such as (<= (+ X_0 X_1) 0.5)"
            )
        if isinstance(case, bool):
            return _TRUE if case else _FALSE
        if not all(math.isfinite(end) for low, high in case.values() for end in (low, high) if end not in {-math.inf, math.inf}):
            self._fail(f"a number in {self._snippet()} is too large for double precision; give a smaller one")
        return _Formula([case])

    def _operand(self, item: _Item) -> Operand:
        if isinstance(item, (float, Sum, Other)):
            return item
        if not isinstance(item, str):
            self._fail(f"{self._snippet()} has a formula where a number or a variable should be")
        declared = self._inputs.get(item)
        if declared is not None:
            return declared
        if _NUMBER.fullmatch(item):
            return self._finite(float(item))
        if _OUTPUT.fullmatch(item):
            return Other(reads_inputs=False)
        hint = (
            "declare it first"
            if _INPUT.fullmatch(item)
            else "expected a number, an input X_0, X_1, ... or an output Y_0, Y_1, ..."
        )
        return self._fail(f"{item[:40]!r} in {self._snippet()} is not known; {hint}")

    def _arithmetic(self, head: str, items: list[_Item]) -> Operand:
        values = [self._operand(item) for item in items[1:]]
        if not values or (len(values) < 2 and head in {"*", "/"}):
            self._fail(f"{self._snippet()} has too few numbers; {head} needs more")
        if head == "/" and 0.0 in [value for value in values[1:] if isinstance(value, float)]:
            self._fail(f"{self._snippet()} divides by zero")
        return self._finite(calculated(head, values))

    def _finite(self, value: Operand) -> Operand:
        if not is_finite(value):
            self._fail(f"a number in {self._snippet()} is too large for double precision; give a smaller one")
        return value + 0.0 if isinstance(value, float) else value  # -0.0 becomes 0.0

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
        base: Case = {}
        choices: list[list[Case]] = []
        for formula in formulas:
            if len(formula.cases) != 1:
                choices.append(formula.cases)
            elif not narrow(base, formula.cases[0]):
                return _FALSE
        if not base and len(choices) == 1:
            return _Formula(choices[0])
        cases = [base]
        for choice in choices:
            cases = self._product(cases, choice)
        return _Formula(cases)

    def _product(self, left: list[Case], right: list[Case]) -> list[Case]:
        """Every case of one formula intersected with every case of another, without the empty ones and repetitions."""
        kept: dict[frozenset[tuple[Form, tuple[float, float]]], Case] = {}
        for first in left:
            for second in right:
                self._steps += len(first) + len(second) + 1
                if self._steps > MAX_STEPS:
                    self._too_many("too many combinations")
                case = dict(first)
                if narrow(case, second):
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
        indices = {index for variable in self._inputs.values() for index in variable.coefficients}
        missing = next((index for index in range(len(indices)) if index not in indices), None)
        if missing is not None:
            msg = f"{self._name}: X_{max(indices)} is declared, but X_{missing} is not; declare every input from X_0 on"
            raise FileError(msg)
        return len(indices)

    def _made(self, cases: list[Case], dim: int) -> Iterator[Domain]:
        for case in cases:
            try:
                yield domain({**self._base, **case}, dim)
            except DomainError as error:
                if len(cases) > 1 and str(error).startswith(
                    "the polytope"
                ):  # is empty or has no interior: no region has one there
                    continue
                msg = f"{self._name}: {error}"
                raise DomainError(msg) from error

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
