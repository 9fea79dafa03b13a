"""How long MIPBound takes on the paper's configurations, against the paper's own times and against solvers; a program, not a test.

    python benchmarks/mipbound.py --nets nets                     # trained networks n1_n2_seed.npz; seed 0 unless --seeds says more
    python benchmarks/mipbound.py --nets nets --seeds 0,1,2
    python benchmarks/mipbound.py --nets nets --only 4_18 --solvers --repetitions 4    # SCIP, HiGHS, Gurobi and variants on the same constraints

Times are CPU seconds of one thread, coefficients H included as in the paper; the paper's are wall seconds on 40 cores with CPLEX.
"""

import argparse
import csv
import os
import platform
import statistics
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, process_time

import tessella
from tessella.partition.tree import Tree
from tessella.probable.networks import Solving, _solving, tails
from tessella.probable.run import Plan
from tessella.probable.search import Seeker

SIZES = (2, 3, 4, 5)
MEDIANS = {2: 34.0, 3: 53.0, 4: 115.0, 5: 286.0}  # of the paper, over its 210 networks


def paper():
    """The paper's figures, one record per n1."""
    path = Path(__file__).with_name("paper_mipbound.csv")
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return {int(record["n1"]): {name: float(value) for name, value in record.items()} for record in csv.DictReader(lines)}


def row(*cells):
    """A line of a table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def table(title, *columns):
    """A heading and the top of a table."""
    print(f"\n{title}\n")
    row(*columns)
    print("|" + "---|" * len(columns))


def load(path):
    """A trained network, its box, its stability, and the CPU seconds that the latter took."""
    network, box = tessella.load(path, relu_output=True), tessella.Box.cube(0.0, 1.0, 784)
    begun = process_time()
    stability = tessella.stability(network, box)
    return network, box, stability, process_time() - begun


def trained(paths, given):
    """Our search on every network: the bounds, and the paper's time over ours."""
    theirs, ours, ratios = paper(), {size: [] for size in SIZES}, {size: [] for size in SIZES}
    heads = [f"XOR-{size}, s (paper / ours)" for size in SIZES]
    bounds = "MAPS of XOR-2 3 4 5"
    table(
        f"MNIST networks, {given.repetitions} repetitions, one thread:",
        "network",
        "H, s",
        *heads,
        bounds,
        "paper's networks: XOR-2 3 4 5, exact",
    )
    for path in paths:
        network, box, stability, spent = load(path)
        n1, n2, seed = path.stem.split("_")
        record, cells, found = theirs[int(n1)], [], []
        for size in SIZES:
            begun = process_time()
            found.append(
                tessella.mipbound(
                    network, box, parity_size=size, stability=stability, repetitions=given.repetitions, workers=1, rng=given.seed
                )
            )
            seconds = spent + process_time() - begun
            ours[size].append(seconds)
            ratios[size].append(record[f"xor{size}_s"] / seconds)
            cells.append(f"{seconds:.2f} ({ratios[size][-1]:,.0f})")
        known = " ".join(f"{record[f'xor{size}_lb']:g}" for size in SIZES) + f", {record['exact']:.1f}"
        maps = " ".join(str(each.exponent) if each.exponent is not None else "0" for each in found)
        row(f"`{n1};{n2};10` {seed}", f"{spent:.2f}", *cells, maps, known)
    table("All of them:", "", *(f"XOR-{size}" for size in SIZES))
    row("median of ours, s", *(f"{statistics.median(ours[size]):.2f}" for size in SIZES))
    row("longest of ours, s", *(f"{max(ours[size]):.2f}" for size in SIZES))
    row("median of the paper's 210 networks, s", *(f"{MEDIANS[size]:g}" for size in SIZES))
    row("ratio of medians", *(f"{MEDIANS[size] / statistics.median(ours[size]):,.0f}" for size in SIZES))
    row("smallest ratio, network by network", *(f"{min(ratios[size]):,.1f}" for size in SIZES))


def repetitions(worker, size, count, entropy):
    """Draws of some repetitions and their CPU seconds."""
    plan, begun = Plan(size, 0.95, count, None, (entropy,)), process_time()
    found = [worker.repeat(size, plan.seed(number), lambda: False) for number in range(count)]
    return [each.draws for each in found], (process_time() - begun) / count, sum(each.unconfirmed for each in found)


