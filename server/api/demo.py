"""`/demo/echo`: an endpoint for examples to call, so that they need no other server. It can be slow and can fail.
It is there only while the server listens on loopback, as it asks for no credential (`table_of`).

`?fail=N` answers 503 to the first N calls with one key (`?key=`, else the Idempotency-Key header), then succeeds:
examples show retries with it. The counts live in memory only; no run and no workflow is touched."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from starlette.responses import Response

from server.api.server import Echo, EchoQuery
from server.http.errors import problem
from server.http.request import read_json
from server.http.response import AnyJson, Json
from server.http.table import Call, Routes, RouteSpec

BODY_BYTES_MAX = 64 * 1024
KEYS_MAX = 1000
_HEADERS = ("accept", "content-type", "idempotency-key", "user-agent")


class Calls:
    """Counts calls by key; the oldest keys are dropped."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, int] = OrderedDict()

    def count(self, key: str) -> int:
        """This call's number, from 1."""
        number = self._seen.pop(key, 0) + 1
        self._seen[key] = number
        if len(self._seen) > KEYS_MAX:
            self._seen.popitem(last=False)
        return number


route = Routes("demo", RouteSpec)


@route("GET", "/demo/echo", "Echo, for examples", public=True, answer=Echo, statuses=(503,))
@route(
    "POST",
    "/demo/echo",
    "Echo, for examples",
    public=True,
    body=AnyJson,
    body_bytes=BODY_BYTES_MAX,
    answer=Echo,
    statuses=(503,),
)
async def echo(call: Call, query: EchoQuery) -> Response:
    fail, delay_ms = query.fail, query.delay_ms
    body = await read_json(call.request, call.limits)
    key = query.key or call.request.headers.get("idempotency-key", "")
    number = call.request.app.state.demo_calls.count(key) if key else 1
    if delay_ms:
        await asyncio.sleep(delay_ms / 1000)
    if fail and number <= fail:
        # No Retry-After: examples show the back-off of the caller.
        return problem(503, "demo_failure", f"Call {number} of {fail} that fail as requested.")
    headers = call.request.headers
    return Json(
        Echo(
            method=call.request.method,
            query=dict(call.request.query_params),
            headers={name: headers[name] for name in _HEADERS if name in headers},
            body=body,
            call=number,
        )
    )
