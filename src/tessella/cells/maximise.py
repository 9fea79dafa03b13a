"""Whether a row is positive in a cell, by a simplex method over all inputs; compiled with Numba.

It maximises the row, by the steps of `tessella.cells.dual`, and is the last to be asked: for what mixtures of a few tips leave open.  Every iterate gives an upper bound of the row, so the
search ends when that is negative: the multipliers prove it, in double precision.  And every iterate, with its inputs put into their box and pulled into the cell, may be a point on the
wanted side.  It starts from rows that are worth being tight, or from the basis that was last used for a question of the same kind in another cell, with those of its rows that this cell
has and whose multipliers are not negative: such a basis is dual feasible, whatever the cell.  Costs are perturbed and in single precision; they choose the path and prove nothing.

It works in state 0 of the cell's bases.
"""

import numpy as np

from tessella.cells.dual import coefficient, direct, exchange, find_values, go, is_tight, length, ratio_test, rough_length
from tessella.cells.emptiness import is_negative
from tessella.cells.mixtures import Inside, share_of_deeper
from tessella.cells.pricing import price
from tessella.cells.rows import value
from tessella.cells.state import FEASIBLE, INFEASIBLE, UNCLEAR, Cell
from tessella.kernel import basis
from tessella.kernel.functions import apart, compiled, inlined
from tessella.kernel.record import Matrix, Record, Singles, Vector, Whole, WholeMatrix, aligned, zeros
from tessella.numerics import CLOSE, EDGE, SEEN, SLACK, SURE

_NOISE = 1e-9  # of costs, against ties
_RATIO = 0.1  # a point is taken if it reaches this share of the bound
_CHOICE = 2  # basic inputs whose distance from their ends is measured
_REFACTOR_EVERY = 120  # pivots
_RESTARTS = 4
_NEGATIVE = -1e-7  # multipliers below this are not let in
_INDEPENDENT = 1e-3  # the least pivot of a row that is let in, as a part of its largest coefficient
_border, _shrink, _times, _times_left = basis.border, basis.shrink, basis.times, basis.times_left


class Starts(Record):
    """The bases that questions begin with: per key, and in the last line the last one of all.

    Line key: rows with codes[key, :sizes[key]] and inputs[key, :numbers[key]]; size -1 if there is none.
    """

    sizes: Whole
    numbers: Whole
    codes: WholeMatrix
    inputs: WholeMatrix
    noise: Singles  # of the inputs' costs
    # memory for beginning
    rows: Whole  # of this cell, that are wanted tight
    taken: Whole  # whether the input in a place of the line is basic already
    places: Whole  # in the line, of basic inputs
    products: Matrix  # coefficients of tight rows at all inputs of the line
    goal: Vector  # coefficients of the row asked about at basic inputs

    @classmethod
    def of(cls, cell: Cell, keys: int, rng: np.random.Generator) -> "Starts":
        """Nothing was asked yet."""
        places, inputs = cell.bases.tight.shape[1], cell.space.inputs
        sizes = np.full(keys + 1, -1, dtype=np.int64)
        sizes[-1] = 0
        noise = _NOISE * rng.uniform(0.5, 1.0, inputs) * rng.choice((-1.0, 1.0), inputs)
        return cls(
            sizes=sizes,
            numbers=np.zeros(keys + 1, dtype=np.int64),
            codes=zeros(keys + 1, places, kind=np.int64),
            inputs=zeros(keys + 1, places, kind=np.int64),
            noise=aligned(noise.astype(np.float32)),
            rows=np.zeros(max(places, len(cell.rows)), dtype=np.int64),
            taken=np.zeros(places, dtype=np.int64),
            places=np.zeros(places, dtype=np.int64),
            products=zeros(places, places),
            goal=zeros(places),
        )


@compiled
def _save(starts: Starts, cell: Cell, key: int) -> None:
    """Note the basis for the next question of this kind, and as the last one of all."""
    bases, last = cell.bases, len(starts.sizes) - 1
    k = bases.size[0]
    for line in (key, last):
        starts.sizes[line] = starts.numbers[line] = k
        for q in range(k):
            starts.codes[line, q] = cell.codes[bases.tight[0, q]]
            starts.inputs[line, q] = bases.basic[0, q]


