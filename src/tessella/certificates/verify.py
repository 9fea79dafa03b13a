"""Check a certificate: ``python verify.py FILE [PROCESSES]``.  All arithmetic is exact, and needs Python alone.  docs/explanation/certificates.md has the proofs.

Bounds: choose a number w for each unit, add w (W h + b - g) = 0 to what is to be bounded; then bound each unit's share c h(g) - w g on the range of g, and each input's.
Counts: a tree splits units (g < 0 or g > 0) and fixes others, where a bound shows that one side is all there is.  Below a leaf lies at most one region, and one if some point of the domain is strictly on the decided side of each unit that was split.
"""

import gzip
import hashlib
import struct
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from itertools import chain, repeat, zip_longest
from operator import mul
from typing import Any


def need(truth: object, otherwise: str) -> None:
    """Refuse the certificate unless this is true."""
    if not truth:
        raise ValueError(otherwise)


def lines_of(path: str) -> Iterator[list[str]]:
    """The words of all lines; the last one has the checksum of those before it."""
    digest = hashlib.sha256()
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        while line := file.readline(2**26):
            words = line.decode("ascii", "backslashreplace").split() or [""]
            need(words[0] != "sum" or (words[-1] == digest.hexdigest() and not file.read(1)), "the file was changed")
            digest.update(line)
            yield words


def pairs(words: list[str], read: Callable[[str], Any] = lambda word: int(word, 16)) -> dict[int, Any]:
    """Numbers at their places, ``place:number``."""
    need(all(len(word) <= 2**13 or word[:2] == "-2" for word in words), "a number is too long")
    return {int(place): read(number) for place, _, number in (word.partition(":") for word in words)}


def scaled(values: list[float]) -> tuple[list[int], int]:
    """Whole numbers and an exponent e: the values are the numbers / 2**e."""
    most = max((value.as_integer_ratio()[1] for value in values), default=1)  # infinity has none
    return [int(Fraction(value) * most) for value in values], most.bit_length() - 1


def identity(rows: list[list[float]], slopes: list[float], relus: list[bool]) -> bytes:
    """What Tessella's fingerprint of a network takes from a layer."""
    places = [(unit, place, w) for unit, row in enumerate(rows) for place, w in enumerate(row[:-1]) if w]
    parts = [("q", [len(rows), len(rows[0]) - 1, len(places)]), *(("qqd"[k], [one[k] for one in places]) for k in range(3))]
    parts += [("d", [row[-1] + 0.0 for row in rows]), ("?", relus)]
    parts += [] if slopes == [float(not relu) for relu in relus] else [("s", [b"slope"]), ("d", slopes)]
    return b"".join(struct.pack("<5s" if kind == "s" else f"<{len(values)}{kind}", *values) for kind, values in parts)


