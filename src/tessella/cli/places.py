"""What is known of the regions where the data are, as a person sees it."""

import typer

from tessella.cli.drawing import WHY, console, table
from tessella.lines.along import Along
from tessella.nearby.local import Local
from tessella.result import Side, Status, format_confidence, format_count

_MOST = 20  # lines of a table


def print_along(name: str, found: Along, *, quiet: bool) -> None:
    """How many regions lie on a path, and where units change; the number alone if quiet, or both bounds."""
    if quiet:
        typer.echo(str(found.regions) if found.regions is not None else f"{found.lower} {found.upper}")
        return
    segments = len(found.path) - 1
    title = f"{name}: {found.network.shape} along a path of {segments:,} segment{'' if segments == 1 else 's'}"
    drawn = table(title, [("position", True), ("layer", True), ("unit", True), ("becomes", False), ("", False)])
    rows = found.rows()
    for row in rows[:_MOST]:
        state, sure = "active" if row["active"] else "inactive", "proved" if row["proved"] else "seen, not proved"
        drawn.add_row(f"{row['position']:.6f}", str(row["layer"]), str(row["unit"]), state, sure)
    out = console()
    out.print(drawn)
    if len(rows) > _MOST:
        out.print(f"... and {len(rows) - _MOST:,} more (--json has all)")
    out.print(f"\n{_sentence(found)} {found.seconds:.2f} s.")
    if found.status is not Status.FINISHED:
        typer.echo(f"Note: stopped by {WHY.get(found.status, 'the time limit')} at position {found.reached:.4g}.", err=True)


def _sentence(found: Along) -> str:
    if found.regions is None:
        low, high = format_count(found.lower), format_count(found.upper)
        return f"At least {low} region{'' if found.lower == 1 else 's'} and at most {high}, proved; {format_count(found.seen)} {'was' if found.seen == 1 else 'were'} seen."
    one = "region" if found.regions == 1 else "regions"
    back = "" if found.distinct == found.regions else f", {format_count(found.distinct or 0)} of them different"
    return f"Exactly {format_count(found.regions)} {one}{back}, proved."


def print_local(name: str, found: Local, *, quiet: bool) -> None:
    """Regions around points; one number a line if quiet, or both bounds."""
    if quiet:
        for low, high in zip(found.lower, found.upper, strict=True):
            typer.echo(str(low) if low == high else f"{low} {format_count(high, Side.UPPER)}")
        return
    columns = [("point", True), ("regions", True), ("nearest wall", True), ("units that change", True)]
    directions = "" if found.basis is None else f" in {found.basis.shape[1]} directions"
    drawn = table(f"{name}: {found.network.shape} in {found.norm} balls of radius {found.radius:g}{directions}", columns)
    for number, low, high in list(zip(range(len(found)), found.lower, found.upper, strict=True))[:_MOST]:
        regions = format_count(low) if low == high else f"{format_count(low, Side.LOWER)} to {format_count(high, Side.UPPER)}"
        likely_low, likely_high = found.probable_lower[number], found.probable_upper[number]
        if (likely_low, likely_high) != (low, high):
            regions += f" ({format_count(likely_low, Side.LOWER)} to {format_count(likely_high, Side.UPPER)})"
        few, many = found.units_lower[number], found.units_upper[number]
        drawn.add_row(
            str(number),
            regions,
            "-"
            if found.walls[number, :, 1].min() == float("inf") and not found.distances[number]
            else f"{found.distances[number]:.4g}",
            str(few) if few == many else f"{few} to {many}",
        )
    out = console()
    out.print(drawn)
    if len(found) > _MOST:
        out.print(f"... and {len(found) - _MOST:,} more points (--json has all)")
    if found.confidence < 1.0:
        out.print(f"In brackets: what holds with {format_confidence(found.confidence)} confidence; all else is proved.")
    exact = sorted(number for number in found.counts if number is not None)
    middle = f", the median {format_count(exact[len(exact) // 2])} regions" if exact else ""
    out.print(f"\n{len(exact):,} of {len(found):,} balls counted exactly, proved{middle}. {found.seconds:.2f} s.")
    if found.status is not Status.FINISHED:
        typer.echo(
            f"Note: stopped by {WHY.get(found.status, 'the time limit')}; balls that were not finished have bounds.", err=True
        )
