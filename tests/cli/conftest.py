"""What every test of the command line needs."""

from pathlib import Path

import pytest

import tessella
from helpers.command_line import CommandLine
from tessella.counting.walkers import walk_for
from tessella.kernel import warming
from tessella.partition.tree import Tree


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run ``tessella ...`` in a folder of its own; every way to run it gives exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    return CommandLine(monkeypatch, capsys)


@pytest.fixture(scope="session", autouse=True)
def compiled_kernel():
    """Compile before the first command, which would say on stderr that it does."""
    network = tessella.load([([[1.0], [1.0]], [0.0, -0.5]), ([[1.0, -1.0]], [-0.1]), ([[1.0]], None)])
    tessella.stability(network, tessella.Box(-1, 1, dim=1))
    demo = tessella.load(Path(tessella.__file__).parent / "data" / "digits.onnx")
    known = tessella.stability(demo, tessella.Box.cube(0, 1, demo.input_dim), method="linear")
    warming.load(walk_for(Tree.of(known)).functions)
