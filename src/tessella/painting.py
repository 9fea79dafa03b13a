"""What pictures of regions are made of, on axes of matplotlib."""

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tessella.examples import Examples, boundary
from tessella.lines.along import Along
from tessella.listing.polygons import Polygons
from tessella.mosaic import tile_colours, tiles
from tessella.network import Floats
from tessella.summarising.statistics import Statistic
from tessella.summarising.summary import Distribution

Figure = Any  # of matplotlib, which may not be there
Axes = Any

INK = "#1f2933"
SIDE, _MARGIN = 5.2, 0.12  # inches: of the axes of a plane, and around all
_LAYERS = ("#0b6e99", "#d1495b", "#edae49", "#3b7d3c", "#7a4eab", "#8c564b", "#17a2a2", "#5c6670")  # repeated beyond
_MANY_LINES = 8  # outputs that are told apart by colour
_CLASSES = ("#111827", "#f4d35e", "#d1495b", "#1b80ac", "#4a9a4b", "#9066c4", "#e07a30", "#1fb0b0", "#a56e60", "#ffffff")
_FEW = 12  # examples that are drawn large


def frame(axes: Axes, found: Polygons) -> None:
    """Show all, with the same scale on both axes unless that would make a strip of it."""
    low, high = found.corners.min(axis=0), found.corners.max(axis=0)
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    if 0.2 < (high[1] - low[1]) / (high[0] - low[0]) < 5.0:
        axes.set_aspect("equal")
    bare(axes, "top", "right", "left", "bottom")


def by_region(axes: Axes, found: Polygons, _output: int | None) -> None:
    """A colour for each pattern."""
    _fill(axes, found, tiles(found), tile_colours())


def by_slope(axes: Axes, found: Polygons, output: int | None) -> None:
    """How steep the network is, of one output or of all."""
    matrices, _ = found.affine_maps()
    chosen = matrices if output is None else matrices[:, [output]]
    what = "all outputs" if found.network.output_dim > 1 and output is None else f"output {output or 0}"
    by_value(axes, found, np.sqrt((chosen**2).sum(axis=(1, 2))), f"slope of {what}")


def by_value(axes: Axes, found: Polygons, values: Floats, label: str) -> None:
    """A shade for each region, from its value."""
    from matplotlib import colormaps  # noqa: PLC0415
    from matplotlib.cm import ScalarMappable  # noqa: PLC0415
    from matplotlib.colors import Normalize  # noqa: PLC0415

    low, high = float(values.min()), float(values.max())
    scale, colours = Normalize(low, max(high, low + 1e-12)), colormaps["viridis"]
    levels = np.minimum((256.0 * np.asarray(scale(values))).astype(np.int64), 255)
    _fill(axes, found, levels, colours(np.arange(256)))
    bar = axes.figure.colorbar(ScalarMappable(scale, colours), cax=axes.inset_axes((1.03, 0.0, 0.04, 1.0)))
    bar.set_label(label)
    if (values == np.rint(values)).all() and high - low <= _FEW:
        bar.set_ticks(np.arange(low, high + 1.0).tolist())
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


def by_layer(axes: Axes, found: Polygons, _output: int | None) -> None:
    """Walls in the colours of layers, on white."""
    walls(axes, found, None)


