"""The commands that show, bound, count and estimate."""

import os
from typing import TYPE_CHECKING, Any

import typer

import tessella
from tessella.cli import options
from tessella.cli.app import command
from tessella.cli.forecasts import Forecast
from tessella.cli.groups import Machines, Printing, Ranges, Reading, Sureness
from tessella.cli.later import certificates, drawing, outputs, unions
from tessella.cli.meanings import check_output, end, refuse, titled, whole_numbers
from tessella.cli.where import Where
from tessella.errors import OptionError
from tessella.methods import Claim, CountMethod, Method, Units
from tessella.result import Bound, Side, Status

if TYPE_CHECKING:
    from tessella.domain import Domain
    from tessella.network import Network

_LEAST_SECONDS = 1e-3  # for the last of several boxes


@command
def upper(  # noqa: PLR0913  one parameter per option
    *,
    model: options.UpperModel = None,
    widths: options.UpperWidths = None,
    where: Where,
    method: options.UpperMethod = None,
    seconds_per_unit: options.SecondsPerUnit = 10.0,
    seconds: options.UpperSeconds = None,
    machines: Machines,
    count: options.UpperCount = None,
    verbose: options.UpperVerbose = False,
    reading: Reading,
    printing: Printing,
) -> None:
    """Bound the number of regions from above.

    With a domain (--box or --property) the weights count too: the empirical bound knows which units are stable there.
    With --seconds, too, cells of the first layer are listed: the cellwise bound, which pays where inputs are few.

    Examples
    --------
        tessella upper model.onnx

        tessella upper model.onnx --box 0,1 --relu-output

        tessella upper model.npz --box -1,1 --seconds 15

        tessella upper --widths 784,11,11,10

        tessella upper model.onnx --box 0,1 --method linear --json

        tessella upper model.onnx --box 0,1 --verbose
    """
    if printing.quiet:
        refuse("adds a table; leave out --quiet", verbose=verbose)
    if (model is None) == (widths is None):
        msg = "give either a model, as in 'tessella upper model.onnx', or a shape, as in 'tessella upper --widths 784,11,11,10'"
        raise OptionError(msg)
    if model is None:
        refuse(
            "goes with a model, not with --widths",
            count=count,
            method=method,
            seconds=seconds,
            verbose=verbose,
            **where.given(),
            **reading.given(),
        )
        _upper_of_widths(whole_numbers(widths or "", "--widths"), as_json=printing.as_json, quiet=printing.quiet)
        return
    network = reading.network(model)
    domain = where.domain(network)
    chosen, shown = method or Method.MILP, printing.shown
    found = None if domain is None else Ranges(chosen, seconds_per_unit).stability(network, domain, machines, shown=shown)
    bounds = tessella.upper_bounds(network, domain, stability=found, seconds=seconds, progress=shown or None)
    closed = None if count is None else bounds.gap_closed(count)
    if printing.as_json:
        drawing.print_json({"model": model, **bounds.to_dict(), **({} if closed is None else {"gap_closed": closed})})
    else:
        place = f"on {domain.describe()}" if domain else "on any domain"
        title = f"{os.path.basename(model)}: {network.shape}, {network.relus} ReLUs, {place}"
        drawing.print_bounds(bounds.bounds, title, quiet=printing.quiet)
    if shown:
        drawing.print_gap(bounds, closed)
    if shown and verbose and bounds.empirical_details:
        drawing.print_coverage(bounds.empirical_details)
    stopped = (found is not None and found.bounds.interrupted) or bounds.status is Status.INTERRUPTED
    end(interrupted=stopped)


@command
def show(  # noqa: PLR0913  one parameter per option
    *,
    model: options.Model,
    where: Where,
    reading: Reading,
    printing: Printing,
) -> None:
    """Show a model's layers, units, parameters and domain, as Tessella reads them.

    Examples
    --------
        tessella show model.onnx

        tessella show acasxu.onnx --property prop_1.vnnlib

        tessella show model.npz --box 0,1 --json
    """
    network = reading.network(model)
    domains = where.domains(network)
    if printing.as_json:
        drawing.print_json(_described(model, network, domains))
    elif printing.quiet:
        typer.echo(repr(network))
    else:
        drawing.print_network(os.path.basename(model), network, domains)


