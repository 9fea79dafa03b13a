"""Regions of a network with three inputs as solids to turn around, for a browser; and pictures one after the other in a file."""

import io
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tessella.domain import check_bounded
from tessella.door import DomainLike, NetworkLike, enter
from tessella.errors import OptionError
from tessella.files import writing
from tessella.kernel.warming import load
from tessella.listing.patterns import settled
from tessella.methods import Method
from tessella.mosaic import tile_colours
from tessella.network import Floats, Mask
from tessella.options import check_whole
from tessella.packages import needed
from tessella.partition.tree import Tree
from tessella.stability import stability_to_go_on_with
from tessella.vertices.outlines import draw
from tessella.vertices.walker import Vertices

_AT_ONCE = 1024  # regions that are written down together


def space(
    network: NetworkLike,
    domain: DomainLike,
    *,
    values: npt.ArrayLike | None = None,
    apart: float = 0.2,
    limit: int = 2000,
) -> Any:
    """Draw the regions of a network with three free inputs as solids, moved apart so that one sees between them.  Needs plotly (``pip install plotly``, or the extra ``plot3d``).

    Parameters
    ----------
    network, domain
        Of what, and where: what `tessella.load` takes, and a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.
    values
        One number for each region, in the order of `tessella.graph` and `tessella.summarise`, for a shade; None for a colour for each pattern.
    apart
        How much smaller than its region each solid is: between 0, for no room between them, and 1.
    limit
        Refuse to draw more regions than this.

    Returns
    -------
    A figure of plotly: ``figure.show()``, ``figure.write_html("regions.html")``.

    Examples
    --------
    >>> import tessella
    >>> net = tessella.Network.from_arrays([([[1.0, 0.0, 0.0], [1.0, 1.0, -1.0]], [0.0, 0.5])], relu_output=True)
    >>> figure = tessella.plot.space(net, (-1, 1))
    >>> figure.layout.title.text, figure.data[0].type
    ('3-2 on [-1, 1]^3: 4 regions', 'mesh3d')
    """
    plotly = needed("plotly.graph_objects", "a view of solids needs plotly, which is not installed: pip install plotly")
    network, domain = enter(network, domain)
    check_bounded(domain, "a view of solids")
    check_whole(limit, "limit", "a view of solids", of="regions")
    if domain.free_dim != 3:
        msg = f"solids need three free inputs, and the domain has {domain.free_dim}; plot.regions draws one or two, and slices"
        raise OptionError(msg)
    if not 0.0 <= apart < 1.0:
        msg = f"apart is {apart!r:.40}; a view of solids takes a number from 0 up to 1, such as 0.2"
        raise OptionError(msg)
    patterns, solids = _solids(network, domain, limit)
    shades = None if values is None else np.asarray(values, dtype=np.float64)
    if shades is not None and shades.shape != (len(solids),):
        msg = f"values have shape {shades.shape}; one number for each of the {len(solids):,} regions was expected"
        raise OptionError(msg)
    mesh = _mesh(solids, apart)
    owner = mesh.pop("owner")
    names = [f"input {axis}" for axis in np.flatnonzero(domain.box.free).tolist()]
    colours: dict[str, Any] = {"facecolor": np.array(tile_colours())[_tiles(patterns)][owner]}
    if shades is not None:
        colours = {"intensity": shades[owner], "intensitymode": "cell", "colorscale": "Viridis"}
    texts = [f"region {number}, {int(pattern.sum())} ReLUs active" for number, pattern in enumerate(patterns)]
    figure = plotly.Figure(
        plotly.Mesh3d(
            **mesh, **colours, flatshading=True, hovertext=[texts[one] for one in mesh_owner(mesh, owner)], hoverinfo="text"
        )
    )
    title = f"{network.shape} on {domain.describe()}: {len(solids):,} region{'' if len(solids) == 1 else 's'}"
    axes = dict(zip(("xaxis", "yaxis", "zaxis"), ({"title": {"text": name}} for name in names), strict=True))
    figure.update_layout(title={"text": title}, scene={**axes, "aspectmode": "data"}, margin={"l": 0, "r": 0, "b": 0, "t": 40})
    return figure


