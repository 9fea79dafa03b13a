"""The parts of the simplex over a box, called one by one: against numpy, heaps of the standard library, and rational arithmetic."""

import heapq
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella.kernel.program import Program
from tessella.kernel.simplex.exchange import exchange, restore
from tessella.kernel.simplex.point import find_leaving, find_multipliers, find_point
from tessella.kernel.simplex.proof import proved_bound
from tessella.kernel.simplex.ratio import find_direction, find_entering
from tessella.kernel.simplex.solving import solve
from tessella.kernel.simplex.state import INFEASIBLE, OPTIMAL, PRUNED, STOPPED, Simplex

ROWS, COLUMNS = 6, 9


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def filled(rng, rows=ROWS, columns=COLUMNS):
    """A problem that has a point, with costs, at the empty basis."""
    simplex = Simplex.of(rng.standard_normal((rows, columns)))
    problem = simplex.problem
    problem.costs[:], problem.lower[:], problem.upper[:] = rng.standard_normal(columns), -rng.random(columns), rng.random(columns)
    values = problem.matrix @ rng.uniform(problem.lower, problem.upper)
    problem.row_lower[:], problem.row_upper[:] = values - 0.1 * rng.random(rows), values + 0.1 * rng.random(rows)
    simplex.cutoff, simplex.most = -np.inf, 1000
    return simplex


def based(rng, size):
    """The same at a basis of some size, with its multipliers and point."""
    simplex = filled(rng)
    state = simplex.state
    state.tight[:size], state.basic[:size] = rng.permutation(ROWS)[:size], rng.permutation(COLUMNS)[:size]
    state.size = size
    restore(simplex.problem, state, simplex.work)
    find_multipliers(simplex.problem, simplex.problem.costs, state, simplex.work)
    find_point(simplex.problem, state, simplex.work)
    return simplex


def square(simplex):
    state = simplex.state
    return simplex.problem.matrix[np.ix_(state.tight[: state.size], state.basic[: state.size])]


def exact_bound(problem, costs, multipliers):
    """What these multipliers prove, in rational arithmetic."""
    y, total = [Fraction(value) for value in multipliers.tolist()], Fraction(0)
    for j, cost in enumerate(costs.tolist()):
        reduced = Fraction(cost) - sum(
            rate * Fraction(entry) for rate, entry in zip(y, problem.matrix[:, j].tolist(), strict=True)
        )
        total += max(reduced * Fraction(float(problem.lower[j])), reduced * Fraction(float(problem.upper[j])))
    for i, rate in enumerate(y):
        total += max(rate * Fraction(float(problem.row_lower[i])), rate * Fraction(float(problem.row_upper[i])))
    return total


@pytest.mark.parametrize("size", [0, 1, 4, 6])
def test_multipliers_point_and_the_dual_function(rng, size):
    simplex = based(rng, size)
    problem, state = simplex.problem, simplex.state
    tight, basic = state.tight[:size], state.basic[:size]
    assert state.inverse[:size, :size] @ square(simplex) == pytest.approx(np.eye(size), abs=1e-9)
    assert problem.costs - state.multipliers @ problem.matrix == pytest.approx(state.reduced, abs=1e-9)
    assert np.flatnonzero(state.multipliers).tolist() == sorted(tight)
    assert (state.reduced[basic] == 0.0).all()
    assert problem.matrix @ state.point == pytest.approx(state.rows, abs=1e-9)
    at_ends = np.where(state.reduced > 0.0, problem.upper, problem.lower)
    others = np.setdiff1d(np.arange(COLUMNS), basic)
    assert (state.point[others] == at_ends[others]).all()
    assert state.value == pytest.approx(problem.costs @ state.point)
    assert state.value == pytest.approx(float(exact_bound(problem, problem.costs, state.multipliers)))


def test_a_singular_basis_is_cut_down_to_a_regular_one(rng):
    simplex = filled(rng)
    state, matrix = simplex.state, simplex.problem.matrix
    matrix[2] = matrix[0] + matrix[1]
    state.tight[:4], state.basic[:4], state.size = [0, 1, 2, 3], [0, 1, 2, 3], 4
    restore(simplex.problem, state, simplex.work)
    assert state.size == 2
    assert state.inverse[:2, :2] @ square(simplex) == pytest.approx(np.eye(2))
    assert np.flatnonzero(state.place >= 0).tolist() == [0, 1, COLUMNS, COLUMNS + 1]


@pytest.mark.parametrize("size", [0, 1, 3, 5])
def test_a_direction_writes_who_leaves_as_a_sum_over_who_is_not_basic(rng, size):
    simplex = based(rng, size)
    problem, state, step = simplex.problem, simplex.state, simplex.step
    for _ in range(5):
        point = rng.standard_normal(COLUMNS)
        rows = problem.matrix @ point
        everybody = np.concatenate([point, rows])
        others = np.setdiff1d(np.arange(COLUMNS), state.basic[:size])
        loose = np.setdiff1d(np.arange(ROWS), state.tight[:size])
        for leaving in [*state.basic[:size], *(COLUMNS + loose)]:
            step.leaving = leaving
            find_direction(problem, state, step, simplex.work)
            found = step.by_column[others] @ point[others] + step.by_row[:size] @ rows[state.tight[:size]]
            assert found == pytest.approx(everybody[leaving], abs=1e-8)


