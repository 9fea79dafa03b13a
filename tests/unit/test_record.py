"""State that compiled code takes as one pointer, and functions whose annotations are their signatures."""

import logging
import pickle
from time import perf_counter, sleep
from typing import Any

import numpy as np
import pytest
from numba.core.errors import TypingError

from tessella.kernel.functions import address_of, apart, by_address, compiled, inlined, one_of
from tessella.kernel.meter import clock, compile_seconds, making_ready, measured_by, telling
from tessella.kernel.record import ByteMatrix, Cube, Matrix, Record, SingleMatrix, Singles, Vector, Whole
from tessella.kernel.warming import load, missing, ready


class Inner(Record):
    rows: Matrix
    light: SingleMatrix
    signs: ByteMatrix
    scale: float
    turned: bool


class Outer(Record):
    inner: Inner
    cube: Cube
    count: int
    which: int


@compiled
def product(one: Vector, two: Vector) -> float:
    total = 0.0
    for i in range(len(one)):
        total += one[i] * two[i]
    return total


@inlined
def doubled(value: float) -> float:
    return 2.0 * value


@apart
def measure(outer: Outer, at: int) -> float:
    inner, total = outer.inner, 0.0
    for i in range(len(inner.rows)):
        total += product(inner.rows[i], outer.cube[at, i])
    outer.count += 1
    inner.scale = doubled(total)
    inner.turned = not inner.turned
    return total


@apart
def negated(outer: Outer, at: int) -> float:
    return -measure(outer, at)


either = one_of(measure, negated)


@apart
def add_up(outer: Outer, times: int) -> float:
    total = 0.0
    for i in range(times):
        total += either(outer.which, outer, i % 2) + negated(outer, 0)
    return total


@by_address
def step(outer: Outer, at: int) -> float: ...


@apart
def twice(outer: Outer, at: int) -> float:
    return step(outer.which, outer, at) + step(outer.which, outer, at)


@apart
def length_of(values: Vector) -> int:
    if len(values) == 0:
        raise ValueError("nothing to do")  # noqa: EM101, TRY003  compiled
    return len(values)


@by_address
def counted(values: Vector) -> int: ...


@apart
def through(values: Vector, place: int) -> int:
    return counted(place, values) if place else length_of(values)


@apart
def both(values: Singles, numbers: Whole) -> tuple[float, int]:
    return float(values[0]), numbers[0]


@pytest.fixture
def outer() -> Any:
    rng = np.random.default_rng(0)
    inner = Inner(rows=rng.random((3, 4)), light=np.zeros((1, 1), np.float32), signs=np.zeros((1, 1), np.int8), scale=1.5)
    return Outer(inner=inner, cube=rng.random((2, 3, 4)), count=7)


def test_numbers_and_arrays_are_read_and_written(outer):
    inner = outer.inner
    assert (outer.count, inner.scale, inner.turned) == (7, 1.5, False)
    found = measure(outer, 1)
    assert found == pytest.approx(np.sum(inner.rows * outer.cube[1]))
    assert (outer.count, inner.turned) == (8, True)
    assert inner.scale == pytest.approx(2.0 * found)
    inner.rows[:] = 0.0
    assert measure(outer, 1) == 0.0


def test_an_array_may_be_replaced_between_calls(outer):
    outer.cube = np.ones((2, 3, 4))
    assert measure(outer, 0) == pytest.approx(outer.inner.rows.sum())
    assert outer.with_fields(cube=np.zeros((1, 3, 4))).cube.shape == (1, 3, 4)


def test_jumps_by_name_and_by_address(outer):
    zero, one = (np.sum(outer.inner.rows * outer.cube[at]) for at in (0, 1))
    outer.which = measure.address
    assert add_up(outer, 2) == pytest.approx(zero + one - 2.0 * zero)
    outer.which = negated.address
    assert add_up(outer, 2) == pytest.approx(-zero - one - 2.0 * zero)


def test_a_step_is_whatever_function_has_its_annotations(outer):
    found = measure(outer, 1)
    outer.which = address_of(step, measure)
    assert twice(outer, 1) == pytest.approx(2.0 * found)
    outer.which = address_of(step, negated)
    assert twice(outer, 1) == pytest.approx(-2.0 * found)
    with pytest.raises(TypeError, match="another signature"):
        address_of(step, both)


