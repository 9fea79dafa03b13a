"""The number of regions in integer arithmetic: slow, exact, and without a line in common with what it checks.

A float is a whole number times a power of two, so a network of floats on a box of floats has preactivations with whole-number
coefficients, up to positive factors.  `region_patterns` walks the units in order.  A cell is held as a *dictionary* of the
simplex method (Edmonds' pivots: whole numbers over one denominator), always at a vertex of the cell.  A cell with an interior
has an interior on the positive side of a hyperplane if and only if some vertex lies strictly on that side; Bland's rule finds
one or proves that there is none.  Three other ways cross-check it: `patterns_on_a_line` sorts break points,
`patterns_in_the_plane` splits polygons, and `patterns_by_elimination` (Fourier and Motzkin) tries all patterns of a very small
network.

A region is a pattern whose inputs have an interior relative to the free inputs (those with ``lower < upper``).  A unit that is
at most 0 all over a cell is inactive there, and one that is constant is active if that constant is positive.

Layers are ``(weight, bias, rectified)``, or ``(weight, bias, rectified, slopes)`` with a slope for the inactive side of each unit; a domain is a box, and optionally ``matrix @ x <= offset``.
"""

import itertools
from collections.abc import Iterator
from fractions import Fraction
from math import gcd
from operator import mul
from typing import NamedTuple

import numpy as np

Pattern = tuple[bool, ...]
Row = list[int]


def count_regions(layers, lower, upper, matrix=None, offset=None) -> int:
    """How many regions there are."""
    return sum(1 for _ in walk(Problem.of(layers, lower, upper, matrix, offset)))


def region_patterns(layers, lower, upper, matrix=None, offset=None) -> set[Pattern]:
    """The patterns of all regions, one truth value per rectified unit."""
    found = list(walk(Problem.of(layers, lower, upper, matrix, offset)))
    patterns = set(found)
    assert len(patterns) == len(found)
    return patterns


# --- floats become whole numbers


class WholeLayer(NamedTuple):
    """A layer multiplied by a power of two.

    An inactive unit passes `slopes` times what comes in, all others `unit` times; what is passed on is so many times too large.
    """

    weight: list[Row]
    bias: Row
    rectified: list[bool]
    scale: int
    slopes: list[int]
    unit: int

    @property
    def growth(self) -> int:
        return self.scale * self.unit

    def passed(self, unit: int, row: Row, active: bool) -> Row:
        factor = self.unit if active or not self.rectified[unit] else self.slopes[unit]
        return [factor * entry for entry in row]


class Problem(NamedTuple):
    """A network over the free inputs u, where x = lower + u.

    Rows are ``[constant, coefficients]`` in u, up to positive factors; `inputs` are all multiplied by `scale`.
    """

    free: int
    box: list[Row]
    domain: list[Row]
    inputs: list[Row]
    scale: int
    layers: list[WholeLayer]

    @classmethod
    def of(cls, layers, lower, upper, matrix=None, offset=None) -> "Problem":
        low, high = fractions(lower), fractions(upper)
        free = [number for number, (a, b) in enumerate(zip(low, high, strict=True)) if a < b]
        units = [[Fraction(int(number == column)) for column in free] for number in range(len(low))]
        inputs, scale = whole([[a, *unit] for a, unit in zip(low, units, strict=True)])
        box = [[b - a, *(-one for one in units[number])] for number, (a, b) in enumerate(zip(low, high, strict=True)) if a < b]
        domain = []
        for row, limit in [] if matrix is None else zip(np.asarray(matrix), fractions(offset), strict=True):
            normal = fractions(row)
            domain.append([limit - sum(map(mul, normal, low)), *(-normal[column] for column in free)])
        made = []
        for weight, bias, rectified, *rest in layers:
            rows, factor = whole([[b, *fractions(w)] for w, b in zip(np.asarray(weight), fractions(bias), strict=True)])
            mask = [bool(one) for one in np.broadcast_to(np.asarray(rectified, dtype=bool), len(rows))]
            slopes = fractions(np.broadcast_to(np.asarray(rest[0] if rest else 0.0, dtype=float), len(rows)))
            (slopes,), unit = whole([slopes])
            made.append(WholeLayer([row[1:] for row in rows], [row[0] for row in rows], mask, factor, slopes, unit))
        return cls(
            len(free), [primitive(whole([row])[0][0]) for row in box], [whole([row])[0][0] for row in domain], inputs, scale, made
        )


