"""A copy of the database while the server works, and a database from a copy.

The copy is one moment of the database: a reader's snapshot is held meanwhile, the WAL grows, and writers do not wait.
It is made page by page with pauses, so that the disk is not taken from the writer, and is checked and on disk before it
has its name. The key file (`weft.key`) is not in it: a thief of the copy shall not have the resume links.

Beside a draft, `NAME.TOKEN.part`, is a file that its process locks, so those of killed processes are removed when the
next file in the folder is made. The draft itself is not locked: on some systems SQLite could not write to it then."""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from executor.errors import BackupUnusable, Conflict, DatabaseUnavailable, ForeignDatabase
from executor.kernel.store.migrate import packaged_migrations, refuse_newer, refuse_others, version_of
from executor.kernel.store.sqlite.connection import check_log
from executor.kernel.store.sqlite.reading import open_read_only

PAGES_PER_STEP = 256  # 1 MiB with pages of 4 KiB
PAUSE_S = 0.002


class Backup(Struct, frozen=True):
    path: str
    bytes: int
    schema: int
    runs: int
    open_runs: int
    seconds: float = 0.0


def backup(database: Path, target: Path, *, replace: bool = False) -> Backup:
    """Copy `database` to `target`, mode 0600. Raises Conflict when the target is there and is not to be replaced or is
    no backup; sqlite3.Error, OSError; BackupUnusable when the copy, and so the database, is not sound."""
    wal = target.with_name(target.name + "-wal")
    problem, hint = "", "choose another name"
    if target.exists() and not replace:
        problem, hint = f"the file {target} already exists", "choose another name, or --force"
    elif target.exists() and target.samefile(database):
        problem = f"the file {target} is the database itself"
    elif target.exists() and not _is_copy(target):
        problem = f"the file {target} is not a backup"
    elif wal.exists():  # SQLite would apply it to the copy
        problem = f"the file {wal} exists: {target} is or was the database of a server"
    if problem:
        raise Conflict(problem, code="file_exists", hint=hint)
    began = time.monotonic()
    with draft_of(target) as draft:
        _copy(database, draft)
        found = inspect(draft)
        _sync(draft)
        os.replace(draft, target)
        _sync(target.parent)
    return Backup(str(target), found.bytes, found.schema, found.runs, found.open_runs, time.monotonic() - began)


def inspect(path: Path) -> Backup:
    """Check that this is a sound database of weft that this version can open. Raises BackupUnusable, SchemaTooNew,
    SchemaUnreleased."""
    try:
        with closing(open_read_only(path)) as db:
            lines = [line for (line,) in db.execute("PRAGMA integrity_check(5)")]
            if lines != ["ok"]:
                raise BackupUnusable(f"the file {path} is damaged: {lines[0]}", hint="use another backup")
            refuse_others(db, str(path))
            schema = version_of(db)
            refuse_newer(schema, packaged_migrations()[-1].number, f"the file {path}")
            ended = "status IN ('succeeded', 'failed', 'cancelled')"
            query = f"SELECT count(*), count(*) FILTER (WHERE NOT {ended}) FROM runs"  # noqa: S608 - constants
            runs, still_open = db.execute(query).fetchone()
    except ForeignDatabase as error:
        raise BackupUnusable(error.message, hint="use another file") from error
    except sqlite3.Error as error:
        raise BackupUnusable(f"the file {path} is not a weft database: {error}", hint="use another") from error
    return Backup(str(path), path.stat().st_size, schema, runs, still_open)


def restore(source: Path, database: Path, *, replace: bool = False) -> tuple[Backup, Path | None]:
    """Put the copy `source` in the place of `database`, which is kept beside it; the second value is its path. Leases
    of the copy are freed. Raises BackupUnusable, SchemaTooNew, Conflict (it is not to be replaced, or in use),
    OSError."""
    found = inspect(source)
    if database.exists() and not replace:
        raise Conflict(
            f"the database {database} already exists",
            code="file_exists",
            hint="use --force to replace it; the current file is kept next to the new one",
        )
    database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with draft_of(database) as draft:
        _copy(source, draft)
        with closing(sqlite3.connect(draft, isolation_level=None)) as db:
            db.execute("UPDATE heads SET owner = NULL WHERE owner IS NOT NULL")
            db.execute("DELETE FROM workers")
            db.execute("DELETE FROM writers")
        _sync(draft)
        moved = _put_aside(database)
        os.replace(draft, database)
        _sync(database.parent)
    return found, moved


def in_use(database: Path) -> bool:
    """Return True if another process has this database open. Takes an exclusive lock, which no other connection allows.
    Raises DatabaseUnavailable if only its log is there."""
    check_log(str(database))
    with closing(sqlite3.connect(database, isolation_level=None, timeout=0)) as db:
        return not have_it_alone(db)


