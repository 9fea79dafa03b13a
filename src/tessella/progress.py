"""The bar of ``progress=True``: on a terminal, or in a notebook; nothing in a pipe.

A verb says with one decorator how its news read.  Inside the verb ``progress`` is then a function like any other that a caller may give.
"""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from html import escape
from importlib import import_module
from time import perf_counter
from typing import Any, ParamSpec, Protocol, TypeVar

_PAUSE = 0.1  # seconds between two pictures
_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
Line = Callable[..., tuple[str, float | None]]  # of what is told: words, and how much is done, from 0 to 1, if that is known


class Screen(Protocol):
    """Where a bar is drawn."""

    def draw(self, text: str, share: float | None) -> None:
        """Show how it stands."""
        ...

    def close(self) -> None:
        """Leave nothing behind."""
        ...


class Terminal:
    """A bar on stderr; gone when it is closed."""

    def __init__(self) -> None:
        """Draw an empty one."""
        from rich.console import Console  # noqa: PLC0415  only where it is asked for
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        columns = BarColumn(bar_width=30), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=None)
        self._bar.start()

    def draw(self, text: str, share: float | None) -> None:
        """Show how it stands."""
        self._bar.update(self._task, description=text, completed=share or 0.0, total=None if share is None else 1.0)

    def close(self) -> None:
        """Leave nothing behind."""
        self._bar.stop()


class Notebook:
    """A bar below the cell; needs no widgets."""

    def __init__(self) -> None:
        """Draw an empty one."""
        self._display = import_module("IPython.display")
        self._handle = self._display.display(self._display.HTML(""), display_id=True)

    def draw(self, text: str, share: float | None) -> None:
        """Show how it stands."""
        value = "" if share is None else f' value="{min(max(share, 0.0), 1.0):.4f}"'
        self._handle.update(self._display.HTML(f"<div><progress{value}></progress> {escape(text)}</div>"))

    def close(self) -> None:
        """Leave nothing behind."""
        self._handle.update(self._display.HTML(""))


def screen() -> Screen | None:
    """Where somebody looks; None if nobody does."""
    if "ipykernel" in sys.modules:
        return Notebook()
    return Terminal() if sys.stderr is not None and sys.stderr.isatty() else None


@contextmanager
def _drawn(line: Line) -> Generator[Callable[..., None] | None]:
    """A function that draws what it is told."""
    chosen = screen()
    if chosen is None:
        yield None
        return
    last = -_PAUSE

    def tell(*news: Any) -> None:
        nonlocal last
        if perf_counter() - last >= _PAUSE:
            last = perf_counter()
            chosen.draw(*line(*news))

    try:
        yield tell
    finally:
        chosen.close()


def with_bar(line: Line) -> Callable[[Callable[_Given, _Found]], Callable[_Given, _Found]]:
    """Let a verb take ``progress=True``.

    Parameters
    ----------
    line
        Takes what the verb tells, and gives words and the part that is done, from 0 to 1 (None if nobody knows).

    Examples
    --------
    >>> @with_bar(lambda done: (f"{done} of 3", done / 3))
    ... def work(*, progress=None):
    ...     return [progress(done) for done in range(3)] if progress else "nobody looks"
    >>> work(progress=True)  # in a pipe
    'nobody looks'
    >>> work(progress=lambda done: done)
    [0, 1, 2]
    """

    def decorated(verb: Callable[_Given, _Found]) -> Callable[_Given, _Found]:
        @wraps(verb)
        def called(*args: _Given.args, **options: _Given.kwargs) -> _Found:
            if options.get("progress") is not True:
                return verb(*args, **options)
            with _drawn(line) as tell:
                options["progress"] = tell
                return verb(*args, **options)

        return called

    return decorated


def units(done: int, total: int) -> tuple[str, float | None]:
    """How a search for stable units reads."""
    return f"{done:,} of {total:,} units", done / max(total, 1)


def found_so_far(regions: int) -> tuple[str, float | None]:
    """How a list of regions reads."""
    return f"{regions:,} regions", None
