"""How much faster a count is with more workers: threads, processes of this machine, and a Dask cluster on it.

    python benchmarks/workers.py                                  # from 1 to all cores
    python benchmarks/workers.py --cluster tcp://host:8786        # the workers that a cluster has

Each row counts the same network for the same time, once all workers have loaded what it calls, and says how many regions were found in a second.  ``times`` is against one
thread, measured before it.  Run it with nothing else running.
"""

import argparse
import os
from collections.abc import Generator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np

import tessella
from tessella.counting.schedule import prepare
from tessella.executors import hired
from tessella.parallel import everywhere, worker_count
from tessella.partition.tree import Tree
from tessella.processes import Processes


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each row counts")
    parser.add_argument("--inputs", type=int, default=8)
    parser.add_argument("--cluster", metavar="ADDRESS", help="a Dask scheduler's")
    asked = parser.parse_args()
    rng, sizes = np.random.default_rng(0), (asked.inputs, 40, 40)
    layers = [(rng.standard_normal((n, m)) / m**0.5, rng.standard_normal(n) * 0.3) for m, n in pairwise(sizes)]
    network, box = tessella.load(layers), tessella.Box.cube(-1.0, 1.0, asked.inputs)

    tree = Tree.of(tessella.stability(network, box, method="linear"))
    prepare(tree)

    def speed(given: dict) -> float:
        with hired(given.get("executor")) as executor:
            if executor is not None:
                everywhere(prepare, (tree,), executor, 120.0)
        found = tessella.count(network, box, seconds=asked.seconds, **given)
        return found.lower / found.seconds

    print(f"{'who':22} {'regions/s':>12} {'times':>7}")
    for who, context in _rows(asked.cluster):
        one = speed({"workers": 1})
        with context as given:
            found = speed(given)
        print(f"{who:22} {found:12,.0f} {found / one:7.2f}", flush=True)


def _rows(cluster: str | None) -> Generator[tuple]:
    if cluster:
        with hired(cluster) as executor:
            yield f"cluster, {worker_count(None, executor)} workers", _executor(lambda: hired(cluster))
        return
    for count in range(1, (os.cpu_count() or 1) + 1):
        yield f"{count} threads", _threads(count)
        yield f"{count} processes", _executor(lambda count=count: Processes(count))
        yield f"{count} Dask workers", _dask(count)


@contextmanager
def _threads(count: int) -> Generator[dict]:
    yield {"workers": count}


@contextmanager
def _executor(make) -> Generator[dict]:
    with make() as executor:
        yield {"executor": executor}


@contextmanager
def _dask(count: int) -> Generator[dict]:
    from distributed import Client, LocalCluster  # noqa: PLC0415  only for these rows

    with (
        LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        yield {"executor": client}


if __name__ == "__main__":
    main()
