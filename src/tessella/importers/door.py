"""The door of every importer: files that exist, and errors in one line whatever a parser throws."""

import os
import zipfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import Final, NoReturn

import numpy.typing as npt

from tessella.errors import FileError, FileMissing, OptionError, TessellaError

_POINTER: Final = b"version https://git-lfs.github.com/spec/"
_LONGEST_POINTER: Final = 1024  # bytes, as Git LFS has it


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a caller wants of a model."""

    # shape of one input without its batch axis; needed only where the model leaves a size open
    input_shape: tuple[int, ...] | None = None
    output: str | None = None  # the tensor to keep; all outputs, one after the other, if none is named
    inputs: Mapping[str, npt.ArrayLike] | None = None  # inputs that are fixed, by name

    def refuse(self, name: str, what: str) -> None:
        """Refuse what is for ONNX only, of something else."""
        for option, value in (("output", self.output), ("inputs", self.inputs)):
            if value is not None:
                msg = f"{name}{option}={value!r:.80} is for ONNX {what} only"
                raise OptionError(msg)


def existing_file(path: str | os.PathLike[str]) -> Path:
    """The path of a file that is there, is a file, and is not empty."""
    try:
        place = Path(path)
        if place.is_dir():
            msg = f"{place}: is a folder; a file was expected"
            raise FileError(msg)
        size = place.stat().st_size
    except FileNotFoundError as error:
        msg = f"{path}: no such file"
        raise FileMissing(msg) from error
    except (OSError, ValueError) as error:
        if isinstance(error, TessellaError):
            raise
        msg = f"{path!s:.200}: cannot be opened ({error})"
        raise FileError(msg) from error
    if not place.is_file():
        msg = f"{place}: is a pipe or device; a file was expected"
        raise FileError(msg)
    if size == 0:
        msg = f"{place}: is empty"
        raise FileError(msg)
    if size < _LONGEST_POINTER and _begins(place, _POINTER):
        msg = f"{place}: is a pointer of Git LFS, which stands for the file; fetch the file itself with git lfs pull"
        raise FileError(msg)
    return place


def _begins(place: Path, start: bytes) -> bool:
    """Whether a file begins like this; one that cannot be opened does not."""
    try:
        with place.open("rb") as file:
            return file.read(len(start)) == start
    except OSError:
        return False


@contextmanager
def reading(name: str, kind: str, failure: type[TessellaError] = FileError) -> Generator[None]:
    """Turn whatever a foreign parser raises into one line of ours; our own errors get the name in front.

    Parameters
    ----------
    name
        What is read: a file's or a model's name.
    kind
        What it should be, with its article.
    failure
        The error to raise.
    """
    try:
        yield
    except TessellaError as error:
        if str(error).startswith(name):
            raise
        named = type(error)(f"{name}: {error}")
        raise named from error
    except Exception as error:
        lines = str(error).strip().splitlines()
        reason = f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
        advice = "; is the file complete?" if failure is FileError else ""
        msg = f"{name}: cannot be read as {kind} ({reason}){advice}"
        raise failure(msg) from error


def advised(message: str) -> str:
    """What was found about an operator, and what could be done about it, unless that is said behind a semicolon already."""
    return message if ";" in message else f"{message}; replace it, or cut the model before it"


def checked_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The sizes of one input's shape."""
    try:
        sizes = tuple(index(size) for size in shape)
    except TypeError as error:
        msg = f"input_shape={shape!r} is no shape; pass whole numbers, such as input_shape=(1, 28, 28)"
        raise OptionError(msg) from error
    if not sizes or min(sizes) < 1:
        msg = f"input_shape={shape!r} has no size, or one below 1; pass sizes of at least 1, such as input_shape=(1, 28, 28)"
        raise OptionError(msg)
    return sizes


def refuse_pickle(path: str | os.PathLike[str]) -> NoReturn:
    """Say why a pickled checkpoint is not opened, and which line hands it over instead."""
    if _is_torchscript(path):
        msg = (
            f"{path}: is compiled to TorchScript, which is not read, as it may run code; hand over the weights of a plain MLP, "
            f"tessella.load(torch.jit.load({Path(path).name!r}).state_dict()), or pass the module that it was made from, tessella.load(module)"
        )
        raise FileError(msg)
    if _is_exported(path):
        msg = f"{path}: is a program of torch.export under another name; rename it to {Path(path).stem}.pt2, and it is read"
        raise FileError(msg)
    if Path(path).suffix.lower() in {".pkl", ".pickle", ".joblib"}:
        msg = (
            f"{path}: is a pickle, which is never opened because that would run code from it; if you trust it, open it in your own program and hand over what it holds, "
            f"such as tessella.load(joblib.load({Path(path).name!r})) for an estimator of scikit-learn"
        )
        raise FileError(msg)
    msg = (
        f"{path}: is a pickled checkpoint, which is never opened because that would run code from it; hand over the weights of a plain MLP, "
        f"tessella.load(torch.load({Path(path).name!r}, weights_only=True)); or build the module in your own program, "
        "module.load_state_dict(torch.load(path, weights_only=True)), and pass it to tessella.load(module), "
        "or write torch.export.save(torch.export.export(module, (x,)), 'model.pt2')"
    )
    raise FileError(msg)


def _is_torchscript(path: str | os.PathLike[str]) -> bool:
    """Whether a file is an archive with code in it, by the names of its records."""
    return any("/code/" in f"/{name}" for name in _records(path))


def _is_exported(path: str | os.PathLike[str]) -> bool:
    """Whether a file is an archive as ``torch.export.save`` writes them."""
    return any(f"/{name}".endswith("/models/model.json") for name in _records(path))


def _records(path: str | os.PathLike[str]) -> list[str]:
    """The names of an archive's records; none of what is no archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return []
