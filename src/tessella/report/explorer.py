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
    """

    network: Network
    domain: Domain
    slice: Slice | None
    polygons: Polygons
    where: str
    share: float = 1.0

    @property
    def note(self) -> str:
        """What a reader must know of the picture."""
        many = f"{len(self.polygons):,} region{'' if len(self.polygons) == 1 else 's'}"
        if self.share < 1.0:
            return f"The whole has more regions than a page may show: this is the part around its centre, {100.0 * self.share:.3g} % as wide, with {many}."
        return f"{many}, drawn exactly."


@with_bar(found_so_far)
def explore(
    network: NetworkLike,
    domain: DomainLike,
    *,
    slice: Slice | None = None,  # noqa: A002  it is one
    limit: int = LIMIT,
    progress: Callable[[int], None] | bool | None = None,
) -> Explorer:
    """Choose what to show of a network, and list its regions there.

    Parameters
    ----------
    network, domain
        Of what, and where: what `tessella.load` takes, and a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.
    slice
        A plane or line; None for the whole if there are one or two free inputs, and else for the plane through the centre of the domain and
        two corners of its box that are drawn with a fixed seed.
    limit
        The most regions to show.  If there are more, a smaller part around the centre is shown.
    progress
        Called every now and then with the number of regions found; True for a bar on a terminal or in a notebook.
    """
    check_whole(limit, "limit", "the picture of a report", of="regions")
    tell = check_progress(progress, "the picture of a report", "the number of regions found")
    network, domain = enter(network, domain)
    chosen, where = slice, ""
    if slice is not None:
        if not (slice.whole == network and slice.within == domain):
            msg = "the slice is one of another network or domain; make it with tessella.slice(network, points, domain)"
            raise OptionError(msg)
        text = slice.describe()
        where = f"{text[0].upper()}{text[1:]}, as asked."
    elif domain.free_dim > 2:
        chosen, where = default_plane(network, domain), f"{DEFAULT_PLANE}."
    else:
        where = "All inputs of the network."
    part, whole = (network, domain) if chosen is None else (chosen.network, chosen.domain)
    found, share = _largest(part, whole, limit, tell)
    return Explorer(network, domain, chosen, found, where, share)


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
    }


def names(shown: Explorer) -> list[str]:
    """What the coordinates are called."""
    if shown.slice is not None:
        axes = shown.slice.axes
        return [f"input {axis}" for axis in axes] or ["the distance along direction 1", "along direction 2"][: shown.slice.dim]
    return [f"input {axis}" for axis in np.flatnonzero(shown.polygons.domain.box.free).tolist()]


def _encoded(values: npt.NDArray[Any] | Floats, kind: str) -> str:
    return b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")
