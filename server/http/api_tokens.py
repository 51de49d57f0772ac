"""Tokens of programs: `weft_<id>_<secret>`, shown once. The database has their hash.

The last eight digits are a checksum of the others, so that scanners for leaked secrets find tokens and little else, and
a mistyped token is refused without a database query.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
import zlib
from contextlib import suppress
from typing import Final

import orjson

from executor.errors import StoreError
from executor.kernel.store.topics.people import ROLES, TokenRow
from executor.open.engine import Engine
from server.http.principals import Principal
from server.http.sessions import SEE_EVERY_MS, SEE_PATIENCE_S, hash_of

SHAPE: Final = re.compile(r"weft_([a-z2-7]{8})_([0-9a-f]{40})([0-9a-f]{8})")
ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz234567"
KEY: Final = "token:"  # before the id, in the key of a Principal


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
