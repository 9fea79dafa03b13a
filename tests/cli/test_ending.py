"""How commands end: exit codes, readers that leave, streams that are closed, disks that are full, and Ctrl-C at any moment."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tessella
from helpers.command_line import PACKAGE, plain
from helpers.full_disk import small_files
from tessella.importers.arrays import write_npz

COUNT, EXPORT = ["count", "--box", "0,1"], ["export", "--box", "0,1", "--method", "linear", "-o", "net.mps"]


@pytest.fixture
def model(tmp_path):
    return written(tmp_path / "net.npz", (3, 5, 4, 2))


def written(path, sizes):
    rng = np.random.default_rng(0)
    layers = [(rng.standard_normal((n, m)), rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)]
    write_npz(tessella.Network.from_arrays(layers), path)
    return path


def in_shell(line, folder, *arguments):
    """Exit code and stderr of ``tessella ...`` in a line of bash."""
    given = " ".join([f"'{sys.executable}' -m tessella", *map(str, arguments)])
    surroundings = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    command = ["bash", "-c", line.replace("TESSELLA", given)]
    done = subprocess.run(command, env=surroundings, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("command", "reader"), [(COUNT, "head -n 1"), (["show"], "true"), (EXPORT, "true"), (["count", "--help"], "true")]
)
def test_a_reader_that_has_seen_enough_is_no_error(model, command, reader):
    assert in_shell(f"set -o pipefail; TESSELLA | {reader} > nothing", model.parent, command[0], model, *command[1:]) == (0, "")


@pytest.mark.parametrize("command", [["show"], COUNT])
def test_output_that_is_closed_is_told_in_one_line(model, command):
    code, err = in_shell("TESSELLA >&-", model.parent, command[0], model, *command[1:])
    assert (code, err) == (1, "tessella: error: the output cannot be written: standard output is closed\n")


def test_closed_streams_are_not_taken_by_files(model, tmp_path):
    """A checkpoint that were the first file to be opened would get what is said on stderr."""
    arguments = ["count", model, "--box", "0,1", "--checkpoint", "run.db", "-q"]
    assert in_shell("TESSELLA > answer 2>&- <&-", model.parent, *arguments) == (0, "")
    answer = (tmp_path / "answer").read_text()
    assert int(answer) == tessella.count(model, (0, 1)).exact
    assert in_shell("TESSELLA > again", model.parent, *arguments) == (0, "")
    assert (tmp_path / "again").read_text() == answer


@pytest.mark.parametrize(
    ("output", "command", "most"),
    [
        ("net.mps", ["export", "--box", "0,1", "--method", "linear"], 300),
        ("plane.png", ["plot", "--slice", "0,1"], 300),
        ("page.html", ["report", "--seconds", "0.5"], 300),
    ],
)
def test_where_the_disk_ends_no_file_is_left_and_the_line_says_what_to_do(run, model, tmp_path, output, command, most):
    with small_files(most):
        code, _, err = run(command[0], model, "-o", output, *command[1:])
    assert code == 1
    assert err.splitlines()[-1] == f"tessella: error: {output}: cannot be written (File too large); choose another place"
    assert [path.name for path in tmp_path.iterdir()] == ["net.npz"]


def test_export_says_before_the_work_that_it_cannot_write(run, model, monkeypatch):
    monkeypatch.setattr(tessella, "load", None)
    for output, words in (
        ("nowhere/net.mps", "there is no folder nowhere"),
        ("net.txt", "must end in .mps, .lp, .mps.gz, .lp.gz, .onnx, .npz, .pt2 or .keras"),
    ):
        code, out, err = run("export", model, "--box", "0,1", "-o", output)
        assert (code, out) == (2, "")
        assert words in err


def test_ctrl_c_while_units_are_bounded_ends_all_of_mipbound(run, tmp_path):
    wide = written(tmp_path / "wide.npz", (20, 60, 60, 60, 2))
    with run.begin("mipbound", wide, "--box=-1,1", columns=100) as running:
        running.wait_for("bounding units")
        time.sleep(0.5)
        running.press_ctrl_c()
        code, out, shown = running.ended(30.0)
    assert (code, out) == (130, "")
    assert plain(shown).endswith("tessella: stopped by Ctrl-C")


@pytest.mark.parametrize("command", [["stability"], ["upper"]])
def test_ctrl_c_while_units_are_bounded_gives_what_is_proved_and_its_exit_code(run, tmp_path, command):
    wide = written(tmp_path / "wide.npz", (20, 60, 60, 60, 2))
    with run.begin(*command, wide, "--box=-1,1", columns=100) as running:
        running.wait_for("bounding units")
        time.sleep(0.5)
        running.press_ctrl_c()
        code, out, shown = running.ended(30.0)
    assert code == 130
    assert "wide.npz" in out
    assert "cut short" in plain(shown)


def test_ctrl_c_that_a_library_swallows_still_shows_in_the_exit_code(run, model, monkeypatch):
    def swallows(*_, **__):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return tessella.configuration_bound(3, [5, 4])
        raise AssertionError

    monkeypatch.setattr(tessella, "raghu_bound", swallows)
    code, out, _ = run("upper", "--widths", "3,5,4")
    assert code == 130
    assert out


_EARLY = """
import os, signal, sys

