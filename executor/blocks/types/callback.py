"""`callback`: waits until another system posts to an address made for this one wait. `send` sends it the address.

The address is sent after the wait is on disk, so an answer cannot come too early."""

from __future__ import annotations

from typing import Any, Literal

import orjson

from executor.blocks.types.declared import block_type
from executor.blocks.types.params import (
    FILLED,
    SENT_HEADERS,
    Expiring,
    TypedParams,
    expiry_ms,
    invalid,
    param,
    schema_problem,
    shape,
    web_address,
)
from executor.blocks.types.response import header_texts
from executor.kernel.handler.base import StepContext, Suspend

# The client writes these itself; the outbox those that describe the message.
OWN_HEADERS = frozenset(
    {"connection", "content-length", "content-type", "host", "idempotency-key", "keep-alive", "te", "trailer",
     "transfer-encoding", "upgrade", "x-weft-signature", "x-weft-timestamp"}
)  # fmt: skip

BODY_SCHEMA: Any = param(
    "Body schema", "JSON Schema. A body that does not match is rejected and the block keeps waiting.", widget="schema"
)
CALLED = shape(
    body={},
    headers={"type": "object", "additionalProperties": True},
    received_at={"type": "integer", "description": "Unix milliseconds"},
)


class _Send(TypedParams):
    url: str = param("URL", "http:// or https://", required=True, weft="secret", url=True, pattern=FILLED)
    method: Literal["POST", "PUT", "PATCH"] = param(
        "Method", "HTTP method of the request.", default="POST", type="string"
    )
    headers: Any = SENT_HEADERS
    body: Any = param(
        "Body",
        "callback_url is added to an object. Any other value is sent as data, next to callback_url.",
        rows=6,
        weft="secret",
    )


class _Params(Expiring):
    title: str | None = param("Title", "What the block waits for, in one line.")
    send: _Send | None = param(
        "Send the callback URL",
        'A request that contains callback_url: {"url", "method", "headers", "body"}. Leave empty to send '
        "nothing; the URL is shown in the list of waits.",
        widget="json",
        rows=8,
    )
    schema: dict[str, Any] | None = BODY_SCHEMA


@block_type(
    type="callback",
    title="Callback",
    description="Waits until another system sends a request to a URL created for this run. The URL works once.",
    category="flow",
    pauses=True,
    params=_Params.json_schema,
    output=CALLED,
    sentence="Send the callback URL to {send.url} | Wait for {title} | Wait for another system",
    icon="signal",
)
async def block(ctx: StepContext) -> Suspend:
    params = _Params(ctx.params)
    messages = () if params.send is None else (("request", _request(params.send)),)
    return until_called(ctx, params, params.schema, params.title or ctx.name, messages)


def until_called(
    ctx: StepContext,
    params: Expiring,
    schema: dict[str, Any] | None,
    title: str,
    messages: tuple[tuple[str, bytes], ...],
) -> Suspend:
    """Wait for a body that fits `schema`, after `messages` are sent. Raises BlockError(params_invalid)."""
    if (problem := schema_problem(schema)) is not None:
        raise invalid(f"schema is not a JSON Schema: {problem}")
    due_ms = expiry_ms(params.expires_in_s, ctx.now_ms)
    return Suspend(
        "webhook",
        request={"title": title},
        schema=schema,
        due_ms=due_ms,
        on_expire=params.on_expire,
        messages=messages,
    )


def _request(send: _Send) -> bytes:
    return orjson.dumps(
        {
            "url": web_address(send.url, "send.url"),
            "method": send.method,
            "headers": header_texts(send.headers, OWN_HEADERS),
            "body": send.body,
        }
    )
