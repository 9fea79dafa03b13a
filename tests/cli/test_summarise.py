"""`tessella summarise` as a person uses it."""

import json

import pytest

import tessella
from helpers.files import written


@pytest.fixture
def model(tmp_path):
    return written(tmp_path / "net.npz", (2, 4, 3, 2))


def test_a_table(run, model):
    found = tessella.summarise(tessella.load(model), (0, 1))
    code, out, err = run("summarise", model, "--box", "0,1")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == f"net.npz: 2-4-3-2 on [0, 1]^2, all {found.regions} regions"
    assert [line.split()[0] for line in lines[2:11]] == [str(one.name) for one in found.distributions]
    assert "Lipschitz constant (l2): " in out
    assert "different affine maps" in out


def test_json_and_quiet(run, model):
    code, out, _ = run("summarise", model, "--box", "0,1", "--statistics", "active,volume", "--json")
    record = json.loads(out)
    assert code == 0
    assert [one["name"] for one in record["distributions"]] == ["active", "volume"]
    assert sum(record["distributions"][1]["values"]) == pytest.approx(1.0)
    code, out, _ = run("summarise", model, "--box", "0,1", "--statistics", "active", "-q")
    assert (code, out.split()[0]) == (0, "active")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--statistics", "active,size"], "a summary takes some of active, rank"),
        (["--samples", "0"], "--samples must be at least 1, got 0"),
        (["--seconds", "0"], "seconds is 0.0; a summary takes a positive number"),
        (["--confidence", "2"], "confidence is 2.0; a summary takes a number between 0 and 1"),
    ],
)
def test_wrong_options(run, model, options, words):
    code, out, err = run("summarise", model, "--box", "0,1", *options)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1
