"""Regions along random lines: with how many ReLUs they grow, and how little depth matters (Hanin and Rolnick 2019).

pip install 'tessella[torch,plot]' scikit-learn
python examples/random_lines.py docs/gallery/random-lines.png           # --quick for a smaller experiment
"""

import argparse
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from torch import nn

import tessella

COLOURS = {1: "#1971c2", 2: "#2f9e44", 4: "#e8590c", 8: "#862e9c"}  # by depth


def network(relus: int, depth: int) -> nn.Sequential:
    """All layers of one width, weights as He et al. draw them, small random biases."""
    sizes = [64, *[relus // depth] * depth, 10]
    layers = [nn.Linear(inputs, outputs) for inputs, outputs in pairwise(sizes)]
    for layer in layers:
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.normal_(layer.bias, std=0.01)
    hidden = [part for layer in layers[:-1] for part in (layer, nn.ReLU())]
    return nn.Sequential(*hidden, layers[-1])


def train(model: nn.Sequential, images: torch.Tensor, labels: torch.Tensor, epochs: int) -> float:
    """Learn the digits; how many of them are told right in the end."""
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(100):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimiser.step()
    return float((model(images).argmax(dim=1) == labels).float().mean())


def breaks(model: nn.Sequential, lines: np.ndarray) -> float:
    """How many breaks a line has on average; all are proved."""
    read, found = tessella.load(model), list[int]()
    for line in lines:
        regions = tessella.along(read, line).regions
        if regions is None:
            msg = "the breaks of a line are too close to be told apart; take another seed"
            raise SystemExit(msg)
        found.append(regions - 1)
    return float(np.mean(found))


def measure(relus: list[int], depths: list[int], *, seeds: int, count: int, epochs: int) -> dict[str, np.ndarray]:
    """Breaks per line before and after training, by number of ReLUs and by depth: the mean over networks."""
    torch.set_num_threads(1)
    pictures, digits = load_digits(return_X_y=True)
    images, labels = torch.tensor(pictures / 16.0, dtype=torch.float32), torch.tensor(digits)
    found = {name: np.zeros((len(depths), len(relus), seeds)) for name in ("at initialisation", "after training")}
    for row, depth in enumerate(depths):
        for column, number in enumerate(relus):
            right = list[float]()
            for seed in range(seeds):
                torch.manual_seed(seed)
                lines = random_lines(pictures / 16.0, count, seed)
                model = network(number, depth)
                found["at initialisation"][row, column, seed] = breaks(model, lines)
                right.append(train(model, images, labels, epochs))
                found["after training"][row, column, seed] = breaks(model, lines)
            before, after = (values[row, column].mean() for values in found.values())
            print(
                f"{number:5} ReLUs, {depth} hidden: {before:6.1f} breaks at initialisation, {after:6.1f} after training, "
                f"{min(right):.1%} of the digits right",
                flush=True,
            )
    return found


def random_lines(images: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Lines of length one in random directions, with a random image in the middle of each."""
    rng = np.random.default_rng(seed)
    middles = images[rng.choice(len(images), count, replace=False)]
    directions = rng.standard_normal(middles.shape)
    directions /= 2.0 * np.linalg.norm(directions, axis=1, keepdims=True)
    return np.stack([middles - directions, middles + directions], axis=1)


def draw(found: dict[str, np.ndarray], relus: list[int], depths: list[int], path: Path) -> None:
    """Breaks over the number of ReLUs, one colour per depth."""
    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for one, (name, values) in zip(axes, found.items(), strict=True):
        for depth, rows in zip(depths, values, strict=True):
            label = f"{depth} hidden layer{'s' if depth > 1 else ''}"
            one.plot(relus, rows.mean(axis=1), "o-", color=COLOURS[depth], label=label)
            one.fill_between(relus, rows.min(axis=1), rows.max(axis=1), color=COLOURS[depth], alpha=0.15, linewidth=0)
        one.set(xlabel="ReLUs in the network", title=name.capitalize(), xlim=(0, None), ylim=(0, None))
        one.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("breaks on a line of length one, mean")
    axes[0].legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


def main() -> None:
    """Measure, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="?", type=Path, default=Path("docs/gallery/random-lines.png"))
    parser.add_argument("--quick", action="store_true", help="fewer and smaller networks, some seconds")
    arguments = parser.parse_args()
    relus, depths = ([64, 128], [1, 4]) if arguments.quick else ([128, 256, 512, 1024, 1536], [1, 2, 4, 8])
    effort = {"seeds": 1, "count": 5, "epochs": 2} if arguments.quick else {"seeds": 3, "count": 20, "epochs": 15}
    draw(measure(relus, depths, **effort), relus, depths, arguments.path)


if __name__ == "__main__":
    main()
