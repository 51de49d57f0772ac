"""The memory of agents between runs."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from msgspec import Meta, Struct

from executor.errors import BadRequest
from executor.kernel.store.topics.memory import TURNS_MAX, Conversation, MemoryHead
from server.http.response import Json, long_json
from server.http.table import Call, Routes, RouteSpec

Name = Annotated[str, Meta(max_length=1_000)]


class MemoriesQuery(Struct, frozen=True):
    workflow: Annotated[Name | None, Meta(description="Only of this workflow.")] = None


class MemoryQuery(Struct, frozen=True):
    """One conversation: `key` with either `workflow` or `scope`."""

    key: Annotated[Name, Meta(description="Key of the conversation.")] = ""
    workflow: Annotated[Name, Meta(description="The workflow that it belongs to.")] = ""
    scope: Annotated[Name, Meta(description="Or the scope.")] = ""


class TurnView(Struct, frozen=True):
    """`run` added it when it had its answer. `messages`: each has a role, `user` or `assistant`, and a text."""

    run: str
    at_ms: int
    messages: list[dict[str, Any]]


class MemoryList(Struct, frozen=True):
    """The latest first, at most 200."""

    conversations: list[MemoryHead]


class MemoryTurns(Struct, frozen=True):
    """In their order."""

    turns: list[TurnView]


class MemoryForgotten(Struct, frozen=True):
    """The number of deleted turns."""

    deleted: int


route = Routes("memory", RouteSpec)


@route("GET", "/api/memory", "List what agents remember", needs="viewer")
async def list_all(call: Call, query: MemoriesQuery) -> MemoryList:
    """Conversations of a workflow, or of all and of all scopes."""
    return MemoryList(await call.engine.store.list_memories(query.workflow))


@route("GET", "/api/memory/turns", "Show a conversation", needs="viewer")
async def show(call: Call, query: MemoryQuery) -> Json[MemoryTurns]:
    rows = await call.engine.store.recall(_conversation(query), TURNS_MAX)
    turns = [TurnView(row.run_id, row.at_ms, orjson.loads(row.messages)) for row in rows]
    return await long_json(MemoryTurns(turns), "turns")


@route("DELETE", "/api/memory", "Delete a conversation", needs="editor")
async def delete(call: Call, query: MemoryQuery) -> MemoryForgotten:
    """Delete a conversation. Later runs do not read it; a run that has read it keeps its copy."""
    call.record(f"{query.workflow or query.scope}: {query.key}"[:200])
    return MemoryForgotten(await call.engine.store.forget(_conversation(query)))


def _conversation(query: MemoryQuery) -> Conversation:
    if bool(query.workflow) == bool(query.scope):
        message = "a conversation belongs to a workflow or to a scope"
        raise BadRequest(message, code="memory_owner", hint="set either workflow or scope")
    return Conversation(query.workflow, query.scope, query.key)
