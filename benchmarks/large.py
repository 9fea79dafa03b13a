"""Large networks whose number of regions is known: whether the interval holds it, how wide it is, how far off estimate and bound are.

python benchmarks/large.py results.jsonl                    # all networks, 3 seeds, 20 CPU seconds each; goes on where it stopped
python benchmarks/large.py results.jsonl --only 8-10-8x8 --seeds 10
python benchmarks/large.py results.jsonl --seconds 5 --before   # and the descents of before, in the same time
python benchmarks/large.py results.jsonl --table             # only the table of what is there

Networks are small random ones side by side, inputs and units shuffled, so that their numbers of regions multiply (8-10-8x8 are eight networks with 8 inputs and layers of 10 and 8 ReLUs), and single
layers in general position on all of space, whose number is a sum of binomial coefficients (20:150 are 150 units with 20 inputs).  8-10-8x8m are the same eight networks, but with their inputs turned at random, and the cube with
them: each unit of the first layer then reads all inputs, and nothing shows that there are blocks.
The budget is CPU time of one thread, so that other work on the machine matters little: 40 CPU seconds are what 20 s on two cores are.  Counting is not tried.
"""

import argparse
import json
import math
from functools import cache
from itertools import pairwise
from pathlib import Path
from time import process_time

import numpy as np

import tessella
from tessella.door import enter
from tessella.estimating.betting import log_mean
from tessella.estimating.descents import Descents
from tessella.estimating.rounds import Rounds, Sample
from tessella.estimating.said import said
from tessella.estimating.tilts import Tilts
from tessella.estimating.values import Values
from tessella.estimating.wide import WideDescents, is_wide
from tessella.kernel.threads import single_threaded
from tessella.partition.tree import Tree

BITS = math.log(2.0)
PRODUCTS = [
    "8-10-8x4",
    "8-10-8x8",
    "4-8-6-5x8",
    "2-12-12x10",
    "8-10-8x16",
    "4-8-6-5x16",
    "3-20-20x12",
    "3-20-20x24",
    "3-20-20x50",
]
LAYERS = ["6:100", "20:150", "10:400", "4:2000"]


@cache
def block(sizes, seed):
    """A small random network and its number of regions on [0, 1]^n."""
    rng = np.random.default_rng([seed, *sizes])
    layers = [(rng.standard_normal((n, m)) * math.sqrt(2 / m), 0.3 * rng.standard_normal(n)) for m, n in pairwise(sizes)]
    network = tessella.Network.from_arrays(layers, relu_output=True)
    return layers, tessella.count(network, tessella.Box.cube(0.0, 1.0, sizes[0])).exact


def product(sizes, copies, seed, *, mixed=False):
    """Small networks side by side, their inputs and units shuffled, or their inputs mixed: it has the product of their numbers of regions; with log2 of it."""
    parts = [block(sizes, 1000 * seed + number) for number in range(copies)]
    rng = np.random.default_rng(seed)
    order, layers = rng.permutation(sizes[0] * copies), []
    for depth in range(len(sizes) - 1):
        rows, columns = sizes[depth + 1], sizes[depth]
        weight, bias = np.zeros((rows * copies, columns * copies)), np.concatenate([part[0][depth][1] for part in parts])
        for number, (small, _) in enumerate(parts):
            weight[number * rows : (number + 1) * rows, number * columns : (number + 1) * columns] = small[depth][0]
        after = rng.permutation(rows * copies)
        layers.append((weight[after][:, order], bias[after]))
        order = after
    domain = tessella.Box.cube(0.0, 1.0, len(layers[0][0][0]))
    if mixed:
        turned = np.linalg.qr(rng.standard_normal((domain.dim, domain.dim)))[0]  # new inputs are turned.T @ old ones
        layers[0] = layers[0][0] @ turned, layers[0][1]
        domain = tessella.Polytope(np.vstack([turned, -turned]), np.repeat([1.0, 0.0], domain.dim))
    network = tessella.Network.from_arrays(layers, relu_output=True)
    return network, domain, sum(math.log2(part[1]) for part in parts)


def arrangement(inputs, units, seed):
    """One layer of units in general position, on all of space: a sum of binomial coefficients."""
    rng = np.random.default_rng([seed, inputs, units])
    network = tessella.Network.from_arrays([(rng.standard_normal((units, inputs)), rng.standard_normal(units))], relu_output=True)
    return network, (-math.inf, math.inf), math.log2(sum(math.comb(units, j) for j in range(min(inputs, units) + 1)))


def subject(name, seed):
    """A network of the list, its domain, and log2 of its number of regions."""
    if ":" in name:
        return arrangement(*map(int, name.split(":")), seed)
    sizes, copies = name.removesuffix("m").split("x")
    return product(tuple(map(int, sizes.split("-"))), int(copies), seed, mixed=name.endswith("m"))


