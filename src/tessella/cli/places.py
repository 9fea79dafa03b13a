"""What is known of the regions where the data are, as a person sees it."""

import typer

from tessella.cli.drawing import WHY, console, table
from tessella.lines.along import Along
from tessella.result import Status, format_count

_MOST = 20  # breaks that are listed


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
        return f"At least {low} regions and at most {high}, proved; {format_count(found.seen)} were seen."
    one = "region" if found.regions == 1 else "regions"
    back = "" if found.distinct == found.regions else f", {format_count(found.distinct or 0)} of them different"
    return f"Exactly {format_count(found.regions)} {one}{back}, proved."
