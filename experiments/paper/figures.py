"""The report's figures.  Colours are those of Okabe and Ito, but for the darkest blue, and every series has its own marker too."""

import math
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tessella
from experiments.paper import published
from experiments.paper.index import UNITS
from experiments.paper.options import amount
from experiments.paper.summary import LARGE, Fit, Row, configurations, fit, points, sureness
from experiments.paper.tasks import XOR

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS: Final = {2: "#CC79A7", 3: "#E69F00", 4: "#56B4E9", 5: "#002F6C"}
MARKERS: Final = {2: "v", 3: "s", 4: "D", 5: "o"}
DASHES: Final = {2: ":", 3: "-.", 4: "--", 5: "-"}
BLACK, GREY, VERMILION, GREEN, PURPLE = "#000000", "#666666", "#D55E00", "#009E73", "#7B2D8B"
SETTINGS: Final = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "tessella",
    "pdf.fonttype": 42,
    "figure.dpi": 110,
}


def figures(networks: Sequence[Row]) -> "dict[str, Figure]":
    """All of them, by the name of their file.

    Parameters
    ----------
    networks
        What is known.
    """
    try:
        import matplotlib as mpl  # noqa: PLC0415  optional
    except ImportError as error:
        msg = "figures need matplotlib, which is not installed: pip install matplotlib"
        raise tessella.MissingPackage(msg) from error
    wide = [row for row in networks if not row.narrow]
    with mpl.rc_context(SETTINGS):
        return {
            "bounds": bounds(networks),
            "times": times(networks),
            "accuracy": accuracy(wide, "without layers of 3 units or fewer"),
            "accuracy-all": accuracy(networks, "all configurations", curved=True),
            "estimate": estimate(networks),
        }


def image(figure: "Figure", kind: str) -> bytes:
    """A figure as ``svg``, ``png`` or ``pdf``; the same figure gives the same bytes."""
    import matplotlib as mpl  # noqa: PLC0415

    file, dates = BytesIO(), {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}
    with mpl.rc_context(SETTINGS):
        figure.savefig(file, format=kind, metadata=dates[kind], facecolor="white")
    return file.getvalue()


def bounds(networks: Sequence[Row]) -> "Figure":
    """Figure 2, top: bounds and counts against the configuration; ours and the paper's."""
    figure = _figure(10.4, 5.2)
    axes = figure.subplots(1, 2, sharey=True)
    ours = [
        {
            "n1": each.n1,
            "exact": each.maps,
            "counted": each.counted > 0,
            "empirical_ub": each.empirical,
            "configuration_ub": each.configuration,
            "interval": each.interval,
            **{f"xor{size}_lb": value for size, value in each.xor.items()},
        }
        for each in configurations(networks)
    ]
    theirs = [{**row, "counted": True} for row in published.bounds().values()]
    per = {each.counted or each.networks for each in configurations(networks)}
    many = f"{min(per)}" if len(per) == 1 else f"{min(per)} to {max(per)}"
    plural = "network" if per == {1} else "networks"
    for place, table, title in (
        (axes[0], ours, f"ours: means of {many} {plural}"),
        (axes[1], theirs, "paper: means of 10 networks"),
    ):
        _bounds_panel(place, table, sureness(networks) if table is ours else "95 %")
        place.set_title(title, loc="left")
    _interval(axes[0], ours, sureness(networks))
    axes[0].set_ylim(-0.5, 32.0)
    axes[0].set_ylabel("MAPS (log2 of the number of regions)")
    named = {label: handle for place in reversed(axes) for handle, label in zip(*place.get_legend_handles_labels(), strict=True)}
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=4)
    return figure


def _bounds_panel(axes: "Axes", table: Sequence[dict[str, Any]], sure: str) -> None:
    def line(name: str, **style: Any) -> None:
        known = {row["n1"]: row[name] for row in table if row.get(name) is not None}
        if known:  # no line leads across a configuration that is not there
            places = range(1, UNITS)
            axes.plot(places, [known.get(n1, math.nan) for n1 in places], markersize=4.5, linewidth=1.2, **style)

    line("configuration_ub", color=BLACK, marker="s", label="Configuration UB")
    line("empirical_ub", color=VERMILION, marker="^", label="Empirical UB")
    line("exact", color=GREEN, marker="o", label="number of regions, counted")
    guessed = [row for row in table if not row["counted"] and row["exact"] is not None]
    x, y = [row["n1"] for row in guessed], [row["exact"] for row in guessed]
    label = "the same, with networks that are only estimated"
    if guessed:
        axes.plot(x, y, "o", color=GREEN, markerfacecolor="white", markersize=4.5, label=label)
    for size in sorted(XOR.values(), reverse=True):
        line(f"xor{size}_lb", color=COLOURS[size], marker=MARKERS[size], linestyle=DASHES[size], label=f"XOR-{size} LB ({sure})")
    axes.set_xticks(range(1, UNITS), [f"{n1};{UNITS - n1};10" for n1 in range(1, UNITS)], rotation=90)
    axes.set_xlim(0.3, UNITS - 0.3)
    axes.set_xlabel("ReLUs in each layer")


