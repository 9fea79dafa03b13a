"""Check a certificate: ``python verify.py FILE [PROCESSES]``.  This needs Python's standard library alone; all arithmetic is exact.

Bounds: choose a number w for each unit, add w (W h + b - g) = 0 to what is to be bounded; then bound each unit's share c h(g) - w g on the range of g, and each input's.
Counts: a tree splits units (g < 0 or g > 0) and fixes others, where a bound shows that one side is all there is.  Leaves differ at a split.  Below a leaf lies at most one
region, and one if some point of the domain is strictly on the decided side of each unit that was split.  docs/explanation/certificates.md has the proofs.
"""

import gzip
import hashlib
import struct
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from operator import mul

LONGEST_LINE, LONGEST_NUMBER = 2**26, 2**17


def need(truth: bool, otherwise: str) -> None:  # noqa: FBT001  what must be true
    """Refuse the certificate unless this is true."""
    if not truth:
        raise ValueError(otherwise)


def pairs(words: list[str]) -> dict[int, int]:
    """Whole numbers to base 16 at their places, ``place:number``."""
    need(all(len(word) <= LONGEST_NUMBER for word in words), "a number is too long")
    return {int(place): int(number, 16) for place, _, number in (word.partition(":") for word in words)}


def row_of(words: list[str], size: int, last: str) -> list[float]:
    """Floating-point numbers at their places, and a last one."""
    found = {int(place): float.fromhex(number) for place, _, number in (word.partition(":") for word in words)}
    return [*(found.get(place, 0.0) for place in range(size)), float.fromhex(last)]


