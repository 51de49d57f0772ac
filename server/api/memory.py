"""The memory of agents between runs."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from executor.kernel.store.topics.memory import MemoryHead
from executor.service.topics.memory import TurnView
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
    return MemoryList(await call.engine.memory.all(query.workflow))


@route("GET", "/api/memory/turns", "Show a conversation", needs="viewer", statuses=(400,))
async def show(call: Call, query: MemoryQuery) -> Json[MemoryTurns]:
    """The turns of a conversation."""
    turns = await call.engine.memory.turns(query.key, workflow=query.workflow, scope=query.scope)
    return await long_json(MemoryTurns(turns), "turns")


@route("DELETE", "/api/memory", "Delete a conversation", needs="editor", statuses=(400,))
async def delete(call: Call, query: MemoryQuery) -> MemoryForgotten:
    """Delete a conversation. Later runs do not read it; a run that has read it keeps its copy."""
    call.note(f"{query.workflow or query.scope}: {query.key}"[:200])
    deleted = await call.engine.memory.forget(query.key, workflow=query.workflow, scope=query.scope)
    return MemoryForgotten(deleted)
