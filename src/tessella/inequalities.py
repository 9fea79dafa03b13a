"""What can be said of the points of a box with ``matrix @ x <= offset``: a box around them, a point inside, and whether one is inside."""

from fractions import Fraction
from typing import Any, cast

import numpy as np

from tessella.errors import DomainError
from tessella.network import Floats
from tessella.numerics import LOST_OF_PRODUCTS, ROUNDOFF

_CLOSER = 1e-6  # what a polytope's surroundings are enlarged by, of its box
_FARTHEST = 1e100  # that walls are taken to be away
_EMPTY = 1e-6  # what a solver's constraints hold up to, and a little more


def bounding_box(matrix: Floats, offset: Floats) -> tuple[Floats, Floats]:
    """The ends of a box that is proved to hold every point with matrix @ x <= offset.

    Multipliers y >= 0 of the rows prove x_i <= b.y + r.x with the residual r = e_i - A'y, which a solver leaves a little off zero.
    Summed up over all inputs, |x| <= U + R |x| with small R bounds |x| (by max U / (1 - R)), and so what r.x can add.
    """
    from scipy.optimize import linprog  # noqa: PLC0415  heavy, and only polytopes need it

    scaled, limits, scale = _equilibrated(matrix, offset)
    rows, dim = scaled.shape
    ends, residuals = np.zeros((2, dim)), np.zeros((2, dim))
    for column, sign in [(column, sign) for column in range(dim) for sign in (1.0, -1.0)]:
        direction = sign * np.eye(dim)[column]
        found = cast("Any", linprog)(-direction, A_ub=scaled, b_ub=limits, bounds=(None, None), method="highs")
        if found.status == 2:
            msg = "the polytope is empty: no point satisfies all inequalities"
            raise DomainError(msg)
        if found.status != 0:  # it is unbounded, as far as could be found out; all of space is right in any case
            return np.full(dim, -np.inf), np.full(dim, np.inf)
        y = np.maximum(-found.ineqlin.marginals, 0.0)
        rounding = 4.0 * (rows + dim + 8) * ROUNDOFF
        side = 0 if sign > 0 else 1
        ends[side, column] = limits @ y + rounding * (np.abs(limits) @ y)
        residuals[side, column] = (np.abs(direction - y @ scaled) + rounding * (y @ np.abs(scaled) + 1.0)).sum()
    share, reach = float(residuals.max()), float(np.abs(ends).max())
    if not share < 0.5:
        msg = "no box could be proved to hold the polytope: its inequalities differ too much in size; give a box"
        raise DomainError(msg)
    upper, lower = ends + residuals * (2.0 * reach)
    slack = 1e-9 * (1.0 + np.abs(upper) + np.abs(lower))
    return -(lower + slack) * scale, (upper + slack) * scale


def _equilibrated(matrix: Floats, offset: Floats) -> tuple[Floats, Floats, Floats]:
    """Rows and columns multiplied by powers of two until their largest entries are near 1; x is scale times the new x."""
    rows, limits, scale = matrix.copy(), offset.copy(), np.ones(matrix.shape[1])
    for _ in range(4):
        by_row = _power_of_two(np.abs(rows).max(axis=1, initial=0.0))
        rows, limits = rows / by_row[:, None], limits / by_row
        by_column = _power_of_two(np.abs(rows).max(axis=0, initial=0.0))
        rows, scale = rows / by_column, scale / by_column
    return rows, limits, scale


def _power_of_two(sizes: Floats) -> Floats:
    return np.exp2(np.round(np.log2(np.where(sizes > 0.0, sizes, 1.0))))


def interior_point(matrix: Floats, offset: Floats, lower: Floats, upper: Floats, thinnest: float) -> Floats:
    """The centre of a largest ball in the polytope, where the box's free inputs are scaled to [0, 1].

    A solver's constraints hold up to 1e-7 or so, which is more than a thin polytope has: its point is asked, exactly, whether it lies inside, and if it
    does not, the same problem is solved again with its surroundings enlarged.
    """
    free = lower < upper
    fixed = ~(matrix[:, free] != 0.0).any(axis=1)
    start = np.where(np.isfinite(lower), lower, 0.0)
    if not holds(matrix[fixed], offset[fixed], start, strictly=False):
        msg = "the polytope is empty: an inequality without any free input does not hold"
        raise DomainError(msg)
    point = np.array(start)
    if not free.any():
        return point
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        lower, upper = _around_a_point(matrix[~fixed], offset[~fixed], lower, upper)
    width = upper - lower
    walls, limits = matrix[~fixed][:, free] * width[free], offset[~fixed] - matrix[~fixed] @ lower
    for norm in (np.inf, 2):  # first the largest entry: squares may underflow
        size = np.linalg.norm(walls, norm, axis=1)
        with np.errstate(over="ignore"):
            walls, limits = walls / np.where(size > 0.0, size, 1.0)[:, None], limits / np.where(size > 0.0, size, 1.0)
    limits = np.clip(limits, -_FARTHEST, _FARTHEST)  # solvers take no infinite ones
    at, radius = np.zeros(int(free.sum())), np.inf
    for size in (1.0, _CLOSER):
        step, radius = _largest_ball(walls, (limits - walls @ at) / size, -at / size, (1.0 - at) / size)
        at, radius = np.clip(at + size * step, 0.0, 1.0), size * radius
        point[free] = np.clip(lower[free] + width[free] * at, lower[free], upper[free])
        inside = ((lower < point) & (point < upper))[free].all() and holds(matrix[~fixed], offset[~fixed], point)
        if inside and min((limits - walls @ at).min(initial=1.0), at.min(), (1.0 - at).min()) > thinnest:
            point.flags.writeable = False
            return point
        if radius < -_EMPTY:
            break
    what = "is empty" if radius < -_EMPTY else "has no interior"
    msg = (
        f"the polytope {what}: no ball of radius {thinnest:.0e} of its box was found in it; "
        "equal ends of the box fix an input instead"
    )
    raise DomainError(msg)


