"""What a person sees: rich in a terminal, plain in a pipe."""

import json
import math
import re
import sys
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import typer
from rich import box as boxes
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tessella._version import __version__
from tessella.bounding import UpperBounds
from tessella.cli.meanings import check_least
from tessella.counting.count import Count, CountProgress
from tessella.domain import Domain
from tessella.estimating.estimate import Estimate, EstimateProgress
from tessella.methods import CountMethod
from tessella.network import Network
from tessella.parallel import worker_count
from tessella.probable.result import MIPBound
from tessella.result import (
    SCHEMA,
    Bound,
    Side,
    Status,
    format_confidence,
    format_count,
    format_duration,
    format_maps,
    format_share,
    maps,
    shown,
)
from tessella.stability import Stability
from tessella.upper import Empirical

Tick = Callable[[int, int], None]
_PAUSE = 0.1  # seconds between updates of a line
WHY = {Status.INTERRUPTED: "Ctrl-C", Status.LOST: "the loss of the workers"}
_EARLY = frozenset({Status.TIME_LIMIT, *WHY})
_LINES = 10  # repetitions shown at once
_NUMBERS = re.compile(r"\[\n[-+.\deE,\s]+\]")  # a line break is never part of a string in JSON


def console() -> Console:
    """Rich in a terminal; plain and never wrapped in a pipe."""
    piped = not sys.stdout.isatty()
    return Console(width=200 if piped else None, highlight=False, markup=False, soft_wrap=piped)