def mesh_owner(mesh: dict[str, Any], owner: npt.NDArray[np.int64]) -> list[int]:
    """The region that each corner belongs to."""
    of = np.zeros(len(mesh["x"]), dtype=np.int64)
    for side in ("i", "j", "k"):
        of[mesh[side]] = owner
    return of.tolist()


def _solids(network: Any, domain: Any, limit: int) -> tuple[Mask, list[Floats]]:
    """The pattern and the corners of each region."""
    known = stability_to_go_on_with(network, domain, method=Method.LINEAR)
    tree, patterns, solids = Tree.of(known), list[Mask](), list[Floats]()
    box = domain.box
    low, high = box.lower[box.free], box.upper[box.free]
    if not tree.units:
        corners = np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(3, -1).T
        return settled(known, np.zeros((1, 0), dtype=np.bool_), np.full((1, domain.dim), np.nan)), [corners]
    load(Vertices.functions(tree, writer=draw))
    for part in Vertices(tree, _AT_ONCE).outlines():
        corners = (low / 2.0 + high / 2.0) + (high / 2.0 - low / 2.0) * part.corners
        solids += np.split(corners, np.cumsum(part.sizes)[:-1]) if len(part.sizes) else []
        patterns.append(part.patterns.astype(np.bool_))
        if len(solids) > limit:
            msg = f"there are more than {limit:,} regions; draw a smaller part of them, or allow more"
            raise OptionError(msg)
        if part.thin:
            msg = "some regions are too thin to be drawn: many hyperplanes meet in one point; draw a slice with plot.regions"
            raise OptionError(msg)
    places = np.tile(box.lower, (len(solids), 1))
    places[:, box.free] = [corners.mean(axis=0) for corners in solids]
    return settled(known, np.concatenate(patterns), places), solids


def _mesh(solids: Sequence[Floats], apart: float) -> dict[str, Any]:
    """All solids as one mesh of triangles; each of these knows whose it is."""
    from scipy.spatial import ConvexHull, QhullError  # noqa: PLC0415  heavy

    corners, sides, owner, placed = list[Floats](), list[Any](), list[Any](), 0
    for number, solid in enumerate(solids):
        middle = solid.mean(axis=0)
        try:
            triangles = ConvexHull(solid).simplices
        except QhullError:  # flat, to floating-point numbers
            continue
        corners.append(middle + (1.0 - apart) * (solid - middle))
        sides.append(triangles + placed)
        owner.append(np.full(len(triangles), number))
        placed += len(solid)
    x, y, z = np.concatenate(corners).T
    i, j, k = np.concatenate(sides).T
    return {"x": x, "y": y, "z": z, "i": i, "j": j, "k": k, "owner": np.concatenate(owner)}


def _tiles(patterns: Mask) -> npt.NDArray[np.int64]:
    """A colour for each pattern; regions that differ in one unit have different ones."""
    kinds = len(tile_colours())
    steps = np.random.default_rng(7).integers(1, kinds, patterns.shape[1])
    return (patterns @ steps) % kinds


def write_gif(path: str | os.PathLike[str], frames: Sequence[Any], seconds: float) -> None:
    """Write figures of matplotlib to an animated GIF; the last one is shown three times as long.

    Parameters
    ----------
    path
        The file.
    frames
        The figures, all of one size.
    seconds
        How long each is shown.
    """
    from PIL import Image  # noqa: PLC0415  comes with matplotlib

    images = list[Any]()
    for figure in frames:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110)
        images.append(Image.open(buffer).convert("RGB"))
    width, height = max(image.width for image in images), max(image.height for image in images)
    shown = list[Any]()
    for image in images:
        canvas = Image.new("RGB", (width, height), "white")
        canvas.paste(image, (0, 0))
        shown.append(canvas.convert("P", palette=Image.Palette.ADAPTIVE))
    times = [round(1000.0 * seconds)] * len(shown)
    times[-1] *= 3
    with writing(path) as file:
        shown[0].save(file, format="GIF", save_all=True, append_images=shown[1:], duration=times, loop=0)