@pytest.mark.parametrize("place", [False, True])
def test_exceptions_come_through_a_jump(place):
    at = address_of(counted, length_of) if place else 0
    assert through(np.ones(2), at) == 2
    with pytest.raises(ValueError, match="nothing to do"):
        through(np.ones(0), at)


def test_what_is_not_there_is_an_empty_record():
    empty = Outer.empty()
    assert (empty.cube.shape, empty.inner.rows.shape, empty.inner.light.dtype, empty.count) == ((0, 0, 0), (0, 0), np.float32, 0)
    assert measure(empty, 0) == 0.0


def test_functions_may_return_several_values():
    assert both(np.array([1.5], np.float32), np.array([3])) == (1.5, 3)


@pytest.mark.parametrize("wrong", [np.zeros((2, 3)), np.zeros((2, 3, 4), np.float32), np.zeros((4, 3, 2)).T])
def test_arrays_of_another_kind_are_refused(outer, wrong):
    with pytest.raises(TypeError, match="cube of Outer"):
        outer.cube = wrong


def test_missing_and_unknown_fields_are_refused(outer):
    with pytest.raises(TypeError, match="needs cube"):
        Outer(inner=outer.inner)
    with pytest.raises(AttributeError, match="no field"):
        outer.other = 1
    with pytest.raises(AttributeError):
        _ = outer.other
    with pytest.raises(TypeError, match="memory of this process"):
        pickle.dumps(outer)


def test_what_is_needed_is_known_before_anything_is_called():
    names = [one.name.split(":")[1] for one in add_up.declared.needed]
    assert names == ["measure", "negated", "add_up"]
    merged = {one.name.split(":")[1] for one in measure.declared.merged}
    assert merged == {"measure", "product", "doubled"}


def test_the_stamp_knows_constants_and_functions_that_are_merged():
    stamp = measure.declared.stamp
    changed = dict(measure.declared.__dict__)
    for name in ("stamp", "merged", "callees"):
        measure.declared.__dict__.pop(name, None)
    original = measure.declared.python.__globals__["product"]
    try:
        measure.declared.python.__globals__["product"] = doubled
        assert measure.declared.stamp != stamp
    finally:
        measure.declared.python.__globals__["product"] = original
        measure.declared.__dict__.update(changed)
    assert measure.declared.stamp == stamp


def test_loading_is_told_and_counted(outer, caplog):
    before = compile_seconds()
    with caplog.at_level(logging.INFO, logger="tessella"), telling(lambda _: None):
        load([add_up])
    assert ready([add_up])
    assert not missing([add_up, negated])
    assert compile_seconds() >= before
    assert load([add_up]) == 0.0


def test_arrays_with_gaps_are_refused_by_functions():
    assert product(np.ones(3), np.arange(3.0)) == 3.0
    with pytest.raises(TypingError, match="product takes"):
        product(np.ones((3, 2))[:, 0], np.arange(3.0))
    fixed = np.ones(3)
    fixed.flags.writeable = False
    assert product(fixed, np.arange(3.0)) == 3.0


def test_another_clock_takes_the_place_of_wall_time():
    wall = clock()
    with measured_by(iter([5.0, 6.0, 9.0, 10.0]).__next__):
        begun = clock()
        with making_ready():
            pass
        assert clock() - begun == pytest.approx(2.0)  # 5 seconds without the 3 in which code was made ready
    assert wall - 3.0 <= clock() < wall + 60.0  # wall time again


def test_the_clock_of_work_stands_still_while_code_is_made_ready():
    before, work, begun = compile_seconds(), clock(), perf_counter()
    with making_ready():
        sleep(0.02)
        inside = clock()
        with making_ready():
            sleep(0.02)
    after, ended = clock(), perf_counter()
    assert compile_seconds() - before >= 0.04
    assert inside == pytest.approx(work, abs=0.01)
    assert (after - work) + (compile_seconds() - before) == pytest.approx(ended - begun, abs=0.005)
