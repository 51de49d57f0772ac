"""Who is signed in: one row for each browser, by the hash of what it holds. How long a session lasts is the server's
business.

27. A session that was deleted is never found again. `seen_at_ms` only grows, and seeing a session does not bring back
    one that is gone. Of more than SESSIONS_MAX those seen longest ago are deleted.
"""

from __future__ import annotations

from typing import Final, Protocol

from msgspec import Struct

SESSIONS_MAX: Final = 1_000


class SessionRow(Struct, frozen=True):
    """`mark` is of the token that it was made with: with another token it does not count."""

    hash: str
    mark: str
    created_at_ms: int
    seen_at_ms: int


class SessionStore(Protocol):
    """The part of a Store that this topic adds."""

    async def put_session(self, row: SessionRow, created_after_ms: int, seen_after_ms: int) -> None:
        """A new one. Those that were created, or seen, no later than these times are deleted."""

    async def get_session(self, hash: str) -> SessionRow | None: ...

    async def see_session(self, hash: str, seen_at_ms: int) -> None: ...

    async def delete_session(self, hash: str) -> bool: ...

    async def delete_sessions(self) -> int:
        """All of them."""
