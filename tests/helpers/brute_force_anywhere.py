"""Regions of small networks on unbounded domains, in rational numbers and without making anything bounded.

A cell is a list of rows ``constant + slopes . x > 0`` in the free inputs; whether they hold at once is decided by elimination (Fourier and Motzkin), as is
whether a cell goes on for ever.  Slow: a few inputs, a few dozen regions.
"""

from fractions import Fraction
from operator import mul

import numpy as np

from helpers.brute_force import Pattern, fractions, has_open_solution, primitive, whole

Row = list[Fraction]


def patterns_anywhere(layers, lower, upper, matrix=None, offset=None) -> dict[Pattern, bool]:
    """The patterns of all regions, each with whether it is bounded."""
    free = int((np.asarray(lower) < np.asarray(upper)).sum())
    return {pattern: is_bounded(rows, free) for pattern, rows in cells_anywhere(layers, lower, upper, matrix, offset).items()}


def cells_anywhere(layers, lower, upper, matrix=None, offset=None) -> dict[Pattern, list[Row]]:
    """The patterns of all regions, each with its rows."""
    lower, upper = (np.asarray(end, dtype=float) for end in (lower, upper))
    free = np.flatnonzero(lower < upper)
    inputs = [
        [Fraction(0 if number in free else float(lower[number])), *(Fraction(int(number == column)) for column in free)]
        for number in range(len(lower))
    ]
    domain = []
    for place, column in enumerate(free):
        unit = [Fraction(int(place == other)) for other in range(len(free))]
        if np.isfinite(lower[column]):
            domain.append([-Fraction(float(lower[column])), *unit])
        if np.isfinite(upper[column]):
            domain.append([Fraction(float(upper[column])), *(-one for one in unit)])
    for row, limit in [] if matrix is None else zip(np.asarray(matrix), fractions(offset), strict=True):
        sums = [sum(map(mul, fractions(row), column)) for column in zip(*inputs, strict=True)]
        domain.append([limit - sums[0], *(-entry for entry in sums[1:])])
    if any(row[0] < 0 and not any(row[1:]) for row in domain):
        return {}
    domain = [row for row in domain if any(row[1:])]
    if not is_open(domain):
        return {}
    return dict(_walk(layers, 0, inputs, domain, ()))


def is_open(rows: list[Row]) -> bool:
    """Whether some point makes all rows positive."""
    return has_open_solution([primitive(whole([row])[0][0]) for row in rows]) if rows else True


def is_bounded(rows: list[Row], dim: int) -> bool:
    """Whether no direction but 0 keeps all rows from falling."""
    slopes = [row[1:] for row in rows]
    for axis in range(dim):
        for sign in (1, -1):
            direction = [Fraction(sign if place == axis else 0) for place in range(dim)]
            if _has_direction(slopes, direction):
                return False
    return True


def _has_direction(slopes: list[Row], positive: Row) -> bool:
    """Whether some d has all ``slopes . d >= 0`` and ``positive . d > 0``: eliminated, with a flag for what is strict."""
    rows = {(tuple(_whole(row)), False) for row in slopes if any(row)} | {(tuple(_whole(positive)), True)}
    while any(any(row) for row, _ in rows):
        width = len(next(iter(rows))[0])
        if width == 0:
            break
        up = [each for each in rows if each[0][-1] > 0]
        down = [each for each in rows if each[0][-1] < 0]
        kept = {(row[:-1], strict) for row, strict in rows if row[-1] == 0}
        for high, first in up:
            for low, second in down:
                joined = [a * -low[-1] + b * high[-1] for a, b in zip(high[:-1], low[:-1], strict=True)]
                kept.add((tuple(_whole([Fraction(entry) for entry in joined])), first or second))
        rows = kept
        if any(strict and not any(row) for row, strict in rows):
            return False
    return not any(strict for _, strict in rows)


def _whole(row: Row) -> list[int]:
    return primitive(whole([row])[0][0]) if any(row) else [0] * len(row)


def _walk(layers, number, inputs, cell, pattern):
    if number == len(layers):
        yield pattern, cell
        return
    weight, bias, rectified, *slopes = layers[number]
    columns = list(zip(*inputs, strict=True))
    rows = []
    for normal, constant in zip(np.asarray(weight), fractions(bias), strict=True):
        row = [sum(map(mul, fractions(normal), column)) for column in columns]
        row[0] += constant
        rows.append(row)
    mask = np.broadcast_to(np.asarray(rectified, dtype=bool), len(rows))
    parts = [(rows, cell, pattern)]
    factors = fractions(np.broadcast_to(np.asarray(slopes[0] if slopes else 0.0, dtype=float), len(rows)))
    for unit in np.flatnonzero(mask):
        parts = [part for piece in parts for part in _split(piece, unit, factors[unit])]
    for outputs, below, states in parts:
        yield from _walk(layers, number + 1, outputs, below, states)


def _split(piece, unit, slope):
    rows, cell, pattern = piece
    row = rows[unit]
    off = [[slope * entry for entry in row] if number == unit else other for number, other in enumerate(rows)]
    if not any(row[1:]):
        return [(rows if row[0] > 0 else off, cell, (*pattern, row[0] > 0))]
    sides = [(rows, row, True), (off, [-entry for entry in row], False)]
    return [(outputs, [*cell, side], (*pattern, state)) for outputs, side, state in sides if is_open([*cell, side])]
