"""How far a point is from the nearest wall of its own region.

Inside the region every preactivation is affine, g(y) = g(x) + a.(y - x), and a ball in which none of these changes its sign lies in the region.  So the nearest zero of any of them, at the distance
|g(x)| / |a| in the dual norm, is on the region's border, and a wall: there is no need to know which rows are redundant.

Everything rounds, so distances come as two numbers, and the true one lies between them.  Where a point is so close to a wall that floating-point arithmetic does not see on which side it is, units of later layers have
no sure rows: the wall itself is the nearest one then, up to rounding, and the lower number is 0.
"""

import numpy as np

from tessella.network import Floats, Network
from tessella.numerics import LOST_OF_PRODUCTS
from tessella.tightening.rounding import gamma

NORMS = ("l1", "l2", "linf")


def distances(network: Network, point: Floats, basis: Floats | None = None) -> Floats:
    """The distance of a point from the nearest wall of its region, on all of space, in the norms l1, l2 and linf: two rows, at least and at most.

    Parameters
    ----------
    network
        The network.
    point
        The point.
    basis
        Columns that span the directions in which walls are looked for, with their norms; None for all inputs.
    """
    nearest, found = np.full(3, np.inf), np.full(3, np.inf)
    values, value_errors = point, np.zeros(len(point))
    rows = np.eye(len(point)) if basis is None else basis
    row_errors = np.zeros(len(rows))
    first = True
    for layer in network.layers:
        size = abs(layer.weight)
        before = np.asarray(layer.weight @ values) + layer.bias
        value_errors = (1.0 + gamma(4)) * np.asarray(size @ value_errors) + LOST_OF_PRODUCTS
        value_errors += gamma(layer.inputs + 4) * (np.asarray(size @ np.abs(values)) + np.abs(layer.bias))
        lengths = np.abs(rows).sum(axis=1)
        row_errors = (1.0 + gamma(4)) * np.asarray(size @ row_errors) + gamma(layer.inputs + 4) * np.asarray(size @ lengths)
        if first and basis is None:
            rows = layer.weight if isinstance(layer.weight, np.ndarray) else np.asarray(layer.weight.toarray())
            row_errors = np.zeros(layer.units)
        else:
            rows = np.asarray(layer.weight @ rows)
        first = False
        mask = layer.rectified
        if mask.any():
            low, high = _between(before[mask], value_errors[mask], rows[mask], row_errors[mask])
            nearest, found = np.minimum(nearest, low), np.minimum(found, high)
            unsure = mask & ~(np.abs(before) > value_errors) & ((np.abs(rows).sum(axis=1) > 0.0) | (row_errors > 0.0))
            if unsure.any():
                return np.stack([np.zeros(3), found])
        active = before[mask] > 0.0
        factors = layer.factors(active)
        values, value_errors = factors * before, np.abs(factors) * value_errors + gamma(2) * np.abs(factors * before)
        rows, row_errors = factors[:, None] * rows, np.abs(factors) * row_errors
        if not layer.is_plain:
            row_errors = row_errors + gamma(2) * np.abs(rows).sum(axis=1)
    return np.stack([nearest, found])


def _between(values: Floats, errors: Floats, rows: Floats, row_errors: Floats) -> tuple[Floats, Floats]:
    """The least distance over units, at least and at most, in each norm."""
    sizes = np.abs(rows)
    duals = np.stack([sizes.max(axis=1), np.sqrt((rows * rows).sum(axis=1)), sizes.sum(axis=1)])
    slack = gamma(rows.shape[1] + 8)
    long, short = duals * (1.0 + slack) + row_errors + 1e-150, duals * (1.0 - slack) - row_errors - 1e-150
    constant = ~(rows.any(axis=1) | (row_errors > 0.0))  # no wall at all
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.maximum(np.abs(values) - errors, 0.0) / long * (1.0 - slack)
        high = np.where(short > 0.0, (np.abs(values) + errors) / short * (1.0 + slack), np.inf)
    low, high = np.where(constant, np.inf, low), np.where(constant, np.inf, high)
    return low.min(axis=1), high.min(axis=1)
