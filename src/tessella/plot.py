"""Pictures: regions as exact polygons, one-input functions, outputs along a path, brackets, and which units are stable.

Needs matplotlib (``pip install matplotlib``, or the extra ``plot``).  Every function returns a `matplotlib.figure.Figure` that belongs to no window, so that it
works without a display: ``figure.savefig("regions.svg")``.  With ``ax=`` it draws where it is told to.
"""

import os
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from tessella import options
from tessella.charts import LABELS, along, axes_for, bracket, histogram, stability
from tessella.domain import Domain
from tessella.door import DomainLike, NetworkLike, enter
from tessella.errors import OptionError
from tessella.examples import Examples, examples
from tessella.listing.polygons import Polygons
from tessella.listing.polygons import polygons as find_polygons
from tessella.network import Floats, Network
from tessella.painting import (
    INK,
    SIDE,
    by_layer,
    by_region,
    by_slope,
    by_value,
    decision,
    dots,
    frame,
    graph,
    grown,
    legend,
    walls,
)
from tessella.progress import found_so_far, with_bar
from tessella.slicing import Slice
from tessella.slicing import slice as make_slice
from tessella.solids import space, write_gif
from tessella.summarising.statistics import Statistic, of_polygons
from tessella.tracking import Tracker

__all__ = ["Colour", "along", "animation", "bracket", "histogram", "regions", "space", "stability"]

Figure = Any  # of matplotlib, which may not be there
Axes = Any

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
    _check_found(found, limit, output)
    names = _names(source, found)
    seen = _examples(source, found, data, labels)
    figure, axes = axes_for(ax, (7.0, 4.2)) if found.dim == 1 else _square(ax)
    _check_layers(layers, found)
    _paint(axes, found, chosen, output)
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


def _check_found(found: Polygons, limit: int | None, output: int | None) -> None:
    """Raise if there are more regions than shall be drawn, or no such output."""
    if limit is not None and not found.complete:
        msg = f"there are more than {limit:,} regions; draw a smaller part of them, or allow more"
        raise OptionError(msg)
    if output is not None and not 0 <= output < found.network.output_dim:
        msg = f"there is no output {output}: the network has outputs 0 to {found.network.output_dim - 1}"
        raise OptionError(msg)


def _paint(axes: Axes, found: Polygons, chosen: Colour | Statistic | Floats, output: int | None) -> None:
    """Draw the function on a line, or the regions of a plane in the colours that were chosen."""
    if found.dim == 2 and not isinstance(chosen, Colour):
        by_value(axes, found, *_values(chosen, found))
        return
    plane = {Colour.REGION: by_region, Colour.LAYER: by_layer, Colour.SLOPE: by_slope}
    draw = graph if found.dim == 1 else plane[Colour(chosen)]
    draw(axes, found, output)


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
        return of_polygons(chosen, found), LABELS.get(chosen, str(chosen))
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
    figure, axes = axes_for(ax, (SIDE + 2.0, SIDE + 2.0))
    if ax is None:
        figure.set_layout_engine("none")
        axes.set_position((1.0 / (SIDE + 2.0), 1.0 / (SIDE + 2.0), SIDE / (SIDE + 2.0), SIDE / (SIDE + 2.0)))
    return figure, axes
