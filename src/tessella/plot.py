"""Pictures: regions as exact polygons, one-input functions, outputs along a path, brackets, and which units are stable.

Needs matplotlib (``pip install matplotlib``, or the extra ``plot``).  Every function returns a `matplotlib.figure.Figure` that belongs to no window, so that it
works without a display: ``figure.savefig("regions.svg")``.  With ``ax=`` it draws where it is told to.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from importlib.util import find_spec
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tessella import options
from tessella.analysis.result import Analysis
from tessella.domain import Domain
from tessella.door import DomainLike, NetworkLike, enter
from tessella.errors import MissingPackage, OptionError
from tessella.examples import Examples, examples
from tessella.lines.along import Along
from tessella.listing.polygons import Polygons
from tessella.listing.polygons import polygons as find_polygons
from tessella.network import Floats, Network
from tessella.painting import (
    INK,
    SIDE,
    bare,
    bars,
    by_layer,
    by_region,
    by_slope,
    by_value,
    curves,
    decision,
    dots,
    frame,
    graph,
    grown,
    legend,
    ticks,
    walls,
)
from tessella.progress import found_so_far, with_bar
from tessella.result import Side, format_confidence, format_count, maps
from tessella.slicing import Slice
from tessella.slicing import slice as make_slice
from tessella.solids import space, write_gif
from tessella.stability import Stability
from tessella.summarising.statistics import Statistic, of_polygons
from tessella.summarising.summary import Distribution, Summary
from tessella.tracking import Tracker

__all__ = ["Colour", "along", "animation", "bracket", "histogram", "regions", "space", "stability"]

Figure = Any  # of matplotlib, which may not be there
Axes = Any

_PALE = "#d5dbe1"
_STABLE = 0.08  # of the colours: for units that are stable on either side
_STATES = ("#2b5c8a", "#f4f1e8", "#b5482a")  # stably inactive, both, stably active
_LABELS = {
    Statistic.ACTIVE: "active ReLUs",
    Statistic.RANK: "rank of the affine map",
    Statistic.SPECTRAL: "largest singular value of the affine map",
    Statistic.WALLS: "regions behind walls",
    Statistic.RADIUS: "radius of a largest ball inside",
    Statistic.VOLUME: "area",
    Statistic.SHARE: "share of the area",
    Statistic.DECISION: "decision (-1 where it changes)",
}
_NARROW = 1e-12  # of its distance from 0: how wide half of a picture must be


def __dir__() -> list[str]:
    """The public names, and not what this is made of."""
    return __all__


class Colour(StrEnum):
    """What colours say in a picture of regions."""

    REGION = "region"
    LAYER = "layer"
    SLOPE = "slope"


@with_bar(found_so_far)
def regions(  # noqa: PLR0913  one keyword per option
    network: NetworkLike | Slice,
    domain: DomainLike | None = None,
    *,
    polygons: Polygons | None = None,
    colour: Colour | Statistic | str | npt.ArrayLike = Colour.REGION,
    layers: Sequence[int] = (),
    output: int | None = None,
    limit: int | None = None,
    data: npt.ArrayLike | None = None,
    labels: npt.ArrayLike | None = None,
    ax: Axes | None = None,
    progress: Callable[[int], None] | bool | None = None,
) -> Figure:
    """Draw the regions of a network with one or two inputs, or on a slice, as the polygons that they are.

    There are as many polygons as `tessella.count` finds.  With one input it draws the function, with its regions below.  The points that a slice goes through are marked.

    Parameters
    ----------
    network
        A network, or what `tessella.load` takes, with its domain; or a slice, as `tessella.slice` makes it.
    domain
        Where: a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``; a slice has its own.
    polygons
        What `tessella.polygons` returned for it, if that is known already.
    colour
        ``"region"``: a colour for each pattern, another than its neighbours have.  ``"layer"``: walls in the colour of the layer that made them.  ``"slope"``: how steep the
        network is there, the norm of the derivatives of its outputs.  The name of a `tessella.Statistic`, such as ``"active"``, or one number for each polygon: a shade for each.
    layers
        Layers, counted from 1, whose walls are drawn over the colours.
    output
        The output whose slope or graph is drawn; None for all of them.
    limit
        Refuse to draw more regions than this.
    data, labels
        Examples to draw, one row each, and their classes: those that lie on the picture.  With data a line shows where the network's decision changes.
    ax
        Where to draw; None for a figure of its own.
    progress
        Called every now and then with the number of regions found; True for a bar on a terminal or in a notebook.

    Examples
    --------
    >>> import tessella
    >>> from tessella import plot
    >>> from tessella import Box
    >>> net = tessella.Network.from_arrays([([[1.0, 0.0], [1.0, 1.0]], [0.0, 0.5]), ([[1.0, -1.0]], None)])
    >>> figure = plot.regions(net, tessella.Box(-1, 1, dim=2))
    >>> figure.axes[0].get_title()
    '2-2-1 on [-1, 1]^2: 4 regions'
    """
    chosen = _colour(colour)
    source, whole, where = _source(network, domain)
    _check_size(where)
    if polygons is not None and not (polygons.network == whole and polygons.domain == where):
        msg = "the polygons are those of another network or domain; find them with tessella.polygons(network, domain)"
        raise OptionError(msg)
    found = polygons or find_polygons(whole, where, limit=limit, progress=progress)
    if limit is not None and not found.complete:
        msg = f"there are more than {limit:,} regions; draw a smaller part of them, or allow more"
        raise OptionError(msg)
    if output is not None and not 0 <= output < found.network.output_dim:
        msg = f"there is no output {output}: the network has outputs 0 to {found.network.output_dim - 1}"
        raise OptionError(msg)
    names = _names(source, found)
    seen = _examples(source, found, data, labels)
    figure, axes = _axes(ax, (7.0, 4.2)) if found.dim == 1 else _square(ax)
    _check_layers(layers, found)
    if found.dim == 2 and not isinstance(chosen, Colour):
        by_value(axes, found, *_values(chosen, found))
    else:
        draw = (
            graph
            if found.dim == 1
            else {Colour.REGION: by_region, Colour.LAYER: by_layer, Colour.SLOPE: by_slope}[Colour(chosen)]
        )
        draw(axes, found, output)
    if layers and found.dim == 2:
        walls(axes, found, layers)
    axes.set_title(_title(source, found), color=INK)
    axes.set_xlabel(names[0])
    if found.dim == 2:
        axes.set_ylabel(names[1])
        frame(axes, found)
    if data is not None:
        decision(axes, found)
    if seen is not None:
        dots(axes, *seen)
    legend(axes)
    if ax is None and found.dim == 2:
        grown(figure, axes)
    return figure


def _colour(asked: object) -> Colour | Statistic | Floats:
    """What colours say: a name, or a number for each polygon."""
    if not isinstance(asked, str):
        try:
            return np.asarray(asked, dtype=np.float64)
        except (TypeError, ValueError):
            asked = str(asked)
    if asked in set(Statistic):
        return Statistic(asked)
    if asked not in set(Colour):
        msg = f"colour is {asked!r:.40}; a picture takes one of {', '.join([*Colour, *Statistic])}, or one number for each region"
        raise OptionError(msg)
    return Colour(asked)


def _values(chosen: Colour | Statistic | Floats, found: Polygons) -> tuple[Floats, str]:
    """The number that each polygon is shaded by, and what it is."""
    if isinstance(chosen, Statistic):
        return of_polygons(chosen, found), _LABELS.get(chosen, str(chosen))
    values = np.asarray(chosen, dtype=np.float64)
    if values.shape != (len(found),) or not np.isfinite(values).all():
        msg = f"colour has shape {values.shape}; one finite number for each of the {len(found):,} regions was expected"
        raise OptionError(msg)
    return values, "value"


def _check_layers(layers: Sequence[int], found: Polygons) -> None:
    depth = found.network.depth
    if not all(isinstance(layer, (int, np.integer)) and 1 <= layer <= depth for layer in layers):  # pyright: ignore[reportUnnecessaryIsInstance]  callers may be untyped
        msg = f"layers are {list(layers)!r:.40}; the layers with ReLUs have numbers 1 to {depth}"
        raise OptionError(msg)


def _source(network: NetworkLike | Slice, domain: DomainLike | None) -> tuple[Network | Slice, Network, Domain]:
    """What is drawn; its network, and its domain."""
    if isinstance(network, Slice):
        if domain is not None:
            msg = "a slice has a domain of its own; give no other"
            raise OptionError(msg)
        return network, network.network, network.domain
    if domain is None:
        msg = "say which inputs to draw: plot.regions(net, tessella.Box(-1, 1, dim=2))"
        raise OptionError(msg)
    whole, where = enter(network, domain)
    return whole, whole, where


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
    figure, axes = _axes(ax, (7.4, 1.6 + 0.55 * len(many)))
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
    figure, axes = _axes(ax, (7.4, 4.6))
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
    figure, axes = _axes(ax, (6.4, 4.0))
    bars(axes, found)
    label = "volume" if found.name is Statistic.VOLUME else _LABELS.get(found.name, f"{found.name} norm of the affine map")
    axes.set_xlabel(label)
    axes.set_title(f"{len(found):,} regions, {'all of them' if found.how == 'all regions' else found.how}", color=INK)
    legend(axes)
    return figure


def animation(  # noqa: PLR0913  one keyword per option
    networks: Tracker | Sequence[NetworkLike],
    domain: DomainLike,
    path: str | os.PathLike[str],
    *,
    names: Sequence[str] | None = None,
    points: npt.ArrayLike | None = None,
    axes: Sequence[int] | None = None,
    seconds: float = 0.5,
    colour: Colour | Statistic | str = Colour.REGION,
    data: npt.ArrayLike | None = None,
    labels: npt.ArrayLike | None = None,
) -> None:
    """Write the regions of a network while it is trained to an animated GIF: one picture for each time.

    Parameters
    ----------
    networks
        A `tessella.Tracker` that keeps networks (``track(..., keep=True)``), or networks in order.
    domain
        Where: that of the network, also where a slice of it is drawn.
    path
        The file, such as ``training.gif``.
    names
        What to call the times; epochs of a tracker, else their numbers.
    points, axes
        Those of `tessella.slice`, for networks with more than two free inputs.
    seconds
        How long each picture is shown; the last one three times as long.
    colour, data, labels
        Those of `regions`.

    Examples
    --------
    >>> import tessella, tempfile
    >>> from pathlib import Path
    >>> tracker = tessella.track([([[1.0, 0.5], [-1.0, 2.0]], [0.5, 0.5]), ([[1.0, 1.0]], None)], (-2, 2), keep=True)
    >>> [tracker.step().epoch for _ in range(3)]
    [0, 1, 2]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tessella.plot.animation(tracker, (-2, 2), Path(folder) / "training.gif")
    ...     (Path(folder) / "training.gif").read_bytes()[:6]
    b'GIF89a'
    """
    options.check_seconds(seconds, "an animation", otherwise="", endless=False)
    given = list(networks.networks) if isinstance(networks, Tracker) else list(networks)
    times = (
        [f"epoch {one.epoch}" for one in networks.records]
        if isinstance(networks, Tracker)
        else [str(n) for n in range(len(given))]
    )
    if not given or len(given) != len(names or times):
        why = (
            "track with keep=True, and step at least once"
            if isinstance(networks, Tracker)
            else "give one network at least, and one name each"
        )
        msg = f"there are {len(given)} networks and {len(names or times)} times to draw; {why}"
        raise OptionError(msg)
    frames = list[Figure]()
    for network, name in zip(given, names or times, strict=True):
        sliced = points is not None or axes is not None
        drawn = make_slice(network, points, domain, axes=axes) if sliced else network
        figure = regions(drawn, None if sliced else domain, colour=colour, data=data, labels=labels)
        figure.axes[0].set_title(f"{name}: {figure.axes[0].get_title().rpartition(': ')[2]}", color=INK)
        frames.append(figure)
    write_gif(path, frames, seconds)


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
    figure, axes = _axes(ax, (7.0, 1.4 + 0.5 * len(rows)))
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


def _map_of_states() -> Any:
    """Full colours for stable units, paler ones for all others."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgb  # noqa: PLC0415

    low, middle, high = (np.array(to_rgb(colour)) for colour in _STATES)
    places = (0.0, _STABLE, _STABLE, 0.5, 1.0 - _STABLE, 1.0 - _STABLE, 1.0)
    colours = (low, low, 0.55 * low + 0.45 * middle, middle, 0.55 * high + 0.45 * middle, high, high)
    return LinearSegmentedColormap.from_list("states", cast("Any", list(zip(places, colours, strict=True))))


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


