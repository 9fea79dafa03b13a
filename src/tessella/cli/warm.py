"""The command that compiles: `warm`."""

import typer

from tessella.cli.app import command
from tessella.cli.groups import Printing
from tessella.cli.later import drawing

COMPILED = tuple(f"tessella.{room}" for room in ("kernel", "cells", "vertices", "counting", "estimating"))
"""The packages with compiled code."""


@command
def warm(*, printing: Printing) -> None:
    """Compile all that any command may call, once on a machine, so that no later one waits for it.

    Without this, each command compiles what it calls when it is first used, and says so.

    Examples
    --------
        tessella warm
    """
    from tessella.kernel import warming  # noqa: PLC0415  loads the compiler

    wanted = warming.everything(*COMPILED)
    new = len(warming.missing(wanted))
    with drawing.progress_bar("compiling", shown=printing.shown) as tick:
        seconds = warming.load(wanted, tick)
    folder = warming.folder(wanted)
    if printing.as_json:
        drawing.print_json({"functions": len(wanted), "compiled": new, "seconds": seconds, "folder": folder})
    elif printing.quiet:
        typer.echo(str(new))
    else:
        done = (
            f"{new} of {len(wanted)} functions were compiled in {seconds:.1f} s"
            if new
            else f"All {len(wanted)} functions are compiled already"
        )
        where = f"They are kept in {folder}." if folder else "They cannot be kept: no folder can be written."
        typer.echo(f"{done}. {where}")
