"""Counts on several boxes: their sum, and what it says of the union of the boxes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import typer

from tessella.cli import drawing
from tessella.counting.count import Count
from tessella.domain import Box, Domain
from tessella.result import Side, encode_int, format_count

_MOST_LOOKS = 1_000_000_000  # comparisons of ends
_NAMED = 5  # pairs that are listed


def finish(model: str, found: Sequence[Count], domains: Sequence[Domain], *, as_json: bool, quiet: bool) -> None:
    """Print the total, what is known of the union, and which boxes overlap.

    A region that reaches into several boxes is counted in each of them.  On their union there are at least as many regions as on one box, and at most as many
    as on all boxes together: a region with an interior in the union has one in a box, as finitely many closed sets without interior cover none.
    """
    missing = len(domains) - len(found)
    low, high = sum(each.lower for each in found), None if missing else sum(each.upper for each in found)
    most = max(each.lower for each in found) if _alike(domains) else None
    if as_json:
        total = {"lower": encode_int(low), "upper": None if high is None else encode_int(high)}
        union = None if most is None else {**total, "lower": encode_int(most)}
        parts: dict[str, Any] = {"boxes": [each.to_dict() for each in found], "total": total, "union": union}
        drawing.print_json({"model": model, **parts, "overlapping": overlaps(domains), "left_out": missing})
    elif quiet:
        typer.echo(" ".join(dict.fromkeys("-" if value is None else str(value) for value in (low, high))))
    else:
        typer.echo(
            f"\nAll {len(domains)} boxes together: {_bracket(low, high)}; one that reaches into several boxes is counted in each of them."
        )
        if most is not None:
            typer.echo(f"On the union of the boxes: {_bracket(most, high)}.")
        typer.echo(_overlaps(domains))
    if missing:
        typer.echo(f"Note: Ctrl-C came before {missing} of the boxes: not looked at, so there is no upper bound.", err=True)


def _bracket(low: int, high: int | None) -> str:
    if low == high:
        return f"exactly {format_count(low)} region{'' if low == 1 else 's'}"
    upper = "" if high is None else f" and at most {format_count(high, Side.UPPER)}"
    return f"at least {format_count(low, Side.LOWER)}{upper} regions"


def _alike(domains: Sequence[Domain]) -> bool:
    """Whether all domains fix the same inputs in the same way, so that regions have an interior in all of them or in none."""
    first = domains[0].box
    fixed = ~first.free
    return all(
        np.array_equal(each.box.free, first.free) and np.array_equal(each.box.lower[fixed], first.lower[fixed])
        for each in domains
    )


def overlaps(domains: Sequence[Domain]) -> list[tuple[int, int]] | None:
    """Which pairs of domains have boxes that share more than a face, counted from 1; None where there are too many to look."""
    count, dim = len(domains), domains[0].dim
    if count * count * dim > _MOST_LOOKS:
        return None
    lower, upper = (np.stack([getattr(domain.box, end) for domain in domains]) for end in ("lower", "upper"))
    found = list[tuple[int, int]]()
    for number in range(count - 1):
        low, high = np.maximum(lower[number + 1 :], lower[number]), np.minimum(upper[number + 1 :], upper[number])
        fixed = (lower[number + 1 :] == upper[number + 1 :]) & (lower[number] == upper[number])
        shared = ((low < high) | (fixed & (low == high))).all(axis=1)
        found += [(number + 1, number + 2 + int(other)) for other in np.flatnonzero(shared)]
    return found


def _overlaps(domains: Sequence[Domain]) -> str:
    pairs = overlaps(domains)
    if pairs is None:
        return "The boxes are too many to say which overlap."
    if not pairs:
        return "No two of the boxes overlap."
    named = ", ".join(f"{one} and {other}" for one, other in pairs[:_NAMED])
    verb = "overlap" if len(pairs) > 1 else "overlaps"
    verb = verb if all(isinstance(domain, Box) for domain in domains) else "may overlap"
    return f"{len(pairs):,} pair{'' if len(pairs) == 1 else 's'} of the boxes {verb}: {named}{', ...' if len(pairs) > _NAMED else ''}."
