"""Browser sessions: a browser holds a value that is random and new at each sign-in; the database has its hash.

A session belongs to a user. It ends when the user signs out, after IDLE_MS without a request, AGE_MS after it began,
when its user is deleted, and when the server's token changes.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from contextlib import suppress

from executor.errors import StoreError
from executor.kernel.store.topics.people import SessionRow, UserRow
from executor.open.engine import Engine

IDLE_MS = 8 * 3_600_000
AGE_MS = 7 * 24 * 3_600_000
SEE_EVERY_MS = 60_000  # a session in use costs one small write a minute
DEVICE_CHARS_MAX = 200
SEE_PATIENCE_S = 0.5  # the longest that a stuck writer delays a request


class Sessions:
    """Sessions of a server. `mark` is derived from the server's token: sessions made with another token are not
    valid."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._seen_ms: dict[str, int] = {}  # when this process last wrote that it saw a session

    async def begin(self, engine: Engine, user: str, device: str = "") -> str:
        """Start a session and return the value of its cookie. The session is stored when this returns. `device` is the
        User-Agent."""
        value, now_ms = secrets.token_urlsafe(32), engine.parts.clock.now_ms()
        row = SessionRow(hash_of(value), self._mark, now_ms, now_ms, user, _shown(device))
        await engine.store.put_session(row, now_ms - AGE_MS, now_ms - IDLE_MS)
        return value

    async def is_open(self, engine: Engine, hash: str) -> bool:
        """Return whether a session with this hash exists and has not expired."""
        row = await engine.store.get_session(hash)
        return (
            row is not None
            and self.counts(row, engine.parts.clock.now_ms())
            and await engine.store.get_user(row.user_id) is not None
        )

    async def use(self, engine: Engine, hash: str) -> UserRow | None:
        """Return the user of an open session and note that it was used now, or None."""
        row, now_ms = await engine.store.get_session(hash), engine.parts.clock.now_ms()
        if row is None or not self.counts(row, now_ms):
            self._seen_ms.pop(hash, None)
            return None
        if now_ms - max(row.seen_at_ms, self._seen_ms.get(hash, 0)) >= SEE_EVERY_MS:
            self._seen_ms[hash] = now_ms
            with suppress(StoreError, TimeoutError):  # a request a minute from now tries again
                await asyncio.wait_for(engine.store.see_session(hash, now_ms), SEE_PATIENCE_S)
        return await engine.store.get_user(row.user_id)

    def counts(self, row: SessionRow, now_ms: int) -> bool:
        """Return whether the session has not expired and was made with the server's present token."""
        return row.mark == self._mark and now_ms < min(row.created_at_ms + AGE_MS, row.seen_at_ms + IDLE_MS)


def hash_of(value: str) -> str:
    """Return the stored form of a session or a token: sha256, in hex, of its whole value."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()


def _shown(device: str) -> str:
    return "".join(character for character in device[:DEVICE_CHARS_MAX] if character.isprintable())
