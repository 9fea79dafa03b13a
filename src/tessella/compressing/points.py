"""Random points of any domain."""

import numpy as np

from tessella.domain import Domain, Polytope
from tessella.network import Floats

_LARGEST = 4.0  # log10 of how far points go where nothing ends


def spread_points(domain: Domain, count: int, rng: np.random.Generator) -> Floats:
    """Points of a domain: uniform in a bounded box, else near and far; in a polytope on rays from its centre.

    Parameters
    ----------
    domain
        Of which domain.
    count
        How many.
    rng
        Draws them.

    Examples
    --------
    >>> from tessella.domain import Box
    >>> spread_points(Box([0, 1], [0, 3]), 2, np.random.default_rng(0)).round(2).tolist()
    [[0.0, 1.54], [0.0, 1.03]]
    """
    box = domain.box
    low = np.where(np.isfinite(box.lower), box.lower, 0.0)
    high = np.where(np.isfinite(box.upper), box.upper, 0.0)
    found = (
        rng.uniform(np.minimum(low, high), np.maximum(low, high), (count, box.dim)) if box.bounded else _far(domain, count, rng)
    )
    if isinstance(domain, Polytope):
        away = found - domain.centre
        rise, room = away @ domain.matrix.T, domain.offset - domain.matrix @ domain.centre
        steps = np.where(rise > 0.0, room / np.where(rise > 0.0, rise, 1.0), 1.0).min(axis=1, initial=1.0)
        found = domain.centre + (np.clip(steps, 0.0, 1.0) * rng.uniform(0.0, 1.0 - 1e-9, count))[:, None] * away
    return np.clip(found, box.lower, box.upper)


def _far(domain: Domain, count: int, rng: np.random.Generator) -> Floats:
    """Points of a box with infinite ends, some of them far away."""
    box = domain.box
    reach = 10.0 ** rng.uniform(-1.0, _LARGEST, (count, 1))
    start = np.where(np.isfinite(box.lower), box.lower, np.where(np.isfinite(box.upper), box.upper, 0.0))
    away = reach * rng.standard_normal((count, box.dim))
    way = np.where(np.isfinite(box.lower), np.abs(away), np.where(np.isfinite(box.upper), -np.abs(away), away))
    return np.clip(start + way, box.lower, box.upper)
