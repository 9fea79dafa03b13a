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
    from tessella.compressing.rewriting import Rewritten


@command
def compress(  # noqa: PLR0913  one parameter per option
    *,
    model: options.Model,
    output: options.CompressOutput = None,
    float32: options.Float32 = False,
    dense: options.DenseOutput = False,
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

    An ONNX model with convolutions is written with its own operators: channels that are never active, or that nobody reads, are gone.  With --dense, and from
    other formats, it is written as dense layers.

    A time limit or Ctrl-C ends with the units that are proved stable so far.

    Examples
    --------
        tessella compress model.onnx --box 0,1 -o smaller.onnx

        tessella compress model.onnx --box 0,1 --method linear

        tessella compress convnet.onnx --box 0,1 -o dense.onnx --dense

        tessella compress acasxu.onnx --property prop_3.vnnlib -o smaller.onnx --float32

        tessella compress model.onnx --around image.npy --radius 0.03 --box 0,1 -o smaller.npz --json
    """
    if output is None:
        refuse("says how a file is written; give one with -o", float32=float32, dense=dense)
    else:
        check_output(output, networks.FORMATS)
        check_apart(output, model)
        networks.check_format(output, float32=float32)
    network = reading.network(model)
    domain = where.needed(network)
    known = ranges.stability(network, domain, machines, shown=printing.shown, seconds=seconds)
    found = tessella.compress(network, domain, stability=known)
    kept = None
    if output is not None:
        kept = None if dense else _kept_convolutions(found, model, output, reading)
        if kept is None:
            networks.write_network(found.network, output, float32=float32)
    if printing.as_json:
        drawing.print_json({"model": model, "file": output, **found.to_dict(), "operators": kept.to_dict() if kept else None})
    elif printing.quiet:
        typer.echo(str((kept or found).network.relus))  # of what was written, if anything was
    else:
        compressions.print_compression(titled(model, network, domain), found)
    if output is not None and printing.shown:
        _tell_file(model, output, found, kept, float32=float32)
    end(interrupted=found.interrupted)


def _kept_convolutions(found: "Compression", model: str, output: str, reading: Reading) -> "Rewritten | None":
    """Write an ONNX model with the operators that it has; None if it has no convolutions, or is read in another way than it is."""
    ends = (".onnx", ".onnx.gz")
    if (
        not (output.lower().endswith(".onnx") and model.lower().endswith(ends))
        or reading.output_name
        or reading.fixed_inputs
        or reading.relu_output
    ):
        return None
    from tessella.compressing.rewriting import keeps_convolutions  # noqa: PLC0415  only for those who write

    return found.to_onnx(output, like=model) if keeps_convolutions(model) else None


def _tell_file(model: str, output: str, found: "Compression", kept: "Rewritten | None", *, float32: bool) -> None:
    """What was written, and what a reader of the file should know."""
    size, before = (Path(place).stat().st_size if Path(place).is_file() else 0 for place in (output, model))
    typer.echo(f"{output}: {size / 1000:,.1f} kB" + (f" ({model}: {before / 1000:,.1f} kB)" if before else ""))
    if kept is not None:
        compressions.print_operators(found, kept)
        if float32:
            note("convolutions stay what they are, and so does the precision of the model; --dense --float32 writes dense layers")
        return
    if float32:
        note("weights are rounded to single precision in the file, which the bound on the difference does not cover")
    if compressions.stored_sparsely(found.network) and not output.lower().endswith(".npz"):
        note("sparse weights (of convolutions, say) are written as matrices with all their zeros; an .npz file keeps them sparse")
