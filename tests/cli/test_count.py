"""`tessella count` as a person uses it."""

import json
import time

import numpy as np
import pytest

import tessella
from helpers.brute_force import count_regions
from helpers.command_line import plain
from helpers.files import written


@pytest.fixture
def model(tmp_path):
    return written(tmp_path / "net.npz", (3, 5, 4, 2))


def by_brute_force(network, low, high):
    layers = [(layer.dense(), layer.bias, layer.rectified) for layer in network.layers]
    return count_regions(layers, np.full(network.input_dim, low), np.full(network.input_dim, high))


@pytest.fixture
def exact(model):
    return by_brute_force(tessella.load(model), 0.0, 1.0)


@pytest.fixture
def large(tmp_path):
    """One that no test waits for."""
    return written(tmp_path / "large.npz", (20, 30, 30, 2))


def test_it_prints_a_table(run, model, exact):
    code, out, err = run("count", model, "--box", "0,1")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "net.npz: 3-5-4-2 on [0, 1]^3"
    assert lines[2].split() == ["exactly", f"{exact:,}", f"{np.log2(exact):.2f}"]
    assert lines[-1].startswith("Proved (walk, ")
    assert "MAPS is log2 of the count." in out


def test_quiet_prints_the_bare_number(run, model, exact, large):
    assert run("count", model, "--box", "0,1", "--quiet", "--workers", "2") == (0, f"{exact}\n", "")
    code, out, err = run("count", large, "--box=-1,1", "-q", "--seconds", "0.2")
    lower, upper = map(int, out.split())
    assert (code, 1 <= lower < upper) == (0, True)
    assert "stopped by the time limit" in err


def test_json_has_the_claims(run, model, exact):
    code, out, err = run("count", model, "--box", "0,1", "--json")
    record = json.loads(out)
    assert (code, err) == (0, "")
    assert (record["model"], record["exact"], record["status"]) == (str(model), exact, "finished")


def test_relu_outputs_are_counted_if_asked_for(run, model):
    plain, rectified = (by_brute_force(tessella.load(model, relu_output=flag), -2.0, 2.0) for flag in (False, True))
    assert plain < rectified
    assert run("count", model, "--box=-2,2", "-q") == (0, f"{plain}\n", "")
    assert run("count", model, "--box=-2,2", "-q", "--relu-output") == (0, f"{rectified}\n", "")


def test_a_property_is_a_domain(run, model, exact, tmp_path):
    text = "".join(f"(declare-const X_{i} Real)\n(assert (>= X_{i} 0))\n(assert (<= X_{i} 1))\n" for i in range(3))
    (tmp_path / "p.vnnlib").write_text(text + "(declare-const Y_0 Real)\n(assert (<= Y_0 0))\n")
    assert run("count", model, "--property", tmp_path / "p.vnnlib", "-q")[1] == f"{exact}\n"


def test_milp_gives_the_same_number(run, model, exact):
    assert run("count", model, "--box", "0,1", "-q", "--method", "milp")[1] == f"{exact}\n"


def test_a_time_limit_prints_the_bracket(run, large):
    code, out, err = run("count", large, "--box=-1,1", "--seconds", "0.3")
    rows = {line.split("  ")[0]: line for line in out.splitlines()}
    assert code == 0
    assert {"at least", "at most"} <= {key.strip() for key in rows}
    assert "Both are proved; " in out
    assert err == "Note: stopped by the time limit before the end; with --checkpoint FILE it could go on later.\n"


def test_a_checkpoint_goes_on(run, large, tmp_path):
    path, lower = tmp_path / "run.db", 0
    for _ in range(3):
        code, out, err = run("count", large, "--box=-1,1", "--seconds", "0.3", "--checkpoint", path, "--json")
        record = json.loads(out)
        assert code == 0
        assert lower < record["lower"] < record["upper"]
        lower = record["lower"]
        assert "the same command goes on from there" in err


def test_help_has_examples(run):
    code, out, _ = run("count", "--help")
    assert code == 0
    assert "tessella count model.onnx --box 0,1 --seconds 60 --checkpoint run.db" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["MODEL"], "say which inputs"),
        (["none.onnx", "--box", "0,1"], "none.onnx: no such file"),
        (["MODEL", "--box", "0,1", "--seconds", "0"], "seconds is 0"),
        (["MODEL", "--box", "0,1", "--seconds", "nan"], "seconds is nan"),
        (["MODEL", "--box", "0,1", "--seconds", "soon"], "valid number"),
        (["MODEL", "--box", "0,1", "--workers", "-1"], "at least 0"),
        (["MODEL", "--box", "0,1", "--method", "magic"], "magic"),
        (["MODEL", "--box", "0,1", "--method", "milp", "--workers", "2"], "leave that out"),
        (["MODEL", "--box", "0,1", "--checkpoint", "nowhere/run.db"], "there is no folder"),
        (["MODEL", "--box", "0,1", "--checkpoint", "MODEL"], "is no checkpoint"),
    ],
)
def test_bad_input_is_one_clear_error_with_exit_code_2(run, model, arguments, words):
    code, out, err = run("count", *(str(model) if word == "MODEL" else word for word in arguments))
    assert code == 2
    assert out == ""
    assert words in err
    assert "Traceback" not in err


def test_ctrl_c_prints_the_bracket_so_far(run, large, tmp_path):
    with run.begin("count", large, "--box=-1,1", "--checkpoint", "run.db") as running:
        running.wait_until((tmp_path / "run.db").exists)
        time.sleep(2.0)
        running.press_ctrl_c()
        code, out, err = running.ended()
    assert code == 130
    assert "at least" in out
    assert err.splitlines()[-1] == "Note: stopped by Ctrl-C before the end; the same command goes on from there."
    assert "Traceback" not in err


def test_a_terminal_shows_the_bracket_live(run, large):
    code, _, shown = run.apart("count", large, "--box=-1,1", "--seconds", "1", columns=80)
    assert code == 0
    for words in ("at least", "at most", "% of the tree done", "regions/s", "2^"):
        assert words in plain(shown)
