"""Regions written down, for one or two inputs: the last layer is walked too, and each region's corners are noted in order, with the layers that made the walls."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tessella.kernel.functions import apart, compiled, one_of
from tessella.network import Floats
from tessella.vertices.state import IS_APEX, Cells, Drawing, Layers, Path, Planes, Work


class Outlines(NamedTuple):
    """Regions written down: one row of patterns and one size each, corners one after the other, and the layers that made the walls."""

    patterns: npt.NDArray[np.int8]
    sizes: npt.NDArray[np.int64]
    corners: Floats
    borders: npt.NDArray[np.int64]
    thin: tuple[bytes, ...] = ()
    volumes: Floats = np.zeros(0)


@compiled
def border(s: int, shared: int, cells: Cells, planes: Planes) -> int:
    """The layer that made a wall, the first of them if there are several; -1 for a side of the domain."""
    first, wall = -1, 0
    shared &= IS_APEX - 1
    while shared:
        if shared & 1:
            layer = int(planes.layer[cells.plane_of[s, wall]])
            first = layer if first < 0 or 0 <= layer < first else first
        shared >>= 1
        wall += 1
    return first


@compiled
def put_in_order(s: int, cells: Cells, work: Work) -> None:
    """List the corners of a polygon counterclockwise, or the ends of an interval from left to right: `work.order`."""
    points, angles, order = cells.points[s], work.angles, work.order
    d, n = len(points), cells.corners[s]
    x, y = 0.0, 0.0
    for v in range(n):
        x += points[0, v] / n
        y += points[d - 1, v] / n
    for v in range(n):
        angles[v] = points[0, v]
        if d == 2:
            angles[v] = np.arctan2(points[1, v] - y, points[0, v] - x)
        place = v
        while place > 0 and angles[order[place - 1]] > angles[v]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = v


@compiled
def write_pattern(number: int, layers: Layers, path: Path, drawing: Drawing) -> None:
    """Write the decisions that lead to a region down."""
    for layer in range(len(layers.units)):
        for i in range(layers.relus[layer]):
            drawing.patterns[number, layers.first[layer] + i] = path.pattern[layer, i]


@apart
def draw(s: int, layers: Layers, cells: Cells, planes: Planes, path: Path, drawing: Drawing, work: Work) -> None:
    """Write a region down: its pattern, and its corners in order, each with the layer of the wall from it to the next (or, on a line, at it)."""
    number, first, n, order = drawing.regions, drawing.placed, cells.corners[s], work.order
    points, walls = cells.points[s], cells.walls[s]
    write_pattern(number, layers, path, drawing)
    put_in_order(s, cells, work)
    for q in range(n):
        v = order[q]
        for c in range(len(points)):
            drawing.corners[first + q, c] = points[c, v]
        shared = walls[v]
        if len(points) == 2:
            shared &= walls[order[(q + 1) % n]]
        drawing.borders[first + q] = border(s, shared, cells, planes)
    drawing.sizes[number] = n
    drawing.regions = number + 1
    drawing.placed = first + n


drawn_by = one_of(draw)  # by its address: whoever only counts does not need it