def test_exchanges_keep_the_inverse():
    seen = set()
    for seed in range(200):
        simplex = based(np.random.default_rng(seed), 3)
        problem, state, step, work = simplex.problem, simplex.state, simplex.step, simplex.work
        find_leaving(problem, state, step)
        if step.leaving < 0:
            continue
        find_direction(problem, state, step, work)
        find_entering(problem, state, step, work)
        assert step.entering >= 0
        seen.add((step.leaving < COLUMNS, step.entering < COLUMNS))
        exchange(problem, state, step, work)
        size = state.size
        assert size == 3 + (step.leaving >= COLUMNS) - (step.entering >= COLUMNS)
        assert state.inverse[:size, :size] @ square(simplex) == pytest.approx(np.eye(size), abs=1e-6)
        assert state.place[state.basic[:size]].tolist() == list(range(size))
        assert state.place[COLUMNS + state.tight[:size]].tolist() == list(range(size))
        assert (state.place >= 0).sum() == 2 * size
    assert len(seen) == 4  # a row or a structural for either


def test_the_dual_function_turns_where_its_slope_does(rng):
    """The long step against one breakpoint after the other."""
    for _ in range(30):
        simplex = based(rng, 3)
        problem, state, step = simplex.problem, simplex.state, simplex.step
        find_leaving(problem, state, step)
        if step.leaving < 0:
            continue
        find_direction(problem, state, step, simplex.work)
        find_entering(problem, state, step, simplex.work)
        side, heap = np.sign(step.violation), []
        for j in np.setdiff1d(np.arange(COLUMNS), state.basic[:3]):
            rate = side * step.by_column[j]
            if state.reduced[j] * rate > 0.0:
                heapq.heappush(heap, (state.reduced[j] / rate, j, abs(rate) * (problem.upper[j] - problem.lower[j])))
        for p, i in enumerate(state.tight[:3]):
            rate = side * step.by_row[p]
            if state.multipliers[i] * rate > 0.0:
                width = problem.row_upper[i] - problem.row_lower[i]
                heapq.heappush(heap, (state.multipliers[i] / rate, COLUMNS + p, abs(rate) * width))
        slope, who = -abs(step.violation), -1
        while slope < 0.0 and heap:
            _, who, more = heapq.heappop(heap)
            slope += more
        assert step.entering == (who if slope >= 0.0 else -1)


@pytest.mark.parametrize("size", [0, 3])
def test_every_multiplier_proves_a_bound_that_rounding_does_not_spoil(rng, size):
    for scale in (1.0, 1e-8, 1e8):
        for _ in range(20):
            simplex = based(rng, size)
            problem, multipliers = simplex.problem, scale * rng.standard_normal(ROWS)
            exact = exact_bound(problem, problem.costs, multipliers)
            bound = Fraction(proved_bound(problem, problem.costs, multipliers, simplex.work))
            assert exact <= bound <= exact + Fraction(1e-12) * int(1 + 100 * scale)


numbers = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, -1.0, 1e-200, -1e-200, 5e-324, 1e-308, 1e100, 0.1])


@given(st.lists(numbers, min_size=25, max_size=25))
def test_a_bound_is_never_too_small(values):
    simplex = Simplex.of(np.array(values[:6]).reshape(2, 3))
    problem, rest = simplex.problem, np.array(values[6:])
    problem.costs[:], multipliers = rest[:3], rest[3:5]
    for low, high, ends in ((problem.lower, problem.upper, rest[5:11]), (problem.row_lower, problem.row_upper, rest[11:15])):
        low[:], high[:] = np.sort(ends.reshape(2, -1), axis=0)
    bound = proved_bound(problem, problem.costs, multipliers, simplex.work)
    assert Fraction(bound) >= exact_bound(problem, problem.costs, multipliers)


def test_how_a_solve_ends(rng):
    simplex = filled(rng)
    assert solve(simplex) == OPTIMAL
    best, most = simplex.bound, simplex.iterations
    assert most > 2
    simplex.state.size, simplex.most = 0, most - 1
    assert solve(simplex) == STOPPED
    assert simplex.bound >= best - 1e-9
    simplex.state.size, simplex.most, simplex.cutoff = 0, 1000, best + 0.1
    assert solve(simplex) == PRUNED
    assert best - 1e-9 <= simplex.bound <= best + 0.1
    simplex.problem.row_lower[0] = simplex.problem.row_upper[0] = 1.0 + np.abs(simplex.problem.matrix[0]).sum()
    assert solve(simplex) == INFEASIBLE
    assert simplex.bound == -np.inf


def test_programs_of_one_thread_take_turns(rng):
    """Small programs of one shape use the same memory."""
    both = [filled(rng).problem for _ in range(2)]
    alone = [Program(each.matrix.copy()).maximise(*parts(each)) for each in both]
    programs = [Program(each.matrix) for each in both]
    for _ in range(2):
        for program, each, expected in zip(programs, both, alone, strict=True):
            found = program.maximise(*parts(each))
            assert found.bound == expected.bound
            assert (found.x == expected.x).all()


def test_arrays_with_gaps_of_other_kinds_and_fixed_ones_are_taken(rng):
    problem = filled(rng).problem
    whole = np.round(10.0 * problem.matrix)
    gaps = np.repeat(problem.costs, 2)[::2]
    given = gaps, problem.lower.astype(np.float32), np.ones(COLUMNS, dtype=np.int64), -np.full(ROWS, 50.0), np.full(ROWS, 50.0)
    given[-1].flags.writeable = False
    expected = Program(whole).maximise(*(np.array(each, dtype=np.float64) for each in given))
    found = Program(np.asfortranarray(whole).astype(np.int64)).maximise(*given)
    assert found.optimal
    assert found.bound == expected.bound


def parts(problem):
    return problem.costs, problem.lower, problem.upper, problem.row_lower, problem.row_upper
