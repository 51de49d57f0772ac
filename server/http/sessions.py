"""Who is signed in in a browser: what the browser holds is random and new at each sign-in, the database has its hash.

A session ends when it is signed out, after IDLE_MS without a request, AGE_MS after it began, and when the token of the
server is another one. Event streams are authorised when they are opened; a look every LOOK_EVERY_S ends those whose
session has ended meanwhile.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from contextlib import suppress

from executor.engine import Engine
from executor.errors import StoreError
from executor.store.rows import SessionRow
from server.http.sse import Streams

IDLE_MS = 8 * 3_600_000
AGE_MS = 7 * 24 * 3_600_000
SEE_EVERY_MS = 60_000  # a session that is in use costs one small write a minute
SEE_PATIENCE_S = 0.5  # a stuck writer delays one request a minute by so much
LOOK_EVERY_S = 20.0


class Sessions:
    """`mark` follows from the server's token: sessions that were made with another one do not count."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._seen_ms: dict[str, int] = {}  # when this process last wrote that it saw a session

    async def begin(self, engine: Engine) -> str:
        """What the browser is to hold. On disk when this returns."""
        value, now_ms = secrets.token_urlsafe(32), engine.parts.clock.now_ms()
        row = SessionRow(hash_of(value), self._mark, now_ms, now_ms)
        await engine.store.put_session(row, now_ms - AGE_MS, now_ms - IDLE_MS)
        return value

    async def is_open(self, engine: Engine, hash: str) -> bool:
        """Whether a session with this hash exists and has not expired."""
        return self._counts(await engine.store.get_session(hash), engine.parts.clock.now_ms())

    async def use(self, engine: Engine, hash: str) -> bool:
        """Whether it is open; then it has been seen now."""
        row, now_ms = await engine.store.get_session(hash), engine.parts.clock.now_ms()
        if row is None or not self._counts(row, now_ms):
            self._seen_ms.pop(hash, None)
            return False
        if now_ms - max(row.seen_at_ms, self._seen_ms.get(hash, 0)) >= SEE_EVERY_MS:
            self._seen_ms[hash] = now_ms
            with suppress(StoreError, TimeoutError):  # a request a minute from now tries again
                await asyncio.wait_for(engine.store.see_session(hash, now_ms), SEE_PATIENCE_S)
        return True

    def _counts(self, row: SessionRow | None, now_ms: int) -> bool:
        if row is None or row.mark != self._mark:
            return False
        return now_ms < min(row.created_at_ms + AGE_MS, row.seen_at_ms + IDLE_MS)


def hash_of(value: str) -> str:
    """What is stored of a session: sha256, in hex, of the value in the cookie."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()


async def end_streams(streams: Streams, sessions: Sessions, engine: Engine) -> None:
    """End the event streams whose session has ended. Raises StoreError."""
    for session in streams.sessions:
        if not await sessions.is_open(engine, session):
            streams.close_session(session)


async def watch_streams(streams: Streams, sessions: Sessions, engine: Engine) -> None:
    """Until it is cancelled."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        try:
            await end_streams(streams, sessions, engine)
        except StoreError:
            continue  # what cannot be read now is looked at again
