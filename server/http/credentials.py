"""Sessions of browsers and API tokens: their secret values, and who holds them."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
import zlib
from contextlib import suppress
from typing import Final

import orjson

from executor.errors import StoreError
from executor.kernel.process.acting import ROLES
from executor.kernel.store.topics.people import SessionRow, TokenRow, UserRow
from executor.open.engine import Engine
from server.http.principal import Principal

IDLE_MS = 8 * 3_600_000
AGE_MS = 7 * 24 * 3_600_000
SEE_EVERY_MS = 60_000  # a session in use costs one small write a minute
DEVICE_CHARS_MAX = 200
SEE_PATIENCE_S = 0.5  # the longest that a stuck writer delays a request
SHAPE: Final = re.compile(r"weft_([a-z2-7]{8})_([0-9a-f]{40})([0-9a-f]{8})")
ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz234567"
KEY: Final = "token:"  # before the id, in the key of a Principal


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


def new_token() -> tuple[str, str]:
    """The id, and the whole token."""
    id = "".join(secrets.choice(ALPHABET) for _ in range(8))
    text = f"weft_{id}_{secrets.token_hex(20)}"
    return id, text + _checksum(text)


def id_in(text: str) -> str | None:
    """Return the id of a token, or None if `text` is not in the form of one."""
    found = SHAPE.fullmatch(text)
    return found[1] if found is not None and _checksum(text[:-8]) == found[3] else None


class ApiTokens:
    def __init__(self) -> None:
        self._used_ms: dict[str, int] = {}  # when this process last wrote that it was used

    async def use(self, engine: Engine, text: str) -> Principal | None:
        """Return the principal of a token, or None if the token is not valid."""
        id = id_in(text)
        row = None if id is None else await engine.store.get_token(id)
        if row is None or not hmac.compare_digest(row.hash, hash_of(text)):
            return None
        found = await self._principal(engine, row)
        now_ms = engine.parts.clock.now_ms()
        if found is not None and now_ms - max(row.used_at_ms or 0, self._used_ms.get(row.id, 0)) >= SEE_EVERY_MS:
            self._used_ms[row.id] = now_ms
            with suppress(StoreError, TimeoutError):
                await asyncio.wait_for(engine.store.use_token(row.id, now_ms), SEE_PATIENCE_S)
        return found

    async def is_open(self, engine: Engine, id: str) -> bool:
        row = await engine.store.get_token(id)
        return row is not None and await self._principal(engine, row) is not None

    async def _principal(self, engine: Engine, row: TokenRow) -> Principal | None:
        """Return the principal of a token, with the role of its user if that is less than its own."""
        if engine.parts.clock.now_ms() >= row.expires_at_ms:
            return None
        role = row.role
        if row.user_id is not None:
            user = await engine.store.get_user(row.user_id)
            if user is None:
                return None
            role = min(role, user.role, key=ROLES.index)
        workflows = None if row.workflows is None else tuple(orjson.loads(row.workflows))
        return Principal(f"token:{row.id}", "token", role, row.user_id, KEY + row.id, workflows)


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"
