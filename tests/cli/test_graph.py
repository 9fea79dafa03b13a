"""`tessella graph` as a person uses it."""

import json

import pytest

import tessella
from helpers.files import written


@pytest.fixture
def model(tmp_path):
    return written(tmp_path / "net.npz", (2, 4, 3, 2))


def test_it_says_how_many(run, model, tmp_path):
    found = tessella.graph(tessella.load(model), (0, 1))
    code, out, err = run("graph", model, "--box", "0,1")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "net.npz: 2-4-3-2 on [0, 1]^2"
    assert lines[2].split()[:2] == [str(found.regions), str(len(found.edges))]
    assert lines[-1].startswith("All regions and walls, proved (")
    assert run("graph", model, "--box", "0,1", "-q") == (0, f"{found.regions} {len(found.edges)}\n", "")


def test_it_writes_a_file(run, model, tmp_path):
    networkx = pytest.importorskip("networkx")
    code, out, _ = run("graph", model, "--box", "0,1", "-o", tmp_path / "regions.graphml")
    assert code == 0
    assert "Written to" in out
    found = tessella.graph(tessella.load(model), (0, 1))
    assert networkx.read_graphml(tmp_path / "regions.graphml").number_of_edges() == len(found.edges)


def test_json_and_a_limit(run, model):
    code, out, _ = run("graph", model, "--box", "0,1", "--limit", "2", "--json")
    record = json.loads(out)
    assert (code, record["status"], record["complete"], len(record["regions"])) == (0, "limit reached", False, 2)
    code, out, _ = run("graph", model, "--box", "0,1", "--limit", "2")
    assert "Not all: limit reached. What is listed is proved; 2 of these regions may have more walls" in out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-o", "regions.png"], "regions.png: cannot be written; its name must end in .graphml"),
        (["--limit", "0"], "--limit must be at least 1, got 0"),
        (["--seconds", "-1"], "seconds is -1.0; a graph of regions takes a positive number"),
    ],
)
def test_wrong_options(run, model, options, words):
    code, out, err = run("graph", model, "--box", "0,1", *options)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1
