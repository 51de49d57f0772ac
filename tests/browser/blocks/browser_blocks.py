"""Block types for the browser tests, as a package of its own would bring them: text that comes in pieces, and a large
output."""

from __future__ import annotations

import asyncio
from pathlib import Path

from compiler.catalog import BlockSpec
from executor.kernel.handler.base import Done, StepContext

PAUSE_S = 0.05
LINGER_S = 10.0  # longer than the engine waits for a block to stop
ROW = "0123456789 " * 9


class Speak:
    """Says the words of `text` one by one, again and again, until the file `until` is there. Cancelled, it stops only
    then too, or when LINGER_S are over."""

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

    async def run(self, ctx: StepContext) -> Done:
        text = str(ctx.params.get("text", ""))
        until = Path(str(ctx.params.get("until")))
        words = text.split()
        said = 0
        try:
            while not await asyncio.to_thread(until.exists):
                ctx.emit(words[said % len(words)] + " ")
                said += 1
                await asyncio.sleep(PAUSE_S)
        except asyncio.CancelledError:
            for _ in range(round(LINGER_S / PAUSE_S)):
                if await asyncio.to_thread(until.exists):
                    break
                await asyncio.sleep(PAUSE_S)
            raise
        return Done({"text": text})


class Flood:
    """Puts out `bytes` bytes, in rows of about a hundred."""

    spec = BlockSpec(
        type="flood",
        title="Flood",
        description="Puts out much.",
        category="data",
        params={
            "type": "object",
            "additionalProperties": False,
            "properties": {"bytes": {"type": "integer", "title": "Bytes"}},
        },
    )

    async def run(self, ctx: StepContext) -> Done:
        return Done([{"row": n, "text": ROW} for n in range(int(ctx.params["bytes"]) // (len(ROW) + 20))])


speak = Speak()
flood = Flood()
