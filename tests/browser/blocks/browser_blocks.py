"""A block type for the browser tests, as a package of its own would bring it: text that comes in pieces."""

from __future__ import annotations

import asyncio
from pathlib import Path

from compiler.catalog import BlockSpec
from executor.blocks.base import Context, Done

PAUSE_S = 0.05


class Speak:
    """Says `text` word by word, then waits until the file `until` is there: what was said stays to be seen."""

    spec = BlockSpec(
        type="speak",
        title="Speak",
        description="Says a text word by word.",
        category="data",
        params={
            "type": "object",
            "additionalProperties": False,
            "properties": {"text": {"type": "string", "title": "Text"}, "until": {"type": "string", "title": "Until"}},
        },
    )

    async def run(self, ctx: Context) -> Done:
        words = str(ctx.params.get("text", "")).split()
        for word in words:
            ctx.emit(word + " ")
            await asyncio.sleep(PAUSE_S)
        until = ctx.params.get("until")
        while until and not await asyncio.to_thread(_is_there, until):
            await asyncio.sleep(PAUSE_S)
        return Done({"said": len(words)})


def _is_there(path: str) -> bool:
    return Path(path).exists()


block = Speak()
