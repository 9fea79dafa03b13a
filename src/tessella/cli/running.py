"""Runs a command to its end, whatever that is: an answer, an error in one line, Ctrl-C, or nobody who reads on."""

import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TextIO

from tessella.errors import TessellaError
from tessella.kernel.meter import telling

_FAILED, _WRONG, _STOPPED = 1, 2, 130  # the last is what shells say of a command that Ctrl-C ended
_UNWRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})


def run() -> int:
    """Do what was typed; gives the exit code.

    The exit code is 0 for a whole answer (a time limit is part of the question), 1 if it cannot be written, 2 if the question makes no sense, and 130 if Ctrl-C came
    before the end, whether something was known by then or not: what follows ``&&`` is for whole answers.
    """
    debug = "--debug" in sys.argv[1:]
    with _hearing() as pressed:
        try:
            _open_streams()
            code = _run(pressed)
        except KeyboardInterrupt:
            code = None
        except BrokenPipeError:  # who reads has seen enough, as in `| head -1`; whether it left in time to be noticed is chance
            _drop_output(sys.stdout, sys.stderr)
            code = 0
        except Exception as error:
            if debug:
                raise
            known = isinstance(error, TessellaError | OSError)
            code = None if pressed and not known else _tell(error)  # what is left half loaded may well raise something else
    if code is None:
        exec("")  # noqa: S102  else Python remembers a Ctrl-C within code made by a library, and its exit code is another
        _say("stopped by Ctrl-C")
    return _STOPPED if code is None or (pressed and not code) else code


def _open_streams() -> None:
    """Where a stream is closed, as by ``>&-``, the next file that is opened would take its place, and be written to by mistake."""
    closed = sys.stdout is None  # pyright: ignore[reportUnnecessaryComparison]
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123, PLW1514  as long as the process lives
    if closed:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123, PLW1514  the same
        raise OSError(errno.EBADF, "standard output is closed")


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


def _run(pressed: list[int]) -> int | None:
    """The exit code; None if Ctrl-C ended all."""
    from tessella.cli.everything import app  # noqa: PLC0415  loads the compiler

    if pressed:  # and somebody who was being loaded said nothing
        return None
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a file's name may not exist in the terminal's alphabet
    try:
        with telling(_note):
            app(prog_name="tessella")  # ends in SystemExit; its own errors (a wrong option, say) in exit code 2
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):
            raise ended.__context__ from None
        sys.stdout.flush()  # here, where an error is told in one line
        code = ended.code if isinstance(ended.code, int) else 0
        told = ended.__context__ is None or not isinstance(ended.__context__.__cause__, KeyboardInterrupt)
        return code if told else None
    return 0


def _note(text: str) -> None:
    """Say what takes long, unless nothing is to be said."""
    if "--quiet" not in sys.argv and "-q" not in sys.argv:
        sys.stderr.write(f"{text[0].upper()}{text[1:]} ...\n")


def _tell(error: Exception) -> int:
    """Say in one line what went wrong; gives the exit code."""
    if isinstance(error, TessellaError):
        _say(f"error: {error}")
        return _FAILED if isinstance(error.__cause__, OSError) and error.__cause__.errno in _UNWRITTEN else _WRONG
    if isinstance(error, OSError) and error.errno in _UNWRITTEN:
        _drop_output(sys.stdout)
        _say(f"error: the output cannot be written: {error.strerror or error}")
        return _FAILED
    _say(f"internal error: {type(error).__name__}: {error} (--debug shows where; please report it)")
    return _FAILED


def _say(text: str) -> None:
    with suppress(OSError):  # nobody listens
        sys.stderr.write(f"tessella: {text}\n")
        sys.stderr.flush()


def _drop_output(*streams: TextIO) -> None:
    """Let what a stream could not take go nowhere, so that Python does not try again at its end."""
    for stream in streams:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            stream.flush()
