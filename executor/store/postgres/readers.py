"""Sessions that read, each call one SELECT in a transaction of its own: it sees one state, and a caller that is
cancelled leaves nothing open."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from executor.errors import DatabaseUnavailable, StoreError
from executor.store.postgres.connection import CONNECT_TIMEOUT_S, prepare, with_settings
from executor.store.postgres.dialect import TEXTS
from executor.store.postgres.errors import not_storable
from executor.store.postgres.pooled import prepare_where_kept_async
from executor.store.tx import Row, Values

PING_READ = "SELECT 1"
WAIT_S = 10.0  # for a session of the pool
TRIES = 2  # a session that was lost while it was idle is found by its next query


class Readers:
    def __init__(self, dsn: str, count: int) -> None:
        self._dsn = dsn
        self._count = count
        self._pool: AsyncConnectionPool[Any] | None = None
        self._under_way: set[asyncio.Task[list[Row]]] = set()

    async def open(self) -> None:
        """The database has its schema. Raises DatabaseUnavailable."""
        options: dict[str, Any] = {"autocommit": True, "connect_timeout": CONNECT_TIMEOUT_S}
        pool: AsyncConnectionPool[Any] = AsyncConnectionPool(
            with_settings(self._dsn, default_transaction_read_only="on"),
            min_size=1,
            max_size=self._count,
            open=False,
            kwargs=options,
            configure=_configure,
            timeout=WAIT_S,
        )
        try:
            await pool.open(wait=True, timeout=WAIT_S)
        except PoolTimeout as error:
            await pool.close()
            raise DatabaseUnavailable(f"the database cannot be read: {error}") from error
        self._pool = pool

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if self._under_way:
            await asyncio.wait(self._under_way)
        if pool is not None:
            await pool.close()

    async def all(self, sql: str, parameters: Values = ()) -> list[Row]:
        """A caller that is cancelled does not interrupt its query, whose session would be closed and made again: reads
        are short, and none lasts longer than `statement_timeout`."""
        reading = asyncio.create_task(self._all(sql, parameters), name="postgres-read")
        self._under_way.add(reading)
        reading.add_done_callback(self._done)
        return await asyncio.shield(reading)

    def _done(self, reading: asyncio.Task[list[Row]]) -> None:
        self._under_way.discard(reading)
        if not reading.cancelled():
            reading.exception()  # asked for, so that one whose caller was cancelled is not reported as lost

    async def _all(self, sql: str, parameters: Values) -> list[Row]:
        for tries_left in reversed(range(TRIES)):
            if self._pool is None:
                raise StoreError("the store is closed", code="store_closed")
            try:
                async with self._pool.connection() as connection:
                    cursor = await connection.execute(cast(Any, TEXTS[sql]), parameters)
                    return await cursor.fetchall()
            except psycopg.OperationalError as error:
                if tries_left and not isinstance(error, PoolTimeout):
                    continue
                raise DatabaseUnavailable(f"the database cannot be read: {error}") from error
            except psycopg.DataError as error:
                raise not_storable(error) from error
        raise AssertionError("the last try returns or raises")

    async def one(self, sql: str, parameters: Values = ()) -> Row | None:
        """The only row, or None. For statements that give at most one."""
        rows = await self.all(sql, parameters)
        assert len(rows) <= 1
        return rows[0] if rows else None


async def _configure(connection: psycopg.AsyncConnection[Any]) -> None:
    prepare(connection)
    await prepare_where_kept_async(connection)
