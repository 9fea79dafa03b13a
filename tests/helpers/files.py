"""Files that tests of the command line read."""

import itertools
from pathlib import Path

import numpy as np

from tessella import Network
from tessella.importers.arrays import write_npz


def written(path: Path, sizes, seed=0, bias=1.0) -> Path:
    """Write a network with normal weights and biases."""
    rng = np.random.default_rng(seed)
    layers = [(rng.standard_normal((n, m)), bias * rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)]
    write_npz(Network.from_arrays(layers), path)
    return path
