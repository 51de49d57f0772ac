"""A PostgreSQL database as the source or the target of `transfer`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import psycopg

from executor.errors import BadRequest, Conflict, DatabaseUnavailable
from executor.kernel.store.migrate import packaged_migrations
from executor.kernel.store.postgres.connection import Session, check_address, prepare
from executor.kernel.store.postgres.limited import reachable
from executor.kernel.store.postgres.migrate import HAS_VERSION, migrate
from executor.kernel.store.postgres.parts import PARTS, SEQUENCE, WIDTH, begin, part_of
from executor.kernel.store.postgres.reading import PostgresReading, name_of
from executor.kernel.store.reading import Reading
from executor.kernel.store.statements import Row
from executor.service.upkeep.backup import in_use_by

NAME = "weft migrate-store"
LOCK_WAIT_S = 10
NOT_FREE = "55P03"  # SQLSTATE: a lock was not to be had in time
_SETTINGS = "; ".join(
    f"SET LOCAL {name} = {value}"
    for name, value in (
        ("lock_timeout", f"'{LOCK_WAIT_S}s'"),
        ("statement_timeout", "0"),
        ("idle_in_transaction_session_timeout", "0"),
    )
)
_LIVE_WORKERS = "SELECT count(*) FROM workers WHERE until_ms > extract(epoch FROM clock_timestamp()) * 1000"
_SESSIONS = """
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'weft%'"""
_COUNTERS = """
SELECT table_name, column_name FROM information_schema.columns
 WHERE table_schema = current_schema() AND is_identity = 'YES'"""


class ServerSource:
    """One snapshot, with a lock that keeps other processes from writing."""

    def __init__(self, address: str) -> None:
        self._db = _connect(address)
        self.reading: Reading = PostgresReading(self._db, name_of(address))
        try:
            if self.reading.rows(HAS_VERSION) == [(True,)]:
                self._hold()
        except BaseException:
            self._db.close()
            raise

    def _hold(self) -> None:
        tables = ", ".join(f'"{table}"' for table in self.reading.tables())
        with _translated(self.reading.name):
            # Locks first: the snapshot is that of the first statement after them.
            self._db.execute(cast(Any, f"BEGIN ISOLATION LEVEL REPEATABLE READ; {_SETTINGS}"))
            self._db.execute(cast(Any, f"LOCK TABLE {tables} IN SHARE MODE"))
        _refuse_used(self.reading)

    def close(self) -> None:
        self._db.close()


class ServerTarget:
    """Filled in one transaction."""

    def __init__(self, address: str) -> None:
        self._db = _connect(address)
        self.reading: Reading = PostgresReading(self._db, name_of(address))
        try:
            session = Session(address, lambda name: None)
            try:
                with _translated(self.reading.name):
                    migrate(session, packaged_migrations("postgres"))
            finally:
                session.drop()
            with _translated(self.reading.name):
                self._db.execute(cast(Any, f"BEGIN; {_SETTINGS}"))
                self._refuse_filled()
        except BaseException:
            self._db.close()
            raise

    def _refuse_filled(self) -> None:
        for table in self.reading.tables():
            if table == "weft_schema":
                continue
            self._db.execute(cast(Any, f'LOCK TABLE "{table}" IN ACCESS EXCLUSIVE MODE'))
            if table != "writers" and self.reading.rows(f'SELECT 1 FROM "{table}" LIMIT 1'):  # noqa: S608 - a name of the schema
                raise Conflict(
                    f"the {self.reading.name} is not empty: {table} has rows",
                    code="target_not_empty",
                    hint="create a new database (createdb) and name that",
                )
        _refuse_used(self.reading)

    def add(self, table: str, columns: tuple[str, ...], rows: Iterable[Row]) -> None:
        if table == "batches":
            self._make_room()
        names = ", ".join(f'"{name}"' for name in columns)
        command = cast(Any, f'COPY "{table}" ({names}) FROM STDIN')
        with _translated(self.reading.name, table), self._db.cursor() as cursor, cursor.copy(command) as copy:
            for row in rows:
                copy.write_row(row)

    def _make_room(self) -> None:
        """Make one part of the journals for all runs. It may have been used before, and emptied."""
        with _translated(self.reading.name):
            ((highest,),) = self.reading.rows(
                f"SELECT greatest(max(n), (SELECT last_value FROM {SEQUENCE})) FROM run_details"  # noqa: S608
            )
            parts = [part_of(row) for row in self.reading.rows(PARTS)]
            statements = [f"DROP TABLE {part.name}" for part in parts if part.lo is not None]
            for statement in (*statements, *begin("batches_first", 0, (highest // WIDTH + 1) * WIDTH)):
                self._db.execute(cast(Any, statement))

    def finish(self) -> None:
        with _translated(self.reading.name):
            for table, column in self.reading.rows(_COUNTERS):
                self._db.execute(
                    cast(
                        Any,
                        f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), max({column}))"  # noqa: S608
                        f' FROM "{table}" HAVING max({column}) > 0',
                    )
                )
            self._db.execute("COMMIT")
            self._db.execute("ANALYZE")

    def close(self) -> None:
        self._db.close()


def _connect(address: str) -> psycopg.Connection[Row]:
    check_address("an address", address)
    with _translated("database"):
        connection = psycopg.connect(reachable(address), autocommit=True, prepare_threshold=None, application_name=NAME)
    prepare(connection)
    return connection


def _refuse_used(db: Reading) -> None:
    ((workers,),), ((sessions,),) = db.rows(_LIVE_WORKERS), db.rows(_SESSIONS)
    if workers or sessions:
        what = f"{workers} workers have runs of it" if workers else f"{sessions} sessions of weft are open"
        raise Conflict(
            f"the {db.name} is in use: {what}",
            code="database_in_use",
            hint="stop each `weft serve` and `weft worker` (and close the sessions of a pool), then try again",
        )


@contextmanager
def _translated(name: str, table: str = "") -> Iterator[None]:
    try:
        yield
    except psycopg.DataError as error:
        raise BadRequest(
            f"PostgreSQL cannot store a text in {table or name}: {str(error).strip()}", code="text_not_storable"
        ) from error
    except psycopg.Error as error:
        if error.sqlstate == NOT_FREE:
            raise in_use_by(f"the {name} is in use") from error
        raise DatabaseUnavailable(f"the {name} cannot be used: {str(error).strip()}") from error
