"""Files that are whole or not there: whoever writes one writes it beside its place first."""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tessella.errors import FileError

_ADVICE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space, or choose another place"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "choose a folder that you may write to"),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "make it first, or choose another"),
    errno.EISDIR: "add the name of a file",
}


@contextmanager
def writing(path: str | os.PathLike[str]) -> Generator[BinaryIO]:
    """A file to write to; when all is written it takes its place, and until then what was there stays.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     place = Path(folder) / "answer.txt"
    ...     with writing(place) as file:
    ...         _ = file.write(b"42")
    ...         place.exists()
    ...     place.read_text()
    False
    '42'
    """
    place = Path(os.path.realpath(path))  # where a link leads to, so that it stays a link
    try:
        if (place.exists() and not place.is_file()) or _is_alone(place):
            with place.open("wb") as file:
                yield file
            return
        beside = place.with_name(f".{place.name:.200}.{os.getpid()}.part")
        try:
            with beside.open("wb") as file:
                yield file
            if place.exists():
                beside.chmod(place.stat().st_mode & 0o7777)
            beside.replace(place)
        except BaseException:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise unwritable(path, error) from error


def _is_alone(place: Path) -> bool:
    """Whether it may be written, but nothing beside it."""
    return place.exists() and os.access(place, os.W_OK) and not os.access(place.parent, os.W_OK)


def unwritable(path: str | os.PathLike[str], error: OSError) -> FileError:
    """What to say of a file that cannot be written.

    Examples
    --------
    >>> unwritable("regions.svg", OSError(errno.ENOSPC, "No space left on device"))
    FileError('regions.svg: cannot be written (No space left on device); free some space, or choose another place')
    """
    why = {errno.ENOENT: f"there is no folder {Path(path).parent}", errno.EISDIR: "it is a folder"}.get(
        error.errno or 0, error.strerror or str(error)
    )
    return FileError(f"{os.fspath(path)}: cannot be written ({why}); {_ADVICE.get(error.errno or 0, 'choose another place')}")
