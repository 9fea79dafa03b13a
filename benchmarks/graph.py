"""The graph of regions against relucent's, in CPU time per region: regions of random networks, which of them share a wall, and statistics of all.

python -m benchmarks.graph                  # 10^5 regions with five inputs, and 1,000 cells of relucent
python -m benchmarks.graph --quick          # 10^4 regions, 100 cells

Relucent is optional, and needs Gurobi; its search is stopped after so many cells.  Where it finds all cells of a small network, both graphs are compared.
"""

import resource
import sys
from itertools import pairwise
from time import process_time

import numpy as np

import tessella


def random_network(sizes, seed=0):
    """ReLUs on all layers, with random weights and biases."""
    rng = np.random.default_rng(seed)
    layers = [(rng.standard_normal((n, m)), 0.5 * rng.standard_normal(n)) for m, n in pairwise(sizes)]
    return tessella.Network.from_arrays(layers, relu_output=True)


def cpu():
    """CPU seconds of this process and of those it has started and ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


def timed(work):
    """What a call returns, and its CPU seconds."""
    begun = cpu()
    made = work()
    return made, cpu() - begun


def relucent_cells(network, most, *, cube=True):
    """Relucent's complex of a network, on the cube or in all of space, after its search with walls; None if relucent is not there."""
    try:
        import relucent  # noqa: PLC0415  optional
        from relucent.model.model import LinearLayer, ReLULayer, ReLUNetwork  # noqa: PLC0415
    except ImportError:
        return None
    parts = [part for layer in network.layers for part in (LinearLayer(layer.dense(), layer.bias), ReLULayer())]
    cells = relucent.Complex(ReLUNetwork(parts))
    where = {"cube_radius": 1.0, "cube_mode": "intersect"} if cube else {}
    cells.bfs(**where, nworkers=1, max_polys=most, verify=False, verbose=0)
    return cells


def same_graph(network):
    """Whether both find the same regions, and the same pairs with a wall in common, in all of space; None without relucent.

    (On a cube relucent joins cells whose common wall lies outside of it, too.)
    """
    cells = relucent_cells(network, float("inf"), cube=False)
    if cells is None:
        return None
    found = tessella.graph(network, (-np.inf, np.inf))
    ours = {tuple(row) for row in found.patterns.tolist()}
    graph = cells.dual_graph()
    name = {node: tuple((np.asarray(node.ss_np).ravel() > 0).tolist()) for node in graph.nodes}
    theirs = {frozenset((name[one], name[other])) for one, other in graph.edges}
    edges = {frozenset(tuple(found.patterns[end].tolist()) for end in edge) for edge in found.edges}
    return set(name.values()) == ours, theirs == edges


def main() -> None:
    """Print a table."""
    quick = "--quick" in sys.argv
    sizes, most = ((5, 12, 8), 100) if quick else ((5, 16, 16), 1000)
    network = random_network(sizes)
    tessella.graph(network, (-1, 1), limit=10)  # compiled
    found, seconds = timed(lambda: tessella.graph(network, (-1, 1)))
    each = 1e6 * seconds / found.regions
    print(f"{network.shape}: {found.regions:,} regions, {len(found.edges):,} walls, complete: {found.complete}")
    print(f"tessella.graph        {seconds:8.2f} s  {each:10.1f} us a region")
    count, alone = timed(lambda: tessella.count(network, (-1, 1), workers=1))
    print(f"tessella.count        {alone:8.2f} s  {1e6 * alone / count.exact:10.1f} us a region")
    names = ["active", "rank", "spectral", "walls", "volume"]
    tessella.summarise(random_network((5, 3)), (-1, 1), names)
    summary, spent = timed(lambda: tessella.summarise(network, (-1, 1), names, seconds=600.0))
    print(f"tessella.summarise    {spent:8.2f} s  {1e6 * spent / summary.regions:10.1f} us a region  ({', '.join(names)})")
    cells, spent = timed(lambda: relucent_cells(network, most))
    if cells is None:
        print("relucent is not there: pip install relucent")
        return
    print(
        f"relucent, {len(cells):,} cells {spent:8.2f} s  {1e6 * spent / len(cells):10.1f} us a region, {1e6 * spent / len(cells) / each:,.0f} times"
    )
    for sizes in ((2, 6, 4), (3, 5, 4), (4, 5, 3)):
        print(f"{sizes}: same regions and walls as relucent: {same_graph(random_network(sizes, 1))}")


if __name__ == "__main__":
    main()
