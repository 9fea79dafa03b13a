"""The command line: what a person types."""

import io
import sys

import typer

from tessella.cli import pictures
from tessella.errors import TessellaError


def main() -> None:
    """Run the command line; errors end in one line on stderr."""
    debug = "--debug" in sys.argv[1:]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a file's name may not exist in the terminal's alphabet
    try:
        pictures.app()  # ends in SystemExit; its own errors (a wrong option, say) in exit code 2
    except TessellaError as error:
        if debug:
            raise
        typer.echo(f"tessella: error: {error}", err=True)
        sys.exit(2)
    except Exception as error:
        if debug:
            raise
        typer.echo(f"tessella: internal error: {type(error).__name__}: {error} (--debug shows where; please report it)", err=True)
        sys.exit(1)
