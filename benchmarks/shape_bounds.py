"""What starting up and the bounds from a shape cost.

    python benchmarks/shape_bounds.py

Imports are timed in fresh processes against `import numpy`; the Configuration UB against its recurrence written
down directly (one sum per layer and dimension, memoised).
"""

import subprocess
import sys
from functools import cache
from math import comb
from statistics import median
from time import perf_counter

import tessella


def seconds(work, repeats=5):
    """Median wall time."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return median(times)


def fresh_process(code):
    """Median wall time of a new interpreter that runs this."""
    return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True))


def direct(input_dim, widths):
    """The recurrence as it is read in the paper."""

    @cache
    def regions(layer, dim):
        if layer == len(widths):
            return 1
        return sum(
            comb(widths[layer], j) * regions(layer + 1, min(dim, widths[layer] - j)) for j in range(min(dim, widths[layer]) + 1)
        )

    for layer in range(len(widths), -1, -1):  # from the back, so that the recursion stays shallow
        for dim in range(max(widths) + 1):
            regions(layer, dim)
    return regions(0, input_dim)


def main():
    """Print the table."""
    bare = fresh_process("pass")
    numpy, ours = fresh_process("import numpy") - bare, fresh_process("import tessella") - bare
    print(f"import numpy     {1000 * numpy:7.0f} ms")
    print(f"import tessella  {1000 * ours:7.0f} ms, {ours / numpy:.1f} times numpy")
    for input_dim, widths in ((784, [11, 11, 10]), (784, [256, 256]), (784, [100] * 100)):
        fast = seconds(lambda: tessella.configuration_bound(input_dim, widths))  # noqa: B023  called at once
        slow = seconds(lambda: direct(input_dim, widths), repeats=1)  # noqa: B023  called at once
        assert tessella.configuration_bound(input_dim, widths) == direct(input_dim, widths)
        name = f"{input_dim}-{widths[0]}x{len(widths)}" if len(set(widths)) == 1 else "-".join(map(str, [input_dim, *widths]))
        print(f"configuration bound of {name:<14} {1000 * fast:9.2f} ms, direct {1000 * slow:9.1f} ms, ratio {slow / fast:.0f}")


if __name__ == "__main__":
    main()
