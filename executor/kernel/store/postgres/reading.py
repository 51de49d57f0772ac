"""A session that only reads a PostgreSQL database (see `executor.kernel.store.reading`).

Everything is read in transactions that are READ ONLY, and with settings that end with them: the session may be one of a
pool (pgbouncer) that others use before and after.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from executor.errors import DatabaseUnavailable, ForeignDatabase
from executor.kernel.store.migrate import packaged_migrations
from executor.kernel.store.postgres.connection import check_address, prepare
from executor.kernel.store.postgres.dialect import TEXTS
from executor.kernel.store.postgres.errors import message_of
from executor.kernel.store.postgres.limited import reachable
from executor.kernel.store.postgres.migrate import HAS_TABLES, HAS_VERSION, VERSION, released
from executor.kernel.store.postgres.parts import LOOSE, RETIRED
from executor.kernel.store.reading import READING_MAX_S, Column, Kind
from executor.kernel.store.statements import Row, Values

ROWS_AT_A_TIME = 100
PAUSED_MAX_S = 600  # of a reader between two statements; meanwhile its snapshot keeps old rows from being removed
DAMAGED = ("XX001", "XX002")  # SQLSTATEs: data, index corrupted
_TABLES = f"""
SELECT table_name, column_name FROM information_schema.columns AS c JOIN information_schema.tables AS t
       USING (table_schema, table_name)
 WHERE table_schema = current_schema() AND t.table_type = 'BASE TABLE'
   AND NOT (quote_ident(table_schema) || '.' || quote_ident(table_name))::regclass IN (SELECT inhrelid FROM pg_inherits)
   AND table_name NOT IN ({LOOSE})
 ORDER BY table_name, ordinal_position"""
_TEXTS = """
SELECT column_name, data_type FROM information_schema.columns
 WHERE table_schema = current_schema() AND table_name = :table AND data_type IN ('text', 'bytea', 'json', 'jsonb')
 ORDER BY ordinal_position"""
_IDENTITY = """
SELECT system_identifier::text || ':' || oid::text FROM pg_control_system(), pg_database
 WHERE datname = current_database()"""
# The references that the schema declares on SQLite (a test compares); PostgreSQL does not check them on writes.
REFERENCES = (
    ("active_versions", "workflow, version", "workflows", "name, version"),
    ("batches", "n", "run_details", "n"),
    ("blob_refs", "hash", "blobs", "hash"),
    ("blob_refs", "run_id", "run_details", "id"),
    ("checkpoints", "run_id", "run_details", "id"),
    ("heads", "n", "run_details", "n"),
    ("inbox", "run_id", "run_details", "id"),
    ("notifications", "run_id", "run_details", "id"),
    ("run_details", "document_hash", "documents", "hash"),
    ("run_details", "plan_hash", "plans", "hash"),
    ("signals", "run_id", "run_details", "id"),
    ("snapshots", "n", "run_details", "n"),
    ("waits", "run_id", "run_details", "id"),
)


def open_reading(address: str) -> PostgresReading:
    check_address("WEFT_DB or --db", address)
    with _unavailable():
        connection = psycopg.connect(reachable(address), autocommit=True, prepare_threshold=None)
    prepare(connection)
    return PostgresReading(connection, name_of(address))


def write_beside(address: str, sql: str, values: Values) -> None:
    """One statement in a session of its own, for what a reader remembers. Raises DatabaseUnavailable."""
    with _unavailable(), psycopg.connect(reachable(address), autocommit=True, prepare_threshold=None) as connection:
        prepare(connection)
        connection.execute(cast(Any, TEXTS[sql]), values)


def name_of(address: str) -> str:
    parts = conninfo_to_dict(address)
    return f"PostgreSQL database {parts.get('dbname') or parts.get('user') or ''} at {parts.get('host') or 'localhost'}"


class PostgresReading:
    kind: Kind = "PostgreSQL"

    def __init__(self, connection: psycopg.Connection[Row], name: str) -> None:
        self.connection = connection
        self.name = name
        self._open = 0  # cursors

    def rows(self, sql: str, values: Values = ()) -> list[Row]:
        with self.snapshot(), _unavailable():
            return self.connection.execute(cast(Any, TEXTS[sql]), values).fetchall()

    def each(self, sql: str, values: Values = ()) -> Iterator[Row]:
        """Its cursor has the same name each time, so that pg_stat_statements counts its statements together."""
        name = f"reading_{self._open}" if self._open else "reading"
        self._open += 1
        try:
            yield from self._each(name, sql, values)
        finally:
            self._open -= 1

    def _each(self, name: str, sql: str, values: Values) -> Iterator[Row]:
        with self.snapshot(), _unavailable(), self.connection.cursor(name) as cursor:
            cursor.itersize = ROWS_AT_A_TIME
            yield from cursor.execute(cast(Any, TEXTS[sql]), values)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        if self.connection.info.transaction_status != TransactionStatus.IDLE:
            yield
            return
        with _unavailable():
            self.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            with _unavailable():
                self.connection.execute(
                    cast(
                        Any,
                        f"SET LOCAL statement_timeout = '{READING_MAX_S}s'; SET LOCAL jit = off;"
                        f" SET LOCAL idle_in_transaction_session_timeout = '{PAUSED_MAX_S}s'",
                    )
                )
            yield
        finally:
            if not self.connection.closed:
                with _unavailable():
                    self.connection.execute("ROLLBACK")

    def schema(self) -> tuple[int, int]:
        with self.snapshot():
            newest = packaged_migrations("postgres")[-1].number
            if self.rows(HAS_VERSION) == [(True,)]:
                return released(f"the {self.name}", *self.rows(VERSION)[0]), newest
            if self.rows(HAS_TABLES) == [(True,)]:
                raise ForeignDatabase(
                    f"the {self.name} has tables of another program", hint="Set another database with --db or WEFT_DB."
                )
            return 0, newest

    def identity(self) -> str:
        ((id,),) = self.rows(_IDENTITY)
        return str(id)

    def unsound(self, limit: int) -> Iterator[str]:
        """Pages are checked by PostgreSQL as they are read (`data_checksums`); this reads references alone."""
        for table, columns, parent, keys in REFERENCES:
            mine = ", ".join(f"c.{name.strip()}" for name in columns.split(","))
            theirs = ", ".join(f"p.{name.strip()}" for name in keys.split(","))
            present = " AND ".join(f"c.{name.strip()} IS NOT NULL" for name in columns.split(","))
            if table == "batches":  # a part that is being dropped has those of runs that are deleted already
                present += f" AND c.tableoid NOT IN ({RETIRED})"
            query = f"""SELECT {mine} FROM {table} AS c WHERE {present}
              AND NOT EXISTS (SELECT 1 FROM {parent} AS p WHERE ({theirs}) = ({mine})) LIMIT {limit:d}"""
            for row in self.rows(query):
                key = ", ".join(map(str, row))
                yield f"row {key} of {table} refers to a missing row of {parent}"

    def damage(self, error: Exception) -> str | None:
        cause = error.__cause__ if isinstance(error, DatabaseUnavailable) else error
        if isinstance(cause, psycopg.Error) and cause.sqlstate in DAMAGED:
            return f"PostgreSQL: {str(cause).strip()}"
        return None

    def tables(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for table, column in self.rows(_TABLES):
            found.setdefault(table, []).append(column)
        return found

    def texts(self, table: str) -> list[Column]:
        return [
            Column(name, f"position({{}} in {_as_bytes(name, kind)}) > 0")
            for name, kind in self.rows(_TEXTS, {"table": table})
        ]

    def clock_ms(self) -> int:
        ((now_ms,),) = self.rows("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        return int(now_ms)

    def close(self) -> None:
        self.connection.close()


def _as_bytes(name: str, kind: str) -> str:
    return f'"{name}"' if kind == "bytea" else f"convert_to(\"{name}\"::text, 'UTF8')"


@contextmanager
def _unavailable() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise DatabaseUnavailable(f"the database cannot be read: {message_of(error)}") from error