class Headed(Table):
    """A table between two lines as long as they are; the title and caption of Rich's are broken where the table ends."""

    heading = ""
    below = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The lines that there are, and the table."""
        if self.heading:
            yield Text(self.heading, style="bold")
        yield from super().__rich_console__(console, options)
        if self.below:
            yield Text(self.below, style="dim italic")


def table(title: str, columns: Sequence[tuple[str, bool]], *, plain: bool | None = None) -> Headed:
    """An empty table; columns are names and whether they hold numbers."""
    plain = not sys.stdout.isatty() if plain is None else plain
    drawn = Headed(box=None if plain else boxes.SIMPLE_HEAD, pad_edge=False)
    drawn.heading = title
    for name, number in columns:
        drawn.add_column(name, justify="right" if number else "left")
    return drawn


def print_json(record: dict[str, Any]) -> None:
    """A record as indented JSON under its schema and version, with lists of numbers on one line each."""
    text = json.dumps({"schema": SCHEMA, "tessella": __version__, **record}, indent=2)
    typer.echo(_NUMBERS.sub(lambda found: " ".join(found[0].split()).replace("[ ", "[").replace(" ]", "]"), text))


def print_bounds(bounds: Sequence[Bound], title: str, *, quiet: bool) -> None:
    """Upper bounds, loosest first; only the last number if quiet."""
    if quiet:
        best = bounds[-1]
        typer.echo(str(best.value) if best.maps < 10_000 else format_count(best.value, best.side))
        return
    drawn = table(title, [("upper bound", False), ("regions, at most", True), ("MAPS", True)])
    for bound in bounds:
        drawn.add_row(bound.method, format_count(bound.value, bound.side), format_maps(bound.value, bound.side))
    console().print(drawn)


def print_gap(bounds: UpperBounds, closed: float | None) -> None:
    """What the weights brought."""
    if bounds.empirical is None:
        console().print("\nGive a domain (--box 0,1) for the empirical bound, which knows the weights.")
        return
    gain = maps(bounds.configuration) - maps(bounds.empirical)
    share = "" if closed is None else f", {100.0 * closed:.1f} % of the gap to the count"
    console().print(f"\nThe empirical bound lies {gain:.2f} bits under the configuration bound{share}.")
    if bounds.cellwise is not None:
        gain, part = maps(bounds.empirical) - maps(bounds.cellwise), format_share(bounds.listed)
        console().print(f"The cellwise bound lies {gain:.2f} bits under it, with {part} of the first layer listed.")


def print_coverage(details: Empirical) -> None:
    """What the empirical bound knows of each layer, and how many subsets of units were looked at to know it; the last line of a layer holds for all larger k."""
    columns = [("layer", True), ("k", True), ("A(k)", True), ("subsets for A", True), ("I(k)", True), ("subsets for I", True)]
    drawn = table(
        "Where k ReLUs of the layer before are active, at most A(k) units of a layer are active and I(k) can be cut", columns
    )
    per_layer = zip(details.most_active, details.inspected_active, details.most_unstable, details.inspected_unstable, strict=True)
    for number, (active, for_active, unstable, for_unstable) in enumerate(per_layer, start=1):
        lines = list(zip(active, for_active, unstable, for_unstable, strict=True))
        last = len(lines) - 1
        while last and lines[last] == (lines[last - 1][0], 0, lines[last - 1][2], 0):
            last -= 1
        for k, cells in enumerate(lines[: last + 1]):
            more = " or more" if k == last < len(lines) - 1 else ""
            drawn.add_row(str(number), f"{k}{more}", *(f"{cell:,}" for cell in cells))
    console().print()
    console().print(drawn)
    exact = "" if details.exact_coverage else "; not all maxima are exact, some are bounds from above"
    subsets = "1 subset was" if details.inspected == 1 else f"{details.inspected:,} subsets were"
    console().print(f"{subsets} inspected in all{exact}.")


def print_network(name: str, network: Network, domains: Sequence[Domain]) -> None:
    """Layers, totals, the import's check, and the domain."""
    columns = [("layer", True), ("inputs", True), ("ReLUs", True), ("linear", True), ("parameters", True), ("weights", False)]
    drawn = table(f"{name}: {network.shape}", columns)
    for number, layer in enumerate(network.layers, start=1):
        kind = "dense" if isinstance(layer.weight, np.ndarray) else "sparse"
        drawn.add_row(*map(str, (number, layer.inputs, layer.relus, layer.linear_units, f"{layer.parameters:,}", kind)))
    out, source = console(), network.source
    out.print(drawn)
    shape = f", read row by row from {source.input_shape}" if source and len(source.input_shape) > 1 else ""
    out.print(f"inputs      {network.input_dim:,}{shape}")
    out.print(f"outputs     {network.output_dim:,}")
    out.print(f"ReLUs       {network.relus:,} in {network.depth} layer{'' if network.depth == 1 else 's'}")
    if source and any(kind != "ReLU" for kind, _ in source.units):
        out.print(f"of these    {', '.join(f'{count:,} for {kind}' for kind, count in source.units)}")
    for detail in source.details if source else ():
        out.print(f"read        {detail}")
    out.print(f"parameters  {network.parameters:,}")
    out.print(f"fingerprint {network.fingerprint}", soft_wrap=True)
    if source and source.points:
        out.print(
            f"checked     against the {source.kind} model at {source.points} points: largest difference {source.difference:.1e}"
        )
    for number, domain in enumerate(domains, start=1):
        fixed = domain.dim - domain.free_dim
        note = f", {fixed} input{'' if fixed == 1 else 's'} fixed" if fixed else ""
        label = "domain" if len(domains) == 1 else f"domain {number}"
        out.print(f"{label:<11} {domain.describe()}{note}")
    if not domains:
        out.print("domain      not given (--box 0,1 or --property file.vnnlib)")


