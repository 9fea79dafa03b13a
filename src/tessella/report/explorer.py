"""What the slice explorer of a report shows: which slice, which part of it, and its regions as numbers for a browser."""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tessella.domain import Box, Domain, Polytope
from tessella.door import DomainLike, NetworkLike, enter
from tessella.errors import OptionError
from tessella.examples import Examples, boundary, examples
from tessella.listing.polygons import Polygons, polygons
from tessella.mosaic import tile_colours, tiles
from tessella.network import Floats, Network
from tessella.options import check_progress, check_whole
from tessella.progress import found_so_far, with_bar
from tessella.slicing import DEFAULT_PLANE, Slice, default_plane

LIMIT = 20_000  # regions; a page of some megabytes, which browsers draw at once
_HALVINGS = 40
_STEPS = 5  # of bisection between a part that has too many regions and one that has not
_OUTPUTS = 12  # that are listed


@dataclass(frozen=True, slots=True, eq=False)
class Explorer:
    """Regions to look at.

    Parameters
    ----------
    network, domain
        Of what, and where.
    slice
        The plane or line; None if the network has one or two inputs, and is shown as it is.
    polygons
        The regions.
    where
        Which slice this is, in words.
    share
        How wide the part that is shown is, as a part of the slice; 1 if it is the whole.
    examples, places
        Inputs that lie there, and where; None for none.
    boundary
        Where the network's decision changes; None if no data were given.
    data
        All examples that were given, on the picture or not.
    """

    network: Network
    domain: Domain
    slice: Slice | None
    polygons: Polygons
    where: str
    share: float = 1.0
    examples: Examples | None = None
    places: Floats | None = None
    boundary: Floats | None = None
    data: Examples | None = None

    @property
    def note(self) -> str:
        """What a reader must know of the picture."""
        many = f"{len(self.polygons):,} region{'' if len(self.polygons) == 1 else 's'}"
        if self.share < 1.0:
            return f"The whole has more regions than a page may show: this is the part around its centre, {100.0 * self.share:.3g} % as wide, with {many}."
        return f"{many}, drawn exactly."


@with_bar(found_so_far)
def explore(  # noqa: PLR0913  one keyword per option
    network: NetworkLike,
    domain: DomainLike,
    *,
    slice: Slice | None = None,  # noqa: A002  it is one
    data: npt.ArrayLike | None = None,
    labels: npt.ArrayLike | None = None,
    limit: int = LIMIT,
    progress: Callable[[int], None] | bool | None = None,
) -> Explorer:
    """Choose what to show of a network, and list its regions there.

    `tessella.report.page` and `tessella.report.write` take what it returns as ``shown``.

    Parameters
    ----------
    network, domain
        Of what, and where: what `tessella.load` takes, and a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.
    slice
        A plane or line; None for the whole if there are one or two free inputs.  Else it is the plane through three of the data, of different
        classes if there are labels; without data the one through the centre of the domain and two corners of its box that are drawn with a fixed seed.
    data, labels
        Examples to show, one row each, and their classes.  With data the picture shows where the network's decision changes, too.
    limit
        The most regions to show.  If there are more, a smaller part around the centre is shown.
    progress
        Called every now and then with the number of regions found; True for a bar on a terminal or in a notebook.

    Examples
    --------
    >>> from tessella import report
    >>> layers = [([[1.0, 0.0], [1.0, 1.0]], [0.0, 0.5]), ([[1.0, -1.0]], None)]
    >>> shown = report.explore(layers, (-1, 1), data=[[0.5, 0.5], [-0.5, 0.0]], labels=["one", "other"])
    >>> len(shown.polygons)
    4
    """
    check_whole(limit, "limit", "the picture of a report", of="regions")
    tell = check_progress(progress, "the picture of a report", "the number of regions found")
    network, domain = enter(network, domain)
    if labels is not None and data is None:
        msg = "labels are those of data; give the data, too"
        raise OptionError(msg)
    given = None if data is None else examples(network, data, labels)
    chosen, where = _chosen(network, domain, slice, given)
    part, whole = (network, domain) if chosen is None else (chosen.network, chosen.domain)
    found, share = _largest(part, whole, limit, tell)
    seen, places = _seen(given, chosen if slice or given else None, domain)
    edge = None if given is None else boundary(found)
    return Explorer(network, domain, chosen, found, where, share, seen, places, edge, given)