@command
def stability(  # noqa: PLR0913  one parameter per option
    *,
    model: options.Model,
    where: Where,
    ranges: Ranges,
    units: options.UnitsOption = Units.UNSTABLE,
    seconds: options.Seconds = None,
    bounds_out: options.BoundsOut = None,
    certificate: options.Certificate = None,
    machines: Machines,
    reading: Reading,
    printing: Printing,
) -> None:
    """Find the units that never change their state over a domain.

    With --units all: the exact range of every unit, and a table of the outputs.  With --certificate: a file that proves which units are stable.

    A time limit or Ctrl-C ends with what is proved so far.

    Examples
    --------
        tessella stability model.onnx --box 0,1

        tessella stability acasxu.onnx --property prop_1.vnnlib --method linear

        tessella stability model.onnx --box 0,1 --units all

        tessella stability model.onnx --box 0,1 --json > stability.json

        tessella stability model.onnx --box 0,1 --units all --bounds-out bounds.csv

        tessella stability model.onnx --box 0,1 --certificate stable.cert.gz
    """
    if bounds_out is not None:
        check_output(bounds_out, (".csv", ".json"))
    network = reading.network(model)
    domain = where.needed(network)
    certificates.check(certificate, [domain], model)
    found = ranges.stability(network, domain, machines, shown=printing.shown, units=units, seconds=seconds)
    if bounds_out is not None:
        from tessella.optimise import plain  # noqa: PLC0415  loads numpy

        plain.write(found, bounds_out)
    if printing.as_json:
        drawing.print_json({"model": model, **found.to_dict()})
    elif printing.quiet:
        typer.echo(f"{found.totals()['unstable']}")
    else:
        drawing.print_stability(titled(model, network, domain), found)
        if units is Units.ALL:
            outputs.print_outputs(found)
        if bounds_out is not None:
            typer.echo(f"\n{bounds_out}: bounds of every unit")
    stopped = found.bounds.interrupted
    if certificate is not None and not stopped:
        written = certificates.write(network, domain, certificate, shown=printing.shown, claim=Claim.STABILITY, stability=found)
        stopped = not written.is_whole
    end(interrupted=stopped)


@command
def count(  # noqa: PLR0913  one parameter per option
    *,
    model: options.Model,
    where: Where,
    seconds: options.Seconds = None,
    checkpoint: options.Checkpoint = None,
    certificate: options.Certificate = None,
    method: options.CountMethodOption = CountMethod.WALK,
    machines: Machines,
    reading: Reading,
    printing: Printing,
) -> None:
    """Count the regions, exactly if there is time enough.

    A time limit or Ctrl-C ends with a bracket: proved lower and upper bounds.  With a checkpoint the same command goes on later.

    The boxes of a property are counted one by one, then added up: the time is for all of them.

    With --certificate an exact count is written down as a proof: see 'tessella verify'.

    Examples
    --------
        tessella count model.onnx --box 0,1

        tessella count model.onnx --box 0,1 --certificate count.cert.gz

        tessella count two_inputs.onnx --box 0,1,-2,2

        tessella count model.onnx --box corners.csv

        tessella count mnist.onnx --around image.npy --radius 0.03 --box 0,1 --mean 0.1307 --std 0.3081

        tessella count model.onnx --box 0,1 --seconds 60 --checkpoint run.db

        tessella count acasxu.onnx --property prop_1.vnnlib --json
    """
    network = reading.network(model)
    domains = where.all_needed(network)
    if method is CountMethod.MILP:
        refuse("goes with --method walk", processes=machines.processes, cluster=machines.cluster)
    if checkpoint is not None and len(domains) > 1:
        msg = f"--checkpoint goes with one box, and there are {len(domains)}; choose one with --property-box"
        raise OptionError(msg)
    certificates.check(certificate, domains, model)
    shown, left, found = printing.shown, seconds, list[tessella.Count]()
    for number, domain in enumerate(domains):
        title = titled(model, network, domain)
        share = None if left is None else left / (len(domains) - number)
        with Forecast(network, domain) as forecast, drawing.live_bracket(title, forecast.at, shown=shown) as tick:
            given: dict[str, Any] = {**machines.given(), "checkpoint": checkpoint, "progress": tick, "method": method}
            found.append(tessella.count(network, domain, seconds=share, **given))
        left = left and max(left - found[-1].seconds, _LEAST_SECONDS)
        if not printing.as_json:
            drawing.print_count(title, found[-1], quiet=printing.quiet)
        drawing.print_stop(found[-1], checkpoint)
        if found[-1].status in {Status.INTERRUPTED, Status.LOST}:
            break
    if len(domains) > 1:
        unions.finish(model, found, domains, as_json=printing.as_json, quiet=printing.quiet)
    elif printing.as_json:
        drawing.print_json({"model": model, **found[0].to_dict()})
    stopped = found[-1].status is Status.INTERRUPTED
    if certificate is not None and not stopped:
        stopped = not certificates.write_count(certificate, found[0], shown=shown)
    end(interrupted=stopped, lost=found[-1].status is Status.LOST)


