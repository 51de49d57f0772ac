"""A query on a SQLite file, in a thread. Everything that leads out of the file is refused by an authorizer."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import orjson

from executor.databases import refusals
from executor.databases.rows import BYTES_MAX, Answer, Gathered, Query
from executor.databases.statement import names
from executor.errors import BlockError

FILE_BYTES_MAX: Final = 4 * 1024**3  # a query that would make the file larger fails
LOCK_S: Final = 5.0  # how long to wait for other programs; the database does not react to an interrupt meanwhile
STEPS: Final = 20_000  # steps of SQLite's machine between two checks of the clock: about a millisecond
LIKE_MAX: Final = 1_000  # characters of a pattern, which costs their number times that of the text

_READS: Final = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
_PRAGMAS: Final = frozenset(
    {"data_version", "foreign_key_list", "function_list", "index_info", "index_list", "index_xinfo", "table_info",
     "table_list", "table_xinfo"}
)  # fmt: skip
_FUNCTIONS: Final = frozenset({"load_extension", "fts3_tokenizer"})
_MODULES: Final = frozenset({"fts5", "fts4", "rtree"})
_NEAR: Final = re.compile(r'near "(.+)": syntax error|no such column: (\S+)|no such table: (\S+)', re.DOTALL)


class SqliteCall:
    """One query. `run` is for a thread, `stop` ends it from another one."""

    def __init__(self, path: Path, query: Query) -> None:
        self._path = path
        self._query = query
        self._until = time.monotonic() + query.timeout_s
        self._stopped = threading.Event()
        self._connection: sqlite3.Connection | None = None
        self._denied = ""

    def stop(self) -> None:
        self._stopped.set()
        connection = self._connection
        if connection is not None:
            with contextlib.suppress(sqlite3.ProgrammingError):  # it is closed
                connection.interrupt()

    def run(self) -> Answer:
        """Raises BlockError."""
        try:
            with contextlib.closing(self._opened()) as self._connection:
                return self._asked(self._connection)
        except sqlite3.Error as error:
            raise self._explained(error) from error
        except OverflowError:
            raise refusals.bad_parameter("number", "a whole number has more than 64 bits") from None

    def _opened(self) -> sqlite3.Connection:
        mode = "ro" if self._query.read_only else "rwc"
        connection = sqlite3.connect(
            f"file:{quote(str(self._path))}?mode={mode}",
            uri=True,
            timeout=min(LOCK_S, self._query.timeout_s),
            isolation_level=None,
            check_same_thread=False,
        )
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, BYTES_MAX)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, LIKE_MAX)
        connection.setlimit(sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0)
        connection.set_progress_handler(self._is_over, STEPS)
        return connection

    def _is_over(self) -> bool:
        return self._stopped.is_set() or time.monotonic() > self._until

    def _asked(self, connection: sqlite3.Connection) -> Answer:
        query = self._query
        connection.execute("PRAGMA trusted_schema = OFF")
        if query.read_only:
            connection.execute("PRAGMA query_only = ON")
        else:
            size = connection.execute("PRAGMA page_size").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {FILE_BYTES_MAX // size}")
        bound = {name: _bound(name, query.parameters[name]) for name in names(query.text)}
        connection.execute("BEGIN" if query.read_only else "BEGIN IMMEDIATE")
        before = connection.total_changes
        connection.set_authorizer(self._permits)
        gathered = Gathered(query.max_rows)
        cursor = connection.execute(query.text, bound)
        if cursor.description is not None:
            gathered.named([column[0] for column in cursor.description])
            for row in cursor:
                if not gathered.add(row):
                    break
            if not query.read_only:
                for _ in cursor:  # a statement that changes rows does so while it is read
                    pass
        cursor.close()
        if self._is_over():
            raise refusals.out_of_time(query.timeout_s)
        if not query.read_only:
            gathered.answer.affected = connection.total_changes - before
        connection.set_authorizer(None)
        connection.execute("COMMIT")
        return gathered.answer

    def _permits(self, action: int, first: str | None, second: str | None, place: str | None, cause: str | None) -> int:
        denied = self._denial(action, first, second)
        if denied is None:
            return sqlite3.SQLITE_OK
        self._denied = self._denied or denied
        return sqlite3.SQLITE_DENY

    def _denial(self, action: int, first: str | None, second: str | None) -> str | None:
        """Return what a query must not do, "" for a change in a query that only reads, or None if the action is
        permitted."""
        match action:
            case sqlite3.SQLITE_ATTACH | sqlite3.SQLITE_DETACH:
                return "attach other databases"
            case sqlite3.SQLITE_TRANSACTION | sqlite3.SQLITE_SAVEPOINT:
                return "begin or end a transaction: the block does that"
            case sqlite3.SQLITE_PRAGMA:
                return None if str(first).lower() in _PRAGMAS else f"use PRAGMA {first}"
            case sqlite3.SQLITE_FUNCTION if str(second).lower() in _FUNCTIONS:
                return f"call {second}"
            case sqlite3.SQLITE_CREATE_VTABLE if str(second).lower() not in _MODULES:
                return f"create tables of the module {second}"
        # A virtual table declares its columns by a change of the schema, in memory alone.
        declares = action == sqlite3.SQLITE_UPDATE and first == "sqlite_master"
        return None if action in _READS or declares or not self._query.read_only else "change data"

    def _explained(self, error: sqlite3.Error) -> BlockError:
        query, message = self._query, str(error)
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        match code:
            case sqlite3.SQLITE_INTERRUPT:
                return refusals.out_of_time(query.timeout_s)
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return refusals.busy("the SQLite file")
            case sqlite3.SQLITE_AUTH:
                changes = self._denied == "change data"
                return refusals.changes_data() if changes else refusals.not_permitted(self._denied or "do this")
            case sqlite3.SQLITE_READONLY:
                return refusals.changes_data(message)
            case sqlite3.SQLITE_TOOBIG:
                message = f"one value or row has more than {BYTES_MAX} bytes"
                return BlockError(message, code="sql_too_large", retryable=False)
            case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CANTOPEN:
                return BlockError(f"the SQLite file cannot be used: {message}", code="sql_no_file", retryable=False)
        if message.startswith("not authorized") or "prohibited" in message:
            return refusals.not_permitted(self._denied or "do this")
        return refusals.failed(query.text, message, position=_position(query.text, message))


def _bound(name: str, value: Any) -> Any:
    match value:
        case bool():
            return int(value)
        case str() if not _is_text(value):
            raise refusals.bad_parameter(name, "it is not valid Unicode text")
        case None | str() | int() | float():
            return value
        case _:
            return orjson.dumps(value).decode()


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _position(query: str, message: str) -> int | None:
    """Return the position of the word in the message, if the query has it once: SQLite reports only the word."""
    found = _NEAR.match(message)
    word = next((group for group in found.groups() if group), None) if found else None
    if word is None:
        return None
    hits = [hit.start() for hit in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", query)]
    return hits[0] if len(hits) == 1 else None
