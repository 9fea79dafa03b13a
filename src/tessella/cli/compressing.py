"""The command that makes networks smaller: `compress`."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

import tessella
from tessella.cli import options
from tessella.cli.app import command
from tessella.cli.groups import Machines, Printing, Ranges, Reading
from tessella.cli.later import compressions, drawing, networks
from tessella.cli.meanings import check_apart, check_output, end, note, refuse, titled
from tessella.cli.where import Where

if TYPE_CHECKING:
    from tessella.compressing.result import Compression


@command
def compress(  # noqa: PLR0913  one parameter per option
    *,
    model: options.Model,
    output: options.CompressOutput = None,
    float32: options.Float32 = False,
    where: Where,
    ranges: Ranges,
    seconds: options.Seconds = None,
    machines: Machines,
    reading: Reading,
    printing: Printing,
) -> None:
    """Make a network smaller without changing what it computes on a domain.

    Units that never change their state there, that are multiples of others, or that nobody reads are removed.  What is left has the same outputs on the
    domain, but for a rounding error with a proved bound.

    A time limit or Ctrl-C ends with the units that are proved stable so far.

    Examples
    --------
        tessella compress model.onnx --box 0,1 -o smaller.onnx

        tessella compress model.onnx --box 0,1 --method linear

        tessella compress acasxu.onnx --property prop_3.vnnlib -o smaller.onnx --float32

        tessella compress model.onnx --around image.npy --radius 0.03 --box 0,1 -o smaller.npz --json
    """
    if output is None:
        refuse("says how a file is written; give one with -o", float32=float32)
    else:
        check_output(output, networks.FORMATS)
        check_apart(output, model)
        networks.check_format(output, float32=float32)
    network = reading.network(model)
    domain = where.needed(network)
    known = ranges.stability(network, domain, machines, shown=printing.shown, seconds=seconds)
    found = tessella.compress(network, domain, stability=known)
    if output is not None:
        networks.write_network(found.network, output, float32=float32)
    if printing.as_json:
        drawing.print_json({"model": model, "file": output, **found.to_dict()})
    elif printing.quiet:
        typer.echo(str(found.network.relus))
    else:
        compressions.print_compression(titled(model, network, domain), found)
    if output is not None and printing.shown:
        _tell_file(model, output, found, float32=float32)
    end(interrupted=found.interrupted)


def _tell_file(model: str, output: str, found: "Compression", *, float32: bool) -> None:
    """What was written, and what a reader of the file should know."""
    size, before = (Path(place).stat().st_size if Path(place).is_file() else 0 for place in (output, model))
    typer.echo(f"{output}: {size / 1000:,.1f} kB" + (f" ({model}: {before / 1000:,.1f} kB)" if before else ""))
    if float32:
        note("weights are rounded to single precision in the file, which the bound on the difference does not cover")
    if compressions.stored_sparsely(found.network) and not output.lower().endswith(".npz"):
        note("sparse weights (of convolutions, say) are written as matrices with all their zeros; an .npz file keeps them sparse")
