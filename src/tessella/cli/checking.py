"""The command that checks certificates: `verify`."""

import typer

import tessella
from tessella.cli import options
from tessella.cli.app import command
from tessella.cli.groups import Printing, Reading
from tessella.cli.later import drawing
from tessella.cli.meanings import FAILED
from tessella.cli.where import Where
from tessella.errors import OptionError
from tessella.files import writing


@command
def verify(  # noqa: PLR0913  one parameter per option
    *,
    certificate: options.VerifyCertificate = None,
    model: options.VerifyModel = None,
    where: Where,
    reading: Reading,
    processes: options.VerifyProcesses = 1,
    checker: options.VerifyChecker = None,
    printing: Printing,
) -> None:
    """Check a certificate, with a program of 200 lines that shares no code with the rest of Tessella.

    It runs in a Python of its own.  --checker writes it to a file, so that others can check certificates without Tessella.  The exit code is 1 if a certificate is refused.

    With MODEL: a certificate of another network is refused, and one on another domain, if --box or the like names one.  'tessella show' prints the same fingerprint of a network.

    Examples
    --------
        tessella count model.onnx --box 0,1 --certificate count.cert.gz

        tessella verify count.cert.gz

        tessella verify count.cert.gz model.onnx --box 0,1

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
    network = None if model is None else reading.network(model)
    if network is None and where.is_given:
        msg = "a domain was given, but no model; give both, as in 'tessella verify count.cert.gz model.onnx --box 0,1'"
        raise OptionError(msg)
    domain = None if network is None else where.domain(network)
    found = tessella.verify(certificate, network, domain, workers=processes)
    if printing.as_json:
        drawing.print_json(found.to_dict())
    elif printing.quiet:
        typer.echo("verified" if found.accepted else "refused")
    else:
        typer.echo(found.said)
    if not found.accepted:
        raise typer.Exit(FAILED)