def _interval(axes: "Axes", table: Sequence[dict[str, Any]], sure: str) -> None:
    """Our interval where the counts are, and in an inset relative to these: it is hardly wider than a marker."""
    known = [row for row in table if row["interval"] is not None and row["exact"] is not None]
    if not known:
        return
    inset = axes.inset_axes((0.37, 0.055, 0.61, 0.19))
    style = {"fmt": "none", "ecolor": PURPLE, "elinewidth": 1.2, "capthick": 1.2, "zorder": 5.0}
    x, y = [row["n1"] for row in known], [row["exact"] for row in known]
    ends = [[at - row["interval"][0] for at, row in zip(y, known, strict=True)]]
    ends += [[row["interval"][1] - at for at, row in zip(y, known, strict=True)]]
    middles = [sum(row["interval"]) / 2.0 for row in known]
    halves = [(row["interval"][1] - row["interval"][0]) / 2.0 for row in known]
    axes.errorbar(x, middles, yerr=halves, capsize=5.0, label=f"our interval ({sure})", **style)
    relative = [middle - at for middle, at in zip(middles, y, strict=True)]
    inset.errorbar(x, relative, yerr=halves, capsize=2.5, **style)
    reach = 1.15 * max(0.02, *map(abs, ends[0]), *map(abs, ends[1]))
    inset.axhline(0.0, color=GREEN, linewidth=1.2)
    inset.set_ylim(-reach, reach)
    inset.set_xlim(0.3, UNITS - 0.3)
    inset.set_xticks([1, 6, 11, 16, 21], [])
    inset.tick_params(labelsize=7.0, length=2.0)
    inset.set_title("our interval, bits above the regions", fontsize=7.5, pad=2.0)


def times(networks: Sequence[Row]) -> "Figure":
    """Figure 2, bottom: seconds for the approximation against seconds for the exact count; ours and the paper's."""
    figure = _figure(10.4, 4.9)
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    counted = [row for row in networks if row.exact is not None]
    ours = [
        {"exact_s": row.seconds["count"], "small": (row.maps or 0.0) < LARGE}
        | {f"xor{size}_s": row.seconds[f"xor-{size}"] for size in row.xor}
        for row in counted
    ]
    _times_panel(axes[0], ours)
    axes[0].set_title(f"ours: CPU seconds of one core, {amount(len(ours), 'network')} counted", loc="left")
    theirs = published.times()
    _times_panel(axes[1], theirs)
    axes[1].set_title(f"paper: seconds on 40 cores, {len(theirs)} networks", loc="left")
    axes[0].set_ylabel("seconds for the XOR-k lower bound")
    handles, labels = axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5)
    return figure


def _times_panel(axes: "Axes", table: Sequence[Any]) -> None:
    for size in sorted(XOR.values(), reverse=True):
        for small, face in ((False, COLOURS[size]), (True, "none")):
            here = [row for row in table if bool(row["small"]) is small and f"xor{size}_s" in row]
            x, y = [row["exact_s"] for row in here], [row[f"xor{size}_s"] for row in here]
            label = f"XOR-{size}, {'small (MAPS < 12)' if small else 'large'}"
            style = {"markerfacecolor": face, "markeredgecolor": COLOURS[size], "markersize": 4.0, "linestyle": "none"}
            axes.plot(x, y, marker=MARKERS[size], alpha=0.85, label=label, **style)
    axes.set_xlabel("seconds for the exact count")
    if not table:
        _nothing(axes, "no network is counted yet", 0.3)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.axline((1.0, 1.0), (10.0, 10.0), color=BLACK, linewidth=1.0, label="equal times")


def accuracy(networks: Sequence[Row], title: str, *, curved: bool = False) -> "Figure":
    """Figure 3: errors against MAPS, exact and APP-k, with regressions and correlations; thin and dashed where the data are curved."""
    figure = _figure(10.4, 5.6)
    note = (
        " (the points lie on curves: the straight lines are the regressions behind r, and describe them badly)" if curved else ""
    )
    figure.suptitle(f"{title}: {amount(len(networks), 'network')}{note}", x=0.01, ha="left", fontsize=10)
    grid = figure.subplots(2, len(XOR), sharey="row", sharex=True, squeeze=False)
    handles: dict[str, Any] = {}
    counted = all(row.exact is not None for row in networks if row.maps is not None)
    regions = "number of regions, counted" if counted else "number of regions, counted or (some) estimated"
    for line, (outcome, words) in enumerate((("cross_entropy", "training cross-entropy"), ("test_error", "test error, %"))):
        for place, size in zip(grid[line], XOR.values(), strict=True):
            for chosen, colour, marker in ((None, BLACK, "."), (size, COLOURS[size], MARKERS[size])):
                here = points(networks, chosen, outcome)
                name = regions if chosen is None else f"APP-{size}"
                (handles[name],) = place.plot(
                    [x for x, _ in here], [y for _, y in here], marker, color=colour, markersize=3.5, alpha=0.6
                )
                if (found := fit(here)) is not None:
                    _regression(place, here, found, colour, count=chosen is None, curved=curved)
                if not here:
                    _nothing(place, "not measured yet", 0.6 if chosen is None else 0.4, colour)
        grid[line][0].set_ylabel(words)
    for place, size in zip(grid[1], XOR.values(), strict=True):
        place.set_xlabel(f"MAPS: regions, and APP-{size}")
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5)
    return figure


