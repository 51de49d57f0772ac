"""A block type for the browser tests, as a package of its own would bring it: text that comes in pieces."""

from __future__ import annotations

import asyncio
from pathlib import Path

from compiler.catalog import BlockSpec
from executor.blocks.base import Context, Done

PAUSE_S = 0.05
LINGER_S = 1.0


class Speak:
    """Says the words of `text` one by one, again and again, until the file `until` is there. Cancelled, it takes its
    time to stop."""

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
        said = 0
        try:
            while not await asyncio.to_thread(Path(str(ctx.params.get("until"))).exists):
                ctx.emit(words[said % len(words)] + " ")
                said += 1
                await asyncio.sleep(PAUSE_S)
        except asyncio.CancelledError:
            await asyncio.sleep(LINGER_S)
            raise
        return Done({"said": said})


block = Speak()
