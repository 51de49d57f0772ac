"""A SQLite file that is only read, beside the server that uses it or as a copy."""

from __future__ import annotations

import os
import sqlite3

from executor.errors import DatabaseUnavailable
from executor.kernel.store.read_only import ReadOnlyStore, Refusing, refuse_schema
from executor.kernel.store.sqlite.identity import Identity
from executor.kernel.store.sqlite.readers import PING_READ, Readers, plain_read_only
from executor.kernel.store.sqlite.reading import open_reading
from executor.kernel.store.sqlite.store import READER_BUSY_MS


class ReadOnlySQLite(ReadOnlyStore):
    _readers: Readers

    def __init__(self, path: str | os.PathLike[str], *, readers: int = 2) -> None:
        super().__init__()
        self.path = os.fspath(path)
        self._identity = Identity(self.path)
        self._writer = Refusing()
        self._readers = Readers(self.path, readers, READER_BUSY_MS, plain_read_only)

    async def open(self) -> None:
        try:
            reading = open_reading(self.path)
            try:
                refuse_schema(*reading.schema())
            finally:
                reading.close()
        except sqlite3.Error as error:
            raise DatabaseUnavailable(f"the database {self.path} cannot be read: {error}") from error
        await self._readers.open()
        self._identity.note()
        self._identity.forget_log()  # its server may delete it

    async def close(self) -> None:
        await self._readers.close()

    def check_identity(self) -> None:
        self._identity.check()

    async def time_us(self) -> None:
        """A file has no clock."""

    async def ping_read(self) -> None:
        await self._readers.all(PING_READ)
