"""Memory of agents between runs: the rows, and the methods of a store for them."""

from __future__ import annotations

from typing import Protocol

from executor.kernel.store.topics.memory import CONVERSATIONS_SHOWN, Conversation, MemoryHead, MemoryTurn


class MemoryStore(Protocol):
    async def remember(self, conversation: Conversation, turn: MemoryTurn) -> bool:
        """Behind all turns that are there. False, and nothing is written: this turn was written before. Of more than
        TURNS_MAX the oldest is deleted."""

    async def recall(self, conversation: Conversation, limit: int) -> list[MemoryTurn]:
        """Return the last `limit` turns, in the order in which they ended."""

    async def list_memories(self, workflow: str | None = None, limit: int = CONVERSATIONS_SHOWN) -> list[MemoryHead]:
        """Return memories of a workflow, or of all and of all scopes: those with the latest turn first."""

    async def forget(self, conversation: Conversation) -> int:
        """Returns how many turns there were."""

    async def delete_old_memory(self, before_ms: int, limit: int) -> int:
        """Turns that ended before; at most `limit` of them."""
