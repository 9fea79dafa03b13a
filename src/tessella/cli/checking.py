"""The command that checks certificates: `verify`."""

from typing import Annotated

import typer

import tessella
from tessella.cli.groups import Printing, grouped
from tessella.cli.later import drawing
from tessella.cli.options import FAILED
from tessella.cli.structure import app
from tessella.errors import OptionError
from tessella.files import writing


@app.command()
@grouped
def verify(
    *,
    certificate: Annotated[
        str | None, typer.Argument(metavar="CERTIFICATE", help="A file that --certificate wrote.", show_default=False)
    ] = None,
    processes: Annotated[int, typer.Option("--processes", metavar="N", help="Check with so many processes.")] = 1,
    checker: Annotated[
        str | None,
        typer.Option(
            "--checker", metavar="FILE", help="Write the checker, one file of Python, to this place.", show_default=False
        ),
    ] = None,
    printing: Printing,
) -> None:
    """Check a certificate, with a program of 200 lines that shares no code with the rest of Tessella.

    It runs in a Python of its own.  --checker writes it to a file, so that others can check certificates without Tessella.  The exit code is 1 if a certificate is refused.

    Examples
    --------
        tessella count model.onnx --box 0,1 --certificate count.cert.gz

        tessella verify count.cert.gz

        tessella verify --checker verify.py

        python verify.py count.cert.gz
    """
    from tessella.certificates.verification import CHECKER  # noqa: PLC0415  loads numpy

    if certificate is None and checker is None:
        msg = "give a certificate, as in 'tessella verify count.cert.gz', or --checker verify.py"
        raise OptionError(msg)
    if checker is not None:
        with writing(checker) as file:
            file.write(CHECKER.read_bytes())
    if certificate is None:
        return
    found = tessella.verify(certificate, workers=processes)
    if printing.as_json:
        drawing.print_json(found.to_dict())
    elif printing.quiet:
        typer.echo("verified" if found.accepted else "refused")
    else:
        typer.echo(found.said)
    if not found.accepted:
        raise typer.Exit(FAILED)