def print_stability(title: str, found: Stability) -> None:
    """One line per layer, and the total."""
    heads = ["layer", "ReLUs", "stably active", "stably inactive", "unstable", "leaning active", "leaning inactive", "mean width"]
    drawn = table(title, [(head, True) for head in heads])
    kinds = ("active", "inactive", "unstable", "active_leaning", "inactive_leaning")
    for row in found.rows():
        leans = row["layer"] > 1  # the first layer's units read inputs, which lean nowhere
        counts = [str(row[kind]) if leans or "leaning" not in kind else "-" for kind in kinds]
        drawn.add_row(
            str(row["layer"]), str(row["relus"]), *counts, "infinite" if row["mean_width"] is None else f"{row['mean_width']:.4g}"
        )
    total = found.totals()
    drawn.add_row("all", str(found.network.relus), *(str(total[kind]) for kind in kinds), "")
    out = console()
    out.print(drawn)
    out.print(f"\nStable units are proved ({found.bounds.method}, {found.bounds.seconds:.1f} s).")
    if total["active_leaning"] + total["inactive_leaning"]:
        out.print(
            "A unit leans active if it is unstable and its bias is positive: it is active where all units before it give 0. The others lean inactive."
        )


def print_count(title: str, found: Count, *, quiet: bool) -> None:
    """The bracket, or the number if it is exact; only numbers if quiet."""
    if quiet:
        numbers = {found.lower: Side.LOWER, found.upper: Side.UPPER}  # one, if they are equal
        shown = [str(value) if maps(value) < 10_000 else format_count(value, side) for value, side in numbers.items()]
        typer.echo(" ".join(shown))
        return
    drawn = table(title, [("regions", False), ("count", True), ("MAPS", True)])
    words = {Side.EXACT: "exactly", Side.LOWER: "at least", Side.UPPER: "at most", Side.ESTIMATE: "solver says"}
    for bound in found.bounds:
        drawn.add_row(words[bound.side], format_count(bound.value, bound.side), format_maps(bound.value, bound.side))
    out = console()
    out.print(drawn)
    out.print(f"\n{_how(found)}")


def _how(found: Count) -> str:
    """What it took, in one line."""
    proved = "Both are proved" + (f"; {_part(found.share, 'about ')} of the tree is done" if found.share else "")
    if found.status is Status.FINISHED:
        proved = "Proved" if found.proved else "The first is proved; that there are no more is the solver's word"
    tests = f"{found.tests:,} tests, " if found.tests else ""
    cells = "thin cell" if found.borderline == 1 else "thin cells"
    border = f"{found.borderline:,} {cells} left to exact arithmetic, " if found.borderline else ""
    return f"{proved} ({found.method}, {tests}{border}{found.seconds:,.2f} s). MAPS is log2 of the count."


def print_stop(found: Count, checkpoint: str | None) -> None:
    """Say on stderr why a count ended early, and how to go on."""
    if found.status is Status.FINISHED:
        return
    why = WHY.get(found.status, "the time limit")
    later = "the same command goes on from there" if checkpoint else "with --checkpoint FILE it could go on later"
    later = "--method walk is faster" if found.method is CountMethod.MILP else later
    typer.echo(f"Note: stopped by {why} before the end; {later}.", err=True)


def print_estimate(title: str, found: Estimate, *, quiet: bool) -> None:
    """The lower bound, the estimate and its error; only the two numbers if quiet, or the one if it is exact."""
    if quiet:
        numbers = [found.exact] if found.exact is not None else [found.lower, round(found.mean)]
        typer.echo(" ".join(str(value) if maps(value) < 10_000 else format_count(value) for value in numbers))
        return
    drawn = table(title, [("regions", False), ("count", True), ("MAPS", True), ("", False)])
    sure = {Side.EXACT: "counted", Side.LOWER: f"with {percent(found.confidence)} confidence"}
    for bound, row in zip(found.bounds, found.rows(), strict=True):
        cells = shown(row)
        drawn.add_row(cells["claim"], cells["count"], cells["maps"], sure.get(bound.side, cells["sure"]))
    out = console()
    out.print(drawn)
    cells = f", {found.thin:,} thin cell{'' if found.thin == 1 else 's'} left to exact arithmetic" if found.thin else ""
    open_cells = f", {found.undecided:,} of them undecided and counted as 0" if found.undecided else ""
    probes = f"{found.probes:,} probe{'' if found.probes == 1 else 's'}" if found.probes else "count"
    out.print(f"\n{probes}{cells}{open_cells}, {found.seconds:,.2f} s. MAPS is log2 of the count.")
    if found.status in WHY:
        typer.echo(f"Note: stopped by {WHY[found.status]}.", err=True)