def fractions(values) -> list[Fraction]:
    return [Fraction(float(value)) for value in np.asarray(values, dtype=float).ravel()]


def whole(rows: list[list[Fraction]]) -> tuple[list[Row], int]:
    """All rows times one number that makes them whole."""
    scale = max((entry.denominator for row in rows for entry in row), default=1)  # powers of two: the largest is common
    return [[entry.numerator * (scale // entry.denominator) for entry in row] for row in rows], scale


def primitive(row: Row) -> Row:
    divisor = gcd(*row)
    return [entry // divisor for entry in row] if divisor > 1 else row


def preactivations(layer: WholeLayer, inputs: list[Row], scale: int) -> list[Row]:
    """Rows times ``scale * layer.scale``, where `inputs` are times `scale`."""
    columns = list(zip(*inputs, strict=True))
    rows = []
    for weight, bias in zip(layer.weight, layer.bias, strict=True):
        row = [sum(map(mul, weight, column)) for column in columns]
        row[0] += bias * scale
        rows.append(row)
    return rows


# --- the walk


class Dictionary(NamedTuple):
    """A vertex of a cell: ``denominator * variable = row[0] + row[1:] @ free variables``, and every variable is >= 0.

    Variables 0, 1, ... are the inputs u, and then the slacks of walls in the order in which they came.
    """

    rows: list[Row]
    basic: list[int]
    free: list[int]
    denominator: int

    def express(self, row: Row) -> Row:
        """A row in u, times the denominator, in the free variables."""
        result = [row[0] * self.denominator] + [0] * len(self.free)
        for coefficient, variable in zip(row[1:], range(len(self.free)), strict=True):
            if coefficient:
                if variable in self.free:
                    result[1 + self.free.index(variable)] += coefficient * self.denominator
                else:
                    source = self.rows[self.basic.index(variable)]
                    result = [a + coefficient * b for a, b in zip(result, source, strict=True)]
        return result

    def with_wall(self, row: Row) -> "Dictionary":
        """The part of the cell where this expression, which is positive here, is at least 0."""
        return Dictionary([*self.rows, row], [*self.basic, max(*self.basic, *self.free) + 1], self.free, self.denominator)

    def positive(self, row: Row) -> "tuple[Dictionary, Row] | None":
        """A vertex where this expression is positive, and the expression there; None if there is none."""
        here = self
        while row[0] <= 0:
            columns = [column for column in range(1, len(row)) if row[column] > 0]
            if not columns:
                return None
            column = min(columns, key=lambda column: here.free[column - 1])  # Bland: never a cycle
            here, row = here.pivot(column, row)
        return here, row

    def pivot(self, column: int, row: Row) -> "tuple[Dictionary, Row]":
        """Let a free variable grow until a wall stops it; the cell is bounded, so one does."""
        leaving = -1
        for number, candidate in enumerate(self.rows):
            if candidate[column] < 0:
                if leaving >= 0:
                    best = self.rows[leaving]
                    difference = candidate[0] * best[column] - best[0] * candidate[column]  # > 0: stops earlier
                    if difference < 0 or (difference == 0 and self.basic[number] > self.basic[leaving]):
                        continue
                leaving = number
        stop, before = self.rows[leaving], self.denominator
        denominator = -stop[column]

        def exchanged(row: Row) -> Row:
            factor = row[column]
            if not factor:
                return row if denominator == before else [entry * denominator // before for entry in row]
            new = [(entry * denominator + factor * other) // before for entry, other in zip(row, stop, strict=True)]
            new[column] = -factor
            return new

        rows = [exchanged(old) for old in self.rows]
        rows[leaving] = stop.copy()
        rows[leaving][column] = -before
        basic, free = self.basic.copy(), self.free.copy()
        basic[leaving], free[column - 1] = free[column - 1], basic[leaving]
        return Dictionary(rows, basic, free, denominator), exchanged(row)


def walk(problem: Problem) -> Iterator[Pattern]:
    """Yield every region's pattern once."""
    cell = Dictionary(problem.box, list(range(problem.free, 2 * problem.free)), list(range(problem.free)), 1)
    for row in problem.domain:
        if not any(row[1:]):
            if row[0] < 0:
                return
            continue
        found = cell.positive(cell.express(primitive(row)))
        if found is None:
            return
        cell = found[0].with_wall(found[1])
    yield from _layer(problem, 0, problem.inputs, problem.scale, cell, ())


def _layer(problem: Problem, number: int, inputs: list[Row], scale: int, cell: Dictionary, pattern: Pattern) -> Iterator[Pattern]:
    if number == len(problem.layers):
        yield pattern
        return
    layer = problem.layers[number]
    rows = preactivations(layer, inputs, scale)
    units = [unit for unit, rectified in enumerate(layer.rectified) if rectified]
    for below, states in _units(rows, units, 0, cell, ()):
        active = dict(zip(units, states, strict=True))
        outputs = [layer.passed(unit, row, active.get(unit, True)) for unit, row in enumerate(rows)]
        yield from _layer(problem, number + 1, outputs, scale * layer.growth, below, pattern + states)


def _units(
    rows: list[Row], units: list[int], place: int, cell: Dictionary, states: Pattern
) -> Iterator[tuple[Dictionary, Pattern]]:
    if place == len(units):
        yield cell, states
        return
    row = rows[units[place]]
    if not any(row[1:]):
        yield from _units(rows, units, place + 1, cell, (*states, row[0] > 0))
        return
    expression = cell.express(primitive(row))
    sides = [(True, cell.positive(expression)), (False, cell.positive([-entry for entry in expression]))]
    both = all(found is not None for _, found in sides)
    for state, found in sides:
        if found is not None:  # a unit that does not cut the cell adds no wall
            yield from _units(rows, units, place + 1, found[0].with_wall(found[1]) if both else cell, (*states, state))


# --- three other ways


def patterns_on_a_line(layers, lower, upper, matrix=None, offset=None) -> set[Pattern]:
    """For one free input: all break points of a layer, sorted, split the intervals of the layers before."""
    problem = Problem.of(layers, lower, upper, matrix, offset)
    assert problem.free == 1
    low, high = Fraction(0), Fraction(problem.box[0][0], -problem.box[0][1])
    for constant, slope in problem.domain:
        if slope == 0:
            high = high if constant >= 0 else low
        elif slope > 0:
            low = max(low, Fraction(-constant, slope))
        else:
            high = min(high, Fraction(constant, -slope))
    pieces = [(low, high, problem.inputs, ())] if low < high else []
    scale = problem.scale
    for layer in problem.layers:
        cut = []
        for low, high, inputs, pattern in pieces:
            rows = preactivations(layer, inputs, scale)
            roots = {
                Fraction(-row[0], row[1]) for row, rectified in zip(rows, layer.rectified, strict=True) if rectified and row[1]
            }
            ends = [low, *sorted(root for root in roots if low < root < high), high]
            for left, right in itertools.pairwise(ends):
                middle = (left + right) / 2
                active = [
                    not rectified or row[0] + row[1] * middle > 0 for row, rectified in zip(rows, layer.rectified, strict=True)
                ]
                states = tuple(state for state, rectified in zip(active, layer.rectified, strict=True) if rectified)
                outputs = [layer.passed(unit, row, state) for unit, (row, state) in enumerate(zip(rows, active, strict=True))]
                cut.append((left, right, outputs, pattern + states))
        pieces, scale = cut, scale * layer.growth
    return {pattern for *_, pattern in pieces}


def patterns_in_the_plane(layers, lower, upper, matrix=None, offset=None) -> set[Pattern]:
    """For two free inputs: polygons with rational corners, split by one line after the other."""
    problem = Problem.of(layers, lower, upper, matrix, offset)
    assert problem.free == 2
    width, height = (Fraction(row[0], -row[1 + axis]) for axis, row in enumerate(problem.box))
    zero = Fraction(0)
    polygon = [(zero, zero), (width, zero), (width, height), (zero, height)]
    for row in problem.domain:
        polygon = clipped(polygon, row) if any(row[1:]) else polygon if row[0] >= 0 else []
    pieces = [(polygon, problem.inputs, ())] if polygon else []
    scale = problem.scale
    for layer in problem.layers:
        cut = []
        for polygon, inputs, pattern in pieces:
            rows = preactivations(layer, inputs, scale)
            parts = [(polygon, [layer.passed(unit, row, True) for unit, row in enumerate(rows)], pattern)]
            for unit, (row, rectified) in enumerate(zip(rows, layer.rectified, strict=True)):
                if rectified:
                    parts = [part for piece in parts for part in split_at(piece, unit, row, layer)]
            cut += parts
        pieces, scale = cut, scale * layer.growth
    return {pattern for *_, pattern in pieces}


def split_at(piece, unit: int, row: Row, layer: WholeLayer):
    polygon, outputs, pattern = piece
    off = [layer.passed(unit, row, False) if number == unit else output for number, output in enumerate(outputs)]
    if not any(row[1:]):
        return [(polygon, outputs if row[0] > 0 else off, (*pattern, row[0] > 0))]
    sides = ((outputs, True, clipped(polygon, row)), (off, False, clipped(polygon, [-entry for entry in row])))
    return [(part, values, (*pattern, state)) for values, state, part in sides if part]


def clipped(polygon: list[tuple[Fraction, Fraction]], row: Row) -> list[tuple[Fraction, Fraction]]:
    """The part of a convex polygon on the positive side of a line; empty if it has no area."""
    values = [row[0] + row[1] * x + row[2] * y for x, y in polygon]
    if not any(value > 0 for value in values):
        return []
    result = []
    for number, (corner, value) in enumerate(zip(polygon, values, strict=True)):
        other, there = polygon[number - 1], values[number - 1]
        if value * there < 0:
            share = value / (value - there)
            result.append(tuple(a + share * (b - a) for a, b in zip(corner, other, strict=True)))
        if value >= 0:
            result.append(corner)
    return result


def patterns_by_elimination(layers, lower, upper, matrix=None, offset=None) -> set[Pattern]:
    """For very small networks: try every pattern, and eliminate the inputs of its inequalities one by one."""
    problem = Problem.of(layers, lower, upper, matrix, offset)
    if any(row[0] < 0 and not any(row[1:]) for row in problem.domain):
        return set()
    walls = [row for row in problem.domain if any(row[1:])] + problem.box
    walls += [[0, *(int(column == axis) for column in range(problem.free))] for axis in range(problem.free)]
    units = sum(sum(layer.rectified) for layer in problem.layers)
    found = set()
    for number in range(2**units):
        pattern = tuple(bool(number >> place & 1) for place in range(units))
        rows, place, inputs, scale, possible = list(walls), 0, problem.inputs, problem.scale, True
        for layer in problem.layers:
            rows_here = preactivations(layer, inputs, scale)
            outputs = [layer.passed(unit, row, True) for unit, row in enumerate(rows_here)]
            scale *= layer.growth
            for unit in np.flatnonzero(layer.rectified):
                row, active = rows_here[unit], pattern[place]
                place += 1
                if any(row[1:]):
                    rows.append(row if active else [-entry for entry in row])
                else:
                    possible &= active == (row[0] > 0)
                if not active:
                    outputs[unit] = layer.passed(unit, row, False)
            inputs = outputs
        if possible and has_open_solution(rows):
            found.add(pattern)
    return found


def has_open_solution(rows: list[Row]) -> bool:
    """Whether all rows can be positive at once (Fourier and Motzkin, with strict inequalities)."""
    rows = list({tuple(primitive(row)) for row in rows})
    while rows and len(rows[0]) > 1:
        up, down = [row for row in rows if row[-1] > 0], [row for row in rows if row[-1] < 0]
        pairs = ([a * -low[-1] + b * high[-1] for a, b in zip(high[:-1], low[:-1], strict=True)] for high in up for low in down)
        rows = list({tuple(primitive(row)) for row in [*(list(row[:-1]) for row in rows if row[-1] == 0), *pairs]})
        if any(not any(row[1:]) and row[0] <= 0 for row in rows):
            return False
    return all(row[0] > 0 for row in rows)
