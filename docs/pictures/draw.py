"""Draws the pictures of docs/design.md: `python docs/pictures/draw.py` writes house.svg and count.svg beside this file."""

from pathlib import Path

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

ROOMS = (  # from the roof down: a floor knows only the floors below it
    ("cli", "what a person types", "#f6d6ad"),
    ("plot   report   mosaic", "pictures, one page", "#f6d6ad"),
    ("analysis   tracking", "which method, for how long; while training", "#f6d6ad"),
    ("nearby   lines   summarising", "around points, along paths, statistics", "#f6d6ad"),
    ("listing   probable   certificates", "regions one by one; MIPBound; proofs to check", "#cfe3d4"),
    ("estimating", "random descents, and what they prove with a confidence", "#cfe3d4"),
    ("counting", "who walks the tree, in which order; the sum", "#cfe3d4"),
    ("vertices", "cells held by their corners (few inputs)", "#c9dcee"),
    ("cells", "one question about one cell, by linear programs", "#c9dcee"),
    ("partition", "the tree of decisions, bounds below a prefix, exact answers", "#c9dcee"),
    ("upper   stability   tightening   compressing   optimise", "bounds; ranges of units, and what they are good for", "#dcd3e8"),
    ("kernel", "compiled code: state, compiling, bases, an LP over a box", "#dcd3e8"),
    ("solvers   formulation   importers", "what comes from outside, and goes there", "#e4e4e4"),
    ("network   domain   exporters   result   options   parallel   numerics   errors", "values and claims", "#e4e4e4"),
)
WAY = (  # what happens, where, and at which place of the picture
    ("a network and a domain", "counting.count, options", 0, 0),
    ("which units never change", "stability", 1, 0),
    ("a tree of decisions", "partition.tree", 2, 0),
    ("one engine is chosen", "counting.walkers.walk_for", 3, 0),
    ("slices of time for walkers", "counting.schedule", 3, 1),
    ("a walker goes depth first", "vertices.walk, counting.depth_first", 2, 1),
    ("each step asks about one cell", "vertices.corners, cells.forms, cells.question", 1, 1),
    ("too thin: exact arithmetic", "partition.settler, partition.exact", 0, 1),
    ("answers are added up", "counting.schedule.Ledger, counting.checkpoint", 1, 2),
    ("a bracket that is proved", "counting.count.Count", 2, 2),
)
ARROWS = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (6, 8), (7, 8), (8, 9))
FOLDER = Path(__file__).parent


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty picture, measured in inches."""
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0.0, width), ylim=(0.0, height))
    axes.axis("off")
    return figure, axes


def box(axes: Axes, x: float, y: float, size: tuple[float, float], colour: str) -> None:
    """A rounded box with its lower left corner at a place."""
    axes.add_patch(
        FancyBboxPatch((x, y), *size, boxstyle="round,pad=0,rounding_size=0.08", facecolor=colour, edgecolor="#555555")
    )


def house() -> Figure:
    """Floors on top of each other."""
    floor, width = 0.5, 9.0
    figure, axes = canvas(width, floor * len(ROOMS) + 0.3)
    for number, (names, words, colour) in enumerate(reversed(ROOMS)):
        y = 0.15 + number * floor
        box(axes, 0.15, y + 0.04, (width - 0.3, floor - 0.08), colour)
        axes.text(0.35, y + floor / 2, names, va="center", family="monospace", weight="bold", size=10)
        axes.text(width - 0.35, y + floor / 2, words, va="center", ha="right", size=9)
    return figure


def way() -> Figure:
    """A count from its beginning to its end."""
    wide, high, across, down = 2.55, 0.95, 2.85, 1.45
    figure, axes = canvas(4 * across + 0.15, 3 * down + 0.05)
    corners = [(0.2 + column * across, 3 * down - 1.2 - row * down) for _, _, column, row in WAY]
    for (what, where, _, row), (x, y) in zip(WAY, corners, strict=True):
        box(axes, x, y, (wide, high), ("#dcd3e8", "#c9dcee", "#cfe3d4")[row])
        axes.text(x + wide / 2, y + 0.66, what, ha="center", va="center", size=9.5, weight="bold")
        axes.text(x + wide / 2, y + 0.3, where.replace(", ", ",\n"), ha="center", va="center", size=7.5, family="monospace")
    for start, end in ARROWS:
        (x, y), (u, v) = corners[start], corners[end]
        right, left = u > x, u < x
        begin = (x + wide if right else x if left else x + wide / 2, y + high / 2 if right or left else y)
        stop = (u if right else u + wide if left else u + wide / 2, v + high / 2 if right or left else v + high)
        if y != v and (right or left):
            begin, stop = (x + wide * 0.7, y), (u + wide * 0.3, v + high)
        axes.annotate("", stop, begin, arrowprops={"arrowstyle": "-|>", "color": "#444444", "lw": 1.4})
    return figure


if __name__ == "__main__":
    rcParams["svg.fonttype"] = "none"  # text stays text
    rcParams["svg.hashsalt"] = "tessella"  # the same picture, the same file
    house().savefig(FOLDER / "house.svg", metadata={"Date": None})
    way().savefig(FOLDER / "count.svg", metadata={"Date": None})
