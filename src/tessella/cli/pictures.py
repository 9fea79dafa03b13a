"""The commands that draw: `plot` and `report`."""

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import tessella
from tessella.cli.groups import Cut, Printing, Reading, Sureness, grouped
from tessella.cli.later import brackets, drawing
from tessella.cli.options import (
    Model,
    check_least,
    check_output,
    end,
    titled,
)
from tessella.cli.warm import app
from tessella.cli.where import Where
from tessella.files import writing
from tessella.result import Status

if TYPE_CHECKING:
    from tessella.domain import Domain
    from tessella.slicing import Slice

_FORMATS = (".svg", ".png", ".pdf")


@app.command()
@grouped
def plot(  # noqa: PLR0913  one parameter per option
    *,
    model: Model,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Where to: .svg, .png or .pdf.")] = "regions.svg",
    cut: Cut,
    colour: Annotated[
        str, typer.Option("--colour", "--color", metavar="WHAT", help="What colours say: region, layer (that cut) or slope.")
    ] = "region",
    of_output: Annotated[
        int | None,
        typer.Option(
            "--of-output", metavar="N", help="The output whose slope or graph is drawn; all by default.", show_default=False
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="Draw no more regions than this.")] = 500_000,
    where: Where,
    reading: Reading,
    printing: Printing,
) -> None:
    """Draw the regions of a network: exact polygons on a plane of its inputs, or the function on a line.

    Networks with one or two inputs are drawn as they are, others on a slice: by default the plane through the centre of the domain and two
    corners of its box.  Without --box or --property inputs lie in [0, 1].
    Needs matplotlib: pip install 'tessella[plot]'.

    Examples
    --------
        tessella plot model.onnx -o regions.svg

        tessella plot model.onnx --slice 0,1 -o regions.svg

        tessella plot model.onnx --box -1,1 --slice 3,7 --at 0.5 --colour layer -o walls.pdf

        tessella plot model.onnx --through images.npz --colour slope -o plane.png
    """
    from tessella import plot as pictures  # noqa: PLC0415  loads the compiler
    from tessella.slicing import DEFAULT_PLANE, default_plane  # noqa: PLC0415  loads numpy

    pictures.require_matplotlib()
    check_output(output, _FORMATS)
    network = reading.network(model)
    shown = printing.shown
    domain = where.or_unit_cube(network)
    chosen = cut.slice(network, domain)
    unasked = chosen is None and domain.free_dim > 2
    if unasked:
        chosen = default_plane(network, domain)
    check_least(1, limit=limit)
    drawn, place = (chosen.network, chosen.domain) if chosen else (network, domain)
    with drawing.progress_line("regions", shown=shown) as tick:
        found = tessella.polygons(drawn, place, limit=limit, progress=tick)
    given: Any = (chosen,) if chosen else (network, domain)
    figure = pictures.regions(*given, polygons=found, colour=colour, output=of_output, limit=limit)
    picture = _rendered(figure, Path(output).suffix[1:].lower())
    with writing(output) as file:
        file.write(picture)
    if printing.as_json:
        record = {"model": model, "file": output, "regions": len(found), "slice": _described(chosen), "domain": place.to_dict()}
        drawing.print_json(record)
    elif printing.quiet:
        typer.echo(output)
    else:
        of_whole = f", inputs from {domain.describe()}" if chosen else ""
        typer.echo(f"{figure.axes[0].get_title()}{of_whole}")
        if unasked:
            typer.echo(f"{DEFAULT_PLANE}; --slice or --through choose another.")
        _tell_domain(domain, where)
        typer.echo(f"{output}: {_size(output)}")


@app.command()
@grouped
def report(  # noqa: PLR0913  one parameter per option
    *,
    model: Model,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Where to: .html.")] = "report.html",
    seconds: Annotated[float, typer.Option("--seconds", metavar="S", help="How long to analyse.")] = 30.0,
    cut: Cut,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="Show no more regions than this.")] = 20_000,
    where: Where,
    sureness: Sureness,
    reading: Reading,
    printing: Printing,
) -> None:
    """Analyse a network and write one page about it, to open in any browser: no connection is needed, nothing is sent anywhere.

    It shows how many regions there are, where they are on a slice that can be explored, which units are stable, and how all that was found.
    Without --box or --property inputs lie in [0, 1].  Ctrl-C ends the analysis and writes what is known.

    Examples
    --------
        tessella report model.onnx -o report.html

        tessella report model.onnx --box -1,1 --seconds 120 --slice 0,1

        tessella report model.onnx --through images.npz --limit 50000
    """
    from tessella import report as pages  # noqa: PLC0415  loads the compiler

    check_output(output, (".html", ".htm"))
    network = reading.network(model)
    domain, shown = where.or_unit_cube(network), printing.shown
    chosen = cut.slice(network, domain)
    check_least(1, limit=limit)
    check_least(seed=sureness.seed, workers=sureness.workers)
    past = pages.Provenance.of(model, ("tessella", *sys.argv[1:]))
    title = titled(model, network, domain)
    with brackets.live_analysis(title, seconds, shown=shown) as tell:
        found = tessella.analyze(
            network,
            domain,
            seconds=seconds,
            confidence=sureness.confidence,
            rng=sureness.seed,
            workers=sureness.workers or None,
            progress=tell,
        )
    with drawing.progress_line("regions on the slice", shown=shown) as tick:
        explorer = pages.explore(network, domain, slice=chosen, limit=limit, progress=tick)
    pages.write(output, found, shown=explorer, provenance=past)
    if printing.as_json:
        drawing.print_json({"model": model, "file": output, "shown": len(explorer.polygons), **found.to_dict()})
    elif printing.quiet:
        typer.echo(output)
    else:
        brackets.print_analysis(title, found)
        _tell_domain(domain, where)
        typer.echo(f"\n{explorer.where} {explorer.note}\n{output}: {_size(output)}; open it in a browser")
    end(interrupted=found.status is Status.INTERRUPTED)


def _tell_domain(domain: "Domain", where: Where) -> None:
    """Say which inputs were considered if nobody said which to."""
    if not where.is_given:
        typer.echo(f"No domain was given: inputs are taken from {domain.describe()}; --box chooses another.")


def _described(chosen: "Slice | None") -> dict[str, Any] | None:
    return (
        None if chosen is None else {"text": chosen.describe(), "origin": chosen.origin.tolist(), "basis": chosen.basis.tolist()}
    )


def _rendered(figure: Any, kind: str) -> bytes:
    from matplotlib import rc_context  # noqa: PLC0415

    buffer, dated = io.BytesIO(), {"svg": "Date", "pdf": "CreationDate"}.get(kind)
    with rc_context({"svg.hashsalt": "tessella"}):  # the same picture, the same file
        figure.savefig(buffer, format=kind, dpi=200, metadata={dated: None} if dated else None)
    return buffer.getvalue()


def _size(path: str) -> str:
    size = Path(path).stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(size / 1e3, 0.1):.1f} kB"
