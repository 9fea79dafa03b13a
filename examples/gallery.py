"""Make the pictures of docs/gallery.md.

pip install 'tessella[plot,torch]' scikit-learn
python examples/gallery.py docs/gallery
"""

import sys
from importlib.resources import as_file, files
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from torch import nn

import tessella
from tessella import plot


def main(folder: str) -> None:
    """Draw them all."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for draw in (spirals, function, digits, path, brackets):
        print(f"{draw.__name__}: {(draw.__doc__ or '').strip()}", flush=True)
        draw(place)


def save(figure: Figure, path: Path) -> None:
    """A picture that is sharp enough, and small."""
    figure.savefig(path, dpi=100)
    print(path, f"{path.stat().st_size / 1000:.0f} kB", figure.axes[0].get_title(), flush=True)


def spirals(place: Path) -> None:
    """A network that tells two spirals apart, by region, by layer and by slope."""
    rng = np.random.default_rng(0)
    turn = np.sqrt(rng.random(600)) * 3.0 * np.pi
    sign = np.where(np.arange(600) % 2, 1.0, -1.0)
    points = 0.1 * sign[:, None] * turn[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    names = np.where(sign > 0.0, "one", "other")
    model = trained(points, sign[:, None], (2, 32, 32, 1), steps=4000)
    network, box = tessella.load(model, input_shape=(2,)), tessella.Box(-1, 1, dim=2)
    found = tessella.polygons(network, box)
    for colour in plot.Colour:
        figure = plot.regions(network, box, polygons=found, colour=colour, data=points, labels=names)
        save(figure, place / f"spirals-{colour}.png")


def function(place: Path) -> None:
    """A function of one input, its break points, and its regions."""
    x = np.linspace(-3.0, 3.0, 400)[:, None]
    model = trained(x, np.sin(3.0 * x) * np.exp(-0.3 * x**2), (1, 16, 16, 1), steps=1500)
    save(plot.regions(tessella.load(model, input_shape=(1,)), tessella.Box(-3, 3, dim=1)), place / "function.png")


def digits(place: Path) -> None:
    """The bundled network on the plane through three images and far beyond them, and which of its units are stable."""
    network, box = bundled()
    images, labels = load_digits(return_X_y=True)
    shown = np.array([images[np.argmax(labels == digit)] / 16.0 for digit in (0, 1, 7)])
    chosen = tessella.slice(network, shown, tessella.Box.cube(-1.0, 2.0, network.input_dim))
    figure = plot.regions(chosen, data=shown, labels=(0, 1, 7))
    for digit, (x, y) in zip((0, 1, 7), chosen.coordinates(shown), strict=True):
        figure.axes[0].annotate(f"a {digit}", (x, y), xytext=(6, 5), textcoords="offset points", fontweight="bold")
    save(figure, place / "digits-slice.png")
    save(plot.stability(tessella.stability(network, box)), place / "digits-stability.png")


def path(place: Path) -> None:
    """The outputs of the bundled network on the way from a 3 to a 4 and to a 5, and every unit that changes there."""
    network, _ = bundled()
    images, labels = load_digits(return_X_y=True)
    corners = np.array([images[np.argmax(labels == digit)] / 16.0 for digit in (3, 4, 5)])
    save(plot.along(tessella.along(network, corners), names=["a 3", "a 4", "a 5"]), place / "path.png")


def brackets(place: Path) -> None:
    """Four networks on one scale: two that can be counted, and two that cannot."""
    rng, names, found = np.random.default_rng(0), list[str](), list[tessella.Analysis]()
    for sizes in ((10, 12, 12, 1), (10, 24, 24, 1), (10, 48, 48, 1)):
        layers = [(rng.standard_normal((n, m)) / np.sqrt(m), 0.3 * rng.standard_normal(n)) for m, n in pairwise(sizes)]
        names.append("random " + "-".join(map(str, sizes)))
        found.append(tessella.analyze(tessella.Network.from_arrays(layers), tessella.Box(-1, 1, dim=10), seconds=10))
    network, box = bundled()
    save(plot.bracket([tessella.analyze(network, box, seconds=10), *found], names=["digits", *names]), place / "bracket.png")


def bundled() -> tuple[tessella.Network, tessella.Box]:
    """The network that `tessella demo` analyses."""
    with as_file(files("tessella") / "data" / "digits.onnx") as path:
        network = tessella.load(path)
    return network, tessella.Box.cube(0.0, 1.0, network.input_dim)


def trained(points: np.ndarray, targets: np.ndarray, sizes: tuple[int, ...], steps: int) -> nn.Module:
    """A small network that learned these values."""
    torch.manual_seed(0)
    layers = list[nn.Module]()
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    x, y = torch.tensor(points, dtype=torch.float32), torch.tensor(targets, dtype=torch.float32)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimiser.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimiser.step()
    return model.eval()


if __name__ == "__main__":
    main(sys.argv[1])
