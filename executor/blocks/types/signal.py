"""`signal`: waits until something outside sends a signal of a name. One that came earlier is taken at once."""

from __future__ import annotations

from typing import Any

from compiler.catalog import BlockSpec
from executor.blocks.types.shared_params import EXPIRES_IN_S, FILLED, ON_EXPIRE, expiry_ms, invalid, text
from executor.kernel.handler.base import Context, Suspend

_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "payload": {},
        "name": {"type": "string"},
        "correlation": {"type": ["string", "null"]},
        "received_at": {"type": "integer", "description": "Unix milliseconds"},
        "received_by": {"type": ["string", "null"]},
    },
}


class Signal:
    spec = BlockSpec(
        type="signal",
        title="Signal",
        description="Waits until a signal with this name is sent to the run, for example by another system.",
        category="flow",
        pauses=True,
        params={
            "type": "object",
            "required": ["name"],
            "additionalProperties": False,
            "properties": {
                "name": {
                    **FILLED,
                    "title": "Signal name",
                    "description": "Other systems send the signal by this name.",
                    "maxLength": 200,
                    "x-ui": {"order": 1, "widget": "text"},
                },
                "correlation": {
                    "type": ["string", "number"],
                    "title": "Correlation",
                    "description": "Accept only signals with the same correlation. Leave empty to accept any.",
                    "x-ui": {"order": 2, "widget": "text"},
                },
                "expires_in_s": EXPIRES_IN_S,
                "on_expire": ON_EXPIRE,
            },
        },
        output=_OUTPUT,
        sentence="Wait for {name} of {correlation} | Wait for {name} | Wait for a signal",
        icon="signal",
    )

    async def run(self, ctx: Context) -> Suspend:
        """Raises BlockError(params_invalid). The name is also the request's title."""
        name = text(ctx.params, "name")
        if name is None:
            raise invalid("Signal name is required")
        on_expire = text(ctx.params, "on_expire") or "fail"
        if on_expire not in ("fail", "continue", "skip"):
            raise invalid(f"on_expire must be fail, continue or skip, not {on_expire[:80]!r}")
        correlation = text(ctx.params, "correlation")
        if "\0" in name + (correlation or ""):  # no database but SQLite has such a text in a column
            raise invalid("the name and the correlation of a signal cannot contain a NUL character")
        return Suspend(
            "signal",
            request={"title": name, "correlation": correlation},
            due_ms=expiry_ms(ctx.params, ctx.now_ms),
            on_expire=on_expire,
            name=name,
            correlation=correlation,
        )


block = Signal()
