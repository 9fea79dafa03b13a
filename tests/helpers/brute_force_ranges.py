"""The exact range of every unit before its ReLU, in rational arithmetic: the largest and smallest vertex of every cell.

Layers and domains are those of `helpers.brute_force`.  Every region of the layers before a unit is a polytope on which the unit is affine, and Bland's
simplex finds its largest and smallest value there.  Regions without an interior lie on the boundary of others, so they add nothing.
"""

from fractions import Fraction

from helpers.brute_force import Dictionary, Problem, Row, _units, preactivations, primitive

Range = tuple[Fraction, Fraction]


def unit_ranges(layers, lower, upper, matrix=None, offset=None) -> list[list[Range]]:
    """For each layer, the smallest and the largest preactivation of each unit."""
    problem = Problem.of(layers, lower, upper, matrix, offset)
    found: list[list[Range | None]] = [[None] * len(layer.bias) for layer in problem.layers]
    cell = Dictionary(problem.box, list(range(problem.free, 2 * problem.free)), list(range(problem.free)), 1)
    for row in problem.domain:
        if any(row[1:]):
            cell = _within(cell, row)
    _widen(problem, 0, problem.inputs, problem.scale, cell, found)
    return found


def _within(cell: Dictionary, row: Row) -> Dictionary:
    inside = cell.positive(cell.express(primitive(row)))
    assert inside is not None
    return inside[0].with_wall(inside[1])


def largest(cell: Dictionary, row: Row) -> Fraction:
    """The largest value of an expression in the inputs."""
    here, row = cell, cell.express(row)
    while columns := [column for column in range(1, len(row)) if row[column] > 0]:
        here, row = here.pivot(min(columns, key=lambda column: here.free[column - 1]), row)
    return Fraction(row[0], here.denominator)


def _widen(problem: Problem, number: int, inputs: list[Row], scale: int, cell: Dictionary, found) -> None:
    if number == len(problem.layers):
        return
    layer = problem.layers[number]
    rows = preactivations(layer, inputs, scale)
    times = scale * layer.scale
    for unit, row in enumerate(rows):
        low, high = -largest(cell, [-entry for entry in row]) / times, largest(cell, row) / times
        known = found[number][unit]
        found[number][unit] = (low, high) if known is None else (min(low, known[0]), max(high, known[1]))
    units = [unit for unit, rectified in enumerate(layer.rectified) if rectified]
    for below, states in _units(rows, units, 0, cell, ()):
        active = dict(zip(units, states, strict=True))
        outputs = [layer.passed(unit, row, active.get(unit, True)) for unit, row in enumerate(rows)]
        _widen(problem, number + 1, outputs, scale * layer.growth, below, found)
