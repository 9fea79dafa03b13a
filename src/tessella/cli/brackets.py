"""What a person sees of an analysis: the bracket, the units, what was run and why; and which network has more."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tessella.analysis.ranking import Comparison, Ranking, Verdict
from tessella.analysis.result import LOADING, Analysis
from tessella.cli.drawing import WHY, console, table
from tessella.result import Side, format_confidence, format_count, format_duration, maps, shown

_Tick = Callable[[Analysis], None]


@contextmanager
def live_analysis(title: str, seconds: float, *, shown: bool) -> Generator[_Tick | None]:
    """The bracket as it gets narrower, on stderr; in a pipe only a word when something is compiled."""
    if not shown:
        yield None
        return
    if not sys.stderr.isatty():
        yield _Notes()
        return
    with Live(console=Console(stderr=True, highlight=False), transient=True, auto_refresh=False) as screen:
        yield lambda now: screen.update(_standing(title, now, seconds), refresh=True)


class _Notes:
    """Says once for each kind of code that it is compiled, if it is not there yet."""

    def __init__(self) -> None:
        self._said = set[str]()

    def __call__(self, now: Analysis) -> None:
        step = now.steps[-1] if now.steps else None
        if step and step.name == LOADING and not step.found:
            what = step.why.split(":", maxsplit=1)[0]
            if what not in self._said and not _is_ready(what):
                typer.echo(
                    f"Compiling {what}, once on this machine for networks of this kind (seconds to a minute) ...", err=True
                )
            self._said.add(what)


def _is_ready(what: str) -> bool:
    from tessella.estimating.estimate import FUNCTIONS  # noqa: PLC0415  loads the compiler
    from tessella.kernel.warming import ready  # noqa: PLC0415

    return what != "the estimator" or ready(FUNCTIONS)  # others say themselves that they are compiled


def _standing(title: str, now: Analysis, seconds: float) -> Group:
    step = next((step for step in now.steps if not step.found), None)
    doing = "" if step is None else f"{step.name}: {step.why}"
    clock = f"{now.seconds:.0f} of {format_duration(seconds)}"
    return Group(_bracket(title, now), Text(f"{clock}  {doing}", style="dim", overflow="ellipsis", no_wrap=True))


def _bracket(title: str, found: Analysis) -> Table:
    drawn = table(title, [("regions", False), ("count", True), ("MAPS", True), ("", False)])
    for row in map(shown, found.rows()):
        drawn.add_row(row["claim"], row["count"], row["maps"], row["sure"])
    return drawn


def print_analysis(title: str, found: Analysis) -> None:
    """The bracket, the units of each layer, and what was run."""
    out = console()
    out.print(_bracket(title, found))
    if found.stability is not None and found.network.relus:
        out.print()
        out.print(_units(found))
    if found.steps:
        out.print()
        out.print(_steps(found))
    out.print(f"\n{found.choices}".rstrip() + ("\n" if found.choices else "") + _footnote(found))
    if found.status in WHY:
        typer.echo(f"Note: stopped by {WHY[found.status]}; this is what was known by then.", err=True)


def _footnote(found: Analysis) -> str:
    bits = maps(found.upper) - maps(found.proved_lower)
    width = "" if found.exact is not None else f" The proved bounds are {bits:.2f} bits apart."
    return f"{found.seconds:.1f} s in all, compiling aside. MAPS is log2 of the count.{width}"


def _units(found: Analysis) -> Table:
    heads = ["layer", "ReLUs", "stably active", "stably inactive", "unstable"]
    drawn = table("", [(head, True) for head in heads])
    known = found.stability
    for row in known.rows() if known else ():
        drawn.add_row(*(str(row[key]) for key in ("layer", "relus", "active", "inactive", "unstable")))
    return drawn


def _steps(found: Analysis) -> Table:
    drawn = table("", [("what was run", False), ("s", True), ("what it said", False), ("why", False)])
    for step in found.steps:
        drawn.add_row(step.name, f"{step.seconds:.2f}", step.found or "ended early", step.why)
    return drawn


def quiet_line(found: Analysis) -> str:
    """Bare numbers: the count; or proved and probable lower bound, estimate (- if there is none) and upper bound."""
    numbers = [found.exact] if found.exact is not None else [found.proved_lower, found.probable_lower, found.mean, found.upper]
    return " ".join("-" if n is None else str(n) if maps(n) < 10_000 else format_count(n) for n in numbers)


def quiet_ranking(found: Ranking) -> str:
    """One line, from most regions down."""
    return f"ranking: {found}"


def print_ranking(found: Ranking) -> None:
    """One line per network from the one with most regions down, and how sure each step down is."""
    heads = [
        ("network", False),
        ("at least", True),
        ("probably", True),
        ("about", True),
        ("probably", True),
        ("at most", True),
        ("more than the next", False),
    ]
    drawn = table("Which has more regions?", heads)
    names = found.names
    for place, name in enumerate(names):
        known = found.analyses[name]
        about = "-" if known.mean is None else format_count(known.mean)
        ends = format_count(known.proved_lower, Side.LOWER), format_count(known.probable_lower, Side.LOWER), about
        last = place + 1 == len(names)
        step = "" if last else _sure(found.between(name, names[place + 1]), found)
        drawn.add_row(name, *ends, *(format_count(most, Side.UPPER) for most in (known.probable_upper, known.upper)), step)
    out = console()
    out.print(drawn)
    words = {each.verdict for each in found.comparisons}
    if Verdict.PROBABLE in words:
        out.print(f"\nAll probable bounds hold at once with {format_confidence(found.confidence)} confidence.")
    if Verdict.ESTIMATED in words or any(each.p_value is not None for each in found.comparisons):
        pairs = len(found.comparisons)
        out.print(
            f"\nEstimates are compared by Welch's test on their logarithms (Holm, {pairs} pair{'' if pairs == 1 else 's'}); this proves nothing."
        )


def _sure(pair: Comparison, found: Ranking) -> str:
    value = "" if pair.p_value is None else f", p = {pair.p_value:.2g}"
    return {
        Verdict.PROVED: "yes, proved",
        Verdict.PROBABLE: f"yes, with {format_confidence(found.confidence)} confidence",
        Verdict.ESTIMATED: f"yes, estimated{value}",
        Verdict.UNDECIDED: f"undecided{value}",
        Verdict.EQUAL: "no, equal, proved",
    }[pair.verdict]
