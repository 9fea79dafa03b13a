"""What every engine says of 77 fixed networks, recorded, so that changed code can be checked against it.

From the root of the repository, in about half a minute once all is compiled::

    PYTHONPATH=src:tests python -m goldens check                 # all engines, all networks
    PYTHONPATH=src:tests python -m goldens check --only points --networks near
    PYTHONPATH=src:tests python -m goldens check --merged        # where two pieces of code became one
    PYTHONPATH=src:tests python -m goldens record --only points  # write down what the code says now

Everything must be the same, floating-point numbers up to 1e-9.  Code that only moved passes that, if it is loaded and not compiled: a process that
compiles may round its last digits in another way, so run it twice.

With ``--merged`` numbers of tests may differ by 1 % (and the first steps of walks with them), and what rounding moves may move: the record has, by
line, how far values went when the same code was compiled for other processors.  These are tests of the walks by points, up to 6 % of a
network's and 0.3 % of all, where cells are all but degenerate more; one thin prefix in 50 there; and estimates, as descents that are
steered by what was learned choose another way.  Counts, patterns of regions and draws never moved.  How that was found, with code compiled anew::

    NUMBA_CPU_NAME=generic NUMBA_CPU_FEATURES= NUMBA_CACHE_DIR=$(mktemp -d) PYTHONPATH=src:tests python -m goldens rounding
"""

# ruff: noqa: T201  it is a program

import argparse
import sys
from collections import Counter, defaultdict

from goldens.engines import ENGINES
from goldens.record import (
    FILE,
    STEPPED,
    TESTS,
    differences,
    largest,
    lines,
    load,
    machine,
    made,
    save,
    total_tests,
    with_rounding,
)


def main() -> int:
    options = parsed()
    seconds, chosen = Counter(), list(lines(options.only, options.networks))

    def tell(line, spent):
        seconds[line.engine] += spent
        if spent > options.slow:
            print(f"  {line}: {spent:.1f} s of CPU time", flush=True)

    found, record = made(chosen, tell), load()
    print(", ".join(f"{engine} {spent:.1f} s" for engine, spent in seconds.most_common()))
    if options.verb == "record":
        save(record._replace(machine=machine(), lines=record.lines | found))
        print(f"{len(found)} lines recorded in {FILE}")
        return 0
    if options.verb == "rounding":
        save(with_rounding(record, found))
        return 0
    if record.machine != machine():
        print(f"recorded on another machine, so last digits and tests may differ: {record.machine}; this one: {machine()}")
    return report(record, found, merged=options.merged)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m goldens", description="Record what engines say of fixed networks, or check it."
    )
    parser.add_argument("verb", choices=["record", "check", "rounding"])
    parser.add_argument("--only", action="append", default=[], choices=list(ENGINES), help="this engine (may be repeated)")
    parser.add_argument("--networks", action="append", default=[], metavar="WORD", help="networks whose names contain this")
    parser.add_argument(
        "--merged", action="store_true", help=f"numbers of tests may differ by {TESTS:.0%}, and `{STEPPED}` with them"
    )
    parser.add_argument("--slow", type=float, default=3.0, metavar="SECONDS", help="name lines that take longer")
    return parser.parse_args()


def report(record, found, *, merged) -> int:
    """Print what differs; 1 if something does that may not."""
    differing, recorded = differences(record, found, merged=merged), record.lines
    for difference in differing:
        mark = "allowed" if difference.allowed else "DIFFERS"
        print(f"{mark} {difference.line} {difference.place}: {difference.recorded} -> {difference.found}")
    for engine, (most, line) in sorted(largest(recorded, found).items()):
        print(f"{engine}: floating-point numbers differ by at most {most:.1e} ({line.subject})")
    failed, totals = sum(not difference.allowed for difference in differing), defaultdict(lambda: [0, 0])
    for line in found.keys() & recorded.keys():
        totals[line.engine][0] += total_tests(recorded[line])
        totals[line.engine][1] += total_tests(found[line])
    for engine, (old, new) in sorted(totals.items()):
        if old != new:
            too_many = abs(new - old) > TESTS * old
            failed += too_many
            print(
                f"{'DIFFERS' if too_many else 'note:'} {engine}: {old:,} -> {new:,} tests in all ({new / max(old, 1) - 1:+.2%})"
            )
    print(f"{len(found)} lines checked, {failed} differences that may not be, {len(differing) - failed if merged else 0} allowed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