def _names(source: Network | Slice, found: Polygons) -> list[str]:
    if isinstance(source, Slice):
        return [f"input {axis}" for axis in source.axes] or [f"distance along direction {n + 1}" for n in range(found.dim)]
    return [f"input {axis}" for axis in np.flatnonzero(found.domain.box.free).tolist()]


def _title(source: Network | Slice, found: Polygons) -> str:
    many = f"{len(found):,} region{'' if len(found) == 1 else 's'}{'' if found.complete else ', not all of them'}"
    if isinstance(source, Slice):
        text = (
            f"{source.describe()} of {len(source.origin)}" if source.axes else f"{source.describe()}, {len(source.origin)} inputs"
        )
        return f"{text[0].upper()}{text[1:]}: {many}"
    return f"{found.network.shape} on {found.domain.describe()}: {many}"


def require_matplotlib() -> None:
    """Raise, with what to do, if matplotlib is not there."""
    if find_spec("matplotlib") is None:
        msg = "pictures need matplotlib, which is not installed: pip install matplotlib"
        raise MissingPackage(msg)


def _axes(ax: Axes | None, size: tuple[float, float]) -> tuple[Figure, Axes]:
    require_matplotlib()
    from matplotlib.figure import Figure as NewFigure  # noqa: PLC0415

    if ax is not None:
        return ax.figure, ax
    figure = NewFigure(figsize=size, layout="constrained")
    return figure, figure.add_subplot()


