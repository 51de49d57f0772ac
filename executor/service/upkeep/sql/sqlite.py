"""Read-only SQL on a SQLite file: it is opened read-only, and an authorizer lets no statement attach, change, load or
set anything. The generated views are temporary views of the connection."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from compiler.catalog import Catalog
from executor.errors import QueryRefused
from executor.kernel.store.sqlite.reading import SQLiteReading, open_read_only
from executor.service.upkeep.sql.asking import Asking, Dialect, Query, Rows, as_text, literal, quoted, refused, too_long

VALUE_MAX_BYTES = 64 * 1024 * 1024  # no text function makes a larger value
STEPS_PER_LOOK = 10_000  # steps of SQLite's machine between two checks of the clock

_STORED = """
SELECT sql FROM sqlite_schema WHERE type = 'view' AND name IN ('events', 'outputs', 'attempts', 'nodes')"""
_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
_PRAGMAS = {
    "compile_options",
    "database_list",
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "page_count",
    "page_size",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
}
_TAKES_NAME = {name for name in _PRAGMAS if name.endswith(("_info", "_xinfo", "_list")) and name != "database_list"}
_FUNCTIONS_REFUSED = {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"}


class SQLiteAsking(Asking):
    def __init__(self, db: sqlite3.Connection, name: str, catalog: Catalog, env_names: Sequence[str]) -> None:
        super().__init__(SQLiteReading(db, name), SQLITE, catalog, env_names)
        self._db = db

    def query(
        self, sql: str, parameters: Sequence[Any] = (), *, timeout_s: float = 10.0, rows_max: int = 1000
    ) -> Query:
        deadline = time.monotonic() + timeout_s
        self._db.set_progress_handler(lambda: time.monotonic() > deadline, STEPS_PER_LOOK)
        try:
            cursor = self._db.execute(sql, parameters)
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise _refused(error) from error
        return Query(tuple(column[0] for column in cursor.description or ()), _rows(cursor), rows_max)


def _rows(cursor: sqlite3.Cursor) -> Rows:
    try:
        for row in cursor:
            yield tuple(as_text(value) if isinstance(value, bytes) else value for value in row)
    except sqlite3.Error as error:
        raise _refused(error) from error


def open_asking(path: Path, catalog: Catalog, env_names: Sequence[str] = (), last: int | None = None) -> SQLiteAsking:
    """Raises sqlite3.Error if the file is not a database of weft."""
    db = open_read_only(path)
    try:
        asking = SQLiteAsking(db, str(path), catalog, env_names)
        db.execute("PRAGMA query_only = 0")  # views of the connection are in its own temporary database
        for view in asking.views:
            db.execute(f"CREATE TEMP VIEW {quoted(view.name)} AS {view.sql}")
        steps = SQLITE.steps
        if last is not None:
            _narrow(db, last)
            steps = steps.replace("main.", "")
        db.execute(f"CREATE TEMP VIEW steps AS {steps}")
        db.execute("PRAGMA query_only = 1")
        db.text_factory = lambda data: data.decode(errors="replace")
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_MAX_BYTES)
        db.execute("SELECT 1 FROM json_each('[]')").fetchall()  # it is made at its first use, which would be refused
        db.set_authorizer(_authorize)
    except BaseException:
        db.close()
        raise
    return asking


def _narrow(db: sqlite3.Connection, last: int) -> None:
    """Make views of journals that have the newest runs only. A temporary view reads temporary ones first."""
    newest = f"SELECT n FROM main.run_details ORDER BY created_at_ms DESC, id DESC LIMIT {last:d}"  # noqa: S608
    db.execute(f"CREATE TEMP VIEW run_details AS SELECT * FROM main.run_details WHERE n IN ({newest})")  # noqa: S608
    for (view,) in db.execute(_STORED).fetchall():
        db.execute(view.replace("CREATE VIEW", "CREATE TEMP VIEW", 1))


def _property(key: str, schema: Any) -> str:
    """Select a property. A value of another kind than in its schema stays as it is."""
    path = literal(f'$."{key}"')
    value = f"json_extract(value, {path})"
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind == "integer":  # 3.0 is an integer in JSON Schema
        return f"CASE json_type(value, {path}) WHEN 'real' THEN CAST({value} AS INTEGER) ELSE {value} END"
    if kind == "number":
        return f"CASE json_type(value, {path}) WHEN 'integer' THEN CAST({value} AS REAL) ELSE {value} END"
    return value


SQLITE: Final = Dialect(
    main="main.",
    each="json_each(b.head) AS e",
    place="e.key",
    text="CAST({} AS TEXT)",
    data="CAST({} AS TEXT)",
    has="instr({}, {})",
    value="output",
    column=_property,
)


def _authorize(action: int, first: str | None, second: str | None, database: str | None, source: str | None) -> int:
    match action:
        case _ if action in _READING:
            return sqlite3.SQLITE_OK
        case sqlite3.SQLITE_FUNCTION:
            return sqlite3.SQLITE_DENY if (second or "").lower() in _FUNCTIONS_REFUSED else sqlite3.SQLITE_OK
        case sqlite3.SQLITE_PRAGMA:
            name = (first or "").lower()
            only_asks = name in _PRAGMAS and (second is None or name in _TAKES_NAME)
            return sqlite3.SQLITE_OK if only_asks else sqlite3.SQLITE_DENY
        case _:
            return sqlite3.SQLITE_DENY


def _refused(error: Exception) -> QueryRefused:
    text = str(error)
    if text == "interrupted":
        return too_long()
    changes = "not authorized" in text or "prohibited" in text or text.startswith("cannot modify ")
    return refused(text, changes=changes, tables=".schema is: SELECT sql FROM sqlite_master")
