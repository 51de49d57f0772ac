"""The memory of agents: list, show and delete; `engine.memory`."""

from __future__ import annotations

from typing import Any

import orjson
from msgspec import Struct

from executor.errors import BadRequest
from executor.kernel.store.topics.memory import TURNS_MAX, Conversation, MemoryHead
from executor.service.parts import Parts


class TurnView(Struct, frozen=True):
    """`run` added it when it had its answer. `messages`: each has a role, `user` or `assistant`, and a text."""

    run: str
    at_ms: int
    messages: list[dict[str, Any]]


class MemoryTopic:
    def __init__(self, parts: Parts) -> None:
        self._store = parts.store

    async def all(self, workflow: str | None = None) -> list[MemoryHead]:
        """List conversations, those with the latest turn first: of a workflow, or of all and of all scopes."""
        return await self._store.list_memories(workflow)

    async def turns(self, key: str, *, workflow: str = "", scope: str = "") -> list[TurnView]:
        """List the turns in their order; an unknown conversation has none. Raises BadRequest."""
        rows = await self._store.recall(_conversation(key, workflow, scope), TURNS_MAX)
        return [TurnView(row.run_id, row.at_ms, orjson.loads(row.messages)) for row in rows]

    async def forget(self, key: str, *, workflow: str = "", scope: str = "") -> int:
        """Returns how many turns there were. Raises BadRequest."""
        return await self._store.forget(_conversation(key, workflow, scope))


def _conversation(key: str, workflow: str, scope: str) -> Conversation:
    if bool(workflow) == bool(scope):
        message = "a conversation belongs to a workflow or to a scope"
        raise BadRequest(message, code="memory_owner", hint="set either workflow or scope")
    return Conversation(workflow, scope, key)
