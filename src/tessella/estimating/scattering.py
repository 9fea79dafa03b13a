"""Points scattered over a node's cell, so that they show how far it reaches: predictions are made from what units do at them.

Linear programs leave points at corners of cells, and few of them are still there after many splits.  Here a new point begins at a random one that is known, and then each of its inputs in turn is drawn anew between the
walls (Gibbs sampling: points would be spread evenly in the end).  Predictions only steer, so nothing rests on how even they are.
"""

import numpy as np

from tessella.cells.vertex import LANES, POINTS, room_for
from tessella.estimating.nodes import Descent
from tessella.estimating.selection import uniform
from tessella.kernel.basis import times
from tessella.kernel.functions import apart, compiled, inlined
from tessella.kernel.record import Keys, Matrix, Record, Vector, Whole, zeros
from tessella.numerics import EDGE, GOAL

_AWAY = 0.1  # how far from its walls, in units of rows, while inputs go from their ends by 1
_TINY = 1e-15  # walls are taken to be that far at least
_LEAST = 0.02  # part of the way between two walls that points keep from either


class Scatter(Record):
    """What points are scattered with."""

    wanted: int  # points of a node that there should be; 0 where none are scattered
    seed: Keys
    walls: Matrix  # the cell's rows, one line per input
    spot: Vector
    direction: Vector
    slack: Vector
    rates: Vector
    tops: Vector  # per lane
    lows: Vector
    chosen: Whole

    @classmethod
    def of(cls, wanted: int, rows: int, dimensions: int) -> "Scatter":
        """With room for so many rows."""
        wanted_rows = -(-rows // LANES) * LANES if wanted else 0
        return cls(
            wanted=wanted,
            seed=np.zeros(1, dtype=np.uint64),
            walls=zeros(dimensions, wanted_rows),
            **{name: zeros(dimensions) for name in ("spot", "direction")},
            **{name: zeros(wanted_rows) for name in ("slack", "rates")},
            **{name: zeros(LANES) for name in ("tops", "lows")},
            chosen=zeros(POINTS, kind=np.int64),
        )


@compiled
def _reach(walls: Matrix, depth: int, work: Scatter) -> float:
    """How far one can go from the spot in the direction."""
    spot, slack, direction, rates, reach = work.spot, work.slack, work.direction, work.rates, np.inf
    for row in range(depth):
        rates[row] = 0.0
    for c in range(len(spot)):
        rate = direction[c]
        if rate != 0.0:
            reach = min(reach, ((EDGE if rate > 0.0 else -EDGE) - spot[c]) / rate)
            for row in range(depth):
                rates[row] += walls[c, row] * rate
    for row in range(depth):
        if rates[row] < 0.0:
            reach = min(reach, -slack[row] / rates[row])
    return reach


@compiled
def _measure(walls: Matrix, depth: int, count: int, rows: Matrix, work: Scatter) -> None:
    """Put the spot's distances to the walls into ``slack``."""
    spot, slack = work.spot, work.slack
    for row in range(depth):
        slack[row] = rows[row, len(spot)] - GOAL if row < count else 1.0
    for c in range(len(spot)):
        for row in range(depth):
            slack[row] += walls[c, row] * spot[c]


@apart
def _leave_corner(descent: Descent, node: int, depth: int, work: Scatter) -> None:
    """Put the spot into the cell: from a node's vertex the way on which all its walls are left at the same rate, half way to the next one."""
    primal, count, direction = descent.primal, descent.nodes.depth[node], work.direction
    vertices, rows, gaps = primal.vertices, primal.rows[node], primal.gaps
    k, sides = vertices.size[node], vertices.sides[node]
    for c in range(len(direction)):
        direction[c] = -np.float64(sides[c])
        work.spot[c] = vertices.places[node, c]
    for i in range(k):
        gaps[i] = _AWAY
        for c in range(len(direction)):
            gaps[i] -= rows[vertices.tight[node, i], c] * direction[c]
    times(vertices.inverse[node], k, gaps, primal.rates)
    for q in range(k):
        direction[vertices.basic[node, q]] = primal.rates[q]
    _measure(work.walls, depth, count, rows, work)
    for row in range(depth):
        work.slack[row] = max(work.slack[row], 0.0)
    reach = _reach(work.walls, depth, work)
    if 0.0 < reach < np.inf:
        for c in range(len(direction)):
            work.spot[c] += 0.5 * reach * direction[c]


@compiled
def _wander(walls: Matrix, depth: int, work: Scatter) -> None:
    """Draw each of the spot's inputs anew between the walls."""
    spot, slack, tops, lows, p = work.spot, work.slack, work.tops, work.lows, len(work.spot)
    first = int(uniform(work.seed) * p)
    for row in range(depth):
        slack[row] = max(slack[row], _TINY)
    for i in range(p):
        c = (first + i) % p
        for lane in range(LANES):
            tops[lane], lows[lane] = 0.0, 0.0
        for row in range(0, depth, LANES):
            for lane in range(LANES):
                rate = walls[c, row + lane] / slack[row + lane]
                tops[lane] = max(tops[lane], rate)
                lows[lane] = min(lows[lane], rate)
        top, low = _TINY, -_TINY
        for lane in range(LANES):
            top, low = max(top, tops[lane]), min(low, lows[lane])
        least, most = max(-EDGE - spot[c], -1.0 / top), min(EDGE - spot[c], -1.0 / low)
        if most > least:
            step = least + (_LEAST + (1.0 - 2.0 * _LEAST) * uniform(work.seed)) * (most - least)
            spot[c] += step
            for row in range(depth):
                slack[row] += walls[c, row] * step


@inlined
def _list_scattered(descent: Descent, node: int, work: Scatter) -> int:
    """Note which points of a node were scattered before; how many there are."""
    points, count = descent.primal.points, 0
    for point in range(points.known[node]):
        if points.names[node, point] == 0:
            work.chosen[count] = point
            count += 1
    return count


@inlined
def _lay_out(rows: Matrix, count: int, work: Scatter) -> int:
    """Put rows into lines; how long these are."""
    walls, depth = work.walls, count
    for row in range(count):
        for c in range(len(work.spot)):
            walls[c, row] = rows[row, c]
    while depth % LANES:  # lines end with rows that nothing comes near to
        for c in range(len(work.spot)):
            walls[c, depth] = 0.0
        depth += 1
    return depth


@inlined
def _put_down(descent: Descent, node: int, depth: int, work: Scatter) -> bool:
    """Make the spot a point of a node; False if it does not lie inside by enough."""
    points = descent.primal.points
    for row in range(depth):
        if work.slack[row] < 0.0:
            return False
    at = room_for(points, node)
    points.names[node, at] = 0
    for c in range(len(work.spot)):
        points.places[node, c, at] = work.spot[c]
    return True


@apart
def scatter(descent: Descent, node: int, work: Scatter) -> None:
    """Add points to a node until it has as many scattered ones as are wanted."""
    points, rows, count = descent.primal.points, descent.primal.rows[node], descent.nodes.depth[node]
    starts = _list_scattered(descent, node, work)
    if starts >= work.wanted:
        return
    depth = _lay_out(rows, count, work)
    if starts == 0:
        _leave_corner(descent, node, depth, work)
        _measure(work.walls, depth, count, rows, work)
        _wander(work.walls, depth, work)
    for _ in range(starts, work.wanted):
        if starts > 0:
            start = work.chosen[min(int(uniform(work.seed) * starts), starts - 1)]
            for c in range(len(work.spot)):
                work.spot[c] = points.places[node, c, start]
            _measure(work.walls, depth, count, rows, work)
        _wander(work.walls, depth, work)
        if not _put_down(descent, node, depth, work):
            return
