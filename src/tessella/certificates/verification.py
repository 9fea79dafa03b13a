"""Certificates checked by a program that shares no code with Tessella, in a Python of its own."""

import os
import re
import subprocess  # noqa: S404  runs the checker, and nothing else
import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from tessella import options
from tessella.answer import Noted
from tessella.errors import FileMissing
from tessella.result import format_duration

CHECKER = Path(__file__).with_name("verify.py")
"""The checker: one file that needs Python's standard library alone."""

_ACCEPTED = re.compile(r"verified: (\d+) bounds, (\d+) regions in (?:all|(\d+) parts); network ([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Verdict(Noted):
    """What the checker says of a certificate.

    A certificate that is refused may still claim what is true: it is only not proved.

    Parameters
    ----------
    path
        The file.
    accepted
        Whether all that it claims is proved.
    said
        What the checker said: what is proved, or what is wrong.
    regions
        How many regions are proved.
    parts
        In how many parts of the domain, if not in all of it; else 0.
    bounds
        How many bounds on preactivations are proved.
    fingerprint
        The hash of the network that it is about: that of `Network.fingerprint`.
    seconds
        Wall time spent.
    """

    path: str
    accepted: bool
    said: str
    regions: int = 0
    parts: int = 0
    bounds: int = 0
    fingerprint: str = ""
    seconds: float = 0.0

    def __repr__(self) -> str:
        """One line a person can read."""
        return f"Verdict({self.path}: {self.said}, {format_duration(self.seconds)})"

    def _title(self) -> str:
        return f"Certificate {self.path}: {'verified' if self.accepted else 'refused'}"


def verify(path: str | os.PathLike[str], *, workers: int = 1) -> Verdict:
    """Check a certificate, with a program that shares no code with Tessella, in a Python of its own.

    The same as ``python verify.py FILE``.

    Parameters
    ----------
    path
        The certificate, as `tessella.certify` wrote it.
    workers
        How many processes check it.

    Examples
    --------
    >>> import tessella
    >>> from tempfile import TemporaryDirectory
    >>> from pathlib import Path
    >>> net = tessella.load([([[1.0]], [0.0]), ([[1.0]], [-0.5])])
    >>> with TemporaryDirectory() as folder:
    ...     path = tessella.certify(net, (-1, 1), f"{folder}/count.txt").path
    ...     good = tessella.verify(path)
    ...     _ = Path(path).write_text(Path(path).read_text().replace("split 0", "split 1"))
    ...     bad = tessella.verify(path)
    >>> good.regions, good.fingerprint == net.fingerprint
    (2, True)
    >>> bad.accepted, bad.said
    (False, 'refused: the file was changed, is not whole, or is no certificate')
    """
    start, name = perf_counter(), os.fspath(path)
    options.check_workers(workers, "a check of a certificate", otherwise="")
    if not Path(name).is_file():
        msg = f"{name}: there is no such file; tessella.certify writes certificates"
        raise FileMissing(msg)
    command = [sys.executable, "-I", str(CHECKER), str(Path(name).absolute()), str(workers)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  our own file
    said = done.stdout.strip() or f"refused: the checker ended with code {done.returncode}"
    found = _ACCEPTED.fullmatch(said)
    if done.returncode or found is None:
        return Verdict(name, accepted=False, said=said, seconds=perf_counter() - start)
    bounds, regions, parts, fingerprint = found.groups()
    return Verdict(name, True, said, int(regions), int(parts or 0), int(bounds), fingerprint, perf_counter() - start)  # noqa: FBT003
