"""Compiled functions that others call by their address."""

import numpy as np
import pytest
from numba.core.errors import TypingError

from tessella.kernel.compiling import address, calling, compiler

_compiled = compiler()


@_compiled
def _weigh(number, flip, weight, rows, out):
    total = 0.0
    for i in range(len(rows)):
        for j in range(number):
            total += weight * rows[i, j]
    out[0] += 1
    return -total if flip else total


_by_address = calling(_weigh)


@_compiled
def _refuse(rows):
    if len(rows) == 0:
        raise ValueError("nothing to do")  # noqa: EM101, TRY003  compiled
    return 0


_or_refuse = calling(_refuse)


@_compiled
def _through(place, rows):
    return _or_refuse(place, rows)


@_compiled
def _twice(place, rows, out):
    return _by_address(place, 2, False, 0.5, rows, out) + _by_address(place, len(rows), True, 2.0, rows, out)


@_compiled
def _wrongly(place, rows, out):
    return _by_address(place, 2, False, out, rows, out)


def test_a_call_by_address_is_a_call():
    rows, out = np.arange(12.0).reshape(3, 4), np.zeros(1, dtype=np.int64)
    place = address(_weigh, 0, False, 0.0, rows, out)
    assert _twice(place, rows, out) == 0.5 * rows[:, :2].sum() - 2.0 * rows[:, :3].sum()
    assert out[0] == 2


def test_exceptions_come_through():
    rows = np.ones((1, 2))
    place = address(_refuse, rows)
    _through(place, rows)
    with pytest.raises(ValueError, match="nothing to do"):
        _through(place, rows[:0])


def test_a_call_with_other_types_is_not_compiled():
    rows, out = np.ones((1, 2)), np.zeros(1, dtype=np.int64)
    place = address(_weigh, 0, False, 0.0, rows, out)
    with pytest.raises(TypingError, match="_weigh is not compiled for"):
        _wrongly(place, rows, out)
