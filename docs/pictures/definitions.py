"""Draws the picture of docs/explanation/regions.md: `python docs/pictures/definitions.py` writes definitions.svg beside this file."""

from pathlib import Path

import numpy as np
from matplotlib import rcParams
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

import tessella
from tessella.mosaic import neighbours

rcParams["svg.hashsalt"] = "tessella"
TILES = ("#33658a", "#e8a33d", "#86a873", "#b5484a", "#8ea9c1", "#f2d0a4", "#5f7470", "#d98b6a")
FOLDER = Path(__file__).parent


def main() -> None:
    """One network in three colourings: by pattern, by connected piece, by affine function."""
    layers = [([[1, 0], [-1, 0], [0, 1]], [0, 0, 0]), ([[-1, -1, -1]], [0.5]), ([[1]], [0])]
    found = tessella.polygons(tessella.Network.from_arrays(layers), tessella.Box([-1, -1], [1, 0.25]))
    matrices, offsets = found.affine_maps()
    maps = [tuple(np.append(matrix.ravel(), offset).round(9)) for matrix, offset in zip(matrices, offsets, strict=True)]
    of_function = [sorted(set(maps)).index(each) for each in maps]
    figure = Figure(figsize=(9.0, 2.5), layout="constrained")
    shown = (
        ("activation regions", list(range(len(found)))),
        ("connected pieces", pieces(found, of_function)),
        ("affine functions", of_function),
    )
    for axes, (name, classes) in zip(figure.subplots(1, 3), shown, strict=True):
        corners = [found[number] for number in range(len(found))]
        axes.add_collection(
            PolyCollection(corners, facecolors=[TILES[each] for each in classes], edgecolors="#222", linewidths=0.8)
        )
        axes.set(xlim=(-1, 1), ylim=(-1, 0.25), aspect="equal", xticks=(), yticks=(), title=f"{len(set(classes))} {name}")
    figure.savefig(FOLDER / "definitions.svg", metadata={"Date": None})


def pieces(found: tessella.Polygons, of_function: list[int]) -> list[int]:
    """Number regions so that neighbours with the same affine function have one number."""
    piece = list(range(len(found)))
    for one, other in neighbours(found):
        if of_function[one] == of_function[other]:
            piece = [piece[other] if each == piece[one] else each for each in piece]
    return [sorted(set(piece)).index(each) for each in piece]


if __name__ == "__main__":
    main()
