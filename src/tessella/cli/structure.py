"""The commands that say how regions are made and lie together: `graph` and `summarise`."""

from typing import TYPE_CHECKING

import typer

import tessella
from tessella.cli import options
from tessella.cli.app import command
from tessella.cli.groups import Printing, Reading, Sureness
from tessella.cli.later import drawing
from tessella.cli.meanings import check_least, check_output, end, titled
from tessella.cli.where import Where
from tessella.result import Status

if TYPE_CHECKING:
    from tessella.listing.graph import Graph
    from tessella.summarising.summary import Summary


@command
def graph(  # noqa: PLR0913  one parameter per option
    *,
    model: options.Model,
    output: options.GraphOutput = None,
    seconds: options.GraphSeconds = None,
    limit: options.GraphLimit = None,
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


@command
def summarise(  # noqa: PLR0913  one parameter per option
    *,
    model: options.Model,
    statistics: options.SummariseStatistics = None,
    seconds: options.SummariseSeconds = 30.0,
    samples: options.SummariseSamples = None,
    where: Where,
    sureness: Sureness,
    reading: Reading,
    printing: Printing,
) -> None:
    """Find statistics over all regions: how steep, how large, how connected they are, and what a classifier decides there.

    Exact where all regions can be listed in time; else of regions that are drawn uniformly, with intervals that hold together with the confidence.
    The steepest region gives the Lipschitz constant.  Ctrl-C ends with what is known.

    Examples
    --------
        tessella summarise model.onnx --box 0,0.3

        tessella summarise model.onnx --box 0,1 --statistics active,spectral --seconds 10

        tessella summarise model.onnx --box 0,1 --samples 500 --seed 1 --json
    """
    given = sureness.given()
    if samples is not None:
        check_least(1, samples=samples)
    names = None if statistics is None else [name.strip() for name in statistics.split(",")]
    network = reading.network(model)
    domain = where.needed(network)
    with drawing.progress_line("regions", shown=printing.shown) as tick:
        found = tessella.summarise(network, domain, names, seconds=seconds, samples=samples, progress=tick, **given)
    if printing.as_json:
        drawing.print_json({"model": model, **found.to_dict()})
    elif printing.quiet:
        for row in found.rows():
            typer.echo(f"{row['statistic']} {row['mean'] if row['mean'] is not None else row['note']}")
    else:
        _tell_summary(titled(model, network, domain), found)
    end(interrupted=found.status is Status.INTERRUPTED)


_HEADS = (("statistic", False), ("mean", True), ("least", True), ("median", True), ("most", True), ("of", False), ("", False))


def _tell_summary(title: str, found: "Summary") -> None:
    """One line per statistic, and what else there is to say."""
    many = (
        ("its only region" if found.regions == 1 else f"all {found.regions:,} regions")
        if found.listed
        else "regions that were drawn"
        if found.confidence < 1.0
        else "some regions"
    )
    drawn = drawing.table(f"{title}, {many}", _HEADS)
    for row in found.rows():
        low, high = row["mean_low"], row["mean_high"]
        interval = "" if low == high else f"mean between {low:.4g} and {high:.4g}"
        numbers = ["-" if row[name] is None else f"{row[name]:.4g}" for name in ("mean", "smallest", "median", "largest")]
        drawn.add_row(row["statistic"], *numbers, row["of"], row["note"] or interval)
    out = drawing.console()
    out.print(drawn)
    out.print()
    for line in found.notes():
        out.print(line)
    out.print(f"{found.seconds:.1f} s.")
