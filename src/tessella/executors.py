"""What may be given as an executor: any of `concurrent.futures`, a Dask client, or the address of a Dask scheduler."""

import sys
from collections.abc import Callable, Generator
from concurrent.futures import BrokenExecutor, Executor, Future, InvalidStateError
from contextlib import contextmanager, suppress
from functools import wraps
from logging import Filter, getLogger
from threading import Lock
from time import monotonic
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from tessella._version import __version__
from tessella.errors import MissingPackage, OptionError, SolverError

Given = ParamSpec("Given")
Result = TypeVar("Result")

_CONNECT = 10  # seconds until nobody seems to listen at an address
_FRESH = 0.5  # seconds for which it is not asked again how large a cluster is, or what it works on
_LOGGERS = (
    "distributed.client",
    "distributed.comm.core",
    "distributed.comm.tcp",
    "distributed.core",
    "distributed.batched",
    "tornado.application",
)
_ADDRESSES = ("tcp://", "tls://", "ucx://", "ws://", "wss://", "inproc://")


class DaskClient(Protocol):
    """A `distributed.Client`."""

    def get_executor(self, **kwargs: Any) -> Any:
        """Its executor."""
        ...


ExecutorLike = Executor | DaskClient | str
"""An executor of `concurrent.futures`, a Dask client, or the address of a Dask scheduler."""


def is_address(value: object) -> bool:
    """Whether this looks like the address of a Dask scheduler.

    Examples
    --------
    >>> is_address("tcp://scheduler:8786"), is_address("scheduler")
    (True, False)
    """
    return isinstance(value, str) and value.startswith(_ADDRESSES) and len(value) > len(value.split("://")[0]) + 3


def is_client(value: object) -> bool:
    """Whether this is a Dask client; without looking for Dask, which somebody who has one has loaded."""
    dask = sys.modules.get("distributed")
    return dask is not None and isinstance(value, dask.Client)


@contextmanager
def hired(given: Any) -> Generator[Any]:
    """What can be given tasks: the executor of a Dask client or of the scheduler at an address, and else what was given.

    Parameters
    ----------
    given
        What a caller calls an executor; what is none is left to checks.
    """
    dask = sys.modules.get("distributed")
    if is_address(given):
        with _connected(given) as client:
            _check_versions(client)
            yield Cluster(client)
    elif is_client(given):
        _check_open(given)
        _check_versions(given)
        yield Cluster(given)
    elif dask is not None and isinstance(given, dask.cfexecutor.ClientExecutor):
        _check_open(given._client)  # noqa: SLF001  it has no public name
        _check_versions(given._client)  # noqa: SLF001
        yield Cluster(given._client, **given._kwargs)  # noqa: SLF001
    else:
        yield given


def hiring(verb: Callable[Given, Result]) -> Callable[Given, Result]:
    """A verb whose option ``executor`` may be a Dask client or an address too: it is connected while the verb runs.

    Parameters
    ----------
    verb
        What takes an executor.
    """

    @wraps(verb)
    def call(*arguments: Given.args, **options: Given.kwargs) -> Result:
        with hired(options.get("executor")) as executor:
            return verb(*arguments, **(options if executor is None else cast("Any", {**options, "executor": executor})))

    return call


