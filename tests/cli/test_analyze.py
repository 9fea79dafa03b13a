"""`tessella analyze` and `tessella demo` as a person uses them."""

import json
import re
import time
from dataclasses import replace

import numpy as np
import pytest

import tessella
from helpers.files import written
from helpers.here import Here
from tessella.analysis import plan
from tessella.result import Status


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """Compile before the first command, which would say on stderr that it does."""
    for inputs in (3, 20):
        net = tessella.load([(np.eye(inputs), np.zeros(inputs)), (np.ones((1, inputs)), [0.0])])
        tessella.estimate(net, tessella.Box.cube(-1, 1, inputs), probes=1)


@pytest.fixture
def model(tmp_path):
    return written(tmp_path / "net.npz", (3, 5, 4, 2))


@pytest.fixture
def large(tmp_path):
    return written(tmp_path / "large.npz", (20, 30, 30, 2))


def test_a_small_network_is_counted(run, model):
    exact = tessella.count(tessella.load(model), tessella.Box.cube(0, 1, 3)).exact
    code, out, err = run("analyze", model, "--box", "0,1")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "net.npz: 3-5-4-2 on [0, 1]^3"
    assert lines[2].split() == ["exactly", f"{exact:,}", f"{np.log2(exact):.2f}", "proved"]
    assert "stably active" in out
    assert "what was run" in out
    assert "nothing had to be estimated" in out
    assert run("analyze", model, "--box", "0,1", "-q")[1] == f"{exact}\n"


def test_a_large_network_gets_a_bracket(run, large, monkeypatch):
    monkeypatch.setattr(plan, "EstimatingProcess", Here)
    code, out, err = run("analyze", large, "--box=-1,1", "--seconds", "1.5")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line.split()[1] if line.startswith("at") else line.split()[0] for line in lines[2:6]] == [
        "least",
        "least",
        "about",
        "most",
    ]
    assert lines[2].rstrip().endswith("proved")
    assert lines[3].rstrip().endswith("with 95 % confidence")
    assert "estimated" in lines[4] or "too uncertain to estimate" in lines[4]
    assert lines[5].rstrip().endswith("proved")


def test_quiet_and_json(run, large):
    numbers = run("analyze", large, "--box=-1,1", "--seconds", "1", "-q")[1].split()
    assert len(numbers) == 4
    record = json.loads(run("analyze", large, "--box=-1,1", "--seconds", "1", "--json")[1])
    assert record["exact"] is None
    assert record["proved_lower"] <= record["probable_lower"] <= record["upper"]
    assert record["model"].endswith("large.npz")


def test_several_models_are_ranked(run, model, tmp_path):
    other = written(tmp_path / "wide.npz", (3, 20, 20, 2))
    code, out, err = run("analyze", model, other, "--box=-1,1", "--seconds", "20")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    place = lines.index("Which has more regions?")
    assert lines[place + 2].startswith("wide.npz")
    assert lines[place + 2].rstrip().endswith("yes, proved")
    assert lines[place + 3].startswith("net.npz")
    record = json.loads(run("analyze", model, other, "--box=-1,1", "--seconds", "20", "--json")[1])
    assert [one["model"] for one in record["models"]] == [str(model), str(other)]
    assert (record["status"], record["left_out"]) == ("finished", [])
    assert record["ranking"]["order"] == [str(other), str(model)]
    assert record["ranking"]["comparisons"][0]["verdict"] == "proved"
    counts = [line.split() for line in run("analyze", model, other, "--box=-1,1", "-q")[1].splitlines()]
    assert [words[1] for words in counts[:-1]] == [str(model), str(other)]
    assert " ".join(counts[-1]) == "ranking: wide.npz > net.npz (proved)"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nope.onnx", "--box", "0,1"], "no such file"),
        (["{model}"], "--box 0,1 or --property"),
        (["{model}", "--box", "0,1", "--seconds", "0"], "positive number"),
        (["{model}", "--box", "0,nan"], "finite"),
        (["{model}", "--box", "1,0"], "empty"),
        (["{model}", "--box", "0,1", "--confidence", "1"], "between 0 and 1"),
        (["{model}", "--box", "0,1", "--workers", "-1"], "at least 0"),
        (["{model}", "--box", "0,1", "--seed", "-1"], "at least 0"),
        (["{model}", "{large}", "--box", "0,1"], "has 3 inputs and .*large.npz has 20"),
        (["{model}", "{model}", "--box", "0,1"], "given twice"),
    ],
)
def test_errors_are_one_line(run, model, large, arguments, words):
    code, out, err = run("analyze", *(part.format(model=model, large=large) for part in arguments))
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert err.startswith("tessella: error: ")
    assert re.search(words, err)


