"""Hunt for wrong claims: draw networks that are meant to break them, and compare what every verb says with rational arithmetic.

From the root of the repository::

    make fuzz SECONDS=600              # ten minutes; goes on where the notes end, if there are any
    make fuzz SEED=1234                # one network again, and what it is
    make fuzz SECONDS=600 NOTES=/tmp/hunt.jsonl

A finding is printed with its seed.  Bounds with a confidence may miss the truth; how often they did is told at the end, with how often they may.
"""

# ruff: noqa: T201  it is a program

import argparse
import json
import signal
import sys
from collections import Counter
from pathlib import Path
from time import monotonic, process_time

from fuzz.checks import CHECKS, Hunt, look
from fuzz.drawing import draw

ANALYSED_EVERY = 8  # networks, because an analysis takes longer than all others together
LONGEST = 300  # seconds for one verb, where something hangs


class Tally:
    """What was seen."""

    def __init__(self, notes):
        self.findings, self.tried, self.missed, self.refused, self.spent = [], Counter(), Counter(), Counter(), Counter()
        self.notes = notes

    def note(self, **what):
        if self.notes:
            with self.notes.open("a") as file:
                file.write(json.dumps(what) + "\n")

    def told(self):
        rates = "; ".join(f"{name} missed {self.missed[name]} of {self.tried[name]} at 90 %" for name in sorted(self.tried))
        refusals = ", ".join(f"{name} {number}" for name, number in sorted(self.refused.items()))
        return f"{len(self.findings)} findings; {rates or 'no probable bounds'}; refused: {refusals or 'nothing'}"


def hunt_one(seed, tally, verbs=None, *, verbose=False):
    """All verbs about one network."""
    prey = draw(seed)
    truth = prey.patterns()
    if verbose:
        print(f"seed {seed}: {prey.kinds}; {len(truth)} regions")
        print(f"layers = {[tuple(part.tolist() for part in layer) for layer in prey.case.layers]}")
        print(f"lower, upper = {prey.case.lower.tolist()}, {prey.case.upper.tolist()}")
        if prey.case.matrix is not None:
            print(f"matrix, offset = {prey.case.matrix.tolist()}, {prey.case.offset.tolist()}")
    if not truth:
        return
    try:
        hunt = Hunt(prey, prey.case.network, prey.case.domain, truth, seed)
    except ValueError as refusal:  # a leaky unit of slope 1, a polytope too thin
        tally.refused[type(refusal).__name__] += 1
        return
    for name in verbs or CHECKS:
        if verbs is None and name == "analyze" and seed % ANALYSED_EVERY:
            continue
        begun = process_time()
        signal.alarm(LONGEST)
        seen = look(name, hunt)
        signal.alarm(0)
        tally.spent[name] += process_time() - begun
        if seen is None:
            tally.refused[name] += 1
        elif seen.wrong is not None:
            tally.findings.append((seed, name))
            tally.note(seed=seed, verb=name, wrong=seen.wrong, kinds=prey.kinds)
            print(f"SEED={seed} {name}: {seen.wrong} ({prey.kinds})", flush=True)
        elif seen.missed is not None:
            tally.tried[name] += 1
            tally.missed[name] += seen.missed
        if verbose:
            print(f"  {name}: {seen}, {process_time() - begun:.2f} s")


def next_seed(notes):
    """Where the notes say that a hunt ended."""
    lines = [json.loads(line) for line in notes.read_text().splitlines()] if notes and notes.exists() else []
    return max((line["next"] for line in lines if "next" in line), default=0)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long")
    parser.add_argument("--seed", type=int, help="look at this network alone")
    parser.add_argument("--first", type=int, help="the first seed; by default the one after the last in the notes, or 0")
    parser.add_argument("--verbs", nargs="*", choices=CHECKS, help="ask these only")
    parser.add_argument("--notes", type=Path, help="a file to which findings, and how far it came, are added")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGALRM, _too_long)
    tally, end = Tally(options.notes), monotonic() + options.seconds
    if options.seed is not None:
        hunt_one(options.seed, tally, options.verbs, verbose=True)
        return bool(tally.findings)
    seed = first = options.first if options.first is not None else next_seed(options.notes)
    told = monotonic()
    while monotonic() < end:
        hunt_one(seed, tally, options.verbs)
        seed += 1
        tally.note(next=seed) if seed % 20 == 0 else None
        if monotonic() > told + 60.0:
            told = monotonic()
            print(f"seeds {first} to {seed - 1}: {tally.told()}", flush=True)
    tally.note(next=seed)
    print(f"seeds {first} to {seed - 1}: {tally.told()}")
    print("CPU seconds: " + ", ".join(f"{name} {spent:.1f}" for name, spent in tally.spent.most_common()))
    return bool(tally.findings)


def _too_long(*_):
    msg = f"nothing after {LONGEST} s"
    raise TimeoutError(msg)


if __name__ == "__main__":
    sys.exit(main())
