"""One writing SQLite connection: how it is opened, and the only way to a commit, `Database.tx(name)`.

Deliberate oddities:
 1. Pragmas come in this order: busy_timeout (the others may meet a lock), synchronous=EXTRA, journal_mode=WAL,
    synchronous=FULL. The switch to WAL is itself a commit in rollback mode; with less than EXTRA a power loss may
    bring its journal back and roll the whole file to empty. FULL afterwards: every commit is synced.
 2. The row of `PRAGMA journal_mode` is fetched: unfetched, an I/O error of the switch goes unnoticed.
 3. An error in COMMIT leaves the outcome unknown (`CommitUncertain`): its catcher reopens the file and looks.
 4. wal_autocheckpoint=0: the writer's thread checkpoints between groups, when no caller waits for a result.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any, cast

from executor.errors import DatabaseFull, DatabaseReplaced, DatabaseUnavailable, NestedTransaction
from executor.kernel.store.sqlite.dialect import ADD_BATCH, ADD_FENCED, TEXTS, first_batches, in_pieces, several_rows
from executor.kernel.store.statements import Batch, Row, Values
from executor.kernel.store.statements import Tx as BaseTx

Inode = tuple[int, int]


class Identity:
    """The identity of the database at `path`. Call `remember` when it was opened, and from then on `check`.

    A file that was deleted or renamed stays open, and SQLite writes into it without an error: what was acknowledged
    then is gone with the process. So the device and inode of the path, and of the log beside it, are compared with
    those that were opened.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._log_path = f"{path}-wal"
        self._file: Inode | None = None
        self._log: Inode | None = None

    def remember(self) -> None:
        """It was opened and read just now: its connection keeps others from deleting the log that the path names."""
        self._file = _inode(self._path)
        self._log = _inode(self._log_path)

    def forget_log(self) -> None:
        """No connection is open, so another process may delete the log and make a new one."""
        self._log = None

    def check(self) -> None:
        if self._file is None:
            return
        if _inode(self._path) != self._file:
            raise DatabaseReplaced(
                f"the database {self._path} was deleted or replaced while weft had it open",
                hint="Stop the server, put the file back in its place or run `weft restore` with a backup, then start.",
            )
        if self._log is not None and _inode(self._log_path) != self._log:
            raise DatabaseReplaced(
                f"{self._log_path}, the log of the database, was deleted or replaced while weft had it open",
                hint="Stop the server with SIGTERM, so that it writes its data into the database. Then start it again.",
            )

    @property
    def may_checkpoint(self) -> bool:
        """Returns True if file and log are those that were opened, or the log was deleted and there is no other one."""
        if self._file is None:
            return True
        return _inode(self._path) == self._file and _inode(self._log_path) in (self._log, None)


def _inode(path: str) -> Inode | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


log = logging.getLogger("weft.store")

Connect = Callable[[str], sqlite3.Connection]
FaultPoint = Callable[[str], None]

WAL_KEPT_BYTES = 64 * 1024 * 1024  # after a burst the WAL file is cut back to this size at its next restart
ROOM_MIN_BYTES = 64 * 1024  # with less, SQLite cannot even make its shared memory
FULL = (errno.ENOSPC, errno.EDQUOT)
FIXED_WAL_RESET = (3, 51, 3)  # older ones may corrupt the file when two processes write and checkpoint at once


class CommitUncertain(Exception):
    """COMMIT raised: the transaction may be on disk or not. `__cause__` is SQLite's error."""


class Stale(Exception):
    """One of the appends that were written together is fenced. Nothing of the transaction counts."""

    def __init__(self, run: str, count: int) -> None:
        super().__init__(run, count)
        self.run = run


Leave = Callable[["Tx", bool], None]


