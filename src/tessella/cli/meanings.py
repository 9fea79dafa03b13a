"""What the texts of options mean, what does not go together, and how a command ends."""

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import tessella
from tessella.errors import OptionError
from tessella.files import unwritable
from tessella.result import told_apart

if TYPE_CHECKING:
    from tessella.domain import Domain
    from tessella.network import Floats, Network
    from tessella.slicing import Slice
    from tessella.solvers.base import LazySolver

FAILED, STOPPED = 1, 130
"""The exit codes of what could not be ended, and of what Ctrl-C ended, as shells have it."""


def read_network(
    model: str, input_shape: str | None, output: str | None, *, relu_output: bool, inputs: list[str] | None = None
) -> "Network":
    """Load the model that was named, and tell what a reader should know of it."""
    shape = None if input_shape is None else whole_numbers(input_shape, "--input-shape")
    fixed = _fixed_inputs(inputs) if inputs else None
    network = tessella.load(model, input_shape=shape, output=output, relu_output=relu_output, inputs=fixed)
    for text in network.source.notes if network.source else ():
        note(text)
    if text := told_apart(network.counted):
        note(text[0].lower() + text[1:].rstrip("."))
    return network


def _fixed_inputs(texts: list[str]) -> "dict[str, Floats]":
    pairs = list(map(_fixed_input, texts))
    names = [name for name, _ in pairs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        msg = f"--input fixes {twice!r} {names.count(twice)} times; give it one array"
        raise OptionError(msg)
    return dict(pairs)


def _fixed_input(text: str) -> "tuple[str, Floats]":
    """An input's name and its array, as in NAME=FILE; a name may hold an equals sign itself."""
    from tessella.importers.points import read_array  # noqa: PLC0415  loads numpy

    name, equals, path = text.rpartition("=")
    if not equals or not name or not path:
        msg = f"--input takes a name and a file, such as --input mask=mask.npy; got {text!r}"
        raise OptionError(msg)
    return name, read_array(path)


def note(text: str) -> None:
    """Say on stderr what a reader should know."""
    typer.echo(f"Note: {text}.", err=True)


def read_slice(network: "Network", domain: "Domain", axes: str | None, at: str | None, through: str | None) -> "Slice | None":
    """The slice that options describe; None if they describe none."""
    from tessella.importers.points import read_points  # noqa: PLC0415  loads numpy

    if axes is not None and through is not None:
        msg = "give either --slice or --through, not both"
        raise OptionError(msg)
    check_both(at, axes, "--at says where a slice along axes lies; it goes with --slice")
    if through is not None:
        return tessella.slice(network, read_points(through), domain)
    if axes is not None:
        return tessella.slice(network, domain=domain, axes=whole_numbers(axes, "--slice"), at=None if at is None else _point(at))
    return None


def _point(text: str) -> Any:
    from tessella.importers.points import read_points  # noqa: PLC0415  loads numpy

    if Path(text).suffix.lower() in {".csv", ".npy", ".npz"}:
        return read_points(text)[0]
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError as error:
        msg = f"--at takes one number, one per input, or a file of points; got {text!r:.80}"
        raise OptionError(msg) from error
    return values if len(values) > 1 else values[0]


def read_examples(data: str | None, labels: str | None) -> dict[str, Any]:
    """The examples that options name, and their classes, as `tessella.report.explore` takes them."""
    from tessella.importers.points import read_arrays, read_points  # noqa: PLC0415  loads numpy

    check_both(labels, data, "--labels says which classes examples have; it goes with --data")
    if data is None:
        return {}
    if labels is None:
        return {"data": read_points(data)}
    arrays = read_arrays(labels)
    if "labels" not in arrays and len(arrays) != 1:
        msg = f"{labels}: holds the arrays {', '.join(arrays)[:80]}; one of the name labels was expected"
        raise OptionError(msg)
    return {"data": read_points(data), "labels": arrays.get("labels", next(iter(arrays.values())))}


def read_solver(name: str | None) -> "LazySolver | None":
    """The solver of a name; None for none."""
    if name is None:
        return None
    solvers = {"scip": tessella.SCIP, "highs": tessella.HiGHS, "gurobi": tessella.Gurobi}
    if name.lower() not in solvers:
        msg = f"--solver takes one of {', '.join(solvers)}; got {name!r:.40}"
        raise OptionError(msg)
    return solvers[name.lower()]()


def check_least(least: int = 0, **given: int) -> None:
    """Refuse numbers of options that are too small."""
    for name, value in given.items():
        if value < least:
            msg = f"--{name} must be at least {least}, got {value}"
            raise OptionError(msg)


def check_both(given: object, other: object, why: str) -> None:
    """Refuse an option that says nothing without another one."""
    if given is not None and other is None:
        raise OptionError(why)


def titled(model: str, network: "Network", domain: "Domain") -> str:
    """The heading of an answer."""
    return f"{os.path.basename(model)}: {network.shape} on {domain.describe()}"


def refuse(why: str, **given: object) -> None:
    """Refuse options that do not go with what was asked."""
    for name, value in given.items():
        if value:
            msg = f"--{name.replace('_', '-')} {why}"
            raise OptionError(msg)


def check_output(path: str, formats: tuple[str, ...]) -> None:
    """Refuse what cannot be written before the work is done."""
    place = Path(path)
    if not place.name.lower().endswith(formats):
        msg = f"{path}: cannot be written; its name must end in {', '.join(formats[:-1])}{' or ' if formats[1:] else ''}{formats[-1]}"
        raise OptionError(msg)
    folder = place.parent
    writable = os.access(place if place.exists() else folder, os.W_OK)
    for wrong, number in ((place.is_dir(), errno.EISDIR), (not folder.is_dir(), errno.ENOENT), (not writable, errno.EACCES)):
        if wrong:
            raise unwritable(path, OSError(number, os.strerror(number)))


def check_apart(path: str, model: str) -> None:
    """Refuse to write over the model that is read."""
    if Path(path).exists() and Path(model).exists() and Path(path).samefile(model):
        msg = f"{path}: cannot be written, as it is the model itself; choose another name"
        raise OptionError(msg)


def end(*, interrupted: bool, lost: bool = False) -> None:
    """End with the exit code of Ctrl-C if that came before the end, or of a failure if the workers were lost."""
    if interrupted or lost:
        raise typer.Exit(STOPPED if interrupted else FAILED)


def whole_numbers(text: str, name: str) -> list[int]:
    """Whole numbers separated by commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        msg = f"{name} takes whole numbers separated by commas; got {text!r:.80}"
        raise OptionError(msg) from error


def numbers(text: str, name: str) -> list[float]:
    """Numbers separated by commas."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError as error:
        msg = f"{name} takes numbers separated by commas; got {text!r:.80}"
        raise OptionError(msg) from error
    for part, number in zip(text.split(","), found, strict=True):
        if abs(number) == float("inf") and "inf" not in part.lower():
            msg = f"{name} has {part.strip()!r:.40}, which passes the largest floating-point number; write inf for an end that is none"
            raise OptionError(msg)
    return found
