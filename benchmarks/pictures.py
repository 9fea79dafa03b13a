"""Listing and drawing many polygons, and reports with many regions.

python -m benchmarks.pictures            # 10^5 polygons
python -m benchmarks.pictures --quick    # 10^4
"""

import io
import sys
from collections.abc import Callable
from itertools import pairwise
from time import perf_counter

import numpy as np

import tessella
from tessella import plot, report
from tessella.listing.polygons import Polygons


def random_network(width: int) -> tessella.Network:
    """Three layers of random ReLUs on two inputs."""
    rng, sizes = np.random.default_rng(1), (2, width, width, width, 1)
    return tessella.Network.from_arrays([(rng.standard_normal((n, m)), 0.5 * rng.standard_normal(n)) for m, n in pairwise(sizes)])


def timed(work: Callable[[], object]) -> tuple[float, object]:
    """The best of three."""
    best, made = np.inf, None
    for _ in range(3):
        start = perf_counter()
        made = work()
        best = min(best, perf_counter() - start)
    return best, made


def saved(figure: object, kind: str) -> bytes:
    """The file's content."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=200)
    return buffer.getvalue()


def one_path_each(found: Polygons) -> object:
    """What lost: matplotlib's own collection, with a path for each polygon."""
    from matplotlib.collections import PolyCollection  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure()
    axes = figure.add_subplot()
    colours = np.array(plot.tile_colours())[plot.tiles(found)]
    shapes = np.split(found.corners, found.starts[1:-1])
    axes.add_collection(PolyCollection(shapes, facecolors=list(colours), edgecolors="face", linewidths=0.1), autolim=False)
    axes.set_xlim(-1, 1)
    axes.set_ylim(-1, 1)
    return figure


def main() -> None:
    """Print a table."""
    network, box = random_network(64 if "--quick" in sys.argv else 200), tessella.Box(-1, 1, dim=2)
    tessella.polygons(random_network(4), box)  # compiles
    tessella.count(random_network(4), box, workers=1)
    seconds, counted = timed(lambda: tessella.count(network, box, workers=1))
    print(f"{network.shape}: {counted.exact:,} regions")
    print(f"{'counted':<44} {seconds:8.2f} s")
    seconds, found = timed(lambda: tessella.polygons(network, box))
    assert len(found) == counted.exact
    print(f"{'listed with corners and patterns':<44} {seconds:8.2f} s")
    print(f"{'affine maps of all':<44} {timed(found.affine_maps)[0]:8.2f} s")
    for colour in plot.Colour:
        for kind in ("png", "svg", "pdf"):
            seconds, content = timed(lambda c=colour, k=kind: saved(plot.regions(network, box, polygons=found, colour=c), k))
            print(f"{f'drawn by {colour}, as {kind}, {len(content) / 1e6:.1f} MB':<44} {seconds:8.2f} s")
    for kind in ("png", "svg"):
        start = perf_counter()
        content = saved(one_path_each(found), kind)
        print(f"{f'one path per polygon, as {kind}, {len(content) / 1e6:.1f} MB':<44} {perf_counter() - start:8.2f} s")
    explorer = report.explore(network, box)
    record = tessella.Analysis(network, box, 1, 1, 2**60)
    seconds, text = timed(lambda: report.page(record, shown=explorer))
    print(f"{f'report, {len(explorer.polygons):,} regions, {len(text) / 1e6:.1f} MB':<44} {seconds:8.2f} s")


if __name__ == "__main__":
    main()
