"""Regions while a network learns: two spirals, 2-32-32-1, counted exactly every fourth epoch.

pip install 'tessella[torch,plot]'
python examples/track_training.py docs/gallery/training.png
"""

import sys
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import nn

import tessella


def spirals(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points on two spirals inside [-1, 1]^2, and which spiral each is on."""
    turn = torch.sqrt(torch.rand(count)) * 3.0 * torch.pi
    side = (torch.arange(count) % 2).float()
    angle, radius = turn + torch.pi * side, turn / (3.3 * torch.pi)
    points = torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], dim=1)
    return points + 0.01 * torch.randn(count, 2), side[:, None]


def train(epochs: int = 240) -> tuple[tessella.Tracker, list[float]]:
    """Train, and follow the number of regions."""
    torch.manual_seed(0)
    points, side = spirals(1000)
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    tracker = tessella.track(model, tessella.Box.cube(-1.0, 1.0, 2), every=4)
    optimiser, errors = torch.optim.Adam(model.parameters(), lr=0.01), list[float]()
    for _ in range(epochs):
        for batch in torch.randperm(len(points)).split(100):
            optimiser.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(model(points[batch]), side[batch]).backward()
            optimiser.step()
        errors.append(100.0 * ((model(points) > 0.0) != side.bool()).float().mean().item())
        tracker.step()
    return tracker, errors


def draw(tracker: tessella.Tracker, errors: list[float], path: str) -> None:
    """Regions and error over epochs."""
    figure = Figure(figsize=(7.0, 3.6), layout="constrained")
    left = figure.subplots()
    epochs = [record.epoch for record in tracker.records]
    left.plot(epochs, [record.mean for record in tracker.records], color="#3b5bdb", linewidth=2)
    left.set(xlabel="epoch", title="Two spirals, 2-32-32-1 on [-1, 1]^2", ylim=(0, None), xlim=(0, len(errors)))
    left.set_ylabel("linear regions, counted", color="#3b5bdb")
    right = left.twinx()
    right.plot(errors, color="#e8590c", linewidth=1)
    right.set(ylim=(0, None))
    right.set_ylabel("training error, %", color="#e8590c")
    last = tracker.records[-1]
    left.annotate(
        f"{last.mean:,} in the end, of a network that was trained\nwith batches and another loss than the gallery's",
        (last.epoch, last.mean),
        xytext=(0.98, 0.55),
        textcoords="axes fraction",
        ha="right",
        va="center",
        fontsize="small",
        color="#3b5bdb",
        arrowprops={"arrowstyle": "-", "color": "#3b5bdb"},
    )
    for axes in (left, right):
        axes.spines["top"].set_visible(False)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    tracked, wrong = train()
    for record in tracked.records[::10]:
        print(record)
    draw(tracked, wrong, sys.argv[1] if len(sys.argv) > 1 else "docs/gallery/training.png")
