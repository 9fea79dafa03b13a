"""What every test of the command line needs."""

import pytest

import tessella
from helpers.command_line import CommandLine


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
