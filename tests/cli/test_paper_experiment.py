"""The paper's experiment, as a person runs it: every step on small images, and Ctrl-C in the middle."""

from pathlib import Path
from time import monotonic, sleep

import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / "experiments").is_dir():
    pytest.skip("the experiments are not part of the package", allow_module_level=True)
for package in ("torch", "sklearn", "matplotlib"):
    pytest.importorskip(package)


PAPER = {"module": "experiments.paper", "cwd": ROOT}


@pytest.mark.slow
def test_all_steps_and_a_stop(run, tmp_path):
    """What `make paper-smoke` does; then a count with more time, stopped by Ctrl-C."""
    code, _, err = run.apart("smoke", "--out", tmp_path, seconds=900.0, **PAPER)
    assert code == 0, err
    assert "all steps went well" in err
    results = tmp_path / "results"
    before = (results / "results.jsonl").read_bytes()
    again = ["run", "--nets", tmp_path / "nets", "--out", results, "--only", "21-1", "--tasks", "count"]
    again += ["--estimate-seconds", "0.5", "--exact-seconds", "100000"]
    with run.begin(*again, **PAPER) as running:
        running.wait_for("count: under way")
        running.press_ctrl_c()
        code, _, said = running.ended()
    assert code == 130, said
    assert "the same command goes on" in said
    assert (results / "results.jsonl").read_bytes() == before
    assert list((results / "checkpoints").glob("*.db"))  # where the count goes on
    if not Path("/proc/self/task").is_dir():
        return
    with run.begin(*again, **PAPER) as running:
        running.wait_until(lambda: len(children(running.pid)) >= 2)
        sleep(1.0)  # it begins to listen
        workers = children(running.pid)
        running.kill()
    assert len(workers) == 2
    deadline = monotonic() + 30.0
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and monotonic() < deadline:
        sleep(0.1)
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)  # nobody goes on without the one who was killed


def children(process: int) -> list[str]:
    """The processes that a process has started: one that counts, and one that tracks resources."""
    return [child for path in Path(f"/proc/{process}/task").glob("*/children") for child in path.read_text().split()]