@inlined
def _adopt(starts: Starts, cell: Cell, key: int) -> None:
    """Let the last line be the rows that the cell's proof lists, if any, else those of the key's line, with the inputs of that line."""
    proof, last = cell.proof, len(starts.sizes) - 1
    line = key if starts.sizes[key] >= 0 else last
    size, number = proof.size, starts.numbers[line]
    if size == 0:
        size = starts.sizes[line]
        for q in range(size):
            starts.codes[last, q] = starts.codes[line, q]
    else:
        size = min(size, starts.codes.shape[1])
        for q in range(size):
            starts.codes[last, q] = cell.codes[proof.rows[q]]
    for q in range(number):
        starts.inputs[last, q] = starts.inputs[line, q]
    starts.sizes[last], starts.numbers[last] = size, number


@inlined
def _list_rows(starts: Starts, cell: Cell, line: int, position: int) -> int:
    """List the rows of a line that this cell has; their number."""
    found = 0
    for i in range(starts.sizes[line]):
        code = starts.codes[line, i]
        row = -1 - code
        if code >= 0:
            unit = code >> 1
            row = cell.row_of[unit] if unit < position else -1
            if row < 0:
                continue
        starts.rows[found] = row
        found += 1
    return found


@inlined
def _let_in(starts: Starts, cell: Cell, line: int, row: int) -> None:
    """Let a row be tight, and an input of the line basic, if the row is independent of those that are tight."""
    bases, products, k = cell.bases, starts.products, cell.bases.size[0]
    inverse, number, most = bases.inverse[0], starts.numbers[line], 0.0
    for q in range(number):
        products[k, q] = coefficient(cell.rows[row], cell.space.columns[starts.inputs[line, q]])
        most = max(most, abs(products[k, q]))
    for q in range(k):
        bases.coefficients[q] = products[k, starts.places[q]]
    _times_left(bases.coefficients, inverse, k, bases.pivot_row)
    best, spot, pivot = _INDEPENDENT * most, -1, 0.0
    for q in range(number):
        if starts.taken[q]:
            continue
        rest = products[k, q]
        for t in range(k):
            rest -= bases.pivot_row[t] * products[t, q]
        if abs(rest) > best:
            best, spot, pivot = abs(rest), q, rest
    if spot < 0 or k + 1 >= bases.tight.shape[1]:
        return
    for t in range(k):
        bases.coefficients[t] = products[t, spot]
    _times(inverse, k, bases.coefficients, bases.column)
    _border(inverse, k, bases.pivot_row, bases.column, pivot)
    starts.taken[spot], starts.places[k] = 1, spot
    bases.tight[0, k], bases.basic[0, k], bases.size[0] = row, starts.inputs[line, spot], k + 1


@inlined
def _drop_negative(starts: Starts, cell: Cell, r: int) -> None:
    """Find the multipliers for row r as the goal, and let rows go, worst first, while some are negative."""
    bases, goal, columns = cell.bases, starts.goal, cell.space.columns
    inverse, multipliers, tight, basic = bases.inverse[0], bases.multipliers[0], bases.tight[0], bases.basic[0]
    for q in range(bases.size[0]):
        goal[q] = coefficient(cell.rows[r], columns[basic[q]]) + starts.noise[basic[q]]
    while True:
        k, worst, gone = bases.size[0], _NEGATIVE, -1
        _times_left(goal, inverse, k, multipliers)
        for t in range(k):
            multipliers[t] = -multipliers[t]
            if multipliers[t] < worst:
                worst, gone = multipliers[t], t
        if gone < 0:
            return
        leaving = 0
        for q in range(k):
            if abs(inverse[q, gone]) > abs(inverse[leaving, gone]):
                leaving = q
        _shrink(inverse, k, leaving, gone)
        basic[leaving], tight[gone], goal[leaving], bases.size[0] = basic[k - 1], tight[k - 1], goal[k - 1], k - 1


