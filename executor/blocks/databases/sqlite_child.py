"""The child process that runs queries on SQLite files, one at a time, on the SQLite of apsw.

    <- {}                                   it is ready
    -> {"text": ..., "path": ..., ...}      a query
    <- {"committing": true}                 its changes are about to be committed
    <- {"answer": {...}}                    or {"failure": {...}}

Everything that leads out of the file is refused by an authorizer. When its input ends, so does the process: the query
is interrupted first, so that SQLite undoes what it has changed.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import queue
import re
import threading
import time
from pathlib import Path
from typing import Final

import apsw
import msgspec

from executor.blocks.databases import refusals
from executor.blocks.databases.rows import BYTES_MAX, Answer, Gathered, Query, Reply
from executor.blocks.runners.call import Failure, encode, failure_of
from executor.blocks.runners.itself import bound_files_and_cpu, bound_itself, end_with_parent
from executor.errors import BlockError

FILE_BYTES_MAX: Final = 4 * 1024**3  # a query that would make the file larger fails
LOCK_S: Final = 5.0  # how long to wait for other programs; the database does not react to an interrupt meanwhile
STEPS: Final = 20_000  # steps of SQLite's machine between two checks of the clock: about a millisecond
LIKE_MAX: Final = 1_000  # characters of a pattern, which costs their number times that of the text
HEAP_BYTES_MAX: Final = 128 * 1024 * 1024  # of SQLite
MEMORY_BYTES_MAX: Final = 512 * 1024 * 1024  # addresses of the process
END_S: Final = 1.0  # after which a process without input ends in the middle of a query
OLDEST: Final = 3_050_002  # of SQLite: with CVE-2025-6965 fixed

_READS: Final = frozenset({apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE})
_PRAGMAS: Final = frozenset(
    {"data_version", "foreign_key_list", "function_list", "index_info", "index_list", "index_xinfo", "table_info",
     "table_list", "table_xinfo"}
)  # fmt: skip
_FUNCTIONS: Final = frozenset({"load_extension", "fts3_tokenizer"})
_MODULES: Final = frozenset({"fts5", "fts4", "rtree"})
_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?(?:\*/|$)", re.DOTALL)
_UNRECOVERED: Final = frozenset(
    {apsw.SQLITE_READONLY_ROLLBACK, apsw.SQLITE_READONLY_RECOVERY, apsw.SQLITE_READONLY_CANTINIT}
)


def main() -> None:
    """Answer the queries of standard input until it ends."""
    if apsw.SQLITE_VERSION_NUMBER < OLDEST:
        message = f"queries on SQLite files need SQLite 3.50.2 or newer, and apsw has {apsw.sqlite_lib_version()}"
        hint = "pip install --upgrade apsw: the package of PyPI brings a SQLite of its own"
        _write(Reply(failure=Failure("not_installed", message, hint=hint)))
        return
    # apsw decodes texts strictly and has no setting for that. Here those that are not UTF-8 are readable all the same.
    codecs.register_error("strict", codecs.replace_errors)
    apsw.hard_heap_limit(HEAP_BYTES_MAX)
    calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    now = _Now()
    threading.Thread(target=_read, args=(calls, now), daemon=True).start()
    end_with_parent()
    bound_itself(MEMORY_BYTES_MAX)
    _write(Reply())
    decode = msgspec.json.Decoder(Query).decode
    while not now.over.is_set():
        query = decode(calls.get())
        with now.busy, contextlib.suppress(BrokenPipeError):  # the server is gone
            _write(_answered(query, now))


class _Now:
    """The state of the process. A query holds `busy`, and `over` is set when the input has ended."""

    def __init__(self) -> None:
        self.busy = threading.Lock()
        self.over = threading.Event()


def _read(calls: queue.SimpleQueue[bytes], now: _Now) -> None:
    """Read the queries, in a thread: a query may be running when the server ends."""
    parts: list[bytes] = []
    while data := os.read(0, 1024 * 1024):
        *lines, rest = data.split(b"\n")
        for line in lines:
            calls.put(b"".join([*parts, line]))
            parts.clear()
        parts.append(rest)
    now.over.set()  # which the query looks at
    now.busy.acquire(timeout=END_S)
    os._exit(0)


def _write(reply: Reply) -> None:
    data = memoryview(encode(reply) + b"\n")
    while data:
        data = data[os.write(1, data) :]


def _answered(query: Query, now: _Now) -> Reply:
    try:
        return Reply(_Call(query, now.over).run())
    except BlockError as error:
        return Reply(failure=failure_of(error))
    except (MemoryError, apsw.NoMemError):
        message = f"the query needs more than {HEAP_BYTES_MAX // 1024**2} MiB of memory"
        return Reply(failure=Failure("sql_too_large", message, hint="select fewer columns or rows"))


class _Call:
    def __init__(self, query: Query, over: threading.Event) -> None:
        self._query = query
        self._until = time.monotonic() + query.timeout_s
        self._over = over
        self._denied = ""

    def run(self) -> Answer:
        size = Path(self._query.path).stat().st_size if os.path.exists(self._query.path) else 0
        bound_files_and_cpu(FILE_BYTES_MAX + max(FILE_BYTES_MAX, size), self._query.timeout_s + LOCK_S)
        try:
            try:
                return self._asked_once()
            except apsw.Error as error:
                if not self._query.read_only or getattr(error, "extendedresult", 0) not in _UNRECOVERED:
                    raise
                self._recover()
                return self._asked_once()
        except apsw.NoMemError:
            raise
        except apsw.Error as error:
            raise self._explained(error) from error

    def _asked_once(self) -> Answer:
        with contextlib.closing(self._opened()) as connection:
            return self._asked(connection)

    def _recover(self) -> None:
        """Undo the changes of a process that was killed before its commit. Only a connection that may write does so."""
        with contextlib.closing(apsw.Connection(self._query.path, flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
            connection.set_busy_timeout(int(min(LOCK_S, self._query.timeout_s) * 1000))
            connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()

    def _opened(self) -> apsw.Connection:
        writes = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        connection = apsw.Connection(
            self._query.path, flags=apsw.SQLITE_OPEN_READONLY if self._query.read_only else writes
        )
        connection.set_busy_timeout(int(min(LOCK_S, self._query.timeout_s) * 1000))
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0)
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, BYTES_MAX)
        connection.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)
        connection.limit(apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, LIKE_MAX)
        connection.limit(apsw.SQLITE_LIMIT_WORKER_THREADS, 0)
        connection.set_progress_handler(self._is_over, STEPS)
        return connection

    def _is_over(self) -> bool:
        return self._over.is_set() or time.monotonic() > self._until

    def _asked(self, connection: apsw.Connection) -> Answer:
        query = self._query
        if query.read_only:
            connection.execute("PRAGMA query_only = ON")
        else:
            ((size,),) = connection.execute("PRAGMA page_size").fetchall()
            connection.execute(f"PRAGMA max_page_count = {FILE_BYTES_MAX // int(str(size))}")
        connection.execute("BEGIN" if query.read_only else "BEGIN IMMEDIATE")
        before = connection.total_changes()
        connection.authorizer = self._permits
        gathered = self._gathered(connection)
        if self._is_over():
            raise refusals.out_of_time(query.timeout_s)
        connection.authorizer = None
        if not query.read_only:
            gathered.answer.affected = connection.total_changes() - before
            _write(Reply(committing=True))
        connection.execute("COMMIT")
        return gathered.answer

    def _gathered(self, connection: apsw.Connection) -> Gathered:
        query = self._query
        gathered = Gathered(query.max_rows)
        rest = query.text

        def prepared(cursor: apsw.Cursor, text: str, bindings: apsw.Bindings | None) -> bool:
            nonlocal rest
            rest = rest[len(text) :]
            if _COMMENT.sub("", rest).strip(" \t\r\n\f;"):
                raise refusals.not_permitted("have more than one statement")
            if not gathered.answer.columns:
                gathered.named([column[0] for column in cursor.get_description()])
            return True

        cursor = connection.cursor()
        cursor.exec_trace = prepared
        try:
            cursor.execute(query.text, dict(query.parameters))
        except KeyError as error:
            raise refusals.failed(query.text, f"there is no value for the parameter {error}") from None
        for row in cursor:
            if not gathered.add(row):
                break
        if not query.read_only:
            for _ in cursor:  # a statement that changes rows does so while it is read
                pass
        cursor.close(True)
        return gathered

    def _permits(self, action: int, first: str | None, second: str | None, place: str | None, cause: str | None) -> int:
        denied = self._denial(action, first, second)
        if denied is None:
            return apsw.SQLITE_OK
        self._denied = self._denied or denied
        return apsw.SQLITE_DENY

    def _denial(self, action: int, first: str | None, second: str | None) -> str | None:
        """Return what a query must not do, "" for a change in a query that only reads, or None if the action is
        permitted."""
        match action:
            case apsw.SQLITE_ATTACH | apsw.SQLITE_DETACH:
                return "attach other databases"
            case apsw.SQLITE_TRANSACTION | apsw.SQLITE_SAVEPOINT:
                return "begin or end a transaction: the block does that"
            case apsw.SQLITE_PRAGMA:
                return None if str(first).lower() in _PRAGMAS else f"use PRAGMA {first}"
            case apsw.SQLITE_FUNCTION if str(second).lower() in _FUNCTIONS:
                return f"call {second}"
            case apsw.SQLITE_CREATE_VTABLE if str(second).lower() not in _MODULES:
                return f"create tables of the module {second}"
        # A virtual table declares its columns: SQLite reports that as a change of the schema, but only in memory.
        declares = action == apsw.SQLITE_UPDATE and first == "sqlite_master"
        return None if action in _READS or declares or not self._query.read_only else "change data"

    def _explained(self, error: apsw.Error) -> BlockError:
        query, message = self._query, str(error)
        match getattr(error, "result", 0):
            case apsw.SQLITE_INTERRUPT:
                return refusals.out_of_time(query.timeout_s)
            case apsw.SQLITE_BUSY | apsw.SQLITE_LOCKED:
                message = "the SQLite file is locked by another program"
                return BlockError(message, code="sql_busy", retryable=True)
            case apsw.SQLITE_AUTH:
                changes = self._denied == "change data"
                return refusals.changes_data() if changes else refusals.not_permitted(self._denied or "do this")
            case apsw.SQLITE_READONLY:
                return refusals.changes_data(message)
            case apsw.SQLITE_TOOBIG:
                message = f"one value or row has more than {BYTES_MAX} bytes"
                return BlockError(message, code="sql_too_large", retryable=False)
            case apsw.SQLITE_NOTADB | apsw.SQLITE_CANTOPEN:
                return BlockError(f"the SQLite file cannot be used: {message}", code="sql_no_file", retryable=False)
        if message.startswith("not authorized") or "prohibited" in message:
            return refusals.not_permitted(self._denied or "do this")
        return refusals.failed(query.text, message, position=_position(query.text, getattr(error, "error_offset", -1)))


def _position(query: str, offset: int) -> int | None:
    return None if offset < 0 else len(query.encode()[:offset].decode())
