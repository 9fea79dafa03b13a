"""The commands that look where the data are: `local` and `along`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import tessella
from tessella.cli.compressing import app
from tessella.cli.groups import Machines, Printing, Reading, grouped
from tessella.cli.later import drawing, places
from tessella.cli.options import Model, Seconds, Seed, check_least, check_output, end, numbers
from tessella.cli.where import Where
from tessella.errors import OptionError
from tessella.files import writing
from tessella.result import Status

if TYPE_CHECKING:
    from tessella.network import Floats, Network

_FILES = (".csv", ".npy", ".npz")
_FORMATS = (".svg", ".png", ".pdf")


@app.command()
@grouped
def local(  # noqa: PLR0913  one parameter per option
    *,
    model: Model,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="FILE", help="A .csv, .npy or .npz file of points, one row each.", show_default=False),
    ] = None,
    norm: Annotated[str, typer.Option("--norm", metavar="NAME", help="In which norm the balls are: linf, l1 or l2.")] = "linf",
    subspace: Annotated[
        int | None,
        typer.Option("--subspace", metavar="K", help="Take balls in K random orthonormal directions.", show_default=False),
    ] = None,
    first: Annotated[
        int | None, typer.Option("--first", metavar="N", help="Only the first N points.", show_default=False)
    ] = None,
    where: Where,
    seconds: Seconds = None,
    seed: Seed = 0,
    machines: Machines,
    reading: Reading,
    printing: Printing,
) -> None:
    """Count the regions around points, and say how far the nearest wall is.

    --radius is that of the balls; --box cuts off what lies outside of it.  All that is said is proved.
    A time limit or Ctrl-C ends with what is known by then.

    Examples
    --------
        tessella local model.onnx --data X.npy --radius 0.05

        tessella local mnist.onnx --data images.npy --radius 0.001 --box 0,1 --norm l2

        tessella local model.onnx --data X.npy --radius 0.5 --subspace 2 --json
    """
    if data is None or where.radius is None:
        msg = "say which points, and how far around them: --data X.npy --radius 0.05"
        raise OptionError(msg)
    others = [name for name, value in where.given().items() if value is not None and name not in {"box", "radius"}]
    if others:
        msg = f"--{others[0].replace('_', '-')} does not go with --data; the points are read as the network reads them"
        raise OptionError(msg)
    check_least(seed=seed)
    if first is not None:
        check_least(1, first=first)
    network = reading.network(model)
    points, radius = _points(data)[:first], numbers(where.radius, "--radius")
    if len(radius) != 1:
        msg = f"--radius takes one number for the balls of all points; got {where.radius!r:.40}"
        raise OptionError(msg)
    within = None if where.box is None else Where(box=where.box).domain(network)
    with drawing.progress_bar("points", shown=printing.shown) as tick:
        options: dict[str, Any] = {"subspace": subspace, "domain": within, "seconds": seconds, "rng": seed, **machines.given()}
        found = tessella.local(network, points, radius[0], norm, progress=tick, **options)
    if printing.as_json:
        drawing.print_json({"model": model, **found.to_dict()})
    else:
        places.print_local(os.path.basename(model), found, quiet=printing.quiet)
    end(interrupted=found.status is Status.INTERRUPTED)


@app.command()
@grouped
def along(  # noqa: PLR0913  one parameter per option
    *,
    model: Model,
    begin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="POINT",
            help="Where the path begins: a .csv, .npy or .npz file with one input, or its numbers.",
            show_default=False,
        ),
    ] = None,
    stop: Annotated[
        str | None,
        typer.Option("--to", metavar="POINT", help="Where it ends: a file or numbers, as for --from.", show_default=False),
    ] = None,
    path: Annotated[
        str | None,
        typer.Option(
            "--path",
            metavar="FILE",
            help="Instead of --from and --to: a .csv, .npy or .npz file with the corners of a path, one row each.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Draw the outputs along the path, too: .svg, .png or .pdf.", show_default=False
        ),
    ] = None,
    of_output: Annotated[
        int | None, typer.Option("--of-output", metavar="N", help="The output that is drawn; all by default.", show_default=False)
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", metavar="S", help="Stop after this time, with what is known by then.", show_default=False),
    ] = None,
    reading: Reading,
    printing: Printing,
) -> None:
    """Find all regions along a path of inputs: a line between two of them, or a path with corners.

    Positions are 0 at the first corner, 1 at the second, and so on.  What is said is proved; what could not be decided is marked.

    Examples
    --------
        tessella along model.onnx --from a.npy --to b.npy

        tessella along model.onnx --path corners.csv --json

        tessella along model.onnx --from a.npy --to b.npy -o breaks.png --of-output 0
    """
    if (path is None) == (begin is None) or (begin is None) != (stop is None):
        msg = "say which path: --from a.npy --to b.npy, or --path corners.npy"
        raise OptionError(msg)
    if of_output is not None and output is None:
        msg = "--of-output says which output is drawn; it goes with --output"
        raise OptionError(msg)
    if output is not None:
        _drawable(output)
    network = reading.network(model)
    corners: Any = (
        _points(path) if path is not None else [_input(begin or "", "--from", network), _input(stop or "", "--to", network)]
    )
    with drawing.progress_bar("walking", shown=printing.shown) as tick:
        found = tessella.along(
            network, corners, seconds=seconds, progress=lambda reached, last, _: tick(int(100 * reached / last), 100)
        )
    if output is not None:
        _draw(found, output, of_output)
    if printing.as_json:
        drawing.print_json({"model": model, **({} if output is None else {"file": output}), **found.to_dict()})
    else:
        places.print_along(os.path.basename(model), found, quiet=printing.quiet)
        if output is not None and printing.shown:
            typer.echo(f"\n{output}: drawn")
    end(interrupted=found.status is Status.INTERRUPTED)


def _drawable(output: str) -> None:
    """Refuse what cannot be drawn before the work is done."""
    from tessella.charts import require_matplotlib  # noqa: PLC0415  loads the compiler

    require_matplotlib()
    check_output(output, _FORMATS)


def _draw(found: "tessella.Along", output: str, of_output: int | None) -> None:
    from tessella import plot  # noqa: PLC0415  loads the compiler
    from tessella.cli.pictures import rendered  # noqa: PLC0415  it stands on this file

    picture = rendered(plot.along(found, output=of_output), Path(output).suffix[1:].lower())
    with writing(output) as file:
        file.write(picture)


def _points(path: str) -> "Floats":
    """The points in a file."""
    from tessella.importers.points import read_points  # noqa: PLC0415  loads numpy

    return read_points(path)


def _input(text: str, option: str, network: "Network") -> "Floats":
    """One input, from a file or from numbers."""
    import numpy as np  # noqa: PLC0415  takes its time

    from tessella.door import flattened  # noqa: PLC0415
    from tessella.importers.points import read_arrays  # noqa: PLC0415

    point = np.array(numbers(text, option)) if Path(text).suffix.lower() not in _FILES else None
    if point is None:
        arrays = read_arrays(text)
        if len(arrays) != 1:
            msg = f"{text}: holds the arrays {', '.join(arrays)[:80]}; {option} takes a file with one input"
            raise OptionError(msg)
        (point,) = arrays.values()
    if point.size != network.input_dim:
        msg = f"{option} {text:.60} has {point.size:,} numbers, but the network has {network.input_dim:,} inputs; give one input"
        raise OptionError(msg)
    return flattened(point, network, option)
