"""The results file: one line of JSON per finished task, appended the moment it is there, so that a run can stop at any time."""

import json
import os
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import tessella
from experiments.paper.index import Key
from experiments.paper.tasks import NEEDS, SCHEMA, TASKS, VALUES, Settings
from tessella.files import unwritable

RESULTS: Final = "results.jsonl"
_NAMES: Final = {"status", "settings", "machine", "versions", "finished_at"}
_SETTLED: Final = ("finished", "infeasible")

Record = dict[str, Any]


@dataclass(slots=True)
class Results:
    """What is known of each network; the last line about a task counts.

    Parameters
    ----------
    path
        The file.
    records
        By network and task.
    """

    path: Path
    records: dict[tuple[Key, str], Record] = field(default_factory=dict[tuple[Key, str], Record])

    @classmethod
    def read(cls, folder: Path) -> "Results":
        """Read a folder's file; a last line that was cut off while it was written is not there."""
        path = folder / RESULTS
        results = cls(path)
        try:
            text = _whole(path.read_bytes() if path.exists() else b"").decode()
        except (OSError, UnicodeDecodeError) as error:
            msg = f"{path}: cannot be read ({error}); choose another folder"
            raise tessella.FileError(msg) from error
        for number, line in enumerate(text.splitlines(), start=1):
            if line.strip():
                record = _record(path, number, line)
                results.records[_key(record), record["task"]] = record
        return results

    def check(self, fingerprints: Mapping[Key, str], images: Collection[str]) -> None:
        """Refuse results of other networks.

        Parameters
        ----------
        fingerprints
            Those of the networks at hand.
        images
            Hashes of the images that these were trained on.
        """
        for (key, task), record in self.records.items():
            if task == "network" and str(record["value"].get("data_sha256")) not in images:
                msg = f"{self.path}: has results of networks trained on other images ({key.file}: {record['value'].get('data')}); choose another --out"
                raise tessella.OptionError(msg)
        for key, _ in self.records:
            if key in fingerprints and self.fingerprint(key) != fingerprints[key]:
                msg = (
                    f"{self.path}: has results of another network {key.n1}-{key.n2} of seed {key.seed} (fingerprint "
                    f"{self.fingerprint(key)[:12]}, that of the file is {fingerprints[key][:12]}): it was trained again, or in other company; choose another --out"
                )
                raise tessella.OptionError(msg)

    def fingerprint(self, key: Key) -> str:
        """Of the network that results are about; one file has one network per key."""
        return next(record["network"]["fingerprint"] for (about, _), record in self.records.items() if about == key)

    def value(self, key: Key, task: str) -> dict[str, Any] | None:
        """What a finished task found."""
        record = self.records.get((key, task))
        return record["value"] if record and (record["status"] in _SETTLED) else None

    def settled(self, key: Key, task: str, settings: Settings) -> bool:
        """Whether there is nothing left to do, with these settings."""
        record = self.records.get((key, task))
        if record is None:
            return False
        if task == "count" and record["status"] in {"time limit", "skipped"}:
            return bool(record["value"]["limit_seconds"] >= settings.exact_seconds)
        return record["status"] in _SETTLED and record["settings"] == settings.of(task)

    def ready(self, key: Key, task: str) -> bool:
        """Whether all that a task needs is known."""
        return all(self.value(key, needed) is not None for needed in NEEDS[task])

    def keys(self) -> list[Key]:
        """The networks, in order."""
        return sorted({key for key, _ in self.records})

    @contextmanager
    def writing(self) -> Generator["Results", None, None]:
        """Hold the file, so that no two runs write to it; what was cut off at its end is taken away."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = self.path.open("r+b" if self.path.exists() else "x+b")
        except OSError as error:
            raise unwritable(self.path, error) from error
        with file:
            _lock(file.fileno(), self.path)
            whole = _whole(file.read())
            file.truncate(len(whole))
            if whole and not whole.endswith(b"\n"):
                file.write(b"\n")
                file.flush()
            yield self

    def append(self, key: Key, fingerprint: str, task: str, record: Record) -> None:
        """Write a line, at once and whole."""
        network = {"n1": key.n1, "n2": key.n2, "seed": key.seed, "fingerprint": fingerprint}
        line = {"schema": SCHEMA, "network": network, "task": task, **record}
        try:
            with self.path.open("ab") as file:
                file.write(json.dumps(line).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise unwritable(self.path, error) from error
        self.records[key, task] = line


def closure(tasks: Iterable[str]) -> list[str]:
    """The tasks and all that they need, in the order in which they are done; "network" costs nothing, and every report needs it.

    Examples
    --------
    >>> closure(["count"])
    ['network', 'stability', 'estimate', 'count']
    """
    wanted, front = set[str](), ["network", *tasks]
    while front:
        task = front.pop()
        if task not in NEEDS:
            msg = f"--tasks {task}: there is no such task; choose from {', '.join(TASKS)}"
            raise tessella.OptionError(msg)
        if task not in wanted:
            wanted.add(task)
            front += NEEDS[task]
    return [task for task in TASKS if task in wanted]


def _whole(content: bytes) -> bytes:
    """Without a last line that was cut off; one that lacks nothing but its end is kept."""
    cut = content.rfind(b"\n") + 1
    try:
        json.loads(content[cut:])
    except ValueError:
        return content[:cut]
    return content


def _record(path: Path, number: int, line: str) -> Record:
    try:
        record = json.loads(line)
        _key(record)
        found = record["schema"] == SCHEMA and record.keys() >= _NAMES and len(record["network"]["fingerprint"]) > 0
        found = found and min(float(record["wall_seconds"]), float(record["cpu_seconds"])) >= 0.0
        found = found and record["value"].keys() >= set(VALUES[record["task"]])
    except (ValueError, KeyError, TypeError, AttributeError):
        found = False
    if not found:
        msg = f"{path}: line {number} is no result of this experiment; remove that line and the task is done again"
        raise tessella.FileError(msg)
    return record


def _key(record: Record) -> Key:
    network = record["network"]
    return Key(int(network["n1"]), int(network["n2"]), int(network["seed"]))


def _lock(descriptor: int, path: Path) -> None:
    with suppress(ImportError):
        import fcntl  # noqa: PLC0415  not on Windows

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            msg = f"{path}: another run is writing to it; wait for its end, or choose another --out"
            raise tessella.FileError(msg) from error
