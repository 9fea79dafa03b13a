"""Forecasts of counts: asked once in another process, and unknown where nobody knows."""

from types import SimpleNamespace

import numpy as np
import pytest

import tessella
from tessella.analysis.estimating_process import EstimatingProcess
from tessella.cli.forecasts import Forecast


def many_regions():
    rng = np.random.default_rng(0)
    layers = [(rng.standard_normal((m, n)) / n**0.5, rng.standard_normal(m)) for n, m in ((8, 20), (20, 20))]
    return tessella.load(layers, relu_output=True), tessella.Box(-3, 3, dim=8)


@pytest.mark.slow
def test_an_estimate_says_how_many_there_will_be_about():
    network, box = many_regions()
    known = tessella.estimate(network, box, probes=200, counting=False)
    with Forecast(network, box) as forecast:
        assert forecast.at(0.5) is None  # too early to ask
        assert forecast._thread is None
        forecast.at(10.0)
        forecast._thread.join()
        assert abs(forecast.at(20.0) - known.maps) < 3.0


def test_what_is_too_uncertain_is_no_forecast(monkeypatch):
    told = []

    def estimate(_self, _known, *, seconds, tell, **_):
        told.append(tell(SimpleNamespace(maps_interval=None, maps=100.0, probes=100)))
        told.append(tell(SimpleNamespace(maps_interval=(1.0, 9.0), maps=5.0, probes=2)))
        told.append(tell(None))

    monkeypatch.setattr(EstimatingProcess, "estimate", estimate)
    with Forecast(*many_regions()) as forecast:
        assert forecast.at(10.0) is None
        forecast._thread.join()
        assert forecast.at(20.0) is None
    assert told == [False] * 3


def test_errors_of_an_estimate_are_nobodys_business(monkeypatch):
    def estimate(_self, _known, *, seconds, tell, **_):
        msg = "gone"
        raise tessella.SolverError(msg)

    monkeypatch.setattr(EstimatingProcess, "estimate", estimate)
    with Forecast(*many_regions()) as forecast:
        assert forecast.at(10.0) is None
        forecast._thread.join()
        assert forecast.at(20.0) is None


def test_large_networks_are_left_alone(monkeypatch):
    monkeypatch.setattr("tessella.cli.forecasts.default_memory", lambda: 10)
    monkeypatch.setattr(EstimatingProcess, "__init__", None)  # whoever starts one fails
    with Forecast(*many_regions()) as forecast:
        assert forecast.at(10.0) is None
        forecast._thread.join()
