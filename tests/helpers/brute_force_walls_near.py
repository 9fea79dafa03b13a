"""How far a point is from the nearest wall of its region, in fractions: the rows of all units in the region behind the point's own pattern."""

from fractions import Fraction

import numpy as np


def fractions(values) -> list[Fraction]:
    return [Fraction(float(value)) for value in np.ravel(values)]


def rows_at(layers, point):
    """Value and row of every rectified unit, as the point's own pattern has them; None as a row where a unit before is 0 and not constant."""
    inputs = fractions(point)
    values, rows = inputs, [[Fraction(int(i == j)) for j in range(len(inputs))] for i in range(len(inputs))]
    found, known = [], True
    for weight, bias, mask, *rest in layers:
        slopes = fractions(np.broadcast_to(rest[0] if rest else 0.0, len(bias)))
        after, after_rows = [], []
        for unit, constant in enumerate(fractions(bias)):
            weights = fractions(weight[unit])
            value = constant + sum((w * v for w, v in zip(weights, values, strict=True)), Fraction(0))
            row = [sum((w * r[j] for w, r in zip(weights, rows, strict=True)), Fraction(0)) for j in range(len(inputs))]
            if mask[unit]:
                found.append((value, row if known else None))
            factor = Fraction(1) if value > 0 or not mask[unit] else slopes[unit]
            after.append(factor * value)
            after_rows.append([factor * entry for entry in row])
        known = known and all(value or not any(row or [1]) for value, row in found)
        values, rows = after, after_rows
    return found


def distances(layers, point):
    """The squares of the distances in l1, l2 and linf; 0 on a wall, None without walls."""
    found = [(value, row) for value, row in rows_at(layers, point) if row is not None]
    if any(value == 0 and any(row) for value, row in found):
        return [Fraction(0)] * 3
    walls = [(abs(value), [abs(entry) for entry in row]) for value, row in found if any(row)]
    if not walls:
        return [None] * 3
    return [
        min(value**2 / (dual(row) ** 2 if dual else sum(entry**2 for entry in row)) for value, row in walls)
        for dual in (max, None, sum)
    ]
