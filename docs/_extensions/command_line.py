"""The page of the command line, from the commands' own help."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import click
import typer
from sphinx.application import Sphinx

from tessella.cli.everything import app as commands

PLACE = "<!-- commands -->"


def setup(app: Sphinx) -> dict[str, Any]:
    """Fill in the page when it is read."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True}


def fill(_app: Sphinx, _name: str, source: list[str]) -> None:
    """Put the commands where the page wants them."""
    if PLACE in source[0]:
        source[0] = source[0].replace(PLACE, "\n".join(described()))


def described() -> Iterator[str]:
    """All commands, as Markdown."""
    group = typer.main.get_command(commands)
    for name in group.list_commands(click.Context(group)):  # type: ignore[attr-defined]
        command = group.commands[name]  # type: ignore[attr-defined]
        context = click.Context(command, info_name=f"tessella {name}")
        yield f"## tessella {name}\n"
        text, _, examples = inspect.cleandoc(command.help or "").partition("Examples\n--------\n")
        yield f"{text.strip()}\n"
        usage = " ".join(command.collect_usage_pieces(context))
        yield f"```text\ntessella {name} {usage}\n```\n"
        for parameter in command.params:
            yield from described_option(parameter, context)
        yield ""
        if examples:
            lines = [line.strip() for line in inspect.cleandoc(examples).splitlines() if line.strip()]
            yield "```sh\n" + "\n".join(lines) + "\n```\n"


def described_option(parameter: click.Parameter, context: click.Context) -> Iterator[str]:
    """One option or argument, as an item of a list."""
    record = parameter.get_help_record(context)
    if parameter.param_type_name == "argument":
        record = (re.sub(r"\W*<.*", "", str(parameter.metavar or parameter.name)), str(getattr(parameter, "help", None) or ""))
    if record is None:
        return
    names, words = record
    words = re.sub(r"\s+", " ", words).replace(" [required]", "").replace("[default: ", "(default ").replace("]", ")")
    yield f"- `{names}`: {words}" if words else f"- `{names}`"
