"""Which regions share a wall, in whole numbers, pair by pair: slow, exact, and without a line in common with what it checks.

Two regions share a wall if their closures have a set of one dimension less than the free inputs in common.  This set lies in one hyperplane, which
bounds both.  On it, one input follows from the others; what is left of the rows of both regions must be positive at one point, but for rows that are 0 on
all of the hyperplane.  Layers and domains are those of `helpers.brute_force`.  There are two ways: `graph_of_regions` decides by Bland's simplex, and
`graph_anywhere`, for unbounded domains, too, by elimination (Fourier and Motzkin).
"""

from fractions import Fraction
from itertools import combinations

from helpers.brute_force import Dictionary, Pattern, Problem, Row, has_open_solution, preactivations, primitive, walk, whole
from helpers.brute_force_anywhere import cells_anywhere


def graph_of_regions(layers, lower, upper, matrix=None, offset=None) -> tuple[set[Pattern], set[frozenset[Pattern]]]:
    """All regions, and the pairs of them that share a wall."""
    problem = Problem.of(layers, lower, upper, matrix, offset)
    rows = {pattern: set(map(tuple, region_rows(problem, pattern))) for pattern in walk(problem)}
    edges = set[frozenset[Pattern]]()
    for one, other in combinations(rows, 2):
        between = [row for row in rows[one] if tuple(-entry for entry in row) in rows[other]]
        if any(share(problem, list(wall), [*rows[one], *rows[other]]) for wall in between):
            edges.add(frozenset({one, other}))
    return set(rows), edges


def region_rows(problem: Problem, pattern: Pattern) -> list[Row]:
    """What is not negative on a region, without common factors; constant rows are left out."""
    inputs, scale, place, found = problem.inputs, problem.scale, 0, list[Row]()
    for layer in problem.layers:
        outputs = []
        for unit, row in enumerate(preactivations(layer, inputs, scale)):
            active = True
            if layer.rectified[unit]:
                active = pattern[place]
                place += 1
                if any(row[1:]):
                    found.append(primitive(row if active else [-entry for entry in row]))
            outputs.append(layer.passed(unit, row, active))
        inputs, scale = outputs, scale * layer.growth
    return found


def share(problem: Problem, wall: Row, rows: list) -> bool:
    """Whether rows, those of the domain among them, are positive at one point of a hyperplane, but for those that are 0 on all of it."""
    column = next(place for place, entry in enumerate(wall) if place and entry)
    pivot, own_rows = wall[column], len(problem.domain) + 2 * problem.free
    ends = [[0, *(int(place == axis) for place in range(problem.free))] for axis in range(problem.free)]
    there, kept = [], [place for place in range(len(wall)) if place != column]
    for number, row in enumerate([*problem.domain, *problem.box, *ends, *rows]):
        reduced = [
            entry * abs(pivot) - (1 if pivot > 0 else -1) * row[column] * own for entry, own in zip(row, wall, strict=True)
        ]
        if any(reduced):
            there.append(primitive([reduced[place] for place in kept]))
        elif number < own_rows and any(row[1:]):
            return False  # the hyperplane bounds the domain
    box = [[row[place] for place in kept] for axis, row in enumerate(problem.box) if axis != column - 1]
    if any(row[0] <= 0 and not any(row[1:]) for row in there):
        return False
    if problem.free == 1:
        return True
    cell = Dictionary(box, list(range(problem.free - 1, 2 * problem.free - 2)), list(range(problem.free - 1)), 1)
    for row in {tuple(row) for row in there if any(row[1:])}:
        found = cell.positive(cell.express(list(row)))
        if found is None:
            return False
        cell = found[0].with_wall(found[1])
    return True


def graph_anywhere(layers, lower, upper, matrix=None, offset=None) -> tuple[set[Pattern], set[frozenset[Pattern]]]:
    """The same on any domain; slower."""
    cells = cells_anywhere(layers, lower, upper, matrix, offset)
    rows = {pattern: {_whole(row) for row in cell} for pattern, cell in cells.items()}
    edges = set[frozenset[Pattern]]()
    for one, other in combinations(rows, 2):
        between = [row for row in rows[one] if tuple(-entry for entry in row) in rows[other]]
        if any(_meet(wall, rows[one] | rows[other]) for wall in between):
            edges.add(frozenset({one, other}))
    return set(rows), edges


def _whole(row: list[Fraction]) -> tuple[int, ...]:
    return tuple(primitive(whole([row])[0][0]))


def _meet(wall: tuple[int, ...], rows: set[tuple[int, ...]]) -> bool:
    """Whether rows are positive at one point of a hyperplane, but for those that are 0 on all of it."""
    column = next(place for place, entry in enumerate(wall) if place and entry)
    left, pivot, sign = list[Row](), abs(wall[column]), 1 if wall[column] > 0 else -1
    for row in rows:
        reduced = [entry * pivot - sign * row[column] * own for entry, own in zip(row, wall, strict=True)]
        if any(reduced):
            left.append(primitive([entry for place, entry in enumerate(reduced) if place != column]))
    if any(row[0] <= 0 and not any(row[1:]) for row in left):
        return False
    left = [row for row in left if any(row[1:])]
    return not left or has_open_solution(left)