def _chosen(network: Network, domain: Domain, asked: Slice | None, given: Examples | None) -> tuple[Slice | None, str]:
    """The slice to show, and which it is in words."""
    if asked is not None:
        if not (asked.whole == network and asked.within == domain):
            msg = "the slice is one of another network or domain; make it with tessella.slice(network, points, domain)"
            raise OptionError(msg)
        text = asked.describe()
        return asked, f"{text[0].upper()}{text[1:]}, as asked."
    if domain.free_dim <= 2:
        return None, "All inputs of the network."
    if given is None:
        return default_plane(network, domain), f"{DEFAULT_PLANE}."
    plane, words = given.plane(network, domain)
    return plane, f"{words}."


def _seen(given: Examples | None, chosen: Slice | None, domain: Domain) -> tuple[Examples | None, Floats | None]:
    """The examples that lie on the picture; else the points that the slice was asked to go through."""
    if given is not None:
        return given.on(chosen, domain.box.free)
    if chosen is None or chosen.points is None:
        return None, None
    return Examples(chosen.lift(chosen.points)), chosen.points


def _largest(network: Network, whole: Domain, limit: int, progress: Callable[[int], None] | None) -> tuple[Polygons, float]:
    """The regions of the whole or, if they are too many, of about the largest part around its centre that has few enough; and its share."""

    def part(share: float) -> Polygons:
        return polygons(network, whole if share == 1.0 else _smaller(whole, share), limit=limit, progress=progress)

    for halvings in range(_HALVINGS):
        share = 0.5**halvings
        found = part(share)
        if not found.complete:
            continue
        for step in range(_STEPS if halvings else 0):
            wider = share * 2.0 ** (0.5 ** (step + 1))
            more = part(wider)
            if more.complete:
                found, share = more, wider
        return found, share
    msg = f"more than {limit:,} regions lie around the centre of the slice; allow more, or choose another slice"
    raise OptionError(msg)


def _smaller(domain: Domain, share: float) -> Domain:
    """The part of a domain in a box around its centre."""
    box = domain.box
    centre = domain.centre if isinstance(domain, Polytope) else box.lower / 2.0 + box.upper / 2.0
    reach = share * (box.upper / 2.0 - box.lower / 2.0)
    part = Box(np.maximum(centre - reach, box.lower), np.minimum(centre + reach, box.upper))
    return Polytope(domain.matrix, domain.offset, part) if isinstance(domain, Polytope) else part


def record(shown: Explorer) -> dict[str, Any]:
    """Plain values for the page's own script; arrays as base64."""
    found = shown.polygons
    matrices, offsets = found.affine_maps()
    base = (found.corners.min(axis=0) + found.corners.max(axis=0)) / 2.0  # single precision is relative to this
    maps = np.concatenate([matrices, (offsets + matrices @ base)[:, :, None]], axis=2)[:, :_OUTPUTS]
    relus = [layer.relus for layer in found.network.layers if layer.relus]
    ordinal = np.cumsum([layer.relus > 0 for layer in found.network.layers]) - 1
    borders = np.where(found.borders >= 0, ordinal[found.borders], -1)
    return {
        "dim": found.dim,
        "count": len(found),
        "names": names(shown),
        "layers": relus,
        "outputs": found.network.output_dim,
        "listed": maps.shape[1],
        "base": base.tolist(),
        "corners": _encoded(found.corners - base, "<f4"),
        "starts": _encoded(found.starts, "<u4"),
        "borders": _encoded(borders, "<i2"),
        "patterns": _encoded(np.packbits(found.patterns, axis=1), "u1"),
        "maps": _encoded(maps, "<f4"),
        "slopes": _encoded(np.sqrt((matrices**2).sum(axis=(1, 2))), "<f4"),
        "tiles": _encoded(tiles(found), "u1"),
        "palette": tile_colours(),
        "areas": _encoded(found.areas, "<f4"),
        **_examples(shown, base),
    }


def _examples(shown: Explorer, base: Floats) -> dict[str, Any]:
    """Inputs on the picture, and where the decision changes."""
    record: dict[str, Any] = {}
    if shown.examples is not None and shown.places is not None:
        record["points"] = _encoded(shown.places - base, "<f4")
        record["classes"] = shown.examples.classes
        record["kinds"] = _encoded(shown.examples.numbers, "u1")
    if shown.boundary is not None:
        record["boundary"] = _encoded(shown.boundary - base, "<f4")
    return record


def names(shown: Explorer) -> list[str]:
    """What the coordinates are called."""
    if shown.slice is not None:
        axes = shown.slice.axes
        return [f"input {axis}" for axis in axes] or [
            f"the distance along direction {number + 1}" for number in range(shown.slice.dim)
        ]
    return [f"input {axis}" for axis in np.flatnonzero(shown.polygons.domain.box.free).tolist()]


def _encoded(values: npt.NDArray[Any] | Floats, kind: str) -> str:
    return b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")
