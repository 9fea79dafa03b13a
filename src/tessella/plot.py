"""Pictures: regions as exact polygons, one-input functions, brackets, and which units are stable.

Needs matplotlib (``pip install 'tessella[plot]'``).  Every function returns a `matplotlib.figure.Figure` that belongs to no window, so that it
works without a display: ``figure.savefig("regions.svg")``.  With ``ax=`` it draws where it is told to.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from importlib.util import find_spec
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tessella.analysis.result import Analysis
from tessella.domain import Domain
from tessella.door import DomainLike, NetworkLike, enter
from tessella.errors import MissingPackage, OptionError
from tessella.listing.polygons import Polygons
from tessella.listing.polygons import polygons as find_polygons
from tessella.mosaic import tile_colours, tiles
from tessella.network import Floats, Network
from tessella.progress import found_so_far, with_bar
from tessella.result import Side, format_confidence, format_count, maps
from tessella.slicing import Slice
from tessella.stability import Stability

Figure = Any  # of matplotlib, which may not be there
Axes = Any

_INK, _PALE = "#1f2933", "#d5dbe1"
_LAYERS = ("#0b6e99", "#d1495b", "#edae49", "#3b7d3c", "#7a4eab", "#8c564b", "#17a2a2", "#5c6670")  # repeated beyond
_STATES = ("#2b5c8a", "#f4f1e8", "#b5482a")  # stably inactive, both, stably active
_NARROW = 1e-12  # of its distance from 0: how wide half of a picture must be
_MANY_LINES = 8  # outputs that are told apart by colour


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
    colour: Colour | str = Colour.REGION,
    output: int | None = None,
    limit: int | None = None,
    ax: Axes | None = None,
    progress: Callable[[int], None] | bool | None = None,
) -> Figure:
    """Draw the regions of a network with one or two inputs, or on a slice, as the polygons that they are.

    There are as many polygons as `tessella.count` finds.  With one input it draws the function, with its regions below.

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
        network is there, the norm of the derivatives of its outputs.
    output
        The output whose slope or graph is drawn; None for all of them.
    limit
        Refuse to draw more regions than this.
    ax
        Where to draw; None for a figure of its own.
    progress
        Called every now and then with the number of regions found; True for a bar on a terminal or in a notebook.

    Examples
    --------
    >>> from tessella import Box
    >>> net = Network.from_arrays([([[1.0, 0.0], [1.0, 1.0]], [0.0, 0.5]), ([[1.0, -1.0]], None)])
    >>> figure = regions(net, Box(-1, 1, dim=2))
    >>> figure.axes[0].get_title()
    '2-2-1 on [-1, 1]^2: 4 regions'
    """
    try:
        chosen = Colour(colour)
    except ValueError as error:
        msg = f"colour is {colour!r:.40}; a picture takes one of {', '.join(Colour)}"
        raise OptionError(msg) from error
    if isinstance(network, Slice):
        if domain is not None:
            msg = "a slice has a domain of its own; give no other"
            raise OptionError(msg)
        source, whole, where = network, network.network, network.domain
    else:
        if domain is None:
            msg = "say which inputs to draw: plot.regions(net, tessella.Box(-1, 1, dim=2))"
            raise OptionError(msg)
        whole, where = enter(network, domain)
        source = whole
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
    figure, axes = _axes(ax, (6.4, 6.0) if found.dim == 2 else (7.0, 4.2))
    draw = _graph if found.dim == 1 else {Colour.REGION: _by_region, Colour.LAYER: _by_layer, Colour.SLOPE: _by_slope}[chosen]
    draw(axes, found, output)
    axes.set_title(_title(source, found), color=_INK)
    axes.set_xlabel(names[0])
    if found.dim == 2:
        axes.set_ylabel(names[1])
        _frame(axes, found)
    return figure


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
    _bare(axes, "left", "top", "right")
    handles, words = axes.get_legend_handles_labels()
    unique = dict(zip(words, handles, strict=True))
    axes.legend(
        unique.values(), unique.keys(), loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False, fontsize="small"
    )
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
    >>> net = Network.from_arrays([([[1.0], [-1.0]], [0.5, -0.5]), ([[1.0, 1.0]], None)])
    >>> figure = stability(tessella.stability(net, tessella.Box(0, 1, dim=1)))
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
        image[place, : len(shares)] = np.sort(shares)
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415

    map_of_states = LinearSegmentedColormap.from_list("states", _STATES)
    shown = axes.pcolormesh(
        image, cmap=map_of_states, vmin=0.0, vmax=1.0, edgecolors="white", linewidth=0.4 if image.shape[1] <= 128 else 0.0
    )
    axes.invert_yaxis()
    counts = {row["layer"]: row["unstable"] for row in known.rows()}
    texts = [f"layer {number + 1}: {counts[number + 1]} of {len(shares)} unstable" for number, shares in rows]
    axes.set_yticks(np.arange(len(rows)) + 0.5, texts)
    axes.set_xlabel("units, sorted")
    axes.tick_params(length=0)
    _bare(axes, "left", "top", "right", "bottom")
    axes.set_title(f"{known.network.shape} on {known.domain.describe()}", color=_INK)
    bar = figure.colorbar(shown, ax=axes, ticks=[0.0, 0.5, 1.0], fraction=0.05, pad=0.02)
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
        msg = "pictures need matplotlib; install it with: pip install 'tessella[plot]'"
        raise MissingPackage(msg)


def _axes(ax: Axes | None, size: tuple[float, float]) -> tuple[Figure, Axes]:
    require_matplotlib()
    from matplotlib.figure import Figure as NewFigure  # noqa: PLC0415

    if ax is not None:
        return ax.figure, ax
    figure = NewFigure(figsize=size, layout="constrained")
    return figure, figure.add_subplot()


def _bare(axes: Axes, *sides: str) -> None:
    for side in sides:
        axes.spines[side].set_visible(False)


def _check_size(domain: Domain) -> None:
    """Refuse what has no picture because its corners are rounded to a few places."""
    box = domain.box
    for axis in np.flatnonzero(box.free).tolist():
        low, high = float(box.lower[axis]), float(box.upper[axis])
        if high / 2.0 - low / 2.0 < _NARROW * max(abs(low), abs(high)):
            msg = f"input {axis} goes from {low!r} to {high!r}, which is too narrow to draw: corners would be rounded to a few places"
            raise OptionError(msg)


def _frame(axes: Axes, found: Polygons) -> None:
    """Show all, with the same scale on both axes unless that would make a strip of it."""
    low, high = found.corners.min(axis=0), found.corners.max(axis=0)
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    if 0.2 < (high[1] - low[1]) / (high[0] - low[0]) < 5.0:
        axes.set_aspect("equal")
    _bare(axes, "top", "right", "left", "bottom")


def _by_region(axes: Axes, found: Polygons, _output: int | None) -> None:
    _fill(axes, found, tiles(found), tile_colours())


def _by_slope(axes: Axes, found: Polygons, output: int | None) -> None:
    from matplotlib import colormaps  # noqa: PLC0415
    from matplotlib.cm import ScalarMappable  # noqa: PLC0415
    from matplotlib.colors import Normalize  # noqa: PLC0415

    matrices, _ = found.affine_maps()
    chosen = matrices if output is None else matrices[:, [output]]
    steep = np.sqrt((chosen**2).sum(axis=(1, 2)))
    scale, colours = Normalize(steep.min(), max(steep.max(), steep.min() + 1e-12)), colormaps["viridis"]
    levels = np.minimum((256.0 * np.asarray(scale(steep))).astype(np.int64), 255)
    _fill(axes, found, levels, colours(np.arange(256)))
    what = "all outputs" if found.network.output_dim > 1 and output is None else f"output {output or 0}"
    bar = axes.figure.colorbar(ScalarMappable(scale, colours), ax=axes, fraction=0.05, pad=0.02)
    bar.set_label(f"slope of {what}")
    bar.outline.set_visible(False)


def _fill(axes: Axes, found: Polygons, classes: npt.NDArray[np.int64], colours: Any) -> None:
    """Fill polygons, all of one colour as one path of many parts: 100,000 paths would take most of the time."""
    from matplotlib.collections import PathCollection  # noqa: PLC0415
    from matplotlib.path import Path  # noqa: PLC0415

    paths, used = list[Any](), np.unique(classes)
    for one in used:
        members = np.flatnonzero(classes == one)
        sizes = np.diff(found.starts)[members]
        ends = np.cumsum(sizes + 1)  # one more, to close it
        starts = ends - sizes - 1
        index = np.arange(ends[-1]) + np.repeat(found.starts[members] - starts, sizes + 1)
        index[ends - 1] = found.starts[members]
        codes = np.full(len(index), Path.LINETO, dtype=np.uint8)
        codes[starts], codes[ends - 1] = Path.MOVETO, Path.CLOSEPOLY
        paths.append(Path(found.corners[index], codes))
    # what is drawn beside a polygon hides the seams between them
    seam = 0.4 if len(found) < 2000 else 0.1
    shapes = PathCollection(paths, facecolors=[colours[one] for one in used], edgecolors="face", linewidths=seam)
    shapes.set_gid("regions")
    axes.add_collection(shapes, autolim=False)


def _by_layer(axes: Axes, found: Polygons, _output: int | None) -> None:
    """Walls in the colours of layers, on white; later layers lie below earlier ones, whose walls are whole lines."""
    from matplotlib.collections import PathCollection  # noqa: PLC0415
    from matplotlib.lines import Line2D  # noqa: PLC0415
    from matplotlib.path import Path  # noqa: PLC0415

    handles = list[Any]()
    after = np.arange(1, len(found.corners) + 1)
    after[found.starts[1:] - 1] = found.starts[:-1]
    thin = 1.2 if len(found) < 2000 else 0.7 if len(found) < 20_000 else 0.35
    layers = [number for number, layer in enumerate(found.network.layers) if layer.relus]
    for place, number in enumerate(layers):
        mine = found.borders == number
        begin, end = found.corners[mine], found.corners[after[mine]]
        forward = (end[:, 0] > begin[:, 0]) | (
            (end[:, 0] == begin[:, 0]) & (end[:, 1] > begin[:, 1])
        )  # of the two sides of a wall one is drawn
        ends = np.stack([begin[forward], end[forward]], axis=1).reshape(-1, 2)
        codes = np.tile(np.array([Path.MOVETO, Path.LINETO], dtype=np.uint8), len(ends) // 2)
        walls = Path(ends, codes)
        walls.should_simplify = False
        colour, order = _LAYERS[place % len(_LAYERS)], 2.0 - place / (len(layers) + 1)
        axes.add_collection(
            PathCollection([walls], facecolors="none", edgecolors=colour, linewidths=thin, zorder=order), autolim=False
        )
        handles.append(Line2D([], [], color=colour, linewidth=2.0, label=f"cut by layer {place + 1}"))
    if handles:
        axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=min(len(handles), 4), frameon=False)


def _graph(axes: Axes, found: Polygons, output: int | None) -> None:
    """The function itself, a dot at every break point, and the regions as a band below."""
    order = np.argsort(found.corners[found.starts[:-1], 0], kind="stable")
    left, right = found.corners[found.starts[:-1], 0][order], found.corners[found.starts[1:] - 1, 0][order]
    places = np.append(left, right[-1])
    box = found.domain.box
    inputs = np.tile(box.lower, (len(places), 1))
    inputs[:, box.free] = places[:, None]
    values = found.network(inputs)
    outputs = range(values.shape[1]) if output is None else [output]
    few = len(outputs) <= _MANY_LINES
    for number in outputs:
        axes.plot(
            places,
            values[:, number],
            color=_LAYERS[number % len(_LAYERS)] if few else _INK,
            linewidth=1.4 if few else 0.7,
            marker="o" if len(places) <= 200 else "",
            markersize=3.0,
            label=f"output {number}",
        )
    if few and len(outputs) > 1:
        axes.legend(frameon=False)
    from matplotlib.collections import PolyCollection  # noqa: PLC0415

    low, high = -0.02, 0.03  # parts of the height of the axes
    corners = np.stack(
        [np.stack([x, np.full_like(x, y)], axis=1) for x, y in ((left, low), (right, low), (right, high), (left, high))], axis=1
    )
    band = PolyCollection(
        cast("Any", corners),
        facecolors=[tile_colours()[one] for one in tiles(found)[order]],
        edgecolors="face",
        linewidths=0.2,
        transform=axes.get_xaxis_transform(),
    )
    axes.add_collection(band, autolim=False)
    axes.set_xlim(places[0], places[-1])
    axes.margins(y=0.12)
    axes.set_ylabel("output")
    _bare(axes, "top", "right")


def _bar(axes: Axes, place: float, one: Analysis) -> None:
    """One bracket: a bar between the proved ends, a line at the probable one, and a dot for the estimate."""
    low, high = maps(one.proved_lower), maps(one.upper)
    if one.exact is not None:
        axes.plot([high], [place], "D", color=_STATES[2], markersize=8, label="exact count, proved")
        axes.annotate(
            f"{format_count(one.exact)}", (high, place), xytext=(9, -3), textcoords="offset points", color=_INK, fontsize="small"
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
            color=_INK,
            fontsize="small",
        )
    if one.probable_lower > one.proved_lower:
        sure = f"at least, with {format_confidence(one.confidence)} confidence"
        axes.plot(
            [maps(one.probable_lower)], [place], "|", color=_STATES[0], markersize=17, markeredgewidth=2.5, label=sure, zorder=3
        )
    if one.mean is not None:
        axes.plot([maps(one.mean)], [place], "o", color=_STATES[2], markersize=6, label="estimate", zorder=4)
