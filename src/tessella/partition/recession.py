"""Whether a region goes on for ever.

The closure of a region consists of the x of the domain with ``M x <= c``, and it is not empty.  So it is bounded if and only if its *recession cone*, the
directions d with ``M d <= 0``, holds nothing but 0 (Rockafellar 1970, theorem 8.4).  Inputs that are fixed, or have two finite ends, do not move in any of these.

*Bounded* is proved by linear programs whose bounds allow for rounding: if no d of the cone in the cube [-1, 1]^k has a coordinate beyond 1/2, there is none but 0, because
multiples of any other reach 1.  *Unbounded* is proved by a direction, in rational numbers: the one that a linear program found, moved onto the rows that
are nearly 0 at it.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from tessella.domain import Domain, Polytope
from tessella.kernel.program import Program
from tessella.network import Floats, Layer, Mask, Network
from tessella.numerics import LOST_OF_PRODUCTS, ROUNDOFF
from tessella.partition.witness import walls

_MOST = 500_000  # products of rational numbers
_TIGHT = 1e-9  # of a row's size
_DIGITS = 2.0**30  # directions are rounded to so much, so that rational numbers stay short


def is_bounded(network: Network, domain: Domain, pattern: Mask) -> bool | None:
    """Whether the region of a pattern is bounded, proved; None where neither was.

    Parameters
    ----------
    network, domain, pattern
        Of what region; there must be one.

    Examples
    --------
    >>> from tessella.domain import Box
    >>> net = Network.from_arrays([([[1.0], [1.0]], [0.0, -1.0])], relu_output=True)
    >>> [is_bounded(net, Box(-np.inf, np.inf, dim=1), np.array(pattern)) for pattern in ([True, False], [True, True])]
    [True, False]
    """
    columns = np.flatnonzero(np.isinf(domain.box.lower) | np.isinf(domain.box.upper))
    if not len(columns):
        return True
    unit_rows = -walls(network, pattern)[0][:, columns]
    own, doubt = _domain_rows(domain, columns), _doubt(network, pattern)[:, columns]
    rows, errors = np.vstack([unit_rows, own]), np.vstack([doubt, np.zeros_like(own)]).sum(axis=1)
    sizes = np.abs(rows).max(axis=1, initial=0.0)
    told = sizes > 0.0  # the others say nothing of directions, up to rounding
    tried = list(_far(rows[told] / sizes[told, None], errors[told] / sizes[told]))
    if not tried:
        return True
    if sum(layer.parameters for layer in network.layers) * len(columns) > _MOST:
        return None
    exact = np.vstack([_exact_rows(network, pattern, columns), _fractions(own)])
    return False if any(_is_direction(exact, rows, direction) for direction in tried) else None


def _domain_rows(domain: Domain, columns: Any) -> Floats:
    """What the domain says of directions: ``rows @ d <= 0``."""
    unit = np.eye(domain.dim)
    rows = [-unit[np.isfinite(domain.box.lower)], unit[np.isfinite(domain.box.upper)]]
    if isinstance(domain, Polytope):
        rows.append(domain.matrix)
    return np.vstack(rows)[:, columns]


def _states(network: Network, pattern: Mask) -> Iterator[tuple[Layer, Mask]]:
    """Layer by layer, the states of its ReLUs."""
    start = 0
    for layer in network.layers:
        yield layer, pattern[start : start + layer.relus]
        start += layer.relus


def _doubt(network: Network, pattern: Mask) -> Floats:
    """By how much rounding may have changed the numbers of `walls`."""
    sizes, found, terms = np.eye(network.input_dim), list[Floats](), 8
    for layer, active in _states(network, pattern):
        sizes, terms = np.asarray(abs(layer.weight) @ sizes) + LOST_OF_PRODUCTS, terms + layer.inputs + 5
        found.append(4.0 * terms * ROUNDOFF * sizes[layer.rectified])
        sizes = np.abs(layer.factors(active))[:, None] * sizes
    return np.vstack(found)


def _exact_rows(network: Network, pattern: Mask, columns: Any) -> Any:
    """What the units say of directions, in rational numbers: ``rows @ d <= 0``."""
    values, found = _fractions(np.eye(network.input_dim)[:, columns]), list[Any]()
    for layer, active in _states(network, pattern):
        before = _fractions(layer.dense()) @ values
        found.append(np.where(active, -1, 1)[:, None] * before[layer.rectified])
        values = before * _fractions(layer.factors(active))[:, None]
    return np.vstack(found)


def _fractions(values: Floats) -> Any:
    return np.array([Fraction(value) for value in values.ravel().tolist()], dtype=np.object_).reshape(values.shape)


def _far(rows: Floats, errors: Floats) -> Iterator[Floats]:
    """Directions that have a coordinate beyond 1/2, up to rounding; there are none if the cone is nothing but 0."""
    count = rows.shape[1]
    end, program, low = np.ones(count), Program(rows), -np.abs(rows).sum(axis=1) - 1.0
    for column in range(count):
        for sign in (1.0, -1.0):
            objective = np.zeros(count)
            objective[column] = sign
            found = program.maximise(objective, -end, end, low, errors)
            if not found.bound < 0.5:
                yield found.x


def _is_direction(exact: Any, rows: Floats, direction: Floats) -> bool:
    """Whether this, moved onto the rows that are nearly 0 at it, is a direction of the cone."""
    place = np.rint(direction * _DIGITS) / _DIGITS
    tight = np.abs(rows @ place) <= _TIGHT * np.maximum(np.abs(rows).max(axis=1), 0.0)
    moved = _onto(exact[tight].tolist(), [Fraction(value) for value in place.tolist()])
    return any(moved) and all(sum(a * b for a, b in zip(row, moved, strict=True)) <= 0 for row in exact.tolist())


def _onto(rows: list[list[Fraction]], point: list[Fraction]) -> list[Fraction]:
    """A point near this one where all rows are 0: some coordinates stay, the others follow (elimination by Gauss and Jordan)."""
    solved = dict[int, list[Fraction]]()
    for given in rows:
        row = list(given)
        for pivot, other in solved.items():
            row = [a - row[pivot] * b for a, b in zip(row, other, strict=True)] if row[pivot] else row
        pivot = max(range(len(row)), key=lambda at: abs(row[at]), default=0)
        if not any(row):
            continue
        row = [a / row[pivot] for a in row]
        solved = {
            at: [a - other[pivot] * b for a, b in zip(other, row, strict=True)] if other[pivot] else other
            for at, other in solved.items()
        }
        solved[pivot] = row
    moved = list(point)
    for pivot, row in solved.items():
        moved[pivot] = -sum((a * point[at] for at, a in enumerate(row) if at != pivot and at not in solved), Fraction(0))
    return moved
