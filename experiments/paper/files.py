"""Files that are whole or not there."""

from pathlib import Path

from tessella.files import unwritable, writing


def write(path: Path, content: bytes) -> None:
    """Write a file, or say in one line why that is not possible; what was there before stays until all is written.

    Parameters
    ----------
    path
        The file; its folder is made.
    content
        All of it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error
    with writing(path) as file:
        file.write(content)
