"""Memory of agents between runs: the rows, and the methods of a store for them."""

from __future__ import annotations

from typing import Final, Protocol

from msgspec import Struct

TURNS_MAX: Final = 200  # of one conversation; older ones are deleted
CONVERSATIONS_SHOWN: Final = 200


class Conversation(Struct, frozen=True):
    """The key of a memory: `key` within a workflow, or within a scope that workflows share. One of the two is empty."""

    workflow: str
    scope: str
    key: str


class MemoryTurn(Struct, frozen=True):
    """A turn: a question and its answer. `turn` is the run and the node that ended it; `messages` a JSON list."""

    turn: str
    run_id: str
    at_ms: int
    messages: bytes


class MemoryHead(Struct, frozen=True):
    """A conversation: how many turns it has and how long they are, and when the last one ended."""

    workflow: str
    scope: str
    key: str
    turns: int
    bytes: int
    last_at_ms: int


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
