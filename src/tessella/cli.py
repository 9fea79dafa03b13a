"""The command line: what a person types, and what a person reads."""

import json
import os
import sys
from importlib.resources import as_file, files
from typing import Annotated, Any

import typer
from rich import box as boxes
from rich.console import Console
from rich.table import Table

import tessella
from tessella.domain import Box, check_dimension
from tessella.errors import OptionError, TessellaError
from tessella.network import Network
from tessella.result import Bound, format_count, format_maps

app = typer.Typer(
    name="tessella",
    help="How many linear regions does a ReLU network have?",
    epilog="Start with: tessella demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Model = Annotated[str, typer.Argument(metavar="MODEL", help="A .onnx, .onnx.gz, .npz, .pt2 or .keras file.", show_default=False)]
BoxOption = Annotated[
    str | None, typer.Option("--box", metavar="LOW,HIGH", help="The interval of every input, such as 0,1.", show_default=False)
]
PropertyOption = Annotated[
    str | None, typer.Option("--property", metavar="FILE", help="A .vnnlib file whose input box to use.", show_default=False)
]
ShapeOption = Annotated[
    str | None,
    typer.Option("--input-shape", metavar="SIZES", help="One input's shape, such as 3,32,32, if the file does not tell."),
]
ReluOutput = Annotated[bool, typer.Option("--relu-output", help="Count a ReLU on every output, as the paper does.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the bare answer only.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def _version(asked: bool) -> None:  # noqa: FBT001  the framework calls it so
    if asked:
        typer.echo(f"tessella {tessella.__version__}")
        raise typer.Exit


@app.callback()
def options(
    *,
    _asked: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
    _debug: Debug = False,
) -> None:
    """How many linear regions does a ReLU network have?"""


@app.command()
def upper(  # noqa: PLR0913  one parameter per option
    *,
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="A .onnx, .onnx.gz, .npz, .pt2 or .keras file.")] = None,
    widths: Annotated[
        str | None, typer.Option("--widths", metavar="SIZES", help="Inputs and ReLUs per layer instead of a model.")
    ] = None,
    box: BoxOption = None,
    property_file: PropertyOption = None,
    input_shape: ShapeOption = None,
    relu_output: ReluOutput = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    _debug: Debug = False,
) -> None:
    """Bound the number of regions from above.

    Examples:

        tessella upper model.onnx

        tessella upper model.onnx --box 0,1 --relu-output

        tessella upper --widths 784,11,11,10

        tessella upper model.onnx --json
    """
    if (model is None) == (widths is None):
        msg = "give either a model, as in 'tessella upper model.onnx', or a shape, as in 'tessella upper --widths 784,11,11,10'"
        raise OptionError(msg)
    if widths is not None:
        _refuse(box=box, property=property_file, input_shape=input_shape, relu_output=relu_output)
        _upper_of_widths(_whole_numbers(widths, "--widths"), as_json=as_json, quiet=quiet)
        return
    network = _load(model, input_shape, relu_output=relu_output)
    domains = _domains(network, box, property_file)
    if len(domains) > 1:
        msg = f"{property_file}: has {len(domains)} input boxes ('tessella show' lists them); bound one box at a time with --box"
        raise OptionError(msg)
    found = tessella.upper_bounds(network, *domains)
    if as_json:
        _print_json({"model": model, **found.to_dict()})
    else:
        where = f"on {found.domain.describe()}" if found.domain else "on any domain"
        _print_bounds(
            found.bounds, f"{os.path.basename(model or '')}: {network.shape}, {network.relus} ReLUs, {where}", quiet=quiet
        )


@app.command()
def show(  # noqa: PLR0913  one parameter per option
    *,
    model: Model,
    box: BoxOption = None,
    property_file: PropertyOption = None,
    input_shape: ShapeOption = None,
    relu_output: ReluOutput = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    _debug: Debug = False,
) -> None:
    """Show a model's layers, units, parameters and domain, as Tessella reads them.

    Examples:

        tessella show model.onnx

        tessella show acasxu.onnx --property prop_1.vnnlib

        tessella show model.npz --box 0,1 --json
    """
    network = _load(model, input_shape, relu_output=relu_output)
    domains = _domains(network, box, property_file)
    if as_json:
        _print_json(_described(model, network, domains))
    elif quiet:
        typer.echo(repr(network))
    else:
        _print_network(os.path.basename(model), network, domains)


@app.command()
def demo(*, as_json: AsJson = False, quiet: Quiet = False, _debug: Debug = False) -> None:
    """Analyse a bundled network that was trained to read handwritten digits.

    Examples:

        tessella demo

        tessella demo --json
    """
    with as_file(files("tessella") / "data" / "digits.onnx") as path:
        network = tessella.load(path)
    domain = Box.cube(0.0, 1.0, network.input_dim)
    found = tessella.upper_bounds(network, domain)
    if as_json:
        _print_json({"model": "digits.onnx", **found.to_dict()})
        return
    if not quiet:
        console = _console()
        console.print("A network trained on 8 x 8 images of handwritten digits, bundled with Tessella.\n")
        _print_network("digits.onnx", network, (domain,))
        console.print()
    _print_bounds(found.bounds, "How many linear regions can it have?", quiet=quiet)
    if not quiet:
        _console().print(
            "\nEach line is proved, loosest first. MAPS is log2 of the count: so many ReLUs could at best do the same."
        )


def main() -> None:
    """Run the command line; errors end in one line on stderr."""
    debug = "--debug" in sys.argv[1:]
    try:
        app()  # ends in SystemExit; its own errors (a wrong option, say) in exit code 2
    except TessellaError as error:
        if debug:
            raise
        typer.echo(f"tessella: error: {error}", err=True)
        sys.exit(2)
    except Exception as error:
        if debug:
            raise
        typer.echo(f"tessella: internal error: {type(error).__name__}: {error} (--debug shows where; please report it)", err=True)
        sys.exit(1)


def _console() -> Console:
    """Rich in a terminal; plain and never wrapped in a pipe."""
    piped = not sys.stdout.isatty()
    return Console(width=200 if piped else None, highlight=False, markup=False, soft_wrap=piped)


def _table(title: str) -> Table:
    console = _console()
    plain = not console.is_terminal
    return Table(title=title, title_justify="left", title_style="bold", box=None if plain else boxes.SIMPLE_HEAD, pad_edge=False)


def _print_json(record: dict[str, Any]) -> None:
    typer.echo(json.dumps(record, indent=2))


def _print_bounds(bounds: tuple[Bound, ...], title: str, *, quiet: bool) -> None:
    if quiet:
        typer.echo(str(bounds[-1].value) if bounds[-1].maps < 10_000 else format_count(bounds[-1].value, bounds[-1].side))
        return
    table = _table(title)
    table.add_column("upper bound")
    table.add_column("regions, at most", justify="right")
    table.add_column("MAPS", justify="right")
    for bound in bounds:
        table.add_row(bound.method, format_count(bound.value, bound.side), format_maps(bound.value, bound.side))
    _console().print(table)


def _upper_of_widths(sizes: list[int], *, as_json: bool, quiet: bool) -> None:
    if len(sizes) < 2:
        msg = f"--widths needs the number of inputs and at least one layer, such as 784,11,11,10; got {','.join(map(str, sizes))}"
        raise OptionError(msg)
    methods = {"raghu": tessella.raghu_bound, "montufar": tessella.montufar_bound, "configuration": tessella.configuration_bound}
    bounds = tuple(Bound(method(sizes[0], sizes[1:]), tessella.Side.UPPER, method=name) for name, method in methods.items())
    if as_json:
        upper_record = {bound.method: bound.to_dict() for bound in bounds}
        _print_json({"tessella": tessella.__version__, "input_dim": sizes[0], "widths": sizes[1:], "upper": upper_record})
    else:
        _print_bounds(bounds, f"{'-'.join(map(str, sizes))}: {sum(sizes[1:])} ReLUs, on any domain", quiet=quiet)


def _print_network(name: str, network: Network, domains: tuple[Box, ...]) -> None:
    console = _console()
    table = _table(f"{name}: {network.shape}")
    for column in ("layer", "inputs", "ReLUs", "linear", "parameters", "weights"):
        table.add_column(column, justify="left" if column == "weights" else "right")
    for number, layer in enumerate(network.layers, start=1):
        kind = "dense" if hasattr(layer.weight, "flags") else "sparse"
        table.add_row(*map(str, (number, layer.inputs, layer.relus, layer.linear_units, f"{layer.parameters:,}", kind)))
    console.print(table)
    source = network.source
    shape = f", read row by row from {source.input_shape}" if source and len(source.input_shape) > 1 else ""
    console.print(f"inputs      {network.input_dim:,}{shape}")
    console.print(f"outputs     {network.output_dim:,}")
    console.print(f"ReLUs       {network.relus:,} in {network.depth} layer{'' if network.depth == 1 else 's'}")
    console.print(f"parameters  {network.parameters:,}")
    if source and source.points:
        console.print(
            f"checked     against the {source.kind} model at {source.points} points: largest difference {source.difference:.1e}"
        )
    for number, domain in enumerate(domains, start=1):
        fixed = f", {domain.dim - domain.free_dim} inputs fixed" if domain.free_dim < domain.dim else ""
        label = "domain" if len(domains) == 1 else f"domain {number}"
        console.print(f"{label:<11} {domain.describe()}{fixed}")
    if not domains:
        console.print("domain      not given (--box 0,1 or --property file.vnnlib)")


def _described(model: str, network: Network, domains: tuple[Box, ...]) -> dict[str, Any]:
    source = network.source
    return {
        "tessella": tessella.__version__,
        "model": model,
        "shape": network.shape,
        "fingerprint": network.fingerprint,
        "input_dim": network.input_dim,
        "input_shape": list(source.input_shape) if source else [network.input_dim],
        "output_dim": network.output_dim,
        "widths": list(network.widths),
        "relus": network.relus,
        "parameters": network.parameters,
        "layers": [
            {"inputs": layer.inputs, "relus": layer.relus, "linear": layer.linear_units, "parameters": layer.parameters}
            for layer in network.layers
        ],
        "check": {"points": source.points, "difference": source.difference} if source else None,
        "domains": [{"lower": domain.lower.tolist(), "upper": domain.upper.tolist()} for domain in domains],
    }


def _load(model: str | None, input_shape: str | None, *, relu_output: bool) -> Network:
    shape = None if input_shape is None else _whole_numbers(input_shape, "--input-shape")
    return tessella.load(model, input_shape=shape, relu_output=relu_output)


def _domains(network: Network, box: str | None, property_file: str | None) -> tuple[Box, ...]:
    if box is not None and property_file is not None:
        msg = "give either --box or --property, not both"
        raise OptionError(msg)
    domains: tuple[Box, ...] = ()
    if property_file is not None:
        domains = tessella.load_domains(property_file)
    if box is not None:
        ends = _numbers(box, "--box")
        if len(ends) != 2:
            msg = f"--box takes the ends of an interval, such as 0,1; got {box!r}"
            raise OptionError(msg)
        domains = (Box.cube(ends[0], ends[1], network.input_dim),)
    for domain in domains:
        check_dimension(domain, network.input_dim)
    return domains


def _refuse(**given: object) -> None:
    for name, value in given.items():
        if value:
            msg = f"--{name.replace('_', '-')} goes with a model, not with --widths"
            raise OptionError(msg)


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        msg = f"{option} takes numbers separated by commas; got {text!r}"
        raise OptionError(msg) from error


def _whole_numbers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        msg = f"{option} takes whole numbers separated by commas; got {text!r:.80}"
        raise OptionError(msg) from error
