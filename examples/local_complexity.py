"""Local complexity while a network learns: regions counted in small balls, beside the usual proxy (Humayun et al. 2024).

pip install 'tessella[torch,plot]' scikit-learn
python examples/local_complexity.py docs/gallery/local-complexity.png           # --quick for a smaller experiment
"""

import argparse
from itertools import pairwise
from math import comb
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from torch import nn

import tessella

TRAINING = 1000  # images; the others are for testing
RADIUS = 0.2
COLOURS = {"training images": "#1971c2", "test images": "#2f9e44", "random inputs": "#e8590c"}


class Look(NamedTuple):
    """What was found in balls: one entry per ball."""

    regions: np.ndarray
    units: np.ndarray
    proxy: np.ndarray


class Moment(NamedTuple):
    """What was found after some steps: errors in percent, and the balls around each kind of point."""

    step: int
    errors: tuple[float, float]
    looks: dict[str, Look]


def look(model: nn.Sequential, points: np.ndarray, directions: int) -> Look:
    """Count the regions in cross-polytopes, and the units that change there; and ask the proxy about the same ones."""
    network = tessella.load(model)
    found = tessella.local(network, points, RADIUS, norm="l1", subspace=directions, rng=0, workers=1)
    if None in found.counts or found.units_lower != found.units_upper or found.basis is None:
        msg = "a ball was not counted exactly; take a smaller radius"
        raise SystemExit(msg)
    units, seen = np.array(found.units_lower), proxy(network, points, found.basis)
    if (seen > units).any():
        msg = "the proxy says that units change which do not"
        raise SystemExit(msg)
    return Look(np.array(found.counts), units, seen)


def proxy(network: tessella.Network, points: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """How many units have both signs among the corners of the cross-polytope around each point."""
    steps = RADIUS * np.concatenate([basis.T, -basis.T])
    corners = points[:, None, :] + steps
    states = network.patterns(corners.reshape(-1, points.shape[1])).reshape(*corners.shape[:2], -1)
    return (states.any(axis=1) & ~states.all(axis=1)).sum(axis=1)


def learn(hidden: list[int], *, steps: int, balls: int, directions: int) -> list[Moment]:
    """Train on digits, and look after 0, 1, 2, 4, ... steps."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    pictures, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(digits))
    pictures, digits = pictures[order] / 16.0, digits[order]
    images, labels = torch.tensor(pictures, dtype=torch.float32), torch.tensor(digits)
    noise = np.random.default_rng(1).random((balls, 64))
    places = dict(zip(COLOURS, (pictures[:balls], pictures[-balls:], noise), strict=True))
    layers = [part for inputs, outputs in pairwise([64, *hidden, 10]) for part in (nn.Linear(inputs, outputs), nn.ReLU())]
    model, found = nn.Sequential(*layers[:-1]), list[Moment]()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(steps + 1):
        if not step & (step - 1):
            wrong = 100.0 * (model(images).argmax(dim=1) != labels).float()
            errors = float(wrong[:TRAINING].mean()), float(wrong[TRAINING:].mean())
            found.append(Moment(step, errors, {name: look(model, points, directions) for name, points in places.items()}))
            print(told(found[-1]), flush=True)
        batch = torch.randint(TRAINING, (200,))
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
        optimiser.step()
    return found


def told(moment: Moment) -> str:
    """One line of means."""
    parts = [
        f"{name} {one.regions.mean():.1f} regions, {one.units.mean():.2f} units, proxy {one.proxy.mean():.2f}"
        for name, one in moment.looks.items()
    ]
    return f"step {moment.step:5}: errors {moment.errors[0]:.1f} %, {moment.errors[1]:.1f} %; {'; '.join(parts)}"


def draw(found: list[Moment], directions: int, path: Path) -> None:
    """Regions, units beside the proxy, and errors over steps; and what the proxy leaves open."""
    figure = Figure(figsize=(9.0, 6.6), layout="constrained")
    (regions, units), (errors, scatter) = figure.subplots(2, 2)
    steps = [moment.step for moment in found]
    for name, colour in COLOURS.items():
        ones = [moment.looks[name] for moment in found]
        style = {"color": colour, "marker": "o", "markersize": 3}
        means, spread = np.array([(one.regions.mean(), one.regions.std(ddof=1) / np.sqrt(len(one.regions))) for one in ones]).T
        regions.plot(steps, means, **style, label=name)
        regions.fill_between(steps, means - spread, means + spread, color=colour, alpha=0.15, linewidth=0)
        units.plot(steps, [one.units.mean() for one in ones], **style)
        units.plot(steps, [one.proxy.mean() for one in ones], linestyle="none", marker="x", color=colour)
        every, seen = np.concatenate([one.regions for one in ones]), np.concatenate([one.proxy for one in ones])
        scatter.plot(seen, every, ".", color=colour, markersize=3, alpha=0.5)
    units.plot([], [], "o-", markersize=3, color="black", label="counted")
    units.plot([], [], "x", color="black", label="the proxy")
    for name, values in zip(COLOURS, zip(*(moment.errors for moment in found), strict=True), strict=False):
        errors.plot(steps, values, color=COLOURS[name], marker="o", markersize=3, label=name)
    most = np.arange(max(one.proxy.max() for moment in found for one in moment.looks.values()) + 1)
    cut = [sum(comb(int(number), k) for k in range(directions + 1)) for number in most]
    scatter.plot(
        most, cut, color="black", linewidth=1, label=f"the most that as many flat\nwalls make in {directions} directions"
    )
    regions.set(title="Regions in a ball", ylabel="mean, and its standard error")
    units.set(title="Units that change in a ball", ylabel="mean")
    errors.set(title="Errors", ylabel="%")
    scatter.set(title="Each ball", xlabel="units that change, by the proxy", ylabel="regions in the ball")
    scatter.set_yscale("log")
    for one in (regions, units, errors):
        one.set_xscale("symlog", linthresh=1)
        one.set(xlabel="steps of training", xlim=(0, None), ylim=(0, None))
    for one in (regions, units, errors, scatter):
        one.spines[["top", "right"]].set_visible(False)
        one.legend(frameon=False, fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


def main() -> None:
    """Measure, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="?", type=Path, default=Path("docs/gallery/local-complexity.png"))
    parser.add_argument("--quick", action="store_true", help="a small network for a few steps, some seconds")
    quick = (arguments := parser.parse_args()).quick
    directions = 3 if quick else 4
    found = learn([16] * 2 if quick else [100] * 3, steps=8 if quick else 8192, balls=4 if quick else 20, directions=directions)
    regions, units, seen = (
        np.concatenate(values) for values in zip(*(one for moment in found for one in moment.looks.values()), strict=True)
    )
    print(f"{len(units):,} balls; {units.sum():,} units change in them, of which the proxy sees {seen.sum():,}")
    often = np.bincount(seen).argmax()
    same = regions[seen == often]
    print(
        f"{len(same)} balls in which the proxy sees {often} units have {same.min():,} to {same.max():,} regions, median {np.median(same):g}"
    )
    draw(found, directions, arguments.path)


if __name__ == "__main__":
    main()
