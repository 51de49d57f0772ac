"""A whole database from SQLite to PostgreSQL, or back: `weft migrate-store`. And once, to any new database, from the
last schemas of before the first release.

Rows are the same on both, so tables are copied as they are; but an append on SQLite does not write the head of its run,
and leases are not copied. All or nothing: a file gets its name, and a transaction is committed, when the rows of each
table and the events of each run have been read back and are those of the source."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from executor.errors import Conflict, SchemaUnreleased, StoreError
from executor.kernel.store.batches import BATCH, JOURNAL, records_of
from executor.kernel.store.migrate import migrate, packaged_migrations, refuse_newer
from executor.kernel.store.reading import Reading
from executor.kernel.store.run_rows import Record
from executor.kernel.store.sqlite.connection import Database, check_log, plain_connect, sync_directory
from executor.kernel.store.sqlite.reading import SQLiteReading
from executor.kernel.store.statements import LAST_SEQ, Row
from executor.service.upkeep.backup import Draft, have_it_alone, in_use_by

if TYPE_CHECKING:
    from executor.service.upkeep.transfer_postgres import ServerSource, ServerTarget

SEQ_MAX = 2**53
RUNS_PAGE = 500
OF_PROCESSES = ("workers", "writers", "weft_schema")
DIGEST_BITS = 256
_BATCH = ("n", *BATCH.split(", "))
_RUNS = "SELECT n, id FROM run_details WHERE n > :after ORDER BY n LIMIT :limit"
# The expressions for columns of `heads`.
_OF_HEADS = {
    "seq": f"{LAST_SEQ} AS seq",
    "stalls": f"CASE WHEN {LAST_SEQ} > seq THEN 0 ELSE stalls END AS stalls",
    "owner": "NULL AS owner",
}


class Copied(Struct, frozen=True):
    """The content of one table, or of all journals: the number of rows, and the sum of their hashes."""

    name: str
    count: int
    digest: str


def transfer(source: Path | str, target: Path | str, report: Callable[[Copied], None] = lambda table: None) -> None:
    """Copy a database. `report` is called for each table that was read back. Raises Conflict if a process has
    the source open, the target is not empty, or both are of one kind; StoreError, on SQLite sqlite3.Error."""
    held = _source(source)
    try:
        if not _is_unreleased(held.reading) and isinstance(source, Path) == isinstance(target, Path):
            raise Conflict(
                "one of the two must be a SQLite file and the other a PostgreSQL address",
                code="same_kind",
                hint="files: weft backup and weft restore; PostgreSQL: pg_dump and pg_restore",
            )
        new = _target(target)
        try:
            for copied in _copy(held.reading, new):
                report(copied)
            new.finish()
        finally:
            new.close()
    finally:
        held.close()


def _is_unreleased(source: Reading) -> bool:
    """Return True if the source has one of the last schemas from before the first release, whose tables are those of
    schema 1. Raises SchemaTooNew, Conflict, SchemaUnreleased."""
    try:
        found, newest = source.schema()
    except SchemaUnreleased as error:
        if not error.old_enough:
            raise
        if "old_events" in source.tables() and source.rows("SELECT 1 FROM old_events LIMIT 1"):
            raise Conflict(
                f"{source.name} has events as rows of their own, which this weft does not read",
                code="schema_old",
                hint="`weft migrate-store` of the version that wrote it, to PostgreSQL, makes batches of them",
            ) from None
        return True
    refuse_newer(found, newest, "the source")
    if found < newest:
        raise Conflict(
            f"the source has schema {found}, this weft has {newest}",
            code="schema_old",
            hint="start `weft serve` on it once to update it, and stop it again",
        )
    return False


def _source(database: Path | str) -> FileSource | ServerSource:
    """Return the database to copy: one moment of it, and no process writes to it until it is closed."""
    if isinstance(database, Path):
        return FileSource(database)
    from executor.service.upkeep.transfer_postgres import ServerSource

    return ServerSource(database)


def _target(database: Path | str) -> FileTarget | ServerTarget:
    """Return an empty database of the newest schema. `reading` sees added rows; only `finish` makes them last."""
    if isinstance(database, Path):
        return FileTarget(database)
    from executor.service.upkeep.transfer_postgres import ServerTarget

    return ServerTarget(database)


def _copy(source: Reading, target: FileTarget | ServerTarget) -> Iterator[Copied]:
    tables = {name: columns for name, columns in target.reading.tables().items() if name not in OF_PROCESSES}
    here = source.tables()
    for table, columns in tables.items():
        if table == "batches":
            continue
        assert set(here[table]) <= set(columns), table
        columns = [name for name in columns if name in here[table]]  # the others were added since, with a default
        query = _query(table, columns)
        before, after = _Sum(), _Sum()
        target.add(table, tuple(columns), before.of(source.each(query)))
        for _ in after.of(target.reading.each(query)):
            pass
        yield _same(table, before, after)
    before, after = _Sum(), _Sum()
    target.add("batches", _BATCH, _journals(source, before))
    for _, run in _runs(target.reading):
        after.add(_digest(run, records_of(run, target.reading.each(JOURNAL, _all_of(run)))))
    yield _same("journals", before, after)


def _query(table: str, columns: list[str]) -> str:
    asked = [_OF_HEADS.get(name, f'"{name}"') if table == "heads" else f'"{name}"' for name in columns]
    return f'SELECT {", ".join(asked)} FROM "{table}"'  # noqa: S608 - names of the schema


def _same(name: str, before: _Sum, after: _Sum) -> Copied:
    if (before.count, before.digest) != (after.count, after.digest):
        raise StoreError(
            f"{name}: {after.count} were read back instead of {before.count}, or not what was written",
            hint="the target was left as it was; try again, and report this",
        )
    return Copied(name, before.count, f"{before.digest:064x}")


# --- journals


def _runs(db: Reading) -> Iterator[tuple[int, str]]:
    after = -(2**63)
    while page := db.rows(_RUNS, {"after": after, "limit": RUNS_PAGE}):
        yield from page
        after = page[-1][0]


def _all_of(run: str) -> dict[str, Any]:
    return {"run": run, "after": 0, "upto": SEQ_MAX}


def _journals(source: Reading, total: _Sum) -> Iterator[Row]:
    for n, run in _runs(source):
        rows = source.rows(JOURNAL, _all_of(run))
        total.add(_digest(run, records_of(run, rows)))
        for row in rows:
            yield (n, *row)


def _digest(run: str, records: Iterable[Record]) -> int:
    hash = hashlib.sha256(run.encode())
    for record in records:
        _feed(hash, (record.seq, record.at_ms, record.type, record.node, record.path, record.attempt))
        _feed(hash, (record.data, record.output))
    return int.from_bytes(hash.digest(), "big")


# --- hashes


class _Sum:
    """A sum of hashes, in any order: a row is in its table once."""

    def __init__(self) -> None:
        self.count = 0
        self.digest = 0

    def add(self, digest: int) -> None:
        self.count += 1
        self.digest = (self.digest + digest) % (1 << DIGEST_BITS)

    def of(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            hash = hashlib.sha256()
            _feed(hash, row)
            self.add(int.from_bytes(hash.digest(), "big"))
            yield row


def _feed(hash: Any, values: Iterable[Any]) -> None:
    for value in values:
        kind = "b" if isinstance(value, bytes) else "-" if value is None else "n" if isinstance(value, int) else "t"
        data = value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")
        hash.update(f"{kind}{len(data)}:".encode())
        hash.update(data)


# --- SQLite files ---


class FileSource:
    """Held alone: no other process can open it meanwhile."""

    def __init__(self, path: Path) -> None:
        check_log(str(path))
        self._db = sqlite3.connect(f"file:{path.absolute()}?mode=rw", uri=True, isolation_level=None, timeout=0)
        self.reading: Reading = SQLiteReading(self._db, str(path))
        try:
            if not have_it_alone(self._db):
                raise in_use_by(f"a process is using {path}")
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        self._db.close()


class FileTarget:
    """Made under another name; `finish` gives it its own."""

    def __init__(self, path: Path) -> None:
        for there in (path, path.with_name(f"{path.name}-wal")):
            if there.exists():
                raise Conflict(f"the file {there} already exists", code="file_exists", hint="choose another name")
        self._path = path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._draft = Draft(path)
        database = Database(str(self._draft.path), 0, plain_connect, lambda name: None)
        try:
            migrate(database, packaged_migrations())
        except BaseException:
            database.drop()
            self._draft.close()
            raise
        database.drop()
        self._db = sqlite3.connect(self._draft.path, isolation_level=None)
        self._db.execute("PRAGMA foreign_keys = OFF")
        self.reading: Reading = SQLiteReading(self._db, str(path))
        self._db.execute("BEGIN")

    def add(self, table: str, columns: tuple[str, ...], rows: Iterable[Row]) -> None:
        names = ", ".join(f'"{name}"' for name in columns)
        marks = ", ".join("?" * len(columns))
        self._db.executemany(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', rows)  # noqa: S608 - of the schema

    def finish(self) -> None:
        self._db.execute("COMMIT")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._db.close()
        descriptor = os.open(self._draft.path, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.link(self._draft.path, self._path)  # does not replace a file that another process has just made
        os.unlink(self._draft.path)
        sync_directory(str(self._path))

    def close(self) -> None:
        self._db.close()
        self._draft.close()