class Press:
    def find_spec(self, name, path=None, target=None):
        if name == NAME:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["tessella", "demo"]
from tessella.cli import main
sys.meta_path.insert(0, Press())
main()
"""


@pytest.mark.parametrize("name", ["tessella.cli.running", "tessella.kernel", "tessella.kernel.meter"])
def test_ctrl_c_before_anybody_listens_is_one_line(run, name):
    assert run.apart("-c", _EARLY.replace("NAME", repr(name)), module=None) == (130, "", "tessella: stopped by Ctrl-C\n")


def test_before_main_next_to_nothing_is_loaded():
    """What is loaded there would show its traceback at Ctrl-C."""
    code = "import sys; before = set(sys.modules); import tessella.cli; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(PACKAGE)}
    )
    ours = {name for name in done.stdout.split() if name.startswith("tessella")}
    assert ours == {"tessella", "tessella._version", "tessella.errors", "tessella.cli"}
    assert "typing" not in done.stdout.split()


def test_json_of_every_command_has_its_schema_and_version_first(run, model):
    commands = [["show"], ["upper"], ["stability", "--box", "0,1"], ["count", "--box", "0,1"], ["mipbound", "--box", "0,1"]]
    commands += [["estimate", "--box", "0,1"], ["plot", "--slice", "0,1"]]
    for command, *others in commands:
        record = json.loads(run(command, model, *others, "--json")[1])
        assert list(record)[:2] == ["schema", "tessella"]
        assert record["tessella"] == tessella.__version__
        assert record["model"] == str(model)


def test_help_has_what_most_people_want_first_and_says_of_no_flag_that_it_is_a_bool(run):
    _, out, _ = run("--help")
    assert out.index("analyze") < out.index(" count") < out.index(" upper") < out.index(" warm")
    for command in ([], ["count"], ["analyze"], ["export"], ["plot"]):
        assert "<bool>" not in run(*command, "--help")[1]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("count --boxx 1", "no such option: --boxx: did you mean --box? 'tessella count --help' shows what can be typed"),
        ("cuont net.npz", "no such command 'cuont': did you mean 'count'? 'tessella --help' shows what can be typed"),
        ("count", "missing argument 'MODEL'; 'tessella count --help' shows what can be typed"),
        ("count net.npz --method x", "invalid value for '--method': 'x' is not one of 'walk', 'milp'; 'tessella count"),
        ("count net.npz --box", "--box"),
        ("estimate net.npz --probes 1e3", "invalid value for '--probes'"),
        ("demo more", "unexpected extra argument"),
        ("--foo", "no such option: --foo; 'tessella --help'"),
    ],
)
def test_what_was_typed_wrong_is_told_in_one_line_like_every_other_error(run, typed, said):
    code, out, err = run(*typed.split())
    assert (code, out) == (2, "")
    assert err.startswith("tessella: error: ")
    assert said in err
    assert err.count("\n") == 1


def test_shells_complete_commands_options_and_values(run):
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # else the shell is the one that runs the tests
    assert "_TESSELLA_COMPLETE=complete_bash" in run.apart("--show-completion", "bash", **named).out
    for words, number, expected in (("tessella an", 1, {"analyze"}), ("tessella count --meth", 2, {"--method"})):
        surroundings = {"COMP_WORDS": words, "COMP_CWORD": str(number), "_TESSELLA_COMPLETE": "complete_bash"}
        assert set(run.apart(**surroundings).out.split()) == expected
    assert Path("net.npz") not in Path.cwd().iterdir()
