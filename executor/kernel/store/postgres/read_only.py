"""A PostgreSQL database that is only read, beside the servers that use it or as a standby."""

from __future__ import annotations

import asyncio

from executor.kernel.store.postgres.dialect import NOW_US
from executor.kernel.store.postgres.readers import PING_READ, Readers
from executor.kernel.store.postgres.reading import open_reading
from executor.kernel.store.read_only import ReadOnlyStore, Refusing, refuse_schema


class ReadOnlyPostgres(ReadOnlyStore):
    _readers: Readers

    def __init__(self, dsn: str, *, readers: int = 4) -> None:
        super().__init__()
        self._dsn = dsn
        self._writer = Refusing()
        self._readers = Readers(dsn, readers)

    async def open(self) -> None:
        await asyncio.to_thread(self._check)
        await self._readers.open()

    def _check(self) -> None:
        reading = open_reading(self._dsn)
        try:
            refuse_schema(*reading.schema())
        finally:
            reading.close()

    async def close(self) -> None:
        await self._readers.close()

    def check_identity(self) -> None:
        """A database server has no file that could be another one."""

    async def time_us(self) -> int:
        (now_us,) = (await self._readers.all(NOW_US))[0]
        return int(now_us)

    async def ping_read(self) -> None:
        await self._readers.all(PING_READ)
