"""Pictures that are no planes: brackets, paths, histograms, and the states of units."""

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import Any, cast

import numpy as np

from tessella.analysis.result import Analysis
from tessella.errors import MissingPackage, OptionError
from tessella.lines.along import Along
from tessella.network import Floats
from tessella.painting import INK, bare, bars, curves, legend, ticks
from tessella.result import Side, format_confidence, format_count, maps
from tessella.stability import Stability
from tessella.summarising.statistics import Statistic
from tessella.summarising.summary import Distribution, Summary

Figure = Any  # of matplotlib, which may not be there
Axes = Any

_PALE = "#d5dbe1"
_STABLE = 0.08  # of the colours: for units that are stable on either side
_STATES = ("#2b5c8a", "#f4f1e8", "#b5482a")  # stably inactive, both, stably active
LABELS = {
    Statistic.ACTIVE: "active ReLUs",
    Statistic.RANK: "rank of the affine map",
    Statistic.SPECTRAL: "largest singular value of the affine map",
    Statistic.WALLS: "regions behind walls",
    Statistic.RADIUS: "radius of a largest ball inside",
    Statistic.VOLUME: "area",
    Statistic.SHARE: "share of the area",
    Statistic.DECISION: "decision (-1 where it changes)",
}


def bracket(analyses: Analysis | Iterable[Analysis], *, names: Sequence[str] | None = None, ax: Axes | None = None) -> Figure:
    """Draw what is known of the number of regions, for one network or several: all on one scale of powers of two.

    Parameters
    ----------
    analyses
        What `tessella.analyze` returned.
    names
        What to call them; their shapes by default.
    ax
        Where to draw; None for a figure of its own.

    Examples
    --------
    >>> import tessella
    >>> from tessella import plot
    >>> net = tessella.load([([[1.0], [-1.0]], [0.5, 0.5]), ([[1.0, 1.0]], None)])
    >>> figure = plot.bracket(tessella.analyze(net, (-1, 1), seconds=5), names=["two units"])
    >>> figure.axes[0].get_xlabel()
    'MAPS: log2 of the number of regions'
    """
    many = [analyses] if isinstance(analyses, Analysis) else list(analyses)
    if not many or not all(isinstance(one, Analysis) for one in many):  # pyright: ignore[reportUnnecessaryIsInstance]  callers may be untyped
        msg = "a bracket is drawn of what tessella.analyze returned, one or several of them"
        raise OptionError(msg)
    labels = [one.network.shape for one in many] if names is None else list(names)
    if len(labels) != len(many):
        msg = f"there are {len(many)} analyses and {len(labels)} names; give one each"
        raise OptionError(msg)
    figure, axes = axes_for(ax, (7.4, 1.6 + 0.55 * len(many)))
    for place, one in enumerate(many):
        _bar(axes, -float(place), one)
    axes.set_yticks([-place for place in range(len(many))], labels)
    axes.set_ylim(-len(many) + 0.45, 0.55)
    axes.set_xlabel("MAPS: log2 of the number of regions")
    low, high = min(maps(one.proved_lower) for one in many), max(maps(one.upper) for one in many)
    axes.set_xlim(low - 0.16 * (high - low) - 1.0, high + 0.22 * (high - low) + 1.0)
    axes.grid(axis="x", color=_PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    bare(axes, "left", "top", "right")
    handles, words = axes.get_legend_handles_labels()
    unique = dict(zip(words, handles, strict=True))
    axes.legend(
        unique.values(),
        unique.keys(),
        loc="lower center",
        bbox_to_anchor=(0.4, 1.0),
        ncols=2,
        columnspacing=3.0,
        handletextpad=0.9,
        labelspacing=0.9,
        markerscale=0.75,
        frameon=False,
        fontsize="small",
    )
    return figure


def along(found: Along, *, output: int | None = None, names: Sequence[str] | None = None, ax: Axes | None = None) -> Figure:
    """Draw the outputs of a network along a path, and below them a tick for every break, in the colour of the layer that it belongs to.

    Parameters
    ----------
    found
        What `tessella.along` returned.
    output
        The output that is drawn; None for all of them.
    names
        What to call the corners of the path, one name each.
    ax
        Where to draw; None for a figure of its own.

    Examples
    --------
    >>> import tessella
    >>> net = tessella.load([([[1.0, 0.0], [0.0, 1.0]], None), ([[1.0, -1.0]], [0.25])])
    >>> figure = tessella.plot.along(tessella.along(net, [[-1, 0.5], [1, 0.5], [1, -0.5]]))
    >>> figure.axes[0].get_title()
    '2-2-1 along a path: 3 regions'
    """
    if not isinstance(found, Along):  # pyright: ignore[reportUnnecessaryIsInstance]  callers may be untyped
        msg = f"a path is drawn of what tessella.along returned, not of an object of type {type(found).__name__}"
        raise OptionError(msg)
    last = len(found.path) - 1
    if names is not None and len(names) != last + 1:
        msg = f"the path has {last + 1} corners, and there are {len(names)} names; give one each"
        raise OptionError(msg)
    if output is not None and not 0 <= output < found.network.output_dim:
        msg = f"there is no output {output}: the network has outputs 0 to {found.network.output_dim - 1}"
        raise OptionError(msg)
    figure, axes = axes_for(ax, (7.4, 4.6))
    curves(axes, found, output)
    ticks(axes, found)
    many = (
        format_count(found.regions) if found.regions is not None else f"{format_count(found.seen)} regions seen, not all proved"
    )
    many += "" if found.regions is None else f" region{'' if found.regions == 1 else 's'}"
    axes.set_title(f"{found.network.shape} along a path: {many}", color=INK)
    axes.set_xlabel("position: 0 at the first corner, 1 at the second" if names is None else "")
    if names is not None:
        axes.set_xticks(range(last + 1), list(names))
    legend(axes)
    return figure


def histogram(found: Distribution | Summary, name: Statistic | str | None = None, *, ax: Axes | None = None) -> Figure:
    """Draw how a statistic is distributed over the regions, and its mean; between which ends the mean lies, if regions were drawn.

    Parameters
    ----------
    found
        What `tessella.summarise` returned, or one of its distributions.
    name
        The statistic, of a summary.
    ax
        Where to draw; None for a figure of its own.

    Examples
    --------
    >>> import tessella
    >>> net = tessella.Network.from_arrays([([[1.0, 0.0], [1.0, 1.0]], [0.0, 0.5]), ([[1.0, -1.0]], None)])
    >>> figure = tessella.plot.histogram(tessella.summarise(net, (-1, 1), "active"), "active")
    >>> figure.axes[0].get_xlabel()
    'active ReLUs'
    """
    if isinstance(found, Summary):
        if name is None:
            msg = f"say which statistic to draw: one of {', '.join(one.name for one in found.distributions)}"
            raise OptionError(msg)
        found = found.distribution(name)
    if not isinstance(found, Distribution):  # pyright: ignore[reportUnnecessaryIsInstance]  callers may be untyped
        msg = f"a histogram is drawn of what tessella.summarise returned, not of an object of type {type(found).__name__}"
        raise OptionError(msg)
    figure, axes = axes_for(ax, (6.4, 4.0))
    bars(axes, found)
    label = "volume" if found.name is Statistic.VOLUME else LABELS.get(found.name, f"{found.name} norm of the affine map")
    axes.set_xlabel(label)
    axes.set_title(f"{len(found):,} regions, {'all of them' if found.how == 'all regions' else found.how}", color=INK)
    legend(axes)
    return figure


def stability(found: Stability | Analysis, *, ax: Axes | None = None) -> Figure:
    """Draw how far every unit's preactivation ranges: a row per layer, its units sorted from stably inactive to stably active.

    Parameters
    ----------
    found
        What `tessella.stability` returned, or an analysis.
    ax
        Where to draw; None for a figure of its own.

    Examples
    --------
    >>> import tessella
    >>> from tessella import plot
    >>> net = tessella.Network.from_arrays([([[1.0], [-1.0]], [0.5, -0.5]), ([[1.0, 1.0]], None)])
    >>> figure = plot.stability(tessella.stability(net, tessella.Box(0, 1, dim=1)))
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['layer 1: 0 of 2 unstable']
    """
    known = found.stability if isinstance(found, Analysis) else found
    if not isinstance(known, Stability):
        msg = f"stability is drawn of what tessella.stability returned, not of an object of type {type(found).__name__}"
        raise OptionError(msg)
    rows = [(number, shares) for number, shares in enumerate(unit_shares(known)) if len(shares)]
    if not rows:
        msg = "the network has no ReLUs, so there is no stability to draw"
        raise OptionError(msg)
    figure, axes = axes_for(ax, (7.0, 1.4 + 0.5 * len(rows)))
    image = np.full((len(rows), max(len(shares) for _, shares in rows)), np.nan)
    for place, (_, shares) in enumerate(rows):
        ordered = np.sort(shares)
        between = _STABLE + 0.01 + (0.98 - 2.0 * _STABLE) * ordered  # what is not stable never looks so
        image[place, : len(shares)] = np.where((ordered > 0.0) & (ordered < 1.0), between, ordered)
    shown = axes.pcolormesh(
        image, cmap=_map_of_states(), vmin=0.0, vmax=1.0, edgecolors="white", linewidth=0.4 if image.shape[1] <= 128 else 0.0
    )
    axes.invert_yaxis()
    counts = {row["layer"]: row["unstable"] for row in known.rows()}
    texts = [f"layer {number + 1}: {counts[number + 1]} of {len(shares)} unstable" for number, shares in rows]
    axes.set_yticks(np.arange(len(rows)) + 0.5, texts)
    axes.set_xlabel("units, sorted")
    axes.tick_params(length=0)
    bare(axes, "left", "top", "right", "bottom")
    axes.set_title(f"{known.network.shape} on {known.domain.describe()}", color=INK)
    bar = figure.colorbar(shown, ax=axes, ticks=[_STABLE / 2.0, 0.5, 1.0 - _STABLE / 2.0], fraction=0.05, pad=0.02)
    bar.ax.set_yticklabels(["stably inactive", "as far up as down", "stably active"])
    bar.outline.set_visible(False)
    return figure


def unit_shares(known: Stability) -> list[Floats]:
    """For every layer's ReLUs, the part of the range of the preactivation that is positive: 0 if stably inactive, 1 if stably active."""
    shares = list[Floats]()
    for number, layer in enumerate(known.network.outline):
        low, high = known.bounds.lower[number][layer.rectified], known.bounds.upper[number][layer.rectified]
        width = np.where(high > low, high - low, 1.0)
        inside = np.clip(np.maximum(high, 0.0) / width, 0.0, 1.0)
        states = np.where(known.inactive[number], 0.0, np.where(known.active[number], 1.0, np.nan))[layer.rectified]
        shares.append(np.where(np.isnan(states), inside, states))
    return shares


def require_matplotlib() -> None:
    """Raise, with what to do, if matplotlib is not there."""
    if find_spec("matplotlib") is None:
        msg = "pictures need matplotlib, which is not installed: pip install matplotlib"
        raise MissingPackage(msg)


def axes_for(ax: Axes | None, size: tuple[float, float]) -> tuple[Figure, Axes]:
    """The axes that were given, or those of a new figure of a size in inches."""
    require_matplotlib()
    from matplotlib.figure import Figure as NewFigure  # noqa: PLC0415

    if ax is not None:
        return ax.figure, ax
    figure = NewFigure(figsize=size, layout="constrained")
    return figure, figure.add_subplot()


def _map_of_states() -> Any:
    """Full colours for stable units, paler ones for all others."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgb  # noqa: PLC0415

    low, middle, high = (np.array(to_rgb(colour)) for colour in _STATES)
    places = (0.0, _STABLE, _STABLE, 0.5, 1.0 - _STABLE, 1.0 - _STABLE, 1.0)
    colours = (low, low, 0.55 * low + 0.45 * middle, middle, 0.55 * high + 0.45 * middle, high, high)
    return LinearSegmentedColormap.from_list("states", cast("Any", list(zip(places, colours, strict=True))))


def _bar(axes: Axes, place: float, one: Analysis) -> None:
    """One bracket: a bar between the proved ends, a line at the probable one, and a dot for the estimate."""
    low, high = maps(one.proved_lower), maps(one.upper)
    if one.exact is not None:
        axes.plot([high], [place], "D", color=_STATES[2], markersize=8, label="exact count, proved")
        axes.annotate(
            f"{format_count(one.exact)}", (high, place), xytext=(9, -3), textcoords="offset points", color=INK, fontsize="small"
        )
        return
    axes.barh(place, high - low, left=low, height=0.34, color="#c9dbe8", label="proved bounds", zorder=2)
    ends = [(one.proved_lower, Side.LOWER, "right", -5), (one.upper, Side.UPPER, "left", 5)]
    for value, side, align, shift in ends:
        axes.annotate(
            format_count(value, side),
            (maps(value), place),
            xytext=(shift, -3),
            textcoords="offset points",
            ha=align,
            color=INK,
            fontsize="small",
        )
    if one.probable_upper < one.upper:
        sure = f"at most, with {format_confidence(one.confidence)} confidence"
        axes.plot(
            [maps(one.probable_upper)], [place], "|", color=_STATES[0], markersize=17, markeredgewidth=2.5, label=sure, zorder=3
        )
    if one.probable_lower > one.proved_lower:
        sure = f"at least, with {format_confidence(one.confidence)} confidence"
        axes.plot(
            [maps(one.probable_lower)], [place], "|", color=_STATES[0], markersize=17, markeredgewidth=2.5, label=sure, zorder=3
        )
    if one.mean is not None and one.maps_interval is not None:
        axes.plot(one.maps_interval, [place, place], color=_STATES[2], linewidth=1.5, zorder=3.5)
        axes.plot([maps(one.mean)], [place], "o", color=_STATES[2], markersize=6, label="estimate", zorder=4)