class Tx(BaseTx):
    """A transaction that collects appends of events alone (`append_later`) and writes them, each with its fence, by one
    call. They are written before any other read or write: `db` is the connection after that.

    proof  (run, seq, checksum) of a batch that was written: it is on disk if the transaction is
    leave  called at the end of the block: a generator would cost each step of a chain 3 us
    """

    __slots__ = ("_before", "_later", "_leave", "bare", "proof")

    def __init__(self, db: sqlite3.Connection, leave: Leave = lambda tx, commits: None) -> None:
        super().__init__(messages=None)
        self.bare = db
        self._leave = leave
        self.proof: tuple[str, int, int] | None = None
        self._later: list[tuple[Any, ...]] = []
        self._before = db.total_changes

    def __enter__(self) -> Tx:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._leave(self, kind is None)

    @property
    def db(self) -> sqlite3.Connection:
        if self._later:
            self.write_appends()
        return self.bare

    @property
    def changes(self) -> int:
        return self.bare.total_changes - self._before + len(self._later)

    def rows(self, sql: str, values: Values = ()) -> list[Row]:
        return self.db.execute(TEXTS[sql], values).fetchall()

    def run(self, sql: str, values: Values = ()) -> int:
        return self.db.execute(TEXTS[sql], values).rowcount

    def do(self, sql: str, values: Values = ()) -> None:
        self.db.execute(TEXTS[sql], values)

    def add_rows(self, sql: str, values: Sequence[Mapping[str, Any]]) -> None:
        for rows in in_pieces(values):
            named = {f"{name}_{i}": value for i, row in enumerate(rows) for name, value in row.items()}
            self.db.execute(several_rows(TEXTS[sql], len(rows)), named)

    def look(self, sql: str, values: Values = ()) -> Row:
        (row,) = self.bare.execute(TEXTS[sql], values).fetchall()
        return cast(Row, row)

    def lock(self, run: str) -> None:
        """This transaction has the whole file."""

    def append_later(self, run: str, epoch: int, after: int, batches: Sequence[Batch]) -> None:
        for batch in batches:
            self._later.append((*batch, run, epoch, after))
            after = batch.seq
        self._note(run, batches)

    def add_batches(self, run: str, number: int, batches: Sequence[Batch]) -> None:
        for batch in batches:
            self.db.execute(ADD_BATCH, (*batch, number))
        self._note(run, batches)

    def begin_journals(self, batches: Sequence[tuple[str, Batch]]) -> None:
        for rows in in_pieces(batches):
            values = [value for run, batch in rows for value in (*batch, run)]
            self.db.execute(first_batches(len(rows)), values)
        for run, batch in batches[:1]:
            self._note(run, [batch])

    def _note(self, run: str, batches: Sequence[Batch]) -> None:
        if self.proof is None and batches:
            self.proof = run, batches[0].seq, batches[0].checksum

    def write_appends(self) -> None:
        later, self._later = self._later, []
        if later and self.bare.executemany(ADD_FENCED, later).rowcount != len(later):
            raise Stale(later[0][6], len(later))


class Database:
    """The writing connection. For one thread at a time; `connect` makes the raw connection, `fault` is called at named
    points so that tests can break there: `write.<change>` before each change of a group, `tx.<name>.before_commit`
    (both may raise, or kill) and `tx.<name>.after_commit` (may only kill). `commit_s`: how long a commit has lasted of
    late."""

    def __init__(self, path: str, busy_timeout_ms: int, connect: Connect, fault: FaultPoint | None) -> None:
        self.path = path
        self._busy_timeout_ms = busy_timeout_ms
        self._connect = connect
        self.fault = fault
        self._db: sqlite3.Connection | None = None
        self._tx: str | None = None
        self._identity = Identity(path)
        self._waits_ms = busy_timeout_ms  # for a lock
        self.commit_s = 0.0

    @property
    def is_open(self) -> bool:
        return self._db is not None

    def wait_for_lock(self, wait: bool) -> None:
        """Set whether the next transaction waits for the lock of another process. Raises as `db`."""
        waits_ms = self._busy_timeout_ms if wait else 0
        if waits_ms != self._waits_ms:
            self.db.execute(f"PRAGMA busy_timeout = {waits_ms:d}")
            self._waits_ms = waits_ms

    @property
    def db(self) -> sqlite3.Connection:
        """The connection, opened now if it was dropped. Raises sqlite3.Error, DatabaseUnavailable."""
        if self._db is None:
            self._identity.check()  # a lost file is not made anew
            self._db = _open(self.path, self._busy_timeout_ms, self._connect)
            self._waits_ms = self._busy_timeout_ms
            self._identity.remember()
        return self._db

    def check_file(self) -> None:
        """From any thread. Raises DatabaseReplaced: what is open is no longer what the path names."""
        self._identity.check()

    def note_file(self) -> None:
        """Others read the file, and no connection keeps its server from deleting the log."""
        self._identity.remember()
        self._identity.forget_log()

    def tx(self, name: str) -> Tx:
        """BEGIN IMMEDIATE, the block, COMMIT; whatever the block raises rolls back. Raises NestedTransaction inside
        another one, sqlite3.Error when nothing was committed, CommitUncertain when that is not known."""
        if self._tx is not None:
            raise NestedTransaction(f"transaction {name!r} was opened inside {self._tx!r}")
        db = self.db
        db.execute("BEGIN IMMEDIATE")
        self._tx = name
        return Tx(db, self._leave)

    def _leave(self, tx: Tx, commits: bool) -> None:
        name, self._tx = self._tx, None
        try:
            if commits:
                tx.write_appends()
                if self.fault is not None:
                    self.fault(f"tx.{name}.before_commit")
        except BaseException:
            commits = False
            raise
        finally:
            if not commits:
                with suppress(sqlite3.Error):  # SQLite rolls some failures back itself; then none is open
                    tx.bare.execute("ROLLBACK")
        if not commits:
            return
        began = perf_counter()
        try:
            tx.bare.execute("COMMIT")
        except sqlite3.Error as error:
            raise CommitUncertain from error
        self.commit_s += (perf_counter() - began - self.commit_s) / 4
        if self.fault is not None:
            self.fault(f"tx.{name}.after_commit")

    def another(self) -> sqlite3.Connection:
        """A raw connection beside the writing one, to read what is committed. The caller closes it."""
        return self._connect(self.path)

    def checkpoint(self) -> None:
        """Copy what readers allow from the WAL into the file. After a failure the WAL still holds everything."""
        if not self._identity.may_checkpoint:
            return
        try:
            self.db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except (sqlite3.Error, DatabaseUnavailable) as error:
            log.warning("checkpoint failed: %s", error)
            self.drop()

    def drop(self) -> None:
        """Close the connection whatever state it is in; an open transaction is rolled back by that."""
        db, self._db = self._db, None
        if db is not None:
            with suppress(sqlite3.Error):
                db.close()
            self._identity.forget_log()


