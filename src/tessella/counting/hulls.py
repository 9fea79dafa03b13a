"""Whether the values of points on some hyperplanes surround zero; compiled.

In general position a set of hyperplanes meets in a cell if, in the space of their values, points of the cell surround zero: then every pattern of signs occurs.  A simplex method over weights of
the points looks for points that do.  Sets grow by one hyperplane at a time, so the hulls are a stack: one level more takes the points of the level below, and an artificial
direction for what they leave of the new hyperplane's value, which is then driven out.  If it cannot be, the last prices are a combination of the hyperplanes that is negative at all points.
"""

from typing import Self

import numpy as np

from tessella.kernel.functions import apart, compiled, inlined
from tessella.kernel.record import Cube, Matrix, Record, Vector, WholeMatrix, zeros
from tessella.numerics import CLEAR

SURROUNDED, LOST = 0, -1  # what `surround` says; else how many hyperplanes there are
_ARTIFICIAL = -1  # in place of a point
_GAIN = 1e-9  # what a point must promise, and how fast another's weight must fall
_ITERATIONS, _ITERATIONS_EACH = 40, 20  # at most: in all, and more for each hyperplane


class Hulls(Record):
    """A stack of bases of points, one per level.

    At a level of d hyperplanes (level + 1 of them) the basis has d + 1 points.  Column j of their matrix is hyperplane ``planes[level, j]``, its values times ``scales[level, j]``, and column d is
    one for each point; ``inverse[level]`` is that matrix' inverse, so its last column has the weights with which the points ``points[level]`` mix to zero.  ``prices[level]`` is the
    artificial point's row of the inverse when it was last asked.
    """

    inverse: Cube
    planes: WholeMatrix
    scales: Matrix
    points: WholeMatrix
    prices: Matrix
    rates: Vector  # of the weights, as a point enters
    worth: Vector  # what each point promises

    @classmethod
    def of(cls, levels: int, points: int) -> Self:
        """Room for so many levels, and so many points."""
        size = levels + 1
        return cls(
            inverse=zeros(levels, size, size),
            planes=zeros(levels, size, kind=np.int64),
            scales=zeros(levels, size),
            points=zeros(levels, size, kind=np.int64),
            prices=zeros(levels, size),
            rates=zeros(size),
            worth=zeros(points),
        )


@inlined
def extremes(values: Vector, number: int) -> tuple[float, float]:
    """The least and the largest of the first so many values, or zero; four at a time, because each waits for the one before it."""
    l0, l1, l2, l3, h0, h1, h2, h3, whole = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, number - number % 4
    for i in range(0, whole, 4):
        v0, v1, v2, v3 = values[i], values[i + 1], values[i + 2], values[i + 3]
        l0, l1, l2, l3 = min(l0, v0), min(l1, v1), min(l2, v2), min(l3, v3)
        h0, h1, h2, h3 = max(h0, v0), max(h1, v1), max(h2, v2), max(h3, v3)
    for i in range(whole, number):
        l0, h0 = min(l0, values[i]), max(h0, values[i])
    return min(l0, l1, l2, l3), max(h0, h1, h2, h3)


@compiled
def _place_of(value: float, values: Vector, number: int) -> int:
    """Where a value stands among the first so many; the last place if it does not."""
    at = 0
    while at < number - 1 and values[at] != value:
        at += 1
    return at


@compiled
def begin(hulls: Hulls, f: int, values: Matrix, number: int) -> None:
    """Begin the stack with hyperplane f: the points on either side that are farthest from it surround zero."""
    least, most = extremes(values[f], number)
    low, high = _place_of(least, values[f], number), _place_of(most, values[f], number)
    scale = 1.0 / max(-values[f, low], values[f, high])
    a, b = scale * values[f, low], scale * values[f, high]
    inverse = hulls.inverse[0]
    inverse[0, 0], inverse[0, 1], inverse[1, 0], inverse[1, 1] = 1.0 / (a - b), -b / (a - b), -1.0 / (a - b), a / (a - b)
    hulls.planes[0, 0], hulls.scales[0, 0], hulls.points[0, 0], hulls.points[0, 1] = f, scale, low, high


