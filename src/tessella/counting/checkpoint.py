"""A count on disk: what is finished survives whatever ends the program.

A checkpoint is an SQLite database.  It holds the open nodes, the thin prefixes and the totals of what is finished, and each step of the count is one
transaction, so at every moment these three make up the whole tree.  The database is written ahead (WAL): a killed program loses the
steps it had not ended, a power cut at worst some more, and neither leaves half a step behind.  While a count runs it holds the file's lock.

SQLite notices damage to its own structure, not to what is stored.  So the totals carry a checksum of themselves and of all rows: the
hashes of the rows are added up, and a step adds and subtracts those of the few rows that it changes.
"""

import hashlib
import os
import sqlite3
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np

from tessella._version import __version__
from tessella.domain import Domain, Polytope
from tessella.errors import FileError, FileMissing
from tessella.network import Network
from tessella.options import check_checkpoint
from tessella.partition.tree import Node, Tree

FORMAT = 1
_APPLICATION = 0x7E55E11A  # in the file's header, at byte 68: whose database this is
_MAGIC = b"SQLite format 3\0"
_MODULUS = 1 << 128
_TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE open (prefix BLOB PRIMARY KEY, splits INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE thin (prefix BLOB PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE totals (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
)
_in_use = set[str]()  # by this process: reading such a file by other means would drop its lock
_WORDS = {
    "network": "another network",
    "domain": "another domain",
    "tree": "other stable units (another stability was given, or found, when it was begun)",
}


class Totals(NamedTuple):
    """What is finished."""

    regions: int  # regions counted
    tests: int  # sides tested
    borderline: int  # thin prefixes met
    seconds: float  # wall time spent, in all runs together
    # lower, upper: the best bounds proved
    lower: int
    upper: int


class Saved(NamedTuple):
    """A count as it stands on disk: finished, if nothing is open or thin."""

    open: tuple[Node, ...]
    thin: tuple[bytes, ...]
    totals: Totals


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a count: what is no longer open or thin, what is now, and the totals after it."""

    totals: Totals
    closed: tuple[Node, ...] = ()
    opened: tuple[Node, ...] = ()
    settled: tuple[bytes, ...] = ()
    thinned: tuple[bytes, ...] = ()


class Checkpoint:
    r"""The file of one count, locked while it is open.

    Parameters
    ----------
    path
        Where it is, or will be.
    network, domain
        What is counted, and where.  A file begun for another network or domain is refused, and left as it is.

    Examples
    --------
    >>> import tempfile
    >>> from tessella.domain import Box
    >>> net, box = Network.from_arrays([([[1.0]], None)], relu_output=True), Box(-1, 1, dim=1)
    >>> with tempfile.TemporaryDirectory() as folder, Checkpoint(Path(folder) / "run.db", net, box) as file:
    ...     file.begin(Tree(net, box), Step(Totals(0, 0, 0, 0.0, 1, 2), opened=(Node(),)))
    ...     file.save(Step(Totals(1, 1, 0, 0.5, 2, 2), closed=(Node(),), opened=(Node(b"\1", 1),)))
    ...     file.load().open
    (Node(prefix=b'\x01', splits=1),)
    """

    def __init__(self, path: str | os.PathLike[str], network: Network, domain: Domain) -> None:
        """Open or create the file; nothing is computed before all that can be wrong with it is known."""
        check_checkpoint(path)
        self.path = Path(path).expanduser()
        self._place = str(_look(self.path))
        self._sum = 0
        self._meta = {"network": network.fingerprint, "domain": domain_digest(domain)}
        with self._errors():
            self._database = sqlite3.connect(self._place, timeout=0.0, isolation_level=None)
        _in_use.add(self._place)
        try:
            with self._errors():
                self._lock()
            self._compare()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """The checkpoint itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give the lock back."""
        self.close()

    def close(self) -> None:
        """Give the lock back; every step is on disk already."""
        with suppress(sqlite3.Error):
            self._database.close()
        _in_use.discard(self._place)

    @property
    def begun(self) -> bool:
        """Whether there is a count in the file."""
        return "tree" in self._meta

    def check(self, tree: Tree) -> None:
        """Refuse a tree whose prefixes mean something else than those in the file."""
        if self._meta.get("tree") != tree.network.fingerprint:
            self._refuse("tree")

    def begin(self, tree: Tree, step: Step) -> None:
        """Write the first step of a new count."""
        self._meta["tree"] = tree.network.fingerprint
        with self._transaction() as database:
            database.execute("INSERT INTO meta VALUES ('tree', ?)", (self._meta["tree"],))
            self._write(database, step)

    def save(self, step: Step) -> None:
        """Write one more step: all of it, or nothing if the program ends on the way."""
        before = self._sum
        try:
            with self._transaction() as database:
                self._write(database, step)
        except BaseException:
            self._sum = before
            raise

    def load(self) -> Saved:
        """Read where the count stands, and check it."""
        try:
            with self._errors():
                rows = self._database.execute("SELECT prefix, splits FROM open ORDER BY splits, prefix").fetchall()
                thin = tuple(prefix for (prefix,) in self._database.execute("SELECT prefix FROM thin ORDER BY prefix"))
                record = dict(self._database.execute("SELECT name, value FROM totals"))
            nodes = tuple(Node(prefix, splits) for prefix, splits in rows)
            total, totals = _hashes(nodes, thin), _decode(record)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            if isinstance(error, FileError):
                raise
            self._give_up(f"{type(error).__name__}: {error}", error)
        if record.get("checksum") != _checksum(self._meta, totals, total):
            self._give_up("the checksum does not fit")
        self._sum = total
        return Saved(nodes, thin, totals)

    def _lock(self) -> None:
        """Take the lock for as long as the connection lives, and lay out a new file."""
        database = self._database
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("BEGIN EXCLUSIVE")
        if database.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            database.execute(f"PRAGMA application_id = {_APPLICATION}")
            for table in _TABLES:
                database.execute(table)
            meta = {**self._meta, "format": str(FORMAT), "tessella": __version__}
            database.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
        database.execute("COMMIT")
        # the header, with its application, is in the file itself before anything goes to the log
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")

    def _compare(self) -> None:
        """Refuse a file that is damaged, or another count's."""
        with self._errors():
            state = self._database.execute("PRAGMA integrity_check(1)").fetchone()
            found: dict[str, Any] = dict(self._database.execute("SELECT name, value FROM meta"))
            steps = self._database.execute("SELECT count(*) FROM totals").fetchone() != (0,)
        if state != ("ok",):
            self._give_up(state[0])
        if found.get("format") != str(FORMAT):
            msg = (
                f"{self.path}: is a checkpoint of format {found.get('format')!r:.20}, and this version of Tessella reads {FORMAT}; "
                f"resume it with the version that wrote it ({found.get('tessella')!s:.20}), or give another path"
            )
            raise FileError(msg)
        for name, value in self._meta.items():
            if found.get(name) != value:
                self._refuse(name)
        if steps != ("tree" in found):
            self._give_up("it has totals without a tree, or a tree without totals")
        self._meta = found

    def _write(self, database: sqlite3.Connection, step: Step) -> None:
        database.executemany("DELETE FROM open WHERE prefix = ?", ((node.prefix,) for node in step.closed))
        database.executemany("INSERT INTO open VALUES (?, ?)", step.opened)
        database.executemany("DELETE FROM thin WHERE prefix = ?", ((prefix,) for prefix in step.settled))
        database.executemany("INSERT INTO thin VALUES (?)", ((prefix,) for prefix in step.thinned))
        self._sum += _hashes(step.opened, step.thinned) - _hashes(step.closed, step.settled)
        self._sum %= _MODULUS
        record = {**_encode(step.totals), "checksum": _checksum(self._meta, step.totals, self._sum)}
        database.executemany("INSERT OR REPLACE INTO totals VALUES (?, ?)", record.items())

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        database = self._database
        with self._errors():
            if database.in_transaction:  # Ctrl-C came between two statements
                database.execute("ROLLBACK")
            with database:  # commits, or rolls back if anything is raised
                database.execute("BEGIN IMMEDIATE")
                yield database

    @contextmanager
    def _errors(self) -> Generator[None]:
        """Say in one line what SQLite found."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter where SQLite quotes what is damaged
            name = getattr(error, "sqlite_errorname", "") or ""
            if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                msg = f"{self.path}: is in use by another count that is still running; wait for it, or give another path"
                raise FileError(msg) from error
            if name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_FULL", "SQLITE_IOERR")):
                advice = "free the disk" if name.startswith("SQLITE_FULL") else "check that file and folder may be written"
                msg = f"{self.path}: the checkpoint cannot be written ({error}); {advice}, or give another path"
                raise FileError(msg) from error
            self._give_up(str(error), error)

    def _give_up(self, why: str, error: Exception | None = None) -> NoReturn:
        msg = f"{self.path}: the checkpoint is damaged and cannot be resumed ({why.strip()[:200]}); delete it to start again"
        raise FileError(msg) from error

    def _refuse(self, name: str) -> NoReturn:
        msg = f"{self.path}: is the checkpoint of {_WORDS[name]}; give the same as when it was begun, or another path"
        raise FileError(msg)


def domain_digest(domain: Domain) -> str:
    """A hash of a domain's numbers, the same on every machine."""
    digest = hashlib.sha256(b"tessella domain 1")
    parts = [domain.box.lower, domain.box.upper]
    if isinstance(domain, Polytope):
        parts += [domain.matrix, domain.offset]
    for part in parts:
        digest.update(np.array(part.shape, dtype="<i8").tobytes())
        digest.update((part + 0.0).astype("<f8").tobytes())  # -0.0 becomes 0.0
    return digest.hexdigest()


def _look(path: Path) -> Path:
    """The file's full name; refuses what is no checkpoint, without opening it as one."""
    try:
        place = path.resolve()
        if str(place) in _in_use:
            msg = f"{path}: is in use by another count in this process; wait for it, or give another path"
            raise FileError(msg)
        if place.is_dir():
            msg = f"{path}: is a folder; give the name of a file for the checkpoint"
            raise FileError(msg)
        if not place.parent.is_dir():
            msg = f"{path}: there is no folder {place.parent}; make it first, or give another path for the checkpoint"
            raise FileMissing(msg)
        if not place.exists():
            return place
        with place.open("rb") as file:
            header = file.read(100)
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, FileError):
            raise
        msg = f"{str(path)!r}: the checkpoint cannot be opened ({error}); give another path"
        raise FileError(msg) from error
    if header and (len(header) < 100 or not header.startswith(_MAGIC)):
        msg = f"{path}: is no checkpoint, but some other or a damaged file; it is left as it is, give another path"
        raise FileError(msg)
    if header and int.from_bytes(header[68:72], "big") != _APPLICATION:
        msg = f"{path}: is a database, but no checkpoint of Tessella; it is left as it is, give another path"
        raise FileError(msg)
    return place


def _encode(totals: Totals) -> dict[str, str]:
    whole = {name: hex(getattr(totals, name)) for name in ("regions", "tests", "borderline", "lower", "upper")}
    return {**whole, "seconds": float(totals.seconds).hex()}


def _decode(record: dict[str, Any]) -> Totals:
    whole = {name: int(record[name], 16) for name in ("regions", "tests", "borderline", "lower", "upper")}
    return Totals(**whole, seconds=float.fromhex(record["seconds"]))


def _hashes(nodes: Iterable[Node], thin: Iterable[bytes]) -> int:
    """The sum of the rows' hashes."""
    total = sum(_hash(b"open %d " % node.splits, node.prefix) for node in nodes)
    return (total + sum(_hash(b"thin ", prefix) for prefix in thin)) % _MODULUS


def _hash(kind: bytes, prefix: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(kind + prefix, digest_size=16).digest(), "big")


def _checksum(meta: dict[str, str], totals: Totals, rows: int) -> str:
    parts = [f"{name}={value}" for name, value in sorted({**meta, **_encode(totals)}.items())]
    return hashlib.blake2b("\n".join([*parts, hex(rows)]).encode(errors="replace"), digest_size=16).hexdigest()
