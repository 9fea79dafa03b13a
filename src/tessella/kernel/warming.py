"""Compiled code made ready before it is needed: in several processes at once, and counted apart from the work itself.

`load` is called with the functions that a run will call.  What is not on disk yet is compiled by helper processes, as many as there are cores, each function in one of them; then all is
loaded here.  Compiling waits for nothing and is waited for in pieces, so Ctrl-C ends it at once.
"""

import os
import signal
import subprocess  # noqa: S404  this very program
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages
from time import perf_counter

from tessella.kernel.functions import Apart, Function, Linking, registered
from tessella.kernel.meter import making_ready, tell

_TICK = 0.05  # seconds between looks at the helpers

Progress = Callable[[int, int], None]


def ready(functions: Iterable[Apart]) -> bool:
    """Whether all of this is compiled already, so that nobody waits for more than loading it."""
    return not missing(functions)


def missing(functions: Iterable[Apart]) -> tuple[Function, ...]:
    """What would have to be compiled, of these functions and those they jump to; innermost first."""
    needed = dict.fromkeys(one for function in functions for one in function.declared.needed)
    return tuple(one for one in needed if not one.is_on_disk)


def everything(*packages: str) -> tuple[Apart, ...]:
    """All compiled functions of the package that anybody may call.

    Parameters
    ----------
    packages
        Where there are some: all their modules are imported.
    """
    for package in packages:
        module = import_module(package)
        for found in walk_packages(module.__path__, f"{package}."):
            import_module(found.name)
    return tuple(registered)


def folder(functions: Iterable[Apart]) -> str:
    """Where functions are kept; empty if they are not."""
    places = {function.declared.folder for function in functions}
    return "" if not places or "" in places else os.path.commonpath(places)


def load(functions: Iterable[Apart], progress: Progress | None = None) -> float:
    """Load functions and all that they jump to, compiled if need be; the seconds that this took.

    Parameters
    ----------
    functions
        What will be called.
    progress
        Called with how many of how many functions are compiled.
    """
    functions = tuple(functions)
    if all(function.declared.is_loaded for function in functions):
        return 0.0
    begun = perf_counter()
    with making_ready():
        wanted = missing(functions)
        if wanted:
            tell(f"compiling {len(wanted)} function{'s' * (len(wanted) > 1)} for the first use on this machine (once)")
        if len(wanted) > 1 and (os.cpu_count() or 1) > 1:
            _compile_at_once(wanted, progress or (lambda _done, _all: None))
        for function in functions:
            function.declared.load()
    return perf_counter() - begun


def _compile_at_once(wanted: tuple[Function, ...], progress: Progress) -> None:
    """Compile in helper processes; what one of them fails at is left to this process."""
    waiting, done, helpers = sorted(wanted, key=_weight), list[str](), list[subprocess.Popen[str]]()
    threads = [
        threading.Thread(target=_attend, args=(waiting, done, helpers), daemon=True)
        for _ in range(min(os.cpu_count() or 1, len(wanted)))
    ]
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            progress(len(done), len(wanted))
            for thread in threads:
                thread.join(_TICK)
    finally:
        waiting.clear()
        for helper in helpers:
            helper.kill()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        for helper in helpers:
            helper.communicate()  # closes its pipes
    progress(len(done), len(wanted))


def _attend(waiting: list[Function], done: list[str], helpers: list["subprocess.Popen[str]"]) -> None:
    """Give one helper process a function after the other, large ones first, until none waits."""
    path = os.pathsep.join(place for place in sys.path if place)
    try:
        helper = subprocess.Popen(
            [sys.executable, "-c", "from tessella.kernel.warming import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
    except OSError:  # there is no Python to start: this process compiles
        return
    helpers.append(helper)
    if helper.stdin is None or helper.stdout is None:
        return
    with suppress(IndexError, OSError, ValueError):
        while True:
            function = waiting.pop()
            helper.stdin.write(f"{function.name}\n")
            helper.stdin.flush()
            if not helper.stdout.readline():
                return
            done.append(function.name)


def serve() -> None:
    """What a helper process does: compile the functions that it reads the names of, for others to load from disk."""
    Linking.for_others = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever waits for it ends it
    for line in sys.stdin:
        module, name = line.strip().split(":")
        with suppress(Exception):  # whoever waits compiles it and sees the error
            getattr(import_module(module), name).declared.compile()
        sys.stdout.write(line)
        sys.stdout.flush()


def _weight(function: Function) -> int:
    """About how long it takes to compile."""
    return sum(len(part.python.__code__.co_code) for part in function.merged)
