"""How fast networks are counted whose hyperplanes coincide, or meet in more than general position, against generic ones of their size.

    python benchmarks/degenerate.py                  # all of them, up to 3 CPU seconds each
    python benchmarks/degenerate.py --only ternary   # those whose name contains this

CPU seconds of one thread, linear bounds of units known, compiled code loaded.  The last column is the speed as a part of that of the generic network of the same layers, or of as many
inputs and about as many regions.
"""

import argparse
import itertools
import time

import numpy as np

import tessella
from tessella.kernel import meter

_SIZES = ((3, 12, 12, 8), (4, 10, 10, 6), (5, 10, 10), (5, 8, 8, 6), (8, 12, 12))


def drawn(sizes, kind):
    """Weights of one kind; central ones have no biases."""
    rng, layers = np.random.default_rng(0), []
    for before, size in itertools.pairwise(sizes):
        weight, bias = rng.standard_normal((size, before)), 0.5 * rng.standard_normal(size)
        if "ternary" in kind:
            weight, bias = rng.integers(-1, 2, (size, before)).astype(float), rng.integers(-1, 2, size).astype(float)
        elif "whole" in kind:
            weight, bias = rng.integers(-4, 5, (size, before)).astype(float), rng.integers(-4, 5, size).astype(float)
        elif "quarter" in kind:
            weight, bias = np.round(4 * weight) / 4, np.round(4 * bias) / 4
        layers.append((weight, np.zeros(size) if "central" in kind else bias))
    return tessella.load(layers, relu_output=True), tessella.Box(-1, 1, dim=sizes[0])


def lattice(inputs, functions):
    """The largest of some affine functions, two by two: max(a, b) = b + relu(a - b)."""
    rng = np.random.default_rng(0)
    map_, constants, layers = (
        rng.integers(-3, 4, (functions, inputs)).astype(float),
        rng.integers(-3, 4, functions).astype(float),
        [],
    )
    while len(map_) > 1:
        pairs = len(constants) // 2
        block, sums = np.array([[1.0, -1.0], [0.0, 1.0], [0.0, -1.0]]), np.array([[1.0, 1.0, -1.0]])
        step = np.kron(np.eye(pairs), block)
        layers.append((step @ map_, step @ constants))
        map_, constants = np.kron(np.eye(pairs), sums), np.zeros(pairs)
    return tessella.load([*layers, (map_, constants)]), tessella.Box(-1, 1, dim=inputs)


def differences(inputs, first, second):
    """Units that compare two inputs, then ternary ones."""
    rng, pairs = np.random.default_rng(0), list(itertools.permutations(range(inputs), 2))
    rng.shuffle(pairs)
    ends = np.eye(inputs)
    weight = np.array([ends[i] - ends[j] for i, j in pairs[:first]])
    more = rng.integers(-1, 2, (second, first)).astype(float), rng.integers(-1, 2, second).astype(float)
    network = tessella.load([(weight, rng.integers(-1, 2, first) / 2), more], relu_output=True)
    return network, tessella.Box(-1, 1, dim=inputs)


def clauses(variables, number):
    """As networks that stand for formulas: a unit for each clause of three, two for each variable, and what adds them up."""
    rng = np.random.default_rng(0)
    weight, bias = np.zeros((number + 2 * variables, variables)), np.ones(number + 2 * variables)
    for row in range(number):
        chosen, sides = rng.choice(variables, 3, replace=False), rng.integers(0, 2, 3)
        weight[row, chosen] = np.where(sides, -1.0, 1.0)
        bias[row] -= (1 - sides).sum()
    for at in range(variables):
        weight[number + 2 * at : number + 2 * at + 2, at] = 2.0, -2.0
        bias[number + 2 * at] = -1.0
    sums = np.ones((2, len(bias)))
    sums[1, :number], sums[1, number:] = -1.0, 0.5
    layers = [(weight, bias), (sums, [0.5 - variables, 1.0]), ([[1.0, 1.0]], [-1.0])]
    return tessella.load(layers, relu_output=True), tessella.Box(0, 1, dim=variables)


def subjects():
    """Each network with its name, and the name of what it is compared with."""
    kinds = ("generic", "quarters", "whole", "ternary", "central", "whole central", "ternary central")
    for sizes in _SIZES:
        shape = "-".join(map(str, sizes))
        for kind in kinds:
            yield f"{shape} {kind}", drawn(sizes, kind), f"{shape} generic"
    for inputs, functions in ((2, 32), (3, 16), (3, 32), (5, 16)):
        yield f"lattice of {functions}, {inputs} inputs", lattice(inputs, functions), f"{_like(inputs)} generic"
    for sizes in ((4, 12, 8), (5, 12, 8), (5, 16, 8), (8, 14, 8)):
        yield f"{'-'.join(map(str, sizes))} differences", differences(*sizes), f"{_like(sizes[0])} generic"
    for variables, number in ((4, 12), (6, 20), (8, 20)):
        yield f"{number} clauses, {variables} variables", clauses(variables, number), f"{_like(variables)} generic"


def _like(inputs):
    return {2: "3-12-12-8", 3: "3-12-12-8", 4: "4-10-10-6", 5: "5-10-10", 6: "5-10-10"}.get(inputs, "8-12-12")


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--seconds", type=float, default=3.0)
    asked, speeds = parser.parse_args(), {}
    print(f"{'network':28} {'regions':>18} {'CPU s':>7} {'per second':>11} {'of generic':>10}")
    for name, (network, box), generic in subjects():
        if asked.only not in name and "generic" not in name:
            continue
        known = tessella.stability(network, box, method="linear")
        tessella.count(network, box, seconds=asked.seconds, stability=known, workers=1)  # loads what it calls
        with meter.measured_by(time.process_time):
            start = time.process_time()
            found = tessella.count(network, box, seconds=asked.seconds, stability=known, workers=1)
            spent = time.process_time() - start
        speeds[name] = found.lower / spent
        said = f"{'' if found.exact else 'at least '}{found.lower:,}"
        print(
            f"{name:28} {said:>18} {spent:7.2f} {speeds[name]:11,.0f} {'1/' + format(speeds[generic] / speeds[name], '.1f'):>10}",
            flush=True,
        )


if __name__ == "__main__":
    main()
