"""Keys of the installation in the model store."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from executor.kernel.store.topics.secrets import KeyRow, Relinked
from executor.kernel.store.topics.waits import WaitRow


class ModelKeys:
    """What ModelStore can do with keys."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[str, KeyRow] = {}
        self._old_links: dict[str, Relinked] = {}

    async def list_keys(self) -> list[KeyRow]:
        return [self._keys[id] for id in sorted(self._keys)]

    async def claim_key(self, id: str, now_ms: int) -> str:
        present = next((row.id for row in self._keys.values() if row.until_ms is None), None)
        if present is None:
            self._keys[id] = KeyRow(id, now_ms, None)
        return present or id

    async def change_key(self, id: str, now_ms: int, until_ms: int) -> bool:
        was = dict(self._keys)
        for row in list(self._keys.values()):
            if row.id != id and (row.until_ms is None or row.until_ms > now_ms):
                self._keys[row.id] = replace(row, until_ms=until_ms)
        since_ms = self._keys[id].since_ms if id in self._keys else now_ms
        self._keys[id] = KeyRow(id, since_ms, None)
        over = {row.id for row in self._keys.values() if row.until_ms is not None and row.until_ms <= now_ms}
        self._old_links = {hash: link for hash, link in self._old_links.items() if link.key_id not in over}
        return self._keys != was

    async def relink(self, changes: Sequence[Relinked]) -> int:
        done = 0
        for change in changes:
            row = self._wait_of(change.run_id, change.wait_id)
            if row is None or row.status != "pending" or row.token_hash != change.was:
                continue
            self._relinked(replace(row, token_hash=change.token_hash), change.was)
            done += 1
            if change.key_id is not None:
                self._old_links.setdefault(change.was, change)
        return done

    async def find_old_wait(self, token_hash: str, now_ms: int) -> WaitRow | None:
        link = self._old_links.get(token_hash)
        key = self._keys.get(link.key_id or "") if link is not None else None
        if link is None or key is None or (key.until_ms is not None and key.until_ms <= now_ms):
            return None
        return self._wait_of(link.run_id, link.wait_id)

    def _wait_of(self, run: str, wait: str) -> WaitRow | None:
        raise NotImplementedError  # ModelStore has the waits

    def _relinked(self, row: WaitRow, was: str) -> None:
        raise NotImplementedError
