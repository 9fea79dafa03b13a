"""What a report says of what lies around examples: regions in balls, walls, units that change, and breaks from one example to the next."""

from html import escape

import numpy as np

from tessella.domain import Box, Domain
from tessella.examples import Examples
from tessella.lines.along import Along, along
from tessella.nearby.local import Local, local
from tessella.nearby.walls import distances
from tessella.network import Floats, Network
from tessella.result import Side, format_confidence, format_count
from tessella.tables import html_table, marked_up

_MOST = 20  # examples that are looked at
_WIDER = 2.0  # radius of the balls, over the median distance of a wall
_SECONDS = 5.0  # for all balls
_SECONDS_OF_PATHS = 2.0


def section(network: Network, domain: Domain, given: Examples, suffix: str) -> str:
    """The part of the page about what is around examples, as HTML; empty if nothing can be said.

    Examples
    --------
    >>> from tessella import Box
    >>> folded = Network.from_arrays([([[2.0]], [-1.0]), ([[1.0]], None)])
    >>> text = section(folded, Box([0], [1]), Examples(np.array([[0.25], [0.75]])), "")
    >>> "of radius 0.5 in linf" in text, text.count("<tr>")
    (True, 3)
    """
    inputs = given.inputs[:_MOST]
    radius = _radius(network, inputs)
    if radius is None:
        return ""
    within = domain if isinstance(domain, Box) and domain.bounded and bool(domain.contains(inputs).all()) else None
    balls = local(network, inputs, radius, domain=within, seconds=_SECONDS)
    different = len(inputs) > 1 and bool((inputs[1:] != inputs[:-1]).any())
    path = along(network, inputs, seconds=_SECONDS_OF_PATHS) if different else None
    heads = ["example", *(["class"] if given.labels else []), "regions in its ball", "nearest wall, linf", "units that change"]
    rows = [
        [str(number + 1), *([given.labels[number]] if given.labels else []), *_cells(balls, number)]
        for number in range(len(balls))
    ]
    if path is not None:
        heads.append("breaks to the next")
        rows = [[*row, text] for row, text in zip(rows, [*_breaks(path), ""], strict=True)]
    first = f"The first {len(inputs):,} examples" if len(inputs) < len(given.inputs) else "The examples"
    lines = [f"{first} have balls of radius {radius:.3g} in linf around them, twice the median distance from the nearest wall."]
    if balls.confidence < 1.0:
        lines.append(f"In brackets: what holds with {format_confidence(balls.confidence)} confidence; all else is proved.")
    if path is not None:
        seen = (
            ""
            if path.regions is not None
            else ", as far as floating-point arithmetic sees them; what is proved stands below the table"
        )
        lines.append(f"Breaks are those on the line to the next example{seen}.")
    note = "" if path is None else f'<p class="small">{marked_up(_whole(path))}</p>'
    begin = 2 if given.labels else 1
    return (
        f'<section aria-labelledby="around-title{suffix}" id="around-section{suffix}">\n<h2 id="around-title{suffix}">What is around them</h2>\n<p>{escape(" ".join(lines))}</p>\n'
        f'<div class="scroll">{html_table(heads, rows, numbers=range(begin, len(heads)), kind="compared")}</div>\n{note}\n</section>'
    )


def _radius(network: Network, inputs: Floats) -> float | None:
    """Twice the median distance of walls; None without walls, or where examples lie on them."""
    known = np.array([distances(network, place)[0, 2] for place in inputs])
    known = known[np.isfinite(known) & (known > 0.0)]
    radius = float(f"{_WIDER * np.median(known):.2g}") if len(known) else 0.0
    return radius if radius and not (inputs + radius == inputs).all(axis=1).any() else None


def _cells(balls: Local, number: int) -> list[str]:
    """What is known of one ball, as text."""
    low, high, likely = balls.lower[number], balls.upper[number], (balls.probable_lower[number], balls.probable_upper[number])
    regions = format_count(low) if low == high else _between(low, high)
    regions += f" ({_between(*likely)})" if likely != (low, high) else ""
    least, most = balls.walls[number, 2]
    few, many = balls.units_lower[number], balls.units_upper[number]
    return [regions, "-" if least == 0.0 and np.isinf(most) else f"{least:.4g}", str(few) if few == many else f"{few} to {many}"]


def _between(low: int, high: int) -> str:
    return f"{format_count(low, Side.LOWER)} to {format_count(high, Side.UPPER)}"


def _breaks(path: Along) -> list[str]:
    """How many breaks are seen on each segment; "-" where the walk did not get."""
    last = len(path.path) - 1
    numbers = np.bincount(np.minimum(path.breaks.astype(np.int64), last - 1), minlength=last)
    return [f"{number:,}" if path.reached >= segment + 1 else "-" for segment, number in enumerate(numbers.tolist())]


def _whole(path: Along) -> str:
    """What is proved of the whole path."""
    many = f"exactly {format_count(path.regions)}" if path.regions is not None else _between(path.lower, path.upper)
    return f"The lines from each example to the next pass through {many} regions, proved."
