"""Stored secrets: the rows, and what a store does with them. A store never sees a value, only what is sealed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from executor.kernel.store.topics.secrets import Resealed, SecretRow


class SecretStore(Protocol):
    async def put_secret(self, row: SecretRow) -> bool:
        """Store a first value, or one that replaces the previous version. Returns False, with nothing written, if the
        name has another version than that."""

    async def get_secrets(self, names: Sequence[str]) -> list[SecretRow]:
        """Return those of these secrets that exist, by name."""

    async def list_secrets(self) -> list[SecretRow]:
        """Return all secrets, by name."""

    async def use_secrets(self, names: Sequence[str], now_ms: int) -> None:
        """`last_used_at_ms` only grows."""

    async def reseal_secrets(self, changes: Sequence[Resealed]) -> int:
        """Replace sealed values in one transaction. Returns how many were changed: a secret that has another version or
        key by now stays."""

    async def delete_secret(self, name: str) -> bool: ...
