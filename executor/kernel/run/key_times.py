"""Decides which keys of this process are valid, by the rows of the database, and whether this process may start with
them.

A change of the key has three parts: processes start with the new key and have the previous one; `engine.secrets.rekey`
makes the new one current, and gives the previous one an end; after it, nothing made with that key is valid.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from executor.errors import DatabaseUnavailable, ReadOnly, WrongKey
from executor.kernel.process.clock import Clock
from executor.kernel.run.links import Links
from executor.kernel.store.topics.secrets import Relinked
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.waits import WaitRow

LINKED: Final = ("approval", "form", "attention", "webhook")  # kinds of waits that links answer
RELINKED_AT_ONCE: Final = 100
TRIES, TRY_EVERY_S = 20, 0.5  # of the first look: what cannot be read at the moment may be read later
HINT: Final = (
    "start it with the key of this database (WEFT_SECRET_KEY, or the key file beside it). To change the key, put the "
    "one before into WEFT_OLD_SECRET_KEY; if that is lost, set WEFT_OLD_SECRET_KEY=lost"
)


class KeyTimes:
    def __init__(self, store: Store, links: Links, clock: Clock) -> None:
        self._store = store
        self._links = links
        self._clock = clock

    async def check(self, is_lost: bool = False) -> None:
        """Take the key if the database has none yet. `is_lost`: also if it has another one. Raises WrongKey."""
        mine = self._links.key_ids
        present = await self._present()
        if present is None:
            try:
                present = await self._store.take_key(mine[0], self._clock.now_ms())
            except ReadOnly:
                return
        if present in mine:
            return
        if not is_lost:
            raise WrongKey("this process has another secret key than the database", hint=HINT)
        await self.change(0)

    async def _present(self) -> str | None:
        """Raises StoreError when the database cannot be read for a while."""
        for _ in range(TRIES):
            with suppress(DatabaseUnavailable):
                return next((row.id for row in await self._store.list_keys() if row.until_ms is None), None)
            await asyncio.sleep(TRY_EVERY_S)
        return next((row.id for row in await self._store.list_keys() if row.until_ms is None), None)

    async def old(self) -> list[int]:
        """Return the previous keys that are valid now, the latest first, as their places in `Links`."""
        if len(self._links.key_ids) == 1:
            return []
        now_ms = self._clock.now_ms()
        counting = {row.id for row in await self._store.list_keys() if row.until_ms is None or row.until_ms > now_ms}
        return [at for at, id in enumerate(self._links.key_ids) if at and id in counting]

    async def change(self, grace_ms: int) -> int:
        """The key of this process is the present one; what was made with those before counts for so long. Returns how
        many open waits have new links. It can be interrupted and repeated."""
        now_ms = self._clock.now_ms()
        await self._store.change_key(self._links.key_ids[0], now_ms, now_ms + grace_ms)
        return sum([await self._relink(kind) for kind in LINKED])

    async def _relink(self, kind: str) -> int:
        done, before = 0, None
        while rows := await self._store.list_waits("pending", None, RELINKED_AT_ONCE, kind=kind, before=before):
            before = rows[-1].run_id, rows[-1].id
            done += await self._store.relink(self._changes(rows))
        return done

    def _changes(self, rows: Sequence[WaitRow]) -> list[Relinked]:
        changes = []
        for row in rows:
            key = self._links.key_of(row.run_id, row.id, row.kind, row.token_hash)
            if key != 0:
                new = self._links.hash_of(row.run_id, row.id, row.kind)
                made_with = None if key is None else self._links.key_ids[key]
                changes.append(Relinked(row.run_id, row.id, row.token_hash, new, made_with))
        return changes
