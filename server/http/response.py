"""Responses: JSON of structs, and the answer that a workflow's response block wrote with its status, headers and body.

Workflow authors choose the headers and may copy data of others into the body, and this answer comes from the server's
own address. So only headers that describe the body and those that begin with `x-` are sent, and a browser treats the
body as a page without an origin (CSP sandbox): it cannot act as the signed-in user.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from server.http.shapes import to_json

_ALLOWED = frozenset(
    {
        "content-disposition",
        "content-language",
        "content-type",
        "etag",
        "last-modified",
        "location",
        "retry-after",
        "vary",
    }
)
# Browsers and proxies obey these.
_FORBIDDEN = re.compile(r"x-(accel-|content-|dns-|frame-|permitted-|sendfile|ua-|webkit-|xss-)")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,4096}")
_ITEMS_AT_ONCE = 500
_BODYLESS = frozenset({204, 205, 304})


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """`value` as JSON; structs, stored JSON and plain values together. Never cached."""
    return Response(
        to_json(value), status, {"Cache-Control": "no-store", **(headers or {})}, media_type="application/json"
    )


async def long_json_response(value: Struct, name: str) -> Response:
    """The same answer, encoded and sent while others run: in field `name` is a list that may have 100,000 items."""
    items: Sequence[Any] = getattr(value, name)
    if len(items) <= _ITEMS_AT_ONCE:
        return json_response(value)
    fields = {field: getattr(value, field) for field in value.__struct_fields__}
    names = list(fields)
    at = names.index(name)
    before, after = ({field: fields[field] for field in part} for part in (names[:at], names[at + 1 :]))
    parts = [to_json(before)[:-1], b"," if before else b"", to_json(name), b":["]
    for first in range(0, len(items), _ITEMS_AT_ONCE):
        parts += [b"," if first else b"", to_json(items[first : first + _ITEMS_AT_ONCE])[1:-1]]
        await asyncio.sleep(0)
    return _InParts([*parts, b"]", b"," if after else b"", to_json(after)[1:]], list(items))


class _InParts(Response):
    """JSON of a known length, sent in parts: it may have many megabytes. `made_of` is the list of items that it shows.
    The request has ended when this is sent, so this list holds the last references; they are dropped in batches between
    other tasks: dropping 100,000 at once takes 80 ms."""

    def __init__(self, parts: list[bytes], made_of: list[Any]) -> None:
        headers = {"Cache-Control": "no-store", "Content-Length": str(sum(map(len, parts)))}
        super().__init__(None, headers=headers, media_type="application/json")
        self._parts = parts
        self._made_of = made_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        while self._made_of:
            del self._made_of[-_ITEMS_AT_ONCE:]
            await asyncio.sleep(0)
        for part in self._parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def block_response(answer: Mapping[str, Any], headers: Mapping[str, str]) -> Response:
    """`answer` is {status, headers, body}; `headers` are added and win."""
    own = _headers(answer.get("headers"))
    status = answer.get("status", 200)
    status = status if isinstance(status, int) and 200 <= status <= 599 else 200
    if not 300 <= status <= 399:
        own.pop("location", None)
    body = answer.get("body")
    if isinstance(body, str):
        content, media = body.encode("utf-8", "replace"), "text/plain; charset=utf-8"
    else:
        content, media = to_json(body), "application/json"
    if status in _BODYLESS:
        content = b""
    media = own.pop("content-type", media)
    ours = {"Content-Security-Policy": "sandbox; default-src 'none'", "Cache-Control": "no-store"}
    return Response(content, status, {**own, **ours, **headers}, media_type=media)


def _headers(written: Any) -> dict[str, str]:
    """Return the well-formed headers that a workflow may set, names in lower case."""
    if not isinstance(written, Mapping):
        return {}
    safe: dict[str, str] = {}
    for name, value in written.items():
        text = value if isinstance(value, str) else str(value)
        low = str(name).lower()
        if _TOKEN.fullmatch(low) and _VALUE.fullmatch(text) and _is_allowed(low):
            safe[low] = text
    return safe


def _is_allowed(name: str) -> bool:
    return name in _ALLOWED or (name.startswith("x-") and not _FORBIDDEN.match(name))