class Certificate:
    """A network on a domain, and what is proved of it.  Units are numbered through all layers; the domain's inequalities are the last units of the first."""

    def __init__(self, lines: Iterator[list[str]]) -> None:
        """Read the first lines: the domain's box, and the network.  Each layer is multiplied with a power of two, so that its numbers are whole."""
        (_, inputs, layers), digest, read, weights = next(lines), hashlib.sha256(b"tessella network 1"), float.fromhex, 0
        texts = [next(lines) for _ in range(min(int(inputs), 2**20))]  # each: "input", lower, upper end
        ends = [(read(low), read(high)) for _, low, high in texts]
        (flat, power), width, self.layers, self.rows = scaled(list(chain(*ends))), int(inputs), list[range](), list[list[int]]()
        self.box, self.fine, self.kinds = list(zip(flat[::2], flat[1::2], strict=True)), power, list[int]()
        self.bits, self.slopes = list[int](), list[tuple[int, int]]()  # slopes of what is not positive, and of what is
        for _ in range(int(layers)):
            units = [next(lines) for _ in range(int(next(lines)[1]))]  # each: kind, slope, bias, weights
            need((weights := weights + width * len(units)) < 2**25 and power < 2**17, "the network is too large")
            kinds = [("linear", "relu", "wall")[: 2 + (not self.rows)].index(unit[0]) for unit in units]
            rows = [[*map(pairs(unit[3:], read).get, range(width), repeat(0.0)), read(unit[2])] for unit in units]
            slopes = [read(unit[1]) for unit in units]
            (flat, exponent), ((one, *own), fine) = scaled(list(chain(*rows))), scaled([1.0, *slopes])
            self.layers.append(range(len(self.rows), len(self.rows) + len(rows)))
            self.rows += [[*flat[end - width : end], flat[end] << power] for end in range(width, len(flat), width + 1)]
            self.bits, self.slopes = self.bits + [power + exponent] * len(rows), self.slopes + [(slope, one) for slope in own]
            self.kinds, width, power = self.kinds + kinds, len(kinds) - kinds.count(2), power + exponent + fine  # walls are last
            digest.update(identity(rows[:width], slopes[:width], [(False, True)[kind] for kind in kinds[:width]]))
            texts += [unit for unit in units if unit[0] == "wall"]
        domain = hashlib.sha256("".join(" ".join(words) + "\n" for words in texts).encode()).hexdigest()
        domain = f"{[*ends[0]]}^{inputs}" if len(set(ends)) == 1 and len(texts) == len(ends) else domain
        self.name, self.packed = f"network {digest.hexdigest()}, domain {domain}", dict[int, list[int]]()
        first = [*self.rows[: len(self.layers[0])], [0] * len(self.rows[0])]
        self.near = [row[-1] + sum(w * low for w, (low, _) in zip(row, self.box, strict=False)) for row in first]  # at lower ends
        self.steps = [[w * (high - low) for w, (low, high) in zip(row, self.box, strict=False)] for row in first]  # to upper ends
        self.most = 4 * max(map(abs, chain([1], *self.steps))) * len(self.box)
        self.now: Any = [(0 if k > 1 else None, None, -(k == 1), k > 1 and any(self.steps[u])) for u, k in enumerate(self.kinds)]
        self.way, self.open, self.goal = list[tuple[int, bool, Any]](), False, (-1, 0, Fraction(0))
        self.seen, self.parts = {"bound": 0, "tree": 0, "point": 0, "split": 0, "fix": 0, "end": 0}, list[dict[int, int]]()

    def put(self, unit: int, side: int, *, strictly: bool = True, split: bool = False) -> None:
        """Go on on side 0 (g <= 0) or 1 (g >= 0) of a unit, after a split later also on the other."""
        need(0 <= unit < len(self.rows) and self.now[unit][2] < 0, "a unit cannot be decided")
        self.way.append((unit, split, self.now[unit]))
        self.now[unit] = (0 if side else self.now[unit][0], self.now[unit][1] if side else 0, side, strictly)

    def highest(self, used: dict[int, int]) -> int:
        """The largest value in the box of a sum of first units' g.  The inputs' shares are in one long number, so many bytes for each: Python is quick with these."""
        size = 8 << (((1 + sum(map(abs, used.values()))) * self.most).bit_length() // 64).bit_length()
        if size not in self.packed:
            steps = (b"".join(((1 << 8 * size - 1) + step).to_bytes(size, "little") for step in row) for row in self.steps)
            self.packed[size] = [int.from_bytes(row, "little") for row in steps]
        *rows, half = self.packed[size]
        total = half + sum(w * (rows[unit] - half) for unit, w in used.items())
        total &= (total & half) - ((total & half) >> 8 * size - 1)  # without those that are negative
        return total % ((1 << 8 * size) - 1) + sum(w * self.near[unit] for unit, w in used.items())

    def bound(self, target: int, sign: int, given: dict[int, int]) -> Fraction:
        """An upper bound on sign * g of the target.  Numbers given, over its own, are w less what a unit of one state takes by itself."""
        scale, last, sums, cs = given.pop(target), max([target, *given]), Fraction(0), list[int]()
        need(scale > 0 and min([target, *given]) >= 0 and last < len(self.rows), "a proof names no unit")
        for units in reversed([units for units in self.layers if units.start <= last]):
            used = dict[int, int]()
            for unit, c in zip_longest(units, cs, fillvalue=0):
                (low, high, state, _), (slope, one), shift = self.now[unit], self.slopes[unit], self.bits[last] - self.bits[unit]
                w = (own := given.get(unit, 0) << shift) + (0 if state < 0 else c * (slope, one)[state])
                if own or (c and state < 0):
                    below, above = (c * slope - w, c * one - w) if state < 0 else (-own, -own)
                    need((low is not None or below >= 0) and (high is not None or above <= 0), f"unit {unit} has no bound")
                    sums += max(0, below * (low or 0), above * (high or 0))
                w += sign * scale << shift if unit == target else 0
                used |= {unit: w} if w else {}
            columns = zip(*(self.rows[unit] for unit in used), strict=True) if units.start else ()
            *cs, bias = [sum(map(mul, used.values(), column)) for column in columns] or [0] * len(self.rows[units[0]])
            sums += bias if units.start else self.highest(used)
        return sums / (scale << self.bits[last] - self.bits[target])

    def visit(self, numbers: dict[int, int]) -> None:
        """See that a point is where it should be: numbers over that at -1 or, where -2 has a bit, upper ends, else lower ends of inputs."""
        scale, upper = numbers.pop(-1), numbers.pop(-2)
        point = [numbers[k] << self.fine if k in numbers else ends[upper >> k & 1] * scale for k, ends in enumerate(self.box)]
        for x, (low, high) in zip(point, self.box, strict=True):
            need(scale > 0 and low * scale <= x <= high * scale, "a point lies outside the box")
        for units in self.layers:
            point.append(scale)
            gs = {unit: sum(map(mul, self.rows[unit], point)) for unit in units}
            for unit, (low, high, _, strict) in ((unit, self.now[unit]) for unit in units):
                right = (low is None or gs[unit] >= low * scale) and (high is None or gs[unit] <= high * scale)
                need(right and (gs[unit] or not strict), f"a point is not where it should be: unit {unit}")
            point = [g * self.slopes[unit][self.kinds[unit] == 1 and g > 0] for unit, g in gs.items() if self.kinds[unit] != 2]

    def take(self, kind: str, words: list[str], *, mine: bool) -> None:  # noqa: C901
        """Go through one line; what it proves is checked if it is mine."""
        need(kind in self.seen and self.open != (kind in {"bound", "tree"}), f"'{kind:.20}' stands where it cannot")
        self.seen[kind] += 1
        self.open, (target, sign, most) = True, self.goal
        if kind == "bound":  # unit, 1 for an upper or 0 for a lower bound, number
            unit, sign = range(len(self.rows))[int(words[0])], {"0": -1, "1": 1}[words[1]]
            self.goal = (unit, sign, sign * Fraction(float.fromhex(words[2])) * (1 << self.bits[unit]))
        elif kind == "tree":  # sides of units that are given
            given, self.goal = pairs(words), (-1, 0, Fraction(0))
            need(all(any(part.get(unit, side) != side for unit, side in given.items()) for part in self.parts), "parts overlap")
            self.parts.append(given)
            for unit, side in given.items():
                self.put(unit, {0: 0, 1: 1}[side])
        elif kind == "split":  # unit
            self.put(int(words[0]), 0, split=True)
        elif kind == "fix":  # unit, side, multipliers: nothing is on the other side
            unit, side = int(words[0]), {"0": 0, "1": 1}[words[1]]
            need(not mine or self.bound(unit, 1 - 2 * side, pairs(words[2:])) <= 0, f"unit {unit} may have its other side, too")
            self.put(unit, side, strictly=False)
        elif kind == "end":  # multipliers: the bound holds here
            need(not mine or self.bound(target, sign, pairs(words)) <= most, f"a bound of unit {target} is not proved")
        else:  # numbers: here is a region
            need(target < 0 and all(state >= 0 for _, _, state, _ in self.now), "a point stands where it cannot")
            self.visit(pairs(words)) if mine else None
        turned = kind not in {"end", "point"}  # else go on on the other side of the last split, or end the bound or tree
        while self.way and not turned:
            unit, turned, self.now[unit] = self.way.pop()
            if turned:
                self.put(unit, 1)
        if not turned and target >= 0 and self.kinds[target] < 2:  # what inequalities of the domain say stays
            low, high = (self.now[target][0], most) if sign > 0 else (-most, self.now[target][1])
            known = 0 if high is not None and high <= 0 else 1 if low is not None and low >= 0 else -1
            self.now[target] = (low, high, known if self.kinds[target] == 1 else 0, False)
        self.open = turned


def check(path: str, part: int = 0, parts: int = 1) -> str:
    """Check every so many lines of a certificate, from one on: what it proves, or what is wrong with it."""
    number, lines = 0, lines_of(path)
    try:
        need(next(lines) == ["tessella", "certificate", "1"], "this is no certificate of version 1, or packed and not named .gz")
        found = Certificate(lines)
        while (words := next(lines))[0] != "sum":
            number += 1
            found.take(words[0], words[1:], mine=number % parts == part)
        bounds, trees, points, *_ = proved = list(found.seen.values())
        need(words[1:4] == [*map(str, proved[:3])] and not found.open, "more is claimed than proved")
    except Exception as error:  # noqa: BLE001  whatever goes wrong with a damaged file
        said = str(error) if isinstance(error, (ValueError, OSError, EOFError)) else f"a line is cut off or wrong ({error!r:.80})"
        return f"refused: {said[:200]}" + (f" (step {number})" if number else "")
    return f"verified: {bounds} bounds, {points} regions in {'all' if {} in found.parts else f'{trees} parts'}; {found.name}"


if __name__ == "__main__":
    path, count = [*sys.argv, "1"][1:3] if sys.argv[1:] and [*sys.argv, "1"][2] in map(str, range(1, 61)) else sys.exit(__doc__)
    answer = min(ProcessPoolExecutor(n := int(count)).map(check, [path] * n, range(n), [n] * n))  # "refused" comes first
    sys.exit(sys.stdout.write(answer + "\n") and answer.startswith("refused"))