def _check_size(domain: Domain) -> None:
    """Refuse what has no picture because its corners are rounded to a few places."""
    box = domain.box
    for axis in np.flatnonzero(box.free).tolist():
        low, high = float(box.lower[axis]), float(box.upper[axis])
        if high / 2.0 - low / 2.0 < _NARROW * max(abs(low), abs(high)):
            msg = f"input {axis} goes from {low!r} to {high!r}, which is too narrow to draw: corners would be rounded to a few places"
            raise OptionError(msg)


def _examples(
    source: Network | Slice, found: Polygons, data: npt.ArrayLike | None, labels: npt.ArrayLike | None
) -> tuple[Examples, Floats] | None:
    """The examples that lie on a picture, and where; else the points that a slice goes through."""
    chosen = source if isinstance(source, Slice) else None
    if data is None:
        if labels is not None:
            msg = "labels are those of data; give the data, too"
            raise OptionError(msg)
        return None if chosen is None or chosen.points is None else (Examples(chosen.lift(chosen.points)), chosen.points)
    return examples(chosen.whole if chosen else found.network, data, labels).on(chosen, found.domain.box.free)


def _square(ax: Axes | None) -> tuple[Figure, Axes]:
    """Axes of one size, whatever stands beside them."""
    figure, axes = _axes(ax, (SIDE + 2.0, SIDE + 2.0))
    if ax is None:
        figure.set_layout_engine("none")
        axes.set_position((1.0 / (SIDE + 2.0), 1.0 / (SIDE + 2.0), SIDE / (SIDE + 2.0), SIDE / (SIDE + 2.0)))
    return figure, axes


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