def percent(share: float) -> str:
    """A probability that is not rounded up to certainty.

    Examples
    --------
    >>> percent(0.95), percent(0.999999999)
    ('95 %', '99.9999999 %')
    """
    return f"{100.0 * share:.12g} %"


def print_mipbounds(title: str, found: Sequence[MIPBound], *, quiet: bool) -> None:
    """One line per size of constraints; only numbers if quiet."""
    if quiet:
        typer.echo(" ".join(str(each.lower) if each.maps < 10_000 else format_count(each.lower, Side.LOWER) for each in found))
        return
    best, out = found[-1], console()
    if best.status is Status.INFEASIBLE:
        out.print(f"{title}: has no solution, as {best.method} says. The count is 0.")
        return
    network = best.subject.network is not None
    heads = [("bound", False), ("regions, at least" if network else "solutions, at least", True), ("MAPS", True)]
    heads += [("probability", True), ("repetitions", True), ("constraints", True), ("seconds", True)]
    drawn = table(title, heads + ([("APP-k", True)] if network else []))
    for each in found:
        number = format_count(each.lower, Side.LOWER), format_maps(each.lower, Side.LOWER) if each.lower else "-"
        sure = "certain" if each.probability == 1.0 else f"{math.floor(1e4 * each.probability) / 100.0:.2f} %"
        spread = f"{min(each.draws)} to {max(each.draws)}" if each.draws else "-"
        middle = [] if not network else ["-" if each.approximation is None else f"{each.approximation:.2f}"]
        drawn.add_row(f"XOR-{each.parity_size}", *number, sure, str(each.repetitions), spread, f"{each.seconds:.1f}", *middle)
    out.print(drawn)
    what = "unstable units" if network else "binary variables"
    out.print(
        f"\nEach bound holds with a probability of {percent(best.confidence)} or more ({best.method}, {_drawn_from(best, what)})."
    )
    if any(each.status in _EARLY for each in found):
        out.print(
            "That is so if the number of repetitions was fixed beforehand; here a time limit, Ctrl-C or a lost worker decided it, which the probability does not cover."
        )
    if network:
        out.print("APP-k is the mean of its MAPS and that of the Empirical upper bound: an approximation, which claims nothing.")


def _drawn_from(found: MIPBound, what: str) -> str:
    text = f"constraints on {found.subject.variables} {what}"
    for count, words in ((found.unconfirmed, "false solutions cut off"), (found.given_up, "thin cells left out")):
        text += f", {count:,} {words}" if count else ""
    return text


def print_early(found: MIPBound) -> None:
    """Say on stderr why repetitions ended early."""
    if found.status in _EARLY:
        why = WHY.get(found.status, "the time limit")
        typer.echo(f"Note: XOR-{found.parity_size} was ended by {why} after {found.repetitions} repetitions.", err=True)


def print_note(found: Stability) -> None:
    """Say on stderr if units were cut short: then the answer is right, but could be tighter."""
    late = found.bounds.unproved
    if late:
        units = "unit was" if late == 1 else "units were"
        text = f"Note: {late} {units} cut short (time limit, Ctrl-C or size) and keep the bounds proved so far."
        typer.echo(text, err=True)


