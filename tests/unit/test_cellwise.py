"""The bound from cells of the first layer: how it is asked for, and how it ends early."""

import numpy as np
import pytest

from tessella import Box, Network, OptionError, UpperBounds, upper_bounds
from tessella.counting import cellwise
from tessella.result import Status

RNG = np.random.default_rng(1)
NETWORK = Network.from_arrays([(RNG.normal(size=(7, inputs)), RNG.normal(size=7) / 3.0) for inputs in (5, 7)], relu_output=True)
BOX = Box(-1, 1, dim=5)


def test_it_is_one_of_the_bounds():
    told = []
    found = upper_bounds(NETWORK, BOX, method="linear", seconds=10.0, progress=lambda *news: told.append(news))
    assert [bound.method for bound in found.bounds] == ["raghu", "montufar", "configuration", "empirical", "cellwise"]
    assert found.best == found.cellwise < found.empirical
    assert (found.listed, found.status, told[-1]) == (1.0, Status.FINISHED, (7, 7))
    again = UpperBounds.from_json(found.to_json())
    assert (again.cellwise, again.listed, again.status) == (found.cellwise, 1.0, Status.FINISHED)


def test_without_time_there_is_none():
    found = upper_bounds(NETWORK, BOX, method="linear")
    assert found.cellwise is None
    assert "cellwise" not in found.to_dict()["upper"]


def test_little_time_is_an_answer():
    found = upper_bounds(NETWORK, BOX, method="linear", seconds=1e-6)
    assert found.cellwise <= found.empirical


def test_it_needs_a_domain():
    with pytest.raises(OptionError, match="needs a domain; give one, or leave seconds out"):
        upper_bounds(NETWORK, seconds=1.0)
    with pytest.raises(OptionError, match="None to leave the cellwise bound out"):
        upper_bounds(NETWORK, BOX, seconds=0.0)


def test_interrupted_the_rest_is_bounded_by_the_shape(monkeypatch):
    whole = upper_bounds(NETWORK, BOX, method="linear", seconds=10.0)
    advance, calls = cellwise.Lister._go_on, []

    def interrupted(self, fixed, *, careful):
        calls.append(self)
        if len(calls) == 2:
            raise KeyboardInterrupt
        self._pace = 1.0
        return advance(self, fixed, careful=careful)

    monkeypatch.setattr(cellwise.Lister, "_go_on", interrupted)
    found = upper_bounds(NETWORK, BOX, method="linear", seconds=10.0)
    assert found.status is Status.INTERRUPTED
    assert whole.cellwise <= found.cellwise <= found.empirical


def test_networks_without_a_changing_unit_have_one_region():
    dead = Network.from_arrays([([[1.0]], [2.0])], relu_output=True)
    assert upper_bounds(dead, (-1, 1), seconds=1.0).cellwise == 1


def test_large_networks_are_not_listed():
    wide = Network.from_arrays([(np.eye(1200, 3), np.zeros(1200))], relu_output=True)
    found = upper_bounds(wide, (-1, 1), method="linear", seconds=1.0)
    assert found.cellwise <= found.empirical