def _around_a_point(matrix: Floats, offset: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """The ends of a bounded part of an unbounded box that holds an interior point of the polytope, if there is one.

    Inputs are counted from an end, and in units of their width, or of how far away walls are.
    """
    from scipy.optimize import linprog  # noqa: PLC0415  heavy, and only polytopes need it

    below, above = np.isfinite(lower), np.isfinite(upper)
    start = np.where(below, lower, np.where(above, upper, 0.0))
    limits, size = offset - matrix @ start, np.abs(matrix)
    with np.errstate(over="ignore"):
        away = np.where(size > 0.0, np.abs(limits)[:, None] / np.where(size > 0.0, size, 1.0), 0.0).max(axis=0, initial=0.0)
    away = np.minimum(away, _FARTHEST)
    unit = np.where(below & above, np.where(above, upper, 0.0) - start, np.where(away > 0.0, away, 1.0))
    free = lower < upper
    rows = matrix[:, free] * unit[free]
    size = np.abs(rows).sum(axis=1)  # not 0: each reads a free input
    ends = [(0.0 if b else None, (1.0 if b else 0.0) if a else None) for a, b in zip(above[free], below[free], strict=True)]
    found = cast("Any", linprog)(
        np.append(np.zeros(rows.shape[1]), -1.0),
        A_ub=np.column_stack([rows / size[:, None], np.ones(len(rows))]),
        b_ub=limits / size,
        bounds=[*ends, (None, 1.0)],
        method="highs",
    )
    if found.status != 0 or found.x[-1] < -_EMPTY:
        msg = "the polytope is empty: no point satisfies all inequalities"
        raise DomainError(msg)
    point = start.copy()
    point[free] += unit[free] * found.x[:-1]
    return np.where(free, np.maximum(point - unit, lower), lower), np.where(free, np.minimum(point + unit, upper), upper)


def _largest_ball(walls: Floats, limits: Floats, lower: Floats, upper: Floats) -> tuple[Floats, float]:
    """Centre and radius of a largest ball in a polytope whose rows have length 1, in a box; the radius is negative if it is empty."""
    from scipy.optimize import linprog  # noqa: PLC0415  heavy, and only polytopes need it
    from scipy.sparse import csr_array, eye_array, hstack, vstack  # noqa: PLC0415

    count = len(lower)
    every = vstack([csr_array(walls), eye_array(count), -eye_array(count)])
    limits = np.concatenate([limits, upper, -lower])
    found = cast("Any", linprog)(
        np.append(np.zeros(count), -1.0),
        A_ub=hstack([every, np.ones((len(limits), 1))], format="csr"),
        b_ub=limits,
        bounds=[*zip(np.maximum(lower, -1.0), np.minimum(upper, 1.0), strict=True), (-2.0, 2.0)],
        method="highs",
    )
    return (found.x[:-1], float(found.x[-1])) if found.status == 0 else (np.zeros(count), -np.inf)


def holds(matrix: Floats, offset: Floats, point: Floats, *, strictly: bool = True) -> bool:
    """Whether all inequalities hold at a point: in floating point where that is clear, else exactly."""
    room = offset - matrix @ point
    rounding = 2.0 * (matrix.shape[1] + 8) * ROUNDOFF * (np.abs(matrix) @ np.abs(point) + np.abs(offset)) + LOST_OF_PRODUCTS
    for number in np.flatnonzero(~(room > rounding)).tolist():
        products = (Fraction(a) * Fraction(x) for a, x in zip(matrix[number].tolist(), point.tolist(), strict=True))
        exact = Fraction(float(offset[number])) - sum(products)
        if exact < 0 or (strictly and exact == 0):
            return False
    return True
