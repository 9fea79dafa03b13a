"""What every test of the command line needs."""

import pytest

import tessella


@pytest.fixture(scope="session", autouse=True)
def compiled_kernel():
    """Compile before the first command, which would say on stderr that it does."""
    network = tessella.load([([[1.0], [1.0]], [0.0, -0.5]), ([[1.0, -1.0]], [-0.1]), ([[1.0]], None)])
    tessella.stability(network, tessella.Box(-1, 1, dim=1))
