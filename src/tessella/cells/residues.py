"""Rows that are multiples of each other, or zero, proved by their residues modulo primes.

Below a prefix of decisions every preactivation is an affine function, a *row*.  Networks with whole or quantised weights, and those that choose between few affine functions, have rows that are
exactly zero, or exactly multiples of rows decided before; floating-point arithmetic sees that something is near zero, no more.

**Why residues prove it.**  All numbers of a network are whole numbers times powers of two, and so are those of its rows.  A bound on the size of the whole numbers is known for each layer (`_Size`).  Two rows
are multiples of each other if and only if all their minors a_i b_j - a_j b_i are 0 (a third one depends on them if and only if all minors of the three are), and a whole number is 0 if it is smaller in size than the product of some primes and is divisible by each.  A residue takes
one multiplication per weight that counts, where whole numbers of hundreds of digits would be multiplied.

Rows are of the network as it was, whatever was folded for the walkers, and functions on the unit cube, as in `tessella.partition.integers`.
"""

from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tessella.domain import Polytope
from tessella.kernel.functions import apart, compiled
from tessella.kernel.record import ByteMatrix, Bytes, Record, Whole, WholeCube, WholeMatrix, zeros
from tessella.network import Floats, Network
from tessella.partition.integers import Matrix, on_inputs, whole_numbers
from tessella.partition.tree import Tree

_BITS = 30  # of a product of primes, that each of them brings at least
_MOST_PRIMES = 48
_MOST_NUMBERS = 4_000_000  # residues of weights


