"""Preactivation bounds: how long the smallest H and H-bar take, against general MILP solvers on the same units.

python benchmarks/tightening.py NETS            # folder of trained networks n1_n2_seed.npz (experiments/paper)
python benchmarks/tightening.py NETS --solvers  # also SCIP and HiGHS on a sample of units (minutes)
"""

import argparse
import csv
import itertools
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

import tessella
from tessella.formulation import formulate
from tessella.network import Layer, Network
from tessella.preactivation import Method, PreactivationBounds
from tessella.solvers import SCIP, HiGHS
from tessella.stability import stability
from tessella.tightening import tighten


def timed(work):
    """A result and its wall time."""
    start = perf_counter()
    result = work()
    return result, perf_counter() - start


def target_model(network, box, bounds, layer):
    """A network cut after the layer whose units are the target, with the bounds that belong to it."""
    last = network.layers[layer]
    cut = Network((*network.layers[:layer], Layer(last.weight, last.bias, np.zeros(last.units, dtype=bool))))
    part = PreactivationBounds(bounds.lower[: layer + 1], bounds.upper[: layer + 1], bounds.method)
    return formulate(cut, box, part, positivity=False, outputs=True)


def by_solver(solver, network, box, bounds, units, seconds):
    """Both extremes of some units by a general solver: seconds, and how many it finished."""
    total, finished = 0.0, 0
    for layer, unit in units:
        formulation = target_model(network, box, bounds, layer)
        column = formulation.layers[layer].preactivation[unit]
        for sign in (1.0, -1.0):
            objective = np.zeros(len(formulation.model.names))
            objective[column] = sign
            found = solver.solve(formulation.model.with_objective(objective, maximize=True), seconds=seconds)
            total += found.seconds
            finished += found.status == "optimal"
    return total, finished


def configurations(nets, box):
    """Every network's coefficients, one thread."""
    print(
        f"{'network':>10} {'seconds':>8} {'unstable':>9} {'lp width':>9} {'milp width':>10}   (mean width of layers 2 and 3, over interval's)"
    )
    times = []
    for path in sorted(nets, key=lambda path: [int(part) for part in path.stem.split("_")]):
        network = tessella.load(path, relu_output=True)
        loose, lp = (tighten(network, box, method=name) for name in ("interval", "lp"))
        found, seconds = timed(lambda: stability(network, box))  # noqa: B023  called at once
        shares = [np.mean(np.concatenate(b.widths[1:]) / np.concatenate(loose.widths[1:])) for b in (lp, found.bounds)]
        times.append(seconds)
        print(f"{path.stem:>10} {seconds:8.2f} {found.totals()['unstable']:9} {shares[0]:9.2f} {shares[1]:10.2f}", flush=True)
    print(f"median {median(times):.2f} s, largest {max(times):.2f} s")


def against_solvers(path, box, seconds):
    """The same units by the search, and by general solvers with and without tightened earlier layers."""
    network = tessella.load(path, relu_output=True)
    loose, tight = tighten(network, box, method="interval"), tighten(network, box, method="milp")
    units = [(layer, unit) for layer in (1, 2) for unit in range(2)]
    only = [np.zeros(layer.units, dtype=bool) for layer in network.layers]
    for layer, unit in units:
        only[layer][unit] = True
    _, ours = timed(lambda: search_only(network, box, tight, units))
    print(
        f"{path.stem}, both ends of {len(units)} units (layers 2 and 3), {seconds:g} s at most each; search of ours {ours:.2f} s"
    )
    for name, solver in (("SCIP", SCIP()), ("HiGHS", HiGHS())):
        for what, bounds in (("tightened earlier layers", tight), ("interval bounds only", loose)):
            total, finished = by_solver(solver, network, box, bounds, units, seconds)
            print(
                f"  {name:>6}, {what:<25} {total:8.1f} s, {finished} of {2 * len(units)} finished, ratio {total / ours:.0f}",
                flush=True,
            )


def search_only(network, box, bounds, units):
    """Both extremes of some units, from interval bounds of their own layer and tight ones before."""
    from tessella.tightening.extremes import optimise  # noqa: PLC0415

    for layer in sorted({layer for layer, _ in units}):
        known = [(bounds.lower[number], bounds.upper[number]) for number in range(layer)]
        chosen = [unit for other, unit in units if other == layer]
        last = network.layers[layer]
        part = replace(network, layers=(*network.layers[:layer], Layer(last.weight[chosen], last.bias[chosen])))
        start = (np.full(len(chosen), -1e6), np.full(len(chosen), 1e6))
        optimise(part, box, known, start, branch=True, seconds=600.0, executor=None, progress=lambda _: None)


def large():
    """Linear bounds and the Empirical UB of 784-256-256-10."""
    rng = np.random.default_rng(0)
    sizes = [784, 256, 256, 10]
    layers = [(rng.standard_normal((n, m)) * np.sqrt(2 / m), 0.1 * rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)]
    network, box = Network.from_arrays(layers, relu_output=True), tessella.Box.cube(0, 1, 784)
    for method in (Method.INTERVAL, Method.LINEAR):
        _, seconds = timed(lambda: tighten(network, box, method=method))  # noqa: B023  called at once
        print(f"784-256-256-10: {method} {seconds:.2f} s")
    found = stability(network, box, method="linear")
    bounds, seconds = timed(lambda: tessella.upper_bounds(network, box, stability=found))
    print(
        f"784-256-256-10: all upper bounds, empirical included, {seconds:.2f} s (2^{tessella.Bound(bounds.empirical, 'upper').maps:.2f})"
    )


def paper_times(path):
    """The paper's seconds for XOR-2, coefficients included, smallest and median."""
    with Path(path).open() as file:
        times = [float(row["xor2_s"]) for row in csv.DictReader(file)]
    print(f"paper, XOR-2 with coefficients, 40 cores: smallest {min(times):.1f} s, median {median(times):.1f} s")


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", type=Path)
    parser.add_argument("--solvers", action="store_true", help="compare with SCIP and HiGHS")
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of one MILP")
    parser.add_argument("--paper-times", help="a CSV with the paper's seconds")
    given = parser.parse_args()
    box = tessella.Box.cube(0, 1, 784)
    tighten(Network.from_arrays([(np.ones((2, 2)), None)] * 3), tessella.Box.cube(-1, 1, 2))  # compile
    large()
    if given.paper_times:
        paper_times(given.paper_times)
    configurations(given.nets.glob("*_0.npz"), box)
    if given.solvers:
        against_solvers(given.nets / "11_11_0.npz", box, given.seconds)


if __name__ == "__main__":
    main()
