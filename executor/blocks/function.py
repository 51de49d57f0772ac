"""`function`: a JavaScript program in the sandbox."""

from __future__ import annotations

from compiler.catalog import BlockSpec
from executor.blocks.base import Context, Done
from executor.blocks.shared_params import FILLED, invalid, seconds
from executor.errors import BlockError
from executor.sandbox import Bound

_DEFAULT_S = 5
_STDOUT_SHOWN = 500


class Function:
    spec = BlockSpec(
        type="function",
        title="Function",
        description="Runs JavaScript in a sandbox without network or file access.",
        category="action",
        params={
            "type": "object",
            "required": ["code"],
            "additionalProperties": False,
            "properties": {
                "code": {
                    **FILLED,
                    "title": "Code",
                    "description": "The body of an async function. Return the result; console.log writes to stdout.",
                    "x-weft": "code",
                    "x-ui": {"order": 1, "widget": "code", "rows": 12},
                },
                "timeout_s": {
                    "type": "number",
                    "title": "Timeout (seconds)",
                    "description": "The block fails when the code runs longer.",
                    "exclusiveMinimum": 0,
                    "maximum": 60,
                    "default": _DEFAULT_S,
                    "x-ui": {"order": 2, "widget": "number", "advanced": True},
                },
            },
        },
        output={"type": "object", "properties": {"result": {}, "stdout": {"type": "string"}}},
        sentence="{code} | Run JavaScript",
        icon="code",
    )

    async def run(self, ctx: Context) -> Done:
        """Raises SandboxError; what the program printed before is in the hint."""
        code = ctx.params.get("code")
        if isinstance(code, str):
            code = Bound(code, {})
        if not isinstance(code, Bound):
            raise invalid("code must be JavaScript")
        limit_s = seconds(ctx.params, "timeout_s", _DEFAULT_S) or _DEFAULT_S
        try:
            # The seed knows no attempt: a repeated attempt draws the same random numbers.
            result, stdout = await ctx.services.sandbox.run_code(
                code,
                now_ms=ctx.now_ms,
                seed=ctx.idempotency_key,
                timeout_ms=round(limit_s * 1000),
                owner=ctx.run_id,
                waiting=ctx.queueing,
            )
        except BlockError as error:
            printed = str(error.extra.get("stdout") or "").strip()
            if printed:
                ctx.log(printed)
            if printed and not error.hint:
                error.hint = f"printed before: {printed[-_STDOUT_SHOWN:]}"
            raise
        if stdout:
            ctx.log(stdout)
        return Done({"result": result, "stdout": stdout})


block = Function()
