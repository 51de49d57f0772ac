"""Sessions that read, each call one SELECT in a transaction of its own: it sees one state, and a caller that is
cancelled leaves nothing open."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import psycopg

from executor.errors import DatabaseUnavailable, store_closed
from executor.kernel.store.patience import patience_s
from executor.kernel.store.postgres.connection import prepare, with_settings
from executor.kernel.store.postgres.dialect import TEXTS
from executor.kernel.store.postgres.errors import message_of, not_storable
from executor.kernel.store.postgres.limited import (
    LIMIT_S,
    LONG_S,
    LimitedAsyncConnection,
    Silent,
    prepare_where_kept_async,
)
from executor.kernel.store.statements import Readers as BaseReaders
from executor.kernel.store.statements import Row, Values

PING_READ = "SELECT 1"
SILENT_S = 1.0  # a database that has answered others meanwhile is slow, not silent
TRIES = 3  # a session that was lost while it was idle is found by its next query
PAUSE_S, PAUSE_MAX_S = 0.05, 0.5  # between tries to connect
LIFETIME_S = 3600.0  # what a session of the server keeps in memory grows


class Readers(BaseReaders):
    """At most `count` sessions, each opened when it is needed. While the database cannot be reached one task tries to
    connect, and all callers wait for it as long as their patience lasts."""

    def __init__(self, dsn: str, count: int) -> None:
        self._dsn = dsn
        self._count = count
        self._slots: asyncio.Semaphore | None = None
        self._waiting = 0  # callers without a session
        self._connector: asyncio.Task[None] | None = None
        self._failed: psycopg.Error | None = None  # why it could not connect the last time
        self._idle: list[tuple[float, LimitedAsyncConnection]] = []
        self._answered_s = 0.0  # when the database answered last
        self._under_way: set[asyncio.Task[list[Row]]] = set()

    async def open(self) -> None:
        self._slots = asyncio.Semaphore(self._count)
        try:
            await self.all(PING_READ)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        self._slots = None
        if self._connector is not None:
            self._connector.cancel()
        if self._under_way:
            await asyncio.wait(self._under_way)
        idle, self._idle = self._idle, []
        for _, connection in idle:
            await connection.close()

    async def all(self, sql: str, values: Values = ()) -> list[Row]:
        """A caller that is cancelled does not interrupt its query, whose session would have to be made again."""
        reading = asyncio.create_task(self._all(sql, values), name="postgres-read")
        self._under_way.add(reading)
        reading.add_done_callback(self._done)
        return await asyncio.shield(reading)

    def _done(self, reading: asyncio.Task[list[Row]]) -> None:
        self._under_way.discard(reading)
        if not reading.cancelled():
            reading.exception()  # asked for, so that one whose caller was cancelled is not reported as lost

    async def _all(self, sql: str, values: Values) -> list[Row]:
        patient_s = patience_s()
        limit = _Limit(self, LIMIT_S if patient_s is None else patient_s)
        slots = self._slots
        if slots is None:
            raise store_closed()
        async with self._slot(slots, limit):
            for tries_left in reversed(range(TRIES)):
                began_s, connection = await self._session(limit)
                try:
                    cursor = await connection.execute(cast(Any, TEXTS[sql]), values)
                    rows = await cursor.fetchall()
                except psycopg.OperationalError as error:
                    if tries_left and connection.closed and not isinstance(error, Silent):
                        await self._forget_idle()  # they were lost at the same time
                        continue
                    raise DatabaseUnavailable(f"the database cannot be read: {message_of(error)}") from error
                except psycopg.DataError as error:
                    raise not_storable(error) from error
                finally:
                    await self._give_back(began_s, connection)
                self._answered_s = time.monotonic()
                return rows
        raise AssertionError("the last try returns or raises")

    @asynccontextmanager
    async def _slot(self, slots: asyncio.Semaphore, limit: _Limit) -> AsyncIterator[None]:
        while True:
            try:
                async with asyncio.timeout(limit.left_s()):
                    await slots.acquire()
                break
            except TimeoutError:
                if limit.is_over():
                    raise limit.failure(None) from None
        try:
            yield
        finally:
            slots.release()

    async def _session(self, limit: _Limit) -> tuple[float, LimitedAsyncConnection]:
        """Idle, or opened now. Raises DatabaseUnavailable."""
        self._waiting += 1
        try:
            while not self._idle:
                if self._connector is None or self._connector.done():
                    self._connector = asyncio.create_task(self._connect_one(), name="postgres-connect")
                # One that is cancelled would begin again with the first of several hosts.
                done, _ = await asyncio.wait([self._connector], timeout=limit.left_s())
                if not self._idle and (self._slots is None or not done):
                    raise limit.failure(self._failed) from self._failed
        finally:
            self._waiting -= 1
        began_s, connection = self._idle.pop()
        connection.is_over = limit.is_over
        return began_s, connection

    async def _connect_one(self) -> None:
        """Again and again, as long as a caller waits for it. One that is idle then is as good."""
        pause_s = PAUSE_S
        while self._waiting and not self._idle and self._slots is not None:
            try:
                connection = await self._connect()
            except psycopg.Error as error:
                self._failed = error
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # a fleet does not come at once
                pause_s = min(PAUSE_MAX_S, 2 * pause_s)
            else:
                self._failed = None
                self._idle.append((time.monotonic(), connection))

    async def _connect(self) -> LimitedAsyncConnection:
        dsn = with_settings(self._dsn, default_transaction_read_only="on")
        connection = await LimitedAsyncConnection.connect(dsn, autocommit=True)
        try:
            prepare(connection)
            await prepare_where_kept_async(connection)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _give_back(self, began_s: float, connection: LimitedAsyncConnection) -> None:
        if connection.closed:
            return
        is_idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        if self._slots is None or not is_idle or time.monotonic() > began_s + LIFETIME_S:
            await connection.close()
        else:
            self._idle.append((began_s, connection))

    async def _forget_idle(self) -> None:
        idle, self._idle = self._idle, []
        for _, connection in idle:
            await connection.close()


class _Limit:
    """The patience of one caller. It has ended when its time is up, and nothing has answered lately or for LONG_S."""

    def __init__(self, readers: Readers, seconds: float) -> None:
        self._readers = readers
        now_s = time.monotonic()
        self._until_s, self._at_last_s = now_s + seconds, now_s + LONG_S

    def is_over(self) -> bool:
        now_s = time.monotonic()
        is_silent = now_s > self._readers._answered_s + SILENT_S
        return now_s >= self._at_last_s or (now_s >= self._until_s and is_silent)

    def left_s(self) -> float:
        return max(self._until_s - time.monotonic(), SILENT_S / 4)

    def failure(self, error: psycopg.Error | None) -> DatabaseUnavailable:
        why = "it does not answer" if error is None else message_of(error)
        return DatabaseUnavailable(f"the database cannot be read: {why}")