def scaled(values: list[float]) -> tuple[list[int], int]:
    """Whole numbers and an exponent e: the values are the numbers / 2**e."""
    ratios = [value.as_integer_ratio() for value in values]  # which infinity does not have
    most = max((below for _, below in ratios), default=1)
    return [above * (most // below) for above, below in ratios], most.bit_length() - 1


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
        """Read the first lines: the domain's box, and the network."""
        (_, inputs, layers), digest = next(lines), hashlib.sha256(b"tessella network 1")
        words = [word for _ in range(int(inputs)) for word in next(lines)[1:3]]  # each: "input", lower, upper end
        flat, self.fine = scaled([0.0 if word.endswith("inf") else float.fromhex(word) for word in words])
        ends = [None if word.endswith("inf") else number for word, number in zip(words, flat, strict=True)]
        self.box = list(zip(ends[::2], ends[1::2], strict=True))
        self.rows, self.slopes, self.kinds, width = list[list[int]](), list[int](), list[int](), int(inputs)
        self.layers = list[tuple[range, int, int]]()  # units, exponents of weights and of slopes
        for _ in range(int(layers)):
            units = [next(lines) for _ in range(int(next(lines)[1]))]  # each: kind, slope, bias, weights
            kinds = [("linear", "relu", "wall")[: 2 + (not self.rows)].index(unit[0]) for unit in units]
            rows, slopes = [row_of(unit[3:], width, unit[2]) for unit in units], [float.fromhex(unit[1]) for unit in units]
            (flat, exponent), (own, fine) = scaled([number for row in rows for number in row]), scaled(slopes)
            self.layers.append((range(len(self.rows), len(self.rows) + len(rows)), exponent, fine))
            self.rows += [flat[start : start + width + 1] for start in range(0, len(flat), width + 1)]
            self.slopes, self.kinds, width = self.slopes + own, self.kinds + kinds, len(kinds) - kinds.count(2)  # walls are last
            digest.update(identity(rows[:width], slopes[:width], [(False, True)[kind] for kind in kinds[:width]]))
        self.fingerprint, size, fixed = digest.hexdigest(), len(self.rows), [low == high for low, high in self.box]
        self.low, self.high = (list[Fraction | None]([None] * size) for _ in range(2))  # proved of g
        self.side, self.state = [2 * (kind == 2) - 1 for kind in self.kinds], [-(kind == 1) for kind in self.kinds]
        moves = (any(w and not still for w, still in zip(row, fixed, strict=False)) for row in self.rows)  # in the domain
        self.strict = [kind == 2 and moving for kind, moving in zip(self.kinds, moves, strict=True)]
        self.way, self.open, self.goal = list[tuple[int, bool]](), False, (-1, 0, Fraction(0))
        self.seen, self.whole = {"bound": 0, "tree": 0, "point": 0, "split": 0, "fix": 0, "end": 0}, False

    def put(self, unit: int, side: int, *, strictly: bool = True, split: bool = False) -> None:
        """Go on on side 0 (g <= 0) or 1 (g >= 0) of a unit, after a split later also on the other; -1 takes that back."""
        if side >= 0:
            need(0 <= unit < len(self.rows) and side < 2 and self.state[unit] < 0, "a unit cannot be decided")
            self.way.append((unit, split))
        low, high, self.side[unit], self.strict[unit] = self.low[unit], self.high[unit], side, strictly
        known = 0 if high is not None and high <= 0 else 1 if low is not None and low >= 0 else -1
        self.state[unit] = 0 if self.kinds[unit] != 1 else known if side < 0 else side  # passes slope * g on, or g, or either

    def bound(self, target: int, sign: int, given: dict[int, int]) -> Fraction:
        """An upper bound on sign * g of the target.  Numbers given, over its own, are w less what a unit of one state takes by itself."""
        scale, shares, power, rest, cs = given.pop(target), Fraction(0), 0, 0, list[int]()
        need(scale > 0 and min([target, *given]) >= 0 and max([target, *given]) < len(self.rows), "a proof names no unit")
        for units, exponent, fine in reversed([layer for layer in self.layers if layer[0].start <= max([target, *given])]):
            used = dict[int, int]()
            for unit, c in zip(units, cs + [0] * (len(units) - len(cs)), strict=True):  # whole numbers are times scale * 2**power
                own, state = given.get(unit, 0) << power + fine, self.state[unit]
                w = own + (0 if state < 0 else c << fine if state else c * self.slopes[unit])
                if own or (c and state < 0):
                    below, above = (c * self.slopes[unit] - w, (c << fine) - w) if state < 0 else (-own, -own)
                    low, high = 0 if self.side[unit] == 1 else self.low[unit], 0 if self.side[unit] == 0 else self.high[unit]
                    need((low is not None or below >= 0) and (high is not None or above <= 0), f"unit {unit} has no bound")
                    shares += max(Fraction(0), below * Fraction(low or 0), above * Fraction(high or 0)) / (1 << power + fine)
                w += (sign * scale << power + fine) if unit == target else 0
                used |= {unit: w} if w else {}
            columns = zip(*(self.rows[unit] for unit in used), strict=True)
            *cs, bias = [sum(map(mul, used.values(), column)) for column in columns] or [0] * len(self.rows[units[0]])
            power, rest = power + exponent + fine, (rest << exponent + fine) + bias
        ends = [(c, high if c > 0 else low) for c, (low, high) in zip(cs, self.box, strict=True) if c]
        need(all(end is not None for _, end in ends), "an input has no such end")
        return (shares + Fraction((rest << self.fine) + sum(c * (end or 0) for c, end in ends), 1 << power + self.fine)) / scale

    def contains(self, numbers: dict[int, int]) -> bool:
        """Whether a point is where it should be: numbers over that at -1 or, where -2 has a bit, upper ends, else lower ends of inputs."""
        scale, upper = numbers.pop(-1), numbers.pop(-2)
        ends = [(high if upper >> place & 1 else low) or 0 for place, (low, high) in enumerate(self.box)]
        point, one = [numbers[k] << self.fine if k in numbers else end * scale for k, end in enumerate(ends)], scale << self.fine
        for x, (low, high) in zip(point, self.box, strict=True):
            need((low is None or x >= low * scale) and (high is None or x <= high * scale), "a point lies outside the box")
        for units, exponent, fine in self.layers:
            point = [*point[: len(self.rows[units[0]]) - 1], one]
            gs = [(unit, sum(map(mul, self.rows[unit], point))) for unit in units]
            wrong = [unit for unit, g in gs if (self.strict[unit] if g == 0 else self.side[unit] == (g < 0))]
            need(scale > 0 and not wrong, f"a point is not where it should be: units {wrong}")
            point = [g << fine if self.kinds[unit] == 1 and g > 0 else g * self.slopes[unit] for unit, g in gs]
            one <<= exponent + fine
        return True

    def take(self, kind: str, words: list[str], *, mine: bool) -> None:
        """Go through one line; what it proves is checked if it is mine."""
        need(self.open != (kind in {"bound", "tree"}), f"'{kind}' stands where it cannot")
        self.seen[kind] += 1
        self.open, (target, sign, most) = True, self.goal
        if kind == "bound":  # unit, 1 for an upper or 0 for a lower bound, number
            sign = 2 * (words[1] == "1") - 1
            self.goal = (range(len(self.rows))[int(words[0])], sign, sign * Fraction(float.fromhex(words[2])))
            need(self.kinds[self.goal[0]] != 2, "an inequality of the domain is given, not proved")
        elif kind == "tree":  # sides of units that are given
            self.goal, self.whole = (-1, 0, Fraction(0)), self.whole or not words
            for unit, side in pairs(words).items():
                self.put(unit, side)
        elif kind == "split":  # unit
            self.put(int(words[0]), 0, split=True)
        elif kind == "fix":  # unit, side, multipliers: nothing is on the other side
            unit, side = int(words[0]), int(words[1])
            need(not mine or self.bound(unit, 1 - 2 * side, pairs(words[2:])) <= 0, f"unit {unit} may have its other side, too")
            self.put(unit, side, strictly=False)
        elif kind == "end":  # multipliers: the bound holds here
            need(not mine or self.bound(target, sign, pairs(words)) <= most, f"a bound of unit {target} is not proved")
            self.turn()
        else:  # numbers: here is a region
            need(target < 0 and min(self.state) >= 0, "a point stands where it cannot")
            need(not mine or self.contains(pairs(words)), "a point is wrong")
            self.turn()

    def turn(self) -> None:
        """Go on on the other side of the last split, or end the bound or tree."""
        while self.way:
            unit, split = self.way.pop()
            self.put(unit, -1)
            if split:
                return self.put(unit, 1)
        self.open, (target, sign, most) = False, self.goal
        if target >= 0:
            (self.high if sign > 0 else self.low)[target] = sign * most
            self.put(target, -1)
        return None


def check(path: str, part: int = 0, parts: int = 1) -> str:
    """Check every so many lines of a certificate, from one on: what it proves, or what is wrong with it."""
    number, digest, last = 0, hashlib.sha256(), b""
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
            for line in iter(lambda: file.readline(LONGEST_LINE), b""):
                digest.update(last)  # of all lines but the last, which holds the checksum
                last = line
            need(last.split()[-1:] == [digest.hexdigest().encode()], "the file was changed, is not whole, or is no certificate")
            file.seek(0)
            lines = (line.decode("ascii").split() for line in iter(lambda: file.readline(LONGEST_LINE), b""))
            need(next(lines) == ["tessella", "certificate", "1"], "this is no certificate of version 1")
            found = Certificate(lines)
            while (words := next(lines))[0] != "sum":
                number += 1
                found.take(words[0], words[1:], mine=number % parts == part)
            bounds, trees, points, *_ = proved = list(found.seen.values())
            need(words[1:4] == [*map(str, proved[:3])] and not found.open, "more is claimed than proved")
            need(trees < 2 or not found.whole, "regions are counted twice")
    except Exception as error:  # noqa: BLE001  whatever goes wrong with a damaged file
        return f"refused: {str(error)[:200] or type(error).__name__}" + (f" (step {number})" if number else "")
    return f"verified: {bounds} bounds, {points} regions in {'all' if found.whole else f'{trees} parts'}; network {found.fingerprint}"


if __name__ == "__main__":
    path, count = [*sys.argv, "1"][1:3] if len(sys.argv) > 1 else sys.exit(__doc__)
    answer = min(ProcessPoolExecutor(n := int(count)).map(check, [path] * n, range(n), [n] * n))  # "refused" comes first
    sys.stdout.write(answer + "\n")
    sys.exit(answer.startswith("refused"))