@command
def estimate(  # noqa: PLR0913  one parameter per option
    *,
    model: options.Model,
    where: Where,
    seconds: options.EstimateSeconds = None,
    probes: options.Probes = None,
    sureness: Sureness,
    machines: Machines,
    reading: Reading,
    printing: Printing,
) -> None:
    """Estimate the number of regions, with a lower bound that holds with a given confidence.

    Random descents, for networks with too many regions to count.  If they can be counted in the time given, they are.
    Ctrl-C ends with what is known so far.

    Examples
    --------
        tessella estimate model.onnx --box 0,1 --seconds 5

        tessella estimate model.onnx --box 0,1 --probes 1000 --seed 1 --json

        tessella estimate acasxu.onnx --property prop_1.vnnlib --seconds 30 --confidence 0.99
    """
    network = reading.network(model)
    domain = where.needed(network)
    title, given = titled(model, network, domain), {**sureness.given(), **machines.given()}
    with drawing.live_estimate(title, shown=printing.shown) as tick:
        found = tessella.estimate(network, domain, seconds=seconds, probes=probes, progress=tick, **given)
    if printing.as_json:
        drawing.print_json({"model": model, **found.to_dict()})
    else:
        drawing.print_estimate(title, found, quiet=printing.quiet)
    end(interrupted=found.status is Status.INTERRUPTED, lost=found.status is Status.LOST)


def _upper_of_widths(sizes: list[int], *, as_json: bool, quiet: bool) -> None:
    if len(sizes) < 2:
        msg = f"--widths needs the number of inputs and at least one layer, such as 784,11,11,10; got {','.join(map(str, sizes))}"
        raise OptionError(msg)
    methods = {"raghu": tessella.raghu_bound, "montufar": tessella.montufar_bound, "configuration": tessella.configuration_bound}
    bounds = tuple(Bound(method(sizes[0], sizes[1:]), Side.UPPER, method=name) for name, method in methods.items())
    if as_json:
        record = {bound.method: bound.to_dict() for bound in bounds}
        drawing.print_json({"input_dim": sizes[0], "widths": sizes[1:], "upper": record})
    else:
        drawing.print_bounds(bounds, f"{'-'.join(map(str, sizes))}: {sum(sizes[1:])} ReLUs, on any domain", quiet=quiet)


def _described(model: str, network: "Network", domains: "tuple[Domain, ...]") -> dict[str, Any]:
    source = network.source
    return {
        "model": model,
        "shape": network.shape,
        "fingerprint": network.fingerprint,
        "input_dim": network.input_dim,
        "input_shape": list(source.input_shape) if source else [network.input_dim],
        "output_dim": network.output_dim,
        "widths": list(network.widths),
        "relus": network.relus,
        "units": dict(source.units) if source else {},
        "notes": list(source.notes) if source else [],
        "details": list(source.details) if source else [],
        "parameters": network.parameters,
        "layers": [
            {"inputs": layer.inputs, "relus": layer.relus, "linear": layer.linear_units, "parameters": layer.parameters}
            for layer in network.layers
        ],
        "check": {"points": source.points, "difference": source.difference} if source and source.points else None,
        "domains": [domain.to_dict() for domain in domains],
    }
