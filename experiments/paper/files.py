"""Files that are whole or not there."""

from pathlib import Path

import tessella


def write(path: Path, content: bytes) -> None:
    """Write a file, or say in one line why that is not possible; what was there before stays until all is written.

    Parameters
    ----------
    path
        The file; its folder is made.
    content
        All of it.
    """
    partial = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            partial.write_bytes(content)
            partial.replace(path)
        except OSError:
            partial.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> tessella.FileError:
    """What to say of a file that cannot be written."""
    return tessella.FileError(
        f"{path}: cannot be written ({error.strerror}); check its folder and the space left, or choose another place"
    )
