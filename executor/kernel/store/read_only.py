"""A store that changes nothing, for `weft serve --read-only`. Sign-ins and sessions are kept in the memory of the
process; every other write is refused before it reaches the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

from msgspec.structs import replace

from executor.errors import ReadOnly
from executor.kernel.store.stats import Stats
from executor.kernel.store.topics.people import UserRow
from executor.kernel.store.topics.sessions import SessionRow
from executor.kernel.store.topics.store import Store

P = ParamSpec("P")
T = TypeVar("T")


class Refusing:
    """In the place of a writer."""

    def submit(
        self, write: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[T]:
        raise ReadOnly("this server is read-only: it executes and changes nothing")


def refuse_schema(found: int, newest: int) -> None:
    """A database of another schema would have to be changed. Raises ReadOnly."""
    if found != newest:
        raise ReadOnly(
            f"the database has schema {found}, this weft reads {newest}, and a read-only server changes nothing",
            hint="Use the weft that wrote it, or start `weft serve` on a copy once.",
        )


class ReadOnlyStore(Store):
    """Beside `Refusing` as its writer."""

    def __init__(self) -> None:
        self.stats = Stats()
        self._sessions: dict[str, SessionRow] = {}
        self._users: dict[str, UserRow] = {}
        self._codes: dict[str, tuple[str, int]] = {}

    def stop_retrying(self) -> None:
        """Nothing is written."""

    @property
    def commits(self) -> int:
        return 0

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

    async def note_act(self) -> bool:
        """Nothing is recorded in the audit."""
        return False
