"""Estimating regions: how far the bound lies under the truth, and how far off the estimate is.

python benchmarks/estimate.py NETS                    # trained networks n1_n2_0.npz (experiments/paper): 4 CPU seconds each
python benchmarks/estimate.py NETS --reference 60     # longer reference runs where the count is not known
python benchmarks/estimate.py NETS --truths experiments/paper/results/results.jsonl  # exact counts made before
python benchmarks/estimate.py NETS --only 8_14 11_11
python benchmarks/estimate.py NETS --wall 2 --truths experiments/paper/results/results.jsonl  # as people call it: all cores, wall time, counting first
python benchmarks/estimate.py NETS --large            # random networks of many units instead: wall time, bits, both kinds of descents

The budget is CPU time of one thread, so that other work on the machine matters little: 4 CPU seconds are what 2 seconds on 2 cores are.  Truths are
exact counts where they are in --truths or `tessella.count` ends within --count seconds, else long reference runs of the estimator itself with another seed, named as such.
The comparison is with plain Knuth: the same descents, but each side by the toss of a coin, for the same time.
"""

import argparse
import json
import math
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

import tessella
from tessella.estimating.betting import bets, log_mean, lower_bound
from tessella.estimating.contest import kinds_for
from tessella.estimating.descents import Descents
from tessella.estimating.rounds import Rounds
from tessella.estimating.tilts import Tilts
from tessella.estimating.values import Values
from tessella.estimating.wide import WideDescents
from tessella.kernel.threads import single_threaded
from tessella.partition.tree import Tree

BITS = math.log(2.0)


def logarithms(tree, seconds, seed):
    """The terms of one run and the numbers planned, in CPU time."""
    rounds = Rounds(tree, seed, lambda _: None, process_time)
    rounds.go(None, process_time() + seconds, None, 1)
    return rounds.sample.logarithms, rounds.sample.planned


def knuth(tree, seconds, seed):
    """The same by plain Knuth: all children count alike."""
    descents, found, start = Descents(tree, population=1), [], process_time()
    theta = 0.0 * descents.shape.start()
    while process_time() - start < seconds:
        found.append(descents.rounds(10 * len(found), 10, seed, theta).logarithms)
    terms = np.concatenate(found)
    return terms, np.full(len(terms), float(len(terms)))


def gap(terms, planned, truth):
    """Bits of the 95 % bound under the truth."""
    return (truth - lower_bound(terms, bets(terms, planned, 0.95), 0.95)) / BITS


def counted(results):
    """Exact counts by network, from the results of experiments/paper."""
    lines = map(json.loads, results.read_text().splitlines()) if results else ()
    counts = [line for line in lines if line["task"] == "count" and line["status"] == "finished"]
    return {line["network"]["fingerprint"]: line["value"]["exact"] for line in counts}


