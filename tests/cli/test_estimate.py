"""`tessella estimate` as a person uses it."""

import json
import re

import numpy as np
import pytest

import tessella
from helpers.files import written


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """Compile before the first command, which would say on stderr that it does."""
    net = tessella.load([(np.eye(3), np.zeros(3)), ([[1.0, 1.0, 1.0]], [0.0])])
    tessella.estimate(net, tessella.Box.cube(-1, 1, 3), probes=1)


@pytest.fixture
def model(tmp_path):
    return written(tmp_path / "net.npz", (3, 5, 4, 2))


@pytest.fixture
def large(tmp_path):
    return written(tmp_path / "large.npz", (20, 30, 30, 2))


def test_it_prints_a_table(run, large):
    code, out, err = run("estimate", large, "--box=-1,1", "--probes", "150")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "large.npz: 20-30-30-2 on [-1, 1]^20"
    assert lines[2].startswith("at least")
    assert lines[2].rstrip().endswith("with 95 % confidence")
    assert re.match(r"about +2\^[\d.]+ to 2\^[\d.]+ +[\d.]+ to [\d.]+ +estimated, from the spread of runs$", lines[3].rstrip())
    assert lines[-1].startswith("150 probes")


def test_too_few_probes_say_so(run, large):
    code, out, _ = run("estimate", large, "--box=-1,1", "--probes", "20")
    assert code == 0
    assert out.splitlines()[3].rstrip().split(maxsplit=3) == ["about", "-", "-", "too uncertain to estimate"]


def test_what_can_be_counted_is_exact(run, model):
    exact = tessella.count(tessella.load(model), tessella.Box.cube(0, 1, 3)).exact
    code, out, _ = run("estimate", model, "--box", "0,1", "--seconds", "5")
    assert code == 0
    assert out.splitlines()[2].split() == ["exactly", f"{exact:,}", f"{np.log2(exact):.2f}", "counted"]
    assert run("estimate", model, "--box", "0,1", "--seconds", "5", "-q")[1] == f"{exact}\n"


def test_quiet_and_json_say_the_same(run, large):
    given = ("estimate", large, "--box=-1,1", "--probes", "20", "--seed", "4", "--confidence", "0.9")
    lower, about = map(int, run(*given, "-q")[1].split())
    record = json.loads(run(*given, "--json")[1])
    assert (record["lower"], round(record["mean"]), record["confidence"]) == (lower, about, 0.9)
    assert record["model"] == str(large)


def test_help_has_examples(run):
    code, out, _ = run("estimate", "--help")
    assert code == 0
    assert "tessella estimate model.onnx --box 0,1 --seconds 5" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["MODEL"], "say which inputs"),
        (["none.onnx", "--box", "0,1"], "none.onnx: no such file"),
        (["MODEL", "--box", "0,1", "--seconds", "0"], "seconds is 0"),
        (["MODEL", "--box", "0,1", "--probes", "0"], "probes is 0"),
        (["MODEL", "--box", "0,1", "--confidence", "1"], "confidence is 1"),
        (["MODEL", "--box", "0,1", "--seed", "-1"], "at least 0"),
        (["MODEL", "--box", "0,1", "--workers", "-1"], "at least 0"),
    ],
)
def test_bad_input_is_one_clear_error_with_exit_code_2(run, model, arguments, words):
    code, out, err = run("estimate", *(str(model) if word == "MODEL" else word for word in arguments))
    assert code == 2
    assert out == ""
    assert words in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_terminal_shows_the_line_live_and_ctrl_c_ends_it(run, large):
    with run.begin("estimate", large, "--box=-1,1", "--seconds", "60", columns=160) as running:
        running.wait_for("probes")
        running.press_ctrl_c()
        code, out, shown = running.ended()
    assert code == 130
    for words in ("at least", "with 95 % confidence", "probes"):
        assert words in shown
    assert "about 2^" in shown or "too uncertain to estimate yet" in shown
    assert "Note: stopped by Ctrl-C." in shown
    assert "at least" in out
