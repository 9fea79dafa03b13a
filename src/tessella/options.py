"""What callers may ask for: one check per option, the same for everybody who takes it.

Each check is told who takes the option ("a count", "an estimate"), and raises an `OptionError` of one line.  What comes from callers may be
anything, so values are objects here.  A seed is read by `tessella.seeds`, a stability is checked by `tessella.stability.check_stability`.
"""

import math
import os
from collections.abc import Callable
from concurrent.futures import Executor
from enum import StrEnum
from numbers import Integral, Real
from typing import ParamSpec, TypeVar, cast

from tessella.errors import OptionError

Choice = TypeVar("Choice", bound=StrEnum)
Told = ParamSpec("Told")


def check_seconds(
    seconds: object, who: str, *, otherwise: str = "None for no limit", endless: bool = True, name: str = "seconds"
) -> None:
    """Raise unless this is a positive number, or None.

    Parameters
    ----------
    seconds
        What was given.
    who
        Takes it: ``"a count"``.
    otherwise
        What None means; empty if a number must be given.
    endless
        Whether infinity is allowed.
    name
        That of the option.
    """
    if seconds is None and otherwise:
        return
    if not _is_number(seconds) or not cast("float", seconds) > 0.0 or not (endless or cast("float", seconds) < math.inf):
        msg = f"{name} is {seconds!r:.40}; {who} takes a positive number{f', or {otherwise}' if otherwise else ', such as 30'}"
        raise OptionError(msg)


def check_whole(  # noqa: PLR0913  which numbers, and who takes them
    value: object, name: str, who: str, *, least: int = 1, otherwise: str = "", of: str = ""
) -> None:
    """Raise unless this is a whole number from `least` on, or None.

    Parameters
    ----------
    value
        What was given.
    name
        That of the option.
    who
        Takes it.
    least
        The smallest number that is allowed.
    otherwise
        What None means; empty if a number must be given.
    of
        What is counted: ``"regions"``.
    """
    if value is None and otherwise:
        return
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        kind = f"a whole number of {of}, at least {least}" if of else f"a whole number of at least {least}"
        msg = f"{name} is {value!r:.40}; {who} takes {kind}{f', or {otherwise}' if otherwise else ''}"
        raise OptionError(msg)


def check_workers(workers: object, who: str, *, otherwise: str = "None for all cores") -> None:
    """Raise unless this is how many may work at the same time, or None."""
    check_whole(workers, "workers", who, otherwise=otherwise)


def check_memory(memory: object, who: str) -> None:
    """Raise unless this is a number of bytes, or None."""
    check_whole(memory, "memory", who, otherwise="None for a quarter of the machine's")


def check_probability(value: object, name: str, who: str, *, such_as: float = 0.95) -> None:
    """Raise unless this lies between 0 and 1, and is neither."""
    if not _is_number(value) or not 0.0 < cast("float", value) < 1.0:
        msg = f"{name} is {value!r:.40}; {who} takes a number between 0 and 1, such as {such_as:g}"
        raise OptionError(msg)


def check_confidence(confidence: object, who: str) -> None:
    """Raise unless this is a confidence that can be had."""
    check_probability(confidence, "confidence", who)


def check_executor(executor: object, who: str) -> Executor | None:
    """The executor, or None; raises if it is neither (what `tessella.executors.hiring` knows is one by now)."""
    if executor is None:
        return None
    if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
        found = f"the class {executor.__name__}" if isinstance(executor, type) else f"a {type(executor).__name__}"
        others = "a Dask client, or its scheduler's address such as tcp://host:8786"
        msg = f"executor is {found}; {who} takes a concurrent.futures.Executor, or None to work in this process, or {others}"
        raise OptionError(msg)
    return cast("Executor", executor)


def check_progress(progress: Callable[Told, None] | bool | None, who: str, told: str) -> Callable[Told, None] | None:  # noqa: FBT001
    """Raise unless this can be called with what is told, or is True, False or None; return what is to be called, if anything.

    ``True`` means a bar: `tessella.progress.with_bar` puts a function in its place where somebody looks.
    """
    if progress is None or isinstance(progress, bool):
        return None
    if not callable(progress):  # pyright: ignore[reportUnnecessaryComparison]  callers may be untyped
        msg = f"progress is a {type(progress).__name__}; {who} takes a function of {told}, True for a bar, or None"
        raise OptionError(msg)
    return progress


def check_checkpoint(path: object) -> None:
    """Raise unless this is the path of a file; whether it can be written is another question."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        msg = f"checkpoint is {path!r:.60}; it takes the path of a file, such as 'run.db'"
        raise OptionError(msg)


def chosen(kind: type[Choice], value: object, name: str, who: str) -> Choice:
    """The one of some choices that was named; raises if there is none of that name.

    Parameters
    ----------
    kind
        The choices.
    value, name, who
        As for `check_whole`.
    """
    try:
        return kind(value)
    except (ValueError, TypeError) as error:
        msg = f"{name} is {value!r:.40}; {who} takes one of {', '.join(kind)}"
        raise OptionError(msg) from error


def _is_number(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real)
