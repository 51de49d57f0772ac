"""`webhook`: the trigger of runs that a request starts. A version that is stored brings its webhooks with it."""

from __future__ import annotations

import re
from typing import Any, Final

from compiler.catalog import Finding, Params
from executor.blocks.types.declared import block_type
from executor.blocks.types.params import ENABLED, TypedParams, param, schema_problem
from executor.kernel.handler.base import Done, StepContext

HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
# The input of a run is stored and shown: no credential may be in it.
_SECRETIVE: Final = re.compile(r"authorization|cookie|signature|secret|token|password|api-?key|credential")

_PROPERTIES: dict[str, Any] = {
    "body": {"description": "The body as JSON, or as text if it is not JSON"},
    "headers": {"type": "object", "description": "Header names are in lower case"},
    "query": {"type": "object", "description": "A repeated parameter is a list"},
    "method": {"type": "string"},
    "delivery": {"type": ["string", "null"], "description": "Id of the delivery, from the sender if it has one"},
    "received_at": {"type": "integer", "description": "Unix milliseconds"},
}


def _output_of(params: Params) -> dict[str, Any]:
    schema = params.get("body_schema")
    body = schema if isinstance(schema, dict) else _PROPERTIES["body"]
    return {"type": "object", "properties": {**_PROPERTIES, "body": body}}


def _check(params: Params) -> tuple[Finding, ...]:
    found = []
    if params.get("auth") == "none":
        found.append(Finding("webhook_open", "/auth", "Anyone who knows the URL can start this workflow."))
    headers = params.get("headers")
    for i, name in enumerate(headers if isinstance(headers, list) else ()):
        problem = header_problem(name) if isinstance(name, str) else None
        if problem is not None:
            found.append(Finding("param_invalid", f"/headers/{i}", problem))
    if params.get("secret_env") and params.get("auth") == "none":
        found.append(
            Finding("param_invalid", "/secret_env", "A webhook without authentication has no secret.", "Remove it.")
        )
    if (problem := schema_problem(params.get("body_schema"))) is not None:
        found.append(Finding("param_invalid", "/body_schema", f"Body schema is not a JSON Schema: {problem}."))
    return tuple(found)


def header_problem(name: str) -> str | None:
    """Return why runs cannot see this header, or None if they can."""
    if not HEADER_NAME.fullmatch(name):
        return f"{name[:80]!r} is not a valid header name"
    if _SECRETIVE.search(name.lower()):
        return f"header {name!r} contains a credential, so it is not passed to runs: their input is stored and shown"
    return None


class _Params(TypedParams, literal=True):
    auth: str = param(
        "Authentication",
        "How the sender proves that it knows the secret.",
        default="hmac",
        choices={"hmac": "Signature (HMAC)", "github": "GitHub signature", "token": "Bearer token", "none": "None"},
    )
    secret_env: str | None = param(
        "Secret from the environment",
        "Name of an environment value with the secret. Leave empty to create a secret.",
        advanced=True,
        when={"auth": ["hmac", "github", "token"]},
        pattern="^[A-Za-z_][A-Za-z0-9_]{0,127}$",
    )
    respond: str = param(
        "Respond",
        "Respond with 202 at once, or with the response of the run.",
        default="immediate",
        choices={"immediate": "Immediately", "run": "When the run ends"},
    )
    timeout_s: float = param(
        "Wait for the run (seconds)",
        "If the run takes longer, the response is 202.",
        default=30,
        when={"respond": ["run"]},
        exclusiveMinimum=0,
        maximum=60,
    )
    body_schema: dict[str, Any] | None = param(
        "Body schema", "JSON Schema. A body that does not match is rejected with 422.", widget="schema"
    )
    headers: list[Any] | None = param(
        "Additional headers",
        "Names of more request headers that the workflow can read.",
        advanced=True,
        maxItems=50,
        items={"type": "string", "minLength": 1, "maxLength": 100, "x-weft": "literal"},
    )
    enabled: bool = ENABLED


@block_type(
    type="webhook",
    title="Webhook",
    description="Starts the workflow when a request arrives at its URL.",
    category="trigger",
    params=_Params.json_schema,
    trigger=True,
    inline=True,
    output_from=_output_of,
    check=_check,
    sentence="Starts when a request arrives",
    icon="webhook",
)
async def block(ctx: StepContext) -> Done:
    """Output of a run that was started by hand: its input, and empty values for the rest."""
    sent = ctx.input if isinstance(ctx.input, dict) else {"body": ctx.input}
    empty: dict[str, Any] = {"body": None, "headers": {}, "query": {}, "method": "POST", "delivery": None}
    return Done({**empty, "received_at": ctx.now_ms, **sent})
