"""A store that changes nothing, for `weft serve --read-only`. Sign-ins and sessions are kept in the memory of the
process; every other write is refused before it reaches the database."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

from msgspec.structs import replace

from executor.errors import DatabaseUnavailable, ReadOnly
from executor.kernel.store.reading import Reading
from executor.kernel.store.topics.people import SessionRow, UserRow
from executor.kernel.store.topics.store import Store
from executor.kernel.store.writer import Stats

P = ParamSpec("P")
T = TypeVar("T")


class Refusing:
    """In the place of a writer."""

    def submit(
        self, write: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[T]:
        raise ReadOnly("this server is read-only: it executes and changes nothing")


class ReadOnlyStore(Store):
    """Reads by the readers of `store`, which is not opened: the database may have another server, or be a copy."""

    def __init__(self, store: Store, open_reading: Callable[[], Reading]) -> None:
        self.stats = Stats()
        self._store = store
        self._open_reading = open_reading
        self._writer = Refusing()
        self._readers = store._readers
        self._sessions: dict[str, SessionRow] = {}
        self._users: dict[str, UserRow] = {}
        self._codes: dict[str, tuple[str, int]] = {}

    async def open(self) -> None:
        await asyncio.to_thread(self._check_schema)
        await self._readers.open()
        self._store.note_opened()

    def _check_schema(self) -> None:
        try:
            with closing(self._open_reading()) as reading:
                found, newest = reading.schema()
        except sqlite3.Error as error:
            raise DatabaseUnavailable(f"the database cannot be read: {error}") from error
        if found != newest:
            raise ReadOnly(
                f"the database has schema {found}, this weft reads {newest}, and a read-only server changes nothing",
                hint="Use the weft that wrote it, or start `weft serve` on a copy once.",
            )

    async def close(self) -> None:
        await self._readers.close()

    def stop_retrying(self) -> None:
        """Nothing is written."""

    def check_identity(self) -> None:
        self._store.check_identity()

    async def time_us(self) -> int | None:
        return await self._store.time_us()

    async def ping_read(self) -> None:
        await self._store.ping_read()

    async def ping(self) -> NoReturn:
        raise ReadOnly("this server is read-only: it is ready for nothing that writes")

    # --- who is signed in here ---

    async def put_session(self, row: SessionRow, created_after_ms: int, seen_after_ms: int) -> bool:
        self._sessions[row.hash] = row
        return True

    async def get_session(self, hash: str) -> SessionRow | None:
        return self._sessions.get(hash)

    async def see_session(self, hash: str, seen_at_ms: int) -> None:
        if row := self._sessions.get(hash):
            self._sessions[hash] = replace(row, seen_at_ms=max(row.seen_at_ms, seen_at_ms))

    async def delete_session(self, hash: str) -> bool:
        return self._sessions.pop(hash, None) is not None

    async def put_user(self, row: UserRow) -> bool:
        """Add the first admin, who signs in here, of a database without one."""
        self._users[row.id] = row
        return True

    async def get_user(self, id: str) -> UserRow | None:
        return self._users.get(id) or await super().get_user(id)

    async def put_code(self, hash: str, user_id: str, expires_at_ms: int, now_ms: int) -> bool:
        self._codes[hash] = (user_id, expires_at_ms)
        return True

    async def redeem_code(self, hash: str, now_ms: int) -> str | None:
        user, expires_at_ms = self._codes.pop(hash, ("", 0))
        return user if user and expires_at_ms > now_ms else None

    async def use_token(self, id: str, now_ms: int) -> None:
        """When it was used last is not written."""

    async def record_act(self) -> bool:
        """Nothing is recorded in the audit."""
        return False