def of_today(tree, seconds, seed):
    """The rounds of an estimate."""
    rounds = Rounds(tree, seed, lambda _: None, process_time)
    rounds.go(None, process_time() + seconds, None, 1)
    return rounds.sample


def of_before(tree, seconds, seed):
    """The same by the descents of before: a kind that follows from sizes, and predictions that are never tried out."""
    wide = is_wide(tree)
    descents = WideDescents(tree) if wide else Descents(tree, population=1)
    learner = Tilts(len(tree.network.layers)) if wide else Values(descents.shape)
    found, planned, start, next_lesson = [], [], process_time(), 4.0
    with single_threaded():
        while not found or (process_time() - start) * (1 + 1 / len(found)) < seconds:
            planned.append(max(seconds * len(found) / (process_time() - start), 1.0) if found else 8.0)
            batch = descents.rounds(len(found), 1, seed, learner.theta)
            found.append(batch.logarithms[0])
            learner.add(batch.records)
            if len(found) >= next_lesson:
                learner.learn()
                next_lesson *= 1.5
    return Sample(np.array(found), np.array(planned), method="points" if wide else "linear programs")


def run(name, seed, seconds, how):
    """One run, as a record."""
    network, domain, truth = subject(name, seed)
    network, domain = enter(network, domain)
    tree = Tree.of(tessella.stability(network, domain, method="linear"))
    begun = process_time()
    sample = (of_before if how == "before" else of_today)(tree, seconds, seed)
    found = said(sample, 0.95, 1 << tree.units)
    record = {
        "name": name,
        "seed": seed,
        "seconds": seconds,
        "how": how,
        "units": tree.units,
        "truth": truth,
        "lower": math.log2(found.lower),
    }
    settled = sample.logarithms[max(len(sample.logarithms) // 10, min(sample.settled, len(sample.logarithms) - 1)) :]
    more = {
        "mean": log_mean(settled) / BITS,
        "interval": found.maps_interval,
        "rounds": len(sample.logarithms),
        "method": sample.method,
        "terms": [round(float(term) / BITS, 3) for term in sample.logarithms[sample.settled :]] if sample.learned else [],
    }
    return {**record, **more, "spent": process_time() - begun}


def table(records):
    """The median of each network's runs."""
    print(
        "| network | ReLUs | log2 N | s | by | rounds | interval holds N | width | middle off by | log2 of the mean off by | bound below by | bounds above |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    sizes_of = {one["name"]: np.median([other["units"] for other in records if other["name"] == one["name"]]) for one in records}
    for key in sorted({(sizes_of[one["name"]], one["name"], one["seconds"], one["how"]) for one in records}):
        here = [one for one in records if (one["name"], one["seconds"], one["how"]) == key[1:]]
        shown = [one for one in here if one["interval"]]
        held = sum(one["interval"][0] <= one["truth"] + 1e-9 and one["truth"] <= one["interval"][1] + 1e-9 for one in shown)
        width = f"{np.median([one['interval'][1] - one['interval'][0] for one in shown]):.1f}" if shown else "-"
        middle = f"{np.median([abs(sum(one['interval']) / 2.0 - one['truth']) for one in shown]):.1f}" if shown else "-"
        off = np.median([abs(one["mean"] - one["truth"]) for one in here])
        below, above = (
            np.median([one["truth"] - one["lower"] for one in here]),
            sum(one["lower"] > one["truth"] + 1e-9 for one in here),
        )
        who = key[3] if key[3] == "before" else "/".join(sorted({one["method"] for one in here}))
        sizes = f"`{key[1]}` | {np.median([one['units'] for one in here]):.0f} | {np.median([one['truth'] for one in here]):.1f} | {key[2]:g}"
        told = f"{held} of {len(shown)} ({len(here)} runs) | {width} | {middle} | {off:.1f} | {below:.1f} | {above}"
        print(f"| {sizes} | {who} | {np.median([one['rounds'] for one in here]):.0f} | {told} |")


def main():
    """All networks that are asked for and not in the file yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="a line is added for each run")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU seconds per run")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--before", action="store_true", help="and the descents of before")
    parser.add_argument("--table", action="store_true", help="run nothing")
    arguments = parser.parse_args()
    lines = arguments.results.read_text().splitlines() if arguments.results.exists() else []
    records = [json.loads(line) for line in lines]
    done = {(one["name"], one["seed"], one["seconds"], one["how"]) for one in records}
    for seed in range(1, 0 if arguments.table else arguments.seeds + 1):
        for name in arguments.only or PRODUCTS + LAYERS:
            for how in ("today", "before") if arguments.before else ("today",):
                if (name, seed, arguments.seconds, how) in done:
                    continue
                records.append(run(name, seed, arguments.seconds, how))
                with arguments.results.open("a") as file:
                    file.write(json.dumps(records[-1]) + "\n")
                print(json.dumps(records[-1]), flush=True)
    table(records)


if __name__ == "__main__":
    main()
