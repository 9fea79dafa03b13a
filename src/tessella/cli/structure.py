"""The commands that say how regions are made and lie together: `graph`."""

from typing import TYPE_CHECKING, Annotated

import typer

import tessella
from tessella.cli.groups import Printing, Reading, grouped
from tessella.cli.later import drawing
from tessella.cli.options import Model, Seconds, check_least, check_output, end, titled
from tessella.cli.pictures import app
from tessella.cli.where import Where
from tessella.result import Status

if TYPE_CHECKING:
    from tessella.listing.graph import Graph

Limit = Annotated[int | None, typer.Option("--limit", metavar="N", help="List no more regions than this.", show_default=False)]


@app.command()
@grouped
def graph(  # noqa: PLR0913  one parameter per option
    *,
    model: Model,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to: .graphml.", show_default=False),
    ] = None,
    seconds: Seconds = None,
    limit: Limit = None,
    where: Where,
    reading: Reading,
    printing: Printing,
) -> None:
    """List all regions and which of them share a wall, and write that to a file.

    Gephi, yEd, igraph and networkx read .graphml files: nodes have the region's pattern and a point inside, edges have the ReLUs that change at the wall.
    Without -o it says how many there are; --json has all of it.  A time limit, a limit or Ctrl-C ends with what is known by then.

    Examples
    --------
        tessella graph model.onnx --box 0,1

        tessella graph model.onnx --box 0,1 -o regions.graphml

        tessella graph model.onnx --box 0,1 --limit 100000 --json
    """
    if output is not None:
        check_output(output, (".graphml",))
    if limit is not None:
        check_least(1, limit=limit)
    network = reading.network(model)
    domain = where.needed(network)
    with drawing.progress_line("regions", shown=printing.shown) as tick:
        found = tessella.graph(network, domain, seconds=seconds, limit=limit, progress=tick)
    if output is not None:
        found.to_graphml(output)
    if printing.as_json:
        drawing.print_json({"model": model, **({} if output is None else {"file": output}), **found.to_dict()})
    elif printing.quiet:
        typer.echo(f"{found.regions} {len(found.edges)}")
    else:
        _tell_graph(titled(model, network, domain), found, output)
    end(interrupted=found.status is Status.INTERRUPTED)


def _tell_graph(title: str, found: "Graph", output: str | None) -> None:
    """How many regions and walls there are, and what may be missing."""
    out, degrees = drawing.console(), found.degrees
    drawn = drawing.table(title, [("regions", True), ("walls between them", True), ("walls of a region", True), ("", False)])
    most = f"at most {int(degrees.max(initial=0))}"
    drawn.add_row(
        f"{found.regions:,}", f"{len(found.edges):,}", f"{degrees.mean() if len(degrees) else 0.0:.2f} on average", most
    )
    out.print(drawn)
    if found.complete:
        out.print(f"\nAll regions and walls, proved ({found.seconds:.2f} s).")
    else:
        why = {Status.FINISHED: "Not all walls could be decided in time"}.get(found.status, f"Not all: {found.status}")
        out.print(
            f"\n{why}. What is listed is proved; {len(found.undecided):,} of these regions may have more walls ({found.seconds:.2f} s)."
        )
    if output is not None:
        out.print(f"Written to {output}.")
