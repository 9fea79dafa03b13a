"""Compiled code does not check its indices.  Here it does: in a process of its own, with nothing on disk."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ["last_layer", "depth_first", "cell_points", "hulls", "rows", "emptiness"]

CONTROL = """
import numpy as np
from tessella.kernel.functions import apart
from tessella.kernel.record import Vector

@apart
def inner(values: Vector, at: int) -> float:
    return values[at]

@apart
def outer(values: Vector, at: int) -> float:
    return inner(values, at) + 1.0

for function in (inner, outer):
    assert function(np.ones(3), 2) >= 1.0
    try:
        function(np.ones(3), 3)
    except IndexError:
        continue
    raise SystemExit(f"{function} left its array")
"""

RUNS = """
import numpy as np
from tessella import Box, Layer, Network, count, estimate, regions, sample_regions

rng = np.random.default_rng(0)
relus = [(sizes, [0.0]) for sizes in ((2, 6, 5), (5, 6, 5), (9, 6, 5), (30, 5, 4), (140, 6, 5), (16, 70, 70))]
leaky = [(sizes, [-1.0, 0.01, 0.2, 1.5]) for sizes in ((2, 6, 5, 4), (5, 6, 5), (12, 6, 5), (130, 6, 5), (16, 70, 70))]
for (inputs, *widths), slopes in relus + leaky:
    layers = [
        Layer(
            rng.standard_normal((size, before)) / np.sqrt(before),
            0.3 * rng.standard_normal(size),
            slope=rng.choice(slopes, size),
        )
        for before, size in zip([inputs, *widths], widths)
    ]
    network, box = Network(tuple(layers)), Box(-1, 1, dim=inputs)
    if inputs != 16:
        found = count(network, box)
        assert found.exact == sum(1 for _ in regions(network, box)), found
    known = estimate(network, box, probes=4, counting=False)
    assert known.probes >= 4, known
    sample_regions(network, box, 3)
"""


def checked(tmp_path, *arguments):
    """Run Python where indices are checked; code is compiled with few optimisations, which takes half as long."""
    compiled = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    environment = {**os.environ, **compiled, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


@pytest.mark.slow
def test_an_index_that_is_wrong_is_told(tmp_path):
    (tmp_path / "control.py").write_text(CONTROL)
    checked(tmp_path, str(tmp_path / "control.py"))


@pytest.mark.slow
def test_no_room_leaves_its_arrays(tmp_path):
    """Counts and estimates, then the rooms' own tests, with what is compiled by then."""
    (tmp_path / "runs.py").write_text(RUNS)
    checked(tmp_path, str(tmp_path / "runs.py"))
    tests = [f"tests/unit/test_{room}.py" for room in ROOMS]
    checked(tmp_path, "-m", "pytest", "-q", "-x", "-n0", "-m", "not slow", *tests)
