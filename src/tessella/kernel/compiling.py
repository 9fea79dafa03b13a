"""How compiled code is compiled: once per machine, kept on disk, and without holding other threads up."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit


def compiler(**more: bool) -> Callable[[Any], Any]:
    """A decorator that compiles a function with Numba.

    Sums may be reordered and products fused, but numbers stay numbers: infinities and what is not a number mean what they mean.

    Parameters
    ----------
    more
        Further options of `numba.njit`.  What is on disk does not notice when they change: change the decorated file, too.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz", "arcp"}, **more}

    def decorate(function: Any) -> Any:
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:  # neither the package's folder nor the home can be written
            return njit(**options)(function)

    return decorate


def is_compiled(function: Any) -> bool:
    """Whether a compiled function is on disk already, so that its first call starts at once."""
    place, code = function.stats.cache_path, function.py_func.__code__
    return bool(place) and any(Path(place).glob(f"{Path(code.co_filename).stem}.{code.co_name}-{code.co_firstlineno}.*.nbi"))
