"""Rows that are multiples of each other, found in floating point and proved in exact arithmetic."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tessella.network import Floats, Layer, Weight

Key: TypeAlias = object
Exact: TypeAlias = dict[Key, Fraction]
"""An affine function: exact coefficients by the names of what is read; the constant has the name None."""

_DIGITS = 6  # rows that differ later are looked at in exact arithmetic


def alike(weight: Weight, constants: Floats) -> list[list[int]]:
    """Groups of rows that may be multiples of each other; rows without weights are in none.

    Parameters
    ----------
    weight, constants
        Rows, dense or sparse, and one number for each.

    Examples
    --------
    >>> alike(np.array([[1.0, 2.0], [0.0, 3.0], [-2.0, -4.0]]), np.array([1.0, 0.0, -2.0]))
    [[0, 2]]
    """
    groups = dict[bytes, list[int]]()
    for row, constant in enumerate(constants.tolist()):
        if isinstance(weight, np.ndarray):
            places, values = np.flatnonzero(weight[row]), weight[row][weight[row] != 0.0]
        else:
            part = slice(weight.indptr[row], weight.indptr[row + 1])
            places, values = weight.indices[part], weight.data[part]
        if not values.size:
            continue
        numbers = np.append(values, constant)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            scaled = np.round(numbers / numbers[np.abs(numbers).argmax()], _DIGITS) + 0.0
        groups.setdefault(places.astype(np.int64).tobytes() + scaled.tobytes(), []).append(row)
    return [group for group in groups.values() if len(group) > 1]


@dataclass(frozen=True, slots=True)
class ExactInputs:
    """What a layer reads, as exact functions: a value by its number, or what a unit is made of."""

    place: npt.NDArray[np.int64]  # for each unit the value that is exactly what it passes on; -1 if none is
    made: Mapping[int, Exact]  # units that are made of others

    def __getitem__(self, unit: int) -> Exact:
        """A unit; nothing of one that is always 0."""
        known = self.made.get(unit)
        if known is not None:
            return known
        place = int(self.place[unit])
        return {place: Fraction(1)} if place >= 0 else {}


def exact_row(layer: Layer, unit: int, inputs: ExactInputs) -> Exact:
    """A unit's preactivation in exact arithmetic.

    Parameters
    ----------
    layer, unit
        Of which unit.
    inputs
        What the layer reads, as exact functions.
    """
    row: Any = layer.weight[[unit]]
    row = row if isinstance(row, np.ndarray) else row.toarray()
    found: Exact = {None: Fraction(float(layer.bias[unit]))}
    for place in np.flatnonzero(row[0]).tolist():
        factor = Fraction(float(row[0, place]))
        for key, coefficient in inputs[place].items():
            found[key] = found.get(key, Fraction(0)) + factor * coefficient
    return {key: value for key, value in found.items() if value or key is None}


def ratio(one: Exact, other: Exact) -> Fraction | None:
    """The number that makes the other of the one by multiplication; None if there is none.

    Examples
    --------
    >>> half = {None: Fraction(1), "x": Fraction(1, 2)}
    >>> ratio(half, {None: Fraction(-4), "x": Fraction(-2)})
    Fraction(-4, 1)
    >>> ratio(half, {None: Fraction(1), "x": Fraction(1)}) is None
    True
    """
    if one.keys() != other.keys():
        return None
    key = next((key for key in one if key is not None), None)
    if key is None:
        return None
    factor = other[key] / one[key]
    return factor if all(other[name] == factor * value for name, value in one.items()) else None