@inlined
def _set_costs(starts: Starts, cell: Cell, r: int) -> None:
    """Find the costs that belong to the multipliers, and where inputs that are not basic add up to."""
    bases, rows, space, combination, slopes = cell.bases, cell.rows, cell.space, cell.work.combination, cell.work.slopes
    costs, base, rates, p = bases.costs[0], bases.base[0], cell.pricing.rates, len(space.frame)
    for c in range(p):
        combination[c] = rows[r, c]
    for t in range(bases.size[0]):
        rate, row = bases.multipliers[0, t], bases.tight[0, t]
        for c in range(p):
            combination[c] += rate * rows[row, c]
    price(space.light, combination, rates)
    for j in range(len(costs)):
        costs[j] = rates[j] + starts.noise[j]
    for j in range(len(costs)):
        slopes[j] = EDGE if costs[j] > np.float32(0.0) else -EDGE
    for q in range(bases.size[0]):
        costs[bases.basic[0, q]] = np.float32(0.0)
        slopes[bases.basic[0, q]] = 0.0
    for c in range(p):
        total = 0.0
        for j in range(len(costs)):
            total += space.frame[c, j] * slopes[j]
        base[c] = total


@compiled
def _begin(starts: Starts, cell: Cell, r: int, line: int, position: int) -> None:
    """Start from a line: its rows that this cell has, and inputs for as many of them as are independent; rows whose multipliers come out negative are dropped."""
    number = _list_rows(starts, cell, line, position)
    cell.bases.size[0] = cell.bases.age[0] = 0
    for q in range(starts.numbers[line]):
        starts.taken[q] = 0
    for i in range(number):
        _let_in(starts, cell, line, starts.rows[i])
    _drop_negative(starts, cell, r)
    _set_costs(starts, cell, r)


@inlined
def _place(cell: Cell, inside: Inside) -> bool:
    """Find the state's point, and the spot: the same with all inputs put into their box; whether these differ.  Basic inputs beyond their ends are scored roughly."""
    bases, columns, point, spot = cell.bases, cell.space.columns, cell.points[0], inside.spot
    clipped, p = False, len(spot)
    find_values(cell, 0, len(cell.rows), 0.0)
    for c in range(p):
        point[c] = spot[c] = bases.base[0, c]
    for q in range(bases.size[0]):
        at, j = bases.values[q], bases.basic[0, q]
        inner = min(max(at, -EDGE), EDGE)
        for c in range(p):
            point[c] += at * columns[j, c]
            spot[c] += inner * columns[j, c]
        over = abs(at) - EDGE
        bases.scores[q] = 0.0
        if over > CLOSE:
            clipped = True
            bases.scores[q] = over * over / rough_length(bases, cell.rows, 0, q)
    return clipped


@inlined
def _worst_input(cell: Cell) -> tuple[int, float, float]:
    """Of the basic inputs that seem longest beyond their ends, the one that is: its place, by how much, and its score; -1 if none is."""
    bases, leaving, violation, best = cell.bases, -1, 0.0, 0.0
    for _ in range(_CHOICE):
        q = 0
        for other in range(1, bases.size[0]):
            q = other if bases.scores[other] > bases.scores[q] else q
        if bases.scores[q] == 0.0:
            break
        bases.scores[q] = 0.0
        over = abs(bases.values[q]) - EDGE
        score = over * over / length(bases, cell.rows, cell.space, cell.work, 0, q)
        if score > best:
            leaving, best, violation = q, score, over if bases.values[q] > 0.0 else -over
    return leaving, violation, best


@inlined
def _reach(cell: Cell, inside: Inside, r: int, clipped: bool) -> tuple[int, float, float]:
    """Who is violated most at the state's point, -1 if nobody is, and by how much; and how many times as far from the middle as it may be the spot is, 1 if it is in the cell."""
    rows, point, spot, depths, k, far = cell.rows, cell.points[0], inside.spot, inside.depths, cell.bases.size[0], 1.0
    leaving, violation, best = _worst_input(cell) if clipped else (-1, 0.0, 0.0)
    p = len(spot)
    for row in range(r):
        total = value(rows[row], point)
        if total < -CLOSE:
            score = total * total / rows[row, p + 1]
            if score > best:
                leaving, best, violation = k + row, score, total
        if clipped:
            total = value(rows[row], spot)
        far = max(far, (depths[row] - total) / (depths[row] - SLACK))
    return leaving, violation, far


@inlined
def _show(inside: Inside, r: int, got: float, far: float) -> None:
    """Pull the spot, where row r is then so large, into the cell: that is the point, and a deeper one."""
    middle, spot = inside.middle, inside.spot
    part = share_of_deeper(inside.depths[r], got, far)
    for c in range(len(spot)):
        inside.point[c] = middle[c] + (spot[c] - middle[c]) / far
        inside.deeper[c] = middle[c] + (spot[c] - middle[c]) * part


