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
from tessella.certificates.foreign import foreign
from tessella.door import DomainLike, NetworkLike, enter_anywhere
from tessella.errors import FileMissing, OptionError
from tessella.result import format_duration

CHECKER = Path(__file__).with_name("verify.py")
"""The checker: one file that needs Python's standard library alone."""

_ACCEPTED = re.compile(r"verified: (\d+) bounds, (\d+) regions in (?:all|(\d+) parts); network ([0-9a-f]{64}), domain (.+)")


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
    domain
        The domain that it is about: ``[0.0, 1.0]^784`` where all inputs have the same ends and nothing else, else the SHA-256 of the lines of the certificate that say what it is.
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
    domain: str = ""
    seconds: float = 0.0

    def __repr__(self) -> str:
        """One line a person can read."""
        return f"Verdict({self.path}: {self.said}, {format_duration(self.seconds)})"

    def _title(self) -> str:
        return f"Certificate {self.path}: {'verified' if self.accepted else 'refused'}"


def verify(
    path: str | os.PathLike[str], network: NetworkLike | None = None, domain: DomainLike | None = None, *, workers: int = 1
) -> Verdict:
    """Check a certificate, with a program that shares no code with Tessella, in a Python of its own.

    The same as ``python verify.py FILE``.

    Parameters
    ----------
    path
        The certificate, as `tessella.certify` wrote it.
    network
        A certificate of any other network is refused: a `Network`, or what `tessella.load` takes.  None: it may be of any.
    domain
        With a network: a certificate on any other domain is refused, too.
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
    ...     good = tessella.verify(path, net, (-1, 1))
    ...     other = tessella.verify(path, [([[2.0]], [0.0]), ([[1.0]], [-0.5])])
    ...     _ = Path(path).write_text(Path(path).read_text().replace("split 0", "split 1"))
    ...     bad = tessella.verify(path)
    >>> good.regions, good.fingerprint == net.fingerprint, good.domain
    (2, True, '[-1.0, 1.0]^1')
    >>> other.accepted, other.said[:42]
    (False, 'refused: it is true, but of another networ')
    >>> bad.accepted, bad.said
    (False, 'refused: a unit cannot be decided (step 2)')
    """
    start = perf_counter()
    if not isinstance(path, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]  callers may be untyped
        msg = f"{path!r:.40} is no path; verify takes the name of a certificate's file"
        raise OptionError(msg)
    name = os.fspath(path)
    if network is None and domain is not None:
        msg = "a domain was given to check a certificate, but no network; give both, or the network alone"
        raise OptionError(msg)
    asked = None if network is None else enter_anywhere(network, domain)
    options.check_workers(workers, "a check of a certificate", otherwise="")
    if not Path(name).is_file():
        msg = f"{name}: {'this is no file' if Path(name).exists() else 'there is no such file'}; tessella.certify writes certificates"
        raise FileMissing(msg)
    command = [sys.executable, "-I", str(CHECKER), str(Path(name).absolute()), str(workers)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  our own file
    said = done.stdout.strip() or f"refused: the checker ended with code {done.returncode}"
    found = _ACCEPTED.fullmatch(said)
    if done.returncode or found is None:
        return Verdict(name, accepted=False, said=said, seconds=perf_counter() - start)
    bounds, regions, parts, fingerprint, about = found.groups()
    if asked is not None and (wrong := foreign(name, fingerprint, *asked)):
        return Verdict(name, accepted=False, said=f"refused: it is true, but {wrong}", seconds=perf_counter() - start)
    proved = {"regions": int(regions), "parts": int(parts or 0), "bounds": int(bounds)}
    return Verdict(
        name, accepted=True, said=said, **proved, fingerprint=fingerprint, domain=about, seconds=perf_counter() - start
    )