def row(path, arguments):
    """Measure one network and print its line."""
    network = tessella.load(path, relu_output=True)
    box = tessella.Box.cube(0.0, 1.0, network.input_dim)
    known = tessella.stability(network, box, method="linear")
    tree = Tree.of(known)
    exact = (
        arguments.truths.get(network.fingerprint) or tessella.count(network, box, seconds=arguments.count, stability=known).exact
    )
    if exact is not None:
        truth, kind = math.log(exact), "exact"
    else:
        terms, _ = logarithms(tree, arguments.reference, 2**40)
        truth, kind = log_mean(terms[len(terms) // 10 :]), f"reference {arguments.reference:g} s"
    gaps, errors, probes = [], [], []
    for seed in range(arguments.seeds):
        terms, planned = logarithms(tree, arguments.seconds, seed + 1)
        gaps.append(gap(terms, planned, truth))
        errors.append(abs(math.exp(log_mean(terms[len(terms) // 10 :]) - truth) - 1.0))
        probes.append(len(terms))
    plain = gap(*knuth(tree, arguments.seconds, 1), truth)
    name = ";".join([*path.stem.split("_")[:2], "10"])
    shown = f"{truth / BITS:.2f} ({kind})"
    print(
        f"| `{name}` | {shown} | {np.median(probes):.0f} | {np.median(gaps):.3f} ({max(gaps):.3f}) | {100 * np.median(errors):.1f} % | {plain:.2f} |",
        flush=True,
    )
    return np.median(gaps), np.median(errors), plain, sum(one < 0.0 for one in gaps)


def called(path, exact, seconds, seeds):
    """The bits under the truth, and the errors, of `tessella.estimate` as it is: all cores, wall time, an exact count first."""
    network = tessella.load(path, relu_output=True)
    box = tessella.Box.cube(0.0, 1.0, network.input_dim)
    found = [tessella.estimate(network, box, seconds=seconds, rng=seed) for seed in range(seeds)]
    gaps = [math.log2(exact) - math.log2(one.lower) for one in found]
    errors = [abs(one.mean / exact - 1.0) for one in found]
    probes, longest = np.median([one.probes for one in found]), max(one.seconds for one in found)
    cells = [f"{np.median(gaps):.3f} ({max(gaps):.3f})", f"{100 * np.median(errors):.1f} % ({100 * max(errors):.1f} %)"]
    print(f"| `{';'.join([*path.stem.split('_')[:2], '10'])}` | {probes:.0f} | {' | '.join(cells)} | {longest:.2f} |", flush=True)
    return np.median(gaps), np.median(errors), sum(one < 0.0 for one in gaps)


LARGE = [
    (784, 40, 40, 10),
    (784, 64, 64, 10),
    (100, 100, 100, 10),
    (40, 200, 100),
    (16, 60, 60, 60, 5),
    (784, 256, 256, 10),
    (784, 512, 512, 512, 10),
]
SMALL = [(784, 20, 20, 10), (20, 30, 30, 2), (10, 24, 24, 2), (5, 50, 50, 50, 50, 50, 50, 5)]


def random_network(sizes):
    """He weights, small biases, seed 0."""
    rng = np.random.default_rng(0)
    layers = [(rng.standard_normal((n, m)) * math.sqrt(2 / m), 0.3 * rng.standard_normal(n)) for m, n in pairwise(sizes)]
    return tessella.Network.from_arrays(layers)


def large_row(sizes, seconds):
    """One random network by both kinds of descents, for the same CPU time (one probe at least): the spread of log2 X, and the bound."""
    network = random_network(sizes)
    tree = Tree.of(tessella.stability(network, tessella.Box.cube(0.0, 1.0, sizes[0]), method="linear"))
    cells = []
    for wide in (False, True):
        if not wide and tree.units > 1000:  # minutes per probe
            cells.append("- | - | -")
            continue
        descents = WideDescents(tree) if wide else Descents(tree, population=1)
        learner, found, planned, start = (
            (Tilts(len(tree.network.layers)) if wide else Values(descents.shape)),
            [],
            [],
            process_time(),
        )
        with single_threaded():
            while not found or (process_time() - start) * (1 + 1 / len(found)) < seconds:
                batch = descents.rounds(len(found), 1, 1, learner.theta)
                pace = (process_time() - start) / (len(found) + 1)
                planned.append(max(seconds / pace, 1.0) if found else 8.0)
                found.append(batch.logarithms[0])
                learner.add(batch.records)
                if len(found) in {3, 5, 8, 12, 18, 27, 40, 60, 90, 135, 200, 300, 450, 700, 1000, 1500, 2200}:
                    learner.learn()
        spent, terms = process_time() - start, np.array(found)
        lower = lower_bound(terms, bets(terms, np.array(planned), 0.95), 0.95) / BITS
        real = terms[np.isfinite(terms)] / BITS
        cells.append(f"{spent / len(terms):.3f} | {real.mean():.1f} +- {real.std():.1f} | {lower:.1f}")
    kind = "/".join(kinds_for(tree))
    print(f"| `{'-'.join(map(str, sizes))}` | {tree.units} | {' | '.join(cells)} | {kind} |", flush=True)


def main():
    """All networks of a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=4.0, help="CPU seconds per estimate")
    parser.add_argument("--reference", type=float, default=60.0, help="CPU seconds of a reference run")
    parser.add_argument("--count", type=float, default=20.0, help="seconds for an exact count")
    parser.add_argument("--truths", type=Path, help="results.jsonl with exact counts")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--wall", type=float, help="seconds of tessella.estimate on all cores, for networks in --truths")
    parser.add_argument("--large", action="store_true", help="random networks with many units")
    arguments = parser.parse_args()
    arguments.truths = counted(arguments.truths)
    if arguments.large:
        print("| network | unstable | LP: s per probe | log2 X | at least | point: s per probe | log2 X | at least | used |")
        print("|---|---|---|---|---|---|---|---|---|")
        for sizes in [*LARGE, *SMALL]:
            large_row(sizes, arguments.seconds)
        return
    paths = sorted(arguments.nets.glob("*_0.npz"), key=lambda path: int(path.stem.split("_")[0]))
    paths = [path for path in paths if not arguments.only or path.stem.rsplit("_", 1)[0] in arguments.only]
    tiny = tessella.Network.from_arrays([(np.ones((1, 9)), [0.0])], relu_output=True)
    tessella.estimate(tiny, tessella.Box.cube(-1.0, 1.0, 9), probes=1)  # compiles, or loads what is compiled
    if arguments.wall:
        tessella.estimate(tessella.load(paths[0], relu_output=True), tessella.Box.cube(0.0, 1.0, 784), seconds=2.0)
    if arguments.wall:
        print("| network | probes | bits under the truth, median (largest) | error, median (largest) | longest, s |")
        print("|---|---|---|---|---|")
        known = [(path, arguments.truths.get(tessella.load(path, relu_output=True).fingerprint)) for path in paths]
        found = [called(path, exact, arguments.wall, arguments.seeds) for path, exact in known if exact]
        gaps, errors, above = map(np.array, zip(*found, strict=True))
        told = f"{np.median(gaps):.3f} bits under the truth, largest {gaps.max():.3f}; error {100 * np.median(errors):.1f} %"
        print(f"\nMedian over networks: {told}. {above.sum()} of {len(gaps) * arguments.seeds} bounds above.")
        return
    begun = perf_counter()
    print("| network | MAPS | probes | bits under the truth, median (largest) | error | plain Knuth, bits |")
    print("|---|---|---|---|---|---|")
    found = [row(path, arguments) for path in paths]
    gaps, errors, plain, above = map(np.array, zip(*found, strict=True))
    print(
        f"\nMedian over networks: {np.median(gaps):.3f} bits under the truth, largest {gaps.max():.3f}; error {100 * np.median(errors):.1f} %; ",
        end="",
    )
    print(
        f"plain Knuth {np.median(plain):.2f} bits. {above.sum()} of {len(gaps) * arguments.seeds} bounds above. {perf_counter() - begun:.0f} s."
    )


if __name__ == "__main__":
    main()
