"""The text of a certificate: lines of words, a checksum at the end, packed if the file's name ends in ``.gz``.

What the lines say is in `tessella.certificates.verify`, which reads them, and in the reference.  Numbers are written so that nothing is rounded: floating-point numbers in hexadecimal, whole
numbers to base 16.
"""

import gzip
import hashlib
import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from tessella.domain import Domain, Polytope
from tessella.files import writing
from tessella.network import Floats, Layer, Network

_BUFFER = 2**16  # bytes


class Text:
    """Lines on their way into a file.

    Parameters
    ----------
    file
        Where they go.
    network, domain
        What they are about.  Units are numbered through all layers, behind them the domain's inequalities; in the file these stand behind the first layer's units.
    """

    def __init__(self, file: Any, network: Network, domain: Domain) -> None:
        """Begin with the lines that say what this is about."""
        self._first, self._all = network.layers[0].units, sum(layer.units for layer in network.layers)
        self._walls = len(domain.offset) if isinstance(domain, Polytope) else 0
        self._file, self._digest, self._waiting, self._size = file, hashlib.sha256(), list[bytes](), 0
        self.bytes = self.bounds = self.trees = self.points = 0
        self.line("tessella certificate 1")
        self.opening = opening(network, domain)
        for line in self.opening:
            self.line(line)

    def line(self, text: str) -> None:
        """One line."""
        data = text.encode("ascii") + b"\n"
        self._waiting.append(data)
        self._size += len(data)
        self.bytes += len(data)
        if self._size > _BUFFER:
            self._flush()

    def bound(self, unit: int, side: int, value: float) -> None:
        """A claim: this is an upper (1) or a lower (0) bound on a unit's preactivation.  Its proof follows."""
        self.bounds += 1
        self.line(f"bound {self.place(unit)} {side} {value.hex()}")

    def end(self, multipliers: Mapping[int, int]) -> None:
        """What proves a bound in this branch."""
        self.line(f"end{self._pairs(multipliers)}")

    def tree(self, given: Mapping[int, int]) -> None:
        """The regions with units on given sides, all regions if there are none.  They follow."""
        self.trees += 1
        self.line(f"tree{self._pairs(given)}")

    def split(self, unit: int) -> None:
        """A unit has both sides here: first what lies on side 0, then what lies on side 1."""
        self.line(f"split {self.place(unit)}")

    def split_of(self, units: Mapping[int, int]) -> None:
        """The same, for the only unit of these."""
        (unit,) = units
        self.split(unit)

    def fix(self, unit: int, side: int, multipliers: Mapping[int, int]) -> None:
        """A unit has one side here, and what proves it."""
        self.line(f"fix {self.place(unit)} {side}{self._pairs(multipliers)}")

    def point(self, scale: int, upper: int, numbers: Mapping[int, int]) -> None:
        """A region, by a point: inputs are numbers / scale, or at their upper ends where `upper` has a bit, or at their lower ends."""
        self.points += 1
        self.line(f"point{_pairs({-1: scale, -2: upper, **numbers})}")

    def close(self) -> None:
        """End with what was claimed, and the checksum."""
        self._flush()
        self.line(f"sum {self.bounds} {self.trees} {self.points} {self._digest.hexdigest()}")
        self._flush()

    def place(self, unit: int) -> int:
        """The number of a unit or an inequality in the file."""
        return unit if unit < self._first else unit + self._walls if unit < self._all else unit - self._all + self._first

    def _pairs(self, numbers: Mapping[int, int]) -> str:
        return _pairs({self.place(unit): number for unit, number in numbers.items()})

    def _flush(self) -> None:
        data = b"".join(self._waiting)
        self._digest.update(data)
        self._file.write(data)
        self._waiting, self._size = [], 0


@contextmanager
def certificate(path: str | os.PathLike[str], network: Network, domain: Domain) -> Generator[Text]:
    """A certificate about a network on a domain; it takes its place when it is whole.

    Parameters
    ----------
    path
        The file; it is packed if its name ends in ``.gz``.
    network, domain
        What it is about.
    """
    with writing(path) as file, _packed(file, path) as inner:
        text = Text(inner, network, domain)
        yield text
        text.close()


@contextmanager
def _packed(file: BinaryIO, path: str | os.PathLike[str]) -> Generator[Any]:
    if not os.fspath(path).endswith(".gz"):
        yield file
        return
    with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0) as inner:
        yield inner


def opening(network: Network, domain: Domain) -> tuple[str, ...]:
    """The lines that say what network and domain a certificate is about."""
    return tuple(_described(network, domain))


def _described(network: Network, domain: Domain) -> Iterable[str]:
    box = domain.box
    yield f"box {network.input_dim} {len(network.layers)}"
    for low, high in zip(box.lower.tolist(), box.upper.tolist(), strict=True):
        yield f"input {low.hex()} {high.hex()}"
    for number, layer in enumerate(network.layers):
        walls = domain if isinstance(domain, Polytope) and number == 0 else None
        yield f"layer {layer.units + (len(walls.offset) if walls else 0)}"
        for unit in range(layer.units):
            kind = "relu" if layer.rectified[unit] else "linear"
            yield f"{kind} {float(layer.slope[unit]).hex()} {float(layer.bias[unit]).hex()}{_entries(_row(layer, unit))}"
        if walls:
            for row, offset in zip(walls.matrix, walls.offset.tolist(), strict=True):
                yield f"wall {(0.0).hex()} {offset.hex()}{_entries(-row)}"


def _row(layer: Layer, unit: int) -> Floats:
    row = layer.weight[[unit]]
    return row[0] if isinstance(row, np.ndarray) else np.asarray(row.toarray())[0]


def _entries(row: Floats) -> str:
    places = np.flatnonzero(row)
    return "".join(f" {place}:{value.hex()}" for place, value in zip(places.tolist(), row[places].tolist(), strict=True))


def _pairs(numbers: Mapping[int, int]) -> str:
    return "".join(f" {unit}:{number:x}" for unit, number in numbers.items())
