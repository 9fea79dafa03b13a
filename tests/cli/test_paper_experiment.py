"""The paper's experiment, as a person runs it: every step on small images, and Ctrl-C in the middle."""

import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / "experiments").is_dir():
    pytest.skip("the experiments are not part of the package", allow_module_level=True)
for package in ("torch", "sklearn", "matplotlib"):
    pytest.importorskip(package)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "experiments.paper", *arguments]


def test_all_steps_and_a_stop(tmp_path):
    """What `make paper-smoke` does; then a count with more time, stopped by Ctrl-C."""
    done = subprocess.run(command("smoke", "--out", str(tmp_path)), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "all steps went well" in done.stderr
    results = tmp_path / "results"
    before = (results / "results.jsonl").read_bytes()
    again = command("run", "--nets", str(tmp_path / "nets"), "--out", str(results), "--only", "21-1", "--tasks", "count")
    again += ["--estimate-seconds", "0.5", "--exact-seconds", "100000"]
    with subprocess.Popen(again, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if "count: under way" in line:
                break
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 130, said
    assert "the same command goes on" in said
    assert (results / "results.jsonl").read_bytes() == before
    assert list((results / "checkpoints").glob("*.db"))  # where the count goes on
    if not Path("/proc/self/task").is_dir():
        return
    with subprocess.Popen(again, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        while len(children(process.pid)) < 2 and process.poll() is None:
            sleep(0.1)
        sleep(1.0)  # it begins to listen
        workers = children(process.pid)
        process.kill()
    assert len(workers) == 2
    deadline = monotonic() + 30.0
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and monotonic() < deadline:
        sleep(0.1)
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)  # nobody goes on without the one who was killed


def children(process: int) -> list[str]:
    """The processes that a process has started: one that counts, and one that tracks resources."""
    return [child for path in Path(f"/proc/{process}/task").glob("*/children") for child in path.read_text().split()]
