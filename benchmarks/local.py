"""Regions around examples, counted, against samples of each ball; and regions along paths.

python benchmarks/local.py mnist.npz                         # 784-200-200-200-200-10, trained for three epochs; 1,000 points, radius 0.0003
python benchmarks/local.py mnist.npz --points 100 --samples 10000 --sampled 100
python benchmarks/local.py --path                            # paths through networks of up to 100,000 ReLUs; needs no data

Time is CPU time of this process, with matrix products on one thread, so that other work on the machine matters little: 120 CPU seconds are what 60 s on two cores are.  Compiled code is loaded beforehand.
"""

import argparse
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import torch
from experiments.paper.data import read_mnist
from torch import nn

import tessella
from tessella.kernel.threads import single_threaded


def trained(data, epochs: int) -> tessella.Network:
    """The network, trained with Adam."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    sizes = [784, 200, 200, 200, 200]
    hidden = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())]
    model = nn.Sequential(*hidden, nn.Linear(200, 10))
    images, labels = torch.tensor(data.x_train), torch.tensor(data.y_train)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(128):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimiser.step()
    right = (model(torch.tensor(data.x_test)).argmax(1).numpy() == data.y_test).mean()
    print(f"{right:.1%} of the test images are told right")
    return tessella.load(model)


def sampled(network: tessella.Network, points, radius: float, samples: int) -> list[int]:
    """How many different patterns samples of each ball show."""
    rng, seen = np.random.default_rng(0), list[int]()
    for point in points:
        patterns = network.patterns(rng.uniform(point - radius, point + radius, (samples, len(point))))
        seen.append(len(np.unique(np.packbits(patterns, axis=1), axis=0)))
    return seen


def balls(data, arguments) -> None:
    """Counts around test images."""
    network, points = trained(data, arguments.epochs), np.asarray(data.x_test[: arguments.points], dtype=np.float64)
    tessella.local(network, points[:2], arguments.radius)  # loads compiled code
    begun, wall = process_time(), perf_counter()
    found = tessella.local(network, points, arguments.radius, workers=arguments.workers)
    spent, wall = process_time() - begun, perf_counter() - wall
    counts = np.array([number or 0 for number in found.counts])
    low, middle, high = (int(number) for number in np.percentile(counts, [10, 50, 90]))
    exact = f"{sum(number is not None for number in found.counts):,} of {len(found):,} balls counted exactly"
    print(f"{exact}: median {middle}, 10 % at most {low}, 10 % at least {high}, the most {counts.max():,}")
    print(f"{spent:.1f} CPU seconds ({1000 * spent / len(found):.0f} ms per point), {wall:.1f} s of wall time")
    some = points[: arguments.sampled]
    begun = process_time()
    with single_threaded():
        seen = sampled(network, some, arguments.radius, arguments.samples)
    spent, share = process_time() - begun, np.array(seen) / counts[: len(some)]
    missed = counts[: len(some)].sum() - sum(seen)
    print(
        f"{arguments.samples:,} samples a ball, {len(some)} balls: {1000 * spent / len(some):.0f} ms per point; they miss {missed:,} of "
        f"{counts[: len(some)].sum():,} regions, in {(share < 1.0).mean():.0%} of the balls at least one, in the median ball {1.0 - np.median(share):.0%}"
    )


def he(sizes, seed: int = 0) -> tessella.Network:
    """A network with He's random weights and small biases."""
    rng = np.random.default_rng(seed)
    pairs = pairwise(sizes)
    return tessella.Network.from_arrays(
        [(rng.standard_normal((b, a)) * np.sqrt(2.0 / a), 0.1 * rng.standard_normal(b)) for a, b in pairs]
    )


def paths() -> None:
    """Paths between random points."""
    shapes = [
        ([784, *[200] * 4, 10], 1.0),
        ([784, *[1000] * 5, 10], 1.0),
        ([784, *[1000] * 8, 10], 1.0),
        ([784, *[300] * 20, 10], 1.0),
        ([784, *[200] * 50, 10], 1.0),
        ([784, 100_000, 10], 1.0),
        ([784, *[1000] * 100, 10], 0.5),
    ]
    for sizes, part in shapes:
        network, path = he(sizes), np.random.default_rng(1).random((2, 784))
        path[1] = path[0] + part * (path[1] - path[0])
        begun, wall = process_time(), perf_counter()
        found = tessella.along(network, path)
        print(
            f"{network}\n  {found}; {found.seen - 1:,} breaks, {process_time() - begun:.1f} CPU seconds, {perf_counter() - wall:.1f} s",
            flush=True,
        )


def main() -> None:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", help="MNIST, as an .npz file or a folder")
    parser.add_argument("--path", action="store_true")
    for name, value in (("points", 1000), ("samples", 10_000), ("sampled", 100), ("epochs", 3), ("workers", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--radius", type=float, default=0.0003)
    arguments = parser.parse_args()
    if arguments.path:
        paths()
    elif arguments.data is None:
        parser.error("say where MNIST is, or --path")
    else:
        balls(read_mnist(Path(arguments.data)), arguments)


if __name__ == "__main__":
    main()
