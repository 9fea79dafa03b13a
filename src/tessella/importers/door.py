"""The door of every importer: files that exist, and errors in one line whatever a parser throws."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tessella.errors import FileError, FileMissing, TessellaError


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
    if size == 0 and place.is_file():
        msg = f"{place}: is empty"
        raise FileError(msg)
    return place


@contextmanager
def reading(name: str, kind: str) -> Generator[None]:
    """Turn whatever a foreign parser raises into one `FileError` line; our own errors get the file's name in front."""
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
        msg = f"{name}: cannot be read as {kind} ({reason}); is the file complete?"
        raise FileError(msg) from error