@inlined
def _is_refuted(cell: Cell, r: int) -> bool:
    """Whether the multipliers prove that row r is negative in the cell: then the cell's proof lists the rows that do so."""
    bases, rows, proof, combination = cell.bases, cell.rows, cell.proof, cell.work.combination
    p, found = rows.shape[1] - 3, 0
    for c in range(p + 1):
        combination[c] = rows[r, c]
    combination[p + 1] = 1.0
    for i in range(bases.size[0]):
        row, share = bases.tight[0, i], max(bases.multipliers[0, i], 0.0)
        combination[p + 1] += share
        for c in range(p + 1):
            combination[c] += share * rows[row, c]
    if not is_negative(cell.space, cell.work, rows[r, p + 2]):
        return False
    for i in range(bases.size[0]):
        if bases.multipliers[0, i] > 0.0:
            proof.rows[found] = bases.tight[0, i]
            found += 1
    proof.size = found
    return True


@inlined
def _move_halfway(cell: Cell, inside: Inside, r: int) -> bool:
    """Let the middle lie halfway to the vertex, if it was too close to a wall and is not there; whether it moved."""
    rows, middle, depths, spot, least, worst = cell.rows, inside.middle, inside.depths, inside.spot, np.inf, np.inf
    for row in range(r):
        least = min(least, depths[row])
        worst = min(worst, 0.5 * (depths[row] + value(rows[row], spot)))
    if r == 0 or not (worst >= 2.0 * least and worst >= 2.0 * SLACK):
        return False
    for c in range(len(middle)):
        middle[c] = 0.5 * (middle[c] + spot[c])
    for row in range(r + 1):
        depths[row] = value(rows[row], middle)
    inside.begun = 0
    return True


@inlined
def _begin_again(starts: Starts, cell: Cell, r: int, key: int, position: int, empty: bool) -> None:
    """Compute the state anew from its basis, or from none."""
    _save(starts, cell, key)
    if empty:
        starts.sizes[key] = starts.numbers[key] = 0
    _begin(starts, cell, r, key, position)


@apart
def maximise(cell: Cell, inside: Inside, starts: Starts, r: int, deep: bool, key: int, position: int) -> int:
    """Whether row r is positive somewhere in the cell of the rows before it, whose middle is known, and lies deep in it or not.

    If so, ``inside`` has such a point, and a deeper one.  If not, the cell's proof lists the rows that prove it.  To begin with, that list may hold rows that are worth being tight.
    """
    bases, rows, n, restarts, everything = cell.bases, cell.rows, cell.space.columns.shape[0], 0, len(cell.rows)
    _adopt(starts, cell, key)
    _begin(starts, cell, r, len(starts.sizes) - 1, position)
    while True:
        k = bases.size[0]
        leaving, violation, far = _reach(cell, inside, r, _place(cell, inside))
        bound = value(rows[r], cell.points[0])
        got = inside.depths[r] + (value(rows[r], inside.spot) - inside.depths[r]) / far
        if deep and got >= SEEN and (got >= _RATIO * bound or leaving < 0):
            _show(inside, r, got, far)
            _save(starts, cell, key)
            return FEASIBLE
        if bound < -SURE or leaving < 0:
            if _is_refuted(cell, r):
                _save(starts, cell, key)
                return INFEASIBLE
            if leaving < 0:
                if not _move_halfway(cell, inside, r):
                    return UNCLEAR
                deep = True
                continue
        drifted = leaving >= k and is_tight(bases, 0, leaving - k)
        if drifted or bases.age[0] >= _REFACTOR_EVERY:
            restarts += 1
            if restarts > _RESTARTS:
                return UNCLEAR
            _begin_again(starts, cell, r, key, position, restarts == _RESTARTS)
            continue
        cell.tally.iterations += 1
        bases.age[0] += 1
        side = 1.0 if (violation < 0.0) == (leaving >= k) else -1.0
        direct(cell, 0, leaving, side)
        theta, entering, pivot = ratio_test(cell, 0, abs(violation), everything)
        if entering < -n:  # the cell itself would be empty
            return UNCLEAR
        if (
            entering >= 0 and leaving >= k and k + 1 >= bases.tight.shape[1]
        ):  # more equations than unknowns: rounding made the pivot up
            return UNCLEAR
        go(cell, 0, leaving, entering, theta, side)
        exchange(cell, 0, leaving, entering, side * theta, side * pivot)
