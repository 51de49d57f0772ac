"""`response`: ends the run at once with a response."""

from __future__ import annotations

import re
from typing import Any

from executor.blocks.types.declared import block_type
from executor.blocks.types.params import HEADERS, TypedParams, changed, invalid, param, shape
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.values.coerce import coerce

# RFC 9110: a token, and visible characters with blanks. Anything else could end the header and begin another.
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,8192}")
# The server that sends the answer writes these itself.
_SERVER_OWN = frozenset({"connection", "content-length", "keep-alive", "trailer", "transfer-encoding", "upgrade"})


class _Params(TypedParams):
    status: int = param("Status", "HTTP status code.", default=200, minimum=200, maximum=599)
    headers: Any = changed(HEADERS, description="Response headers. Headers that are null are not sent.", order=3)
    body: Any = param("Body", "Any value. It is also the output of the run.", order=2, rows=6)


@block_type(
    type="response",
    title="Response",
    description="Ends the run and returns this response. Blocks that are still running are cancelled.",
    category="flow",
    params=_Params.json_schema,
    handles=(),
    inline=True,
    ends_run=True,
    output=shape(data={}, status="integer", headers={"type": "object", "additionalProperties": True}),
    sentence="Respond {status} with {body} | Respond {status}",
    icon="reply",
)
async def block(ctx: StepContext) -> Done:
    """Output {"data", "status", "headers"}. Raises BlockError(params_invalid) for a status or header that is not
    HTTP."""
    params = _Params(ctx.params)
    if ctx.params.get("status", params.status) is None:  # a reference to nothing must not become a success
        raise invalid("status must be a whole number from 200 to 599, not null")
    answer = {"status": params.status, "headers": header_texts(params.headers, _SERVER_OWN)}
    return Done({"data": params.body, **answer}, route=None, response={**answer, "body": params.body})


def header_texts(headers: Any, forbidden: frozenset[str]) -> dict[str, str]:
    """Return a param with headers as texts; those that are null are left out. Raises BlockError(params_invalid)."""
    if headers is None or headers == "":
        return {}
    if not isinstance(headers, dict):
        raise invalid("headers must be an object of names and texts")
    found: dict[str, str] = {}
    for name, value in headers.items():
        if value is None:
            continue
        if isinstance(value, dict | list):
            raise invalid(f"header {name[:80]!r} must be text")
        shown = str(coerce("string", value)).strip()
        if not HEADER_NAME.fullmatch(name):
            raise invalid(f"{name[:80]!r} is not a valid header name")
        if not HEADER_VALUE.fullmatch(shown):
            raise invalid(f"header {name!r} holds characters that headers cannot have, such as a line break")
        if name.lower() in forbidden:
            raise invalid(f"header {name!r} is set by weft itself")
        found[name] = shown
    return found
