"""The command line as tests use it: in this process, in a process of its own, in a terminal. Every way ends in an exit code, stdout and stderr."""

import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import pytest

import tessella
from tessella.cli import main

PACKAGE = Path(tessella.__file__).parents[1]
PATIENCE = 300.0  # seconds: a first run compiles


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Running:
    """A command in a process of its own. With `columns` its stderr is a terminal of that width."""

    def __init__(self, *arguments, module="tessella", columns=None, stdout=subprocess.PIPE, cwd=None, **environment):
        command = [sys.executable, *(["-m", module] if module else []), *map(str, arguments)]
        paths = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")]))
        surroundings = {**os.environ, "PYTHONPATH": paths, **environment}
        shown, screen = pty.openpty() if columns else (None, subprocess.PIPE)
        if columns:
            surroundings |= {"COLUMNS": str(columns), "LINES": "24", "TERM": "xterm"}
        self._process = subprocess.Popen(command, stdout=stdout, stderr=screen, env=surroundings, cwd=cwd)
        if columns:
            os.close(screen)
        self._shown = shown
        self._out, self._err = bytearray(), bytearray()
        self._readers = [threading.Thread(target=_read, args=(shown or self._process.stderr.fileno(), self._err))]
        if self._process.stdout:
            self._readers.append(threading.Thread(target=_read, args=(self._process.stdout.fileno(), self._out)))
        for reader in self._readers:
            reader.start()

    @property
    def pid(self):
        return self._process.pid

    @property
    def is_running(self):
        return self._process.poll() is None

    def wait_for(self, words, seconds=PATIENCE):
        """Wait until it says these words on stderr."""
        self.wait_until(lambda: words in _text(self._err), seconds)

    def wait_until(self, happened, seconds=PATIENCE):
        """Wait until something happens."""
        deadline = time.monotonic() + seconds
        while not happened():
            still = self.is_running and time.monotonic() < deadline
            assert still or happened(), f"it has not happened; this was said: {_text(self._err)}"
            time.sleep(0.02)

    def press_ctrl_c(self):
        self._process.send_signal(signal.SIGINT)

    def kill(self):
        self._process.kill()

    def ended(self, seconds=PATIENCE) -> Ended:
        """Wait for its end."""
        code = self._process.wait(seconds)
        for reader in self._readers:
            reader.join(seconds)
        return Ended(code, _text(self._out), _text(self._err))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.ended()
        for file in (self._process.stdout, self._process.stderr):
            if file:
                file.close()
        if self._shown:
            os.close(self._shown)


class CommandLine:
    """Runs ``tessella ...``."""

    def __init__(self, monkeypatch, capsys):
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments) -> Ended:
        """In this process: quick, and tests may replace what it calls."""
        self._monkeypatch.setattr(sys, "argv", ["tessella", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = self._capsys.readouterr()
        return Ended(stopped.value.code or 0, printed.out, printed.err)

    def apart(self, *arguments, seconds=PATIENCE, **surroundings) -> Ended:
        """In a process of its own; `surroundings` are those of `Running`."""
        with Running(*arguments, **surroundings) as running:
            return running.ended(seconds)

    def begin(self, *arguments, **surroundings) -> Running:
        """In a process of its own that the test watches and interrupts."""
        return Running(*arguments, **surroundings)


def plain(shown):
    """The words that a terminal showed: without colours and moves of the cursor, and wherever lines were broken."""
    return " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", " ", shown).split())


def _read(file, kept):
    while True:
        try:
            more = os.read(file, 1 << 16)
        except OSError:  # the other end of the terminal is closed
            return
        if not more:
            return
        kept += more


def _text(kept):
    return bytes(kept).decode(errors="replace")
