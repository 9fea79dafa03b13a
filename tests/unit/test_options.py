"""One check per option: whoever takes it, what is wrong with it is told in one line that names the option and who takes it."""

import inspect
import math
from functools import partial

import numpy as np
import pytest

import tessella
from tessella import Box, Network, OptionError, options
from tessella.preactivation import Method
from tessella.tightening import tighten

NETWORK = Network.from_arrays([([[1.0], [-1.0]], [0.5, 0.5]), ([[1.0, 1.0]], [-1.5])], relu_output=True)
BOX = Box(-2, 2, dim=1)
OTHER = tessella.stability(NETWORK, Box(-1, 1, dim=1), method="interval")

VERBS = {
    "count": tessella.count,
    "estimate": tessella.estimate,
    "sample": tessella.sample_regions,
    "regions": tessella.regions,
    "polygons": tessella.polygons,
    "mipbound": tessella.mipbound,
    "stability": tessella.stability,
    "tighten": tighten,
    "analyze": tessella.analyze,
    "empirical_bound": tessella.empirical_bound,
    "upper_bounds": tessella.upper_bounds,
}
WRONG = {
    "seconds": [0, -1.0, math.nan, "60", True, [1]],
    "seconds_per_unit": [0, -1.0, math.nan, "60", True, None],
    "workers": [0, -2, 1.5, True, "2"],
    "memory": [0, -1, 1e9, "1G"],
    "probes": [0, 1.5, True],
    "repetitions": [0, 2.5, "many"],
    "parity_size": [0, 2.5, None],
    "n": [0, 1.5, None, True],
    "limit": [-1, 2.5, "all"],
    "effort": [-1, 2.5, "much", None],
    "confidence": [0.0, 1.0, -1, math.nan, "high", True, None],
    "executor": [3, "pool", {}],
    "progress": [3, "yes"],
    "stability": [3, "linear", OTHER],
    "rng": [-1, "seed", None],
    "method": ["magic", 3, None, []],
    "mipbound": ["yes", 2, []],
}
CASES = [
    (name, option, value)
    for name, verb in VERBS.items()
    for option, values in WRONG.items()
    if option in inspect.signature(verb).parameters
    for value in values
]


@pytest.mark.parametrize(("name", "option", "value"), CASES)
def test_what_is_wrong_is_told_in_one_line(name, option, value):
    with pytest.raises(OptionError) as error:
        VERBS[name](NETWORK, BOX, **{option: value})
    told = str(error.value)
    assert "\n" not in told
    assert told.startswith((f"{option} is ", f"the {option} given is that of another network or domain ("))
    assert len(told) < 300


@pytest.mark.parametrize("name", [name for name, verb in VERBS.items() if "stability" in inspect.signature(verb).parameters])
def test_none_is_found_where_none_is_given(name):
    given = {"probes": 3} if name == "estimate" else {}
    VERBS[name](NETWORK, BOX, stability=None, **given)


def test_numbers_of_numpy_are_numbers():
    options.check_seconds(np.float32(1.5), "a test")
    options.check_seconds(np.int64(2), "a test")
    options.check_workers(np.int64(2), "a test")
    options.check_confidence(np.float64(0.5), "a test")


def test_what_none_means_is_told():
    with pytest.raises(OptionError, match=r"^workers is 0; a count takes a whole number of at least 1, or None for all cores$"):
        options.check_workers(0, "a count")
    with pytest.raises(OptionError, match=r"^seconds is 0; a count takes a positive number, or None for no limit$"):
        options.check_seconds(0, "a count")
    with pytest.raises(OptionError, match=r"^n is 0; a sample takes a whole number of regions, at least 1$"):
        options.check_whole(0, "n", "a sample", of="regions")
    with pytest.raises(OptionError, match=r"^method is 'magic'; a test takes one of interval, linear, lp, milp$"):
        options.chosen(Method, "magic", "method", "a test")


@pytest.mark.parametrize("value", [None, math.inf])
def test_what_must_be_finite_is_told(value):
    check = partial(options.check_seconds, value, "an analysis")
    with pytest.raises(OptionError, match=f"^seconds is {value}; an analysis takes a positive number, such as 30$"):
        check(otherwise="", endless=False)
    check()


def test_a_stability_without_a_domain_is_checked():
    with pytest.raises(OptionError, match=r"^stability is a int; upper_bounds takes what tessella.stability returns"):
        tessella.upper_bounds(NETWORK, stability=3)
    assert tessella.upper_bounds(NETWORK, stability=OTHER).domain == OTHER.domain


@pytest.mark.parametrize("path", [3, "", None, b"run.db"])
def test_a_checkpoint_is_a_path(path):
    with pytest.raises(OptionError, match=r"^checkpoint is .*it takes the path of a file"):
        options.check_checkpoint(path)
