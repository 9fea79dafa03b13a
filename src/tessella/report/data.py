"""What a report says of data: in how many regions examples lie, how far walls are from them, and what the network decides."""

from html import escape

import numpy as np
import numpy.typing as npt

from tessella.domain import Domain, Polytope
from tessella.examples import Examples
from tessella.kernel.deadline import Deadline
from tessella.network import Floats, Mask, Network
from tessella.partition.witness import walls
from tessella.tables import html_table

_SECONDS = 5.0  # for distances
_ALL = "all"


def distances(network: Network, free: Mask, inputs: Floats, patterns: Mask, seconds: float = _SECONDS) -> Floats:
    """How far each input is from the nearest wall of its region, in the l2 norm of the free inputs; not a number where there was no time.

    The sides of the domain are no walls.  This is floating-point arithmetic.
    """
    deadline, found = Deadline.after(seconds), np.full(len(inputs), np.nan)
    _, numbers = np.unique(np.packbits(patterns, axis=1), axis=0, return_inverse=True)
    for number in range(int(numbers.max(initial=-1)) + 1):
        mine = np.flatnonzero(numbers.ravel() == number)
        normals, constants = walls(network, patterns[mine[0]])
        sizes = np.sqrt((normals[:, free] ** 2).sum(axis=1))
        cuts = sizes > 0.0
        values = np.abs(inputs[mine] @ normals[cuts].T + constants[cuts]) / sizes[cuts]
        found[mine] = values.min(axis=1, initial=np.inf)
        if deadline.passed:
            break
    return found


def section(network: Network, domain: Domain, given: Examples, suffix: str) -> str:
    """The part of the page about data, as HTML.

    Examples
    --------
    >>> from tessella import Box
    >>> net = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0]), ([[1.0, -1.0]], None)])
    >>> text = section(net, Box(-1, 1, dim=2), Examples(np.array([[0.5, 0.25], [0.5, 0.75], [-0.5, 0.5]])), "")
    >>> "3 examples lie in 2 different regions" in text, ">0.25<" in text
    (True, True)
    """
    patterns = network.patterns(given.inputs)
    packed = np.packbits(patterns, axis=1)
    regions, counts = np.unique(packed, axis=0, return_counts=True)
    away = distances(network, domain.box.free, given.inputs, patterns)
    decided = _decisions(network, given.inputs)
    count = len(given.inputs)
    alone, lie = int((counts == 1).sum()), "lies" if count == 1 else "lie"
    many, different = (
        f"{count:,} example{'' if count == 1 else 's'}",
        f"{len(regions):,} different region{'' if len(regions) == 1 else 's'}",
    )
    lines = [f"{many} {lie} in {different}; {alone:,} of these hold{'s' if alone == 1 else ''} one example only."]
    outside = count - int(_inside(domain, given.inputs).sum())
    if outside:
        lines.append(f"{outside:,} of the examples lie outside of the domain.")
    if np.isnan(away).any():
        lines.append(f"Distances were found for {int(np.isfinite(away).sum()):,} of them.")
    heads = ["class", "examples", "regions", "nearest wall, least", "median", "most", "active ReLUs, mean", "decided as"]
    rows = [_row(_ALL, np.ones(count, dtype=np.bool_), packed, away, patterns, decided)]
    if given.labels is not None:
        rows += [
            _row(name, given.numbers == number, packed, away, patterns, decided) for number, name in enumerate(given.classes)
        ]
    said = " ".join(map(escape, lines))
    return (
        f'<section aria-labelledby="data-title{suffix}" id="data-section{suffix}">\n<h2 id="data-title{suffix}">Where the data are</h2>\n<p>{said}</p>\n'
        f'<div class="scroll">{html_table(heads, rows, numbers=range(1, 7), kind="compared")}</div>\n'
        '<p class="small">The distance from an example to the nearest wall of its region, in the l2 norm; sides of the domain are no walls. '
        "What the network decides is its largest output, or whether a single one is positive.</p>\n</section>"
    )


def _decisions(network: Network, inputs: Floats) -> Floats:
    """The largest output, or whether a single one is positive."""
    outputs = network(inputs)
    return (outputs[:, 0] > 0.0).astype(np.float64) if outputs.shape[1] == 1 else outputs.argmax(axis=1).astype(np.float64)


def _inside(domain: Domain, inputs: Floats) -> Mask:
    held: Mask = np.logical_and.reduce((inputs >= domain.box.lower) & (inputs <= domain.box.upper), axis=1)
    if isinstance(domain, Polytope):
        held &= np.logical_and.reduce(inputs @ domain.matrix.T <= domain.offset, axis=1)
    return held


def _row(name: str, mine: Mask, packed: npt.NDArray[np.uint8], away: Floats, patterns: Mask, decided: Floats) -> list[str]:  # noqa: PLR0913, PLR0917
    """One class of examples, or all."""
    known = away[mine]
    known = known[~np.isnan(known)]
    numbers = [f"{value:.4g}" for value in (known.min(), np.median(known), known.max())] if len(known) else ["-"] * 3
    kinds, times = np.unique(decided[mine], return_counts=True)
    order = np.argsort(-times, kind="stable")[:3]
    parts = [f"{int(kinds[one])} ({100.0 * times[one] / mine.sum():.0f} %)" for one in order]
    words = ", ".join(parts) + (", ..." if len(kinds) > 3 else "")
    regions = len(np.unique(packed[mine], axis=0))
    return [name, f"{int(mine.sum()):,}", f"{regions:,}", *numbers, f"{patterns[mine].sum(axis=1).mean():.1f}", words]
