"""Certificates on the command line: what is asked, and what is said."""

import os
from collections.abc import Sequence
from typing import Any

import typer

from tessella.certificates.certify import Certificate, certify
from tessella.cli import drawing
from tessella.cli.meanings import check_apart, check_output, note
from tessella.counting.count import Count
from tessella.domain import Domain, check_bounded
from tessella.errors import FileError, OptionError
from tessella.methods import Claim
from tessella.network import Network
from tessella.result import Status


def check(path: str | None, domains: Sequence[Domain], model: str) -> None:
    """Refuse what cannot be written, or proved, before the work is done."""
    if path is not None:
        if len(domains) > 1:
            msg = f"--certificate goes with one box, and there are {len(domains)}; choose one with --property-box"
            raise OptionError(msg)
        check_bounded(domains[0], "a certificate")
        check_output(path, (os.path.basename(path),))
        check_apart(path, model)


def write(network: Network, domain: Domain, path: str, *, shown: bool, **options: Any) -> Certificate:
    """Write a certificate, and say on stderr what is in it."""
    what = "units" if options.get("claim") is Claim.STABILITY else "regions"
    with drawing.progress_line(f"{what} certified", shown=shown) as tick:
        written = certify(network, domain, path, progress=tick, **options)
    if not written.is_whole:
        note(f"the certificate was not finished ({written.status}), and {path} not written")
    elif shown:
        typer.echo(f"Certificate: {written.bytes:,} bytes in {path}; check it with: tessella verify {path}", err=True)
    if written.unproved:
        note(f"{written.unproved} stable units have no proof in {path}")
    return written


def write_count(path: str, found: Count, *, shown: bool) -> bool:
    """Write the certificate of a count that is exact; whether Ctrl-C did not end it."""
    if found.exact is None:
        note(f"the count is not exact, so {path} was not written; give it more time")
        return True
    written = write(found.network, found.domain, path, shown=shown)
    if written.is_whole and written.regions != found.exact:
        msg = f"{path}: proves {written.regions:,} regions where {found.exact:,} were counted; this is an error in Tessella, please report it"
        raise FileError(msg)
    return written.status is not Status.INTERRUPTED
