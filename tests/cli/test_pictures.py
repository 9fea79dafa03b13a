"""`tessella plot` and `tessella report` as a person uses them."""

import json
import os
import re

import numpy as np
import pytest

import tessella
from helpers.files import written
from tessella import charts, report


@pytest.fixture(scope="session", autouse=True)
def compiled(compiled_kernel):
    network = tessella.load([([[1.0, 0.0]], [0.0]), ([[1.0]], None)])
    tessella.polygons(network, tessella.Box(-1, 1, dim=2))


@pytest.fixture
def model(tmp_path):
    return written(tmp_path / "net.npz", (5, 8, 7, 3), bias=0.5)


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_it_draws_a_slice(run, model, tmp_path, kind):
    code, out, err = run("plot", model, "--box", "-1,1", "--slice", "0,3", "-o", f"regions.{kind}")
    assert (code, err) == (0, "")
    network, box = tessella.load(model), tessella.Box(-1, 1, dim=5)
    chosen = tessella.slice(network, domain=box, axes=(0, 3))
    counted = tessella.count(chosen.network, chosen.domain).exact
    assert out.splitlines()[0] == f"Inputs 0 and 3 of 5: {counted} regions, inputs from [-1, 1]^5"
    assert out.splitlines()[1].startswith(f"regions.{kind}: ")
    content = (tmp_path / f"regions.{kind}").read_bytes()
    assert content.startswith({"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[kind])
    if kind == "svg":
        shapes = re.search(rb'<g id="regions">.*?</g>\s*</g>|<g id="regions">.*?</g>', content, re.DOTALL).group()
        assert sum(path.count(b"z") for path in re.findall(rb' d="(.*?)"', shapes, re.DOTALL)) == counted


def test_the_same_command_gives_the_same_file(run, model, tmp_path):
    for name in ("one.svg", "two.svg"):
        assert run("plot", model, "--slice", "0,3", "-o", name, "--colour", "layer")[0] == 0
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_json_and_quiet(run, model):
    code, out, err = run("plot", model, "--slice", "1", "-o", "line.png", "--json")
    assert (code, err) == (0, "")
    record = json.loads(out)
    assert record["file"] == "line.png"
    assert record["slice"]["text"] == "input 1"
    assert record["regions"] >= 1
    assert run("plot", model, "--slice", "1", "-o", "line.png", "-q") == (0, "line.png\n", "")


def test_planes_through_points(run, model, tmp_path):
    points = np.random.default_rng(0).random((3, 5))
    np.savetxt(tmp_path / "points.csv", points, delimiter=",")
    np.save(tmp_path / "points.npy", points)
    np.savez(tmp_path / "points.npz", points=points, labels=np.arange(3))
    outs = {run("plot", model, "--through", f"points.{kind}", "-o", "x.png", "-q", "--json")[1] for kind in ("csv", "npy", "npz")}
    assert len(outs) == 1
    code, _, err = run("plot", model, "--slice", "0,1", "--at", "points.csv", "-o", "x.png")
    assert (code, err) == (0, "")


def test_networks_with_few_inputs_need_no_slice(run, tmp_path):
    for inputs in (1, 2):
        small = written(tmp_path / f"small{inputs}.npz", (inputs, 5, 2), bias=0.5)
        code, out, _ = run("plot", small, "--box", "-1,1", "-o", "x.svg")
        assert code == 0
        assert re.fullmatch(rf"{inputs}-5-2 on \[-1, 1\](\^2)?: \d+ regions", out.splitlines()[0])
        assert len(out.splitlines()) == 2


def test_without_a_slice_it_draws_the_plane_of_the_report(run, model):
    code, out, _ = run("plot", model, "--box", "-1,1", "-o", "x.svg")
    assert code == 0
    network, box = tessella.load(model), tessella.Box(-1, 1, dim=5)
    title, where, _ = out.splitlines()
    assert (
        title == f"A plane through points, 5 inputs: {len(report.explore(network, box).polygons)} regions, inputs from [-1, 1]^5"
    )
    assert where.startswith("The plane through the centre of the domain and two corners of its box, drawn with seed 0; --slice")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.npz", "--slice", "0,1"], "none.npz: no such file"),
        (["net.npz", "--slice", "0,5"], "there is no input 5: the network reads inputs 0 to 4"),
        (["net.npz", "--slice", "0,0"], "one or two different inputs"),
        (["net.npz", "--slice", "x"], "--slice takes whole numbers"),
        (["net.npz", "--slice", "0,1", "--at", "x"], "--at takes one number, one per input, or a file"),
        (["net.npz", "--slice", "0,1", "--at", "1,2"], "expected one number, or 5"),
        (["net.npz", "--slice", "0,1", "--at", "7"], "misses the domain: input 2 is 7"),
        (["net.npz", "--at", "7"], "it goes with --slice"),
        (["net.npz", "--slice", "0,1", "--through", "p.csv"], "either --slice or --through"),
        (["net.npz", "--through", "p.csv"], "p.csv: no such file"),
        (["net.npz", "--through", "net.txt"], "points are read from .csv, .npy or .npz"),
        (["net.npz", "--through", "bad.csv"], "bad.csv: holds no numbers, only 'a,b'"),
        (["net.npz", "--through", "net.npz"], "one of the name points was expected"),
        (["net.npz", "--slice", "0,1", "-o", "x.gif"], "must end in .svg, .png, .pdf or .html"),
        (["net.npz", "--slice", "0,1", "-o", "none/x.svg"], "there is no folder none"),
        (["net.npz", "--slice", "0,1", "-o", "folder.svg"], "it is a folder"),
        (["net.npz", "--slice", "0,1", "--colour", "red"], "one of region, layer, slope"),
        (["net.npz", "--slice", "0,1", "--of-output", "9"], "no output 9"),
        (["net.npz", "--slice", "0,1", "--limit", "0"], "--limit must be at least 1"),
        (["net.npz", "--slice", "0,1", "--limit", "2", "--box", "-1,1"], "more than 2 regions"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(run, model, tmp_path, arguments, words):
    (tmp_path / "net.txt").write_text("1,2")
    (tmp_path / "bad.csv").write_text("a,b\n")
    (tmp_path / "folder.svg").mkdir()
    code, out, err = run("plot", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("tessella: error: ")
    assert err.count("\n") == 1
    assert words in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_named(run, model, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    code, _, err = run("plot", model, "--slice", "0,1", "-o", "locked/x.svg")
    assert code == 2
    assert "no permission" in err


def test_without_matplotlib_the_extra_is_named(run, model, monkeypatch):
    monkeypatch.setattr(charts, "find_spec", lambda _: None)
    code, _, err = run("plot", model, "--slice", "0,1")
    assert code == 2
    assert err == "tessella: error: pictures need matplotlib, which is not installed: pip install matplotlib\n"


def test_a_report_is_written(run, model, tmp_path):
    code, out, _ = run("report", model, "--box", "-1,1", "--seconds", "2")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("net.npz: ")
    assert lines[2].startswith("exactly ")
    assert "Analysis(" not in out
    assert lines[-2].startswith("The plane through the centre of the domain and two corners of its box, drawn with seed 0.")
    assert lines[-1].startswith("report.html: ")
    text = (tmp_path / "report.html").read_text()
    assert "tessella report " in text
    assert "net.npz" in text


def test_a_report_on_a_slice_as_json(run, model):
    code, out, _ = run("report", model, "--slice", "0,1", "--seconds", "30", "--json", "-o", "x.html")
    assert code == 0
    record = json.loads(out)
    assert record["file"] == "x.html"
    assert record["shown"] >= 1
    assert record["exact"] >= record["shown"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.npz"], "no such file"),
        (["net.npz", "-o", "x.pdf"], "must end in .html or .htm"),
        (["net.npz", "--slice", "0,9"], "there is no input 9"),
        (["net.npz", "--limit", "0"], "--limit must be at least 1"),
        (["net.npz", "--seconds", "0"], "seconds is 0.0"),
    ],
)
def test_a_wrong_report_is_refused_in_one_line(run, model, arguments, words):
    code, out, err = run("report", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("tessella: error: ")
    assert err.count("\n") == 1
    assert words in err


@pytest.fixture
def data(tmp_path):
    """Examples, and their classes."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "data.npy", rng.random((30, 5)))
    np.savetxt(tmp_path / "labels.csv", np.arange(30) % 3, delimiter=",")
    np.savez(tmp_path / "both.npz", points=rng.random((30, 5)), labels=np.arange(30) % 3)


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("labels", [[], ["--labels", "labels.csv"], ["--labels", "both.npz"]])
def test_examples_are_shown_on_a_plane_through_three_of_them(run, model, tmp_path, labels):
    classes = [" (class 0)", " (class 1)", " (class 2)"] if labels else ["", "", ""]
    words = "The plane through examples 0{}, 1{} and 2{} of the data".format(*classes)
    code, out, err = run("plot", model, "--data", "data.npy", *labels, "-o", "x.svg")
    assert (code, err) == (0, "")
    assert words in out
    picture = (tmp_path / "x.svg").read_text()
    assert "<!-- the decision changes -->" in picture
    assert ("<!-- class 2 -->" in picture) == bool(labels)
    code, out, _ = run("report", model, "--data", "data.npy", *labels, "--seconds", "1")
    assert code == 0
    assert words in out
    assert words in (tmp_path / "report.html").read_text()


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--labels", "labels.csv"], "it goes with --data"),
        (["--data", "none.npy"], "none.npy: no such file"),
        (["--data", "labels.csv"], "with 5 inputs each"),
        (["--data", "data.npy", "--labels", "data.npy"], "30 examples and 150 labels"),
        (["--data", "data.npy", "--labels", "net.npz"], "one of the name labels was expected"),
    ],
)
@pytest.mark.parametrize("command", ["plot", "report"])
def test_wrong_examples_are_refused_in_one_line(run, model, command, arguments, words):
    code, out, err = run(command, model, *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert words in err


def test_a_slice_of_one_region_says_what_else_to_try(run, tmp_path):
    written(tmp_path / "far.npz", (5, 3, 1), bias=0.0)
    code, out, _ = run("plot", "far.npz", "--box", "1,1.000001", "--slice", "0,1", "-o", "x.svg")
    assert code == 0
    assert "No unit changes its state on this slice. Without --slice all inputs vary" in out


def test_many_points_of_a_plane_are_told_and_marked(run, model, tmp_path):
    corners = np.random.default_rng(0).random((3, 5))
    shares = np.random.default_rng(1).dirichlet(np.ones(3), 40)
    np.save(tmp_path / "many.npy", np.vstack([corners, shares @ corners]))
    code, out, _ = run("plot", model, "--through", "many.npy", "-o", "x.svg")
    assert code == 0
    assert "All 43 points lie in this plane, and are marked." in out


def test_several_models_are_compared_in_one_report(run, tmp_path):
    names = [
        str(written(tmp_path / f"{name}.npz", sizes, bias=0.5)) for name, sizes in (("one", (4, 5, 2)), ("other", (4, 8, 2)))
    ]
    code, out, _ = run("report", *names, "--box", "-1,1", "--seconds", "4")
    assert code == 0
    assert "Which has more regions?" in out
    text = (tmp_path / "report.html").read_text()
    assert "2 networks compared" in text
    assert text.count("<canvas") == 2
    code, out, _ = run("report", *names, "--box", "-1,1", "--seconds", "4", "--json")
    record = json.loads(out)
    assert [part["model"] for part in record["models"]] == names
    assert set(record["ranking"]["order"]) == set(names)
    code, _, err = run("report", names[0], names[0])
    assert code == 2
    assert "is given twice" in err


@pytest.mark.parametrize("command", ["plot", "report"])
def test_help_has_examples(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert "Examples" in out
    assert f"tessella {command} model.onnx" in out
