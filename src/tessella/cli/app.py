"""The program that commands belong to; `tessella.cli.everything` has it with all of them."""

from collections.abc import Callable
from typing import Annotated

import typer

import tessella
from tessella.cli import options
from tessella.cli.groups import Commands, grouped

app = typer.Typer(
    name="tessella",
    help="How many linear regions does a ReLU network have?",
    epilog="Start with: tessella demo",
    no_args_is_help=True,
    cls=Commands,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:  # noqa: FBT001  the framework calls it so
    if asked:
        typer.echo(f"tessella {tessella.__version__}")
        raise typer.Exit


@app.callback()
def start(
    *,
    _asked: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
    _debug: options.Debug = False,
) -> None:
    """How many linear regions does a ReLU network have?"""


def command(function: Callable[..., None]) -> Callable[..., None]:
    """A command of the program, with the options of its groups."""
    return app.command()(grouped(function))
