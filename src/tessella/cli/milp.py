"""The commands on the paper's MILP: `mipbound`, and `export` for other solvers."""

import os
from dataclasses import dataclass
from functools import partial
from typing import Any

import typer

import tessella
from tessella.cli import options
from tessella.cli.app import command
from tessella.cli.groups import Machines, Printing, Ranges, Reading
from tessella.cli.later import drawing, networks
from tessella.cli.meanings import check_apart, check_output, end, read_solver, refuse, titled, whole_numbers
from tessella.cli.where import Where
from tessella.result import Status

_FORMATS = (".mps", ".lp", ".mps.gz", ".lp.gz")


@dataclass(frozen=True, slots=True)
class Trials:
    """What MIPBound draws."""

    parity_size: options.ParitySizes = "3"
    confidence: options.Confidence = 0.95
    repetitions: options.Repetitions = None
    seconds: options.MipboundSeconds = None


@command
def mipbound(  # noqa: PLR0913  one parameter per option
    *,
    model: options.NetworkOrProblem,
    where: Where,
    trials: Trials,
    variables: options.Variables = None,
    solver: options.Solver = None,
    ranges: Ranges,
    seed: options.Seed = 0,
    machines: Machines,
    reading: Reading,
    printing: Printing,
) -> None:
    """Bound the number of regions from below, with a probability (MIPBound); or of a MILP's solutions on its binary variables.

    Ctrl-C or a time limit ends with what the repetitions so far say.

    Examples
    --------
        tessella mipbound model.onnx --box 0,1

        tessella mipbound model.onnx --box 0,1 --parity-size 2,3,4,5 --confidence 0.95

        tessella mipbound model.onnx --box 0,1 --seconds 60 --json

        tessella mipbound knapsack.mps --parity-size 3 --variables x1,x2,x3
    """
    from tessella.solvers.reading import is_problem  # noqa: PLC0415

    sizes, shown = whole_numbers(trials.parity_size, "--parity-size"), printing.shown
    given: dict[str, Any] = {
        "confidence": trials.confidence,
        "repetitions": trials.repetitions,
        "seconds": trials.seconds,
        "rng": seed,
        "solver": read_solver(solver),
    }
    if is_problem(model):
        refuse("goes with a network, not with a problem", **where.given(), **reading.given())
        names = None if variables is None else [name.strip() for name in variables.split(",")]
        title, bound = os.path.basename(model), partial(tessella.mipbound_model, model, names, **given)
    else:
        refuse("goes with a .mps or .lp file, not with a network", variables=variables)
        network = reading.network(model)
        domain = where.needed(network)
        title = titled(model, network, domain)
        known = ranges.to_go_on_with(network, domain, machines, shown=shown)
        bound = partial(tessella.mipbound, network, domain, stability=known, **given)
    found = list[tessella.MIPBound]()
    for size in sizes:
        with drawing.live_repetitions(title, shown=shown) as tick:
            found.append(bound(parity_size=size, progress=tick, **machines.given()))
        if found[-1].status in {Status.INTERRUPTED, Status.LOST}:
            break
    if printing.as_json:
        drawing.print_json({"model": model, "bounds": [each.to_dict() for each in found]})
    else:
        drawing.print_mipbounds(title, found, quiet=printing.quiet)
    drawing.print_early(found[-1])
    end(interrupted=found[-1].status is Status.INTERRUPTED, lost=found[-1].status is Status.LOST)


@command
def export(  # noqa: PLR0913  one parameter per option
    *,
    model: options.Model,
    output: options.ExportOutput,
    where: Where,
    ranges: Ranges,
    machines: Machines,
    reading: Reading,
    outputs: options.ExportOutputs = False,
    no_cuts: options.ExportNoCuts = False,
    float32: options.Float32 = False,
    quiet: options.Quiet = False,
    _debug: options.Debug = False,
) -> None:
    """Write the MILP whose binaries are the activation patterns, for any solver; or the network itself, in another format.

    A network needs no domain: its file has all its units and weights.

    Examples
    --------
        tessella export model.onnx --box 0,1 -o model.mps

        tessella export model.onnx --box 0,1 --method linear --outputs -o model.lp

        tessella export model.pt2 -o model.onnx
    """
    from tessella.formulation import formulate, write_model  # noqa: PLC0415  loads scipy

    check_output(output, (*_FORMATS, *networks.FORMATS))
    check_apart(output, model)
    if networks.is_network(output):
        refuse("goes with a .mps or .lp file", outputs=outputs, no_cuts=no_cuts, **where.given())
        networks.check_format(output, float32=float32)
        read = reading.network(model)
        networks.write_network(read, output, float32=float32)
        if not quiet:
            typer.echo(f"{output}: {read.shape}, {read.relus:,} ReLUs, {read.parameters:,} weights and biases")
        return
    refuse("goes with a network's file, such as .onnx", float32=float32)
    network = reading.network(model)
    domain = where.needed(network)
    found = ranges.to_go_on_with(network, domain, machines, shown=not quiet)
    formulation = formulate(
        network, domain, found.bounds, positivity=not outputs, valid_inequalities=not no_cuts, outputs=outputs
    )
    write_model(formulation.model, output)
    if not quiet:
        rows, columns = formulation.model.rows.shape
        typer.echo(
            f"{output}: {columns} variables ({len(formulation.binaries)} binary), {rows} rows, bounds by {found.bounds.method}"
        )