def _regression(  # noqa: PLR0913  what is drawn, and how
    axes: "Axes", here: Sequence[tuple[float, float]], found: Fit, colour: str, *, count: bool, curved: bool
) -> None:
    x = np.array([min(x for x, _ in here), max(x for x, _ in here)])
    style = {"linewidth": 1.0, "linestyle": "--"} if curved else {"linewidth": 2.0}
    axes.plot(x, found.slope * x + found.intercept, color=colour, **style)
    where, anchor = (0.02, "left") if count else (0.98, "right")
    text = f"r = {found.correlation:.2f}"
    axes.text(where, 1.02, text, color=colour, fontsize=8, ha=anchor, va="bottom", transform=axes.transAxes)


def estimate(networks: Sequence[Row]) -> "Figure":
    """What the paper could not draw: the estimate and its bounds against the exact count, beside XOR-k."""
    from matplotlib.ticker import NullFormatter  # noqa: PLC0415

    figure = _figure(10.4, 4.9)
    axes = figure.subplots(1, 2)
    counted = [row for row in networks if row.exact is not None]
    drawn = [row for row in counted if row.estimate is not None and row.estimate_lower]
    sure = sureness(networks)
    for size in sorted(XOR.values()):
        here = [row for row in counted if size in row.xor]
        y = [row.xor[size] - math.log2(row.exact or 1) for row in here]
        x = [row.exact for row in here]
        axes[0].plot(x, y, MARKERS[size], color=COLOURS[size], markersize=4.0, label=f"XOR-{size} LB ({sure})")
    _estimate_bounds(axes[0], drawn, sure)
    axes[0].set_title(f"what is claimed with {sure} (beyond 0.1 bit on a scale of powers of ten)", loc="left")
    if counted:
        axes[0].set_yscale("symlog", linthresh=0.1, linscale=0.8)
        axes[0].set_yticks([-10.0, -1.0, -0.1, 0.0, 0.1, 1.0], ["-10", "-1", "-0.1", "0", "0.1", "1"])
        axes[0].set_ylim(-30.0, 1.5)
    for place in axes:
        place.set_ylabel("log2 of claim / count, bits (above 0: more than the count)")
    _estimate_spread(axes[1], drawn)
    _estimate_bounds(axes[1], drawn, sure)
    axes[1].set_title("the estimate, with 2 standard errors, and its bounds", loc="left")
    named = {label: handle for place in axes for handle, label in zip(*place.get_legend_handles_labels(), strict=True)}
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=3)
    for place, here in zip(axes, (counted, drawn), strict=True):
        place.set_xscale("log")
        place.xaxis.set_minor_formatter(NullFormatter())
        if not here:
            _nothing(place, "every estimate counted instead" if counted else "no network is counted yet")
        place.axhline(0.0, color=BLACK, linewidth=1.0)
        place.set_xlabel("number of regions, counted exactly")
    return figure


def _estimate_bounds(axes: "Axes", drawn: Sequence[Row], sure: str) -> None:
    lower = [math.log2((row.estimate_lower or 1) / (row.exact or 1)) for row in drawn]
    x = [row.exact or 1 for row in drawn]
    axes.plot(x, lower, "^", color=VERMILION, markersize=4.0, label=f"the estimate's lower bound ({sure} with the upper one)")
    above = [row for row in drawn if row.estimate_upper is not None]
    upper = [math.log2((row.estimate_upper or 1) / (row.exact or 1)) for row in above]
    axes.plot([row.exact or 1 for row in above], upper, "v", color=PURPLE, markersize=4.0, label="the estimate's upper bound")


def _estimate_spread(axes: "Axes", drawn: Sequence[Row]) -> None:
    x = [row.exact or 1 for row in drawn]
    y = [(row.estimate or 0.0) - math.log2(row.exact or 1) for row in drawn]
    ends = [[-math.log2(max(1.0 - 2.0 * (row.relative_error or 0.0), 0.05)) for row in drawn]]
    ends += [[math.log2(1.0 + 2.0 * (row.relative_error or 0.0)) for row in drawn]]
    axes.errorbar(x, y, yerr=ends, fmt="none", ecolor=GREY, elinewidth=0.8)
    axes.plot(x, y, "o", color=GREEN, markersize=4.0, label="estimate")


def _nothing(axes: "Axes", words: str, height: float = 0.6, colour: str = GREY) -> None:
    axes.text(0.5, height, words, ha="center", color=colour, transform=axes.transAxes)


def _figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure  # noqa: PLC0415

    return Figure(figsize=(width, height), layout="constrained")
