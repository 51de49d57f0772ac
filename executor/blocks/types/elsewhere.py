"""A call of an attempt in another process, as `policy.runner` of its block demands."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from executor.blocks.runners.call import Call
from executor.blocks.services import services_of
from executor.kernel.handler.base import Context


async def call_elsewhere(ctx: Context, place: str, function: str, arguments: bytes, context: str | None = None) -> Any:
    """Call the function at `place` with `arguments`, a JSON object, and return its result. `function`: its name in
    messages. `context`: its parameter for the attempt. Raises the function's BlockError or Fenced, and Lost."""
    call = Call(
        place=place,
        function=function,
        arguments=Raw(arguments),
        idempotency_key=ctx.idempotency_key,
        attempt=ctx.attempt,
        context=context,
        run_id=ctx.run_id,
        workflow=ctx.workflow,
        key=ctx.key,
        block=ctx.block,
        name=ctx.name,
        type=ctx.type,
        now_ms=ctx.now_ms,
        last_checkpoint=ctx.last_checkpoint,
    )
    return await services_of(ctx).runners.get(ctx.runner).call(call, ctx)
