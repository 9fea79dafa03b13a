"""VNN-LIB 2, parsed by the package ``vnnlib`` and written as VNN-LIB 1: inputs are numbered row by row, one after the other."""

import re
from math import prod
from typing import Any, Final

from tessella.errors import FileError, UnsupportedModel
from tessella.packages import needed

_FIRST: Final = re.compile(r"(?:\s|;[^\n]*\n)*\(\s*(?:vnnlib-version|declare-network)\b")
_COMPARISONS: Final = {"LessEqual": "<=", "LessThan": "<", "GreaterEqual": ">=", "GreaterThan": ">", "Equal": "="}
_JOINED: Final = {"And": "and", "Or": "or", "Plus": "+", "Minus": "-", "Multiply": "*", "Negate": "-"}


def is_version_2(text: str) -> bool:
    """Whether a property's first command is one of VNN-LIB 2."""
    return _FIRST.match(text) is not None


def as_version_1(text: str, name: str) -> str:
    """What a property says, in VNN-LIB 1; messages call it by its name."""
    vnnlib = needed("vnnlib", f"{name}: this is VNN-LIB 2, and reading it needs the package vnnlib: pip install vnnlib")
    try:
        query = vnnlib.parse_query_string(text)
    except Exception as error:
        found = re.search(r'"message": "([^"]*)"', str(error))
        line = re.search(r'"line": (\d+)', str(error))
        reason = f"{found[1]}, line {line[1]}" if found and line else (str(error).strip().splitlines() or ["no reason given"])[0]
        msg = f"{name}: cannot be read as VNN-LIB 2 ({reason[:200]})"
        raise FileError(msg) from error
    if len(query.networks) != 1:
        msg = f"{name}: speaks of {len(query.networks)} networks; a property of one network can be read"
        raise UnsupportedModel(msg)
    starts, count = dict[str, int](), 0
    for entry in query.networks[0].inputs:
        starts[entry.name] = count
        count += prod(entry.shape)
    shapes = {entry.name: list(entry.shape) for entry in query.networks[0].inputs}
    lines = [f"(declare-const X_{number} Real)" for number in range(count)]
    return "\n".join([*lines, *(f"(assert {_written(part.expr, starts, shapes, name)})" for part in query.assertions)])


def _written(node: Any, starts: dict[str, int], shapes: dict[str, list[int]], name: str) -> str:
    kind = type(node).__name__
    if kind == "Var":
        if node.name not in starts:
            return "Y_0"  # an output, or a value inside: whatever is said of these is taken as true
        place = 0
        for index, size in zip(node.indices, shapes[node.name], strict=True):
            place = place * size + index
        return f"X_{starts[node.name] + place}"
    if hasattr(node, "lexeme"):
        return str(node.lexeme)
    if kind not in _COMPARISONS and kind not in _JOINED:
        msg = f"{name}: {str(node)[:60]!r} is not read; write the property with and, or, <=, >= and == only"
        raise UnsupportedModel(msg)
    parts = " ".join(_written(part, starts, shapes, name) for part in node.children())
    return f"({_COMPARISONS.get(kind) or _JOINED[kind]} {parts})"