class Residues(Record):
    """A network modulo primes.  Units of layer l are start[l] to start[l + 1] - 1; all residues of a number stand side by side.

    ``primes`` is empty where nothing can be proved: then the others are, too.
    """

    primes: Whole
    start: Whole
    entry: Whole  # of each unit of the layers from the second on the first of its weights
    reads: Whole  # per weight, the unit that it reads
    weights: WholeMatrix
    biases: WholeMatrix
    slopes: WholeMatrix  # what a unit multiplies its preactivation with where it is not active
    lost: Bytes  # whether that is 0
    relu: Whole  # per unit, its number among the ReLUs of its layer, or -1
    unit: WholeMatrix  # [layer, ReLU]
    first: WholeCube  # [unit of the first layer, coordinate, prime]: the constant is the last coordinate
    walls: WholeCube  # of the domain: two for each input, then its inequalities
    bits: Whole  # [layer]: of the whole numbers of its rows; the last is of the domain's walls
    # memory for one question
    counted: Bytes  # whether a unit counts in the row asked about
    counts: WholeMatrix  # how much
    row: WholeMatrix
    kept: WholeCube  # others: [which, coordinate, prime]

    @classmethod
    def of(cls, tree: Tree, *, together: int = 3, more: int = 2) -> Self:
        """Those of a tree, with primes for minors of so many rows, of whose numbers each has so many bits more; empty where the numbers are too large or too many."""
        network, sizes = tree.network, _sizes(tree)
        bits = np.array([size.largest.bit_length() for size in sizes], dtype=np.int64)
        most = min(-(-together * (int(bits.max()) + more) // _BITS), _MOST_PRIMES)
        if sum(layer.parameters for layer in network.layers) * most > _MOST_NUMBERS:
            return cls.empty()
        primes, (numbers, exponent) = _primes()[:most], _first(tree)
        others = network.layers[1:]
        parts = [Matrix.of(layer.weight) for layer in others]
        rows = [
            np.asarray(layer.weight[layer.weight != 0.0]).ravel() if isinstance(layer.weight, np.ndarray) else layer.weight.data
            for layer in others
        ]
        start = np.cumsum([0, *(layer.units for layer in network.layers)])
        entry, places, at = [np.zeros(network.layers[0].units, dtype=np.int64)], list[npt.NDArray[np.int64]](), 0
        for number, part in enumerate(parts):
            entry.append(part.starts[:-1] + at)
            places.append(part.columns + start[number])
            at += len(part.columns)
        relu, unit = _decisions(network)
        width = tree.domain.free_dim + 1
        return cls(
            primes=primes,
            start=start.astype(np.int64),
            entry=np.concatenate([*entry, [at]]).astype(np.int64),
            reads=np.concatenate([np.zeros(0, dtype=np.int64), *places]),
            weights=_residues(np.concatenate([np.zeros(0), *rows]), primes),
            biases=_residues(np.concatenate([layer.bias for layer in network.layers]), primes),
            slopes=_residues(np.concatenate([layer.slope for layer in network.layers]), primes),
            lost=np.concatenate([layer.slope == 0.0 for layer in network.layers]).astype(np.int8),
            relu=relu,
            unit=unit,
            first=_of_whole(numbers, exponent, primes),
            walls=_of_whole(_walls(tree), 0, primes),
            bits=bits,
            counted=zeros(int(start[-1]), kind=np.int8),
            counts=zeros(int(start[-1]), most, kind=np.int64),
            row=zeros(width, most, kind=np.int64),
            kept=zeros(2, width, most, kind=np.int64),
        )


class _Size(NamedTuple):
    """Numbers of a layer's rows: whole numbers of at most this size, times 2**exponent."""

    largest: int
    exponent: int


def _first(tree: Tree) -> "tuple[npt.NDArray[np.object_], int]":
    layer = tree.network.layers[0]
    affine = on_inputs(layer.weight, layer.bias, tree.domain.box)
    return affine.numbers, affine.exponent


def _walls(tree: Tree) -> "npt.NDArray[np.object_]":
    """What is positive inside the domain: 1 - u and u for each input, then the inequalities."""
    dim, rows = tree.domain.free_dim, list[npt.NDArray[np.object_]]()
    for axis in range(dim):
        unit = np.array([int(axis == other) for other in range(dim)], dtype=np.object_)
        rows += [np.append(-unit, 1), np.append(unit, 0)]
    if isinstance(tree.domain, Polytope):
        rows += list(on_inputs(-tree.domain.matrix, tree.domain.offset, tree.domain.box).numbers)
    return np.array(rows, dtype=np.object_).reshape(len(rows), dim + 1)


def _sizes(tree: Tree) -> list[_Size]:
    """Bounds on the numbers of all layers' rows, and of the domain's walls in the end."""
    numbers, exponent = _first(tree)
    found = [_Size(int(np.abs(numbers).max(initial=0)), exponent)]
    for before, layer in zip(tree.network.layers, tree.network.layers[1:], strict=False):
        largest, exponent = found[-1]
        slopes, power = whole_numbers(np.append(before.slope, 1.0))
        most = np.abs(slopes[:-1])
        most[before.rectified] = np.maximum(most[before.rectified], slopes[-1])
        weight = Matrix.of(layer.weight)
        sums = Matrix(np.abs(weight.numbers), 0, weight.columns, weight.starts).times(most[:, None])
        largest, exponent = largest * int(sums.max(initial=0)), exponent + power + weight.exponent
        biases, own = whole_numbers(layer.bias)
        lowest = min(own, exponent)
        largest = (largest << (exponent - lowest)) + (int(np.abs(biases).max(initial=0)) << (own - lowest))
        found.append(_Size(largest, lowest))
    return [*found, _Size(int(np.abs(_walls(tree)).max(initial=0)), 0)]


@lru_cache(maxsize=1)
def _primes() -> npt.NDArray[np.int64]:
    """The largest primes below 2**31."""
    low, high = 2**31 - 4096, 2**31
    root = int(high**0.5) + 1
    small = np.ones(root, dtype=np.bool_)
    small[:2] = False
    for number in range(2, int(root**0.5) + 1):
        small[number * number :: number] &= not small[number]
    left = np.ones(high - low, dtype=np.bool_)
    for prime in np.flatnonzero(small).tolist():
        left[-low % prime :: prime] = False
    return (np.flatnonzero(left)[::-1] + low)[:_MOST_PRIMES].astype(np.int64)


def _residues(values: Floats, primes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """What floating-point numbers are modulo primes, a half being the number that is 1 when it is doubled."""
    fractions, exponents = np.frexp(values)
    mantissas, (known, places) = (fractions * 2.0**53).astype(np.int64), np.unique(exponents, return_inverse=True)
    found = zeros(len(values), len(primes), kind=np.int64)
    for place, prime in enumerate(primes.tolist()):
        powers = np.array([pow(2, power - 53, prime) for power in known.tolist()], dtype=np.int64)
        found[:, place] = mantissas % prime * powers[places] % prime
    return found


def _of_whole(numbers: "npt.NDArray[np.object_]", exponent: int, primes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    parts = [(numbers % prime * pow(2, exponent, prime) % prime).astype(np.int64) for prime in primes.tolist()]
    return np.ascontiguousarray(np.stack(parts, axis=-1))


def _decisions(network: Network) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For each unit its number among the ReLUs of its layer, or -1; and back."""
    relu, start = list[npt.NDArray[np.int64]](), 0
    unit = np.zeros((len(network.layers), max(layer.relus for layer in network.layers)), dtype=np.int64)
    for number, layer in enumerate(network.layers):
        relu.append(np.where(layer.rectified, np.cumsum(layer.rectified) - 1, -1))
        unit[number, : layer.relus] = start + np.flatnonzero(layer.rectified)
        start += layer.units
    return np.concatenate(relu).astype(np.int64), unit


@compiled
def _pass_down(unit: int, most: int, residues: Residues) -> None:
    """Count what a unit reads, as often as the unit itself counts; its bias goes into the row's constant."""
    primes, counts, counted, row, last = residues.primes, residues.counts, residues.counted, residues.row, len(residues.row) - 1
    for m in range(most):
        row[last, m] = (row[last, m] + counts[unit, m] * residues.biases[unit, m]) % primes[m]
    for at in range(residues.entry[unit], residues.entry[unit + 1]):
        j = residues.reads[at]
        if not counted[j]:
            counted[j] = 1
            for m in range(most):
                counts[j, m] = 0
        for m in range(most):
            counts[j, m] = (counts[j, m] + counts[unit, m] * residues.weights[at, m]) % primes[m]


@apart
def put_row(layer: int, relu: int, pattern: ByteMatrix, most: int, residues: Residues) -> None:
    """Put a unit's row below some decisions into ``row``, modulo the first so many primes."""
    primes, start, counts, counted, row = residues.primes, residues.start, residues.counts, residues.counted, residues.row
    asked, width = residues.unit[layer, relu], len(row)
    for c in range(width):
        for m in range(most):
            row[c, m] = residues.first[asked, c, m] if layer == 0 else 0
    if layer == 0:
        return
    for m in range(most):
        counts[asked, m] = 1
    _pass_down(asked, most, residues)
    for k in range(layer - 1, -1, -1):
        for j in range(start[k], start[k + 1]):
            if not counted[j]:
                continue
            counted[j] = 0
            if residues.relu[j] < 0 or not pattern[k, residues.relu[j]]:
                if residues.lost[j]:
                    continue
                for m in range(most):
                    counts[j, m] = counts[j, m] * residues.slopes[j, m] % primes[m]
            if k > 0:
                _pass_down(j, most, residues)
            else:
                for c in range(width):
                    for m in range(most):
                        row[c, m] = (row[c, m] + counts[j, m] * residues.first[j, c, m]) % primes[m]


@compiled
def enough(bits: int, residues: Residues) -> int:
    """How many primes prove that a whole number of so many bits is 0; 0 if there are not so many."""
    most = -(-bits // _BITS)
    return most if most <= len(residues.primes) else 0


@compiled
def bits_of(layer: int, residues: Residues) -> int:
    """Of the numbers of a layer's rows, or of the domain's walls for layer -1; where there are no primes, more than they can prove."""
    if not len(residues.primes):
        return 1
    return residues.bits[layer if layer >= 0 else len(residues.bits) - 1]


@compiled
def put(layer: int, row: int, pattern: ByteMatrix, most: int, residues: Residues) -> None:
    """Put the row of a unit, or of a wall of the domain for layer -1, into ``row``."""
    if layer >= 0:
        put_row(layer, row, pattern, most, residues)
        return
    for c in range(len(residues.row)):
        for m in range(most):
            residues.row[c, m] = residues.walls[row, c, m]


@compiled
def _keep(at: int, most: int, residues: Residues) -> None:
    """Keep the row beside others."""
    for c in range(len(residues.row)):
        for m in range(most):
            residues.kept[at, c, m] = residues.row[c, m]


@apart
def is_zero(layer: int, relu: int, pattern: ByteMatrix, residues: Residues) -> bool:
    """Whether a unit's row is proved to be exactly zero below these decisions."""
    most = enough(bits_of(layer, residues) + 1, residues)
    if most == 0:
        return False
    put_row(layer, relu, pattern, most, residues)
    for c in range(len(residues.row)):
        for m in range(most):
            if residues.row[c, m] != 0:
                return False
    return True


@apart
def is_multiple(layer: int, relu: int, wall_layer: int, wall: int, pattern: ByteMatrix, residues: Residues) -> bool:
    """Whether a unit's row is proved to be a multiple, perhaps 0 times, of another one below these decisions: of a unit not behind it, or, for layer -1, of a wall of the domain."""
    most = enough(bits_of(layer, residues) + bits_of(wall_layer, residues) + 2, residues)
    if most == 0:
        return False
    put(wall_layer, wall, pattern, most, residues)
    _keep(0, most, residues)
    put_row(layer, relu, pattern, most, residues)
    row, other, primes, width = residues.row, residues.kept, residues.primes, len(residues.row)
    for m in range(most):
        for b in range(width):
            for c in range(b):
                if (row[b, m] * other[0, c, m] - row[c, m] * other[0, b, m]) % primes[m] != 0:
                    return False
    return True


@apart
def is_combination(layer: int, relu: int, layers: Whole, walls: Whole, pattern: ByteMatrix, residues: Residues) -> bool:
    """Whether a unit's row is proved to depend on those of two walls, units or walls of the domain as in `is_multiple`: all minors of the three are 0."""
    bits = bits_of(layer, residues) + bits_of(layers[0], residues) + bits_of(layers[1], residues) + 4
    most = enough(bits, residues)
    if most == 0:
        return False
    for at in range(2):
        put(layers[at], walls[at], pattern, most, residues)
        _keep(at, most, residues)
    put_row(layer, relu, pattern, most, residues)
    row, other, primes, width = residues.row, residues.kept, residues.primes, len(residues.row)
    for m in range(most):
        prime = primes[m]
        for a in range(width):
            for b in range(a):
                minor = (other[0, a, m] * other[1, b, m] - other[0, b, m] * other[1, a, m]) % prime
                for c in range(b):
                    left = (other[0, b, m] * other[1, c, m] - other[0, c, m] * other[1, b, m]) % prime
                    right = (other[0, c, m] * other[1, a, m] - other[0, a, m] * other[1, c, m]) % prime
                    if (row[c, m] * minor + row[a, m] * left % prime + row[b, m] * right % prime) % prime != 0:
                        return False
    return True
