"""The regions along a path in fractions: slow, exact, and without a line in common with what it checks.

On each segment, layer by layer, the roots of all units split every interval; then neighbours of one pattern are one piece, across corners too.
"""

from fractions import Fraction
from itertools import pairwise

import numpy as np

Pattern = tuple[bool, ...]


def pieces_of(layers, path) -> list[tuple[Fraction, Pattern]]:
    """Where each piece of one pattern begins, counted in segments, and its pattern."""
    found = []
    for number, (start, stop) in enumerate(pairwise(path)):
        first, last = fractions(start), fractions(stop)
        if first != last:
            inputs = [(b - a, a) for a, b in zip(first, last, strict=True)]
            found += [(number + left, pattern) for left, pattern in on_segment(layers, inputs)]
    return [found[0], *(piece for before, piece in pairwise(found) if piece[1] != before[1])]


def on_segment(layers, inputs):
    """The same on one segment, whose inputs are ``slope * t + constant``."""
    parts = [(Fraction(0), Fraction(1), inputs, ())]
    for weight, bias, mask, *rest in layers:
        slopes, after = fractions(np.broadcast_to(rest[0] if rest else 0.0, len(bias))), []
        for low, high, values, pattern in parts:
            rows = [affine(fractions(row), constant, values) for row, constant in zip(weight, fractions(bias), strict=True)]
            roots = {-row[1] / row[0] for row, rectified in zip(rows, mask, strict=True) if rectified and row[0]}
            for left, right in pairwise([low, *sorted(root for root in roots if low < root < high), high]):
                middle = (left + right) / 2
                active = [row[0] * middle + row[1] > 0 for row in rows]
                passed = [
                    row if not rectified or state else (slope * row[0], slope * row[1])
                    for row, rectified, state, slope in zip(rows, mask, active, slopes, strict=True)
                ]
                states = tuple(state for state, rectified in zip(active, mask, strict=True) if rectified)
                after.append((left, right, passed, pattern + states))
        parts = after
    return [(low, pattern) for low, _, _, pattern in parts]


def affine(row, constant, values):
    """A row times affine functions, and a constant."""
    return (
        sum((w * value[0] for w, value in zip(row, values, strict=True)), Fraction(0)),
        sum((w * value[1] for w, value in zip(row, values, strict=True)), constant),
    )


def fractions(values) -> list[Fraction]:
    """Numbers as they are."""
    return [Fraction(float(value)) for value in np.ravel(values)]