def walls(axes: Axes, found: Polygons, chosen: Sequence[int] | None) -> None:
    """Walls in the colours of layers, those of all layers or of some, counted from 1; later layers lie below earlier ones, whose walls are whole lines."""
    from matplotlib.collections import PathCollection  # noqa: PLC0415
    from matplotlib.lines import Line2D  # noqa: PLC0415
    from matplotlib.path import Path  # noqa: PLC0415

    handles = list[Any]()
    after = np.arange(1, len(found.corners) + 1)
    after[found.starts[1:] - 1] = found.starts[:-1]
    thin = 1.2 if len(found) < 2000 else 0.7 if len(found) < 20_000 else 0.35
    layers = [number for number, layer in enumerate(found.network.layers) if layer.relus]
    for place, number in enumerate(layers):
        if chosen is not None and place + 1 not in chosen:
            continue
        mine = found.borders == number
        begin, end = found.corners[mine], found.corners[after[mine]]
        forward = (end[:, 0] > begin[:, 0]) | (
            (end[:, 0] == begin[:, 0]) & (end[:, 1] > begin[:, 1])
        )  # of the two sides of a wall one is drawn
        ends = np.stack([begin[forward], end[forward]], axis=1).reshape(-1, 2)
        codes = np.tile(np.array([Path.MOVETO, Path.LINETO], dtype=np.uint8), len(ends) // 2)
        lines = Path(ends, codes)
        lines.should_simplify = False
        colour, order = _LAYERS[place % len(_LAYERS)], 2.0 - place / (len(layers) + 1)
        axes.add_collection(
            PathCollection([lines], facecolors="none", edgecolors=colour, linewidths=thin, zorder=order), autolim=False
        )
        handles.append(Line2D([], [], color=colour, linewidth=2.0, label=f"cut by layer {place + 1}"))
    for handle in handles:
        axes.add_line(handle)  # without points: it stands in the legend only


def graph(axes: Axes, found: Polygons, output: int | None) -> None:
    """The function itself, a dot at every break point, and the regions as a band below."""
    order = np.argsort(found.corners[found.starts[:-1], 0], kind="stable")
    left, right = found.corners[found.starts[:-1], 0][order], found.corners[found.starts[1:] - 1, 0][order]
    places = np.append(left, right[-1])
    box = found.domain.box
    inputs = np.tile(box.lower, (len(places), 1))
    inputs[:, box.free] = places[:, None]
    values = found.network(inputs)
    _lines(axes, places, values, output, marker="o" if len(places) <= 200 else "", markersize=3.0)
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
    bare(axes, "top", "right")


def curves(axes: Axes, found: Along, output: int | None) -> None:
    """The outputs along a path, which are straight between breaks and corners."""
    places = np.unique(np.concatenate([np.arange(len(found.path)), found.breaks]))
    places = places[places <= found.reached]
    values = found.network(found.points(places))
    _lines(axes, places, values, output, **({"color": INK} if output is not None or values.shape[1] == 1 else {}))
    for corner in range(1, len(found.path) - 1):
        axes.axvline(corner, color=INK, linewidth=0.5, alpha=0.35, zorder=0.5)
    axes.set_xlim(0.0, len(found.path) - 1.0)
    axes.set_ylabel("output")
    bare(axes, "top", "right")


def _lines(axes: Axes, places: npt.NDArray[Any], values: Floats, output: int | None, **style: Any) -> None:
    """A line for each output, or for one; each in a colour of its own, with a name in the legend, if they are not too many."""
    outputs = range(values.shape[1]) if output is None else [output]
    few = len(outputs) <= _MANY_LINES
    for number in outputs:
        look = {"color": _LAYERS[number % len(_LAYERS)] if few else INK, "linewidth": 1.4 if few else 0.7, **style}
        axes.plot(places, values[:, number], label=f"{'' if few and len(outputs) > 1 else '_'}output {number}", **look)


def ticks(axes: Axes, found: Along) -> None:
    """A tick for every break, in a row for its layer, below the curves."""
    from matplotlib.collections import LineCollection  # noqa: PLC0415

    layers = [number for number, layer in enumerate(found.network.layers, start=1) if layer.relus]
    share = min(0.035 * len(layers), 0.3)  # of the height
    low, high = axes.get_ylim()
    axes.set_ylim(low - (high - low) * (share + 0.04) / (1.0 - share - 0.04), high)
    of = np.repeat(np.arange(len(found.breaks)), np.diff(found.starts))
    for place, number in enumerate(layers):
        at = found.breaks[np.unique(of[found.layers == number])]
        top = share * (1.0 - place / len(layers))
        ends = np.stack([np.full(len(at), top - 0.85 * share / len(layers)), np.full(len(at), top)], axis=1)
        lines = np.stack([np.stack([at, at], axis=1), ends], axis=2)
        colour = _LAYERS[place % len(_LAYERS)]
        wide = 0.9 if len(at) < 300 else 0.4
        drawn = LineCollection(list(lines), colors=colour, linewidths=wide, transform=axes.get_xaxis_transform(), zorder=2.0)
        drawn.set_gid(f"breaks {number}")
        axes.add_collection(drawn, autolim=False)
        axes.plot(
            [], [], color=colour, linewidth=2.0, label=f"breaks of layer {place + 1}" if len(layers) <= _MANY_LINES else "_layer"
        )


def decision(axes: Axes, found: Polygons) -> None:
    """A line where the network's decision changes."""
    from matplotlib.collections import LineCollection  # noqa: PLC0415

    pieces = boundary(found)
    if found.dim == 1:
        for place in pieces.reshape(-1).tolist():
            axes.axvline(place, color=INK, linewidth=1.0, linestyle="--", zorder=2.5)
        axes.plot([], [], color=INK, linestyle="--", linewidth=1.0, label="the decision changes")
        return
    for colour, wide in (("white", 3.4), (INK, 1.6)):
        axes.add_collection(
            LineCollection(list(pieces), colors=colour, linewidths=wide, zorder=3.0, capstyle="round"), autolim=False
        )
    axes.plot([], [], color=INK, linewidth=1.6, label="the decision changes")


def dots(axes: Axes, given: Examples, places: Floats) -> None:
    """Examples, in the colours of their classes."""
    few = len(places) <= _FEW
    for number, name in enumerate(given.classes or [""]):
        mine = places[given.numbers == number]
        across, upward = (mine[:, 0], mine[:, 1]) if places.shape[1] == 2 else (mine[:, 0], np.zeros(len(mine)))
        where = {} if places.shape[1] == 2 else {"transform": axes.get_xaxis_transform(), "clip_on": False}
        axes.plot(
            across,
            upward,
            "o",
            color=_CLASSES[number % len(_CLASSES)],
            markeredgecolor="white" if number else "#f4f1e8",
            markeredgewidth=1.2 if few else 0.5,
            markersize=8.0 if few else 4.0,
            label=f"class {name}" if name else "_points",
            zorder=4.0,
            **where,
        )


def legend(axes: Axes) -> None:
    """One legend below the picture, and below what the axis is called."""
    handles, words = axes.get_legend_handles_labels()
    if not handles:
        return
    axes.legend(
        handles,
        words,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.11 if axes.get_aspect() != "auto" else -0.16),
        ncols=min(len(handles), 4),
        columnspacing=2.0,
        frameon=False,
    )


