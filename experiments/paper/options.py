"""What all commands of the experiment share: how they read numbers, write them, and end."""

import argparse
import signal
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from types import FrameType

import tessella

_SEEDS, _DIGITS = 10_000, 30  # in one range, and to write it


def positive(text: str) -> int:
    """A whole number from 1 on."""
    return _whole(text, 1)


def natural(text: str) -> int:
    """A whole number from 0 on."""
    return _whole(text, 0)


def rate(text: str) -> float:
    """A positive, finite number."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        msg = f"{text!r} is no positive number"
        raise argparse.ArgumentTypeError(msg)
    return number


def share(text: str) -> float:
    """A number between 0 and 1."""
    number = rate(text)
    if number >= 1.0:
        msg = f"{text!r} does not lie between 0 and 1"
        raise argparse.ArgumentTypeError(msg)
    return number


def seeds_of(texts: Iterable[str]) -> set[int]:
    """Seeds written one by one, or as ranges.

    Examples
    --------
    >>> sorted(seeds_of(["0-2", "7"]))
    [0, 1, 2, 7]
    """
    found = set[int]()
    for text in texts:
        first, _, last = text.partition("-")
        given = first.isdecimal() and (last.isdecimal() or not _) and len(text) <= _DIGITS
        if not given or not 0 <= int(last or first) - int(first) < _SEEDS:
            msg = f"--seeds {text[:_DIGITS]}: expected whole numbers such as 3, or ranges such as 0-2 of at most {_SEEDS:,} seeds"
            raise tessella.OptionError(msg)
        found |= set(range(int(first), int(last or first) + 1))
    return found


@contextmanager
def ending_gently() -> Generator[None, None, None]:
    """Ctrl-C and a request to terminate end a run in the same way, but for those that are ignored; what comes after the first changes nothing."""

    def end(number: int, frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        signal.default_int_handler(number, frame)

    heard = [each for each in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, end) for each in heard}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def amount(number: int, noun: str) -> str:
    """A number of things.

    Examples
    --------
    >>> amount(1, "network"), amount(20, "network")
    ('1 network', '20 networks')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _whole(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        msg = f"{text!r} is no whole number of at least {least}"
        raise argparse.ArgumentTypeError(msg)
    return number
