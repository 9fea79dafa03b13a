"""The command line: what a person types.

Little is imported here: the commands load compilers and solvers, which takes a second, and Ctrl-C is to end that quietly, too.
"""

import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from tessella.errors import TessellaError
from tessella.kernel.meter import telling

_STOPPED = 130  # what shells say of a command that Ctrl-C ended
_UNWRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.EPIPE})


def main() -> None:
    """Run the command line; errors, and Ctrl-C, end in one line on stderr."""
    debug = "--debug" in sys.argv[1:]
    with _hearing() as pressed:
        try:
            code = _run(pressed)
        except KeyboardInterrupt:
            code = _STOPPED
        except Exception as error:
            if debug:
                raise
            known = isinstance(error, TessellaError | OSError)
            code = _STOPPED if pressed and not known else _tell(error)  # what is left half loaded may well raise something else
    if code == _STOPPED:
        exec("")  # noqa: S102  else Python remembers a Ctrl-C within code made by a library, and its exit code is another
        _say("stopped by Ctrl-C")
    sys.exit(code)


@contextmanager
def _hearing() -> Generator[list[int]]:
    """Remember that Ctrl-C was pressed: libraries that are being loaded turn it into errors of their own."""
    pressed, before = list[int](), signal.getsignal(signal.SIGINT)
    hears = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()

    def hear(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        signal.default_int_handler(number, frame)

    if hears:
        signal.signal(signal.SIGINT, hear)
    try:
        yield pressed
    finally:
        if hears:
            signal.signal(signal.SIGINT, before)


def _run(pressed: list[int]) -> int | str | None:
    from tessella.cli.pictures import app  # noqa: PLC0415  loads the compiler

    if pressed:  # and somebody who was being loaded said nothing
        return _STOPPED
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a file's name may not exist in the terminal's alphabet
    try:
        with telling(_note):
            app()  # ends in SystemExit; its own errors (a wrong option, say) in exit code 2
    except SystemExit as ended:
        sys.stdout.flush()  # here, where an error is told in one line
        return ended.code
    return 0


def _note(text: str) -> None:
    """Say what takes long, unless nothing is to be said."""
    if "--quiet" not in sys.argv and "-q" not in sys.argv:
        sys.stderr.write(f"{text[0].upper()}{text[1:]} ...\n")


def _tell(error: Exception) -> int:
    """Say in one line what went wrong; gives the exit code."""
    if isinstance(error, TessellaError):
        _say(f"error: {error}")
        return 2
    if isinstance(error, OSError) and error.errno in _UNWRITTEN:
        _drop_output()
        if error.errno != errno.EPIPE:  # else the reader has seen enough
            _say(f"error: the output cannot be written: {error.strerror or error}")
        return 1
    _say(f"internal error: {type(error).__name__}: {error} (--debug shows where; please report it)")
    return 1


def _say(text: str) -> None:
    sys.stderr.write(f"tessella: {text}\n")


def _drop_output() -> None:
    """Let what standard output could not take go nowhere, so that Python does not try again at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
