"""Certificates: files that prove a count, or which units are stable, to whoever does not trust Tessella."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from tessella import options
from tessella.answer import Answer, past
from tessella.certificates.text import Text, certificate
from tessella.domain import Domain, check_bounded
from tessella.door import DomainLike, NetworkLike, enter
from tessella.errors import OptionError
from tessella.kernel import meter
from tessella.kernel.deadline import Deadline
from tessella.methods import Claim, Method
from tessella.network import Network
from tessella.progress import found_so_far, with_bar
from tessella.result import Status, format_duration
from tessella.stability import Stability, check_stability, stability_to_go_on_with

_EVERY = 100  # regions between two looks at the time


@dataclass(frozen=True, slots=True, eq=False)
class Certificate(Answer):
    """A certificate that was written.

    Parameters
    ----------
    network, domain
        What it is about.
    path
        The file.
    regions
        How many regions it proves; 0 if it is about bounds.
    bounds
        How many bounds on preactivations it proves.
    unproved
        How many units are stable, as far as Tessella knows, without a proof in the file.
    bytes
        The size of the file.
    status
        Why writing ended.  If it is not finished, there is no file.
    seconds
        Wall time spent.
    """

    network: Network
    domain: Domain
    path: str
    regions: int
    bounds: int
    unproved: int
    bytes: int
    status: Status = Status.FINISHED
    seconds: float = 0.0

    @property
    def is_whole(self) -> bool:
        """Whether there is a file, which proves all that it should."""
        return self.status is Status.FINISHED

    def rows(self) -> list[dict[str, Any]]:
        """One row: the file."""
        names = ("path", "regions", "bounds", "unproved", "bytes", "status", "seconds")
        return [{name: getattr(self, name) for name in names}]

    def __repr__(self) -> str:
        """One line a person can read."""
        return f"Certificate({self._said()}, {format_duration(self.seconds)})"

    def _said(self) -> str:
        what = f"{self.regions:,} regions" if self.regions else f"{self.bounds:,} bounds"
        return f"{what}, {self.bytes:,} bytes in {self.path}" if self.is_whole else f"{self.status} after {what}, no file"

    def _title(self) -> str:
        return f"Certificate for {self.network.shape} on {self.domain.describe()}"

    def _note(self) -> str:
        return "python verify.py checks it without Tessella." if self.is_whole else "There is no file."

    def _record(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("path", "regions", "bounds", "unproved", "bytes", "status", "seconds")}
        return {**past(self.network, self.domain), **own}


@with_bar(found_so_far)
def certify(  # noqa: PLR0913  one keyword per option
    network: NetworkLike,
    domain: DomainLike,
    path: str | os.PathLike[str],
    *,
    claim: Claim | str = Claim.COUNT,
    given: Mapping[int, bool] | Sequence[Mapping[int, bool]] | None = None,
    stability: Stability | None = None,
    seconds: float | None = None,
    progress: Callable[[int], None] | bool | None = None,
) -> Certificate:
    """Write a file that proves how many regions there are, or bounds on what units see and which of them are stable.

    `tessella.verify` checks it, or ``verify.py``, one file of 200 lines that needs nothing but Python.  Whoever reads those lines and the two theorems behind them
    need not trust Tessella.

    Parameters
    ----------
    network, domain
        Of what, and where: what `tessella.load` takes, and a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.
    path
        The file; it is packed if its name ends in ``.gz``.  It is whole, or it is not there.
    claim
        ``"count"``: the number of regions, with a point in each, and for each side of a unit that is empty the combination of inequalities that shows it.
        ``"stability"``: a lower and an upper bound on what each unit sees before its ReLU, and the stable units by these.
    given
        Of a count: count only the regions where these units are active (True) or not.  Units are numbered through all layers, linear ones included.  Several such
        parts of a count may be given; they must not overlap.
    stability
        For bounds: which units are stable, if that is known already.
    seconds
        After this time writing ends without a file; None for no limit.  So does Ctrl-C.
    progress
        Called with the number of regions (or units) so far; True for a bar on a terminal or in a notebook.

    Examples
    --------
    >>> import tessella
    >>> from tempfile import TemporaryDirectory
    >>> net = tessella.load([([[1.0, 1.0], [1.0, -1.0]], [0.0, 0.0]), ([[1.0, -1.0]], [-0.25])])
    >>> with TemporaryDirectory() as folder:
    ...     written = tessella.certify(net, (-1, 1), f"{folder}/count.txt")
    ...     checked = tessella.verify(written.path)
    >>> written.regions, checked.accepted
    (4, True)
    """
    start, who = meter.clock(), "a certificate"
    network, domain = enter(network, domain)
    check_bounded(domain, who)
    check_stability(stability, network, domain, who)
    asked = options.chosen(Claim, claim, "claim", who)
    options.check_seconds(seconds, who)
    tell, deadline = options.check_progress(progress, who, "the number of regions so far"), Deadline.after(seconds)
    parts = [_sides(network, one) for one in ([given or {}] if given is None or isinstance(given, Mapping) else given)]
    if not parts:
        msg = "given has no parts; leave it out to certify the whole count"
        raise OptionError(msg)
    _check_apart(parts)
    status, regions, bounds, unproved = Status.FINISHED, 0, 0, 0

    def tick(found: int) -> None:
        nonlocal regions
        regions = found
        if tell is not None:
            tell(found)
        if (found % _EVERY == 0 or asked is Claim.STABILITY) and deadline.passed:
            raise _TimeIsUpError

    try:
        known = stability
        if asked is Claim.STABILITY and known is None:
            known = stability_to_go_on_with(network, domain, method=Method.MILP)
        with certificate(path, network, domain) as text, np.errstate(all="ignore"):  # what is not finite is decided exactly
            if asked is Claim.STABILITY and known is not None:
                unproved = _ranges(known, text, tick)
                regions = 0
            else:
                _trees(network, domain, text, tick, parts)
            bounds = text.bounds
    except (_TimeIsUpError, KeyboardInterrupt) as error:
        status = Status.INTERRUPTED if isinstance(error, KeyboardInterrupt) else Status.TIME_LIMIT
    size = Path(path).stat().st_size if status is Status.FINISHED else 0
    return Certificate(network, domain, os.fspath(path), regions, bounds, unproved, size, status, meter.clock() - start)


def _ranges(known: Stability, text: Text, tick: Callable[[int], None]) -> int:
    from tessella.certificates.ranges import Ranges  # noqa: PLC0415  loads the compiler

    ranges = Ranges(known, text, tick)
    ranges.prove()
    return ranges.unproved


def _trees(network: Network, domain: Domain, text: Text, tick: Callable[[int], None], parts: list[dict[int, int]]) -> None:
    from tessella.certificates.trees import Walk  # noqa: PLC0415  loads the compiler

    walk = Walk(network, domain, text, tick)
    for given in parts:
        walk.walk({}, given)


def _check_apart(parts: list[dict[int, int]]) -> None:
    """Raise where a region would be counted in two parts."""
    for number, one in enumerate(parts):
        for earlier, other in enumerate(parts[:number]):
            if all(other.get(unit, side) == side for unit, side in one.items()):
                msg = f"given: parts {earlier} and {number} may have regions in common; some unit must have another side in each"
                raise OptionError(msg)


class _TimeIsUpError(Exception):
    """Nothing is wrong."""


def _sides(network: Network, given: Mapping[int, bool]) -> dict[int, int]:
    """The sides that are given; raises where there is no such ReLU."""
    if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  callers may be untyped
        msg = f"given has {given!r:.40}; a part is a dictionary of units and their sides, such as {{0: True, 3: False}}"
        raise OptionError(msg)
    rectified = [bool(one) for layer in network.layers for one in layer.rectified]
    for unit, side in given.items():
        if not isinstance(unit, Integral) or not 0 <= unit < len(rectified) or not rectified[unit] or side not in {0, 1}:
            msg = (
                f"given has {unit!r:.20}: {side!r:.20}; it takes numbers of units with a ReLU, "
                f"counted from 0 over all layers ({len(rectified)} units), with True or False for each"
            )
            raise OptionError(msg)
    return {int(unit): int(side) for unit, side in given.items()}