@compiled
def extend(hulls: Hulls, level: int, f: int, values: Matrix, number: int) -> None:
    """Put hyperplane f on top of a level: the same points, and an artificial direction for what they leave of its value."""
    d, below, inverse, points = level + 1, hulls.inverse[level], hulls.inverse[level + 1], hulls.points[level]
    least, most = extremes(values[f], number)
    scale, rest = 1.0 / max(most, -least, 1e-30), 0.0
    for j in range(d + 1):
        total = 0.0
        for i in range(d + 1):
            total += scale * values[f, points[i]] * below[i, j]
        inverse[d + 1, j] = rest = total
    turn = 0.25 if rest > 0.0 else -0.25
    for i in range(d + 1):
        for j in range(d):
            inverse[i, j] = below[i, j]
        inverse[i, d], inverse[i, d + 1] = 0.0, below[i, d]
        hulls.points[level + 1, i] = points[i]
    for j in range(d):
        inverse[d + 1, j] *= turn
        hulls.planes[level + 1, j], hulls.scales[level + 1, j] = hulls.planes[level, j], hulls.scales[level, j]
    inverse[d + 1, d], inverse[d + 1, d + 1] = -turn, turn * rest
    hulls.planes[level + 1, d], hulls.scales[level + 1, d], hulls.points[level + 1, d + 1] = f, scale, _ARTIFICIAL


@compiled
def _is_certain(hulls: Hulls, level: int, values: Matrix) -> bool:
    """Whether the points of the basis surround zero for certain: its weights there are positive, whatever rounding did to them and to the values.

    With E = inverse times matrix - 1, the true weights are those of the inverse times (1 + E)^-1, so they differ by less than 2 |E| if that is small.
    """
    d, inverse, planes, scales, points = (
        level + 1,
        hulls.inverse[level],
        hulls.planes[level],
        hulls.scales[level],
        hulls.points[level],
    )
    drift = 0.0
    for i in range(d + 1):
        total = 0.0
        for q in range(d + 1):
            entry = inverse[i, d]
            for j in range(d):
                entry += inverse[i, j] * scales[j] * values[planes[j], points[q]]
            total += abs(entry - 1.0) if i == q else abs(entry)
        drift = max(drift, total)
    if not drift < 0.1:
        return False
    for i in range(d + 1):
        error = 1e-12 + 2.0 * drift
        for j in range(d):
            error += 2.0 * abs(inverse[i, j]) * scales[j] * CLEAR
        if not inverse[i, d] > error:
            return False
    return True


@compiled
def _most_promising(hulls: Hulls, level: int, artificial: int, values: Matrix, number: int) -> int:
    """The point that takes most of the artificial one away; -1 if none takes any.  The prices are put into their place, and what each point promises into ``worth``."""
    d, prices, worth = level + 1, hulls.prices[level], hulls.worth
    for j in range(d + 1):
        prices[j] = hulls.inverse[level, artificial, j]
    for i in range(number):
        worth[i] = prices[d]
    for j in range(d):
        f, rate = hulls.planes[level, j], prices[j] * hulls.scales[level, j]
        for i in range(number):
            worth[i] += rate * values[f, i]
    _, best = extremes(worth, number)
    return -1 if best <= _GAIN else _place_of(best, worth, number)


@compiled
def _leaving(hulls: Hulls, level: int, artificial: int, enter: int, values: Matrix) -> int:
    """The ratio test: whose weight reaches zero first as a point enters, the artificial one if it does so too; -1 if none does.  Fills ``rates``."""
    d, inverse, rates = level + 1, hulls.inverse[level], hulls.rates
    leave, ratio = -1, np.inf
    for i in range(d + 1):
        total = inverse[i, d]
        for j in range(d):
            total += inverse[i, j] * hulls.scales[level, j] * values[hulls.planes[level, j], enter]
        rates[i] = total
        if total > _GAIN:
            step = max(inverse[i, d], 0.0) / total
            if step < ratio or (step == ratio and i == artificial):
                leave, ratio = i, step
    return leave


@apart
def surround(hulls: Hulls, level: int, values: Matrix, number: int) -> int:
    """SURROUNDED if some of the points surround zero in the values of a level's hyperplanes, which then meet in the cell; else how many these are, or LOST.

    It drives the artificial point out of the level's basis.  If it cannot, ``prices[level]`` times ``scales[level]`` are a combination of the hyperplanes that is negative at all points.
    """
    d, inverse, rates, artificial = level + 1, hulls.inverse[level], hulls.rates, level + 1
    for i in range(d + 1):
        if hulls.points[level, i] == _ARTIFICIAL:
            artificial = i
    for _ in range(_ITERATIONS + _ITERATIONS_EACH * d):
        enter = _most_promising(hulls, level, artificial, values, number)
        if enter < 0:
            return d
        leave = _leaving(hulls, level, artificial, enter, values)
        if leave < 0:
            return LOST
        pivot = rates[leave]
        for j in range(d + 1):
            inverse[leave, j] /= pivot
        for i in range(d + 1):
            if i != leave:
                rate = rates[i]
                for j in range(d + 1):
                    inverse[i, j] -= rate * inverse[leave, j]
        hulls.points[level, leave] = enter
        if leave == artificial:
            return SURROUNDED if _is_certain(hulls, level, values) else LOST
    return LOST
