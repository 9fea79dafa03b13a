"""The commands on the paper's MILP: `mipbound`, and `export` for other solvers."""

import os
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

import tessella
from tessella.cli.commands import app, find_stability
from tessella.cli.later import Later
from tessella.cli.options import (
    AsJson,
    BoxOption,
    Confidence,
    Debug,
    MethodOption,
    Model,
    OutputName,
    ParitySizes,
    PropertyOption,
    Quiet,
    ReluOutput,
    Repetitions,
    SecondsPerUnit,
    Seed,
    ShapeOption,
    SolverOption,
    Variables,
    Workers,
    check_least,
    need_domain,
    read_network,
    read_solver,
    refuse,
    whole_numbers,
)
from tessella.methods import Method

if TYPE_CHECKING:
    from tessella.cli import drawing
else:
    drawing = Later("tessella.cli.drawing")  # loads rich, numpy and the compiler


@app.command()
def mipbound(  # noqa: PLR0913  one parameter per option
    *,
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A network's file; or a problem's: .mps, .lp, .cip.", show_default=False)
    ],
    box: BoxOption = None,
    property_file: PropertyOption = None,
    parity_size: ParitySizes = "3",
    confidence: Confidence = 0.95,
    repetitions: Repetitions = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", metavar="S", help="Stop each size after this time.", show_default=False)
    ] = None,
    variables: Variables = None,
    solver: SolverOption = None,
    method: MethodOption = Method.MILP,
    seconds_per_unit: SecondsPerUnit = 10.0,
    seed: Seed = 0,
    workers: Workers = 0,
    input_shape: ShapeOption = None,
    output_name: OutputName = None,
    relu_output: ReluOutput = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    _debug: Debug = False,
) -> None:
    """Bound the number of regions from below, with a probability (MIPBound); or of a MILP's solutions on its binary variables.

    Ctrl-C or a time limit ends with what the repetitions so far say (Ctrl-C before that ends bounding units).

    Examples
    --------
        tessella mipbound model.onnx --box 0,1

        tessella mipbound model.onnx --box 0,1 --parity-size 2,3,4,5 --confidence 0.95

        tessella mipbound model.onnx --box 0,1 --seconds 60 --json

        tessella mipbound knapsack.mps --parity-size 3 --variables x1,x2,x3
    """
    from tessella.probable.result import MIPBoundStatus  # noqa: PLC0415  loads numpy
    from tessella.solvers.reading import is_problem  # noqa: PLC0415

    sizes, shown = whole_numbers(parity_size, "--parity-size"), not (as_json or quiet)
    given: dict[str, Any] = {"confidence": confidence, "repetitions": repetitions, "seconds": seconds, "rng": seed}
    check_least(workers=workers)
    given |= {"workers": workers or None, "solver": read_solver(solver)}
    if is_problem(model):
        network_only = {"box": box, "property": property_file, "input_shape": input_shape, "output_name": output_name}
        refuse("goes with a network, not with a problem", **network_only, relu_output=relu_output)
        names = None if variables is None else [name.strip() for name in variables.split(",")]
        title, bound = os.path.basename(model), partial(tessella.mipbound_model, model, names, **given)
    else:
        refuse("goes with a .mps or .lp file, not with a network", variables=variables)
        network = read_network(model, input_shape, output_name, relu_output=relu_output)
        domain = need_domain(network, box, property_file)
        title = f"{os.path.basename(model)}: {network.shape} on {domain.describe()}"
        known = find_stability(network, domain, method, seconds_per_unit, workers, shown=shown)
        bound = partial(tessella.mipbound, network, domain, stability=known, **given)
    found = list[tessella.MIPBound]()
    for size in sizes:
        with drawing.live_repetitions(title, shown=shown) as tick:
            found.append(bound(parity_size=size, progress=tick))
        if found[-1].status is MIPBoundStatus.INTERRUPTED:
            break
    if as_json:
        drawing.print_json({"model": model, "bounds": [each.to_dict() for each in found]})
    else:
        drawing.print_mipbounds(title, found, quiet=quiet)
    drawing.print_early(found[-1])


@app.command()
def export(  # noqa: PLR0913  one parameter per option
    *,
    model: Model,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="A .mps or .lp file (or .gz) to write.")],
    box: BoxOption = None,
    property_file: PropertyOption = None,
    method: MethodOption = Method.MILP,
    seconds_per_unit: SecondsPerUnit = 10.0,
    workers: Workers = 0,
    input_shape: ShapeOption = None,
    output_name: OutputName = None,
    relu_output: ReluOutput = False,
    outputs: Annotated[
        bool, typer.Option("--outputs", metavar="", help="Model the linear outputs too; the objective is left empty.")
    ] = False,
    no_cuts: Annotated[bool, typer.Option("--no-cuts", metavar="", help="Leave out the paper's valid inequalities.")] = False,
    quiet: Quiet = False,
    _debug: Debug = False,
) -> None:
    """Write the MILP whose binaries are the activation patterns, for any solver.

    Examples
    --------
        tessella export model.onnx --box 0,1 -o model.mps

        tessella export model.onnx --box 0,1 --method linear --outputs -o model.lp
    """
    from tessella.formulation import formulate, write_model  # noqa: PLC0415  loads scipy

    network = read_network(model, input_shape, output_name, relu_output=relu_output)
    domain = need_domain(network, box, property_file)
    found = find_stability(network, domain, method, seconds_per_unit, workers, shown=not quiet)
    formulation = formulate(
        network, domain, found.bounds, positivity=not outputs, valid_inequalities=not no_cuts, outputs=outputs
    )
    write_model(formulation.model, output)
    if not quiet:
        rows, columns = formulation.model.rows.shape
        typer.echo(
            f"{output}: {columns} variables ({len(formulation.binaries)} binary), {rows} rows, bounds by {found.bounds.method}"
        )
