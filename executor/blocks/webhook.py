"""`webhook`: the trigger of runs that a request starts. A version that is stored brings its webhooks with it."""

from __future__ import annotations

from typing import Any

import orjson

from compiler.catalog import BlockSpec, Finding, Params
from compiler.schema import schema_error
from executor.blocks.base import Context, Done
from executor.triggers.requests import header_problem

_PROPERTIES: dict[str, Any] = {
    "body": {"description": "The JSON that was sent, or its text"},
    "headers": {"type": "object", "description": "Names in lower case"},
    "query": {"type": "object", "description": "A name that came more than once has a list"},
    "method": {"type": "string"},
    "delivery": {"type": ["string", "null"], "description": "The sender's name for this delivery, or ours"},
    "received_at": {"type": "integer", "description": "Unix milliseconds"},
}


def _output_of(params: Params) -> dict[str, Any]:
    schema = params.get("body_schema")
    body = schema if isinstance(schema, dict) else _PROPERTIES["body"]
    return {"type": "object", "properties": {**_PROPERTIES, "body": body}}


def _check(params: Params) -> tuple[Finding, ...]:
    found = []
    if params.get("auth") == "none":
        found.append(Finding("webhook_open", "/auth", "anybody who knows its address can start this workflow"))
    headers = params.get("headers")
    for i, name in enumerate(headers if isinstance(headers, list) else ()):
        problem = header_problem(name) if isinstance(name, str) else None
        if problem is not None:
            found.append(Finding("param_invalid", f"/headers/{i}", problem))
    if params.get("secret_env") and params.get("auth") == "none":
        found.append(Finding("param_invalid", "/secret_env", "without auth there is no secret", "leave it out"))
    schema = params.get("body_schema")
    problem = schema_error(orjson.dumps(schema)) if isinstance(schema, dict) else None
    if problem is not None:
        found.append(Finding("param_invalid", "/body_schema", f"body_schema is not a JSON Schema: {problem[:300]}"))
    return tuple(found)


class Webhook:
    spec = BlockSpec(
        type="webhook",
        title="Webhook",
        description="Starts the workflow when another system sends a request to its address.",
        category="trigger",
        params={
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "auth": {
                    "enum": ["hmac", "github", "token", "none"],
                    "title": "Who may send",
                    "description": "hmac: requests are signed, with the time. github: signed as GitHub does it. "
                    "token: the secret as bearer token. none: anybody.",
                    "default": "hmac",
                    "x-weft": "literal",
                    "x-ui": {"order": 1, "widget": "select"},
                },
                "secret_env": {
                    "type": "string",
                    "title": "Secret from the environment",
                    "description": "Name of the value that is the secret. Left empty: weft makes one and shows it.",
                    "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,127}$",
                    "x-weft": "literal",
                    "x-ui": {"order": 2, "widget": "text", "advanced": True},
                },
                "respond": {
                    "enum": ["immediate", "run"],
                    "title": "Answer",
                    "description": "immediate: 202 once the run is stored. run: what the run answers.",
                    "default": "immediate",
                    "x-weft": "literal",
                    "x-ui": {"order": 3, "widget": "select"},
                },
                "timeout_s": {
                    "type": "number",
                    "title": "Wait for the run (seconds)",
                    "description": "After that the answer is 202 all the same.",
                    "exclusiveMinimum": 0,
                    "maximum": 60,
                    "default": 30,
                    "x-weft": "literal",
                    "x-ui": {"order": 4, "widget": "number", "when": {"respond": ["run"]}},
                },
                "body_schema": {
                    "type": "object",
                    "title": "Body",
                    "description": "JSON Schema of the body. What does not fit is refused with 422.",
                    "x-weft": "literal",
                    "x-ui": {"order": 5, "widget": "schema"},
                },
                "headers": {
                    "type": "array",
                    "title": "More headers",
                    "description": "Names of headers the workflow may read besides the usual ones.",
                    "maxItems": 50,
                    "items": {"type": "string", "minLength": 1, "maxLength": 100, "x-weft": "literal"},
                    "x-weft": "literal",
                    "x-ui": {"order": 6, "widget": "list", "advanced": True},
                },
                "enabled": {
                    "type": "boolean",
                    "title": "Switched on",
                    "description": "It can be switched without a new version, too.",
                    "default": True,
                    "x-weft": "literal",
                    "x-ui": {"order": 7, "widget": "boolean"},
                },
            },
        },
        trigger=True,
        inline=True,
        output_from=_output_of,
        check=_check,
        sentence="starts when a request comes in",
        icon="webhook",
    )

    async def run(self, ctx: Context) -> Done:
        """Of a run that somebody started by hand: what he gave, and nothing for the rest."""
        given = ctx.input if isinstance(ctx.input, dict) else {"body": ctx.input}
        nothing: dict[str, Any] = {"body": None, "headers": {}, "query": {}, "method": "POST", "delivery": None}
        return Done({**nothing, "received_at": ctx.now_ms, **given})


block = Webhook()
