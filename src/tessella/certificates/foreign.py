"""Whether a certificate that was verified is about a network and a domain, or about others."""

import gzip
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path

from tessella.certificates.text import opening
from tessella.domain import Domain
from tessella.network import Network


def foreign(path: str, fingerprint: str, network: Network, domain: Domain | None) -> str:
    """What a certificate is about, if that is another network or domain; nothing if it is this one.

    Parameters
    ----------
    path
        The certificate, which the checker has verified.
    fingerprint
        Of the network that it is about, as the checker found it.
    network, domain
        What it should be about; without a domain, it may be on any.
    """
    if fingerprint != network.fingerprint:
        said = f"of another network: its fingerprint is {fingerprint[:12]}..., that of this one is {network.fingerprint[:12]}..."
        with_relus = (
            network.with_relu_output() if (network.layers[-1].slope[~network.layers[-1].rectified] == 1.0).all() else network
        )
        return said + (
            " (with a ReLU on each output, --relu-output in a shell, this one would be it)"
            if with_relus.fingerprint == fingerprint
            else ""
        )
    if domain is None:
        return ""
    with gzip.open(path, "rt", encoding="ascii") if path.endswith(".gz") else Path(path).open(encoding="ascii") as file:
        theirs = _domain(takewhile(lambda line: not line.startswith(("bound", "tree", "sum")), file))
    ours = _domain(opening(network, domain))
    if theirs == ours:
        return ""
    pairs = zip(theirs[: network.input_dim], ours[: network.input_dim], strict=True)
    for number, (they, we) in enumerate(pairs):
        if they != we:
            return f"on another domain: input {number} is in {_span(they)} there, and in {_span(we)} here"
    return f"on another domain: inequalities are not the same ({len(theirs) - network.input_dim} there, {len(ours) - network.input_dim} here)"


def _domain(lines: Iterable[str]) -> list[tuple[float | str, ...]]:
    """The inputs' ends, and behind them the inequalities, whose numbers stand behind their places."""
    split = [line.split() for line in lines if line.startswith(("input", "wall"))]
    ends = [tuple(map(float.fromhex, words[1:])) for words in split if words[0] == "input"]
    return [*ends, *(tuple(words[2:]) for words in split if words[0] == "wall")]


def _span(ends: tuple[float | str, ...]) -> str:
    return f"[{', '.join(str(end) for end in ends)}]"
