"""The commands that look where the data are: `local` and `along`."""

import os
from typing import TYPE_CHECKING, Any

import typer

import tessella
from tessella.cli import options
from tessella.cli.app import command
from tessella.cli.figures import check_drawable, write_figure
from tessella.cli.groups import Machines, Printing, Reading
from tessella.cli.later import drawing, places
from tessella.cli.meanings import check_both, check_least, end, numbers
from tessella.cli.where import Where, read_input
from tessella.errors import OptionError
from tessella.result import Status

if TYPE_CHECKING:
    from tessella.network import Floats


@command
def local(  # noqa: PLR0913  one parameter per option
    *,
    model: options.Model,
    data: options.LocalData = None,
    norm: options.LocalNorm = "linf",
    subspace: options.LocalSubspace = None,
    first: options.LocalFirst = None,
    where: Where,
    seconds: options.Seconds = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    machines: Machines,
    reading: Reading,
    printing: Printing,
) -> None:
    """Count the regions around points, and say how far the nearest wall is.

    --radius is that of the balls; --box cuts off what lies outside of it.  Counts and distances are proved.
    A time limit or Ctrl-C ends with what is known by then: proved bounds and, in the time given, bounds with a confidence.

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
        given: dict[str, Any] = {
            "subspace": subspace,
            "domain": within,
            "seconds": seconds,
            "confidence": confidence,
            "rng": seed,
            **machines.given(),
        }
        found = tessella.local(network, points, radius[0], norm, progress=tick, **given)
    if printing.as_json:
        drawing.print_json({"model": model, **found.to_dict()})
    else:
        places.print_local(os.path.basename(model), found, quiet=printing.quiet)
    end(interrupted=found.status is Status.INTERRUPTED)


@command
def along(  # noqa: PLR0913  one parameter per option
    *,
    model: options.Model,
    begin: options.AlongBegin = None,
    stop: options.AlongStop = None,
    path: options.AlongPath = None,
    output: options.AlongOutput = None,
    of_output: options.AlongOfOutput = None,
    seconds: options.AlongSeconds = None,
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
    check_both(of_output, output, "--of-output says which output is drawn; it goes with --output")
    if output is not None:
        check_drawable(output)
    network = reading.network(model)
    corners: Any = (
        _points(path)
        if path is not None
        else [read_input(begin or "", "--from", network), read_input(stop or "", "--to", network)]
    )
    with drawing.progress_bar("walking", shown=printing.shown) as tick:
        found = tessella.along(
            network, corners, seconds=seconds, progress=lambda reached, last, _: tick(int(100 * reached / last), 100)
        )
    if output is not None:
        from tessella import plot  # noqa: PLC0415  loads the compiler

        write_figure(plot.along(found, output=of_output), output)
    if printing.as_json:
        drawing.print_json({"model": model, **({} if output is None else {"file": output}), **found.to_dict()})
    else:
        places.print_along(os.path.basename(model), found, quiet=printing.quiet)
        if output is not None and printing.shown:
            typer.echo(f"\n{output}: drawn")
    end(interrupted=found.status is Status.INTERRUPTED)


def _points(path: str) -> "Floats":
    """The points in a file."""
    from tessella.importers.points import read_points  # noqa: PLC0415  loads numpy

    return read_points(path)
