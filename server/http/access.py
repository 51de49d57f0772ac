"""The access log: one line for each request, with WEFT_LOG=info or debug. As JSON, the line has each part by name."""

from __future__ import annotations

import logging
import re
import uuid
from typing import Any, Final
from urllib.parse import quote

from starlette.types import Message, Scope, Send

from executor.kernel.run.meters import now_s

ACTOR: Final = "weft.actor"  # in the scope of a request: the credential it came with, as the audit names it
REQUEST_ID: Final = b"x-request-id"
_log = logging.getLogger("weft.access")
_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")  # of a proxy or a client; others are replaced


def is_logged() -> bool:
    return _log.isEnabledFor(logging.INFO)


def logged(send: Send, scope: Scope, route_key: str) -> Send:
    """Log the request when its answer begins. The answer names the request in `X-Request-Id`, with the value that the
    client sent if it is well formed."""
    began_s = now_s()
    sent = next((value for name, value in scope["headers"] if name == REQUEST_ID), b"")
    request_id = sent if _ID.fullmatch(sent) else uuid.uuid4().hex.encode()

    async def send_logged(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), (REQUEST_ID, request_id)]
            _write(_request(scope, scope.get(route_key), message["status"], now_s() - began_s, request_id.decode()))
        await send(message)

    return send_logged


def _request(scope: Scope, route: str | None, status: int, seconds: float, request_id: str) -> dict[str, Any]:
    query = scope["query_string"].decode("latin-1")
    path = quote(scope["path"]) + ("?" + query if query else "")
    client = scope.get("client")
    return {
        "id": request_id,
        "method": scope["method"],
        "path": path,
        "route": route,
        "status": status,
        "ms": round(seconds * 1000, 1),
        "actor": scope.get(ACTOR),
        "client": None if client is None else client[0],
        "http": scope["http_version"],
    }


def _write(request: dict[str, Any]) -> None:
    text = '%(client)s "%(method)s %(path)s HTTP/%(http)s" %(status)d %(ms).1f ms %(actor)s %(id)s'
    _log.info(text, request, extra={"request": request})