def plain_connect(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, cached_statements=256, check_same_thread=False)


def _open(path: str, busy_timeout_ms: int, connect: Connect) -> sqlite3.Connection:
    if sqlite3.sqlite_version_info < FIXED_WAL_RESET:
        log.debug("SQLite %s: let only one process write to %s", sqlite3.sqlite_version, path)
    check_log(path)
    create_private(path)
    db = connect(path)
    try:
        db.execute(f"PRAGMA busy_timeout = {busy_timeout_ms:d}")
        db.execute("PRAGMA synchronous = EXTRA")
        (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise DatabaseUnavailable(
                f"{path} cannot use a write-ahead log (journal mode {mode!r})", hint="use a local disk"
            )
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA wal_autocheckpoint = 0").fetchone()
        db.execute(f"PRAGMA journal_size_limit = {WAL_KEPT_BYTES:d}").fetchone()
        db.execute("PRAGMA schema_version").fetchone()  # opens the log; until then another process may delete it
    except BaseException:
        db.close()
        raise
    return db


def check_log(path: str) -> None:
    """Refuse a log whose database is missing or empty. Call this before the file is opened, even for reading: SQLite
    deletes such a log silently, and until the first checkpoint it may hold all data. The log is checked first: a
    database has its first page before its log has anything. Raises DatabaseUnavailable."""
    if _size(f"{path}-wal") and not _size(path):
        raise DatabaseUnavailable(
            f"the log {path}-wal has data, but its database {path} is missing",
            hint="Put the database back in its place, or run `weft restore` with a backup; that keeps the log. "
            "To start with an empty database, move the log away.",
        )


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise DatabaseUnavailable(f"{path} cannot be checked: {error.strerror}") from error


def create_private(path: str) -> None:
    """A new file is for its owner only (SQLite gives -wal and -shm the same mode), and its name is on disk before
    anything is in it. An existing file is not touched: closing a second descriptor would drop this process's locks on
    it. It stays when its name could not be synced, as another process may be using it by now; SQLite syncs the
    directory too, when it switches to the WAL. Raises DatabaseUnavailable."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        sync_directory(path)
    except FileExistsError:
        return
    except OSError as error:
        kind = DatabaseFull if error.errno in FULL else DatabaseUnavailable
        hint = full_hint(path) if kind is DatabaseFull else ""
        raise kind(f"{path} cannot be created: {error.strerror}", hint=hint) from error


def full_hint(path: str) -> str:
    return f"Free space on the disk of {os.path.dirname(os.path.abspath(path))}."


def is_full(path: str) -> bool:
    """Returns True if a full disk may be why SQLite could not write: its error does not always show it."""
    try:
        return shutil.disk_usage(os.path.dirname(os.path.abspath(path))).free < ROOM_MIN_BYTES
    except OSError:
        return False


def sync_directory(path: str) -> None:
    if os.name == "nt":
        return  # directories cannot be synced there
    directory = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
