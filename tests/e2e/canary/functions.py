"""Python functions of the swept server: each writes what it gets wherever a function can."""

from __future__ import annotations

import logging
from typing import Any


async def tell(text: str, ctx: Any) -> dict[str, Any]:
    """Log, live text, a checkpoint, steps."""
    ctx.log("logged", text)
    for at in range(0, len(text), 5):
        ctx.emit(text[at : at + 5])
    await ctx.checkpoint({"text": text, text: 1})

    async def work() -> Any:
        return {"again": text, text: [text]}

    async def refuse() -> Any:
        raise ValueError(f"the step failed: {text}")

    found = await ctx.step("tool", f"step {text}"[:150], {"input": text}, work)
    try:
        await ctx.step("tool", "refused", {}, refuse)
    except Exception as error:
        logging.getLogger("weft.of_a_test").exception("a step failed: %s", text)
        found["error"] = str(error)
    return {"found": found}


def fail(text: str) -> None:
    raise RuntimeError(f"it could not use {text}") from ValueError(text)