def grown(figure: Figure, axes: Axes) -> None:
    """Make the figure as large as what stands in it."""
    figure.draw_without_rendering()
    around, size = figure.get_tightbbox(), figure.get_size_inches()
    low, total = np.array([around.x0, around.y0]) - _MARGIN, np.array([around.width, around.height]) + 2.0 * _MARGIN
    place = axes.get_position(original=True)
    left, below = (np.array([place.x0, place.y0]) * size - low) / total
    figure.set_size_inches(*total)
    axes.set_position((left, below, *(SIDE / total)))


def bare(axes: Axes, *sides: str) -> None:
    """Draw no frame on these sides."""
    for side in sides:
        axes.spines[side].set_visible(False)


def bars(axes: Axes, found: Distribution) -> None:
    """The part of the regions in each bar, and the mean."""
    edges, heights = found.histogram()
    axes.bar(edges[:-1], 100.0 * heights, width=np.diff(edges), align="edge", color="#c9dbe8", edgecolor="white", linewidth=0.4)
    if found.name is not Statistic.DECISION and math.isfinite(found.mean.value):
        low, high = found.mean.low, found.mean.high
        axes.axvline(found.mean.value, color=_LAYERS[1], linewidth=1.4, label=f"mean {found.mean.value:.4g}")
        if low < high:
            shown = max(low, edges[0]), min(high, edges[-1])
            axes.axvspan(*shown, color=_LAYERS[1], alpha=0.15, linewidth=0.0, label=f"mean between {low:.4g} and {high:.4g}")
    axes.set_ylabel("% of the regions")
    bare(axes, "top", "right")