class Cluster(Executor):
    """Gives tasks to the workers of a Dask cluster, which does the tasks of a lost worker again.

    Dask's own executor takes equal calls for the same one, even when the first was taken back; and takes back tasks that a worker has begun.

    Parameters
    ----------
    client
        A `distributed.Client`.
    how
        Further options of its ``submit``, such as ``resources``.
    """

    def __init__(self, client: Any, **how: Any) -> None:
        """Nothing is under way."""
        self._client, self._how = client, {**how, "pure": False}
        self._lock, self._threads, self._counted = Lock(), 1, -_FRESH
        self._held, self._looked = frozenset[str](), -_FRESH

    @property
    def num_workers(self) -> int:
        """How many tasks it can work on at the same time by now: workers may come and go."""
        with self._lock:
            if monotonic() - self._counted > _FRESH:
                with suppress(Exception):  # whoever is lost is noticed where results are awaited
                    self._threads = max(sum(self._client.nthreads().values()), 1)
                self._counted = monotonic()
            return self._threads

    def holds(self, key: str) -> bool:
        """Whether a worker has this task."""
        with self._lock:
            if monotonic() - self._looked > _FRESH:
                self._held = frozenset[str]()
                with suppress(Exception):  # nobody is there any more
                    self._held = frozenset(key for keys in self._client.processing().values() for key in keys)
                self._looked = monotonic()
            return key in self._held

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Call a module-level function on one of the workers."""
        try:
            there = self._client.submit(work, *arguments, **named, **self._how)
        except Exception as error:
            msg = f"the Dask client takes no tasks: {_line(error)}"
            raise BrokenExecutor(msg) from error
        self._looked = -_FRESH  # what was seen before does not tell of this one
        return _Piece(there, self)


class _Piece(Future[Any]):
    """A task of a cluster, seen from here."""

    def __init__(self, there: Any, cluster: Cluster) -> None:
        super().__init__()
        self._there, self._cluster = there, cluster
        there.add_done_callback(self._take_over)

    def cancel(self) -> bool:
        """Take it back, unless a worker has it."""
        if self.done() or self._cluster.holds(self._there.key) or not super().cancel():
            return False
        with suppress(Exception):  # it may be too late for that
            self._there.cancel()
        return True

    def _take_over(self, there: Any) -> None:
        if not self.set_running_or_notify_cancel():
            return
        try:
            status = there.status
            if status == "finished":
                self.set_result(there.result())
                return
            error = there.exception() if status == "error" else BrokenExecutor(f"Dask says that the task is {status}")
        except BaseException as broken:  # noqa: BLE001  it is raised where the result is awaited
            error = BrokenExecutor(_line(broken))
        lost = type(error).__name__ == "KilledWorker"
        self.set_exception(BrokenExecutor("workers ended again and again at the same piece of work") if lost else error)


class Leash(Executor):
    """Another executor, whose tasks can all be given up at once: whoever waits for them is interrupted, whatever they still do.

    Parameters
    ----------
    executor
        Who does the tasks.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(1) as threads, Leash(threads) as leash:
    ...     leash.submit(abs, -3).result()
    3
    """

    def __init__(self, executor: Executor) -> None:
        """Nothing is under way."""
        self._executor, self._lock, self._over = executor, Lock(), False
        self._tasks = set[_Leashed]()

    @property
    def num_workers(self) -> int | None:
        """Those of the other one."""
        return getattr(self._executor, "num_workers", None) or getattr(self._executor, "_max_workers", None)

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Have the other one call a function."""
        if self._over:
            raise KeyboardInterrupt  # the one word that ends everything with what is known
        task = _Leashed(self._executor.submit(work, *arguments, **named))
        with self._lock:
            self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: Any) -> None:
        with self._lock:
            self._tasks.discard(task)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:  # noqa: ARG002, FBT001, FBT002  as the base class has it
        """Give up all tasks; the other executor stays as it is."""
        self._over = True
        with self._lock:
            tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
            task.give_up()


class _Leashed(Future[Any]):
    """A task of another executor."""

    def __init__(self, there: Future[Any]) -> None:
        super().__init__()
        self._there = there
        there.add_done_callback(self._take_over)

    def cancel(self) -> bool:
        """Take it back, unless it has begun."""
        return self._there.cancel()

    def _take_over(self, there: Future[Any]) -> None:
        if there.cancelled():
            super().cancel()
            self.set_running_or_notify_cancel()
            return
        with suppress(InvalidStateError):  # it was given up
            error = there.exception()
            if error is None:
                self.set_result(there.result())
            else:
                self.set_exception(error)

    def give_up(self) -> None:
        """Interrupt whoever waits for it."""
        with suppress(InvalidStateError):  # it is done
            self.set_exception(KeyboardInterrupt())


@contextmanager
def _connected(address: str) -> Generator[Any]:
    """A client of the scheduler at an address."""
    try:
        import distributed  # noqa: PLC0415  optional
    except ImportError as error:
        msg = f"the executor {address} is a Dask scheduler, and dask is not installed: pip install 'dask[distributed]'"
        raise MissingPackage(msg) from error
    with _quiet():
        try:
            client = distributed.Client(address, timeout=_CONNECT, set_as_default=False)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            msg = f"no Dask scheduler answers at {address} ({_line(error)}); start one there with: dask scheduler"
            raise SolverError(msg) from error
        try:
            yield client
        finally:
            with suppress(Exception):  # it may be gone
                client.close()


@contextmanager
def _quiet() -> Generator[None]:
    """Dask's log says that a connection was lost, several times and with a traceback; what matters of it is said by errors."""
    loggers = [getLogger(name) for name in _LOGGERS]
    hush = Filter("tessella")  # an object of its own for each call, as several may run at the same time
    for logger in loggers:
        logger.addFilter(hush)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(hush)


def _check_open(client: Any) -> None:
    if client.asynchronous or client.status != "running":
        state = "asynchronous" if client.asynchronous else client.status
        msg = f"executor is a Dask client that is {state}; give one that is open, made without asynchronous=True"
        raise OptionError(msg)


def _check_versions(client: Any) -> None:
    """Raise where the scheduler or a worker has another version of Tessella, or none: the cluster would wait for ever, or answer something else."""
    found = dict[str, object]()
    with suppress(OSError):  # whoever is lost is noticed where results are awaited
        try:
            found["the scheduler"] = client.run_on_scheduler(_version)
        except ImportError as error:
            found["the scheduler"] = error
        found.update({f"the worker {place}": one for place, one in client.run(_version, on_error="return").items()})
    for who, version in found.items():
        missing = isinstance(version, Exception) and "tessella" in str(version)  # a worker's error comes as text
        if missing or (isinstance(version, str) and version != __version__):
            has = "no Tessella" if missing else f"Tessella {version}"
            msg = f"{who} of the Dask cluster has {has}; install Tessella {__version__} there, as here"
            raise SolverError(msg)


def _version() -> str:
    return __version__


def _line(error: BaseException) -> str:
    """What an error says, in one short line."""
    return f"{' '.join(str(error).split()) or type(error).__name__:.160}"