class FromNothing(Seeker):
    """Begins without constraints and adds them one by one, as Algorithm 1 is written."""

    def repeat(self, size, seed, stopped):
        """One repetition."""
        self._earlier[size] = [0]
        return super().repeat(size, seed, stopped)


class FromAll(Seeker):
    """Begins with as many constraints as do not contradict each other, and takes them away one by one."""

    def repeat(self, size, seed, stopped):
        """One repetition."""
        self._earlier[size] = []
        return super().repeat(size, seed, stopped)


def compared(paths, given):
    """Seconds per repetition of everything that can do it, on the same constraints."""
    names = ["search", "from nothing", "from all", "without tails", "SCIP", "SCIP + short rows", "HiGHS", "Gurobi"]
    table(
        f"CPU seconds per repetition ({given.repetitions} of them; in brackets: times the search's, and false solutions cut off):",
        "network, k",
        *names,
    )
    for path in paths:
        _, _, stability, _ = load(path)
        tree = Tree.of(stability)
        short = _solving(stability, tree, tessella.SCIP())
        scip = Solving(short.tree, short.model, short.columns, short.solver, derived=0)
        jobs = [scip, short, _solving(stability, tree, tessella.HiGHS()), _solving(stability, tree, tessella.Gurobi())]
        ends = list(tails(stability))
        workers = [
            Seeker(tree, ends),
            FromNothing(tree, ends),
            FromAll(tree, ends),
            Seeker(tree),
            *(job.worker() for job in jobs),
        ]
        for size in SIZES:
            cells, right = [], None
            for name, worker in zip(names, workers, strict=True):
                if name in given.without:
                    cells.append("")
                    continue
                draws, seconds, lies = repetitions(worker, size, given.repetitions, given.seed)
                right = right or (draws, seconds)
                wrong = "" if draws == right[0] else f", draws {sum(draws)} instead of {sum(right[0])}"
                cells.append(f"{seconds:.3f} ({seconds / right[1]:.2g}{f', {lies}' if lies else ''}{wrong})")
            row(f"`{path.stem.replace('_', ';', 1).rsplit('_', 1)[0]};10`, {size}", *cells)


def machine():
    """Where and when, in one line."""
    models = set()
    with suppress(OSError), Path("/proc/cpuinfo").open() as file:
        models |= {line.split(":")[1].strip() for line in file if line.startswith("model name")}
    processor = f"{os.cpu_count()} x {', '.join(models) or platform.processor()}"
    load_now = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{datetime.now(UTC):%Y-%m-%d}, {processor}, load average {load_now}, Python {platform.python_version()}"


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", type=Path, required=True, help="a folder of trained networks n1_n2_seed.npz")
    parser.add_argument("--seeds", default="0", help="which of them, such as 0,1,2")
    parser.add_argument("--only", default="", help="only networks whose name begins with one of these, such as 4_18,11_11")
    parser.add_argument("--solvers", action="store_true", help="compare with solvers and with other ways to search")
    parser.add_argument("--without", default="", help="what to leave out of that, such as HiGHS")
    parser.add_argument("--repetitions", type=int, default=28)
    parser.add_argument("--seed", type=int, default=0, help="of the constraints")
    given = parser.parse_args()
    given.without = given.without.split(",")
    paths = [path for seed in given.seeds.split(",") for path in given.nets.glob(f"*_{seed}.npz")]
    paths = [
        path for path in paths if path.stem.startswith(tuple(f"{start}_" if start else "" for start in given.only.split(",")))
    ]
    paths.sort(key=lambda path: [int(part) for part in path.stem.split("_")])
    print(machine())
    network, box = tessella.load([([[1.0, 2.0], [2.0, 1.0]], [0.1, 0.2])], relu_output=True), tessella.Box.cube(-1, 1, 2)
    tessella.mipbound(network, box)  # compiles
    begun = perf_counter()
    (compared if given.solvers else trained)(paths, given)
    print(f"\n{perf_counter() - begun:,.0f} s in all")


if __name__ == "__main__":
    main()
