"""Server spans: a request of the API with the header `traceparent` is a span of the caller's trace, if this process
exports traces, and a run that it starts is below it. Only requests with a valid credential get a span."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable

from starlette.exceptions import HTTPException
from starlette.responses import Response

from executor.errors import WeftError
from executor.kernel.process.observe import Served, parent_of, with_parent
from server.http.call import Call
from server.http.errors import status_of

Handler = Callable[[Call], Awaitable[Response]]


async def traced(handler: Handler, call: Call, method: str, route: str) -> Response:
    """Return the handler's answer, with a span that ends when the answer begins."""
    header = call.request.headers.get("traceparent")
    tracing, clock = call.engine.parts.services.tracing, call.engine.parts.clock
    caller = parent_of(header)
    if caller is None or tracing is None:
        with with_parent(header):
            return await handler(call)
    span, start_ms, status = secrets.token_hex(8), clock.now_ms(), 500
    try:
        with with_parent(f"00-{caller.trace}-{span}-01"):
            response = await handler(call)
        status = response.status_code
        return response
    except WeftError as error:
        status = status_of(error)
        raise
    except HTTPException as error:
        status = error.status_code
        raise
    finally:
        tracing.served(Served(caller, span, method, route, status, start_ms, clock.now_ms()))
