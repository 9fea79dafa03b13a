"""Unbounded domains on the command line."""

import json

import numpy as np
import pytest

import tessella
from tessella.importers.arrays import write_npz

RNG = np.random.default_rng(3)
NETWORK = tessella.load(
    [(RNG.normal(size=(5, 2)), RNG.normal(size=5)), (RNG.normal(size=(3, 5)), RNG.normal(size=3))], relu_output=True
)


@pytest.fixture(autouse=True)
def model(tmp_path):
    write_npz(NETWORK, tmp_path / "net.npz")


def answered(run, verb, *arguments):
    """What a command prints as JSON, which has no infinite numbers."""
    code, out, err = run(verb, "net.npz", "--relu-output", *arguments, "--json")
    assert code == 0, err

    def refuse(name):
        raise ValueError(name)

    return json.loads(out, parse_constant=refuse)


def test_every_number_is_about_all_of_space(run):
    exact = tessella.count(NETWORK, (-np.inf, np.inf)).exact
    space = ("--box", "-inf,inf")
    assert answered(run, "count", *space)["exact"] == exact
    assert answered(run, "estimate", *space)["exact"] == exact
    assert answered(run, "analyze", *space, "--seconds", "5")["exact"] == exact
    assert answered(run, "upper", *space)["upper"]["empirical"]["value"] >= exact
    assert answered(run, "stability", *space)["total"]["unstable"] > 0
    domain = answered(run, "show", *space)["domains"][0]
    assert (domain["text"], domain["lower"], domain["upper"]) == ("all of R^2", [None, None], [None, None])
    code, out, _ = run("count", "net.npz", "--relu-output", *space)
    assert code == 0
    assert "on all of R^2" in out
    code, out, _ = run("stability", "net.npz", *space)
    assert code == 0
    assert "infinite" in out
    code, out, _ = run("mipbound", "net.npz", "--relu-output", *space, "--repetitions", "6", "--confidence", "0.6")
    assert code == 0, out


def test_one_input_may_have_no_end(run):
    half = tessella.Box([0.0, -1.0], [np.inf, 1.0])
    assert answered(run, "count", "--box", "0,inf,-1,1")["exact"] == tessella.count(NETWORK, half).exact
    assert answered(run, "count", "--box", "0,inf", "--box", "-1,1")["domain"]["text"] == "[0, inf) x [-1, 1]"


@pytest.mark.parametrize("arguments", [("plot", "-o", "x.svg"), ("report", "-o", "x.html"), ("export", "-o", "x.mps")])
def test_what_needs_an_end_says_so_in_one_line(run, arguments):
    verb, *rest = arguments
    code, out, err = run(verb, "net.npz", "--box", "-inf,inf", *rest)
    assert code != 0
    assert not out.strip()
    assert (
        "needs a bounded domain, and this one is all of R^2; give a box with finite ends, such as Box(-10, 10, dim=2) (--box=-10,10 in a shell)"
        in err
    )
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("box", ["inf,inf", "nan,1", "inf,-inf"])
def test_boxes_that_are_none(run, box):
    code, _, err = run("count", "net.npz", "--box", box)
    assert code != 0
    assert len(err.strip().splitlines()) == 1