@contextmanager
def progress_bar(text: str, *, shown: bool) -> Generator[Tick]:
    """A bar on stderr, in a terminal only."""
    if not shown or not sys.stderr.isatty():
        yield lambda *_: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text, total=1)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def _live(drawn: Callable[[Any], str | Table], *, shown: bool, pause: float = 0.0) -> Generator[Callable[[Any], None] | None]:
    """What was told last, drawn, on stderr and in a terminal only; not more often than every so many seconds."""
    if not shown or not sys.stderr.isatty():
        yield None
        return
    with Live(console=Console(stderr=True, highlight=False), transient=True, auto_refresh=False) as screen:
        told = perf_counter()

        def tell(now: Any) -> None:
            nonlocal told
            if perf_counter() - told >= pause:
                told = perf_counter()
                screen.update(drawn(now), refresh=True)

        yield tell


def progress_line(text: str, *, shown: bool) -> AbstractContextManager[Callable[[int], None] | None]:
    """How many there are so far, on stderr and in a terminal only."""
    return _live(lambda now: f"{now:,} {text}", shown=shown, pause=_PAUSE)


def live_bracket(
    title: str, expected: Callable[[float], float | None], *, shown: bool
) -> AbstractContextManager[Callable[[CountProgress], None] | None]:
    """The bounds so far, on stderr and in a terminal only; `expected` says after some seconds log2 of about how many regions there are, if it is known."""
    return _live(lambda now: _standing(title, replace(now, expected=expected(now.seconds))), shown=shown)


def live_repetitions(title: str, *, shown: bool) -> AbstractContextManager[Callable[[MIPBound], None] | None]:
    """The last repetitions and the bound so far, on stderr and in a terminal only."""
    return _live(lambda now: _repetitions(title, now), shown=shown, pause=_PAUSE)


def _repetitions(title: str, now: MIPBound) -> Table:
    heads = ("repetition", "constraints", "bound so far")
    drawn = table(f"{title}, XOR-{now.parity_size}", [(head, True) for head in heads], plain=True)
    for count in range(max(now.repetitions - _LINES, 0), now.repetitions):
        then = replace(now, draws=now.draws[: count + 1])
        drawn.add_row(str(count + 1), str(then.draws[-1]), format_count(then.lower, Side.LOWER))
    sure = f"at least, with a probability of {format_confidence(now.confidence)}"
    drawn.below = f"{sure}, {format_duration(now.seconds)}"
    return drawn


def _standing(title: str, now: CountProgress) -> Table:
    drawn = table(title, [("", False), ("", True), ("", True)], plain=True)
    drawn.show_header = False
    for words, value, side in (("at least", now.lower, Side.LOWER), ("at most", now.upper, Side.UPPER)):
        drawn.add_row(words, format_count(value, side), f"2^{format_maps(value, side)}")
    left = ", time left unknown" if now.seconds_left is None else f", about {format_duration(now.seconds_left)} left"
    speed = f"{now.regions_per_second:,.0f} regions/s"
    drawn.below = f"{_part(now.share)} of the tree done, {speed}, {format_duration(now.seconds)}{left}"
    return drawn


def _part(share: float, before: str = "") -> str:
    """How much of a tree is done that is not done yet: never all of it; what is next to nothing is not said in powers of ten."""
    return "less than 0.01 %" if 0.0 < share < 1e-4 else before + format_share(min(share, 0.99))


def live_estimate(title: str, *, shown: bool) -> AbstractContextManager[Callable[[EstimateProgress], None] | None]:
    """The estimate so far in one line, on stderr and in a terminal only."""

    def line(now: EstimateProgress) -> str:
        sure = f"at least {format_count(now.lower, Side.LOWER)} with {format_confidence(now.confidence)} confidence"
        return f"{title}: {now.about}, {sure}, {now.probes:,} probes, {now.seconds:.1f} s"

    return _live(line, shown=shown)


@contextmanager
def pool(workers: int) -> Generator[Executor | None]:
    """Threads; the compiled code lets them run side by side."""
    check_least(workers=workers)
    count = worker_count(workers)
    if count == 1:
        yield None
        return
    with ThreadPoolExecutor(count) as threads:
        yield threads
