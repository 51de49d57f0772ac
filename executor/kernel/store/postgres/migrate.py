"""Brings a PostgreSQL database to the schema of this code: numbered SQL files, forward only, all that are missing in
one transaction, and one process at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from executor.errors import ForeignDatabase, SchemaUnreleased
from executor.kernel.store.migrate import Migration, refuse_newer
from executor.kernel.store.postgres.connection import Session, Tx

LOCK: Final = 0x77656674  # "weft": the advisory lock of migrations
# Databases of before the first release, whose schemas had numbers of their own, have no column `release`.
VERSION = "SELECT version, to_jsonb(s) ? 'release' FROM weft_schema AS s"
UNRELEASED_MIN: Final = 13
HAS_VERSION = "SELECT to_regclass('weft_schema') IS NOT NULL"
# Tables of another program: a database of weft has none before its first schema.
HAS_TABLES = "SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema())"


def migrate(session: Session, migrations: Sequence[Migration]) -> int:
    """Apply what is missing. Returns the version of the database now. Raises ForeignDatabase, SchemaTooNew,
    SchemaUnreleased, psycopg.Error: each leaves the database as it was."""
    newest = migrations[-1].number
    with session.without_limit(), session.tx("migrate") as tx:
        tx.cursor.execute("SET LOCAL lock_timeout = 60000")
        tx.cursor.execute("SET LOCAL statement_timeout = 0")
        tx.cursor.execute("SELECT pg_advisory_xact_lock(%(lock)s)", {"lock": LOCK})
        found = _version(tx)
        refuse_newer(found, newest)
        if found == newest:
            return found
        if not found:
            tx.cursor.execute("CREATE TABLE weft_schema (version bigint NOT NULL, release text NOT NULL)")
            tx.cursor.execute("INSERT INTO weft_schema VALUES (0, '0.1.0')")
        for migration in migrations:
            if migration.number > found:
                tx.cursor.execute(cast(Any, migration.sql))  # a text without parameters may have many statements
        tx.cursor.execute("UPDATE weft_schema SET version = %(version)s", {"version": newest})
    return newest


def _version(tx: Tx) -> int:
    if tx.row(HAS_VERSION)[0]:
        return released("the database", *tx.row(VERSION))
    if tx.row(HAS_TABLES)[0]:
        raise ForeignDatabase(
            "the database has tables of another program",
            hint="Create an empty database for weft, and name that with WEFT_DB.",
        )
    return 0


def released(name: str, version: int, is_released: bool) -> int:
    if not is_released:
        raise SchemaUnreleased(name, version, UNRELEASED_MIN)
    return version
