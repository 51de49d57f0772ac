"""The memory of agents between runs."""

from __future__ import annotations

from starlette.responses import Response

from server.http.call import Call
from server.http.response import json_response, long_json_response
from server.http.table import RouteSpec
from server.wire.memory import MemoriesQuery, MemoryForgotten, MemoryList, MemoryQuery, MemoryTurns


async def list_all(call: Call) -> Response:
    """Conversations of a workflow, or of all and of all scopes."""
    return json_response(MemoryList(await call.engine.memory.all(call.query(MemoriesQuery).workflow)))


async def show(call: Call) -> Response:
    """The turns of a conversation."""
    query = call.query(MemoryQuery)
    turns = await call.engine.memory.turns(query.key, workflow=query.workflow, scope=query.scope)
    return await long_json_response(MemoryTurns(turns), "turns")


async def delete(call: Call) -> Response:
    """Delete a conversation. Later runs do not read it; a run that has read it keeps its copy."""
    query = call.query(MemoryQuery)
    call.note(f"{query.workflow or query.scope}: {query.key}"[:200])
    deleted = await call.engine.memory.forget(query.key, workflow=query.workflow, scope=query.scope)
    return json_response(MemoryForgotten(deleted))


TABLE = (
    RouteSpec(
        "GET",
        "/api/memory",
        list_all,
        "List what agents remember",
        "memory",
        needs="viewer",
        answer=MemoryList,
        query=MemoriesQuery,
    ),
    RouteSpec(
        "GET",
        "/api/memory/turns",
        show,
        "Show a conversation",
        "memory",
        needs="viewer",
        answer=MemoryTurns,
        statuses=(400,),
        query=MemoryQuery,
    ),
    RouteSpec(
        "DELETE",
        "/api/memory",
        delete,
        "Delete a conversation",
        "memory",
        needs="editor",
        answer=MemoryForgotten,
        statuses=(400,),
        query=MemoryQuery,
    ),
)
