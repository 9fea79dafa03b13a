"""The commands that draw: `plot` and `report`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import tessella
from tessella.cli import options
from tessella.cli.app import command
from tessella.cli.figures import check_drawable, write_figure
from tessella.cli.groups import Cut, Examples, Machines, Printing, Reading, Sureness
from tessella.cli.later import brackets, drawing
from tessella.cli.meanings import check_least, check_output, end, whole_numbers
from tessella.cli.several import One, analysed, compared, ranking_of, read_models
from tessella.cli.where import Where
from tessella.files import writing
from tessella.result import Status

if TYPE_CHECKING:
    from tessella.domain import Domain
    from tessella.network import Network
    from tessella.report import Explorer
    from tessella.slicing import Slice


@command
def plot(  # noqa: PLR0913  one parameter per option
    *,
    model: options.Model,
    output: options.PlotOutput = "regions.svg",
    cut: Cut,
    colour: options.PlotColour = "region",
    layers: options.PlotLayers = None,
    of_output: options.PlotOfOutput = None,
    limit: options.PlotLimit = 500_000,
    examples: Examples,
    where: Where,
    reading: Reading,
    printing: Printing,
) -> None:
    """Draw the regions of a network: exact polygons on a plane of its inputs, or the function on a line.

    Networks with one or two inputs are drawn as they are, others on a slice: by default the plane through the centre of the domain and two
    corners of its box.  Without --box or --property inputs lie in [0, 1].
    Needs matplotlib: pip install matplotlib.

    Examples
    --------
        tessella plot model.onnx -o regions.svg

        tessella plot model.onnx --data images.npy --labels classes.npy -o decision.png

        tessella plot model.onnx --box -1,1 --slice 3,7 --at 0.5 --colour layer -o walls.pdf

        tessella plot model.onnx --through images.npz --colour slope -o plane.png

        tessella plot two_inputs.onnx --colour active --layers 1,2 -o active.svg

        tessella plot three_inputs.onnx -o solids.html
    """
    from tessella import plot as pictures  # noqa: PLC0415  loads the compiler

    check_drawable(output, ".html")
    network = reading.network(model)
    domain = where.or_unit_cube(network)
    if Path(output).suffix.lower() == ".html":
        _solids(model, output, domain, network, limit, printing)
        return
    given = examples.given()
    chosen, said = _slice(network, domain, cut, given)
    check_least(1, limit=limit)
    drawn, place = (chosen.network, chosen.domain) if chosen else (network, domain)
    with drawing.progress_line("regions", shown=printing.shown) as tick:
        found = tessella.polygons(drawn, place, limit=limit, progress=tick)
    chosen_layers = [] if layers is None else whole_numbers(layers, "--layers")
    what: Any = (chosen,) if chosen else (network, domain)
    figure = pictures.regions(*what, polygons=found, colour=colour, layers=chosen_layers, output=of_output, limit=limit, **given)
    write_figure(figure, output)
    if printing.as_json:
        record = {"model": model, "file": output, "regions": len(found), "slice": _described(chosen), "domain": place.to_dict()}
        drawing.print_json(record)
    elif printing.quiet:
        typer.echo(output)
    else:
        of_whole = f", inputs from {domain.describe()}" if chosen else ""
        typer.echo(f"{figure.axes[0].get_title()}{of_whole}")
        _tell_slice(chosen, len(found), said, asked_axes=cut.axes is not None)
        _tell_domain(domain, where)
        typer.echo(f"{output}: {_size(output)}")


@command
def report(  # noqa: PLR0913  one parameter per option
    *,
    models: options.Models,
    output: options.ReportOutput = "report.html",
    seconds: options.ReportSeconds = 30.0,
    cut: Cut,
    examples: Examples,
    limit: options.ReportLimit = 20_000,
    where: Where,
    sureness: Sureness,
    machines: Machines,
    reading: Reading,
    printing: Printing,
) -> None:
    """Analyse a network and write one page about it, to open in any browser: no connection is needed, nothing is sent anywhere.

    It shows how many regions there are, where they are on a slice that can be explored, which units are stable, and how all that was found.
    With --data the slice goes through three examples, and shows where the network's decision changes.  Several models are compared on one page.
    Without --box or --property inputs lie in [0, 1].  Ctrl-C ends the analysis and writes what is known.

    Examples
    --------
        tessella report model.onnx -o report.html

        tessella report model.onnx --data images.npy --labels classes.npy

        tessella report model.onnx --box -1,1 --seconds 120 --slice 3,7

        tessella report before.onnx after.onnx --box 0,1 --seconds 60
    """
    from tessella import report as pages  # noqa: PLC0415  loads the compiler

    check_output(output, (".html", ".htm"))
    networks, shown, given = read_models(models, reading), printing.shown, examples.given()
    chosen = {name: cut.slice(network, where.or_unit_cube(network)) for name, network in networks.items()}
    check_least(1, limit=limit)
    how: dict[str, Any] = {**sureness.given(), **machines.given()}
    pasts = {name: pages.Provenance.of(name, ("tessella", *sys.argv[1:])) for name in networks}
    done, explorers = list[One](), dict[str, pages.Explorer]()
    for one in analysed(networks, where.or_unit_cube, seconds=seconds, shown=shown, **how):
        with drawing.progress_line("regions on the slice", shown=shown) as tick:
            of = networks[one.name]
            explorers[one.name] = pages.explore(of, one.domain, slice=chosen[one.name], limit=limit, progress=tick, **given)
        done.append(one)
    ranking = ranking_of({one.name: one.found for one in done}, short=False) if len(done) > 1 else None
    first = done[0]
    if ranking is None:
        pages.write(output, first.found, shown=explorers[first.name], provenance=pasts[first.name])
    else:
        pages.write(output, ranking, shown=explorers, provenance={one.name: pasts[one.name] for one in done})
    records = [{"model": one.name, "shown": len(explorers[one.name].polygons), **one.found.to_dict()} for one in done]
    if printing.as_json:
        several = {"file": output, "models": records, "ranking": compared(ranking)} if ranking else {}
        drawing.print_json(several or {"model": first.name, "file": output, **records[0]})
    elif printing.quiet:
        typer.echo(output)
    else:
        _tell_report(done, explorers, ranking)
        _tell_domain(first.domain, where)
        typer.echo(f"{output}: {_size(output)}; open it in a browser")
    end(interrupted=done[-1].found.status is Status.INTERRUPTED, lost=done[-1].found.status is Status.LOST)


def _solids(model: str, output: str, domain: "Domain", network: "Network", limit: int, printing: Printing) -> None:  # noqa: PLR0913, PLR0917
    """Write a view of solids, for networks with three inputs."""
    from tessella import plot as pictures  # noqa: PLC0415  loads the compiler

    figure = pictures.space(network, domain, limit=limit)
    with writing(output) as file:
        file.write(figure.to_html(include_plotlyjs=True).encode())
    title = str(figure.layout.title.text)
    if printing.as_json:
        drawing.print_json({"model": model, "file": output, "domain": domain.to_dict()})
    else:
        typer.echo(output if printing.quiet else f"{title}\n{output}: {_size(output)}; open it in a browser")


def _tell_report(done: "list[One]", explorers: "dict[str, Explorer]", ranking: "tessella.Ranking | None") -> None:
    """What a report says, in a few lines."""
    for number, one in enumerate(done):
        brackets.print_analysis(("\n" if number else "") + one.title, one.found)
        typer.echo(f"\n{explorers[one.name].where} {explorers[one.name].note}")
    if ranking is not None:
        drawing.console().print()
        brackets.print_ranking(ranking)


def _slice(network: "Network", domain: "Domain", cut: Cut, given: dict[str, Any]) -> "tuple[Slice | None, str]":
    """The slice that is drawn, if it is not the domain itself; and which it is, if nobody asked for one."""
    chosen = cut.slice(network, domain)
    return (chosen, "") if chosen is not None or domain.free_dim <= 2 else _plane(network, domain, given)


def _plane(network: "Network", domain: "Domain", given: dict[str, Any]) -> "tuple[Slice, str]":
    """The plane that is drawn if none is asked for, and which it is."""
    from tessella.examples import examples as checked  # noqa: PLC0415  loads numpy
    from tessella.slicing import DEFAULT_PLANE, default_plane  # noqa: PLC0415

    if given:
        return checked(network, given["data"], given.get("labels")).plane(network, domain)
    return default_plane(network, domain), DEFAULT_PLANE


def _tell_slice(chosen: "Slice | None", regions: int, said: str, *, asked_axes: bool) -> None:
    """Say which slice was chosen, how many points it was given, and what else to try where it shows one region."""
    if said:
        typer.echo(f"{said}; --slice or --through choose another.")
    elif chosen is not None and chosen.points is not None and len(chosen.points) > chosen.dim + 1:
        typer.echo(f"All {len(chosen.points)} points lie in this plane, and are marked.")
    if regions == 1 and asked_axes:
        typer.echo(
            "No unit changes its state on this slice. Without --slice all inputs vary; --through takes points of your own."
        )


def _tell_domain(domain: "Domain", where: Where) -> None:
    """Say which inputs were considered if nobody said which to."""
    if not where.is_given:
        typer.echo(f"No domain was given: inputs are taken from {domain.describe()}; --box chooses another.")


def _described(chosen: "Slice | None") -> dict[str, Any] | None:
    return (
        None if chosen is None else {"text": chosen.describe(), "origin": chosen.origin.tolist(), "basis": chosen.basis.tolist()}
    )


def _size(path: str) -> str:
    size = Path(path).stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(size / 1e3, 0.1):.1f} kB"
