"""Certificates of the counts: of whole networks where there are few regions, of random subtrees where there are many; written, and checked by ``verify.py``.

A subtree is what a tree search has below one of its nodes: all regions with the same states of all ReLUs but the last few outputs.  Regions are drawn by `tessella.sample_regions`, whose seed is chosen
when the count is known; the subtrees that hold them are certified.
"""

import json
from collections.abc import Generator, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, Final

import numpy as np

import tessella
from experiments.paper.index import Folder, Key
from experiments.paper.results import Results
from experiments.paper.tasks import Subject, machine, versions
from tessella.certificates import verify
from tessella.files import unwritable

CERTIFICATES: Final = "certificates.jsonl"
SCHEMA: Final = "tessella.experiments.paper.certificate/1"
_NAMES: Final = ("kind", "regions", "parts", "bytes", "written_cpu_seconds", "checked_cpu_seconds", "said")
_DRAWS: Final = 20  # samples with seeds one after the other, until there are enough subtrees

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is certified.

    Parameters
    ----------
    whole
        Networks with at most so many regions are certified in whole.
    parts
        So many subtrees of each of the others.
    open
        So many outputs have any state in a subtree.
    seed
        Of the sample.
    """

    whole: int = 100_000
    parts: int = 1000
    open: int = 3
    seed: int = 1


@dataclass(slots=True)
class Certificates:
    """What was certified and checked, by network; the last line about a network counts.

    Parameters
    ----------
    path
        The file.
    records
        By network.
    """

    path: Path
    records: dict[Key, Record] = field(default_factory=dict[Key, Record])

    @classmethod
    def read(cls, folder: Path) -> "Certificates":
        """Read a folder's file; there are no certificates if it is not there."""
        found = cls(folder / CERTIFICATES)
        try:
            lines = found.path.read_text(encoding="utf-8").splitlines() if found.path.exists() else []
        except (OSError, UnicodeDecodeError) as error:
            msg = f"{found.path}: cannot be read ({error}); choose another folder"
            raise tessella.FileError(msg) from error
        for number, line in enumerate(lines, start=1):
            try:
                record = json.loads(line)
                key = Key(*(int(record["network"][name]) for name in ("n1", "n2", "seed")))
                right = (
                    record["schema"] == SCHEMA and record["value"].keys() >= set(_NAMES) and len(record["network"]["fingerprint"])
                )
            except (ValueError, KeyError, TypeError, AttributeError):
                key, right = Key(0, 0, 0), False
            if not right:
                msg = f"{found.path}: line {number} says nothing of a certificate; remove that line and it is made again"
                raise tessella.FileError(msg)
            found.records[key] = record
        return found

    def append(self, key: Key, record: Record) -> None:
        """Write a line."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            raise unwritable(self.path, error) from error
        self.records[key] = record


def certify(
    nets: Path, results: Path, keys: Iterable[Key], plan: Plan, kept: Path | None = None
) -> Generator[tuple[Key, Record]]:
    """Certify and check, one network after the other; what is in the file already is left out.

    Parameters
    ----------
    nets, results
        The folders.  Subtrees are those of networks whose count is among the results; others are counted first, and certified if they have few regions.
    keys
        Which networks.
    plan
        What is certified.
    kept
        Where certificates stay; None for nowhere.

    Yields
    ------
    Each network with what is recorded of it, as soon as it is known.
    """
    done, known, folder = Certificates.read(results), Results.read(results), Folder(nets)
    for key in keys:
        subject = Subject.of(folder.arrays(key))
        earlier = done.records.get(key)
        if earlier is not None and earlier["network"]["fingerprint"] == subject.network.fingerprint:
            continue
        value = known.value(key, "count")
        if value is not None and known.fingerprint(key) != subject.network.fingerprint:
            msg = f"{known.path}: has results of another network {key.n1}-{key.n2} of seed {key.seed} than {nets}; choose another --out"
            raise tessella.OptionError(msg)
        count = value["exact"] if value is not None else _counted(subject, plan)
        if count is None or (count > plan.whole and value is None):
            continue
        with TemporaryDirectory() as scratch:
            place = (kept or Path(scratch)) / f"{key.file.removesuffix('.npz')}.cert.gz"
            record = _record(key, subject, plan, count, place)
        done.append(key, record)
        yield key, record


def _counted(subject: Subject, plan: Plan) -> int | None:
    """How many regions there are, if that is known soon."""
    found = tessella.count(subject.network, subject.box, seconds=10.0, workers=1)
    return found.exact if found.lower <= plan.whole else None


def _record(key: Key, subject: Subject, plan: Plan, count: int, place: Path) -> Record:
    """Certify a network, and check that."""
    whole = count <= plan.whole
    given = None if whole else subtrees(subject, plan)
    begun = process_time()
    written = tessella.certify(subject.network, subject.box, place, given=given)
    between = process_time()
    said = verify.check(str(place))
    ended = process_time()
    claimed = (
        f"{written.regions} regions in {'all' if given is None else f'{len(given)} parts'}; network {subject.network.fingerprint}"
    )
    if not said.startswith(f"verified: 0 bounds, {claimed}") or (whole and written.regions != count):
        msg = f"{key.file}: {written!r}, {said}, and {count} were counted; this is an error in Tessella, please report it"
        raise tessella.FileError(msg)
    settings: Mapping[str, Any] = {} if whole else {name: asdict(plan)[name] for name in ("parts", "open", "seed")}
    return {
        "schema": SCHEMA,
        "network": {"n1": key.n1, "n2": key.n2, "seed": key.seed, "fingerprint": subject.network.fingerprint},
        "settings": settings,
        "value": {
            "kind": "whole" if whole else "parts",
            "count": count,
            "regions": written.regions,
            "parts": 0 if given is None else len(given),
            "bytes": written.bytes,
            "written_cpu_seconds": round(between - begun, 3),
            "checked_cpu_seconds": round(ended - between, 3),
            "said": said,
        },
        "machine": machine(),
        "versions": versions(),
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def subtrees(subject: Subject, plan: Plan) -> list[dict[int, bool]]:
    """The subtrees that hold regions of a sample, each by the sides of all units that it decides."""
    units = np.flatnonzero(np.concatenate([layer.rectified for layer in subject.network.layers])).tolist()
    decided, found = len(units) - plan.open, dict[bytes, dict[int, bool]]()
    for seed in range(plan.seed, plan.seed + _DRAWS):
        for drawn in tessella.sample_regions(subject.network, subject.box, plan.parts, rng=seed):
            pattern = drawn.region.pattern[:decided]
            found.setdefault(pattern.tobytes(), dict(zip(units, pattern.tolist(), strict=False)))
            if len(found) == plan.parts:
                return list(found.values())
    return list(found.values())
