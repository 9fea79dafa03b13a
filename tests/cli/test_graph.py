"""`tessella graph` as a person uses it, and pictures of statistics and solids."""

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


def test_solids_statistics_and_layers(run, tmp_path):
    pytest.importorskip("plotly")
    written(tmp_path / "three.npz", (3, 3, 1))
    written(tmp_path / "two.npz", (2, 4, 3, 1))
    code, out, _ = run("plot", tmp_path / "three.npz", "-o", tmp_path / "solids.html")
    assert code == 0
    assert "open it in a browser" in out
    assert b"plotly" in (tmp_path / "solids.html").read_bytes()
    assert run("plot", tmp_path / "two.npz", "--colour", "active", "--layers", "1,2", "-o", tmp_path / "a.svg").code == 0
    code, _, err = run("plot", tmp_path / "two.npz", "-o", tmp_path / "solids.html")
    assert code == 2
    assert "solids need three free inputs" in err
