"""Estimating regions: how far the bound lies under the truth, and how far off the estimate is.

python benchmarks/estimate.py NETS                    # trained networks n1_n2_0.npz (experiments/paper): 4 CPU seconds each
python benchmarks/estimate.py NETS --reference 60     # longer reference runs where the count is not known
python benchmarks/estimate.py NETS --only 8_14 11_11

The budget is CPU time of one thread, so that other work on the machine matters little: 4 CPU seconds are what 2 seconds on 2 cores are.  Truths are
exact counts where `tessella.count` ends within --count seconds, else long reference runs of the estimator itself with another seed, named as such.
The comparison is with plain Knuth: the same descents, but each side by the toss of a coin, for the same time.
"""

import argparse
import math
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

import tessella
from tessella.counting.betting import bets, log_mean, lower_bound
from tessella.counting.descent import Descents
from tessella.counting.rounds import Rounds
from tessella.counting.tree import Tree

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


def row(path, arguments):
    """Measure one network and print its line."""
    network = tessella.load(path, relu_output=True)
    box = tessella.Box.cube(0.0, 1.0, network.input_dim)
    known = tessella.stability(network, box, method="linear")
    tree = Tree.of(known)
    exact = tessella.count(network, box, seconds=arguments.count, stability=known).exact
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


def main():
    """All networks of a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=4.0, help="CPU seconds per estimate")
    parser.add_argument("--reference", type=float, default=60.0, help="CPU seconds of a reference run")
    parser.add_argument("--count", type=float, default=20.0, help="seconds for an exact count")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    paths = sorted(arguments.nets.glob("*_0.npz"), key=lambda path: int(path.stem.split("_")[0]))
    paths = [path for path in paths if not arguments.only or path.stem.rsplit("_", 1)[0] in arguments.only]
    tiny = tessella.Network.from_arrays([(np.ones((1, 9)), [0.0])], relu_output=True)
    tessella.estimate(tiny, tessella.Box.cube(-1.0, 1.0, 9), probes=1)  # compiles, or loads what is compiled
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
