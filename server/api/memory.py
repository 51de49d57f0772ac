"""The memory of agents between runs."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct
from starlette.responses import Response

from executor.kernel.store.topics.memory import MemoryHead
from executor.service.topics.memory import TurnView
from server.http.response import json_response, long_json_response
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


@route("GET", "/api/memory", "List what agents remember", needs="viewer", answer=MemoryList, query=MemoriesQuery)
async def list_all(call: Call) -> Response:
    """Conversations of a workflow, or of all and of all scopes."""
    return json_response(MemoryList(await call.engine.memory.all(call.query(MemoriesQuery).workflow)))


@route(
    "GET",
    "/api/memory/turns",
    "Show a conversation",
    needs="viewer",
    answer=MemoryTurns,
    statuses=(400,),
    query=MemoryQuery,
)
async def show(call: Call) -> Response:
    """The turns of a conversation."""
    query = call.query(MemoryQuery)
    turns = await call.engine.memory.turns(query.key, workflow=query.workflow, scope=query.scope)
    return await long_json_response(MemoryTurns(turns), "turns")


@route(
    "DELETE",
    "/api/memory",
    "Delete a conversation",
    needs="editor",
    answer=MemoryForgotten,
    statuses=(400,),
    query=MemoryQuery,
)
async def delete(call: Call) -> Response:
    """Delete a conversation. Later runs do not read it; a run that has read it keeps its copy."""
    query = call.query(MemoryQuery)
    call.note(f"{query.workflow or query.scope}: {query.key}"[:200])
    deleted = await call.engine.memory.forget(query.key, workflow=query.workflow, scope=query.scope)
    return json_response(MemoryForgotten(deleted))
