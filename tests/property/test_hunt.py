"""The hunter of `make fuzz`, for a few networks, and what it found before (`tests/regression` has those by what was wrong)."""

import pytest

from fuzz.__main__ import Tally, hunt_one

# seeds of networks that once broke a claim
ONCE_WRONG = (12, 25, 28, 29, 33, 41, 47, 66, 87, 125, 2533, 2805, 3297, 3786, 5041, 5091, 5313, 5398, 5435)


@pytest.mark.parametrize("seed", [*ONCE_WRONG, *range(3)])
def test_nothing_is_found(seed):
    tally = Tally(None)
    hunt_one(seed, tally)
    assert not tally.findings
    assert not tally.refused
