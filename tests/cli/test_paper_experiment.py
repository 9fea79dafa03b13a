"""The paper's experiment, as a person runs it: every step on small images, and Ctrl-C in the middle."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / "experiments").is_dir():
    pytest.skip("the experiments are not part of the package", allow_module_level=True)
for package in ("torch", "sklearn", "matplotlib"):
    pytest.importorskip(package)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "experiments.paper", *arguments]


def test_all_steps_and_a_stop_between(tmp_path):
    """What `make paper-smoke` does; then one more network, stopped while it is measured, and gone on with."""
    done = subprocess.run(command("smoke", "--out", str(tmp_path)), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "all steps went well" in done.stderr
    results = tmp_path / "results" / "results.jsonl"
    before = results.read_text()
    again = command("run", "--nets", str(tmp_path / "nets"), "--out", str(tmp_path / "results"), "--seed", "1", "--only", "6-16")
    again += ["--tasks", "xor-2", "xor-5"]
    with subprocess.Popen(again, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert "6-16 seed 0, xor-2" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        assert process.wait(timeout=60) == 130, said
    assert "the same command goes on" in said
    assert results.read_text().startswith(before)
    assert results.read_text().count("\n") == before.count("\n") + 1
    rest = subprocess.run(again, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "xor-5" in rest.stderr
    assert "xor-2" not in rest.stderr
