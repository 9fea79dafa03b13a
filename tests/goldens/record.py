"""The record of the goldens, a file with one line per network and engine, and what differs from it."""

import json
import platform
import re
from pathlib import Path
from time import process_time
from typing import NamedTuple

import llvmlite.binding
import numba
import numpy as np
import scipy

from goldens.engines import ask
from goldens.networks import subjects

FILE = Path(__file__).parent / "goldens.json"
CLOSE = 1e-9  # relative: how much floating-point numbers may differ
TESTS = 0.01  # relative: how much the numbers of tests may differ where two pieces of code became one
FEWEST = 2  # tests that may differ in any case then
PROVED = {"count", "exact", "listing", "polygons", "mipbound", "local", "upper"}
STEPPED = "steps"  # what is found in so many tests, so that it may differ where these do


class Line(NamedTuple):
    """What one engine says of one network."""

    subject: str
    engine: str

    def __str__(self) -> str:
        return f"{self.subject} {self.engine}"


class Difference(NamedTuple):
    """One value that is not what the record says."""

    line: Line
    place: str
    recorded: object
    found: object
    allowed: bool = False


def lines(engines=(), names=()):
    """The lines to make, each with its subject: all, or those of some engines, and of networks whose names contain one of some words."""
    for subject in subjects():
        if not names or any(name in subject.name for name in names):
            for engine in sorted(subject.engines):
                if not engines or engine in engines:
                    yield Line(subject.name, engine), subject


def made(chosen, tell=lambda *_: None) -> dict[Line, dict]:
    """What engines say now; `tell` hears of each line and the CPU seconds it took."""
    found = {}
    for line, subject in chosen:
        begun = process_time()
        found[line] = ask(line.engine, subject.made)
        tell(line, process_time() - begun)
    return found


def machine() -> dict[str, str]:
    """What last digits depend on: with another one, only what is exact is compared."""
    return {
        "cpu": f"{platform.machine()} {llvmlite.binding.get_host_cpu_name()}",
        "numba": numba.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


class Record(NamedTuple):
    """What is stored.

    Parameters
    ----------
    machine
        Where it was made.
    lines
        What engines said.
    rounding
        By line and place, how far values were seen to move, relatively, when the same code was compiled to round its last digits in another way.
    """

    machine: dict[str, str]
    lines: dict[Line, dict]
    rounding: dict[Line, dict[str, float]]


def load() -> Record:
    """The record, empty if there is none."""
    stored = json.loads(FILE.read_text()) if FILE.exists() else {"machine": {}, "lines": {}, "rounding": {}}
    parts = ({Line(*name.split(" ")): value for name, value in stored[part].items()} for part in ("lines", "rounding"))
    return Record(stored["machine"], *parts)


def save(record: Record) -> None:
    """Write the record, in the order of networks and engines."""
    places = [line for line, _ in lines()]

    def rows(values):
        chosen = (
            f"{json.dumps(str(line))}: {json.dumps(values[line], separators=(',', ':'))}" for line in places if line in values
        )
        return ",\n".join(chosen)

    head, body, tail = json.dumps(record.machine), rows(record.lines), rows(record.rounding)
    FILE.write_text(f'{{"machine": {head},\n"lines": {{\n{body}\n}},\n"rounding": {{\n{tail}\n}}}}\n')


def with_rounding(record: Record, found: dict[Line, dict]) -> Record:
    """The record that also knows how far these values are from its own; they come from the same code, compiled differently."""
    rounding = {line: dict(places) for line, places in record.rounding.items()}
    for line, place, old, new, _ in differences(record, found):
        if is_proved(line, place):
            msg = f"{line} {place}: {old} -> {new}: this is no matter of rounding"
            raise ValueError(msg)
        places = rounding.setdefault(line, {})
        places[kind(place)] = max(places.get(kind(place), 0.0), float(f"{moved(old, new):.2g}"))
    return record._replace(rounding=rounding)


def kind(place: str) -> str:
    """A place without its numbers in lists: one of many alike."""
    return re.sub(r"\[\d+\]", "[]", place)


def moved(old, new) -> float:
    """How far a value moved, relatively; 1 for what is no number."""
    return distance(old, new) if all(isinstance(value, int | float) for value in (old, new)) else 1.0


def differences(record: Record, found: dict[Line, dict], *, merged: bool = False) -> list[Difference]:
    """What differs; with `merged`, what merged code may do is allowed."""
    differing = []
    for line, value in found.items():
        if line not in record.lines:
            differing.append(Difference(line, "", "nothing", "a line that is not recorded"))
            continue
        for place, old, new in unequal("", record.lines[line], json.loads(json.dumps(value))):
            seen = record.rounding.get(line, {}).get(kind(place), 0.0)
            differing.append(Difference(line, place, old, new, merged and is_allowed(place, old, new, seen)))
    return differing


def unequal(place, old, new):
    """Where two values differ, by their places in them."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from unequal(f"{place}.{key}".lstrip("."), old.get(key), new.get(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, pair in enumerate(zip(old, new, strict=True)):
            yield from unequal(f"{place}[{number}]", *pair)
    elif isinstance(old, float) and isinstance(new, float):
        if not distance(old, new) <= CLOSE:
            yield place, old, new
    elif old != new:
        yield place, old, new


def is_allowed(place, old, new, seen) -> bool:
    """Whether merged code may differ so: by a hundredth of the tests, or by twice what rounding was seen to do to the same value."""
    if place.startswith(STEPPED) or moved(old, new) <= 2.0 * seen:
        return True
    return place.endswith("tests") and abs(old - new) <= max(FEWEST, TESTS * old)


def is_proved(line: Line, place: str) -> bool:
    """Whether a value is proved, or drawn from a seed alone, so that no rounding changes it."""
    return place == "total" or (
        line.engine in PROVED and place.partition("[")[0] in {"regions", "digest", "draws", "two", "bounds"}
    )


def distance(old: float, new: float) -> float:
    """The relative difference, or the absolute one of small numbers."""
    return abs(old - new) / max(abs(old), abs(new), 1.0)


def largest(recorded: dict[Line, dict], found: dict[Line, dict]) -> dict[str, tuple[float, Line]]:
    """By engine, the largest relative difference of floating-point numbers, and where it is."""
    most = {}
    for line in found.keys() & recorded.keys():
        for old, new in floats(recorded[line], found[line]):
            most[line.engine] = max(most.get(line.engine, (-1.0, line)), (distance(old, new), line))
    return most


def floats(old, new):
    """Pairs of floating-point numbers in the same places."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() & new.keys():
            yield from floats(old[key], new[key])
    elif isinstance(old, list) and isinstance(new, list):
        for pair in zip(old, new, strict=False):
            yield from floats(*pair)
    elif isinstance(old, float) and isinstance(new, float):
        yield old, new


def total_tests(value) -> int:
    """All numbers of tests of one line."""
    if not isinstance(value, dict):
        return 0
    own = sum(number for key, number in value.items() if key.endswith("tests"))
    return own + sum(total_tests(part) for part in value.values())
