"""A folder of trained networks: ``n1_n2_seed.npz`` files, and ``index.jsonl`` with one line of JSON for each."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

import tessella

UNITS: Final = 22  # of both hidden layers together
INDEX: Final = "index.jsonl"

Arrays = list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]


class Key(NamedTuple):
    """Which network: the units of its hidden layers, and its seed."""

    n1: int
    n2: int
    seed: int

    @property
    def file(self) -> str:
        """Name of its file."""
        return f"{self.n1}_{self.n2}_{self.seed}.npz"


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder that networks are saved in.

    Parameters
    ----------
    path
        The folder; it is made by the first `save`.
    """

    path: Path

    def prepare(self) -> None:
        """Make the folder, before time is spent on what could not be saved in it."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            msg = f"{self.path}: cannot be made a folder ({error.strerror}); choose another --out"
            raise tessella.FileError(msg) from error

    def records(self) -> dict[Key, dict[str, Any]]:
        """What the index says, for each network whose file is there."""
        index = self.path / INDEX
        if not index.exists():
            return {}
        found: dict[Key, dict[str, Any]] = {}
        try:
            lines = index.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            msg = f"{index}: cannot be read ({error}); choose another --out, or move the file away"
            raise tessella.FileError(msg) from error
        for number, line in enumerate(lines, start=1):
            try:
                record = json.loads(line)
                key = Key(int(record["n1"]), int(record["n2"]), int(record["seed"]))
            except (ValueError, KeyError, TypeError) as error:
                msg = f"{index}: line {number} is no record of a network; remove that line and its network is trained again"
                raise tessella.FileError(msg) from error
            if (self.path / key.file).is_file():
                found[key] = record
        return found

    def save(self, networks: Mapping[Key, Arrays], records: Mapping[Key, dict[str, Any]]) -> None:
        """Write networks and then their lines of the index; each file is whole or not there.

        Parameters
        ----------
        networks
            Weights (units, inputs) and biases of each layer.
        records
            What the index is to say of them.
        """
        try:
            for key, layers in networks.items():
                arrays = {f"{name}{n}": array for n, layer in enumerate(layers) for name, array in zip("Wb", layer, strict=True)}
                partial = self.path / f"{key.file}.part"
                with partial.open("wb") as file:
                    np.savez(file, allow_pickle=False, **arrays)
                partial.replace(self.path / key.file)
            merged = {**self.records(), **records}
            partial = self.path / f"{INDEX}.part"
            partial.write_text("".join(f"{json.dumps(merged[key])}\n" for key in sorted(merged)), encoding="utf-8")
            partial.replace(self.path / INDEX)
        except tessella.FileError:
            raise
        except OSError as error:
            msg = f"{self.path}: cannot be written ({error.strerror}); check its permissions and the space left"
            raise tessella.FileError(msg) from error


def configurations(names: Iterable[str] = ()) -> list[tuple[int, int]]:
    """The hidden layers of the paper's networks, 1-21 to 21-1, or those named.

    Examples
    --------
    >>> len(configurations())
    21
    >>> configurations(["11-11", "3-19"])
    [(3, 19), (11, 11)]
    """
    known = {f"{n1}-{UNITS - n1}": (n1, UNITS - n1) for n1 in range(1, UNITS)}
    asked = list(names)
    for name in asked:
        if name not in known:
            msg = f"--only {name}: expected two layers that sum to {UNITS} units, 1-21 to 21-1, such as 11-11"
            raise tessella.OptionError(msg)
    return sorted({known[name] for name in asked or known})


def missing(folder: Folder, keys: Iterable[Key], settings: Mapping[str, Any]) -> list[Key]:
    """The networks that are still to be trained.

    Parameters
    ----------
    folder
        Where trained ones are.
    keys
        All that are asked for.
    settings
        What the records of trained ones must say, so that one folder does not mix different experiments.
    """
    records, asked = folder.records(), list(keys)
    for key in asked:
        if key not in records:
            continue
        for name, value in settings.items():
            if records[key].get(name) != value:
                msg = (
                    f"{folder.path / key.file}: was trained with {name} {records[key].get(name)}, not {value}; "
                    "choose another --out, the same settings, or --force to replace it"
                )
                raise tessella.OptionError(msg)
    return [key for key in asked if key not in records]
