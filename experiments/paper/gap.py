"""Table 1: how much of the gap between the Configuration UB and the count the Empirical UB closes.

The count is `tessella.count`'s.  Where that does not end in time it is estimated by random descents of a plain walk over units in
layer order: at each unit with two possible sides one is taken at random and the result doubled, which is right on average
(Knuth, 1975).  The walk decides in floating point with a tolerance: it is there to place the bounds, not to certify.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

import tessella
from tessella.kernel.program import EMPTY, Program
from tessella.network import Floats
from tessella.result import maps

_STRICT = 1e-7  # of a row's own size: how far a cell must reach beyond a hyperplane


@dataclass
class Descent:
    """Random descents in the tree of a network without linear units before its last layer, on a box."""

    network: tessella.Network
    box: tessella.Box
    rng: np.random.Generator

    def weight(self) -> int:
        """A random number whose mean is the number of regions."""
        dim = self.network.input_dim
        centre = (self.box.lower + self.box.upper) / 2.0
        return self._layer(0, np.eye(dim), np.zeros(dim), np.zeros((0, dim)), np.zeros(0), centre)

    def _layer(  # noqa: PLR0913, PLR0917  a cell is all of these
        self, number: int, matrix: Floats, offset: Floats, rows: Floats, limits: Floats, witness: Floats
    ) -> int:
        """The weight of a descent in a cell {rows @ x >= limits}, where layers before `number` are matrix @ x + offset."""
        if number == len(self.network.layers) or not self.network.layers[number].relus:
            return 1
        layer = self.network.layers[number]
        normals, constants = layer.dense() @ matrix, layer.dense() @ offset + layer.bias
        both = np.vstack([rows, normals])
        span_low = np.minimum(both * self.box.lower, both * self.box.upper).sum(axis=1) - 1.0
        span_high = np.maximum(both * self.box.lower, both * self.box.upper).sum(axis=1) + 1.0
        span_low[: len(rows)] = limits
        state = _Cell(Program(both), span_low, span_high, normals, constants)
        return self._units(number, 0, np.zeros(layer.units), state, witness)

    def _units(self, number: int, unit: int, signs: Floats, cell: "_Cell", witness: Floats) -> int:
        """The weight of a descent in a cell in which the first `unit` units of a layer are decided."""
        if unit == len(signs):
            passes = (signs > 0).astype(float)
            first = len(cell.low) - len(signs)
            rows = np.vstack([cell.program.matrix[:first], signs[:, None] * cell.normals])
            limits = np.concatenate([cell.low[:first], -signs * cell.constants])
            return self._layer(number + 1, passes[:, None] * cell.normals, passes * cell.constants, rows, limits, witness)
        size = float(np.abs(cell.normals[unit]) @ np.maximum(np.abs(self.box.lower), np.abs(self.box.upper)))
        if size == 0.0:
            signs[unit] = 1.0 if cell.constants[unit] > 0 else -1.0
            return self._units(number, unit + 1, signs, cell, witness)
        sides = self._sides(unit, cell, witness, _STRICT * size)
        sign, point = sides[self.rng.integers(len(sides))]
        row = len(cell.low) - len(signs) + unit
        if sign > 0:
            cell.low[row] = -cell.constants[unit]
        else:
            cell.high[row] = -cell.constants[unit]
        signs[unit] = sign
        return len(sides) * self._units(number, unit + 1, signs, cell, point)

    def _sides(self, unit: int, cell: "_Cell", witness: Floats, strict: float) -> list[tuple[float, Floats]]:
        """The signs that a unit takes in the cell's interior, each with a point of the cell where it does."""
        normal, constant = cell.normals[unit], cell.constants[unit]
        here, sides = float(normal @ witness + constant), list[tuple[float, Floats]]()
        for sign in (1.0, -1.0):
            if sign * here > strict:
                sides.append((sign, witness))
                continue
            found = cell.program.maximise(
                sign * normal, self.box.lower, self.box.upper, cell.low, cell.high, EMPTY, -sign * constant
            )
            if found.bound + sign * constant > strict:
                sides.append((sign, found.x))
        return sides


@dataclass
class _Cell:
    """A layer inside a cell: its rows behind the cell's own, and their ends, which change as units are decided."""

    program: Program
    low: Floats
    high: Floats
    normals: Floats
    constants: Floats


def report(path: Path, seconds: float, descents: int = 300) -> dict[str, object]:
    """One network's bounds, its count (or, if the walk does not end in time, an estimate) and the gap closed."""
    network = tessella.load(path, relu_output=True)
    box = tessella.Box.cube(0, 1, network.input_dim)
    bounds = tessella.upper_bounds(network, box)
    record: dict[str, object] = {
        "network": path.stem,
        "configuration": maps(bounds.configuration),
        "empirical": maps(bounds.empirical),
    }
    start = perf_counter()
    exact = tessella.count(network, box, seconds=seconds, stability=bounds.stability).exact
    if exact is not None:
        count, record["maps"], record["count"] = float(exact), maps(exact), exact
    else:
        rng = np.random.default_rng(0)
        found = [Descent(network, box, rng).weight() for _ in range(descents)]
        count = float(np.mean(found))
        record["maps_estimated"] = float(np.log2(count))
        record["relative_standard_error"] = float(np.std(found) / np.sqrt(descents) / count)
    gap = maps(bounds.configuration) - float(np.log2(count))
    record["gap_closed_percent"] = 100.0 * (maps(bounds.configuration) - maps(bounds.empirical)) / gap
    return record | {"seconds": round(perf_counter() - start, 1)}


def gaps(nets: Path, only: Sequence[str], seconds: float) -> Iterator[dict[str, object]]:
    """One record per network in a folder.

    Parameters
    ----------
    nets
        The folder.
    only
        Configurations such as ``1-21``; all if empty.
    seconds
        Time for counting one network.
    """
    found = {tuple(int(part) for part in path.stem.split("_")): path for path in nets.glob("*_*_*.npz")}
    paths = [path for key, path in sorted(found.items()) if not only or f"{key[0]}-{key[1]}" in only]
    if not paths:
        msg = (
            f"{nets}: no trained networks {' '.join(only)}".rstrip() + " here; make them with: python -m experiments.paper train"
        )
        raise tessella.FileMissing(msg)
    for path in paths:
        yield report(path, seconds)
