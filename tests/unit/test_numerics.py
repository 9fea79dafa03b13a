"""How the margins of linear programs relate."""

import numpy as np
import pytest

from tessella import numerics
from tessella.numerics import (
    CLEAR,
    CLOSE,
    COARSE,
    EDGE,
    EPS,
    FAR,
    GOAL,
    LOST_OF_NORMS,
    LOST_OF_PRODUCTS,
    MARGIN,
    MODERATE,
    NOTHING,
    PIVOT,
    PROOF,
    ROUNDOFF,
    SEEN,
    SHALLOW,
    SHOWN,
    SINGULAR,
    SLACK,
    SURE,
    THIN,
    TRUSTED_ROW,
    TRUSTED_ROW_OF_DESCENTS,
    UNHARMFUL,
)


def test_roundoff_is_that_of_double_precision():
    assert np.finfo(np.float64).eps == EPS == 2.0 * ROUNDOFF
    assert 1.0 + ROUNDOFF == 1.0 < 1.0 + EPS


def test_points_of_linear_programs_lie_inside_by_more_than_rows_are_wrong():
    assert pytest.approx(MARGIN) == 1.0 - EDGE
    inside = MARGIN - CLOSE
    assert inside >= 0.9 * MARGIN
    assert max(TRUSTED_ROW, TRUSTED_ROW_OF_DESCENTS, UNHARMFUL) <= 0.1 * MARGIN < inside


def test_points_and_proofs_contradict_each_other_by_more_than_rows_are_wrong():
    assert PROOF == 4.0 * MARGIN
    assert 10.0 * max(TRUSTED_ROW, TRUSTED_ROW_OF_DESCENTS, UNHARMFUL) < PROOF - MARGIN
    assert SURE > PROOF + MARGIN
    assert GOAL == 2.0 * SHOWN > SHOWN > MARGIN + CLOSE


def test_points_close_to_walls_need_rows_that_are_closer():
    assert TRUSTED_ROW <= 0.2 * SLACK <= 0.002 * MARGIN
    assert SLACK <= 0.1 * SEEN <= 0.1 * CLEAR
    assert 2.0 * SLACK < FAR < SHALLOW


def test_what_is_rounding_is_larger_than_roundoff():
    assert 10.0 * EPS < SINGULAR < NOTHING < PIVOT


def test_what_underflow_loses_and_overflow_would_need():
    smallest, largest = np.finfo(np.float64).tiny, np.finfo(np.float64).max
    assert 1e10 * smallest < LOST_OF_PRODUCTS < LOST_OF_NORMS
    assert 1e6 * smallest < LOST_OF_NORMS**2  # a million squares that underflow
    assert largest > 1e50 * MODERATE**2


def test_a_cell_shrunk_by_what_its_walls_are_wrong_keeps_an_interior():
    assert 4.0 * THIN < 1.0
    assert 1000.0 * ROUNDOFF < COARSE < THIN


def test_every_number_is_named_here():
    named = {name for name in vars(numerics) if name.isupper()}
    assert named <= set(globals())
