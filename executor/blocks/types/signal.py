"""`signal`: waits until something outside sends a signal of a name. One that came earlier is taken at once."""

from __future__ import annotations

from typing import Any

from executor.blocks.types.declared import block_type
from executor.blocks.types.params import FILLED, Expiring, expiry_ms, invalid, param, shape
from executor.kernel.handler.base import StepContext, Suspend

_OUTPUT: dict[str, Any] = shape(
    payload={},
    name="string",
    correlation=["string", "null"],
    received_at={"type": "integer", "description": "Unix milliseconds"},
    received_by=["string", "null"],
)


class _Params(Expiring):
    name: str = param(
        "Signal name", "Other systems send the signal by this name.", required=True, pattern=FILLED, maxLength=200
    )
    correlation: str | None = param(
        "Correlation",
        "Accept only signals with the same correlation. Leave empty to accept any.",
        widget="text",
        type=["string", "number"],
    )


@block_type(
    type="signal",
    title="Signal",
    description="Waits until a signal with this name is sent to the run, for example by another system.",
    category="flow",
    pauses=True,
    params=_Params.json_schema,
    output=_OUTPUT,
    sentence="Wait for {name} of {correlation} | Wait for {name} | Wait for a signal",
    icon="signal",
)
async def block(ctx: StepContext) -> Suspend:
    """Raises BlockError(params_invalid). The name is also the request's title."""
    params = _Params(ctx.params)
    name, correlation = params.name, params.correlation
    if "\0" in name + (correlation or ""):  # no database but SQLite has such a text in a column
        raise invalid("the name and the correlation of a signal cannot contain a NUL character")
    return Suspend(
        "signal",
        request={"title": name, "correlation": correlation},
        due_ms=expiry_ms(params.expires_in_s, ctx.now_ms),
        on_expire=params.on_expire,
        name=name,
        correlation=correlation,
    )
