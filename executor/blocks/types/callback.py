"""`callback`: waits until another system posts to an address made for this one wait. `send` sends it the address.

The address is sent after the wait is on disk, so an answer cannot come too early."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from compiler.catalog import BlockSpec
from compiler.schema import schema_error
from executor.blocks.types.response import header_texts
from executor.blocks.types.shared_params import (
    EXPIRES_IN_S,
    FILLED,
    ON_EXPIRE,
    SENT_HEADERS,
    expiry_ms,
    invalid,
    text,
    web_address,
)
from executor.kernel.handler.base import Context, Suspend

_METHODS = ("POST", "PUT", "PATCH")
# The client writes these itself; the outbox those that describe the message.
OWN_HEADERS = frozenset(
    {"connection", "content-length", "content-type", "host", "idempotency-key", "keep-alive", "te", "trailer",
     "transfer-encoding", "upgrade", "x-weft-signature", "x-weft-timestamp"}
)  # fmt: skip
_SEND: dict[str, Any] = {
    "type": "object",
    "required": ["url"],
    "additionalProperties": False,
    "properties": {
        "url": {
            "x-weft": "secret",
            "x-url": True,
            **FILLED,
            "title": "URL",
            "description": "http:// or https://",
            "x-ui": {"order": 1, "widget": "text"},
        },
        "method": {
            "type": "string",
            "title": "Method",
            "description": "HTTP method of the request.",
            "enum": list(_METHODS),
            "default": "POST",
            "x-ui": {"order": 2, "widget": "select"},
        },
        "headers": {**SENT_HEADERS, "description": "Use ${NAME} for secrets."},
        "body": {
            "x-weft": "secret",
            "title": "Body",
            "description": "callback_url is added to an object. Any other value is sent as data, next to callback_url.",
            "x-ui": {"order": 4, "widget": "json", "rows": 6},
        },
    },
    "title": "Send the callback URL",
    "description": 'A request that contains callback_url: {"url", "method", "headers", "body"}. Leave empty to send '
    "nothing; the URL is shown in the list of waits.",
    "x-ui": {"order": 2, "widget": "json", "rows": 8},
}


class Callback:
    spec = BlockSpec(
        type="callback",
        title="Callback",
        description="Waits until another system sends a request to a URL created for this run. The URL works once.",
        category="flow",
        pauses=True,
        params={
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "title": {
                    "type": "string",
                    "title": "Title",
                    "description": "What the block waits for, in one line.",
                    "x-ui": {"order": 1, "widget": "text"},
                },
                "send": _SEND,
                "schema": {
                    "type": "object",
                    "title": "Body schema",
                    "description": "JSON Schema. A body that does not match is rejected and the block keeps waiting.",
                    "x-ui": {"order": 3, "widget": "schema"},
                },
                "expires_in_s": EXPIRES_IN_S,
                "on_expire": ON_EXPIRE,
            },
        },
        output={
            "type": "object",
            "properties": {
                "body": {},
                "headers": {"type": "object", "additionalProperties": True},
                "received_at": {"type": "integer", "description": "Unix milliseconds"},
            },
        },
        sentence="Send the callback URL to {send.url} | Wait for {title} | Wait for another system",
        icon="signal",
    )

    async def run(self, ctx: Context) -> Suspend:
        """Raises BlockError(params_invalid)."""
        on_expire = text(ctx.params, "on_expire") or "fail"
        if on_expire not in ("fail", "continue", "skip"):
            raise invalid(f"on_expire must be fail, continue or skip, not {on_expire[:80]!r}")
        return Suspend(
            "webhook",
            request={"title": text(ctx.params, "title") or ctx.name},
            schema=checked_schema(ctx.params.get("schema")),
            due_ms=expiry_ms(ctx.params, ctx.now_ms),
            on_expire=on_expire,
            messages=_sent(ctx.params.get("send")),
        )


def checked_schema(schema: Any) -> dict[str, Any] | None:
    if not schema:
        return None
    if not isinstance(schema, dict):
        raise invalid("schema must be a JSON Schema")
    problem = schema_error(orjson.dumps(schema))
    if problem is not None:
        raise invalid(f"schema is not a JSON Schema: {problem[:300]}")
    return schema


def _sent(send: Any) -> tuple[tuple[str, bytes], ...]:
    if send in (None, "", {}):
        return ()
    if not isinstance(send, Mapping):
        raise invalid("send must be an object", hint='such as {"url": "https://example.org/jobs"}')
    url = text(send, "url")
    if url is None:
        raise invalid("URL is required to send the callback URL")
    method = (text(send, "method") or "POST").upper()
    if method not in _METHODS:
        raise invalid(f"send.method must be one of {', '.join(_METHODS)}, not {method[:20]!r}")
    target = {
        "url": web_address(url, "send.url"),
        "method": method,
        "headers": header_texts(send.get("headers"), OWN_HEADERS),
        "body": send.get("body"),
    }
    return (("request", orjson.dumps(target)),)


block = Callback()
