"""How much smaller trained networks become, and whether they still compute the same.

``python benchmarks/compressing.py mnist.npz`` trains 20 networks on MNIST (arrays ``x_train``, ``y_train``, ``x_test``, ``y_test``, as Keras' file has them): MLPs with L1 regularisation as in Serra, Kumar
and Ramalingam ("Lossless Compression of Deep Neural Networks", 2020), MLPs without, sparse ones, and CNNs.  Each is compressed on [0, 1]^784.  Printed are units before and after, what became of them, the proved bound on the difference of outputs,
the largest difference at random points and test images (relative to the largest output), and how many test images are classified in another way.
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

import tessella

_BATCH = 2_000
_RATE = 0.1


@dataclass(frozen=True)
class Recipe:
    """A network, and how it is trained."""

    name: str
    widths: tuple[int, ...]
    l1: float = 0.0
    pruned: float = 0.0  # part of the weights
    channels: int = 0  # of a convolution before


PUBLISHED = {  # width of two layers, L1 weight: share of units removed (Serra, Kumar and Ramalingam 2020, Table 1)
    (25, 1e-3): "22 %",
    (25, 2e-4): "8.3 %",
    (25, 0.0): "0 %",
    (50, 1e-3): "29.4 %",
    (50, 2e-4): "15.1 %",
    (50, 0.0): "0 %",
    (100, 5e-4): "30.8 %",
    (100, 1e-4): "14.9 %",
    (100, 0.0): "0 %",
}
RECIPES = (
    *(Recipe(f"MLP 2x{w}, L1 {l1:g}", (w, w), l1) for w, l1 in PUBLISHED),
    *(Recipe(f"MLP 3x50, L1 {l1:g}", (50,) * 3, l1) for l1 in (1e-3, 2e-4)),
    *(Recipe(f"sparse MLP 2x{w}, {100 * p:.0f} % pruned", (w, w), pruned=p) for w in (50, 100) for p in (0.9, 0.97)),
    Recipe("sparse MLP 2x50, L1 0.0002, 90 % pruned", (50, 50), 2e-4, 0.9),
    *(
        Recipe(f"CNN {c} channels, {w} units, L1 {l1:g}", (w,), l1, channels=c)
        for c, w in ((4, 30), (8, 50))
        for l1 in (1e-3, 2e-4)
    ),
)


def made(recipe: Recipe) -> nn.Sequential:
    """Without weights that mean anything."""
    parts: list[nn.Module] = []
    size = 784
    if recipe.channels:
        parts += [nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, recipe.channels, 5, stride=3), nn.ReLU(), nn.Flatten()]
        size = recipe.channels * 64
    for width in recipe.widths:
        parts += [nn.Linear(size, width), nn.ReLU()]
        size = width
    return nn.Sequential(*parts, nn.Linear(size, 10))


def trained(recipe: Recipe, seed: int, images: torch.Tensor, labels: torch.Tensor, epochs: int) -> nn.Sequential:
    """Stochastic gradients, soft thresholds for the L1 penalty, and small weights cut off in the middle of the time."""
    torch.manual_seed(seed)
    module = made(recipe)
    weights = [part.weight for part in module if isinstance(part, nn.Linear | nn.Conv2d)]
    masks = [torch.ones_like(weight) for weight in weights]
    optimiser = torch.optim.SGD(module.parameters(), _RATE)
    for epoch in range(epochs):
        if recipe.pruned and epoch == epochs // 2:
            masks = [
                (weight.abs() > weight.abs().flatten().kthvalue(max(int(recipe.pruned * weight.numel()), 1)).values).float()
                for weight in weights
            ]
        for part in torch.randperm(len(images)).split(64):
            loss = nn.functional.cross_entropy(module(images[part]), labels[part])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            with torch.no_grad():
                for parameter in module.parameters() if recipe.l1 else ():
                    parameter.copy_(nn.functional.softshrink(parameter, _RATE * recipe.l1))
                for weight, mask in zip(weights, masks, strict=True) if recipe.pruned else ():
                    weight.mul_(mask)
    return module.eval()


def outputs(network: tessella.Network, images: np.ndarray) -> np.ndarray:
    """Of many images, some at a time."""
    return np.concatenate([network(images[begin : begin + _BATCH]) for begin in range(0, len(images), _BATCH)])


def line(recipe: Recipe, module: nn.Sequential, images: np.ndarray, labels: np.ndarray, seconds: float, points: int) -> str:
    """Compress, compare, and say so."""
    network = tessella.load(module, input_shape=(784,))
    start = time.process_time()
    known = tessella.stability(network, (0, 1), seconds=seconds, seconds_per_unit=2.0)
    found = tessella.compress(network, (0, 1), stability=known)
    spent = time.process_time() - start
    before, after = outputs(network, images), outputs(found.network, images)
    moved = int((before.argmax(axis=1) != after.argmax(axis=1)).sum())
    size = float(np.abs(before).max())
    largest = max(found.check(points), float(np.abs(before - after).max())) / size
    accuracy = float((before.argmax(axis=1) == labels).mean())
    total = found.totals()
    parts = [
        recipe.name, f"{100 * accuracy:.2f} %", f"{network.relus:,}", f"{found.network.relus:,}", f"{100 * found.share:.1f} %", _published(recipe),
        *(str(total[name]) for name in ("inactive", "active", "merged", "unread", "constant")),
        f"{network.parameters:,}", f"{found.network.parameters:,}", f"{found.error:.1e}", f"{largest:.1e}", str(moved), f"{spent:.1f}",
    ]  # fmt: skip
    return "| " + " | ".join(parts) + " |"


def _published(recipe: Recipe) -> str:
    known = len(recipe.widths) == 2 and recipe.widths[0] == recipe.widths[1] and not recipe.pruned
    return PUBLISHED.get((recipe.widths[0], recipe.l1), "") if known else ""


def main() -> None:
    """Train, compress, compare, one line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=30.0, help="for the stable units of one network")
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of networks, from 0")
    given = parser.parse_args()
    torch.set_num_threads(1)
    with np.load(given.data) as file:
        data = {name: file[name] for name in ("x_train", "y_train", "x_test", "y_test")}
    images = {name: data[name].reshape(len(data[name]), -1) / 255.0 for name in ("x_train", "x_test")}
    heads = ("network", "accuracy", "ReLUs", "left", "removed", "published", "inactive", "active", "merged", "unread", "constant", "parameters", "left",
             "error, proved", "difference, relative", "images moved", "CPU s")  # fmt: skip
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads), flush=True)
    for seed, recipe in enumerate(RECIPES):
        if given.only is not None and seed not in given.only:
            continue
        module = trained(
            recipe,
            seed,
            torch.tensor(images["x_train"], dtype=torch.float32),
            torch.tensor(data["y_train"], dtype=torch.int64),
            given.epochs,
        )
        print(line(recipe, module, images["x_test"], data["y_test"], given.seconds, given.points), flush=True)


if __name__ == "__main__":
    main()
