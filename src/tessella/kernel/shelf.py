"""Where compiled code is kept on disk, and what happens if it cannot be."""

import logging
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from numba import config
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.registry import cpu_target

_log = logging.getLogger("tessella")
_told = set[str]()


class Files(IndexDataCacheFile):
    """The files of one function: code with its stamp and its key, and an index that says where the code of each key is.

    Numba numbers the files of code, and writes the index first.  Of two processes that save at the same time, one could find the code of the other,
    or code from before a change, under its own key: so the code itself says what it is, and what is not asked for is not loaded.
    """

    def save(self, key: Any, data: Any) -> None:
        """Save code with what it is."""
        super().save(key, (self._source_stamp, key, data))

    def load(self, key: Any) -> Any:
        """Load code; None if there is none with this stamp and key."""
        match super().load(key):
            case (stamp, found, data) if (stamp, found) == (self._source_stamp, key):
                return data
            case _:
                return None


class Shelf(FunctionCache):
    """The compiled code of one function on disk; nothing that the disk does is an error of who wants to call the function.

    Parameters
    ----------
    python
        The function.
    stamp
        What its compiled code depends on: code with another stamp is not used.
    """

    def __init__(self, python: Any, stamp: str) -> None:
        """Find the folder; RuntimeError if none can be written."""
        super().__init__(python)
        implementation: Any = self._impl
        # the stamp instead of the time of the source, which knows nothing of functions called
        self._cache_file = Files(self.cache_path, implementation.filename_base, stamp)

    def holds(self, signature: Any) -> bool:
        """Whether the function is here, for this signature and machine."""
        try:
            target, file = cast("Any", cpu_target.target_context), cast("Any", self._cache_file)
            return self._index_key(signature, target.codegen()) in file._load_index()  # noqa: SLF001
        except Exception:  # noqa: BLE001  a damaged file says no
            return False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is on disk; None if nothing is, or it cannot be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # noqa: BLE001  a damaged file is compiled again
            tell_once(f"compiled code in {self.cache_path} cannot be read ({error}); it is compiled again")
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep it for next time, if the disk takes it."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            tell_once(
                f"compiled code cannot be kept in {self.cache_path} ({error.strerror or error}); it will be compiled again next time"
            )


def shelf_for(python: Any, stamp: str) -> Any:
    """The place of a function's compiled code: where Numba keeps it, else a folder of this user's among the temporary files, else nowhere."""
    try:
        return Shelf(python, stamp)
    except RuntimeError:
        folder = _temporary()
        tell_once(
            f"neither the package's folder nor the home folder can be written; compiled code is kept in {folder or 'memory only'}"
        )
    if folder:
        config.CACHE_DIR = folder  # pyright: ignore[reportAttributeAccessIssue]
        try:
            return Shelf(python, stamp)
        except RuntimeError:
            pass
    return Nowhere()


class Nowhere(NullCache):
    """Keeps nothing."""

    def holds(self, _signature: Any) -> bool:
        """Never."""
        return False


def _temporary() -> str:
    """A folder that this user alone can write, since what lies there is executed; empty if there is none."""
    folder = Path(tempfile.gettempdir()) / f"tessella-{os.getuid() if hasattr(os, 'getuid') else os.getlogin()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.stat()
    except OSError:
        return ""
    if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o022):
        return ""
    return str(folder)


def tell_once(text: str) -> None:
    """Warn in the log, once in a process."""
    if text not in _told:
        _told.add(text)
        _log.warning("%s", text)
