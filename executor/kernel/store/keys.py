"""Keys of the installation: the rows, and what a store does with them. A store never sees a key, only its id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from executor.kernel.store.topics.keys import KeyRow, Relinked
from executor.kernel.store.topics.waits import WaitRow


class KeyStore(Protocol):
    async def list_keys(self) -> list[KeyRow]:
        """Return keys by id."""

    async def take_key(self, id: str, now_ms: int) -> str:
        """Return the id of the present key, which is this one if there was none."""

    async def change_key(self, id: str, now_ms: int, until_ms: int) -> bool:
        """Make this the present key; those before it that are still valid are so until `until_ms`. Links of those that
        are not are forgotten. Returns False if nothing had to change."""

    async def relink(self, changes: Sequence[Relinked]) -> int:
        """Replace hashes in one transaction. Returns how many were changed: a wait that is closed, or has another hash
        by now, stays."""

    async def find_old_wait(self, token_hash: str, now_ms: int) -> WaitRow | None:
        """Return the wait whose link this was, while the key that it was made with is valid."""
