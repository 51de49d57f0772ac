"""Requests to runs of durable functions: queries and updates."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from executor.errors import Refused
from executor.kernel.run.new_run import new_run_id
from server.api.runs import KEY, Seconds, idempotency_key
from server.http.response import Json, PersonName, ShortText
from server.http.table import Call, Routes, RouteSpec


class QueryRequest(Struct, forbid_unknown_fields=True):
    """POST /api/runs/{id}/queries/{name}. `arguments`: those of the query, by name."""

    arguments: dict[str, Any] = {}


class QueryAnswer(Struct, frozen=True):
    """`answer`: what the function of the query has returned."""

    run: str
    name: str
    answer: Any


class UpdateRequest(Struct, forbid_unknown_fields=True):
    """POST /api/runs/{id}/updates/{name}. `id`: the same again is the same request; the Idempotency-Key header does the
    same."""

    value: Any = None
    id: Annotated[ShortText, Meta(min_length=1)] | None = None
    by: PersonName | None = None


class UpdateAnswer(Struct, frozen=True):
    """The answer to request `id`, or null while there is none (`answered` is false). `run`: the one that answered it,
    which may be one that continues the run that was asked."""

    run: str
    name: str
    id: str
    answered: bool
    answer: Any


class UpdateQuery(Struct, frozen=True):
    wait: Annotated[Seconds, Meta(description="Seconds to wait for the answer, at most 60.")] = 0


route = Routes("runs", RouteSpec)


@route(
    "POST",
    "/api/runs/{id}/queries/{name}",
    "Query the published state of a run",
    needs="viewer",
    audit=False,
    statuses=(409, 502),
)
async def query(call: Call, id: str, name: str, body: QueryRequest) -> QueryAnswer:
    """Computed from the state that the durable function of the run published last, also after its end. 404: there is no
    such query, or this server does not have the function. 409: nothing was published yet. 502: the query failed."""
    return QueryAnswer(id, name, await call.engine.functions.compute(id, name, body.arguments))


@route(
    "POST",
    "/api/runs/{id}/updates/{name}",
    "Send an update to a run",
    needs="editor",
    statuses=(202, 409),
    params=(KEY,),
)
async def update(call: Call, id: str, name: str, query: UpdateQuery, body: UpdateRequest) -> Json[UpdateAnswer]:
    """The request is stored until the durable function of the run answers it. 202: it has not yet; send the same `id`
    again to ask for the answer. 409: it was refused (`update_refused`), or the run has ended."""
    asked = body.id or idempotency_key(call) or new_run_id(call.engine.parts.clock.now_ms())
    answered = await call.engine.functions.ask(id, name, body.value, asked, body.by, query.wait)
    if answered is None:
        return Json(UpdateAnswer(id, name, asked, False, None), 202)
    if answered.refused is not None:
        raise Refused(answered.refused, run=answered.run, id=answered.id)
    return Json(UpdateAnswer(answered.run, name, answered.id, True, answered.answer), 200)