def test_no_model_is_an_error(run):
    code, _, err = run("analyze", "--box", "0,1")
    assert code == 2
    assert "MODEL" in err


def test_help_has_examples(run):
    _, out, _ = run("analyze", "--help")
    assert "tessella analyze before.onnx after.onnx" in out


def test_demo_writes_a_report(run, tmp_path):
    code, out, err = run("demo")
    assert (code, err) == (0, "")
    report = tmp_path / "demo" / "report.html"
    assert out.rstrip().endswith(str(report))
    assert "26,785" in report.read_text()
    assert run("demo", "-q", "-o", "other.html")[1] == "26785\n"


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("foo.txt", "must end in .html or .htm"),
        ("nodir/x/y.html", "there is no folder nodir/x"),
        ("folder.html", "it is a folder"),
        ("demo/report.html", "demo: cannot be made"),
    ],
)
def test_demo_refuses_before_the_work_what_cannot_be_written(run, tmp_path, monkeypatch, output, words):
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "demo").write_text("")
    monkeypatch.setattr(tessella, "analyze", None, raising=False)
    code, out, err = run("demo", "-o", output)
    assert (code, out) == (2, "")
    assert words in err
    assert not (tmp_path / "nodir").exists()


@pytest.mark.parametrize("how", [[], ["-q"], ["--json"]])
def test_ctrl_c_names_the_models_that_were_not_looked_at(run, model, tmp_path, monkeypatch, how):
    other, last = written(tmp_path / "wide.npz", (3, 20, 20, 2)), written(tmp_path / "last.npz", (3, 4, 2))
    real, calls = plan.analyze, []

    def pressed(*given, **options):
        calls.append(1)
        found = real(*given, **options)
        return replace(found, status=Status.INTERRUPTED) if len(calls) == 2 else found

    monkeypatch.setattr(tessella, "analyze", pressed, raising=False)
    code, out, err = run("analyze", model, other, last, "--box=-1,1", *how)
    assert code == 130
    assert f"Note: Ctrl-C came before {last}: not looked at, so there is no ranking.\n" in err
    assert "Which has more" not in out
    if how == ["-q"]:
        assert [line.split()[1] for line in out.splitlines()] == [str(model), str(other)]
    if how == ["--json"]:
        record = json.loads(out)
        assert (record["status"], record["left_out"], record["ranking"]) == ("interrupted", [str(last)], None)
        assert [one["model"] for one in record["models"]] == [str(model), str(other)]


def test_a_file_under_two_names_is_given_twice(run, model):
    code, _, err = run("analyze", "net.npz", "./net.npz", "--box", "0,1")
    assert code == 2
    assert err == "tessella: error: ./net.npz is given twice, once as net.npz; each model once\n"


@pytest.mark.slow
def test_ctrl_c_ends_with_what_is_known(run, large):
    """In a terminal of 60 columns, where the bracket is drawn live."""
    with run.begin("analyze", large, "--box=-1,1", "--seconds", "60", columns=60) as running:
        running.wait_for("estimate")  # it is drawn, and well under way
        time.sleep(0.5)
        running.press_ctrl_c()
        code, out, _ = running.ended()
    assert code == 130
    assert "at most" in out
    assert "proved" in out
