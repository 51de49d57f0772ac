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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from executor.errors import DatabaseFull, DatabaseUnavailable, NestedTransaction
from executor.store.sqlite.batches import ADD_FENCED, Batch
from executor.store.sqlite.identity import Identity

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
    """One of the appends that were written together is fenced; which, is not known when there are several. Nothing of
    the transaction counts."""

    def __init__(self, run: str, count: int) -> None:
        super().__init__(run, count)
        self.run = run


class Tx:
    """An open transaction.

    Appends that have nothing but events are collected (`append_later`) and written by one call, the fence of each with
    it. That is done before anything else is looked at or changed: `db` is the connection with all of them written.
    `bare` is the connection without that, for a look that does not depend on them.

    messages  whether there are any in any inbox, None: not yet looked up
    proof     (run, seq, checksum) of a batch that was written: it is on disk if the transaction is
    """

    __slots__ = ("_before", "_later", "bare", "messages", "proof")

    def __init__(self, db: sqlite3.Connection) -> None:
        self.bare = db
        self.messages: bool | None = None
        self.proof: tuple[str, int, int] | None = None
        self._later: list[tuple[Any, ...]] = []
        self._before = db.total_changes

    @property
    def db(self) -> sqlite3.Connection:
        if self._later:
            self.write_appends()
        return self.bare

    @property
    def changes(self) -> int:
        """Rows changed so far, those to be written included."""
        return self.bare.total_changes - self._before + len(self._later)

    def append_later(self, run: str, epoch: int, after: int, batches: Sequence[Batch]) -> None:
        """`after`: the seq before the first of them."""
        for batch in batches:
            self._later.append((*batch, run, epoch, after))
            after = batch.seq
        self.note(run, batches)

    def note(self, run: str, batches: Sequence[Batch]) -> None:
        """These are written in this transaction."""
        if self.proof is None and batches:
            self.proof = run, batches[0].seq, batches[0].checksum

    def write_appends(self) -> None:
        """Raises Stale."""
        later, self._later = self._later, []
        if later and self.bare.executemany(ADD_FENCED, later).rowcount != len(later):
            raise Stale(later[0][6], len(later))


class Database:
    """The writing connection. For one thread; `connect` makes the raw connection, `fault` is called at named points
    so that tests can break there: `write.<change>` before each change of a group, `tx.<name>.before_commit` (both may
    raise, or kill) and `tx.<name>.after_commit` (may only kill)."""

    def __init__(self, path: str, busy_timeout_ms: int, connect: Connect, fault: FaultPoint) -> None:
        self.path = path
        self._busy_timeout_ms = busy_timeout_ms
        self._connect = connect
        self.fault = fault
        self._db: sqlite3.Connection | None = None
        self._tx: str | None = None
        self._identity = Identity(path)

    @property
    def db(self) -> sqlite3.Connection:
        """The connection, opened now if it was dropped. Raises sqlite3.Error, DatabaseUnavailable."""
        if self._db is None:
            self._identity.check()  # a lost file is not made anew
            self._db = _open(self.path, self._busy_timeout_ms, self._connect)
            self._identity.note()
        return self._db

    def check_file(self) -> None:
        """From any thread. Raises DatabaseReplaced: what is open is no longer what the path names."""
        self._identity.check()

    @contextmanager
    def tx(self, name: str) -> Iterator[Tx]:
        """BEGIN IMMEDIATE, the block, COMMIT; whatever the block raises rolls back. Raises NestedTransaction inside
        another one, sqlite3.Error when nothing was committed, CommitUncertain when that is not known."""
        if self._tx is not None:
            raise NestedTransaction(f"transaction {name!r} was opened inside {self._tx!r}")
        db = self.db
        db.execute("BEGIN IMMEDIATE")
        self._tx = name
        try:
            tx = Tx(db)
            yield tx
            tx.write_appends()
            self.fault(f"tx.{name}.before_commit")
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite rolls some failures back itself; the connection then has none open
                db.execute("ROLLBACK")
            raise
        finally:
            self._tx = None
        try:
            db.execute("COMMIT")
        except sqlite3.Error as error:
            raise CommitUncertain from error
        self.fault(f"tx.{name}.after_commit")

    def another(self) -> sqlite3.Connection:
        """A raw connection beside the writing one, to read what is committed. The caller closes it."""
        return self._connect(self.path)

    def checkpoint(self) -> None:
        """Copy what readers allow from the WAL into the file. A failure costs nothing: the WAL still holds
        everything."""
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
    return sqlite3.connect(path, isolation_level=None, cached_statements=256)


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
    except BaseException:
        db.close()
        raise
    return db


def check_log(path: str) -> None:
    """To be called before the file is opened, even for reading: SQLite deletes a log beside an empty or missing
    database without a word, and until the first checkpoint all there is may be in it. The log is looked at first: a
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
    """Whether that is why SQLite could not write: it does not always say so."""
    try:
        return shutil.disk_usage(os.path.dirname(os.path.abspath(path))).free < ROOM_MIN_BYTES
    except OSError:
        return False


def sync_directory(path: str) -> None:
    """Put the names in the directory of `path` on disk."""
    if os.name == "nt":
        return  # directories cannot be synced there
    directory = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
