"""A folder of trained networks: ``n1_n2_seed.npz`` files, and ``index.jsonl`` with one line of JSON for each."""

import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

import tessella
from experiments.paper.files import write

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
        probe = self.path / ".part"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            probe.touch()
            probe.unlink()
        except OSError as error:
            msg = f"{self.path}: cannot be written to, as a folder ({error.strerror}); choose another --out"
            raise tessella.FileError(msg) from error

    def records(self) -> dict[Key, dict[str, Any]]:
        """What the index says, for each network whose file is there."""
        return {key: record for key, record in self.listed().items() if (self.path / key.file).is_file()}

    def listed(self) -> dict[Key, dict[str, Any]]:
        """What the index says."""
        index = self.path / INDEX
        found: dict[Key, dict[str, Any]] = {}
        try:
            lines = index.read_text(encoding="utf-8").splitlines() if index.exists() else []
        except (OSError, UnicodeDecodeError) as error:
            msg = f"{index}: cannot be read ({error}); check its permissions, or choose another folder"
            raise tessella.FileError(msg) from error
        for number, line in enumerate(lines, start=1):
            try:
                record = json.loads(line)
                key = Key(int(record["n1"]), int(record["n2"]), int(record["seed"]))
                _ = float(record["test_error"]), float(record["training_cross_entropy"]), record["fingerprint"][:12]
            except (ValueError, KeyError, TypeError) as error:
                msg = f"{index}: line {number} is no record of a network; remove that line and its network is trained again"
                raise tessella.FileError(msg) from error
            found[key] = record
        return found

    def arrays(self, key: Key) -> Arrays:
        """Weights and biases of a network; refuses a file that is not the one of the index."""
        path, said = self.path / key.file, str(self.listed()[key]["fingerprint"])
        try:
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                layers = [(file[f"W{number}"], file[f"b{number}"]) for number in range(len(file.files) // 2)]
            found = tessella.Network.from_arrays(layers).fingerprint
        except FileNotFoundError as error:
            msg = f"{path}: is listed in {INDEX}, but is not there; the command that trained it does so again"
            raise tessella.FileMissing(msg) from error
        except OSError as error:
            msg = f"{path}: cannot be read ({error.strerror}); check its permissions"
            raise tessella.FileError(msg) from error
        except (ValueError, KeyError, EOFError, zipfile.BadZipFile, tessella.TessellaError) as error:
            msg = f"{path}: is no network of this experiment ({error}); remove the file and train it again"
            raise tessella.FileError(msg) from error
        if found != said:
            msg = f"{path}: is not the network that {INDEX} lists (fingerprints {found[:12]} and {said[:12]}); remove the file and train it again"
            raise tessella.FileError(msg)
        return layers

    def save(self, networks: Mapping[Key, Arrays], records: Mapping[Key, dict[str, Any]]) -> None:
        """Write networks and then their lines of the index; each file is whole or not there.

        Parameters
        ----------
        networks
            Weights (units, inputs) and biases of each layer.
        records
            What the index is to say of them.
        """
        for key, layers in networks.items():
            arrays = {f"{name}{n}": array for n, layer in enumerate(layers) for name, array in zip("Wb", layer, strict=True)}
            file = BytesIO()
            np.savez(file, allow_pickle=False, **arrays)
            write(self.path / key.file, file.getvalue())
        merged = {**self.records(), **records}
        write(self.path / INDEX, "".join(f"{json.dumps(merged[key])}\n" for key in sorted(merged)).encode())


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


def chosen(folder: Folder, widths: Iterable[tuple[int, int]], seeds: Iterable[int]) -> list[Key]:
    """The networks of a folder, or those of these layers and seeds; refuses what has none.

    Parameters
    ----------
    folder
        Where networks are.
    widths, seeds
        Which; nothing for all.
    """
    listed, pairs, wanted = sorted(folder.listed()), set(widths), set(seeds)
    if not listed:
        msg = f"{folder.path}: there are no trained networks here, no file {INDEX}; make them with: python -m experiments.paper train"
        raise tessella.FileMissing(msg)
    keys = [key for key in listed if (not pairs or key[:2] in pairs) and (not wanted or key.seed in wanted)]
    absent = {
        "with hidden layers": [f"{n1}-{n2}" for n1, n2 in sorted(pairs - {key[:2] for key in keys})],
        "of seed": [str(seed) for seed in sorted(wanted - {key.seed for key in keys})],
    }
    if any(absent.values()):
        which = ", and none ".join(f"{words} {', '.join(names)}" for words, names in absent.items() if names)
        msg = f"{folder.path}: there are no trained networks {which} among those asked for; make them with: python -m experiments.paper train"
        raise tessella.FileMissing(msg)
    return keys


def missing(folder: Folder, keys: Iterable[Key], settings: Mapping[str, Any], *, force: bool = False) -> list[Key]:
    """The networks that are still to be trained.

    Parameters
    ----------
    folder
        Where trained ones are.
    keys
        All that are asked for.
    settings
        What the records of all trained ones must say, so that one folder does not mix different experiments.
    force
        Whether those that are asked for are trained again.
    """
    records, asked = folder.records(), list(keys)
    kept = {key: record for key, record in records.items() if not (force and key in asked)}
    for key, record in kept.items():
        for name, value in settings.items():
            if record.get(name) != value:
                how = (
                    f"on other images ({record.get('data')})"
                    if name == "data_sha256"
                    else f"with {name} {_words(record.get(name))}, not {_words(value)}"
                )
                msg = f"{folder.path / key.file}: was trained {how}; choose another --out, or the same settings"
                raise tessella.OptionError(msg + (", or --force to replace it" if set(kept) <= set(asked) else ""))
    return [key for key in asked if key not in kept]


def _words(value: Any) -> str:
    return ", ".join(f"{name} {each}" for name, each in value.items()) if isinstance(value, dict) else str(value)
