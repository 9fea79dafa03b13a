"""The commands that answer with all that can be known in a given time."""

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import typer

import tessella
from tessella.cli import options
from tessella.cli.app import command
from tessella.cli.groups import Machines, Printing, Reading, Sureness
from tessella.cli.later import brackets, drawing
from tessella.cli.meanings import check_output, end
from tessella.cli.several import analysed, compared, ranking_of, read_models
from tessella.cli.where import Where
from tessella.errors import FileError
from tessella.result import Status


@command
def analyze(  # noqa: PLR0913  one parameter per option
    *,
    models: options.Models,
    where: Where,
    seconds: options.AnalyzeSeconds = 30.0,
    sureness: Sureness,
    mipbound: options.AnalyzeMipbound = None,
    machines: Machines,
    reading: Reading,
    printing: Printing,
) -> None:
    """Say how many regions a network has, as well as that can be known in a given time.

    Small networks are counted exactly.  For others there is a bracket: what is proved, what holds with a confidence, and what is estimated.
    Several models on the same domain are ranked.  Ctrl-C ends with what is known so far.

    With -q a line is the exact count, or else four numbers: proved lower bound, probable lower bound, estimate (- if there is none), upper bound.
    With several models its name follows, and a last line ranks them: "ranking: A > B (proved) = C (proved) ? D (undecided)".

    Examples
    --------
        tessella analyze model.onnx --box 0,1

        tessella analyze model.onnx --box 0,1 --seconds 120 --json

        tessella analyze before.onnx after.onnx --box 0,1 --seconds 60

        tessella analyze acasxu.onnx --property prop_1.vnnlib --mipbound
    """
    given: dict[str, Any] = {**sureness.given(), "mipbound": mipbound}
    networks, shown = read_models(models, reading), printing.shown
    given |= machines.given()
    found = dict[str, tessella.Analysis]()
    for one in analysed(networks, where.needed, seconds=seconds, shown=shown, **given):
        if shown:
            brackets.print_analysis(("\n" if found else "") + one.title, one.found)
        elif printing.quiet and not printing.as_json:
            typer.echo(brackets.quiet_line(one.found) + (f" {one.name}" if len(networks) > 1 else ""))
        found[one.name] = one.found
    _finish(found, [name for name in networks if name not in found], as_json=printing.as_json, quiet=printing.quiet)
    end(interrupted=_interrupted(found), lost=any(each.status is Status.LOST for each in found.values()))


def _interrupted(found: "dict[str, tessella.Analysis]") -> bool:
    return any(each.status is Status.INTERRUPTED for each in found.values())


def _finish(found: "dict[str, tessella.Analysis]", left_out: list[str], *, as_json: bool, quiet: bool) -> None:
    """JSON, or the ranking of several; and what Ctrl-C left out."""
    records = [{"model": name, **each.to_dict()} for name, each in found.items()] if as_json else []
    if len(found) + len(left_out) == 1:
        for record in records:
            drawing.print_json(record)
        return
    ranking = None if left_out else ranking_of(found, short=not as_json)
    if as_json:
        ended = next((each.status for each in found.values() if each.status is not Status.FINISHED), Status.FINISHED)
        ranked = None if ranking is None else compared(ranking)
        drawing.print_json({"status": ended, "models": records, "left_out": left_out, "ranking": ranked})
    elif ranking and quiet:
        typer.echo(brackets.quiet_ranking(ranking))
    elif ranking:
        drawing.console().print()
        brackets.print_ranking(ranking)
    if left_out:
        why = "Ctrl-C came" if _interrupted(found) else "the workers were lost"
        typer.echo(f"Note: {why} before {', '.join(left_out)}: not looked at, so there is no ranking.", err=True)


_DEMO = "demo/report.html"


@command
def demo(
    *,
    output: options.DemoOutput = _DEMO,
    printing: Printing,
) -> None:
    """Analyse a bundled network that was trained to read handwritten digits, and write a report on it.

    Examples
    --------
        tessella demo

        tessella demo --json -o digits.html
    """
    from tessella import report as pages  # noqa: PLC0415  loads the compiler

    if output == _DEMO:
        _make_folder(output)
    check_output(output, (".html", ".htm"))
    with as_file(files("tessella") / "data" / "digits.onnx") as path:
        network, past = tessella.load(path), pages.Provenance.of(path, ("tessella", "demo"))
    domain, shown = tessella.Box.cube(0.0, 1.0, network.input_dim), printing.shown
    if shown:
        drawing.console().print("A network trained on 8 x 8 images of handwritten digits, bundled with Tessella.\n")
    title = f"digits.onnx: {network.shape} on {domain.describe()}"
    with brackets.live_analysis(title, 30.0, shown=shown) as tick:
        found = tessella.analyze(network, domain, seconds=30.0, progress=tick)
    if shown:
        brackets.print_analysis(title, found)
    pages.write(output, found, provenance=past)
    if printing.as_json:
        drawing.print_json({"model": "digits.onnx", "report": output, **found.to_dict()})
    elif printing.quiet:
        typer.echo(brackets.quiet_line(found))
    else:
        typer.echo(f"\nThe report, with a picture of the regions to explore: {Path(output).resolve()}")
    end(interrupted=_interrupted({"digits.onnx": found}))


def _make_folder(output: str) -> None:
    folder = Path(output).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{folder}: cannot be made ({error.strerror or error}); say with -o where the report goes"
        raise FileError(msg) from error
