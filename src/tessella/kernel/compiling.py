"""How compiled code is compiled: once per machine, kept on disk, and without holding other threads up."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import njit


def compiler(*sources: str, **more: bool | str) -> Callable[[Any], Any]:
    """A decorator that compiles a function with Numba.

    Sums may be reordered and products fused, but numbers stay numbers: infinities and what is not a number mean what they mean.

    Parameters
    ----------
    sources
        Files of compiled functions that the decorated ones call.  What is on disk is thrown away when one of them changes; by itself, Numba only
        looks at the file of the decorated function.
    more
        Further options of `numba.njit`.  What is on disk does not notice when they change: change the decorated file, too.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz", "arcp"}, **more}

    stamps = [sha256(Path(source).read_bytes()).hexdigest() for source in sources]

    def decorate(function: Any) -> Any:
        try:
            compiled = njit(cache=True, **options)(function)
        except RuntimeError:  # neither the package's folder nor the home can be written
            return njit(**options)(function)
        if sources:
            file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)  # there is no public way
            if file is None:
                return njit(**options)(function)
            file._source_stamp = (file._source_stamp, *stamps)  # noqa: SLF001
        return compiled

    return decorate


def is_compiled(function: Any) -> bool:
    """Whether a compiled function is on disk already, so that its first call starts at once."""
    place, code = function.stats.cache_path, function.py_func.__code__
    return bool(place) and any(Path(place).glob(f"{Path(code.co_filename).stem}.{code.co_name}-{code.co_firstlineno}.*.nbi"))
