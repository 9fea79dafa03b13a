"""The colours of regions: neighbours have different ones, and a pattern has its own whatever else is drawn.

Every unit has a step that is no multiple of the number of tiles, and a region's colour is the sum of the steps of its active units.  Neighbours
differ in the unit that makes the wall between them, so their tiles differ.  Only where several units share a wall may steps cancel; those
walls are found by their middle, and one of the two regions takes another tile.
"""

import numpy as np
import numpy.typing as npt

from tessella.listing.polygons import Polygons

_TILES = ("#c8553d", "#e9b872", "#efe3cd", "#8fb3a0", "#34768a", "#415a77", "#a9bcc8", "#d99a7d")  # of a mosaic
_SHADES = (0.0, 0.12, 0.24, 0.36)  # how much white is mixed in
_SAME = 1e-9  # of the size of the picture: middles of walls that are nearer are one

Ints = npt.NDArray[np.int64]


def tile_colours() -> list[str]:
    """The colours that regions have: all tiles in the first shade, then in the next."""
    rgb = np.array([[int(tile[i : i + 2], 16) for i in (1, 3, 5)] for tile in _TILES], dtype=float)
    mixed = [rgb + (255.0 - rgb) * shade for shade in _SHADES]
    return ["#" + "".join(f"{round(part):02x}" for part in colour) for colour in np.concatenate(mixed)]


def tiles(found: Polygons) -> Ints:
    """For each region the number of its colour, which depends on the pattern alone but where units share a wall."""
    units, kinds = found.patterns.shape[1], len(_TILES)
    steps = np.random.default_rng(7).integers(0, (kinds - 1) * len(_SHADES), units)
    steps += 1 + steps // (kinds - 1)  # skips the multiples of the number of tiles
    packed = np.packbits(found.patterns, axis=1)
    table = ((np.arange(256)[:, None] >> np.arange(7, -1, -1)) & 1) @ np.pad(steps, (0, -units % 8)).reshape(-1, 8).T
    sums = np.zeros(len(found), dtype=np.int64)
    for byte in range(packed.shape[1]):
        sums += table[packed[:, byte], byte]
    return _repaired(sums % (kinds * len(_SHADES)), neighbours(found))


def neighbours(found: Polygons) -> Ints:
    """Pairs of regions with a wall in common, one per row; both must have all of it as one of their sides."""
    owner = np.repeat(np.arange(len(found)), np.diff(found.starts))
    after = np.arange(1, len(found.corners) + 1)
    after[found.starts[1:] - 1] = found.starts[:-1]
    middles = found.corners if found.dim == 1 else found.corners / 2.0 + found.corners[after] / 2.0
    inner = np.flatnonzero(found.borders >= 0)
    if not len(inner):
        return np.empty((0, 2), dtype=np.int64)
    low, size = found.corners.min(axis=0), np.ptp(found.corners, axis=0)
    keys = np.rint((middles[inner] - low) / (_SAME * np.where(size > 0.0, size, 1.0)))
    order = np.lexsort(keys.T)
    same = np.flatnonzero((keys[order[1:]] == keys[order[:-1]]).all(axis=1))
    pairs = owner[inner[np.stack([order[same], order[same + 1]], axis=1)]]
    return pairs[pairs[:, 0] != pairs[:, 1]]


def _repaired(colours: Ints, pairs: Ints) -> Ints:
    """Give one of two neighbours with the same tile one that none of its neighbours has, if there is one."""
    kinds = len(_TILES)
    clashing = pairs[colours[pairs[:, 0]] % kinds == colours[pairs[:, 1]] % kinds]
    if not len(clashing):
        return colours
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.argsort(both[:, 0], kind="stable")]
    starts = np.searchsorted(both[:, 0], np.arange(len(colours) + 1))
    for one, other in clashing.tolist():
        if colours[one] % kinds != colours[other] % kinds:  # mended by an earlier one
            continue
        taken = colours[both[starts[other] : starts[other + 1], 1]]
        wanted = (colours[other] + np.arange(1, kinds * len(_SHADES))) % (kinds * len(_SHADES))
        free = wanted[~np.isin(wanted % kinds, taken % kinds)]
        colours[other] = free[0] if len(free) else wanted[np.argmin(np.isin(wanted, taken))]
    return colours
