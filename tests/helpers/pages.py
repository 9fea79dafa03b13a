"""Pages in Markdown whose code runs: blocks of Python one after the other, and what a person types in a shell."""

import ast
import io
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(python|console|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"\s# -> (.*)$")


class Block(NamedTuple):
    """A piece of code, and where it is."""

    place: str
    language: str
    code: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    name = page.relative_to(ROOT)
    return [Block(f"{name}:{text[: found.start()].count(chr(10)) + 1}", *found.groups()) for found in BLOCK.finditer(text)]


def run_python(block, scope):
    """Run it; an expression with ``# -> text`` behind it must print that text, and so must a ``print``."""
    lines = block.code.split("\n")
    for statement in ast.parse(block.code).body:
        source = "\n".join(lines[statement.lineno - 1 : statement.end_lineno])
        expected = SHOWN.search(lines[statement.end_lineno - 1])
        code = compile(ast.Module([statement], []), block.place, "exec")
        if not expected:
            exec(code, scope)
            continue
        printed, value = io.StringIO(), None
        with redirect_stdout(printed):
            if isinstance(statement, ast.Expr):
                value = eval(compile(ast.Expression(statement.value), block.place, "eval"), scope)
            else:
                exec(code, scope)
        said = printed.getvalue().strip() or str(value)
        assert said == expected[1].strip(), f"{block.place}: {source}\nit says: {said}"


def run_commands(block, run):
    """Run each line that calls Tessella; after ``$ `` the lines below are what it prints, but for times."""
    commands = re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:] if block.language == "console" else block.code.splitlines()
    for command in commands:
        line, _, expected = command.partition("\n")
        words = shlex.split(line, comments=True)
        if words[:1] != ["tessella"]:
            continue
        ended = run(*words[1:])
        assert ended.code == 0, f"{block.place}: {line}\n{ended.err}"
        if expected.strip():
            assert without_times(expected) in without_times(ended.out), f"{block.place}: {line}\nit says:\n{ended.out}"


def without_times(text):
    """The words, with every number of seconds taken for the same."""
    text = re.sub(r"\d+\.\d+( s\b|(?= +\w+:)|(?= +at most)|(?= +exactly))", "0.0\\1", text)
    return " ".join(text.split())
