"""The store on a PostgreSQL database. Its rules are in docs/reference/store.md.

Writes go to one thread and are committed in groups (`writer.py`); reads go to sessions that only read (`readers.py`).
Any number of processes may have one database open.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import psycopg
from psycopg.conninfo import make_conninfo

from executor.errors import DatabaseUnavailable
from executor.kernel.store.postgres.connection import FaultPoint, Session, prepare, with_settings
from executor.kernel.store.postgres.days import Days
from executor.kernel.store.postgres.dialect import NOW_US
from executor.kernel.store.postgres.errors import as_weft_error, message_of
from executor.kernel.store.postgres.limited import LONG_S, LimitedAsyncConnection, reachable
from executor.kernel.store.postgres.migrate import LOCK
from executor.kernel.store.postgres.readers import PING_READ, Readers
from executor.kernel.store.postgres.writer import Writer, ping
from executor.kernel.store.topics.store import WritingStore
from executor.kernel.store.topics.upkeep import Retired
from executor.kernel.store.writer import Stats

# In a transaction, so that it also works through a pool that gives sessions to others between two (pgbouncer).
# Between its statements it has no snapshot, and keeps no old row from being removed.
GC_NAME = "weft gc"
DAYS_NAME = "weft days"
GC_BEGINS = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0"


class PostgresStore(WritingStore):
    """`fault` is for tests: a call at each named point of a commit."""

    _reads, _writes = PING_READ, staticmethod(ping)

    def __init__(self, dsn: str, *, readers: int = 4, fault: FaultPoint = lambda name: None) -> None:
        self.stats = Stats()
        self._dsn = dsn
        self._fault = fault
        self._writer = Writer(Session(dsn, fault), self.stats)
        self._readers = Readers(dsn, readers)

    def check_identity(self) -> None:
        """A database server has no file that could be another one."""

    async def time_us(self) -> int:
        (now_us,) = (await self._readers.all(NOW_US))[0]
        return int(now_us)

    @asynccontextmanager
    async def deleting(self) -> AsyncIterator[bool]:
        """By a lock that ends with its session, and so with the process."""
        try:
            session = await LimitedAsyncConnection.connect(
                reachable(self._dsn), autocommit=True, application_name=GC_NAME
            )
        except psycopg.Error as error:
            raise DatabaseUnavailable(f"the database cannot be read: {message_of(error)}") from error
        try:
            try:
                await session.execute(GC_BEGINS)
                row = await (await session.execute(f"SELECT pg_try_advisory_xact_lock({LOCK}, 1)")).fetchone()
            except psycopg.Error as error:
                raise DatabaseUnavailable(f"the database cannot be read: {message_of(error)}") from error
            yield row == (True,)
        finally:
            with suppress(psycopg.Error):
                await session.close()

    async def retire_days(self, ended_before_ms: int | None, every_days: int) -> Retired | None:
        try:
            dsn = make_conninfo(with_settings(self._dsn), application_name=DAYS_NAME)
            session = await LimitedAsyncConnection.connect(dsn, autocommit=True)
            session.limit_s = LONG_S
            try:
                prepare(session)
                days = Days(session, self._fault)
                await days.cut(every_days)
                if ended_before_ms is not None:
                    return await days.retire(ended_before_ms)
                await days.clear()
                return Retired()
            finally:
                await session.close()
        except psycopg.Error as error:
            raise as_weft_error(error) from error
