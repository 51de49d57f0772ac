"""Stored secrets in the model store."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from executor.kernel.store.topics.secrets import Resealed, SecretRow


class ModelSecrets:
    """What ModelStore can do with secrets."""

    def __init__(self) -> None:
        super().__init__()
        self._secrets: dict[str, SecretRow] = {}

    async def put_secret(self, row: SecretRow) -> bool:
        before = self._secrets.get(row.name)
        if row.version != (1 if before is None else before.version + 1):
            return False
        used = None if before is None else before.last_used_at_ms
        self._secrets[row.name] = replace(row, last_used_at_ms=used)
        return True

    async def get_secrets(self, names: Sequence[str]) -> list[SecretRow]:
        return [row for row in await self.list_secrets() if row.name in names]

    async def list_secrets(self) -> list[SecretRow]:
        return [self._secrets[name] for name in sorted(self._secrets)]

    async def use_secrets(self, names: Sequence[str], now_ms: int) -> None:
        for name in names:
            if row := self._secrets.get(name):
                self._secrets[name] = replace(row, last_used_at_ms=max(now_ms, row.last_used_at_ms or now_ms))

    async def reseal_secrets(self, changes: Sequence[Resealed]) -> int:
        done = 0
        for change in changes:
            row = self._secrets.get(change.name)
            if row is not None and (row.version, row.key_id) == (change.version, change.was):
                self._secrets[row.name] = replace(row, sealed=change.sealed, key_id=change.key_id)
                done += 1
        return done

    async def delete_secret(self, name: str) -> bool:
        return self._secrets.pop(name, None) is not None
