"""The command that checks certificates: `verify`."""

import typer

import tessella
from tessella.cli import options
from tessella.cli.app import command
from tessella.cli.groups import Printing
from tessella.cli.later import drawing
from tessella.cli.meanings import FAILED
from tessella.errors import OptionError
from tessella.files import writing


@command
def verify(
    *,
    certificate: options.VerifyCertificate = None,
    processes: options.VerifyProcesses = 1,
    checker: options.VerifyChecker = None,
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