def vacuum(database: Path) -> None:
    """Write the file anew without its empty pages. Needs it alone and as much free disk again. Raises Conflict."""
    with closing(sqlite3.connect(database, isolation_level=None, timeout=0)) as db:
        if not have_it_alone(db):
            raise in_use_by(f"a process is using {database}")
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def in_use_by(what: str) -> Conflict:
    hint = "stop each `weft serve` and `weft worker`, then try again"
    return Conflict(what, code="database_in_use", hint=hint)


def have_it_alone(db: sqlite3.Connection) -> bool:
    """Return True if no other connection has it open. With `locking_mode` exclusive the first access locks the whole
    file for as long as the connection is open."""
    db.execute("PRAGMA locking_mode = EXCLUSIVE").fetchone()
    try:
        db.execute("BEGIN IMMEDIATE")
        db.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return False
        raise
    return True


def _put_aside(database: Path) -> Path | None:
    """Rename the database, with its WAL if that cannot be written back, or a WAL alone: SQLite would apply it to the
    file that has the name next. Returns the new name, or None if there was nothing."""
    aside = database.with_name(f"{database.name}.before-{time.strftime('%Y%m%dT%H%M%S')}-{secrets.token_hex(2)}")
    moved: Path | None = None
    if database.exists():
        try:
            check_log(str(database))
            with closing(sqlite3.connect(database, isolation_level=None, timeout=0)) as db:
                if not have_it_alone(db):
                    raise in_use_by(f"a process is using {database}")
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                os.replace(database, aside)  # while no other process can open it
        except (sqlite3.DatabaseError, DatabaseUnavailable):  # too damaged even for this
            os.replace(database, aside)
        moved = aside
    for end in ("-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            os.replace(database.with_name(database.name + end), aside.with_name(aside.name + end))
            moved = moved or aside.with_name(aside.name + end)
    return moved


def _is_copy(path: Path) -> bool:
    """Return True if this may be an earlier copy: `--force` is not meant for the key file, or a folder."""
    try:
        with path.open("rb") as file:
            return file.read(16) in (b"", b"SQLite format 3\0")
    except IsADirectoryError:
        return False


def _copy(source: Path, draft: Path) -> None:
    """Make an online backup of one snapshot. The result is one file: no WAL of its own."""
    with closing(open_read_only(source)) as db, closing(sqlite3.connect(draft, isolation_level=None)) as copy:
        refuse_others(db, str(source))
        # A read transaction of our own: without one every commit of the writer would start the copy anew.
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        db.backup(copy, pages=PAGES_PER_STEP, progress=lambda status, left, total: time.sleep(PAUSE_S))
        db.execute("ROLLBACK")
        copy.execute("PRAGMA journal_mode = DELETE").fetchone()


def _sync(path: Path) -> None:
    if os.name == "nt" and path.is_dir():
        return  # directories cannot be synced there
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- drafts ---


if sys.platform != "win32":
    import fcntl

OWNER: Final = "-owner"  # suffix of the locked file beside a draft
NAME: Final = re.compile(r".+\.[0-9a-f]{16}\.part")
# Without a lock, as on Windows: a draft without a write for so long is of a process that was killed.
KEPT_S: Final = 3600.0


class Draft:
    """An empty file for its owner only. `close` removes it, unless it has another name by then."""

    def __init__(self, target: Path) -> None:
        clear_away(target.parent)
        while True:
            self.path = target.with_name(f"{target.name}.{secrets.token_hex(8)}.part")
            owner = self.path.with_name(self.path.name + OWNER)
            self._owner = os.open(owner, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            if _is_free(self._owner, owner):
                break
            os.close(self._owner)  # another process took it for an abandoned one
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        _remove(self.path)
        os.close(self._owner)


@contextmanager
def draft_of(target: Path) -> Iterator[Path]:
    draft = Draft(target)
    try:
        yield draft.path
    finally:
        draft.close()


def clear_away(folder: Path) -> None:
    for owner in folder.glob(f"*.part{OWNER}"):
        draft = owner.with_name(owner.name.removesuffix(OWNER))
        if NAME.fullmatch(draft.name):
            with suppress(OSError):
                _remove_if_left(draft, owner)


def _remove_if_left(draft: Path, owner: Path) -> None:
    descriptor = os.open(owner, os.O_RDWR)
    try:
        left = _is_free(descriptor, owner)
        if left and sys.platform == "win32":
            left = max(path.stat().st_mtime for path in (owner, draft) if path.exists()) < time.time() - KEPT_S
        if left:
            _remove(draft)
    finally:
        os.close(descriptor)


def _is_free(descriptor: int, path: Path) -> bool:
    """Return True if this process has locked the file now, and the file is still there."""
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _remove(draft: Path) -> None:
    """Remove a draft, the owner's file last: as long as it is there, the rest is found."""
    for end in ("", "-journal", "-wal", "-shm", OWNER):
        with suppress(FileNotFoundError):
            os.unlink(f"{draft}{end}")
