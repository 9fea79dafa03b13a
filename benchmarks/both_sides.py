"""How far the two bounds of an estimate lie from the count, on both sides, in bits.

python benchmarks/both_sides.py NETS --truths experiments/paper/results/results.jsonl               # trained networks (experiments/paper): 4 CPU seconds each
python benchmarks/both_sides.py NETS --truths experiments/paper/results/results.jsonl --seconds 20
python benchmarks/both_sides.py NETS --truths experiments/paper/results/results.jsonl --pairs 6     # rank two networks whose counts differ by 15 to 25 %
python benchmarks/both_sides.py --random --seconds 120                                             # networks with random weights, too large to count

The budget is CPU time of one thread: 4 CPU seconds are what two cores have in 2 seconds.  Estimates try to count first, as everywhere; networks that are counted in that time are left out.
Where no count is known, the bounds are compared with the mean of the run itself, whose standard error is told.
"""

import argparse
import json
import math
from itertools import combinations, pairwise
from pathlib import Path
from time import process_time

import numpy as np

import tessella
from tessella.kernel.meter import measured_by

RANDOM = [((16, 20, 20), (-1.0, 1.0)), ((784, 24, 24, 10), (0.0, 1.0)), ((784, 40, 40, 10), (0.0, 1.0))]


def random_network(sizes):
    """He weights, small biases, seed 0; ReLUs on the outputs."""
    rng = np.random.default_rng(0)
    layers = [(rng.standard_normal((n, m)) * math.sqrt(2 / m), 0.3 * rng.standard_normal(n)) for m, n in pairwise(sizes)]
    return tessella.Network.from_arrays(layers, relu_output=True)


def estimated(network, ends, seconds, confidence=0.95):
    """One estimate in CPU time; code is loaded before the clock starts."""
    box = tessella.Box.cube(*ends, network.input_dim)
    known = tessella.stability(network, box, method="linear")
    with measured_by(process_time):
        return tessella.estimate(network, box, seconds=seconds, workers=1, confidence=confidence, stability=known)


def counts(path):
    """Exact counts by network."""
    lines = map(json.loads, path.read_text().splitlines())
    return {
        line["network"]["fingerprint"]: line["value"]["exact"]
        for line in lines
        if line["task"] == "count" and line["status"] == "finished"
    }


def loaded(nets, truths):
    """The networks of a folder whose count is known."""
    known = counts(truths)
    for path in sorted(nets.glob("*.npz"), key=lambda path: [int(part) for part in path.stem.split("_")]):
        network = tessella.load(path, relu_output=True)
        if (exact := known.get(network.fingerprint)) is not None:
            yield path.stem, network, exact


def trained(nets, truths, seconds):
    """A line per network, and medians."""
    above, below = [], []
    print("| network | log2 of the count | upper bound, bits above | lower bound, bits below |\n|---|---|---|---|")
    for name, network, exact in loaded(nets, truths):
        found = estimated(network, (0.0, 1.0), seconds)
        if found.exact is None:
            above.append(math.log2(found.upper / exact))
            below.append(math.log2(exact / found.lower))
            print(f"| `{name}` | {math.log2(exact):.2f} | {above[-1]:.3f} | {below[-1]:.3f} |", flush=True)
    for words, bits in (("upper bounds above", above), ("lower bounds below", below)):
        wrong = sum(one < 0.0 for one in bits)
        print(f"{len(bits)} {words}: median {np.median(bits):.3f}, worst {max(bits):.3f} bits; {wrong} on the wrong side")


def pairs(nets, truths, number):
    """Ranks networks whose counts differ by 15 to 25 %, with 10 CPU seconds for each of the two."""
    known = [each for each in loaded(nets, truths) if 2**18 < each[2] < 2**30]
    close = [(one, other) for one, other in combinations(known, 2) if 1.15 < max(one[2], other[2]) / min(one[2], other[2]) < 1.25]
    for pair in close[:: max(1, len(close) // number)][:number]:
        analyses = {}
        for name, network, _ in pair:
            found = estimated(network, (0.0, 1.0), 10.0, confidence=0.975)
            ends = {"estimate": found, "probable_upper": found.upper}
            analyses[name] = tessella.Analysis(network, found.domain, 1, found.lower, 2**network.relus, 0.975, **ends)
        found = tessella.rank(analyses)
        fewer, more = sorted(pair, key=lambda each: each[2])
        verdict = found.between(more[0], fewer[0]).verdict
        print(f"{more[0]} has {more[2] / fewer[2]:.3f} times the regions of {fewer[0]}: {verdict}", flush=True)


def main():
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", type=Path, nargs="?")
    parser.add_argument("--truths", type=Path, help="results.jsonl with exact counts")
    parser.add_argument("--seconds", type=float, default=4.0, help="CPU seconds per estimate")
    parser.add_argument("--pairs", type=int, default=0, help="rank so many pairs instead")
    parser.add_argument("--random", action="store_true", help="networks with random weights instead")
    arguments = parser.parse_args()
    tessella.estimate(random_network((9, 3, 3)), tessella.Box.cube(0.0, 1.0, 9), probes=50)  # compiles, or loads what is compiled
    if arguments.random:
        for sizes, ends in RANDOM:
            found = estimated(random_network(sizes), ends, arguments.seconds)
            high, low = math.log2(found.upper) - found.maps, found.maps - math.log2(found.lower)
            name, error = "-".join(map(str, sizes)), 100 * found.relative_error
            print(
                f"{name}: 2^{found.maps:.2f} (error {error:.1f} %), upper {high:.3f} above, lower {low:.3f} below it", flush=True
            )
    elif arguments.pairs:
        pairs(arguments.nets, arguments.truths, arguments.pairs)
    else:
        trained(arguments.nets, arguments.truths, arguments.seconds)


if __name__ == "__main__":
    main()
