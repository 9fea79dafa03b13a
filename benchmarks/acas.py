"""The regions of the 45 ACAS Xu networks on properties 1 to 4 of VNN-COMP 2021: exact counts, and how long they take.

    python benchmarks/acas.py benchmarks/acasxu results.jsonl             # the folder of the models and properties; goes on where it stopped
    python benchmarks/acas.py benchmarks/acasxu results.jsonl --only 1_1
    python benchmarks/acas.py benchmarks/acasxu results.jsonl --table     # only the table of what is there

One thread; seconds are CPU time of the count, without reading the model and loading compiled code.  A count that takes longer than --seconds says between which numbers the count lies.
The models are in github.com/stanleybak/vnncomp2021, in benchmarks/acasxu.
"""

import argparse
import json
import statistics
from pathlib import Path
from time import process_time

import tessella
from tessella.kernel.meter import measured_by
from tessella.kernel.threads import single_threaded

_PROPERTIES = (1, 2, 3, 4)


def run(folder, name, number, seconds):
    """One count, as a record."""
    network = tessella.load(folder / f"ACASXU_run2a_{name}_batch_2000.onnx")
    domain = tessella.load_domains(folder / f"prop_{number}.vnnlib")[0]
    known = tessella.stability(network, domain, method="linear")
    with single_threaded(), measured_by(process_time):
        found = tessella.count(network, domain, stability=known, workers=1, seconds=seconds)
    return {
        "network": name,
        "property": number,
        "lower": found.lower,
        "upper": found.upper,
        "exact": found.exact,
        "spent": found.seconds,
    }


def table(records):
    """One line per network."""
    print("| network | " + " | ".join(f"property {number}" for number in _PROPERTIES) + " | CPU s |")
    print("|---|" + "---|" * (len(_PROPERTIES) + 1))
    for name in sorted({one["network"] for one in records}):
        here = {one["property"]: one for one in records if one["network"] == name}
        cells = [_cell(here.get(number)) for number in _PROPERTIES]
        spent = " ".join(f"{here[number]['spent']:.1f}" if number in here else "-" for number in _PROPERTIES)
        print(f"| {name.replace('_', '-')} | {' | '.join(cells)} | {spent} |")
    ended = [one for one in records if one["exact"] is not None]
    if ended:
        spent, regions = [one["spent"] for one in ended], sum(one["exact"] for one in ended)
        print(
            f"\n{len(ended)} of {len(records)} counted: {regions:,} regions; median {statistics.median(spent):.2f} CPU s, longest {max(spent):.1f}"
        )


def _cell(one):
    if one is None:
        return ""
    return f"{one['exact']:,}" if one["exact"] is not None else f"{one['lower']:,} or more"


def main():
    """All that are asked for and not in the file yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path, help="a line is added for each count")
    parser.add_argument("--only", default="", help="networks whose name contains this")
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU seconds for each")
    parser.add_argument("--table", action="store_true", help="run nothing")
    asked = parser.parse_args()
    records = [json.loads(line) for line in asked.results.read_text().splitlines()] if asked.results.exists() else []
    done = {(one["network"], one["property"]) for one in records}
    for number in () if asked.table else _PROPERTIES:
        for name in (f"{one}_{other}" for one in range(1, 6) for other in range(1, 10)):
            if asked.only in name and (name, number) not in done:
                records.append(run(asked.folder, name, number, asked.seconds))
                with asked.results.open("a") as file:
                    file.write(json.dumps(records[-1]) + "\n")
                print(json.dumps(records[-1]), flush=True)
    table(records)


if __name__ == "__main__":
    main()
