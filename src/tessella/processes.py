"""Processes of this machine that work for this one, and are replaced when they are lost.

They are not those of `multiprocessing`, whose ways of starting need a guard in the caller's script or are unsafe beside threads; and a pool of these is lost as a whole
when one of them is.
"""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Generator
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from threading import Lock
from typing import Any, BinaryIO, ParamSpec, TypeVar, cast

Given = ParamSpec("Given")
Result = TypeVar("Result")

_TRIES = 3  # processes that one task may end before it is given up
_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {module} import serve; serve()"


class PipedProcess:
    """A process that is talked to in values, and can be killed at any moment.

    Parameters
    ----------
    module
        Its function ``serve`` is called there.
    """

    def __init__(self, module: str) -> None:
        """It begins to load what it needs."""
        self._errors = cast("BinaryIO", TemporaryFile())  # noqa: SIM115  closed when it ends
        command = [sys.executable, "-c", _START.format(module=module), json.dumps(sys.path)]
        pipe = subprocess.PIPE  # Ctrl-C is for us, not for it: a session of its own
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._errors, start_new_session=True)  # noqa: S603

    def say(self, value: object) -> None:
        """Send a value; raises an OSError if nobody listens any more."""
        pipe = cast("BinaryIO", self.process.stdin)
        pipe.write(pickle.dumps(value))
        pipe.flush()

    def hear(self) -> Any:
        """Wait for the next value; raises an EOFError if there will be none."""
        try:
            return pickle.load(cast("BinaryIO", self.process.stdout))  # noqa: S301  from a process that we started
        except (OSError, ValueError, pickle.UnpicklingError) as error:  # it ended in the middle of a word
            raise EOFError from error

    def last_words(self) -> str:
        """The last line of what it complained about, once it has ended."""
        code = self.process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines() or [f"exit code {code}"]
        return f"{lines[-1]:.200}"

    def kill(self) -> None:
        """Whoever hears it hears its end."""
        self.process.kill()

    def end(self) -> None:
        """What it still does is given up."""
        self.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self._errors):
            with suppress(OSError, ValueError):
                cast("BinaryIO", pipe).close()


@contextmanager
def talking() -> Generator[tuple[Callable[[], Any], Callable[[object], None]]]:
    """The other side: how to hear and to say values, until nobody talks or listens any more."""
    asked = sys.stdin.buffer
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not come between values

    def say(value: object) -> None:
        out.write(pickle.dumps(value))
        out.flush()

    with suppress(EOFError, BrokenPipeError):
        yield lambda: pickle.load(asked), say  # noqa: S301  from who started us


def serve() -> None:
    """Do one task after the other; the answer says whether it failed, and the result or the error."""
    with talking() as (hear, say):
        while True:
            task = hear()
            try:
                work, arguments, named = pickle.loads(task)  # noqa: S301  from who started us
                answer = (False, work(*arguments, **named))
                pickle.dumps(answer)
            except Exception as error:  # noqa: BLE001  it is raised on the other side
                answer = (True, _portable(error))
            say(answer)


def _portable(error: Exception) -> Exception:
    """The error if it can be sent, or one that says the same."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301  just made
    except Exception:  # noqa: BLE001  anything may go wrong in foreign classes
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


class Processes(ThreadPoolExecutor):
    """An executor of so many processes: one that is lost is replaced, and its task done again.  A task that ends three of them breaks.

    Each thread waits for one process.  When the executor is shut down, what is still under way is given up.

    Examples
    --------
    >>> with Processes(2) as processes:
    ...     processes.submit(divmod, 17, 5).result()
    (3, 2)
    """

    def __init__(self, count: int) -> None:
        """None is started before there is something to do."""
        super().__init__(count)
        self._guard, self._idle, self._all, self._over = Lock(), list[PipedProcess](), list[PipedProcess](), False

    def submit(self, work: Callable[Given, Result], /, *arguments: Given.args, **named: Given.kwargs) -> Future[Result]:
        """Call a module-level function in one of the processes."""
        return super().submit(self._do, pickle.dumps((work, arguments, named)))

    def _do(self, task: bytes) -> Any:
        said = ""
        for _ in range(_TRIES):
            process = self._taken()
            try:
                process.say(task)
                failed, result = process.hear()
            except (OSError, EOFError):
                if not self._over:
                    said = process.last_words()
                self._let_go(process)
                continue
            with self._guard:
                self._idle.append(process)
            if failed:
                raise result
            return result
        msg = f"{_TRIES} processes ended at the same piece of work, the last with {said!r}"
        raise BrokenExecutor(msg)

    def _taken(self) -> PipedProcess:
        with self._guard:
            if self._over:
                msg = "it was shut down"
                raise BrokenExecutor(msg)
            if self._idle:
                return self._idle.pop()
            process = PipedProcess(__name__)
            self._all.append(process)
            return process

    def _let_go(self, process: PipedProcess) -> None:
        with self._guard:
            self._all.remove(process)
        process.end()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:  # noqa: FBT001, FBT002  as the base class has it
        """End all processes at once."""
        with self._guard:
            self._over = True
            for process in self._all:
                process.kill()
        super().shutdown(wait, cancel_futures=cancel_futures)
        for process in self._idle:
            process.end()
