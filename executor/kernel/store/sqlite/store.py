"""The store on one SQLite file. Its rules are in docs/reference/store.md.

Writes go to one thread and are committed in groups (`writer.py`); reads go to read-only connections (`readers.py`),
so a read sees exactly what is committed and never waits. One process per file, many coroutines of one event loop.
"""

from __future__ import annotations

import os

from executor.kernel.store.sqlite.connection import Connect, Database, FaultPoint, plain_connect
from executor.kernel.store.sqlite.readers import PING_READ, Readers, plain_read_only
from executor.kernel.store.sqlite.writer import Stats, Writer, ping
from executor.kernel.store.topics.store import WritingStore
from executor.kernel.store.writer import Retry

READER_BUSY_MS = 5_000  # readers meet a lock only while a log is recovered or deleted


class SQLiteStore(WritingStore):
    """A store on one SQLite file. `busy_timeout_ms` is how long one try waits for another process's lock, before
    `retry` starts the transaction again. `commit_here_below_s`: an append that comes alone is committed in the thread
    of the event loop while commits are shorter than this; one that stalls stalls the loop. `connect`, `connect_reader`
    and `fault` are for tests: other ways to the raw connections, and a call at each named point of a commit."""

    stats: Stats
    _writer: Writer
    _reads, _writes = PING_READ, staticmethod(ping)

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        readers: int = 2,
        busy_timeout_ms: int = 500,
        retry: Retry | None = None,
        commit_here_below_s: float = 0.0,
        connect: Connect = plain_connect,
        connect_reader: Connect = plain_read_only,
        fault: FaultPoint | None = None,
    ) -> None:
        self.path = os.fspath(path)
        self.stats = Stats()
        self._database = Database(self.path, busy_timeout_ms, connect, fault)
        self._writer = Writer(self._database, retry or Retry(), self.stats, commit_here_below_s)
        self._readers = Readers(self.path, readers, READER_BUSY_MS, connect_reader)

    def check_identity(self) -> None:
        self._database.check_file()

    def note_opened(self) -> None:
        self._database.note_file()

    async def time_us(self) -> None:
        """A file has no clock."""
