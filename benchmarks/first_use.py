"""How long the first answer takes on a machine where nothing is compiled yet.

    python benchmarks/first_use.py                       # this code
    python benchmarks/first_use.py --against ../old/src  # and another checkout of Tessella, one after the other, with ratios

Each row is a new process with an empty folder for compiled code.  ``wall`` is the time of the whole process, ``CPU`` that of the process and its helpers, and ``again`` the wall
time of the same call in another process once everything is compiled.  Run it with nothing else running.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_NETWORK = """
import numpy as np, tessella
rng = np.random.default_rng(0)
sizes = {sizes}
layers = [(rng.standard_normal((m, n)) / n ** 0.5, rng.standard_normal(m) * 0.3) for n, m in zip(sizes, sizes[1:])]
net, box = tessella.load(layers, relu_output=True), tessella.Box.cube(0.0 if sizes[0] > 100 else -1.0, 1.0, dim=sizes[0])
"""
_CALLS = {
    "count, 2 inputs": ([2, 10, 10], "tessella.count(net, box)"),
    "count, 5 inputs": ([5, 8, 8], "tessella.count(net, box)"),
    "count, 8 inputs": ([8, 6, 6], "tessella.count(net, box)"),
    "count, 784 inputs": ([784, 5, 6, 4], "tessella.count(net, box)"),
    "estimate, 5 inputs, no count": ([5, 8, 8], "tessella.estimate(net, box, probes=50)"),
    "estimate, 784 inputs, no count": ([784, 5, 6, 4], "tessella.estimate(net, box, probes=20)"),
    "bounds of units (milp), 8 inputs": ([8, 6, 6], "tessella.stability(net, box)"),
    "mipbound, 8 inputs": ([8, 6, 6], "tessella.mipbound(net, box, repetitions=28)"),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", metavar="SRC", help="the src folder of another checkout")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name contains this")
    asked = parser.parse_args()
    here = str(Path(__file__).parent.parent / "src")
    print(
        f"{'first use':34} {'wall':>7} {'CPU':>7} {'again':>7}"
        + ("   before: wall     CPU   again   ratio of wall" if asked.against else "")
    )
    for name, (sizes, call) in _CALLS.items():
        if asked.only not in name:
            continue
        program = _NETWORK.format(sizes=sizes) + call
        wall, cpu, again = _first_use(program, here)
        line = f"{name:34} {wall:7.1f} {cpu:7.1f} {again:7.1f}"
        if asked.against:
            old = _first_use(program, asked.against)
            line += f"{old[0]:15.1f} {old[1]:7.1f} {old[2]:7.1f} {wall / old[0]:13.2f}"
        print(line, flush=True)


def _first_use(program: str, source: str) -> tuple[float, float, float]:
    """Wall and CPU seconds with an empty cache, and wall seconds with the cache that is then filled."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {**os.environ, "PYTHONPATH": source, "NUMBA_CACHE_DIR": folder}
        begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", program], env=settings, check=True, stderr=subprocess.DEVNULL)
        wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], env=settings, check=True, stderr=subprocess.DEVNULL)
        return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.perf_counter() - begun


if __name__ == "__main__":
    main()
